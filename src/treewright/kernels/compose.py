"""Compositions of kernels, for examples that may have several parts.

A sum of kernels with positive weights, a product, a power and a normalised kernel are kernels, too: their
matrices are positive semi-definite. Values are computed block by block, so that no composition ever needs a
whole matrix.

Examples
--------
Each example has a tree, whose kernel has the weight 2, and a vector; the square has pairs of their features:

>>> from treewright.kernels.compose import Part, VectorKernel
>>> from treewright.kernels.deptree import DependencyTreeKernel
>>> tree, vector = DependencyTreeKernel(decay=0.4, normalize=True), VectorKernel(normalize=True)
>>> kernel = (2 * Part(tree, "tree") + Part(vector, "vector")) ** 2

For `GridSearchCV`, parameters are prefixed with the names or positions of their kernels:

>>> kernel.get_params()["kernel__0__kernel__decay"]
0.4
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone

from treewright._naming import setting
from treewright._typing import FloatArray
from treewright._validate import check_choice, check_integer, check_number
from treewright.errors import InputError
from treewright.kernels.base import Kernel, PackedExamples, check_rows
from treewright.kernels.inputs import Key, as_collection, as_matrix, find_parts, multiply, square_rows

Term: TypeAlias = Kernel | tuple[str, Kernel]

LARGEST = 1e12
"""Upper bound of numeric parameters."""


class Part(Kernel):
    """A kernel applied to one part of each example.

    The kernel value of a missing part (None) with any other part is 0.

    Parameters
    ----------
    kernel : Kernel
        The kernel to apply to the part.
    key : int, str, or tuple of these
        Location of the part: a position, a key, an attribute name, or a tuple of these, each applied to the
        result of the previous one. ``("trees", 0)`` is the first tree of a `TreeExample`.

    See Also
    --------
    Sum : Adds the kernels of several parts.
    TreeExample : An example with trees and vectors.

    Examples
    --------
    >>> from treewright.kernels.compose import Part, VectorKernel
    >>> Part(VectorKernel(), "bag")([{"bag": [1, 2]}, {"bag": [0, 1]}]).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
    """

    def __init__(self, kernel: Kernel, key: Key) -> None:
        self.kernel = kernel
        self.key = key

    def pack(self, examples: Sequence[Any]) -> PackedExamples:
        """Pack the parts of examples for the evaluation of many pairs."""
        _check_kernel("kernel", self.kernel)
        return _PackedPart(self.kernel, self.key, examples)


class _PackedPart(PackedExamples):
    def __init__(self, kernel: Kernel, key: Key, examples: Sequence[Any]) -> None:
        self._key = key
        self._present, parts = find_parts(examples, key)
        self._places = np.cumsum(self._present) - 1
        self._packed = kernel.pack(parts) if parts else None

    def __len__(self) -> int:
        return len(self._present)

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        a, b = check_rows(rows_a, len(self)), check_rows(rows_b, len(self))
        if self._packed is not None and len(self._packed) == len(self):
            return self._packed.block(a, b)
        values = np.zeros((len(a), len(b)))
        if self._packed is not None:
            in_a, in_b = self._present[a], self._present[b]
            values[np.ix_(in_a, in_b)] = self._packed.block(self._places[a[in_a]], self._places[b[in_b]])
        return values

    def compare(self, examples: Sequence[Any]) -> FloatArray:
        present, parts = find_parts(examples, self._key)
        values = np.zeros((len(present), len(self)))
        if self._packed is not None and parts:
            values[np.ix_(present, self._present)] = self._packed.compare(parts)
        return values

    def diagonal(self) -> FloatArray:
        values = np.zeros(len(self))
        if self._packed is not None:
            values[self._present] = self._packed.diagonal()
        return values


class _Several(Kernel):
    """A composition of several kernels; their parameters are prefixed with their names or positions."""

    kernels: Sequence[Term]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this kernel.

        Parameters
        ----------
        deep : bool
            Also return the kernels and their parameters, as ``name__decay`` or ``0__decay``.

        Returns
        -------
        dict of str to object
            The values of the parameters by name.
        """
        found: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, kernel in self._named().items():
                found[name] = kernel
                found |= {f"{name}__{key}": value for key, value in kernel.get_params(deep=True).items()}
        return found

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401
        """Set parameters: all kernels, one kernel by name, or a parameter of a kernel.

        Parameters
        ----------
        **params : object
            New values by name: ``kernels`` sets all kernels, ``name`` or ``0`` sets one kernel, and
            ``name__decay`` or ``0__decay`` sets a parameter of a kernel.
        """
        if "kernels" in params:
            self.kernels = params.pop("kernels")
        names = list(self._named())
        for name in names:
            if name in params:
                self._replace(names.index(name), params.pop(name))
        super().set_params(**params)
        return self

    def _replace(self, place: int, kernel: Kernel) -> None:
        kernels = list(self.kernels)
        old = kernels[place]
        kernels[place] = (old[0], kernel) if isinstance(old, tuple) else kernel
        self.kernels = kernels

    def _named(self) -> dict[str, Kernel]:
        """Check the kernels and return them by name."""
        if not isinstance(self.kernels, list | tuple) or not self.kernels:
            raise InputError(f"kernels is {self.kernels!r}; expected a list of kernels")
        named: dict[str, Kernel] = {}
        for place, term in enumerate(self.kernels):
            name, kernel = term if isinstance(term, tuple) and len(term) == 2 else (str(place), term)
            _check_kernel(f"kernels[{place}]", kernel)
            if not isinstance(name, str) or "__" in name or name in (*named, "kernels", "weights"):
                expected = "a unique string without '__', and neither 'kernels' nor 'weights'"
                raise InputError(f"the name of kernels[{place}] is {name!r}; expected {expected}")
            named[name] = kernel
        return named


class Sum(_Several):
    """The weighted sum of several kernels over the same examples.

    Parameters
    ----------
    kernels : list of Kernel or of (str, Kernel)
        Kernels, optionally with names, as in scikit-learn's FeatureUnion. A kernel without a name is named by
        its position.
    weights : sequence of float, optional
        Positive weights of the kernels (default: 1 for each).

    See Also
    --------
    Product : A product of kernels.
    Normalized : Makes kernels comparable before they are added.
    Part : A kernel applied to one part of each example.

    Examples
    --------
    >>> from treewright.kernels.compose import Sum, VectorKernel
    >>> kernel = Sum([("plain", VectorKernel()), ("bent", VectorKernel("rbf"))], weights=[1, 0.5])
    >>> kernel.set_params(bent__gamma=2.0)([[1.0], [2.0]]).round(3).tolist()
    [[1.5, 2.068], [2.068, 4.5]]
    """

    def __init__(self, kernels: Sequence[Term], *, weights: Sequence[float] | None = None) -> None:
        self.kernels = kernels
        self.weights = weights

    def pack(self, examples: Any) -> PackedExamples:  # noqa: ANN401
        """Pack examples for the evaluation of many pairs."""
        examples = as_collection(examples)
        kernels = list(self._named().values())
        weights = _check_weights(self.weights, len(kernels))
        return _PackedSum([kernel.pack(examples) for kernel in kernels], weights)


class Product(_Several):
    """The product of several kernels over the same examples.

    Its features are all combinations of one feature from each kernel.

    Parameters
    ----------
    kernels : list of Kernel or of (str, Kernel)
        Kernels, optionally with names. A kernel without a name is named by its position.

    See Also
    --------
    Sum : A weighted sum of kernels.
    Power : A power of one kernel.

    Examples
    --------
    >>> from treewright.kernels.compose import Product, VectorKernel
    >>> Product([VectorKernel(), VectorKernel("polynomial", degree=2)])([[1.0], [2.0]]).tolist()
    [[4.0, 18.0], [18.0, 100.0]]
    """

    why_no_fragments = "whose features are pairs of fragments"

    def __init__(self, kernels: Sequence[Term]) -> None:
        self.kernels = kernels

    def pack(self, examples: Any) -> PackedExamples:  # noqa: ANN401
        """Pack examples for the evaluation of many pairs."""
        examples = as_collection(examples)
        return _PackedProduct([kernel.pack(examples) for kernel in self._named().values()])


class _PackedSeveral(PackedExamples):
    """Examples packed by several kernels, whose values are combined."""

    def __init__(self, parts: list[PackedExamples]) -> None:
        lengths = [len(part) for part in parts]
        if len(set(lengths)) > 1:
            raise InputError(f"the kernels have {lengths} examples; expected the same number for each")
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts[0])

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        return _check_finite(self._join(part.block(rows_a, rows_b) for part in self._parts))

    def compare(self, examples: Sequence[Any]) -> FloatArray:
        given = as_collection(examples)
        return _check_finite(self._join(part.compare(given) for part in self._parts))

    def diagonal(self) -> FloatArray:
        return _check_finite(self._join(part.diagonal() for part in self._parts))

    @abstractmethod
    def _join(self, values: Iterator[FloatArray]) -> FloatArray:
        """Combine the values of all kernels, which are computed one after the other to save memory."""


class _PackedSum(_PackedSeveral):
    def __init__(self, parts: list[PackedExamples], weights: list[float]) -> None:
        super().__init__(parts)
        self._weights = weights

    def _join(self, values: Iterator[FloatArray]) -> FloatArray:
        total = next(values) * self._weights[0]
        for weight, block in zip(self._weights[1:], values, strict=True):
            total += block if weight == 1 else block * weight
        return total


class _PackedProduct(_PackedSeveral):
    def _join(self, values: Iterator[FloatArray]) -> FloatArray:
        total = next(values).copy()
        with np.errstate(over="ignore", invalid="ignore"):
            for block in values:
                total *= block
        return total


class _PackedPower(_PackedSeveral):
    def __init__(self, packed: PackedExamples, degree: int, offset: float) -> None:
        super().__init__([packed])
        self._degree = degree
        self._offset = offset

    def _join(self, values: Iterator[FloatArray]) -> FloatArray:
        return _raise(next(values) + self._offset, self._degree)


class Power(Kernel):
    """The power (K + offset)^degree; its features are conjunctions of up to `degree` features of K.

    Parameters
    ----------
    kernel : Kernel
        The kernel K, preferably normalised, since powers of large values overflow.
    degree : int
        The exponent.
    offset : float
        Number added to K, at least 0. If it is 0, as in ``kernel ** degree``, conjunctions have exactly
        `degree` features.

    See Also
    --------
    Product : A product of different kernels.
    PolynomialKernel : A polynomial kernel of binary vectors.

    Examples
    --------
    >>> from treewright.kernels.compose import Power, VectorKernel
    >>> Power(VectorKernel(), degree=2)([[1.0], [2.0]]).tolist()
    [[4.0, 9.0], [9.0, 25.0]]
    """

    why_no_fragments = "whose features are conjunctions of fragments"

    def __init__(self, kernel: Kernel, *, degree: int = 2, offset: float = 1.0) -> None:
        self.kernel = kernel
        self.degree = degree
        self.offset = offset

    def pack(self, examples: Any) -> PackedExamples:  # noqa: ANN401
        """Pack examples for the evaluation of many pairs."""
        _check_kernel("kernel", self.kernel)
        check_integer("degree", self.degree, minimum=1)
        check_number("offset", self.offset, low=0, high=LARGEST)
        return _PackedPower(self.kernel.pack(examples), int(self.degree), float(self.offset))


class Normalized(Kernel):
    """A kernel normalised so that K(x, x) = 1.

    K(x, y) is divided by the geometric mean of K(x, x) and K(y, y), and is 0 if one of these is 0. If a
    kernel has the parameter `normalize`, prefer ``normalize=True``: it also works for very large values.

    Parameters
    ----------
    kernel : Kernel
        The kernel to normalise.

    See Also
    --------
    Sum : A weighted sum of kernels.
    Product : A product of kernels.

    Examples
    --------
    >>> from treewright.kernels.compose import Normalized, VectorKernel
    >>> Normalized(VectorKernel())([[1.0, 0.0], [3.0, 4.0]]).round(3).tolist()
    [[1.0, 0.6], [0.6, 1.0]]
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def pack(self, examples: Any) -> PackedExamples:  # noqa: ANN401
        """Pack examples for the evaluation of many pairs."""
        _check_kernel("kernel", self.kernel)
        return _PackedNormalized(self.kernel, examples)


class _PackedNormalized(PackedExamples):
    def __init__(self, kernel: Kernel, examples: Any) -> None:  # noqa: ANN401
        self._kernel = kernel
        self._packed = kernel.pack(examples)
        self._scales = _invert_roots(self._packed.diagonal())

    def __len__(self) -> int:
        return len(self._packed)

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        rows_a, rows_b = check_rows(rows_a, len(self)), check_rows(rows_b, len(self))
        return _rescale(self._packed.block(rows_a, rows_b), self._scales[rows_a], self._scales[rows_b])

    def compare(self, examples: Sequence[Any]) -> FloatArray:
        given = as_collection(examples)
        scales = _invert_roots(self._kernel.pack(given).diagonal())
        return _rescale(self._packed.compare(given), scales, self._scales)

    def diagonal(self) -> FloatArray:
        return (self._scales > 0).astype(np.float64)


class VectorKernel(Kernel):
    """A kernel for dense or sparse vectors.

    Parameters
    ----------
    kind : {"linear", "polynomial", "rbf"}
        Kernel a . b (linear), (gamma a . b + offset)^degree (polynomial), or exp(-gamma |a - b|^2) (rbf).
    degree : int
        Degree of the polynomial.
    offset : float
        Offset of the polynomial, at least 0.
    gamma : float
        Positive factor of the polynomial and RBF kernels.
    normalize : bool
        Normalise so that K(x, x) = 1.

    See Also
    --------
    Sum : Combines kernels for vectors and for trees.
    Part : A kernel applied to one part of each example.

    Examples
    --------
    >>> from treewright.kernels.compose import VectorKernel
    >>> VectorKernel("polynomial", degree=2)([[1, 0], [2, 1]]).tolist()
    [[4.0, 9.0], [9.0, 36.0]]
    """

    compares_vectors = True

    def __init__(
        self,
        kind: str = "linear",
        *,
        degree: int = 3,
        offset: float = 1.0,
        gamma: float = 1.0,
        normalize: bool = False,
    ) -> None:
        self.kind = kind
        self.degree = degree
        self.offset = offset
        self.gamma = gamma
        self.normalize = normalize

    def pack(self, examples: Any) -> PackedExamples:  # noqa: ANN401
        """Pack vectors for the evaluation of many pairs.

        Parameters
        ----------
        examples : array or sparse matrix, or sequence of rows
            Each row is an array, a list of numbers, or a sparse matrix with one row. Alternatively, all rows
            are `SparseVector`.
        """
        check_choice("kind", self.kind, ("linear", "polynomial", "rbf"))
        check_integer("degree", self.degree, minimum=1)
        check_number("offset", self.offset, low=0, high=LARGEST)
        check_number("gamma", self.gamma, low=1 / LARGEST, high=LARGEST)
        check_choice("normalize", self.normalize, (False, True))
        return _PackedVectors(clone(self), as_matrix(examples))


class _PackedVectors(PackedExamples):
    def __init__(self, kernel: VectorKernel, matrix: Any) -> None:  # noqa: ANN401
        self._kernel = kernel
        self._matrix = matrix
        self._columns = csr_matrix(matrix.T) if issparse(matrix) else matrix.T
        self._squares = square_rows(matrix)

    def __len__(self) -> int:
        return int(self._matrix.shape[0])

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        a, b = check_rows(rows_a, len(self)), check_rows(rows_b, len(self))
        are_all = np.array_equal(b, np.arange(len(self)))  # as for the rows that a solver asks for
        products = multiply(self._matrix[a], self._columns if are_all else self._matrix[b].T)
        return self._evaluate(products, self._squares[a, None], self._squares[b])

    def compare(self, examples: Any) -> FloatArray:  # noqa: ANN401
        matrix = as_matrix(examples, n_columns=self._matrix.shape[1])
        products = multiply(matrix[:, : self._matrix.shape[1]], self._columns)
        return self._evaluate(products, square_rows(matrix)[:, None], self._squares)

    def diagonal(self) -> FloatArray:
        return self._evaluate(self._squares.copy(), self._squares, self._squares)

    def _evaluate(self, products: FloatArray, squares_a: FloatArray, squares_b: FloatArray) -> FloatArray:
        """Return kernel values, given the dot products of pairs and of each vector with itself."""
        kernel = self._kernel
        if kernel.kind == "rbf":
            distances = np.maximum(squares_a + squares_b - 2 * products, 0)
            return np.exp(-kernel.gamma * distances)
        gamma, offset, degree = 1.0, 0.0, 1
        if kernel.kind == "polynomial":
            gamma, offset, degree = kernel.gamma, kernel.offset, kernel.degree
        values = gamma * products + offset
        if kernel.normalize:
            values *= _invert_roots(gamma * squares_a + offset)
            values *= _invert_roots(gamma * squares_b + offset)
        return _check_finite(_raise(values, degree))


def add_kernels(kernel: Kernel, other: Kernel) -> Sum:
    """Return the sum of two kernels; kernels that are sums themselves are flattened."""
    terms = [one if isinstance(one, Sum) else Sum([one]) for one in (kernel, other)]
    weights = [weight for term in terms for weight in _check_weights(term.weights, len(term.kernels))]
    kernels = [one for term in terms for one in term.kernels]
    return Sum(kernels, weights=None if set(weights) == {1.0} else weights)


def multiply_kernels(kernel: Kernel, other: Kernel) -> Product:
    """Return the product of two kernels; kernels that are products themselves are flattened."""
    factors = [one.kernels if isinstance(one, Product) else [one] for one in (kernel, other)]
    return Product([one for several in factors for one in several])


def scale_kernel(kernel: Kernel, weight: float) -> Sum:
    """Return a kernel multiplied by a weight."""
    term = kernel if isinstance(kernel, Sum) else Sum([kernel])
    (factor,) = _check_weights([weight], 1)
    weights = _check_weights(term.weights, len(term.kernels))
    return Sum(term.kernels, weights=[factor * one for one in weights])


def _check_kernel(name: str, kernel: object) -> None:
    if not isinstance(kernel, Kernel):
        found = f"the class {kernel.__name__}" if isinstance(kernel, type) else type(kernel).__name__
        raise InputError(f"{name} is {found}; expected a kernel")


def _check_weights(weights: Sequence[float] | None, n_kernels: int) -> list[float]:
    if weights is None:
        return [1.0] * n_kernels
    if len(weights) != n_kernels:
        raise InputError(f"weights has {len(weights)} values; expected {n_kernels}, one for each kernel")
    for place, weight in enumerate(weights):
        check_number(f"weights[{place}]", weight, low=1 / LARGEST, high=LARGEST)
    return [float(weight) for weight in weights]


def _check_finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise InputError(
            f"a kernel value overflows; expected a finite number; use {setting('normalize', True)}"
        )
    return values


def _raise(values: FloatArray, degree: int) -> FloatArray:
    """Raise values to a power in place; large values overflow to infinity."""
    with np.errstate(over="ignore"):
        return np.power(values, degree, out=values)


def _invert_roots(values: FloatArray) -> FloatArray:
    """Return 1 / sqrt(value) for each value, and 0 for 0."""
    _check_finite(values)
    roots = np.sqrt(np.maximum(values, 0))
    return np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)


def _rescale(values: FloatArray, scales_a: FloatArray, scales_b: FloatArray) -> FloatArray:
    values *= scales_a[:, None]
    values *= scales_b
    return values
