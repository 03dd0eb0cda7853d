"""What estimators of conjunctions share: mining, choosing a threshold, saving."""

import hashlib
import os
import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from treewright._naming import named, setting
from treewright._typing import FloatArray
from treewright._validate import check_params
from treewright.checkpoint import Checkpoint
from treewright.errors import InputError
from treewright.learn.perceptron import AveragedPerceptron
from treewright.mining.binary_estimator import BinaryEstimator
from treewright.mining.gradient import SMALLEST_THRESHOLD, GradientMiner
from treewright.mining.memory import Memory
from treewright.mining.polynomial import PolynomialSpace, match_conjunctions, name_conjunction
from treewright.mining.problem import label_problem
from treewright.mining.reports import Mined, PathStep
from treewright.model import Array, Arrays, Value, expect, is_within, saved
from treewright.scale import Client

DIRECT_ROUNDS = 5
"""Of a miner that goes to its threshold at once, where that is tried as well."""
FINAL_RATE = 0.3
FINAL_MARGIN = 0.5
"""Of the perceptron that starts from mined weights: per feature of a sample, and in units of their margin."""
FINAL_BYTES = 32
"""What each place of a conjunction takes there."""
HASHED_AT_A_TIME = 1 << 16
"""Numbers that are hashed at a time."""


class ConjunctionEstimator(BinaryEstimator):
    """What the transformer and the classifier share: mining, and finding conjunctions in new rows.

    Each of them lists these options itself, as scikit-learn wants it.

    Attributes
    ----------
    orders_ : dict of int to ndarray of int32, (n_conjunctions, order)
        The columns of the conjunctions of each order.
    """

    EFFECTIVE_IF: ClassVar = {"validation_fraction": {"threshold": ("auto",)}}

    fields = saved(
        **BinaryEstimator.fields,
        threshold_=Value(float),
        followed_path_=Value(bool),
        n_iter_=Value(int),
        orders_=Arrays(Array("i", 2, low=0)),
        coef_=Array("f", 2),
        intercept_=Array("f"),
    )

    coef_: FloatArray
    intercept_: FloatArray
    degree: int
    threshold: float | str
    max_iter: int
    step: float | str
    refine: int
    pretrain_order: int
    tol: float
    path: bool | str
    validation_fraction: float
    memory_limit: int | None
    filter_memory: int | None
    n_jobs: int
    random_state: int

    def _mine(
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        checkpoint: str | os.PathLike[str] | None,
        client: Client | None,
    ) -> tuple[csr_matrix, npt.NDArray[Any], Mined]:
        """Select conjunctions; return the checked rows, their labels, and what was mined."""
        check_params(self)
        if self.pretrain_order > self.degree:
            found = f"{setting('pretrain_order', self.pretrain_order)} and {setting('degree', self.degree)}"
            raise InputError(f"{found}; expected {named('pretrain_order')} of at most {named('degree')}")
        rows, y, labels = self._check_samples(X, y)
        kept = Checkpoint(checkpoint, self._identity(rows, labels)) if checkpoint is not None else None
        self.path_: list[PathStep] = []
        self.threshold_, self.followed_path_ = self._choose_threshold(rows, labels, kept, client)
        problem = label_problem(labels, len(self.classes_))
        miner = self._miner(self.threshold_, path=self.followed_path_)
        mined = miner.fit(self._space(rows, client), problem, checkpoint=kept)
        self._set_orders(mined.features)
        self.history_ = list(mined.iterations)
        self.n_iter_ = len(self.history_)
        if not self.conjunctions_:
            warnings.warn(
                f"no conjunction is selected with threshold {self.threshold_:g}; a lower one selects more",
                stacklevel=3,
            )
        return rows, y, mined

    def _miner(self, threshold: float | str, *, path: bool = True) -> GradientMiner:
        """Return the miner for a threshold; where `path` is chosen, going there at once takes few rounds."""
        is_brief = self.path == "auto" and not path
        return GradientMiner(
            degree=self.degree,
            threshold=threshold,  # type: ignore[arg-type]
            max_iter=min(self.max_iter, DIRECT_ROUNDS) if is_brief else self.max_iter,
            step=self.step,
            refine=self.refine,
            pretrain_order=self.pretrain_order,
            tol=self.tol,
            path=path,
            random_state=self.random_state,
        )

    def _space(self, rows: csr_matrix, client: Client | None) -> PolynomialSpace:
        return PolynomialSpace(
            rows,
            n_jobs=self.n_jobs,
            client=client,
            memory_limit=self.memory_limit,
            filter_memory=self.filter_memory,
        )

    def _identity(self, rows: csr_matrix, labels: npt.NDArray[np.int64]) -> str:
        """Return a name for the data and options, another one after any change that matters."""
        ignored = ("n_jobs", "memory_limit", "filter_memory", "sparse_output", "final_estimator")
        options = {name: value for name, value in self.get_params(deep=False).items() if name not in ignored}
        digest = hashlib.sha256(repr(sorted(options.items())).encode())
        for array in (rows.indptr, rows.indices, labels):
            for begin in range(0, len(array), HASHED_AT_A_TIME):
                digest.update(array[begin : begin + HASHED_AT_A_TIME].astype(np.int64).tobytes())
        return digest.hexdigest()

    def _choose_threshold(
        self,
        rows: csr_matrix,
        labels: npt.NDArray[np.int64],
        checkpoint: Checkpoint | None,
        client: Client | None,
    ) -> tuple[float, bool]:
        """Return the threshold, which may have to be chosen on samples held out, and whether to approach it.

        It is the middle one of those that do as well as the best, but for a quarter of a standard error: the
        largest may miss what is rare, the smallest let in what says nothing.
        """
        if self.threshold != "auto":
            return float(self.threshold), bool(self.path)
        train, held_out = hold_out(labels, self.validation_fraction, random_state=self.random_state)
        space = self._space(rows[train], client)
        # What is held out is also copied, when it is looked at.
        space.memory.hold("copies", sum(each.nbytes for each in (rows.data, rows.indices, rows.indptr)))

        def score(mined: Mined) -> float:
            found = space.match(list(mined.features.values()))
            require_final(space.memory, found)
            coef, intercept = train_perceptron(found, labels[train], mined, len(self.classes_))
            found = match_conjunctions(rows[held_out], list(mined.features.values()))
            return float((choose(found @ coef.T + intercept) == labels[held_out]).mean())

        def error(accuracy: float) -> float:
            return float(np.sqrt(accuracy * (1 - accuracy) / len(held_out)))

        problem = label_problem(labels[train], len(self.classes_))
        share = float(np.bincount(labels[held_out]).max() / len(held_out))
        self.path_ = self._miner(SMALLEST_THRESHOLD).fit_path(
            space,
            problem,
            score,
            enough=share + 3 * error(share),
            error=error,
            checkpoint=checkpoint,
        )
        if not self.path_:
            return SMALLEST_THRESHOLD, bool(self.path)
        best = max(step.score for step in self.path_)
        good = [step for step in self.path_ if step.score >= best - error(best) / 4]
        chosen = good[len(good) // 2]
        approach = bool(self.path)
        if self.path == "auto":
            direct = self._miner(chosen.threshold, path=False)
            mined = direct.fit(space, problem)
            approach = score(mined) <= chosen.score + error(chosen.score) / 4
        # Counts grow with the samples, and so must the threshold for all of them.
        return chosen.threshold * len(labels) / len(train), approach

    def _find(self, X: Any) -> csr_matrix:  # noqa: ANN401
        """Return which conjunctions are present in new rows."""
        return match_conjunctions(self._check_rows(X), list(self.orders_.values())).astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ANN401
        """Return the conjunctions as text, such as ``word=bank & prev=the``."""
        check_is_fitted(self)
        columns = list(map(str, _check_feature_names_in(self, input_features)))
        return np.array([name_conjunction(each, columns) for each in self.conjunctions_], dtype=object)

    def check_fitted_state(self) -> None:
        """Check that conjunctions are of columns, and have weights."""
        super().check_fitted_state()
        n_machines = 1 if len(self.classes_) == 2 else len(self.classes_)
        for order, columns in self.orders_.items():
            expect(is_within(columns, self.n_features_in_), "conjunctions of features")
            expect(columns.shape[1] == order, "conjunctions under their order")
        n_conjunctions = sum(map(len, self.orders_.values()))
        expect(self.coef_.shape == (n_machines, n_conjunctions), "a weight for each conjunction")
        expect(len(self.intercept_) == n_machines, "an intercept for each class")

    def restore(self) -> None:
        """List the conjunctions; how they were found is not saved."""
        self._set_orders({order: self.orders_[order].astype(np.int32) for order in sorted(self.orders_)})
        self.path_, self.history_ = [], []

    def _set_orders(self, orders: dict[int, npt.NDArray[np.int32]]) -> None:
        self.orders_ = orders
        self.conjunctions_ = [tuple(row) for each in orders.values() for row in each.tolist()]


def require_final(memory: Memory, found: csr_matrix) -> None:
    """Refuse conjunctions with more places than a perceptron can be trained on within a limit to memory."""
    memory.require(
        f"{found.shape[1]:,} selected conjunctions in the perceptron", FINAL_BYTES * int(found.nnz)
    )


def train_perceptron(
    found: csr_matrix, labels: npt.NDArray[np.int64], mined: Mined, n_classes: int, *, random_state: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return the weights and intercepts of an averaged perceptron that starts from those that were mined.

    Where nothing was, the intercepts are the shares of the classes.
    """
    coef, intercept = np.ascontiguousarray(mined.weights.T), mined.intercept
    if not mined.n_selected:
        shares = np.bincount(labels, minlength=n_classes) / len(labels)
        return coef, shares if n_classes > 2 else shares[1:] - shares[:1]
    rate = FINAL_RATE * found.shape[0] / max(1, found.nnz)
    perceptron = AveragedPerceptron(rate=rate, margin=FINAL_MARGIN, random_state=random_state)
    classes = np.arange(n_classes)
    perceptron.fit(found, labels, coef_init=coef, intercept_init=intercept, classes=classes)
    return perceptron.coef_, perceptron.intercept_


def choose(scores: FloatArray) -> npt.NDArray[np.int64]:
    """Return the number of the class that scores choose."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        return (scores.reshape(len(scores)) > 0).astype(np.int64)
    best: npt.NDArray[np.int64] = scores.argmax(axis=1)
    return best


def hold_out(
    labels: npt.NDArray[np.int64], share: float, *, random_state: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Divide samples into those to learn from and those held out, with all classes in both if that can be."""
    counts = np.bincount(labels)
    n_held_out = max(1, round(share * len(labels)))
    can_stratify = counts.min() >= 2 and len(counts) <= min(n_held_out, len(labels) - n_held_out)
    train, held_out = train_test_split(
        np.arange(len(labels)),
        test_size=n_held_out,
        random_state=random_state % (1 << 32),
        stratify=labels if can_stratify else None,
    )
    return np.sort(train), np.sort(held_out)
