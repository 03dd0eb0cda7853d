"""The structure of sentences: third-order models of trees, trained with k-best MIRA.

Koo & Collins (2010); McDonald et al. (2005). Charts are made over the arcs that a pruner leaves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from treewright.errors import InputError
from treewright.native.parsing import measure_corpus, parse_corpus, train_pass
from treewright.native.parts import Model
from treewright.native.pruning import Stage
from treewright.parsing.features import Corpus, TemplateSet, compile_templates, max_keys
from treewright.parsing.pruning import Arcs
from treewright.parsing.weights import average, make_table, pack, table_shift, unpack
from treewright.persist import State, load_state, save_state


@dataclass(frozen=True)
class EpochReport:
    """How an epoch of training went."""

    epoch: int
    n_epochs: int
    train_uas: float
    """Percent of heads right before the update on each sentence."""
    n_updates: int


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
        k: int,
        bound: float,
        seed: int,
        checkpoint: Path | None = None,
        after_epoch: Callable[[EpochReport], bool] | None = None,
    ) -> None:
        """Learn from gold trees among `arcs`.

        Each epoch's order follows from the seed and its number, so that training which goes on from a
        checkpoint ends where uninterrupted training does. `after_epoch` sees the averaged weights in
        `weights_` and may end the training by returning True.
        """
        progress = TrainingProgress.start(self.table_bits, checkpoint)
        for epoch in range(progress.n_epochs, epochs):
            order = np.random.default_rng([seed, epoch]).permutation(corpus.n_sentences)
            options = (k, bound, self.single_root, self._max_keys, progress.n_steps)
            n_wrong, n_updates = self._learn(corpus, arcs, progress, order, options)
            progress.n_steps += corpus.n_sentences
            progress.n_epochs = epoch + 1
            self.weights_ = average(progress.weights, progress.totals, progress.n_steps)
            if checkpoint:
                progress.save(checkpoint)
            n_words = max(1, int(corpus.sizes.sum()))
            report = EpochReport(epoch + 1, epochs, 100 * (1 - n_wrong / n_words), int(n_updates))
            if after_epoch and after_epoch(report):
                break
        self.weights_ = average(progress.weights, progress.totals, progress.n_steps)

    def _learn(
        self,
        corpus: Corpus,
        arcs: Arcs,
        progress: "TrainingProgress",
        order: npt.NDArray[np.int64],
        options: tuple[int, float, bool, int, int],
    ) -> tuple[int, int]:
        """Take one pass; return how many heads were wrong, and the number of updates."""
        weights, totals = progress.weights, progress.totals
        return train_pass(self._model, corpus, corpus.heads, arcs, weights, totals, order, options)

    def best_trees(
        self, stages: tuple[Stage, ...], corpus: Corpus, k: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return the heads of the `k` best trees, (k, rows), and their scores, (sentences, k)."""
        heads = np.zeros((k, len(corpus.values)), dtype=np.int32)
        scores = np.full((corpus.n_sentences, k), -np.inf)
        numbers = np.arange(corpus.n_sentences)
        parse_corpus(stages, self._model, corpus, self.weights_, numbers, self.single_root, heads, scores)
        return heads, scores

    def marginals(
        self, stages: tuple[Stage, ...], corpus: Corpus, scale: float
    ) -> tuple[npt.NDArray[np.float64], list[npt.NDArray[np.float64]]]:
        """Return the log of the sum over all trees, and a square of arc probabilities, of each sentence."""
        flat = np.empty(int(((corpus.sizes + 1) ** 2).sum()))
        log_sums = np.empty(corpus.n_sentences)
        numbers = np.arange(corpus.n_sentences)
        options = (self.single_root, scale)
        measure_corpus(stages, self._model, corpus, self.weights_, numbers, options, log_sums, flat)
        return log_sums, cut_squares(flat, corpus)

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
    n_epochs: int = 0
    n_steps: int = 0

    @classmethod
    def start(cls, table_bits: int, checkpoint: Path | None) -> "TrainingProgress":
        """Begin, or go on from a checkpoint."""
        if checkpoint is None or not checkpoint.exists():
            weights = make_table(table_bits)
            return cls(weights, np.zeros(weights.size))
        state = load_state(checkpoint)
        arrays, values = state.arrays, state.values
        progress = cls(arrays["weights"], arrays["totals"], values["n_epochs"], values["n_steps"])
        if state.kind != "TrainingProgress" or progress.weights.size != 1 << table_bits:
            raise InputError(
                f"{checkpoint} is of another training; expected one with {table_bits} table bits"
            )
        return progress

    def save(self, checkpoint: Path) -> None:
        """Write a checkpoint."""
        values: dict[str, Any] = {"n_epochs": self.n_epochs, "n_steps": self.n_steps}
        arrays: dict[str, npt.NDArray[Any]] = {"weights": self.weights, "totals": self.totals}
        save_state(State("TrainingProgress", values, arrays), checkpoint)


def cut_squares(flat: npt.NDArray[np.float64], corpus: Corpus) -> list[npt.NDArray[np.float64]]:
    """Cut numbers for all pairs of words, one sentence after another, into a square for each."""
    sides = corpus.sizes + 1
    pieces = np.split(flat, np.cumsum(sides**2)[:-1])
    return [piece.reshape(side, side) for piece, side in zip(pieces, sides.tolist(), strict=True)]
