"""How the parts of a final score are put together."""

import numpy as np
import pytest

from treewright.rerank.score_weights import SHARES, ScoreParts, ScoreWeights, tune

RIGHT, WRONG = [4.0, 4.0, 4.0], [1.0, 4.0, 4.0]


def make_parts(base, evidence=(0.0,) * 4, *others):
    columns = np.array(others, dtype=np.float64).reshape(-1, 4).T
    return ScoreParts(np.array(base, dtype=np.float64), np.array(evidence, dtype=np.float64), columns)


@pytest.fixture
def counts():
    """Make two lists of two candidates, of which the second is right."""
    return [np.array([WRONG, RIGHT])] * 2


def test_nothing_is_added_where_it_gains_nothing(counts):
    assert tune(make_parts([0, 1, 0, 1], [5, 0, 5, 0], [3, 0, 3, 0]), counts) == ScoreWeights(
        0, (0,), 100, 100, 100
    )


def test_evidence_counts_as_much_as_it_must_to_gain_most(counts):
    found = tune(make_parts([1, 0, 1, 0], [0, 0.6, 0, 0.3]), counts)
    assert found == ScoreWeights(4.0, (), 25.0, 100.0, 100.0)


def test_the_second_parser_counts_too(counts):
    found = tune(make_parts([1, 0, 1, 0], [0, 2, 0, 0], [0, 0, 0, 2]), counts)
    assert (found.kernel_weight, found.others) == (1.0, (1.0,))
    assert found.chosen == 100.0


@pytest.mark.parametrize("max_tried", [1, 10_000])
def test_each_of_several_parsers_has_its_weight(counts, monkeypatch, max_tried):
    monkeypatch.setattr("treewright.rerank.score_weights.MAX_TRIED", max_tried)
    found = tune(make_parts([1, 0, 1, 0], [0] * 4, [0, 2, 0, 0], [0, 0, 0, 0.3]), counts)
    assert found.others == (1.0, 4.0)
    assert (found.kernel_weight, found.chosen) == (0.0, 100.0)


@pytest.mark.parametrize("max_tried", [1, 10_000])
def test_what_is_chosen_is_never_worse_than_the_parser(monkeypatch, max_tried):
    monkeypatch.setattr("treewright.rerank.score_weights.MAX_TRIED", max_tried)
    rng = np.random.default_rng(0)
    for _ in range(5):
        counts = [np.column_stack([rng.integers(5, size=3), np.full((3, 2), 4)]) for _ in range(6)]
        base, evidence, *others = rng.normal(size=(4, 18))
        parts = ScoreParts(base, evidence, np.array(others).T)
        found = tune(parts, counts)
        assert found.base <= found.chosen <= found.best
        assert {found.kernel_weight, *found.others} <= set(SHARES)


def test_tuning_says_what_it_gains():
    assert str(ScoreWeights(0.5, (2.0, 0.25), 80.0, 81.25, 90.0)) == (
        "dev F1 80.00 by the parser, 81.25 reranked "
        "(reranker weight 0.5, parser 2 weight 2, parser 3 weight 0.25), 90.00 oracle"
    )
