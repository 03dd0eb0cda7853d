"""The efficient TOP-reranking kernel over the output layer of a network that scores arcs.

The features of a tree are the derivatives of its log odds among the trees of its list (Titov & Henderson
2005, equation 18), with respect to the weights that arcs are scored by. The network chooses a head for each
word by a soft-max of its own, which is the same for all trees of a sentence; so the normalisers, which the
efficient kernel holds fixed, would have no derivatives anyway, and this is the TOP-reranking kernel itself.

The derivative of the logarithm of a tree's probability is a sum, over its arcs, of the product of the vectors
of modifier and head. There are as many features as weights, over a hundred thousand; but the scores of all
trees of a sentence, and every step of the perceptron, are products of a few matrices of vectors of words.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, IntArray, Integers
from treewright.errors import InputError
from treewright.kernels.derived import rerank_scores, rival_shares
from treewright.model import Array, Model, expect, saved
from treewright.parsing.contract import PartScorer
from treewright.parsing.dependency.combined import CombinedScorer
from treewright.parsing.dependency.parser import DependencyParser
from treewright.parsing.neural.scorer import NeuralScorer
from treewright.progress import report, track
from treewright.rerank.candidates import CandidateLists
from treewright.scale import one_blas_thread

READ_AT_A_TIME = 256
"""Lists."""
BASE_WEIGHT = 3.0
"""What the log odds by the parser are multiplied by in training, where the features of a list are as long as
1 on average. With less, a single mistake outweighs the parser."""


def find_network(parser: DependencyParser) -> NeuralScorer:
    """Return the network of a parser, alone or beside a linear model."""
    scorer: PartScorer | None = vars(parser).get("scorer_", parser.scorer)
    if isinstance(scorer, CombinedScorer):
        scorer = scorer.other
    if not isinstance(scorer, NeuralScorer):
        raise InputError("the parser has no network; expected one with a NeuralScorer")
    return scorer


class ListVectors(NamedTuple):
    """The trees of a list as the kernel sees them.

    Attributes
    ----------
    modifiers : array, (n_networks, n_words, size + 1)
        Of the words; the last column is 1, for the biases.
    heads : array, (n_networks, n_words + 1, size)
        Of the root and the words.
    candidates : array of int, (n_candidates, n_words)
        The heads of words.
    mixture : array, (n_candidates, n_candidates)
        Each tree less the mean of its rivals.
    """

    modifiers: FloatArray
    heads: FloatArray
    candidates: IntArray
    mixture: FloatArray

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return the products of weights, (n_networks, size + 1, size), with the features of each tree."""
        arcs = (self.modifiers @ weights @ self.heads.transpose(0, 2, 1)).sum(axis=0)
        sums = arcs[np.arange(arcs.shape[0]), self.candidates].sum(axis=1)
        found: FloatArray = self.mixture @ sums
        return found

    def features(self, amounts: FloatArray) -> FloatArray:
        """Return the sum of the features of trees, each times its amount, in the shape of weights."""
        counts = np.zeros((self.candidates.shape[1], self.heads.shape[1]))
        words = np.arange(self.candidates.shape[1])
        for heads, amount in zip(self.candidates, amounts @ self.mixture, strict=True):
            counts[words, heads] += amount
        found: FloatArray = self.modifiers.transpose(0, 2, 1) @ (counts @ self.heads)
        return found


class NetworkKernelScorer(Model):
    """Scores candidates by a perceptron over the features of the kernel, with updates scaled by losses.

    Parameters
    ----------
    epochs : int
        Passes over the lists.
    random_state : int

    Attributes
    ----------
    weights_ : ndarray of float, (n_networks, size + 1, size)
        The mean of all weights that the perceptron passes through.
    """

    fields = saved(weights_=Array("f", 3))
    weights_: npt.NDArray[np.float32]

    def __init__(self, *, epochs: int = 1, random_state: int = 0) -> None:
        self.epochs = epochs
        self.random_state = random_state

    @property
    def n_features(self) -> int:
        """How many there are, of all networks."""
        return int(self.weights_.size)

    def attach(self, parser: DependencyParser) -> Self:
        """Have the network of a parser."""
        self._network, self._scale = find_network(parser), parser.scale_
        return self

    _network: NeuralScorer
    _scale: float

    def check_network(self) -> None:
        """Check that the weights are those of the network."""
        expect(self.weights_.shape == self._shape, "weights of the output layer of the network")

    @one_blas_thread
    def fit(self, lists: CandidateLists, right: Integers) -> Self:
        """Learn from lists of which the right candidates are known; the network must be attached.

        Each tree is compared with the right one of its list. If it scores as high, the weights move towards
        the right one by the share of the words that have another head.
        """
        rng = np.random.default_rng(self.random_state)
        weights = np.zeros(self._shape)
        late = np.zeros_like(weights)
        unit = self._find_unit(lists, rng.permutation(len(lists))[:READ_AT_A_TIME])
        n_seen = n_updates = 0
        for _ in range(self.epochs):
            for number, vectors in self._read(lists, rng.permutation(len(lists)), "learning to rerank"):
                begin, end = lists.indptr[number], lists.indptr[number + 1]
                best = int(right[number] - begin)
                losses = (vectors.candidates != vectors.candidates[best]).mean(axis=1)
                base = BASE_WEIGHT * rerank_scores(self._scale * lists.scores[begin:end])
                final = base + unit * vectors.scores(weights)
                for rival in np.flatnonzero(losses).tolist():
                    if final[rival] >= final[best]:
                        amounts = np.zeros(len(losses))
                        amounts[best], amounts[rival] = losses[rival], -losses[rival]
                        step = unit * vectors.features(amounts)
                        weights += step
                        late += n_seen * step
                        n_updates += 1
                        final = base + unit * vectors.scores(weights)
                    n_seen += 1
        report(f"perceptron: {n_updates} updates in {n_seen} comparisons")
        self.weights_ = (unit * (weights - late / max(1, n_seen))).astype(np.float32)
        return self

    @property
    def _shape(self) -> tuple[int, int, int]:
        size = self._network.arc_size
        return len(self._network.weights_), size + 1, size

    def _find_unit(self, lists: CandidateLists, numbers: Integers) -> float:
        """Return what features of trees are multiplied by to have the mean length of 1."""
        squares = [
            float(np.square(vectors.features(row)).sum())
            for _, vectors in self._read(lists, numbers)
            for row in np.eye(len(vectors.candidates))
        ]
        return float(1 / np.sqrt(max(float(np.mean(squares)), 1e-12)))

    def trials(self, lists: CandidateLists) -> list[FloatArray]:
        """Return the scores of candidates, of which there is nothing to choose."""
        return [self.score(lists)]

    def choose(self, number: int) -> None:
        """Do nothing, as there is but one choice."""

    @one_blas_thread
    def score(self, lists: CandidateLists) -> FloatArray:
        """Return the score of each candidate, in one column."""
        weights = self.weights_.astype(np.float64)
        found = [np.zeros(0)]
        found += [vectors.scores(weights) for _, vectors in self._read(lists, np.arange(len(lists)))]
        return np.concatenate(found)[:, np.newaxis]

    def _read(
        self, lists: CandidateLists, numbers: Integers, what: str | None = None
    ) -> Iterator[tuple[int, ListVectors]]:
        """Yield lists by their numbers."""
        starts: Sequence[int] = range(0, len(numbers), READ_AT_A_TIME)
        for start in track(starts, what, unit="batches") if what else starts:
            some = numbers[start : start + READ_AT_A_TIME].tolist()
            read = self._network.arc_vectors([lists.trees[number] for number in some])
            for number, (modifiers, heads) in zip(some, read, strict=True):
                logs = self._scale * lists.scores[lists.indptr[number] : lists.indptr[number + 1]]
                mixture = np.eye(len(logs)) - rival_shares(logs)
                yield number, ListVectors(modifiers, heads, lists.heads[number], mixture)
