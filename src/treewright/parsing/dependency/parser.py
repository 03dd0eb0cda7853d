"""DependencyParser: from words to labelled dependency trees, the k best of them, and how sure it is."""

import os
from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from treewright._naming import named, setting
from treewright._typing import (
    Count,
    FileName,
    Fraction,
    LiftingScheme,
    NonNegativeFloat,
    NonNegativeInt,
    Range,
    TagSource,
)
from treewright._validate import check_integer, check_params
from treewright.annotation.sentences import SentenceLike, TagColumn
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.conllu import read_conllu
from treewright.data.deptree import DepTree, check_trees
from treewright.data.descriptions import universal_tags
from treewright.data.formats import check_kind
from treewright.drawing.pictures import notebook_html
from treewright.errors import InputError
from treewright.learn.weights import LARGEST_WEIGHT
from treewright.model import Submodel, Unfitted, Value, saved
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
from treewright.parsing.dependency.reasons import Comparison, WeighedFeature, arc_reasons, differences
from treewright.parsing.dependency.training import LearntParser, ParserTrainer
from treewright.scale import Client, map_jobs
from treewright.tagging.tagger import Tagger

PARSED_AT_A_TIME = 500
"""Sentences that one thread parses before it takes others."""
Result = TypeVar("Result")
EPOCHS = 6
MINING = ("mine", "mining_threshold", "mining_degree", "mining_significance")
"""Parameters of mined features."""
LINEAR_ONLY = ("k", "runs", "bound", "table_bits", "templates", "patience")
"""Parameters of the linear model and its training, which a scorer of the user's does not have."""
Scale = Annotated[float, Range(0, LARGEST_WEIGHT)]


class Candidate(NamedTuple):
    """One of the best trees of a sentence."""

    tree: DepTree
    score: float
    probability: float

    def _repr_html_(self) -> str:
        return notebook_html(self)


class Structures(NamedTuple):
    """The best trees of a sentence, as the parser finds them: without relations, crossing arcs lifted.

    Attributes
    ----------
    tree : DepTree
        The sentence, with the tags that it was parsed with.
    heads : ndarray of int32, (n_trees, n_words)
        The best tree first.
    scores : ndarray of float, (n_trees,)
    probabilities : ndarray of float, (n_trees,)
        Among all trees of the sentence.
    """

    tree: DepTree
    heads: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]
    probabilities: npt.NDArray[np.float64]


class DependencyParser(DependencyAnnotator):
    """A graph-based dependency parser with exact k-best trees and calibrated probabilities.

    Parameters
    ----------
    order : {1, 2, 3}
        Order of the scored parts: arcs, pairs or triples of arcs. Order 2 adds neighbouring siblings and
        grandchildren, order 3 grand-siblings and three siblings in a row.
    k : int
        Length of candidate lists in training.
    epochs : int
        Passes over the training sentences.
    runs : int
        Number of training runs to average. They visit the sentences in different orders.
    tags : {"gold", "predicted"}
        Use the tags of the input, or tags predicted by the parser's own tagger. These stand for parts of
        speech, features and lemmas; training sentences are tagged by taggers that have not seen them.
    decoder : {"projective", "spanning"}
        Decoder; spanning finds any trees (with order 1 only). Projective training lifts crossing arcs, and
        parsing brings them back.
    jackknife : bool
        Learn relations and probabilities by jackknifing (slower). A parser is trained on all but each of the
        `folds`; its trees of the sentences that it has not seen show the labeler what mistakes to expect.
    patience : int, optional
        Early-stopping patience in epochs (needs a dev set). The best epoch is kept.
    bound : float
        Maximum step of an update towards one constraint.
    random_state : int
        Seed of the random numbers.
    table_bits : int
        Binary logarithm of the size of the weight table.
    pruning_threshold : float
        Minimum probability of a head, relative to the best head's. Others are pruned.
    max_heads : int
        Maximum number of heads per word after pruning.
    folds : int
        Number of jackknife folds for tagging, pruning and mining.
    lifting : {"path", "head", "head+path", "baseline"}
        Scheme that encodes lifted crossing arcs.
    templates : TemplateSet, optional
        Feature templates.
    scorer : PartScorer, optional
        Scorer of the parts of trees (neural, or module:Class; a linear model by default).
    combine : {"sum", "joint"}, optional
        Add the scores of the linear model to those of the scorer. Each learns alone, or the linear model
        learns on top of the scores of jackknifed scorers ("joint", slower). The weight of the scorer is found
        on the dev set, or on training sentences held out.
    mine : bool
        Add features that gradient mining selects in forests (slower). For each of the `folds`, a parser is
        trained on the others. Features are selected by comparing its trees of the fold with gold trees.
    mining_threshold : float
        Gradient-mining threshold; a higher one selects fewer features.
    mining_degree : {1, 2, 3}
        Maximum number of arcs of a mined feature.
    mining_significance : float, optional
        Use mined features only if their gain on DEV is significant (none: always). Without a dev set,
        training sentences that were held out decide.
    n_jobs : int
        Number of threads; results do not depend on it.

    Attributes
    ----------
    recall_ : float
        Percent of the gold arcs of training sentences that pruning keeps.
    tagger_ : Tagger or None
    encoder_ : Encoder
    decoder_ : ProjectiveDecoder or SpanningDecoder
    scorer_ : PartScorer
    labeler_ : Labeler or None
        None where the scorer alone tells relations.
    relation_weight_ : float
        Weight of the scorer's scores of relations beside those of the labeler.
    scale_ : float
        What scores are multiplied by to become logarithms of probabilities.
    """

    EFFECTIVE_IF: ClassVar = {
        "lifting": {"decoder": ("projective",)},
        "pruning_threshold": {"decoder": ("projective",)},
        "max_heads": {"decoder": ("projective",)},
        "folds": [{"decoder": ("projective",)}, {"tags": ("predicted",)}, {"jackknife": (True,)}],
        "mine": {"decoder": ("projective",), "scorer": (None,)},
        "mining_threshold": {"mine": (True,)},
        "mining_degree": {"mine": (True,)},
        "mining_significance": {"mine": (True,)},
        "order": [{"scorer": (None,)}, {"combine": ("sum", "joint")}, {"decoder": ("spanning",)}],
        **{name: [{"scorer": (None,)}, {"combine": ("sum", "joint")}] for name in LINEAR_ONLY},
    }
    adjustable = ("tags", "n_jobs")
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
        random_state: NonNegativeInt = 0,
        table_bits: TableBits = 23,
        pruning_threshold: Fraction = THRESHOLD,
        max_heads: Count = MAX_HEADS,
        folds: Count = 5,
        lifting: LiftingScheme = "path",
        templates: TemplateSet | None = None,
        scorer: PartScorer | None = None,
        combine: Literal["sum", "joint"] | None = None,
        mine: bool = False,
        mining_threshold: Annotated[float, Range(0, 1e9)] = 3.0,
        mining_degree: Literal[1, 2, 3] = 2,
        mining_significance: Fraction | None = 0.05,
        n_jobs: Count = 1,
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
        self.lifting = lifting
        self.templates = templates
        self.scorer = scorer
        self.combine = combine
        self.mine = mine
        self.mining_threshold = mining_threshold
        self.mining_degree = mining_degree
        self.mining_significance = mining_significance
        self.n_jobs = n_jobs

    @staticmethod
    def read_training(
        train: FileName, dev: FileName | None = None
    ) -> tuple[list[DepTree], list[DepTree] | None]:
        """Read what `fit` learns from.

        Parameters
        ----------
        train : str
            Treebank in CoNLL-U.
        dev : str, optional
            Treebank to score after each epoch.
        """
        for path in filter(None, (train, dev)):
            check_kind(path, "dependencies")
        development = read_conllu(dev) if dev else None
        return read_conllu(train), development

    def fit(
        self,
        trees: Sequence[DepTree],
        dev: Sequence[DepTree] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        client: Client | None = None,
    ) -> Self:
        """Learn from a treebank.

        Parameters
        ----------
        trees : sequence of DepTree
        dev : sequence of DepTree, optional
            Scored after each epoch, and used to calibrate probabilities.
        checkpoint : path, optional
            A folder in which each step and epoch is kept. If it exists, training goes on from it and ends as
            if it had not been interrupted.
        client : distributed.Client, optional
            A cluster that learns from the folds; the model is the same.
        """
        self._check(trees, dev)
        identity = fingerprint(list(self.result_params().items()), trees, dev or [])
        kept = Checkpoint(checkpoint, identity) if checkpoint else None
        return self._set_learnt(ParserTrainer(self, kept, client).train(trees, dev))

    def fold_trainer(
        self,
        trees: Sequence[DepTree],
        *,
        checkpoint: Checkpoint | None = None,
        client: Client | None = None,
    ) -> ParserTrainer:
        """Return what trains parsers of jackknife folds with these parameters, after checking them."""
        self._check(trees, None)
        return ParserTrainer(self, checkpoint, client)

    def with_scorer(self, scorer: PartScorer, dev: Sequence[DepTree]) -> Self:
        """Return a parser that adds the scores of a trained scorer to those of this parser's linear model.

        It is the parser that ``combine="sum"`` trains, without training the linear model again.

        Parameters
        ----------
        scorer : PartScorer
            A fitted one, as `NeuralScorer`.
        dev : sequence of DepTree
            Gold trees that neither has been trained on, by which both are weighed and calibrated.
        """
        self.check_is_fitted()
        check_trees(dev)
        if not isinstance(scorer, PartScorer) or not scorer.is_fitted:
            raise InputError(f"scorer is {scorer!r}; expected a PartScorer that is fitted")
        if not isinstance(self.scorer_, LinearPartScorer):
            raise InputError("the parser has a scorer of its own; expected a linear model to add one to")
        if not any(len(tree) for tree in dev):
            raise InputError("the dev set has no words; expected some")
        defaults = type(self)().get_params(deep=False)
        without_mining = {name: defaults[name] for name in MINING}
        found = self.with_params(scorer=scorer, combine="sum", **without_mining)
        return found._set_learnt(ParserTrainer(found).add_scorer(self._all_learnt, scorer, dev))

    def with_learnt(self, learnt: LearntParser) -> Self:
        """Return a parser with the same parameters that has learnt this."""
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
        """Parse sentences; their heads and relations are not looked at.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs. A tag is the UPOS, or the XPOS if the
            parser was trained with XPOS alone. A parser trained with gold tags needs tags; trees that have
            all columns of its training sentences are parsed more accurately than pairs.
        fixed : sequence of mapping of int to int, optional
            For each sentence the heads that words must have, ``{word: head}``: words are counted from 1, and
            0 is the root. The best tree that has these arcs is returned, whatever else becomes of it: a fixed
            head is final, even where a relation says that the arc to it was lifted.
        """
        trees = self.read_sentences(sentences)
        found = self._spread(lambda batch, fixed: self._parse(batch, 1, fixed), trees, fixed=fixed)
        return [candidates[0].tree for candidates in found]

    def kbest(
        self, sentences: Sequence[SentenceLike], k: int = 10, *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[Candidate]]:
        """Return the `k` best trees of each sentence, the best first, each with its probability.

        Trees are told apart by their heads before crossing arcs are brought back.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            As in `predict`.
        k : int
        fixed : sequence of mapping of int to int, optional
            As in `predict`. The trees are the best of those with these arcs, and probabilities are among
            those, too: they tell how sure the parser is of the rest of the tree. An arc that pruning would
            have thrown out comes back.
        """
        check_integer("k", k, minimum=1)
        trees = self.read_sentences(sentences)
        return self._spread(
            lambda batch, fixed: self._parse(batch, k, fixed, with_probabilities=True), trees, k, fixed
        )

    def structures(
        self, trees: Sequence[DepTree], k: int = 10, *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[Structures]:
        """Return the `k` best trees of each sentence as arrays, before relations are found.

        With `fixed` heads, these are the best trees that have them, as in `kbest`.
        """
        check_integer("k", k, minimum=1)
        check_trees(trees)
        return self._spread(
            lambda batch, fixed: self._search(batch, k, fixed, with_probabilities=True)[0], trees, k, fixed
        )

    def complete(
        self, trees: Sequence[DepTree], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[DepTree]:
        """Give relations to trees that have the heads of `structures`, and bring crossing arcs back.

        Words whose heads are `fixed` keep them.
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
        """Give relations to trees, and bring crossing arcs back; the scorer was prepared for `sentences`."""
        if self.labeler_ is None:
            relations = best_relations(scorer, sentences, batch.trees)
        elif scorer.relations and self.relation_weight_ > 0:
            given = given_scores(self.labeler_, scorer, sentences, batch.trees)
            relations = self.labeler_.predict(batch.trees, batch.corpus, self.relation_weight_ * given)
        else:
            relations = self.labeler_.predict(batch.trees, batch.corpus)
        return [
            self.decoder_.unlift(tree.with_heads(tree.heads, labels), heads)
            for tree, labels, heads in zip(
                batch.trees, relations, fixed or [{}] * len(batch.trees), strict=True
            )
        ]

    def marginals(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """Return for each sentence an array (n, n + 1): the probability that a word's head is the column.

        With `fixed` heads, as in `kbest`, it is the probability among the trees that have them.
        """
        return self._spread(self.batch_marginals, self.read_sentences(sentences), fixed=fixed)

    def batch_marginals(
        self, trees: Sequence[DepTree], fixed: Sequence[FixedHeads] | None
    ) -> list[npt.NDArray[np.float64]]:
        """Return the marginals of trees that have been checked, all at once."""
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
        """Return the probability of the head of each word of a tree, from the marginals of its sentence.

        A crossing arc that was brought back has the probability of the arc that it was lifted to; an arc that
        was `fixed` was not lifted.
        """
        heads = self.lifted(parsed).heads.copy()
        for word, head in (fixed or {}).items():
            heads[word - 1] = head
        return marginals[np.arange(len(parsed)), heads]

    def lattices(self, sentences: Sequence[SentenceLike]) -> list[Lattice]:
        """Return for each sentence the parts over the arcs that pruning leaves, with their scores.

        Another scorer can take these, or words, and give scores of its own; a sentence whose arcs allow no
        tree, which `predict` helps with a chain of arcs, has none here.
        """
        self.check_is_fitted()
        if not isinstance(self.decoder_, ProjectiveDecoder):
            raise InputError(f"decoder is {self.decoder!r}; expected 'projective' for lattices")
        tagged = self._tagged(self.read_sentences(sentences))
        return self.decoder_.lattices(self.scorer_, Batch(tagged, self.encoder_.encode(tagged)))

    def lifted(self, tree: DepTree) -> DepTree:
        """Return a tree as the parser learns it: with crossing arcs lifted, if it finds none of these."""
        return self.decoder_.lift(tree)

    @property
    def is_projective(self) -> bool:
        """Whether the parser finds trees without crossing arcs."""
        return self.decoder == "projective"

    @property
    def own_tagger(self) -> Tagger | None:
        """The tagger inside the parser, or None."""
        return self.tagger_

    @property
    def known_tags(self) -> list[str]:
        """The universal tags that the parser was trained with."""
        return list(self.encoder_.vocabularies[0].strings)

    def knows_words(self, words: Sequence[str]) -> list[bool]:
        """Tell which words, in upper or lower case, occur in the training sentences."""
        return self.encoder_.knows_words(words)

    @property
    def has_arc_reasons(self) -> bool:
        """Whether `arc_reasons` has features to show: those of a linear model."""
        return self.linear_scorer is not None

    @property
    def linear_scorer(self) -> LinearPartScorer | None:
        """The linear model, or the linear share of a combined one."""
        scorer = self.scorer_
        if isinstance(scorer, CombinedScorer | MinedScorer):
            scorer = scorer.linear
        return scorer if isinstance(scorer, LinearPartScorer) else None

    @property
    def learns_linear(self) -> bool:
        """Whether a linear model is trained."""
        return self.scorer is None or self.combine is not None

    def scorer_has(self, name: str) -> bool:
        """Tell whether the scorer of the user has a method or property of its own instead of the default."""
        return self.scorer is not None and getattr(type(self.scorer), name) is not getattr(PartScorer, name)

    def arc_reasons(self, trees: Sequence[DepTree], *, n: int = 10) -> list[list[list[WeighedFeature]]]:
        """Return for each parsed tree, for the arc to each of its words, the features that involve this arc.

        A feature of several arcs is listed under each of them. Features are those of the tree with crossing
        arcs lifted; their weights, each taken once, add up to the score of the tree, but for features of
        words that have no dependents.

        Parameters
        ----------
        trees : sequence of DepTree
            Trees with tags and heads, as `predict` returns them.
        n : int
            Features of an arc at the most, the weightiest first.
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
        """Whether `explain` has reasons for a choice: features of a linear model."""
        return self.has_arc_reasons

    def explain(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[Comparison]:
        """Return the best trees of each sentence, and the features that decided between the first two.

        Features are those of trees with crossing arcs lifted. With `fixed` heads, as in `kbest`, the trees
        are the best that have them.
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
            comparisons.append(Comparison(candidates, [each.score for each in candidates], [], reasons))
        return comparisons

    @property
    def _mined_features_of(self) -> Callable[[DepTree], list[WeighedFeature]] | None:
        return self.scorer_.features_of if isinstance(self.scorer_, MinedScorer) else None

    @property
    def has_mined_features(self) -> bool:
        """Whether mined features are used, or will be if training trusts them."""
        return isinstance(self.scorer_, MinedScorer) if self.is_fitted else self.mine

    @property
    def mined_features_(self) -> list[MinedFeature]:
        """The mined features, by descending absolute weight; empty if none are used."""
        self.check_is_fitted()
        return self.scorer_.list_features() if isinstance(self.scorer_, MinedScorer) else []

    def _linear_scorer(self) -> LinearPartScorer:
        """Return the linear model, or share, whose features have weights; refuse any other scorer."""
        if self.linear_scorer is None:
            raise InputError("the parser has a scorer of its own; expected the linear one for reasons")
        return self.linear_scorer

    @property
    def tag_column(self) -> TagColumn:
        """The column of the tags in (word, tag) pairs: UPOS, or XPOS if training had no other tags."""
        universal, own = (vocabulary.strings for vocabulary in self.encoder_.vocabularies[:2])
        if universal != own:
            return "upos"
        # Where one column is missing, the other stands in for it. Penn tags have SYM in common with UPOS.
        return "upos" if 2 * len(universal_tags().intersection(own)) >= len(own) else "xpos"

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must bring the tags that the parser was trained with."""
        known = self.encoder_.vocabularies[:2]
        return self.tags == "gold" and any(tag != "_" for each in known for tag in each.strings)

    def restore(self) -> None:
        """Let a linear model number the words of sentences as the parser does."""
        scorer = self.linear_scorer
        if scorer is not None:
            scorer.encoder = self.encoder_

    def _check(self, trees: Sequence[DepTree], dev: Sequence[DepTree] | None) -> None:
        check_params(self)
        check_trees(trees)
        if self.decoder == "spanning" and self.learns_linear and self.order != 1:
            found = f"{setting('decoder', self.decoder)} and {setting('order', self.order)}"
            raise InputError(f"{found}; expected {setting('order', 1)}")
        if self.patience is not None and not dev:
            raise InputError(
                f"{named('patience')} counts epochs without a better dev score; expected a dev set"
            )
        if self.templates is not None and not isinstance(self.templates, TemplateSet):
            raise InputError(f"templates is {self.templates!r}; expected a TemplateSet")
        if self.scorer is not None and not isinstance(self.scorer, PartScorer):
            raise InputError(f"scorer is {self.scorer!r}; expected a PartScorer")
        if self.scorer is not None and not (self.scorer.fields and self.scorer.is_fitted):
            self.scorer.check_options()
        if self.decoder == "spanning" and self.scorer is not None and self.scorer.order != 1:
            found = f"{setting('decoder', self.decoder)} and a scorer of order {self.scorer.order}"
            raise InputError(f"{found}; expected one that scores arcs alone")
        if not self.learns_linear and self.epochs != EPOCHS and not self.scorer_has("update"):
            found = f"{setting('epochs', self.epochs)} has no effect on a scorer that learns by itself"
            raise InputError(f"{found}; expected epochs of the scorer")
        if self.combine and self.scorer is None:
            raise InputError(f"{setting('combine', self.combine)} without a scorer; expected one to combine")
        if self.combine == "joint" and not self.scorer_has("score_arcs"):
            found = f"{setting('combine', 'joint')} with a scorer that has no scores of arcs"
            raise InputError(f"{found}; expected {setting('combine', 'sum')}")
        if dev is not None and not any(len(tree) for tree in dev):
            raise InputError("the dev set has no words; expected some, or no dev set")
        n_sentences = sum(len(tree) > 0 for tree in trees)
        if n_sentences == 0:
            raise InputError("no training sentences with words were given; expected at least one")
        if (self.jackknife or self.mine or self.tags == "predicted") and min(self.folds, n_sentences) < 2:
            found = f"{n_sentences} sentences and {self.folds} folds"
            raise InputError(f"{found}; expected two of each or more to train on all but one fold")
        for number, tree in enumerate(trees, start=1):
            if (tree.heads < 0).any():
                raise InputError(f"sentence {number} has words without a head; expected whole trees")

    def _tagged(self, trees: Sequence[DepTree]) -> Sequence[DepTree]:
        if self.tags == "gold":
            return trees
        if self.tagger_ is None:
            raise InputError("tags is 'predicted', but the parser was trained on gold tags and has no tagger")
        return self.tagger_.predict(trees)

    def _spread(
        self,
        function: Callable[[Sequence[DepTree], Sequence[FixedHeads] | None], list[Result]],
        trees: Sequence[DepTree],
        k: int = 1,
        fixed: Sequence[FixedHeads] | None = None,
    ) -> list[Result]:
        """Return what `function` finds for each sentence, some sentences at a time, fewer for more trees."""
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
        """Check that sentences, the first of which has the number `start`, have trees with these heads."""
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
        with_probabilities: bool,
    ) -> tuple[list[Structures], Corpus, PartScorer]:
        """Return the best structures of each sentence, with probabilities if they are wanted.

        Also the sentences as arrays, and the scorer as it has read them.
        """
        tagged = self._tagged(trees)
        pieces = Pieces(tagged, fixed, longest=self.decoder_.longest)
        corpus = self.encoder_.encode(pieces.trees)
        batch = Batch(pieces.trees, corpus)
        scorer = self.scorer_.prepare(batch)
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
    ) -> list[list[Candidate]]:
        """Return candidates for each sentence, with probabilities if they are wanted."""
        found, corpus, scorer = self._search(trees, k, fixed, with_probabilities=with_probabilities)
        bare = [each.tree.with_heads(heads) for each in found for heads in each.heads]
        kept = [arcs for each, arcs in zip(found, fixed, strict=True) for _ in each.heads] if fixed else None
        # Of one tree a sentence, the arrays are at hand.
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
