"""What the arrays of saved models must be like, so that compiled code stays within them.

A file may come from anybody, with a checksum that is right. Compiled code does not look whether a number is
that of a place in an array; so whatever it takes from a file is looked at before.
"""

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from treewright._validate import check_integer, check_number
from treewright.errors import InputError, quote
from treewright.model import REGISTRY
from treewright.persist import State

Types: TypeAlias = dict[str, tuple[str, int | None]]

ANY = "biuf"
WEIGHTS: Types = {"book": ("f", 1), "codes": ("u", 1)}
WORDS: Types = {**WEIGHTS, "keys": ("u", 1), "sizes": ("u", 1), "pieces": ("u", 1)}
FOREST: Types = {
    "features": ("i", 1),
    "present": ("i", 1),
    "absent": ("i", 1),
    "roots": ("i", 1),
    "values": ("f", 1),
}
MACHINE: Types = {
    "dual_coef": ("f", 2),
    "intercept": ("f", 1),
    "n_iter": ("i", 1),
    "sigmoid": ("f", 2),
    "support": ("i", 1),
}
LINEAR: Types = {"coef": ("f", 2), "intercept": ("f", 1)}

ARRAYS: dict[str, Types] = {
    "ConjunctionClassifier": {**LINEAR, "order": ("i", 2)},
    "ConjunctionMiner": {**LINEAR, "order": ("i", 2)},
    "ConstTree": {"labels": ("i", 1), "n_nodes": ("i", 1), "sizes": ("i", 1)},
    "Decider": {"codes": ("u", 1)},
    "DepTree": {"heads": ("i", 1)},
    "Forest": FOREST,
    "Kernel": {"array": (ANY, None)},
    "KernelScorer": {"coef": ("f", 2), "heads": ("i", 1)},
    "Labeler": {**WEIGHTS, "pairs": ("i", 1)},
    "Lemmatizer": WORDS,
    "LinearMachine": LINEAR,
    "LinearScorer": {"coef": ("f", 1)},
    "LinearizedTreeClassifier": LINEAR,
    "Stage": WEIGHTS,
    "StructureModel": WEIGHTS,
    "SubtreeFeatures": {"features": ("i", 2), "keys": ("u", 1)},
    "Tagger": {**WORDS, "forms": ("u", 1), "classes": ("i", 1)},
    "TemplateFeatures": {"keys": ("u", 1)},
    "TreeKernelClassifier": MACHINE,
    "TreeKernelRegressor": MACHINE,
    "array": {"array": (ANY, None)},
    "arrays": {"sizes": ("i", 1), "array": (ANY, 1)},
    "mixed": {"kinds": ("i", 1)},
    "optional": {"is_present": ("b", 1)},
    "ragged": {"sizes": ("i", 1)},
    "sparse": {"indptr": ("i", 1), "indices": ("i", 1), "data": (ANY, 1)},
}
"""The arrays of each kind of part: what their numbers are, as NumPy's letters, and how many dimensions they
have. Numbers at the end of names are not looked at."""

FEATURES = {
    "subtree": "SubtreeFeatures",
    "polynomial": "ConjunctionFeatures",
    "template": "TemplateFeatures",
}
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "ConjunctionFeatures": {"features": ("SubtreeFeatures",)},
    "Decider": {"machine": ("LinearMachine",)},
    "DependencyParser": {
        "encoder": ("Encoder",),
        "labeler": ("Labeler",),
        "pruner": ("Pruner",),
        "structure": ("StructureModel",),
        "tagger": ("Tagger",),
    },
    "DependencyReranker": {"parser": ("DependencyParser",), "scorer": ("KernelScorer", "LinearScorer")},
    "L1BoostedTrees": {"forest": ("Forest",)},
    "Labeler": {"encoder": ("Encoder",)},
    "LinearScorer": {"features": tuple(FEATURES.values())},
    "LinearizedTreeClassifier": {"kernel": ("Kernel",)},
    "PredicateFinder": {"decider": ("Decider",)},
    "Pruner": {"stage": ("Stage",)},
    "RoleClassifier": {
        "fragments": ("LinearizedTreeClassifier",),
        "kernel": ("Kernel",),
        "model": ("ConjunctionClassifier", "LinearMachine", "TreeKernelClassifier"),
        "table": ("FeatureTable",),
    },
    "RoleLabeler": {
        "classifier": ("RoleClassifier",),
        "finder": ("PredicateFinder",),
        "identifier": ("Decider",),
    },
    "Tagger": {"lemmatizer": ("Lemmatizer",)},
    "TreeKernelClassifier": {"kernel": ("Kernel",)},
    "TreeKernelRegressor": {"kernel": ("Kernel",)},
}
"""The kinds that parts of models have, by names; what is looked at depends on what a part says it is."""
DATA = ("Kernel", "array", "arrays", "sparse")
"""Kinds whose numbers are those of users, and may be any."""
LARGEST_WEIGHT = 1e9
"""Beyond all that is learnt, and small enough for sums of weights to be told apart."""


def check_state(state: State) -> None:
    """Check all arrays of a model and of those inside it.

    Raises
    ------
    InputError
        For an array that is not what its kind has, or that leads out of another.
    """
    if state.kind in REGISTRY:
        return  # it checks itself
    known = ARRAYS.get(state.kind, {})
    for name, array in state.arrays.items():
        _check_type(state.kind, name, array, known.get(re.sub(r"[0-9]+$", "", name)))
    if state.kind in RELATIONS:
        RELATIONS[state.kind](state)
    kinds = PARTS.get(state.kind, {})
    for name, part in state.parts.items():
        expected = kinds.get(re.sub(r"[0-9]+$", "", name), (part.kind,))
        if part.kind not in expected:
            raise InputError(f"{name} of {state.kind} is a {part.kind}; expected {' or '.join(expected)}")
        check_state(part)


def _check_type(
    kind: str, name: str, array: npt.NDArray[Any], expected: tuple[str, int | None] | None
) -> None:
    if expected is None:
        raise InputError(f"array {quote(name)} of {kind}; expected none of that name")
    letters, n_dimensions = expected
    if array.dtype.kind not in letters or n_dimensions not in (None, array.ndim):
        found = f"{name} of {kind} has {array.ndim} dimensions of {array.dtype}"
        raise InputError(f"{found}; expected {n_dimensions or 'any'} of {' or '.join(letters)}")
    if array.dtype.kind == "f" and kind not in DATA and not np.isfinite(array).all():
        raise InputError(f"{name} of {kind} has numbers without a value or an end; expected finite ones")


def _expect(is_sound: bool | np.bool_, what: str) -> None:
    if not is_sound:
        raise InputError(f"arrays that do not fit each other; expected {what}")


def _is_within(numbers: npt.NDArray[Any], size: int, *, lowest: int = 0) -> bool:
    return bool(((numbers >= lowest) & (numbers < size)).all())


def _check_weights(state: State) -> None:
    arrays = state.arrays
    # The high bits of a key number a slot, and there are none of a table of one.
    _expect(arrays["codes"].size >= 2, "tables of two weights at least")
    _expect(bool((np.abs(arrays["book"]) <= LARGEST_WEIGHT).all()), f"weights up to {LARGEST_WEIGHT:g}")


def _check_labeler(state: State) -> None:
    arrays = state.arrays
    _check_weights(state)
    pairs = arrays["pairs"]
    _expect(bool((pairs >= 0).all() and (pairs[1:] > pairs[:-1]).all()), "pairs in increasing order")


def _check_words(state: State) -> None:
    arrays = state.arrays
    sizes, pieces = arrays["sizes"], arrays["pieces"]
    _expect(len(sizes) == len(arrays["keys"]), "a size for each key")
    total = int(sizes.sum(dtype=np.int64))
    _expect(total == len(pieces) == len(arrays["codes"]), "a piece and a weight for each place of a row")


def _check_tagger(state: State) -> None:
    arrays = state.arrays
    _check_words(state)
    forms = arrays["forms"]
    _expect(len(forms) == len(arrays["classes"]), "a class for each form")
    _expect(bool((forms[1:] > forms[:-1]).all()), "forms in increasing order")


def _check_forest(state: State) -> None:
    arrays = state.arrays
    features, present, absent = arrays["features"], arrays["present"], arrays["absent"]
    n_nodes = len(features)
    _expect(len(present) == len(absent) == len(arrays["values"]) == n_nodes, "nodes that have all columns")
    is_split = features >= 0
    nodes = np.flatnonzero(is_split)
    for below in (present[nodes], absent[nodes]):  # nodes stand before those they lead to, so ways end
        _expect(_is_within(below, n_nodes) and bool((below > nodes).all()), "nodes that lead to later ones")
    roots = arrays["roots"]
    starts = np.arange(0) if not n_nodes else roots[:1]
    _expect(_is_within(roots, n_nodes) and bool((np.diff(roots) > 0).all()), "roots in increasing order")
    _expect(bool((starts == 0).all()) and bool(len(roots) or not n_nodes), "a first root at the first node")
    ends = np.append(roots[1:], n_nodes)[np.searchsorted(roots, nodes, side="right") - 1]
    _expect(bool(((present[nodes] < ends) & (absent[nodes] < ends)).all()), "nodes that stay in their tree")


def _check_trees(state: State) -> None:
    arrays = state.arrays
    counts, sizes = arrays["n_nodes"], arrays["sizes"]
    _expect(bool((counts > 0).all()), "trees of a node at least")
    _expect(int(counts.sum(dtype=np.int64)) == len(sizes) == len(arrays["labels"]), "all nodes of all trees")
    _expect(_is_within(arrays["labels"], 1 << 31), "numbers of labels")
    _expect(_is_within(sizes, len(sizes) + 1, lowest=1), "sizes of parts of trees")
    begin = 0
    for count in counts.tolist():
        _expect(_is_postorder(sizes[begin : begin + count].tolist()), "sizes of trees in postorder")
        begin += count


def _is_postorder(sizes: list[int]) -> bool:
    """Tell whether these are the sizes of the parts of one tree, children before parents."""
    whole: list[int] = []
    for size in sizes:
        below = 1
        while below < size and whole:
            below += whole.pop()
        if below != size:
            return False
        whole.append(size)
    return len(whole) == 1


def _check_keys(state: State) -> None:
    keys = state.arrays["keys"]
    _expect(bool((keys[1:] > keys[:-1]).all()), "keys in increasing order")


def _check_subtrees(state: State) -> None:
    from treewright.native.mining.subtrees import N_DEPTHS  # loading Numba takes longer than most models

    _check_keys(state)
    for codes in _features(state):
        _expect(_is_within(codes, len(state.arrays["keys"]) * N_DEPTHS), "features that have keys")


def _features(state: State) -> list[npt.NDArray[np.generic]]:
    """Return the features of each order."""
    return [array for name, array in state.arrays.items() if name != "keys"]


def _check_scorer(state: State) -> None:
    from treewright.native.mining.subtrees import N_DEPTHS

    _expect(state.parts["features"].kind == FEATURES.get(state.values["space"]), "features of the space")
    if state.values["space"] == "subtree":
        features = _features(state.parts["features"])
        for codes in features:
            depths = np.asarray(codes) % N_DEPTHS
            _expect(depths.shape[1] <= N_DEPTHS, f"features of {N_DEPTHS} arcs at the most")
            is_sound = (depths[:, 0] == 0).all() and (np.diff(depths, axis=1) <= 1).all()
            _expect(bool(is_sound), "arcs under those before them")
        _expect(len(state.arrays["coef"]) == sum(map(len, features)), "a weight for each feature")


def _check_conjunctions(state: State) -> None:
    arrays = state.parts["features"].arrays
    for name, items in arrays.items():
        _expect(name == "keys" or _is_within(items, len(arrays["keys"])), "conjunctions of what has keys")


def _check_orders(state: State) -> None:
    n_features = int(state.values["n_features_in"])
    orders = {name: items for name, items in state.arrays.items() if name.startswith("order")}
    for name, items in orders.items():
        _expect(_is_within(items, n_features), "conjunctions of features")
        _expect(name == f"order{items.shape[1]}", "conjunctions under their order")
    _expect(state.arrays["coef"].shape[1] == sum(map(len, orders.values())), "a weight for each conjunction")


def _check_boosted(state: State) -> None:
    n_features = int(state.values["n_features_in"])
    for part in state.parts.values():
        _expect(_is_within(part.arrays["features"], n_features, lowest=-1), "splits by features")


def _check_values(state: State) -> None:
    """Check values of which compiled code has a version for each type, which would be compiled first."""
    for name, kind in (("scale", float), ("single_root", bool), ("fine", bool)):
        value = state.values.get(name, kind())
        if type(value) is not kind:
            raise InputError(f"{name} is {value!r}; expected {kind.__name__}")
    check_number("scale", state.values.get("scale", 0.0), low=0, high=LARGEST_WEIGHT)


def _check_structure(state: State) -> None:
    _check_values(state)
    _check_weights(state)
    order, bits = state.values["order"], state.values["table_bits"]
    _expect(type(order) is int and 1 <= order <= 3, "an order of 1, 2 or 3")
    n_slots = len(state.arrays["codes"])
    _expect(type(bits) is int and 0 < bits < 63 and n_slots == 1 << bits, "a table of so many bits")


def _check_reranker(state: State) -> None:
    expected = "KernelScorer" if state.values["options"]["learner"] == "kernel" else "LinearScorer"
    _expect(state.parts["scorer"].kind == expected, "the scorer of the learner")


def _check_pruner(state: State) -> None:
    _check_values(state)
    check_integer("max_heads", state.values["max_heads"], minimum=1)
    check_number("threshold", state.values["threshold"], low=0, high=1)


def _check_machine(state: State) -> None:
    arrays = state.arrays
    n_machines, n_support = arrays["dual_coef"].shape
    _expect(len(arrays["support"]) == n_support, "a coefficient for each support vector")
    _expect(len(arrays["intercept"]) == n_machines, "an intercept for each machine")


def _check_sparse(state: State) -> None:
    arrays = state.arrays
    first, indices = arrays["indptr"], arrays["indices"]
    _expect(len(indices) == len(arrays["data"]), "a number for each place")
    _expect(len(first) > 0 and first[0] == 0 and first[-1] == len(indices), "rows of all places")
    _expect(bool((np.diff(first) >= 0).all()), "rows one after the other")
    n_rows, n_columns = state.values["shape"]
    _expect(len(first) == n_rows + 1 and _is_within(indices, n_columns), "places of a matrix of that shape")


RELATIONS: dict[str, Callable[[State], None]] = {
    "ConjunctionClassifier": _check_orders,
    "ConjunctionFeatures": _check_conjunctions,
    "ConjunctionMiner": _check_orders,
    "ConstTree": _check_trees,
    "DependencyParser": _check_values,
    "DependencyReranker": _check_reranker,
    "Forest": _check_forest,
    "L1BoostedTrees": _check_boosted,
    "Labeler": _check_labeler,
    "Lemmatizer": _check_words,
    "LinearScorer": _check_scorer,
    "Pruner": _check_pruner,
    "Stage": _check_weights,
    "StructureModel": _check_structure,
    "SubtreeFeatures": _check_subtrees,
    "Tagger": _check_tagger,
    "TemplateFeatures": _check_keys,
    "TreeKernelClassifier": _check_machine,
    "TreeKernelRegressor": _check_machine,
    "sparse": _check_sparse,
}
"""What the arrays and values of a part must have to do with each other."""
