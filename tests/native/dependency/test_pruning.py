import numpy as np
import pytest
from oracle.dependency import pruning as twin
from oracle.dependency.charts import arcs_of, random_tree, trees_over
from oracle.dependency.eisner import arc_marginals
from oracle.dependency.features import random_corpus, random_weights, unpack
from oracle.dependency.parts import TEMPLATES

from treewright.native.dependency import pruning
from treewright.parsing.dependency.features import Corpus, compile_templates, max_keys

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

TEXT = TEMPLATES["arc"]
COMPILED = compile_templates(TEXT, "arc")
SHIFT = 52
CHOICES = [(0.0, 99), (0.0, 2), (0.1, 99), (0.3, 3), (1.0, 99)]


def make_stage(weights, threshold=0.0, max_heads=99, full=True):
    return pruning.Stage(
        COMPILED, full, weights, np.uint64(SHIFT), threshold, max_heads, max_keys(COMPILED), True
    )


def draw_corpus(seed, sizes):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, n) for n in sizes]
    return Corpus(*random_corpus(rng, trees)), trees


def small_weights(seed):
    return random_weights(np.random.default_rng(seed), 1 << (64 - SHIFT)) / np.float32(8)


def no_steps():
    """Steps of rate 0.1, none of which is taken yet."""
    size = 1 << (64 - SHIFT)
    return pruning.Steps(np.zeros(size, np.float32), np.zeros(size), 0.1, 0)


def no_arcs_kept(corpus):
    return pruning.KeptArcs(np.zeros(corpus.n_sentences + 1, np.int64), np.empty(0, np.int32))


def room_for_arcs(corpus, per_word):
    sizes = np.diff(corpus.first_row) - pruning.N_EXTRA_ROWS
    indptr = np.cumsum([0, *(sizes * per_word)])
    return pruning.KeptArcs(indptr, np.full(indptr[-1], 7, np.int32))


def as_set(keep):
    return set(zip(*(at.tolist() for at in np.nonzero(keep)), strict=True))


def twin_filter(stage, words, arcs):
    score = twin.score_square(TEXT, stage.full, stage.weights, SHIFT, words, arcs)
    marginal, _ = arc_marginals(score, arcs)
    return twin.probable_arcs(marginal, arcs, stage.threshold, stage.max_heads)


def test_a_sentence_is_cut_out_of_its_corpus():
    corpus, _ = draw_corpus(0, [3, 0, 5])
    assert [pruning.sentence_size(corpus, number) for number in range(3)] == [3, 0, 5]
    sentence = pruning.take_sentence(corpus, 2)
    assert sentence.values.tolist() == corpus.values[15:].tolist()
    assert unpack(sentence).morphs == unpack(corpus).morphs[15:]


@pytest.mark.parametrize("n", [0, 1, 4])
def test_all_arcs_are_those_between_different_words_and_from_the_root(n):
    assert as_set(pruning.all_arcs(n)) == twin.all_arcs(n)


@pytest.mark.parametrize("full", [True, False])
def test_scores_are_sums_of_weights_and_other_arcs_are_excluded(full):
    corpus, _ = draw_corpus(1, [5])
    sentence = pruning.take_sentence(corpus, 0)
    keep = pruning.all_arcs(5)
    keep[2, 4] = keep[0, 1] = False
    weights = small_weights(0)
    score = np.empty((6, 6))
    pruning.score_arcs(make_stage(weights, full=full), sentence, keep, score)
    expected = twin.score_square(TEXT, full, weights, SHIFT, unpack(sentence), as_set(keep))
    assert score[keep].tolist() == expected[keep].tolist()
    assert set(score[:, 1:][~keep[:, 1:]]) == {pruning.EXCLUDED}


@pytest.mark.parametrize(("threshold", "max_heads"), CHOICES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_kept_arcs_are_the_probable_ones(n, threshold, max_heads):
    corpus, _ = draw_corpus(n, [n])
    sentence = pruning.take_sentence(corpus, 0)
    stage = make_stage(small_weights(n), threshold, max_heads)
    keep = pruning.all_arcs(n)
    pruning.filter_arcs(stage, sentence, keep)
    assert as_set(keep) == twin_filter(stage, unpack(sentence), twin.all_arcs(n))


@pytest.mark.parametrize(("threshold", "max_heads"), CHOICES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_given_scores_keep_the_probable_arcs_among_those_allowed(n, threshold, max_heads):
    rng = np.random.default_rng(n)
    score = rng.normal(0, 2, (n + 1, n + 1))
    keep = pruning.all_arcs(n)
    if n > 2:
        keep[rng.integers(1, n), n] = False
    allowed = as_set(keep)
    pruning.filter_scored(score, True, threshold, max_heads, keep)
    marginal, _ = arc_marginals(score, allowed)
    assert as_set(keep) == twin.probable_arcs(marginal, allowed, threshold, max_heads)


@pytest.mark.parametrize("seed", range(4))
def test_a_second_stage_chooses_among_the_arcs_of_the_first(seed):
    corpus, _ = draw_corpus(seed, [5])
    sentence = pruning.take_sentence(corpus, 0)
    first, second = make_stage(small_weights(seed), 0.1, 4), make_stage(small_weights(seed + 1), 0.3, 3)
    keep = pruning.all_arcs(5)
    for stage in (first, second):
        pruning.filter_arcs(stage, sentence, keep)
    words = unpack(sentence)
    left = twin_filter(first, words, twin.all_arcs(5))
    assert trees_over(left, 5, True)
    assert as_set(keep) == twin_filter(second, words, left)


def test_a_stage_ends_even_where_no_tree_is_left():
    corpus, _ = draw_corpus(0, [4])
    keep = np.zeros((5, 5), np.bool_)
    keep[[1, 2, 3, 4], [2, 1, 4, 3]] = True
    before = as_set(keep)
    pruning.filter_arcs(make_stage(small_weights(0)), pruning.take_sentence(corpus, 0), keep)
    assert as_set(keep) <= before


def test_stored_arcs_are_those_chosen_and_the_gold_ones():
    corpus, trees = draw_corpus(5, [4, 0, 1, 5, 3])
    stages = (make_stage(small_weights(0), 0.2, 3), make_stage(small_weights(1), 0.5, 2))
    kept = room_for_arcs(corpus, 4)
    numbers = np.array([4, 3, 1, 0, 2])
    n_lost, n_kept = pruning.choose_arcs(stages, corpus, numbers, corpus.heads, kept)
    expected_lost = expected_kept = 0
    for number, heads in enumerate(trees):
        keep = pruning.all_arcs(len(heads))
        for stage in stages:
            pruning.filter_arcs(stage, pruning.take_sentence(corpus, number), keep)
        expected = as_set(keep) | arcs_of(heads)
        assert as_set(pruning.restore_arcs(kept, number, len(heads))) == expected
        expected_lost += len(arcs_of(heads) - as_set(keep))
        expected_kept += len(expected)
    assert (n_lost, n_kept) == (expected_lost, expected_kept)
    assert n_lost > 0


def test_only_the_numbered_sentences_are_stored():
    corpus, _ = draw_corpus(5, [4, 3])
    indptr, codes = kept = room_for_arcs(corpus, 4)
    stages = (make_stage(small_weights(0), 0.2, 3), make_stage(small_weights(1)))
    pruning.choose_arcs(stages, corpus, np.array([1]), corpus.heads, kept)
    assert set(codes[: indptr[1]]) == {7}
    assert set(codes[indptr[1] :]) != {7}


@pytest.mark.parametrize("full", [True, False])
def test_a_pass_of_learning_takes_the_twins_steps(full):
    corpus, trees = draw_corpus(2, [3, 5, 4])
    weights, steps = small_weights(3), no_steps()
    order = np.array([2, 0, 1])
    sentences = [
        (unpack(pruning.take_sentence(corpus, number)), trees[number], twin.all_arcs(len(trees[number])))
        for number in order
    ]
    expected, _, expected_loss = twin.learn(TEXT, full, weights, SHIFT, sentences, 0.1)
    stage = make_stage(weights, full=full)
    loss = pruning.learn_stage(stage, corpus, corpus.heads, no_arcs_kept(corpus), order, steps)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    np.testing.assert_allclose(weights, expected, atol=1e-4)


def test_totals_give_the_mean_of_the_weights_over_all_steps_of_several_passes():
    corpus, trees = draw_corpus(2, [3, 5, 4])
    weights, steps = np.zeros(1 << (64 - SHIFT), np.float32), no_steps()
    orders = np.array([2, 0, 1]), np.array([1, 2, 0])
    sentences = [
        (unpack(pruning.take_sentence(corpus, number)), trees[number], twin.all_arcs(len(trees[number])))
        for number in np.concatenate(orders)
    ]
    _, expected, _ = twin.learn(TEXT, True, weights, SHIFT, sentences, 0.1)
    for number, order in enumerate(orders):
        later = steps._replace(n_done=3 * number)
        pruning.learn_stage(make_stage(weights), corpus, corpus.heads, no_arcs_kept(corpus), order, later)
    # A change at step i is part of the weights before the steps after it: of 6 - i of 6.
    np.testing.assert_allclose(weights - steps.totals / 6, expected, atol=1e-4)
    assert np.abs(expected).max() > 0.1


def test_learning_over_stored_arcs_leaves_the_others_out():
    corpus, trees = draw_corpus(2, [3, 5, 4])
    kept, order = room_for_arcs(corpus, 4), np.arange(3)
    stages = (make_stage(small_weights(0)), make_stage(small_weights(1), 0.2, 3))
    pruning.choose_arcs(stages, corpus, order, corpus.heads, kept)
    sentences = [
        (
            unpack(pruning.take_sentence(corpus, number)),
            heads,
            as_set(pruning.restore_arcs(kept, number, len(heads))),
        )
        for number, heads in enumerate(trees)
    ]
    weights = small_weights(3)
    expected, _, expected_loss = twin.learn(TEXT, True, weights, SHIFT, sentences, 0.1)
    loss = pruning.learn_stage(make_stage(weights), corpus, corpus.heads, kept, order, no_steps())
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    np.testing.assert_allclose(weights, expected, atol=1e-4)


def test_each_pass_lowers_the_loss():
    corpus, _ = draw_corpus(0, [6, 4, 8, 5, 1])
    weights, steps = np.zeros(1 << (64 - SHIFT), np.float32), no_steps()
    losses = [
        pruning.learn_stage(
            make_stage(weights), corpus, corpus.heads, no_arcs_kept(corpus), np.arange(5), steps
        )
        for _ in range(10)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 10
