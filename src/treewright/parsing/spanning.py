"""Trees whose arcs may cross: a first-order model over all spanning trees, trained with k-best MIRA.

McDonald, Pereira, Ribarov & Hajic (2005).
"""

import numpy as np
import numpy.typing as npt

from treewright.native.crossing import measure_crossing, parse_crossing, train_crossing
from treewright.native.pruning import Stage
from treewright.parsing.features import Corpus
from treewright.parsing.pruning import Arcs
from treewright.parsing.structure import StructureModel, TrainingProgress


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
    ) -> tuple[int, float]:
        stage = self._stage(progress.weights)
        found: tuple[int, float] = train_crossing(
            stage, self._model, corpus, corpus.heads, progress.totals, order, options
        )
        return found

    def _find(
        self,
        stages: tuple[Stage, ...],
        corpus: Corpus,
        heads: npt.NDArray[np.int32],
        scores: npt.NDArray[np.float64],
    ) -> None:
        parse_crossing(self._stage(self.weights_), corpus, self.single_root, heads, scores)

    def _measure(
        self,
        stages: tuple[Stage, ...],
        corpus: Corpus,
        scale: float,
        log_sums: npt.NDArray[np.float64],
        flat: npt.NDArray[np.float64],
    ) -> None:
        measure_crossing(self._stage(self.weights_), corpus, self.single_root, scale, log_sums, flat)

    def _stage(self, weights: npt.NDArray[np.float32]) -> Stage:
        return Stage(
            self._model.arc, True, weights, self._model.shift, 0.0, 0, self._max_keys, self.single_root
        )
