"""The demonstration: a made-up treebank, two of its trees, and two baselines."""

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from treewright.data.bracketed import write_brackets
from treewright.data.conllu import write_conllu
from treewright.data.deptree import DepTree
from treewright.data.propbank import write_props
from treewright.data.synthetic import Treebank, make_treebank
from treewright.metrics import attachment
from treewright.parsing.baseline import MajorityHeadParser, NextWordParser
from treewright.report.drawing import draw_constituents, draw_dependencies

TEST_SHARE = 0.2
SHOWN_LENGTHS = range(8, 13)
"""Lengths of a sentence that is worth drawing and fits on a screen."""


def run_demo(console: Console, *, n_sentences: int = 2000, seed: int = 0, out: Path | None = None) -> None:
    """Show what a treebank is and how far simple parsers get on it.

    Parameters
    ----------
    console : rich.console.Console
        One that records, if `out` is given.
    n_sentences, seed : int
        Of the treebank.
    out : Path, optional
        Folder for the treebank in three formats and for a page with all that was shown.
    """
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    bank = make_treebank(n_sentences, seed)
    console.print(f"A treebank of {n_sentences} made-up sentences (seed {seed}).\n")
    console.print(Text(str(bank.describe())), no_wrap=True, overflow="ellipsis")
    shown = next((k for k, tree in enumerate(bank.dependencies) if len(tree) in SHOWN_LENGTHS), 0)
    console.print("\nOne of its constituency trees:\n")
    console.print(Text(draw_constituents(bank.constituents[shown])))
    console.print("\nThe same sentence as dependencies:\n")
    console.print(Text(draw_dependencies(bank.dependencies[shown])))
    n_train = n_sentences - int(n_sentences * TEST_SHARE)
    console.print(f"\nTwo baselines, trained on {n_train} sentences, on the other {n_sentences - n_train}:")
    console.print(baseline_table(bank.dependencies[:n_train], bank.dependencies[n_train:]))
    if out is not None:
        save_demo(console, bank, out)


def baseline_table(train: Sequence[DepTree], test: Sequence[DepTree]) -> Table:
    """Score the baselines; punctuation is left out."""
    table = Table("", "UAS", "LAS", "complete", box=SIMPLE_HEAD)
    parsers = {"next word": NextWordParser(), "majority head tag": MajorityHeadParser()}
    for name, parser in parsers.items():
        score = attachment(test, parser.fit(train).predict(test), punctuation="unicode")
        table.add_row(name, *(f"{value:.2f}" for value in (score.uas, score.las, score.complete)))
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def save_demo(console: Console, bank: Treebank, out: Path) -> None:
    """Write the treebank's files, and a page with all that `console` has shown."""
    write_conllu(bank.dependencies, out / "treebank.conllu")
    write_brackets(bank.constituents, out / "treebank.mrg")
    write_props(bank.propositions, out / "treebank.props")
    console.save_html(str(out / "report.html"), clear=False)
    console.print(
        f"Written to {out}: treebank.conllu, treebank.mrg, treebank.props and report.html.", soft_wrap=True
    )
