"""What is kept of an unfinished training, so that it can go on."""

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.files import naming, take_place
from treewright.data.temporary import remove_stale
from treewright.errors import FormatError, InputError, TreewrightError
from treewright.model import State, load_state, save_state
from treewright.scale import check_wanted

SUFFIX = ".step"
SECONDS_BETWEEN = 1.0
"""From one note of how far a file has grown to the next, at the least."""


class Checkpoint:
    """A folder with what a training has found so far.

    Parameters
    ----------
    folder : path
        Made when something is saved.
    identity : str
        A name for the data and options of the training; what another has left is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], identity: str) -> None:
        self.folder = Path(folder)
        self.identity = identity
        self._saved = time.monotonic()

    def save(self, name: str, state: State) -> None:
        """Write a state under a name.

        Raises
        ------
        AbandonedError
            In a thread whose work nobody wants any more: another may have begun it anew.
        """
        check_wanted()
        values = {"identity": self.identity, "values": state.values}
        kept = State(state.kind, values, state.arrays, state.parts)
        try:
            try:
                self._write(name, kept)
            except FileNotFoundError:  # another training with this folder may have removed it meanwhile
                self._write(name, kept)
        except OSError:
            with suppress(OSError):
                self.folder.rmdir()  # if this was to be the first step
            raise
        self._saved = time.monotonic()

    def _write(self, name: str, state: State) -> None:
        self.folder.mkdir(exist_ok=True, parents=True)
        save_state(state, self.path(name))

    @staticmethod
    def remove(folder: str | os.PathLike[str]) -> None:
        """Delete what trainings have left in a folder and those in it, and all that are empty then.

        What another training is writing at the moment stays.
        """
        folder = Path(folder)
        remove_stale(folder)
        for inner in folder.glob("*/"):
            Checkpoint.remove(inner)
        for path in folder.glob("*" + SUFFIX):
            path.unlink(missing_ok=True)
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()

    def load(self, name: str) -> State | None:
        """Read the state of this name, if there is one."""
        path = self.path(name)
        if not path.exists():
            return None
        try:
            state = load_state(path)
        except FormatError as error:
            raise InputError(f"{error}; delete {path} to do that step again") from error
        if state.values["identity"] != self.identity:
            raise InputError(
                f"{self.folder} is of a training with other data or options; give those, or delete it"
            )
        return State(state.kind, state.values["values"], state.arrays, state.parts)

    @property
    def is_due(self) -> bool:
        """Whether the last save was more than a moment ago, where there are many."""
        return time.monotonic() - self._saved >= SECONDS_BETWEEN

    @contextmanager
    def growing(self, name: str, note: str, target: Path) -> Iterator[BinaryIO]:
        """Open a file that grows in the folder until it is whole and takes the place of `target`.

        All that is kept is removed if one cannot go on from it: after an error in the input, which must
        change then, and before there is a note of how far the file has grown.
        """
        unfinished = self.path(name)
        try:
            with naming(target):
                try:
                    self.folder.mkdir(exist_ok=True)
                    unfinished.touch()
                except OSError as error:
                    if not self.folder.exists():
                        error.filename = str(target)  # the user knows nothing of the folder
                    raise
                with open(unfinished, "r+b") as stream:
                    yield stream
                    stream.flush()
                    os.fsync(stream.fileno())
                take_place(unfinished, target)
        except BaseException as error:
            if isinstance(error, TreewrightError) or not self.path(note).exists():
                with suppress(OSError):  # the first error says more than that of cleaning up
                    Checkpoint.remove(self.folder)
            raise

    def path(self, name: str) -> Path:
        """Return the file of a step."""
        return self.folder / (name + SUFFIX)


def fingerprint(options: Sequence[object], *treebanks: Sequence[DepTree] | Sequence[ConstTree]) -> str:
    """Return a name for the options and the data of a training, another one after any change."""
    digest = hashlib.sha256(repr(options).encode())
    for trees in treebanks:
        for tree in trees:
            digest.update(_describe(tree).encode())
        digest.update(b"end")
    return digest.hexdigest()


def _describe(tree: DepTree | ConstTree) -> str:
    if isinstance(tree, ConstTree):
        return str(tree)
    columns = (tree.words, tree.lemmas, tree.upos, tree.xpos, tree.feats, tree.deprels)
    return repr((columns, tree.heads.tolist()))
