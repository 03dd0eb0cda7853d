"""Preparation of constituency trees for training, and restoration of parses (Turian & Melamed 2005).

Trees are simplified, because the parser need not predict everything. Quotation marks and unary brackets that
repeat a label are removed. Punctuation at the edges of constituents is raised as high as possible, and
dropped at the edges of the sentence. Dropped words are restored in parses.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from treewright.data.consttree import TRACE, ConstTree

QUOTES = frozenset(["``", "''"])
PUNCTUATION = frozenset([",", ":", "."]) | QUOTES
"""Tags of the words that PARSEVAL ignores."""
SAME_LABEL = {"PRT": "ADVP"}
ROOT = "TOP"


class PreparedTree(NamedTuple):
    """A tree prepared for the parser.

    Attributes
    ----------
    tree : ConstTree or None
        The prepared tree; None if no words are left.
    kept : list of int
        Positions (from 0) of the remaining words in the original tree.
    """

    tree: ConstTree | None
    kept: list[int]


class Node:
    """A mutable tree node; a leaf has the position of its word and no children."""

    def __init__(self, label: str, children: list["Node"], place: int = -1) -> None:
        self.label = label
        self.children = children
        self.place = place

    @property
    def is_tag(self) -> bool:
        """Whether the node is a preterminal."""
        return len(self.children) == 1 and not self.children[0].children


def prepare(tree: ConstTree) -> PreparedTree:
    """Prepare a tree for training.

    The steps are, in this order: remove function labels, traces and quotation marks; rename particle phrases
    to adverb phrases; raise punctuation; drop punctuation at the edges of the sentence; remove unary brackets
    that repeat a label.
    """
    root = _thaw(tree.without_functions())
    _visit(root, lambda node: _drop_words(node, QUOTES | {TRACE}))
    _visit(root, _rename)
    _visit(root, _raise_punctuation)
    _drop_edges(root)
    _visit(root, _merge_repeated)
    return _freeze(root) if root.children else PreparedTree(None, [])


def keep_inside(tags: Sequence[str]) -> list[int]:
    """Return the positions of the words that the parser processes, given the tags of all words."""
    kept = [place for place, tag in enumerate(tags) if tag not in QUOTES and tag != TRACE]
    while kept and tags[kept[0]] in PUNCTUATION:
        del kept[0]
    while kept and tags[kept[-1]] in PUNCTUATION:
        del kept[-1]
    return kept


def restore(
    parse: ConstTree | None, kept: Sequence[int], words: Sequence[str], tags: Sequence[str]
) -> ConstTree:
    """Restore all original words in a parse.

    A dropped word is inserted under the lowest node that has words on both sides of it. If there is no such
    node, it is inserted under the root, or under the single child of the root.

    Parameters
    ----------
    parse : ConstTree or None
        Parse of the kept words; None if no words were kept.
    kept : sequence of int
        Positions of the kept words.
    words, tags : sequence of str
        All words and tags of the sentence.
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
    """Return a copy of a tree with other tags."""
    labels = list(tree.labels)
    parents = tree.parents().tolist()
    leaves = np.flatnonzero(tree.sizes == 1).tolist()
    for leaf, tag in zip(leaves, tags, strict=True):
        labels[parents[leaf]] = tag
    return ConstTree.from_arrays(labels, tree.sizes)


def _insert(root: Node, word: Node, place: int) -> None:
    """Insert a word under the lowest node that has words before and after it."""
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
    """Return a mutable copy of a tree."""
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
    """Call a function for each node, children before parents; leaves are visited only on request."""
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
    """Remove children that are words with these tags, or that have no words left."""
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
    """Move the punctuation at the edges of a node's children up to the node; drop children without words."""
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
    """Remove a single child that repeats the label of its parent."""
    while len(node.children) == 1 and node.children[0].label == node.label and not node.is_tag:
        node.children = node.children[0].children
