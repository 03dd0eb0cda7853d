"""Single columns of the searched rows, and these rows with only their frequent columns.

Rows are read range by range, so that memory holds little more than one range and the result.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from treewright._typing import IntArray, Integers
from treewright.mining.space import Violations
from treewright.native.mining.conjunctions import ItemRows, Level, sort_rows

ENTRIES_AT_A_TIME = 1 << 17
"""Approximate number of entries that are read at a time."""
BYTES_TO_READ, BYTES_TO_COUNT = 64, 24
"""Temporary bytes per entry that is read, and per count."""
ENTRY_BYTES, ROW_BYTES = 4, 8
BYTES_TO_FIND = 64
"""Temporary bytes per occurrence, including the occurrence itself."""


class RowRange(NamedTuple):
    """A range of rows with items in ascending order, and the numbers of possible extensions.

    Attributes
    ----------
    begin : int
    lengths : ndarray of int, (n_rows,)
    items : ndarray of int32
        Items of all rows, row by row.
    n_met : ndarray of int, (n_items,)
        Number of entries after each item, summed over these rows.
    """

    begin: int
    lengths: Integers
    items: IntArray
    n_met: Integers


class Singles:
    """The columns of violating rows; columns with counts above a threshold become items, rare columns first.

    Parameters
    ----------
    rows : csr_matrix
    violations : Violations
    threshold : float

    Attributes
    ----------
    columns : ndarray of int32, (n_items,)
        The column of each item.
    counts : ndarray of int32, (n_items, n_counters)
    n_places : ndarray of int, (n_items,)
        Number of rows that contain each item.
    n_candidates, n_instances : int
        Number of columns that were counted, and number of their occurrences.
    """

    def __init__(self, rows: csr_matrix, violations: Violations, threshold: float) -> None:
        self._rows, self._violations = rows, violations
        self._ends = np.cumsum(np.diff(rows.indptr)[violations.rows], dtype=np.int64)
        self.n_instances = int(self._ends[-1]) if len(self._ends) else 0
        n_columns, n_counters = rows.shape[1], violations.n_counters
        flat = np.zeros(n_columns * n_counters, dtype=np.int32)
        # The time of summation grows with the number of counters, so with many of them more is read at a
        # time.
        for begin, some in self._read_ranges(max(ENTRIES_AT_A_TIME, len(flat))):
            lengths = np.diff(some.indptr)
            for counters in violations.counters[begin : begin + len(lengths)].T:
                keys = some.indices * np.int64(n_counters) + np.repeat(counters, lengths)
                flat += np.bincount(keys, minlength=len(flat))
        counts = flat.reshape(n_columns, n_counters)
        highest = counts.max(axis=1, initial=0)
        frequent = np.flatnonzero(highest > threshold)
        self.columns = frequent[np.argsort(counts[frequent].sum(axis=1), kind="stable")].astype(np.int32)
        self.counts = counts[self.columns]
        self.n_candidates = int((highest > 0).sum())
        self.n_places = self.counts.sum(axis=1, dtype=np.int64) // violations.counters.shape[1]

    def _read_ranges(self, size: int) -> Iterator[tuple[int, csr_matrix]]:
        """Yield the violating rows, about `size` entries at a time, with the index of the first row."""
        begin, n_before = 0, 0
        while begin < len(self._ends):
            end = max(begin + 1, int(np.searchsorted(self._ends, n_before + size, side="right")))
            yield begin, self._rows[self._violations.rows[begin:end]]
            begin, n_before = end, int(self._ends[end - 1])

    def row_ranges(self) -> Iterator[RowRange]:
        """Yield the rows with the items of their frequent columns."""
        rank = np.full(self._rows.shape[1], -1, dtype=np.int32)
        rank[self.columns] = np.arange(len(self.columns))
        for begin, rows in self._read_ranges(ENTRIES_AT_A_TIME):
            n_rows, items = rows.shape[0], rank[rows.indices]
            row_of = np.repeat(np.arange(n_rows, dtype=np.int32), np.diff(rows.indptr))[items >= 0]
            items = items[items >= 0]
            yield self._sort(begin, n_rows, items, row_of)

    def _sort(self, begin: int, n_rows: int, items: IntArray, row_of: IntArray) -> RowRange:
        n_items, lengths = len(self.columns), np.bincount(row_of, minlength=n_rows)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=n_items))])
        starts = np.zeros(len(items), dtype=np.int64)
        rows_of = row_of[np.argsort(items, kind="stable")]
        level = Level(np.arange(n_items, dtype=np.int32)[:, np.newaxis], indptr, rows_of, starts)
        # Entry i + 1 is the start of row i until its items are written, and then its end.
        ends = np.concatenate([[0], np.cumsum(lengths) - lengths])
        rows = ItemRows(ends, np.empty(len(items), dtype=np.int32), self._violations.counters)
        sort_rows(level, rows)
        n_after = np.concatenate([[0], np.cumsum(rows.indptr[level.rows + 1] - level.starts)])
        return RowRange(begin, lengths, rows.items, np.diff(n_after[indptr]))

    @property
    def n_bytes(self) -> int:
        """Bytes of the rows returned by `write_rows`, including the violations."""
        n_rows, violations = len(self._ends), self._violations
        own = ENTRY_BYTES * int(self.n_places.sum()) + 2 * ROW_BYTES * (n_rows + 1)
        return own + int(violations.rows.nbytes) + int(violations.counters.nbytes)

    @property
    def n_bytes_to_start(self) -> int:
        """Additional bytes for counting columns, writing rows, or finding the occurrences of an item."""
        to_find = BYTES_TO_FIND * int(self.n_places.max(initial=0))
        return max(bytes_to_count(self._rows, self._violations), to_find)

    def largest_work(self, weights: tuple[int, int]) -> int:
        """Return the maximum work for the extensions and occurrences of a conjunction of any order.

        A conjunction has no more extensions or occurrences than any of its items. Both numbers are weighted.
        """
        n_met = np.zeros(len(self.columns), dtype=np.int64)
        for rows in self.row_ranges():
            n_met += rows.n_met
        return int((weights[0] * n_met + weights[1] * self.n_places).max(initial=0))

    def write_rows(self) -> ItemRows:
        """Return the violating rows with their items."""
        indptr = np.zeros(len(self._ends) + 1, dtype=np.int64)
        rows = ItemRows(indptr, np.empty(self.n_places.sum(), dtype=np.int32), self._violations.counters)
        for begin, lengths, items, _ in self.row_ranges():
            np.cumsum(lengths, out=indptr[begin + 1 : begin + 1 + len(lengths)])
            indptr[begin + 1 : begin + 1 + len(lengths)] += indptr[begin]
            rows.items[indptr[begin] : indptr[begin + len(lengths)]] = items
        return rows

    def levels(self, rows: ItemRows, room: int) -> Iterator[Level]:
        """Yield the items with their occurrences in rows, about `room` occurrences at a time."""
        indptr = np.concatenate([[0], np.cumsum(self.n_places)])
        begin = 0
        while begin < len(self.columns):
            end = max(begin + 1, int(np.searchsorted(indptr, indptr[begin] + room, side="right")) - 1)
            items = np.arange(begin, end, dtype=np.int32)[:, np.newaxis]
            yield Level(items, indptr[begin : end + 1] - indptr[begin], *_find_places(rows, begin, end))
            begin = end


def bytes_to_count(rows: csr_matrix, violations: Violations) -> int:
    """Return the temporary bytes needed to count the columns of violating rows."""
    n_counts = rows.shape[1] * violations.n_counters
    n_read = min(int(np.diff(rows.indptr)[violations.rows].sum()), max(ENTRIES_AT_A_TIME, n_counts))
    return int(BYTES_TO_READ * n_read + BYTES_TO_COUNT * n_counts)


def _find_places(rows: ItemRows, begin: int, end: int) -> tuple[IntArray, Integers]:
    """Return the rows with the items from `begin` to `end`, item by item, and the positions after them."""
    found = [np.zeros(0, dtype=np.int64)]
    row_of = [np.zeros(0, dtype=np.int32)]
    for start in range(0, len(rows.items), ENTRIES_AT_A_TIME):
        items = rows.items[start : start + ENTRIES_AT_A_TIME]
        found.append(start + np.flatnonzero((items >= begin) & (items < end)))
        numbers = np.searchsorted(rows.indptr, found[-1], side="right") - 1
        row_of.append(numbers.astype(np.int32))
    positions = np.concatenate(found)
    order = np.argsort(rows.items[positions], kind="stable")
    return np.concatenate(row_of)[order], positions[order] + 1
