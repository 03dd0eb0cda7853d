"""Columns of binary matrices, and chains of columns that contain each other."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray, IntArray
from treewright.native.learn.columns import BinaryColumns, ColumnChains, compare_neighbours, fill_chains


def columns_of(rows: csr_matrix) -> BinaryColumns:
    """Return the columns of a binary matrix."""
    matrix = rows.tocsc()
    matrix.sort_indices()
    return BinaryColumns(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))


def distinct_columns(rows: csr_matrix, *, complements: bool) -> IntArray:
    """Return the indices of the columns that are not duplicates or complements of other columns.

    The first of several equal columns is kept. Of two complements, the one with fewer non-zero entries is
    kept.

    Parameters
    ----------
    rows : csr_matrix
        Binary.
    complements : bool
        Whether to leave out complements as well as duplicates.
    """
    marks = np.random.default_rng(0).integers(0, 1 << 64, rows.shape[0], dtype=np.uint64)
    columns = columns_of(rows)
    before = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(marks[columns.rows], dtype=np.uint64)])
    sums = np.diff(before[columns.indptr])  # modulo 2^64: equal for equal columns
    opposite = marks.sum(dtype=np.uint64) - sums
    sizes = np.diff(columns.indptr)
    kept: dict[int, int] = {}
    for column in np.argsort(sizes, kind="stable").tolist():
        own = int(sums[column])
        if own not in kept and not (complements and int(opposite[column]) in kept):
            kept[own] = column
    return np.array(sorted(kept.values()), dtype=np.int32)


def chain_columns(columns: BinaryColumns) -> ColumnChains:
    """Return the chains of neighbouring columns each of which contains the one before, or the one after."""
    n_columns = len(columns.indptr) - 1
    nesting = np.zeros(max(0, n_columns - 1), dtype=np.int64)
    compare_neighbours(columns, nesting)
    members: list[int] = []
    ends = [0]
    links = [*nesting.tolist(), 0]
    while len(members) < n_columns:
        first = last = len(members)
        while links[last] and links[last] == links[first]:
            last += 1
        members += range(last, first - 1, -1) if links[first] > 0 else range(first, last + 1)
        ends.append(len(members))
    chains = ColumnChains(
        np.array(ends, dtype=np.int64),
        np.array(members, dtype=np.int64),
        np.zeros(len(ends), dtype=np.int64),
        np.zeros(n_columns, dtype=np.int64),
        np.empty(len(columns.rows), dtype=np.int32),
    )
    n_rows = fill_chains(columns, chains)
    return chains._replace(rows=chains.rows[:n_rows].copy())


def thin_chains(
    chains: ColumnChains, jumps: FloatArray, n_even: int, n_steepest: int
) -> npt.NDArray[np.bool_]:
    """Return which columns remain if each chain keeps some of its columns.

    Parameters
    ----------
    chains : ColumnChains
    jumps : ndarray of float, (n_columns,)
        The size of the weight of each column.
    n_even : int
        Number of columns that are kept at equal distances.
    n_steepest : int
        Number of further columns that are kept, those with the largest weights.
    """
    is_kept = np.ones(len(chains.members), dtype=np.bool_)
    for first, last in pairwise(chains.members_ptr.tolist()):
        if last - first > n_even + n_steepest:
            members = chains.members[first:last]
            even = ((np.arange(n_even) + 0.5) * ((last - first) / n_even)).astype(np.int64)
            others = np.delete(members, even)
            is_kept[others[np.argsort(-jumps[others], kind="stable")[n_steepest:]]] = False
    return is_kept
