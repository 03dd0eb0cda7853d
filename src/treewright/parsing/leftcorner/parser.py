"""LeftCornerParser: a neural probability model of left-corner derivations (Titov & Henderson 2005)."""

import os
import time
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from treewright._validate import check_choice, check_integer, check_number
from treewright._version import __version__
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.consttree import ConstTree
from treewright.errors import InputError
from treewright.kernels.decisions import DecisionList, GradientList, make_gradient_list
from treewright.metrics.parseval import parseval
from treewright.model import Model, Part, Value, expect, saved
from treewright.parsing.constituent.inferences import Sentence
from treewright.parsing.constituent.parser import Parse
from treewright.parsing.leftcorner.beam import Found, Limits, find_parses
from treewright.parsing.leftcorner.decisions import DecisionVocabulary, Encoded, encode, encode_together
from treewright.parsing.leftcorner.derivations import Decision, UnaryChains, derive, rebuild
from treewright.parsing.leftcorner.network import CELLS, Floats, Network, Sizes, WeightsField
from treewright.parsing.leftcorner.traces import trace_candidates
from treewright.parsing.leftcorner.training import AVERAGED_SHARE, Settings, Trainer, find_device
from treewright.parsing.sentences import (
    HELD_OUT,
    Input,
    check_trees,
    find_root,
    learn_tags,
    list_sentences,
    read_sentences,
    split_dev,
)
from treewright.persist import State
from treewright.progress import report, task, track
from treewright.tagging.tagger import Tagger

OPTIMIZERS = ("adam", "momentum")
COUNTS = (
    "units", "embedding", "threshold", "min_chain", "batch_size", "epochs", "patience", "beam", "branching",
    "max_projections", "n_jobs",
)  # fmt: skip
SEARCH_COUNTS = ("beam", "branching", "max_projections")
DEV_BEAM = 10
"""The beam between epochs of training; with 5, as in the paper, dev scores tell models apart badly."""
MIN_UNKNOWN = 5
"""Instances that the unknown of a tag needs to be one of its own."""
SPARE = 2
"""How many more trees a search returns, of which some are the same when chains are taken apart."""
STEP = "training"


class Epoch(NamedTuple):
    """How far training was after an epoch: its number, the loss of a decision, the dev score, seconds."""

    number: int
    loss: float
    f1: float
    seconds: float

    def __str__(self) -> str:
        return f"epoch {self.number}: loss {self.loss:.4f}, dev F1 {self.f1:.2f}, {self.seconds:.0f} s"


class LeftCornerParser(Model):
    """A constituency parser that knows how probable each tree is, together with its words.

    A tree is made by left-corner decisions, whose probabilities a Simple Synchrony Network computes of the
    whole history. Training needs PyTorch (``pip install 'treewright[neural]'``), parsing does not.

    Parameters
    ----------
    tags : {"gold", "predicted"}
        Whether sentences bring their tags, or the parser's own tagger gives them. In the second case the
        training sentences are tagged by taggers that have not seen them.
    cell : {"gated", "tanh", "sigmoid"}
        What a unit of the network is; the paper has sigmoids.
    units : int
        Of a history vector; more were not better on the treebank at hand, and take much longer.
    embedding : int
        The size of the vectors that labels, tags, words and decisions have.
    threshold : int
        How often a word must occur with a tag to be known.
    min_chain : int
        How often a chain of phrases that are only children must occur to be one label.
    optimizer : {"adam", "momentum"}
    learning_rate : float
        At first; it falls to a hundredth in the last epoch. What suits Adam is too small for momentum.
    weight_decay : float
        Of matrices, in a step at first; it falls to zero, too.
    dropout : float
        The share of inputs, links and history vectors that is left out at random in training.
    batch_size : int
        Decisions after which weights are changed.
    epochs : int
    patience : int
        Stop when the dev score has not risen for so many epochs; the best weights are kept in any case.
    beam : int
        Hypotheses that a search keeps after each word.
    branching : int
        Decisions that it follows from each.
    max_projections : int
        That may follow each other without another decision.
    folds : int
        Of the taggers.
    random_state : int
    device : str
        Where training runs, as PyTorch names it; ``"auto"`` is a GPU where there is one, on which sums are
        taken in no fixed order, so that results differ a little each time.
    n_jobs : int
        Threads; results do not depend on them.

    Attributes
    ----------
    history_ : list of Epoch
        Without their seconds in a parser that was loaded, as files do not depend on the time training takes.
    tagger_ : Tagger or None
    root_ : str or None
        The label that all training trees had at the root and nowhere else, if there was one.
    vocabulary_ : DecisionVocabulary
    chains_ : UnaryChains
    weights_ : dict of str to ndarray of float32

    Examples
    --------
    ::

        parser = LeftCornerParser().fit(trees, dev)
        best, second = parser.kbest(sentences, k=2)[0]
        best.score                                  # the logarithm of its probability
        EfficientTopRerankingKernel().features([parser.trace([best, second])])
    """

    unsaved = ("device", "n_jobs")
    fields = saved(
        root_=Value(str | None),
        history_=Value(
            encode=lambda epochs: [list(epoch._replace(seconds=0.0)) for epoch in epochs],
            decode=lambda epochs: [Epoch(*epoch) for epoch in epochs],
        ),
        vocabulary_=Part(DecisionVocabulary),
        chains_=Part(UnaryChains),
        weights_=WeightsField(),
        tagger_=Part(Tagger, optional=True),
    )

    def __init__(
        self,
        *,
        tags: str = "gold",
        cell: str = "gated",
        units: int = 80,
        embedding: int = 60,
        threshold: int = 5,
        min_chain: int = 10,
        optimizer: str = "adam",
        learning_rate: float = 0.008,
        weight_decay: float = 0.01,
        dropout: float = 0.2,
        batch_size: int = 2_000,
        epochs: int = 10,
        patience: int = 5,
        beam: int = 40,
        branching: int = 10,
        max_projections: int = 5,
        folds: int = 5,
        random_state: int = 0,
        device: str = "auto",
        n_jobs: int = 1,
    ) -> None:
        self.tags = tags
        self.cell = cell
        self.units = units
        self.embedding = embedding
        self.threshold = threshold
        self.min_chain = min_chain
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.batch_size = batch_size
        self.epochs = epochs
        self.patience = patience
        self.beam = beam
        self.branching = branching
        self.max_projections = max_projections
        self.folds = folds
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs

    def fit(
        self,
        trees: Sequence[ConstTree],
        dev: Sequence[ConstTree] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from a treebank.

        Parameters
        ----------
        trees : sequence of ConstTree
        dev : sequence of ConstTree, optional
            By whose score the best epoch is chosen; without them, by that of a tenth of the trees, which are
            not learnt from.
        checkpoint : path, optional
            A folder in which each epoch is kept. If it exists, training goes on from it and ends as if it had
            not been interrupted.
        """
        self._check()
        find_device(self.device)
        whole, held_out = split_dev(trees, dev, self.random_state)
        kept = Checkpoint(checkpoint, self.identity(trees, dev)) if checkpoint else None
        # What is interrupted leaves the parser as it was.
        fresh = self.with_params()
        fresh._learn(whole, held_out, kept)
        return self.take_fitted(fresh)

    def identity(self, trees: Sequence[ConstTree], dev: Sequence[ConstTree] | None = None) -> str:
        """Return a name for the options and the data of a training, another one after any change."""
        fixed = [__version__, DEV_BEAM, MIN_UNKNOWN, HELD_OUT, AVERAGED_SHARE]
        options = [getattr(self, name) for name in self.param_names() if name not in self.unsaved]
        return fingerprint([*fixed, *options], trees, dev or [])

    def _learn(self, trees: list[ConstTree], dev: Sequence[ConstTree], kept: Checkpoint | None) -> None:
        """Train until the dev score no longer rises, and keep the best weights."""
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
                report(str(self.history_[-1]))
        self.weights_ = best

    def _settings(self) -> Settings:
        return Settings(*(getattr(self, name) for name in Settings._fields))

    def _make_training(self, trees: list[ConstTree]) -> list[Encoded]:
        """Return what the network learns from; note what it will be told by."""
        self.tagger_: Tagger | None = None
        if self.tags == "predicted":
            self.tagger_, trees = learn_tags(
                trees, folds=self.folds, random_state=self.random_state, n_jobs=self.n_jobs
            )
        self.chains_ = UnaryChains.from_trees(trees, min_count=self.min_chain)
        derivations = [derive(self.chains_.merge(tree)) for tree in track(trees, "deriving trees")]
        self.vocabulary_ = DecisionVocabulary.from_derivations(
            derivations, threshold=self.threshold, min_unknown=MIN_UNKNOWN
        )
        root = find_root(trees)
        self.root_ = root if root in self.vocabulary_.labels else None
        encoded = [encode(derivation, self.vocabulary_) for derivation in derivations]
        report(
            f"{len(trees)} sentences, {sum(len(each.kinds) for each in encoded)} decisions, "
            f"{len(self.vocabulary_.labels)} labels, {len(self.vocabulary_.words)} tags with words"
        )
        return encoded

    def _is_done(self) -> bool:
        """Tell whether the dev score has not risen for long, or all epochs are over."""
        scores = [epoch.f1 for epoch in self.history_]
        if not scores:
            return False
        return len(scores) >= self.epochs or len(scores) - int(np.argmax(scores)) > self.patience

    def _predict_quickly(self, dev: Sequence[ConstTree]) -> list[ConstTree]:
        beam = min(self.beam, DEV_BEAM)
        return [parses[0].tree for parses in self._search(dev, 1, n_jobs=self.n_jobs, beam=beam)]

    def check_fitted_state(self) -> None:
        """Check that weights are those of the vocabulary."""
        self._check()
        root, labels = self.root_, self.vocabulary_.labels
        expect(root is None or root in labels, "a root that is one of the labels")
        found = {name: array.shape for name, array in self.weights_.items()}
        sizes = Sizes.of(self.vocabulary_)
        expect(found == sizes.shapes(self.units, self.embedding, self.cell), "weights of the vocabulary")

    def restore(self) -> None:
        """Make the network."""
        self._network = Network(self.weights_, Sizes.of(self.vocabulary_), cell=self.cell)
        self._differentiated: Trainer | None = None

    def predict(self, sentences: Sequence[Input]) -> list[ConstTree]:
        """Parse sentences; the trees have all of their words, as they were written."""
        return [parses[0].tree for parses in self.kbest(sentences, 1)]

    def kbest(
        self, sentences: Sequence[Input], k: int = 20, *, n_jobs: int | None = None
    ) -> list[list[Parse]]:
        """Return the `k` most probable trees of each sentence that the search has found, the best first.

        The score of a tree is the logarithm of its probability together with its words. A tree without words
        is its own parse. `n_jobs` is that of the parser unless given.
        """
        self.check_is_fitted()
        n_jobs = self.n_jobs if n_jobs is None else n_jobs
        counts = {"k": k, "n_jobs": n_jobs, **{name: getattr(self, name) for name in SEARCH_COUNTS}}
        for name, value in counts.items():
            check_integer(name, value, minimum=1)
        return self._search(sentences, k, n_jobs=n_jobs, beam=self.beam)

    def _search(self, sentences: Sequence[Input], k: int, *, n_jobs: int, beam: int) -> list[list[Parse]]:
        sentences = list_sentences(sentences)
        read = self._read(sentences)
        words = [
            [self.vocabulary_.words.id(*pair) for pair in zip(each.tags, each.words, strict=True)]
            for each in read
        ]
        places = [at for at, each in enumerate(words) if each]
        root = 0 if self.root_ is None else self.vocabulary_.project(self.root_).symbol
        limits = Limits(beam, self.branching, self.max_projections, root)
        n_wanted = max(SPARE * k, beam)
        found = find_parses(self._network, [words[at] for at in places], limits, k=n_wanted, n_jobs=n_jobs)
        lists = [[Parse(each, 0.0)] if isinstance(each, ConstTree) else [] for each in sentences]
        for at, derivations in zip(places, found, strict=True):
            lists[at] = self._finish(derivations, read[at], k)
        return lists

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must bring tags."""
        return self.tags == "gold" or self.tagger_ is None

    def _read(self, sentences: Sequence[Input]) -> list[Sentence]:
        """Return the words of sentences with the tags that the parser is to see."""
        read = read_sentences(sentences, None if self.needs_tags else self.tagger_)
        if not self.needs_tags:
            return read
        return [
            _read_tree(sentence) if isinstance(sentence, ConstTree) and each.words else each
            for sentence, each in zip(sentences, read, strict=True)
        ]

    def _finish(self, found: Sequence[Found], sentence: Sentence, k: int) -> list[Parse]:
        """Return the trees of the first `k` derivations.

        Those whose chains another derivation has as single labels are left out, unless there are no others.
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

    def _rebuild(self, decisions: Sequence[Decision], sentence: Sentence) -> ConstTree:
        return rebuild(self.vocabulary_.decode(decisions, sentence.tags, sentence.words))

    def log_probabilities(self, trees: Sequence[ConstTree]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """Return the logarithm of the probability of each tree with its words, tags being those it has.

        It is minus infinity for trees with labels that were never seen.
        """
        self.check_is_fitted()
        check_trees(trees)
        derivations = [derive(self.chains_.merge(tree)) for tree in trees]
        places = [at for at, each in enumerate(derivations) if self.vocabulary_.covers(each)]
        logs = np.full(len(trees), -np.inf)
        logs[places] = self._network.score([encode(derivations[at], self.vocabulary_) for at in places])
        return logs

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
            Trees over the same words, as `kbest` returns them; or one tree.
        weights : {"output", "all"}
            By which kernels are to take derivatives: those of the output layer, from a `DecisionList`, or all
            of them, which are in a `GradientList` and were computed by PyTorch.
        distributions : bool
            Whether the probabilities of what was not chosen are there, too, which takes longer; all kernels
            but `EfficientTopRerankingKernel` need them.
        """
        self.check_is_fitted()
        check_choice("weights", weights, ("output", "all"))
        if isinstance(candidates, Parse | ConstTree):
            candidates = [candidates]
        if not candidates:
            raise InputError("no candidates were given; expected at least one")
        trees = [each.tree if isinstance(each, Parse) else each for each in candidates]
        check_trees(trees)
        derivations = [derive(self.chains_.merge(tree)) for tree in trees]
        for at, derivation in enumerate(derivations, 1):
            if (derivation.words, derivation.tags) != (derivations[0].words, derivations[0].tags):
                raise InputError(f"candidate {at} has other words or tags than the first; expected the same")
        if weights == "all":
            return self._differentiate([encode(each, self.vocabulary_) for each in derivations])
        shared = encode_together(derivations, self.vocabulary_)
        return trace_candidates(self._network, shared, distributions=distributions)

    def _differentiate(self, derivations: Sequence[Encoded]) -> GradientList:
        """Return the derivatives of probabilities by all weights."""
        if self._differentiated is None:
            self._differentiated = Trainer(Sizes.of(self.vocabulary_), self._settings())
            self._differentiated.set_weights(self.weights_)
        logs, slopes = zip(*map(self._differentiated.gradient, derivations), strict=True)
        return make_gradient_list(logs, np.stack(slopes))

    def _check(self) -> None:
        check_choice("tags", self.tags, ("gold", "predicted"))
        check_choice("cell", self.cell, CELLS)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        for name in COUNTS:
            check_integer(name, getattr(self, name), minimum=1)
        check_integer("folds", self.folds, minimum=2)
        check_integer("random_state", self.random_state)
        check_number("learning_rate", self.learning_rate, low=1e-8, high=10)
        check_number("weight_decay", self.weight_decay, low=0, high=1)
        check_number("dropout", self.dropout, low=0, high=0.9)


def _read_tree(tree: ConstTree) -> Sentence:
    """Return words and tags as derivations have them: words with siblings have no tag."""
    derivation = derive(tree.without_traces() or tree)
    return Sentence(derivation.words, derivation.tags)
