from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.mining import strings as twin

import treewright as tw
from treewright.errors import InputError
from treewright.mining.space import Violations
from treewright.mining.text_items import TextEncoder

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

TEXTS = st.lists(
    st.one_of(st.text("abA ?", max_size=8), st.lists(st.sampled_from(["a", "b", "A", "ab"]), max_size=4)),
    max_size=5,
)


def twin_rows(space):
    """Return the texts of a space as the twin knows rows."""
    sequences, indptr = space.rows
    rows = []
    for begin, end in pairwise(indptr):
        rows.append(
            [
                (
                    sequences.items[sequences.indptr[at] : sequences.indptr[at + 1]].tolist(),
                    int(sequences.reach[at] - begin),
                    bool(sequences.has_gaps[at]),
                    int(sequences.limits[at]),
                )
                for at in range(begin, end)
            ]
        )
    return rows


@given(TEXTS, st.integers(0, 2), st.integers(0, 1))
@settings(deadline=None, max_examples=50)
def test_features_of_texts_are_those_of_the_enumeration(texts, max_gap, max_char_gap):
    space = tw.StringSpace(
        texts, attributes=("lower", "word", "char"), max_gap=max_gap, max_char_gap=max_char_gap, word_degree=2
    )
    rows = twin_rows(space)
    counters = np.zeros((len(texts), 1), dtype=np.int32)
    found = space.search(Violations(np.arange(len(texts)), counters, 2), 0, 3)
    features = []
    for order in range(1, 4):
        parts = list(found.grow())
        own = np.concatenate([np.zeros((0, order), dtype=np.int32), *(part.features for part in parts)])
        assert {tuple(row) for row in own.tolist()} == set().union(
            *(twin.list_grams(row, order) for row in rows)
        )
        features.append(own)
    listed = [tuple(row) for each in features for row in each.tolist()]
    assert space.match(features).toarray().astype(bool).tolist() == twin.match_rows(rows, listed)


def names_of(space, degree=2):
    """Return the names of all features of a space."""
    violations = Violations(np.arange(space.n_rows), np.zeros((space.n_rows, 1), dtype=np.int32), 2)
    found = space.search(violations, 0, degree)
    return {
        space.name(feature)
        for _ in range(degree)
        for part in found.grow()
        for feature in part.features.tolist()
    }


def test_words_stand_next_to_each_other_or_with_a_gap():
    assert names_of(tw.StringSpace(["how many miles"], max_gap=1)) == {
        "^",
        "lower=how",
        "lower=many",
        "lower=miles",
        "$",
        "^ lower=how",
        "lower=how lower=many",
        "lower=many lower=miles",
        "lower=miles $",
        "^ .. lower=how",
        "^ .. lower=many",
        "lower=how .. lower=many",
        "lower=how .. lower=miles",
        "lower=many .. lower=miles",
        "lower=many .. $",
        "lower=miles .. $",
    }


def test_characters_have_n_grams_of_their_own():
    assert names_of(tw.StringSpace(["ab"], attributes=["char"])) == {
        "char=' '",
        "char='a'",
        "char='b'",
        "char=' a'",
        "char='ab'",
        "char='b '",
    }


def test_degrees_of_words_and_characters_are_limited_apart_and_marks_do_not_count():
    space = tw.StringSpace(["a b"], attributes=["lower", "char"], word_degree=1, char_degree=2, max_gap=0)
    names = names_of(space, degree=3)
    assert {name for name in names if "char" not in name} == {
        "^",
        "lower=a",
        "lower=b",
        "$",
        "^ lower=a",
        "lower=b $",
    }
    assert "char='a '" in names
    assert max(len(name) for name in names if "char" in name) == len("char='a '")


def test_tags_and_parts_of_words_can_mix_with_words():
    names = names_of(tw.StringSpace([[("Which", "WDT"), ("cities", "NNS")]], attributes=["tag", "prefix"]))
    assert {"tag=WDT prefix=citi", "prefix=whic tag=NNS", "prefix=whic .. prefix=citi"} <= names
    names = names_of(tw.StringSpace(["cities to"], attributes=["suffix"]))
    assert "suffix=ies .. $" in names
    assert not any("to" in name for name in names)


def test_a_word_with_capitals_is_an_item_beside_its_lower_case():
    assert tw.StringSpace(["The cat"], attributes=["word", "lower"]).items == [
        "^",
        "lower=the",
        "word=The",
        "lower=cat",
        "$",
    ]
    assert tw.StringSpace(["Aa"], attributes=["char", "lower_char"]).items == [
        "lower_char= ",
        "lower_char=a",
        "char=A",
    ]


def test_a_text_without_words_has_a_beginning_and_an_end():
    assert names_of(tw.StringSpace(["", []], max_gap=0)) == {"^", "$", "^ $"}


def test_a_pattern_finds_the_words_of_strings():
    space = tw.StringSpace(["a-b c"], token_pattern=r"(\S)(\S*)")
    assert space.items == ["^", "lower=a-b", "lower=c", "$"]


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ([3], {}, "text 0 is 3; expected a string, a list of words, or a list of (word, tag) pairs"),
        ([["a", 3]], {}, "text 0 has the token 3; expected a string, a list of words, or a list of"),
        (["a b"], {"attributes": ["tag"]}, "text 0 has no tag at 'a'; expected a list of (word, tag) pairs"),
        ([], {"attributes": "tag"}, "attributes is 'tag'; expected a list of word, lower, prefix,"),
        ([], {"attributes": ["stem"]}, "attributes has 'stem'; expected a list of word, lower, prefix,"),
        (
            [],
            {"token_pattern": "("},
            "token_pattern is '(' (missing ), unterminated subpattern at position 0)",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(texts, options, message):
    with pytest.raises(InputError) as caught:
        tw.StringSpace(texts, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_items_that_a_fixed_vocabulary_lacks_leave_their_positions():
    encoder = TextEncoder(["lower"], max_gap=0, max_char_gap=0)
    rows = encoder.encode(["a b c"], {"lower=a": 0, "lower=c": 1}, is_fixed=True)
    assert rows.sequences.items.tolist() == [0, 1]
    assert rows.indptr.tolist() == [0, 5]
