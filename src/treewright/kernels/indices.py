"""Indices of forests for one kind of fragment, to compare trees with a whole forest or in pairs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, Integers
from treewright.data.forest import Forest, Ints
from treewright.errors import InputError
from treewright.kernels.dag import CHUNK, Dag, Translation, find_subtrees, is_first
from treewright.native.kernels.bags import Postings, Sorted, add_bags, evaluate_bags
from treewright.native.kernels.dags import Bags, count_inner
from treewright.native.kernels.ptk import (
    MOST_MATCHES,
    ChildMatches,
    Decays,
    PartialRows,
    PartialScratch,
    add_partial_trees,
)
from treewright.native.kernels.sptk import PairScratch, Similarity, SmoothedTrees, evaluate_partial_trees
from treewright.native.kernels.sst import (
    MatchedSubtrees,
    SubsetRows,
    SubsetScratch,
    add_subset_trees,
    evaluate_subset_trees,
)
from treewright.scale import one_blas_thread

FIRST_VALUES = 1 << 12
"""Initial size of the array for the values of a pair of trees."""
SHORT_LIST = 1 << 16
"""Minimum length of the list of touched values, unless there are fewer values."""


class TreeIndex(ABC):
    """An index of a forest, for unnormalised comparisons of its trees with each other and with others."""

    def __init__(self, forest: Forest, *, n_together: int = CHUNK) -> None:
        self.dag = Dag(forest, n_together=n_together)
        self._own_side: Any = None

    def translate(self, others: "TreeIndex") -> Any:  # noqa: ANN401
        """Translate the indices of other trees into indices of this forest, for `compare`."""
        if others is not self:
            return self._make_side(others)
        if self._own_side is None:
            self._own_side = self._make_side(self)
        return self._own_side

    @abstractmethod
    def _make_side(self, others: "TreeIndex") -> Any: ...  # noqa: ANN401

    @abstractmethod
    def compare(self, others: "TreeIndex", known: Any, numbers: Integers, is_half: bool) -> FloatArray:  # noqa: ANN401
        """Return the values of other trees, given by their indices, with all trees of this forest.

        If `is_half` is True, the values of a tree start at its own column.
        """

    @abstractmethod
    def evaluate(self, pairs: Integers, *, is_log: bool = False) -> FloatArray:
        """Return the values of pairs of trees, or their logarithms."""


class Side(NamedTuple):
    """Trees to compare with the trees of an index.

    Attributes
    ----------
    numbers : Translation
        Translation of their items into items of the index.
    rows : SubsetRows or PartialRows
        The trees as bags of distinct subtrees, with the numbering of the index.
    sums : tuple of ndarray of int
        For each entry of the bags, the space that all entries before it need.
    """

    numbers: Translation
    rows: Any
    sums: tuple[Integers, ...]

    def most(self, bags: Bags, numbers: Integers) -> list[int]:
        """Return the maximum space that one of the given trees needs."""
        begin, end = bags.indptr[numbers], bags.indptr[numbers + 1]
        return [int((sums[end] - sums[begin]).max(initial=0)) for sums in self.sums]


class SubtreeIndex(TreeIndex):
    """Index of whole subtrees, weighted by the decay to the power of their number of inner nodes."""

    def __init__(self, forest: Forest, *, decay: float, has_bag: bool) -> None:
        super().__init__(forest, n_together=max(1, forest.n_trees))
        counts = np.empty(len(self.dag.symbols), dtype=np.int64)
        count_inner(self.dag.subtrees, counts)
        self._weights: FloatArray = decay ** counts.astype(np.float64)
        self._weights[counts == 0] = decay if has_bag else 0.0

    def _make_side(self, others: TreeIndex) -> Ints:
        return _all(len(self._weights)) if others is self else find_subtrees(self.dag, others.dag)

    def compare(self, others: TreeIndex, known: Ints, numbers: Integers, is_half: bool) -> FloatArray:
        """See `TreeIndex`."""
        out = np.zeros((len(numbers), len(self.dag)))
        add_bags(others.dag.bags, known, self._weights, self._postings, numbers, is_half, out)
        return out

    @cached_property
    def _postings(self) -> Postings:
        return self.dag.postings(self.dag.bags, _all(len(self._weights)), len(self._weights))

    @cached_property
    def _sorted(self) -> Sorted:
        return self.dag.sort_bags(self.dag.bags, _all(len(self._weights)))

    def evaluate(self, pairs: Integers, *, is_log: bool = False) -> FloatArray:
        """See `TreeIndex`."""
        out = np.zeros(len(pairs))
        evaluate_bags(self._sorted, self._weights, pairs, _make_marks(self._sorted.kinds), out)
        return _logarithms(out) if is_log else out


class SubsetIndex(TreeIndex):
    """Index of subset trees, weighted by the decay to the power of their number of productions."""

    def __init__(self, forest: Forest, *, decay: float, has_bag: bool) -> None:
        super().__init__(forest)
        self._decay = float(decay)
        self._has_bag = has_bag

    def _make_side(self, others: TreeIndex) -> Side:
        known, dag, listing = Translation.between(self.dag, others.dag), others.dag, self.dag.listing
        kinds = _look_up(known.productions, dag.productions.numbers)
        edges = _look_up(known.edges, dag.edges.numbers)
        rows = SubsetRows(dag.subtrees.indptr, dag.subtrees.values, kinds, edges, *dag.bags)
        sizes = (listing.end - listing.begin).max(axis=0, initial=0)
        return Side(known, rows, (_add_up(sizes, kinds[dag.bags.ids]),))

    def compare(self, others: TreeIndex, known: Side, numbers: Integers, is_half: bool) -> FloatArray:
        """See `TreeIndex`."""
        dag = self.dag
        out = np.zeros((len(numbers), len(dag)))
        weights = np.full(dag.productions.n_kinds, self._decay)
        bags = others.dag.production_bags
        add_bags(bags, known.numbers.productions, weights, self._postings, numbers, is_half, out)
        if self._has_bag:
            weights = np.full(dag.n_symbols, self._decay)
            bags = others.dag.word_bags
            add_bags(bags, known.numbers.symbols, weights, self._word_postings, numbers, is_half, out)
        (n_values,) = known.most(others.dag.bags, numbers)
        offsets = np.empty(len(known.rows.kinds), dtype=np.int64)
        scratch = SubsetScratch(np.zeros(n_values), offsets, _make_list(n_values))
        add_subset_trees(known.rows, numbers, dag.listing, dag.followers, self._decay, is_half, scratch, out)
        return out

    @cached_property
    def _postings(self) -> Postings:
        n_kinds = self.dag.productions.n_kinds
        return self.dag.postings(self.dag.production_bags, _all(n_kinds), n_kinds)

    @cached_property
    def _word_postings(self) -> Postings:
        return self.dag.postings(self.dag.word_bags, _all(self.dag.n_symbols), self.dag.n_symbols)

    @cached_property
    def _pairwise(self) -> tuple[SubsetRows, Sorted, Sorted]:
        """Subtrees with inner children, unsorted and sorted, and sorted productions of all other subtrees."""
        dag, productions = self.dag, self.dag.productions
        is_tall = np.zeros(productions.n_kinds, dtype=np.bool_)
        owners = np.repeat(productions.numbers, np.diff(dag.subtrees.indptr))
        is_tall[owners[dag.edges.numbers >= 0]] = True
        tall = np.where(_look_up(is_tall, productions.numbers), productions.numbers, -1)
        bags = _keep(dag.bags, tall[dag.bags.ids] >= 0)
        flat = _keep(dag.production_bags, ~is_tall[dag.production_bags.ids])
        rows = SubsetRows(dag.subtrees.indptr, dag.subtrees.values, tall, dag.edges.numbers, *bags)
        return rows, dag.sort_bags(bags, tall), dag.sort_bags(flat, _all(productions.n_kinds))

    @cached_property
    def _sorted_words(self) -> Sorted:
        return self.dag.sort_bags(self.dag.word_bags, _all(self.dag.n_symbols))

    def evaluate(self, pairs: Integers, *, is_log: bool = False) -> FloatArray:
        """See `TreeIndex`."""
        rows, tall, flat = self._pairwise
        single = np.zeros(len(pairs))
        for bags in (flat, self._sorted_words) if self._has_bag else (flat,):
            marks = _make_marks(bags.kinds)
            evaluate_bags(bags, np.full(len(marks), self._decay), pairs, marks, single)
        matched = _make_matched(len(self.dag.symbols), tall.kinds)

        def work(rest: Integers, values: FloatArray, out: FloatArray) -> tuple[int, int]:
            found: tuple[int, int] = evaluate_subset_trees(
                rows, tall, rest, self._decay, is_log, values, matched, out
            )
            return found

        out = _evaluate_all(work, pairs)
        return np.logaddexp(out, _logarithms(single)) if is_log else out + single


class PartialOptions(NamedTuple):
    """The decays of gaps and of depth, and the maximum length of subsequences of children (0: any)."""

    decay: float
    depth_decay: float
    longest: int


class PartialIndex(TreeIndex):
    """Index of partial trees."""

    def __init__(self, forest: Forest, *, options: PartialOptions) -> None:
        super().__init__(forest)
        self._options = options

    def _make_side(self, others: TreeIndex) -> Any:  # noqa: ANN401
        known, dag, blocks = Translation.between(self.dag, others.dag), others.dag, self.dag.blocks
        productions = dag.productions
        rows = PartialRows(
            dag.subtrees.indptr,
            dag.subtrees.values,
            known.symbols[dag.symbols],
            productions.numbers,
            productions.sequences.indptr,
            known.symbols[productions.sequences.values],
            _look_up(known.pairs, dag.pairs[0]),
            *dag.bags,
        )
        symbols = np.where(productions.numbers >= 0, rows.symbols, -1)[dag.bags.ids]
        n_places = blocks.places[blocks.indptr[:, 1:]] - blocks.places[blocks.indptr[:, :-1]] + 1
        sizes = (n_places, np.diff(blocks.indptr, axis=1))
        return Side(known, rows, tuple(_add_up(each.max(axis=0, initial=0), symbols) for each in sizes))

    def compare(self, others: TreeIndex, known: Any, numbers: Integers, is_half: bool) -> FloatArray:  # noqa: ANN401
        """See `TreeIndex`."""
        dag, decays = self.dag, self._decays(False, others.dag)
        out = np.zeros((len(numbers), len(dag)))
        weights = np.full(dag.n_symbols, decays.leaf)
        bags = others.dag.symbol_bags
        add_bags(bags, known.numbers.symbols, weights, self._postings, numbers, is_half, out)
        n_values, n_blocks = known.most(others.dag.bags, numbers)
        scratch = PartialScratch(
            np.zeros(n_values),
            np.empty(len(known.rows.symbols), dtype=np.int64),
            np.zeros(len(dag.order)),
            np.zeros(len(dag.blocks.places), dtype=np.int64),
            np.empty((n_blocks, 2), dtype=np.int64),
            _make_matches(),
            self._make_grid(),
        )
        add_partial_trees(known.rows, numbers, dag.listing, dag.blocks, decays, is_half, scratch, out)
        return out

    @cached_property
    def _postings(self) -> Postings:
        return self.dag.postings(self.dag.symbol_bags, _all(self.dag.n_symbols), self.dag.n_symbols)

    def _decays(self, is_log: bool, others: Dag) -> Decays:
        options = self._options
        # Integers would make Numba compile all functions again.
        decay, depth_decay = float(options.decay), float(options.depth_decay)
        values = np.array([decay, depth_decay, depth_decay * decay**2])
        gap, depth, leaf = (np.log(values) if is_log else values).tolist()
        n_gaps = self._widest + int(np.diff(others.subtrees.indptr).max(initial=1))
        powers = decay ** np.arange(n_gaps + 1, dtype=np.float64)
        # A maximum above the number of children is no limit.
        longest = options.longest if options.longest < self._widest else 0
        return Decays(gap, depth, leaf, longest, is_log, powers)

    @cached_property
    def _widest(self) -> int:
        return int(np.diff(self.dag.subtrees.indptr).max(initial=1))

    def _make_grid(self) -> FloatArray:
        return np.empty((max(1, min(self._options.longest, self._widest)) + 1, self._widest + 1))

    def _similarity(self) -> tuple[Ints, Similarity]:
        """Return the class of each symbol, and the similarities within classes."""
        nothing = np.empty(0, dtype=np.int32)
        return _all(self.dag.n_symbols), Similarity(nothing, np.empty((0, 0), dtype=np.float32))

    @cached_property
    def _pairwise(self) -> tuple[SmoothedTrees, Similarity]:
        dag = self.dag
        classes, similarity = self._similarity()
        # The first value of each subtree is its symbol; its entry in these columns is ignored.
        children = np.where(is_first(dag.subtrees.indptr), 0, dag.subtrees.values)
        child_classes = classes[dag.symbols][children]
        pairs = dag.find_pairs(classes, child_classes)
        heights = dag.find_heights(pairs)
        others = _keep(dag.bags, heights[dag.bags.ids] == 2)
        # The pair of a tag is that of its only child, in the last of its slots.
        own_pairs = pairs[dag.subtrees.indptr[1:] - 1]
        trees = SmoothedTrees(
            dag.subtrees.indptr,
            np.column_stack([children, child_classes, heights[children]]).astype(np.int32),
            dag.symbols,
            *others,
            *dag.sort_pairs(others, pairs),
            dag.sort_bags(_keep(dag.bags, heights[dag.bags.ids] == 1), own_pairs),
            dag.sort_bags(dag.symbol_bags, classes),
        )
        return trees, similarity

    def evaluate(self, pairs: Integers, *, is_log: bool = False) -> FloatArray:
        """See `TreeIndex`."""
        trees, similarity = self._pairwise
        if is_log:
            similarity = similarity._replace(table=_logarithms(similarity.table))
        sizes = np.diff(trees.bag_indptr)
        n_values = int((sizes[pairs[:, 0]] * sizes[pairs[:, 1]]).max(initial=0))
        scratch = PairScratch(
            np.full(n_values, -np.inf if is_log else 0.0),
            _make_list(n_values),
            np.empty((len(trees.symbols), 2), dtype=np.int64),
            np.zeros(len(trees.bag_ids), dtype=np.int64),
            _make_marks(trees.all_symbols.kinds),
            _make_marks(trees.tags.kinds),
            _make_marks(trees.slots),
            _make_matches(),
            self._make_grid(),
        )
        out = np.zeros(len(pairs))
        evaluate_partial_trees(trees, pairs, similarity, self._decays(is_log, self.dag), scratch, out)
        return out


class SmoothedIndex(PartialIndex):
    """Index of partial trees in which similar words match."""

    def __init__(self, forest: Forest, *, options: PartialOptions, words: "Words") -> None:
        super().__init__(forest, options=options)
        self._words = words

    def _similarity(self) -> tuple[Ints, Similarity]:
        labels = self.dag.forest.labels
        numbers = [self._words.numbers.get(label, -1) for label in labels]
        known = np.flatnonzero(np.array(numbers) >= 0)
        rows = np.full(len(labels), -1, dtype=np.int32)
        rows[known] = np.arange(len(known))
        classes = _all(len(labels))
        classes[known] = known[:1]
        return classes, Similarity(rows, self._words.table([numbers[symbol] for symbol in known]))

    def _make_side(self, others: TreeIndex) -> Any:  # noqa: ANN401
        """Return an index of both forests together."""
        if others is self:
            return self
        forest = self.dag.forest.joined(others.dag.forest)
        return SmoothedIndex(forest, options=self._options, words=self._words)

    def compare(self, others: TreeIndex, known: Any, numbers: Integers, is_half: bool) -> FloatArray:  # noqa: ANN401
        """See `TreeIndex`."""
        n_columns = len(self.dag)
        rows = numbers if others is self else numbers + n_columns
        begin = numbers if is_half else np.zeros_like(numbers)
        out = np.zeros((len(numbers), n_columns))
        for line, (row, first) in enumerate(zip(rows.tolist(), begin.tolist(), strict=True)):
            columns = np.arange(first, n_columns)
            out[line, first:] = known.evaluate(np.column_stack([np.full_like(columns, row), columns]))
        return out

    def evaluate(self, pairs: Integers, *, is_log: bool = False) -> FloatArray:
        """See `TreeIndex`."""
        if is_log and (self._pairwise[1].table < 0).any():
            raise InputError("some similarities are negative; expected 0 or more for logarithms")
        return super().evaluate(pairs, is_log=is_log)


class Words(NamedTuple):
    """The index of each word, and the similarities of words: unit vectors or a matrix."""

    numbers: dict[str, int]
    vectors: npt.NDArray[np.float32] | None
    matrix: npt.NDArray[np.float32] | None

    @one_blas_thread
    def table(self, numbers: Sequence[int]) -> npt.NDArray[np.float32]:
        """Return the matrix of the similarities of the given words."""
        if self.matrix is not None:
            return np.ascontiguousarray(self.matrix[np.ix_(numbers, numbers)])
        assert self.vectors is not None
        vectors = self.vectors[list(numbers)]
        return np.ascontiguousarray(vectors @ vectors.T)


def _evaluate_all(
    work: Callable[[Integers, FloatArray, FloatArray], tuple[int, int]], pairs: Integers
) -> FloatArray:
    """Evaluate pairs of trees; allocate more space if a pair needs it."""
    out, values, done = np.zeros(len(pairs)), np.empty(FIRST_VALUES), 0
    while True:
        n, n_values = work(pairs[done:], values, out[done:])
        done += n
        if done == len(pairs):
            return out
        values = np.empty(max(n_values, 2 * len(values)))


def _keep(bags: Bags, is_kept: npt.NDArray[np.bool_]) -> Bags:
    """Return bags with only the kept items."""
    kept = np.concatenate([[0], np.cumsum(is_kept)])
    return Bags(kept[bags.indptr], bags.ids[is_kept], bags.counts[is_kept])


def _all(n: int) -> Ints:
    return np.arange(n, dtype=np.int32)


def _look_up(table: npt.NDArray[Any], numbers: Ints) -> Any:  # noqa: ANN401
    """Return the entries of a table at the given indices, and -1 for negative indices."""
    return np.append(table, -1)[numbers].astype(table.dtype)


def _add_up(sizes: npt.NDArray[np.signedinteger], numbers: Ints) -> Integers:
    """Return the cumulative sizes of items, starting with 0; negative items have the size 0."""
    sums = np.zeros(len(numbers) + 1, dtype=np.int64)
    np.cumsum(np.append(sizes, 0)[numbers], out=sums[1:])
    return sums


def _make_list(n_values: int) -> Integers:
    """Allocate a list of touched values; it is much shorter than a large array of values."""
    return np.empty(min(n_values, max(SHORT_LIST, n_values // 16)), dtype=np.int64)


def _make_marks(kinds: Ints) -> Integers:
    return np.zeros((int(kinds.max(initial=0)) + 1, 2), dtype=np.int64)


def _make_matched(n: int, kinds: Ints) -> MatchedSubtrees:
    offsets, begin, where = np.empty((3, n), dtype=np.int64)
    ticks, last_tick = np.zeros(n, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return MatchedSubtrees(ticks, offsets, begin, where, _make_marks(kinds), last_tick)


def _make_matches() -> ChildMatches:
    places = np.empty((3, MOST_MATCHES), dtype=np.int64)
    gaps, sums = np.empty((MOST_MATCHES, MOST_MATCHES)), np.empty((2, MOST_MATCHES))
    return ChildMatches(places[0], places[1], gaps, places[2], sums[0], sums[1])


def _logarithms(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(values)
