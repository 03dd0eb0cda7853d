"""Partial trees of trees, by listing all of them, and their weights."""

from collections import Counter

import numpy as np
from oracle.consttree import Node
from oracle.kernels import ptk


def to_node(tree):
    """Convert a tree to the nodes that the other oracles of kernels use."""
    return Node(tree.label, tuple(to_node(child) for child in tree.children))


def write(node):
    """Return a fragment as text; a fragment of a single node is its label."""
    return f"({node.label} {' '.join(map(write, node.children))})" if node.children else node.label


def partial_trees(tree, decay, longest=None):
    """Count the partial trees of a tree; an embedding counts as the decay to the power of its gaps."""
    return ptk.list_partial_trees(to_node(tree), decay, longest)


def norm(tree, decay, depth_decay, longest=None):
    """Return the norm of a tree in the space of partial trees."""
    found = partial_trees(tree, decay, longest)
    return np.sqrt(ptk.count_shared(found, found, decay, depth_decay))


def values(trees, coef, decay, depth_decay, longest=None, power=1.0):
    """Return, by fragment, the sum over trees of counts times coefficients, times its weight to a power."""
    sums = Counter()
    for tree, amount in zip(trees, coef, strict=True):
        for fragment, count in partial_trees(tree, decay, longest).items():
            sums[fragment] += amount * count
    return {
        fragment: value * ptk.weigh(fragment, decay, depth_decay) ** power for fragment, value in sums.items()
    }
