"""Settings, parsers, candidate lists and rerankers of the experiments of Titov & Henderson (2005).

Parsers, candidate lists, trained rerankers and their choices are stored. All rerankers of a parser use the
same candidate lists for training and testing.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import issparse

from treewright._naming import named, setting
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
PERCEPTRON = "perceptron"
NETWORK_OPTIONS = (
    "units",
    "epochs",
    "cell",
    "optimizer",
    "learning_rate",
    "batch_size",
    "dropout",
    "average",
    "dev_beam",
    "random_state",
    "n_jobs",
)
"""Settings that are options of the left-corner parser."""
ASIDE = 10
"""If the dev set is not used for tuning, one in this many training sentences is held out for tuning."""
SAMPLE = 50
"""Number of candidate lists whose features are counted."""


@dataclass(frozen=True)
class DerivedSettings(ThreadedSettings):
    """Settings of experiments with kernels derived from a left-corner parser.

    Parameters
    ----------
    epochs : int, optional
        Maximum number of training epochs of the left-corner parsers (default: the parser's).
    k : int
        Length of the candidate lists of each parser.
    folds : int, optional
        Number of jackknife folds for the training lists (by default, no jackknifing, as in the paper).
    systems : tuple of str, optional
        Rows of the table (default: all).
    large_threshold : int
        Minimum count for a word to be in the large vocabulary.
    units : int, optional
        Number of hidden units of the networks (default: the parser's).
    cell : {"gated", "tanh", "sigmoid"}
        Type of the networks' units (in the paper: sigmoid).
    optimizer : {"adam", "momentum"}
        Optimizer of the networks.
    learning_rate : float, optional
        Initial learning rate of the networks (default: the parser's).
    batch_size : int, optional
        Number of decisions per weight update (default: the parser's; in the paper: 1).
    dropout : float, optional
        Dropout of the networks (default: the parser's).
    average : bool
        Use a moving average of the weights over recent training steps. The paper uses the final weights.
    dev_beam : int, optional
        Maximum beam width in evaluations between epochs (default: the parser's; in the paper: 5).
    list_sentences : int, optional
        Train rerankers on the candidate lists of the first N training sentences (default: all).
    reranker_epochs : int
        Training epochs of the rerankers.
    learner : {"perceptron", "svm", "softmax", "expected-loss"}
        Learner for derived kernels (softmax and expected-loss are computed over each list). Tree kernels
        always use the perceptron.
    penalty : float, optional
        Strength of the L2 penalty of the SVM or softmax (default: 1).
    voting : bool
        Let all weight vectors of perceptrons vote, as in the paper, instead of averaging them.
    shuffle : bool
        Visit the lists in random order. The paper uses the order of the corpus.
    score_weight : float, optional
        Factor on the parser's score when training with derived kernels (default: 10; in the paper: 1).
    kernel_weight : float, optional
        Weight of the reranker's score (default: tuned on held-out sentences; in the paper: 1).
    """

    epochs: Count | None = None
    k: Annotated[int, Range(2)] = 20
    folds: Annotated[int, Range(2)] | None = None
    systems: tuple[str, ...] | None = None
    large_threshold: Count = 5
    units: Count | None = None
    cell: Literal["gated", "tanh", "sigmoid"] = "gated"
    optimizer: Literal["adam", "momentum"] = "adam"
    learning_rate: Annotated[float, Range(1e-8, 10)] | None = None
    batch_size: Count | None = None
    dropout: Annotated[float, Range(0, 0.9)] | None = None
    average: bool = True
    dev_beam: Count | None = None
    list_sentences: Count | None = None
    reranker_epochs: Count = 1
    learner: Literal["perceptron", "svm", "softmax", "expected-loss"] = "perceptron"
    penalty: Annotated[float, Range(1e-12, 1e12)] | None = None
    voting: bool = False
    shuffle: bool = True
    score_weight: Annotated[float, Range(0, 1e12)] | None = None
    kernel_weight: Annotated[float, Range(0, 1e12)] | None = None

    def check(self) -> None:
        """Raise `InputError` for an invalid value."""
        super().check()
        if self.learner == PERCEPTRON and self.penalty is not None:
            found = f"{named('penalty')} has no effect with {setting('learner', self.learner)}"
            raise InputError(f"{found}; remove it, or choose another learner")

    def learning(self, kernel: str) -> Values:
        """Return the options of a reranker that affect its training on given lists."""
        if kernel == NO_KERNEL:
            return {}
        if kernel == SST or self.learner == PERCEPTRON:
            return {"epochs": self.reranker_epochs, "voting": self.voting, "shuffle": self.shuffle} | (
                {} if kernel == SST else given_options(self, ["score_weight"])
            )
        return given_options(self, ["learner", "penalty", "score_weight"])

    @property
    def fewer_lists(self) -> dict[str, int]:
        """Maximum number of candidate lists for each kernel or choice of network weights."""
        return {}

    def n_lists(self, kernel: str, weights: str = "output") -> int | None:
        """Return the number of training lists of a reranker; None for all."""
        wanted = [self.fewer_lists.get(kernel), self.fewer_lists.get(weights), self.list_sentences]
        return min((each for each in wanted if each is not None), default=None)


class ListedSentences(NamedTuple):
    """Sentences with their candidates."""

    gold: list[ConstTree]
    lists: list[ParseList]

    def take(self, n_lists: int | None) -> "ListedSentences":
        """Return the first `n_lists`; all if it is None."""
        return ListedSentences(self.gold[:n_lists], self.lists[:n_lists])

    def trees(self, places: Sequence[int]) -> list[ConstTree]:
        """Return one candidate of each sentence."""
        return [each.trees[place] for each, place in zip(self.lists, places, strict=True)]

    def parses(self, sentences: Sequence[SentenceLike]) -> list[list[Parse]]:
        """Return the parses of some of the sentences; the lists must come from a single parser."""
        known = dict(zip(self.gold, self.lists, strict=True))
        lists = [known[each] for each in sentences if isinstance(each, ConstTree)]
        return [list(map(Parse, trees, scores[:, 0].tolist())) for trees, scores in lists]


class TimedReranker(NamedTuple):
    """A reranker with its training time.

    Attributes
    ----------
    reranker : CandidateReranker
        The trained reranker.
    seconds, network_seconds : float
        Total training time, and the part in which the network processes the candidates, which is the same for
        all kernels.
    n_nonzero : float or None
        Mean number of non-zero features per candidate; None if the kernel has no features.
    """

    reranker: CandidateReranker
    seconds: float
    network_seconds: float
    n_nonzero: float | None

    @property
    def facts(self) -> Values:
        """Facts that are stored with the reranker."""
        return {name: value for name, value in self._asdict().items() if name != "reranker"}


class ConstituentOutcome(NamedTuple):
    """The chosen trees of the scored sentences, and facts about them."""

    trees: list[ConstTree]
    facts: Values


class _TimedLists:
    """Candidate lists that the network processes on access; the time for this is accumulated."""

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
    """A reranker of trained parsers, with candidate lists that are shared with other rerankers."""

    _timed: list[_TimedLists] | None = None
    """The timed candidate lists."""
    known: Sequence[ListedSentences] = ()
    """Existing candidate lists of each parser; if given, they are used instead of parsing."""

    def learn(self, lists: Sequence[ParseList], losses: list[FloatArray]) -> TimedReranker:
        """Train a reranker on candidate lists; its training time does not include earlier steps."""
        n_nonzero = self._count_features(lists)  # also compiles
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
        """Return the mean number of non-zero features per candidate in a sample of lists."""
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
        """Use a trained reranker; tune its weight and the weight of a second parser on other sentences."""
        self.reranker_ = reranker
        self.tuning_ = self._tune(listed.lists, listed.gold)

    def choose(self, lists: Sequence[ParseList]) -> list[int]:
        """Return the indices of the best trees."""
        ranked = self._rank(lists, 1)
        return [each.trees.index(best.tree) for each, (best,) in zip(lists, ranked, strict=True)]

    def _parse(
        self, parsers: Sequence[AnyParser], sentences: Sequence[SentenceLike], n_jobs: int | None = None
    ) -> list[ParseList]:
        if not self.known:
            return super()._parse(parsers, sentences, n_jobs)
        return join_parses(parsers, [each.parses(sentences) for each in self.known], n_jobs=n_jobs)

    def list_training(self, trees: list[ConstTree], dev: list[ConstTree], folder: Path) -> list[ParseList]:
        """Return the candidate lists of training sentences, which are stored in a folder."""
        return self._training_lists(trees, dev, folder)

    def list_others(self, trees: list[ConstTree], folder: Path) -> list[ParseList]:
        """Return all parsers' candidate lists for other sentences, which are stored in a folder."""
        return self._list(self._parsers(), trees, folder)


class DerivedBench(ConstituentBench):
    """A treebank for training parsers and rerankers of their candidates.

    Parameters
    ----------
    settings : DerivedSettings
        Settings of the experiment.
    inputs : Inputs
        Inputs of the experiment.
    is_dev_scored : bool
        Whether to score the dev set instead of the test set. In that case, or without a dev set, tuning uses
        held-out training sentences.
    leftcorner_parser, constituent_parser : Path, optional
        Files of parsers trained with gold tags; a parser without a file is trained.
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
        """Fingerprints of the training, dev and test set."""
        parts = zip(("train", "dev", "test"), self.treebank[1:], strict=True)
        return {part: fingerprint([], trees) for part, trees in parts}

    def leftcorner(self, threshold: int) -> LeftCornerParser:
        """Return the given left-corner parser; if there is none, train and store one."""
        path = self.leftcorner_parser or self._train_leftcorner(self.make_leftcorner(threshold))
        return _load(path, LeftCornerParser, self.settings.n_jobs)

    def make_leftcorner(self, threshold: int) -> LeftCornerParser:
        """Return an unfitted left-corner parser."""
        return LeftCornerParser(min_count=threshold, **given_options(self.settings, NETWORK_OPTIONS))

    def _train_leftcorner(self, parser: LeftCornerParser) -> Path:
        return self.store.train(
            parser.identity(self.treebank.train, self.treebank.dev)[:NAME_LENGTH],
            lambda: parser,
            lambda: (self.treebank.train, self.treebank.dev),
            about=f"{self.treebank.name}: left-corner parser, minimum word count {parser.min_count}",
        )

    def constituent(self) -> ConstituentParser:
        """Return the given `ConstituentParser`; if there is none, train and store one."""
        if self.constituent_parser:
            return _load(self.constituent_parser, ConstituentParser, self.settings.n_jobs)
        return self.trained(ParserSystem("shift-reduce", "gold", None)).parser


class Candidates:
    """The candidates of one or two parsers, and the choices of rerankers.

    Parameters
    ----------
    bench : DerivedBench
        The treebank.
    parser : LeftCornerParser or ConstituentParser
        The first parser.
    both : tuple (Candidates, Candidates), optional
        The candidates of the first and of the second parser, if there are two. Rerankers are trained on the
        candidates of the first parser.
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
        options: Values = {"kernel": kernel, "weights": weights, "predict_by": "score"}
        options |= settings.learning(kernel)
        if kernel != NO_KERNEL:
            options |= given_options(settings, ["kernel_weight"])
        options |= {name: getattr(settings, name) for name in ("k", "folds", "random_state", "n_jobs")}
        others = () if self.second is None else (self.second,)
        reranker = ListReranker(parser=self.parser, others=others, **options)
        reranker.parser_ = self.parser
        return reranker

    @cached_property
    def name(self) -> str:
        """Name under which results that depend on the parsers are stored."""
        parsers = [each for each in (self.parser, self.second) if each is not None]
        models = [identify(each.get_state()) for each in parsers]
        return make_name(self._bench.settings.k, *models)

    @staticmethod
    def _name(*what: object) -> str:
        return fingerprint(what)[:NAME_LENGTH]

    def _list(self, part: str) -> ListedSentences:
        trees = getattr(self._bench.treebank, part)
        folder = self._bench.store.path("lists", self._name(self.name, self._bench.part_names[part]))
        # Candidate lists do not depend on the kernel.
        kernel = SST if self.second is None else NO_KERNEL
        reranker = self._reranker(kernel)
        reranker.known = [each.listed(part) for each in self._both or ()]
        return ListedSentences(trees, reranker.list_others(trees, folder))

    def listed(self, part: str) -> ListedSentences:
        """Return the candidate lists of the ``"dev"`` or ``"test"`` set."""
        if part not in self._listed:
            self._listed[part] = self._list(part)
        return self._listed[part]

    @property
    def tuning(self) -> ListedSentences:
        """The candidate lists for tuning weights."""
        return self.listed("dev")

    @property
    def scored(self) -> ListedSentences:
        """The candidate lists that are scored."""
        return self.listed("test")

    def training(self, n_lists: int | None) -> ListedSentences:
        """Return the first parser's candidate lists for the first training sentences."""
        settings, bench = self._bench.settings, self._bench
        # Fold parsers need all sentences. Otherwise parse only as many as the rerankers use,
        # which are few if there are only tree kernels.
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
        """Return a reranker trained on the training lists; the reranker is stored."""
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
            settings.learning(kernel),
            settings.random_state,
            SST_DECAY,
            DERIVED_WEIGHT,
            SAMPLE,
        )

    def alone(self) -> ConstituentOutcome:
        """Return the best trees of the first parser."""
        return ConstituentOutcome(self.scored.trees([0] * len(self.scored.lists)), {})

    def reranked(self, kernel: str, weights: str = "output") -> ConstituentOutcome:
        """Return the trees chosen by a reranker or, without a kernel, by the scores of both parsers."""
        bench, source = self._bench, self._both[0] if self._both else self
        learnt = None if kernel == NO_KERNEL else source.learnt(kernel, weights)
        origin = source._learnt_name(kernel, weights) if learnt else NO_KERNEL
        name = self._name(
            self.name,
            origin,
            bench.settings.kernel_weight if learnt else None,
            bench.part_names["dev"],
            bench.part_names["test"],
        )

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
        """Return the oracle F1 of the scored candidate lists."""
        name = self._name(self.name, "oracle", self._bench.part_names["test"])
        kept = self._bench.store.find(name, lambda: {"f1": best_f1(count_brackets(*self.scored))})
        return float(kept["f1"])


def _divide(treebank: ConstituencyTreebank, *, is_dev_scored: bool) -> ConstituencyTreebank:
    """Return the sentences for training, tuning and scoring, as trees with words."""
    treebank = ConstituencyTreebank(treebank.name, *map(with_words, treebank[1:]))
    if is_dev_scored and not treebank.dev:
        raise InputError(f"{treebank.name} has no dev set; expected one for scoring")
    if treebank.dev and not is_dev_scored:
        return treebank
    if len(treebank.train) < ASIDE:
        found = f"{treebank.name} has {len(treebank.train)} training sentences"
        raise InputError(f"{found}; expected at least {ASIDE}, since one in {ASIDE} is held out")
    aside = treebank.train[ASIDE - 1 :: ASIDE]
    rest = [tree for at, tree in enumerate(treebank.train, 1) if at % ASIDE]
    return ConstituencyTreebank(treebank.name, rest, aside, treebank.dev if is_dev_scored else treebank.test)


def _load(path: Path, model: type[Parser], n_jobs: int) -> Parser:
    """Load a parser; raise `InputError` unless it is of this class and uses gold tags."""
    parser = load_parser(path, model, n_jobs=n_jobs)
    if not parser.needs_tags:
        raise InputError(f"{path} predicts tags; expected a parser trained with --tags gold")
    return parser
