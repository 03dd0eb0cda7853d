"""Trees whose arcs may cross: a first-order model over all spanning trees, trained with k-best MIRA.

McDonald, Pereira, Ribarov & Hajic (2005).
"""

import numpy as np
import numpy.typing as npt

from treewright.native.crossing import measure_crossing, parse_crossing, train_crossing
from treewright.native.pruning import Stage
from treewright.parsing.features import Corpus, TemplateSet
from treewright.parsing.pruning import Arcs
from treewright.parsing.structure import StructureModel, TrainingProgress, cut_squares


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

    def __init__(self, templates: TemplateSet, *, order: int, table_bits: int, single_root: bool) -> None:
        super().__init__(templates, order=order, table_bits=table_bits, single_root=single_root)

    def _learn(
        self,
        corpus: Corpus,
        arcs: Arcs,
        progress: TrainingProgress,
        order: npt.NDArray[np.int64],
        options: tuple[int, float, bool, int, int],
    ) -> tuple[int, float]:
        stage = self._stage(progress.weights)
        found: tuple[int, float] = train_crossing(
            stage, self._model, corpus, corpus.heads, progress.totals, order, options
        )
        return found

    def best_trees(
        self, stages: tuple[Stage, ...], corpus: Corpus, k: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return the heads of the `k` best trees, (k, rows), and their scores, (sentences, k)."""
        heads = np.zeros((k, len(corpus.values)), dtype=np.int32)
        scores = np.empty((corpus.n_sentences, k))
        parse_crossing(self._stage(self.weights_), corpus, self.single_root, heads, scores)
        return heads, scores

    def marginals(
        self, stages: tuple[Stage, ...], corpus: Corpus, scale: float
    ) -> tuple[npt.NDArray[np.float64], list[npt.NDArray[np.float64]]]:
        """Return the log of the sum over all trees, and a square of arc probabilities, of each sentence."""
        flat = np.empty(int(((corpus.sizes + 1) ** 2).sum()))
        log_sums = np.empty(corpus.n_sentences)
        measure_crossing(self._stage(self.weights_), corpus, self.single_root, scale, log_sums, flat)
        return log_sums, cut_squares(flat, corpus)

    def _stage(self, weights: npt.NDArray[np.float32]) -> Stage:
        return Stage(
            self._model.arc, True, weights, self._model.shift, 0.0, 0, self._max_keys, self.single_root
        )
