"""Coarse-to-fine pruning of arcs with two first-order models, a small one and a rich one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from treewright._typing import Count, Fraction, NonNegativeInt
from treewright.learn.weights import PackedWeights, average, make_table, pack, table_shift, unpack
from treewright.model import Model, State, expect, saved
from treewright.native.dependency.eisner import EXCLUDED, arc_marginals
from treewright.native.dependency.features import N_EXTRA_ROWS, EncodedSentence
from treewright.native.dependency.pruning import (
    KeptArcs,
    Stage,
    Steps,
    all_arcs,
    choose_arcs,
    filter_arcs,
    filter_scored,
    learn_stage,
    score_arcs,
)
from treewright.parsing.dependency.constraints import FixedHeads, Keep, has_tree, restrict
from treewright.parsing.dependency.features import TEMPLATES, Corpus, TemplateSet, compile_templates, max_keys
from treewright.progress import task
from treewright.scale import Client, map_jobs

N_EPOCHS = 2
COARSE_BITS, FINE_BITS = 20, 22
COARSE_THRESHOLD, COARSE_MAX_HEADS = 3e-4, 16
THRESHOLD, MAX_HEADS = 5e-3, 12
"""Default threshold and default maximum number of heads of the last pruning stage."""
COARSE_RATE, FINE_RATE = 0.1, 0.05
COMPACT = (4, 2.0**-2.5)
"""Number of distinct non-zero magnitudes in compact files, and the smallest relative to the largest."""
NO_CODES = np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class PruningReport:
    """The effect of pruning on held-out sentences."""

    recall: float
    """Percentage of the gold arcs that are kept."""
    n_heads: float
    """Average number of kept heads per word, including gold heads."""

    def __str__(self) -> str:
        return f"{self.n_heads:.2f} heads per word and {self.recall:.2f}% of the gold arcs"


class PrunedFolds(NamedTuple):
    """The result of cross-validated pruning.

    Attributes
    ----------
    arcs : KeptArcs
        The arcs of each sentence that the model of its fold keeps, plus all gold arcs.
    report : PruningReport
        Recall and number of kept heads.
    pruners : list of Pruner
        For each fold, the pruner trained on the other folds; empty unless requested.
    """

    arcs: KeptArcs
    report: PruningReport
    pruners: list["Pruner"]


class Pruner(Model):
    """Prunes arcs by their marginal probability under first-order models.

    Parameters
    ----------
    templates : TemplateSet
        Feature templates.
    threshold : float
        Minimum probability of a head, relative to the best head.
    max_heads : int
        Maximum number of heads per word.
    fine : bool
        Use the rich model as a second stage; otherwise, only the small model prunes.
    single_root : bool
        Whether trees have exactly one root.
    random_state : int
        Seed for the order of the sentences.

    Attributes
    ----------
    coarse_weights_, fine_weights_ : ndarray of float32
        Weights of the small model and of the rich model; the latter is None if `fine` is false.
    stages_ : tuple of Stage
        The models in compiled form.
    """

    fields = saved(
        templates=TEMPLATES,
        coarse_weights_=PackedWeights(is_hashed=True, compact=COMPACT),
        fine_weights_=PackedWeights(is_hashed=True, optional=True, compact=COMPACT),
    )

    def __init__(
        self,
        templates: TemplateSet,
        *,
        threshold: Fraction = THRESHOLD,
        max_heads: Count = MAX_HEADS,
        fine: bool = True,
        single_root: bool = True,
        random_state: NonNegativeInt = 0,
    ) -> None:
        self.templates = templates
        self.threshold = threshold
        self.max_heads = max_heads
        self.fine = fine
        self.single_root = single_root
        self.random_state = random_state

    def fit(self, corpus: Corpus) -> "Pruner":
        """Train on sentences with projective gold trees."""
        return self._fit(corpus, np.arange(corpus.n_sentences))

    def _fit(self, corpus: Corpus, numbers: npt.NDArray[np.int64]) -> "Pruner":
        # Saving rounds the weights; round them now, so that saving does not change decisions.
        weights = [unpack(pack(stage.weights)) for stage in self._train(corpus, numbers)]
        self.coarse_weights_ = weights[0]
        self.fine_weights_ = weights[1] if self.fine else None
        self.restore()
        return self

    def check_fitted_state(self) -> None:
        """Check that there is a rich model if and only if `fine` is true."""
        expect((self.fine_weights_ is not None) == self.fine, "weights of each stage")

    def restore(self) -> None:
        """Rebuild the stages."""
        tables = [self.coarse_weights_, self.fine_weights_]
        self.stages_ = self._make_stages([table for table in tables if table is not None])

    def jackknife(
        self,
        corpus: Corpus,
        parts: Sequence[npt.NDArray[np.int64]],
        *,
        with_pruners: bool = False,
        n_jobs: int = 1,
        client: Client | None = None,
    ) -> PrunedFolds:
        """Prune the arcs of each sentence with models that were not trained on it; keep all gold arcs.

        `parts` has the numbers of the sentences of each fold. The pruning models of folds are returned if
        `with_pruners` is true.
        """
        states = map_jobs(
            partial(self.learn_fold, corpus, with_pruner=with_pruners),
            parts,
            n_jobs=n_jobs,
            client=client,
            what="pruning folds",
            unit="folds",
        )
        return self.join_folds(corpus, parts, states)

    def learn_fold(self, corpus: Corpus, mine: npt.NDArray[np.int64], *, with_pruner: bool) -> State:
        """Train on all sentences except those of a fold; return the arcs of the fold."""
        rest = np.setdiff1d(np.arange(corpus.n_sentences), mine)
        pruner = self.with_params()._fit(corpus, rest if len(rest) else mine)
        arcs = self._room(corpus)
        n_lost, n_kept = choose_arcs(pruner.stages_, corpus, mine, corpus.heads, arcs)
        return State(
            "PrunedFold",
            {"n_lost": int(n_lost), "n_kept": int(n_kept)},
            {"codes": arcs.codes[_places(arcs.indptr, mine)]},
            {"pruner": pruner.get_state()} if with_pruner else {},
        )

    def join_folds(
        self, corpus: Corpus, parts: Sequence[npt.NDArray[np.int64]], states: Sequence[State]
    ) -> PrunedFolds:
        """Combine the results of `learn_fold` for all folds."""
        arcs = self._room(corpus)
        for part, state in zip(parts, states, strict=True):
            arcs.codes[_places(arcs.indptr, part)] = state.arrays["codes"]
        n_words = max(1, int(corpus.sizes.sum()))
        n_lost, n_kept = (sum(state.values[name] for state in states) for name in ("n_lost", "n_kept"))
        found = PruningReport(100.0 * (1 - n_lost / n_words), n_kept / n_words)
        pruners = [Pruner.from_state(state.parts["pruner"]) for state in states if state.parts]
        return PrunedFolds(arcs, found, pruners)

    def _make_stages(self, tables: Sequence[npt.NDArray[np.float32]]) -> tuple[Stage, ...]:
        # Compiled code needs stages of one type, so a threshold of 0 must be a float.
        limits = [(float(self.threshold), self.max_heads)]
        texts = [self.templates.pruning]
        if self.fine:
            limits.insert(0, (COARSE_THRESHOLD, COARSE_MAX_HEADS))
            texts.append(self.templates.arc)
        stages = []
        for at, (text, (threshold, max_heads)) in enumerate(zip(texts, limits, strict=True)):
            arc, shift = compile_templates(text, "arc"), table_shift(tables[at])
            limits_of = (threshold, max_heads, max_keys(arc), self.single_root)
            stages.append(Stage(arc, at > 0, tables[at], shift, *limits_of))
        return tuple(stages)

    def _train(self, corpus: Corpus, numbers: npt.NDArray[np.int64]) -> tuple[Stage, ...]:
        rng = np.random.default_rng(self.random_state)
        stages = self._make_stages([make_table(COARSE_BITS), make_table(FINE_BITS)])
        arcs = self._room(corpus)
        competing = KeptArcs(arcs.indptr, NO_CODES)
        for at, (stage, rate) in enumerate(zip(stages, (COARSE_RATE, FINE_RATE), strict=False)):
            squares, totals = np.zeros_like(stage.weights), np.zeros(stage.weights.size)
            with task("learning to prune", total=N_EPOCHS * len(numbers)) as counted:
                for epoch in range(N_EPOCHS):
                    order = rng.permutation(numbers)
                    for part in counted.slices(len(order)):
                        steps = Steps(squares, totals, rate, epoch * len(order) + part.start)
                        learn_stage(stage, corpus, corpus.heads, competing, order[part], steps)
            stage.weights[:] = average(stage.weights, totals, N_EPOCHS * len(numbers))
            if at + 1 < len(stages):
                choose_arcs(stages[: at + 1], corpus, numbers, corpus.heads, arcs)
                competing = arcs
        return stages

    def _room(self, corpus: Corpus) -> KeptArcs:
        """Allocate memory for the arcs of each sentence: the kept arcs and a gold arc per word."""
        n_arcs = corpus.sizes * (max(self.max_heads, COARSE_MAX_HEADS) + 1)
        indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(n_arcs)])
        return KeptArcs(indptr, np.full(int(indptr[-1]), -1, dtype=np.int32))


class ArcFilter(Protocol):
    """Prunes the arcs of one sentence."""

    @property
    def n_words(self) -> int:
        """Number of words of the sentence."""

    @property
    def single_root(self) -> bool:
        """Whether trees have exactly one root."""

    def drop_from(self, keep: Keep) -> None:
        """Drop improbable arcs."""

    def scores(self, allowed: Keep) -> npt.NDArray[np.float64]:
        """Return the scores by which arcs are ranked."""


class StagedFilter(NamedTuple):
    """Prunes arcs with a linear model per stage."""

    stages: Sequence[Stage]
    sentence: EncodedSentence

    @property
    def n_words(self) -> int:
        """Number of words of the sentence."""
        return int(self.sentence.values.shape[0] - N_EXTRA_ROWS)

    @property
    def single_root(self) -> bool:
        """Whether trees have exactly one root."""
        return bool(self.stages[0].single_root)

    def drop_from(self, keep: Keep) -> None:
        """Drop the arcs that are improbable in any stage."""
        for stage in self.stages:
            filter_arcs(stage, self.sentence, keep)

    def scores(self, allowed: Keep) -> npt.NDArray[np.float64]:
        """Return the scores of the first stage."""
        found = np.empty(allowed.shape)
        score_arcs(self.stages[0], self.sentence, allowed, found)
        return found


class ScoredFilter(NamedTuple):
    """Prunes arcs by a matrix of scores, with heads in rows."""

    square: npt.NDArray[np.float64]
    single_root: bool
    threshold: float
    max_heads: int

    @property
    def n_words(self) -> int:
        """Number of words of the sentence."""
        return len(self.square) - 1

    def drop_from(self, keep: Keep) -> None:
        """Drop the arcs that are improbable under these scores."""
        filter_scored(self.square, self.single_root, self.threshold, self.max_heads, keep)

    def scores(self, allowed: Keep) -> npt.NDArray[np.float64]:
        """Return the scores of the allowed arcs."""
        return np.where(allowed, self.square, EXCLUDED)


class EitherFilter(NamedTuple):
    """Combines two filters: drops only the arcs that both of them drop."""

    first: ArcFilter
    second: ArcFilter

    @property
    def n_words(self) -> int:
        """Number of words of the sentence."""
        return self.first.n_words

    @property
    def single_root(self) -> bool:
        """Whether trees have exactly one root."""
        return self.first.single_root

    def drop_from(self, keep: Keep) -> None:
        """Drop the arcs that both filters drop."""
        other = keep.copy()
        self.first.drop_from(keep)
        self.second.drop_from(other)
        keep |= other

    def scores(self, allowed: Keep) -> npt.NDArray[np.float64]:
        """Return the scores of the first filter."""
        return self.first.scores(allowed)


def left_arcs(pruning: ArcFilter, fixed: FixedHeads | None = None) -> Keep:
    """Return the arcs of a sentence after pruning, including fixed arcs, as a matrix.

    The filter first ignores the fixed arcs. If there is a tree with all fixed arcs over the arcs that are
    left, only the other heads of words with fixed heads are removed. Otherwise, the filter prunes again,
    considering only trees with the fixed arcs.
    """
    keep: Keep = all_arcs(pruning.n_words)
    pruning.drop_from(keep)
    if not fixed:
        return keep
    restricted = restrict(keep, fixed)
    if has_tree(restricted, single_root=pruning.single_root):
        return restricted
    allowed = restrict(all_arcs(pruning.n_words), fixed)
    keep = allowed.copy()
    pruning.drop_from(keep)
    return keep if has_tree(keep, single_root=pruning.single_root) else _widen(pruning, keep, allowed)


def _widen(pruning: ArcFilter, keep: Keep, allowed: Keep) -> Keep:
    """Add the most probable arcs of each word until a tree exists."""
    marginal = np.empty(keep.shape)
    arc_marginals(pruning.scores(allowed), pruning.single_root, marginal)
    ranks = np.argsort(np.argsort(-marginal, axis=0, kind="stable"), axis=0)
    n_heads = 1
    while not has_tree(keep, single_root=pruning.single_root):
        n_heads *= 2
        keep = keep | (allowed & (ranks < n_heads))
    return keep


def select_arcs(arcs: KeptArcs, numbers: npt.NDArray[np.int64]) -> KeptArcs:
    """Return the arcs of the sentences with these numbers, in this order."""
    sizes = np.diff(arcs.indptr)[numbers]
    indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    codes = arcs.codes[_places(arcs.indptr, numbers)] if len(arcs.codes) else arcs.codes
    return KeptArcs(indptr, codes)


def _places(indptr: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the positions of the codes of selected sentences."""
    runs = [np.arange(indptr[number], indptr[number + 1]) for number in numbers]
    return np.concatenate([np.zeros(0, dtype=np.int64), *runs])
