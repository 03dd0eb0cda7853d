from hypothesis import given
from hypothesis import strategies as st
from strategies import dep_trees

import treewright as tw
from treewright.parsing.dependency.baselines import MajorityHeadParser, NextWordParser


def tagged(words, tags, heads=None, deprels=None):
    return tw.DepTree(words, heads, deprels, xpos=tags)


def test_next_word_parser_makes_a_chain():
    train = [tagged(["a", "b"], ["D", "N"], [2, 0], ["det", "root"])]
    (parsed,) = NextWordParser().fit(train).predict([tagged(["x", "y", "z"], ["D", "N", "N"])])
    assert parsed.heads.tolist() == [2, 3, 0]
    assert parsed.deprels == ["det", "root", "root"]


def test_majority_head_parser_attaches_to_the_nearest_word_with_the_usual_tag():
    train = [tagged(["the", "cat", "sat"], ["D", "N", "V"], [2, 3, 0], ["det", "nsubj", "root"])]
    words = ["the", "old", "cat", "and", "the", "dog", "sat"]
    tags = ["D", "J", "N", "C", "D", "N", "V"]
    (parsed,) = MajorityHeadParser().fit(train).predict([tagged(words, tags)])
    assert parsed.heads.tolist() == [3, 0, 7, 0, 6, 7, 0]
    assert parsed.deprels[1] == "dep"


def test_majority_head_parser_takes_the_nearest_word_to_the_left():
    train = [tagged(["sat", "here"], ["V", "R"], [0, 1], ["root", "advmod"])]
    (parsed,) = MajorityHeadParser().fit(train).predict([tagged(["a", "b", "c"], ["V", "V", "R"])])
    assert parsed.heads.tolist() == [0, 0, 2]


def test_majority_head_parser_breaks_cycles():
    train = [tagged(["a", "b", "c"], ["A", "B", "A"], [2, 3, 0]), tagged(["b", "a"], ["B", "A"], [2, 0])]
    train += [tagged(["a", "b"], ["A", "B"], [2, 0])] * 3
    (parsed,) = MajorityHeadParser().fit(train).predict([tagged(["a", "b", "a"], ["A", "B", "A"])])
    assert parsed.n_roots >= 1


@given(st.lists(dep_trees(extras=False), min_size=1, max_size=4))
def test_baselines_give_trees_whatever_the_tags(trees):
    for parser in (NextWordParser(), MajorityHeadParser()):
        for tree, parsed in zip(trees, parser.fit(trees).predict(trees), strict=True):
            assert parsed.words == tree.words
            assert tree.with_heads(parsed.heads).n_roots >= 1
