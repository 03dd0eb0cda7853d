"""The demo: models trained on a generated treebank."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as ConsoleTable
from rich.text import Text

from treewright._naming import named
from treewright._typing import Folder, Jobs, NonNegativeInt, Range
from treewright.data.bracketed import write_brackets
from treewright.data.conllu import write_conllu
from treewright.data.deptree import DepTree
from treewright.data.files import open_target
from treewright.data.propbank import write_props
from treewright.data.synthetic import Pattern, Treebank, make_treebank
from treewright.drawing.pictures import draw_svg
from treewright.drawing.terminal import draw_constituents, draw_dependencies, encodable
from treewright.errors import InputError, MissingDependencyError
from treewright.metrics import attachment, significance
from treewright.parsing.dependency.baselines import MajorityHeadParser, NextWordParser
from treewright.parsing.dependency.parser import DependencyParser
from treewright.progress import Message, filtered
from treewright.report import show
from treewright.report.pages import GENERATOR, Provenance, is_page, write_page
from treewright.report.tables import Column, Findings, Table
from treewright.rerank.reranker import DependencyReranker

DEV_SHARE, TEST_SHARE = 0.15, 0.15
SHOWN_LENGTHS = range(8, 13)
"""Sentence lengths whose trees are interesting to draw and fit on a screen."""
N_FOLDS, N_EPOCHS = 4, 4
THRESHOLD, DEGREE = 3.0, 3
FOLDER = Path("demo")
PAGE, MODEL, TEST = "report.html", "model.tw", "test.conllu"
FILES = (PAGE, "treebank.conllu", "treebank.mrg", "treebank.props", TEST, MODEL)
"""Files of the demo; the first one, the HTML page, marks a folder as written by the demo."""
N_SHOWN = 12
"""Maximum number of planted patterns in the table."""


def run_demo(
    console: Console,
    *,
    n_sentences: Annotated[int, Range(20)] = 2000,
    random_state: NonNegativeInt = 0,
    out: Folder = FOLDER,
    n_jobs: Jobs = 1,
    checkpoint: Path | None = None,
) -> None:
    """Train a tagger, a parser and a reranker on a generated treebank, and show the results.

    Parameters
    ----------
    console : rich.console.Console
        A console with `record=True`.
    n_sentences : int
        Number of sentences of the generated treebank.
    random_state : int
        Seed of the treebank and of training.
    out : Path
        Folder for the treebank, the model and an HTML page of the results.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.
    checkpoint : Path, optional
        Folder for finished steps. If it exists, training resumes from it.
    """
    claim_folder(out)
    bank = make_treebank(n_sentences, random_state)
    show_treebank(console, bank, random_state)
    n_test, n_dev = int(n_sentences * TEST_SHARE), int(n_sentences * DEV_SHARE)
    n_train = n_sentences - n_test - n_dev
    train, dev = bank.dependencies[:n_train], bank.dependencies[n_train : n_train + n_dev]
    test = bank.dependencies[n_train + n_dev :]
    console.print(f"\nTraining on {n_train} sentences, tuning on {n_dev}:\n")
    reranker = learn(console, train, dev, random_state=random_state, n_jobs=n_jobs, checkpoint=checkpoint)
    tables = [score_table(reranker, train, test), pattern_table(reranker, bank, n_train)]
    if not tables[1].rows:
        scores = tables[0]
        tables = [replace(scores, notes=[*scores.notes, *tables[1].notes])]
    for table in tables:
        show_table(console, table)
    shown = choose_sentence(bank)
    findings = Findings(
        title="A tagger, a parser and a reranker, trained on a generated treebank",
        tables=tables,
        draw=draw_svg(bank.constituents[shown]) + draw_svg(bank.dependencies[shown]),
        drawing="A sentence of the treebank: constituents and dependencies.",
        facts={
            "training sentences": f"{n_train}",
            "dev sentences": f"{n_dev}",
            "test sentences": f"{n_test}",
        },
    )
    command = ["treewright", "demo", "--sentences", f"{n_sentences}", "--seed", f"{random_state}"]
    made = Provenance(
        shlex.join([*command, "--out", str(out)]),
        f"a generated treebank of {n_sentences} sentences",
        {"--sentences": f"{n_sentences}", "--seed": f"{random_state}"},
    )
    save_page(console, findings, made, out)
    write_conllu(bank.dependencies, out / "treebank.conllu")
    write_brackets(bank.constituents, out / "treebank.mrg")
    write_props(bank.propositions, out / "treebank.props")
    write_conllu(test, out / TEST)
    reranker.save(out / MODEL)
    console.print(f"Written to {out}: {', '.join(FILES)}.", soft_wrap=True, highlight=False)
    console.print("\nTry next:\n")
    for line in next_commands(out):
        console.print(Text(f"  {line}"), soft_wrap=True)


def claim_folder(out: Path) -> None:
    """Make the folder if necessary; raise `InputError` if it has files that the demo did not write."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{named('out')} is {out}, which is a file; expected a folder")
    found = [out / name for name in FILES if (out / name).exists()]
    if found and not is_page(out / PAGE):
        raise InputError(f"{found[0]} was not written by the demo; choose another folder with {named('out')}")
    out.mkdir(parents=True, exist_ok=True)


def next_commands(out: Path) -> list[str]:
    """Return commands to try with the files of the demo."""
    model, test, parsed = (str(out / name) for name in (MODEL, TEST, "parsed.conllu"))
    return [
        shlex.join(["treewright", *command])
        for command in (
            ["parse", model, test, "--output", parsed],
            ["evaluate", test, parsed, "--no-punctuation"],
            ["explain", model, test, "--sentences", "1"],
        )
    ]


def show_treebank(console: Console, bank: Treebank, random_state: int) -> None:
    """Describe the treebank and draw one of its sentences."""
    console.print(f"A treebank of {len(bank)} generated sentences (seed {random_state}).\n")
    console.print(Text(str(bank.describe())), no_wrap=True, overflow="ellipsis")
    shown = choose_sentence(bank)
    console.print("\nOne of its constituency trees:\n")
    console.print(Text(encodable(draw_constituents(bank.constituents[shown]), console.encoding)))
    console.print("\nThe same sentence as dependencies:\n")
    console.print(Text(encodable(draw_dependencies(bank.dependencies[shown]), console.encoding)))


def choose_sentence(bank: Treebank) -> int:
    """Return the index of a sentence to draw."""
    return next((k for k, tree in enumerate(bank.dependencies) if len(tree) in SHOWN_LENGTHS), 0)


def show_table(console: Console, table: Table) -> None:
    """Print a table with its caption and notes."""
    console.print(f"\n{table.caption}:", soft_wrap=True)
    printed = ConsoleTable(*(column.title for column in table.columns), box=SIMPLE_HEAD)
    for row in table.cells:
        printed.add_row(*map(Text, row))
    for column, declared in zip(printed.columns, table.columns, strict=True):
        column.justify = "left" if declared.show is str else "right"
    console.print(printed)
    for note in table.notes:
        console.print(note, soft_wrap=True)


def learn(
    console: Console,
    train: Sequence[DepTree],
    dev: Sequence[DepTree],
    *,
    random_state: int,
    n_jobs: int,
    checkpoint: Path | None = None,
) -> DependencyReranker:
    """Train the tagger, parser and reranker; print the most informative log lines."""
    parser = DependencyParser(
        epochs=N_EPOCHS,
        runs=1,
        tags="predicted",
        folds=N_FOLDS,
        table_bits=20,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    reranker = DependencyReranker(
        parser=parser,
        degree=DEGREE,
        threshold=THRESHOLD,
        folds=N_FOLDS,
        # The demo shows the reranker even if its gain is not significant.
        significance_level=None,
        random_state=random_state,
        n_jobs=n_jobs,
    )

    def show(message: Message) -> None:
        if not message.text.startswith("fold"):
            console.print(Text(f"  {message.text}"))

    with filtered(show):
        return reranker.fit(train, dev, checkpoint=checkpoint)


def score_table(reranker: DependencyReranker, train: Sequence[DepTree], test: Sequence[DepTree]) -> Table:
    """Score baselines, the parser and the reranker, without punctuation."""
    parsed = {
        "next word": NextWordParser().fit(train).predict(test),
        "majority head tag": MajorityHeadParser().fit(train).predict(test),
        "third-order parser": reranker.parser_.predict(test),
        "reranked": reranker.predict(test),
    }
    scores = {name: attachment(test, trees, punctuation="unicode") for name, trees in parsed.items()}
    compared = significance(test, parsed["reranked"], parsed["third-order parser"], punctuation="unicode")
    return Table(
        f"Scores on {len(test)} test sentences with predicted tags, without punctuation",
        [
            Column("system", ""),
            Column("uas", "UAS", show.score),
            Column("las", "LAS", show.score),
            Column("complete", "complete", show.score),
        ],
        [
            {"system": name, "uas": score.uas, "las": score.las, "complete": score.complete}
            for name, score in scores.items()
        ],
        [f"reranked - parser: {compared.difference:+.2f} UAS, p = {compared.p_value:.4f}"],
    )


class Find(NamedTuple):
    """A planted pattern that is among the selected features."""

    pattern: Pattern
    n_decisions: int
    """Number of occurrences of the pattern in the training set."""
    rank: int
    """Rank of the feature by weight."""
    weight: float
    text: str


def find_patterns(reranker: DependencyReranker, bank: Treebank, n_train: int) -> tuple[list[Find], int]:
    """Return the frequent patterns whose words form a selected feature, and the number of frequent patterns.

    A pattern is frequent if it occurs more than `THRESHOLD` times in the training set.
    """
    lemmas = {
        word: lemma for tree in bank.dependencies for word, lemma in zip(tree.words, tree.lemmas, strict=True)
    }
    counts: dict[Pattern, int] = {}
    for decisions in bank.decisions[:n_train]:
        for decision in decisions:
            counts[decision.pattern] = counts.get(decision.pattern, 0) + 1
    wanted = {}
    for pattern, count in counts.items():
        if count > THRESHOLD:
            wanted[frozenset(lemma for _, lemma in pattern.words)] = pattern
    found: dict[frozenset[str], Find] = {}
    for rank, feature in enumerate(reranker.weightiest(), start=1):
        words = frozenset(lemmas.get(word, word) for word in feature.words)
        if words in wanted and words not in found:
            pattern = wanted[words]
            found[words] = Find(pattern, counts[pattern], rank, feature.weight, feature.text)
    return list(found.values()), len(wanted)


def pattern_table(reranker: DependencyReranker, bank: Treebank, n_train: int) -> Table:
    """Return a table of the planted patterns that are among the features of the reranker."""
    found, n_wanted = find_patterns(reranker, bank, n_train)
    none = (
        f"None of the planted patterns is among the {reranker.n_features_} selected features: {n_train} "
        f"training sentences are too few, since a pattern must occur more than {THRESHOLD:g} times."
    )
    return Table(
        f"Of the {n_wanted} planted patterns that occur more than {THRESHOLD:g} times in the training "
        f"set, {len(found)} are among the {reranker.n_features_} selected features",
        [
            Column("planted", "planted"),
            Column("rank", "rank", show.count),
            Column("weight", "weight", show.difference),
            Column("order", "arcs", show.count),
            Column("n_decisions", "times", show.count),
            Column("feature", "feature"),
        ],
        [
            {
                "planted": find.pattern.structure,
                "rank": find.rank,
                "weight": find.weight,
                "order": find.pattern.order,
                "n_decisions": find.n_decisions,
                "feature": find.text,
            }
            for find in found[:N_SHOWN]
        ],
        [] if found else [none],
    )


def save_page(console: Console, findings: Findings, made: Provenance, out: Path) -> None:
    """Write an HTML page of the results; without the extra `report`, it has only the printed text."""
    try:
        write_page(out / PAGE, findings, made=made)
    except MissingDependencyError as error:
        page = console.export_html(clear=False).replace("<head>", f"<head>\n{GENERATOR}", 1)
        with open_target(out / PAGE) as stream:
            stream.write(page)
        console.print(f"\n{PAGE} is plain text: {error}", soft_wrap=True, highlight=False, markup=False)
    console.print()
