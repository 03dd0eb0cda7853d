"""The demonstration: a made-up treebank, and all that is learnt from it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from treewright._typing import Count, Folder, NonNegativeInt, Range
from treewright.data.bracketed import write_brackets
from treewright.data.conllu import write_conllu
from treewright.data.deptree import DepTree
from treewright.data.files import open_target
from treewright.data.propbank import write_props
from treewright.data.synthetic import Pattern, Treebank, make_treebank
from treewright.drawing.terminal import draw_constituents, draw_dependencies
from treewright.metrics import attachment, significance
from treewright.parsing.dependency.baselines import MajorityHeadParser, NextWordParser
from treewright.parsing.dependency.parser import DependencyParser
from treewright.progress import Message, filtered
from treewright.rerank.reranker import DependencyReranker

DEV_SHARE, TEST_SHARE = 0.15, 0.15
SHOWN_LENGTHS = range(8, 13)
"""Lengths of a sentence that is worth drawing and fits on a screen."""
N_FOLDS, N_EPOCHS = 4, 4
THRESHOLD, DEGREE = 3.0, 3
MODEL = "model.tw"
N_SHOWN = 12
"""Planted patterns in the table."""


def run_demo(
    console: Console,
    *,
    n_sentences: Annotated[int, Range(20)] = 2000,
    random_state: NonNegativeInt = 0,
    out: Folder | None = None,
    n_jobs: Count = 1,
    checkpoint: Path | None = None,
) -> None:
    """Train a tagger, a parser and a reranker on a made-up treebank, and show what they have found.

    Parameters
    ----------
    console : rich.console.Console
        One that records, if `out` is given.
    n_sentences : int
        Number of sentences of the made-up treebank.
    random_state : int
        Seed of the treebank and of training.
    out : Path, optional
        Folder for the treebank's files, the model, and a page with what was shown.
    n_jobs : int
        Number of threads; results do not depend on it.
    checkpoint : Path, optional
        Folder for what is learnt step by step. If it exists, learning goes on from it.
    """
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    bank = make_treebank(n_sentences, random_state)
    show_treebank(console, bank, random_state)
    n_test, n_dev = int(n_sentences * TEST_SHARE), int(n_sentences * DEV_SHARE)
    n_train = n_sentences - n_test - n_dev
    train, dev = bank.dependencies[:n_train], bank.dependencies[n_train : n_train + n_dev]
    test = bank.dependencies[n_train + n_dev :]
    console.print(f"\nLearning from {n_train} sentences, tuning on {n_dev}:\n")
    reranker = learn(console, train, dev, random_state=random_state, n_jobs=n_jobs, checkpoint=checkpoint)
    console.print(f"\nOn {n_test} other sentences, tagged by what was learnt, punctuation left out:")
    console.print(score_table(reranker, train, test))
    show_patterns(console, reranker, bank, n_train)
    if out is not None:
        save_demo(console, bank, reranker, out)


def show_treebank(console: Console, bank: Treebank, random_state: int) -> None:
    """Describe the treebank and draw one of its sentences."""
    console.print(f"A treebank of {len(bank)} made-up sentences (seed {random_state}).\n")
    console.print(Text(str(bank.describe())), no_wrap=True, overflow="ellipsis")
    shown = next((k for k, tree in enumerate(bank.dependencies) if len(tree) in SHOWN_LENGTHS), 0)
    console.print("\nOne of its constituency trees:\n")
    console.print(Text(draw_constituents(bank.constituents[shown])))
    console.print("\nThe same sentence as dependencies:\n")
    console.print(Text(draw_dependencies(bank.dependencies[shown])))


def learn(
    console: Console,
    train: Sequence[DepTree],
    dev: Sequence[DepTree],
    *,
    random_state: int,
    n_jobs: int,
    checkpoint: Path | None = None,
) -> DependencyReranker:
    """Train tagger, parser, candidates, miner and reranker; print the lines that say most."""
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
        # What a reranker does is to be shown, also with few sentences.
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
    """Score baselines, the parser and the reranker; punctuation is left out."""
    table = Table("", "UAS", "LAS", "complete", box=SIMPLE_HEAD)
    parsed = {
        "next word": NextWordParser().fit(train).predict(test),
        "majority head tag": MajorityHeadParser().fit(train).predict(test),
        "third-order parser": reranker.parser_.predict(test),
        "reranked": reranker.predict(test),
    }
    for name, trees in parsed.items():
        score = attachment(test, trees, punctuation="unicode")
        table.add_row(name, *(f"{value:.2f}" for value in (score.uas, score.las, score.complete)))
    compared = significance(test, parsed["reranked"], parsed["third-order parser"], punctuation="unicode")
    table.caption = f"reranked - parser: {compared.difference:+.2f} UAS, p = {compared.p_value:.4f}"
    for column in table.columns[1:]:
        column.justify = "right"
    return table


class Find(NamedTuple):
    """A planted pattern whose words are those of a feature."""

    pattern: Pattern
    n_decisions: int
    """How often the pattern decides in the training sentences."""
    rank: int
    """Of the feature among all, by weight."""
    weight: float
    text: str


def find_patterns(reranker: DependencyReranker, bank: Treebank, n_train: int) -> tuple[list[Find], int]:
    """Return the planted patterns that have a feature of the same words, and how many could have one."""
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


def show_patterns(console: Console, reranker: DependencyReranker, bank: Treebank, n_train: int) -> None:
    """Show which planted patterns were found again among the features of the reranker."""
    found, n_wanted = find_patterns(reranker, bank, n_train)
    console.print(
        f"\nOf the {n_wanted} planted patterns that decide more than {THRESHOLD:g} times in the training "
        f"sentences, {len(found)} are among the {reranker.n_features_} selected features, word for word:"
    )
    table = Table("rank", "weight", "arcs", "times", "planted", "feature", box=SIMPLE_HEAD)
    for find in found[:N_SHOWN]:
        numbers = (f"{find.rank}", f"{find.weight:+.2f}", f"{find.pattern.order}", f"{find.n_decisions}")
        table.add_row(*numbers, Text(find.pattern.structure), Text(find.text))
    for column in table.columns[:4]:
        column.justify = "right"
    console.print(table)


def save_demo(console: Console, bank: Treebank, reranker: DependencyReranker, out: Path) -> None:
    """Write the treebank's files, the model, and a page with all that `console` has shown."""
    write_conllu(bank.dependencies, out / "treebank.conllu")
    write_brackets(bank.constituents, out / "treebank.mrg")
    write_props(bank.propositions, out / "treebank.props")
    reranker.save(out / MODEL)
    with open_target(out / "report.html") as stream:
        stream.write(console.export_html(clear=False))
    files = f"treebank.conllu, treebank.mrg, treebank.props, {MODEL} and report.html"
    console.print(f"Written to {out}: {files}.", soft_wrap=True)
