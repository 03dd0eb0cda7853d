"""Weighted counts of the items that two trees share."""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place, inlined


class Postings(NamedTuple):
    """The trees that contain item i start at `indptr[i]`, in ascending order, with their counts."""

    indptr: np.ndarray
    trees: np.ndarray
    counts: np.ndarray


@compiled
def add_bags(bags, known, weights, postings, numbers, is_half, out):
    """Add to each row of `out` the weighted products of the counts of shared items.

    `numbers` has the tree of each row; `known` maps the items of bags to items of the postings, or to -1.
    With `is_half`, a row is filled only from its own tree's column on.
    """
    for line in range(numbers.size):
        row = numbers[line]
        lowest = row if is_half else 0
        for place in range(bags.indptr[row], bags.indptr[row + 1]):
            number = known[bags.ids[place]]
            if number < 0:
                continue
            weight = bags.counts[place] * weights[number]
            at, begin = postings.indptr[number + 1] - 1, postings.indptr[number]
            while at >= begin and postings.trees[at] >= lowest:
                out[line, postings.trees[at]] += weight * postings.counts[at]
                at -= 1


@compiled
def mirror(out):
    """Fill the lower triangle of a square matrix from the upper one."""
    n = len(out)
    for begin in range(0, n, 64):
        for row in range(begin, n):
            for column in range(begin, min(row, begin + 64)):
                out[row, column] = out[column, row]


class Sorted(NamedTuple):
    """The items of trees, sorted by kind: the `ids` and `counts` of tree i start at `indptr[i]`."""

    indptr: np.ndarray
    ids: np.ndarray
    kinds: np.ndarray
    counts: np.ndarray


@inlined
def mark(trees, tree, marks, tick):
    """Store the first position of each kind in a tree."""
    latest = -1
    for at in range(trees.indptr[tree], trees.indptr[tree + 1]):
        kind = trees.kinds[at]
        if kind != latest:
            marks[kind, 0] = tick
            marks[kind, 1] = at
            latest = kind


@in_place
def evaluate_bags(trees, weights, pairs, marks, out):
    """Add to `out`, for each pair of trees, the weighted products of the counts of shared items.

    Each kind occurs at most once per tree. `marks` has two numbers per kind, which are zero before the call.
    Looking kinds up in this table is faster than merging two lists, since the branches of a merge are
    unpredictable.
    """
    for pair in range(len(pairs)):
        one, other, tick = pairs[pair, 0], pairs[pair, 1], pair + 1
        mark(trees, other, marks, tick)
        total = 0.0
        for at in range(trees.indptr[one], trees.indptr[one + 1]):
            kind = trees.kinds[at]
            if marks[kind, 0] == tick:
                total += weights[kind] * trees.counts[at] * trees.counts[marks[kind, 1]]
        out[pair] += total
