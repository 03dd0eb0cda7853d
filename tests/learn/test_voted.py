from itertools import pairwise

import numpy as np
import pytest
from oracle import voted as oracle
from scipy.sparse import csr_matrix

from treewright.errors import InputError
from treewright.learn.voted import KernelVotedPerceptron, VotedPerceptron

N_FEATURES = 4


def make_lists(random_state, n_lists=12):
    """Return lists as the oracle takes them, and as arrays."""
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(1, 6, size=n_lists)
    first = np.concatenate([[0], np.cumsum(sizes)])
    rows = rng.normal(size=(first[-1], N_FEATURES)) * (rng.random((first[-1], N_FEATURES)) < 0.7)
    losses, given = rng.integers(0, 4, size=first[-1]) / 4, rng.normal(size=first[-1])
    candidates = list(zip(rows.tolist(), losses.tolist(), given.tolist(), strict=True))
    lists = [candidates[begin:end] for begin, end in pairwise(first)]
    return lists, rows, first, losses, given


class Products:
    def __init__(self, rows):
        self.rows = rows

    def block(self, rows_a, rows_b):
        return self.rows[rows_a] @ self.rows[rows_b].T


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("random_state", range(5))
@pytest.mark.parametrize("make", [np.asarray, csr_matrix])
def test_weights_are_the_mean_of_those_after_each_comparison(make, random_state, epochs):
    lists, rows, first, losses, given = make_lists(random_state)
    _, passed = oracle.pass_through(lists, epochs=epochs)
    perceptron = VotedPerceptron(epochs=epochs, shuffle=False).fit(make(rows), first, losses, given)
    np.testing.assert_allclose(perceptron.coef_, oracle.mean(passed), atol=1e-12)
    np.testing.assert_allclose(perceptron.score(make(rows), first, given), rows @ perceptron.coef_ + given)
    assert len(perceptron.n_updates_) == epochs


@pytest.mark.parametrize("random_state", range(5))
def test_votes_are_those_of_all_weights_passed_through(random_state):
    lists, rows, first, losses, given = make_lists(random_state)
    _, passed = oracle.pass_through(lists, epochs=2)
    perceptron = VotedPerceptron(epochs=2, voting=True, shuffle=False).fit(rows, first, losses, given)
    shares = perceptron.score(rows, first, given)
    for number, (begin, end) in enumerate(pairwise(first)):
        expected = oracle.votes(passed, lists[number])
        extra = shares[begin:end] * len(passed) - expected
        assert (extra > -1e-9).all()
        assert (extra < 0.5 + 1e-9).all()


@pytest.mark.parametrize("voting", [False, True])
@pytest.mark.parametrize("random_state", range(5))
def test_primal_and_dual_forms_agree(random_state, voting):
    _, rows, first, losses, given = make_lists(random_state, 30)
    options = {"epochs": 2, "voting": voting, "random_state": random_state}
    primal = VotedPerceptron(**options).fit(csr_matrix(rows), first, losses, given)
    dual = KernelVotedPerceptron(**options).fit(Products(rows), first, losses, given)
    assert primal.n_updates_ == dual.n_updates_
    np.testing.assert_array_equal(primal.support_, dual.support_)
    np.testing.assert_allclose(rows[dual.support_].T @ dual.coef_, primal.coef_, atol=1e-12)
    _, others, bounds, _, scores = make_lists(random_state + 100)
    block = others @ rows[dual.support_].T
    np.testing.assert_allclose(
        dual.score(block, bounds, scores), primal.score(csr_matrix(others), bounds, scores), atol=1e-9
    )


def test_an_update_is_scaled_by_its_loss():
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    perceptron = VotedPerceptron().fit(rows, [0, 2], [0.25, 1.0], base_scores=[0, 0.5])
    np.testing.assert_allclose(perceptron.coef_, [0.75, -0.75])


def test_learning_begins_with_no_scores_at_all():
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert VotedPerceptron().fit(rows, [0, 2], [1.0, 0.0]).coef_.tolist() == [-1.0, 1.0]


def test_a_model_that_is_always_right_is_left_alone():
    _, rows, first, losses, _ = make_lists(3)
    perceptron = VotedPerceptron(epochs=3, voting=True).fit(rows, first, losses, base_scores=-losses)
    assert not perceptron.coef_.any()
    assert perceptron.n_updates_ == [0, 0, 0]
    shares = perceptron.score(rows, first, -losses)
    winners = [begin + shares[begin:end].argmax() for begin, end in pairwise(first)]
    best = np.minimum.reduceat(losses, first[:-1])
    np.testing.assert_array_equal(losses[winners], best)


def test_lists_of_one_candidate_teach_nothing():
    perceptron = VotedPerceptron(voting=True).fit(np.eye(2), [0, 1, 2], [0.5, 0.0])
    assert perceptron.score(np.eye(2), [0, 1, 2]).tolist() == [0.0, 0.0]


def test_rows_may_be_made_when_they_are_asked_for():
    _, rows, first, losses, given = make_lists(2)

    class Source:
        shape = rows.shape

        def __getitem__(self, some):
            return csr_matrix(rows[some])

    for voting in (False, True):
        made = VotedPerceptron(voting=voting).fit(Source(), first, losses, given)
        kept = VotedPerceptron(voting=voting).fit(rows, first, losses, given)
        np.testing.assert_allclose(made.score(rows, first), kept.score(rows, first))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": [0, 1, 1, 3]}, "list 1 is empty; expected at least one candidate"),
        ({"indptr": [0]}, r"indptr has the shape \(1,\)"),
        ({"losses": [0.0, 1.0]}, r"losses has the shape \(2,\); expected \(3,\), one per candidate"),
        ({"losses": [0.0, np.nan, 1.0]}, "losses contains nan; expected finite numbers"),
        ({"losses": ["a", "b", "c"]}, "losses is list; expected an array of numbers"),
        ({"base_scores": [0.0]}, "base_scores has the shape"),
        ({"rows": np.eye(2)}, "rows has 2 rows; expected 3, one per candidate"),
    ],
)
def test_bad_lists_are_named(changes, message):
    good = {"rows": np.eye(3), "indptr": [0, 1, 3], "losses": [0.0, 0.0, 1.0], "base_scores": None}
    with pytest.raises(InputError, match=message):
        VotedPerceptron().fit(**{**good, **changes})


def test_bad_options_are_named():
    for options, message in [({"epochs": 0}, "epochs is 0"), ({"voting": 1}, "voting is 1")]:
        with pytest.raises(InputError, match=message):
            VotedPerceptron(**options).fit(np.eye(2), [0, 2], [0, 1])
    perceptron = VotedPerceptron().fit(np.eye(2), [0, 2], [0, 1])
    with pytest.raises(InputError, match="rows have 3 features; expected 2, as in fit"):
        perceptron.score(np.eye(3), [0, 3])
    dual = KernelVotedPerceptron().fit(Products(np.eye(2)), [0, 2], [1, 0])
    with pytest.raises(InputError, match=r"block has the shape \(2, 3\); expected \(n_rows, 2\)"):
        dual.score(np.zeros((2, 3)), [0, 2])


def test_products_with_a_sparse_support_are_those_of_arrays():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(24, 60)) * (rng.random((24, 60)) < 0.1)
    losses, first = rng.random(24), np.arange(0, 25, 4)
    perceptron = VotedPerceptron(voting=True)
    for part in (dense, dense[::-1].copy()):  # a second training replaces the support
        perceptron.fit(csr_matrix(part), first, losses)
        expected = part @ part[perceptron.support_].T
        for rows in (part, csr_matrix(part)):
            np.testing.assert_allclose(perceptron.kernel_scores(rows), expected, atol=1e-12)
