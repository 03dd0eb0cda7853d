"""Treebanks in a folder: finding the files of each, and reading them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from treewright.data.deptree import DepTree
from treewright.data.formats import format_of_name, open_told
from treewright.errors import InputError

HELD_OUT_EVERY = 10
"""Where a treebank has no dev part, each training sentence of this number stands in for it."""
LOOKED_FOR = "*train*.conllu or *train*.conll, with *test* for *train* beside it"


class CorpusFiles(NamedTuple):
    """The files of a treebank; one without a dev part has None for it."""

    name: str
    train: Path
    dev: Path | None
    test: Path


class Corpus(NamedTuple):
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


def find_corpora(data: Path) -> list[CorpusFiles]:
    """Return the treebanks of a folder and the folders in it, by name; or of one file to train on."""
    if not data.exists():
        raise InputError(f"{data} does not exist; expected a folder with treebanks")
    files = [data] if data.is_file() else sorted(data.rglob("*train*"))
    found = sorted(_with_companions(files), key=lambda corpus: corpus.name)
    if not found:
        raise InputError(f"{data} has no treebank; looked for {LOOKED_FOR}")
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


def _with_companions(files: list[Path]) -> Iterator[CorpusFiles]:
    """Yield the treebanks of those files that are to train on and have a test part."""
    for train in files:
        told = format_of_name(train.name)
        before, part, after = train.name.rpartition("train")
        test, dev = (train.with_name(before + other + after) for other in ("test", "dev"))
        if told and told.kind == "dependencies" and part and test.is_file():
            name = re.sub(r"([-_.]ud)?[-_.]?$", "", before) or train.absolute().parent.name
            yield CorpusFiles(name, train, dev if dev.is_file() else None, test)


def read_corpus(files: CorpusFiles, n_sentences: int | None = None) -> Corpus:
    """Read a treebank, perhaps with the first sentences only to train on."""
    train, test = _read(files.train)[:n_sentences], _read(files.test)
    if files.dev:
        return Corpus(files.name, train, _read(files.dev), test, holds_out=False)
    dev = train[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY]
    rest = [tree for number, tree in enumerate(train, start=1) if number % HELD_OUT_EVERY]
    return Corpus(files.name, rest, dev, test, holds_out=True)


def _read(path: Path) -> list[DepTree]:
    with open_told(str(path)) as (form, source):
        trees = list(form.read(source))
    if not trees:
        raise InputError(f"{path} has no sentences; expected at least one")
    return trees
