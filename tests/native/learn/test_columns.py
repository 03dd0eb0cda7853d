import numpy as np
import pytest
from oracle.learn import columns as twin
from scipy.sparse import csr_matrix

from treewright.mining.column_model import NO_WEIGHT, ColumnModel, columns_of
from treewright.mining.targets import LabelTarget, NumberTarget
from treewright.native.learn.columns import ColumnWeights, QuadraticLoss, descend_columns, measure_columns


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("l1", [0.0, 0.7])
def test_descent_ends_at_the_minimum(seed, l1):
    rng = np.random.default_rng(seed)
    dense = rng.random((30, 6)) < 0.4
    columns = columns_of(csr_matrix(dense.astype(np.int8)))
    residual, curvature = rng.normal(size=30), rng.random(30)
    weights = ColumnWeights(np.zeros(6), np.full(6, l1), rng.random(6) + 0.1, np.zeros(6))
    loss = QuadraticLoss(residual.copy(), curvature, np.zeros(30))
    measure_columns(columns, loss, weights)
    for _ in range(300):
        descend_columns(columns, 0, loss, weights)
    gap = twin.optimality_gap(
        dense.astype(float), residual, curvature, weights.values, weights.l1, weights.l2
    )
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


def test_a_ridge_regression_is_found_and_can_be_left_out_again():
    rng = np.random.default_rng(0)
    dense = (rng.random((60, 4)) < 0.5).astype(float)
    y = rng.normal(size=60)
    model = ColumnModel(NumberTarget(y), np.ones(60))
    model.add(columns_of(csr_matrix(dense.astype(np.int8))), 3.0)
    model.fit(1e-9)
    centred = dense - dense.mean(axis=0)
    expected = np.linalg.solve(centred.T @ centred + 3 * np.eye(4), centred.T @ (y - y.mean()))
    np.testing.assert_allclose(model.values[:, 0], expected, atol=1e-5)
    model.penalties[:] = NO_WEIGHT
    model.fit()
    np.testing.assert_allclose(model.scores[:, 0], y.mean(), atol=1e-6)
