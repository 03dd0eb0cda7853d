"""A structured support vector machine over candidate lists, with margin rescaling.

Block-coordinate Frank-Wolfe solves the dual, list by list (Lacoste-Julien et al. 2013, with pairwise steps).
It needs no learning rate and gives the duality gap.
"""

from typing import Self

import numpy as np
import numpy.typing as npt

from treewright._typing import RandomState
from treewright._validate import check_integer, check_number, draw_seed
from treewright.learn.lists import (
    CandidateLosses,
    LinearRanker,
    RowSource,
    add_rows,
    check_lists,
    products,
)
from treewright.learn.voted import check_row_count
from treewright.progress import task
from treewright.scale import one_blas_thread

LEAST, MOST = 1e-12, 1e12


class StructuredSVM(LinearRanker):
    """Structured SVM that ranks the candidates of lists, with margins scaled by losses.

    It minimises `penalty` / 2 times the squared norm of the weights, plus the hinge loss of each list: the
    largest score plus loss among its candidates, minus the score of its best candidate.

    Parameters
    ----------
    penalty : float
        Strength of the L2 penalty: half of it times the sum of the squared weights.
    max_iter : int
        Maximum number of passes over the lists.
    tol : float
        Stop when the duality gap is below this fraction of the objective.
    random_state : int, Generator, RandomState or None
        Seed for the order of the lists. With None, results differ between calls.

    Attributes
    ----------
    coef_ : ndarray of float, (n_features,)
        Weights of the features.
    objective_ : float
        Value of the objective.
    gap_ : float
        Duality gap: an upper bound on how far the objective is above its minimum.
    n_iter_ : int
        Number of passes over the lists.

    See Also
    --------
    VotedPerceptron : Ranks candidates by loss-scaled perceptron updates.
    CandidateReranker : Reranks candidates of any kind, with mined features.

    Examples
    --------
    One list with two candidates; the second has a loss of 1:

    >>> import numpy as np
    >>> from treewright import StructuredSVM
    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> StructuredSVM(penalty=0.1).fit(rows, [0, 2], [0.0, 1.0]).coef_.round(3).tolist()
    [0.5, -0.5]
    """

    def __init__(
        self, *, penalty: float = 1.0, max_iter: int = 100, tol: float = 1e-3, random_state: RandomState = 0
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
        """Train on candidate lists.

        Parameters
        ----------
        rows : array, csr_matrix or RowSource, (n_candidates, n_features)
            Features of the candidates.
        indptr : array of int, (n_lists + 1,)
            List i has the rows from `indptr[i]` to `indptr[i + 1]`.
        losses : array of float, (n_candidates,)
            Loss of each candidate; only differences within a list matter.
        base_scores : array of float, (n_candidates,), optional
            Scores that are added to the learnt scores.
        """
        check_number("penalty", self.penalty, low=LEAST, high=MOST)
        check_integer("max_iter", self.max_iter, minimum=1)
        check_number("tol", self.tol, low=0, high=MOST)
        lists = check_lists(indptr, losses, base_scores)
        check_row_count(rows, lists)
        rng = np.random.default_rng(draw_seed(self.random_state))
        search = _DualSolver(rows, lists, float(self.penalty))
        self.n_iter_, self.gap_, self.objective_ = 0, np.inf, 0.0
        with task("structured SVM", total=self.max_iter, unit="passes") as counted:
            while self.n_iter_ < self.max_iter and self.gap_ > self.tol * self.objective_:
                for number in rng.permutation(len(lists.best)).tolist():
                    search.mend(number)
                self.objective_, self.gap_ = search.measure()
                self.n_iter_ += 1
                counted.advance()
        self.coef_ = search.weights
        return self


class _DualSolver:
    """State of the solver: for each list, dual weights of its candidates, which sum to 1.

    The feature weights are the sum, over all lists, of the best row minus the mean of the rows weighted by
    their dual weights, divided by the penalty. Initially, the best row of each list has the dual weight 1,
    and the feature weights are zero.
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
        """Shift the dual weights of a list to its worst violators while this improves the dual objective."""
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
        """Return the objective and the duality gap."""
        objective, gap = self._penalty / 2 * float(self.weights @ self.weights), 0.0
        for number, (begin, end) in enumerate(self._spans):
            violations = self._margins[begin:end] + self._rows[begin:end] @ self.weights
            best = int(self._lists.best[number]) - begin
            highest = float(violations.max())
            objective += highest - float(violations[best])
            gap += highest - float(self._shares[begin:end] @ violations)
        return objective, gap
