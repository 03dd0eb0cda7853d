"""The final score of a tree: that of a parser, and weighted scores of a reranker and of other parsers."""

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from treewright._typing import FloatArray
from treewright.learn.lists import best_rows
from treewright.rerank.parse_lists import best_f1, corpus_f1

SHARES = (0.0, *(2.0**power for power in range(-6, 11)))
"""What the scores of the reranker, and those of other parsers, are multiplied by; tried on dev."""
MAX_TRIED = 10_000
"""Combinations of shares; where there are more, one share is changed at a time."""


class ScoreParts(NamedTuple):
    """What scores are made of, of the candidates of all lists, one after the other.

    Attributes
    ----------
    base_scores, kernel_scores : ndarray of float, (n_candidates,)
        Of the first parser, and of the reranker.
    other_scores : ndarray of float, (n_candidates, n_others)
        Of the other parsers.
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


class ScoreWeights(NamedTuple):
    """How the parts of the final score are put together, and what that gains on the dev set.

    Attributes
    ----------
    kernel_weight : float
        What the scores of the reranker are multiplied by; those of the first parser count once.
    others : tuple of float
        What the scores of each other parser are multiplied by.
    base, chosen, best : float
        F1 of the trees that the first parser likes best, of those chosen, and of the best of the lists.
    """

    kernel_weight: float
    others: tuple[float, ...]
    base: float
    chosen: float
    best: float

    def __str__(self) -> str:
        weights = [f"evidence times {self.kernel_weight:g}"]
        weights += [f"parser {number} times {weight:g}" for number, weight in enumerate(self.others, 2)]
        return (
            f"dev F1 {self.base:.2f} by the score of the parser, {self.chosen:.2f} reranked "
            f"({', '.join(weights)}), {self.best:.2f} at best"
        )


def tune(parts: ScoreParts, counts: Sequence[FloatArray]) -> ScoreWeights:
    """Find the shares with which the trees chosen are best.

    Parameters
    ----------
    parts : ScoreParts
    counts : sequence of ndarray of float, (n_trees, 3)
        Of each list, as `count_brackets` returns them.
    """
    flat = np.concatenate(counts)
    indptr = np.cumsum([0, *map(len, counts)])
    weighted = (parts.kernel_scores, *parts.other_scores.T)
    choices = [SHARES if scores.any() else SHARES[:1] for scores in weighted]

    def score(shares: Sequence[float]) -> float:
        return corpus_f1(flat[best_rows(parts.add(shares[0], shares[1:]), indptr)])

    is_small = prod(map(len, choices)) <= MAX_TRIED
    shares, chosen = _try_all(choices, score) if is_small else _climb(choices, score)
    return ScoreWeights(shares[0], shares[1:], score([0.0] * len(choices)), chosen, best_f1(counts))


def _try_all(
    choices: Sequence[Sequence[float]], score: Callable[[Sequence[float]], float]
) -> tuple[tuple[float, ...], float]:
    """Return the best of all combinations, the first of equals, and its score."""
    tried = {each: score(each) for each in product(*choices)}
    best = max(tried, key=tried.__getitem__)
    return best, tried[best]


def _climb(
    choices: Sequence[Sequence[float]], score: Callable[[Sequence[float]], float]
) -> tuple[tuple[float, ...], float]:
    """Begin without any weights, change the one that gains most as long as one gains; return both."""
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
