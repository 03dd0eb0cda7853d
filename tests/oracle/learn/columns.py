"""The minimum of a quadratic loss with a quadratic penalty, by its optimality conditions."""

import numpy as np


def penalty_matrix(l2, chains, fraction):
    """Return the matrix of the penalty, of whose trends in `chains` a fraction is taken back."""
    matrix = np.diag(l2)
    for members in chains:
        n = len(members)
        taken_back = fraction * (1 - 1 / n) / sum(1 / l2[each] for each in members)
        matrix[np.ix_(members, members)] -= taken_back
    return matrix


def stiff_penalty_matrix(l2, chains, stiffness, long):
    """Return the matrix of a penalty that is multiplied in long chains, but not for their trends."""
    matrix = np.diag(l2)
    for members in chains:
        if len(members) >= long:
            own = np.diag(l2[members])
            trend = np.ones((len(members), len(members))) / sum(1 / l2[each] for each in members)
            matrix[np.ix_(members, members)] = stiffness * (own - trend) + trend
    return matrix


def optimality_gap(dense, residual, curvature, values, penalty):
    """Return the largest gradient of the penalised loss, expanded around scores of zero."""
    left = residual - curvature * (dense @ values)
    return np.abs(dense.T @ left - penalty @ values).max()
