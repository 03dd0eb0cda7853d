"""The space of fragments of tagged sentences: its features are those of the enumeration, and can be mined."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.mining import taggings as twin

import treewright as tw
from treewright.errors import InputError
from treewright.mining.space import Violations

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

ATTRIBUTES = {
    "w.lower": (0, "lower"),
    "w.word": (0, "word"),
    "w.suffix": (0, "suffix"),
    "w.prefix": (0, "prefix"),
    "w-1.lower": (-1, "lower"),
    "w+2.word": (2, "word"),
}
SENTENCES = st.lists(
    st.lists(st.tuples(st.sampled_from(["a", "B", "b", "abcde"]), st.sampled_from("XY")), max_size=4),
    max_size=4,
)


def grow_all(space, counters, threshold, degree):
    """Return the features of each order with their counts."""
    rows = np.arange(space.n_rows)
    violations = Violations(rows, np.array(counters, dtype=np.int32).reshape(-1, 1), 2)
    search = space.search(violations, threshold, degree)
    return [list(search.grow()) for _ in range(degree)]


@given(SENTENCES, st.lists(st.sampled_from(sorted(ATTRIBUTES)), unique=True, max_size=3), st.integers(0, 2))
@settings(deadline=None, max_examples=50)
def test_fragments_are_those_of_the_enumeration(sentences, attributes, max_gap):
    space = tw.TaggingSpace(sentences, attributes=attributes, max_gap=max_gap)
    pairs = [ATTRIBUTES[name] for name in attributes]
    names, features = [], []
    for order, parts in enumerate(grow_all(space, [0] * len(sentences), 0, 3), start=1):
        own = np.concatenate([np.zeros((0, order), dtype=np.int32), *(part.features for part in parts)])
        features.append(own)
        listed = [space.name(feature) for feature in own.tolist()]
        assert len(set(listed)) == len(listed)
        expected = [twin.list_fragments(each, order, pairs, max_gap) for each in sentences]
        assert set(listed) == {twin.name_fragment(each) for each in set().union(*expected)}
        names += listed
    present = [
        set().union(
            *(map(twin.name_fragment, twin.list_fragments(each, n, pairs, max_gap)) for n in (1, 2, 3))
        )
        for each in sentences
    ]
    expected = [[name in own for name in names] for own in present]
    assert space.match(features).toarray().astype(bool).tolist() == expected


@given(SENTENCES, st.data(), st.integers(0, 2), st.integers(0, 1))
@settings(deadline=None, max_examples=50)
def test_survivors_are_all_fragments_counted_above_the_threshold(sentences, data, threshold, max_gap):
    counters = data.draw(st.lists(st.integers(0, 1), min_size=len(sentences), max_size=len(sentences)))
    space = tw.TaggingSpace(sentences, attributes=["w.lower"], max_gap=max_gap)
    for order, parts in enumerate(grow_all(space, counters, threshold, 3), start=1):
        found = {
            space.name(feature): counts
            for part in parts
            for feature, counts in zip(part.features.tolist(), part.counts.tolist(), strict=True)
        }
        counted = twin.count_fragments(sentences, counters, 2, order, [(0, "lower")], max_gap)
        assert found == {name: own for name, own in counted.items() if max(own) > threshold}


def make_taggings():
    """Return sentences with `that`, each with its right and with a wrong tagging.

    `that` is a determiner if the verb before it is in the past.
    """
    frames = {
        "I know that {} is old": "PRP VBP IN NN VBZ JJ",
        "I saw that {} today": "PRP VBD DT NN RB",
        "we say that {} has gone": "PRP VBP IN NN VBZ VBN",
        "we took that {} home": "PRP VBD DT NN RB",
    }
    taggings = []
    for frame, tags in frames.items():
        for noun in ("dog", "song", "ship", "plan", "road", "bird"):
            words, right = frame.format(noun).split(), tags.split()
            wrong = [{"IN": "DT", "DT": "IN"}.get(tag, tag) for tag in right]
            taggings += [list(zip(words, each, strict=True)) for each in (right, wrong)]
    return taggings


def test_tag_bigrams_with_context_are_mined():
    taggings = make_taggings()
    space = tw.TaggingSpace(taggings, attributes=["w.lower", "w-1.lower"])
    problem = tw.list_problem(range(0, len(taggings) + 1, 2), range(0, len(taggings), 2))
    mined = tw.GradientMiner(degree=2, threshold=3).fit(space, problem)
    weights = dict(
        zip(
            (space.name(feature) for own in mined.features.values() for feature in own.tolist()),
            mined.weights[:, 0],
            strict=True,
        )
    )
    assert weights["tag=VBD tag=DT"] > 0 > weights["tag=VBD tag=IN"]
    assert weights["tag=VBP tag=IN & w.lower=that"] > 0
    scores = space.match(list(mined.features.values())) @ mined.weights[:, 0]
    assert (scores[::2] > scores[1::2]).all()


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("treewright.mining.strings.WORK", 4)
    found = []
    for n_jobs in (1, 3):
        space = tw.TaggingSpace(make_taggings(), max_gap=1, n_jobs=n_jobs)
        grown = grow_all(space, [0, 1] * (space.n_rows // 2), 1, 3)
        found.append([(part.features.tolist(), part.counts.tolist()) for parts in grown for part in parts])
    assert found[0] == found[1]


def test_marks_and_attributes_beyond_the_sentence_have_the_same_signs():
    space = tw.TaggingSpace([[("Go", "VB")]], attributes=["w-1.lower", "w+1.word"])
    assert space.items == ["^", "tag=VB", "tag=VB & w-1.lower=^", "tag=VB & w+1.word=$", "$"]


@pytest.mark.parametrize(
    ("taggings", "options", "message"),
    [
        ([["a"]], {}, "tagging 0 has 'a'; expected a list of (word, tag) pairs"),
        ([[], [("a", None)]], {}, "tagging 1 has ('a', None); expected a list of (word, tag) pairs"),
        (["ab"], {}, "tagging 0 is 'ab'; expected a list of (word, tag) pairs"),
        ([3], {}, "tagging 0 is 3; expected a list of (word, tag) pairs"),
        (
            [],
            {"attributes": "w.lower"},
            "attributes is 'w.lower'; expected a list of names such as 'w-1.lower'",
        ),
        (
            [],
            {"attributes": ["lower"]},
            "attributes has 'lower'; expected w.word, w.lower, w.prefix or w.suffix, or with a distance such "
            "as w-1.lower",
        ),
        ([], {"max_gap": -1}, "max_gap is -1; expected an integer of at least 0"),
    ],
)
def test_bad_input_is_refused_in_one_line(taggings, options, message):
    with pytest.raises(InputError) as caught:
        tw.TaggingSpace(taggings, **options)
    assert str(caught.value) == message
