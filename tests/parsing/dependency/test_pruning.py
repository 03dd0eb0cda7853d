import numpy as np
import pytest

import treewright as tw
from treewright.native.dependency.pruning import choose_arcs, restore_arcs
from treewright.parsing.dependency.features import Encoder, TemplateSet
from treewright.parsing.dependency.pruning import Pruner, select_arcs


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
    pruner = Pruner(TemplateSet(), fine=fine)
    report = pruner.jackknife(corpus, folds(corpus, 3)).report
    assert report.recall > 99.3
    assert report.n_heads < 6


def test_gold_arcs_are_always_among_the_chosen(corpus):
    arcs = Pruner(TemplateSet(), threshold=0.5).jackknife(corpus, folds(corpus, 2)).arcs
    for number in range(corpus.n_sentences):
        heads = corpus.heads[corpus.words_of(number)]
        keep = kept_arcs(arcs, corpus, number)
        assert keep[heads, np.arange(1, heads.size + 1)].all()


def test_a_stricter_threshold_keeps_fewer_arcs(corpus):
    reports = [
        Pruner(TemplateSet(), threshold=t).jackknife(corpus, folds(corpus, 2)).report for t in (1e-4, 1e-1)
    ]
    assert reports[0].n_heads > reports[1].n_heads >= 1


def test_the_same_seed_gives_the_same_arcs(corpus):
    one, other = (
        Pruner(TemplateSet(), random_state=3).jackknife(corpus, folds(corpus, 2)).arcs for _ in range(2)
    )
    np.testing.assert_array_equal(one[1], other[1])


def test_a_saved_pruner_is_the_same(corpus):
    pruner = Pruner(TemplateSet()).fit(corpus)
    again = Pruner.from_state(pruner.get_state())
    for stage, same in zip(pruner.stages_, again.stages_, strict=True):
        assert stage.weights.any()
        np.testing.assert_array_equal(stage.weights, same.weights)
        assert (stage.threshold, stage.max_heads) == (same.threshold, same.max_heads)


def test_a_compact_pruner_has_few_magnitudes_and_keeps_nearly_as_many_gold_arcs(corpus):
    pruner = Pruner(TemplateSet()).fit(corpus)
    compact = Pruner.from_state(pruner.get_state(compact=True))
    assert len(np.unique(np.abs(compact.fine_weights_))) <= 5
    numbers, room = np.arange(corpus.n_sentences), pruner._room(corpus)
    lost = [choose_arcs(each.stages_, corpus, numbers, corpus.heads, room)[0] for each in (pruner, compact)]
    assert lost[1] <= lost[0] + 0.01 * corpus.sizes.sum()


def test_the_models_of_folds_are_those_that_chose_their_arcs(corpus):
    parts = folds(corpus, 2)
    found = Pruner(TemplateSet()).jackknife(corpus, parts, with_pruners=True)
    assert len(found.pruners) == 2
    for part, pruner in zip(parts, found.pruners, strict=True):
        rest = np.setdiff1d(np.arange(corpus.n_sentences), part)
        same = Pruner(TemplateSet())._fit(corpus, rest)
        for stage, other in zip(pruner.stages_, same.stages_, strict=True):
            np.testing.assert_array_equal(stage.weights, other.weights)


def test_selected_arcs_are_those_of_the_sentences_in_their_order(corpus):
    arcs = Pruner(TemplateSet()).jackknife(corpus, folds(corpus, 2)).arcs
    numbers = np.array([7, 3, 50])
    some = select_arcs(arcs, numbers)
    for at, number in enumerate(numbers):
        n = int(corpus.sizes[number])
        np.testing.assert_array_equal(restore_arcs(some, at, n), restore_arcs(arcs, number, n))
    assert len(select_arcs(arcs, np.zeros(0, dtype=np.int64)).codes) == 0
