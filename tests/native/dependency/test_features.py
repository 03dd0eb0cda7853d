import numpy as np
import pytest
from oracle.dependency import features as twin
from oracle.dependency.parts import TEMPLATES, place

from treewright.native.dependency import features as native
from treewright.parsing.dependency.features import compile_templates

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

NONE = compile_templates("", "arc")
N_WORDS = 9


@pytest.fixture(params=range(3))
def sentence(request):
    _, values, first_morph, morphs, _ = twin.random_corpus(
        np.random.default_rng(request.param), [[0] * N_WORDS]
    )
    return native.make_sentence(values, first_morph, morphs)


def make_part(placed):
    """Make the native array of a part."""
    part = np.zeros(native.PART_SIZE, np.int64)
    for letter, row in placed.rows.items():
        part["hmsgt".index(letter)] = row
    part[native.SITUATION] = placed.situation
    part[native.DISTANCE] = placed.distance
    return part


def arc_keys(templates, sentence, part):
    keys = np.empty(200, np.uint64)
    return keys[: native.fill_arc_keys(templates, sentence, part, keys)].tolist()


def template_keys(templates, sentence, part):
    keys = np.empty(200, np.uint64)
    return keys[: native.fill_keys(templates, sentence, part, keys)].tolist()


def plain_sentence(tags, n_morphs):
    """Make a sentence with these tags whose words have so many morphological features each."""
    values = np.zeros((len(tags) + native.N_EXTRA_ROWS, 8), np.int32)
    values[native.ROOT + 1 : native.ROOT + 1 + len(tags), native.BETWEEN_TAG] = tags
    counts = np.zeros(len(values) + 1, np.int64)
    counts[native.ROOT + 2 : native.ROOT + 2 + len(tags)] = n_morphs
    return native.make_sentence(values, np.cumsum(counts), np.arange(1, counts.sum() + 1, dtype=np.int32))


def test_distances_fall_into_nine_bins():
    distances = range(-60, 61)
    assert [native.distance_bin(one) for one in distances] == [twin.distance_bin(one) for one in distances]
    assert {native.distance_bin(one) for one in distances} == set(range(9))


def test_keys_of_arcs_equal_the_twins(sentence):
    templates, words = compile_templates(TEMPLATES["arc"], "arc"), twin.unpack(sentence)
    for head in range(N_WORDS + 1):
        for modifier in range(1, N_WORDS + 1):
            if head != modifier:
                placed = place(("arc", head, modifier))
                expected = twin.arc_keys(TEMPLATES["arc"], words, placed)
                assert sorted(arc_keys(templates, sentence, make_part(placed))) == sorted(expected)


@pytest.mark.parametrize(
    "part",
    [
        ("pair", 3, 1, 0, 5),
        ("pair", 3, 0, 2, 0),
        ("pair", 0, 1, 0, 0),
        ("grandchild", 9, 4, 1),
        ("grand_sibling", 2, 5, 1, 6, 0),
        ("grand_sibling", 7, 5, 0, 0, 1),
        ("triple", 1, 1, 2, 4, 8),
    ],
)
def test_keys_of_other_parts_equal_the_twins(sentence, part):
    text = TEMPLATES[part[0]]
    expected = twin.template_keys(text, twin.unpack(sentence), place(part))
    templates = compile_templates(text, part[0])
    assert template_keys(templates, sentence, make_part(place(part))) == expected


def test_kinds_situations_and_distances_all_make_different_keys(sentence):
    rows = {"h": 4, "m": 6}
    kinds = ("arc", "pair", "grandchild", "grand_sibling", "triple")
    keys = {
        (kind, situation, distance): template_keys(
            compile_templates("h.tag m.tag *", kind),
            sentence,
            make_part(twin.Placed(kind, rows, situation, distance)),
        )
        for kind in kinds
        for situation in range(4)
        for distance in range(9)
    }
    plain = {keys[kind, situation, 0][0] for kind in kinds for situation in range(4)}
    assert len(plain) == 5 * 4
    assert len(plain | {placed for _, placed in keys.values()}) == 5 * 4 * (9 + 1)


def test_the_plain_key_does_not_know_the_distance(sentence):
    templates = compile_templates("h.tag m.tag *", "arc")
    parts = [make_part(twin.Placed("arc", {"h": 4, "m": 6}, 1, distance)) for distance in range(9)]
    assert len({template_keys(templates, sentence, part)[0] for part in parts}) == 1


def test_equal_templates_have_different_keys(sentence):
    keys = template_keys(
        compile_templates("h.tag m.tag\nh.tag m.tag", "arc"), sentence, make_part(place(("arc", 2, 5)))
    )
    assert len(set(keys)) == 2


def test_each_tag_in_between_counts_once():
    sentence = plain_sentence([1, 5, 6, 5, 5, 7, 2], 0)
    keys = arc_keys(NONE, sentence, make_part(place(("arc", 1, 7))))
    assert len(keys) == len(set(keys)) == 3


def test_neighbours_have_no_tags_in_between():
    assert arc_keys(NONE, plain_sentence([1, 2], 0), make_part(place(("arc", 2, 1)))) == []


def test_tags_in_between_are_counted_up_to_a_limit():
    sentence = plain_sentence(np.arange(60), 0)
    assert len(arc_keys(NONE, sentence, make_part(place(("arc", 60, 1))))) == native.MAX_BETWEEN


def test_morphological_features_go_with_the_tags_and_with_each_other():
    keys = arc_keys(NONE, plain_sentence([1, 2], [3, 2]), make_part(place(("arc", 1, 2))))
    assert len(keys) == len(set(keys)) == 3 + 2 + 3 * 2


def test_an_arc_has_at_most_as_many_further_keys_as_there_is_room_for():
    sentence = plain_sentence(np.arange(60), [12] * 60)
    keys = arc_keys(NONE, sentence, make_part(place(("arc", 1, 60))))
    assert len(keys) == len(set(keys)) == native.MAX_EXTRA_KEYS


def test_weights_are_summed_over_the_slots_of_keys():
    weights = np.arange(16, dtype=np.float32)
    keys = np.array([3 << 60, 3 << 60, (15 << 60) + 5, 7 << 60], np.uint64)
    assert native.sum_weights(weights, np.uint64(60), keys, 3) == 3 + 3 + 15
