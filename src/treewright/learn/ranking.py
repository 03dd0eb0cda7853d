"""The averaged perceptron that ranks the rows of lists."""

from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._validate import check_integer, check_number
from treewright.native.perceptron import Weights
from treewright.native.proximal import Alternatives, Design
from treewright.native.ranking import rank_epoch

FloatArray = npt.NDArray[np.float64]


class AveragedRanker:
    """Weights of features, the mean of all that a perceptron over lists of rows passes through.

    Parameters
    ----------
    epochs : int
        Passes over the lists, each in another order.
    rate : float
        What an update adds to the weights of features; it matters beside given scores, and weights to start from.
    margin : float
        An update follows unless the right row wins by more than this times the cost of each other.
    seed : int
        Same seed, same weights.

    Attributes
    ----------
    coef_ : ndarray of float, (n_features,)
    n_updates_ : list of int
        Updates in each epoch.
    """

    def __init__(self, *, epochs: int = 10, rate: float = 1, margin: float = 0, seed: int = 0) -> None:
        self.epochs = epochs
        self.rate = rate
        self.margin = margin
        self.seed = seed

    def fit(
        self, rows: csr_matrix, alternatives: Alternatives, *, coef_init: FloatArray | None = None
    ) -> Self:
        """Learn from lists.

        Parameters
        ----------
        rows : csr_matrix, (n_rows, n_features)
            Of zeros and ones.
        alternatives : Alternatives
            The rows of each list, the right one last, with their costs and given scores.
        coef_init : ndarray of float, optional
            Weights to start from.
        """
        check_integer("epochs", self.epochs, minimum=1)
        check_number("rate", self.rate, low=1e-12, high=1e12)
        check_number("margin", self.margin, low=0, high=1e12)
        check_integer("seed", self.seed)
        start = np.zeros(rows.shape[1]) if coef_init is None else coef_init / self.rate
        weights = Weights(start.copy(), np.zeros(rows.shape[1]))
        scaled = alternatives._replace(given=alternatives.given / self.rate)
        design = Design(rows.indptr, rows.indices)
        n_lists = len(alternatives.first) - 1
        rng = np.random.default_rng(self.seed)
        self.n_updates_: list[int] = []
        for epoch in range(self.epochs):
            order, step = rng.permutation(n_lists), float(epoch * n_lists)
            margin = self.margin / self.rate
            self.n_updates_.append(rank_epoch(design, scaled, order, weights, margin, step))
        self.coef_ = (weights.now - weights.late / max(1, self.epochs * n_lists)) * self.rate
        return self

    def score(self, rows: csr_matrix) -> FloatArray:
        """Return the score of each row."""
        scores: FloatArray = rows @ self.coef_
        return scores
