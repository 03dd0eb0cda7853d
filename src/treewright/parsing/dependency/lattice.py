"""The parts of the trees of one sentence, with their scores: where another scorer is plugged in.

A scorer gives each part a number; the best trees, and the probabilities of arcs, follow from these alone.
"""

from collections.abc import Iterator
from copy import copy

import numpy as np
import numpy.typing as npt

from treewright._validate import check_integer
from treewright.errors import InputError
from treewright.native.dependency import parts as native
from treewright.native.dependency.charts import build_chart
from treewright.native.dependency.corpus import best_trees
from treewright.native.dependency.features import ROOT
from treewright.native.hypergraph import Hypergraph, fill_edge_marginals, fill_marginals
from treewright.parsing.contract import PartScores
from treewright.parsing.dependency.features import KINDS, ROLES

PART_KINDS = native.ScoreArrays._fields
"""The kinds of parts: arc, pair, grandchild, grand_sibling, triple."""
NO_WORD = -1
"""Stands for the sibling of a first modifier, and for the modifier after the last."""


class Lattice:
    """All projective trees over some arcs of a sentence, by the parts that they are made of.

    Parameters
    ----------
    keep : array of bool, (n + 1, n + 1)
        The arcs, heads in rows, 0 for the root.
    single_root : bool
        Whether one word hangs on the root.
    scores : mapping of str to array, optional
        A number for each part of a kind, in the order of `words`; kinds that are missing score 0.

    Attributes
    ----------
    scores : dict of str to array
        By kind.
    arranged : Parts
        The parts as compiled code numbers them.
    """

    def __init__(
        self, keep: npt.NDArray[np.bool_], *, single_root: bool = True, scores: PartScores | None = None
    ) -> None:
        keep = np.array(keep, dtype=np.bool_)
        if keep.ndim != 2 or keep.shape[0] != keep.shape[1] or keep.shape[0] == 0:
            raise InputError(f"keep has shape {keep.shape}; expected a square with a row for the root")
        if keep[:, 0].any() or keep.diagonal().any():
            raise InputError("keep has an arc to the root or from a word to itself; expected none")
        self.single_root = single_root
        self.arranged = native.arrange(keep)
        self.scores = self._whole(scores or {})

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of parts that there are."""
        return PART_KINDS

    @property
    def n_words(self) -> int:
        """Number of words of the sentence."""
        return len(self.arranged.first_in) - 2

    def words(self, kind: str) -> npt.NDArray[np.int32]:
        """Return the words of all parts of a kind, one part a row.

        Columns are those of an arc (head, modifier), a pair (head, sibling, modifier), a grandchild
        (grandparent, head, modifier), a grand-sibling (grandparent, head, sibling, modifier), or a triple
        (head, outer sibling, sibling, modifier); 0 is the root and -1 no word.
        """
        _check_kind(kind)
        if kind == "arc":
            columns = native.list_arcs(self.arranged.head, self.arranged.modifier)
        elif kind == "pair":
            columns = native.list_pairs(self.arranged)
        elif kind == "grandchild":
            columns = native.list_grandchildren(self.arranged)
        elif kind == "grand_sibling":
            columns = native.list_grand_siblings(self.arranged, native.list_pairs(self.arranged))
        else:
            columns = native.list_triples(self.arranged)
        rows = columns[[ROLES[letter] for letter in KINDS[kind]]].T
        found: npt.NDArray[np.int32] = np.where(rows < ROOT, NO_WORD, rows - ROOT).astype(np.int32)
        return found

    def with_scores(self, scores: PartScores) -> "Lattice":
        """Return the same parts with other scores."""
        other = copy(self)
        other.scores = self._whole(scores)
        return other

    def contains(self, kind: str, heads: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Tell which parts of a kind a tree has; `heads` are those of its words."""
        _check_kind(kind)
        found = np.zeros(len(self.scores[kind]), dtype=np.bool_)
        found[list(self._numbers_in_tree(kind, heads))] = True
        return found

    def _numbers_in_tree(self, kind: str, heads: npt.NDArray[np.int32]) -> Iterator[int]:
        """Yield the numbers of the parts of a kind that a tree is made of."""
        parts = self.arranged
        above = [NO_WORD, *heads.tolist()]
        for group in range(1, len(parts.first_arc) - 1):  # to the left of the root, there is nothing
            head, side = divmod(group, 2)
            first, last = int(parts.first_arc[group]), int(parts.first_arc[group + 1])
            places = {int(word): at for at, word in enumerate(parts.modifier[first:last])}
            inner = range(head + 1, len(above)) if side else range(head - 1, 0, -1)
            row = [places.get(word) for word in inner if above[word] == head]
            # Parts with arcs that are not in the lattice are not there either.
            into = parts.arcs_in[parts.first_in[head] : parts.first_in[head + 1]]
            at = next((at for at, arc in enumerate(into) if parts.head[arc] == above[head]), None)
            pairs = [
                int(parts.first_pair[group]) + k * (k + 1) // 2 + j + 1
                for j, k in zip([-1, *row], [*row, last - first], strict=True)
                if j is not None and k is not None
            ]
            arcs = [first + place for place in row if place is not None]
            if kind == "arc":
                yield from arcs
            elif kind == "pair":
                yield from pairs
            elif kind == "triple":
                yield from (
                    int(parts.first_triple[group]) + k * (k - 1) * (k - 2) // 6 + j * (j - 1) // 2 + i
                    for i, j, k in zip(row, row[1:], row[2:], strict=False)
                    if i is not None and j is not None and k is not None
                )
            elif at is not None and kind == "grandchild":
                start, end = int(parts.first_arc[2 * head]), int(parts.first_arc[2 * head + 2])
                offset = int(parts.first_grandchild[head]) + at * (end - start) - start
                yield from (offset + arc for arc in arcs)
            elif at is not None and kind == "grand_sibling":
                start, end = int(parts.first_pair[2 * head]), int(parts.first_pair[2 * head + 2])
                offset = int(parts.first_grand_sibling[head]) + at * (end - start) - start
                yield from (offset + pair for pair in pairs)

    def best_trees(
        self, k: int = 1, scores: PartScores | None = None
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return the heads of the `k` best trees, (up to k, n), and their scores.

        Parameters
        ----------
        k : int
        scores : mapping of str to array, optional
            To be used instead of the lattice's own.
        """
        check_integer("k", k, minimum=1)
        graph, is_complete = self._chart(scores)
        if not is_complete:
            return np.empty((0, self.n_words), dtype=np.int32), np.empty(0)
        heads, totals = np.zeros((k, self.n_words + 1), dtype=np.int32), np.empty(k)
        n_found = best_trees(self.arranged, graph, heads, totals)
        return heads[:n_found, 1:], totals[:n_found]

    def marginals(self, scores: PartScores | None = None) -> tuple[npt.NDArray[np.float64], float]:
        """Return the probability that a word's head is the column, (n, n + 1), and the log of the sum.

        Scores are logarithms of weights of trees.
        """
        graph, is_complete = self._chart(scores)
        square = np.zeros((self.n_words, self.n_words + 1))
        if not is_complete:
            return square, -np.inf
        probability = np.empty(graph.arc.size)
        log_sum = fill_marginals(graph, 1.0, probability)
        is_arc = graph.arc >= 0
        arcs = graph.arc[is_arc]
        np.add.at(square, (self.arranged.modifier[arcs] - 1, self.arranged.head[arcs]), probability[is_arc])
        return square, float(log_sum)

    def part_marginals(
        self, scores: PartScores | None = None
    ) -> tuple[dict[str, npt.NDArray[np.float64]], float]:
        """Return the probability of each part, by kind, and the log of the sum; scores as in `marginals`."""
        graph, is_complete = self._chart(scores)
        found = {kind: np.zeros(len(each)) for kind, each in self.scores.items()}
        if not is_complete:
            return found, -np.inf
        nodes, shares = np.empty(graph.arc.size), np.empty(graph.left.size)
        log_sum = fill_marginals(graph, 1.0, nodes)
        fill_edge_marginals(graph, nodes, shares)
        for kind, probabilities in found.items():
            # An edge has one part of a kind at the most, and its weight is the sum of those of its parts. So
            # charts whose parts weigh as much as their numbers, and all others nothing, tell which it has.
            numbered, _ = self._chart({kind: np.arange(1.0, len(probabilities) + 1)})
            numbers = numbered.weight.astype(np.int64)
            probabilities += np.bincount(numbers, shares, minlength=len(probabilities) + 1)[1:]
        return found, float(log_sum)

    def _chart(self, scores: PartScores | None) -> tuple[Hypergraph, bool]:
        chosen = self.scores if scores is None else self._whole(scores)
        graph, is_complete = build_chart(self.arranged, native.ScoreArrays(**chosen), self.single_root)
        return graph, bool(is_complete)

    def _whole(self, scores: PartScores) -> dict[str, npt.NDArray[np.float64]]:
        """Check scores and fill up kinds that are missing."""
        for kind in scores:
            _check_kind(kind)
        parts = self.arranged
        sizes = (
            len(parts.head),
            *(int(first[-1]) for first in (parts.first_pair, parts.first_grandchild)),
            *(int(first[-1]) for first in (parts.first_grand_sibling, parts.first_triple)),
        )
        whole = {}
        for kind, size in zip(PART_KINDS, sizes, strict=True):
            found = np.ascontiguousarray(scores.get(kind, np.zeros(size)), dtype=np.float64)
            if found.shape != (size,):
                raise InputError(f"{kind} has scores of shape {found.shape}; expected ({size},)")
            if not np.isfinite(found).all():
                raise InputError(f"{kind} has scores that are not finite; expected numbers")
            whole[kind] = found
        return whole


def _check_kind(kind: str) -> None:
    if kind not in PART_KINDS:
        raise InputError(f"kind is {kind!r}; expected one of {', '.join(PART_KINDS)}")
