import numpy as np
import pytest

import treewright as tw
from treewright.data.deptree import DepTree, ExtraLine
from treewright.errors import InputError
from treewright.model import load_state
from treewright.progress import messages_to
from treewright.tagging.tagger import Label, Tagger, TaggingScore, compare_tags, jackknife, label_pieces

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

SMALL = {"epochs": 3}


@pytest.fixture(scope="module")
def trees():
    return tw.make_treebank(n_sentences=120, random_state=0).dependencies


@pytest.fixture(scope="module")
def tagger(trees):
    return Tagger(**SMALL).fit(trees[:90])


def tags_of(trees):
    return [(tree.upos, tree.xpos, tree.feats, tree.lemmas) for tree in trees]


def bare(trees):
    return [DepTree(tree.words) for tree in trees]


def sentence(text, **columns):
    """Make a sentence of words written as word/TAG."""
    words, tags = zip(*(token.split("/") for token in text.split()), strict=True)
    return DepTree(words, upos=tags, **columns)


def test_tags_and_lemmas_of_a_treebank_are_learnt(trees, tagger):
    seen, unseen = tagger.score(trees[:90]), tagger.score(trees[90:])
    assert min(seen.upos, seen.xpos, seen.feats, seen.lemma) > 97
    assert min(unseen.upos, unseen.xpos, unseen.feats, unseen.lemma) > 85


def test_nothing_but_the_words_is_read(trees, tagger):
    columns = ("upos", "xpos", "feats", "lemmas")
    garbage = [tree.with_tags(**{name: ["?"] * len(tree) for name in columns}) for tree in trees]
    expected = tags_of(tagger.predict(trees))
    assert tags_of(tagger.predict(garbage)) == expected
    assert tags_of(tagger.predict(bare(trees))) == expected


def test_all_else_in_a_tree_is_kept(tagger):
    tree = DepTree(
        ["vámonos", "ya"],
        [0, 1],
        ["root", "advmod"],
        deps=["0:root", "1:advmod"],
        misc=["SpaceAfter=No", "_"],
        comments=["# sent_id = 1"],
        extra_lines=[ExtraLine(0, "1-2\tx\t_\t_\t_\t_\t_\t_\t_\t_")],
        columns={"PHEAD": ["0", "1"]},
    )
    [tagged] = tagger.predict([tree])
    assert tagged.with_tags(upos=tree.upos, xpos=tree.xpos, feats=tree.feats, lemmas=tree.lemmas) == tree
    assert tagged.upos != tree.upos
    assert tree.upos == ["_", "_"]


def test_odd_sentences_get_tags_too(tagger):
    words = [[], ["a"], ["漢字", "🙂", "\u0301", "\ud800", ""], ["İstanbul"], ["x" * 500]]
    tagged = tagger.predict([DepTree(each) for each in words])
    assert [tree.words for tree in tagged] == words
    assert [len(tree.upos) for tree in tagged] == [0, 1, 5, 1, 1]
    assert {tag for tree in tagged for tag in tree.upos} <= {label.upos for label in tagger.labels_}
    assert tagger.predict([]) == []


def test_a_sentence_gets_the_same_tags_alone_and_among_others(trees, tagger):
    together = tagger.predict(trees[90:])
    assert [tagger.predict([tree])[0] for tree in trees[90:]] == together


def test_batches_do_not_show(trees, tagger, monkeypatch):
    expected = tagger.predict(trees)
    monkeypatch.setattr("treewright.tagging.tagger.TAGGED_AT_A_TIME", 7)
    assert tagger.predict(trees) == expected


def test_the_same_seed_gives_the_same_tagger(trees, tagger):
    again, other = Tagger(**SMALL).fit(trees[:90]), Tagger(**SMALL, random_state=1).fit(trees[:90])
    for name, array in tagger.get_state().arrays.items():
        assert np.array_equal(array, again.get_state().arrays[name])
    assert not np.array_equal(other.classifier_.table_.weights, tagger.classifier_.table_.weights)


def test_tags_that_depend_on_the_word_before_are_learnt():
    pairs = ["to/PART can/VERB", "the/DET can/NOUN"]
    tagger = Tagger().fit([sentence(pair) for pair in pairs] * 5)
    assert [tree.upos for tree in tagger.predict(bare([sentence(pair) for pair in pairs]))] == [
        ["PART", "VERB"],
        ["DET", "NOUN"],
    ]


@pytest.mark.parametrize("name", ["upos", "xpos", "feats", "lemmas"])
def test_columns_that_were_empty_in_training_stay_empty(trees, name):
    cleared = [tree.with_tags(**{name: ["_"] * len(tree)}) for tree in trees[:30]]
    tagged = Tagger(**SMALL).fit(cleared).predict(trees[30:40])
    assert {value for tree in tagged for value in getattr(tree, name)} == {"_"}
    others = {"upos", "xpos", "feats", "lemmas"} - {name}
    assert all(any(value != "_" for tree in tagged for value in getattr(tree, other)) for other in others)


def test_a_treebank_without_any_tags_can_be_learnt_from():
    tagger = Tagger(**SMALL).fit([DepTree(["a", "b"])])
    assert tags_of(tagger.predict([DepTree(["c"])])) == [(["_"], ["_"], ["_"], ["_"])]


def test_a_loaded_tagger_predicts_the_same(trees, tagger, tmp_path):
    tagger.save(tmp_path / "tagger")
    loaded = Tagger.from_state(load_state(tmp_path / "tagger"))
    assert loaded.predict(trees) == tagger.predict(trees)
    assert (loaded.epochs, loaded.random_state, loaded.labels_) == (3, 0, tagger.labels_)


def test_a_tagger_without_lemmas_can_be_saved(tmp_path):
    tagger = Tagger(**SMALL).fit([sentence("a/X b/Y")])
    tagger.save(tmp_path / "tagger")
    loaded = Tagger.from_state(load_state(tmp_path / "tagger"))
    assert loaded.lemmatizer_ is None
    assert loaded.predict([DepTree(["a"])])[0].lemmas == ["_"]


def test_labels_share_the_pieces_that_are_equal():
    labels = [Label("N", "NN", "Case=A|Number=B"), Label("N", "_", "Number=B"), Label("V", "NN", "_")]
    first, second, third = map(set, label_pieces(labels))
    assert (len(first), len(second), len(third)) == (5, 3, 3)
    assert len(first & second) == 2
    assert len(first & third) == 1
    assert not second & third


def test_progress_is_told_after_each_step(trees):
    lines = []
    with messages_to(lines.append):
        Tagger(epochs=2, runs=1).fit(trees[:20], trees[20:25])
        Tagger(epochs=1, runs=2).fit(trees[:20])
    starts = ["tags, epoch 1/2", "tags, epoch 2/2", "lemmas", "dev"]
    starts += ["tags, run 1/2, epoch 1/1", "tags, run 2/2, epoch 1/1", "lemmas"]
    assert [line.split(":")[0] for line in lines] == starts


def test_scores_are_percentages_of_words():
    gold = [DepTree(["a", "b"], upos=["X", "Y"], xpos=["x", "y"], feats=["F=1", "_"], lemmas=["a", "_"])]
    found = [DepTree(["a", "b"], upos=["X", "Y"], xpos=["x", "z"], feats=["_", "_"], lemmas=["a", "c"])]
    score = compare_tags(gold, found)
    assert score == TaggingScore(100, 50, 50, 0, 100, 2)
    assert str(score) == "UPOS 100.00, XPOS 50.00, features 50.00, all tags 0.00, lemma 100.00 (2 words)"
    assert compare_tags([], []) == TaggingScore(0, 0, 0, 0, 0, 0)


def test_jackknifing_does_not_depend_on_the_number_of_jobs(trees):
    options = {"folds": 3, "random_state": 1, "tagger": Tagger(**SMALL)}
    alone = jackknife(trees[:30], n_jobs=1, **options)
    assert alone == jackknife(trees[:30], n_jobs=2, **options)
    assert alone != jackknife(trees[:30], n_jobs=1, **{**options, "random_state": 2})


def test_no_sentence_is_tagged_by_a_tagger_that_saw_it():
    trees = [sentence(f"w{number}/T{number}") for number in range(12)]
    tagged = jackknife(trees, folds=4, tagger=Tagger(**SMALL))
    assert [tree.words for tree in tagged] == [tree.words for tree in trees]
    assert all(tree.upos != found.upos for tree, found in zip(trees, tagged, strict=True))


def test_jackknifed_trees_keep_their_heads_and_are_nearly_right(trees):
    tagged = jackknife(trees, folds=2, tagger=Tagger(**SMALL))
    for tree, found in zip(trees, tagged, strict=True):
        assert found.with_tags(upos=tree.upos, xpos=tree.xpos, feats=tree.feats, lemmas=tree.lemmas) == tree
    assert 80 < compare_tags(trees, tagged).upos < 100


def test_too_few_sentences_for_the_folds_are_refused(trees):
    with pytest.raises(InputError, match="3 sentences for 5 folds; expected at least one sentence per fold"):
        jackknife(trees[:3], folds=5)
    with pytest.raises(InputError, match="folds is 1; expected an integer of at least 2"):
        jackknife(trees[:3], folds=1)


@pytest.mark.parametrize("trees", [[], [DepTree([])]])
def test_fitting_on_nothing_is_refused(trees):
    with pytest.raises(InputError, match="no training sentences with words; expected at least one"):
        Tagger().fit(trees)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs is 0; expected an integer of at least 1"),
        ({"random_state": -1}, "random_state is -1; expected an integer of at least 0"),
    ],
)
def test_options_out_of_range_are_refused(trees, options, message):
    with pytest.raises(InputError, match=message):
        Tagger(**options).fit(trees)


def test_words_pairs_and_trees_are_tagged_alike(trees, tagger):
    expected = tags_of(tagger.predict(bare(trees[:3])))
    assert tags_of(tagger.predict([tree.words for tree in trees[:3]])) == expected
    assert tags_of(tagger.predict([[(word, "?") for word in tree.words] for tree in trees[:3]])) == expected
    assert [tuple(tags) for tags in tagger.tag([tree.words for tree in trees[:3]])] == expected


def test_gold_tags_are_those_of_trees(tagger):
    with pytest.raises(InputError, match=r"^sentence 1 is of type list; expected a DepTree$"):
        tagger.score([[("The", "DET")]])


@pytest.mark.parametrize("door", ["predict", "tag", "annotate"])
@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ("The cat", "the sentences are the text 'The cat', but a Tagger reads words (a Pipeline reads text)"),
        (["The", "cat"], "one sentence was given, ['The', 'cat']; expected a list of sentences: [[...]]"),
        (DepTree(["a"]), "one tree was given, DepTree('a', n=1); expected a list of sentences: [tree]"),
        ([["a"], None], "sentence 2 is of type NoneType; expected a tree, a list of words"),
        (3, "the sentences are of type int; expected a list of sentences"),
    ],
)
def test_what_is_no_list_of_sentences_is_refused(tagger, door, sentences, message):
    with pytest.raises(InputError) as caught:
        getattr(tagger, door)(sentences)
    assert str(caught.value).startswith(message)
