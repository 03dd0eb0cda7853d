import numpy as np
import pytest
from oracle.data import arcs as twin

from treewright.data.arcs import ARC_FEATURES, ArcEncoder
from treewright.data.vocab import Vocabulary
from treewright.native.data import arcs as native

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

OUTSIDE = 2


def compile_templates(templates=ARC_FEATURES):
    return ArcEncoder(Vocabulary([]), Vocabulary([]), templates=templates)._native


def make_sentences(drawn):
    """Make the native arrays of sentences."""
    values = [np.stack(columns, axis=1) for columns in drawn]
    first = np.cumsum([0, *map(len, values)], dtype=np.int64)
    return native.Sentences(first, np.concatenate(values).astype(np.int32))


def arc_keys(sentences, number, head, modifier, templates):
    keys = np.empty(100, np.uint64)
    return keys[: native.fill_arc_keys(sentences, number, head, modifier, templates, keys)].tolist()


def plain_sentence(tags):
    return make_sentences([(np.ones(len(tags) + 1, int), np.array([1, *tags]))])


def as_key(feature):
    """Pack a feature of the twin with Python's integers."""
    template, values, distance = feature
    a, b, c = (*(OUTSIDE if value == twin.OUTSIDE else int(value) for value in values), 0)[:3]
    number = 0
    if distance is not None:
        (low, _), direction = distance
        number = 1 + 2 * native.LENGTH_BINS.tolist().index(low) + (direction == "right")
    return (((ARC_FEATURES.index(template) * 2**20 + a) * 2**20 + b) * 2**12 + c) * 2**5 + number


@pytest.mark.parametrize("seed", range(3))
def test_keys_are_those_of_the_features_of_table_1(seed):
    drawn = twin.random_sentences(np.random.default_rng(seed), [5, 1, 13])
    sentences, templates = make_sentences(drawn), compile_templates()
    for number, (words, tags) in enumerate(drawn):
        for head, modifier in twin.all_arcs(len(words) - 1):
            expected = [as_key(each) for each in twin.features(words, tags.tolist(), head, modifier)]
            assert arc_keys(sentences, number, head, modifier, templates) == expected


def test_keys_are_equal_exactly_where_features_are():
    drawn = twin.random_sentences(np.random.default_rng(3), [6, 24])
    sentences, templates = make_sentences(drawn), compile_templates()
    pairs = {
        pair
        for number, (words, tags) in enumerate(drawn)
        for head, modifier in twin.all_arcs(len(words) - 1)
        for pair in zip(
            arc_keys(sentences, number, head, modifier, templates),
            twin.features(words.tolist(), tags.tolist(), head, modifier),
            strict=True,
        )
    }
    assert len(pairs) == len({key for key, _ in pairs}) == len({feature for _, feature in pairs})


def test_bins_of_lengths_are_those_of_the_twin():
    bins = {}
    for head in (0, 40):
        for modifier in range(1, 80):
            if modifier != head:
                length, direction = abs(head - modifier), modifier > head
                bins.setdefault(native.bin_distance(head, modifier), set()).add(
                    (twin.bin_length(length), direction)
                )
    assert sorted(bins) == list(range(1, 17))
    assert all(len(each) == 1 for each in bins.values())


@pytest.mark.parametrize(
    "values", [(0, 0, 0, 0, 0), (32, 2**20 - 1, 2**20 - 1, 2**12 - 1, 31), (5, 1, 2, 3, 4)]
)
def test_values_are_packed_from_the_highest_bits_down(values):
    template, a, b, c, distance = values
    expected = (((template * 2**20 + a) * 2**20 + b) * 2**12 + c) * 2**5 + distance
    assert int(native.pack(*values)) == expected


def test_each_tag_in_between_counts_once():
    sentences = plain_sentence([3, 5, 6, 5, 5, 7, 4])
    keys = arc_keys(sentences, 0, 1, 7, compile_templates(["h.tag b.tag m.tag"]))
    assert keys == [as_key(("h.tag b.tag m.tag", (3, 4, tag), None)) for tag in (5, 6, 7)]


def test_neighbours_have_no_tags_in_between():
    assert arc_keys(plain_sentence([3, 4]), 0, 2, 1, compile_templates(["h.tag b.tag m.tag"])) == []


def test_the_next_sentence_is_outside():
    drawn = twin.random_sentences(np.random.default_rng(4), [2, 2])
    templates = compile_templates(["h.tag m+1.tag", "h-1.tag m.tag"])
    keys = arc_keys(make_sentences(drawn), 0, 0, 2, templates)
    tag = drawn[0][1][2]
    assert keys == [
        as_key(("h-1.tag m.tag", (OUTSIDE, tag), None)),
        as_key(("h.tag m+1.tag", (1, OUTSIDE), None)),
    ]


def test_features_of_many_arcs_stand_one_after_another():
    drawn = twin.random_sentences(np.random.default_rng(5), [4, 7])
    sentences, templates = make_sentences(drawn), compile_templates()
    arcs = [(number, *arc) for number, n in enumerate((4, 7)) for arc in twin.all_arcs(n)]
    numbers, heads, modifiers = np.array(arcs).T.copy()
    first, room = np.zeros(len(arcs) + 1, np.int64), len(ARC_FEATURES) + 8
    columns = (sentences, numbers, heads, modifiers, templates)
    native.count_arc_features(*columns, np.empty(room, np.uint64), first)
    keys = np.empty(first[-1] + room, np.uint64)
    native.fill_arc_features(*columns, first, keys)
    for at, arc in enumerate(arcs):
        assert keys[first[at] : first[at + 1]].tolist() == arc_keys(sentences, *arc, templates)
