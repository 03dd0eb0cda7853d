"""ConstituentReranker: reranks the k-best trees of one or several constituency parsers."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, cast, get_args

import numpy as np

from treewright._naming import named, setting
from treewright._typing import Count, FloatArray, Folds, Jobs, RandomState, Range
from treewright._validate import check_choice, check_integer, check_params
from treewright._version import __version__
from treewright.annotation.contract import Analysis
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
from treewright.metrics.parseval import parseval
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
from treewright.rerank.score_weights import ScoreParts, ScoreWeights, tune, tune_votes
from treewright.rerank.voting import Votes, vote
from treewright.tagging.tagger import Tagger

KERNELS = {
    "fisher": FisherKernel,
    "top": TopKernel,
    "top-rerank": TopRerankingKernel,
    "efficient-top": EfficientTopRerankingKernel,
}
"""Kernels derived from the network of a parser, by name."""
SST = "sst"
SST_DECAY = 0.4
NO_KERNEL = "none"
KernelName: TypeAlias = Literal["fisher", "top", "top-rerank", "efficient-top", "sst", "none"]
LEARNING = (*KERNELS, SST)
"""Kernels for which a reranker is trained."""
PENALISED = ("svm", "softmax", "expected-loss")
"""Learners with an L2 penalty, which need features."""
DERIVED_WEIGHT = 10.0
"""Default factor on the parser's score with derived kernels. With 1, a single mistake outweighs the parser's
score, because the squared norms of the features are in the hundreds; with 100 or more, thousands of lists are
not enough to learn from."""
BATCH_SIZE = 200
"""Number of sentences per batch and checkpoint."""


PARSERS = (LeftCornerParser, ConstituentParser, SpanParser)


def _read_weights(numbers: Sequence[Any]) -> ScoreWeights:
    """Return the saved weights."""
    kernel_weight, others, base, chosen, best, votes, by_brackets = numbers
    return ScoreWeights(
        float(kernel_weight),
        tuple(map(float, others)),
        base=float(base),
        chosen=float(chosen),
        best=float(best),
        votes=None if votes is None else Votes(*(tuple(map(float, each)) for each in votes)),
        by_brackets=float(by_brackets),
    )


class ConstituentReranker(ConstituentAnnotator):
    """Constituency parser that reranks its k-best trees, or those of several parsers.

    The final score of a tree is a weighted sum of the parser's score, the score of a reranker trained on the
    candidate lists of the training sentences, and the scores of other parsers, if any. The weights are tuned
    on the dev set.

    Parameters
    ----------
    parser : LeftCornerParser, ConstituentParser or SpanParser, optional
        Trained parser to rerank, instead of training one. In Python, it may also be an untrained parser,
        which `fit` trains; the default is a `LeftCornerParser`.
    others : tuple of LeftCornerParser, ConstituentParser or SpanParser
        Other trained constituency parsers, whose candidates and scores are added. The reranker is only
        trained on the lists of the first parser. All parsers must accept given tags.
    kernel : {"fisher", "top", "top-rerank", "efficient-top", "sst", "none"} or Kernel
        Kernel for reranking candidates. The first four are derived from the network of a `LeftCornerParser`;
        ``"sst"`` is the subset tree kernel (Collins & Duffy 2002); ``"none"`` only combines the scores of
        several parsers.
    weights : {"output", "all"}
        Network weights used by derived kernels; "all" needs PyTorch and is slow.
    learner : {"perceptron", "svm", "softmax", "expected-loss"}
        Perceptron, structured SVM, or softmax over each list. See `CandidateReranker`; with "expected-loss",
        the softmax minimises the expected loss in F1.
    epochs : int
        Perceptron training epochs.
    voting : bool
        Let every weight vector of the perceptron vote, as in the paper. Otherwise the averaged weights are
        used, which takes less time and memory. The fractions of the votes replace the learnt score.
    shuffle : bool
        Visit the lists in random order. The paper uses the order of the corpus.
    penalty : float
        Strength of the L2 penalty of the SVM or softmax.
    score_weight : float, optional
        Factor on the parser's score in training (default: 10 for derived kernels, else 1). A larger factor
        makes the reranker deviate from the parser more slowly.
    kernel_weight : float, optional
        Weight of the reranker's score in the final score (default: tuned on the dev set). With 1, the final
        score is the same as in training, as in the paper; with `voting`, a large weight lets the votes
        decide.
    predict_by : {"auto", "score", "brackets"}
        Predict the tree with the highest final score, or brackets by a vote of the parsers. These brackets
        are more probable than not; their tree need not be a candidate. "auto" uses "brackets" with
        several parsers and with a SpanParser, if the F1 on DEV is higher.
    k : int
        Number of candidate trees per sentence and parser.
    folds : int, optional
        Number of jackknife folds for the candidate lists (default: no folds). Each fold is parsed by a
        parser trained on the others. Without folds, the parser parses its own training sentences, as in the
        paper.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    n_jobs : int
        Number of threads (-1: all processors); it does not change the results.

    Attributes
    ----------
    parser_ : LeftCornerParser, ConstituentParser or SpanParser
        The trained parser.
    reranker_ : CandidateReranker or None
        The trained reranker; None if `kernel` is "none".
    tuning_ : ScoreWeights
        Weights of the scores, and their F1 on the dev set.

    See Also
    --------
    LeftCornerParser : Parser with the networks that derived kernels need.
    SpanParser : Neural span-based constituency parser.
    ConstituentParser : Constituency parser with boosted decision trees.
    CandidateReranker : Reranks candidates of any kind.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(24, random_state=0).constituents
    >>> parser = tw.LeftCornerParser(epochs=1, units=8, embedding=8)
    >>> reranker = tw.ConstituentReranker(parser=parser, k=3).fit(trees[:16], trees[16:])
    >>> len(reranker.kbest(trees[:1], k=3)[0])
    3
    """

    EFFECTIVE_IF: ClassVar = {
        "weights": {"kernel": tuple(KERNELS)},
        "learner": {"kernel": LEARNING},
        "epochs": {"kernel": LEARNING, "learner": ("perceptron",)},
        "voting": {"kernel": LEARNING, "learner": ("perceptron",)},
        "shuffle": {"kernel": LEARNING, "learner": ("perceptron",)},
        "penalty": {"kernel": LEARNING, "learner": PENALISED},
        "score_weight": {"kernel": LEARNING},
        "kernel_weight": {"kernel": LEARNING},
        "folds": {"kernel": LEARNING},
    }
    unsaved = ("parser", "n_jobs")
    adjustable = ("k", "n_jobs", "predict_by")
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
        learner: Literal["perceptron", "svm", "softmax", "expected-loss"] = "perceptron",
        epochs: Count = 1,
        voting: bool = False,
        shuffle: bool = True,
        penalty: Annotated[float, Range(1e-12, 1e12)] = 1.0,
        score_weight: Annotated[float, Range(0, 1e12)] | None = None,
        kernel_weight: Annotated[float, Range(0, 1e12)] | None = None,
        predict_by: Literal["auto", "score", "brackets"] = "auto",
        k: Annotated[int, Range(2, 10_000)] = 20,
        folds: Folds | None = None,
        random_state: RandomState = 0,
        n_jobs: Jobs = 1,
    ) -> None:
        self.parser = parser
        self.others = others
        self.kernel = kernel
        self.weights = weights
        self.learner = learner
        self.epochs = epochs
        self.voting = voting
        self.shuffle = shuffle
        self.penalty = penalty
        self.score_weight = score_weight
        self.kernel_weight = kernel_weight
        self.predict_by = predict_by
        self.k = k
        self.folds = folds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _learn(self, trees: list[ConstTree], dev: list[ConstTree], steps: Path | None) -> None:
        """Train the parser if necessary, then the reranker, then tune the weights of the scores."""
        self.parser_ = self._fitted_parser(trees, dev, steps)
        self.reranker_ = None
        if self.kernel != NO_KERNEL:
            lists = self._training_lists(trees, dev, steps)
            self.reranker_ = self._learn_to_rerank(lists, trees)
        self.tuning_ = self._tune(self._list(self._parsers(), dev, steps and steps / "dev"), dev)
        report(str(self.tuning_))

    def _check(self) -> None:
        if not isinstance(self.kernel, Kernel):
            check_choice("kernel", self.kernel, get_args(KernelName))
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
                raise InputError(f"{found}; expected another kernel, or other parsers")
            return
        for name, parser in parsers:
            if name == "others" and not parser.is_fitted:
                raise InputError(f"{named(name)} has an untrained parser; expected trained parsers")
            if parser is not None and parser.tags == "predicted":
                found = f"{named(name)} has a parser that predicts its own tags"
                raise InputError(f"{found}; expected parsers that use given tags")

    def _check_kernel(self) -> None:
        """Check early that kernel, parser and learner are compatible."""
        kernel = self._make_kernel()
        found = setting("kernel", self.kernel)
        if isinstance(kernel, DerivedKernel):
            if self.parser is not None and not isinstance(self.parser, LeftCornerParser):
                expected = "a LeftCornerParser, whose network defines the kernel"
                raise InputError(
                    f"{found} does not work with a {type(self.parser).__name__}; expected {expected}"
                )
            if self.weights == "all" and isinstance(kernel, TopKernel | EfficientTopRerankingKernel):
                found = f"{found} and {setting('weights', self.weights)}"
                raise InputError(f"{found}; expected {setting('weights', 'output')}, or another kernel")
        elif kernel is not None and self.learner in PENALISED:
            found = f"{found} and {setting('learner', self.learner)}"
            raise InputError(f"{found}; expected {setting('learner', 'perceptron')}, or a derived kernel")

    def _make_kernel(self) -> Kernel | None:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        if self.kernel == SST:
            # Without normalisation, long sentences with their many fragments would dominate.
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
        """Return the candidate lists of the training sentences, from the parser or from jackknife folds."""
        if self.folds is None:
            return self._list([self.parser_], trees, steps and steps / "lists")
        lists: dict[int, ParseList] = {}
        folds = min(self.folds, len(trees))
        parts, description = deal_folds(trees, folds, random_state=self.random_state)
        report(f"candidate lists: {description}")
        for number, part in enumerate(track(parts, "candidate lists", unit="folds"), 1):
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
        """Return the candidates of sentences, computed or from the checkpoint."""
        kept = None
        if folder:
            models = [identify(parser.get_state()) for parser in parsers]
            kept = Checkpoint(folder, fingerprint([__version__, BATCH_SIZE, self.k, *models], trees))
        lists: list[ParseList] = []
        with task("finding the k-best trees", total=len(trees)) as counted:
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
                report(f"k-best trees of {len(lists)} of {len(trees)} sentences")
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
            f"oracle F1 {best_f1(counts):.2f}"
        )
        return self._train(lists, losses)

    def _train(self, lists: Sequence[ParseList], losses: list[FloatArray]) -> CandidateReranker:
        kernel = self._make_kernel()
        reranker = CandidateReranker(
            kernel,
            learner=self.learner,
            epochs=self.epochs,
            voting=self.voting,
            shuffle=self.shuffle,
            penalty=self.penalty,
            base_weights=(self._score_weight,),
            random_state=self.random_state,
        )
        if self.folds is not None and isinstance(kernel, DerivedKernel):
            # Learning starts from the network that the features are derived from.
            lists = rescore(cast(LeftCornerParser, self.parser_), lists)
        scores = np.split(self._base_scores(lists), list_ends(lists))
        return reranker.fit(self._see(lists), losses, scores)

    @property
    def _score_weight(self) -> float:
        if self.score_weight is not None:
            return float(self.score_weight)
        return DERIVED_WEIGHT if isinstance(self._make_kernel(), DerivedKernel) else 1.0

    def _see(self, lists: Sequence[ParseList]) -> Any:  # noqa: ANN401
        """Return lists in the input format of the reranker."""
        kernel = self._make_kernel()
        if isinstance(kernel, DerivedKernel):
            needs_all = not isinstance(kernel, EfficientTopRerankingKernel)
            how = {"weights": self.weights, "distributions": needs_all}
            return TracedLists(cast(LeftCornerParser, self.parser_), lists, how)
        return [each.trees for each in lists]

    def _base_scores(self, lists: Sequence[ParseList]) -> FloatArray:
        """Return the scores of the first parser, transformed by a derived kernel if there is one."""
        kernel = self._make_kernel()
        if isinstance(kernel, TopKernel):
            return kernel.scores(self._see(lists))
        logs = [each.scores[:, 0] for each in lists]
        if isinstance(kernel, DerivedKernel):
            # The scores of these kernels only depend on the probabilities.
            return kernel.scores([GradientList(each, np.zeros((len(each), 0))) for each in logs])
        return np.concatenate(logs)

    def _kernel_scores(self, lists: Sequence[ParseList], base_scores: FloatArray) -> FloatArray:
        """Return the reranker's scores of all candidates; with voting, the fractions of the votes."""
        if self.reranker_ is None:
            return np.zeros(sum(len(each.trees) for each in lists))
        if self.voting:
            # Each weight vector votes together with the parser's score, as in training.
            scores = np.split(base_scores, list_ends(lists))
            return np.concatenate(self.reranker_.decision_function(self._see(lists), scores))
        nothing = [np.zeros(len(each.trees)) for each in lists]
        found = np.concatenate(self.reranker_.decision_function(self._see(lists), nothing))
        return found / (self.reranker_.base_weight_ or 1.0)

    def _other_scores(self, lists: Sequence[ParseList]) -> FloatArray:
        return np.concatenate([each.scores[:, 1 : 1 + len(self.others)] for each in lists])

    def _tune(self, lists: Sequence[ParseList], gold: Sequence[ConstTree]) -> ScoreWeights:
        """Tune the weights of the scores on held-out sentences, and the votes on brackets."""
        parts = self._score_parts(lists, with_reranker=True)
        counts = count_brackets(gold, lists)
        found = tune(parts, counts, kernel_weight=self.kernel_weight)
        if self.predict_by == "score":
            return found
        scores = np.split(parts.by_parser(found.kernel_weight), list_ends(lists))
        votes = tune_votes(scores, lists, counts, gold)
        trees = vote([each.trees for each in lists], scores, votes)
        return found._replace(votes=votes, by_brackets=parseval(gold, trees).f1)

    def predict(self, sentences: Sequence[SentenceLike]) -> list[ConstTree]:
        """Parse sentences; the trees keep the original words.

        `kbest` orders trees by their scores. If trees are predicted by their brackets (see `predict_by`), its
        first tree may differ from the predicted tree, which need not be a candidate of any parser.

        Parameters
        ----------
        sentences : sequence of ConstTree, DepTree, list of str, or list of (str, str or None)
            Trees, lists of words, or lists of (word, tag) pairs. Existing brackets are ignored.
        """
        return [analyses[0].tree for analyses in self._analyse(sentences, 1)]

    def _analyse(self, sentences: Sequence[Any], k: int) -> list[list[Analysis]]:
        """Return the predicted tree of each sentence, or its k-best trees if `k` is above 1.

        A tree that is put together from brackets has no score.
        """
        self.check_is_fitted()
        if k > 1 or not self._predicts_by_brackets:
            return super()._analyse(sentences, k)
        sentences = list_sentences(sentences, self)
        found: dict[int, ConstTree] = {}
        for places, lists in self._list_batches(sentences):
            found |= zip(places, self._vote(lists), strict=True)
        return [[Analysis(found.get(at, sentence))] for at, sentence in enumerate(sentences)]

    @property
    def _predicts_by_brackets(self) -> bool:
        if self.predict_by == "brackets" and self.tuning_.votes is None:
            found = setting("predict_by", self.predict_by)
            expected = f"{setting('predict_by', 'score')}, as in training, which did not tune votes"
            raise InputError(f"{found}; expected {expected}")
        if self.predict_by != "auto":
            return self.predict_by == "brackets"
        may_vote = bool(self.others) or isinstance(self.parser_, SpanParser)
        return may_vote and self.tuning_.by_brackets > self.tuning_.chosen

    def kbest(
        self, sentences: Sequence[SentenceLike], k: int = 20, *, n_jobs: int | None = None
    ) -> list[list[Parse]]:
        """Return up to `k` reranked candidates of each sentence with final scores, the best first.

        They are ordered by score, even if `predict` chooses a tree by its brackets (see `predict_by`). A tree
        without words is returned unchanged.

        Parameters
        ----------
        sentences : sequence of ConstTree, DepTree, list of str, or list of (str, str or None)
            Trees, lists of words, or lists of (word, tag) pairs. Existing brackets are ignored.
        k : int
            Maximum number of trees per sentence.
        n_jobs : int, optional
            Number of threads (-1: all processors; default: the parameter `n_jobs`).
        """
        self.check_is_fitted()
        check_integer("k", k, minimum=1)
        sentences = list_sentences(sentences, self)
        found: dict[int, list[Parse]] = {}
        for places, lists in self._list_batches(sentences, n_jobs):
            found |= zip(places, self._rank(lists, k), strict=True)
        return [found.get(at, [Parse(sentence, 0.0)]) for at, sentence in enumerate(sentences)]

    def _list_batches(
        self, sentences: Sequence[Any], n_jobs: int | None = None
    ) -> Iterator[tuple[list[int], list[ParseList]]]:
        """Yield batches of candidate lists with the numbers of their sentences, which have words."""
        read = read_sentences(sentences, self, None if self.needs_tags else self.own_tagger)
        numbers = [at for at, each in enumerate(read) if each.words]
        with task("parsing and reranking", total=len(numbers)) as counted:
            for batch in counted.slices(len(numbers), BATCH_SIZE):
                some = numbers[batch]
                yield some, self._parse(self._parsers(), [sentences[at] for at in some], n_jobs)

    def _score_parts(self, lists: Sequence[ParseList], *, with_reranker: bool) -> ScoreParts:
        """Return the components of the final scores; without the reranker, its scores are 0."""
        base_scores = self._base_scores(lists)
        kernel_scores = np.zeros_like(base_scores)
        if with_reranker:
            kernel_scores = self._kernel_scores(lists, base_scores)
        return ScoreParts(base_scores, kernel_scores, self._other_scores(lists))

    def _rank(self, lists: Sequence[ParseList], k: int) -> list[list[Parse]]:
        """Return the `k` best candidates of each list with their final scores."""
        tuning = self.tuning_
        parts = self._score_parts(lists, with_reranker=tuning.kernel_weight > 0)
        finals = np.split(parts.add(tuning.kernel_weight, tuning.others), list_ends(lists))
        ranked = []
        for each, scores in zip(lists, finals, strict=True):
            order = np.argsort(-scores, kind="stable")
            ranked.append([Parse(each.trees[at], float(scores[at])) for at in order[:k]])
        return ranked

    def _vote(self, lists: Sequence[ParseList]) -> list[ConstTree]:
        """Return the tree of each list whose brackets win the vote of the parsers."""
        weight = self.tuning_.kernel_weight
        scores = self._score_parts(lists, with_reranker=weight > 0).by_parser(weight)
        votes = cast(Votes, self.tuning_.votes)
        return vote([each.trees for each in lists], np.split(scores, list_ends(lists)), votes)

    @property
    def tags(self) -> str:
        """Source of the tags: the parameter `tags` of the parser."""
        return str(self._current_parser().tags)

    def using(self, **params: Any) -> Self:  # noqa: ANN401
        """Return a copy with the same fitted model and other values for some parameters.

        Parameters
        ----------
        **params : object
            New values by name: `k`, `n_jobs`, `predict_by`, or `tags`, which is passed to the parser.

        Raises
        ------
        InputError
            If another parameter is given, or a value is invalid.
        """
        changed = {name: params.pop(name) for name in ("tags",) if name in params}
        other = super().using(**params)
        other.parser_ = self.parser_.using(**changed)
        return other

    @property
    def tagger_(self) -> Tagger | None:  # type: ignore[override]
        """The parser's own tagger, or None if it has none or there are several parsers."""
        return self.own_tagger

    @property
    def own_tagger(self) -> Tagger | None:
        """The parser's own tagger, or None if it has none or there are several parsers."""
        return None if self.others else self._current_parser().tagger_

    @property
    def known_tags(self) -> list[str]:
        """The tags that the parser was trained with."""
        return self._current_parser().known_tags

    @property
    def needs_tags(self) -> bool:
        """Whether input sentences must have tags."""
        return self._current_parser().needs_tags

    def _current_parser(self) -> AnyParser:
        self.check_is_fitted()
        return self.parser_

    def check_fitted_state(self) -> None:
        """Check that kernel, parsers and reranker match."""
        self._check()
        kernel = self._make_kernel()
        is_network = isinstance(self.parser_, LeftCornerParser)
        expect(is_network or not isinstance(kernel, DerivedKernel), "a kernel that matches the parser")
        if self.reranker_ is None:
            expect(kernel is None, "a reranker trained with this kernel")
        else:
            expect(type(self.reranker_.kernel) is type(kernel), "a reranker trained with this kernel")
        expect(len(self.tuning_.others) == len(self.others), "a weight for each of the other parsers")
        tuned = (self.tuning_.base, self.tuning_.chosen, self.tuning_.best, self.tuning_.by_brackets)
        expect(bool(np.isfinite(tuned).all()), "finite F1 scores")
        if self.tuning_.votes is not None:
            self.tuning_.votes.check(1 + len(self.others))

    def take_fitted(self, other: Self) -> Self:
        """Copy the fitted attributes of another reranker; the parameter `parser` is not changed."""
        self.parser_, self.reranker_, self.tuning_ = other.parser_, other.reranker_, other.tuning_
        return self

    def restore(self) -> None:
        """Use the saved parser as the parameter `parser`, so that `fit` does not train it again."""
        self.parser = self.parser_
        self.others = tuple(self.others)
