"""Counting of the extensions of conjunctions, optionally after a Bloom filter."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from treewright._typing import IntArray
from treewright.mining.bloom import SMALLEST, SpectralBloomFilter
from treewright.mining.levels import LoadedSpan, Weighed, weigh
from treewright.mining.space import Growth
from treewright.native.mining.conjunctions import (
    FREE,
    SHUT,
    Admitted,
    CountingScratch,
    Extensions,
    ItemRows,
    Level,
    Passed,
    Tally,
    extend,
    sift,
)

ROOM = 1 << 16
"""Number of conjunctions for which space is allocated at a time; the space for occurrences is eight times as
large."""
BYTES_FOR_EACH = 8
"""Maximum size of a filter in bytes per visited candidate."""

GrownLevel: TypeAlias = tuple[Growth, Weighed | None]
"""The features found and, if there is a next order, their occurrences."""


@dataclass(frozen=True)
class Sifting:
    """A Bloom filter for candidates, with a maximum size in bytes."""

    rows: ItemRows
    n_items: int
    n_counters: int
    threshold: float
    memory: int

    def admit(self, levels: Sequence[Callable[[], Level]], n_met: int) -> list[Admitted]:
        """Return, for each level, which of its candidates pass the filter with #f+ or #f-.

        The size of the filter depends on `n_met`, the number of visited candidates.
        """
        memory = min(self.memory, max(SMALLEST, BYTES_FOR_EACH * n_met))
        bloom = SpectralBloomFilter(int(self.threshold), memory)
        scratch = make_scratch(self.n_items, self.n_counters, FREE, hashing=True)
        keys: list[list[npt.NDArray[np.int64]]] = [[] for _ in levels]
        sizes = [0] * len(levels)
        for side in (0, 1):
            bloom.clear()
            number = 0
            for at, load in enumerate(levels):
                level = load()
                keys[at] += self._sift(level, number, side, bloom, scratch)
                sizes[at] = len(level.items)
                number += len(level.items)
        return [self._merge(size, passed) for size, passed in zip(sizes, keys, strict=True)]

    def _merge(self, size: int, keys: Sequence[npt.NDArray[np.int64]]) -> Admitted:
        found = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *keys]))
        parents, items = np.divmod(found, max(1, self.n_items))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=size))])
        return Admitted(indptr, items.astype(np.int32))

    def _sift(
        self, level: Level, number: int, side: int, bloom: SpectralBloomFilter, scratch: CountingScratch
    ) -> list[npt.NDArray[np.int64]]:
        """Return the candidates of a level that pass a round of the filter, as parent * n_items + item."""
        room = max(ROOM, self.n_items)
        found, parent = [], 0
        while parent < len(level.items):
            passed = Passed(np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int32))
            parent, n = sift(level, (parent, number), self.rows, side, bloom.native, scratch, passed)
            found.append(passed.parents[:n] * self.n_items + passed.items[:n])
        return found


@dataclass(frozen=True)
class ConjunctionCounting:
    """Input shared by the jobs of one order: rows with renumbered columns, and the options of counting.

    `sifting` is a filter that is applied to each block separately.
    """

    rows: ItemRows
    columns: IntArray
    n_counters: int
    threshold: float
    keep_places: bool
    sifting: Sifting | None = None

    def count(self, blocks: Sequence[LoadedSpan]) -> list[GrownLevel]:
        """Count the extensions of the conjunctions in each block."""
        return [part for block in blocks for part in self._count(*block)]

    def _count(self, level: Level, admitted: Admitted) -> Iterator[GrownLevel]:
        if self.sifting is not None:
            n_met = int(weigh(level, self.rows).n_met[-1])
            admitted = self.sifting.admit([lambda: level], n_met)[0]
        scratch = make_scratch(len(self.columns), self.n_counters, SHUT if len(admitted.indptr) else FREE)
        room = max(ROOM, len(scratch.slots))
        found = self._room(room, 8 * ROOM if self.keep_places else 0)
        begin, end = 0, len(level.items)
        while begin < end:
            arguments = (self.threshold, scratch, admitted, found, self.keep_places)
            tally = extend(level, (begin, end), self.rows, *arguments)
            if tally.next_parent > begin:
                yield self._take(level, found, tally)
            begin = tally.next_parent
            if tally.n_missing > len(found.rows):
                found = self._room(room, tally.n_missing)

    def _room(self, n_features: int, n_places: int) -> Extensions:
        return Extensions(
            np.empty(n_features, dtype=np.int64),
            np.empty(n_features, dtype=np.int32),
            np.empty((n_features, self.n_counters), dtype=np.int32),
            np.empty(n_features, dtype=np.int64),
            np.empty(n_places, dtype=np.int32),
            np.empty(n_places, dtype=np.int64),
        )

    def _take(self, level: Level, found: Extensions, tally: Tally) -> GrownLevel:
        """Copy the results out of the preallocated arrays."""
        n, n_places = tally.n_found, tally.n_places
        items = np.column_stack([level.items[found.parents[:n]], found.items[:n]])
        features = np.sort(self.columns[items], axis=1)
        growth = Growth(features, found.counts[:n].copy(), tally.n_candidates, tally.n_instances, n)
        if not self.keep_places or n == 0:
            return growth, None
        indptr = np.concatenate([[0], found.ends[:n]])
        grown = Level(items, indptr, found.rows[:n_places].copy(), found.starts[:n_places].copy())
        return growth, weigh(grown, self.rows)


def make_scratch(n_items: int, n_counters: int, state: int, *, hashing: bool = False) -> CountingScratch:
    """Return scratch arrays for counting, with this initial state of each item."""
    return CountingScratch(
        np.zeros((n_items, n_counters), dtype=np.int32),
        np.zeros(n_items, dtype=np.int32),
        np.full(n_items, state, dtype=np.int64),
        *(np.zeros(n_items if hashing else 0, dtype=np.uint64) for _ in range(3)),
    )
