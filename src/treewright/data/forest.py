"""Forest: many trees as flat arrays."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import Integers
from treewright.data.consttree import ConstTree

Ints = npt.NDArray[np.int32]


class Forest(NamedTuple):
    """Trees in post-order, one after the other.

    Attributes
    ----------
    symbols : ndarray of int32, (n_nodes,)
        Numbers of labels.
    sizes : ndarray of int32, (n_nodes,)
        The nodes under each node, itself included.
    indptr : ndarray of int64, (n_trees + 1,)
        The first node of each tree, and the number of all nodes.
    labels : list of str
        What each symbol stands for.
    """

    symbols: Ints
    sizes: Ints
    indptr: Integers
    labels: list[str]

    @classmethod
    def from_trees(cls, trees: Sequence[ConstTree]) -> "Forest":
        """Put trees into arrays; symbols are numbered as they come."""
        numbers = _Numbers()
        labels = [tree.labels for tree in trees]
        indptr = np.zeros(len(trees) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in labels], out=indptr[1:])
        found = map(numbers.__getitem__, chain.from_iterable(labels))
        symbols = np.fromiter(found, dtype=np.int32, count=int(indptr[-1]))
        sizes = np.concatenate([np.empty(0, dtype=np.int32), *(tree.sizes for tree in trees)])
        return cls(symbols, sizes, indptr, list(numbers))

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return len(self.indptr) - 1

    def select(self, numbers: npt.ArrayLike) -> "Forest":
        """Return some of the trees, by their numbers; symbols stay the same."""
        chosen = np.asarray(numbers, dtype=np.int64)
        lengths = (self.indptr[1:] - self.indptr[:-1])[chosen]
        indptr = np.zeros(len(chosen) + 1, dtype=np.int64)
        np.cumsum(lengths, out=indptr[1:])
        nodes = np.repeat(self.indptr[chosen] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return Forest(self.symbols[nodes], self.sizes[nodes], indptr, self.labels)

    def joined(self, other: "Forest") -> "Forest":
        """Return these trees, and after them those of another forest."""
        numbers = _Numbers(zip(self.labels, range(len(self.labels)), strict=True))
        symbols = np.array([numbers[label] for label in other.labels], dtype=np.int32)
        return Forest(
            np.concatenate([self.symbols, symbols[other.symbols]]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]]),
            list(numbers),
        )

    def without_leaves(self) -> "Forest":
        """Return the trees without their words, so that tags are leaves; a lone leaf leaves nothing."""
        is_kept = self.sizes > 1
        kept_before = np.concatenate([[0], np.cumsum(is_kept)])
        nodes = np.flatnonzero(is_kept)
        sizes = kept_before[nodes + 1] - kept_before[nodes + 1 - self.sizes[nodes]]
        return Forest(self.symbols[nodes], sizes.astype(np.int32), kept_before[self.indptr], self.labels)


class _Numbers(dict[str, int]):
    """A number for each string, the next one for one that is new."""

    def __missing__(self, string: str) -> int:
        number = self[string] = len(self)
        return number
