"""Voting kernel perceptrons over candidate trees, each trained on a chunk of the lists.

Kernel methods do not scale to a whole treebank. Therefore Qian & Liu (2015, section 6.1.1) train one
perceptron on each of ten chunks, following Collins & Duffy (2002).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import numpy as np

from treewright._typing import FloatArray, Integers
from treewright.data.arcs import ArcEncoder
from treewright.data.deptree import DepTree
from treewright.kernels.deptree import DependencyTreeKernel
from treewright.kernels.polynomial import PolynomialKernel
from treewright.learn.kernel import KernelBlocks, KernelPerceptron
from treewright.model import Array, Coded, Model, State, expect, saved
from treewright.progress import report
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.features import basic_rows
from treewright.rerank.training import KERNEL_DECAY, KERNEL_EPOCHS
from treewright.scale import Client, map_jobs

LISTS_AT_ONCE = 100
"""Number of lists that a job scores: memory holds only their kernel values with the support trees."""
SUPPORT_COLUMNS = ("words", "upos", "xpos")


def _support_state(trees: Sequence[DepTree]) -> State:
    heads = np.concatenate([np.zeros(0, dtype=np.int32), *(tree.heads for tree in trees)])
    columns = [[getattr(tree, name) for name in SUPPORT_COLUMNS] for tree in trees]
    return State("DepTrees", {"columns": columns}, {"heads": heads})


def _support_trees(state: State) -> list[DepTree]:
    heads, trees, begin = Array("i").take(state, "heads"), [], 0
    for words, upos, xpos in state.values["columns"]:
        trees.append(DepTree(words, heads[begin : begin + len(words)], upos=upos, xpos=xpos))
        begin += len(words)
    return trees


class KernelScorer(Model):
    """Scores candidates by their kernel values with support trees.

    Parameters
    ----------
    degree : int or None
        Degree of a polynomial kernel over the arc features of whole trees; None for the dependency tree
        kernel.
    chunks : int
        Number of chunks of the lists, each with its own perceptron.
    epochs : int
        Number of passes of each perceptron over its lists.
    decay : float
        Decay factor of the dependency tree kernel.
    normalize : bool
        Normalise the dependency tree kernel so that K(x, x) = 1.
    n_jobs : int
        Number of chunks to process in parallel.
    random_state : int
        Seed of the random number generator.
    """

    fields = saved(support_=Coded(_support_state, _support_trees), coef_=Array("f", 2))

    def __init__(
        self,
        degree: int | None = None,
        *,
        chunks: int = 10,
        epochs: int = KERNEL_EPOCHS,
        decay: float = KERNEL_DECAY,
        normalize: bool = True,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.degree = degree
        self.chunks = chunks
        self.epochs = epochs
        self.decay = decay
        self.normalize = normalize
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def n_features(self) -> int:
        """Number of support trees."""
        return len(self.support_)

    def fit(self, lists: CandidateLists, right: Integers, *, client: Client | None = None) -> Self:
        """Train on lists with known target candidates; with a client, training runs on its cluster."""
        order = np.random.default_rng(self.random_state).permutation(len(lists))
        parts = np.array_split(order, min(self.chunks, len(lists)))

        def learn(number: int) -> tuple[list[DepTree], FloatArray]:
            chosen = np.sort(parts[number])
            return self._fit_chunk(lists.select(chosen.tolist()), right[chosen] - lists.indptr[chosen])

        def report_chunk(number: int, found: tuple[list[DepTree], FloatArray]) -> None:
            report(f"kernel perceptron {number + 1}/{len(parts)}: {len(found[1])} support trees")

        voters = map_jobs(
            learn,
            range(len(parts)),
            n_jobs=self.n_jobs,
            client=client,
            what="reranker",
            unit="perceptrons",
            keep=report_chunk,
        )
        self.support_ = [tree for trees, _ in voters for tree in trees]
        self.coef_ = np.zeros((len(self.support_), len(voters)))
        begin = 0
        for number, (trees, coef) in enumerate(voters):
            self.coef_[begin : begin + len(trees), number] = coef
            begin += len(trees)
        return self

    def _fit_chunk(self, lists: CandidateLists, ranks: Integers) -> tuple[list[DepTree], FloatArray]:
        """Return the support trees of some lists and their coefficients."""
        trees = [lists.candidate(number) for number in range(lists.n_candidates)]
        perceptron = KernelPerceptron(epochs=self.epochs, random_state=self.random_state)
        perceptron.fit(self._pack(trees), lists.indptr, lists.indptr[:-1] + ranks)
        return [trees[number] for number in perceptron.support_], perceptron.coef_

    def _pack(self, trees: Sequence[DepTree]) -> KernelBlocks:
        if self.degree is None:
            return DependencyTreeKernel(decay=self.decay, normalize=self.normalize, root=True).pack(trees)
        alone = [tree.heads[np.newaxis] for tree in trees]
        nothing = [np.zeros(1)] * len(trees)
        _, rows = basic_rows(CandidateLists(trees, alone, nothing, nothing), ArcEncoder.from_trees(trees))
        return PolynomialKernel(self.degree).pack(rows)

    def check_fitted_state(self) -> None:
        """Check that each support tree has coefficients."""
        expect(len(self.coef_) == len(self.support_), "coefficients of each support tree")

    def trials(self, lists: CandidateLists) -> list[FloatArray]:
        """Return the scores of candidates under the only setting to try."""
        return [self.score(lists)]

    def choose(self, number: int) -> None:
        """Do nothing; there is only one setting."""

    def score(self, lists: CandidateLists) -> FloatArray:
        """Return the score of each candidate by each perceptron."""
        trees = [lists.candidate(number) for number in range(lists.n_candidates)]
        packed = self._pack([*self.support_, *trees])
        n_support = len(self.support_)
        support = np.arange(n_support)
        cuts = [*lists.indptr[:-1:LISTS_AT_ONCE].tolist(), lists.n_candidates]

        def score(span: tuple[int, int]) -> FloatArray:
            found: FloatArray = packed.block(n_support + np.arange(*span), support) @ self.coef_
            return found

        parts = map_jobs(score, list(pairwise(cuts)), n_jobs=self.n_jobs)
        return np.concatenate([np.zeros((0, self.coef_.shape[1])), *parts])
