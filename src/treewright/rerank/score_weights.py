"""The final score of a tree: a weighted sum of the scores of parsers and a reranker."""

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from treewright._typing import FloatArray
from treewright.data.consttree import ConstTree
from treewright.learn.lists import best_rows
from treewright.rerank.parse_lists import ParseList, best_f1, corpus_f1, f1_losses
from treewright.rerank.voting import ScoredBrackets, Votes, softmax

SHARES = (0.0, *(2.0**power for power in range(-6, 11)))
"""Candidate weights of the reranker and of the other parsers, tried on dev."""
SCALES = tuple(2.0**power for power in np.arange(-10, 3.5, 0.5).tolist())
"""Candidate factors that turn scores into log-probabilities, tried on dev."""
RELATIVE_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)
"""Candidate shares of the other parsers in a vote, divided by that of the first parser, tried on dev."""
SMALLEST = 1e-300
"""Minimum probability in logarithms."""
MAX_TRIED = 10_000
"""Maximum number of weight combinations for an exhaustive search; beyond it, coordinate search is used."""


class ScoreParts(NamedTuple):
    """The components of the final scores, for the candidates of all lists.

    Attributes
    ----------
    base_scores, kernel_scores : ndarray of float, (n_candidates,)
        Scores of the first parser and of the reranker.
    other_scores : ndarray of float, (n_candidates, n_others)
        Scores of the other parsers.
    """

    base_scores: FloatArray
    kernel_scores: FloatArray
    other_scores: FloatArray

    def add(self, kernel_weight: float, others: Sequence[float]) -> FloatArray:
        """Return the final scores."""
        total: FloatArray = self.base_scores + kernel_weight * self.kernel_scores
        for weight, scores in zip(others, self.other_scores.T, strict=True):
            total = total + weight * scores
        return total

    def by_parser(self, kernel_weight: float) -> FloatArray:
        """Return the scores of each parser, (n_candidates, n_parsers); the first ones with the reranker's."""
        return np.column_stack([self.base_scores + kernel_weight * self.kernel_scores, self.other_scores])


class ScoreWeights(NamedTuple):
    """Weights of the components of the final score, and their F1 on the dev set.

    Attributes
    ----------
    kernel_weight : float
        Weight of the reranker's score; the weight of the first parser is 1.
    others : tuple of float
        Weights of the other parsers.
    base, chosen, best : float
        Dev F1 of the first parser, of the trees with the highest final scores, and of the oracle.
    votes : Votes or None
        How parsers vote on brackets; None if this was not tuned.
    by_brackets : float
        Dev F1 of the trees of these votes.
    """

    kernel_weight: float
    others: tuple[float, ...]
    base: float
    chosen: float
    best: float
    votes: Votes | None = None
    by_brackets: float = 0.0

    def __str__(self) -> str:
        weights = [f"reranker weight {self.kernel_weight:g}"]
        weights += [f"parser {number} weight {weight:g}" for number, weight in enumerate(self.others, 2)]
        found = f"dev F1 {self.base:.2f} by the parser, {self.chosen:.2f} reranked ({', '.join(weights)})"
        if self.votes:
            shares = ", ".join(f"{share:.2f}" for share in self.votes.shares)
            found += f", {self.by_brackets:.2f} by brackets (shares {shares})"
        return f"{found}, {self.best:.2f} oracle"


def tune(
    parts: ScoreParts, counts: Sequence[FloatArray], *, kernel_weight: float | None = None
) -> ScoreWeights:
    """Return the weights with the highest F1.

    Parameters
    ----------
    parts : ScoreParts
        The components of the final scores.
    counts : sequence of ndarray of float, (n_trees, 3)
        Bracket counts of each list, from `count_brackets`.
    kernel_weight : float, optional
        Fixed weight of the reranker's score (default: it is tuned).
    """
    flat = np.concatenate(counts)
    indptr = np.cumsum([0, *map(len, counts)])
    weighted = (parts.kernel_scores, *parts.other_scores.T)
    choices: list[Sequence[float]] = [SHARES if scores.any() else SHARES[:1] for scores in weighted]
    if kernel_weight is not None:
        choices[0] = (kernel_weight,)

    def score(shares: Sequence[float]) -> float:
        return corpus_f1(flat[best_rows(parts.add(shares[0], shares[1:]), indptr)])

    is_small = prod(map(len, choices)) <= MAX_TRIED
    shares, chosen = _try_all(choices, score) if is_small else _climb(choices, score)
    return ScoreWeights(shares[0], shares[1:], score([0.0] * len(choices)), chosen, best_f1(counts))


def tune_votes(
    scores: Sequence[FloatArray],
    lists: Sequence[ParseList],
    counts: Sequence[FloatArray],
    gold: Sequence[ConstTree],
) -> Votes:
    """Return the votes with the highest F1.

    The scale of a parser's scores maximises the likelihood of the best candidates; then the shares of the
    parsers maximise F1.

    Parameters
    ----------
    scores : sequence of ndarray of float, (n_trees, n_parsers)
        The scores of the parsers for the candidates of each list.
    lists : sequence of ParseList
        The lists.
    counts : sequence of ndarray of float, (n_trees, 3)
        Bracket counts of each list, from `count_brackets`.
    gold : sequence of ConstTree
        The gold trees.
    """
    best = [int(f1_losses(each).argmin()) for each in counts]
    logs = np.zeros((len(SCALES), scores[0].shape[1]))
    for own, place in zip(scores, best, strict=True):
        for row, scale in zip(logs, SCALES, strict=True):
            row += np.log(np.maximum(softmax(scale * own)[place], SMALLEST))
    scales = tuple(SCALES[at] for at in logs.argmax(axis=0).tolist())
    probable = [softmax(own * scales) for own in scores]
    scored = ScoredBrackets.of([each.trees for each in lists], gold, probable)
    choices: list[Sequence[float]] = [(1.0,), *[RELATIVE_SHARES] * (len(scales) - 1)]
    is_small = prod(map(len, choices)) <= MAX_TRIED
    found, _ = _try_all(choices, scored.f1) if is_small else _climb(choices, scored.f1)
    return Votes(scales, tuple(share / sum(found) for share in found))


def _try_all(
    choices: Sequence[Sequence[float]], score: Callable[[Sequence[float]], float]
) -> tuple[tuple[float, ...], float]:
    """Return the best of all combinations (the first among ties) and its score."""
    tried = {each: score(each) for each in product(*choices)}
    best = max(tried, key=tried.__getitem__)
    return best, tried[best]


def _climb(
    choices: Sequence[Sequence[float]], score: Callable[[Sequence[float]], float]
) -> tuple[tuple[float, ...], float]:
    """Coordinate search: start from zero weights; repeat the single change with the largest gain in F1."""
    best = tuple(each[0] for each in choices)
    highest = score(best)
    while True:
        tried = {
            (*best[:at], share, *best[at + 1 :]): 0.0 for at, each in enumerate(choices) for share in each
        }
        tried = {each: score(each) for each in tried}
        found = max(tried, key=tried.__getitem__)
        if tried[found] <= highest:
            return best, highest
        best, highest = found, tried[found]
