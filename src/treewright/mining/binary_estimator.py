"""Base class of estimators for binary rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from treewright._typing import Count
from treewright.errors import InputError
from treewright.mining.binary import REMEDY, as_binary
from treewright.model import Classes, Model, Value, expect, saved


class BinaryEstimator(Model, BaseEstimator):  # type: ignore[misc]
    """Base class of estimators for binary rows: classes and optional column names."""

    fields = saved(classes_=Classes(), n_features_in_=Value(Count), _feature_names=Value(decode=list))

    classes_: npt.NDArray[Any]
    n_features_in_: int

    @property
    def _feature_names(self) -> list[str]:
        """The column names passed to `fit`, if any; without names, scikit-learn expects no such attribute."""
        return list(getattr(self, "feature_names_in_", []))

    @_feature_names.setter
    def _feature_names(self, names: list[str]) -> None:
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _check_samples(
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
    ) -> tuple[csr_matrix, npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the samples as a binary matrix, their labels, and the class indices of the labels."""
        with refusing_text():
            X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        rows = as_binary(X)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has only one class, {self.classes_.tolist()[0]!r}; expected at least two")
        return rows, y, numbers

    def _check_rows(self, X: Any) -> csr_matrix:  # noqa: ANN401
        """Return new rows as a binary matrix."""
        check_is_fitted(self)
        with refusing_text():
            X = validate_data(self, X, accept_sparse="csr", reset=False)
        return as_binary(X)

    def check_fitted_state(self) -> None:
        """Check that all columns have names, or that none have."""
        expect(len(self._feature_names) in (0, self.n_features_in_), "a name for each column")

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


@contextmanager
def refusing_text() -> Iterator[None]:
    """Replace scikit-learn's error for text in X with one that suggests a remedy."""
    try:
        yield
    except ValueError as error:
        if "could not convert string" not in str(error) and "bytes/strings" not in str(error):
            raise
        raise InputError(f"X contains text ({error}); expected only 0 and 1: {REMEDY}") from error
