import pytest

import treewright as tw
from treewright.errors import InputError
from treewright.srl.arguments import shape_of
from treewright.srl.features import SETS, VALUES, FeatureTable, read_templates, view_argument

ACTIVE = tw.ConstTree.parse(
    "(S (NP (NNP Mary)) (VP (VBD brought) (NP (DT a) (NN cat)) (PP (TO to) (NP (NN school)))))"
)
PASSIVE = tw.ConstTree.parse(
    "(S (NP (DT The) (NN cat)) (VP (MD will) (VP (VB be) (VP (VBN brought) (PP (IN by) (NP (NNP Mary)))))))"
)
PERFECT = tw.ConstTree.parse("(S (NP (PRP She)) (VP (VBZ has) (VP (VBN brought) (NP (PRP it)))))")
REDUCED = tw.ConstTree.parse("(NP (NP (NNS cats)) (VP (VBN brought) (PP (IN by) (NP (NNP Mary)))))")

ASKED = tw.ConstTree.parse("(SQ (VBD Was) (NP (PRP he)) (VP (VBN seen)))")
HAVING = tw.ConstTree.parse("(SBARQ (WHNP (WP What)) (SQ (VBP have) (NP (PRP you)) (VP (VBN done))))")
JOINED = tw.ConstTree.parse("(S (NP (PRP He)) (VP (VP (VBD was) (ADJP (JJ ill))) (CC and) (VP (VBN gone))))")


def values(tree, predicate, text):
    """Return all values of the argument with this text."""
    node = [str(each) for each in tree.subtrees()].index(text)
    view = view_argument(tw.Argument(tree, predicate, node), shape_of(tree))
    return {name: function(view) for name, function in VALUES.items()}


def test_values_of_a_subject():
    found = values(ACTIVE, 1, "(NP (NNP Mary))")
    expected = {
        "predicate": "brought",
        "path": "NP^S!VP!VBD",
        "half_path": "NP^S",
        "phrase": "NP",
        "position": "before",
        "voice": "active",
        "head": "mary",
        "head_tag": "NNP",
        "subcategorisation": "VP>VBD NP PP",
        "governing": "S",
        "rule": "S>NP VP",
        "parent": "S",
        "left_phrase": "-",
        "right_phrase": "VP",
        "before": "-",
        "after": "brought",
        "frame": "*NP _ NP PP",
        "place": "0 2",
        "marker": "-",
    }
    assert {name: found[name] for name in expected} == expected


def test_values_of_a_prepositional_phrase():
    found = values(ACTIVE, 1, "(PP (TO to) (NP (NN school)))")
    expected = {
        "path": "PP^VP!VBD",
        "position": "after",
        "first_word": "to",
        "last_word": "school",
        "first_tag": "TO",
        "last_tag": "NN",
        "governing": "-",
        "marker": "to",
        "inner_head": "school",
        "inner_tag": "NN",
        "frame": "NP _ NP *PP",
    }
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("tree", "predicate", "text", "expected"),
    [
        (ACTIVE, 1, "(NP (NNP Mary))", "active"),
        (PASSIVE, 4, "(NP (DT The) (NN cat))", "passive"),
        (PERFECT, 2, "(NP (PRP it))", "active"),
        (REDUCED, 1, "(NP (NNS cats))", "reduced"),
        (ASKED, 2, "(NP (PRP he))", "passive"),
        (HAVING, 3, "(NP (PRP you))", "active"),
        (JOINED, 4, "(NP (PRP He))", "reduced"),
    ],
)
def test_voice_is_told_by_auxiliaries(tree, predicate, text, expected):
    assert values(tree, predicate, text)["voice"] == expected


def test_a_lemma_that_is_given_stands_for_the_predicate():
    view = view_argument(tw.Argument(ACTIVE, 1, 2, lemma="bring"), shape_of(ACTIVE))
    assert VALUES["predicate"](view) == "bring"


@pytest.mark.parametrize("features", SETS)
def test_rows_have_a_column_for_each_feature_that_was_seen(features):
    bank = tw.make_treebank(n_sentences=30, random_state=2)
    arguments = tw.find_arguments(bank.constituents, bank.propositions).arguments
    table = FeatureTable(features)
    rows = table.fit_transform(arguments)
    n_templates = len(read_templates(features))
    assert rows.shape == (len(arguments), len(table.names_))
    assert (rows.getnnz(axis=1) == n_templates).all()
    assert (rows != table.transform(arguments)).nnz == 0


def test_features_that_were_not_seen_are_left_out():
    table = FeatureTable("head").fit([tw.Argument(ACTIVE, 1, 2)])
    assert table.names_ == ["head|mary"]
    assert table.transform([tw.Argument(PERFECT, 2, 2)]).nnz == 0


def test_a_table_is_the_same_after_saving():
    table = FeatureTable("head\nphrase voice").fit([tw.Argument(ACTIVE, 1, 2), tw.Argument(ACTIVE, 1, 9)])
    again = FeatureTable.from_state(table.get_state())
    assert again.names_ == table.names_
    assert again.features == table.features


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (
            "phrase colour",
            "template 'phrase colour' has 'colour'; expected standard, extended or lines of predicate",
        ),
        ("\n", "features is '.n'; expected 'standard', 'extended' or templates"),
        (3, "features is 3; expected 'standard'"),
    ],
)
def test_unknown_features_are_refused(features, message):
    with pytest.raises(InputError, match=message):
        FeatureTable(features)
