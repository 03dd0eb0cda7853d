"""Scores of given trees, compared with those of all trees that a search finds."""

from itertools import pairwise, product

import numpy as np
import pytest

import treewright as tw
from treewright.errors import InputError
from treewright.parsing.constituent.parser import STRATEGIES
from treewright.parsing.constituent.scoring import list_brackets, list_tags

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
TRAINING = [
    "(TOP (NP (DT a) (NN b)) (VP (VBD c)))",
    "(TOP (VP (VBD c) (NP (NN b))))",
    "(TOP (NP (NN d)) (VP (VBD c) (NP (DT a) (NN b))))",
    "(TOP (NP (NP (NN b)) (, ,) (NP (DT a) (NN d))) (VP (VBD e)))",
    "(TOP (NP (NN b)) (. .))",
    "(TOP (VP (NP (VBD e))))",
]


def read(*texts):
    return [tw.ConstTree.parse(text) for text in texts]


def without_root(trees):
    return [tree.children[0] for tree in trees]


def train(*, trees=None, **options):
    trees = (trees or read(*TRAINING)) * 3
    options = {"lowest_penalty": 0.2, "min_count": 1, "max_inferences": 1_000_000} | options
    return tw.ConstituentParser(**options).fit(trees, trees[:6])


@pytest.fixture(scope="module")
def parsers():
    return {
        (strategy, only_known): train(strategy=strategy, any_children=not only_known)
        for strategy in STRATEGIES
        for only_known in (True, False)
    }


@pytest.fixture(params=STRATEGIES)
def parser(request, parsers):
    return parsers[request.param, True]


def under(below, labels, longest):
    """List trees over a sequence of trees: sequences of labels of which none is like the one below."""
    found = []
    for length in range(1, longest + 1):
        for chosen in product(labels, repeat=length):
            if all(one != other for one, other in pairwise(chosen)):
                above = below
                for label in chosen:
                    above = [tw.ConstTree(label, above)]
                found += above
    return found


def over(words, labels, longest):
    """List all trees over words."""
    if len(words) == 1:
        return [*words, *under(words, labels, longest)]
    several = sequences(words, labels, longest, most=len(words) - 1)
    return [tree for below in several for tree in under(below, labels, longest)]


def sequences(words, labels, longest, *, most=None):
    """List all sequences of trees over words, the first of them over at most so many."""
    if not words:
        return [[]]
    return [
        [first, *rest]
        for size in range(1, (most or len(words)) + 1)
        for first in over(words[:size], labels, longest)
        for rest in sequences(words[size:], labels, longest)
    ]


def all_trees(sentence, labels, longest):
    words = [tw.ConstTree(tag, [word]) for word, tag in sentence]
    return [tw.ConstTree("TOP", below) for below in sequences(words, labels, longest)]


def check_all(parser, sentence, labels, longest):
    """Check that just those trees have a score that a search through all finds, and that very one."""
    (found,) = parser.kbest([sentence], k=20_000)
    expected = {parse.tree: parse.score for parse in found}
    trees = all_trees(sentence, labels, longest)
    assert len(set(trees)) == len(trees) > len(expected) == len(found) < 20_000
    assert set(expected) <= set(trees)
    scores = parser.scores(trees)
    np.testing.assert_allclose(scores, [expected.get(tree, -np.inf) for tree in trees], rtol=1e-9)
    return len(found)


@pytest.mark.slow_cases
@pytest.mark.parametrize("only_known", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_trees_that_have_a_score_are_those_that_a_search_finds(parsers, strategy, only_known):
    parser = parsers[strategy, only_known]
    assert check_all(parser, [("a", "DT"), ("b", "NN")], ["NP", "VP", "X"], 2) > 2
    assert check_all(parser, [("b", "QQ"), ("e", "VBD")], ["NP", "VP"], 3) > 2
    assert check_all(parser, [("e", "VBD")], ["NP", "VP", "X"], 3) > 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_where_nothing_is_known_all_goes_under_the_top(strategy):
    trees = read("(TOP (NP (DT a) (NN b)))", "(TOP (NP (NN b) (DT a)))", "(TOP (NP (VBD c) (VBD c)))")
    parser = train(trees=trees, strategy=strategy)
    assert check_all(parser, [("c", "VBD")], ["NP"], 1) == 1
    assert check_all(parser, [("b", "NN"), ("c", "VBD"), ("d", "NN")], ["NP"], 1) > 1


def test_wide_constituents_have_no_score_but_the_top(parsers):
    parser = train(max_children=2, any_children=True)
    wide, top = read(
        "(TOP (NP (DT a) (NN b) (NN b)) (VP (VBD c)))", "(TOP (DT a) (NN b) (NN b) (VP (VBD c)))"
    )
    assert parser.scores([wide, top])[0] == -np.inf
    assert np.isfinite(parser.scores([wide, top])[1])
    assert np.isfinite(parsers["shift-reduce", False].scores([wide, top])).all()


def test_labels_that_were_never_learnt_have_no_score(parser):
    trees = read("(TOP (X (NN b)))", "(TOP (NP (X (DT a)) (NN b)))", "(TOP (NP (TOP (NN b))))")
    assert parser.scores(trees).tolist() == [-np.inf] * 3


def test_repeated_brackets_and_raised_punctuation_do_not_count(parser):
    plain = "(TOP (NP (NP (NN b)) (, ,) (NP (DT a) (NN d))) (VP (VBD e)))"
    same = [
        "(TOP (NP (NP (NN b) (, ,)) (NP (DT a) (NN d))) (VP (VBD e)))",
        "(TOP (NP (NP (NN b)) (, ,) (NP (NP (DT a) (NN d)))) (VP (VBD e)))",
        "(TOP (NP (NP (NN b)) (X (, ,)) (NP (DT a) (NN d))) (VP (VBD e)))",
        "(TOP (TOP (NP (NP (NN b)) (, ,) (NP (DT a) (NN d))) (VP (VBD e))))",
        "(TOP (NP-SBJ-1 (NP (NN b)) (, ,) (NP (DT a) (NN d)) (SBAR (-NONE- *))) (VP=2 (VBD e)))",
    ]
    scores = parser.scores(read(plain, *same))
    assert np.isfinite(scores[0])
    assert scores.tolist() == [scores[0]] * len(scores)


def test_punctuation_is_where_it_is_if_a_search_may_leave_it_there(parsers):
    trees = read("(TOP (NP (NN b) (, ,)) (VP (VBD e)))", "(TOP (NP (NN b)) (, ,) (VP (VBD e)))")
    for (_, only_known), parser in parsers.items():
        first, second = parser.scores(trees)
        assert (first == second) == only_known
        assert np.isfinite([first, second]).all()


def test_particles_are_adverbs():
    trees = read("(TOP (VP (VBD c) (PRT (RP b))))", "(TOP (VP (VBD c) (ADVP (RP b))))")
    first, second = train(trees=trees).scores(trees)
    assert first == second > -np.inf


def test_dropped_words_may_stand_anywhere(parser):
    trees = read(
        "(TOP (NP (`` \") (DT a) (NN b)) (VP (VBD c) (X (. .))) ('' \"))",
        "(TOP (`` \") (NP (DT a) (NN b)) (VP (VBD c)) (. .) ('' \"))",
    )
    first, second = parser.scores(trees)
    assert first == second > -np.inf
    assert parser.kbest(trees[:1], k=1)[0][0].score >= first


def test_what_has_no_words_inside_costs_nothing(parser):
    trees = read("(TOP (X (. .)))", "(TOP (NP (-NONE- *)))", "(. !)")
    assert parser.scores(trees).tolist() == [0, 0, 0]
    assert parser.scores([]).tolist() == []


def test_any_root_that_is_no_constituent_is_the_top(parser):
    named = read("(ROOT (NP (NN b)) (VP (VBD e)))", "(TOP (NP (NN b)) (VP (VBD e)))")
    first, second = parser.scores(named)
    assert first == second > -np.inf
    bare, whole = parser.scores(read("(NP (DT a) (NN b))", "(TOP (NP (DT a) (NN b)))"))
    assert bare == whole > -np.inf
    word, whole = parser.scores(read("(NN b)", "(TOP (NN b))"))
    assert word == whole


def test_trees_of_a_parser_without_a_root_are_scored_as_the_search_scores_them():
    trees = [*without_root(read(*TRAINING)), *read("(X (NN b) (VBD e))")]
    parser = train(trees=trees)
    assert parser.root_ is None
    odd = read("(NN b)", "(X (NN b) (. .))", "(X (QQ a) (ZZ b))", "(X (DT a) (NN b) (VBD e) (. .))")
    parses = [each for found in parser.kbest([*trees, *odd], k=20) for each in found]
    assert {each.tree.label for each in parses} >= {"NP", "TOP", "X"}
    scores = parser.scores([each.tree for each in parses])
    np.testing.assert_allclose(scores, [each.score for each in parses], rtol=1e-9)
    assert parser.scores(read("(ODD (NN b) (VBD e))")).tolist() == [-np.inf]


def test_threads_change_no_score(parser):
    trees = [each.tree for found in parser.kbest(read(*TRAINING), k=4) for each in found]
    other = tw.ConstituentParser.from_state(parser.get_state())
    other.n_jobs = 2
    assert other.scores(trees).tolist() == parser.scores(trees).tolist()


def test_sentences_with_many_items_have_room(parser, monkeypatch):
    trees = [each.tree for found in parser.kbest(read(*TRAINING), k=9) for each in found]
    expected = parser.scores(trees).tolist()
    monkeypatch.setattr("treewright.parsing.constituent.scoring.ROOM", 1)
    assert parser.scores(trees).tolist() == expected


def test_trees_without_tags_are_refused(parser):
    with pytest.raises(InputError) as caught:
        parser.scores([*read("(NN b)"), tw.ConstTree("b")])
    assert str(caught.value) == (
        "tree 2 has no tags, but this ConstituentParser needs tags; expected trees with tags, or a model "
        "trained with tags='predicted'"
    )
    with pytest.raises(InputError, match="tree 1 is 'b'; expected a ConstTree"):
        parser.scores(["b"])
    with pytest.raises(InputError, match="this ConstituentParser is not fitted"):
        tw.ConstituentParser().scores([])


def test_brackets_are_those_over_words_that_are_kept():
    (tree,) = read("(S (X (, ,)) (NP (N a) (X (, ,) (N b))) (VP (V c)) (. .))")
    is_kept = [False, True, False, True, True, False]
    expected = [("VP", 2, 1), ("X", 1, 1), ("NP", 0, 2), ("S", 0, 2)]
    assert list_brackets(tree, is_kept) == expected


@pytest.mark.parametrize("text", ["(S (A a) (B (C c)))", "(S a (B b))", "(S (A a) b c)", "(S (B b) c)"])
def test_tags_are_those_of_the_tree(text):
    (tree,) = read(text)
    assert list_tags(tree) == tree.tags()
    assert list_tags(tw.ConstTree("a")) == []
