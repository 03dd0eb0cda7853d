"""Constituency trees made ready for a parser, and its parses made whole again (Turian & Melamed 2005).

What a parser by classification is not asked to find is taken out of trees: quotation marks, punctuation at
the edges of constituents, which is raised as far as it goes and dropped at the edges of the sentence, and
unary brackets that repeat a label. The words that were dropped come back into the parses.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from treewright.data.consttree import TRACE, ConstTree

QUOTES = frozenset(["``", "''"])
PUNCTUATION = frozenset([",", ":", "."]) | QUOTES
"""Tags of words that PARSEVAL does not count either."""
SAME_LABEL = {"PRT": "ADVP"}
ROOT = "TOP"


class PreparedTree(NamedTuple):
    """A tree as a parser sees it.

    Attributes
    ----------
    tree : ConstTree or None
        None where nothing is left.
    kept : list of int
        The places, from 0, of its words among those of the whole tree.
    """

    tree: ConstTree | None
    kept: list[int]


class Node:
    """A tree that can be changed; a leaf has the place of its word and no children."""

    def __init__(self, label: str, children: list["Node"], place: int = -1) -> None:
        self.label = label
        self.children = children
        self.place = place

    @property
    def is_tag(self) -> bool:
        """Whether the node stands over one word."""
        return len(self.children) == 1 and not self.children[0].children


def prepare(tree: ConstTree) -> PreparedTree:
    """Make a tree ready for training.

    In this order: function tags, traces and quotation marks go, particles become adverbs, punctuation is
    raised, that at the edges of the sentence goes, unary brackets that repeat a label go.
    """
    root = _thaw(tree.without_functions())
    _visit(root, lambda node: _drop_words(node, QUOTES | {TRACE}))
    _visit(root, _rename)
    _visit(root, _raise_punctuation)
    _drop_edges(root)
    _visit(root, _merge_repeated)
    return _freeze(root) if root.children else PreparedTree(None, [])


def keep_inside(tags: Sequence[str]) -> list[int]:
    """Return the places of the words that a parser is given, by their tags."""
    kept = [place for place, tag in enumerate(tags) if tag not in QUOTES and tag != TRACE]
    while kept and tags[kept[0]] in PUNCTUATION:
        del kept[0]
    while kept and tags[kept[-1]] in PUNCTUATION:
        del kept[-1]
    return kept


def restore(
    parse: ConstTree | None, kept: Sequence[int], words: Sequence[str], tags: Sequence[str]
) -> ConstTree:
    """Put all words, as they were written, back into a parse.

    A word that was dropped goes under the lowest node that has words of both sides of it, or else under the
    root, or its only child.

    Parameters
    ----------
    parse : ConstTree or None
        Over the words that were kept; None if there were none.
    kept : sequence of int
        Their places.
    words, tags : sequence of str
        Of all words.
    """
    root = _thaw(parse) if parse is not None else Node(ROOT, [])
    leaves: list[Node] = []
    _visit(root, lambda node: leaves.extend(child for child in node.children if not child.children))
    for leaf, place in zip(leaves, kept, strict=True):
        leaf.place, leaf.label = place, words[place]
    is_unary = len(root.children) == 1 and bool(root.children[0].children) and not root.children[0].is_tag
    above = root.children[0] if is_unary else root
    for place in sorted(set(range(len(words))) - set(kept)):
        _insert(above, Node(tags[place], [Node(words[place], [], place)]), place)
    return _freeze(root).tree or ConstTree(ROOT)


def retag(tree: ConstTree, tags: Sequence[str]) -> ConstTree:
    """Return a tree with other tags over its words."""
    labels = list(tree.labels)
    parents = tree.parents().tolist()
    leaves = np.flatnonzero(tree.sizes == 1).tolist()
    for leaf, tag in zip(leaves, tags, strict=True):
        labels[parents[leaf]] = tag
    return ConstTree.from_arrays(labels, tree.sizes)


def _insert(root: Node, word: Node, place: int) -> None:
    """Put a word under the lowest node that has words before and after it."""
    above = root
    while True:
        before = [child for child in above.children if _first(child) < place]
        if not before or _last(before[-1]) < place:
            above.children.insert(len(before), word)
            return
        above = before[-1]


def _first(node: Node) -> int:
    while node.children:
        node = node.children[0]
    return node.place


def _last(node: Node) -> int:
    while node.children:
        node = node.children[-1]
    return node.place


def _thaw(tree: ConstTree) -> Node:
    """Make a tree that can be changed."""
    sizes = tree.sizes.tolist()
    places = np.cumsum(tree.sizes == 1).tolist()
    made: list[Node] = []
    for label, size, place, children in zip(tree.labels, sizes, places, tree.child_positions(), strict=True):
        made.append(Node(label, [made[child] for child in children], place - 1 if size == 1 else -1))
    return made[-1]


def _freeze(root: Node) -> PreparedTree:
    labels: list[str] = []
    counts: list[int] = []
    kept: list[int] = []

    def add(node: Node) -> None:
        labels.append(node.label)
        counts.append(len(node.children))
        if not node.children:
            kept.append(node.place)

    _visit(root, add, leaves=True)
    return PreparedTree(ConstTree.from_child_counts(labels, counts), kept)


def _visit(root: Node, function: Callable[[Node], None], *, leaves: bool = False) -> None:
    """Call a function for each node, or each that is no leaf, children before parents."""
    waiting = [(root, False)]
    while waiting:
        node, is_open = waiting.pop()
        if is_open or not node.children:
            if node.children or leaves or is_open:
                function(node)
            continue
        waiting.append((node, True))
        waiting.extend((child, False) for child in reversed(node.children))


def _drop_words(node: Node, tags: frozenset[str]) -> None:
    """Leave out children that are words with some tags, or have lost all of theirs."""
    node.children = [
        child
        for child in node.children
        if child.place >= 0 or (child.children and not (child.is_tag and child.label in tags))
    ]


def _rename(node: Node) -> None:
    if not node.is_tag:
        node.label = SAME_LABEL.get(node.label, node.label)


def _is_punctuation(node: Node) -> bool:
    return node.is_tag and node.label in PUNCTUATION


def _raise_punctuation(node: Node) -> None:
    """Take the punctuation at the edges of children up to the node; children without words go."""
    raised: list[Node] = []
    for child in node.children:
        if child.is_tag or not child.children:
            raised.append(child)
            continue
        inner = child.children
        begin, end = 0, len(inner)
        while begin < end and _is_punctuation(inner[begin]):
            begin += 1
        while end > begin and _is_punctuation(inner[end - 1]):
            end -= 1
        child.children = inner[begin:end]
        raised += inner[:begin] + ([child] if child.children else []) + inner[end:]
    node.children = raised


def _drop_edges(root: Node) -> None:
    while root.children and _is_punctuation(root.children[0]):
        del root.children[0]
    while root.children and _is_punctuation(root.children[-1]):
        del root.children[-1]


def _merge_repeated(node: Node) -> None:
    """Leave out an only child that repeats the label of its parent."""
    while len(node.children) == 1 and node.children[0].label == node.label and not node.is_tag:
        node.children = node.children[0].children
