"""Support vector machines, and features for linear ones, over trees or whatever else a kernel compares."""

import os
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from treewright._typing import FloatArray, Integers
from treewright._validate import check_choice, check_integer, check_number
from treewright.errors import InputError
from treewright.kernels.base import Kernel, PackedExamples
from treewright.kernels.examples import check_examples, count_examples, take_examples
from treewright.kernels.fragments import MAX_VISITS, SearchLimits, WeighedFragment, explain_tree
from treewright.kernels.platt import apply_sigmoid, deal_folds, fit_sigmoid
from treewright.kernels.support import (
    CLASS_WEIGHT,
    MOST,
    ClassWeight,
    DecisionClassifier,
    KernelMachine,
    check_class_weight,
    check_floats,
    check_input,
    check_labels,
    keep_machines,
    make_kernel,
    multiply,
    plain,
    solution_from,
    solution_state,
)
from treewright.kernels.svm import RowCache, classification_problem, regression_problem
from treewright.model import Array, Classes, State, expect, saved
from treewright.progress import track
from treewright.scale import one_blas_thread

N_FOLDS = 5
"""Parts of the training data for decision values that probabilities are learnt from."""
SMALLEST_EIGENVALUE = 1e-10
"""As a share of the largest; what is below is noise."""


def _learns_probabilities(machine: "TreeKernelClassifier") -> bool:
    if not machine.probability:
        raise AttributeError("probability is False; expected True for predict_proba")
    return True


class TreeKernelClassifier(DecisionClassifier, KernelMachine):
    """A support vector machine for each class against all others, or one for two classes.

    Kernel values are computed when they are needed, and kept within a memory budget that all machines share,
    so that there need not be room for all of them.

    Parameters
    ----------
    kernel : Kernel, optional
        None is ``SubsetTreeKernel(decay=0.4, normalize=True)``.
    C : float
        The cost of an example on the wrong side of the margin.
    class_weight : dict or "balanced", optional
        Factors of the cost. With two classes, those of the examples of either; with more, those of the
        examples of a class in its own machine, where the others weigh 1. Balanced machines give the same
        weight to either side as a whole.
    probability : bool
        Whether to learn probabilities, from decision values of machines that have not seen the example.
    tol : float
        By how much the conditions of optimality may be violated.
    max_iter : int, optional
        Rounds after which a machine stops anyway, with a warning.
    cache_memory : int
        Bytes for kernel values in training.
    random_state : int
        Decides which examples are together when probabilities are learnt.
    n_jobs : int
        Threads that compute kernel values.

    Attributes
    ----------
    classes_ : ndarray
    support_ : ndarray of int, (n_support,)
        The numbers of the examples that some machine needs, ascending.
    support_examples_ : list or matrix
        These examples.
    dual_coef_ : ndarray of float, (n_machines, n_support)
    intercept_ : ndarray of float, (n_machines,)
    n_support_ : ndarray of int, (n_machines,)
        How many examples each machine needs.
    n_iter_ : ndarray of int, (n_machines,)
    kernel_ : Kernel
    sigmoid_ : ndarray of float, (n_machines, 2)
        Slope and offset of the logarithm of the odds; with `probability` only.

    Examples
    --------
    >>> from treewright import ConstTree
    >>> from treewright.kernels.machines import TreeKernelClassifier
    >>> texts = ["(S (NP Mary) (VP sleeps))", "(S (NP he) (VP eats))", "(Q (WH who) (VP sleeps))"]
    >>> trees = [ConstTree.parse(text) for text in texts]
    >>> classifier = TreeKernelClassifier().fit(trees, ["statement", "statement", "question"])
    >>> classifier.predict([ConstTree.parse("(Q (WH who) (VP eats))")]).tolist()
    ['question']
    """

    fields = saved(
        **KernelMachine.fields, class_weight=CLASS_WEIGHT, classes_=Classes(), sigmoid_=Array("f", 2)
    )

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        C: float = 1.0,  # noqa: N803
        class_weight: ClassWeight = None,
        probability: bool = False,
        tol: float = 1e-3,
        max_iter: int | None = None,
        cache_memory: int = 1 << 30,
        random_state: int = 0,
        n_jobs: int = 1,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.cache_memory = cache_memory
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        trees: Any,  # noqa: ANN401
        labels: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from examples of two classes or more.

        Parameters
        ----------
        trees : sequence
            Whatever the kernel takes.
        labels : array, (n_examples,)
        sample_weight : array of float, (n_examples,), optional
            Factors of the cost of each example.
        checkpoint : path, optional
            A folder in which each machine is kept. If it exists, training goes on from it and ends as if it
            had not been interrupted.
        """
        self._check()
        check_choice("probability", self.probability, (False, True))
        check_integer("random_state", self.random_state)
        examples, labels, weights = check_input(trees, labels, sample_weight)
        self.classes_, numbers = check_labels(labels, weights)
        check_class_weight(self.class_weight, self.classes_)
        cache = self._start(examples)
        learnt = {"numbers": numbers, "weights": weights}
        kept = keep_machines(self, checkpoint, examples, learnt) if checkpoint else None
        solutions, sigmoids = [], []
        before: State | None = None
        for number in track(self._machines(), "training machines", unit="classes"):
            state = kept.load(f"machine{number}") if kept else None
            if state is None:
                if before is not None:
                    cache.set_places(before.arrays)
                before, state = None, self._train(number, numbers, weights, cache)
                if kept:
                    kept.save(f"machine{number}", state)
            else:
                before = state
            solutions.append(solution_from(state.parts["solution"]))
            sigmoids.append(state.values["sigmoid"])
        self._keep(examples, solutions)
        self.sigmoid_ = np.array(sigmoids if self.probability else []).reshape(-1, 2)
        return self

    def _train(
        self,
        number: int,
        numbers: Integers,
        weights: FloatArray,
        cache: RowCache,
    ) -> State:
        """Train the machine of a class, and learn its probabilities if they are wanted."""
        signs = np.where(numbers == number, 1.0, -1.0)
        bounds = self.C * weights * self._class_factors(number, signs)
        name = f"class {self.classes_[number]}"
        problem = classification_problem(np.arange(len(signs)), signs, bounds)
        solution = self._solve(problem, cache, name)
        sigmoid = None
        if self.probability:
            folds = deal_folds(numbers, N_FOLDS, random_state=self.random_state)
            decisions = self._unseen_decisions(cache, folds, signs, bounds, name)
            sigmoid = list(map(float, fit_sigmoid(decisions, signs > 0)))
        parts = {"solution": solution_state(solution)}
        return State("Machine", {"sigmoid": sigmoid}, cache.get_places(), parts)

    def _machines(self) -> range:
        """Return the numbers of the classes that have a machine."""
        return range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))

    def _class_factors(self, number: int, signs: FloatArray) -> FloatArray:
        """Return the factor of the cost of each example in the machine of a class."""
        if self.class_weight is None:
            return np.ones_like(signs)
        if isinstance(self.class_weight, dict):
            positive = self.class_weight.get(plain(self.classes_[number]), 1.0)
            other = plain(self.classes_[0]) if len(self.classes_) == 2 else None
            negative = self.class_weight.get(other, 1.0) if len(self.classes_) == 2 else 1.0
        else:
            n_positive = np.count_nonzero(signs > 0)
            positive, negative = len(signs) / (2 * np.array([n_positive, len(signs) - n_positive]))
        return np.where(signs > 0, positive, negative)

    def _unseen_decisions(
        self,
        cache: RowCache,
        folds: Integers,
        signs: FloatArray,
        bounds: FloatArray,
        name: str,
    ) -> FloatArray:
        """Return the decision value of each example by a machine that has not seen it.

        Rows have the kernel's values with all examples, so that these cost nothing more.
        """
        decisions = np.empty_like(signs)
        for fold in range(N_FOLDS):
            seen, unseen = np.flatnonzero(folds != fold), folds == fold
            present = np.unique(signs[seen][bounds[seen] > 0])
            if len(present) < 2:
                decisions[unseen] = present.sum()
                continue
            problem = classification_problem(seen, signs[seen], bounds[seen])
            solution = self._solve(problem, cache, f"{name}, fold {fold + 1} of {N_FOLDS}")
            decisions[unseen] = solution.scores[unseen] + solution.intercept
        return decisions

    def decision_function(self, trees: Any) -> FloatArray:  # noqa: ANN401
        """Return the decision value of each class, (n_examples, n_classes), or of the second of two."""
        decisions = self._decide(trees)
        return decisions[:, 0] if len(self.classes_) == 2 else decisions

    @available_if(_learns_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, trees: Any) -> FloatArray:  # noqa: ANN401
        """Return the probability of each class, (n_examples, n_classes); with `probability` only."""
        check_is_fitted(self)
        if not len(self.sigmoid_):
            raise InputError("probability was False in fit; expected True for probabilities")
        positive = apply_sigmoid(self._decide(trees), *self.sigmoid_.T)
        if len(self.classes_) == 2:
            return np.hstack([1 - positive, positive])
        positive = np.maximum(positive, np.finfo(np.float64).tiny)
        return np.asarray(positive / positive.sum(axis=1, keepdims=True), dtype=np.float64)

    def explain(
        self,
        tree: Any,  # noqa: ANN401
        n: int = 10,
        *,
        label: Any = None,  # noqa: ANN401
        max_size: int | None = None,
        max_visits: int = MAX_VISITS,
    ) -> list[WeighedFragment]:
        """Return the fragments of a tree that add most to its decision value, or take most from it.

        All fragments of the tree, and the intercept, add up to the decision value of the class; of the first
        of two classes, this is minus that of the second. For `SubsetTreeKernel` and `SubtreeKernel`, and for
        sums of kernels, weighted or not, of which some are these, of whole examples or of parts of them.
        What vectors add is left out.

        Parameters
        ----------
        tree : tree of any kind, or example of several parts, that the kernel takes
        n : int
            Fragments at the most; those that add nothing are left out.
        label : label, optional
            The class; without it, the one that is predicted.
        max_size : int, optional
            The most nodes, leaves not counted, of a fragment.
        max_visits : int
            The heaviest fragments are found exactly, by a search that leaves out what cannot be heavy; after
            so many fragments it stops with a warning. That happens where nothing decays, in large trees.

        Returns
        -------
        list of WeighedFragment
            Each a fragment in brackets, in which leaves are words or nodes that are not expanded, its weight,
            and the key of the `Part` it is from, or None; the largest absolute weight first. If several
            kernels see the same tree, a fragment is there for each of them.

        Examples
        --------
        >>> from treewright.kernels.machines import TreeKernelClassifier
        >>> trees = ["(S (NP Mary) (VP sleeps))", "(Q (WH who) (VP sleeps))"]
        >>> classifier = TreeKernelClassifier().fit(trees, ["statement", "question"])
        >>> sorted(found.fragment for found in classifier.explain("(Q (WH who) (VP eats))", n=2))
        ['(Q WH VP)', '(WH who)']
        """
        check_is_fitted(self)
        if label is None:
            label = self.predict([tree])[0]
        coef = self._class_coef(self.dual_coef_, label)
        return explain_tree(self, tree, coef, SearchLimits(n, max_size, max_visits))

    def check_fitted_state(self) -> None:
        """Check that there are machines for all classes, and numbers for all machines."""
        super().check_fitted_state()
        n_machines = len(self._machines())
        expect(len(self.classes_) > 1 and len(self.dual_coef_) == n_machines, "a machine for each class")
        n_sigmoids = n_machines if len(self.sigmoid_) else 0
        expect(self.sigmoid_.shape == (n_sigmoids, 2), "a slope and an offset for each machine")


class TreeKernelRegressor(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """Support vector regression: errors up to `epsilon` cost nothing.

    Parameters
    ----------
    kernel, C, tol, max_iter, cache_memory, n_jobs
        As those of `TreeKernelClassifier`.
    epsilon : float

    Attributes
    ----------
    support_, support_examples_, dual_coef_, intercept_, n_support_, n_iter_, kernel_
        As those of `TreeKernelClassifier`, of one machine.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        C: float = 1.0,  # noqa: N803
        epsilon: float = 0.1,
        tol: float = 1e-3,
        max_iter: int | None = None,
        cache_memory: int = 1 << 30,
        n_jobs: int = 1,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.tol = tol
        self.max_iter = max_iter
        self.cache_memory = cache_memory
        self.n_jobs = n_jobs

    def fit(
        self,
        trees: Any,  # noqa: ANN401
        targets: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from examples and a number for each.

        Parameters
        ----------
        trees : sequence
            Whatever the kernel takes.
        targets : array of float, (n_examples,)
        sample_weight : array of float, (n_examples,), optional
            Factors of the cost of each example.
        """
        self._check()
        check_number("epsilon", self.epsilon, low=0, high=MOST)
        examples, targets, weights = check_input(trees, targets, sample_weight)
        numbers = check_floats("targets", targets)
        if not weights.any():
            raise InputError("sample_weight is 0 for all examples; expected more for some")
        cache = self._start(examples)
        rows = np.arange(len(numbers))
        problem = regression_problem(rows, numbers, self.C * weights, epsilon=self.epsilon)
        self._keep(examples, [self._solve(problem, cache, "regression")])
        return self

    def predict(self, trees: Any) -> FloatArray:  # noqa: ANN401
        """Return the number of each example."""
        return self._decide(trees)[:, 0]

    def explain(
        self,
        tree: Any,  # noqa: ANN401
        n: int = 10,
        *,
        max_size: int | None = None,
        max_visits: int = MAX_VISITS,
    ) -> list[WeighedFragment]:
        """Return the fragments of a tree that add most to its number, or take most from it.

        All fragments of the tree, the intercept, and what vectors add, which is left out, add up to the
        number. See `TreeKernelClassifier`.
        """
        check_is_fitted(self)
        return explain_tree(self, tree, self.dual_coef_[0], SearchLimits(n, max_size, max_visits))


class TreeKernelNystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A few features whose inner products are close to the kernel, for linear models of large data.

    They are the kernel's values with some examples, the landmarks, times the inverse square root of those of
    the landmarks among themselves (Williams & Seeger 2001).

    Parameters
    ----------
    kernel : Kernel, optional
        None is ``SubsetTreeKernel(decay=0.4, normalize=True)``.
    n_components : int
        Landmarks, of which there are no more than examples.
    random_state : int
        Decides which examples are landmarks.
    n_jobs : int
        Threads that compute kernel values.

    Attributes
    ----------
    component_indices_ : ndarray of int, (n_components,)
        The numbers of the landmarks, ascending.
    components_ : list or matrix
        The landmarks.
    normalization_ : ndarray of float, (n_components, n_components)
    kernel_ : Kernel
    """

    def __init__(
        self, kernel: Kernel | None = None, *, n_components: int = 100, random_state: int = 0, n_jobs: int = 1
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, trees: Any, y: object = None) -> Self:  # noqa: ANN401
        """Choose the landmarks."""
        check_integer("n_components", self.n_components, minimum=1)
        check_integer("random_state", self.random_state)
        check_integer("n_jobs", self.n_jobs, minimum=1)
        examples = check_examples(trees)
        n_examples = count_examples(examples)
        if n_examples == 0:
            raise InputError("no examples were given; expected at least one")
        order = np.random.default_rng(self.random_state).permutation(n_examples)
        self.component_indices_ = np.sort(order[: self.n_components])
        self.components_ = take_examples(examples, self.component_indices_)
        self.kernel_ = make_kernel(self.kernel)
        packed = self.kernel_.pack(self.components_)
        numbers = np.arange(len(self.component_indices_))
        self.normalization_ = _inverse_root(packed.block(numbers, numbers))
        self._packed: PackedExamples | None = packed
        self._n_features_out = len(numbers)
        return self

    def transform(self, trees: Any) -> FloatArray:  # noqa: ANN401
        """Return the features of examples, (n_examples, n_components)."""
        check_is_fitted(self)
        if self._packed is None:
            self._packed = self.kernel_.pack(self.components_)
        return multiply(self._packed, check_examples(trees), self.normalization_, n_jobs=self.n_jobs)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again when it is needed."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "_packed" in state:
            state["_packed"] = None
        return state


@one_blas_thread
def _inverse_root(values: FloatArray) -> FloatArray:
    """Return the inverse square root of a symmetric matrix, on the part of the space where it has one."""
    if not np.isfinite(values).all():
        raise InputError("the kernel values of the landmarks are not finite; expected finite numbers")
    eigenvalues, vectors = np.linalg.eigh((values + values.T) / 2)
    is_kept = eigenvalues > SMALLEST_EIGENVALUE * max(eigenvalues.max(), 0)
    vectors = vectors[:, is_kept]
    return np.asarray(vectors / np.sqrt(eigenvalues[is_kept]) @ vectors.T, dtype=np.float64)
