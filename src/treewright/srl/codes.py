"""Hashed features for the classification of many words or constituents.

Each feature (a name with its values) is hashed to 32 bits, so that no names are stored. Rare features are
dropped.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Self
from zlib import crc32

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray
from treewright.data.templates import Template
from treewright.model import Array, Model, Submodel, expect, saved
from treewright.native.hashing import mix_arrays
from treewright.srl.linear import LinearMachine

Codes = npt.NDArray[np.uint32]

HALF = np.uint64(32)
NO, YES = "no", "yes"
CERTAIN = 10.0
"""Log odds if all training examples have the same class."""


def encode(rows: Iterable[Sequence[str]], n_columns: int) -> Codes:
    """Hash each string; return one row per example."""
    flat = np.fromiter(
        (crc32(text.encode("utf-8", "surrogatepass")) for text in chain.from_iterable(rows)), np.uint32
    )
    return flat.reshape(-1, n_columns)


def join_codes(values: Codes, names: Sequence[str], templates: Sequence[Template]) -> Codes:
    """Return one column per template, computed from those columns of `values` that the template names.

    Parameters
    ----------
    values : ndarray of uint32, (n, n_names)
        Hashed values of the atomic features.
    names : sequence of str
        Names of the columns of `values`.
    templates : sequence of Template
        Combinations of names.
    """
    places = {name: column for column, name in enumerate(names)}
    joined = np.empty((len(values), len(templates)), dtype=np.uint32)
    for number, template in enumerate(templates):
        keys = np.full(len(values), crc32(str(template).encode()), dtype=np.uint64)
        for name in template.attributes:
            keys = mix_arrays(keys, values[:, places[name]], HALF)
        joined[:, number] = keys.astype(np.uint32)
    return joined


class CodeClassifier(Model):
    """Binary logistic regression over hashed features.

    Parameters
    ----------
    C : float
        Inverse of the regularisation strength.
    min_count : int
        Minimum count of a feature in training.
    random_state : int
        Seed of the random number generator.

    Attributes
    ----------
    codes_ : ndarray of uint32
        The known features, in ascending order.
    machine_ : LinearMachine
        The logistic regression model.
    """

    fields = saved(codes_=Array("u", is_increasing=True), machine_=Submodel(LinearMachine))

    def __init__(self, *, C: float = 0.1, min_count: int = 2, random_state: int = 0) -> None:  # noqa: N803
        self.C = C
        self.min_count = min_count
        self.random_state = random_state

    def fit(self, codes: Codes, is_true: Sequence[bool]) -> Self:
        """Train on rows of hashed features."""
        found, counts = np.unique(codes, return_counts=True)
        self.codes_ = found[counts >= self.min_count]
        self.machine_ = LinearMachine(loss="log", C=self.C, random_state=self.random_state)
        self.machine_.fit(self._make_rows(codes), [YES if one else NO for one in is_true])
        return self

    def log_odds(self, codes: Codes) -> FloatArray:
        """Return the log odds of the positive class for each row."""
        if len(self.machine_.classes_) == 1:
            return np.full(len(codes), CERTAIN if self.machine_.classes_ == [YES] else -CERTAIN)
        values = self.machine_.decision_function(self._make_rows(codes))
        return values[:, self.machine_.classes_.index(YES)]

    def _make_rows(self, codes: Codes) -> csr_matrix:
        shape = (len(codes), len(self.codes_))
        if not all(shape):
            return csr_matrix(shape)
        columns = np.searchsorted(self.codes_, codes).clip(max=len(self.codes_) - 1).astype(np.int32)
        is_known = self.codes_[columns] == codes
        indptr = np.concatenate([[0], np.cumsum(is_known.sum(axis=1))])
        return csr_matrix((np.ones(indptr[-1]), columns[is_known], indptr), shape=shape)

    def check_fitted_state(self) -> None:
        """Check that each feature has a weight and that there are at most two classes."""
        expect(len(self.machine_.coef_) == len(self.codes_), "a weight for each feature")
        expect(set(self.machine_.classes_) <= {NO, YES}, "only the classes yes and no")
