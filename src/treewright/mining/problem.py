"""Learning problems of an L1-norm SVM: predict the label of each row, or the best row of each list.

The loss of a sample is defined as in Qian & Liu (2015, section 3.2), with the sign corrected: the maximum,
over all alternatives, of the cost plus the score of the alternative minus the score of the correct
alternative. If an incorrect alternative has the maximum, the sample is a violator.
"""

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, Integers
from treewright._validate import check_integer
from treewright.errors import InputError, show
from treewright.mining.space import Violations
from treewright.native.learn.proximal import Alternatives, find_violators

SAMPLE_BYTES, SCORE_BYTES = 32, 8
"""Bytes that mining needs per sample, in addition to its alternatives, and per score."""


class Problem:
    """Samples with alternatives, one of which is correct; made by `label_problem` and `list_problem`.

    Parameters
    ----------
    alternatives : Alternatives
    n_rows : int
        Number of rows to which the alternatives refer.
    n_outputs : int
        Number of weights per feature.
    has_intercept : bool
        Whether each output has an intercept.
    """

    def __init__(
        self, alternatives: Alternatives, n_rows: int, n_outputs: int, *, has_intercept: bool
    ) -> None:
        self.alternatives = alternatives
        self.n_rows = n_rows
        self.n_outputs = n_outputs
        self.has_intercept = has_intercept

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.alternatives.indptr) - 1

    @property
    def n_bytes(self) -> int:
        """Bytes of the samples, with their labels, scores and order."""
        own = sum(array.nbytes for array in self.alternatives)
        return own + SAMPLE_BYTES * self.n_samples + SCORE_BYTES * self.n_rows * self.n_outputs

    def without_base_scores(self) -> "Problem":
        """Return the same problem without base scores."""
        bare = self.alternatives._replace(base_scores=np.zeros_like(self.alternatives.base_scores))
        return Problem(bare, self.n_rows, self.n_outputs, has_intercept=self.has_intercept)

    def assess(self, scores: FloatArray) -> tuple[float, Integers]:
        """Return the sum of the losses and, for each sample, the alternative with the highest loss.

        The alternative is -1 for samples without a positive loss. `scores` contains the score of each row and
        output.
        """
        worst = np.empty(self.n_samples, dtype=np.int64)
        loss: float = find_violators(self.alternatives, scores, worst)
        return loss, worst

    def violations(self, worst: Integers) -> Violations:
        """Return the rows of the correct and of the worst alternatives; a row that is both appears once."""
        violators = np.flatnonzero(worst >= 0)
        right, wrong = self.alternatives.indptr[violators + 1] - 1, worst[violators]
        rows, outputs = self.alternatives.rows, self.alternatives.outputs
        plus, minus = 2 * outputs[right], 2 * outputs[wrong] + 1
        if self.n_outputs > 1:
            counters = np.stack([plus, minus], axis=1)
            return Violations(rows[right], counters.astype(np.int32), 2 * self.n_outputs)
        counted = np.concatenate([rows[right], rows[wrong]])
        counters = np.concatenate([plus, minus])[:, np.newaxis]
        return Violations(counted[counted >= 0], counters[counted >= 0].astype(np.int32), 2)


def label_problem(labels: npt.ArrayLike, n_classes: int) -> Problem:
    """Describe a classification problem for `GradientMiner`: one label per row.

    With two classes, a feature has one weight, which is positive if the feature is evidence for class 1.

    Parameters
    ----------
    labels : array of int, (n_rows,)
        The class of each row, from 0 to `n_classes` - 1.
    n_classes : int
        Number of classes, at least 2.

    Returns
    -------
    Problem
        The classification problem.

    See Also
    --------
    list_problem : Ranking instead of classification.
    GradientMiner : Selects features for a problem.

    Examples
    --------
    >>> problem = tw.label_problem([1, 0, 0, 2], n_classes=3)
    >>> problem.n_samples, problem.n_outputs
    (4, 3)
    """
    labels = _as_integers("labels", labels)
    check_integer("n_classes", n_classes, minimum=2)
    if len(labels) and not 0 <= labels.min() <= labels.max() < n_classes:
        raise InputError(f"labels are from {labels.min()} to {labels.max()}; expected 0 to {n_classes - 1}")
    n_samples = len(labels)
    samples = np.arange(n_samples)
    if n_classes == 2:
        # The right alternative is last: the row itself for label 1, none for label 0.
        rows = np.where(labels[:, np.newaxis] == [[0, 1]], samples[:, np.newaxis], -1)
        outputs = np.zeros((n_samples, 2), dtype=np.int64)
    else:
        # Among equal losses the first counts: the order of wrong classes rotates, so that none is favoured.
        turns = (samples[:, np.newaxis] + np.arange(n_classes - 1)) % (n_classes - 1)
        wrong = (labels[:, np.newaxis] + 1 + turns) % n_classes
        outputs = np.column_stack([wrong, labels])
        rows = np.repeat(samples, n_classes).reshape(n_samples, n_classes)
    costs = np.ones(rows.shape)
    costs[:, -1] = 0
    indptr = np.arange(n_samples + 1) * rows.shape[1]
    base_scores = np.zeros(rows.size)
    alternatives = Alternatives(indptr, rows.ravel(), outputs.ravel(), costs.ravel(), base_scores)
    return Problem(alternatives, n_samples, 1 if n_classes == 2 else n_classes, has_intercept=True)


def list_problem(
    indptr: npt.ArrayLike,
    right: npt.ArrayLike,
    *,
    costs: npt.ArrayLike | None = None,
    base_scores: npt.ArrayLike | None = None,
) -> Problem:
    """Describe a ranking problem for `GradientMiner`: find the correct row of each list.

    Parameters
    ----------
    indptr : array of int, (n_lists + 1,)
        List i has the rows from `indptr[i]` to `indptr[i + 1] - 1`. Lists must not be empty.
    right : array of int, (n_lists,)
        The index of the correct row of each list, counted over all lists.
    costs : array of float, (n_rows,), optional
        The cost of choosing each row; by default 0 for the correct rows and 1 for all others.
    base_scores : array of float, (n_rows,), optional
        Scores to which the learnt scores are added, such as the scores of a parser.

    Returns
    -------
    Problem
        The reranking problem.

    See Also
    --------
    label_problem : Classification instead of ranking.
    CandidateReranker : Reranks lists with features of your own.

    Examples
    --------
    Two lists of two rows each; the first row of one and the second row of the other are correct:

    >>> problem = tw.list_problem([0, 2, 4], [0, 3])
    >>> problem.n_samples, problem.n_rows
    (2, 4)
    """
    indptr, right = _as_integers("indptr", indptr), _as_integers("right", right)
    if len(indptr) != len(right) + 1 or indptr[0] != 0 or (np.diff(indptr) < 1).any():
        raise InputError(
            "indptr does not divide the rows into one list per entry of right; expected 0, followed by the "
            "end of each list"
        )
    outside = np.flatnonzero((right < indptr[:-1]) | (right >= indptr[1:]))
    if len(outside):
        at = int(outside[0])
        raise InputError(
            f"right[{at}] is {right[at]}; expected a row from {indptr[at]} to {indptr[at + 1] - 1}"
        )
    n_rows = int(indptr[-1])
    is_right = np.zeros(n_rows, dtype=np.bool_)
    is_right[right] = True
    lists = np.repeat(np.arange(len(right)), np.diff(indptr))
    order = np.lexsort((is_right, lists))
    costs = np.ones(n_rows) if costs is None else _as_scores("costs", costs, n_rows)
    base_scores = np.zeros(n_rows) if base_scores is None else _as_scores("base_scores", base_scores, n_rows)
    alternatives = Alternatives(
        indptr,
        order,
        np.zeros(n_rows, dtype=np.int64),
        np.where(is_right, 0.0, costs)[order],
        base_scores[order],
    )
    return Problem(alternatives, n_rows, 1, has_intercept=False)


def _as_integers(name: str, values: npt.ArrayLike) -> Integers:
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        array = np.asarray(values, dtype=object)
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise InputError(
            f"{name} is a {array.ndim}-dimensional array of {array.dtype}; "
            "expected a 1-dimensional array of integers"
        )
    return array.astype(np.int64)


def _as_scores(name: str, values: npt.ArrayLike, n_rows: int) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is {show(values)}; expected numbers, one per row") from error
    if array.shape != (n_rows,):
        raise InputError(f"{name} has the shape {array.shape}; expected {(n_rows,)}, one value per row")
    return array
