"""The network over left-corner decisions: that its probabilities are some, whatever is computed together."""

import numpy as np
import pytest

import treewright as tw
from treewright.kernels.decisions import candidate_logs
from treewright.parsing.leftcorner.decisions import DecisionVocabulary, encode, encode_together
from treewright.parsing.leftcorner.derivations import N_KINDS, DerivationState, derive
from treewright.parsing.leftcorner.network import CELLS, N_GATES, Network, Sizes, pack
from treewright.parsing.leftcorner.traces import trace_candidates

TREES = tw.make_treebank(n_sentences=12, random_state=3).constituents
DERIVATIONS = [derive(tree) for tree in TREES]
VOCABULARY = DecisionVocabulary.from_derivations(DERIVATIONS, min_count=2, min_unknown=1)
SIZES = Sizes.of(VOCABULARY)
ENCODED = [encode(derivation, VOCABULARY) for derivation in DERIVATIONS]


def share(*numbers):
    return encode_together([DERIVATIONS[number] for number in numbers], VOCABULARY)


def make_network(cell, *, units=6, scale=0.5):
    generator = np.random.default_rng(0)
    shapes = SIZES.shapes(units, 5, cell)
    weights = {
        name: scale * generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }
    return Network(weights, SIZES, cell=cell)


@pytest.fixture(params=CELLS)
def network(request):
    return make_network(request.param)


def test_history_vectors_do_not_depend_on_what_is_computed_together(network):
    packed = pack(ENCODED)
    together = network.run(packed)
    for each, rows in zip(ENCODED, packed.rows, strict=True):
        np.testing.assert_allclose(together[rows], network.run(pack([each])), atol=1e-5)


def test_history_vectors_are_those_of_the_definition(network):
    each = ENCODED[0]
    hidden = [np.zeros(network.units, dtype=np.float32)]
    memory = [np.zeros(network.n_memory, dtype=np.float32)]
    for inputs, links in zip(each.inputs, each.links + 1, strict=True):
        given = network.embed(inputs[None])
        new = network.step(given, links[None], np.array(hidden), np.array(memory))
        hidden.append(new[0][0])
        memory.append(new[1][0])
    np.testing.assert_allclose(network.run(pack([each])), hidden[1:], atol=1e-6)


def test_packed_links_are_those_of_each_derivation():
    packed = pack(ENCODED)
    for each, rows in zip(ENCODED, packed.rows, strict=True):
        places = {int(row) + 1: at for at, row in enumerate(rows)} | {0: -1}
        assert [
            [places[link] for link in links] for links in packed.links[rows].tolist()
        ] == each.links.tolist()
        np.testing.assert_array_equal(packed.inputs[rows], each.inputs)
        np.testing.assert_array_equal(packed.words[rows], each.words)


def test_probabilities_of_legal_decisions_have_the_sum_1(network):
    packed = pack(ENCODED)
    hidden = network.run(packed)
    kinds = np.exp(network.kind_logs(hidden, packed.legal))
    np.testing.assert_allclose(kinds.sum(axis=1), 1, atol=1e-5)
    assert (kinds[~packed.legal] == 0).all()
    labels = np.exp(network.label_logs(hidden)).sum(axis=1)
    shifts = sum(
        np.exp(network.shift_logs(hidden, np.full(len(hidden), word))) for word in range(SIZES.n_words)
    )
    np.testing.assert_allclose(labels, 1, atol=1e-5)
    np.testing.assert_allclose(shifts, 1, atol=1e-5)


def test_the_score_of_a_derivation_is_the_sum_over_its_decisions(network):
    packed = pack(ENCODED[:1])
    hidden = network.run(packed)
    state, total = DerivationState.start(), 0.0
    for at, decision in enumerate(VOCABULARY.decisions(DERIVATIONS[0])):
        here = hidden[at : at + 1]
        total += network.kind_logs(here, np.array([state.legal()]))[0, decision.kind]
        if decision.kind == 0:
            total += network.shift_logs(here, np.array([decision.word]))[0]
        elif decision.kind == 1:
            total += network.label_logs(here)[0, decision.symbol - 1]
        state = state.apply(decision)
    assert network.score(ENCODED[:1]) == pytest.approx([total], rel=1e-5)


def test_no_derivations_have_no_scores(network):
    assert network.score([]) == []


@pytest.mark.parametrize("cell", CELLS)
def test_shapes_are_those_of_the_vocabulary(cell):
    shapes = SIZES.shapes(7, 3, cell)
    assert shapes["links"] == (4 * 7, N_GATES[cell] * 7)
    assert shapes["output"][0] == N_KINDS + len(VOCABULARY.labels) + SIZES.n_tags + len(VOCABULARY.words)


def test_traces_have_the_probabilities_of_candidates(network):
    scores = network.score(ENCODED)
    together = trace_candidates(network, share(*range(len(ENCODED))))
    np.testing.assert_allclose(candidate_logs(together), scores, rtol=1e-5)
    for number, (each, score) in enumerate(zip(ENCODED, scores, strict=True)):
        found = trace_candidates(network, share(number))
        assert found.log_probabilities.sum() == pytest.approx(score, rel=1e-5)
        assert found.is_observed.sum() == 2 * (each.kinds == 0).sum()


def test_traces_give_the_outputs_of_decisions_and_their_vectors(network):
    each = ENCODED[0]
    found = trace_candidates(network, share(0))
    expected, at = [], []
    labels, tags, words = SIZES.starts
    for row, (kind, label, tag, word) in enumerate(zip(*each[:4], strict=True)):
        outputs = {0: [tags + tag, words + word], 1: [labels + label]}.get(int(kind), [])
        expected += [kind, *outputs]
        at += [row] * (1 + len(outputs))
    assert found.outputs.tolist() == expected
    np.testing.assert_allclose(found.hidden[found.steps], network.run(pack([each]))[at], atol=1e-6)


def test_choices_without_distributions_are_as_probable_as_with_them(network):
    decisions = share(*range(len(ENCODED)))
    with_all, chosen = (trace_candidates(network, decisions, distributions=each) for each in (True, False))
    np.testing.assert_allclose(chosen.log_probabilities, with_all.log_probabilities, atol=1e-12)


def test_derivations_that_begin_alike_share_rows_and_are_as_those_alone():
    numbers = [0, 1, 0, 2]
    shared = share(*numbers)
    before = {tuple(VOCABULARY.decisions(DERIVATIONS[each])[:at]) for each in numbers for at in range(500)}
    whole = {tuple(VOCABULARY.decisions(DERIVATIONS[each])) for each in numbers}
    assert len(shared.inputs) == len(before - whole) == shared.starts[-1]
    for number, begin, end in zip(numbers, shared.indptr[:-1], shared.indptr[1:], strict=True):
        each, rows = ENCODED[number], shared.rows[begin:end]
        places = {row + 1: at for at, row in enumerate(rows.tolist())} | {0: -1}
        links = [[places[link] for link in links] for links in shared.links[rows].tolist()]
        assert links == each.links.tolist()
        np.testing.assert_array_equal(shared.inputs[rows], each.inputs)
        np.testing.assert_array_equal(shared.legal[rows], each.legal)
        for name in ("kinds", "labels", "tags", "words"):
            np.testing.assert_array_equal(getattr(shared, name)[begin:end], getattr(each, name))


def test_candidates_that_begin_alike_share_steps(network):
    twice = trace_candidates(network, share(0, 0))
    once = trace_candidates(network, share(0))
    assert len(twice.hidden) == len(once.hidden)
    np.testing.assert_allclose(twice.hidden, once.hidden, atol=1e-6)
    other = trace_candidates(network, share(0, 1))
    assert other.steps[0] == other.steps[other.indptr[1]] == 0
    np.testing.assert_allclose(np.asarray(other.distributions.sum(axis=1)).ravel(), 1, atol=1e-12)
