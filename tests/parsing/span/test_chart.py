import numpy as np
import pytest
from oracle.span import charts as twin

from treewright.parsing.span.chart import (
    LONGEST,
    best_trees,
    log_partition,
    longest_whole,
    majority_tree,
    marginals,
    tree_score,
    with_empty,
)
from treewright.parsing.span.labels import membership, span_rows

CASES = [(n, n_labels, is_rooted) for n in (1, 2, 3, 4) for n_labels in (1, 2) for is_rooted in (False, True)]


def draw(n, n_labels):
    return np.random.default_rng([n, n_labels]).normal(size=(n * (n + 1) // 2, n_labels))


def all_trees(scores, n, is_rooted):
    """List (score, spans and labels) of all trees, the best first."""
    table = with_empty(scores, n)
    width = table.shape[1]
    trees = [
        (score, sorted(divmod(part, width) for part in parts if part % width))
        for score, parts in twin.all_trees(table, n, is_rooted=is_rooted)
    ]
    return sorted(trees, reverse=True)


@pytest.mark.parametrize(("n", "n_labels", "is_rooted"), CASES)
@pytest.mark.parametrize("k", [1, 2, 5, 60])
def test_the_best_trees_are_the_first_of_all_trees(n, n_labels, is_rooted, k):
    scores = draw(n, n_labels)
    expected = all_trees(scores, n, is_rooted)[:k]
    found = best_trees(scores, n, k, is_rooted=is_rooted)
    listed = [
        sorted(zip(span_rows(n, each.starts, each.ends).tolist(), each.labels.tolist(), strict=True))
        for each, _ in found
    ]
    assert listed == [tree for _, tree in expected]
    for (spans, score), (own, _) in zip(found, expected, strict=True):
        assert score == pytest.approx(own)
        assert tree_score(scores, n, spans) == pytest.approx(own)


@pytest.mark.parametrize(("n", "n_labels", "is_rooted"), CASES)
def test_marginals_of_labels_are_sums_over_all_trees(n, n_labels, is_rooted):
    scores = draw(n, n_labels)
    trees = all_trees(scores, n, is_rooted)
    expected = np.zeros((len(scores), n_labels + 1))
    log_sum = np.logaddexp.reduce([score for score, _ in trees])
    for score, parts in trees:
        for row, label in parts:
            expected[row, label] += np.exp(score - log_sum)
    of_labels, of_spans, found = marginals(scores, n, is_rooted=is_rooted)
    assert found == pytest.approx(log_sum)
    assert log_partition(scores, n, is_rooted=is_rooted) == pytest.approx(log_sum)
    np.testing.assert_allclose(of_labels[:, 1:], expected[:, 1:], atol=1e-12)
    np.testing.assert_allclose(of_labels.sum(axis=1), of_spans)


CHAINS = [(), ("A",), ("A", "B"), ("B", "B")]


@pytest.mark.parametrize(
    ("n", "is_rooted"), [(n, is_rooted) for n in (1, 2, 3, 4) for is_rooted in (False, True)]
)
@pytest.mark.parametrize("scale", [0.3, 1.5, 4.0])
def test_no_tree_has_more_expected_labels_less_half_of_its_own(n, is_rooted, scale):
    scores = scale * draw(n, len(CHAINS) - 1)
    trees = all_trees(scores, n, is_rooted)
    log_sum = np.logaddexp.reduce([score for score, _ in trees])
    probable = {}
    for score, parts in trees:
        for key in _labels(parts):
            probable[key] = probable.get(key, 0.0) + np.exp(score - log_sum)
    highest = max(sum(probable[key] - 0.5 for key in _labels(parts)) for _, parts in trees)
    found, log_probability = majority_tree(scores, n, membership(CHAINS), is_rooted=is_rooted)
    own = sorted(zip(found.rows(n).tolist(), found.labels.tolist(), strict=True))
    assert log_probability == pytest.approx(next(score for score, parts in trees if parts == own) - log_sum)
    assert sum(probable[key] - 0.5 for key in _labels(own)) == pytest.approx(highest)


def test_spans_do_not_cross_if_they_are_exactly_as_probable_as_not():
    rng = np.random.default_rng(0)
    for number in range(300):
        n = int(rng.integers(2, 7))
        scores = np.zeros((n * (n + 1) // 2, 2)) + rng.choice([0.0, 1e5, -3e5])
        places = rng.permutation(len(scores))[:2]
        scores[places] += 40.0 * (number % 3)
        found, _ = majority_tree(scores, n, membership(CHAINS[:3]), is_rooted=bool(number % 2))
        spans = [*zip(found.starts.tolist(), found.ends.tolist(), strict=True)]
        assert not any(a < c < b < d for a, b in spans for c, d in spans)


def test_of_chains_with_the_same_labels_the_most_probable_one_wins():
    chains = [(), ("A", "B"), ("B", "A")]
    scores = np.array([[0.0, 5.0]])
    found, _ = majority_tree(scores, 1, membership(chains), is_rooted=True)
    assert found.labels.tolist() == [2]


def _labels(parts):
    """Return the span, label and number of each constituent of a tree, from its chains."""
    return [
        (row, name, CHAINS[chain][:at].count(name))
        for row, chain in parts
        for at, name in enumerate(CHAINS[chain])
    ]


def test_the_more_trees_are_wanted_the_shorter_are_whole_sentences():
    lengths = [longest_whole(k) for k in (1, 10, 100, 1000, 10_000)]
    assert lengths[0] == LONGEST
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] >= 20
