"""The subset-tree kernel (Moschitti 2006, sections 2 and 3) of a tree with a forest, and of pairs of trees.

Two subtrees with the same production share that production, which weighs `decay`, and more if some of their
children also have the same production. With a forest, productions are counted first; then only pairs of
subtrees that have children with the same production are visited.
"""

import math
from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place, inlined
from treewright.native.kernels.bags import mark
from treewright.native.kernels.semirings import one_plus, plus, times, zero


class SubsetRows(NamedTuple):
    """Trees as bags of distinct subtrees, in the numbering of the forest that they are compared with.

    `kinds` are the productions of subtrees, -1 for leaves and for productions that the forest lacks; `edges`,
    aligned with `values`, are the numbers of the edges from parents to children (see `number_edges`).
    """

    indptr: np.ndarray
    values: np.ndarray
    kinds: np.ndarray
    edges: np.ndarray
    bag_indptr: np.ndarray
    bag_ids: np.ndarray
    bag_counts: np.ndarray


class Listing(NamedTuple):
    """The distinct subtrees of a forest, without leaves, sorted by chunk, symbol, production and last tree.

    A place is a position in this list. The trees of chunk c start at `chunks[c]`; its production p has the
    places from `begin[c, p]` to `end[c, p]`, in descending order of their last trees. The slots of a place,
    one per child, start at `indptr[place]`. Its postings (trees in ascending order, and counts) start at
    `first_posting[place]`.
    """

    chunks: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    last: np.ndarray
    indptr: np.ndarray
    child_kinds: np.ndarray
    child_places: np.ndarray
    first_posting: np.ndarray
    trees: np.ndarray
    counts: np.ndarray


class Followers(NamedTuple):
    """The places with edge e in chunk c start at `indptr[c, e]`, in descending order of their last trees."""

    indptr: np.ndarray
    places: np.ndarray


class SubsetScratch(NamedTuple):
    """Scratch space for one row.

    `values` are zero before and after each call; `offsets` are the positions of the values of subtrees.
    `touched` lists the values that were changed; it need not have space for all of them.
    """

    values: np.ndarray
    offsets: np.ndarray
    touched: np.ndarray


class MatchedSubtrees(NamedTuple):
    """The subtrees of one tree that have the same kind as a subtree of another tree, by subtree number.

    A subtree of the first tree is matched if its entry in `ticks` is the latest tick. The subtrees of the
    other tree with the same kind then start at its `begin`, and the value of two subtrees is at the first
    one's `offsets` plus the second one's `where`. `marks` has two numbers per kind, which are zero at first.
    """

    ticks: np.ndarray
    offsets: np.ndarray
    begin: np.ndarray
    where: np.ndarray
    marks: np.ndarray
    last_tick: np.ndarray


@inlined
def spread(listing, place, amount, lowest, line):
    """Add an amount to each tree from `lowest` on that contains a subtree, once for each occurrence."""
    posting = listing.first_posting[place + 1] - 1
    begin = listing.first_posting[place]
    while posting >= begin and listing.trees[posting] >= lowest:
        line[listing.trees[posting]] += amount * listing.counts[posting]
        posting -= 1


@inlined
def clear(values, n_values, touched, n_touched, nothing):
    """Reset values to zero: those listed as touched or, if the list was too short, all."""
    if n_touched > touched.size:
        for at in range(n_values):
            values[at] = nothing
    else:
        for at in range(n_touched):
            values[touched[at]] = nothing


@inlined
def _multiply(rows, subtree, slot, listing, place, decay, scratch):
    """Return the product over children, or 0 if children before `slot` already have the same production."""
    product = 1.0
    other_slot = listing.indptr[place]
    for mine in range(rows.indptr[subtree] + 1, rows.indptr[subtree + 1]):
        child = rows.values[mine]
        kind = rows.kinds[child]
        if kind >= 0 and kind == listing.child_kinds[other_slot]:
            if mine < slot:
                return 0.0
            at = scratch.offsets[child] + listing.child_places[other_slot]
            product *= 1 + decay + scratch.values[at]
        other_slot += 1
    return product


@in_place
def add_subset_trees(rows, numbers, listing, followers, decay, is_half, scratch, out):
    """Add to each row of `out` the weight of shared subset trees with more than one production.

    `numbers` has the tree of each row. With `is_half`, a row is filled only from its own tree's column on.
    """
    for number in range(numbers.size):
        row, line = numbers[number], out[number]
        lowest = row if is_half else 0
        for chunk in range(listing.chunks.size - 1):
            if listing.chunks[chunk + 1] <= lowest:
                continue
            used, n_touched = 0, 0
            for place in range(rows.bag_indptr[row], rows.bag_indptr[row + 1]):
                subtree = rows.bag_ids[place]
                kind = rows.kinds[subtree]
                if kind < 0:
                    continue
                own = used - listing.begin[chunk, kind]
                scratch.offsets[subtree] = own
                used += listing.end[chunk, kind] - listing.begin[chunk, kind]
                for slot in range(rows.indptr[subtree] + 1, rows.indptr[subtree + 1]):
                    edge = rows.edges[slot]
                    if edge < 0:
                        continue
                    for at in range(followers.indptr[chunk, edge], followers.indptr[chunk, edge + 1]):
                        other = followers.places[at]
                        if listing.last[other] < lowest:
                            break
                        product = _multiply(rows, subtree, slot, listing, other, decay, scratch)
                        if product == 0:
                            continue
                        excess = decay * (product - 1)
                        scratch.values[own + other] = excess
                        if n_touched < scratch.touched.size:
                            scratch.touched[n_touched] = own + other
                        n_touched += 1
                        spread(listing, other, excess * rows.bag_counts[place], lowest, line)
            clear(scratch.values, used, scratch.touched, n_touched, 0.0)


@inlined
def _match(trees, one, other, matched, tick):
    """Find the subtrees of the same kind in two trees; return the number of values needed."""
    mark(trees, other, matched.marks, tick)
    used, n_alike, begin, end = 0, 0, 0, trees.indptr[other + 1]
    latest = -1
    for mine in range(trees.indptr[one], trees.indptr[one + 1]):
        kind = trees.kinds[mine]
        if kind != latest:
            latest, n_alike = kind, 0
            if matched.marks[kind, 0] == tick:
                begin = matched.marks[kind, 1]
                at = begin
                while at < end and trees.kinds[at] == kind:
                    matched.where[trees.ids[at]] = at
                    at += 1
                n_alike = at - begin
        if n_alike > 0:
            subtree = trees.ids[mine]
            matched.ticks[subtree] = tick
            matched.offsets[subtree] = used - begin
            matched.begin[subtree] = begin
            used += n_alike
    return used


@inlined
def _evaluate(rows, one, other, values, matched, unit, is_log, tick):
    """Return the value of two subtrees with the same production."""
    other_slot = rows.indptr[other]
    value = unit
    for slot in range(rows.indptr[one] + 1, rows.indptr[one + 1]):
        other_slot += 1
        edge = rows.edges[slot]
        if edge >= 0 and edge == rows.edges[other_slot]:
            child, below = rows.values[slot], unit
            if matched.ticks[child] == tick:
                below = values[matched.offsets[child] + matched.where[rows.values[other_slot]]]
            value = times(value, one_plus(below, is_log), is_log)
    return value


@in_place
def evaluate_subset_trees(rows, trees, pairs, decay, is_log, values, matched, out):
    """Evaluate the kernel of pairs of trees of one forest; with `is_log`, `out` has logarithms.

    `rows` and `trees` have all subtrees except those whose production has no edges to children; these always
    weigh `decay` and are not counted here. Stops before a pair that needs more `values` than there are.
    Returns the number of pairs done, and the number of values that the next one needs.
    """
    unit = math.log(decay) if is_log else decay
    for pair in range(len(pairs)):
        one, other = pairs[pair, 0], pairs[pair, 1]
        matched.last_tick[0] += 1
        tick = matched.last_tick[0]
        n_values = _match(trees, one, other, matched, tick)
        if n_values > values.size:
            return pair, n_values
        total = zero(is_log)
        if n_values > 0:
            for place in range(rows.bag_indptr[one], rows.bag_indptr[one + 1]):
                subtree = rows.bag_ids[place]
                if matched.ticks[subtree] != tick:
                    continue
                offset, at = matched.offsets[subtree], matched.begin[subtree]
                kind = trees.kinds[at]
                while at < trees.indptr[other + 1] and trees.kinds[at] == kind:
                    value = _evaluate(rows, subtree, trees.ids[at], values, matched, unit, is_log, tick)
                    values[offset + at] = value
                    count = rows.bag_counts[place] * trees.counts[at]
                    total = plus(total, times(value, math.log(count) if is_log else count, is_log), is_log)
                    at += 1
        out[pair] = total
    return len(pairs), 0
