from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from treewright.errors import InputError
from treewright.learn.softmax import OBJECTIVES, SoftmaxRanker


def make_lists(random_state, n_lists=8):
    rng = np.random.default_rng(random_state)
    first = np.concatenate([[0], np.cumsum(rng.integers(1, 5, size=n_lists))])
    rows = rng.normal(size=(first[-1], 3))
    losses = rng.integers(0, 4, size=first[-1]) / 2
    # No two given scores are equal, so that there is one best candidate in each list.
    return rows, first, losses, rng.normal(size=first[-1])


def evaluate(weights, rows, first, losses, given, *, objective, penalty):
    """Return the objective, list by list and candidate by candidate."""
    total = penalty / 2 * sum(weight**2 for weight in weights)
    for begin, end in pairwise(first):
        places = range(begin, end)
        powers = [np.exp(rows[row] @ weights + given[row]) for row in places]
        best = min(places, key=lambda row: (losses[row], -given[row]))
        if objective == "likelihood":
            total -= np.log(powers[best - begin] / sum(powers))
        else:
            shares = [power / sum(powers) for power in powers]
            total += sum(
                share * (losses[row] - losses[best]) for share, row in zip(shares, places, strict=True)
            )
    return total


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("penalty", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("random_state", range(3))
def test_the_objective_is_the_minimum_that_another_solver_finds(random_state, penalty, objective):
    lists = make_lists(random_state)
    ranker = SoftmaxRanker(objective=objective, penalty=penalty).fit(*lists)
    options = {"objective": objective, "penalty": penalty}
    assert ranker.objective_ == pytest.approx(evaluate(ranker.coef_, *lists, **options))
    other = minimize(lambda weights: evaluate(weights, *lists, **options), np.zeros(3), method="Nelder-Mead")
    assert ranker.objective_ <= other.fun + 1e-5


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_sparse_rows_and_arrays_give_the_same_weights(objective):
    rows, *rest = make_lists(5)
    dense, sparse = (
        SoftmaxRanker(objective=objective).fit(each, *rest).coef_ for each in (rows, csr_matrix(rows))
    )
    np.testing.assert_allclose(dense, sparse, atol=1e-6)


def test_final_scores_are_learnt_scores_and_base_scores():
    rows, first, losses, given = make_lists(1)
    ranker = SoftmaxRanker(max_iter=3).fit(rows, first, losses, given)
    assert ranker.n_iter_ <= 3
    np.testing.assert_allclose(ranker.score(rows, first, given), rows @ ranker.coef_ + given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "hinge"}, "objective is 'hinge'; expected one of likelihood, expected-loss"),
        ({"penalty": 0}, "penalty is 0; expected"),
        ({"max_iter": 0}, "max_iter is 0; expected"),
    ],
)
def test_invalid_parameters_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        SoftmaxRanker(**options).fit(*make_lists(0))
