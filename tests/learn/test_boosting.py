from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.learn import boosting as twin
from scipy.sparse import csr_matrix

from treewright.errors import InputError
from treewright.learn import boosting
from treewright.learn.boosting import BoostedTrees, CsrExamples, draw_sample
from treewright.learn.trees import (
    TreeBuilder,
    find_values,
    join_trees,
    make_stump,
    prune_tree,
    score_rows,
    split_forest,
    unsplit,
)
from treewright.model import load_state, save_state
from treewright.native.learn.boosting import DecisionTree, FeatureRows, SplitLimits


def make_problem(random_state=0, n_examples=300, n_features=12):
    """Draw rows whose labels depend on two conjunctions, one with a negation, and chance."""
    rng = np.random.default_rng(random_state)
    dense = (rng.random((n_examples, n_features)) < 0.4).astype(np.int8)
    is_right = (dense[:, 0] & ~dense[:, 3] & 1) | (dense[:, 5] & dense[:, 6])
    return dense, np.where(is_right.astype(bool) ^ (rng.random(n_examples) < 0.1), 1, -1)


def make_ensemble(dense, labels, **options):
    return BoostedTrees(CsrExamples(csr_matrix(dense)), labels, **options)


def grown(n_trees=60, lowest=1.0, random_state=0, **options):
    dense, labels = make_problem(random_state)
    ensemble = make_ensemble(dense, labels, **options)
    ensemble.grow_to(lowest, max_trees=n_trees)
    return dense, labels, ensemble


def as_lists(trees):
    return [[each.tolist() for each in tree] for tree in trees]


class ListedExamples:
    """Examples that are sets of features, found one by one; no more are held at once than were asked for."""

    def __init__(self, dense):
        self.sets = [set(np.flatnonzero(row).tolist()) for row in dense]
        self.n_examples, self.n_features = dense.shape
        self.asked = []

    def extract(self, numbers):
        self.asked.append(len(numbers))
        found = [sorted(self.sets[each]) for each in numbers]
        first = np.cumsum([0, *map(len, found)]).astype(np.int64)
        return first, np.array([each for row in found for each in row], dtype=np.int32)

    def percolate(self, tree, out):
        for number, example in enumerate(self.sets):
            node = 0
            while tree.features[node] >= 0:
                node = (tree.present if tree.features[node] in example else tree.absent)[node]
            out[number] = node


def test_a_whole_run_equals_that_of_the_definition():
    dense, labels = make_problem(n_examples=40, n_features=7)
    sets = [set(np.flatnonzero(row).tolist()) for row in dense]
    ensemble = make_ensemble(dense, labels)
    confidences = np.zeros(len(labels))
    penalty, n_trees = np.inf, 0
    while n_trees < 25:
        record = ensemble.grow()
        weights = [twin.weight(*each, 1.0) for each in zip(confidences, labels, strict=True)]
        largest = twin.largest_penalty(sets, labels, weights, 7)
        assert (record is None) == (largest <= 1.01 * penalty)
        if record is None:
            penalty = 0.9 * largest
            assert ensemble.relax() == pytest.approx(penalty)
            continue
        tree = twin.build_tree(sets, range(len(sets)), labels, weights, penalty, 7, 1e-9)
        paths = [twin.path_to_leaf(tree, each) for each in sets]
        n_nonzero = 0
        for path in set(paths):
            members = [each for each, other in enumerate(paths) if other == path]
            value = twin.leaf_value(confidences[members], labels[members], np.ones(len(members)), penalty)
            confidences[members] += value
            n_nonzero += value != 0
        np.testing.assert_allclose(ensemble.confidences, confidences, atol=1e-5)
        confidences = ensemble.confidences.copy()
        assert (record.n_leaves, record.n_nonzero) == (len(set(paths)), n_nonzero)
        n_trees += 1
    assert max(record.n_leaves for record in ensemble.records) > 2


leaf_cases = st.tuples(
    st.floats(-4, 4), st.sampled_from([-1, 1]), st.integers(1, 8).map(lambda each: each / 4)
)


@given(st.lists(leaf_cases, min_size=1, max_size=12), st.floats(0.01, 3))
def test_leaf_values_minimise_loss_and_penalty(cases, penalty):
    confidences, labels, biases = (np.array(each) for each in zip(*cases, strict=True))
    weights = np.array([twin.weight(*case) for case in cases])
    leaves = np.zeros(len(cases), np.int32)
    signed = labels * weights
    (value,) = find_values(leaves, 1, signed, labels.astype(np.int8), biases, confidences, penalty)
    assert (value == 0) == (abs(signed.sum()) <= penalty)
    expected = twin.leaf_value(confidences, labels, biases, penalty)

    def objective(value):
        return twin.loss(confidences + value, labels, biases) + penalty * abs(value)

    assert objective(value) <= objective(expected) + 1e-9
    assert value == pytest.approx(expected, abs=1e-3)


def as_nested(tree, node=0):
    if tree.features[node] < 0:
        return None
    below = (as_nested(tree, each[node]) for each in (tree.present, tree.absent))
    return (int(tree.features[node]), *below)


@pytest.mark.parametrize("random_state", range(12))
def test_splits_on_a_sample_are_taken_back_where_all_examples_gain_more_without(random_state):
    rng = np.random.default_rng(random_state)
    dense, labels = make_problem(random_state, n_examples=40, n_features=7)
    weights, penalty = rng.integers(1, 9, 40) / 8, 1.0
    examples = CsrExamples(csr_matrix(dense))
    builder = TreeBuilder(7)
    builder.start(FeatureRows(*examples.extract(np.arange(8))), (labels * weights)[:8] * 5)
    tree = builder.build(SplitLimits(penalty, 1e-9, 1e-9))
    leaves = np.zeros(40, np.int32)
    examples.percolate(tree, leaves)
    kept = unsplit(tree, leaves, labels * weights, SplitLimits(penalty, 1e-9, 1e-9))
    sets = [set(np.flatnonzero(row).tolist()) for row in dense]
    ranked = [
        (-twin.gain_of_tree(each, sets, labels, weights, penalty), twin.n_leaves(each))
        for each in twin.prunings(as_nested(tree))
    ]
    found = as_nested(kept)
    gain = twin.gain_of_tree(found, sets, labels, weights, penalty)
    assert (-gain, twin.n_leaves(found)) == min(ranked)
    expected = np.zeros(40, np.int32)
    examples.percolate(kept, expected)
    assert leaves.tolist() == expected.tolist()


def test_no_split_on_all_examples_is_taken_back():
    dense, labels, _ = grown()
    examples = CsrExamples(csr_matrix(dense))
    builder = TreeBuilder(12)
    builder.start(FeatureRows(*examples.extract(np.arange(300))), labels / 2)
    tree = builder.build(SplitLimits(5.0, 1e-9, 1e-9))
    leaves = np.zeros(300, np.int32)
    examples.percolate(tree, leaves)
    assert len(tree.features) > 5
    assert as_nested(unsplit(tree, leaves, labels / 2, SplitLimits(5.0, 1e-9, 1e-9))) == as_nested(tree)


def test_each_tree_lowers_the_objective():
    _, _, ensemble = grown()
    records = ensemble.records
    for before, after in pairwise(records):
        if before.penalty == after.penalty:
            assert after.objective < before.objective


def test_penalties_fall_to_the_lowest_and_nothing_gains_there():
    dense, labels, ensemble = grown(n_trees=10_000, lowest=3.0)
    penalties = [record.penalty for record in ensemble.records]
    assert penalties == sorted(penalties, reverse=True)
    assert ensemble.penalty == 3.0
    assert ensemble.grow() is None
    weights = [twin.weight(*each, 1.0) for each in zip(ensemble.confidences, labels, strict=True)]
    sets = [set(np.flatnonzero(row).tolist()) for row in dense]
    assert twin.largest_penalty(sets, labels, weights, 12) <= 3.0 * 1.01


def grown_step_by_step(lowests, **options):
    """Lower the penalty as far as each of some by `grow` and `relax` alone."""
    ensemble = make_ensemble(*make_problem(), **options)
    penalties = []
    for lowest in lowests:
        while True:
            if ensemble.grow() is None:
                if ensemble.penalty <= lowest:
                    break
                penalties.append(ensemble.relax(lowest))
    return ensemble, penalties


@pytest.mark.parametrize("options", [{}, {"min_gain": 0.5}, {"slack": 0.05, "biases": np.full(300, 0.5)}])
def test_penalties_that_are_passed_over_change_no_tree(options, monkeypatch):
    first = 75.0
    lowests = [first * 0.97**step for step in range(1, 110)]
    expected, penalties = grown_step_by_step(lowests, **options)
    ensemble, asked = make_ensemble(*make_problem(), **options), []
    grow = ensemble.grow
    monkeypatch.setattr(ensemble, "grow", lambda: asked.append(ensemble.penalty) or grow())
    for lowest in lowests:
        assert ensemble.grow_to(lowest, max_trees=10_000)
        assert ensemble.penalty == lowest
    assert as_lists(ensemble.trees) == as_lists(expected.trees)
    assert [each[:-1] for each in ensemble.records] == [each[:-1] for each in expected.records]
    assert ensemble.largest == expected.largest
    # Under many penalties nothing gains, and no examples are looked at for them.
    assert len(set(penalties)) > len(set(asked)) + 10
    assert set(asked) - {np.inf} <= set(penalties)


@pytest.mark.parametrize("sample_size", [None, 100])
@pytest.mark.parametrize("min_gain", [0.5, 10.0])
def test_nothing_gains_at_the_lowest_penalty_whatever_splits_must_gain(min_gain, sample_size):
    dense, labels, ensemble = grown(10_000, 3.0, min_gain=min_gain, sample_size=sample_size)
    weights = [twin.weight(*each, 1.0) for each in zip(ensemble.confidences, labels, strict=True)]
    sets = [set(np.flatnonzero(row).tolist()) for row in dense]
    assert twin.largest_penalty(sets, labels, weights, 12) <= 3.0 * 1.01


@pytest.mark.parametrize("sample_size", [None, 100])
@pytest.mark.parametrize("share", [0.2, 1.0, 2.5])
def test_every_split_below_the_root_gains_what_it_must(share, sample_size, monkeypatch):
    built = []

    class Watched(TreeBuilder):
        def start(self, rows, signed, least=0.0):
            self.problem = (rows, signed.copy())
            return super().start(rows, signed, least)

        def build(self, limits):
            tree = super().build(limits)
            built.append((*self.problem, limits, tree))
            return tree

    monkeypatch.setattr(boosting, "TreeBuilder", Watched)
    _, _, ensemble = grown(n_trees=40, lowest=0.3, eta=0.2, min_gain=share, sample_size=sample_size)
    n_below = 0
    for rows, signed, limits, tree in built:
        assert limits.least == share * limits.penalty
        sets = [set(rows.columns[begin:end].tolist()) for begin, end in pairwise(rows.indptr.tolist())]
        labels, weights = np.sign(signed), np.abs(signed)
        splits = twin.list_splits(as_nested(tree), sets, range(len(sets)))
        for number, (members, *parts) in enumerate(splits):
            gained = sum(twin.gain(part, labels, weights, limits.penalty) for part in parts)
            gained -= twin.gain(members, labels, weights, limits.penalty)
            assert gained > (limits.least if number else 0) - 1e-9
            n_below += number > 0
    assert n_below > 5
    assert len(built) <= len(ensemble.records)


def test_trees_are_smaller_where_splits_must_gain_more():
    sizes = [
        sum(record.n_leaves for record in grown(n_trees=30, eta=0.2, min_gain=share)[2].records)
        for share in (0, 1.0, 5.0)
    ]
    assert sizes[0] > sizes[1] > sizes[2]


def test_a_least_gain_of_nothing_changes_no_tree():
    assert as_lists(grown(min_gain=1e-12)[2].trees) == as_lists(grown()[2].trees)


def test_confidences_are_the_scores_of_the_kept_trees():
    dense, _, ensemble = grown(sample_size=100)
    np.testing.assert_allclose(
        score_rows(csr_matrix(dense), join_trees(ensemble.trees)), ensemble.confidences, atol=1e-12
    )
    assert ensemble.norm == pytest.approx(sum(np.abs(tree.values).sum() for tree in ensemble.trees))


def test_only_leaves_that_add_something_are_kept():
    _, _, ensemble = grown(sample_size=100)
    assert len(ensemble.trees) == sum(record.n_nonzero > 0 for record in ensemble.records)
    assert ensemble.n_nonzero == sum(record.n_nonzero for record in ensemble.records)
    for tree in ensemble.trees:
        for node in np.flatnonzero(tree.features >= 0):
            below = [tree.present[node], tree.absent[node]]
            assert any(tree.features[each] >= 0 or tree.values[each] for each in below)


@pytest.mark.parametrize("size", [300, 1000])
def test_a_sample_of_all_examples_changes_nothing(size):
    _, _, whole = grown()
    _, _, sampled = grown(sample_size=size)
    assert as_lists(sampled.trees) == as_lists(whole.trees)
    assert [each[:-1] for each in sampled.records] == [each[:-1] for each in whole.records]


def test_samples_depend_on_the_seed_only():
    _, _, ensemble = grown(sample_size=100, n_trees=20)
    assert as_lists(grown(sample_size=100, n_trees=20)[2].trees) == as_lists(ensemble.trees)
    other = make_ensemble(*make_problem(), sample_size=100, random_state=1)
    other.grow_to(1.0, max_trees=20)
    assert as_lists(other.trees) != as_lists(ensemble.trees)


def test_any_source_of_examples_gives_the_same_trees_and_is_asked_for_the_sample():
    dense, labels, ensemble = grown(sample_size=100, n_trees=20)
    listed = ListedExamples(dense)
    other = BoostedTrees(listed, labels, sample_size=100)
    other.grow_to(1.0, max_trees=20)
    assert as_lists(other.trees) == as_lists(ensemble.trees)
    assert listed.asked.count(100) >= 10


def test_a_sampled_run_reaches_an_objective_near_that_of_all_examples():
    _, _, whole = grown(n_trees=10_000, lowest=3.0)
    _, _, sampled = grown(n_trees=10_000, lowest=3.0, sample_size=100)
    assert sampled.objective == pytest.approx(whole.objective, rel=0.05)
    assert all(0 <= record.lost < 0.8 for record in sampled.records)
    assert all(record.lost == 0 for record in whole.records)


def test_biases_count_as_copies_of_examples():
    dense, labels = make_problem(n_examples=60)
    copies = np.random.default_rng(1).integers(1, 4, 60)
    weighted = make_ensemble(dense, labels, biases=copies)
    repeated = make_ensemble(dense.repeat(copies, axis=0), labels.repeat(copies))
    for each in (weighted, repeated):
        each.grow_to(2.0, max_trees=30)
    np.testing.assert_allclose(weighted.confidences.repeat(copies), repeated.confidences, atol=1e-9)


def test_labels_and_biases_of_the_right_type_are_not_copied():
    labels, biases = np.array([1, 1, -1], dtype=np.int8), np.array([0.5, 1.0, 2.0])
    ensemble = make_ensemble(np.eye(3), labels, biases=biases)
    assert np.shares_memory(ensemble._labels, labels)
    assert np.shares_memory(ensemble._biases, biases)
    ensemble.grow_to(0.1, max_trees=20)
    assert (labels.tolist(), biases.tolist()) == ([1, 1, -1], [0.5, 1.0, 2.0])


@pytest.mark.parametrize("options", [{}, {"sample_size": 100}, {"sample_size": 100, "min_gain": 0.5}])
def test_a_run_goes_on_as_if_never_interrupted(tmp_path, options):
    dense, labels, whole = grown(**options)
    for n_trees in (0, 7, 31):
        part = make_ensemble(dense, labels, **options)
        part.grow_to(1.0, max_trees=n_trees)
        save_state(part.get_state(), tmp_path / "part")
        again = BoostedTrees.from_state(load_state(tmp_path / "part"), CsrExamples(csr_matrix(dense)), labels)
        again.grow_to(1.0, max_trees=60)
        assert as_lists(again.trees) == as_lists(whole.trees)
        assert again.objective == whole.objective
        assert [each[:-1] for each in again.records] == [each[:-1] for each in whole.records]


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_threads_change_no_leaf(n_jobs):
    dense, labels, ensemble = grown(n_trees=20)
    other = BoostedTrees(CsrExamples(csr_matrix(dense), n_jobs=n_jobs), labels)
    other.grow_to(1.0, max_trees=20)
    assert as_lists(other.trees) == as_lists(ensemble.trees)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(1, 12), st.integers(0, 1000))
def test_samples_equal_those_of_sorted_priorities(weights, size, random_state):
    sample = draw_sample(np.array(weights, float), size, random_state=(random_state,))
    uniform = 1 - np.random.default_rng([random_state]).random(len(weights))
    expected = twin.priority_sample(weights, uniform, size)
    assert dict(zip(sample.numbers.tolist(), sample.weights.tolist(), strict=True)) == pytest.approx(expected)
    lost = 1 - sum(weights[each] for each in expected) / sum(weights)
    assert sample.lost == pytest.approx(lost, abs=1e-12)


def test_sums_over_samples_are_those_over_all_in_the_mean():
    rng = np.random.default_rng(0)
    weights = rng.random(40) ** 4
    is_member = rng.random(40) < 0.5
    estimates = []
    for random_state in range(4000):
        sample = draw_sample(weights, 10, random_state=(random_state,))
        estimates.append(sample.weights[is_member[sample.numbers]].sum())
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - weights[is_member].sum()) < 4 * error
    assert error < 0.05


def test_nothing_is_drawn_from_examples_without_weight():
    sample = draw_sample(np.zeros(5), 3, random_state=(0,))
    assert sample.weights.tolist() == [0, 0, 0]
    assert sample.lost == 0


def test_trees_come_out_of_a_forest_as_they_went_in():
    _, _, ensemble = grown(n_trees=20)
    assert as_lists(split_forest(join_trees(ensemble.trees))) == as_lists(ensemble.trees)
    assert split_forest(join_trees([])) == []


def test_parts_of_a_tree_without_values_become_one_leaf():
    features, present, absent = ([4, 2, -1, -1, -1], [1, 3, -1, -1, -1], [2, 4, -1, -1, -1])
    links = (np.array(each, dtype=np.int32) for each in (features, present, absent))
    pruned = prune_tree(DecisionTree(*links, np.array([0, 0, 0.5, 0, 0])))
    assert [each.tolist() for each in pruned] == [[4, -1, -1], [1, -1, -1], [2, -1, -1], [0, 0, 0.5]]


def test_a_stump_has_the_split_that_gains_most_or_none():
    sums = np.array([0.0, 3.0, -2.0])
    assert make_stump(sums, 1.0, 0.5, 1e-9).features.tolist() == [1, -1, -1]
    assert make_stump(sums * 0, 1.0, 0.5, 1e-9).features.tolist() == [-1]


def test_examples_without_features_get_a_tree_of_one_leaf():
    ensemble = make_ensemble(np.zeros((4, 0)), [1, 1, 1, -1])
    assert ensemble.grow_to(0.5, max_trees=10)
    assert {len(tree.features) for tree in ensemble.trees} == {1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [1, 0, 1]}, "labels contain 0; expected only 1 and -1"),
        ({"labels": [1, 1]}, r"labels have the shape \(2,\); expected \(3,\)"),
        ({"biases": [1.0]}, r"biases have the shape \(1,\); expected \(3,\)"),
        ({"biases": [1.0, -1.0, 1.0]}, "biases contain a negative number, NaN or infinity"),
        ({"eta": 1.0}, "eta is 1.0; expected a number from 1e-06 to 0.999"),
        ({"eta": 0.995}, r"eta is 0.995 with a slack of 0.01; expected eta \* \(1 \+ slack\) below 1"),
        ({"sample_size": 0}, "sample_size is 0; expected an integer of at least 1"),
        ({"min_gain": -0.5}, "min_gain is -0.5; expected a number from 0 to 10"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(InputError, match=message):
        make_ensemble(np.eye(3), **({"labels": [1, 1, -1]} | options))


def test_the_penalty_is_lowered_only_when_nothing_gains():
    with pytest.raises(InputError, match="expected a call after grow has returned None"):
        make_ensemble(np.eye(3), [1, 1, -1]).relax()


def test_a_state_of_other_examples_is_refused():
    state = make_ensemble(np.eye(3), [1, 1, -1]).get_state()
    with pytest.raises(InputError, match="there are 2 examples; expected 3, as in the state"):
        BoostedTrees.from_state(state, CsrExamples(csr_matrix(np.eye(2))), [1, -1])
