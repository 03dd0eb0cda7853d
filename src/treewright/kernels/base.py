"""The base class of kernels: evaluation, packing, composition, and the scikit-learn interface."""

import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from treewright._typing import FloatArray, Integers
from treewright._validate import check_param_names
from treewright.errors import InputError, quote
from treewright.kernels.inputs import as_collection

if TYPE_CHECKING:
    from treewright.kernels.fragments import WeighedFragment

MAX_VISITS = 10_000_000
"""Maximum number of fragments that a search visits."""
KERNELS: dict[str, type["Kernel"]] = {}
"""Kernel classes by their short names, such as "sst", from all imported modules."""
CLASSES: dict[str, type["Kernel"]] = {}
"""All imported kernel classes by their names."""


class PackedExamples(ABC):
    """Examples packed for evaluation and referred to by index. Created by `Kernel.pack`."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        """Return the kernel values of all pairs of the given examples.

        Parameters
        ----------
        rows_a, rows_b : array of int
            Indices of examples, in any order.

        Returns
        -------
        ndarray of float, (len(rows_a), len(rows_b))
            The kernel value of each pair.
        """

    def strip(self, begin: int, end: int) -> FloatArray:
        """Return the kernel values of examples `begin` to `end` with all examples from `begin` on."""
        return self.block(np.arange(begin, end), np.arange(begin, len(self)))

    @abstractmethod
    def compare(self, examples: Sequence[Any]) -> FloatArray:
        """Return the kernel values of other examples with the packed ones, (len(examples), len(self))."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return the kernel value of each example with itself."""


class Kernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A similarity function of two examples: an inner product in some feature space.

    A kernel can be called with two lists of examples, as in ``SVC(kernel=kernel)``. It is also a transformer:
    it maps examples to their kernel values with the examples it was fitted on.

    Kernels are composed with ``+``, ``*`` and ``**``, and weighted by a positive number with ``*``; see
    `treewright.kernels.compose`.

    A subclass is registered when it is defined, so that models with it can be saved and loaded.

    Attributes
    ----------
    short_name : str, optional
        Name used on the command line and in parameters. Only classes with a short name are in `KERNELS`.
    fragments : {"subtrees", "subset trees", "partial trees"}, optional
        The kind of fragments that the kernel counts, if they can be listed. An inherited value is ignored,
        since a subclass may count other fragments.
    compares_vectors : bool
        Whether the examples are vectors, which have no fragments.
    why_no_fragments : str, optional
        The reason why the fragments of the kernel cannot be listed, as a clause for error messages.
    has_exact_strips : bool
        Whether values are bit-identical no matter which examples are evaluated together.
    """

    short_name: ClassVar[str | None] = None
    fragments: ClassVar[Literal["subtrees", "subset trees", "partial trees"] | None] = None
    compares_vectors: ClassVar[bool] = False
    why_no_fragments: ClassVar[str | None] = None
    has_exact_strips: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401
        super().__init_subclass__(**options)
        known = CLASSES.setdefault(cls.__name__, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            found = f"a kernel in {known.__module__} is already named {cls.__name__}"
            raise TypeError(f"{found}; expected another name")
        CLASSES[cls.__name__] = cls  # defined again, as in a notebook
        if "short_name" in vars(cls) and cls.short_name is not None:
            KERNELS[cls.short_name] = cls

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401
        """Set parameters; ``name__inner`` sets the parameter ``inner`` of the kernel ``name``.

        Parameters
        ----------
        **params : object
            New values of the parameters by name.
        """
        check_param_names(self, params)
        super().set_params(**params)
        return self

    @abstractmethod
    def pack(self, examples: Any) -> PackedExamples:  # noqa: ANN401
        """Pack examples for the evaluation of many pairs.

        Parameters
        ----------
        examples : sequence
            Examples that the kernel compares.
        """

    def __call__(self, examples_a: Any, examples_b: Any = None) -> FloatArray:  # noqa: ANN401
        """Return the kernel values of all pairs.

        Parameters
        ----------
        examples_a, examples_b : iterable
            Examples to compare; a generator is read once. If `examples_b` is omitted, `examples_a` is
            compared with itself.

        Returns
        -------
        ndarray of float, (len(examples_a), len(examples_b))
            The kernel value of each pair.
        """
        if examples_b is None or examples_b is examples_a:
            packed = self.pack(as_collection(examples_a))
            rows = np.arange(len(packed))
            return packed.block(rows, rows)
        return self.pack(as_collection(examples_b)).compare(as_collection(examples_a))

    def fit(self, examples: Any, y: object = None) -> Self:  # noqa: ANN401
        """Store the examples that `transform` compares others with.

        Parameters
        ----------
        examples : iterable
            Examples that the kernel compares. A generator is read once.
        y : object
            Ignored; present for compatibility with scikit-learn.
        """
        self.packed_ = self.pack(as_collection(examples))
        self._n_features_out = len(self.packed_)
        return self

    def transform(self, examples: Any) -> FloatArray:  # noqa: ANN401
        """Return the kernel values of examples with those passed to `fit`.

        Parameters
        ----------
        examples : iterable
            Examples that the kernel compares.

        Returns
        -------
        ndarray of float, (n_examples, n_fitted)
            The kernel value of each pair of an example and a fitted example.
        """
        check_is_fitted(self)
        return self.packed_.compare(as_collection(examples))

    def explain(
        self,
        example_a: Any,  # noqa: ANN401
        example_b: Any,  # noqa: ANN401
        n: int = 10,
        *,
        max_size: int | None = None,
        max_visits: int = MAX_VISITS,
    ) -> "list[WeighedFragment]":
        """Return the fragments that two examples share, and the contribution of each to the kernel value.

        The kernel value is the sum of the contributions of all fragments and vectors; contributions of
        vectors are not listed. Supported by `SubtreeKernel`, `SubsetTreeKernel`, `PartialTreeKernel` and sums
        of these.

        Parameters
        ----------
        example_a, example_b : tree of any kind, or example with several parts, that the kernel accepts
            The trees or examples to compare.
        n : int
            Maximum number of fragments.
        max_size : int, optional
            Maximum number of nodes in a fragment. In subtrees and subset trees, leaves are not counted.
        max_visits : int
            Maximum number of fragments to visit. A larger search stops with a warning, and its result may be
            incomplete.

        Returns
        -------
        list of WeighedFragment
            The fragments, largest weight first.

        Examples
        --------
        >>> from treewright import SubsetTreeKernel
        >>> kernel = SubsetTreeKernel(decay=0.4)
        >>> for found in kernel.explain("(S (NP Mary) (VP sleeps))", "(S (NP Mary) (VP eats))"):
        ...     print(f"{found.weight:.2f} {found.fragment}")
        0.40 (NP Mary)
        0.40 (S NP VP)
        0.16 (S (NP Mary) VP)
        """
        from treewright.kernels.fragments import SearchLimits, explain_pair

        return explain_pair(self, example_a, example_b, SearchLimits(n, max_size, max_visits))

    def __add__(self, other: "Kernel") -> "Kernel":
        from treewright.kernels.compose import add_kernels  # compose is built on this module

        return add_kernels(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: "Kernel | float") -> "Kernel":
        from treewright.kernels.compose import multiply_kernels, scale_kernel

        if isinstance(other, Kernel):
            return multiply_kernels(self, other)
        return scale_kernel(self, other) if isinstance(other, Real) else NotImplemented

    def __rmul__(self, other: float) -> "Kernel":
        return self * other

    def __pow__(self, degree: int) -> "Kernel":
        from treewright.kernels.compose import Power

        return Power(self, degree=degree, offset=0.0)


def check_rows(rows: npt.ArrayLike, n_rows: int) -> Integers:
    """Return row indices as an array; reject indices that are out of range."""
    array = np.asarray(rows)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        found = f"{array.ndim} dimensions of {array.dtype}"
        raise InputError(f"the array of rows has {found}; expected one dimension of integers")
    numbers = array.astype(np.int64)
    outside = numbers[(numbers < 0) | (numbers >= n_rows)]
    if outside.size:
        raise InputError(f"there is no row {outside.flat[0]}; expected rows from 0 to {n_rows - 1}")
    return numbers


def find_kernel(name: str) -> type[Kernel]:
    """Return the kernel class with a given name, from imported modules or from the package."""
    package: Any = importlib.import_module("treewright")
    if name not in CLASSES and name in package.__all__:
        getattr(package, name)  # importing a class registers it
    if name not in CLASSES or inspect.isabstract(CLASSES[name]):
        raise InputError(f"kernel is {quote(name)}; expected a kernel of treewright or of an imported module")
    return CLASSES[name]
