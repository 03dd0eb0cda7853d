from itertools import pairwise

import numpy as np
import pytest
from oracle.learn import proximal as twin
from scipy.sparse import csr_matrix

from treewright.mining.problem import label_problem, list_problem
from treewright.native.learn.proximal import (
    Design,
    ProximalWeights,
    add_gradient,
    descend,
    find_violators,
    renumber,
    score_rows,
    shrink_all,
)

KINDS = ["two classes", "three classes", "lists", "lists with costs"]
CASES = [(seed, kind) for seed in range(8) for kind in KINDS]
N_ROWS, N_COLUMNS = 18, 6


def draw(seed, kind):
    """Draw rows of features, one of them empty, and a problem about them."""
    rng = np.random.default_rng(seed)
    dense = (rng.random((N_ROWS, N_COLUMNS)) < 0.4).astype(float)
    dense[4] = 0
    if kind == "two classes":
        return dense, label_problem(rng.integers(0, 2, size=N_ROWS), 2), rng
    if kind == "three classes":
        return dense, label_problem(rng.integers(0, 3, size=N_ROWS), 3), rng
    first = np.array([0, 3, 4, 9, 12, N_ROWS])
    right = first[:-1] + rng.integers(0, np.diff(first))
    if kind == "lists":
        return dense, list_problem(first, right), rng
    costs, given = rng.integers(0, 17, size=N_ROWS) / 8, rng.integers(-8, 9, size=N_ROWS) / 8
    return dense, list_problem(first, right, costs=costs, base_scores=given), rng


def as_design(dense):
    matrix = csr_matrix(dense)
    return Design(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))


def as_dense(design, n_columns):
    dense = np.zeros((len(design.indptr) - 1, n_columns))
    for row in range(len(dense)):
        dense[row, design.columns[design.indptr[row] : design.indptr[row + 1]]] += 1
    return dense


def as_samples(problem):
    """Return the samples as the twin has them."""
    _, *columns = problem.alternatives
    alternatives = list(zip(*(column.tolist() for column in columns), strict=True))
    return [alternatives[begin:end] for begin, end in pairwise(problem.alternatives.indptr)]


def as_numbers(problem, worst):
    """Return the twin's choices within samples as numbers of alternatives."""
    pairs = zip(problem.alternatives.indptr, worst, strict=False)
    return [-1 if chosen is None else int(begin + chosen) for begin, chosen in pairs]


def random_weights(rng, problem):
    """Draw eighths, so that sums are exact and ties happen."""
    return rng.integers(-8, 9, size=(N_COLUMNS, problem.n_outputs)) / 8


def scored(dense, weights):
    scores = np.full((len(dense), weights.shape[1]), np.nan)
    score_rows(as_design(dense), weights, scores)
    return scores


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_scores_are_those_of_the_dense_rows(seed, kind):
    dense, problem, rng = draw(seed, kind)
    weights = random_weights(rng, problem)
    assert scored(dense, weights).tolist() == (dense @ weights).tolist()


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_violators_have_the_first_alternative_of_the_highest_loss(seed, kind):
    dense, problem, rng = draw(seed, kind)
    weights = random_weights(rng, problem)
    worst = np.empty(problem.n_samples, np.int64)
    total = find_violators(problem.alternatives, scored(dense, weights), worst)
    expected = [twin.worst_of(dense, weights, sample) for sample in as_samples(problem)]
    assert total == sum(loss for loss, _ in expected)
    assert worst.tolist() == as_numbers(problem, [chosen for _, chosen in expected])


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_leave_no_loss_leave_no_violators(kind):
    dense = np.eye(N_ROWS)
    _, problem, _ = draw(0, kind)
    alternatives = problem.alternatives
    weights = np.zeros((N_ROWS, problem.n_outputs))
    for alternative, (row, output) in enumerate(zip(alternatives.rows, alternatives.outputs, strict=True)):
        if row >= 0:
            weights[row, output] = 9 if alternative + 1 in alternatives.indptr else -9
    worst = np.empty(problem.n_samples, np.int64)
    assert find_violators(alternatives, scored(dense, weights), worst) == 0
    assert worst.tolist() == [-1] * problem.n_samples


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_the_gradient_is_that_of_the_dense_rows(seed, kind):
    dense, problem, rng = draw(seed, kind)
    samples = as_samples(problem)
    chosen = [rng.choice([None, *range(len(sample) - 1)]) for sample in samples]
    before = random_weights(rng, problem)
    found = before.copy()
    add_gradient(as_design(dense), problem.alternatives, np.array(as_numbers(problem, chosen)), found)
    assert found.tolist() == (before + twin.gradient(dense, samples, chosen, before.shape)).tolist()


def run(dense, problem, orders, weights, *, penalties, rate, uses=None):
    """Descend in passes; return the model, brought up to date, and the worst alternatives of each pass."""
    uses = np.zeros_like(weights) if uses is None else uses.copy()
    paces = rate / np.sqrt(np.maximum(1, uses))
    model = ProximalWeights(weights.copy(), uses, paces, np.zeros(len(weights)), penalties)
    step, passes = 0.0, []
    for order in orders:
        worst = np.full(problem.n_samples, -9)
        step = descend(as_design(dense), problem.alternatives, order, model, rate, step, worst)
        passes.append(worst.tolist())
    assert step == sum(map(len, orders))
    shrink_all(model, step)
    return model, passes


def both(seed, kind, threshold=2.0):
    """Descend in five passes, here and in the twin, from random weights."""
    dense, problem, rng = draw(seed, kind)
    weights = rng.normal(size=(N_COLUMNS, problem.n_outputs)) * (rng.random((N_COLUMNS, 1)) < 0.5)
    uses = rng.integers(0, 5, size=weights.shape).astype(float)
    penalties = np.full(N_COLUMNS, threshold / problem.n_samples)
    penalties[0] = 0
    orders = [rng.permutation(problem.n_samples) for _ in range(5)]
    rate = 0.3
    found = run(dense, problem, orders, weights, penalties=penalties, rate=rate, uses=uses)
    paces = rate / np.sqrt(np.maximum(1, uses))
    expected = twin.descend(dense, as_samples(problem), orders, weights, uses, paces, penalties, rate)
    return problem, found, expected


@pytest.mark.parametrize("threshold", [0.0, 0.3, 2.0])
@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_descent_equals_one_that_shrinks_all_weights_in_each_step(seed, kind, threshold):
    _, (model, _), (weights, uses, _) = both(seed, kind, threshold)
    np.testing.assert_allclose(model.weights, weights, atol=1e-9)
    assert model.uses.tolist() == uses.tolist()


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_descent_tells_the_wrong_alternatives_of_samples_that_moved_by_more_than_half(seed, kind):
    problem, (_, passes), (_, _, expected) = both(seed, kind)
    for worst, shares in zip(passes, expected, strict=True):
        moved = {number: wrong for number, (share, wrong) in shares.items() if share > 0.5}
        assert worst == as_numbers(problem, [moved.get(number) for number in range(problem.n_samples)])


def test_shares_of_all_sizes_were_met():
    shares = [
        share for seed, kind in CASES for every in both(seed, kind)[2][2] for share, _ in every.values()
    ]
    assert 1.0 in shares
    assert min(np.histogram(shares, bins=4, range=(0, 1))[0]) > 10


def test_a_sample_without_loss_moves_nothing():
    dense, problem, rng = draw(0, "two classes")
    alternatives = problem.alternatives._replace(costs=np.zeros(2 * N_ROWS))
    problem.alternatives = alternatives
    orders = [rng.permutation(N_ROWS)]
    model, passes = run(
        dense, problem, orders, np.zeros((N_COLUMNS, 1)), penalties=np.ones(N_COLUMNS), rate=1.0
    )
    assert not model.weights.any()
    assert not model.uses.any()
    assert passes == [[-1] * N_ROWS]


def test_a_sample_of_one_alternative_is_never_a_violator():
    problem = list_problem(np.array([0, 1, 2]), np.array([0, 1]))
    worst = np.empty(2, np.int64)
    assert find_violators(problem.alternatives, np.zeros((2, 1)), worst) == 0
    assert worst.tolist() == [-1, -1]


def test_a_move_is_no_more_than_the_loss_needs():
    problem = label_problem(np.array([1]), 2)
    order, penalties = [np.array([0])], np.zeros(2)
    model, passes = run(np.ones((1, 2)), problem, order, np.zeros((2, 1)), penalties=penalties, rate=10.0)
    np.testing.assert_allclose(model.weights, [[0.5], [0.5]])
    assert passes == [[-1]]


def test_a_move_is_no_more_than_the_paces():
    problem = label_problem(np.array([1]), 2)
    order, penalties = [np.array([0])], np.zeros(2)
    model, passes = run(np.ones((1, 2)), problem, order, np.zeros((2, 1)), penalties=penalties, rate=0.25)
    assert model.weights.tolist() == [[0.25], [0.25]]
    assert passes == [[0]]


def test_a_loss_that_no_weight_can_lessen_counts_in_full():
    problem = label_problem(np.array([1, 0]), 2)
    order, penalties = [np.array([0, 1])], np.zeros(2)
    model, passes = run(np.zeros((2, 2)), problem, order, np.zeros((2, 1)), penalties=penalties, rate=1.0)
    assert not model.weights.any()
    assert passes == [[0, 2]]


def draw_learnable(kind):
    """Draw rows with a column of ones, and a problem that their features answer but for some noise."""
    rng = np.random.default_rng(1)
    dense = (rng.random((60, N_COLUMNS)) < 0.4).astype(float)
    dense[:, 0] = 1
    weights = np.array([[0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 2], [1, -1, 0], [0, 1, -1]])
    scores = dense @ weights + rng.normal(scale=0.5, size=(60, 3))
    if kind == "lists":
        first = np.arange(0, 61, 4)
        return dense, list_problem(first, first[:-1] + scores[:, 0].reshape(15, 4).argmax(axis=1)), rng
    n_classes = 2 if kind == "two classes" else 3
    return dense, label_problem(scores[:, :n_classes].argmax(axis=1), n_classes), rng


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize("threshold", [0.5, 1.5])
def test_many_passes_come_close_to_the_optimum(kind, threshold):
    dense, problem, rng = draw_learnable(kind)
    shape = (N_COLUMNS, problem.n_outputs)
    is_shrunk = np.arange(N_COLUMNS) >= problem.has_intercept
    penalties = threshold / problem.n_samples * is_shrunk
    orders = [rng.permutation(problem.n_samples) for _ in range(1600)]
    rate = len(dense) / dense.sum()
    model, _ = run(dense, problem, orders, np.zeros(shape), penalties=penalties, rate=rate)
    samples = as_samples(problem)
    reached = twin.objective(dense, samples, model.weights, threshold, is_shrunk)
    best = twin.optimum(dense, samples, shape, threshold, is_shrunk)
    assert best < 0.8 * problem.n_samples
    assert best - 1e-7 <= reached <= 1.02 * best


@pytest.mark.parametrize("seed", range(10))
def test_columns_are_renumbered_dropped_and_added(seed):
    rng = np.random.default_rng(seed)
    dense, added = (rng.random((7, n)) < 0.5 for n in (6, int(rng.integers(0, 5))))
    kept = rng.permutation(6)[: int(rng.integers(0, 7))]
    numbers = np.full(6, -1)
    numbers[kept] = np.arange(len(kept))
    result = Design(np.full(8, -1), np.full(int(dense.sum() + added.sum()), -1, np.int32))
    renumber(as_design(dense), numbers, as_design(added), len(kept), result)
    expected = np.column_stack([dense[:, kept], added])
    assert as_dense(result, expected.shape[1]).tolist() == expected.astype(float).tolist()
    assert result.indptr[-1] == expected.sum()
