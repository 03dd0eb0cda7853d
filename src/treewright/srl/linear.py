"""Linear models over features of arguments."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from treewright._typing import FloatArray
from treewright.errors import InputError, quote
from treewright.model import Array, Model, Value, expect, saved
from treewright.progress import task
from treewright.scale import one_blas_thread

MOST_ROUNDS = 300
"""Maximum number of iterations; training on the roles of the English Web Treebank takes 149 iterations."""
MOST_SEEDS = 1 << 32


def read_names(names: object) -> list[str]:
    """Validate and return the saved names of classes or features."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"the names are {quote(repr(names))}; expected a list of strings")
    return names


class LinearMachine(Model):
    """One-vs-rest linear classifier.

    Parameters
    ----------
    loss : {"hinge", "log"}
        Squared hinge loss (SVM), or log loss (logistic regression).
    C : float
        Inverse of the regularisation strength.
    random_state : int
        Seed of the random number generator.

    Attributes
    ----------
    classes_ : list of str
        The classes.
    coef_ : ndarray of float32, (n_features, n_classes)
        Weights of the features for each class.
    intercept_ : ndarray of float, (n_classes,)
        Intercept of each class.
    """

    fields = saved(classes_=Value(decode=read_names), coef_=Array("f", 2), intercept_=Array("f"))

    def __init__(self, *, loss: str = "hinge", C: float = 0.1, random_state: int = 0) -> None:  # noqa: N803
        self.loss = loss
        self.C = C
        self.random_state = random_state

    @one_blas_thread
    def fit(self, rows: csr_matrix, labels: list[str]) -> Self:
        """Train on feature rows and their classes."""
        self.classes_ = sorted(set(labels))
        if len(self.classes_) == 1:
            return self._set(np.zeros((1, rows.shape[1])), np.zeros(1))
        random_state = self.random_state % MOST_SEEDS
        model: Any = (
            LinearSVC(C=self.C, max_iter=MOST_ROUNDS, random_state=random_state)
            if self.loss == "hinge"
            else LogisticRegression(
                C=self.C, solver="liblinear", dual=True, max_iter=MOST_ROUNDS, random_state=random_state
            )
        )
        with task("linear machine", unit="machines"):
            model.fit(rows, labels)
        coef, intercept = model.coef_, np.asarray(model.intercept_)
        if len(self.classes_) == 2:
            coef, intercept = np.vstack([-coef, coef]), np.concatenate([-intercept, intercept])
        return self._set(coef, intercept)

    def _set(self, coef: npt.NDArray[Any], intercept: npt.NDArray[Any]) -> Self:
        self.coef_ = np.ascontiguousarray(coef.T, dtype=np.float32)
        self.intercept_ = intercept.astype(np.float64)
        return self

    def decision_function(self, rows: csr_matrix) -> FloatArray:
        """Return the score of each row for each class."""
        return np.asarray(rows @ self.coef_ + self.intercept_, dtype=np.float64)

    def predict(self, rows: csr_matrix) -> list[str]:
        """Return the class of each row."""
        return [self.classes_[best] for best in self.decision_function(rows).argmax(axis=1).tolist()]

    def check_fitted_state(self) -> None:
        """Check that each class has weights."""
        n_classes = len(self.classes_)
        expect(
            n_classes > 0 and self.coef_.shape[1] == len(self.intercept_) == n_classes,
            "weights by class",
        )
