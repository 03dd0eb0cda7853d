"""The whole job: from trees to predicates with named arguments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.nonoverlap import best_names

import treewright as tw
from treewright.data.consttree import Span
from treewright.data.propbank import Proposition, PropSentence
from treewright.errors import InputError
from treewright.progress import messages_to
from treewright.srl.labeler import CORE, RoleLabeler, assign_roles

CLASSES = ["ARG0", "ARG1", "ARGM-TMP", "R-ARG0"]


@pytest.fixture(scope="module")
def bank():
    return tw.make_treebank(120, random_state=0)


@pytest.fixture(scope="module")
def labeler(bank):
    return RoleLabeler().fit(bank.constituents[:90], bank.propositions[:90])


def test_roles_in_new_sentences_are_mostly_right(bank, labeler):
    scores = tw.metrics.roles(bank.propositions[90:], labeler.predict(bank.constituents[90:]))
    assert scores.f1 > 85
    assert scores.predicates.f1 > 90


def test_known_predicates_are_kept_with_words_tags_and_comments(bank, labeler):
    gold = bank.propositions[90:]
    found = labeler.predict(bank.constituents[90:], gold)
    for right, guess in zip(gold, found, strict=True):
        assert (guess.words, guess.tags, guess.comments) == (right.words, right.tags, right.comments)
        assert [one[:3] for one in guess.propositions] == [one[:3] for one in right.propositions]
    assert tw.metrics.roles(gold, found).predicates.f1 == 100


def test_arguments_are_sorted_apart_and_beside_the_predicate(bank, labeler):
    for sentence in labeler.predict(bank.constituents[90:]):
        for one in sentence.propositions:
            assert [span for span in one.arguments if span.label == "V"] == [
                Span("V", one.predicate, one.predicate + 1)
            ]
            ends = [0, *(span.end for span in one.arguments)]
            assert all(end <= span.start for end, span in zip(ends, one.arguments, strict=False))


def test_sentences_labelled_together_or_alone_are_the_same(bank, labeler):
    trees = bank.constituents[90:100]
    assert labeler.predict(trees) == [labeler.predict([tree])[0] for tree in trees]


def test_a_saved_labeler_does_the_same(bank, labeler, tmp_path):
    labeler.save(tmp_path / "roles.tw")
    again = tw.load(tmp_path / "roles.tw")
    assert isinstance(again, RoleLabeler)
    assert again.predict(bank.constituents[90:]) == labeler.predict(bank.constituents[90:])
    again.save(tmp_path / "again.tw")
    assert (tmp_path / "again.tw").read_bytes() == (tmp_path / "roles.tw").read_bytes()


@pytest.mark.parametrize("kernel", ["sst", "linear+sst"])
def test_kernels_name_arguments_too(bank, kernel):
    labeler = RoleLabeler(kernel=kernel, features="standard").fit(
        bank.constituents[:20], bank.propositions[:20]
    )
    found = labeler.predict(bank.constituents[:20], bank.propositions[:20])
    assert tw.metrics.roles(bank.propositions[:20], found).classification > 90


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (tw.ConstTree("fox"), ["fox"]),
        (tw.ConstTree.parse("(NN fox)"), ["fox"]),
        (tw.ConstTree.parse("(S (NP (-LRB- -LRB-) (NN fox)))"), ["(", "fox"]),
    ],
)
def test_a_sentence_without_predicates_has_words_and_tags_only(labeler, tree, words):
    (found,) = labeler.predict([tree])
    assert (found.words, len(found.tags), found.propositions, found.comments) == (words, len(words), [], [])


def test_a_predicate_without_candidates_has_no_arguments(labeler):
    known = PropSentence(["go"], ["VB"], [Proposition(0, "go", "go.01", ())], [])
    for tree in (tw.ConstTree.parse("(S (VB go))"), tw.ConstTree("go")):
        (found,) = labeler.predict([tree], [known])
        assert found.propositions == [Proposition(0, "go", "go.01", (Span("V", 0, 1),))]


def test_what_is_no_tree_is_refused_in_one_line(labeler):
    for use in (labeler.predict, labeler.annotate):
        with pytest.raises(InputError, match=r"^tree 1 is 'The cat sleeps\.'; expected a ConstTree$"):
            use(["The cat sleeps."])
        with pytest.raises(
            InputError, match=r"^one sentence was given, 'The cat'; expected a list of trees$"
        ):
            use("The cat")
        with pytest.raises(
            InputError, match=r"^the trees are of type NoneType; expected a list of ConstTree$"
        ):
            use(None)


def test_nothing_in_nothing_out(labeler):
    assert labeler.predict([]) == labeler.predict([], []) == []


PARTICLES = [
    (
        "(S (NP (NN fox)) (VP (VBD gave) (PRT (RP up)) (NP (NN bread))))",
        [("ARG0", 0, 1), ("V", 1, 3), ("ARG1", 3, 4)],
    ),
    (
        "(S (NP (NN fox)) (VP (VBD gave) (NP (NN bread)) (PRT (RP up))))",
        [("ARG0", 0, 1), ("V", 1, 2), ("ARG1", 2, 3), ("C-V", 3, 4)],
    ),
]


def test_particles_join_the_predicate_that_they_stand_behind():
    trees = [tw.ConstTree.parse(text) for text, _ in PARTICLES]
    sentences = [
        PropSentence(
            tree.words(),
            tree.tags(),
            [Proposition(1, "give", "give_up.07", tuple(Span(*span) for span in spans))],
            [],
        )
        for tree, (_, spans) in zip(trees, PARTICLES, strict=True)
    ]
    labeler = RoleLabeler().fit(trees * 5, sentences * 5)
    assert labeler.predict(trees) == sentences


def test_progress_is_told(bank):
    lines = []
    with messages_to(lines.append):
        RoleLabeler().fit(bank.constituents[:10], bank.propositions[:10])
    assert lines[0].startswith("10 sentences, ")
    assert any("candidate constituents" in line for line in lines)


def test_different_numbers_of_trees_and_sentences_are_refused(bank, labeler):
    expected = "2 trees but 1 sentences with roles; expected equal numbers"
    with pytest.raises(InputError, match=expected):
        RoleLabeler().fit(bank.constituents[:2], bank.propositions[:1])
    with pytest.raises(InputError, match=expected):
        labeler.predict(bank.constituents[:2], bank.propositions[:1])


def test_different_words_and_predicates_outside_are_refused(labeler):
    tree = tw.ConstTree.parse("(S (VB go))")
    with pytest.raises(
        InputError, match="tree 1 has 1 words, but its sentence with roles has 2; expected the same words"
    ):
        labeler.predict([tree], [PropSentence(["go", "on"], ["VB", "RP"], [], [])])
    with pytest.raises(InputError, match="sentence 1 has a predicate at word 1 of 1; expected 0 to 0"):
        labeler.predict([tree], [PropSentence(["go"], ["VB"], [Proposition(1, "go", "go.01", ())], [])])


def test_predicates_with_nothing_beside_them_are_refused():
    tree = tw.ConstTree.parse("(TOP (VB go))")
    spans = (Span("V", 0, 1), Span("ARG1", 0, 1))
    sentence = PropSentence(["go"], ["VB"], [Proposition(0, "go", "go.01", spans)], [])
    with pytest.raises(InputError, match="no predicate has a candidate argument"):
        RoleLabeler().fit([tree], [sentence])


def test_large_seeds_and_iterators_are_taken():
    bank = tw.make_treebank(30, random_state=0)
    one = RoleLabeler(random_state=1 << 40).fit(iter(bank.constituents), iter(bank.propositions))
    assert len(one.predict(bank.constituents[:2])) == 2


@pytest.mark.parametrize("times", [0, 1])
def test_nothing_to_learn_from_is_refused(times):
    tree = tw.ConstTree.parse("(S (VB go))")
    sentence = PropSentence(["go"], ["VB"], [Proposition(0, "go", "go.01", (Span("V", 0, 1),))], [])
    with pytest.raises(
        InputError, match=f"{times} predicates and no arguments; expected at least one of each"
    ):
        RoleLabeler().fit([tree] * times, [sentence] * times)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"predicates": "nouns"}, "predicates is 'nouns'; expected one of verbs, all"),
        ({"kernel": "x"}, "kernel is 'x'; expected one of linear, "),
        ({"features": "x"}, "template 'x' has 'x'; expected standard, extended"),
        ({"C": -1.0}, "C is -1.0; expected"),
        ({"random_state": -1}, "random_state is -1; expected"),
        ({"n_jobs": 0}, "n_jobs is 0; expected"),
    ],
)
def test_options_that_have_no_meaning_are_refused(bank, options, message):
    with pytest.raises(InputError, match=message):
        RoleLabeler(**options).fit(bank.constituents[:5], bank.propositions[:5])


def test_a_labeler_that_was_not_trained_is_refused(tmp_path):
    for use in (lambda one: one.predict([]), lambda one: one.save(tmp_path / "m")):
        with pytest.raises(
            InputError, match="this RoleLabeler is not fitted; call fit first, or load a fitted one"
        ):
            use(RoleLabeler())


@given(st.lists(st.lists(st.integers(-5, 5), min_size=4, max_size=4), max_size=4))
def test_names_have_the_largest_sum_without_a_core_role_twice(rows):
    values = np.array(rows, dtype=np.float64).reshape(-1, 4)
    names = assign_roles(values, CLASSES)
    cores = [name for name in names if name in CORE]
    assert len(set(cores)) == len(cores)
    total = sum(row[CLASSES.index(name)] for row, name in zip(values, names, strict=True))
    assert total == best_names(values, CLASSES, CORE)


def test_a_core_role_is_repeated_where_there_is_no_other():
    assert assign_roles(np.ones((2, 1)), ["ARG0"]) == ["ARG0", "ARG0"]
