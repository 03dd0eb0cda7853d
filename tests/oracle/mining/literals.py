"""Conjunctions of literals and their scores, by enumeration."""

from itertools import combinations, product

import numpy as np


def is_true(dense, literals):
    """Return whether a conjunction is true in each row."""
    columns = [~dense[:, ~each] if each < 0 else dense[:, each] for each in literals]
    return np.all(columns, axis=0)


def score(residuals, rows, ridge):
    """Return the largest score over outputs of a set of rows."""
    return max(
        residuals[rows, output].sum() ** 2 / ((residuals[rows, output] ** 2).sum() + ridge)
        for output in range(residuals.shape[1])
    )


def best(dense, residuals, degree, ridge, *, negations):
    """Return the score of each conjunction of at least two literals that is true in some rows."""
    found = {}
    for order in range(2, degree + 1):
        for columns in combinations(range(dense.shape[1]), order):
            for signs in product((False, True), repeat=order) if negations else [(False,) * order]:
                literals = tuple(~each if sign else each for each, sign in zip(columns, signs, strict=True))
                rows = is_true(dense, literals)
                if rows.any():
                    found[literals] = score(residuals, rows, ridge)
    return found
