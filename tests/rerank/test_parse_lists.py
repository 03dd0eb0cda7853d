"""Candidate lists of constituency parsers: whose trees are in them, and with which scores."""

import numpy as np
import pytest

import treewright as tw
from treewright.errors import InputError
from treewright.parsing.constituent.parser import Parse
from treewright.rerank.parse_lists import (
    UNREACHABLE,
    ParseList,
    best_f1,
    corpus_f1,
    count_brackets,
    f1_losses,
    join_parses,
    keep_derivable,
    list_ends,
    list_parses,
    lists_from_state,
    lists_state,
    rescore,
)

K = 4


@pytest.fixture(scope="module")
def unseen(brackets):
    """Make a parser of trees with a label that the others have never seen."""
    odd = [tw.ConstTree.parse(str(tree).replace("(PP ", "(ODD ")) for tree in brackets[:30]]
    assert odd != brackets[:30]
    return tw.ConstituentParser(lowest_penalty=20.0).fit(odd, odd[:5])


def trees_of(parses):
    return [parse.tree for parse in parses]


def is_odd(tree):
    return "ODD" in tree.labels


def test_lists_of_one_parser_are_its_best_trees_with_their_scores(constituent, brackets):
    for found, parses in zip(
        list_parses([constituent], brackets[42:], K), constituent.kbest(brackets[42:], K), strict=True
    ):
        best = {}
        for parse in parses:
            best.setdefault(parse.tree, parse.score)
        assert found.trees == list(best)
        assert found.scores[:, 0].tolist() == list(best.values())


@pytest.mark.slow_cases
@pytest.mark.parametrize("is_reversed", [False, True])
def test_lists_of_two_parsers_are_the_union_each_tree_once_with_both_scores(
    leftcorner, constituent, brackets, is_reversed
):
    parsers = [constituent, leftcorner] if is_reversed else [leftcorner, constituent]
    lists = list_parses(parsers, brackets[20:], K)
    own = [parser.kbest(brackets[20:], K) for parser in parsers]
    for found, *parses in zip(lists, *own, strict=True):
        assert len(set(found.trees)) == len(found.trees) == len(found.scores)
        union = {tree for each in parses for tree in trees_of(each)}
        assert set(found.trees) <= union
        assert set(trees_of(parses[0])) <= set(found.trees)
        assert np.isfinite(found.scores).all()
        for column, each in enumerate(parses):
            place = {tree: at for at, tree in enumerate(found.trees)}
            for tree, score, _ in each:
                if tree in place:
                    assert found.scores[place[tree], column] == pytest.approx(score, rel=1e-4)
    assert any(len(found.trees) > K for found in lists)


def test_a_span_parser_scores_the_trees_of_others(leftcorner, span, brackets):
    lists = list_parses([span, leftcorner], brackets[40:], K)
    for found, parses in zip(lists, span.kbest(brackets[40:], K), strict=True):
        place = {tree: at for at, tree in enumerate(found.trees)}
        for parse in parses:
            assert found.scores[place[parse.tree], 0] == pytest.approx(parse.score, abs=1e-3)
    assert any(len(found.trees) > K for found in lists)


def test_what_the_first_parser_can_derive_of_the_second_is_all_there(leftcorner, constituent, brackets):
    lists = list_parses([leftcorner, constituent], brackets[42:], K)
    for found, parses in zip(lists, constituent.kbest(brackets[42:], K), strict=True):
        trees = trees_of(parses)
        derived = [
            tree
            for tree, log in zip(trees, leftcorner.log_probabilities(trees), strict=True)
            if log > -np.inf
        ]
        assert set(derived) <= set(found.trees)


def test_what_the_first_parser_cannot_derive_is_left_out(leftcorner, unseen, brackets):
    assert any(is_odd(tree) for parses in unseen.kbest(brackets[42:], K) for tree in trees_of(parses))
    lists = list_parses([leftcorner, unseen], brackets[42:], K)
    assert not any(is_odd(tree) for found in lists for tree in found.trees)


def test_what_the_second_cannot_derive_scores_below_all_that_it_can(leftcorner, unseen, brackets):
    n_unreachable = 0
    for found in list_parses([unseen, leftcorner], brackets[42:], K):
        logs = leftcorner.log_probabilities(found.trees)
        unreached = logs == -np.inf
        n_unreachable += int(unreached.sum())
        np.testing.assert_allclose(found.scores[~unreached, 1], logs[~unreached])
        lowest = 0.0 if unreached.all() else logs[~unreached].min() - UNREACHABLE
        assert (found.scores[unreached, 1] == lowest).all()
    assert n_unreachable


def test_lists_of_another_parser_keep_what_can_be_derived_or_the_gold_tree(leftcorner, unseen, brackets):
    lists, gold = list_parses([unseen], brackets[42:], K), brackets[42:]
    for before, after, tree in zip(lists, keep_derivable(leftcorner, lists, gold), gold, strict=True):
        places = [at for at, each in enumerate(before.trees) if not is_odd(each)]
        assert after.trees == ([before.trees[at] for at in places] or [tree])
        np.testing.assert_array_equal(after.scores, before.scores[places] if places else [[0.0]])
    assert keep_derivable(leftcorner, [], []) == []


def test_lists_of_another_parser_are_scored_anew(leftcorner, unseen, brackets):
    lists = list_parses([unseen], brackets[42:], K)
    for before, after in zip(lists, rescore(leftcorner, lists), strict=True):
        assert after.trees == before.trees
        expected = leftcorner.log_probabilities(before.trees)
        np.testing.assert_allclose(after.scores[:, 0], expected, rtol=1e-6)


def test_trees_whose_tags_differ_from_those_of_the_first_parser_are_left_out(leftcorner):
    tree, other = (tw.ConstTree.parse(f"(TOP (S (NP ({tag} a)) (V b)))") for tag in "NM")
    found = [[[Parse(tree, -1.0)]], [[Parse(other, -0.5), Parse(tree, -2.0)]]]
    (joined,) = join_parses([leftcorner, leftcorner], found)
    assert joined.trees == [tree]


def test_counts_losses_and_f1_are_those_of_parseval(constituent, brackets):
    gold = brackets[42:]
    lists = list_parses([constituent], gold, K)
    counts = count_brackets(gold, lists)
    for tree, found, each in zip(gold, lists, counts, strict=True):
        scores = [tw.metrics.parseval([tree], [other]).f1 for other in found.trees]
        np.testing.assert_allclose(100 * (1 - f1_losses(each)), scores)
    best = [found.trees[f1_losses(each).argmin()] for found, each in zip(lists, counts, strict=True)]
    firsts = [found.trees[0] for found in lists]
    assert corpus_f1(np.stack([each[0] for each in counts])) == pytest.approx(
        tw.metrics.parseval(gold, firsts).f1
    )
    assert best_f1(counts) == pytest.approx(tw.metrics.parseval(gold, best).f1)
    with pytest.raises(InputError, match=r"^2 gold trees for 1 lists; expected equal numbers$"):
        count_brackets(gold[:2], lists[:1])


def test_a_sentence_without_brackets_has_no_loss():
    tree = tw.ConstTree.parse("(TOP (NN cat))")
    (counts,) = count_brackets([tree], [ParseList([tree], np.zeros((1, 1)))])
    assert f1_losses(counts).tolist() == [0.0]
    assert corpus_f1(counts) == 0.0


def test_lists_come_back_as_they_were_kept(constituent, brackets):
    lists = list_parses([constituent], brackets[36:40], K)
    again = lists_from_state(lists_state(lists))
    for one, other in zip(lists, again, strict=True):
        assert one.trees == other.trees
        np.testing.assert_array_equal(one.scores, other.scores)
    assert list_ends(lists).tolist() == np.cumsum([len(each.trees) for each in lists]).tolist()[:-1]
