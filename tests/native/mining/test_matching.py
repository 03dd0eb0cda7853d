from itertools import chain

import numpy as np
import pytest
from oracle.mining import forests
from oracle.mining import matching as twin

from treewright.data.arcs import ArcEncoder
from treewright.data.deptree import DepTree
from treewright.mining import subtree
from treewright.mining.patterns import Patterns
from treewright.mining.subtree import SubtreeSpace
from treewright.native.mining.matching import sign

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

N_FEATURES, DEGREE = 4, 4
LISTS = {
    "few": forests.draw_lists(0),
    "others": forests.draw_lists(1),
    "64 trees": forests.draw_lists(2, [(4, 64), (3, 63)]),
    "one tree": forests.draw_lists(3, [(4, 1), (1, 1), (5, 2)]),
    "no words": forests.draw_lists(4, [(0, 3), (4, 2), (0, 1), (0, 2)]),
    "several roots": [np.array([[0, 0, 0, 0], [0, 1, 0, 3], [2, 0, 0, 0]], dtype=np.int32)],
}
CASES = [(name, root) for name in LISTS for root in (True, False)]


def make_space(lists, features, *, root=True, jobs=1):
    """Make a space whose arcs have the features that are given."""
    trees = [DepTree(["a"] * heads.shape[1]) for heads in lists]
    encoder = ArcEncoder.from_trees(trees, column="xpos", templates=["h.tag m.tag"])
    space = SubtreeSpace(trees, lists, encoder=encoder, root=root, n_jobs=jobs)
    forest = space.forest
    arcs = zip(forest.owners, forest.heads.tolist(), forest.modifiers.tolist(), strict=True)
    ids = [features[owner][head, modifier] for owner, head, modifier in arcs]
    space.keys = np.arange(N_FEATURES, dtype=np.uint64)
    first = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    space.features = space.features._replace(indptr=first, ids=np.array([*chain(*ids)], dtype=np.int32))
    return space


def draw(name, root, **options):
    """Return a space, and what sub feature trees tell the candidates of each list apart."""
    lists = LISTS[name]
    features = forests.draw_features(0, lists, root, N_FEATURES)
    expected = [
        each
        for trees, own in zip(lists, features, strict=True)
        for each in twin.telling(trees.tolist(), own, DEGREE, root)
    ]
    return make_space(lists, features, root=root, **options), expected


def by_order(features):
    """Return features as an array for each order that has any."""
    orders = sorted({len(feature) for feature in features})
    return [
        np.array([feature for feature in features if len(feature) == order], dtype=np.int32)
        for order in orders
    ]


def match(space, features):
    """Return the features that are found in each row."""
    arrays = by_order(features)
    names = [tuple(feature) for each in arrays for feature in each.tolist()]
    matrix = space.match(arrays)
    assert matrix.shape == (space.n_rows, len(names))
    assert matrix.has_sorted_indices
    assert (matrix.data == 1).all()
    return [{names[column] for column in row.indices} for row in matrix]


def draw_some(expected, share, seed=0):
    """Draw a part of the features that are somewhere, with one that is nowhere."""
    rng = np.random.default_rng(seed)
    everything = sorted(set().union(*expected))
    return [each for each in everything if rng.random() < share] + [(N_FEATURES * 8 - 8, 9, 18, 27)]


@pytest.mark.parametrize("share", [1, 0.3])
@pytest.mark.parametrize(("name", "root"), CASES)
def test_features_are_found_where_they_are_unless_all_candidates_have_them(name, root, share):
    space, expected = draw(name, root)
    features = draw_some(expected, share)
    assert match(space, features) == [each & set(features) for each in expected]


@pytest.mark.parametrize("name", ["few", "64 trees"])
def test_what_all_candidates_of_a_list_have_is_left_out_there_alone(name):
    lists = LISTS[name]
    features = forests.draw_features(0, lists, True, N_FEATURES)
    basic = [(feature * 8,) for feature in range(N_FEATURES)]
    found = match(make_space(lists, features), basic)
    begin = 0
    for trees, own in zip(lists, features, strict=True):
        has = [
            {(f * 8,) for arc in forests.list_arcs(tree, True) for f in own[arc]} for tree in trees.tolist()
        ]
        for feature in basic:
            is_there = [feature in each for each in has]
            where = [feature in each for each in found[begin : begin + len(trees)]]
            assert where == ([False] * len(trees) if all(is_there) else is_there)
        begin += len(trees)


def test_a_part_that_is_no_feature_itself_is_not_found():
    space, expected = draw("few", True)
    features = [each for each in sorted(set().union(*expected)) if len(each) == DEGREE]
    assert features
    assert match(space, features) == [each & set(features) for each in expected]


@pytest.mark.parametrize("room", range(1, 24))
@pytest.mark.parametrize("jobs", [1, 2])
def test_room_is_made_where_it_is_wanting(room, jobs, monkeypatch):
    space, expected = draw("others", True, jobs=jobs)
    monkeypatch.setattr(subtree, "ROOM", room)
    assert match(space, draw_some(expected, 1)) == expected


@pytest.mark.parametrize("room", [1, 2])
def test_room_is_made_where_nothing_is_extended(room, monkeypatch):
    space, expected = draw("others", True)
    basic = [(feature * 8,) for feature in range(N_FEATURES)]
    monkeypatch.setattr(subtree, "ROOM", room)
    assert match(space, basic) == [each & set(basic) for each in expected]


@pytest.mark.parametrize("n_lists", [1, 2, 5])
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("room", [2, 1000])
def test_any_number_of_lists_at_once_gives_the_same(n_lists, jobs, room, monkeypatch):
    space, expected = draw("few", False, jobs=jobs)
    monkeypatch.setattr(subtree, "LISTS_AT_ONCE", n_lists)
    monkeypatch.setattr(subtree, "ROOM", room)
    assert match(space, draw_some(expected, 1)) == expected


def test_columns_keep_the_sequence_of_the_features():
    space, expected = draw("few", True)
    features = by_order(draw_some(expected, 1))
    turned = [each[::-1] for each in features[::-1]]
    plain, other = space.match(features).toarray(), space.match(turned).toarray()
    assert other.tolist() == plain[:, ::-1].tolist()


@pytest.mark.parametrize("features", [[], [np.zeros((0, 1), np.int32)], [np.zeros((0, 3), np.int32)]])
def test_no_features_are_found_nowhere(features):
    space, _ = draw("few", True)
    assert space.match(features).shape == (space.n_rows, 0)


def test_nothing_is_found_in_no_lists():
    assert make_space([], []).match([np.array([[8]], dtype=np.int32)]).shape == (0, 1)


@pytest.mark.parametrize(("name", "root"), CASES)
def test_scores_are_the_weights_of_what_is_found(name, root):
    space, expected = draw(name, root)
    features = by_order(draw_some(expected, 0.5))
    patterns = Patterns(space.keys, features)
    coef = np.random.default_rng(0).normal(size=patterns.n_features)
    assert space.score(patterns, coef) == pytest.approx(space.find(patterns) @ coef, rel=1e-12, abs=1e-12)


def test_signs_are_all_256_places():
    assert {int(sign(number)) for number in range(4000)} == set(range(256))
