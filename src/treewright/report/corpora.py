"""Treebanks in a folder: finding and reading their files."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from treewright.data.bracketed import read_brackets
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.formats import format_of_name, open_told
from treewright.errors import InputError
from treewright.metrics.parseval import sentence_length

HELD_OUT_EVERY = 10
"""If a treebank has no dev set, one in this many training sentences is held out instead."""
BESIDE = "with a *test* file in the same folder"


class CorpusFiles(NamedTuple):
    """The files of a treebank; `dev` is None if there is no dev set."""

    name: str
    train: Path
    dev: Path | None
    test: Path


class DependencyTreebank(NamedTuple):
    """A dependency treebank: training, dev and test set."""

    name: str
    train: list[DepTree]
    dev: list[DepTree]
    test: list[DepTree]
    holds_out: bool
    """Whether the dev set was held out of the training set."""

    def describe(self) -> str:
        """Describe the sizes of the three sets."""
        origin = " (held out of the training set)" if self.holds_out else ""
        return (
            f"{len(self.train):,} training sentences, {len(self.dev):,} dev{origin}, {len(self.test):,} test"
        )


class ConstituencyTreebank(NamedTuple):
    """A constituency treebank; without a dev set, the parser holds out some training trees."""

    name: str
    train: list[ConstTree]
    dev: list[ConstTree]
    test: list[ConstTree]

    def up_to(self, max_length: int | None) -> "ConstituencyTreebank":
        """Return the sentences of at most `max_length` words, including punctuation."""
        if max_length is None:
            return self
        parts = ([tree for tree in part if sentence_length(tree) <= max_length] for part in self[1:])
        return ConstituencyTreebank(self.name, *parts)

    def describe(self) -> str:
        """Describe the sizes of the three sets."""
        dev = f"{len(self.dev):,} dev" if self.dev else "no dev (a tenth of the training set is held out)"
        return f"{self.name}: {len(self.train):,} training sentences, {dev}, {len(self.test):,} test"


def find_corpora(data: Path) -> list[CorpusFiles]:
    """Return the treebanks of a folder and its subfolders, by name, or the treebank of a training file."""
    found = sorted(_find_files(data, "dependencies", "treebanks"), key=lambda corpus: corpus.name)
    if not found:
        raise InputError(f"{data} has no treebank; expected *train*.conllu or *train*.conll, {BESIDE}")
    return found


def find_corpus(data: Path) -> CorpusFiles:
    """Return the only treebank of a folder."""
    found = find_corpora(data)
    if len(found) > 1:
        names = ", ".join(corpus.name for corpus in found)
        raise InputError(
            f"{data} has {len(found)} treebanks ({names}); expected one; "
            "to choose one, pass its training file"
        )
    return found[0]


def find_treebank(data: Path) -> CorpusFiles:
    """Return the files of a constituency treebank, given its training file or a folder with one treebank."""
    found = list(_find_files(data, "constituents", "a treebank"))
    if len(found) != 1:
        names = f" ({', '.join(each.name for each in found)})" if found else ""
        raise InputError(
            f"{data} has {len(found)} constituency treebanks{names}; expected one "
            f"*train*.mrg, *train*.brackets or *train*.ptb, {BESIDE}"
        )
    return found[0]


def _find_files(data: Path, kind: str, what: str) -> Iterator[CorpusFiles]:
    """Yield the treebanks of a kind that have a training file and a test file in the same folder."""
    if not data.exists():
        raise InputError(f"{data} does not exist; expected a folder with {what}")
    for train in [data] if data.is_file() else sorted(data.rglob("*train*")):
        told = format_of_name(train.name)
        before, part, after = train.name.rpartition("train")
        test, dev = (train.with_name(before + other + after) for other in ("test", "dev"))
        if told and told.kind == kind and part and test.is_file():
            ending = r"([-_.]ud)?[-_.]?$" if kind == "dependencies" else r"[-_.]?$"
            name = re.sub(ending, "", before) or train.absolute().parent.name
            yield CorpusFiles(name, train, dev if dev.is_file() else None, test)


def read_corpus(files: CorpusFiles, n_sentences: int | None = None) -> DependencyTreebank:
    """Read a treebank, optionally with the first training sentences only."""
    train, test = _read_dependencies(files.train)[:n_sentences], _read_dependencies(files.test)
    if files.dev:
        return DependencyTreebank(files.name, train, _read_dependencies(files.dev), test, holds_out=False)
    dev = train[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY]
    rest = [tree for number, tree in enumerate(train, start=1) if number % HELD_OUT_EVERY]
    return DependencyTreebank(files.name, rest, dev, test, holds_out=True)


def _read_dependencies(path: Path) -> list[DepTree]:
    with open_told(str(path)) as (form, source):
        trees = list(form.read(source))
    if not trees:
        raise InputError(f"{path} has no sentences; expected at least one")
    return trees


def read_treebank(files: CorpusFiles, n_sentences: int | None = None) -> ConstituencyTreebank:
    """Read a constituency treebank, optionally with the first training sentences only."""
    dev = _read_constituents(files.dev) if files.dev else []
    train = _read_constituents(files.train)[:n_sentences]
    return ConstituencyTreebank(files.name, train, dev, _read_constituents(files.test))


def _read_constituents(path: Path) -> list[ConstTree]:
    trees = read_brackets(str(path))
    if not trees:
        raise InputError(f"{path} has no trees; expected at least one")
    return trees
