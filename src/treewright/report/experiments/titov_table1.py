"""Titov & Henderson (2005), Table I: kernels derived from a left-corner parser.

Deriving Kernels from MLP Probability Estimators. The kernels are compared on the dev set, with a small and a
large vocabulary. The paper's figures are for the Penn Treebank, which is not free.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import floor, log10
from statistics import fmean, stdev
from typing import Any, NamedTuple

from treewright._typing import Count
from treewright.progress import Task, report, task
from treewright.report import show
from treewright.report.experiment import Inputs, choose_rows, experiment
from treewright.report.tables import Column, Findings, Row, Table
from treewright.report.titov.candidates import (
    ASIDE,
    SAMPLE,
    Candidates,
    ConstituentOutcome,
    DerivedBench,
    DerivedSettings,
)
from treewright.report.titov.scores import (
    ABOUT_SCORES,
    ABOUT_TEST,
    PAPER,
    PENN,
    SCORES,
    compare_trees,
    describe_bench,
    describe_row,
    score_outcome,
)

SMALL, LARGE = "small", "large"


class DerivedKernelRow(NamedTuple):
    """A row of Table I, with the paper's F1; a row without a kernel is the parser alone."""

    name: str
    title: str
    vocabulary: str
    kernel: str | None
    weights: str
    paper_f1: float | None


TABLE1 = (
    DerivedKernelRow("ssn-small", "SSN", SMALL, None, "output", 87.8),
    DerivedKernelRow("fisher-small", "Fisher-Out", SMALL, "fisher", "output", 87.9),
    DerivedKernelRow("top-small", "TOP-Out", SMALL, "top", "output", 87.9),
    DerivedKernelRow("top-rerank-small", "TOP-Rerank-Out", SMALL, "top-rerank", "output", 88.1),
    DerivedKernelRow("efficient-top-small", "Eff-TOP-Rerank-Out", SMALL, "efficient-top", "output", 88.1),
    DerivedKernelRow("top-rerank-all-small", "TOP-Rerank-All", SMALL, "top-rerank", "all", 87.6),
    DerivedKernelRow("ssn-large", "SSN", LARGE, None, "output", 88.6),
    DerivedKernelRow("efficient-top-large", "Eff-TOP-Rerank-Out", LARGE, "efficient-top", "output", 88.9),
    DerivedKernelRow("top-rerank-large", "TOP-Rerank-Out", LARGE, "top-rerank", "output", None),
)
SPREAD = ("f1", "difference")
"""Scores whose standard deviation over seeds is reported."""
TUNED = ("tuning_kernel_weight",)
EFFICIENT, PLAIN = "efficient-top-large", "top-rerank-large"


@dataclass(frozen=True)
class TitovTable1Settings(DerivedSettings):
    """Settings of Table I.

    Parameters
    ----------
    small_threshold : int
        Minimum count for a word to be in the small vocabulary.
    all_sentences : int
        Maximum number of training sentences for rerankers that use all network weights.
    n_seeds : int
        Number of random seeds, starting with the value of --seed. With several seeds, scores are means over
        seeds.
    """

    small_threshold: Count = 50
    all_sentences: Count = 1_000
    n_seeds: Count = 1

    @property
    def fewer_lists(self) -> dict[str, int]:
        """Maximum number of candidate lists for each choice of network weights."""
        return {"all": self.all_sentences}


@experiment("titov-table1", TitovTable1Settings)
def table1(settings: TitovTable1Settings, inputs: Inputs) -> Findings:
    """Compare kernels derived from left-corner parsers with two vocabularies on the dev set."""
    chosen = choose_rows([each.name for each in TABLE1], settings.systems)
    systems = [each for each in TABLE1 if each.name in chosen]
    runs: list[list[dict[str, Any]]] = []
    notes: list[str] = []
    with task("rows of the table", total=len(systems) * settings.n_seeds, unit="systems") as counted:
        for seed in range(settings.random_state, settings.random_state + settings.n_seeds):
            bench = DerivedBench(replace(settings, random_state=seed), inputs, is_dev_scored=True)
            rows, told = _run_systems(bench, systems, counted)
            runs.append([{**row, "seed": seed} for row in rows])
            notes += [f"Seed {seed}: {note}" for note in told] if settings.n_seeds > 1 else told
    rows = runs[0] if settings.n_seeds == 1 else [_average(group) for group in zip(*runs, strict=True)]
    columns = _kernel_columns(has_seeds=settings.n_seeds > 1)
    notes += _kernel_notes(bench, systems)
    tables = [Table(f"Scores on {bench.treebank.name}", columns, rows, notes)]
    if settings.n_seeds > 1:
        tables.append(_seed_table([row for group in zip(*runs, strict=True) for row in group]))
    return Findings(
        f"{PAPER}, Table I: derived kernels on the dev set",
        tuple(tables),
        partial(_draw_gains, rows=rows),
        "F1 gain over the parser alone, here and in the paper (other data), and non-zero features per "
        "candidate.",
        {
            **describe_bench(bench, small_threshold=settings.small_threshold),
            "random_state": ", ".join(str(run[0]["seed"]) for run in runs),
        },
    )


def _run_systems(
    bench: DerivedBench, systems: Sequence[DerivedKernelRow], counted: Task
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of all systems with one seed, and notes on the vocabularies."""
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for vocabulary in dict.fromkeys(each.vocabulary for each in systems):
        # The candidate lists of a vocabulary are large; release them before the next one.
        found = _Vocabulary(bench, getattr(bench.settings, f"{vocabulary}_threshold"))
        for system in systems:
            if system.vocabulary == vocabulary:
                rows.append(found.row(system))
                counted.advance()
        notes += found.notes()
    return rows, notes


def _average(group: Sequence[Row]) -> dict[str, Any]:
    """Return the mean row of several seeds, with the standard deviations of F1 and of the gain."""
    row = {name: value for name, value in group[0].items() if name not in ("p_value", "seed", *TUNED)}
    for name in (*SCORES, "difference", "n_nonzero", "seconds", "network_seconds"):
        values = [each[name] for each in group if each.get(name) is not None]
        if values:
            row[name] = fmean(values)
            if name in SPREAD:
                row[f"{name}_spread"] = stdev(values)
    return row


def _seed_table(rows: Sequence[Row]) -> Table:
    columns = (
        Column("title", "model"),
        Column("seed", "seed"),
        *(column for column in _kernel_columns() if column.key in ("f1", "difference", "p_value", *TUNED)),
    )
    notes = ("gain and p: relative to the SSN of the same vocabulary and seed.",)
    return Table("Scores by seed", columns, rows, notes)


class _Vocabulary:
    """A left-corner parser with one vocabulary, and its rerankers."""

    def __init__(self, bench: DerivedBench, threshold: int) -> None:
        self._bench, self._threshold = bench, threshold
        self._parser = bench.leftcorner(threshold)
        self._candidates = Candidates(bench, self._parser)
        self._rows: dict[str, Row] = {}
        self._outcomes: dict[str, ConstituentOutcome] = {}

    def row(self, system: DerivedKernelRow) -> dict[str, Any]:
        base = self._candidates.alone()
        outcome = self._candidates.reranked(system.kernel, system.weights) if system.kernel else base
        row = {
            **system._asdict(),
            "title": f"{system.title}, Freq >= {self._threshold}",
            "threshold": self._threshold,
            "n_words": len(self._parser.vocabulary_.words),
            **score_outcome(self._bench, outcome, base if system.kernel else None),
            "paper_gain": _paper_gain(system),
        }
        self._rows[system.name], self._outcomes[system.name] = row, outcome
        report(describe_row(row))
        return row

    def notes(self) -> Iterator[str]:
        """Yield notes on this vocabulary."""
        yield (
            f"Freq >= {self._threshold}: {len(self._parser.vocabulary_.words):,} tags with words; the oracle "
            f"F1 of its candidate lists is {self._candidates.oracle():.2f}."
        )
        if EFFICIENT in self._rows and PLAIN in self._rows:
            yield self._compare(*(self._rows[each] for each in (EFFICIENT, PLAIN)))

    def _compare(self, efficient: Row, plain: Row) -> str:
        trees = [self._outcomes[each].trees for each in (EFFICIENT, PLAIN)]
        test = compare_trees(self._bench, *trees)
        return (
            f"{efficient['title']} compared with {plain['title']}: features "
            f"{plain['n_nonzero'] / efficient['n_nonzero']:.1f} times sparser, training "
            f"{plain['seconds'] / efficient['seconds']:.1f} times faster "
            f"({_own_seconds(plain) / _own_seconds(efficient):.1f} times without the network), "
            f"F1 {test['difference']:+.2f} (p = {test['p_value']:.4f})."
        )


def _own_seconds(row: Row) -> float:
    return float(row["seconds"] - row["network_seconds"])


def _paper_gain(system: DerivedKernelRow) -> float | None:
    base = next(each.paper_f1 for each in TABLE1 if each.vocabulary == system.vocabulary)
    return system.paper_f1 - base if system.kernel and system.paper_f1 and base else None


def _kernel_columns(*, has_seeds: bool = False) -> tuple[Column, ...]:
    by_seed = (
        Column("p_value", "p", show.p_value),
        Column("tuning_kernel_weight", "kernel weight", show.number),
    )
    return (
        Column("title", "model"),
        Column("recall", "LR", show.score),
        Column("precision", "LP", show.score),
        Column("f1", "F1", show.score),
        *([Column("f1_spread", "stddev of F1", show.score)] if has_seeds else []),
        Column("exact", "exact", show.score),
        Column("difference", "gain", show.difference),
        *([Column("difference_spread", "stddev of gain", show.score)] if has_seeds else by_seed),
        Column("n_nonzero", "features", show.whole),
        Column("seconds", "all", show.time, "training"),
        Column("network_seconds", "network", show.time, "training"),
        Column("paper_f1", "F1", show.number, "paper"),
        Column("paper_gain", "gain", show.difference, "paper"),
    )


def _kernel_notes(bench: DerivedBench, systems: Sequence[DerivedKernelRow]) -> list[str]:
    settings, treebank = bench.settings, bench.treebank
    n_lists = min(settings.list_sentences or len(treebank.train), len(treebank.train))
    fewer = min(settings.n_lists("top-rerank", "all") or n_lists, n_lists)
    notes = [
        f"{ABOUT_SCORES} Scored on the dev set, as in the paper. One in {ASIDE} training sentences was held "
        f"out: these {len(treebank.dev):,} sentences determine the epoch of a parser and, unless given, the "
        "weight of the reranker relative to the score of the parser. The dev set was not used for training "
        "or tuning.",
        f"gain and p: relative to the SSN of the same vocabulary, by a {ABOUT_TEST}. features: non-zero "
        f"features per candidate, the mean over {SAMPLE} lists. training: time of the reranker, including "
        f"its features, on existing lists of {n_lists:,} sentences; network: the part of it in "
        "which the network processes the candidates, which is the same for all kernels.",
        f"paper: {PAPER}, {PENN}, section 24 (other data: not comparable with the scores here), minimum "
        "counts of words 200 and 20. TOP-Rerank-Out with the large vocabulary exceeded its memory.",
    ]
    if fewer < n_lists and any(each.weights == "all" for each in systems):
        notes.append(
            f"TOP-Rerank-All is trained on the lists of the first {fewer:,} sentences only: its features, "
            "from all weights of the network, are not sparse."
        )
    return notes


def _draw_gains(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    shown = [row for row in rows if row["kernel"]]
    figure.set_size_inches(9, 1.4 + 0.42 * len(shown))
    gains, sizes = figure.subplots(1, 2, sharey=True)
    for key, colour, marker, label in (
        ("difference", "C0", "s", "here"),
        ("paper_gain", "C1", "o", f"paper, {PENN}"),
    ):
        places = [at for at, row in enumerate(shown) if row[key] is not None]
        gains.scatter([shown[at][key] for at in places], places, color=colour, marker=marker, label=label)
    gains.axvline(0, color="grey", linewidth=0.8)
    gains.set_xlabel("F1 gain over the parser alone")
    if shown:
        gains.set_yticks(range(len(shown)), [row["title"] for row in shown])
        gains.set_ylim(len(shown) - 0.5, -0.5)
        counts = [row["n_nonzero"] for row in shown]
        sizes.scatter(counts, range(len(shown)), color="C0", marker="s")
        # Whole decades, since other limits may have no labelled tick.
        sizes.set(xscale="log", xlim=(10 ** floor(log10(min(counts))), 10 ** (1 + floor(log10(max(counts))))))
        sizes.xaxis.set_minor_formatter("")
    sizes.set_xlabel("non-zero features")
    for axes in (gains, sizes):
        axes.grid(axis="x", alpha=0.3)
    gains.legend()
