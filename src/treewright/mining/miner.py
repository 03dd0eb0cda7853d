"""A scikit-learn transformer that selects conjunctions of binary features."""

import os
from typing import Annotated, Any, Literal, Self

import numpy as np
from sklearn.base import TransformerMixin

from treewright._typing import (
    Count,
    Fraction,
    Jobs,
    LimitedMemory,
    NonNegativeFloat,
    NonNegativeInt,
    RandomState,
    Range,
)
from treewright.data.frames import in_set_output
from treewright.mining.estimator import ConjunctionEstimator, repeat_samples, weigh_samples
from treewright.model import seeded
from treewright.scale import Client


class ConjunctionMiner(TransformerMixin, ConjunctionEstimator):  # type: ignore[misc]
    """Transformer that selects conjunctions of binary features, of any order.

    A conjunction is counted only if its parts are frequent enough, so the space of all conjunctions is never
    enumerated; the page on mining explains how.

    Parameters
    ----------
    degree : int or "auto"
        Maximum number of features in a conjunction. "auto" is 5 if conjunctions are added to a linear model,
        and 3 otherwise.
    threshold : float or "auto"
        L1 threshold; a higher one selects fewer conjunctions. A conjunction is selected if its counts in
        violating samples for and against a class differ by more than this. If "auto", conjunctions are added
        to a linear model of all columns while the held-out loss falls.
    max_iter : int
        Maximum number of mining rounds. The next five parameters apply only with a given threshold or with
        ``linear=False``; see `GradientMiner`. ``**PAPER_SETTINGS`` gives the settings of Qian & Liu (2015).
    step : float or {"auto", "decreasing"}
        Step size of a round: a constant, "decreasing" (1/sqrt(round)) or "auto". "auto" halves the step until
        the objective does not rise.
    refine : int
        Number of passes over the samples between two mining rounds.
    pretrain_order : int
        Mine features up to this order first.
    tol : float
        Stop when two rounds in a row lower the objective by less than this fraction.
    path : bool or "auto"
        Lower the threshold step by step, which selects fewer conjunctions. With an automatic threshold and
        ``linear=False``, "auto" also tries up to five rounds with the final threshold only, and uses this
        result if it scores higher on the held-out samples. With a given threshold, "auto" is the same as
        True.
    validation_fraction : float
        Fraction of the samples to hold out. Small data sets are split up to three times.
    linear : bool
        Add conjunctions to a linear model of all columns, if the threshold is automatic. If False, Algorithm
        1 selects conjunctions, with a threshold chosen on held-out samples.
    negations : bool
        Allow negated columns in conjunctions that are added to a linear model.
    one_standard_error : bool
        Select the fewest conjunctions with a loss within one standard error of the lowest.
    max_seconds : float, optional
        Time limit of the selection in seconds. When it is reached, no more conjunctions are added, and a
        warning is issued.
    memory_limit : int, optional
        Memory limit in bytes, not counting the samples. Also not counted are imported packages, the list
        `conjunctions_`, the final estimator, and the copy of `X` that is made unless `X` is a CSR matrix with
        int32 indices and int8 values. Beyond the limit, intermediate results are written to disk and features
        are counted in smaller batches, which is slower; the result is the same. If the limit is too small,
        the error gives the minimum.
    filter_memory : int, optional
        Memory of a Bloom filter that removes rare candidates before counting. The result does not depend on
        it.
    sparse_output : bool
        Return sparse matrices from `transform`.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.

    Attributes
    ----------
    conjunctions_ : list of tuple of int
        The columns of each selected conjunction, in ascending order; single columns are included. A column
        that must be absent is given as the negative number ``~column``.
    coef_ : ndarray of float, (n_classes or 1, n_conjunctions)
        Weights of the conjunctions.
    intercept_ : ndarray of float, (n_classes or 1,)
        The intercepts.
    classes_ : ndarray
        The classes.
    threshold_ : float
        The threshold that was used. If conjunctions were added to a linear model, it is the lowest score
        statistic (a sum of residuals divided by its standard error) that was required to add a conjunction.
    followed_path_ : bool
        Whether the threshold was lowered step by step.
    path_ : list of PathStep
        The thresholds that were tried, with scores on the held-out samples: accuracies, or negative mean
        logistic losses.
    history_ : list of IterationReport or StepReport
        A report of each round. This and `path_` are empty in a loaded miner.
    n_iter_ : int
        Number of rounds.
    is_exact_ : bool
        Whether all conjunctions that could be selected were counted. Like `is_out_of_time_`, it is not saved.
    is_out_of_time_ : bool
        Whether the selection stopped because `max_seconds` was reached.

    See Also
    --------
    ConjunctionClassifier : Selects conjunctions and trains a classifier on them.
    GradientMiner : Mines features of any feature space.
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
        n_jobs: Jobs = 1,
        random_state: RandomState = 0,
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

    @seeded
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
            Binary samples.
        y : array, (n_samples,)
            Labels of any kind.
        sample_weight : array, (n_samples,), optional
            Weights of the samples. With a given threshold or ``linear=False``, they must be integers: the
            number of times that each sample is counted.
        checkpoint : path, optional
            Folder in which each round is saved; after an interruption, the same call resumes from it.
        client : distributed.Client, optional
            Cluster that counts conjunctions; the result is the same. It is used only with a given threshold
            or ``linear=False``.
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
        """Return which of the selected conjunctions are present in each sample.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.

        Returns
        -------
        csr_matrix or ndarray of float, (n_samples, n_conjunctions)
            1 where a conjunction is present, and 0 elsewhere; a sparse matrix if `sparse_output` is True.
            After ``set_output(transform="pandas")``, a data frame, whose columns are sparse if
            `sparse_output` is True.
        """
        found = self._find(X)
        return in_set_output(self, found, X) if self.sparse_output else found.toarray()
