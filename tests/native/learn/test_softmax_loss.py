"""Losses of labels and their derivatives, compared with their slow twins."""

import numpy as np
import pytest
from oracle.learn import softmax_loss as twin

from treewright.mining.targets import LEAST_CURVATURE, LabelTarget


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_losses_and_residuals_agree_with_the_slow_twin(n_classes, scale):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, 50)
    target = LabelTarget(labels, n_classes)
    scores = scale * rng.normal(size=(50, target.n_outputs))
    assert np.allclose(target.losses(scores), twin.label_losses(labels, scores))
    expected = twin.label_residuals(labels, scores, LEAST_CURVATURE)
    for found, wanted in zip(target.residuals(scores), expected, strict=True):
        assert np.allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 30.0, 1000.0])
def test_losses_after_a_change_are_those_of_the_new_scores(n_classes, scale):
    rng = np.random.default_rng(2)
    labels = rng.integers(0, n_classes, 60)
    target = LabelTarget(labels, n_classes)
    scores = 5 * rng.normal(size=(60, target.n_outputs))
    losses = target.losses(scores)
    for output in range(target.n_outputs):
        change = scale * rng.normal(size=60)
        after = scores.copy()
        after[:, output] += change
        kept = scores.copy()
        found = target.moved_losses(scores, losses, output, change)
        np.testing.assert_allclose(found, twin.label_losses(labels, after), rtol=1e-9, atol=1e-11)
        np.testing.assert_array_equal(scores, kept)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_residuals_are_the_negative_gradient_of_the_losses(n_classes):
    rng = np.random.default_rng(1)
    target = LabelTarget(rng.integers(0, n_classes, 20), n_classes)
    scores = rng.normal(size=(20, target.n_outputs))
    for output in range(target.n_outputs):
        up, down = scores.copy(), scores.copy()
        up[:, output] += 1e-6
        down[:, output] -= 1e-6
        slope = (target.losses(up) - target.losses(down)) / 2e-6
        residuals, _ = target.output_residuals(scores, target.losses(scores), output)
        assert np.allclose(residuals, -slope, atol=1e-6)
