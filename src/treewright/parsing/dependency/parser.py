"""DependencyParser: labelled dependency trees, k-best trees and calibrated probabilities."""

import os
from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from treewright._naming import setting
from treewright._typing import (
    Count,
    FileName,
    Fraction,
    Jobs,
    LiftingScheme,
    NonNegativeFloat,
    RandomState,
    Range,
    TagSource,
    TreeCount,
)
from treewright._validate import check_integer, check_param, check_params
from treewright.annotation.sentences import SentenceLike, TagColumn
from treewright.checkpoint import Checkpoint, digest_files, fingerprint
from treewright.data.conllu import read_conllu
from treewright.data.deptree import DepTree, check_trees
from treewright.data.descriptions import universal_tags
from treewright.data.documents import FoldBy, resolve_fold_by
from treewright.data.formats import check_kind
from treewright.data.projective import deprojectivize
from treewright.drawing.pictures import notebook_html
from treewright.errors import InputError
from treewright.learn.weights import LARGEST_WEIGHT
from treewright.model import Submodel, Unfitted, Value, saved, seeded
from treewright.parsing.contract import Batch, PartScorer
from treewright.parsing.dependency.annotator import DependencyAnnotator
from treewright.parsing.dependency.combined import CombinedScorer, best_relations, given_scores
from treewright.parsing.dependency.constraints import FixedHeads, check_fixed
from treewright.parsing.dependency.decoders import ChartDecoder, ProjectiveDecoder
from treewright.parsing.dependency.features import CHOSEN_TEMPLATES, Corpus, Encoder, TemplateSet
from treewright.parsing.dependency.labeler import Labeler
from treewright.parsing.dependency.lattice import Lattice
from treewright.parsing.dependency.linear import LinearPartScorer, TableBits
from treewright.parsing.dependency.long_sentences import Pieces
from treewright.parsing.dependency.mined import MinedFeature, MinedScorer
from treewright.parsing.dependency.pruning import MAX_HEADS, THRESHOLD
from treewright.parsing.dependency.reasons import (
    Comparison,
    WeighedFeature,
    add_scorer_share,
    arc_reasons,
    differences,
)
from treewright.parsing.dependency.training import LearntParser, ParserTrainer
from treewright.scale import Client, map_jobs
from treewright.tagging.tagger import Tagger

PARSED_AT_A_TIME = 500
"""Number of sentences that a thread parses per batch."""
Result = TypeVar("Result")
EPOCHS = 6
MINING = ("mine", "mining_threshold", "mining_degree", "mining_significance")
"""Parameters of mined features."""
LINEAR_ONLY = ("k", "runs", "bound", "table_bits", "templates", "patience")
"""Parameters of the linear model and its training, which a custom scorer does not have."""
Scale = Annotated[float, Range(0, LARGEST_WEIGHT)]


class Candidate(NamedTuple):
    """One of the k-best trees of a sentence, with its score and probability.

    Attributes
    ----------
    tree : DepTree
        The tree.
    score : float
        Score from the parser or reranker.
    probability : float
        Probability of the tree among all trees of the sentence.

    See Also
    --------
    DependencyParser.kbest : Returns candidates.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(20, random_state=0).dependencies
    >>> parser = tw.DependencyParser(order=1, epochs=1).fit(trees)
    >>> best, second = parser.kbest(trees[:1], k=2)[0]
    >>> best.score >= second.score and best.probability >= second.probability
    True
    """

    tree: DepTree
    score: float
    probability: float

    def _repr_html_(self) -> str:
        return notebook_html(self)


class Structures(NamedTuple):
    """The k-best trees of a sentence as arrays, without relations and with crossing arcs lifted.

    Attributes
    ----------
    tree : DepTree
        The sentence, with the tags used for parsing.
    heads : ndarray of int32, (n_trees, n_words)
        Heads of each tree, the best tree first.
    scores : ndarray of float, (n_trees,)
        Scores of the trees.
    probabilities : ndarray of float, (n_trees,)
        Probabilities of the trees among all trees of the sentence.
    """

    tree: DepTree
    heads: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]
    probabilities: npt.NDArray[np.float64]


class DependencyParser(DependencyAnnotator):
    """Graph-based dependency parser with exact k-best trees and calibrated probabilities.

    Parameters
    ----------
    order : {1, 2, 3}
        Order of the scored parts: arcs, pairs or triples of arcs. Order 2 adds adjacent siblings and
        grandchildren; order 3 adds grand-siblings and three adjacent siblings.
    k : int
        Length of the k-best lists in training.
    epochs : int
        Number of passes over the training sentences.
    runs : int
        Number of training runs to average. Each run visits the sentences in a different order.
    tags : {"gold", "predicted"}
        Use the tags of the input, or tags predicted by the parser's own tagger. Tags are parts of speech,
        morphological features and lemmas. With "predicted", training sentences are tagged by
        cross-validation.
    decoder : {"projective", "spanning"}
        Decoder; "spanning" allows crossing arcs and needs order 1. With "projective", crossing arcs are
        lifted for training and restored after parsing.
    jackknife : bool
        Train the labeler and the calibration on jackknifed trees (slower). For each of the `folds`, a parser
        trained on the other folds parses the sentences of the fold. The labeler thus learns from trees with
        realistic errors.
    patience : int, optional
        Early-stopping patience in epochs (needs a dev set). The best epoch is kept.
    bound : float
        Maximum step size of a MIRA update for one constraint.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    table_bits : int
        Binary logarithm of the size of the weight table.
    pruning_threshold : float
        Prune heads whose probability, relative to the best head, is below this threshold.
    max_heads : int
        Maximum number of heads per word after pruning.
    folds : int
        Number of jackknife folds for tagging, pruning and mining.
    fold_by : {"auto", "document", "block"}
        Make jackknife folds of whole documents, or of blocks within documents. "auto" uses blocks of
        consecutive sentences if most dev sentences come from training documents, and otherwise whole
        documents.
    lifting : {"path", "head", "head+path", "baseline"}
        Scheme for encoding lifted crossing arcs.
    templates : TemplateSet, optional
        Feature templates.
    scorer : PartScorer, optional
        Scorer of the parts of trees: "neural", or "module:Class" (default: a linear model).
    combine : {"sum", "joint"}, optional
        Add the scores of the linear model to those of the scorer. With "sum", both are trained separately;
        with "joint" (slower), the linear model is trained on top of cross-validated scores of the scorer. The
        weight of the scorer is tuned on the dev set, or on held-out training sentences.
    mine : bool
        Add features that gradient mining selects in forests (slower). For each of the `folds`, a linear model
        trained on the other folds scores the forests of the fold. Mining compares these forests with the gold
        trees.
    mining_threshold : float
        Threshold of gradient mining; a higher threshold selects fewer features.
    mining_degree : {1, 2, 3}
        Maximum number of arcs of a mined feature.
    mining_significance : float, optional
        Use mined features if their gain on DEV is significant at this level (none: always). The test compares
        the parsers with and without mined features, each with its own way to predict (see `predict_by`).
        Without a dev set, held-out training sentences are used.
    predict_by : {"auto", "score", "heads"}
        Predict the tree with the highest score, or with the most expected correct heads. The latter ("heads")
        has minimum Bayes risk, and takes more time. "auto" uses "heads" for parsers with mined features,
        whose probabilities are better than those of a linear model alone.
    n_jobs : int
        Number of threads (-1: all processors); it does not change the results.

    Attributes
    ----------
    recall_ : float
        Percentage of the gold arcs of training sentences that the pruning model keeps.
    tagger_ : Tagger or None
        The parser's own tagger, if `tags` is "predicted".
    encoder_ : Encoder
        Encodes sentences as arrays.
    decoder_ : ProjectiveDecoder or SpanningDecoder
        Finds the best trees, given the scores of parts.
    scorer_ : PartScorer
        Scores the parts of trees.
    labeler_ : Labeler or None
        Predicts relations; None if only the scorer predicts them.
    relation_weight_ : float
        Weight of the scorer's relation scores relative to those of the labeler.
    scale_ : float
        Factor that turns scores into log-probabilities, up to a constant.

    See Also
    --------
    DependencyReranker : Reranks the k-best trees with features the parser lacks.
    NeuralScorer : Neural scorer for the parameter `scorer`.
    Pipeline : From text to tagged and parsed sentences.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(30, random_state=0).dependencies
    >>> parser = tw.DependencyParser(order=1, epochs=2).fit(trees)
    >>> parsed = parser.predict([[("The", "DET"), ("donkey", "NOUN"), ("sneezed", "VERB")]])[0]
    >>> parsed.heads.tolist()
    [2, 3, 0]
    """

    EFFECTIVE_IF: ClassVar = {
        "lifting": {"decoder": ("projective",)},
        "pruning_threshold": {"decoder": ("projective",)},
        "max_heads": {"decoder": ("projective",)},
        "folds": [{"decoder": ("projective",)}, {"tags": ("predicted",)}, {"jackknife": (True,)}],
        "fold_by": [{"decoder": ("projective",)}, {"tags": ("predicted",)}, {"jackknife": (True,)}],
        "mine": {"decoder": ("projective",), "scorer": (None,)},
        "mining_threshold": {"mine": (True,)},
        "mining_degree": {"mine": (True,)},
        "mining_significance": {"mine": (True,)},
        "order": [{"scorer": (None,)}, {"combine": ("sum", "joint")}, {"decoder": ("spanning",)}],
        **{name: [{"scorer": (None,)}, {"combine": ("sum", "joint")}] for name in LINEAR_ONLY},
    }
    adjustable = ("tags", "predict_by", "n_jobs")
    fields = saved(
        scorer=Unfitted(PartScorer, optional=True),
        templates=CHOSEN_TEMPLATES,
        tagger_=Submodel(Tagger, optional=True),
        encoder_=Submodel(Encoder),
        decoder_=Submodel(ChartDecoder),
        scorer_=Submodel(PartScorer),
        labeler_=Submodel(Labeler, optional=True),
        relation_weight_=Value(Scale),
        scale_=Value(Scale),
        recall_=Value(float),
    )
    tagger_: Tagger | None
    encoder_: Encoder
    decoder_: ChartDecoder
    scorer_: PartScorer
    labeler_: Labeler | None
    relation_weight_: float
    scale_: float
    recall_: float

    def __init__(
        self,
        *,
        order: Literal[1, 2, 3] = 3,
        k: Count = 10,
        epochs: Count = EPOCHS,
        runs: Count = 4,
        tags: TagSource = "gold",
        decoder: Literal["projective", "spanning"] = "projective",
        jackknife: bool = False,
        patience: Count | None = None,
        bound: NonNegativeFloat = 1.0,
        random_state: RandomState = 0,
        table_bits: TableBits = 23,
        pruning_threshold: Fraction = THRESHOLD,
        max_heads: Count = MAX_HEADS,
        folds: Count = 5,
        fold_by: FoldBy = "auto",
        lifting: LiftingScheme = "path",
        templates: TemplateSet | None = None,
        scorer: PartScorer | None = None,
        combine: Literal["sum", "joint"] | None = None,
        mine: bool = False,
        mining_threshold: Annotated[float, Range(0, 1e9)] = 3.0,
        mining_degree: Literal[1, 2, 3] = 2,
        mining_significance: Fraction | None = 0.05,
        predict_by: Literal["auto", "score", "heads"] = "auto",
        n_jobs: Jobs = 1,
    ) -> None:
        self.order = order
        self.k = k
        self.epochs = epochs
        self.runs = runs
        self.tags = tags
        self.decoder = decoder
        self.jackknife = jackknife
        self.patience = patience
        self.bound = bound
        self.random_state = random_state
        self.table_bits = table_bits
        self.pruning_threshold = pruning_threshold
        self.max_heads = max_heads
        self.folds = folds
        self.fold_by = fold_by
        self.lifting = lifting
        self.templates = templates
        self.scorer = scorer
        self.combine = combine
        self.mine = mine
        self.mining_threshold = mining_threshold
        self.mining_degree = mining_degree
        self.mining_significance = mining_significance
        self.predict_by = predict_by
        self.n_jobs = n_jobs

    @staticmethod
    def read_training(
        train: FileName, dev: FileName | None = None
    ) -> tuple[list[DepTree], list[DepTree] | None]:
        """Read the training and development data for `fit`.

        Parameters
        ----------
        train : str
            Treebank in CoNLL-U.
        dev : str, optional
            Treebank for evaluation after each epoch and for calibration.
        """
        for path in filter(None, (train, dev)):
            check_kind(path, "dependencies")
        development = read_conllu(dev) if dev else None
        return read_conllu(train), development

    @seeded
    def fit(
        self,
        trees: Sequence[DepTree],
        dev: Sequence[DepTree] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        client: Client | None = None,
    ) -> Self:
        """Train on a treebank.

        Parameters
        ----------
        trees : sequence of DepTree
            Training trees.
        dev : sequence of DepTree, optional
            Development trees, for evaluation after each epoch and for calibrating probabilities.
        checkpoint : path, optional
            Folder that stores each step and epoch. If it exists, training resumes from it, with the same
            result as without an interruption.
        client : distributed.Client, optional
            Dask client for training jackknife folds; it does not change the model.
        """
        self._check(trees, dev)
        kept = None
        if checkpoint:
            files = digest_files(self.scorer.file_names() if self.scorer is not None else ())
            kept = Checkpoint(
                checkpoint, fingerprint([*self.result_params().items(), *files], trees, dev or [])
            )
        found = self.with_params(fold_by=resolve_fold_by(self.fold_by, trees, dev))
        return self._set_learnt(ParserTrainer(found, kept, client).train(trees, dev))

    def fold_trainer(
        self,
        trees: Sequence[DepTree],
        *,
        checkpoint: Checkpoint | None = None,
        client: Client | None = None,
    ) -> ParserTrainer:
        """Validate the parameters and return a trainer for the parsers of jackknife folds."""
        self._check(trees, None)
        return ParserTrainer(self, checkpoint, client)

    def with_scorer(self, scorer: PartScorer, dev: Sequence[DepTree]) -> Self:
        """Return a parser that adds the scores of a trained scorer to those of this parser's linear model.

        The result is the same as with ``combine="sum"``, but the linear model is not trained again.

        Parameters
        ----------
        scorer : PartScorer
            A fitted scorer, such as a `NeuralScorer`.
        dev : sequence of DepTree
            Gold trees that neither model was trained on, for tuning the weight and for calibration.
        """
        self.check_is_fitted()
        check_trees(dev)
        if not isinstance(scorer, PartScorer) or not scorer.is_fitted:
            raise InputError(f"scorer is {scorer!r}; expected a fitted PartScorer")
        if not isinstance(self.scorer_, LinearPartScorer):
            raise InputError("the parser already has a custom scorer; expected a parser with a linear model")
        if not any(len(tree) for tree in dev):
            raise InputError("the dev set has no words; expected at least one sentence with words")
        defaults = type(self)().get_params(deep=False)
        without_mining = {name: defaults[name] for name in MINING}
        found = self.with_params(scorer=scorer, combine="sum", **without_mining)
        return found._set_learnt(ParserTrainer(found).add_scorer(self._all_learnt, scorer, dev))

    def with_learnt(self, learnt: LearntParser) -> Self:
        """Return a parser with the same parameters and these fitted components."""
        return self.with_params()._set_learnt(learnt)

    @property
    def _all_learnt(self) -> LearntParser:
        return LearntParser(
            self.tagger_,
            self.encoder_,
            self.decoder_,
            self.labeler_,
            self.recall_,
            self.scorer_,
            self.scale_,
            self.relation_weight_,
        )

    def _set_learnt(self, learnt: LearntParser) -> Self:
        self.tagger_, self.encoder_, self.decoder_, self.labeler_ = learnt[:4]
        self.recall_, self.scorer_, self.scale_, self.relation_weight_ = learnt[4:]
        self.restore()
        return self

    def predict(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[DepTree]:
        """Parse sentences; existing heads and relations are ignored.

        `kbest` orders trees by their scores. With `predict_by` "heads", its first tree may therefore differ
        from the predicted tree.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs. Tags are UPOS, or XPOS if the training data
            has no UPOS. A parser trained with gold tags needs tags; trees with all columns of the training
            sentences are parsed more accurately than lists of pairs.
        fixed : sequence of mapping of int to int, optional
            For each sentence, the required heads as ``{word: head}``; words are numbered from 1, and 0 is the
            root. Only trees with these arcs are considered. A fixed head is never changed, even if its
            relation marks a lifted arc.
        """
        trees = self.read_sentences(sentences)
        found = self._spread(
            lambda batch, fixed: self._parse(batch, 1, fixed, by_heads=self._predicts_by_heads),
            trees,
            fixed=fixed,
        )
        return [candidates[0].tree for candidates in found]

    @property
    def _predicts_by_heads(self) -> bool:
        return self.has_mined_features if self.predict_by == "auto" else self.predict_by == "heads"

    def kbest(
        self, sentences: Sequence[SentenceLike], k: int = 10, *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[Candidate]]:
        """Return the `k` best trees of each sentence with their probabilities, the best first.

        Trees are distinct before crossing arcs are restored; some may be equal afterwards. They are ordered
        by score, even if `predict` chooses a tree by its heads (see `predict_by`).

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs.
        k : int
            Number of trees per sentence.
        fixed : sequence of mapping of int to int, optional
            For each sentence, the required heads as ``{word: head}``. Candidates and probabilities are
            restricted to trees with these arcs, which are kept even if pruning would remove them.
        """
        check_param("k", k, TreeCount)
        trees = self.read_sentences(sentences)
        return self._spread(
            lambda batch, fixed: self._parse(batch, k, fixed, with_probabilities=True), trees, k, fixed
        )

    def structures(
        self, trees: Sequence[DepTree], k: int = 10, *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[Structures]:
        """Return the `k` best trees of each sentence as arrays, without relations.

        Parameters
        ----------
        trees : sequence of DepTree
            Sentences with the tags that the parser needs.
        k : int
            Number of trees per sentence.
        fixed : sequence of mapping of int to int, optional
            For each sentence, the required heads as ``{word: head}``. Only trees with these heads are
            considered.
        """
        check_param("k", k, TreeCount)
        check_trees(trees)
        self.check_is_fitted()
        return self._spread(
            lambda batch, fixed: self._search(batch, k, fixed, with_probabilities=True)[0], trees, k, fixed
        )

    def complete(
        self, trees: Sequence[DepTree], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[DepTree]:
        """Add relations to trees with heads from `structures`, and restore crossing arcs.

        Words with `fixed` heads keep them.
        """
        self.check_is_fitted()
        batch = Batch(trees, self.encoder_.encode(trees))
        scorer = self.scorer_.prepare(batch) if self.scorer_.relations else self.scorer_
        return self._complete(batch, fixed, scorer, trees)

    def _complete(
        self,
        batch: Batch,
        fixed: Sequence[FixedHeads] | None,
        scorer: PartScorer,
        sentences: Sequence[DepTree],
    ) -> list[DepTree]:
        """Add relations to trees and restore crossing arcs; the scorer was prepared for `sentences`."""
        if self.labeler_ is None:
            relations = best_relations(scorer, sentences, batch.trees)
        elif scorer.relations and self.relation_weight_ > 0:
            given = given_scores(self.labeler_, scorer, sentences, batch.trees)
            relations = self.labeler_.predict(batch.trees, batch.corpus, self.relation_weight_ * given)
        else:
            relations = self.labeler_.predict(batch.trees, batch.corpus)
        return [
            deprojectivize(tree.with_heads(tree.heads, labels), keep=heads)
            for tree, labels, heads in zip(
                batch.trees, relations, fixed or [{}] * len(batch.trees), strict=True
            )
        ]

    def marginals(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """Return for each sentence an array (n, n + 1): the probability of each head (column) of each word.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs.
        fixed : sequence of mapping of int to int, optional
            For each sentence, the required heads as ``{word: head}``. Only trees with these heads are
            considered.
        """
        return self._spread(self.batch_marginals, self.read_sentences(sentences), fixed=fixed)

    def batch_marginals(
        self, trees: Sequence[DepTree], fixed: Sequence[FixedHeads] | None
    ) -> list[npt.NDArray[np.float64]]:
        """Return the marginals of trees that were already validated, in one batch."""
        pieces = Pieces(self._tagged(trees), fixed, longest=self.decoder_.longest)
        sentences = Batch(pieces.trees, self.encoder_.encode(pieces.trees))
        squares = self.decoder_.marginals(self.scorer_, sentences, self.scale_, pieces.fixed)[1]
        whole = pieces.join_squares(squares, single_root=self.decoder_.single_root_)
        return [square.T[1:] for square in whole]

    def confidence(
        self,
        parsed: DepTree,
        marginals: npt.NDArray[np.float64],
        *,
        fixed: FixedHeads | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return the probability of each head of a tree, from the marginals of its sentence.

        A restored crossing arc gets the probability of its lifted arc; `fixed` arcs are not lifted.

        Parameters
        ----------
        parsed : DepTree
            Tree with heads and relations, such as one from `predict`.
        marginals : ndarray of float, (n, n + 1)
            Probability of each head (column) of each word (row), from `marginals`.
        fixed : mapping of int to int, optional
            The heads that were required in parsing, as ``{word: head}``; words are numbered from 1, and 0 is
            the root.

        Returns
        -------
        ndarray of float, (n,)
            Probability of the head of each word.
        """
        heads = self.lifted(parsed).heads.copy()
        for word, head in (fixed or {}).items():
            heads[word - 1] = head
        return marginals[np.arange(len(parsed)), heads]

    def lattices(self, sentences: Sequence[SentenceLike]) -> list[Lattice]:
        """Return the scored parts of each sentence, over the arcs that are left after pruning.

        Another scorer can score these parts. If pruning leaves no tree, the lattice has no tree, whereas
        `predict` adds a chain of arcs. Only the projective decoder has lattices.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs.
        """
        self.check_is_fitted()
        if not isinstance(self.decoder_, ProjectiveDecoder):
            raise InputError(f"decoder is {self.decoder!r}; expected 'projective' for lattices")
        tagged = self._tagged(self.read_sentences(sentences))
        return self.decoder_.lattices(self.scorer_, Batch(tagged, self.encoder_.encode(tagged)))

    def lifted(self, tree: DepTree) -> DepTree:
        """Return a tree in the form used for training: a projective decoder needs lifted crossing arcs.

        Parameters
        ----------
        tree : DepTree
            Tree with heads and relations.

        Returns
        -------
        DepTree
            The tree with crossing arcs lifted; with the spanning decoder, the same tree.
        """
        return self.decoder_.lift(tree)

    @property
    def is_projective(self) -> bool:
        """Whether the decoder is projective."""
        return self.decoder == "projective"

    @property
    def own_tagger(self) -> Tagger | None:
        """The parser's own tagger, or None."""
        return self.tagger_

    @property
    def known_tags(self) -> list[str]:
        """The tags of the training data: UPOS, or XPOS if it has no UPOS."""
        return list(self.encoder_.vocabularies[0].strings)

    def knows_words(self, words: Sequence[str]) -> list[bool]:
        """Return which words occur in the training sentences, ignoring case."""
        return self.encoder_.knows_words(words)

    @property
    def has_arc_reasons(self) -> bool:
        """Whether the parser has a linear model, whose features `arc_reasons` returns."""
        return self.linear_scorer is not None

    @property
    def linear_scorer(self) -> LinearPartScorer | None:
        """The linear model, or the linear part of a combined model."""
        scorer = self.scorer_
        if isinstance(scorer, CombinedScorer | MinedScorer):
            scorer = scorer.linear
        return scorer if isinstance(scorer, LinearPartScorer) else None

    @property
    def learns_linear(self) -> bool:
        """Whether a linear model is trained."""
        return self.scorer is None or self.combine is not None

    def scorer_has(self, name: str) -> bool:
        """Return whether the custom scorer overrides a method or property of `PartScorer`."""
        return self.scorer is not None and getattr(type(self.scorer), name) is not getattr(PartScorer, name)

    def arc_reasons(self, trees: Sequence[DepTree], *, n: int = 10) -> list[list[list[WeighedFeature]]]:
        """Return the features that involve each arc of parsed trees, as a list for each word of each tree.

        A feature of several arcs is listed under each of them. Features are computed after lifting crossing
        arcs. The weights of the distinct features add up to the score of the tree, except for features of
        words without dependents.

        Parameters
        ----------
        trees : sequence of DepTree
            Trees with tags and heads, such as those from `predict`.
        n : int
            Maximum number of features per arc; those with the largest weights come first.
        """
        self.check_is_fitted()
        check_integer("n", n, minimum=1)
        check_trees(trees)
        scorer = self._linear_scorer()
        return [
            arc_reasons(self.lifted(tree), scorer, self.encoder_, n, self._mined_features_of)
            for tree in trees
        ]

    @property
    def explains(self) -> bool:  # type: ignore[override]
        """Whether the parser has a linear model, whose features `explain` returns."""
        return self.has_arc_reasons

    def explain(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[Comparison]:
        """Return the k-best trees of each sentence and the features that decided between the first two.

        Features are computed after lifting crossing arcs. If the linear model is combined with another
        scorer, one more entry has the contribution of that scorer. Trees are ordered by score.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs.
        fixed : sequence of mapping of int to int, optional
            For each sentence, the required heads as ``{word: head}``. Only trees with these heads are
            considered.
        """
        trees = self.read_sentences(sentences)
        scorer = self._linear_scorer()
        comparisons = []
        lists = self.kbest(trees, self.k, fixed=fixed)
        for candidates, found in zip(lists, self.structures(trees, 2, fixed=fixed), strict=True):
            best, *second = (found.tree.with_heads(heads) for heads in found.heads)
            reasons = (
                differences(best, second[0], scorer, self.encoder_, self._mined_features_of) if second else []
            )
            if second and isinstance(self.scorer_, CombinedScorer):
                difference = float(found.scores[0] - found.scores[1])
                reasons = add_scorer_share(reasons, best, second[0], difference, self.scorer_.other.title)
            comparisons.append(Comparison(candidates, [each.score for each in candidates], [], reasons))
        return comparisons

    @property
    def _mined_features_of(self) -> Callable[[DepTree], list[WeighedFeature]] | None:
        return self.scorer_.features_of if isinstance(self.scorer_, MinedScorer) else None

    @property
    def has_mined_features(self) -> bool:
        """Whether mined features are used, or may be used after training."""
        return isinstance(self.scorer_, MinedScorer) if self.is_fitted else self.mine

    @property
    def mined_features_(self) -> list[MinedFeature]:
        """The mined features, by descending absolute weight; empty if none are used."""
        self.check_is_fitted()
        return self.scorer_.list_features() if isinstance(self.scorer_, MinedScorer) else []

    def _linear_scorer(self) -> LinearPartScorer:
        """Return the linear model, or raise an error if there is none."""
        if self.linear_scorer is None:
            raise InputError("the parser has a custom scorer; expected a linear model to explain arcs")
        return self.linear_scorer

    @property
    def tag_column(self) -> TagColumn:
        """The column of tags in (word, tag) pairs: UPOS, or XPOS if the training data has no UPOS."""
        universal, own = (vocabulary.strings for vocabulary in self.encoder_.vocabularies[:2])
        if universal != own:
            return "upos"
        # If one column is missing, the other replaces it. Penn tags share SYM with UPOS.
        return "upos" if 2 * len(universal_tags().intersection(own)) >= len(own) else "xpos"

    @property
    def needs_tags(self) -> bool:
        """Whether input sentences must have tags."""
        known = self.encoder_.vocabularies[:2]
        return self.tags == "gold" and any(tag != "_" for each in known for tag in each.strings)

    def restore(self) -> None:
        """Pass the encoder to the linear model."""
        scorer = self.linear_scorer
        if scorer is not None:
            scorer.encoder = self.encoder_

    def _check(self, trees: Sequence[DepTree], dev: Sequence[DepTree] | None) -> None:
        check_params(self)
        check_trees(trees)
        if self.decoder == "spanning" and self.learns_linear and self.order != 1:
            found = f"{setting('decoder', self.decoder)} does not work with {setting('order', self.order)}"
            raise InputError(f"{found}; expected {setting('order', 1)}")
        if self.patience is not None and not dev:
            found = f"{setting('patience', self.patience)} is given without a dev set"
            raise InputError(f"{found}; expected a dev set for early stopping")
        if self.templates is not None and not isinstance(self.templates, TemplateSet):
            raise InputError(f"templates is {self.templates!r}; expected a TemplateSet")
        if self.scorer is not None and not isinstance(self.scorer, PartScorer):
            raise InputError(f"scorer is {self.scorer!r}; expected a PartScorer")
        if self.scorer is not None and not (self.scorer.fields and self.scorer.is_fitted):
            self.scorer.check_options()
        if self.decoder == "spanning" and self.scorer is not None and self.scorer.order != 1:
            found = (
                f"{setting('decoder', self.decoder)} does not work with a scorer of order {self.scorer.order}"
            )
            raise InputError(f"{found}; expected a scorer of order 1")
        if not self.learns_linear and self.epochs != EPOCHS and not self.scorer_has("update"):
            found = f"{setting('epochs', self.epochs)} has no effect on a scorer that trains itself"
            raise InputError(f"{found}; expected the number of epochs as a parameter of the scorer")
        if self.combine and self.scorer is None:
            raise InputError(
                f"{setting('combine', self.combine)} is given without a scorer; expected a scorer"
            )
        if self.combine == "joint" and not self.scorer_has("score_arcs"):
            found = f"{setting('combine', 'joint')} does not work with a scorer without arc scores"
            raise InputError(f"{found}; expected {setting('combine', 'sum')}")
        if dev is not None:
            check_trees(dev)
        if dev is not None and not any(len(tree) for tree in dev):
            raise InputError("the dev set has no words; expected sentences with words, or no dev set")
        n_sentences = sum(len(tree) > 0 for tree in trees)
        if n_sentences == 0:
            raise InputError("there are no training sentences with words; expected at least one")
        if (self.jackknife or self.mine or self.tags == "predicted") and min(self.folds, n_sentences) < 2:
            found = f"there are {n_sentences} sentences and {self.folds} folds"
            raise InputError(f"{found}; expected at least two of each for cross-validation")
        for number, tree in enumerate(trees, start=1):
            if (tree.heads < 0).any():
                raise InputError(f"sentence {number} has words without a head; expected complete trees")

    def _tagged(self, trees: Sequence[DepTree]) -> Sequence[DepTree]:
        if self.tags == "gold":
            return trees
        if self.tagger_ is None:
            raise InputError(
                "tags is 'predicted', but the parser was trained on gold tags and has no tagger; "
                "expected 'gold'"
            )
        return self.tagger_.predict(trees)

    def _spread(
        self,
        function: Callable[[Sequence[DepTree], Sequence[FixedHeads] | None], list[Result]],
        trees: Sequence[DepTree],
        k: int = 1,
        fixed: Sequence[FixedHeads] | None = None,
    ) -> list[Result]:
        """Apply `function` to batches of sentences in parallel; batches are smaller for larger `k`."""
        if fixed is not None:
            self.check_fixed(trees, fixed)
        size = max(1, PARSED_AT_A_TIME // k)
        spans = [slice(start, start + size) for start in range(0, len(trees), size)]
        found = map_jobs(
            lambda span: function(trees[span], fixed[span] if fixed is not None else None),
            spans,
            n_jobs=self.n_jobs,
            what="parsing",
            count=lambda span: len(trees[span]),
        )
        return [each for batch in found for each in batch]

    def check_fixed(
        self, trees: Sequence[DepTree], fixed: Sequence[FixedHeads] | None, *, start: int = 1
    ) -> None:
        """Check that each sentence has a tree with the fixed heads; sentences are numbered from `start`."""
        self.check_is_fitted()
        if fixed is not None:
            sizes = [len(tree) for tree in trees]
            projective, single_root = self.decoder_.is_projective, self.decoder_.single_root_
            check_fixed(fixed, sizes, projective=projective, single_root=single_root, start=start)

    def _search(
        self,
        trees: Sequence[DepTree],
        k: int,
        fixed: Sequence[FixedHeads] | None,
        *,
        with_probabilities: bool = False,
        by_heads: bool = False,
    ) -> tuple[list[Structures], Corpus, PartScorer]:
        """Return the k-best structures of each sentence, with probabilities on request.

        With `by_heads`, return the tree with the highest expected number of correct heads instead; its score
        is 0. Also return the encoded sentences and the prepared scorer.
        """
        tagged = self._tagged(trees)
        pieces = Pieces(tagged, fixed, longest=self.decoder_.longest)
        corpus = self.encoder_.encode(pieces.trees)
        batch = Batch(pieces.trees, corpus)
        scorer = self.scorer_.prepare(batch)
        if by_heads:
            heads = self.decoder_.expected_trees(scorer, batch, self.scale_, pieces.fixed)
            scores = np.zeros((corpus.n_sentences, 1))
        else:
            heads, scores = self.decoder_.best_trees(scorer, batch, k, pieces.fixed)
        scores[corpus.sizes == 0, 0] = 0.0
        probabilities = np.full_like(scores, np.nan)
        if with_probabilities:
            log_sums, _ = self.decoder_.marginals(scorer, batch, self.scale_, pieces.fixed)
            probabilities = np.exp(self.scale_ * scores - log_sums[:, np.newaxis])
        n_found = (scores > -np.inf).sum(axis=1).tolist()
        found = [
            (heads[:n, corpus.words_of(number)], scores[number, :n], probabilities[number, :n])
            for number, n in enumerate(n_found)
        ]
        if not pieces.is_whole:
            found = pieces.join_trees(found, k, single_root=self.decoder_.single_root_)
        best = [Structures(tree, *each) for tree, each in zip(tagged, found, strict=True)]
        if pieces.is_whole:
            return best, corpus, scorer
        whole = Batch(tagged, self.encoder_.encode(tagged))
        return best, whole.corpus, self.scorer_.prepare(whole)

    def _parse(
        self,
        trees: Sequence[DepTree],
        k: int,
        fixed: Sequence[FixedHeads] | None,
        *,
        with_probabilities: bool = False,
        by_heads: bool = False,
    ) -> list[list[Candidate]]:
        """Return the candidates of each sentence, as `_search` finds them."""
        found, corpus, scorer = self._search(
            trees, k, fixed, with_probabilities=with_probabilities, by_heads=by_heads
        )
        bare = [each.tree.with_heads(heads) for each in found for heads in each.heads]
        kept = [arcs for each, arcs in zip(found, fixed, strict=True) for _ in each.heads] if fixed else None
        # With one tree per sentence, the encoded sentences can be reused.
        batch = Batch(bare, corpus if k == 1 else self.encoder_.encode(bare))
        sentences = [each.tree for each in found for _ in each.heads]
        whole = iter(self._complete(batch, kept, scorer, sentences))
        return [
            [
                Candidate(next(whole), score, probability)
                for score, probability in zip(each.scores.tolist(), each.probabilities.tolist(), strict=True)
            ]
            for each in found
        ]
