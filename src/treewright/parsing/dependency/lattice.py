"""The parts of the trees of one sentence, with their scores: where another scorer is plugged in.

A scorer gives each part a number; the best trees, and the probabilities of arcs, follow from these alone.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from treewright._validate import check_integer
from treewright.errors import InputError
from treewright.native.dependency import parts as native
from treewright.native.dependency.charts import build_chart
from treewright.native.dependency.corpus import best_trees
from treewright.native.dependency.features import ROOT
from treewright.native.hypergraph import Hypergraph, fill_marginals
from treewright.parsing.dependency.features import KINDS, ROLES

PART_KINDS = native.Scores._fields
"""The kinds of parts: arc, pair, grandchild, grand_sibling, triple."""
NO_WORD = -1
"""Stands for the sibling of a first modifier, and for the modifier after the last."""

PartScores = Mapping[str, npt.NDArray[np.float64]]


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
        self._parts = native.arrange(keep)
        self.scores = self._whole(scores or {})

    @property
    def n_words(self) -> int:
        """Number of words of the sentence."""
        return len(self._parts.first_in) - 2

    def words(self, kind: str) -> npt.NDArray[np.int32]:
        """Return the words of all parts of a kind, one part a row.

        Columns are those of an arc (head, modifier), a pair (head, sibling, modifier), a grandchild
        (grandparent, head, modifier), a grand-sibling (grandparent, head, sibling, modifier), or a triple
        (head, outer sibling, sibling, modifier); 0 is the root and -1 no word.
        """
        if kind == "arc":
            columns = native.list_arcs(self._parts.head, self._parts.modifier)
        elif kind == "pair":
            columns = native.list_pairs(self._parts)
        elif kind == "grandchild":
            columns = native.list_grandchildren(self._parts)
        elif kind == "grand_sibling":
            columns = native.list_grand_siblings(self._parts, native.list_pairs(self._parts))
        elif kind == "triple":
            columns = native.list_triples(self._parts)
        else:
            raise InputError(f"kind is {kind!r}; expected one of {', '.join(PART_KINDS)}")
        rows = columns[[ROLES[letter] for letter in KINDS[kind]]].T
        found: npt.NDArray[np.int32] = np.where(rows < ROOT, NO_WORD, rows - ROOT).astype(np.int32)
        return found

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
        n_found = best_trees(self._parts, graph, heads, totals)
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
        np.add.at(square, (self._parts.modifier[arcs] - 1, self._parts.head[arcs]), probability[is_arc])
        return square, float(log_sum)

    def _chart(self, scores: PartScores | None) -> tuple[Hypergraph, bool]:
        chosen = self.scores if scores is None else self._whole(scores)
        graph, is_complete = build_chart(self._parts, native.Scores(**chosen), self.single_root)
        return graph, bool(is_complete)

    def _whole(self, scores: PartScores) -> dict[str, npt.NDArray[np.float64]]:
        """Check scores and fill up kinds that are missing."""
        unknown = set(scores) - set(PART_KINDS)
        if unknown:
            raise InputError(f"kind is {min(unknown)!r}; expected one of {', '.join(PART_KINDS)}")
        parts = self._parts
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
