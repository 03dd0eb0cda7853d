"""Constituency trees from their definition, by nested tuples and plain recursion."""

from typing import NamedTuple


class Node(NamedTuple):
    """A labelled node with its children; a leaf has none."""

    label: str
    children: tuple["Node", ...] = ()


def nodes(tree):
    """List the nodes in post-order."""
    return [node for child in tree.children for node in nodes(child)] + [tree]


def labels(tree):
    return [node.label for node in nodes(tree)]


def sizes(tree):
    return [len(nodes(node)) for node in nodes(tree)]


def parents(tree, first=0):
    """List the post-order position of each node's parent, for a tree whose first node is at `first`."""
    root = first + len(nodes(tree)) - 1
    found = []
    for child in tree.children:
        found += [*parents(child, first + len(found))[:-1], root]
    return [*found, -1]


def words(tree):
    return [node.label for node in nodes(tree) if not node.children]


def tags(tree):
    """List the label above each leaf."""
    return [tag for child in tree.children for tag in ([tree.label] if not child.children else tags(child))]


def spans(tree, first_word=0):
    """List (label, start, end) of each inner node in post-order."""
    found = []
    end = first_word
    for child in tree.children:
        found += spans(child, end)
        end += len(words(child))
    return [*found, (tree.label, first_word, end)] if tree.children else []


def to_text(tree):
    if not tree.children:
        return tree.label
    return f"({tree.label} {' '.join(to_text(child) for child in tree.children)})"


def without_functions(tree):
    if not tree.children:
        return tree
    label = tree.label
    if not label.startswith("-"):
        label = label[0] + label[1:].split("-")[0].split("=")[0]
    return Node(label, tuple(without_functions(child) for child in tree.children))


def without_tags(tree, dropped):
    """Drop the leaves whose parent's label is in `dropped`, then the inner nodes that have become empty."""
    if not tree.children:
        return tree
    kept = [
        without_tags(child, dropped) for child in tree.children if child.children or tree.label not in dropped
    ]
    kept = [child for child in kept if child is not None]
    return Node(tree.label, tuple(kept)) if kept else None
