"""Files as numbered lines in, and as whole files out: gzip, standard streams, damage."""

import codecs
import errno
import gzip
import io
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, count, repeat
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, TypeAlias, TypeVar, cast

from treewright.data.temporary import temporary_file
from treewright.errors import FormatError, InputError
from treewright.progress import task, track

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Item = TypeVar("Item")
Source: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes]
Target: TypeAlias = str | os.PathLike[str]

GZIP_MAGIC = b"\x1f\x8b"
DAMAGED_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
BLANKS = b"\xef\xbb\xbf \t\r\n"
CHUNK_SIZE = 1 << 16
LONGEST_LINE = 1 << 26
"""Bytes after which a line is taken for what has no lines; a small compressed file may hold any number."""
NUL = "a NUL byte, as in binary files and UTF-16"
STANDARD, STANDARD_OUTPUT = "-", "standard output"
NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
"""No space left, a file larger than the system allows, or a quota that is exceeded."""


def source_name(source: Source) -> str:
    """Name `source` the way the caller would, for error messages."""
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        return "<stdin>" if name == STANDARD else name
    found = getattr(source, "name", None)
    return found if isinstance(found, str) else "<stream>"


def iter_chunks(source: Source) -> Iterator[tuple[int, list[str]]]:
    r"""Yield runs of whole lines, decoded, without their line ends, and the number of the first.

    Lines end in ``\n`` or ``\r\n`` and nowhere else. Gzip is told by its first bytes, ``"-"`` is
    standard input, and a byte-order mark at the beginning is dropped. Memory is that of the longest
    line; a pipe is read as its text arrives. All lines before a damaged one are yielded first.

    Raises
    ------
    FormatError
        For bytes that are not UTF-8, a NUL byte, a lone carriage return, damaged gzip data, or a line of more
        than 64 MiB.
    """
    name = source_name(source)
    number = 1
    try:
        for raw in _whole_lines(source):
            pieces: Iterable[list[str]]
            try:
                pieces = [_decode(raw, name, number)]
            except FormatError:  # somewhere in there; line by line it will be known where
                pieces = map(_decode, io.BytesIO(raw), repeat(name), count(number))
            for lines in pieces:
                yield number, lines
                number += len(lines)
    except UnicodeDecodeError as error:  # of a file that the caller opened as text
        raise _undecodable(name, number, error) from error
    except DAMAGED_GZIP as error:
        raise _damaged(name, number, error) from error
    except _LineTooLongError as error:
        raise _endless(name, number) from error


def iter_text(source: Source) -> Iterator[str]:
    """Yield the characters of a file of any size in pieces; gzip and ``"-"`` are as in `iter_chunks`.

    Raises
    ------
    FormatError
        For bytes that are not UTF-8, or damaged gzip data.
    """
    name, number = source_name(source), 1
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        for piece in chain(_pieces(source), [b""]):
            text = decoder.decode(piece, final=not piece)
            if text:
                yield text
                number += text.count("\n")
    except UnicodeDecodeError as error:
        raise _undecodable(name, number, error) from error
    except DAMAGED_GZIP as error:
        raise _damaged(name, number, error) from error


def read_lines(stream: IO[bytes], name: str) -> bytes:
    """Return all bytes of an open file, unless a line in it does not end; see `iter_chunks`."""
    found: list[bytes] = []
    try:
        found.extend(_whole_lines(stream))
    except _LineTooLongError as error:
        raise _endless(name, 1 + sum(raw.count(b"\n") for raw in found)) from error
    return b"".join(found)


def _endless(name: str, number: int) -> FormatError:
    return FormatError(name, number, f"a line of more than {LONGEST_LINE:,} bytes", "lines that have an end")


class _LineTooLongError(Exception):
    """A line does not end."""


def _damaged(name: str, number: int, error: Exception) -> FormatError:
    return FormatError(name, number, f"gzip data are damaged ({error})", "a whole file")


def _undecodable(name: str, number: int, error: UnicodeDecodeError) -> FormatError:
    """Return the error for bytes, the first of which are in line `number`, that are not UTF-8."""
    line = number + error.object.count(b"\n", 0, error.start)
    found = NUL if b"\0" in error.object else f"byte {error.object[error.start]:#04x}"
    return FormatError(name, line, found, "UTF-8")


def numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield each line of `source` with its number; see `iter_chunks`."""
    for number, lines in iter_chunks(source):
        yield from enumerate(lines, start=number)


@contextmanager
def open_begun(source: Source, is_enough: Callable[[bytes], object]) -> Iterator[tuple[bytes, IO[bytes]]]:
    """Open `source`; give its first bytes, as many as are enough, or all, and all of it to be read.

    Nothing is read twice, so that a pipe will do.
    """
    pieces = _pieces(source)
    begin = b""
    try:
        while not is_enough(begin) and (data := next(pieces, b"")):
            begin += data
    except DAMAGED_GZIP as error:
        raise _damaged(source_name(source), 1, error) from error
    with io.BufferedReader(_Joined(chain([begin], pieces), source_name(source)), CHUNK_SIZE) as stream:
        yield begin, cast(IO[bytes], stream)


@contextmanager
def open_target(target: Target) -> Iterator[IO[str]]:
    """Open `target` for writing UTF-8 text; it appears whole or not at all.

    Text goes to a temporary file beside `target`, renamed at the end, so that a failure leaves an
    older file as it was and a file may be rewritten while it is being read. ``"-"`` is standard
    output; a name in ``.gz`` is compressed. What is no regular file is written to as `replacing` does.
    """
    path = Path(target)
    if os.fspath(target) == STANDARD:
        with _standard_output() as stream:
            yield stream
    else:
        with replacing(path) as raw, _compressed(raw, path) as body, _text(body) as stream:
            yield stream


def track_writing(items: Iterable[Item], target: Target) -> Iterator[Item]:
    """Hand on what is written to `target`, and tell how much of it has been."""
    name = "" if os.fspath(target) == STANDARD else f" {os.path.basename(target)}"
    return track(items, f"writing{name}")


def check_folder(path: Target) -> None:
    """Refuse a file to be written in a folder that does not exist."""
    folder = Path(path).parent
    if os.fspath(path) != STANDARD and not folder.exists():
        found = f"the folder {folder} does not exist; make it, or give another name"
        raise FileNotFoundError(errno.ENOENT, found, os.fspath(path))


def is_special(path: Target) -> bool:
    """Tell whether `path` is there and is no regular file: a pipe, a device, a socket, a folder."""
    return os.path.exists(path) and not os.path.isfile(path)


def is_same_file(one: Target, other: Target) -> bool:
    """Tell whether two names are those of one regular file, or would be if it were there."""
    if STANDARD in (os.fspath(one), os.fspath(other)) or is_special(one) or is_special(other):
        return False
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return Path(one).resolve() == Path(other).resolve()


def _whole_lines(source: Source) -> Iterator[bytes]:
    """Yield the bytes of `source` in pieces that end where a line ends."""
    pending: list[bytes] = []
    n_pending = 0
    for data in _pieces(source):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*pending, data[:cut]])
            pending, n_pending = [], 0
        pending.append(data[cut:])
        n_pending += len(data) - cut
        if n_pending > LONGEST_LINE:
            raise _LineTooLongError
    if rest := b"".join(pending):
        yield rest


def _pieces(source: Source) -> Iterator[bytes]:
    """Yield the bytes of `source`, uncompressed, as they come; tell how far a file has been read."""
    if not isinstance(source, str | os.PathLike):
        yield from _stream_pieces(source)
    elif os.fspath(source) == STANDARD:
        if sys.stdin is None:
            raise InputError("standard input is closed; expected a file or an open input")
        yield from _stream_pieces(getattr(sys.stdin, "buffer", sys.stdin))
    else:
        with open(source, "rb") as stream:
            if not stream.seekable():
                yield from _stream_pieces(stream)
                return
            size = os.fstat(stream.fileno()).st_size
            is_compressed = stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            stream.seek(0)
            body = gzip.GzipFile(fileobj=stream, mode="rb") if is_compressed else stream
            with task(f"reading {os.path.basename(source)}", total=size, unit="bytes") as reading:
                while data := body.read1(CHUNK_SIZE):
                    yield data
                    reading.reach(stream.tell(), size)


def _stream_pieces(stream: IO[str] | IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a stream that may be text, and that can be read only once."""
    if isinstance(stream.read(0), str):
        while line := cast(IO[str], stream).readline():
            yield line.encode("utf-8", "surrogatepass")  # _decode refuses what UTF-8 cannot hold
    else:
        body = _uncompressed(cast(IO[bytes], stream))
        while data := body.read1(CHUNK_SIZE):
            yield data


def _uncompressed(stream: IO[bytes]) -> io.BufferedIOBase:
    head = b""
    while len(head) < len(GZIP_MAGIC) and (data := stream.read(len(GZIP_MAGIC) - len(head))):
        head += data
    read = getattr(stream, "read1", stream.read)
    pieces = chain([head], iter(lambda: read(CHUNK_SIZE), b""))
    whole = io.BufferedReader(_Joined(pieces, ""), CHUNK_SIZE)
    return gzip.GzipFile(fileobj=whole, mode="rb") if head == GZIP_MAGIC else whole


class _Joined(io.RawIOBase):
    """A stream made of pieces."""

    def __init__(self, pieces: Iterator[bytes], name: str) -> None:
        self.name = name
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer)
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        data, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(data)] = data
        return len(data)


def _decode(raw: bytes, name: str, number: int) -> list[str]:
    """Decode whole lines that begin at line `number`; an error names that line."""
    if b"\0" in raw:
        raise FormatError(name, number, NUL, "UTF-8")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte {raw[error.start]:#04x} at byte {error.start + 1}"
        raise FormatError(name, number, found, "UTF-8") from error
    if number == 1:
        text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        if "\r" in text:
            expected = r"lines that end in \n or \r\n"
            raise FormatError(name, number, "a carriage return inside a line", expected)
    return text.removesuffix("\n").split("\n")


@contextmanager
def _standard_output() -> Iterator[IO[str]]:
    if sys.stdout is None:
        raise InputError("standard output is closed; expected a file or an open output")
    if not hasattr(sys.stdout, "buffer"):  # in a notebook there are no bytes underneath
        yield sys.stdout
        return
    sys.stdout.flush()
    with naming(STANDARD_OUTPUT), _text(sys.stdout.buffer) as stream:
        yield stream


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write to a temporary file that takes the place of `path` at the end.

    A link stays, and what it leads to changes. What is no regular file is written to as it stands, as it
    could not be put back.
    """
    if is_special(path):
        with naming(path), open(path, "wb") as device:
            yield device
        return
    place = path.resolve() if path.is_symlink() else path
    mode = place.stat().st_mode & 0o777 if place.exists() else 0o666
    check_folder(path)
    with naming(path), ExitStack() as stack:
        try:
            descriptor, temporary = stack.enter_context(temporary_file(place, mode=0o600 | mode))
        except OSError as error:
            error.filename = str(path)  # the user knows nothing of the temporary name
            raise
        with open(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _put(temporary, place)


def take_place(unfinished: Path, target: Path) -> None:
    """Let a file that is whole take the place of another; between file systems it is copied."""
    place = target.resolve() if target.is_symlink() else target
    is_on_device = unfinished.stat().st_dev == place.parent.stat().st_dev
    if is_special(place) or place.suffix == ".gz" or not is_on_device:
        with open(unfinished, "rb") as source, replacing(target) as raw, _compressed(raw, place) as body:
            shutil.copyfileobj(source, body, CHUNK_SIZE)
        unfinished.unlink()
        return
    _put(unfinished, place)


def _put(temporary: Target, place: Path) -> None:
    """Rename a file to `place`, with the permissions of what was there."""
    if place.exists():  # what the system granted to a new file stays
        os.chmod(temporary, place.stat().st_mode & 0o777)
    os.replace(temporary, place)
    with suppress(OSError):  # the new name outlasts a power cut, where the system can do that
        descriptor = os.open(place.parent, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def naming(target: Target) -> Iterator[None]:
    """Let errors about what there is no room for tell what was being written, which the system does not."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in NO_ROOM:
            error.filename = os.fspath(target)
        raise


@contextmanager
def _compressed(raw: BinaryIO, path: Path) -> Iterator[BinaryIO]:
    if path.suffix != ".gz":
        yield raw
        return
    with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream:
        yield cast(BinaryIO, stream)


@contextmanager
def _text(raw: BinaryIO) -> Iterator[IO[str]]:
    r"""Wrap bytes as UTF-8 text with ``\n`` line ends on every system, leaving `raw` open."""
    stream = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
    try:
        yield stream
    except UnicodeEncodeError as error:
        found = error.object[error.start]
        raise InputError(f"text has {found!r} in it; expected characters that UTF-8 can hold") from error
    finally:
        stream.flush()
        stream.detach()
