"""Equal subtrees by comparing nested tuples, and random trees for the tests of tree kernels."""

import numpy as np
from oracle.consttree import Node, nodes

LABELS = "ABC"
WORDS = "ABab"
"""Some of these are also labels."""


def draw_tree(rng, depth=3, width=3):
    """Draw a tree with few labels, possibly a leaf or a chain, often with equal subtrees under a node."""
    if depth == 0 or rng.random() < 0.2:
        return Node(str(rng.choice(list(WORDS))))
    children = [draw_tree(rng, depth - 1, width) for _ in range(rng.integers(1, width + 1))]
    if rng.random() < 0.3:
        children.append(children[0])
    return Node(str(rng.choice(list(LABELS))), tuple(children))


def draw_trees(random_state, n_trees=8, depth=3, width=3):
    rng = np.random.default_rng(random_state)
    return [draw_tree(rng, depth, width) for _ in range(n_trees)]


def draw_wide(rng, n_children):
    """Draw a node with many children, some of which are leaves and many of which are equal."""
    return Node("S", tuple(draw_tree(rng, depth=1, width=1) for _ in range(n_children)))


def list_subtrees(trees):
    """List the distinct subtrees in the order of their first occurrence."""
    return list(dict.fromkeys(node for tree in trees for node in nodes(tree)))


def production(node):
    return (node.label, *(child.label for child in node.children))


def list_productions(trees):
    return {production(node) for tree in trees for node in nodes(tree) if node.children}


def list_edges(trees):
    """List the edges to children that are not leaves: both productions, and the child's position from 1."""
    return {
        (production(node), place, production(child))
        for tree in trees
        for node in nodes(tree)
        for place, child in enumerate(node.children, start=1)
        if child.children
    }


def list_pairs(trees):
    """List the pairs of labels of a parent and its child."""
    return {(node.label, child.label) for tree in trees for node in nodes(tree) for child in node.children}


def count_inner(tree):
    return sum(bool(node.children) for node in nodes(tree))


def without_leaves(tree):
    """Drop all leaves; return None for a single leaf."""
    if not tree.children:
        return None
    return Node(tree.label, tuple(without_leaves(child) for child in tree.children if child.children))
