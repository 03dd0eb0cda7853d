"""The minimum of a quadratic loss with an elastic-net penalty, by its optimality conditions."""

import numpy as np


def optimality_gap(dense, residual, curvature, values, l1, l2):
    """Return the largest violation of the optimality conditions, for a loss expanded around scores of zero.

    At the minimum, the gradient of the loss for each column balances its penalty, or is at most `l1` if the
    weight is zero.
    """
    gap = 0.0
    left = residual - curvature * (dense @ values)
    for column in range(dense.shape[1]):
        gradient = dense[:, column] @ left - l2[column] * values[column]
        if values[column]:
            gap = max(gap, abs(gradient - l1[column] * np.sign(values[column])))
        else:
            gap = max(gap, abs(gradient) - l1[column])
    return gap
