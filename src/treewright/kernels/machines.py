"""Support vector machines with kernels of trees or other examples, and Nyström features."""

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

from treewright._typing import FloatArray, Integers, RandomState
from treewright._validate import check_choice, check_integer, check_number, count_jobs, draw_seed
from treewright.errors import InputError
from treewright.kernels.base import MAX_VISITS, Kernel, PackedExamples
from treewright.kernels.examples import EXAMPLES, KernelField, check_examples, count_examples, take_examples
from treewright.kernels.fragments import SearchLimits, WeighedFragment, explain_tree
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
from treewright.model import Array, Classes, Model, State, expect, saved, seeded
from treewright.progress import track
from treewright.scale import one_blas_thread

N_FOLDS = 5
"""Number of cross-validation folds for the calibration of probabilities."""
SMALLEST_EIGENVALUE = 1e-10
"""Minimum eigenvalue relative to the largest; smaller ones are treated as rounding errors."""


def _learns_probabilities(machine: "TreeKernelClassifier") -> bool:
    if not machine.probability:
        raise AttributeError("probability is False; expected True for predict_proba")
    return True


class TreeKernelClassifier(DecisionClassifier, KernelMachine):
    """One-vs-rest support vector classification with a kernel.

    Each class has its own SVM; two classes need only one. Kernel values are computed when they are needed and
    cached within a memory limit that all SVMs share, so the Gram matrix does not have to fit into memory.

    Parameters
    ----------
    kernel : Kernel, optional
        Kernel of the examples. None means ``SubsetTreeKernel(decay=0.4, normalize=True)``.
    C : float
        Regularisation parameter: the cost of an example on the wrong side of the margin.
    class_weight : dict or "balanced", optional
        Factor of `C` for each class. With more than two classes, the factor of a class applies only in its
        own SVM, in which all other classes have the factor 1. "balanced" gives the positive and the negative
        examples of each SVM the same total weight.
    probability : bool
        Calibrate probabilities by 5-fold cross-validation; required for `predict_proba`.
    tol : float
        Tolerance of the stopping criterion: the maximum violation of the optimality conditions.
    max_iter : int, optional
        Maximum number of iterations of each SVM; a warning is issued when it is reached.
    cache_memory : int
        Memory limit in bytes for cached kernel values during training.
    random_state : int, Generator, RandomState or None
        Seed for the cross-validation folds of `probability`. With None, results differ between calls.
    n_jobs : int
        Number of threads (-1: all processors) that compute kernel values; results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The classes, in ascending order.
    support_ : ndarray of int, (n_support,)
        Indices of the support vectors of all SVMs, in ascending order.
    support_examples_ : list or matrix
        The support vectors.
    dual_coef_ : ndarray of float, (n_machines, n_support)
        Coefficients of the support vectors in each SVM; 0 if an example is not a support vector of the SVM.
        There is one SVM for each class, or a single one for the second of two classes.
    intercept_ : ndarray of float, (n_machines,)
        Intercept of each SVM.
    n_support_ : ndarray of int, (n_machines,)
        Number of support vectors of each SVM.
    n_iter_ : ndarray of int, (n_machines,)
        Number of iterations of each SVM.
    kernel_ : Kernel
        The kernel used in training: a copy of `kernel`, or the default kernel.
    sigmoid_ : ndarray of float, (n_machines, 2)
        Slope and offset of the log odds; empty if `probability` is False.

    See Also
    --------
    LinearizedTreeClassifier : A linear model over the heaviest fragments, with faster prediction.
    TreeKernelNystroem : Approximate features for linear models.

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
        random_state: RandomState = 0,
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

    @seeded
    def fit(
        self,
        trees: Any,  # noqa: ANN401
        labels: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train the SVMs.

        Parameters
        ----------
        trees : iterable
            Trees or other examples that the kernel compares. A generator is read once.
        labels : array, (n_examples,)
            Labels of at least two classes.
        sample_weight : array of float, (n_examples,), optional
            Factor of `C` for each example.
        checkpoint : path, optional
            Folder that stores each finished SVM. If it exists, training resumes from it, with the same result
            as without an interruption.
        """
        self._check()
        check_choice("probability", self.probability, (False, True))
        examples, labels, weights = check_input(trees, labels, sample_weight)
        self.classes_, numbers = check_labels(labels, weights)
        check_class_weight(self.class_weight, self.classes_)
        cache = self._start(examples)
        learnt = {"numbers": numbers, "weights": weights}
        kept = keep_machines(self, checkpoint, examples, learnt) if checkpoint else None
        solutions, sigmoids = [], []
        before: State | None = None
        for number in track(self._machines(), "training SVMs", unit="classes"):
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
        """Train the SVM of a class, and calibrate its probabilities if `probability` is True."""
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
        """Return the indices of the classes that have an SVM."""
        return range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))

    def _class_factors(self, number: int, signs: FloatArray) -> FloatArray:
        """Return the factor of `C` for each example in the SVM of a class."""
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
        """Return the cross-validated decision value of each example.

        Cached rows contain the kernel values with all examples and are reused.
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
        decisions = self._decide(trees)
        return decisions[:, 0] if len(self.classes_) == 2 else decisions

    @available_if(_learns_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, trees: Any) -> FloatArray:  # noqa: ANN401
        """Return the probability of each class, (n_examples, n_classes); only with `probability`.

        Parameters
        ----------
        trees : iterable
            Trees or other examples that the kernel compares.

        Returns
        -------
        ndarray of float, (n_examples, n_classes)
            The probabilities, in the order of `classes_`; each row sums to 1.
        """
        check_is_fitted(self)
        if not len(self.sigmoid_):
            raise InputError("probability was False in fit; expected True for predict_proba")
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
        """Return the fragments of a tree that contribute most to its decision value.

        The decision value of the class is the sum of the intercept and the contributions of all fragments and
        vectors; contributions of vectors are not listed. With two classes, their decision values differ only
        in sign. Supported for `SubtreeKernel`, `SubsetTreeKernel` and `PartialTreeKernel`, and for sums
        of these and linear vector kernels.

        Parameters
        ----------
        tree : tree of any kind, or example with several parts, that the kernel accepts
            The tree or example to explain.
        n : int
            Maximum number of fragments; fragments that contribute nothing are omitted.
        label : label, optional
            The class to explain (default: the predicted class).
        max_size : int, optional
            Maximum number of nodes in a fragment. In subtrees and subset trees, leaves are not counted.
        max_visits : int
            Maximum number of fragments to visit. A larger search stops with a warning, and its result may be
            incomplete. In large trees, this happens if decays are close to 1.

        Returns
        -------
        list of WeighedFragment
            Fragments in brackets, with their weights and the key of their `Part`, or None. The leaves of a
            fragment are words, or nodes that are not expanded. The largest absolute weight comes first. If
            several kernels compare the same tree, a fragment is listed once for each kernel.

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
        """Check that the classes, SVMs and sigmoids of a loaded model are consistent."""
        super().check_fitted_state()
        n_machines = len(self._machines())
        expect(len(self.classes_) > 1 and len(self.dual_coef_) == n_machines, "an SVM for each class")
        n_sigmoids = n_machines if len(self.sigmoid_) else 0
        expect(self.sigmoid_.shape == (n_sigmoids, 2), "a slope and an offset for each SVM")


class TreeKernelRegressor(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """Support vector regression with a kernel.

    Parameters
    ----------
    kernel : Kernel, optional
        Kernel of the examples. None means ``SubsetTreeKernel(decay=0.4, normalize=True)``.
    C : float
        Regularisation parameter: the cost of an error that exceeds `epsilon` by 1.
    epsilon : float
        Maximum absolute error that costs nothing.
    tol : float
        Tolerance of the stopping criterion: the maximum violation of the optimality conditions.
    max_iter : int, optional
        Maximum number of iterations; a warning is issued when it is reached.
    cache_memory : int
        Memory limit in bytes for cached kernel values during training.
    n_jobs : int
        Number of threads (-1: all processors) that compute kernel values; results do not depend on it.

    Attributes
    ----------
    support_ : ndarray of int, (n_support,)
        Indices of the support vectors, in ascending order.
    support_examples_ : list or matrix
        The support vectors.
    dual_coef_ : ndarray of float, (1, n_support)
        Coefficients of the support vectors.
    intercept_ : ndarray of float, (1,)
        Intercept of the SVM.
    n_support_, n_iter_ : ndarray of int, (1,)
        Number of support vectors, and number of iterations in training.
    kernel_ : Kernel
        The kernel used in training: a copy of `kernel`, or the default kernel.

    See Also
    --------
    TreeKernelClassifier : Support vector classification.

    Examples
    --------
    >>> from treewright import TreeKernelRegressor
    >>> trees = ["(S (N Mary) (V sleeps))", "(S (N Mary) (V (V sleeps) (A well)))"]
    >>> TreeKernelRegressor(C=100).fit(trees, [2.0, 3.0]).predict(trees).round(1).tolist()
    [2.1, 2.9]
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
        """Train the SVM.

        Parameters
        ----------
        trees : iterable
            Trees or other examples that the kernel compares. A generator is read once.
        targets : array of float, (n_examples,)
            Target of each example.
        sample_weight : array of float, (n_examples,), optional
            Factor of `C` for each example.
        """
        self._check()
        check_number("epsilon", self.epsilon, low=0, high=MOST)
        examples, targets, weights = check_input(trees, targets, sample_weight)
        numbers = check_floats("targets", targets)
        if not weights.any():
            raise InputError("sample_weight is 0 for all examples; expected a positive weight for some")
        cache = self._start(examples)
        rows = np.arange(len(numbers))
        problem = regression_problem(rows, numbers, self.C * weights, epsilon=self.epsilon)
        self._keep(examples, [self._solve(problem, cache, "regression")])
        return self

    def predict(self, trees: Any) -> FloatArray:  # noqa: ANN401
        """Return the predicted target of each example.

        Parameters
        ----------
        trees : iterable
            Trees or other examples that the kernel compares.

        Returns
        -------
        ndarray of float, (n_examples,)
            The predicted targets.
        """
        return self._decide(trees)[:, 0]

    def explain(
        self,
        tree: Any,  # noqa: ANN401
        n: int = 10,
        *,
        max_size: int | None = None,
        max_visits: int = MAX_VISITS,
    ) -> list[WeighedFragment]:
        """Return the fragments of a tree that contribute most to its prediction.

        The prediction is the sum of the intercept and the contributions of all fragments and vectors;
        contributions of vectors are not listed. Supported for `SubtreeKernel`, `SubsetTreeKernel` and
        `PartialTreeKernel`, and for sums of these and linear vector kernels.

        Parameters
        ----------
        tree : tree of any kind, or example with several parts, that the kernel accepts
            The tree or example to explain.
        n : int
            Maximum number of fragments; fragments that contribute nothing are omitted.
        max_size : int, optional
            Maximum number of nodes in a fragment. In subtrees and subset trees, leaves are not counted.
        max_visits : int
            Maximum number of fragments to visit. A larger search stops with a warning, and its result may be
            incomplete. In large trees, this happens if decays are close to 1.

        Returns
        -------
        list of WeighedFragment
            Fragments in brackets, with their weights and the key of their `Part`, or None. The leaves of a
            fragment are words, or nodes that are not expanded. The largest absolute weight comes first. If
            several kernels compare the same tree, a fragment is listed once for each kernel.
        """
        check_is_fitted(self)
        return explain_tree(self, tree, self.dual_coef_[0], SearchLimits(n, max_size, max_visits))


class TreeKernelNystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model, BaseEstimator):  # type: ignore[misc]
    """Approximate a kernel by a few features, to train linear models on many trees (Nyström method).

    The features are the kernel values with some of the examples (the landmarks), multiplied by the inverse
    square root of the kernel matrix of the landmarks (Williams & Seeger 2001). The inner products of the
    features approximate the kernel.

    Parameters
    ----------
    kernel : Kernel, optional
        Kernel of the examples. None means ``SubsetTreeKernel(decay=0.4, normalize=True)``.
    n_components : int
        Number of landmarks; at most the number of examples.
    random_state : int, Generator, RandomState or None
        Seed for the choice of landmarks. With None, results differ between calls.
    n_jobs : int
        Number of threads (-1: all processors) that compute kernel values; results do not depend on it.

    Attributes
    ----------
    component_indices_ : ndarray of int, (n_components,)
        Indices of the landmarks among the training examples, in ascending order.
    components_ : list or matrix
        The landmarks.
    normalization_ : ndarray of float, (n_components, n_components)
        Pseudo-inverse square root of the kernel matrix of the landmarks.
    kernel_ : Kernel
        The kernel used in `fit`: a copy of `kernel`, or the default kernel.

    See Also
    --------
    TreeKernelClassifier : The exact SVM; `LinearizedTreeClassifier` has fragments as features.

    Examples
    --------
    >>> from treewright import TreeKernelNystroem
    >>> trees = ["(S (NP Mary) (VP sleeps))", "(S (NP he) (VP eats))", "(Q (WH who) (VP sleeps))"]
    >>> TreeKernelNystroem(n_components=2).fit(trees).transform(trees).shape
    (3, 2)
    """

    fields = saved(
        kernel=KernelField(),
        kernel_=KernelField(),
        component_indices_=Array("i", low=0),
        components_=EXAMPLES,
        normalization_=Array("f", 2),
    )

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        n_components: int = 100,
        random_state: RandomState = 0,
        n_jobs: int = 1,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, trees: Any, y: object = None) -> Self:  # noqa: ANN401
        """Choose the landmarks.

        Parameters
        ----------
        trees : iterable
            Trees or other examples that the kernel compares. A generator is read once.
        y : object
            Ignored; present for compatibility with scikit-learn.
        """
        check_integer("n_components", self.n_components, minimum=1)
        count_jobs(self.n_jobs)
        examples = check_examples(trees)
        n_examples = count_examples(examples)
        if n_examples == 0:
            raise InputError("no examples were given; expected at least one")
        order = np.random.default_rng(draw_seed(self.random_state)).permutation(n_examples)
        self.component_indices_ = np.sort(order[: self.n_components])
        self.components_ = take_examples(examples, self.component_indices_)
        self.kernel_ = make_kernel(self.kernel)
        packed = self.kernel_.pack(self.components_)
        numbers = np.arange(len(self.component_indices_))
        self.normalization_ = _inverse_root(packed.block(numbers, numbers))
        self._packed: PackedExamples | None = packed
        self._n_features_out = len(numbers)
        return self

    def check_fitted_state(self) -> None:
        """Check that the normalisation matrix has a row for each landmark."""
        n_components = len(self.component_indices_)
        expect(isinstance(self.kernel_, Kernel), "a kernel")
        expect(count_examples(self.components_) == n_components, "an example for each landmark")
        expect(self.normalization_.shape == (n_components, n_components), "a square normalisation matrix")

    def restore(self) -> None:
        """Restore the attributes that are not saved."""
        self._packed = None
        self._n_features_out = len(self.component_indices_)

    def transform(self, trees: Any) -> FloatArray:  # noqa: ANN401
        """Return the features of examples, (n_examples, n_components).

        Parameters
        ----------
        trees : iterable
            Trees or other examples that the kernel compares.

        Returns
        -------
        ndarray of float, (n_examples, n_components)
            The features. Their inner products approximate the kernel values.
        """
        check_is_fitted(self)
        if self._packed is None:
            self._packed = self.kernel_.pack(self.components_)
        return multiply(self._packed, check_examples(trees), self.normalization_, n_jobs=self.n_jobs)

    def __getstate__(self) -> dict[str, Any]:
        """Omit values that are recomputed when needed."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "_packed" in state:
            state["_packed"] = None
        return state


@one_blas_thread
def _inverse_root(values: FloatArray) -> FloatArray:
    """Return the pseudo-inverse square root of a symmetric matrix."""
    if not np.isfinite(values).all():
        raise InputError("the kernel values of the landmarks are not finite; expected finite numbers")
    eigenvalues, vectors = np.linalg.eigh((values + values.T) / 2)
    is_kept = eigenvalues > SMALLEST_EIGENVALUE * max(eigenvalues.max(), 0)
    vectors = vectors[:, is_kept]
    return np.asarray(vectors / np.sqrt(eigenvalues[is_kept]) @ vectors.T, dtype=np.float64)
