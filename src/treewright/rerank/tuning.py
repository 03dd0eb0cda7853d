"""How much the parser's score counts beside the reranker's, whether that helps, how probable trees are."""

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
"""How much the parser's score counts, in terms of how far scores of candidates lie apart."""


class Tuning(NamedTuple):
    """What is best for sentences to tune with, and whether it would have been for others.

    Attributes
    ----------
    number : int
        Which of several scores is the best, and
    beta : float
        what multiple of the parser's beside it.
    parser_uas, uas : float
        UAS of the parser, and with the best scores. The latter is too high, as it is the best of many.
    gain, p_value : float
        What is gained over the parser if each half of the sentences is reranked by what is best for the other
        half, and how likely it is, by the randomisation test, that chance does as much.
    """

    number: int
    beta: float
    parser_uas: float
    uas: float
    gain: float
    p_value: float

    def is_significant(self, level: float) -> bool:
        """Tell whether there is a gain that chance reaches no more often than `level` says."""
        return self.gain > 0 and self.p_value <= level

    def __str__(self) -> str:
        return (
            f"UAS {self.parser_uas:.2f} by the parser, {self.uas:.2f} reranked with beta {self.beta:.3g} "
            f"({self.uas - self.parser_uas:+.2f}); {self.gain:+.2f} (p = {self.p_value:.4f}) with each half "
            "reranked by what is best for the other"
        )


def tune(
    lists: CandidateLists,
    gold: Sequence[IntArray],
    trials: Sequence[FloatArray],
    *,
    betas: Sequence[float] = (),
    random_state: int = 0,
) -> Tuning:
    """Find which of several scores, and what multiple of the parser's beside it, finds the best trees.

    Parameters
    ----------
    lists : CandidateLists
    gold : sequence of ndarray of int
        The right heads of each sentence.
    trials : sequence of ndarray of float, (n_candidates, n_votes)
    betas : sequence of float
        Multiples to try; without any, those that fit how far both scores lie apart.
    random_state : int
        Of the randomisation test.
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
    """Return all choices of scores and betas, and the best tree of each list by each of them."""
    choices, best = [], []
    for number, votes in enumerate(trials):
        unit = _scatter(votes.mean(axis=1), lists) / max(_scatter(lists.scores, lists), 1e-12)
        # Among equals the first is chosen, and there the parser counts more.
        for beta in sorted(betas or [factor * (unit or 1.0) for factor in BETAS], reverse=True):
            choices.append((number, beta))
            best.append(lists.best(combine(lists, votes, beta)))
    return choices, np.array(best)


def _best_choice(n_right: Integers) -> int:
    """Return the choice with the most right heads, of those in lists (columns) by choices (rows)."""
    return int(n_right.sum(axis=1).argmax())


def _choose_across(n_right: Integers) -> Integers:
    """Return for each list what is best for the other half of them; halves, as texts are of one piece."""
    half = n_right.shape[1] // 2
    choices = np.empty(n_right.shape[1], dtype=np.int64)
    choices[:half], choices[half:] = _best_choice(n_right[:, half:]), _best_choice(n_right[:, :half])
    return choices


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
    low = np.repeat(np.minimum.reduceat(mean, lists.indptr[:-1]), np.diff(lists.indptr))
    high = np.repeat(np.maximum.reduceat(mean, lists.indptr[:-1]), np.diff(lists.indptr))
    ranked: FloatArray = counts + (mean - low) / (2 * np.maximum(high - low, 1e-12))
    return ranked


def divide_mass(lists: CandidateLists, final: FloatArray) -> FloatArray:
    """Return how probable candidates are: the parser tells it of the list, final scores divide it."""
    mass = np.add.reduceat(lists.probabilities, lists.indptr[:-1])
    total = np.repeat(np.minimum(mass, 1.0), np.diff(lists.indptr))
    probabilities: FloatArray = np.exp(lists.log_softmax(final)) * total
    return probabilities


def append_rest(
    lists: CandidateLists, short: CandidateLists, reranked: FloatArray, beta: float
) -> FloatArray:
    """Return final scores where only the first candidates of each list, those in `short`, have been reranked.

    All others come after them, in the order of the parser.
    """
    final = beta * lists.scores
    for (begin, end), (first, last) in zip(lists.spans(), short.spans(), strict=True):
        n = last - first
        rest = final[begin + n : end] - final[begin + n - 1]
        final[begin : begin + n] = reranked[first:last]
        final[begin + n : end] = reranked[first:last].min() + rest
    return final


def _scatter(scores: FloatArray, lists: CandidateLists) -> float:
    """Return how far the scores of one list lie from their mean."""
    sizes = np.diff(lists.indptr)
    means = np.add.reduceat(scores, lists.indptr[:-1]) / sizes
    return float(np.sqrt(np.mean((scores - np.repeat(means, sizes)) ** 2)))
