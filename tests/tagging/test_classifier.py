import numpy as np
import pytest

from treewright.native.tagging.classifier import LOWER, SHAPE, SUFFIX, WORD, Lexicon
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
