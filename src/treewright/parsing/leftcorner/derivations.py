"""Left-corner derivations: conversion of phrase-structure trees to sequences of decisions, and back.

J. Henderson (2003), as used by I. Titov and J. Henderson (2005), section IV. The parser keeps a stack, which
contains only ROOT at the start and at the end. The decisions are:

- ``SHIFT`` a tag and a word: the word is pushed onto the stack under its tag.

- ``PROJECT`` a label: the top is complete; it becomes the first child of a new node, which replaces it on the
  stack.

- ``ATTACH``: the top is complete; it is popped and becomes the last child of the node below it. Attaching to
  ROOT ends the derivation.

- ``MODIFY``: the top is complete and is popped. The node below it, X, is also complete; it becomes the first
  child of another X, whose second child is the popped node.

`MODIFY` encodes Chomsky adjunction. It applies to every node with two or more children whose first child is a
phrase (not a tag or word) with the same label: ``X -> X YP ...``. The second child is attached by `MODIFY`
and all later ones by `ATTACH`; the upper X is never projected. Therefore, the parser decides only when YP is
complete whether YP is inside or outside the lower X, and `DerivationState` treats both X as one node.
Adjunction on the other side, ``X -> YP X``, is projected and attached like any other node, because there is
no X yet when YP is complete.

The mapping is one to one. Each tree has one derivation, which `derive` returns. Each complete sequence of
decisions that `DerivationState` accepts as legal is the derivation of one tree, which `rebuild` returns. To
ensure this, a word cannot be shifted onto a word, and nothing can be attached to an X that was just projected
over an X, because `MODIFY` builds this structure. A word with siblings has no tag of its own and is shifted
with the tag ``""``.

`treewright.parsing.leftcorner.decisions` encodes decisions for a network. Trees are encoded for a network as
follows::

    chains = UnaryChains.from_trees(trees)
    derivations = [derive(chains.merge(tree)) for tree in trees]
    vocabulary = DecisionVocabulary.from_derivations(derivations, min_count=20)
    encoded = [encode(derivation, vocabulary) for derivation in derivations]

A search builds a tree as follows::

    state = DerivationState.start()
    while not state.is_complete:
        state.links(), state.inputs()        # inputs of the history vector
        state.legal()                        # kinds of decision in the softmax
        state.possible(n_words_left)         # kinds of decision that a search may take
        state = state.apply(decision)        # vocabulary.shift(tag, word) or .project(label), ATTACHED ...
    derivation = vocabulary.decode(state.decisions(), tags, words)
    tree = chains.split(rebuild(derivation))

The history vector of a decision belongs to the node on top of the stack when the decision is made. `LINKS`
names the earlier history vectors on which it depends; `INPUTS` names its other inputs, which are rows of
embedding tables. The vector of the previous decision is always among the links, and links point only
backwards, so that many sentences can be processed together, one decision of each at a time.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright.data.consttree import ConstTree
from treewright.errors import InputError, quote
from treewright.model import Model

SHIFT, PROJECT, ATTACH, MODIFY = range(4)
KIND_NAMES = ("shift", "project", "attach", "modify")
N_KINDS = len(KIND_NAMES)
LINKS = ("top", "left-corner ancestor", "left-corner child", "most recent child")
"""Nodes whose latest history vectors are inputs; the left-corner ancestor is the node below the top node."""
INPUTS = ("last decision", "label of the top", "last word", "left-corner word of the top")
ROOT_SYMBOL = 0
NONE = -1
"""Stands for a missing link, and for the missing label, tag or word of a decision."""
TAG_SIZE = 2
"""Number of nodes of a tag and its word; no other subtree has this size."""

Integers = npt.NDArray[np.int32]


class Derivation(NamedTuple):
    """The decisions that build a tree.

    Attributes
    ----------
    kinds : list of int
        Kinds of all decisions, in order.
    labels : list of str
        Labels of the projections.
    tags, words : list of str
        Tags and words of the shifts.
    """

    kinds: list[int]
    labels: list[str]
    tags: list[str]
    words: list[str]


def derive(tree: ConstTree) -> Derivation:
    """Return the derivation of a tree."""
    labels, sizes = tree.labels, tree.sizes.tolist()
    derivation = Derivation([], [], [], [])
    for node, (size, kind, above) in enumerate(zip(sizes, *_steps(tree), strict=True)):
        if size == 1 and node + 1 < len(sizes) and sizes[node + 1] == TAG_SIZE:
            continue
        if size <= TAG_SIZE:
            derivation.kinds.append(SHIFT)
            derivation.tags.append(labels[node] if size == TAG_SIZE else "")
            derivation.words.append(labels[node - size + 1])
        if kind == PROJECT:
            derivation.labels.append(labels[above])
        if kind != NONE:
            derivation.kinds.append(kind)
    return derivation


def _steps(tree: ConstTree) -> tuple[list[int], list[int]]:
    """Return, for each node, the kind of decision made when it is complete (if any), and its parent."""
    labels, sizes = tree.labels, tree.sizes.tolist()
    kinds = [ATTACH] * len(labels)
    parents = [NONE] * len(labels)
    for node, children in enumerate(tree.child_positions()):
        for child in children:
            parents[child] = node
        if not children:
            continue
        is_phrase = sizes[children[0]] > TAG_SIZE
        if is_phrase and len(children) > 1 and labels[children[0]] == labels[node]:
            kinds[children[0]], kinds[children[1]] = NONE, MODIFY
        else:
            kinds[children[0]] = PROJECT
    return kinds, parents


class _Open:
    """A node on the stack of `rebuild`: label, number of children, position of its first finished node."""

    def __init__(self, label: str, n_children: int, start: int) -> None:
        self.label = label
        self.n_children = n_children
        self.start = start


def rebuild(derivation: Derivation) -> ConstTree:
    """Return the tree of a derivation.

    Raises
    ------
    InputError
        If a decision is illegal, or the derivation is incomplete.
    """
    _check(derivation)
    labels, tags, words = iter(derivation.labels), iter(derivation.tags), iter(derivation.words)
    done: list[tuple[str, int]] = []  # label and number of children, in post-order
    stack = [_Open("", 0, 0)]
    for kind in derivation.kinds:
        if kind == SHIFT:
            stack.append(_shifted(next(tags), next(words), done))
            continue
        top = stack.pop()
        done.append((top.label, top.n_children))
        if kind == PROJECT:
            stack.append(_Open(next(labels), 1, top.start))
        elif kind == ATTACH:
            stack[-1].n_children += 1
        else:
            done.insert(top.start, (stack[-1].label, stack[-1].n_children))
            stack[-1].n_children = 2
    return ConstTree.from_child_counts(*zip(*done, strict=True))


def _shifted(tag: str, word: str, done: list[tuple[str, int]]) -> _Open:
    if not tag:
        return _Open(word, 0, len(done))
    done.append((word, 0))
    return _Open(tag, 1, len(done) - 1)


def _check(derivation: Derivation) -> None:
    """Raise an error if a derivation is illegal or incomplete."""
    kinds, labels, tags, words = derivation
    for kind in kinds:
        if kind not in range(N_KINDS):
            raise InputError(f"a decision is of kind {kind}; expected 0 to {N_KINDS - 1}")
    expected = (kinds.count(PROJECT), kinds.count(SHIFT), kinds.count(SHIFT))
    if (len(labels), len(tags), len(words)) != expected:
        found = f"the derivation has {len(labels)} labels, {len(tags)} tags and {len(words)} words"
        raise InputError(f"{found}; expected {expected[0]}, {expected[1]} and {expected[2]}")
    symbols = {label: number for number, label in enumerate(dict.fromkeys(labels), start=1)}
    projected = (symbols[label] for label in labels)
    state = DerivationState.start()
    for kind in kinds:
        state = state.apply(Decision(kind, next(projected) if kind == PROJECT else ROOT_SYMBOL))
    if not state.is_complete:
        raise InputError(f"the derivation ends after {len(kinds)} decisions; expected an attachment to ROOT")


class UnaryChains(Model):
    """Frequent unary chains, each merged into one label.

    A chain is a sequence of phrases (not tags or words), each of which is the single child of the previous
    one; the root of a tree is not part of a chain. The name of a merged chain consists of all its labels,
    from the top.

    Parameters
    ----------
    chains : sequence of tuples of str
        Labels of each chain, from the top.
    separator : str
        Separator between labels in names; no label may contain it.
    """

    def __init__(self, chains: Sequence[Sequence[str]], *, separator: str = "+") -> None:
        self.chains = [tuple(chain) for chain in chains]
        self.separator = separator
        self._names = {chain[::-1]: separator.join(chain) for chain in self.chains}
        self._parts = {name: chain for chain, name in self._names.items()}
        self._longest = max((len(chain) for chain in self.chains), default=1)

    @classmethod
    def from_trees(cls, trees: Iterable[ConstTree], *, min_count: int = 10) -> Self:
        """Collect the maximal chains with at least `min_count` occurrences."""
        counts: Counter[tuple[str, ...]] = Counter()
        labels: set[str] = set()
        for tree in trees:
            labels.update(tree.labels)
            for bottom, top in _runs(tree):
                counts[tuple(tree.labels[bottom : top + 1][::-1])] += 1
        separator = "+"
        while any(separator in label for label in labels):
            separator += "+"
        return cls(sorted(chain for chain, n in counts.items() if n >= min_count), separator=separator)

    def merge(self, tree: ConstTree) -> ConstTree:
        """Merge chains; in an unknown chain, merge the longest known parts, from the bottom up."""
        labels, sizes = list(tree.labels), tree.sizes
        self._refuse_names(labels, sizes)
        is_gone = np.zeros(len(labels), dtype=np.int32)
        for bottom, top in _runs(tree):
            at = bottom
            while at < top:
                length = self._longest_from(labels[at : top + 1])
                labels[at] = self._names.get(tuple(labels[at : at + length]), labels[at])
                is_gone[at + 1 : at + length] = 1
                at += length
        n_gone = np.concatenate([[0], np.cumsum(is_gone)])
        nodes = np.arange(len(labels))
        kept = np.flatnonzero(is_gone == 0)
        smaller = sizes - (n_gone[nodes + 1] - n_gone[nodes + 1 - sizes])
        return ConstTree.from_arrays([labels[node] for node in kept], smaller[kept].astype(np.int32))

    def split(self, tree: ConstTree) -> ConstTree:
        """Undo `merge`."""
        labels: list[str] = []
        sizes: list[int] = []
        starts: list[int] = []
        for node, (label, size) in enumerate(zip(tree.labels, tree.sizes.tolist(), strict=True)):
            starts.append(len(labels) if size == 1 else starts[node - size + 1])
            parts = self._parts.get(label, (label,)) if size > TAG_SIZE else (label,)
            for part in parts:
                labels.append(part)
                sizes.append(len(labels) - starts[node])
        return ConstTree.from_arrays(labels, np.array(sizes, dtype=np.int32))

    def _longest_from(self, labels: Sequence[str]) -> int:
        """Return the length of the longest known chain that starts with the first (lowest) label."""
        lengths = range(min(self._longest, len(labels)), 1, -1)
        return next((length for length in lengths if tuple(labels[:length]) in self._names), 1)

    def _refuse_names(self, labels: Sequence[str], sizes: Integers) -> None:
        for label, size in zip(labels, sizes.tolist(), strict=True):
            if size > TAG_SIZE and label in self._parts:
                raise InputError(
                    f"label {quote(label)} is the name of a merged chain; expected another label"
                )


def _runs(tree: ConstTree) -> list[tuple[int, int]]:
    """Return the first and last position of each chain in post-order, in which chains are contiguous."""
    sizes = tree.sizes[:-1]
    is_over_phrase = np.concatenate([[False], (np.diff(sizes) == 1) & (sizes[:-1] > TAG_SIZE), [False]])
    edges = np.flatnonzero(np.diff(is_over_phrase.astype(np.int8)))
    return [(int(edges[at]), int(edges[at + 1])) for at in range(0, len(edges), 2)]


class Decision(NamedTuple):
    """An encoded decision, as returned by a `DecisionVocabulary`.

    Attributes
    ----------
    kind : int
        `SHIFT`, `PROJECT`, `ATTACH` or `MODIFY`.
    symbol : int
        Symbol of the new node; see `DecisionVocabulary`.
    word : int
        Number of the tag-word pair of a shift.
    """

    kind: int
    symbol: int = ROOT_SYMBOL
    word: int = NONE


ATTACHED = Decision(ATTACH)
MODIFIED = Decision(MODIFY)


class StackNode(NamedTuple):
    """A node on the stack; nodes are immutable and shared between the states of a search.

    `latest` is the last decision that was made with this node on top of the stack; `left_child` and
    `recent_child` are the corresponding decisions of its first and its most recent child. `left_word` is 0
    for ROOT; otherwise, it is the number of the node's first word plus 1.
    """

    symbol: int
    is_word: bool
    repeats: bool
    """Whether the node has a single child, which is a phrase with the same label."""
    latest: int
    left_child: int
    recent_child: int
    left_word: int
    below: "StackNode | None"


ROOT_NODE = StackNode(ROOT_SYMBOL, False, False, NONE, NONE, NONE, 0, None)


class DerivationState:
    """A state of a derivation; states are immutable, so that several states can share their history."""

    __slots__ = ("before", "decision", "last_word", "n_decisions", "top")

    def __init__(
        self,
        top: StackNode,
        n_decisions: int,
        last_word: int,
        decision: Decision | None,
        before: "DerivationState | None",
    ) -> None:
        self.top = top
        self.n_decisions = n_decisions
        self.last_word = last_word
        self.decision = decision
        self.before = before

    @classmethod
    def start(cls) -> "DerivationState":
        """Return the state before the first decision."""
        return cls(ROOT_NODE, 0, 0, None, None)

    @property
    def is_complete(self) -> bool:
        """Whether a tree has been attached to ROOT."""
        return self.top.below is None and self.n_decisions > 0

    def legal(self) -> tuple[bool, bool, bool, bool]:
        """Return which kinds of decision can lead to any tree; this is the mask of the softmax."""
        top, below = self.top, self.top.below
        if below is None:
            return (self.n_decisions == 0, False, False, False)
        return (not top.is_word, True, not below.repeats, below.below is not None)

    def possible(self, n_words_left: int) -> tuple[bool, bool, bool, bool]:
        """Return which kinds of decision can lead to a tree over exactly the words of the sentence."""
        shift, project, attach, modify = self.legal()
        ends = self.top.below is not None and self.top.below.below is None
        return (shift and n_words_left > 0, project, attach and not (ends and n_words_left), modify)

    def links(self) -> tuple[int, int, int, int]:
        """Return the decisions to which the history vectors of `LINKS` belong; -1 if there is none."""
        top, below = self.top, self.top.below
        return (top.latest, below.latest if below else NONE, top.left_child, top.recent_child)

    def inputs(self) -> tuple[int, int, int, int]:
        """Return the values of `INPUTS`.

        The last decision is 0 at the start, 1 for a shift, 2 for an attachment, 3 for a modification, and 3
        plus the symbol for a projection. A word is 0 if there is none; otherwise, it is its number plus 1.
        """
        last = 0
        if self.decision is not None:
            kind, symbol, _ = self.decision
            last = 3 + symbol if kind == PROJECT else (1, 0, 2, 3)[kind]
        return (last, self.top.symbol, self.last_word, self.top.left_word)

    def apply(self, decision: Decision, *, at: int | None = None) -> "DerivationState":
        """Return the state after a decision.

        Parameters
        ----------
        decision : Decision
            A legal decision.
        at : int, optional
            Number by which links refer to the history vector of this decision (default: its position in the
            derivation, from 0). A search that keeps the vectors of many states in one table passes the row in
            that table.

        Raises
        ------
        InputError
            If the decision is illegal.
        """
        kind, _, word = decision
        legal = self.legal()
        if not legal[kind]:
            expected = " or ".join(name for name, is_legal in zip(KIND_NAMES, legal, strict=True) if is_legal)
            found = f"decision {self.n_decisions + 1} is {KIND_NAMES[kind]}"
            raise InputError(f"{found}; expected {expected or 'the end of the derivation'}")
        at = self.n_decisions if at is None else at
        last_word = word + 1 if kind == SHIFT else self.last_word
        return DerivationState(
            _next_top(self.top, decision, at), self.n_decisions + 1, last_word, decision, self
        )

    def stack(self) -> list[int]:
        """Return the symbols on the stack from the bottom (ROOT) to the top."""
        symbols = []
        node: StackNode | None = self.top
        while node is not None:
            symbols.append(node.symbol)
            node = node.below
        return symbols[::-1]

    def decisions(self) -> list[Decision]:
        """Return all decisions so far."""
        found = []
        state = self
        while state.decision is not None and state.before is not None:
            found.append(state.decision)
            state = state.before
        return found[::-1]


def _next_top(top: StackNode, decision: Decision, at: int) -> StackNode:
    """Return the top of the stack after a legal decision."""
    kind, symbol, word = decision
    below = top.below
    if kind == SHIFT:
        covered = StackNode(
            top.symbol, top.is_word, top.repeats, at, top.left_child, top.recent_child, top.left_word, below
        )
        return StackNode(symbol, True, False, NONE, NONE, NONE, word + 1, covered)
    if kind == PROJECT:
        repeats = symbol == top.symbol and not top.is_word
        return StackNode(symbol, False, repeats, NONE, at, at, top.left_word, below)
    assert below is not None
    return StackNode(
        below.symbol, False, False, below.latest, below.left_child, at, below.left_word, below.below
    )
