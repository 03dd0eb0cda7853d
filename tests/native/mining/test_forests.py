import numpy as np
import pytest
from oracle.mining import forests as twin

from treewright.data.arcs import ArcEncoder
from treewright.data.deptree import DepTree
from treewright.mining.space import Violations
from treewright.mining.subtree import SubtreeSpace

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

LISTS = {
    "few": twin.draw_lists(0),
    "others": twin.draw_lists(1),
    "64 trees": twin.draw_lists(2, [(5, 64), (2, 3)]),
    "one tree": twin.draw_lists(3, [(4, 1), (1, 1), (6, 1)]),
    "no words": twin.draw_lists(4, [(0, 3), (4, 2), (0, 1), (0, 2)]),
    "several roots": [np.array([[0, 0, 0, 0], [0, 1, 0, 3], [2, 0, 0, 0]], dtype=np.int32)],
    "nothing": [],
}
CASES = [(name, root) for name in LISTS for root in (True, False)]


def make_space(lists, root):
    trees = [DepTree(["a"] * heads.shape[1]) for heads in lists]
    encoder = ArcEncoder.from_trees(trees, column="xpos", templates=["h.tag m.tag"])
    return SubtreeSpace(trees, lists, encoder=encoder, root=root)


def list_arcs(forest):
    return list(zip(forest.heads.tolist(), forest.modifiers.tolist(), strict=True))


def arcs_of_list(forest, number):
    """Return the arcs of a list and their masks."""
    span = slice(*forest.indptr[number : number + 2])
    return list_arcs(forest)[span], forest.masks[span].tolist()


def neighbours_of_list(forest, number):
    """Return the pairs of neighbours of a list and their masks."""
    arcs = list_arcs(forest)
    return [
        ((arcs[left], arcs[forest.next_arcs[place]]), int(forest.next_masks[place]))
        for left in range(*forest.indptr[number : number + 2])
        for place in range(*forest.first_next[left : left + 2])
    ]


def assert_children(forest):
    """Assert that below each arc are the arcs of its list that begin where it ends."""
    arcs = list_arcs(forest)
    for arc, (_, modifier) in enumerate(arcs):
        below = list(range(forest.first_child[arc], forest.end_child[arc]))
        begin, end = forest.indptr[forest.owners[arc] : forest.owners[arc] + 2]
        assert below == [other for other in range(begin, end) if arcs[other][0] == modifier]


@pytest.mark.parametrize(("name", "root"), CASES)
def test_each_arc_of_a_list_stands_once_with_the_trees_that_have_it(name, root):
    forest = make_space(LISTS[name], root).forest
    for number, trees in enumerate(LISTS[name]):
        arcs, masks = arcs_of_list(forest, number)
        assert arcs == sorted(arcs)
        assert dict(zip(arcs, masks, strict=True)) == twin.find_masks(trees.tolist(), twin.list_arcs, root)
        assert (forest.owners[forest.indptr[number] : forest.indptr[number + 1]] == number).all()
    assert len(forest.owners) == forest.indptr[-1]


@pytest.mark.parametrize(("name", "root"), CASES)
def test_each_pair_of_neighbours_stands_once_with_the_trees_that_have_it(name, root):
    forest = make_space(LISTS[name], root).forest
    for number, trees in enumerate(LISTS[name]):
        pairs = neighbours_of_list(forest, number)
        expected = twin.find_masks(trees.tolist(), twin.list_neighbours, root)
        assert len(pairs) == len(expected)
        assert dict(pairs) == expected
    assert len(forest.next_arcs) == len(forest.next_masks) == forest.first_next[-1]


@pytest.mark.parametrize(("name", "root"), CASES)
def test_below_an_arc_are_those_that_begin_where_it_ends(name, root):
    assert_children(make_space(LISTS[name], root).forest)


def test_all_64_bits_are_used():
    forest = make_space([np.arange(64, dtype=np.int32)[:, np.newaxis] % 1], True).forest
    assert forest.masks.tolist() == [2**64 - 1]


def draw_samples(seed, lists):
    """Draw a right and a wrong tree from each of some lists, some of which come twice."""
    rng = np.random.default_rng(seed)
    numbers = sorted(rng.integers(len(lists), size=len(lists) + 2).tolist())
    return [(number, *rng.integers(len(lists[number]), size=2).tolist()) for number in numbers]


def select(space, samples):
    """Return the forest of the pairs of trees of samples."""
    rows = [space.indptr[number] + right for number, right, _ in samples]
    rows += [space.indptr[number] + wrong for number, _, wrong in samples]
    counters = np.repeat([[0], [1]], len(samples), axis=0).astype(np.int32)
    return space.search(Violations(np.array(rows, dtype=np.int64), counters, 2), 0, 2)._pairs


@pytest.mark.parametrize(("name", "root"), CASES[:-2])
def test_pairs_have_exactly_the_arcs_and_neighbours_of_the_two_trees(name, root):
    lists = LISTS[name]
    samples = draw_samples(5, lists)
    pairs = select(make_space(lists, root), samples)
    for at, (number, right, wrong) in enumerate(samples):
        two = [lists[number][right].tolist(), lists[number][wrong].tolist()]
        arcs, masks = arcs_of_list(pairs, at)
        assert arcs == sorted(arcs)
        assert dict(zip(arcs, masks, strict=True)) == twin.find_masks(two, twin.list_arcs, root)
        neighbours = neighbours_of_list(pairs, at)
        assert dict(neighbours) == twin.find_masks(two, twin.list_neighbours, root)
        assert len(neighbours) == len(dict(neighbours))
    assert_children(pairs)
    assert len(pairs.owners) == pairs.indptr[-1]


def test_a_pair_of_the_same_tree_has_all_its_arcs_in_both():
    pairs = select(make_space(LISTS["few"], True), [(0, 1, 1)])
    assert len(pairs.masks) == LISTS["few"][0].shape[1]
    assert (pairs.masks == 3).all()
    assert (pairs.next_masks == 3).all()


def test_no_samples_have_no_pairs():
    pairs = select(make_space(LISTS["few"], True), [])
    assert pairs.indptr.tolist() == [0]
    assert len(pairs.owners) == len(pairs.next_arcs) == 0
