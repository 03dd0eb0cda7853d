import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.span import charts as twin

from treewright.native.span.charts import (
    batch_best,
    batch_marginals,
    best_span_trees,
    build_span_chart,
    span_marginals,
    span_number,
)

CASES = [(n, n_labels, is_rooted) for n in range(1, 6) for n_labels in (1, 2) for is_rooted in (False, True)]
SEEDS = range(3)


def draw_scores(n, n_labels, seed):
    """Draw scores, some of which exclude a label."""
    rng = np.random.default_rng([n, n_labels, seed])
    scores = rng.normal(size=(n * (n + 1) // 2, n_labels))
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    scores[:, 0] = rng.normal(size=len(scores))
    return scores


def find_trees(scores, n, is_rooted, k):
    parts, totals = np.empty((k, 2 * n), np.int32), np.empty(k)
    n_found = best_span_trees(scores, n, is_rooted, parts, totals)
    rows = [tuple(sorted(part for part in row.tolist() if part >= 0)) for row in parts[:n_found]]
    return totals[:n_found], rows


def test_spans_are_counted_by_start_then_by_end():
    for n in range(1, 7):
        spans = [(start, end) for start in range(n) for end in range(start + 1, n + 1)]
        assert [span_number(n, start, end) for start, end in spans] == list(range(len(spans)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "n_labels", "is_rooted"), CASES)
def test_the_best_trees_are_the_first_of_all_trees(n, n_labels, is_rooted, seed):
    scores = draw_scores(n, n_labels, seed)
    expected = sorted(twin.all_trees(scores, n, is_rooted=is_rooted), reverse=True)
    for k in (1, 7, 40):
        totals, rows = find_trees(scores, n, is_rooted, k)
        assert len(rows) == min(k, len(expected))
        np.testing.assert_allclose(totals, [score for score, _ in expected[:k]])
        assert rows == [parts for _, parts in expected[:k]]


@pytest.mark.parametrize(("n", "is_rooted"), [(4, False), (4, True), (5, False)])
def test_each_tree_has_one_derivation(n, is_rooted):
    scores = np.zeros((n * (n + 1) // 2, 1))
    expected = {parts for _, parts in twin.all_trees(scores, n, is_rooted=is_rooted)}
    _, rows = find_trees(scores, n, is_rooted, len(expected) + 5)
    assert len(rows) == len(expected)
    assert set(rows) == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "n_labels", "is_rooted"), CASES)
def test_marginals_are_sums_over_all_trees(n, n_labels, is_rooted, seed):
    scores = draw_scores(n, n_labels, seed)
    expected, log_sum = twin.span_marginals(scores, n, is_rooted=is_rooted)
    marginal = np.empty(len(scores))
    assert span_marginals(scores, n, is_rooted, marginal) == pytest.approx(log_sum)
    np.testing.assert_allclose(marginal, expected, atol=1e-12)
    one_column = np.logaddexp.reduce(scores, axis=1)[:, np.newaxis]
    assert span_marginals(one_column, n, is_rooted, marginal) == pytest.approx(log_sum)
    np.testing.assert_allclose(marginal, expected, atol=1e-12)


def test_a_sentence_without_a_tree_has_none():
    scores = np.full((3, 1), -np.inf)
    assert find_trees(scores, 2, True, 2)[1] == []


def test_nodes_stand_after_those_under_them():
    graph, _ = build_span_chart(np.zeros((15, 2)), 5, True)
    for node in range(graph.arc.size):
        edges = slice(graph.first_edge[node], graph.first_edge[node + 1])
        assert edges.stop > edges.start
        assert max(graph.left[edges].max(), graph.right[edges].max()) < node


def test_sentences_of_a_batch_are_those_alone():
    lengths = np.array([3, 1, 4])
    parts = [draw_scores(n, 1, 0) for n in lengths.tolist()]
    scores = np.concatenate(parts)
    marginal, chosen = np.empty(len(scores)), np.empty(len(scores))
    log_sum, best = 0.0, 0.0
    expected, marked = [], []
    for own, n in zip(parts, lengths.tolist(), strict=True):
        each, own_sum = twin.span_marginals(own, n, is_rooted=True)
        log_sum += own_sum
        expected += each.tolist()
        score, spans = max(twin.all_trees(own, n, is_rooted=True))
        best += score
        marked += [float(row in spans) for row in range(len(own))]
    assert batch_marginals(scores, lengths, True, marginal) == pytest.approx(log_sum)
    np.testing.assert_allclose(marginal, expected, atol=1e-12)
    assert batch_best(scores, lengths, True, chosen) == pytest.approx(best)
    assert chosen.tolist() == marked


@given(st.integers(1, 12), st.integers(1, 3), st.booleans(), st.integers(0, 1000))
def test_trees_of_any_sentence_are_nested_distinct_and_in_order(n, n_labels, is_rooted, seed):
    scores = draw_scores(n, n_labels, seed)
    totals, rows = find_trees(scores, n, is_rooted, 8)
    assert len(set(rows)) == len(rows) > 0
    assert (np.diff(totals) <= 1e-9).all()
    spans = [(start, end) for start in range(n) for end in range(start + 1, n + 1)]
    for total, row in zip(totals, rows, strict=True):
        assert total == pytest.approx(sum(scores[divmod(part, n_labels)] for part in row))
        places = [spans[part // n_labels] for part in row]
        assert len(set(places)) == len(places)
        assert {(at, at + 1) for at in range(n)} <= set(places)
        assert not any(a < c < b < d for a, b in places for c, d in places)
        assert is_rooted or (0, n) in places


@given(st.integers(1, 12), st.booleans(), st.integers(0, 1000))
def test_marginals_are_probabilities_and_those_of_words_are_1(n, is_rooted, seed):
    scores = draw_scores(n, 1, seed)
    marginal = np.empty(len(scores))
    log_sum = span_marginals(scores, n, is_rooted, marginal)
    totals, _ = find_trees(scores, n, is_rooted, 1)
    assert log_sum >= totals[0] - 1e-9
    assert (marginal >= 0).all()
    assert (marginal <= 1 + 1e-9).all()
    np.testing.assert_allclose(marginal[[span_number(n, at, at + 1) for at in range(n)]], 1.0)
    if not is_rooted:
        assert marginal[span_number(n, 0, n)] == pytest.approx(1.0)
