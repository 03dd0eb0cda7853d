"""Boosted trees under an L1 penalty from their definitions, as sums over sets of rows without caching.

An example is a set of features. A tree is None for a leaf, or (feature, tree if present, tree if absent).
"""

import math

from scipy.optimize import minimize_scalar


def weight(confidence, label, bias):
    """Equation 10."""
    return bias / (1 + math.exp(label * confidence))


def loss(confidences, labels, biases):
    """Equations 4 to 6."""
    triples = zip(confidences, labels, biases, strict=True)
    return sum(bias * math.log(1 + math.exp(-label * each)) for each, label, bias in triples)


def gain(members, labels, weights, penalty):
    """Equations 11 to 13, for the feature that these examples have."""
    positive = sum(weights[each] for each in members if labels[each] == 1)
    negative = sum(weights[each] for each in members if labels[each] == -1)
    return max(0.0, abs(negative - positive) - penalty)


def split(examples, members, feature):
    """Return the members with a feature and those without."""
    return (
        [each for each in members if feature in examples[each]],
        [each for each in members if feature not in examples[each]],
    )


def best_split(examples, members, labels, weights, penalty, n_features, tolerance=0.0):
    """Equations 14 and 15: the smallest of the best features, or None if no split improves the objective."""
    best, chosen = gain(members, labels, weights, penalty) + tolerance, None
    for feature in range(n_features):
        both = sum(gain(part, labels, weights, penalty) for part in split(examples, members, feature))
        if both > best:
            best, chosen = both, feature
    return chosen


def build_tree(examples, members, labels, weights, penalty, n_features, tolerance=0.0, least=None):
    """Split while the gain of a split exceeds the tolerance or, below the root, the minimum gain `least`."""
    least = tolerance if least is None else least
    feature = best_split(examples, members, labels, weights, penalty, n_features, tolerance)
    if feature is None:
        return None
    parts = split(examples, members, feature)
    problem = (labels, weights, penalty, n_features)
    return (feature, *(build_tree(examples, part, *problem, least, least) for part in parts))


def list_splits(tree, examples, members):
    """List the members of each split of a tree and those of its two sides, root first."""
    if tree is None:
        return []
    parts = split(examples, members, tree[0])
    below = [list_splits(side, examples, part) for side, part in zip(tree[1:], parts, strict=True)]
    return [(members, *parts), *below[0], *below[1]]


def without_light(examples, weights, least):
    """Remove the features whose examples weigh at most `least` in total."""

    def mass(feature):
        pairs = zip(examples, weights, strict=True)
        return sum(weight for example, weight in pairs if feature in example)

    return [{feature for feature in example if mass(feature) > least} for example in examples]


def largest_penalty(examples, labels, weights, n_features):
    """Return the smallest penalty for which neither the root nor any side of its splits has a gain."""
    members = list(range(len(examples)))
    parts = [part for feature in range(n_features) for part in split(examples, members, feature)]
    return max(gain(each, labels, weights, 0.0) for each in [members, *parts])


def path_to_leaf(tree, example):
    """Return the features tested on the path to a leaf, each with whether it is present."""
    path = []
    while tree is not None:
        feature, present, absent = tree
        path.append((feature, feature in example))
        tree = present if feature in example else absent
    return tuple(path)


def prunings(tree):
    """List all prunings of a tree."""
    yield None
    if tree is not None:
        feature, present, absent = tree
        yield from ((feature, one, other) for one in prunings(present) for other in prunings(absent))


def gain_of_tree(tree, examples, labels, weights, penalty):
    """Return the sum of the gains of all leaves."""
    paths = [path_to_leaf(tree, example) for example in examples]
    members = [[each for each, other in enumerate(paths) if other == path] for path in set(paths)]
    return sum(gain(each, labels, weights, penalty) for each in members)


def n_leaves(tree):
    """Count the leaves of a tree."""
    return 1 if tree is None else n_leaves(tree[1]) + n_leaves(tree[2])


def leaf_value(confidences, labels, biases, penalty):
    """Return the value with the smallest loss plus penalty, searched on both sides of zero and at zero."""

    def objective(value):
        moved = [each + value for each in confidences]
        return loss(moved, labels, biases) + penalty * abs(value)

    options = {"method": "bounded", "options": {"xatol": 1e-8}}
    found = [minimize_scalar(objective, bounds=bounds, **options) for bounds in ((-40, 0), (0, 40))]
    best = min(found, key=lambda each: each.fun)
    return best.x if best.fun < objective(0.0) - 1e-12 else 0.0


def priority_sample(weights, uniform, size):
    """Return the examples with the highest priorities, and their weights in the sample."""
    if size >= len(weights):
        return dict(enumerate(weights))
    ranked = sorted(range(len(weights)), key=lambda each: -weights[each] / uniform[each])
    threshold = weights[ranked[size]] / uniform[ranked[size]]
    return {each: max(weights[each], threshold) for each in ranked[:size]}
