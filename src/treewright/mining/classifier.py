"""A classifier by conjunctions of binary features, for scikit-learn."""

import os
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from treewright._typing import (
    Count,
    FloatArray,
    Fraction,
    LimitedMemory,
    NonNegativeFloat,
    NonNegativeInt,
    Range,
)
from treewright.errors import InputError
from treewright.mining.estimator import (
    ConjunctionEstimator,
    choose,
    require_final,
    train_perceptron,
)
from treewright.mining.memory import Memory
from treewright.mining.polynomial import match_conjunctions
from treewright.model import State
from treewright.scale import Client

INTERCEPT = "(intercept)"


class Reason(NamedTuple):
    """A conjunction that is present, and what it adds to the score of the predicted class."""

    conjunction: str
    weight: float


class Explanation(NamedTuple):
    """A prediction, its score, and the reasons that add up to it, the weightiest first."""

    prediction: Any
    score: float
    reasons: list[Reason]


def _final_has(name: str) -> Any:  # noqa: ANN401
    return available_if(lambda self: self.final_estimator is not None and hasattr(self.final_estimator, name))


class ConjunctionClassifier(ClassifierMixin, ConjunctionEstimator):  # type: ignore[misc]
    """Selects conjunctions of binary features and classifies by them.

    Parameters
    ----------
    degree, threshold, max_iter, step, refine, pretrain_order, tol, path, validation_fraction, \
memory_limit, filter_memory, n_jobs, random_state
        As those of `ConjunctionMiner`.
    final_estimator : estimator, optional
        A linear classifier that is trained on the selected conjunctions. Without it, an `AveragedPerceptron`
        that starts from the weights that were mined.

    Attributes
    ----------
    conjunctions_ : list of tuple of int
        The columns of each selected conjunction, ascending; single features are among them.
    coef_ : ndarray of float, (n_classes or 1, n_conjunctions)
        Weights of the final estimator.
    intercept_ : ndarray of float, (n_classes or 1,)
    classes_ : ndarray
    final_estimator_ : estimator
    threshold_, followed_path_, path_, history_, n_iter_
        As those of `ConjunctionMiner`.

    Examples
    --------
    >>> import treewright as tw
    >>> X = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5
    >>> classifier = tw.ConjunctionClassifier(degree=2, threshold=2).fit(X, ["yes", "no", "no", "no"] * 5)
    >>> classifier.predict([[1, 1, 0]]).tolist()
    ['yes']
    """

    def __init__(
        self,
        *,
        degree: Count = 3,
        threshold: NonNegativeFloat | Literal["auto"] = "auto",
        final_estimator: Any = None,  # noqa: ANN401
        max_iter: Count = 20,
        step: Annotated[float, Range(1e-12, 1e12)] | Literal["auto", "decreasing"] = "auto",
        refine: NonNegativeInt = 10,
        pretrain_order: NonNegativeInt = 0,
        tol: Fraction = 1e-3,
        path: bool | Literal["auto"] = "auto",
        validation_fraction: Annotated[float, Range(0.01, 0.9)] = 0.2,
        memory_limit: LimitedMemory | None = None,
        filter_memory: LimitedMemory | None = None,
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
        self.final_estimator = final_estimator

    def fit(
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        client: Client | None = None,
    ) -> Self:
        """Select conjunctions, and train the final estimator on them.

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
        rows, y, mined = self._mine(X, y, checkpoint, client)
        memory = Memory(self.memory_limit)
        found = match_conjunctions(rows, list(mined.features.values()), memory)
        require_final(memory, found)
        found = found.astype(np.float64)
        if self.final_estimator is None:
            labels = np.searchsorted(self.classes_, y)
            weights = train_perceptron(
                found, labels, mined, len(self.classes_), random_state=self.random_state
            )
            self.final_estimator_ = _Linear(self.classes_, *weights)
        elif mined.n_selected:
            self.final_estimator_ = clone(self.final_estimator).fit(found, y)
        else:
            raise InputError("final_estimator has no conjunctions to learn from; give a lower threshold")
        for name in ("coef_", "intercept_"):
            if hasattr(self, name):
                delattr(self, name)
        coef = getattr(self.final_estimator_, "coef_", None)
        if coef is not None:  # of a linear final estimator, in one shape whatever its own
            coef = np.atleast_2d(coef.toarray() if hasattr(coef, "toarray") else coef)
            if len(coef) == (1 if len(self.classes_) == 2 else len(self.classes_)):
                self.coef_ = coef
                intercept = np.ravel(getattr(self.final_estimator_, "intercept_", 0.0))
                self.intercept_ = np.broadcast_to(intercept, len(coef)).astype(np.float64)
        return self

    @property
    def is_fitted(self) -> bool:
        """Whether there is a final estimator, which need not have weights."""
        return hasattr(self, "final_estimator_")

    def get_state(self, *, compact: bool = False) -> State:
        """Return all that the classifier is; its final estimator must be its own."""
        self.check_is_fitted()
        if self.final_estimator is not None:
            raise InputError(
                f"{type(self).__name__} with a final_estimator cannot be saved; expected None, for its own"
            )
        return super().get_state(compact=compact)

    def restore(self) -> None:
        """Make the final estimator again."""
        super().restore()
        self.final_estimator_ = _Linear(self.classes_, self.coef_, self.intercept_)

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        """Return the class of each row."""
        predicted: npt.NDArray[Any] = self._final().predict(self._find(X))
        return predicted

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the score of each class, or of the second of two."""
        scores: FloatArray = self._final().decision_function(self._find(X))
        return scores

    @_final_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the probability of each class, if the final estimator knows it."""
        probabilities: FloatArray = self._final().predict_proba(self._find(X))
        return probabilities

    def _final(self) -> Any:  # noqa: ANN401
        check_is_fitted(self)
        return self.final_estimator_

    def explain(self, X: Any) -> list[Explanation]:  # noqa: ANN401
        """Return, for each row, the conjunctions behind its prediction with their weights.

        A weight above zero speaks for the predicted class. The weights, with that of the intercept, add up to
        the score of the class.
        """
        found = self._find(X)
        if not hasattr(self, "coef_"):
            raise InputError(
                f"{self.final_estimator!r} has no weights for each class; expected a linear final_estimator"
            )
        scores = np.atleast_1d(self.decision_function(X))
        names = self.get_feature_names_out()
        explanations = []
        for row, predicted in enumerate(choose(scores)):
            weights = self.coef_[predicted if len(self.coef_) > 1 else 0]
            intercept = self.intercept_[predicted if len(self.coef_) > 1 else 0]
            sign = -1.0 if len(self.coef_) == 1 and predicted == 0 else 1.0
            present = found.indices[found.indptr[row] : found.indptr[row + 1]]
            reasons = [Reason(names[each], float(sign * weights[each])) for each in present if weights[each]]
            reasons.append(Reason(INTERCEPT, float(sign * intercept)))
            reasons.sort(key=lambda reason: -abs(reason.weight))
            score = sum(reason.weight for reason in reasons)
            explanations.append(Explanation(self.classes_[predicted], score, reasons))
        return explanations


class _Linear(NamedTuple):
    """A linear classifier that is already trained."""

    classes_: npt.NDArray[Any]
    coef_: FloatArray
    intercept_: FloatArray

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ANN401
        scores: FloatArray = X @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        predicted: npt.NDArray[Any] = self.classes_[choose(self.decision_function(X))]
        return predicted
