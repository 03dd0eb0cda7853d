"""Coordinate descent on a quadratic loss with binary columns and an L2 penalty.

Friedman, Hastie & Tibshirani (2010), "Regularization Paths for Generalized Linear Models via Coordinate
Descent", equation 8 without the L1 norm, for columns whose values are 0 or 1. Columns that contain each
other, such as ``age >= 30`` and ``age >= 42``, form a chain. All weights of a chain are moved in one pass
over the rows of its largest column, because each of its columns consists of whole bins.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place

N_SWEEPS = 3
"""Number of sweeps over the columns of a chain per pass over its rows."""


class BinaryColumns(NamedTuple):
    """Columns of zeros and ones: column j has ones in `rows[indptr[j]:indptr[j + 1]]`, in ascending order."""

    indptr: np.ndarray
    rows: np.ndarray


class ColumnChains(NamedTuple):
    """Columns in chains, each from the smallest column to the largest.

    Chain c has the columns `members[members_ptr[c]:members_ptr[c + 1]]`. The rows of the member at position p
    are `rows[rows_ptr[c]:ends[p]]`.
    """

    members_ptr: np.ndarray
    members: np.ndarray
    rows_ptr: np.ndarray
    ends: np.ndarray
    rows: np.ndarray


class QuadraticLoss(NamedTuple):
    """A quadratic loss for each row: its negative gradient, its curvature, and the change of the score."""

    residual: np.ndarray
    curvature: np.ndarray
    shift: np.ndarray


class ColumnWeights(NamedTuple):
    """Weights of columns and their penalties.

    For each position in the chains, there is also the curvature and the residual of the bin that the column
    adds to the next smaller one, and space for the changes of the weights, in this sweep and in all.
    """

    values: np.ndarray
    l2: np.ndarray
    curvature: np.ndarray
    residual: np.ndarray
    step: np.ndarray
    moved: np.ndarray


@in_place
def compare_neighbours(columns, nesting):
    """Write 1 where the next column is contained in this one, -1 for the opposite, and 0 for neither."""
    for column in range(nesting.size):
        begin, middle = columns.indptr[column], columns.indptr[column + 1]
        end = columns.indptr[column + 2]
        n_missing, n_allowed = 0, middle - begin - (end - middle)
        large, large_end, small, small_end = begin, middle, middle, end
        if n_allowed < 0:
            large, large_end, small, small_end = middle, end, begin, middle
            n_allowed = -n_allowed
        nesting[column] = 0
        if small == small_end or n_allowed == 0:
            continue
        while small < small_end and large < large_end and n_missing <= n_allowed:
            if columns.rows[large] == columns.rows[small]:
                small += 1
            else:
                n_missing += 1
            large += 1
        if small == small_end:
            nesting[column] = 1 if middle - begin > end - middle else -1


@in_place
def fill_chains(columns, chains):
    """Write `ends` and `rows`; return the number of rows."""
    n_rows = 0
    for chain in range(chains.rows_ptr.size - 1):
        chains.rows_ptr[chain] = n_rows
        before = begin = end = 0
        for place in range(chains.members_ptr[chain], chains.members_ptr[chain + 1]):
            before, end_before = begin, end
            begin = columns.indptr[chains.members[place]]
            end = columns.indptr[chains.members[place] + 1]
            for at in range(begin, end):
                if before < end_before and columns.rows[before] == columns.rows[at]:
                    before += 1
                else:
                    chains.rows[n_rows] = columns.rows[at]
                    n_rows += 1
            chains.ends[place] = n_rows
    chains.rows_ptr[chains.rows_ptr.size - 1] = n_rows
    return n_rows


@in_place
def measure_chains(chains, loss, weights):
    """Write the curvature of each bin."""
    at = 0
    for place in range(chains.members.size):
        total = 0.0
        while at < chains.ends[place]:
            total += loss.curvature[chains.rows[at]]
            at += 1
        weights.curvature[place] = total


@in_place
def descend_chains(chains, loss, weights):
    """Pass once over the chains and move their weights; return the largest decrease of the objective."""
    largest = 0.0
    for chain in range(chains.members_ptr.size - 1):
        first, last = chains.members_ptr[chain], chains.members_ptr[chain + 1]
        at = chains.rows_ptr[chain]
        for place in range(first, last):
            total = 0.0
            while at < chains.ends[place]:
                total += loss.residual[chains.rows[at]]
                at += 1
            weights.residual[place] = total
            weights.moved[place] = 0.0
        for _ in range(N_SWEEPS if last - first > 1 else 1):
            gradient = bend = 0.0
            for place in range(first, last):
                column = chains.members[place]
                gradient += weights.residual[place]
                bend += weights.curvature[place]
                penalty = weights.l2[column]
                step = 0.0
                if bend + penalty > 0.0:
                    step = (gradient - penalty * weights.values[column]) / (bend + penalty)
                largest = max(largest, (bend + penalty) * step * step)
                gradient -= bend * step
                weights.values[column] += step
                weights.step[place] = step
                weights.moved[place] += step
            total = 0.0
            for place in range(last - 1, first - 1, -1):
                total += weights.step[place]
                weights.residual[place] -= weights.curvature[place] * total
        total = 0.0
        at = chains.rows_ptr[chain + 1]
        for place in range(last - 1, first - 1, -1):
            total += weights.moved[place]
            begin = chains.ends[place - 1] if place > first else chains.rows_ptr[chain]
            while at > begin:
                at -= 1
                row = chains.rows[at]
                loss.residual[row] -= loss.curvature[row] * total
                loss.shift[row] += total
    return largest
