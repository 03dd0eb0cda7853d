from itertools import pairwise

import numpy as np
import pytest
from oracle.learn import ranking as twin
from scipy.sparse import csr_matrix

from treewright._typing import RandomState
from treewright._validate import describe_type
from treewright.errors import InputError
from treewright.learn.ranking import AveragedRanker, LogLinearRanker, _Likelihood, fit_penalties
from treewright.mining.problem import list_problem


def draw(random_state, n_lists=20):
    """Draw binary rows in lists, the right one with more of the first features, but for some noise."""
    rng = np.random.default_rng(random_state)
    first = np.cumsum([0, *rng.integers(1, 6, size=n_lists)])
    dense = (rng.random((first[-1], 8)) < 0.4).astype(float)
    scores = dense @ [3, 2, 2, 1, 0, 0, -1, -2] + rng.normal(scale=0.5, size=len(dense))
    right = np.array([begin + scores[begin:end].argmax() for begin, end in pairwise(first)])
    costs, given = rng.integers(1, 9, size=len(dense)) / 8, rng.integers(-16, 17, size=len(dense)) / 8
    return dense, first, right, costs, given


def make(first, right, **options):
    return list_problem(first, right, **options).alternatives


def expect(random_state, dense, first, right, start, *, epochs, **options):
    """Return the mean weights of the twin, and the updates in each epoch."""
    rows = make(first, right).rows.tolist()
    lists = [rows[begin:end] for begin, end in pairwise(first)]
    rng = np.random.default_rng(random_state)
    orders = [rng.permutation(len(lists)) for _ in range(epochs)]
    _, mean, n_updates = twin.rank(dense, lists, orders, start, **options)
    return mean, n_updates


@pytest.mark.parametrize("random_state", range(6))
@pytest.mark.parametrize(
    "options", [{}, {"rate": 0.25}, {"margin": 2}, {"rate": 0.5, "margin": 0.75, "epochs": 3}]
)
def test_weights_are_the_mean_of_all_that_the_twin_passes_through(random_state, options):
    dense, first, right, costs, given = draw(random_state)
    start = np.random.default_rng(random_state).integers(-8, 9, size=8) / 8
    ranker = AveragedRanker(random_state=random_state, **options)
    ranker.fit(csr_matrix(dense), make(first, right, costs=costs, base_scores=given), coef_init=start)
    settings = {"epochs": 10, **options, "costs": costs, "given": given}
    expected, n_updates = expect(random_state, dense, first, right, start, **settings)
    np.testing.assert_allclose(ranker.coef_, expected, atol=1e-12)
    assert ranker.n_updates_ == n_updates
    assert sum(n_updates)


@pytest.mark.parametrize("random_state", range(3))
def test_without_a_start_weights_begin_at_zero(random_state):
    dense, first, right, costs, _ = draw(random_state)
    found = AveragedRanker(epochs=2).fit(csr_matrix(dense), make(first, right))
    zeros = {"costs": costs, "given": np.zeros(len(dense))}
    expected, _ = expect(0, dense, first, right, np.zeros(8), epochs=2, **zeros)
    np.testing.assert_allclose(found.coef_, expected, atol=1e-12)


def test_right_rows_are_learnt():
    dense, first, right, _, _ = draw(1, n_lists=60)
    ranker = AveragedRanker().fit(csr_matrix(dense), make(first, right))
    scores = ranker.score(csr_matrix(dense))
    wins = [
        scores[best] == scores[begin:end].max()
        for best, begin, end in zip(right, first, first[1:], strict=False)
    ]
    assert np.mean(wins) > 0.8


def test_scores_are_the_sums_of_weights():
    dense, first, right, _, _ = draw(2)
    ranker = AveragedRanker().fit(csr_matrix(dense), make(first, right))
    np.testing.assert_allclose(ranker.score(csr_matrix(dense)), dense @ ranker.coef_)


@pytest.mark.parametrize("rate", [0.125, 8])
def test_the_rate_only_scales_weights_if_nothing_is_given(rate):
    dense, first, right, costs, _ = draw(3)
    rows, alternatives = csr_matrix(dense), make(first, right, costs=costs)
    plain, other = AveragedRanker().fit(rows, alternatives), AveragedRanker(rate=rate).fit(rows, alternatives)
    assert other.coef_.tolist() == (rate * plain.coef_).tolist()
    assert other.n_updates_ == plain.n_updates_


def test_a_tiny_rate_leaves_the_weights_to_start_from():
    dense, first, right, _, given = draw(4)
    start = np.random.default_rng(4).normal(size=8)
    alternatives = make(first, right, base_scores=given)
    ranker = AveragedRanker(rate=1e-9).fit(csr_matrix(dense), alternatives, coef_init=start)
    np.testing.assert_allclose(ranker.coef_, start, atol=1e-6)


def test_given_scores_that_are_right_need_no_updates():
    dense, first, right, _, _ = draw(5)
    given = np.zeros(len(dense))
    given[right] = 1
    ranker = AveragedRanker(epochs=2).fit(csr_matrix(dense), make(first, right, base_scores=given))
    assert ranker.n_updates_ == [0, 0]
    assert not ranker.coef_.any()


def test_a_margin_asks_for_more_where_costs_are_higher():
    dense, first, right, _, _ = draw(6)
    given = np.zeros(len(dense))
    given[right] = 1
    for cost, updates in ((0.25, False), (1.0, True)):
        alternatives = make(first, right, base_scores=given, costs=np.full(len(dense), cost))
        ranker = AveragedRanker(epochs=1, margin=2).fit(csr_matrix(dense), alternatives)
        assert (ranker.n_updates_[0] > 0) == updates


def test_the_same_seed_gives_the_same_weights():
    dense, first, right, _, given = draw(7)
    rows, alternatives = csr_matrix(dense), make(first, right, base_scores=given)
    one, same, other = (
        AveragedRanker(random_state=random_state).fit(rows, alternatives).coef_.tolist()
        for random_state in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_fitting_leaves_what_it_is_given_as_it_is():
    dense, first, right, costs, given = draw(8)
    alternatives, start = make(first, right, costs=costs, base_scores=given), np.ones(8)
    before = [each.copy() for each in alternatives]
    AveragedRanker(rate=0.5).fit(csr_matrix(dense), alternatives, coef_init=start)
    assert start.tolist() == [1] * 8
    assert all((one == other).all() for one, other in zip(before, alternatives, strict=True))


def test_no_lists_teach_nothing():
    ranker = AveragedRanker(epochs=2).fit(csr_matrix((0, 3)), make([0], []))
    assert ranker.coef_.tolist() == [0, 0, 0]
    assert ranker.n_updates_ == [0, 0]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"epochs": 0}, "epochs is 0; expected an integer of at least 1"),
        ({"rate": 0}, "rate is 0; expected a number from 1e-12 to 1e+12"),
        ({"rate": "fast"}, "rate is 'fast'; expected a number from 1e-12 to 1e+12"),
        ({"margin": -1}, "margin is -1; expected a number from 0 to 1e+12"),
        ({"random_state": -1}, f"random_state is -1; expected {describe_type(RandomState)}"),
        ({"random_state": 0.5}, f"random_state is 0.5; expected {describe_type(RandomState)}"),
    ],
)
def test_bad_parameters_are_refused(option, message):
    dense, first, right, _, _ = draw(0)
    with pytest.raises(InputError) as error:
        AveragedRanker(**option).fit(csr_matrix(dense), make(first, right))
    assert str(error.value) == message


def test_updates_are_multiplied_by_the_trust_in_each_feature():
    dense, first, right, costs, given = draw(1)
    trust = np.arange(8) / 8
    found = AveragedRanker(epochs=3).fit(
        csr_matrix(dense), make(first, right, base_scores=given), trust=trust
    )
    options = {"costs": costs, "given": given, "rate": trust}
    expected, _ = expect(0, dense, first, right, np.zeros(8), epochs=3, **options)
    np.testing.assert_allclose(found.coef_, expected, atol=1e-12)
    assert found.coef_[0] == 0


def test_rows_that_are_not_there_are_named():
    dense, first, right, *_ = draw(2)
    alternatives = make(first, right)
    for ranker in (AveragedRanker(), LogLinearRanker()):
        with pytest.raises(InputError, match=f"alternatives refer to rows 0 to {len(dense) - 1}"):
            ranker.fit(csr_matrix(dense[:2]), alternatives)
    with pytest.raises(InputError, match=r"coef_init has the shape \(3,\); expected \(8,\)"):
        AveragedRanker().fit(csr_matrix(dense), alternatives, coef_init=np.zeros(3))


def slow_loss(dense, alternatives, weights, penalty):
    """Return minus the logarithm of the likelihood of the right rows, and the penalty."""
    total = penalty / 2 * weights[:-1] @ weights[:-1]
    for begin, end in pairwise(alternatives.indptr.tolist()):
        rows = alternatives.rows[begin:end]
        scores = dense[rows] @ weights[:-1] + weights[-1] * alternatives.base_scores[begin:end]
        total += np.log(np.exp(scores).sum()) - scores[-1]
    return total


@pytest.mark.parametrize("random_state", range(4))
def test_the_likelihood_is_that_of_the_definition_and_its_gradient_that_of_finite_differences(random_state):
    dense, first, right, _, given = draw(random_state)
    alternatives = make(first, right, base_scores=given)
    weights = np.random.default_rng(random_state).normal(size=9)
    loss, slopes = _Likelihood(csr_matrix(dense), alternatives, None)(weights, 0.7)
    assert loss == pytest.approx(slow_loss(dense, alternatives, weights, 0.7), rel=1e-5)
    for at in range(9):
        step = np.eye(9)[at] * 1e-5
        rise = slow_loss(dense, alternatives, weights + step, 0.7) - slow_loss(
            dense, alternatives, weights - step, 0.7
        )
        assert slopes[at] == pytest.approx(rise / 2e-5, abs=1e-3)


def test_no_other_weights_make_the_right_rows_more_probable():
    dense, first, right, _, given = draw(3)
    alternatives = make(first, right, base_scores=given)
    ranker = LogLinearRanker(penalty=1.0).fit(csr_matrix(dense), alternatives)
    best = np.append(ranker.coef_, ranker.base_weight_)
    least = slow_loss(dense, alternatives, best, 1.0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert slow_loss(dense, alternatives, best + rng.normal(scale=0.1, size=9), 1.0) > least - 1e-4


def test_a_feature_that_is_trusted_less_has_less_weight():
    dense, first, right, *_ = draw(4)
    alternatives = make(first, right)
    plain = LogLinearRanker(penalty=1.0).fit(csr_matrix(dense), alternatives).coef_
    trust = np.ones(8)
    trust[0] = 0.01
    wary = LogLinearRanker(penalty=1.0).fit(csr_matrix(dense), alternatives, trust=trust).coef_
    assert abs(wary[0]) < abs(plain[0]) / 2


def test_models_of_several_penalties_are_those_that_are_fitted_one_after_the_other():
    dense, first, right, _, given = draw(5, n_lists=60)
    rows, alternatives, trust = (
        csr_matrix(dense),
        make(first, right, base_scores=given),
        np.linspace(0.1, 1, 8),
    )
    start = None
    for ranker in fit_penalties(rows, alternatives, (10.0, 1.0, 0.1), trust=trust):
        alone = LogLinearRanker(penalty=ranker.penalty).fit(rows, alternatives, coef_init=start, trust=trust)
        start = alone.coef_
        assert ranker.coef_.tolist() == start.tolist()
        assert ranker.base_weight_ == alone.base_weight_


def test_rows_in_the_order_of_the_alternatives_give_the_same_weights():
    dense, first, right, _, given = draw(6, n_lists=60)
    rows, alternatives = csr_matrix(dense), make(first, right, base_scores=given)
    in_order = alternatives._replace(rows=np.arange(len(dense)))
    one = LogLinearRanker().fit(rows, alternatives).coef_
    other = LogLinearRanker().fit(rows[alternatives.rows], in_order).coef_
    assert one.tolist() == other.tolist()


def test_a_penalty_that_is_not_a_number_is_named():
    dense, first, right, *_ = draw(0)
    with pytest.raises(InputError, match="penalty is -1"):
        next(fit_penalties(csr_matrix(dense), make(first, right), (-1.0,)))
