"""NeuralScorer: a neural scorer for the dependency parser."""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from treewright._optional import require
from treewright._typing import (
    Count,
    FileName,
    FolderName,
    Jobs,
    LayerCount,
    NonNegativeInt,
    RandomState,
    Range,
)
from treewright._validate import GIVEN, check_params, draw_seed
from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.data.vocab import Vocabulary
from treewright.model import Array, ListOf, Submodel, Value, expect, saved
from treewright.parsing.contract import Batch, Parts, PartScorer, PartScores
from treewright.parsing.dependency.calibration import best_scale, gold_loss
from treewright.parsing.neural.devices import find_device
from treewright.parsing.neural.inference import NetworkRunner, ReadSentence, Weights
from treewright.parsing.neural.inputs import WordInputs, check_pretrained
from treewright.parsing.neural.probabilities import head_probabilities, log_probabilities, log_sum
from treewright.parsing.neural.sizes import PART_ROLES, BiaffineSettings, weight_shapes
from treewright.parsing.neural.vectors import DEFAULT_MAX_VECTORS
from treewright.parsing.neural.weights import NetworkWeights

UNFIT = -100.0
"""Score of a relation for root arcs if it occurs only on other arcs, and vice versa."""


class NeuralScorer(PartScorer):
    """Neural scorer of arcs and relations for `DependencyParser`.

    A bidirectional LSTM encodes the vectors of a word's form, characters, lemma, tags and morphological
    features. Biaffine functions of its states score arcs and relations (Dozat & Manning 2017). Training needs
    PyTorch (the extra ``neural``); parsing does not. A parser does not train a fitted scorer again, so that a
    network can be trained on a machine with a GPU, and the rest of the parser elsewhere.

    Parameters
    ----------
    units : int
        Number of LSTM units in each direction.
    layers : int
        Number of LSTM layers.
    arc_size : int
        Size of the vectors that score arcs.
    label_size : int
        Size of the vectors that score relations.
    second_order : bool
        Also score adjacent siblings and grandchildren (slower).
    part_size : int
        Size of the vectors that score siblings and grandchildren.
    dropout : float
        Dropout of the inputs of each layer, and of whole words.
    epochs : int
        Number of passes over the training sentences.
    learning_rate : float
        Peak learning rate, after a warm-up; it then decreases to 0.
    loss : {"head", "projective", "matrix-tree"}
        Loss of arcs: cross-entropy of single heads, of projective trees, or of all trees ("matrix-tree").
    min_count : int
        Minimum count for a word or lemma to have its own embedding.
    networks : int
        Number of networks to train with different initial weights; their scores are averaged.
    patience : int, optional
        Early-stopping patience in epochs (needs a dev set). The best epoch is always kept.
    vectors : str, optional
        File of word vectors in the text format of word2vec, GloVe or fastText, plain or gzip. Training does
        not change the vectors.
    max_vectors : int
        Number of vectors to keep from the beginning of the file, in addition to those of training words.
    encoder : str, optional
        Folder of a pretrained Hugging Face encoder (training and parsing need the encoder extra).
    tune_encoder : bool
        Fine-tune the encoder with the network. A frozen encoder is faster.
    encoder_learning_rate : float
        Peak learning rate of the encoder.
    precision : {"float32", "bfloat16"}
        Precision of training; bfloat16 is faster on GPUs.
    device : str
        PyTorch device for training, such as "cpu" or "cuda" ("auto": a GPU if there is one).
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    n_jobs : int
        Number of threads (-1: all processors) for training on a CPU.

    Attributes
    ----------
    inputs_ : WordInputs
        Encodes words.
    labels_ : Vocabulary
        The relations.
    fits_ : array of bool, (2, n_relations)
        Which relations occur with a word as head, and which with the root.
    weights_ : list of dict of str to ndarray
        Weights of each network.
    temperature_ : float
        Divisor of arc scores that calibrates their probabilities on held-out sentences.

    See Also
    --------
    DependencyParser : Uses a scorer through its parameter `scorer`.
    PartScorer : Base class for scorers of your own.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(20, random_state=0).dependencies
    >>> scorer = tw.NeuralScorer(units=8, layers=1, arc_size=8, label_size=8, epochs=1)
    >>> parser = tw.DependencyParser(scorer=scorer).fit(trees)
    >>> len(parser.predict(trees[:1])[0].heads) == len(trees[0])
    True
    """

    EFFECTIVE_IF: ClassVar = {
        "max_vectors": {"vectors": GIVEN},
        "tune_encoder": {"encoder": GIVEN},
        "part_size": {"second_order": (True,)},
        "encoder_learning_rate": {"tune_encoder": (True,)},
    }
    unsaved: ClassVar = ("n_jobs", "device")
    title: ClassVar = "neural network"
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
        layers: LayerCount = 3,
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
        random_state: RandomState = 0,
        n_jobs: Jobs = 1,
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
        """The highest order of the scored parts."""
        return 2 if self.second_order else 1

    def check_options(self) -> None:
        """Raise an error if a file, a device or PyTorch is missing."""
        check_params(self)
        find_device(self.device)
        self._check_pretrained()

    def _check_pretrained(self) -> None:
        check_pretrained(self.vectors, self.encoder, tune_encoder=self.tune_encoder, networks=self.networks)

    def file_names(self) -> Sequence[str]:
        """Return the files of the vectors and the encoder, unless the scorer is already fitted."""
        names = [name for name in (self.vectors, self.encoder) if name is not None]
        return [] if self.is_fitted else names

    def start(
        self,
        trees: Sequence[DepTree],
        *,
        dev: Sequence[DepTree] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Train the networks; a scorer that is already fitted stays unchanged.

        Parameters
        ----------
        trees : sequence of DepTree
            Training sentences with gold heads and relations.
        dev : sequence of DepTree, optional
            Development sentences, for choosing the best epoch and for early stopping.
        checkpoint : Checkpoint, optional
            Stores unfinished training.
        """
        if self.is_fitted:
            return
        check_params(self)
        require("torch", "neural")
        from treewright.parsing.neural.training import NetworkTrainer, TrainingSettings, train_networks

        self._check_pretrained()
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

        seed = draw_seed(self.random_state, checkpoint=checkpoint)

        def train(number: int) -> Weights:
            settings = TrainingSettings(
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                loss=self.loss,
                single_root=single_root,
                device=device,
                precision=self.precision,
                patience=self.patience if dev else None,
                random_state=seed + number,
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
        """Fit the temperature: maximise the likelihood of the heads of these sentences.

        Parameters
        ----------
        batch : Batch
            Held-out sentences with gold heads.
        """
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
    def relations(self) -> Sequence[str]:  # type: ignore[override]
        """The relations that the scorer scores."""
        return self.labels_.strings

    def restore(self) -> None:
        """Prepare the networks for inference."""
        self._runners = [NetworkRunner(weights, self.inputs_) for weights in self.weights_]

    _runners: list[NetworkRunner]

    def prepare(self, batch: Batch) -> Self:
        """Return a copy of the scorer that has the results of the networks for a batch.

        Parameters
        ----------
        batch : Batch
            The sentences to score.

        Returns
        -------
        NeuralScorer
            A scorer that scores these sentences without running the networks again.
        """
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
        """Return the result of each network for a sentence."""
        number = vars(self).get("_numbers", {}).get(id(tree))
        if number is None:
            return [runner.read([tree])[0] for runner in self._runners]
        return [read[number] for read in self._read]

    def score_arcs(self, tree: DepTree) -> npt.NDArray[np.float64]:
        """Return the log-probabilities of heads, for each word separately.

        Parameters
        ----------
        tree : DepTree
            The sentence, with n words.

        Returns
        -------
        ndarray of float64, (n + 1, n + 1)
            Log-probability of each head (row) of each word (column); row 0 is the root, and column 0 is not
            used.
        """
        return log_probabilities(_mean([one.arcs for one in self._sentences(tree)]) / self.temperature_)

    def arc_vectors(
        self, trees: Sequence[DepTree]
    ) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """Return the vectors that score arcs in each sentence, for all networks.

        Parameters
        ----------
        trees : sequence of DepTree
            The sentences.

        Returns
        -------
        list of (array, array)
            Vectors of words as modifiers, (n_networks, n, size + 1), with a final 1 for biases, and as
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
        """Return the scores of arcs and, with `second_order`, of siblings and grandchildren.

        Parameters
        ----------
        tree : DepTree
            The sentence; its heads and relations are not used.
        parts : Parts
            The parts to score, such as a `Lattice`.

        Returns
        -------
        dict of str to ndarray of float64, (n_parts,)
            Scores by kind, in the order of `parts.words`.
        """
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
        """Return the log-probabilities of relations for the arc to each word.

        Parameters
        ----------
        trees : sequence of DepTree
            The sentences; a sentence may occur several times.
        heads : sequence of array, (n,)
            Heads of the words of each sentence, from 1; 0 is a root.

        Returns
        -------
        list of ndarray of float64, (n, n_relations)
            Log-probability of each relation (column) of each word (row), for each sentence.
        """
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
        """Check the sizes of the networks."""
        expect(len(self.weights_) == self.networks, f"{self.networks} networks")
        expect(self.fits_.shape == (2, len(self.labels_.strings)), "two flags for each relation")
        shapes = weight_shapes(self.inputs_.sizes(), len(self.labels_.strings), self._settings)
        for weights in self.weights_:
            found = {name: array.shape for name, array in weights.items()}
            expect(found == shapes, "weights of the sizes given by the parameters")


def _mean(arrays: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = np.mean(arrays, axis=0, dtype=np.float64)
    return found
