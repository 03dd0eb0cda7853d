"""Moschitti (2006), Figure 4: time of tree kernels by the size of trees.

Syntactic Kernels for Natural Language Learning: the Semantic Role Labeling Case. NAACL 2006, short papers.

The paper takes 500 trees of exactly n nodes from the Penn Treebank, for several n, and plots the average time
over all pairs. It gives no numbers, so only the growth of the curves can be compared: quadratic for the naive
algorithm and linear for the fast ones.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import Integers, Range
from treewright.data.consttree import ConstTree
from treewright.data.formats import format_of_name
from treewright.errors import InputError
from treewright.kernels.convolution import PartialTreeKernel, SubsetTreeKernel
from treewright.kernels.files import count_things, read_examples
from treewright.kernels.naive import Evaluate, naive_subset_trees
from treewright.progress import report, track
from treewright.report import show
from treewright.report.experiment import Inputs, Settings, experiment
from treewright.report.moschitti.times import DEPTH_DECAY, PAPER, PARTIAL_DECAY, SUBSET_DECAY, fit_exponent
from treewright.report.tables import Column, Findings, Row, Table

STEP = 10
"""Difference between consecutive sizes, in nodes."""
N_TREES, LEAST_TREES, N_PAIRS = 500, 20, 2000
"""Maximum and minimum number of trees of each size, and number of random pairs."""
LEAST_SIZES = 4
"""Minimum number of sizes needed to distinguish a quadratic curve from a line."""
REPEATS = 5
FORMATS = ("brackets", "conllu")
"""Formats to look for in a folder, in this order."""

Floats = npt.NDArray[np.float64]
SYSTEMS = {"naive": "naive SST", "subset": "fast SST", "partial": "fast PT"}


class Fit(NamedTuple):
    """Coefficients of a polynomial of the number of nodes, constant first, and the explained variance."""

    coefficients: tuple[float, ...]
    share: float


@dataclass(frozen=True)
class MoschittiFigure4Settings(Settings):
    """Settings of Figure 4.

    Parameters
    ----------
    all_pairs : bool
        Evaluate all pairs of trees of the same size, as in the paper, instead of a random sample.
    tolerance : int
        Maximum difference between the number of nodes of a tree and the size of its group (in the paper: 0).
    """

    all_pairs: bool = False
    tolerance: Annotated[int, Range(0, STEP // 2 - 1)] = 2


@experiment("moschitti-figure4", MoschittiFigure4Settings)
def figure4(settings: MoschittiFigure4Settings, inputs: Inputs) -> Findings:
    """Measure the time of kernels on trees of increasing size."""
    trees = read_trees(inputs.data)[: settings.n_sentences]
    rng = np.random.default_rng(settings.random_state)
    rows = []
    groups = group_by_size(trees, rng, settings.tolerance)
    for size, chosen in track(groups, "points of the figure", unit="sizes"):
        pairs = choose_pairs(len(chosen), None if settings.all_pairs else N_PAIRS, rng)
        rows.append(measure_size(size, chosen, pairs))
        report(_summary(rows[-1]))
    if len(rows) < LEAST_SIZES:
        expected = f"{LEAST_TREES} trees for each of at least {LEAST_SIZES} sizes: 10, 20, 30 ... nodes"
        found = count_things(len(rows), "size")
        raise InputError(f"{inputs.data} has enough trees for only {found}; expected {expected}")
    return Findings(
        f"{PAPER}, Figure 4: time per kernel evaluation by tree size",
        (_times(rows, inputs.data.absolute().name, settings), _fits(rows)),
        partial(_draw, rows=rows),
        "Average time per evaluation, with a quadratic fit for the naive kernel and linear fits for the "
        "others.",
        {
            "trees": f"{len(trees):,}, {np.mean([tree.n_nodes for tree in trees]):.1f} nodes each",
            "decay": f"{SUBSET_DECAY} (SST), {PARTIAL_DECAY} and {DEPTH_DECAY} (PT)",
            "time": f"CPU time of one thread, best of {REPEATS}, without packing the trees",
            "random_state": str(settings.random_state),
        },
        headline=_summary(rows[-1]),
    )


def read_trees(data: Path) -> list[ConstTree]:
    """Read the trees of a file, or of all bracket files (if there are none, CoNLL-U files) in a folder."""
    if not data.exists():
        raise InputError(f"{data} does not exist; expected a file of trees or a folder with such files")
    if data.is_file():
        files = [data]
    else:
        known = [(path, format_of_name(path.name)) for path in sorted(data.rglob("*")) if path.is_file()]
        found = {name: [path for path, told in known if told and told.name == name] for name in FORMATS}
        files = next((paths for paths in found.values() if paths), [])
    if not files:
        raise InputError(f"{data} has no trees; expected *.mrg, *.brackets, *.ptb or *.conllu")
    return [tree for path in files for tree in read_examples(path, functions=True, traces=True).trees]


def group_by_size(
    trees: Sequence[ConstTree], rng: np.random.Generator, tolerance: int = 2
) -> Iterator[tuple[int, list[ConstTree]]]:
    """Yield a random sample of trees of about 10, 20, 30 ... nodes, for each size with enough trees."""
    sizes = np.array([tree.n_nodes for tree in trees])
    for size in range(STEP, int(sizes.max(initial=0)) + tolerance + 1, STEP):
        members = np.flatnonzero(np.abs(sizes - size) <= tolerance)
        if len(members) >= LEAST_TREES:
            chosen = rng.permutation(members)[:N_TREES]
            yield size, [trees[number] for number in chosen]


def choose_pairs(n_trees: int, n_pairs: int | None, rng: np.random.Generator) -> Integers:
    """Return random ordered pairs of trees; all of them if `n_pairs` is None.

    Examples
    --------
    >>> choose_pairs(2, None, np.random.default_rng(0)).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    if n_pairs is None:
        return np.indices((n_trees, n_trees)).reshape(2, -1).T
    return rng.integers(n_trees, size=(n_pairs, 2))


def list_systems(trees: Sequence[ConstTree]) -> dict[str, Evaluate]:
    """Return the functions that evaluate pairs of trees, by name."""
    subset = SubsetTreeKernel(decay=SUBSET_DECAY).pack(trees)
    part = PartialTreeKernel(decay=PARTIAL_DECAY, depth_decay=DEPTH_DECAY).pack(trees)
    return {
        "naive": naive_subset_trees(trees, SUBSET_DECAY),
        "subset": lambda pairs: subset.pairs(*pairs.T),
        "partial": lambda pairs: part.pairs(*pairs.T),
    }


def measure_size(size: int, trees: Sequence[ConstTree], pairs: Integers) -> dict[str, Any]:
    """Return a row: microseconds per pair for each system."""
    row: dict[str, Any] = {"size": size, "n_nodes": float(np.mean([tree.n_nodes for tree in trees]))}
    row |= {"n_trees": len(trees), "n_pairs": len(pairs)}
    return row | {name: time_pairs(evaluate, pairs) for name, evaluate in list_systems(trees).items()}


def time_pairs(evaluate: Evaluate, pairs: Integers) -> float:
    """Return the CPU time per pair in microseconds, the best of several runs."""
    evaluate(pairs[:1])  # compiles, and fills caches
    times = []
    for _ in range(REPEATS):
        begin = time.thread_time()
        evaluate(pairs)
        times.append(time.thread_time() - begin)
    return 1e6 * min(times) / len(pairs)


def fit_polynomial(sizes: Floats, times: Floats, degree: int) -> Fit:
    """Fit a polynomial by least squares."""
    powers = np.vander(sizes, degree + 1, increasing=True)
    coefficients = np.linalg.lstsq(powers, times, rcond=None)[0]
    rest = np.sum((times - powers @ coefficients) ** 2)
    return Fit(tuple(coefficients.tolist()), float(1 - rest / np.sum((times - times.mean()) ** 2)))


def _summary(row: Row) -> str:
    times = ", ".join(f"{title} {row[name]:.2f}" for name, title in SYSTEMS.items())
    return f"{row['size']} nodes, {row['n_trees']} trees: {times} microseconds"


def _times(rows: Sequence[Row], name: str, settings: MoschittiFigure4Settings) -> Table:
    columns = (
        Column("size", "nodes"),
        Column("n_nodes", "mean", show.tenth),
        Column("n_trees", "trees", show.count),
        Column("n_pairs", "pairs", show.count),
        *(Column(key, title, _show_hundredth, "microseconds") for key, title in SYSTEMS.items()),
    )
    notes = (
        f"The sizes of trees vary by up to {settings.tolerance} nodes. "
        + ("All pairs are evaluated." if settings.all_pairs else "Pairs are sampled at random."),
        f"{PAPER} plots curves (500 trees of exactly n nodes, all pairs, on a 2 GHz Pentium 4) and gives "
        "no numbers: the naive kernel is quadratic and the fast ones are linear.",
    )
    return Table(f"Average time per evaluation on trees of {name}", columns, rows, notes)


def _fits(rows: Sequence[Row]) -> Table:
    columns = (
        Column("title", "kernel"),
        Column("line", "microseconds", group="linear"),
        Column("line_share", "R2", _show_share, "linear"),
        Column("curve", "microseconds", group="quadratic"),
        Column("curve_share", "R2", _show_share, "quadratic"),
        Column("exponent", "exponent", _show_hundredth, "power"),
        Column("error", "standard error", _show_hundredth, "power"),
    )
    notes = (
        "n is the mean number of nodes. The exponent is from a log-log fit: 1 is linear, 2 is quadratic.",
    )
    return Table("Least-squares fits", columns, [_fit_row(rows, name) for name in SYSTEMS], notes)


def _fit_row(rows: Sequence[Row], name: str) -> dict[str, Any]:
    sizes, times = (np.array([row[key] for row in rows]) for key in ("n_nodes", name))
    line, curve = (fit_polynomial(sizes, times, degree) for degree in (1, 2))
    exponent, error = fit_exponent(sizes, times)
    return {
        "title": SYSTEMS[name],
        "line": _show_polynomial(line.coefficients),
        "line_coefficients": line.coefficients,
        "line_share": line.share,
        "curve": _show_polynomial(curve.coefficients),
        "curve_coefficients": curve.coefficients,
        "curve_share": curve.share,
        "exponent": exponent,
        "error": error,
    }


def _show_polynomial(coefficients: Sequence[float]) -> str:
    """Format a polynomial of n.

    Examples
    --------
    >>> _show_polynomial([1.5, -0.25, 0.001])
    '1.5 - 0.25 n + 0.001 n^2'
    """
    shown = f"{coefficients[0]:.3g}"
    for power, value in enumerate(coefficients[1:], start=1):
        name = "n" if power == 1 else f"n^{power}"
        shown += f" {'-' if value < 0 else '+'} {abs(value):.3g} {name}"
    return shown


def _show_hundredth(value: float) -> str:
    return f"{value:.2f}"


def _show_share(value: float) -> str:
    return f"{value:.4f}"


def _draw(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    figure.set_size_inches(7.5, 4)
    axes = figure.subplots()
    sizes = np.array([row["n_nodes"] for row in rows])
    places = np.linspace(sizes.min(), sizes.max(), 100)
    for number, (name, title) in enumerate(SYSTEMS.items()):
        times = np.array([row[name] for row in rows])
        fit = fit_polynomial(sizes, times, 2 if name == "naive" else 1)
        axes.scatter(sizes, times, color=f"C{number}", marker="os^"[number], label=title)
        axes.plot(places, np.polynomial.polynomial.polyval(places, fit.coefficients), color=f"C{number}")
    axes.set(xlabel="number of nodes", ylabel="microseconds", ylim=(0, None))
    axes.legend()
