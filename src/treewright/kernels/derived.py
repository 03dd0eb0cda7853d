"""Kernels derived from probability models (Titov & Henderson 2005): the features are derivatives.

A candidate is represented by derivatives with respect to the weights of a trained model. The first feature of
each kernel is a score of the model. The other features are the derivatives of this score with respect to the
weights and biases of the output layer (for a `DecisionList`), or with respect to any weights (for a
`GradientList`).

The derivative of a log probability is a sum over choices, in which each choice of the candidate has the
weight 1. The kernels differ only in the weights of choices.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack, issparse, vstack
from scipy.special import logsumexp

from treewright._typing import FloatArray, Integers
from treewright._validate import check_choice, check_number
from treewright.errors import InputError
from treewright.kernels.base import Kernel, PackedExamples
from treewright.kernels.compose import VectorKernel
from treewright.kernels.decisions import DecisionList, GradientList, candidate_logs
from treewright.kernels.inputs import as_collection
from treewright.kernels.prefixes import log_normalizer
from treewright.scale import one_blas_thread

AnyList = DecisionList | GradientList
SMALLEST_REST = 1e-12
"""Minimum total probability of all other candidates."""
LARGEST = 1e12


class Choices(NamedTuple):
    """The distinct choices of a list, and how often each candidate makes each choice and visits each step.

    Attributes
    ----------
    steps, outputs : ndarray of int, (n_distinct,)
        The step and the output of each distinct choice.
    of_choice : ndarray of int, (n_choices,)
        For each choice of the list, its index among the distinct choices.
    made : ndarray of float, (n_candidates, n_distinct)
        How often each candidate makes each distinct choice.
    visited : ndarray of float, (n_candidates, n_steps)
        How often each candidate visits each step.
    """

    steps: Integers
    outputs: Integers
    of_choice: Integers
    made: FloatArray
    visited: FloatArray


class Slopes(NamedTuple):
    """The score of each candidate, and its derivative as a weighted sum of the derivatives of choices.

    The derivative of a score is a linear combination of rows (`mixture`). Each row is a weighted sum of the
    derivatives of a few choices.

    Attributes
    ----------
    scores : ndarray of float, (n_candidates,)
        The score of each candidate.
    choices : ndarray of float, (n_rows, n_distinct)
        The weight of the logit of each choice.
    steps : ndarray of float, (n_rows, n_steps), or None
        The sum of these weights at each step. The negative of this sum is the weight of the step's log
        normaliser. If `steps` is None, normalisers are ignored.
    mixture : ndarray of float, (n_candidates, n_rows), or None
        Coefficients of the rows. None means that each candidate is one row.
    """

    scores: FloatArray
    choices: FloatArray
    steps: FloatArray | None
    mixture: FloatArray | None = None


class DerivedKernel(Kernel):
    """Base class of kernels derived from a probability model.

    An example is a list of candidates, since the features of a candidate may depend on the others. Kernel
    values refer to the concatenated candidates of all lists.

    Parameters
    ----------
    score_scale : float
        Factor by which the score is multiplied to obtain the first feature.
    biases : bool
        Also use the derivatives with respect to the biases of the output layer. Only for `DecisionList`.
    """

    def __init__(self, *, score_scale: float = 1.0, biases: bool = True) -> None:
        self.score_scale = score_scale
        self.biases = biases

    def features(self, lists: Sequence[AnyList]) -> Any:  # noqa: ANN401
        """Return the features of all candidates of the given lists.

        Parameters
        ----------
        lists : sequence of DecisionList or of GradientList
            Candidate lists. All must be of the same type and have the same features.

        Returns
        -------
        csr_matrix of float, (n_candidates, n_features), or ndarray
            The first column is the score. The other columns are derivatives: for `DecisionList`, with respect
            to the weights of each output, followed by its bias if `biases` is True; for `GradientList`, with
            respect to the parameters in their order.
        """
        found = [self._list_features(each) for each in self._check(lists)]
        return vstack(found, format="csr") if issparse(found[0]) else np.concatenate(found)

    def scores(self, lists: Sequence[AnyList]) -> FloatArray:
        """Return the unscaled scores of all candidates.

        Parameters
        ----------
        lists : sequence of DecisionList or of GradientList
            Candidate lists. All must be of the same type and have the same features.

        Returns
        -------
        ndarray of float, (n_candidates,)
            The scores of the candidates of all lists, in the order of the lists.
        """
        return np.concatenate([self._scores(each) for each in self._check(lists)])

    def pack(self, examples: Sequence[AnyList]) -> PackedExamples:
        """Pack lists for the evaluation of many pairs of candidates."""
        return _PackedLists(self, examples)

    def _check(self, lists: Sequence[AnyList]) -> Iterator[AnyList]:
        """Check and yield the lists; all lists must have the same features as the first."""
        check_number("score_scale", self.score_scale, low=0, high=LARGEST)
        check_choice("biases", self.biases, (False, True))
        lists = as_collection(lists)
        if isinstance(lists, DecisionList | GradientList) or not len(lists):
            found = f"of the type {type(lists).__name__}"
            raise InputError(f"lists is {found}; expected a sequence of at least one list")
        expected = _describe(lists[0])
        for number, each in enumerate(lists):
            found = _describe(each)
            if found != expected:
                raise InputError(f"list {number} is {found}; expected {expected}, like the first list")
            yield each

    @one_blas_thread
    def _list_features(self, candidates: AnyList) -> Any:  # noqa: ANN401
        if isinstance(candidates, GradientList):
            scores, slopes = self._combine_gradients(candidates)
            return np.column_stack([self.score_scale * scores, slopes])
        choices = find_choices(candidates)
        found = self._slopes(candidates, choices)
        column = csr_matrix(self.score_scale * found.scores[:, np.newaxis])
        slopes = multiply_out(candidates, choices, found, biases=self.biases)
        return hstack([column, slopes], format="csr")

    def _scores(self, candidates: AnyList) -> FloatArray:
        return rerank_scores(candidate_logs(candidates))

    @abstractmethod
    def _slopes(self, candidates: DecisionList, choices: Choices) -> Slopes:
        """Return the scores of candidates and the weights of choices in their derivatives."""

    def _combine_gradients(self, candidates: GradientList) -> tuple[FloatArray, FloatArray]:
        """Return the scores of candidates and their derivatives."""
        raise InputError(f"{type(self).__name__} cannot use a GradientList; expected a DecisionList")


class FisherKernel(DerivedKernel):
    """The Fisher kernel: a candidate's log probability and its derivatives (equation 2).

    Parameters
    ----------
    score_scale : float
        Factor by which the score is multiplied to obtain the first feature.
    biases : bool
        Also use the derivatives with respect to the biases of the output layer. Only for `DecisionList`.

    See Also
    --------
    TopKernel : Log odds instead of log probabilities.
    TopRerankingKernel : Log odds among the candidates of a list.

    Examples
    --------
    >>> candidates = tw.make_gradient_list([-0.5, -1.0], [[1.0, 0.0], [0.0, 2.0]])
    >>> tw.FisherKernel().features([candidates]).tolist()
    [[-0.5, 1.0, 0.0], [-1.0, 0.0, 2.0]]
    """

    short_name = "fisher"

    def _scores(self, candidates: AnyList) -> FloatArray:
        return candidate_logs(candidates)

    def _slopes(self, candidates: DecisionList, choices: Choices) -> Slopes:
        _need_distributions(self, candidates)
        return Slopes(candidate_logs(candidates), choices.made, choices.visited)

    def _combine_gradients(self, candidates: GradientList) -> tuple[FloatArray, FloatArray]:
        return candidates.log_probabilities, candidates.gradients


class TopKernel(DerivedKernel):
    """The TOP kernel: log odds that a candidate is correct, among all possible candidates (equations 3 to 5).

    The sum of the probabilities of all possible candidates is estimated from those in the list. Where the
    input does not determine a choice, continuations missing from the list are estimated by the mean of the
    others; see `treewright.kernels.prefixes`. Candidates must share the steps of common prefixes
    (`merge_prefixes`), and `is_observed` must mark the choices that the input determines.

    Parameters
    ----------
    score_scale : float
        Factor by which the score is multiplied to obtain the first feature.
    biases : bool
        Also use the derivatives with respect to the biases of the output layer. Only for `DecisionList`.

    See Also
    --------
    merge_prefixes : Prepares the candidates.
    TopRerankingKernel : Log odds among the candidates of a list.
    FisherKernel : Log probabilities instead of log odds.

    Examples
    --------
    >>> rows = tw.softmax_rows([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]], [0, 0, 0], 2)
    >>> candidates = tw.make_decision_list(
    ...     [[1.0], [0.5], [2.0]],
    ...     [0, 1, 0, 2],
    ...     [0, 0, 1, 1],
    ...     [0, 2, 4],
    ...     n_outputs=2,
    ...     distributions=rows,
    ...     is_observed=[False] * 4,
    ... )
    >>> tw.TopKernel().scores([candidates]).round(2).tolist()
    [-1.17, -0.55]
    """

    short_name = "top"

    def _scores(self, candidates: AnyList) -> FloatArray:
        if isinstance(candidates, GradientList):
            return self._combine_gradients(candidates)[0]
        return self._log_odds(candidates, log_normalizer(candidates).value)[0]

    def _slopes(self, candidates: DecisionList, choices: Choices) -> Slopes:
        _need_distributions(self, candidates)
        found = log_normalizer(candidates)
        scores, rest = self._log_odds(candidates, found.value)
        expected = np.bincount(choices.of_choice, found.choices, minlength=len(choices.steps))
        mixture = np.column_stack([np.eye(len(rest)), -np.ones(len(rest))]) / rest[:, np.newaxis]
        return Slopes(
            scores,
            np.vstack([choices.made, expected]),
            np.vstack([choices.visited, found.steps]),
            mixture,
        )

    @staticmethod
    def _log_odds(candidates: DecisionList, normalizer: float) -> tuple[FloatArray, FloatArray]:
        """Return the log odds of each candidate, and the total probability of all others."""
        logs = candidate_logs(candidates) - normalizer
        rest = np.maximum(-np.expm1(np.minimum(logs, 0)), SMALLEST_REST)
        return logs - np.log(rest), rest


class TopRerankingKernel(DerivedKernel):
    """The TOP reranking kernel: log odds that a candidate is the correct one in its list (equation 15).

    From the derivatives of a candidate's log probability, the probability-weighted mean over the other
    candidates is subtracted. Features that are equal for all candidates cancel out. If a list has only one
    candidate, its features are 0.

    Parameters
    ----------
    score_scale : float
        Factor by which the score is multiplied to obtain the first feature.
    biases : bool
        Also use the derivatives with respect to the biases of the output layer. Only for `DecisionList`.

    See Also
    --------
    EfficientTopRerankingKernel : A faster approximation.
    TopKernel : Log odds among all possible candidates.
    CandidateReranker : Reranks candidates with any features.

    Examples
    --------
    >>> candidates = tw.make_gradient_list([-0.5, -1.0], [[1.0, 0.0], [0.0, 2.0]])
    >>> tw.TopRerankingKernel().features([candidates]).round(2).tolist()
    [[0.5, 1.0, -2.0], [-0.5, -1.0, 2.0]]
    """

    short_name = "top-rerank"

    def _slopes(self, candidates: DecisionList, choices: Choices) -> Slopes:
        _need_distributions(self, candidates)
        return contrast(candidates, choices)

    def _combine_gradients(self, candidates: GradientList) -> tuple[FloatArray, FloatArray]:
        logs, slopes = candidates
        mixture = np.eye(len(logs)) - rival_shares(logs)
        return rerank_scores(logs), mixture @ _leave_out_shared(slopes)


class EfficientTopRerankingKernel(DerivedKernel):
    """`TopRerankingKernel` with fixed softmax normalisers (equation 18), which is faster.

    Only the outputs that candidates choose have features.

    Parameters
    ----------
    score_scale : float
        Factor by which the score is multiplied to obtain the first feature.
    biases : bool
        Also use the derivatives with respect to the biases of the output layer. Only for `DecisionList`.

    See Also
    --------
    TopRerankingKernel : The kernel that this one approximates.

    Examples
    --------
    >>> rows = tw.softmax_rows([[0.0, 1.0], [2.0, 0.0]], [0, 0], 2)
    >>> candidates = tw.make_decision_list(
    ...     [[1.0], [0.5]], [0, 1], [0, 1], [0, 1, 2], n_outputs=2, distributions=rows
    ... )
    >>> tw.EfficientTopRerankingKernel()([candidates]).round(2).tolist()
    [[3.91, -3.91], [-3.91, 3.91]]
    """

    short_name = "efficient-top"

    def _slopes(self, candidates: DecisionList, choices: Choices) -> Slopes:
        return contrast(candidates, choices)._replace(steps=None)


class _PackedLists(PackedExamples):
    def __init__(self, kernel: DerivedKernel, lists: Sequence[AnyList]) -> None:
        self._kernel = kernel
        self._packed = VectorKernel().pack(kernel.features(lists))

    def __len__(self) -> int:
        return len(self._packed)

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        return self._packed.block(rows_a, rows_b)

    def compare(self, examples: Sequence[AnyList]) -> FloatArray:
        return self._packed.compare(self._kernel.features(examples))

    def diagonal(self) -> FloatArray:
        return self._packed.diagonal()


def find_choices(candidates: DecisionList) -> Choices:
    """Return the distinct choices of a list."""
    codes = candidates.steps * candidates.n_outputs + candidates.outputs
    distinct, of_choice = np.unique(codes, return_inverse=True)
    n_candidates, n_steps = candidates.n_candidates, len(candidates.hidden)
    owners = np.repeat(np.arange(n_candidates), np.diff(candidates.indptr))
    return Choices(
        distinct // candidates.n_outputs,
        distinct % candidates.n_outputs,
        of_choice,
        _count_pairs(owners, of_choice, (n_candidates, len(distinct))),
        _count_pairs(owners, candidates.steps, (n_candidates, n_steps)),
    )


def _count_pairs(rows: Integers, columns: Integers, shape: tuple[int, int]) -> FloatArray:
    counts = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.float64)


def rerank_scores(logs: FloatArray) -> FloatArray:
    """Return each value minus the log of the sum of the exponentials of all others (equation 15)."""
    if len(logs) == 1:
        return np.zeros(1)
    others = np.where(np.eye(len(logs), dtype=np.bool_), -np.inf, logs)
    return np.asarray(logs - logsumexp(others, axis=1), dtype=np.float64)


def rival_shares(logs: FloatArray) -> FloatArray:
    """Return, for each candidate (row), the other candidates' probabilities (columns), which sum to 1."""
    if len(logs) == 1:
        return np.zeros((1, 1))
    others = np.where(np.eye(len(logs), dtype=np.bool_), -np.inf, logs)
    shares = np.exp(others - others.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float64)


def contrast(candidates: DecisionList, choices: Choices) -> Slopes:
    """Return the derivatives of equation 15: each candidate's derivative minus the mean of the others."""
    logs = candidate_logs(candidates)
    return Slopes(
        rerank_scores(logs),
        _leave_out_shared(choices.made),
        _leave_out_shared(choices.visited),
        np.eye(len(logs)) - rival_shares(logs),
    )


def _leave_out_shared(values: FloatArray) -> FloatArray:
    """Return the values with 0 in constant columns, which cancel out in differences of rows."""
    return np.asarray(values * (values != values[0]).any(axis=0), dtype=np.float64)


def multiply_out(candidates: DecisionList, choices: Choices, slopes: Slopes, *, biases: bool) -> csr_matrix:
    """Return derivatives with respect to the output layer, (n_candidates, n_outputs * width).

    The derivative of a choice's log probability with respect to the weights of an output is the step's hidden
    vector times (c - p), where p is the probability of the output, and c is 1 for the chosen output and 0 for
    the others.
    """
    vectors = candidates.hidden.astype(np.float64, copy=False)
    if biases:
        vectors = np.column_stack([vectors, np.ones(len(vectors))])
    factors = _output_factors(candidates, choices, slopes)
    present = np.flatnonzero(np.diff(factors.indptr))
    values = factors[present] @ vectors
    owners, outputs = np.divmod(present, candidates.n_outputs)
    if slopes.mixture is not None:
        owners, outputs, values = _mix(slopes.mixture, owners, outputs, values)
    width = vectors.shape[1]
    columns = outputs[:, np.newaxis] * width + np.arange(width)
    n_values = np.bincount(owners, minlength=candidates.n_candidates) * width
    bounds = np.concatenate([[0], np.cumsum(n_values)])
    shape = (candidates.n_candidates, candidates.n_outputs * width)
    return csr_matrix((values.ravel(), columns.ravel(), bounds), shape)


def _mix(
    mixture: FloatArray, owners: Integers, outputs: Integers, values: FloatArray
) -> tuple[Integers, Integers, FloatArray]:
    """Return linear combinations of rows; each combination has all outputs that occur in some row."""
    present, places = np.unique(outputs, return_inverse=True)
    block = np.zeros((mixture.shape[1], len(present), values.shape[1]))
    block[owners, places] = values
    mixed = mixture @ block.reshape(len(block), -1)
    return (
        np.repeat(np.arange(len(mixture)), len(present)),
        np.tile(present, len(mixture)),
        mixed.reshape(-1, values.shape[1]),
    )


def _output_factors(candidates: DecisionList, choices: Choices, slopes: Slopes) -> csr_matrix:
    """Return the coefficients of the hidden vectors (columns), for each row and output."""
    owners, chosen = np.nonzero(slopes.choices)
    rows = [owners * candidates.n_outputs + choices.outputs[chosen]]
    columns = [choices.steps[chosen]]
    values = [slopes.choices[owners, chosen]]
    if slopes.steps is not None:
        owners, steps = np.nonzero(slopes.steps)
        pick = csr_matrix(
            (slopes.steps[owners, steps], (np.arange(len(steps)), steps)),
            shape=(len(steps), len(candidates.hidden)),
        )
        spread = (pick @ candidates.distributions).tocoo()
        rows.append(owners[spread.row] * candidates.n_outputs + spread.col)
        columns.append(steps[spread.row])
        values.append(-spread.data)
    shape = (len(slopes.choices) * candidates.n_outputs, len(candidates.hidden))
    return csr_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape)


def _describe(candidates: AnyList) -> str:
    """Describe the type and the number of features of a list."""
    if isinstance(candidates, GradientList):
        return f"a GradientList of {candidates.gradients.shape[1]} parameters"
    if isinstance(candidates, DecisionList):
        n_outputs, n_hidden = candidates.n_outputs, candidates.hidden.shape[1]
        return f"a DecisionList of {n_outputs} outputs and {n_hidden} hidden units"
    raise InputError(
        f"a list is of the type {type(candidates).__name__}; expected a DecisionList or a GradientList"
    )


def _need_distributions(kernel: DerivedKernel, candidates: DecisionList) -> None:
    if candidates.distributions is None:
        name = type(kernel).__name__
        raise InputError(
            f"a list has no distributions; expected them, since the features of {name} include all outputs"
        )
