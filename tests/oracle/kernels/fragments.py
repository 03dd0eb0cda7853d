"""Fragments of trees, by listing all of them."""

from collections import Counter
from itertools import product

import numpy as np


def write(label, parts):
    """Return the text of a node and its parts; a node that is not expanded is its label."""
    return f"({label} {' '.join(parts)})" if parts else label


def expand(node):
    """Return all subset trees with the root `node`, which is not a leaf."""
    choices = [[child.label, *(expand(child) if child.children else ())] for child in node.children]
    return [write(node.label, parts) for parts in product(*choices)]


def subset_trees(tree):
    """Count the subset trees of a tree."""
    return Counter(text for node in tree.subtrees() if node.children for text in expand(node))


def whole(node):
    """Return the text of the whole subtree of a node."""
    return write(node.label, [whole(child) for child in node.children])


def subtrees(tree):
    """Count the subtrees of a tree, without leaves."""
    return Counter(whole(node) for node in tree.subtrees() if node.children)


def words(tree):
    """Count the leaves of a tree."""
    return Counter(node.label for node in tree.subtrees() if not node.children)


def size(text):
    """Return the exponent of the decay: the number of expanded nodes, or 1 for a word."""
    return max(1, text.count("("))


def values(trees, coef, list_fragments, decay):
    """Return, by fragment, the sum over trees of counts times coefficients, weighted by the decay."""
    sums = Counter()
    for tree, amount in zip(trees, coef, strict=True):
        for text, count in list_fragments(tree).items():
            sums[text] += amount * count
    return {text: value * decay ** size(text) for text, value in sums.items()}


def norm(tree, list_fragments, decay):
    """Return the norm of a tree in the space of fragments."""
    return np.sqrt(sum(count**2 * decay ** size(text) for text, count in list_fragments(tree).items()))
