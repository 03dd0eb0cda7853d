"""Training of part scorers: k-best MIRA (McDonald et al. 2005) for linear models, hinge loss for others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.learn.weights import average, make_table, pack, unpack
from treewright.model import State
from treewright.native.dependency.corpus import MiraPass, train_pass
from treewright.native.dependency.pruning import KeptArcs
from treewright.native.dependency.spanning import train_crossing
from treewright.parsing.contract import Batch, PartScorer
from treewright.parsing.dependency.decoders import ChartDecoder
from treewright.parsing.dependency.features import Corpus
from treewright.parsing.dependency.linear import LinearPartScorer
from treewright.progress import Task, task


@dataclass(frozen=True)
class EpochReport:
    """The result of a training epoch."""

    run: int
    n_runs: int
    epoch: int
    n_epochs: int
    train_uas: float
    """Percentage of heads predicted correctly, measured before the update on each sentence."""
    loss: float
    """Mean amount by which gold trees miss their margin, measured before the update on each sentence."""

    def __str__(self) -> str:
        position = f"epoch {self.epoch}/{self.n_epochs}"
        if self.n_runs > 1:
            position = f"run {self.run}/{self.n_runs}, {position}"
        return f"{position}: loss {self.loss:.3f}, training UAS {self.train_uas:.2f}"


AfterEpoch = Callable[[EpochReport, PartScorer], float]
"""Function that takes a report and the current scorer, and returns a score for early stopping."""


class GivenScores(NamedTuple):
    """Fixed arc scores, to which a model in training adds its own; matrices with heads in rows."""

    first: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]

    @classmethod
    def from_squares(cls, squares: Sequence[npt.NDArray[np.float64]]) -> "GivenScores":
        """Concatenate the score matrices of sentences."""
        first = np.cumsum([0, *(square.size for square in squares)], dtype=np.int64)[:-1]
        return cls(first, np.concatenate([np.empty(0), *(square.ravel() for square in squares)]))


@dataclass(frozen=True)
class MiraTrainer:
    """Trains linear scorers with k-best MIRA; weights are averaged over all steps and over several runs.

    Parameters
    ----------
    epochs, runs, k : int
        Number of passes over the sentences, number of training runs to average, and length of the k-best
        lists.
    bound : float
        Maximum step size of an update for one constraint.
    random_state : int
        Seed for the order of the sentences.
    patience : int or None
        Early-stopping patience in epochs; the best weights are kept.
    """

    epochs: int
    runs: int
    k: int
    bound: float
    random_state: int
    patience: int | None

    def train(
        self,
        scorer: LinearPartScorer,
        decoder: ChartDecoder,
        corpus: Corpus,
        arcs: KeptArcs,
        *,
        given: GivenScores | None = None,
        checkpoint: Checkpoint | None,
        after_epoch: AfterEpoch,
    ) -> LinearPartScorer:
        """Return a scorer trained on gold trees over `arcs`; the `given` scores are added to its scores.

        The order of sentences depends only on the seed and the epoch, so that resumed training gives the same
        result as uninterrupted training.
        """
        progress = _Progress.start(scorer.table_bits, checkpoint)
        n_left = (self.epochs * self.runs - len(progress.scores)) * corpus.n_sentences
        found = scorer.with_params()
        with task("learning trees", total=n_left) as counted:
            for number in range(len(progress.scores), self.epochs * self.runs):
                if self.patience is not None and progress.n_worse() >= self.patience:
                    break
                run, epoch = divmod(number, self.epochs)
                if epoch == 0:
                    progress.start_run()
                n_wrong, loss = self._pass(scorer, decoder, corpus, arcs, given, progress, number, counted)
                learnt = average(progress.weights, progress.totals, (epoch + 1) * corpus.n_sentences)
                found.weights_ = (progress.finished + learnt) / np.float32(run + 1)
                if epoch + 1 == self.epochs:
                    progress.finished += learnt
                uas = 100 * (1 - n_wrong / max(1, int(corpus.sizes.sum())))
                report = EpochReport(
                    run + 1, self.runs, epoch + 1, self.epochs, uas, loss / corpus.n_sentences
                )
                progress.scores.append(after_epoch(report, found))
                if self.patience is None or progress.n_worse() == 0:
                    progress.best = found.weights_
                if checkpoint:
                    progress.save(checkpoint)
        # Saving rounds the weights; round them now, so that saving does not change trees.
        found.weights_ = unpack(pack(progress.best))
        return found

    def _pass(
        self,
        scorer: LinearPartScorer,
        decoder: ChartDecoder,
        corpus: Corpus,
        arcs: KeptArcs,
        given: GivenScores | None,
        progress: "_Progress",
        number: int,
        counted: Task,
    ) -> tuple[int, float]:
        """Run one epoch; return the number of wrong heads and the loss."""
        order = np.random.default_rng([self.random_state, number]).permutation(corpus.n_sentences)
        learner = scorer.with_params()
        learner.weights_ = progress.weights
        model, weights, max_keys = learner.compiled()
        n_done = number % self.epochs * corpus.n_sentences
        n_wrong, loss = 0, 0.0
        for part in counted.slices(len(order)):
            options = MiraPass(
                self.k, self.bound, decoder.single_root_, max_keys, n_done + part.start, *(given or ())
            )
            if decoder.is_projective:
                found = train_pass(
                    model, corpus, corpus.heads, arcs, weights, progress.totals, order[part], options
                )
            else:
                stage = learner.compiled().stage(single_root=decoder.single_root_)
                found = train_crossing(
                    stage, model, corpus, corpus.heads, progress.totals, order[part], options
                )
            n_wrong, loss = n_wrong + found[0], loss + found[1]
        return n_wrong, loss


@dataclass
class _Progress:
    """The state of training between two epochs."""

    weights: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float64]
    finished: npt.NDArray[np.float32]
    """Sum of the averaged weights of finished runs."""
    best: npt.NDArray[np.float32]
    """The averaged weights that are kept if training ends here."""
    scores: list[float]
    """Dev score of each epoch."""

    @classmethod
    def start(cls, table_bits: int, checkpoint: Checkpoint | None) -> "_Progress":
        """Start training, or resume from a checkpoint."""
        state = checkpoint.load("progress") if checkpoint else None
        if state:
            return cls(**state.arrays, scores=state.values["scores"])
        finished, best = make_table(table_bits), make_table(table_bits)
        return cls(best, np.zeros(best.size), finished, best, [])

    def start_run(self) -> None:
        """Reset the weights for a new run."""
        self.weights, self.totals = np.zeros_like(self.weights), np.zeros_like(self.totals)

    def n_worse(self) -> int:
        """Return the number of epochs since the best one."""
        return len(self.scores) - 1 - int(np.argmax(self.scores)) if self.scores else 0

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint."""
        names = ("weights", "totals", "finished", "best")
        arrays: dict[str, npt.NDArray[Any]] = {name: getattr(self, name) for name in names}
        checkpoint.save("progress", State("TrainingProgress", {"scores": self.scores}, arrays))


@dataclass(frozen=True)
class ScorerTrainer:
    """Trains any scorer: the scorer trains itself, or learns from the gradients of a structured hinge loss.

    For each sentence, decoding adds 1 to the score of every wrong arc. If the predicted tree is not the gold
    tree, the gradient is 1 for each part that only the predicted tree has, and -1 for each part that only the
    gold tree has.

    Parameters
    ----------
    epochs : int
        Number of passes over the sentences.
    random_state : int
        Seed for the order of the sentences.
    """

    epochs: int
    random_state: int

    def train(
        self,
        scorer: PartScorer,
        decoder: ChartDecoder,
        batch: Batch,
        *,
        dev: Sequence[DepTree] | None,
        checkpoint: Checkpoint | None,
        after_epoch: AfterEpoch,
    ) -> PartScorer:
        """Train a scorer on the gold heads of the sentences, and return it."""
        scorer.start(batch.trees, dev=dev, checkpoint=checkpoint)
        n_epochs = self.epochs if scorer.learns_from_updates else 0
        with task("learning trees", total=n_epochs * len(batch.trees)) as counted:
            for epoch in range(n_epochs):
                order = np.random.default_rng([self.random_state, epoch]).permutation(len(batch.trees))
                n_wrong, loss = self._pass(scorer, decoder, batch, order.tolist(), counted)
                uas = 100 * (1 - n_wrong / max(1, int(batch.corpus.sizes.sum())))
                after_epoch(EpochReport(1, 1, epoch + 1, n_epochs, uas, loss / len(order)), scorer)
        scorer.finish()
        return scorer

    @staticmethod
    def _pass(
        scorer: PartScorer, decoder: ChartDecoder, batch: Batch, order: Sequence[int], counted: Task
    ) -> tuple[int, float]:
        n_wrong, loss = 0, 0.0
        for number in order:
            tree = batch.trees[number]
            found = decoder.find_rival(scorer, batch, number)
            n_wrong += found.n_wrong
            loss += found.loss
            if found.loss > 0:
                scorer.update(tree, found.parts, found.gradient)
            counted.advance()
        return n_wrong, loss
