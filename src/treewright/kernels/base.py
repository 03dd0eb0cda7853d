"""What kernels have in common."""

import numpy as np
import numpy.typing as npt

from treewright.errors import InputError

FloatArray = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def check_rows(rows: npt.ArrayLike, n_rows: int) -> Integers:
    """Return numbers of rows as an array, if all of them are there."""
    numbers = np.asarray(rows, dtype=np.int64)
    outside = numbers[(numbers < 0) | (numbers >= n_rows)]
    if outside.size:
        raise InputError(f"there is no row {outside.flat[0]}; expected rows from 0 to {n_rows - 1}")
    return numbers
