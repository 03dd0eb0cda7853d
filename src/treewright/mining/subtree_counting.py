"""Counting of sub feature trees, with reused buffers."""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from treewright._typing import Integers
from treewright.native.mining.subtrees import (
    N_COLUMNS,
    N_DEPTHS,
    Job,
    Places,
    Roots,
    SelectedSubtrees,
    Stack,
    Work,
    search_roots,
)

ROOM = 1 << 14
"""Initial size of the buffers for features, occurrences and fragments."""


class SubtreeCounting:
    """Input shared by the jobs of a search; each thread takes free buffers or creates new ones.

    Parameters
    ----------
    job : Job
    roots : Roots
        The arcs of each basic feature.
    ends : ndarray of int
        The position at which the arcs of each basic feature end.
    make_room : callable
        Returns a `Room`.
    """

    def __init__(self, job: Job, roots: Roots, ends: Integers, make_room: "Callable[[], Room]") -> None:
        self._job, self._roots, self._ends, self._make_room = job, roots, ends, make_room
        self._free: deque[Room] = deque()

    def count(self, span: tuple[int, int]) -> tuple[SelectedSubtrees, Integers]:
        """Count the features that extend a range of basic features; also return the tallies of each order."""
        try:
            room = self._free.pop()
        except IndexError:
            room = self._make_room()
        try:
            return room.count(self._job, self._roots, self._ends, span)
        finally:
            self._free.append(room)


class Room:
    """The buffers in which one thread counts.

    Parameters
    ----------
    job : Job
    copies : int, optional
        Maximum number of features with the same signature; features with fewer arcs are preferred, then
        earlier ones.
    """

    def __init__(self, job: Job, copies: int | None) -> None:
        degree = job.degree
        self._degree = degree
        self._copies = copies
        self._table = np.zeros((job.n_features * degree, N_COLUMNS), dtype=np.int32)
        self._bits = np.zeros(len(self._table), dtype=job.pairs.masks.dtype)
        self._signatures = np.zeros(len(self._table), dtype=np.uint64)
        self._met = np.empty(len(self._table), dtype=np.int32)
        self._path = np.zeros(N_DEPTHS, dtype=np.int64)
        self._found = make_found(ROOM, degree)
        self._places = make_places(ROOM, degree, self._bits.dtype)
        self._stack = _make_stack(ROOM, degree)

    def count(
        self, job: Job, roots: Roots, ends: Integers, span: tuple[int, int]
    ) -> tuple[SelectedSubtrees, Integers]:
        """Count the features that extend a range of basic features; also return the tallies of each order."""
        tallies = np.zeros((self._degree, 3, 2), dtype=np.int64)
        parts = [make_found(0, self._degree)]
        begin = span[0]
        while begin < span[1]:
            progress = search_roots(job, roots, ends, (begin, span[1]), self._work(tallies))
            begin = progress.next_root
            parts.append(self._take(progress.n_found))
            self._enlarge(*progress.room)
        return self._join(parts), tallies[:, :, 0]

    def _work(self, tallies: Integers) -> Work:
        room = (self._met, self._path, self._places, self._stack, self._found)
        return Work(self._table, self._bits, self._signatures, *room, tallies)

    def _take(self, n_found: int) -> SelectedSubtrees:
        """Copy the results out of the buffers."""
        # There may be thousands of copies of each: all of them would take more memory than everything else.
        return self._limit(SelectedSubtrees(*(array[:n_found] for array in self._found)))

    def _join(self, parts: Sequence[SelectedSubtrees]) -> SelectedSubtrees:
        return self._limit(SelectedSubtrees(*map(np.concatenate, zip(*parts, strict=True))))

    def _limit(self, found: SelectedSubtrees) -> SelectedSubtrees:
        """Return at most `copies` features per signature: those with the fewest arcs, then the earliest."""
        kept = np.arange(len(found.orders))
        if self._copies is not None:
            by_order = np.argsort(found.orders, kind="stable")
            kept = np.sort(by_order[are_first(found.signatures[by_order], self._copies)])
        return SelectedSubtrees(*(array[kept] for array in found))

    def _enlarge(self, n_found: int, n_places: int, n_waiting: int) -> None:
        """Enlarge the buffers that were too small."""
        if n_found > len(self._found.orders):
            self._found = make_found(2 * n_found, self._degree)
        if n_places > len(self._places.masks):
            self._places = make_places(2 * n_places, self._degree, self._bits.dtype)
        if n_waiting > len(self._stack.orders):
            self._stack = _make_stack(2 * n_waiting, self._degree)


def are_first(signatures: npt.NDArray[np.uint64], n: int) -> npt.NDArray[np.bool_]:
    """Return which signatures are among the first `n` equal ones."""
    order = np.argsort(signatures, kind="stable")
    starts = np.flatnonzero(np.diff(signatures[order], prepend=~signatures[order[:1]]) != 0)
    ranks = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    chosen = np.empty(len(order), dtype=np.bool_)
    chosen[order] = ranks < n
    return chosen


def make_found(size: int, degree: int) -> SelectedSubtrees:
    """Return buffers for features."""
    codes, counts = np.empty((size, degree), dtype=np.int32), np.empty((size, 2), dtype=np.int32)
    return SelectedSubtrees(codes, np.empty(size, dtype=np.int32), counts, np.empty(size, dtype=np.uint64))


def make_places(size: int, degree: int, masks: np.dtype[np.generic]) -> Places:
    """Return buffers for occurrences of features."""
    arcs = np.empty((size, max(1, degree - 1)), dtype=np.int32)
    return Places(arcs, np.empty(size, dtype=masks), np.empty(size, dtype=np.int8))


def _make_stack(size: int, degree: int) -> Stack:
    codes = np.empty((size, degree), dtype=np.int32)
    return Stack(codes, *(np.empty(size, dtype=np.int64) for _ in range(3)))
