import pytest
from hypothesis import given
from hypothesis import strategies as st

from treewright.data.deptree import DepTree, ExtraLine
from treewright.tagging.surface import (
    Surface,
    begins_paragraph,
    escape,
    join_sentences,
    spaces_after,
    surface_tokens,
    unescape,
)

RANGE = ExtraLine(0, "1-2\tdu\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No")


def test_a_multiword_token_is_one_token():
    tree = DepTree(["de", "le", "."], extra_lines=[RANGE])
    assert surface_tokens(tree) == [Surface("du", ("de", "le"), ""), Surface(".", (".",), " ")]


def test_empty_nodes_do_not_stand_in_the_text():
    tree = DepTree(["a"], extra_lines=[ExtraLine(1, "1.1\tb\t_\t_\t_\t_\t_\t_\t_\t_")])
    assert [token.form for token in surface_tokens(tree)] == ["a"]


def test_the_text_says_where_spaces_are_if_the_last_column_does_not():
    tree = DepTree(["Hi", "!", "you"], comments=["# text = Hi!  you"])
    assert [token.spaces for token in surface_tokens(tree)] == ["", "  ", " "]


def test_the_last_column_may_say_it_exactly():
    tree = DepTree(["a", "b", "c"], misc=["SpacesAfter=\\n", "_", "_"], comments=["# text = a bc"])
    assert [token.spaces for token in surface_tokens(tree)] == ["\n", "", " "]


def test_a_text_of_other_words_says_nothing():
    tree = DepTree(["a", "b"], comments=["# text = ac"])
    assert [token.spaces for token in surface_tokens(tree)] == [" ", " "]


def test_tokens_may_have_spaces():
    tree = DepTree(["1 000", "x"], comments=["# text = 1 000x"])
    assert [token.spaces for token in surface_tokens(tree)] == ["", " "]


@pytest.mark.parametrize(
    ("misc", "spaces"),
    [
        ("_", " "),
        ("SpaceAfter=No", ""),
        ("Gloss=a|SpaceAfter=No", ""),
        ("SpacesAfter=\\s\\n", " \n"),
        ("Gloss=SpaceAfter", " "),
    ],
)
def test_the_last_column_says_what_white_space_follows(misc, spaces):
    assert spaces_after(misc) == spaces


@given(st.text(" \t\r\n|\\\u00a0psn"))
def test_escaped_white_space_comes_back(spaces):
    assert unescape(escape(spaces)) == spaces
    assert not set(escape(spaces)) & set(" \t\r\n|")


def test_sentences_are_joined_as_they_stood():
    sentences = [
        [Surface("Hi", ("Hi",), ""), Surface("!", ("!",), " ")],
        [Surface("No", ("No",), "")],
        [Surface("Yes", ("Yes",), " ")],
    ]
    found = join_sentences(sentences, [True, False, True])
    assert found.text == "Hi! No\n\nYes "
    assert found.token_ends.nonzero()[0].tolist() == [1, 2, 5, 10]
    assert found.sentence_ends.tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [("# newpar", True), ("# newdoc id = x", True), ("#newpar id = 1", True), ("# newparts", False)],
)
def test_comments_say_where_paragraphs_begin(comment, expected):
    assert begins_paragraph(DepTree(["a"], comments=[comment])) is expected
