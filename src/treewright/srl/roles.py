"""RoleClassifier: classification of the semantic roles of arguments (Moschitti 2006, section 4)."""

import os
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.base import BaseEstimator

from treewright._typing import Count, FloatArray, Jobs, Memory, RandomState, Range
from treewright._validate import check_choice, check_integer, check_items, check_params, check_type
from treewright.data.consttree import ConstTree
from treewright.data.svmlight import SparseVector, stack_vectors
from treewright.errors import InputError
from treewright.kernels import compose
from treewright.kernels.base import Kernel
from treewright.kernels.convolution import PartialTreeKernel, SubsetTreeKernel, SubtreeKernel
from treewright.kernels.examples import KernelField
from treewright.kernels.linearize import LinearizedTreeClassifier
from treewright.kernels.machines import TreeKernelClassifier
from treewright.mining.classifier import ConjunctionClassifier
from treewright.model import Model, Submodel, Value, expect, saved, seeded
from treewright.srl.arguments import Argument, argument_trees, merge_adjuncts
from treewright.srl.features import FeatureTable, read_templates
from treewright.srl.linear import LinearMachine, read_names

LINEAR, MINED, FRAGMENTS = "linear", "mined", "fragments"
TREE_KERNELS: dict[str, Kernel] = {
    "st": SubtreeKernel(decay=1.0, normalize=True),
    "sst": SubsetTreeKernel(decay=0.4, normalize=True),
    "pt": PartialTreeKernel(decay=0.8, depth_decay=0.4, normalize=True),
}
"""Tree kernels with the decay factors of the paper."""
RoleKernel: TypeAlias = Literal[
    "linear", "st", "sst", "pt", "linear+st", "linear+sst", "linear+pt",
    "fragments", "linear+fragments", "mined",
]  # fmt: skip
KERNELS = get_args(RoleKernel)
SUMS = tuple(f"{LINEAR}+{name}" for name in TREE_KERNELS)
MACHINES = tuple(each for each in KERNELS if each not in (LINEAR, MINED))
"""Names of the kernels for which support vector machines are trained."""
COSTS = {LINEAR: 0.1, f"{LINEAR}+{FRAGMENTS}": 0.1}
"""C of linear models over unnormalised features, tuned on the EWT dev set; other models use `TREE_COST`."""
TREE_COST = 5.0


class RoleReason(NamedTuple):
    """A feature or tree fragment of an argument, with its contribution to the score of a role.

    Attributes
    ----------
    name : str
        The feature or fragment.
    weight : float
        Its contribution to the score.

    See Also
    --------
    RoleClassifier.explain : Returns these contributions.

    Examples
    --------
    >>> import treewright as tw
    >>> tree = tw.ConstTree.parse("(S (NP (NNP Mary)) (VP (VBD brought) (NP (DT a) (NN cat))))")
    >>> arguments = [tw.Argument(tree, 1, 2, "ARG0"), tw.Argument(tree, 1, 9, "ARG1")]
    >>> classifier = tw.RoleClassifier(kernel="linear", features="position").fit(arguments)
    >>> classifier.explain(arguments[0], n=1)[0].name
    'position|before'
    """

    name: str
    weight: float


class RoleClassifier(Model, BaseEstimator):  # type: ignore[misc]
    """One-vs-rest classifier of the semantic roles of arguments, with linear features or tree kernels.

    Parameters
    ----------
    kernel : str or Kernel
        Kernel for comparing arguments. ``"linear"`` uses hand-crafted features. ``"st"``, ``"sst"`` and
        ``"pt"`` are subtree, subset tree and partial tree kernels of predicate-argument trees.
        ``"linear+st"``, ``"linear+sst"`` and ``"linear+pt"`` are sums of the linear kernel and a tree kernel,
        each normalised. ``"fragments"`` is a linear model over the heaviest fragments of an SVM with the
        subset tree kernel, and ``"linear+fragments"`` adds the hand-crafted features. ``"mined"`` uses mined
        conjunctions of the hand-crafted features. A `Kernel` object is applied to the predicate-argument
        trees.
    features : {"standard", "extended"} or str
        Feature set of the linear part ("standard", "extended") or templates. `treewright.srl.features`
        describes the templates.
    weight : float
        Weight of the linear part in a sum of kernels.
    C : float, optional
        Inverse of the regularisation strength (default: depends on the kernel).
    adjuncts : {"separate", "merged"}
        Keep the roles of adjuncts (such as ARGM-TMP) separate, or merge them.
    n_fragments : int
        Maximum number of fragments per role, for linear models over fragments.
    degree : int
        Maximum number of features in a mined conjunction.
    threshold : float or "auto"
        Minimum absolute gradient of a mined conjunction; "auto" chooses it automatically.
    tol : float
        Tolerance of the stopping criterion of the SVM.
    cache_memory : int
        Size of the kernel cache in bytes.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    n_jobs : int
        Number of threads (-1: all processors); it does not change the results.

    Attributes
    ----------
    classes_ : list of str
        The roles.
    table_ : FeatureTable or None
        The linear features, if there are any.
    fragments_ : LinearizedTreeClassifier or None
        The model whose tree fragments are features, if there is one.
    model_ : LinearMachine, TreeKernelClassifier, ConjunctionClassifier or None
        The classifier; None if there is only one role.

    See Also
    --------
    RoleLabeler : Finds predicates and arguments and labels their roles.
    find_arguments : Extracts training arguments from a treebank.
    TreeKernelClassifier : SVM with tree kernels for any trees.

    Examples
    --------
    >>> import treewright as tw
    >>> tree = tw.ConstTree.parse("(S (NP (NNP Mary)) (VP (VBD brought) (NP (DT a) (NN cat))))")
    >>> arguments = [tw.Argument(tree, 1, 2, "ARG0"), tw.Argument(tree, 1, 9, "ARG1")]
    >>> tw.RoleClassifier(kernel="sst").fit(arguments).predict(arguments)
    ['ARG0', 'ARG1']
    """

    EFFECTIVE_IF: ClassVar = {
        "weight": {"kernel": SUMS},
        "C": {"kernel": tuple(each for each in KERNELS if each != MINED)},
        "n_fragments": {"kernel": (FRAGMENTS, f"{LINEAR}+{FRAGMENTS}")},
        "degree": {"kernel": (MINED,)},
        "threshold": {"kernel": (MINED,)},
        "tol": {"kernel": MACHINES},
        "cache_memory": {"kernel": MACHINES},
    }
    fields = saved(
        kernel=KernelField(),
        classes_=Value(decode=read_names),
        table_=Submodel(FeatureTable, optional=True),
        fragments_=Submodel(LinearizedTreeClassifier, optional=True),
        model_=Submodel(LinearMachine, TreeKernelClassifier, ConjunctionClassifier, optional=True),
    )

    def __init__(
        self,
        kernel: RoleKernel | Kernel = "linear+sst",
        *,
        features: Literal["standard", "extended"] | str = "extended",
        weight: Annotated[float, Range(1e-6, 1e6)] = 2.0,
        C: Annotated[float, Range(1e-9, 1e9)] | None = None,  # noqa: N803
        adjuncts: Literal["separate", "merged"] = "separate",
        n_fragments: Count = 10_000,
        degree: Count = 2,
        threshold: Annotated[float, Range(0, 1e12)] | Literal["auto"] = 10.0,
        tol: Annotated[float, Range(1e-12, 1)] = 1e-2,
        cache_memory: Memory = 4 << 30,
        random_state: RandomState = 0,
        n_jobs: Jobs = 1,
    ) -> None:
        self.kernel = kernel
        self.features = features
        self.weight = weight
        self.C = C
        self.adjuncts = adjuncts
        self.n_fragments = n_fragments
        self.degree = degree
        self.threshold = threshold
        self.tol = tol
        self.cache_memory = cache_memory
        self.random_state = random_state
        self.n_jobs = n_jobs

    @seeded
    def fit(
        self,
        arguments: Sequence[Argument],
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on arguments with known roles.

        Parameters
        ----------
        arguments : sequence of Argument
            Training arguments. Training is faster if the arguments of a tree are adjacent.
        checkpoint : path, optional
            Folder that stores each SVM or each mining round. If it exists, training resumes from it, with
            the same result as without an interruption.
        """
        self.check()
        check_type("arguments", arguments, Iterable, "a list of Argument")
        arguments = list(arguments)
        labels = self._labels(arguments)
        self.classes_ = sorted(set(labels))
        self.table_: FeatureTable | None = None
        self.fragments_: LinearizedTreeClassifier | None = None
        self.model_: Any = None
        if len(self.classes_) == 1:
            return self
        examples = self._learn_examples(arguments, labels, checkpoint)
        self.model_ = self._make_model()
        if isinstance(self.model_, LinearMachine):
            self.model_.fit(examples, labels)
        else:
            self.model_.fit(examples, labels, checkpoint=checkpoint)
        return self

    def _labels(self, arguments: Sequence[Argument]) -> list[str]:
        check_items("arguments", arguments, Argument, "Argument")
        if not arguments:
            raise InputError("no arguments; expected at least one")
        labels = []
        for number, argument in enumerate(arguments):
            if argument.label is None:
                raise InputError(f"argument {number} has no label; expected its role")
            labels.append(merge_adjuncts(argument.label) if self.adjuncts == "merged" else argument.label)
        return labels

    @property
    def _parts(self) -> tuple[bool, str | Kernel | None]:
        """Whether there are linear features, and the tree kernel, if any."""
        if not isinstance(self.kernel, str):
            return False, self.kernel
        if self.kernel in (LINEAR, MINED):
            return True, None
        is_linear = self.kernel.startswith(LINEAR)
        return is_linear, self.kernel.removeprefix(f"{LINEAR}+")

    def _cost(self) -> float:
        if self.C is not None:
            return self.C
        return COSTS.get(self.kernel, TREE_COST) if isinstance(self.kernel, str) else TREE_COST

    def _tree_kernel(self) -> Kernel:
        name = self._parts[1]
        if isinstance(name, Kernel):
            return name
        return TREE_KERNELS["sst" if name == FRAGMENTS else str(name)]

    def _make_machine(self, kernel: Kernel) -> TreeKernelClassifier:
        return TreeKernelClassifier(
            kernel=kernel,
            C=TREE_COST if self._parts[1] == FRAGMENTS else self._cost(),
            tol=self.tol,
            cache_memory=self.cache_memory,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def _make_model(self) -> Any:  # noqa: ANN401
        is_linear, other = self._parts
        if self.kernel == MINED:
            return ConjunctionClassifier(
                degree=self.degree,
                threshold=self.threshold,
                final_estimator=None,
                n_jobs=self.n_jobs,
                random_state=self.random_state,
            )
        if other in (None, FRAGMENTS):
            return LinearMachine(C=self._cost(), random_state=self.random_state)
        if not is_linear:
            return self._make_machine(self._tree_kernel())
        parts = [
            compose.Part(self._tree_kernel(), 0),
            compose.Part(compose.VectorKernel(normalize=True), 1),
        ]
        return self._make_machine(compose.Sum(parts, weights=[1.0, self.weight]))

    def _learn_examples(
        self,
        arguments: Sequence[Argument],
        labels: list[str],
        checkpoint: str | os.PathLike[str] | None,
    ) -> Any:  # noqa: ANN401
        """Return arguments in the model's input format, after collecting their features."""
        is_linear, other = self._parts
        rows = None
        if is_linear:
            self.table_ = FeatureTable(self.features)
            rows = self.table_.fit_transform(arguments)
        trees = argument_trees(arguments) if other is not None else []
        if other == FRAGMENTS:
            self.fragments_ = LinearizedTreeClassifier(
                self._make_machine(self._tree_kernel()), n_fragments=self.n_fragments, n_jobs=self.n_jobs
            ).fit(trees, labels, checkpoint=checkpoint)
        return self._join(rows, trees)

    def _encode(self, arguments: Sequence[Argument]) -> Any:  # noqa: ANN401
        rows = self.table_.transform(arguments) if self.table_ is not None else None
        return self._join(rows, argument_trees(arguments) if self._parts[1] is not None else [])

    def _join(self, rows: csr_matrix | None, trees: list[ConstTree]) -> Any:  # noqa: ANN401
        if self.fragments_ is not None:
            counts = self.fragments_.transform(trees)
            return counts if rows is None else csr_matrix(hstack([rows, counts]))
        if not trees:
            return rows
        return trees if rows is None else list(zip(trees, _split(rows), strict=True))

    def predict(self, arguments: Sequence[Argument]) -> list[str]:
        """Return the role of each argument.

        Parameters
        ----------
        arguments : sequence of Argument
            Arguments to classify; their labels are ignored.

        Returns
        -------
        list of str
            The predicted roles.
        """
        best = self.decision_function(arguments).argmax(axis=1)
        return [self.classes_[number] for number in best.tolist()]

    def decision_function(self, arguments: Sequence[Argument]) -> FloatArray:
        """Return the score of each argument for each of `classes_`.

        Parameters
        ----------
        arguments : sequence of Argument
            Arguments to classify; their labels are ignored.

        Returns
        -------
        ndarray of float, (n_arguments, n_classes)
            The scores, in the order of `classes_`; all 0 if there is only one role.
        """
        self.check_is_fitted()
        check_items("arguments", arguments, Argument, "Argument")
        if self.model_ is None or not arguments:
            return np.zeros((len(arguments), len(self.classes_)))
        model = self.model_
        if "n_jobs" in model.get_params(deep=False):
            model = model.using(n_jobs=self.n_jobs)
        values = np.asarray(model.decision_function(self._encode(arguments)), dtype=np.float64)
        return np.stack([-values, values], axis=1) if values.ndim == 1 else values

    def score(self, arguments: Sequence[Argument]) -> float:
        """Return the accuracy: the fraction of arguments with the correct role.

        Parameters
        ----------
        arguments : sequence of Argument
            Arguments with gold roles. If `adjuncts` is "merged", the roles of adjuncts are merged first.

        Returns
        -------
        float
            The accuracy, between 0 and 1.
        """
        labels = self._labels(arguments)
        pairs = zip(labels, self.predict(arguments), strict=True)
        return sum(label == found for label, found in pairs) / len(labels)

    def explain(self, argument: Argument, n: int = 10, *, label: str | None = None) -> list[RoleReason]:
        """Return the features and fragments with the largest absolute contributions to a role's score.

        Parameters
        ----------
        argument : Argument
            The argument to explain.
        n : int
            Maximum number of contributions.
        label : str, optional
            The role to explain (default: the predicted role).

        Returns
        -------
        list of RoleReason
            The features and fragments with their contributions, largest absolute contribution first.
        """
        self.check_is_fitted()
        check_integer("n", n, minimum=1)
        label = label if label is not None else self.predict([argument])[0]
        check_choice("label", label, tuple(self.classes_))
        if self.model_ is None:
            return []
        if isinstance(self.model_, LinearMachine):
            return self._explain_features(argument, n, label)
        if isinstance(self.model_, ConjunctionClassifier):
            return self._explain_conjunctions(argument, n, label)
        example = self._encode([argument])[0]
        found = self.model_.explain(example, n, label=label)
        reasons = [RoleReason(one.fragment, one.weight) for one in found]
        if self.table_ is not None:
            reasons += self._explain_vector(example[1], label)
        return sorted(reasons, key=lambda reason: -abs(reason.weight))[:n]

    def _explain_conjunctions(self, argument: Argument, n: int, label: str) -> list[RoleReason]:
        assert self.table_ is not None
        model, names, number = self.model_, self.table_.names_, self.classes_.index(label)
        row = set(self._encode([argument]).indices.tolist())
        coef = model.coef_[number] if len(model.coef_) > 1 else model.coef_[0] * (1 if number else -1)
        reasons = [
            RoleReason(" & ".join(names[column] for column in conjunction), float(weight))
            for conjunction, weight in zip(model.conjunctions_, coef, strict=True)
            if weight and row.issuperset(conjunction)
        ]
        return sorted(reasons, key=lambda reason: -abs(reason.weight))[:n]

    def _explain_vector(self, vector: SparseVector, label: str) -> list[RoleReason]:
        """Return the contribution of each linear feature in a sum of kernels."""
        assert self.table_ is not None
        rows = stack_vectors(
            [one for _, one in self.model_.support_examples_], n_columns=len(self.table_.names_)
        )
        coef = self.model_.dual_coef_
        coef = (
            coef[self.classes_.index(label)]
            if len(coef) > 1
            else coef[0] * (1 if label == self.classes_[1] else -1)
        )
        own = len(vector.indices) ** 0.5 if len(vector.indices) else 1.0
        scale = np.sqrt(np.maximum(rows.getnnz(axis=1), 1))
        weights = self.weight / own * (rows.T @ (coef / scale))[vector.indices - 1]
        names = [self.table_.names_[place - 1] for place in vector.indices.tolist()]
        return [RoleReason(name, float(weight)) for name, weight in zip(names, weights, strict=True)]

    def _explain_features(self, argument: Argument, n: int, label: str) -> list[RoleReason]:
        row = self._encode([argument]).tocsr()
        names: list[str] = list(self.table_.names_) if self.table_ is not None else []
        names += self.fragments_.fragments_ if self.fragments_ is not None else []
        weights = self.model_.coef_[row.indices, self.classes_.index(label)] * row.data
        best = np.argsort(-np.abs(weights), kind="stable")[:n]
        return [RoleReason(names[row.indices[at]], float(weights[at])) for at in best.tolist()]

    def check(self) -> None:
        """Validate the parameters."""
        if not isinstance(self.kernel, Kernel):
            check_choice("kernel", self.kernel, KERNELS)
        check_params(self)
        read_templates(self.features)

    def check_fitted_state(self) -> None:
        """Check that the fitted attributes match the kernel."""
        if not isinstance(self.kernel, Kernel):
            check_choice("kernel", self.kernel, KERNELS)
        is_linear, other = self._parts
        has_model = self.model_ is not None
        expect(has_model == (len(self.classes_) > 1), "a model if there are several classes")
        expect((self.table_ is not None) == (has_model and is_linear), "a table of linear features")
        expect((self.fragments_ is not None) == (has_model and other == FRAGMENTS), "fragments of trees")
        if has_model:
            expect(list(self.model_.classes_) == self.classes_, "the same classes in the model")
        n_columns = len(self.table_.names_) if self.table_ is not None else 0
        n_columns += len(self.fragments_.fragments_) if self.fragments_ is not None else 0
        if isinstance(self.model_, LinearMachine):
            expect(len(self.model_.coef_) == n_columns, "a weight for each feature")
        elif isinstance(self.model_, ConjunctionClassifier):
            expect(self.model_.n_features_in_ == n_columns, "conjunctions of known features")


def _split(rows: csr_matrix) -> list[SparseVector]:
    """Return the rows of a matrix as sparse vectors, with columns numbered from 1."""
    bounds = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [
        SparseVector(rows.indices[begin:end].astype(np.int64) + 1, rows.data[begin:end])
        for begin, end in bounds
    ]
