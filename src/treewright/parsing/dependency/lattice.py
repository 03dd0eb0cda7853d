"""The scored parts of the trees of a sentence: the interface for other scorers.

A scorer gives each part a score; these scores determine the k-best trees and the probabilities of arcs.
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
"""Stands for a missing word: the sibling before the first modifier, or the modifier after the last."""


class Lattice:
    """All projective trees over some arcs of a sentence, represented by their scored parts.

    Parameters
    ----------
    keep : array of bool, (n + 1, n + 1)
        The arcs, with heads in rows; row 0 is the root.
    single_root : bool
        Whether trees have exactly one root.
    scores : mapping of str to array, optional
        Score of each part, by kind, in the order of `words`; missing kinds score 0.

    Attributes
    ----------
    scores : dict of str to array
        Scores of parts, by kind.
    arranged : Parts
        The parts in the form that the compiled code uses.

    See Also
    --------
    DependencyParser.lattices : The lattices of a trained parser.
    PartScorer : Base class of scorers of parts.

    Examples
    --------
    >>> import numpy as np
    >>> import treewright as tw
    >>> keep = np.array([[0, 1, 1], [0, 0, 1], [0, 1, 0]], dtype=bool)
    >>> lattice = tw.Lattice(keep)
    >>> lattice.words("arc").tolist()
    [[0, 1], [0, 2], [1, 2], [2, 1]]
    >>> heads, scores = lattice.best_trees(scores={"arc": np.array([1.0, 2.0, 0.0, 3.0])})
    >>> heads.tolist(), scores.tolist()
    ([[2, 0]], [5.0])
    """

    def __init__(
        self, keep: npt.NDArray[np.bool_], *, single_root: bool = True, scores: PartScores | None = None
    ) -> None:
        keep = np.array(keep, dtype=np.bool_)
        if keep.ndim != 2 or keep.shape[0] != keep.shape[1] or keep.shape[0] == 0:
            raise InputError(f"keep has shape {keep.shape}; expected a square matrix with a row for the root")
        if keep[:, 0].any() or keep.diagonal().any():
            raise InputError("keep has an arc to the root or from a word to itself; expected no such arcs")
        self.single_root = single_root
        self.arranged = native.arrange(keep)
        self.scores = self._whole(scores or {})

    @property
    def kinds(self) -> tuple[str, ...]:
        """The available kinds of parts."""
        return PART_KINDS

    @property
    def n_words(self) -> int:
        """Number of words of the sentence."""
        return len(self.arranged.first_in) - 2

    def words(self, kind: str) -> npt.NDArray[np.int32]:
        """Return the words of all parts of a kind, one row per part.

        Parameters
        ----------
        kind : {"arc", "pair", "grandchild", "grand_sibling", "triple"}
            Kind of the parts.

        Returns
        -------
        ndarray of int32, (n_parts, n_columns)
            Words of each part; 0 is the root, and -1 means no word. An arc has the columns (head, modifier),
            a pair (head, sibling, modifier), a grandchild (grandparent, head, modifier), a grand-sibling
            (grandparent, head, sibling, modifier), and a triple (head, outer sibling, sibling, modifier).
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
        """Return the same parts with other scores.

        Parameters
        ----------
        scores : mapping of str to array, (n_parts,)
            Score of each part, by kind, in the order of `words`; missing kinds score 0.

        Returns
        -------
        Lattice
            A lattice with the new scores; this lattice is not changed.
        """
        other = copy(self)
        other.scores = self._whole(scores)
        return other

    def contains(self, kind: str, heads: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Return which parts of a kind a tree has, given the heads of its words.

        Parameters
        ----------
        kind : {"arc", "pair", "grandchild", "grand_sibling", "triple"}
            Kind of the parts.
        heads : ndarray of int32, (n_words,)
            Head of each word, from 1; 0 is a root.

        Returns
        -------
        ndarray of bool, (n_parts,)
            Whether the tree has each part, in the order of `words`.
        """
        _check_kind(kind)
        found = np.zeros(len(self.scores[kind]), dtype=np.bool_)
        found[list(self._numbers_in_tree(kind, heads))] = True
        return found

    def _numbers_in_tree(self, kind: str, heads: npt.NDArray[np.int32]) -> Iterator[int]:
        """Yield the numbers of the parts of one kind that a tree has."""
        parts = self.arranged
        above = [NO_WORD, *heads.tolist()]
        for group in range(1, len(parts.first_arc) - 1):  # nothing is to the left of the root
            head, side = divmod(group, 2)
            first, last = int(parts.first_arc[group]), int(parts.first_arc[group + 1])
            places = {int(word): at for at, word in enumerate(parts.modifier[first:last])}
            inner = range(head + 1, len(above)) if side else range(head - 1, 0, -1)
            row = [places.get(word) for word in inner if above[word] == head]
            # Parts with an arc outside the lattice are not in the lattice.
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
            Maximum number of trees.
        scores : mapping of str to array, optional
            Scores that replace those of the lattice.
        """
        check_integer("k", k, minimum=1)
        graph, is_complete = self._chart(scores)
        if not is_complete:
            return np.empty((0, self.n_words), dtype=np.int32), np.empty(0)
        heads, totals = np.zeros((k, self.n_words + 1), dtype=np.int32), np.empty(k)
        n_found = best_trees(self.arranged, graph, heads, totals)
        return heads[:n_found, 1:], totals[:n_found]

    def marginals(self, scores: PartScores | None = None) -> tuple[npt.NDArray[np.float64], float]:
        """Return the probability of each head of each word, and the log partition function.

        The log potential of a tree is the sum of the scores of its parts.

        Parameters
        ----------
        scores : mapping of str to array, (n_parts,), optional
            Scores that replace those of the lattice, by kind; missing kinds score 0.

        Returns
        -------
        probabilities : ndarray of float64, (n_words, n_words + 1)
            Probability of each head (column) of each word (row); column 0 is the root. All are 0 if the
            lattice has no tree.
        log_partition : float
            Logarithm of the partition function; minus infinity if the lattice has no tree.
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
        """Return the probability of each part, by kind, and the log partition function.

        Parameters
        ----------
        scores : mapping of str to array, (n_parts,), optional
            Scores that replace those of the lattice, by kind; missing kinds score 0.

        Returns
        -------
        probabilities : dict of str to ndarray of float64, (n_parts,)
            Probability of each part, by kind, in the order of `words`. All are 0 if the lattice has no tree.
        log_partition : float
            Logarithm of the partition function; minus infinity if the lattice has no tree.
        """
        graph, is_complete = self._chart(scores)
        found = {kind: np.zeros(len(each)) for kind, each in self.scores.items()}
        if not is_complete:
            return found, -np.inf
        nodes, shares = np.empty(graph.arc.size), np.empty(graph.left.size)
        log_sum = fill_marginals(graph, 1.0, nodes)
        fill_edge_marginals(graph, nodes, shares)
        for kind, probabilities in found.items():
            # An edge has at most one part of a kind, and its weight is the sum of the scores of its parts.
            # In this chart, the score of each part of this kind is its number, and other parts score 0.
            # Therefore, the weight of an edge is the number of its part.
            numbered, _ = self._chart({kind: np.arange(1.0, len(probabilities) + 1)})
            numbers = numbered.weight.astype(np.int64)
            probabilities += np.bincount(numbers, shares, minlength=len(probabilities) + 1)[1:]
        return found, float(log_sum)

    def _chart(self, scores: PartScores | None) -> tuple[Hypergraph, bool]:
        chosen = self.scores if scores is None else self._whole(scores)
        graph, is_complete = build_chart(self.arranged, native.ScoreArrays(**chosen), self.single_root)
        return graph, bool(is_complete)

    def _whole(self, scores: PartScores) -> dict[str, npt.NDArray[np.float64]]:
        """Check the scores, and add zeros for missing kinds of parts."""
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
                raise InputError(f"{kind} has scores that are NaN or infinite; expected finite numbers")
            whole[kind] = found
        return whole


def _check_kind(kind: str) -> None:
    if kind not in PART_KINDS:
        raise InputError(f"kind is {kind!r}; expected one of {', '.join(PART_KINDS)}")
