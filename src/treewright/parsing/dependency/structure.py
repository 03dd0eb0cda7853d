"""The structure of sentences: third-order models of trees, trained with k-best MIRA.

Koo & Collins (2010); McDonald et al. (2005). Charts are made over the arcs that a pruner leaves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from treewright.checkpoint import Checkpoint
from treewright.learn.weights import average, make_table, pack, table_shift, unpack
from treewright.native.dependency.corpus import measure_corpus, parse_corpus, train_pass
from treewright.native.dependency.parts import Model, arrange, score_parts
from treewright.native.dependency.pruning import Stage, take_sentence
from treewright.parsing.dependency.constraints import FixedHeads
from treewright.parsing.dependency.features import Corpus, TemplateSet, compile_templates, max_keys
from treewright.parsing.dependency.lattice import Lattice
from treewright.parsing.dependency.pruning import Arcs, left_arcs
from treewright.persist import State
from treewright.progress import Task, task


@dataclass(frozen=True)
class EpochReport:
    """How an epoch of training went."""

    run: int
    n_runs: int
    epoch: int
    """Of this run, counted from 1, as the run is."""
    n_epochs: int
    """Of each run."""
    train_uas: float
    """Percent of heads right before the update on each sentence."""
    loss: float
    """Mean over sentences of what the right tree most lacked to its margin before the update."""

    @property
    def position(self) -> str:
        """Where in training it is, such as ``run 2/4, epoch 1/6``."""
        if self.n_runs == 1:
            return f"epoch {self.epoch} of {self.n_epochs}"
        return f"run {self.run}/{self.n_runs}, epoch {self.epoch}/{self.n_epochs}"


class StructureModel:
    """Scores trees by arcs (order 1), pairs and grandchildren (2), grand-siblings and triples (3).

    Parameters
    ----------
    templates : TemplateSet
    order : {1, 2, 3}
    table_bits : int
        The weight table has 2 ** `table_bits` slots.
    single_root : bool
        Whether every tree has exactly one root.
    """

    def __init__(self, templates: TemplateSet, *, order: int, table_bits: int, single_root: bool) -> None:
        self.templates = templates
        self.order = order
        self.table_bits = table_bits
        self.single_root = single_root
        self.weights_ = make_table(table_bits)
        compiled = [
            compile_templates(getattr(templates, kind), kind)
            for kind in ("arc", "pair", "grandchild", "grand_sibling", "triple")
        ]
        self._max_keys = max_keys(*compiled)
        arc, pair, grandchild, grand_sibling, triple = compiled
        shift = table_shift(self.weights_)
        self._model = Model(arc, pair, grandchild, grand_sibling, triple, order, shift)

    def train(
        self,
        corpus: Corpus,
        arcs: Arcs,
        *,
        epochs: int,
        runs: int,
        k: int,
        bound: float,
        random_state: int,
        patience: int | None = None,
        checkpoint: Checkpoint | None = None,
        after_epoch: Callable[[EpochReport], float] | None = None,
    ) -> None:
        """Learn from gold trees among `arcs`: the mean of what is learnt in some runs from the beginning.

        The order of sentences follows from the seed and the number of the epoch, so that training which
        goes on from a checkpoint ends where uninterrupted training does. `after_epoch` sees the mean so far
        in `weights_` and returns how good that is. With `patience`, training ends when that has not risen
        for so many epochs, and the best weights are kept.
        """
        progress = TrainingProgress.start(self.table_bits, checkpoint)
        n_left = (epochs * runs - len(progress.scores)) * corpus.n_sentences
        with task("learning trees", total=n_left) as counted:
            for epoch in range(len(progress.scores), epochs * runs):
                if patience is not None and progress.n_worse() >= patience:
                    break
                run, epoch_of_run = divmod(epoch, epochs)
                if epoch_of_run == 0:
                    progress.start_run()
                order = np.random.default_rng([random_state, epoch]).permutation(corpus.n_sentences)
                options = (k, bound, self.single_root, self._max_keys, epoch_of_run * corpus.n_sentences)
                n_wrong, loss = self._learn(corpus, arcs, progress, order, options, counted)
                learnt = average(progress.weights, progress.totals, (epoch_of_run + 1) * corpus.n_sentences)
                self.weights_ = (progress.finished + learnt) / np.float32(run + 1)
                if epoch_of_run + 1 == epochs:
                    progress.finished += learnt
                train_uas = 100 * (1 - n_wrong / max(1, int(corpus.sizes.sum())))
                position = (run + 1, runs, epoch_of_run + 1, epochs)
                report = EpochReport(*position, train_uas, loss / corpus.n_sentences)
                progress.scores.append(after_epoch(report) if after_epoch else 0.0)
                if patience is None or progress.n_worse() == 0:
                    progress.best = self.weights_
                if checkpoint:
                    progress.save(checkpoint)
        # Trees must not change by saving, so the weights are rounded now.
        self.weights_ = unpack(pack(progress.best))

    def _learn(
        self,
        corpus: Corpus,
        arcs: Arcs,
        progress: "TrainingProgress",
        order: npt.NDArray[np.int64],
        options: tuple[int, float, bool, int, int],
        counted: Task,
    ) -> tuple[int, float]:
        """Take one pass; return how many heads were wrong, and the loss."""
        weights, totals = progress.weights, progress.totals
        *others, first_step = options
        n_wrong, loss = 0, 0.0
        for part in counted.slices(len(order)):
            block = (*others, first_step + part.start)
            found = train_pass(self._model, corpus, corpus.heads, arcs, weights, totals, order[part], block)
            n_wrong, loss = n_wrong + found[0], loss + found[1]
        return n_wrong, loss

    def best_trees(
        self,
        stages: tuple[Stage, ...],
        corpus: Corpus,
        k: int,
        fixed: Sequence[FixedHeads] | None = None,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return the heads of the `k` best trees, (k, rows), and their scores, (sentences, k).

        If some heads are fixed, these are the best trees that have them, of which there must be one.
        """
        heads = np.zeros((k, len(corpus.values)), dtype=np.int32)
        scores = np.full((corpus.n_sentences, k), -np.inf)
        free, bound = _divide(corpus, fixed)
        self._find(stages, corpus, free, heads, scores)
        for number, arcs in bound:
            found, totals = self._find_fixed(stages, corpus, number, arcs, k)
            heads[: len(found), corpus.words_of(number)] = found
            scores[number, : len(found)] = totals
        return heads, scores

    def marginals(
        self,
        stages: tuple[Stage, ...],
        corpus: Corpus,
        scale: float,
        fixed: Sequence[FixedHeads] | None = None,
    ) -> tuple[npt.NDArray[np.float64], list[npt.NDArray[np.float64]]]:
        """Return the log of the sum over all trees, and a square of arc probabilities, of each sentence.

        If some heads are fixed, all trees are those that have them.
        """
        free, bound = _divide(corpus, fixed)
        sides = (corpus.sizes + 1)[free]
        flat = np.empty(int((sides**2).sum()))
        log_sums = np.empty(corpus.n_sentences)
        self._measure(stages, corpus, free, scale, log_sums, flat)
        pieces = np.split(flat, np.cumsum(sides**2)[:-1])
        squares = {
            number: piece.reshape(side, side)
            for number, piece, side in zip(free.tolist(), pieces, sides.tolist(), strict=False)
        }
        for number, arcs in bound:
            log_sums[number], squares[number] = self._measure_fixed(stages, corpus, number, arcs, scale)
        return log_sums, [squares[number] for number in range(corpus.n_sentences)]

    def _find(
        self,
        stages: tuple[Stage, ...],
        corpus: Corpus,
        numbers: npt.NDArray[np.int64],
        heads: npt.NDArray[np.int32],
        scores: npt.NDArray[np.float64],
    ) -> None:
        """Fill the best trees of some sentences and their scores."""
        parse_corpus(stages, self._model, corpus, self.weights_, numbers, self.single_root, heads, scores)

    def _find_fixed(
        self, stages: tuple[Stage, ...], corpus: Corpus, number: int, fixed: FixedHeads, k: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return the heads and scores of the best trees of one sentence that have the fixed heads."""
        return self._lattice(stages, corpus, number, fixed).best_trees(k)

    def _measure(
        self,
        stages: tuple[Stage, ...],
        corpus: Corpus,
        numbers: npt.NDArray[np.int64],
        scale: float,
        log_sums: npt.NDArray[np.float64],
        flat: npt.NDArray[np.float64],
    ) -> None:
        """Fill the logs of sums over all trees of some sentences, and the probabilities of arcs."""
        options = (self.single_root, scale)
        measure_corpus(stages, self._model, corpus, self.weights_, numbers, options, log_sums, flat)

    def _measure_fixed(
        self, stages: tuple[Stage, ...], corpus: Corpus, number: int, fixed: FixedHeads, scale: float
    ) -> tuple[float, npt.NDArray[np.float64]]:
        """Return the log of the sum over the trees of a sentence that have the fixed heads, and a square."""
        lattice = self._lattice(stages, corpus, number, fixed)
        rows, log_sum = lattice.marginals({kind: scale * scores for kind, scores in lattice.scores.items()})
        return log_sum, np.vstack([np.zeros(len(rows) + 1), rows]).T

    def lattices(self, stages: tuple[Stage, ...], corpus: Corpus) -> list[Lattice]:
        """Return the parts of the trees of each sentence, with the scores of this model."""
        return [self._lattice(stages, corpus, number, {}) for number in range(corpus.n_sentences)]

    def _lattice(self, stages: tuple[Stage, ...], corpus: Corpus, number: int, fixed: FixedHeads) -> Lattice:
        sentence = take_sentence(corpus, number)
        keep = left_arcs(stages, sentence, fixed)
        scores = score_parts(arrange(keep), self._model, sentence, self.weights_)
        return Lattice(keep, single_root=self.single_root, scores=scores._asdict())

    def get_state(self) -> State:
        """Return all that the model is."""
        values = {"order": self.order, "table_bits": self.table_bits, "single_root": self.single_root}
        return State("StructureModel", values, pack(self.weights_))

    @classmethod
    def from_state(cls, state: State, templates: TemplateSet) -> "StructureModel":
        """Make the model again."""
        model = cls(templates, **state.values)
        model.weights_ = unpack(state.arrays)
        return model


@dataclass
class TrainingProgress:
    """Where training stands between two epochs."""

    weights: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float64]
    finished: npt.NDArray[np.float32]
    """The sum of what finished runs have learnt."""
    best: npt.NDArray[np.float32]
    """The averaged weights that are kept if training ends here."""
    scores: list[float]
    """Of each epoch."""

    @classmethod
    def start(cls, table_bits: int, checkpoint: Checkpoint | None) -> "TrainingProgress":
        """Begin, or go on from a checkpoint."""
        state = checkpoint.load("progress") if checkpoint else None
        if state:
            return cls(**state.arrays, scores=state.values["scores"])
        finished, best = make_table(table_bits), make_table(table_bits)
        return cls(best, np.zeros(best.size), finished, best, [])

    def start_run(self) -> None:
        """Forget what was learnt in this run."""
        self.weights, self.totals = np.zeros_like(self.weights), np.zeros_like(self.totals)

    def n_worse(self) -> int:
        """Return how many epochs have passed since the best."""
        return len(self.scores) - 1 - int(np.argmax(self.scores)) if self.scores else 0

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint."""
        names = ("weights", "totals", "finished", "best")
        arrays: dict[str, npt.NDArray[Any]] = {name: getattr(self, name) for name in names}
        checkpoint.save("progress", State("TrainingProgress", {"scores": self.scores}, arrays))


def _divide(
    corpus: Corpus, fixed: Sequence[FixedHeads] | None
) -> tuple[npt.NDArray[np.int64], list[tuple[int, FixedHeads]]]:
    """Return the numbers of sentences without fixed heads, and those with some, and these."""
    bound = [(number, heads) for number, heads in enumerate(fixed or ()) if heads]
    is_free = np.ones(corpus.n_sentences, dtype=np.bool_)
    is_free[[number for number, _ in bound]] = False
    return np.flatnonzero(is_free), bound
