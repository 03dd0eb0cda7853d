from math import lgamma, log

import numba
import numpy as np
import pytest
from oracle.dependency import eisner as twin

from treewright.native.dependency.eisner import arc_marginals

NO_ARC = -1e9
UNLESS_SLOW = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="too much for code that is not compiled"
)


def measure(score, *, single_root=True):
    marginal = np.full(score.shape, np.nan)
    log_sum = arc_marginals(score, single_root, marginal)
    return marginal, log_sum


def random_scores(n, spread, seed=0):
    return np.random.default_rng(seed).normal(scale=spread, size=(n + 1, n + 1))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("spread", [0.0, 3.0, 30.0, 1000.0])
@pytest.mark.parametrize("single_root", [True, False])
def test_marginals_and_log_sum_equal_those_of_listed_trees(n, spread, single_root):
    score = random_scores(n, spread, seed=n)
    marginal, log_sum = measure(score, single_root=single_root)
    expected, expected_sum = twin.arc_marginals(score, single_root=single_root)
    np.testing.assert_allclose(marginal, expected, atol=1e-10)
    assert log_sum == pytest.approx(expected_sum, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_excluded_arcs_are_as_if_not_there(seed):
    score = random_scores(5, 2.0, seed)
    keep = np.random.default_rng(seed).random(score.shape) < 0.6
    keep[np.arange(5), np.arange(1, 6)] = True
    score[~keep] = NO_ARC
    marginal, log_sum = measure(score)
    arcs = set(zip(*(at.tolist() for at in np.nonzero(keep)), strict=True))
    expected, expected_sum = twin.arc_marginals(score, arcs)
    np.testing.assert_allclose(marginal, expected, atol=1e-10)
    assert log_sum == pytest.approx(expected_sum, rel=1e-12)


def test_two_words_that_want_each_other_share_the_root():
    score = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1000.0], [0.0, 1000.0, 0.0]])
    marginal, log_sum = measure(score)
    np.testing.assert_allclose(marginal, [[0, 0.5, 0.5], [0, 0, 0.5], [0, 0.5, 0]], atol=1e-12)
    assert log_sum == pytest.approx(1000 + np.log(2))


def test_where_every_tree_has_an_excluded_arc_the_others_decide():
    score = np.full((4, 4), NO_ARC)
    score[1, 2] = score[2, 1] = score[2, 3] = 5.0
    marginal, log_sum = measure(score)
    assert marginal[2, 3] == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(marginal[:, 1:].sum(axis=0), 1.0, atol=1e-6)
    assert log_sum == pytest.approx(NO_ARC + 10, abs=1.0)


def test_a_sentence_without_words_has_no_arcs():
    marginal, _ = measure(np.zeros((1, 1)))
    assert marginal.tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("n", "spread", "share_excluded"),
    [(60, 3.0, 0.0), (60, 1000.0, 0.0), (60, 3.0, 0.8), (40, 1000.0, 0.8)],
)
def test_heads_of_long_sentences_have_probabilities(n, spread, share_excluded):
    score = random_scores(n, spread)
    score[np.random.default_rng(1).random(score.shape) < share_excluded] = NO_ARC
    marginal, log_sum = measure(score)
    assert np.isfinite(log_sum)
    assert marginal.min() >= 0
    np.testing.assert_allclose(marginal[:, 1:].sum(axis=0), 1.0, atol=1e-6)
    assert marginal[0].sum() == pytest.approx(1.0)


def log_number_of_trees(n):
    """Return the logarithm of C(3 n - 2, n - 1) / n, the number of projective trees with one root."""
    return lgamma(3 * n - 1) - lgamma(n) - lgamma(2 * n) - log(n)


@pytest.mark.parametrize("n", [1, 7, 60, pytest.param(300, marks=UNLESS_SLOW)])
def test_equal_scores_count_trees_however_long_the_sentence(n):
    marginal, log_sum = measure(np.zeros((n + 1, n + 1)))
    assert log_sum == pytest.approx(log_number_of_trees(n), abs=1e-8)
    np.testing.assert_allclose(marginal[:, 1:].sum(axis=0), 1.0, atol=1e-8)
