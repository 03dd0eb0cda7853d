"""Conversion of kernel inputs: trees of any kind to `ConstTree`, and vectors to one matrix."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse, vstack

from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.interop import from_nltk
from treewright.data.labelled_trees import to_constituents
from treewright.data.svmlight import SparseVector, stack_vectors
from treewright.errors import FormatError, InputError, quote
from treewright.scale import one_blas_thread

Key: TypeAlias = int | str | tuple[int | str, ...]
"""A position, a key, an attribute name, or a tuple of these that are applied one after the other."""
TREES = "a ConstTree, a DepTree, an nltk.Tree or a string of brackets"
ROWS_TOGETHER = 32
"""Number of rows of a dense product that are computed together; the rounding of BLAS depends on it."""


def as_collection(examples: Any) -> Any:  # noqa: ANN401
    """Return examples that can be read repeatedly: a generator is converted to a list."""
    is_stream = hasattr(examples, "__iter__") and not hasattr(examples, "__len__") and not issparse(examples)
    return list(examples) if is_stream else examples


def as_tree(example: object, *, centre: str = "relation") -> ConstTree:
    """Convert an example to a tree.

    Parameters
    ----------
    example : ConstTree, DepTree, nltk.Tree or str
        A string must be one bracketed tree. A leaf of an nltk.Tree is a string or a (word, tag) pair, which
        becomes a tag node over the word.
    centre : {"relation", "tag", "word"}
        Labels of the nodes of a DepTree; see `to_constituents`.
    """
    if isinstance(example, ConstTree):
        return example
    if isinstance(example, str):
        return _parse(example)
    if isinstance(example, DepTree):
        return to_constituents(example, centre=centre)
    if is_nltk(example):
        return from_nltk(example)
    raise InputError(f"the tree is {_describe(example)}; expected {TREES}")


def as_trees(examples: Iterable[Any], *, centre: str = "relation") -> Sequence[ConstTree]:
    """Convert examples to trees; see `as_tree`.

    Parameters
    ----------
    examples : sequence or array of trees
        A list that contains only `ConstTree` is returned unchanged.
    centre : {"relation", "tag", "word"}
        Labels of the nodes of dependency trees.

    Raises
    ------
    InputError
        If an example is not a tree. The error message contains the index of the example.
    """
    given = _as_list(examples, "trees")
    if set(map(type, given)) <= {ConstTree}:
        return given
    trees = []
    for number, example in enumerate(given):
        try:
            trees.append(as_tree(example, centre=centre))
        except InputError as error:
            raise InputError(f"example {number}: {error}") from None
    return trees


def as_matrix(examples: Any, *, n_columns: int | None = None) -> Any:  # noqa: ANN401
    """Stack vectors as the rows of a dense array or a CSR matrix.

    Parameters
    ----------
    examples : array or sparse matrix, or sequence of rows
        Each row is an array, a list of numbers, or a sparse matrix with one row. Alternatively, all rows are
        `SparseVector`.
    n_columns : int, optional
        Required number of columns; a `SparseVector` is padded to it.

    Returns
    -------
    ndarray of float or csr_matrix of float, (n_examples, n_columns)
        The vectors as rows.
    """
    matrix = _make_matrix(examples, n_columns)
    values = matrix.data if issparse(matrix) else matrix
    if not np.isfinite(values).all():
        value = values[~np.isfinite(values)].flat[0]
        raise InputError(f"a vector has the value {value}; expected finite numbers")
    return matrix


def square_rows(matrix: Any) -> npt.NDArray[np.float64]:  # noqa: ANN401
    """Return the dot product of each row with itself."""
    if issparse(matrix):
        return np.asarray(matrix.multiply(matrix).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", matrix, matrix), dtype=np.float64)


@one_blas_thread
def multiply(a: Any, b: Any) -> npt.NDArray[np.float64]:  # noqa: ANN401
    """Return the product of two dense or sparse matrices as a dense matrix.

    A row of a dense product is the same if only a part of `a` is multiplied, provided that the part begins at
    a multiple of ROWS_TOGETHER.
    """
    if issparse(a) or issparse(b):
        product = a @ b
        return np.asarray(product.toarray() if issparse(product) else product, dtype=np.float64)
    found = np.empty((a.shape[0], b.shape[1]))
    for begin in range(0, len(found), ROWS_TOGETHER):
        rows = slice(begin, begin + ROWS_TOGETHER)
        found[rows] = a[rows] @ b
    return found


def find_parts(examples: Iterable[Any], key: Key) -> tuple[npt.NDArray[np.bool_], list[Any]]:
    """Return a mask of the examples whose part at `key` is not None, and these parts."""
    steps = key if isinstance(key, tuple) else (key,)
    parts = [_find_part(example, steps, number) for number, example in enumerate(examples)]
    present = [part is not None for part in parts]
    return np.array(present, dtype=np.bool_), [part for part in parts if part is not None]


def _find_part(example: Any, steps: tuple[int | str, ...], number: int) -> Any:  # noqa: ANN401
    part = example
    for step in steps:
        try:
            part = _take(part, step)
        except (AttributeError, IndexError, KeyError, TypeError):
            found = f"example {number}, of the type {type(example).__name__}, has no part {step!r}"
            raise InputError(f"{found}; expected a part at {steps}") from None
    return part


def _take(example: Any, step: int | str) -> Any:  # noqa: ANN401
    try:
        return example[step]
    except (IndexError, TypeError):
        if isinstance(step, int):
            raise
        return getattr(example, step)


def _make_matrix(examples: Any, n_columns: int | None) -> Any:  # noqa: ANN401
    if issparse(examples):
        matrix = csr_matrix(examples, dtype=np.float64)
    elif isinstance(examples, np.ndarray) and examples.dtype != object:
        matrix = _as_numbers(examples, "the array")
    else:
        rows = _as_list(examples, "vectors")
        if rows and all(isinstance(row, SparseVector) for row in rows):
            return _stack_open(rows, n_columns)
        matrix = _stack_sparse(rows) if rows and all(map(issparse, rows)) else _stack_dense(rows, n_columns)
    if matrix.ndim != 2:
        raise InputError(f"the array has {matrix.ndim} dimensions; expected 2, with a row for each example")
    if n_columns is not None and matrix.shape[1] != n_columns:
        raise InputError(f"vectors have {matrix.shape[1]} columns; expected {n_columns}, like the others")
    return matrix


def _stack_open(vectors: list[SparseVector], n_columns: int | None) -> csr_matrix:
    needed = max((int(vector.indices[-1]) for vector in vectors if len(vector.indices)), default=0)
    return stack_vectors(vectors, n_columns=max(needed, n_columns or 0))


def _stack_sparse(rows: list[Any]) -> csr_matrix:
    flat = [row if row.ndim == 2 else row.reshape(1, -1) for row in rows]
    shape = (1, flat[0].shape[1])
    _check_shapes(flat, shape, "a row with {1} columns, like the first")
    return csr_matrix(vstack(flat, format="csr"), dtype=np.float64)


def _stack_dense(rows: list[Any], n_columns: int | None) -> npt.NDArray[np.float64]:
    if not rows:
        return np.zeros((0, n_columns or 0))
    arrays = [_as_numbers(row, f"example {number}") for number, row in enumerate(rows)]
    if arrays[0].ndim != 1:
        raise InputError(f"example 0 has the shape {arrays[0].shape}; expected one dimension")
    _check_shapes(arrays, arrays[0].shape, "({0},), like the first")
    return np.stack(arrays)


def _check_shapes(rows: list[Any], shape: tuple[int, ...], expected: str) -> None:
    for number, row in enumerate(rows):
        if row.shape != shape:
            raise InputError(
                f"example {number} has the shape {row.shape}; expected {expected.format(*shape)}"
            )


def _as_numbers(row: object, name: str) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(row, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {_describe(row)}; expected numbers") from None


def _as_list(examples: Iterable[Any], kind: str) -> list[Any]:
    """Return examples as a list; reject a single example."""
    if type(examples) is list:
        return examples
    if isinstance(examples, str) or is_nltk(examples) or not hasattr(examples, "__iter__"):
        raise InputError(f"{kind} are {_describe(examples)}; expected a sequence of {kind}")
    return list(examples)


def _describe(example: object) -> str:
    text = quote(example) if isinstance(example, str) else ""
    return f"the string {text}" if text else f"of the type {type(example).__name__}"


def _parse(text: str) -> ConstTree:
    try:
        return ConstTree.parse(text)
    except FormatError as error:
        raise InputError(f"{quote(text)} has {error.found}; expected {error.expected}") from None


def is_nltk(example: object) -> bool:
    """Recognise an nltk.Tree without importing nltk: a list with a method `label`."""
    return isinstance(example, list) and callable(getattr(example, "label", None))
