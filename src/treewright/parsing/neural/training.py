"""Training of networks: batches, epochs, early stopping, checkpoints."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from treewright._validate import count_jobs
from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.data.vocab import Vocabulary
from treewright.model import State
from treewright.parsing.neural.batches import make_batches
from treewright.parsing.neural.inference import Weights
from treewright.parsing.neural.inputs import Padded, WordInputs
from treewright.parsing.neural.losses import IGNORED, head_loss, second_order_loss, tree_loss
from treewright.parsing.neural.network import ParserNetwork, SentenceEncoder, to_arrays, to_device
from treewright.parsing.neural.probabilities import head_probabilities
from treewright.parsing.neural.sizes import BiaffineSettings
from treewright.parsing.neural.weights import round_weights
from treewright.progress import prefixed, report, task

MAX_NORM = 5.0
"""Maximum norm of a gradient; longer gradients are clipped."""
WARM_UP = 0.05
"""Fraction of the steps in which the learning rate is warmed up."""
MIN_BATCH = 300
"""Minimum number of words per batch."""
SECOND_ORDER_FROM = 0.5
"""Fraction of the epochs after which second-order parts are trained as well."""
EVALUATED_AT_A_TIME = 10_000
"""Number of words per batch in evaluations."""


@dataclass(frozen=True)
class TrainingSettings:
    """Training settings; see `NeuralScorer`."""

    epochs: int
    learning_rate: float
    loss: str
    single_root: bool
    device: str
    precision: str
    patience: int | None
    random_state: int
    tune_encoder: bool = False
    encoder_learning_rate: float = 2e-5


def train_networks(
    n_networks: int, n_jobs: int, train: Callable[[int], Weights]
) -> list[dict[str, npt.NDArray[np.float32]]]:
    """Train networks one after another, with `n_jobs` threads; `train` takes the number of a network.

    The returned weights are rounded to the precision of saved models, so that saving does not change scores.
    """
    n_threads = torch.get_num_threads()
    torch.set_num_threads(count_jobs(n_jobs))
    found = []
    try:
        for number in range(n_networks):
            with prefixed(f"network {number + 1}/{n_networks}, " if n_networks > 1 else ""):
                found.append(round_weights(train(number)))
    finally:
        torch.set_num_threads(n_threads)
    return found


class EncodedSentences(NamedTuple):
    """Sentences for training or evaluation, with the vocabulary of relations."""

    trees: Sequence[DepTree]
    labels: Vocabulary

    def gold(self, numbers: Sequence[int], width: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the heads and relations of sentences; padding is IGNORED."""
        heads = np.full((len(numbers), width), IGNORED, dtype=np.int64)
        labels = np.full((len(numbers), width), IGNORED, dtype=np.int64)
        for row, number in enumerate(numbers):
            tree = self.trees[number]
            heads[row, 1 : len(tree) + 1] = tree.heads
            labels[row, 1 : len(tree) + 1] = self.labels.ids(tree.deprels) - 1  # unknown ones become IGNORED
        return heads, labels


class EpochTrainer:
    """Trains a network epoch by epoch; subclasses define the training step and the dev score.

    Parameters
    ----------
    network : SentenceEncoder
        The network.
    inputs : WordInputs
        Encodes words.
    training : TrainingSettings
        Training settings.
    checkpoint : Checkpoint, optional
        Stores each epoch.
    name : str
        Name of the step in the checkpoint.
    """

    n_steps: ClassVar = 100
    """Target number of batches per epoch."""
    max_batch: ClassVar = 2000
    """Maximum number of words per batch."""
    _network: SentenceEncoder

    def __init__(
        self,
        network: SentenceEncoder,
        inputs: WordInputs,
        training: TrainingSettings,
        checkpoint: Checkpoint | None = None,
        name: str = "network",
    ) -> None:
        self._inputs, self._training, self._checkpoint, self._name = inputs, training, checkpoint, name
        self._network = network.to(training.device)
        tuned: list[nn.Parameter] = []
        if inputs.encoder is not None and training.tune_encoder:
            module = inputs.encoder.make_module().to(training.device)
            tuned = list(module.parameters())
            self._network.pretrained.tune(module)
        is_tuned = set(map(id, tuned))
        others = [each for each in self._network.parameters() if id(each) not in is_tuned]
        self._optimizer = torch.optim.AdamW(
            [{"params": others}, {"params": tuned}],
            lr=training.learning_rate,
            betas=(0.9, 0.95),
            weight_decay=1e-4,
            fused=torch.device(training.device).type == "cuda",
        )

    def _step(self, numbers: Sequence[int]) -> Tensor:
        """Train on the sentences with these numbers; return their loss."""
        raise NotImplementedError

    def _score_dev(self) -> tuple[float, str]:
        """Return the dev score and its description for the log."""
        raise NotImplementedError

    def _run(self, sizes: npt.NDArray[np.int64], *, has_dev: bool) -> dict[str, npt.NDArray[np.float32]]:
        """Train on sentences of these sizes; return the weights of the best epoch on dev (or the last epoch).

        The weights of a fine-tuned encoder are not returned; they replace the weights of the inputs' encoder.
        """
        encoder = self._inputs.encoder
        if encoder is None:
            return self._run_epochs(sizes, has_dev=has_dev)
        with encoder.training(self._training.device, tune=self._training.tune_encoder):
            weights = self._run_epochs(sizes, has_dev=has_dev)
        return encoder.take_tuned(weights) if self._training.tune_encoder else weights

    def _run_epochs(
        self, sizes: npt.NDArray[np.int64], *, has_dev: bool
    ) -> dict[str, npt.NDArray[np.float32]]:
        settings = self._training
        batch_size = int(np.clip(sizes.sum() / self.n_steps, MIN_BATCH, self.max_batch))
        n_batches = len(make_batches(sizes, batch_size, np.random.default_rng(settings.random_state)))
        scores, best = self._resume()
        with task(
            "training the network",
            total=settings.epochs * len(sizes),
            before=len(scores) * len(sizes),
        ) as counted:
            for epoch in range(len(scores), settings.epochs):
                if settings.patience is not None and scores and _n_worse(scores) >= settings.patience:
                    break
                torch.manual_seed(settings.random_state * 10_007 + epoch)
                rng = np.random.default_rng([settings.random_state, epoch])
                self._network.train()
                total = torch.zeros((), device=settings.device)
                for at, numbers in enumerate(make_batches(sizes, batch_size, rng)):
                    self._set_rate(epoch + at / n_batches)
                    total += self._step(numbers)
                    counted.advance(len(numbers))
                text = f"network, epoch {epoch + 1}/{settings.epochs}: loss {float(total) / sizes.sum():.3f}"
                score = 0.0
                if has_dev:
                    self._network.eval()
                    score, told = self._score_dev()
                    text += f", {told}"
                report(text)
                scores.append(score)
                if not has_dev or _n_worse(scores) == 0:
                    best = to_arrays(self._network)
                self._keep(scores, best)
        return best

    def _precision(self) -> AbstractContextManager[object]:
        """Return the precision context for training."""
        if self._training.precision != "bfloat16":
            return nullcontext()
        return torch.autocast(torch.device(self._training.device).type, dtype=torch.bfloat16)

    def _descend(self, loss: Tensor, n_words: int) -> Tensor:
        """Take one optimisation step for the mean loss per word; return the loss."""
        self._optimizer.zero_grad(set_to_none=True)
        (loss / n_words).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._network.parameters(), MAX_NORM)
        self._optimizer.step()
        return loss.detach()

    def _set_rate(self, epoch: float) -> None:
        """Set the learning rate: linear warm-up, then linear decay."""
        done = self._done = epoch / self._training.epochs
        share = min(1.0, (done + 1e-3) / WARM_UP) * max(0.0, 1.0 - done)
        rates = self._training.learning_rate, self._training.encoder_learning_rate
        for group, rate in zip(self._optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * share

    def _resume(self) -> tuple[list[float], dict[str, npt.NDArray[np.float32]]]:
        """Resume from a checkpoint, if there is one; return past scores and the best weights."""
        state = self._checkpoint.load(self._name) if self._checkpoint else None
        if state is None:
            return [], {}
        parts: dict[str, dict[str, npt.NDArray[np.float32]]] = {
            name: {} for name in ("weights", "best", "moment", "square")
        }
        for key, array in state.arrays.items():
            kind, _, name = key.partition(":")
            parts[kind][name] = array
        weights = {name: torch.from_numpy(array.copy()) for name, array in parts["weights"].items()}
        self._network.load_state_dict(weights)
        for name, parameter in self._network.named_parameters():
            if name not in parts["moment"]:  # an encoder may have unused weights
                continue
            self._optimizer.state[parameter] = {
                "step": torch.tensor(float(state.values["step"])),
                "exp_avg": torch.from_numpy(parts["moment"][name].copy()).to(parameter.device),
                "exp_avg_sq": torch.from_numpy(parts["square"][name].copy()).to(parameter.device),
            }
        return list(state.values["scores"]), parts["best"]

    def _keep(self, scores: list[float], best: dict[str, npt.NDArray[np.float32]]) -> None:
        if self._checkpoint is None:
            return
        arrays = {f"weights:{name}": array for name, array in to_arrays(self._network).items()}
        arrays |= {f"best:{name}": array for name, array in best.items()}
        step = 0.0
        for name, parameter in self._network.named_parameters():
            found = self._optimizer.state[parameter]
            if not found:
                continue
            arrays[f"moment:{name}"] = found["exp_avg"].cpu().numpy()
            arrays[f"square:{name}"] = found["exp_avg_sq"].cpu().numpy()
            step = float(found["step"])
        self._checkpoint.save(self._name, State("NetworkProgress", {"scores": scores, "step": step}, arrays))


class NetworkTrainer(EpochTrainer):
    """Trains a network that scores arcs and relations.

    Parameters
    ----------
    inputs : WordInputs
        Encodes words.
    labels : Vocabulary
        The relations.
    settings : BiaffineSettings
        Sizes of the network.
    training : TrainingSettings
        Training settings.
    checkpoint : Checkpoint, optional
        Stores each epoch.
    name : str
        Name of the step in the checkpoint.
    """

    _network: ParserNetwork

    def __init__(
        self,
        inputs: WordInputs,
        labels: Vocabulary,
        settings: BiaffineSettings,
        training: TrainingSettings,
        checkpoint: Checkpoint | None = None,
        name: str = "network",
    ) -> None:
        self._labels = labels
        torch.manual_seed(training.random_state)
        network = ParserNetwork(inputs.sizes(), len(labels.strings), settings)
        super().__init__(network, inputs, training, checkpoint, name)
        self._arc_loss: Callable[[Tensor, Tensor, Tensor], Tensor] = (
            head_loss
            if training.loss == "head"
            else tree_loss(training.loss, single_root=training.single_root)
        )

    def train(
        self, trees: Sequence[DepTree], dev: Sequence[DepTree] | None
    ) -> dict[str, npt.NDArray[np.float32]]:
        """Train and return the weights of the best epoch on dev, or of the last epoch."""
        self._sentences, self._dev = EncodedSentences(trees, self._labels), dev or []
        return self._run(np.array([len(tree) for tree in trees], dtype=np.int64), has_dev=bool(dev))

    def _score_dev(self) -> tuple[float, str]:
        uas, las = self.evaluate(self._dev)
        # If second-order parts are to be trained, epochs without them are not kept.
        is_begun = not self._network.has_parts or self._done >= SECOND_ORDER_FROM
        score = las if is_begun else self._done - 1.0
        return score, f"dev UAS {uas:.2f}, LAS {las:.2f} (greedy)"

    def evaluate(self, trees: Sequence[DepTree]) -> tuple[float, float]:
        """Return the UAS and LAS of greedy predictions, with the head of each word predicted separately."""
        sentences = EncodedSentences(trees, self._labels)
        sizes = np.array([len(tree) for tree in trees], dtype=np.int64)
        n_heads = n_both = 0
        self._network.eval()
        with torch.no_grad():
            for numbers in make_batches(sizes, EVALUATED_AT_A_TIME, np.random.default_rng(0)):
                batch, heads, labels = self._take(sentences, numbers)
                states = self._network.encode(batch)
                found = self._best_heads(self._mask(self._network.score_arcs(states).float(), batch), batch)
                relations = self._network.score_labels(states, found).argmax(dim=2)
                is_right = (found == heads) & (heads != IGNORED)
                n_heads += int(is_right.sum())
                n_both += int((is_right & (relations == labels)).sum())
        n_words = max(1, int(sizes.sum()))
        return 100 * n_heads / n_words, 100 * n_both / n_words

    def _best_heads(self, arcs: Tensor, batch: Padded) -> Tensor:
        """Return the most probable head of each word, (sentences, longest)."""
        loss = self._training.loss
        if loss == "head":
            return arcs.argmax(dim=2)
        squares = arcs.double().transpose(1, 2).cpu().numpy()
        found = np.zeros(squares.shape[:2], dtype=np.int64)
        for square, heads, length in zip(squares, found, batch.lengths.tolist(), strict=True):
            mine = np.ascontiguousarray(square[:length, :length])
            probable = head_probabilities(mine, loss, single_root=self._training.single_root)
            heads[:length] = probable.argmax(axis=0)
        return torch.from_numpy(found).to(arcs.device)

    def _step(self, numbers: Sequence[int]) -> Tensor:
        """Take one optimisation step; return the loss of the batch."""
        batch, heads, labels = self._take(self._sentences, numbers)
        with self._precision():
            states = self._network.encode(batch)
            arcs = self._network.score_arcs(states)
            relations = self._network.score_labels(states, heads.clamp(min=0))
            is_second = self._network.has_parts and self._done >= SECOND_ORDER_FROM
            vectors = self._network.read_parts(states) if is_second else {}
        arcs, lengths = self._mask(arcs.float(), batch), torch.from_numpy(batch.lengths)
        loss = self._arc_loss(arcs, heads, lengths)
        if vectors:
            loss = loss + second_order_loss(
                self._network,
                arcs,
                {name: each.float() for name, each in vectors.items()},
                heads,
                lengths,
                single_root=self._training.single_root,
            )
        loss = loss + cross_entropy(
            relations.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
        )
        return self._descend(loss, int(batch.lengths.sum()))

    def _take(self, sentences: EncodedSentences, numbers: Sequence[int]) -> tuple[Padded, Tensor, Tensor]:
        batch = self._inputs.pad([sentences.trees[number] for number in numbers])
        heads, labels = sentences.gold(numbers, batch.forms.shape[1])
        device = self._training.device
        return batch, to_device(heads, device), to_device(labels, device)

    @staticmethod
    def _mask(arcs: Tensor, batch: Padded) -> Tensor:
        """Exclude heads beyond the end of a sentence, and arcs from a word to itself."""
        width = arcs.shape[1]
        places = torch.arange(width, device=arcs.device)
        lengths = to_device(batch.lengths, arcs.device)
        is_out = (places >= lengths[:, None])[:, None, :] | (places[:, None] == places)[None]
        return arcs.masked_fill(is_out, -1e9)


def _n_worse(scores: Sequence[float]) -> int:
    """Return the number of epochs since the best one."""
    return len(scores) - 1 - int(np.argmax(scores))
