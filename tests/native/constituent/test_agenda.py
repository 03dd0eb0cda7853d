"""Scores of inferences, and the heap on which they wait."""

import heapq
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.constituent import agenda as twin
from scipy.sparse import csr_matrix
from strategies import as_flat

from treewright.learn.trees import join_trees, score_rows
from treewright.native.constituent import agenda as native
from treewright.parsing.constituent.ensembles import index_trees

N_FEATURES = 9
N_LABELS = 3


def nested_trees():
    leaves = st.sampled_from([0.0, -1.5, 0.25, 2.0])
    return st.recursive(
        leaves, lambda below: st.tuples(st.integers(0, N_FEATURES - 1), below, below), max_leaves=8
    )


def make_marks(ensembles):
    n_trees, n_labels = len(ensembles.usual), len(ensembles.totals)
    places, exits, touched = (np.zeros(n_trees, dtype=np.int32) for _ in range(3))
    return native.Marks(
        np.zeros(1, np.int64), np.zeros(N_FEATURES, np.int64), np.zeros(n_trees, np.int64),
        np.zeros(N_FEATURES, np.int32), places, exits, touched, np.zeros(n_labels, np.int32),
        np.full(n_labels, np.nan),
    )  # fmt: skip


forests = st.lists(st.lists(nested_trees(), max_size=5), min_size=N_LABELS, max_size=N_LABELS)
feature_sets = st.sets(st.integers(0, N_FEATURES - 1))


@given(forests, st.lists(feature_sets, min_size=1, max_size=4))
def test_scores_by_index_equal_sums_over_trees(nested, examples):
    trees = [[as_flat(tree) for tree in each] for each in nested]
    index, ensembles = index_trees(trees, N_FEATURES)
    marks = make_marks(ensembles)
    for features in examples:
        marks.features[: len(features)] = sorted(features)
        native.add_scores(index, ensembles, marks, 0, len(features))
        expected = [twin.score(each, features) for each in nested]
        np.testing.assert_allclose(marks.scores, expected, atol=1e-12)
        dense = np.zeros((1, N_FEATURES))
        dense[0, sorted(features)] = 1
        plain = [score_rows(csr_matrix(dense), join_trees(each))[0] for each in trees]
        np.testing.assert_allclose(marks.scores, plain, atol=1e-12)


@given(forests, feature_sets)
def test_only_labels_with_the_head_are_scored(nested, features):
    index, ensembles = index_trees([[as_flat(tree) for tree in each] for each in nested], N_FEATURES)
    marks = make_marks(ensembles)
    marks.heads[:] = [1, -1, 0]
    marks.features[: len(features)] = sorted(features)
    native.add_scores(index, ensembles, marks, 1, len(features))
    assert marks.scores[0] == pytest.approx(twin.score(nested[0], features), abs=1e-12)
    assert np.isnan(marks.scores[1:]).all()


@given(st.floats(-30, 30))
def test_losses_equal_the_definition(score):
    assert native.loss(score) == pytest.approx(twin.loss(score), rel=1e-9, abs=1e-12)


def test_losses_of_large_scores_are_finite_and_not_below_zero():
    assert (native.loss(-5000.0), native.loss(5000.0)) == (5000.0, 0.0)
    assert native.loss(0.0) == math.log(2)


def in_python(function):
    """Return a function that is not compiled, and so takes tuples with parts that it does not look at."""
    return getattr(function, "py_func", function)


def make_agenda(size):
    return native.Agenda(np.zeros(size), *(np.zeros(size, dtype=np.int32) for _ in range(4)))


@given(st.lists(st.none() | st.integers(0, 50), max_size=60))
def test_the_cheapest_that_waits_is_taken_first(steps):
    agenda, expected, n_waiting = make_agenda(60), [], 0
    for number, cost in enumerate(steps):
        if cost is not None:
            native.wait(agenda, n_waiting, float(cost), number, number + 1, number + 2, number + 3)
            heapq.heappush(expected, cost)
            n_waiting += 1
        elif n_waiting:
            native.take(agenda, n_waiting)
            n_waiting -= 1
            state = agenda.states[n_waiting]
            assert agenda.costs[n_waiting] == heapq.heappop(expected) == steps[state]
            others = (agenda.begins, agenda.sizes, agenda.labels)
            assert [each[n_waiting] for each in others] == [state + 1, state + 2, state + 3]


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 5))
def test_the_cheapest_complete_parses_are_kept_in_order(costs, k):
    states = native.States(*[None] * 8)._replace(costs=np.array(costs, dtype=float))
    search = native.Search(None, states, None, np.zeros(k, np.int64), np.zeros(6, np.int64))
    complete = in_python(native.complete)
    for state in range(len(costs)):
        complete(search, state)
    n_kept = min(k, len(costs))
    found = search.found[: search.counts[native.N_COMPLETE]]
    assert states.costs[found].tolist() == sorted(costs)[:n_kept]
    assert len(set(found.tolist())) == n_kept


@given(st.lists(st.integers(0, 9), max_size=8))
def test_what_is_not_cheaper_than_a_bound_does_not_wait(costs):
    search = native.Search(None, None, make_agenda(4), np.zeros(1, np.int64), np.zeros(6, np.int64))
    let_wait = in_python(native.let_wait)
    for state, cost in enumerate(costs):
        let_wait(search, 6.0, float(cost), state, 0, 1, 1)
    cheap = [cost for cost in costs if cost < 6]
    assert search.counts[native.N_WAITING] == min(4, len(cheap))
    assert search.counts[native.N_DROPPED] == max(0, len(cheap) - 4)
