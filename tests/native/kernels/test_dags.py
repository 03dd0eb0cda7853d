from collections import Counter

import numpy as np
import pytest
from oracle.consttree import Node, nodes, words
from oracle.kernels import dags as twin
from strategies import as_const_tree

from treewright.data.forest import Forest
from treewright.kernels.dag import Dag, Translation, find_subtrees
from treewright.native.kernels.dags import count_inner

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")


def make_dag(trees, **options):
    return Dag(Forest.from_trees([as_const_tree(tree) for tree in trees]), **options)


def as_nodes(dag):
    """Return the subtrees of a dag as nested tuples."""
    found = []
    for begin, end in zip(dag.subtrees.indptr[:-1], dag.subtrees.indptr[1:], strict=True):
        symbol, *children = dag.subtrees.values[begin:end].tolist()
        found.append(Node(dag.forest.labels[symbol], tuple(found[child] for child in children)))
    return found


def list_sequences(sequences):
    bounds = zip(sequences.indptr[:-1], sequences.indptr[1:], strict=True)
    return [tuple(sequences.values[begin:end].tolist()) for begin, end in bounds]


def as_productions(dag):
    labels = dag.forest.labels
    return [tuple(labels[symbol] for symbol in each) for each in list_sequences(dag.productions.sequences)]


def as_edges(dag):
    productions = as_productions(dag)
    found = list_sequences(dag.edges.sequences)
    return [(productions[parent], place, productions[child]) for parent, place, child in found]


def as_counters(bags, names):
    """Return what the bag of each tree holds, by its name."""
    found = []
    for begin, end in zip(bags.indptr[:-1], bags.indptr[1:], strict=True):
        ids, counts = bags.ids[begin:end].tolist(), bags.counts[begin:end].tolist()
        assert len(set(ids)) == len(ids)
        found.append(Counter({names[number]: count for number, count in zip(ids, counts, strict=True)}))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_equal_subtrees_are_one(seed):
    trees = twin.draw_trees(seed)
    assert as_nodes(make_dag(trees)) == twin.list_subtrees(trees)


@pytest.mark.parametrize("n_together", [1, 3, 8, 100])
def test_equal_subtrees_of_different_chunks_are_several(n_together):
    trees = twin.draw_trees(1)
    chunks = [trees[begin : begin + n_together] for begin in range(0, len(trees), n_together)]
    expected = [subtree for chunk in chunks for subtree in twin.list_subtrees(chunk)]
    assert as_nodes(make_dag(trees, n_together=n_together)) == expected


@pytest.mark.parametrize("n_together", [2, 100])
def test_bags_count_the_subtrees_of_each_tree(n_together):
    trees = twin.draw_trees(2)
    dag = make_dag(trees, n_together=n_together)
    assert as_counters(dag.bags, as_nodes(dag)) == [Counter(nodes(tree)) for tree in trees]


def test_bags_have_children_before_parents():
    dag = make_dag(twin.draw_trees(3))
    assert all((np.diff(ids) != 0).all() for ids in np.split(dag.bags.ids, dag.bags.indptr[1:-1]))
    for begin, end in zip(dag.bags.indptr[:-1], dag.bags.indptr[1:], strict=True):
        seen = set()
        for subtree in dag.bags.ids[begin:end].tolist():
            first, last = dag.subtrees.indptr[subtree : subtree + 2]
            assert seen.issuperset(dag.subtrees.values[first + 1 : last].tolist())
            seen.add(subtree)


def test_the_last_tree_of_each_subtree_is_known():
    trees = twin.draw_trees(4)
    dag = make_dag(trees)
    expected = [max(at for at, tree in enumerate(trees) if one in nodes(tree)) for one in as_nodes(dag)]
    assert dag.last.tolist() == expected


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_together", [2, 100])
def test_productions_are_numbered_once_in_all_chunks(seed, n_together):
    trees = twin.draw_trees(seed)
    dag = make_dag(trees, n_together=n_together)
    found = as_productions(dag)
    assert len(found) == len(set(found)) == dag.productions.n_kinds
    assert set(found) == twin.list_productions(trees)
    for one, number in zip(as_nodes(dag), dag.productions.numbers.tolist(), strict=True):
        assert (found[number] == twin.production(one)) if one.children else number == -1


@pytest.mark.parametrize("seed", range(4))
def test_edges_are_both_productions_and_the_place(seed):
    trees = twin.draw_trees(seed)
    dag = make_dag(trees, n_together=3)
    found = as_edges(dag)
    assert len(found) == len(set(found))
    assert set(found) == twin.list_edges(trees)


def test_edges_stand_in_the_slots_of_children():
    dag = make_dag(twin.draw_trees(5))
    edges = as_edges(dag)
    for number, one in enumerate(as_nodes(dag)):
        slots = dag.edges.numbers[dag.subtrees.indptr[number] : dag.subtrees.indptr[number + 1]]
        assert slots[0] == -1
        for place, (slot, child) in enumerate(zip(slots[1:], one.children, strict=True), start=1):
            expected = (twin.production(one), place, twin.production(child)) if child.children else None
            assert (edges[slot] if slot >= 0 else None) == expected


def test_bags_count_productions_labels_and_words():
    trees = twin.draw_trees(6)
    dag = make_dag(trees, n_together=2)
    inner = [[node for node in nodes(tree) if node.children] for tree in trees]
    expected = [Counter(map(twin.production, each)) for each in inner]
    assert as_counters(dag.production_bags, as_productions(dag)) == expected
    expected = [Counter(node.label for node in nodes(tree)) for tree in trees]
    assert as_counters(dag.symbol_bags, dag.forest.labels) == expected
    assert as_counters(dag.word_bags, dag.forest.labels) == [Counter(words(tree)) for tree in trees]


@pytest.mark.parametrize("seed", range(4))
def test_what_another_forest_has_is_found_or_said_to_be_missing(seed):
    trees, others = twin.draw_trees(seed), [*twin.draw_trees(seed + 10), Node("Z", (Node("A"),))]
    dag, other = make_dag(trees), make_dag(others)
    known = Translation.between(dag, other)
    named = [
        (dag.forest.labels, other.forest.labels, known.symbols),
        (as_productions(dag), as_productions(other), known.productions),
        (as_edges(dag), as_edges(other), known.edges),
        (as_nodes(dag), as_nodes(other), find_subtrees(dag, other)),
    ]
    for ours, theirs, numbers in named:
        places = {name: number for number, name in enumerate(ours)}
        assert numbers.tolist() == [places.get(name, -1) for name in theirs]
        assert -1 in numbers


def test_nodes_that_are_no_leaves_are_counted():
    dag = make_dag(twin.draw_trees(7))
    counts = np.empty(len(dag.symbols), dtype=np.int64)
    count_inner(dag.subtrees, counts)
    assert counts.tolist() == [twin.count_inner(one) for one in as_nodes(dag)]


def test_no_trees_and_empty_trees_have_no_subtrees():
    assert as_nodes(make_dag([])) == []
    leaf = Forest.from_trees([as_const_tree(Node("a"))]).without_leaves()
    assert as_nodes(Dag(leaf)) == []
    assert as_counters(Dag(leaf).bags, []) == [Counter()]
