"""Counting of sub feature trees that pass a Bloom filter, order by order."""

import numpy as np
import numpy.typing as npt

from treewright._typing import Integers
from treewright.mining.bloom import SMALLEST, SpectralBloomFilter
from treewright.mining.counting import BYTES_FOR_EACH
from treewright.mining.subtree_counting import ROOM, Room, make_found, make_places
from treewright.native.mining.subtree_levels import (
    AdmittedRows,
    GrownSubtrees,
    PassedRows,
    Sieve,
    SubtreeLevel,
    count_extensions,
    extend_level,
    sift_level,
)
from treewright.native.mining.subtrees import (
    N_DEPTHS,
    RIGHT,
    SHUT,
    STAMP,
    WRONG,
    Job,
    Places,
    Roots,
    SelectedSubtrees,
)


class FilteredRoom(Room):
    """The buffers in which one thread counts features that pass a filter.

    All features of one order that extend a range of basic features go through the filter together: first
    those of the correct trees, then those of the wrong trees.

    Parameters
    ----------
    job : Job
    copies : int, optional
        As in `Room`.
    filter_memory : int
        Maximum size of the filter in bytes.
    """

    def __init__(self, job: Job, copies: int | None, filter_memory: int) -> None:
        super().__init__(job, copies)
        self._table[:, STAMP] = SHUT
        self._memory = filter_memory
        self._limit_of_counters = int(job.threshold)
        self._stamps = np.zeros(len(self._table), dtype=np.int32)
        pairs = job.pairs
        n_next = int(np.diff(pairs.first_next).max(initial=0))
        n_children = int((pairs.end_child - pairs.first_child).max(initial=0))
        self._extensions = np.empty((N_DEPTHS * n_next + n_children, 2), dtype=np.int64)
        self._masks = np.empty(len(self._extensions), dtype=self._bits.dtype)
        self._grown = _make_grown(ROOM, ROOM, job.degree, self._bits.dtype)

    def count(
        self, job: Job, roots: Roots, ends: Integers, span: tuple[int, int]
    ) -> tuple[SelectedSubtrees, Integers]:
        """Count the features that extend a range of basic features; also return the tallies of each order."""
        tallies = np.zeros((self._degree, 3, 2), dtype=np.int64)
        parts = [make_found(0, self._degree)]
        level = _first_level(job, roots, ends, span)
        for _ in range(1, self._degree):
            level = self._extend(job, level, self._admit(job, level), parts, tallies)
        return self._join(parts), tallies[:, :, 0]

    def _sieve(self, memory: int) -> Sieve:
        bloom = SpectralBloomFilter(self._limit_of_counters, memory).native
        return Sieve(bloom, self._stamps, self._met, self._path, self._extensions, self._masks)

    def _admit(self, job: Job, level: SubtreeLevel) -> AdmittedRows:
        """Return the extensions of the features of a level that pass the filter in either of two rounds."""
        n_met = count_extensions(job, level, self._sieve(SMALLEST))
        sieve = self._sieve(min(self._memory, max(SMALLEST, BYTES_FOR_EACH * n_met)))
        n_rows, keys = max(1, len(self._table)), [np.zeros(0, dtype=np.int64)]
        room = max(ROOM, len(self._table))
        for side in (RIGHT, WRONG):
            sieve.bloom.words[:] = 0
            parent = 0
            while parent < len(level.codes):
                passed = PassedRows(np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64))
                parent, n = sift_level(job, level, parent, side, sieve, passed)
                keys.append(passed.parents[:n] * n_rows + passed.rows[:n])
        parents, rows = np.divmod(np.unique(np.concatenate(keys)), n_rows)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=len(level.codes)))])
        return AdmittedRows(indptr, rows)

    def _extend(
        self,
        job: Job,
        level: SubtreeLevel,
        admitted: AdmittedRows,
        parts: list[SelectedSubtrees],
        tallies: npt.NDArray[np.int64],
    ) -> SubtreeLevel:
        """Count the extensions of a level; add selected ones to `parts`, and return those that survive."""
        order = level.codes.shape[1] + 1
        grown = [_no_features(order, self._bits.dtype)]
        parent = 0
        while parent < len(level.codes):
            found = extend_level(job, level, parent, admitted, self._work(tallies), self._grown)
            parent = found.next_parent
            parts.append(self._take(found.n_found))
            grown.append(_take_grown(self._grown, found.n_grown, order))
            self._enlarge(*found.room)
        return _join_levels(grown)

    def _enlarge(self, n_found: int, n_places: int, n_waiting: int) -> None:
        """Enlarge the buffers that were too small."""
        super()._enlarge(n_found, n_places, n_waiting)
        sizes = len(self._grown.ends), len(self._grown.places.masks)
        if n_waiting > sizes[0] or n_places > sizes[1]:
            larger = max(sizes[0], 2 * n_waiting), max(sizes[1], 2 * n_places)
            self._grown = _make_grown(*larger, self._degree, self._bits.dtype)


def _first_level(job: Job, roots: Roots, ends: Integers, span: tuple[int, int]) -> SubtreeLevel:
    """Return the basic features of a range with their arcs."""
    numbers = np.arange(*span)
    begins, sizes = roots.indptr[:-1][numbers], ends[numbers] - roots.indptr[:-1][numbers]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    arcs = roots.arcs[np.arange(indptr[-1]) + np.repeat(begins - indptr[:-1], sizes)]
    places = Places(arcs[:, np.newaxis], job.pairs.masks[arcs], job.distances[arcs])
    return SubtreeLevel((numbers * N_DEPTHS).astype(np.int32)[:, np.newaxis], indptr, places)


def _make_grown(n_features: int, n_places: int, degree: int, masks: np.dtype[np.generic]) -> GrownSubtrees:
    codes, ends = np.empty((n_features, degree), dtype=np.int32), np.empty(n_features, dtype=np.int64)
    return GrownSubtrees(codes, ends, make_places(n_places, degree, masks))


def _no_features(order: int, masks: np.dtype[np.generic]) -> SubtreeLevel:
    nothing = np.zeros((0, order), dtype=np.int32)
    places = Places(nothing, np.zeros(0, dtype=masks), np.zeros(0, dtype=np.int8))
    return SubtreeLevel(nothing, np.zeros(1, dtype=np.int64), places)


def _take_grown(grown: GrownSubtrees, n: int, order: int) -> SubtreeLevel:
    """Copy features out of the buffers."""
    indptr = np.concatenate([[0], grown.ends[:n]])
    if n == 0:  # as for the last order, which has no buffer
        return _no_features(order, grown.places.masks.dtype)
    arcs, *others = (each[: indptr[-1]] for each in grown.places)
    places = Places(arcs[:, :order].copy(), *(each.copy() for each in others))
    return SubtreeLevel(grown.codes[:n, :order].copy(), indptr, places)


def _join_levels(levels: list[SubtreeLevel]) -> SubtreeLevel:
    codes = np.concatenate([each.codes for each in levels])
    sizes = np.concatenate([np.diff(each.indptr) for each in levels])
    places = Places(*map(np.concatenate, zip(*(each.places for each in levels), strict=True)))
    return SubtreeLevel(codes, np.concatenate([[0], np.cumsum(sizes)]), places)
