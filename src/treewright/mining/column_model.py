"""A generalised linear model over binary columns with an L2 penalty, to which columns can be added."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_matrix, csr_matrix, hstack

from treewright._typing import FloatArray, IntArray, Integers
from treewright.learn.chains import chain_columns, columns_of
from treewright.mining.targets import LossTarget
from treewright.native.learn.columns import (
    BinaryColumns,
    ColumnChains,
    ColumnWeights,
    QuadraticLoss,
    descend_chains,
    measure_chains,
)
from treewright.native.mining.literals import match_literals

NO_WEIGHT = float("inf")
"""Infinite penalty, which makes all weights zero."""
TOL = 3e-3
"""Relative decrease of the objective below which fitting stops."""
N_NEWTON, N_PASSES = 30, 2
"""Maximum numbers of Newton steps, and of passes over the columns per step."""
SHARES = tuple(0.5**number for number in range(8))
"""Shares of a Newton step that are tried until the objective does not increase."""
N_QUADRATIC_PASSES = 200
"""Maximum number of passes for a quadratic loss, which needs only one Newton step."""
MOST_SOLVED = 2_000
"""Maximum number of columns for which a quadratic loss is minimised by solving the normal equations."""
PASSES = 30_000
"""The normal equations are solved if building them takes at most as many operations as this number of passes
over the entries of the columns; they are built once and solved many times."""
LONG, STIFFNESS = 3, 10.0
"""The penalty of the weights of a chain of at least `LONG` columns is multiplied by `STIFFNESS`, but the
penalty of their sum is not: a steady rise or fall over many columns is more likely than a sawtooth."""
CHUNK = 2_048
LARGEST_ROOM = 1 << 24


class ModelState(NamedTuple):
    """Weights, intercepts, scores, penalties and the number of blocks of a model."""

    values: FloatArray
    intercept: FloatArray
    scores: FloatArray
    penalties: FloatArray
    n_blocks: int


class ColumnModel:
    """Weights of blocks of columns that share a penalty, and the scores of all rows.

    Rows with weight zero are scored, but not used for training.

    Parameters
    ----------
    target : LossTarget
    sample_weight : ndarray of float, (n_rows,)
    """

    def __init__(self, target: LossTarget, sample_weight: FloatArray) -> None:
        self.target, self.sample_weight = target, sample_weight
        self._blocks: list[BinaryColumns] = []
        self._chains: list[ColumnChains] = []
        self._trends = _Trends([])
        self.values = np.zeros((0, target.n_outputs))
        self.intercept = np.zeros(target.n_outputs)
        self.scores = np.zeros((len(sample_weight), target.n_outputs))
        self.penalties = np.zeros(0)
        self._objective, self._losses = np.inf, np.zeros(0)
        self._products = _Products(sample_weight)

    def add(self, columns: BinaryColumns, penalty: float, chains: ColumnChains | None = None) -> None:
        """Add a block of columns with weights of zero; their chains are found if not given."""
        n_columns = len(columns.indptr) - 1
        self._blocks.append(columns)
        self._chains.append(chain_columns(columns) if chains is None else chains)
        self._trends = _Trends(self._chains)
        self.penalties = np.concatenate([self.penalties, np.full(n_columns, penalty)])
        self.values = np.concatenate([self.values, np.zeros((n_columns, self.target.n_outputs))])

    def state(self) -> ModelState:
        """Return the state for `set_state`."""
        return ModelState(
            self.values.copy(),
            self.intercept.copy(),
            self.scores.copy(),
            self.penalties.copy(),
            len(self._blocks),
        )

    def set_state(self, state: ModelState) -> None:
        """Restore an earlier state."""
        self.values, self.intercept, self.scores, self.penalties = (each.copy() for each in state[:4])
        self._blocks, self._chains = self._blocks[: state.n_blocks], self._chains[: state.n_blocks]
        self._trends = _Trends(self._chains)

    def _measure_objective(self) -> float:
        """Return the sum of the losses plus the penalty."""
        is_there = np.isfinite(self.penalties)
        shrinking = self._trends.penalties[is_there] @ (self.values[is_there] ** 2).sum(axis=1)
        shrinking -= self._trends.given_back(self.values)
        return float(self.sample_weight @ self._losses + 0.5 * shrinking)

    def fit(self, tol: float = TOL) -> None:
        """Fit all weights, starting from their current values."""
        self._drop_unweighted()
        self._trends.set_penalties(self.penalties)
        if self.target.is_quadratic and self._products.can_include(self._blocks):
            self._solve()
            return
        self._losses = self.target.losses(self.scores)
        before = self._objective = self._measure_objective()
        for number in range(N_NEWTON):
            for output in range(self.target.n_outputs):
                self._step(output, tol)
            after = self._objective
            if self.target.is_quadratic or (number and before - after <= tol * max(1.0, abs(after))):
                break
            before = after

    def _solve(self) -> None:
        """Minimise a quadratic loss with a single output exactly."""
        products, weight = self._products.of_blocks(self._blocks), self.sample_weight
        used = np.flatnonzero(np.isfinite(self.penalties))
        residual = self.target.residuals(self.scores)[0][:, 0] * weight
        total = max(float(weight.sum()), 1e-300)
        means = products.with_one[used] / total
        matrix = products.between[np.ix_(used, used)] - total * np.outer(means, means)
        penalty = self._trends.penalty_matrix(used)
        matrix += penalty
        slope = products.rows.T[used] @ residual - means * residual.sum()
        slope -= penalty @ self.values[used, 0]
        moved = cho_solve(cho_factor(matrix, lower=True), slope) if len(used) else slope
        intercept = float(residual.sum()) / total - float(means @ moved)
        self.values[used, 0] += moved
        self.intercept[0] += intercept
        self.scores[:, 0] += products.rows[:, used] @ moved + intercept

    def _step(self, output: int, tol: float) -> None:
        """Take a Newton step for one output."""
        residual, curvature = (
            each * self.sample_weight
            for each in self.target.output_residuals(self.scores, self._losses, output)
        )
        loss = QuadraticLoss(residual, curvature, np.zeros(len(residual)))
        before = self.values[:, output].copy()
        weights = ColumnWeights(
            before.copy(), self._trends.penalties, self._trends.of_chains, *np.zeros((3, len(before)))
        )
        moving = self._measure(loss, weights)
        total, moved = max(float(curvature.sum()), 1e-300), 0.0
        least = 1e-4 * tol * max(1.0, float(self.sample_weight.sum()))
        for _ in range(N_QUADRATIC_PASSES if self.target.is_quadratic else N_PASSES):
            step = float(residual.sum()) / total
            moved += step
            residual -= curvature * step
            loss.shift[:] += step
            largest = max((descend_chains(chains, loss, part) for chains, part in moving), default=0.0)
            if largest < least:
                break
        self._move(output, before, weights.values, moved, loss.shift)

    def _drop_unweighted(self) -> None:
        """Set the weights of blocks with an infinite penalty to zero."""
        first = 0
        for block in self._blocks:
            end = first + len(block.indptr) - 1
            if end > first and not np.isfinite(self.penalties[first]) and self.values[first:end].any():
                for output in range(self.target.n_outputs):
                    each = np.repeat(self.values[first:end, output], np.diff(block.indptr))
                    self.scores[:, output] -= np.bincount(block.rows, each, minlength=len(self.scores))
                self.values[first:end] = 0
            first = end

    def _measure(
        self, loss: QuadraticLoss, weights: ColumnWeights
    ) -> list[tuple[ColumnChains, ColumnWeights]]:
        """Return the blocks with a finite penalty, with their weights and curvatures."""
        moving, first, first_chain = [], 0, 0
        for block, chains in zip(self._blocks, self._chains, strict=True):
            end, end_chain = first + len(block.indptr) - 1, first_chain + len(chains.members_ptr) - 1
            if end > first and np.isfinite(self.penalties[first]):
                part = ColumnWeights(*(each[first:end] for each in weights))
                part = part._replace(trend=weights.trend[first_chain:end_chain])
                measure_chains(chains, loss, part)
                moving.append((chains, part))
            first, first_chain = end, end_chain
        return moving

    def _move(
        self, output: int, before: FloatArray, after: FloatArray, intercept: float, shift: FloatArray
    ) -> None:
        losses = self._losses
        for share in SHARES:
            self.values[:, output] = before + share * (after - before)
            self._losses = self.target.moved_losses(self.scores, losses, output, share * shift)
            objective = self._measure_objective()
            if self.target.is_quadratic or objective <= self._objective * (1 + 1e-12):
                break
        self.intercept[output] += share * intercept
        self.scores[:, output] += share * shift
        self._objective = objective


class _Trends:
    """The penalties of columns in chains and of the trends of chains.

    Parameters
    ----------
    blocks : sequence of ColumnChains
        The chains of each block of columns.

    Attributes
    ----------
    penalties : ndarray of float, (n_columns,)
        The penalties of the columns, with those in long chains multiplied.
    of_chains : ndarray of float, (n_chains,)
        For each chain of each block, the penalty of its trend that is taken back; zero for short chains.
    """

    def __init__(self, blocks: Sequence[ColumnChains]) -> None:
        sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.diff(each.members_ptr) for each in blocks)])
        first, members = 0, [np.zeros(0, dtype=np.int64)]
        for each in blocks:
            members.append(each.members + first)
            first += len(each.members)
        self._chain_of = np.empty(first, dtype=np.int64)
        self._chain_of[np.concatenate(members)] = np.repeat(np.arange(len(sizes)), sizes)
        self._sizes = sizes
        self._in_chains = np.flatnonzero(sizes[self._chain_of] >= LONG)
        self.penalties = np.zeros(first)
        self.of_chains = np.zeros(len(sizes))

    def set_penalties(self, penalties: FloatArray) -> None:
        """Set the penalties, given those of columns outside chains."""
        columns = self._in_chains
        inverse = np.bincount(self._chain_of[columns], 1 / penalties[columns], minlength=len(self._sizes))
        is_there = inverse > 0
        self.of_chains[:] = 0.0
        self.of_chains[is_there] = (STIFFNESS - 1) / inverse[is_there]
        self.penalties = penalties.copy()
        self.penalties[columns] *= STIFFNESS

    def given_back(self, values: FloatArray) -> float:
        """Return what is taken back, times two, given the weights of the columns for each output."""
        columns = self._in_chains
        if not len(columns):
            return 0.0
        sums = np.stack([np.bincount(self._chain_of[columns], each) for each in values[columns].T])
        return float((sums**2).sum(axis=0) @ self.of_chains[: sums.shape[1]])

    def penalty_matrix(self, used: Integers) -> FloatArray:
        """Return the matrix of the quadratic form of the penalty of some columns."""
        chain = self._chain_of[used]
        matrix = np.where(chain[:, np.newaxis] == chain, -self.of_chains[chain], 0.0)
        matrix[np.diag_indices(len(used))] += self.penalties[used]
        return matrix


class _Products:
    """Weighted inner products of columns with each other and with a column of ones.

    Attributes
    ----------
    rows : csc_matrix
        The columns.
    between : ndarray of float, (n_columns, n_columns)
    with_one : ndarray of float, (n_columns,)
    """

    def __init__(self, sample_weight: FloatArray) -> None:
        self._weight = sample_weight
        self._blocks: list[BinaryColumns] = []
        self.rows = csc_matrix((len(sample_weight), 0))
        self.between, self.with_one = np.zeros((0, 0)), np.zeros(0)

    def can_include(self, blocks: Sequence[BinaryColumns]) -> bool:
        """Return whether the columns are few and dense enough."""
        n_columns = sum(len(each.indptr) - 1 for each in blocks)
        n_entries = sum(len(each.rows) for each in blocks)
        is_dense = len(self._weight) * n_columns**2 <= PASSES * n_entries
        return n_columns <= MOST_SOLVED and is_dense

    def of_blocks(self, blocks: Sequence[BinaryColumns]) -> Self:
        """Update the products to those of the columns of all blocks."""
        n_same = 0
        for old, new in zip(self._blocks, blocks, strict=False):
            if old is not new:
                break
            n_same += 1
        n_kept = sum(len(each.indptr) - 1 for each in blocks[:n_same])
        self._blocks = list(blocks)
        shape = len(self._weight)
        added = [
            csc_matrix((np.ones(len(each.rows)), each.rows, each.indptr), shape=(shape, len(each.indptr) - 1))
            for each in blocks[n_same:]
        ]
        self.rows = hstack([self.rows[:, :n_kept], *added], format="csc")
        n_columns = self.rows.shape[1]
        between = np.zeros((n_columns, n_columns))
        between[:n_kept, :n_kept] = self.between[:n_kept, :n_kept]
        if n_columns > n_kept:
            by_row, used = self.rows.tocsr(), np.flatnonzero(self._weight)
            for begin in range(0, len(used), CHUNK):
                chunk = used[begin : begin + CHUNK]
                dense = by_row[chunk].toarray()
                between[:, n_kept:] += dense.T @ (dense[:, n_kept:] * self._weight[chunk, np.newaxis])
            between[n_kept:, :n_kept] = between[:n_kept, n_kept:].T
        self.between, self.with_one = between, self.rows.T @ self._weight
        return self


def literal_columns(literals: Sequence[IntArray], columns: BinaryColumns, n_rows: int) -> BinaryColumns:
    """Return where conjunctions of literals are true.

    A literal is a column index, or ``~column`` if the column must be absent. `literals` has one array per
    order.
    """
    room = np.empty(n_rows, dtype=np.int32)
    rows, sizes = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
    for each in literals:
        begin, size = 0, max(n_rows, 8 * len(each))
        while begin < len(each):
            found = BinaryColumns(
                np.zeros(len(each) - begin + 1, dtype=np.int64), np.empty(size, dtype=np.int32)
            )
            n_done, n_used = match_literals(np.ascontiguousarray(each[begin:]), columns, n_rows, room, found)
            rows.append(found.rows[:n_used].copy())
            sizes.append(np.diff(found.indptr[: n_done + 1]))
            begin, size = begin + n_done, min(2 * size, max(n_rows, LARGEST_ROOM))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    return BinaryColumns(indptr, np.concatenate(rows))


def take_columns(columns: BinaryColumns, which: Integers) -> BinaryColumns:
    """Return some of the columns."""
    sizes = np.diff(columns.indptr)[which]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(indptr[-1]) + np.repeat(columns.indptr[:-1][which] - indptr[:-1], sizes)
    return BinaryColumns(indptr, columns.rows[places])


def match_rows_of_literals(rows: csr_matrix, literals: Sequence[IntArray]) -> csr_matrix:
    """Return where conjunctions of literals are true, as a binary matrix with one column per conjunction."""
    found = literal_columns(literals, columns_of(rows), rows.shape[0])
    n_columns = len(found.indptr) - 1
    present = np.ones(len(found.rows), dtype=np.int8)
    by_row = csr_matrix((present, found.rows, found.indptr), shape=(n_columns, rows.shape[0])).T.tocsr()
    by_row.sort_indices()
    return by_row
