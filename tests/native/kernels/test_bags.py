from collections import Counter

import numpy as np
import pytest
from oracle.kernels import bags as twin

from treewright.native.kernels.bags import Postings, Sorted, add_bags, evaluate_bags, mirror
from treewright.native.kernels.dags import Bags

N_KINDS = 6


def draw_counts(rng, n_trees):
    """Draw what each tree has; some have nothing."""
    drawn = [rng.integers(N_KINDS, size=rng.integers(8)).tolist() for _ in range(n_trees)]
    return [Counter(numbers) for numbers in drawn]


def make_bags(rng, counts):
    """Put counts into arrays, those of each tree in any order."""
    entries = [[(kind, tree[kind]) for kind in rng.permutation(list(tree))] for tree in counts]
    first = np.cumsum([0, *map(len, entries)])
    ids = np.array([kind for tree in entries for kind, _ in tree], dtype=np.int32)
    return Bags(first, ids, np.array([float(count) for tree in entries for _, count in tree]))


def make_postings(counts):
    found = [
        [(tree, each[kind]) for tree, each in enumerate(counts) if kind in each] for kind in range(N_KINDS)
    ]
    first = np.cumsum([0, *map(len, found)])
    trees = np.array([tree for kind in found for tree, _ in kind], dtype=np.int32)
    return Postings(first, trees, np.array([float(count) for kind in found for _, count in kind]))


def rename(counts, known):
    """Return counts under the numbers that others have, without what these do not have."""
    return Counter({known[kind]: count for kind, count in counts.items() if known[kind] >= 0})


@pytest.mark.parametrize("seed", range(6))
def test_rows_have_the_weighted_products_of_shared_counts(seed):
    rng = np.random.default_rng(seed)
    ours, others = draw_counts(rng, 7), draw_counts(rng, 5)
    known = rng.permutation(N_KINDS + 2).astype(np.int32)[:N_KINDS]
    known[known >= N_KINDS] = -1
    weights, numbers = rng.random(N_KINDS), np.array([4, 0, 0, 2])
    out = rng.random((4, 7))
    expected = out + [
        [twin.share(rename(others[row], known), tree, weights) for tree in ours] for row in numbers
    ]
    add_bags(make_bags(rng, others), known, weights, make_postings(ours), numbers, False, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_half_a_square_begins_at_its_diagonal(seed):
    rng = np.random.default_rng(seed)
    counts, known, weights = draw_counts(rng, 6), np.arange(N_KINDS, dtype=np.int32), rng.random(N_KINDS)
    out = np.zeros((6, 6))
    add_bags(make_bags(rng, counts), known, weights, make_postings(counts), np.arange(6), True, out)
    expected = np.triu([[twin.share(one, other, weights) for other in counts] for one in counts])
    np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 130])
def test_the_lower_half_is_filled_from_the_upper(n):
    upper = np.triu(np.random.default_rng(n).random((n, n)))
    expected = twin.mirror(upper.tolist())
    mirror(upper)
    assert upper.tolist() == expected


def test_a_part_of_wider_rows_is_mirrored_in_place():
    values = np.triu(np.random.default_rng(0).random((3, 5)))
    mirror(values[:, :3])
    assert values[:, :3].tolist() == values[:, :3].T.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_pairs_add_the_weighted_products_of_shared_counts(seed):
    rng = np.random.default_rng(seed)
    counts, weights = draw_counts(rng, 6), rng.random(N_KINDS)
    bags = make_bags(rng, counts)
    trees = Sorted(bags.indptr, bags.ids, bags.ids, bags.counts)
    pairs = rng.integers(6, size=(20, 2))
    out = np.ones(20)
    evaluate_bags(trees, weights, pairs, np.zeros((N_KINDS, 2), dtype=np.int64), out)
    expected = [1 + twin.share(counts[one], counts[other], weights) for one, other in pairs]
    np.testing.assert_allclose(out, expected, rtol=1e-12)
