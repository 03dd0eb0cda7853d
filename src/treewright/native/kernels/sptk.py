"""Partial trees of pairs of trees, with symbols that are equal or, smoothed, similar (Croce et al. 2011).

Two nodes have in common what partial trees have, times the similarity of their symbols, which is 1 for equal
ones. Symbols are in classes; those of different classes have nothing in common. Only subtrees that share the
classes of a parent and a child have more in common than their symbols.
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

    Subtree i has the `children` from `indptr[i]` + 1: the number of each, the class of its symbol, and its
    height: 0 for leaves, 1 for tags, which are over one leaf and have no pair of classes, their own and the
    leaf's, in common with any but tags, and 2 for others. The bags have those others. Entry i has the pairs
    of classes, its own and a child's, `slots` from `first_slot[i]`; `pairs` are the same, in order, with
    their entries. `tags` are the tags by their pairs of classes.
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
    """Room for one pair of trees.

    `values` are those of one's entries and the other's, above what their symbols have in common: nothing, at
    first and at last, and `touched` those that are more, as far as there is room. `places` are those of
    subtrees among the entries of one and of the other; `stamps` tell which have met, and `marks`, two zeros a
    kind at first, where the other has a symbol's class, and the pairs of classes of tags and of others.
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
    """Return how similar two symbols of one class are."""
    if symbol == other:
        return 0.0 if is_log else 1.0
    return similarity.table[similarity.rows[symbol], similarity.rows[other]]


@inlined
def _weigh(weight, count, other_count, is_log):
    """Multiply by two counts."""
    count *= other_count
    return times(weight, math.log(count) if is_log else count, is_log)


@inlined
def _compare_symbols(symbols, one, other, similarity, decays, marks, tick):
    """Return what the nodes of two trees have in common as if all were leaves."""
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
    """Return what two tags of the same pair of classes have in common below themselves."""
    is_log = decays.is_log
    mine, his = trees.children[trees.indptr[one] + 1, 0], trees.children[trees.indptr[other] + 1, 0]
    alike = _similarity(similarity, trees.symbols[one], trees.symbols[other], is_log)
    below = _similarity(similarity, trees.symbols[mine], trees.symbols[his], is_log)
    return times(times(alike, below, is_log), times(decays.depth, decays.leaf, is_log), is_log)


@inlined
def _compare_tags(trees, one, other, similarity, decays, marks, tick):
    """Return what the tags of two trees have in common below themselves."""
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
    """Note the place of each subtree among the entries of a tree."""
    for entry in range(trees.bag_indptr[tree], trees.bag_indptr[tree + 1]):
        places[trees.bag_ids[entry], side] = entry - trees.bag_indptr[tree]


@inlined
def _compare_children(trees, mine, his, similarity, decays, width, scratch):
    """Return what two children of the same class, in these slots, have in common."""
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
    """Sum over all pairs of subsequences of the children of two subtrees, or tell that there are too many."""
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
    """Return what two subtrees have in common below themselves."""
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
    """Evaluate pairs of trees of one forest, or, if the decays are logarithms, theirs."""
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
