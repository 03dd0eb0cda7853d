"""Sentences that are too long to be parsed as a whole."""

import numpy as np
import pytest

import treewright as tw
from treewright.data.deptree import DepTree
from treewright.parsing.dependency.decoders import ProjectiveDecoder
from treewright.parsing.dependency.long_sentences import LONGEST, LONGEST_PIECE, Pieces, best_sums, cut


@pytest.fixture(scope="module")
def bank():
    return tw.make_treebank(40, random_state=0).dependencies


@pytest.fixture(scope="module")
def parser(bank):
    return tw.DependencyParser(order=2, epochs=1, runs=1, table_bits=12).fit(bank)


@pytest.fixture
def long_sentence(bank):
    """Return a sentence of three, and where they begin and end."""
    names = ("words", "lemmas", "upos", "xpos", "feats")
    columns = {name: [each for tree in bank[:3] for each in getattr(tree, name)] for name in names}
    return DepTree(**columns), np.cumsum([0, *map(len, bank[:3])]).tolist()


@pytest.fixture
def cut_at(monkeypatch, long_sentence):
    """Have long sentences cut where the sentences of which they are made end."""
    sentence, bounds = long_sentence
    monkeypatch.setattr(ProjectiveDecoder, "longest", len(sentence) - 1)
    monkeypatch.setattr(
        "treewright.parsing.dependency.long_sentences.cut",
        lambda words, longest: bounds if len(words) > longest else [0, len(words)],
    )
    return bounds


def test_cuts_are_behind_full_stops_or_other_punctuation_or_anywhere():
    assert cut(["a"] * 4, 4) == [0, 4]
    assert cut(["a"] * 10, 4) == [0, 4, 8, 10]
    assert cut(["a", "a", ".", "a", "a", ",", "a"], 4) == [0, 3, 7]
    assert cut(["a", "a", ".", ",", "a", "a", ",", "a", "a"], 4) == [0, 3, 7, 9]
    assert cut([".", "a", "a", "a", "a"], 4) == [0, 4, 5]


def test_no_piece_is_too_long():
    rng = np.random.default_rng(0)
    words = rng.choice(["a", "b", ".", ","], size=2000, p=[0.5, 0.48, 0.01, 0.01]).tolist()
    bounds = cut(words, 50)
    assert (bounds[0], bounds[-1]) == (0, 2000)
    assert all(0 < size <= 50 for size in np.diff(bounds))


def test_the_largest_sums_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    left, right = -np.sort(rng.normal(size=6)), -np.sort(rng.normal(size=5))
    places, sums = best_sums(left, right, 12)
    assert np.allclose(sums, -np.sort(-np.add.outer(left, right), axis=None)[:12])
    assert np.allclose(sums, left[places[:, 0]] + right[places[:, 1]])


def test_pieces_are_parsed_as_sentences_and_their_roots_hang_on_the_first(
    parser, bank, long_sentence, cut_at
):
    sentence, bounds = long_sentence
    found = parser.predict([sentence])[0]
    apart = parser.structures(bank[:3], 1)
    first = int(np.argmax(apart[0].heads[0] == 0)) + 1
    expected = [
        np.where(each.heads[0] > 0, each.heads[0] + begin, first if number else 0)
        for number, (each, begin) in enumerate(zip(apart, bounds, strict=False))
    ]
    assert parser.structures([sentence], 1)[0].heads[0].tolist() == np.concatenate(expected).tolist()
    assert sum(found.heads == 0) == 1
    assert found.words == sentence.words


def test_best_trees_of_pieces_are_put_together_with_their_probabilities(parser, bank, long_sentence, cut_at):
    sentence, _ = long_sentence
    whole = parser.structures([sentence], 6)[0]
    apart = parser.structures(bank[:3], 6)
    scores = sorted(
        (a + b + c for a in apart[0].scores for b in apart[1].scores for c in apart[2].scores), reverse=True
    )
    assert np.allclose(whole.scores, scores[:6])
    assert np.isclose(whole.probabilities[0], np.prod([each.probabilities[0] for each in apart]))
    assert len({row.tobytes() for row in whole.heads}) == 6


def test_the_heads_of_each_word_of_a_long_sentence_have_probability_one_together(
    parser, long_sentence, cut_at
):
    sentence, _ = long_sentence
    rows = parser.marginals([sentence])[0]
    assert rows.shape == (len(sentence), len(sentence) + 1)
    assert np.allclose(rows.sum(axis=1), 1)
    assert np.isclose(rows[:, 0].sum(), 1)
    assert (parser.confidence(parser.predict([sentence])[0], rows) >= 0).all()


def test_other_sentences_of_a_batch_are_parsed_as_ever(parser, bank, long_sentence, cut_at):
    sentence, _ = long_sentence
    found = parser.predict([bank[4], sentence, bank[5]])
    assert [found[0], found[2]] == parser.predict([bank[4], bank[5]])


def test_sentences_with_fixed_heads_stay_whole(parser, long_sentence, cut_at):
    sentence, _ = long_sentence
    found = parser.predict([sentence], fixed=[{1: len(sentence)}])[0]
    assert found.heads[0] == len(sentence)


def test_pieces_are_shorter_than_sentences_that_stay_whole():
    whole, long = DepTree(["a"] * LONGEST), DepTree(["a"] * (LONGEST + 1))
    assert [len(piece) for piece in Pieces([whole], None).trees] == [LONGEST]
    sizes = [len(piece) for piece in Pieces([long], None).trees]
    assert (sum(sizes), max(sizes)) == (LONGEST + 1, LONGEST_PIECE)
