"""A linear model over features of candidates."""

from typing import Self

import numpy as np
from scipy.sparse import csr_matrix

from treewright.checkpoint import Checkpoint
from treewright.learn.ranking import AveragedRanker
from treewright.mining.problem import Problem
from treewright.persist import State
from treewright.rerank.candidates import CandidateLists, FloatArray
from treewright.rerank.features import (
    ConjunctionFeatures,
    HandFeatures,
    ListFeatures,
    SubtreeFeatures,
    Tell,
)

KINDS: dict[str, type[ListFeatures]] = {
    "subtree": SubtreeFeatures,
    "polynomial": ConjunctionFeatures,
    "template": HandFeatures,
}
"""Features by the name of their space."""


class LinearScorer:
    """Scores candidates by the weights of their features, which an averaged perceptron has learnt.

    Parameters
    ----------
    space : {"subtree", "polynomial", "template"}
        The kind of `features`.
    features : ListFeatures
    epochs : int
        Passes of the perceptron over the lists.
    rate : float
        What an update of the perceptron adds to a weight.
    seed : int
    """

    def __init__(
        self, space: str, features: ListFeatures, *, epochs: int = 10, rate: float = 1.0, seed: int = 0
    ) -> None:
        self.space = space
        self.features = features
        self.epochs = epochs
        self.rate = rate
        self.seed = seed

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.coef)

    def fit(
        self, lists: CandidateLists, problem: Problem, *, progress: Tell, checkpoint: Checkpoint | None
    ) -> Self:
        """Learn from lists of which the right candidates are known."""
        rows = self.features.select(lists, problem, progress=progress, checkpoint=checkpoint)
        ranker = AveragedRanker(epochs=self.epochs, rate=self.rate, seed=self.seed)
        ranker.fit(rows, problem.alternatives, coef_init=self.features.weights)
        self.coef = ranker.coef_
        progress(
            f"averaged perceptron over {len(self.coef)} features: "
            f"{ranker.n_updates_[0]} updates in the first pass, {ranker.n_updates_[-1]} in the last"
        )
        return self

    def score(self, lists: CandidateLists) -> FloatArray:
        """Return the score of each candidate, in one column."""
        scores: FloatArray = self.features.transform(lists) @ self.coef
        return scores[:, np.newaxis]

    def differences(self, lists: CandidateLists, one: int, other: int) -> list[tuple[str, float]]:
        """Return the features that only one of two candidates has, and what they speak for it, most first."""
        rows = self.features.transform(lists)
        found = []
        for number, against, sign in ((one, other, 1.0), (other, one, -1.0)):
            columns = np.setdiff1d(_columns(rows, number), _columns(rows, against))
            columns = columns[self.coef[columns] != 0]
            texts = self.features.texts(lists.candidate(number), columns.tolist())
            found += list(zip(texts, (sign * self.coef[columns]).tolist(), strict=True))
        return sorted(found, key=lambda pair: (-abs(pair[1]), pair[0]))

    def get_state(self) -> State:
        """Return all that the scorer is."""
        values = {"space": self.space, "epochs": self.epochs, "rate": self.rate, "seed": self.seed}
        return State("LinearScorer", values, {"coef": self.coef}, {"features": self.features.get_state()})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the scorer again."""
        values = state.values
        features = KINDS[values["space"]].from_state(state.parts["features"])
        scorer = cls(
            values["space"], features, epochs=values["epochs"], rate=values["rate"], seed=values["seed"]
        )
        scorer.coef = state.arrays["coef"]
        return scorer


def _columns(rows: csr_matrix, number: int) -> np.ndarray:
    columns: np.ndarray = rows.indices[rows.indptr[number] : rows.indptr[number + 1]]
    return columns
