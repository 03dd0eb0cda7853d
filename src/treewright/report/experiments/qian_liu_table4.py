"""Qian & Liu (2015), Table 4: reranking of all treebanks of a folder."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from treewright.progress import report, track
from treewright.report import show
from treewright.report.corpora import find_corpora
from treewright.report.experiment import Inputs, experiment
from treewright.report.plots import Series, draw_gains
from treewright.report.qian_liu.bench import (
    ABOUT_P,
    PAPER,
    Bench,
    DependencyOutcome,
    MiningSettings,
    Ranking,
    column_of,
    describe_row,
)
from treewright.report.tables import Column, Findings, Row, Table, failures

REPORTED_LANGUAGES = (
    ("Chinese", 76.77, 79.17),
    ("Japanese", 92.68, 92.57),
    ("German", 87.40, 87.48),
    ("Spanish", 87.82, 87.64),
    ("Czech", 80.51, 80.38),
    ("Catalan", 86.98, 87.86),
)


@experiment("qian-liu-table4", MiningSettings)
def table4(settings: MiningSettings, inputs: Inputs) -> Findings:
    """Rerank every treebank of a folder with features of the dependency tree kernel space."""
    rows = []
    for files in track(find_corpora(inputs.data), "rows of the table", unit="treebanks"):
        bench = Bench(files, settings, inputs)
        base = bench.base()
        report(f"{files.name}: reranking")
        outcome = bench.reranked(Ranking("subtree", "mined", None, float(settings.threshold)))
        rows.append(_treebank_row(bench, outcome, base))
        report(describe_row(rows[-1]))
    columns = (
        Column("title", "treebank"),
        Column("n_sentences", "sentences", show.count),
        Column("base_uas", "parser", show.score, "UAS"),
        Column("uas", "reranked", show.score, "UAS"),
        Column("difference", "gain", show.difference, "UAS"),
        Column("p_value", "p", show.p_value, "UAS"),
        Column("base_las", "parser", show.score, "LAS"),
        Column("las", "reranked", show.score, "LAS"),
        Column("las_difference", "gain", show.difference, "LAS"),
        Column("las_p_value", "p", show.p_value, "LAS"),
    )
    notes = [ABOUT_P.replace("systems", "treebanks"), *failures(rows)]
    result = Table(
        "Reranking with features selected in the dependency tree kernel space", columns, rows, notes
    )
    return Findings(
        f"{PAPER}, Table 4: treebanks of other languages",
        (result, _paper_languages()),
        partial(_draw_treebanks, rows=rows),
        "Gain of reranking over the parser, with its 95% bootstrap interval.",
        settings.facts(),
    )


def _treebank_row(bench: Bench, outcome: DependencyOutcome, base: DependencyOutcome) -> dict[str, Any]:
    row = bench.row(bench.corpus.name, outcome, base, "uas", "las")
    row |= {"n_sentences": len(bench.corpus.train), "parts": bench.corpus.describe()}
    row |= {f"base_{metric}": bench.score(base, metric) for metric in ("uas", "las")}
    labelled = bench.comparison(outcome, base, "las")
    return row | {f"las_{name}": value for name, value in labelled.items()}


def _paper_languages() -> Table:
    columns = (
        Column("title", "language"),
        Column("paper_las", "LAS", show.score),
        Column("paper_best", "best official LAS", show.score),
    )
    rows = [
        dict(zip(("title", "paper_las", "paper_best"), reported, strict=True))
        for reported in REPORTED_LANGUAGES
    ]
    caption = f"{PAPER} on the CoNLL 2009 treebanks: other data, not comparable with the scores above"
    return Table(caption, columns, rows)


def _draw_treebanks(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    series = (
        Series("UAS", column_of(rows, "difference"), column_of(rows, "interval")),
        Series("LAS", column_of(rows, "las_difference"), column_of(rows, "las_interval")),
    )
    draw_gains(figure, column_of(rows, "title"), series, label="gain over the parser (points)")
