"""make_conjunctions: labels that planted conjunctions decide, and parts that say nothing."""

from itertools import combinations

import numpy as np
import pytest

from treewright._typing import RandomState
from treewright._validate import describe_type
from treewright.data.conjunctions import make_conjunctions, score_planted
from treewright.errors import InputError


@pytest.fixture(scope="module")
def planted():
    return make_conjunctions()


def present(rows, columns):
    return np.asarray(rows[:, list(columns)].sum(axis=1)).ravel() == len(columns)


def test_shapes_and_types(planted):
    assert planted.X.shape == (20000, 2000)
    assert planted.X.dtype == np.int8
    assert planted.X.has_sorted_indices
    assert set(planted.X.data) == {1}
    assert planted.y.dtype == np.int64
    assert sorted(set(planted.y)) == [0, 1]


def test_conjunctions_have_their_orders_and_share_no_column(planted):
    assert [len(each) for each in planted.conjunctions] == [3] * 8 + [4] * 4
    assert all(list(each) == sorted(each) for each in planted.conjunctions)
    assert len(set().union(*planted.conjunctions)) == 40
    assert planted.signs.tolist() == [1, -1] * 6


def test_scores_sum_the_signs_of_complete_conjunctions(planted):
    score = score_planted(planted.X, planted.conjunctions, planted.signs)
    complete = np.array([present(planted.X, each) for each in planted.conjunctions])
    np.testing.assert_array_equal(score, planted.signs @ complete)


def test_without_noise_a_complete_conjunction_decides_the_label():
    rows, y, conjunctions, signs, best_accuracy = make_conjunctions(noise=0)
    score = score_planted(rows, conjunctions, signs)
    np.testing.assert_array_equal(y[score != 0], score[score != 0] > 0)
    undecided = y[score == 0]
    assert abs(undecided.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(undecided))
    assert best_accuracy == 1 - (score == 0).mean() / 2


@pytest.mark.parametrize("coverage", [0.3, 0.85, 1.0])
def test_one_conjunction_is_complete_in_the_share_that_was_asked_for(coverage):
    rows, _, conjunctions, _, _ = make_conjunctions(10000, coverage=coverage)
    n_complete = sum(present(rows, each).astype(int) for each in conjunctions)
    assert n_complete.max() == 1
    assert abs(n_complete.mean() - coverage) < 0.002


def test_noise_turns_its_share_of_the_labels(planted):
    score = score_planted(planted.X, planted.conjunctions, planted.signs)
    agrees = (score > 0) == (planted.y == 1)
    assert abs(agrees[score != 0].mean() - 0.95) < 0.01
    assert planted.best_accuracy == np.where(score == 0, 0.5, agrees).mean()


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "arguments", [{}, {"orders": (3, 2, 4, 3, 2, 3, 4, 4), "noise": 0}, {"orders": (4,) * 16}]
)
def test_no_part_of_a_conjunction_tells_the_label(arguments):
    rows, y, conjunctions, _, _ = make_conjunctions(**arguments)
    rows = rows.toarray()
    for conjunction in conjunctions:
        for size in range(1, len(conjunction)):
            for part in combinations(conjunction, size):
                values = present(rows, part)
                share = values.mean()
                error = np.sqrt(share * (1 - share) * (1 / (y == 0).sum() + 1 / (y == 1).sum()))
                assert 0 < share < 1
                assert abs(values[y == 1].mean() - values[y == 0].mean()) < 4 * error


def test_samples_without_a_conjunction_have_parts_that_do_not_tell_their_label(planted):
    undecided = score_planted(planted.X, planted.conjunctions, planted.signs) == 0
    rows, y = planted.X[undecided].toarray(), planted.y[undecided]
    for conjunction in planted.conjunctions:
        for part in combinations(conjunction, len(conjunction) - 1):
            values = present(rows, part)
            error = np.sqrt(values.mean() * (1 / (y == 0).sum() + 1 / (y == 1).sum()))
            assert values.any()
            assert abs(values[y == 1].mean() - values[y == 0].mean()) < 4 * error


def test_orders_whose_parts_would_give_labels_away_are_refused():
    with pytest.raises(InputError, match=r"orders is \(3, 3\); expected more or shorter conjunctions"):
        make_conjunctions(4000, orders=(3, 3))


@pytest.mark.parametrize("n_active", [20, 30, 60])
def test_rows_have_about_as_many_active_columns_as_asked_for(n_active):
    planted = make_conjunctions(5000, n_active=n_active)
    assert abs(planted.X.nnz / 5000 - n_active) < 0.05 * n_active


def test_rows_may_have_planted_columns_only():
    planted = make_conjunctions(1000, 500, n_active=0)
    assert set(planted.X.indices) == set().union(*planted.conjunctions)


def test_same_seed_same_samples():
    one, other = make_conjunctions(1000, random_state=3), make_conjunctions(1000, random_state=3)
    assert (one.X != other.X).nnz == 0
    np.testing.assert_array_equal(one.y, other.y)
    assert one.conjunctions == other.conjunctions


def test_other_seed_other_samples():
    one, other = make_conjunctions(1000, random_state=3), make_conjunctions(1000, random_state=4)
    assert (one.X != other.X).nnz > 0
    assert one.conjunctions != other.conjunctions
    assert (one.y != other.y).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": 39}, "n_features is 39; expected at least 40, the sum of orders"),
        ({"n_features": 50, "n_active": 51}, "n_active is 51; expected at most 50, the value of n_features"),
        ({"orders": (3,)}, "orders has 1 values; expected at least 2, one for each label"),
        ({"orders": (3, 0)}, "an order is 0; expected an integer of at least 1"),
        ({"orders": (3, 17)}, "an order is 17; expected at most 16"),
        ({"coverage": 1.5}, "coverage is 1.5; expected a number from 0 to 1"),
        ({"noise": -1}, "noise is -1; expected a number from 0 to 1"),
        ({"random_state": -1}, f"random_state is -1; expected {describe_type(RandomState)}"),
        ({"n_samples": 0}, "n_samples is 0; expected an integer of at least 1"),
        (
            {"n_samples": 10},
            "n_samples is 10 and coverage is 0.85; expected larger values, since with these a conjunction of "
            "order 4 would never be complete",
        ),
    ],
)
def test_impossible_arguments_are_refused(arguments, message):
    with pytest.raises(InputError) as error:
        make_conjunctions(**arguments)
    assert str(error.value) == message
