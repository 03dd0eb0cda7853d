"""Linear models over the heaviest fragments of SVMs with tree kernels.

An SVM compares a tree with all its support vectors. But only a few coordinates of its weight vector in the
space of fragments matter (Pighin & Moschitti 2009, 2010). The fragments of these coordinates become explicit
features, on which a linear model is trained.
"""

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, hstack, vstack
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from treewright._typing import FloatArray, Integers, RandomState
from treewright._validate import check_choice, check_integer, check_number, count_jobs
from treewright.data.consttree import ConstTree
from treewright.data.frames import in_set_output
from treewright.errors import InputError
from treewright.kernels.base import MAX_VISITS, Kernel
from treewright.kernels.examples import (
    EXAMPLES,
    KernelField,
    check_examples,
    count_examples,
    take_examples,
)
from treewright.kernels.fragments import (
    FragmentCounter,
    SearchLimits,
    Support,
    WeighedFragment,
)
from treewright.kernels.inputs import Key
from treewright.kernels.machines import TreeKernelClassifier
from treewright.kernels.support import (
    CLASS_WEIGHT,
    LEAST,
    MOST,
    ClassWeight,
    DecisionClassifier,
    check_class_weight,
    check_input,
    check_labels,
    find_class,
    make_kernel,
)
from treewright.kernels.terms import Term, list_terms, list_vector_terms, place_rows
from treewright.model import Array, Classes, Model, Unfitted, expect, is_within, saved, seeded
from treewright.native.kernels.fragments import Measures
from treewright.progress import report
from treewright.scale import map_jobs, one_blas_thread

Result = TypeVar("Result")
TREES_AT_A_TIME = 4096
"""Number of trees that a thread processes at a time."""


class FragmentSpace:
    """Transforms examples into rows of features: the fragments of each tree kernel, then the vector columns.

    Parameters
    ----------
    kernel : Kernel
        A kernel whose fragments can be listed, or a sum of such kernels and linear kernels of vectors.
    fragments : list of ConstTree
        The fragments.
    owners : ndarray of int, (n_fragments,)
        For each fragment, the index of its tree kernel in the sum of kernels; in ascending order.
    widths : ndarray of int, (n_vector_kernels,)
        The number of columns of each vector kernel.
    """

    def __init__(
        self, kernel: Kernel, fragments: list[ConstTree], owners: Integers, widths: Integers
    ) -> None:
        self.terms = list_terms(kernel)
        self.vector_terms = list_vector_terms(kernel)
        self._widths = widths.tolist()
        bounds = np.searchsorted(owners, np.arange(len(self.terms) + 1)).tolist()
        self._columns = [slice(begin, end) for begin, end in pairwise(bounds)]
        self._counters = [
            FragmentCounter(term.kernel, fragments[columns])
            for term, columns in zip(self.terms, self._columns, strict=True)
        ]
        owned = [(self.terms[owner], str(tree)) for owner, tree in zip(owners, fragments, strict=True)]
        owned += [
            (term, f"column {place}")
            for term, width in zip(self.vector_terms, self._widths, strict=True)
            for place in range(width)
        ]
        self.parts: list[Key | None] = [term.part for term, _ in owned]
        self.texts = [text for _, text in owned]
        self.names = self.texts
        if len(self.terms) + len(self.vector_terms) > 1:
            numbers = {id(term): n for n, term in enumerate([*self.terms, *self.vector_terms])}
            self.names = [f"{numbers[id(term)]}: {text}" for term, text in owned]

    def transform(self, examples: Any) -> csr_matrix:  # noqa: ANN401
        """Return the features of examples, (n_examples, n_features)."""
        found = [
            place_rows(diags(scales) @ counter.transform(trees), rows, count_examples(examples))
            for counter, rows, trees, scales in self._find_trees(examples)
        ]
        vectors = zip(self.vector_terms, self._widths, strict=True)
        found += [term.find_columns(examples, width) for term, width in vectors]
        return found[0] if len(found) == 1 else hstack(found, format="csr")

    def multiply(self, examples: Any, factors: FloatArray) -> FloatArray:  # noqa: ANN401
        """Compute ``transform(examples) @ factors``, (n_examples, n_columns), in a faster way."""
        products = np.zeros((count_examples(examples), factors.shape[1]))
        for columns, found in zip(self._columns, self._find_trees(examples), strict=True):
            counter, rows, trees, scales = found
            products[rows] += scales[:, None] * counter.multiply(trees, factors[columns])
        begin = self._columns[-1].stop
        for term, width in zip(self.vector_terms, self._widths, strict=True):
            products += term.find_columns(examples, width) @ factors[begin : begin + width]
            begin += width
        return products

    def _find_trees(self, examples: Any) -> Iterator[tuple[FragmentCounter, Integers, Any, FloatArray]]:  # noqa: ANN401
        """Yield the counter of each tree kernel, and the rows, trees and scales of the examples compared."""
        for term, counter in zip(self.terms, self._counters, strict=True):
            rows, trees = term.find_parts(examples)
            yield counter, rows, trees, np.sqrt(term.weight) * term.find_scales(examples)[rows]


class LinearizedTreeClassifier(DecisionClassifier, TransformerMixin, Model, BaseEstimator):  # type: ignore[misc]
    """A linear classifier over the heaviest fragments of a `TreeKernelClassifier`.

    Prediction time does not depend on the number of support vectors, and the whole model can be read as a
    list of weighted fragments.

    Parameters
    ----------
    machine : TreeKernelClassifier, optional
        The kernel SVM whose fragments are mined. None means ``TreeKernelClassifier()``. Its kernel must be a
        `SubsetTreeKernel`, `SubtreeKernel` or `PartialTreeKernel`, or a sum of these and of linear kernels of
        vectors. The terms of a sum may be normalised and applied to parts of examples.
    n_fragments : int
        Maximum number of fragments from the SVM of each class. The fragments with the largest absolute
        weights in the feature space of the kernel are chosen.
    max_size : int, optional
        Maximum number of nodes in a fragment. In subtrees and subset trees, leaves are not counted.
    max_visits : int
        Maximum number of fragments to visit in the search for the heaviest ones. A larger search stops with a
        warning, and its result may be incomplete.
    C : float
        Regularisation parameter of the linear model: the cost of an example on the wrong side of the margin.
    class_weight : dict or "balanced", optional
        Factor of `C` for each class in the linear model; classes that are not in the dictionary have the
        factor 1. "balanced" means factors that are inversely proportional to the class frequencies.
    refit : bool
        Train a linear support vector machine on the fragments. If False, fragments keep their weights from
        the kernel SVM; if all fragments are kept, the decision values are the same as in the kernel SVM.
    prefit : bool
        Use `machine` as it is; it must be fitted. If False, train a copy of `machine` on the same examples.
    random_state : int, Generator, RandomState or None
        Seed for the order of the examples in the training of the linear model.
        With None, results differ between calls.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The classes, in ascending order.
    fragments_ : list of str
        The fragments in brackets; leaves are words, or nodes that are not expanded.
    fragment_trees_ : list of ConstTree
        The same fragments as trees.
    fragment_terms_ : ndarray of int, (n_fragments,)
        For each fragment, the index of its tree kernel in the sum of kernels.
    n_columns_ : ndarray of int, (n_vector_kernels,)
        The number of columns of each vector kernel in that sum. These columns follow the fragments.
    coef_ : ndarray of float, (n_classes or 1, n_features)
        Weights of the features for each class. With two classes, there is one row, for the second class.
    intercept_ : ndarray of float, (n_classes or 1,)
        Intercept of each class. With two classes, there is one, for the second class.
    kernel_ : Kernel
        The kernel of the SVM whose fragments were mined.
    machine_ : TreeKernelClassifier
        The SVM whose fragments were mined. It is not saved: a loaded classifier does not have it.

    See Also
    --------
    TreeKernelClassifier : The kernel SVM; its `explain` lists the fragments that contribute to a decision.

    Examples
    --------
    >>> from treewright import LinearizedTreeClassifier
    >>> trees = ["(S (NP Mary) (VP sleeps))", "(S (NP he) (VP eats))", "(Q (WH who) (VP sleeps))"]
    >>> classifier = LinearizedTreeClassifier().fit(trees, ["statement", "statement", "question"])
    >>> classifier.predict(["(Q (WH who) (VP eats))"]).tolist()
    ['question']
    >>> "(Q WH VP)" in classifier.fragments_
    True
    """

    fields = saved(
        machine=Unfitted(TreeKernelClassifier, optional=True),
        class_weight=CLASS_WEIGHT,
        classes_=Classes(),
        kernel_=KernelField(),
        fragment_trees_=EXAMPLES,
        fragment_terms_=Array("i"),
        n_columns_=Array("i"),
        coef_=Array("f", 2),
        intercept_=Array("f"),
    )

    def __init__(
        self,
        machine: TreeKernelClassifier | None = None,
        *,
        n_fragments: int = 10_000,
        max_size: int | None = None,
        max_visits: int = MAX_VISITS,
        C: float = 1.0,  # noqa: N803
        class_weight: ClassWeight = None,
        refit: bool = True,
        prefit: bool = False,
        random_state: RandomState = 0,
        n_jobs: int = 1,
    ) -> None:
        self.machine = machine
        self.n_fragments = n_fragments
        self.max_size = max_size
        self.max_visits = max_visits
        self.C = C
        self.class_weight = class_weight
        self.refit = refit
        self.prefit = prefit
        self.random_state = random_state
        self.n_jobs = n_jobs

    @seeded
    @one_blas_thread
    def fit(
        self,
        trees: Any,  # noqa: ANN401
        labels: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train a kernel SVM unless `prefit` is True, mine its fragments, and train a linear model on them.

        Parameters
        ----------
        trees : iterable
            Trees or other examples that the kernel compares.
        labels : array, (n_examples,)
            Labels of at least two classes.
        sample_weight : array of float, (n_examples,), optional
            Factor of `C` for each example, in the kernel SVM and in the linear model.
        checkpoint : path, optional
            Folder that stores the SVM of each class. If it exists, training resumes from it, with the same
            result as without an interruption.
        """
        self._check()
        examples, given, weights = check_input(trees, labels, sample_weight)
        self.classes_, numbers = check_labels(given, weights)
        check_class_weight(self.class_weight, self.classes_)
        self.machine_ = self._train_machine(examples, given, weights, checkpoint)
        self.kernel_ = self.machine_.kernel_
        self._mine()
        report(f"{len(self.fragments_)} fragments")
        if not self._space.names:
            raise InputError("the kernel SVM has no fragments; expected at least one fragment")
        if self.refit:
            model = LinearSVC(
                C=self.C, class_weight=self._weight_by_number(), random_state=self.random_state, dual=True
            )
            model.fit(self._count(examples), numbers, sample_weight=weights)
            self.coef_ = np.atleast_2d(model.coef_)
            self.intercept_ = np.atleast_1d(model.intercept_)
        else:
            rows = self._count(self.machine_.support_examples_)
            self.coef_ = np.asarray(rows.T @ self.machine_.dual_coef_.T, dtype=np.float64).T.copy()
            self.intercept_ = self.machine_.intercept_.copy()
        return self

    def _check(self) -> None:
        self._limits().check()
        check_number("C", self.C, low=LEAST, high=MOST)
        check_choice("refit", self.refit, (False, True))
        check_choice("prefit", self.prefit, (False, True))
        count_jobs(self.n_jobs)
        if self.machine is not None and not isinstance(self.machine, TreeKernelClassifier):
            raise InputError(f"machine is {self.machine!r}; expected a TreeKernelClassifier or None")
        if self.machine is None and self.prefit:
            raise InputError("machine is None; expected a fitted TreeKernelClassifier for prefit=True")
        kernel = make_kernel(self.machine.kernel if self.machine else None)
        list_terms(kernel)
        list_vector_terms(kernel)

    def _limits(self) -> SearchLimits:
        return SearchLimits(self.n_fragments, self.max_size, self.max_visits)

    def _weight_by_number(self) -> ClassWeight:
        """Return the class weights by class index."""
        if not isinstance(self.class_weight, dict):
            return self.class_weight
        return {find_class(self.classes_, label): weight for label, weight in self.class_weight.items()}

    def _train_machine(
        self,
        examples: Any,  # noqa: ANN401
        labels: npt.NDArray[Any],
        weights: FloatArray,
        checkpoint: str | os.PathLike[str] | None,
    ) -> TreeKernelClassifier:
        if self.machine is not None and self.prefit:
            check_is_fitted(self.machine)
            return self.machine
        machine: TreeKernelClassifier = clone(self.machine) if self.machine else TreeKernelClassifier()
        return machine.fit(examples, labels, weights, checkpoint=checkpoint)

    def _mine(self) -> None:
        """Find the heaviest fragments of the SVMs of all classes, without duplicates."""
        machine = self.machine_
        examples = machine.support_examples_
        found = [
            self._mine_term(term, examples, machine.dual_coef_) if len(machine.support_) else []
            for term in list_terms(machine.kernel_)
        ]
        fragments: list[ConstTree] = []
        owners: list[int] = []
        for number, heaviest in enumerate(self._choose(found)):
            fragments += heaviest
            owners += [number] * len(heaviest)
        self.fragment_trees_ = fragments
        self.fragment_terms_ = np.array(owners, dtype=np.int64)
        widths = [term.find_columns(examples).shape[1] for term in list_vector_terms(machine.kernel_)]
        self.n_columns_ = np.array(widths, dtype=np.int64)
        self._set_fragments()

    def _mine_term(
        self,
        term: Term,
        examples: Any,  # noqa: ANN401
        dual_coef: FloatArray,
    ) -> list[list[tuple[ConstTree, float]]]:
        """Return the heaviest fragments of a tree kernel for each class, with their weights."""
        rows, trees = term.find_parts(examples)
        if not len(rows):
            return [[] for _ in dual_coef]
        support = Support(term.kernel, trees)
        scales = np.sqrt(term.weight) * support.scales * term.find_scales(examples)[rows]

        def mine_class(coef: FloatArray) -> list[tuple[ConstTree, float]]:
            # A coordinate has the square root of a fragment's weight; the other factor is in the example's
            # coordinate.
            measures = Measures(support.weigh(coef[rows] * scales), np.empty(0))
            return support.find_heaviest(measures, 0.5, self._limits())

        return map_jobs(
            mine_class, list(dual_coef), n_jobs=self.n_jobs, what="heaviest fragments", unit="classes"
        )

    def _choose(self, found: list[list[list[tuple[ConstTree, float]]]]) -> list[list[ConstTree]]:
        """Return the fragments of each term that are among the heaviest of all terms for some class."""
        chosen: list[dict[ConstTree, None]] = [{} for _ in found]
        for by_term in zip(*found, strict=True):
            listed = [(number, *each) for number, heaviest in enumerate(by_term) for each in heaviest]
            listed.sort(key=lambda each: -abs(each[2]))
            for number, fragment, _ in listed[: self.n_fragments]:
                chosen[number][fragment] = None
        return [list(each) for each in chosen]

    def _set_fragments(self) -> None:
        self.fragments_ = [str(fragment) for fragment in self.fragment_trees_]
        self._space = FragmentSpace(self.kernel_, self.fragment_trees_, self.fragment_terms_, self.n_columns_)

    def transform(self, trees: Any) -> Any:  # noqa: ANN401
        """Return the counts of all fragments in trees, scaled as in the feature space of the kernel.

        Parameters
        ----------
        trees : iterable
            Trees or other examples that the kernel compares.

        Returns
        -------
        csr_matrix of float, (n_examples, n_features)
            The scaled counts. The columns of vector kernels follow the fragments. After
            ``set_output(transform="pandas")``, a data frame with sparse columns.
        """
        check_is_fitted(self, "fragments_")
        return in_set_output(self, self._count(trees), trees)

    def _count(self, trees: Any) -> csr_matrix:  # noqa: ANN401
        found = self._map(self._space.transform, trees)
        return vstack(found, format="csr") if found else csr_matrix((0, len(self._space.names)))

    def _map(self, function: Callable[[Any], Result], trees: Any) -> list[Result]:  # noqa: ANN401
        """Apply a function to trees, batch by batch."""
        examples = check_examples(trees)
        n_examples = count_examples(examples)
        size = max(1, min(TREES_AT_A_TIME, -(-n_examples // count_jobs(self.n_jobs))))
        batches = [slice(begin, begin + size) for begin in range(0, n_examples, size)]
        return map_jobs(lambda batch: function(take_examples(examples, batch)), batches, n_jobs=self.n_jobs)

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[Any]:
        """Return the names of the columns: fragments, prefixed with the index of their term in a sum.

        Parameters
        ----------
        input_features : object
            Ignored; present for compatibility with scikit-learn.

        Returns
        -------
        ndarray of str, (n_features,)
            Fragments in brackets, followed by the columns of vector kernels.
        """
        check_is_fitted(self, "fragments_")
        return np.array(self._space.names, dtype=object)

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
        check_is_fitted(self)
        products = self._map(lambda batch: self._space.multiply(batch, self.coef_.T), trees)
        decisions: FloatArray = np.concatenate([np.empty((0, len(self.coef_))), *products]) + self.intercept_
        return decisions[:, 0] if len(self.classes_) == 2 else decisions

    def explain(self, tree: Any, n: int = 10, *, label: Any = None) -> list[WeighedFragment]:  # noqa: ANN401
        """Return the fragments of a tree that contribute most to its decision value.

        The contributions of all fragments and the intercept add up to the decision value of the class. With
        two classes, their decision values differ only in sign.

        Parameters
        ----------
        tree : tree of any kind, or example with several parts, that the kernel accepts
            The tree or example to explain.
        n : int
            Maximum number of fragments; fragments that contribute nothing are omitted.
        label : label, optional
            The class to explain (default: the predicted class).

        Returns
        -------
        list of WeighedFragment
            The fragments and the columns of vectors, largest absolute weight first.
        """
        check_is_fitted(self)
        check_integer("n", n, minimum=1)
        coef = self._class_coef(self.coef_, self.predict([tree])[0] if label is None else label)
        row = self._count([tree])
        weights = row.data * coef[row.indices]
        order = np.lexsort((row.indices, -np.abs(weights)))
        chosen = [place for place in order[:n].tolist() if weights[place] != 0]
        return [
            WeighedFragment(self._space.texts[column], float(weights[place]), self._space.parts[column])
            for place in chosen
            for column in [row.indices[place]]
        ]

    def check_fitted_state(self) -> None:
        """Check that there is a weight for each fragment."""
        n_machines = 1 if len(self.classes_) == 2 else len(self.classes_)
        trees, owners, widths = self.fragment_trees_, self.fragment_terms_, self.n_columns_
        n_terms, n_vectors = len(list_terms(self.kernel_)), len(list_vector_terms(self.kernel_))
        is_listed = isinstance(trees, list) and all(isinstance(tree, ConstTree) for tree in trees)
        expect(is_listed and is_within(owners, n_terms), "fragments that are trees")
        expect(len(owners) == len(trees) and (np.diff(owners) >= 0).all(), "a kernel for each fragment")
        expect(len(set(zip(owners.tolist(), trees, strict=True))) == len(trees), "distinct fragments")
        expect(len(widths) == n_vectors and is_within(widths, 1 << 40), "numbers of columns")
        n_features = len(trees) + int(widths.sum())
        expect(self.coef_.shape == (n_machines, n_features), "a weight for each class and fragment")
        expect(len(self.intercept_) == n_machines, "an intercept for each class")

    def restore(self) -> None:
        """Rebuild the objects that count fragments."""
        self._set_fragments()

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
