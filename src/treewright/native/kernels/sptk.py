"""The partial-tree kernel of pairs of trees, plain or smoothed by similar symbols (Croce et al. 2011).

The value of two nodes is that of the plain kernel times the similarity of their symbols, which is 1 for equal
symbols. Symbols are divided into classes; symbols of different classes have the similarity 0. Two subtrees
have more in common than their root symbols only if they share a pair of classes of a parent and its child.
"""

import math
from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place, inlined
from treewright.native.kernels.bags import Sorted, mark
from treewright.native.kernels.ptk import (
    MOST_MATCHES,
    ChildMatches,
    add_grid_row,
    clear_grid,
    sum_matches,
    weigh_gaps,
)
from treewright.native.kernels.semirings import plus, times, zero
from treewright.native.kernels.sst import clear


class Similarity(NamedTuple):
    """The row of each symbol in the table of similarities, or -1, and the table."""

    rows: np.ndarray
    table: np.ndarray


class SmoothedTrees(NamedTuple):
    """Trees, as bags of distinct subtrees.

    The children of subtree i start at `children[indptr[i] + 1]`: their numbers, the classes of their symbols,
    and their heights. A leaf has the height 0. A tag, which is above one leaf, has the height 1 if its pair
    of classes (its own and the leaf's) occurs only in tags. All other subtrees have the height 2, and only
    these are in the bags. The pairs of classes of bag entry i (its own class with the class of each child)
    are the `slots` from `first_slot[i]` on; `pairs` has the same pairs sorted, with their entries. `tags` has
    the tags sorted by their pairs of classes.
    """

    indptr: np.ndarray
    children: np.ndarray
    symbols: np.ndarray
    bag_indptr: np.ndarray
    bag_ids: np.ndarray
    bag_counts: np.ndarray
    first_slot: np.ndarray
    slots: np.ndarray
    pairs: Sorted
    tags: Sorted
    all_symbols: Sorted


class PairScratch(NamedTuple):
    """Scratch space for one pair of trees.

    `values` are the values of pairs of entries, without the values of the roots alone. They are zero before
    and after each call; `touched` lists the values that were changed, as far as it has space. `places` are
    the positions of subtrees among the entries of both trees. `stamps` tell which pairs have been visited.
    The three arrays of marks have two numbers per kind, which are zero at first. They hold the positions of
    symbol classes, of the pairs of classes of tags, and of other pairs of classes in the second tree.
    """

    values: np.ndarray
    touched: np.ndarray
    places: np.ndarray
    stamps: np.ndarray
    symbol_marks: np.ndarray
    tag_marks: np.ndarray
    pair_marks: np.ndarray
    matches: ChildMatches
    grid: np.ndarray


@inlined
def _similarity(similarity, symbol, other, is_log):
    """Return the similarity of two symbols of one class."""
    if symbol == other:
        return 0.0 if is_log else 1.0
    return similarity.table[similarity.rows[symbol], similarity.rows[other]]


@inlined
def _weigh(weight, count, other_count, is_log):
    """Multiply a weight by two counts."""
    count *= other_count
    return times(weight, math.log(count) if is_log else count, is_log)


@inlined
def _compare_symbols(symbols, one, other, similarity, decays, marks, tick):
    """Return the value of two trees as if all nodes were leaves."""
    is_log = decays.is_log
    mark(symbols, other, marks, tick)
    total = zero(is_log)
    for mine in range(symbols.indptr[one], symbols.indptr[one + 1]):
        kind = symbols.kinds[mine]
        if marks[kind, 0] != tick:
            continue
        his = marks[kind, 1]
        while his < symbols.indptr[other + 1] and symbols.kinds[his] == kind:
            value = _similarity(similarity, symbols.ids[mine], symbols.ids[his], is_log)
            value = _weigh(value, symbols.counts[mine], symbols.counts[his], is_log)
            total = plus(total, value, is_log)
            his += 1
    return times(total, decays.leaf, is_log)


@inlined
def _compare_two_tags(trees, one, other, similarity, decays):
    """Return the value of two tags with the same pair of classes, without the value of the tags alone."""
    is_log = decays.is_log
    mine, his = trees.children[trees.indptr[one] + 1, 0], trees.children[trees.indptr[other] + 1, 0]
    alike = _similarity(similarity, trees.symbols[one], trees.symbols[other], is_log)
    below = _similarity(similarity, trees.symbols[mine], trees.symbols[his], is_log)
    return times(times(alike, below, is_log), times(decays.depth, decays.leaf, is_log), is_log)


@inlined
def _compare_tags(trees, one, other, similarity, decays, marks, tick):
    """Return the value of the tags of two trees, without the value of the tags alone."""
    tags, is_log = trees.tags, decays.is_log
    mark(tags, other, marks, tick)
    total = zero(is_log)
    for mine in range(tags.indptr[one], tags.indptr[one + 1]):
        kind = tags.kinds[mine]
        if marks[kind, 0] != tick:
            continue
        his = marks[kind, 1]
        while his < tags.indptr[other + 1] and tags.kinds[his] == kind:
            value = _compare_two_tags(trees, tags.ids[mine], tags.ids[his], similarity, decays)
            value = _weigh(value, tags.counts[mine], tags.counts[his], is_log)
            total = plus(total, value, is_log)
            his += 1
    return total


@inlined
def _number_entries(trees, tree, places, side):
    """Store the position of each subtree among the entries of a tree."""
    for entry in range(trees.bag_indptr[tree], trees.bag_indptr[tree + 1]):
        places[trees.bag_ids[entry], side] = entry - trees.bag_indptr[tree]


@inlined
def _compare_children(trees, mine, his, similarity, decays, width, scratch):
    """Return the value of two children whose symbols have the same class, given their slots."""
    one, other, is_log = trees.children[mine, 0], trees.children[his, 0], decays.is_log
    alike = _similarity(similarity, trees.symbols[one], trees.symbols[other], is_log)
    value = times(decays.leaf, alike, is_log)
    height, his_height = trees.children[mine, 2], trees.children[his, 2]
    if height == 2 and his_height == 2:
        below = scratch.values[scratch.places[one, 0] * width + scratch.places[other, 1]]
        value = plus(value, below, is_log)
    elif height == 1 and his_height == 1:
        word, his_word = trees.indptr[one] + 1, trees.indptr[other] + 1
        if trees.children[word, 1] == trees.children[his_word, 1]:
            value = plus(value, _compare_two_tags(trees, one, other, similarity, decays), is_log)
    return value


@inlined
def _sum_pairs(trees, one, other, similarity, decays, width, scratch):
    """Return the sum over pairs of subsequences of two subtrees' children, and whether there was space."""
    matches = scratch.matches
    his_first, his_end = trees.indptr[other] + 1, trees.indptr[other + 1]
    n = 0
    for mine in range(trees.indptr[one] + 1, trees.indptr[one + 1]):
        mine_class = trees.children[mine, 1]
        for his in range(his_first, his_end):
            if trees.children[his, 1] == mine_class:
                if n < MOST_MATCHES:
                    matches.mine[n] = mine
                    matches.others[n] = his
                    matches.deltas[n] = _compare_children(
                        trees, mine, his, similarity, decays, width, scratch
                    )
                n += 1
    if n == 1:
        return matches.deltas[0], True
    if n > MOST_MATCHES:
        return 0.0, False
    weigh_gaps(matches, n, decays.powers)
    return sum_matches(matches, n), True


@in_place
def _sum_grid(trees, one, other, similarity, decays, width, scratch):
    """Sum over all pairs of subsequences of the children of two subtrees, row by row."""
    is_log, grid = decays.is_log, scratch.grid
    his_first = trees.indptr[other] + 1
    n_others = trees.indptr[other + 1] - his_first
    clear_grid(grid, n_others, is_log)
    total = zero(is_log)
    for mine in range(trees.indptr[one] + 1, trees.indptr[one + 1]):
        for column in range(n_others):
            his, value = his_first + column, zero(is_log)
            if trees.children[mine, 1] == trees.children[his, 1]:
                value = _compare_children(trees, mine, his, similarity, decays, width, scratch)
            grid[len(grid) - 1, column + 1] = value
        total = plus(total, add_grid_row(grid, n_others, decays), is_log)
    return total


@inlined
def _sum_below(trees, one, other, similarity, decays, width, scratch):
    """Return the value of two subtrees, without the value of their roots alone."""
    is_log = decays.is_log
    below, is_done = 0.0, False
    if not is_log and decays.longest == 0:
        below, is_done = _sum_pairs(trees, one, other, similarity, decays, width, scratch)
    if not is_done:
        below = _sum_grid(trees, one, other, similarity, decays, width, scratch)
    alike = _similarity(similarity, trees.symbols[one], trees.symbols[other], is_log)
    return times(times(decays.depth, below, is_log), alike, is_log)


@in_place
def evaluate_partial_trees(trees, pairs, similarity, decays, scratch, out):
    """Evaluate the kernel of pairs of trees of one forest; values are logarithms if the decays are."""
    is_log = decays.is_log
    n_visits, latest = 0, -1
    for pair in range(len(pairs)):
        one, other, tick = pairs[pair, 0], pairs[pair, 1], pair + 1
        symbols = trees.all_symbols
        total = _compare_symbols(symbols, one, other, similarity, decays, scratch.symbol_marks, tick)
        alike = _compare_tags(trees, one, other, similarity, decays, scratch.tag_marks, tick)
        total = plus(total, alike, is_log)
        mark(trees.pairs, other, scratch.pair_marks, tick)
        if one != latest:
            _number_entries(trees, one, scratch.places, 0)
            latest = one
        _number_entries(trees, other, scratch.places, 1)
        base, his_base = trees.bag_indptr[one], trees.bag_indptr[other]
        width, n_touched = trees.bag_indptr[other + 1] - his_base, 0
        for entry in range(base, trees.bag_indptr[one + 1]):
            n_visits += 1
            subtree = trees.bag_ids[entry]
            row = (entry - base) * width - his_base
            for slot in range(trees.first_slot[entry], trees.first_slot[entry + 1]):
                kind = trees.slots[slot]
                if scratch.pair_marks[kind, 0] != tick:
                    continue
                at = scratch.pair_marks[kind, 1]
                while at < trees.pairs.indptr[other + 1] and trees.pairs.kinds[at] == kind:
                    his = trees.pairs.ids[at]
                    at += 1
                    if scratch.stamps[his] == n_visits:
                        continue
                    scratch.stamps[his] = n_visits
                    value = _sum_below(trees, subtree, trees.bag_ids[his], similarity, decays, width, scratch)
                    scratch.values[row + his] = value
                    if n_touched < scratch.touched.size:
                        scratch.touched[n_touched] = row + his
                    n_touched += 1
                    value = _weigh(value, trees.bag_counts[entry], trees.bag_counts[his], is_log)
                    total = plus(total, value, is_log)
        out[pair] = total
        n_values = (trees.bag_indptr[one + 1] - base) * width
        clear(scratch.values, n_values, scratch.touched, n_touched, zero(is_log))
