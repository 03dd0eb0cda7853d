"""LeftCornerParser: a neural probability model of left-corner derivations (Titov & Henderson 2005)."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from treewright._typing import Count, Folds, Fraction, Jobs, RandomState, Range, TagSource
from treewright._validate import check_choice, check_integer, check_params, count_jobs
from treewright._version import __version__
from treewright.annotation.sentences import SentenceLike, list_sentences
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.consttree import ConstTree
from treewright.errors import InputError
from treewright.kernels.decisions import DecisionList, GradientList, make_gradient_list
from treewright.metrics.parseval import parseval
from treewright.model import State, Submodel, Value, expect, saved
from treewright.parsing.constituent.annotator import ConstituentAnnotator
from treewright.parsing.constituent.inferences import TaggedSentence
from treewright.parsing.constituent.parser import Parse
from treewright.parsing.leftcorner.beam import BeamLimits, FoundDerivation, find_parses
from treewright.parsing.leftcorner.decisions import DecisionVocabulary, Encoded, encode, encode_together
from treewright.parsing.leftcorner.derivations import Decision, UnaryChains, derive, rebuild
from treewright.parsing.leftcorner.network import Cell, Floats, Network, Sizes, WeightsField
from treewright.parsing.leftcorner.traces import trace_candidates
from treewright.parsing.leftcorner.training import AVERAGED_SHARE, NetworkSettings, Trainer
from treewright.parsing.neural.devices import find_device
from treewright.parsing.sentences import (
    HELD_OUT,
    check_trees,
    find_root,
    learn_tags,
    read_sentences,
)
from treewright.progress import report, task, track
from treewright.scale import one_blas_thread
from treewright.tagging.tagger import Tagger

SEARCH_COUNTS = ("beam", "branching", "max_projections")
MIN_UNKNOWN = 5
"""Minimum total count of a tag's rare words for the tag to have its own unknown word."""
SPARE = 2
"""Number of derivations to search per requested tree; some become equal when unary chains are split."""
STEP = "training"


class Epoch(NamedTuple):
    """The result of a training epoch: mean loss per decision, dev F1 and seconds."""

    number: int
    loss: float
    f1: float
    seconds: float

    def __str__(self) -> str:
        return f"loss {self.loss:.4f}, dev F1 {self.f1:.2f}, {self.seconds:.0f} s"


class LeftCornerParser(ConstituentAnnotator):
    """Neural left-corner parser: a generative model of trees and words (Titov & Henderson 2005).

    A Simple Synchrony Network computes the probability of each left-corner decision from the whole history.
    Training needs PyTorch (the extra ``neural``); parsing does not.

    Parameters
    ----------
    tags : {"gold", "predicted"}
        Use the tags of the input, or tags predicted by the parser's own tagger. With "predicted", training
        sentences are tagged by cross-validation.
    cell : {"gated", "tanh", "sigmoid"}
        Kind of the network's units; the paper uses "sigmoid".
    units : int
        Size of the history vectors. Larger vectors were not better on the English Web Treebank and take much
        longer to train.
    embedding : int
        Size of the embeddings of labels, tags, words and decisions.
    min_count : int
        Minimum count for a tag-word pair to be in the vocabulary.
    min_chain : int
        Minimum count for a unary chain to become one label.
    optimizer : {"adam", "momentum"}
        Optimizer.
    learning_rate : float
        Initial learning rate. It decreases to a hundredth of this value by the end. Momentum needs a larger
        rate than Adam.
    weight_decay : float
        Initial weight decay of the weight matrices. It decreases to zero.
    dropout : float
        Dropout of inputs, links and history vectors.
    batch_size : int
        Number of decisions per weight update.
    average : bool
        Use a moving average of the weights over recent training steps. The paper uses the last weights.
    epochs : int
        Maximum number of training epochs.
    patience : int
        Early-stopping patience in epochs. The best epoch is kept.
    beam : int
        Number of hypotheses kept after each word.
    dev_beam : int
        Maximum beam width in evaluations during training. A beam of 5, as in the paper, makes dev scores less
        reliable.
    branching : int
        Number of decisions explored from each hypothesis.
    max_projections : int
        Maximum number of consecutive projections.
    folds : int
        Number of jackknife folds for tagging.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    device : str
        PyTorch device for training ("auto": a GPU if there is one). On a GPU, the order of sums is not fixed,
        so that results vary slightly.
    n_jobs : int
        Number of threads (-1: all processors). It does not change parses, but may change the last bits of
        trained weights.

    Attributes
    ----------
    history_ : list of Epoch
        Progress of training; a loaded parser has no times.
    tagger_ : Tagger or None
        The parser's own tagger, if `tags` is "predicted".
    root_ : str or None
        The label that all training trees have at the root and nowhere else, if there is one.
    vocabulary_ : DecisionVocabulary
        The vocabulary of decisions.
    chains_ : UnaryChains
        Unary chains that are merged into one label.
    weights_ : dict of str to ndarray of float32
        Weights of the network.

    See Also
    --------
    SpanParser : Neural parser with exact k-best trees.
    ConstituentParser : Constituency parser with boosted decision trees.
    ConstituentReranker : Reranks with kernels derived from the network.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(20, random_state=0).constituents
    >>> parser = tw.LeftCornerParser(epochs=1, units=8, embedding=8, beam=5).fit(trees[:16], trees[16:])
    >>> best = parser.kbest(trees[:1], k=2)[0][0]
    >>> best.tree.words() == trees[0].words(), best.score < 0
    (True, True)
    """

    EFFECTIVE_IF: ClassVar = {"folds": {"tags": ("predicted",)}}
    unsaved = ("device", "n_jobs")
    adjustable = ("tags", "beam", "branching", "max_projections", "device", "n_jobs")
    fields = saved(
        root_=Value(str | None),
        history_=Value(
            encode=lambda epochs: [list(epoch._replace(seconds=0.0)) for epoch in epochs],
            decode=lambda epochs: [Epoch(*epoch) for epoch in epochs],
        ),
        vocabulary_=Submodel(DecisionVocabulary),
        chains_=Submodel(UnaryChains),
        weights_=WeightsField(),
        tagger_=Submodel(Tagger, optional=True),
    )

    def __init__(
        self,
        *,
        tags: TagSource = "gold",
        cell: Cell = "gated",
        units: Count = 80,
        embedding: Count = 60,
        min_count: Count = 5,
        min_chain: Count = 10,
        optimizer: Literal["adam", "momentum"] = "adam",
        learning_rate: Annotated[float, Range(1e-8, 10)] = 0.008,
        weight_decay: Fraction = 0.01,
        dropout: Annotated[float, Range(0, 0.9)] = 0.2,
        batch_size: Count = 2_000,
        average: bool = True,
        epochs: Count = 10,
        patience: Count = 5,
        beam: Count = 40,
        dev_beam: Count = 10,
        branching: Count = 10,
        max_projections: Count = 5,
        folds: Folds = 5,
        random_state: RandomState = 0,
        device: Literal["auto", "cpu", "cuda"] | str = "auto",
        n_jobs: Jobs = 1,
    ) -> None:
        self.tags: str = tags
        self.cell = cell
        self.units = units
        self.embedding = embedding
        self.min_count = min_count
        self.min_chain = min_chain
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.batch_size = batch_size
        self.average = average
        self.epochs = epochs
        self.patience = patience
        self.beam = beam
        self.dev_beam = dev_beam
        self.branching = branching
        self.max_projections = max_projections
        self.folds = folds
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs

    def identity(self, trees: Sequence[ConstTree], dev: Sequence[ConstTree] | None = None) -> str:
        """Return a fingerprint of the options and the training data."""
        fixed = [__version__, MIN_UNKNOWN, HELD_OUT, AVERAGED_SHARE]
        options = [getattr(self, name) for name in self.param_names() if name not in self.unsaved]
        return fingerprint([*fixed, *options], trees, dev or [])

    @one_blas_thread
    def _learn(self, trees: list[ConstTree], dev: list[ConstTree], steps: Path | None) -> None:
        """Train until early stopping, and keep the best weights."""
        find_device(self.device)
        kept = Checkpoint(steps, self.identity(trees, dev)) if steps else None
        derivations = self._make_training(trees)
        trainer = Trainer(Sizes.of(self.vocabulary_), self._settings(), n_jobs=self.n_jobs)
        best: dict[str, Floats] = {}
        self.history_ = []
        before = kept.load(STEP) if kept else None
        if before is not None:
            self.history_ = [Epoch(*each) for each in before.values["history"]]
            trainer.set_state(before.parts["trainer"])
            best = before.parts["best"].arrays
        total = (self.epochs - len(self.history_)) * len(derivations)
        with task("training the network", total=total) as counted:
            while not self._is_done():
                begin = time.perf_counter()
                loss = trainer.run_epoch(derivations, counted)
                seconds = time.perf_counter() - begin
                self.weights_ = trainer.weights()
                self.restore()
                f1 = parseval(dev, self._predict_quickly(dev)).f1
                if not best or f1 > max(each.f1 for each in self.history_):
                    best = self.weights_
                self.history_.append(Epoch(trainer.epoch, loss, f1, seconds))
                if kept:
                    parts = {"trainer": trainer.get_state(), "best": State("weights", arrays=best)}
                    history = [list(each) for each in self.history_]
                    kept.save(STEP, State("Epochs", {"history": history}, {}, parts))
                report(f"epoch {trainer.epoch}/{self.epochs}: {self.history_[-1]}")
        self.weights_ = best

    def _settings(self) -> NetworkSettings:
        return NetworkSettings(*(getattr(self, name) for name in NetworkSettings._fields))

    def _make_training(self, trees: list[ConstTree]) -> list[Encoded]:
        """Return the training data of the network, and set the vocabulary."""
        self.tagger_: Tagger | None = None
        if self.tags == "predicted":
            self.tagger_, trees = learn_tags(
                trees, folds=self.folds, random_state=self.random_state, n_jobs=self.n_jobs
            )
        self.chains_ = UnaryChains.from_trees(trees, min_count=self.min_chain)
        derivations = [derive(self.chains_.merge(tree)) for tree in track(trees, "deriving trees")]
        self.vocabulary_ = DecisionVocabulary.from_derivations(
            derivations, min_count=self.min_count, min_unknown=MIN_UNKNOWN
        )
        root = find_root(trees)
        self.root_ = root if root in self.vocabulary_.labels else None
        encoded = [encode(derivation, self.vocabulary_) for derivation in derivations]
        report(
            f"{len(trees)} sentences, {sum(len(each.kinds) for each in encoded)} decisions, "
            f"{len(self.vocabulary_.labels)} labels, {len(self.vocabulary_.words)} tag-word pairs"
        )
        return encoded

    def _is_done(self) -> bool:
        """Return whether early stopping applies or the last epoch is reached."""
        scores = [epoch.f1 for epoch in self.history_]
        if not scores:
            return False
        return len(scores) >= self.epochs or len(scores) - int(np.argmax(scores)) > self.patience

    def _predict_quickly(self, dev: Sequence[ConstTree]) -> list[ConstTree]:
        beam = min(self.beam, self.dev_beam)
        return [parses[0].tree for parses in self._search(dev, 1, n_jobs=self.n_jobs, beam=beam)]

    def check_fitted_state(self) -> None:
        """Check that the weights match the vocabulary."""
        self._check()
        root, labels = self.root_, self.vocabulary_.labels
        expect(root is None or root in labels, "a root that is one of the labels")
        found = {name: array.shape for name, array in self.weights_.items()}
        sizes = Sizes.of(self.vocabulary_)
        expect(found == sizes.shapes(self.units, self.embedding, self.cell), "weights for the vocabulary")

    @one_blas_thread
    def restore(self) -> None:
        """Rebuild the network."""
        self._network = Network(self.weights_, Sizes.of(self.vocabulary_), cell=self.cell)
        self._differentiated: Trainer | None = None

    def predict(self, sentences: Sequence[SentenceLike]) -> list[ConstTree]:
        """Parse sentences; the trees keep the original words.

        Parameters
        ----------
        sentences : sequence of ConstTree, DepTree, list of str, or list of (str, str or None)
            Trees, lists of words, or lists of (word, tag) pairs. Existing brackets are ignored.
        """
        return [parses[0].tree for parses in self.kbest(sentences, 1)]

    def kbest(
        self, sentences: Sequence[SentenceLike], k: int = 20, *, n_jobs: int | None = None
    ) -> list[list[Parse]]:
        """Return up to `k` of the most probable trees of each sentence, by beam search, the best first.

        The score of a tree is the log-probability of the tree and its words. A tree without words is returned
        unchanged.

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
        n_jobs = count_jobs(self.n_jobs if n_jobs is None else n_jobs)
        counts = {"k": k, **{name: getattr(self, name) for name in SEARCH_COUNTS}}
        for name, value in counts.items():
            check_integer(name, value, minimum=1)
        return self._search(sentences, k, n_jobs=n_jobs, beam=self.beam)

    def _search(
        self, sentences: Sequence[SentenceLike], k: int, *, n_jobs: int, beam: int
    ) -> list[list[Parse]]:
        sentences = list_sentences(sentences, self)
        read = self._read(sentences)
        words = [
            [self.vocabulary_.words.id(*pair) for pair in zip(each.tags, each.words, strict=True)]
            for each in read
        ]
        places = [at for at, each in enumerate(words) if each]
        root = 0 if self.root_ is None else self.vocabulary_.project(self.root_).symbol
        limits = BeamLimits(beam, self.branching, self.max_projections, root)
        n_wanted = max(SPARE * k, beam)
        found = find_parses(self._network, [words[at] for at in places], limits, k=n_wanted, n_jobs=n_jobs)
        lists = [[Parse(each, 0.0)] if isinstance(each, ConstTree) else [] for each in sentences]
        for at, derivations in zip(places, found, strict=True):
            lists[at] = self._finish(derivations, read[at], k)
        return lists

    def shares(self, scores: Sequence[float]) -> list[float]:
        """Return the probabilities of trees, normalised over these trees, from their log-probabilities."""
        shares = np.exp(np.array(scores) - max(scores))
        return [*(shares / shares.sum()).tolist()]

    @property
    def known_tags(self) -> list[str]:
        """The tags of the training data."""
        return list(self.vocabulary_.words.tags.strings)

    @property
    def needs_tags(self) -> bool:
        """Whether input sentences must have tags."""
        return self.tags == "gold" or self.tagger_ is None

    def _read(self, sentences: Sequence[SentenceLike]) -> list[TaggedSentence]:
        """Return the words of sentences with the tags that the parser uses."""
        read = read_sentences(sentences, self, None if self.needs_tags else self.tagger_)
        if not self.needs_tags:
            return read
        return [
            _read_tree(sentence) if isinstance(sentence, ConstTree) and each.words else each
            for sentence, each in zip(sentences, read, strict=True)
        ]

    def _finish(self, found: Sequence[FoundDerivation], sentence: TaggedSentence, k: int) -> list[Parse]:
        """Return the trees of the first `k` derivations.

        Derivations with an unmerged known unary chain are skipped, because another derivation gives the same
        tree. If none is left, the first derivation is used.
        """
        parses: list[Parse] = []
        for decisions, score in found:
            merged = self._rebuild(decisions, sentence)
            tree = self.chains_.split(merged)
            if self.chains_.merge(tree) == merged:
                parses.append(Parse(tree, score))
            if len(parses) == k:
                break
        if parses:
            return parses
        tree = self.chains_.split(self._rebuild(found[0].decisions, sentence))
        return [Parse(tree, float(self.log_probabilities([tree])[0]))]

    def _rebuild(self, decisions: Sequence[Decision], sentence: TaggedSentence) -> ConstTree:
        return rebuild(self.vocabulary_.decode(decisions, sentence.tags, sentence.words))

    @one_blas_thread
    def log_probabilities(self, trees: Sequence[ConstTree]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """Return the log-probability of each tree with its own words and tags.

        Parameters
        ----------
        trees : sequence of ConstTree
            Trees with words and tags, from any source.

        Returns
        -------
        ndarray of float64, (n_trees,)
            The log-probabilities; minus infinity for trees with unknown labels.
        """
        self.check_is_fitted()
        check_trees(trees)
        derivations = [derive(self.chains_.merge(tree)) for tree in trees]
        places = [at for at, each in enumerate(derivations) if self.vocabulary_.covers(each)]
        logs = np.full(len(trees), -np.inf)
        logs[places] = self._network.score([encode(derivations[at], self.vocabulary_) for at in places])
        return logs

    @one_blas_thread
    def trace(
        self,
        candidates: Sequence[Parse | ConstTree] | Parse | ConstTree,
        *,
        weights: str = "output",
        distributions: bool = True,
    ) -> DecisionList | GradientList:
        """Return candidates of one sentence as choices of the network, for kernels derived from it.

        Parameters
        ----------
        candidates : sequence of Parse or ConstTree
            Trees over the same words, as `kbest` returns them; or a single tree.
        weights : {"output", "all"}
            Network weights with respect to which derived kernels take derivatives. "output" (the output
            layer) gives a `DecisionList`; "all" gives a `GradientList` and needs PyTorch.
        distributions : bool
            Also include the probabilities of other choices (slower); all kernels except
            `EfficientTopRerankingKernel` need them.
        """
        self.check_is_fitted()
        check_choice("weights", weights, ("output", "all"))
        if isinstance(candidates, Parse | ConstTree):
            candidates = [candidates]
        if not candidates:
            raise InputError("the list of candidates is empty; expected at least one")
        trees = [each.tree if isinstance(each, Parse) else each for each in candidates]
        check_trees(trees)
        derivations = [derive(self.chains_.merge(tree)) for tree in trees]
        for at, derivation in enumerate(derivations, 1):
            if (derivation.words, derivation.tags) != (derivations[0].words, derivations[0].tags):
                raise InputError(
                    f"candidate {at} and the first have different words or tags; expected the same"
                )
        if weights == "all":
            return self._differentiate([encode(each, self.vocabulary_) for each in derivations])
        shared = encode_together(derivations, self.vocabulary_)
        return trace_candidates(self._network, shared, distributions=distributions)

    def _differentiate(self, derivations: Sequence[Encoded]) -> GradientList:
        """Return the derivatives of the probabilities with respect to all weights."""
        if self._differentiated is None:
            self._differentiated = Trainer(Sizes.of(self.vocabulary_), self._settings())
            self._differentiated.set_weights(self.weights_)
        return make_gradient_list(*self._differentiated.gradients(derivations))

    def _check(self) -> None:
        check_params(self)


def _read_tree(tree: ConstTree) -> TaggedSentence:
    """Return the words and tags of a tree as in its derivation; words with siblings have no tag."""
    derivation = derive(tree.without_traces() or tree)
    return TaggedSentence(derivation.words, derivation.tags)
