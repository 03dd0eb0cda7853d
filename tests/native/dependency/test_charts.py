import numpy as np
import pytest
from oracle.data.projective import is_projective
from oracle.dependency import charts as twin
from oracle.dependency.parts import KINDS, list_parts

from treewright.native.dependency.charts import build_chart
from treewright.native.dependency.corpus import best_trees
from treewright.native.dependency.parts import ScoreArrays, arrange
from treewright.native.hypergraph import fill_marginals

SIZES = [(1, 1.0), (2, 1.0), (3, 0.8), (4, 1.0), (4, 0.6), (5, 1.0), (5, 0.5)]
CASES = [(n, density, single_root) for n, density in SIZES for single_root in (True, False)]


def random_arcs(rng, n, density):
    keep = rng.random((n + 1, n + 1)) < density
    keep[:, 0] = False
    np.fill_diagonal(keep, False)
    return keep, set(zip(*(at.tolist() for at in np.nonzero(keep)), strict=True))


def random_scores(rng, arcs, n, spread=1.0):
    """Draw scores for all parts; return them as arrays and by part."""
    listed = list_parts(arcs, n)
    scores = ScoreArrays(*(rng.normal(scale=spread, size=len(listed[kind])) for kind in KINDS))
    pairs = [pair for kind in KINDS for pair in zip(listed[kind], getattr(scores, kind), strict=True)]
    return scores, dict(pairs)


def parse(parts, graph, n, k):
    """Return scores and heads of the best trees, at most `k` of them."""
    heads, scores = np.zeros((k, n + 1), np.int32), np.empty(k)
    n_found = best_trees(parts, graph, heads, scores)
    return scores[:n_found], [tuple(one) for one in heads[:n_found, 1:].tolist()]


def arc_probabilities(parts, graph, n, scale):
    node_probability = np.empty(graph.arc.size)
    log_sum = fill_marginals(graph, scale, node_probability)
    found = np.zeros((n + 1, n + 1))
    for arc, probability in zip(graph.arc, node_probability, strict=True):
        if arc >= 0:
            found[parts.head[arc], parts.modifier[arc]] += probability
    return found, log_sum


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("n", "density", "single_root"), [*CASES, (6, 0.6, True)])
def test_k_best_trees_are_all_trees_in_order(n, density, single_root, seed):
    rng = np.random.default_rng(seed)
    keep, arcs = random_arcs(rng, n, density)
    scores, part_scores = random_scores(rng, arcs, n)
    expected = twin.ranked_trees(arcs, n, single_root, part_scores)
    parts = arrange(keep)
    graph, is_complete = build_chart(parts, scores, single_root)
    assert is_complete == bool(expected)
    if expected:
        found_scores, found = parse(parts, graph, n, len(expected) + 1)
        assert found == [heads for _, heads in expected]
        np.testing.assert_allclose(found_scores, [score for score, _ in expected], atol=1e-9)


@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_fewer_best_trees_are_the_first_of_more(k):
    rng = np.random.default_rng(k)
    keep, arcs = random_arcs(rng, 5, 1.0)
    scores, part_scores = random_scores(rng, arcs, 5)
    parts = arrange(keep)
    graph, _ = build_chart(parts, scores, True)
    expected = twin.ranked_trees(arcs, 5, True, part_scores)[:k]
    assert parse(parts, graph, 5, k)[1] == [heads for _, heads in expected]


@pytest.mark.parametrize(("n", "density", "single_root"), CASES)
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_log_sum_and_arc_marginals_equal_sums_over_trees(n, density, single_root, scale):
    rng = np.random.default_rng(n)
    keep, arcs = random_arcs(rng, n, density)
    keep[np.arange(n), np.arange(1, n + 1)] = True
    arcs |= {(word - 1, word) for word in range(1, n + 1)}
    scores, part_scores = random_scores(rng, arcs, n)
    ranked = twin.ranked_trees(arcs, n, single_root, part_scores)
    expected_sum = np.logaddexp.reduce([scale * score for score, _ in ranked])
    expected = np.zeros((n + 1, n + 1))
    for score, heads in ranked:
        for arc in twin.arcs_of(heads):
            expected[arc] += np.exp(scale * score - expected_sum)
    parts = arrange(keep)
    graph, _ = build_chart(parts, scores, single_root)
    found, log_sum = arc_probabilities(parts, graph, n, scale)
    assert log_sum == pytest.approx(expected_sum)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("single_root", [True, False])
def test_equal_scores_still_give_all_trees_once(single_root):
    keep, arcs = random_arcs(np.random.default_rng(0), 5, 1.0)
    scores, _ = random_scores(np.random.default_rng(0), arcs, 5, spread=0.0)
    expected = twin.trees_over(arcs, 5, single_root)
    parts = arrange(keep)
    graph, _ = build_chart(parts, scores, single_root)
    _, found = parse(parts, graph, 5, len(expected) + 1)
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    "arcs",
    [
        set(),
        {(1, 2), (2, 1)},
        {(0, 1)},
        {(0, 2), (1, 2)},
        {(0, 1), (0, 2), (0, 3)},
        {(0, 1), (1, 3), (3, 2), (2, 4), (3, 1)},
    ],
    ids=str,
)
def test_arcs_without_a_tree_make_no_complete_chart(arcs):
    n = max([2, *(modifier for _, modifier in arcs)])
    keep = np.zeros((n + 1, n + 1), np.bool_)
    for arc in arcs:
        keep[arc] = True
    assert not twin.trees_over(arcs, n, True)
    _, is_complete = build_chart(arrange(keep), random_scores(np.random.default_rng(0), arcs, n)[0], True)
    assert not is_complete


@pytest.mark.parametrize("seed", range(3))
def test_best_trees_of_a_long_sentence_score_what_their_parts_do(seed):
    rng, n, k = np.random.default_rng(seed), 25, 40
    keep, _ = random_arcs(rng, n, 0.08)
    for _ in range(2):
        keep[twin.random_tree(rng, n), np.arange(1, n + 1)] = True
    arcs = set(zip(*(at.tolist() for at in np.nonzero(keep)), strict=True))
    scores, part_scores = random_scores(rng, arcs, n)
    parts = arrange(keep)
    graph, is_complete = build_chart(parts, scores, True)
    assert is_complete
    found_scores, found = parse(parts, graph, n, k)
    assert len(set(found)) == len(found) == k
    assert (np.diff(found_scores) <= 0).all()
    for score, heads in zip(found_scores, found, strict=True):
        assert score == pytest.approx(twin.tree_score(heads, part_scores))
        assert heads.count(0) == 1
        assert not twin.has_cycle(heads)
        assert is_projective(heads)
