"""The final score of a tree: that of a parser, and shares of a reranker's evidence and of another's score."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from treewright.learn.lists import best_rows
from treewright.rerank.candidates import FloatArray
from treewright.rerank.parse_lists import best_f1, corpus_f1

SHARES = (0.0, *(2.0**power for power in range(-6, 11)))
"""What evidence, and the score of the second parser, is multiplied by; tried on dev."""


class Parts(NamedTuple):
    """What scores are made of, of the candidates of all lists, one after the other.

    Attributes
    ----------
    base, evidence, second : ndarray of float, (n_candidates,)
        The score of the first parser, what the reranker has learnt, and the score of the second parser.
    """

    base: FloatArray
    evidence: FloatArray
    second: FloatArray

    def add(self, evidence: float, second: float) -> FloatArray:
        """Return the final scores."""
        return self.base + evidence * self.evidence + second * self.second


class Tuning(NamedTuple):
    """How the parts of the final score are put together, and what that gains on the dev set.

    Attributes
    ----------
    evidence, second : float
        What the reranker's evidence and the second parser's score are multiplied by; the first parser's
        counts once.
    base, chosen, best : float
        F1 of the trees that the first parser likes best, of those chosen, and of the best of the lists.
    """

    evidence: float
    second: float
    base: float
    chosen: float
    best: float

    def __str__(self) -> str:
        weights = f"evidence times {self.evidence:g}, second parser times {self.second:g}"
        return (
            f"dev F1 {self.base:.2f} by the score of the parser, {self.chosen:.2f} reranked ({weights}), "
            f"{self.best:.2f} at best"
        )


def tune(parts: Parts, counts: Sequence[FloatArray]) -> Tuning:
    """Find the shares with which the trees chosen are best.

    Parameters
    ----------
    parts : Parts
    counts : sequence of ndarray of float, (n_trees, 3)
        Of each list, as `count_brackets` returns them.
    """
    flat = np.concatenate(counts)
    first = np.cumsum([0, *map(len, counts)])
    tried = {}
    choices = (SHARES if part.any() else SHARES[:1] for part in (parts.evidence, parts.second))
    for evidence, second in product(*choices):
        tried[evidence, second] = corpus_f1(flat[best_rows(parts.add(evidence, second), first)])
    evidence, second = max(tried, key=tried.__getitem__)
    return Tuning(evidence, second, tried[0.0, 0.0], tried[evidence, second], best_f1(counts))
