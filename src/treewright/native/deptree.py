"""The dependency tree kernel: Qian & Liu (2015), section 5.2.1, with its recursion corrected.

An arc stands for the word it leads to. For two arcs c and c' with cf(c, c') common features, let S(c, c') be
the number of common fragments whose leftmost arcs at the top are c and c':

    S(c, c') = cf(c, c') (1 + D(c, c')) (1 + S(r, r'))

where r and r' are the next siblings to the right, with S = 0 if there is none, and D(c, c') is the sum of S over
the pairs of children. The kernel is the sum of S over all pairs of arcs.
"""

import math
from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place

NOTHING_BETWEEN = -1
LANES = 8
"""Bytes in a word of a signature."""
LOWEST_BITS, HIGHEST_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


class Arcs(NamedTuple):
    """The features of different arcs, those of one sentence side by side.

    Two arcs share the feature of a template if they have the same id in the same column of `ids`. The tags
    between the ends of arc i are the sorted `between[first[i]:first[i + 1]]`; only arcs with the same `ends`
    can share some of them, and arcs that have none have `NOTHING_BETWEEN` there. Arcs share nothing at all unless
    some byte of their `signatures` is the same. `place` numbers the arcs of each sentence from 0.
    """

    signatures: np.ndarray
    ids: np.ndarray
    ends: np.ndarray
    first: np.ndarray
    between: np.ndarray
    place: np.ndarray


class Trees(NamedTuple):
    """Tree i has the arcs `arcs[first[i]:first[i + 1]]`: children before parents, siblings from right to left.

    `above` and `right` are the positions, among them, of the arc to the head and of the next sibling to the
    right; the number of arcs where there is none.
    """

    first: np.ndarray
    arcs: np.ndarray
    above: np.ndarray
    right: np.ndarray


class Batch(NamedTuple):
    """Trees, of which those of one sentence follow each other: run i has those from `first[i]` to `first[i + 1]`.

    `places` are where their values go. The different arcs of run i are `arcs[first_arc[i]:first_arc[i + 1]]`.
    """

    trees: np.ndarray
    places: np.ndarray
    first: np.ndarray
    first_arc: np.ndarray
    arcs: np.ndarray


class Scratch(NamedTuple):
    """`shared` has room for the arcs of two sentences; `below` and `chains` for those of two trees, plus one."""

    shared: np.ndarray
    below: np.ndarray
    chains: np.ndarray


@in_place
def list_arcs(trees, batch, is_listed):
    """Fill the different arcs of each run of a batch, with the help of a False for each arc there is."""
    n_arcs = 0
    batch.first_arc[0] = 0
    for run in range(batch.first.size - 1):
        for number in range(batch.first[run], batch.first[run + 1]):
            tree = batch.trees[number]
            for position in range(trees.first[tree], trees.first[tree + 1]):
                arc = trees.arcs[position]
                if not is_listed[arc]:
                    is_listed[arc] = True
                    batch.arcs[n_arcs] = arc
                    n_arcs += 1
        for position in range(batch.first_arc[run], n_arcs):
            is_listed[batch.arcs[position]] = False
        batch.first_arc[run + 1] = n_arcs


@in_place
def evaluate(arcs, trees, a, b, decay, scratch, values):
    """Fill the kernel's value for each pair of trees of two batches."""
    for run_a in range(a.first.size - 1):
        arcs_a = a.arcs[a.first_arc[run_a] : a.first_arc[run_a + 1]]
        for run_b in range(b.first.size - 1):
            arcs_b = b.arcs[b.first_arc[run_b] : b.first_arc[run_b + 1]]
            fill_shared(arcs, arcs_a, arcs_b, decay, scratch.shared)
            for number_a in range(a.first[run_a], a.first[run_a + 1]):
                for number_b in range(b.first[run_b], b.first[run_b + 1]):
                    value = sum_fragments(arcs.place, trees, a.trees[number_a], b.trees[number_b], scratch)
                    values[a.places[number_a], b.places[number_b]] = value


@in_place
def fill_shared(arcs, arcs_a, arcs_b, decay, shared):
    """Fill the number of common features of each two arcs, times `decay`."""
    for a in arcs_a:
        row = shared[arcs.place[a]]
        for b in arcs_b:
            value = 0.0
            if may_share(arcs.signatures, a, b):
                value = decay * count_shared(arcs, a, b)
            row[arcs.place[b]] = value


@in_place
def may_share(signatures, a, b):
    """Return whether the signatures of two arcs have an equal byte somewhere: a zero in their exclusive or."""
    found = np.uint64(0)
    for word in range(signatures.shape[1]):
        different = signatures[a, word] ^ signatures[b, word]
        found |= (different - LOWEST_BITS) & ~different & HIGHEST_BITS
    return found != 0


@in_place
def count_shared(arcs, a, b):
    """Return the number of common features of two arcs."""
    n_shared = 0
    for template in range(arcs.ids.shape[1]):
        n_shared += arcs.ids[a, template] == arcs.ids[b, template]
    if arcs.ends[a] == arcs.ends[b] and arcs.ends[a] != NOTHING_BETWEEN:
        n_shared += count_between(arcs, a, b)
    return n_shared


@in_place
def count_between(arcs, a, b):
    """Return how many tags stand between the ends of both arcs."""
    at_a, at_b = arcs.first[a], arcs.first[b]
    n_common = 0
    while at_a < arcs.first[a + 1] and at_b < arcs.first[b + 1]:
        id_a, id_b = arcs.between[at_a], arcs.between[at_b]
        n_common += id_a == id_b
        at_a += id_a <= id_b
        at_b += id_b <= id_a
    return n_common


@in_place
def sum_fragments(place, trees, tree_a, tree_b, scratch):
    """Return the number of common fragments of two trees, by the recursion above; infinite if too large."""
    first_a, first_b = trees.first[tree_a], trees.first[tree_b]
    n_a, n_b = trees.first[tree_a + 1] - first_a, trees.first[tree_b + 1] - first_b
    clear(scratch.below, n_a, n_b, 0.0)
    clear_margins(scratch.chains, n_a, n_b, 0.0)
    total = 0.0
    for i in range(n_a):
        shared = scratch.shared[place[trees.arcs[first_a + i]]]
        above = scratch.below[trees.above[first_a + i]]
        below = scratch.below[i]
        to_the_right = scratch.chains[trees.right[first_a + i]]
        chains = scratch.chains[i]
        for j in range(n_b):
            value = shared[place[trees.arcs[first_b + j]]]
            if value > 0:
                value *= (1.0 + below[j]) * (1.0 + to_the_right[trees.right[first_b + j]])
                above[trees.above[first_b + j]] += value
                total += value
            chains[j] = value
    return total


@in_place
def clear(table, n_rows, n_columns, value):
    """Fill a table and its margins."""
    for row in range(n_rows + 1):
        for column in range(n_columns + 1):
            table[row, column] = value


@in_place
def clear_margins(table, n_rows, n_columns, value):
    """Fill what is looked up where there is no further sibling."""
    for row in range(n_rows + 1):
        table[row, n_columns] = value
    for column in range(n_columns + 1):
        table[n_rows, column] = value


@in_place
def evaluate_logs(arcs, trees, pairs, decay, scratch, logs):
    """Fill the logarithm of the kernel's value for each pair of trees; there is none too large for it."""
    for number in range(pairs.shape[0]):
        tree_a, tree_b = pairs[number]
        arcs_a = trees.arcs[trees.first[tree_a] : trees.first[tree_a + 1]]
        arcs_b = trees.arcs[trees.first[tree_b] : trees.first[tree_b + 1]]
        fill_shared(arcs, arcs_a, arcs_b, decay, scratch.shared)
        logs[number] = sum_fragment_logs(arcs.place, trees, tree_a, tree_b, scratch)


@in_place
def sum_fragment_logs(place, trees, tree_a, tree_b, scratch):
    """Return the logarithm of the number of common fragments of two trees."""
    first_a, first_b = trees.first[tree_a], trees.first[tree_b]
    n_a, n_b = trees.first[tree_a + 1] - first_a, trees.first[tree_b + 1] - first_b
    clear(scratch.below, n_a, n_b, -math.inf)
    clear_margins(scratch.chains, n_a, n_b, -math.inf)
    total = -math.inf
    for i in range(n_a):
        for j in range(n_b):
            value = scratch.shared[place[trees.arcs[first_a + i]], place[trees.arcs[first_b + j]]]
            scratch.chains[i, j] = -math.inf
            if value > 0:
                beside = scratch.chains[trees.right[first_a + i], trees.right[first_b + j]]
                value = math.log(value) + add_logs(0.0, scratch.below[i, j]) + add_logs(0.0, beside)
                above_a, above_b = trees.above[first_a + i], trees.above[first_b + j]
                scratch.below[above_a, above_b] = add_logs(scratch.below[above_a, above_b], value)
                scratch.chains[i, j] = value
                total = add_logs(total, value)
    return total


@in_place
def add_logs(a, b):
    """Return the logarithm of the sum of two numbers whose logarithms are given."""
    larger, smaller = max(a, b), min(a, b)
    return larger if smaller == -math.inf else larger + math.log1p(math.exp(smaller - larger))
