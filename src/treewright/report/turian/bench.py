"""What the experiments of Turian & Melamed (2006) share: settings, and constituency parsers on a treebank.

Computational Challenges in Parsing by Classification. The paper's figures are for another treebank than those
that are free.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, Literal, NamedTuple

from treewright._typing import Count, Range
from treewright.checkpoint import fingerprint
from treewright.data.consttree import ConstTree
from treewright.errors import InputError
from treewright.metrics.parseval import parseval
from treewright.parsing.constituent.parser import ConstituentParser
from treewright.parsing.constituent.training import PenaltyReport
from treewright.report.corpora import ConstituencyTreebank, find_treebank, read_treebank
from treewright.report.experiment import Inputs, ThreadedSettings, given_options
from treewright.report.separate_process import Values
from treewright.report.store import NAME_LENGTH, load_parser

PAPER = "Turian & Melamed (2006)"
PENN = "Penn Treebank"
SHORT = 15
"""The length of the sentences that the paper looks at."""
ABOUT_LENGTH = "Words are counted with punctuation, without traces."

Penalty = Annotated[float, Range(1e-6, 1e6)]
Strategies = tuple[Literal["shift-reduce", "original"], ...]


class ReportedParser(NamedTuple):
    """What a paper reports of a parser of constituents, in percent."""

    title: str
    f1: float
    recall: float
    precision: float


class ParserSystem(NamedTuple):
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


@dataclass(frozen=True)
class ConstituentSettings(ThreadedSettings):
    """The settings of experiments that train constituency parsers by classification.

    Parameters
    ----------
    runs : int, optional
        Training runs of the parser to average, if not its default.
    strategies : tuple of str
        Parsing strategies to train: shift-reduce, original.
    max_lengths : tuple of int or None
        Maximum numbers of words of the sentences to train and to test on, or all, as in 15,all.
    lowest_penalty : float, optional
        Penalty at which the training ends, if not the parser's default.
    sample_size : int, optional
        Examples that each tree is built on, if not the parser's default.
    """

    runs: Count | None = None
    strategies: Strategies = ("shift-reduce",)
    max_lengths: tuple[Count | None, ...] = (SHORT,)
    lowest_penalty: Penalty | None = None
    sample_size: Count | None = None

    @property
    def tag_sources(self) -> tuple[str, ...]:
        """Whose tags parsers use."""
        return ("gold",)

    def systems(self) -> list[ParserSystem]:
        """Return the parsers of an experiment."""
        found = product(self.max_lengths, self.strategies, self.tag_sources)
        return [ParserSystem(strategy, tags, length) for length, strategy, tags in found]


@dataclass(frozen=True)
class TaggedSettings(ConstituentSettings):
    """The settings of experiments with gold and predicted tags.

    Parameters
    ----------
    tags : {"both", "gold", "predicted"}
        Part-of-speech tags: gold, predicted by the parser's own tagger, or a parser for each (both).
    """

    tags: Literal["both", "gold", "predicted"] = "both"

    @property
    def tag_sources(self) -> tuple[str, ...]:
        """Whose tags parsers use."""
        return ("gold", "predicted") if self.tags == "both" else (self.tags,)


class Trained(NamedTuple):
    """A parser and the seconds its training took, or None where it was interrupted."""

    parser: ConstituentParser
    seconds: float | None

    @property
    def best(self) -> PenaltyReport:
        """The step of the training that was kept."""
        return max(self.parser.history_, key=lambda step: step.f1)


class ConstituentBench:
    """A treebank on which constituency parsers are trained and tested; they and what they find are kept.

    Parameters
    ----------
    settings : ThreadedSettings
        Of the parsers, `runs`, `lowest_penalty` and `sample_size` are used where there are such.
    inputs : Inputs
        With the folder of the treebank.
    """

    def __init__(self, settings: ThreadedSettings, inputs: Inputs) -> None:
        self.treebank = read_treebank(find_treebank(inputs.data), settings.n_sentences)
        self.store = inputs.store
        self._n_jobs = settings.n_jobs
        names = ("runs", "lowest_penalty", "sample_size", "random_state", "n_jobs")
        self._options = given_options(settings, names)
        self._names: dict[ParserSystem, str] = {}

    def make_parser(self, system: ParserSystem) -> ConstituentParser:
        """Return a parser that has learnt nothing yet."""
        return ConstituentParser(**{"strategy": system.strategy, "tags": system.tags, **self._options})

    def sentences(self, max_length: int | None) -> ConstituencyTreebank:
        """Return the sentences of up to some length."""
        treebank = self.treebank.up_to(max_length)
        for part in ("train", "test"):
            if not getattr(treebank, part):
                found = f"{self.treebank.name} has no {part} sentences of {show_length(max_length)}"
                raise InputError(f"{found}; expected at least one")
        return treebank

    def name(self, system: ParserSystem, *what: object) -> str:
        """Return the name under which things are kept that depend on a system and its training sentences."""
        if system not in self._names:
            parser, treebank = self.make_parser(system), self.sentences(system.max_length)
            self._names[system] = parser.identity(treebank.train, treebank.dev)[:NAME_LENGTH]
        return fingerprint([self._names[system], *what])[:NAME_LENGTH] if what else self._names[system]

    def trained(self, system: ParserSystem) -> Trained:
        """Return the parser of a system, which is trained if it is not there."""
        treebank, name = self.sentences(system.max_length), self.name(system)
        path = self.store.train(
            name,
            lambda: self.make_parser(system),
            lambda: (treebank.train, treebank.dev or None),
            about=f"{treebank.name}: {system.title}",
            facts=lambda parser: {"step_seconds": [step.seconds for step in parser.history_]},
        )
        parser = load_parser(path, ConstituentParser, n_jobs=self._n_jobs)
        kept = self.store.get(name) or {}
        if "step_seconds" in kept:
            steps = zip(parser.history_, kept["step_seconds"], strict=True)
            parser.history_ = [step._replace(seconds=seconds) for step, seconds in steps]
        return Trained(parser, kept.get("seconds"))

    def tested(self, system: ParserSystem, max_length: int | None) -> Values:
        """Return what a parser makes of the test sentences of up to some length, and facts about it."""
        return self.store.find(
            self.name(system, "tested", max_length, self._test_name),
            lambda: _test(self.trained(system), self.sentences(max_length).test),
        )

    @cached_property
    def _test_name(self) -> str:
        return fingerprint([], self.treebank.test)

    def facts(self, settings: ConstituentSettings) -> dict[str, str]:
        """Return what a result depends on as texts, by name."""
        systems = settings.systems()
        parser = self.make_parser(systems[0])
        treebanks = {
            show_length(system.max_length): self.sentences(system.max_length).describe() for system in systems
        }
        return {
            **{f"treebank, {length}": told for length, told in treebanks.items()},
            "training sentences": "all"
            if settings.n_sentences is None
            else f"the first {settings.n_sentences:,}",
            "sample": f"{parser.sample_size:,} examples",
            "least gain of a split": f"{parser.min_gain:g} of the penalty",
            "lowest penalty": f"{parser.lowest_penalty:g}",
            "runs": str(parser.runs),
            "inferences scored at the most": f"{parser.max_inferences:,} a sentence",
            "random_state": str(settings.random_state),
            "n_jobs": str(settings.n_jobs),
        }


def _test(trained: Trained, test: Sequence[ConstTree]) -> Values:
    parser = trained.parser.using(n_jobs=1)
    parser.predict(test[:2])  # compiles
    start = time.perf_counter()
    parsed = parser.predict(test)
    rate = len(test) / (time.perf_counter() - start)
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
