"""What experiments share: their settings, and a bench that trains, tests and keeps what it has found."""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from treewright._validate import check_choice, check_integer, check_number
from treewright._version import __version__
from treewright.checkpoint import fingerprint
from treewright.data.deptree import DepTree
from treewright.data.files import replacing
from treewright.metrics import SignificanceResult, attachment, significance
from treewright.metrics.attachment import PUNCTUATION_RULES
from treewright.parsing.dependency.parser import DependencyParser
from treewright.persist import load_state
from treewright.progress import report
from treewright.report.corpora import CorpusFiles, read_corpus
from treewright.report.separate_process import LostProcessError, Values, peak_memory, run_alone
from treewright.report.tables import Findings
from treewright.rerank.jackknife import jackknife_lists
from treewright.rerank.reranker import DependencyReranker

NAME_LENGTH = 24
"""Of the names of files that are kept: the beginning of a hash of all that they depend on."""


PUNCTUATION_TEXTS: dict[bool | str, str] = {
    True: "scored like words",
    "unicode": "left out (words of Unicode punctuation alone)",
    "penn": "left out (by Penn tags)",
}


@dataclass(frozen=True)
class Settings:
    """The settings of experiments; each experiment uses those that concern it.

    Attributes
    ----------
    random_state : int
        Of the parser, the reranker and the tests of significance.
    n_jobs : int
        Threads; results do not depend on them.
    epochs, runs : int, optional
        Of the training of the parser; its own defaults without them.
    k : int
        Length of the candidate lists.
    folds : int
        Parts in which the training sentences are parsed as if they were new.
    threshold : float
        The paper's C, where it is not what is varied.
    thresholds : tuple of float
        The values of C to compare.
    degrees : tuple of int
        Of the polynomial kernels.
    systems : tuple of str, optional
        The rows to fill; all without it.
    tags : {"predicted", "gold"}
    punctuation : {True, "unicode", "penn"}
        What is scored, as for `treewright.metrics.attachment`.
    n_sentences : int, optional
        Train on the first sentences only.
    """

    random_state: int = 0
    n_jobs: int = 1
    epochs: int | None = None
    runs: int | None = None
    k: int = 10
    folds: int = 10
    threshold: float = 3.0
    thresholds: tuple[float, ...] = (1.0, 2.0, 3.0, 5.0, 10.0)
    degrees: tuple[int, ...] = (2, 4, 8)
    systems: tuple[str, ...] | None = None
    tags: str = "predicted"
    punctuation: bool | str = True
    n_sentences: int | None = None

    def check(self) -> None:
        """Raise InputError for a value that cannot be used."""
        check_integer("random_state", self.random_state)
        for name, minimum in {
            "n_jobs": 1,
            "epochs": 1,
            "runs": 1,
            "k": 2,
            "folds": 2,
            "n_sentences": 1,
        }.items():
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), minimum=minimum)
        for threshold in (self.threshold, *self.thresholds):
            check_number("threshold", threshold, low=0, high=float("inf"))
        for degree in self.degrees:
            check_integer("degree", degree, minimum=1)
        check_choice("tags", self.tags, ("predicted", "gold"))
        check_choice("punctuation", self.punctuation, PUNCTUATION_RULES)

    def make_parser(self) -> DependencyParser:
        """Make the third-order parser that all experiments start from."""
        own = {name: getattr(self, name) for name in ("epochs", "runs") if getattr(self, name) is not None}
        return DependencyParser(
            order=3, tags=self.tags, random_state=self.random_state, n_jobs=self.n_jobs, **own
        )


class Inputs(NamedTuple):
    """What an experiment is given."""

    data: Path
    settings: Settings
    cache: Path


class Experiment(NamedTuple):
    """An experiment that can be asked for by name."""

    description: str
    run: Callable[[Inputs], Findings]
    options: frozenset[str]
    """The settings that it uses."""


class Ranking(NamedTuple):
    """What tells one reranker from another."""

    space: str
    learner: str
    degree: int | None
    threshold: float


@dataclass
class Outcome:
    """What a system has made of the test sentences, and facts about it.

    Attributes
    ----------
    trees : list of DepTree or None
        None if its training failed.
    facts : dict
        Of a parser, `seconds` (None if its training was interrupted); of a reranker also `memory` in bytes,
        `n_features`, `n_templates`, `reached`, `beta`, `oracle` and `test_seconds`.
    failure : str
        Why there are no trees.
    """

    trees: list[DepTree] | None
    facts: Values = field(default_factory=dict)
    failure: str = ""


class Bench:
    """A treebank on which systems are trained and tested.

    Parsers, candidate lists and outcomes are kept in a folder, under names made of the sentences and all
    options they depend on. What is there is not done again; what was interrupted goes on.
    """

    def __init__(self, files: CorpusFiles, inputs: Inputs) -> None:
        self.settings = inputs.settings
        self.corpus = read_corpus(files, self.settings.n_sentences)
        self._files = files
        self._cache = inputs.cache
        self._has_lists = False

    def base(self) -> Outcome:
        """Return what the parser makes of the test sentences."""
        name = self._name("base")
        if (kept := self._kept(name)) is None:
            path = self._trained_parser()
            trees = _load_parser(path, self.settings.n_jobs).predict(self.corpus.test)
            kept = self._keep(name, {**_columns(trees), **(self._kept(path.stem) or {"seconds": None})})
        return self._outcome(kept)

    def reranked(self, ranking: Ranking) -> Outcome:
        """Return what a reranker makes of the parser's candidates; it is trained in a process of its own."""
        options = self._options(ranking)
        reranker = DependencyReranker(**options)
        name = self._name(
            "reranked",
            *(value for name, value in reranker.result_params().items() if name != "significance_level"),
        )
        if (kept := self._kept(name)) is None:
            unfinished = self._folder("unfinished") / name
            is_resumed = unfinished.exists()
            task = self._task(options, unfinished)
            try:
                found = run_alone(f"{__name__}:train_reranker", task)
            except LostProcessError as error:
                return Outcome(None, failure=str(error))
            kept = self._keep(name, {**found, "seconds": None} if is_resumed else found)
            shutil.rmtree(unfinished, ignore_errors=True)
        return self._outcome(kept)

    def compare(self, outcome: Outcome, base: Outcome, metric: str = "uas") -> SignificanceResult:
        """Test whether a system differs from another."""
        assert outcome.trees
        assert base.trees
        return significance(
            self.corpus.test,
            outcome.trees,
            base.trees,
            metric=metric,
            random_state=self.settings.random_state,
            punctuation=self.settings.punctuation,
        )

    def score(self, outcome: Outcome, metric: str = "uas") -> float | None:
        """Return a score of an outcome, in percent; None where there are no trees."""
        if outcome.trees is None:
            return None
        found = attachment(self.corpus.test, outcome.trees, punctuation=self.settings.punctuation)
        return float(getattr(found, metric))

    @cached_property
    def _parser_name(self) -> str:
        parser = self.settings.make_parser()
        options = [__version__, *parser.result_params().items()]
        return fingerprint(options, self.corpus.train, self.corpus.dev)[:NAME_LENGTH]

    def _name(self, *what: object) -> str:
        """Return the name under which an outcome is kept."""
        return fingerprint([__version__, self._parser_name, *what], self.corpus.test)[:NAME_LENGTH]

    def _trained_parser(self) -> Path:
        """Return the file of the parser, which is trained if it is not there."""
        path = self._folder("parsers") / f"{self._parser_name}.tw"
        if path.exists():
            return path
        unfinished = self._folder("unfinished") / self._parser_name
        is_resumed = unfinished.exists()
        report(f"{self.corpus.name}: training the parser")
        start = time.perf_counter()
        parser = self.settings.make_parser()
        parser.fit(self.corpus.train, self.corpus.dev, checkpoint=unfinished)
        self._keep(path.stem, {"seconds": None if is_resumed else time.perf_counter() - start})
        parser.save(path)
        shutil.rmtree(unfinished, ignore_errors=True)
        return path

    def _task(self, options: Values, unfinished: Path) -> Values:
        """Return all that the process of a reranker needs to know; what all rerankers share is done first."""
        settings, parser, lists = self.settings, self._trained_parser(), self._folder("lists")
        if not self._has_lists:
            report(f"{self.corpus.name}: candidate lists of the training sentences")
            jackknife_lists(
                _load_parser(parser, settings.n_jobs),
                self.corpus.train,
                k=settings.k,
                folds=min(settings.folds, len(self.corpus.train)),
                n_jobs=settings.n_jobs,
                cache=lists,
            )
            self._has_lists = True
        return {
            "files": [part and str(part) for part in self._files],
            "n_sentences": settings.n_sentences,
            "parser": str(parser),
            "cache": str(lists),
            "checkpoint": str(unfinished),
            "options": options,
        }

    def _options(self, ranking: Ranking) -> Values:
        shared = {name: getattr(self.settings, name) for name in ("k", "folds", "random_state", "n_jobs")}
        return {**ranking._asdict(), **shared}

    def _outcome(self, kept: Values) -> Outcome:
        columns = zip(self.corpus.test, kept.pop("heads"), kept.pop("deprels"), strict=True)
        return Outcome([tree.with_heads(heads, relations) for tree, heads, relations in columns], kept)

    def _folder(self, name: str) -> Path:
        folder = self._cache / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _kept(self, name: str) -> Values | None:
        path = self._folder("outcomes") / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def _keep(self, name: str, values: Values) -> Values:
        with replacing(self._folder("outcomes") / f"{name}.json") as stream:
            stream.write(json.dumps(values).encode())
        return values


def train_reranker(task: Values) -> Values:
    """Train and test a reranker, as told by JSON; `run_alone` calls this."""
    name, train, dev, test = task["files"]
    files = CorpusFiles(name, Path(train), dev and Path(dev), Path(test))
    corpus = read_corpus(files, task["n_sentences"])
    parser = _load_parser(Path(task["parser"]), task["options"]["n_jobs"])
    # Tables show what a reranker does, be it good or bad.
    reranker = DependencyReranker(parser=parser, significance_level=None, **task["options"])
    start = time.perf_counter()
    reranker.fit(corpus.train, corpus.dev, cache=task["cache"], checkpoint=task["checkpoint"])
    trained = time.perf_counter()
    trees = reranker.predict(corpus.test)
    return {
        **_columns(trees),
        "seconds": trained - start,
        "test_seconds": time.perf_counter() - trained,
        "memory": peak_memory(),
        "n_features": int(reranker.n_features_),
        "n_templates": int(reranker.n_templates_),
        "reached": reranker.coverage_,
        "beta": float(reranker.beta_),
        "oracle": float(reranker.oracle_),
    }


def _load_parser(path: Path, n_jobs: int) -> DependencyParser:
    parser = DependencyParser.from_state(load_state(path))
    parser.n_jobs = n_jobs
    return parser


def _columns(trees: Sequence[DepTree]) -> Values:
    return {"heads": [tree.heads.tolist() for tree in trees], "deprels": [tree.deprels for tree in trees]}


def describe_settings(settings: Settings) -> dict[str, str]:
    """Return the settings as texts, by name."""
    parser = settings.make_parser()
    shown: dict[str, Any] = {**asdict(settings), "epochs": parser.epochs, "runs": parser.runs}
    shown["punctuation"] = PUNCTUATION_TEXTS[settings.punctuation]
    shown["training sentences"] = shown.pop("n_sentences")
    return {name: _describe(value) for name, value in shown.items()}


def _describe(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_describe, value))
    return "all" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
