"""What is found in sentences, as it is written: to a file that grows by whole sentences and can go on."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

from treewright._version import __version__
from treewright.checkpoint import Checkpoint
from treewright.data.files import naming, open_target, take_place, track_writing
from treewright.errors import InputError
from treewright.persist import State

Item = TypeVar("Item")
Describe: TypeAlias = Callable[[int, Item], str]
"""Returns the text of what is found in a sentence, whose number, from 1, is given first."""

NOTE, OUTPUT = "note", "output"
"""Steps of a checkpoint: how far the file has grown, and the file."""


class Unfinished:
    """A file of results that is not whole yet.

    Parameters
    ----------
    checkpoint : path
        A folder for it. If it exists, work goes on from it.
    target : str
        Where the file goes in the end.
    identify : callable
        Returns a name for all that the results depend on, as `name_work` does; called when it is needed.

    Attributes
    ----------
    n_done : int
        Sentences whose results are there.
    """

    def __init__(self, checkpoint: str | os.PathLike[str], target: str, identify: Callable[[], str]) -> None:
        self._kept, self._target, self._identify = Checkpoint(checkpoint, ""), target, identify
        self.n_done = self._n_bytes = 0
        if self._kept.folder.exists():
            self._kept.identity = identify()
            state = self._kept.load(NOTE)
            if state is not None and self.path.exists():
                self.n_done, self._n_bytes = state.values["sentences"], state.values["bytes"]

    @property
    def path(self) -> Path:
        """The file as it is now."""
        return self._kept.path(OUTPUT)

    def skip(self, sentences: Iterable[Item]) -> Iterator[Item]:
        """Leave out the sentences that are done."""
        return islice(sentences, self.n_done, None)

    def write(self, items: Iterable[Item], describe: Describe[Item]) -> None:
        """Write what is found in further sentences, and let the file take its place."""
        with naming(self._target), self._kept.of_use(NOTE):
            with self._open() as stream:
                stream.truncate(self._n_bytes)
                stream.seek(self._n_bytes)
                for number, item in enumerate(track_writing(items, self._target), start=self.n_done + 1):
                    stream.write(_encode(describe(number, item)))
                    if self._kept.is_due:
                        self._note(stream, number)
                _sync(stream)
            take_place(self.path, Path(self._target))
        Checkpoint.remove(self._kept.folder)

    def _open(self) -> BinaryIO:
        try:
            self.path.touch()
        except OSError as error:
            if not self._kept.folder.exists():
                error.filename = self._target  # the user knows nothing of a folder that could not be made
            raise
        return open(self.path, "r+b")

    def _note(self, stream: BinaryIO, number: int) -> None:
        _sync(stream)
        self._kept.identity = self._kept.identity or self._identify()
        self._kept.save(NOTE, State("Note", {"sentences": number, "bytes": stream.tell()}))


def _sync(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        found = error.object[error.start]
        raise InputError(f"text has {found!r} in it; expected characters that UTF-8 can hold") from error


def write_results(
    items: Iterable[Item], target: str, describe: Describe[Item], unfinished: Unfinished | None
) -> None:
    """Write what is found in sentences, to a file that can go on if there is one."""
    if unfinished is not None:
        unfinished.write(items, describe)
        return
    with open_target(target) as stream:
        for number, item in enumerate(track_writing(items, target), start=1):
            stream.write(describe(number, item))


def name_work(model: str, options: Iterable[object], *sources: str | None) -> str:
    """Return a name for a model, options and files, another one after any change."""
    digest = hashlib.sha256(repr([__version__, model, *options]).encode())
    for source in sources:
        if source is None:
            digest.update(b"none")
        else:
            with open(source, "rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
