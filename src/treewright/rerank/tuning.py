"""Tuning the weight of the parser's score, testing the gain for significance, and calibration."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, IntArray, Integers
from treewright.metrics.ratios import percent
from treewright.metrics.significance import significance
from treewright.parsing.dependency.calibration import best_scale
from treewright.rerank.candidates import CandidateLists

BETAS = (0.0, *(2.0**power for power in range(-6, 13)))
"""Candidate weights of the parser's score, relative to the spread of the scores."""


class Tuning(NamedTuple):
    """The best setting on the tuning sentences, and its cross-validated gain.

    Attributes
    ----------
    number : int
        Index of the best trial.
    beta : float
        Weight of the parser's score.
    parser_uas, uas : float
        UAS of the parser and of the best setting. The second value is optimistic, because the setting is the
        best of many.
    gain, p_value : float
        Gain in UAS over the parser if each half of the sentences is reranked with the best setting of the
        other half, and its p-value by a randomisation test.
    """

    number: int
    beta: float
    parser_uas: float
    uas: float
    gain: float
    p_value: float

    def is_significant(self, level: float) -> bool:
        """Return whether the gain is positive and statistically significant at this level."""
        return self.gain > 0 and self.p_value <= level

    def __str__(self) -> str:
        return (
            f"UAS {self.parser_uas:.2f} by the parser, {self.uas:.2f} reranked with beta {self.beta:.3g} "
            f"({self.uas - self.parser_uas:+.2f}); cross-validated gain {self.gain:+.2f} "
            f"(p = {self.p_value:.4f})"
        )


def tune(
    lists: CandidateLists,
    gold: Sequence[IntArray],
    trials: Sequence[FloatArray],
    *,
    betas: Sequence[float] = (),
    random_state: int = 0,
) -> Tuning:
    """Return the best of several sets of scores, with its best weight of the parser's score.

    Parameters
    ----------
    lists : CandidateLists
        Candidate lists of the tuning sentences.
    gold : sequence of ndarray of int
        Gold heads of each sentence.
    trials : sequence of ndarray of float, (n_candidates, n_votes)
        Sets of scores to choose from.
    betas : sequence of float
        Weights to try; by default adapted to the spread of both scores.
    random_state : int
        Seed of the randomisation test.
    """
    choices, best = _try_betas(lists, trials, betas)
    n_right = lists.n_right(gold)[best]
    number, beta = choices[_best_choice(n_right)]
    across = _choose_across(n_right)
    right = [tree.with_heads(heads) for tree, heads in zip(lists.trees, gold, strict=True)]
    parsed, reranked = (
        [lists.candidate(at) for at in numbers.tolist()]
        for numbers in (lists.indptr[:-1], best[across, np.arange(len(lists))])
    )
    tested = significance(right, reranked, parsed, random_state=random_state)
    uas = percent(int(n_right.sum(axis=1).max()), sum(map(len, gold)))
    return Tuning(number, beta, tested.score_b, uas, tested.difference, tested.p_value)


def _try_betas(
    lists: CandidateLists, trials: Sequence[FloatArray], betas: Sequence[float]
) -> tuple[list[tuple[int, float]], Integers]:
    """Return all settings of trial and beta, and the best tree of each list under each setting."""
    choices, best = [], []
    for number, votes in enumerate(trials):
        unit = _scatter(votes.mean(axis=1), lists) / max(_scatter(lists.scores, lists), 1e-12)
        # Ties go to the first, so larger weights of the parser come first.
        for beta in sorted(betas or [factor * (unit or 1.0) for factor in BETAS], reverse=True):
            choices.append((number, beta))
            best.append(lists.best(combine(lists, votes, beta)))
    return choices, np.array(best)


def _best_choice(n_right: Integers) -> int:
    """Return the setting (row) with the most correct heads over all lists (columns)."""
    return int(n_right.sum(axis=1).argmax())


def _choose_across(n_right: Integers) -> Integers:
    """Return for each list the best setting of the other half; contiguous halves keep documents together."""
    half = n_right.shape[1] // 2
    choices = np.empty(n_right.shape[1], dtype=np.int64)
    choices[:half], choices[half:] = _best_choice(n_right[:, half:]), _best_choice(n_right[:, :half])
    return choices


def choose_scale(lists: CandidateLists, final: FloatArray, is_right: npt.NDArray[np.bool_]) -> float:
    """Return the scale of the final scores that maximises the likelihood of the correct trees."""
    right = np.flatnonzero(is_right)

    def loss(scale: float) -> float:
        return -float(lists.log_softmax(scale * final)[right].sum()) / max(1, len(right))

    unit = max(_scatter(final, lists), 1e-12)
    return best_scale(lambda scale: loss(scale / unit)) / unit


def combine(lists: CandidateLists, votes: FloatArray, beta: float) -> FloatArray:
    """Return the final scores of candidates: beta times the parser's score plus the reranker's score.

    With several rerankers, each votes for the best tree of a list by its own final scores. The tree with the
    most votes wins; the highest mean score breaks ties.
    """
    finals = votes + beta * lists.scores[:, np.newaxis]
    mean: FloatArray = finals.mean(axis=1)
    if votes.shape[1] == 1:
        return mean
    counts = np.zeros(len(finals))
    for final in finals.T:
        counts[lists.best(final)] += 1
    # The mean scores break ties: they add less than one vote.
    low = np.repeat(np.minimum.reduceat(mean, lists.indptr[:-1]), np.diff(lists.indptr))
    high = np.repeat(np.maximum.reduceat(mean, lists.indptr[:-1]), np.diff(lists.indptr))
    ranked: FloatArray = counts + (mean - low) / (2 * np.maximum(high - low, 1e-12))
    return ranked


def divide_mass(lists: CandidateLists, final: FloatArray) -> FloatArray:
    """Return probabilities: a softmax of final scores, times the parser's total probability of the list."""
    mass = np.add.reduceat(lists.probabilities, lists.indptr[:-1])
    total = np.repeat(np.minimum(mass, 1.0), np.diff(lists.indptr))
    probabilities: FloatArray = np.exp(lists.log_softmax(final)) * total
    return probabilities


def append_rest(
    lists: CandidateLists, short: CandidateLists, reranked: FloatArray, beta: float
) -> FloatArray:
    """Return final scores if only the first candidates of each list, those in `short`, are reranked.

    All others follow in the order of the parser.
    """
    final = beta * lists.scores
    for (begin, end), (first, last) in zip(lists.spans(), short.spans(), strict=True):
        n = last - first
        rest = final[begin + n : end] - final[begin + n - 1]
        final[begin : begin + n] = reranked[first:last]
        final[begin + n : end] = reranked[first:last].min() + rest
    return final


def _scatter(scores: FloatArray, lists: CandidateLists) -> float:
    """Return the standard deviation of the scores within lists."""
    sizes = np.diff(lists.indptr)
    means = np.add.reduceat(scores, lists.indptr[:-1]) / sizes
    return float(np.sqrt(np.mean((scores - np.repeat(means, sizes)) ** 2)))
