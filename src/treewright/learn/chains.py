"""Columns of binary matrices, and chains of columns that contain each other."""

import numpy as np
from scipy.sparse import csr_matrix

from treewright.native.learn.columns import BinaryColumns, ColumnChains, compare_neighbours, fill_chains


def columns_of(rows: csr_matrix) -> BinaryColumns:
    """Return the columns of a binary matrix."""
    matrix = rows.tocsc()
    matrix.sort_indices()
    return BinaryColumns(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))


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
