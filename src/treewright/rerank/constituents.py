"""ConstituentReranker: the best of a constituency parser's best trees, or of those of several parsers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np

from treewright._naming import named, setting
from treewright._typing import Count, FloatArray, Folds, NonNegativeInt, Range
from treewright._validate import check_integer, check_params
from treewright._version import __version__
from treewright.annotation.sentences import SentenceLike, list_sentences
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.consttree import ConstTree
from treewright.data.documents import deal_folds
from treewright.errors import InputError
from treewright.kernels.base import Kernel
from treewright.kernels.convolution import SubsetTreeKernel
from treewright.kernels.decisions import GradientList
from treewright.kernels.derived import (
    DerivedKernel,
    EfficientTopRerankingKernel,
    FisherKernel,
    TopKernel,
    TopRerankingKernel,
)
from treewright.kernels.examples import KernelField
from treewright.model import ListOf, Submodel, Value, expect, identify, saved
from treewright.parsing.constituent.annotator import ConstituentAnnotator
from treewright.parsing.constituent.parser import ConstituentParser, Parse
from treewright.parsing.leftcorner.parser import LeftCornerParser
from treewright.parsing.sentences import read_sentences
from treewright.parsing.span.parser import SpanParser
from treewright.progress import prefixed, report, task, track
from treewright.rerank.any_candidates import CandidateReranker
from treewright.rerank.parse_lists import (
    AnyParser,
    ParseList,
    TracedLists,
    best_f1,
    corpus_f1,
    count_brackets,
    f1_losses,
    keep_derivable,
    list_ends,
    list_parses,
    lists_from_state,
    lists_state,
    rescore,
)
from treewright.rerank.score_weights import ScoreParts, ScoreWeights, tune
from treewright.tagging.tagger import Tagger

KERNELS = {
    "fisher": FisherKernel,
    "top": TopKernel,
    "top-rerank": TopRerankingKernel,
    "efficient-top": EfficientTopRerankingKernel,
}
"""Kernels that are derived from the network of a parser, by name."""
SST = "sst"
SST_DECAY = 0.4
NO_KERNEL = "none"
KernelName: TypeAlias = Literal["fisher", "top", "top-rerank", "efficient-top", "sst", "none"]
LEARNING = (*KERNELS, SST)
"""Kernels with which there is something to learn."""
DERIVED_WEIGHT = 10.0
"""With 1, a single mistake outweighs the parser's score, as features have squared lengths of hundreds; with
100 and more, thousands of lists are not enough to learn what they could teach."""
BATCH_SIZE = 200
"""Sentences that are parsed, and kept, at a time."""


PARSERS = (LeftCornerParser, ConstituentParser, SpanParser)


def _read_weights(numbers: Sequence[Any]) -> ScoreWeights:
    """Return the weights that were saved."""
    kernel_weight, others, *scores = numbers
    return ScoreWeights(float(kernel_weight), tuple(map(float, others)), *map(float, scores))


class ConstituentReranker(ConstituentAnnotator):
    """A constituency parser that chooses among its best trees, or those of several parsers.

    The final score of a tree is that of the parser, that of a reranker that has learnt from lists of training
    sentences, and those of other parsers, if there are any; the dev set decides how much each of them counts.

    Parameters
    ----------
    parser : LeftCornerParser, ConstituentParser or SpanParser, optional
        Trained parser to rerank, in place of training one. In Python it may also be one that `fit` will
        train; without it, a `LeftCornerParser` is trained.
    others : tuple of LeftCornerParser, ConstituentParser or SpanParser
        Trained constituency parsers whose candidates and scores are added. The reranker learns from the lists
        of the first parser alone. All must take tags as they are given.
    kernel : {"fisher", "top", "top-rerank", "efficient-top", "sst", "none"} or Kernel
        Rerank candidates by a kernel. The first four are derived from the network of a `LeftCornerParser`;
        ``"sst"`` counts common fragments (Collins & Duffy 2002); with ``"none"`` there are only the scores of
        several parsers.
    weights : {"output", "all"}
        Network weights that derived kernels differentiate by. All of them need PyTorch, and much time.
    learner : {"perceptron", "svm"}
        Voted perceptron, or structured support vector machine. See `CandidateReranker`.
    epochs : int
        Perceptron training epochs.
    penalty : float
        Penalty C of the support vector machine.
    score_weight : float, optional
        Factor of the parser's score in training (10 for derived kernels, else 1). More lets evidence grow
        more slowly; the features of derived kernels are large.
    k : int
        Number of candidate trees per sentence and parser.
    folds : int, optional
        Number of jackknife folds for the candidate lists (none by default). Each is parsed by a parser that
        learns from the others; without it all are parsed by the parser that has learnt from them, as in the
        paper.
    random_state : int
        Seed of the random numbers.
    n_jobs : int
        Number of threads; results do not depend on it.

    Attributes
    ----------
    parser_ : LeftCornerParser, ConstituentParser or SpanParser
    reranker_ : CandidateReranker or None
    tuning_ : ScoreWeights

    Examples
    --------
    ::

        reranker = ConstituentReranker(parser=LeftCornerParser(), kernel="efficient-top").fit(trees, dev)
        reranker.predict(sentences)
    """

    EFFECTIVE_IF: ClassVar = {
        "weights": {"kernel": tuple(KERNELS)},
        "learner": {"kernel": LEARNING},
        "epochs": {"kernel": LEARNING, "learner": ("perceptron",)},
        "penalty": {"kernel": LEARNING, "learner": ("svm",)},
        "score_weight": {"kernel": LEARNING},
        "folds": {"kernel": LEARNING},
    }
    unsaved = ("parser", "n_jobs")
    adjustable = ("k", "n_jobs")
    fields = saved(
        parser_=Submodel(*PARSERS),
        others=ListOf(Submodel(*PARSERS)),
        kernel=KernelField(),
        reranker_=Submodel(CandidateReranker, optional=True),
        tuning_=Value(encode=list, decode=_read_weights),
    )
    parser_: AnyParser
    reranker_: CandidateReranker | None
    tuning_: ScoreWeights

    def __init__(
        self,
        *,
        parser: AnyParser | None = None,
        others: tuple[AnyParser, ...] = (),
        kernel: KernelName | Kernel = "efficient-top",
        weights: Literal["output", "all"] = "output",
        learner: Literal["perceptron", "svm"] = "perceptron",
        epochs: Count = 1,
        penalty: Annotated[float, Range(1e-12, 1e12)] = 1.0,
        score_weight: Annotated[float, Range(0, 1e12)] | None = None,
        k: Annotated[int, Range(2)] = 20,
        folds: Folds | None = None,
        random_state: NonNegativeInt = 0,
        n_jobs: Count = 1,
    ) -> None:
        self.parser = parser
        self.others = others
        self.kernel = kernel
        self.weights = weights
        self.learner = learner
        self.epochs = epochs
        self.penalty = penalty
        self.score_weight = score_weight
        self.k = k
        self.folds = folds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _learn(self, trees: list[ConstTree], dev: list[ConstTree], steps: Path | None) -> None:
        """Learn the parser, unless it has learnt, then to rerank, then how much each score counts."""
        self.parser_ = self._fitted_parser(trees, dev, steps)
        self.reranker_ = None
        if self.kernel != NO_KERNEL:
            lists = self._training_lists(trees, dev, steps)
            self.reranker_ = self._learn_to_rerank(lists, trees)
        self.tuning_ = self._tune(self._list(self._parsers(), dev, steps and steps / "dev"), dev)
        report(str(self.tuning_))

    def _check(self) -> None:
        check_params(self)
        self._check_parsers()
        self._check_kernel()

    def _check_parsers(self) -> None:
        if not isinstance(self.others, tuple | list):
            raise InputError(
                f"{named('others')} is {type(self.others).__name__}; expected a tuple of parsers"
            )
        parsers: list[tuple[str, Any]] = [
            ("parser", self.parser),
            *(("others", each) for each in self.others),
        ]
        expected = " or a ".join(kind.__name__ for kind in PARSERS)
        for name, parser in parsers:
            if not (isinstance(parser, AnyParser) or (name == "parser" and parser is None)):
                found = f"{named(name)} is {type(parser).__name__}"
                raise InputError(f"{found}; expected a {expected}")
        if not self.others:
            if self.kernel == NO_KERNEL:
                found = f"{setting('kernel', NO_KERNEL)} and no {named('others')}"
                raise InputError(f"{found}; expected either another kernel or other parsers")
            return
        for name, parser in parsers:
            if name == "others" and not parser.is_fitted:
                raise InputError(f"{named(name)} has a parser that has learnt nothing; expected trained ones")
            if parser is not None and parser.tags == "predicted":
                found = f"{named(name)} has a parser that predicts tags of its own"
                raise InputError(f"{found}; expected parsers that take given ones")

    def _check_kernel(self) -> None:
        """Find out before long work whether kernel, parser and learner go together."""
        kernel = self._make_kernel()
        found = setting("kernel", self.kernel)
        if isinstance(kernel, DerivedKernel):
            if self.parser is not None and not isinstance(self.parser, LeftCornerParser):
                expected = "a LeftCornerParser, from whose network it is derived"
                raise InputError(f"{found} with a {type(self.parser).__name__}; expected {expected}")
            if self.weights == "all" and isinstance(kernel, TopKernel | EfficientTopRerankingKernel):
                found = f"{found} and {setting('weights', self.weights)}"
                raise InputError(f"{found}; expected {setting('weights', 'output')}, or another kernel")
        elif kernel is not None and self.learner == "svm":
            found = f"{found} and {setting('learner', self.learner)}"
            raise InputError(f"{found}; expected {setting('learner', 'perceptron')}, or a derived kernel")

    def _make_kernel(self) -> Kernel | None:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        if self.kernel == SST:
            # Not normalised, long sentences, which have many more fragments, would count for the most.
            return SubsetTreeKernel(decay=SST_DECAY, normalize=True, n_jobs=self.n_jobs)
        return None if self.kernel == NO_KERNEL else KERNELS[self.kernel]()

    def _fitted_parser(self, trees: list[ConstTree], dev: list[ConstTree], steps: Path | None) -> AnyParser:
        parser = self.parser or LeftCornerParser(random_state=self.random_state, n_jobs=self.n_jobs)
        if parser.is_fitted:
            return parser
        return parser.with_params().fit(trees, dev, checkpoint=steps and steps / "parser")

    def _parsers(self) -> list[AnyParser]:
        return [self.parser_, *self.others]

    def _training_lists(
        self, trees: list[ConstTree], dev: list[ConstTree], steps: Path | None
    ) -> list[ParseList]:
        """Return the lists of training sentences, by the parser, or by those of folds."""
        if self.folds is None:
            return self._list([self.parser_], trees, steps and steps / "lists")
        lists: dict[int, ParseList] = {}
        folds = min(self.folds, len(trees))
        parts, description = deal_folds(trees, folds, random_state=self.random_state)
        report(f"lists of candidates: {description}")
        for number, part in enumerate(track(parts, "lists of candidates", unit="folds"), 1):
            aside = {at: trees[at] for at in part.tolist()}
            rest = [tree for at, tree in enumerate(trees) if at not in aside]
            parser = self._fold_parser(f"fold{number}", rest, dev, steps)
            made = self._list([parser], [*aside.values()], steps and steps / f"fold{number}-lists")
            if isinstance(self.parser_, LeftCornerParser):
                made = keep_derivable(self.parser_, made, [*aside.values()])
            lists.update(zip(aside, made, strict=True))
        return [lists[at] for at in range(len(trees))]

    def _fold_parser(
        self, name: str, trees: list[ConstTree], dev: list[ConstTree], steps: Path | None
    ) -> AnyParser:
        with prefixed(f"{name}: "):
            return self.parser_.with_params().fit(trees, dev, checkpoint=steps and steps / name)

    def _list(
        self, parsers: Sequence[AnyParser], trees: Sequence[ConstTree], folder: Path | None
    ) -> list[ParseList]:
        """Return the candidates of sentences, made or as they were kept."""
        kept = None
        if folder:
            models = [identify(parser.get_state()) for parser in parsers]
            kept = Checkpoint(folder, fingerprint([__version__, BATCH_SIZE, self.k, *models], trees))
        lists: list[ParseList] = []
        with task("finding the best trees", total=len(trees)) as counted:
            for batch in counted.slices(len(trees), BATCH_SIZE):
                name = f"from{batch.start}"
                state = kept.load(name) if kept else None
                if state is not None:
                    lists += lists_from_state(state)
                    continue
                found = self._parse(parsers, trees[batch])
                if kept:
                    kept.save(name, lists_state(found))
                lists += found
                report(f"best trees of {len(lists)} of {len(trees)} sentences")
        return lists

    def _parse(
        self, parsers: Sequence[AnyParser], sentences: Sequence[SentenceLike], n_jobs: int | None = None
    ) -> list[ParseList]:
        return list_parses(parsers, sentences, self.k, n_jobs=self.n_jobs if n_jobs is None else n_jobs)

    def _learn_to_rerank(self, lists: Sequence[ParseList], gold: Sequence[ConstTree]) -> CandidateReranker:
        counts = count_brackets(gold, lists)
        losses = [f1_losses(each) for each in counts]
        best = np.concatenate([each[:1] for each in counts])
        report(
            f"lists of {len(lists)} training sentences: F1 {corpus_f1(best):.2f} of the first trees, "
            f"{best_f1(counts):.2f} of the best"
        )
        return self._train(lists, losses)

    def _train(self, lists: Sequence[ParseList], losses: list[FloatArray]) -> CandidateReranker:
        kernel = self._make_kernel()
        reranker = CandidateReranker(
            kernel,
            learner=self.learner,
            epochs=self.epochs,
            penalty=self.penalty,
            base_weights=(self._score_weight,),
            random_state=self.random_state,
        )
        if self.folds is not None and isinstance(kernel, DerivedKernel):
            # Learning begins at the network from which features are derived.
            lists = rescore(cast(LeftCornerParser, self.parser_), lists)
        scores = np.split(self._base_scores(lists), list_ends(lists))
        return reranker.fit(self._see(lists), losses, scores)

    @property
    def _score_weight(self) -> float:
        if self.score_weight is not None:
            return float(self.score_weight)
        return DERIVED_WEIGHT if isinstance(self._make_kernel(), DerivedKernel) else 1.0

    def _see(self, lists: Sequence[ParseList]) -> Any:  # noqa: ANN401
        """Return lists as the reranker sees them."""
        kernel = self._make_kernel()
        if isinstance(kernel, DerivedKernel):
            needs_all = not isinstance(kernel, EfficientTopRerankingKernel)
            how = {"weights": self.weights, "distributions": needs_all}
            return TracedLists(cast(LeftCornerParser, self.parser_), lists, how)
        return [each.trees for each in lists]

    def _base_scores(self, lists: Sequence[ParseList]) -> FloatArray:
        """Return the scores of the first parser, or what a derived kernel makes of them."""
        kernel = self._make_kernel()
        if isinstance(kernel, TopKernel):
            return kernel.scores(self._see(lists))
        logs = [each.scores[:, 0] for each in lists]
        if isinstance(kernel, DerivedKernel):
            # The score of these kernels depends on probabilities alone.
            return kernel.scores([GradientList(each, np.zeros((len(each), 0))) for each in logs])
        return np.concatenate(logs)

    def _kernel_scores(self, lists: Sequence[ParseList]) -> FloatArray:
        """Return what the reranker has learnt of all candidates."""
        if self.reranker_ is None:
            return np.zeros(sum(len(each.trees) for each in lists))
        nothing = [np.zeros(len(each.trees)) for each in lists]
        found = np.concatenate(self.reranker_.decision_function(self._see(lists), nothing))
        return found / (self.reranker_.base_weight_ or 1.0)

    def _other_scores(self, lists: Sequence[ParseList]) -> FloatArray:
        return np.concatenate([each.scores[:, 1 : 1 + len(self.others)] for each in lists])

    def _tune(self, lists: Sequence[ParseList], gold: Sequence[ConstTree]) -> ScoreWeights:
        """Find out on other sentences how much the reranker and other parsers count."""
        parts = ScoreParts(self._base_scores(lists), self._kernel_scores(lists), self._other_scores(lists))
        return tune(parts, count_brackets(gold, lists))

    def predict(self, sentences: Sequence[SentenceLike]) -> list[ConstTree]:
        """Parse sentences; the trees have all of their words, as they were written."""
        return [parses[0].tree for parses in self.kbest(sentences, 1)]

    def kbest(
        self, sentences: Sequence[SentenceLike], k: int = 20, *, n_jobs: int | None = None
    ) -> list[list[Parse]]:
        """Return the `k` best of the candidates of each sentence, the best first, with their final scores.

        A tree without words is its own parse. `n_jobs` is that of the reranker unless given.
        """
        self.check_is_fitted()
        check_integer("k", k, minimum=1)
        sentences = list_sentences(sentences, self)
        read = read_sentences(sentences, self, None if self.needs_tags else self.own_tagger)
        found = [
            [Parse(sentence, 0.0)] if isinstance(sentence, ConstTree) and not each.words else []
            for sentence, each in zip(sentences, read, strict=True)
        ]
        places = [at for at, parses in enumerate(found) if not parses]
        with task("parsing and reranking", total=len(places)) as counted:
            for batch in counted.slices(len(places), BATCH_SIZE):
                some = places[batch]
                lists = self._parse(self._parsers(), [sentences[at] for at in some], n_jobs)
                for at, parses in zip(some, self._rank(lists, k), strict=True):
                    found[at] = parses
        return found

    def _rank(self, lists: Sequence[ParseList], k: int) -> list[list[Parse]]:
        base_scores, tuning = self._base_scores(lists), self.tuning_
        # Scores that do not count need not be found.
        kernel_scores = self._kernel_scores(lists) if tuning.kernel_weight else np.zeros_like(base_scores)
        parts = ScoreParts(base_scores, kernel_scores, self._other_scores(lists))
        finals = np.split(parts.add(tuning.kernel_weight, tuning.others), list_ends(lists))
        return [
            [Parse(each.trees[at], float(scores[at])) for at in np.argsort(-scores, kind="stable")[:k]]
            for each, scores in zip(lists, finals, strict=True)
        ]

    @property
    def tags(self) -> str:
        """Where tags come from; see the parser."""
        return str(self._current_parser().tags)

    def using(self, **params: Any) -> Self:  # noqa: ANN401
        """Return a reranker that has learnt the same and differs in some parameters, its parser in `tags`."""
        changed = {name: params.pop(name) for name in ("tags",) if name in params}
        other = super().using(**params)
        other.parser_ = self.parser_.using(**changed)
        return other

    @property
    def tagger_(self) -> Tagger | None:  # type: ignore[override]
        """The parser's own tagger, if it has one; of several parsers none tags."""
        return self.own_tagger

    @property
    def own_tagger(self) -> Tagger | None:
        """The parser's own tagger, if it has one; of several parsers none tags."""
        return None if self.others else self._current_parser().tagger_

    @property
    def known_tags(self) -> list[str]:
        """The tags that the parser was trained with."""
        return self._current_parser().known_tags

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must bring tags."""
        return self._current_parser().needs_tags

    def _current_parser(self) -> AnyParser:
        self.check_is_fitted()
        return self.parser_

    def check_fitted_state(self) -> None:
        """Check that kernel, parsers and reranker go together."""
        self._check()
        kernel = self._make_kernel()
        is_network = isinstance(self.parser_, LeftCornerParser)
        expect(is_network or not isinstance(kernel, DerivedKernel), "a kernel that goes with the parser")
        if self.reranker_ is None:
            expect(kernel is None, "a reranker that has learnt with the kernel")
        else:
            expect(type(self.reranker_.kernel) is type(kernel), "a reranker that has learnt with the kernel")
        expect(len(self.tuning_.others) == len(self.others), "a weight for each of the other parsers")

    def take_fitted(self, other: Self) -> Self:
        """Take over what another reranker has learnt; the parser that is a parameter stays."""
        self.parser_, self.reranker_, self.tuning_ = other.parser_, other.reranker_, other.tuning_
        return self

    def restore(self) -> None:
        """Take the parser that was saved for the parameter, so that it is not trained again."""
        self.parser = self.parser_
        self.others = tuple(self.others)
