"""Base class of estimators that select conjunctions: mining, choosing a threshold, saving."""

import hashlib
import os
import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_feature_names_in, _check_sample_weight, check_is_fitted

from treewright._naming import named, setting
from treewright._typing import FloatArray, IntArray
from treewright._validate import check_params
from treewright.checkpoint import Checkpoint
from treewright.errors import InputError
from treewright.learn.perceptron import AveragedPerceptron
from treewright.mining.additive import Additive, AdditiveFit, StepReport
from treewright.mining.batches import AdditiveOptions
from treewright.mining.binary_estimator import BinaryEstimator
from treewright.mining.column_model import match_rows_of_literals
from treewright.mining.gradient import SMALLEST_THRESHOLD, GradientMiner
from treewright.mining.memory import Memory
from treewright.mining.polynomial import (
    PolynomialSpace,
    match_conjunctions,
    name_conjunction,
    name_conjunctions,
)
from treewright.mining.problem import label_problem
from treewright.mining.reports import IterationReport, Mined, PathStep
from treewright.mining.targets import LabelTarget, LossTarget
from treewright.model import Array, Arrays, Value, expect, is_within, saved
from treewright.scale import Client

ADDED_DEGREE, LEAF_DEGREE, MINED_DEGREE = 5, 8, 3
"""Values of `degree="auto"`: for conjunctions that are added to a linear model, for the leaves of boosted
trees, and for conjunctions that are mined."""
DIRECT_ROUNDS = 5
"""Maximum number of rounds of a miner that starts at its final threshold, with `path="auto"`."""
FINAL_RATE = 0.3
FINAL_MARGIN = 0.5
"""Learning rate (times the mean number of features per sample) and margin of the final perceptron."""
FINAL_BYTES = 32
"""Bytes per occurrence of a conjunction in the final perceptron."""
HASHED_AT_A_TIME = 1 << 16
"""Number of values that are hashed at a time."""


class ConjunctionEstimator(BinaryEstimator):
    """Base class of the transformer and the classifier: mining, and finding conjunctions in new rows.

    Each subclass declares the options itself, as scikit-learn requires.

    Attributes
    ----------
    orders_ : dict of int to ndarray of int32, (n_conjunctions, order)
        The columns of the conjunctions of each order.
    """

    EFFECTIVE_IF: ClassVar = {
        "validation_fraction": {"threshold": ("auto",)},
        "linear": {"threshold": ("auto",)},
        "negations": {"threshold": ("auto",), "linear": (True,)},
        "one_standard_error": {"threshold": ("auto",), "linear": (True,)},
        "max_seconds": {"threshold": ("auto",), "linear": (True,)},
    }

    fields = saved(
        **BinaryEstimator.fields,
        threshold_=Value(float),
        followed_path_=Value(bool),
        n_iter_=Value(int),
        orders_=Arrays(Array("i", 2)),
        coef_=Array("f", 2),
        intercept_=Array("f"),
    )

    coef_: FloatArray
    intercept_: FloatArray
    degree: int | str
    threshold: float | str
    max_iter: int
    step: float | str
    refine: int
    pretrain_order: int
    tol: float
    path: bool | str
    validation_fraction: float
    linear: bool
    negations: bool
    one_standard_error: bool
    max_seconds: float | None
    memory_limit: int | None
    filter_memory: int | None
    n_jobs: int

    @property
    def _is_additive(self) -> bool:
        """Whether conjunctions are added to a linear model of all columns."""
        return bool(self.threshold == "auto" and self.linear)

    @property
    def _highest_order(self) -> int:
        """Maximum number of columns in a conjunction."""
        if self.degree != "auto":
            return int(self.degree)
        return ADDED_DEGREE if self._is_additive else MINED_DEGREE

    def _check_options(self) -> None:
        check_params(self)
        if self.pretrain_order > self._highest_order:
            degree = setting("degree", self._highest_order)
            found = f"{setting('pretrain_order', self.pretrain_order)} and {degree}"
            raise InputError(f"{found}; expected {named('pretrain_order')} of at most {named('degree')}")
        if self._is_additive:
            for name in ("memory_limit", "filter_memory"):
                if getattr(self, name) is not None:
                    found = setting(name, getattr(self, name))
                    raise InputError(
                        f"{found} has no effect here; expected a given {named('threshold')}, or linear=False"
                    )

    def _add_to_linear(
        self,
        rows: csr_matrix,
        labels: npt.NDArray[np.int64],
        sample_weight: FloatArray,
        checkpoint: str | os.PathLike[str] | None,
        *,
        has_trees: bool = False,
    ) -> Additive:
        """Select conjunctions that are added to a linear model, and optionally boost trees."""
        kept = None
        if checkpoint is not None:
            kept = Checkpoint(checkpoint, self._identity(rows, labels, sample_weight))
        target = LabelTarget(labels, len(self.classes_))
        return add_to_linear(
            self,
            self.degree,  # type: ignore[arg-type]
            rows,
            target,
            labels,
            sample_weight,
            kept,
            has_trees=has_trees,
        )

    def _mine(
        self,
        rows: csr_matrix,
        labels: npt.NDArray[np.int64],
        checkpoint: str | os.PathLike[str] | None,
        client: Client | None,
    ) -> Mined:
        """Select conjunctions by Algorithm 1; return the result of mining."""
        kept = Checkpoint(checkpoint, self._identity(rows, labels)) if checkpoint is not None else None
        self.path_: list[PathStep] = []
        self.is_exact_, self.is_out_of_time_ = True, False
        self.threshold_, self.followed_path_ = self._choose_threshold(rows, labels, kept, client)
        problem = label_problem(labels, len(self.classes_))
        miner = self._miner(self.threshold_, path=self.followed_path_)
        mined = miner.fit(self._space(rows, client), problem, checkpoint=kept)
        self._set_orders(mined.features)
        self.history_: list[IterationReport] | list[StepReport] = list(mined.iterations)
        self.n_iter_ = len(self.history_)
        if not self.conjunctions_:
            warnings.warn(
                f"no conjunction is selected with threshold {self.threshold_:g}; use a lower threshold",
                stacklevel=3,
            )
        return mined

    def _miner(self, threshold: float | str, *, path: bool = True) -> GradientMiner:
        """Return a miner for a threshold; with `path="auto"`, a miner without a path has fewer rounds."""
        is_brief = self.path == "auto" and not path
        return GradientMiner(
            degree=self._highest_order,
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

    def _identity(self, rows: csr_matrix, *targets: npt.NDArray[Any]) -> str:
        """Return a fingerprint of the data and options, which differs after any relevant change."""
        ignored = ("n_jobs", "memory_limit", "filter_memory", "sparse_output", "final_estimator")
        options = {name: value for name, value in self.get_params(deep=False).items() if name not in ignored}
        digest = hashlib.sha256(repr(sorted(options.items())).encode())
        for array in (rows.indptr, rows.indices, *targets):
            kind = np.float64 if array.dtype.kind == "f" else np.int64
            for begin in range(0, len(array), HASHED_AT_A_TIME):
                digest.update(array[begin : begin + HASHED_AT_A_TIME].astype(kind).tobytes())
        return digest.hexdigest()

    def _choose_threshold(
        self,
        rows: csr_matrix,
        labels: npt.NDArray[np.int64],
        checkpoint: Checkpoint | None,
        client: Client | None,
    ) -> tuple[float, bool]:
        """Return the threshold, chosen on held-out samples if automatic, and whether to lower it gradually.

        Of the thresholds whose scores are within a quarter of a standard error of the best, the median is
        chosen: the largest may miss rare features, and the smallest may admit noise.
        """
        if self.threshold != "auto":
            return float(self.threshold), bool(self.path)
        train, held_out = hold_out(labels, self.validation_fraction, random_state=self.random_state)
        space = self._space(rows[train], client)
        # Held-out samples are also copied when they are scored.
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
        # Counts grow with the number of samples, and so must the threshold for all of them.
        return chosen.threshold * len(labels) / len(train), approach

    def _find(self, X: Any) -> csr_matrix:  # noqa: ANN401
        """Return which conjunctions are present in new rows."""
        rows, orders = self._check_rows(X), list(self.orders_.values())
        return find_conjunctions(rows, orders).astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ANN401
        """Return the conjunctions as text, such as ``word=bank & prev=the``.

        Parameters
        ----------
        input_features : array of str, (n_features,), optional
            Names of the columns. By default, the names seen in `fit`, or ``x0``, ``x1``, ... if there were
            none.
        """
        check_is_fitted(self)
        columns = list(map(str, _check_feature_names_in(self, input_features)))
        return np.array(name_conjunctions(self.conjunctions_, columns), dtype=object)

    def _merged_names(self, input_features: Any = None) -> list[str]:  # noqa: ANN401
        """Return the names of conjunctions with merged conditions; equal names mean equal conditions."""
        columns = list(map(str, _check_feature_names_in(self, input_features)))
        return [name_conjunction(each, columns) for each in self.conjunctions_]

    def check_fitted_state(self) -> None:
        """Check that conjunctions refer to existing columns and have weights."""
        super().check_fitted_state()
        n_machines = 1 if len(self.classes_) == 2 else len(self.classes_)
        for order, columns in self.orders_.items():
            plain = np.where(columns < 0, ~columns, columns)
            expect(is_within(plain, self.n_features_in_), "conjunctions of features")
            expect(columns.shape[1] == order, "conjunctions under their order")
        n_conjunctions = sum(map(len, self.orders_.values()))
        expect(self.coef_.shape == (n_machines, n_conjunctions), "a weight for each conjunction")
        expect(len(self.intercept_) == n_machines, "an intercept for each class")

    def restore(self) -> None:
        """Rebuild the list of conjunctions; the history of mining is empty because it is not saved."""
        self._set_orders({order: self.orders_[order].astype(np.int32) for order in sorted(self.orders_)})
        self.path_, self.history_ = [], []
        self.is_exact_, self.is_out_of_time_ = True, False

    def _set_orders(self, orders: dict[int, npt.NDArray[np.int32]]) -> None:
        self.orders_ = orders
        self.conjunctions_ = [tuple(row) for each in orders.values() for row in each.tolist()]


def add_to_linear(
    estimator: Any,  # noqa: ANN401
    degree: int | Literal["auto"],
    rows: csr_matrix,
    target: LossTarget,
    strata: npt.NDArray[np.int64] | None,
    sample_weight: FloatArray,
    checkpoint: Checkpoint | None,
    *,
    has_trees: bool,
) -> Additive:
    """Select conjunctions that are added to a linear model, and store the history in an estimator."""
    options = AdditiveOptions(
        degree=min(ADDED_DEGREE if degree == "auto" else degree, rows.shape[1]),
        tree_degree=(LEAF_DEGREE if degree == "auto" else degree) if has_trees else 1,
        negations=estimator.negations,
        max_iter=estimator.max_iter,
        validation_fraction=estimator.validation_fraction,
        one_standard_error=estimator.one_standard_error,
        max_seconds=estimator.max_seconds,
        random_state=estimator.random_state,
    )
    found = AdditiveFit(rows, target, strata, sample_weight, options, checkpoint).fit()
    estimator._set_orders(found.orders)
    estimator.path_, estimator.history_ = found.path, found.history
    estimator.n_iter_ = max(1, len(found.history))
    estimator.threshold_, estimator.followed_path_ = found.statistic, True
    estimator.is_exact_, estimator.is_out_of_time_ = found.is_exact, found.is_out_of_time
    if found.is_out_of_time:
        warnings.warn(
            f"max_seconds={estimator.max_seconds:g} was reached; the best model so far is used, and more "
            "time may improve it",
            stacklevel=4,
        )
    return found


def find_conjunctions(
    rows: csr_matrix, orders: Sequence[IntArray], memory: Memory | None = None
) -> csr_matrix:
    """Return where conjunctions are true; they may contain columns that must be absent."""
    if any((each < 0).any() for each in orders):
        return match_rows_of_literals(rows, orders)
    return match_conjunctions(rows, orders, memory)


def require_final(memory: Memory, found: csr_matrix) -> None:
    """Raise an error if training the perceptron on these conjunctions would exceed the memory limit."""
    memory.require(
        f"{found.shape[1]:,} selected conjunctions in the perceptron", FINAL_BYTES * int(found.nnz)
    )


def train_perceptron(
    found: csr_matrix, labels: npt.NDArray[np.int64], mined: Mined, n_classes: int, *, random_state: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return the weights and intercepts of an averaged perceptron that starts from the mined weights.

    If no features were selected, the intercepts are computed from the class frequencies.
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


def weigh_samples(
    sample_weight: Any,  # noqa: ANN401
    class_weight: Any,  # noqa: ANN401
    y: npt.NDArray[Any],
    rows: csr_matrix,
) -> FloatArray:
    """Return the weight of each sample, multiplied by the weight of its class."""
    weights: FloatArray = _check_sample_weight(
        sample_weight, rows, dtype=np.float64, ensure_non_negative=True
    )
    if not np.isfinite(weights).all():
        raise InputError(f"sample_weight has {weights[~np.isfinite(weights)][0]}; expected finite numbers")
    if class_weight is not None:
        _check_class_weight(class_weight)
        weights = weights * compute_sample_weight(class_weight, y)
    if not weights.any():
        raise InputError("all samples have a weight of 0; expected at least one above 0")
    return weights


def _check_class_weight(class_weight: Any) -> None:  # noqa: ANN401
    """Check that the weights of classes are finite and not negative."""
    if not isinstance(class_weight, Mapping):
        if not isinstance(class_weight, str) or class_weight != "balanced":
            raise InputError(f'class_weight is {class_weight!r}; expected a dictionary, "balanced" or None')
        return
    for label, weight in class_weight.items():
        if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
            raise InputError(
                f"class_weight gives class {label!r} the weight {weight!r}; expected a number of at least 0"
            )


def repeat_samples(weights: FloatArray) -> npt.NDArray[np.int64]:
    """Return the sample indices, each repeated as often as its weight, which must be an integer."""
    wrong = np.flatnonzero(weights != np.round(weights))
    if len(wrong):
        raise InputError(
            f"sample_weight or class_weight gives sample {wrong[0]} the weight {weights[wrong[0]]:g}; "
            'expected whole numbers with a given threshold, or threshold="auto"'
        )
    return np.repeat(np.arange(len(weights)), weights.astype(np.int64))


def choose(scores: FloatArray) -> npt.NDArray[np.int64]:
    """Return the index of the class with the highest score."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        return (scores.reshape(len(scores)) > 0).astype(np.int64)
    best: npt.NDArray[np.int64] = scores.argmax(axis=1)
    return best


def hold_out(
    labels: npt.NDArray[np.int64], share: float, *, random_state: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Split samples into training and held-out samples, with all classes in both if possible."""
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
