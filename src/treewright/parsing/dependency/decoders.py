"""Decoders: k-best trees and marginal probabilities of arcs, given the scores of parts.

`ProjectiveDecoder` finds projective trees over the arcs that are left after pruning (Koo & Collins 2010);
`SpanningDecoder` finds any trees, scored by single arcs (McDonald, Pereira, Ribarov & Hajic 2005).
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from treewright._typing import Count, Fraction, Integers, LiftingScheme
from treewright.data.deptree import DepTree
from treewright.data.projective import projectivize
from treewright.errors import InputError
from treewright.model import Model, Submodel, Value, saved
from treewright.native.dependency.arborescence import best_arborescences, matrix_tree_marginals
from treewright.native.dependency.corpus import TreeDistribution, measure_corpus, parse_corpus
from treewright.native.dependency.eisner import EXCLUDED
from treewright.native.dependency.parts import score_parts
from treewright.native.dependency.pruning import Stage, all_arcs, take_sentence
from treewright.native.dependency.spanning import measure_crossing, parse_crossing, score_sentence
from treewright.parsing.contract import Batch, Parts, PartScorer, PartScores
from treewright.parsing.dependency.constraints import FixedHeads, Keep, has_tree, restrict
from treewright.parsing.dependency.features import Corpus
from treewright.parsing.dependency.lattice import Lattice
from treewright.parsing.dependency.long_sentences import LONGEST
from treewright.parsing.dependency.pruning import (
    MAX_HEADS,
    THRESHOLD,
    ArcFilter,
    EitherFilter,
    Pruner,
    ScoredFilter,
    StagedFilter,
    left_arcs,
)

Trees: TypeAlias = tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]
Square: TypeAlias = npt.NDArray[np.float64]
Heads: TypeAlias = npt.NDArray[np.int32]
SCORED_SHARE = 0.02
"""Factor by which the pruning threshold is multiplied if the scorer prunes."""
FAR = 1000.0
"""Excluded arcs score lower than all others by at least this amount, so that their exponentials are 0."""


class ArcParts:
    """All arcs of a sentence, as parts for a scorer.

    Parameters
    ----------
    n_words : int
    """

    kinds = ("arc",)

    def __init__(self, n_words: int) -> None:
        self.keep: Keep = all_arcs(n_words)

    def words(self, kind: str) -> npt.NDArray[np.int32]:
        """Return heads and modifiers, one row per arc."""
        if kind != "arc":
            raise InputError(
                f"kind is {kind!r}; expected 'arc', the only kind of part with decoder 'spanning'"
            )
        return np.argwhere(self.keep).astype(np.int32)

    def square(self, scores: PartScores) -> Square:
        """Return the scores of arcs as a square matrix, with heads in rows."""
        square = np.full(self.keep.shape, EXCLUDED)
        square[self.keep] = np.asarray(scores.get("arc", 0.0), dtype=np.float64)
        return square


class Rival(NamedTuple):
    """A wrong tree that violates the margin of the gold tree.

    Attributes
    ----------
    parts : Parts
        The parts of the sentence.
    gradient : mapping of str to array
        For each part: 1 if only the wrong tree has it, -1 if only the gold tree has it, and 0 otherwise.
    n_wrong : int
        Number of heads that differ between the two trees.
    loss : float
        Amount by which the gold tree misses a margin of `n_wrong`.
    """

    parts: Parts
    gradient: PartScores
    n_wrong: int
    loss: float


class ChartDecoder(Model):
    """Base class of decoders: sentences are decoded in compiled loops if possible, and otherwise one by one.

    Attributes
    ----------
    single_root_ : bool
        Whether trees have exactly one root.
    """

    fields = saved(single_root_=Value(bool))
    longest: int | None = None
    """Maximum length of a sentence that is parsed as a whole; None if there is no limit."""
    is_projective = False
    single_root_: bool

    def lift(self, tree: DepTree) -> DepTree:
        """Return a tree in a form that the decoder can find; `deprojectivize` reverses the change."""
        return tree

    def best_trees(
        self, scorer: PartScorer, batch: Batch, k: int, fixed: Sequence[FixedHeads] | None = None
    ) -> Trees:
        """Return the heads of the `k` best trees, (k, rows), and their scores, (sentences, k).

        Only trees with the `fixed` heads are considered; at least one such tree must exist.
        """
        corpus = batch.corpus
        heads = np.zeros((k, len(corpus.values)), dtype=np.int32)
        scores = np.full((corpus.n_sentences, k), -np.inf)
        together, alone = _divide(scorer, corpus, fixed)
        scorer = scorer.prepare(batch)
        if len(together):
            self._fill_best(scorer, corpus, together, heads, scores)
        for number, arcs in alone:
            found, totals = self._find_best(scorer, batch, number, arcs, k)
            heads[: len(found), corpus.words_of(number)] = found
            scores[number, : len(found)] = totals
        return heads, scores

    def marginals(
        self, scorer: PartScorer, batch: Batch, scale: float, fixed: Sequence[FixedHeads] | None = None
    ) -> tuple[npt.NDArray[np.float64], list[Square]]:
        """Return for each sentence the log partition function and a matrix of arc probabilities.

        Only trees with the `fixed` heads are considered.
        """
        corpus = batch.corpus
        together, alone = _divide(scorer, corpus, fixed)
        scorer = scorer.prepare(batch)
        sides = (corpus.sizes + 1)[together]
        flat = np.empty(int((sides**2).sum()))
        log_sums = np.zeros(corpus.n_sentences)
        if len(together):
            self._fill_marginals(scorer, corpus, together, scale, (log_sums, flat))
        pieces = np.split(flat, np.cumsum(sides**2)[:-1])
        squares = {
            number: piece.reshape(side, side)
            for number, piece, side in zip(together.tolist(), pieces, sides.tolist(), strict=False)
        }
        squares |= {number: np.zeros((1, 1)) for number in np.flatnonzero(corpus.sizes == 0).tolist()}
        for number, arcs in alone:
            log_sums[number], squares[number] = self._find_marginals(scorer, batch, number, arcs, scale)
        return log_sums, [squares[number] for number in range(corpus.n_sentences)]

    def expected_trees(
        self, scorer: PartScorer, batch: Batch, scale: float, fixed: Sequence[FixedHeads] | None = None
    ) -> Heads:
        """Return the heads, (1, rows), of the trees with the highest expected number of correct heads.

        These are the trees of minimum Bayes risk. Only trees with the `fixed` heads are considered.
        """
        corpus = batch.corpus
        heads = np.zeros((1, len(corpus.values)), dtype=np.int32)
        scorer = scorer.prepare(batch)
        log_sums, squares = self.marginals(scorer, batch, scale, fixed)
        for number in np.flatnonzero(corpus.sizes > 0).tolist():
            if np.isfinite(log_sums[number]):
                found = self._most_probable(squares[number])
            else:  # the sum underflows if scores differ by hundreds
                (found,), _ = self._find_best(scorer, batch, number, fixed[number] if fixed else {}, 1)
            heads[0, corpus.words_of(number)] = found
        return heads

    def scaled_marginals(self, scorer: PartScorer, batch: Batch) -> Callable[[float], list[Square]]:
        """Return a function that takes a scale and returns the matrices of `marginals`."""
        ready = scorer.prepare(batch)
        return lambda scale: self.marginals(ready, batch, scale)[1]

    @abstractmethod
    def find_rival(self, scorer: PartScorer, batch: Batch, number: int) -> "Rival":
        """Return the tree of a sentence that violates the margin of the gold tree most."""

    # Subclasses define these functions. The first two fill arrays for many sentences in compiled loops; the
    # others process one sentence.
    _fill_best: Callable[..., None]
    _fill_marginals: Callable[..., None]
    _find_best: Callable[..., Trees]
    _find_marginals: Callable[..., tuple[float, Square]]

    @abstractmethod
    def _most_probable(self, square: Square) -> Heads:
        """Return the heads of the tree whose arcs have the largest sum of probabilities."""


class ProjectiveDecoder(ChartDecoder):
    """Finds projective trees with charts over the arcs that are left after pruning.

    Parameters
    ----------
    lifting : {"path", "head", "head+path", "baseline"}
        Scheme for lifting crossing arcs and restoring them.
    threshold : float
        Minimum probability of a head, relative to the best head. If the scorer prunes, a fiftieth of this
        threshold is used, because networks are overconfident.
    max_heads : int
        Maximum number of heads per word if the scorer prunes.

    Attributes
    ----------
    pruner_ : Pruner or None
        The pruning model; None if only the scorer prunes, with its scores of all arcs. If both the model and
        the scorer prune, an arc is kept if either of them keeps it.
    """

    fields = saved(single_root_=Value(bool), pruner_=Submodel(Pruner, optional=True))
    longest = LONGEST
    is_projective = True
    pruner_: Pruner | None

    def __init__(
        self,
        *,
        lifting: LiftingScheme = "path",
        threshold: Fraction = THRESHOLD,
        max_heads: Count = MAX_HEADS,
    ) -> None:
        self.lifting = lifting
        self.threshold = threshold
        self.max_heads = max_heads

    def lift(self, tree: DepTree) -> DepTree:
        """Return a tree with crossing arcs lifted."""
        return projectivize(tree, scheme=self.lifting)

    def lattice(self, scorer: PartScorer, batch: Batch, number: int, fixed: FixedHeads) -> Lattice:
        """Return the scored parts of a sentence, for trees with the fixed heads.

        If pruning leaves no tree, a chain of arcs is added.
        """
        return self._lattice(scorer, batch, number, fixed, is_whole=True)

    def _lattice(
        self, scorer: PartScorer, batch: Batch, number: int, fixed: FixedHeads, *, is_whole: bool
    ) -> Lattice:
        keep = left_arcs(self._filter(scorer, batch, number), fixed)
        if is_whole and not fixed and not has_tree(keep, single_root=self.single_root_):
            words = np.arange(1, len(keep))
            keep[words - 1, words] = True
        found = Lattice(keep, single_root=self.single_root_)
        compiled = scorer.compiled()
        if compiled is None:
            found = scorer.narrow(batch.trees[number], found)
            return found.with_scores(scorer.score(batch.trees[number], found))
        sentence = take_sentence(batch.corpus, number)
        scores = score_parts(found.arranged, compiled.model, sentence, compiled.weights)
        return found.with_scores(scores._asdict())

    def _filter(self, scorer: PartScorer, batch: Batch, number: int) -> ArcFilter:
        """Return the pruning filter of a sentence."""
        square = scorer.score_arcs(batch.trees[number])
        filters: list[ArcFilter] = []
        if square is not None:
            limits = SCORED_SHARE * float(self.threshold), self.max_heads
            filters.append(ScoredFilter(square, self.single_root_, *limits))
        if self.pruner_ is not None:
            filters.append(StagedFilter(self.pruner_.stages_, take_sentence(batch.corpus, number)))
        if not filters:
            raise InputError("the scorer has no arc scores for pruning; expected a decoder with a pruner")
        return filters[0] if len(filters) == 1 else EitherFilter(*filters)

    def pruning_recall(self, scorer: PartScorer, batch: Batch) -> float:
        """Return the percentage of gold arcs that pruning keeps."""
        scorer = scorer.prepare(batch)
        n_kept = sum(
            int(left_arcs(self._filter(scorer, batch, number))[tree.heads, np.arange(1, len(tree) + 1)].sum())
            for number, tree in enumerate(batch.trees)
        )
        return 100.0 * n_kept / max(1, sum(map(len, batch.trees)))

    def lattices(self, scorer: PartScorer, batch: Batch) -> list[Lattice]:
        """Return the scored parts of each sentence, over the arcs that are left after pruning."""
        numbers = range(batch.corpus.n_sentences)
        scorer = scorer.prepare(batch)
        return [self._lattice(scorer, batch, number, {}, is_whole=False) for number in numbers]

    def scaled_marginals(self, scorer: PartScorer, batch: Batch) -> Callable[[float], list[Square]]:
        """Return a function that takes a scale and returns the matrices of `marginals`.

        A scorer without compiled code scores the parts only once for all scales.
        """
        if scorer.compiled() is not None:
            return super().scaled_marginals(scorer, batch)
        lattices = self.whole_lattices(scorer, batch)
        return lambda scale: [
            lattice_marginals(each, {kind: scale * scores for kind, scores in each.scores.items()})[1]
            for each in lattices
        ]

    def whole_lattices(self, scorer: PartScorer, batch: Batch) -> list[Lattice]:
        """Return the lattices of sentences with words; each has at least one tree."""
        scorer = scorer.prepare(batch)
        return [self.lattice(scorer, batch, number, {}) for number in range(batch.corpus.n_sentences)]

    def find_rival(self, scorer: PartScorer, batch: Batch, number: int) -> Rival:
        """Return the tree of a sentence that violates the margin of the gold tree most."""
        tree = batch.trees[number]
        keep = left_arcs(self._filter(scorer, batch, number))
        keep[tree.heads, np.arange(1, len(keep))] = True
        parts = Lattice(keep, single_root=self.single_root_)
        parts = parts.with_scores(scorer.score(tree, parts))
        is_gold = {kind: parts.contains(kind, tree.heads) for kind in parts.kinds}
        costs = np.where(is_gold["arc"], 0.0, 1.0)
        (heads,), (best,) = parts.best_trees(1, {**parts.scores, "arc": parts.scores["arc"] + costs})
        gold = sum(float(scores[is_gold[kind]].sum()) for kind, scores in parts.scores.items())
        gradient = {
            kind: parts.contains(kind, heads).astype(np.float64) - is_gold[kind] for kind in parts.kinds
        }
        return Rival(parts, gradient, int((heads != tree.heads).sum()), float(best) - gold)

    def _fill_best(
        self, scorer: PartScorer, corpus: Corpus, numbers: Integers, heads: Heads, scores: Square
    ) -> None:
        model, weights, _ = scorer.compiled()
        assert self.pruner_ is not None
        parse_corpus(self.pruner_.stages_, model, corpus, weights, numbers, self.single_root_, heads, scores)

    def _fill_marginals(
        self, scorer: PartScorer, corpus: Corpus, numbers: Integers, scale: float, into: tuple[Square, Square]
    ) -> None:
        model, weights, _ = scorer.compiled()
        distribution = TreeDistribution(self.single_root_, scale)
        assert self.pruner_ is not None
        measure_corpus(self.pruner_.stages_, model, corpus, weights, numbers, distribution, *into)

    def _find_best(self, scorer: PartScorer, batch: Batch, number: int, fixed: FixedHeads, k: int) -> Trees:
        return self.lattice(scorer, batch, number, fixed).best_trees(k)

    def _find_marginals(
        self, scorer: PartScorer, batch: Batch, number: int, fixed: FixedHeads, scale: float
    ) -> tuple[float, Square]:
        lattice = self.lattice(scorer, batch, number, fixed)
        return lattice_marginals(lattice, {kind: scale * scores for kind, scores in lattice.scores.items()})

    def _most_probable(self, square: Square) -> Heads:
        lattice = Lattice(square > 0, single_root=self.single_root_)
        heads: Heads
        (heads,), _ = lattice.best_trees(1, {"arc": square[tuple(lattice.words("arc").T)]})
        return heads


def lattice_marginals(lattice: Lattice, scores: PartScores) -> tuple[float, Square]:
    """Return the log partition function and the matrix of arc probabilities."""
    rows, log_sum = lattice.marginals(scores)
    return log_sum, np.vstack([np.zeros(len(rows) + 1), rows]).T


class SpanningDecoder(ChartDecoder):
    """Finds trees with or without crossing arcs, scored by their arcs; nothing is pruned."""

    def find_rival(self, scorer: PartScorer, batch: Batch, number: int) -> Rival:
        """Return the tree of a sentence that violates the margin of the gold tree most."""
        tree, words = batch.trees[number], np.arange(1, len(batch.trees[number]) + 1)
        parts = ArcParts(len(tree))
        scores = parts.square(scorer.score(tree, parts))
        costs = np.ones_like(scores)
        costs[tree.heads, words] = 0.0
        heads, totals = np.zeros((1, len(scores)), dtype=np.int32), np.empty(1)
        best_arborescences(scores + costs, self.single_root_, heads, totals)
        gradient = np.zeros_like(scores)
        gradient[heads[0, 1:], words] += 1.0
        gradient[tree.heads, words] -= 1.0
        loss = float(totals[0] - scores[tree.heads, words].sum())
        n_wrong = int((heads[0, 1:] != tree.heads).sum())
        return Rival(parts, {"arc": gradient[parts.keep]}, n_wrong, loss)

    def _stage(self, scorer: PartScorer) -> Stage:
        stage: Stage = scorer.compiled().stage(single_root=self.single_root_)
        return stage

    def _fill_best(
        self, scorer: PartScorer, corpus: Corpus, numbers: Integers, heads: Heads, scores: Square
    ) -> None:
        parse_crossing(self._stage(scorer), corpus, numbers, self.single_root_, heads, scores)

    def _fill_marginals(
        self, scorer: PartScorer, corpus: Corpus, numbers: Integers, scale: float, into: tuple[Square, Square]
    ) -> None:
        distribution = TreeDistribution(self.single_root_, scale)
        measure_crossing(self._stage(scorer), corpus, numbers, distribution, *into)

    def _find_best(self, scorer: PartScorer, batch: Batch, number: int, fixed: FixedHeads, k: int) -> Trees:
        scores, allowed = self._score(scorer, batch, number, fixed)
        heads, totals = np.zeros((k, len(allowed)), dtype=np.int32), np.empty(k)
        masked = np.where(allowed, scores, EXCLUDED)
        n_found = best_arborescences(masked, self.single_root_, heads, totals)
        return heads[:n_found, 1:], totals[:n_found]

    def _find_marginals(
        self, scorer: PartScorer, batch: Batch, number: int, fixed: FixedHeads, scale: float
    ) -> tuple[float, Square]:
        scores, allowed = self._score(scorer, batch, number, fixed)
        scaled = scale * scores
        low, high = scaled[allowed].min(), scaled[allowed].max()
        # Low enough that the exponentials are 0, but no lower, because low scores make the sum less precise.
        scaled[~allowed] = low - 2 * (high - low) - FAR
        square = np.empty_like(scaled)
        log_sum = matrix_tree_marginals(scaled, self.single_root_, square)
        return float(log_sum), square

    def _most_probable(self, square: Square) -> Heads:
        heads = np.zeros((1, len(square)), dtype=np.int32)
        best_arborescences(np.where(square > 0, square, EXCLUDED), self.single_root_, heads, np.empty(1))
        return heads[0, 1:]

    def _score(self, scorer: PartScorer, batch: Batch, number: int, fixed: FixedHeads) -> tuple[Square, Keep]:
        """Return the scores of all arcs of a sentence, and which of them agree with the fixed heads."""
        parts = ArcParts(int(batch.corpus.sizes[number]))
        if scorer.compiled() is None:
            scores = parts.square(scorer.score(batch.trees[number], parts))
        else:
            scores = score_sentence(self._stage(scorer), batch.corpus, number)
        return scores, restrict(parts.keep, fixed)


def _divide(
    scorer: PartScorer, corpus: Corpus, fixed: Sequence[FixedHeads] | None
) -> tuple[npt.NDArray[np.int64], list[tuple[int, FixedHeads]]]:
    """Return the sentences for compiled loops, and the other sentences with their fixed heads."""
    if scorer.compiled() is None:
        numbers = np.flatnonzero(corpus.sizes > 0).tolist()
        empty = np.flatnonzero(corpus.sizes == 0)
        return empty[:0], [(number, fixed[number] if fixed else {}) for number in numbers]
    alone = [(number, heads) for number, heads in enumerate(fixed or ()) if heads]
    is_free = np.ones(corpus.n_sentences, dtype=np.bool_)
    is_free[[number for number, _ in alone]] = False
    return np.flatnonzero(is_free), alone
