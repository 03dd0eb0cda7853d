"""A solver for support vector machines that computes kernel rows on demand."""

import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, Integers
from treewright.errors import InputError
from treewright.kernels.base import PackedExamples
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
from treewright.progress import report, task
from treewright.scale import map_jobs, one_blas_thread

BYTES_PER_VALUE = 4
WORKING_SIZE = 64
"""Minimum number of rows requested at a time, if the cache has space for twice as many."""
PIECE = 1 << 23
"""Maximum number of kernel values computed at a time, unless one row has more."""
ROWS_AT_ONCE = 16
"""Maximum number of rows computed at a time, for any number of threads; BLAS rounding depends on it."""
READY_SHARE = 0.5
"""Cached rows are optimised first while their violation is at least this fraction of the largest."""
GROWTH = 1 / 16
"""Number of rows requested at a time, as a fraction of the rows in use."""
INNER_SHARE = 0.1
"""Optimisation of a working set stops at this fraction of the initial violation."""
INNER_STEPS = 100
"""Maximum number of optimisation steps per variable of a working set."""
SECONDS_BETWEEN_REPORTS = 1.0


class RowCache:
    """A least-recently-used cache of kernel rows, in single precision.

    Once half of the rows are cached, the values of new rows are copied from them where possible.

    Parameters
    ----------
    packed : PackedExamples
        The examples whose kernel rows are cached.
    cache_memory : int
        Memory limit in bytes; at least two rows are kept.
    n_jobs : int
        Number of threads (-1: all processors) that compute rows.

    Attributes
    ----------
    kept : ndarray of float32, (capacity, n_examples)
        The cached rows, one in each slot.
    slots : ndarray of int, (n_examples,)
        For each example, the slot of its row in `kept`, or -1.
    n_computed : int
        Number of rows computed so far.
    """

    def __init__(self, packed: PackedExamples, cache_memory: int = 1 << 30, *, n_jobs: int = 1) -> None:
        self.packed = packed
        self.n_jobs = n_jobs
        n_examples = len(packed)
        capacity = min(n_examples, max(2, cache_memory // (BYTES_PER_VALUE * max(n_examples, 1))))
        self.kept = np.empty((capacity, n_examples), dtype=np.float32)
        self.slots = np.full(n_examples, -1, dtype=np.int64)
        self.n_computed = 0
        self._owners = np.full(capacity, -1, dtype=np.int64)
        self._used = np.full(capacity, -1, dtype=np.int64)
        self._fetched = np.full(capacity, -1, dtype=np.int64)
        self._clock = 0

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def capacity(self) -> int:
        """Maximum number of cached rows."""
        return len(self.kept)

    def fetch(self, rows: Integers) -> None:
        """Compute those rows of the given examples that are not cached."""
        self._clock += 1
        present = self.slots[rows] >= 0
        self._used[self.slots[rows[present]]] = self._clock
        missing = np.unique(rows[~present])
        if len(missing):
            self._compute(missing)

    def touch(self, rows: Integers) -> None:
        """Mark cached rows as used."""
        self._used[self.slots[rows]] = self._clock

    def get_places(self) -> dict[str, Integers]:
        """Return the state of the cache, on which the steps of the solver depend."""
        clock = np.array([self._clock])
        return {"owners": self._owners, "used": self._used, "fetched": self._fetched, "clock": clock}

    def set_places(self, places: dict[str, Integers]) -> None:
        """Restore the state of the cache and recompute its rows."""
        slots = np.flatnonzero(places["owners"] >= 0)
        rows = places["owners"][slots]
        self._fill(rows, slots)
        self.slots[rows] = slots
        self._owners[:], self._used[:] = places["owners"], places["used"]
        self._fetched[:], self._clock = places["fetched"], int(places["clock"][0])

    def _compute(self, missing: Integers) -> None:
        slots = self._free(len(missing))
        self._fill(missing, slots)
        self.slots[missing] = slots
        self._owners[slots] = missing
        self._used[slots] = self._clock
        self._fetched[slots] = self._clock

    def _fill(self, missing: Integers, slots: Integers) -> None:
        size = min(max(1, PIECE // len(self)), ROWS_AT_ONCE)
        pieces = [slice(begin, begin + size) for begin in range(0, len(missing), size)]

        def fill(piece: slice) -> None:
            values = self._evaluate(missing[piece])
            _check_finite(values, missing[piece])
            self.kept[slots[piece]] = values

        map_jobs(fill, pieces, n_jobs=self.n_jobs)
        self.n_computed += len(missing)

    def _evaluate(self, rows: Integers) -> npt.NDArray[np.float32]:
        """Return rows; if many rows are cached, values are copied from them."""
        slots = np.flatnonzero(self._owners >= 0)
        with np.errstate(over="ignore"):
            if 2 * len(slots) < len(self):
                return self.packed.block(rows, np.arange(len(self))).astype(np.float32)
            values = np.empty((len(rows), len(self)), dtype=np.float32)
            unknown = np.flatnonzero(self.slots < 0)
            values[:, unknown] = self.packed.block(rows, unknown)
        values[:, self._owners[slots]] = self.kept[np.ix_(slots, rows)].T
        return values

    def _free(self, n_slots: int) -> Integers:
        """Free the least recently used slots and return them."""
        slots = np.lexsort((self._fetched, self._used))[:n_slots]
        owners = self._owners[slots]
        self.slots[owners[owners >= 0]] = -1
        self._owners[slots] = -1
        return slots


def _check_finite(values: npt.NDArray[np.float32], rows: Integers) -> None:
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        first, second = wrong[0]
        found = f"the kernel value of examples {rows[first]} and {second} is {values[first, second]}"
        raise InputError(f"{found}; expected a finite 32-bit number; use normalize=True")


class Solution(NamedTuple):
    """A trained SVM.

    The score of an example is the dot product of its kernel values and `coef`, plus `intercept`. `scores` are
    the scores of all examples in the cache, without the intercept.
    """

    coef: FloatArray
    intercept: float
    scores: FloatArray
    objective: float
    violation: float
    n_iter: int


def classification_problem(rows: Integers, signs: FloatArray, bounds: FloatArray) -> DualProblem:
    """Return the dual problem of a classifier, given rows, signs and upper bounds of coefficients."""
    high = np.where(signs > 0, bounds, 0.0)
    return DualProblem(rows, -signs, high - bounds, high)


def regression_problem(
    rows: Integers, targets: FloatArray, bounds: FloatArray, *, epsilon: float
) -> DualProblem:
    """Return the dual problem of a regressor, with two variables per example: above and below the tube."""
    nothing = np.zeros_like(bounds)
    return DualProblem(
        np.concatenate([rows, rows]),
        np.concatenate([epsilon - targets, -epsilon - targets]),
        np.concatenate([nothing, -bounds]),
        np.concatenate([bounds, nothing]),
    )


@one_blas_thread
def solve(
    problem: DualProblem,
    cache: RowCache,
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    working_size: int = WORKING_SIZE,
    name: str = "machine",
) -> Solution:
    """Solve a dual problem.

    Each iteration requests the rows of the examples that violate the optimality conditions most, and then
    optimises all examples whose rows are cached.

    Parameters
    ----------
    problem : DualProblem
        The problem to solve.
    cache : RowCache
        Kernel rows of the examples in the problem.
    tol : float
        Maximum accepted violation of the optimality conditions.
    max_iter : int, optional
        Maximum number of iterations.
    working_size : int
        Minimum number of rows requested at a time; fewer if the cache is too small.
    name : str
        Name of the SVM in progress bars and messages.
    """
    solver = _Solver(problem, cache, working_size)
    n_iter, reported = 0, time.monotonic()

    def report_rounds() -> None:
        found = f"{n_iter} iterations, violation {solver.violation:.2g}"
        report(f"{name}: {found}, {cache.n_computed} kernel rows")

    with task(name, total=max_iter, unit="iterations") as counted:
        while solver.violation >= tol and not solver.is_stuck and (max_iter is None or n_iter < max_iter):
            solver.improve(tol)
            n_iter += 1
            counted.advance()
            if time.monotonic() - reported > SECONDS_BETWEEN_REPORTS:
                report_rounds()
                reported = time.monotonic()
    report_rounds()
    return solver.finish(n_iter)


class _Solver:
    """The solver of one dual problem, with its state."""

    def __init__(self, problem: DualProblem, cache: RowCache, working_size: int) -> None:
        self.problem, self.cache = problem, cache
        n_variables = len(problem.rows)
        self.dual = Dual(np.zeros(n_variables), np.zeros(len(cache)))
        variables, rows, self.changed = np.zeros((3, n_variables), dtype=np.int64)
        self.working = Working(variables, rows, *np.zeros((5, n_variables)))
        self.size = 0
        self.least = max(2, min(working_size, cache.capacity // 2))
        self.n_idle = 0
        self.measure()

    @property
    def is_stuck(self) -> bool:
        """Whether several iterations in a row have changed nothing."""
        return self.n_idle > 1

    def measure(self) -> None:
        """Compute the largest violation among all examples, and among those with cached rows."""
        self.rise, self.fall, *ready = measure(self.problem, self.dual, self.cache.slots)
        self.violation = float(self.rise - self.fall)
        self.ready_violation = float(ready[0] - ready[1])

    def improve(self, tol: float) -> None:
        """Perform one iteration."""
        problem, dual, cache, working = self.problem, self.dual, self.cache, self.working
        if self.n_idle or self.ready_violation < max(tol, READY_SHARE * self.violation):
            self.fetch_rows()
        self.size = load_working(problem, dual, cache.slots, self.rise, self.fall, cache.kept, working)
        tolerance = max(tol / 2, INNER_SHARE * self.violation)
        optimize(working, self.size, cache.slots, cache.kept, tolerance, INNER_STEPS * self.size)
        n_changed = store_working(working, self.size, cache.slots, cache.kept, dual, self.changed)
        cache.touch(self.changed[:n_changed])
        self.n_idle = 0 if n_changed else self.n_idle + 1
        self.measure()

    def fetch_rows(self) -> None:
        """Fetch the rows with the largest violations; after an idle iteration, include cached rows.

        An iteration is idle if a row that it needed has just been evicted.
        """
        size = max(self.least, min(int(GROWTH * self.size), self.cache.capacity // 2)) // 2 * 2
        heaps = Heaps(np.zeros(size, dtype=np.int64), np.zeros(size))
        slots = np.full(len(self.cache), -1) if self.n_idle else self.cache.slots
        n_chosen = choose_new(self.problem, self.dual, slots, self.rise, self.fall, heaps)
        self.cache.fetch(self.problem.rows[heaps.variables[:n_chosen]])

    def finish(self, n_iter: int) -> Solution:
        """Return the solution."""
        values, scores = self.dual
        coef: FloatArray = np.bincount(self.problem.rows, values, minlength=len(self.cache)).astype(
            np.float64
        )
        objective = float(coef @ scores / 2 + values @ self.problem.linear)
        intercept = float(find_intercept(self.problem, self.dual))
        return Solution(coef, intercept, scores, objective, self.violation, n_iter)
