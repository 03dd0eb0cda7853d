"""Moschitti (2006), Figure 5: semantic roles by training set size, and training time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from treewright._typing import NonNegativeFloat
from treewright.progress import track
from treewright.report import show
from treewright.report.experiment import Inputs, experiment
from treewright.report.moschitti.arguments import read_propbank
from treewright.report.moschitti.role_systems import MERGED, SYSTEMS, RoleBench, RoleSettings
from treewright.report.moschitti.tables import ABOUT_TIME, MARKS, counts_table, describe_settings
from treewright.report.moschitti.times import LABEL, PAPER, fit_exponents, time_rows, timed
from treewright.report.separate_process import Values
from treewright.report.tables import Column, Findings, Row, Table

CURVES = ("linear", "st", "sst", "pt", "linear+sst")
N_SHARES = 10
SHORT = 10.0
"""Times below this number of seconds are shown with two digits."""


@dataclass(frozen=True)
class MoschittiFigure5Settings(RoleSettings):
    """Settings of Figure 5.

    Parameters
    ----------
    most_seconds : float
        Time limit in seconds after which no larger problem is started with the naive kernel.
    """

    most_seconds: NonNegativeFloat = 600.0


@experiment("moschitti-figure5", MoschittiFigure5Settings)
def figure5(settings: MoschittiFigure5Settings, inputs: Inputs) -> Findings:
    """Measure accuracy and training time for growing training sets."""
    names = settings.choose_systems(CURVES)
    bench = RoleBench(read_propbank(inputs.data, settings.n_sentences).corpus(), settings, inputs)
    shares = track(range(1, N_SHARES + 1), "points of the figure", unit="shares")
    rows = [_share_row(bench, names, number) for number in shares]
    columns = (
        Column("share", "share", _show_percent),
        Column("n_sentences", "sentences", show.count),
        Column("n_arguments", "arguments", show.count),
        *(Column(name, SYSTEMS[name].title, show.score, "accuracy") for name in names),
        *(Column(f"{name}_seconds", SYSTEMS[name].title, show.time, "training") for name in names),
    )
    notes = (
        "ArgM merged. The training sentences are the first of a random order; the test sentences are always "
        "the same.",
        f"{PAPER} plots curves for the linear kernel, ST, SST and PT, and gives numbers only for all data, "
        "in Table 1: 87.6, 84.6, 87.7 and 86.7 (other data).",
        ABOUT_TIME,
        *(f"{row['share']}%, {told}." for row in rows for told in row["failures"]),
    )
    return Findings(
        f"{PAPER}, Figure 5: accuracy by training set size",
        (
            Table(f"Accuracy on {bench.corpus.name}, gold trees", columns, rows, notes),
            _time_table(timed(bench, settings.most_seconds)),
            counts_table([bench.corpus]),
        ),
        partial(_draw_curves, rows=rows, names=names),
        "Accuracy on test arguments by the percentage of training sentences.",
        describe_settings(settings),
    )


def _share_row(bench: RoleBench, names: Sequence[str], number: int) -> dict[str, Any]:
    n_all = len(bench.corpus.train.trees)
    n_sentences = max(1, round(n_all * number / N_SHARES))
    row: dict[str, Any] = {"share": 100 * number // N_SHARES, "n_sentences": n_sentences, "failures": []}
    for name in names:
        outcome = bench.outcome(name, MERGED, n_sentences)
        if "failure" in outcome:
            row["failures"].append(f"{SYSTEMS[name].title}: {outcome['failure']}")
            continue
        row[name] = bench.accuracy(outcome["predicted"], MERGED)
        row |= {f"{name}_seconds": outcome["seconds"], "n_arguments": outcome["n_arguments"]}
    return row


def _time_table(found: Values) -> Table:
    rows = time_rows(found)
    columns = (
        Column("title", "times"),
        Column("n_arguments", "arguments", show.count),
        Column("fast", "fast SST", _show_seconds, "training"),
        Column("naive", "naive SST", _show_seconds, "training"),
        Column("ratio", "naive / fast", show.tenth),
        Column("fast_support", "fast SST", show.count, "support vectors"),
        Column("naive_support", "naive SST", show.count, "support vectors"),
    )
    notes = [
        f"One SVM for {LABEL} against all other roles, with kernel values by either algorithm and the same "
        "solver, in one run; CPU time of one thread, including the preparation of the trees. The naive "
        "kernel visits all pairs of nodes of two trees, in compiled loops.",
        f"{PAPER}, with its whole training set (122,774 arguments) on a 2 GHz Pentium 4: 6 hours with "
        "the fast kernel, more than a week with the naive one; a ratio of at least 28.",
    ]
    if "failure" in found:
        notes.append(f"The process that measured the times {found['failure']}.")
    if rows and rows[-1]["title"] == "extrapolated":
        shown = (
            f"{kind} {slope:.2f} (standard error {error:.2f})"
            for kind, (slope, error) in fit_exponents(found["rows"]).items()
        )
        notes.append(
            "Extrapolated: not measured for all arguments, but computed from log-log fits "
            f"of both times, whose exponents are {', '.join(shown)}."
        )
    return Table("Training time with the fast and the naive kernel", columns, rows, notes)


def _show_seconds(seconds: float) -> str:
    """Format a time that may be short."""
    return f"{seconds:.2g} s" if seconds < SHORT else show.time(seconds)


def _show_percent(value: int) -> str:
    return f"{value}%"


def _draw_curves(figure: Any, *, rows: Sequence[Row], names: Sequence[str]) -> None:  # noqa: ANN401
    figure.set_size_inches(7.5, 4.5)
    axes = figure.subplots()
    for number, name in enumerate(names):
        known = [row for row in rows if name in row]
        places, values = [row["share"] for row in known], [row[name] for row in known]
        axes.plot(places, values, color=f"C{number % 10}", marker=MARKS[number], label=SYSTEMS[name].title)
    axes.set(xlabel="% of the training sentences", ylabel="accuracy")
    axes.grid(alpha=0.3)
    axes.legend()
