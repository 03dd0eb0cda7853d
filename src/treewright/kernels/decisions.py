"""Candidate lists as flat arrays: each candidate is a sequence of decisions of a probability model.

A *step* is one evaluation of a softmax: a hidden vector and the probabilities of the outputs. A *choice* is
one output of one step. The probability of a candidate is the product of the probabilities of its choices.
Candidates with a common prefix share the steps of the prefix.

Outputs are numbered consecutively over all softmax groups of the model: with four actions and ten labels,
action 2 may be output 2, and label 3 may be output 7.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from treewright._typing import Booleans, FloatArray, Integers
from treewright._validate import check_integer, check_type
from treewright.errors import InputError, show

TOLERANCE = 1e-6
"""Maximum difference between 1 and the sum of a step's probabilities."""


class DecisionList(NamedTuple):
    """The candidates of one list, each of which is a sequence of choices of a probability model.

    Create it with `make_decision_list`, which checks the arrays.

    Attributes
    ----------
    hidden : ndarray of float, (n_steps, n_hidden)
        The hidden vector of each step, from which its softmax is computed. A float32 array is not converted.
    steps, outputs : ndarray of int, (n_choices,)
        The step at which each choice is made, and the chosen output.
    log_probabilities : ndarray of float, (n_choices,)
        The log probability of each choice.
    indptr : ndarray of int, (n_candidates + 1,)
        Candidate k has the choices from `indptr[k]` to `indptr[k + 1]`.
    n_outputs : int
        Total number of outputs in all softmax groups of the model.
    distributions : csr_matrix of float, (n_steps, n_outputs), or None
        The probability of each output of each step. Outputs of other groups, and outputs that are not
        allowed, have no entry.
    is_observed : ndarray of bool, (n_choices,), or None
        Whether the input determines each choice, as it determines the words of a sentence.

    See Also
    --------
    make_decision_list : Creates and validates a list.
    GradientList : Candidates of any differentiable model.

    Examples
    --------
    >>> rows = tw.softmax_rows([[0.0, 1.0], [2.0, 0.0]], [0, 0], 2)
    >>> candidates = tw.make_decision_list(
    ...     [[1.0], [0.5]], [0, 1], [0, 1], [0, 1, 2], n_outputs=2, distributions=rows
    ... )
    >>> candidates.n_candidates, candidates.log_probabilities.round(2).tolist()
    (2, [-1.31, -2.13])
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
        """Number of candidates."""
        return len(self.indptr) - 1


class GradientList(NamedTuple):
    """The candidates of one list, from any differentiable model.

    Create it with `make_gradient_list`, which checks the arrays, or with `TorchGradients`.

    Attributes
    ----------
    log_probabilities : ndarray of float, (n_candidates,)
        The log probability of each candidate.
    gradients : ndarray of float, (n_candidates, n_parameters)
        The gradient of each log probability with respect to the parameters of the model.

    See Also
    --------
    make_gradient_list : Creates and validates a list.
    TorchGradients : Computes lists with a PyTorch model.
    DecisionList : Candidates as sequences of choices.

    Examples
    --------
    >>> tw.make_gradient_list([-0.5, -1.0], [[1.0, 0.0], [0.0, 2.0]]).n_candidates
    2
    """

    log_probabilities: FloatArray
    gradients: FloatArray

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
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
    """Create a `DecisionList`: candidates as sequences of choices of a probability model.

    The arrays are validated.

    Parameters
    ----------
    hidden : array of float, (n_steps, n_hidden)
        The hidden vector of each step, from which its softmax is computed. A float32 array is not converted.
    steps, outputs : array of int, (n_choices,)
        The step at which each choice is made, and the chosen output.
    indptr : array of int, (n_candidates + 1,)
        Candidate k has the choices from `indptr[k]` to `indptr[k + 1]`.
    n_outputs : int
        Total number of outputs in all softmax groups of the model.
    distributions : array or sparse matrix of float, (n_steps, n_outputs), optional
        The probability of each output of each step; see `softmax_rows`. All derived kernels except
        `EfficientTopRerankingKernel` need it.
    log_probabilities : array of float, (n_choices,), optional
        The log probability of each choice (default: computed from `distributions`).
    is_observed : array of bool, (n_choices,), optional
        Whether the input determines each choice, as it determines the words of a sentence. `TopKernel` needs
        it.

    Returns
    -------
    DecisionList
        The candidates.

    See Also
    --------
    softmax_rows : Computes the distributions.
    merge_prefixes : Lets candidates share the steps of common prefixes.
    make_gradient_list : The same for any differentiable model.

    Examples
    --------
    Two candidates that share two steps; both choose output 0 at the first, and different outputs at the
    second:

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
    observed = None
    if is_observed is not None:
        try:
            observed = np.asarray(is_observed, dtype=np.bool_)
        except ValueError:
            raise InputError(
                f"is_observed is {show(is_observed)}; expected a value for each choice"
            ) from None
    if observed is not None and observed.shape != size:
        raise InputError(f"is_observed has the shape {observed.shape}; expected {size}, one for each choice")
    return DecisionList(vectors, at, chosen, logs, bounds, int(n_outputs), rows, observed)


def make_gradient_list(log_probabilities: npt.ArrayLike, gradients: npt.ArrayLike) -> GradientList:
    """Create a `GradientList`: candidates of any differentiable model.

    The arrays are validated.

    Parameters
    ----------
    log_probabilities : array of float, (n_candidates,)
        The log probability of each candidate.
    gradients : array of float, (n_candidates, n_parameters)
        The gradient of each log probability with respect to the parameters of the model.

    Returns
    -------
    GradientList
        The candidates.

    See Also
    --------
    TorchGradients : Computes lists with a PyTorch model.
    make_decision_list : Candidates as sequences of choices.

    Examples
    --------
    >>> candidates = tw.make_gradient_list([-0.5, -1.0], [[1.0, 0.0], [0.0, 2.0]])
    >>> tw.FisherKernel()([candidates]).tolist()
    [[1.25, 0.5], [0.5, 5.0]]
    """
    logs = _as_floats("log_probabilities", log_probabilities, 1)
    slopes = _as_floats("gradients", gradients, 2)
    if len(slopes) != len(logs) or not len(logs):
        found = f"gradients has {len(slopes)} rows and log_probabilities {len(logs)} values"
        raise InputError(f"{found}; expected equal numbers, at least one")
    return GradientList(logs, slopes)


def softmax_rows(logits: Sequence[npt.ArrayLike], starts: npt.ArrayLike, n_outputs: int) -> csr_matrix:
    """Compute the output distributions of steps, as rows of a sparse matrix.

    Each row has the softmax of the step's logits in the columns of its output group.

    Parameters
    ----------
    logits : sequence of array of float
        The logits of the outputs of each step's softmax group; minus infinity for outputs that are not
        allowed.
    starts : array of int, (n_steps,)
        The index of the first output of each step's group.
    n_outputs : int
        Total number of outputs in all groups.

    Returns
    -------
    csr_matrix of float, (n_steps, n_outputs)
        The probability of each output of each step; outputs of other groups have the probability 0.

    See Also
    --------
    make_decision_list : Takes the matrix as `distributions`.

    Examples
    --------
    Two steps with different groups: the first has outputs 0 and 1, the second has outputs 2 to 4.

    >>> tw.softmax_rows([[0.0, 1.0], [2.0, 0.0, 0.0]], [0, 2], 5).toarray().round(2).tolist()
    [[0.27, 0.73, 0.0, 0.0, 0.0], [0.0, 0.0, 0.79, 0.11, 0.11]]
    """
    check_integer("n_outputs", n_outputs, minimum=1)
    check_type("logits", logits, (Sequence, np.ndarray), "a list of the scores of each step")
    begins = _as_numbers("starts", starts, (len(logits),), n_outputs)
    values, columns = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for number, (row, begin) in enumerate(zip(logits, begins.tolist(), strict=True)):
        scores = np.asarray(row, dtype=np.float64)
        allowed = np.flatnonzero(scores > -np.inf)
        if scores.ndim != 1 or not len(allowed) or not np.isfinite(scores[allowed]).all():
            raise InputError(f"logits of step {number} are {scores!r}; expected numbers, not all -inf")
        if begin + len(scores) > n_outputs:
            last = begin + len(scores) - 1
            raise InputError(f"the last output of step {number} is {last}; expected at most {n_outputs - 1}")
        shares = np.exp(scores[allowed] - scores[allowed].max())
        values.append(shares / shares.sum())
        columns.append(begin + allowed)
    bounds = np.cumsum([len(row) for row in columns])
    return csr_matrix((np.concatenate(values), np.concatenate(columns), bounds), (len(logits), n_outputs))


def merge_prefixes(decisions: DecisionList) -> DecisionList:
    """Merge the steps of candidates that begin with the same choices.

    Use it for models in which a step depends only on the preceding choices. Steps that are no longer needed
    are removed.

    Parameters
    ----------
    decisions : DecisionList
        Candidates that each have their own steps.

    Returns
    -------
    DecisionList
        The same candidates, with shared steps for common prefixes.

    See Also
    --------
    make_decision_list : Creates a list of candidates.
    TopKernel : Needs merged prefixes.

    Examples
    --------
    >>> rows = tw.softmax_rows([[0.0, 1.0]] * 4, [0] * 4, 2)
    >>> separate = tw.make_decision_list(
    ...     [[1.0], [0.5]] * 2, [0, 1, 2, 3], [0, 0, 0, 1], [0, 2, 4], n_outputs=2, distributions=rows
    ... )
    >>> tw.merge_prefixes(separate).steps.tolist()
    [0, 1, 0, 1]
    """
    check_type("decisions", decisions, DecisionList, "a DecisionList")
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
    """Return the log probability of each candidate."""
    if isinstance(decisions, GradientList):
        return decisions.log_probabilities
    owners = np.repeat(np.arange(decisions.n_candidates), np.diff(decisions.indptr))
    sums = np.bincount(owners, decisions.log_probabilities, minlength=decisions.n_candidates)
    return np.asarray(sums, dtype=np.float64)


def _as_floats(name: str, values: npt.ArrayLike, n_dimensions: int) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = f"of the type {type(values).__name__}"
        raise InputError(f"{name} is {found}; expected an array of numbers") from None
    if array.ndim != n_dimensions:
        raise InputError(f"{name} has {array.ndim} dimensions; expected {n_dimensions}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has the value {array[~np.isfinite(array)][0]}; expected finite numbers")
    return array


def _as_numbers(name: str, values: npt.ArrayLike, shape: tuple[int], limit: int) -> Integers:
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        raise InputError(f"{name} is {show(values)}; expected an array of integers") from None
    if array.shape != shape:
        raise InputError(f"{name} has the shape {array.shape}; expected {shape}")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name} has the dtype {array.dtype}; expected integers")
    outside = array[(array < 0) | (array >= limit)]
    if outside.size:
        raise InputError(f"{name} has the value {outside[0]}; expected numbers from 0 to {limit - 1}")
    return array.astype(np.int64)


def _check_indptr(indptr: npt.ArrayLike) -> Integers:
    try:
        bounds = np.asarray(indptr, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        found = show(indptr)
        raise InputError(f"indptr is {found}; expected 0 followed by the end of each candidate") from None
    if bounds.ndim != 1 or len(bounds) < 2 or bounds[0] != 0 or (np.diff(bounds) < 0).any():
        found = np.array2string(bounds, threshold=8)
        raise InputError(f"indptr is {found}; expected 0 followed by the end of each candidate")
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
    try:
        rows = csr_matrix(distributions, dtype=np.float64)
    except (TypeError, ValueError):
        found = f"distributions is of type {type(distributions).__name__}"
        raise InputError(f"{found}; expected a matrix of numbers, a row for each step") from None
    if rows.shape != shape:
        raise InputError(f"distributions has the shape {rows.shape}; expected {shape}, a row for each step")
    sums = np.asarray(rows.sum(axis=1)).ravel()
    wrong = np.flatnonzero(~(np.abs(sums - 1) < TOLERANCE * max(1, shape[1])))
    if len(wrong) or rows.data.min(initial=0) < 0:
        if len(wrong):
            place = int(wrong[0])
        else:
            place = int(np.searchsorted(rows.indptr, rows.data.argmin(), "right")) - 1
        raise InputError(
            f"the probabilities of step {place} have the sum {sums[place]:g}; "
            "expected the sum 1 and no negative values"
        )
    return rows


def _look_up(rows: csr_matrix | None, steps: Integers, outputs: Integers) -> FloatArray:
    if rows is None or not issparse(rows):
        raise InputError("log_probabilities and distributions are both None; expected at least one of them")
    chosen = np.asarray(rows[steps, outputs], dtype=np.float64).ravel() if len(steps) else np.zeros(0)
    wrong = np.flatnonzero(chosen <= 0)
    if len(wrong):
        at = int(wrong[0])
        raise InputError(
            f"choice {at} (output {outputs[at]} of step {steps[at]}) has the probability 0; "
            "expected a positive probability"
        )
    return np.asarray(np.log(chosen), dtype=np.float64)
