from fractions import Fraction

import numpy as np
import pytest
from oracle.consttree import Node, nodes
from oracle.kernels import ptk as plain
from oracle.kernels import sptk as twin
from oracle.kernels.dags import draw_trees, draw_wide
from strategies import as_const_tree

from treewright.data.forest import Forest
from treewright.errors import InputError
from treewright.kernels.indices import PartialOptions, SmoothedIndex, Words

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

KNOWN = ["a", "b", "B", "unseen"]
"""One of them is a label too."""
TABLE = [[1, 0.5, 0.25, 0.1], [0.5, 1, 0.125, 0.2], [0.25, 0.125, 1, 0.3], [0.1, 0.2, 0.3, 1]]
SIMILARITY = twin.make_similarity(KNOWN, TABLE)
NUMBERS = {word: number for number, word in enumerate(KNOWN)}
DECAYS = [(1.0, 1.0), (0.4, 0.3)]
MOST_LISTED = 80


def make_index(trees, decay=0.4, depth_decay=0.3, longest=None, table=TABLE):
    forest = Forest.from_trees([as_const_tree(tree) for tree in trees])
    words = Words(NUMBERS, None, np.array(table, dtype=np.float32))
    return SmoothedIndex(forest, options=PartialOptions(decay, depth_decay, longest or 0), words=words)


def compare_all(trees, others, decay=0.4, depth_decay=0.3, longest=None, similarity=SIMILARITY):
    return [
        [twin.compare(one, other, decay, depth_decay, longest, similarity) for other in others]
        for one in trees
    ]


def draw_small(seed):
    """Draw trees of which all pairs of partial trees can be listed."""
    drawn = draw_trees(seed, n_trees=30)
    return [tree for tree in drawn if sum(map(plain.count_partial_trees, nodes(tree))) < MOST_LISTED][:5]


def all_pairs(n):
    return np.ascontiguousarray(np.argwhere(np.ones((n, n))))  # as the package has them


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("longest", [None, 2])
def test_the_recursion_counts_what_is_listed(seed, longest):
    trees, decays = draw_small(seed), (Fraction(2, 5), Fraction(1, 3))
    similarity = twin.make_similarity(KNOWN, [[Fraction(value) for value in row] for row in TABLE])
    listed = [plain.list_partial_trees(tree, decays[0], longest) for tree in trees]
    expected = [[twin.count_shared(one, other, *decays, similarity) for other in listed] for one in listed]
    assert compare_all(trees, trees, *decays, longest, similarity) == expected


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("longest", [None, 1, 2])
@pytest.mark.parametrize(("decay", "depth_decay"), DECAYS)
def test_pairs_equal_the_recursion(seed, longest, decay, depth_decay):
    trees = draw_trees(seed)
    found = make_index(trees, decay, depth_decay, longest).evaluate(all_pairs(len(trees)))
    expected = compare_all(trees, trees, decay, depth_decay, longest)
    np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_other_forests_equal_the_recursion(seed):
    trees = draw_trees(seed)
    others = [*draw_trees(seed + 50, n_trees=4), Node("Z", (Node("unseen"), Node("z")))]
    ours, theirs = make_index(trees), make_index(others)
    numbers = np.array([4, 1, 1, 3])
    found = ours.compare(theirs, ours.translate(theirs), numbers, False)
    expected = compare_all([others[number] for number in numbers], trees)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("longest", [None, 2])
def test_nodes_with_many_pairs_of_similar_children_equal_the_recursion(longest):
    rng = np.random.default_rng(2)
    trees = [draw_wide(rng, n_children) for n_children in (3, 5, 9, 15)]
    found = make_index(trees, longest=longest).evaluate(all_pairs(4))
    np.testing.assert_allclose(found, np.ravel(compare_all(trees, trees, longest=longest)), rtol=1e-6)


def test_tags_over_similar_words_and_other_nodes_of_their_classes_meet():
    tag, deep, wide = (
        Node("A", (Node("a"),)),
        Node("A", (Node("b", (Node("a"),)),)),
        Node("A", (Node("b"),) * 2),
    )
    trees = [Node("S", (tag, deep)), Node("S", (tag, tag)), Node("S", (wide,)), tag]
    np.testing.assert_allclose(
        make_index(trees).evaluate(all_pairs(4)), np.ravel(compare_all(trees, trees)), rtol=1e-6
    )


def test_negative_similarities_count_as_they_are():
    table = (2 * np.eye(4) - 1) * np.array(TABLE)
    trees = draw_trees(3)
    expected = compare_all(trees, trees, similarity=twin.make_similarity(KNOWN, table))
    found = make_index(trees, table=table).evaluate(all_pairs(len(trees)))
    np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("longest", [None, 2])
def test_logarithms_are_those_of_values(longest):
    trees = [*draw_trees(9), Node("Z")]
    index = make_index(trees, longest=longest)
    with np.errstate(divide="ignore"):
        expected = np.log(index.evaluate(all_pairs(len(trees))))
    assert np.isneginf(expected).any()
    found = index.evaluate(all_pairs(len(trees)), is_log=True)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_words_that_have_nothing_in_common_have_no_logarithm_of_it():
    table = np.eye(4)
    found = make_index([Node("a"), Node("b")], table=table).evaluate(np.array([[0, 1]]), is_log=True)
    assert np.isneginf(found).all()


def test_logarithms_of_negative_similarities_are_refused():
    with pytest.raises(InputError, match="some similarities are negative; expected 0 or more"):
        make_index([Node("a"), Node("b")], table=-np.array(TABLE)).evaluate(np.array([[0, 1]]), is_log=True)
