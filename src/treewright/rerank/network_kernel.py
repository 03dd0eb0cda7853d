"""The efficient TOP-reranking kernel over the output layer of an arc-scoring network.

The features of a tree are the derivatives of its log odds within its list (Titov & Henderson 2005, equation
18) with respect to the weights that score arcs. The network chooses the head of each word by a softmax that
is the same for all trees of a sentence. The normalisers of this softmax cancel, so that the efficient kernel,
which holds them fixed, equals the TOP-reranking kernel.

The derivative of the log-probability of a tree is a sum, over its arcs, of the outer product of the modifier
and head vectors. There is one feature per weight, more than a hundred thousand in all, but the scores of all
trees of a sentence, and each perceptron update, are products of a few matrices of word vectors.
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
"""Number of lists per batch."""
BASE_WEIGHT = 3.0
"""Factor on the parser's log odds in training, for features with an average norm of 1. With a smaller factor,
a single mistake outweighs the parser's score."""


def find_network(parser: DependencyParser) -> NeuralScorer:
    """Return the network of a parser; it may be combined with a linear model."""
    scorer: PartScorer | None = vars(parser).get("scorer_", parser.scorer)
    if isinstance(scorer, CombinedScorer):
        scorer = scorer.other
    if not isinstance(scorer, NeuralScorer):
        raise InputError("the parser has no network; expected a parser with a NeuralScorer")
    return scorer


class ListVectors(NamedTuple):
    """The trees of a list, as factors of the kernel features.

    Attributes
    ----------
    modifiers : array, (n_networks, n_words, size + 1)
        Vectors of the words as modifiers; the last column is 1, for the biases.
    heads : array, (n_networks, n_words + 1, size)
        Vectors of the root and the words as heads.
    candidates : array of int, (n_candidates, n_words)
        Heads of the candidates.
    mixture : array, (n_candidates, n_candidates)
        Matrix that subtracts from each tree the mean of its rivals.
    """

    modifiers: FloatArray
    heads: FloatArray
    candidates: IntArray
    mixture: FloatArray

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return the inner products of weights, (n_networks, size + 1, size), with the features of trees."""
        arcs = (self.modifiers @ weights @ self.heads.transpose(0, 2, 1)).sum(axis=0)
        sums = arcs[np.arange(arcs.shape[0]), self.candidates].sum(axis=1)
        found: FloatArray = self.mixture @ sums
        return found

    def features(self, amounts: FloatArray) -> FloatArray:
        """Return the sum of the features of trees, weighted by `amounts`, in the shape of the weights."""
        counts = np.zeros((self.candidates.shape[1], self.heads.shape[1]))
        words = np.arange(self.candidates.shape[1])
        for heads, amount in zip(self.candidates, amounts @ self.mixture, strict=True):
            counts[words, heads] += amount
        found: FloatArray = self.modifiers.transpose(0, 2, 1) @ (counts @ self.heads)
        return found


class NetworkKernelScorer(Model):
    """Scores candidates by a loss-scaled perceptron over the features of the kernel.

    Parameters
    ----------
    epochs : int
        Number of passes over the lists.
    random_state : int
        Seed for the order of the lists.

    Attributes
    ----------
    weights_ : ndarray of float, (n_networks, size + 1, size)
        The averaged weights of the perceptron.
    """

    fields = saved(weights_=Array("f", 3))
    weights_: npt.NDArray[np.float32]

    def __init__(self, *, epochs: int = 1, random_state: int = 0) -> None:
        self.epochs = epochs
        self.random_state = random_state

    @property
    def n_features(self) -> int:
        """Number of features of all networks."""
        return int(self.weights_.size)

    def attach(self, parser: DependencyParser) -> Self:
        """Use the network of a parser."""
        self._network, self._scale = find_network(parser), parser.scale_
        return self

    _network: NeuralScorer
    _scale: float

    def check_network(self) -> None:
        """Check that the weights have the shape of the network."""
        expect(self.weights_.shape == self._shape, "weights of the output layer of the network")

    @one_blas_thread
    def fit(self, lists: CandidateLists, right: Integers) -> Self:
        """Train on lists with known target candidates; the network must be attached.

        Each tree is compared with the target of its list. If it scores at least as high, the weights move
        towards the target, in proportion to the fraction of words whose heads differ.
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
        """Return the factor that gives the features of trees a root mean square norm of 1."""
        squares = [
            float(np.square(vectors.features(row)).sum())
            for _, vectors in self._read(lists, numbers)
            for row in np.eye(len(vectors.candidates))
        ]
        return float(1 / np.sqrt(max(float(np.mean(squares)), 1e-12)))

    def trials(self, lists: CandidateLists) -> list[FloatArray]:
        """Return the scores of candidates under the only setting to try."""
        return [self.score(lists)]

    def choose(self, number: int) -> None:
        """Do nothing; there is only one setting."""

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
        """Yield the vectors of the lists with these numbers."""
        starts: Sequence[int] = range(0, len(numbers), READ_AT_A_TIME)
        for start in track(starts, what, unit="batches") if what else starts:
            some = numbers[start : start + READ_AT_A_TIME].tolist()
            read = self._network.arc_vectors([lists.trees[number] for number in some])
            for number, (modifiers, heads) in zip(some, read, strict=True):
                logs = self._scale * lists.scores[lists.indptr[number] : lists.indptr[number + 1]]
                mixture = np.eye(len(logs)) - rival_shares(logs)
                yield number, ListVectors(modifiers, heads, lists.heads[number], mixture)
