"""Lists of candidates, each made by a sequence of decisions of a probability model, as flat arrays.

A *step* is one soft-max that the model has evaluated: a hidden vector, and how probable each of its outputs
is. A *choice* is one output of one step. The probability of a candidate is the product of those of its
choices. Candidates that begin alike share their first steps.

Outputs are numbered through all soft-max groups of the model: with four actions and ten labels, action 2 may
be output 2 and label 3 output 7.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from treewright._typing import Booleans, FloatArray, Integers
from treewright._validate import check_integer
from treewright.errors import InputError

TOLERANCE = 1e-6
"""By how much the probabilities of a step may miss 1."""


class DecisionList(NamedTuple):
    """The candidates of one list; see `make_decision_list`.

    Attributes
    ----------
    hidden : ndarray of float, (n_steps, n_hidden)
        The vector from which each step computes its soft-max, in single precision if it was given so.
    steps, outputs : ndarray of int, (n_choices,)
        At which step each choice is made, and what is chosen.
    log_probabilities : ndarray of float, (n_choices,)
    indptr : ndarray of int, (n_candidates + 1,)
        Candidate k has the choices from `indptr[k]` to `indptr[k + 1]`.
    n_outputs : int
        Of all soft-max groups of the model together.
    distributions : csr_matrix of float, (n_steps, n_outputs), or None
        The probability of each output of each step, nothing for outputs of other groups and for those that
        are not allowed.
    is_observed : ndarray of bool, (n_choices,), or None
        Which choices the input dictates, such as its words.
    """

    hidden: npt.NDArray[np.floating[Any]]
    steps: Integers
    outputs: Integers
    log_probabilities: FloatArray
    indptr: Integers
    n_outputs: int
    distributions: Any = None
    is_observed: Booleans | None = None

    @property
    def n_candidates(self) -> int:
        """How many candidates there are."""
        return len(self.indptr) - 1


class GradientList(NamedTuple):
    """The candidates of one list of any differentiable model.

    Attributes
    ----------
    log_probabilities : ndarray of float, (n_candidates,)
    gradients : ndarray of float, (n_candidates, n_parameters)
        Of the logarithm of each candidate's probability.
    """

    log_probabilities: FloatArray
    gradients: FloatArray

    @property
    def n_candidates(self) -> int:
        """How many candidates there are."""
        return len(self.log_probabilities)


def make_decision_list(
    hidden: npt.ArrayLike,
    steps: npt.ArrayLike,
    outputs: npt.ArrayLike,
    indptr: npt.ArrayLike,
    *,
    n_outputs: int,
    distributions: Any = None,  # noqa: ANN401
    log_probabilities: npt.ArrayLike | None = None,
    is_observed: npt.ArrayLike | None = None,
) -> DecisionList:
    """Return a list of candidates, checked; arrays are as in `DecisionList`.

    The probabilities of what was chosen come from `distributions` where they are not given. Only
    `EfficientTopRerankingKernel` does without distributions.

    Examples
    --------
    Two candidates that begin with output 0 of the same step; the second step of each is its own:

    >>> from treewright.kernels.decisions import make_decision_list, softmax_rows
    >>> rows = softmax_rows([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]], [0, 0, 0], 2)
    >>> found = make_decision_list(
    ...     [[1.0], [0.5], [2.0]], [0, 1, 0, 1], [0, 0, 0, 1], [0, 2, 4], n_outputs=2, distributions=rows
    ... )
    >>> found.log_probabilities.round(2).tolist()
    [-0.69, -1.31, -0.69, -0.31]
    """
    check_integer("n_outputs", n_outputs, minimum=1)
    vectors: npt.NDArray[np.floating[Any]] = _as_floats("hidden", hidden, 2)
    if isinstance(hidden, np.ndarray) and hidden.dtype == np.float32:
        vectors = hidden
    bounds = _check_indptr(indptr)
    size = (int(bounds[-1]),)
    at = _as_numbers("steps", steps, size, len(vectors))
    chosen = _as_numbers("outputs", outputs, size, n_outputs)
    rows = _check_distributions(distributions, (len(vectors), n_outputs))
    if log_probabilities is None:
        logs = _look_up(rows, at, chosen)
    else:
        logs = _as_floats("log_probabilities", log_probabilities, 1)
    _check_logs(logs, size)
    observed = None if is_observed is None else np.asarray(is_observed, dtype=np.bool_)
    if observed is not None and observed.shape != size:
        raise InputError(f"is_observed has the shape {observed.shape}; expected {size}, one for each choice")
    return DecisionList(vectors, at, chosen, logs, bounds, int(n_outputs), rows, observed)


def make_gradient_list(log_probabilities: npt.ArrayLike, gradients: npt.ArrayLike) -> GradientList:
    """Return a list of candidates of any model, checked; arrays are as in `GradientList`."""
    logs = _as_floats("log_probabilities", log_probabilities, 1)
    slopes = _as_floats("gradients", gradients, 2)
    if len(slopes) != len(logs) or not len(logs):
        found = f"gradients has {len(slopes)} rows and log_probabilities {len(logs)} values"
        raise InputError(f"{found}; expected as many, and at least one")
    return GradientList(logs, slopes)


def softmax_rows(logits: Sequence[npt.ArrayLike], starts: npt.ArrayLike, n_outputs: int) -> csr_matrix:
    """Return the distributions of steps as rows of a sparse matrix.

    Parameters
    ----------
    logits : sequence of array of float
        Of the outputs of the soft-max group of each step; minus infinity for what is not allowed.
    starts : array of int, (n_steps,)
        The first output of that group.
    n_outputs : int
        Of all groups together.

    Returns
    -------
    csr_matrix of float, (n_steps, n_outputs)
    """
    check_integer("n_outputs", n_outputs, minimum=1)
    begins = _as_numbers("starts", starts, (len(logits),), n_outputs)
    values, columns = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for number, (row, begin) in enumerate(zip(logits, begins.tolist(), strict=True)):
        scores = np.asarray(row, dtype=np.float64)
        allowed = np.flatnonzero(scores > -np.inf)
        if scores.ndim != 1 or not len(allowed) or not np.isfinite(scores[allowed]).all():
            raise InputError(f"logits of step {number} are {scores!r}; expected numbers, not all -inf")
        if begin + len(scores) > n_outputs:
            last = begin + len(scores) - 1
            raise InputError(f"step {number} has outputs to {last}; expected at most {n_outputs - 1}")
        shares = np.exp(scores[allowed] - scores[allowed].max())
        values.append(shares / shares.sum())
        columns.append(begin + allowed)
    bounds = np.cumsum([len(row) for row in columns])
    return csr_matrix((np.concatenate(values), np.concatenate(columns), bounds), (len(logits), n_outputs))


def merge_prefixes(decisions: DecisionList) -> DecisionList:
    """Let candidates whose first outputs are the same share the steps at which they are chosen.

    For models in which a step depends on nothing but the choices before it. Steps that are no longer needed
    are left out.
    """
    numbers: dict[tuple[int, int], int] = {}
    kept: dict[int, int] = {}
    merged = []
    steps, outputs = decisions.steps.tolist(), decisions.outputs.tolist()
    for begin, end in zip(decisions.indptr[:-1].tolist(), decisions.indptr[1:].tolist(), strict=True):
        node = 0
        for at in range(begin, end):
            merged.append(kept.setdefault(node, steps[at]))
            node = numbers.setdefault((node, outputs[at]), len(numbers) + 1)
    used, places = np.unique(np.array(merged, dtype=np.int64), return_inverse=True)
    rows = decisions.distributions
    return decisions._replace(
        hidden=decisions.hidden[used], steps=places, distributions=None if rows is None else rows[used]
    )


def candidate_logs(decisions: DecisionList | GradientList) -> FloatArray:
    """Return the logarithm of the probability of each candidate."""
    if isinstance(decisions, GradientList):
        return decisions.log_probabilities
    owners = np.repeat(np.arange(decisions.n_candidates), np.diff(decisions.indptr))
    sums = np.bincount(owners, decisions.log_probabilities, minlength=decisions.n_candidates)
    return np.asarray(sums, dtype=np.float64)


def _as_floats(name: str, values: npt.ArrayLike, n_dimensions: int) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {type(values).__name__}; expected an array of numbers") from None
    if array.ndim != n_dimensions:
        raise InputError(f"{name} has {array.ndim} dimensions; expected {n_dimensions}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has the value {array[~np.isfinite(array)][0]}; expected finite numbers")
    return array


def _as_numbers(name: str, values: npt.ArrayLike, shape: tuple[int], limit: int) -> Integers:
    array = np.asarray(values)
    if array.shape != shape:
        raise InputError(f"{name} has the shape {array.shape}; expected {shape}")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name} is of {array.dtype}; expected whole numbers")
    outside = array[(array < 0) | (array >= limit)]
    if outside.size:
        raise InputError(f"{name} has the value {outside[0]}; expected numbers from 0 to {limit - 1}")
    return array.astype(np.int64)


def _check_indptr(indptr: npt.ArrayLike) -> Integers:
    bounds = np.asarray(indptr, dtype=np.int64)
    if bounds.ndim != 1 or len(bounds) < 2 or bounds[0] != 0 or (np.diff(bounds) < 0).any():
        found = np.array2string(bounds, threshold=8)
        raise InputError(f"indptr is {found}; expected 0 and where each candidate ends, in order")
    return bounds


def _check_logs(logs: FloatArray, size: tuple[int]) -> None:
    if logs.shape != size:
        raise InputError(
            f"log_probabilities has the shape {logs.shape}; expected {size}, one for each choice"
        )
    if logs.max(initial=0) > TOLERANCE:
        raise InputError(f"log_probabilities has the value {logs.max():g}; expected 0 or less")


def _check_distributions(distributions: Any, shape: tuple[int, int]) -> csr_matrix | None:  # noqa: ANN401
    if distributions is None:
        return None
    rows = csr_matrix(distributions, dtype=np.float64)
    if rows.shape != shape:
        raise InputError(f"distributions has the shape {rows.shape}; expected {shape}, a row for each step")
    sums = np.asarray(rows.sum(axis=1)).ravel()
    wrong = np.flatnonzero(~(np.abs(sums - 1) < TOLERANCE * max(1, shape[1])))
    if len(wrong) or rows.data.min(initial=0) < 0:
        place = (
            int(wrong[0]) if len(wrong) else int(np.searchsorted(rows.indptr, rows.data.argmin(), "right"))
        )
        raise InputError(
            f"probabilities of step {place} have the sum {sums[place]:g}; expected 1, and none negative"
        )
    return rows


def _look_up(rows: csr_matrix | None, steps: Integers, outputs: Integers) -> FloatArray:
    if rows is None or not issparse(rows):
        raise InputError("there are no log_probabilities and no distributions; expected either")
    chosen = np.asarray(rows[steps, outputs], dtype=np.float64).ravel() if len(steps) else np.zeros(0)
    wrong = np.flatnonzero(chosen <= 0)
    if len(wrong):
        at = int(wrong[0])
        raise InputError(
            f"choice {at}, output {outputs[at]} of step {steps[at]}, has the probability 0; expected more"
        )
    return np.asarray(np.log(chosen), dtype=np.float64)
