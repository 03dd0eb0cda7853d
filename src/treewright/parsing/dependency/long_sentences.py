"""Parsing of sentences that are too long for charts, because chart time grows with the cube of the length.

Such a sentence is cut into pieces, after punctuation if possible, and each piece is parsed separately. The
root of the first piece becomes the root of the sentence; the roots of the other pieces become its dependents.
"""

import heapq
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray
from treewright.data.deptree import DepTree
from treewright.parsing.dependency.constraints import FixedHeads

Heads: TypeAlias = npt.NDArray[np.int32]
Trees: TypeAlias = tuple[Heads, FloatArray, FloatArray]
"""Heads (n_trees, n_words), scores and probabilities of the k-best trees, the best first."""

LONGEST = 500
"""Maximum length of a sentence that is parsed as a whole."""
LONGEST_PIECE = 128
"""Maximum length of a piece; short pieces are faster, because time grows faster than linearly."""
FINAL = frozenset(".!?;。！？；")


class Pieces:
    """Sentences, of which the long ones are cut into pieces.

    Sentences with fixed heads are not cut, because a fixed arc may connect two pieces.

    Parameters
    ----------
    trees : sequence of DepTree
        The sentences.
    fixed : sequence of mapping, optional
        Fixed heads of each sentence.
    longest : int or None
        Maximum length of a sentence that is not cut; with None, no sentence is cut.

    Attributes
    ----------
    trees : list of DepTree
        The pieces.
    fixed : list of mapping, or None
        Fixed heads of each piece.
    is_whole : bool
        Whether no sentence was cut.
    """

    def __init__(
        self,
        trees: Sequence[DepTree],
        fixed: Sequence[FixedHeads] | None,
        *,
        longest: int | None = LONGEST,
    ) -> None:
        self._bounds = [
            [0, len(tree)]
            if longest is None or len(tree) <= longest or (fixed and fixed[number])
            else cut(tree.words, min(longest, LONGEST_PIECE))
            for number, tree in enumerate(trees)
        ]
        self.is_whole = all(len(bounds) == 2 for bounds in self._bounds)
        self.trees, self.fixed = list(trees), None if fixed is None else list(fixed)
        if not self.is_whole:
            self.trees = [
                each
                for tree, bounds in zip(trees, self._bounds, strict=True)
                for each in _take_apart(tree, bounds)
            ]
            if fixed is not None:
                self.fixed = [
                    arcs
                    for arcs, bounds in zip(fixed, self._bounds, strict=True)
                    for _ in range(len(bounds) - 1)
                ]

    def join_trees(self, found: Sequence[Trees], k: int, *, single_root: bool) -> list[Trees]:
        """Join the k-best trees of pieces into k-best trees of sentences."""
        waiting = iter(found)
        joined = []
        for bounds in self._bounds:
            own = [next(waiting) for _ in bounds[1:]]
            joined.append(own[0] if len(own) == 1 else _join_trees(own, bounds, k, single_root=single_root))
        return joined

    def join_squares(self, squares: Sequence[FloatArray], *, single_root: bool) -> list[FloatArray]:
        """Join the arc probabilities of pieces into arc probabilities of sentences; row 0 is the root."""
        waiting = iter(squares)
        joined = []
        for bounds in self._bounds:
            own = [next(waiting) for _ in bounds[1:]]
            joined.append(own[0] if len(own) == 1 else _join_squares(own, bounds, single_root=single_root))
        return joined


def cut(words: Sequence[str], longest: int) -> list[int]:
    """Return the start of each piece, and the end of the last; pieces end after punctuation if possible."""
    bounds = [0]
    while len(words) - bounds[-1] > longest:
        ends = range(bounds[-1] + longest, bounds[-1] + longest // 2, -1)
        final = (end for end in ends if words[end - 1] in FINAL)
        other = (end for end in ends if not any(map(str.isalnum, words[end - 1])))
        bounds.append(next(final, None) or next(other, None) or ends[0])
    return [*bounds, len(words)]


def _take_apart(tree: DepTree, bounds: Sequence[int]) -> list[DepTree]:
    if len(bounds) == 2:
        return [tree]
    columns = {name: getattr(tree, name) for name in ("lemmas", "upos", "xpos", "feats")}
    return [
        DepTree(tree.words[begin:end], **{name: column[begin:end] for name, column in columns.items()})
        for begin, end in pairwise(bounds)
    ]


def _join_trees(pieces: Sequence[Trees], bounds: Sequence[int], k: int, *, single_root: bool) -> Trees:
    ranks, scores = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    for _, own, _ in pieces:
        pairs, scores = best_sums(scores, own, k)
        ranks = np.hstack([ranks[pairs[:, 0]], pairs[:, 1:]])
    chosen = [heads[ranks[:, number]] for number, (heads, _, _) in enumerate(pieces)]
    joined = [np.where(heads > 0, heads + begin, 0) for heads, begin in zip(chosen, bounds, strict=False)]
    if single_root:
        roots = np.argmax(chosen[0] == 0, axis=1) + 1
        joined[1:] = [np.where(heads > 0, heads, roots[:, np.newaxis]) for heads in joined[1:]]
    shares = [each[ranks[:, number]] for number, (_, _, each) in enumerate(pieces)]
    return np.hstack(joined).astype(np.int32), scores, np.prod(shares, axis=0)


def best_sums(left: FloatArray, right: FloatArray, k: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the `k` largest sums of a number from `left` and a number from `right`.

    Both lists are in descending order. The result consists of the index pairs, (n, 2), and the sums.
    """
    waiting = [(-(left[0] + right[0]), 0, 0)]
    places: list[tuple[int, int]] = []
    sums: list[float] = []
    while waiting and len(places) < k:
        negative, one, other = heapq.heappop(waiting)
        places.append((one, other))
        sums.append(-negative)
        if other + 1 < len(right):
            heapq.heappush(waiting, (-(left[one] + right[other + 1]), one, other + 1))
        if other == 0 and one + 1 < len(left):
            heapq.heappush(waiting, (-(left[one + 1] + right[0]), one + 1, 0))
    return np.array(places), np.array(sums)


def _join_squares(squares: Sequence[FloatArray], bounds: Sequence[int], *, single_root: bool) -> FloatArray:
    joined = np.zeros((bounds[-1] + 1, bounds[-1] + 1))
    first_roots = squares[0][0, 1:]
    for number, (square, begin) in enumerate(zip(squares, bounds, strict=False)):
        words = slice(begin + 1, begin + len(square))
        joined[words, words] = square[1:, 1:]
        if number and single_root:
            joined[1 : len(first_roots) + 1, words] += np.outer(first_roots, square[0, 1:])
        else:
            joined[0, words] = square[0, 1:]
    return joined
