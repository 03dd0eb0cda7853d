import numpy as np
import pytest

from treewright.data.deptree import DepTree
from treewright.model import load_state, save_state
from treewright.parsing.dependency.parser import Structures
from treewright.rerank.candidates import CandidateLists

HEADS = [[[0, 1, 2], [2, 0, 2]], [[0]], [[2, 0], [0, 1], [0, 0]]]
GOLD = [[0, 1, 1], [0], [0, 1]]


def make_lists():
    heads = [np.array(each, dtype=np.int32) for each in HEADS]
    trees = [
        DepTree([f"w{number}{word}" for word in range(each.shape[1])]) for number, each in enumerate(heads)
    ]
    scores = [10.0 * number - np.arange(len(each)) for number, each in enumerate(heads)]
    probabilities = [0.5 ** np.arange(1, len(each) + 1) for each in heads]
    return CandidateLists(trees, heads, scores, probabilities)


def as_lists(lists):
    """Return all that lists hold, as Python's lists."""
    words = [tree.words for tree in lists.trees]
    heads = [each.tolist() for each in lists.heads]
    return words, heads, lists.indptr.tolist(), lists.scores.tolist(), lists.probabilities.tolist()


@pytest.fixture
def lists():
    return make_lists()


@pytest.fixture
def gold():
    return [np.array(heads, dtype=np.int32) for heads in GOLD]


def test_lists_begin_where_those_before_end(lists):
    assert (len(lists), lists.n_candidates) == (3, 6)
    assert list(lists.spans()) == [(0, 2), (2, 3), (3, 6)]
    assert lists.scores.tolist() == [0, -1, 10, 20, 19, 18]


def test_candidates_are_numbered_through_all_lists(lists):
    candidates = [lists.candidate(number) for number in range(lists.n_candidates)]
    assert [each.heads.tolist() for each in candidates] == [heads for trees in HEADS for heads in trees]
    assert [each.words[0] for each in candidates] == ["w00", "w00", "w10", "w20", "w20", "w20"]


def test_lists_are_made_of_what_a_parser_finds(lists):
    parts = (lists.trees, lists.heads, [lists.scores[a:b] for a, b in lists.spans()])
    found = [Structures(*each, np.ones(len(each[1]))) for each in zip(*parts, strict=True)]
    made = CandidateLists.from_structures(found)
    assert as_lists(made)[:4] == as_lists(lists)[:4]
    assert made.probabilities.tolist() == [1] * 6


def test_selected_lists_keep_their_numbers(lists):
    words, heads, first, scores, probabilities = as_lists(lists.select([2, 0]))
    assert words == [["w20", "w21"], ["w00", "w01", "w02"]]
    assert heads == [HEADS[2], HEADS[0]]
    assert first == [0, 3, 5]
    assert scores == [20, 19, 18, 0, -1]
    assert probabilities == [0.5, 0.25, 0.125, 0.5, 0.25]


def test_no_lists_can_be_selected(lists):
    nothing = lists.select([])
    assert (len(nothing), nothing.n_candidates, list(nothing.spans())) == (0, 0, [])


def test_joined_parts_are_the_whole(lists):
    parts = [lists.select([0]), lists.select([]), lists.select([1, 2])]
    assert as_lists(CandidateLists.joined(parts)) == as_lists(lists)


def test_right_words_are_counted_for_each_candidate(lists, gold):
    assert lists.n_right(gold).tolist() == [2, 0, 1, 0, 2, 1]


def test_gold_trees_are_added_where_they_are_missing(lists, gold):
    found = lists.with_gold(gold)
    assert found.n_missing == 1
    assert [each.tolist() for each in found.lists.heads] == [[*HEADS[0], GOLD[0]], *HEADS[1:]]
    assert found.right.tolist() == [2, 3, 5]


def test_the_numbers_of_gold_trees_lead_to_them(lists, gold):
    found = lists.with_gold(gold)
    assert [found.lists.candidate(number).heads.tolist() for number in found.right] == GOLD


def test_added_trees_have_the_numbers_of_the_last_of_their_list(lists, gold):
    found = lists.with_gold(gold).lists
    assert found.scores.tolist() == [0, -1, -1, 10, 20, 19, 18]
    assert found.probabilities.tolist() == [0.5, 0.25, 0.25, 0.5, 0.5, 0.25, 0.125]


def test_adding_gold_trees_does_not_change_the_lists(lists, gold):
    lists.with_gold(gold)
    assert as_lists(lists) == as_lists(make_lists())


def test_an_empty_sentence_has_its_gold_tree():
    empty = CandidateLists([DepTree([])], [np.zeros((1, 0), np.int32)], [np.zeros(1)], [np.ones(1)])
    found = empty.with_gold([np.zeros(0, np.int32)])
    assert (found.n_missing, found.right.tolist(), found.lists.n_candidates) == (0, [0], 1)


def test_saved_lists_are_the_same_again(lists, tmp_path):
    save_state(lists.get_state(), tmp_path / "lists")
    again = CandidateLists.from_state(load_state(tmp_path / "lists"), lists.trees)
    assert as_lists(again) == as_lists(lists)
    assert {each.dtype for each in again.heads} == {np.dtype(np.int32)}


def test_the_best_candidate_can_be_the_right_one_and_nothing_is_added():
    heads = [np.array([[0, 1, 1], [2, 0, 2], [2, 0, 1]], dtype=np.int32), np.array([[0]], dtype=np.int32)]
    trees = [DepTree(["a", "b", "c"]), DepTree(["d"])]
    numbers = [np.arange(3.0), np.zeros(1)]
    training = CandidateLists(trees, heads, numbers, numbers).with_best(
        [np.array([3, 0, 2], dtype=np.int32), np.array([0], dtype=np.int32)]
    )
    assert training.right.tolist() == [1, 3]
    assert training.n_missing == 1
    assert training.lists.n_candidates == 4
