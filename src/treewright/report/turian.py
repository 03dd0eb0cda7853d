"""The experiments of Turian & Melamed (2006), Computational Challenges in Parsing by Classification.

Their Table 1 compares parsers on sentences of up to 15 words of the Penn Treebank, Figure 1 shows how the
score grows with training, Table 2 what an iteration of the training costs, and how much is saved by building
trees on samples. The paper's figures are for another treebank than those that are free.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from treewright.progress import report, track
from treewright.report.constituents import (
    SHORT,
    ConstituentBench,
    ConstituentSettings,
    System,
    choose_systems,
    show_length,
)
from treewright.report.experiment import Inputs
from treewright.report.profiling import measure_label
from treewright.report.sampling import STEPS
from treewright.report.separate_process import Values
from treewright.report.tables import (
    Column,
    Findings,
    Row,
    Table,
    show_count,
    show_number,
    show_score,
    show_time,
)

PAPER = "Turian & Melamed (2006)"
PENN = "Penn Treebank"
SHIFT_REDUCE, ORIGINAL = ("shift-reduce",), ("original",)


class Reported(NamedTuple):
    """A row of the paper's Table 1."""

    title: str
    f1: float
    recall: float
    precision: float


REPORTED = (
    Reported("Turian and Melamed (2005)", 87.13, 86.47, 87.80),
    Reported("Bikel (2004)", 88.30, 87.85, 88.75),
    Reported("Taskar et al. (2004)", 89.12, 89.10, 89.14),
    Reported(PAPER, 89.40, 89.26, 89.55),
)
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
ABOUT_LENGTH = "Words are counted with punctuation, without traces."
ABOUT_TREES = (
    "Time is the sum over the trees of all labels, as if grown one after another; scores on dev sentences, "
    "the preparation and, on a new machine, the compilation are not in it."
)


def table1(inputs: Inputs) -> Findings:
    """Test parsers of several strategies, tags and lengths of sentences."""
    bench, systems = _bench(inputs, SHIFT_REDUCE, (SHORT, None))
    lengths = [system.max_length for system in systems]
    rows = []
    for system in track(systems, "rows of the table", unit="parsers"):
        for length in dict.fromkeys(filter(partial(_is_within, system.max_length), lengths)):
            rows.append(_result_row(bench, system, length))
            report(_summary(rows[-1]))
    # Results on the same test sentences stand together.
    rows.sort(key=lambda row: lengths.index(row["max_length"]))
    notes = [
        f"{PENN}: as the paper prints them, for sections 02-21 to train and 23 to test, sentences of up to "
        "15 words, tags of an outside tagger. Other data: not to be compared with the scores here.",
        f"{ABOUT_LENGTH} Recall, precision and F1 as evalb with COLLINS.prm counts them.",
        "Time is that of the whole training, with dev scores and, for predicted tags, taggers; a dash is for "
        "one that was interrupted and went on. Parsing is on one core, tagging included.",
    ]
    return Findings(
        f"{PAPER}, Table 1: scores on test sentences",
        (Table(f"Scores on {bench.treebank.name}", _result_columns(), [*rows, *_paper_rows()], notes),),
        partial(_draw_scores, rows=[*rows, *_paper_rows()]),
        "F1 on test sentences, here and, on other data, in the paper.",
        _facts(bench, systems),
    )


def _bench(
    inputs: Inputs, strategies: tuple[str, ...], max_lengths: tuple[int | None, ...]
) -> tuple[ConstituentBench, list[System]]:
    settings = inputs.settings
    assert isinstance(settings, ConstituentSettings)
    return ConstituentBench(settings, inputs), choose_systems(settings, strategies, max_lengths)


def _is_within(longest: int | None, length: int | None) -> bool:
    return longest is None or (length is not None and length <= longest)


def _result_row(bench: ConstituentBench, system: System, length: int | None) -> dict[str, Any]:
    return {
        "title": f"{system.strategy}, {system.tags} tags",
        "data": bench.treebank.name,
        **system._asdict(),
        "trained_on": show_length(system.max_length),
        "tested_on": show_length(length),
        **bench.tested(system, length),
        "max_length": length,
    }


def _paper_rows() -> list[dict[str, Any]]:
    length = show_length(SHORT)
    return [
        {**each._asdict(), "data": PENN, "trained_on": length, "tested_on": length, "is_paper": True}
        for each in REPORTED
    ]


def _result_columns() -> tuple[Column, ...]:
    return (
        Column("title", "parser"),
        Column("data", "treebank"),
        Column("trained_on", "trained on"),
        Column("tested_on", "tested on"),
        Column("n_sentences", "sentences", show_count),
        Column("f1", "F1", show_score),
        Column("recall", "recall", show_score),
        Column("precision", "precision", show_score),
        Column("tagging", "tags right", show_score),
        Column("seconds", "training", show_time),
        Column("rate", "sentences/s", _show_whole),
        Column("n_trees", "trees", show_count),
        Column("n_nonzero", "parameters", show_count),
    )


def _summary(row: Row) -> str:
    return f"{row['title']}, {row['tested_on']}: F1 {row['f1']:.2f}, {row['rate']:.0f} sentences a second"


def _show_whole(value: float) -> str:
    return f"{value:,.0f}"


def _facts(bench: ConstituentBench, systems: Sequence[System]) -> dict[str, str]:
    settings, parser = bench.settings, bench.make_parser(systems[0])
    treebanks = {
        length: bench.sentences(length) for length in {system.max_length: None for system in systems}
    }
    return {
        **{f"treebank, {show_length(length)}": each.describe() for length, each in treebanks.items()},
        "training sentences": "all"
        if settings.n_sentences is None
        else f"the first {settings.n_sentences:,}",
        "sample": f"{parser.sample_size:,} examples",
        "least gain of a split": f"{parser.min_gain:g} of the penalty",
        "lowest penalty": f"{parser.lowest_penalty:g}",
        "runs": str(parser.runs),
        "inferences scored at the most": f"{parser.max_inferences:,} a sentence",
        "random_state": str(settings.random_state),
        "n_jobs": str(settings.n_jobs),
    }


def _draw_scores(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    figure.set_size_inches(7.5, 1.1 + 0.42 * len(rows))
    axes = figure.subplots()
    for kind, colour, label in ((False, "C0", "here"), (True, "C1", f"paper, {PENN}")):
        places = [at for at, row in enumerate(rows) if row.get("is_paper", False) == kind]
        axes.scatter([rows[at]["f1"] for at in places], places, color=colour, marker="so"[kind], label=label)
    axes.set_yticks(range(len(rows)), [f"{row['title']}, {row['tested_on']}" for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("F1")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()


def figure1(inputs: Inputs) -> Findings:
    """Show how the dev score, the number of parameters and the weight lost change as training goes on."""
    bench, systems = _bench(inputs, SHIFT_REDUCE, (SHORT,))
    rows = [
        {"title": system.title, **step._asdict(), "lost": 100 * step.lost}
        for system in track(systems, "curves", unit="parsers")
        for step in bench.trained(system).parser.history_
    ]
    columns = (
        Column("title", "parser"),
        Column("penalty", "penalty", _show_three),
        Column("seconds", "time", show_time),
        Column("n_trees", "trees", show_count),
        Column("n_nonzero", "parameters", show_count),
        Column("f1", "dev F1", show_score),
        Column("lost", "weight lost (%)", show_score),
    )
    notes = [
        ABOUT_TREES,
        "Weight lost: percent of the example weight that the last sample lacked, for the label with the most "
        "examples. " + ABOUT_LENGTH,
        f"{PAPER} draws curves: a peak of 90.55 with 6.3K parameters after 5.4 days, above 89 after 2.5 "
        f"days, and less than 1% lost after one day ({PENN}, up to 15 words: other data).",
    ]
    return Findings(
        f"{PAPER}, Figure 1: dev score as training goes on",
        (Table(f"Steps of the training on {bench.treebank.name}", columns, rows, notes),),
        partial(_draw_steps, rows=rows),
        "F1 on dev sentences (solid) and percent of example weight lost by sampling (dashed), by training "
        "time and by the number of non-zero parameters.",
        _facts(bench, systems),
    )


def _show_three(value: float) -> str:
    return f"{value:.3g}"


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


def table2(inputs: Inputs) -> Findings:
    """Profile the trees of one label, and compare building them on samples and on all examples."""
    bench, systems = _bench(inputs, ORIGINAL, (SHORT,))
    # Times hardly depend on tags.
    systems = [system for system in systems if system.tags == "gold"]
    profiled = track(systems, "rows of the table", unit="parsers")
    found = [_cost_row(each, measure_label(bench, each)) for each in profiled]
    return Findings(
        f"{PAPER}, Table 2: profile of a training iteration",
        (_profile_table(found), _cost_table(found)),
        partial(_draw_profile, found=found),
        "Percent of the time of an iteration, by step, here and in the paper.",
        _facts(bench, systems),
        headline="; ".join(
            f"{each['title']}: a tree is built {each['speed_up']:.1f} times faster on a sample"
            for each in found
        ),
    )


def _cost_row(system: System, values: Values) -> dict[str, Any]:
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
        Column("percent", "%", _show_tenth, "here"),
        Column("paper_mean", "mean (s)", show_number, "paper"),
        Column("paper_deviation", "stddev (s)", show_number, "paper"),
        Column("paper_percent", "%", show_number, "paper"),
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
        Column("n_examples", "examples", show_count),
        Column("sample_size", "sample", show_count),
        Column("n_splits", "splits", _show_tenth),
        Column("extractions", "extractions an example", _show_tenth),
        Column("uncached", "all examples (s)", _show_three),
        Column("sampled", "sample (s)", _show_three),
        Column("speed_up", "building", _show_tenth, "times faster"),
        Column("iteration_speed_up", "whole iteration", _show_tenth, "times faster"),
        Column("n_features", "features", _show_tenth, "of an example"),
        Column("direct_bytes", "bytes of these", _show_whole, "of an example"),
        Column("bytes", "bytes kept", _show_tenth, "of an example"),
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


def _show_tenth(value: float) -> str:
    return f"{value:,.1f}"


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
