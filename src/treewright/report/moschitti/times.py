"""Training time of an SVM with the fast and with the naive tree kernel, measured in the same run.

Moschitti (2006) trains an SVM for ARG0 against all other roles: 6 hours with the fast kernel, more than a
week with the naive one. Here both kernels use the same solver; only the computation of kernel values differs.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray
from treewright.data.consttree import ConstTree
from treewright.kernels.base import PackedExamples
from treewright.kernels.convolution import SubsetTreeKernel
from treewright.kernels.naive import naive_subset_trees
from treewright.kernels.svm import RowCache, Solution, classification_problem, solve
from treewright.progress import report, silenced
from treewright.report import show
from treewright.report.moschitti.arguments import read_arguments
from treewright.report.moschitti.role_systems import RoleBench
from treewright.report.separate_process import LostProcessError, Values, run_alone
from treewright.srl.arguments import argument_trees
from treewright.srl.roles import TREE_COST

PAPER = "Moschitti (2006)"
SUBSET_DECAY, PARTIAL_DECAY, DEPTH_DECAY = 0.4, 0.8, 0.4
"""The label of the paper."""
LABEL = "ARG0"
FIRST = 500
"""Number of arguments of the smallest problem; each further problem is twice as large."""
LEAST_POINTS = 3
"""Minimum number of problems for fitting an exponent."""
GROWTH = 4
"""Estimated ratio of the times of two problems, one twice as large as the other."""
TOLERANCE = 1e-2
SHORTEST = 1e-6
"""Minimum time in seconds, since some clocks have a coarse resolution."""
CACHE_MEMORY = 4 << 30

Make = Callable[[Sequence[ConstTree]], PackedExamples]


class NaiveTrees(PackedExamples):
    """Trees for the naive algorithm of the normalised subset tree kernel, which visits all pairs of nodes."""

    def __init__(self, trees: Sequence[ConstTree], decay: float = SUBSET_DECAY) -> None:
        self._evaluate = naive_subset_trees(trees, decay)
        numbers = np.arange(len(trees))
        self._roots = np.sqrt(self._evaluate(np.column_stack([numbers, numbers])))

    def __len__(self) -> int:
        return len(self._roots)

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        """See `PackedExamples`."""
        left, right = np.asarray(rows_a, dtype=np.int64), np.asarray(rows_b, dtype=np.int64)
        values = np.empty((len(left), len(right)))
        for line, row in zip(values, left.tolist(), strict=True):
            pairs = np.column_stack([np.full(len(right), row), right])
            line[:] = self._evaluate(pairs) / (self._roots[row] * self._roots[right])
        return values

    def compare(self, examples: Sequence[Any]) -> FloatArray:
        """See `PackedExamples`; here, examples are indices of trees."""
        return self.block(np.asarray(examples), np.arange(len(self)))

    def diagonal(self) -> FloatArray:
        """See `PackedExamples`."""
        return np.ones(len(self))


def pack_fast(trees: Sequence[ConstTree]) -> PackedExamples:
    """Prepare trees for the fast kernel."""
    return SubsetTreeKernel(decay=SUBSET_DECAY, normalize=True).pack(trees)


MAKERS: dict[str, Make] = {"fast": pack_fast, "naive": NaiveTrees}


def train_machine(make: Make, trees: Sequence[ConstTree], signs: FloatArray) -> tuple[Solution, float]:
    """Return an SVM and its CPU time in seconds, including the preparation of the trees."""
    begin = time.process_time()
    cache = RowCache(make(trees), CACHE_MEMORY)
    problem = classification_problem(np.arange(len(trees)), signs, np.full(len(trees), TREE_COST))
    with silenced():
        solution = solve(problem, cache, tol=TOLERANCE)
    return solution, max(time.process_time() - begin, SHORTEST)


def measure_size(kinds: Sequence[str], trees: Sequence[ConstTree], signs: FloatArray) -> dict[str, Any]:
    """Return a row: the training time with each kernel, and the results."""
    row: dict[str, Any] = {"n_arguments": len(trees)}
    for kind in kinds:
        solution, seconds = train_machine(MAKERS[kind], trees, signs)
        row |= {kind: seconds, f"{kind}_support": int(np.count_nonzero(solution.coef))}
        row[f"{kind}_objective"] = solution.objective
    return row


def time_kernels(task: Values) -> Values:
    """Measure problems of growing size until the time limit; `run_alone` calls this function."""
    arguments = read_arguments(Path(task["arguments"]))["train"].arguments
    order = np.random.default_rng(task["random_state"]).permutation(len(arguments))
    trees = argument_trees(arguments)
    signs = np.array([1.0 if one.label == LABEL else -1.0 for one in arguments])

    def measure(size: int, kinds: Sequence[str]) -> dict[str, Any]:
        chosen = order[:size]
        return measure_size(kinds, [trees[number] for number in chosen.tolist()], signs[chosen])

    measure(min(task["first"] // 10, len(trees)), tuple(MAKERS))  # compiles
    rows: list[dict[str, Any]] = []
    size, left = task["first"], task["most_seconds"]
    while size < len(trees) and (not rows or GROWTH * rows[-1]["naive"] <= left):
        rows.append(measure(size, tuple(MAKERS)))
        left -= rows[-1]["naive"] + rows[-1]["fast"]
        shown = ", ".join(f"{kind} {show.time(rows[-1][kind])}" for kind in MAKERS)
        report(f"{LABEL} against all others, {size:,} arguments: {shown}")
        size *= 2
    if len(rows) >= LEAST_POINTS:
        limits = {"fast": task["most_seconds"], "naive": left}
        kinds = [kind for kind in MAKERS if extrapolate(rows, kind, len(trees)) <= limits[kind]]
        rows += [measure(len(trees), kinds)] if kinds else []
    return {"rows": rows, "n_arguments": len(trees)}


def extrapolate(rows: Sequence[dict[str, Any]], kind: str, size: int) -> float:
    """Return the time for a size, extrapolated by a log-log fit of the measured times."""
    sizes, times = (np.array([row[key] for row in rows]) for key in ("n_arguments", kind))
    slope, constant = np.polyfit(np.log(sizes), np.log(times), 1)
    return float(np.exp(constant + slope * np.log(size)))


def fit_exponent(sizes: FloatArray, times: FloatArray) -> tuple[float, float]:
    """Fit a power law to times by size; return the exponent and its standard error."""
    x, y = np.log(sizes), np.log(times)
    slope, constant = np.polyfit(x, y, 1)
    variance = np.sum((y - slope * x - constant) ** 2) / (len(x) - 2)
    return float(slope), float(np.sqrt(variance / np.sum((x - x.mean()) ** 2)))


def fit_exponents(rows: Sequence[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Return, for each kernel, the exponent with which its time grows, and the standard error."""
    both = _with_both(rows)
    sizes = np.array([float(row["n_arguments"]) for row in both])
    return {kind: fit_exponent(sizes, np.array([row[kind] for row in both])) for kind in MAKERS}


def _with_both(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if all(kind in row for kind in MAKERS)]


def timed(bench: RoleBench, most_seconds: float) -> Values:
    """Return the times of both kernels; measure them unless they are stored."""
    random_state = bench.settings.random_state
    task = {
        "arguments": str(bench.path),
        "random_state": random_state,
        "first": FIRST,
        "most_seconds": most_seconds,
    }
    fixed = [FIRST, GROWTH, SUBSET_DECAY, TREE_COST, TOLERANCE, CACHE_MEMORY]

    def measure() -> Values:
        report(f"{LABEL} against all others: time of the fast and of the naive kernel")
        return run_alone(f"{__name__}:time_kernels", task)

    try:
        return bench.store.find(bench.name("times", random_state, most_seconds, fixed), measure)
    except LostProcessError as error:
        return {"rows": [], "n_arguments": 0, "failure": str(error)}


def time_rows(found: Values) -> list[dict[str, Any]]:
    """Return the rows of the table: measured times, and extrapolated times for all arguments if necessary."""
    rows = [{**row, "title": "measured"} for row in found["rows"]]
    both = _with_both(rows)
    for row in both:
        row["ratio"] = row["naive"] / row["fast"]
    size = found["n_arguments"]
    if len(both) >= LEAST_POINTS and both[-1]["n_arguments"] < size:
        guessed = {kind: extrapolate(both, kind, size) for kind in MAKERS}
        ratio = guessed["naive"] / guessed["fast"]
        rows.append({"title": "extrapolated", "n_arguments": size, **guessed, "ratio": ratio})
    return rows
