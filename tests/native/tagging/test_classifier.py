from collections import Counter
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import pytest
from oracle.tagging import classifier as twin

from treewright.native.tagging import classifier as native
from treewright.tagging.classifier import compile_templates

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

FIXED = "w.lower\nw-1.lower w+1.shape\nw.suffix2\nw.class w+1.class\nw-2.prefix3"
MOVING = "w-1.tag\nw-1.label w-2.label w.lower\nw-1.upos w.suffix1"
FEATURES = [
    twin.Feature(0, [(1, 0)]),
    twin.Feature(1, [(1, -1), (3, 1)]),
    twin.Feature(2, [(9, 0)]),
    twin.Feature(3, [(2, 0), (2, 1)]),
    twin.Feature(4, [(6, -2)]),
    twin.Feature(5, [(15, -1)]),
    twin.Feature(6, [(16, -1), (16, -2), (1, 0)]),
    twin.Feature(7, [(14, -1), (8, 0)]),
]
N_FIXED = 5
OUTCOMES = [[0, 1], [2, 3], [0, 3, 4], [5]]
N_PIECES = 6


class Case(NamedTuple):
    """Random sentences in both forms."""

    text: native.EncodedText
    sentences: list
    label_values: list
    golds: list
    gold: np.ndarray


def make_case(seed, sizes):
    """Draw sentences of few words, so that features come again."""
    rng = np.random.default_rng(seed)
    attributes = rng.integers(0, 6, (5, native.N_WORD_ATTRIBUTES)).astype(np.uint64)
    label_values = rng.integers(0, 2**63, (len(OUTCOMES), 3)).astype(np.uint64)
    first = np.cumsum([0, *sizes])
    types = rng.integers(0, len(attributes), first[-1]).astype(np.int32)
    gold = rng.integers(0, len(OUTCOMES), first[-1]).astype(np.int32)
    spans = [slice(begin, end) for begin, end in pairwise(first)]
    return Case(
        native.EncodedText(first, types, attributes, label_values),
        [attributes[types[span]].tolist() for span in spans],
        label_values.tolist(),
        [gold[span].tolist() for span in spans],
        gold,
    )


def make_table(keys, weights=None):
    """Make a table of the keys with the weights of (key, piece), if any."""
    keys = np.array(sorted(keys), np.uint32)
    slots = np.full(1 << (2 * keys.size).bit_length(), -1, np.int32)
    native.index_keys(keys, slots)
    rows = (
        [[(piece, weights[key, piece]) for piece in range(N_PIECES)] for key in keys.tolist()]
        if weights
        else []
    )
    pieces = np.array([piece for row in rows for piece, _ in row], np.int32)
    sizes = np.full(keys.size, N_PIECES if weights else 0, np.int32)
    values = np.array([weight for row in rows for _, weight in row], np.float32)
    first = (np.cumsum(sizes) - sizes).astype(np.int64)
    used = np.array([pieces.size])
    return native.WeightTable(
        slots, keys, first, sizes, sizes.copy(), used, pieces, values, np.zeros(pieces.size)
    )


def make_model(table):
    return native.OutcomeModel(
        compile_templates(FIXED),
        compile_templates(MOVING, first_number=N_FIXED),
        np.cumsum([0, *map(len, OUTCOMES)]).astype(np.int32),
        np.concatenate(OUTCOMES).astype(np.int32),
        N_PIECES,
        table,
    )


def fixed_rows(model, case):
    keys = np.empty((case.gold.size, N_FIXED), np.uint32)
    native.fill_text_keys(model.fixed, case.text, np.zeros_like(case.gold), keys)
    rows = np.empty(keys.shape, np.int32)
    native.fill_rows(model.table, keys, rows)
    return rows


def contents(table, values):
    """List the values of a table by key and piece."""
    return {
        (int(table.keys[row]), int(table.pieces[at])): float(values[at])
        for row in range(table.keys.size)
        for at in range(table.starts[row], table.starts[row] + table.sizes[row])
    }


def test_attributes_of_words_equal_the_twins():
    rng = np.random.default_rng(0)
    words = [rng.integers(1, 4, size).astype(np.uint32) for size in (0, 1, 2, 3, 5, 6, 9, 9)]
    points = np.concatenate(words)
    folded, shapes = points % np.uint32(3), points % np.uint32(2)
    first = np.cumsum([0, *map(len, words)])
    spans = [slice(begin, end) for begin, end in pairwise(first)]
    classes = {twin.letters_hash(folded[span].tolist()): 3 + at for at, span in enumerate(spans[2:6])}
    lexicon = native.Lexicon(
        np.array(sorted(classes), np.uint64), np.array([classes[form] for form in sorted(classes)], np.int32)
    )
    found = np.empty((len(words), native.N_WORD_ATTRIBUTES), np.uint64)
    native.fill_attributes(native.Letters(first, points, folded, shapes), lexicon, found)
    expected = [
        twin.attributes(points[span].tolist(), folded[span].tolist(), shapes[span].tolist(), classes)
        for span in spans
    ]
    assert found.tolist() == expected


def test_keys_equal_the_twins():
    case = make_case(1, [0, 1, 2, 7])
    keys = np.empty((case.gold.size, len(FEATURES)), np.uint32)
    native.fill_text_keys(compile_templates(FIXED), case.text, case.gold, keys[:, :N_FIXED])
    native.fill_text_keys(
        compile_templates(MOVING, first_number=N_FIXED), case.text, case.gold, keys[:, N_FIXED:]
    )
    expected = [
        [twin.key(feature, sentence, case.label_values, gold, at) for feature in FEATURES]
        for sentence, gold in zip(case.sentences, case.golds, strict=True)
        for at in range(len(sentence))
    ]
    assert keys.tolist() == expected


def test_each_key_is_found_in_its_row_and_no_other_key_is():
    keys = np.random.default_rng(2).choice(2**32, 500, replace=False).astype(np.uint32)
    table = make_table(keys[:400])
    rows = [native.find_row(table, key) for key in keys]
    assert table.keys[rows[:400]].tolist() == keys[:400].tolist()
    assert set(rows[400:]) == {-1}
    assert native.find_row(make_table([]), keys[0]) == -1


def test_each_word_gets_the_best_outcome_given_those_before():
    case = make_case(3, [0, 1, 2, 9, 12])
    rng = np.random.default_rng(4)
    known = twin.frequent_keys(FEATURES, case.sentences, case.golds, case.label_values, 1)
    # Sums of few small integers are exact, in any order.
    weights = Counter(
        {(key, piece): int(rng.integers(-50, 50)) for key in sorted(known) for piece in range(N_PIECES)}
    )
    model = make_model(make_table(known, weights))
    found = np.zeros_like(case.gold)
    native.choose(model, case.text, fixed_rows(model, case), found)
    expected = [
        twin.choose(weights, FEATURES, sentence, case.label_values, OUTCOMES) for sentence in case.sentences
    ]
    assert found.tolist() == list(chain(*expected))
    assert len(set(found.tolist())) > 1


def test_equal_scores_give_the_first_outcome():
    model = make_model(make_table([5]))
    score = np.empty(N_PIECES)
    assert native.best_outcome(model, np.array([0], np.int32), -1, 0.0, score) == 0
    assert native.best_outcome(model, np.array([0], np.int32), 0, 1.0, score) == 1


def test_learnt_weights_and_their_average_equal_the_twins():
    case = make_case(5, [1, 4, 0, 6, 3, 5])
    rng = np.random.default_rng(6)
    known = twin.frequent_keys(FEATURES, case.sentences, case.golds, case.label_values, 2)
    table, n_words, passes = make_table(known), case.gold.size, []
    for number in range(4):
        order, is_hidden = rng.permutation(len(case.sentences)), rng.random(n_words) < 0.3
        model = make_model(table)
        table, _ = native.learn(
            model, case.text, fixed_rows(model, case), case.gold, is_hidden, 3.0, order, number * n_words
        )
        first = case.text.indptr
        hidden = [is_hidden[begin:end] for begin, end in pairwise(first)]
        passes.append((order.tolist(), hidden))
    last, mean = twin.learn(
        FEATURES, case.sentences, case.golds, case.label_values, OUTCOMES, known, passes, 3.0
    )
    assert len(last) > 100
    assert contents(table, table.weights) == dict(last)
    found = contents(table, table.weights - table.totals / (4 * n_words))
    assert found == pytest.approx({place: mean.get(place, 0.0) for place in last}, abs=1e-6)


def test_updates_are_counted():
    case = make_case(7, [3, 4])
    model = make_model(make_table([]))
    rows = fixed_rows(model, case)
    never = np.zeros(case.gold.size, np.bool_)
    _, n_updates = native.learn(model, case.text, rows, case.gold, never, 0.0, np.arange(2), 0)
    assert n_updates == np.count_nonzero(case.gold != 0)


def test_a_row_keeps_its_weights_when_it_moves():
    table = make_table([1, 2])
    model = native.OutcomeModel(*make_model(table)[:-1], table)
    for piece in range(N_PIECES):
        for row in (0, 1):
            model = native.with_room(model, np.array([0, 1], np.int32), 1)
            model.table.weights[native.place_of(model.table, row, piece)] = 10 * row + piece
    expected = {(key, piece): 10.0 * (key - 1) + piece for key in (1, 2) for piece in range(N_PIECES)}
    assert contents(model.table, model.table.weights) == expected
