"""The multi-class perceptron over sparse rows, with sums for averaging."""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place


class Weights(NamedTuple):
    """Weights of each feature (row) and class (column); the last row has the intercepts.

    `late` is the sum of all updates, each times the number of steps before it; after n steps, the mean of the
    weights over all steps is `now` - `late` / n.
    """

    now: np.ndarray
    late: np.ndarray


class Sparse(NamedTuple):
    """A sparse matrix, stored by rows."""

    indptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray


@in_place
def train_epoch(rows, labels, order, weights, margin, scores, step):
    """Pass once over the rows and return the number of updates; `step` counts rows seen before.

    The weights are updated if the right class does not win by more than the margin.
    """
    n_updates = 0
    for row in order:
        score_row(rows, row, weights.now, scores)
        right = labels[row]
        rival = 1 if right == 0 else 0
        for label in range(scores.size):
            if label != right and scores[label] > scores[rival]:
                rival = label
        if scores[right] - scores[rival] <= margin:
            n_updates += 1
            update(rows, row, weights, right, 1.0, step)
            update(rows, row, weights, rival, -1.0, step)
        step += 1
    return n_updates


@in_place
def score_row(rows, row, weights, scores):
    """Fill the scores of all classes."""
    for label in range(scores.size):
        scores[label] = weights[-1, label]
    for position in range(rows.indptr[row], rows.indptr[row + 1]):
        column, value = rows.columns[position], rows.values[position]
        for label in range(scores.size):
            scores[label] += weights[column, label] * value


@in_place
def update(rows, row, weights, label, amount, step):
    """Add a row, times `amount`, to the weights of a class."""
    weights.now[-1, label] += amount
    weights.late[-1, label] += amount * step
    for position in range(rows.indptr[row], rows.indptr[row + 1]):
        column, value = rows.columns[position], rows.values[position]
        weights.now[column, label] += amount * value
        weights.late[column, label] += amount * value * step
