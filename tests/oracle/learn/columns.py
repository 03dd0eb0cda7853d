"""The minimum of a quadratic loss with an L2 penalty, by its optimality conditions."""

import numpy as np


def optimality_gap(dense, residual, curvature, values, l2):
    """Return the largest gradient of the penalised loss, expanded around scores of zero."""
    left = residual - curvature * (dense @ values)
    return np.abs(dense.T @ left - l2 * values).max()
