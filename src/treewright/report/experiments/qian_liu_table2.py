"""Qian & Liu (2015), Table 2: kernels compared with features selected in their feature spaces.

Feature Selection in Kernel Space. The paper's figures are for other treebanks, much larger than most free
ones. Only the gains of reranking over the parser, and their order, can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from treewright._typing import Count
from treewright.progress import report, track
from treewright.report import show
from treewright.report.corpora import find_corpus
from treewright.report.experiment import Inputs, choose_rows, experiment
from treewright.report.plots import Series, draw_gains
from treewright.report.qian_liu.bench import (
    ABOUT_P,
    ABOUT_PENN,
    ABOUT_TIME,
    PAPER,
    PAPER_BASE,
    Bench,
    DependencyOutcome,
    MiningSettings,
    Ranking,
    column_of,
    describe_row,
)
from treewright.report.tables import Column, Findings, Row, Table, failures

PARSER = "third-order parser"


@dataclass(frozen=True)
class QianLiuTable2Settings(MiningSettings):
    """Settings of Table 2.

    Parameters
    ----------
    degrees : tuple of int
        Degrees of the polynomial kernels.
    systems : tuple of str, optional
        Rows of the table, such as kernel-2,mined-tree (default: all).
    """

    degrees: tuple[Count, ...] = (2, 4, 8)
    systems: tuple[str, ...] | None = None


class RerankingSystem(NamedTuple):
    """A row of Table 2."""

    name: str
    title: str
    space: str
    learner: str
    degree: int | None = None


class ReportedSystem(NamedTuple):
    """The paper's figures for a system."""

    uas: float
    time: str


REPORTED = {
    "parser": ReportedSystem(PAPER_BASE, "20 h"),
    "kernel-2": ReportedSystem(93.41, "6 h"),
    "kernel-4": ReportedSystem(93.45, "6 h"),
    "kernel-8": ReportedSystem(93.27, "6 h"),
    "kernel-tree": ReportedSystem(93.65, "10 days"),
    "template": ReportedSystem(93.39, "4 min"),
    "mined-2": ReportedSystem(93.39, "9 min"),
    "mined-4": ReportedSystem(93.44, "0.5 h"),
    "mined-8": ReportedSystem(93.30, "6 h"),
    "mined-tree": ReportedSystem(93.72, "36 h"),
}
REPORTED_ELSEWHERE = (
    ("Zhang and McDonald, 2014", 93.57, None),
    ("Zhang et al., 2013", 93.50, None),
    ("Ma and Zhao, 2012", 93.40, None),
    ("Bohnet and Kuhn, 2012", 93.39, None),
    ("Rush and Petrov, 2012", 93.30, None),
    ("Qian and Liu, 2013", 93.17, None),
    ("Hayashi et al., 2013", 93.12, "1 h"),
    ("Martins et al., 2013", 93.07, None),
    ("Zhang and McDonald, 2012", 93.06, None),
    ("Koo and Collins, 2010", 93.04, None),
    ("Zhang and Nivre, 2011", 92.90, None),
)
KERNEL_NAMES = {2: "quadratic kernel (QK)", 4: "biquadratic kernel (BK)", 8: "8th degree kernel (8K)"}


@experiment("qian-liu-table2", QianLiuTable2Settings)
def table2(settings: QianLiuTable2Settings, inputs: Inputs) -> Findings:
    """Compare kernels, templates and selected features as rerankers on one treebank."""
    systems = choose_systems(settings)
    bench = Bench(find_corpus(inputs.data), settings, inputs)
    base = bench.base()
    rows = [_system_row("parser", PARSER, bench, base, None)]
    for system in track(systems, "rows of the table", unit="systems"):
        report(f"{bench.corpus.name}: {system.title}")
        threshold = float(settings.threshold)
        outcome = bench.reranked(Ranking(system.space, system.learner, system.degree, threshold))
        rows.append(_system_row(system.name, system.title, bench, outcome, base))
        report(describe_row(rows[-1]))
    columns = (
        Column("title", "system"),
        Column("uas", "UAS", show.score, "here"),
        Column("difference", "gain", show.difference, "here"),
        Column("p_value", "p", show.p_value, "here"),
        Column("n_features", "features", show.count, "here"),
        Column("seconds", "time", show.time, "here"),
        Column("memory", "memory", show.memory, "here"),
        Column("paper_uas", "UAS", show.score, "paper"),
        Column("paper_difference", "gain", show.difference, "paper"),
        Column("paper_time", "time", group="paper"),
    )
    notes = [
        ABOUT_P,
        "The features of a kernel are its support trees.",
        ABOUT_TIME,
        ABOUT_PENN,
        *failures(rows),
    ]
    return Findings(
        f"{PAPER}, Table 2: kernels and features selected in their spaces",
        (Table(f"Reranking on {bench.corpus.name}", columns, rows, notes), _elsewhere()),
        partial(_draw_systems, rows=rows[1:]),
        "UAS gain over the parser, here (with 95% bootstrap interval) and in the paper.",
        bench.facts(),
    )


def choose_systems(settings: QianLiuTable2Settings) -> list[RerankingSystem]:
    """Return the requested rerankers of Table 2."""
    kernels = [
        RerankingSystem(f"kernel-{degree}", _kernel_name(degree), "polynomial", "kernel", degree)
        for degree in settings.degrees
    ]
    known = [
        *kernels,
        RerankingSystem("kernel-tree", "dependency tree kernel (DTK)", "subtree", "kernel"),
        RerankingSystem("template", "linear, template features", "template", "mined"),
        *(
            RerankingSystem(
                f"mined-{each.degree}",
                f"linear, features in {_short(each)}",
                each.space,
                "mined",
                each.degree,
            )
            for each in kernels
        ),
        RerankingSystem("mined-tree", "linear, features in DTK", "subtree", "mined"),
    ]
    chosen = choose_rows([system.name for system in known], settings.systems)
    return [system for system in known if system.name in chosen]


def _kernel_name(degree: int) -> str:
    return KERNEL_NAMES.get(degree, f"polynomial kernel of degree {degree} ({degree}K)")


def _short(system: RerankingSystem) -> str:
    """Return the abbreviation at the end of a kernel's title."""
    return system.title.rpartition("(")[2].rstrip(")")


def _system_row(
    name: str, title: str, bench: Bench, outcome: DependencyOutcome, base: DependencyOutcome | None
) -> dict[str, Any]:
    row = {"system": name, **bench.row(title, outcome, base, "uas", "las")}
    if reported := REPORTED.get(name):
        gain = round(reported.uas - PAPER_BASE, 2) if base else None
        row |= {"paper_uas": reported.uas, "paper_time": reported.time, "paper_difference": gain}
    return row


def _elsewhere() -> Table:
    columns = (
        Column("title", "system"),
        Column("paper_uas", "UAS", show.score),
        Column("paper_time", "time"),
    )
    rows = [
        dict(zip(("title", "paper_uas", "paper_time"), reported, strict=True))
        for reported in REPORTED_ELSEWHERE
    ]
    return Table("Reported by others on the Penn Treebank, as quoted in the paper", columns, rows)


def _draw_systems(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    here = Series("here", column_of(rows, "difference"), column_of(rows, "interval"))
    paper = Series("paper", column_of(rows, "paper_difference"))
    draw_gains(figure, column_of(rows, "title"), (here, paper), label="UAS gain over the parser (points)")
