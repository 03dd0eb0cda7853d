"""A scikit-learn regressor based on conjunctions of binary features."""

import hashlib
import os
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from treewright._typing import Count, FloatArray, IntArray, RandomState, Range
from treewright._validate import check_params
from treewright.checkpoint import Checkpoint
from treewright.errors import InputError
from treewright.mining.binary import as_binary
from treewright.mining.binary_estimator import refusing_text
from treewright.mining.estimator import add_to_linear, find_conjunctions, weigh_samples
from treewright.mining.polynomial import name_conjunction, name_conjunctions
from treewright.mining.targets import NumberTarget
from treewright.model import Array, Arrays, Model, Value, expect, is_within, saved, seeded


class ConjunctionRegressor(RegressorMixin, Model, BaseEstimator):  # type: ignore[misc]
    """Linear regression to which conjunctions of binary features are added while the held-out loss falls.

    Parameters
    ----------
    degree : int or "auto"
        Maximum number of features in a conjunction. "auto" is 5, and 8 for the leaves of trees.
    max_iter : int
        Maximum number of mining rounds.
    validation_fraction : float
        Fraction of the samples to hold out. Small data sets are split up to three times.
    negations : bool
        Allow negated columns in conjunctions.
    trees : bool
        Also boost decision trees, whose leaves are conjunctions, and average the weights of both models if
        this lowers the held-out loss. Leaves have negated columns, so ``negations=False`` excludes trees.
    one_standard_error : bool
        Select the fewest conjunctions with a held-out loss within one standard error of the lowest.
    max_seconds : float, optional
        Time limit of the selection. When it is reached, no more conjunctions are added, and a warning is
        issued.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.

    Attributes
    ----------
    conjunctions_ : list of tuple of int
        The columns of each selected conjunction, in ascending order; single columns are included. A column
        that must be absent is given as the negative number ``~column``.
    coef_ : ndarray of float, (n_conjunctions,)
        Weights of the conjunctions.
    intercept_ : float
        The intercept.
    threshold_ : float
        The lowest score statistic (a sum of residuals divided by its standard error) that was required to add
        a conjunction.
    path_ : list of PathStep
        The steps that were tried, with their numbers of new conjunctions and scores on the held-out samples.
    history_ : list of StepReport
        A report of each step. This and `path_` are empty in a loaded regressor.
    n_iter_ : int
        Number of steps.
    is_exact_ : bool
        Whether all conjunctions that could be selected were counted. Like `is_out_of_time_`, it is not saved.
    is_out_of_time_ : bool
        Whether the selection stopped because `max_seconds` was reached.

    See Also
    --------
    ConjunctionClassifier : Predicts classes.
    TableBinarizer : Turns numbers and categories into binary columns.
    list_rules : Lists the selected conjunctions with their samples.

    Examples
    --------
    >>> import treewright as tw
    >>> X = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 10
    >>> regressor = tw.ConjunctionRegressor(degree=2).fit(X, [3.0, 1.0, 1.0, 1.0] * 10)
    >>> round(float(regressor.predict([[1, 1, 0]])[0]))
    3
    """

    fields = saved(
        n_features_in_=Value(Count),
        _feature_names=Value(decode=list),
        threshold_=Value(float),
        n_iter_=Value(int),
        orders_=Arrays(Array("i", 2)),
        coef_=Array("f"),
        intercept_=Value(float),
    )

    def __init__(
        self,
        *,
        degree: Count | Literal["auto"] = "auto",
        max_iter: Count = 20,
        validation_fraction: Annotated[float, Range(0.01, 0.9)] = 0.2,
        negations: bool = True,
        trees: bool = True,
        one_standard_error: bool = False,
        max_seconds: Annotated[float, Range(0)] | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.degree = degree
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.negations = negations
        self.trees = trees
        self.one_standard_error = one_standard_error
        self.max_seconds = max_seconds
        self.random_state = random_state

    @seeded
    def fit(
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        sample_weight: Any = None,  # noqa: ANN401
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Select conjunctions, and fit their weights.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.
        y : array of float, (n_samples,)
            Numbers to predict.
        sample_weight : array of float, (n_samples,), optional
            Weights of the samples; 1 by default.
        checkpoint : path, optional
            Folder in which each step is saved; after an interruption, the same call resumes from it.
        """
        check_params(self)
        y = _as_numbers(y)
        with refusing_text():
            X, y = validate_data(self, X, y, accept_sparse="csr", y_numeric=True)
        rows, y = as_binary(X), np.asarray(y, dtype=np.float64)
        weights = weigh_samples(sample_weight, None, y, rows)
        center = float(np.average(y, weights=weights))
        # Penalties are those of numbers whose variance is one.
        scale = float(np.sqrt(np.average((y - center) ** 2, weights=weights))) or 1.0
        kept = None if checkpoint is None else Checkpoint(checkpoint, self._identity(rows, y, weights))
        target = NumberTarget((y - center) / scale)
        has_trees = self.trees and self.negations
        added = add_to_linear(self, self.degree, rows, target, None, weights, kept, has_trees=has_trees)
        self.coef_ = scale * added.weights[:, 0]
        self.intercept_ = center + scale * float(added.intercept[0])
        return self

    def _identity(self, rows: csr_matrix, y: FloatArray, weights: FloatArray) -> str:
        """Return a fingerprint of the data and options."""
        digest = hashlib.sha256(repr(sorted(self.get_params(deep=False).items())).encode())
        for array in (rows.indptr, rows.indices, y, weights):
            digest.update(array.tobytes())
        return digest.hexdigest()

    def _set_orders(self, orders: dict[int, IntArray]) -> None:
        self.orders_ = orders
        self.conjunctions_ = [tuple(row) for each in orders.values() for row in each.tolist()]

    def predict(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the predicted number for each sample.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.

        Returns
        -------
        ndarray of float, (n_samples,)
            The predicted numbers.
        """
        predicted: FloatArray = self._find(X) @ self.coef_ + self.intercept_
        return predicted

    def _find(self, X: Any) -> csr_matrix:  # noqa: ANN401
        """Return which conjunctions are present in new rows."""
        check_is_fitted(self)
        with refusing_text():
            X = validate_data(self, X, accept_sparse="csr", reset=False)
        return find_conjunctions(as_binary(X), list(self.orders_.values()))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ANN401
        """Return the conjunctions as text, such as ``word=bank & not prev=the``.

        Parameters
        ----------
        input_features : array of str, (n_features,), optional
            Names of the columns. By default, the names seen in `fit`, or ``x0``, ``x1``, ... if there were
            none.

        Returns
        -------
        ndarray of str, (n_conjunctions,)
            Names in the order of `conjunctions_`.
        """
        check_is_fitted(self)
        columns = list(map(str, _check_feature_names_in(self, input_features)))
        return np.array(name_conjunctions(self.conjunctions_, columns), dtype=object)

    def _merged_names(self, input_features: Any = None) -> list[str]:  # noqa: ANN401
        """Return the names of conjunctions with merged conditions; equal names mean equal conditions."""
        columns = list(map(str, _check_feature_names_in(self, input_features)))
        return [name_conjunction(each, columns) for each in self.conjunctions_]

    @property
    def _feature_names(self) -> list[str]:
        """The column names passed to `fit`, if any."""
        return list(getattr(self, "feature_names_in_", []))

    @_feature_names.setter
    def _feature_names(self, names: list[str]) -> None:
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)

    def check_fitted_state(self) -> None:
        """Check that conjunctions refer to existing columns and have weights."""
        expect(len(self._feature_names) in (0, self.n_features_in_), "a name for each column")
        for order, columns in self.orders_.items():
            plain = np.where(columns < 0, ~columns, columns)
            expect(is_within(plain, self.n_features_in_), "conjunctions of features")
            expect(columns.shape[1] == order, "conjunctions under their order")
        expect(len(self.coef_) == sum(map(len, self.orders_.values())), "a weight for each conjunction")

    def restore(self) -> None:
        """Rebuild the list of conjunctions; the history of mining is empty because it is not saved."""
        self._set_orders({order: self.orders_[order].astype(np.int32) for order in sorted(self.orders_)})
        self.path_: list[Any] = []
        self.history_: list[Any] = []
        self.is_exact_, self.is_out_of_time_ = True, False

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _as_numbers(y: Any) -> Any:  # noqa: ANN401
    """Return a target of texts or objects as numbers, and any other target unchanged."""
    try:
        if y is None or np.asarray(y).dtype.kind not in "OUS":
            return y
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"y is not numeric ({error}); expected a number for each sample") from error
