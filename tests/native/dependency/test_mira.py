import numpy as np
import pytest
from oracle.dependency import mira as twin

from treewright.native.dependency.mira import Rivals, apply_update, solve_update

N_SLOTS = 12
BOUNDS = [np.inf, 0.3, 0.02]


def random_problem(seed):
    """Draw up to four rivals; return them, their dense differences, and the margins that are lacking."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 9, size=int(rng.integers(1, 5)))
    first = np.cumsum([0, *counts])
    slots = rng.integers(0, N_SLOTS, size=first[-1]) * 1000
    signs = rng.choice([-1.0, 1.0], size=first[-1]).astype(np.float32)
    dense = np.zeros((len(counts), N_SLOTS))
    for number in range(len(counts)):
        for at in range(first[number], first[number + 1]):
            dense[number, slots[at] // 1000] += signs[at]
    return Rivals(first, slots, signs), dense, rng.uniform(0, 4, size=len(counts))


def solve(rivals, needed, bound):
    change = np.full(len(needed), np.nan)
    solve_update(rivals, needed, bound, change)
    return change


def can_be_met(dense, needed):
    """Tell whether some weights give all the margins asked for."""
    return np.linalg.matrix_rank(dense) == len(needed)


SEEDS = range(40)
SOLVABLE = [seed for seed in SEEDS if can_be_met(*random_problem(seed)[1:])]


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("seed", SOLVABLE)
def test_steps_meet_the_conditions_of_the_optimum(seed, bound):
    rivals, dense, needed = random_problem(seed)
    change = solve(rivals, needed, bound)
    lacking = needed - dense @ dense.T @ change
    assert ((change >= 0) & (change <= bound)).all()
    assert (lacking[change < bound] < 1e-3).all()
    assert (lacking[change > 0] > -1e-3).all()


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("seed", SOLVABLE)
def test_the_update_equals_that_of_the_best_set_of_constraints(seed, bound):
    rivals, dense, needed = random_problem(seed)
    expected = twin.smallest_update(dense, needed, bound) @ dense
    np.testing.assert_allclose(solve(rivals, needed, bound) @ dense, expected, atol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_changes_when_nothing_is_needed(seed):
    rivals, _, needed = random_problem(seed)
    assert solve(rivals, -needed, 1.0).tolist() == [0.0] * len(needed)


def test_a_rival_without_any_difference_gets_no_step():
    slots = np.array([5, 5, 7], np.int64)
    rivals = Rivals(np.array([0, 2, 3]), slots, np.array([1, -1, 1], np.float32))
    assert solve(rivals, np.array([3.0, 2.0]), 9.0).tolist() == [0.0, 2.0]


def test_equal_rivals_share_one_step():
    rivals = Rivals(np.array([0, 1, 2]), np.array([5, 5], np.int64), np.ones(2, np.float32))
    assert solve(rivals, np.array([3.0, 3.0]), 9.0).sum() == pytest.approx(3.0)


@pytest.mark.parametrize("seed", SOLVABLE)
def test_after_an_update_without_bound_all_margins_hold(seed):
    rivals, dense, needed = random_problem(seed)
    weights, totals = np.zeros(N_SLOTS * 1000, np.float32), np.zeros(N_SLOTS * 1000)
    apply_update(rivals, solve(rivals, needed, np.inf), 1, weights, totals)
    assert (dense @ weights[::1000] > needed - 2e-3).all()


def test_totals_average_the_weights_before_each_step():
    weights, totals = np.zeros(N_SLOTS * 1000, np.float32), np.zeros(N_SLOTS * 1000)
    history = []
    for step in range(1, 21):
        history.append(weights.copy())
        rivals, _, needed = random_problem(step)
        apply_update(rivals, solve(rivals, needed, 0.1), step, weights, totals)
    assert weights.any()
    np.testing.assert_allclose(weights - totals / 20, np.mean(history, axis=0), atol=1e-5)


def test_slots_that_fall_together_in_the_table_are_told_apart():
    slots = np.arange(100, dtype=np.int64) * 2**20
    rivals = Rivals(np.arange(101), slots, np.ones(100, np.float32))
    np.testing.assert_allclose(solve(rivals, np.arange(100.0), np.inf), np.arange(100))
