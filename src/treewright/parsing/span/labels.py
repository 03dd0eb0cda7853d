"""Conversion between constituency trees and labelled spans.

The label of a span is the unary chain of all constituents with exactly these words, from the highest to the
lowest. A word that is not a constituent has the empty chain, which is number 0. Tags are not labels, and
neither is a root that all trees share.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from treewright._typing import FloatArray, IntArray
from treewright.data.consttree import LABEL, ConstTree
from treewright.errors import InputError
from treewright.model import Model, Value, expect, saved
from treewright.parsing.constituent.inferences import TaggedSentence

Chain = tuple[str, ...]
MAJORITY = 0.5 + 1e-4
"""Minimum probability of a predicted label, above a half so that rounding cannot make spans cross."""
TIE = 1e-9
"""Weight of the probability of a chain, which decides between chains with the same labels."""
TAGGED = 2
"""Number of nodes of a word with its tag."""


class LabelledSpans(NamedTuple):
    """The constituents of a tree: their starts, ends and label numbers."""

    starts: IntArray
    ends: IntArray
    labels: IntArray

    def rows(self, n: int) -> IntArray:
        """Return the numbers of the spans in the list of all spans of `n` words, sorted by start and end."""
        return span_rows(n, self.starts, self.ends)


def span_rows(n: int, starts: IntArray, ends: IntArray) -> IntArray:
    """Return the numbers of spans in the list of all spans of `n` words, sorted by start and end."""
    rows: IntArray = starts * n - starts * (starts - 1) // 2 + ends - starts - 1
    return rows


@lru_cache(maxsize=64)
def all_spans(n: int) -> tuple[IntArray, IntArray]:
    """Return read-only starts and ends of all spans of `n` words, in the order of `span_rows`."""
    starts, ends = (each.astype(np.int32) for each in np.triu_indices(n + 1, 1))
    starts.flags.writeable = ends.flags.writeable = False
    return starts, ends


def read_chains(texts: Any) -> list[Chain]:  # noqa: ANN401
    """Validate saved chains of labels."""
    if not isinstance(texts, list) or not all(isinstance(chain, list) for chain in texts):
        raise InputError("chains are not lists; expected a list of lists of labels")
    chains = [tuple(chain) for chain in texts]
    for chain in chains:
        for label in chain:
            if not isinstance(label, str) or not LABEL.fullmatch(label):
                raise InputError(f"a label is {label!r}; expected a string without white space")
    expect(bool(chains) and chains[0] == (), "the empty chain first")
    expect(all(chains[1:]) and len(set(chains)) == len(chains), "distinct chains")
    return chains


class SpanLabels(Model):
    """The vocabulary of span labels.

    Parameters
    ----------
    chains : sequence of tuple of str
        Chains of labels; the first one is empty.
    root : str or None
        The root label that all trees share, if it is not a constituent.
    """

    fields = saved(chains=Value(encode=lambda chains: [list(each) for each in chains], decode=read_chains))

    def __init__(self, chains: Sequence[Chain], root: str | None = None) -> None:
        self.chains = chains
        self.root = root
        self._numbers = {tuple(chain): number for number, chain in enumerate(chains)}

    @classmethod
    def from_trees(cls, trees: Iterable[ConstTree], root: str | None) -> "SpanLabels":
        """Collect the labels of trees, the most frequent first."""
        counts = Counter(chain for tree in trees for chain in collect_chains(tree, root).values())
        return cls([(), *sorted(counts, key=lambda chain: (-counts[chain], chain))], root)

    def __len__(self) -> int:
        return len(self.chains)

    def check_fitted_state(self) -> None:
        """Check the root label."""
        expect(self.root is None or LABEL.fullmatch(self.root) is not None, "a root without white space")

    def encode(self, tree: ConstTree) -> LabelledSpans | None:
        """Return the constituents of a tree; None if its root or a label is unknown."""
        if tree.is_leaf or (self.root is not None and tree.label != self.root):
            return None
        found = collect_chains(tree, self.root)
        labels = [self._numbers.get(chain, -1) for chain in found.values()]
        if -1 in labels:
            return None
        places = np.array(list(found), dtype=np.int32).reshape(-1, 2)
        return LabelledSpans(places[:, 0], places[:, 1], np.array(labels, dtype=np.int32))

    def decode(self, sentence: TaggedSentence, spans: LabelledSpans) -> ConstTree:
        """Return the tree over a sentence with these constituents."""
        begun: dict[int, list[tuple[int, int]]] = {}
        for start, end, label in zip(*(each.tolist() for each in spans), strict=True):
            if label:
                begun.setdefault(start, []).append((end, label))
        names: list[str] = []
        n_children: list[int] = []
        open_spans = [(-1, 0)]
        counts = [0]
        for place, (word, tag) in enumerate(zip(sentence.words, sentence.tags, strict=True)):
            for end, label in sorted(begun.get(place, ()), reverse=True):
                open_spans.append((end, label))
                counts.append(0)
            names += [word, tag]
            n_children += [0, 1]
            counts[-1] += 1
            while open_spans[-1][0] == place + 1:
                chain = self.chains[open_spans.pop()[1]]
                names += reversed(chain)
                n_children += [counts.pop()] + [1] * (len(chain) - 1)
                counts[-1] += 1
        if self.root is not None:
            names.append(self.root)
            n_children.append(counts[0])
        return ConstTree.from_child_counts(names, n_children)


def membership(bags: Iterable[Iterable[Hashable]]) -> FloatArray:
    """Return which items each bag has, 1 or 0, (n_bags, n_items).

    If a bag has an item twice, the second one is another item.
    """
    columns: dict[tuple[Hashable, int], int] = {}
    rows = [
        [columns.setdefault((item, at), len(columns)) for item, n in Counter(bag).items() for at in range(n)]
        for bag in bags
    ]
    found = np.zeros((len(rows), len(columns)))
    for row, own in zip(found, rows, strict=True):
        row[own] = 1.0
    return found


def majority_margins(probabilities: FloatArray, members: FloatArray) -> FloatArray:
    """Return by how much each chain of labels wins at each span, (n_spans, n_chains).

    It is the sum of the probabilities of its labels less a half each. The empty chain has 0. Of chains with
    the same labels, the most probable one wins.

    Parameters
    ----------
    probabilities : ndarray of float, (n_spans, n_chains)
        The probabilities of chains at spans.
    members : ndarray of float, (n_chains, n_labels)
        The labels of chains, from `membership`.
    """
    found: FloatArray = (probabilities @ members - MAJORITY) @ members.T + TIE * probabilities
    return found


def collect_chains(tree: ConstTree, root: str | None) -> dict[tuple[int, int], Chain]:
    """Return the chain of labels of each span (start, end) of a tree, the highest label first."""
    sizes = tree.sizes
    n_before = np.concatenate([[0], np.cumsum(sizes == 1)])
    inner = np.flatnonzero(sizes > TAGGED)
    if root is not None:
        inner = inner[:-1] if tree.n_nodes > TAGGED else inner
    starts = n_before[inner - sizes[inner] + 1].tolist()
    ends = n_before[inner + 1].tolist()
    labels = tree.labels
    found: dict[tuple[int, int], Chain] = {}
    for node, start, end in zip(inner.tolist(), starts, ends, strict=True):
        found[start, end] = (labels[node], *found.get((start, end), ()))
    return found
