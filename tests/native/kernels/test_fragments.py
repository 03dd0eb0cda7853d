import numpy as np
import pytest
from oracle.kernels import fragments as twin

from treewright.data.consttree import ConstTree
from treewright.data.forest import Forest
from treewright.kernels.dag import Dag
from treewright.native.kernels.fragments import (
    LEAF,
    WORD,
    FragmentLimits,
    FragmentTrie,
    Measures,
    insert_fragments,
    match_fragments,
    mine_fragments,
)

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

SEEDS = range(6)


def draw_tree(rng, depth=0):
    """Draw a tree in which a label may be that of a leaf or of another node."""
    label = "ABC"[rng.integers(3)]
    if depth and (depth > 3 or rng.random() < 0.3):
        return ConstTree(label if rng.random() < 0.3 else label.lower())
    return ConstTree(label, [draw_tree(rng, depth + 1) for _ in range(rng.integers(1, 4))])


def draw_trees(seed, n_trees=8):
    rng = np.random.default_rng(seed)
    trees = [draw_tree(rng) for _ in range(100)]
    return [tree for tree in trees if 4 < tree.n_nodes < 20][:n_trees]


def make_dag(trees):
    return Dag(Forest.from_trees(trees), n_together=len(trees))


def mine(trees, coef, counted, decay, limits):
    """Return the fragments of the largest values as text, with these, and how many were looked at."""
    dag = make_dag(trees)
    kinds = dag.productions.numbers.copy()
    inner = set(dag.symbols[kinds >= 0].tolist())
    for subtree, symbol in enumerate(dag.symbols.tolist()):
        if kinds[subtree] < 0:
            kinds[subtree] = LEAF if symbol in inner else WORD
    examples = np.zeros(dag.productions.n_kinds, dtype=np.int64)
    examples[kinds[kinds >= 0]] = np.flatnonzero(kinds >= 0)
    measures = Measures(weigh(dag, coef), weigh(dag, counted) if counted else np.empty(0))
    records, best, n_visits = mine_fragments(dag.subtrees, kinds, examples, measures, decay, limits)
    found = [(read(dag, records, record), records.values[record]) for record in best.tolist()]
    return found, n_visits


def weigh(dag, coef):
    weights = np.zeros(len(dag.symbols))
    np.add.at(weights, dag.bags.ids, np.repeat(coef, np.diff(dag.bags.indptr)) * dag.bags.counts)
    return weights


def read(dag, records, record):
    """Write a fragment by its record: nodes are counted from the root and from right to left."""
    expanded = {}
    while record >= 0:
        expanded[records.positions[record]] = records.kinds[record]
        record = records.parents[record]
    productions, labels = dag.productions.sequences, dag.forest.labels
    position = -1

    def write(symbol):
        nonlocal position
        position += 1
        if position not in expanded:
            return labels[symbol]
        kind = expanded[position]
        children = productions.values[productions.indptr[kind] + 1 : productions.indptr[kind + 1]]
        return twin.write(labels[symbol], [write(child) for child in children[::-1]][::-1])

    return write(productions.values[productions.indptr[expanded[0]]])


def assert_heaviest(found, expected, n):
    """Check values, and that they are those of the heaviest, in order."""
    assert len({text for text, _ in found}) == len(found)
    for text, value in found:
        assert value == pytest.approx(expected[text], abs=1e-12)
    heaviest = sorted((abs(value) for value in expected.values() if abs(value) > 1e-12), reverse=True)[:n]
    assert [abs(value) for _, value in found][: len(heaviest)] == pytest.approx(heaviest)
    assert all(abs(value) < 1e-12 for _, value in found[len(heaviest) :])


@pytest.mark.parametrize("decay", [0.4, 1.0])
@pytest.mark.parametrize("n", [1, 7, 100_000])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_heaviest_fragments_are_those_of_all_that_are_listed(seed, n, decay):
    trees = draw_trees(seed)
    coef = np.random.default_rng(seed).normal(size=len(trees)).tolist()
    found, _ = mine(trees, coef, None, decay, FragmentLimits(n, 1000, 10**7))
    assert_heaviest(found, twin.values(trees, coef, twin.subset_trees, decay), n)


@pytest.mark.parametrize("n", [3, 100_000])
@pytest.mark.parametrize("seed", SEEDS)
def test_counts_are_factors_of_values(seed, n):
    trees = draw_trees(seed)
    coef = [*np.random.default_rng(seed).normal(size=len(trees) - 1).tolist(), 0.0]
    found, _ = mine(trees, coef, [0.0] * (len(trees) - 1) + [2.0], 0.6, FragmentLimits(n, 1000, 10**7))
    own = twin.subset_trees(trees[-1])
    values = twin.values(trees, coef, twin.subset_trees, 0.6)
    assert_heaviest(found, {text: 2 * count * values[text] for text, count in own.items()}, n)


@pytest.mark.parametrize("max_size", [1, 2, 4])
def test_no_fragment_has_more_productions_than_the_limit(max_size):
    trees = draw_trees(0)
    coef = np.random.default_rng(0).normal(size=len(trees)).tolist()
    found, _ = mine(trees, coef, None, 0.9, FragmentLimits(10**5, max_size, 10**7))
    values = twin.values(trees, coef, twin.subset_trees, 0.9)
    small = {text: value for text, value in values.items() if twin.size(text) <= max_size}
    assert_heaviest(found, small, 10**5)


def test_bounds_spare_most_of_the_search():
    trees = draw_trees(1, n_trees=20)
    coef = np.random.default_rng(1).normal(size=len(trees)).tolist()
    _, all_visits = mine(trees, coef, None, 0.3, FragmentLimits(10**6, 1000, 10**7))
    _, few_visits = mine(trees, coef, None, 0.3, FragmentLimits(5, 1000, 10**7))
    assert 4 * few_visits < all_visits


def test_a_search_that_is_too_long_stops_and_says_so():
    trees = draw_trees(1, n_trees=20)
    coef = np.random.default_rng(1).normal(size=len(trees)).tolist()
    found, n_visits = mine(trees, coef, None, 1.0, FragmentLimits(10**6, 1000, 50))
    assert 50 < n_visits < 500
    assert 0 < len(found) <= n_visits


def build_trie(dag, roots, n_nodes):
    trie = FragmentTrie(
        np.full((1 << (2 * n_nodes).bit_length(), 4), -1, dtype=np.int32),
        np.full(n_nodes, -1, dtype=np.int32),
        np.zeros(n_nodes, dtype=np.uint64),
    )
    numbers = np.arange(len(roots), dtype=np.int32)
    stack = np.empty(100, dtype=np.int32)
    n = insert_fragments(dag.subtrees, dag.productions.numbers, roots, numbers, trie, stack)
    return trie, n


@pytest.mark.parametrize("seed", SEEDS)
def test_matches_are_the_fragments_of_each_subtree_at_its_root(seed):
    rng = np.random.default_rng(seed)
    trees = draw_trees(seed)
    texts = sorted({text for tree in trees for text in twin.subset_trees(tree)})
    chosen = sorted(rng.permutation(texts)[:60].tolist())
    # All in one dag, so that productions have the same numbers.
    dag = make_dag([*(ConstTree.parse(text) for text in chosen), *trees])
    roots = dag.bags.ids[dag.bags.indptr[1:] - 1]
    trie, n_nodes = build_trie(dag, roots[: len(chosen)], 1 + sum(map(twin.size, chosen)))
    assert len(chosen) < n_nodes <= 1 + sum(map(twin.size, chosen))
    first, found = match_fragments(dag.subtrees, dag.productions.numbers, trie)
    for tree, root in zip(trees, roots[len(chosen) :].tolist(), strict=True):
        matched = sorted(chosen[feature] for feature in found[first[root] : first[root + 1]])
        assert matched == sorted(set(twin.expand(tree)) & set(chosen))


def test_an_empty_trie_matches_nothing():
    dag = make_dag(draw_trees(0))
    trie, n_nodes = build_trie(dag, np.empty(0, dtype=np.int32), 1)
    assert n_nodes == 1
    first, found = match_fragments(dag.subtrees, dag.productions.numbers, trie)
    assert len(found) == 0
    assert not first.any()
