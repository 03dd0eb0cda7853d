"""What the experiments of Titov & Henderson (2005) share: settings, parsers, candidate lists and rerankers.

Parsers, the candidate lists of sentences, what rerankers have learnt and what they choose are each kept. All
rerankers of a parser learn from the same lists, and choose from the same.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import issparse

from treewright._typing import Count, FloatArray, Range
from treewright.annotation.sentences import SentenceLike
from treewright.checkpoint import fingerprint
from treewright.data.consttree import ConstTree
from treewright.errors import InputError
from treewright.kernels.derived import DerivedKernel
from treewright.model import identify, load
from treewright.parsing.constituent.parser import ConstituentParser, Parse
from treewright.parsing.leftcorner.parser import LeftCornerParser
from treewright.parsing.sentences import with_words
from treewright.progress import report
from treewright.report.corpora import ConstituencyTreebank
from treewright.report.experiment import Inputs, ThreadedSettings, given_options
from treewright.report.separate_process import Values
from treewright.report.store import NAME_LENGTH, load_parser, make_name
from treewright.report.turian.bench import ConstituentBench, ParserSystem
from treewright.rerank.any_candidates import CandidateReranker
from treewright.rerank.constituents import DERIVED_WEIGHT, NO_KERNEL, SST, SST_DECAY, ConstituentReranker
from treewright.rerank.parse_lists import (
    AnyParser,
    ParseList,
    best_f1,
    count_brackets,
    f1_losses,
    join_parses,
)

Parser = TypeVar("Parser", ConstituentParser, LeftCornerParser)
ASIDE = 10
"""Of so many training sentences, one is set aside for tuning where the dev set is not for that."""
SAMPLE = 50
"""Lists whose features are counted."""


@dataclass(frozen=True)
class DerivedSettings(ThreadedSettings):
    """The settings of experiments with kernels that are derived from a left-corner parser.

    Parameters
    ----------
    epochs : int, optional
        Maximum training epochs of the left-corner parsers, if not their default.
    k : int
        Length of the candidate lists of each parser.
    folds : int, optional
        Number of jackknife folds for the training lists; without it, parsers list candidates of the sentences
        that they were trained on, as in the paper.
    systems : tuple of str, optional
        Rows of the table to fill, if not all.
    large_threshold : int
        Minimum count of words in the large vocabulary.
    units : int, optional
        Hidden units of the networks, if not the parser's default.
    cell : {"gated", "tanh", "sigmoid"}
        Cell of the networks.
    list_sentences : int, optional
        Train rerankers on the lists of the first N training sentences, if not all.
    reranker_epochs : int
        Training epochs of the rerankers.
    """

    epochs: Count | None = None
    k: Annotated[int, Range(2)] = 20
    folds: Annotated[int, Range(2)] | None = None
    systems: tuple[str, ...] | None = None
    large_threshold: Count = 5
    units: Count | None = None
    cell: Literal["gated", "tanh", "sigmoid"] = "gated"
    list_sentences: Count | None = None
    reranker_epochs: Count = 1

    @property
    def fewer_lists(self) -> dict[str, int]:
        """Numbers of sentences that the lists of some kernels, or of some weights, are limited to."""
        return {}

    def n_lists(self, kernel: str, weights: str = "output") -> int | None:
        """Return from how many lists a reranker learns; None for all."""
        wanted = [self.fewer_lists.get(kernel), self.fewer_lists.get(weights), self.list_sentences]
        return min((each for each in wanted if each is not None), default=None)


class ListedSentences(NamedTuple):
    """Sentences with their candidates."""

    gold: list[ConstTree]
    lists: list[ParseList]

    def take(self, n_lists: int | None) -> "ListedSentences":
        """Return the first so many."""
        return ListedSentences(self.gold[:n_lists], self.lists[:n_lists])

    def trees(self, places: Sequence[int]) -> list[ConstTree]:
        """Return one candidate of each sentence."""
        return [each.trees[place] for each, place in zip(self.lists, places, strict=True)]

    def parses(self, sentences: Sequence[SentenceLike]) -> list[list[Parse]]:
        """Return what the one parser of these lists has found for some of the sentences."""
        known = dict(zip(self.gold, self.lists, strict=True))
        lists = [known[each] for each in sentences if isinstance(each, ConstTree)]
        return [list(map(Parse, trees, scores[:, 0].tolist())) for trees, scores in lists]


class TimedReranker(NamedTuple):
    """A reranker, and what its training took.

    Attributes
    ----------
    reranker : CandidateReranker
    seconds, network_seconds : float
        Of the whole training, and of what all kernels need alike: that a network sees the candidates.
    n_nonzero : float or None
        Features of a candidate that are not zero, on average; None if kernels have none.
    """

    reranker: CandidateReranker
    seconds: float
    network_seconds: float
    n_nonzero: float | None

    @property
    def facts(self) -> Values:
        """What is kept beside the reranker."""
        return {name: value for name, value in self._asdict().items() if name != "reranker"}


class ConstituentOutcome(NamedTuple):
    """What is chosen for the sentences that are scored, and facts about it."""

    trees: list[ConstTree]
    facts: Values


class _TimedLists:
    """Lists that a network sees when they are asked for; the seconds that this takes are added up."""

    def __init__(self, lists: Any) -> None:  # noqa: ANN401
        self._lists = lists
        self.sizes = lists.sizes
        self.seconds = 0.0

    def __len__(self) -> int:
        return len(self._lists)

    def __getitem__(self, number: int) -> Any:  # noqa: ANN401
        start = time.perf_counter()
        found = self._lists[number]
        self.seconds += time.perf_counter() - start
        return found

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))


class ListReranker(ConstituentReranker):
    """A reranker of parsers that have learnt, which is given lists that others share."""

    _timed: list[_TimedLists] | None = None
    """The lists seen while time is taken."""
    known: Sequence[ListedSentences] = ()
    """The lists of each parser alone, where there are some: nothing is parsed then."""

    def learn(self, lists: Sequence[ParseList], losses: list[FloatArray]) -> TimedReranker:
        """Return a reranker that learns from lists; what was done before does not count as its time."""
        n_nonzero = self._count_features(lists)  # compiles, too
        self._timed = []
        start = time.perf_counter()
        reranker = self._train(lists, losses)
        seconds = time.perf_counter() - start
        return TimedReranker(reranker, seconds, sum(each.seconds for each in self._timed), n_nonzero)

    def _see(self, lists: Sequence[ParseList]) -> Any:  # noqa: ANN401
        seen = super()._see(lists)
        if self._timed is None or isinstance(seen, list):
            return seen
        self._timed.append(_TimedLists(seen))
        return self._timed[-1]

    def _count_features(self, lists: Sequence[ParseList]) -> float | None:
        """Return how many features of a candidate are not zero, on average over some lists."""
        kernel = self._make_kernel()
        if not isinstance(kernel, DerivedKernel):
            return None
        some = [lists[at] for at in np.unique(np.linspace(0, len(lists) - 1, SAMPLE).astype(int))]
        n_nonzero = 0
        for each in self._see(some):
            rows = kernel.features([each])
            n_nonzero += int(np.count_nonzero(rows.data if issparse(rows) else rows))
        return n_nonzero / sum(len(each.trees) for each in some)

    def tune(self, reranker: CandidateReranker | None, listed: ListedSentences) -> None:
        """Take what was learnt; find out on other sentences how much it and another parser count."""
        self.reranker_ = reranker
        self.tuning_ = self._tune(listed.lists, listed.gold)

    def choose(self, lists: Sequence[ParseList]) -> list[int]:
        """Return the places of the best trees."""
        ranked = self._rank(lists, 1)
        return [each.trees.index(best.tree) for each, (best,) in zip(lists, ranked, strict=True)]

    def _parse(
        self, parsers: Sequence[AnyParser], sentences: Sequence[SentenceLike], n_jobs: int | None = None
    ) -> list[ParseList]:
        if not self.known:
            return super()._parse(parsers, sentences, n_jobs)
        return join_parses(parsers, [each.parses(sentences) for each in self.known], n_jobs=n_jobs)

    def list_training(self, trees: list[ConstTree], dev: list[ConstTree], folder: Path) -> list[ParseList]:
        """Return the lists of sentences to learn from, which are kept in a folder."""
        return self._training_lists(trees, dev, folder)

    def list_others(self, trees: list[ConstTree], folder: Path) -> list[ParseList]:
        """Return the lists of other sentences, of all parsers, which are kept in a folder."""
        return self._list(self._parsers(), trees, folder)


class DerivedBench(ConstituentBench):
    """A treebank on which parsers are trained, and the best of their trees chosen by rerankers.

    Parameters
    ----------
    settings, inputs
        As of other benches.
    is_dev_scored : bool
        Whether the dev set takes the place of the test set. Then, or if there is none, some training
        sentences take the place of the dev set.
    leftcorner_parser, constituent_parser : Path, optional
        Models that take tags as they are given; without one, a parser is trained.
    """

    def __init__(
        self,
        settings: DerivedSettings,
        inputs: Inputs,
        *,
        is_dev_scored: bool,
        leftcorner_parser: Path | None = None,
        constituent_parser: Path | None = None,
    ) -> None:
        super().__init__(settings, inputs)
        self.settings = settings
        self.leftcorner_parser, self.constituent_parser = leftcorner_parser, constituent_parser
        self.whole = self.treebank
        self.treebank = _divide(self.whole, is_dev_scored=is_dev_scored)

    @cached_property
    def part_names(self) -> dict[str, str]:
        """A name for the sentences of each part of the treebank."""
        parts = zip(("train", "dev", "test"), self.treebank[1:], strict=True)
        return {part: fingerprint([], trees) for part, trees in parts}

    def leftcorner(self, threshold: int) -> LeftCornerParser:
        """Return a left-corner parser: the one given, or one that is trained if it is not kept."""
        path = self.leftcorner_parser or self._train_leftcorner(self.make_leftcorner(threshold))
        return _load(path, LeftCornerParser, self.settings.n_jobs)

    def make_leftcorner(self, threshold: int) -> LeftCornerParser:
        """Return a left-corner parser that has learnt nothing yet."""
        names = ("units", "epochs", "cell", "random_state", "n_jobs")
        return LeftCornerParser(min_count=threshold, **given_options(self.settings, names))

    def _train_leftcorner(self, parser: LeftCornerParser) -> Path:
        return self.store.train(
            parser.identity(self.treebank.train, self.treebank.dev)[:NAME_LENGTH],
            lambda: parser,
            lambda: (self.treebank.train, self.treebank.dev),
            about=f"{self.treebank.name}: left-corner parser, words seen {parser.min_count} times",
        )

    def constituent(self) -> ConstituentParser:
        """Return a parser by classification: the one given, or one that is trained if it is not kept."""
        if self.constituent_parser:
            return _load(self.constituent_parser, ConstituentParser, self.settings.n_jobs)
        return self.trained(ParserSystem("shift-reduce", "gold", None)).parser


class Candidates:
    """The candidates of a parser, or of two, and what rerankers make of them.

    Parameters
    ----------
    bench : DerivedBench
    parser : LeftCornerParser or ConstituentParser
    both : tuple (Candidates, Candidates), optional
        Those of the parser and of a second one, where there are two: rerankers learn from the first of them.
    """

    def __init__(
        self,
        bench: DerivedBench,
        parser: AnyParser,
        both: "tuple[Candidates, Candidates] | None" = None,
    ) -> None:
        self.parser, self.second = parser, both[1].parser if both else None
        self._bench, self._both = bench, both
        self._training: dict[int | None, ListedSentences] = {}
        self._listed: dict[str, ListedSentences] = {}

    def _reranker(self, kernel: str, weights: str = "output") -> ListReranker:
        settings = self._bench.settings
        options: Values = {"kernel": kernel, "weights": weights, "epochs": settings.reranker_epochs}
        options |= {name: getattr(settings, name) for name in ("k", "folds", "random_state", "n_jobs")}
        others = () if self.second is None else (self.second,)
        reranker = ListReranker(parser=self.parser, others=others, **options)
        reranker.parser_ = self.parser
        return reranker

    @cached_property
    def name(self) -> str:
        """Under which things are kept that depend on parsers."""
        parsers = [each for each in (self.parser, self.second) if each is not None]
        models = [identify(each.get_state()) for each in parsers]
        return make_name(self._bench.settings.k, *models)

    @staticmethod
    def _name(*what: object) -> str:
        return fingerprint(what)[:NAME_LENGTH]

    def _list(self, part: str) -> ListedSentences:
        trees = getattr(self._bench.treebank, part)
        folder = self._bench.store.path("lists", self._name(self.name, self._bench.part_names[part]))
        # Lists do not depend on kernels.
        kernel = SST if self.second is None else NO_KERNEL
        reranker = self._reranker(kernel)
        reranker.known = [each.listed(part) for each in self._both or ()]
        return ListedSentences(trees, reranker.list_others(trees, folder))

    def listed(self, part: str) -> ListedSentences:
        """Return the lists of a part of the treebank, ``"dev"`` or ``"test"``."""
        if part not in self._listed:
            self._listed[part] = self._list(part)
        return self._listed[part]

    @property
    def tuning(self) -> ListedSentences:
        """The lists of the sentences that weights are tuned on."""
        return self.listed("dev")

    @property
    def scored(self) -> ListedSentences:
        """The lists of the sentences that are scored."""
        return self.listed("test")

    def training(self, n_lists: int | None) -> ListedSentences:
        """Return the lists of the first training sentences, by the first parser alone."""
        settings, bench = self._bench.settings, self._bench
        # Parsers of folds learn from all sentences. Else no more are parsed than some reranker learns from,
        # which are few where there are only tree kernels.
        wanted = n_lists if isinstance(self.parser, ConstituentParser) else settings.list_sentences
        wanted = None if settings.folds else wanted
        if wanted not in self._training:
            trees = bench.treebank.train[:wanted]
            report(f"{bench.treebank.name}: candidates of {len(trees):,} training sentences")
            name = self._name(
                self.name, settings.folds, settings.random_state, wanted, bench.part_names["train"]
            )
            folder = bench.store.path("lists", name)
            lists = self._reranker(SST).list_training(trees, bench.treebank.dev, folder)
            self._training[wanted] = ListedSentences(trees, lists)
        return self._training[wanted].take(n_lists)

    def learnt(self, kernel: str, weights: str = "output") -> TimedReranker:
        """Return what a reranker learns from the training lists, if it is not kept."""
        bench, name = self._bench, self._learnt_name(kernel, weights)
        path = bench.store.path("rerankers", f"{name}.tw")
        if not path.exists():
            gold, lists = self.training(bench.settings.n_lists(kernel, weights))
            losses = [f1_losses(each) for each in count_brackets(gold, lists)]
            report(f"{bench.treebank.name}: {kernel}, {weights} weights, {len(lists):,} lists")
            found = self._reranker(kernel, weights).learn(lists, losses)
            bench.store.put(name, found.facts)
            found.reranker.save(path)
        return TimedReranker(load(path), **(bench.store.get(name) or {}))

    def _learnt_name(self, kernel: str, weights: str) -> str:
        settings = self._bench.settings
        lists = [
            self.name,
            settings.folds,
            settings.n_lists(kernel, weights),
            self._bench.part_names["train"],
        ]
        return self._name(
            *lists,
            kernel,
            weights,
            settings.reranker_epochs,
            settings.random_state,
            SST_DECAY,
            DERIVED_WEIGHT,
            SAMPLE,
        )

    def alone(self) -> ConstituentOutcome:
        """Return what the first parser takes for the best."""
        return ConstituentOutcome(self.scored.trees([0] * len(self.scored.lists)), {})

    def reranked(self, kernel: str, weights: str = "output") -> ConstituentOutcome:
        """Return what a reranker chooses, or, without a kernel, the scores of both parsers."""
        bench, source = self._bench, self._both[0] if self._both else self
        learnt = None if kernel == NO_KERNEL else source.learnt(kernel, weights)
        origin = source._learnt_name(kernel, weights) if learnt else NO_KERNEL
        name = self._name(self.name, origin, bench.part_names["dev"], bench.part_names["test"])

        def choose() -> Values:
            reranker = self._reranker(kernel, weights)
            reranker.tune(learnt.reranker if learnt else None, self.tuning)
            report(str(reranker.tuning_))
            places = reranker.choose(self.scored.lists)
            tuning = reranker.tuning_._asdict()
            tuning["second"] = sum(tuning.pop("others"))
            return {"places": places, "tuning": tuning}

        kept = bench.store.find(name, choose)
        facts = {f"tuning_{part}": value for part, value in kept["tuning"].items()}
        if learnt:
            facts |= learnt.facts
        return ConstituentOutcome(self.scored.trees(kept["places"]), facts)

    def oracle(self) -> float:
        """Return the F1 of the best candidates of the sentences that are scored."""
        name = self._name(self.name, "oracle", self._bench.part_names["test"])
        kept = self._bench.store.find(name, lambda: {"f1": best_f1(count_brackets(*self.scored))})
        return float(kept["f1"])


def _divide(treebank: ConstituencyTreebank, *, is_dev_scored: bool) -> ConstituencyTreebank:
    """Return sentences to learn from, to tune on and to score, as trees with words."""
    treebank = ConstituencyTreebank(treebank.name, *map(with_words, treebank[1:]))
    if is_dev_scored and not treebank.dev:
        raise InputError(f"{treebank.name} has no dev sentences; expected some, which are scored")
    if treebank.dev and not is_dev_scored:
        return treebank
    if len(treebank.train) < ASIDE:
        found = f"{treebank.name} has {len(treebank.train)} training sentences"
        raise InputError(f"{found}; expected at least {ASIDE}, of which one is set aside")
    aside = treebank.train[ASIDE - 1 :: ASIDE]
    rest = [tree for at, tree in enumerate(treebank.train, 1) if at % ASIDE]
    return ConstituencyTreebank(treebank.name, rest, aside, treebank.dev if is_dev_scored else treebank.test)


def _load(path: Path, model: type[Parser], n_jobs: int) -> Parser:
    """Return a parser that was saved, is of some class, and takes tags as they are given."""
    parser = load_parser(path, model, n_jobs=n_jobs)
    if not parser.needs_tags:
        raise InputError(f"{path} predicts tags of its own; expected a parser that takes tags as they are")
    return parser
