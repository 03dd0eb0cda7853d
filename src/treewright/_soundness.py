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

WEIGHTS: Types = {"book": ("f", 1), "codes": ("u", 1)}
WORDS: Types = {**WEIGHTS, "keys": ("u", 1), "sizes": ("u", 1), "pieces": ("u", 1)}
FOREST: Types = {
    "features": ("i", 1),
    "present": ("i", 1),
    "absent": ("i", 1),
    "roots": ("i", 1),
    "values": ("f", 1),
}
RANKER: Types = {
    "coef": ("f", 1),
    "amounts": ("f", 1),
    "lives": ("i", 1),
    "right": ("i", 1),
    "support": ("i", 1),
    "wrong": ("i", 1),
}
NETWORK: Types = {
    **dict.fromkeys(("bias", "output_bias"), ("f", 1)),
    **dict.fromkeys(("decisions", "input", "links", "output", "symbols", "tags", "words"), ("f", 2)),
}

ARRAYS: dict[str, Types] = {
    "ConstituentParser": {**FOREST, **dict.fromkeys(("firsts", "lasts", "onlys"), ("b", 2))},
    "KernelScorer": {"coef": ("f", 2), "heads": ("i", 1)},
    "KernelVotedPerceptron": RANKER,
    "Labeler": {**WEIGHTS, "pairs": ("i", 1)},
    "LeftCornerParser": NETWORK,
    "Lemmatizer": WORDS,
    "LinearScorer": {"coef": ("f", 1)},
    "StructuredSVM": {"coef": ("f", 1)},
    "Stage": WEIGHTS,
    "StructureModel": WEIGHTS,
    "SubtreeFeatures": {"features": ("i", 2), "keys": ("u", 1)},
    "Tagger": {**WORDS, "forms": ("u", 1), "classes": ("i", 1)},
    "TemplateFeatures": {"keys": ("u", 1)},
    "VotedPerceptron": RANKER,
}
"""The arrays of each kind of part: what their numbers are, as NumPy's letters, and how many dimensions they
have. Numbers at the end of names are not looked at."""

PHRASE_PARSERS = ("ConstituentParser", "LeftCornerParser")
FEATURES = {
    "subtree": "SubtreeFeatures",
    "polynomial": "ConjunctionFeatures",
    "template": "TemplateFeatures",
}
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "CandidateReranker": {"kernel": ("Kernel",)},
    "ConjunctionFeatures": {"features": ("SubtreeFeatures",)},
    "ConstituentParser": {"tagger": ("Tagger",)},
    "ConstituentReranker": {
        "kernel": ("Kernel",),
        "parser": PHRASE_PARSERS,
        "second": PHRASE_PARSERS,
        "reranker": ("CandidateReranker",),
    },
    "DecisionVocabulary": {"words": ("TagWordVocabulary",)},
    "DependencyParser": {
        "encoder": ("Encoder",),
        "labeler": ("Labeler",),
        "pruner": ("Pruner",),
        "structure": ("StructureModel",),
        "tagger": ("Tagger",),
    },
    "DependencyReranker": {"parser": ("DependencyParser",), "scorer": ("KernelScorer", "LinearScorer")},
    "Labeler": {"encoder": ("Encoder",)},
    "LeftCornerParser": {
        "chains": ("UnaryChains",),
        "tagger": ("Tagger",),
        "vocabulary": ("DecisionVocabulary",),
    },
    "LinearScorer": {"features": tuple(FEATURES.values())},
    "Pruner": {"stage": ("Stage",)},
    "Tagger": {"lemmatizer": ("Lemmatizer",)},
}
"""The kinds that parts of models have, by names; what is looked at depends on what a part says it is."""
EXAMPLES = (
    *("ConstTree", "DepTree", "Kernel", "array", "arrays", "columns", "dict", "mixed", "optional", "plain"),
    *("ragged", "rows", "sparse"),
)
"""Kinds that `treewright.kernels.examples` checks as it reads them."""
LARGEST_WEIGHT = 1e9
"""Beyond all that is learnt, and small enough for sums of weights to be told apart."""


def check_state(state: State) -> None:
    """Check all arrays of a model and of those inside it.

    Raises
    ------
    InputError
        For an array that is not what its kind has, or that leads out of another.
    """
    if state.kind in REGISTRY or state.kind in EXAMPLES:
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
    if array.dtype.kind == "f" and not np.isfinite(array).all():
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


def _check_grammar(state: State) -> None:
    _check_forest(state)
    n_labels, n_tags = (len(state.values["symbols"][place]) for place in range(2))
    shapes = {state.arrays[name].shape for name in ("firsts", "lasts", "onlys")}
    _expect(shapes == {(n_labels, n_labels + n_tags + 1)}, "tables of all labels and symbols")


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


RELATIONS: dict[str, Callable[[State], None]] = {
    "ConjunctionFeatures": _check_conjunctions,
    "ConstituentParser": _check_grammar,
    "DependencyParser": _check_values,
    "DependencyReranker": _check_reranker,
    "Labeler": _check_labeler,
    "Lemmatizer": _check_words,
    "LinearScorer": _check_scorer,
    "Pruner": _check_pruner,
    "Stage": _check_weights,
    "StructureModel": _check_structure,
    "SubtreeFeatures": _check_subtrees,
    "Tagger": _check_tagger,
    "TemplateFeatures": _check_keys,
}
"""What the arrays and values of a part must have to do with each other."""
