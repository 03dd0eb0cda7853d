"""Damaged models are refused; models that somebody has changed do not lead compiled code astray."""

from random import Random

import numpy as np
import pytest
from mutations import mutate_bytes, mutate_state

import treewright as tw
from treewright.errors import FormatError, InputError
from treewright.kernels.examples import examples_from_state
from treewright.learn.trees import ForestField
from treewright.model import REGISTRY, State, identify, load_state, save_state
from treewright.rerank.linear import LinearScorer

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
        "trees": tw.L1BoostedTrees(max_trees=3).fit(data.X, data.y),
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
        with pytest.raises(InputError, match=f"^{state.kind} has an unknown .* 'strange'; expected only its"):
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
        ({"present": [3, -1, -1]}, "children that follow their parent"),
        ({"present": [0, -1, -1]}, "children that follow their parent"),
        ({"absent": [-5, -1, -1]}, "children that follow their parent"),
        ({"present": [1, -1]}, "node arrays of equal length"),
        ({"roots": [1]}, "a first root at the first node"),
        ({"roots": [0, 3]}, "roots in increasing order"),
        ({"roots": [0, 0]}, "roots in increasing order"),
        ({"roots": [0, 1]}, "children in the tree of their parent"),
    ],
)
def test_a_forest_whose_nodes_lead_elsewhere_is_refused(arrays, expected):
    with pytest.raises(InputError, match=expected):
        take_forest(**arrays)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indices": [0, 5]}, "indices within the shape of the matrix"),
        ({"indices": [0, -1]}, "indices within the shape of the matrix"),
        ({"indptr": [0, 2, 1, 2]}, "row bounds in ascending order"),
        ({"indptr": [0, 1, 2, 3]}, "row bounds that cover all indices"),
        ({"indptr": [0, 2]}, "indices within the shape of the matrix"),
        ({"data": [1.0]}, "a value for each index"),
        (
            {"data": ["x", "y"]},
            "data is a 1-dimensional array of <U1; expected a 1-dimensional array of booleans or",
        ),
        ({"more": [1]}, "sparse has an unknown array 'more'; expected only its fields"),
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
    with pytest.raises(InputError, match=r"expected (sizes of|list sizes)"):
        examples_from_state(State(kind, {"type": "tuple"}, arrays, {"items": items}))


@pytest.mark.parametrize("sizes", [[1, 1, 4], [1, 3, 3], [2, 1, 3], [1, 1, 2]])
def test_sizes_that_are_those_of_no_tree_are_refused(sizes):
    arrays = {
        "n_nodes": np.array([3]),
        "labels": np.zeros(3, dtype=np.int32),
        "sizes": np.array(sizes, dtype=np.int32),
    }
    with pytest.raises(InputError, match="subtree sizes"):
        examples_from_state(State("ConstTree", {"labels": ["a"]}, arrays))


def part_of(state, path):
    """Return a model inside a model."""
    for name in path:
        state = state.parts[name]
    return state


@pytest.fixture(scope="module")
def parser():
    bank = tw.make_treebank(n_sentences=20, random_state=0).dependencies
    return tw.DependencyParser(order=1, epochs=1, runs=1, table_bits=10).fit(bank)


PRUNER, SCORER = ("decoder", "pruner"), ("scorer_",)


@pytest.mark.parametrize(
    ("path", "name", "array", "message"),
    [
        (PRUNER, "coarse_weights.codes", np.zeros(1, "u1"), "a table of at least 2 weights"),
        (
            PRUNER,
            "coarse_weights.codes",
            np.zeros(4),
            "coarse_weights.codes is a 1-dimensional array of float64; exp",
        ),
        (PRUNER, "pairs", np.zeros(1), "Pruner has an unknown array 'pairs'; expected only its fields"),
        (
            PRUNER,
            "coarse_weights.book",
            np.full(255, np.nan),
            "book contains NaN or infinity; expected finite",
        ),
        (
            SCORER,
            "weights.book",
            np.full(255, -np.inf),
            "book contains NaN or infinity; expected finite numbers",
        ),
        (SCORER, "weights.book", np.full(255, -1e30), r"weights.book of at least -1e\+09"),
        (SCORER, "weights.book", np.full(255, 1e30), r"weights.book of at most 1e\+09"),
        (SCORER, "weights.codes", np.zeros(512, "u1"), r"a table of 2 \*\* table_bits weights"),
        (("labeler",), "weights.codes", np.zeros(1, "u1"), "a table of at least 2 weights"),
        (("labeler",), "pairs", np.array([2, 1]), "pairs in increasing order"),
        (("labeler",), "pairs", np.array([-1, 1]), "pairs of at least 0"),
    ],
)
def test_arrays_that_lead_compiled_code_of_parsers_astray_are_refused(path, name, array, message, parser):
    state = parser.get_state()
    part_of(state, path).arrays[name] = array
    with pytest.raises(InputError, match=message):
        tw.DependencyParser.from_state(state)


@pytest.mark.parametrize(
    ("path", "name", "value", "message"),
    [
        (SCORER, "order", 4, "order is 4; expected one of 1, 2, 3"),
        (SCORER, "order", True, "order is True; expected one of 1, 2, 3"),
        (SCORER, "table_bits", 1, "table_bits is 1; expected an integer from 10 to 28"),
        (SCORER, "table_bits", 10**9, "table_bits is 1000000000; expected an integer from 10 to 28"),
        (SCORER, "table_bits", 11, r"a table of 2 \*\* table_bits weights"),
        (PRUNER, "max_heads", 0, "max_heads is 0; expected an integer of at least 1"),
        (PRUNER, "threshold", 2, "threshold is 2; expected a number from 0 to 1"),
        (PRUNER, "single_root", 1, "single_root is 1; expected "),
        (PRUNER, "fine", None, "fine is None; expected "),
        (PRUNER, "fine", True, "weights of each stage"),
    ],
)
def test_parameters_that_no_parser_has_are_refused(path, name, value, message, parser):
    state = parser.get_state()
    part = part_of(state, path)
    part.values["params"] = part.values["params"] | {name: value}
    with pytest.raises(InputError, match=message):
        tw.DependencyParser.from_state(state)


@pytest.mark.parametrize(("path", "name", "value"), [((), "scale", 1), (("decoder",), "single_root", 1)])
def test_values_of_other_types_that_code_would_be_compiled_for_are_refused(path, name, value, parser):
    state = parser.get_state()
    part_of(state, path).values[name] = value
    with pytest.raises(InputError, match=f"{name} is {value}; expected "):
        tw.DependencyParser.from_state(state)


def test_a_part_of_another_kind_than_is_used_is_refused(parser):
    state = parser.get_state()
    state.parts["decoder"].parts["pruner"] = state.parts["labeler"]
    with pytest.raises(InputError, match="pruner is a Labeler; expected Pruner"):
        tw.DependencyParser.from_state(state)


def scorer_of_subtrees(codes, n_weights):
    values = {"encoder": [["a"], ["b"], "xpos"], "features": 1}
    arrays = {"keys": np.arange(2, dtype="u8"), "features0": np.array(codes, dtype="i4")}
    parts = {"features": State("SubtreeFeatures", values, arrays)}
    return State("LinearScorer", {}, {"coef": np.zeros(n_weights)}, parts)


@pytest.mark.parametrize(
    ("codes", "n_weights", "message"),
    [
        ([[0, 1]], 2, "a weight for each feature"),
        ([[1, 1]], 1, "arcs in depth-first order"),
        ([[0, 2]], 1, "arcs in depth-first order"),
        ([[*range(8), 0]], 1, "features of at most 8 arcs"),
        ([[16, 1]], 1, "features of known arc features"),
        (
            [[[0, 1]]],
            1,
            "features0 is a 3-dimensional array of int32; expected a 2-dimensional array of integers",
        ),
    ],
)
def test_subtrees_that_lead_out_of_the_arrays_are_refused(codes, n_weights, message):
    LinearScorer.from_state(scorer_of_subtrees([[0, 1]], 1))
    with pytest.raises(InputError, match=message):
        LinearScorer.from_state(scorer_of_subtrees(codes, n_weights))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"space": "polynomial"}, "features of the space"),
        ({"learner": "kernel"}, "the scorer of the learner"),
    ],
)
def test_features_of_another_space_than_is_said_are_refused(options, message, parser):
    learnt = {"beta": 1.0, "scale": 1.0, "oracle": 1.0, "jackknife_uas": 1.0, "is_trusted": True}

    def reranker(**params):
        values = {"params": params, "gain": None, "p_value": None, **learnt}
        parts = {"parser": parser.get_state(), "scorer": scorer_of_subtrees([[0, 1]], 1)}
        return State("DependencyReranker", values, {}, parts)

    tw.DependencyReranker.from_state(reranker())
    with pytest.raises(InputError, match=message):
        tw.DependencyReranker.from_state(reranker(**options))
