"""Large arrays, in memory while there is room and on disk beyond it."""

import tempfile
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = TypeVar("Array", bound=npt.NDArray[Any])


class Store:
    """Keeps arrays; when they take more than a limit, the further ones are files that look like arrays.

    The files are in the system's folder for temporary ones ($TMPDIR) and go with the store.

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
        self._n_files = 0

    def keep(self, array: Array) -> Array:
        """Return the array, or one on disk with the same values."""
        if self.limit is None or self.n_bytes + array.nbytes <= self.limit or not array.size:
            self.n_bytes += array.nbytes
            return array
        self.n_bytes_on_disk += array.nbytes
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="treewright-", ignore_cleanup_errors=True)
        self._n_files += 1
        path = Path(self._folder.name, str(self._n_files))
        array.tofile(path)
        mapped = np.memmap(path, dtype=array.dtype, mode="r+", shape=array.shape)
        return np.asarray(mapped)  # type: ignore[return-value]

    def close(self) -> None:
        """Forget all arrays; those on disk must not be used any more."""
        if self._folder is not None:
            self._folder.cleanup()
        self.__init__(self.limit)  # type: ignore[misc]
