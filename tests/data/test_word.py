import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from strategies import dep_trees

import treewright as tw
from treewright.data.deptree import MOST_DRAWN, DepTree, ExtraLine, MultiwordToken
from treewright.data.word import Word


@pytest.fixture
def tree():
    return DepTree(
        ["she", "gave", "him", "two", "figs"],
        [2, 0, 2, 5, 2],
        ["nsubj", "root", "iobj", "nummod", "obj"],
        lemmas=["she", "give", "he", "two", "fig"],
        upos=["PRON", "VERB", "PRON", "NUM", "NOUN"],
        xpos=["PRP", "VBD", "PRP", "CD", "NNS"],
        feats=["Case=Nom|Gender=Fem", "_", "Case=Acc", "NumType=Card", "Number=Plur"],
        deps=["2:nsubj", "0:root", "2:iobj", "5:nummod", "2:obj"],
        misc=["_", "_", "_", "_", "SpaceAfter=No|x=y"],
    )


def forms(words):
    return [word.form for word in words]


def test_iterating_gives_the_words_in_order(tree):
    assert forms(tree) == tree.words
    assert [word.index for word in tree] == [0, 1, 2, 3, 4]
    assert [word.id for word in tree] == [1, 2, 3, 4, 5]
    assert list(DepTree([])) == []


def test_a_word_has_what_its_columns_have(tree):
    word = tree[4]
    found = (word.form, word.lemma, word.upos, word.xpos, word.feats, word.deprel, word.deps, word.misc)
    assert found == ("figs", "fig", "NOUN", "NNS", "Number=Plur", "obj", "2:obj", "SpaceAfter=No|x=y")
    assert word.tree is tree


def test_features_are_a_dict_of_the_column(tree):
    assert tree[0].features == {"Case": "Nom", "Gender": "Fem"}
    assert tree[1].features == {}
    odd = DepTree(["a"], feats=["Case=Acc,Dat|Odd|Eq=a=b"])
    assert odd[0].features == {"Case": "Acc,Dat", "Eq": "a=b"}


def test_positions_begin_at_0_and_may_be_negative(tree):
    assert tree[0].form == "she"
    assert tree[-1] == tree[4] == tree[np.int64(4)]
    assert tree[-5] == tree[0]


def test_slices_are_lists_of_words(tree):
    assert forms(tree[1:3]) == ["gave", "him"]
    assert forms(tree[-2:]) == ["two", "figs"]
    assert forms(tree[::-2]) == ["figs", "him", "she"]
    assert tree[3:1] == []


@pytest.mark.parametrize("at", [5, -6, 100])
def test_positions_outside_the_sentence_are_refused(tree, at):
    with pytest.raises(
        IndexError, match=f"the position is {at} in a sentence of 5 words; positions start at 0"
    ):
        tree[at]


@pytest.mark.parametrize("at", ["0", 1.0, None, (0, 1)])
def test_what_is_no_position_is_refused(tree, at):
    with pytest.raises(TypeError, match="expected an integer or a slice"):
        tree[at]


def test_heads_children_and_relatives_are_words(tree):
    gave = tree[1]
    assert tree[0].head == gave
    assert gave.head is None
    assert forms(gave.children) == ["she", "him", "figs"]
    assert forms(gave.left_children) == ["she"]
    assert forms(gave.right_children) == ["him", "figs"]
    assert forms(tree[3].ancestors) == ["figs", "gave"]
    assert gave.ancestors == []
    assert forms(tree[4].subtree) == ["two", "figs"]
    assert forms(gave.subtree) == tree.words
    assert tree[3].children == []
    assert tree[3].subtree == [tree[3]]


def test_the_subtree_over_crossing_arcs_is_in_the_order_of_the_sentence():
    words = ["a", "man", "came", "yesterday", "who", "sang"]
    tree = DepTree(words, [2, 3, 0, 3, 6, 2])
    assert forms(tree[1].subtree) == ["a", "man", "who", "sang"]


def test_the_root_is_the_first_of_several():
    assert DepTree(["a", "b", "c"], [2, 0, 0]).root.form == "b"
    assert [word.is_root for word in DepTree(["a", "b", "c"], [2, 0, 0])] == [False, True, True]
    assert DepTree([]).root is None


def test_words_without_heads_have_no_relatives():
    tree = DepTree(["the", "cat"])
    assert tree.root is None
    assert [(word.head, word.children, word.ancestors, word.is_root) for word in tree] == [
        (None, [], [], False)
    ] * 2
    assert tree[0].subtree == [tree[0]]
    assert forms(tree) == ["the", "cat"]


@given(dep_trees())
def test_children_subtrees_and_ancestors_agree(tree):
    for word in tree:
        assert all(child.head == word for child in word.children)
        assert {id(each.tree) for each in word.subtree} == {id(tree)}
        assert all(word in below.ancestors or below == word for below in word.subtree)
        assert all(word in above.subtree for above in word.ancestors)
    assert sum(len(word.children) for word in tree) == len(tree) - tree.n_roots
    assert sum(len(word.subtree) for word in tree if word.is_root) == len(tree)


def test_words_are_equal_by_tree_and_position(tree):
    assert tree[1] == tree[1]
    assert tree[1] != tree[2]
    assert tree[1] != copy.deepcopy(tree)[1]
    assert tree[1] != "gave"
    assert len({tree[1], tree[1], tree[2]}) == 2
    assert tree[2] in tree
    assert pickle.loads(pickle.dumps(tree[2])).form == "him"


def test_an_array_of_trees_holds_the_trees(tree):
    array = np.array([tree, tree], dtype=object)
    assert array.shape == (2,)
    assert array[1] is tree
    array[:] = [tree[0].tree, tree]
    assert array[0] is tree


def test_a_word_is_shown_as_its_form(tree):
    assert str(tree[4]) == "figs"
    assert repr(tree[4]) == "Word('figs', id=5)"
    assert tw.Word is Word


def test_text_is_that_of_the_comment():
    assert DepTree(["a", "b"], comments=["# text = a  b!"]).text == "a  b!"
    assert DepTree(["a", "b"], comments=["# text ="]).text == "a b"


def test_text_is_joined_of_the_words(tree):
    assert tree.text == "she gave him two figs"
    assert DepTree(["Mary", "sleeps", "."], misc=["_", "A=b|SpaceAfter=No", "_"]).text == "Mary sleeps."
    assert DepTree([]).text == ""


def token(span, form, misc="_"):
    return "\t".join([span, form, *"_______", misc])


def test_a_multiword_token_stands_for_its_words():
    lines = [
        ExtraLine(1, "1.1" + "\tghost" * 9),
        ExtraLine(2, token("3-4", "du", "SpaceAfter=No")),
        ExtraLine(5, token("6-7", "au")),
    ]
    tree = DepTree(["il", "vient", "de", "le", "!", "à", "le"], extra_lines=lines)
    assert tree.text == "il vient du! au"
    assert tree.multiword_tokens() == [
        MultiwordToken(2, 4, "du", "SpaceAfter=No"),
        MultiwordToken(5, 7, "au", "_"),
    ]
    assert [word.space_after for word in tree] == [True, True, False, False, True, False, True]


def test_space_after_is_told_by_the_last_column(tree):
    assert [word.space_after for word in tree] == [True, True, True, True, False]


@given(dep_trees())
def test_any_tree_has_a_text_and_a_drawing(tree):
    assert isinstance(tree.text, str)
    assert str(tree).count("\n") == len(tree) - 1
    assert [isinstance(word.space_after, bool) for word in tree]


def test_odd_extra_lines_do_no_harm():
    tree = DepTree(
        ["a", "b"], extra_lines=[ExtraLine(1, "2-1\tx"), ExtraLine(0, "1-2"), ExtraLine(1, "9-x\ty")]
    )
    assert tree.text == "a b"


def test_print_draws_the_tree(tree):
    assert str(tree) == tw.draw(tree)
    assert str(DepTree(["the", "cat"])).split() == ["the", "_", "_", "cat", "_", "_"]
    assert str(DepTree([])) == ""
    assert repr(tree) == "DepTree('she gave him two figs', n=5)"
    long = DepTree(["a"] * (MOST_DRAWN + 1))
    assert str(long) == repr(long)


def test_to_conllu_is_what_is_written(tree, tmp_path):
    tw.write_conllu([tree], tmp_path / "tree.conllu")
    assert tree.to_conllu() == (tmp_path / "tree.conllu").read_text(encoding="utf-8")


def test_to_conllu_has_the_columns_that_the_tree_declares(tmp_path):
    text = "# global.columns = ID FORM X\n1\ta\tb\n\n"
    (tmp_path / "plus.conllu").write_text(text, encoding="utf-8", newline="\n")
    (tree,) = tw.read_conllu(tmp_path / "plus.conllu")
    assert tree.to_conllu() == text
