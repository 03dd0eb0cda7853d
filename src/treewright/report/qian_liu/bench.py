"""Settings, notes and rerankers shared by the experiments of Qian & Liu (2015)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from treewright._typing import Count, NonNegativeFloat, Range
from treewright.data.deptree import DepTree
from treewright.metrics import SignificanceResult, attachment, significance
from treewright.parsing.dependency.parser import DependencyParser
from treewright.progress import report
from treewright.report.corpora import CorpusFiles, DependencyTreebank, read_corpus
from treewright.report.experiment import Inputs, ThreadedSettings, given_options
from treewright.report.separate_process import LostProcessError, Values, peak_memory, run_alone
from treewright.report.store import load_parser, make_name
from treewright.report.tables import Row
from treewright.rerank.jackknife import jackknife_lists
from treewright.rerank.reranker import DependencyReranker
from treewright.rerank.training import DEGREES

PAPER = "Qian & Liu (2015)"
PAPER_BASE = 93.07
"""UAS of the paper's third-order parser on the Penn Treebank."""
ABOUT_P = (
    "p: two-sided randomisation test against the third-order parser; * marks values below 0.05. "
    "The p-values are not corrected for the number of systems."
)
ABOUT_TIME = (
    "Times do not include the candidate lists, which all systems share; the first training run on a machine "
    "includes compilation. A dash means that training was interrupted and resumed."
)
ABOUT_PENN = f"paper: {PAPER}, on the Penn Treebank, without punctuation, on a 3.4 GHz Core i7."
TOLD = (
    *("random_state", "n_jobs", "epochs", "runs", "k", "folds", "threshold", "thresholds", "degrees"),
    *("systems", "tags", "punctuation"),
)
"""Settings shown on pages, in this order."""
PUNCTUATION_TEXTS = {
    "all": "scored",
    "unicode": "ignored (words of Unicode punctuation)",
    "penn": "ignored (by Penn tags)",
}


@dataclass(frozen=True)
class DependencySettings(ThreadedSettings):
    """Settings of experiments that train a dependency parser.

    Parameters
    ----------
    epochs : int, optional
        Training epochs of the dependency parser (default: the parser's).
    runs : int, optional
        Training runs of the dependency parser to average (default: the parser's).
    folds : int
        Number of cross-validation folds.
    """

    epochs: Count | None = None
    runs: Count | None = None
    folds: Annotated[int, Range(2)] = 10

    def make_parser(self, tags: str = "predicted") -> DependencyParser:
        """Make the third-order parser of the experiments."""
        options = given_options(self, ("random_state", "n_jobs", "epochs", "runs"))
        return DependencyParser(order=3, **{"tags": tags, **options})

    def parser_name(self, corpus: DependencyTreebank, tags: str = "predicted") -> str:
        """Return the name of the third-order parser trained on a treebank."""
        parser = self.make_parser(tags)
        return make_name(*parser.result_params().items(), trees=(corpus.train, corpus.dev))


@dataclass(frozen=True)
class RerankingSettings(DependencySettings):
    """Settings of experiments with dependency rerankers.

    Parameters
    ----------
    folds : int
        Number of jackknife folds for the candidate lists of the training sentences.
    k : int
        Length of the candidate lists.
    tags : {"predicted", "gold"}
        Use tags predicted by the parser's own tagger, or gold tags.
    punctuation : {"all", "unicode", "penn"}
        Score punctuation (all), or ignore it by Unicode category or Penn tag.
    """

    k: Annotated[int, Range(2)] = 10
    tags: Literal["predicted", "gold"] = "predicted"
    punctuation: Literal["all", "unicode", "penn"] = "all"

    def facts(self) -> dict[str, str]:
        """Return the settings that affect a result as text, by name."""
        parser = self.make_parser(self.tags)
        shown: dict[str, Any] = {name: getattr(self, name) for name in TOLD if hasattr(self, name)}
        shown |= {"epochs": parser.epochs, "runs": parser.runs}
        shown["punctuation"] = PUNCTUATION_TEXTS[self.punctuation]
        shown["training sentences"] = self.n_sentences
        facts = {name: _describe(value) for name, value in shown.items()}
        return {**facts, "order of subtree features": f"up to {DEGREES['subtree']}"}


@dataclass(frozen=True)
class MiningSettings(RerankingSettings):
    """Settings of experiments that select features with one threshold.

    Parameters
    ----------
    threshold : float
        Feature selection threshold (C in the paper).
    """

    threshold: NonNegativeFloat = 3.0


class Ranking(NamedTuple):
    """The options of a reranker."""

    space: str
    learner: str
    degree: int | None
    threshold: float


@dataclass
class DependencyOutcome:
    """Predictions of a system for the test sentences, and facts about it.

    Attributes
    ----------
    trees : list of DepTree or None
        Predicted trees; None if training failed.
    facts : dict
        For a parser `seconds` (None if training was interrupted); for a reranker also `memory` in bytes,
        `n_features`, `n_templates`, `reached`, `beta`, `oracle` and `test_seconds`.
    failure : str
        Reason why there are no trees.
    """

    trees: list[DepTree] | None
    facts: Values = field(default_factory=dict)
    failure: str = ""


class Bench:
    """A treebank for training and testing a parser and its rerankers; results are kept."""

    def __init__(self, files: CorpusFiles, settings: RerankingSettings, inputs: Inputs) -> None:
        self.settings = settings
        self.corpus = read_corpus(files, settings.n_sentences)
        self._files, self._store = files, inputs.store
        self._has_lists = False

    def base(self) -> DependencyOutcome:
        """Return the predictions of the parser for the test sentences."""
        return self._outcome(self._store.find(self._name("base"), self._test_parser))

    def _test_parser(self) -> Values:
        path = self._trained_parser()
        trees = load_parser(path, DependencyParser, n_jobs=self.settings.n_jobs).predict(self.corpus.test)
        return {**_columns(trees), **(self._store.get(path.stem) or {"seconds": None})}

    def reranked(self, ranking: Ranking) -> DependencyOutcome:
        """Return the predictions of a reranker, which is trained in a separate process."""
        shared = {name: getattr(self.settings, name) for name in ("k", "folds", "random_state", "n_jobs")}
        options = {**ranking._asdict(), **shared}
        if ranking.learner == "kernel" or ranking.space == "template":
            del options["threshold"]  # nothing is mined
        chosen = DependencyReranker(**options).result_params()
        del chosen["significance_level"]  # tables show the reranker even if its gain is not significant
        name = self._name("reranked", *chosen.values())
        if (kept := self._store.get(name)) is None:
            unfinished = self._store.unfinished(name)
            is_resumed = unfinished.exists()
            task = self._task(options, unfinished)
            try:
                found = run_alone(f"{__name__}:train_reranker", task)
            except LostProcessError as error:
                return DependencyOutcome(None, failure=str(error))
            kept = self._store.put(name, {**found, "seconds": None} if is_resumed else found)
            self._store.forget_unfinished(name)
        return self._outcome(kept)

    def compare(
        self, outcome: DependencyOutcome, base: DependencyOutcome, metric: str = "uas"
    ) -> SignificanceResult:
        """Test whether two systems differ significantly."""
        assert outcome.trees
        assert base.trees
        return significance(
            self.corpus.test,
            outcome.trees,
            base.trees,
            metric=metric,
            random_state=self.settings.random_state,
            punctuation=self._punctuation,
        )

    def comparison(
        self, outcome: DependencyOutcome, base: DependencyOutcome, metric: str = "uas"
    ) -> dict[str, Any]:
        """Return the cells that compare an outcome with another; empty if the outcome has no trees."""
        if not outcome.trees:
            return {}
        test = self.compare(outcome, base, metric)
        return {"difference": test.difference, "interval": test.interval, "p_value": test.p_value}

    def row(
        self, title: str, outcome: DependencyOutcome, base: DependencyOutcome | None, *metrics: str
    ) -> dict[str, Any]:
        """Return a row of a table: scores and facts of an outcome, and its UAS gain over the baseline."""
        scores = {metric: self.score(outcome, metric) for metric in metrics}
        row = {"title": title, **scores, **outcome.facts, "failure": outcome.failure}
        return row | self.comparison(outcome, base) if base else row

    def score(self, outcome: DependencyOutcome, metric: str = "uas") -> float | None:
        """Return a score of an outcome, in percent; None if there are no trees."""
        if outcome.trees is None:
            return None
        found = attachment(self.corpus.test, outcome.trees, punctuation=self._punctuation)
        return float(getattr(found, metric))

    def facts(self) -> dict[str, str]:
        """Return the settings that affect a result as text, by name."""
        return {"treebank": f"{self.corpus.name}: {self.corpus.describe()}", **self.settings.facts()}

    @property
    def _punctuation(self) -> bool | str:
        return True if self.settings.punctuation == "all" else self.settings.punctuation

    @cached_property
    def _parser_name(self) -> str:
        return self.settings.parser_name(self.corpus, self.settings.tags)

    def _name(self, *what: object) -> str:
        """Return the name under which an outcome is stored."""
        return make_name(self._parser_name, *what, trees=(self.corpus.test,))

    def _trained_parser(self) -> Path:
        """Return the file of the parser; train it if necessary."""
        return self._store.train(
            self._parser_name,
            lambda: self.settings.make_parser(self.settings.tags),
            lambda: (self.corpus.train, self.corpus.dev),
            about=f"{self.corpus.name}: training the parser",
        )

    def _task(self, options: Values, unfinished: Path) -> Values:
        """Return the task of a reranker's process; first make the parser and candidate lists if necessary."""
        settings, parser, lists = self.settings, self._trained_parser(), self._store.path("lists", "")
        if not self._has_lists:
            report(f"{self.corpus.name}: candidate lists of the training sentences")
            jackknife_lists(
                load_parser(parser, DependencyParser, n_jobs=settings.n_jobs),
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

    def _outcome(self, kept: Values) -> DependencyOutcome:
        columns = zip(self.corpus.test, kept.pop("heads"), kept.pop("deprels"), strict=True)
        return DependencyOutcome(
            [tree.with_heads(heads, relations) for tree, heads, relations in columns], kept
        )


def train_reranker(task: Values) -> Values:
    """Train and test the reranker that `task` describes; `run_alone` calls this function."""
    name, train, dev, test = task["files"]
    files = CorpusFiles(name, Path(train), dev and Path(dev), Path(test))
    corpus = read_corpus(files, task["n_sentences"])
    parser = load_parser(Path(task["parser"]), DependencyParser, n_jobs=task["options"]["n_jobs"])
    # Tables show the reranker even if its gain is not significant.
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


def _columns(trees: Sequence[DepTree]) -> Values:
    return {"heads": [tree.heads.tolist() for tree in trees], "deprels": [tree.deprels for tree in trees]}


def describe_row(row: Row) -> str:
    """Return a row of a table as a line of text."""
    if row["failure"]:
        return f"{row['title']}: {row['failure']}"
    return f"{row['title']}: UAS {row['uas']:.2f} ({row['difference']:+.2f}, p = {row['p_value']:.4f})"


def column_of(rows: Sequence[Row], key: str) -> list[Any]:
    """Return the value of each row under a key; None if it is missing."""
    return [row.get(key) for row in rows]


def _describe(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_describe, value))
    return "all" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
