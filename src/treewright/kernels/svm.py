"""Support vector machines that see examples through a kernel only, whose rows they ask for when needed."""

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
"""Rows that are asked for at one time, at least, as long as there is room for twice as many."""
PIECE = 1 << 23
"""Kernel values that are computed at one time, at most, unless one row has more."""
ROWS_AT_ONCE = 16
"""Rows computed at one time, at most, with any number of threads: BLAS rounds by how many they are."""
READY_SHARE = 0.5
"""Examples whose rows are there go first while their violation is at least that much of the largest."""
GROWTH = 1 / 16
"""Rows that are asked for at one time, as a share of those already in use."""
INNER_SHARE = 0.1
"""A working set is solved until so much of the violation that it began with is left."""
INNER_STEPS = 100
"""Steps for each variable of a working set, at most."""
SECONDS_BETWEEN_REPORTS = 1.0

"""Called with the rounds so far and the violation that is left."""


class RowCache:
    """Kernel rows of examples, computed when they are asked for and kept while there is room.

    Rows that have not been used for longest leave first. Values are kept as 32-bit numbers. Once half of the
    rows are there, values that they have are not computed again.

    Parameters
    ----------
    packed : PackedExamples
    cache_memory : int
        Bytes that the rows may take; two rows are kept in any case.
    n_jobs : int
        Threads that compute rows.

    Attributes
    ----------
    kept : ndarray of float32, (capacity, n_examples)
    slots : ndarray of int, (n_examples,)
        Where the row of each example is, or -1.
    n_computed : int
        Rows computed so far.
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
        """How many rows can be kept."""
        return len(self.kept)

    def fetch(self, rows: Integers) -> None:
        """See to it that the rows of some examples, no more than there is room for, are there."""
        self._clock += 1
        present = self.slots[rows] >= 0
        self._used[self.slots[rows[present]]] = self._clock
        missing = np.unique(rows[~present])
        if len(missing):
            self._compute(missing)

    def touch(self, rows: Integers) -> None:
        """Note that rows which are there have been of use."""
        self._used[self.slots[rows]] = self._clock

    def get_places(self) -> dict[str, Integers]:
        """Return which rows are there, on which the way of a machine to its solution depends."""
        clock = np.array([self._clock])
        return {"owners": self._owners, "used": self._used, "fetched": self._fetched, "clock": clock}

    def set_places(self, places: dict[str, Integers]) -> None:
        """Compute the rows again that were there, and go on as if they had never left."""
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
        """Return rows, partly of what is known of them if that is much; choosing takes time too."""
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
        """Empty the slots that have not been used for longest."""
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
        raise InputError(f"{found}; expected a finite number of 32 bits, which normalize=True may give")


class Solution(NamedTuple):
    """A machine: the score of an example is the sum of its kernel values times `coef`, and the intercept.

    `scores`, of all examples that the cache knows, have no intercept in them.
    """

    coef: FloatArray
    intercept: float
    scores: FloatArray
    objective: float
    violation: float
    n_iter: int


def classification_problem(rows: Integers, signs: FloatArray, bounds: FloatArray) -> DualProblem:
    """Return the dual problem of a classifier of some examples, with their signs and largest coefficients."""
    high = np.where(signs > 0, bounds, 0.0)
    return DualProblem(rows, -signs, high - bounds, high)


def regression_problem(
    rows: Integers, targets: FloatArray, bounds: FloatArray, *, epsilon: float
) -> DualProblem:
    """Return the dual problem of a regressor, with two variables an example: above its tube, and below."""
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

    Rows are asked for as they are needed: in each round those of the examples that violate most, and all
    examples whose rows are there are then optimised together. So a problem whose rows are all there takes
    no more than a few rounds.

    Parameters
    ----------
    problem : DualProblem
    cache : RowCache
        Of the examples whose numbers the problem's rows are.
    tol : float
        The largest violation of the conditions of optimality that is accepted.
    max_iter : int, optional
        Rounds after which to stop anyway.
    working_size : int
        How many rows are asked for at one time, at least; fewer if memory is short.
    name : str
        Of what is solved, in progress bars and messages.
    """
    solver = _Solver(problem, cache, working_size)
    n_iter, reported = 0, time.monotonic()

    def report_rounds() -> None:
        found = f"{n_iter} rounds, violation {solver.violation:.2g}"
        report(f"{name}: {found}, {cache.n_computed} kernel rows")

    with task(name, total=max_iter, unit="rounds") as counted:
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
    """A problem on its way to a solution."""

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
        """Whether nothing moves any more, as steps are too small for the numbers."""
        return self.n_idle > 1

    def measure(self) -> None:
        """Find the largest violation, and the largest of those examples whose rows are there."""
        self.rise, self.fall, *ready = measure(self.problem, self.dual, self.cache.slots)
        self.violation = float(self.rise - self.fall)
        self.ready_violation = float(ready[0] - ready[1])

    def improve(self, tol: float) -> None:
        """Do one round."""
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
        """Ask for the rows that violate most; after a round in vain, whether they are there or not.

        In vain, since a row that was needed had just left for others.
        """
        size = max(self.least, min(int(GROWTH * self.size), self.cache.capacity // 2)) // 2 * 2
        heaps = Heaps(np.zeros(size, dtype=np.int64), np.zeros(size))
        slots = np.full(len(self.cache), -1) if self.n_idle else self.cache.slots
        n_chosen = choose_new(self.problem, self.dual, slots, self.rise, self.fall, heaps)
        self.cache.fetch(self.problem.rows[heaps.variables[:n_chosen]])

    def finish(self, n_iter: int) -> Solution:
        """Return what was found."""
        values, scores = self.dual
        coef: FloatArray = np.bincount(self.problem.rows, values, minlength=len(self.cache)).astype(
            np.float64
        )
        objective = float(coef @ scores / 2 + values @ self.problem.linear)
        intercept = float(find_intercept(self.problem, self.dual))
        return Solution(coef, intercept, scores, objective, self.violation, n_iter)
