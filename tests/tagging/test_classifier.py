import numpy as np
import pytest

from treewright.native.tagging.classifier import LOWER, SHAPE, SUFFIX, WORD, Lexicon
from treewright.tagging import classifier
from treewright.tagging.classifier import compile_templates, hash_words, word_attributes

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

NO_WORDS = Lexicon(np.zeros(0, np.uint64), np.zeros(0, np.int32))


def test_words_that_differ_in_case_and_digits_only_are_the_same_in_lower_case():
    upper, lower = word_attributes(["ÉX-19", "éx-20"], NO_WORDS)[:, LOWER]
    assert upper == lower


def test_shapes_tell_kinds_of_letters_and_not_how_many():
    shapes = word_attributes(["Abc", "Xy", "aB", "AB", "12:30", "1:5", "1;5", "漢字", "한글"], NO_WORDS)[
        :, SHAPE
    ]
    assert shapes[0] == shapes[1]
    assert shapes[4] == shapes[5]
    assert shapes[7] == shapes[8]
    assert len(set(shapes.tolist())) == 6


def test_suffixes_are_those_of_the_word_in_lower_case():
    first, second, short = word_attributes(["WALKING", "talking", "ing"], NO_WORDS)
    same = [first[SUFFIX + at] == second[SUFFIX + at] for at in range(6)]
    assert same == [True] * 6
    assert short[SUFFIX + 2] == first[SUFFIX + 2]
    assert short[SUFFIX + 3] != first[SUFFIX + 3]


def test_distinct_words_have_distinct_hashes():
    words = [f"{a}{b}" for a in "abcdefgh" for b in range(100)]
    assert len(set(hash_words(words).tolist())) == len(words)
    assert hash_words(words).tolist() == word_attributes(words, NO_WORDS)[:, WORD].tolist()


def test_templates_are_numbered_and_know_whether_they_name_the_word():
    templates = compile_templates("w.lower\nw-1.lower w+1.suffix2\nw.class w+2.class", first_number=4)
    assert templates.numbers.tolist() == [4, 5, 6]
    assert templates.sizes.tolist() == [1, 2, 2]
    assert templates.parts[1, :2].tolist() == [[LOWER, -1], [SUFFIX + 1, 1]]
    assert templates.is_lexical.tolist() == [True, False, True]


def make_table(rows, totals):
    """Return a table with weights by row and piece, and the sums of their changes times their steps."""
    entries = [(row, piece) for row, pieces in enumerate(rows) for piece in pieces]
    sizes = np.array([len(pieces) for pieces in rows], dtype=np.int32)
    weights = np.array([rows[row][piece] for row, piece in entries], dtype=np.float32)
    pieces = np.array([piece for _, piece in entries], dtype=np.int32)
    table = classifier._make_table(np.arange(1, 1 + len(rows), dtype=np.uint32), sizes, pieces, weights)
    return table._replace(totals=np.array(totals, dtype=np.float64))


def test_weights_are_the_means_over_the_steps_of_each_run_and_over_runs():
    first = make_table([{0: 4.0, 2: 6.0}, {}, {1: 1.0}], [10.0, 20.0, 0.0])
    second = make_table([{2: 2.0}, {}, {0: 5.0, 1: -2.0}], [0.0, 30.0, 0.0])
    sums = classifier.NO_WEIGHTS.plus(first, 10).plus(second, 10)
    # Averaged weights of the first run: 3, 4 and 1; of the second: 2, 2 and -2.
    found = sums.mean(first.keys, 2)
    assert found.keys.tolist() == [1, 3]
    assert found.sizes.tolist() == [2, 2]
    assert found.pieces.tolist() == [0, 2, 0, 1]
    assert found.weights == pytest.approx([1.5, 3.0, 1.0, -0.5], rel=0.1)  # rounded as in a file


def test_small_mean_weights_are_dropped():
    table = make_table([{0: 0.9}, {1: 3.0}], [0.0, 0.0])
    sums = classifier.NO_WEIGHTS.plus(table, 1).plus(make_table([{}, {}], []), 1)
    assert sums.mean(table.keys, 2).keys.tolist() == [2]
