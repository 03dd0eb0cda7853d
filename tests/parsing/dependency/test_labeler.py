import numpy as np
import pytest

import treewright as tw
from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.parsing.dependency.features import Encoder
from treewright.parsing.dependency.labeler import Labeler
from treewright.progress import messages_to

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

SMALL = {"epochs": 3, "table_bits": 16}


@pytest.fixture(scope="module")
def trees():
    return tw.make_treebank(n_sentences=60, random_state=0).dependencies


class Alone:
    """A labeler with an encoder of its own."""

    def __init__(self, trees, **options):
        self.encoder = Encoder.from_trees(trees)
        self.labeler = Labeler(**SMALL, **options).fit(trees, self.encoder)

    def predict(self, trees):
        return self.labeler.predict(trees, self.encoder.encode(trees))


@pytest.fixture(scope="module")
def labeler(trees):
    return Alone(trees[:40])


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
    corpus = labeler.encoder.encode([DepTree(tree.words, **columns(tree)) for tree in trees])
    assert (corpus.heads == -1).all()
    assert labeler.labeler.predict(trees, corpus) == labeler.predict(trees)


def columns(tree):
    return {"lemmas": tree.lemmas, "upos": tree.upos, "xpos": tree.xpos, "feats": tree.feats}


def test_relations_of_the_input_are_not_looked_at(trees, labeler):
    bare = [tree.with_heads(tree.heads, ["_"] * len(tree)) for tree in trees]
    assert labeler.predict(bare) == labeler.predict(trees)


def test_the_same_seed_gives_the_same_weights(trees, labeler):
    again, other = Alone(trees[:40]).labeler, Alone(trees[:40], random_state=1).labeler
    assert np.array_equal(again.weights_, labeler.labeler.weights_)
    assert not np.array_equal(other.weights_, labeler.labeler.weights_)


def test_a_loaded_labeler_predicts_the_same(trees, labeler, tmp_path):
    labeler.labeler.save(tmp_path / "labeler")
    loaded = tw.load(tmp_path / "labeler")
    assert loaded.predict(trees, labeler.encoder.encode(trees)) == labeler.predict(trees)
    assert (loaded.epochs, loaded.table_bits, loaded.random_state) == (3, 16, 0)


def test_only_relations_seen_with_both_tags_are_given():
    trees = [
        sentence("a/D b/N c/V", [2, 3, 0], ["det", "nsubj", "root"]),
        sentence("c/V a/D b/N", [0, 3, 1], ["root", "det", "obj"]),
    ]
    labeler = Alone(trees)
    assert labeler.predict([sentence("b/N c/V b/N", [2, 0, 2])]) == [["nsubj", "root", "obj"]]
    both = {"nsubj", "obj"}
    [[of_known_tag, _, of_unknown_tag, _]] = labeler.predict([sentence("b/N a/D x/X c/V", [2, 4, 4, 0])])
    assert of_known_tag in both
    assert of_unknown_tag in both | {"det", "root"}


def test_progress_is_told_after_each_epoch(trees):
    lines = []
    with messages_to(lines.append):
        Labeler(epochs=2, table_bits=12).fit(trees[:5], Encoder.from_trees(trees[:5]))
    assert [line.split(":")[0] for line in lines] == ["relations, epoch 1/2", "relations, epoch 2/2"]


def test_words_without_a_head_are_refused(trees, labeler):
    with pytest.raises(InputError, match="sentence 2 has words without a head; expected complete trees"):
        labeler.predict([trees[0], DepTree(["a"])])


def test_fitting_on_nothing_is_refused():
    with pytest.raises(InputError, match="no training sentences with words"):
        Labeler().fit([], Encoder.from_trees([]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs is 0; expected an integer of at least 1"),
        ({"table_bits": 40}, "table_bits is 40; expected an integer from 10 to 28"),
        ({"random_state": -1}, "random_state is -1; expected an integer of at least 0"),
    ],
)
def test_options_out_of_range_are_refused(trees, options, message):
    with pytest.raises(InputError, match=message):
        Labeler(**options).fit(trees, Encoder.from_trees(trees))
