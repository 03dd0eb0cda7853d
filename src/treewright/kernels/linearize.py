"""Linear models over the heaviest fragments of a machine over a tree kernel.

A machine has to compare a tree with all of its support vectors. Its vector in the space of fragments has few
coordinates that matter, though (Pighin & Moschitti 2009, 2010): these are made features of their own, and a
linear model of them is trained again.
"""

import os
from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, vstack
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from treewright._typing import FloatArray
from treewright._validate import check_choice, check_integer, check_number
from treewright.data.consttree import ConstTree
from treewright.errors import InputError
from treewright.kernels.examples import (
    EXAMPLES,
    KernelField,
    check_examples,
    count_examples,
    take_examples,
)
from treewright.kernels.fragments import (
    MAX_VISITS,
    FragmentCounter,
    SearchLimits,
    Support,
    WeighedFragment,
    check_kernel,
)
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
from treewright.model import Array, Classes, Model, Unfitted, expect, saved
from treewright.native.kernels.fragments import Measures
from treewright.progress import report
from treewright.scale import map_jobs, one_blas_thread

Result = TypeVar("Result")
TREES_AT_A_TIME = 4096
"""Trees that a thread turns into rows before it takes others."""


class LinearizedTreeClassifier(DecisionClassifier, TransformerMixin, Model, BaseEstimator):  # type: ignore[misc]
    """A linear classifier over the heaviest fragments of a `TreeKernelClassifier`.

    The time of a prediction does not depend on the number of support vectors, and all that the classifier
    knows can be read.

    Parameters
    ----------
    machine : TreeKernelClassifier, optional
        The machine whose fragments are mined, with a `SubsetTreeKernel` or a `SubtreeKernel`. None is
        ``TreeKernelClassifier()``.
    n_fragments : int
        The most fragments that are taken from the machine of each class: those of the largest absolute
        weight in the space of the kernel.
    max_size : int, optional
        The most nodes, leaves not counted, of a fragment.
    max_visits : int
        The fragments after which the search in a machine stops, with a warning. Until then it is exact.
    C : float
        The cost of an example on the wrong side of the margin, in the linear model.
    class_weight : dict or "balanced", optional
        Factors of the cost, as those of `sklearn.svm.LinearSVC`.
    prefit : bool
        Whether `machine` is trained already. If it is not, a copy is trained, on the same examples.
    random_state : int
        Decides in which order the linear model sees the examples.
    n_jobs : int
        Threads.

    Attributes
    ----------
    classes_ : ndarray
    fragments_ : list of str
        In brackets; leaves are words, or nodes that are not expanded.
    fragment_trees_ : list of ConstTree
        The same fragments as trees.
    coef_ : ndarray of float, (n_classes or 1, n_fragments)
    intercept_ : ndarray of float, (n_classes or 1,)
    kernel_ : TreeKernel
    machine_ : TreeKernelClassifier
        Which was mined; a classifier that was loaded has none.

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
        prefit: bool = False,
        random_state: int = 0,
        n_jobs: int = 1,
    ) -> None:
        self.machine = machine
        self.n_fragments = n_fragments
        self.max_size = max_size
        self.max_visits = max_visits
        self.C = C
        self.class_weight = class_weight
        self.prefit = prefit
        self.random_state = random_state
        self.n_jobs = n_jobs

    @one_blas_thread
    def fit(
        self,
        trees: Any,  # noqa: ANN401
        labels: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train a machine, unless there is one, mine its fragments, and train a linear model of them.

        Parameters
        ----------
        trees : sequence
            Whatever the kernel takes.
        labels : array, (n_examples,)
        sample_weight : array of float, (n_examples,), optional
            Factors of the cost of each example, in the machine and in the linear model.
        checkpoint : path, optional
            A folder in which the machine of each class is kept. If it exists, training goes on from it and
            ends as if it had not been interrupted.
        """
        self._check()
        examples, given, weights = check_input(trees, labels, sample_weight)
        self.classes_, numbers = check_labels(given, weights)
        check_class_weight(self.class_weight, self.classes_)
        self.machine_ = self._train_machine(examples, given, weights, checkpoint)
        self.kernel_ = check_kernel(self.machine_.kernel_)
        self._set_fragments(self._mine())
        report(f"{len(self.fragments_)} fragments")
        if not self.fragments_:
            raise InputError("the machine has no fragments; expected one with support vectors")
        model = LinearSVC(
            C=self.C, class_weight=self._weight_by_number(), random_state=self.random_state, dual=True
        )
        model.fit(self.transform(examples), numbers, sample_weight=weights)
        self.coef_ = np.atleast_2d(model.coef_)
        self.intercept_ = np.atleast_1d(model.intercept_)
        return self

    def _check(self) -> None:
        self._limits().check()
        check_number("C", self.C, low=LEAST, high=MOST)
        check_choice("prefit", self.prefit, (False, True))
        check_integer("random_state", self.random_state)
        check_integer("n_jobs", self.n_jobs, minimum=1)
        if self.machine is not None and not isinstance(self.machine, TreeKernelClassifier):
            raise InputError(f"machine is {self.machine!r}; expected a TreeKernelClassifier or None")
        if self.machine is None and self.prefit:
            raise InputError("machine is None; expected a fitted TreeKernelClassifier, as prefit is True")
        check_kernel(make_kernel(self.machine.kernel if self.machine else None))

    def _limits(self) -> SearchLimits:
        return SearchLimits(self.n_fragments, self.max_size, self.max_visits)

    def _weight_by_number(self) -> ClassWeight:
        """Return the weights of classes, by their numbers."""
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

    def _mine(self) -> list[ConstTree]:
        """Return the heaviest fragments of the machine, each once."""
        machine = self.machine_
        if not len(machine.support_):
            return []
        support = Support(check_kernel(machine.kernel_), machine.support_examples_)
        # A coordinate of the machine has half of the decay; the other half is in what it is multiplied with.
        decay = float(np.sqrt(self.kernel_.decay))

        def mine_class(coef: FloatArray) -> list[ConstTree]:
            measures = Measures(support.weigh(coef * support.scales), np.empty(0))
            return [fragment for fragment, _ in support.find_heaviest(measures, decay, self._limits())]

        found = map_jobs(
            mine_class,
            list(machine.dual_coef_),
            n_jobs=self.n_jobs,
            what="heaviest fragments",
            unit="classes",
        )
        return list(dict.fromkeys(fragment for fragments in found for fragment in fragments))

    def _set_fragments(self, fragments: list[ConstTree]) -> None:
        self.fragment_trees_ = fragments
        self.fragments_ = [str(fragment) for fragment in fragments]
        self._counter = FragmentCounter(self.kernel_, fragments)

    def transform(self, trees: Any) -> csr_matrix:  # noqa: ANN401
        """Return how often trees have each fragment, scaled as in the space of the kernel.

        Returns
        -------
        csr_matrix of float, (n_examples, n_fragments)
        """
        check_is_fitted(self, "fragments_")
        found = self._map(self._counter.transform, trees)
        return vstack(found, format="csr") if found else csr_matrix((0, len(self.fragments_)))

    def _map(self, function: Callable[[Any], Result], trees: Any) -> list[Result]:  # noqa: ANN401
        """Return what a function makes of trees, batch by batch."""
        examples = check_examples(trees)
        n_examples = count_examples(examples)
        size = max(1, min(TREES_AT_A_TIME, -(-n_examples // self.n_jobs)))
        batches = [slice(begin, begin + size) for begin in range(0, n_examples, size)]
        return map_jobs(lambda batch: function(take_examples(examples, batch)), batches, n_jobs=self.n_jobs)

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[Any]:
        """Return the fragments, as the names of the columns of `transform`."""
        check_is_fitted(self, "fragments_")
        return np.array(self.fragments_, dtype=object)

    def decision_function(self, trees: Any) -> FloatArray:  # noqa: ANN401
        """Return the decision value of each class, (n_examples, n_classes), or of the second of two."""
        check_is_fitted(self)
        products = self._map(lambda batch: self._counter.multiply(batch, self.coef_.T), trees)
        decisions: FloatArray = np.concatenate([np.empty((0, len(self.coef_))), *products]) + self.intercept_
        return decisions[:, 0] if len(self.classes_) == 2 else decisions

    def explain(self, tree: Any, n: int = 10, *, label: Any = None) -> list[WeighedFragment]:  # noqa: ANN401
        """Return the fragments of a tree that add most to its decision value, or take most from it.

        All of them, and the intercept, add up to the decision value of the class; of the first of two
        classes, this is minus that of the second.

        Parameters
        ----------
        tree : tree of any kind that the kernel takes
        n : int
            Fragments at the most; those that add nothing are left out.
        label : label, optional
            The class; without it, the one that is predicted.

        Returns
        -------
        list of WeighedFragment
            The largest absolute weight first.
        """
        check_is_fitted(self)
        check_integer("n", n, minimum=1)
        coef = self._class_coef(self.coef_, self.predict([tree])[0] if label is None else label)
        row = self.transform([tree])
        weights = row.data * coef[row.indices]
        order = np.lexsort((row.indices, -np.abs(weights)))
        chosen = [place for place in order[:n].tolist() if weights[place] != 0]
        return [
            WeighedFragment(self.fragments_[row.indices[place]], float(weights[place])) for place in chosen
        ]

    def check_fitted_state(self) -> None:
        """Check that there is a weight for each fragment."""
        n_machines = 1 if len(self.classes_) == 2 else len(self.classes_)
        trees = self.fragment_trees_
        is_listed = isinstance(trees, list) and all(isinstance(tree, ConstTree) for tree in trees)
        expect(is_listed and len(set(trees)) == len(trees), "fragments that are trees, each once")
        expect(self.coef_.shape == (n_machines, len(trees)), "a weight for each class and fragment")
        expect(len(self.intercept_) == n_machines, "an intercept for each class")
        check_kernel(self.kernel_)

    def restore(self) -> None:
        """Make what counts fragments again."""
        self._set_fragments(self.fragment_trees_)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
