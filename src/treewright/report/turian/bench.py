"""Settings and constituency parsers of the experiments of Turian & Melamed (2006).

Computational Challenges in Parsing by Classification. The paper's figures are for the Penn Treebank, which is
not free.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, Literal, NamedTuple

from treewright._typing import Count, Fraction, Range
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
"""Maximum sentence length in the paper."""
ABOUT_LENGTH = "Word counts include punctuation, but not traces."

PARSER_OPTIONS = (
    "runs",
    "lowest_penalty",
    "sample_size",
    "eta",
    "min_gain",
    "slack",
    "prune",
    "min_count",
    "any_children",
    "max_inferences",
    "dev_inferences",
    "atoms",
    "random_state",
    "n_jobs",
)
"""Settings that are options of the parser."""
Penalty = Annotated[float, Range(1e-6, 1e6)]
Strategies = tuple[Literal["shift-reduce", "original"], ...]


class ReportedParser(NamedTuple):
    """Scores of a constituency parser reported in a paper, in percent."""

    title: str
    f1: float
    recall: float
    precision: float


class ParserSystem(NamedTuple):
    """The options of a parser."""

    strategy: str
    tags: str
    max_length: int | None

    @property
    def title(self) -> str:
        """Name of the parser in tables."""
        return f"{self.strategy}, {self.tags} tags, trained on {show_length(self.max_length)}"


def show_length(max_length: int | None) -> str:
    """Describe a maximum sentence length.

    Examples
    --------
    >>> show_length(15), show_length(None)
    ('<= 15 words', 'all lengths')
    """
    return "all lengths" if max_length is None else f"<= {max_length} words"


@dataclass(frozen=True)
class ConstituentSettings(ThreadedSettings):
    """Settings of experiments that train constituency parsers by classification.

    Parameters
    ----------
    runs : int, optional
        Training runs of the parser to average (default: the parser's).
    strategies : tuple of str
        Parsing strategies to train: shift-reduce, original.
    max_lengths : tuple of int or None
        Maximum sentence lengths for training and testing, such as 15,all.
    lowest_penalty : float, optional
        Penalty at which training ends (default: the parser's).
    sample_size : int, optional
        Number of examples per decision tree (default: the parser's; in the paper: 100,000).
    eta : float, optional
        Factor by which the penalty is lowered when no split improves the objective (default: the parser's).
    min_gain : float, optional
        Minimum gain of a split, as a fraction of the penalty (default: the parser's; in the paper: 0).
    slack : float, optional
        Lower the penalty once no gradient exceeds it by more than this fraction (default: the parser's; in
        the paper: 0).
    prune : bool
        Undo splits that improve the objective on the sample of a tree but not on all examples. The paper
        keeps them.
    min_count : int, optional
        Minimum count for a word to be a feature (default: the parser's; in the paper: 1).
    any_children : bool
        Consider any label over any children, as in the paper, even if they never occurred together.
    max_inferences : int, optional
        Maximum number of scored inferences per sentence (default: the parser's).
    dev_inferences : int, optional
        Maximum number of scored inferences per sentence in dev evaluations (default: the parser's).
    atoms : str, optional
        Table of atomic features (default: the parser's); "paper" uses only the attributes of the paper.
    """

    runs: Count | None = None
    strategies: Strategies = ("shift-reduce",)
    max_lengths: tuple[Count | None, ...] = (SHORT,)
    lowest_penalty: Penalty | None = None
    sample_size: Count | None = None
    eta: Annotated[float, Range(1e-6, 0.999)] | None = None
    min_gain: Annotated[float, Range(0, 10)] | None = None
    slack: Fraction | None = None
    prune: bool = True
    min_count: Count | None = None
    any_children: bool = False
    max_inferences: Count | None = None
    dev_inferences: Count | None = None
    atoms: str | None = None

    @property
    def tag_sources(self) -> tuple[str, ...]:
        """The sources of tags."""
        return ("gold",)

    def systems(self) -> list[ParserSystem]:
        """Return the parsers of an experiment."""
        found = product(self.max_lengths, self.strategies, self.tag_sources)
        return [ParserSystem(strategy, tags, length) for length, strategy, tags in found]


@dataclass(frozen=True)
class TaggedSettings(ConstituentSettings):
    """Settings of experiments with gold and predicted tags.

    Parameters
    ----------
    tags : {"both", "gold", "predicted"}
        Use gold tags, tags predicted by the parser's own tagger, or both (one parser for each).
    """

    tags: Literal["both", "gold", "predicted"] = "both"

    @property
    def tag_sources(self) -> tuple[str, ...]:
        """The sources of tags."""
        return ("gold", "predicted") if self.tags == "both" else (self.tags,)


class Trained(NamedTuple):
    """A parser and its training time in seconds, or None if training was interrupted."""

    parser: ConstituentParser
    seconds: float | None

    @property
    def best(self) -> PenaltyReport:
        """The training step whose weights were kept."""
        return max(self.parser.history_, key=lambda step: step.f1)


class ConstituentBench:
    """A treebank for training and testing constituency parsers; parsers and results are kept.

    Parameters
    ----------
    settings : ThreadedSettings
        Settings; those that `PARSER_OPTIONS` names are passed to the parsers.
    inputs : Inputs
        Inputs with the folder of the treebank.
    """

    def __init__(self, settings: ThreadedSettings, inputs: Inputs) -> None:
        self.treebank = read_treebank(find_treebank(inputs.data), settings.n_sentences)
        self.store = inputs.store
        self._n_jobs = settings.n_jobs
        self._options = given_options(settings, PARSER_OPTIONS)
        self._names: dict[ParserSystem, str] = {}

    def make_parser(self, system: ParserSystem) -> ConstituentParser:
        """Return an unfitted parser."""
        return ConstituentParser(**{"strategy": system.strategy, "tags": system.tags, **self._options})

    def sentences(self, max_length: int | None) -> ConstituencyTreebank:
        """Return the sentences of at most `max_length` words."""
        treebank = self.treebank.up_to(max_length)
        for part in ("train", "test"):
            if not getattr(treebank, part):
                found = f"{self.treebank.name} has no {part} sentences of {show_length(max_length)}"
                raise InputError(f"{found}; expected at least one")
        return treebank

    def name(self, system: ParserSystem, *what: object) -> str:
        """Return the name under which the results of a system on its training sentences are stored."""
        if system not in self._names:
            parser, treebank = self.make_parser(system), self.sentences(system.max_length)
            self._names[system] = parser.identity(treebank.train, treebank.dev)[:NAME_LENGTH]
        return fingerprint([self._names[system], *what])[:NAME_LENGTH] if what else self._names[system]

    def trained(self, system: ParserSystem) -> Trained:
        """Return the parser of a system; train it if necessary."""
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
        """Return scores and facts of a parser on test sentences of at most `max_length` words."""
        return self.store.find(
            self.name(system, "tested", max_length, self._test_name),
            lambda: _test(self.trained(system), self.sentences(max_length).test),
        )

    @cached_property
    def _test_name(self) -> str:
        return fingerprint([], self.treebank.test)

    def facts(self, settings: ConstituentSettings) -> dict[str, str]:
        """Return the settings that affect a result as text, by name."""
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
            "minimum gain of a split": f"{parser.min_gain:g} of the penalty",
            "splits that improve only the sample": "undone" if parser.prune else "kept",
            "factor on the penalty": f"{parser.eta:g}, with a slack of {parser.slack:g}",
            "minimum count of words": str(parser.min_count),
            "labels": "over any children" if parser.any_children else "only over children seen in training",
            "atoms": "default" if parser.atoms is None else " ".join(parser.atoms.split()),
            "lowest penalty": f"{parser.lowest_penalty:g}",
            "runs": str(parser.runs),
            "maximum inferences": f"{parser.max_inferences:,} per sentence; {parser.dev_inferences:,} for "
            "dev scores in training",
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
