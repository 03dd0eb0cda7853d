"""Treebanks in a folder: finding the files of each, and reading them."""

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
"""Where a treebank has no dev part, each training sentence of this number stands in for it."""
BESIDE = "with *test* for *train* beside it"


class CorpusFiles(NamedTuple):
    """The files of a treebank; one without a dev part has None for it."""

    name: str
    train: Path
    dev: Path | None
    test: Path


class DependencyTreebank(NamedTuple):
    """A treebank in its three parts."""

    name: str
    train: list[DepTree]
    dev: list[DepTree]
    test: list[DepTree]
    holds_out: bool
    """Whether dev was taken from the training sentences."""

    def describe(self) -> str:
        """Say how large the parts are."""
        origin = " (held out of the training sentences)" if self.holds_out else ""
        return (
            f"{len(self.train):,} sentences to train, {len(self.dev):,} dev{origin}, {len(self.test):,} test"
        )


class ConstituencyTreebank(NamedTuple):
    """Constituency trees in three parts; without a dev part, the parser holds some training trees out."""

    name: str
    train: list[ConstTree]
    dev: list[ConstTree]
    test: list[ConstTree]

    def up_to(self, max_length: int | None) -> "ConstituencyTreebank":
        """Return the sentences of up to so many words, punctuation included."""
        if max_length is None:
            return self
        parts = ([tree for tree in part if sentence_length(tree) <= max_length] for part in self[1:])
        return ConstituencyTreebank(self.name, *parts)

    def describe(self) -> str:
        """Say how large the parts are."""
        dev = (
            f"{len(self.dev):,} dev" if self.dev else "no dev (a tenth of the training sentences is held out)"
        )
        return f"{self.name}: {len(self.train):,} sentences to train, {dev}, {len(self.test):,} test"


def find_corpora(data: Path) -> list[CorpusFiles]:
    """Return the treebanks of a folder and the folders in it, by name; or of one file to train on."""
    found = sorted(_find_files(data, "dependencies", "treebanks"), key=lambda corpus: corpus.name)
    if not found:
        raise InputError(f"{data} has no treebank; looked for *train*.conllu or *train*.conll, {BESIDE}")
    return found


def find_corpus(data: Path) -> CorpusFiles:
    """Return the one treebank of a folder."""
    found = find_corpora(data)
    if len(found) > 1:
        names = ", ".join(corpus.name for corpus in found)
        raise InputError(
            f"{data} has {len(found)} treebanks ({names}); expected one, or its file to train on"
        )
    return found[0]


def find_treebank(data: Path) -> CorpusFiles:
    """Return the files of the one constituency treebank of a folder, or of the file to train on."""
    found = list(_find_files(data, "constituents", "a treebank"))
    if len(found) != 1:
        names = f" ({', '.join(each.name for each in found)})" if found else ""
        raise InputError(
            f"{data} has {len(found)} constituency treebanks{names}; looked for one "
            f"*train*.mrg, *train*.brackets or *train*.ptb, {BESIDE}"
        )
    return found[0]


def _find_files(data: Path, kind: str, what: str) -> Iterator[CorpusFiles]:
    """Yield the treebanks whose files to train on are of some kind and have a test part beside them."""
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
    """Read a treebank, perhaps with the first sentences only to train on."""
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
    """Read a constituency treebank, perhaps with the first sentences only to train on."""
    dev = _read_constituents(files.dev) if files.dev else []
    train = _read_constituents(files.train)[:n_sentences]
    return ConstituencyTreebank(files.name, train, dev, _read_constituents(files.test))


def _read_constituents(path: Path) -> list[ConstTree]:
    trees = read_brackets(str(path))
    if not trees:
        raise InputError(f"{path} has no trees; expected at least one")
    return trees
