"""Sub feature trees to be matched in any number of trees."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from treewright._typing import IntArray, Integers, Keys
from treewright.native.data.arcs import find_keys, index_keys
from treewright.native.mining.forests import Features
from treewright.native.mining.matching import Marked
from treewright.native.mining.subtrees import N_DEPTHS


class Patterns:
    """Sub feature trees to be matched, prepared once for any number of trees.

    Parameters
    ----------
    keys : ndarray of uint64
        The basic features of the sub feature trees.
    features : sequence of ndarray of int32
        An array for each order, in the format of `SubtreeSpace`.
    """

    def __init__(self, keys: Keys, features: Sequence[IntArray]) -> None:
        self.keys = keys
        self.n_features = sum(map(len, features))
        self.slots = make_index(keys)
        self.marked = _mark(features, len(keys))

    def known(self, indptr: Integers, found: Keys) -> Features:
        """Return the indices of those basic features of arcs that are among the keys."""
        ids = np.empty(len(found), dtype=np.int32)
        find_keys(self.keys, self.slots, found, ids)
        n_before = np.concatenate([[0], np.cumsum(ids >= 0)])
        return Features(n_before[indptr], ids[ids >= 0])


class _Level(NamedTuple):
    """Nodes of the paths of one length: the index of the parent path, the last code, and the feature."""

    parents: Integers
    codes: Integers
    ends: Integers


def _levels(features: Sequence[IntArray]) -> Iterator[_Level]:
    """Yield the nodes of the paths of all features, shorter paths first."""
    firsts = np.cumsum([0, *map(len, features)])
    paths = [
        (np.zeros(len(each), dtype=np.int64), each, first)
        for each, first in zip(features, firsts[:-1], strict=True)
    ]
    for length in range(1, max((each.shape[1] for each in features), default=0) + 1):
        paths = [path for path in paths if path[1].shape[1] >= length]
        steps = np.concatenate([above << 32 | each[:, length - 1] for above, each, _ in paths])
        nodes, where = np.unique(steps, return_inverse=True)
        parts = np.split(where, np.cumsum([len(each) for _, each, _ in paths])[:-1])
        paths = [(part, *path[1:]) for part, path in zip(parts, paths, strict=True)]
        ends = np.full(len(nodes), -1, dtype=np.int64)
        for part, each, first in paths:
            if each.shape[1] == length:
                ends[part] = first + np.arange(len(each))
        yield _Level(nodes >> 32, nodes & 0xFFFFFFFF, ends)


def _mark(features: Sequence[IntArray], n_keys: int) -> Marked:
    """Return features as paths of codes."""
    nothing = np.zeros(0, dtype=np.int64)
    levels = [*_levels(features), _Level(nothing, nothing, nothing)]
    n_before = np.cumsum([0, *(len(level.codes) for level in levels)])
    first = [
        n_before[at + 1] + np.searchsorted(below.parents, np.arange(len(level.codes)))
        for at, (level, below) in enumerate(pairwise(levels))
    ]
    links = np.stack(
        [
            np.concatenate([*first, n_before[-1:]]),
            np.concatenate([*(level.ends for level in levels), [-1]]),
        ],
        axis=1,
    ).astype(np.int32)
    starts = np.full(n_keys, -1, dtype=np.int32)
    starts[levels[0].codes // N_DEPTHS] = np.arange(len(levels[0].codes))
    codes = np.concatenate([level.codes for level in levels]).astype(np.int32)
    return Marked(codes, links, starts)


def make_index(keys: Keys) -> IntArray:
    """Return a hash table that maps keys to their indices."""
    slots = np.full(1 << (2 * len(keys) + 1).bit_length(), -1, dtype=np.int32)
    index_keys(keys, slots)
    return slots
