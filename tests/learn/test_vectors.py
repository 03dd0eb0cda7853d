"""Vectors of words."""

import numpy as np
import pytest

from treewright.errors import InputError
from treewright.learn.vectors import learn_vectors

ANIMALS, PLACES = ("cat", "dog", "fox"), ("Rome", "Oslo", "Lima")


def make_sentences(n_sentences=200, random_state=0):
    rng = np.random.default_rng(random_state)
    kinds = [(ANIMALS, ("the", "old"), ("sleeps", "eats")), (PLACES, ("in", "near"), ("lies", "shines"))]
    chosen = [kinds[rng.integers(2)] for _ in range(n_sentences)]
    return [[str(rng.choice(words)) for words in (before, nouns, after)] for nouns, before, after in chosen]


def test_words_in_the_same_company_are_similar():
    vectors = learn_vectors(make_sentences(), size=4)
    for one in ANIMALS:
        within = min(vectors[one] @ vectors[other] for other in ANIMALS)
        across = max(vectors[one] @ vectors[other] for other in PLACES)
        assert within > 0.8 > 0.3 > across


def test_vectors_have_the_length_one_and_the_size_that_was_asked_for():
    vectors = np.array(list(learn_vectors(make_sentences(), size=4).values()))
    assert vectors.shape[1] == 4
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)


def test_rare_words_have_no_vector():
    sentences = [*make_sentences(), ["the", "yeti", "sleeps"]]
    assert "yeti" not in learn_vectors(sentences, size=4)
    assert "yeti" in learn_vectors(sentences, size=4, min_count=1)


def test_there_are_no_neighbours_across_sentences():
    apart = learn_vectors([["a"], ["b"], ["a"], ["b"], ["c", "d"], ["c", "d"]], size=2, window=1)
    assert set(apart) == {"c", "d"}


def test_the_same_seed_gives_the_same_vectors():
    one, other = (learn_vectors(make_sentences(), size=4, random_state=3) for _ in range(2))
    assert all(np.array_equal(one[word], other[word]) for word in one)


def test_too_few_words_have_no_vectors():
    assert learn_vectors([]) == {}
    assert learn_vectors([["one", "one"]]) == {}


def test_a_window_of_nothing_is_refused():
    with pytest.raises(InputError, match="window is 0"):
        learn_vectors(make_sentences(), window=0)


def test_words_without_neighbours_have_no_vectors():
    assert learn_vectors([[word] for word in "aabbcc"]) == {}
