"""Sub feature trees found in lists of trees, each once for all trees of a list that have it."""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place
from treewright.native.conjunctions import EMPTY, ROOT, Trie, find_child
from treewright.native.hashing import mix
from treewright.native.subtrees import N_DEPTHS


class Marked(NamedTuple):
    """Sub feature trees to be found, as paths of codes; `hints` tells which codes may follow at a node.

    The node of code c at the root is `starts[c // N_DEPTHS]`, or -1.
    """

    trie: Trie
    hints: np.ndarray
    starts: np.ndarray


class Walk(NamedTuple):
    """Room for fragments that wait to be extended: node, depth, mask, and arcs of the rightmost path."""

    nodes: np.ndarray
    depths: np.ndarray
    masks: np.ndarray
    paths: np.ndarray


class Hits(NamedTuple):
    """Room for what is found: the mask of each feature in a list, and those met in it.

    Those of list i, less those that all trees have, are `numbers` and `masks` up to `ends[i]`.
    """

    present: np.ndarray
    met: np.ndarray
    numbers: np.ndarray
    masks: np.ndarray
    ends: np.ndarray


@in_place
def hint(code):
    """Return one of 64 bits for a code."""
    return np.uint64(1) << (mix(np.uint64(0), code) >> np.uint64(58))


@in_place
def fill_hints(marked):
    """Fill hints and starts from the trie."""
    trie = marked.trie
    for slot in range(trie.keys.size):
        if trie.keys[slot] != EMPTY:
            node, code = trie.keys[slot] >> np.uint64(32), trie.keys[slot] & np.uint64(0xFFFFFFFF)
            marked.hints[node] |= hint(code)
            if node == ROOT:
                marked.starts[code // np.uint64(N_DEPTHS)] = trie.nodes[slot]


@in_place
def match_lists(forest, n_trees, features, marked, span, walk, hits):
    """Find features in the lists of a span; return the list where room was wanting, or the end."""
    n_hits = 0
    for number in range(span[0], span[1]):
        n_met = 0
        for arc in range(forest.first[number], forest.first[number + 1]):
            n_met = match_arc(forest, features, marked, arc, walk, hits, n_met)
            if n_met < 0:
                return number
        if n_hits + n_met > hits.numbers.size:
            forget(hits, n_met)
            return number
        everywhere = ~np.uint64(0) >> np.uint64(64 - n_trees[number])
        for at in range(n_met):
            feature = hits.met[at]
            if hits.present[feature] != everywhere:
                hits.numbers[n_hits], hits.masks[n_hits] = feature, hits.present[feature]
                n_hits += 1
        forget(hits, n_met)
        hits.ends[number] = n_hits
    return span[1]


@in_place
def forget(hits, n_met):
    """Make the masks of a list zero again."""
    for at in range(n_met):
        hits.present[hits.met[at]] = np.uint64(0)


@in_place
def match_arc(forest, features, marked, arc, walk, hits, n_met):
    """Find all features whose first arc is this one; return how many were met in the list.

    If there is no room for those that wait, all are forgotten and -1 is returned.
    """
    n_waiting = 0
    for at in range(features.first[arc], features.first[arc + 1]):
        node = marked.starts[features.ids[at]]
        if node >= 0:
            fragment = (node, 0, forest.masks[arc], arc)
            n_met, n_waiting = meet(marked.trie, fragment, walk, hits, n_met, n_waiting)
        while n_waiting > 0:
            n_waiting -= 1
            node, depth, mask = walk.nodes[n_waiting], walk.depths[n_waiting], walk.masks[n_waiting]
            for level in range(depth + 1):
                walk.paths[-1, level] = walk.paths[n_waiting, level]
            for slot in range(depth + 1):
                left = walk.paths[-1, slot]
                for place in range(forest.first_next[left], forest.first_next[left + 1]):
                    extension = (node, slot, mask & forest.next_masks[place], forest.next_arcs[place])
                    n_met, n_waiting = follow(features, marked, extension, walk, hits, n_met, n_waiting)
            above = walk.paths[-1, depth]
            for child in range(forest.first_child[above], forest.end_child[above]):
                extension = (node, depth + 1, mask & forest.masks[child], child)
                n_met, n_waiting = follow(features, marked, extension, walk, hits, n_met, n_waiting)
            if n_waiting < 0:
                forget(hits, n_met)
                return -1
    return n_met


@in_place
def follow(features, marked, extension, walk, hits, n_met, n_waiting):
    """Meet all features that a fragment has with one more arc."""
    node, depth, mask, arc = extension
    if mask == 0 or n_waiting < 0:
        return n_met, n_waiting
    if n_waiting + features.first[arc + 1] - features.first[arc] >= walk.nodes.size:
        return n_met, -1
    hints = marked.hints[node]
    for at in range(features.first[arc], features.first[arc + 1]):
        code = features.ids[at] * N_DEPTHS + depth
        if hints & hint(code):
            slot, _ = find_child(marked.trie, node, code)
            if marked.trie.keys[slot] != EMPTY:
                fragment = (marked.trie.nodes[slot], depth, mask, arc)
                n_met, n_waiting = meet(marked.trie, fragment, walk, hits, n_met, n_waiting)
    return n_met, n_waiting


@in_place
def meet(trie, fragment, walk, hits, n_met, n_waiting):
    """Note the feature of a fragment, and let the fragment wait if some features go on from there.

    The rightmost path of the fragment that it was made of is the last of `walk.paths`.
    """
    node, depth, mask, arc = fragment
    feature = trie.ends[node]
    if feature >= 0:
        if hits.present[feature] == 0:
            hits.met[n_met] = feature
            n_met += 1
        hits.present[feature] |= mask
    if trie.is_inner[node]:
        walk.nodes[n_waiting], walk.depths[n_waiting], walk.masks[n_waiting] = node, depth, mask
        for level in range(depth):
            walk.paths[n_waiting, level] = walk.paths[-1, level]
        walk.paths[n_waiting, depth] = arc
        n_waiting += 1
    return n_met, n_waiting


@in_place
def spread_hits(n_trees, first_row, numbers, masks, ends, first, columns):
    """Write the features of each candidate; without room for columns, count them in `first[row + 1]`."""
    begin = 0
    for number in range(n_trees.size):
        for at in range(begin, ends[number]):
            mask = masks[at]
            for tree in range(n_trees[number]):
                if (mask >> np.uint64(tree)) & np.uint64(1):
                    row = first_row[number] + tree
                    if columns.size > 0:
                        columns[first[row]] = numbers[at]
                        first[row] += 1
                    else:
                        first[row + 1] += 1
        begin = ends[number]
