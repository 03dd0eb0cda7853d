import functools

import numba
import numpy as np
import pytest
from oracle.dependency import arborescence as oracle

from treewright.native.dependency.arborescence import (
    best_arborescence,
    best_arborescences,
    matrix_tree_marginals,
)
from treewright.native.dependency.eisner import EXCLUDED

LONG = 500 if not numba.config.DISABLE_JIT else 40
trees = functools.lru_cache(oracle.trees)


@pytest.fixture(autouse=True)
def _list_trees_once(monkeypatch):
    monkeypatch.setattr(oracle, "trees", trees)


def best_tree(score, single_root):
    heads = np.full(len(score), -1, np.int32)
    best_arborescence(score, single_root, heads)
    assert heads[0] == 0
    return tuple(heads[1:].tolist())


def draws(seed, sizes, repeat):
    """Yield random squares: with many ties, without, and with many arcs excluded."""
    rng = np.random.default_rng(seed)
    for n in sizes:
        for _ in range(repeat):
            yield rng.integers(-2, 3, (n + 1, n + 1)).astype(np.float64)
            yield rng.normal(0, 5, (n + 1, n + 1))
            score = rng.integers(-9, 9, (n + 1, n + 1)).astype(np.float64)
            score[rng.random(score.shape) < 0.6] = EXCLUDED
            yield score


@pytest.mark.parametrize("single_root", [False, True])
def test_the_best_tree_has_the_highest_score_of_all(single_root):
    for score in [*draws(0, range(1, 6), 8), *draws(1, [6], 1)]:
        found = best_tree(score, single_root)
        assert found in trees(len(found), single_root)
        assert oracle.total(score, found) == pytest.approx(oracle.best_total(score, single_root), rel=1e-12)


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("k", [1, 4, 400])
def test_the_best_trees_are_those_of_the_sorted_list(single_root, k):
    for score in draws(2, range(1, 5), 3):
        n = len(score) - 1
        listed = [one for one in trees(n, single_root) if oracle.total(score, one) > EXCLUDED / 2]
        heads, totals = np.full((k, n + 1), -1, np.int32), np.empty(k)
        n_found = best_arborescences(score, single_root, heads, totals)
        if not listed:
            assert n_found == 1  # With a root or an arc that is not wanted, rather than none.
            continue
        assert n_found == min(k, len(listed))
        found = [tuple(one[1:]) for one in heads[:n_found].tolist()]
        assert len(set(found)) == n_found
        assert set(found) <= set(listed)
        expected = sorted((oracle.total(score, one) for one in listed), reverse=True)[:k]
        assert totals[:n_found].tolist() == pytest.approx(expected, rel=1e-12)
        assert [oracle.total(score, one) for one in found] == pytest.approx(expected, rel=1e-12)


def test_scores_are_not_blurred_by_excluded_arcs():
    score = np.full((5, 5), EXCLUDED)
    score[0, 1] = score[1, 2] = score[2, 3] = 0.0
    score[1, 4], score[3, 4] = 1.0, 1.0 + 1e-12
    assert best_tree(score, True) == (0, 1, 2, 3)
    score[1, 2] = EXCLUDED
    assert best_tree(score, True)[2:] == (2, 3)


def test_one_word_hangs_on_the_root():
    assert best_tree(np.full((2, 2), EXCLUDED), True) == (0,)
    assert best_tree(np.zeros((2, 2)), False) == (0,)


@pytest.mark.parametrize("single_root", [False, True])
def test_a_planted_tree_over_a_long_sentence_is_found(single_root):
    rng = np.random.default_rng(2)
    score = rng.normal(0, 1, (LONG + 1, LONG + 1))
    order = 1 + rng.permutation(LONG)
    planted = np.zeros(LONG + 1, np.int32)
    for at in range(1, LONG):
        planted[order[at]] = order[rng.integers(at)]
    score[planted[1:], np.arange(1, LONG + 1)] += 20
    assert best_tree(score, single_root) == tuple(planted[1:].tolist())


def test_nested_cycles_are_entered_where_it_costs_least():
    chain = np.zeros((LONG + 1, LONG + 1))
    for word in range(1, LONG):
        chain[word, word + 1] = chain[word + 1, word] = LONG + word
    chain[0, LONG] = 1.0
    assert best_tree(chain, True) == (*range(2, LONG + 1), 0)


def test_marginals_equal_those_of_listed_trees():
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 4, 5):
        for scale in (0.0, 1.0, 4.0):
            score = rng.normal(0, scale, (n + 1, n + 1))
            marginal = np.full((n + 1, n + 1), np.nan)
            log_sum = matrix_tree_marginals(score, True, marginal)
            expected, expected_log_sum = oracle.marginals(score.tolist())
            np.testing.assert_allclose(marginal, expected, atol=1e-9)
            assert log_sum == pytest.approx(expected_log_sum, abs=1e-9)


def test_marginals_survive_words_that_prefer_each_other():
    rng = np.random.default_rng(5)
    score = rng.normal(0, 1, (6, 6))
    for word, other in ((1, 4), (2, 3)):
        score[word, other] += 100
        score[other, word] += 100
    marginal = np.empty((6, 6))
    log_sum = matrix_tree_marginals(score, True, marginal)
    expected, expected_log_sum = oracle.marginals(score.tolist())
    np.testing.assert_allclose(marginal, expected, atol=1e-12)
    assert log_sum == pytest.approx(expected_log_sum, rel=1e-12)


def test_without_a_tree_the_sum_is_zero():
    score = np.full((5, 5), EXCLUDED)
    score[0, 1] = score[0, 3] = score[1, 2] = score[2, 1] = score[3, 4] = score[4, 3] = 0.0
    marginal = np.empty((5, 5))
    assert matrix_tree_marginals(score, True, marginal) == -np.inf
    assert not marginal.any()


def test_excluded_arcs_have_no_probability():
    score = np.full((4, 4), EXCLUDED)
    score[0, 1] = score[0, 2] = score[1, 2] = score[2, 1] = score[1, 3] = score[2, 3] = 0.0
    marginal = np.empty((4, 4))
    assert matrix_tree_marginals(score, True, marginal) == pytest.approx(np.log(4))
    np.testing.assert_allclose(marginal[:, 1:], [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0, 0, 0]])


@pytest.mark.parametrize("scale", [1.0, 10.0, 40.0])
def test_marginals_of_a_long_sentence_are_probabilities(scale):
    n = 200 if not numba.config.DISABLE_JIT else 20
    rng = np.random.default_rng(4)
    score = 1000 + rng.normal(0, scale, (n + 1, n + 1))
    marginal = np.empty((n + 1, n + 1))
    assert np.isfinite(matrix_tree_marginals(score, True, marginal))
    np.testing.assert_allclose(marginal[:, 1:].sum(axis=0), 1.0, atol=1e-9)
    assert marginal[0].sum() == pytest.approx(1.0, abs=1e-9)
    assert marginal.min() >= 0
