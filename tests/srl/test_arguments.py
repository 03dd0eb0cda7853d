import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import arguments as twin
from strategies import phrase_trees

import treewright as tw
from treewright.errors import InputError
from treewright.srl.arguments import (
    argument_trees,
    find_candidates,
    is_argument,
    merge_adjuncts,
    shape_of,
)

MARY = tw.ConstTree.parse(
    "(S (NP (NNP Mary)) (VP (VBD brought) (NP (DT a) (NN cat)) (PP (TO to) (NP (NN school)))))"
)
COLUMNS = """1\tMary\tNNP\t-\t-\t(ARG0*)
2\tbrought\tVBD\tbring\tbring.01\t(V*)
3\ta\tDT\t-\t-\t(ARG1*
4\tcat\tNN\t-\t-\t*)
5\tto\tTO\t-\t-\t(ARG2*
6\tschool\tNN\t-\t-\t*)
"""


def read(tmp_path, text):
    path = tmp_path / "some.props"
    path.write_text(text + "\n", encoding="utf-8")
    return tw.read_props(path)


def nodes_over(tree, *texts):
    """Return the nodes of subtrees, given in brackets."""
    subtrees = [str(each) for each in tree.subtrees()]
    return [subtrees.index(text) for text in texts]


def test_arguments_are_the_constituents_of_spans(tmp_path):
    found = tw.find_arguments([MARY], read(tmp_path, COLUMNS))
    nodes = nodes_over(MARY, "(NP (NNP Mary))", "(NP (DT a) (NN cat))", "(PP (TO to) (NP (NN school)))")
    assert [(each.label, each.node) for each in found.arguments] == list(
        zip(["ARG0", "ARG1", "ARG2"], nodes, strict=True)
    )
    assert {each.lemma for each in found.arguments} == {"bring"}
    assert found.matched == 100


def test_spans_without_a_constituent_are_counted(tmp_path):
    split = COLUMNS.replace("-\t*)\n5", "-\t*\n5").replace("to\tTO\t-\t-\t(ARG2*", "to\tTO\t-\t-\t*)")
    split = split.replace("school\tNN\t-\t-\t*)", "school\tNN\t-\t-\t*")
    found = tw.find_arguments([MARY], read(tmp_path, split))
    assert [each.label for each in found.arguments] == ["ARG0"]
    assert found.n_unmatched == 1
    assert found.matched == 50


def test_the_highest_of_nodes_over_the_same_words_is_taken(tmp_path):
    tree = tw.ConstTree.parse(
        "(S (NP (NP (NNP Mary))) (VP (VBD brought) (NP (DT a) (NN cat)) (PP (TO to) (NN school))))"
    )
    first = tw.find_arguments([tree], read(tmp_path, COLUMNS)).arguments[0]
    assert first.node == nodes_over(tree, "(NP (NP (NNP Mary)))")[0]


def test_nouns_are_predicates_only_where_asked_for(tmp_path):
    sentences = read(tmp_path, COLUMNS.replace("\tVBD\t", "\tNN\t"))
    assert not tw.find_arguments([MARY], sentences).arguments
    assert len(tw.find_arguments([MARY], sentences, verbal=False).arguments) == 3


def test_the_tree_of_an_argument_has_the_way_to_the_predicate_alone():
    subject, indirect = nodes_over(MARY, "(NP (NNP Mary))", "(PP (TO to) (NP (NN school)))")
    assert (
        str(tw.argument_tree(tw.Argument(MARY, 1, subject))) == "(S (NP-ARG (NNP Mary)) (VP (VBD brought)))"
    )
    assert (
        str(tw.argument_tree(tw.Argument(MARY, 1, indirect, lemma="bring")))
        == "(VP (VBD bring) (PP-ARG (TO to) (NP (NN school))))"
    )


@given(phrase_trees(), st.data())
def test_the_tree_of_an_argument_is_that_of_the_definition(tree, data):
    if tree.is_leaf:
        tree = tw.ConstTree("S", [tree])
    predicate = data.draw(st.integers(0, len(tree.words()) - 1))
    node = data.draw(st.sampled_from(np.flatnonzero(tree.sizes > 1).tolist()))
    lemma = data.draw(st.sampled_from(["", "go"]))
    found = tw.argument_tree(tw.Argument(tree, predicate, node, lemma=lemma))
    expected = tw.ConstTree.parse(twin.enclose(tree, predicate, node, lemma))
    assert str(found) == str(expected)


def test_trees_of_many_arguments_are_those_of_each():
    trees = tw.make_treebank(n_sentences=20, random_state=1)
    arguments = tw.find_arguments(trees.constituents, trees.propositions).arguments
    assert argument_trees(arguments) == [tw.argument_tree(each) for each in arguments]


def test_candidates_are_sisters_on_the_way_up_and_what_prepositions_lead_to():
    found = find_candidates(shape_of(MARY), 1)
    texts = [str(list(MARY.subtrees())[node]) for node in found]
    assert "(NP (NNP Mary))" in texts
    assert "(PP (TO to) (NP (NN school)))" in texts
    assert "(NP (NN school))" in texts
    assert "(DT a)" not in texts


def test_verbs_of_any_form_and_punctuation_are_no_candidates_where_joined():
    tree = tw.ConstTree.parse("(S (NP (PRP They)) (VP (VBP eat) (CC and) (VB drink)) (. .))")
    texts = [str(list(tree.subtrees())[node]) for node in find_candidates(shape_of(tree), 1)]
    assert texts == ["(NP (PRP They))"]


def test_what_a_predicate_is_coordinated_with_is_no_candidate():
    tree = tw.ConstTree.parse(
        "(S (NP (PRP We)) (VP (VP (VBD came)) (CC and) (VP (VBD saw) (NP (NNP Rome)))))"
    )
    texts = [str(list(tree.subtrees())[node]) for node in find_candidates(shape_of(tree), 1)]
    assert texts == ["(NP (PRP We))"]


@pytest.mark.parametrize(
    ("label", "expected"),
    [("ARG0", True), ("ARGM-TMP", True), ("V", False), ("C-V", False), ("R-ARG1", False), ("C-ARG1", False)],
)
def test_pieces_and_references_are_no_arguments_of_their_own(label, expected):
    assert is_argument(label) == expected


def test_adjuncts_are_merged_and_others_are_not():
    assert [merge_adjuncts(label) for label in ("ARGM-TMP", "ARG1")] == ["ARGM", "ARG1"]


def test_trees_and_roles_of_different_sentences_are_refused(tmp_path):
    sentences = read(tmp_path, COLUMNS)
    with pytest.raises(InputError, match="2 trees but 1 sentences"):
        tw.find_arguments([MARY, MARY], sentences)
    with pytest.raises(InputError, match="tree 1 has 2 words, but its sentence with roles has 6"):
        tw.find_arguments([tw.ConstTree.parse("(S (N a) (V b))")], sentences)
    with pytest.raises(InputError, match="word 1 of tree 1 is 'John', but 'Mary' in its sentence with roles"):
        tw.find_arguments([MARY.with_words(["John", *MARY.words()[1:]])], sentences)
    with pytest.raises(InputError, match="sentence 1 is a PropSentence; expected a ConstTree"):
        tw.find_arguments(sentences, [MARY])


@pytest.mark.parametrize(
    ("predicate", "node", "message"),
    [(6, 2, "the predicate is word 6 of a tree with 6 words"), (1, 99, "the argument is node 99")],
)
def test_places_outside_of_the_tree_are_refused(predicate, node, message):
    with pytest.raises(InputError, match=message):
        tw.argument_tree(tw.Argument(MARY, predicate, node))
