from itertools import pairwise

import numpy as np
import pytest
from oracle.consttree import Node, nodes
from oracle.kernels.dags import draw_trees, list_pairs, production
from strategies import as_const_tree

from treewright.data.forest import Forest
from treewright.kernels import dag as module
from treewright.kernels.dag import Dag, Translation

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")


def make_dag(trees, **options):
    return Dag(Forest.from_trees([as_const_tree(tree) for tree in trees]), **options)


def list_postings(dag):
    """Return the trees and counts of each place of the listing."""
    listing = dag.listing
    bounds = zip(listing.first_posting[:-1], listing.first_posting[1:], strict=True)
    return [
        list(zip(listing.trees[begin:end].tolist(), listing.counts[begin:end].tolist(), strict=True))
        for begin, end in bounds
    ]


@pytest.mark.parametrize("n_together", [1, 3, 100])
def test_the_places_of_a_production_stand_together_the_latest_first(n_together):
    trees = draw_trees(0)
    dag = make_dag(trees, n_together=n_together)
    listing, kinds = dag.listing, dag.productions.numbers[dag.order]
    n_seen = 0
    for chunk in range(len(listing.chunks) - 1):
        for kind in range(dag.productions.n_kinds):
            places = slice(listing.begin[chunk, kind], listing.end[chunk, kind])
            last = listing.last[places]
            assert (kinds[places] == kind).all()
            assert (last // n_together == chunk).all()
            assert (np.diff(last) <= 0).all()
            n_seen += len(last)
    assert n_seen == len(dag.order)


@pytest.mark.parametrize("n_together", [2, 100])
def test_postings_say_how_often_each_tree_has_a_subtree(n_together):
    trees = draw_trees(1)
    dag = make_dag(trees, n_together=n_together)
    assert sum(count for found in list_postings(dag) for _, count in found) == sum(
        bool(node.children) for tree in trees for node in nodes(tree)
    )
    for found, last in zip(list_postings(dag), dag.listing.last, strict=True):
        numbers = [tree for tree, _ in found]
        assert numbers == sorted(set(numbers))
        assert numbers[-1] == last


@pytest.mark.parametrize("n_together", [2, 100])
def test_followers_of_an_edge_have_a_child_of_its_production_at_its_place(n_together):
    dag = make_dag(draw_trees(2), n_together=n_together)
    edges, followers = dag.edges.sequences, dag.followers
    for chunk in range(len(dag.listing.chunks) - 1):
        for edge in range(dag.edges.n_kinds):
            parent, place, child = edges.values[edges.indptr[edge] : edges.indptr[edge + 1]]
            found = followers.places[followers.indptr[chunk, edge] : followers.indptr[chunk, edge + 1]]
            assert (dag.productions.numbers[dag.order[found]] == parent).all()
            assert (dag.listing.child_kinds[dag.listing.indptr[found] + place - 1] == child).all()
            assert (np.diff(dag.listing.last[found]) <= 0).all()
    assert followers.indptr[-1, -1] == len(followers.places)


def test_pairs_are_labels_of_parents_and_children():
    trees, others = draw_trees(3), [*draw_trees(13), Node("Z", (Node("A"), Node("B", (Node("z"),))))]
    dag, other = make_dag(trees), make_dag(others)
    names = []
    for one, given in ((dag, trees), (other, others)):
        codes = [divmod(code, one.n_symbols) for code in one.pairs[1].tolist()]
        names.append([(one.forest.labels[parent], one.forest.labels[child]) for parent, child in codes])
        assert set(names[-1]) == list_pairs(given)
    places = {name: number for number, name in enumerate(names[0])}
    found = Translation.between(dag, other).pairs.tolist()
    assert found == [places.get(name, -1) for name in names[1]]


def test_blocks_hold_one_production_each():
    dag = make_dag(draw_trees(4), n_together=3)
    places = dag.blocks.places
    kinds = dag.productions.numbers[dag.order]
    owners = dag.last[dag.order] // 3
    blocks = [(owners[begin], kinds[begin]) for begin in places[:-1]]
    assert len(set(blocks)) == len(blocks)
    for block, (begin, end) in enumerate(pairwise(places)):
        assert set(zip(owners[begin:end], kinds[begin:end], strict=True)) == {blocks[block]}


@pytest.mark.parametrize("size", [5, 1 << 40])
def test_keys_of_any_size_are_sorted_as_by_lexsort(size):
    rng = np.random.default_rng(0)
    keys = tuple(rng.integers(-size, size, 50) for _ in range(3))
    assert module._sort(keys).tolist() == np.lexsort(keys).tolist()


def test_one_leaf_and_no_trees_have_empty_indices():
    for trees in ([], [Node("a")]):
        dag = make_dag(trees)
        assert len(dag.order) == dag.productions.n_kinds == dag.edges.n_kinds == 0
        assert len(dag.pairs[1]) == 0
        assert len(dag.listing.last) == len(dag.followers.places) == len(dag.blocks.pair_blocks) == 0


def test_labels_that_words_share_do_not_mix_leaves_with_others():
    leaf, inner = Node("A"), Node("A", (Node("A"),))
    dag = make_dag([Node("A", (leaf, inner))])
    assert len(dag.symbols) == 3
    assert dag.word_bags.counts.tolist() == [2]
    assert dag.symbol_bags.counts.tolist() == [4]
    assert dag.productions.n_kinds == len({production(inner), production(Node("A", (leaf, inner)))})
