"""Sums of kernels as lists of terms, whose features are concatenated.

A weighted sum of kernels has the features of all its terms, multiplied by the square roots of their weights.
A `Part` has the features of a part of each example, and a `Normalized` kernel divides the features of each
example by their norm. Products and powers have different features: pairs and conjunctions.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, diags

from treewright._typing import FloatArray, Integers
from treewright.errors import InputError
from treewright.kernels.base import CLASSES, Kernel
from treewright.kernels.compose import Normalized, Part, Sum, VectorKernel
from treewright.kernels.convolution import TreeKernel
from treewright.kernels.inputs import Key, as_matrix, find_parts


class Norm(NamedTuple):
    """A kernel whose norm divides the features of each example, and the keys of the enclosing `Part`s."""

    kernel: Kernel
    keys: tuple[Key, ...]


class Term(NamedTuple):
    """A kernel in a sum.

    Attributes
    ----------
    kernel : Kernel
        Tree kernel or vector kernel.
    weight : float
        Weight of the kernel in the sum.
    keys : tuple
        Keys of the enclosing `Part` kernels, outermost first.
    norms : tuple of Norm
        Norms of the enclosing `Normalized` kernels.
    """

    kernel: Any
    weight: float
    keys: tuple[Key, ...] = ()
    norms: tuple[Norm, ...] = ()

    @property
    def part(self) -> Key | None:
        """The key of the part of an example that the kernel compares, or None for the whole example."""
        if len(self.keys) < 2:
            return self.keys[0] if self.keys else None
        return tuple(step for key in self.keys for step in (key if isinstance(key, tuple) else (key,)))

    def find_parts(self, examples: Any) -> tuple[Integers, Any]:  # noqa: ANN401
        """Return the indices of the examples that have the part, and these parts."""
        return _follow(self.keys, examples)

    def find_scales(self, examples: Any) -> FloatArray:  # noqa: ANN401
        """Return the factor of each example's features: 1 divided by all norms, or 0 if a norm is 0."""
        scales = np.ones(_count(examples))
        for norm in self.norms:
            rows, parts = _follow(norm.keys, examples)
            own = np.zeros(len(scales))
            if len(rows):
                own[rows] = norm.kernel.pack(parts).diagonal()
            roots = np.sqrt(np.maximum(own, 0))
            scales *= np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
        return scales

    def find_columns(self, examples: Any, n_columns: int | None = None) -> csr_matrix:  # noqa: ANN401
        """Return the features of examples in a linear vector kernel.

        Parameters
        ----------
        examples : list or matrix
            The examples.
        n_columns : int, optional
            Number of columns; further columns are omitted.

        Returns
        -------
        csr_matrix of float, (n_examples, n_columns)
            The features; a row is 0 if the example lacks the part that the kernel compares.
        """
        rows, parts = self.find_parts(examples)
        n_examples = _count(examples)
        matrix = csr_matrix(as_matrix(parts, n_columns=n_columns))
        size = matrix.shape[1] if n_columns is None else n_columns
        scales = self.find_scales(examples)[rows] * np.sqrt(self.weight)
        if self.kernel.normalize:
            norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
            scales = np.divide(scales, norms, out=np.zeros_like(norms), where=norms > 0)
        return place_rows(diags(scales) @ matrix[:, :size], rows, n_examples)


def place_rows(matrix: Any, rows: Integers, n_rows: int) -> csr_matrix:  # noqa: ANN401
    """Return a matrix with `n_rows` rows: the rows of `matrix` at the positions `rows`, and empty rows."""
    places = csr_matrix((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(n_rows, len(rows)))
    return csr_matrix(places @ matrix)


def _follow(keys: tuple[Key, ...], examples: Any) -> tuple[Integers, Any]:  # noqa: ANN401
    rows = np.arange(_count(examples))
    for key in keys:
        is_present, examples = find_parts(examples, key)
        rows = rows[is_present]
    return rows, examples


def _count(examples: Any) -> int:  # noqa: ANN401
    return int(examples.shape[0]) if hasattr(examples, "shape") else len(examples)


def list_terms(kernel: Kernel) -> list[Term]:
    """Return the tree kernels of a sum, without its vector kernels.

    Raises
    ------
    InputError
        If the sum has no tree kernels, or if the fragments of a kernel cannot be listed.
    """
    terms = [term for term in _find_terms(kernel, Term(None, 1.0)) if not _is_of_vectors(term.kernel)]
    if not terms:
        found = f"{type(kernel).__name__}, which compares only vectors"
        raise InputError(f"the kernel is {found}; expected a tree kernel")
    for term in terms:
        check_kernel(term.kernel)
    return terms


def list_vector_terms(kernel: Kernel) -> list[Term]:
    """Return the vector kernels of a sum.

    Raises
    ------
    InputError
        If a vector kernel is not linear, since its features are then not the columns of the vectors.
    """
    terms = [term for term in _find_terms(kernel, Term(None, 1.0)) if _is_of_vectors(term.kernel)]
    for term in terms:
        if type(term.kernel) is not VectorKernel or term.kernel.kind != "linear":
            kind = getattr(term.kernel, "kind", None)
            name = type(term.kernel).__name__ + (f" of the kind {kind}" if kind else "")
            raise InputError(
                f"the kernel contains {name}; expected only linear vector kernels in addition to tree kernels"
            )
    return terms


def _find_terms(kernel: Kernel, outer: Term) -> Iterator[Term]:
    """Yield the tree kernels and vector kernels in a sum; `outer` describes the enclosing kernels."""
    if isinstance(kernel, Sum):
        weights = np.ones(len(kernel.kernels)) if kernel.weights is None else kernel.weights
        for term, factor in zip(kernel.kernels, weights, strict=True):
            inner = term[1] if isinstance(term, tuple) else term
            yield from _find_terms(inner, outer._replace(weight=float(outer.weight * factor)))
    elif isinstance(kernel, Part):
        yield from _find_terms(kernel.kernel, outer._replace(keys=(*outer.keys, kernel.key)))
    elif isinstance(kernel, Normalized) and not _is_of_vectors(kernel):
        norms = (*outer.norms, Norm(kernel.kernel, outer.keys))
        yield from _find_terms(kernel.kernel, outer._replace(norms=norms))
    elif kernel.why_no_fragments and not _is_of_vectors(kernel):
        raise InputError(
            f"the kernel contains {type(kernel).__name__}, {kernel.why_no_fragments}; "
            f"expected a sum of {', '.join(_listed_kernels())} and vector kernels"
        )
    else:
        yield outer._replace(kernel=kernel)


def check_kernel(kernel: Kernel) -> TreeKernel:
    """Return the kernel if its fragments can be listed; reject others."""
    if not isinstance(kernel, TreeKernel) or not _is_listed(type(kernel)):
        raise InputError(
            f"the kernel is {type(kernel).__name__}, whose fragments cannot be listed; "
            f"expected {', '.join(_listed_kernels())}, or a sum of these"
        )
    return kernel


def _is_listed(kind: type[Kernel]) -> bool:
    """Return whether a kernel class itself declares the kind of fragments that it counts."""
    return vars(kind).get("fragments") is not None


def _listed_kernels() -> list[str]:
    return sorted(name for name, kind in CLASSES.items() if _is_listed(kind))


def _is_of_vectors(kernel: Kernel) -> bool:
    """Return whether a kernel, or each of its components, compares vectors."""
    inner = [each for each in kernel.get_params().values() if isinstance(each, Kernel)]
    return all(map(_is_of_vectors, inner)) if inner else kernel.compares_vectors
