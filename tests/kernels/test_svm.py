import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVC, SVR

from treewright.errors import InputError
from treewright.kernels.base import PackedExamples
from treewright.kernels.svm import RowCache, classification_problem, regression_problem, solve
from treewright.progress import messages_to

TOL, PEER_TOL = 1e-3, 1e-6


class PackedMatrix(PackedExamples):
    """A matrix of kernel values, that counts what is asked of it."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.asked = []

    def __len__(self):
        return len(self.matrix)

    def block(self, rows_a, rows_b):
        self.asked.append((len(rows_a), len(rows_b)))
        return self.matrix[np.ix_(rows_a, rows_b)]

    def compare(self, examples):
        raise NotImplementedError

    def diagonal(self):
        return np.diag(self.matrix)


def draw(random_state, n_examples=80, n_features=4, noise=0.3):
    """Draw a positive semi-definite matrix, of full rank or not, with signs that follow it more or less."""
    rng = np.random.default_rng(random_state)
    vectors = rng.normal(size=(n_examples, n_features))
    matrix = vectors @ vectors.T
    if random_state % 2:
        squares = np.diag(matrix)
        matrix = np.exp(-(squares[:, None] + squares - 2 * matrix) / n_features)
    scores = np.sin(vectors[:, 0] * 2) + vectors[:, 1] + noise * rng.normal(size=n_examples)
    return matrix, scores, rng


def classify(matrix, signs, bounds, *, memory=1 << 30, tol=TOL, working_size=16):
    cache = RowCache(PackedMatrix(matrix), memory)
    problem = classification_problem(np.arange(len(signs)), signs, bounds)
    return solve(problem, cache, tol=tol, working_size=working_size), cache


def expand(machine, n_examples):
    coef = np.zeros(n_examples)
    coef[machine.support_] = machine.dual_coef_[0]
    return coef


@pytest.mark.parametrize("cost", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("random_state", range(10))
def test_classifiers_are_those_of_scikit_learn(random_state, cost):
    matrix, scores, rng = draw(random_state)
    signs = np.where(scores > 0.2, 1.0, -1.0)
    weights = np.where(signs > 0, 3.0, 0.5) * rng.uniform(0.5, 2, size=len(signs))
    found, _ = classify(matrix, signs, cost * weights)
    peer = SVC(kernel="precomputed", C=cost, class_weight={1: 3.0, -1: 0.5}, tol=PEER_TOL)
    peer.fit(matrix, signs, sample_weight=weights / np.where(signs > 0, 3.0, 0.5))
    coef = expand(peer, len(signs))
    assert found.objective == pytest.approx(coef @ matrix @ coef / 2 - coef @ signs, rel=1e-3)
    np.testing.assert_allclose(found.scores + found.intercept, peer.decision_function(matrix), atol=5 * TOL)


@pytest.mark.parametrize("cost", [0.1, 10.0])
@pytest.mark.parametrize("random_state", range(10))
def test_regressors_are_those_of_scikit_learn(random_state, cost):
    matrix, scores, rng = draw(random_state)
    weights = rng.uniform(0.5, 2, size=len(scores))
    problem = regression_problem(np.arange(len(scores)), scores, cost * weights, epsilon=0.2)
    found = solve(problem, RowCache(PackedMatrix(matrix)), tol=TOL, working_size=16)
    peer = SVR(kernel="precomputed", C=cost, epsilon=0.2, tol=PEER_TOL).fit(
        matrix, scores, sample_weight=weights
    )
    coef = expand(peer, len(scores))
    objective = coef @ matrix @ coef / 2 - coef @ scores + 0.2 * np.abs(coef).sum()
    assert found.objective == pytest.approx(objective, rel=1e-3)
    np.testing.assert_allclose(found.scores + found.intercept, peer.predict(matrix), atol=5 * TOL)


@given(
    random_state=st.integers(0, 10_000),
    n_examples=st.integers(2, 60),
    cost=st.sampled_from([0.01, 1.0, 100.0]),
    n_rows=st.integers(0, 70),
)
def test_the_conditions_of_optimality_hold(random_state, n_examples, cost, n_rows):
    matrix, _, rng = draw(random_state, n_examples)
    signs = rng.permutation(np.where(np.arange(n_examples) % 3, 1.0, -1.0))
    bounds = cost * rng.uniform(0.1, 1, size=n_examples)
    found, cache = classify(matrix, signs, bounds, memory=4 * n_examples * n_rows)
    margins = signs * (matrix @ found.coef + found.intercept)
    alpha = signs * found.coef
    assert cache.capacity == min(n_examples, max(2, n_rows))
    assert (alpha >= 0).all()
    assert (alpha <= bounds).all()
    assert abs(found.coef.sum()) < 1e-9
    slack = 2 * TOL + 1e-5 * cost
    assert (margins[alpha < bounds] > 1 - slack).all()
    assert (margins[alpha > 0] < 1 + slack).all()


@pytest.mark.parametrize("n_rows", [0, 2, 3, 10, 40])
def test_little_memory_gives_the_same_machine(n_rows):
    matrix, scores, _ = draw(1)
    signs, bounds = np.where(scores > 0, 1.0, -1.0), np.ones(len(scores))
    expected, _ = classify(matrix, signs, bounds)
    found, cache = classify(matrix, signs, bounds, memory=4 * len(scores) * n_rows)
    assert cache.kept.nbytes == 4 * len(scores) * max(2, n_rows)
    assert found.objective == pytest.approx(expected.objective, rel=1e-4)
    np.testing.assert_allclose(
        found.scores + found.intercept, expected.scores + expected.intercept, atol=0.01
    )


def test_an_unmovable_example_is_not_looked_at():
    matrix, scores, _ = draw(1)
    signs = np.where(scores > 0, 1.0, -1.0)
    bounds = np.where(np.arange(len(signs)) < 60, 1.0, 0.0)
    found, _ = classify(matrix, signs, bounds)
    expected, _ = classify(matrix[:60, :60], signs[:60], bounds[:60])
    np.testing.assert_array_equal(found.coef[60:], 0)
    np.testing.assert_allclose(found.coef[:60], expected.coef, atol=0.01)


def test_scores_of_examples_that_the_problem_leaves_out_are_known():
    matrix, scores, _ = draw(1)
    rows = np.arange(0, len(scores), 2)
    signs = np.where(scores > 0, 1.0, -1.0)[rows]
    problem = classification_problem(rows, signs, np.ones(len(rows)))
    found = solve(problem, RowCache(PackedMatrix(matrix)))
    assert set(np.flatnonzero(found.coef)) <= set(rows)
    np.testing.assert_allclose(found.scores, matrix @ found.coef, atol=1e-5)


def test_a_round_limit_ends_the_work():
    matrix, scores, _ = draw(1)
    signs = np.where(scores > 0, 1.0, -1.0)
    problem = classification_problem(np.arange(len(signs)), signs, np.full(len(signs), 10.0))
    lines = []
    with messages_to(lines.append):
        found = solve(problem, RowCache(PackedMatrix(matrix)), max_iter=1, working_size=4)
    assert found.n_iter == 1
    assert found.violation > TOL
    assert [line.partition(",")[0] for line in lines] == ["machine: 1 iterations"]


def test_rows_are_those_of_the_kernel_whatever_has_left():
    matrix, _, rng = draw(1)
    cache = RowCache(PackedMatrix(matrix), 4 * len(matrix) * 10)
    for _ in range(30):
        rows = rng.integers(0, len(matrix), size=7)
        cache.fetch(rows)
        np.testing.assert_array_equal(cache.kept[cache.slots[rows]], matrix[rows].astype(np.float32))
        present = np.flatnonzero(cache.slots >= 0)
        assert len(present) <= 10
        assert len(set(cache.slots[present].tolist())) == len(present)


def test_values_that_half_of_the_rows_have_are_not_computed_again():
    matrix, _, rng = draw(1)
    packed = PackedMatrix(matrix)
    cache = RowCache(packed)
    order = rng.permutation(80)
    for rows in (order[:10], order[5:42], order[:40], order[40:45]):
        cache.fetch(rows)
    assert packed.asked == [(10, 80), (16, 80), (16, 80), (3, 38)]
    assert cache.n_computed == 45
    np.testing.assert_array_equal(cache.kept[cache.slots[order[:45]]], matrix[order[:45]].astype(np.float32))


def test_rows_that_were_not_used_for_longest_leave():
    matrix, _, _ = draw(1)
    cache = RowCache(PackedMatrix(matrix), 4 * len(matrix) * 3)
    for row in (0, 1, 2, 0, 3):
        cache.fetch(np.array([row]))
    assert np.flatnonzero(cache.slots >= 0).tolist() == [0, 2, 3]
    cache.touch(np.array([2]))
    cache.fetch(np.array([4]))
    assert np.flatnonzero(cache.slots >= 0).tolist() == [2, 3, 4]


def test_machines_that_share_a_cache_compute_a_row_once():
    matrix, scores, _ = draw(1)
    cache = RowCache(PackedMatrix(matrix))
    for threshold in (-0.5, 0.0, 0.5):
        signs = np.where(scores > threshold, 1.0, -1.0)
        solve(classification_problem(np.arange(len(signs)), signs, np.ones(len(signs))), cache)
    assert cache.n_computed <= len(matrix)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing(n_jobs):
    matrix, scores, _ = draw(1)
    signs = np.where(scores > 0, 1.0, -1.0)
    problem = classification_problem(np.arange(len(signs)), signs, np.ones(len(signs)))
    expected = solve(problem, RowCache(PackedMatrix(matrix)))
    found = solve(problem, RowCache(PackedMatrix(matrix), n_jobs=n_jobs))
    assert found.coef.tolist() == expected.coef.tolist()


@pytest.mark.parametrize(("value", "name"), [(np.nan, "nan"), (np.inf, "inf"), (1e300, "inf")])
def test_values_that_are_no_numbers_of_32_bits_are_told(value, name):
    matrix, _, _ = draw(1)
    matrix[3, 7] = matrix[7, 3] = value
    with pytest.raises(
        InputError, match=f"the kernel value of examples 3 and 7 is {name}; expected a finite"
    ):
        RowCache(PackedMatrix(matrix)).fetch(np.array([3]))


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 40])
def test_rows_are_computed_together_whatever_the_number_of_threads(n_jobs):
    class Recorded(PackedMatrix):
        def block(self, rows_a, rows_b):
            asked.append(tuple(rows_a.tolist()))
            return super().block(rows_a, rows_b)

    asked = []
    matrix = np.eye(50)
    RowCache(Recorded(matrix), n_jobs=n_jobs).fetch(np.arange(40))
    assert sorted(asked) == [tuple(range(16)), tuple(range(16, 32)), tuple(range(32, 40))]
