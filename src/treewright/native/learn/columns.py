"""Coordinate descent on a quadratic loss with binary columns and an L2 penalty.

Friedman, Hastie & Tibshirani (2010), "Regularization Paths for Generalized Linear Models via Coordinate
Descent", equation 8 without the L1 norm, for columns whose values are 0 or 1. Columns that contain each
other, such as ``age >= 30`` and ``age >= 42``, form a chain. Each of its columns consists of whole bins, and
the weight of a column is the difference between the scores of two neighbouring bins. The penalty then couples
neighbouring bins only, so that the best weights of a whole chain solve a tridiagonal system, in one pass over
the rows of its largest column.

The sum of the weights of a chain is its trend: the difference between the scores of its two ends. A part of
the penalty of the trend is taken back, which makes a steady rise or fall over many columns cheap.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place


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
    """Weights of columns and their penalties, and the penalty of the trend of each chain that is taken back.

    For each position in the chains, there is also the curvature of the bin that the column adds to the next
    smaller one, and space for a pivot and for the change of the bin's score.
    """

    values: np.ndarray
    l2: np.ndarray
    trend: np.ndarray
    curvature: np.ndarray
    pivot: np.ndarray
    step: np.ndarray


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
    """Minimise over the weights of one chain after the other; return the largest decrease, times two."""
    largest = 0.0
    for chain in range(chains.members_ptr.size - 1):
        first, last = chains.members_ptr[chain], chains.members_ptr[chain + 1]
        at, decrease = chains.rows_ptr[chain], 0.0
        sum_residuals(chains, loss, first, last, at, weights.step)
        solve_chain(chains, weights, chain)
        for place in range(first, last):
            column, step = chains.members[place], weights.step[place]
            after = weights.step[place + 1] if place + 1 < last else 0.0
            weights.values[column] += step - after
            decrease += (weights.curvature[place] * step) * step
            decrease += weights.l2[column] * (step - after) * (step - after)
            while at < chains.ends[place]:
                row = chains.rows[at]
                loss.residual[row] -= loss.curvature[row] * step
                loss.shift[row] += step
                at += 1
        if first < last:
            decrease -= weights.trend[chain] * weights.step[first] * weights.step[first]
        largest = max(largest, decrease)
    return largest


@in_place
def sum_residuals(chains, loss, first, last, at, sums):
    """Sum the residuals of the bins of a chain."""
    for place in range(first, last):
        total = 0.0
        while at < chains.ends[place]:
            total += loss.residual[chains.rows[at]]
            at += 1
        sums[place] = total


@in_place
def solve_chain(chains, weights, chain):
    """Replace the residuals of the bins of a chain in `step` by the best changes of their scores.

    The system is symmetric and tridiagonal (Golub & Van Loan, "Matrix Computations", section 4.3).
    """
    first, last = chains.members_ptr[chain], chains.members_ptr[chain + 1]
    before, drag = 0.0, 0.0
    for place in range(first, last):
        column = chains.members[place]
        penalty = weights.l2[column]
        pull = penalty * weights.values[column]
        pivot = weights.curvature[place] + penalty + before
        weights.step[place] += drag - pull
        if place == first:
            pivot -= weights.trend[chain]
            for other in range(first, last):
                weights.step[place] += weights.trend[chain] * weights.values[chains.members[other]]
        else:
            factor = before / weights.pivot[place - 1]
            pivot -= factor * before
            weights.step[place] += factor * weights.step[place - 1]
        weights.pivot[place] = pivot
        before, drag = penalty, pull
    for place in range(last - 1, first - 1, -1):
        if place + 1 < last:
            weights.step[place] += weights.l2[chains.members[place]] * weights.step[place + 1]
        weights.step[place] /= weights.pivot[place]
