"""Qian & Liu (2015), Table 3: effect of the feature selection threshold."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from treewright._typing import NonNegativeFloat
from treewright.progress import report, track
from treewright.report import show
from treewright.report.corpora import find_corpus
from treewright.report.experiment import Inputs, experiment
from treewright.report.plots import Panel, Series, draw_panels
from treewright.report.qian_liu.bench import (
    ABOUT_P,
    ABOUT_PENN,
    ABOUT_TIME,
    PAPER,
    PAPER_BASE,
    Bench,
    DependencyOutcome,
    Ranking,
    RerankingSettings,
    column_of,
    describe_row,
)
from treewright.report.tables import Column, Findings, Row, Table, failures


@dataclass(frozen=True)
class QianLiuTable3Settings(RerankingSettings):
    """Settings of Table 3.

    Parameters
    ----------
    thresholds : tuple of float
        Feature selection thresholds to compare.
    """

    thresholds: tuple[NonNegativeFloat, ...] = (1.0, 2.0, 3.0, 5.0, 10.0)


class ReportedThreshold(NamedTuple):
    """The paper's figures for a threshold."""

    features: str
    templates: str
    time: str
    memory: str
    uas: float | None
    n_features: float


REPORTED_THRESHOLDS = {
    1.0: ReportedThreshold("0.34G", "N/A", "stalled", "OOM", None, 0.34e9),
    2.0: ReportedThreshold("0.34G", "N/A", "stalled", "OOM", None, 0.34e9),
    3.0: ReportedThreshold("33.1M", "11.4K", "36 h", "4.0 G", 93.72, 33.1e6),
    5.0: ReportedThreshold("6.32M", "2.1K", "20 h", "2.2 G", 93.55, 6.32e6),
    10.0: ReportedThreshold("2.10M", "1.6K", "5 h", "1.4 G", 93.40, 2.1e6),
}


@experiment("qian-liu-table3", QianLiuTable3Settings)
def table3(settings: QianLiuTable3Settings, inputs: Inputs) -> Findings:
    """Select features of the dependency tree kernel space with several thresholds."""
    bench = Bench(find_corpus(inputs.data), settings, inputs)
    base = bench.base()
    rows = []
    for threshold in track(settings.thresholds, "rows of the table", unit="thresholds"):
        report(f"{bench.corpus.name}: threshold {threshold:g}")
        outcome = bench.reranked(Ranking("subtree", "mined", None, float(threshold)))
        rows.append(_threshold_row(threshold, bench, outcome, base))
        report(describe_row(rows[-1]))
    columns = (
        Column("threshold", "C", show.number),
        Column("n_features", "features", show.count, "here"),
        Column("n_templates", "templates", show.count, "here"),
        Column("seconds", "time", show.time, "here"),
        Column("memory", "memory", show.memory, "here"),
        Column("uas", "UAS", show.score, "here"),
        Column("p_value", "p", show.p_value, "here"),
        Column("paper_features", "features", group="paper"),
        Column("paper_templates", "templates", group="paper"),
        Column("paper_time", "time", group="paper"),
        Column("paper_memory", "memory", group="paper"),
        Column("paper_uas", "UAS", show.score, "paper"),
    )
    notes = [
        f"UAS of the parser without reranking: {bench.score(base):.2f} here, {PAPER_BASE} in the paper.",
        ABOUT_P.replace("systems", "thresholds"),
        ABOUT_TIME,
        "Memory is the peak memory of the process, including the parser.",
        ABOUT_PENN,
        *failures(rows),
    ]
    return Findings(
        f"{PAPER}, Table 3: feature selection with different thresholds",
        (
            Table(
                f"Features selected in the dependency tree kernel space, {bench.corpus.name}",
                columns,
                rows,
                notes,
            ),
        ),
        partial(_draw_thresholds, rows=rows),
        "Number of selected features and UAS gain over the parser by threshold, here and in the paper.",
        bench.facts(),
    )


def _threshold_row(
    threshold: float, bench: Bench, outcome: DependencyOutcome, base: DependencyOutcome
) -> dict[str, Any]:
    row = {"threshold": threshold, **bench.row(f"C = {threshold:g}", outcome, base, "uas")}
    if reported := REPORTED_THRESHOLDS.get(float(threshold)):
        row |= {f"paper_{name}": value for name, value in reported._asdict().items()}
    return row


def _draw_thresholds(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    # A logarithmic scale cannot show a threshold that selects nothing.
    counts = [n_features or None for n_features in column_of(rows, "n_features")]
    gains = [uas and uas - PAPER_BASE for uas in column_of(rows, "paper_uas")]
    features = Panel(
        "features",
        (Series("here", counts), Series("paper", column_of(rows, "paper_n_features"))),
        is_logarithmic=True,
    )
    gain = Panel("gain in UAS", (Series("here", column_of(rows, "difference")), Series("paper", gains)))
    draw_panels(figure, column_of(rows, "threshold"), (features, gain), label="threshold C")
