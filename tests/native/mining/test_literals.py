import numpy as np
import pytest
from oracle.mining import literals as twin
from scipy.sparse import csr_matrix

from treewright.learn.chains import columns_of
from treewright.mining.column_model import literal_columns, match_rows_of_literals
from treewright.mining.literal_search import RIDGE, LiteralSearch
from treewright.native.mining.literals import LiteralLimits, accept, score_columns


def draw(seed, density, n_outputs=1):
    rng = np.random.default_rng(seed)
    dense = rng.random((120, 7)) < density
    residuals = rng.normal(size=(120, n_outputs))
    return dense, residuals


def search(dense, residuals, degree, *, negations):
    rows = csr_matrix(dense.astype(np.int8))
    found = LiteralSearch(rows, degree=degree, negations=negations, n_rows_min=1, work=10**9)
    parts = found.find(residuals, 10**6, margin=-np.inf, least=1e-9)
    return {
        tuple(literals): score
        for part in parts
        for literals, score in zip(part.literals.tolist(), part.scores, strict=True)
    }, found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_all_conjunctions_of_rare_columns_are_scored(seed, n_outputs, monkeypatch):
    monkeypatch.setattr("treewright.mining.literal_search.DENSE", 2.0)
    dense, residuals = draw(seed, 0.3, n_outputs)
    found, space = search(dense, residuals, 4, negations=False)
    expected = twin.best(dense, residuals, 4, RIDGE, negations=False)
    assert space.is_exact
    assert set(found) == {each for each, score in expected.items() if score > 1e-9}
    for each, score in found.items():
        assert score == pytest.approx(expected[each])


@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_and_triples_of_dense_columns_are_found_with_negations(seed):
    dense, residuals = draw(seed, 0.5)
    found, _ = search(dense, residuals, 3, negations=True)
    expected = twin.best(dense, residuals, 3, RIDGE, negations=True)
    assert set(found) <= set(expected)
    for each, score in expected.items():
        if score > 1 and len(each) == 2:
            assert found[each] == pytest.approx(score, rel=1e-3)
    n_triples = sum(len(each) == 3 for each in found)
    assert n_triples > 0.95 * sum(len(each) == 3 for each in expected)


def test_negations_are_found_beside_rare_columns():
    rng = np.random.default_rng(0)
    dense = rng.random((4000, 30)) < 0.07
    residuals = (dense[:, 3] & ~dense[:, 5])[:, np.newaxis] - 0.3 * dense[:, [5]]
    found, _ = search(dense, residuals, 2, negations=True)
    expected = twin.best(dense, residuals, 2, RIDGE, negations=True)
    assert found[3, ~5] == pytest.approx(expected[3, ~5])


def test_a_conjunction_must_be_better_than_its_parts():
    dense, _ = draw(0, 0.5)
    residuals = (dense[:, 0] & dense[:, 1]).astype(float)[:, np.newaxis]
    rows = csr_matrix(dense.astype(np.int8))
    space = LiteralSearch(rows, degree=3, negations=True, n_rows_min=1, work=10**9)
    found = space.find(residuals, 1000, margin=5.0, least=4.0)
    assert all({0, 1} - set(each) for part in found[1:] for each in part.literals.tolist())


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_literals_are_found(seed):
    rng = np.random.default_rng(seed)
    dense = rng.random((200, 6)) < rng.uniform(0.02, 0.9, 6)
    literals = [
        np.array([[0, ~1], [~2, ~3]], dtype=np.int32),
        np.array([[0, 1, 2], [~3, 4, ~5]], dtype=np.int32),
    ]
    found = match_rows_of_literals(csr_matrix(dense.astype(np.int8)), literals).toarray()
    expected = [twin.is_true(dense, each) for part in literals for each in part.tolist()]
    np.testing.assert_array_equal(found, np.stack(expected, axis=1))


def test_what_is_explained_already_is_not_accepted():
    dense, residuals = draw(1, 0.5)
    columns = columns_of(csr_matrix(dense.astype(np.int8)))
    literals = np.array([[0, 1], [0, 1], [2, ~3]], dtype=np.int32)
    candidates = literal_columns([literals], columns, 120)
    residuals = twin.is_true(dense, (0, 1))[:, np.newaxis] * 1.0
    scores = np.empty(3)
    score_columns(candidates, residuals, RIDGE, scores)
    assert scores[0] == pytest.approx(twin.score(residuals, twin.is_true(dense, (0, 1)), RIDGE))
    accepted = np.empty(3, dtype=np.int64)
    rule = LiteralLimits(10.0, 0.0, 1, RIDGE, 0)
    assert accept(candidates, residuals.copy(), np.ones((120, 1)), rule, 0.1, 3, accepted) == 1
    assert accepted[0] == 0
