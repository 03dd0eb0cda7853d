"""The space of conjunctions of basic features, up to any order (Qian & Liu 2015, section 5.1)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright.mining.binary import as_binary
from treewright.mining.bloom import SMALLEST, SpectralBloomFilter
from treewright.mining.space import Growth, IntArray, Violations
from treewright.mining.store import Kept, Store, load
from treewright.native.conjunctions import (
    EMPTY,
    FREE,
    SHUT,
    Admitted,
    Found,
    Level,
    Matches,
    Passed,
    Rows,
    Scratch,
    Tally,
    Trie,
    extend,
    insert_conjunctions,
    match_rows,
    sift,
    sort_rows,
)
from treewright.progress import track
from treewright.scale import Client, iter_jobs, map_jobs

ROOM = 1 << 16
"""Conjunctions for which room is made at a time, and eight times as many places."""
WORK = 1 << 21
"""Candidates that are counted by one job, about."""
JOBS_AT_ONCE = 8
"""Jobs for each thread whose results are waited for together."""
SENT_TOGETHER = 16
"""Jobs that are sent to a worker of a cluster at a time."""
BYTES_FOR_EACH = 8
"""The largest filter has so many for each candidate that is met."""
EVERYTHING = Admitted(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))


class PolynomialSpace:
    """All conjunctions of the columns of a binary matrix.

    A feature of order r is a row of r columns, ascending.

    Parameters
    ----------
    rows : sparse matrix or array
        Of zeros and ones.
    names : sequence of str, optional
        Names of the columns; ``x0``, ``x1``, ... without them.
    jobs : int
        Threads that count; the result does not depend on them.
    client : distributed.Client, optional
        A cluster that counts instead, but for the filter; the result is the same.
    memory_limit : int, optional
        Bytes that the survivors of two orders may take in memory; the rest goes to disk.
    filter_memory : int, optional
        Bytes for a Bloom filter that candidates pass before they are counted; without it none is used.
    budget : int, optional
        How many candidates are met in one order at the most; conjunctions beyond are not extended, rare
        columns coming first. Without it all are.
    """

    def __init__(
        self,
        rows: Any,  # noqa: ANN401
        *,
        names: Sequence[str] | None = None,
        jobs: int = 1,
        client: Client | None = None,
        memory_limit: int | None = None,
        filter_memory: int | None = None,
        budget: int | None = None,
    ) -> None:
        self.rows = as_binary(rows)
        self.names = names
        self.jobs = jobs
        self.client = client
        self.memory_limit = memory_limit
        self.filter_memory = filter_memory
        self.budget = budget

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.rows.shape[0])

    def search(self, violations: Violations, threshold: float, degree: int) -> "PolynomialSearch":
        """Begin with the columns of the violating rows; there is no order above `degree`."""
        return PolynomialSearch(self, violations, threshold, degree)

    def match(self, features: Sequence[IntArray]) -> csr_matrix:
        """Return where conjunctions are present: a row for each of the space, a column for each of them."""
        return match_conjunctions(self.rows, features)

    def name(self, feature: Sequence[int]) -> str:
        """Return a conjunction as ``a & b``."""
        return name_conjunction(feature, self.names)


KeptLevel: TypeAlias = tuple[Kept, ...]
"""The arrays of a `Level`, as a store keeps them."""


Part: TypeAlias = tuple[Growth, Level | None]
"""What was found, and, if there is a next order, its places."""


class Task(NamedTuple):
    """A stretch of the conjunctions of one level, extensions that may be counted, and how many are met."""

    level: KeptLevel
    span: tuple[int, int]
    admitted: Admitted
    n_met: int


class Block(NamedTuple):
    """The conjunctions of a task with their places, and the extensions that may be counted."""

    level: Level
    admitted: Admitted


class PolynomialSearch:
    """One search through conjunctions, from parents to extensions by one more column.

    Columns are renumbered from rare to frequent, without those that are not frequent enough.
    """

    def __init__(self, space: PolynomialSpace, violations: Violations, threshold: float, degree: int) -> None:
        self._space = space
        self._violations = violations
        self._threshold = threshold
        self._degree = degree
        self._columns = np.zeros(0, dtype=np.int32)
        self._order = 0
        self._levels: list[KeptLevel] = []
        self._store = self._new_store()
        self.share = 1.0

    def grow(self) -> Iterator[Growth]:
        """Count the conjunctions of the next order and yield, in parts, those above the threshold."""
        self._order += 1
        if self._order == 1:
            yield self._start()
            return
        old_levels, self._levels = self._levels, []
        old_store, self._store = self._store, self._new_store()
        try:
            for growth, level in self._grow(old_levels, self._order < self._degree):
                if level is not None:
                    self._keep(level)
                yield growth
        finally:
            old_store.close()

    def _grow(self, levels: Sequence[KeptLevel], keep_places: bool) -> Iterator[Part]:
        """Count the extensions of all conjunctions of an order."""
        tasks = self._within_budget(self._plan(levels))
        n_together = 1 if self._space.client is None else SENT_TOGETHER
        groups = [tasks[begin : begin + n_together] for begin in range(0, len(tasks), n_together)]
        counting = Counting(
            self._rows, self._columns, self._violations.n_counters, self._threshold, keep_places
        )
        what = f"counting conjunctions of order {self._order}"
        for parts in track(self._spread(counting, groups), what, total=len(groups), unit="parts"):
            yield from parts

    def _spread(self, counting: "Counting", groups: Sequence[Sequence[Task]]) -> Iterator[list[Part]]:
        """Yield what is counted for groups of tasks, in their order, by threads or on a cluster."""
        if self._space.client is not None:
            yield from iter_jobs(counting.count, map(_cut, groups), client=self._space.client)
            return
        jobs = self._space.jobs
        for begin in range(0, len(groups), JOBS_AT_ONCE * jobs):
            batch = groups[begin : begin + JOBS_AT_ONCE * jobs]
            yield from map_jobs(lambda group: counting.count(_cut(group)), batch, jobs=jobs)

    def _keep(self, level: Level) -> None:
        self._levels.append(tuple(self._store.keep(array) for array in level))

    @property
    def n_bytes(self) -> tuple[int, int]:
        """Bytes of what is kept for the next order, in memory and on disk."""
        return self._store.n_bytes, self._store.n_bytes_on_disk

    def close(self) -> None:
        """Forget what was kept for the next order."""
        self._levels = []
        self._store.close()

    def _new_store(self) -> Store:
        limit = self._space.memory_limit
        return Store(None if limit is None else limit // 2)

    def _start(self) -> Growth:
        """Count single columns, and write the rows again with the frequent ones, renumbered."""
        rows = self._space.rows[self._violations.rows]
        counts, row_of = self._count_columns(rows)
        highest = counts.max(axis=1, initial=0)
        frequent = np.flatnonzero(highest > self._threshold)
        self._columns = frequent[np.argsort(counts[frequent].sum(axis=1), kind="stable")].astype(np.int32)
        rank = np.full(rows.shape[1], -1, dtype=np.int32)
        rank[self._columns] = np.arange(len(frequent))
        items = rank[rows.indices]
        self._write_rows(items[items >= 0], row_of[items >= 0], rows.shape[0])
        features = self._columns[:, np.newaxis]
        n_candidates = int((highest > 0).sum())
        return Growth(features, counts[self._columns], n_candidates, len(items), len(features))

    def _count_columns(self, rows: csr_matrix) -> tuple[IntArray, IntArray]:
        """Count each column; also return the row of each entry."""
        n_counters = self._violations.n_counters
        row_of = np.repeat(np.arange(rows.shape[0], dtype=np.int32), np.diff(rows.indptr))
        counts = np.zeros(rows.shape[1] * n_counters, dtype=np.int32)
        for counters in self._violations.counters.T:
            keys = rows.indices.astype(np.int64) * n_counters + counters[row_of]
            counts += np.bincount(keys, minlength=len(counts)).astype(np.int32)
        return counts.reshape(rows.shape[1], n_counters), row_of

    def _write_rows(self, items: IntArray, row_of: IntArray, n_rows: int) -> None:
        n_items = len(self._columns)
        order = np.argsort(items, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=n_items))])
        starts = np.zeros(len(items), dtype=np.int64)
        level = Level(np.arange(n_items, dtype=np.int32)[:, np.newaxis], first, row_of[order], starts)
        begins = np.concatenate([[0], np.cumsum(np.bincount(row_of, minlength=n_rows))])
        # Entry i + 1 is where row i begins, until its items are written.
        ends = np.concatenate([[0], begins[:-1]])
        self._rows = Rows(ends, np.zeros(len(items), dtype=np.int32), self._violations.counters)
        sort_rows(level, self._rows)
        self._keep(level)

    def _plan(self, levels: Sequence[KeptLevel]) -> list[Task]:
        """Divide conjunctions into stretches of about the same number of candidates, whatever the threads."""
        admitted = self._sift(levels) if self._space.filter_memory else [EVERYTHING] * len(levels)
        tasks = []
        for kept, allowed in zip(levels, admitted, strict=True):
            level = _load(kept)
            n_met = np.concatenate([[0], np.cumsum(self._rows.first[level.rows + 1] - level.starts)])
            total = n_met[level.first]
            cuts = np.searchsorted(total, np.arange(0, total[-1], WORK))
            cuts = np.unique(np.append(cuts, len(total) - 1)).tolist()
            spans = zip([0, *cuts[1:-1]], cuts[1:], strict=True) if len(cuts) > 1 else []
            tasks += [Task(kept, span, allowed, int(total[span[1]] - total[span[0]])) for span in spans]
        return tasks

    def _within_budget(self, tasks: list[Task]) -> list[Task]:
        """Return the first tasks, as many as the budget allows, and note what share of all they are."""
        n_met = np.cumsum([task.n_met for task in tasks], dtype=np.int64)
        if self._space.budget is None or len(tasks) == 0 or n_met[-1] <= self._space.budget:
            self.share = 1.0
            return tasks
        n_kept = max(1, int(np.searchsorted(n_met, self._space.budget, side="right")))
        self.share = float(n_met[n_kept - 1] / n_met[-1])
        return tasks[:n_kept]

    def _sift(self, levels: Sequence[KeptLevel]) -> list[Admitted]:
        """Return, for each level, the candidates that a Bloom filter lets pass: in #f+, or in #f-."""
        bloom = SpectralBloomFilter(int(self._threshold), self._filter_memory(levels))
        scratch = make_scratch(len(self._columns), self._violations.n_counters, FREE, hashing=True)
        n_items = len(scratch.slots)
        keys: list[list[npt.NDArray[np.int64]]] = [[] for _ in levels]
        sizes = [0] * len(levels)
        for side in (0, 1):
            bloom.clear()
            number = 0
            for at, kept in enumerate(levels):
                level = _load(kept)
                keys[at] += self._sift_level(level, number, side, bloom, scratch)
                sizes[at] = len(level.items)
                number += len(level.items)
        admitted = []
        for size, passed in zip(sizes, keys, strict=True):
            found = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *passed]))
            parents, items = np.divmod(found, max(1, n_items))
            first = np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=size))])
            admitted.append(Admitted(first, items.astype(np.int32)))
        return admitted

    def _filter_memory(self, levels: Sequence[KeptLevel]) -> int:
        """Return the bytes of a filter: those allowed, or fewer if there is nothing to fill them with."""
        n_met = 0
        for kept in levels:
            level = _load(kept)
            n_met += int((self._rows.first[level.rows + 1] - level.starts).sum())
        return min(int(self._space.filter_memory or 0), max(SMALLEST, BYTES_FOR_EACH * n_met))

    def _sift_level(
        self, level: Level, number: int, side: int, bloom: SpectralBloomFilter, scratch: Scratch
    ) -> list[npt.NDArray[np.int64]]:
        """Return the candidates of a level that pass a round of the filter, as parent * n_items + item."""
        n_items = len(scratch.slots)
        room = max(ROOM, n_items)
        found, parent = [], 0
        while parent < len(level.items):
            passed = Passed(np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int32))
            parent, n = sift(level, (parent, number), self._rows, side, bloom.native, scratch, passed)
            found.append(passed.parents[:n] * n_items + passed.items[:n])
        return found


@dataclass(frozen=True)
class Counting:
    """What the jobs of an order share: rows with columns renumbered, and what is wanted of them."""

    rows: Rows
    columns: IntArray
    n_counters: int
    threshold: float
    keep_places: bool

    def count(self, blocks: Sequence[Block]) -> list[Part]:
        """Count the extensions of the conjunctions of blocks."""
        return [part for block in blocks for part in self._count(block)]

    def _count(self, block: Block) -> Iterator[Part]:
        state = SHUT if len(block.admitted.first) else FREE
        scratch = make_scratch(len(self.columns), self.n_counters, state)
        room, places = max(ROOM, len(scratch.slots)), 8 * ROOM if self.keep_places else 0
        begin, end = 0, len(block.level.items)
        while begin < end:
            found = self._room(room, places)
            arguments = (self.threshold, scratch, block.admitted, found, self.keep_places)
            tally = extend(block.level, (begin, end), self.rows, *arguments)
            if tally.next_parent > begin:
                yield self._take(block.level, found, tally)
            begin = tally.next_parent
            places = max(places, tally.n_missing)

    def _room(self, n_features: int, n_places: int) -> Found:
        return Found(
            np.empty(n_features, dtype=np.int64),
            np.empty(n_features, dtype=np.int32),
            np.empty((n_features, self.n_counters), dtype=np.int32),
            np.empty(n_features, dtype=np.int64),
            np.empty(n_places, dtype=np.int32),
            np.empty(n_places, dtype=np.int64),
        )

    def _take(self, level: Level, found: Found, tally: Tally) -> Part:
        """Copy what was found out of the room that was made for it."""
        n, n_places = tally.n_found, tally.n_places
        items = np.column_stack([level.items[found.parents[:n]], found.items[:n]])
        features = np.sort(self.columns[items], axis=1)
        growth = Growth(features, found.counts[:n].copy(), tally.n_candidates, tally.n_instances, n)
        if not self.keep_places or n == 0:
            return growth, None
        first = np.concatenate([[0], found.ends[:n]])
        return growth, Level(items, first, found.rows[:n_places].copy(), found.starts[:n_places].copy())


def make_scratch(n_items: int, n_counters: int, state: int, *, hashing: bool = False) -> Scratch:
    """Return what counting writes into; each item is in a state at first."""
    return Scratch(
        np.zeros((n_items, n_counters), dtype=np.int32),
        np.zeros(n_items, dtype=np.int32),
        np.full(n_items, state, dtype=np.int64),
        *(np.zeros(n_items if hashing else 0, dtype=np.uint64) for _ in range(3)),
    )


def _cut(tasks: Sequence[Task]) -> list[Block]:
    """Return the conjunctions of tasks, without the rest of their levels."""
    blocks = []
    for task in tasks:
        level, (begin, end) = _load(task.level), task.span
        places = slice(level.first[begin], level.first[end])
        first = level.first[begin : end + 1] - level.first[begin]
        own = task.admitted
        if len(own.first):
            within = own.first[begin : end + 1]
            own = Admitted(within - within[0], own.items[within[0] : within[-1]])
        level = Level(level.items[begin:end], first, level.rows[places], level.starts[places])
        blocks.append(Block(level, own))
    return blocks


def name_conjunction(feature: Sequence[int], names: Sequence[str] | None) -> str:
    """Return a conjunction of columns as ``a & b``; columns without names are ``x0``, ``x1``, ..."""
    return " & ".join(f"x{item}" if names is None else names[item] for item in feature)


def _load(kept: KeptLevel) -> Level:
    return Level(*map(load, kept))


def match_conjunctions(rows: csr_matrix, features: Sequence[IntArray]) -> csr_matrix:
    """Return where conjunctions are present: a binary matrix with a column for each, in their order.

    `features` has an array for each order, of one conjunction a row.
    """
    trie = make_trie(features)
    degree = max((each.shape[1] for each in features), default=1)
    path, at = np.zeros(degree + 1, dtype=np.int64), np.zeros(degree + 1, dtype=np.int64)
    first = np.zeros(rows.shape[0] + 1, dtype=np.int64)
    matches = Matches(np.zeros(0, dtype=np.int32), path, at)
    match_rows(trie, rows.indptr, rows.indices, first[1:], matches)
    np.cumsum(first, out=first)
    matches = Matches(np.empty(first[-1], dtype=np.int32), path, at)
    if first[-1]:
        match_rows(trie, rows.indptr, rows.indices, first[:-1].copy(), matches)
    present = np.ones(first[-1], dtype=np.int8)
    shape = (rows.shape[0], sum(map(len, features)))
    matrix = csr_matrix((present, matches.numbers, first), shape=shape)
    matrix.sort_indices()
    return matrix


def make_trie(features: Sequence[IntArray]) -> Trie:
    """Return features, an array for each order, as paths of their items."""
    size = sum(each.size for each in features)
    n_slots = 1 << (2 * size + 1).bit_length()
    trie = Trie(
        np.full(n_slots, EMPTY, dtype=np.uint64),
        np.zeros(n_slots, dtype=np.int32),
        np.full(size + 1, -1, dtype=np.int32),
        np.zeros(size + 1, dtype=np.bool_),
    )
    n_nodes, n_done = 1, 0
    for each in features:
        numbers = np.arange(n_done, n_done + len(each), dtype=np.int32)
        n_nodes = insert_conjunctions(trie, n_nodes, each, numbers)
        n_done += len(each)
    return trie
