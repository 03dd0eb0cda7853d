"""Inner loops of boosted trees that are grown best-first and shrunk by a learning rate.

Each example of a node has a gradient and a curvature, whose sums over the node are G and H. The score of the
node, (|G| - penalty)^2 / (H + damping), is twice the decrease of the objective with the best value for the
node. The leaf whose best split increases the score most is split first, until the maximum number of leaves is
reached.

Columns that contain each other, such as ``age >= 30`` and ``age >= 42``, form a chain. An example is counted
only for the smallest column of a chain that has it; the sums of the larger columns follow by addition.
"""

import math
from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place, inlined

NEARLY = 1 - 1e-9
"""Factor that allows for rounding when scores are compared without division."""


class ExampleColumns(NamedTuple):
    """The examples that have feature f, ascending, from `indptr[f]`."""

    indptr: np.ndarray
    examples: np.ndarray


class FeatureChains(NamedTuple):
    """Features in chains, from the smallest to the largest; chain c has `members[ptr[c]:ptr[c + 1]]`.

    `of_feature` is the chain of each feature, or -1.
    """

    ptr: np.ndarray
    members: np.ndarray
    of_feature: np.ndarray


class GradientPair(NamedTuple):
    """The gradient and the curvature of the loss of each example."""

    gradients: np.ndarray
    curvatures: np.ndarray


class GrowthLimits(NamedTuple):
    """The penalty, the constant added to curvatures, the tolerance for equal scores and the maximum depth."""

    penalty: float
    damping: float
    least: float
    depth: int


class FeatureSums(NamedTuple):
    """For each leaf that may be split, the gradient, curvature and count of each of its features.

    A feature of a chain has only the sums of the examples that no smaller feature of the chain has. The
    features in no chain that occur are listed in `touched`. All `sums` are zero between trees. The number of
    places is the maximum number of leaves of a tree.
    """

    sums: np.ndarray
    touched: np.ndarray
    n_touched: np.ndarray


class Regions(NamedTuple):
    """Examples sorted by node, the position of each, and the label of its region.

    The side of a split without the feature keeps the label of its parent. Examples that are not in the sample
    have the label -1.
    """

    examples: np.ndarray
    positions: np.ndarray
    labels: np.ndarray


class GrownNodes(NamedTuple):
    """For each node: examples, label, index into `FeatureSums`, depth, sums and best split."""

    begins: np.ndarray
    ends: np.ndarray
    labels: np.ndarray
    places: np.ndarray
    depths: np.ndarray
    gradients: np.ndarray
    curvatures: np.ndarray
    gains: np.ndarray
    splits: np.ndarray


@inlined
def excess(gradient, limits):
    """Return the soft-thresholded gradient."""
    return max(0.0, abs(gradient) - limits.penalty)


@in_place
def start_regions(regions):
    """Set the positions of the sampled examples and the label of the root."""
    for position in range(regions.examples.size):
        example = regions.examples[position]
        regions.positions[example] = position
        regions.labels[example] = 0


@in_place
def accumulate(rows, chains, slopes, regions, begin, end, table, place):
    """Fill the zeroed sums of a leaf from its examples."""
    n_touched = 0
    for position in range(begin, end):
        example = regions.examples[position]
        gradient, curvature = slopes.gradients[example], slopes.curvatures[example]
        for index in range(rows.indptr[example], rows.indptr[example + 1]):
            feature = rows.columns[index]
            if table.sums[place, feature, 2] == 0 and chains.of_feature[feature] < 0:
                table.touched[place, n_touched] = feature
                n_touched += 1
            table.sums[place, feature, 0] += gradient
            table.sums[place, feature, 1] += curvature
            table.sums[place, feature, 2] += 1
    table.n_touched[place] = n_touched


@in_place
def subtract(chains, table, place, other):
    """Subtract the sums of one leaf from those of another."""
    for index in range(table.n_touched[other] + chains.members.size):
        if index < table.n_touched[other]:
            feature = table.touched[other, index]
        else:
            feature = chains.members[index - table.n_touched[other]]
        table.sums[place, feature, 0] -= table.sums[other, feature, 0]
        table.sums[place, feature, 1] -= table.sums[other, feature, 1]
        table.sums[place, feature, 2] -= table.sums[other, feature, 2]


@inlined
def better_split(feature, sums, nodes, node, limits, found):
    """Return the better of the best split so far, a pair of a score and a feature, and another one.

    `sums` are the gradient and the curvature of the examples that have the feature. Of two scores that are
    equal, the smaller feature is better.
    """
    best, chosen = found
    gradient, curvature = sums
    present = excess(gradient, limits) ** 2
    absent = excess(nodes.gradients[node] - gradient, limits) ** 2
    of_present = max(0.0, curvature) + limits.damping
    of_absent = max(0.0, nodes.curvatures[node] - curvature) + limits.damping
    # Most features are far below the best; this is detected without division.
    if present * of_absent + absent * of_present >= (best - limits.least) * NEARLY * of_present * of_absent:
        both = present / of_present + absent / of_absent
        if both > best + limits.least or (both >= best - limits.least and feature < chosen):
            return both, feature
    return best, chosen


@in_place
def find_split(chains, table, nodes, node, limits):
    """Find the split with the largest gain (the smallest feature if tied); -1 if no gain is large enough.

    Features that no example of the node has any longer are removed.
    """
    place, n_examples = nodes.places[node], nodes.ends[node] - nodes.begins[node]
    own = excess(nodes.gradients[node], limits) ** 2 / (nodes.curvatures[node] + limits.damping)
    found, n_kept = (own, -1), 0
    for index in range(table.n_touched[place]):
        feature = table.touched[place, index]
        count = table.sums[place, feature, 2]
        if count == 0:
            table.sums[place, feature, 0] = 0.0
            table.sums[place, feature, 1] = 0.0
            continue
        table.touched[place, n_kept] = feature
        n_kept += 1
        if count < n_examples:
            sums = (table.sums[place, feature, 0], table.sums[place, feature, 1])
            found = better_split(feature, sums, nodes, node, limits, found)
    table.n_touched[place] = n_kept
    for chain in range(chains.ptr.size - 1):
        gradient = curvature = count = 0.0
        for index in range(chains.ptr[chain], chains.ptr[chain + 1]):
            feature = chains.members[index]
            gradient += table.sums[place, feature, 0]
            curvature += table.sums[place, feature, 1]
            count += table.sums[place, feature, 2]
            if 0 < count < n_examples:
                found = better_split(feature, (gradient, curvature), nodes, node, limits, found)
    nodes.gains[node], nodes.splits[node] = found[0] - own, found[1]


@in_place
def divide(columns, feature, regions, nodes, node, label):
    """Partition the examples of a node by a feature and label them; return where those without it begin."""
    middle = nodes.begins[node]
    for index in range(columns.indptr[feature], columns.indptr[feature + 1]):
        example = columns.examples[index]
        if regions.labels[example] == nodes.labels[node]:
            position, other = regions.positions[example], regions.examples[middle]
            regions.examples[position], regions.positions[other] = other, position
            regions.examples[middle], regions.positions[example] = example, middle
            regions.labels[example] = label
            middle += 1
    return middle


@in_place
def set_sides(chains, table, nodes, node, middle, n_nodes):
    """Create the two children of a split, without their sums."""
    present, absent = n_nodes, n_nodes + 1
    place, feature = nodes.places[node], nodes.splits[node]
    nodes.begins[present], nodes.ends[present] = nodes.begins[node], middle
    nodes.begins[absent], nodes.ends[absent] = middle, nodes.ends[node]
    nodes.labels[present], nodes.labels[absent] = present, nodes.labels[node]
    nodes.depths[present] = nodes.depths[absent] = nodes.depths[node] + 1
    nodes.gradients[present] = table.sums[place, feature, 0]
    nodes.curvatures[present] = table.sums[place, feature, 1]
    if chains.of_feature[feature] >= 0:
        index = chains.ptr[chains.of_feature[feature]]
        while chains.members[index] != feature:
            nodes.gradients[present] += table.sums[place, chains.members[index], 0]
            nodes.curvatures[present] += table.sums[place, chains.members[index], 1]
            index += 1
    nodes.gradients[absent] = nodes.gradients[node] - nodes.gradients[present]
    nodes.curvatures[absent] = max(0.0, nodes.curvatures[node] - nodes.curvatures[present])


@in_place
def share_sums(rows, chains, slopes, regions, table, nodes, node, new_place):
    """Fill the sums of two children, `node` and the next; the larger reuses those of its parent."""
    smaller, larger = node, node + 1
    if nodes.ends[smaller] - nodes.begins[smaller] > nodes.ends[larger] - nodes.begins[larger]:
        smaller, larger = larger, smaller
    nodes.places[larger], nodes.places[smaller] = nodes.places[node], new_place
    begin, end = nodes.begins[smaller], nodes.ends[smaller]
    accumulate(rows, chains, slopes, regions, begin, end, table, new_place)
    subtract(chains, table, nodes.places[larger], new_place)


@in_place
def grow_tree(rows, chains, columns, slopes, table, regions, nodes, limits, tree):
    """Grow a tree on the examples of the regions, best split first; return its number of nodes.

    Of the features of a chain, `rows` has only the smallest one that an example has.
    """
    n_examples, n_nodes, n_leaves = regions.examples.size, 1, 1
    start_regions(regions)
    nodes.begins[0], nodes.ends[0], nodes.labels[0], nodes.places[0], nodes.depths[0] = 0, n_examples, 0, 0, 0
    nodes.gradients[0], nodes.curvatures[0] = 0.0, 0.0
    for position in range(n_examples):
        nodes.gradients[0] += slopes.gradients[regions.examples[position]]
        nodes.curvatures[0] += slopes.curvatures[regions.examples[position]]
    accumulate(rows, chains, slopes, regions, 0, n_examples, table, 0)
    find_split(chains, table, nodes, 0, limits)
    tree.features[0], tree.present[0], tree.absent[0] = -1, -1, -1
    while n_leaves < table.n_touched.size:
        node = -1
        for other in range(n_nodes):
            is_open = tree.features[other] < 0 and nodes.splits[other] >= 0
            if is_open and (node < 0 or nodes.gains[other] > nodes.gains[node] + limits.least):
                node = other
        if node < 0:
            break
        feature = nodes.splits[node]
        middle = divide(columns, feature, regions, nodes, node, n_nodes)
        set_sides(chains, table, nodes, node, middle, n_nodes)
        nodes.places[n_nodes] = nodes.places[node]
        share_sums(rows, chains, slopes, regions, table, nodes, n_nodes, n_leaves)
        tree.features[node], tree.present[node], tree.absent[node] = feature, n_nodes, n_nodes + 1
        n_leaves += 1
        for side in range(n_nodes, n_nodes + 2):
            tree.features[side], tree.present[side], tree.absent[side] = -1, -1, -1
            nodes.splits[side] = -1
            if n_leaves < table.n_touched.size and nodes.depths[side] < limits.depth:
                find_split(chains, table, nodes, side, limits)
        n_nodes += 2
    for place in range(n_leaves):
        for index in range(table.n_touched[place]):
            table.sums[place, table.touched[place, index]] = 0.0
        for feature in chains.members:
            table.sums[place, feature] = 0.0
    return n_nodes


@in_place
def set_values(nodes, tree, limits, rate):
    """Set each leaf to its Newton step times `rate`; return the decrease of the objective.

    The decrease is measured on the quadratic approximation of the objective. Inner nodes get the value zero.
    """
    fall = 0.0
    for node in range(tree.features.size):
        tree.values[node] = 0.0
        above = excess(nodes.gradients[node], limits)
        if tree.features[node] < 0 and above > 0:
            step = above / (nodes.curvatures[node] + limits.damping)
            tree.values[node] = rate * step if nodes.gradients[node] > 0 else -rate * step
            fall += (rate - rate * rate / 2) * above * step
    return fall


@in_place
def fill_slopes(scores, is_positive, weights, slopes):
    """Fill the gradients and curvatures of the binary log-loss; return the loss."""
    loss = 0.0
    for example in range(scores.size):
        margin = scores[example] if is_positive[example] else -scores[example]
        rest = math.exp(-abs(margin))
        wrong = rest / (1.0 + rest) if margin >= 0 else 1.0 / (1.0 + rest)
        loss += weights[example] * (math.log1p(rest) + max(0.0, -margin))
        gradient = weights[example] * wrong
        slopes.gradients[example] = gradient if is_positive[example] else -gradient
        slopes.curvatures[example] = gradient * (1.0 - wrong)
    return loss


@in_place
def add_values(labels, by_label, scores):
    """Add to the score of each example the value of its leaf."""
    for example in range(labels.size):
        scores[example] += by_label[labels[example]]


@in_place
def sum_slopes(leaves, slopes, nodes):
    """Add the gradients and curvatures of all examples to the zeroed sums of their leaves."""
    for example in range(leaves.size):
        nodes.gradients[leaves[example]] += slopes.gradients[example]
        nodes.curvatures[leaves[example]] += slopes.curvatures[example]
