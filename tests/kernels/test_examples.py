import json

import numpy as np
import pytest
from nltk.tree import ParentedTree, Tree
from scipy.sparse import csr_matrix

from treewright import load
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.svmlight import SparseVector, TreeExample
from treewright.errors import InputError
from treewright.kernels.compose import Part, Product, Sum, VectorKernel
from treewright.kernels.convolution import SubsetTreeKernel
from treewright.kernels.deptree import DependencyTreeKernel
from treewright.kernels.examples import (
    check_examples,
    count_examples,
    examples_from_state,
    examples_state,
    kernel_from_state,
    kernel_state,
    take_examples,
)
from treewright.kernels.machines import TreeKernelClassifier
from treewright.kernels.polynomial import PolynomialKernel
from treewright.model import load_state, save_state

TREE = ConstTree.parse("(S (NP (N Mary)) (VP (V sleeps)))")
OTHER = ConstTree.parse("(S (VP (V go)))")
SENTENCE = DepTree(["a", "dog", "barks"], [2, 3, 0], ["det", "nsubj", "root"], xpos=["DT", "NN", "VBZ"])
TEXTS = [
    "(S (NP Mary) (VP sleeps))",
    "(S (NP he) (VP eats))",
    "(Q (WH who) (VP eats))",
    "(Q (WH who) (V is))",
]
TREES = [ConstTree.parse(text) for text in TEXTS]
NLTK_TREES = [Tree.fromstring(text) for text in TEXTS]
SENTENCES = [DepTree([word, "go"], [2, 0], ["nsubj", "root"]) for word in ("I", "you", "they", "we")]
PAIR = Part(SubsetTreeKernel(), 0) + Part(SubsetTreeKernel(normalize=True), 1)
VECTOR = SparseVector(np.array([1, 5]), np.array([0.5, 2.0]))


def save_and_load(state, path):
    """Return what a state is after it was in a file."""
    save_state(state, path / "state")
    return load_state(path / "state")


@pytest.mark.parametrize(
    "examples",
    [
        [],
        [TREE, OTHER, ConstTree("word"), TREE.children[0]],
        [SENTENCE, DepTree(["go"], [0])],
        ["(S a)", "(S b)"],
        [1, 2.5, "three", True],
        [(TREE, SENTENCE), (OTHER, SENTENCE)],
        [(TREE, None), (None, 3)],
        [None, None],
        [[TREE], [], [TREE, OTHER]],
        [(), ()],
        [{"tree": TREE, "value": 1.0}, {"tree": OTHER, "value": 2.0}],
        [((TREE, (OTHER,)), 1), ((OTHER, (TREE,)), 2)],
        [TREE, "(S a)", SENTENCE, None, OTHER, "(S b)"],
        [(TREE, 1), (SENTENCE, 2), ("(S a)", None)],
    ],
)
def test_examples_come_back(examples, tmp_path):
    assert examples_from_state(save_and_load(examples_state(examples), tmp_path)) == examples


@pytest.mark.parametrize(
    "examples",
    [
        [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
        [np.array([1, 2]), np.array([3]), np.zeros(0, dtype=np.int64)],
        np.arange(6.0).reshape(2, 3),
    ],
)
def test_vectors_come_back(examples, tmp_path):
    found = examples_from_state(save_and_load(examples_state(examples), tmp_path))
    assert [each.tolist() for each in found] == [each.tolist() for each in examples]


def test_sparse_rows_come_back(tmp_path):
    matrix = csr_matrix([[0, 1.5, 0], [2, 0, 0]])
    found = examples_from_state(save_and_load(examples_state(matrix), tmp_path))
    assert found.toarray().tolist() == matrix.toarray().tolist()
    found = examples_from_state(save_and_load(examples_state([matrix[0], matrix[1]]), tmp_path))
    assert [row.toarray().tolist() for row in found] == [[[0, 1.5, 0]], [[2, 0, 0]]]


def test_examples_of_files_come_back(tmp_path):
    examples = [TreeExample(1, (TREE, None), (VECTOR,)), TreeExample(-1, (OTHER, TREE), (VECTOR,))]
    found = examples_from_state(save_and_load(examples_state(examples), tmp_path))
    assert [type(each) for each in found] == [TreeExample, TreeExample]
    assert [(each.label, each.trees) for each in found] == [(each.label, each.trees) for each in examples]
    assert found[0].vectors[0].indices.tolist() == [1, 5]
    assert found[0].vectors[0].values.tolist() == [0.5, 2.0]


def test_trees_of_nltk_come_back_as_ours(tmp_path):
    tree = Tree.fromstring(str(TREE))
    tagged = Tree("S", [("go", "V")])
    examples = [(tree, [tagged, None]), (None, [TREE, tree])]
    found = examples_from_state(save_and_load(examples_state(examples), tmp_path))
    assert found == [(TREE, [ConstTree.parse("(S (V go))"), None]), (None, [TREE, TREE])]
    assert examples_from_state(save_and_load(examples_state([tree]), tmp_path)) == [TREE]


@pytest.mark.parametrize(
    ("examples", "names"),
    [([object()], "object"), ([TREE, object(), "text"], "object"), ([{"a": 1}, {"b": 1}], "dict")],
)
def test_examples_that_cannot_be_saved_are_told(examples, names):
    with pytest.raises(InputError, match=f"examples of {names} cannot be saved; expected ConstTree, DepTree"):
        examples_state(examples)


@pytest.mark.parametrize(
    "kernel",
    [
        PolynomialKernel(3),
        DependencyTreeKernel(decay=0.25, normalize=True),
        Sum([("one", VectorKernel("rbf", gamma=0.5)), VectorKernel()], weights=[1, 2.5]),
        Product([Part(VectorKernel(), ("vectors", 0)), Part(PolynomialKernel(2), 1)]) ** 2,
    ],
)
def test_kernels_come_back(kernel, tmp_path):
    found = kernel_from_state(save_and_load(kernel_state(kernel), tmp_path))
    assert type(found) is type(kernel)
    assert str(found) == str(kernel)
    assert found.get_params().keys() == kernel.get_params().keys()


def test_numbers_and_arrays_of_numpy_among_parameters_come_back(tmp_path):
    kernel = Sum([VectorKernel(), VectorKernel("rbf", gamma=np.float64(0.5))], weights=np.array([1.0, 2.0]))
    found = kernel_from_state(save_and_load(kernel_state(kernel), tmp_path))
    assert found.weights.tolist() == [1, 2]
    assert found.kernels[1].gamma == 0.5


def test_parameters_that_cannot_be_saved_are_told():
    kernel = Sum([VectorKernel(), VectorKernel(kind=len)])
    message = r"kernel.kernels\[1\].kind is .*len.*, which cannot be saved; expected plain values or kernels"
    with pytest.raises(InputError, match=message):
        kernel_state(kernel)


@pytest.mark.parametrize("name", ["np", "nothing", "InputError", "check_rows", "TreeKernel", "ConstTree", ""])
def test_a_file_can_name_no_class_but_kernels(name):
    state = kernel_state(VectorKernel())
    state.values["kernel"]["kernel"] = name
    with pytest.raises(InputError, match=f"kernel is '{name}'; expected a kernel of treewright or of an imp"):
        kernel_from_state(state)


class DoubledKernel(VectorKernel):
    """A kernel that is not of the package."""


def test_a_kernel_of_somebody_else_comes_back(tmp_path):
    found = kernel_from_state(save_and_load(kernel_state(Sum([DoubledKernel("rbf", gamma=2.0)])), tmp_path))
    assert type(found.kernels[0]) is DoubledKernel
    assert found.kernels[0].gamma == 2


def test_a_kernel_of_the_same_name_as_another_is_refused():
    with pytest.raises(TypeError, match=r"a kernel in treewright.* is already named VectorKernel"):
        type("VectorKernel", (VectorKernel,), {"__module__": "elsewhere"})


def test_arrays_that_a_kernel_does_not_name_are_refused():
    state = kernel_state(Sum([VectorKernel()], weights=np.ones(1)))
    state.arrays["array1"] = np.ones(1)
    with pytest.raises(InputError, match="Kernel has an unknown array 'array1'; expected only its fields"):
        kernel_from_state(state)


def test_states_of_kernels_are_json():
    state = kernel_state(DependencyTreeKernel())
    assert json.loads(json.dumps(state.values)) == state.values


def test_some_examples_can_be_taken_of_anything():
    rows = np.array([2, 0])
    assert take_examples(check_examples(iter("abc")), rows) == ["c", "a"]
    assert take_examples(check_examples(("a", "b", "c")), slice(1, None)) == ["b", "c"]
    matrix = np.arange(6).reshape(3, 2)
    assert take_examples(check_examples(matrix), rows).tolist() == [[4, 5], [0, 1]]
    assert take_examples(check_examples(csr_matrix(matrix).tocsc()), rows).toarray().tolist() == [
        [4, 5],
        [0, 1],
    ]
    assert [count_examples(each) for each in ([], matrix, csr_matrix(matrix))] == [0, 3, 3]


@pytest.mark.parametrize("examples", ["text", TREE, SENTENCE, Tree("S", ["a"]), 3, None])
def test_what_is_no_list_is_told(examples):
    with pytest.raises(InputError, match="expected a list or another iterable"):
        check_examples(examples)


@pytest.mark.parametrize(
    ("kernel", "examples"),
    [
        (None, TEXTS),
        (None, TREES),
        (None, NLTK_TREES),
        (None, [ParentedTree.convert(tree) for tree in NLTK_TREES]),
        (None, SENTENCES),
        (None, [*TREES[:1], *NLTK_TREES[1:3], *TEXTS[3:], *SENTENCES[:1]]),
        (PAIR, list(zip(NLTK_TREES, SENTENCES, strict=True))),
        (PAIR, list(zip(TEXTS, [None, *NLTK_TREES[1:]], strict=True))),
    ],
)
def test_machines_of_trees_of_any_kind_can_be_saved(kernel, examples, tmp_path):
    machine = TreeKernelClassifier(kernel).fit(examples, [0, 0, 1, 1, 1][: len(examples)])
    machine.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.decision_function(examples).tolist() == machine.decision_function(examples).tolist()
