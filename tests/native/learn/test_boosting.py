import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.learn import boosting as twin

from treewright.learn.trees import TreeBuilder, join_trees
from treewright.native.learn import boosting as native
from treewright.native.learn.boosting import DecisionTree, FeatureRows, SplitLimits

N_FEATURES = 6
EIGHTHS = st.integers(1, 32).map(lambda each: each / 8)


@st.composite
def problems(draw, max_examples=14):
    """Draw examples with labels and weights in eighths, so that sums are exact and ties happen."""
    n = draw(st.integers(1, max_examples))
    feature_sets = st.sets(st.integers(0, N_FEATURES - 1))
    examples = draw(st.lists(feature_sets, min_size=n, max_size=n))
    labels = draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n))
    weights = draw(st.lists(EIGHTHS, min_size=n, max_size=n))
    return examples, labels, weights


def as_rows(examples):
    first = np.cumsum([0, *map(len, examples)]).astype(np.int64)
    columns = [feature for each in examples for feature in sorted(each)]
    return FeatureRows(first, np.array(columns, dtype=np.int32))


def signed_weights(labels, weights):
    return np.array(labels) * np.array(weights)


def as_nested(tree, node=0):
    if tree.features[node] < 0:
        return None
    below = (as_nested(tree, each[node]) for each in (tree.present, tree.absent))
    return (int(tree.features[node]), *below)


def as_flat(nested):
    """Return a tree of nested tuples as arrays, with a different value in each leaf."""
    nodes = []

    def place(tree):
        number = len(nodes)
        nodes.append([-1, -1, -1])
        if tree is not None:
            nodes[number] = [tree[0], place(tree[1]), place(tree[2])]
        return number

    place(nested)
    features, present, absent = np.array(nodes, dtype=np.int32).T.copy()
    return DecisionTree(features, present, absent, np.where(features < 0, np.arange(len(nodes)) + 1.0, 0.0))


def trees():
    return st.recursive(
        st.none(),
        lambda below: st.tuples(st.integers(0, N_FEATURES - 1), below, below),
        max_leaves=8,
    )


def build(builder, examples, labels, weights, penalty, least=1e-10, lightest=0.0):
    builder.start(as_rows(examples), signed_weights(labels, weights), lightest)
    return as_nested(builder.build(SplitLimits(penalty, least, 1e-10)))


@given(problems(), EIGHTHS)
def test_trees_equal_those_of_the_definition(problem, penalty):
    members = list(range(len(problem[0])))
    expected = twin.build_tree(problem[0], members, *problem[1:], penalty, N_FEATURES)
    assert build(TreeBuilder(N_FEATURES), *problem, penalty) == expected


def test_deep_trees_of_many_examples_equal_those_of_the_definition():
    builder = TreeBuilder(N_FEATURES)
    depths = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        examples = [set(np.flatnonzero(row).tolist()) for row in rng.random((150, N_FEATURES)) < 0.4]
        labels = rng.choice([-1, 1], 150).tolist()
        weights = (rng.integers(1, 9, 150) / 8).tolist()
        expected = twin.build_tree(examples, range(150), labels, weights, 0.5, N_FEATURES)
        assert build(builder, examples, labels, weights, 0.5) == expected
        depths.append(max(len(twin.path_to_leaf(expected, each)) for each in examples))
    assert max(depths) >= 5


@given(problems(), EIGHTHS, EIGHTHS)
def test_trees_with_a_least_gain_equal_those_of_the_definition(problem, penalty, least):
    members = list(range(len(problem[0])))
    expected = twin.build_tree(problem[0], members, *problem[1:], penalty, N_FEATURES, 1e-10, least)
    assert build(TreeBuilder(N_FEATURES), *problem, penalty, least) == expected


def test_a_least_gain_is_asked_of_all_splits_but_that_of_the_root():
    examples, labels, weights = [{0}, {0, 1}, set(), set()], [1, -1, -1, -1], [4.0, 2.0, 2.0, 2.0]
    assert build(TreeBuilder(2), examples, labels, weights, 1.0, 0.5) == (0, (1, None, None), None)
    assert build(TreeBuilder(2), examples, labels, weights, 1.0, 4.0) == (0, None, None)


@given(problems(), EIGHTHS)
def test_features_of_light_examples_are_left_out(problem, least):
    examples, labels, weights = problem
    rows = as_rows(examples)
    kept = FeatureRows(np.empty_like(rows.indptr), np.empty_like(rows.columns))
    masses = np.zeros(N_FEATURES)
    native.keep_heavy(rows, signed_weights(labels, weights), least, masses, kept)
    expected = as_rows(twin.without_light(examples, weights, least))
    assert kept.indptr.tolist() == expected.indptr.tolist()
    assert kept.columns[: kept.indptr[-1]].tolist() == expected.columns.tolist()
    assert not masses.any()


@given(problems(), EIGHTHS, EIGHTHS)
def test_below_the_root_light_features_change_no_tree(problem, penalty, least):
    # A feature whose gradient is larger than the penalty can gain on both sides.
    lightest = min(least, (least + penalty) / 2)
    whole = build(TreeBuilder(N_FEATURES), *problem, penalty, least)
    light = build(TreeBuilder(N_FEATURES), *problem, penalty, least, lightest)
    if whole and light and whole[0] == light[0]:
        assert light == whole


@given(st.lists(st.tuples(problems(), EIGHTHS), min_size=2, max_size=3))
def test_memory_that_is_used_again_changes_no_tree(cases):
    builder = TreeBuilder(N_FEATURES)
    for problem, penalty in cases:
        assert build(builder, *problem, penalty) == build(TreeBuilder(N_FEATURES), *problem, penalty)


@given(problems())
def test_the_largest_gradient_is_the_least_penalty_under_which_nothing_gains(problem):
    examples, labels, weights = problem
    largest = TreeBuilder(N_FEATURES).start(as_rows(examples), signed_weights(labels, weights))
    assert largest == twin.largest_penalty(examples, labels, weights, N_FEATURES)


def test_of_features_that_gain_the_same_the_smallest_is_chosen():
    assert build(TreeBuilder(N_FEATURES), [{2, 4}, {3, 5}], [1, -1], [1.0, 1.0], 0.5) == (2, None, None)


def test_a_split_that_gains_no_more_than_its_node_is_not_made():
    builder = TreeBuilder(N_FEATURES)
    assert build(builder, [{0}, set()], [1, 1], [2.0, 2.0], 0.5) is None
    assert build(builder, [{0}, set()], [1, -1], [2.0, 2.0], 2.0) is None
    assert build(builder, [{0}, set()], [1, -1], [2.0, 2.0], 1.75) == (0, None, None)


@given(problems())
def test_gradients_equal_sums_over_examples(problem):
    examples, labels, weights = problem
    sums = np.zeros(N_FEATURES)
    native.add_gradients(as_rows(examples), signed_weights(labels, weights), sums)
    for feature in range(N_FEATURES):
        members, _ = twin.split(examples, range(len(examples)), feature)
        assert abs(sums[feature]) == twin.gain(members, labels, weights, 0.0)


@given(st.lists(st.tuples(st.floats(-30, 30), st.sampled_from([-1, 1]), EIGHTHS), min_size=1))
def test_weights_and_loss_equal_those_of_the_definition(cases):
    confidences, labels, biases = zip(*cases, strict=True)
    signed = np.zeros(len(cases))
    loss = native.weigh(np.array(confidences), np.array(labels, np.int8), np.array(biases), signed)
    assert math.isclose(loss, twin.loss(confidences, labels, biases), rel_tol=1e-9, abs_tol=1e-11)
    expected = [
        label * twin.weight(*case[:1], label, case[2]) for case, label in zip(cases, labels, strict=True)
    ]
    np.testing.assert_allclose(signed, expected, rtol=1e-10)


@pytest.mark.parametrize("margin", [-5000.0, 5000.0])
def test_large_margins_have_finite_weights_and_losses(margin):
    signed = np.zeros(1)
    loss = native.weigh(np.array([margin]), np.array([1], np.int8), np.array([2.0]), signed)
    assert (loss, signed[0]) == ((10000, 2) if margin < 0 else (0, 0))


@given(st.lists(st.sets(st.integers(0, N_FEATURES - 1)), min_size=1, max_size=8), trees())
def test_examples_fall_into_the_leaves_that_their_features_lead_to(examples, nested):
    tree = as_flat(nested)
    leaves, wanted = np.zeros(len(examples), np.int32), np.zeros(N_FEATURES, np.int32)
    native.percolate(as_rows(examples), tree, wanted, np.zeros(len(tree.features), np.int64), leaves)
    for example, leaf in zip(examples, leaves, strict=True):
        node = 0
        for feature, is_present in twin.path_to_leaf(nested, example):
            assert tree.features[node] == feature
            node = tree.present[node] if is_present else tree.absent[node]
        assert leaf == node
    assert not wanted.any()


@given(
    st.lists(st.sets(st.integers(0, N_FEATURES - 1)), min_size=1, max_size=5), st.lists(trees(), max_size=4)
)
def test_scores_are_sums_of_the_leaves_of_all_trees(examples, nested):
    flat = [as_flat(each) for each in nested]
    scores, marks = np.ones(len(examples)), np.zeros(N_FEATURES, np.int64)
    native.add_scores(as_rows(examples), join_trees(flat), marks, scores)
    expected = np.ones(len(examples))
    for tree in flat:
        leaves = np.zeros(len(examples), np.int32)
        scratch = np.zeros(N_FEATURES, np.int32), np.zeros(len(tree.features), np.int64)
        native.percolate(as_rows(examples), tree, *scratch, leaves)
        expected += tree.values[leaves]
    assert scores.tolist() == expected.tolist()


def test_examples_of_chosen_leaves_stand_together_in_their_order():
    examples = np.full(4, -1)
    native.group_leaves(np.array([2, 0, 1, 2, 0], np.int32), np.array([2, -1, 0]), examples)
    assert examples.tolist() == [0, 3, 1, 4]


def test_leaves_sum_the_weights_of_their_examples():
    sums = np.zeros(3)
    native.sum_leaves(np.array([2, 0, 2], np.int32), np.array([1.0, 2.0, -4.0]), sums)
    assert sums.tolist() == [2, 0, -3]


def test_a_leaf_of_one_kind_and_a_small_penalty_has_a_large_value():
    value = native.solve_leaf(np.ones(1), np.array([True]), np.ones(1), 1e-9)
    assert math.isclose(value, math.log(1e9 - 1), rel_tol=1e-9)


def test_a_leaf_that_is_far_off_is_found():
    odds = np.exp(np.full(50, -300.0))
    value = native.solve_leaf(odds, np.ones(50, bool), np.ones(50), 10.0)
    assert math.isclose(value, 300 + math.log(4), rel_tol=1e-9)
