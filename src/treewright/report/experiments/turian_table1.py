"""Turian & Melamed (2006), Table 1: scores of parsing by classification."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from treewright._typing import Count
from treewright.progress import report, track
from treewright.report import show
from treewright.report.experiment import Inputs, experiment
from treewright.report.plots import draw_scores
from treewright.report.tables import Column, Findings, Row, Table
from treewright.report.turian.bench import (
    ABOUT_LENGTH,
    PAPER,
    PENN,
    SHORT,
    ConstituentBench,
    ParserSystem,
    ReportedParser,
    TaggedSettings,
    show_length,
)

REPORTED = (
    ReportedParser("Turian and Melamed (2005)", 87.13, 86.47, 87.80),
    ReportedParser("Bikel (2004)", 88.30, 87.85, 88.75),
    ReportedParser("Taskar et al. (2004)", 89.12, 89.10, 89.14),
    ReportedParser(PAPER, 89.40, 89.26, 89.55),
)


@dataclass(frozen=True)
class TurianTable1Settings(TaggedSettings):
    """Settings of Table 1."""

    max_lengths: tuple[Count | None, ...] = (SHORT, None)


@experiment("turian-table1", TurianTable1Settings)
def table1(settings: TurianTable1Settings, inputs: Inputs) -> Findings:
    """Evaluate parsers with several strategies, tags and sentence lengths."""
    bench, systems = ConstituentBench(settings, inputs), settings.systems()
    lengths = [system.max_length for system in systems]
    rows = []
    for system in track(systems, "rows of the table", unit="parsers"):
        for length in dict.fromkeys(filter(partial(_is_within, system.max_length), lengths)):
            rows.append(_result_row(bench, system, length))
            report(_summary(rows[-1]))
    # Group results on the same test sentences.
    rows.sort(key=lambda row: lengths.index(row["max_length"]))
    shown = [*rows, *_paper_rows()]
    notes = [
        f"{PENN}: as reported in the paper, sections 02-21 for training and 23 for testing, sentences of at "
        "most 15 words, tags of an external tagger. Other data: not comparable with the scores here.",
        f"{ABOUT_LENGTH} Recall, precision and F1 as in evalb with COLLINS.prm.",
        "Time is measured for the whole training run, including dev scores and, for predicted tags, taggers; "
        "a dash means that it was interrupted and resumed. Parsing uses one core and includes tagging.",
    ]
    return Findings(
        f"{PAPER}, Table 1: scores on the test set",
        (Table(f"Scores on {bench.treebank.name}", _result_columns(), shown, notes),),
        partial(draw_scores, rows=shown, title=lambda row: f"{row['title']}, {row['tested_on']}"),
        "F1 on the test set, here and in the paper (other data).",
        bench.facts(settings),
    )


def _is_within(longest: int | None, length: int | None) -> bool:
    return longest is None or (length is not None and length <= longest)


def _result_row(bench: ConstituentBench, system: ParserSystem, length: int | None) -> dict[str, Any]:
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
        Column("n_sentences", "sentences", show.count),
        Column("f1", "F1", show.score),
        Column("recall", "recall", show.score),
        Column("precision", "precision", show.score),
        Column("tagging", "tagging", show.score),
        Column("seconds", "training", show.time),
        Column("rate", "sentences/s", show.whole),
        Column("n_trees", "trees", show.count),
        Column("n_nonzero", "parameters", show.count),
    )


def _summary(row: Row) -> str:
    return f"{row['title']}, {row['tested_on']}: F1 {row['f1']:.2f}, {row['rate']:.0f} sentences per second"
