import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from treewright import ConstTree, DepTree
from treewright.data.svmlight import SparseVector
from treewright.errors import InputError
from treewright.kernels.inputs import as_matrix, as_tree, as_trees

TEXT = "(S (NP-SBJ (N Mary)) (VP (V sleeps)))"
TREE = ConstTree.parse(TEXT)
SENTENCE = DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"], upos=["N", "V"])


class LikeNltk(list):
    """What of an nltk.Tree is looked at."""

    def __init__(self, label, children):
        super().__init__(children)
        self._label = label

    def label(self):
        return self._label


def test_trees_stay_what_they_are():
    assert as_tree(TREE) is TREE


def test_strings_are_brackets_as_they_are_written():
    assert as_tree(TEXT) == TREE
    assert as_tree(np.str_(TEXT)) == TREE


def test_dependency_trees_are_converted():
    assert str(as_tree(SENTENCE)) == "(ROOT (root (nsubj (N Mary)) (V sleeps)))"
    assert str(as_tree(SENTENCE, centre="word")) == "(ROOT (sleeps (Mary nsubj N) root V))"


def test_nltk_trees_are_told_by_what_they_can_do():
    given = LikeNltk("S", [LikeNltk("NP-SBJ", [LikeNltk("N", ["Mary"])]), LikeNltk("VP", [("sleeps", "V")])])
    assert as_tree(given) == TREE


def test_real_nltk_trees_are_read():
    nltk = pytest.importorskip("nltk")
    assert as_tree(nltk.Tree.fromstring(TEXT)) == TREE
    assert (
        str(as_tree(nltk.Tree("S", [nltk.Tree("NP", [("a", "DT")]), ("b", "V")]))) == "(S (NP (DT a)) (V b))"
    )


def test_a_list_of_trees_comes_back_as_it_is():
    trees = [TREE, TREE]
    assert as_trees(trees) is trees


def test_examples_of_all_kinds_become_trees():
    assert as_trees([TREE, TEXT, SENTENCE], centre="tag") == [TREE, TREE, as_tree(SENTENCE, centre="tag")]


def test_arrays_of_trees_are_sequences_like_others():
    array = np.empty(2, dtype=object)
    array[:] = [TREE, TREE]
    assert as_trees(array) == [TREE, TREE]
    assert as_trees(np.array([TEXT, TEXT])) == [TREE, TREE]
    assert as_trees((TREE, TEXT)) == [TREE, TREE]
    assert as_trees(tree for tree in [TREE]) == [TREE]


def test_there_may_be_no_examples():
    assert as_trees([]) == []


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (
            [TREE, 3.5],
            "example 1: the tree is of the type float; expected a ConstTree, a DepTree, an nltk.Tree",
        ),
        ([None], "example 0: the tree is of the type NoneType; expected a ConstTree"),
        ([TREE, "(S (N a)"], r"example 1: '\(S \(N a\)' has end of input inside the tree"),
        (["dogs bark"], "example 0: 'dogs bark' has 'dogs' outside brackets; expected '\\('"),
        ([DepTree(["a"])], "example 0: word 1 has no head; expected one from 0 to 1"),
        ([LikeNltk("S", [5])], "example 0: a leaf has the type int; expected a string or a"),
        ([LikeNltk("a b", ["c"])], "example 0: label is 'a b'; expected a non-empty string"),
        (TEXT, r"trees are the string '\(S .*'; expected a sequence of trees"),
        (TREE, "trees are of the type ConstTree; expected a sequence of trees"),
        (LikeNltk("S", ["a"]), "trees are of the type LikeNltk; expected a sequence of trees"),
        ([SENTENCE, [TREE]], "example 1: the tree is of the type list; expected a ConstTree"),
    ],
)
def test_what_is_no_tree_is_told_with_its_number(examples, message):
    with pytest.raises(InputError, match=message):
        as_trees(examples)


# vectors

ROWS = [[1.0, 0.0, 2.0], [0.0, 0.0, 0.5]]
SPARSE = [
    SparseVector(np.array([1, 3]), np.array([1.0, 2.0])),
    SparseVector(np.array([3]), np.array([0.5])),
]


@pytest.mark.parametrize(
    "examples",
    [
        np.array(ROWS),
        ROWS,
        [np.array(row) for row in ROWS],
        csr_matrix(ROWS),
        csr_matrix(ROWS).tocoo(),
        [csr_matrix([row]) for row in ROWS],
        [csr_array(np.array([row])) for row in ROWS],
        SPARSE,
    ],
)
def test_vectors_of_all_kinds_become_a_matrix(examples):
    found = as_matrix(examples)
    assert found.dtype == np.float64
    assert (found if isinstance(found, np.ndarray) else found.toarray()).tolist() == ROWS


def test_arrays_of_rows_are_sequences_like_others():
    rows = np.empty(2, dtype=object)
    rows[:] = [csr_matrix([row]) for row in ROWS]
    assert as_matrix(rows).toarray().tolist() == ROWS


def test_sparse_vectors_have_as_many_columns_as_are_needed():
    assert as_matrix(SPARSE, n_columns=2).shape == (2, 3)
    assert as_matrix(SPARSE, n_columns=5).shape == (2, 5)


def test_no_vectors_have_the_columns_of_others():
    assert as_matrix([], n_columns=4).shape == (0, 4)


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([[1, 2], [1]], r"example 1 has the shape \(1,\); expected \(2,\), like the first"),
        ([[1, 2], "a"], "example 1 is the string 'a'; expected numbers"),
        ([[[1]]], r"example 0 has the shape \(1, 1\); expected one dimension"),
        (
            [csr_matrix((1, 2)), csr_matrix((1, 3))],
            r"example 1 has the shape \(1, 3\); expected a row with 2",
        ),
        (np.array([1.0]), "the array has 1 dimensions; expected 2, with a row for each example"),
        (np.array([["a"]]), "the array is of the type ndarray; expected numbers"),
        ([[1, np.nan]], "a vector has the value nan; expected finite numbers"),
        (csr_matrix([[np.inf]]), "a vector has the value inf; expected finite numbers"),
        (3, "vectors are of the type int; expected a sequence of vectors"),
    ],
)
def test_what_is_no_vector_is_told(examples, message):
    with pytest.raises(InputError, match=message):
        as_matrix(examples)


def test_vectors_must_have_the_columns_of_others():
    with pytest.raises(InputError, match="vectors have 3 columns; expected 2, like the others"):
        as_matrix(ROWS, n_columns=2)
