"""The dependency tree kernel: Qian & Liu (2015), section 5.2.1, with its recursion corrected.

An arc stands for the word it leads to. For two arcs c and c' with cf(c, c') common features, let S(c, c') be
the number of common fragments whose leftmost arcs at the top are c and c':

    S(c, c') = cf(c, c') (1 + D(c, c')) (1 + S(r, r'))

where r and r' are the next siblings to the right, with S = 0 if there is none, and D(c, c') is the sum of S
over the pairs of children. The kernel is the sum of S over all pairs of arcs.
"""

import math
from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place

NOTHING_BETWEEN = -1
LANES = 8
"""Number of bytes in a word of a signature."""
LOWER_BITS, HIGHEST_BITS = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x8080808080808080)


class Arcs(NamedTuple):
    """The features of distinct arcs; the arcs of one sentence are adjacent.

    Two arcs share the feature of a template if they have the same id in the same column of `ids`. The tags
    between the ends of arc i are the sorted `between[indptr[i]:indptr[i + 1]]`; only arcs with the same
    `ends` can share such tags, and `ends` is `NOTHING_BETWEEN` for arcs without such tags. Two arcs can share
    a feature only if their `signatures` have at least one equal byte. `place` numbers the arcs of each
    sentence from 0.
    """

    signatures: np.ndarray
    ids: np.ndarray
    ends: np.ndarray
    indptr: np.ndarray
    between: np.ndarray
    place: np.ndarray


class Trees(NamedTuple):
    """Tree i has the arcs `arcs[indptr[i]:indptr[i + 1]]`, children before parents.

    Siblings are ordered from right to left. `above` and `right` are the positions, within the tree, of the
    arc into the head and of the next sibling to the right; if there is none, they are the number of arcs.
    """

    indptr: np.ndarray
    arcs: np.ndarray
    above: np.ndarray
    right: np.ndarray


class SentenceRuns(NamedTuple):
    """Runs of trees: run i has the trees from `indptr[i]` to `indptr[i + 1]`, all of one sentence.

    `places` are the rows or columns of their kernel values. The distinct arcs of run i start at
    `arcs[first_arc[i]]`.
    """

    trees: np.ndarray
    places: np.ndarray
    indptr: np.ndarray
    first_arc: np.ndarray
    arcs: np.ndarray


class SharedArcs(NamedTuple):
    """Pairs of arcs of two sentences that share features.

    The arc at position p of one sentence shares features with the arcs at positions `places[begin[p]:end[p]]`
    of the other; `values` are the numbers of shared features times the decay.
    """

    begin: np.ndarray
    end: np.ndarray
    places: np.ndarray
    values: np.ndarray


class DependencyScratch(NamedTuple):
    """Scratch space for the arcs of two sentences, and tables over two trees with an extra row and column.

    `positions` has, for each arc of the second sentence, its position in the second tree, or -1. All its
    values are -1 between calls.
    """

    shared: SharedArcs
    positions: np.ndarray
    below: np.ndarray
    chains: np.ndarray


@in_place
def list_arcs(trees, runs, is_listed):
    """Fill the distinct arcs of each run; `is_listed` is False for every arc before and after the call."""
    n_arcs = 0
    runs.first_arc[0] = 0
    for run in range(runs.indptr.size - 1):
        for number in range(runs.indptr[run], runs.indptr[run + 1]):
            tree = runs.trees[number]
            for position in range(trees.indptr[tree], trees.indptr[tree + 1]):
                arc = trees.arcs[position]
                if not is_listed[arc]:
                    is_listed[arc] = True
                    runs.arcs[n_arcs] = arc
                    n_arcs += 1
        for position in range(runs.first_arc[run], n_arcs):
            is_listed[runs.arcs[position]] = False
        runs.first_arc[run + 1] = n_arcs


@in_place
def evaluate(arcs, trees, a, b, decay, scratch, values):
    """Fill the kernel's value for each pair of trees of two sets of runs."""
    for run_a in range(a.indptr.size - 1):
        arcs_a = a.arcs[a.first_arc[run_a] : a.first_arc[run_a + 1]]
        for run_b in range(b.indptr.size - 1):
            arcs_b = b.arcs[b.first_arc[run_b] : b.first_arc[run_b + 1]]
            fill_shared(arcs, arcs_a, arcs_b, decay, scratch.shared)
            for number_b in range(b.indptr[run_b], b.indptr[run_b + 1]):
                tree_b = b.trees[number_b]
                fill_positions(arcs.place, trees, tree_b, scratch.positions)
                for number_a in range(a.indptr[run_a], a.indptr[run_a + 1]):
                    value = sum_fragments(arcs.place, trees, a.trees[number_a], tree_b, scratch)
                    values[a.places[number_a], b.places[number_b]] = value
                clear_positions(arcs.place, trees, tree_b, scratch.positions)


@in_place
def fill_shared(arcs, arcs_a, arcs_b, decay, shared):
    """Find the arcs that share features."""
    n_found = 0
    for a in arcs_a:
        shared.begin[arcs.place[a]] = n_found
        for b in arcs_b:
            if may_share(arcs.signatures, a, b):
                shared.places[n_found] = arcs.place[b]
                n_shared = count_shared(arcs, a, b)
                shared.values[n_found] = decay * n_shared
                n_found += n_shared > 0
        shared.end[arcs.place[a]] = n_found


@in_place
def fill_positions(place, trees, tree, positions):
    """Store the positions of the arcs of a tree."""
    for position in range(trees.indptr[tree + 1] - trees.indptr[tree]):
        positions[place[trees.arcs[trees.indptr[tree] + position]]] = position


@in_place
def clear_positions(place, trees, tree, positions):
    """Clear the positions of a tree."""
    for position in range(trees.indptr[tree], trees.indptr[tree + 1]):
        positions[place[trees.arcs[position]]] = -1


@in_place
def may_share(signatures, a, b):
    """Return whether the signatures of two arcs have an equal byte; their exclusive or then has a zero byte.

    Adding `LOWER_BITS` to the lower bits of a byte sets its highest bit unless they are zero.
    """
    found = np.uint64(0)
    for word in range(signatures.shape[1]):
        different = signatures[a, word] ^ signatures[b, word]
        found |= ~(((different & LOWER_BITS) + LOWER_BITS) | different) & HIGHEST_BITS
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
    """Return the number of tags that both arcs have between their ends."""
    at_a, at_b = arcs.indptr[a], arcs.indptr[b]
    n_common = 0
    while at_a < arcs.indptr[a + 1] and at_b < arcs.indptr[b + 1]:
        id_a, id_b = arcs.between[at_a], arcs.between[at_b]
        n_common += id_a == id_b
        at_a += id_a <= id_b
        at_b += id_b <= id_a
    return n_common


@in_place
def sum_fragments(place, trees, tree_a, tree_b, scratch):
    """Return the number of common fragments of two trees by the recursion above; infinity if too large."""
    first_a, first_b = trees.indptr[tree_a], trees.indptr[tree_b]
    n_a = trees.indptr[tree_a + 1] - first_a
    clear_tables(scratch, n_a, trees.indptr[tree_b + 1] - first_b, 0.0)
    shared, below, chains = scratch.shared, scratch.below, scratch.chains
    total = 0.0
    for i in range(n_a):
        place_a = place[trees.arcs[first_a + i]]
        above, right = trees.above[first_a + i], trees.right[first_a + i]
        for number in range(shared.begin[place_a], shared.end[place_a]):
            j = scratch.positions[shared.places[number]]
            if j >= 0:
                chain = chains[right, trees.right[first_b + j]]
                value = shared.values[number] * (1.0 + below[i, j]) * (1.0 + chain)
                chains[i, j] = value
                below[above, trees.above[first_b + j]] += value
                total += value
    return total


@in_place
def sum_fragment_logs(place, trees, tree_a, tree_b, scratch):
    """Return the log of the number of common fragments of two trees, computed in log space."""
    first_a, first_b = trees.indptr[tree_a], trees.indptr[tree_b]
    n_a = trees.indptr[tree_a + 1] - first_a
    clear_tables(scratch, n_a, trees.indptr[tree_b + 1] - first_b, -math.inf)
    shared, below, chains = scratch.shared, scratch.below, scratch.chains
    total = -math.inf
    for i in range(n_a):
        place_a = place[trees.arcs[first_a + i]]
        above, right = trees.above[first_a + i], trees.right[first_a + i]
        for number in range(shared.begin[place_a], shared.end[place_a]):
            j = scratch.positions[shared.places[number]]
            if j >= 0:
                chain = chains[right, trees.right[first_b + j]]
                value = math.log(shared.values[number]) + add_logs(0.0, below[i, j]) + add_logs(0.0, chain)
                chains[i, j] = value
                above_b = trees.above[first_b + j]
                below[above, above_b] = add_logs(below[above, above_b], value)
                total = add_logs(total, value)
    return total


@in_place
def clear_tables(scratch, n_a, n_b, value):
    """Reset the tables, including the extra row and column for missing siblings and parents."""
    for i in range(n_a + 1):
        for j in range(n_b + 1):
            scratch.below[i, j] = value
            scratch.chains[i, j] = value


@in_place
def evaluate_logs(arcs, trees, pairs, decay, scratch, logs):
    """Fill the log of the kernel value of each pair of trees, which cannot overflow."""
    for number in range(pairs.shape[0]):
        tree_a, tree_b = pairs[number]
        arcs_a = trees.arcs[trees.indptr[tree_a] : trees.indptr[tree_a + 1]]
        arcs_b = trees.arcs[trees.indptr[tree_b] : trees.indptr[tree_b + 1]]
        fill_shared(arcs, arcs_a, arcs_b, decay, scratch.shared)
        fill_positions(arcs.place, trees, tree_b, scratch.positions)
        logs[number] = sum_fragment_logs(arcs.place, trees, tree_a, tree_b, scratch)
        clear_positions(arcs.place, trees, tree_b, scratch.positions)


@in_place
def add_logs(a, b):
    """Return the log of the sum of two numbers whose logs are given."""
    larger, smaller = max(a, b), min(a, b)
    return larger if smaller == -math.inf else larger + math.log1p(math.exp(smaller - larger))
