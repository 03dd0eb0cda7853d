import numpy as np
import pytest

import treewright as tw
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.tuning import append_rest, combine, divide_mass, tune


def make_lists(*sizes):
    trees = [tw.DepTree(["a"])] * len(sizes)
    heads = [np.zeros((size, 1), dtype=np.int32) for size in sizes]
    scores = [-np.arange(size, dtype=float) for size in sizes]
    return CandidateLists(trees, heads, scores, scores)


def test_one_reranker_adds_to_the_score_of_the_parser():
    lists = make_lists(3)
    assert combine(lists, np.array([[0.0], [5.0], [1.0]]), 2.0).tolist() == [0.0, 3.0, -3.0]


def test_of_several_rerankers_the_majority_decides():
    lists = make_lists(3, 2)
    votes = np.array([[9, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0], [3, 3, 3]], dtype=float)
    final = combine(lists, votes, 0.1)
    assert lists.best(final).tolist() == [1, 4]


def test_equal_votes_are_decided_by_the_mean():
    lists = make_lists(2)
    final = combine(lists, np.array([[5.0, 0.0], [0.0, 1.0]]), 0.0)
    assert lists.best(final).tolist() == [0]


def draw_lists(random_state, n_lists=200, size=5, n_words=6):
    """Draw candidates, of which the parser finds the right one no more often than chance, and gold heads."""
    rng = np.random.default_rng(random_state)
    trees = [tw.DepTree(["word"] * n_words)] * n_lists
    gold = [np.zeros(n_words, dtype=np.int32)] * n_lists
    heads = [np.zeros((size, n_words), dtype=np.int32) for _ in trees]
    for each in heads:
        # Two words below the first one are right or wrong by chance.
        each[:, 1:3] = rng.integers(0, 2, size=(size, 2))
    scores = [np.sort(rng.normal(size=size))[::-1] for _ in trees]
    return CandidateLists(trees, heads, scores, [np.full(size, 0.1) for _ in trees]), gold


def test_a_real_gain_is_significant():
    lists, gold = draw_lists(0)
    noise = np.random.default_rng(1).normal(size=lists.n_candidates)
    found = tune(lists, gold, [noise[:, np.newaxis], (lists.n_right(gold) + noise)[:, np.newaxis]])
    assert found.number == 1
    assert found.gain > 5
    assert found.is_significant(0.001)


@pytest.mark.slow
def test_the_gain_by_chance_of_the_best_of_many_scores_is_not():
    significant = 0
    for random_state in range(20):
        lists, gold = draw_lists(random_state)
        trials = np.random.default_rng(100 + random_state).normal(size=(4, lists.n_candidates, 1))
        found = tune(lists, gold, list(trials))
        assert found.uas >= found.parser_uas
        significant += found.is_significant(0.05)
    assert significant <= 2


def test_the_best_scores_have_the_uas_that_is_told():
    lists, gold = draw_lists(3)
    trials = list(np.random.default_rng(3).normal(size=(2, lists.n_candidates, 1)))
    found = tune(lists, gold, trials)
    best = lists.best(combine(lists, trials[found.number], found.beta))
    assert found.uas == pytest.approx(100 * lists.n_right(gold)[best].sum() / (200 * 6))
    assert found.parser_uas == pytest.approx(lists.uas(gold)[0])


def test_half_of_the_lists_is_reranked_by_what_is_best_for_the_other():
    lists, gold = draw_lists(4)
    helpful = lists.n_right(gold).astype(float)
    # What helps in the first half harms in the second: each half chooses what is worst for the other.
    turned = np.where(np.arange(lists.n_candidates) < lists.indptr[100], helpful, -helpful)
    found = tune(lists, gold, [turned[:, np.newaxis], -turned[:, np.newaxis]])
    assert found.uas > found.parser_uas
    assert found.gain < -5
    assert not found.is_significant(0.05)


def test_the_best_of_given_betas_is_chosen():
    lists, gold = draw_lists(3)
    trials = [(lists.n_right(gold) + np.random.default_rng(3).normal(size=lists.n_candidates))[:, np.newaxis]]
    betas = (7.0, 0.5, 0.125, 30.0)
    found = tune(lists, gold, trials, betas=betas)
    n_right = {beta: lists.n_right(gold)[lists.best(combine(lists, trials[0], beta))].sum() for beta in betas}
    assert found.beta == max(betas, key=lambda beta: n_right[beta])
    assert tune(lists, gold, trials, betas=(30.0,)).beta == 30.0
    assert tune(lists, gold, trials).beta not in betas


def test_of_betas_that_are_as_good_the_highest_is_chosen():
    lists, gold = draw_lists(3)
    nothing = np.zeros((lists.n_candidates, 1))
    assert tune(lists, gold, [nothing], betas=(0.5, 2.0, 1.0)).beta == 2.0


def test_one_list_shows_no_gain():
    lists, gold = draw_lists(5, n_lists=1)
    found = tune(lists, gold, [lists.n_right(gold).astype(float)[:, np.newaxis]])
    assert found.p_value == 1
    assert not found.is_significant(0.05)


def test_probabilities_of_a_list_sum_to_what_the_parser_gives_it():
    lists, _ = draw_lists(6, n_lists=3)
    found = divide_mass(lists, np.random.default_rng(6).normal(size=lists.n_candidates))
    np.testing.assert_allclose(found.reshape(3, 5).sum(axis=1), 0.5)


def test_candidates_that_are_not_reranked_come_last_in_the_order_of_the_parser():
    lists = make_lists(4, 2)
    final = append_rest(lists, lists.shortened(2), np.array([1.0, 5.0, 2.0, 3.0]), 2.0)
    assert final.tolist() == [1.0, 5.0, -1.0, -3.0, 2.0, 3.0]
