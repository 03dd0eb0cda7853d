"""Damaged models are refused; models that somebody has changed do not lead compiled code astray."""

from random import Random

import numpy as np
import pytest
from mutations import mutate_bytes, mutate_state
from treewright._soundness import check_state

import treewright as tw
from treewright.errors import FormatError, InputError
from treewright.kernels.examples import examples_from_state
from treewright.learn.trees import ForestField
from treewright.model import REGISTRY
from treewright.persist import State, identify, load_state, save_state

N_DAMAGED = 1500
N_CHANGED = 150


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return small models of three rooms, by name: their states and bytes."""
    folder = tmp_path_factory.mktemp("models")
    bank = tw.make_treebank(n_sentences=20, random_state=0)
    data = tw.make_conjunctions(n_samples=100, n_features=50, random_state=0)
    is_long = [tree.n_nodes > 25 for tree in bank.constituents]
    models = {
        "tagger": tw.Tagger(epochs=1).fit(bank.dependencies),
        "trees": tw.L1BoostedTrees(penalty=5.0, max_trees=3).fit(data.X, data.y),
        "machine": tw.TreeKernelClassifier(tw.SubsetTreeKernel()).fit(bank.constituents, is_long),
    }
    for name, model in models.items():
        model.save(folder / name)
    return {name: (load_state(folder / name), (folder / name).read_bytes()) for name in models}


@pytest.mark.parametrize("name", ["tagger", "trees", "machine"])
def test_damaged_models_are_refused_or_the_same(name, saved, tmp_path):
    rng = Random(name)
    state, whole = saved[name]
    other = saved["trees"][1]
    path = tmp_path / "model"
    n_refused = n_same = 0
    for _ in range(N_DAMAGED):
        path.write_bytes(mutate_bytes(rng, whole, other))
        try:
            found = load_state(path)
        except FormatError as error:
            n_refused += str(error).count("\n") == 0
        else:
            n_same += identify(found) == identify(state)
    assert n_refused + n_same == N_DAMAGED


@pytest.mark.parametrize("name", ["tagger", "trees", "machine"])
def test_changed_models_are_refused_or_loaded(name, saved, tmp_path):
    rng = Random(name)
    path = tmp_path / "model"
    found = set()
    for _ in range(N_CHANGED):
        path.write_bytes(saved[name][1])
        state = load_state(path)
        mutate_state(rng, state, saved["machine"][0])
        save_state(state, path)
        try:
            tw.load(path)
        except FormatError as error:
            found.add("refused" if "\n" not in str(error) else "refused in several lines")
        else:
            found.add("loaded")
    assert found == {"refused", "loaded"}


def models_in(state):
    """Yield the states of a model and of those inside it."""
    if state.kind in REGISTRY:
        yield state
    for part in state.parts.values():
        yield from models_in(part)


@pytest.mark.parametrize("name", ["tagger", "trees", "machine"])
@pytest.mark.parametrize(("what", "extra"), [("arrays", np.zeros(1)), ("values", 1), ("parts", State("X"))])
def test_what_a_class_does_not_declare_is_refused(name, what, extra, saved):
    for state in models_in(saved[name][0]):
        changed = {"values": dict(state.values), "arrays": dict(state.arrays), "parts": dict(state.parts)}
        changed[what]["strange"] = extra
        with pytest.raises(InputError, match=f"'strange' of {state.kind}; expected none of that name"):
            REGISTRY[state.kind].from_state(State(state.kind, **changed))


def take_forest(**arrays):
    nodes = {"features": [0, -1, -1], "present": [1, -1, -1], "absent": [2, -1, -1], "roots": [0]}
    nodes |= arrays
    made = {f"f.nodes.{name}": np.array(numbers, dtype=np.int32) for name, numbers in nodes.items()}
    made |= {"f.roots": made.pop("f.nodes.roots"), "f.nodes.values": np.zeros(3)}
    return ForestField().take(State("X", {}, made), "f")


def test_a_forest_is_sound():
    assert take_forest().roots.tolist() == [0]


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"present": [3, -1, -1]}, "nodes that lead to later ones"),
        ({"present": [0, -1, -1]}, "nodes that lead to later ones"),
        ({"absent": [-5, -1, -1]}, "nodes that lead to later ones"),
        ({"present": [1, -1]}, "nodes that have all columns"),
        ({"roots": [1]}, "a first root at the first node"),
        ({"roots": [0, 3]}, "roots in increasing order"),
        ({"roots": [0, 0]}, "roots in increasing order"),
        ({"roots": [0, 1]}, "nodes that stay in their tree"),
    ],
)
def test_a_forest_whose_nodes_lead_elsewhere_is_refused(arrays, expected):
    with pytest.raises(InputError, match=expected):
        take_forest(**arrays)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indices": [0, 5]}, "places of a matrix of that shape"),
        ({"indices": [0, -1]}, "places of a matrix of that shape"),
        ({"indptr": [0, 2, 1, 2]}, "rows one after the other"),
        ({"indptr": [0, 1, 2, 3]}, "rows of all places"),
        ({"indptr": [0, 2]}, "places of a matrix of that shape"),
        ({"data": [1.0]}, "a number for each place"),
        ({"data": ["x", "y"]}, "data has 1 dimensions of <U1; expected 1 of b or i or u or f"),
        ({"more": [1]}, "array 'more' of sparse; expected none of that name"),
    ],
)
def test_places_outside_of_a_matrix_are_refused(changed, message):
    arrays = {"indptr": [0, 1, 1, 2], "indices": [0, 4], "data": [1.0, np.nan]}

    def matrix(arrays):
        made = {name: np.array(numbers) for name, numbers in arrays.items()}
        return examples_from_state(State("sparse", {"shape": [3, 5]}, made))

    assert matrix(arrays).shape == (3, 5)
    with pytest.raises(InputError, match=message):
        matrix(arrays | changed)


@pytest.mark.parametrize("kind", ["arrays", "ragged"])
@pytest.mark.parametrize("sizes", [[3], [1], [-1, 3], [1, 0]])
def test_sizes_of_other_items_than_there_are_are_refused(kind, sizes):
    items = State("plain", {"items": [1, 2]})
    arrays = {"sizes": np.array(sizes)} | ({"array": np.ones(2)} if kind == "arrays" else {})
    with pytest.raises(InputError, match="expected sizes of"):
        examples_from_state(State(kind, {"type": "tuple"}, arrays, {"items": items}))


@pytest.mark.parametrize("sizes", [[1, 1, 4], [1, 3, 3], [2, 1, 3], [1, 1, 2]])
def test_sizes_that_are_those_of_no_tree_are_refused(sizes):
    arrays = {
        "n_nodes": np.array([3]),
        "labels": np.zeros(3, dtype=np.int32),
        "sizes": np.array(sizes, dtype=np.int32),
    }
    with pytest.raises(InputError, match="expected sizes of"):
        examples_from_state(State("ConstTree", {"labels": ["a"]}, arrays))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            State("Stage", {}, {"book": np.zeros(255, "f4"), "codes": np.zeros(1, "u1")}),
            "two weights at least",
        ),
        (State("Stage", {}, {"book": np.zeros(255, "f4"), "codes": np.zeros(4)}), "codes of Stage has 1 dim"),
        (State("Stage", {}, {"pairs": np.zeros(1)}), "array 'pairs' of Stage; expected none of that name"),
        (State("Strange", {}, {"pairs": np.zeros(1)}), "array 'pairs' of Strange"),
        (State("LinearScorer", {}, {"coef": np.zeros((2, 2))}), "2 dimensions of float64; expected 1 of f"),
    ],
)
def test_arrays_that_a_kind_does_not_have_are_refused(state, message):
    with pytest.raises(InputError, match=message):
        check_state(State("Outer", {}, {}, {"inner": state}))


def stage(weight, n_slots=4):
    book = np.zeros(255, "f4")
    book[7] = weight
    return {"book": book, "codes": np.zeros(n_slots, "u1")}


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.nan, "book of Stage has numbers without a value or an end; expected finite ones"),
        (-np.inf, "book of Stage has numbers without a value or an end; expected finite ones"),
        (-1e30, r"expected weights up to 1e\+09"),
    ],
)
def test_weights_by_which_no_tree_is_the_best_are_refused(weight, message):
    with pytest.raises(InputError, match=message):
        check_state(State("Stage", {}, stage(weight)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"order": 4}, "an order of 1, 2 or 3"),
        ({"order": True}, "an order of 1, 2 or 3"),
        ({"table_bits": 1}, "a table of so many bits"),
        ({"table_bits": 10**9}, "a table of so many bits"),
    ],
)
def test_a_table_that_is_not_of_the_size_that_is_said_is_refused(changed, message):
    values = {"order": 1, "table_bits": 2, "single_root": True}
    check_state(State("StructureModel", values, stage(1.0)))
    with pytest.raises(InputError, match=message):
        check_state(State("StructureModel", values | changed, stage(1.0)))


def test_a_part_of_another_kind_than_is_used_is_refused():
    pruner = State("Pruner", {"max_heads": 4, "threshold": 0.1}, {}, {"stage0": State("Lemmatizer")})
    with pytest.raises(InputError, match="stage0 of Pruner is a Lemmatizer; expected Stage"):
        check_state(pruner)


def test_features_of_another_space_than_is_said_are_refused():
    features = State("TemplateFeatures", {}, {"keys": np.zeros(1, "u8")})
    scorer = State("LinearScorer", {"space": "subtree"}, {"coef": np.zeros(1)}, {"features": features})
    with pytest.raises(InputError, match="features of the space"):
        check_state(scorer)


@pytest.mark.parametrize(
    ("codes", "n_weights", "message"),
    [
        ([[0, 1]], 2, "a weight for each feature"),
        ([[1, 1]], 1, "arcs under those before them"),
        ([[0, 2]], 1, "arcs under those before them"),
        ([[*range(8), 0]], 1, "features of 8 arcs at the most"),
        ([[16, 1]], 1, "features that have keys"),
    ],
)
def test_subtrees_that_lead_out_of_the_arrays_are_refused(codes, n_weights, message):
    def scorer(codes, n_weights):
        arrays = {"keys": np.arange(2, dtype="u8"), "features0": np.array(codes, dtype="i4")}
        parts = {"features": State("SubtreeFeatures", {"column": "xpos"}, arrays)}
        return State("LinearScorer", {"space": "subtree"}, {"coef": np.zeros(n_weights)}, parts)

    check_state(scorer([[0, 1]], 1))
    with pytest.raises(InputError, match=message):
        check_state(scorer(codes, n_weights))


@pytest.mark.parametrize(("name", "value"), [("scale", 1), ("single_root", 1), ("fine", None)])
def test_values_of_other_types_that_code_would_be_compiled_for_are_refused(name, value):
    with pytest.raises(InputError, match=f"{name} is {value}; expected "):
        check_state(State("DependencyParser", {name: value}))
