"""Support vector machines in dual form, with full matrices, solved by moving the most violating pair.

Minimise v K v / 2 + linear v, where K is a matrix over variables, and v sums to zero and is within its
bounds.
"""

import numpy as np

SMALLEST_CURVATURE = 1e-12


def slopes(matrix, linear, values):
    """Return -gradient."""
    return -(matrix @ values) - linear


def ends(matrix, linear, low, high, values):
    """Return the largest slope of values that can increase, and the smallest of values that can decrease."""
    found = slopes(matrix, linear, values)
    return max(found[values < high], default=-np.inf), min(found[values > low], default=np.inf)


def objective(matrix, linear, values):
    return values @ matrix @ values / 2 + linear @ values


def solve(matrix, linear, low, high, tolerance=1e-9, max_steps=200_000):
    """Return the optimal values, found by moving the two that violate most."""
    values = np.zeros(len(linear))
    for _ in range(max_steps):
        found = slopes(matrix, linear, values)
        rising = np.where(values < high, found, -np.inf)
        falling = np.where(values > low, found, np.inf)
        first, second = rising.argmax(), falling.argmin()
        gap = rising[first] - falling[second]
        if gap < tolerance:
            break
        curvature = matrix[first, first] + matrix[second, second] - 2 * matrix[first, second]
        step = min(
            gap / max(curvature, SMALLEST_CURVATURE),
            high[first] - values[first],
            values[second] - low[second],
        )
        values[first] = min(values[first] + step, high[first])
        values[second] = max(values[second] - step, low[second])
    return values


def intercept(matrix, linear, low, high, values):
    """Return the mean slope of values between their bounds or, if there are none, the middle of its range."""
    found = slopes(matrix, linear, values)
    is_free = (values > low) & (values < high)
    return found[is_free].mean() if is_free.any() else sum(ends(matrix, linear, low, high, values)) / 2
