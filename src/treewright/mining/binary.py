"""Validation of binary matrices."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright.errors import InputError

REMEDY = "binarise numbers and one-hot encode categories (TableBinarizer)"


def as_binary(rows: Any) -> csr_matrix:  # noqa: ANN401
    """Return a binary matrix in CSR format; raise an error for values other than 0 and 1.

    The arrays of a CSR matrix are copied only if their type must change; values are stored as int8.
    """
    if not hasattr(rows, "tocsr"):
        try:
            dense = np.asarray(rows)
        except ValueError as error:  # lists of different lengths
            raise InputError("X has rows of different lengths; expected a table of 0 and 1") from error
        if dense.ndim != 2:
            found = f"a {dense.ndim}-dimensional array of {dense.dtype}"
            raise InputError(f"X is {found}; expected 2 dimensions, samples and features")
        return _dense_as_binary(dense)
    matrix = csr_matrix(rows)
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = csr_matrix(matrix, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    wrong = np.flatnonzero(matrix.data != 1)
    if len(wrong):
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        raise _not_binary(matrix.data[wrong[0]], row, int(matrix.indices[wrong[0]]))
    indices, indptr = _as_type(matrix.indices, np.int32), _as_type(matrix.indptr, matrix.indptr.dtype)
    return csr_matrix((_as_type(matrix.data, np.int8), indices, indptr), matrix.shape)


def _as_type(array: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the array as this type, copied if its type differs or if it is read-only."""
    return array.astype(dtype, copy=not array.flags.writeable)


def _dense_as_binary(rows: npt.NDArray[Any]) -> csr_matrix:
    try:
        is_one = rows == 1
        is_wrong = ~(is_one | (rows == 0))
    except TypeError as error:  # NA is neither equal nor unequal
        raise InputError(f"X has missing values; expected only 0 and 1: {REMEDY}") from error
    if is_wrong.any():
        row, column = np.argwhere(is_wrong)[0].tolist()
        raise _not_binary(rows[row, column], row, column)
    return csr_matrix(is_one.astype(np.int8))


def _not_binary(value: Any, row: int, column: int) -> InputError:  # noqa: ANN401
    text = repr(value.item() if hasattr(value, "item") else value)
    return InputError(f"X has {text} in row {row}, column {column}; expected only 0 and 1: {REMEDY}")
