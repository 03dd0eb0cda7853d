"""The smallest update of weights that achieves the required margins, by trying all sets of constraints."""

from itertools import product

import numpy as np

ZERO, FREE, BOUND = 0, 1, 2


def smallest_update(differences, needed, bound):
    """Return the steps between 0 and `bound` that minimise half the squared update minus needed @ steps.

    `differences` are rows of a dense array. At the optimum, some steps are 0, some are at the bound, and the
    gradient of the others is zero.
    """
    products = differences @ differences.T
    best, best_value = None, np.inf
    choices = (ZERO, FREE, BOUND) if np.isfinite(bound) else (ZERO, FREE)
    for states in product(choices, repeat=len(needed)):
        steps = np.array([bound if state == BOUND else 0.0 for state in states])
        free = np.array(states) == FREE
        lacking = needed - products @ steps
        steps[free] = np.linalg.lstsq(products[np.ix_(free, free)], lacking[free], rcond=None)[0]
        value = steps @ products @ steps / 2 - needed @ steps
        if steps.min() > -1e-9 and steps.max() < bound + 1e-9 and value < best_value - 1e-12:
            best, best_value = steps, value
    return best
