"""Linear models that rank the rows of lists: an averaged perceptron and a log-linear model."""

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray, RandomState
from treewright._validate import check_integer, check_number, draw_seed
from treewright.errors import InputError
from treewright.native.learn.perceptron import Weights
from treewright.native.learn.proximal import Alternatives, Design
from treewright.native.learn.ranking import rank_epoch
from treewright.progress import task, track
from treewright.scale import one_blas_thread

SMALLEST_TRUST = 1e-12
MOST_COPIED = 300_000_000
"""Maximum number of values (8 bytes each) of a matrix that is stored both by rows and by columns."""
LOOKED_UP_AT_ONCE = 1_000_000


class AveragedRanker:
    """Averaged perceptron that ranks the rows of lists.

    Parameters
    ----------
    epochs : int
        Number of passes over the lists, each in a new random order.
    rate : float
        Learning rate. Only its ratio to `margin`, base scores and initial weights matters.
    margin : float
        Update unless the correct row beats every other row by more than this times the cost of the other row.
    random_state : int, Generator, RandomState or None
        Seed for the order of the lists. With None, results differ between calls.

    Attributes
    ----------
    coef_ : ndarray of float, (n_features,)
    n_updates_ : list of int
        Number of updates in each epoch.
    """

    def __init__(
        self, *, epochs: int = 10, rate: float = 1, margin: float = 0, random_state: RandomState = 0
    ) -> None:
        self.epochs = epochs
        self.rate = rate
        self.margin = margin
        self.random_state = random_state

    def fit(
        self,
        rows: csr_matrix,
        alternatives: Alternatives,
        *,
        coef_init: FloatArray | None = None,
        trust: FloatArray | None = None,
    ) -> Self:
        """Learn from lists.

        Parameters
        ----------
        rows : csr_matrix, (n_rows, n_features)
            Binary feature matrix.
        alternatives : Alternatives
            The rows of each list, the correct one last, with their costs and base scores.
        coef_init : ndarray of float, optional
            Weights to start from.
        trust : ndarray of float, (n_features,), optional
            Factor by which the learning rate of each feature is multiplied.
        """
        check_integer("epochs", self.epochs, minimum=1)
        check_number("rate", self.rate, low=1e-12, high=1e12)
        check_number("margin", self.margin, low=0, high=1e12)
        _check_rows(rows, alternatives)
        start = np.zeros(rows.shape[1]) if coef_init is None else np.asarray(coef_init) / self.rate
        if start.shape != (rows.shape[1],):
            raise InputError(f"coef_init has the shape {start.shape}; expected {(rows.shape[1],)}")
        weights = Weights(start.copy(), np.zeros(rows.shape[1]))
        rates = np.ones(rows.shape[1]) if trust is None else np.asarray(trust, dtype=np.float64)
        scaled = alternatives._replace(base_scores=alternatives.base_scores / self.rate)
        design = Design(rows.indptr, rows.indices)
        n_lists = len(alternatives.indptr) - 1
        rng = np.random.default_rng(draw_seed(self.random_state))
        self.n_updates_: list[int] = []
        for epoch in track(range(self.epochs), "averaged perceptron", unit="epochs"):
            order, step = rng.permutation(n_lists), float(epoch * n_lists)
            margin = self.margin / self.rate
            self.n_updates_.append(rank_epoch(design, scaled, order, weights, rates, margin, step))
        self.coef_ = (weights.now - weights.late / max(1, self.epochs * n_lists)) * self.rate
        return self

    def score(self, rows: csr_matrix) -> FloatArray:
        """Return the score of each row."""
        scores: FloatArray = rows @ self.coef_
        return scores


class LogLinearRanker:
    """Conditional log-linear model (maximum entropy) that ranks the rows of lists.

    The probability of a row is the softmax of the scores in its list. Training maximises the log-likelihood
    of the correct rows minus an L2 penalty.

    Parameters
    ----------
    penalty : float
        Strength of the L2 penalty: half of it times the sum of the squared weights.
    max_iter : int
        Maximum number of L-BFGS iterations.

    Attributes
    ----------
    coef_ : ndarray of float, (n_features,)
    base_weight_ : float
        Learnt factor of the base scores; it is not penalised.
    """

    def __init__(self, *, penalty: float = 10.0, max_iter: int = 60) -> None:
        self.penalty = penalty
        self.max_iter = max_iter

    def fit(
        self,
        rows: csr_matrix,
        alternatives: Alternatives,
        *,
        coef_init: FloatArray | None = None,
        trust: FloatArray | None = None,
    ) -> Self:
        """Learn from lists.

        Parameters
        ----------
        rows : csr_matrix, (n_rows, n_features)
            Binary feature matrix.
        alternatives : Alternatives
            The rows of each list, the correct one last, with their base scores; costs are ignored.
        coef_init : ndarray of float, optional
            Weights to start from; the factor of the base scores starts at 1.
        trust : ndarray of float, (n_features,), optional
            The penalty of each feature is divided by its trust.
        """
        self._check()
        return self._maximize(_Likelihood(rows, alternatives, trust), coef_init)

    def _check(self) -> None:
        check_number("penalty", self.penalty, low=0, high=1e12)
        check_integer("max_iter", self.max_iter, minimum=1)

    @one_blas_thread
    def _maximize(self, likelihood: "_Likelihood", coef_init: FloatArray | None) -> Self:
        sizes = likelihood.sizes
        start = np.zeros(len(sizes)) if coef_init is None else np.asarray(coef_init) / sizes
        with task(
            f"log-linear model, penalty {self.penalty:g}", total=self.max_iter, unit="steps"
        ) as counted:
            found = minimize(
                likelihood,
                np.append(start, 1.0),
                args=(self.penalty,),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": self.max_iter},
                callback=lambda weights: counted.advance(),
            )
        self.coef_, self.base_weight_ = found.x[:-1] * sizes, float(found.x[-1])
        return self

    def score(self, rows: csr_matrix) -> FloatArray:
        """Return the score of each row."""
        scores: FloatArray = rows @ self.coef_
        return scores


def fit_penalties(
    rows: csr_matrix,
    alternatives: Alternatives,
    penalties: Sequence[float],
    *,
    trust: FloatArray | None = None,
) -> Iterator[LogLinearRanker]:
    """Yield a `LogLinearRanker` for each penalty, each started from the weights of the previous one.

    The rows are prepared once and then released. The other parameters are those of `LogLinearRanker.fit`.
    """
    likelihood = _Likelihood(rows, alternatives, trust)
    # Release the caller's matrix early; only its column numbers are still needed.
    del rows
    start = None
    for penalty in penalties:
        ranker = LogLinearRanker(penalty=penalty)
        ranker._check()
        start = ranker._maximize(likelihood, start).coef_
        yield ranker


class _Likelihood:
    """The objective: the negative log-likelihood plus the penalty, with its gradient.

    Features are scaled by `sizes`, which has the same effect as dividing their penalties by their trust.
    """

    def __init__(self, rows: csr_matrix, alternatives: Alternatives, trust: FloatArray | None) -> None:
        _check_rows(rows, alternatives)
        self.sizes = np.ones(rows.shape[1]) if trust is None else np.sqrt(np.maximum(trust, SMALLEST_TRUST))
        self._rows = csr_matrix((_spread(self.sizes, rows), rows.indices, rows.indptr), shape=rows.shape)
        if not np.array_equal(alternatives.rows, np.arange(rows.shape[0])):
            self._rows = self._rows[alternatives.rows]
        # A copy by columns speeds up the gradient if memory allows.
        self._columns = self._rows.T.tocsr() if rows.nnz <= MOST_COPIED else self._rows.T
        self._base_scores = alternatives.base_scores
        self._starts, self._right = alternatives.indptr[:-1], alternatives.indptr[1:] - 1
        self._n_rows = np.diff(alternatives.indptr)

    def __call__(self, weights: FloatArray, penalty: float) -> tuple[float, FloatArray]:
        coef, base_weight = weights[:-1], weights[-1]
        scores = self._rows @ coef.astype(np.float32) + base_weight * self._base_scores
        scores -= np.repeat(np.maximum.reduceat(scores, self._starts), self._n_rows)
        excess = np.exp(scores)
        sums = np.add.reduceat(excess, self._starts)
        loss = float((np.log(sums) - scores[self._right]).sum()) + penalty / 2 * float(coef @ coef)
        excess /= np.repeat(sums, self._n_rows)
        excess[self._right] -= 1
        slopes = self._columns @ excess.astype(np.float32) + penalty * coef
        return loss, np.append(slopes, excess @ self._base_scores)


def _spread(sizes: FloatArray, rows: csr_matrix) -> npt.NDArray[np.float32]:
    """Return, for each stored value, the scale of its feature; single precision halves memory traffic."""
    single, values = sizes.astype(np.float32), np.empty(rows.nnz, dtype=np.float32)
    # NumPy copies the index array at twice its size, so look up in chunks.
    for begin in range(0, rows.nnz, LOOKED_UP_AT_ONCE):
        some = slice(begin, begin + LOOKED_UP_AT_ONCE)
        values[some] = single[rows.indices[some]]
    return values


def _check_rows(rows: csr_matrix, alternatives: Alternatives) -> None:
    lowest, highest = alternatives.rows.min(initial=0), alternatives.rows.max(initial=-1)
    if lowest < 0 or highest >= rows.shape[0]:
        raise InputError(f"rows has {rows.shape[0]} rows; alternatives refer to rows {lowest} to {highest}")
