"""Conjunctions of binary features, selected for scikit-learn."""

import os
from typing import Annotated, Any, Literal, Self

import numpy as np
from sklearn.base import TransformerMixin

from treewright._typing import Count, Fraction, LimitedMemory, NonNegativeFloat, NonNegativeInt, Range
from treewright.mining.estimator import ConjunctionEstimator, repeat_samples, weigh_samples
from treewright.scale import Client


class ConjunctionMiner(TransformerMixin, ConjunctionEstimator):  # type: ignore[misc]
    """Selects conjunctions of binary features, of any order, and transforms rows into them.

    A conjunction is only counted if its parts can still be selected, so the space of all conjunctions is
    never enumerated; the page on mining explains how.

    Parameters
    ----------
    degree : int or "auto"
        Maximum number of features in a conjunction. "auto" is 5 where conjunctions are added to a linear
        model, and 3 where they are mined.
    threshold : float or "auto"
        L1 threshold; a higher one selects fewer conjunctions. A conjunction enters when it is present in more
        violating samples of one side than of the other, by more than this. If "auto", conjunctions are added
        to a linear model of all columns while that helps on held-out samples.
    max_iter : int
        Maximum number of mining rounds. This and the next four apply to a given threshold; see
        `GradientMiner`. ``**PAPER_SETTINGS`` are those of Qian & Liu (2015).
    step : float or {"auto", "decreasing"}
        Step size of a round: a constant, 1/sqrt(round), or automatic.
    refine : int
        Number of passes over the samples between two mining rounds.
    pretrain_order : int
        Mine features up to this order first.
    tol : float
        Stop when two rounds in a row lower the objective by less than this share.
    path : bool or "auto"
        Approach the threshold from above, which selects fewer conjunctions. With an automatic threshold and
        ``linear=False``, "auto" also tries five rounds at the threshold itself and keeps them if they score
        higher on the held-out samples; with a given threshold, "auto" is the same as True.
    validation_fraction : float
        Share of the samples to hold out. Small data sets are split up to five times.
    linear : bool
        Add conjunctions to a linear model of all columns, if the threshold is automatic. If False, an
        automatic threshold is that of Algorithm 1, chosen on held-out samples.
    negations : bool
        Allow absent columns as conditions, in conjunctions added to a linear model.
    one_standard_error : bool
        Select the fewest conjunctions within one standard error of the lowest held-out loss.
    max_seconds : float, optional
        Time limit of the selection. After it, no more conjunctions are added, with a warning.
    memory_limit : int, optional
        Memory limit beside the samples, in bytes. Also not counted are the packages, the list
        `conjunctions_`, the final estimator, and a copy of an `X` that is not a CSR matrix with int32 indices
        and int8 values. Beyond the limit, intermediate results go to disk and features are counted in smaller
        batches, which is slower; the result is the same. If the limit is too small, the error gives the
        minimum.
    filter_memory : int, optional
        Memory of a Bloom filter that candidates pass before counting. The result does not
        depend on it.
    sparse_output : bool
        Return sparse matrices from `transform`.
    n_jobs : int
        Number of threads; results do not depend on it.
    random_state : int
        Seed of the random numbers.

    Attributes
    ----------
    conjunctions_ : list of tuple of int
        The columns of each selected conjunction, in ascending order; single columns are included. A column
        that must be absent is the negative number ``~column``.
    coef_ : ndarray of float, (n_classes or 1, n_conjunctions)
        Weights of the conjunctions.
    intercept_ : ndarray of float, (n_classes or 1,)
        The intercepts.
    classes_ : ndarray
        The classes.
    threshold_ : float
        The threshold that was used. If conjunctions were added to a linear model, the lowest score statistic
        (a sum of residuals divided by its standard error) with which a conjunction entered.
    followed_path_ : bool
        Whether the threshold was approached from above.
    path_ : list of PathStep
        The thresholds that were tried, with scores on the held-out samples: accuracies, or minus the mean
        logistic loss.
    history_ : list of IterationReport or StepReport
        A report of each round. This and `path_` are empty in a loaded miner.
    n_iter_ : int
        Number of rounds.
    is_exact_ : bool
        Whether all conjunctions that could be selected were counted. Not saved, like `is_out_of_time_`.
    is_out_of_time_ : bool
        Whether `max_seconds` ended the selection.

    See Also
    --------
    ConjunctionClassifier : Selects conjunctions and classifies by them.
    GradientMiner : Mines features of any space.
    TableBinarizer : Turns numbers and categories into binary columns.

    Examples
    --------
    >>> import treewright as tw
    >>> X = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5
    >>> miner = tw.ConjunctionMiner(degree=2, threshold=2).fit(X, [1, 0, 0, 0] * 5)
    >>> (0, 1) in miner.conjunctions_
    True
    """

    adjustable = ("sparse_output", "n_jobs")

    def __init__(
        self,
        *,
        degree: Count | Literal["auto"] = "auto",
        threshold: NonNegativeFloat | Literal["auto"] = "auto",
        max_iter: Count = 20,
        step: Annotated[float, Range(1e-12, 1e12)] | Literal["auto", "decreasing"] = "auto",
        refine: NonNegativeInt = 10,
        pretrain_order: NonNegativeInt = 0,
        tol: Fraction = 1e-3,
        path: bool | Literal["auto"] = "auto",
        validation_fraction: Annotated[float, Range(0.01, 0.9)] = 0.2,
        linear: bool = True,
        negations: bool = True,
        one_standard_error: bool = False,
        max_seconds: Annotated[float, Range(0)] | None = None,
        memory_limit: LimitedMemory | None = None,
        filter_memory: LimitedMemory | None = None,
        sparse_output: bool = True,
        n_jobs: Count = 1,
        random_state: NonNegativeInt = 0,
    ) -> None:
        self.degree = degree
        self.threshold = threshold
        self.max_iter = max_iter
        self.step = step
        self.refine = refine
        self.pretrain_order = pretrain_order
        self.tol = tol
        self.path = path
        self.validation_fraction = validation_fraction
        self.linear = linear
        self.negations = negations
        self.one_standard_error = one_standard_error
        self.max_seconds = max_seconds
        self.memory_limit = memory_limit
        self.filter_memory = filter_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.sparse_output = sparse_output

    def fit(
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        sample_weight: Any = None,  # noqa: ANN401
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        client: Client | None = None,
    ) -> Self:
        """Select conjunctions.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Of zeros and ones.
        y : array, (n_samples,)
            Labels of any kind.
        sample_weight : array, (n_samples,), optional
            Weights of the samples; with a given threshold whole numbers, as if each were there so often.
        checkpoint : path, optional
            A folder where each round is kept; the same call goes on from there after an interruption.
        client : distributed.Client, optional
            A cluster that counts conjunctions with a given threshold or ``linear=False``; the result is the
            same.
        """
        self._check_options()
        rows, y, labels = self._check_samples(X, y)
        weights = weigh_samples(sample_weight, None, y, rows)
        if self._is_additive:
            added = self._add_to_linear(rows, labels, weights, checkpoint)
            self.coef_, self.intercept_ = np.ascontiguousarray(added.weights.T), added.intercept
            return self
        if sample_weight is not None:
            repeated = repeat_samples(weights)
            rows, labels = rows[repeated], labels[repeated]
        mined = self._mine(rows, labels, checkpoint, client)
        self.coef_ = np.ascontiguousarray(mined.weights.T)
        self.intercept_ = mined.intercept
        return self

    def transform(self, X: Any) -> Any:  # noqa: ANN401
        """Return which of the selected conjunctions are present in each row."""
        found = self._find(X)
        return found if self.sparse_output else found.toarray()
