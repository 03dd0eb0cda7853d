import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.consttree import Node, labels, sizes
from oracle.kernels.dags import draw_trees, without_leaves
from strategies import as_const_tree, nodes

from treewright.data.consttree import ConstTree
from treewright.data.forest import Forest

FORESTS = st.lists(nodes(max_leaves=6) | st.sampled_from("ab").map(Node), max_size=5)


def make_forest(trees):
    return Forest.from_trees([as_const_tree(tree) for tree in trees])


def describe(forest):
    """Return the labels and the sizes of each tree."""
    bounds = list(zip(forest.indptr[:-1], forest.indptr[1:], strict=True))
    assert len(bounds) == forest.n_trees
    return [
        ([forest.labels[symbol] for symbol in forest.symbols[begin:end]], forest.sizes[begin:end].tolist())
        for begin, end in bounds
    ]


def expect(trees):
    return [(labels(tree), sizes(tree)) if tree else ([], []) for tree in trees]


@given(FORESTS)
def test_trees_stand_one_after_the_other_in_post_order(trees):
    assert describe(make_forest(trees)) == expect(trees)


@given(FORESTS)
def test_symbols_are_numbered_as_they_come(trees):
    forest = make_forest(trees)
    assert forest.labels == list(dict.fromkeys(label for tree in trees for label in labels(tree)))


def test_arrays_have_the_types_that_compiled_code_takes():
    for trees in ([], [Node("a")], draw_trees(0)):
        forest = make_forest(trees)
        for made in (forest, forest.without_leaves(), forest.joined(forest), forest.select([])):
            types = [made.symbols.dtype, made.sizes.dtype, made.indptr.dtype]
            assert types == [np.int32, np.int32, np.int64]


def test_parts_of_trees_are_trees():
    tree = ConstTree.parse("(S (NP (N Mary)) (VP (V sleeps)))")
    forest = Forest.from_trees([tree.children[1], tree, tree.children[0].children[0]])
    expected = [["sleeps", "V", "VP"], list(tree.labels), ["Mary", "N"]]
    assert [names for names, _ in describe(forest)] == expected


@given(FORESTS, st.data())
def test_some_trees_are_chosen_by_their_numbers(trees, data):
    numbers = data.draw(st.lists(st.integers(0, len(trees) - 1), max_size=6)) if trees else []
    found = make_forest(trees).select(numbers)
    assert describe(found) == expect([trees[number] for number in numbers])


@given(FORESTS, FORESTS)
def test_two_forests_are_joined(trees, others):
    found = make_forest(trees).joined(make_forest(others))
    assert describe(found) == expect([*trees, *others])
    assert len(set(found.labels)) == len(found.labels)


@given(FORESTS)
def test_without_leaves_tags_are_leaves_and_a_lone_leaf_is_nothing(trees):
    found = make_forest(trees).without_leaves()
    assert describe(found) == expect([without_leaves(tree) for tree in trees])


@pytest.mark.parametrize("random_state", range(3))
def test_what_was_chosen_or_stripped_is_joined_as_any_other(random_state):
    trees = draw_trees(random_state)
    forest = make_forest(trees)
    found = forest.without_leaves().select([3, 0]).joined(forest.select([1]))
    assert describe(found) == expect([without_leaves(trees[3]), without_leaves(trees[0]), trees[1]])
