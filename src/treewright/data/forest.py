"""Forest: many trees as flat arrays."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import Integers
from treewright.data.consttree import ConstTree

Ints = npt.NDArray[np.int32]


class Forest(NamedTuple):
    """Trees in post-order, concatenated.

    Attributes
    ----------
    symbols : ndarray of int32, (n_nodes,)
        Label id of each node.
    sizes : ndarray of int32, (n_nodes,)
        Size of the subtree at each node.
    indptr : ndarray of int64, (n_trees + 1,)
        The index of the first node of each tree; the last entry is the total number of nodes.
    labels : list of str
        The label of each id.
    """

    symbols: Ints
    sizes: Ints
    indptr: Integers
    labels: list[str]

    @classmethod
    def from_trees(cls, trees: Sequence[ConstTree]) -> "Forest":
        """Convert trees to arrays; label ids are in order of first occurrence."""
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__  # a new label gets the next id
        labels = [tree.labels for tree in trees]
        indptr = np.zeros(len(trees) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in labels], out=indptr[1:])
        found = map(numbers.__getitem__, chain.from_iterable(labels))
        symbols = np.fromiter(found, dtype=np.int32, count=int(indptr[-1]))
        sizes = np.concatenate([np.empty(0, dtype=np.int32), *(tree.sizes for tree in trees)])
        return cls(symbols, sizes, indptr, list(numbers))

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.indptr) - 1

    def select(self, numbers: npt.ArrayLike) -> "Forest":
        """Return the trees with these indices; label ids stay the same."""
        chosen = np.asarray(numbers, dtype=np.int64)
        lengths = (self.indptr[1:] - self.indptr[:-1])[chosen]
        indptr = np.zeros(len(chosen) + 1, dtype=np.int64)
        np.cumsum(lengths, out=indptr[1:])
        nodes = np.repeat(self.indptr[chosen] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return Forest(self.symbols[nodes], self.sizes[nodes], indptr, self.labels)

    def joined(self, other: "Forest") -> "Forest":
        """Return these trees followed by those of another forest."""
        numbers = defaultdict[str, int](None, zip(self.labels, range(len(self.labels)), strict=True))
        numbers.default_factory = numbers.__len__
        symbols = np.array([numbers[label] for label in other.labels], dtype=np.int32)
        return Forest(
            np.concatenate([self.symbols, symbols[other.symbols]]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]]),
            list(numbers),
        )

    def without_leaves(self) -> "Forest":
        """Return the trees without words, so that tags are leaves; a tree that is a leaf becomes empty."""
        is_kept = self.sizes > 1
        kept_before = np.concatenate([[0], np.cumsum(is_kept)])
        nodes = np.flatnonzero(is_kept)
        sizes = kept_before[nodes + 1] - kept_before[nodes + 1 - self.sizes[nodes]]
        return Forest(self.symbols[nodes], sizes.astype(np.int32), kept_before[self.indptr], self.labels)
