"""Beam search over left-corner derivations, against a search that leaves nothing out."""

import numpy as np
import pytest

from treewright.parsing.leftcorner.beam import BeamLimits, find_parses, keep_best, split_work
from treewright.parsing.leftcorner.decisions import DecisionVocabulary, TagWordVocabulary, encode
from treewright.parsing.leftcorner.derivations import (
    ATTACH,
    ATTACHED,
    MODIFIED,
    MODIFY,
    PROJECT,
    SHIFT,
    Decision,
    DerivationState,
    rebuild,
)
from treewright.parsing.leftcorner.network import CELLS, Network, Sizes

WORDS = TagWordVocabulary(["N", "V"], [[None, "a", "b"], [None, "c"]])
VOCABULARY = DecisionVocabulary(["S", "X"], WORDS)
HUGE = 100_000


def make_network(cell, random_state=0):
    generator = np.random.default_rng(random_state)
    sizes = Sizes.of(VOCABULARY)
    weights = {
        name: generator.standard_normal(shape).astype(np.float32)
        for name, shape in sizes.shapes(5, 4, cell).items()
    }
    return Network(weights, sizes, cell=cell)


@pytest.fixture(params=CELLS)
def network(request):
    return make_network(request.param)


def all_derivations(words, limits, state=None, n_shifted=0, n_projected=0):
    """List the decisions of all derivations over words that a search may find."""
    state = DerivationState.start() if state is None else state
    if state.is_complete:
        return [state.decisions()]
    shift, project, attach, modify = state.possible(len(words) - n_shifted)
    root, top, below = limits.root, state.top, state.top.below
    found = []
    if shift:
        symbol = 1 + len(VOCABULARY.labels) + int(WORDS.tag_of[words[n_shifted]])
        after = state.apply(Decision(SHIFT, symbol, words[n_shifted]))
        found += all_derivations(words, limits, after, n_shifted + 1)
    if below is None:
        return found
    is_lowest = below.below is None
    if attach and not (root and is_lowest and top.symbol != root):
        found += all_derivations(words, limits, state.apply(ATTACHED), n_shifted)
    if modify and not (root and below.symbol == root):
        found += all_derivations(words, limits, state.apply(MODIFIED), n_shifted)
    for symbol in range(1, len(VOCABULARY.labels) + 1):
        is_free = n_projected < limits.max_projections
        if root:
            is_free = is_lowest if symbol == root else is_free
            is_free = is_free and top.symbol != root
        if project and is_free:
            after = state.apply(Decision(PROJECT, symbol))
            found += all_derivations(words, limits, after, n_shifted, n_projected + 1)
    return found


def score(network, words, lists):
    pairs = [(tag, word) for tag, of_tag in zip("NV", WORDS.words, strict=True) for word in of_tag]
    tags, forms = zip(*[("?", "?") if not word else pairs[word - 1] for word in words], strict=True)
    forms = [form or "unknown" for form in forms]
    return network.score(
        [encode(VOCABULARY.decode(decisions, tags, forms), VOCABULARY) for decisions in lists]
    )


def bare(decisions):
    return [(kind, symbol) for kind, symbol, _ in decisions]


@pytest.mark.slow_cases
@pytest.mark.parametrize("root", [0, 1])
@pytest.mark.parametrize("words", [[1], [0, 5], [2, 4, 1]])
def test_a_huge_beam_finds_all_derivations_in_their_order(network, words, root):
    limits = BeamLimits(HUGE, HUGE, 2 if len(words) < 3 else 1, root)
    every = all_derivations(words, limits)
    scores = np.array(score(network, words, every))
    (found,) = find_parses(network, [words], limits, k=HUGE)
    assert len(found) == len(every)
    assert sorted(bare(each.decisions) for each in found) == sorted(map(bare, every))
    best = np.argsort(-scores)
    np.testing.assert_allclose([each.score for each in found], scores[best], rtol=1e-5)
    assert bare(found[0].decisions) == bare(every[best[0]])


@pytest.mark.parametrize("root", [0, 1])
@pytest.mark.parametrize(("beam", "branching"), [(1, 1), (1, 10), (3, 2), (8, 10)])
def test_scores_of_a_narrow_search_are_those_of_the_derivations(network, beam, branching, root):
    words = [1, 4, 2, 0, 5, 3, 1]
    (found,) = find_parses(network, [words], BeamLimits(beam, branching, 3, root), k=20)
    assert 1 <= len(found) <= 20
    given = score(network, words, [each.decisions for each in found])
    np.testing.assert_allclose([each.score for each in found], given, rtol=1e-5)
    assert given == sorted(given, reverse=True)


@pytest.mark.slow_cases
@pytest.mark.parametrize("random_state", range(10))
def test_every_sentence_gets_a_tree(random_state):
    generator = np.random.default_rng(random_state)
    network = make_network("gated", random_state)
    sentences = [generator.integers(len(WORDS), size=n).tolist() for n in (1, 2, 9, 30, 17)]
    for root in (0, 2):
        for words, found in zip(
            sentences, find_parses(network, sentences, BeamLimits(2, 2, 1, root), k=2), strict=True
        ):
            for each in found:
                derivation = VOCABULARY.decode(each.decisions, ["N"] * len(words), ["w"] * len(words))
                tree = rebuild(derivation)
                assert tree.words() == ["w"] * len(words)
                assert not root or (tree.label == "X" and "X" not in tree.labels[:-1])


def test_sentences_do_not_depend_on_each_other(network):
    sentences = [[1, 4], [2, 4, 3, 1, 0, 5], [1], [5, 4, 3, 2], [1, 4]]
    limits = BeamLimits(4, 5, 2)
    together = find_parses(network, sentences, limits, k=3)
    for words, found in zip(sentences, together, strict=True):
        (alone,) = find_parses(network, [words], limits, k=3)
        assert [each.decisions for each in alone] == [each.decisions for each in found]
        assert [each.score for each in alone] == pytest.approx([each.score for each in found], rel=1e-5)
    assert find_parses(network, sentences, limits, k=3, n_jobs=2) == together


def test_projections_in_a_row_are_bounded(network):
    for decisions, _ in find_parses(network, [[1, 4, 2]], BeamLimits(50, 10, 2), k=50)[0]:
        text = "".join(str(kind) for kind, _, _ in decisions)
        assert str(PROJECT) * 3 not in text
        assert set(text) <= set(map(str, (SHIFT, PROJECT, ATTACH, MODIFY)))


def test_no_sentences_give_no_parses(network):
    assert find_parses(network, [], BeamLimits(2, 2, 2), k=1) == []


def test_the_best_of_each_sentence_are_kept():
    sentences = np.array([1, 0, 1, 1, 0])
    scores = np.array([-1.0, -5.0, -3.0, -2.0, -4.0])
    assert keep_best(sentences, scores, 2).tolist() == [4, 1, 0, 3]
    assert keep_best(sentences, scores, 1).tolist() == [4, 0]


def test_work_is_split_without_loss_and_sentences_too_long_are_alone():
    lengths = [5, 400, 7, 2, 300, 9]
    batches = split_work(lengths, 40)
    assert sorted(at for batch in batches for at in batch) == list(range(6))
    assert [1] in batches
    assert batches[0] == [3, 0, 2, 5]
