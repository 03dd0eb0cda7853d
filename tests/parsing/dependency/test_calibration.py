import numpy as np
import pytest

from treewright.parsing.dependency.calibration import best_scale, gold_loss


def test_the_loss_is_the_mean_negative_log_probability_of_gold_heads():
    square = np.array([[0, 0.5, 0.2], [0, 0, 0.8], [0, 0.5, 0]])
    loss = gold_loss([square], [np.array([2, 1], dtype=np.int32)])
    assert loss == pytest.approx(-(np.log(0.5) + np.log(0.8)) / 2)


def test_a_pruned_gold_arc_costs_a_finite_amount():
    assert gold_loss([np.zeros((2, 2))], [np.array([0], dtype=np.int32)]) == pytest.approx(-np.log(1e-4))


@pytest.mark.parametrize("optimum", [0.1, 1.0, 7.0])
def test_the_best_scale_is_found(optimum):
    assert best_scale(lambda scale: np.log(scale / optimum) ** 2) == pytest.approx(optimum, rel=0.02)
