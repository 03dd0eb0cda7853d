"""Occurrences of features in one tree, given as arcs."""

from collections.abc import Sequence

import numpy as np

from treewright._typing import IntArray, Keys
from treewright.data.arcs import ArcEncoder
from treewright.data.deptree import DepTree
from treewright.native.mining.subtrees import N_DEPTHS


class ArcFeatures:
    """The arcs of a tree, indexed by modifier, and the indices of their basic features.

    Parameters
    ----------
    tree : DepTree
    encoder : ArcEncoder
        Computes the basic features of arcs.
    keys : ndarray of uint64
        The basic features to look for, in sorted order; the index of a feature is its position.
    """

    def __init__(self, tree: DepTree, encoder: ArcEncoder, keys: Keys) -> None:
        n = len(tree)
        arcs = np.zeros(n, dtype=np.int64), tree.heads.astype(np.int64), np.arange(1, n + 1)
        indptr, found = encoder.keys(encoder.encode([tree]), *arcs)
        numbers = np.minimum(np.searchsorted(keys, found), max(0, len(keys) - 1))
        is_known = keys[numbers] == found if len(keys) else np.zeros(len(found), dtype=np.bool_)
        self.is_present = np.zeros(len(keys), dtype=np.bool_)
        self.is_present[numbers[is_known]] = True
        self._numbers = [frozenset[int]()] + [
            frozenset(numbers[begin:end][is_known[begin:end]].tolist())
            for begin, end in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)
        ]
        self._having: dict[int, list[int]] = {}
        for word, present in enumerate(self._numbers):
            for number in present:
                self._having.setdefault(number, []).append(word)
        self._heads = [0, *tree.heads.tolist()]
        self._children: list[list[int]] = [[] for _ in range(n + 1)]
        for word in range(1, n + 1):
            self._children[self._heads[word]].append(word)

    def having(self, number: int) -> list[int]:
        """Return the words whose arcs have a basic feature."""
        return self._having.get(number, [])

    def candidates(self, features: Sequence[IntArray], *, n_depths: int = 1) -> list[tuple[int, list[int]]]:
        """Return the columns and items of the features whose basic features are all in the tree.

        `features` has an array for each order with one feature per row; an item is the index of a basic
        feature, or this index times `n_depths` plus a depth.
        """
        found, start = [], 0
        for each in features:
            rows = np.flatnonzero(self.is_present[each // n_depths].all(axis=1))
            found += [(start + row, each[row].tolist()) for row in rows.tolist()]
            start += len(each)
        return found

    def match_subtree(self, codes: Sequence[int]) -> list[int]:
        """Return the modifiers of the arcs of all occurrences of a sub feature tree.

        The feature has the format of `SubtreeSpace`. Its arcs are matched from left to right: each arc is a
        child of the previous arc, or the next sibling of an arc on the path to the previous arc.
        """
        fragments: list[tuple[tuple[int, ...], tuple[int, ...]]]
        fragments = [((word,), (word,)) for word in self.having(codes[0] // N_DEPTHS)]
        for code in codes[1:]:
            number, depth = divmod(code, N_DEPTHS)
            fragments = [
                ((*path[:depth], word), (*words, word))
                for path, words in fragments
                for word in self._next(path, depth)
                if number in self._numbers[word]
            ]
        return sorted({word for _, words in fragments for word in words})

    def _next(self, path: tuple[int, ...], depth: int) -> list[int]:
        """Return the arcs by which a fragment can be extended at a depth."""
        if depth == len(path):
            return self._children[path[-1]]
        siblings = self._children[self._heads[path[depth]]]
        after = siblings.index(path[depth]) + 1
        return siblings[after : after + 1]
