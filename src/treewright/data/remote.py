"""Download of Universal Dependencies treebanks, with a cache and checksums.

Each treebank has a folder in the cache. A file is downloaded as ``NAME.part``, and the server's ETag is
stored beside it, so that a later call can resume an interrupted download. A complete file is renamed.
``sums.json`` records the SHA-256 of every file when it is first seen, and the URLs that do not exist. A lock
allows one process at a time to write to the folder.

Pooch is not used: it restarts an interrupted download from the beginning, and it checks only files whose
SHA-256 is given in advance. Universal Dependencies publishes no checksums.
"""

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from filelock import FileLock, Timeout

from treewright._cache import cache_folder
from treewright._naming import named
from treewright._typing import FolderName
from treewright._version import __version__
from treewright.data.files import CHUNK_SIZE, open_target
from treewright.data.languages import resolve_name, suggest_names, train_pieces
from treewright.errors import FetchError, InputError, quote
from treewright.progress import task

BASE_URL = "https://raw.githubusercontent.com/UniversalDependencies"
PARTS = ("train", "dev", "test")
RECORD_NAME = "sums.json"

ATTEMPTS = 4
RETRY_PAUSE = 0.5
LOCK_PAUSE = 0.1
TRANSIENT_STATUSES = {429, 500, 502, 503, 504}
ABSENT_STATUSES = {404, 410}
LOCKS_UNSUPPORTED = {errno.ENOLCK, errno.EOPNOTSUPP}

RELEASE = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
SHA256 = re.compile(r"[0-9a-f]{64}")
HTTP_ADDRESS = re.compile(r"https?://[^\s/?#][^\s?#]*")
STRONG_TAG = re.compile(r'"[!#-~]*"')
CONTENT_RANGE = re.compile(r"bytes ([0-9]+)-[0-9]+/([0-9]+|\*)")

logger = logging.getLogger("treewright")


class TreebankFiles(NamedTuple):
    """The files of a treebank; None for a file that the release does not have.

    See Also
    --------
    fetch_treebank : Downloads a treebank.

    Examples
    --------
    >>> tw.fetch_treebank("UD_Hungarian-Szeged").test.name  # doctest: +SKIP
    'hu_szeged-ud-test.conllu'
    """

    train: Path | None
    """The training set."""
    dev: Path | None
    """The dev set."""
    test: Path | None
    """The test set."""


def find_treebank(name: str) -> TreebankFiles:
    """Return the files of a treebank, given a training file, a folder, or a name to download.

    Raises
    ------
    InputError
        If the path does not exist, or a folder does not contain exactly one training file.
    """
    path = Path(name)
    if path.is_dir():
        found = {part: sorted(path.glob(f"*{part}*.conllu")) for part in PARTS}
        if len(found["train"]) != 1:
            n_found = len(found["train"]) or "no"
            raise InputError(f"{name} has {n_found} files that match *train*.conllu; expected one")
        return TreebankFiles(*(found[part][0] if len(found[part]) == 1 else None for part in PARTS))
    if path.exists() or path.name != name or path.suffix:
        return TreebankFiles(path, None, None)
    return fetch_treebank(name)


def fetch_treebank(
    name: str,
    *,
    release: str = "2.14",
    code: str | None = None,
    base_url: str | None = None,
    cache: FolderName | os.PathLike[str] | None = None,
    sha256: Mapping[str, str] | None = None,
    timeout: float = 30.0,
) -> TreebankFiles:
    """Return the files of a Universal Dependencies treebank; download those that are not cached.

    Once all files are in the cache, no network is needed. The SHA-256 of each file is recorded when the file
    is first seen, and checked in every later call. An interrupted download is resumed by the next call. You
    can also put files in the cache yourself.

    Parameters
    ----------
    name : str
        The repository, such as ``"UD_English-EWT"``, or the prefix of its file names, such as ``"en_ewt"``.
    release : str
        Release of Universal Dependencies.
    code : str, optional
        Language code in file names, for a language that is not in treewright's list.
    base_url : str, optional
        Base URL of the repositories (default: GitHub). A file is at ``BASE/REPOSITORY/rRELEASE/FILE``.
    cache : path, optional
        Folder for the treebanks (default: the user's cache).
    sha256 : mapping of str to str, optional
        Required SHA-256 digests by file name.
    timeout : float
        Seconds to wait for an answer from the server.

    Returns
    -------
    TreebankFiles
        Paths `train`, `dev` and `test`.

    Raises
    ------
    InputError
        If the name, release, code, URL or a digest is invalid.
    FetchError
        If the treebank is unknown, the server cannot be reached, or a file does not have the recorded or
        required digest.

    See Also
    --------
    read_conllu : Reads the files.
    make_treebank : Generates a treebank without a download.

    Examples
    --------
    >>> trees = tw.read_conllu(tw.fetch_treebank("UD_English-EWT").train)  # doctest: +SKIP
    """
    if not isinstance(release, str) or not RELEASE.fullmatch(release):
        raise InputError(f"{named('release')} is {release!r}; expected a number as text, such as '2.14'")
    base_url = BASE_URL if base_url is None else base_url
    if not HTTP_ADDRESS.fullmatch(base_url):
        raise InputError(
            f"{named('base_url')} is {quote(base_url)}; expected a URL that starts with http:// or https://"
        )
    repository, stem = resolve_name(name, code)
    root = cache_folder("treebanks") if cache is None else Path(cache)
    if root.exists() and not root.is_dir():
        raise InputError(f"{named('cache')} is {str(root)!r}, which is a file; expected a folder")
    source = _Source(
        repository=repository,
        stem=stem,
        address=f"{base_url.rstrip('/')}/{repository}/r{release}",
        folder=root / f"r{release}" / repository,
        demanded=_check_demanded(sha256 or {}, repository, stem),
        timeout=timeout,
    )
    with nullcontext() if _is_settled(source) else _locked(source.folder):
        return _provide_parts(source)


@dataclass(frozen=True)
class _Source:
    """Source, destination and required digests of the files of a treebank."""

    repository: str
    stem: str
    address: str
    folder: Path
    demanded: Mapping[str, str]
    timeout: float

    @property
    def names(self) -> list[str]:
        return [f"{self.stem}-{part}.conllu" for part in PARTS]

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


@dataclass
class _Record:
    """Record of a treebank's files: digests by name, and URLs that do not exist."""

    path: Path
    sha256: dict[str, str]
    absent: list[str]

    @classmethod
    def read(cls, folder: Path) -> "_Record":
        path = folder / RECORD_NAME
        try:
            content = json.loads(path.read_bytes())
            return cls(path, dict(content["sha256"]), list(content["absent"]))
        except FileNotFoundError:
            return cls(path, {}, [])
        except (ValueError, KeyError, TypeError):
            remedy = "delete it to record the files again"
            raise FetchError(f"{path} is not a valid record of digests; {remedy}") from None

    def write(self) -> None:
        with open_target(self.path) as stream:
            json.dump({"sha256": self.sha256, "absent": self.absent}, stream, indent=2, sort_keys=True)
            stream.write("\n")


class _InterruptedTransferError(Exception):
    """The transfer of a file was interrupted; a retry may help."""


def _check_demanded(sha256: Mapping[str, str], repository: str, stem: str) -> dict[str, str]:
    """Return the required digests in lower case; raise `InputError` for unknown file names."""
    names = [f"{stem}-{part}.conllu" for part in PARTS]
    names += train_pieces(repository, names[0])
    demanded = {name: digest.lower() for name, digest in sha256.items()}
    for name, digest in demanded.items():
        if name not in names:
            raise InputError(
                f"sha256 contains the file name {quote(name)}; expected one of {', '.join(names)}"
            )
        if not SHA256.fullmatch(digest):
            raise InputError(f"sha256 of {name} is {quote(digest)}; expected 64 hexadecimal digits")
    return demanded


def _is_settled(source: _Source) -> bool:
    """Return whether all files are cached, so that the cache may be read-only."""
    record = _Record.read(source.folder)
    return all(
        (name in record.sha256 and (source.folder / name).exists()) or source.url(name) in record.absent
        for name in source.names
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock `folder`, so that no other process or thread writes to it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.info("waiting for another process to download %s", folder)
        lock.acquire(poll_interval=LOCK_PAUSE)
    except OSError as error:
        if error.errno not in LOCKS_UNSUPPORTED:
            raise
        logger.warning("%s cannot be locked (%s); download it in one process at a time", folder, error)
    try:
        yield
    finally:
        lock.release()


def _provide_parts(source: _Source) -> TreebankFiles:
    record = _Record.read(source.folder)
    files = TreebankFiles(*[_provide(source, record, name) for name in source.names])
    urls = [source.url(name) for name, path in zip(source.names, files, strict=True) if path is None]
    if len(urls) == len(PARTS):
        raise FetchError(
            f"neither {urls[0]} nor the other files were found; this release has no treebank "
            f"{source.repository} at this address{suggest_names(source.repository)}"
        )
    if unrecorded := [url for url in urls if url not in record.absent]:
        if files.dev and not files.train:
            logger.warning("%s: not found; it may be split into several files with other names", urls[0])
        record.absent += unrecorded
        record.write()
    return files


def _provide(source: _Source, record: _Record, name: str) -> Path | None:
    """Return a checked file, downloaded if necessary; None if the treebank does not have it."""
    path = source.folder / name
    if path.exists():
        digest = _digest(path)
        _check_digest(source, record, name, digest, f"{path}", "delete the file to download it again")
        _remember(record, name, digest)
        return path
    url = source.url(name)
    if url not in record.absent and (_download(source, record, name) or _join(source, record, name)):
        return path
    if name in source.demanded:
        raise FetchError(f"{url}: not found; expected a file with SHA-256 {source.demanded[name]}")
    return None


def _download(source: _Source, record: _Record, name: str) -> bool:
    """Download a file to the cache; return whether the server has it."""
    part = source.folder / f"{name}.part"
    if not _fill_part(source, name, part):
        return False
    _put_in_place(source, record, name, part)
    _tag_path(part).unlink(missing_ok=True)
    return True


def _join(source: _Source, record: _Record, name: str) -> bool:
    """Download the pieces of a file and join them; return whether the server has all of them."""
    names = train_pieces(source.repository, name)
    pieces = [path for each in names if (path := _provide(source, record, each))]
    if not pieces or len(pieces) < len(names):
        return False
    part = source.folder / f"{name}.part"
    with _open_part(part, "wb") as stream:
        for piece in pieces:
            with open(piece, "rb") as content:
                shutil.copyfileobj(content, stream)
    _put_in_place(source, record, name, part)
    for piece in pieces:
        piece.unlink()
    return True


def _put_in_place(source: _Source, record: _Record, name: str, part: Path) -> None:
    """Rename and record a complete file, or remove it if its digest is wrong."""
    digest = _digest(part)
    remedy = f"the file was deleted; delete {record.path} to accept the server's new version"
    try:
        _check_digest(source, record, name, digest, source.url(name), remedy)
    except FetchError:
        part.unlink()
        raise
    os.replace(part, source.folder / name)
    _remember(record, name, digest)


def _digest(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check_digest(source: _Source, record: _Record, name: str, digest: str, place: str, remedy: str) -> None:
    demanded, recorded = source.demanded.get(name, digest), record.sha256.get(name, digest)
    if digest != demanded:
        raise FetchError(f"{place}: SHA-256 is {digest}; expected the required digest {demanded}")
    if digest != recorded:
        raise FetchError(f"{place}: SHA-256 is {digest}; expected the recorded digest {recorded}; {remedy}")


def _remember(record: _Record, name: str, digest: str) -> None:
    if name not in record.sha256:
        record.sha256[name] = digest
        record.write()


def _fill_part(source: _Source, name: str, part: Path) -> bool:
    """Complete a partial file, with retries after interruptions; return False if there is no such file."""
    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            logger.info("%s: %s; retrying", source.url(name), reason)
            time.sleep(RETRY_PAUSE * 2 ** (attempt - 1))
        try:
            return _request_rest(source, name, part)
        except _InterruptedTransferError as error:
            reason = str(error)
    raise _unreachable(source, name, reason)


def _unreachable(source: _Source, name: str, reason: str) -> FetchError:
    resume = (
        "call again to resume the download, " if _resuming_headers(source.folder / f"{name}.part") else ""
    )
    remedy = f"check the connection, {resume}or save the file as {source.folder / name} yourself"
    return FetchError(f"{source.url(name)}: {reason}; {remedy}{suggest_names(source.repository)}")


def _request_rest(source: _Source, name: str, part: Path) -> bool:
    """Request the missing rest of a partial file and append it; return False if there is no such file."""
    url = source.url(name)
    headers = {"User-Agent": f"treewright/{__version__}", **_resuming_headers(part)}
    logger.info("fetching %s", url)
    try:
        opener = build_opener(_SafeRedirects)
        response = opener.open(Request(url, headers=headers), timeout=source.timeout)
    except HTTPError as error:
        with error:
            return _handle_status(source, name, part, error)
    except (OSError, HTTPException) as error:
        raise _unreachable(source, name, _reason(error)) from None
    with response:
        _receive(source, name, part, response)
    return True


class _SafeRedirects(HTTPRedirectHandler):
    """Follows redirects only within the same scheme, or from http to https."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme not in ("https", req.type):
            raise HTTPError(req.full_url, code, f"redirect to {newurl} refused", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _resuming_headers(part: Path) -> dict[str, str]:
    """Return headers that request the rest of `part`, or the whole file if it has changed on the server."""
    size = part.stat().st_size if part.exists() else 0
    tag = _tag_path(part).read_text("utf-8", "replace") if size and _tag_path(part).exists() else ""
    # A weak ETag does not guarantee the same bytes; without a strong one, restart the download.
    return {"Range": f"bytes={size}-", "If-Range": tag} if STRONG_TAG.fullmatch(tag) else {}


def _tag_path(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def _handle_status(source: _Source, name: str, part: Path, error: HTTPError) -> bool:
    """Return False if the file does not exist; raise an error for a temporary or a permanent failure."""
    reason = f"HTTP {error.code} {error.reason}"
    if error.code in ABSENT_STATUSES:
        return False
    if error.code == 416:
        part.unlink(missing_ok=True)  # it is not a prefix of the file
    elif error.code not in TRANSIENT_STATUSES:
        raise _unreachable(source, name, reason) from None
    raise _InterruptedTransferError(reason)


def _receive(source: _Source, name: str, part: Path, response: HTTPResponse) -> None:
    """Append a response to `part`, or replace it if the server sends the whole file."""
    if response.status not in (200, 206) or response.headers.get_content_type() == "text/html":
        found = f"HTTP {response.status} with {response.headers.get_content_type()}"
        raise FetchError(f"{source.url(name)}: {found}; expected a CoNLL-U file; check {named('base_url')}")
    done, total = _extent(part, response)
    with _open_part(part, "ab" if done else "wb") as stream:
        if not done:  # only now, since a new ETag must never be beside old bytes
            _tag_path(part).write_text(response.headers.get("ETag", ""), "utf-8")
        with task(f"fetching {name}", total=total, unit="bytes", before=done) as counted:
            for data in _chunks(response):
                stream.write(data)
                done += len(data)
                counted.advance(len(data))
    if total is not None and done < total:
        raise _InterruptedTransferError(f"the connection was lost after {done} of {total} bytes")


def _extent(part: Path, response: HTTPResponse) -> tuple[int, int | None]:
    """Return the offset of a response in the file, and the length of the file if the server reports it."""
    if response.status == 200:
        length = response.headers.get("Content-Length", "")
        return 0, int(length) if length.isdecimal() else None
    matched = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    begin = part.stat().st_size if part.exists() else 0
    if not matched or int(matched[1]) != begin:
        part.unlink(missing_ok=True)
        raise _InterruptedTransferError("the server sent a different range from the one requested")
    return begin, None if matched[2] == "*" else int(matched[2])


def _chunks(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the body as it arrives, so that an interruption loses none of it."""
    while True:
        try:
            data = response.read1(CHUNK_SIZE)
        except (OSError, HTTPException) as error:
            raise _InterruptedTransferError(_reason(error)) from None
        if not data:
            return
        yield data


@contextmanager
def _open_part(part: Path, mode: str) -> Iterator[BinaryIO]:
    """Open a file for writing and sync it at the end; add its name to errors."""
    try:
        with cast(BinaryIO, open(part, mode)) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        error.filename = error.filename or os.fspath(part)
        raise


def _reason(error: BaseException) -> str:
    """Describe a connection error briefly."""
    if isinstance(error, URLError) and isinstance(error.reason, BaseException):
        error = error.reason
    if isinstance(error, TimeoutError):
        return "timed out"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
