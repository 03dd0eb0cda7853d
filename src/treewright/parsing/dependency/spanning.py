"""Trees whose arcs may cross: a first-order model over all spanning trees, trained with k-best MIRA.

McDonald, Pereira, Ribarov & Hajic (2005).
"""

import numpy as np
import numpy.typing as npt

from treewright.native.dependency.arborescence import best_arborescences, matrix_tree_marginals
from treewright.native.dependency.eisner import EXCLUDED
from treewright.native.dependency.pruning import Stage, all_arcs
from treewright.native.dependency.spanning import (
    measure_crossing,
    parse_crossing,
    score_sentence,
    train_crossing,
)
from treewright.parsing.dependency.constraints import FixedHeads, Keep, restrict
from treewright.parsing.dependency.features import Corpus
from treewright.parsing.dependency.pruning import Arcs
from treewright.parsing.dependency.structure import StructureModel, TrainingProgress
from treewright.progress import Task

FAR = 1000.0
"""Below any score, where exponentials are 0."""


class SpanningModel(StructureModel):
    """Scores trees by their arcs; all arcs compete, none are pruned.

    Parameters
    ----------
    templates : TemplateSet
    order : {1}
    table_bits : int
        The weight table has 2 ** `table_bits` slots.
    single_root : bool
        Whether every tree has exactly one root.
    """

    def _learn(
        self,
        corpus: Corpus,
        arcs: Arcs,
        progress: TrainingProgress,
        order: npt.NDArray[np.int64],
        options: tuple[int, float, bool, int, int],
        counted: Task,
    ) -> tuple[int, float]:
        stage = self._stage(progress.weights)
        *others, first_step = options
        n_wrong, loss = 0, 0.0
        for part in counted.slices(len(order)):
            block = (*others, first_step + part.start)
            found = train_crossing(
                stage, self._model, corpus, corpus.heads, progress.totals, order[part], block
            )
            n_wrong, loss = n_wrong + found[0], loss + found[1]
        return n_wrong, loss

    def _find(
        self,
        stages: tuple[Stage, ...],
        corpus: Corpus,
        numbers: npt.NDArray[np.int64],
        heads: npt.NDArray[np.int32],
        scores: npt.NDArray[np.float64],
    ) -> None:
        parse_crossing(self._stage(self.weights_), corpus, numbers, self.single_root, heads, scores)

    def _find_fixed(
        self, stages: tuple[Stage, ...], corpus: Corpus, number: int, fixed: FixedHeads, k: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        scores, allowed = self._score(corpus, number, fixed)
        heads, totals = np.zeros((k, len(allowed)), dtype=np.int32), np.empty(k)
        masked = np.where(allowed, scores, EXCLUDED)
        n_found = best_arborescences(masked, self.single_root, heads, totals)
        return heads[:n_found, 1:], totals[:n_found]

    def _measure(
        self,
        stages: tuple[Stage, ...],
        corpus: Corpus,
        numbers: npt.NDArray[np.int64],
        scale: float,
        log_sums: npt.NDArray[np.float64],
        flat: npt.NDArray[np.float64],
    ) -> None:
        options = (self.single_root, scale)
        measure_crossing(self._stage(self.weights_), corpus, numbers, options, log_sums, flat)

    def _measure_fixed(
        self, stages: tuple[Stage, ...], corpus: Corpus, number: int, fixed: FixedHeads, scale: float
    ) -> tuple[float, npt.NDArray[np.float64]]:
        scores, allowed = self._score(corpus, number, fixed)
        scaled = scale * scores
        low, high = scaled[allowed].min(), scaled[allowed].max()
        # So low that exponentials are 0, but no lower: the sum loses as many digits as the lowest score has.
        scaled[~allowed] = low - 2 * (high - low) - FAR
        square = np.empty_like(scaled)
        log_sum = matrix_tree_marginals(scaled, self.single_root, square)
        return float(log_sum), square

    def _score(self, corpus: Corpus, number: int, fixed: FixedHeads) -> tuple[npt.NDArray[np.float64], Keep]:
        """Return the scores of all arcs of a sentence, and which of them agree with the fixed heads."""
        scores = score_sentence(self._stage(self.weights_), corpus, number)
        return scores, restrict(all_arcs(len(scores) - 1), fixed)

    def _stage(self, weights: npt.NDArray[np.float32]) -> Stage:
        return Stage(
            self._model.arc, True, weights, self._model.shift, 0.0, 0, self._max_keys, self.single_root
        )
