"""A structured support vector machine over lists of candidates, with margins scaled by losses.

It is solved in its dual, list by list (Lacoste-Julien et al. 2013, with pairwise steps): no rate is to be
chosen, and it is known how far from the optimum the weights are.
"""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray
from treewright._validate import check_integer, check_number
from treewright.errors import InputError
from treewright.learn.lists import (
    CandidateLosses,
    RowSource,
    add_rows,
    check_bounds,
    check_lists,
    check_numbers,
    products,
)
from treewright.learn.voted import check_row_count
from treewright.progress import task
from treewright.scale import one_blas_thread

LEAST, MOST = 1e-12, 1e12


class StructuredSVM:
    """Weights under which the best of each list wins by the losses of the others, as far as it goes.

    What is minimised is half of `penalty` times the sum of the squared weights, and for each list the most by
    which another candidate, with its loss on top of its score, comes before the best.

    Parameters
    ----------
    penalty : float
        Half of it times the sum of the squared weights is the penalty.
    max_iter : int
        Passes over the lists at the most.
    tol : float
        How far above its minimum the objective may be, as a share of it.
    random_state : int
        Of the order of the lists.

    Attributes
    ----------
    coef_ : ndarray of float, (n_features,)
    objective_ : float
    gap_ : float
        How far above its minimum the objective is at the most.
    n_iter_ : int
        Passes over the lists.

    Examples
    --------
    >>> from treewright.learn.structured import StructuredSVM
    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> StructuredSVM(penalty=0.1).fit(rows, [0, 2], [0.0, 1.0]).coef_.round(3).tolist()
    [0.5, -0.5]
    """

    def __init__(
        self, *, penalty: float = 1.0, max_iter: int = 100, tol: float = 1e-3, random_state: int = 0
    ) -> None:
        self.penalty = penalty
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @one_blas_thread
    def fit(
        self,
        rows: RowSource,
        indptr: npt.ArrayLike,
        losses: npt.ArrayLike,
        base_scores: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from lists; arguments are those of `VotedPerceptron.fit`."""
        check_number("penalty", self.penalty, low=LEAST, high=MOST)
        check_integer("max_iter", self.max_iter, minimum=1)
        check_number("tol", self.tol, low=0, high=MOST)
        check_integer("random_state", self.random_state)
        lists = check_lists(indptr, losses, base_scores)
        check_row_count(rows, lists)
        rng = np.random.default_rng(self.random_state)
        search = _DualSolver(rows, lists, float(self.penalty))
        self.n_iter_, self.gap_, self.objective_ = 0, np.inf, 0.0
        with task("structured machine", total=self.max_iter, unit="passes") as counted:
            while self.n_iter_ < self.max_iter and self.gap_ > self.tol * self.objective_:
                for number in rng.permutation(len(lists.best)).tolist():
                    search.mend(number)
                self.objective_, self.gap_ = search.measure()
                self.n_iter_ += 1
                counted.advance()
        self.coef_ = search.weights
        return self

    @one_blas_thread
    def kernel_scores(self, rows: Any) -> FloatArray:  # noqa: ANN401
        """Return the score of each row."""
        if rows.shape[1] != len(self.coef_):
            raise InputError(f"rows have {rows.shape[1]} features; expected {len(self.coef_)}, as in fit")
        return np.asarray(rows @ self.coef_, dtype=np.float64)

    def combine(
        self, kernel_scores: FloatArray, indptr: npt.ArrayLike, base_scores: npt.ArrayLike | None = None
    ) -> FloatArray:
        """Return the final scores of candidates: those of `kernel_scores` and the base scores."""
        bounds = check_bounds(indptr)
        scores = 0.0 if base_scores is None else check_numbers("base_scores", base_scores, int(bounds[-1]))
        return np.asarray(kernel_scores + scores, dtype=np.float64)

    def score(self, rows: Any, indptr: npt.ArrayLike, base_scores: npt.ArrayLike | None = None) -> FloatArray:  # noqa: ANN401
        """Return the final scores of candidates."""
        return self.combine(self.kernel_scores(rows), indptr, base_scores)


class _DualSolver:
    """The state of the solver: for each list, how its dual weight of 1 is shared by its candidates.

    The weights are the sum over lists of the best row less the rows of all candidates by their shares,
    divided by the penalty. In the beginning all is with the best rows, and the weights are zero.
    """

    def __init__(self, rows: RowSource, lists: CandidateLosses, penalty: float) -> None:
        self.weights = np.zeros(rows.shape[1])
        self._rows, self._lists, self._penalty = rows, lists, penalty
        self._spans = lists.spans()
        self._shares = np.zeros(len(lists.excess))
        self._shares[lists.best] = 1
        sizes = np.diff(lists.indptr)
        self._margins = lists.excess + lists.base_scores - np.repeat(lists.base_scores[lists.best], sizes)

    def mend(self, number: int) -> None:
        """Move shares of a list to its worst violators, as far as that helps."""
        begin, end = self._spans[number]
        block, shares = self._rows[begin:end], self._shares[begin:end]
        violations = self._margins[begin:end] + block @ self.weights
        if violations.max() <= violations[shares > 0].min():
            return
        values, before = products(block, block) / self._penalty, shares.copy()
        for _ in range(len(shares)):
            worst = int(violations.argmax())
            least = int(np.where(shares > 0, violations, np.inf).argmin())
            slopes = values[:, worst] - values[:, least]
            gain, length = violations[worst] - violations[least], slopes[worst] - slopes[least]
            size = shares[least] if gain >= shares[least] * length else gain / length
            shares[worst] += size
            shares[least] -= size
            violations = violations - size * slopes
        add_rows(self.weights, block, (before - shares) / self._penalty)

    def measure(self) -> tuple[float, float]:
        """Return the objective, and how far above its minimum it can be."""
        objective, gap = self._penalty / 2 * float(self.weights @ self.weights), 0.0
        for number, (begin, end) in enumerate(self._spans):
            violations = self._margins[begin:end] + self._rows[begin:end] @ self.weights
            best = int(self._lists.best[number]) - begin
            highest = float(violations.max())
            objective += highest - float(violations[best])
            gap += highest - float(self._shares[begin:end] @ violations)
        return objective, gap
