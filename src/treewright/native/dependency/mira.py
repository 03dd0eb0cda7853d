"""MIRA updates: the smallest change of the weights that makes the right tree win by a margin.

Crammer & Singer's MIRA with the k-best other trees as constraints (McDonald et al. 2005), solved by
Hildreth's algorithm. A rival is given by the slots of the features in which it differs from the right tree.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place

MAX_SWEEPS = 100
TOLERANCE = 1e-6
EMPTY = -1


class Rivals(NamedTuple):
    """The differences between the right tree and its rivals."""

    indptr: np.ndarray
    """Start of the slots of each rival; the last entry is the number of all slots."""
    slots: np.ndarray
    signs: np.ndarray
    """1 for a feature of the right tree, -1 for one of the rival."""


@compiled
def solve_update(rivals, needed, bound, change):
    """Fill `change`, the step along each rival's difference, so that the margins grow by `needed`.

    Minimises the change of the weights, with each step between 0 and `bound`.
    """
    k = rivals.indptr.size - 1
    products = np.zeros((k, k))
    _fill_products(rivals, products)
    change[:] = 0.0
    for _ in range(MAX_SWEEPS):
        largest = 0.0
        for i in range(k):
            if products[i, i] <= 0.0:
                continue
            lacking = needed[i]
            for j in range(k):
                lacking -= products[i, j] * change[j]
            target = min(max(change[i] + lacking / products[i, i], 0.0), bound)
            largest = max(largest, abs(target - change[i]))
            change[i] = target
        if largest < TOLERANCE:
            break


@compiled
def _fill_products(rivals, products):
    """Fill the inner products of all pairs of differences."""
    k = rivals.indptr.size - 1
    local = np.empty(rivals.slots.size, np.int32)
    n_distinct = _number_slots(rivals.slots, local)
    dense = np.zeros((k, n_distinct), np.float32)
    for i in range(k):
        for at in range(rivals.indptr[i], rivals.indptr[i + 1]):
            dense[i, local[at]] += rivals.signs[at]
        for j in range(i + 1):
            total = 0.0
            for at in range(rivals.indptr[i], rivals.indptr[i + 1]):
                total += rivals.signs[at] * dense[j, local[at]]
            products[i, j] = products[j, i] = total


@compiled
def _number_slots(slots, local):
    """Number the distinct slots consecutively; return how many there are."""
    size = 64
    while size < 2 * slots.size:
        size *= 2
    table = np.full(size, EMPTY, np.int64)
    number = np.empty(size, np.int32)
    n_distinct = 0
    for at in range(slots.size):
        place = (slots[at] * 40503) & (size - 1)
        while table[place] != EMPTY and table[place] != slots[at]:
            place = (place + 1) & (size - 1)
        if table[place] == EMPTY:
            table[place] = slots[at]
            number[place] = n_distinct
            n_distinct += 1
        local[at] = number[place]
    return n_distinct


@in_place
def apply_update(rivals, change, step, weights, totals):
    """Add the change to `weights` and, multiplied by `step`, to `totals` for averaging."""
    for i in range(rivals.indptr.size - 1):
        if change[i] == 0.0:
            continue
        for at in range(rivals.indptr[i], rivals.indptr[i + 1]):
            amount = change[i] * rivals.signs[at]
            weights[rivals.slots[at]] += amount
            totals[rivals.slots[at]] += step * amount
