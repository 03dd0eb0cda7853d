"""SpanParser: a neural constituency parser that scores labelled spans, with exact chart decoding."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._optional import require
from treewright._typing import (
    Count,
    FileName,
    FloatArray,
    FolderName,
    Folds,
    Fraction,
    Jobs,
    LayerCount,
    NonNegativeInt,
    RandomState,
    Range,
    TagSource,
)
from treewright._validate import GIVEN, check_integer, check_params, count_jobs
from treewright._version import __version__
from treewright.annotation.contract import Analysis
from treewright.annotation.sentences import SentenceLike, list_sentences
from treewright.checkpoint import Checkpoint, digest_files, fingerprint
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.model import ListOf, Submodel, Value, expect, saved
from treewright.parsing.constituent.annotator import ConstituentAnnotator
from treewright.parsing.constituent.inferences import TaggedSentence
from treewright.parsing.constituent.parser import Parse
from treewright.parsing.dependency.long_sentences import best_sums, cut
from treewright.parsing.neural.devices import find_device
from treewright.parsing.neural.inputs import COLUMNS, WordInputs, check_pretrained
from treewright.parsing.neural.sizes import encoder_shapes
from treewright.parsing.neural.vectors import DEFAULT_MAX_VECTORS
from treewright.parsing.neural.weights import NetworkWeights
from treewright.parsing.sentences import HELD_OUT, check_trees, find_root, learn_tags, read_sentences
from treewright.parsing.span.chart import (
    best_trees,
    log_partition,
    longest_whole,
    majority_tree,
    marginals,
    tree_score,
)
from treewright.parsing.span.inference import SpanRunner
from treewright.parsing.span.labels import LabelledSpans, SpanLabels, all_spans, membership
from treewright.progress import report, task
from treewright.scale import map_jobs
from treewright.tagging.tagger import Tagger

Floats = npt.NDArray[np.float32]
SENTENCES_AT_A_TIME = 64
TEMPERATURES = 2.0 ** np.arange(-2, 3.01, 0.125)
"""Temperatures to try; the one that maximises the likelihood of dev trees is chosen."""
N_CALIBRATED = 500
"""Maximum number of dev sentences for fitting the temperature."""
MAX_SCORE = 1e6
"""Maximum absolute score of a label; it is limited because weights from a file can be arbitrarily large."""


class SpanMarginal(NamedTuple):
    """A possible constituent of a sentence with its probability.

    Attributes
    ----------
    start : int
        Position of the first word, from 0.
    end : int
        Position after the last word.
    label : str
        Label of the constituent.
    probability : float
        Probability of the constituent among all trees of the sentence.

    See Also
    --------
    SpanParser.marginals : Returns these constituents.

    Examples
    --------
    >>> from treewright import SpanMarginal
    >>> SpanMarginal(start=0, end=2, label="NP", probability=0.9).label
    'NP'
    """

    label: str
    start: int
    end: int
    probability: float


class SpanParser(ConstituentAnnotator):
    """Neural constituency parser that scores labelled spans, with exact k-best trees and probabilities.

    The score of a tree is the sum of the scores of its labelled spans, which a bidirectional LSTM computes
    (Stern et al. 2017; Kitaev & Klein 2018). An exact chart algorithm finds the k-best trees and the
    probabilities of trees and constituents. Training needs PyTorch (the extra ``neural``); parsing does not,
    unless a pretrained encoder is used.

    Parameters
    ----------
    tags : {"gold", "predicted"}
        Use the tags of the input, or tags predicted by the parser's own tagger. With "predicted", training
        sentences are tagged by cross-validation.
    units : int
        Number of LSTM units in each direction.
    layers : int
        Number of LSTM layers.
    span_size : int
        Size of the hidden layer that scores spans.
    min_count : int
        Minimum count for a word to have an embedding. Rarer words are represented by their characters and
        tag.
    loss : {"crf", "margin"}
        Loss: the negative log-likelihood of trees ("crf"), or a margin loss ("margin").
    learning_rate : float
        Peak learning rate, after a warm-up; it then decreases to zero.
    dropout : float
        Dropout of inputs and hidden layers.
    epochs : int
        Maximum number of training epochs.
    patience : int
        Early-stopping patience in epochs. The best epoch is always kept.
    networks : int
        Number of networks with different initial weights, whose scores are averaged.
    vectors : str, optional
        File of word vectors (text format of word2vec, GloVe or fastText, plain or gzip). Training does not
        change the vectors.
    max_vectors : int
        Number of vectors to keep, in addition to those of training words. They come from the beginning of the
        file.
    encoder : str, optional
        Folder of a pretrained Hugging Face encoder (needs the encoder extra). Parsing needs it, too.
    tune_encoder : bool
        Fine-tune the encoder with the network. A frozen encoder is faster.
    encoder_learning_rate : float
        Peak learning rate of the encoder.
    folds : int
        Number of jackknife folds for tagging.
    precision : {"float32", "bfloat16"}
        Precision of training; bfloat16 is faster on GPUs.
    predict_by : {"brackets", "score"}
        Predict brackets that are more probable than not, or the most probable tree. The former have minimum
        Bayes risk: they are usually better in F1, but the whole tree is less often right.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    device : str
        PyTorch device for training ("auto": a GPU if there is one).
    n_jobs : int
        Number of threads (-1: all processors). It does not change parses, but may change the last bits of
        weights trained on a CPU.

    Attributes
    ----------
    tagger_ : Tagger or None
        The parser's own tagger, if `tags` is "predicted".
    inputs_ : WordInputs
        Encodes words.
    labels_ : SpanLabels
        The unary chains that are labels of spans, and the root label that all trees share, if there is one.
    weights_ : list of dict of str to ndarray of float32
        Weights of each network.
    temperature_ : float
        Divisor of scores that calibrates probabilities on the dev trees.

    See Also
    --------
    LeftCornerParser : Neural left-corner parser with generative probabilities.
    ConstituentParser : Constituency parser with boosted decision trees.
    ConstituentReranker : Reranks the k-best trees of constituency parsers.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(20, random_state=0).constituents
    >>> parser = tw.SpanParser(epochs=1, units=8, layers=1, span_size=8).fit(trees[:16], trees[16:])
    >>> best, second = parser.kbest(trees[:1], k=2)[0]
    >>> best.probability >= second.probability
    True
    """

    EFFECTIVE_IF: ClassVar = {
        "folds": {"tags": ("predicted",)},
        "max_vectors": {"vectors": GIVEN},
        "tune_encoder": {"encoder": GIVEN},
        "encoder_learning_rate": {"tune_encoder": (True,)},
    }
    unsaved = ("device", "n_jobs")
    adjustable = ("tags", "predict_by", "device", "n_jobs")
    fields = saved(
        inputs_=Submodel(WordInputs),
        labels_=Submodel(SpanLabels),
        weights_=ListOf(NetworkWeights()),
        temperature_=Value(Annotated[float, Range(0.01, 100)]),
        tagger_=Submodel(Tagger, optional=True),
    )

    def __init__(
        self,
        *,
        tags: TagSource = "gold",
        units: Count = 256,
        layers: LayerCount = 3,
        span_size: Count = 250,
        min_count: Count = 2,
        loss: Literal["crf", "margin"] = "crf",
        learning_rate: Annotated[float, Range(1e-8, 10)] = 0.002,
        dropout: Annotated[float, Range(0, 0.9)] = 0.33,
        epochs: Count = 60,
        patience: Count = 15,
        networks: Count = 1,
        vectors: FileName | None = None,
        max_vectors: NonNegativeInt = DEFAULT_MAX_VECTORS,
        encoder: FolderName | None = None,
        tune_encoder: bool = False,
        encoder_learning_rate: Annotated[float, Range(0, 1)] = 2e-5,
        folds: Folds = 5,
        precision: Literal["float32", "bfloat16"] = "float32",
        predict_by: Literal["brackets", "score"] = "brackets",
        random_state: RandomState = 0,
        device: Literal["auto", "cpu", "cuda"] | str = "auto",
        n_jobs: Jobs = 1,
    ) -> None:
        self.tags: str = tags
        self.units = units
        self.layers = layers
        self.span_size = span_size
        self.min_count = min_count
        self.loss = loss
        self.learning_rate = learning_rate
        self.dropout = dropout
        self.epochs = epochs
        self.patience = patience
        self.networks = networks
        self.vectors = vectors
        self.max_vectors = max_vectors
        self.encoder = encoder
        self.tune_encoder = tune_encoder
        self.encoder_learning_rate = encoder_learning_rate
        self.folds = folds
        self.precision = precision
        self.predict_by = predict_by
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs

    def identity(self, trees: Sequence[ConstTree], dev: Sequence[ConstTree] | None = None) -> str:
        """Return a fingerprint of the options and the training data."""
        without = {*self.unsaved, "predict_by"}
        options = [getattr(self, name) for name in self.param_names() if name not in without]
        files = digest_files((self.vectors, self.encoder))
        return fingerprint([__version__, HELD_OUT, *options, *files], trees, dev or [])

    def _learn(self, trees: list[ConstTree], dev: list[ConstTree], steps: Path | None) -> None:
        """Train until early stopping, and keep the best weights."""
        device = find_device(self.device)  # raises an error with a remedy if PyTorch is missing
        kept = Checkpoint(steps, self.identity(trees, dev)) if steps else None
        self.tagger_: Tagger | None = None
        trees = [tree for tree in trees if not tree.is_leaf]
        if not trees:
            raise InputError("the training trees have no tags; expected at least one tree with a tag")
        if self.tags == "predicted":
            self.tagger_, trees = learn_tags(
                trees, folds=self.folds, random_state=self.random_state, n_jobs=self.n_jobs
            )
        self.labels_ = SpanLabels.from_trees(trees, find_root(trees))
        if len(self.labels_) == 1:
            raise InputError("the training trees have no constituents; expected at least one")
        gold = [self.labels_.encode(tree) for tree in trees]
        sentences = [DepTree(tree.words(), xpos=tree.tags()) for tree in trees]
        self.inputs_ = WordInputs.from_trees(
            sentences,
            min_count=self.min_count,
            vectors=self.vectors,
            max_vectors=self.max_vectors,
            encoder=self.encoder,
        )
        if self.inputs_.encoder is not None:
            self.inputs_.encoder.place(device)
        n_words = sum(map(len, sentences))
        report(f"{len(trees)} sentences, {n_words} words, {len(self.labels_) - 1} span labels")
        dev = [tree for tree in dev if not tree.is_leaf]
        read = read_sentences(dev, self, self.tagger_)
        spans = [each for each in gold if each is not None]
        dev_sentences = [DepTree(each.words, xpos=each.tags) for each in read]
        self.weights_ = self._train(device, kept, (sentences, spans, dev_sentences, dev))
        self.restore()
        self.temperature_ = 1.0
        self.temperature_ = self._calibrate(dev[:N_CALIBRATED], read)
        report(f"temperature {self.temperature_:.3g}")

    def _train(
        self,
        device: str,
        kept: Checkpoint | None,
        data: tuple[list[DepTree], list[LabelledSpans], list[DepTree], list[ConstTree]],
    ) -> list[dict[str, Floats]]:
        """Train the networks on `data`, the arguments of `SpanTrainer.train`; return their weights."""
        require("torch", "neural")
        from treewright.parsing.neural.training import TrainingSettings, train_networks
        from treewright.parsing.span.network import SpanNetworkSettings
        from treewright.parsing.span.training import SpanTrainer

        settings = SpanNetworkSettings(self.units, self.layers, self.span_size, self.dropout)

        def train(number: int) -> dict[str, Floats]:
            training = TrainingSettings(
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                loss=self.loss,
                single_root=False,
                device=device,
                precision=self.precision,
                patience=self.patience,
                random_state=self.random_state + number,
                tune_encoder=self.tune_encoder,
                encoder_learning_rate=self.encoder_learning_rate,
            )
            name = f"network{number}"
            return SpanTrainer(self.inputs_, self.labels_, settings, training, kept, name).train(*data)

        return train_networks(self.networks, self.n_jobs, train)

    def _calibrate(self, trees: Sequence[ConstTree], read: Sequence[TaggedSentence]) -> float:
        """Return the temperature that maximises the likelihood of trees."""
        longest = longest_whole(1)
        pairs = [
            (sentence, spans)
            for tree, sentence in zip(trees, read, strict=False)
            if (spans := self.labels_.encode(tree)) is not None and len(sentence.words) <= longest
        ]
        logs = np.zeros(len(TEMPERATURES))
        for (sentence, spans), scores in zip(
            pairs, self._iterate_scores([sentence for sentence, _ in pairs]), strict=True
        ):
            n = len(sentence.words)
            own = tree_score(scores, n, spans)
            for at, temperature in enumerate(TEMPERATURES.tolist()):
                total = log_partition(scores / temperature, n, is_rooted=self._is_rooted)
                logs[at] += own / temperature - total
        return float(TEMPERATURES[int(logs.argmax())]) if pairs else 1.0

    def check_fitted_state(self) -> None:
        """Check that the weights match the vocabularies and labels."""
        check_params(self)
        vocabularies = self.inputs_.vocabularies
        expect(set(vocabularies) == {*COLUMNS, "feats", "characters"}, "vocabularies of all inputs")
        strings = [text for each in vocabularies.values() for text in each.strings]
        expect(all(isinstance(text, str) for text in strings), "vocabularies of strings")
        expect(len(self.labels_) > 1, "at least one label")
        sizes = self.inputs_.sizes()
        expect(len(self.weights_) == self.networks, f"{self.networks} networks")
        top = {
            "boundary.weight": (self.span_size, 2 * self.units),
            **dict.fromkeys(("span_bias", "span_norm.weight", "span_norm.bias"), (self.span_size,)),
            "label.weight": (len(self.labels_) - 1, self.span_size),
            "label.bias": (len(self.labels_) - 1,),
        }
        shapes = encoder_shapes(sizes, units=self.units, layers=self.layers) | top
        for weights in self.weights_:
            found = {name: array.shape for name, array in weights.items()}
            expect(found == shapes, "weights that match the vocabularies and labels")

    def restore(self) -> None:
        """Prepare the networks for inference."""
        self._runners = [SpanRunner(weights, self.inputs_) for weights in self.weights_]
        self._members = membership(self.labels_.chains)

    def predict(self, sentences: Sequence[SentenceLike]) -> list[ConstTree]:
        """Parse sentences; the trees keep the original words.

        `kbest` orders trees by their scores. With `predict_by` "brackets", its first tree may therefore
        differ from the predicted tree.

        Parameters
        ----------
        sentences : sequence of ConstTree, DepTree, list of str, or list of (str, str or None)
            Trees, lists of words, or lists of (word, tag) pairs. Existing brackets are ignored.
        """
        return [analyses[0].tree for analyses in self._analyse(sentences, 1)]

    def _analyse(self, sentences: Sequence[Any], k: int) -> list[list[Analysis]]:
        """Return the predicted tree of each sentence, or its k-best trees if `k` is above 1."""
        by_brackets = k == 1 and self.predict_by == "brackets"
        return self._describe(self._parse(sentences, k, by_brackets=by_brackets))

    def kbest(
        self, sentences: Sequence[SentenceLike], k: int = 20, *, n_jobs: int | None = None
    ) -> list[list[Parse]]:
        """Return the `k` best trees of each sentence with their probabilities, the best first.

        The list is exact: no tree outside the list is more probable than a tree in it. The score of a tree is
        its log-probability given the words. A tree without words is returned unchanged. Sentences of more
        than 250 words are cut into pieces that are parsed separately; if `k` is in the hundreds, shorter
        sentences are cut as well.

        Parameters
        ----------
        sentences : sequence of ConstTree, DepTree, list of str, or list of (str, str or None)
            Trees, lists of words, or lists of (word, tag) pairs. Existing brackets are ignored.
        k : int
            Maximum number of trees per sentence.
        n_jobs : int, optional
            Number of threads (-1: all processors; default: the parameter `n_jobs`).
        """
        return self._parse(sentences, k, n_jobs=n_jobs)

    def _parse(
        self,
        sentences: Sequence[SentenceLike],
        k: int,
        *,
        n_jobs: int | None = None,
        by_brackets: bool = False,
    ) -> list[list[Parse]]:
        """Return the k-best trees of each sentence, or with `by_brackets`, the tree of its best brackets."""
        n_jobs = self._check_jobs(n_jobs)
        check_integer("k", k, minimum=1)
        sentences = list_sentences(sentences, self)
        read = read_sentences(sentences, self, None if self.needs_tags else self.tagger_)
        bounds, pieces = _take_apart(read, longest_whole(k))
        found = iter(self._search(pieces, k, n_jobs, by_brackets=by_brackets))
        lists = []
        for sentence, each, places in zip(sentences, read, bounds, strict=True):
            if not each.words:
                lists.append([Parse(sentence, 0.0)] if isinstance(sentence, ConstTree) else [])
                continue
            own = [next(found) for _ in places[1:]]
            spans = own[0] if len(own) == 1 else self._join(own, places, k)
            lists.append(
                [
                    Parse(self.labels_.decode(each, constituents), score, float(np.exp(score)))
                    for constituents, score in spans
                ]
            )
        return lists

    def _search(
        self, sentences: Sequence[TaggedSentence], k: int, n_jobs: int, *, by_brackets: bool
    ) -> list[list[tuple[LabelledSpans, float]]]:
        """Return the trees of sentences with their log-probabilities, as in `_parse`."""
        found: list[list[tuple[LabelledSpans, float]]] = [[] for _ in sentences]
        with task("parsing", total=len(sentences)) as counted:

            def parse(numbers: Sequence[int]) -> None:
                batch = [sentences[number] for number in numbers]
                for number, scores in zip(numbers, self._score(batch), strict=True):
                    n = len(sentences[number].words)
                    if by_brackets:
                        found[number] = [majority_tree(scores, n, self._members, is_rooted=self._is_rooted)]
                    else:
                        total = log_partition(scores, n, is_rooted=self._is_rooted)
                        trees = best_trees(scores, n, k, is_rooted=self._is_rooted)
                        found[number] = [(spans, score - total) for spans, score in trees]
                    counted.advance()

            map_jobs(parse, _batches(sentences), n_jobs=n_jobs)
        return found

    def _join(
        self, pieces: Sequence[list[tuple[LabelledSpans, float]]], bounds: Sequence[int], k: int
    ) -> list[tuple[LabelledSpans, float]]:
        """Join the k-best trees of adjacent pieces into k-best trees of a sentence."""
        ranks, scores = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
        for own in pieces:
            pairs, scores = best_sums(scores, np.array([score for _, score in own]), k)
            ranks = np.hstack([ranks[pairs[:, 0]], pairs[:, 1:]])
        joined = []
        for row, score in zip(ranks.tolist(), scores.tolist(), strict=True):
            chosen = [own[rank][0] for own, rank in zip(pieces, row, strict=True)]
            columns = [
                (each.starts + begin, each.ends + begin, each.labels)
                for each, begin in zip(chosen, bounds, strict=False)
            ]
            if not self._is_rooted:  # the highest label of the first piece also covers the sentence
                first = chosen[0]
                label = first.labels[np.argmax(first.ends - first.starts)] if len(first.labels) else 1
                over_all = [np.array([each], np.int32) for each in (0, bounds[-1], label)]
                columns.append((over_all[0], over_all[1], over_all[2]))
            joined.append((LabelledSpans(*map(np.concatenate, zip(*columns, strict=True))), score))
        return joined

    def _score(self, sentences: Sequence[TaggedSentence]) -> Iterator[FloatArray]:
        """Yield the scores of labels for all spans of each sentence."""
        trees = [DepTree(each.words, xpos=each.tags) for each in sentences]
        for found in zip(*(runner.score(trees) for runner in self._runners), strict=True):
            scores = np.nan_to_num(np.mean(found, axis=0, dtype=np.float64))
            yield np.clip(scores / self.temperature_, -MAX_SCORE, MAX_SCORE)

    def _iterate_scores(self, sentences: Sequence[TaggedSentence]) -> Iterator[FloatArray]:
        """Yield the scores of any number of sentences, in their order."""
        for begin in range(0, len(sentences), SENTENCES_AT_A_TIME):
            yield from self._score(sentences[begin : begin + SENTENCES_AT_A_TIME])

    def log_probabilities(
        self, trees: Sequence[ConstTree], *, n_jobs: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the log-probability of each tree given its words; the trees can come from any source.

        It is minus infinity for trees with unknown labels. Each distinct sentence is processed only once.

        Parameters
        ----------
        trees : sequence of ConstTree
            Trees with the words of the sentence, and with its tags unless the parser predicts them.
        n_jobs : int, optional
            Number of threads (-1: all processors; default: the parameter `n_jobs`).
        """
        n_jobs = self._check_jobs(n_jobs)
        trees = list(trees)
        check_trees(trees)
        logs = np.full(len(trees), -np.inf)
        encoded = {at: spans for at, tree in enumerate(trees) if (spans := self._encode(tree)) is not None}
        groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
        for at in encoded:
            groups.setdefault((tuple(trees[at].words()), tuple(trees[at].tags())), []).append(at)
        first = [trees[places[0]] for places in groups.values()]
        read = read_sentences(first, self, None if self.needs_tags else self.tagger_)
        bounds, pieces = _take_apart(read, longest_whole(1))
        own: list[tuple[int, int, list[int]]] = [
            (begin, end, places)
            for cuts, places in zip(bounds, groups.values(), strict=True)
            for begin, end in pairwise(cuts)
        ]
        for cuts, places in zip(bounds, groups.values(), strict=True):
            for at in places:
                logs[at] = 0.0 if self._is_within(encoded[at], cuts) else -np.inf
        sums = np.zeros((len(pieces), max(map(len, groups.values()), default=0)))

        def score(numbers: Sequence[int]) -> None:
            for number, scores in zip(numbers, self._score([pieces[each] for each in numbers]), strict=True):
                begin, end, places = own[number]
                total = log_partition(scores, end - begin, is_rooted=self._is_rooted)
                for column, at in enumerate(places):
                    inside = _spans_inside(encoded[at], begin, end)
                    sums[number, column] = tree_score(scores, end - begin, inside) - total

        map_jobs(score, _batches(pieces), n_jobs=n_jobs)
        for (_, _, places), row in zip(own, sums, strict=True):
            logs[places] += row[: len(places)]
        return logs

    def _is_within(self, spans: LabelledSpans, cuts: Sequence[int]) -> bool:
        """Return whether no constituent crosses a cut, except constituents over the whole sentence."""
        pieces = [np.searchsorted(cuts, places, side="right") for places in (spans.starts, spans.ends - 1)]
        is_whole = (spans.starts == 0) & (spans.ends == cuts[-1])
        return bool(((pieces[0] == pieces[1]) | (is_whole & (not self._is_rooted))).all())

    def _encode(self, tree: ConstTree) -> LabelledSpans | None:
        """Return the constituents of a tree, or None if the parser cannot produce the tree."""
        spans = self.labels_.encode(tree)
        if spans is None:
            return None
        again = self.labels_.decode(TaggedSentence(tree.words(), tree.tags()), spans)
        return spans if again == tree else None

    def marginals(
        self,
        sentences: Sequence[SentenceLike],
        *,
        min_probability: Fraction = 0.01,
        n_jobs: int | None = None,
    ) -> list[list[SpanMarginal]]:
        """Return the possible constituents of each sentence, with their probabilities among all trees.

        Constituents are sorted by start, the longest first. Tags, and a root label that all trees share, are
        not included.

        Parameters
        ----------
        sentences : sequence of SentenceLike
            Trees, lists of words, or lists of (word, tag) pairs.
        min_probability : float
            Minimum probability of a returned constituent.
        n_jobs : int, optional
            Number of threads (-1: all processors; default: the parameter `n_jobs`).
        """
        n_jobs = self._check_jobs(n_jobs)
        if not 0 <= min_probability <= 1:
            raise InputError(f"min_probability is {min_probability!r}; expected a number from 0 to 1")
        read = read_sentences(
            list_sentences(sentences, self), self, None if self.needs_tags else self.tagger_
        )
        bounds, pieces = _take_apart(read, longest_whole(1))
        found: list[list[SpanMarginal]] = [[] for _ in pieces]

        def look(numbers: Sequence[int]) -> None:
            for number, scores in zip(numbers, self._score([pieces[each] for each in numbers]), strict=True):
                found[number] = self._list_marginals(scores, len(pieces[number].words), min_probability)

        map_jobs(look, _batches(pieces), n_jobs=n_jobs)
        waiting = iter(found)
        return [
            [
                each._replace(start=each.start + begin, end=each.end + begin)
                for begin, end in pairwise(cuts)
                if end > begin
                for each in next(waiting)
            ]
            for cuts in bounds
        ]

    def _list_marginals(self, scores: FloatArray, n: int, least: float) -> list[SpanMarginal]:
        of_labels, of_spans, _ = marginals(scores, n, is_rooted=self._is_rooted)
        starts, ends = all_spans(n)
        found = []
        for row in np.flatnonzero(of_spans >= least).tolist():
            sums: dict[str, float] = {}
            for label in np.flatnonzero(of_labels[row]).tolist():
                for name in set(self.labels_.chains[label]):
                    sums[name] = sums.get(name, 0.0) + float(of_labels[row, label])
            found += [
                SpanMarginal(name, int(starts[row]), int(ends[row]), min(1.0, share))
                for name, share in sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))
                if share >= least
            ]
        return sorted(found, key=lambda each: (each.start, -each.end))

    def shares(self, scores: Sequence[float]) -> list[float]:
        """Return the probabilities of trees from their log-probabilities."""
        return [*np.exp(scores).tolist()]

    @property
    def known_tags(self) -> list[str]:
        """The tags of the training data."""
        return [*self.inputs_.vocabularies["xpos"].strings[1:]]

    @property
    def needs_tags(self) -> bool:
        """Whether input sentences must have tags."""
        return self.tags == "gold" or self.tagger_ is None

    @property
    def _is_rooted(self) -> bool:
        return self.labels_.root is not None

    def _check_jobs(self, n_jobs: int | None) -> int:
        self.check_is_fitted()
        return count_jobs(self.n_jobs if n_jobs is None else n_jobs)

    def _check(self) -> None:
        check_params(self)
        check_pretrained(self.vectors, self.encoder, tune_encoder=self.tune_encoder, networks=self.networks)


def _batches(sentences: Sequence[TaggedSentence]) -> list[list[int]]:
    """Return the numbers of sentences in batches of similar length."""
    order = np.argsort([len(each.words) for each in sentences], kind="stable").tolist()
    return [order[at : at + SENTENCES_AT_A_TIME] for at in range(0, len(order), SENTENCES_AT_A_TIME)]


def _take_apart(
    sentences: Sequence[TaggedSentence], longest: int
) -> tuple[list[list[int]], list[TaggedSentence]]:
    """Return the bounds of the pieces of each sentence, and all pieces; most sentences have one piece."""
    bounds = [cut(each.words, longest) for each in sentences]
    pieces = [
        TaggedSentence(each.words[begin:end], each.tags[begin:end])
        for each, cuts in zip(sentences, bounds, strict=True)
        for begin, end in pairwise(cuts)
        if end > begin
    ]
    return bounds, pieces


def _spans_inside(spans: LabelledSpans, begin: int, end: int) -> LabelledSpans:
    """Return the constituents of a piece, relative to its first word."""
    kept = (spans.starts >= begin) & (spans.ends <= end)
    return LabelledSpans(spans.starts[kept] - begin, spans.ends[kept] - begin, spans.labels[kept])
