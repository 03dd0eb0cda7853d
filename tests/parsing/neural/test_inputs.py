"""Sentences as numbers for a network."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from treewright.data.deptree import DepTree
from treewright.parsing.neural.inputs import COLUMNS, FIRST, LAST, WordInputs

FEATS = ("_", "Number=Sing", "Case=Nom|Number=Plur", "New=Yes|Number=Sing", "Only=Here")
TOKENS = st.tuples(
    st.text("abAB語", min_size=1, max_size=3),
    st.sampled_from(["_", "a", "b"]),
    st.sampled_from(["NOUN", "VERB", "NEW"]),
    st.sampled_from(["_", "X"]),
    st.sampled_from(FEATS),
)


def make_tree(tokens):
    words, lemmas, upos, xpos, feats = zip(*tokens, strict=True) if tokens else [()] * 5
    return DepTree(words, lemmas=lemmas, upos=upos, xpos=xpos, feats=feats)


KNOWN = [
    DepTree(
        ["a", "B", "ab"],
        lemmas=["a", "b", "_"],
        upos=["NOUN", "VERB", "NOUN"],
        xpos=["X", "_", "X"],
        feats=["Number=Sing", "_", "Case=Nom|Number=Plur"],
    )
]


@settings(deadline=None)
@given(st.lists(st.lists(TOKENS, max_size=6).map(make_tree), max_size=4))
def test_distinct_words_have_the_numbers_of_padded_ones(trees):
    inputs = WordInputs.from_trees(KNOWN, min_count=1)
    words, padded = inputs.distinct(trees), inputs.pad(trees)
    is_cell = np.arange(padded.forms.shape[1]) < padded.lengths[:, np.newaxis]
    for name in COLUMNS:
        np.testing.assert_array_equal(words.columns[name][words.places], padded.columns[name][is_cell])
    found = [set(row) - {0} for row in words.feats[words.places].tolist()]
    assert found == [set(row) - {0} for row in padded.feats[is_cell].tolist()]
    spelled = inputs.spell(words.forms)[words.places]
    width = padded.characters.shape[1]
    np.testing.assert_array_equal(spelled, padded.characters[padded.forms[is_cell]][:, :width])


@given(st.lists(TOKENS, max_size=20))
def test_each_distinct_word_stands_once(tokens):
    words = WordInputs.from_trees(KNOWN, min_count=1).distinct([make_tree(tokens)])
    assert len(words.forms) == len(set(tokens)) + 1
    assert sorted(set(words.places.tolist())) == list(range(len(words.forms)))


def test_something_follows_the_characters_of_each_word():
    inputs = WordInputs.from_trees(KNOWN, min_count=1)
    vocabulary = inputs.vocabularies["characters"]
    a, b, first, last = (vocabulary.id(character) for character in ("a", "b", FIRST, LAST))
    expected = [[first, a, last, 0, 0], [first, a, b, last, 0]]
    assert inputs.spell(["a", "ab"]).tolist() == expected
    assert inputs.spell(["a"]).tolist() == [expected[0][:4]]
