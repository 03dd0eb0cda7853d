"""A linear model over features of candidates."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray, Integers
from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.learn.ranking import AveragedRanker, fit_penalties
from treewright.mining.problem import Problem
from treewright.model import Array, Model, Submodel, expect, saved
from treewright.native.learn.proximal import Alternatives
from treewright.parsing.dependency.reasons import WeighedFeature
from treewright.progress import report
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.features import (
    ConjunctionFeatures,
    HandFeatures,
    ListFeatures,
    SubtreeFeatures,
)
from treewright.scale import Client

MIN_PURITY = 0.3
"""Minimum purity of a feature."""
PURITY_POWER = 4
"""The trust in a feature is its purity raised to this power, because most impure features occur by chance."""
PENALTIES = (100.0, 30.0, 10.0, 3.0)
"""L2 penalties of the log-linear model to choose from."""
LIGHT_SHARE = 0.02
"""Fraction of the total weight that is dropped, lightest features first. The dropped features are a third of
all features and nearly half of those found in trees, but they hardly affect decisions."""
LISTS_AT_ONCE = 100
"""Number of lists whose features are copied at a time, to save memory."""


class LinearScorer(Model):
    """Scores candidates by the weights of their features.

    Parameters
    ----------
    features : ListFeatures
        The features.
    ranker : {"perceptron", "loglinear"}
        Model of the weights. The perceptron ignores the parser's scores, as in the paper; the log-linear
        model learns a correction to them.
    epochs : int
        Number of perceptron passes over the lists.
    mine_with_base : bool
        Add the parser's scores during mining, so that features correct the parser's errors.
    purity : bool
        Drop features of low purity, and trust the others in proportion to a power of their purity.
    light_share : float
        Fraction of the total absolute weight to drop, lightest features first.
    random_state : int
        Seed of the random number generator.
    """

    fields = saved(features=Submodel(SubtreeFeatures, ConjunctionFeatures, HandFeatures), coef=Array("f"))

    def __init__(
        self,
        features: ListFeatures,
        *,
        ranker: str = "loglinear",
        epochs: int = 10,
        mine_with_base: bool = True,
        purity: bool = True,
        light_share: float = LIGHT_SHARE,
        random_state: int = 0,
    ) -> None:
        self.features = features
        self.ranker = ranker
        self.epochs = epochs
        self.mine_with_base = mine_with_base
        self.purity = purity
        self.light_share = light_share
        self.random_state = random_state
        self._choices: list[FloatArray] = []

    def check_fitted_state(self) -> None:
        """Check that each subtree feature has a weight."""
        if isinstance(self.features, SubtreeFeatures):
            n_features = sum(map(len, self.features.features))
            expect(len(self.coef) == n_features, "a weight for each feature")

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.coef)

    def fit(
        self,
        lists: CandidateLists,
        problem: Problem,
        *,
        checkpoint: Checkpoint | None,
        client: Client | None = None,
    ) -> Self:
        """Train on lists with known target candidates; with a client, features are counted on its cluster."""
        mined = problem if self.mine_with_base else problem.without_base_scores()
        selected = self.features.select(lists, mined, checkpoint=checkpoint, client=client)
        if selected.groups is not None and self.ranker == "perceptron" and not self.purity:
            self._fit_groups(selected.matrix, selected.groups, problem)
            return self
        rows = selected.expanded()
        del selected
        kept, trust = np.arange(rows.shape[1]), None
        if self.purity:
            purity = measure_purity(rows, problem)
            kept = np.flatnonzero(purity >= MIN_PURITY)
            trust = purity[kept] ** PURITY_POWER
            self.features.keep(kept)
            report(f"{len(kept)} of {len(purity)} features reach the minimum purity")
        rows, alternatives = take_columns(rows, kept, problem.alternatives)
        self._choices = []
        if self.ranker == "perceptron":
            perceptron = self._train_perceptron(rows, alternatives, trust)
            self._choices.append(drop_lightest(perceptron.coef_, self.light_share))
        else:
            rankers = fit_penalties(rows, alternatives, PENALTIES, trust=trust)
            del rows
            for ranker in rankers:
                self._choices.append(drop_lightest(ranker.coef_, self.light_share))
                report(f"log-linear model with penalty {ranker.penalty:g}: trained")
        self.coef = self._choices[0]
        return self

    def _fit_groups(self, rows: csr_matrix, groups: Integers, problem: Problem) -> None:
        """Train a perceptron in which a column stands for all features of a group.

        These features always have the same weight. The column has their sum, so each update changes it by
        their number.
        """
        sizes = np.bincount(groups, minlength=rows.shape[1]).astype(np.float64)
        rows, alternatives = take_columns(rows, np.arange(rows.shape[1]), problem.alternatives)
        perceptron = self._train_perceptron(rows, alternatives, sizes)
        self._choices = [drop_lightest((perceptron.coef_ / sizes)[groups], self.light_share)]
        self.coef = self._choices[0]

    def _train_perceptron(
        self, rows: csr_matrix, alternatives: Alternatives, trust: FloatArray | None
    ) -> AveragedRanker:
        bare = alternatives._replace(base_scores=np.zeros_like(alternatives.base_scores))
        perceptron = AveragedRanker(epochs=self.epochs, random_state=self.random_state).fit(
            rows, bare, trust=trust
        )
        report(f"averaged perceptron: {perceptron.n_updates_[-1]} updates in the last epoch")
        return perceptron

    def trials(self, lists: CandidateLists) -> list[FloatArray]:
        """Return the scores of candidates, in one column, for each set of weights to choose from."""
        rows = self.features.transform(lists)
        return [(rows @ coef)[:, np.newaxis] for coef in self._choices]

    def choose(self, number: int) -> None:
        """Keep the weights of one trial, and only features with a non-zero weight."""
        kept = np.flatnonzero(self._choices[number])
        self.features.keep(kept)
        self.coef = self._choices[number][kept]
        self._choices = []

    def score(self, lists: CandidateLists) -> FloatArray:
        """Return the score of each candidate, in one column."""
        return self.features.score(lists, self.coef)[:, np.newaxis]

    def differences(self, lists: CandidateLists, one: int, other: int) -> list[WeighedFeature]:
        """Return the features that only one of two candidates has, with their weights, largest first."""
        rows = self.features.transform(lists)
        found = []
        for rank, (number, against, sign) in enumerate(((one, other, 1.0), (other, one, -1.0)), start=1):
            columns = np.setdiff1d(_columns(rows, number), _columns(rows, against))
            columns = columns[self.coef[columns] != 0]
            tree = lists.candidate(number)
            named = self._weighed(tree, columns.tolist(), self.features.places(tree))
            found += [each._replace(weight=sign * each.weight, rank=rank) for each in named]
        return sorted(found, key=lambda each: (-abs(each.weight), each.text))

    def arc_reasons(self, tree: DepTree, n: int) -> list[list[WeighedFeature]]:
        """Return up to `n` features that involve each arc of a tree, largest weight first."""
        places = {column: arcs for column, arcs in self.features.places(tree).items() if self.coef[column]}
        chosen: list[list[int]] = [[] for _ in tree.words]
        for column in sorted(places, key=lambda column: (-abs(self.coef[column]), column)):
            for word in places[column]:
                if len(chosen[word - 1]) < n:
                    chosen[word - 1].append(column)
        columns = sorted({column for arc in chosen for column in arc})
        named = dict(zip(columns, self._weighed(tree, columns, places), strict=True))
        return [[named[column] for column in arc] for arc in chosen]

    def _weighed(
        self, tree: DepTree, columns: Sequence[int], places: Mapping[int, Sequence[int]]
    ) -> list[WeighedFeature]:
        """Return features of a tree with their weights; `places` gives the arcs of each feature."""
        return [
            WeighedFeature(text, words, float(self.coef[column]), sentence, tuple(places.get(column, ())))
            for column, text, words, sentence in zip(
                columns,
                self.features.texts(tree, columns),
                self.features.named_words(tree, columns),
                self.features.sentences(tree, columns),
                strict=True,
            )
        ]


def drop_lightest(coef: FloatArray, share: float = LIGHT_SHARE) -> FloatArray:
    """Set the smallest weights to zero, up to this fraction of the total absolute weight."""
    order = np.argsort(np.abs(coef), kind="stable")
    mass = np.cumsum(np.abs(coef[order]))
    # Without features, the cumulative sum is empty.
    dropped = order[: np.searchsorted(mass, share * mass[-1:].sum(), side="right")]
    kept = coef.copy()
    kept[dropped] = 0
    return kept


def measure_purity(rows: csr_matrix, problem: Problem) -> FloatArray:
    """Return the purity of each feature, from 0 to 1: how consistently it favours correct or wrong trees.

    For each list, the correct row is compared with the wrong row that has the highest base score.
    """
    alternatives = problem.alternatives
    _, worst = problem.assess(np.zeros((problem.n_rows, 1)))
    lists = np.flatnonzero(worst >= 0)
    right, wrong = alternatives.rows[alternatives.indptr[lists + 1] - 1], alternatives.rows[worst[lists]]
    n_for, n_against = np.zeros((2, rows.shape[1]), dtype=np.int64)
    for begin in range(0, len(lists), LISTS_AT_ONCE):
        some = slice(begin, begin + LISTS_AT_ONCE)
        difference = rows[right[some]].astype(np.int8) - rows[wrong[some]].astype(np.int8)
        for counts, sign in ((n_for, 1), (n_against, -1)):
            counts += np.bincount(difference.indices[difference.data == sign], minlength=len(counts))
    purity: FloatArray = np.abs(n_for - n_against) / np.maximum(n_for + n_against, 1)
    return purity


def take_columns(
    rows: csr_matrix, columns: Integers, alternatives: Alternatives
) -> tuple[csr_matrix, Alternatives]:
    """Return selected columns of a binary matrix, with its rows in the order of `alternatives`.

    The result overwrites `rows`, because memory may not suffice for a copy.
    """
    numbers = np.full(rows.shape[1], -1, dtype=rows.indices.dtype)
    numbers[columns] = np.arange(len(columns))
    indptr, n_done = np.zeros_like(rows.indptr), 0
    for begin, end in pairwise([*alternatives.indptr[:-1:LISTS_AT_ONCE].tolist(), rows.shape[0]]):
        some = rows[alternatives.rows[begin:end]]
        found = numbers[some.indices]
        n_before = np.concatenate([[0], np.cumsum(found >= 0)])
        indptr[begin + 1 : end + 1] = n_done + n_before[some.indptr[1:]]
        rows.indices[n_done : indptr[end]] = found[found >= 0]
        n_done = int(indptr[end])
    shape = (rows.shape[0], len(columns))
    taken = csr_matrix((rows.data[:n_done], rows.indices[:n_done], indptr), shape=shape)
    return taken, alternatives._replace(rows=np.arange(rows.shape[0]))


def _columns(rows: csr_matrix, number: int) -> np.ndarray:
    columns: np.ndarray = rows.indices[rows.indptr[number] : rows.indptr[number + 1]]
    return columns
