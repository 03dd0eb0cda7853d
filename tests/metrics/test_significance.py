import numpy as np
import pytest
from oracle.significance import exact_p_value

import treewright as tw
from treewright.errors import InputError
from treewright.metrics.attachment import sentence_counts
from treewright.metrics.significance import accuracy_significance


def make_systems(n_sentences, right_a, right_b, random_state=0, n_words=6):
    """Make gold trees and two predictions that get each head right with the given chances."""
    rng = np.random.default_rng(random_state)
    gold = [tw.DepTree(["w"] * n_words, [0] * n_words) for _ in range(n_sentences)]
    systems = []
    for chance in (right_a, right_b):
        wrong = [rng.random(n_words - 1) >= chance for _ in gold]
        systems.append(
            [tree.with_heads([0, *one.astype(int).tolist()]) for tree, one in zip(gold, wrong, strict=True)]
        )
    return gold, *systems


@pytest.mark.parametrize("random_state", range(5))
def test_p_value_is_near_that_of_all_exchanges(random_state):
    gold, a, b = make_systems(12, 0.8, 0.5, random_state)
    correct = [sentence_counts(gold, system)[:, 1] for system in (a, b)]
    expected = exact_p_value(*correct, n_words=72)
    result = tw.metrics.significance(gold, a, b, n_shuffles=20_000)
    assert result.p_value == pytest.approx(expected, abs=0.015)


def test_exchanging_the_systems_changes_the_sign_alone():
    gold, a, b = make_systems(200, 0.9, 0.85)
    one, other = (tw.metrics.significance(gold, *pair, n_shuffles=2000) for pair in ((a, b), (b, a)))
    assert one.difference == -other.difference > 0
    assert one.p_value == pytest.approx(other.p_value, abs=0.02)


def test_difference_is_that_of_the_scores():
    gold, a, b = make_systems(50, 0.9, 0.6)
    result = tw.metrics.significance(gold, a, b, n_shuffles=100)
    scores = [tw.metrics.attachment(gold, system).uas for system in (a, b)]
    assert (result.score_a, result.score_b) == tuple(scores)
    assert result.difference == scores[0] - scores[1]


def test_equal_systems_are_not_different():
    gold, a, _ = make_systems(30, 0.7, 0.7)
    result = tw.metrics.significance(gold, a, a, n_shuffles=500)
    assert (result.p_value, result.difference, result.interval) == (1.0, 0.0, (0.0, 0.0))


def test_a_large_difference_has_the_smallest_p_value():
    gold, a, b = make_systems(300, 0.95, 0.5)
    result = tw.metrics.significance(gold, a, b, n_shuffles=999)
    assert result.p_value == pytest.approx(1 / 1000)
    assert result.interval[0] < result.difference < result.interval[1]
    assert result.interval[0] > 0


@pytest.mark.slow
def test_the_interval_covers_the_true_difference_as_often_as_it_says():
    n_covered = 0
    for random_state in range(100):
        gold, a, b = make_systems(60, 0.8, 0.7, random_state)
        low, high = tw.metrics.significance(gold, a, b, n_shuffles=400, confidence=0.9).interval
        n_covered += low <= 100 * 0.1 * 5 / 6 <= high
    assert 80 <= n_covered <= 98


def test_the_interval_has_the_quantiles_of_resampled_differences():
    gold, a, b = make_systems(80, 0.8, 0.7)
    differences = sentence_counts(gold, a)[:, 1] - sentence_counts(gold, b)[:, 1]
    rng = np.random.default_rng(7)
    samples = [100 * rng.choice(differences, differences.size).mean() / 6 for _ in range(20_000)]
    expected = np.quantile(samples, [0.1, 0.9])
    found = tw.metrics.significance(gold, a, b, n_shuffles=20_000, confidence=0.8).interval
    assert found == pytest.approx(expected, abs=0.15)


def test_a_missing_parse_is_skipped_as_in_parseval():
    gold = [tw.ConstTree.parse("(S (NP (D a) (N b)) (VP (V c)))")] * 5
    result = tw.metrics.significance(gold, gold, [None, *gold[1:]], metric="f1", n_shuffles=50)
    assert (result.score_b, result.difference) == (100, 0)


def test_same_seed_same_result():
    gold, a, b = make_systems(40, 0.8, 0.75)
    results = [
        tw.metrics.significance(gold, a, b, n_shuffles=300, random_state=random_state)
        for random_state in (1, 1, 2)
    ]
    assert results[0] == results[1] != results[2]


def test_constituents_are_tested_by_f1():
    gold = [tw.ConstTree.parse("(S (NP (D a) (N b)) (VP (V c)))")] * 20
    worse = [tw.ConstTree.parse("(S (D a) (NP (N b)) (VP (V c)))")] * 20
    result = tw.metrics.significance(gold, gold, worse, metric="f1", n_shuffles=200)
    assert (result.score_a, result.score_b) == pytest.approx((100, 200 / 3))
    assert result.p_value == pytest.approx(1 / 201)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "bleu"}, "metric is 'bleu'; expected one of uas, las"),
        (
            {"metric": "f1"},
            "metric 'f1' needs ConstTree, but the trees are of another kind; expected a metric for these",
        ),
        ({"n_shuffles": 0}, "n_shuffles is 0; expected an integer of at least 1"),
        ({"n_shuffles": 10.5}, "n_shuffles is 10.5; expected an integer of at least 1"),
        ({"random_state": -1}, "random_state is -1; expected an integer of at least 0"),
        ({"confidence": 1.5}, "confidence is 1.5; expected a number from 0 to 1"),
    ],
)
def test_significance_rejects_bad_options(options, message):
    gold, a, b = make_systems(2, 0.5, 0.5)
    with pytest.raises(InputError, match=message):
        tw.metrics.significance(gold, a, b, **options)


def test_significance_rejects_no_sentences():
    with pytest.raises(InputError, match="no sentences were given"):
        tw.metrics.significance([], [], [])


@pytest.mark.slow_cases
@pytest.mark.parametrize("random_state", range(3))
def test_p_value_of_accuracies_is_near_that_of_all_exchanges(random_state):
    rng = np.random.default_rng(random_state)
    right_a, right_b = rng.random(14) < 0.8, rng.random(14) < 0.5
    expected = exact_p_value(right_a.astype(float), right_b.astype(float), n_words=14)
    result = accuracy_significance(right_a, right_b, n_shuffles=20_000)
    assert result.p_value == pytest.approx(expected, abs=0.015)
    assert result.difference == pytest.approx(result.score_a - result.score_b)
    assert result.score_a == pytest.approx(100 * right_a.mean())
    assert result.interval[0] <= result.difference <= result.interval[1]


def test_accuracies_that_are_equal_everywhere_are_not_different():
    result = accuracy_significance([True, False, True], [True, False, True], n_shuffles=100)
    assert (result.p_value, result.difference, result.interval) == (1.0, 0.0, (0.0, 0.0))


def test_accuracies_of_unlike_numbers_are_refused():
    with pytest.raises(
        InputError, match="the systems have 2 and 1 examples; expected equal numbers, at least one"
    ):
        accuracy_significance([True, False], [True])


def test_examples_of_a_group_are_exchanged_together():
    right_a, right_b = np.ones(12, bool), np.zeros(12, bool)
    alone = accuracy_significance(right_a, right_b, n_shuffles=5000)
    grouped = accuracy_significance(right_a, right_b, groups=[0] * 6 + [1] * 6, n_shuffles=5000)
    assert alone.p_value == pytest.approx(2 / 2**12, abs=0.002)
    assert grouped.p_value == pytest.approx(0.5, abs=0.03)
