"""The experiments of Qian & Liu (2015), Feature Selection in Kernel Space, on treebanks at hand.

Their Table 2 compares kernels with features selected in the same spaces, Table 3 thresholds of the selection,
Table 4 languages. The paper's figures are for other treebanks, many times larger than most that are free:
what can be compared is how much reranking gains over the parser, and which systems gain more.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from treewright.errors import InputError
from treewright.progress import report, track
from treewright.report.corpora import find_corpora, find_corpus
from treewright.report.experiment import Bench, Inputs, Outcome, Ranking, Settings, describe_settings
from treewright.report.plots import Panel, Series, draw_gains, draw_panels
from treewright.report.tables import (
    Column,
    Findings,
    Row,
    Table,
    failures,
    show_count,
    show_difference,
    show_memory,
    show_number,
    show_p_value,
    show_score,
    show_time,
)
from treewright.rerank.training import DEGREES

PAPER = "Qian & Liu (2015)"
PARSER = "third-order parser"
PAPER_BASE = 93.07
"""UAS of the paper's third-order parser on the Penn Treebank."""
ABOUT_P = (
    "p: two-sided randomisation test against the third-order parser; * where it is below 0.05. "
    "Not corrected for the number of systems."
)
ABOUT_TIME = (
    "Times are without the candidate lists, which all systems share; the first training on a machine also "
    "compiles. A dash is for a training that was interrupted and went on."
)
ABOUT_PENN = f"paper: {PAPER}, on the Penn Treebank, punctuation left out, on one Core i7 of 3.4 GHz."


class System(NamedTuple):
    """A row of Table 2."""

    name: str
    title: str
    space: str
    learner: str
    degree: int | None = None


class Reported(NamedTuple):
    """What the paper says of a system."""

    uas: float
    time: str


REPORTED = {
    "parser": Reported(PAPER_BASE, "20 h"),
    "kernel-2": Reported(93.41, "6 h"),
    "kernel-4": Reported(93.45, "6 h"),
    "kernel-8": Reported(93.27, "6 h"),
    "kernel-tree": Reported(93.65, "10 days"),
    "template": Reported(93.39, "4 min"),
    "mined-2": Reported(93.39, "9 min"),
    "mined-4": Reported(93.44, "0.5 h"),
    "mined-8": Reported(93.30, "6 h"),
    "mined-tree": Reported(93.72, "36 h"),
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


class ReportedThreshold(NamedTuple):
    """What the paper says of a threshold."""

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
REPORTED_LANGUAGES = (
    ("Chinese", 76.77, 79.17),
    ("Japanese", 92.68, 92.57),
    ("German", 87.40, 87.48),
    ("Spanish", 87.82, 87.64),
    ("Czech", 80.51, 80.38),
    ("Catalan", 86.98, 87.86),
)


def table2(inputs: Inputs) -> Findings:
    """Compare kernels, templates and selected features as rerankers of one treebank."""
    systems = choose_systems(inputs.settings)
    bench = Bench(find_corpus(inputs.data), inputs)
    base = bench.base()
    rows = [_system_row("parser", PARSER, bench, base, None)]
    for system in track(systems, "rows of the table", unit="systems"):
        report(f"{bench.corpus.name}: {system.title}")
        threshold = float(inputs.settings.threshold)
        outcome = bench.reranked(Ranking(system.space, system.learner, system.degree, threshold))
        rows.append(_system_row(system.name, system.title, bench, outcome, base))
        report(_summary(rows[-1]))
    columns = (
        Column("title", "system"),
        Column("uas", "UAS", show_score, "here"),
        Column("difference", "gain", show_difference, "here"),
        Column("p_value", "p", show_p_value, "here"),
        Column("n_features", "features", show_count, "here"),
        Column("seconds", "time", show_time, "here"),
        Column("memory", "memory", show_memory, "here"),
        Column("paper_uas", "UAS", show_score, "paper"),
        Column("paper_difference", "gain", show_difference, "paper"),
        Column("paper_time", "time", group="paper"),
    )
    notes = [ABOUT_P, "Features of kernels are support trees.", ABOUT_TIME, ABOUT_PENN, *failures(rows)]
    return Findings(
        f"{PAPER}, Table 2: kernels and features selected in their spaces",
        (Table(f"Reranking on {bench.corpus.name}", columns, rows, notes), _elsewhere()),
        partial(_draw_systems, rows=rows[1:]),
        "Gain over the parser in UAS, here with its 95% bootstrap interval and in the paper.",
        {**_treebank(bench), **_facts(inputs.settings, unused=("thresholds",))},
    )


def choose_systems(settings: Settings) -> list[System]:
    """Return the rerankers of Table 2, those that are wanted."""
    kernels = [
        System(f"kernel-{degree}", _kernel_name(degree), "polynomial", "kernel", degree)
        for degree in settings.degrees
    ]
    known = [
        *kernels,
        System("kernel-tree", "dependency tree kernel (DTK)", "subtree", "kernel"),
        System("template", "linear, template features", "template", "mined"),
        *(
            System(
                f"mined-{each.degree}",
                f"linear, features in {_short(each)}",
                each.space,
                "mined",
                each.degree,
            )
            for each in kernels
        ),
        System("mined-tree", "linear, features in DTK", "subtree", "mined"),
    ]
    names = [system.name for system in known]
    for name in settings.systems or ():
        if name not in names:
            raise InputError(f"system is {name!r}; expected some of {', '.join(names)}")
    return [system for system in known if settings.systems is None or system.name in settings.systems]


def _kernel_name(degree: int) -> str:
    return KERNEL_NAMES.get(degree, f"polynomial kernel of degree {degree} ({degree}K)")


def _short(system: System) -> str:
    """Return the abbreviation at the end of a kernel's title."""
    return system.title.rpartition("(")[2].rstrip(")")


def _system_row(
    name: str, title: str, bench: Bench, outcome: Outcome, base: Outcome | None
) -> dict[str, Any]:
    reported = REPORTED.get(name)
    row = {"title": title, "system": name, "uas": bench.score(outcome), "las": bench.score(outcome, "las")}
    row |= {**outcome.facts, "failure": outcome.failure}
    if base and outcome.trees:
        row |= _comparison(bench, outcome, base)
    if reported:
        gain = round(reported.uas - PAPER_BASE, 2) if base else None
        row |= {"paper_uas": reported.uas, "paper_time": reported.time, "paper_difference": gain}
    return row


def _comparison(bench: Bench, outcome: Outcome, base: Outcome, metric: str = "uas") -> dict[str, Any]:
    test = bench.compare(outcome, base, metric)
    return {"difference": test.difference, "interval": test.interval, "p_value": test.p_value}


def _summary(row: Row) -> str:
    if row["failure"]:
        return f"{row['title']}: {row['failure']}"
    return f"{row['title']}: UAS {row['uas']:.2f} ({row['difference']:+.2f}, p = {row['p_value']:.4f})"


def _elsewhere() -> Table:
    columns = (
        Column("title", "system"),
        Column("paper_uas", "UAS", show_score),
        Column("paper_time", "time"),
    )
    rows = [
        dict(zip(("title", "paper_uas", "paper_time"), reported, strict=True))
        for reported in REPORTED_ELSEWHERE
    ]
    return Table("Reported elsewhere, on the Penn Treebank, as the paper quotes it", columns, rows)


def _draw_systems(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    here = Series("here", _values(rows, "difference"), _values(rows, "interval"))
    paper = Series("paper", _values(rows, "paper_difference"))
    draw_gains(figure, _values(rows, "title"), (here, paper), label="gain over the parser (points of UAS)")


def _values(rows: Sequence[Row], key: str) -> list[Any]:
    return [row.get(key) for row in rows]


def table3(inputs: Inputs) -> Findings:
    """Select features in the space of the dependency tree kernel at several thresholds."""
    bench = Bench(find_corpus(inputs.data), inputs)
    base = bench.base()
    rows = []
    for threshold in track(inputs.settings.thresholds, "rows of the table", unit="thresholds"):
        report(f"{bench.corpus.name}: threshold {threshold:g}")
        outcome = bench.reranked(Ranking("subtree", "mined", None, float(threshold)))
        rows.append(_threshold_row(threshold, bench, outcome, base))
        report(_summary(rows[-1]))
    columns = (
        Column("threshold", "C", show_number),
        Column("n_features", "features", show_count, "here"),
        Column("n_templates", "templates", show_count, "here"),
        Column("seconds", "time", show_time, "here"),
        Column("memory", "memory", show_memory, "here"),
        Column("uas", "UAS", show_score, "here"),
        Column("p_value", "p", show_p_value, "here"),
        Column("paper_features", "features", group="paper"),
        Column("paper_templates", "templates", group="paper"),
        Column("paper_time", "time", group="paper"),
        Column("paper_memory", "memory", group="paper"),
        Column("paper_uas", "UAS", show_score, "paper"),
    )
    notes = [
        f"UAS of the parser without reranking: {bench.score(base):.2f} here, {PAPER_BASE} in the paper.",
        ABOUT_P.replace("systems", "thresholds"),
        ABOUT_TIME,
        "Memory is the most that the process held, the parser included.",
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
        "Features selected, and gain over the parser in UAS, at each threshold, here and in the paper.",
        {**_treebank(bench), **_facts(inputs.settings, unused=("threshold", "degrees", "systems"))},
    )


def _threshold_row(threshold: float, bench: Bench, outcome: Outcome, base: Outcome) -> dict[str, Any]:
    row = {"threshold": threshold, "title": f"C = {threshold:g}", "uas": bench.score(outcome)}
    row |= {**outcome.facts, "failure": outcome.failure}
    if outcome.trees:
        row |= _comparison(bench, outcome, base)
    if reported := REPORTED_THRESHOLDS.get(float(threshold)):
        row |= {f"paper_{name}": value for name, value in reported._asdict().items()}
    return row


def _draw_thresholds(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    # A logarithmic scale has no place for a threshold that selects nothing.
    counts = [n_features or None for n_features in _values(rows, "n_features")]
    gains = [uas and uas - PAPER_BASE for uas in _values(rows, "paper_uas")]
    features = Panel(
        "features",
        (Series("here", counts), Series("paper", _values(rows, "paper_n_features"))),
        is_logarithmic=True,
    )
    gain = Panel("gain in UAS", (Series("here", _values(rows, "difference")), Series("paper", gains)))
    draw_panels(figure, _values(rows, "threshold"), (features, gain), label="threshold C")


def table4(inputs: Inputs) -> Findings:
    """Rerank every treebank of a folder with features of the dependency tree kernel space."""
    rows = []
    for files in track(find_corpora(inputs.data), "rows of the table", unit="treebanks"):
        bench = Bench(files, inputs)
        base = bench.base()
        report(f"{files.name}: reranking")
        outcome = bench.reranked(Ranking("subtree", "mined", None, float(inputs.settings.threshold)))
        rows.append(_treebank_row(bench, outcome, base))
        report(_summary(rows[-1]))
    columns = (
        Column("title", "treebank"),
        Column("n_sentences", "sentences", show_count),
        Column("base_uas", "parser", show_score, "UAS"),
        Column("uas", "reranked", show_score, "UAS"),
        Column("difference", "gain", show_difference, "UAS"),
        Column("p_value", "p", show_p_value, "UAS"),
        Column("base_las", "parser", show_score, "LAS"),
        Column("las", "reranked", show_score, "LAS"),
        Column("las_difference", "gain", show_difference, "LAS"),
        Column("las_p_value", "p", show_p_value, "LAS"),
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
        _facts(inputs.settings, unused=("thresholds", "degrees", "systems")),
    )


def _treebank_row(bench: Bench, outcome: Outcome, base: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {"title": bench.corpus.name, "n_sentences": len(bench.corpus.train)}
    row |= {"parts": bench.corpus.describe(), **outcome.facts, "failure": outcome.failure}
    for metric in ("uas", "las"):
        row |= {metric: bench.score(outcome, metric), f"base_{metric}": bench.score(base, metric)}
    if outcome.trees:
        row |= _comparison(bench, outcome, base)
        labelled = _comparison(bench, outcome, base, "las")
        row |= {f"las_{name}": value for name, value in labelled.items()}
    return row


def _paper_languages() -> Table:
    columns = (
        Column("title", "language"),
        Column("paper_las", "LAS", show_score),
        Column("paper_best", "best official LAS", show_score),
    )
    rows = [
        dict(zip(("title", "paper_las", "paper_best"), reported, strict=True))
        for reported in REPORTED_LANGUAGES
    ]
    caption = f"{PAPER} on the CoNLL 2009 treebanks: other data, not to be compared with the scores above"
    return Table(caption, columns, rows)


def _draw_treebanks(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    series = (
        Series("UAS", _values(rows, "difference"), _values(rows, "interval")),
        Series("LAS", _values(rows, "las_difference"), _values(rows, "las_interval")),
    )
    draw_gains(figure, _values(rows, "title"), series, label="gain over the parser (points)")


def _facts(settings: Settings, *, unused: Sequence[str]) -> dict[str, str]:
    """Say what a result depends on; some settings are for other experiments."""
    facts = {name: text for name, text in describe_settings(settings).items() if name not in unused}
    return {**facts, "order of subtree features": f"up to {DEGREES['subtree']}"}


def _treebank(bench: Bench) -> dict[str, str]:
    return {"treebank": f"{bench.corpus.name}: {bench.corpus.describe()}"}
