"""The cheapest parses, by listing all parses, and the scores of inferences, by walking each decision tree.

A tree is a number for a leaf, or (feature, tree if present, tree if absent).
"""

import math

from oracle.constituent import states as cuts


def value(tree, features):
    """Return the value of the leaf that features reach in a decision tree."""
    while isinstance(tree, tuple):
        feature, present, absent = tree
        tree = present if feature in features else absent
    return tree


def score(trees, features):
    """Return the sum of the values of decision trees."""
    return sum(value(tree, features) for tree in trees)


def loss(margin):
    """Equation 5."""
    return math.log(1 + math.exp(-margin))


def list_parses(state, rules, find_head, cost_of):
    """List, for each complete parse, the sum of the costs of its inferences and the inferences.

    If no inference is considered, all remaining items become children of the top node.
    """
    if cuts.is_complete(state):
        return [(0.0, [])]
    found = []
    end = cuts.Inference(0, len(state.frontier), cuts.TOP)
    for inference in cuts.considered(state, rules) or [end]:
        cost = cost_of(state, inference)
        after = cuts.apply(state, inference, find_head)
        found += [
            (cost + rest, [inference, *path]) for rest, path in list_parses(after, rules, find_head, cost_of)
        ]
    return found
