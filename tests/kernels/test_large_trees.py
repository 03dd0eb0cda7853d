"""Trees of thousands of nodes, and values that no number can hold."""

import math

import numba
import numpy as np
import pytest
from oracle.consttree import Node
from oracle.kernels import ptk, sst
from scipy.special import gammaln, logsumexp
from strategies import as_const_tree

from treewright import (
    ConstTree,
    PartialTreeKernel,
    SmoothedPartialTreeKernel,
    SubsetTreeKernel,
    SubtreeKernel,
)
from treewright.errors import InputError

pytestmark = [
    pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning"),
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="too much for code that is not compiled"),
]

SMALL = Node("A", (Node("A", (Node("a"),)), Node("A", (Node("b"),))))
SUBSETS = SubsetTreeKernel(decay=1)
PARTS = PartialTreeKernel(decay=1, depth_decay=1)
KERNELS = [
    SUBSETS,
    PARTS,
    SmoothedPartialTreeKernel((["a", "b"], [[1, 0.5], [0.5, 1]]), decay=1, depth_decay=1),
]


def make_full(n_levels):
    """Make a binary tree whose values have about 2 to the power of its levels digits."""
    tree = Node("A", (Node("a"),))
    for _ in range(n_levels):
        tree = Node("A", (tree, tree))
    return tree


LARGE, OTHER = make_full(10), Node("B", (make_full(10), SMALL))
GIVEN = [as_const_tree(tree) for tree in (SMALL, LARGE, OTHER)]


def log_exact(value):
    """Return the logarithm of an integer of any size."""
    return math.log(value) if value else -math.inf


def expect_logs(kernel):
    trees = SMALL, LARGE, OTHER
    if kernel is SUBSETS:
        return [[log_exact(sst.compare(a, b, 1, is_subset=True)) for b in trees] for a in trees]
    return [[log_exact(ptk.compare(a, b, 1, 1)) for b in trees] for a in trees]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_values_that_are_too_large_are_refused_with_the_names_of_trees(kernel):
    packed = kernel.pack([GIVEN[0]] * 8 + GIVEN[1:])
    expected = "overflows; expected a finite number; use smaller decays, normalize=True or logs"
    for act in (
        lambda: packed.block(range(10), range(10)),
        lambda: packed.block([8], [8]),
        lambda: packed.pairs([0, 8], [0, 8]),
        lambda: packed.strip(8, 10),
        packed.diagonal,
    ):
        with pytest.raises(InputError) as caught:
            act()
        assert str(caught.value) == f"the kernel value of trees 8 and 8 {expected}"


@pytest.mark.parametrize("kernel", [SUBSETS, PARTS], ids=lambda kernel: type(kernel).__name__)
def test_logarithms_are_those_of_large_integers(kernel):
    expected = expect_logs(kernel)
    assert np.max(expected) > math.log(np.finfo(float).max)
    np.testing.assert_allclose(kernel.logs(GIVEN), expected, rtol=1e-9)
    np.testing.assert_allclose(kernel.logs(GIVEN[:2], GIVEN), expected[:2], rtol=1e-9)


@pytest.mark.parametrize("kernel", [SUBSETS, PARTS], ids=lambda kernel: type(kernel).__name__)
def test_large_values_are_normalised(kernel):
    logs = np.array(expect_logs(kernel))
    expected = np.exp(logs - np.add.outer(np.diag(logs), np.diag(logs)) / 2)
    one = kernel.__class__(**{**kernel.get_params(), "normalize": True})
    packed = one.pack(GIVEN)
    np.testing.assert_allclose(one(GIVEN), expected, rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(one(GIVEN[::-1], GIVEN), expected[::-1], rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(packed.pairs([0, 1, 2], [1, 1, 1]), expected[:, 1], rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(packed.strip(1, 2), expected[1:2, 1:], rtol=1e-6)
    assert packed.diagonal().tolist() == [1, 1, 1]


def test_a_tree_without_fragments_has_nothing_in_common_with_a_large_one():
    given = [ConstTree("a"), GIVEN[1]]
    kernel = SubsetTreeKernel(decay=1, normalize=True)
    np.testing.assert_allclose(kernel(given), [[0, 0], [0, 1]], rtol=1e-9)
    np.testing.assert_allclose(kernel.pack(given).pairs([0, 1, 1], [1, 0, 1]), [0, 0, 1], rtol=1e-9)
    assert np.isneginf(kernel.logs(given)[0]).all()


def test_many_large_values_that_numbers_can_hold_are_no_overflow():
    tree = ConstTree.from_child_counts([*["x", "N"] * 1020, "S"], [*[0, 1] * 1020, 1020])
    values = SUBSETS([tree] * 60)
    np.testing.assert_allclose(np.log(values), math.log(2**1020 + 1020**2), rtol=1e-12)


def make_comb(n_levels):
    """Make (A (B x) (A (B x) ... ))."""
    labels = [*["x", "B"] * n_levels, *["A"] * n_levels]
    return ConstTree.from_child_counts(labels, [*[0, 1] * n_levels, 1, *[2] * (n_levels - 1)])


def test_a_comb_of_10000_nodes_has_the_subset_trees_of_a_formula():
    n, decay = 3333, 0.4
    tree = make_comb(n)
    assert tree.n_nodes == 9999
    # Two nodes as far from the end, and two that are not: the shorter comb ends where the other goes on.
    same, shorter = np.empty(n), np.empty(n)
    same[0], shorter[0] = decay * (1 + decay), 0
    for height in range(1, n):
        same[height] = decay * (1 + decay) * (1 + same[height - 1])
        shorter[height] = decay * (1 + decay) * (1 + shorter[height - 1])
    expected = same.sum() + 2 * (shorter * np.arange(n - 1, -1, -1)).sum() + decay * n**2
    kernel = SubsetTreeKernel(decay=decay)
    assert kernel([tree]).item() == pytest.approx(expected, rel=1e-9)
    assert kernel.pack([tree]).diagonal().item() == pytest.approx(expected, rel=1e-9)
    assert SubtreeKernel()([tree]).item() == pytest.approx(n**2 + n, rel=1e-9)


def test_a_comb_of_10000_nodes_has_the_partial_trees_of_a_formula():
    n, decay, depth_decay = 3333, 0.4, 0.3
    word = depth_decay * decay**2
    tag = depth_decay * (decay**2 + word)
    values = np.empty(n)
    values[0] = depth_decay * (decay**2 + tag)
    for height in range(1, n):
        values[height] = depth_decay * (decay**2 + tag + values[height - 1] * (1 + tag))
    # Two nodes have in common what the one nearer to the end has with itself; they are so many pairs.
    n_pairs = 2 * np.arange(n - 1, -1, -1) + 1
    expected = (values * n_pairs).sum() + n**2 * (word + tag)
    kernel = PartialTreeKernel(decay=decay, depth_decay=depth_decay)
    assert kernel([make_comb(n)]).item() == pytest.approx(expected, rel=1e-9)
    assert kernel.pack([make_comb(n)]).diagonal().item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow_cases
@pytest.mark.parametrize("max_children", [None, 1, 5])
def test_a_node_of_5000_children_has_the_partial_trees_of_a_formula(max_children):
    n, depth_decay = 5000, 1e-4
    tree = ConstTree.from_child_counts([*["x"] * n, "S"], [*[0] * n, n])
    sizes = np.arange((max_children or n) + 1)
    logs = 2 * (gammaln(n + 1) - gammaln(sizes + 1) - gammaln(n - sizes + 1)) + sizes * math.log(depth_decay)
    expected = depth_decay * math.exp(logsumexp(logs)) + depth_decay * n**2
    kernel = PartialTreeKernel(decay=1, depth_decay=depth_decay, max_children=max_children)
    assert kernel([tree]).item() == pytest.approx(expected, rel=1e-9)
    assert kernel.pack([tree]).pairs([0], [0]).item() == pytest.approx(expected, rel=1e-9)


def test_a_node_of_5000_tags_has_the_subset_trees_of_a_formula():
    n, decay = 5000, 0.1
    tree = ConstTree.from_child_counts([*["x", "N"] * n, "S"], [*[0, 1] * n, n])
    expected = decay * (1 + decay) ** n + decay * n**2
    assert SubsetTreeKernel(decay=decay)([tree]).item() == pytest.approx(expected, rel=1e-9)


def test_a_long_chain_has_the_subset_trees_of_a_formula():
    n, decay = 2000, 0.4
    chain = ConstTree.from_child_counts(["x", *["A"] * n], [0, *[1] * n])
    heights = np.arange(1, n + 1)
    # Above the production over the word, two chains share as many as the shorter one has.
    values = np.cumsum(decay**heights)
    expected = values.sum() + 2 * (values[: n - 2] * np.arange(n - 2, 0, -1)).sum()
    assert SubsetTreeKernel(decay=decay)([chain]).item() == pytest.approx(expected, rel=1e-9)
