"""Lists of candidates with losses, as flat arrays: what learners of rankings have in common."""

from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from treewright._typing import FloatArray, Integers
from treewright.errors import InputError

FULL_SHARE = 0.2
"""Of values that are not zero in a matrix that is not sparse."""
MOST_UNPACKED = 1 << 25
"""Values of a matrix, at 8 bytes each."""


class RowSource(Protocol):
    """Rows of features, one for each candidate: an array, a CSR matrix, or what makes them when asked.

    Learners ask for the rows of one list at a time.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and features there are."""

    def __getitem__(self, rows: slice) -> Any:  # noqa: ANN401
        """Return rows as an array or a CSR matrix."""


class CandidateLosses(NamedTuple):
    """Lists with their losses, checked; see `check_lists`.

    Attributes
    ----------
    indptr : ndarray of int, (n_lists + 1,)
        List i has the candidates from `indptr[i]` to `indptr[i + 1]`.
    excess : ndarray of float, (n_candidates,)
        The loss of each candidate, less that of the best of its list.
    base_scores : ndarray of float, (n_candidates,)
        Scores that are added to those learnt.
    best : ndarray of int, (n_lists,)
        The candidate of each list with the smallest loss; of several, the one with the highest base score.
    """

    indptr: Integers
    excess: FloatArray
    base_scores: FloatArray
    best: Integers

    def spans(self) -> list[tuple[int, int]]:
        """Return where each list begins and ends."""
        return list(pairwise(self.indptr.tolist()))


def check_lists(
    indptr: npt.ArrayLike, losses: npt.ArrayLike, base_scores: npt.ArrayLike | None = None
) -> CandidateLosses:
    """Return lists with their losses, if they can be learnt from."""
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
    """Return where lists begin and end, if none of them is empty."""
    bounds = np.asarray(indptr, dtype=np.int64)
    if bounds.ndim != 1 or len(bounds) < 2 or bounds[0] != 0:
        raise InputError(f"indptr has the shape {bounds.shape}; expected 0 and where each list ends")
    empty = np.flatnonzero(np.diff(bounds) <= 0)
    if len(empty):
        raise InputError(f"list {empty[0]} has no candidates; expected at least one")
    return bounds


def check_numbers(name: str, values: npt.ArrayLike, n_values: int) -> FloatArray:
    """Return numbers, one for each candidate, all of which are finite."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {type(values).__name__}; expected an array of numbers") from None
    if numbers.shape != (n_values,):
        raise InputError(
            f"{name} has the shape {numbers.shape}; expected ({n_values},), one for each candidate"
        )
    if not np.isfinite(numbers).all():
        raise InputError(f"{name} has the value {numbers[~np.isfinite(numbers)][0]}; expected finite numbers")
    return numbers


def best_rows(scores: FloatArray, indptr: Integers) -> Integers:
    """Return the candidate of each list with the highest score; the first among equals."""
    winners = [begin + int(scores[begin:end].argmax()) for begin, end in pairwise(indptr.tolist())]
    return np.array(winners, dtype=np.int64)


def products(rows_a: Any, rows_b: Any) -> FloatArray:  # noqa: ANN401
    """Return the inner products of all pairs of rows."""
    found = _unpack(rows_a) @ _unpack(rows_b).T
    return np.asarray(found.toarray() if issparse(found) else found, dtype=np.float64)


def _unpack(rows: Any) -> Any:  # noqa: ANN401
    """Return a matrix that is sparse by name only as an array, which is multiplied much faster."""
    size = rows.shape[0] * rows.shape[1]
    is_full = issparse(rows) and rows.nnz > FULL_SHARE * size and size <= MOST_UNPACKED
    return rows.toarray() if is_full else rows


def add_rows(weights: FloatArray, rows: Any, amounts: FloatArray) -> None:  # noqa: ANN401
    """Add some multiple of each row to weights, in place."""
    if issparse(rows):
        total = csr_matrix(amounts) @ rows
        weights[total.indices] += total.data
    else:
        weights += amounts @ rows
