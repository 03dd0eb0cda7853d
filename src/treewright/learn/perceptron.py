"""The averaged perceptron as a scikit-learn classifier."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from treewright._typing import FloatArray, RandomState
from treewright._validate import check_integer, check_number, draw_seed
from treewright.errors import InputError, show
from treewright.native.learn.perceptron import Sparse, Weights, train_epoch
from treewright.progress import track


class AveragedPerceptron(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear classifier trained by the averaged perceptron, for dense or sparse data.

    Parameters
    ----------
    epochs : int
        Number of passes over the samples, each in a new random order.
    rate : float
        Learning rate. Only its ratio to `margin` and to the initial weights matters.
    margin : float
        Update unless the score of the correct class exceeds all others by more than this.
    random_state : int, Generator, RandomState or None
        Seed for the order of the samples. With None, results differ between calls.

    Attributes
    ----------
    classes_ : ndarray, (n_classes,)
        The class labels.
    coef_ : ndarray of float, (n_classes or 1, n_features)
        Weights of the features; a single row if there are two classes.
    intercept_ : ndarray of float, (n_classes or 1,)
        Intercepts; a single one if there are two classes.
    n_updates_ : list of int
        Number of updates in each epoch.

    See Also
    --------
    ConjunctionClassifier : Linear classifier over mined conjunctions of binary features.
    VotedPerceptron : Perceptron that ranks the candidates of lists.

    Examples
    --------
    >>> from treewright import AveragedPerceptron
    >>> AveragedPerceptron().fit([[1, 0], [0, 1]], ["a", "b"]).predict([[1, 0]]).tolist()
    ['a']
    """

    def __init__(
        self, *, epochs: int = 10, rate: float = 1, margin: float = 0, random_state: RandomState = 0
    ) -> None:
        self.epochs = epochs
        self.rate = rate
        self.margin = margin
        self.random_state = random_state

    def fit(
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        *,
        coef_init: FloatArray | None = None,
        intercept_init: FloatArray | None = None,
        classes: npt.ArrayLike | None = None,
    ) -> Self:
        """Train on labelled samples.

        Parameters
        ----------
        X : array or sparse matrix, (n_samples, n_features)
            Training samples.
        y : array, (n_samples,)
            Class labels.
        coef_init, intercept_init : ndarray, optional
            Weights to start from, in the shapes of `coef_` and `intercept_`.
        classes : array, optional
            All classes, if some may be missing from `y`.
        """
        check_integer("epochs", self.epochs, minimum=1)
        check_number("rate", self.rate, low=1e-12, high=1e12)
        check_number("margin", self.margin, low=0, high=1e12)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = np.unique(y) if classes is None else _check_classes(classes, y)
        labels = np.searchsorted(self.classes_, y)
        if len(self.classes_) < 2:
            raise InputError(f"y has only one class, {self.classes_.tolist()[0]!r}; expected at least two")
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        start = np.zeros((X.shape[1] + 1, len(self.classes_)))
        if coef_init is not None:
            start[:-1] = _for_each_class("coef_init", coef_init, (n_outputs, X.shape[1])).T
        if intercept_init is not None:
            start[-1] = _for_each_class("intercept_init", intercept_init, (n_outputs,))
        weights = self._train(csr_matrix(X), labels, start)
        if len(self.classes_) == 2:
            weights = weights[:, 1:] - weights[:, :1]
        self.coef_ = np.ascontiguousarray(weights[:-1].T)
        self.intercept_ = weights[-1].copy()
        return self

    def _train(self, rows: csr_matrix, labels: npt.NDArray[np.int64], start: FloatArray) -> FloatArray:
        weights = Weights(start / self.rate, np.zeros_like(start))
        sparse = Sparse(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
        rng = np.random.default_rng(draw_seed(self.random_state))
        scores = np.zeros(start.shape[1])
        margin = self.margin / self.rate
        self.n_updates_: list[int] = []
        for epoch in track(range(self.epochs), "perceptron", unit="epochs"):
            order = rng.permutation(rows.shape[0])
            step = float(epoch * rows.shape[0])
            self.n_updates_.append(train_epoch(sparse, labels, order, weights, margin, scores, step))
        mean: FloatArray = weights.now - weights.late / (self.epochs * rows.shape[0])
        return mean * self.rate

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the score of each class, or of the second class if there are two.

        Parameters
        ----------
        X : array or sparse matrix, (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of float, (n_samples,) or (n_samples, n_classes)
            One score per sample if there are two classes; otherwise one score per class.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores: FloatArray = X @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        """Return the predicted class of each sample.

        Parameters
        ----------
        X : array or sparse matrix, (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray, (n_samples,)
            The predicted class labels.
        """
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        chosen: npt.NDArray[Any] = self.classes_[best]
        return chosen

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _check_classes(classes: npt.ArrayLike, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the classes in order; the labels must be among them."""
    try:
        found = np.unique(column_or_1d(classes))
    except (TypeError, ValueError) as error:
        raise InputError(f"classes is {show(classes)}; expected a list of labels") from error
    missing = np.setdiff1d(y, found)
    if len(missing):
        raise InputError(f"y has the label {missing.tolist()[0]!r}; expected one of classes, {show(classes)}")
    return found


def _for_each_class(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Return one row of weights per class; a single row belongs to the second of two classes."""
    try:
        weights = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is {show(values)}; expected numbers of the shape {shape}") from error
    if weights.shape != shape:
        raise InputError(f"{name} has the shape {weights.shape}; expected {shape}")
    return np.concatenate([-weights / 2, weights / 2]) if len(weights) == 1 else weights
