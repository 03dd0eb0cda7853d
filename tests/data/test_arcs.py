import numpy as np
import pytest
from oracle.data import arcs as twin

from treewright.data.arcs import ARC_FEATURES, ArcEncoder, unpack
from treewright.data.deptree import DepTree
from treewright.data.vocab import Vocabulary
from treewright.errors import InputError
from treewright.native.data.arcs import pack

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

WORDS = ["the", "old", "man", "saw", "a", "dog"]
TAGS = ["DT", "JJ", "NN", "VBD", "DT", "NN"]
SPECIAL = {"?": 0, "ROOT": 1, twin.OUTSIDE: 2}


def make_tree(words=WORDS, tags=TAGS):
    return DepTree(words, xpos=tags, upos=tags)


def arc_keys(encoder, tree, head, modifier):
    """Return the keys of one arc."""
    arc = (np.array([number]) for number in (0, head, modifier))
    return encoder.keys(encoder.encode([tree]), *arc)[1].tolist()


def arc_names(encoder, tree, head, modifier):
    return [encoder.name(key) for key in arc_keys(encoder, tree, head, modifier)]


@pytest.fixture
def encoder():
    return ArcEncoder.from_trees([make_tree()])


def test_templates_are_those_of_table_1():
    assert list(ARC_FEATURES) == [*twin.TABLE, *(f"{row} *" for row in twin.TABLE), "h.tag b.tag m.tag"]


def test_keys_can_be_read_again_as_the_features_of_table_1(encoder):
    words, tags = ["ROOT", *WORDS], ["ROOT", *TAGS]
    for head, modifier in twin.all_arcs(len(WORDS)):
        found = [unpack(key) for key in arc_keys(encoder, make_tree(), head, modifier)]
        for (template, ids, distance), expected in zip(
            found, twin.features(words, tags, head, modifier), strict=True
        ):
            name, values, place = expected
            kinds = [symbol.split(".")[1] for symbol in name.removesuffix(" *").split()]
            numbers = [
                SPECIAL[value]
                if value in SPECIAL
                else 2 + (encoder.words if kind == "word" else encoder.tags).id(value)
                for kind, value in zip(kinds, values, strict=True)
            ]
            assert ARC_FEATURES[template] == name
            assert ids[: len(numbers)] == tuple(numbers)
            assert (distance > 0) == (place is not None)


def test_unpacking_is_the_inverse_of_packing():
    rng = np.random.default_rng(0)
    for _ in range(50):
        parts = [int(rng.integers(size)) for size in (len(ARC_FEATURES), 2**20, 2**20, 2**12, 32)]
        template, values, distance = unpack(int(pack(*parts)))
        assert [template, *values, distance] == parts


def test_features_of_several_arcs_are_apart(encoder):
    trees = [make_tree(), make_tree(["a", "dog"], ["DT", "NN"])]
    numbers, heads, modifiers = np.array([[0, 4, 3], [1, 2, 1], [0, 0, 4]]).T.copy()
    first, keys = encoder.keys(encoder.encode(trees), numbers, heads, modifiers)
    for at, (number, head, modifier) in enumerate(zip(numbers, heads, modifiers, strict=True)):
        expected = arc_keys(encoder, trees[number], head, modifier)
        assert keys[first[at] : first[at + 1]].tolist() == expected


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("h.word m.word", "saw → man"),
        ("h.tag m.word", "VBD → man"),
        ("h-1.tag m.tag", "NN·* → NN"),
        ("h.tag m+1.tag", "VBD → *·VBD"),
        ("h.tag h+1.tag m.tag", "VBD·DT → NN"),
        ("h.tag m-1.tag m.tag", "VBD → JJ·NN"),
        ("h.tag m.tag *", "VBD → NN (1 left)"),
    ],
)
def test_names_tell_the_words_of_both_ends(template, name):
    encoder = ArcEncoder.from_trees([make_tree()], templates=[template])
    assert arc_names(encoder, make_tree(), 4, 3) == [name]


@pytest.mark.parametrize(
    ("length", "shown"),
    [(1, "1"), (5, "5"), (6, "6-10"), (10, "6-10"), (11, "11-20"), (20, "11-20"), (21, "21+")],
)
def test_names_tell_the_bin_of_the_length_and_the_direction(length, shown):
    tree = make_tree(["x"] * 30, ["X"] * 30)
    encoder = ArcEncoder.from_trees([tree], templates=["h.tag m.tag *"])
    assert arc_names(encoder, tree, 2, 2 + length) == [f"X → X ({shown} right)"]
    assert arc_names(encoder, tree, 2 + length, 2) == [f"X → X ({shown} left)"]


def test_names_of_the_root_and_of_what_is_outside():
    encoder = ArcEncoder.from_trees(
        [make_tree()], templates=["h.word m.word", "h-1.tag m.tag", "h.tag m+1.tag"]
    )
    assert arc_names(encoder, make_tree(), 0, 6) == ["ROOT → dog", "-·* → NN", "ROOT/tag → *·-"]


def test_features_of_the_word_and_of_the_tag_of_the_root_have_different_names(encoder):
    names = arc_names(encoder, make_tree(), 0, 4)
    assert len(set(names)) == len(names)


def test_tags_in_between_are_named_once_each():
    encoder = ArcEncoder.from_trees([make_tree()], templates=["h.tag b.tag m.tag"])
    tree = make_tree(["x"] * 6, ["VBD", "DT", "JJ", "JJ", "DT", "NN"])
    assert arc_names(encoder, tree, 1, 6) == ["VBD ..DT.. NN", "VBD ..JJ.. NN"]
    assert arc_names(encoder, tree, 6, 1) == ["NN ..DT.. VBD", "NN ..JJ.. VBD"]
    assert arc_names(encoder, tree, 1, 2) == []


def test_unknown_words_and_tags_are_all_the_same():
    encoder = ArcEncoder.from_trees([make_tree()], templates=["h.word m.word", "h.tag m.tag"])
    one, other = make_tree(["x", "dog"], ["X", "NN"]), make_tree(["y", "dog"], ["Y", "NN"])
    assert arc_names(encoder, one, 2, 1) == ["dog → ?", "NN → ?"]
    assert arc_keys(encoder, one, 2, 1) == arc_keys(encoder, other, 2, 1)


def test_templates_are_looked_at_in_the_order_of_the_table():
    encoder = ArcEncoder.from_trees([make_tree()], templates=["h.tag m.tag", "h.word m.word"])
    assert arc_names(encoder, make_tree(), 4, 3) == ["saw → man", "VBD → NN"]


def test_there_can_be_no_sentences_and_no_arcs(encoder):
    nothing = np.zeros(0, dtype=np.int64)
    first, keys = encoder.keys(encoder.encode([]), nothing, nothing, nothing)
    assert (first.tolist(), keys.tolist()) == ([0], [])


@pytest.mark.parametrize(
    ("own", "universal", "column"),
    [
        (["_"] * 50, ["N", "V"] * 25, "upos"),
        ([f"x{number}" for number in range(48)] + ["x1", "x2"], ["N", "V"] * 25, "xpos"),
        ([f"x{number}" for number in range(50)], ["N", "V"] * 25, "upos"),
        ([f"x{number}" for number in range(50)], [f"u{number % 13}" for number in range(50)], "xpos"),
        ([f"x{number}" for number in range(50)], ["_"] * 50, "xpos"),
        (["_"] * 50, ["_"] * 50, "xpos"),
    ],
)
def test_own_tags_are_taken_unless_they_are_many_or_missing(own, universal, column):
    tree = DepTree(["x"] * 50, xpos=own, upos=universal)
    assert ArcEncoder.from_trees([tree]).column == column


def test_a_column_can_be_named():
    tree = DepTree(["x", "y"], xpos=["A", "B"], upos=["C", "D"])
    encoder = ArcEncoder.from_trees([tree], column="upos", templates=["h.tag m.tag"])
    assert arc_names(encoder, tree, 1, 2) == ["C → D"]


def test_only_as_many_tags_are_numbered_as_there_is_room_for():
    n = 2**12
    tags = [f"t{number:04}" for number in range(n)]
    tree = make_tree(["x"] * n, tags)
    encoder = ArcEncoder.from_trees([tree], column="xpos", templates=["h-1.tag h.tag m.tag"])
    assert len(encoder.tags.strings) == n - 3
    assert arc_names(encoder, tree, 2, n - 3) == ["t0000·t0001 → t4092"]
    assert arc_names(encoder, tree, 2, n - 2) == ["t0000·t0001 → ?"]


def test_a_misspelt_template_is_named():
    with pytest.raises(
        InputError, match=r"'h.word x.word'; expected one or more of h.word m.word, h.tag m.tag"
    ):
        ArcEncoder(Vocabulary([]), Vocabulary([]), templates=["h.word m.word", "h.word x.word"])


def test_there_must_be_templates():
    with pytest.raises(InputError, match=r"nothing.*; expected one or more of"):
        ArcEncoder(Vocabulary([]), Vocabulary([]), templates=[])
