import numpy as np
import pytest
from oracle.kernels import svm as twin

from treewright.native.kernels.svm import (
    Dual,
    DualProblem,
    Heaps,
    Working,
    choose_new,
    find_intercept,
    load_working,
    measure,
    optimize,
    store_working,
)

SEEDS = range(12)


def draw(seed, n_examples=25, n_features=6, *, pairs=False):
    """Draw a kernel of eighths and a problem over it, of two variables an example if there are pairs."""
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-8, 9, size=(n_examples, n_features)) / 8
    matrix = vectors @ vectors.T
    targets = rng.integers(-8, 9, size=n_examples) / 4
    costs = rng.integers(1, 9, size=n_examples) / 4
    rows = np.arange(n_examples)
    if pairs:
        linear = np.concatenate([0.25 - targets, -0.25 - targets])
        low, high = np.concatenate([0 * costs, -costs]), np.concatenate([costs, 0 * costs])
        return matrix, DualProblem(np.concatenate([rows, rows]), linear, low, high), rng
    signs = np.where(targets > 0, 1.0, -1.0)
    high = np.where(signs > 0, costs, 0)
    return matrix, DualProblem(rows, -signs, high - costs, high), rng


def over_variables(matrix, problem):
    return matrix[np.ix_(problem.rows, problem.rows)]


def draw_values(problem, rng):
    """Draw values, about a third of them at either bound."""
    shares = rng.choice([0.0, 0.25, 0.5, 1.0], size=len(problem.rows), p=[0.3, 0.2, 0.2, 0.3])
    return problem.low + shares * (problem.high - problem.low)


def draw_slots(n_examples, rng):
    """Keep about half of the rows, in any order."""
    slots = np.full(n_examples, -1)
    chosen = rng.permutation(n_examples)[: n_examples // 2]
    slots[chosen] = rng.permutation(len(chosen))
    return slots


def make_dual(matrix, problem, values):
    return Dual(values, matrix[:, problem.rows] @ values)


def make_working(size):
    variables, rows = np.zeros((2, size), dtype=np.int64)
    return Working(variables, rows, *np.zeros((5, size)))


def keep_rows(matrix, slots):
    kept = np.full((max(1, (slots >= 0).sum()), len(matrix)), np.nan, dtype=np.float32)
    kept[slots[slots >= 0]] = matrix[slots >= 0]
    return kept


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_violations_are_those_of_the_definition(seed, pairs):
    matrix, problem, rng = draw(seed, pairs=pairs)
    values = draw_values(problem, rng)
    slots = draw_slots(len(matrix), rng)
    found = measure(problem, make_dual(matrix, problem, values), slots)
    whole = over_variables(matrix, problem)
    assert found[:2] == twin.ends(whole, problem.linear, problem.low, problem.high, values)
    slopes = twin.slopes(whole, problem.linear, values)
    ready = slots[problem.rows] >= 0
    assert found[2] == max(slopes[ready & (values < problem.high)], default=-np.inf)
    assert found[3] == min(slopes[ready & (values > problem.low)], default=np.inf)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_intercept_is_that_of_the_definition(seed):
    matrix, problem, rng = draw(seed)
    for values in (draw_values(problem, rng), np.where(rng.random(25) < 0.5, problem.low, problem.high)):
        expected = twin.intercept(matrix, problem.linear, problem.low, problem.high, values)
        assert find_intercept(problem, make_dual(matrix, problem, values)) == pytest.approx(expected)


@pytest.mark.parametrize("size", [2, 6, 12, 200])
@pytest.mark.parametrize("seed", SEEDS)
def test_new_variables_are_those_that_violate_most(seed, size):
    matrix, problem, rng = draw(seed, 60, pairs=True)
    values, slots = draw_values(problem, rng), draw_slots(60, rng)
    dual = make_dual(matrix, problem, values)
    rise, fall, _, _ = measure(problem, dual, slots)
    heaps = Heaps(np.zeros(size, dtype=np.int64), np.zeros(size))
    found = heaps.variables[: choose_new(problem, dual, slots, rise, fall, heaps)]
    slopes = twin.slopes(over_variables(matrix, problem), problem.linear, values)
    missing = slots[problem.rows] < 0
    rising = np.sort(slopes[missing & (values < problem.high) & (slopes > fall)])[::-1][: size // 2]
    falling = np.sort(slopes[missing & (values > problem.low) & (slopes < rise)])[: size // 2]
    assert len(found) == len(rising) + len(falling)
    assert np.sort(slopes[found[: len(rising)]])[::-1].tolist() == rising.tolist()
    assert np.sort(slopes[found[len(rising) :]]).tolist() == falling.tolist()
    assert missing[found].all()
    assert len(set(found[: len(rising)].tolist())) == len(rising)


@pytest.mark.parametrize("seed", SEEDS)
def test_working_sets_have_all_that_may_move_and_whose_rows_are_there(seed):
    matrix, problem, rng = draw(seed, pairs=True)
    values, slots = draw_values(problem, rng), draw_slots(len(matrix), rng)
    dual = make_dual(matrix, problem, values)
    rise, fall, _, _ = measure(problem, dual, slots)
    working = make_working(len(values))
    size = load_working(problem, dual, slots, rise, fall, keep_rows(matrix, slots), working)
    slopes = twin.slopes(over_variables(matrix, problem), problem.linear, values)
    may_move = ((values < problem.high) & (slopes >= fall)) | ((values > problem.low) & (slopes <= rise))
    expected = np.flatnonzero(may_move & (slots[problem.rows] >= 0))
    assert working.variables[:size].tolist() == expected.tolist()
    assert working.rows[:size].tolist() == problem.rows[expected].tolist()
    assert working.diagonal[:size].tolist() == np.diag(matrix)[problem.rows[expected]].tolist()
    assert working.gradient[:size].tolist() == (-slopes[expected]).tolist()


def improve(matrix, problem, dual, slots, tolerance):
    """Optimise all variables whose rows are there; return what has changed."""
    kept = keep_rows(matrix, slots)
    working, changed = make_working(len(dual.values)), np.zeros(len(dual.values), dtype=np.int64)
    rise, fall, _, _ = measure(problem, dual, slots)
    size = load_working(problem, dual, slots, rise, fall, kept, working)
    optimize(working, size, slots, kept, tolerance, 100_000)
    return changed[: store_working(working, size, slots, kept, dual, changed)]


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_values_are_optimal_if_all_rows_are_there(seed, pairs):
    matrix, problem, _ = draw(seed, pairs=pairs)
    dual = make_dual(matrix, problem, np.zeros(len(problem.rows)))
    for _ in range(5):  # what a round leaves out may have to move after it
        improve(matrix, problem, dual, np.arange(len(matrix)), 1e-9)
    whole, bounds = over_variables(matrix, problem), (problem.low, problem.high)
    values = twin.solve(whole, problem.linear, *bounds)
    expected = twin.objective(whole, problem.linear, values)
    assert twin.objective(whole, problem.linear, dual.values) == pytest.approx(expected, abs=1e-7)
    rise, fall = twin.ends(whole, problem.linear, *bounds, dual.values)
    assert rise - fall < 1e-8
    assert (dual.values >= problem.low).all()
    assert (dual.values <= problem.high).all()
    assert abs(dual.values.sum()) < 1e-12


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_only_values_whose_rows_are_there_change_and_scores_follow(seed, pairs):
    matrix, problem, rng = draw(seed, 1500 if seed == 0 else 25, pairs=pairs)
    before = draw_values(problem, rng)
    dual, slots = make_dual(matrix, problem, before.copy()), draw_slots(len(matrix), rng)
    changed = improve(matrix, problem, dual, slots, 1e-3)
    moved = np.flatnonzero(dual.values != before)
    assert changed.tolist() == problem.rows[moved].tolist()
    assert (slots[changed] >= 0).all()
    np.testing.assert_allclose(dual.scores, matrix[:, problem.rows] @ dual.values, atol=1e-9)
    whole = over_variables(matrix, problem)
    after, earlier = (twin.objective(whole, problem.linear, each) for each in (dual.values, before))
    assert after <= earlier + 1e-9


def test_equal_examples_of_different_classes_go_to_their_bounds():
    problem = DualProblem(np.arange(2), np.array([-1.0, 1.0]), np.array([0.0, -2.0]), np.array([2.0, 0.0]))
    dual = Dual(np.zeros(2), np.zeros(2))
    improve(np.ones((2, 2)), problem, dual, np.arange(2), 1e-3)
    assert dual.values.tolist() == [2, -2]
    assert dual.scores.tolist() == [0, 0]


def test_a_step_limit_ends_the_work():
    matrix, problem, _ = draw(3)
    slots, working = np.arange(len(matrix)), make_working(len(problem.rows))
    kept = keep_rows(matrix, slots)
    dual = make_dual(matrix, problem, np.zeros(len(problem.rows)))
    size = load_working(problem, dual, slots, 1.0, -1.0, kept, working)
    assert optimize(working, size, slots, kept, 1e-9, 3) == 3
    assert np.count_nonzero(working.values[:size]) <= 6
