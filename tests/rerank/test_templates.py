from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import templates as twin
from strategies import heads

from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.model import load_state, save_state
from treewright.rerank import templates
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.templates import TemplateFeatures

LINES = [" ".join(line.split()) for line in templates.TEMPLATES.splitlines() if line.strip()]
WORDS, TAGS = ["the", "a", "dog", "saw", "me"], ["D", "N", "V"]
SENTENCE = (["the", "old", "man", "saw", "a", "dog"], ["D", "A", "N", "V", "D", "N"])
RIGHT, WRONG = [3, 3, 4, 0, 6, 4], [2, 3, 4, 0, 6, 4]


def make_lists(sentences, candidates):
    """Make lists of the (words, tags) of sentences and the heads of their candidates."""
    trees = [DepTree(words, upos=tags, xpos=tags) for words, tags in sentences]
    arrays = [
        np.array(each, dtype=np.int32).reshape(len(each), len(tree))
        for each, tree in zip(candidates, trees, strict=True)
    ]
    numbers = [np.arange(len(each), dtype=float) for each in arrays]
    return CandidateLists(trees, arrays, numbers, numbers)


def random_heads(rng, n):
    """Draw a tree in which each word hangs on 0 or on one that was placed before it."""
    order = rng.permutation(n) + 1
    chosen = [0] * n
    for placed, word in enumerate(order):
        chosen[word - 1] = int(rng.choice([0, *order[:placed]]))
    return chosen


def random_data(random_state, n_lists=20, n_words=7, k=4):
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(1, n_words + 1, n_lists)
    sentences = [(rng.choice(WORDS, n).tolist(), rng.choice(TAGS, n).tolist()) for n in sizes]
    return sentences, [[random_heads(rng, n) for _ in range(rng.integers(1, k + 1))] for n in sizes]


def patterns_by_walking(lines, sentences, candidates):
    """Return for each telling feature the candidates that have it, by their numbers among all."""
    having, number = {}, 0
    for (words, tags), trees in zip(sentences, candidates, strict=True):
        for found in twin.telling_features(lines, words, tags, trees):
            for each in found:
                having.setdefault(each, []).append(number)
            number += 1
    return having


def patterns_of_columns(matrix):
    return Counter(tuple(np.flatnonzero(column).tolist()) for column in matrix.toarray().T)


def texts_of_right(features):
    """Return the features of RIGHT as text."""
    tree = DepTree(SENTENCE[0], RIGHT, upos=SENTENCE[1], xpos=SENTENCE[1])
    return set(features.describe(tree).values())


@pytest.fixture
def only(monkeypatch):
    """Return a function that leaves no template but one."""

    def choose(line):
        monkeypatch.setattr(
            templates, "PARSED", [one for one in templates.PARSED if one.key == templates.hash_text(line)]
        )
        assert len(templates.PARSED) == 1

    return choose


@pytest.fixture
def changed():
    """Return the features of two trees for one sentence."""
    return TemplateFeatures(min_count=1).fit(make_lists([SENTENCE], [[RIGHT, WRONG]]))


@pytest.mark.parametrize("line", LINES)
def test_each_template_fires_exactly_where_a_walk_says(only, line):
    only(line)
    sentences, candidates = random_data(0)
    lists = make_lists(sentences, candidates)
    found = TemplateFeatures(min_count=1).fit(lists).transform(lists)
    expected = patterns_by_walking([line], sentences, candidates)
    assert expected
    assert patterns_of_columns(found) == Counter(map(tuple, expected.values()))


@pytest.mark.slow
@given(st.data())
def test_all_templates_fire_exactly_where_a_walk_says(data):
    n = data.draw(st.integers(1, 8))
    words, tags = (data.draw(st.lists(st.sampled_from(x), min_size=n, max_size=n)) for x in (WORDS, TAGS))
    candidates = data.draw(st.lists(heads(n), min_size=1, max_size=4))
    lists = make_lists([(words, tags)], [candidates])
    found = TemplateFeatures(min_count=1).fit(lists).transform(lists)
    expected = patterns_by_walking(LINES, [(words, tags)], [candidates])
    assert patterns_of_columns(found) == Counter(map(tuple, expected.values()))


def test_there_are_many_templates_and_none_twice():
    assert 30 <= len(LINES) == len(set(LINES)) == len({one.key for one in templates.PARSED}) <= 50


def test_blocks_do_not_change_features(monkeypatch):
    lists = make_lists(*random_data(1))
    whole = TemplateFeatures(min_count=2).fit(lists)
    expected = whole.transform(lists)
    monkeypatch.setattr(templates, "BLOCK_ROWS", 10)
    in_blocks = TemplateFeatures(min_count=2).fit(lists)
    assert in_blocks.keys_.tolist() == whole.keys_.tolist()
    assert (in_blocks.transform(lists) != expected).nnz == 0


def test_lists_can_have_more_than_64_candidates():
    rng = np.random.default_rng(2)
    sentence = (rng.choice(WORDS, 6).tolist(), rng.choice(TAGS, 6).tolist())
    candidates = [random_heads(rng, 6) for _ in range(150)]
    lists = make_lists([sentence], [candidates])
    found = TemplateFeatures(min_count=1).fit(lists).transform(lists)
    expected = patterns_by_walking(LINES, [sentence], [candidates])
    assert patterns_of_columns(found) == Counter(map(tuple, expected.values()))


def test_columns_of_a_row_are_in_order_and_all_values_are_ones():
    lists = make_lists(*random_data(3))
    found = TemplateFeatures(min_count=1).fit(lists).transform(lists)
    assert found.dtype == np.int8
    assert set(found.data.tolist()) == {1}
    assert found.has_canonical_format


def test_all_siblings_are_told_in_the_order_of_the_sentence(changed):
    texts = texts_of_right(changed)
    assert "word N, modifiers on its left D A" in texts
    assert "word man, modifiers on its left D A" in texts
    assert "word A, modifiers on its left -" in texts
    assert "word N, 2 modifiers on its left" in texts


def test_siblings_on_the_right_are_told_in_the_order_of_the_sentence():
    lists = make_lists([(["x"] * 4, ["V", "A", "B", "C"])], [[[0, 1, 1, 1], [0, 1, 2, 3]]])
    features = TemplateFeatures(min_count=1).fit(lists)
    assert "word V, modifiers on its right A B C" in features.describe(lists.candidate(0)).values()


def test_parts_are_told_with_the_sides_of_their_arcs(changed):
    texts = texts_of_right(changed)
    assert "head man, sibling A, modifier D, modifier on the left" in texts
    assert "grandparent saw, head N, modifier the, modifier on the left, head on the left" in texts
    assert "head N, second sibling -, sibling A, modifier D, length 2, modifier on the left" in texts


def test_features_of_both_trees_are_not_told(changed):
    assert not [text for text in texts_of_right(changed) if "dog" in text]


def test_described_columns_are_those_of_the_candidate(changed):
    lists = make_lists([SENTENCE], [[RIGHT, WRONG]])
    matrix = changed.transform(lists)
    for number in range(2):
        assert sorted(changed.describe(lists.candidate(number))) == matrix[number].indices.tolist()


@pytest.mark.parametrize(
    ("length", "text"), [(1, "1"), (2, "2"), (5, "5"), (6, "6-10"), (10, "6-10"), (11, "11-20"), (40, "21+")]
)
def test_lengths_are_told_by_their_bins(length, text):
    sentence = (["x"] * (length + 1), ["T"] * length + ["LAST"])
    lists = make_lists([sentence], [[[0] + [1] * length, [length + 1] * length + [0]]])
    features = TemplateFeatures(min_count=1).fit(lists)
    told = [one for one in features.describe(lists.candidate(0)).values() if "modifier LAST, length" in one]
    assert told
    assert all(f"length {text}," in one for one in told)


@pytest.mark.parametrize("min_count", [1, 2, 3, 5])
def test_features_tell_candidates_apart_in_enough_lists(min_count):
    sentences, candidates = random_data(4)
    lists = make_lists(sentences, candidates)
    found = TemplateFeatures(min_count=min_count).fit(lists).transform(lists)
    list_of = np.repeat(np.arange(len(lists)), np.diff(lists.indptr))
    expected = [
        tuple(numbers)
        for numbers in patterns_by_walking(LINES, sentences, candidates).values()
        if len(set(list_of[numbers].tolist())) >= min_count
    ]
    assert patterns_of_columns(found) == Counter(expected)


def test_unseen_features_are_ignored():
    features = TemplateFeatures(min_count=1).fit(make_lists([SENTENCE], [[RIGHT, WRONG]]))
    strange = make_lists([(["x"] * 6, ["X"] * 6)], [[RIGHT, WRONG]])
    found = features.transform(strange)
    assert found.shape == (2, features.n_features)
    assert found.nnz == 0


def test_without_features_there_are_no_columns():
    lists = make_lists([SENTENCE], [[RIGHT]])
    features = TemplateFeatures().fit(lists)
    assert features.transform(lists).shape == (1, 0)
    assert features.describe(lists.candidate(0)) == {}


def test_lists_without_candidates_and_sentences_without_words_have_no_features():
    lists = make_lists([([], []), SENTENCE, SENTENCE], [[], [], [RIGHT, WRONG]])
    features = TemplateFeatures(min_count=1).fit(lists)
    assert features.transform(lists).nnz > 0
    assert features.transform(lists.select([0, 1])).shape == (0, features.n_features)
    assert features.transform(lists.select([])).shape == (0, features.n_features)


def test_features_that_are_left_out_do_not_change_differences_of_scores():
    sentences, candidates = random_data(5)
    lists = make_lists(sentences, candidates)
    features = TemplateFeatures(min_count=1).fit(lists)
    weights = np.random.default_rng(6).normal(size=features.n_features)
    scores = features.transform(lists) @ weights
    for begin, end in lists.spans():
        full = [sum(weights[list(features.describe(lists.candidate(at)))]) for at in range(begin, end)]
        np.testing.assert_allclose(scores[begin:end] - scores[begin], np.subtract(full, full[0]), atol=1e-9)


def test_a_saved_set_of_features_is_the_same_again(tmp_path):
    lists = make_lists(*random_data(7))
    features = TemplateFeatures(min_count=2).fit(lists)
    save_state(features.get_state(), tmp_path / "features")
    again = TemplateFeatures.from_state(load_state(tmp_path / "features"))
    assert (again.min_count, again.column_) == (2, "xpos")
    assert (again.transform(lists) != features.transform(lists)).nnz == 0
    assert again.describe(lists.candidate(0)) == features.describe(lists.candidate(0))


def test_the_chosen_tags_are_looked_at():
    tree = DepTree(["x", "x"], upos=["U", "U"], xpos=["A", "B"])
    heads = [np.array([[0, 1], [2, 0]], dtype=np.int32)]
    lists = CandidateLists([tree], heads, [np.zeros(2)], [np.zeros(2)])
    texts = TemplateFeatures(min_count=1, column="upos").fit(lists).describe(lists.candidate(0)).values()
    assert any(" U" in text for text in texts)
    assert not any(" A" in text or " B" in text for text in texts)


def test_min_count_must_be_positive():
    with pytest.raises(InputError, match="min_count is 0; expected an integer of at least 1"):
        TemplateFeatures(min_count=0).fit(make_lists([SENTENCE], [[RIGHT]]))
