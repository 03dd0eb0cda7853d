import numpy as np
import pytest
from oracle.learn import columns as twin
from scipy.sparse import csr_matrix

from treewright.learn.chains import chain_columns, columns_of, thin_chains
from treewright.mining import column_model
from treewright.mining.column_model import NO_WEIGHT, ColumnModel
from treewright.mining.targets import LabelTarget, NumberTarget
from treewright.native.learn.columns import ColumnWeights, QuadraticLoss, descend_chains, measure_chains


def make_columns(rng, n_rows):
    """Return thresholds in both directions, columns that are in no chain, and an empty column."""
    number = rng.integers(0, 7, n_rows)
    above = [number >= cut for cut in (1, 3, 4)]
    below = [number < cut for cut in (2, 5)]
    others = [rng.random(n_rows) < 0.4 for _ in range(3)]
    return np.array([*above, *others, *below, np.zeros(n_rows, dtype=bool)]).T.astype(float)


@pytest.mark.parametrize("seed", range(4))
def test_chains_have_the_rows_of_their_columns(seed):
    dense = make_columns(np.random.default_rng(seed), 30)
    chains = chain_columns(columns_of(csr_matrix(dense.astype(np.int8))))
    members = np.split(chains.members, chains.members_ptr[1:-1])
    assert sorted(each.tolist() for each in members) == [[2, 1, 0], [3], [4], [5], [6, 7], [8]]
    for begin, first, last in zip(
        chains.rows_ptr[:-1], chains.members_ptr[:-1], chains.members_ptr[1:], strict=True
    ):
        for place in range(first, last):
            rows = np.sort(chains.rows[begin : chains.ends[place]])
            assert rows.tolist() == np.flatnonzero(dense[:, chains.members[place]]).tolist()


def test_a_long_chain_keeps_columns_at_equal_distances_and_those_with_the_largest_weights():
    number = np.arange(40)
    dense = np.array([*[number >= cut for cut in range(1, 13)], number % 3 == 0, number % 5 == 0]).T
    chains = chain_columns(columns_of(csr_matrix(dense.astype(np.int8))))
    jumps = np.zeros(14)
    jumps[[3, 7]] = 1.0, 2.0
    kept = np.flatnonzero(thin_chains(chains, jumps, 3, 2))
    assert kept.tolist() == [1, 3, 5, 7, 9, 12, 13]
    assert thin_chains(chains, jumps, 6, 6).all()


@pytest.mark.parametrize("seed", range(4))
def test_descent_ends_at_the_minimum(seed):
    rng = np.random.default_rng(seed)
    dense = make_columns(rng, 30)
    n_columns = dense.shape[1]
    chains = chain_columns(columns_of(csr_matrix(dense.astype(np.int8))))
    residual, curvature = rng.normal(size=30), rng.random(30)
    l2 = rng.random(n_columns) + 0.1
    members = np.split(chains.members, chains.members_ptr[1:-1])
    trend = np.array([0.8 * (1 - 1 / len(each)) / sum(1 / l2[each]) for each in members])
    weights = ColumnWeights(np.zeros(n_columns), l2, trend, *np.zeros((3, n_columns)))
    loss = QuadraticLoss(residual.copy(), curvature, np.zeros(30))
    measure_chains(chains, loss, weights)
    for _ in range(300):
        descend_chains(chains, loss, weights)
    penalty = twin.penalty_matrix(l2, members, 0.8)
    gap = twin.optimality_gap(dense, residual, curvature, weights.values, penalty)
    assert gap < 1e-9
    np.testing.assert_allclose(loss.shift, dense @ weights.values, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_model_has_no_gradient_when_it_is_fitted(n_classes):
    rng = np.random.default_rng(0)
    dense = (rng.random((80, 5)) < 0.5).astype(float)
    labels = rng.integers(0, n_classes, 80)
    target, weight = LabelTarget(labels, n_classes), rng.random(80)
    model = ColumnModel(target, weight)
    model.add(columns_of(csr_matrix(dense.astype(np.int8))), 2.0)
    model.fit(1e-12)
    residuals = target.residuals(model.scores)[0] * weight[:, np.newaxis]
    np.testing.assert_allclose(dense.T @ residuals, 2.0 * model.values, atol=1e-3)
    np.testing.assert_allclose(residuals.sum(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(model.scores, dense @ model.values + model.intercept, atol=1e-9)


@pytest.mark.parametrize("is_solved", [True, False])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_long_chains_are_penalised_more_but_not_for_their_trend(monkeypatch, n_classes, is_solved):
    monkeypatch.setattr(column_model, "MOST_SOLVED", 100 if is_solved else 0)
    rng = np.random.default_rng(0)
    dense = make_columns(rng, 80)
    target = NumberTarget(rng.normal(size=80))
    if n_classes:
        target = LabelTarget(rng.integers(0, n_classes, 80), n_classes)
    model = ColumnModel(target, rng.random(80))
    model.add(columns_of(csr_matrix(dense.astype(np.int8))), 2.0)
    model.fit(1e-13)
    chains = [[2, 1, 0], [3], [4], [5], [6, 7], [8]]
    stiffness, long = column_model.STIFFNESS, column_model.LONG
    penalty = twin.stiff_penalty_matrix(model.penalties, chains, stiffness, long)
    residuals = target.residuals(model.scores)[0] * model.sample_weight[:, np.newaxis]
    np.testing.assert_allclose(dense.T @ residuals, penalty @ model.values, atol=2e-3)
    assert np.abs(model.values).max() > 0.01


@pytest.mark.parametrize("is_solved", [True, False])
def test_a_ridge_regression_is_found_and_can_be_left_out_again(monkeypatch, is_solved):
    monkeypatch.setattr(column_model, "MOST_SOLVED", 100 if is_solved else 0)
    rng = np.random.default_rng(0)
    dense = (rng.random((60, 7)) < 0.5).astype(float)
    y, weight = rng.normal(size=60), rng.random(60) * (np.arange(60) % 4 > 0)
    model = ColumnModel(NumberTarget(y), weight)

    def assert_fitted(n_columns):
        used = dense[:, :n_columns]
        mean = weight @ used / weight.sum()
        centred = used - mean
        errors = y - weight @ y / weight.sum()
        expected = np.linalg.solve(
            centred.T @ (weight[:, np.newaxis] * centred) + np.diag(model.penalties),
            centred.T @ (weight * errors),
        )
        np.testing.assert_allclose(model.values[:, 0], expected, atol=1e-5)
        np.testing.assert_allclose(model.scores, used @ model.values + model.intercept, atol=1e-9)

    def add(columns, penalty):
        model.add(columns_of(csr_matrix(dense[:, columns].astype(np.int8))), penalty)
        model.fit(1e-9)

    add(slice(0, 4), 3.0)
    assert_fitted(4)
    state = model.state()
    add(slice(4, 5), 1.0)
    assert_fitted(5)
    model.set_state(state)
    dense = dense[:, [0, 1, 2, 3, 5, 6]]
    add(slice(4, 6), 2.0)
    assert_fitted(6)
    model.penalties[:] = NO_WEIGHT
    model.fit()
    np.testing.assert_allclose(model.scores[:, 0], weight @ y / weight.sum(), atol=1e-6)
