"""Lists of trees over the same words, stored as graphs; each arc has a mask of the trees that contain it."""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place


class Lists(NamedTuple):
    """Heads of trees: list i has `n_trees[i]` trees of `n_words[i]` heads each, from `offsets[i]`."""

    n_trees: np.ndarray
    n_words: np.ndarray
    offsets: np.ndarray
    heads: np.ndarray


class ArcForest(NamedTuple):
    """The arcs of lists of trees: list i has those from `indptr[i]` to `indptr[i + 1]`.

    Arcs are sorted by head and modifier. `owners` is the list of each arc. The arcs below an arc are those
    from `first_child` to `end_child`; its right neighbours, in the trees of `next_masks`, are `next_arcs`
    from `first_next[arc]`.
    """

    indptr: np.ndarray
    owners: np.ndarray
    heads: np.ndarray
    modifiers: np.ndarray
    masks: np.ndarray
    first_child: np.ndarray
    end_child: np.ndarray
    first_next: np.ndarray
    next_arcs: np.ndarray
    next_masks: np.ndarray


class Features(NamedTuple):
    """The features of arc i are `ids[indptr[i]:indptr[i + 1]]`."""

    indptr: np.ndarray
    ids: np.ndarray


class Grids(NamedTuple):
    """Scratch space for one list: matrices of masks and arcs by head and modifier, and chains of neighbours.

    Neighbours are first stored in chains: `heads` is the start of the chain of each arc, `links` its next
    entries.
    """

    masks: np.ndarray
    arcs: np.ndarray
    last: np.ndarray
    heads: np.ndarray
    links: np.ndarray
    targets: np.ndarray
    target_masks: np.ndarray


@in_place
def build_forest(lists, with_root, grids, forest):
    """Fill a forest that has space for an arc and a pair per head; return the numbers of arcs and pairs."""
    n_arcs, n_next = 0, 0
    forest.indptr[0], forest.first_next[0] = 0, 0
    for number in range(lists.n_trees.size):
        fill_grid(lists, number, with_root, grids)
        n_arcs = add_arcs(lists.n_words[number], number, n_arcs, grids, forest)
        forest.indptr[number + 1] = n_arcs
        n_next = add_neighbours(lists, number, with_root, n_next, grids, forest)
    return n_arcs, n_next


@in_place
def fill_grid(lists, number, with_root, grids):
    """Fill the matrix of masks of a list."""
    n = lists.n_words[number]
    for head in range(n + 1):
        for modifier in range(n + 1):
            grids.masks[head, modifier] = 0
    for tree in range(lists.n_trees[number]):
        start = lists.offsets[number] + tree * n
        for modifier in range(1, n + 1):
            head = lists.heads[start + modifier - 1]
            if head > 0 or with_root:
                grids.masks[head, modifier] |= np.uint64(1) << np.uint64(tree)


@in_place
def add_arcs(n, number, n_arcs, grids, forest):
    """Write the arcs of a list, sorted, and the ranges of the arcs below each; return their number."""
    begin = n_arcs
    for head in range(n + 1):
        grids.last[head] = n_arcs
        for modifier in range(1, n + 1):
            if grids.masks[head, modifier]:
                grids.arcs[head, modifier] = n_arcs
                forest.owners[n_arcs] = number
                forest.heads[n_arcs], forest.modifiers[n_arcs] = head, modifier
                forest.masks[n_arcs] = grids.masks[head, modifier]
                n_arcs += 1
    grids.last[n + 1] = n_arcs
    for arc in range(begin, n_arcs):
        modifier = forest.modifiers[arc]
        forest.first_child[arc], forest.end_child[arc] = grids.last[modifier], grids.last[modifier + 1]
    return n_arcs


@in_place
def add_neighbours(lists, number, with_root, n_next, grids, forest):
    """Write the pairs of adjacent siblings of a list, by their left arc; return their number."""
    n, begin, end = lists.n_words[number], forest.indptr[number], forest.indptr[number + 1]
    for arc in range(end - begin):
        grids.heads[arc] = -1
    n_pairs = 0
    for tree in range(lists.n_trees[number]):
        bit = np.uint64(1) << np.uint64(tree)
        for head in range(n + 1):
            grids.last[head] = -1
        for modifier in range(1, n + 1):
            head = lists.heads[lists.offsets[number] + tree * n + modifier - 1]
            if head == 0 and not with_root:
                continue
            arc = grids.arcs[head, modifier]
            if grids.last[head] >= 0:
                n_pairs = add_pair(grids, grids.last[head] - begin, arc, bit, n_pairs)
            grids.last[head] = arc
    for arc in range(begin, end):
        pair = grids.heads[arc - begin]
        while pair >= 0:
            forest.next_arcs[n_next], forest.next_masks[n_next] = (
                grids.targets[pair],
                grids.target_masks[pair],
            )
            n_next += 1
            pair = grids.links[pair]
        forest.first_next[arc + 1] = n_next
    return n_next


@in_place
def add_pair(grids, left, right, bit, n_pairs):
    """Add a tree to a pair of neighbours, which may be new; return the number of pairs."""
    pair = grids.heads[left]
    while pair >= 0:
        if grids.targets[pair] == right:
            grids.target_masks[pair] |= bit
            return n_pairs
        pair = grids.links[pair]
    grids.targets[n_pairs], grids.target_masks[n_pairs] = right, bit
    grids.links[n_pairs], grids.heads[left] = grids.heads[left], n_pairs
    return n_pairs + 1


@in_place
def pair_mask(mask, right, wrong):
    """Return which of two trees are in a mask."""
    one = np.uint64(1)
    in_right = (mask >> np.uint64(right)) & one
    in_wrong = (mask >> np.uint64(wrong)) & one
    return np.int8(in_right | (in_wrong << one))


@in_place
def select_pairs(forest, samples, rights, wrongs, numbers, pairs, origins):
    """Write the arcs of two trees of each sample as a forest; return the numbers of arcs and pairs.

    `numbers` is scratch space for the new number of each old arc; `origins` gets the old number of each new
    arc.
    """
    n_arcs, n_next = 0, 0
    pairs.indptr[0], pairs.first_next[0] = 0, 0
    for sample in range(samples.size):
        begin, end = forest.indptr[samples[sample]], forest.indptr[samples[sample] + 1]
        right, wrong = rights[sample], wrongs[sample]
        for arc in range(begin, end):
            numbers[arc] = n_arcs
            mask = pair_mask(forest.masks[arc], right, wrong)
            if mask:
                pairs.owners[n_arcs], pairs.masks[n_arcs], origins[n_arcs] = sample, mask, arc
                pairs.heads[n_arcs], pairs.modifiers[n_arcs] = forest.heads[arc], forest.modifiers[arc]
                n_arcs += 1
        numbers[end] = n_arcs
        for new in range(pairs.indptr[sample], n_arcs):
            arc = origins[new]
            pairs.first_child[new] = numbers[forest.first_child[arc]]
            pairs.end_child[new] = numbers[forest.end_child[arc]]
            for place in range(forest.first_next[arc], forest.first_next[arc + 1]):
                mask = pair_mask(forest.next_masks[place], right, wrong)
                if mask:
                    pairs.next_arcs[n_next] = numbers[forest.next_arcs[place]]
                    pairs.next_masks[n_next] = mask
                    n_next += 1
            pairs.first_next[new + 1] = n_next
        pairs.indptr[sample + 1] = n_arcs
    return n_arcs, n_next
