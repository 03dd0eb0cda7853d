"""Turian & Melamed (2006), Figure 1: dev scores during training."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from treewright.progress import track
from treewright.report import show
from treewright.report.experiment import Inputs, experiment
from treewright.report.tables import Column, Findings, Row, Table
from treewright.report.turian.bench import ABOUT_LENGTH, PAPER, PENN, ConstituentBench, TaggedSettings

ABOUT_TREES = (
    "Time is the sum over the trees of all labels, without the evaluation on the dev set, the preparation "
    "and the compilation."
)


@experiment("turian-figure1", TaggedSettings)
def figure1(settings: TaggedSettings, inputs: Inputs) -> Findings:
    """Show the dev score, number of parameters and weight lost by sampling for each training step."""
    bench, systems = ConstituentBench(settings, inputs), settings.systems()
    rows = [
        {"title": system.title, **step._asdict(), "lost": 100 * step.lost}
        for system in track(systems, "curves", unit="parsers")
        for step in bench.trained(system).parser.history_
    ]
    columns = (
        Column("title", "parser"),
        Column("penalty", "penalty", show.three),
        Column("seconds", "time", show.time),
        Column("n_trees", "trees", show.count),
        Column("n_nonzero", "parameters", show.count),
        Column("f1", "dev F1", show.score),
        Column("lost", "weight lost (%)", show.score),
    )
    notes = [
        ABOUT_TREES,
        "Weight lost: percentage of the example weight missing from the last sample, for the label with the "
        "most examples. " + ABOUT_LENGTH,
        f"{PAPER} plots curves: F1 exceeds 89 after 2.5 days and peaks at 90.55 with 6.3K parameters after "
        f"5.4 days; after one day, less than 1% of the weight is lost ({PENN}, up to 15 words: other data).",
    ]
    return Findings(
        f"{PAPER}, Figure 1: dev score during training",
        (Table(f"Steps of the training on {bench.treebank.name}", columns, rows, notes),),
        partial(_draw_steps, rows=rows),
        "F1 on the dev set (solid) and percentage of example weight lost by sampling (dashed), by training "
        "time and by the number of non-zero parameters.",
        bench.facts(settings),
    )


def _draw_steps(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    figure.set_size_inches(9, 3.8)
    titles = list(dict.fromkeys(row["title"] for row in rows))
    places = {"seconds": "training time (s)", "n_nonzero": "non-zero parameters"}
    for axes, (key, label) in zip(figure.subplots(1, 2), places.items(), strict=True):
        other = axes.twinx()
        for number, title in enumerate(titles):
            own = [row for row in rows if row["title"] == title and row[key] > 0]
            shown = [row[key] for row in own]
            axes.plot(shown, [row["f1"] for row in own], color=f"C{number}", marker=".", label=title)
            other.plot(shown, [row["lost"] for row in own], color=f"C{number}", linestyle="--")
        axes.set(xlabel=label, ylabel="dev F1", xscale="log")
        other.set(ylabel="weight lost (%)", ylim=(0, None))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", fontsize="small")
