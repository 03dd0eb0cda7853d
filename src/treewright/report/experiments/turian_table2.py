"""Turian & Melamed (2006), Table 2: cost of a training iteration with and without sampling."""

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

REPORTED_ENSEMBLE = {
    "n_trees": 2316,
    "n_leaves": 96871,
    "n_nonzero": 2339,
    "depth": (40.4, 7.4),
    "confidence": (0.107, 0.069),
    "right_margin": (11.7, 2.92),
    "wrong_margin": (30.6, 11.2),
}


@dataclass(frozen=True)
class TurianTable2Settings(ConstituentSettings):
    """Settings of Table 2.

    Parameters
    ----------
    label : str, optional
        Label whose trees are profiled (default: the label with the most examples).
    penalty : float, optional
        Penalty at which trees are profiled (default: that of the best training step). The default
        requires training a parser first.
    n_trees : int
        Number of trees over which the profile is averaged.
    most_seconds : float
        Time limit in seconds for the tree without sampling.
    """

    strategies: Strategies = ("original",)
    label: str | None = None
    penalty: Penalty | None = None
    n_trees: Annotated[int, Range(2)] = 50
    most_seconds: NonNegativeFloat = 600.0


@experiment("turian-table2", TurianTable2Settings)
def table2(settings: TurianTable2Settings, inputs: Inputs) -> Findings:
    """Profile the trees of one label, and compare building them with and without sampling."""
    bench = ConstituentBench(settings, inputs)
    # Gold tags, since times hardly depend on tags.
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
        (_profile_table(found), _cost_table(found), _ensemble_table(found)),
        partial(_draw_profile, found=found),
        "Percentage of the time of an iteration by step, here and in the paper.",
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
            f"{each['title']}: the last {each['n_profiled']} trees of {each['label']} built on "
            f"samples, with penalties down to {each['penalty']:.3g}, {each['n_leaves']:.1f} leaves each."
            for each in found
        ),
        f"paper: {PAPER}, label NP, {PENN}, up to 15 words, on a 1.6 GHz Opteron. Here: elapsed time.",
    ]
    return Table("Profile of a training iteration", columns, rows, notes)


def _cost_table(found: Sequence[Row]) -> Table:
    columns = (
        Column("title", "parser"),
        Column("label", "label"),
        Column("n_examples", "examples", show.count),
        Column("sample_size", "sample", show.count),
        Column("n_splits", "splits", show.tenth),
        Column("extractions", "extractions per example", show.tenth),
        Column("uncached", "all examples (s)", show.three),
        Column("sampled", "sample (s)", show.three),
        Column("speed_up", "building", show.tenth, "times faster"),
        Column("iteration_speed_up", "whole iteration", show.tenth, "times faster"),
        Column("n_features", "features", show.tenth, "per example"),
        Column("direct_bytes", "bytes of features", show.whole, "per example"),
        Column("bytes", "bytes stored", show.tenth, "per example"),
        Column("shared_bytes", "shared by all labels (MB)", _show_megabytes),
    )
    paper = {"title": f"{PAPER}, estimate", "label": "NP", **REPORTED_COSTS}
    cut = [each for each in found if not each["is_whole"]]
    notes = [
        "All examples: one tree is built on all examples, whose features are extracted again for each split "
        "that they reach. Sample: sampling, extraction and building of a tree on a sample. Both use the "
        "same confidences and penalty, in one run, in CPU time of one thread. A whole iteration also "
        "includes the percolation and the leaf updates of the profile above.",
        *(
            f"{each['title']}: the mean of {each['n_sampled']} samples, with trees of "
            f"{each['sampled_splits']:.1f} splits; extraction took {each['uncached_extraction']:.3g} s of "
            "the time on all examples."
            for each in found
        ),
        "Bytes stored: position, sign, bias, weight, confidence and leaf of each example of the label; cuts, "
        "items and positions of inferences are shared by all labels.",
        *(
            f"{each['title']}: the time limit was reached before the tree was complete; the actual time is "
            "longer."
            for each in cut
        ),
    ]
    return Table(
        "Trees on all examples without stored features, and on samples", columns, [*found, paper], notes
    )


def _ensemble_table(found: Sequence[Row]) -> Table:
    columns = (
        Column("title", "parser"),
        Column("label", "label"),
        Column("n_trees", "trees", show.count),
        Column("n_leaves", "all", show.count, "leaves"),
        Column("n_nonzero", "non-zero", show.count, "leaves"),
        Column("depth", "questions on the path", _show_spread, "non-zero leaves"),
        Column("negated", "negated questions (%)", _show_percent, "non-zero leaves"),
        Column("only_negated", "only negated (%)", _show_percent, "non-zero leaves"),
        Column("confidence", "size of confidence", _show_spread, "non-zero leaves"),
        Column("right_margin", "correct", _show_spread, "margins of inferences"),
        Column("wrong_margin", "incorrect", _show_spread, "margins of inferences"),
    )
    rows = [{"title": each["title"], "label": each["label"], **each["ensemble"]} for each in found]
    paper = {"title": PAPER, "label": "NP", **REPORTED_ENSEMBLE}
    notes = (
        "Mean and standard deviation. Only negated: leaves whose questions are all answered with no. Margin: "
        "confidence of the ensemble in the right answer, over all training examples. Leaves are counted as "
        "they were built, before splits are undone.",
        f"paper: {PAPER}, section 4.2, for the best parser. Nearly all of its non-zero leaves were "
        "conjunctions of negated features; it gives no number.",
    )
    return Table("Trees, leaves and margins of the ensemble", columns, [*rows, paper], notes)


def _show_spread(values: Sequence[float]) -> str:
    """Format a mean and a standard deviation.

    Examples
    --------
    >>> _show_spread([40.4, 7.4])
    '40.4 ± 7.4'
    """
    mean, deviation = values
    return f"{mean:.3g} ± {deviation:.2g}"


def _show_percent(share: float) -> str:
    return f"{100 * share:.1f}"


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
    axes.set_xlabel("percentage of an iteration")
    axes.legend()
