"""The space of conjunctions of basic features, up to any order (Qian & Liu 2015, section 5.1)."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from treewright._typing import IntArray
from treewright._validate import count_jobs
from treewright.errors import InputError
from treewright.mining.binary import as_binary
from treewright.mining.counting import ConjunctionCounting, GrownLevel, Sifting
from treewright.mining.levels import (
    EVERYTHING,
    KeptLevel,
    LevelSpan,
    cut,
    divide,
    keep_level,
    load_level,
    weigh,
)
from treewright.mining.memory import Memory
from treewright.mining.naming import merge_intervals
from treewright.mining.single_columns import BYTES_TO_FIND, Singles, bytes_to_count
from treewright.mining.space import Growth, Violations
from treewright.mining.store import ArrayStore, load
from treewright.native.mining.conjunctions import (
    EMPTY,
    ConjunctionMatches,
    ConjunctionTrie,
    insert_conjunctions,
    match_rows,
)
from treewright.progress import track
from treewright.scale import Client, iter_jobs, map_jobs

WORK = 1 << 21
"""Approximate number of candidates counted by one job."""
JOBS_AT_ONCE = 8
"""Number of jobs per thread whose results are collected together."""
SENT_TOGETHER = 16
"""Number of jobs that are sent to a worker of a cluster at a time."""
PLACE_BYTES, CANDIDATE_BYTES, FILTER_BYTES, FEATURE_BYTES, SCRATCH_BYTES = 12, 24, 64, 80, 40
"""Bytes of a job: per occurrence of the extended conjunctions; per visited candidate (two copies of an
occurrence, in case it survives); per candidate that passes a filter; per surviving feature, not counting its
columns and counts; and per column, not counting its counts."""
MATCH_BYTES, SLOT_BYTES, NODE_BYTES = 10, 12, 9
"""Bytes for matching: per occurrence, including its copy in the combined result; per slot of the hash table;
and per column of a conjunction."""


class PolynomialSpace:
    """The feature space of all conjunctions of the columns of a binary matrix.

    A feature of order r is a row of r column indices, in ascending order.

    Parameters
    ----------
    rows : sparse matrix or array, (n_rows, n_columns)
        Binary samples.
    names : sequence of str, optional
        Names of the columns; ``x0``, ``x1``, ... by default.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.
    client : distributed.Client, optional
        Cluster that counts the features; results are the same.
    memory_limit : int, optional
        Memory limit in bytes, not counting the rows. Beyond it, intermediate results are written to disk and
        features are counted in smaller batches. If the limit is too small, the error gives the minimum. Data
        sent to and from a cluster are not counted.
    filter_memory : int, optional
        Size in bytes of a Bloom filter that removes rare candidates before counting; no filter by default.
    budget : int, optional
        Maximum number of candidates per order; no maximum by default. Conjunctions of rare columns are
        extended first; those beyond the maximum are not extended. It cannot be combined with `memory_limit`.

    Attributes
    ----------
    memory : Memory
        The memory in use, and its limit.

    See Also
    --------
    GradientMiner : Selects features from a space.
    ConjunctionMiner : Mines conjunctions, with a scikit-learn interface.
    SubtreeSpace : The space of all subtrees of dependency trees.

    Examples
    --------
    >>> space = tw.PolynomialSpace([[1, 1, 0], [1, 0, 1]], names=["rain", "wind", "sun"])
    >>> space.n_rows, space.name([0, 1])
    (2, 'rain & wind')
    """

    def __init__(
        self,
        rows: Any,  # noqa: ANN401
        *,
        names: Sequence[str] | None = None,
        n_jobs: int = 1,
        client: Client | None = None,
        memory_limit: int | None = None,
        filter_memory: int | None = None,
        budget: int | None = None,
    ) -> None:
        if budget is not None and memory_limit is not None:
            raise InputError(f"budget is {budget} and memory_limit is {memory_limit}; expected one of them")
        self.rows = as_binary(rows)
        self.names = names
        self.n_jobs = count_jobs(n_jobs)
        self.client = client
        self.memory = Memory(memory_limit)
        self.filter_memory = filter_memory
        self.budget = budget

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    def search(self, violations: Violations, threshold: float, degree: int) -> "PolynomialSearch":
        """Start a search with the columns of the violating rows, up to order `degree`.

        Parameters
        ----------
        violations : Violations
            The rows to learn from, and the counters of each.
        threshold : float
            A feature is extended only if one of its counts exceeds this.
        degree : int
            Maximum number of columns in a conjunction.

        Returns
        -------
        PolynomialSearch
            The search. Each call of its method `grow` counts the features of the next order.
        """
        return PolynomialSearch(self, violations, threshold, degree)

    def match(self, features: Sequence[IntArray]) -> csr_matrix:
        """Return which conjunctions (columns) are present in each row of the space.

        Parameters
        ----------
        features : sequence of ndarray of int32, (n_features, order)
            One array per order, with one conjunction per row.

        Returns
        -------
        csr_matrix of int8, (n_rows, n_features)
            1 where the conjunction is present in the row, with the columns in the order of `features`.
        """
        return match_conjunctions(self.rows, features, self.memory)

    def name(self, feature: Sequence[int]) -> str:
        """Return a conjunction as ``a & b``.

        Parameters
        ----------
        feature : sequence of int
            Column indices. The negative number ``~column`` stands for a column that must be absent.
        """
        return name_conjunction(feature, self.names)


class Shares(NamedTuple):
    """Division of the memory limit.

    Attributes
    ----------
    store : int or None
        Bytes for the occurrences of survivors, for each of two orders.
    places : int
        Number of occurrences of single columns that are found at a time.
    work : int
        Work of one job.
    weights : tuple of int
        Work per candidate, and per occurrence of the extended conjunction.
    """

    store: int | None
    places: int
    work: int
    weights: tuple[int, int]


class PolynomialSearch:
    """A search for conjunctions, which extends the conjunctions kept at each order by one column.

    Columns are renumbered from rare to frequent; infrequent columns are left out.
    """

    def __init__(self, space: PolynomialSpace, violations: Violations, threshold: float, degree: int) -> None:
        self._space = space
        self._violations = violations
        self._threshold = threshold
        self._degree = degree
        self._columns = np.zeros(0, dtype=np.int32)
        self._order = 0
        self._levels: list[KeptLevel] = []
        self._store = ArrayStore()
        self._shares = Shares(None, violations.rows.size * space.rows.shape[1], WORK, (1, 0))
        self.share = 1.0

    def grow(self) -> Iterator[Growth]:
        """Count the conjunctions of the next order and yield, in parts, those above the threshold."""
        self._order += 1
        if self._order == 1:
            yield self._start()
            return
        old_levels, self._levels = self._levels, []
        old_store, self._store = self._store, ArrayStore(self._shares.store)
        try:
            tasks = self._within_budget(self._plan(old_levels))
            n_together = 1 if self._space.client is None or self._space.memory.is_limited else SENT_TOGETHER
            groups = [tasks[begin : begin + n_together] for begin in range(0, len(tasks), n_together)]
            counting = ConjunctionCounting(
                self._rows,
                self._columns,
                self._violations.n_counters,
                self._threshold,
                self._order < self._degree,
                self._sifting() if self._space.memory.is_limited else None,
            )
            what = f"counting conjunctions of order {self._order}"
            for parts in track(self._spread(counting, groups), what, total=len(groups), unit="parts"):
                # Data on disk are not also held in memory while the next parts are counted.
                parts.reverse()
                while parts:
                    growth, level = parts.pop()
                    if level is not None:
                        self._levels.append(keep_level(level, self._store))
                    del level
                    yield growth
        finally:
            old_store.close()
            self._space.memory.trim()

    def _spread(
        self, counting: ConjunctionCounting, groups: Sequence[Sequence[LevelSpan]]
    ) -> Iterator[list[GrownLevel]]:
        """Count groups of tasks in threads or on a cluster; yield the results in order."""
        if self._space.client is not None:
            yield from iter_jobs(counting.count, map(cut, groups), client=self._space.client)
            return
        n_jobs = self._space.n_jobs
        n_at_once = n_jobs if self._space.memory.is_limited else JOBS_AT_ONCE * n_jobs
        for begin in range(0, len(groups), n_at_once):
            batch = groups[begin : begin + n_at_once]
            yield from map_jobs(lambda group: counting.count(cut(group)), batch, n_jobs=n_jobs)
            if n_jobs > 1:
                # Each thread keeps memory of its own.
                self._space.memory.trim()

    @property
    def n_bytes(self) -> tuple[int, int]:
        """Bytes of the data for the next order, in memory and on disk."""
        return self._store.n_bytes, self._store.n_bytes_on_disk

    def close(self) -> None:
        """Delete the data for the next order."""
        self._levels = []
        self._store.close()

    def _start(self) -> Growth:
        """Count single columns, and build rows that contain only the frequent ones, renumbered."""
        rows, n_rows = self._space.rows, len(self._violations.rows)
        needed = bytes_to_count(rows, self._violations)
        what = f"counts of {rows.shape[1]:,} columns in {n_rows:,} rows"
        self._space.memory.require(what, needed, remedy="fewer columns")
        singles = Singles(rows, self._violations, self._threshold)
        self._columns = singles.columns
        if self._degree > 1:
            if self._space.memory.is_limited:
                self._shares = self._share_out(singles)
            self._store = ArrayStore(self._shares.store)
            self._rows = singles.write_rows()
            for level in singles.levels(self._rows, self._shares.places):
                self._levels.append(keep_level(weigh(level, self._rows), self._store))
        self._space.memory.trim()
        features = self._columns[:, np.newaxis]
        return Growth(features, singles.counts, singles.n_candidates, singles.n_instances, len(features))

    def _share_out(self, singles: Singles) -> Shares:
        """Divide the remaining memory, or raise an error if the limit is too small.

        Jobs get half of this memory, or more if the largest job needs more. All jobs have about the same
        amount of work, apart from the last conjunction of each.
        """
        memory, n_jobs, n_counters = self._space.memory, self._space.n_jobs, self._violations.n_counters
        of_feature = FEATURE_BYTES + 24 * (self._degree + n_counters)
        of_filter = FILTER_BYTES if self._space.filter_memory else 0
        weights = CANDIDATE_BYTES + of_filter + of_feature // (int(self._threshold) + 1), PLACE_BYTES
        largest = singles.largest_work(weights)
        scratch = (SCRATCH_BYTES + 4 * n_counters) * len(self._columns)
        # Memory freed by threads is returned after their jobs; the calling thread reuses it.
        n_jobs = n_jobs if n_jobs == 1 else 2 * n_jobs
        least = n_jobs * (largest + largest // 4 + 1 + scratch)
        needed = singles.n_bytes + max(least, singles.n_bytes_to_start)
        memory.require(f"{len(self._violations.rows):,} rows that are searched", needed)
        free = memory.free - singles.n_bytes
        for_jobs = min(max(least, free // 2), n_jobs * (largest + WORK * weights[0] + scratch))
        work = for_jobs // n_jobs - scratch - largest
        return Shares((free - for_jobs) // 2, for_jobs // BYTES_TO_FIND, work, weights)

    def _plan(self, levels: Sequence[KeptLevel]) -> list[LevelSpan]:
        """Divide conjunctions into ranges with similar numbers of candidates, for any number of threads."""
        sifting = self._sifting()
        admitted = [EVERYTHING] * len(levels)
        if sifting is not None and not self._space.memory.is_limited:
            n_met = sum(int(load(kept.n_met)[-1]) for kept in levels)
            admitted = sifting.admit([partial(load_level, kept) for kept in levels], n_met)
        return [
            LevelSpan(kept, span, allowed, n_met)
            for kept, allowed in zip(levels, admitted, strict=True)
            for span, n_met in divide(kept, self._shares.work, self._shares.weights)
        ]

    def _sifting(self) -> Sifting | None:
        memory = self._space.filter_memory
        if not memory:
            return None
        return Sifting(self._rows, len(self._columns), self._violations.n_counters, self._threshold, memory)

    def _within_budget(self, tasks: list[LevelSpan]) -> list[LevelSpan]:
        """Return as many of the first tasks as the budget allows, and record their fraction of all work."""
        n_met = np.cumsum([task.n_met for task in tasks], dtype=np.int64)
        if self._space.budget is None or len(tasks) == 0 or n_met[-1] <= self._space.budget:
            self.share = 1.0
            return tasks
        n_kept = max(1, int(np.searchsorted(n_met, self._space.budget, side="right")))
        self.share = float(n_met[n_kept - 1] / n_met[-1])
        return tasks[:n_kept]


def name_conjunction(feature: Sequence[int], names: Sequence[str] | None) -> str:
    """Return a conjunction of columns as ``a & b``; columns without names are ``x0``, ``x1``, ...

    The number ``~column`` stands for a column that must be absent, as in ``a & not b``.
    """
    return " & ".join(merge_intervals(_name_literal(item, names) for item in feature))


def name_conjunctions(conjunctions: Sequence[Sequence[int]], names: Sequence[str]) -> list[str]:
    """Return a different name for each conjunction.

    Conjunctions of conditions on the same number may have equal merged conditions, such as ``a >= 30``. All
    but the first of them are named by their columns, as in ``a >= 20 & a >= 30``.
    """
    found: list[str] = []
    taken: set[str] = set()
    for each in conjunctions:
        name = name_conjunction(each, names)
        if name in taken:
            name = " & ".join(_name_literal(item, names) for item in each)
        found.append(name)
        taken.add(name)
    return found


def _name_literal(item: int, names: Sequence[str] | None) -> str:
    column = ~item if item < 0 else item
    name = f"x{column}" if names is None else names[column]
    return f"not {name}" if item < 0 else name


def match_conjunctions(
    rows: csr_matrix, features: Sequence[IntArray], memory: Memory | None = None
) -> csr_matrix:
    """Return where conjunctions are present, as a binary matrix with one column per conjunction.

    `features` has an array for each order with one conjunction per row.
    """
    memory, n_features = memory or Memory(), sum(map(len, features))
    what = f"{n_features:,} selected conjunctions"
    memory.require(what, _trie_bytes(features) + rows.indptr.nbytes)
    trie = make_trie(features)
    degree = max((each.shape[1] for each in features), default=1)
    path, at = np.zeros(degree + 1, dtype=np.int64), np.zeros(degree + 1, dtype=np.int64)
    indptr = np.zeros(rows.shape[0] + 1, dtype=np.int64)
    matches = ConjunctionMatches(np.zeros(0, dtype=np.int32), path, at)
    match_rows(trie, rows.indptr, rows.indices, indptr[1:], matches)
    np.cumsum(indptr, out=indptr)
    memory.require(
        f"{what} and their occurrences",
        _trie_bytes(features) + 2 * indptr.nbytes + MATCH_BYTES * int(indptr[-1]),
    )
    matches = ConjunctionMatches(np.empty(indptr[-1], dtype=np.int32), path, at)
    if indptr[-1]:
        match_rows(trie, rows.indptr, rows.indices, indptr[:-1].copy(), matches)
    present = np.ones(indptr[-1], dtype=np.int8)
    matrix = csr_matrix((present, matches.numbers, indptr), shape=(rows.shape[0], n_features))
    matrix.sort_indices()
    return matrix


def make_trie(features: Sequence[IntArray]) -> ConjunctionTrie:
    """Return a trie of features, given as an array for each order."""
    size, n_slots = sum(each.size for each in features), _count_slots(features)
    trie = ConjunctionTrie(
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


def _count_slots(features: Sequence[IntArray]) -> int:
    return 1 << (2 * sum(each.size for each in features) + 1).bit_length()


def _trie_bytes(features: Sequence[IntArray]) -> int:
    return SLOT_BYTES * _count_slots(features) + NODE_BYTES * sum(each.size for each in features)
