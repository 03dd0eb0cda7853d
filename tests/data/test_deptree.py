"""DepTree: what the constructor checks, and that changed copies leave the original alone."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import dep_trees, heads

from treewright import DepTree
from treewright.data.deptree import ExtraLine, check_trees, find_head_problem
from treewright.errors import InputError


def error_of(*args, **options):
    with pytest.raises(InputError) as caught:
        DepTree(*args, **options)
    return str(caught.value)


def is_tree(chosen):
    """Tell from the definition whether every word comes to 0 by going from head to head."""
    for word in range(1, len(chosen) + 1):
        at, n_steps = word, 0
        while at:
            at, n_steps = chosen[at - 1], n_steps + 1
            if n_steps > len(chosen):
                return False
    return True


def test_columns_that_are_not_given_are_underscores():
    tree = DepTree(["a", "b"])
    for name in ("deprels", "lemmas", "upos", "xpos", "feats", "deps", "misc"):
        assert getattr(tree, name) == ["_", "_"]


def test_heads_that_are_not_given_are_unknown():
    assert DepTree(["a", "b"]).heads.tolist() == [-1, -1]


@pytest.mark.parametrize("given_heads", [[2, 0], (2, 0), np.array([2, 0]), np.array([2, 0], dtype=np.uint8)])
def test_heads_become_int32(given_heads):
    tree = DepTree(["a", "b"], given_heads)
    assert tree.heads.dtype == np.int32
    assert tree.heads.tolist() == [2, 0]


def test_a_tree_may_have_no_words():
    tree = DepTree([], [])
    assert (len(tree), tree.n_roots, tree.heads.dtype) == (0, 0, np.int32)


def test_length_is_the_number_of_words():
    assert len(DepTree(["a", "b", "c"], extra_lines=[ExtraLine(0, "0.1\t_")])) == 3


def test_roots_are_counted():
    assert DepTree(["a", "b", "c"], [0, -1, 0]).n_roots == 2


def test_constructor_copies_its_arguments():
    words, chosen = ["a"], np.array([0], dtype=np.int32)
    tree = DepTree(words, chosen)
    words.append("b")
    chosen[0] = 7
    assert (tree.words, tree.heads.tolist()) == (["a"], [0])


@pytest.mark.parametrize("name", ["deprels", "lemmas", "upos", "xpos", "feats", "deps", "misc"])
def test_a_column_of_another_length_is_refused(name):
    assert error_of(["a", "b"], **{name: ["x"]}) == f"{name} has 1 values; expected 2, one per word"


def test_a_further_column_of_another_length_is_refused():
    assert error_of(["a"], columns={"PHEAD": ["1", "2"]}) == "PHEAD has 2 values; expected 1, one per word"


@pytest.mark.parametrize(
    ("given_heads", "message"),
    [
        ([0], "heads has shape (1,); expected (2,), one head per word"),
        ([[0, 1]], "heads has shape (1, 2); expected (2,), one head per word"),
        ([0.0, 1.0], "heads has type float64; expected integers"),
        ([True, False], "heads has type bool; expected integers"),
        (["0", "1"], "heads has type <U1; expected integers"),
        ([None, 1], "heads has type object; expected integers"),
        ([10**30, 0], "heads has type object; expected integers"),
        ([0, 3], "word 2: HEAD is '3'; expected an integer from 0 to 2"),
        ([-2, 0], "word 1: HEAD is '-2'; expected an integer from 0 to 2"),
        ([0, 2], "word 2: HEAD of word 2 is the word itself; expected another word or 0"),
        ([2, 1], "word 1: HEAD makes a cycle (1 -> 2 -> 1); expected heads that lead to a root"),
    ],
)
def test_heads_that_make_no_tree_are_refused(given_heads, message):
    assert error_of(["a", "b"], given_heads) == message


@pytest.mark.parametrize("large", [2**32, 2**32 + 1, 2**63, 2**64 - 1])
def test_a_head_too_large_for_int32_does_not_wrap_around(large):
    chosen = np.array([large, 0], dtype=np.uint64)
    assert error_of(["a", "b"], chosen) == f"word 1: HEAD is '{large}'; expected an integer from 0 to 2"


@given(st.integers(1, 7).flatmap(lambda n: st.lists(st.integers(0, n), min_size=n, max_size=n)))
def test_heads_are_refused_exactly_where_a_word_does_not_come_to_the_root(chosen):
    assert (find_head_problem(chosen) is None) == is_tree(chosen)


@given(st.integers(1, 8).flatmap(heads), st.data())
def test_unknown_heads_end_the_way_to_the_root(chosen, data):
    hidden = data.draw(st.integers(0, len(chosen) - 1))
    chosen[hidden] = -1
    assert DepTree(["w"] * len(chosen), chosen).heads.tolist() == chosen


def test_a_chain_of_100000_words_is_checked():
    n = 100_000
    assert DepTree(["w"] * n, range(n)).n_roots == 1


@given(dep_trees())
def test_with_heads_changes_the_heads_alone(tree):
    before = copy.deepcopy(tree)
    changed = tree.with_heads([0] * len(tree))
    assert tree == before
    assert changed.n_roots == len(tree)
    assert changed.with_heads(tree.heads) == tree


def test_with_heads_may_change_relations_too():
    tree = DepTree(["a", "b"], [0, 1], ["root", "x"])
    changed = tree.with_heads([2, 0], ["y", "root"])
    assert (changed.heads.tolist(), changed.deprels) == ([2, 0], ["y", "root"])
    assert (tree.heads.tolist(), tree.deprels) == ([0, 1], ["root", "x"])


def test_with_heads_checks_as_the_constructor_does():
    with pytest.raises(InputError, match="word 1: HEAD of word 1 is the word itself"):
        DepTree(["a"], [0]).with_heads([1])
    with pytest.raises(InputError, match="deprels has 2 values; expected 1, one per word"):
        DepTree(["a"], [0]).with_heads([0], ["x", "y"])


@pytest.mark.parametrize("name", ["upos", "xpos", "feats", "lemmas"])
def test_with_tags_changes_the_given_column_alone(name):
    tree = DepTree(["a"], [0], ["root"], lemmas=["l"], upos=["u"], xpos=["x"], feats=["f"])
    changed = tree.with_tags(**{name: ["new"]})
    assert getattr(changed, name) == ["new"]
    assert getattr(tree, name) == [name[0]]
    assert changed.with_tags(**{name: getattr(tree, name)}) == tree


def test_with_tags_checks_the_length():
    with pytest.raises(InputError, match="upos has 0 values; expected 1, one per word"):
        DepTree(["a"]).with_tags(upos=[])


def test_with_comments_changes_the_comments_alone():
    tree = DepTree(["a"], [0], comments=["# old"])
    assert tree.with_comments(["# new"]).comments == ["# new"]
    assert tree.comments == ["# old"]
    assert tree.with_comments([]).with_comments(["# old"]) == tree


def test_metadata_are_the_comments_with_an_equals_sign():
    tree = DepTree(["a"], comments=["# newpar", "# text = 1 + 1 = 2", "#id=x", "# empty ="])
    assert tree.metadata == {"text": "1 + 1 = 2", "id": "x", "empty": ""}


@given(dep_trees())
def test_equal_trees_are_equal_and_pickle(tree):
    assert tree == copy.deepcopy(tree) == pickle.loads(pickle.dumps(tree))


@pytest.mark.parametrize(
    "other",
    [
        DepTree(["b"], [0]),
        DepTree(["a"]),
        DepTree(["a"], [0], ["x"]),
        DepTree(["a"], [0], lemmas=["x"]),
        DepTree(["a"], [0], upos=["x"]),
        DepTree(["a"], [0], xpos=["x"]),
        DepTree(["a"], [0], feats=["x"]),
        DepTree(["a"], [0], deps=["x"]),
        DepTree(["a"], [0], misc=["x"]),
        DepTree(["a"], [0], comments=["#"]),
        DepTree(["a"], [0], extra_lines=[ExtraLine(0, "0.1")]),
        DepTree(["a"], [0], columns={"X": ["x"]}),
        DepTree(["a", "b"], [0, 1]),
        "a",
        None,
    ],
)
def test_trees_that_differ_anywhere_are_not_equal(other):
    assert DepTree(["a"], [0]) != other


def test_a_tree_has_no_hash():
    with pytest.raises(TypeError):
        hash(DepTree(["a"]))


def test_repr_shows_the_first_words():
    assert repr(DepTree(["a", "b"])) == "DepTree('a b', n=2)"
    assert repr(DepTree(list("abcdefghij"))) == "DepTree('a b c d e f g h ...', n=10)"


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ("abc", "the sentences are of type str; expected a list of DepTree"),
        (DepTree(["a"]), "the sentences are of type DepTree; expected a list of DepTree"),
        ([DepTree(["a"]), "b"], "sentence 2 is of type str; expected a DepTree"),
    ],
)
def test_what_is_no_list_of_trees_is_refused(trees, message):
    with pytest.raises(InputError, match=message):
        check_trees(trees)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("The cat", "words is 'The cat'; expected a list of words, such as ['The', 'cat']"),
        (b"The cat", "words is of type bytes; expected a list of strings"),
        (None, "words is of type NoneType; expected a list of strings"),
        ({"a": 1}, "words is of type dict; expected a list of strings"),
        ({"a"}, "words is of type set; expected a list of strings"),
        ((word for word in "ab"), "words is of type generator; expected a list of strings"),
        ([["The", "cat"]], "words[0] is of type list; expected a string"),
        (["The", 3], "words[1] is of type int; expected a string"),
        (["The", None], "words[1] is of type NoneType; expected a string"),
        ([b"The"], "words[0] is of type bytes; expected a string"),
    ],
)
def test_words_that_are_no_list_of_strings_are_refused(words, message):
    with pytest.raises(InputError) as caught:
        DepTree(words)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["deprels", "lemmas", "upos", "xpos", "feats", "deps", "misc", "comments"])
def test_columns_that_are_no_lists_of_strings_are_refused(name):
    for values, found in [("ab", f"{name} is 'ab'"), (b"ab", f"{name} is of type bytes")]:
        with pytest.raises(InputError, match=f"^{found}; expected a list of strings$"):
            DepTree(["a", "b"], **{name: values})
    with pytest.raises(InputError, match=rf"^{name}\[1\] is of type int; expected a string$"):
        DepTree(["a", "b"], **{name: ["#", 3]})


def test_other_columns_and_changed_ones_are_checked_too():
    with pytest.raises(InputError, match=r"^X is 'ab'; expected a list of strings$"):
        DepTree(["a", "b"], columns={"X": "ab"})
    tree = DepTree(["a", "b"])
    with pytest.raises(InputError, match=r"^upos is 'NV'; expected a list of strings$"):
        tree.with_tags(upos="NV")
    with pytest.raises(InputError, match=r"^comments is '# x'; expected a list of strings$"):
        tree.with_comments("# x")


def test_columns_may_be_arrays_and_tuples():
    assert DepTree(np.array(["a", "b"]), upos=("X", "Y")) == DepTree(["a", "b"], upos=["X", "Y"])


def test_heads_of_uneven_lists_are_refused():
    with pytest.raises(InputError, match="heads is a list of lists; expected integers, one per word"):
        DepTree(["a", "b"], [[1], [2, 3]])
