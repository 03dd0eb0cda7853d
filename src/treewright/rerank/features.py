"""Features of candidate dependency trees: mined subtrees, mined conjunctions, and templates."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from treewright._typing import Count, FloatArray, IntArray, Integers, Keys
from treewright.checkpoint import Checkpoint
from treewright.data.arcs import ArcEncoder, templates_of
from treewright.data.deptree import DepTree
from treewright.data.plain_words import as_sentence
from treewright.data.vocab import Vocabulary
from treewright.mining.gradient import GradientMiner
from treewright.mining.occurrences import ArcFeatures
from treewright.mining.patterns import Patterns
from treewright.mining.polynomial import PolynomialSpace, match_conjunctions
from treewright.mining.problem import Problem
from treewright.mining.reports import IterationReport, Mined, OrderReport
from treewright.mining.space import FeatureSpace
from treewright.mining.subtree import SubtreeSpace, describe_subtree, name_subtree
from treewright.model import Array, ListOf, Model, Submodel, Value, expect, is_within, saved
from treewright.native.mining.subtrees import N_DEPTHS
from treewright.progress import Message, filtered
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.templates import TemplateFeatures
from treewright.scale import Client


class SelectedRows(NamedTuple):
    """The matrix of the selected features of candidates.

    Features with the same number in `groups` share a column; without groups, each feature has its own.
    """

    matrix: csr_matrix
    groups: Integers | None = None

    def expanded(self) -> csr_matrix:
        """Return a matrix with a column for each feature."""
        return self.matrix if self.groups is None else self.matrix[:, self.groups]


class ListFeatures(Protocol):
    """Features of the candidates in lists."""

    def select(
        self,
        lists: CandidateLists,
        problem: Problem,
        *,
        checkpoint: Checkpoint | None,
        client: Client | None = None,
    ) -> SelectedRows:
        """Select features for a learning problem; return the feature matrix of the candidates.

        With a client, counting runs on its cluster.
        """

    def keep(self, columns: Integers) -> None:
        """Keep only these features, renumbered in this order."""

    def transform(self, lists: CandidateLists) -> csr_matrix:
        """Return the feature matrix of candidates, without features that all candidates of a list share."""

    def score(self, lists: CandidateLists, coef: FloatArray) -> FloatArray:
        """Return the sum of the weights of the features that `transform` returns for each candidate."""

    def texts(self, tree: DepTree, columns: Sequence[int]) -> list[str]:
        """Return features of a tree as readable text."""

    def sentences(self, tree: DepTree, columns: Sequence[int]) -> list[str]:
        """Return features of a tree as English sentences."""

    def named_words(self, tree: DepTree, columns: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the words (not the tags) in features of a tree, without duplicates."""

    def places(self, tree: DepTree) -> dict[int, list[int]]:
        """Return the selected features of a tree, each with the words whose arcs it involves."""


KEYS = Array("u", is_increasing=True)
ENCODER = Value(
    encode=lambda found: [found.words.strings, found.tags.strings, found.column],
    decode=lambda values: ArcEncoder(Vocabulary(values[0]), Vocabulary(values[1]), column=values[2]),
)


class SubtreeFeatures(Model):
    """Subtree features, selected by gradient mining.

    Parameters
    ----------
    miner : GradientMiner, optional
        The feature selection algorithm.
    copies : int, optional
        Maximum number of equivalent features per mining round (features that distinguish the same trees).
    filter_memory : int, optional
        Memory of the Bloom filter in bytes during mining.
    memory_limit : int, optional
        Memory limit in bytes during mining.
    n_jobs : int
        Number of threads (-1: all processors).
    """

    fields = saved(encoder=ENCODER, keys=KEYS, features=ListOf(Array("i", 2)))
    unsaved = ("miner", "copies", "filter_memory", "memory_limit", "n_jobs")

    def __init__(
        self,
        miner: GradientMiner | None = None,
        *,
        copies: int | None = None,
        filter_memory: int | None = None,
        memory_limit: int | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.miner = miner
        self.copies = copies
        self.filter_memory = filter_memory
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def select(
        self,
        lists: CandidateLists,
        problem: Problem,
        *,
        checkpoint: Checkpoint | None,
        client: Client | None = None,
    ) -> SelectedRows:
        """Select features by mining; return the feature matrix of the candidates."""
        assert self.miner is not None
        encoder = ArcEncoder.from_trees(lists.trees)
        space = SubtreeSpace(
            lists.trees,
            lists.heads,
            encoder=encoder,
            copies=self.copies,
            n_jobs=self.n_jobs,
            client=client,
            filter_memory=self.filter_memory,
            memory_limit=self.memory_limit,
        )
        mined = _mine(self.miner, space, problem, checkpoint)
        self.encoder = encoder
        features = list(mined.features.values())
        self._set(*_only_used(space.keys, features))
        if mined.groups is None:
            return SelectedRows(space.match(features))
        _, firsts = np.unique(mined.groups, return_index=True)
        return SelectedRows(space.match(_take(features, np.sort(firsts))), _rank(mined.groups))

    def keep(self, columns: Integers) -> None:
        """Keep only these features."""
        self._set(*_only_used(self.keys, _take(self.features, columns)))

    def _set(self, keys: Keys, features: list[IntArray]) -> None:
        self.keys, self.features = keys, features
        self._patterns: Patterns | None = None

    def transform(self, lists: CandidateLists) -> csr_matrix:
        """Return the feature matrix of candidates, without features that all candidates of a list share."""
        return self._space(lists).find(self._prepared)

    def score(self, lists: CandidateLists, coef: FloatArray) -> FloatArray:
        """Return the sum of the weights of the features that `transform` returns for each candidate."""
        return self._space(lists).score(self._prepared, coef)

    def _space(self, lists: CandidateLists) -> SubtreeSpace:
        return SubtreeSpace(
            lists.trees, lists.heads, encoder=self.encoder, patterns=self._prepared, n_jobs=self.n_jobs
        )

    @property
    def _prepared(self) -> Patterns:
        """The features in a form for matching, prepared on first use."""
        if self._patterns is None:
            self._patterns = Patterns(self.keys, self.features)
        return self._patterns

    def texts(self, tree: DepTree, columns: Sequence[int]) -> list[str]:
        """Return features in the notation ``saw → man [man → with]``."""
        return [self.text(column) for column in columns]

    def sentences(self, tree: DepTree, columns: Sequence[int]) -> list[str]:
        """Return features as English sentences."""
        return [
            describe_subtree(self._feature(column).tolist(), self.keys, self.encoder) for column in columns
        ]

    def named_words(self, tree: DepTree, columns: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the words (not the tags) in features."""
        return [self.words(column) for column in columns]

    def places(self, tree: DepTree) -> dict[int, list[int]]:
        """Return the features of a tree, each with the words that its arcs lead to."""
        arcs = ArcFeatures(tree, self.encoder, self.keys)
        matched = {
            column: arcs.match_subtree(codes)
            for column, codes in arcs.candidates(self.features, n_depths=N_DEPTHS)
        }
        return {column: words for column, words in matched.items() if words}

    def text(self, column: int) -> str:
        """Return a feature in the notation ``saw → man [man → with]``."""
        return name_subtree(self._feature(column).tolist(), self.keys, self.encoder)

    def words(self, column: int) -> tuple[str, ...]:
        """Return the words (not the tags) in a feature, without duplicates."""
        numbers = self._feature(column) // N_DEPTHS
        found = [word for number in numbers for word in self.encoder.words_of(int(self.keys[number]))]
        return tuple(dict.fromkeys(found))

    def _feature(self, column: int) -> IntArray:
        for each in self.features:
            if column < len(each):
                feature: IntArray = each[column]
                return feature
            column -= len(each)
        raise IndexError(column)

    @property
    def n_templates(self) -> int:
        """Number of distinct templates; a template is a tree shape with the template of each arc."""
        kinds = 0
        for each in self.features:
            numbers, depths = np.divmod(each, N_DEPTHS)
            templates = templates_of(self.keys)[numbers]
            kinds += len(np.unique(templates * N_DEPTHS + depths, axis=0))
        return kinds

    def check_fitted_state(self) -> None:
        """Check that features are trees of known arc features."""
        for codes in self.features:
            expect(is_within(codes, len(self.keys) * N_DEPTHS), "features of known arc features")
            depths = codes % N_DEPTHS
            expect(depths.shape[1] <= N_DEPTHS, f"features of at most {N_DEPTHS} arcs")
            is_sound = (depths[:, 0] == 0).all() and (np.diff(depths, axis=1) <= 1).all()
            expect(is_sound, "arcs in depth-first order")

    def restore(self) -> None:
        """Rebuild the matcher of the features."""
        self._set(self.keys, self.features)


class ConjunctionFeatures(Model):
    """Conjunctions of the arc features of whole trees, selected by gradient mining.

    Parameters
    ----------
    miner : GradientMiner, optional
        The feature selection algorithm.
    budget : int, optional
        Maximum number of candidate features that are counted per order.
    filter_memory : int, optional
        Memory of the Bloom filter in bytes during mining.
    n_jobs : int
        Number of threads (-1: all processors).

    Attributes
    ----------
    coverage : str
        Fraction of each order that was counted, if the budget did not allow all of it.
    """

    fields = saved(encoder=ENCODER, keys=KEYS, features=ListOf(Array("i", 2, low=0)), coverage=Value(str))
    unsaved = ("miner", "budget", "filter_memory", "n_jobs")

    def __init__(
        self,
        miner: GradientMiner | None = None,
        *,
        budget: int | None = None,
        filter_memory: int | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.miner = miner
        self.budget = budget
        self.filter_memory = filter_memory
        self.n_jobs = n_jobs
        self.coverage = ""

    def select(
        self,
        lists: CandidateLists,
        problem: Problem,
        *,
        checkpoint: Checkpoint | None,
        client: Client | None = None,
    ) -> SelectedRows:
        """Select conjunctions by mining; return the feature matrix of the candidates."""
        assert self.miner is not None
        self.encoder = ArcEncoder.from_trees(lists.trees)
        self.keys, rows = basic_rows(lists, self.encoder)
        frequent = np.flatnonzero(np.bincount(rows.indices, minlength=len(self.keys)) > self.miner.threshold)
        self.keys, rows = self.keys[frequent], rows[:, frequent]
        space = PolynomialSpace(
            rows, n_jobs=self.n_jobs, client=client, filter_memory=self.filter_memory, budget=self.budget
        )
        mined = _mine(self.miner, space, problem, checkpoint)
        self.coverage = _describe_coverage(mined)
        self.features = list(mined.features.values())
        return SelectedRows(match_conjunctions(rows, self.features))

    def keep(self, columns: Integers) -> None:
        """Keep only these conjunctions."""
        self.features = _take(self.features, columns)

    def transform(self, lists: CandidateLists) -> csr_matrix:
        """Return the matrix of the selected conjunctions of each candidate."""
        _, rows = basic_rows(lists, self.encoder, self.keys)
        return match_conjunctions(rows, self.features)

    def score(self, lists: CandidateLists, coef: FloatArray) -> FloatArray:
        """Return the sum of the weights of the conjunctions of each candidate."""
        return np.asarray(self.transform(lists) @ coef)

    def texts(self, tree: DepTree, columns: Sequence[int]) -> list[str]:
        """Return conjunctions in the notation ``saw → man & man → with``."""
        return [" & ".join(map(self.encoder.name, keys)) for keys in self._keys_of(columns)]

    def sentences(self, tree: DepTree, columns: Sequence[int]) -> list[str]:
        """Return conjunctions as English sentences."""
        return [as_sentence("; and ".join(map(self.encoder.say, keys))) for keys in self._keys_of(columns)]

    def named_words(self, tree: DepTree, columns: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the words (not the tags) in conjunctions."""
        return [
            tuple(dict.fromkeys(word for key in keys for word in self.encoder.words_of(key)))
            for keys in self._keys_of(columns)
        ]

    def places(self, tree: DepTree) -> dict[int, list[int]]:
        """Return the conjunctions of a tree, each with the words whose arcs have one of its arc features."""
        arcs = ArcFeatures(tree, self.encoder, self.keys)
        return {
            column: sorted({word for item in items for word in arcs.having(item)})
            for column, items in arcs.candidates(self.features)
        }

    def _keys_of(self, columns: Sequence[int]) -> list[list[int]]:
        flat = [feature for each in self.features for feature in each.tolist()]
        return [[int(self.keys[item]) for item in flat[column]] for column in columns]

    def check_fitted_state(self) -> None:
        """Check that conjunctions consist of known arc features."""
        for items in self.features:
            expect(is_within(items, len(self.keys)), "conjunctions of known arc features")


class HandFeatures(Model):
    """Features from hand-written templates.

    Parameters
    ----------
    min_count : int
        Minimum number of lists in which a feature must distinguish candidates.
    """

    fields = saved(templates_=Submodel(TemplateFeatures))

    def __init__(self, *, min_count: Count = 3) -> None:
        self.min_count = min_count

    def select(
        self,
        lists: CandidateLists,
        problem: Problem,
        *,
        checkpoint: Checkpoint | None,
        client: Client | None = None,
    ) -> SelectedRows:
        """Take all features that are frequent enough; return the feature matrix of the candidates."""
        self.templates_ = TemplateFeatures(min_count=self.min_count).fit(lists)
        return SelectedRows(self.templates_.transform(lists))

    def keep(self, columns: Integers) -> None:
        """Keep only these features."""
        self.templates_.keys_ = self.templates_.keys_[columns]

    def transform(self, lists: CandidateLists) -> csr_matrix:
        """Return the feature matrix of candidates, without features that all candidates of a list share."""
        return self.templates_.transform(lists)

    def score(self, lists: CandidateLists, coef: FloatArray) -> FloatArray:
        """Return the sum of the weights of the features that `transform` returns for each candidate."""
        return np.asarray(self.transform(lists) @ coef)

    def texts(self, tree: DepTree, columns: Sequence[int]) -> list[str]:
        """Return features in the notation ``head saw, modifiers on its right NN``."""
        described = self.templates_.describe(tree)
        return [described[column] for column in columns]

    def sentences(self, tree: DepTree, columns: Sequence[int]) -> list[str]:
        """Return features as English sentences."""
        located = self.templates_.locate(tree)
        return [located[column].sentence for column in columns]

    def named_words(self, tree: DepTree, columns: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the words (not the tags) in features."""
        located = self.templates_.locate(tree)
        return [located[column].words for column in columns]

    def places(self, tree: DepTree) -> dict[int, list[int]]:
        """Return the features of a tree, each with the words that its arcs lead to."""
        return {column: found.arcs for column, found in self.templates_.locate(tree).items()}


def basic_rows(
    lists: CandidateLists, encoder: ArcEncoder, keys: Keys | None = None
) -> tuple[Keys, csr_matrix]:
    """Return the arc features of each candidate: a row per candidate, a column per key.

    By default, there is a key for each arc feature that occurs.
    """
    sizes = [each.size for each in lists.heads]
    numbers = np.repeat(np.arange(len(lists)), sizes)
    heads = np.concatenate([np.zeros(0, dtype=np.int32), *(each.ravel() for each in lists.heads)])
    modifiers = [np.tile(np.arange(1, each.shape[1] + 1), len(each)) for each in lists.heads]
    n_words = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(np.full(len(x), x.shape[1]) for x in lists.heads)]
    )
    sentences = encoder.encode(lists.trees)
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *modifiers])
    indptr, found = encoder.keys(sentences, numbers, heads.astype(np.int64), flat)
    if keys is None:
        keys = np.unique(found)
    columns = np.minimum(np.searchsorted(keys, found), max(0, len(keys) - 1))
    is_known = keys[columns] == found if len(keys) else np.zeros(len(found), dtype=np.bool_)
    ends = np.concatenate([[0], np.cumsum(is_known)])[indptr[np.concatenate([[0], np.cumsum(n_words)])]]
    shape = (lists.n_candidates, len(keys))
    rows = csr_matrix(
        (np.ones(ends[-1], dtype=np.int8), columns[is_known].astype(np.int32), ends), shape=shape
    )
    rows.sum_duplicates()
    rows.data[:] = 1
    return keys, rows


def _mine(
    miner: GradientMiner,
    space: FeatureSpace,
    problem: Problem,
    checkpoint: Checkpoint | None,
) -> Mined:
    """Select features and log each round."""

    def describe(message: Message) -> Message:
        found = message.record
        text = message.text
        if isinstance(found, IterationReport):
            text = (
                f"mining, threshold {found.threshold:g}: {found.n_violators} lists violate the margin, "
                f"{found.n_entered} features added, {found.n_selected} selected"
            )
        elif isinstance(found, OrderReport):
            text = (
                f"mining, order {found.order}: {found.n_candidates} candidate features, "
                f"{found.n_survivors} above the threshold"
            )
        return Message(text, found)

    with filtered(describe):
        return miner.fit(space, problem, checkpoint=checkpoint)


def _take(features: Sequence[IntArray], columns: Integers) -> list[IntArray]:
    """Return selected features, given by ascending indices across all orders."""
    starts = np.cumsum([0, *map(len, features)])
    return [
        each[columns[(columns >= start) & (columns < start + len(each))] - start]
        for each, start in zip(features, starts[:-1], strict=True)
    ]


def _rank(groups: Integers) -> Integers:
    """Return the numbers of groups in the order of their first features."""
    _, firsts, numbers = np.unique(groups, return_index=True, return_inverse=True)
    ranks = np.empty(len(firsts), dtype=np.int64)
    ranks[np.argsort(firsts)] = np.arange(len(firsts))
    found: Integers = ranks[numbers]
    return found


def _only_used(keys: Keys, features: Sequence[IntArray]) -> tuple[Keys, list[IntArray]]:
    """Drop unused arc features; return the kept ones and the features renumbered to match."""
    numbers = [each // N_DEPTHS for each in features]
    used = np.unique(np.concatenate([np.zeros(0, dtype=np.int32), *(each.ravel() for each in numbers)]))
    renumbered = [
        (np.searchsorted(used, number) * N_DEPTHS + each % N_DEPTHS).astype(np.int32)
        for number, each in zip(numbers, features, strict=True)
    ]
    return keys[used], renumbered


def _describe_coverage(mined: Mined) -> str:
    """Describe which fraction of each order was counted, if not all of it."""
    shares: dict[int, float] = {}
    for report in mined.orders:
        shares[report.order] = min(shares.get(report.order, 1.0), report.share)
    return ", ".join(f"{share:.1%} of order {order}" for order, share in shares.items() if share < 1)
