"""The experiments of Moschitti (2006) on semantic roles.

Syntactic Kernels for Natural Language Learning: the Semantic Role Labeling Case. NAACL 2006, short papers.

Table 1 compares linear features with tree kernels on gold trees of PropBank, Figure 5 shows how accuracy
grows with the data to train on, Table 2 is on automatic parses. The paper's figures are for the Wall Street
Journal and for FrameNet; what is measured here are other data.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from treewright.kernels.base import Kernel
from treewright.progress import track
from treewright.report.experiment import Inputs
from treewright.report.moschitti import PAPER
from treewright.report.role_bench import MERGED, SEPARATE, SYSTEMS, RoleBench, choose_systems
from treewright.report.role_data import RoleCorpus, RoleSettings, read_propbank
from treewright.report.role_parses import (
    LEAST_EXAMPLES,
    N_ROLES,
    OwnParser,
    parse_framenet,
    parse_propbank,
    read_frames,
)
from treewright.report.role_times import LABEL, fit_exponents, time_rows, timed
from treewright.report.separate_process import Values
from treewright.report.tables import (
    Column,
    Findings,
    Row,
    Table,
    failures,
    show_count,
    show_difference,
    show_memory,
    show_p_value,
    show_score,
    show_time,
)
from treewright.srl.roles import TREE_KERNELS

REPORTED = {
    "table1": {"linear": 87.6, "st": 84.6, "sst": 87.7, "pt": 86.7},
    "table2": {"linear": 82.3, "st": 80.0, "sst": 81.2, "pt": 79.9},
}
"""Accuracies that the paper prints."""
ROLES = ("ARG0", "ARG1", "ARG2", "ARG3", "ARG4", "ARG5", "ARGA", "ARGM")
CURVES = ("linear", "st", "sst", "pt", "linear+sst")
N_SHARES = 10
SHORT = 10.0
"""Seconds up to which times are shown with two digits."""
MARKS = "os^Dv<>PX*hp"
TITLES = {MERGED: "ArgM merged", SEPARATE: "ArgM separate"}
ABOUT_ADJUNCTS = (
    "Merged: all kinds of ArgM are one role, as in the paper; separate: each is a role of its own."
)
ABOUT_TESTS = (
    "Gains and p-values (approximate randomisation over sentences, 10,000 shuffles, two-sided) are against "
    "the linear system with the same features; for kernels of trees alone, fragments and mined "
    "conjunctions, with the standard features."
)
ABOUT_SYSTEMS = (
    "Linear: standard features of the CoNLL-2005 task; extended: with neighbours, prepositions, frames and "
    "conjunctions. Sums are of normalised kernels. Mined: conjunctions of the standard features. Size: "
    "support vectors of all machines together, features of linear models, or conjunctions."
)
ABOUT_TIME = "Each system is trained in a process of its own; time is elapsed time, kernel values included."
ABOUT_ARGUMENTS = (
    "Arguments of verbs, gold boundaries and predicates. Those whose words no constituent has for itself are "
    "not learnt from; accuracy is that of the others, unless it is said to be of all."
)


def table1(inputs: Inputs) -> Findings:
    """Compare linear features, tree kernels and sums of them on gold trees."""
    settings = _settings(inputs)
    names = choose_systems(settings.systems)
    bench = RoleBench(read_propbank(inputs.data, settings.n_sentences).corpus(), inputs)
    found = _try_systems(bench, names, settings.kinds)
    rows = _result_rows(bench, names, found)
    for row in rows:
        row["paper"] = REPORTED["table1"].get(row["name"])
    notes = (
        f"paper: {PAPER}, Table 1: PropBank and gold trees of the Wall Street Journal (122,774 arguments to "
        "train on, 7,359 to test on), ArgM merged; it prints accuracies. Other data: what can be compared is "
        "the order of systems. It says of sums that they gain 2 to 3 points.",
        ABOUT_ADJUNCTS,
        ABOUT_ARGUMENTS,
        ABOUT_TESTS,
        ABOUT_SYSTEMS,
        ABOUT_TIME,
        *failures(rows),
    )
    columns = _result_columns(settings.kinds, paper="paper, other data")
    return Findings(
        f"{PAPER}, Table 1: semantic roles on gold trees",
        (
            Table(f"Accuracy on {bench.corpus.name}, gold trees", columns, rows, notes),
            *_role_tables(bench, names, found),
            _counts_table([bench.corpus]),
        ),
        partial(_draw_accuracies, rows=rows, kinds=settings.kinds),
        "Accuracy on the arguments to test on, here and, on other data, in the paper.",
        _facts(settings),
    )


def table2(inputs: Inputs) -> Findings:
    """Compare the same systems on automatic parses, of PropBank and perhaps of FrameNet."""
    settings = _settings(inputs)
    names = choose_systems(settings.systems)
    frames = read_frames(settings.framenet) if settings.framenet else []
    bank = read_propbank(inputs.data, settings.n_sentences)
    parser = OwnParser(inputs, bank.trees["train"])
    bench = RoleBench(parse_propbank(bank, parser), inputs)
    found = _try_systems(bench, names, settings.kinds)
    rows = _result_rows(bench, names, found)
    notes = (
        "Of all: arguments whose words are no constituent of the parse count as wrong. They are not learnt "
        "from.",
        f"Parser: {parser.describe()}. A parser that was trained on the sentences to train roles on makes "
        "fewer errors in them than in those to test on.",
        ABOUT_ADJUNCTS,
        ABOUT_ARGUMENTS,
        ABOUT_TESTS,
        ABOUT_SYSTEMS,
        ABOUT_TIME,
        *failures(rows),
    )
    columns = _result_columns(settings.kinds, of_all=True)
    tables = [Table(f"Accuracy on {bench.corpus.name}, automatic parses", columns, rows, notes)]
    corpora = [bench.corpus]
    if frames:
        corpora.append(
            parse_framenet(
                frames, parser, random_state=settings.random_state, n_sentences=settings.n_sentences
            )
        )
        tables.append(_frame_table(RoleBench(corpora[-1], inputs), names))
    return Findings(
        f"{PAPER}, Table 2: semantic roles in automatic parses",
        (*tables, *_role_tables(bench, names, found), _counts_table(corpora)),
        partial(_draw_accuracies, rows=rows, kinds=settings.kinds),
        "Accuracy on the arguments to test on that are constituents of the automatic parse.",
        _facts(settings),
    )


def _frame_table(bench: RoleBench, names: Sequence[str]) -> Table:
    """Compare systems on FrameNet, whose roles know no adjuncts."""
    rows = _result_rows(bench, names, _try_systems(bench, names, (SEPARATE,)))
    for row in rows:
        row["paper"] = REPORTED["table2"].get(row["name"])
    notes = (
        f"paper: {PAPER}, Table 2: 40 frames of FrameNet as of Senseval 3, the 18 most frequent roles, "
        "37,948 examples, 30% of the sentences to test on, parses of Collins' parser: other data.",
        f"Here: all frames, the {N_ROLES} most frequent roles of at least {LEAST_EXAMPLES} examples; 70% of "
        "the sentences to train, 15% dev (not used), 15% test, by the seed. The predicate is the first word "
        "of the target.",
        ABOUT_TESTS,
        *failures(rows),
    )
    columns = _result_columns((SEPARATE,), paper="paper, other data", of_all=True, group="FrameNet")
    return Table("Accuracy on FrameNet, automatic parses", columns, rows, notes)


def figure5(inputs: Inputs) -> Findings:
    """Show how accuracy grows with the data to train on, and how training time does."""
    settings = _settings(inputs)
    names = choose_systems(settings.systems, CURVES)
    bench = RoleBench(read_propbank(inputs.data, settings.n_sentences).corpus(), inputs)
    shares = track(range(1, N_SHARES + 1), "points of the figure", unit="shares")
    rows = [_share_row(bench, names, number) for number in shares]
    columns = (
        Column("share", "share", _show_percent),
        Column("n_sentences", "sentences", show_count),
        Column("n_arguments", "arguments", show_count),
        *(Column(name, SYSTEMS[name].title, show_score, "accuracy") for name in names),
        *(Column(f"{name}_seconds", SYSTEMS[name].title, show_time, "training") for name in names),
    )
    notes = (
        "ArgM merged. The sentences to train on are the first in an order that the seed decides; those to "
        "test on are always the same.",
        f"{PAPER} draws curves for the linear kernel, ST, SST and PT, and prints no numbers but those of "
        "Table 1, for all data: 87.6, 84.6, 87.7 and 86.7 (other data).",
        ABOUT_TIME,
        *(f"{row['share']}%, {told}." for row in rows for told in row["failures"]),
    )
    return Findings(
        f"{PAPER}, Figure 5: accuracy by the share of the data to train on",
        (
            Table(f"Accuracy on {bench.corpus.name}, gold trees", columns, rows, notes),
            _time_table(timed(bench, settings)),
            _counts_table([bench.corpus]),
        ),
        partial(_draw_curves, rows=rows, names=names),
        "Accuracy on the arguments to test on, by the percentage of the sentences to train on.",
        _facts(settings),
    )


def _settings(inputs: Inputs) -> RoleSettings:
    assert isinstance(inputs.settings, RoleSettings)
    return inputs.settings


def _try_systems(
    bench: RoleBench, names: Sequence[str], kinds: Sequence[str]
) -> dict[tuple[str, str], Values]:
    """Return what systems find, by their names and the treatment of adjuncts."""
    pairs = [(name, kind) for kind in kinds for name in names]
    return {each: bench.outcome(*each) for each in track(pairs, "rows of the table", unit="systems")}


def _result_rows(
    bench: RoleBench, names: Sequence[str], found: dict[tuple[str, str], Values]
) -> list[dict[str, Any]]:
    kinds = list(dict.fromkeys(kind for _, kind in found))
    rows = []
    for name in names:
        row: dict[str, Any] = {"name": name, "title": SYSTEMS[name].title}
        for kind in kinds:
            base = found[SYSTEMS[name].base, kind]
            values = _result(bench, kind, found[name, kind], base, is_base=SYSTEMS[name].base == name)
            row |= {f"{kind}_{key}": value for key, value in values.items()}
        told = [f"{kind} {found[name, kind]['failure']}" for kind in kinds if "failure" in found[name, kind]]
        row["failure"] = "; ".join(told)
        rows.append(row)
    return rows


def _result(bench: RoleBench, kind: str, outcome: Values, base: Values, *, is_base: bool) -> Values:
    """Return the cells of a system for one treatment of adjuncts; none for one that failed."""
    if "failure" in outcome:
        return {}
    predicted = outcome["predicted"]
    values: Values = {
        "accuracy": bench.accuracy(predicted, kind),
        "of_all": bench.accuracy_of_all(predicted, kind),
        **{name: outcome[name] for name in ("seconds", "test_seconds", "memory", "size")},
    }
    if not is_base and "failure" not in base:
        test = bench.compare(predicted, base["predicted"], kind)
        values |= {"gain": test.difference, "p": test.p_value, "interval": test.interval}
    return values


def _result_columns(
    kinds: Sequence[str], *, paper: str = "", of_all: bool = False, group: str = ""
) -> list[Column]:
    columns = [Column("title", "system")]
    for kind in kinds:
        heading = group or kind
        columns.append(Column(f"{kind}_accuracy", "accuracy", show_score, heading))
        columns += [Column(f"{kind}_of_all", "of all", show_score, heading)] if of_all else []
        columns += [
            Column(f"{kind}_gain", "gain", show_difference, heading),
            Column(f"{kind}_p", "p", show_p_value, heading),
            Column(f"{kind}_seconds", "training", show_time, heading),
            Column(f"{kind}_memory", "memory", show_memory, heading),
            Column(f"{kind}_size", "size", show_count, heading),
        ]
    return [*columns, *([Column("paper", paper, _show_tenth)] if paper else [])]


def _role_tables(bench: RoleBench, names: Sequence[str], found: dict[tuple[str, str], Values]) -> list[Table]:
    """Return F1 by role, for each treatment of adjuncts; a row a role, as in the paper."""
    tables = []
    for kind in dict.fromkeys(kind for _, kind in found):
        scores = {
            name: bench.scores(found[name, kind]["predicted"], kind)
            for name in names
            if "failure" not in found[name, kind]
        }
        labels = bench.labels(kind)
        roles = sorted({*labels, *(label for each in scores.values() for label in each)})
        # The paper's roles stand there in any case.
        roles = list(dict.fromkeys([*(ROLES if kind == MERGED else ROLES[:-1]), *roles]))
        rows = [
            {"role": role, "n": labels.count(role)}
            | {name: each[role].f1 for name, each in scores.items() if role in each}
            for role in roles
        ]
        columns = [
            Column("role", "role"),
            Column("n", "in test", show_count),
            *(Column(name, SYSTEMS[name].title, show_score) for name in scores),
        ]
        tables.append(Table(f"F1 of roles, {TITLES[kind]}", columns, rows))
    return tables


def _counts_table(corpora: Sequence[RoleCorpus]) -> Table:
    columns = (
        Column("title", "part"),
        Column("n_sentences", "sentences", show_count),
        Column("n_predicates", "predicates", show_count),
        Column("n_arguments", "arguments", show_count),
        Column("n_unmatched", "without a constituent", show_count),
        Column("matched", "with one (%)", show_score),
    )
    return Table("Arguments", columns, [row for corpus in corpora for row in corpus.rows()])


def _share_row(bench: RoleBench, names: Sequence[str], number: int) -> dict[str, Any]:
    n_all = len(bench.corpus.train.trees)
    n_sentences = max(1, round(n_all * number / N_SHARES))
    row: dict[str, Any] = {"share": 100 * number // N_SHARES, "n_sentences": n_sentences, "failures": []}
    for name in names:
        outcome = bench.outcome(name, MERGED, n_sentences)
        if "failure" in outcome:
            row["failures"].append(f"{SYSTEMS[name].title}: {outcome['failure']}")
            continue
        row[name] = bench.accuracy(outcome["predicted"], MERGED)
        row |= {f"{name}_seconds": outcome["seconds"], "n_arguments": outcome["n_arguments"]}
    return row


def _time_table(found: Values) -> Table:
    rows = time_rows(found)
    columns = (
        Column("title", "times"),
        Column("n_arguments", "arguments", show_count),
        Column("fast", "fast SST", _show_seconds, "training"),
        Column("naive", "naive SST", _show_seconds, "training"),
        Column("ratio", "naive / fast", _show_tenth),
        Column("fast_support", "fast SST", show_count, "support vectors"),
        Column("naive_support", "naive SST", show_count, "support vectors"),
    )
    notes = [
        f"One machine, {LABEL} against all other roles, with kernel values by either algorithm and the same "
        "solver, in one run; CPU time of one thread, the preparation of the trees included. The naive "
        "kernel visits all pairs of nodes of two trees, in compiled loops.",
        f"{PAPER}, with all of its training data (122,774 arguments) on a Pentium 4 of 2 GHz: 6 hours with "
        "the fast kernel, more than a week with the naive one; a ratio of 28 or more.",
    ]
    if "failure" in found:
        notes.append(f"The process that measures times {found['failure']}.")
    if rows and rows[-1]["title"] == "extrapolated":
        shown = (
            f"{kind} {slope:.2f} (standard error {error:.2f})"
            for kind, (slope, error) in fit_exponents(found["rows"]).items()
        )
        notes.append(
            "Extrapolated: not measured, but computed for all arguments from a line through the logarithms "
            f"of the times of both, whose exponents are {', '.join(shown)}."
        )
    return Table("Training time with the fast and with the naive kernel", columns, rows, notes)


def _facts(settings: RoleSettings) -> dict[str, str]:
    sentences = "all" if settings.n_sentences is None else f"the first {settings.n_sentences:,}"
    made = SYSTEMS["sst"].make(MERGED, random_state=settings.random_state)
    return {
        "training sentences": sentences,
        **{f"decay, {name.upper()}": _show_decay(kernel) for name, kernel in TREE_KERNELS.items()},
        "tolerance of machines": f"{made.tol:g}",
        "random_state": str(settings.random_state),
        "n_jobs": str(settings.n_jobs),
    }


def _show_decay(kernel: Kernel) -> str:
    values = kernel.get_params()
    return " and ".join(f"{values[name]:g}" for name in ("decay", "depth_decay") if name in values)


def _show_tenth(value: float) -> str:
    return f"{value:,.1f}"


def _show_seconds(seconds: float) -> str:
    """Show a time that may be short."""
    return f"{seconds:.2g} s" if seconds < SHORT else show_time(seconds)


def _show_percent(value: int) -> str:
    return f"{value}%"


def _draw_accuracies(figure: Any, *, rows: Sequence[Row], kinds: Sequence[str]) -> None:  # noqa: ANN401
    figure.set_size_inches(7.5, 1.1 + 0.36 * len(rows))
    axes = figure.subplots()
    series = {f"{kind}_accuracy": TITLES[kind] for kind in kinds} | {"paper": "paper, other data"}
    for number, (key, label) in enumerate(series.items()):
        places = [at for at, row in enumerate(rows) if row.get(key) is not None]
        if places:
            values = [rows[at][key] for at in places]
            axes.scatter(values, places, color=f"C{number}", marker=MARKS[number], label=label)
    axes.set_yticks(range(len(rows)), [row["title"] for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("accuracy")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()


def _draw_curves(figure: Any, *, rows: Sequence[Row], names: Sequence[str]) -> None:  # noqa: ANN401
    figure.set_size_inches(7.5, 4.5)
    axes = figure.subplots()
    for number, name in enumerate(names):
        known = [row for row in rows if name in row]
        places, values = [row["share"] for row in known], [row[name] for row in known]
        axes.plot(places, values, color=f"C{number % 10}", marker=MARKS[number], label=SYSTEMS[name].title)
    axes.set(xlabel="% of the sentences to train on", ylabel="accuracy")
    axes.grid(alpha=0.3)
    axes.legend()
