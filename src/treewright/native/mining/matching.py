"""Matching of sub feature trees in lists of trees, in all trees of a list at once."""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place, inlined
from treewright.native.hashing import PRIME
from treewright.native.mining.subtrees import N_DEPTHS

N_SIGNS = 4
"""Number of 64-bit words in the signature of an arc."""
FEW = 8
"""All children of a node are scanned if there are at most this many per basic feature of the arc."""
FREE = -1


class Marked(NamedTuple):
    """Sub feature trees to match, as paths of codes, with nodes numbered level by level.

    `codes[node]` is the last code of the path to a node. `links[node]` has its first child (children are
    sorted by code and end before the first child of the next node) and the feature that ends there, or -1.
    The node of code c at the start of a path is `starts[c // N_DEPTHS]`, or -1.
    """

    codes: np.ndarray
    links: np.ndarray
    starts: np.ndarray


class Walk(NamedTuple):
    """Space for fragments to be extended: node, depth, mask, and arcs of the rightmost path.

    `signs[arc]` has a bit for each basic feature of an arc; several features share a bit.
    """

    nodes: np.ndarray
    depths: np.ndarray
    masks: np.ndarray
    paths: np.ndarray
    signs: np.ndarray


class Fragment(NamedTuple):
    """A fragment of a tree: its node in `Marked`, and the depth, the trees and the number of its last arc."""

    node: int
    depth: int
    mask: np.uint64
    arc: int


class Met(NamedTuple):
    """The features found in a list and their masks, in a hash table, and the slots in use.

    A table for the features of one list is small enough to stay in the processor's cache.
    """

    features: np.ndarray
    masks: np.ndarray
    taken: np.ndarray


class Hits(NamedTuple):
    """Space for the results; those of list i end at `ends[i]`.

    Features that occur in all trees of a list are left out.
    """

    numbers: np.ndarray
    masks: np.ndarray
    ends: np.ndarray


@in_place
def sign(number):
    """Return the bit of a basic feature among the 256 bits of an arc."""
    return (np.uint64(number) * PRIME) >> np.uint64(56)


@in_place
def match_lists(forest, n_trees, features, marked, span, walk, met, hits):
    """Match features in a range of lists; return the list for which space ran out, or the end."""
    n_hits = 0
    for number in range(span[0], span[1]):
        n_met = 0
        sign_arcs(forest, features, number, walk.signs)
        for arc in range(forest.indptr[number], forest.indptr[number + 1]):
            n_met = match_arc(forest, features, marked, arc, walk, met, n_met)
            if n_met < 0:
                return number
        if n_hits + n_met > hits.numbers.size:
            forget(met, n_met)
            return number
        everywhere = ~np.uint64(0) >> np.uint64(64 - n_trees[number])
        for at in range(n_met):
            slot = met.taken[at]
            if met.masks[slot] != everywhere:
                hits.numbers[n_hits], hits.masks[n_hits] = met.features[slot], met.masks[slot]
                n_hits += 1
        forget(met, n_met)
        hits.ends[number] = n_hits
    return span[1]


@in_place
def sign_arcs(forest, features, number, signs):
    """Set the bits of the basic features of all arcs of a list."""
    for arc in range(forest.indptr[number], forest.indptr[number + 1]):
        signs[arc, :] = np.uint64(0)
        for at in range(features.indptr[arc], features.indptr[arc + 1]):
            bit = sign(features.ids[at])
            signs[arc, bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))


@in_place
def forget(met, n_met):
    """Clear the table of a list."""
    for at in range(n_met):
        met.features[met.taken[at]] = FREE


@inlined
def match_arc(forest, features, marked, arc, walk, met, n_met):
    """Find all features whose first arc is this one; return the number of features found in the list.

    If there is not enough space, the features found so far are removed and -1 is returned.
    """
    n_waiting = 0
    for at in range(features.indptr[arc], features.indptr[arc + 1]):
        node = marked.starts[features.ids[at]]
        if n_met >= met.features.size // 2:
            forget(met, n_met)
            return -1
        if node >= 0:
            n_met, n_waiting = meet(
                marked, Fragment(node, 0, forest.masks[arc], arc), walk, met, n_met, n_waiting
            )
        while n_waiting > 0:
            n_waiting -= 1
            node, depth, mask = walk.nodes[n_waiting], walk.depths[n_waiting], walk.masks[n_waiting]
            for level in range(depth + 1):
                walk.paths[-1, level] = walk.paths[n_waiting, level]
            for slot in range(depth + 1):
                left = walk.paths[-1, slot]
                for place in range(forest.first_next[left], forest.first_next[left + 1]):
                    shared = mask & forest.next_masks[place]
                    right = Fragment(node, slot, shared, forest.next_arcs[place])
                    n_met, n_waiting = follow(features, marked, right, walk, met, n_met, n_waiting)
            above = walk.paths[-1, depth]
            for child in range(forest.first_child[above], forest.end_child[above]):
                below = Fragment(node, depth + 1, mask & forest.masks[child], child)
                n_met, n_waiting = follow(features, marked, below, walk, met, n_met, n_waiting)
        if n_waiting < 0:
            forget(met, n_met)
            return -1
    return n_met


@in_place
def follow(features, marked, fragment, walk, met, n_met, n_waiting):
    """Add all features that extend `fragment.node` by the last arc of the fragment."""
    node, depth, mask, arc = fragment
    if mask == 0 or n_waiting < 0:
        return n_met, n_waiting
    begin, end = marked.links[node, 0], marked.links[node + 1, 0]
    first, last = features.indptr[arc], features.indptr[arc + 1]
    n_room = min(walk.nodes.size - n_waiting, met.features.size // 2 - n_met)
    if last - first >= n_room:
        return n_met, -1
    if end - begin <= FEW * (last - first):
        for child in range(begin, end):
            code = marked.codes[child]
            if code % N_DEPTHS == depth and has_feature(features, walk.signs, arc, code // N_DEPTHS):
                n_met, n_waiting = meet(
                    marked, Fragment(child, depth, mask, arc), walk, met, n_met, n_waiting
                )
    else:
        for at in range(first, last):
            child = find_code(marked.codes, begin, end, features.ids[at] * N_DEPTHS + depth)
            if child >= 0:
                n_met, n_waiting = meet(
                    marked, Fragment(child, depth, mask, arc), walk, met, n_met, n_waiting
                )
    return n_met, n_waiting


@inlined
def has_feature(features, signs, arc, number):
    """Return whether an arc has a basic feature."""
    bit = sign(number)
    is_there = False
    if (signs[arc, bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1):
        for at in range(features.indptr[arc], features.indptr[arc + 1]):
            is_there |= features.ids[at] == number
    return is_there


@in_place
def find_code(codes, begin, end, code):
    """Return the position of a code among the children of a node, or -1."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low if low < end and codes[low] == code else -1


@inlined
def meet(marked, fragment, walk, met, n_met, n_waiting):
    """Add the feature of a fragment, and push the fragment if it can be extended.

    The last row of `walk.paths` is the rightmost path of the fragment before the extension.
    """
    node, depth, mask, arc = fragment
    feature = marked.links[node, 1]
    if feature >= 0:
        slots = np.uint64(met.features.size - 1)
        slot = ((np.uint64(feature) * PRIME) >> np.uint64(32)) & slots
        while met.features[slot] != feature and met.features[slot] != FREE:
            slot = (slot + np.uint64(1)) & slots
        if met.features[slot] == FREE:
            met.features[slot], met.masks[slot] = feature, np.uint64(0)
            met.taken[n_met] = slot
            n_met += 1
        met.masks[slot] |= mask
    if marked.links[node, 0] < marked.links[node + 1, 0]:
        walk.nodes[n_waiting], walk.depths[n_waiting], walk.masks[n_waiting] = node, depth, mask
        for level in range(depth):
            walk.paths[n_waiting, level] = walk.paths[-1, level]
        walk.paths[n_waiting, depth] = arc
        n_waiting += 1
    return n_met, n_waiting


@in_place
def spread_hits(n_trees, first_row, numbers, masks, ends, indptr, columns):
    """Write the features of each candidate; without space for columns, count them in `indptr[row + 1]`."""
    begin = 0
    for number in range(n_trees.size):
        for at in range(begin, ends[number]):
            mask = masks[at]
            for tree in range(n_trees[number]):
                if (mask >> np.uint64(tree)) & np.uint64(1):
                    row = first_row[number] + tree
                    if columns.size > 0:
                        columns[indptr[row]] = numbers[at]
                        indptr[row] += 1
                    else:
                        indptr[row + 1] += 1
        begin = ends[number]


@in_place
def weigh_hits(n_trees, first_row, numbers, masks, ends, coef, scores):
    """Add the weights of features to the scores of the candidates that have them."""
    begin = 0
    for number in range(n_trees.size):
        for at in range(begin, ends[number]):
            weight, mask = coef[numbers[at]], masks[at]
            for tree in range(n_trees[number]):
                if (mask >> np.uint64(tree)) & np.uint64(1):
                    scores[first_row[number] + tree] += weight
        begin = ends[number]
