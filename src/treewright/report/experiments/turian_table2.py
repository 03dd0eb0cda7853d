"""Turian & Melamed (2006), Table 2: what a training iteration costs, on samples and without."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from treewright._typing import NonNegativeFloat, Range
from treewright.progress import track
from treewright.report import show
from treewright.report.experiment import Inputs, experiment
from treewright.report.separate_process import Values
from treewright.report.tables import Column, Findings, Row, Table
from treewright.report.turian.bench import (
    PAPER,
    PENN,
    ConstituentBench,
    ConstituentSettings,
    ParserSystem,
    Penalty,
    Strategies,
)
from treewright.report.turian.profiling import measure_label
from treewright.report.turian.sampling import STEPS

REPORTED_STEPS = {
    "sample": (1.5, 0.07, 0.7),
    "extraction": (38.2, 0.13, 18.6),
    "building": (127.6, 27.60, 62.3),
    "percolation": (31.4, 4.91, 15.3),
    "updates": (6.2, 1.75, 3.0),
    "total": (204.9, 32.6, 100.0),
}
"""Mean, standard deviation, percent."""
REPORTED_COSTS = {
    "n_examples": 1_650_000,
    "sample_size": 100_000,
    "n_splits": 40.8,
    "extractions": 25.0,
    "uncached": 17862.9,
    "sampled": 167.3,
    "speed_up": 106.8,
    "iteration_speed_up": 87.4,
    "n_features": 440.0,
    "direct_bytes": 1760.0,
    "bytes": 32.0,
}


@dataclass(frozen=True)
class TurianTable2Settings(ConstituentSettings):
    """The settings of Table 2.

    Parameters
    ----------
    label : str, optional
        Label whose trees are profiled, if not the one with the most examples.
    penalty : float, optional
        Penalty to profile at, if not that of the best parser, which is trained for this.
    n_trees : int
        Number of trees to average over.
    most_seconds : float
        Time limit in seconds for the tree on all examples.
    """

    strategies: Strategies = ("original",)
    label: str | None = None
    penalty: Penalty | None = None
    n_trees: Annotated[int, Range(2)] = 50
    most_seconds: NonNegativeFloat = 600.0


@experiment("turian-table2", TurianTable2Settings)
def table2(settings: TurianTable2Settings, inputs: Inputs) -> Findings:
    """Profile the trees of one label, and compare building them on samples and on all examples."""
    bench = ConstituentBench(settings, inputs)
    # Times hardly depend on tags, which are gold.
    profiled = track(settings.systems(), "rows of the table", unit="parsers")
    found = [
        _cost_row(
            each,
            measure_label(
                bench,
                each,
                label=settings.label,
                penalty=settings.penalty,
                n_trees=settings.n_trees,
                most_seconds=settings.most_seconds,
            ),
        )
        for each in profiled
    ]
    return Findings(
        f"{PAPER}, Table 2: profile of a training iteration",
        (_profile_table(found), _cost_table(found)),
        partial(_draw_profile, found=found),
        "Percent of the time of an iteration, by step, here and in the paper.",
        bench.facts(settings),
        headline="; ".join(
            f"{each['title']}: a tree is built {each['speed_up']:.1f} times faster on a sample"
            for each in found
        ),
    )


def _cost_row(system: ParserSystem, values: Values) -> dict[str, Any]:
    rest = sum(values["profile"][name][0] for name in ("percolation", "updates"))
    iterations = (values["uncached"] + rest) / (values["sampled"] + rest)
    return {"title": system.title, **values, "iteration_speed_up": iterations}


def _profile_table(found: Sequence[Row]) -> Table:
    rows = []
    for each in found:
        for name, cost in each["profile"].items():
            own = dict(zip(("mean", "deviation", "percent"), cost, strict=True))
            paper = dict(
                zip(("paper_mean", "paper_deviation", "paper_percent"), REPORTED_STEPS[name], strict=True)
            )
            rows.append({"title": STEPS.get(name, name), "parser": each["title"], **own, **paper})
    columns = (
        Column("title", "step"),
        Column("parser", "parser"),
        Column("mean", "mean (ms)", _show_milliseconds, "here"),
        Column("deviation", "stddev (ms)", _show_milliseconds, "here"),
        Column("percent", "%", show.tenth, "here"),
        Column("paper_mean", "mean (s)", show.number, "paper"),
        Column("paper_deviation", "stddev (s)", show.number, "paper"),
        Column("paper_percent", "%", show.number, "paper"),
    )
    notes = [
        *(
            f"{each['title']}: the last {each['n_profiled']} trees of {each['label']} that were built on "
            f"samples, under penalties down to {each['penalty']:.3g}, {each['n_leaves']:.1f} leaves each."
            for each in found
        ),
        f"paper: {PAPER}, label NP, {PENN}, up to 15 words, on one Opteron of 1.6 GHz. Here: elapsed time.",
    ]
    return Table("Profile of a training iteration", columns, rows, notes)


def _cost_table(found: Sequence[Row]) -> Table:
    columns = (
        Column("title", "parser"),
        Column("label", "label"),
        Column("n_examples", "examples", show.count),
        Column("sample_size", "sample", show.count),
        Column("n_splits", "splits", show.tenth),
        Column("extractions", "extractions an example", show.tenth),
        Column("uncached", "all examples (s)", show.three),
        Column("sampled", "sample (s)", show.three),
        Column("speed_up", "building", show.tenth, "times faster"),
        Column("iteration_speed_up", "whole iteration", show.tenth, "times faster"),
        Column("n_features", "features", show.tenth, "of an example"),
        Column("direct_bytes", "bytes of these", show.whole, "of an example"),
        Column("bytes", "bytes kept", show.tenth, "of an example"),
        Column("shared_bytes", "shared by all labels (MB)", _show_megabytes),
    )
    paper = {"title": f"{PAPER}, estimate", "label": "NP", **REPORTED_COSTS}
    cut = [each for each in found if not each["is_whole"]]
    notes = [
        "All examples: one tree is built on all examples, whose features are extracted again for each split "
        "that they come to. Sample: sampling, extraction and building of a tree on a sample. Both under the "
        "same confidences and penalty, in one run, in CPU time of one thread. A whole iteration also has the "
        "percolation and the leaf updates of the profile above, with a sample and without.",
        *(
            f"{each['title']}: the mean of {each['n_sampled']} samples, with trees of "
            f"{each['sampled_splits']:.1f} splits; {each['uncached_extraction']:.3g} s of the time on all "
            "examples were for extraction."
            for each in found
        ),
        "Bytes kept: place, sign, bias, weight, confidence and leaf of each example of the label; cuts, "
        "items and places of inferences are shared by all labels.",
        *(f"{each['title']}: time was up before the tree was whole; it would take longer." for each in cut),
    ]
    return Table(
        "Trees on all examples without keeping features, and on samples", columns, [*found, paper], notes
    )


def _show_milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.2f}"


def _show_megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f}"


def _draw_profile(figure: Any, *, found: Sequence[Row]) -> None:  # noqa: ANN401
    figure.set_size_inches(7.5, 3.2)
    axes = figure.subplots()
    shares = {each["title"]: [each["profile"][name][2] for name in STEPS] for each in found}
    shares[PAPER] = [REPORTED_STEPS[name][2] for name in STEPS]
    height = 0.8 / len(shares)
    for number, (title, values) in enumerate(shares.items()):
        axes.barh([at + number * height for at in range(len(STEPS))], values, height, label=title)
    axes.set_yticks([at + 0.4 - height / 2 for at in range(len(STEPS))], STEPS.values())
    axes.invert_yaxis()
    axes.set_xlabel("percent of an iteration")
    axes.legend()
