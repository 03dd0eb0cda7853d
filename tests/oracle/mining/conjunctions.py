"""Conjunctions by listing all combinations of the columns of each row."""

from collections import Counter
from itertools import combinations

import numpy as np


def count_all(rows, counters, n_counters, order):
    """Return the counts of each conjunction of an order, by counter.

    `rows` is a list of lists of columns; row i adds one to all of `counters[i]`.
    """
    counts = {}
    for row, own in zip(rows, counters, strict=True):
        for conjunction in combinations(sorted(row), order):
            for counter in own:
                counts.setdefault(conjunction, [0] * n_counters)[counter] += 1
    return counts


def frequent(rows, counters, n_counters, order, threshold):
    """Return the conjunctions of an order with a count above the threshold, and all their counts."""
    counts = count_all(rows, counters, n_counters, order)
    return {conjunction: own for conjunction, own in counts.items() if max(own) > threshold}


def extensions(rows, counters, n_counters, order, threshold):
    """Return how often each candidate of an order occurs in the rows.

    A candidate is a frequent conjunction of the previous order plus a more frequent column. Columns that are
    equally frequent are ordered by number; from order 2 on, only frequent columns are used.
    """
    if order == 1:
        return Counter((column,) for row in rows for column in row)
    totals = {
        column: (sum(own), column)
        for (column,), own in frequent(rows, counters, n_counters, 1, threshold).items()
    }
    parents = {frozenset(parent) for parent in frequent(rows, counters, n_counters, order - 1, threshold)}
    found = Counter()
    for row in rows:
        ranked = sorted((column for column in row if column in totals), key=totals.__getitem__)
        for candidate in combinations(ranked, order):
            found[candidate] += frozenset(candidate[:-1]) in parents
    return +found


def present(dense, features):
    """Return, for each row and conjunction, whether all its columns are present."""
    return np.array(
        [[all(row[column] for column in conjunction) for conjunction in features] for row in dense],
        dtype=bool,
    ).reshape(len(dense), len(features))
