"""Candidate lists with losses, as flat arrays: the input that all rankers share."""

from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from treewright._typing import FloatArray, Integers
from treewright.errors import InputError, show
from treewright.scale import one_blas_thread

FULL_SHARE = 0.2
"""Minimum density at which a sparse matrix is multiplied as a dense array."""
MOST_UNPACKED = 1 << 25
"""Maximum number of values (8 bytes each) of a matrix that is turned into a dense array."""


class RowSource(Protocol):
    """Feature rows, one per candidate: an array, a CSR matrix, or an object that computes rows on demand.

    Learners request the rows of one list at a time.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of features."""

    def __getitem__(self, rows: slice) -> Any:  # noqa: ANN401
        """Return these rows as an array or a CSR matrix."""


class CandidateLosses(NamedTuple):
    """Validated candidate lists with their losses; see `check_lists`.

    Attributes
    ----------
    indptr : ndarray of int, (n_lists + 1,)
        List i has the candidates from `indptr[i]` to `indptr[i + 1]`.
    excess : ndarray of float, (n_candidates,)
        The loss of each candidate minus the smallest loss in its list.
    base_scores : ndarray of float, (n_candidates,)
        Scores that are added to the learnt scores.
    best : ndarray of int, (n_lists,)
        The candidate of each list with the smallest loss. Ties go to the highest base score.
    """

    indptr: Integers
    excess: FloatArray
    base_scores: FloatArray
    best: Integers

    def spans(self) -> list[tuple[int, int]]:
        """Return the start and the end of each list, as row indices."""
        return list(pairwise(self.indptr.tolist()))


class LinearRanker:
    """A ranker with one weight per feature."""

    coef_: FloatArray

    @one_blas_thread
    def kernel_scores(self, rows: Any) -> FloatArray:  # noqa: ANN401
        """Return the learnt score of each row, without base scores.

        Parameters
        ----------
        rows : array or csr_matrix, (n_candidates, n_features)
            Features of the candidates.

        Returns
        -------
        ndarray of float, (n_candidates,)
            The learnt scores.
        """
        check_rows(rows)
        if rows.shape[1] != len(self.coef_):
            raise InputError(f"rows have {rows.shape[1]} features; expected {len(self.coef_)}, as in fit")
        return np.asarray(rows @ self.coef_, dtype=np.float64)

    def combine(
        self, kernel_scores: FloatArray, indptr: npt.ArrayLike, base_scores: npt.ArrayLike | None = None
    ) -> FloatArray:
        """Return the final scores: the results of `kernel_scores` plus the base scores.

        Parameters
        ----------
        kernel_scores : ndarray of float, (n_candidates,)
            The results of `kernel_scores` for these candidates.
        indptr : array of int, (n_lists + 1,)
            List i has the candidates from `indptr[i]` to `indptr[i + 1]`.
        base_scores : array of float, (n_candidates,), optional
            Scores that are added to the learnt scores; zero by default.

        Returns
        -------
        ndarray of float, (n_candidates,)
            The learnt scores plus the base scores.
        """
        bounds = check_bounds(indptr)
        scores = 0.0 if base_scores is None else check_numbers("base_scores", base_scores, int(bounds[-1]))
        return np.asarray(kernel_scores + scores, dtype=np.float64)

    def score(self, rows: Any, indptr: npt.ArrayLike, base_scores: npt.ArrayLike | None = None) -> FloatArray:  # noqa: ANN401
        """Return the final scores of candidates, including base scores.

        Parameters
        ----------
        rows : array or csr_matrix, (n_candidates, n_features)
            Features of the candidates.
        indptr : array of int, (n_lists + 1,)
            List i has the candidates from `indptr[i]` to `indptr[i + 1]`.
        base_scores : array of float, (n_candidates,), optional
            Scores that are added to the learnt scores; zero by default.

        Returns
        -------
        ndarray of float, (n_candidates,)
            The learnt scores plus the base scores.
        """
        return self.combine(self.kernel_scores(rows), indptr, base_scores)


def check_lists(
    indptr: npt.ArrayLike, losses: npt.ArrayLike, base_scores: npt.ArrayLike | None = None
) -> CandidateLosses:
    """Validate candidate lists and return them with their losses."""
    bounds = check_bounds(indptr)
    costs = check_numbers("losses", losses, int(bounds[-1]))
    scores = (
        np.zeros(len(costs)) if base_scores is None else check_numbers("base_scores", base_scores, len(costs))
    )
    starts, sizes = bounds[:-1], np.diff(bounds)
    excess = costs - np.repeat(np.minimum.reduceat(costs, starts), sizes)
    best = best_rows(np.where(excess == 0, scores, -np.inf), bounds)
    return CandidateLosses(bounds, excess, scores, best)


def check_bounds(indptr: npt.ArrayLike) -> Integers:
    """Validate and return the boundaries of the lists. Empty lists are an error."""
    try:
        bounds = np.asarray(indptr, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"indptr is {show(indptr)}; expected 0 followed by the end of each list") from None
    if bounds.ndim != 1 or len(bounds) < 2 or bounds[0] != 0:
        raise InputError(f"indptr has the shape {bounds.shape}; expected 0 followed by the end of each list")
    empty = np.flatnonzero(np.diff(bounds) <= 0)
    if len(empty):
        raise InputError(f"list {empty[0]} is empty; expected at least one candidate")
    return bounds


def check_rows(rows: object) -> None:
    """Check that rows are a matrix."""
    if len(getattr(rows, "shape", ())) != 2:
        raise InputError(
            f"rows is of type {type(rows).__name__}; expected a 2-dimensional array or a sparse matrix"
        )


def check_numbers(name: str, values: npt.ArrayLike, n_values: int) -> FloatArray:
    """Return the values, one per candidate, as an array. NaN and infinity are an error."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {type(values).__name__}; expected an array of numbers") from None
    if numbers.shape != (n_values,):
        raise InputError(f"{name} has the shape {numbers.shape}; expected ({n_values},), one per candidate")
    if not np.isfinite(numbers).all():
        raise InputError(f"{name} contains {numbers[~np.isfinite(numbers)][0]}; expected finite numbers")
    return numbers


def best_rows(scores: FloatArray, indptr: Integers) -> Integers:
    """Return the highest-scoring candidate of each list; ties go to the first."""
    winners = [begin + int(scores[begin:end].argmax()) for begin, end in pairwise(indptr.tolist())]
    return np.array(winners, dtype=np.int64)


def products(rows_a: Any, rows_b: Any) -> FloatArray:  # noqa: ANN401
    """Return the inner products of all pairs of rows."""
    found = _unpack(rows_a) @ _unpack(rows_b).T
    return np.asarray(found.toarray() if issparse(found) else found, dtype=np.float64)


def _unpack(rows: Any) -> Any:  # noqa: ANN401
    """Return a nearly dense sparse matrix as an array, which multiplies much faster."""
    is_full = issparse(rows) and not is_sparse(rows) and rows.shape[0] * rows.shape[1] <= MOST_UNPACKED
    return rows.toarray() if is_full else rows


def is_sparse(rows: Any) -> bool:  # noqa: ANN401
    """Return whether rows are a sparse matrix that is not nearly dense."""
    return bool(issparse(rows) and rows.nnz <= FULL_SHARE * rows.shape[0] * rows.shape[1])


def add_rows(weights: FloatArray, rows: Any, amounts: FloatArray) -> None:  # noqa: ANN401
    """Add `amounts[i]` times row i to the weights, in place."""
    if issparse(rows):
        total = csr_matrix(amounts) @ rows
        weights[total.indices] += total.data
    else:
        weights += amounts @ rows
