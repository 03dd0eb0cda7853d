"""The base classes of SVMs with kernels: parameters, classes, support vectors, and saving."""

import os
import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from treewright._typing import FloatArray, Integers
from treewright._validate import check_choice, check_integer, check_number, count_jobs
from treewright._version import __version__
from treewright.checkpoint import Checkpoint
from treewright.errors import InputError, show
from treewright.kernels.base import Kernel, PackedExamples
from treewright.kernels.convolution import SubsetTreeKernel
from treewright.kernels.examples import (
    EXAMPLES,
    KernelField,
    check_examples,
    count_examples,
    examples_state,
    kernel_state,
    take_examples,
)
from treewright.kernels.inputs import ROWS_TOGETHER
from treewright.kernels.inputs import multiply as multiply_rows
from treewright.kernels.svm import RowCache, Solution, solve
from treewright.model import Array, Model, State, Value, expect, identify, saved
from treewright.native.kernels.svm import DualProblem
from treewright.scale import map_jobs

LEAST, MOST = 1e-12, 1e12
"""Bounds of positive parameters."""
BATCH_VALUES = 1 << 23
"""Maximum number of kernel values per thread that are held in memory during prediction."""
ClassWeight = dict[Any, float] | str | None
"""Class weights by label, "balanced", or None."""


def _list_weights(class_weight: ClassWeight) -> Any:  # noqa: ANN401
    """Return class weights as a list for JSON, which allows labels of any type."""
    if not isinstance(class_weight, dict):
        return class_weight
    return [[plain(label), plain(weight)] for label, weight in class_weight.items()]


CLASS_WEIGHT = Value(
    encode=_list_weights, decode=lambda saved: dict(saved) if isinstance(saved, list) else saved
)
"""A field of a model that holds class weights."""


class KernelMachine(Model, BaseEstimator):  # type: ignore[misc]
    """Base class of support vector machines; only the support vectors of the examples are stored."""

    fields = saved(
        kernel=KernelField(),
        kernel_=KernelField(),
        support_=Array("i"),
        support_examples_=EXAMPLES,
        dual_coef_=Array("f", 2),
        intercept_=Array("f"),
        n_iter_=Array("i"),
    )

    kernel: Kernel | None
    C: float
    tol: float
    max_iter: int | None
    cache_memory: int
    n_jobs: int

    def _check(self) -> None:
        check_number("C", self.C, low=LEAST, high=MOST)
        check_number("tol", self.tol, low=LEAST, high=MOST)
        if self.max_iter is not None:
            check_integer("max_iter", self.max_iter, minimum=1)
        check_integer("cache_memory", self.cache_memory)
        count_jobs(self.n_jobs)

    def _start(self, examples: Any) -> RowCache:  # noqa: ANN401
        self.kernel_ = make_kernel(self.kernel)
        return RowCache(self.kernel_.pack(examples), self.cache_memory, n_jobs=self.n_jobs)

    def _solve(self, problem: DualProblem, cache: RowCache, name: str) -> Solution:
        solution = solve(problem, cache, tol=self.tol, max_iter=self.max_iter, name=name)
        if solution.violation >= self.tol:
            warnings.warn(
                f"{name} did not converge in {solution.n_iter} iterations (violation "
                f"{solution.violation:.2g}, tol={self.tol:g}); try a larger max_iter, a smaller C, or "
                "normalize=True",
                ConvergenceWarning,
                stacklevel=3,
            )
        return solution

    def _keep(self, examples: Any, solutions: list[Solution]) -> None:  # noqa: ANN401
        coef = np.stack([solution.coef for solution in solutions])
        self.support_ = np.flatnonzero((coef != 0).any(axis=0))
        self.dual_coef_ = coef[:, self.support_]
        self.intercept_ = np.array([solution.intercept for solution in solutions])
        self.n_support_ = np.count_nonzero(self.dual_coef_, axis=1)
        self.n_iter_ = np.array([solution.n_iter for solution in solutions])
        self._set_support(take_examples(examples, self.support_))

    def _set_support(self, examples: Any) -> None:  # noqa: ANN401
        self.support_examples_ = examples
        self._packed: PackedExamples | None = None

    def _pack_support(self) -> PackedExamples:
        if self._packed is None:
            self._packed = self.kernel_.pack(self.support_examples_)
        return self._packed

    def _decide(self, trees: Any) -> FloatArray:  # noqa: ANN401
        """Return the decision value of each example in each SVM."""
        check_is_fitted(self)
        examples = check_examples(trees)
        if len(self.support_) == 0:
            return np.tile(self.intercept_, (count_examples(examples), 1))
        products = multiply(self._pack_support(), examples, self.dual_coef_.T, n_jobs=self.n_jobs)
        return np.asarray(products + self.intercept_, dtype=np.float64)

    def __getstate__(self) -> dict[str, Any]:
        """Omit values that are recomputed when needed."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "_packed" in state:
            state["_packed"] = None
        return state

    def check_fitted_state(self) -> None:
        """Check that each support vector has coefficients."""
        n_machines, n_support = self.dual_coef_.shape
        expect(isinstance(self.kernel_, Kernel), "a kernel")
        expect(len(self.support_) == n_support, "a coefficient for each support vector")
        expect(count_examples(self.support_examples_) == n_support, "an example for each support vector")
        expect(len(self.intercept_) == n_machines, "an intercept for each SVM")

    def restore(self) -> None:
        """Count the support vectors of each SVM."""
        self.n_support_ = np.count_nonzero(self.dual_coef_, axis=1)
        self._set_support(self.support_examples_)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


def keep_machines(
    machine: KernelMachine,
    checkpoint: str | os.PathLike[str],
    examples: Any,  # noqa: ANN401
    arrays: dict[str, npt.NDArray[Any]],
) -> Checkpoint:
    """Return a checkpoint for the trained SVMs, identified by everything that training depends on.

    Parameters
    ----------
    machine : KernelMachine
        An estimator whose `kernel_` is set.
    checkpoint : path
        Folder of the checkpoint.
    examples : list or matrix
        The training examples.
    arrays : dict
        Targets and weights.
    """
    parts = {
        "params": machine.get_params_state(),
        "kernel": kernel_state(machine.kernel_),
        "examples": examples_state(examples),
    }
    return Checkpoint(checkpoint, identify(State(__version__, {}, arrays, parts)))


def solution_state(solution: Solution) -> State:
    """Return the state of a trained SVM."""
    names = ("intercept", "objective", "violation", "n_iter")
    values = {name: plain(getattr(solution, name)) for name in names}
    return State("Solution", values, {"coef": solution.coef, "scores": solution.scores})


def solution_from(state: State) -> Solution:
    """Restore a trained SVM from its state."""
    return Solution(coef=state.arrays["coef"], scores=state.arrays["scores"], **state.values)


class DecisionClassifier(ClassifierMixin):  # type: ignore[misc]
    """A classifier with a decision value for each class, or only for the second of two classes."""

    classes_: npt.NDArray[Any]

    @abstractmethod
    def decision_function(self, trees: Any) -> FloatArray:  # noqa: ANN401
        """Return decision values, (n_examples, n_classes), or (n_examples,) for the second of two classes.

        Parameters
        ----------
        trees : iterable
            Trees or other examples that the kernel compares.

        Returns
        -------
        ndarray of float, (n_examples, n_classes) or (n_examples,)
            The decision value of each class, in the order of `classes_`. With two classes, each example has
            one value, which is positive if the second class is predicted.
        """

    def predict(self, trees: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        """Return the predicted class of each example.

        Parameters
        ----------
        trees : iterable
            Trees or other examples that the kernel compares.

        Returns
        -------
        ndarray, (n_examples,)
            The predicted classes.
        """
        decisions = self.decision_function(trees)
        best = (decisions > 0).astype(np.int64) if decisions.ndim == 1 else decisions.argmax(axis=1)
        predicted: npt.NDArray[Any] = self.classes_[best]
        return predicted

    def _class_coef(self, coef: FloatArray, label: Any) -> FloatArray:  # noqa: ANN401
        """Return the coefficients of a class; with two classes, coefficients of the first are negated."""
        number = find_class(self.classes_, label)
        if len(self.classes_) == 2:
            return np.asarray(coef[0] if number else -coef[0])
        return np.asarray(coef[number])


def find_class(classes: npt.NDArray[Any], label: Any) -> int:  # noqa: ANN401
    """Return the index of a class."""
    numbers = np.flatnonzero(classes == label)
    if len(numbers) != 1:
        raise InputError(f"label is {label!r}; expected one of {', '.join(map(str, classes))}")
    return int(numbers[0])


def check_labels(labels: npt.NDArray[Any], weights: FloatArray) -> tuple[npt.NDArray[Any], Integers]:
    """Return the sorted classes, and the class index of each label.

    Parameters
    ----------
    labels : array, (n_examples,)
        The labels of the examples.
    weights : array of float, (n_examples,)
        Weights of the examples; in each class, at least one must be positive.
    """
    values = np.asarray(labels.tolist())  # so that numbers are seen among objects, too
    if values.dtype.kind == "f":
        broken = values[check_floats("labels", values) != np.round(values)]
        if len(broken):
            raise InputError(f"labels has the value {broken[0]}; expected class names or integers")
    try:
        classes, numbers = np.unique(labels, return_inverse=True)
    except (TypeError, ValueError):
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise InputError(f"labels have the types {kinds}; expected only names or only numbers") from None
    if len(classes) < 2:
        raise InputError(f"all labels are {plain(classes[0])!r}; expected two classes or more")
    for number in np.flatnonzero(np.bincount(numbers, weights) == 0):
        label = plain(classes[number])
        found = f"sample_weight is 0 for all examples of class {label!r}"
        raise InputError(f"{found}; expected a positive weight")
    return classes, numbers


def check_class_weight(class_weight: ClassWeight, classes: npt.NDArray[Any]) -> None:
    """Reject invalid weights and weights of unknown classes."""
    if not isinstance(class_weight, dict):
        check_choice("class_weight", class_weight, (None, "balanced"))
        return
    for label, weight in class_weight.items():
        check_number(f"class_weight[{label!r}]", weight, low=LEAST, high=MOST)
        if label not in classes.tolist():
            names = ", ".join(map(str, classes))
            raise InputError(f"class_weight has the unknown class {label!r}; expected some of {names}")


def make_kernel(kernel: Kernel | None) -> Kernel:
    """Return a copy of a kernel, or the default kernel for None."""
    if kernel is None:
        return SubsetTreeKernel(decay=0.4, normalize=True)
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel is {kernel!r}; expected a kernel of treewright or None")
    copy: Kernel = clone(kernel)
    return copy


def check_input(
    trees: Any,  # noqa: ANN401
    targets: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
) -> tuple[Any, npt.NDArray[Any], FloatArray]:
    """Return examples, targets and weights, all of the same length."""
    examples = check_examples(trees)
    n_examples = count_examples(examples)
    if n_examples == 0:
        raise InputError("no examples were given; expected at least one")
    try:
        given = np.asarray(targets)
    except ValueError:
        raise InputError(
            "the labels are sequences of different lengths; expected one label per example"
        ) from None
    if given.shape != (n_examples,):
        raise InputError(
            f"the labels have the shape {given.shape}; expected ({n_examples},), one per example"
        )
    weights = np.ones(n_examples)
    if sample_weight is not None:
        weights = check_floats("sample_weight", sample_weight)
        if weights.shape != (n_examples,):
            raise InputError(f"sample_weight has the shape {weights.shape}; expected ({n_examples},)")
        if weights.min() < 0:
            raise InputError(f"sample_weight has the value {weights.min():g}; expected 0 or more")
    return examples, given, weights


def check_floats(name: str, values: npt.ArrayLike) -> FloatArray:
    """Return values as floats; reject values that are not finite numbers."""
    try:
        numbers = np.asarray(values).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} has {show(values)}; expected numbers") from error
    wrong = numbers[~np.isfinite(numbers)]
    if len(wrong):
        raise InputError(f"{name} has the value {wrong[0]}; expected finite numbers")
    return numbers


def multiply(packed: PackedExamples, examples: Any, factors: FloatArray, *, n_jobs: int) -> FloatArray:  # noqa: ANN401
    """Multiply the kernel values of examples with the packed examples by a matrix."""
    n_examples = count_examples(examples)
    size = max(1, min(BATCH_VALUES // len(packed), -(-n_examples // count_jobs(n_jobs))))
    size = -(-size // ROWS_TOGETHER) * ROWS_TOGETHER  # so that results do not depend on n_jobs
    batches = [slice(begin, begin + size) for begin in range(0, n_examples, size)]

    def multiply_batch(batch: slice) -> FloatArray:
        return multiply_rows(packed.compare(take_examples(examples, batch)), factors)

    products = map_jobs(
        multiply_batch,
        batches,
        n_jobs=n_jobs,
        what="comparing",
        unit="examples",
        count=lambda batch: min(batch.stop, n_examples) - batch.start,
    )
    found = np.concatenate([np.empty((0, factors.shape[1])), *products])
    wrong = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(wrong):
        raise InputError(f"the kernel values of example {wrong[0]} are not finite; expected finite numbers")
    return found


def plain(value: Any) -> Any:  # noqa: ANN401
    """Convert a NumPy scalar to a plain Python value, for JSON."""
    return value.item() if isinstance(value, np.generic) else value


def parameter_values(estimator: BaseEstimator, left_out: str) -> dict[str, Any]:
    """Return the parameters of an estimator as plain values, except one of them."""
    params = estimator.get_params(deep=False)
    return {name: plain(each) for name, each in params.items() if name != left_out}
