"""Features of arcs in plain words."""

import numpy as np
import pytest

import treewright as tw
from treewright.data.arcs import ArcEncoder
from treewright.data.plain_words import ToldArc, say_subtree, say_with_neighbours, say_word


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"word": "saw"}, "“saw”"),
        ({"word": "saw", "tag": "VBD"}, "“saw” (verb in the past tense)"),
        ({"tag": "ADJ"}, "an adjective"),
        ({"tag": "XY"}, "a word tagged XY"),
        ({"lemma": "see"}, "a form of “see”"),
        ({"pos": "NOUN", "feats": "Number=Plur"}, "a noun with Number=Plur"),
        ({"shape": "Xx"}, "a word that is capitalised"),
        ({}, "a word"),
        ({"special": "the root"}, "the root"),
    ],
)
def test_words_are_told_by_what_is_known_of_them(known, said):
    assert say_word(known) == said


def test_neighbours_are_told_with_their_side():
    around = {0: {"tag": "NOUN"}, -1: {"tag": "DET"}, 1: {"word": "of"}}
    assert say_with_neighbours(around) == "a noun after a determiner and before “of”"


def test_an_arc_from_the_root_has_no_side():
    assert ToldArc({0: {"special": "the root"}}, {0: {"word": "saw"}}, "left", "2").say() == (
        "“saw” depends on the root"
    )


def test_heads_that_were_told_are_not_told_again():
    verb, noun = {0: {"tag": "VERB"}}, {0: {"tag": "NOUN"}}
    arcs = [
        (0, ToldArc(verb, noun)),
        (1, ToldArc(noun, {0: {"tag": "ADP"}})),
        (0, ToldArc(verb, {0: {"tag": "ADV"}})),
    ]
    assert say_subtree(arcs) == "A noun depends on a verb; below it, an adposition; beside it, an adverb."


def test_every_basic_feature_of_a_tree_can_be_told():
    (tree,) = tw.make_treebank(1, random_state=0).dependencies
    encoder = ArcEncoder.from_trees([tree])
    n = len(tree)
    _, keys = encoder.keys(
        encoder.encode([tree]), np.zeros(n, dtype=np.int64), tree.heads.astype(np.int64), np.arange(1, n + 1)
    )
    for key in keys.tolist():
        said = encoder.say(key)
        assert " depends on " in said
        assert all(word in said for word in encoder.words_of(key) if word.isalpha() and word != "ROOT")
