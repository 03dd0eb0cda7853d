"""Titov & Henderson (2005), Table II: two constituency parsers, reranked with derived and tree kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from treewright._typing import Count
from treewright.metrics.parseval import parseval
from treewright.progress import report, track
from treewright.report import show
from treewright.report.experiment import Inputs, choose_rows, experiment
from treewright.report.plots import draw_scores
from treewright.report.tables import Column, Findings, Table
from treewright.report.titov.candidates import Candidates, ConstituentOutcome, DerivedBench, DerivedSettings
from treewright.report.titov.scores import (
    ABOUT_SCORES,
    ABOUT_TEST,
    PAPER,
    PENN,
    describe_bench,
    describe_row,
    score_outcome,
)
from treewright.report.turian.bench import Penalty, ReportedParser
from treewright.rerank.constituents import NO_KERNEL, SST, SST_DECAY

LEFTCORNER, CONSTITUENT, BOTH = "leftcorner", "constituent", "both"


class Reranked(NamedTuple):
    """A row of Table II; a row without a kernel is a parser alone."""

    name: str
    title: str
    parser: str
    kernel: str | None


TABLE2 = (
    Reranked("leftcorner", "left-corner parser", LEFTCORNER, None),
    Reranked("leftcorner-efficient-top", "left-corner parser, Eff-TOP-Rerank", LEFTCORNER, "efficient-top"),
    Reranked("leftcorner-sst", "left-corner parser, SST", LEFTCORNER, SST),
    Reranked("constituent", "parser by classification", CONSTITUENT, None),
    Reranked("constituent-sst", "parser by classification, SST", CONSTITUENT, SST),
    Reranked("both", "both parsers' scores", BOTH, NO_KERNEL),
    Reranked("both-efficient-top", "both parsers' scores, Eff-TOP-Rerank", BOTH, "efficient-top"),
)
REPORTED = (
    ReportedParser("Collins (1999)", 88.2, 88.1, 88.3),
    ReportedParser("Collins & Duffy (2002)", 88.7, 88.6, 88.9),
    ReportedParser("Collins & Roark (2004)", 88.8, 88.4, 89.1),
    ReportedParser("Henderson (2003)", 89.1, 88.8, 89.5),
    ReportedParser("Charniak (2000)", 89.5, 89.6, 89.5),
    ReportedParser(f"{PAPER}, Eff-TOP-Rerank-Out", 89.6, 89.1, 90.1),
    ReportedParser("Collins (2000)", 89.7, 89.6, 89.9),
    ReportedParser("Shen & Joshi (2004)", 89.8, 89.5, 90.0),
    ReportedParser("Shen et al. (2003)", 89.8, 89.7, 90.0),
    ReportedParser("Henderson (2004)", 90.1, 89.8, 90.4),
    ReportedParser("Bod (2003)", 90.7, 90.7, 90.8),
)


@dataclass(frozen=True)
class TitovTable2Settings(DerivedSettings):
    """Settings of Table II.

    Parameters
    ----------
    sst_sentences : int
        Maximum number of training sentences for rerankers with tree kernels.
    leftcorner_parser : Path, optional
        LeftCornerParser trained with gold tags (by default, one is trained).
    constituent_parser : Path, optional
        ConstituentParser trained with gold tags (by default, one is trained).
    runs : int, optional
        Training runs of the ConstituentParser to average (default: the parser's).
    lowest_penalty : float, optional
        Penalty at which training of the ConstituentParser ends (default: the parser's).
    """

    sst_sentences: Count = 2_000
    leftcorner_parser: Path | None = None
    constituent_parser: Path | None = None
    runs: Count | None = None
    lowest_penalty: Penalty | None = None

    @property
    def fewer_lists(self) -> dict[str, int]:
        """Maximum number of candidate lists for each kernel."""
        return {SST: self.sst_sentences}


@experiment("titov-table2", TitovTable2Settings)
def table2(settings: TitovTable2Settings, inputs: Inputs) -> Findings:
    """Rerank the candidates of two parsers with derived and tree kernels, and score them on the test set."""
    chosen = choose_rows([each.name for each in TABLE2], settings.systems)
    systems = [each for each in TABLE2 if each.name in chosen]
    bench = DerivedBench(
        settings,
        inputs,
        is_dev_scored=False,
        leftcorner_parser=settings.leftcorner_parser,
        constituent_parser=settings.constituent_parser,
    )
    parsers = _Parsers(bench)
    rows = [parsers.row(each) for each in track(systems, "rows of the table", unit="systems")]
    paper = [{**each._asdict(), "data": PENN, "is_paper": True} for each in REPORTED]
    return Findings(
        f"{PAPER}, Table II: rerankers on the test set",
        (
            Table(
                f"Scores on {bench.treebank.name}",
                _parser_columns(),
                [*rows, *paper],
                _parser_notes(bench, systems),
            ),
        ),
        partial(draw_scores, rows=[*rows, *paper], height=0.32),
        "F1 on the test set, here and in the paper (other data).",
        {**describe_bench(bench), "parser by classification": _describe_constituent(bench)},
    )


class _Parsers:
    """The two parsers; their candidates are computed on first use."""

    def __init__(self, bench: DerivedBench) -> None:
        self._bench = bench
        self._made: dict[str, Candidates] = {}

    def candidates(self, name: str) -> Candidates:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Candidates:
        bench = self._bench
        if name == LEFTCORNER:
            return Candidates(bench, bench.leftcorner(bench.settings.large_threshold))
        if name == CONSTITUENT:
            return Candidates(bench, bench.constituent())
        first, second = (self.candidates(each) for each in (LEFTCORNER, CONSTITUENT))
        return Candidates(bench, first.parser, (first, second))

    def row(self, system: Reranked) -> dict[str, Any]:
        candidates = self.candidates(system.parser)
        outcome = candidates.reranked(system.kernel) if system.kernel else candidates.alone()
        row = {
            **system._asdict(),
            "data": self._bench.treebank.name,
            **score_outcome(self._bench, outcome, self._base(system) if system.kernel else None),
            "oracle": candidates.oracle(),
        }
        report(describe_row(row))
        return row

    def _base(self, system: Reranked) -> ConstituentOutcome:
        """Return the baseline of a reranker: its parser or, if it reranks both, the better one."""
        if system.parser != BOTH:
            return self.candidates(system.parser).alone()
        alone = [self.candidates(each).alone() for each in (LEFTCORNER, CONSTITUENT)]
        return max(alone, key=lambda each: parseval(self._bench.treebank.test, each.trees).f1)


def _parser_columns() -> tuple[Column, ...]:
    return (
        Column("title", "parser"),
        Column("data", "treebank"),
        Column("n_sentences", "sentences", show.count),
        Column("recall", "LR", show.score),
        Column("precision", "LP", show.score),
        Column("f1", "F1", show.score),
        Column("exact", "exact", show.score),
        Column("difference", "gain", show.difference),
        Column("p_value", "p", show.p_value),
        Column("oracle", "oracle F1", show.score),
        Column("tuning_kernel_weight", "evidence times", show.number),
        Column("tuning_second", "second weight", show.number),
        Column("seconds", "training", show.time),
    )


def _parser_notes(bench: DerivedBench, systems: Sequence[Reranked]) -> list[str]:
    settings, treebank = bench.settings, bench.treebank
    n_lists = {
        kernel: min(settings.n_lists(kernel) or len(treebank.train), len(treebank.train))
        for kernel in ("efficient-top", SST)
    }
    notes = [
        f"{ABOUT_SCORES} oracle F1: the score if the best candidate is always chosen.",
        f"gain and p: relative to the parser alone (the better of both), by a {ABOUT_TEST}. kernel, second "
        "weight: factors of the reranker's kernel score and of the score of the parser by classification, "
        f"tuned on {len(treebank.dev):,} {'dev' if bench.whole.dev else 'training'} sentences.",
        f"training: time of the reranker on the lists of {n_lists['efficient-top']:,} training sentences; "
        f"tree kernels (SST, decay {SST_DECAY:g}, as Collins & Duffy 2002) on {n_lists[SST]:,}, since their "
        "time is quadratic. Rerankers of both parsers are trained on the lists of the left-corner parser.",
        f"{PENN}: as reported by {PAPER}, section 23. Other data: not comparable with the scores here.",
    ]
    return notes if any(each.kernel for each in systems) else [notes[0], notes[-1]]


def _describe_constituent(bench: DerivedBench) -> str:
    given = bench.constituent_parser
    return f"pretrained model {given.name}" if given else "trained on the same sentences"
