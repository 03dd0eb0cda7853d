"""Selecting, saving and loading kernels and examples of any type.

Examples can be any input of a kernel: a list of trees, a list of tuples of trees and vectors, or a matrix.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse, vstack

from treewright._typing import Integers
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.interop import from_nltk
from treewright.data.svmlight import SparseVector, TreeExample
from treewright.errors import InputError, quote
from treewright.kernels.base import Kernel, find_kernel
from treewright.kernels.inputs import is_nltk
from treewright.model import Array, Coded, State, expect, is_within, refuse_rest

DEP_COLUMNS = ("words", "lemmas", "upos", "xpos", "feats", "deprels")
PLAIN_TYPES = (bool, int, float, str)
NUMBERS = "biuf"
SEQUENCES: dict[str, Any] = {
    "tuple": tuple,
    "list": list,
    "SparseVector": SparseVector,
    "TreeExample": TreeExample,
}


def check_examples(examples: Any) -> Any:  # noqa: ANN401
    """Return examples in a form that can be indexed: a CSR matrix, an array, or a list."""
    if issparse(examples):
        return csr_matrix(examples)
    if isinstance(examples, np.ndarray) and examples.ndim > 0:
        return examples
    is_one = isinstance(examples, str | ConstTree | DepTree) or is_nltk(examples)
    if is_one or not hasattr(examples, "__iter__"):
        found = f"of the type {type(examples).__name__}"
        raise InputError(f"the examples are {found}; expected a list or another iterable")
    return list(examples)


def count_examples(examples: Any) -> int:  # noqa: ANN401
    """Return the number of examples that `check_examples` returned."""
    return int(examples.shape[0]) if issparse(examples) else len(examples)


def take_examples(examples: Any, rows: Integers | slice) -> Any:  # noqa: ANN401
    """Return some of the examples that `check_examples` returned."""
    if isinstance(rows, slice) or not isinstance(examples, list):
        return examples[rows]
    return [examples[row] for row in rows.tolist()]


def kernel_state(kernel: Kernel) -> State:
    """Return the state of a kernel: its class and its parameters."""
    state = State("Kernel")
    state.values["kernel"] = _encode(kernel, "kernel", state.arrays)
    return state


def kernel_from_state(state: State) -> Kernel:
    """Restore a kernel from its state.

    Raises
    ------
    InputError
        If the state does not describe a kernel.
    """
    rest = State(state.kind, dict(state.values), dict(state.arrays), dict(state.parts))
    kernel = _decode(rest.values.pop("kernel"), rest)
    if rest.kind != "Kernel" or not isinstance(kernel, Kernel):
        raise InputError(f"the saved object is {quote(repr(kernel))}; expected a kernel")
    refuse_rest(rest, "Kernel")
    return kernel


class KernelField:
    """A field of a model that holds a kernel, the name of a kernel, or None."""

    def put(self, state: State, name: str, value: Kernel | str | None) -> None:
        """Add the kernel to a state."""
        if isinstance(value, Kernel):
            state.parts[name] = kernel_state(value)
        else:
            state.values[name] = value

    def take(self, state: State, name: str) -> Any:  # noqa: ANN401
        """Remove the kernel from a state and return it."""
        if name in state.parts:
            return kernel_from_state(state.parts.pop(name))
        return state.values.pop(name)


def _encode(value: Any, name: str, arrays: dict[str, npt.NDArray[Any]]) -> Any:  # noqa: ANN401
    """Return a parameter as a JSON value; arrays are stored separately and referred to by name."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, PLAIN_TYPES):
        return value
    if isinstance(value, Kernel):
        parameters = value.get_params(deep=False)
        coded = {key: _encode(each, f"{name}.{key}", arrays) for key, each in parameters.items()}
        return {"kernel": type(value).__name__, "parameters": coded}
    if isinstance(value, list | tuple):
        items = [_encode(each, f"{name}[{place}]", arrays) for place, each in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": items}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"mapping": {key: _encode(each, f"{name}[{key!r}]", arrays) for key, each in value.items()}}
    if isinstance(value, np.ndarray) and value.dtype.kind in NUMBERS:
        arrays[f"array{len(arrays)}"] = value
        return {"array": f"array{len(arrays) - 1}"}
    raise InputError(
        f"{name} is {quote(repr(value))}, which cannot be saved; expected plain values or kernels"
    )


def _decode(value: Any, state: State) -> Any:  # noqa: ANN401
    if not isinstance(value, dict):
        return value
    if "kernel" in value:
        parameters = {key: _decode(each, state) for key, each in value["parameters"].items()}
        return find_kernel(value["kernel"])(**parameters)
    if "array" in value:
        return NUMERIC.take(state, value["array"])
    if "mapping" in value:
        return {key: _decode(each, state) for key, each in value["mapping"].items()}
    items = [_decode(each, state) for each in value["list" if "list" in value else "tuple"]]
    return items if "list" in value else tuple(items)


def examples_state(examples: Any) -> State:  # noqa: ANN401
    """Return the state of examples that `check_examples` returned.

    An nltk.Tree is saved as a `ConstTree`.
    """
    if issparse(examples):
        arrays = {"indptr": examples.indptr, "indices": examples.indices, "data": examples.data}
        return State("sparse", {"shape": list(examples.shape)}, arrays)
    if isinstance(examples, np.ndarray) and examples.dtype.kind in NUMBERS:
        return State("array", {}, {"array": examples})
    items = [_plain_item(item) for item in examples]
    kinds = {type(item) for item in items}
    if kinds <= {ConstTree}:
        return _const_state(items)
    if kinds <= {DepTree}:
        return _dep_state(items)
    if kinds <= set(PLAIN_TYPES):
        return State("plain", {"items": items})
    if type(None) in kinds:
        is_present = np.array([item is not None for item in items])
        present = examples_state([item for item in items if item is not None])
        return State("optional", {}, {"is_present": is_present}, {"items": present})
    if len(kinds) > 1:
        return _mixed_state(items)
    return _compound_state(items, kinds.pop())


def _plain_item(item: Any) -> Any:  # noqa: ANN401
    """Return an example in a form that can be saved."""
    if isinstance(item, np.generic):
        return item.item()
    return from_nltk(item) if is_nltk(item) else item


def _mixed_state(items: list[Any]) -> State:
    """Return the state of examples of several types, grouped by type."""
    kinds = list(dict.fromkeys(map(type, items)))
    numbers = np.array([kinds.index(type(item)) for item in items], dtype=np.int64)
    parts = {
        f"{number}": examples_state([item for item in items if type(item) is kind])
        for number, kind in enumerate(kinds)
    }
    return State("mixed", {}, {"kinds": numbers}, parts)


def _compound_state(items: list[Any], kind: type) -> State:
    """Return the state of examples of one type that have several parts."""
    if kind in SEQUENCES.values():
        return _sequence_state(items, kind)
    if kind is dict and len({tuple(item) for item in items}) == 1:
        columns = zip(*(item.values() for item in items), strict=True)
        parts = {f"{place}": examples_state(list(column)) for place, column in enumerate(columns)}
        return State("dict", {"keys": list(items[0])}, {}, parts)
    if kind is np.ndarray and {(item.ndim, item.dtype.kind in NUMBERS) for item in items} == {(1, True)}:
        sizes = np.array([len(item) for item in items], dtype=np.int64)
        return State("arrays", {}, {"sizes": sizes, "array": np.concatenate(items)})
    if issparse(items[0]) and len({item.shape for item in items}) == 1 and items[0].shape[0] == 1:
        return State("rows", {}, {}, {"matrix": examples_state(vstack(items, format="csr"))})
    expected = "ConstTree, DepTree, nltk.Tree, text, vectors, or tuples of these"
    raise InputError(f"examples of {kind.__name__} cannot be saved; expected {expected}")


def _sequence_state(items: list[Any], kind: type) -> State:
    """Return the state of tuples or lists; if all have the same length, items are grouped by position."""
    name = next(name for name, each in SEQUENCES.items() if each is kind)
    if len({len(item) for item in items}) == 1:
        columns = zip(*items, strict=True)
        parts = {f"{place}": examples_state(list(column)) for place, column in enumerate(columns)}
        return State("columns", {"type": name, "n_items": len(items)}, {}, parts)
    sizes = np.array([len(item) for item in items], dtype=np.int64)
    parts = {"items": examples_state([each for item in items for each in item])}
    return State("ragged", {"type": name}, {"sizes": sizes}, parts)


def _const_state(trees: Sequence[ConstTree]) -> State:
    labels = [label for tree in trees for label in tree.labels]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    arrays: dict[str, npt.NDArray[Any]] = {
        "n_nodes": np.array([tree.n_nodes for tree in trees], dtype=np.int64),
        "labels": np.array([numbers[label] for label in labels], dtype=np.int32),
        "sizes": np.concatenate([np.zeros(0, dtype=np.int32), *(tree.sizes for tree in trees)]),
    }
    return State("ConstTree", {"labels": list(numbers)}, arrays)


def _const_trees(state: State) -> list[ConstTree]:
    names, arrays = state.values["labels"], state.arrays
    counts, sizes = arrays["n_nodes"], arrays["sizes"]
    n_nodes = int(counts.sum(dtype=np.int64))
    expect(n_nodes == len(sizes) == len(arrays["labels"]), "a label and a size for each node")
    expect(all(isinstance(name, str) for name in names), "labels that are strings")
    expect(is_within(arrays["labels"], len(names)), "valid label indices")
    expect(is_within(sizes, len(sizes) + 1, low=1), "valid subtree sizes")
    ends = np.cumsum(counts)
    labels = [names[number] for number in arrays["labels"].tolist()]
    trees = []
    for count, end in zip(counts.tolist(), ends.tolist(), strict=True):
        own = sizes[end - count : end]
        expect(_is_postorder(own.tolist()), "subtree sizes in post-order")
        trees.append(ConstTree.from_arrays(labels[end - count : end], own))
    return trees


def _is_postorder(sizes: list[int]) -> bool:
    """Return whether `sizes` are the subtree sizes of one tree in post-order."""
    whole: list[int] = []
    for size in sizes:
        below = 1
        while below < size and whole:
            below += whole.pop()
        if below != size:
            return False
        whole.append(size)
    return len(whole) == 1


def _dep_state(trees: Sequence[DepTree]) -> State:
    """Return the state of dependency trees: the heads, and the columns that kernels use."""
    columns = {name: [getattr(tree, name) for tree in trees] for name in DEP_COLUMNS}
    heads = np.concatenate([np.zeros(0, dtype=np.int32), *(tree.heads for tree in trees)])
    return State("DepTree", {"columns": columns}, {"heads": heads})


def _dep_trees(state: State) -> list[DepTree]:
    trees, begin = [], 0
    for words, lemmas, upos, xpos, feats, deprels in zip(
        *(state.values["columns"][name] for name in DEP_COLUMNS), strict=True
    ):
        heads = state.arrays["heads"][begin : begin + len(words)]
        begin += len(words)
        trees.append(DepTree(words, heads, deprels, lemmas=lemmas, upos=upos, xpos=xpos, feats=feats))
    return trees


def examples_from_state(state: State) -> Any:  # noqa: ANN401
    """Restore examples from their state.

    Raises
    ------
    InputError
        If the state does not describe examples.
    """
    if state.kind not in READERS:
        found = f"of the kind {quote(state.kind)}"
        raise InputError(f"the examples are {found}; expected one of {', '.join(READERS)}")
    fields, read = READERS[state.kind]
    rest = State(state.kind, {}, dict(state.arrays))
    arrays = {name: field.take(rest, name) for name, field in fields.items()}
    refuse_rest(rest, state.kind)
    return read(State(state.kind, state.values, arrays, state.parts))


EXAMPLES = Coded(examples_state, examples_from_state)
"""A field of a model that holds examples of any type."""


def _read_sparse(state: State) -> csr_matrix:
    arrays = state.arrays
    indptr, indices, data = arrays["indptr"], arrays["indices"], arrays["data"]
    n_rows, n_columns = state.values["shape"]
    expect(len(indices) == len(data), "a value for each index")
    expect(
        len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == len(indices), "row bounds that cover all indices"
    )
    expect((np.diff(indptr) >= 0).all(), "row bounds in ascending order")
    is_inside = len(indptr) == n_rows + 1 and is_within(indices, n_columns)
    expect(is_inside, "indices within the shape of the matrix")
    return csr_matrix((data, indices, indptr), shape=(n_rows, n_columns))


def _read_arrays(state: State) -> list[Any]:
    ends = _find_ends(state, len(state.arrays["array"]))
    return np.split(state.arrays["array"], ends[:-1])


def _find_ends(state: State, n_items: int) -> Integers:
    """Return the end of each list in the concatenated items."""
    ends: Integers = np.cumsum(state.arrays["sizes"], dtype=np.int64)
    expect((ends[-1] if len(ends) else 0) == n_items, "list sizes that cover all items")
    return ends


def _read_optional(state: State) -> list[Any]:
    present = iter(examples_from_state(state.parts["items"]))
    return [next(present) if is_present else None for is_present in state.arrays["is_present"]]


def _read_mixed(state: State) -> list[Any]:
    parts = [iter(part) for part in _read_parts(state)]
    return [next(parts[number]) for number in state.arrays["kinds"].tolist()]


def _read_parts(state: State) -> list[Any]:
    return [examples_from_state(state.parts[f"{place}"]) for place in range(len(state.parts))]


def _read_columns(state: State) -> list[Any]:
    parts = _read_parts(state)
    rows = zip(*parts, strict=True) if parts else [()] * state.values["n_items"]
    return [_make_sequence(state.values["type"], list(row)) for row in rows]


def _read_ragged(state: State) -> list[Any]:
    items = examples_from_state(state.parts["items"])
    ends, sizes = _find_ends(state, count_examples(items)).tolist(), state.arrays["sizes"].tolist()
    return [
        _make_sequence(state.values["type"], items[end - size : end])
        for size, end in zip(sizes, ends, strict=True)
    ]


def _make_sequence(name: str, items: list[Any]) -> Any:  # noqa: ANN401
    kind = SEQUENCES[name]
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def _read_dicts(state: State) -> list[Any]:
    return [
        dict(zip(state.values["keys"], row, strict=True)) for row in zip(*_read_parts(state), strict=True)
    ]


def _read_rows(state: State) -> list[Any]:
    matrix = examples_from_state(state.parts["matrix"])
    return [matrix[row] for row in range(matrix.shape[0])]


NUMERIC = Array(NUMBERS, None, is_finite=False)
NATURAL = Array("i", low=0)
READERS: dict[str, tuple[dict[str, Array], Callable[[State], Any]]] = {
    "ConstTree": ({"n_nodes": Array("i", low=1), "labels": NATURAL, "sizes": NATURAL}, _const_trees),
    "DepTree": ({"heads": Array("i")}, _dep_trees),
    "array": ({"array": NUMERIC}, lambda state: state.arrays["array"]),
    "arrays": ({"sizes": NATURAL, "array": Array(NUMBERS, is_finite=False)}, _read_arrays),
    "columns": ({}, _read_columns),
    "dict": ({}, _read_dicts),
    "mixed": ({"kinds": NATURAL}, _read_mixed),
    "optional": ({"is_present": Array("b")}, _read_optional),
    "plain": ({}, lambda state: list(state.values["items"])),
    "ragged": ({"sizes": NATURAL}, _read_ragged),
    "rows": ({}, _read_rows),
    "sparse": (
        {"indptr": Array("i"), "indices": Array("i"), "data": Array(NUMBERS, is_finite=False)},
        _read_sparse,
    ),
}
"""For each kind of examples, the arrays of its state and the function that restores the examples."""
