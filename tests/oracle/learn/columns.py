"""The minimum of a quadratic loss under an elastic net, by the definition of its optimality."""

import numpy as np


def optimality_gap(dense, residual, curvature, values, l1, l2):
    """Return how far the weights are from the minimum of the loss around scores of zero, at worst.

    At the minimum the gradient of the loss of each column equals its shrinking, or is at most `l1` where the
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
