"""Checkpoints, from which interrupted work can be resumed."""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.files import check_target, name_target, take_place
from treewright.data.temporary import remove_stale
from treewright.errors import TROUBLESHOOTING, FormatError, InputError, TreewrightError
from treewright.model import State, load_state, save_state
from treewright.scale import check_wanted

SUFFIX = ".step"
HELP = f"{TROUBLESHOOTING}#checkpoints"
SECONDS_BETWEEN = 1.0
"""Minimum seconds between two checkpoints of a growing file."""


class Checkpoint:
    """A folder with the finished steps of a training run.

    Parameters
    ----------
    folder : path
        The folder; created by the first `save`.
    identity : str
        Fingerprint of the data and options. A checkpoint with another fingerprint is rejected.
    """

    def __init__(self, folder: str | os.PathLike[str], identity: str) -> None:
        check_target("checkpoint", folder)
        self.folder = Path(folder)
        if self.folder.is_file():
            raise InputError(f"checkpoint {self.folder} is a file; expected the name of a folder")
        self.identity = identity
        self._saved = time.monotonic()

    def save(self, name: str, state: State) -> None:
        """Save the state of a step.

        Raises
        ------
        AbandonedError
            If the work of this thread was cancelled; another thread may have started the same step again.
        """
        check_wanted()
        values = {"identity": self.identity, "values": state.values}
        kept = State(state.kind, values, state.arrays, state.parts)
        try:
            try:
                self._write(name, kept)
            except FileNotFoundError:  # another run with this folder may have removed it
                self._write(name, kept)
        except OSError:
            with suppress(OSError):
                self.folder.rmdir()  # if this was the first step
            raise
        self._saved = time.monotonic()

    def _write(self, name: str, state: State) -> None:
        self.folder.mkdir(exist_ok=True, parents=True)
        save_state(state, self.path(name))

    @staticmethod
    def remove(folder: str | os.PathLike[str]) -> None:
        """Delete the checkpoints in a folder and its subfolders, and the folders if they are then empty.

        Files that another run is writing are kept.
        """
        folder = Path(folder)
        for inner in folder.glob("*/"):
            Checkpoint.remove(inner)
        for path in folder.glob("*" + SUFFIX):
            path.unlink(missing_ok=True)
        if any(folder.glob("*")):
            remove_stale(folder)
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()

    def load(self, name: str) -> State | None:
        """Load the state of a step; None if it was not saved."""
        path = self.path(name)
        if not path.exists():
            return None
        try:
            state = load_state(path)
        except FormatError as error:
            raise InputError(f"{error}; delete {path} to repeat that step", help=HELP) from error
        if state.values["identity"] != self.identity:
            raise InputError(
                f"{self.folder} is a checkpoint of a run with other data or options; "
                "use the data and options of that run, or delete the folder",
                help=HELP,
            )
        return State(state.kind, state.values["values"], state.arrays, state.parts)

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last save."""
        return time.monotonic() - self._saved >= SECONDS_BETWEEN

    @contextmanager
    def growing(self, name: str, note: str, target: Path) -> Iterator[BinaryIO]:
        """Open a file in the folder for appending; at the end, it replaces `target`.

        After an error, the checkpoint is removed if work cannot be resumed from it: if the input is wrong and
        must be corrected, or if no progress was saved yet.
        """
        unfinished = self.path(name)
        try:
            try:
                self.folder.mkdir(exist_ok=True)
                unfinished.touch()
            except OSError as error:
                if not self.folder.exists():
                    error.filename = str(target)  # the user does not know the folder
                raise
            with open(unfinished, "r+b") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            take_place(unfinished, target)
        except BaseException as error:
            if isinstance(error, OSError):
                name_target(error, target)
            if isinstance(error, TreewrightError) or not self.path(note).exists():
                with suppress(OSError):  # the first error matters more than one of the cleanup
                    Checkpoint.remove(self.folder)
            raise

    def path(self, name: str) -> Path:
        """Return the file of a step."""
        return self.folder / (name + SUFFIX)


def fingerprint(options: Sequence[object], *treebanks: Sequence[DepTree] | Sequence[ConstTree]) -> str:
    """Return a fingerprint of the options and data of a training run, which changes with any of them."""
    digest = hashlib.sha256(repr(options).encode())
    for trees in treebanks:
        for tree in trees:
            digest.update(_describe(tree).encode())
        digest.update(b"end")
    return digest.hexdigest()


def digest_files(names: Iterable[str | None]) -> list[str]:
    """Return a digest of the contents of each file, and of each file of a folder; None is left out."""
    paths = [Path(name) for name in names if name is not None]
    files = [each for path in paths for each in (sorted(path.iterdir()) if path.is_dir() else [path])]
    digests = []
    for file in files:
        if file.is_file():
            with file.open("rb") as stream:
                digests.append(hashlib.file_digest(stream, "sha256").hexdigest())
    return digests


def _describe(tree: DepTree | ConstTree) -> str:
    if isinstance(tree, ConstTree):
        return str(tree)
    columns = (tree.words, tree.lemmas, tree.upos, tree.xpos, tree.feats, tree.deprels)
    return repr((columns, tree.heads.tolist()))
