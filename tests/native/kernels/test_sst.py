from fractions import Fraction

import numpy as np
import pytest
from oracle.consttree import Node
from oracle.kernels import sst as twin
from oracle.kernels.dags import draw_trees, draw_wide
from strategies import as_const_tree

from treewright.data.forest import Forest
from treewright.kernels import indices
from treewright.kernels.indices import SubsetIndex, SubtreeIndex, TreeIndex

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

CASES = [(seed, decay) for seed in range(4) for decay in (1.0, 0.4)]


def make_index(kind, trees, decay, has_bag=False):
    forest = Forest.from_trees([as_const_tree(tree) for tree in trees])
    return kind(forest, decay=decay, has_bag=has_bag)


def make_square(index):
    numbers = np.arange(len(index.dag))
    return index.compare(index, index.translate(index), numbers, False)


def compare_all(trees, others, decay, *, is_subset):
    return [[twin.compare(one, other, decay, is_subset=is_subset) for other in others] for one in trees]


def all_pairs(n, n_others):
    return np.ascontiguousarray(np.argwhere(np.ones((n, n_others))))  # as the package has them


@pytest.mark.parametrize("seed", range(5))
def test_the_recursion_counts_what_is_listed(seed):
    trees, decay = draw_trees(seed, n_trees=4, depth=2), Fraction(2, 5)
    for is_subset, list_fragments in [(False, twin.list_subtrees), (True, twin.list_subset_trees)]:
        listed = [list_fragments(tree) for tree in trees]
        expected = [[twin.count_shared(one, other, decay) for other in listed] for one in listed]
        assert compare_all(trees, trees, decay, is_subset=is_subset) == expected


@pytest.mark.parametrize(("seed", "decay"), CASES)
def test_subset_trees_equal_listed_fragments(seed, decay):
    trees = draw_trees(seed, depth=2)
    listed = [twin.list_subset_trees(tree) for tree in trees]
    expected = [[twin.count_shared(one, other, decay) for other in listed] for one in listed]
    np.testing.assert_allclose(make_square(make_index(SubsetIndex, trees, decay)), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [SubtreeIndex, SubsetIndex])
@pytest.mark.parametrize("has_bag", [False, True])
@pytest.mark.parametrize(("seed", "decay"), CASES)
def test_squares_and_pairs_equal_the_recursion(kind, has_bag, seed, decay):
    trees = draw_trees(seed)
    expected = np.array(compare_all(trees, trees, decay, is_subset=kind is SubsetIndex))
    if has_bag:
        expected += [[twin.compare_words(one, other, decay) for other in trees] for one in trees]
    index = make_index(kind, trees, decay, has_bag)
    np.testing.assert_allclose(make_square(index), expected, rtol=1e-12)
    found = index.evaluate(all_pairs(len(trees), len(trees)))
    np.testing.assert_allclose(found, expected.ravel(), rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_together", [1, 3])
def test_chunks_and_other_forests_equal_the_recursion(seed, n_together, monkeypatch):
    monkeypatch.setitem(TreeIndex.__init__.__kwdefaults__, "n_together", n_together)
    trees, others = draw_trees(seed), [*draw_trees(seed + 50, n_trees=5), Node("Z", (Node("A"),))]
    ours, theirs = (make_index(SubsetIndex, each, 0.4) for each in (trees, others))
    numbers = np.array([5, 1, 1, 3])
    found = ours.compare(theirs, ours.translate(theirs), numbers, False)
    expected = compare_all([others[number] for number in numbers], trees, 0.4, is_subset=True)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(make_square(ours), compare_all(trees, trees, 0.4, is_subset=True), rtol=1e-12)


@pytest.mark.parametrize("n_together", [3, 100])
def test_half_a_square_begins_at_its_diagonal(n_together, monkeypatch):
    monkeypatch.setitem(TreeIndex.__init__.__kwdefaults__, "n_together", n_together)
    trees = draw_trees(8)
    index = make_index(SubsetIndex, trees, 0.4)
    found = index.compare(index, index.translate(index), np.arange(len(trees)), True)
    expected = np.triu(compare_all(trees, trees, 0.4, is_subset=True))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_wide_nodes_equal_the_recursion(seed):
    rng = np.random.default_rng(seed)
    trees = [draw_wide(rng, 20), draw_wide(rng, 20), draw_wide(rng, 21)]
    trees.append(Node("S", (*trees[0].children[:19], trees[1])))
    index = make_index(SubsetIndex, trees, 0.4)
    expected = compare_all(trees, trees, 0.4, is_subset=True)
    np.testing.assert_allclose(make_square(index), expected, rtol=1e-12)
    np.testing.assert_allclose(index.evaluate(all_pairs(4, 4)), np.ravel(expected), rtol=1e-12)


@pytest.mark.parametrize("kind", [SubtreeIndex, SubsetIndex])
@pytest.mark.parametrize("has_bag", [False, True])
def test_logarithms_are_those_of_values(kind, has_bag):
    trees = draw_trees(9)
    index = make_index(kind, trees, 0.4, has_bag)
    pairs = all_pairs(len(trees), len(trees))
    with np.errstate(divide="ignore"):
        expected = np.log(index.evaluate(pairs))
    assert np.isneginf(expected).any()
    np.testing.assert_allclose(index.evaluate(pairs, is_log=True), expected, rtol=1e-9, atol=1e-12)


def test_pairs_that_take_more_room_get_it(monkeypatch):
    monkeypatch.setattr(indices, "FIRST_VALUES", 1)
    trees = draw_trees(10)
    found = make_index(SubsetIndex, trees, 0.4).evaluate(all_pairs(len(trees), len(trees)))
    expected = compare_all(trees, trees, 0.4, is_subset=True)
    np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-12)
