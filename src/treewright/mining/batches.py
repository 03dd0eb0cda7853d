"""A linear model on some of the rows, to which batches of conjunctions are added.

Each batch has the conjunctions that best explain the residuals of the model.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray, IntArray
from treewright.learn.chains import thin_chains
from treewright.mining.column_model import NO_WEIGHT, ColumnModel, literal_columns, take_columns
from treewright.mining.literal_search import RIDGE, LiteralSearch
from treewright.mining.targets import LossTarget
from treewright.native.learn.columns import BinaryColumns, ColumnChains
from treewright.native.mining.literals import LiteralLimits, accept, score_columns

FIRST_BATCH, BATCH_GROWTH = 16, 1.5
"""Maximum size of a batch: `FIRST_BATCH` or, if larger, `BATCH_GROWTH` times the number of conjunctions so
far."""
SHARE = 0.7
"""While a score statistic exceeds `NOISE`, only statistics above this fraction of the highest are
accepted."""
NOISE = 4.0
"""Score statistic that the best of many conjunctions can reach by chance."""
FALL, LEAST_STATISTIC = 0.65, 1.5
"""Below `NOISE`, the factor by which the minimum statistic falls per batch, and its lowest value."""
CANDIDATES = 100
"""Number of conjunctions that a search returns, in addition to twice the maximum size of the batch."""
SLACK = 0.9
"""In the final fit, conjunctions need this fraction of the minimum statistic that applied in the splits."""
LEAST_ROWS = 3
"""Minimum number of samples in which a conjunction holds."""
WORK, LEAST_WORK = 4, 20_000
"""A search counts at most `WORK` times the number of entries of all samples, plus `LEAST_WORK`, per order.
With several outputs, which share this number, it is doubled."""
SEARCHED = (3, 3)
"""Numbers of columns of a chain that are searched for conjunctions: at equal distances, and those with the
largest weights in the linear model."""
FINAL_TOL = 1e-5


@dataclass(frozen=True, kw_only=True)
class AdditiveOptions:
    """Options of `AdditiveFit`."""

    degree: int
    tree_degree: int
    """Maximum number of literals of the leaves of boosted trees; 1 for no trees."""
    negations: bool
    max_iter: int
    validation_fraction: float
    one_standard_error: bool
    max_seconds: float | None
    random_state: int


class ConjunctionBatch(NamedTuple):
    """Conjunctions that are added together, and the minimum statistic that was required."""

    conjunctions: list[tuple[int, ...]]
    statistic: float


class BatchPath:
    """A model trained on a subset of the rows, and its conjunctions.

    Parameters
    ----------
    rows : csr_matrix
        Binary.
    columns : BinaryColumns
        The columns of the rows.
    chains : ColumnChains
        The chains of the columns.
    target : LossTarget
    sample_weight : ndarray of float, (n_rows,)
        Zero for rows that are not used for training.
    options : AdditiveOptions

    Attributes
    ----------
    model : ColumnModel
    batches : list of ConjunctionBatch
        The batches so far.
    kept : list of ConjunctionBatch
        Batches of an earlier run, which are added again without a search.
    """

    def __init__(
        self,
        rows: csr_matrix,
        columns: BinaryColumns,
        chains: ColumnChains,
        target: LossTarget,
        sample_weight: FloatArray,
        options: AdditiveOptions,
    ) -> None:
        self._rows, self._columns, self._options = rows, columns, options
        self._chains = chains
        self._train = np.flatnonzero(sample_weight > 0)
        self._search: LiteralSearch | None = None
        self._statistic: float | None = None
        self._known: dict[tuple[int, ...], None] = {}
        self.model = ColumnModel(target, sample_weight)
        self.model.add(columns, NO_WEIGHT, chains)
        self.batches: list[ConjunctionBatch] = []
        self.kept: list[ConjunctionBatch] = []

    @property
    def is_exact(self) -> bool:
        """Whether all conjunctions were counted."""
        return self._search is None or self._search.is_exact

    def fit_linear(self, penalty: float) -> None:
        """Set the penalty of single columns, and fit all weights."""
        self.model.penalties[: self._rows.shape[1]] = penalty
        self.model.fit()

    def fit_conjunctions(self, penalty: float) -> None:
        """Set the penalty of conjunctions, and fit all weights."""
        self.model.penalties[self._rows.shape[1] :] = penalty
        self.model.fit()

    def finish(self, linear: float, penalty: float) -> None:
        """Set both penalties, and fit all weights with a low tolerance."""
        self.model.penalties[: self._rows.shape[1]] = linear
        self.model.penalties[self._rows.shape[1] :] = penalty
        self.model.fit(FINAL_TOL)

    def step(self, penalty: float) -> int:
        """Search for conjunctions, add a batch and fit; return the number added."""
        if len(self.kept) > len(self.batches):
            batch = self.kept[len(self.batches)]
            self._statistic = batch.statistic if batch.statistic < NOISE else None
            self._add(batch, self._find_columns(batch), penalty)
            return len(batch.conjunctions)
        if self._search is None:
            n_outputs = self.model.target.n_outputs
            jumps = np.abs(self.model.values[: self._rows.shape[1]]).max(axis=1)
            is_searched = thin_chains(self._chains, jumps, *SEARCHED)
            n_entries = int(np.diff(self._columns.indptr)[is_searched].sum())
            work = min(2, n_outputs) * (WORK * n_entries + LEAST_WORK)
            self._search = LiteralSearch(
                self._rows[self._train],
                degree=self._options.degree,
                negations=self._options.negations,
                n_rows_min=LEAST_ROWS,
                work=work,
                n_outputs=n_outputs,
                is_wanted=is_searched,
            )
        size = max(FIRST_BATCH, int(BATCH_GROWTH * len(self._known)))
        margin = 2 * float(np.log(max(2, 2 * len(self._search.columns))))
        least, share = LEAST_STATISTIC, SHARE
        if self._statistic is not None:
            least, share = max(LEAST_STATISTIC, FALL * self._statistic), 0.0
            margin = min(margin, least**2)
        residuals = self._residuals()
        found = self._search.find(
            residuals[0][self._train], 2 * size + CANDIDATES, margin=margin, least=least**2, share=share**2
        )
        names = [tuple(each) for part in found for each in part.literals.tolist()]
        is_new = np.array([each not in self._known for each in names], dtype=np.bool_)
        columns = literal_columns([part.literals for part in found], self._columns, self._rows.shape[0])
        new = np.flatnonzero(is_new)
        which, statistic = self._accept(
            take_columns(columns, new),
            residuals,
            size,
            (least, share),
            penalty,
        )
        if self._statistic is not None or statistic < NOISE:
            self._statistic = statistic
        batch = ConjunctionBatch([names[each] for each in new[which].tolist()], statistic)
        self._add(batch, take_columns(columns, new[which]), penalty)
        return len(which)

    def _residuals(self) -> tuple[FloatArray, FloatArray]:
        weight = self.model.sample_weight[:, np.newaxis]
        residuals, curvatures = self.model.target.residuals(self.model.scores)
        return residuals * weight, curvatures * weight

    def _accept(
        self,
        columns: BinaryColumns,
        residuals: tuple[FloatArray, FloatArray],
        size: int,
        wanted: tuple[float, float],
        penalty: float,
    ) -> tuple[npt.NDArray[np.int64], float]:
        """Return the indices of the columns to add, highest scores first, and the minimum statistic."""
        scores = np.empty(len(columns.indptr) - 1)
        score_columns(columns, residuals[0], RIDGE, scores)
        sequence = np.argsort(-scores, kind="stable")
        least, share = wanted
        statistic = max(least, share * float(np.sqrt(scores.max(initial=0))))
        accepted = np.empty(len(scores), dtype=np.int64)
        rule = LiteralLimits(statistic**2, 0.0, LEAST_ROWS, RIDGE, 0)
        n_accepted = accept(
            take_columns(columns, sequence), residuals[0].copy(), residuals[1], rule, penalty, size, accepted
        )
        return sequence[accepted[:n_accepted]], statistic

    def add_batch(self, batch: ConjunctionBatch, penalty: float) -> None:
        """Add the new conjunctions of a batch whose statistic is high enough, and fit."""
        batch = batch._replace(conjunctions=[each for each in batch.conjunctions if each not in self._known])
        batch = batch._replace(conjunctions=sorted(batch.conjunctions, key=lambda each: (len(each), each)))
        columns = self._find_columns(batch)
        size = max(1, len(batch.conjunctions))
        wanted = (SLACK * batch.statistic, 0.0)
        which, _ = self._accept(columns, self._residuals(), size, wanted, penalty)
        kept = [batch.conjunctions[each] for each in which.tolist()]
        self._add(ConjunctionBatch(kept, batch.statistic), take_columns(columns, which), penalty)

    def _find_columns(self, batch: ConjunctionBatch) -> BinaryColumns:
        literals = [np.array([each], dtype=np.int32) for each in batch.conjunctions]
        return literal_columns(literals, self._columns, self._rows.shape[0])

    def _add(self, batch: ConjunctionBatch, columns: BinaryColumns, penalty: float) -> None:
        self.batches.append(batch)
        self._known.update(dict.fromkeys(batch.conjunctions))
        self.model.add(columns, penalty)
        self.fit_conjunctions(penalty)

    def selected(self) -> tuple[dict[int, IntArray], FloatArray, FloatArray]:
        """Return the conjunctions of each order with non-zero weights, the weights and the intercept."""
        values, n_columns = self.model.values, self._rows.shape[1]
        names = [(each,) for each in range(n_columns)] + list(self._known)
        used = np.flatnonzero((values != 0).any(axis=1)).tolist()
        used.sort(key=lambda each: (len(names[each]), names[each]))
        orders = {}
        for order in sorted({len(names[each]) for each in used}):
            orders[order] = np.array(
                [names[each] for each in used if len(names[each]) == order], dtype=np.int32
            )
        return orders, values[used], self.model.intercept


def join_batches(batches: list[ConjunctionBatch]) -> ConjunctionBatch:
    """Return the union of the batches, with the lowest of their statistics."""
    names = dict.fromkeys(each for batch in batches for each in batch.conjunctions)
    return ConjunctionBatch(list(names), min((each.statistic for each in batches), default=0.0))
