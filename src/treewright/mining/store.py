"""Large arrays, in memory while there is room and on disk beyond it."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt


class OnDisk(NamedTuple):
    """Where in a file an array is."""

    path: Path
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


Kept: TypeAlias = npt.NDArray[Any] | OnDisk


class Store:
    """Keeps arrays; when they take more than a limit, the further ones go to a file.

    The file is in the system's folder for temporary ones ($TMPDIR) and goes with the store.

    Parameters
    ----------
    limit : int, optional
        Bytes that may be in memory; without it, any number.

    Attributes
    ----------
    n_bytes : int
        What is in memory.
    n_bytes_on_disk : int
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.n_bytes = 0
        self.n_bytes_on_disk = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def keep(self, array: npt.NDArray[Any]) -> Kept:
        """Return the array, or where it is on disk; `load` gives it back."""
        if self.limit is None or self.n_bytes + array.nbytes <= self.limit:
            self.n_bytes += array.nbytes
            return array
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="treewright-", ignore_cleanup_errors=True)
        kept = OnDisk(Path(self._folder.name, "arrays"), self.n_bytes_on_disk, array.dtype, array.shape)
        with kept.path.open("ab") as stream:
            array.tofile(stream)
        self.n_bytes_on_disk += array.nbytes
        return kept

    def close(self) -> None:
        """Forget all arrays."""
        if self._folder is not None:
            self._folder.cleanup()
        self._folder = None
        self.n_bytes = self.n_bytes_on_disk = 0


def load(kept: Kept) -> npt.NDArray[Any]:
    """Return an array that a store keeps."""
    if not isinstance(kept, OnDisk):
        return kept
    count = int(np.prod(kept.shape))
    return np.fromfile(kept.path, kept.dtype, count, offset=kept.offset).reshape(kept.shape)
