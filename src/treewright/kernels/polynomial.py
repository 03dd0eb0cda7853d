"""The polynomial kernel over sparse binary rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse, vstack

from treewright._validate import check_choice, check_integer
from treewright.errors import InputError
from treewright.kernels.base import FloatArray, check_rows
from treewright.native.overlaps import WIDTH, BinaryRows, count_overlaps


class PolynomialKernel:
    """(a . b + 1) to the power of `degree`: the space of all conjunctions of up to so many columns.

    Parameters
    ----------
    degree : int
    normalize : bool
        Divide by the geometric mean of the values of each row with itself.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from treewright.kernels.polynomial import PolynomialKernel
    >>> PolynomialKernel(2, normalize=False)(csr_matrix([[1, 1, 0], [0, 1, 1]])).tolist()
    [[9.0, 4.0], [4.0, 9.0]]
    """

    def __init__(self, degree: int, normalize: bool = True) -> None:
        self.degree = degree
        self.normalize = normalize

    def __call__(self, rows_a: Any, rows_b: Any = None) -> FloatArray:  # noqa: ANN401
        """Return the values of all pairs.

        Parameters
        ----------
        rows_a, rows_b : sparse matrix of 0 and 1
            With the same columns. Without the second, the first with itself.

        Returns
        -------
        ndarray of float, (n_rows_a, n_rows_b)
        """
        if rows_b is None:
            packed = self.pack(rows_a)
            return packed.block(np.arange(len(packed)), np.arange(len(packed)))
        if rows_a.shape[1] != rows_b.shape[1]:
            raise InputError(
                f"rows_b has {rows_b.shape[1]} columns; expected {rows_a.shape[1]}, as rows_a has"
            )
        numbers = np.arange(rows_a.shape[0] + rows_b.shape[0])
        packed = self.pack(vstack([rows_a, rows_b], format="csr"))
        return packed.block(numbers[: rows_a.shape[0]], numbers[rows_a.shape[0] :])

    def pack(self, rows: Any) -> "PackedRows":  # noqa: ANN401
        """Prepare the rows of a sparse matrix of 0 and 1, of which many pairs are to be evaluated."""
        check_integer("degree", self.degree, minimum=1)
        check_choice("normalize", self.normalize, (False, True))
        if not issparse(rows):
            raise InputError(f"rows is {type(rows).__name__}; expected a sparse matrix")
        matrix = csr_matrix(rows, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        if (matrix.data != 1).any():
            value = matrix.data[matrix.data != 1][0]
            raise InputError(f"rows has the value {value:g}; expected 0 and 1 only")
        return PackedRows(matrix, degree=self.degree, normalize=self.normalize)


class PackedRows:
    """Rows, by number, with what the evaluation of their kernel needs. Made by `PolynomialKernel.pack`."""

    def __init__(self, matrix: csr_matrix, *, degree: int, normalize: bool) -> None:
        self._rows = BinaryRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))
        self._n_columns = matrix.shape[1]
        self._degree = degree
        self._normalize = normalize

    def __len__(self) -> int:
        return len(self._rows.first) - 1

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        """Return the values of all pairs of rows, given by their numbers.

        Fastest where rows of `rows_a` that have much in common follow each other.

        Parameters
        ----------
        rows_a, rows_b : array of int

        Returns
        -------
        ndarray of float, (len(rows_a), len(rows_b))
        """
        rows_a, rows_b = check_rows(rows_a, len(self)), check_rows(rows_b, len(self))
        sizes = np.diff(self._rows.first)
        counts = np.empty((len(rows_a), len(rows_b)))
        slots = np.zeros(self._n_columns, dtype=np.int32)
        members = np.empty((1 + WIDTH * sizes[rows_a].max(initial=0), WIDTH), dtype=np.int32)
        count_overlaps(self._rows, rows_a, rows_b, slots, members, counts)
        counts += 1
        if self._normalize:
            counts /= np.sqrt((sizes[rows_a, None] + 1) * (sizes[rows_b] + 1))
        return np.power(counts, self._degree, out=counts)
