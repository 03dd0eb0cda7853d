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
from treewright.model import ListOf, Submodel, Value, expect, saved
from treewright.parsing.contract import Batch, Parts, PartScorer, PartScores
from treewright.parsing.neural.devices import find_device
from treewright.parsing.neural.encoders import check_folder
from treewright.parsing.neural.inference import NetworkRunner, ReadSentence, Weights
from treewright.parsing.neural.inputs import WordInputs
from treewright.parsing.neural.sizes import PART_ROLES, BiaffineSettings, weight_shapes
from treewright.parsing.neural.vectors import DEFAULT_MAX_VECTORS
from treewright.parsing.neural.weights import NetworkWeights, round_weights
from treewright.progress import prefixed


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
    weights_ : list of dict of str to ndarray
        Of each network.
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
        weights_=ListOf(NetworkWeights()),
    )
    inputs_: WordInputs
    labels_: Vocabulary
    weights_: list[Weights]

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
        epochs: Count = 60,
        learning_rate: Annotated[float, Range(0, 1)] = 2e-3,
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
        self.order = 2 if second_order else 1
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
        torch = require("torch", "neural")
        from treewright.parsing.neural.training import NetworkTrainer, TrainingSettings

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
        networks: list[Weights] = []
        n_threads = torch.get_num_threads()
        torch.set_num_threads(self.n_jobs)
        try:
            for number in range(self.networks):
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
                with prefixed(f"network {number + 1}/{self.networks}, " if self.networks > 1 else ""):
                    weights = trainer.train([tree for tree in trees if len(tree)], dev)
                # Scores must not change by saving, so the weights are rounded now.
                networks.append(round_weights(weights))
        finally:
            torch.set_num_threads(n_threads)
        self.inputs_, self.labels_, self.weights_ = inputs, labels, networks
        self.restore()

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
        arcs = _mean([one.arcs for one in self._sentences(tree)])
        np.fill_diagonal(arcs, -np.inf)
        arcs[:, 0] = 0.0
        found: npt.NDArray[np.float64] = arcs - _log_sum(arcs, axis=0)
        np.fill_diagonal(found, 0.0)
        return found

    def score(self, tree: DepTree, parts: Parts) -> PartScores:
        """Return the scores of arcs and, if they are learnt, of siblings and grandchildren."""
        arcs = parts.words("arc")
        found: dict[str, npt.NDArray[np.float64]] = {"arc": self.score_arcs(tree)[arcs[:, 0], arcs[:, 1]]}
        for kind in PART_ROLES if self.second_order else ():
            if kind in parts.kinds:
                words, read = parts.words(kind), self._sentences(tree)
                pairs = zip(self._runners, read, strict=True)
                found[kind] = _mean([runner.part_scores(kind, one, words) for runner, one in pairs])
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
        scores = [_mean(each) for each in zip(*found, strict=True)]
        return [each - _log_sum(each, axis=1) if len(each) else each for each in scores]

    def check_fitted_state(self) -> None:
        """Check that the networks have the sizes that the vocabularies and parameters ask for."""
        expect(len(self.weights_) == self.networks, f"{self.networks} networks")
        shapes = weight_shapes(self.inputs_.sizes(), len(self.labels_.strings), self._settings)
        for weights in self.weights_:
            found = {name: array.shape for name, array in weights.items()}
            expect(found == shapes, "weights of the sizes that the parameters ask for")


def _mean(arrays: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = np.mean(arrays, axis=0, dtype=np.float64)
    return found


def _log_sum(values: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
    """Return the logarithm of the sum of exponentials along an axis, which stays."""
    highest = values.max(axis=axis, keepdims=True)
    found: npt.NDArray[np.float64] = highest + np.log(np.exp(values - highest).sum(axis=axis, keepdims=True))
    return found
