"""Plain loops over pairs of nodes."""

import numpy as np
import pytest
from oracle.kernels import naive as twin

from treewright.data.consttree import ConstTree
from treewright.data.forest import Forest
from treewright.kernels.naive import plain_trees
from treewright.native.kernels.naive import (
    Runs,
    SequenceScratch,
    evaluate_all_nodes,
    evaluate_partial_trees,
    evaluate_sorted_nodes,
)

DECAYS = [(1.0, 1.0), (0.4, 0.7)]


def draw_tree(rng, depth=3):
    """Draw a tree of few labels, so that much is shared; leaves may have the labels of others."""
    label = "abc"[rng.integers(3)]
    n_children = rng.integers(4) if depth else 0
    return label, tuple(draw_tree(rng, depth - 1) for _ in range(n_children))


def as_const_tree(tree):
    return ConstTree(tree[0], [as_const_tree(child) for child in tree[1]])


@pytest.fixture(scope="module")
def trees():
    rng = np.random.default_rng(0)
    drawn = [draw_tree(rng) for _ in range(60)]
    return [tree for tree in drawn if len(twin.list_nodes(tree)) < 15][:12]


@pytest.fixture(scope="module")
def plain(trees):
    return plain_trees(Forest.from_trees([as_const_tree(tree) for tree in trees]))


@pytest.fixture(scope="module")
def pairs(trees):
    n = len(trees)
    return np.stack(np.meshgrid(np.arange(n), np.arange(n)), axis=-1).reshape(-1, 2)


def test_the_trees_are_of_several_sizes(trees):
    sizes = {len(twin.list_nodes(tree)) for tree in trees}
    assert min(sizes) == 1
    assert max(sizes) > 8


@pytest.mark.parametrize("decay", [1.0, 0.4])
def test_subset_trees_of_all_pairs_of_nodes_are_those_listed(trees, plain, pairs, decay):
    out = np.empty(len(pairs))
    evaluate_all_nodes(plain, pairs, decay, np.full(400, np.nan), out)
    expected = [twin.subset_kernel(trees[a], trees[b], decay) for a, b in pairs]
    np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("decay", [1.0, 0.4])
def test_subset_trees_of_sorted_nodes_are_those_listed(trees, plain, pairs, decay):
    out, values = np.empty(len(pairs)), np.zeros(400)
    runs = Runs(*np.zeros((2, 20), dtype=np.int64))
    evaluate_sorted_nodes(plain, pairs, decay, values, runs, out)
    expected = [twin.subset_kernel(trees[a], trees[b], decay) for a, b in pairs]
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    assert not values.any()


@pytest.mark.parametrize(("decay", "depth_decay"), DECAYS)
def test_partial_trees_are_those_listed(trees, plain, pairs, decay, depth_decay):
    out = np.empty(len(pairs))
    sequences = SequenceScratch(*np.zeros((2, 20), dtype=np.int64), np.zeros((3, 21, 21)))
    evaluate_partial_trees(plain, pairs, decay, depth_decay, np.full(400, np.nan), sequences, out)
    expected = [twin.partial_kernel(trees[a], trees[b], decay, depth_decay) for a, b in pairs]
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_the_listed_fragments_are_as_many_as_counted_by_hand():
    leaf = ("D", (("a", ()),)), ("N", (("cat", ()),))
    tree = ("VP", (("V", (("brought", ()),)), ("NP", leaf)))
    assert twin.subset_kernel(tree, tree, 1) == 17
    assert twin.partial_kernel(tree, tree, 1, 1) == 48
