"""The polynomial kernel for sparse binary rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse, vstack

from treewright._typing import FloatArray
from treewright._validate import check_choice, check_integer
from treewright.errors import InputError
from treewright.kernels.base import Kernel, PackedExamples, check_rows
from treewright.kernels.inputs import as_matrix
from treewright.native.kernels.overlaps import WIDTH, BinaryRows, count_overlaps


class PolynomialKernel(Kernel):
    """The polynomial kernel (a . b + 1)^degree; its features are conjunctions of up to `degree` columns.

    Parameters
    ----------
    degree : int
        Maximum number of columns in a conjunction.
    normalize : bool
        Normalise so that K(x, x) = 1.

    See Also
    --------
    PolynomialSpace : The same conjunctions as mined features.
    VectorKernel : Kernels for any vectors.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from treewright.kernels.polynomial import PolynomialKernel
    >>> PolynomialKernel(2, normalize=False)(csr_matrix([[1, 1, 0], [0, 1, 1]])).tolist()
    [[9.0, 4.0], [4.0, 9.0]]
    """

    compares_vectors = True

    def __init__(self, degree: int, normalize: bool = True) -> None:
        self.degree = degree
        self.normalize = normalize

    def pack(self, rows: Any) -> "PackedRows":  # noqa: ANN401
        """Pack rows for the evaluation of many pairs.

        Parameters
        ----------
        rows : sparse matrix of 0 and 1, or sequence of such matrices of one row each
            The examples as rows of binary features.
        """
        check_integer("degree", self.degree, minimum=1)
        check_choice("normalize", self.normalize, (False, True))
        return PackedRows(_binary_matrix(rows), degree=self.degree, normalize=self.normalize)


class PackedRows(PackedExamples):
    """Rows packed for evaluation and referred to by index. Created by `PolynomialKernel.pack`."""

    def __init__(self, matrix: csr_matrix, *, degree: int, normalize: bool) -> None:
        self._matrix = matrix
        self._rows = BinaryRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))
        self._degree = degree
        self._normalize = normalize

    def __len__(self) -> int:
        return len(self._rows.indptr) - 1

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        """Return the kernel values of all pairs of the given rows.

        It is fastest if similar rows are adjacent in `rows_a`.

        Parameters
        ----------
        rows_a, rows_b : array of int
            Indices of rows, in any order.

        Returns
        -------
        ndarray of float, (len(rows_a), len(rows_b))
            The kernel value of each pair.
        """
        rows_a, rows_b = check_rows(rows_a, len(self)), check_rows(rows_b, len(self))
        sizes = np.diff(self._rows.indptr)
        counts = np.empty((len(rows_a), len(rows_b)))
        slots = np.zeros(self._matrix.shape[1], dtype=np.int32)
        members = np.empty((1 + WIDTH * sizes[rows_a].max(initial=0), WIDTH), dtype=np.int32)
        count_overlaps(self._rows, rows_a, rows_b, slots, members, counts)
        counts += 1
        if self._normalize:
            counts /= np.sqrt((sizes[rows_a, None] + 1) * (sizes[rows_b] + 1))
        return np.power(counts, self._degree, out=counts)

    def compare(self, examples: Any) -> FloatArray:  # noqa: ANN401
        """Return the kernel values of other rows with the packed ones, (n_rows, len(self))."""
        matrix = _binary_matrix(examples)
        if matrix.shape[1] != self._matrix.shape[1]:
            expected = f"{self._matrix.shape[1]}, like the packed rows"
            raise InputError(f"rows have {matrix.shape[1]} columns; expected {expected}")
        together = vstack([matrix, self._matrix], format="csr")
        packed = PackedRows(together, degree=self._degree, normalize=self._normalize)
        return packed.block(np.arange(matrix.shape[0]), np.arange(matrix.shape[0], together.shape[0]))

    def diagonal(self) -> FloatArray:
        """Return the kernel value of each row with itself."""
        if self._normalize:
            return np.ones(len(self))
        return np.power(np.diff(self._rows.indptr) + 1.0, self._degree)


def _binary_matrix(rows: Any) -> csr_matrix:  # noqa: ANN401
    """Return a copy of the rows as a sparse matrix that stores only ones."""
    if isinstance(rows, list | tuple) and rows and all(map(issparse, rows)):
        rows = as_matrix(rows)
    if not issparse(rows):
        raise InputError(f"rows is {type(rows).__name__}; expected a sparse matrix")
    matrix = csr_matrix(rows, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if (matrix.data != 1).any():
        value = matrix.data[matrix.data != 1][0]
        raise InputError(f"rows has the value {value:g}; expected only 0 and 1")
    return matrix
