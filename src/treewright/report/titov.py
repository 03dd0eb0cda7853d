"""The experiments of Titov & Henderson (2005), Deriving Kernels from MLP Probability Estimators.

Their Table I compares kernels derived from a left-corner parser on the validation set, with a small and a
large vocabulary; Table II sets the best of them beside other parsers on the test set. The paper's figures are
for another treebank than those that are free.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from math import floor, log10
from typing import Any, NamedTuple, TypeVar

from treewright.data.consttree import ConstTree
from treewright.errors import InputError
from treewright.metrics.parseval import parseval
from treewright.metrics.significance import significance
from treewright.progress import report, task, track
from treewright.report.derived_bench import (
    ASIDE,
    SAMPLE,
    Candidates,
    DerivedBench,
    DerivedSettings,
    Outcome,
)
from treewright.report.experiment import Inputs
from treewright.report.tables import (
    Column,
    Findings,
    Row,
    Table,
    show_count,
    show_difference,
    show_number,
    show_p_value,
    show_score,
    show_time,
)
from treewright.rerank.constituents import NO_KERNEL, SST, SST_DECAY

PAPER = "Titov & Henderson (2005)"
PENN = "Penn Treebank"
SCORES = ("recall", "precision", "f1", "exact")
SMALL, LARGE = "small", "large"
LEFTCORNER, CONSTITUENT, BOTH = "leftcorner", "constituent", "both"
ABOUT_SCORES = (
    "LR, LP and F1 as evalb with COLLINS.prm counts them; exact: sentences with all brackets right."
)
ABOUT_TEST = "two-sided randomisation test of F1"


class Kernelled(NamedTuple):
    """A row of Table 1, with the paper's F1; without a kernel, it is the parser alone."""

    name: str
    title: str
    vocabulary: str
    kernel: str | None
    weights: str
    paper_f1: float | None


class Reranked(NamedTuple):
    """A row of Table 2; without a kernel, it is a parser alone."""

    name: str
    title: str
    parser: str
    kernel: str | None


class Reported(NamedTuple):
    """A row of the paper's Table II."""

    title: str
    recall: float
    precision: float
    f1: float


AnySystem = TypeVar("AnySystem", Kernelled, Reranked)
TABLE1 = (
    Kernelled("ssn-small", "SSN", SMALL, None, "output", 87.8),
    Kernelled("fisher-small", "Fisher-Out", SMALL, "fisher", "output", 87.9),
    Kernelled("top-small", "TOP-Out", SMALL, "top", "output", 87.9),
    Kernelled("top-rerank-small", "TOP-Rerank-Out", SMALL, "top-rerank", "output", 88.1),
    Kernelled("efficient-top-small", "Eff-TOP-Rerank-Out", SMALL, "efficient-top", "output", 88.1),
    Kernelled("top-rerank-all-small", "TOP-Rerank-All", SMALL, "top-rerank", "all", 87.6),
    Kernelled("ssn-large", "SSN", LARGE, None, "output", 88.6),
    Kernelled("efficient-top-large", "Eff-TOP-Rerank-Out", LARGE, "efficient-top", "output", 88.9),
    Kernelled("top-rerank-large", "TOP-Rerank-Out", LARGE, "top-rerank", "output", None),
)
EFFICIENT, PLAIN = "efficient-top-large", "top-rerank-large"
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
    Reported("Collins (1999)", 88.1, 88.3, 88.2),
    Reported("Collins & Duffy (2002)", 88.6, 88.9, 88.7),
    Reported("Collins & Roark (2004)", 88.4, 89.1, 88.8),
    Reported("Henderson (2003)", 88.8, 89.5, 89.1),
    Reported("Charniak (2000)", 89.6, 89.5, 89.5),
    Reported(f"{PAPER}, Eff-TOP-Rerank-Out", 89.1, 90.1, 89.6),
    Reported("Collins (2000)", 89.6, 89.9, 89.7),
    Reported("Shen & Joshi (2004)", 89.5, 90.0, 89.8),
    Reported("Shen et al. (2003)", 89.7, 90.0, 89.8),
    Reported("Henderson (2004)", 89.8, 90.4, 90.1),
    Reported("Bod (2003)", 90.7, 90.8, 90.7),
)


def table1(inputs: Inputs) -> Findings:
    """Compare kernels derived from left-corner parsers with two vocabularies on the dev set."""
    settings = _settings(inputs)
    systems = _choose(TABLE1, settings)
    bench = DerivedBench(settings, inputs, is_dev_scored=True)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    with task("rows of the table", total=len(systems), unit="systems") as counted:
        for vocabulary in dict.fromkeys(each.vocabulary for each in systems):
            # The lists of a vocabulary are many; they are let go before the next.
            found = _Vocabulary(bench, vocabulary)
            for system in systems:
                if system.vocabulary == vocabulary:
                    rows.append(found.row(system))
                    counted.advance()
            notes += found.notes()
    return Findings(
        f"{PAPER}, Table I: derived kernels on the dev set",
        (
            Table(
                f"Scores on {bench.treebank.name}",
                _kernel_columns(),
                rows,
                [*notes, *_kernel_notes(bench, systems)],
            ),
        ),
        partial(_draw_gains, rows=rows),
        "Gain of F1 over the parser alone, here and, on other data, in the paper; features of a candidate "
        "that are not zero.",
        _facts(bench, has_small=True),
    )


def _settings(inputs: Inputs) -> DerivedSettings:
    assert isinstance(inputs.settings, DerivedSettings)
    return inputs.settings


def _choose(known: Sequence[AnySystem], settings: DerivedSettings) -> list[AnySystem]:
    """Return the rows that are wanted."""
    names = [each.name for each in known]
    for name in settings.systems or ():
        if name not in names:
            raise InputError(f"system is {name!r}; expected some of {', '.join(names)}")
    return [each for each in known if settings.systems is None or each.name in settings.systems]


class _Vocabulary:
    """A left-corner parser with one vocabulary, and its rerankers."""

    def __init__(self, bench: DerivedBench, vocabulary: str) -> None:
        self._bench = bench
        self._threshold = getattr(bench.settings, f"{vocabulary}_threshold")
        self._parser = bench.leftcorner(self._threshold)
        self._candidates = Candidates(bench, self._parser)
        self._rows: dict[str, Row] = {}
        self._outcomes: dict[str, Outcome] = {}

    def row(self, system: Kernelled) -> dict[str, Any]:
        base = self._candidates.alone()
        outcome = self._candidates.reranked(system.kernel, system.weights) if system.kernel else base
        row = {
            **system._asdict(),
            "title": f"{system.title}, Freq >= {self._threshold}",
            "threshold": self._threshold,
            "n_words": len(self._parser.vocabulary_.words),
            **_score(self._bench, outcome, base if system.kernel else None),
            "paper_gain": _paper_gain(system),
        }
        self._rows[system.name], self._outcomes[system.name] = row, outcome
        report(_summary(row))
        return row

    def notes(self) -> Iterator[str]:
        """Yield what there is to say of this vocabulary."""
        yield (
            f"Freq >= {self._threshold}: {len(self._parser.vocabulary_.words):,} tags with words; the best "
            f"trees of its lists have F1 {self._candidates.oracle():.2f}."
        )
        if EFFICIENT in self._rows and PLAIN in self._rows:
            yield self._compare(*(self._rows[each] for each in (EFFICIENT, PLAIN)))

    def _compare(self, efficient: Row, plain: Row) -> str:
        trees = [self._outcomes[each].trees for each in (EFFICIENT, PLAIN)]
        test = _test(self._bench, *trees)
        return (
            f"{efficient['title']} beside {plain['title']}: features "
            f"{plain['n_nonzero'] / efficient['n_nonzero']:.1f} times sparser, training "
            f"{plain['seconds'] / efficient['seconds']:.1f} times faster "
            f"({_own_seconds(plain) / _own_seconds(efficient):.1f} times without the network), "
            f"F1 {test['difference']:+.2f} (p = {test['p_value']:.4f})."
        )


def _own_seconds(row: Row) -> float:
    return float(row["seconds"] - row["network_seconds"])


def _paper_gain(system: Kernelled) -> float | None:
    base = next(each.paper_f1 for each in TABLE1 if each.vocabulary == system.vocabulary)
    return system.paper_f1 - base if system.kernel and system.paper_f1 and base else None


def _score(bench: DerivedBench, outcome: Outcome, base: Outcome | None) -> dict[str, Any]:
    """Return the scores of an outcome, and whether it differs from what it improves on."""
    score = parseval(bench.treebank.test, outcome.trees)
    test = _test(bench, outcome.trees, base.trees) if base else {}
    own = {name: getattr(score, name) for name in (*SCORES, "n_sentences")}
    return {**own, **test, **outcome.facts}


def _test(bench: DerivedBench, trees: list[ConstTree], others: list[ConstTree]) -> dict[str, float]:
    found = significance(
        bench.treebank.test, trees, others, metric="f1", random_state=bench.settings.random_state
    )
    return {"difference": found.difference, "p_value": found.p_value}


def _summary(row: Row) -> str:
    against = f", {row['difference']:+.2f} (p = {row['p_value']:.4f})" if row.get("p_value") else ""
    return f"{row['title']}: F1 {row['f1']:.2f}{against}"


def _kernel_columns() -> tuple[Column, ...]:
    return (
        Column("title", "model"),
        Column("recall", "LR", show_score),
        Column("precision", "LP", show_score),
        Column("f1", "F1", show_score),
        Column("exact", "exact", show_score),
        Column("difference", "gain", show_difference),
        Column("p_value", "p", show_p_value),
        Column("tuning_kernel_weight", "evidence times", show_number),
        Column("n_nonzero", "features", _show_whole),
        Column("seconds", "all", show_time, "training"),
        Column("network_seconds", "network", show_time, "training"),
        Column("paper_f1", "F1", show_number, "paper"),
        Column("paper_gain", "gain", show_difference, "paper"),
    )


def _kernel_notes(bench: DerivedBench, systems: Sequence[Kernelled]) -> list[str]:
    settings, treebank = bench.settings, bench.treebank
    n_lists = min(settings.list_sentences or len(treebank.train), len(treebank.train))
    fewer = min(settings.n_lists("top-rerank", "all") or n_lists, n_lists)
    notes = [
        f"{ABOUT_SCORES} Scored on the dev set, as in the paper. Of {ASIDE} training sentences one was set "
        f"aside: the {len(treebank.dev):,} of them choose the epoch of a parser and how much the evidence of "
        "a reranker counts beside the score of the parser. Nothing was learnt from the dev set, or tuned on "
        "it.",
        f"gain and p: beside the SSN of the same vocabulary, by a {ABOUT_TEST}. features: those of a "
        f"candidate that are not zero, the mean over {SAMPLE} lists. training: of the reranker, its features "
        f"made as it goes, from lists of {n_lists:,} sentences that were made before; network: the part in "
        "which the network goes through the candidates, which all kernels need alike.",
        f"paper: {PAPER}, {PENN}, section 24 (other data: not to be compared with the scores here), words "
        "that occur 200 and 20 times. It had no memory for TOP-Rerank-Out with the large vocabulary.",
    ]
    if fewer < n_lists and any(each.weights == "all" for each in systems):
        notes.append(
            f"TOP-Rerank-All learns from the lists of the first {fewer:,} sentences only: its features, by "
            "all weights of the network, are not sparse."
        )
    return notes


def _show_whole(value: float) -> str:
    return f"{value:,.0f}"


def _facts(bench: DerivedBench, *, has_small: bool) -> dict[str, str]:
    settings = bench.settings
    parser = bench.make_leftcorner(settings.large_threshold)
    trained = f"{parser.cell} cells, {parser.units} units, {parser.epochs} epochs at the most"
    given = settings.leftcorner_parser
    return {
        "treebank": bench.whole.describe(),
        "sentences": ", ".join(
            f"{len(trees):,} {use}"
            for trees, use in zip(
                bench.treebank[1:], ("to learn from", "to tune on", "to score"), strict=True
            )
        ),
        "left-corner parser": f"the model {given.name}, trained before" if given else trained,
        "words known": "those of the model"
        if given
        else f"with their tags seen {settings.large_threshold} times"
        + (f", or {settings.small_threshold} in the small vocabulary" if has_small else ""),
        "candidates": f"{settings.k} of each parser",
        "training lists": f"{settings.folds} folds, parsed as if new"
        if settings.folds
        else "by parsers that have learnt from the sentences, as in the paper",
        "lists": "all" if settings.list_sentences is None else f"the first {settings.list_sentences:,}",
        "reranker epochs": str(settings.reranker_epochs),
        "random_state": str(settings.random_state),
        "n_jobs": str(settings.n_jobs),
        "torch": _torch_version(),
    }


def _torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return "none"


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
    gains.set_xlabel("gain of F1 over the parser alone")
    if shown:
        gains.set_yticks(range(len(shown)), [row["title"] for row in shown])
        gains.set_ylim(len(shown) - 0.5, -0.5)
        counts = [row["n_nonzero"] for row in shown]
        sizes.scatter(counts, range(len(shown)), color="C0", marker="s")
        # Whole decades, as others may have no tick with a label.
        sizes.set(xscale="log", xlim=(10 ** floor(log10(min(counts))), 10 ** (1 + floor(log10(max(counts))))))
        sizes.xaxis.set_minor_formatter("")
    sizes.set_xlabel("features that are not zero")
    for axes in (gains, sizes):
        axes.grid(axis="x", alpha=0.3)
    gains.legend()


def table2(inputs: Inputs) -> Findings:
    """Rerank the trees of two parsers with derived and tree kernels, and score them on the test set."""
    settings = _settings(inputs)
    systems = _choose(TABLE2, settings)
    bench = DerivedBench(settings, inputs, is_dev_scored=False)
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
        partial(_draw_scores, rows=[*rows, *paper]),
        "F1 on test sentences, here and, on other data, in the paper.",
        {**_facts(bench, has_small=False), "parser by classification": _describe_constituent(bench)},
    )


class _Parsers:
    """The two parsers, whose candidates are made when they are asked for."""

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
            **_score(self._bench, outcome, self._base(system) if system.kernel else None),
            "oracle": candidates.oracle(),
        }
        report(_summary(row))
        return row

    def _base(self, system: Reranked) -> Outcome:
        """Return what a reranker is to improve on: its parser or, of both, the better one."""
        if system.parser != BOTH:
            return self.candidates(system.parser).alone()
        alone = [self.candidates(each).alone() for each in (LEFTCORNER, CONSTITUENT)]
        return max(alone, key=lambda each: parseval(self._bench.treebank.test, each.trees).f1)


def _parser_columns() -> tuple[Column, ...]:
    return (
        Column("title", "parser"),
        Column("data", "treebank"),
        Column("n_sentences", "sentences", show_count),
        Column("recall", "LR", show_score),
        Column("precision", "LP", show_score),
        Column("f1", "F1", show_score),
        Column("exact", "exact", show_score),
        Column("difference", "gain", show_difference),
        Column("p_value", "p", show_p_value),
        Column("oracle", "best of lists", show_score),
        Column("tuning_kernel_weight", "evidence times", show_number),
        Column("tuning_second", "second times", show_number),
        Column("seconds", "training", show_time),
    )


def _parser_notes(bench: DerivedBench, systems: Sequence[Reranked]) -> list[str]:
    settings, treebank = bench.settings, bench.treebank
    n_lists = {
        kernel: min(settings.n_lists(kernel) or len(treebank.train), len(treebank.train))
        for kernel in ("efficient-top", SST)
    }
    notes = [
        f"{ABOUT_SCORES} best of lists: F1 if the best candidate were always chosen.",
        f"gain and p: beside the parser alone, of both the better one, by a {ABOUT_TEST}. evidence, second: "
        "what the evidence of the reranker and the score of the parser by classification are multiplied by; "
        f"tuned on {len(treebank.dev):,} {'dev' if bench.whole.dev else 'training'} sentences.",
        f"training: of the reranker, from lists of {n_lists['efficient-top']:,} training sentences; tree "
        f"kernels (SST, decay {SST_DECAY:g}, as Collins & Duffy 2002) from {n_lists[SST]:,}, as their time "
        "grows with the square. Those of both parsers learn from the lists of the left-corner parser.",
        f"{PENN}: as {PAPER} print them, section 23. Other data: not to be compared with the scores here.",
    ]
    return notes if any(each.kernel for each in systems) else [notes[0], notes[-1]]


def _describe_constituent(bench: DerivedBench) -> str:
    given = bench.settings.constituent_parser
    return f"the model {given.name}, trained before" if given else "trained on the same sentences"


def _draw_scores(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    figure.set_size_inches(7.5, 1.1 + 0.32 * len(rows))
    axes = figure.subplots()
    for kind, colour, label in ((False, "C0", "here"), (True, "C1", f"paper, {PENN}")):
        places = [at for at, row in enumerate(rows) if row.get("is_paper", False) == kind]
        axes.scatter([rows[at]["f1"] for at in places], places, color=colour, marker="so"[kind], label=label)
    axes.set_yticks(range(len(rows)), [row["title"] for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("F1")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
