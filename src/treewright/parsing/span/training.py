"""Training of the span network: chart-based losses, batches, dev scores."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from treewright._typing import Integers
from treewright.checkpoint import Checkpoint
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.metrics.parseval import parseval
from treewright.native.span.charts import batch_best, batch_marginals
from treewright.parsing.constituent.inferences import TaggedSentence
from treewright.parsing.neural.batches import make_batches
from treewright.parsing.neural.inputs import Padded, WordInputs
from treewright.parsing.neural.network import to_device
from treewright.parsing.neural.training import EpochTrainer, TrainingSettings
from treewright.parsing.span.chart import best_trees
from treewright.parsing.span.labels import LabelledSpans, SpanLabels, all_spans
from treewright.parsing.span.network import SpanNetwork, SpanNetworkSettings

EVALUATED_AT_A_TIME = 5_000
"""Number of words per batch in evaluations."""


class SpanBatch(NamedTuple):
    """A batch of sentences with all their spans, concatenated.

    Attributes
    ----------
    words : Padded
        The encoded words.
    lengths : array, (n_sentences,)
        Number of words of each sentence, without the root.
    starts, ends : array, (n_spans,)
        Rows of the states, as in `SpanNetwork.score_spans`.
    is_word : array of bool, (n_spans,)
        Whether a span is a single word.
    first : array, (n_sentences + 1,)
        First span of each sentence, followed by the total number of spans.
    """

    words: Padded
    lengths: Integers
    starts: Integers
    ends: Integers
    is_word: npt.NDArray[np.bool_]
    first: Integers


def make_span_batch(words: Padded) -> SpanBatch:
    """Return sentences with their spans."""
    lengths = words.lengths.astype(np.int64) - 1
    spans = [all_spans(n) for n in lengths.tolist()]
    sizes = [len(starts) for starts, _ in spans]
    offsets = np.repeat(np.arange(len(sizes)) * words.forms.shape[1], sizes)
    starts, ends = (np.concatenate([each[side] for each in spans]).astype(np.int64) for side in (0, 1))
    first = np.cumsum([0, *sizes])
    return SpanBatch(words, lengths, starts + offsets, ends + offsets, ends - starts == 1, first)


class ChartValue(torch.autograd.Function):
    """The log partition function, or the best score, summed over the sentences of a batch.

    Its derivative with respect to the score of a span is the marginal probability of the span or, for the
    best score, 1 if the span is in the best tree and 0 otherwise.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, lengths: Integers, is_rooted: bool, is_sum: bool) -> Tensor:  # noqa: ANN401
        """Return the value of the batch; `scores` has one number per span."""
        columns = scores.detach().double().cpu().numpy()[:, np.newaxis]
        found = np.empty(len(columns))
        total = (batch_marginals if is_sum else batch_best)(columns, lengths, is_rooted, found)
        ctx.save_for_backward(torch.from_numpy(found).to(scores))
        return scores.new_tensor(total)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:  # noqa: ANN401
        """Return the derivatives."""
        (found,) = ctx.saved_tensors
        return gradient * found, None, None, None


SpanLoss = Callable[[Tensor, SpanBatch, Tensor, Tensor], Tensor]
"""Function that takes scores, a batch, and the rows and labels (from 0) of the constituents of gold trees."""


def crf_loss(is_rooted: bool) -> SpanLoss:
    """Return a loss function: the negative log-probability of gold trees among all trees."""

    def loss(scores: Tensor, batch: SpanBatch, rows: Tensor, labels: Tensor) -> Tensor:
        sums = torch.cat([_empty_column(scores, batch), scores], dim=1).logsumexp(dim=1)
        total: Tensor = ChartValue.apply(sums, batch.lengths, is_rooted, True)  # type: ignore[no-untyped-call]
        return total - scores[rows, labels].sum()

    return loss


def margin_loss(is_rooted: bool) -> SpanLoss:
    """Return a loss function: the structured hinge loss of gold trees with cost-augmented decoding.

    A span that has different labels in the two trees, or is in only one of them, costs 1 (Stern et al. 2017).
    """

    def loss(scores: Tensor, batch: SpanBatch, rows: Tensor, labels: Tensor) -> Tensor:
        costs = torch.ones_like(scores)
        costs[rows] = 0.0
        costs[rows, labels] = -1.0
        best = torch.cat([_empty_column(scores, batch), scores + costs], dim=1).amax(dim=1)
        total: Tensor = ChartValue.apply(best, batch.lengths, is_rooted, False)  # type: ignore[no-untyped-call]
        return total + len(rows) - scores[rows, labels].sum()

    return loss


LOSSES: dict[str, Callable[[bool], SpanLoss]] = {"crf": crf_loss, "margin": margin_loss}


def _empty_column(scores: Tensor, batch: SpanBatch) -> Tensor:
    """Return the scores of the empty label: 0 for words, minus infinity for other spans."""
    is_word = torch.from_numpy(batch.is_word).to(scores.device)
    return torch.zeros_like(scores[:, :1]).masked_fill(~is_word.unsqueeze(1), -torch.inf)


class SpanTrainer(EpochTrainer):
    """Trains a network that scores the labels of spans.

    Parameters
    ----------
    inputs : WordInputs
        Encodes words.
    labels : SpanLabels
        The labels.
    settings : SpanNetworkSettings
        Sizes of the network.
    training : TrainingSettings
        Training settings.
    checkpoint : Checkpoint, optional
        Stores each epoch.
    name : str
        Name of the step in the checkpoint.
    """

    n_steps = 200
    max_batch = 1000
    _network: SpanNetwork

    def __init__(
        self,
        inputs: WordInputs,
        labels: SpanLabels,
        settings: SpanNetworkSettings,
        training: TrainingSettings,
        checkpoint: Checkpoint | None = None,
        name: str = "network",
    ) -> None:
        self._labels = labels
        torch.manual_seed(training.random_state)
        network = SpanNetwork(inputs.sizes(), len(labels) - 1, settings)
        super().__init__(network, inputs, training, checkpoint, name)
        self._loss = LOSSES[training.loss](self.is_rooted)

    @property
    def is_rooted(self) -> bool:
        """Whether all trees share a root that is not a constituent."""
        return self._labels.root is not None

    def train(
        self,
        sentences: Sequence[DepTree],
        gold: Sequence[LabelledSpans],
        dev: Sequence[DepTree],
        dev_gold: Sequence[ConstTree],
    ) -> dict[str, npt.NDArray[np.float32]]:
        """Train and return the weights of the best epoch on dev."""
        self._sentences, self._gold, self._dev, self._dev_gold = sentences, gold, dev, dev_gold
        return self._run(np.array([len(each) for each in sentences], dtype=np.int64), has_dev=bool(dev))

    def _step(self, numbers: Sequence[int]) -> Tensor:
        batch = make_span_batch(self._inputs.pad([self._sentences[number] for number in numbers]))
        rows, labels = self._take_gold(batch, numbers)
        with self._precision():
            scores = self._network.score_spans(self._network.encode(batch.words), batch.starts, batch.ends)
        return self._descend(self._loss(scores.float(), batch, rows, labels), int(batch.lengths.sum()))

    def _take_gold(self, batch: SpanBatch, numbers: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return the rows and labels of the constituents of gold trees."""
        gold = [self._gold[number] for number in numbers]
        rows = [
            begin + each.rows(n)
            for each, begin, n in zip(gold, batch.first.tolist(), batch.lengths.tolist(), strict=False)
        ]
        labels = np.concatenate([each.labels for each in gold]) - 1
        device = self._training.device
        return to_device(np.concatenate(rows), device), to_device(labels, device)

    def _score_dev(self) -> tuple[float, str]:
        score = parseval(self._dev_gold, self.predict(self._dev)).f1
        return score, f"dev F1 {score:.2f}"

    def predict(self, sentences: Sequence[DepTree]) -> list[ConstTree]:
        """Return the best tree of each sentence."""
        sizes = np.array([len(each) for each in sentences], dtype=np.int64)
        found: dict[int, ConstTree] = {}
        with torch.no_grad():
            for numbers in make_batches(sizes, EVALUATED_AT_A_TIME, np.random.default_rng(0)):
                batch = make_span_batch(self._inputs.pad([sentences[number] for number in numbers]))
                states = self._network.encode(batch.words)
                scores = self._network.score_spans(states, batch.starts, batch.ends).float().cpu().numpy()
                for number, own in zip(numbers, np.split(scores, batch.first[1:-1]), strict=True):
                    sentence = sentences[number]
                    (spans, _), *_ = best_trees(own, len(sentence), 1, is_rooted=self.is_rooted)
                    words = TaggedSentence(sentence.words, sentence.xpos)
                    found[number] = self._labels.decode(words, spans)
        return [found[number] for number in range(len(sentences))]
