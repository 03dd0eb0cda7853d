"""Trees grown best-first, from their definition, as sums over sets of rows without caching.

An example is a set of features. Numbers are fractions, so that ties are exact.
"""

from fractions import Fraction


def node_score(members, gradients, curvatures, penalty, damping):
    """Return twice the decrease of the objective with the best value for these examples."""
    gradient = sum((Fraction(gradients[each]) for each in members), Fraction(0))
    curvature = sum((Fraction(curvatures[each]) for each in members), Fraction(0))
    return max(Fraction(0), abs(gradient) - Fraction(penalty)) ** 2 / (curvature + Fraction(damping))


def node_value(members, gradients, curvatures, penalty, damping, rate):
    """Return the Newton step under the penalty, times the learning rate."""
    gradient = sum(gradients[each] for each in members)
    curvature = sum(curvatures[each] for each in members)
    step = max(0.0, abs(gradient) - penalty) / (curvature + damping)
    return rate * step if gradient > 0 else -rate * step


def best_split(examples, members, slopes, limits, n_features):
    """Return the largest score increase of a split, and the smallest feature that achieves it, or None."""
    own = node_score(members, *slopes, *limits)
    best, chosen = Fraction(0), None
    for feature in range(n_features):
        parts = split(examples, members, feature)
        rise = sum(node_score(part, *slopes, *limits) for part in parts) - own if all(parts) else 0
        if rise > best:
            best, chosen = rise, feature
    return best, chosen


def split(examples, members, feature):
    """Return the members with a feature and those without."""
    return (
        [each for each in members if feature in examples[each]],
        [each for each in members if feature not in examples[each]],
    )


def grow_leaves(examples, slopes, limits, n_features, max_leaves, sample=None, max_depth=None):
    """Return the leaves of a tree as sets of (feature, is present), with their members in the sample.

    If leaves are tied, the first is split: leaves of earlier splits come first, then the side with the
    feature.
    """
    members = list(range(len(examples))) if sample is None else list(sample)
    leaves = {0: (frozenset(), members)}
    n_nodes = 1
    while len(leaves) < max_leaves:
        rises = {
            node: best_split(examples, members, slopes, limits, n_features)
            for node, (path, members) in leaves.items()
            if max_depth is None or len(path) < max_depth
        }
        if not rises:
            break
        node = max(rises, key=lambda each: (rises[each][0], -each))
        feature = rises[node][1]
        if feature is None:
            break
        path, members = leaves.pop(node)
        for is_present, part in zip((True, False), split(examples, members, feature), strict=True):
            leaves[n_nodes] = (path | {(feature, is_present)}, part)
            n_nodes += 1
    return dict(leaves.values())
