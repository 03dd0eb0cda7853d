"""NeuralScorer: a network under the charts of the dependency parser."""

import errno
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from treewright._naming import setting
from treewright._optional import require
from treewright._typing import Count, FileName, FolderName, NonNegativeInt, Range
from treewright._validate import GIVEN, check_params
from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.data.vocab import Vocabulary
from treewright.errors import InputError
from treewright.model import Array, ListOf, Submodel, Value, expect, saved
from treewright.parsing.contract import Batch, Parts, PartScorer, PartScores
from treewright.parsing.dependency.calibration import best_scale, gold_loss
from treewright.parsing.neural.devices import find_device
from treewright.parsing.neural.encoders import check_folder
from treewright.parsing.neural.inference import NetworkRunner, ReadSentence, Weights
from treewright.parsing.neural.inputs import WordInputs
from treewright.parsing.neural.probabilities import head_probabilities, log_probabilities, log_sum
from treewright.parsing.neural.sizes import PART_ROLES, BiaffineSettings, weight_shapes
from treewright.parsing.neural.vectors import DEFAULT_MAX_VECTORS
from treewright.parsing.neural.weights import NetworkWeights

UNFIT = -100.0
"""The score of a relation to the root that only words under others have, and the other way round."""


class NeuralScorer(PartScorer):
    """A network that scores arcs and relations, for `DependencyParser`.

    Vectors of a word's form, characters, lemma, tags and morphological features are read by a bidirectional
    LSTM; arcs and relations are biaffine functions of its states (Dozat & Manning 2017). Training needs
    PyTorch (the extra ``neural``); parsing does not. A fitted scorer that is handed to a parser is used as it
    is: a network can be trained where there is a GPU, and the rest of the parser elsewhere.

    Parameters
    ----------
    units : int
        LSTM units in each direction.
    layers : int
        Number of LSTM layers.
    arc_size : int
        Size of the vectors that arcs are scored by.
    label_size : int
        Size of the vectors that relations are scored by.
    second_order : bool
        Also score pairs of neighbouring siblings, and grandchildren (slower).
    part_size : int
        Size of the vectors that these are scored by.
    dropout : float
        Dropout of the inputs of each layer, and of whole inputs of words.
    epochs : int
        Passes over the training sentences.
    learning_rate : float
        Highest learning rate; it rises at first and then falls to 0.
    loss : {"head", "projective", "matrix-tree"}
        Loss of arcs: cross-entropy of the head of each word, or of the tree among all projective trees or
        among all trees.
    min_count : int
        Minimum count of words and lemmas that get a vector of their own.
    networks : int
        Number of networks to train, from different random weights. Their scores are averaged.
    patience : int, optional
        Early-stopping patience in epochs (needs a dev set). The best epoch is kept anyway.
    vectors : str, optional
        File of word vectors: text of word2vec, GloVe or fastText, or gzip. Training does not change them.
    max_vectors : int
        Number of vectors to keep from the beginning of the file, beside those of training words.
    encoder : str, optional
        Folder of a pretrained Hugging Face encoder (needs the extra encoder, for parsing too).
    tune_encoder : bool
        Train the encoder with the network. A frozen one is faster.
    encoder_learning_rate : float
        Highest learning rate of the encoder.
    precision : {"float32", "bfloat16"}
        Precision of training; bfloat16 is faster on GPUs.
    device : str
        Device for training: auto, cpu, cuda or another that PyTorch knows.
    random_state : int
        Seed of the random numbers.
    n_jobs : int
        Number of threads in training on a CPU.

    Attributes
    ----------
    inputs_ : WordInputs
    labels_ : Vocabulary
        The relations.
    fits_ : array of bool, (2, n_relations)
        Which relations words under another word, and words under the root, may have.
    weights_ : list of dict of str to ndarray
        Of each network.
    temperature_ : float
        What scores of arcs are divided by, so that their probabilities are those of sentences not trained on.
    """

    EFFECTIVE_IF: ClassVar = {
        "max_vectors": {"vectors": GIVEN},
        "tune_encoder": {"encoder": GIVEN},
        "part_size": {"second_order": (True,)},
        "encoder_learning_rate": {"tune_encoder": (True,)},
    }
    unsaved: ClassVar = ("n_jobs", "device")
    fields = saved(
        inputs_=Submodel(WordInputs),
        labels_=Value(encode=lambda found: found.strings, decode=Vocabulary),
        fits_=Array("b", 2),
        weights_=ListOf(NetworkWeights()),
        temperature_=Value(Annotated[float, Range(0.01, 100)]),
    )
    inputs_: WordInputs
    labels_: Vocabulary
    fits_: npt.NDArray[np.bool_]
    weights_: Sequence[Weights]
    temperature_: float

    def __init__(
        self,
        *,
        units: Count = 256,
        layers: Count = 3,
        arc_size: Count = 400,
        label_size: Count = 128,
        second_order: bool = False,
        part_size: Count = 64,
        dropout: Annotated[float, Range(0, 0.9)] = 0.33,
        epochs: Count = 80,
        learning_rate: Annotated[float, Range(1e-8, 1)] = 2e-3,
        loss: Literal["head", "projective", "matrix-tree"] = "head",
        min_count: Count = 2,
        networks: Count = 1,
        patience: Count | None = None,
        vectors: FileName | None = None,
        max_vectors: NonNegativeInt = DEFAULT_MAX_VECTORS,
        encoder: FolderName | None = None,
        tune_encoder: bool = False,
        encoder_learning_rate: Annotated[float, Range(0, 1)] = 2e-5,
        precision: Literal["float32", "bfloat16"] = "float32",
        device: str = "auto",
        random_state: NonNegativeInt = 0,
        n_jobs: Count = 1,
    ) -> None:
        self.units = units
        self.layers = layers
        self.arc_size = arc_size
        self.label_size = label_size
        self.second_order = second_order
        self.part_size = part_size
        self.dropout = dropout
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.loss = loss
        self.min_count = min_count
        self.networks = networks
        self.patience = patience
        self.vectors = vectors
        self.max_vectors = max_vectors
        self.encoder = encoder
        self.tune_encoder = tune_encoder
        self.encoder_learning_rate = encoder_learning_rate
        self.precision = precision
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def order(self) -> int:  # type: ignore[override]
        """The highest order of parts that are scored."""
        return 2 if self.second_order else 1

    def check_options(self) -> None:
        """Refuse files and devices that are not there, and a missing PyTorch."""
        check_params(self)
        find_device(self.device)
        if self.vectors is not None and not os.path.exists(self.vectors):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.vectors)
        if self.encoder is not None:
            check_folder(self.encoder)

    def start(
        self,
        trees: Sequence[DepTree],
        *,
        dev: Sequence[DepTree] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Train the networks; a scorer that is fitted stays as it is."""
        if self.is_fitted:
            return
        check_params(self)
        require("torch", "neural")
        from treewright.parsing.neural.training import NetworkTrainer, TrainingSettings, train_networks

        if self.tune_encoder and self.networks > 1:
            found = f"{setting('networks', self.networks)} with {setting('tune_encoder', True)}"
            raise InputError(f"{found}; expected one network, as a model has one encoder")
        device = find_device(self.device)
        inputs = WordInputs.from_trees(
            trees,
            min_count=self.min_count,
            vectors=self.vectors,
            max_vectors=self.max_vectors,
            encoder=self.encoder,
        )
        if inputs.encoder is not None:
            inputs.encoder.place(device)
        labels = Vocabulary.from_counts(Counter(relation for tree in trees for relation in tree.deprels))
        single_root = all((tree.heads == 0).sum() == 1 for tree in trees if len(tree))
        sentences = [tree for tree in trees if len(tree)]

        def train(number: int) -> Weights:
            settings = TrainingSettings(
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                loss=self.loss,
                single_root=single_root,
                device=device,
                precision=self.precision,
                patience=self.patience if dev else None,
                random_state=self.random_state + number,
                tune_encoder=self.tune_encoder,
                encoder_learning_rate=self.encoder_learning_rate,
            )
            name = f"network{number}"
            trainer = NetworkTrainer(inputs, labels, self._settings, settings, checkpoint, name)
            return trainer.train(sentences, dev)

        self.weights_ = train_networks(self.networks, self.n_jobs, train)
        self.inputs_, self.labels_ = inputs, labels
        self.fits_ = np.zeros((2, len(labels.strings)), dtype=np.bool_)
        for tree in trees:
            self.fits_[(tree.heads == 0).astype(np.int64), labels.ids(tree.deprels) - 1] = True
        self.temperature_ = 1.0
        self.restore()

    def calibrate(self, batch: Batch) -> None:
        """Find the temperature under which the heads of these sentences are most probable."""
        trees = [tree for tree in batch.trees if len(tree)]
        single_root = all((tree.heads == 0).sum() == 1 for tree in trees)
        self.temperature_ = 1.0
        ready = self.prepare(batch)
        squares = [ready.score_arcs(tree) for tree in trees]

        def loss(scale: float) -> float:
            probable = [
                head_probabilities(scale * square, self.loss, single_root=single_root) for square in squares
            ]
            return gold_loss(probable, [tree.heads for tree in trees])

        self.temperature_ = 1 / best_scale(loss)

    @property
    def _settings(self) -> BiaffineSettings:
        sizes = self.units, self.layers, self.arc_size, self.label_size
        return BiaffineSettings(*sizes, self.dropout, self.part_size if self.second_order else 0)

    @property
    def relations(self) -> Sequence[str]:
        """The relations that are scored."""
        return self.labels_.strings

    def restore(self) -> None:
        """Make the networks ready to run."""
        self._runners = [NetworkRunner(weights, self.inputs_) for weights in self.weights_]

    _runners: list[NetworkRunner]

    def prepare(self, batch: Batch) -> Self:
        """Return a scorer for whose sentences the networks have been run."""
        if vars(self).get("_batch") is batch:
            return self
        found = copy(self)
        found._batch = batch
        found._numbers = {id(tree): number for number, tree in enumerate(batch.trees)}
        found._read = [runner.read(batch.trees) for runner in self._runners]
        return found

    _batch: Batch
    _numbers: Mapping[int, int]
    _read: list[list[ReadSentence]]

    def _sentences(self, tree: DepTree) -> list[ReadSentence]:
        """Return what each network has found in a sentence."""
        number = vars(self).get("_numbers", {}).get(id(tree))
        if number is None:
            return [runner.read([tree])[0] for runner in self._runners]
        return [read[number] for read in self._read]

    def score_arcs(self, tree: DepTree) -> npt.NDArray[np.float64]:
        """Return the logarithms of the probabilities of heads, each word for itself; heads are rows."""
        return log_probabilities(_mean([one.arcs for one in self._sentences(tree)]) / self.temperature_)

    def arc_vectors(
        self, trees: Sequence[DepTree]
    ) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """Return what arcs of each sentence are scored by, by all networks.

        Returns
        -------
        list of (array, array)
            Vectors of words as modifiers, (n_networks, n, size + 1), with a 1 at the end for biases, and as
            heads, (n_networks, n + 1, size); the first head is the root.
        """
        read = [runner.arc_vectors(trees) for runner in self._runners]
        found = []
        for each in zip(*read, strict=True):
            modifiers, heads = (np.array(side, dtype=np.float64) for side in zip(*each, strict=True))
            below = modifiers[:, 1:]
            found.append((np.concatenate([below, np.ones_like(below[:, :, :1])], axis=2), heads))
        return found

    def score(self, tree: DepTree, parts: Parts) -> PartScores:
        """Return the scores of arcs and, if they are learnt, of siblings and grandchildren."""
        arcs = parts.words("arc")
        found: dict[str, npt.NDArray[np.float64]] = {"arc": self.score_arcs(tree)[arcs[:, 0], arcs[:, 1]]}
        for kind in PART_ROLES if self.second_order else ():
            if kind in parts.kinds:
                words, read = parts.words(kind), self._sentences(tree)
                pairs = zip(self._runners, read, strict=True)
                scores = _mean([runner.part_scores(kind, one, words) for runner, one in pairs])
                found[kind] = scores / self.temperature_
        return found

    def score_relations(
        self, trees: Sequence[DepTree], heads: Sequence[npt.NDArray[np.int32]]
    ) -> list[npt.NDArray[np.float64]]:
        """Return the logarithms of the probabilities of relations."""
        read = [self._sentences(tree) for tree in trees]
        found = [
            runner.label_scores([each[number] for each in read], heads)
            for number, runner in enumerate(self._runners)
        ]
        scores = [
            np.where(self.fits_[(above == 0).astype(np.int64)], _mean(each), UNFIT)
            for above, *each in zip(heads, *found, strict=True)
        ]
        return [each - log_sum(each, axis=1) if len(each) else each for each in scores]

    def check_fitted_state(self) -> None:
        """Check that the networks have the sizes that the vocabularies and parameters ask for."""
        expect(len(self.weights_) == self.networks, f"{self.networks} networks")
        expect(self.fits_.shape == (2, len(self.labels_.strings)), "relations that words may have")
        shapes = weight_shapes(self.inputs_.sizes(), len(self.labels_.strings), self._settings)
        for weights in self.weights_:
            found = {name: array.shape for name, array in weights.items()}
            expect(found == shapes, "weights of the sizes that the parameters ask for")


def _mean(arrays: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = np.mean(arrays, axis=0, dtype=np.float64)
    return found
