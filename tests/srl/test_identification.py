"""Which constituents may be arguments, and choosing among them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.nonoverlap import best_sum

import treewright as tw
from treewright.data.consttree import Span
from treewright.data.propbank import Proposition, PropSentence
from treewright.data.templates import TemplateLanguage
from treewright.srl.arguments import find_arguments, find_candidates, keep_verbal, node_places, shape_of
from treewright.srl.codes import CERTAIN, CodeClassifier, encode, join_codes
from treewright.srl.features import view_argument
from treewright.srl.identification import (
    ALL_VALUES,
    choose_non_overlapping,
    encode_candidates,
    list_candidates,
)

PERSUADE = tw.ConstTree.parse(
    "(S (NP (NNP Mary)) (VP (VBD persuaded) (NP (DT the) (NN fox)) (S (VP (TO to) (VP (VB take) "
    "(PRT (RP up)) (NP (NP (DT a) (NN walk)) (PP (IN in) (NP (NN town)))))))))"
)
TAKE = Proposition(5, "take", "take.LV", ())


def phrases(tree, predicate):
    shape = shape_of(tree)
    return [
        " ".join(tree.words()[shape.starts[node] : shape.ends[node]])
        for node in find_candidates(shape, predicate)
    ]


def view(tree, predicate, start, end):
    shape = shape_of(tree)
    node = node_places(shape)[start, end]
    found = [
        one
        for one in list_candidates(tree, shape, Proposition(predicate, "x", "x.01", ()))
        if one.node == node
    ]
    return view_argument(found[0], shape)


def test_the_noun_that_heads_what_is_behind_the_predicate_is_a_candidate():
    assert phrases(PERSUADE, 5) == ["Mary", "persuaded", "the fox", "to", "up", "a walk in town", "walk"]


def test_coordinated_verbs_are_no_candidates_but_a_conjunction_in_front_is():
    tree = tw.ConstTree.parse("(S (CC But) (NP (NN fox)) (VP (VP (VBD sang)) (CC and) (VP (VBD left))))")
    assert phrases(tree, 2) == ["But", "fox"]


def test_of_nodes_over_the_same_words_the_highest_is_a_candidate():
    tree = tw.ConstTree.parse("(S (NP (NN fox)) (VP (VBD sat) (PP (NP (NN there)))))")
    shape = shape_of(tree)
    found = [
        shape.labels[one.node] for one in list_candidates(tree, shape, Proposition(1, "sit", "sit.01", ()))
    ]
    assert sorted(found) == ["NP", "PP"]


@pytest.mark.parametrize(
    ("span", "values"),
    [
        ((0, 1), {"governor": "persuaded", "between": "1", "object": "walk", "subject": "S VP False"}),
        ((2, 4), {"governor": "persuaded", "between": "0", "complement": "-"}),
        ((7, 11), {"between": "0", "phrase": "NP"}),
    ],
)
def test_candidates_are_asked_for_these_values(span, values):
    found = view(PERSUADE, 5, *span)
    assert {name: ALL_VALUES[name](found) for name in values} == values


def test_an_auxiliary_has_a_complement():
    tree = tw.ConstTree.parse("(S (NP (PRP he)) (VP (VBZ is) (VP (VBG singing))))")
    assert ALL_VALUES["complement"](view(tree, 1, 0, 1)) == "VBG"


def test_there_is_a_code_for_each_candidate_and_feature():
    shape = shape_of(PERSUADE)
    candidates = list_candidates(PERSUADE, shape, TAKE)
    codes = encode_candidates(candidates, "phrase position")
    assert codes.dtype == np.uint32
    assert codes.shape == (7, 26)
    assert encode_candidates([], "standard").shape == (0, 38)


def test_codes_tell_values_columns_and_templates_apart():
    values = encode([("a", "b"), ("b", "a"), ("a", "b")], 2)
    codes = join_codes(values, ["x", "y"], TemplateLanguage(["x", "y"]).parse("x\ny\nx y\ny x"))
    assert codes[0].tolist() == codes[2].tolist()
    assert len(set(codes[:2].ravel().tolist())) == 8


def test_a_classifier_learns_what_decides_and_drops_what_is_rare():
    codes = np.array([[1, 7], [1, 8], [2, 9], [2, 10]], dtype=np.uint32)
    classifier = CodeClassifier(C=10.0).fit(codes, [True, True, False, False])
    assert classifier.codes_.tolist() == [1, 2]
    odds = classifier.log_odds(np.array([[1, 50], [2, 0], [3, 3]], dtype=np.uint32))
    assert odds[0] > 1 > -1 > odds[1]
    assert (
        CodeClassifier.from_state(classifier.get_state()).log_odds(codes).tolist()
        == classifier.log_odds(codes).tolist()
    )


@pytest.mark.parametrize(("answer", "sign"), [(True, 1), (False, -1)])
def test_a_classifier_that_knows_one_answer_gives_it(answer, sign):
    classifier = CodeClassifier().fit(np.zeros((2, 1), dtype=np.uint32), [answer, answer])
    assert classifier.log_odds(np.ones((1, 1), dtype=np.uint32)).tolist() == [sign * CERTAIN]


@st.composite
def trees_with_gains(draw):
    """Draw a small tree and gains of some of its nodes."""
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    tree = grow(generator, 3)
    nodes = generator.permutation(tree.n_nodes)[: draw(st.integers(0, 8))].tolist()
    gains = {node: round(float(generator.normal()), 3) for node in nodes}
    return tree, gains


def grow(generator, depth):
    n_children = int(generator.integers(0, 4)) if depth else 0
    return tw.ConstTree("X", [grow(generator, depth - 1) for _ in range(n_children)])


@given(trees_with_gains())
def test_nodes_chosen_apart_have_the_largest_sum_of_all_choices(case):
    tree, gains = case
    shape = shape_of(tree)
    places = [set(range(*bounds)) for bounds in zip(shape.starts, shape.ends, strict=True)]
    chosen = choose_non_overlapping(shape, gains)
    assert sum(gains[node] for node in chosen) == pytest.approx(best_sum(places, gains))
    assert sum(len(places[node]) for node in chosen) == len(set().union(*(places[node] for node in chosen)))
    assert [shape.starts[node] for node in chosen] == sorted(shape.starts[node] for node in chosen)


def test_what_gains_nothing_is_not_chosen():
    shape = shape_of(PERSUADE)
    assert choose_non_overlapping(shape, {}) == []
    assert choose_non_overlapping(shape, {0: -1.0, 3: 0.0}) == []


def sentence(*propositions):
    return PropSentence(PERSUADE.words(), PERSUADE.tags(), list(propositions), [])


def test_parts_of_arguments_and_of_predicates_are_found_when_asked_for():
    labels = {"ARG1-DSP": (0, 1), "R-ARG0": (2, 4), "V": (5, 7), "C-ARG1": (7, 11), "C-V": (1, 2)}
    spans = tuple(Span(label, *place) for label, place in labels.items())
    given_sentence = sentence(Proposition(5, "take", "take.01", spans))
    plain = find_arguments([PERSUADE], [given_sentence])
    assert [one.label for one in plain.arguments] == ["ARG1"]
    every = find_arguments([PERSUADE], [given_sentence], parts=True)
    assert [one.label for one in every.arguments] == ["ARG1", "R-ARG0", "C-V", "C-ARG1", "C-V"]
    assert every.n_unmatched == 0


def test_only_verbs_are_kept():
    verb, noun = Proposition(5, "take", "take.01", ()), Proposition(8, "walk", "walk.01", ())
    assert keep_verbal([sentence(verb, noun)]) == [sentence(verb)]
