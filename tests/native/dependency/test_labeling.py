from typing import NamedTuple

import numpy as np
import pytest
from oracle.dependency import features as features_twin
from oracle.dependency import labeling as twin

from treewright.native.dependency import labeling as native
from treewright.parsing.dependency.features import Corpus, compile_templates

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

TEXTS = twin.Texts(
    own="m.word *\nh.tag m.tag\ng.pos h.pos m.pos\ns.tag m.tag n.tag\nf.word m.pos l.word\nm-1.tag l+1.tag",
    child="t.word m.pos\nt.pos h.pos",
    sibling="t.pos m.pos h.pos",
)
BITS, COUNT_BITS = 20, 18
MAX_KEYS = 500


class Case(NamedTuple):
    """A random corpus in both forms."""

    corpus: Corpus
    sentences: list
    """Of (words, heads, gold labels)."""
    gold: np.ndarray


def random_tree(rng, n):
    """Draw heads: each word hangs on the root or on a word that was placed before it."""
    order = (1 + rng.permutation(n)).tolist()
    heads = [0] * n
    for at, word in enumerate(order):
        heads[word - 1] = int(rng.choice([0, *order[:at]]))
    return heads


def make_case(seed, sizes, n_labels):
    rng = np.random.default_rng(seed)
    corpus = Corpus(*features_twin.random_corpus(rng, [random_tree(rng, n) for n in sizes]))
    gold = np.where(corpus.heads >= 0, rng.integers(1, n_labels + 1, corpus.heads.size), 0).astype(np.int32)
    sentences = []
    for number, n in enumerate(sizes):
        tree, root = native.take_tree(corpus, number)
        words = features_twin.unpack(tree.sentence)
        rows = slice(root, root + n + 1)
        sentences.append((words, corpus.heads[rows].tolist(), gold[rows].tolist()))
    return Case(corpus, sentences, gold)


def make_model(weights, groups):
    """Make a model for groups of labels."""
    return native.LabelModel(
        compile_templates(TEXTS.own, "label"),
        compile_templates(TEXTS.child, "label_child"),
        compile_templates(TEXTS.sibling, "label_sibling"),
        np.cumsum([0, *map(len, groups)]).astype(np.int32),
        np.concatenate(groups).astype(np.int32),
        weights,
        np.uint64(64 - BITS),
        MAX_KEYS,
    )


def test_words_are_ordered_from_the_root_downwards():
    for number, (_, heads, _) in enumerate((case := make_case(0, [1, 2, 8, 12], 3)).sentences):
        tree, _ = native.take_tree(case.corpus, number)
        assert native.downward_order(tree).tolist() == [0, *twin.downward(heads)]


def test_keys_equal_the_twins():
    case = make_case(1, [1, 5, 12, 24], 4)
    model = make_model(np.zeros(2, np.float32), [[1]])
    keys = np.empty(MAX_KEYS, np.uint64)
    for number, (words, heads, labels) in enumerate(case.sentences):
        tree, root = native.take_tree(case.corpus, number)
        for word in range(1, len(heads)):
            n_keys = native.fill_label_keys(model, tree, case.gold[root:], word, keys)
            expected = twin.label_keys(TEXTS, words, heads, labels, word)
            assert sorted(keys[:n_keys].tolist()) == sorted(expected)


def test_a_word_has_no_more_than_eight_relatives_of_a_kind():
    corpus = Corpus(*features_twin.random_corpus(np.random.default_rng(2), [[0] + [1] * 30]))
    tree, root = native.take_tree(corpus, 0)
    model = make_model(np.zeros(2, np.float32), [[1]])
    keys = np.empty(MAX_KEYS, np.uint64)
    n_keys = [
        native.fill_label_keys(model, tree, np.zeros(32, np.int32), word, keys) for word in range(1, 32)
    ]
    words, heads = features_twin.unpack(tree.sentence), corpus.heads[root : root + 32].tolist()
    assert n_keys == [len(twin.label_keys(TEXTS, words, heads, [0] * 32, word)) for word in range(1, 32)]


@pytest.mark.parametrize("with_given", [False, True])
def test_each_word_gets_the_best_label_of_its_group(with_given):
    case = make_case(3, [0, 1, 6, 10], 4)
    weights = features_twin.random_weights(np.random.default_rng(4), 1 << BITS)
    choices = [[1, 2, 3, 4], [2, 4], [3]]
    groups = np.random.default_rng(5).integers(0, 3, case.corpus.heads.size).astype(np.int32)
    labels = np.zeros(case.corpus.heads.size, np.int32)
    given = np.random.default_rng(6).normal(0, 5, (labels.size if with_given else 0, 5))
    native.label_corpus(make_model(weights, choices), case.corpus, groups, given, labels)
    for number, (words, heads, _) in enumerate(case.sentences):
        root = case.corpus.first_row[number] + 3
        rows = slice(root, root + len(heads))
        allowed = [choices[group] for group in groups[rows]]
        mine = given[rows].tolist() if with_given else None
        assert labels[rows].tolist() == twin.label(TEXTS, words, heads, allowed, weights, BITS, mine)


def test_equal_scores_give_the_first_label():
    keys = np.array([1, 2, 3], np.uint64)
    score = np.empty(3)
    model = make_model(np.zeros(1 << BITS, np.float32), [[3, 1, 2]])
    assert native.score_labels(model, 0, keys, score) == 0
    assert score.tolist() == [0, 0, 0]


def test_learnt_weights_and_their_average_equal_the_twins():
    case = make_case(6, [1, 4, 5, 3], 3)
    allowed, n_passes = [1, 2, 3], 3
    weights, totals = np.zeros(1 << BITS, np.float32), np.zeros(1 << BITS)
    model = make_model(weights, [allowed])
    counts = np.zeros(1 << COUNT_BITS, np.uint8)
    native.count_keys(model, case.corpus, case.gold, counts)
    groups = np.zeros(case.corpus.heads.size, np.int32)
    n_words = 13
    for number in range(n_passes):
        step = number * n_words
        order = np.arange(4)
        native.learn_labels(model, case.corpus, groups, case.gold, counts, totals, order, step)
    last, mean = twin.learn(TEXTS, case.sentences, allowed, BITS, COUNT_BITS, n_passes)
    assert last
    for table, expected in ((weights, last), (weights - totals / (n_passes * n_words), mean)):
        dense = np.zeros(1 << BITS)
        dense[list(expected)] = list(expected.values())
        np.testing.assert_allclose(table, dense, atol=1e-6)


def test_counts_stop_at_two():
    case = make_case(7, [6, 6], 2)
    counts = np.zeros(1 << COUNT_BITS, np.uint8)
    native.count_keys(make_model(np.zeros(2, np.float32), [[1]]), case.corpus, case.gold, counts)
    expected = twin.slot_counts(TEXTS, case.sentences, COUNT_BITS)
    assert {slot: min(2, count) for slot, count in expected.items()} == {
        slot: int(counts[slot]) for slot in np.flatnonzero(counts).tolist()
    }
