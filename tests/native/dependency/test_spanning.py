import numpy as np
import pytest
from oracle.dependency import arborescence, parts
from oracle.dependency import corpus as parsing
from oracle.dependency import spanning as crossing
from oracle.dependency.features import random_corpus, random_weights, unpack
from oracle.dependency.pruning import all_arcs

from treewright.native.dependency import spanning as native
from treewright.native.dependency.corpus import MiraPass, TreeDistribution
from treewright.native.dependency.parts import PartModel
from treewright.native.dependency.pruning import Stage, take_sentence
from treewright.parsing.dependency.features import Corpus, compile_templates, max_keys

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

SHIFT = 52
TEMPLATES = [compile_templates(parts.TEMPLATES[kind], kind) for kind in parts.KINDS]
MAX_KEYS = max_keys(*TEMPLATES)


def draw(seed, sizes):
    """Draw a corpus with trees of these sizes, and a stage with random weights."""
    rng = np.random.default_rng(seed)
    listed = [arborescence.trees(n, True) for n in sizes]
    trees = [one[rng.integers(len(one))] if one[0] else () for one in listed]
    weights = random_weights(rng, 1 << (64 - SHIFT))
    stage = Stage(TEMPLATES[0], True, weights, np.uint64(SHIFT), 0.0, 0, MAX_KEYS, True)
    return Corpus(*random_corpus(rng, trees)), trees, stage


def rank(corpus, number, weights, single_root):
    """List all trees of a sentence, the best first."""
    words = unpack(take_sentence(corpus, number))
    arcs = all_arcs(len(words.values) - 6)
    return crossing.best_trees(parts.TEMPLATES, 1, words, weights, SHIFT, arcs, single_root)


@pytest.mark.parametrize("single_root", [True, False])
def test_parses_are_the_best_of_all_trees(single_root):
    corpus, trees, stage = draw(0, [3, 1, 4, 2])
    heads, scores = np.zeros((5, len(corpus.values)), np.int32), np.empty((4, 5))
    native.parse_crossing(stage, corpus, np.arange(4), single_root, heads, scores)
    for number in range(len(trees)):
        expected = rank(corpus, number, stage.weights, single_root)[:5]
        found = [tuple(one) for one in heads[:, corpus.words_of(number)].tolist()]
        assert found[: len(expected)] == [tree for _, tree in expected]
        assert scores[number, : len(expected)].tolist() == [score for score, _ in expected]
        assert np.isneginf(scores[number, len(expected) :]).all()


@pytest.mark.parametrize("scale", [1.0, 0.4])
@pytest.mark.parametrize("single_root", [True, False])
def test_measured_sums_and_probabilities_equal_those_over_all_trees(scale, single_root):
    corpus, trees, stage = draw(1, [3, 4])
    log_sums, marginals = np.empty(2), np.empty(16 + 25)
    native.measure_crossing(
        stage, corpus, np.arange(2), TreeDistribution(single_root, scale), log_sums, marginals
    )
    for number, flat in enumerate((marginals[:16], marginals[16:])):
        n = len(trees[number])
        square = native.score_sentence(stage, corpus, number)
        expected, log_sum = arborescence.marginals((scale * square).tolist(), single_root)
        assert log_sums[number] == pytest.approx(log_sum)
        np.testing.assert_allclose(flat.reshape(n + 1, n + 1), expected, atol=1e-10)


@pytest.mark.parametrize("k", [1, 3])
def test_training_takes_the_updates_of_the_twin(k):
    corpus, trees, stage = draw(2, [3, 4, 2, 4])
    sequence = np.array([1, 3, 0, 2, 1])
    sentences = [
        (unpack(take_sentence(corpus, number)), trees[number], all_arcs(len(trees[number])))
        for number in sequence
    ]
    history, expected_wrong, expected_loss = parsing.train(
        parts.TEMPLATES, 1, stage.weights, SHIFT, sentences, k, np.inf, crossing.best_trees
    )
    totals = np.zeros(stage.weights.size)
    options = MiraPass(k, np.inf, True, MAX_KEYS, 0)
    model = PartModel(*TEMPLATES, 1, np.uint64(SHIFT))
    n_wrong, loss = native.train_crossing(stage, model, corpus, corpus.heads, totals, sequence, options)
    assert n_wrong == expected_wrong
    assert loss == pytest.approx(expected_loss, abs=1e-2)
    assert loss > 0
    np.testing.assert_allclose(stage.weights, history[-1], atol=2e-3)
    np.testing.assert_allclose(stage.weights - totals / 5, np.mean(history[:-1], axis=0), atol=2e-3)


def test_an_empty_sentence_has_no_tree():
    empty = Corpus(*random_corpus(np.random.default_rng(0), [[]]))
    _, _, stage = draw(0, [1])
    heads, scores, log_sums = np.zeros((2, 6), np.int32), np.zeros((1, 2)), np.ones(1)
    native.parse_crossing(stage, empty, np.arange(1), True, heads, scores)
    native.measure_crossing(stage, empty, np.arange(1), TreeDistribution(True, 1.0), log_sums, np.empty(1))
    assert np.isneginf(scores).all()
    assert log_sums.tolist() == [0.0]
