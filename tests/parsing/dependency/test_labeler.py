import numpy as np
import pytest

import treewright as tw
from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.parsing.dependency.features import Encoder
from treewright.parsing.dependency.labeler import Labeler
from treewright.persist import load_state, save_state

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

SMALL = {"epochs": 3, "table_bits": 16}


@pytest.fixture(scope="module")
def trees():
    return tw.make_treebank(n_sentences=60, random_state=0).dependencies


@pytest.fixture(scope="module")
def labeler(trees):
    return Labeler(**SMALL).fit(trees[:40], Encoder.from_trees(trees[:40]))


def share_right(trees, predicted):
    pairs = [
        (gold, label)
        for tree, labels in zip(trees, predicted, strict=True)
        for gold, label in zip(tree.deprels, labels, strict=True)
    ]
    return np.mean([gold == label for gold, label in pairs])


def sentence(text, heads, deprels=None):
    """Make a tree of words written as word/TAG."""
    words, tags = zip(*(token.split("/") for token in text.split()), strict=True)
    return DepTree(words, heads, deprels, upos=tags)


def test_relations_of_a_treebank_are_learnt(trees, labeler):
    assert share_right(trees[:40], labeler.predict(trees[:40])) > 0.99
    assert share_right(trees[40:], labeler.predict(trees[40:])) > 0.9


def test_each_word_gets_a_relation_and_empty_input_none(trees, labeler):
    assert [len(labels) for labels in labeler.predict(trees)] == [len(tree) for tree in trees]
    assert labeler.predict([]) == []
    assert labeler.predict([DepTree([])]) == [[]]


def test_a_sentence_gets_the_same_relations_alone_and_among_others(trees, labeler):
    assert [labeler.predict([tree])[0] for tree in trees[40:45]] == labeler.predict(trees[40:45])


def test_heads_come_from_the_trees_and_not_from_the_corpus(trees, labeler):
    corpus = labeler.encoder_.encode([DepTree(tree.words, **columns(tree)) for tree in trees])
    assert (corpus.heads == -1).all()
    assert labeler.predict(trees, corpus) == labeler.predict(trees)


def columns(tree):
    return {"lemmas": tree.lemmas, "upos": tree.upos, "xpos": tree.xpos, "feats": tree.feats}


def test_relations_of_the_input_are_not_looked_at(trees, labeler):
    bare = [tree.with_heads(tree.heads, ["_"] * len(tree)) for tree in trees]
    assert labeler.predict(bare) == labeler.predict(trees)


def test_the_same_seed_gives_the_same_weights(trees, labeler):
    again = Labeler(**SMALL).fit(trees[:40], labeler.encoder_)
    other = Labeler(**SMALL, random_state=1).fit(trees[:40], labeler.encoder_)
    assert np.array_equal(again.weights_, labeler.weights_)
    assert not np.array_equal(other.weights_, labeler.weights_)


def test_a_loaded_labeler_predicts_the_same(trees, labeler, tmp_path):
    save_state(labeler.get_state(), tmp_path / "labeler")
    loaded = Labeler.from_state(load_state(tmp_path / "labeler"))
    assert loaded.predict(trees) == labeler.predict(trees)
    assert (loaded.epochs, loaded.table_bits, loaded.random_state) == (3, 16, 0)


def test_an_encoder_kept_elsewhere_can_be_given_back(trees, labeler):
    state = labeler.get_state(with_encoder=False)
    assert not state.parts
    assert Labeler.from_state(state, labeler.encoder_).predict(trees) == labeler.predict(trees)
    alone = Labeler.from_state(state)
    assert alone.predict(trees, labeler.encoder_.encode(trees)) == labeler.predict(trees)
    with pytest.raises(InputError, match="no encoder; expected one in from_state, or a corpus"):
        alone.predict(trees)


def test_only_relations_seen_with_both_tags_are_given():
    trees = [
        sentence("a/D b/N c/V", [2, 3, 0], ["det", "nsubj", "root"]),
        sentence("c/V a/D b/N", [0, 3, 1], ["root", "det", "obj"]),
    ]
    labeler = Labeler(**SMALL).fit(trees, Encoder.from_trees(trees))
    assert labeler.predict([sentence("b/N c/V b/N", [2, 0, 2])]) == [["nsubj", "root", "obj"]]
    both = {"nsubj", "obj"}
    [[of_known_tag, _, of_unknown_tag, _]] = labeler.predict([sentence("b/N a/D x/X c/V", [2, 4, 4, 0])])
    assert of_known_tag in both
    assert of_unknown_tag in both | {"det", "root"}


def test_progress_is_told_after_each_epoch(trees):
    lines = []
    Labeler(epochs=2, table_bits=12).fit(trees[:5], Encoder.from_trees(trees[:5]), progress=lines.append)
    assert [line.split(":")[0] for line in lines] == ["labels, epoch 1 of 2", "labels, epoch 2 of 2"]


def test_words_without_a_head_are_refused(trees, labeler):
    with pytest.raises(InputError, match="sentence 2 has words without a head; expected whole trees"):
        labeler.predict([trees[0], DepTree(["a"])])


def test_fitting_on_nothing_is_refused():
    with pytest.raises(InputError, match="no training sentences with words were given"):
        Labeler().fit([], Encoder.from_trees([]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs is 0; expected an integer of at least 1"),
        ({"table_bits": 40}, "table_bits is 40; expected a number from 10 to 28"),
        ({"random_state": -1}, "random_state is -1; expected an integer of at least 0"),
    ],
)
def test_options_out_of_range_are_refused(trees, options, message):
    with pytest.raises(InputError, match=message):
        Labeler(**options).fit(trees, Encoder.from_trees(trees))
