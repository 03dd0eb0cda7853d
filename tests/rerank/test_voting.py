"""Trees that are put together from the brackets of candidates."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import treewright as tw
from treewright.errors import InputError
from treewright.metrics.parseval import parseval
from treewright.parsing.span.labels import membership
from treewright.rerank.parse_lists import ParseList, count_brackets
from treewright.rerank.score_weights import tune_votes
from treewright.rerank.voting import ScoredBrackets, Votes, join_brackets, softmax, vote

LABELS = ("A", "B")


def parse(*texts):
    return [tw.ConstTree.parse(text) for text in texts]


@st.composite
def candidates(draw):
    """Make different trees over the same words, with the same root, and their probabilities."""
    n = draw(st.integers(1, 5))

    def phrase(begin, end):
        label = draw(st.sampled_from(LABELS))
        if end - begin == 1:
            word = f"(X w{begin})"
            return draw(st.sampled_from([word, f"({label} {word})", f"({label} ({label} {word}))"]))
        parts = draw(st.lists(st.integers(begin + 1, end - 1), min_size=1, unique=True).map(sorted))
        bounds = [begin, *parts, end]
        inner = " ".join(phrase(*pair) for pair in pairwise(bounds))
        return f"({label} {inner})"

    trees = [tw.ConstTree.parse(f"(TOP {phrase(0, n)})") for _ in range(draw(st.integers(1, 5)))]
    weights = np.array([draw(st.integers(1, 9)) for _ in trees])
    return trees, weights / weights.sum()


def constituents(tree):
    """Return how often a tree has each label at each span, from the definition."""
    found = Counter()

    def walk(node, begin):
        if node.is_leaf:
            return begin + 1
        end = begin
        for child in node.children:
            end = walk(child, end)
        if not node.children[0].is_leaf:
            found[node.label, begin, end] += 1
        return end

    walk(tree, 0)
    return found


@settings(max_examples=150)
@given(candidates())
def test_brackets_win_that_are_more_probable_than_not(made):
    trees, probabilities = made
    found = join_brackets(trees, probabilities)
    assert (found.words(), found.tags()) == (trees[0].words(), trees[0].tags())
    own, result = [constituents(tree) for tree in trees], constituents(found)
    spans = {key[1:] for each in own for key in each}
    for span in spans:
        keys = {key for each in own for key in each if key[1:] == span}
        shares = {
            (key, times): sum(p for each, p in zip(own, probabilities, strict=True) if each[key] >= times)
            for key in keys
            for times in (1, 2, 3)
        }
        wanted = {key: sum(shares[key, times] > 0.5 for times in (1, 2, 3)) for key in keys}
        is_sure = all(abs(share - 0.5) > 1e-9 for share in shares.values())
        # A chain of all labels that win may not occur.
        if is_sure and any(all(each[key] == n for key, n in wanted.items()) for each in own):
            assert {key: result[key] for key in keys} == wanted


def test_the_tree_need_not_be_a_candidate():
    trees = parse(
        "(TOP (S (A (X a) (X b)) (X c) (X d)))",
        "(TOP (S (X a) (X b) (B (X c) (X d))))",
        "(TOP (S (A (X a) (X b)) (B (X c) (X d))))",
    )
    assert join_brackets(trees[:2], np.array([0.5, 0.5])) == tw.ConstTree.parse(
        "(TOP (S (X a) (X b) (X c) (X d)))"
    )
    assert join_brackets(trees, np.array([0.45, 0.35, 0.2])) == trees[2]
    crossing = parse("(TOP (S (X a) (A (X b) (X c)) (X d)))")
    assert join_brackets([*trees[:2], *crossing], np.array([0.4, 0.35, 0.25])) == tw.ConstTree.parse(
        "(TOP (S (X a) (X b) (X c) (X d)))"
    )


def test_a_sentence_without_an_agreed_root_keeps_the_most_probable_one():
    trees = parse("(S (X a) (X b))", "(NP (X a) (X b))", "(VP (X a) (X b))")
    assert join_brackets(trees, np.array([0.3, 0.4, 0.3])) == trees[1]
    assert join_brackets(parse("(S (X a))", "(X a)"), np.array([0.4, 0.6])) == parse("(X a)")[0]


def test_parsers_vote_by_their_shares():
    trees = parse("(TOP (A (X a) (X b)))", "(TOP (B (X a) (X b)))")
    scores = np.array([[0.0, 3.0], [1.0, 0.0]])
    assert vote([trees], [scores], Votes((1.0, 1.0), (0.9, 0.1))) == [trees[1]]
    assert vote([trees], [scores], Votes((1.0, 1.0), (0.1, 0.9))) == [trees[0]]
    np.testing.assert_allclose(
        Votes((2.0, 0.5), (0.25, 0.75)).probabilities(scores),
        0.25 * softmax(2 * scores[:, 0]) + 0.75 * softmax(0.5 * scores[:, 1]),
    )


@settings(max_examples=50)
@given(st.lists(candidates(), min_size=1, max_size=4), st.data())
def test_the_f1_of_a_vote_is_that_of_its_trees(made, data):
    lists = [list(dict.fromkeys(trees)) for trees, _ in made]
    gold = [trees[data.draw(st.integers(0, len(trees) - 1))] for trees in lists]
    scores = [
        np.array(
            data.draw(st.lists(st.tuples(*[st.integers(-3, 3)] * 2), min_size=n, max_size=n)), dtype=float
        )
        for n in map(len, lists)
    ]
    votes = Votes((1.0, 0.7), (0.37, 0.63))
    probable = [softmax(each * votes.scales) for each in scores]
    found = ScoredBrackets.of(lists, gold, probable).f1(votes.shares)
    assume(found > 0)  # without brackets, PARSEVAL says 100
    assert found == pytest.approx(parseval(gold, vote(lists, scores, votes)).f1)


def test_a_parser_that_is_always_right_gets_a_share():
    trees = parse("(TOP (A (X a) (X b)))", "(TOP (B (X a) (X b)))")
    lists = [
        ParseList(trees, np.array([[1.0, 4.0], [0.0, 0.0]])),
        ParseList(trees, np.array([[0.0, 1], [4, 0]])),
    ]
    gold = [trees[0], trees[0]]
    scores = [each.scores for each in lists]
    votes = tune_votes(scores, lists, count_brackets(gold, lists), gold)
    assert votes.shares[1] > 0
    assert vote([each.trees for each in lists], scores, votes) == gold
    assert sum(votes.shares) == pytest.approx(1)


def test_an_item_that_a_bag_has_twice_counts_twice():
    assert membership([("A", "A"), ("A",), ()]).tolist() == [[1, 1], [1, 0], [0, 0]]
    assert membership([()]).shape == (1, 0)


def test_words_are_kept_if_two_trees_are_exactly_as_probable():
    trees = parse("(TOP (S (A (X a) (X b)) (X c)))", "(TOP (S (X a) (A (X b) (X c))))")
    for share in (0.5, 0.5 + 2e-16, 0.5 - 2e-16, 0.5 + 4e-7):
        found = join_brackets(trees, np.array([share, share]))
        assert found == tw.ConstTree.parse("(TOP (S (X a) (X b) (X c)))")
    votes = Votes((1.0, 1.0), (0.5000004, 0.5000004))
    votes.check(2)
    assert votes.probabilities(np.zeros((2, 2))).sum() == pytest.approx(1, abs=1e-15)


def test_of_chains_with_the_same_labels_the_most_probable_one_wins():
    trees = parse("(TOP (A (B (X a) (X b))))", "(TOP (B (A (X a) (X b))))")
    assert join_brackets(trees, np.array([0.1, 0.9])) == trees[1]
    assert join_brackets(trees, np.array([0.9, 0.1])) == trees[0]


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (Votes((1.0,), (0.5, 0.5)), "a scale and a share of each parser"),
        (Votes((1.0, np.nan), (0.5, 0.5)), "scales of at least 0"),
        (Votes((1.0, 1.0), (np.nan, 0.5)), "shares between 0 and 1"),
        (Votes((1.0, 1.0), (0.5, 0.6)), "shares whose sum is 1"),
    ],
)
def test_damaged_votes_are_refused(votes, message):
    with pytest.raises(InputError, match=message):
        votes.check(2)
