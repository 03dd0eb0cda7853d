"""Tables of systems for semantic roles, for the experiments of Moschitti (2006)."""

from collections.abc import Mapping, Sequence
from typing import Any

from treewright.kernels.base import Kernel
from treewright.progress import track
from treewright.report import show
from treewright.report.moschitti.arguments import RoleCorpus
from treewright.report.moschitti.role_systems import MERGED, SEPARATE, SYSTEMS, RoleBench, RoleSettings
from treewright.report.separate_process import Values
from treewright.report.tables import Column, Row, Table
from treewright.srl.roles import TREE_KERNELS

ROLES = ("ARG0", "ARG1", "ARG2", "ARG3", "ARG4", "ARG5", "ARGA", "ARGM")


MARKS = "os^Dv<>PX*hp"
TITLES = {MERGED: "ArgM merged", SEPARATE: "ArgM separate"}
ABOUT_ADJUNCTS = "Merged: all kinds of ArgM are one role, as in the paper; separate: each is its own role."
ABOUT_TESTS = (
    "Gains and p-values (approximate randomisation over sentences, 10,000 shuffles, two-sided) are relative "
    "to the linear system with the same features; those of tree kernels alone, fragments and mined "
    "conjunctions are relative to the linear system with the standard features."
)
ABOUT_SYSTEMS = (
    "Linear: standard features of the CoNLL-2005 task; extended: with neighbours, prepositions, frames and "
    "conjunctions. Kernels are normalised before they are added. Mined: conjunctions of the standard "
    "features. Size: number of support vectors of all SVMs, features of linear models, or conjunctions."
)
ABOUT_TIME = "Each system is trained in a separate process; time is elapsed time, including kernel values."
ABOUT_ARGUMENTS = (
    "Arguments of verbs, with gold boundaries and predicates. Arguments that are not constituents are not "
    "used for training; accuracy is measured on the others, except in columns named 'of all'."
)
NOTES = (ABOUT_ADJUNCTS, ABOUT_ARGUMENTS, ABOUT_TESTS, ABOUT_SYSTEMS, ABOUT_TIME)


def try_systems(
    bench: RoleBench, names: Sequence[str], kinds: Sequence[str]
) -> dict[tuple[str, str], Values]:
    """Return the outcomes of systems, by name and treatment of adjuncts."""
    pairs = [(name, kind) for kind in kinds for name in names]
    return {each: bench.outcome(*each) for each in track(pairs, "rows of the table", unit="systems")}


def result_rows(
    bench: RoleBench,
    names: Sequence[str],
    found: dict[tuple[str, str], Values],
    reported: Mapping[str, float] | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each system, with the paper's figures."""
    kinds = list(dict.fromkeys(kind for _, kind in found))
    rows = []
    for name in names:
        row: dict[str, Any] = {"name": name, "title": SYSTEMS[name].title}
        if reported is not None:
            row["paper"] = reported.get(name)
        for kind in kinds:
            base = found[SYSTEMS[name].base, kind]
            values = _result(bench, kind, found[name, kind], base, is_base=SYSTEMS[name].base == name)
            row |= {f"{kind}_{key}": value for key, value in values.items()}
        told = [f"{kind} {found[name, kind]['failure']}" for kind in kinds if "failure" in found[name, kind]]
        row["failure"] = "; ".join(told)
        rows.append(row)
    return rows


def _result(bench: RoleBench, kind: str, outcome: Values, base: Values, *, is_base: bool) -> Values:
    """Return the cells of a system for one treatment of adjuncts; empty if it failed."""
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


def result_columns(
    kinds: Sequence[str], *, paper: str = "", of_all: bool = False, group: str = ""
) -> list[Column]:
    """Return the columns of systems, for each treatment of adjuncts."""
    columns = [Column("title", "system")]
    for kind in kinds:
        heading = group or kind
        columns.append(Column(f"{kind}_accuracy", "accuracy", show.score, heading))
        columns += [Column(f"{kind}_of_all", "of all", show.score, heading)] if of_all else []
        columns += [
            Column(f"{kind}_gain", "gain", show.difference, heading),
            Column(f"{kind}_p", "p", show.p_value, heading),
            Column(f"{kind}_seconds", "training", show.time, heading),
            Column(f"{kind}_memory", "memory", show.memory, heading),
            Column(f"{kind}_size", "size", show.count, heading),
        ]
    return [*columns, *([Column("paper", paper, show.tenth)] if paper else [])]


def role_tables(bench: RoleBench, names: Sequence[str], found: dict[tuple[str, str], Values]) -> list[Table]:
    """Return tables of F1 by role, one for each treatment of adjuncts, as in the paper."""
    tables = []
    for kind in dict.fromkeys(kind for _, kind in found):
        scores = {
            name: bench.scores(found[name, kind]["predicted"], kind)
            for name in names
            if "failure" not in found[name, kind]
        }
        labels = bench.labels(kind)
        roles = sorted({*labels, *(label for each in scores.values() for label in each)})
        # Always include the paper's roles.
        roles = list(dict.fromkeys([*(ROLES if kind == MERGED else ROLES[:-1]), *roles]))
        rows = [
            {"role": role, "n": labels.count(role)}
            | {name: each[role].f1 for name, each in scores.items() if role in each}
            for role in roles
        ]
        columns = [
            Column("role", "role"),
            Column("n", "in test", show.count),
            *(Column(name, SYSTEMS[name].title, show.score) for name in scores),
        ]
        tables.append(Table(f"F1 of roles, {TITLES[kind]}", columns, rows))
    return tables


def counts_table(corpora: Sequence[RoleCorpus]) -> Table:
    """Return the numbers of arguments."""
    columns = (
        Column("title", "part"),
        Column("n_sentences", "sentences", show.count),
        Column("n_predicates", "predicates", show.count),
        Column("n_arguments", "arguments", show.count),
        Column("n_unmatched", "without a constituent", show.count),
        Column("matched", "with one (%)", show.score),
    )
    return Table("Arguments", columns, [row for corpus in corpora for row in corpus.rows()])


def describe_settings(settings: RoleSettings) -> dict[str, str]:
    """Return the settings that affect a result as text, by name."""
    sentences = "all" if settings.n_sentences is None else f"the first {settings.n_sentences:,}"
    made = SYSTEMS["sst"].make(MERGED, random_state=settings.random_state)
    return {
        "training sentences": sentences,
        **{f"decay, {name.upper()}": _show_decay(kernel) for name, kernel in TREE_KERNELS.items()},
        "C": "default of each kernel" if settings.C is None else f"{settings.C:g}",
        "weight of linear parts": f"{made.weight if settings.weight is None else settings.weight:g}",
        "tolerance of SVMs": f"{made.tol:g}",
        "random_state": str(settings.random_state),
        "n_jobs": str(settings.n_jobs),
    }


def _show_decay(kernel: Kernel) -> str:
    values = kernel.get_params()
    return " and ".join(f"{values[name]:g}" for name in ("decay", "depth_decay") if name in values)


def draw_accuracies(figure: Any, *, rows: Sequence[Row], kinds: Sequence[str]) -> None:  # noqa: ANN401
    """Plot the accuracies of each row."""
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
