"""Arc marginals of a first-order model over all projective trees.

Eisner's (1996) chart in the sum-product semiring: the inside pass is the recursion, the outside pass is its
derivative. Scores are in a square matrix, with heads in rows and modifiers in columns; index 0 is the root.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place

EXCLUDED = -1e9
"""Score of an arc that is used only if there is no tree without it."""
SMALLEST_SUM = 1e-200
"""Minimum sum over all trees that counts as free of underflow; its inverse is the limit for overflow."""
N_TRIALS = 8
"""Maximum number of times that potentials are doubled to avoid underflow."""


class Spans(NamedTuple):
    """Sums for each span [i, j].

    `left` and `right` are for spans headed by j and by i, respectively; `to_left` and `to_right` are for
    spans with an arc from j to i and from i to j. Arrays that are read with i fixed have i in rows; arrays
    "by end" are read with j fixed and have j in rows, so that memory is read in order.
    """

    left: np.ndarray
    left_by_end: np.ndarray
    right: np.ndarray
    right_by_end: np.ndarray
    to_left_by_end: np.ndarray
    to_right: np.ndarray


@compiled
def arc_marginals(score, single_root, marginal):
    """Fill `marginal` with the probability of each arc; return the log of the sum over all trees.

    With `single_root`, the sum is over the trees in which exactly one word is attached to the root.
    """
    if single_root:
        return _rooted_marginals(score, marginal)
    wider = root_as_word(score)
    found = np.empty(wider.shape)
    log_sum = _rooted_marginals(wider, found)
    drop_root_word(found, marginal)
    return log_sum


@compiled
def root_as_word(score):
    """Return scores in which the root is an ordinary word, the only one that may be attached to a new root.

    Single-root trees under these scores correspond to trees with any number of roots under the original
    scores.
    """
    wider = np.full((score.shape[0] + 1, score.shape[0] + 1), EXCLUDED)
    wider[0, 1] = 0.0
    for head in range(score.shape[0]):
        for word in range(1, score.shape[0]):
            wider[head + 1, word + 1] = score[head, word]
    return wider


@in_place
def drop_root_word(found, marginal):
    """Fill the marginals of arcs from marginals that were computed with the root as a word."""
    for head in range(marginal.shape[0]):
        marginal[head, 0] = 0.0
        for word in range(1, marginal.shape[0]):
            marginal[head, word] = found[head + 1, word + 1]


@compiled
def _rooted_marginals(score, marginal):
    n = score.shape[0] - 1
    potential = np.zeros((n + 1, n + 1))
    log_scale = _normalize(score, potential)
    spans = _no_spans(n)
    for _ in range(N_TRIALS):
        total = _fill_inside(potential, spans)
        if total >= SMALLEST_SUM:
            break
        _double(potential)
        log_scale -= n * np.log(2.0)
    if SMALLEST_SUM <= total <= 1 / SMALLEST_SUM:
        _fill_marginals(potential, spans, total, marginal)
        if _adds_up(marginal):
            return np.log(total) + log_scale
    return _log_marginals(score, marginal)


@in_place
def _double(potential):
    for head in range(potential.shape[0]):
        for word in range(potential.shape[1]):
            potential[head, word] *= 2.0


@compiled
def _no_spans(n):
    size = (n + 2, n + 2)
    return Spans(
        np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size)
    )


@in_place
def _adds_up(marginal):
    """Return whether the probabilities of the heads of each word add up to 1."""
    for word in range(1, marginal.shape[0]):
        total = 0.0
        for head in range(marginal.shape[0]):
            total += marginal[head, word]
        if not abs(total - 1.0) < 1e-9:
            return False
    return True


@in_place
def _normalize(score, potential):
    """Turn scores into positive numbers that sum to 1 over the heads of each word."""
    n = score.shape[0] - 1
    log_scale = 0.0
    for word in range(1, n + 1):
        highest = -np.inf
        for head in range(n + 1):
            if head != word:
                highest = max(highest, score[head, word])
        total = 0.0
        for head in range(n + 1):
            if head != word:
                potential[head, word] = np.exp(score[head, word] - highest)
                total += potential[head, word]
        for head in range(n + 1):
            potential[head, word] /= total
        log_scale += highest + np.log(total)
    return log_scale


@in_place
def _fill_inside(potential, spans):
    """Fill the inside sums of spans; return the sum over all trees."""
    left, left_by_end, right, right_by_end, to_left_by_end, to_right = spans
    n = potential.shape[0] - 1
    for word in range(1, n + 1):
        left[word, word] = left_by_end[word, word] = right[word, word] = right_by_end[word, word] = 1.0
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            apart = 0.0
            for r in range(i, j):
                apart += right[i, r] * left_by_end[j, r + 1]
            to_right[i, j] = apart * potential[i, j]
            to_left_by_end[j, i] = apart * potential[j, i]
            headed_right = headed_left = 0.0
            for r in range(i, j):
                headed_right += left[i, r] * to_left_by_end[j, r]
                headed_left += to_right[i, r + 1] * right_by_end[j, r + 1]
            left[i, j] = left_by_end[j, i] = headed_right
            right[i, j] = right_by_end[j, i] = headed_left
    total = 0.0
    for word in range(1, n + 1):
        total += potential[0, word] * left[1, word] * right[word, n]
    return total


@compiled
def _fill_marginals(potential, spans, total, marginal):
    n = potential.shape[0] - 1
    # Contributions to a span by rows and by columns are collected separately and added when they are used.
    outside = _no_spans(n)
    marginal[:, :] = 0.0
    for word in range(1, n + 1):
        share = potential[0, word] / total
        outside.left[1, word] += share * spans.right[word, n]
        outside.right[word, n] += share * spans.left[1, word]
        marginal[0, word] = share * spans.left[1, word] * spans.right[word, n]
    _hand_down(potential, spans, outside, marginal)


@in_place
def _hand_down(potential, spans, outside, marginal):
    """Fill the derivatives of the sum with respect to each span, widest span first, and the arc marginals."""
    left, left_by_end, right, right_by_end, to_left_by_end, to_right = spans
    left_out, left_out_by_end, right_out, right_out_by_end, to_left_out_by_end, to_right_out = outside
    n = potential.shape[0] - 1
    for width in range(n - 1, 0, -1):
        for i in range(1, n - width + 1):
            j = i + width
            above_left = left_out[i, j] + left_out_by_end[j, i]
            above_right = right_out[i, j] + right_out_by_end[j, i]
            for r in range(i, j):
                left_out[i, r] += above_left * to_left_by_end[j, r]
                to_left_out_by_end[j, r] += above_left * left[i, r]
                to_right_out[i, r + 1] += above_right * right_by_end[j, r + 1]
                right_out_by_end[j, r + 1] += above_right * to_right[i, r + 1]
            above = to_right_out[i, j] * potential[i, j] + to_left_out_by_end[j, i] * potential[j, i]
            for r in range(i, j):
                right_out[i, r] += above * left_by_end[j, r + 1]
                left_out_by_end[j, r + 1] += above * right[i, r]
            marginal[i, j] = to_right[i, j] * to_right_out[i, j]
            marginal[j, i] = to_left_by_end[j, i] * to_left_out_by_end[j, i]


@compiled
def _log_marginals(score, marginal):
    """Fill the marginals in log space, which is slower but works for all scores and sentence lengths."""
    n = score.shape[0] - 1
    left = np.zeros((n + 2, n + 2))
    right = np.zeros((n + 2, n + 2))
    apart = np.zeros((n + 2, n + 2))
    to_left = np.zeros((n + 2, n + 2))
    to_right = np.zeros((n + 2, n + 2))
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            apart[i, j] = _log_sum(right[i, i:j], left[i + 1 : j + 1, j])
            to_right[i, j] = apart[i, j] + score[i, j]
            to_left[i, j] = apart[i, j] + score[j, i]
            left[i, j] = _log_sum(left[i, i:j], to_left[i:j, j])
            right[i, j] = _log_sum(to_right[i, i + 1 : j + 1], right[i + 1 : j + 1, j])
    total = _log_sum(score[0, 1:] + left[1, 1 : n + 1], right[1 : n + 1, n])
    _share_out(score, left, right, apart, to_left, to_right, total, marginal)
    return total


@in_place
def _log_sum(one, other):
    """Return the log of a sum of products of numbers whose logs are given."""
    highest = -np.inf
    for at in range(one.size):
        highest = max(highest, one[at] + other[at])
    total = 0.0
    for at in range(one.size):
        total += np.exp(one[at] + other[at] - highest)
    return highest + np.log(total) if one.size > 0 else highest


@compiled
def _share_out(score, left, right, apart, to_left, to_right, total, marginal):
    """Distribute the probability of each span to the spans that it consists of."""
    n = score.shape[0] - 1
    left_share = np.zeros((n + 2, n + 2))
    right_share = np.zeros((n + 2, n + 2))
    marginal[:, :] = 0.0
    for word in range(1, n + 1):
        share = np.exp(score[0, word] + left[1, word] + right[word, n] - total)
        marginal[0, word] = share
        left_share[1, word] += share
        right_share[word, n] += share
    for width in range(n - 1, 0, -1):
        for i in range(1, n - width + 1):
            j = i + width
            for r in range(i, j):
                share = left_share[i, j] * np.exp(left[i, r] + to_left[r, j] - left[i, j])
                left_share[i, r] += share
                marginal[j, r] += share
                share = right_share[i, j] * np.exp(to_right[i, r + 1] + right[r + 1, j] - right[i, j])
                marginal[i, r + 1] += share
                right_share[r + 1, j] += share
            for r in range(i, j):
                share = (marginal[i, j] + marginal[j, i]) * np.exp(right[i, r] + left[r + 1, j] - apart[i, j])
                right_share[i, r] += share
                left_share[r + 1, j] += share
