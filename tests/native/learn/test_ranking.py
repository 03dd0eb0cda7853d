import numpy as np
import pytest
from oracle.learn import ranking as twin
from scipy.sparse import csr_matrix

from treewright.native.learn.perceptron import Weights
from treewright.native.learn.proximal import Alternatives, Design
from treewright.native.learn.ranking import rank_epoch

CASES = [
    (seed, margin, with_given) for seed in range(8) for margin in (0.0, 1.5) for with_given in (False, True)
]


def draw(seed, with_given=False):
    """Draw binary rows in lists, the right one last, and costs and scores in eighths, so that ties happen."""
    rng = np.random.default_rng(seed)
    dense = (rng.random((30, 7)) < 0.4).astype(int)
    dense[3] = 0
    cuts = np.sort(rng.choice(np.arange(1, 30), size=9, replace=False))
    lists = [rng.permutation(each).tolist() for each in np.split(np.arange(30), cuts)]
    costs = rng.integers(0, 9, size=30) / 8
    return dense, lists, costs, rng.integers(-16, 17, size=30) / 8 * with_given, rng


def train(dense, lists, orders, start, *, costs, given, margin=0.0, rate=1.0):
    """Pass over lists in the given orders; return the last weights, their mean, and numbers of updates."""
    rows = np.concatenate(lists)
    first = np.cumsum([0, *map(len, lists)])
    alternatives = Alternatives(first, rows, np.zeros(len(rows), np.int64), costs[rows], given[rows])
    matrix = csr_matrix(dense)
    design = Design(matrix.indptr, matrix.indices)
    weights = Weights(start.astype(float), np.zeros(len(start)))
    rates = np.full(len(start), 1.0) * rate
    n_updates, n_steps = [], 0
    for order in orders:
        n_updates.append(rank_epoch(design, alternatives, order, weights, rates, margin, float(n_steps)))
        n_steps += len(order)
    return weights.now, weights.now - weights.late / n_steps, n_updates


@pytest.mark.parametrize(("seed", "margin", "with_given"), CASES)
def test_weights_mean_and_updates_equal_those_of_dense_steps(seed, margin, with_given):
    dense, lists, costs, given, rng = draw(seed, with_given)
    orders = [rng.permutation(len(lists)) for _ in range(4)]
    start = rng.integers(-8, 9, size=7) / 8
    rates = rng.integers(1, 9, size=7) / 8
    options = {"costs": costs, "given": given, "margin": margin, "rate": rates}
    last, mean, n_updates = train(dense, lists, orders, start, **options)
    expected_last, expected_mean, expected_updates = twin.rank(dense, lists, orders, start, **options)
    assert last.tolist() == expected_last.tolist()
    np.testing.assert_allclose(mean, expected_mean, atol=1e-12)
    assert n_updates == expected_updates
    assert n_updates[0] > 0


@pytest.mark.parametrize(("given", "n_updates"), [(-0.5, 1), (0.75, 1), (0.875, 0)])
def test_the_right_row_must_win_by_more_than_the_margin_times_the_cost(given, n_updates):
    options = {"costs": np.array([0.5, 9.0]), "given": np.array([0.0, given]), "margin": 1.5}
    last, _, found = train(np.eye(2), [[0, 1]], [np.array([0])], np.zeros(2), **options)
    assert found == [n_updates]
    assert last.tolist() == [-n_updates, n_updates]


def test_the_row_that_comes_nearest_loses_what_the_right_one_gains():
    start = np.array([1.0, 4.0, 2.0])
    options = {"costs": np.array([1.0, 0.0, 1.0]), "given": np.zeros(3), "margin": 3.0}
    last, _, _ = train(np.eye(3), [[0, 2, 1]], [np.array([0])], start, **options)
    assert (last - start).tolist() == [0, 1, -1]


def test_the_last_of_rows_that_come_equally_near_is_taken():
    options = {"costs": np.ones(3), "given": np.zeros(3)}
    last, _, _ = train(np.eye(3), [[0, 1, 2]], [np.array([0])], np.zeros(3), **options)
    assert last.tolist() == [0, -1, 1]


def test_features_that_both_rows_have_keep_their_weights():
    dense = np.array([[1, 1, 0], [1, 0, 1]])
    options = {"costs": np.ones(2), "given": np.zeros(2)}
    last, _, _ = train(dense, [[0, 1]], [np.array([0])], np.zeros(3), **options)
    assert last.tolist() == [0, -1, 1]


def test_lists_of_one_row_change_nothing():
    options = {"costs": np.ones(2), "given": np.zeros(2), "margin": 5.0}
    last, mean, n_updates = train(np.eye(2), [[0], [1]], [np.array([1, 0])], np.ones(2), **options)
    assert last.tolist() == mean.tolist() == [1, 1]
    assert n_updates == [0]
