"""Fragments of trees by listing all of them."""

from collections import Counter
from itertools import product

import numpy as np


def write(label, parts):
    """Return a node with what is under it as text; a node that is not expanded is its label."""
    return f"({label} {' '.join(parts)})" if parts else label


def expand(node):
    """Return all subset trees with a root at `node`, which is no leaf."""
    choices = [[child.label, *(expand(child) if child.children else ())] for child in node.children]
    return [write(node.label, parts) for parts in product(*choices)]


def subset_trees(tree):
    """Count the subset trees of a tree."""
    return Counter(text for node in tree.subtrees() if node.children for text in expand(node))


def whole(node):
    """Return a node with all that is under it."""
    return write(node.label, [whole(child) for child in node.children])


def subtrees(tree):
    """Count the subtrees of a tree, leaves left out."""
    return Counter(whole(node) for node in tree.subtrees() if node.children)


def words(tree):
    """Count the leaves of a tree."""
    return Counter(node.label for node in tree.subtrees() if not node.children)


def size(text):
    """Return how often the decay counts: nodes that are expanded, or 1 for a word."""
    return max(1, text.count("("))


def values(trees, coef, list_fragments, decay):
    """Return the sum over trees of counts times coefficients, times the decay to the size."""
    sums = Counter()
    for tree, amount in zip(trees, coef, strict=True):
        for text, count in list_fragments(tree).items():
            sums[text] += amount * count
    return {text: value * decay ** size(text) for text, value in sums.items()}


def norm(tree, list_fragments, decay):
    """Return the length of a tree in the space of fragments."""
    return np.sqrt(sum(count**2 * decay ** size(text) for text, count in list_fragments(tree).items()))
