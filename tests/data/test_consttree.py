"""ConstTree against its twin of nested tuples, at any depth, and from Python code."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import consttree as oracle
from strategies import as_const_tree, labels, nodes

from treewright import ConstTree, Span
from treewright.data.consttree import TRACE, cut_functions, escape, unescape_word
from treewright.errors import FormatError, InputError

DEPTH = 20_000
SENTENCE = "(S (NP-SBJ-1 (D the) (N dog)) (VP (V barks) (NP (-NONE- *T*-1))))"


@pytest.fixture(scope="module")
def deep():
    """Return a tree of DEPTH nodes over one word, each with a trace beside it."""
    return ConstTree.parse("(A-B (-NONE- *) " * DEPTH + "(N w)" + ")" * DEPTH)


# against the twin


@given(nodes())
def test_labels_and_sizes_are_those_of_the_nodes_in_post_order(node):
    tree = as_const_tree(node)
    assert list(tree.labels) == oracle.labels(node)
    assert tree.sizes.tolist() == oracle.sizes(node)
    assert tree.sizes.dtype == np.int32
    assert tree.n_nodes == len(oracle.nodes(node))


@given(nodes())
def test_label_and_children_are_those_of_the_root(node):
    tree = as_const_tree(node)
    assert tree.label == node.label
    assert tree.children == tuple(map(as_const_tree, node.children))
    assert not tree.is_leaf


@given(nodes())
def test_parents_equal_those_of_the_twin(node):
    parents = as_const_tree(node).parents()
    assert parents.tolist() == oracle.parents(node)
    assert parents.dtype == np.int32


@given(nodes())
def test_words_and_tags_equal_those_of_the_twin(node):
    tree = as_const_tree(node)
    assert tree.words() == oracle.words(node)
    assert tree.tags() == oracle.tags(node)


@given(nodes())
def test_spans_equal_those_of_the_twin(node):
    assert as_const_tree(node).spans() == oracle.spans(node)


@given(nodes())
def test_text_equals_that_of_the_twin(node):
    assert str(as_const_tree(node)) == oracle.to_text(node)


@given(nodes())
def test_text_parses_back_to_the_same_tree(node):
    tree = as_const_tree(node)
    assert ConstTree.parse(str(tree)) == tree


@given(nodes())
def test_subtrees_are_views_equal_to_trees_of_their_own(node):
    views = list(as_const_tree(node).subtrees())
    fresh = [as_const_tree(one) for one in oracle.nodes(node)]
    assert views == fresh
    assert list(map(hash, views)) == list(map(hash, fresh))


@given(nodes())
def test_every_operation_on_a_view_equals_that_on_a_tree_of_its_own(node):
    for view, one in zip(as_const_tree(node).subtrees(), oracle.nodes(node), strict=True):
        assert list(view.labels) == oracle.labels(one)
        assert view.sizes.tolist() == oracle.sizes(one)
        assert view.parents().tolist() == oracle.parents(one)
        assert view.words() == oracle.words(one)
        assert view.tags() == oracle.tags(one)
        assert view.spans() == oracle.spans(one)
        assert view.children == tuple(map(as_const_tree, one.children))
        assert str(view) == oracle.to_text(one)


@given(nodes())
def test_views_share_the_sizes_of_the_whole_tree(node):
    tree = as_const_tree(node)
    assert all(np.shares_memory(view.sizes, tree.sizes) for view in tree.subtrees())


@given(nodes())
def test_without_functions_equals_the_twin(node):
    assert as_const_tree(node).without_functions() == as_const_tree(oracle.without_functions(node))


@given(nodes(), st.sets(labels(), max_size=3).map(frozenset))
def test_without_tags_equals_the_twin(node, dropped):
    dropped |= {"N", "NP"}
    expected = oracle.without_tags(node, dropped)
    assert as_const_tree(node).without_tags(dropped) == (expected and as_const_tree(expected))


@given(nodes())
def test_without_traces_equals_the_twin(node):
    expected = oracle.without_tags(node, {TRACE})
    assert as_const_tree(node).without_traces() == (expected and as_const_tree(expected))


@given(nodes())
def test_views_lose_traces_as_whole_trees_do(node):
    for view in as_const_tree(node).subtrees():
        assert view.without_traces() == copy.deepcopy(view).without_traces()


@given(nodes(), nodes())
def test_trees_are_equal_when_their_nodes_are(one, other):
    assert (as_const_tree(one) == as_const_tree(other)) == (one == other)


@given(nodes())
def test_pickling_keeps_a_tree(node):
    tree = as_const_tree(node)
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert copy.deepcopy(tree) == copy.copy(tree) == tree


@given(nodes())
def test_pickling_keeps_a_view(node):
    for view in as_const_tree(node).subtrees():
        assert pickle.loads(pickle.dumps(view)) == view


# single facts


def test_a_sentence_has_its_words_and_tags():
    tree = ConstTree.parse(SENTENCE)
    assert tree.words() == ["the", "dog", "barks", "*T*-1"]
    assert tree.tags() == ["D", "N", "V", "-NONE-"]


def test_spans_count_words_from_zero_and_exclude_the_end():
    spans = ConstTree.parse("(S (NP (D the) (N dog)) (V barks))").spans()
    assert spans == [Span("D", 0, 1), Span("N", 1, 2), Span("NP", 0, 2), Span("V", 2, 3), Span("S", 0, 3)]


def test_a_string_among_the_children_is_a_leaf():
    assert ConstTree("N", ["dog"]) == ConstTree("N", [ConstTree("dog")]) == ConstTree.parse("(N dog)")


def test_a_lone_leaf_is_its_own_word_without_a_tag():
    leaf = ConstTree("dog")
    assert leaf.is_leaf
    assert (leaf.words(), leaf.tags(), leaf.spans(), leaf.children) == (["dog"], [], [], ())
    assert (str(leaf), repr(leaf)) == ("dog", "ConstTree('dog')")


def test_words_and_brackets_may_stand_side_by_side():
    tree = ConstTree.parse("(S a (N b) c)")
    assert (tree.words(), tree.tags()) == (["a", "b", "c"], ["S", "N", "S"])


def test_equality_tells_structure_from_labels():
    assert ConstTree.parse("(A (B x) y)") != ConstTree.parse("(A (B x y))")


def test_a_tree_equals_no_other_object():
    assert ConstTree("a") != "a"


def test_equal_trees_are_one_in_a_set():
    assert len({ConstTree.parse(SENTENCE), ConstTree.parse(SENTENCE), ConstTree.parse("(N a)")}) == 2


def test_a_child_hashes_as_the_same_tree_read_alone():
    assert hash(ConstTree.parse("(S (N a))").children[0]) == hash(ConstTree.parse("(N a)"))


def test_pickling_a_view_leaves_the_rest_of_the_tree_out():
    whole = ConstTree("S", [ConstTree("N", [f"word{number}"]) for number in range(1000)])
    assert len(pickle.dumps(whole.children[0])) < 1000


def test_brackets_in_labels_are_escaped_in_text():
    assert str(ConstTree("-LRB-", ["("])) == "(-LRB- -LRB-)"
    assert str(ConstTree("X", ["a)b("])) == "(X a-RRB-b-LRB-)"


def test_unescaping_gives_the_words_back():
    words = ["(", ")", "[", "]", "{", "}", "1/2", "*", "a(b)c"]
    escaped = ["-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-", "1\\/2", "\\*", "a-LRB-b-RRB-c"]
    assert [unescape_word(word) for word in escaped] == words
    assert [unescape_word(escape(word)) for word in words] == words


@pytest.mark.parametrize(
    ("label", "cut"),
    [
        ("NP", "NP"),
        ("NP-SBJ", "NP"),
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("NP=2-SBJ", "NP"),
        ("-NONE-", "-NONE-"),
        ("-LRB-", "-LRB-"),
        ("-", "-"),
        ("=", "="),
        ("=-x", "="),
        ("X-", "X"),
        ("ADVP|PRT", "ADVP|PRT"),
        ("PRP$", "PRP$"),
    ],
)
def test_function_tags_are_cut_off(label, cut):
    assert cut_functions(label) == cut


def test_without_functions_leaves_words_alone():
    assert str(ConstTree.parse("(NP-SBJ (N-X well-known))").without_functions()) == "(NP (N well-known))"


def test_without_traces_removes_what_dominates_nothing_else():
    assert str(ConstTree.parse(SENTENCE).without_traces()) == "(S (NP-SBJ-1 (D the) (N dog)) (VP (V barks)))"


def test_without_traces_is_none_when_nothing_is_left():
    assert ConstTree.parse("(S (NP (-NONE- *)) (VP (-NONE- *)))").without_traces() is None


def test_without_traces_is_the_same_tree_when_there_are_none():
    tree = ConstTree.parse("(S (N a))")
    assert tree.without_traces() is tree


def test_without_traces_keeps_a_word_that_looks_like_a_trace():
    assert str(ConstTree.parse("(S (N -NONE-) (N *))").without_traces()) == "(S (N -NONE-) (N *))"


def test_without_tags_removes_every_word_directly_under_a_tag():
    assert str(ConstTree.parse("(S (X a b) (X (Y c) d) e)").without_tags({"X"})) == "(S (X (Y c)) e)"


def test_operations_leave_the_tree_as_it_was():
    tree = ConstTree.parse(SENTENCE)
    tree.without_functions(), tree.without_traces(), tree.with_words(["a", "b", "c", "d"])
    assert str(tree) == SENTENCE


def test_with_words_replaces_the_leaves():
    tree = ConstTree.parse("(S (N a) (V b))")
    assert str(tree.with_words(["x", "y"])) == "(S (N x) (V y))"
    assert str(tree.children[1].with_words(["z"])) == "(V z)"


def test_with_words_refuses_another_number_of_words():
    with pytest.raises(InputError, match="words has 1 values; expected 2, one per leaf"):
        ConstTree.parse("(S (N a) (V b))").with_words(["x"])


@pytest.mark.parametrize("label", ["", " ", "a b", "a\tb", "a\n", "\r", "\x0b", "\x0c", "\0", None, 3, b"a"])
def test_a_label_that_cannot_be_written_is_refused(label):
    message = f"label is {label!r}; expected a non-empty string without whitespace and NUL"
    for make in (ConstTree, lambda bad: ConstTree("S", [bad]), ConstTree("N", ["a"]).with_words):
        with pytest.raises(InputError) as caught:
            make([label] if make.__name__ == "with_words" else label)
        assert str(caught.value) == message


@pytest.mark.parametrize("label", ["a\u00a0b", "\u3000", "\u2028", "\x85", "\x1c", "(", "#", "é"])
def test_any_other_character_may_stand_in_a_label(label):
    assert ConstTree(label).label == label


def test_a_string_for_the_children_is_refused():
    with pytest.raises(InputError) as caught:
        ConstTree("N", "dog")
    assert str(caught.value) == "children is 'dog'; expected a sequence, such as ['dog']"


def test_repr_of_a_small_tree_makes_it_again():
    tree = ConstTree.parse(SENTENCE)
    assert repr(tree) == f"ConstTree.parse({SENTENCE!r})"
    assert eval(repr(tree)) == tree


def test_repr_of_a_large_tree_is_short():
    assert repr(ConstTree("S", ["a"] * 500)) == "<ConstTree S with 501 nodes>"


def test_from_arrays_takes_nodes_in_post_order():
    assert str(ConstTree.from_arrays(["a", "N", "S"], np.array([1, 2, 3], dtype=np.int32))) == "(S (N a))"


def test_from_child_counts_takes_nodes_in_post_order():
    assert str(ConstTree.from_child_counts(["a", "N", "b", "S"], [0, 1, 0, 2])) == "(S (N a) b)"


# deep trees


def test_a_deep_tree_is_read_whole(deep):
    assert deep.n_nodes == 3 * DEPTH + 2
    assert (deep.words()[-1], deep.tags()[-1]) == ("w", "N")


def test_a_deep_tree_is_written_as_it_was_read(deep):
    assert str(deep) == "(A-B (-NONE- *) " * DEPTH + "(N w)" + ")" * DEPTH


def test_a_deep_tree_has_parents_and_spans(deep):
    assert np.count_nonzero(deep.parents() == -1) == 1
    assert deep.spans()[-1] == Span("A-B", 0, DEPTH + 1)


def test_a_deep_tree_loses_its_traces_and_functions(deep):
    assert str(deep.without_traces().without_functions()) == "(A " * DEPTH + "(N w)" + ")" * DEPTH


def test_a_deep_tree_of_traces_alone_vanishes():
    assert ConstTree.parse("(A " * DEPTH + "(-NONE- *)" + ")" * DEPTH).without_traces() is None


def test_a_deep_tree_is_compared_hashed_copied_and_pickled(deep):
    again = ConstTree.parse(str(deep))
    assert deep == again
    assert hash(deep) == hash(again)
    assert pickle.loads(pickle.dumps(deep)) == copy.deepcopy(deep) == deep


def test_a_deep_tree_is_walked_from_child_to_child(deep):
    tree, n_steps = deep, 0
    while not tree.is_leaf:
        tree, n_steps = tree.children[-1], n_steps + 1
    assert (tree.label, n_steps) == ("w", DEPTH + 1)


def test_a_deep_tree_yields_its_subtrees(deep):
    assert sum(1 for _ in deep.subtrees()) == deep.n_nodes


def test_a_deep_tree_takes_other_words_and_a_new_root(deep):
    over = ConstTree("TOP", [deep.with_words(["x"] * (DEPTH + 1))])
    assert over.words() == ["x"] * (DEPTH + 1)
    assert repr(over) == f"<ConstTree TOP with {over.n_nodes} nodes>"


# Python code


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", "Module"),
        ("pass", "(Module Pass)"),
        ("x = 1", "(Module (Assign (Name x) (Constant 1)))"),
        ("a + b * c", "(Module (Expr (BinOp (Name a) Add (BinOp (Name b) Mult (Name c)))))"),
        ("not a", "(Module (Expr (UnaryOp Not (Name a))))"),
        ("a < b", "(Module (Expr (Compare (Name a) Lt (Name b))))"),
        ("f(x)", "(Module (Expr (Call (Name f) (Name x))))"),
        ("x.y", "(Module (Expr (Attribute (Name x) y)))"),
        ("None", "(Module (Expr (Constant None)))"),
        ("u'a b'", "(Module (Expr (Constant a_b)))"),
        ("'(a)'", "(Module (Expr (Constant -LRB-a-RRB-)))"),
        ("''", "(Module (Expr (Constant _)))"),
        ("' \\n\\t'", "(Module (Expr (Constant _)))"),
        ("b'a b'", "(Module (Expr (Constant b'a_b')))"),
        ("'\\0'", "(Module (Expr (Constant \\x00)))"),
        ("'\\ud800'", "(Module (Expr (Constant \\ud800)))"),
        ("...", "(Module (Expr (Constant Ellipsis)))"),
        ("{**a}", "(Module (Expr (Dict (Name a))))"),
        ("global a, b", "(Module (Global a b))"),
        ("match x:\n case None: pass", "(Module (Match (Name x) (match_case (MatchSingleton None) Pass)))"),
    ],
)
def test_python_code_becomes_its_syntax_tree(source, expected):
    assert str(ConstTree.from_python(source)) == expected


def test_python_trees_can_be_written_and_read_back():
    source = (
        "def f(a, *b, c=1, **d):\n    '''Two words.'''\n    return [x for x in (a, 'x y', 2.5, 1j) if x]\n"
    )
    tree = ConstTree.from_python(source)
    assert ConstTree.parse(str(tree)) == tree
    assert {"FunctionDef", "ListComp", "Two_words.", "2.5", "1j"} <= set(tree.labels)


def test_python_integers_too_long_for_decimal_are_hexadecimal():
    source = "0x" + "f" * 5000
    assert ConstTree.from_python(source).words() == [source]


def test_python_code_with_a_doubtful_escape_is_read_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ConstTree.from_python(r"'\d'").words() == ["\\d"]


@pytest.mark.parametrize(
    ("source", "line"), [("x = = 1", 1), ("x = 1\nif x\n    pass\n", 2), ("a\n\n(b", 3), ("'", 1)]
)
def test_python_syntax_errors_name_the_line(source, line):
    with pytest.raises(FormatError) as caught:
        ConstTree.from_python(source)
    assert str(caught.value).startswith(f"<python>:{line}: ")
    assert str(caught.value).endswith("; expected Python source code")


@pytest.mark.parametrize(
    "source", ["a\0b", "\0", "\ud800", "x = '\ud800'", "9" * 5000, "\x0c\x00", "# coding: nowhere\0"]
)
def test_text_that_cannot_be_python_is_a_format_error(source):
    with pytest.raises(FormatError, match=r"^<python>:\d+: .*expected Python source code$"):
        ConstTree.from_python(source)


def test_python_code_nested_too_deep_for_python_is_a_format_error():
    with pytest.raises(FormatError, match=r"^<python>:1: .*expected Python source code$"):
        ConstTree.from_python("(" * DEPTH)


@pytest.mark.parametrize(
    "source", ["-" * DEPTH + "1", "+".join(["1"] * DEPTH), "x" + ".a" * DEPTH, "x = " * DEPTH + "1"]
)
def test_deep_python_code_is_read_or_refused(source):
    try:
        tree = ConstTree.from_python(source)
    except FormatError as error:
        shown = str(error)
    else:
        shown = str(ConstTree.parse(str(tree)) == tree)
    assert shown in (
        "True",
        "<python>:1: code nested too deeply for Python's parser; expected Python source code",
    )


def test_sizes_cannot_be_changed():
    tree = ConstTree.parse("(S (NP we) (VP sang))")
    with pytest.raises(ValueError, match="read-only"):
        tree.sizes[0] = 2
