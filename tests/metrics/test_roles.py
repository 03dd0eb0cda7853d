"""Scores of semantic roles: as the definition has them, and as srl-eval.pl prints them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import roles as oracle

import treewright as tw
from treewright import Proposition, PropSentence, Span
from treewright.errors import InputError
from treewright.metrics.roles import COUNTS, sentence_counts

LABELS = ["V", "ARG0", "ARG1", "C-ARG1", "C-V", "R-ARG0", "C-C-ARG1", "ARGM-TMP"]


def sentence(propositions, n=8):
    """Make a sentence of a dict from predicate to arguments (label, start, end)."""
    made = [
        Proposition(at, "be", "be.01", tuple(Span(*one) for one in arguments))
        for at, arguments in propositions.items()
    ]
    return PropSentence(["w"] * n, ["T"] * n, made, [])


def score(gold, predicted, **options):
    return tw.metrics.roles([sentence(gold)], [sentence(predicted)], **options)


def figures(one):
    return one.n_gold, one.n_predicted, one.n_right


GOLD = [
    {1: [("ARG0", 0, 1), ("V", 1, 2), ("ARG1", 2, 5), ("ARGM-TMP", 5, 7)], 6: [("V", 6, 7)]},
    {2: [("ARG1", 0, 2), ("V", 2, 3), ("C-ARG1", 3, 5), ("C-V", 6, 7)]},
    {3: [("R-ARG0", 2, 3), ("V", 3, 4), ("ARG1", 4, 8)], 5: [("V", 5, 6), ("ARG1", 6, 7)]},
]
GUESS = [
    {1: [("ARG0", 0, 1), ("V", 1, 2), ("ARG2", 2, 5), ("ARGM-TMP", 5, 6)], 6: [("V", 6, 7)]},
    {2: [("ARG1", 0, 2), ("V", 2, 3), ("C-ARG1", 3, 5)]},
    {3: [("R-ARG0", 2, 3), ("V", 3, 4), ("ARG1", 4, 6), ("C-ARG1", 6, 8)], 4: [("ARG0", 0, 1)]},
]

# What srl-eval.pl of the CoNLL-2005 shared task printed for GOLD and GUESS.
PRINTED = """\
Number of Sentences    :           3
Number of Propositions :           5
Percentage of perfect props :  40.00

              corr.  excess  missed    prec.    rec.      F1
------------------------------------------------------------
   Overall        3       3       4    50.00   42.86   46.15
----------
      ARG0        1       0       0   100.00  100.00  100.00
      ARG1        1       1       3    50.00   25.00   33.33
      ARG2        0       1       0     0.00    0.00    0.00
  ARGM-TMP        0       1       1     0.00    0.00    0.00
    R-ARG0        1       0       0   100.00  100.00  100.00
------------------------------------------------------------
         V        3       1       2    75.00   60.00   66.67
------------------------------------------------------------
"""


def pairs():
    return [sentence(one) for one in GOLD], [sentence(one) for one in GUESS]


# against other programs


def test_roles_print_the_table_of_srl_eval():
    printed = str(tw.metrics.roles(*pairs(), count_extra=False))
    assert printed.startswith(PRINTED)


@st.composite
def sentences(draw):
    """Draw the propositions of a sentence as a dict from predicate to arguments that nest or not."""
    edges = st.tuples(st.integers(0, 3), st.integers(1, 4)).filter(lambda edge: edge[0] < edge[1])
    argument = st.tuples(st.sampled_from(LABELS), edges).map(lambda one: (one[0], *one[1]))
    arguments = st.lists(argument, max_size=5)
    return draw(st.dictionaries(st.integers(0, 4), arguments, max_size=3))


@given(st.lists(st.tuples(sentences(), sentences()), max_size=4), st.booleans())
def test_roles_equal_the_definition(drawn, count_extra):
    gold, predicted = [right for right, _ in drawn], [guess for _, guess in drawn]
    totals, labels = oracle.score(gold, predicted, count_extra)
    scores = tw.metrics.roles(
        [sentence(one) for one in gold], [sentence(one) for one in predicted], count_extra=count_extra
    )
    verb = labels.pop("V", (0, 0, 0))
    assert figures(scores) == (totals["gold"], totals["predicted"], totals["right"])
    assert scores.identification.n_right == totals["identified"]
    assert scores.predicates.n_right == totals["predicates"]
    n_gold = sum(map(len, gold))
    assert scores.predicates.n_predicted == sum(map(len, predicted))
    assert scores.predicates.n_gold == scores.n_propositions == n_gold
    assert scores.perfect == pytest.approx(100 * totals["perfect"] / max(n_gold, 1))
    assert figures(scores.verb) == verb
    assert {name: figures(one) for name, one in scores.labels.items()} == labels


@given(st.lists(sentences(), max_size=4))
def test_gold_scored_against_itself_is_perfect(drawn):
    gold = [sentence(one) for one in drawn]
    scores = tw.metrics.roles(gold, gold)
    assert scores.n_gold == scores.n_predicted == scores.n_right == scores.identification.n_right
    assert scores.f1 == (100 if scores.n_gold else 0)
    assert scores.perfect == (100 if scores.n_propositions else 0)


# by hand


def test_scores_of_a_small_example():
    scores = tw.metrics.roles(*pairs())
    assert figures(scores) == (7, 7, 3)
    assert scores.precision == scores.recall == scores.f1 == pytest.approx(300 / 7)
    assert scores.perfect == pytest.approx(100 * 2 / 5)
    assert figures(scores.identification) == (7, 7, 4)
    assert scores.classification == 75
    assert figures(scores.predicates) == (5, 5, 4)
    assert figures(scores.verb) == (5, 4, 3)
    assert {name: figures(one) for name, one in scores.labels.items()} == {
        "ARG0": (1, 2, 1),
        "ARG1": (4, 2, 1),
        "ARG2": (0, 1, 0),
        "ARGM-TMP": (1, 1, 0),
        "R-ARG0": (1, 1, 1),
    }
    assert (scores.labels["ARG1"].n_excess, scores.labels["ARG1"].n_missed) == (1, 3)


def test_labels_are_in_alphabetical_order():
    assert list(tw.metrics.roles(*pairs()).labels) == ["ARG0", "ARG1", "ARG2", "ARGM-TMP", "R-ARG0"]


def test_the_verb_does_not_count():
    scores = score({1: [("V", 1, 2), ("ARG0", 0, 1)]}, {1: [("V", 0, 2), ("ARG0", 0, 1)]})
    assert (scores.f1, scores.perfect, scores.verb.f1) == (100, 100, 0)


def test_an_argument_in_pieces_is_right_as_a_whole():
    gold = {0: [("ARG1", 1, 2), ("C-ARG1", 3, 4), ("C-ARG1", 5, 6)]}
    assert figures(score(gold, gold)) == (1, 1, 1)
    assert figures(score(gold, {0: [("ARG1", 1, 2), ("C-ARG1", 3, 4)]})) == (1, 1, 0)


def test_a_piece_belongs_to_the_last_of_its_label():
    gold = {0: [("ARG1", 1, 2), ("ARG1", 3, 4), ("C-ARG1", 5, 6)]}
    assert figures(score(gold, {0: [("ARG1", 1, 2)]})) == (2, 1, 1)
    assert figures(score(gold, {0: [("ARG1", 3, 4)]})) == (2, 1, 0)


def test_pieces_that_touch_are_not_one_span():
    assert score({0: [("ARG1", 1, 5)]}, {0: [("ARG1", 1, 3), ("C-ARG1", 3, 5)]}).n_right == 0


def test_a_piece_of_nothing_is_an_argument_itself():
    assert score({0: [("ARG1", 1, 2)]}, {0: [("C-ARG1", 1, 2)]}).f1 == 100


def test_a_missing_predicate_loses_all_its_arguments():
    scores = score({0: [("ARG0", 1, 2), ("ARG1", 2, 3)], 4: [("ARG0", 1, 2)]}, {4: [("ARG0", 1, 2)]})
    assert (figures(scores), figures(scores.predicates)) == ((3, 1, 1), (2, 1, 1))


def test_arguments_of_a_predicate_not_in_gold_are_in_excess_unless_passed_over():
    gold, guess = {0: [("ARG0", 1, 2)]}, {0: [("ARG0", 1, 2)], 5: [("V", 5, 6), ("ARG0", 1, 2)]}
    assert figures(score(gold, guess)) == (1, 2, 1)
    passed_over = score(gold, guess, count_extra=False)
    assert (figures(passed_over), passed_over.predicates.n_excess) == ((1, 1, 1), 1)


def test_propositions_are_matched_by_position_not_by_order():
    gold = {1: [("ARG0", 0, 1)], 3: [("ARG0", 2, 3)]}
    assert score(gold, dict(reversed(gold.items()))).f1 == 100


def test_long_labels_stay_in_their_columns():
    lines = str(score({0: [("ARGM-VERY-LONG", 1, 2)]}, {})).splitlines()
    rows = [line for line in lines if line.endswith("0.00")][1:]
    assert len({len(line) for line in rows if "Unlabeled" not in line}) == 1


def test_nothing_to_score_gives_zeros():
    scores = tw.metrics.roles([], [])
    assert (scores.f1, scores.perfect, scores.classification, scores.labels) == (0, 0, 0, {})


def test_counts_are_summed_over_sentences():
    counts = dict(zip(COUNTS, sentence_counts(*pairs()).T.tolist(), strict=True))
    assert counts["gold"] == [3, 1, 3]
    assert counts["right"] == [1, 1, 1]
    assert counts["perfect"] == [1, 1, 0]


# significance


def test_roles_are_tested_by_role_f1():
    gold = [sentence({1: [("ARG0", 0, 1), ("ARG1", 2, 3)]})] * 20
    worse = [sentence({1: [("ARG0", 0, 1), ("ARG2", 2, 3)]})] * 20
    result = tw.metrics.significance(gold, gold, worse, metric="role-f1", n_shuffles=200)
    assert (result.score_a, result.score_b) == (100, 50)
    assert result.p_value == pytest.approx(1 / 201)


def test_role_f1_refuses_trees():
    tree = tw.ConstTree.parse("(S (N we))")
    with pytest.raises(
        InputError, match="metric 'role-f1' needs PropSentence, but the trees are of another kind"
    ):
        tw.metrics.significance([tree], [tree], [tree], metric="role-f1")


# what is refused


def test_roles_reject_lists_of_different_lengths():
    with pytest.raises(InputError, match=r"^1 gold sentences but 0 predicted; expected the same number$"):
        tw.metrics.roles([sentence({})], [])


def test_roles_reject_different_numbers_of_words_and_name_the_sentence():
    gold, guess = [sentence({})] * 2, [sentence({}), sentence({}, n=7)]
    with pytest.raises(
        InputError, match=r"^sentence 2: 8 gold words but 7 predicted; expected the same number$"
    ):
        tw.metrics.roles(gold, guess)


def test_roles_reject_two_propositions_at_one_word():
    twice = PropSentence(["w"], ["T"], [Proposition(0, "be", "be.01", ())] * 2, [])
    once = twice._replace(propositions=twice.propositions[:1])
    with pytest.raises(InputError, match=r"^sentence 1: 2 predicted propositions at word 1; expected one$"):
        tw.metrics.roles([once], [twice])
