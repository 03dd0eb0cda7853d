import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.tagging import boundaries as oracle

from treewright.native.tagging.boundaries import (
    N_CHARACTER_ATTRIBUTES,
    N_TOKEN_ATTRIBUTES,
    PADDING,
    Learnt,
    TokenLexicon,
    fill_characters,
    fill_sentence_keys,
    fill_token_keys,
    fill_tokens,
    fill_words,
    find_sentence_ends,
    find_token_ends,
    index_keys,
    learn,
    list_tokens,
    slot_of,
)
from treewright.tagging.boundaries import (
    CHARACTERS,
    N_KINDS,
    TOKENS,
    compile_templates,
    encode_characters,
    index_table,
    make_weights,
)

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

TEXTS = st.text("ab AB.\n漢(\")'!12 \t\r\u0301\u200d🇩", max_size=40)
CHARACTER_TEMPLATES = """
c.folded c+1.folded
c-2.kind c.kind c+1.kind c+2.kind
c.begun c+1.rest
c.begun_shape c+1.rest_shape c+1.next
c.begun_size c.word_end c+1.word_begin c.word_over
c-1.begun c.point
"""
TOKEN_TEMPLATES = """
t.form t+1.lower
t.shape t+1.suffix t-1.class
t.first t.last t.size t.gap
t.ahead t.since t.open
t.start t.previous
t-1.since t.first
"""


def as_list(characters):
    return list(zip(*(each.tolist() for each in characters), strict=True))


def rules_as_lists(rules):
    return [
        [tuple(part) for part in parts[:size].tolist()]
        for parts, size in zip(rules.parts, rules.sizes, strict=True)
    ]


def character_rows(text, words=()):
    attributes = np.zeros((len(text.points) + 2 * PADDING, N_CHARACTER_ATTRIBUTES), np.uint32)
    fill_characters(text, attributes)
    fill_words(text, make_lexicon(dict.fromkeys(words, 1)), attributes)
    return attributes


def make_lexicon(classes):
    table, slots = index_table(np.array(sorted(classes), dtype=np.uint32))
    values = np.zeros(len(table), dtype=np.uint8)
    values[slots] = [classes[key] for key in sorted(classes)]
    return TokenLexicon(table, values)


def some_weights(keys, rng):
    """Give weights to half of the keys."""
    distinct = np.unique(keys).astype(np.uint32)
    kept = distinct[rng.random(len(distinct)) < 0.5]
    return make_weights(kept, rng.normal(size=len(kept)).astype(np.float32))


def as_dict(weights):
    return {
        int(key): float(value) for key, value in zip(weights.keys, weights.values, strict=True) if key > 0
    }


def some_words(text):
    """Take every other run of two characters for a known word."""
    found = oracle.known_spans(as_list(text), AnyKey())
    return {
        oracle.small(*text.folded[first : last + 1].tolist())
        for first, last in found
        if last - first in (1, 2) and first % 2 == 0
    }


class AnyKey:
    def __contains__(self, key):
        return True


@given(TEXTS)
def test_attributes_of_characters_equal_those_by_definition(text):
    characters = encode_characters(text)
    words = some_words(characters)
    rows = character_rows(characters, words)[PADDING:-PADDING, :9].tolist()
    assert rows == oracle.character_attributes(as_list(characters), words)


@given(TEXTS, st.booleans(), st.integers(0, 1000))
def test_token_ends_equal_those_by_definition(text, with_spaces, seed):
    rng = np.random.default_rng(seed)
    characters = encode_characters(text)
    words = some_words(characters)
    rules = compile_templates(CHARACTERS, CHARACTER_TEMPLATES)
    is_joined = rng.random((N_KINDS, N_KINDS)) < 0.2
    guess = np.array([at % 3 == 0 for at in range(len(text))], dtype=np.bool_)
    _, keys = fill_token_keys(
        characters, rules, is_joined, with_spaces, guess, character_rows(characters, words)
    )
    weights = some_weights(keys, rng)
    ends = np.zeros(len(text), np.bool_)
    rows = character_rows(characters, words)
    find_token_ends(characters, (rules, weights, 0.0), is_joined, with_spaces, rows, ends)
    templates = rules_as_lists(rules)
    expected = oracle.token_ends(
        as_list(characters),
        templates,
        as_dict(weights),
        lambda kind, after: is_joined[kind, after],
        with_spaces,
        words,
    )
    assert ends.tolist() == expected


def simple_tokens(characters):
    """Let tokens end after each second character and where white space follows."""
    kinds = characters.kinds
    ends = np.array(
        [
            kinds[at] > 3 and (at % 2 == 1 or at + 1 == len(kinds) or kinds[at + 1] <= 3)
            for at in range(len(kinds))
        ],
        dtype=np.bool_,
    )
    begins, stops = np.empty((2, len(kinds)), np.int64)
    n_tokens = list_tokens(characters, ends, begins, stops)
    return ends, begins[:n_tokens], stops[:n_tokens]


@given(TEXTS, st.booleans(), st.integers(0, 1000))
def test_sentence_ends_equal_those_by_definition(text, has_lines, seed):
    rng = np.random.default_rng(seed)
    characters = encode_characters(text)
    ends, begins, stops = simple_tokens(characters)
    tokens = list(zip(begins.tolist(), stops.tolist(), strict=True))
    assert tokens == oracle.tokens_of(as_list(characters), ends.tolist())
    classes = {oracle.small(ord("a")): 3, oracle.small(ord("b")): 2}
    attributes = np.zeros((len(tokens) + 2 * PADDING, N_TOKEN_ATTRIBUTES), np.uint32)
    is_last = np.zeros(len(tokens), np.bool_)
    fill_tokens(characters, begins, stops, make_lexicon(classes), has_lines, attributes, is_last)
    rows, lasts = oracle.token_attributes(as_list(characters), tokens, classes, has_lines)
    assert attributes[PADDING : PADDING + len(tokens), :10].tolist() == rows
    assert is_last.tolist() == lasts
    rules = compile_templates(TOKENS, TOKEN_TEMPLATES)
    weights = some_weights(fill_sentence_keys(characters, stops, rules, attributes.copy(), is_last), rng)
    found = np.zeros(len(tokens), np.bool_)
    find_sentence_ends(characters, stops, (rules, weights, 0.0), attributes, is_last, found)
    expected = oracle.sentence_ends(
        as_list(characters), tokens, rules_as_lists(rules), as_dict(weights), classes, has_lines
    )
    assert found.tolist() == expected


def test_keys_of_known_tokens_are_those_of_the_decisions():
    characters = encode_characters("(a1) b.")
    rules = compile_templates(CHARACTERS, CHARACTER_TEMPLATES)
    no_pair = np.zeros((N_KINDS, N_KINDS), np.bool_)
    ends = np.array([True, False, True, True, False, True, True])
    places, keys = fill_token_keys(characters, rules, no_pair, False, ends, character_rows(characters))
    assert places.tolist() == [0, 1, 2, 5]
    text = as_list(characters)
    rows = oracle.character_attributes(text)
    for begin, stop in oracle.tokens_of(text, ends.tolist()):
        for at in range(begin, stop):
            rows[at] += oracle.begun_attributes(text, begin, at)
    rows[4] += [0, 0, 0]
    templates = rules_as_lists(rules)
    assert keys.tolist() == [oracle.keys_of(templates, rows, at, 12) for at in places]


def test_a_table_finds_its_keys_and_no_others():
    keys = np.array([1, 17, 33, 5], np.uint32)
    table, slots = np.zeros(16, np.uint32), np.zeros(4, np.int64)
    index_keys(keys, table, slots)
    assert table[slots].tolist() == keys.tolist()
    assert [int(slot_of(table, np.uint64(key))) for key in keys] == slots.tolist()
    assert table[slot_of(table, np.uint64(49))] == 0


def test_learning_takes_the_steps_of_logistic_regression():
    rng = np.random.default_rng(3)
    rows = rng.integers(-1, 6, (20, 3)).astype(np.int32)
    rows[:, 1] = -1  # a unit does not have one feature twice
    rows[rows[:, 0] == rows[:, 2], 2] = -1
    gold = rng.random(20) < 0.5
    order = rng.permutation(20)
    learnt = Learnt(np.zeros(6), np.ones(6), np.zeros(6), np.zeros(1, np.int64))
    loss = learn(rows, gold, order, 0.5, 0.1, learnt)
    steps, expected = oracle.learn(rows.tolist(), gold.tolist(), order.tolist(), 0.5, 0.1, 6)
    assert loss == pytest.approx(expected)
    assert learnt.weights == pytest.approx(steps[-1])
    mean = np.mean([[0.0] * 6, *steps[:-1]], axis=0)  # of the weights before each step
    assert learnt.steps[0] == 20
    assert learnt.weights - learnt.totals / 20 == pytest.approx(mean)
