import pytest
from hypothesis import given
from strategies import dep_trees

import treewright as tw
from treewright.data.labelled_trees import CENTRES, to_constituents
from treewright.errors import InputError

SENTENCE = tw.DepTree(
    ["Dogs", "chased", "two", "cats", "today"],
    [2, 0, 4, 2, 2],
    ["nsubj", "root", "nummod", "obj", "advmod"],
    lemmas=["dog", "chase", "_", "cat", "today"],
    upos=["NOUN", "VERB", "NUM", "NOUN", "ADV"],
    xpos=["NNS", "VBD", "CD", "NNS", "NN"],
)


def convert(tree=SENTENCE, **options):
    return str(to_constituents(tree, **options))


def test_relation_centred_trees_have_tag_and_word_at_the_place_of_the_word():
    assert convert() == (
        "(ROOT (root (nsubj (NNS Dogs)) (VBD chased) (obj (nummod (CD two)) (NNS cats)) (advmod (NN today))))"
    )


def test_tag_centred_trees_have_the_word_at_its_place_and_the_relation_last():
    assert convert(centre="tag") == (
        "(ROOT (VBD (NNS Dogs nsubj) chased (NNS (CD two nummod) cats obj) (NN today advmod) root))"
    )


def test_word_centred_trees_have_relation_and_tag_last():
    assert convert(centre="word") == (
        "(ROOT (chased (Dogs nsubj NNS) (cats (two nummod CD) obj NNS) (today advmod NN) root VBD))"
    )


def test_several_roots_stand_under_one_node():
    tree = tw.DepTree(["a", "b"], [0, 0], ["x", "y"], upos=["A", "B"])
    assert convert(tree) == "(ROOT (x (A a)) (y (B b)))"


def test_dependents_of_crossing_arcs_stand_in_their_order():
    tree = tw.DepTree(["a", "b", "c", "d"], [0, 4, 1, 1], ["r", "s", "t", "u"], upos=["A", "B", "C", "D"])
    assert not tw.is_projective(tree)
    assert convert(tree) == "(ROOT (r (A a) (t (C c)) (u (s (B b)) (D d))))"


def test_tags_are_universal_where_there_are_no_others():
    assert convert(SENTENCE.with_tags(xpos=["_"] * 5)) == convert(column="upos")
    assert "(VERB chased)" in convert(column="upos")


def test_words_can_be_lemmas_or_in_lower_case():
    assert to_constituents(SENTENCE, words="lemma").words() == ["dog", "chase", "two", "cat", "today"]
    assert to_constituents(SENTENCE, words="lower").words() == ["dogs", "chased", "two", "cats", "today"]


def test_white_space_inside_words_becomes_a_line():
    tree = tw.DepTree(["20 000", ""], [0, 1], ["root", "dep"], upos=["NUM", "X"])
    assert to_constituents(tree).words() == ["20_000", "_"]


def test_deep_trees_are_converted():
    n = 20_000
    tree = tw.DepTree(["a"] * n, range(n), ["d"] * n, upos=["T"] * n)
    assert to_constituents(tree).n_nodes == 3 * n + 1


def test_the_conversion_is_public():
    assert tw.to_constituents is to_constituents


@pytest.mark.slow_cases
@pytest.mark.parametrize("centre", CENTRES)
@given(tree=dep_trees())
def test_every_word_has_a_node_a_tag_and_a_relation(centre, tree):
    found = to_constituents(tree, centre=centre)
    assert found.n_nodes == 3 * len(tree) + 1
    assert len(found.children) == tree.n_roots
    assert found.label == "ROOT"


@given(tree=dep_trees())
def test_words_of_projective_trees_keep_their_order(tree):
    if tw.is_projective(tree):
        expected = [without_blanks(word) for word in tree.words]
        assert [without_blanks(word) for word in to_constituents(tree).words()] == expected


def without_blanks(word):
    """Return a word without white space, and without what stands for it in brackets."""
    return "".join(word.split()).replace("_", "")


@pytest.mark.parametrize(
    ("tree", "options", "message"),
    [
        (tw.DepTree(["a", "b"], [0, -1]), {}, "word 2 has no head; expected one from 0 to 2"),
        (tw.DepTree([]), {}, "the sentence has no words; expected at least one"),
        (SENTENCE, {"centre": "head"}, "centre is 'head'; expected one of relation, tag, word"),
        (SENTENCE, {"column": "pos"}, "column is 'pos'; expected one of None, xpos, upos"),
        (SENTENCE, {"words": "stem"}, "words is 'stem'; expected one of word, lower, lemma"),
    ],
)
def test_what_cannot_be_converted_is_told(tree, options, message):
    with pytest.raises(InputError, match=message):
        to_constituents(tree, **options)
