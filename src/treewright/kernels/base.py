"""What kernels have in common: how they are called, packed, put together and used by scikit-learn."""

import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from treewright._typing import FloatArray, Integers
from treewright._validate import check_param_names
from treewright.errors import InputError, quote

KERNELS: dict[str, type["Kernel"]] = {}
"""The kernels that have a short name, such as "sst", by that; of modules that have been imported."""
CLASSES: dict[str, type["Kernel"]] = {}
"""All classes of kernels that have been imported, by their names."""


class PackedExamples(ABC):
    """Examples, by number, with all that the evaluation of their kernel needs. Made by `Kernel.pack`."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        """Return the values of all pairs of examples, given by their numbers.

        Parameters
        ----------
        rows_a, rows_b : array of int
            In any order.

        Returns
        -------
        ndarray of float, (len(rows_a), len(rows_b))
        """

    def strip(self, begin: int, end: int) -> FloatArray:
        """Return the values of the examples from `begin` to `end` with those from `begin` on."""
        return self.block(np.arange(begin, end), np.arange(begin, len(self)))

    @abstractmethod
    def compare(self, examples: Sequence[Any]) -> FloatArray:
        """Return the values of other examples with all of these: an array (len(examples), len(self))."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return the value of each example with itself."""


class Kernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A similarity of two examples that is an inner product in some space of features.

    It is a function of two lists of examples, to be given to anything that takes one, such as
    ``SVC(kernel=kernel)``, and a transformer that turns examples into their values with those it was
    fitted on.

    Kernels are put together with ``+`` and ``*``, a positive number ``*`` a kernel, and ``**``; see
    `treewright.kernels.compose`.

    A subclass is registered as soon as it is defined: models with such a kernel can then be saved and loaded.

    Attributes
    ----------
    short_name : str, optional
        A name for command lines and parameters; a class that has none itself is not among `KERNELS`.
    fragments : {"subtrees", "subset trees"}, optional
        What the kernel counts, if it can be listed; said by each class for itself, as a subclass may count
        something else.
    compares_vectors : bool
        Whether its examples are vectors, which have no fragments.
    why_no_fragments : str, optional
        Why a kernel that is made of others has no fragments even if all of these have some.
    has_exact_strips : bool
        Whether values do not depend, to the last bit, on which examples are compared at a time.
    """

    short_name: ClassVar[str | None] = None
    fragments: ClassVar[Literal["subtrees", "subset trees"] | None] = None
    compares_vectors: ClassVar[bool] = False
    why_no_fragments: ClassVar[str | None] = None
    has_exact_strips: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401
        super().__init_subclass__(**options)
        known = CLASSES.setdefault(cls.__name__, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"there is a kernel {cls.__name__} in {known.__module__}; expected another name")
        CLASSES[cls.__name__] = cls  # defined again, as in a notebook
        if "short_name" in vars(cls) and cls.short_name is not None:
            KERNELS[cls.short_name] = cls

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401
        """Change parameters, ``name__inner`` for those of a kernel that is one."""
        check_param_names(self, params)
        super().set_params(**params)
        return self

    @abstractmethod
    def pack(self, examples: Any) -> PackedExamples:  # noqa: ANN401
        """Prepare examples of which many pairs are to be evaluated."""

    def __call__(self, examples_a: Any, examples_b: Any = None) -> FloatArray:  # noqa: ANN401
        """Return the values of all pairs.

        Parameters
        ----------
        examples_a, examples_b : sequence
            Without the second, the first with itself.

        Returns
        -------
        ndarray of float, (len(examples_a), len(examples_b))
        """
        if examples_b is None or examples_b is examples_a:
            packed = self.pack(examples_a)
            rows = np.arange(len(packed))
            return packed.block(rows, rows)
        return self.pack(examples_b).compare(examples_a)

    def fit(self, examples: Any, y: object = None) -> Self:  # noqa: ANN401
        """Keep the examples with which others will be compared."""
        self.packed_ = self.pack(examples)
        self._n_features_out = len(self.packed_)
        return self

    def transform(self, examples: Any) -> FloatArray:  # noqa: ANN401
        """Return the values of examples with those that were fitted, (len(examples), n_fitted)."""
        check_is_fitted(self)
        return self.packed_.compare(examples)

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
    """Return numbers of rows as an array, if all of them are there."""
    array = np.asarray(rows)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        found = f"{array.ndim} dimensions of {array.dtype}"
        raise InputError(f"rows have {found}; expected one dimension of whole numbers")
    numbers = array.astype(np.int64)
    outside = numbers[(numbers < 0) | (numbers >= n_rows)]
    if outside.size:
        raise InputError(f"there is no row {outside.flat[0]}; expected rows from 0 to {n_rows - 1}")
    return numbers


def find_kernel(name: str) -> type[Kernel]:
    """Return the class of kernels of a name: one that has been imported, or one of the package."""
    package: Any = importlib.import_module("treewright")
    if name not in CLASSES and name in package.__all__:
        getattr(package, name)  # importing a class registers it
    if name not in CLASSES or inspect.isabstract(CLASSES[name]):
        raise InputError(
            f"kernel is {quote(name)}; expected one of treewright, or of a module that is imported"
        )
    return CLASSES[name]
