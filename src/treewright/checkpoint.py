"""What is kept of an unfinished training, so that it can go on."""

import os
from pathlib import Path

from treewright.data.temporary import remove_stale
from treewright.errors import FormatError, InputError
from treewright.persist import State, load_state, save_state

SUFFIX = ".step"


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

    def save(self, name: str, state: State) -> None:
        """Write a state under a name."""
        self.folder.mkdir(exist_ok=True, parents=True)
        values = {"identity": self.identity, "values": state.values}
        save_state(State(state.kind, values, state.arrays, state.parts), self._path(name))

    @staticmethod
    def remove(folder: str | os.PathLike[str]) -> None:
        """Delete what trainings have left in a folder, and the folder if nothing else is in it."""
        folder = Path(folder)
        remove_stale(folder)
        for path in folder.glob("*" + SUFFIX):
            path.unlink()
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()

    def load(self, name: str) -> State | None:
        """Read the state of this name, if there is one."""
        path = self._path(name)
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

    def _path(self, name: str) -> Path:
        return self.folder / (name + SUFFIX)
