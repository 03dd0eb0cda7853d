import numpy as np
import pytest
from oracle.learn import perceptron as twin
from scipy.sparse import csr_matrix

from treewright.native.learn.perceptron import Sparse, Weights, train_epoch

CASES = [(seed, n_classes, margin) for seed in range(8) for n_classes in (2, 3, 5) for margin in (0.0, 1.5)]


def draw(seed, n_classes):
    """Draw rows of eighths, some of them empty, so that sums are exact and ties happen; and their labels."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(-8, 9, size=(12, 6)) / 8 * (rng.random((12, 6)) < 0.5)
    dense[5] = 0
    return dense, rng.integers(0, n_classes, size=12), rng


def train(dense, labels, orders, start, margin):
    """Pass over rows in the given orders; return the last weights, their mean, and the numbers of updates."""
    matrix = csr_matrix(dense)
    rows = Sparse(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)
    weights = Weights(start.copy(), np.zeros_like(start))
    scores = np.empty(start.shape[1])
    n_updates, n_steps = [], 0
    for order in orders:
        n_updates.append(train_epoch(rows, labels, order, weights, margin, scores, float(n_steps)))
        n_steps += len(order)
    return weights.now, weights.now - weights.late / n_steps, n_updates


@pytest.mark.parametrize(("seed", "n_classes", "margin"), CASES)
def test_weights_mean_and_updates_equal_those_of_dense_steps(seed, n_classes, margin):
    dense, labels, rng = draw(seed, n_classes)
    orders = [rng.permutation(12) for _ in range(4)]
    start = rng.integers(-8, 9, size=(7, n_classes)) / 8
    last, mean, n_updates = train(dense, labels, orders, start, margin)
    expected_last, expected_mean, expected_updates = twin.train(dense, labels, orders, start, margin)
    assert last.tolist() == expected_last.tolist()
    np.testing.assert_allclose(mean, expected_mean, atol=1e-12)
    assert n_updates == expected_updates


@pytest.mark.parametrize(("intercept", "n_updates"), [(1.0, 1), (1.5, 1), (1.75, 0)])
def test_a_row_must_win_by_more_than_the_margin(intercept, n_updates):
    start = np.array([[0.0, 0.0], [0.0, intercept]])
    last, _, found = train(np.zeros((1, 1)), np.array([1]), [np.array([0])], start, 1.5)
    assert found == [n_updates]
    assert last[-1].tolist() == [-n_updates, intercept + n_updates]


def test_the_best_wrong_class_loses_what_the_right_one_gains():
    start = np.array([[0.0, 3.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    last, _, _ = train(np.array([[2.0]]), np.array([1]), [np.array([0])], start, 5.0)
    assert (last - start).tolist() == [[0, 2, -2, 0], [0, 1, -1, 0]]


@pytest.mark.parametrize("margin", [0.0, 2.0])
def test_passes_without_updates_leave_every_row_beyond_the_margin(margin):
    rng = np.random.default_rng(4)
    dense = rng.normal(size=(30, 5))
    labels = (dense @ rng.normal(size=(5, 3))).argmax(axis=1)
    last, _, n_updates = train(dense, labels, [np.arange(30)] * 300, np.zeros((6, 3)), margin)
    assert n_updates[0] > 0
    assert n_updates[-1] == 0
    scores = dense @ last[:-1] + last[-1]
    right = scores[np.arange(30), labels]
    scores[np.arange(30), labels] = -np.inf
    assert (right - scores.max(axis=1) > margin).all()


def test_weights_that_are_right_stay_as_they_are():
    dense, _, rng = draw(1, 3)
    start = rng.normal(size=(7, 3))
    labels = (dense @ start[:-1] + start[-1]).argmax(axis=1)
    last, mean, n_updates = train(dense, labels, [np.arange(12)] * 3, start, 0.0)
    assert last.tolist() == mean.tolist() == start.tolist()
    assert n_updates == [0, 0, 0]
