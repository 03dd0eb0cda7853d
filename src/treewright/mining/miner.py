"""Conjunctions of binary features, selected for scikit-learn."""

import os
from typing import Annotated, Any, Literal, Self

import numpy as np
from sklearn.base import TransformerMixin

from treewright._typing import Count, Fraction, LimitedMemory, NonNegativeFloat, NonNegativeInt, Range
from treewright.mining.estimator import ConjunctionEstimator
from treewright.scale import Client


class ConjunctionMiner(TransformerMixin, ConjunctionEstimator):  # type: ignore[misc]
    """Selects conjunctions of binary features, of any order, and turns rows into them.

    No conjunction is ever made that its parts rule out, so that the space of all of them need not fit
    anywhere; see the page on mining for how.

    Parameters
    ----------
    degree : int
        Maximum number of features in a conjunction.
    threshold : float or "auto"
        L1 threshold; a higher one selects fewer conjunctions. A conjunction enters when it is present in more
        violating samples of one side than of the other, by more than this. Chosen on held-out samples if
        "auto".
    max_iter : int
        Maximum number of mining rounds. See `GradientMiner` for this and the next four;
        ``**PAPER_SETTINGS`` are those of Qian & Liu (2015).
    step : float or {"auto", "decreasing"}
        Step size of a round: a constant, 1/sqrt(round), or automatic.
    refine : int
        Passes over the samples between two mining rounds.
    pretrain_order : int
        Order up to which features are mined first, alone.
    tol : float
        Stop when two rounds lower the objective by less than this share.
    path : bool or "auto"
        Approach the threshold from above, which selects fewer conjunctions. With an automatic threshold
        "auto" also tries to go there at once, in five rounds, and does so if that is better on the held-out
        samples; with a given one it is the same as True.
    validation_fraction : float
        Share of the samples on which a threshold is chosen.
    memory_limit : int, optional
        Memory limit beside the samples; the rest goes to disk. These are the bytes that `fit` may take
        beside `X` and the packages (not the list `conjunctions_`, nor what another
        final estimator takes, nor a copy of an `X` that is no CSR matrix with int32 indices and int8 values).
        Beyond it what survivors keep goes to disk, and less is counted at a time, which is slower; the result
        is the same. One that is too small is refused with the least that would do.
    filter_memory : int, optional
        Memory of a Bloom filter that candidates pass before counting. It is a spectral one; the result does
        not depend on it.
    sparse_output : bool
        Return sparse matrices from `transform`.
    n_jobs : int
        Number of threads; results do not depend on it.
    random_state : int
        Seed of the random numbers.

    Attributes
    ----------
    conjunctions_ : list of tuple of int
        The columns of each selected conjunction, ascending; single features are among them.
    coef_ : ndarray of float, (n_classes or 1, n_conjunctions)
    intercept_ : ndarray of float, (n_classes or 1,)
    classes_ : ndarray
    threshold_ : float
        The threshold that was used.
    followed_path_ : bool
        Whether the threshold was approached from above.
    path_ : list of PathStep
        The thresholds that were tried, with accuracies on the held-out samples.
    history_ : list of IterationReport
        How each round ended. This and `path_` are empty in a loaded miner.
    n_iter_ : int

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
        degree: Count = 3,
        threshold: NonNegativeFloat | Literal["auto"] = "auto",
        max_iter: Count = 20,
        step: Annotated[float, Range(1e-12, 1e12)] | Literal["auto", "decreasing"] = "auto",
        refine: NonNegativeInt = 10,
        pretrain_order: NonNegativeInt = 0,
        tol: Fraction = 1e-3,
        path: bool | Literal["auto"] = "auto",
        validation_fraction: Annotated[float, Range(0.01, 0.9)] = 0.2,
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
        self.memory_limit = memory_limit
        self.filter_memory = filter_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.sparse_output = sparse_output

    def fit(
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
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
        checkpoint : path, optional
            A folder where each round is kept; the same call goes on from there after an interruption.
        client : distributed.Client, optional
            A cluster that counts conjunctions; the result is the same.
        """
        _, _, mined = self._mine(X, y, checkpoint, client)
        self.coef_ = np.ascontiguousarray(mined.weights.T)
        self.intercept_ = mined.intercept
        return self

    def transform(self, X: Any) -> Any:  # noqa: ANN401
        """Return which of the selected conjunctions are present in each row."""
        found = self._find(X)
        return found if self.sparse_output else found.toarray()
