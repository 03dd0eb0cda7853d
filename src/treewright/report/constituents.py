"""What experiments with constituency parsers share: settings, treebanks, and a bench that keeps parsers."""

import json
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from treewright._validate import check_choice, check_integer, check_number
from treewright.checkpoint import fingerprint
from treewright.data.bracketed import read_brackets
from treewright.data.consttree import ConstTree
from treewright.data.files import replacing
from treewright.data.formats import format_of_name
from treewright.errors import InputError
from treewright.metrics.parseval import parseval, sentence_length
from treewright.parsing.constituent.parser import STRATEGIES, ConstituentParser
from treewright.parsing.constituent.training import Step
from treewright.persist import load_state
from treewright.progress import report
from treewright.report.corpora import CorpusFiles
from treewright.report.experiment import NAME_LENGTH, Inputs, Settings
from treewright.report.separate_process import Values

TAGS = ("gold", "predicted")
SHORT = 15
"""The length of the sentences that the paper looks at."""
LOOKED_FOR = "*train*.mrg, *train*.brackets or *train*.ptb, with *test* for *train* beside it"


@dataclass(frozen=True)
class ConstituentSettings(Settings):
    """The settings of experiments with constituency parsers.

    Attributes
    ----------
    tags : {"both", "gold", "predicted"}
    strategies : tuple of str, optional
        Of the parser; what the experiment is about without it.
    max_lengths : tuple of int or None, optional
        The longest sentences to train and to test on, in words with punctuation and without traces; None for
        all lengths.
    lowest_penalty, sample_size : optional
        Of the training; the parser's own without them.
    label : str, optional
        Whose trees are profiled; that with the most examples without it.
    penalty : float, optional
        At which they are; that of the best parser without it, for which this is trained.
    n_trees : int
        How many trees are looked at for a mean.
    most_seconds : float
        After which the tree on all examples is not grown any further.
    """

    tags: str = "both"
    strategies: tuple[str, ...] | None = None
    max_lengths: tuple[int | None, ...] | None = None
    lowest_penalty: float | None = None
    sample_size: int | None = None
    label: str | None = None
    penalty: float | None = None
    n_trees: int = 50
    most_seconds: float = 600.0

    def check(self) -> None:
        """Raise InputError for a value that cannot be used."""
        Settings(
            random_state=self.random_state, n_jobs=self.n_jobs, runs=self.runs, n_sentences=self.n_sentences
        ).check()
        check_choice("tags", self.tags, ("both", *TAGS))
        for strategy in self.strategies or ():
            check_choice("strategy", strategy, STRATEGIES)
        for length in self.max_lengths or ():
            if length is not None:
                check_integer("max_length", length, minimum=1)
        for name in ("lowest_penalty", "penalty"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), low=1e-6, high=1e6)
        if self.sample_size is not None:
            check_integer("sample_size", self.sample_size, minimum=1)
        check_integer("n_trees", self.n_trees, minimum=2)
        check_number("most_seconds", self.most_seconds, low=0, high=float("inf"))


class System(NamedTuple):
    """What tells one parser from another."""

    strategy: str
    tags: str
    max_length: int | None

    @property
    def title(self) -> str:
        """Its name in tables."""
        return f"{self.strategy}, {self.tags} tags, trained on {show_length(self.max_length)}"


def show_length(max_length: int | None) -> str:
    """Say how long sentences are.

    Examples
    --------
    >>> show_length(15), show_length(None)
    ('<= 15 words', 'all lengths')
    """
    return "all lengths" if max_length is None else f"<= {max_length} words"


def choose_systems(
    settings: ConstituentSettings, strategies: tuple[str, ...], max_lengths: tuple[int | None, ...]
) -> list[System]:
    """Return the parsers of an experiment, of which some things are given where the user has chosen none."""
    return [
        System(strategy, tags, length)
        for length, strategy, tags in product(
            settings.max_lengths or max_lengths,
            settings.strategies or strategies,
            TAGS if settings.tags == "both" else (settings.tags,),
        )
    ]


class Treebank(NamedTuple):
    """Constituency trees in three parts; without a dev part, the parser holds some training trees out."""

    name: str
    train: list[ConstTree]
    dev: list[ConstTree]
    test: list[ConstTree]

    def up_to(self, max_length: int | None) -> "Treebank":
        """Return the sentences of up to so many words, punctuation included."""
        if max_length is None:
            return self
        parts = ([tree for tree in part if sentence_length(tree) <= max_length] for part in self[1:])
        return Treebank(self.name, *parts)

    def describe(self) -> str:
        """Say how large the parts are."""
        dev = (
            f"{len(self.dev):,} dev" if self.dev else "no dev (a tenth of the training sentences is held out)"
        )
        return f"{self.name}: {len(self.train):,} sentences to train, {dev}, {len(self.test):,} test"


def find_treebank(data: Path) -> CorpusFiles:
    """Return the files of the one constituency treebank of a folder, or of the file to train on."""
    if not data.exists():
        raise InputError(f"{data} does not exist; expected a folder with a treebank")
    files = [data] if data.is_file() else sorted(data.rglob("*train*"))
    found = [each for each in map(_with_companions, files) if each]
    if len(found) != 1:
        names = f" ({', '.join(each.name for each in found)})" if found else ""
        raise InputError(
            f"{data} has {len(found)} constituency treebanks{names}; looked for one {LOOKED_FOR}"
        )
    return found[0]


def _with_companions(train: Path) -> CorpusFiles | None:
    told = format_of_name(train.name)
    before, part, after = train.name.rpartition("train")
    test, dev = (train.with_name(before + other + after) for other in ("test", "dev"))
    if not (told and told.kind == "constituents" and part and test.is_file()):
        return None
    name = re.sub(r"[-_.]?$", "", before) or train.absolute().parent.name
    return CorpusFiles(name, train, dev if dev.is_file() else None, test)


def read_treebank(files: CorpusFiles, n_sentences: int | None = None) -> Treebank:
    """Read a treebank, perhaps with the first sentences only to train on."""
    dev = _read(files.dev) if files.dev else []
    return Treebank(files.name, _read(files.train)[:n_sentences], dev, _read(files.test))


def _read(path: Path) -> list[ConstTree]:
    trees = read_brackets(str(path))
    if not trees:
        raise InputError(f"{path} has no trees; expected at least one")
    return trees


class Trained(NamedTuple):
    """A parser and the seconds its training took, or None where it was interrupted."""

    parser: ConstituentParser
    seconds: float | None

    @property
    def best(self) -> Step:
        """The step of the training that was kept."""
        return max(self.parser.history_, key=lambda step: step.f1)


class ConstituentBench:
    """A treebank on which constituency parsers are trained and tested.

    Parsers and what was found with them are kept in a folder, under names made of the sentences and all
    options they depend on. What is there is not done again; what was interrupted goes on.
    """

    def __init__(self, settings: ConstituentSettings, inputs: Inputs) -> None:
        self.settings = settings
        self.treebank = read_treebank(find_treebank(inputs.data), settings.n_sentences)
        self._cache = inputs.cache
        self._names: dict[System, str] = {}

    def make_parser(self, system: System) -> ConstituentParser:
        """Return a parser that has learnt nothing yet."""
        settings = self.settings
        chosen: dict[str, Any] = {
            name: getattr(settings, name)
            for name in ("runs", "lowest_penalty", "sample_size")
            if getattr(settings, name) is not None
        }
        chosen |= {"strategy": system.strategy, "tags": system.tags}
        return ConstituentParser(
            random_state=settings.random_state,
            n_jobs=settings.n_jobs,
            **chosen,
        )

    def sentences(self, max_length: int | None) -> Treebank:
        """Return the sentences of up to some length."""
        treebank = self.treebank.up_to(max_length)
        for part in ("train", "test"):
            if not getattr(treebank, part):
                found = f"{self.treebank.name} has no {part} sentences of {show_length(max_length)}"
                raise InputError(f"{found}; expected at least one")
        return treebank

    def name(self, system: System, *what: object) -> str:
        """Return the name under which things are kept that depend on a system and its training sentences."""
        if system not in self._names:
            parser, treebank = self.make_parser(system), self.sentences(system.max_length)
            self._names[system] = parser.identity(treebank.train, treebank.dev)[:NAME_LENGTH]
        return fingerprint([self._names[system], *what])[:NAME_LENGTH] if what else self._names[system]

    def trained(self, system: System) -> Trained:
        """Return the parser of a system, which is trained if it is not there."""
        name = self.name(system)
        path = self.folder("parsers") / f"{name}.tw"
        if not path.exists():
            self._train(system, path)
        parser = ConstituentParser.from_state(load_state(path))
        parser.n_jobs = self.settings.n_jobs
        kept = self.kept(name) or {}
        if "step_seconds" in kept:
            steps = zip(parser.history_, kept["step_seconds"], strict=True)
            parser.history_ = [step._replace(seconds=seconds) for step, seconds in steps]
        return Trained(parser, kept.get("seconds"))

    def _train(self, system: System, path: Path) -> None:
        unfinished = self.folder("unfinished") / path.stem
        is_resumed = unfinished.exists()
        treebank, parser = self.sentences(system.max_length), self.make_parser(system)
        report(f"{treebank.name}: {system.title}")
        start = time.perf_counter()
        parser.fit(treebank.train, treebank.dev or None, checkpoint=unfinished)
        seconds = None if is_resumed else time.perf_counter() - start
        self.keep(path.stem, {"seconds": seconds, "step_seconds": [step.seconds for step in parser.history_]})
        parser.save(path)
        shutil.rmtree(unfinished, ignore_errors=True)

    def tested(self, system: System, max_length: int | None) -> Values:
        """Return what a parser makes of the test sentences of up to some length, and facts about it."""
        name = self.name(system, "tested", max_length, self._test_name)
        if (kept := self.kept(name)) is None:
            trained = self.trained(system)
            kept = self.keep(name, _test(trained, self.sentences(max_length).test))
        return kept

    @cached_property
    def _test_name(self) -> str:
        return fingerprint([], self.treebank.test)

    def folder(self, name: str) -> Path:
        """Return a folder for what is kept."""
        folder = self._cache / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def kept(self, name: str) -> Values | None:
        """Return what is kept under a name."""
        path = self.folder("outcomes") / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def keep(self, name: str, values: Values) -> Values:
        """Keep values under a name, and return them."""
        with replacing(self.folder("outcomes") / f"{name}.json") as stream:
            stream.write(json.dumps(values).encode())
        return values


def _test(trained: Trained, test: Sequence[ConstTree]) -> Values:
    parser = trained.parser
    n_jobs, parser.n_jobs = parser.n_jobs, 1
    parser.predict(test[:2])  # compiles
    start = time.perf_counter()
    parsed = parser.predict(test)
    rate = len(test) / (time.perf_counter() - start)
    parser.n_jobs = n_jobs
    score = parseval(test, parsed)
    best = trained.best
    return {
        **{name: getattr(score, name) for name in ("f1", "recall", "precision", "tagging", "n_errors")},
        "n_sentences": score.n_sentences,
        "seconds": trained.seconds,
        "tree_seconds": parser.history_[-1].seconds,
        "rate": rate,
        "n_trees": best.n_trees,
        "n_nonzero": best.n_nonzero,
        "penalty": best.penalty,
        "dev_f1": best.f1,
    }
