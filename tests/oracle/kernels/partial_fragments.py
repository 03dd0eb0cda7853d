"""Partial trees of trees by listing all of them, and what they weigh."""

from collections import Counter

import numpy as np
from oracle.consttree import Node
from oracle.kernels import ptk


def to_node(tree):
    """Return a tree as the twin of kernels has it."""
    return Node(tree.label, tuple(to_node(child) for child in tree.children))


def write(node):
    """Return a fragment as text; one of a single node is its label."""
    return f"({node.label} {' '.join(map(write, node.children))})" if node.children else node.label


def partial_trees(tree, decay, longest=None):
    """Count the partial trees of a tree, each embedding by the decay to the power of its gaps."""
    return ptk.list_partial_trees(to_node(tree), decay, longest)


def norm(tree, decay, depth_decay, longest=None):
    """Return the length of a tree in the space of partial trees."""
    found = partial_trees(tree, decay, longest)
    return np.sqrt(ptk.count_shared(found, found, decay, depth_decay))


def values(trees, coef, decay, depth_decay, longest=None, power=1.0):
    """Return the sum over trees of counts times coefficients, times the weight to a power, by fragment."""
    sums = Counter()
    for tree, amount in zip(trees, coef, strict=True):
        for fragment, count in partial_trees(tree, decay, longest).items():
            sums[fragment] += amount * count
    return {
        fragment: value * ptk.weigh(fragment, decay, depth_decay) ** power for fragment, value in sums.items()
    }
