"""k-best lists of dependency trees for reranking."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, IntArray, Integers
from treewright.data.deptree import DepTree
from treewright.metrics.ratios import percent
from treewright.model import State
from treewright.parsing.dependency.parser import Structures


class TrainingLists(NamedTuple):
    """Candidate lists with their target candidates."""

    lists: "CandidateLists"
    right: Integers
    """Index of the target tree of each list among all candidates."""
    n_missing: int
    """Number of lists without the gold tree."""


class CandidateLists:
    """k-best trees of many sentences, as flat arrays.

    As in the output of the parser, trees have no relations, and their crossing arcs are lifted.

    Parameters
    ----------
    trees : sequence of DepTree
        The sentences, with the tags used for parsing.
    heads : sequence of ndarray of int32, (n_trees, n_words)
        Heads of the candidates of each sentence, the best tree first.
    scores : sequence of ndarray of float, (n_trees,)
        Parser score of each tree.
    probabilities : sequence of ndarray of float, (n_trees,)
        Parser probability of each tree among all trees of its sentence.

    Attributes
    ----------
    indptr : ndarray of int64, (n_lists + 1,)
        List i has the candidates from `indptr[i]` to `indptr[i + 1] - 1`.
    scores, probabilities : ndarray of float, (n_candidates,)
        Parser scores and probabilities of all candidates.

    See Also
    --------
    jackknife_lists : Makes candidate lists of training sentences by cross-validation.
    DependencyReranker : Reranks such lists.

    Examples
    --------
    >>> import numpy as np
    >>> import treewright as tw
    >>> sentence = tw.DepTree(["dogs", "sleep"])
    >>> heads = np.array([[2, 0], [0, 1]], dtype=np.int32)
    >>> lists = tw.CandidateLists([sentence], [heads], [np.array([1.5, 0.5])], [np.array([0.7, 0.2])])
    >>> lists.n_candidates, lists.candidate(1).heads.tolist()
    (2, [0, 1])
    """

    def __init__(
        self,
        trees: Sequence[DepTree],
        heads: Sequence[IntArray],
        scores: Sequence[FloatArray],
        probabilities: Sequence[FloatArray],
    ) -> None:
        self.trees = trees
        self.heads = heads
        self.indptr = np.concatenate([[0], np.cumsum([len(each) for each in heads])]).astype(np.int64)
        self.scores = np.concatenate([np.zeros(0), *scores])
        self.probabilities = np.concatenate([np.zeros(0), *probabilities])

    @classmethod
    def from_structures(cls, found: Sequence[Structures]) -> "CandidateLists":
        """Make lists from the k-best trees of a parser.

        Parameters
        ----------
        found : sequence of Structures
            k-best trees of each sentence, such as those from `DependencyParser.structures`.

        Returns
        -------
        CandidateLists
            One list per sentence.
        """
        return cls(
            [each.tree for each in found],
            [each.heads for each in found],
            [each.scores for each in found],
            [each.probabilities for each in found],
        )

    @classmethod
    def joined(cls, parts: Sequence["CandidateLists"]) -> "CandidateLists":
        """Concatenate several collections of lists.

        Parameters
        ----------
        parts : sequence of CandidateLists
            The collections, in the order of the result.

        Returns
        -------
        CandidateLists
            The lists of all collections.
        """
        return cls(
            [tree for part in parts for tree in part.trees],
            [heads for part in parts for heads in part.heads],
            [part.scores for part in parts],
            [part.probabilities for part in parts],
        )

    def __len__(self) -> int:
        return len(self.trees)

    @property
    def n_candidates(self) -> int:
        """Number of trees in all lists."""
        return int(self.indptr[-1])

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each list."""
        return pairwise(self.indptr.tolist())

    def candidate(self, number: int) -> DepTree:
        """Return a candidate by its index among all candidates.

        Parameters
        ----------
        number : int
            Index of the candidate, from 0 to `n_candidates` - 1.

        Returns
        -------
        DepTree
            The sentence with the heads of the candidate.
        """
        at = int(np.searchsorted(self.indptr, number, side="right")) - 1
        return self.trees[at].with_heads(self.heads[at][number - self.indptr[at]])

    def select(self, numbers: Sequence[int]) -> "CandidateLists":
        """Return the selected lists.

        Parameters
        ----------
        numbers : sequence of int
            Indices of the lists, from 0, in the order of the result.

        Returns
        -------
        CandidateLists
            The selected lists.
        """
        spans = list(self.spans())
        return CandidateLists(
            [self.trees[at] for at in numbers],
            [self.heads[at] for at in numbers],
            [self.scores[slice(*spans[at])] for at in numbers],
            [self.probabilities[slice(*spans[at])] for at in numbers],
        )

    def shortened(self, k: int) -> "CandidateLists":
        """Return the first `k` candidates of each list.

        Parameters
        ----------
        k : int
            Maximum number of candidates per list.

        Returns
        -------
        CandidateLists
            The shortened lists.
        """
        kept = [slice(begin, min(end, begin + k)) for begin, end in self.spans()]
        return CandidateLists(
            self.trees,
            [heads[:k] for heads in self.heads],
            [self.scores[each] for each in kept],
            [self.probabilities[each] for each in kept],
        )

    def best(self, scores: FloatArray) -> Integers:
        """Return the index of the highest-scoring candidate of each list; ties go to the first.

        Parameters
        ----------
        scores : ndarray of float, (n_candidates,)
            Score of each candidate.

        Returns
        -------
        ndarray of int64, (n_lists,)
            Indices among all candidates.
        """
        return np.array([begin + scores[begin:end].argmax() for begin, end in self.spans()], dtype=np.int64)

    def log_softmax(self, scores: FloatArray) -> FloatArray:
        """Return the log-probabilities of candidates by a softmax over each list.

        Parameters
        ----------
        scores : ndarray of float, (n_candidates,)
            Score of each candidate.

        Returns
        -------
        ndarray of float, (n_candidates,)
            Log-probability of each candidate within its list.
        """
        sizes, starts = np.diff(self.indptr), self.indptr[:-1]
        shifted = scores - np.repeat(np.maximum.reduceat(scores, starts), sizes)
        sums: FloatArray = np.log(np.add.reduceat(np.exp(shifted), starts))
        logs: FloatArray = shifted - np.repeat(sums, sizes)
        return logs

    def n_right(self, gold: Sequence[IntArray]) -> Integers:
        """Return the number of correct heads of each candidate.

        Parameters
        ----------
        gold : sequence of ndarray of int32, (n_words,)
            Gold heads of each sentence, with crossing arcs lifted.

        Returns
        -------
        ndarray of int64, (n_candidates,)
            Number of correct heads of each candidate.
        """
        counts = [(heads == right).sum(axis=1) for heads, right in zip(self.heads, gold, strict=True)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *counts])

    def uas(self, gold: Sequence[IntArray]) -> tuple[float, float]:
        """Return the UAS of the first trees and the oracle UAS.

        Parameters
        ----------
        gold : sequence of ndarray of int32, (n_words,)
            Gold heads of each sentence, with crossing arcs lifted.

        Returns
        -------
        tuple of (float, float)
            UAS of the first tree of each list, and UAS of the best tree of each list, in percent.
        """
        n_right, n_words = self.n_right(gold), sum(map(len, gold))
        best = np.maximum.reduceat(n_right, self.indptr[:-1])
        return percent(int(n_right[self.indptr[:-1]].sum()), n_words), percent(int(best.sum()), n_words)

    def with_gold(self, gold: Sequence[IntArray]) -> "TrainingLists":
        """Add the gold tree to lists that lack it, with the score of the last candidate.

        Parameters
        ----------
        gold : sequence of ndarray of int32, (n_words,)
            Gold heads of each sentence, with crossing arcs lifted.

        Returns
        -------
        TrainingLists
            The lists, the index of the gold tree of each list among all candidates (`right`), and the number
            of lists that lacked the gold tree (`n_missing`).
        """
        parts: tuple[list[npt.NDArray[Any]], ...] = ([], [], [])
        right: list[int] = []
        n_before = n_missing = 0
        for at, (begin, end) in enumerate(self.spans()):
            mine = [self.heads[at], self.scores[begin:end], self.probabilities[begin:end]]
            same = np.flatnonzero((mine[0] == gold[at]).all(axis=1))
            if len(same):
                right.append(n_before + int(same[0]))
            else:
                n_missing += 1
                right.append(n_before + len(mine[0]))
                mine = [
                    np.concatenate([mine[0], gold[at][np.newaxis]]),
                    *(np.append(x, x[-1]) for x in mine[1:]),
                ]
            n_before += len(mine[0])
            for part, each in zip(parts, mine, strict=True):
                part.append(each)
        lists = CandidateLists(self.trees, *parts)
        return TrainingLists(lists, np.array(right, dtype=np.int64), n_missing)

    def with_best(self, gold: Sequence[IntArray]) -> "TrainingLists":
        """Use the candidate with the most correct heads as the target of each list; add no trees.

        Parameters
        ----------
        gold : sequence of ndarray of int32, (n_words,)
            Gold heads of each sentence, with crossing arcs lifted.

        Returns
        -------
        TrainingLists
            The same lists, the index of the target tree of each list among all candidates (`right`), and the
            number of lists without the gold tree (`n_missing`).
        """
        n_right = self.n_right(gold)
        best = self.best(n_right.astype(np.float64))
        sizes = np.array([len(heads) for heads in gold])
        return TrainingLists(self, best, int((n_right[best] < sizes).sum()))

    def get_state(self) -> State:
        """Return the lists as a state, without the words of the sentences."""
        heads = np.concatenate([np.zeros(0, dtype=np.int32), *(each.ravel() for each in self.heads)])
        arrays = {"first": self.indptr, "heads": heads}
        return State(
            "CandidateLists", {}, {**arrays, "scores": self.scores, "probabilities": self.probabilities}
        )

    @classmethod
    def from_state(cls, state: State, trees: Sequence[DepTree]) -> "CandidateLists":
        """Restore the lists of these sentences from a state."""
        arrays = state.arrays
        bounds = arrays["first"].tolist()
        heads, scores, probabilities = [], [], []
        place = 0
        for tree, begin, end in zip(trees, bounds[:-1], bounds[1:], strict=True):
            size = (end - begin) * len(tree)
            heads.append(arrays["heads"][place : place + size].reshape(end - begin, len(tree)))
            place += size
            scores.append(arrays["scores"][begin:end])
            probabilities.append(arrays["probabilities"][begin:end])
        return cls(trees, heads, scores, probabilities)
