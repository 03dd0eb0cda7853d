"""Trees as a constituency parser sees them, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import phrase_trees

import treewright as tw
from treewright.parsing.constituent.preparation import keep_inside, prepare, restore, retag


def prepared(text):
    found = prepare(tw.ConstTree.parse(text))
    return str(found.tree), found.kept


def test_function_tags_and_traces_go():
    text = "(S (NP-SBJ-1 (NN a)) (VP (VB b) (NP (-NONE- *-1))))"
    assert prepared(text) == ("(S (NP (NN a)) (VP (VB b)))", [0, 1])


def test_particles_become_adverbs():
    assert prepared("(VP (VB give) (PRT (RP up)))")[0] == "(VP (VB give) (ADVP (RP up)))"


def test_a_tag_that_is_called_like_a_particle_stays():
    assert prepared("(VP (VB give) (PRT up))")[0] == "(VP (VB give) (PRT up))"


def test_quotation_marks_go_wherever_they_stand():
    assert prepared("(S (NP (`` ``) (NN a) ('' '')) (VP (VB b)))") == ("(S (NP (NN a)) (VP (VB b)))", [1, 3])


def test_punctuation_at_the_edges_of_constituents_is_raised():
    text = "(S (NP (NP (NN a) (, ,)) (NP (NN b))) (VP (: -) (VB c)))"
    assert prepared(text)[0] == "(S (NP (NP (NN a)) (, ,) (NP (NN b))) (: -) (VP (VB c)))"


def test_punctuation_at_the_edges_of_the_sentence_goes():
    assert prepared("(TOP (S (, ,) (NP (NN a)) (VP (VB b) (. .))))") == (
        "(TOP (S (NP (NN a)) (VP (VB b))))",
        [1, 2],
    )


def test_repeated_unary_brackets_go():
    assert prepared("(S (NP (NP (NN a))) (VP (VB b)))")[0] == "(S (NP (NN a)) (VP (VB b)))"


def test_a_tag_over_the_same_word_is_no_repeated_bracket():
    assert prepared("(S (NP (NN NN)) (VP (VB b)))")[0] == "(S (NP (NN NN)) (VP (VB b)))"


def test_nothing_is_left_of_punctuation():
    assert prepare(tw.ConstTree.parse("(TOP (X (. .) ('' '')))")) == (None, [])


@pytest.mark.parametrize("n", [200])
def test_a_prepared_tree_comes_back_with_all_words_and_brackets(n):
    for tree in tw.make_treebank(n_sentences=n, random_state=3).constituents:
        found = prepare(tree)
        whole = restore(found.tree, found.kept, tree.words(), tree.tags())
        assert (whole.words(), whole.tags()) == (tree.words(), tree.tags())
        assert tw.metrics.parseval([tree], [whole]).precision == 100


def test_words_that_were_dropped_go_under_the_lowest_node_around_them():
    parse = tw.ConstTree.parse("(S (NP (NN a) (NN b)) (VP (VB c)))")
    words, tags = ["a", '"', "b", ",", "c", "."], ["NN", "``", "NN", ",", "VB", "."]
    found = restore(parse, [0, 2, 4], words, tags)
    assert str(found) == '(S (NP (NN a) (`` ") (NN b)) (, ,) (VP (VB c)) (. .))'


def test_marks_at_the_edges_go_under_the_only_child_of_the_root():
    words, tags = ['"', "a", "c", "."], ["``", "NN", "VB", "."]
    parse = tw.ConstTree.parse("(TOP (S (NP (NN a)) (VP (VB c))))")
    assert str(restore(parse, [1, 2], words, tags)) == '(TOP (S (`` ") (NP (NN a)) (VP (VB c)) (. .)))'
    parse = tw.ConstTree.parse("(TOP (S (NP (NN a))) (VP (VB c)))")
    assert str(restore(parse, [1, 2], words, tags)) == '(TOP (`` ") (S (NP (NN a))) (VP (VB c)) (. .))'


def test_marks_do_not_go_under_a_tag_that_is_the_only_child():
    assert str(restore(tw.ConstTree.parse("(TOP (NN a))"), [0], ["a", "."], ["NN", "."])) == (
        "(TOP (NN a) (. .))"
    )


def test_words_come_back_as_they_were_written():
    parse = tw.ConstTree.parse("(S (NP (NN mary)) (VP (VB sleeps)))")
    assert restore(parse, [0, 1], ["Mary", "SLEEPS"], ["NN", "VB"]).words() == ["Mary", "SLEEPS"]


def test_a_sentence_of_punctuation_gets_a_flat_tree():
    assert str(restore(None, [], ["!", "?"], [".", "."])) == "(TOP (. !) (. ?))"


def test_a_parser_is_given_the_words_that_trees_keep():
    for tree in tw.make_treebank(n_sentences=100, random_state=4).constituents:
        assert keep_inside(tree.tags()) == prepare(tree).kept


@given(st.data(), phrase_trees())
def test_other_tags_change_nothing_but_tags(data, tree):
    n_words = len(tree.words())
    tags = data.draw(st.lists(st.sampled_from(["AA", "NP", "."]), min_size=n_words, max_size=n_words))
    found = retag(tree, tags)
    assert (found.tags(), found.words()) == (tags, tree.words())
    assert retag(found, tree.tags()) == tree
    assert found.sizes.tolist() == tree.sizes.tolist()


def test_too_few_tags_are_refused():
    with pytest.raises(ValueError, match="zip"):
        retag(tw.ConstTree.parse("(S (NN a) (VB b))"), ["NN"])


@given(st.data(), phrase_trees())
def test_whatever_the_tags_a_parser_is_given_the_words_that_trees_keep(data, tree):
    n_words = len(tree.words())
    likely = st.sampled_from(["NN", ",", ".", ":", "``", "''", "-NONE-", "-LRB-"])
    tags = data.draw(st.lists(likely, min_size=n_words, max_size=n_words))
    found = prepare(retag(tree, tags))
    assert found.kept == keep_inside(tags)
    if found.tree is not None:
        whole = restore(found.tree, found.kept, tree.words(), tags)
        assert (whole.words(), whole.tags()) == (tree.words(), tags)
