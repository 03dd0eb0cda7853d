import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.learn import stagewise as twin
from scipy.sparse import csr_matrix

from treewright.learn.stagewise import BinaryMatrix, TreeGrower
from treewright.learn.trees import join_trees, score_rows
from treewright.native.learn import stagewise as native
from treewright.native.learn.stagewise import GradientPair

N_FEATURES = 4
EIGHTHS = st.integers(1, 16).map(lambda each: each / 8)
LIMITS = (0.5, 1.0)


@st.composite
def problems(draw, max_examples=8):
    """Draw examples with slopes in eighths, so that sums are exact and ties happen."""
    n = draw(st.integers(2, max_examples))
    features = st.sets(st.integers(0, N_FEATURES - 1))
    above = st.integers(0, N_FEATURES).map(lambda number: set(range(number)))
    below = st.integers(0, N_FEATURES).map(lambda number: set(range(number, N_FEATURES)))
    mixed = st.tuples(st.integers(0, 2), st.integers(0, 2)).map(
        lambda each: set(range(each[0])) | set(range(2 + each[1], N_FEATURES))
    )
    kind = draw(st.sampled_from([features, above, below, mixed]))  # all but the first have chains
    examples = draw(st.lists(kind, min_size=n, max_size=n))
    signs = draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n))
    sizes, curvatures = (draw(st.lists(EIGHTHS, min_size=n, max_size=n)) for _ in range(2))
    gradients = [sign * size for sign, size in zip(signs, sizes, strict=True)]
    return examples, (gradients, curvatures)


def as_matrix(examples):
    dense = np.zeros((len(examples), N_FEATURES), dtype=np.int8)
    for row, features in enumerate(examples):
        dense[row, list(features)] = 1
    return csr_matrix(dense)


def list_leaves(tree, node=0, path=frozenset()):
    """Return the value of each leaf, by what leads to it."""
    if tree.features[node] < 0:
        return {path: tree.values[node]}
    feature = int(tree.features[node])
    return list_leaves(tree, tree.present[node], path | {(feature, True)}) | list_leaves(
        tree, tree.absent[node], path | {(feature, False)}
    )


def follows(features, path):
    return all((feature in features) == is_present for feature, is_present in path)


def expected_scores(examples, slopes, max_leaves, sample=None, max_depth=None):
    """Return what a tree says of each example; splits are chosen on the sample, values on all."""
    leaves = twin.grow_leaves(examples, slopes, LIMITS, N_FEATURES, max_leaves, sample, max_depth)
    scores = np.zeros(len(examples))
    for path in leaves:
        members = [each for each, features in enumerate(examples) if follows(features, path)]
        scores[members] = twin.node_value(members, *slopes, *LIMITS, 0.5)
    return scores


@settings(max_examples=60)
@given(problem=problems(), max_leaves=st.integers(2, 6), max_depth=st.none() | st.integers(1, 3))
def test_trees_equal_those_of_the_definition(problem, max_leaves, max_depth):
    examples, slopes = problem
    grower = TreeGrower(
        BinaryMatrix(as_matrix(examples)), max_leaves=max_leaves, damping=LIMITS[1], max_depth=max_depth
    )
    arrays = GradientPair(*map(np.array, slopes))
    expected = expected_scores(examples, slopes, max_leaves, max_depth=max_depth)
    for _ in range(2):  # memory is clean after a tree
        scores = np.zeros(len(examples))
        tree, fall = grower.grow(arrays, LIMITS[0], rate=0.5, scores=scores)
        np.testing.assert_allclose(scores, expected, atol=1e-12)
        assert (tree is None) == (not expected.any()) == (fall == 0)
    if tree is not None:
        np.testing.assert_allclose(score_rows(as_matrix(examples), join_trees([tree])), scores)
        assert len(list_leaves(tree)) <= max_leaves


@settings(max_examples=60)
@given(problem=problems(), data=st.data())
def test_splits_are_chosen_on_the_sample_and_values_on_all(problem, data):
    examples, slopes = problem
    sample = sorted(data.draw(st.sets(st.integers(0, len(examples) - 1), min_size=1)))
    grower = TreeGrower(BinaryMatrix(as_matrix(examples)), max_leaves=4, damping=LIMITS[1])
    scores = np.zeros(len(examples))
    grower.grow(
        *(GradientPair(*map(np.array, slopes)), LIMITS[0]),
        rate=0.5,
        scores=scores,
        sample=np.array(sample),
        weights=np.ones(len(sample)),
    )
    np.testing.assert_allclose(scores, expected_scores(examples, slopes, 4, sample), atol=1e-12)


@pytest.mark.parametrize("score", [-30.0, -1.5, 0.0, 0.25, 800.0, -800.0])
@pytest.mark.parametrize("is_positive", [False, True])
def test_slopes_are_the_derivatives_of_the_loss(score, is_positive):
    slopes = GradientPair(np.zeros(1), np.zeros(1))
    loss = native.fill_slopes(np.array([score]), np.array([is_positive]), np.array([2.0]), slopes)
    sign = 1 if is_positive else -1
    share = 1 / (1 + np.exp(min(700.0, sign * score)))
    assert loss == pytest.approx(2 * np.logaddexp(0, -sign * score))
    assert slopes.gradients[0] == pytest.approx(2 * sign * share)
    assert slopes.curvatures[0] == pytest.approx(2 * share * (1 - share), abs=1e-15)
