"""Forests in which equal subtrees are shared, as used by tree kernels."""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.hashing import mix

SEED = np.uint64(0x243F6A8885A308D3)


class PostorderNodes(NamedTuple):
    """Trees in post-order: tree i has the nodes from `indptr[i]`; sizes count all nodes of a subtree."""

    symbols: np.ndarray
    sizes: np.ndarray
    indptr: np.ndarray


class Sequences(NamedTuple):
    """Sequence i is `values[indptr[i]:indptr[i + 1]]`; `table` finds it by its content.

    The subtree of a node is the sequence of its symbol and the numbers of its children's subtrees; its
    production is the sequence of its symbol and its children's symbols.
    """

    indptr: np.ndarray
    values: np.ndarray
    table: np.ndarray


class Bags(NamedTuple):
    """Items of trees: the `ids` and `counts` of tree i start at `indptr[i]`."""

    indptr: np.ndarray
    ids: np.ndarray
    counts: np.ndarray


@in_place
def _find(sequences, values, begin, end):
    """Return the slot of the sequence `values[begin:end]` in the table, or the empty slot for it."""
    key = SEED
    for place in range(begin, end):
        key = mix(key, values[place])
    mask = sequences.table.size - 1
    slot = np.int64(key >> np.uint64(32)) & mask
    while sequences.table[slot] >= 0:
        number = sequences.table[slot]
        at = sequences.indptr[number]
        if sequences.indptr[number + 1] - at == end - begin:
            place = begin
            while place < end and sequences.values[at] == values[place]:
                place += 1
                at += 1
            if place == end:
                return slot
        slot = (slot + 1) & mask
    return slot


@in_place
def _keep(sequences, n, end):
    """Number the sequence that follows the first `n` and ends at `end`; return its number and the new `n`."""
    slot = _find(sequences, sequences.values, sequences.indptr[n], end)
    number = sequences.table[slot]
    if number >= 0:
        return number, n
    sequences.table[slot] = n
    sequences.indptr[n + 1] = end
    return n, n + 1


@compiled
def intern_subtrees(nodes, n_together, subtrees, bags, own, seen, places):
    """Number the distinct subtrees of trees, children before parents, and count the subtrees of each tree.

    Equal subtrees share a number if their trees are in the same group of `n_together` trees. Returns the
    number of subtrees and the size of the bags. `own` has space for the nodes of a tree; `seen`, which starts
    as -1, gets the last tree of each subtree, and `places` its position in the bags.
    """
    n, n_bag = 0, 0
    subtrees.indptr[0] = 0
    for tree in range(nodes.indptr.size - 1):
        if tree % n_together == 0:
            subtrees.table[:] = -1
        start = nodes.indptr[tree]
        bags.indptr[tree] = n_bag
        for node in range(start, nodes.indptr[tree + 1]):
            end = subtrees.indptr[n]
            subtrees.values[end] = nodes.symbols[node]
            end += 1
            left = node - nodes.sizes[node] + 1
            child = node - 1
            while child >= left:
                child -= nodes.sizes[child]
                end += 1
            child, place = node - 1, end - 1
            while child >= left:
                subtrees.values[place] = own[child - start]
                child -= nodes.sizes[child]
                place -= 1
            number, n = _keep(subtrees, n, end)
            own[node - start] = number
            if seen[number] != tree:
                seen[number] = tree
                places[number] = n_bag
                bags.ids[n_bag] = number
                bags.counts[n_bag] = 0
                n_bag += 1
            bags.counts[places[number]] += 1
    bags.indptr[nodes.indptr.size - 1] = n_bag
    return n, n_bag


@compiled
def number_productions(subtrees, productions, numbers):
    """Fill the number of each subtree's production, -1 for leaves; return the number of productions."""
    n = 0
    productions.indptr[0] = 0
    for subtree in range(numbers.size):
        begin, finish = subtrees.indptr[subtree], subtrees.indptr[subtree + 1]
        numbers[subtree] = -1
        if finish - begin == 1:
            continue
        end = productions.indptr[n]
        productions.values[end] = subtrees.values[begin]
        for place in range(begin + 1, finish):
            end += 1
            productions.values[end] = subtrees.values[subtrees.indptr[subtrees.values[place]]]
        numbers[subtree], n = _keep(productions, n, end + 1)
    return n


@compiled
def number_edges(subtrees, numbers, edges, slots):
    """Number edges by the productions of parent and child and the child's position; -1 for leaves.

    `slots` is aligned with the values of the subtrees; `numbers` are the productions of the subtrees.
    """
    n = 0
    edges.indptr[0] = 0
    for subtree in range(numbers.size):
        begin = subtrees.indptr[subtree]
        for place in range(begin, subtrees.indptr[subtree + 1]):
            slots[place] = -1
            if place == begin or numbers[subtrees.values[place]] < 0:
                continue
            end = edges.indptr[n]
            edges.values[end] = numbers[subtree]
            edges.values[end + 1] = place - begin
            edges.values[end + 2] = numbers[subtrees.values[place]]
            slots[place], n = _keep(edges, n, end + 3)
    return n


@compiled
def count_kinds(bags, kinds, found, seen, places):
    """Count the kinds (productions or symbols) of the subtrees of each tree; negative kinds are skipped."""
    n = 0
    for tree in range(bags.indptr.size - 1):
        found.indptr[tree] = n
        for place in range(bags.indptr[tree], bags.indptr[tree + 1]):
            kind = kinds[bags.ids[place]]
            if kind < 0:
                continue
            if seen[kind] != tree:
                seen[kind] = tree
                places[kind] = n
                found.ids[n] = kind
                found.counts[n] = 0
                n += 1
            found.counts[places[kind]] += bags.counts[place]
    found.indptr[bags.indptr.size - 1] = n
    return n


@compiled
def find_sequences(sequences, others, tables, scratch, found):
    """Find the numbers of other sequences among `sequences`; -1 for none.

    The values of the other sequences are mapped to values of `sequences` by `tables`, one per position; the
    last table also serves all further positions.
    """
    for number in range(found.size):
        begin, finish = others.indptr[number], others.indptr[number + 1]
        is_known = True
        for place in range(begin, finish):
            value = tables[min(place - begin, len(tables) - 1)][others.values[place]]
            is_known = is_known and value >= 0
            scratch[place - begin] = value
        found[number] = sequences.table[_find(sequences, scratch, 0, finish - begin)] if is_known else -1


@compiled
def count_inner(subtrees, counts):
    """Count the inner nodes of each subtree."""
    for subtree in range(counts.size):
        begin, end = subtrees.indptr[subtree], subtrees.indptr[subtree + 1]
        counts[subtree] = int(end - begin > 1)
        for place in range(begin + 1, end):
            counts[subtree] += counts[subtrees.values[place]]
