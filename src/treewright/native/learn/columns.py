"""Coordinate descent on a quadratic loss with binary columns and an elastic-net penalty.

Friedman, Hastie & Tibshirani (2010), "Regularization Paths for Generalized Linear Models via Coordinate
Descent", equation 8, for columns whose values are 0 or 1.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place


class BinaryColumns(NamedTuple):
    """Columns of zeros and ones: column j has ones in `rows[indptr[j]:indptr[j + 1]]`."""

    indptr: np.ndarray
    rows: np.ndarray


class QuadraticLoss(NamedTuple):
    """A quadratic loss for each row: its negative gradient, its curvature, and the change of the score."""

    residual: np.ndarray
    curvature: np.ndarray
    shift: np.ndarray


class ColumnWeights(NamedTuple):
    """Weights of columns, their penalties, and space for the curvature of each column."""

    values: np.ndarray
    l1: np.ndarray
    l2: np.ndarray
    curvature: np.ndarray


@in_place
def measure_columns(columns, loss, weights):
    """Write the curvature of each column."""
    for column in range(weights.values.size):
        total = 0.0
        for place in range(columns.indptr[column], columns.indptr[column + 1]):
            total += loss.curvature[columns.rows[place]]
        weights.curvature[column] = total


@in_place
def descend_columns(columns, first, loss, weights):
    """Pass once over columns, moving each weight to its optimum; return the largest objective decrease.

    The entries of `columns` in `weights` start at `first`.
    """
    residual, curvature, shift = loss
    largest = 0.0
    for number in range(columns.indptr.size - 1):
        column = first + number
        begin, end = columns.indptr[number], columns.indptr[number + 1]
        before = weights.values[column]
        bend = weights.curvature[column] + weights.l2[column]
        if bend <= 0.0:
            continue
        gradient = -weights.l2[column] * before
        for place in range(begin, end):
            gradient += residual[columns.rows[place]]
        after = before + gradient / bend
        shrunk = weights.l1[column] / bend
        if after > shrunk:
            after -= shrunk
        elif after < -shrunk:
            after += shrunk
        else:
            after = 0.0
        moved = after - before
        if moved != 0.0:
            weights.values[column] = after
            largest = max(largest, bend * moved * moved)
            for place in range(begin, end):
                row = columns.rows[place]
                residual[row] -= curvature[row] * moved
                shift[row] += moved
    return largest
