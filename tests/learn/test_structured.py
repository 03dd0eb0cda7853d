from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from treewright.errors import InputError
from treewright.learn.structured import StructuredSVM


def make_lists(random_state, n_lists=6):
    rng = np.random.default_rng(random_state)
    first = np.concatenate([[0], np.cumsum(rng.integers(1, 5, size=n_lists))])
    rows = rng.normal(size=(first[-1], 3))
    losses = rng.integers(0, 4, size=first[-1]) / 2
    # No two given scores are equal, so that there is one best candidate in each list.
    return rows, first, losses, rng.normal(size=first[-1])


def constraints(rows, first, losses, given):
    """Return, for each list, its rivals' features less those of the best, and the margins they want."""
    for begin, end in pairwise(first):
        places = range(begin, end)
        best = min(places, key=lambda row: (losses[row], -given[row]))
        margins = losses[begin:end] - losses[best] + given[begin:end] - given[best]
        yield rows[begin:end] - rows[best], margins


def minimise(rows, first, losses, given, penalty):
    """Solve the quadratic program with a slack for each list, by another solver."""
    lists = list(constraints(rows, first, losses, given))
    n_features = rows.shape[1]

    def objective(x):
        return penalty / 2 * x[:n_features] @ x[:n_features] + x[n_features:].sum()

    limits = [
        {"type": "ineq", "fun": lambda x, d=d, m=m, i=i: x[n_features + i] - m - d @ x[:n_features]}
        for i, (differences, margins) in enumerate(lists)
        for d, m in zip(differences, margins, strict=True)
    ]
    start = np.concatenate([np.zeros(n_features), [margins.max() for _, margins in lists]])
    return minimize(objective, start, constraints=limits, method="SLSQP", options={"ftol": 1e-12}).fun


@pytest.mark.parametrize("penalty", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("random_state", range(4))
def test_the_objective_is_that_of_the_quadratic_program(random_state, penalty):
    rows, first, losses, given = make_lists(random_state)
    machine = StructuredSVM(penalty=penalty, tol=1e-5, max_iter=5000).fit(rows, first, losses, given)
    best = minimise(rows, first, losses, given, penalty)
    value = penalty / 2 * machine.coef_ @ machine.coef_ + sum(
        (margins + differences @ machine.coef_).max()
        for differences, margins in constraints(rows, first, losses, given)
    )
    assert machine.objective_ == pytest.approx(value)
    assert best * (1 - 1e-6) - 1e-9 <= machine.objective_ <= best * (1 + 2e-5) + 1e-9
    assert machine.objective_ - machine.gap_ <= best * (1 + 1e-6) + 1e-9


def test_sparse_rows_give_the_same_weights():
    rows, first, losses, given = make_lists(7)
    found = [StructuredSVM().fit(make(rows), first, losses, given).coef_ for make in (np.asarray, csr_matrix)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)


def test_what_can_be_told_apart_is():
    rng = np.random.default_rng(0)
    first = np.arange(0, 101, 5)
    rows = rng.normal(size=(100, 3))
    losses = -rows @ [1.0, -2.0, 0.5]
    machine = StructuredSVM(penalty=1e-3, max_iter=1000).fit(rows, first, losses)
    scores = machine.score(rows, first)
    for begin in first[:-1]:
        assert scores[begin : begin + 5].argmax() == losses[begin : begin + 5].argmin()


def test_bad_options_are_named():
    with pytest.raises(InputError, match="penalty is 0; expected a number from"):
        StructuredSVM(penalty=0).fit(np.eye(2), [0, 2], [0, 1])
    machine = StructuredSVM().fit(np.eye(2), [0, 2], [0, 1])
    with pytest.raises(InputError, match="rows have 3 features; expected 2, as in fit"):
        machine.score(np.eye(3), [0, 3])
