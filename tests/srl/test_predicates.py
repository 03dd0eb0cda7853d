"""Finding predicates, their lemmas and senses."""

import pytest

import treewright as tw
from treewright.data.propbank import Proposition, PropSentence
from treewright.srl.arguments import shape_of
from treewright.srl.predicates import LemmaTable, PredicateFinder, TreeWord

VERBS = [
    ("walked", "VBD", "walk"),
    ("Talked", "VBD", "talk"),
    ("stalked", "VBD", "stalk"),
    ("sang", "VBD", "sing"),
    ("rang", "VBD", "ring"),
    ("carried", "VBD", "carry"),
    ("going", "VBG", "go"),
    ("decision", "NN", "decide"),
]


@pytest.mark.parametrize(
    ("word", "tag", "lemma"),
    [
        ("sang", "VBD", "sing"),
        ("SANG", "VBD", "sing"),
        ("talked", "VBD", "talk"),
        ("balked", "VBD", "balk"),
        ("married", "VBD", "marry"),
        ("sprang", "VBD", "spring"),
        ("singing", "VBG", "sing"),
        ("revision", "NN", "revide"),
        ("foxes", "NNS", "foxes"),
    ],
)
def test_lemmas_are_those_seen_or_made_by_the_script_of_the_longest_suffix(word, tag, lemma):
    assert LemmaTable(VERBS).lemma(word, tag) == lemma


def test_the_most_frequent_lemma_of_a_word_is_taken():
    table = LemmaTable([("found", "VBD", "found"), ("found", "VBD", "find"), ("Found", "VBD", "find")])
    assert table.lemma("found", "VBD") == "find"


def test_a_lemma_is_never_empty():
    assert LemmaTable([("sing", "VBG", "s")]).lemma("ing", "VBG") == "ing"
    assert LemmaTable([]).lemma("Fox", "NN") == "fox"


TEXTS = [
    "(S (NP (NN fox)) (VP (VBD gave) (PRT (RP up)) (. .)))",
    "(S (NP (NN fox)) (VP (VBD gave) (NP (NN bread))))",
    "(S (NP (NN fox)) (VP (VBZ is) (VP (VBG giving) (NP (NN bread)))))",
    "(S (NP (DT the) (NN decision)) (VP (VBZ is) (ADJP (JJ late))))",
]
PREDICATES = [
    [(1, "give", "give_up.07")],
    [(1, "give", "give.01")],
    [(1, "be", "be.03"), (2, "give", "give.01")],
    [(1, "decide", "decide.01"), (2, "be", "be.01")],
]


def corpus(times=5):
    trees = [tw.ConstTree.parse(text) for text in TEXTS] * times
    sentences = [
        PropSentence(tree.words(), tree.tags(), [Proposition(*one, ()) for one in known], [])
        for tree, known in zip(trees, PREDICATES * times, strict=True)
    ]
    return [shape_of(tree) for tree in trees], sentences


def found(finder, shapes):
    return [[one[:3] for one in each] for each in finder.predict(shapes)]


def test_verbs_are_found_with_senses_by_particle_and_as_auxiliaries():
    shapes, sentences = corpus()
    finder = PredicateFinder("verbs").fit(shapes, sentences)
    verbs = [[one for one in each if one[1] != "decide"] for each in PREDICATES]
    assert found(finder, shapes[:4]) == verbs


def test_nouns_are_found_among_all():
    shapes, sentences = corpus()
    assert found(PredicateFinder("all").fit(shapes, sentences), shapes[:4]) == PREDICATES


def test_words_that_never_were_predicates_nor_their_lemmas_are_none_unless_verbs():
    finder = PredicateFinder("all").fit(*corpus())
    new = shape_of(tw.ConstTree.parse("(S (NP (NN vision)) (VP (VBD sneezed)))"))
    assert found(finder, [new]) == [[(1, "sneezed", "sneezed.01")]]


def test_a_word_whose_lemma_columns_cannot_hold_is_no_predicate():
    finder = PredicateFinder("verbs").fit(*corpus())
    assert found(finder, [shape_of(tw.ConstTree.parse("(S (VB -))"))]) == [[]]


def test_a_finder_without_words_that_may_be_predicates_finds_none():
    tree = tw.ConstTree.parse("(NP (NN fox))")
    finder = PredicateFinder("verbs").fit([shape_of(tree)], [PropSentence(["fox"], ["NN"], [], [])])
    again = PredicateFinder.from_state(finder.get_state())
    for one in (finder, again):
        assert found(one, [shape_of(tw.ConstTree.parse("(S (VB go))")), shape_of(tree)]) == [[], []]


def test_a_finder_is_made_again_from_its_state():
    shapes, sentences = corpus()
    finder = PredicateFinder("all").fit(shapes, sentences)
    assert PredicateFinder.from_state(finder.get_state()).predict(shapes) == finder.predict(shapes)


def test_a_lone_word_has_no_neighbours():
    word = TreeWord(shape_of(tw.ConstTree("go")), 0, "go")
    assert (word.text(1), word.tag(-1), word.above(1), word.sister(1), word.particle()) == ("-",) * 5
