"""Kernels of pairs of trees, computed by plain loops: the baseline of Moschitti (2006).

No computation is shared between pairs; faster algorithms are compared with these loops.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place


class PlainTrees(NamedTuple):
    """Trees in post-order; tree i starts at node `indptr[i]`.

    `sizes` are the numbers of nodes of subtrees, `symbols` the ids of labels, and `kinds` the ids of
    productions, -1 for leaves. `order` has the nodes of each tree, stably sorted by kind.
    """

    indptr: np.ndarray
    sizes: np.ndarray
    symbols: np.ndarray
    kinds: np.ndarray
    order: np.ndarray


class Runs(NamedTuple):
    """For each node of a tree, the start and end of the nodes of the same kind in the other tree."""

    begin: np.ndarray
    end: np.ndarray


class SequenceScratch(NamedTuple):
    """Space for the children of two nodes, and for three tables of pairs with an extra row and column."""

    left: np.ndarray
    right: np.ndarray
    tables: np.ndarray


@in_place
def _multiply(trees, one, other, values, begin_one, begin_other, width):
    """Return the product of 1 + value over the pairs of children of two nodes with the same production."""
    product = 1.0
    child, other_child = one - 1, other - 1
    while child > one - trees.sizes[one]:
        product *= 1 + values[(child - begin_one) * width + other_child - begin_other]
        child -= trees.sizes[child]
        other_child -= trees.sizes[other_child]
    return product


@in_place
def evaluate_all_nodes(trees, pairs, decay, values, out):
    """Evaluate the subset-tree kernel of pairs of trees by visiting all pairs of nodes.

    `values` has space for all pairs of nodes.
    """
    for pair in range(len(pairs)):
        begin_one, end_one = trees.indptr[pairs[pair, 0]], trees.indptr[pairs[pair, 0] + 1]
        begin_other, end_other = trees.indptr[pairs[pair, 1]], trees.indptr[pairs[pair, 1] + 1]
        width = end_other - begin_other
        total = 0.0
        for one in range(begin_one, end_one):
            for other in range(begin_other, end_other):
                value = 0.0
                if trees.kinds[one] >= 0 and trees.kinds[one] == trees.kinds[other]:
                    value = decay * _multiply(trees, one, other, values, begin_one, begin_other, width)
                values[(one - begin_one) * width + other - begin_other] = value
                total += value
        out[pair] = total


@in_place
def _find_runs(trees, one, other, runs):
    """Merge the nodes of two trees by kind, and store which nodes of the other tree each node matches."""
    at, end = trees.indptr[one], trees.indptr[one + 1]
    other_at, other_end = trees.indptr[other], trees.indptr[other + 1]
    while at < end:
        kind = trees.kinds[trees.order[at]]
        while other_at < other_end and trees.kinds[trees.order[other_at]] < kind:
            other_at += 1
        run_end = other_at
        while kind >= 0 and run_end < other_end and trees.kinds[trees.order[run_end]] == kind:
            run_end += 1
        while at < end and trees.kinds[trees.order[at]] == kind:
            runs.begin[trees.order[at] - trees.indptr[one]] = other_at
            runs.end[trees.order[at] - trees.indptr[one]] = run_end
            at += 1
        other_at = run_end


@in_place
def evaluate_sorted_nodes(trees, pairs, decay, values, runs, out):
    """Evaluate the subset-tree kernel by visiting only pairs of nodes with the same production (section 3.2).

    `values` has space for all pairs of nodes; it is zero before and after the call.
    """
    for pair in range(len(pairs)):
        begin_one, end_one = trees.indptr[pairs[pair, 0]], trees.indptr[pairs[pair, 0] + 1]
        begin_other = trees.indptr[pairs[pair, 1]]
        width = trees.indptr[pairs[pair, 1] + 1] - begin_other
        _find_runs(trees, pairs[pair, 0], pairs[pair, 1], runs)
        total = 0.0
        for one in range(begin_one, end_one):
            for at in range(runs.begin[one - begin_one], runs.end[one - begin_one]):
                other = trees.order[at]
                value = decay * _multiply(trees, one, other, values, begin_one, begin_other, width)
                values[(one - begin_one) * width + other - begin_other] = value
                total += value
        for one in range(begin_one, end_one):
            for at in range(runs.begin[one - begin_one], runs.end[one - begin_one]):
                values[(one - begin_one) * width + trees.order[at] - begin_other] = 0.0
        out[pair] = total


@in_place
def _list_children(trees, node, children):
    """Fill `children` from the last to the first; return their number."""
    n_children = 0
    child = node - 1
    while child > node - trees.sizes[node]:
        children[n_children] = child
        n_children += 1
        child -= trees.sizes[child]
    return n_children


@in_place
def _add_subsequences(sequences, n_left, n_right, decay):
    """Return the weight of all common subsequences of children, one length after the other (equation 4).

    The first two tables start with the values of pairs of children, from row and column 1 on.
    """
    single, ending, sums = sequences.tables[0], sequences.tables[1], sequences.tables[2]
    total = 0.0
    for _ in range(min(n_left, n_right)):
        for i in range(n_left + 1):
            for j in range(n_right + 1):
                sums[i, j] = 0.0
        for i in range(1, n_left + 1):
            for j in range(1, n_right + 1):
                total += ending[i, j]
                before = decay * (sums[i, j - 1] + sums[i - 1, j] - decay * sums[i - 1, j - 1])
                sums[i, j] = ending[i, j] + before
        for i in range(1, n_left + 1):
            for j in range(1, n_right + 1):
                ending[i, j] = single[i, j] * sums[i - 1, j - 1]
    return total


@in_place
def evaluate_partial_trees(trees, pairs, decay, depth_decay, values, sequences, out):
    """Evaluate the partial-tree kernel of pairs of trees by visiting all pairs of nodes.

    `values` has space for all pairs of nodes.
    """
    for pair in range(len(pairs)):
        begin_one, end_one = trees.indptr[pairs[pair, 0]], trees.indptr[pairs[pair, 0] + 1]
        begin_other, end_other = trees.indptr[pairs[pair, 1]], trees.indptr[pairs[pair, 1] + 1]
        width = end_other - begin_other
        total = 0.0
        for one in range(begin_one, end_one):
            for other in range(begin_other, end_other):
                value = 0.0
                if trees.symbols[one] == trees.symbols[other]:
                    n_left = _list_children(trees, one, sequences.left)
                    n_right = _list_children(trees, other, sequences.right)
                    for i in range(n_left):
                        line = (sequences.left[i] - begin_one) * width - begin_other
                        for j in range(n_right):
                            sequences.tables[0, i + 1, j + 1] = values[line + sequences.right[j]]
                            sequences.tables[1, i + 1, j + 1] = values[line + sequences.right[j]]
                    below = _add_subsequences(sequences, n_left, n_right, decay)
                    value = depth_decay * (decay * decay + below)
                values[(one - begin_one) * width + other - begin_other] = value
                total += value
        out[pair] = total
