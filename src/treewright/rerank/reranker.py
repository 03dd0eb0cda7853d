"""DependencyReranker: reranks the k-best trees of a parser with additional features (Qian & Liu 2015)."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from treewright._naming import named, setting
from treewright._typing import (
    Count,
    FloatArray,
    Folds,
    Fraction,
    Jobs,
    LimitedMemory,
    NonNegativeFloat,
    NonNegativeInt,
    RandomState,
    Range,
)
from treewright._validate import check_integer, check_params
from treewright.annotation.sentences import SentenceLike
from treewright.data.deptree import DepTree, check_trees
from treewright.errors import InputError
from treewright.mining.gradient import PAPER_SETTINGS as PAPER_MINING
from treewright.mining.subtree import MAX_TREES
from treewright.model import Submodel, Value, expect, saved, seeded
from treewright.parsing.dependency.annotator import ParserWrapper
from treewright.parsing.dependency.constraints import FixedHeads
from treewright.parsing.dependency.parser import Candidate, DependencyParser
from treewright.parsing.dependency.reasons import Comparison, WeighedFeature
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.features import ConjunctionFeatures, HandFeatures, SubtreeFeatures
from treewright.rerank.linear import LIGHT_SHARE, LinearScorer
from treewright.rerank.training import DEGREES, KERNEL_DECAY, KERNEL_EPOCHS, RerankerTrainer
from treewright.rerank.tuning import append_rest, combine, divide_mass
from treewright.scale import Client, map_jobs

if TYPE_CHECKING:
    from treewright.rerank.training import ListScorer

RERANKED_AT_A_TIME = 200
"""Number of sentences per batch of a thread."""
FEATURES = {"subtree": SubtreeFeatures, "polynomial": ConjunctionFeatures, "template": HandFeatures}
"""Feature class of each space."""
SCORERS = {"mined": "LinearScorer", "kernel": "KernelScorer", "network": "NetworkKernelScorer"}
"""Class name of the scorer of each learner."""
MINING = (
    *("threshold", "max_iter", "step", "refine", "tol", "path", "pretrain_order", "mine_with_base"),
    "filter_memory",
)
"""Mining parameters, for both spaces with mined features."""
PAPER_SETTINGS: dict[str, Any] = {
    **PAPER_MINING,
    "space": "subtree",
    "learner": "mined",
    "target": "gold",
    "copies": None,
    "mine_with_base": False,
    "purity": False,
    "light_share": 0.0,
    "ranker": "perceptron",
    "betas": (0.0, *(digit * 10.0**power for power in range(-2, 10) for digit in (1, 2, 5))),
    "significance_level": None,
    "filter_memory": 1 << 30,
    "memory_limit": 32 << 30,
}
"""The settings of Qian & Liu (2015), as far as the paper states them; their computer had 32 GiB of memory.
Their threshold, list length and number of folds are the defaults. The paper does not state the maximum order
of features, the perceptron epochs or the candidate values of beta; the best beta was 5."""


class DependencyReranker(ParserWrapper):
    """Dependency parser that reranks the k-best trees of a `DependencyParser`.

    The reranker is trained on candidate lists of the training sentences, which are parsed by
    cross-validation. The final score of a tree is the reranker's score plus `beta_` times the parser's score.
    ``**PAPER_SETTINGS`` (in `treewright.rerank.reranker`) are the settings of Qian & Liu (2015).

    Parameters
    ----------
    parser : DependencyParser, optional
        Trained parser to rerank, instead of training one. It must be trained on the same sentences. In
        Python, it may also be an untrained parser, which `fit` trains.
    space : {"subtree", "polynomial", "template"}
        Feature space: subtrees, conjunctions of arc features, or hand-written templates.
    learner : {"mined", "kernel", "network"}
        Mined features, kernel perceptrons, or a kernel of the parser's network. "network" is a perceptron
        over the efficient TOP-reranking kernel of the output layer of the parser's `NeuralScorer`.
    degree : int, optional
        Maximum order of features (default: 3 for subtrees, 2 for conjunctions). The subtree kernel has no
        limit.
    threshold : float
        Threshold of gradient mining; a higher threshold selects fewer features.
    k : int
        Number of candidate trees per sentence.
    folds : int
        Number of jackknife folds for the candidate lists.
    fold_epochs : int, optional
        Training epochs of the jackknife parsers (default: the parser's epochs, at most 3).
    target : {"gold", "best"}
        Train to choose the gold tree, or the best tree of the list. With "gold", missing gold trees are
        added.
    copies : int, optional
        Maximum number of equivalent subtree features per mining round (none: all). Equivalent features
        distinguish the same trees.
    max_iter : int
        Maximum number of mining rounds. With a `pretrain_order`, the limit applies to each of the two stages.
    step : float or {"auto", "decreasing"}
        Step size of a round: a constant, "decreasing" (1/sqrt(round)) or "auto". "auto" halves the step until
        the objective does not rise.
    refine : int or "auto"
        Number of passes over the lists between two mining rounds. "auto" is 10 if `max_iter` is above 1, else
        0.
    tol : float
        Stop mining when two rounds in a row lower the objective by less than this fraction.
    path : bool or "auto"
        Decrease the threshold step by step to its final value. "auto" does so if `max_iter` is above 1.
    pretrain_order : int
        Mine features up to this order in a first stage.
    mine_with_base : bool
        Add the parser's scores during mining. Features then correct the parser's errors; otherwise they
        separate correct from wrong trees regardless of the parser's scores.
    purity : bool
        Filter and weight features by their purity. Purity measures how consistently a feature favours correct
        or wrong trees.
    light_share : float
        Fraction of the total absolute weight to drop, smallest weights first.
    ranker : {"loglinear", "perceptron"}
        Model of the feature weights. The log-linear model learns a correction to the parser's scores; the
        perceptron is the model in the paper.
    epochs : int
        Perceptron training epochs.
    chunks : int
        Number of kernel perceptrons that vote, each trained on a part of the lists.
    kernel_epochs : int
        Training epochs of kernel perceptrons.
    decay : float
        Decay factor of the dependency tree kernel. With a large factor, each tree is similar only to itself
        if the kernel is normalised.
    normalize : bool
        Normalise the dependency tree kernel. Without normalisation, and with a decay of 1, the kernel counts
        common subtrees, as in the paper.
    betas : tuple of float
        Candidate weights of the parser's score (default: adapted to the spread of scores).
    significance_level : float, optional
        Use the reranker only if its gain on DEV is significant at this level (none: always). If it is not
        used, the parser's ranking is kept. 1 is the same as None.
    filter_memory : int, optional
        Memory of a Bloom filter that removes rare candidate features before counting. Each thread has its own
        spectral Bloom filter, no larger than necessary. It does not change the result.
    memory_limit : int, optional
        Memory limit of mining, not counting the trees; selected features go to disk. It does not
        change the result. If the limit is too small, the error gives the minimum.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    n_jobs : int
        Number of threads (-1: all processors); it does not change the results.

    Attributes
    ----------
    parser_ : DependencyParser
        The trained parser.
    beta_ : float
        Weight of the parser's score in the final score.
    gain_ : float
        Cross-validated UAS gain on the dev set: each half is reranked with the settings tuned on the other
        half.
    p_value_ : float
        p-value of this gain.
    is_trusted_ : bool
        Whether the reranker is used.
    scale_ : float
        Factor that turns final scores into log-probabilities, up to a constant.
    oracle_ : float
        Oracle UAS of the training lists.
    jackknife_uas_ : float
        UAS of the first trees of the training lists.
    n_features_ : int
        Number of features, or of support trees of kernel perceptrons.
    n_templates_ : int
        Number of distinct templates of subtree features.
    coverage_ : str
        Fraction of each order of conjunctions that was counted, if not all of it.

    See Also
    --------
    DependencyParser : The parser that produces the candidates.
    jackknife_lists : Produces the candidate lists of the training sentences.
    CandidateReranker : Reranks candidates of any kind.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(24, random_state=0).dependencies
    >>> parser = tw.DependencyParser(order=1, epochs=1, tags="gold")
    >>> reranker = tw.DependencyReranker(parser=parser, k=4, folds=2, degree=2).fit(trees[:16], trees[16:])
    >>> [len(candidates) for candidates in reranker.kbest(trees[:2], k=4)]
    [4, 4]
    """

    EFFECTIVE_IF: ClassVar = {
        "space": {"learner": ("mined", "kernel")},
        "degree": [{"space": ("polynomial",)}, {"space": ("subtree",), "learner": ("mined",)}],
        "copies": {"learner": ("mined",), "space": ("subtree",)},
        **{name: {"learner": ("mined",), "space": ("subtree", "polynomial")} for name in MINING},
        "purity": {"learner": ("mined",)},
        "light_share": {"learner": ("mined",)},
        "ranker": {"learner": ("mined",)},
        "epochs": {"learner": ("mined",), "ranker": ("perceptron",)},
        "chunks": {"learner": ("kernel",)},
        "kernel_epochs": {"learner": ("kernel",)},
        "decay": {"learner": ("kernel",), "space": ("subtree",)},
        "normalize": {"learner": ("kernel",), "space": ("subtree",)},
        "memory_limit": {"learner": ("mined",), "space": ("subtree",)},
    }
    fields = saved(
        parser_=Submodel(DependencyParser),
        scorer_=Submodel(
            LinearScorer,
            "treewright.rerank.kernelized:KernelScorer",
            "treewright.rerank.network_kernel:NetworkKernelScorer",
        ),
        beta_=Value(float),
        scale_=Value(float),
        oracle_=Value(float),
        jackknife_uas_=Value(float),
        gain_=Value(),
        p_value_=Value(),
        is_trusted_=Value(bool),
    )
    unsaved = ("parser", "filter_memory", "memory_limit", "n_jobs")
    adjustable = ("k", "n_jobs")
    explains = True
    parser_: DependencyParser
    scorer_: "ListScorer"
    beta_: float
    scale_: float
    oracle_: float
    jackknife_uas_: float
    gain_: float
    p_value_: float
    is_trusted_: bool

    def __init__(
        self,
        *,
        parser: DependencyParser | None = None,
        space: Literal["subtree", "polynomial", "template"] = "subtree",
        learner: Literal["mined", "kernel", "network"] = "mined",
        degree: Count | None = None,
        threshold: Annotated[float, Range(0, 1e9)] = 3.0,
        k: Annotated[int, Range(2, MAX_TREES - 1)] = 10,
        folds: Folds = 10,
        fold_epochs: Count | None = None,
        target: Literal["gold", "best"] = "gold",
        copies: Count | None = 4,
        max_iter: Count = 1,
        step: Annotated[float, Range(1e-12, 1e12)] | Literal["auto", "decreasing"] = "auto",
        refine: NonNegativeInt | Literal["auto"] = "auto",
        tol: Fraction = 1e-3,
        path: bool | Literal["auto"] = "auto",
        pretrain_order: NonNegativeInt = 0,
        mine_with_base: bool = True,
        purity: bool = True,
        light_share: Fraction = LIGHT_SHARE,
        ranker: Literal["loglinear", "perceptron"] = "loglinear",
        epochs: Count = 10,
        chunks: Count = 10,
        kernel_epochs: Count = KERNEL_EPOCHS,
        decay: Annotated[float, Range(1e-6, 1)] = KERNEL_DECAY,
        normalize: bool = True,
        betas: tuple[NonNegativeFloat, ...] = (),
        significance_level: Fraction | None = 0.05,
        filter_memory: LimitedMemory | None = None,
        memory_limit: LimitedMemory | None = None,
        random_state: RandomState = 0,
        n_jobs: Jobs = 1,
    ) -> None:
        self.parser = parser
        self.space = space
        self.learner = learner
        self.degree = degree
        self.threshold = threshold
        self.k = k
        self.folds = folds
        self.fold_epochs = fold_epochs
        self.target = target
        self.copies = copies
        self.max_iter = max_iter
        self.step = step
        self.refine = refine
        self.tol = tol
        self.path = path
        self.pretrain_order = pretrain_order
        self.mine_with_base = mine_with_base
        self.purity = purity
        self.light_share = light_share
        self.ranker = ranker
        self.epochs = epochs
        self.chunks = chunks
        self.kernel_epochs = kernel_epochs
        self.decay = decay
        self.normalize = normalize
        self.betas = betas
        self.significance_level = significance_level
        self.filter_memory = filter_memory
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs

    @seeded
    def fit(
        self,
        trees: Sequence[DepTree],
        dev: Sequence[DepTree] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        cache: str | os.PathLike[str] | None = None,
        client: Client | None = None,
    ) -> Self:
        """Train on a treebank: first the parser if necessary, then the reranker.

        Parameters
        ----------
        trees : sequence of DepTree
            Training trees.
        dev : sequence of DepTree, optional
            Trees for tuning the weight of the parser's score and for calibrating probabilities. Without them,
            some of the training lists are held out.
        checkpoint : path, optional
            Folder that stores each step. If it exists, training resumes from it.
        cache : path, optional
            Folder for candidate lists, which other rerankers of the same sentences can reuse (default: in
            `checkpoint`).
        client : distributed.Client, optional
            Dask client for jackknife folds, feature counting and kernel perceptrons; it does not change the
            result.
        """
        self._check()
        steps = Path(checkpoint) if checkpoint is not None else None
        learnt = RerankerTrainer(self, steps, cache, client).train(trees, dev)
        for name, value in learnt._asdict().items():
            setattr(self, f"{name}_", value)
        return self

    def _check(self) -> None:
        check_params(self)
        if self.space == "template" and self.learner == "kernel":
            found = f"{setting('learner', self.learner)} and {setting('space', self.space)}"
            raise InputError(f"{found}; expected {setting('space', 'subtree', 'polynomial')}")
        degree = self.degree or DEGREES[self.space]
        if self.pretrain_order > degree:
            found = f"{setting('pretrain_order', self.pretrain_order)} and {setting('degree', degree)}"
            raise InputError(f"{found}; expected {named('pretrain_order')} of at most {named('degree')}")
        if self.parser is not None and not isinstance(self.parser, DependencyParser):
            raise InputError(f"parser is {type(self.parser).__name__}; expected a DependencyParser")
        if self.parser is not None and self.parser.has_mined_features:
            found = "the parser has mined features, which parsers of jackknife folds cannot have"
            raise InputError(f"{found}; expected a parser trained without mined features")
        if self.parser is not None and self.parser.predict_by == "heads":
            found = f"{setting('predict_by', 'heads')} has no effect under a reranker, which ranks by scores"
            raise InputError(f"{found}; expected {setting('predict_by', 'auto', 'score')}")
        if self.learner == "network":
            from treewright.rerank.network_kernel import find_network

            find_network(self.parser or DependencyParser())

    def restore(self) -> None:
        """Use the fitted parser as the parameter `parser`, so that a clone trains a similar parser."""
        self.parser = self.parser_
        self.betas = tuple(self.betas)
        if self.learner == "network":
            from treewright.rerank.network_kernel import NetworkKernelScorer

            assert isinstance(self.scorer_, NetworkKernelScorer)
            self.scorer_.attach(self.parser_).check_network()

    def check_fitted_state(self) -> None:
        """Check that the scorer matches the learner and the space."""
        expect(type(self.scorer_).__name__ == SCORERS[self.learner], "the scorer of the learner")
        if isinstance(self.scorer_, LinearScorer):
            expect(type(self.scorer_.features) is FEATURES[self.space], "features of the space")

    def predict(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[DepTree]:
        """Parse sentences; existing heads and relations are ignored.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs.
        fixed : sequence of mapping of int to int, optional
            For each sentence, required heads by word (both from 1; 0 is the root).
        """
        found = self._spread(lambda batch, fixed: self._rerank(batch, 1, fixed), sentences, fixed)
        return [candidates[0].tree for candidates in found]

    def kbest(
        self, sentences: Sequence[SentenceLike], k: int = 10, *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[Candidate]]:
        """Return the `k` best trees of each sentence with their probabilities, the best first.

        Trees beyond the length of the reranked lists follow in the order of the parser.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs.
        k : int
            Number of trees per sentence.
        fixed : sequence of mapping of int to int, optional
            For each sentence, required heads by word. Candidates and probabilities are then restricted to
            trees with these heads.
        """
        check_integer("k", k, minimum=1)
        return self._spread(lambda batch, fixed: self._rerank(batch, k, fixed), sentences, fixed)

    def marginals(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """Return for each sentence an array (n, n + 1): the probability of each head (column) of each word.

        Trees of the reranked list have the reranker's probabilities; all other trees have the parser's.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs.
        fixed : sequence of mapping of int to int, optional
            For each sentence, required heads by word. Only trees with these heads are considered.
        """

        def find(
            batch: Sequence[DepTree], fixed: Sequence[FixedHeads] | None
        ) -> list[npt.NDArray[np.float64]]:
            lists, final = self._lists_and_scores(batch, self.k, fixed)
            change = divide_mass(lists, self.scale_ * final) - lists.probabilities
            squares = self.parser_.batch_marginals(batch, fixed)
            for number, ((begin, end), square) in enumerate(zip(lists.spans(), squares, strict=True)):
                words = np.arange(len(square))
                for heads, amount in zip(lists.heads[number], change[begin:end].tolist(), strict=True):
                    square[words, heads] += amount
            return [np.clip(square, 0, 1) for square in squares]

        return self._spread(find, sentences, fixed)

    def explain(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[Comparison]:
        """Return the candidates of each sentence and the features that decided between the first two.

        If the gain on the dev set was not significant, the reranker is not used: its scores are 0 and it
        has no features.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs.
        fixed : sequence of mapping of int to int, optional
            For each sentence, required heads by word. Only trees with these heads are considered.
        """
        trees = self.read_sentences(sentences)
        self.check_fixed(trees, fixed)
        lists, final = self._lists_and_scores(trees, self.k, fixed)
        votes = self._votes(lists).mean(axis=1)
        found = self._complete(lists, final, [len(each) for each in lists.heads], fixed)
        comparisons = []
        for (begin, end), candidates in zip(lists.spans(), found, strict=True):
            order = begin + np.argsort(-final[begin:end], kind="stable")
            reasons: list[WeighedFeature] = []
            if len(order) > 1 and self.is_trusted_ and isinstance(self.scorer_, LinearScorer):
                reasons = self.scorer_.differences(lists, int(order[0]), int(order[1]))
            parser_scores = (self.beta_ * lists.scores[order]).tolist()
            comparisons.append(Comparison(candidates, parser_scores, votes[order].tolist(), reasons))
        return comparisons

    def arc_reasons(self, trees: Sequence[DepTree], *, n: int = 10) -> list[list[list[WeighedFeature]]]:
        """Return the features that involve each arc of parsed trees: a list per tree and word.

        A feature of several arcs is listed under each of them. A conjunction involves all arcs that have one
        of its arc features; a template feature involves the arcs between its words. The weights of the
        distinct features of a tree add up to its reranker score, up to a constant per list. Features are
        computed after lifting crossing arcs. A reranker that is not used has no features to list.

        Parameters
        ----------
        trees : sequence of DepTree
            Trees with heads, as `predict` returns them.
        n : int
            Maximum number of features per arc, the largest weights first.
        """
        self.check_is_fitted()
        check_integer("n", n, minimum=1)
        check_trees(trees)
        if not isinstance(self.scorer_, LinearScorer):
            raise InputError(
                "the reranker uses a kernel and has no features; expected learner 'mined' to explain arcs"
            )
        if not self.is_trusted_:
            return [[[] for _ in tree.words] for tree in trees]
        return [self.scorer_.arc_reasons(self.parser_.lifted(tree), n) for tree in trees]

    @property
    def has_arc_reasons(self) -> bool:
        """Whether the reranker has features for `arc_reasons`."""
        return isinstance(self.scorer_, LinearScorer)

    def weightiest(self, n: int | None = None) -> list[WeighedFeature]:
        """Return the `n` subtree features with the largest absolute weights, or all of them."""
        self.check_is_fitted()
        features = getattr(self.scorer_, "features", None)
        if not isinstance(self.scorer_, LinearScorer) or not isinstance(features, SubtreeFeatures):
            raise InputError(
                "the reranker has no subtree features; expected space 'subtree' and learner 'mined'"
            )
        columns = np.argsort(-np.abs(self.scorer_.coef), kind="stable")[:n].tolist()
        weights = self.scorer_.coef[columns].tolist()
        return [
            WeighedFeature(features.text(column), features.words(column), weight)
            for column, weight in zip(columns, weights, strict=True)
        ]

    def _votes(self, lists: CandidateLists) -> FloatArray:
        """Return the reranker's scores of candidates; zeros if it is not used."""
        return self.scorer_.score(lists) if self.is_trusted_ else np.zeros((lists.n_candidates, 1))

    def _lists_and_scores(
        self, trees: Sequence[DepTree], k: int, fixed: Sequence[FixedHeads] | None
    ) -> tuple[CandidateLists, FloatArray]:
        """Return the candidates of sentences with final scores; candidates beyond the list come last."""
        self.check_is_fitted()
        lists = CandidateLists.from_structures(self.parser_.structures(trees, max(k, self.k), fixed=fixed))
        short = lists.shortened(self.k)
        reranked = combine(short, self._votes(short), self.beta_)
        if short.n_candidates == lists.n_candidates:
            return lists, reranked
        return lists, append_rest(lists, short, reranked, self.beta_)

    def _rerank(
        self, trees: Sequence[DepTree], k: int, fixed: Sequence[FixedHeads] | None
    ) -> list[list[Candidate]]:
        lists, final = self._lists_and_scores(trees, k, fixed)
        return self._complete(lists, final, [min(k, len(each)) for each in lists.heads], fixed)

    def _complete(
        self,
        lists: CandidateLists,
        final: FloatArray,
        sizes: Sequence[int],
        fixed: Sequence[FixedHeads] | None,
    ) -> list[list[Candidate]]:
        """Return the `sizes[i]` best candidates of each list, with relations."""
        probabilities = divide_mass(lists, self.scale_ * final)
        orders = [
            begin + np.argsort(-final[begin:end], kind="stable")[:size]
            for (begin, end), size in zip(lists.spans(), sizes, strict=True)
        ]
        bare = [lists.candidate(number) for order in orders for number in order]
        kept = [arcs for order, arcs in zip(orders, fixed, strict=True) for _ in order] if fixed else None
        whole = iter(self.parser_.complete(bare, fixed=kept))
        return [
            [Candidate(next(whole), float(final[number]), float(probabilities[number])) for number in order]
            for order in orders
        ]

    def _spread(
        self,
        function: Callable[[Sequence[DepTree], Sequence[FixedHeads] | None], list[Any]],
        sentences: Sequence[SentenceLike],
        fixed: Sequence[FixedHeads] | None,
    ) -> list[Any]:
        """Apply `function` to batches of sentences in parallel and concatenate the results."""
        trees = self.read_sentences(sentences)
        self.check_fixed(trees, fixed)
        starts = range(0, len(trees), RERANKED_AT_A_TIME)
        spans = [slice(start, start + RERANKED_AT_A_TIME) for start in starts]

        def work(span: slice) -> list[Any]:
            return function(trees[span], fixed[span] if fixed is not None else None)

        results = map_jobs(
            work, spans, n_jobs=self.n_jobs, what="reranking", count=lambda span: len(trees[span])
        )
        return [found for batch in results for found in batch]

    @property
    def n_features_(self) -> int:
        """Number of features, or of support trees of kernel perceptrons."""
        return self.scorer_.n_features

    @property
    def n_templates_(self) -> int:
        """Number of distinct templates of subtree features."""
        features = getattr(self.scorer_, "features", None)
        return features.n_templates if isinstance(features, SubtreeFeatures) else 0

    @property
    def coverage_(self) -> str:
        """Fraction of each order of conjunctions that was counted, if not all of it."""
        return str(getattr(getattr(self.scorer_, "features", None), "coverage", ""))
