from fractions import Fraction

import numpy as np
import pytest
from oracle.consttree import Node, nodes
from oracle.kernels import ptk as twin
from oracle.kernels.dags import draw_trees, draw_wide
from strategies import as_const_tree

from treewright.data.forest import Forest
from treewright.kernels.indices import PartialIndex, PartialOptions, TreeIndex
from treewright.native.kernels.ptk import ChildMatches, sum_matches, weigh_gaps

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

DECAYS = [(1.0, 1.0), (0.4, 0.3)]
CASES = [(seed, *decays, longest) for seed in range(4) for decays in DECAYS for longest in (None, 1, 2)]
MOST_LISTED = 400


def make_index(trees, decay=0.4, depth_decay=0.3, longest=None):
    forest = Forest.from_trees([as_const_tree(tree) for tree in trees])
    return PartialIndex(forest, options=PartialOptions(decay, depth_decay, longest or 0))


def make_square(index):
    return index.compare(index, index.translate(index), np.arange(len(index.dag)), False)


def compare_all(trees, others, decay=0.4, depth_decay=0.3, longest=None):
    return [[twin.compare(one, other, decay, depth_decay, longest) for other in others] for one in trees]


def list_all(trees, decay, depth_decay, longest):
    listed = [twin.list_partial_trees(tree, decay, longest) for tree in trees]
    return [[twin.count_shared(one, other, decay, depth_decay) for other in listed] for one in listed]


def draw_small(seed):
    """Draw trees of which all partial trees can be listed."""
    drawn = draw_trees(seed, n_trees=40)
    return [tree for tree in drawn if sum(map(twin.count_partial_trees, nodes(tree))) < MOST_LISTED][:8]


def all_pairs(n):
    return np.ascontiguousarray(np.argwhere(np.ones((n, n))))  # as the package has them


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("longest", [None, 1, 2])
def test_the_recursion_counts_what_is_listed(seed, longest):
    trees, decays = draw_small(seed), (Fraction(2, 5), Fraction(1, 3))
    assert compare_all(trees, trees, *decays, longest) == list_all(trees, *decays, longest)


@pytest.mark.parametrize(("seed", "decay", "depth_decay", "longest"), CASES)
def test_partial_trees_equal_listed_fragments(seed, decay, depth_decay, longest):
    trees = draw_small(seed)
    found = make_square(make_index(trees, decay, depth_decay, longest))
    np.testing.assert_allclose(found, list_all(trees, decay, depth_decay, longest), rtol=1e-12)


@pytest.mark.parametrize(("seed", "decay", "depth_decay", "longest"), CASES)
def test_squares_and_pairs_equal_the_recursion(seed, decay, depth_decay, longest):
    trees = draw_trees(seed)
    expected = compare_all(trees, trees, decay, depth_decay, longest)
    index = make_index(trees, decay, depth_decay, longest)
    np.testing.assert_allclose(make_square(index), expected, rtol=1e-12)
    np.testing.assert_allclose(index.evaluate(all_pairs(len(trees))), np.ravel(expected), rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_together", [1, 3])
@pytest.mark.parametrize("longest", [None, 2])
def test_chunks_and_other_forests_equal_the_recursion(seed, n_together, longest, monkeypatch):
    monkeypatch.setitem(TreeIndex.__init__.__kwdefaults__, "n_together", n_together)
    trees, others = draw_trees(seed), [*draw_trees(seed + 50, n_trees=5), Node("Z", (Node("A"), Node("z")))]
    ours, theirs = make_index(trees, longest=longest), make_index(others, longest=longest)
    numbers = np.array([5, 1, 1, 3])
    found = ours.compare(theirs, ours.translate(theirs), numbers, False)
    expected = compare_all([others[number] for number in numbers], trees, longest=longest)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    expected = compare_all(trees, trees, longest=longest)
    np.testing.assert_allclose(make_square(ours), expected, rtol=1e-12)


@pytest.mark.parametrize("n_together", [3, 100])
def test_half_a_square_begins_at_its_diagonal(n_together, monkeypatch):
    monkeypatch.setitem(TreeIndex.__init__.__kwdefaults__, "n_together", n_together)
    trees = draw_trees(8)
    index = make_index(trees)
    found = index.compare(index, index.translate(index), np.arange(len(trees)), True)
    np.testing.assert_allclose(found, np.triu(compare_all(trees, trees)), rtol=1e-12)


@pytest.mark.parametrize("longest", [None, 1, 3])
def test_nodes_with_many_pairs_of_equal_children_equal_the_recursion(longest):
    rng = np.random.default_rng(1)
    trees = [draw_wide(rng, n_children) for n_children in (3, 4, 5, 9, 15)]
    trees.append(Node("S", (trees[0], *trees[3].children, trees[2], trees[0])))
    expected = compare_all(trees, trees, longest=longest)
    index = make_index(trees, longest=longest)
    np.testing.assert_allclose(make_square(index), expected, rtol=1e-12)
    np.testing.assert_allclose(index.evaluate(all_pairs(len(trees))), np.ravel(expected), rtol=1e-12)


@pytest.mark.parametrize("longest", [None, 2])
def test_nodes_wider_than_any_of_the_forest_equal_the_recursion(longest):
    narrow = [Node("S", (Node("a"), Node("b")))]
    wide = [Node("S", (Node("a"), *[Node("c")] * 40, Node("b")))]
    ours, theirs = make_index(narrow, 0.9, longest=longest), make_index(wide, 0.9, longest=longest)
    found = ours.compare(theirs, ours.translate(theirs), np.arange(1), False)
    expected = compare_all(wide, narrow, 0.9, longest=longest)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("longest", [None, 1, 2])
def test_logarithms_are_those_of_values(longest):
    trees = [*draw_trees(9), draw_wide(np.random.default_rng(0), 12), Node("Z")]
    index = make_index(trees, longest=longest)
    with np.errstate(divide="ignore"):
        expected = np.log(index.evaluate(all_pairs(len(trees))))
    assert np.isneginf(expected).any()
    found = index.evaluate(all_pairs(len(trees)), is_log=True)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def sum_with_matches(values, decay):
    """Sum over pairs of subsequences as for a few pairs of children: those whose value is not 0."""
    places = np.argwhere(values)
    n = len(places)
    numbers = places.T.copy()
    matches = ChildMatches(*numbers, np.empty((n, n)), np.empty(n), values[tuple(numbers)], np.empty(n))
    weigh_gaps(matches, n, decay ** np.arange(20.0))
    return sum_matches(matches, n)


@pytest.mark.parametrize("seed", range(6))
def test_one_pass_over_pairs_of_children_sums_all_lengths(seed):
    rng = np.random.default_rng(seed)
    values = rng.random((4, 5)) * (rng.random((4, 5)) < 0.6)
    expected = twin.sum_subsequences(values.tolist(), 0.4)
    assert sum_with_matches(values, 0.4) == pytest.approx(expected, rel=1e-12)
