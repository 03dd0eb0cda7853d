import numpy as np
import pytest
from oracle.dependency import corpus as twin
from oracle.dependency import parts
from oracle.dependency.charts import arcs_of, random_tree, trees_over
from oracle.dependency.features import random_corpus, random_weights, unpack
from oracle.dependency.pruning import all_arcs

import treewright as tw
from treewright.native.dependency import corpus as parsing
from treewright.native.dependency.parts import PartModel
from treewright.native.dependency.pruning import KeptArcs, Stage, filter_arcs, take_sentence
from treewright.native.dependency.pruning import all_arcs as all_arcs_square
from treewright.parsing.dependency.features import Corpus, Encoder, compile_templates, max_keys

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

SHIFT = 52
N_SLOTS = 1 << (64 - SHIFT)


def compile_all(texts):
    return [compile_templates(texts[kind], kind) for kind in parts.KINDS]


COMPILED = compile_all(parts.TEMPLATES)
MAX_KEYS = max_keys(*COMPILED)


def make_model(order, shift=SHIFT):
    return PartModel(*COMPILED, order, np.uint64(shift))


def make_stage(weights, threshold=0.0, max_heads=99):
    return Stage(COMPILED[0], True, weights, np.uint64(SHIFT), threshold, max_heads, MAX_KEYS, True)


def draw_corpus(seed, sizes):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, n) for n in sizes]
    return Corpus(*random_corpus(rng, trees)), trees, random_weights(rng, N_SLOTS)


def two_stages(weights, last=None):
    """Return as many stages as parsers have, so that no other code is compiled; the first leaves all arcs."""
    return make_stage(weights), last or make_stage(weights)


def parse(stages, model, corpus, weights, k, single_root=True):
    """Return scores and heads of the best trees of each sentence."""
    heads, scores = np.zeros((k, len(corpus.values)), np.int32), np.empty((corpus.n_sentences, k))
    numbers = np.arange(corpus.n_sentences)
    parsing.parse_corpus(stages, model, corpus, weights, numbers, single_root, heads, scores)
    return scores, [
        [tuple(one) for one in heads[:, first + 4 : last - 2].tolist()]
        for first, last in zip(corpus.first_row[:-1], corpus.first_row[1:], strict=True)
    ]


def left_by(stage, corpus, number, n):
    """Return the arcs of a sentence that a stage leaves."""
    keep = all_arcs_square(n)
    filter_arcs(stage, take_sentence(corpus, number), keep)
    return set(zip(*(at.tolist() for at in np.nonzero(keep)), strict=True))


def store(arcs, trees):
    """Lay out the arcs of sentences as `choose_arcs` does."""
    codes = [
        [head * (len(heads) + 1) + modifier for head, modifier in one]
        for one, heads in zip(arcs, trees, strict=True)
    ]
    indptr = np.cumsum([0] + [len(one) + 2 for one in codes])
    return KeptArcs(indptr, np.array([code for one in codes for code in (*one, -1, -1)], np.int32))


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_parses_are_the_best_of_all_trees(order, single_root):
    corpus, trees, weights = draw_corpus(order, [2, 0, 4, 1, 3])
    scores, found = parse(two_stages(weights), make_model(order), corpus, weights, 3, single_root)
    for number, heads in enumerate(trees):
        if heads:
            words = unpack(take_sentence(corpus, number))
            expected = twin.best_trees(
                parts.TEMPLATES, order, words, weights, SHIFT, all_arcs(len(heads)), single_root
            )[:3]
            assert found[number][: len(expected)] == [one for _, one in expected]
            assert scores[number, : len(expected)].tolist() == [score for score, _ in expected]


def test_ranks_beyond_the_last_tree_score_minus_infinity():
    corpus, _, weights = draw_corpus(0, [1, 0, 2])
    scores, found = parse(two_stages(weights), make_model(3), corpus, weights, 4)
    assert np.isneginf(scores).tolist() == [[False, *[True] * 3], [True] * 4, [False, False, True, True]]
    assert found[0][0] == (0,)


@pytest.mark.parametrize("seed", range(3))
def test_parses_have_only_arcs_that_the_stages_leave(seed):
    corpus, trees, weights = draw_corpus(seed, [4, 5])
    stage = make_stage(weights / np.float32(8), 0.2, 3)
    _, found = parse(two_stages(weights, stage), make_model(3), corpus, weights, 1)
    for number, heads in enumerate(trees):
        arcs = left_by(stage, corpus, number, len(heads))
        words = unpack(take_sentence(corpus, number))
        expected = twin.best_trees(parts.TEMPLATES, 3, words, weights, SHIFT, arcs, True)
        assert found[number][0] == expected[0][1]


def test_where_the_stages_leave_no_tree_a_chain_is_added():
    sizes = [5] * 40
    corpus, _, weights = draw_corpus(0, sizes)
    stage = make_stage(weights / np.float32(4), 0.0, 1)
    _, found = parse(two_stages(weights, stage), make_model(2), corpus, weights, 1)
    n_without_tree = 0
    for number, n in enumerate(sizes):
        arcs = left_by(stage, corpus, number, n)
        n_without_tree += not trees_over(arcs, n, True)
        words = unpack(take_sentence(corpus, number))
        expected = twin.best_trees(parts.TEMPLATES, 2, words, weights, SHIFT, arcs, True)
        assert found[number][0] == expected[0][1]
    assert 0 < n_without_tree < len(sizes)


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_measured_sums_and_probabilities_equal_those_over_all_trees(scale):
    corpus, trees, weights = draw_corpus(4, [3, 0, 4])
    numbers = np.array([2, 0, 1])
    log_sums, marginals = np.empty(3), np.empty(25 + 16 + 1)
    options = parsing.TreeDistribution(True, scale)
    parsing.measure_corpus(
        two_stages(weights), make_model(3), corpus, weights, numbers, options, log_sums, marginals
    )
    assert log_sums[1] == 0
    for number, found in ((2, marginals[:25]), (0, marginals[25:41])):
        n = len(trees[number])
        words = unpack(take_sentence(corpus, number))
        ranked = twin.best_trees(parts.TEMPLATES, 3, words, weights, SHIFT, all_arcs(n), True)
        log_sum = np.logaddexp.reduce([scale * score for score, _ in ranked])
        expected = np.zeros((n + 1, n + 1))
        for score, heads in ranked:
            for arc in arcs_of(heads):
                expected[arc] += np.exp(scale * score - log_sum)
        assert log_sums[number] == pytest.approx(log_sum)
        np.testing.assert_allclose(found, expected.ravel(), atol=1e-10)


@pytest.mark.parametrize("bound", [np.inf, 0.05])
@pytest.mark.parametrize(("order", "k"), [(1, 1), (2, 3), (3, 4)])
def test_training_takes_the_updates_of_the_twin(order, k, bound):
    corpus, trees, weights = draw_corpus(order, [3, 4, 0, 2, 4])
    sequence = np.array([1, 4, 0, 3, 1])
    arcs = [all_arcs(len(heads)) for heads in trees]
    sentences = [(unpack(take_sentence(corpus, number)), trees[number], arcs[number]) for number in sequence]
    history, expected_wrong, expected_loss = twin.train(
        parts.TEMPLATES, order, weights, SHIFT, sentences, k, bound
    )
    totals = np.zeros(N_SLOTS)
    n_wrong, loss = parsing.train_pass(
        make_model(order),
        corpus,
        corpus.heads,
        store(arcs, trees),
        weights,
        totals,
        sequence,
        parsing.MiraPass(k, bound, True, MAX_KEYS, 0),
    )
    assert n_wrong == expected_wrong
    assert loss == pytest.approx(expected_loss, abs=1e-2)
    assert loss > 0
    np.testing.assert_allclose(weights, history[-1], atol=2e-3)
    np.testing.assert_allclose(weights - totals / 5, np.mean(history[:-1], axis=0), atol=2e-3)


@pytest.mark.parametrize(("order", "k"), [(1, 2), (3, 4)])
def test_training_takes_given_scores_into_account(order, k):
    corpus, trees, weights = draw_corpus(order, [3, 4, 0, 2, 4])
    sequence = np.array([1, 4, 0, 3, 1])
    arcs = [all_arcs(len(heads)) for heads in trees]
    rng = np.random.default_rng(5)
    squares = [rng.normal(0, 2, (len(heads) + 1, len(heads) + 1)) for heads in trees]
    sentences = [
        (unpack(take_sentence(corpus, number)), trees[number], arcs[number], squares[number])
        for number in sequence
    ]
    history, expected_wrong, expected_loss = twin.train(
        parts.TEMPLATES, order, weights, SHIFT, sentences, k, np.inf
    )
    first = np.cumsum([0, *(square.size for square in squares)])[:-1]
    given = np.concatenate([square.ravel() for square in squares])
    options = parsing.MiraPass(k, np.inf, True, MAX_KEYS, 0, first, given)
    n_wrong, loss = parsing.train_pass(
        make_model(order),
        corpus,
        corpus.heads,
        store(arcs, trees),
        weights,
        np.zeros(N_SLOTS),
        sequence,
        options,
    )
    assert n_wrong == expected_wrong
    assert loss == pytest.approx(expected_loss, abs=1e-2)
    np.testing.assert_allclose(weights, history[-1], atol=2e-3)


@pytest.mark.slow_cases
@pytest.mark.parametrize("kind", ["pair", "grand_sibling", "triple"])
def test_there_is_room_for_many_templates_of_any_kind(kind):
    corpus, trees, weights = draw_corpus(0, [4])
    texts = parts.TEMPLATES | {kind: "\n".join([parts.TEMPLATES[kind]] * 600)}
    compiled = compile_all(texts)
    arcs = [all_arcs(4)]
    history, _, _ = twin.train(
        texts, 3, weights, SHIFT, [(unpack(take_sentence(corpus, 0)), trees[0], arcs[0])], 3, np.inf
    )
    parsing.train_pass(
        PartModel(*compiled, 3, np.uint64(SHIFT)),
        corpus,
        corpus.heads,
        store(arcs, trees),
        weights,
        np.zeros(N_SLOTS),
        np.arange(1),
        parsing.MiraPass(3, np.inf, True, max_keys(*compiled), 0),
    )
    np.testing.assert_allclose(weights, history[-1], atol=2e-3)


@pytest.fixture(scope="module")
def treebank():
    """Make a corpus of short sentences and, besides the gold ones, a few arcs of each word."""
    trees = [tree for tree in tw.make_treebank(30).dependencies if len(tree) <= 12]
    heads = [tree.heads.tolist() for tree in trees]
    rng = np.random.default_rng(0)
    arcs = [
        arcs_of(one)
        | {
            (int(rng.choice([h for h in range(len(one) + 1) if h != word])), word)
            for word in range(1, len(one) + 1)
        }
        for one in heads
    ]
    return Encoder.from_trees(trees).encode(trees), store(arcs, heads)


def train(treebank, order, k, n_passes):
    """Train from nothing; return wrong heads by pass, weights and totals."""
    corpus, kept = treebank
    weights, totals = np.zeros(1 << 16, np.float32), np.zeros(1 << 16)
    n_wrong = []
    for number in range(n_passes):
        sequence = np.random.default_rng(number).permutation(corpus.n_sentences)
        options = parsing.MiraPass(k, 1.0, True, MAX_KEYS, number * corpus.n_sentences)
        wrong, _ = parsing.train_pass(
            make_model(order, 48), corpus, corpus.heads, kept, weights, totals, sequence, options
        )
        n_wrong.append(wrong)
    return n_wrong, weights, totals


@pytest.mark.slow
@pytest.mark.parametrize(("order", "k"), [(1, 1), (2, 1), (3, 1), (3, 4)])
def test_training_learns_a_small_treebank_by_heart(treebank, order, k):
    n_wrong, _, _ = train(treebank, order, k, 8)
    assert n_wrong[0] > 0
    assert n_wrong[-1] == 0


def test_training_twice_gives_the_same_weights(treebank):
    _, weights, totals = train(treebank, 3, 3, 1)
    _, again, totals_again = train(treebank, 3, 3, 1)
    assert weights.any()
    assert weights.tobytes() == again.tobytes()
    assert totals.tobytes() == totals_again.tobytes()
