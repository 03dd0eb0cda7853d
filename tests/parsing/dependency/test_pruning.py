import numpy as np
import pytest

import treewright as tw
from treewright.native.dependency.pruning import restore_arcs
from treewright.parsing.dependency.features import Encoder, TemplateSet
from treewright.parsing.dependency.pruning import Pruner


@pytest.fixture(scope="module")
def corpus():
    trees = tw.make_treebank(120, random_state=0).dependencies
    return Encoder.from_trees(trees).encode(trees)


def folds(corpus, n_folds):
    return [np.arange(fold, corpus.n_sentences, n_folds) for fold in range(n_folds)]


def kept_arcs(arcs, corpus, number):
    return restore_arcs(arcs, number, int(corpus.sizes[number]))


@pytest.mark.parametrize("fine", [False, True])
def test_pruning_keeps_most_gold_arcs_of_unseen_sentences_and_few_others(corpus, fine):
    pruner = Pruner(TemplateSet(), threshold=1e-3, fine=fine)
    _, report = pruner.jackknife(corpus, folds(corpus, 3))
    assert report.recall > 97
    assert report.n_heads < 6


def test_gold_arcs_are_always_among_the_chosen(corpus):
    arcs, _ = Pruner(TemplateSet(), threshold=0.5).jackknife(corpus, folds(corpus, 2))
    for number in range(corpus.n_sentences):
        heads = corpus.heads[corpus.words_of(number)]
        keep = kept_arcs(arcs, corpus, number)
        assert keep[heads, np.arange(1, heads.size + 1)].all()


def test_a_stricter_threshold_keeps_fewer_arcs(corpus):
    reports = [
        Pruner(TemplateSet(), threshold=t).jackknife(corpus, folds(corpus, 2))[1] for t in (1e-4, 1e-1)
    ]
    assert reports[0].n_heads > reports[1].n_heads >= 1


def test_the_same_seed_gives_the_same_arcs(corpus):
    one, other = (
        Pruner(TemplateSet(), random_state=3).jackknife(corpus, folds(corpus, 2))[0] for _ in range(2)
    )
    np.testing.assert_array_equal(one[1], other[1])


def test_a_saved_pruner_is_the_same(corpus):
    pruner = Pruner(TemplateSet()).fit(corpus)
    again = Pruner.from_state(pruner.get_state())
    for stage, same in zip(pruner.stages_, again.stages_, strict=True):
        assert stage.weights.any()
        np.testing.assert_array_equal(stage.weights, same.weights)
        assert (stage.threshold, stage.max_heads) == (same.threshold, same.max_heads)
