import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treewright.data.deptree import DepTree
from treewright.model import load_state, save_state
from treewright.native.tagging.classifier import EncodedText, Lexicon
from treewright.tagging.classifier import word_attributes
from treewright.tagging.lemmas import Lemmatizer, Script, longest_common, make_script
from treewright.tagging.tagger import Tagger

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

NO_WORDS = Lexicon(np.zeros(0, np.uint64), np.zeros(0, np.int32))
VERBS = ["walk", "talk", "jump", "look", "wait", "play", "call", "show", "open", "turn", "clean"]
NOUNS = ["cat", "dog", "tree", "house", "river", "stone", "bird", "table", "chair"]


def make_text(words):
    """Make one sentence of words whose labels may be 0 or 1."""
    types = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return EncodedText(
        np.array([0, len(words)]),
        np.array([types[word] for word in words], np.int32),
        word_attributes(list(types), NO_WORDS),
        np.array([[1, 1, 1], [2, 2, 2]], np.uint64),
    )


@pytest.fixture(scope="module")
def lemmatizer():
    words = [verb + "ed" for verb in VERBS] + [noun + "s" for noun in NOUNS] + VERBS + NOUNS
    labels = np.array([0] * len(VERBS) + [1] * len(NOUNS) + [0] * len(VERBS) + [1] * len(NOUNS), np.int32)
    return Lemmatizer().fit(make_text(words), labels, words, [*VERBS, *NOUNS, *VERBS, *NOUNS])


def lemmas_of(lemmatizer, words, labels):
    return lemmatizer.predict(make_text(words), np.array(labels, np.int32), words)


@pytest.mark.parametrize(
    ("word", "lemma", "script"),
    [
        ("walked", "walk", Script("lower", 0, "", 2, "")),
        ("gesagt", "sagen", Script("lower", 2, "", 1, "en")),
        ("London", "London", Script("keep", 0, "", 0, "")),
        ("LONDON", "London", Script("title", 0, "", 0, "")),
        ("usa", "USA", Script("upper", 0, "", 0, "")),
        ("Was", "be", Script("drop", 0, "", 0, "be")),
        ("", "x", Script("drop", 0, "", 0, "x")),
    ],
)
def test_a_script_keeps_most_of_the_word(word, lemma, script):
    assert make_script(word, lemma) == script


@given(st.text(max_size=12), st.text(max_size=12))
def test_a_script_turns_its_word_into_its_lemma(word, lemma):
    assert make_script(word, lemma).apply(word) == lemma


@given(st.text("abA", max_size=7), st.text("abA", max_size=7))
def test_the_longest_common_substring_is_found(a, b):
    at, in_b, size = longest_common(a, b)
    shared = {a[i:j] for i in range(len(a)) for j in range(i + 1, len(a) + 1) if a[i:j] in b}
    assert a[at : at + size] == b[in_b : in_b + size]
    assert size == max(map(len, shared), default=0)


def test_a_script_can_be_applied_to_words_that_are_too_short():
    assert Script("lower", 2, "x", 3, "y").apply("Abc") == "xy"
    assert Script("lower", 0, "", 3, "").apply("") == ""


def test_lemmas_of_known_and_unknown_words_are_found(lemmatizer):
    assert lemmas_of(lemmatizer, ["talked", "dogs", "dog", "play"], [0, 1, 1, 0]) == [
        "talk",
        "dog",
        "dog",
        "play",
    ]
    assert lemmas_of(lemmatizer, ["Pushed", "rivets", "crown"], [0, 1, 1]) == ["push", "rivet", "crown"]


def test_the_most_frequent_lemma_of_a_word_with_a_label_is_learnt():
    words = ["saw"] * 5
    model = Lemmatizer().fit(
        make_text(words), np.array([0, 0, 0, 1, 1], np.int32), words, ["see", "saw", "see", "saw", "_"]
    )
    assert lemmas_of(model, ["saw", "saw"], [0, 1]) == ["see", "saw"]


def test_unknown_lemmas_are_not_learnt_from():
    words = ["a", "b", "c"]
    model = Lemmatizer().fit(make_text(words), np.zeros(3, np.int32), words, ["_", "b", "_"])
    assert model.scripts_ == [Script("lower", 0, "", 0, "")]
    assert lemmas_of(model, words, [0, 1, 0]) == words


def test_no_words_have_no_lemmas(lemmatizer):
    assert lemmas_of(lemmatizer, [], []) == []


def test_a_loaded_lemmatizer_predicts_the_same(lemmatizer, tmp_path):
    save_state(lemmatizer.get_state(), tmp_path / "lemmas")
    loaded = Lemmatizer.from_state(load_state(tmp_path / "lemmas"))
    words = ["talked", "bushes", "Xyz", "ß"] * 2
    labels = [0, 0, 0, 0, 1, 1, 1, 1]
    assert lemmas_of(loaded, words, labels) == lemmas_of(lemmatizer, words, labels)
    assert loaded.scripts_ == lemmatizer.scripts_


def test_a_script_leaves_no_less_of_a_word_than_in_training():
    script = Script("lower", 0, "", 3, "e", 2)
    assert script.apply("Using") == "use"
    assert script.apply("sing") == "sing"
    words = ["making", "taking", "using", "baking", "riding", "hiding"]
    tree = DepTree(words, upos=["VERB"] * 6, lemmas=[word[:-3] + "e" for word in words])
    tagger = Tagger().fit([tree] * 3)
    assert [script.shortest for script in tagger.lemmatizer_.scripts_] == [2]
    assert tagger.tag([["sing", "hoping"]])[0].lemmas == ["sing", "hope"]
