"""Reading of files as numbered lines, and atomic writing, with gzip and standard streams."""

import codecs
import errno
import gzip
import io
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, count, repeat
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, TypeAlias, TypeVar, cast

from treewright._naming import named
from treewright.data.temporary import temporary_file
from treewright.errors import TROUBLESHOOTING, FormatError, InputError, show
from treewright.progress import task, track

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Item = TypeVar("Item")
Target: TypeAlias = str | os.PathLike[str]

HELP = f"{TROUBLESHOOTING}#files"
GZIP_MAGIC = b"\x1f\x8b"
DAMAGED_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
BLANKS = b"\xef\xbb\xbf \t\r\n"
CHUNK_SIZE = 1 << 16
LONGEST_LINE = 1 << 26
"""Maximum bytes of a line. Without a limit, a small compressed file could expand to one endless line."""
NUL = "a NUL byte, as in binary files and UTF-16"
STANDARD, STANDARD_OUTPUT = "-", "standard output"
NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
"""Error codes for a full disk, a file that is too large, and an exceeded quota."""


@dataclass(frozen=True)
class Begun:
    """A file whose beginning has already been read: its name, and its whole content in pieces."""

    name: str
    pieces: Iterator[bytes]


Source: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes] | Begun


def source_name(source: Source) -> str:
    """Return the name of `source` for error messages."""
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        return "<stdin>" if name == STANDARD else name
    found = getattr(source, "name", None)
    return found if isinstance(found, str) else "<stream>"


def iter_chunks(source: Source) -> Iterator[tuple[int, list[str]]]:
    r"""Yield lists of decoded lines without line ends, with the number of the first line.

    Lines end only in ``\n`` or ``\r\n``. Gzip is detected by its first bytes, ``"-"`` is standard input, and
    an initial byte-order mark is dropped. At most the longest line is held in memory, and a pipe is read as
    its text arrives. All lines before an error are yielded first.

    Raises
    ------
    FormatError
        If there is a NUL byte, a lone carriage return, a line longer than 64 MiB, corrupt gzip data, or a
        byte sequence that is not UTF-8.
    """
    name = source_name(source)
    number = 1
    try:
        for raw in _whole_lines(source):
            pieces: Iterable[list[str]]
            try:
                pieces = [_decode(raw, name, number)]
            except FormatError:  # decode line by line to find the offending one
                pieces = map(_decode, io.BytesIO(raw), repeat(name), count(number))
            for lines in pieces:
                yield number, lines
                number += len(lines)
    except UnicodeDecodeError as error:  # from a file that the caller opened in text mode
        raise _undecodable(name, number, error) from error
    except DAMAGED_GZIP as error:
        raise _damaged(name, number, error) from error
    except _LineTooLongError as error:
        raise _endless(name, number) from error


def iter_text(source: Source) -> Iterator[str]:
    """Yield the text of a file of any size in pieces; gzip and ``"-"`` are handled as in `iter_chunks`.

    Raises
    ------
    FormatError
        If there are bytes that are not UTF-8, or corrupt gzip data.
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


def read_lines(source: Source, name: str) -> bytes:
    """Return all bytes of a file; raise `FormatError` if a line is too long."""
    found: list[bytes] = []
    try:
        found.extend(_whole_lines(source))
    except _LineTooLongError as error:
        raise _endless(name, 1 + sum(raw.count(b"\n") for raw in found)) from error
    return b"".join(found)


def _endless(name: str, number: int) -> FormatError:
    return FormatError(name, number, f"a line of more than {LONGEST_LINE:,} bytes", "shorter lines")


class _LineTooLongError(Exception):
    """A line is too long."""


def _damaged(name: str, number: int, error: Exception) -> FormatError:
    return FormatError(name, number, f"corrupt or truncated gzip data ({error})", "a complete file")


def _undecodable(name: str, number: int, error: UnicodeDecodeError) -> FormatError:
    """Return the error for bytes that are not UTF-8, in a text that starts at line `number`."""
    line = number + error.object.count(b"\n", 0, error.start)
    found = NUL if b"\0" in error.object else f"byte {error.object[error.start]:#04x}"
    return FormatError(name, line, found, "UTF-8", help=HELP)


def numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield each line of `source` with its number; see `iter_chunks`."""
    for number, lines in iter_chunks(source):
        yield from enumerate(lines, start=number)


@contextmanager
def open_begun(source: Source, is_enough: Callable[[bytes], object]) -> Iterator[tuple[bytes, Begun]]:
    """Open `source`; yield its first bytes, up to the point where `is_enough` is true, and its whole content.

    Nothing is read twice, so `source` may be a pipe.
    """
    name = source_name(source)
    begin = b""
    with closing(_pieces(source)) as pieces:
        try:
            while not is_enough(begin) and (data := next(pieces, b"")):
                begin += data
        except DAMAGED_GZIP as error:
            raise _damaged(name, 1, error) from error
        yield begin, Begun(name, chain([begin], pieces))


@contextmanager
def open_target(target: Target) -> Iterator[IO[str]]:
    """Open `target` for writing UTF-8 text; it is written completely or not at all.

    The text goes to a temporary file beside `target`, which is renamed at the end. A failure leaves an
    existing file unchanged, and a file may be rewritten while it is being read. ``"-"`` is standard output; a
    name that ends in ``.gz`` is compressed. See `replacing` for targets that are not regular files.
    """
    check_target("target", target)
    path = Path(target)
    if os.fspath(target) == STANDARD:
        with _standard_output() as stream:
            yield stream
    else:
        with replacing(path) as raw, _compressed(raw, path) as body, _text(body) as stream:
            yield stream


def track_writing(items: Iterable[Item], target: Target) -> Iterator[Item]:
    """Yield the items that are written to `target`, and report the progress."""
    check_target("target", target)
    if not isinstance(items, Iterable):
        raise InputError(f"the sentences are {show(items)}; expected a list or another iterable")
    name = "" if os.fspath(target) == STANDARD else f" {os.path.basename(target)}"
    return track(items, f"writing{name}")


def check_target(name: str, target: object) -> None:
    """Check that `target` is the name of a file or a folder."""
    if not isinstance(target, str | os.PathLike) or isinstance(os.fspath(target), bytes):
        raise InputError(f"{named(name)} is {show(target)}; expected the name of a file or a folder")


def check_folder(path: Target) -> None:
    """Raise an error if the folder of an output file does not exist."""
    folder = Path(path).parent
    if os.fspath(path) != STANDARD and not folder.exists():
        found = f"the folder {folder} does not exist; create it, or choose another name"
        raise FileNotFoundError(errno.ENOENT, found, os.fspath(path))


def is_special(path: Target) -> bool:
    """Return whether `path` exists but is not a regular file (a pipe, a device, a socket or a folder)."""
    return os.path.exists(path) and not os.path.isfile(path)


def is_same_file(one: Target, other: Target) -> bool:
    """Return whether two paths refer to the same regular file, which need not exist."""
    if STANDARD in (os.fspath(one), os.fspath(other)) or is_special(one) or is_special(other):
        return False
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return Path(one).resolve() == Path(other).resolve()


def _whole_lines(source: Source) -> Iterator[bytes]:
    """Yield the bytes of `source` in pieces that end at line ends."""
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


def _pieces(source: Source) -> Generator[bytes]:
    """Yield the uncompressed bytes of `source` as they arrive; report the progress of a file."""
    if isinstance(source, Begun):
        yield from source.pieces
    elif not isinstance(source, str | os.PathLike):
        if not hasattr(source, "read"):
            raise InputError(
                f"the source is of type {type(source).__name__}; expected a file name or an open file"
            )
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
                    reading.advance(stream.tell() - reading.done)


def _stream_pieces(stream: IO[str] | IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a binary or text stream, which can be read only once."""
    if isinstance(stream.read(0), str):
        while line := cast(IO[str], stream).readline():
            yield line.encode("utf-8", "surrogatepass")  # _decode rejects what UTF-8 cannot encode
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
    whole = io.BufferedReader(_Joined(pieces), CHUNK_SIZE)
    return gzip.GzipFile(fileobj=whole, mode="rb") if head == GZIP_MAGIC else whole


class _Joined(io.RawIOBase):
    """A stream of concatenated pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
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
    """Decode complete lines; `number` is the number of the first line, for error messages."""
    if b"\0" in raw:
        raise FormatError(name, number, NUL, "UTF-8", help=HELP)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte {raw[error.start]:#04x} at byte {error.start + 1}"
        raise FormatError(name, number, found, "UTF-8", help=HELP) from error
    if number == 1:
        text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        if "\r" in text:
            expected = r"lines that end in \n or \r\n"
            raise FormatError(name, number, "a carriage return within a line", expected)
    return text.removesuffix("\n").split("\n")


@contextmanager
def _standard_output() -> Iterator[IO[str]]:
    if sys.stdout is None:
        raise InputError("standard output is closed; expected a file or an open output")
    if not hasattr(sys.stdout, "buffer"):  # a notebook has no underlying binary stream
        yield sys.stdout
        return
    sys.stdout.flush()
    with naming(STANDARD_OUTPUT), _text(sys.stdout.buffer) as stream:
        yield stream


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file for writing; at the end, it replaces `path`.

    A symbolic link is kept, and its target is replaced. A target that is not a regular file, such as a pipe,
    is written to directly.
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
            error.filename = str(path)  # the user does not know the temporary name
            raise
        with open(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _put(temporary, place)


def take_place(unfinished: Path, target: Path) -> None:
    """Replace a file with a complete one, which is copied if it is on another file system."""
    place = target.resolve() if target.is_symlink() else target
    is_on_device = unfinished.stat().st_dev == place.parent.stat().st_dev
    if is_special(place) or place.suffix == ".gz" or not is_on_device:
        with open(unfinished, "rb") as source, replacing(target) as raw, _compressed(raw, place) as body:
            shutil.copyfileobj(source, body, CHUNK_SIZE)
        unfinished.unlink()
        return
    _put(unfinished, place)


def _put(temporary: Target, place: Path) -> None:
    """Rename a file to `place`, and keep the permissions of the file that it replaces."""
    if place.exists():  # a new file keeps the system's default permissions
        os.chmod(temporary, place.stat().st_mode & 0o777)
    os.replace(temporary, place)
    with suppress(OSError):  # makes the new name durable after a power failure, where supported
        descriptor = os.open(place.parent, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def naming(target: Target) -> Iterator[None]:
    """Add the name of the output file to disk-full errors; the system does not include it."""
    try:
        yield
    except OSError as error:
        name_target(error, target)
        raise


def name_target(error: OSError, target: Target) -> None:
    """Add the name of the output file to a disk-full error."""
    if error.filename is None and error.errno in NO_ROOM:
        error.filename = os.fspath(target)


@contextmanager
def _compressed(raw: BinaryIO, path: Path) -> Iterator[BinaryIO]:
    if path.suffix != ".gz":
        yield raw
        return
    with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream:
        yield cast(BinaryIO, stream)


@contextmanager
def _text(raw: BinaryIO) -> Iterator[IO[str]]:
    r"""Wrap a binary stream as UTF-8 text with ``\n`` line ends on every system; leave `raw` open."""
    stream = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
    try:
        yield stream
    except UnicodeEncodeError as error:
        found = error.object[error.start]
        raise InputError(f"the text contains {found!r}; expected characters that UTF-8 can encode") from error
    finally:
        stream.flush()
        stream.detach()
