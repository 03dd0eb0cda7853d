"""Large arrays, in memory up to a limit and on disk beyond it."""

import math
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from treewright.data.files import naming
from treewright.data.temporary import temporary_file


class OnDisk(NamedTuple):
    """The position of an array in a file."""

    path: Path
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        """Number of bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


Kept: TypeAlias = npt.NDArray[Any] | OnDisk


class ArrayStore:
    """Stores arrays in memory up to a limit, and in a file beyond it.

    The file is in the system's folder for temporary files ($TMPDIR) and is deleted with the store; a file
    left behind by a killed process is deleted when the next file is created.

    Parameters
    ----------
    limit : int, optional
        Maximum number of bytes in memory; no limit by default.

    Attributes
    ----------
    n_bytes : int
        Bytes in memory.
    n_bytes_on_disk : int
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.n_bytes = 0
        self.n_bytes_on_disk = 0
        self._path: Path | None = None
        self._file = ExitStack()

    def keep(self, array: npt.NDArray[Any]) -> Kept:
        """Store an array; return it, or its position on disk. `load` returns the array."""
        if self.limit is None or self.n_bytes + array.nbytes <= self.limit:
            self.n_bytes += array.nbytes
            return array
        self._path = self._path or self._make_file()
        kept = OnDisk(self._path, self.n_bytes_on_disk, array.dtype, array.shape)
        with naming(kept.path), kept.path.open("ab") as stream:
            stream.write(np.ascontiguousarray(array).data)
        self.n_bytes_on_disk += array.nbytes
        return kept

    def _make_file(self) -> Path:
        place = Path(tempfile.gettempdir(), "mining")
        descriptor, name = self._file.enter_context(temporary_file(place))
        self._file.callback(Path(name).unlink, missing_ok=True)
        self._file.callback(os.close, descriptor)
        return Path(name)

    def close(self) -> None:
        """Delete all arrays."""
        self._file.close()
        self._path = None
        self.n_bytes = self.n_bytes_on_disk = 0


def load(kept: Kept, span: tuple[int, int] | None = None) -> npt.NDArray[Any]:
    """Return a stored array, or a range of its rows."""
    begin, end = span or (0, kept.shape[0])
    if not isinstance(kept, OnDisk):
        return kept[begin:end]
    width = math.prod(kept.shape[1:])
    offset = kept.offset + begin * width * kept.dtype.itemsize
    flat = np.fromfile(kept.path, kept.dtype, (end - begin) * width, offset=offset)
    return flat.reshape(end - begin, *kept.shape[1:])
