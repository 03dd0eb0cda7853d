"""A softmax over the candidates of each list, trained by L-BFGS with an L2 penalty."""

from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from treewright._typing import FloatArray
from treewright._validate import check_choice, check_integer, check_number
from treewright.learn.lists import CandidateLosses, LinearRanker, RowSource, add_rows, check_lists
from treewright.learn.voted import check_row_count
from treewright.progress import task
from treewright.scale import one_blas_thread

LIKELIHOOD, EXPECTED_LOSS = "likelihood", "expected-loss"
OBJECTIVES = (LIKELIHOOD, EXPECTED_LOSS)
LEAST, MOST = 1e-12, 1e12


class SoftmaxRanker(LinearRanker):
    """Softmax over the candidates of each list, trained by L-BFGS with an L2 penalty.

    The probability of a candidate is the softmax of the scores in its list, including base scores.

    Parameters
    ----------
    objective : {"likelihood", "expected-loss"}
        Minimise the negative log-likelihood of the best candidates, or the expected loss, which is not
        convex. Both objectives are summed over lists.
    penalty : float
        Strength of the L2 penalty: half of it times the sum of the squared weights.
    max_iter : int
        Maximum number of L-BFGS iterations. Each iteration reads all rows at least once.

    Attributes
    ----------
    coef_ : ndarray of float, (n_features,)
        Weights of the features.
    objective_ : float
        Value of the objective, including the penalty.
    n_iter_ : int
        Number of L-BFGS iterations.
    """

    def __init__(self, *, objective: str = LIKELIHOOD, penalty: float = 1.0, max_iter: int = 100) -> None:
        self.objective = objective
        self.penalty = penalty
        self.max_iter = max_iter

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
        check_choice("objective", self.objective, OBJECTIVES)
        check_number("penalty", self.penalty, low=LEAST, high=MOST)
        check_integer("max_iter", self.max_iter, minimum=1)
        lists = check_lists(indptr, losses, base_scores)
        check_row_count(rows, lists)
        is_likelihood = self.objective == LIKELIHOOD

        def evaluate(weights: FloatArray) -> tuple[float, FloatArray]:
            return _evaluate(weights, rows, lists, float(self.penalty), is_likelihood=is_likelihood)

        with task("softmax over lists", total=self.max_iter, unit="iterations") as counted:
            found = minimize(
                evaluate,
                np.zeros(rows.shape[1]),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": self.max_iter},
                callback=lambda weights: counted.advance(),
            )
        self.coef_ = np.asarray(found.x, dtype=np.float64)
        self.objective_, self.n_iter_ = float(found.fun), int(found.nit)
        return self


def _evaluate(
    weights: FloatArray, rows: RowSource, lists: CandidateLosses, penalty: float, *, is_likelihood: bool
) -> tuple[float, FloatArray]:
    """Return the objective and its gradient."""
    value, slopes = penalty / 2 * float(weights @ weights), penalty * weights
    for (begin, end), best in zip(lists.spans(), lists.best.tolist(), strict=True):
        block = rows[begin:end]
        scores = block @ weights + lists.base_scores[begin:end]
        scores = scores - scores.max()
        amounts = np.exp(scores)
        total = float(amounts.sum())
        amounts /= total
        if is_likelihood:
            value += float(np.log(total) - scores[best - begin])
            amounts[best - begin] -= 1
        else:
            excess = lists.excess[begin:end]
            expected = float(amounts @ excess)
            value += expected
            amounts *= excess - expected
        add_rows(slopes, block, amounts)
    return value, slopes
