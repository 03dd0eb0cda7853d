import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treewright as tw
from treewright.annotation.sentences import check_tags, list_sentences, read_trees, read_words
from treewright.errors import InputError

EACH = "a tree, a list of words or a list of (word, tag) pairs"
TEXT = "but a Reader reads words (a Pipeline reads text)"
WORD = "a word or a tuple (word, tag)"
LIST = f"a list of sentences, each {EACH}"
TREE = tw.DepTree(["The", "cat"], upos=["DET", "NOUN"], xpos=["DT", "NN"])


class Reader:
    """Stands for a model."""

    known_tags = ("DET", "NOUN")

    def __init__(self, tag_column="upos"):
        self.tag_column = tag_column


def refusal(function, *arguments, **options):
    with pytest.raises(InputError) as caught:
        function(*arguments, **options)
    return str(caught.value)


def test_trees_are_handed_on_as_they_are():
    given_trees = [TREE, tw.DepTree([])]
    assert read_trees(given_trees, Reader()) is given_trees
    (found, _) = read_trees((TREE, ["a"]), Reader())
    assert found is TREE


@pytest.mark.parametrize("column", ["upos", "xpos"])
def test_words_and_tagged_words_become_trees(column):
    given_words = [["The", "cat"], ("an", "old", "cat"), [("The", "D"), ("cat", None)], [("cat", "_")], []]
    found = read_trees(given_words, Reader(), tag_column=column)
    forms = [" ".join(tree.words) for tree in found]
    assert forms == ["The cat", "an old cat", "The cat", "cat", ""]
    assert [getattr(tree, column) for tree in found] == [["_"] * 2, ["_"] * 3, ["D", "_"], ["_"], []]
    other = "xpos" if column == "upos" else "upos"
    assert all(set(getattr(tree, other)) <= {"_"} for tree in found)


def test_of_constituents_words_and_tags_are_read_without_traces():
    tree = tw.ConstTree.parse("(S (NP (-NONE- *)) (VP (VB go) (-LRB- -LRB-)))")
    (found,) = read_trees([tree], Reader())
    assert (found.words, found.xpos, found.upos) == (["go", "("], ["VB", "-LRB-"], ["_", "_"])
    lone, nothing = read_trees([tw.ConstTree("go"), tw.ConstTree.parse("(NP (-NONE- *))")], Reader())
    assert (lone.words, lone.xpos, nothing.words) == (["go"], ["_"], [])


def test_sentences_may_come_one_by_one():
    assert list_sentences(iter([TREE]), Reader()) == [TREE]
    assert list_sentences((each for each in [["a"]]), Reader()) == [["a"]]
    assert list_sentences(np.array([["a", "b"], ["c", "d"]]).tolist(), Reader()) == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (
            "The cat sleeps.",
            f"the sentences are the text 'The cat sleeps.', {TEXT}; expected {LIST}",
        ),
        (TREE, "one tree was given, DepTree('The cat', n=2); expected a list of sentences: [tree]"),
        (
            tw.ConstTree.parse("(N a)"),
            "one tree was given, ConstTree.parse('(N a)'); expected a list of sentences: [tree]",
        ),
        (["The", "cat"], "one sentence was given, ['The', 'cat']; expected a list of sentences: [[...]]"),
        (
            [("The", "DT"), ("cat", None)],
            "one sentence was given, [('The', 'DT'), ('cat', None)]; expected a list of sentences: [[...]]",
        ),
        (TREE[0], f"the sentences are of type Word; expected {LIST}"),
        (None, f"the sentences are of type NoneType; expected {LIST}"),
        (7, f"the sentences are of type int; expected {LIST}"),
        (b"The cat", f"the sentences are of type bytes; expected {LIST}"),
        ({"words": []}, f"the sentences are of type dict; expected {LIST}"),
        ({"words"}, f"the sentences are of type set; expected {LIST}"),
    ],
)
def test_what_is_no_list_of_sentences_is_refused(sentences, message):
    assert refusal(list_sentences, sentences, Reader()) == message


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        (
            "The cat.",
            f"sentence 2 is the text 'The cat.', {TEXT}; expected {EACH}",
        ),
        (None, f"sentence 2 is of type NoneType; expected {EACH}"),
        (b"abc", f"sentence 2 is of type bytes; expected {EACH}"),
        ({"a": 1}, f"sentence 2 is of type dict; expected {EACH}"),
        (TREE[0], f"sentence 2 is of type Word; expected {EACH}"),
        (["a", 3], f"sentence 2: word 2 is 3 of type int; expected {WORD}"),
        (["a", ""], f"sentence 2: word 2 is empty; expected {WORD}"),
        ([b"a"], f"sentence 2: word 1 is b'a' of type bytes; expected {WORD}"),
        (
            [["a", "b"]],
            f"sentence 2: word 1 is ['a', 'b'] of type list; expected {WORD}",
        ),
        ([("a", 3)], f"sentence 2: word 1 is ('a', 3) of type tuple; expected {WORD}"),
        (
            [("a", "b", "c")],
            f"sentence 2: word 1 is ('a', 'b', 'c') of type tuple; expected {WORD}",
        ),
        (
            TREE[:1],
            f"sentence 2: word 1 is Word('The', id=1) of type Word; expected {WORD}",
        ),
    ],
)
def test_what_is_no_sentence_is_refused(sentence, message):
    assert refusal(read_trees, [TREE, sentence], Reader()) == message
    if not isinstance(sentence, str):
        assert refusal(read_trees, [["a"], sentence], Reader()) == message


def test_texts_are_told_from_the_words_of_one_sentence():
    assert refusal(read_trees, ["The cat.", "A dog."], Reader()).startswith(
        "sentence 1 is the text 'The cat.'"
    )
    assert refusal(read_trees, ["The", "cat."], Reader()).startswith("one sentence was given")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(JUNK)
def test_anything_becomes_trees_or_is_refused_in_one_line(junk):
    message = ""
    found = []
    try:
        found = read_trees(junk, Reader())
    except InputError as error:
        message = str(error)
    assert "\n" not in message
    assert all(isinstance(tree, tw.DepTree) for tree in found)


def check(sentences, **options):
    trees = read_trees(sentences, Reader())
    check_tags(sentences, trees, Reader(**options))


NEED = "but this Reader needs tags; expected (word, tag) pairs, trees with tags, or a model trained with"


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([["The", "cat"]], f"sentence 1 has no tags, {NEED} tags='predicted'"),
        ([TREE, ["The", "cat"]], f"sentence 2 has no tags, {NEED} tags='predicted'"),
        (
            [[("The", "DET"), ("cat", None)]],
            f"sentence 1: word 2, 'cat', has no tag, {NEED} tags='predicted'",
        ),
        ([tw.DepTree([]), tw.DepTree(["a"])], f"sentence 2 has no tags, {NEED} tags='predicted'"),
        (
            [[("The", "DT"), ("cat", "NN")]],
            "sentence 1 has the tag 'DT', and none of its tags occurred in the training data of this Reader; "
            "expected UPOS tags: DET, NOUN, ...",
        ),
    ],
)
def test_missing_and_foreign_tags_are_refused(sentences, message):
    assert refusal(check, sentences) == message


@pytest.mark.parametrize(
    "sentences",
    [
        [],
        [[]],
        [tw.DepTree([])],
        [TREE, tw.DepTree(["a"])],
        [[("The", "DET"), ("cat", "XYZ")]],
        [[("ugh", "INTJ")]],
    ],
)
def test_tags_that_suffice_are_accepted(sentences):
    check(sentences)


def test_words_come_with_their_tags():
    assert read_words([("The", "DT"), ("cat", None)], 1, Reader()) == (["The", "cat"], ["DT", "_"])
