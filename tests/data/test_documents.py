import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treewright as tw
from treewright.data.documents import deal_folds, resolve_fold_by


def make_trees(comments):
    return [tw.DepTree(["a"], [0], comments=each) for each in comments]


def documents_of(folds, names):
    """Return the set of names in each fold."""
    return [{names[number] for number in part.tolist()} for part in folds.parts]


def assert_apart(folds, names):
    found = documents_of(folds, names)
    assert sum(map(len, found)) == len(set(names))
    assert sorted(np.concatenate(folds.parts).tolist()) == list(range(len(names)))


def test_documents_begin_at_their_mark():
    names = [number // 3 for number in range(30)]
    trees = make_trees([[f"# newdoc id = {number}"] if number % 3 == 0 else [] for number in range(30)])
    folds = deal_folds(trees, 5)
    assert_apart(folds, names)
    assert folds.description == "5 folds of 10 documents (by # newdoc)"


@pytest.mark.parametrize("separator", ["-", "_", ".", "/", ":"])
def test_identifiers_name_documents_up_to_their_last_separator(separator):
    names = [f"web-log_{number // 4}" for number in range(40)]
    trees = make_trees([[f"# sent_id = {name}{separator}s{at}"] for at, name in enumerate(names)])
    folds = deal_folds(trees, 4)
    assert_apart(folds, names)
    assert folds.description == "4 folds of 10 documents (by sent_id)"


def test_without_documents_neighbours_stay_together():
    folds = deal_folds(make_trees([[f"# sent_id = train-{at}"] for at in range(200)]), 5)
    assert_apart(folds, [number // 4 for number in range(200)])
    assert folds.description == "5 folds of blocks of 4 consecutive sentences"


def test_documents_of_very_different_sizes_are_not_used():
    trees = make_trees([["# newdoc"] if number in (0, 90, 95) else [] for number in range(100)])
    assert deal_folds(trees, 3).description == "3 folds of blocks of 3 consecutive sentences"


def test_few_sentences_are_dealt_out_one_by_one():
    folds = deal_folds(make_trees([[] for _ in range(7)]), 3)
    assert sorted(map(len, folds.parts)) == [2, 2, 3]
    assert folds.description == "3 folds of sentences"


def test_the_seed_decides():
    trees = make_trees([[] for _ in range(100)])
    one, other, again = (deal_folds(trees, 2, random_state=seed).parts[0].tolist() for seed in (0, 1, 0))
    assert one == again
    assert one != other


@given(st.integers(2, 60), st.integers(2, 6), st.integers(0, 5))
def test_every_sentence_is_in_one_fold_and_folds_are_of_similar_size(n_sentences, n_folds, seed):
    trees = make_trees([[] for _ in range(max(n_sentences, n_folds))])
    parts = deal_folds(trees, n_folds, random_state=seed).parts
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(trees)))
    assert min(map(len, parts)) > 0
    assert max(map(len, parts)) - min(map(len, parts)) <= max(1, len(trees) // 10)


def test_folds_of_blocks_hold_a_block_of_each_document():
    names = [number // 20 for number in range(60)]
    trees = make_trees([[f"# sent_id = text{name}-{at}"] for at, name in enumerate(names)])
    folds = deal_folds(trees, 5, by="block")
    assert folds.description == "5 folds of blocks within 3 documents (by sent_id)"
    assert sorted(np.concatenate(folds.parts).tolist()) == list(range(60))
    for part in folds.parts:
        assert [names[at] for at in part.tolist()] == [0] * 4 + [1] * 4 + [2] * 4
        assert (np.diff(part.reshape(3, 4), axis=1) == 1).all()


def test_auto_makes_folds_as_the_dev_set_is_divided_from_the_training_set():
    train = make_trees([[f"# newdoc id = text{at // 4}"] if at % 4 == 0 else [] for at in range(20)])
    known = make_trees([[f"# newdoc id = text{at}"] for at in range(5)])
    new = make_trees([[f"# newdoc id = other{at}"] for at in range(5)])
    assert resolve_fold_by("auto", train, known) == "block"
    assert resolve_fold_by("auto", train, new) == "document"
    assert resolve_fold_by("auto", train, None) == "document"
    assert resolve_fold_by("document", train, known) == "document"
    plain = make_trees([[]] * 4)
    assert resolve_fold_by("auto", plain, plain) == "document"
