import numpy as np
import pytest
from oracle import hypergraph as twin

from treewright.native.hypergraph import (
    Hypergraph,
    best_scores,
    derivation_arcs,
    derivation_edges,
    fill_edge_marginals,
    fill_marginals,
    find_derivation,
    start_derivations,
)

SEEDS = range(30)


def pack(edges):
    """Make the flat arrays of a hypergraph in which each node counts as an arc."""
    flat = [edge for row in edges for edge in row]
    tails = np.array([[*tails, -1, -1][:2] for tails, _ in flat], np.int32).reshape(-1, 2)
    return Hypergraph(
        np.cumsum([0] + [len(row) for row in edges]).astype(np.int32),
        tails[:, 0].copy(),
        tails[:, 1].copy(),
        np.array([weight for _, weight in flat]),
        np.arange(len(edges), dtype=np.int32),
    )


def best_of(graph):
    best = np.empty(graph.arc.size)
    best_edge = np.empty(graph.arc.size, np.int32)
    best_scores(graph, best, best_edge)
    return best, best_edge


def find_all(graph, k):
    """Return scores and sorted nodes of the best derivations of the last node, at most `k`."""
    best, best_edge = best_of(graph)
    found = start_derivations(graph, k)
    arcs = np.empty(1000, np.int32)
    derivations = []
    for rank in range(k):
        if not find_derivation(graph, best, found, rank):
            break
        n_arcs = derivation_arcs(graph, best_edge, found, rank, arcs)
        derivations.append((found.score[-1, rank], tuple(sorted(arcs[:n_arcs].tolist()))))
    return derivations


def listed(edges):
    return sorted(
        ((score, tuple(sorted(nodes))) for score, nodes in derivations_of_last(edges)), reverse=True
    )


def derivations_of_last(edges):
    return twin.derivations(edges, len(edges) - 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_k_best_derivations_are_the_first_of_all(seed):
    edges = twin.random_edges(np.random.default_rng(seed), 6)
    expected = listed(edges)[:50]
    found = find_all(pack(edges), 50)
    np.testing.assert_allclose([one[0] for one in found], [one[0] for one in expected])
    assert [one[1] for one in found] == [one[1] for one in expected]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_edges_of_a_derivation_are_those_of_its_nodes(seed):
    graph = pack(twin.random_edges(np.random.default_rng(seed), 6))
    best, best_edge = best_of(graph)
    found = start_derivations(graph, 20)
    arcs, edges = np.empty(1000, np.int32), np.empty(1000, np.int32)
    for rank in range(20):
        if not find_derivation(graph, best, found, rank):
            break
        n_edges = derivation_edges(graph, best_edge, found, rank, edges)
        nodes = np.searchsorted(graph.first_edge, edges[:n_edges], side="right") - 1
        assert nodes.tolist() == arcs[: derivation_arcs(graph, best_edge, found, rank, arcs)].tolist()
        assert graph.weight[edges[:n_edges]].sum() == pytest.approx(found.score[-1, rank])


@pytest.mark.parametrize("seed", SEEDS)
def test_best_scores_are_those_of_the_best_derivation_of_each_node(seed):
    edges = twin.random_edges(np.random.default_rng(seed), 6)
    expected = [max((one[0] for one in twin.derivations(edges, node)), default=-np.inf) for node in range(6)]
    np.testing.assert_allclose(best_of(pack(edges))[0], expected)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_marginals_are_expected_numbers_of_nodes(seed, scale):
    edges = twin.random_edges(np.random.default_rng(seed), 6)
    if not derivations_of_last(edges):
        edges[-1] = [([], 0.0)]
    marginal = np.empty(6)
    log_sum = fill_marginals(pack(edges), scale, marginal)
    expected, expected_sum = twin.node_marginals(edges, scale)
    np.testing.assert_allclose(marginal, expected, atol=1e-12)
    assert log_sum == pytest.approx(expected_sum)


@pytest.mark.parametrize("seed", SEEDS)
def test_marginals_of_edges_are_derivatives_of_the_log_sum(seed):
    edges = twin.random_edges(np.random.default_rng(seed), 6)
    if not derivations_of_last(edges):
        edges[-1] = [([], 0.0)]
    graph = pack(edges)
    marginal, shares = np.empty(6), np.empty(graph.left.size)
    fill_marginals(graph, 1.0, marginal)
    fill_edge_marginals(graph, marginal, shares)
    expected, step = [], 1e-5
    for node, number in [(at, number) for at, each in enumerate(edges) for number in range(len(each))]:
        sums = []
        for sign in (1, -1):
            changed = [list(each) for each in edges]
            tails, weight = changed[node][number]
            changed[node][number] = tails, weight + sign * step
            sums.append(twin.node_marginals(changed, 1.0)[1])
        expected.append((sums[0] - sums[1]) / (2 * step))
    np.testing.assert_allclose(shares, expected, atol=1e-6)


def test_random_hypergraphs_have_dead_ends_and_many_derivations():
    counts = [len(listed(twin.random_edges(np.random.default_rng(seed), 6))) for seed in SEEDS]
    assert min(counts) == 0
    assert max(counts) > 50


def test_derivations_of_equal_scores_are_all_found():
    edges = [[([], 0.0)] * 3, [([], 0.0), ([0], 0.0)], [([0, 1], 0.0), ([1, 1], 0.0), ([1], 0.0)]]
    found = find_all(pack(edges), 100)
    assert sorted(found) == sorted(listed(edges))
    assert len(found) == 3 * 4 + 4 * 4 + 4


def test_marginals_bear_weights_far_apart():
    edges = [[([], -1e6), ([], 1e6)], [([0], 1e6), ([0, 0], 0.0), ([], -1e6)]]
    marginal = np.empty(2)
    assert fill_marginals(pack(edges), 1.0, marginal) == pytest.approx(2e6 + np.log(2))
    np.testing.assert_allclose(marginal, [0.5 + 0.5 * 2, 1.0])
