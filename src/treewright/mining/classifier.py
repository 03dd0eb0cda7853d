"""A scikit-learn classifier based on conjunctions of binary features."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from treewright._typing import (
    Count,
    FloatArray,
    Fraction,
    Jobs,
    LimitedMemory,
    NonNegativeFloat,
    NonNegativeInt,
    RandomState,
    Range,
)
from treewright.errors import InputError
from treewright.mining.estimator import (
    ConjunctionEstimator,
    choose,
    find_conjunctions,
    repeat_samples,
    require_final,
    train_perceptron,
    weigh_samples,
)
from treewright.mining.memory import Memory
from treewright.mining.polynomial import match_conjunctions
from treewright.mining.targets import probabilities
from treewright.model import State, seeded
from treewright.scale import Client

INTERCEPT = "(intercept)"


class Reason(NamedTuple):
    """A conjunction that holds in a sample, and its contribution to the score of the predicted class.

    Attributes
    ----------
    conjunction : str
        The conjunction, such as ``x0 & x1``, or ``(intercept)``.
    weight : float
        Its contribution to the score.

    See Also
    --------
    Explanation : A prediction with all its reasons.

    Examples
    --------
    >>> X, y = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5, ["yes", "no", "no", "no"] * 5
    >>> classifier = tw.ConjunctionClassifier(degree=2, threshold=2).fit(X, y)
    >>> reason = classifier.explain([[1, 1, 0]])[0].reasons[0]
    >>> reason.conjunction, round(reason.weight, 2)
    ('x0 & x1', 1.95)
    """

    conjunction: str
    weight: float


class Explanation(NamedTuple):
    """A prediction, its score, and the reasons whose weights add up to the score.

    Attributes
    ----------
    prediction : object
        The predicted class.
    score : float
        The sum of the weights of the reasons.
    reasons : list of Reason
        The conjunctions that hold in the sample, in descending order of absolute weight.

    See Also
    --------
    Reason : A conjunction with its weight.
    ConjunctionClassifier : Returns explanations.

    Examples
    --------
    >>> X, y = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5, ["yes", "no", "no", "no"] * 5
    >>> classifier = tw.ConjunctionClassifier(degree=2, threshold=2).fit(X, y)
    >>> explanation = classifier.explain([[1, 1, 0]])[0]
    >>> str(explanation.prediction), round(explanation.score, 2)
    ('yes', 0.97)
    """

    prediction: Any
    score: float
    reasons: list[Reason]


def _final_has(name: str) -> Any:  # noqa: ANN401
    return available_if(
        lambda self: (
            self._is_additive if self.final_estimator is None else hasattr(self.final_estimator, name)
        )
    )


class ConjunctionClassifier(ClassifierMixin, ConjunctionEstimator):  # type: ignore[misc]
    """Classifier that selects conjunctions of binary features and trains a linear model on them.

    Parameters
    ----------
    degree : int or "auto"
        Maximum number of features in a conjunction. "auto" is 5 if conjunctions are added to a linear model
        (8 for the leaves of trees), and 3 otherwise.
    threshold : float or "auto"
        L1 threshold; a higher one selects fewer conjunctions. If "auto", conjunctions are added to a linear
        model of all columns while the held-out loss falls.
    max_iter : int
        Maximum number of mining rounds. The next five parameters apply only with a given threshold or with
        ``linear=False``; see `GradientMiner`.
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
        result if it scores higher on the held-out samples.
    final_estimator : estimator, optional
        A linear classifier to train on the selected conjunctions. The default is the logistic model to which
        the conjunctions were added. With a given threshold or ``linear=False``, it is an `AveragedPerceptron`
        that starts from the mined weights and does not predict probabilities.
    validation_fraction : float
        Fraction of the samples to hold out. Small data sets are split up to three times.
    linear : bool
        Add conjunctions to a linear model of all columns, if the threshold is automatic. If False, Algorithm
        1 selects conjunctions, with a threshold chosen on held-out samples.
    negations : bool
        Allow negated columns in conjunctions that are added to a linear model.
    trees : bool
        Also boost decision trees, whose leaves are conjunctions, and average the weights of both models if
        this lowers the held-out loss. Leaves have negated columns, so ``negations=False`` excludes trees.
    one_standard_error : bool
        Select the fewest conjunctions with a loss within one standard error of the lowest.
    max_seconds : float, optional
        Time limit of the selection in seconds. When it is reached, no more conjunctions are added, and a
        warning is issued.
    class_weight : dict or "balanced", optional
        Weights of the classes; "balanced" weights are inversely proportional to the class frequencies. The
        weight of a sample is multiplied by the weight of its class.
    memory_limit : int, optional
        Memory limit in bytes, not counting the samples. Beyond it, intermediate results are written to disk;
        the result is the same. If the limit is too small, the error gives the minimum.
    filter_memory : int, optional
        Memory of a Bloom filter that removes rare candidates before counting. The result does not depend on
        it.
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
        Weights of the final estimator.
    intercept_ : ndarray of float, (n_classes or 1,)
        Intercepts of the final estimator.
    classes_ : ndarray
        The classes.
    final_estimator_ : estimator
        The fitted final estimator.
    threshold_ : float
        The threshold that was used. If conjunctions were added to a linear model, it is the lowest score
        statistic (a sum of residuals divided by its standard error) that was required to add a conjunction.
    followed_path_ : bool
        Whether the threshold was lowered step by step.
    path_ : list of PathStep
        The thresholds that were tried, with scores on the held-out samples.
    history_ : list of IterationReport or StepReport
        A report of each round. This and `path_` are empty in a loaded classifier.
    n_iter_ : int
        Number of rounds.
    is_exact_ : bool
        Whether all conjunctions that could be selected were counted. Like `is_out_of_time_`, it is not saved.
    is_out_of_time_ : bool
        Whether the selection stopped because `max_seconds` was reached.

    See Also
    --------
    ConjunctionMiner : Selects conjunctions as a transformer.
    ConjunctionRegressor : Predicts numbers.
    TableBinarizer : Turns numbers and categories into binary columns.
    list_rules : Lists the selected conjunctions with their samples.

    Examples
    --------
    >>> import treewright as tw
    >>> X = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5
    >>> classifier = tw.ConjunctionClassifier(degree=2, threshold=2).fit(X, ["yes", "no", "no", "no"] * 5)
    >>> classifier.predict([[1, 1, 0]]).tolist()
    ['yes']
    """

    EFFECTIVE_IF: ClassVar = {
        **ConjunctionEstimator.EFFECTIVE_IF,
        "trees": {"threshold": ("auto",), "linear": (True,)},
    }

    def __init__(
        self,
        *,
        degree: Count | Literal["auto"] = "auto",
        threshold: NonNegativeFloat | Literal["auto"] = "auto",
        final_estimator: Any = None,  # noqa: ANN401
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        max_iter: Count = 20,
        step: Annotated[float, Range(1e-12, 1e12)] | Literal["auto", "decreasing"] = "auto",
        refine: NonNegativeInt = 10,
        pretrain_order: NonNegativeInt = 0,
        tol: Fraction = 1e-3,
        path: bool | Literal["auto"] = "auto",
        validation_fraction: Annotated[float, Range(0.01, 0.9)] = 0.2,
        linear: bool = True,
        negations: bool = True,
        trees: bool = True,
        one_standard_error: bool = False,
        max_seconds: Annotated[float, Range(0)] | None = None,
        memory_limit: LimitedMemory | None = None,
        filter_memory: LimitedMemory | None = None,
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
        self.trees = trees
        self.one_standard_error = one_standard_error
        self.max_seconds = max_seconds
        self.memory_limit = memory_limit
        self.filter_memory = filter_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.final_estimator = final_estimator
        self.class_weight = class_weight

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
        """Select conjunctions, and train the final estimator on them.

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
        weights = weigh_samples(sample_weight, self.class_weight, y, rows)
        if self._is_additive:
            self._fit_additive(rows, y, labels, weights, checkpoint)
        else:
            if sample_weight is not None or self.class_weight is not None:
                repeated = repeat_samples(weights)
                rows, y, labels = rows[repeated], y[repeated], labels[repeated]
            self._fit_mined(rows, y, labels, checkpoint, client)
        for name in ("coef_", "intercept_"):
            if hasattr(self, name):
                delattr(self, name)
        coef = getattr(self.final_estimator_, "coef_", None)
        if coef is not None:  # of a linear final estimator, in one shape for all estimators
            coef = np.atleast_2d(coef.toarray() if hasattr(coef, "toarray") else coef)
            if len(coef) == (1 if len(self.classes_) == 2 else len(self.classes_)):
                self.coef_ = coef
                intercept = np.ravel(getattr(self.final_estimator_, "intercept_", 0.0))
                self.intercept_ = np.broadcast_to(intercept, len(coef)).astype(np.float64)
        return self

    def _fit_additive(
        self,
        rows: csr_matrix,
        y: npt.NDArray[Any],
        labels: npt.NDArray[np.int64],
        weights: FloatArray,
        checkpoint: str | os.PathLike[str] | None,
    ) -> None:
        """Add conjunctions to a linear model, and train `final_estimator` on them if it is given."""
        added = self._add_to_linear(
            rows, labels, weights, checkpoint, has_trees=self.trees and self.negations
        )
        if self.final_estimator is None:
            coef = np.ascontiguousarray(added.weights.T)
            self.final_estimator_ = Linear(self.classes_, coef, added.intercept)
            return
        if not self.conjunctions_:
            raise InputError("final_estimator has no conjunctions to learn from; give a lower threshold")
        found = find_conjunctions(rows, list(added.orders.values())).astype(np.float64)
        own = {} if (weights == 1).all() else {"sample_weight": weights}
        self.final_estimator_ = clone(self.final_estimator).fit(found, y, **own)

    def _fit_mined(
        self,
        rows: csr_matrix,
        y: npt.NDArray[Any],
        labels: npt.NDArray[np.int64],
        checkpoint: str | os.PathLike[str] | None,
        client: Client | None,
    ) -> None:
        """Select conjunctions by Algorithm 1, and train the final estimator on them."""
        mined = self._mine(rows, labels, checkpoint, client)
        memory = Memory(self.memory_limit)
        found = match_conjunctions(rows, list(mined.features.values()), memory)
        require_final(memory, found)
        found = found.astype(np.float64)
        if self.final_estimator is None:
            trained = train_perceptron(
                found, labels, mined, len(self.classes_), random_state=self.random_state
            )
            self.final_estimator_ = Linear(self.classes_, *trained)
        elif mined.n_selected:
            self.final_estimator_ = clone(self.final_estimator).fit(found, y)
        else:
            raise InputError("final_estimator has no conjunctions to learn from; give a lower threshold")

    @property
    def is_fitted(self) -> bool:
        """Whether there is a fitted final estimator, with or without weights."""
        return hasattr(self, "final_estimator_")

    def get_state(self, *, compact: bool = False) -> State:
        """Return the state of the classifier; a classifier with a `final_estimator` cannot be saved."""
        self.check_is_fitted()
        if self.final_estimator is not None:
            raise InputError(
                f"{type(self).__name__} with a final_estimator cannot be saved; expected final_estimator=None"
            )
        return super().get_state(compact=compact)

    def restore(self) -> None:
        """Restore the final estimator."""
        super().restore()
        self.final_estimator_ = Linear(self.classes_, self.coef_, self.intercept_)

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        """Return the predicted class of each sample.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.

        Returns
        -------
        ndarray, (n_samples,)
            The predicted class labels.
        """
        predicted: npt.NDArray[Any] = self._final().predict(self._find(X))
        return predicted

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the score of each class, or only of the second if there are two.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.

        Returns
        -------
        ndarray of float, (n_samples,) or (n_samples, n_classes)
            One score per sample if there are two classes; otherwise one score per class.
        """
        scores: FloatArray = self._final().decision_function(self._find(X))
        return scores

    @_final_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the probability of each class, if the final estimator provides it.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.

        Returns
        -------
        ndarray of float, (n_samples, n_classes)
            Probabilities in the order of `classes_`; each row sums to 1.
        """
        probabilities: FloatArray = self._final().predict_proba(self._find(X))
        return probabilities

    def _final(self) -> Any:  # noqa: ANN401
        check_is_fitted(self)
        return self.final_estimator_

    def explain(self, X: Any) -> list[Explanation]:  # noqa: ANN401
        """Explain the prediction of each row by conjunctions with their weights.

        A positive weight is evidence for the predicted class. The weights, including the intercept, add up to
        the score of the class.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.

        Returns
        -------
        list of Explanation, (n_samples,)
            The predicted class of each sample, its score, and the conjunctions with their weights, in
            descending order of absolute weight.
        """
        found = self._find(X)
        if not hasattr(self, "coef_"):
            raise InputError(
                f"{self.final_estimator!r} does not have weights for each class; "
                "expected a linear final_estimator"
            )
        scores = np.atleast_1d(self.decision_function(X))
        names = self._merged_names()
        return explain_scores(found, scores, Linear(self.classes_, self.coef_, self.intercept_), names)


def explain_scores(
    found: csr_matrix, scores: FloatArray, linear: "Linear", names: Sequence[str]
) -> list[Explanation]:
    """Explain the prediction of each row by features with their weights."""
    explanations = []
    for row, predicted in enumerate(choose(scores)):
        weights = linear.coef_[predicted if len(linear.coef_) > 1 else 0]
        intercept = linear.intercept_[predicted if len(linear.coef_) > 1 else 0]
        sign = -1.0 if len(linear.coef_) == 1 and predicted == 0 else 1.0
        present = found.indices[found.indptr[row] : found.indptr[row + 1]]
        reasons = [Reason(names[each], float(sign * weights[each])) for each in present if weights[each]]
        reasons.append(Reason(INTERCEPT, float(sign * intercept)))
        reasons.sort(key=lambda reason: -abs(reason.weight))
        score = sum(reason.weight for reason in reasons)
        explanations.append(Explanation(linear.classes_[predicted], score, reasons))
    return explanations


class Linear(NamedTuple):
    """A linear classifier that is already trained."""

    classes_: npt.NDArray[Any]
    coef_: FloatArray
    intercept_: FloatArray

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the score of each class, or only of the second if there are two."""
        scores: FloatArray = X @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        """Return the class of each row."""
        predicted: npt.NDArray[Any] = self.classes_[choose(self.decision_function(X))]
        return predicted

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the probability of each class under a logistic model."""
        scores = np.asarray(X @ self.coef_.T + self.intercept_)
        shares = probabilities(scores)
        return shares if shares.shape[1] > 1 else np.hstack([1 - shares, shares])
