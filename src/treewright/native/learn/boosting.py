"""Inner loops of boosted decision trees under an L1 penalty (Turian & Melamed 2006).

The gradient of the loss over a set of examples is the sum of their signed weights: the weights of positive
examples minus those of negative ones. The gain of a node is the excess of its gradient over the penalty; the
gain of a split is the sum of the gains of its two sides. A tree is stored in flat arrays: node i tests a
feature, or is a leaf if its feature is -1.
"""

import math
from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place, inlined

MOST_STEPS = 200
"""Maximum number of Newton steps for the value of a leaf; about ten are usually enough."""
PRECISION = 1e-13
LARGEST_VALUE = 600.0
"""Maximum value of a leaf; its exponential is finite."""


class FeatureRows(NamedTuple):
    """The features of example i in ascending order, from `indptr[i]`."""

    indptr: np.ndarray
    columns: np.ndarray


class DecisionTree(NamedTuple):
    """The feature that each node tests, its children (feature present, absent), and the values of leaves."""

    features: np.ndarray
    present: np.ndarray
    absent: np.ndarray
    values: np.ndarray


class DecisionForest(NamedTuple):
    """Trees one after another; the root of tree i is node `roots[i]`."""

    roots: np.ndarray
    nodes: DecisionTree


class SplitLimits(NamedTuple):
    """The penalty, the minimum gain of a split, and the minimum gain of the root's split."""

    penalty: float
    least: float
    rounding: float


class Pool(NamedTuple):
    """For each pending node, the gradient of each feature, and the features seen.

    All `sums` are zero between trees. `stamps` has, for each feature, the last node in which it was seen.
    """

    sums: np.ndarray
    touched: np.ndarray
    n_touched: np.ndarray
    stamps: np.ndarray


class Frames(NamedTuple):
    """A stack of pending nodes: their examples, and the total weights of positive and negative examples."""

    nodes: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    positive: np.ndarray
    negative: np.ndarray


class Order(NamedTuple):
    """Examples, with those of each node adjacent; a buffer; and the weights of the two sides of a split."""

    examples: np.ndarray
    buffer: np.ndarray
    masses: np.ndarray


@inlined
def gain(gradient, penalty):
    """Return the excess of a gradient over the penalty (equation 13)."""
    return max(0.0, abs(gradient) - penalty)


@inlined
def is_final(positive, negative, penalty, tolerance):
    """Return whether no split can improve the objective, not even one that separates the two classes."""
    best = gain(positive, penalty) + gain(negative, penalty)
    return best <= gain(positive - negative, penalty) + tolerance


@in_place
def weigh(confidences, labels, biases, signed):
    """Fill the signed weights of all examples (equation 10) and return the loss (equation 4)."""
    loss = 0.0
    for example in range(labels.size):
        margin = labels[example] * confidences[example]
        rest = math.exp(-abs(margin))
        if margin >= 0:
            share = rest / (1.0 + rest)
            loss += biases[example] * math.log1p(rest)
        else:
            share = 1.0 / (1.0 + rest)
            loss += biases[example] * (math.log1p(rest) - margin)
        signed[example] = labels[example] * biases[example] * share
    return loss


@in_place
def add_gradients(rows, signed, sums):
    """Add the signed weight of each example to all its features."""
    for example in range(signed.size):
        weight = signed[example]
        for place in range(rows.indptr[example], rows.indptr[example + 1]):
            sums[rows.columns[place]] += weight


@in_place
def keep_heavy(rows, signed, least, masses, kept):
    """Copy the features of examples, except features whose examples weigh at most `least` in total.

    Below the root, a split by such a feature cannot improve the objective. `masses` is zero for each feature
    before and after the call.
    """
    for example in range(signed.size):
        weight = abs(signed[example])
        for place in range(rows.indptr[example], rows.indptr[example + 1]):
            masses[rows.columns[place]] += weight
    n_kept = 0
    kept.indptr[0] = 0
    for example in range(signed.size):
        for place in range(rows.indptr[example], rows.indptr[example + 1]):
            if masses[rows.columns[place]] > least:
                kept.columns[n_kept] = rows.columns[place]
                n_kept += 1
        kept.indptr[example + 1] = n_kept
    for place in range(rows.indptr[signed.size]):
        masses[rows.columns[place]] = 0.0


@in_place
def start_tree(rows, signed, pool, frames, order):
    """Make the root pending; return the largest absolute gradient of the root or of a side of any split."""
    pool.stamps[:] = 0
    positive, negative = 0.0, 0.0
    for example in range(signed.size):
        order.examples[example] = example
        if signed[example] > 0:
            positive += signed[example]
        else:
            negative -= signed[example]
    frames.nodes[0], frames.begins[0], frames.ends[0] = 0, 0, signed.size
    frames.positive[0], frames.negative[0] = positive, negative
    accumulate(rows, signed, order.examples, frames, 0, pool)
    total = positive - negative
    largest = abs(total)
    for place in range(pool.n_touched[0]):
        part = pool.sums[0, pool.touched[0, place]]
        largest = max(largest, abs(part), abs(total - part))
    return largest


@in_place
def accumulate(rows, signed, examples, frames, slot, pool):
    """Fill the zeroed sums of a pending node from its examples."""
    tick, n_touched = frames.nodes[slot] + 1, 0
    for position in range(frames.begins[slot], frames.ends[slot]):
        example = examples[position]
        weight = signed[example]
        for place in range(rows.indptr[example], rows.indptr[example + 1]):
            feature = rows.columns[place]
            if pool.stamps[feature] != tick:
                pool.stamps[feature] = tick
                pool.touched[slot, n_touched] = feature
                n_touched += 1
            pool.sums[slot, feature] += weight
    pool.n_touched[slot] = n_touched


@in_place
def clear(pool, slot):
    """Set the sums of a node to zero."""
    for place in range(pool.n_touched[slot]):
        pool.sums[slot, pool.touched[slot, place]] = 0.0
    pool.n_touched[slot] = 0


@in_place
def find_split(pool, slot, total, penalty, tolerance):
    """Return the feature with the largest gain (equation 15), the lowest number if tied, or -1 for none."""
    best, chosen = gain(total, penalty) + tolerance, -1
    for place in range(pool.n_touched[slot]):
        feature = pool.touched[slot, place]
        part = pool.sums[slot, feature]
        both = gain(part, penalty) + gain(total - part, penalty)
        if both > best or (both == best and feature < chosen):
            best, chosen = both, feature
    return chosen


@inlined
def has_feature(rows, example, feature):
    """Return whether an example has a feature."""
    low, high = rows.indptr[example], rows.indptr[example + 1]
    last = high
    while low < high:
        middle = (low + high) >> 1
        if rows.columns[middle] < feature:
            low = middle + 1
        else:
            high = middle
    return low < last and rows.columns[low] == feature


@in_place
def divide(rows, signed, feature, order, begin, end):
    """Move examples with a feature to the front and sum both sides; return where the others start."""
    order.masses[:] = 0.0
    middle, n_absent = begin, 0
    for position in range(begin, end):
        example = order.examples[position]
        weight = signed[example]
        if has_feature(rows, example, feature):
            order.examples[middle] = example
            middle += 1
            side = 0
        else:
            order.buffer[n_absent] = example
            n_absent += 1
            side = 1
        if weight > 0:
            order.masses[side, 0] += weight
        else:
            order.masses[side, 1] -= weight
    for position in range(n_absent):
        order.examples[middle + position] = order.buffer[position]
    return middle


@in_place
def set_frame(frames, slot, node, begin, end, masses):
    """Make a node pending."""
    frames.nodes[slot], frames.begins[slot], frames.ends[slot] = node, begin, end
    frames.positive[slot], frames.negative[slot] = masses[0], masses[1]


@in_place
def subtract_examples(rows, signed, examples, frames, slot, pool):
    """Subtract the examples of the node in the next slot from the sums of a slot."""
    for position in range(frames.begins[slot + 1], frames.ends[slot + 1]):
        example = examples[position]
        weight = signed[example]
        for place in range(rows.indptr[example], rows.indptr[example + 1]):
            pool.sums[slot, rows.columns[place]] -= weight


@in_place
def subtract_sums(pool, slot):
    """Subtract the sums of the node in the next slot from those of a slot."""
    for place in range(pool.n_touched[slot + 1]):
        feature = pool.touched[slot + 1, place]
        pool.sums[slot, feature] -= pool.sums[slot + 1, feature]


@in_place
def build_tree(rows, signed, pool, frames, order, limits, tree):
    """Split nodes, root first, until no split improves the objective; return the number of nodes.

    The larger side of a split takes the slot of the parent; its sums are those of the parent minus those
    of the smaller side. The smaller side is pushed on top, so the number of pending nodes is at most
    logarithmic in the number of examples.
    """
    n_nodes, slot = 1, 0
    while slot >= 0:
        node, begin, end = frames.nodes[slot], frames.begins[slot], frames.ends[slot]
        feature, middle = -1, begin
        least = limits.least if node > 0 else limits.rounding
        if not is_final(frames.positive[slot], frames.negative[slot], limits.penalty, least):
            total = frames.positive[slot] - frames.negative[slot]
            feature = find_split(pool, slot, total, limits.penalty, least)
        if feature >= 0:
            middle = divide(rows, signed, feature, order, begin, end)
        tree.values[node] = 0.0
        if middle in (begin, end):
            tree.features[node], tree.present[node], tree.absent[node] = -1, -1, -1
            clear(pool, slot)
            slot -= 1
            continue
        tree.features[node], tree.present[node], tree.absent[node] = feature, n_nodes, n_nodes + 1
        if middle - begin <= end - middle:
            set_frame(frames, slot + 1, n_nodes, begin, middle, order.masses[0])
            set_frame(frames, slot, n_nodes + 1, middle, end, order.masses[1])
        else:
            set_frame(frames, slot + 1, n_nodes + 1, middle, end, order.masses[1])
            set_frame(frames, slot, n_nodes, begin, middle, order.masses[0])
        n_nodes += 2
        share_sums(rows, signed, order.examples, frames, slot, pool, limits)
        slot += 1
    return n_nodes


@in_place
def share_sums(rows, signed, examples, frames, slot, pool, limits):
    """Fill the sums of both sides of a split from their parent's sums, stored in the larger side's slot."""
    penalty, least = limits.penalty, limits.least
    larger_ends = is_final(frames.positive[slot], frames.negative[slot], penalty, least)
    smaller_ends = is_final(frames.positive[slot + 1], frames.negative[slot + 1], penalty, least)
    if larger_ends:
        clear(pool, slot)
    if smaller_ends:
        pool.n_touched[slot + 1] = 0
        if not larger_ends:
            subtract_examples(rows, signed, examples, frames, slot, pool)
        return
    accumulate(rows, signed, examples, frames, slot + 1, pool)
    if not larger_ends:
        subtract_sums(pool, slot)


@in_place
def percolate(rows, tree, wanted, marks, leaves):
    """Fill the leaf that each example falls into.

    `wanted` is zero for each feature before and after the call; `marks` is zero for each node. A feature that
    the tree tests is identified by the first node that tests it.
    """
    for node in range(tree.features.size):
        if tree.features[node] >= 0 and wanted[tree.features[node]] == 0:
            wanted[tree.features[node]] = node + 1
    for example in range(leaves.size):
        for place in range(rows.indptr[example], rows.indptr[example + 1]):
            first = wanted[rows.columns[place]]
            if first > 0:
                marks[first - 1] = example + 1
        node = 0
        while tree.features[node] >= 0:
            is_present = marks[wanted[tree.features[node]] - 1] == example + 1
            node = tree.present[node] if is_present else tree.absent[node]
        leaves[example] = node
    for node in range(tree.features.size):
        if tree.features[node] >= 0:
            wanted[tree.features[node]] = 0


@in_place
def add_scores(rows, forest, marks, scores):
    """Add the values of all trees to the score of each example; `marks` is zero for each feature."""
    nodes = forest.nodes
    for example in range(scores.size):
        for place in range(rows.indptr[example], rows.indptr[example + 1]):
            marks[rows.columns[place]] = example + 1
        total = 0.0
        for tree in range(forest.roots.size):
            node = forest.roots[tree]
            while nodes.features[node] >= 0:
                is_present = marks[nodes.features[node]] == example + 1
                node = nodes.present[node] if is_present else nodes.absent[node]
            total += nodes.values[node]
        scores[example] += total


@in_place
def sum_leaves(leaves, signed, sums):
    """Add the signed weight of each example to its leaf."""
    for example in range(leaves.size):
        sums[leaves[example]] += signed[example]


@in_place
def group_leaves(leaves, places, examples):
    """Write the examples of each leaf, in order, from its position in `places` on; `places` is advanced.

    Leaves with place -1 are left out.
    """
    for example in range(leaves.size):
        place = places[leaves[example]]
        if place >= 0:
            examples[place] = example
            places[leaves[example]] = place + 1


@in_place
def solve_leaf(odds, agrees, biases, penalty):
    """Return the positive step that minimises loss and penalty over the examples of a leaf.

    `odds` are the exponentials of margins, and `agrees` tells which margins grow with the step. The gradient
    exceeds the penalty at 0 and decreases; Newton steps are taken while they stay in the interval that
    contains the root.
    """
    low, high, value = 0.0, LARGEST_VALUE, 0.0
    for _ in range(MOST_STEPS):
        up, down = math.exp(value), math.exp(-value)
        slope, curvature = -penalty, 0.0
        for example in range(odds.size):
            if agrees[example]:
                share = 1.0 / (1.0 + odds[example] * up)
                slope += biases[example] * share
            else:
                share = 1.0 / (1.0 + odds[example] * down)
                slope -= biases[example] * share
            curvature += biases[example] * share * (1.0 - share)
        if slope > 0:
            low = value
        else:
            high = value
        step = slope / curvature if curvature > 0 else math.inf
        reached = value + step
        if not low < reached < high:
            reached = 2 * low + 1 if high == LARGEST_VALUE and 2 * low + 1 < high else (low + high) / 2
        if abs(reached - value) <= PRECISION * (1.0 + abs(value)):
            return reached
        value = reached
    return value
