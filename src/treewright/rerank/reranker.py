"""DependencyReranker: the best of a parser's trees, by what the parser cannot see (Qian & Liu 2015)."""

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
    LimitedMemory,
    NonNegativeFloat,
    NonNegativeInt,
    Range,
)
from treewright._validate import check_integer, check_params
from treewright.annotation.sentences import SentenceLike
from treewright.data.deptree import DepTree, check_trees
from treewright.errors import InputError
from treewright.mining.gradient import PAPER_SETTINGS as PAPER_MINING
from treewright.mining.subtree import MAX_TREES
from treewright.model import Submodel, Value, expect, saved
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
"""Sentences that one thread reranks before it takes others."""
FEATURES = {"subtree": SubtreeFeatures, "polynomial": ConjunctionFeatures, "template": HandFeatures}
"""By space."""
SCORERS = {"mined": "LinearScorer", "kernel": "KernelScorer", "network": "NetworkKernelScorer"}
"""Names of classes, by learner."""
MINING = (
    *("threshold", "max_iter", "step", "refine", "tol", "path", "pretrain_order", "mine_with_base"),
    "filter_memory",
)
"""Parameters of mining, in both spaces in which features are mined."""
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
"""As in the experiments of Qian & Liu (2015), where they say how it was done; their machine had 32 GiB. Their
threshold, the length of their lists and the number of their folds are defaults. The paper does not state
the highest order of features, the epochs of the perceptron and the values of beta; the best beta was 5."""


class DependencyReranker(ParserWrapper):
    """Parses with a `DependencyParser` and chooses among its best trees.

    The training sentences are parsed by parsers that have not seen them; from the lists of their best trees
    the reranker learns. A tree's final score is that of the reranker and `beta_` times that of the parser.
    ``**PAPER_SETTINGS`` (in `treewright.rerank.reranker`) are the settings of Qian & Liu (2015).

    Parameters
    ----------
    parser : DependencyParser, optional
        Trained parser to rerank, in place of training one. In Python it may also be one that `fit` will
        train. It must have learnt from the same sentences.
    space : {"subtree", "polynomial", "template"}
        Feature space. Features are subtrees, conjunctions of arc features, or templates written by hand.
    learner : {"mined", "kernel", "network"}
        Mined features, kernel perceptrons, or a kernel of the parser's network. The last is a
        perceptron over the efficient TOP-reranking kernel of the output layer of the parser's `NeuralScorer`.
    degree : int, optional
        Maximum order of features (3 for subtrees, 2 for conjunctions). The kernel of subtrees has no limit.
    threshold : float
        Gradient-mining threshold; a higher one selects fewer features.
    k : int
        Number of candidate trees per sentence.
    folds : int
        Number of jackknife folds for the candidate lists.
    fold_epochs : int, optional
        Training epochs of the parsers of the folds (by default the parser's, at most 3).
    target : {"gold", "best"}
        Learn to choose the gold tree, or the best one of the list. The gold tree is added where it is
        missing.
    copies : int, optional
        Maximum number of equivalent subtree features per mining round (none: all). These tell the same trees
        apart.
    max_iter : int
        Maximum number of mining rounds. One selects all features that the mistakes of the parser ask for.
        With a `pretrain_order`, each of the two stages has as many.
    step : float or {"auto", "decreasing"}
        Step size of a mining round: a constant, 1/sqrt(round), or automatic.
    refine : int or "auto"
        Passes over the lists between two mining rounds. If "auto", 10 where `max_iter` is above 1.
    tol : float
        Stop mining when two rounds lower the objective by less than this share.
    path : bool or "auto"
        Approach the threshold from above. If "auto", this is done where `max_iter` is above 1.
    pretrain_order : int
        Order up to which features are mined first, alone.
    mine_with_base : bool
        Add the parser's scores while features are mined. Then they are mined for what the parser gets wrong;
        otherwise for all that tells trees apart.
    purity : bool
        Filter and weight features by their purity. It is how far a feature is always on the side of the right
        trees, or always on that of the wrong ones.
    light_share : float
        Share of the sum of all weights that the lightest features hold, which are dropped.
    ranker : {"loglinear", "perceptron"}
        Model of the feature weights. The first adds to the parser's scores,
        the second is that of the paper.
    epochs : int
        Perceptron training epochs.
    chunks : int
        Number of kernel perceptrons that share the lists and vote.
    kernel_epochs : int
        Training epochs of kernel perceptrons.
    decay : float
        Decay of the dependency tree kernel. With a large one, a tree is like nothing but itself if kernels
        are normalised.
    normalize : bool
        Normalize the dependency tree kernel. Without it, and with a decay of 1, the kernel is the number of
        common sub feature trees, as in the paper.
    betas : tuple of float
        Values to try for the weight of the parser's score. Without any, values are tried that fit how far
        scores lie apart.
    significance_level : float, optional
        Use the reranker only if its gain on DEV is significant at this level (none: always). If it is not
        used, trees are ranked as by the parser. 1 is the same as None.
    filter_memory : int, optional
        Memory of a Bloom filter that candidate features pass before counting. It is a spectral one; the
        result does not depend on it. Each thread has its own, no larger than its candidates need.
    memory_limit : int, optional
        Memory limit of mining beside the trees; features that are found go to disk. The result is the same.
        One that is too small is refused with the least that would do.
    random_state : int
        Seed of the random numbers.
    n_jobs : int
        Number of threads; results do not depend on it.

    Attributes
    ----------
    parser_ : DependencyParser
    beta_ : float
        What the parser's score is multiplied by.
    gain_ : float
        What the dev set gains in UAS if each half of it is reranked by what is best for the other half, and
    p_value_ : float
        how likely it is that chance does as much.
    is_trusted_ : bool
        Whether the reranker has a say.
    scale_ : float
        What final scores are multiplied by to become logarithms of probabilities.
    oracle_ : float
        UAS of the best trees of the training lists, and
    jackknife_uas_ : float
        that of the first ones.
    n_features_ : int
        Features, or trees that a kernel perceptron keeps.
    n_templates_ : int
        Kinds of subtree features.
    coverage_ : str
        What share of an order of conjunctions was counted, if not all.
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
        random_state: NonNegativeInt = 0,
        n_jobs: Count = 1,
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

    def fit(
        self,
        trees: Sequence[DepTree],
        dev: Sequence[DepTree] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        cache: str | os.PathLike[str] | None = None,
        client: Client | None = None,
    ) -> Self:
        """Learn from a treebank: the parser, unless it has learnt, then to rerank.

        Parameters
        ----------
        trees : sequence of DepTree
        dev : sequence of DepTree, optional
            To find out how much the parser's score counts, and to calibrate probabilities; without it some of
            the training lists are put aside for that.
        checkpoint : path, optional
            A folder in which each step is kept. If it exists, training goes on from it.
        cache : path, optional
            A folder for candidate lists, which other rerankers of the same sentences can use too; without it,
            they are kept in `checkpoint`.
        client : distributed.Client, optional
            A cluster for folds, for counting features and for kernel perceptrons; the reranker is the same.
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
            found = "the parser has mined features, which the parsers of jackknife folds do not have"
            raise InputError(f"{found}; expected a parser without mined features to rerank")
        if self.learner == "network":
            from treewright.rerank.network_kernel import find_network

            find_network(self.parser or DependencyParser())

    def restore(self) -> None:
        """Have the parser as a parameter, too, so that a clone trains the like of it."""
        self.parser = self.parser_
        self.betas = tuple(self.betas)
        if self.learner == "network":
            from treewright.rerank.network_kernel import NetworkKernelScorer

            assert isinstance(self.scorer_, NetworkKernelScorer)
            self.scorer_.attach(self.parser_).check_network()

    def check_fitted_state(self) -> None:
        """Check that the scorer is that of the learner and the space."""
        expect(type(self.scorer_).__name__ == SCORERS[self.learner], "the scorer of the learner")
        if isinstance(self.scorer_, LinearScorer):
            expect(type(self.scorer_.features) is FEATURES[self.space], "features of the space")

    def predict(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[DepTree]:
        """Parse sentences; their heads and relations are not looked at.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs, as in `DependencyParser.predict`.
        fixed : sequence of mapping of int to int, optional
            For each sentence the heads that words must have, as in `DependencyParser.predict`.
        """
        found = self._spread(lambda batch, fixed: self._rerank(batch, 1, fixed), sentences, fixed)
        return [candidates[0].tree for candidates in found]

    def kbest(
        self, sentences: Sequence[SentenceLike], k: int = 10, *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[Candidate]]:
        """Return the `k` best trees of each sentence, the best first, each with its probability.

        Those beyond the length of the lists come after them, in the order of the parser.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            As in `predict`.
        k : int
        fixed : sequence of mapping of int to int, optional
            For each sentence the heads that words must have. The parser's best trees that have them are
            reranked, and probabilities are among all trees that have them.
        """
        check_integer("k", k, minimum=1)
        return self._spread(lambda batch, fixed: self._rerank(batch, k, fixed), sentences, fixed)

    def marginals(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """Return for each sentence an array (n, n + 1): the probability that a word's head is the column.

        The trees of a list have the probabilities that the reranker gives them, all others those of the
        parser; with `fixed` heads, as in `kbest`, among the trees that have them.
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

        A reranker that is not trusted decides nothing: its scores are 0, and no feature is a reason. With
        `fixed` heads, as in `kbest`, candidates are the best trees that have them.
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
        """Return for each parsed tree, for the arc to each of its words, the features that involve this arc.

        A feature of several arcs is listed under each of them; a conjunction involves all arcs that have one
        of its parts, a feature by templates those between the words that it speaks of. The weights of all
        features of a tree, each taken once, add up to what the reranker says of it, but for a number that is
        the same for all trees of a list. Features are those of the tree with crossing arcs lifted, and the
        arc to a word is the one that it has there. A reranker that is not trusted has no reasons.

        Parameters
        ----------
        trees : sequence of DepTree
            Trees with their heads, as `predict` returns them.
        n : int
            Features of an arc at the most, the weightiest first.
        """
        self.check_is_fitted()
        check_integer("n", n, minimum=1)
        check_trees(trees)
        if not isinstance(self.scorer_, LinearScorer):
            raise InputError(
                "the reranker has no features, but a kernel; expected learner 'mined' for reasons of arcs"
            )
        if not self.is_trusted_:
            return [[[] for _ in tree.words] for tree in trees]
        return [self.scorer_.arc_reasons(self.parser_.lifted(tree), n) for tree in trees]

    @property
    def has_arc_reasons(self) -> bool:
        """Whether `arc_reasons` has features to show."""
        return isinstance(self.scorer_, LinearScorer)

    def weightiest(self, n: int | None = None) -> list[WeighedFeature]:
        """Return the subtree features of the largest weights, the weightiest first; all without `n`."""
        self.check_is_fitted()
        features = getattr(self.scorer_, "features", None)
        if not isinstance(self.scorer_, LinearScorer) or not isinstance(features, SubtreeFeatures):
            raise InputError(
                "the reranker has no subtree features; expected space 'subtree', learner 'mined'"
            )
        columns = np.argsort(-np.abs(self.scorer_.coef), kind="stable")[:n].tolist()
        weights = self.scorer_.coef[columns].tolist()
        return [
            WeighedFeature(features.text(column), features.words(column), weight)
            for column, weight in zip(columns, weights, strict=True)
        ]

    def _votes(self, lists: CandidateLists) -> FloatArray:
        """Return what the reranker says of candidates: nothing, if it is not trusted."""
        return self.scorer_.score(lists) if self.is_trusted_ else np.zeros((lists.n_candidates, 1))

    def _lists_and_scores(
        self, trees: Sequence[DepTree], k: int, fixed: Sequence[FixedHeads] | None
    ) -> tuple[CandidateLists, FloatArray]:
        """Return the candidates of sentences and their final scores; those not reranked come last."""
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
        """Return the best candidates of each list, as many as `sizes` says, with relations."""
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
        """Return what `function` finds for each sentence, some sentences at a time."""
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
        """Features, or trees that a kernel perceptron keeps."""
        return self.scorer_.n_features

    @property
    def n_templates_(self) -> int:
        """Kinds of subtree features: shapes, with the template of each arc."""
        features = getattr(self.scorer_, "features", None)
        return features.n_templates if isinstance(features, SubtreeFeatures) else 0

    @property
    def coverage_(self) -> str:
        """What share of an order of conjunctions was counted, if not all."""
        return str(getattr(getattr(self.scorer_, "features", None), "coverage", ""))
