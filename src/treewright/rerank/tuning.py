"""How much the parser's score counts beside the reranker's, and how probable candidates are."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from treewright.parsing.calibration import best_scale
from treewright.rerank.candidates import CandidateLists, FloatArray, Integers

BETAS = (0.0, *(2.0**power for power in range(-6, 13)))
"""How much the parser's score counts, in terms of how far scores of candidates lie apart."""


def choose_beta(lists: CandidateLists, trials: Sequence[FloatArray], n_right: Integers) -> tuple[int, float]:
    """Return which of several scores, and what multiple of the parser's beside it, finds the best trees.

    Parameters
    ----------
    lists : CandidateLists
    trials : sequence of ndarray of float, (n_candidates, n_votes)
    n_right : ndarray of int, (n_candidates,)
        Words with the right head.
    """
    found, best_of_all = (0, 0.0), -1
    for number, votes in enumerate(trials):
        unit = _scatter(votes.mean(axis=1), lists) / max(_scatter(lists.scores, lists), 1e-12)
        # Among equals the parser counts more.
        for beta in (factor * (unit or 1.0) for factor in reversed(BETAS)):
            n_found = int(n_right[lists.best(combine(lists, votes, beta))].sum())
            if n_found > best_of_all:
                found, best_of_all = (number, beta), n_found
    return found


def choose_scale(lists: CandidateLists, final: FloatArray, is_right: npt.NDArray[np.bool_]) -> float:
    """Return the scale of final scores under which the right trees are most probable in their lists."""
    right = np.flatnonzero(is_right)

    def loss(scale: float) -> float:
        return -float(lists.log_softmax(scale * final)[right].sum()) / max(1, len(right))

    unit = max(_scatter(final, lists), 1e-12)
    return best_scale(lambda scale: loss(scale / unit)) / unit


def combine(lists: CandidateLists, votes: FloatArray, beta: float) -> FloatArray:
    """Return the final scores of candidates: beta times that of the parser, and that of the reranker.

    Of several rerankers each votes for the best tree of a list by its own final scores; the tree with most
    votes wins, and among equals the one with the highest mean score.
    """
    finals = votes + beta * lists.scores[:, np.newaxis]
    mean: FloatArray = finals.mean(axis=1)
    if votes.shape[1] == 1:
        return mean
    counts = np.zeros(len(finals))
    for final in finals.T:
        counts[lists.best(final)] += 1
    # Less than a vote between the highest and the lowest mean of a list.
    low = np.repeat(np.minimum.reduceat(mean, lists.first[:-1]), np.diff(lists.first))
    high = np.repeat(np.maximum.reduceat(mean, lists.first[:-1]), np.diff(lists.first))
    ranked: FloatArray = counts + (mean - low) / (2 * np.maximum(high - low, 1e-12))
    return ranked


def _scatter(scores: FloatArray, lists: CandidateLists) -> float:
    """Return how far the scores of one list lie from their mean."""
    sizes = np.diff(lists.first)
    means = np.add.reduceat(scores, lists.first[:-1]) / sizes
    return float(np.sqrt(np.mean((scores - np.repeat(means, sizes)) ** 2)))
