import pytest
from hypothesis import given
from hypothesis import strategies as st

from treewright.model import load_state, save_state
from treewright.tagging.lemmas import Script
from treewright.tagging.multiword import MultiwordSplitter, Splitting, make_splitting

NAMES = ["Anna", "Peter", "Maria", "Jonas", "Erik", "Olga", "Karl", "Lena", "Paul", "Nina", "Hugo", "Vera"]


@pytest.fixture(scope="module")
def splitter():
    counts = {name: {(name,): 5} for name in NAMES}
    counts |= {f"{name}'s": {(name, "'s"): 2} for name in NAMES}
    counts |= {"zum": {("zu", "dem"): 9}, "Zum": {("Zu", "dem"): 3}, "its": {("its",): 3, ("it", "s"): 2}}
    return MultiwordSplitter().fit(counts, {})


@pytest.mark.parametrize(
    ("form", "words", "splitting"),
    [
        ("don't", ("do", "n't"), Splitting((2,))),
        ("Anna's", ("Anna", "'s"), Splitting((-2,))),
        ("στην", ("σ", "την"), Splitting((1,))),
        ("zum", ("zu", "dem"), Splitting((), 0, Script("lower", 0, "", 1, ""), ("dem",))),
        ("dáselo", ("da", "se", "lo"), Splitting((), 1, Script("lower", 2, "", 2, ""), ("da", "lo"))),
    ],
)
def test_a_splitting_keeps_most_of_the_token(form, words, splitting):
    assert make_splitting(form, words) == splitting
    assert splitting.apply(form) == words


@given(
    st.text("abcXY'", min_size=1, max_size=8), st.lists(st.text("abcx", min_size=1, max_size=4), min_size=2)
)
def test_a_splitting_makes_the_words_in_lower_case(form, words):
    made = make_splitting(form, tuple(words)).apply(form)
    assert [word.lower() for word in made] == words


def test_cuts_keep_the_case_of_the_token():
    assert make_splitting("don't", ("do", "n't")).apply("DON'T") == ("DO", "N'T")


def test_a_token_that_is_too_short_to_be_cut_is_one_word():
    assert Splitting((-2,)).apply("'s") == ("'s",)
    assert Splitting((3,)).apply("a") == ("a",)


def test_seen_tokens_become_their_most_frequent_words(splitter):
    words = splitter.split(["zum", "Zum", "its", "Anna's", "Anna"])
    assert words["zum"] == ("zu", "dem")
    assert words["Zum"] == ("Zu", "dem")
    assert words["its"] is None
    assert words["Anna's"] == ("Anna", "'s")
    assert words["Anna"] is None


def test_new_tokens_are_split_like_those_with_the_same_ending(splitter):
    assert splitter.split(["Clara's"])["Clara's"] == ("Clara", "'s")
    assert splitter.split(["Clara"])["Clara"] is None


def test_new_tokens_are_split_by_what_their_stem_is():
    """Turkish-like: a copula after a noun is a word, the past tense of a verb is not."""
    letters = "bcdfghklmnprstvyz"
    nouns = [f"{a}{b}e{c}" for a in letters[:6] for b in "aou" for c in letters[:4]]
    verbs = [f"{a}{b}e{c}" for a in letters[6:12] for b in "aou" for c in letters[:4]]
    endings = [f"{c}i" for c in letters] + [f"{c}u" for c in letters] + [f"{c}um" for c in letters]
    tags = dict.fromkeys(nouns, "NOUN") | dict.fromkeys(verbs, "VERB")
    counts = {}
    for number, ending in enumerate(endings * 3):
        noun, verb = nouns[number * 7 % 60], verbs[number * 7 % 60]
        counts[noun + ending] = {(noun, ending): 1}
        counts[verb + ending] = {(verb + ending,): 1}
    splitter = MultiwordSplitter().fit(counts, tags)
    new_nouns, new_verbs = ([stem + "di" for stem in stems[60:]] for stems in (nouns, verbs))
    words = splitter.split(new_nouns + new_verbs)
    assert [words[form] for form in new_nouns] == [(form[:-2], "di") for form in new_nouns]
    assert [words[form] for form in new_verbs] == [None] * len(new_verbs)


def test_a_splitter_comes_back_from_a_file(splitter, tmp_path):
    save_state(splitter.get_state(), tmp_path / "splitter")
    loaded = MultiwordSplitter.from_state(load_state(tmp_path / "splitter"))
    forms = [*NAMES, "Clara's", "zum", "its", "ZUM"]
    assert loaded.splittings_ == splitter.splittings_
    assert {form: loaded.split(forms)[form] for form in forms} == {
        form: splitter.split(forms)[form] for form in forms
    }


def test_a_splitter_remembers_no_more_than_so_many_tokens(splitter, monkeypatch):
    monkeypatch.setattr("treewright.tagging.multiword.MAX_KNOWN", 10)
    for number in range(100):
        assert splitter.split([f"w{number}", "zum"])["zum"] == ("zu", "dem")
    assert len(splitter._known) <= 10
