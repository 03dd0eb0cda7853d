"""ConstTree: an ordered labelled tree, stored as two flat arrays."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright.data.notebook import Drawn
from treewright.errors import FormatError, InputError, quote

TRACE = "-NONE-"
LABEL = re.compile(r"[^\s\0]+", re.ASCII)
"""A label has no ASCII whitespace and no NUL; a no-break space may be part of a word."""
MAX_DECIMAL_BITS = 2048
"""Maximum number of bits of an integer that is written in decimal; Python rejects very large ones."""
PLAIN_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


class Span(NamedTuple):
    """A labelled span of words.

    Attributes
    ----------
    label : str
        The label.
    start, end : int
        Position of the first word, and position after the last word, from 0.

    See Also
    --------
    ConstTree.spans : The spans of a tree.

    Examples
    --------
    >>> tw.Span("NP", 0, 2)
    Span(label='NP', start=0, end=2)
    """

    label: str
    start: int
    end: int


class ConstTree(Drawn):
    """An ordered labelled tree, such as a constituency tree or the syntax tree of a program.

    Words are leaves: nodes without children whose label is the word. The nodes are stored in post-order in
    two flat arrays: their labels, and the size of the subtree at each node. Thus children come before
    parents, the root is last, and every subtree is a slice. Subtrees are views of the arrays of the whole
    tree. Trees are immutable. No operation is recursive, so only memory limits the depth.

    Parameters
    ----------
    label : str
        Label of the root: not empty, without ASCII whitespace.
    children : sequence of ConstTree or str
        The subtrees; a string is a leaf. A leaf has no children.

    See Also
    --------
    read_brackets : Reads trees from a file.
    DepTree : A dependency tree.
    to_dependencies : Converts to a dependency tree.

    Examples
    --------
    >>> tree = ConstTree.parse("(S (NP (N Mary)) (VP (V sleeps)))")
    >>> tree.label, tree.words(), tree.tags()
    ('S', ['Mary', 'sleeps'], ['N', 'V'])
    >>> print(tree.children[0])
    (NP (N Mary))
    """

    __slots__ = ("_all_labels", "_all_sizes", "_root")

    _all_labels: Sequence[str]
    _all_sizes: npt.NDArray[np.int32]
    _root: int

    def __init__(self, label: str, children: Sequence["ConstTree | str"] = ()) -> None:
        if isinstance(children, str):
            raise InputError(f"children is {children!r}; expected a sequence, such as [{children!r}]")
        nodes = [child if isinstance(child, ConstTree) else ConstTree(child) for child in children]
        self._all_labels = [*(one for node in nodes for one in node.labels), _checked_label(label)]
        total = len(self._all_labels)
        self._all_sizes = np.concatenate([*(node.sizes for node in nodes), [total]]).astype(np.int32)
        self._root = total - 1

    @classmethod
    def from_arrays(cls, labels: Sequence[str], sizes: npt.NDArray[np.int32]) -> Self:
        """Make a tree from the labels and subtree sizes of its nodes in post-order, without checks.

        Parameters
        ----------
        labels : sequence of str
            Labels of all nodes, children before parents, the root last.
        sizes : ndarray of int32, (n_nodes,)
            Number of nodes of the subtree at each node, including the node itself; 1 for a leaf.
        """
        tree = object.__new__(cls)
        tree._all_labels = labels
        tree._all_sizes = sizes
        tree._root = len(labels) - 1
        return tree

    @classmethod
    def from_child_counts(cls, labels: Sequence[str], n_children: Sequence[int]) -> Self:
        """Make a tree from the labels and child counts of its nodes in post-order.

        Parameters
        ----------
        labels : sequence of str
            Labels of all nodes, children before parents, the root last.
        n_children : sequence of int
            Number of children of each node; 0 for a leaf.
        """
        sizes: list[int] = []
        for count in n_children:
            size = 1
            for _ in range(count):
                size += sizes[len(sizes) - size]
            sizes.append(size)
        return cls.from_arrays([_checked_label(one) for one in labels], np.array(sizes, dtype=np.int32))

    @classmethod
    def parse(cls, text: str, *, functions: bool = True, traces: bool = True, unescape: bool = False) -> Self:
        """Read a tree from text in Penn brackets.

        Parameters
        ----------
        text : str
            One tree.
        functions : bool
            Keep function tags and indices (``NP-SBJ-1``); otherwise labels are cut at ``-`` or ``=``.
        traces : bool
            Keep ``-NONE-`` nodes; otherwise they are removed, and so are nodes that dominate only such nodes.
        unescape : bool
            Convert the words ``-LRB-`` and so on to brackets.
        """
        from treewright.data.bracketed import parse_tree  # bracketed imports this module

        tree = parse_tree(text, functions=functions, traces=traces, unescape=unescape)
        return cls.from_arrays(tree.labels, tree.sizes)

    @classmethod
    def from_python(cls, source: str) -> Self:
        """Return the syntax tree of Python source code.

        The labels of nodes are the names of `ast` classes; identifiers, constants and operators are leaves.
        Whitespace inside a constant becomes ``_``, and an unprintable character its escape sequence.

        Parameters
        ----------
        source : str
            Source code of a Python module.

        Raises
        ------
        FormatError
            If `source` is not valid Python.
        """
        return cls.from_child_counts(*_python_nodes(_parse_python(source)))

    @property
    def label(self) -> str:
        """The label of the root."""
        return self._all_labels[self._root]

    @property
    def children(self) -> tuple[Self, ...]:
        """The subtrees of the root's children, from left to right."""
        sizes = self._all_sizes
        node, first = self._root - 1, self._start
        found = []
        while node >= first:
            found.append(self._view(node))
            node -= int(sizes[node])
        return tuple(reversed(found))

    @property
    def is_leaf(self) -> bool:
        """Whether the tree is a leaf, that is, a word."""
        return bool(self._all_sizes[self._root] == 1)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, including words."""
        return int(self._all_sizes[self._root])

    @property
    def labels(self) -> Sequence[str]:
        """The labels of all nodes in post-order, the root last."""
        return self._all_labels[self._start : self._root + 1]

    @property
    def sizes(self) -> npt.NDArray[np.int32]:
        """The size of the subtree at each node, in post-order."""
        sizes = self._all_sizes[self._start : self._root + 1]
        sizes.flags.writeable = False
        return sizes

    def child_positions(self) -> list[list[int]]:
        """Return, for each node in post-order, the positions of its children from left to right."""
        sizes = self.sizes.tolist()
        positions = []
        for node, size in enumerate(sizes):
            children = []
            child = node - 1
            while child > node - size:
                children.append(child)
                child -= sizes[child]
            positions.append(children[::-1])
        return positions

    def parents(self) -> npt.NDArray[np.int32]:
        """Return the post-order position of each node's parent; -1 for the root."""
        parents = np.full(self.n_nodes, -1, dtype=np.int32)
        for node, children in enumerate(self.child_positions()):
            parents[children] = node
        return parents

    def words(self) -> list[str]:
        """Return the labels of the leaves, from left to right."""
        return [label for label, size in zip(self.labels, self.sizes.tolist(), strict=True) if size == 1]

    def tags(self) -> list[str]:
        """Return the label of each leaf's parent; a tree that is a leaf has none."""
        labels, parents = self.labels, self.parents().tolist()
        leaves = np.flatnonzero(self.sizes == 1).tolist()
        return [labels[parents[leaf]] for leaf in leaves if parents[leaf] >= 0]

    def subtrees(self) -> Iterator[Self]:
        """Yield the subtree at every node, children before parents, the whole tree last."""
        for node in range(self._start, self._root + 1):
            yield self._view(node)

    def spans(self) -> list[Span]:
        """Return the span of each node that is not a leaf, children before parents."""
        sizes = self.sizes
        leaves_before = np.concatenate([[0], np.cumsum(sizes == 1)])
        inner = np.flatnonzero(sizes > 1)
        starts = leaves_before[inner - sizes[inner] + 1].tolist()
        ends = leaves_before[inner + 1].tolist()
        labels = self.labels
        return [Span(labels[node], *span) for node, *span in zip(inner.tolist(), starts, ends, strict=True)]

    def without_functions(self) -> Self:
        """Return the tree without function tags and indices: ``NP-SBJ-1`` becomes ``NP``."""
        labels = [
            label if size == 1 else cut_functions(label)
            for label, size in zip(self.labels, self.sizes.tolist(), strict=True)
        ]
        return self.from_arrays(labels, self.sizes)

    def without_traces(self) -> Self | None:
        """Return the tree without ``-NONE-`` nodes and without nodes that dominate only such nodes.

        Return None if nothing is left.
        """
        return self.without_tags({TRACE})

    def without_tags(self, tags: set[str] | frozenset[str]) -> Self | None:
        """Return the tree without words that have one of the `tags`, and without nodes left empty.

        Parameters
        ----------
        tags : set of str
            Tags of the words to remove.

        Returns
        -------
        ConstTree or None
            The tree; None if nothing is left.
        """
        labels = self.labels
        if not any(label in tags for label in labels):
            return self
        parents = self.parents().tolist()
        kept: list[str] = []
        sizes: list[int] = []
        starts: list[int] = []  # first kept position of each node
        for node, size in enumerate(self.sizes.tolist()):
            start = len(kept) if size == 1 else starts[node - size + 1]
            is_kept_word = size == 1 and (parents[node] < 0 or labels[parents[node]] not in tags)
            if is_kept_word or len(kept) > start:
                kept.append(labels[node])
                sizes.append(len(kept) - start)
            starts.append(start)
        return self.from_arrays(kept, np.array(sizes, dtype=np.int32)) if kept else None

    def with_words(self, words: Sequence[str]) -> Self:
        """Return the same tree with other words.

        Parameters
        ----------
        words : sequence of str
            The new words, one per leaf, from left to right: not empty, without ASCII whitespace.
        """
        leaves = np.flatnonzero(self.sizes == 1).tolist()
        if len(words) != len(leaves):
            raise InputError(f"words has {len(words)} values; expected {len(leaves)}, one per leaf")
        labels = list(self.labels)
        for leaf, word in zip(leaves, words, strict=True):
            labels[leaf] = _checked_label(word)
        return self.from_arrays(labels, self.sizes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConstTree):
            return NotImplemented
        return list(self.labels) == list(other.labels) and np.array_equal(self.sizes, other.sizes)

    def __hash__(self) -> int:
        return hash((tuple(self.labels), self.sizes.tobytes()))

    def __str__(self) -> str:
        labels = [escape(label) for label in self.labels]
        sizes = self.sizes.tolist()
        opened: dict[int, list[str]] = {}
        for node, size in enumerate(sizes):
            if size > 1:
                opened.setdefault(node - size + 1, []).append(f" ({labels[node]}")
        pieces: list[str] = []
        for node, size in enumerate(sizes):
            if size > 1:
                pieces.append(")")
            else:
                pieces.extend(reversed(opened.get(node, [])))
                pieces.append(f" {labels[node]}")
        return "".join(pieces)[1:]

    def __repr__(self) -> str:
        if self.n_nodes > 200 or any("(" in label or ")" in label for label in self.labels):
            return f"<ConstTree {self.label} with {self.n_nodes} nodes>"
        return f"ConstTree.parse({str(self)!r})" if not self.is_leaf else f"ConstTree({self.label!r})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle only this subtree, not the whole tree that it is a view of."""
        return type(self).from_arrays, (self.labels, self.sizes)

    @property
    def _start(self) -> int:
        return self._root + 1 - int(self._all_sizes[self._root])

    def _view(self, node: int) -> Self:
        view = object.__new__(type(self))
        view._all_labels = self._all_labels
        view._all_sizes = self._all_sizes
        view._root = node
        return view


def cut_functions(label: str) -> str:
    """Cut a label at its first ``-`` or ``=`` after the first character."""
    for at, character in enumerate(label):
        if at and character in "-=" and label[0] != "-":
            return label[:at]
    return label


def escape(label: str) -> str:
    """Escape brackets in a label as Penn treebanks do."""
    if "(" in label or ")" in label:
        return label.replace("(", "-LRB-").replace(")", "-RRB-")
    return label


def unescape_word(word: str) -> str:
    r"""Convert ``-LRB-`` and so on to brackets, and ``\/`` and ``\*`` to ``/`` and ``*``."""
    if "-" in word:
        for escaped, plain in PLAIN_BRACKETS.items():
            word = word.replace(escaped, plain)
    return word.replace("\\/", "/").replace("\\*", "*")


def _checked_label(label: str) -> str:
    if not isinstance(label, str) or not LABEL.fullmatch(label):
        expected = "a non-empty string without whitespace and NUL"
        raise InputError(f"label is {label!r}; expected {expected}")
    return label


def _parse_python(source: str) -> ast.AST:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about the code do not matter here
            return ast.parse(source)
    except SyntaxError as error:
        found = f"{error.msg} ({quote((error.text or '').strip())})"
        raise FormatError("<python>", error.lineno or 1, found, "Python source code") from error
    except (RecursionError, MemoryError) as error:
        found = "code nested too deeply for Python's parser"
        raise FormatError("<python>", 1, found, "Python source code") from error
    except ValueError as error:
        raise FormatError("<python>", 1, str(error), "Python source code") from error


def _python_nodes(root: ast.AST) -> tuple[list[str], list[int]]:
    """Return the labels and child counts of all nodes in post-order."""
    labels: list[str] = []
    n_children: list[int] = []
    waiting: list[object] = [root]
    while waiting:
        node = waiting.pop()
        parts = _python_parts(node) if isinstance(node, ast.AST) else []
        labels.append(type(node).__name__ if isinstance(node, ast.AST) else _python_leaf(node))
        n_children.append(len(parts))
        waiting.extend(parts)
    return labels[::-1], n_children[::-1]


def _python_parts(node: ast.AST) -> list[object]:
    """Return the children of a syntax node: nodes, names, constants and operators."""
    if isinstance(node, ast.operator | ast.unaryop | ast.boolop | ast.cmpop):
        return []
    parts: list[object] = []
    for name, value in ast.iter_fields(node):
        if name in ("ctx", "kind", "type_comment"):
            continue
        if value is None and not isinstance(node, ast.Constant | ast.MatchSingleton):
            continue
        if isinstance(value, list):
            parts.extend(part for part in value if part is not None)
        else:
            parts.append(value)
    return parts


def _python_leaf(value: object) -> str:
    if isinstance(value, int):
        return hex(value) if value.bit_length() > MAX_DECIMAL_BITS else str(value)
    label = "_".join((value if isinstance(value, str) else repr(value)).split()) or "_"
    return label if label.isprintable() else repr(label)[1:-1]
