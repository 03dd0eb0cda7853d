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
"""Minimum number of rows that are requested at one time, if the cache has space for twice as many."""
PIECE = 1 << 23
"""Maximum number of kernel values that are computed at one time, unless one row has more."""
ROWS_AT_ONCE = 16
"""Maximum number of rows computed at one time with any number of threads: BLAS rounding depends on it."""
READY_SHARE = 0.5
"""Examples with cached rows go first while their violation is at least this share of the largest."""
GROWTH = 1 / 16
"""Rows requested at one time, as a share of those in use."""
INNER_SHARE = 0.1
"""A working set is solved until this share of its initial violation is left."""
INNER_STEPS = 100
"""Maximum number of steps per variable of a working set."""
SECONDS_BETWEEN_REPORTS = 1.0


class RowCache:
    """A least-recently-used cache of kernel rows, in single precision.

    Once half of the rows are cached, values that they contain are not computed again.

    Parameters
    ----------
    packed : PackedExamples
    cache_memory : int
        Memory limit in bytes; at least two rows are kept.
    n_jobs : int
        Number of threads that compute rows.

    Attributes
    ----------
    kept : ndarray of float32, (capacity, n_examples)
    slots : ndarray of int, (n_examples,)
        The slot of the row of each example, or -1.
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
        """Compute the rows of some examples that are not cached."""
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
        """Return which rows are cached, on which the path of the solver depends."""
        clock = np.array([self._clock])
        return {"owners": self._owners, "used": self._used, "fetched": self._fetched, "clock": clock}

    def set_places(self, places: dict[str, Integers]) -> None:
        """Restore the cache, and compute its rows again."""
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
        """Return rows; values that cached rows contain are reused if there are many."""
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
        """Empty the least recently used slots."""
        slots = np.lexsort((self._fetched, self._used))[:n_slots]
        owners = self._owners[slots]
        self.slots[owners[owners >= 0]] = -1
        self._owners[slots] = -1
        return slots


def _check_finite(values: npt.NDArray[np.float32], rows: Integers) -> None:
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        first, second = wrong[0]
        found = f"the kernel of examples {rows[first]} and {second} is {values[first, second]}"
        raise InputError(f"{found}; expected a finite number of 32 bits, as with normalize=True")


class Solution(NamedTuple):
    """A trained machine: the score of an example is its kernel values times `coef`, plus the intercept.

    `scores` are those of all examples in the cache, without the intercept.
    """

    coef: FloatArray
    intercept: float
    scores: FloatArray
    objective: float
    violation: float
    n_iter: int


def classification_problem(rows: Integers, signs: FloatArray, bounds: FloatArray) -> DualProblem:
    """Return the dual problem of a classifier: examples, their signs, and bounds of coefficients."""
    high = np.where(signs > 0, bounds, 0.0)
    return DualProblem(rows, -signs, high - bounds, high)


def regression_problem(
    rows: Integers, targets: FloatArray, bounds: FloatArray, *, epsilon: float
) -> DualProblem:
    """Return the dual problem of a regressor, with two variables per example: above and below its tube."""
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
    cache : RowCache
        Kernel rows of the examples of the problem.
    tol : float
        Tolerance: the largest accepted violation of the optimality conditions.
    max_iter : int, optional
        Maximum number of iterations.
    working_size : int
        Minimum number of rows that are requested at one time; fewer if memory is short.
    name : str
        Name of the machine in progress bars and messages.
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
    """The state of the solver."""

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
        """Whether steps have become too small to change anything."""
        return self.n_idle > 1

    def measure(self) -> None:
        """Find the largest violation, of all examples and of those with cached rows."""
        self.rise, self.fall, *ready = measure(self.problem, self.dual, self.cache.slots)
        self.violation = float(self.rise - self.fall)
        self.ready_violation = float(ready[0] - ready[1])

    def improve(self, tol: float) -> None:
        """Do one iteration."""
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
        """Request the rows that violate most; after an idle iteration, cached ones as well.

        An iteration is idle if a row that it needed had just been evicted.
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
