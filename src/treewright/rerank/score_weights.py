"""The final score of a tree: that of a parser, and weighted scores of a reranker and of another parser."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from treewright._typing import FloatArray
from treewright.learn.lists import best_rows
from treewright.rerank.parse_lists import best_f1, corpus_f1

SHARES = (0.0, *(2.0**power for power in range(-6, 11)))
"""What the scores of the reranker, and those of the second parser, are multiplied by; tried on dev."""


class ScoreParts(NamedTuple):
    """What scores are made of, of the candidates of all lists, one after the other.

    Attributes
    ----------
    base_scores, kernel_scores, second_scores : ndarray of float, (n_candidates,)
        Of the first parser, of the reranker, and of the second parser.
    """

    base_scores: FloatArray
    kernel_scores: FloatArray
    second_scores: FloatArray

    def add(self, kernel_weight: float, second_weight: float) -> FloatArray:
        """Return the final scores."""
        return self.base_scores + kernel_weight * self.kernel_scores + second_weight * self.second_scores


class ScoreWeights(NamedTuple):
    """How the parts of the final score are put together, and what that gains on the dev set.

    Attributes
    ----------
    kernel_weight, second : float
        What the scores of the reranker and those of the second parser are multiplied by; those of the first
        parser count once.
    base, chosen, best : float
        F1 of the trees that the first parser likes best, of those chosen, and of the best of the lists.
    """

    kernel_weight: float
    second: float
    base: float
    chosen: float
    best: float

    def __str__(self) -> str:
        weights = f"evidence times {self.kernel_weight:g}, second parser times {self.second:g}"
        return (
            f"dev F1 {self.base:.2f} by the score of the parser, {self.chosen:.2f} reranked ({weights}), "
            f"{self.best:.2f} at best"
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
    weighted = (parts.kernel_scores, parts.second_scores)
    choices = (SHARES if scores.any() else SHARES[:1] for scores in weighted)
    tried = {each: corpus_f1(flat[best_rows(parts.add(*each), indptr)]) for each in product(*choices)}
    kernel_weight, second = max(tried, key=tried.__getitem__)
    chosen = tried[kernel_weight, second]
    return ScoreWeights(kernel_weight, second, tried[0.0, 0.0], chosen, best_f1(counts))
