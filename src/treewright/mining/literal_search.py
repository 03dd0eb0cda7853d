"""Search for the conjunctions of literals that best explain the residuals of a model.

Columns that are present in many rows are searched together in dense matrices, which give the sums of all
pairs and triples and, by inclusion-exclusion, also the sums of conjunctions with absent columns. All other
conjunctions are counted order by order, from rare columns to frequent ones.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray, IntArray, Integers
from treewright.native.mining.literals import (
    Extendable,
    LiteralLimits,
    LiteralPlaces,
    LiteralSums,
    Parents,
    Scored,
    SortedRows,
    Totals,
    extend_literals,
    score_pairs,
    score_triples,
)

DENSE = 0.1
"""Columns in at least this fraction of the rows are searched in dense matrices."""
NEGATED = 0.05
"""Columns that are not dense may be negated only if present in at least this fraction of the rows."""
RIDGE = 0.5
"""Number added to the sum of squared residuals, which lowers the scores of rare conjunctions."""
ROOM = 1 << 16
"""Size of the buffers for conjunctions."""
BEAM = 128
"""Number of conjunctions of dense columns that are extended per order (beam width)."""
MOST_DENSE = 300
"""Maximum number of dense columns."""
TRIPLE_WORK = 100
"""Number of multiplications that take as long as counting one entry of a row."""
STANDS_OUT = 1.25
"""After the first search, all triples are counted only if no score exceeds the maximum expected by chance by
this factor."""
TRIPLES = 3
"""Maximum number of triples to score, as a multiple of the number of entries that may be counted."""
LEAST_SAMPLE = 2000
"""Minimum size of the sample of rows in which triples of dense columns are counted."""
LARGEST_LEVEL = 1 << 20
"""Maximum number of conjunctions of one order that are kept for extension."""


class Found(NamedTuple):
    """Conjunctions of one order, given as literals, and their scores."""

    literals: IntArray
    scores: FloatArray


class LiteralSearch:
    """Searches the same rows repeatedly for conjunctions of literals, with different residuals each time.

    Parameters
    ----------
    rows : csr_matrix
        Binary.
    degree : int
        Maximum number of literals in a conjunction.
    negations : bool
        Whether conjunctions may require columns to be absent.
    n_rows_min : int
        Minimum number of rows in which a conjunction is true.
    work : int
        Maximum number of matrix entries that are counted per order.
    n_outputs : int
        Number of columns of the residuals; the maximum `work` is divided among them.
    is_wanted : ndarray of bool, (n_columns,), optional
        Which columns conjunctions may have; by default, all.

    Attributes
    ----------
    is_exact : bool
        Whether all conjunctions were counted in every search so far.
    """

    def __init__(
        self,
        rows: csr_matrix,
        *,
        degree: int,
        negations: bool,
        n_rows_min: int,
        work: int,
        n_outputs: int = 1,
        is_wanted: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self._n_rows = rows.shape[0]
        self._degree, self._negations, self._n_rows_min, self._work = degree, negations, n_rows_min, work
        self.is_exact = is_wanted is None or bool(is_wanted.all())
        counts = np.bincount(rows.indices, minlength=rows.shape[1])
        is_useful = (counts >= n_rows_min) & (counts < self._n_rows)
        useful = np.flatnonzero(is_useful if is_wanted is None else is_useful & is_wanted)
        self.columns = useful[np.argsort(counts[useful], kind="stable")].astype(np.int32)
        shares = counts[self.columns] / max(1, self._n_rows)
        n_items = len(self.columns)
        n_dense = min(int((shares >= DENSE).sum()), MOST_DENSE)
        if n_dense < 3:
            n_dense = 0
        self._first_dense = n_items - n_dense
        self._first_negated = int(np.searchsorted(shares, NEGATED)) if negations else n_items
        self._sorted = self._sort(rows)
        self._dense = self._take_dense(rows)
        self._items, self._sample = self._draw_triples(shares[self._first_dense :], n_outputs)
        self._sampled = np.ascontiguousarray(self._dense[self._sample][:, self._items])
        self._counts: list[npt.NDArray[np.float32]] | None = None
        self._is_first = True

    def _draw_triples(self, shares: FloatArray, n_outputs: int) -> tuple[Integers, Integers]:
        """Return the dense columns whose triples are all counted, and the rows in which they are counted."""
        n_items = min(len(shares), int((6 * TRIPLES * self._work / (8 * n_outputs)) ** (1 / 3)))
        items = np.sort(np.argsort(np.abs(shares - 0.5), kind="stable")[:n_items])
        n_each = float(np.sum(shares[items] * np.arange(n_items)[::-1] ** 2))
        n_rows = int(max(LEAST_SAMPLE, TRIPLE_WORK * self._work / max(1.0, n_each)))
        rows = np.arange(self._n_rows)
        if n_rows < self._n_rows:
            rows = np.sort(np.random.default_rng(0).permutation(self._n_rows)[:n_rows])
        if n_items < len(shares) or n_rows < self._n_rows:
            self.is_exact = self.is_exact and self._degree < 3
        return items, rows

    def _sort(self, rows: csr_matrix) -> SortedRows:
        rank = np.full(rows.shape[1], -1, dtype=np.int32)
        rank[self.columns] = np.arange(len(self.columns))
        items = rank[rows.indices]
        row_of = np.repeat(np.arange(self._n_rows, dtype=np.int32), np.diff(rows.indptr))[items >= 0]
        matrix = csr_matrix(
            (np.ones(len(row_of), dtype=np.int8), (row_of, items[items >= 0])),
            shape=(self._n_rows, len(self.columns)),
        )
        matrix.sort_indices()
        by_item = np.argsort(matrix.indices, kind="stable")
        row_of = np.repeat(np.arange(self._n_rows, dtype=np.int32), np.diff(matrix.indptr))
        n_each = np.bincount(matrix.indices, minlength=len(self.columns))
        return SortedRows(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            np.concatenate([[0], np.cumsum(n_each)]),
            row_of[by_item],
            by_item + 1,
        )

    def _take_dense(self, rows: csr_matrix) -> npt.NDArray[np.float32]:
        """Return the dense columns."""
        return np.asfortranarray(rows[:, self.columns[self._first_dense :]].toarray(), dtype=np.float32)

    def find(
        self, residuals: FloatArray, n_wanted: int, *, margin: float, least: float = 1.0, share: float = 0.0
    ) -> list[Found]:
        """Return the best conjunctions of at least two literals, about `n_wanted` of them.

        Parameters
        ----------
        residuals : ndarray of float, (n_rows, n_outputs)
        n_wanted : int
        margin : float
            Minimum difference between the score of a conjunction and the scores of its parts.
        """
        pool = _Pool(
            n_wanted, LiteralLimits(least, margin, self._n_rows_min, RIDGE, self._first_negated), share
        )
        if self._degree > 1 and len(self.columns) > 1:
            if self._dense.shape[1]:
                self._find_dense(residuals, pool)
            self._find_sparse(np.ascontiguousarray(residuals), pool)
        return pool.found(self.columns)

    def _find_sparse(self, residuals: FloatArray, pool: "_Pool") -> None:
        rows, n_outputs = self._sorted, residuals.shape[1]
        n_items = len(self.columns)
        totals = Totals(
            np.zeros((n_items, 2 * n_outputs)),
            np.zeros(n_items, dtype=np.int32),
            np.zeros(n_items, dtype=np.int64),
            np.zeros(n_items, dtype=np.int32),
            np.zeros(2 * n_outputs),
        )
        n_after = np.concatenate([[0], np.cumsum(rows.indptr[rows.item_rows + 1] - rows.item_starts)])
        work = np.diff(n_after[rows.item_indptr])[: self._first_dense]
        parents = np.arange(self._first_dense, dtype=np.int32)[:, np.newaxis]
        n_each = np.diff(rows.item_indptr)[: self._first_dense]
        level = _LiteralLevel(parents, work, n_each, np.zeros(len(parents)))
        for order in range(2, self._degree + 1):
            level = self._within_work(level, n_outputs, pool.rule.score)
            if not len(level.parents):
                break
            level = self._extend(level, residuals, totals, pool, is_last=order == self._degree)

    def _within_work(self, level: "_LiteralLevel", n_outputs: int, least: float) -> "_LiteralLevel":
        """Return the conjunctions to extend within the work limit.

        The score of a conjunction is at most its number of rows. If not all conjunctions can be extended,
        half of the work is spent on those that hold in the most rows, and half on those with the highest
        scores.
        """
        level = level.take(np.flatnonzero((level.work > 0) & (level.n_rows >= least)))
        if level.work.sum() * n_outputs <= self._work:
            return level
        self.is_exact = False
        kept = np.zeros(len(level.work), dtype=np.bool_)
        for keys in (level.n_rows, level.scores):
            sequence = np.argsort(-keys, kind="stable")
            kept[sequence[np.cumsum(level.work[sequence]) * n_outputs <= self._work // 2]] = True
        return level.take(np.flatnonzero(kept))

    def _extend(
        self,
        level: "_LiteralLevel",
        residuals: FloatArray,
        totals: Totals,
        pool: "_Pool",
        *,
        is_last: bool,
    ) -> "_LiteralLevel":
        room = max(ROOM, 3 * len(self.columns))
        scored = _room(room)
        n_kept = 0 if is_last else room
        extendable = Extendable(
            np.empty(n_kept, dtype=np.int64),
            np.empty(n_kept, dtype=np.int32),
            np.empty(n_kept, dtype=np.int64),
            np.empty(n_kept, dtype=np.int64),
            np.empty(n_kept),
        )
        places = self._places(level)
        parents = Parents(level.parents, level.n_rows)
        begin, end, levels, n_level = 0, len(level.parents), [], 0
        while begin < end:
            tally = extend_literals(
                parents, (begin, end), self._sorted, residuals, pool.rule, places, totals, scored, extendable
            )
            n = tally.n_scored
            literals = np.column_stack([level.parents[scored.parents[:n]], scored.literals[:n]])
            pool.add(literals, scored.scores[:n])
            if not is_last:
                n = tally.n_extendable
                grown = np.column_stack([level.parents[extendable.parents[:n]], extendable.items[:n]])
                part = _LiteralLevel(
                    grown,
                    extendable.work[:n].copy(),
                    extendable.n_rows[:n].copy(),
                    extendable.scores[:n].copy(),
                ).take(np.flatnonzero(extendable.n_rows[:n] >= pool.rule.score))
                levels.append(part)
                n_level += len(part.parents)
                if n_level > LARGEST_LEVEL:
                    levels = [_join(levels).largest(LARGEST_LEVEL // 2)]
                    n_level = len(levels[0].parents)
                    self.is_exact = False
            begin = tally.next_parent
        return _join(levels) if levels else level.take(np.zeros(0, dtype=np.int64))

    def _places(self, level: "_LiteralLevel") -> LiteralPlaces:
        """Return buffers for the occurrences of conjunctions that differ only in the last item."""
        order = level.parents.shape[1]
        begins = np.flatnonzero((np.diff(level.parents[:, :-1], axis=0) != 0).any(axis=1)) + 1
        n_spread = int(np.add.reduceat(level.n_rows, np.concatenate([[0], begins])).max(initial=0))
        size = int(np.diff(self._sorted.item_indptr).max(initial=0))
        return LiteralPlaces(
            np.zeros((order, size), dtype=np.int32),
            np.zeros((order, size), dtype=np.int64),
            np.zeros(order, dtype=np.int64),
            np.zeros(n_spread, dtype=np.int32),
            np.zeros(n_spread, dtype=np.int64),
            np.full(len(self.columns), -1, dtype=np.int64),
        )

    def _find_dense(self, residuals: FloatArray, pool: "_Pool") -> None:
        """Search all pairs of dense columns, and extend the best pairs.

        All triples are also counted in the first search, and in later searches if no score is significant.
        """
        of_outputs = residuals.T.astype(np.float32)
        for residual in of_outputs:
            self._find_pairs(residual, pool)
        for order in range(3, self._degree + 1):
            self._beam(of_outputs, order, pool)
        if self._degree < 3:
            return
        is_first, self._is_first = self._is_first, False
        if not is_first and pool.stands_out(len(self.columns)):
            self.is_exact = False
            return
        for residual in of_outputs:
            self._find_triples(residual, pool)
        for order in range(4, self._degree + 1):
            self._beam(of_outputs, order, pool)

    def _find_pairs(self, residual: npt.NDArray[np.float32], pool: "_Pool") -> None:
        columns = self._dense
        squared = residual * residual
        singles = np.stack([residual @ columns, squared @ columns]).astype(np.float64)
        whole = np.array([residual.sum(), squared.sum()], dtype=np.float64)
        pairs = np.stack([_products(columns, residual), _products(columns, squared)])
        pair_scores = np.zeros((4, columns.shape[1], columns.shape[1]))
        sums = LiteralSums(whole, singles, pairs, np.zeros((2, 0, 0)))
        scored = _room(max(ROOM, 4 * columns.shape[1] ** 2))
        n = score_pairs(sums, pool.rule, pair_scores, scored)
        first = scored.parents[:n] // 2
        first = np.where(scored.parents[:n] % 2, ~first, first)
        self._add_dense(pool, np.column_stack([first, scored.literals[:n]]), scored.scores[:n])

    def _add_dense(self, pool: "_Pool", found: IntArray, scores: FloatArray) -> None:
        if not self._negations:
            kept = (found >= 0).all(axis=1)
            found, scores = found[kept], scores[kept]
        first = self._first_dense
        pool.add(np.where(found < 0, ~(~found + first), found + first).astype(np.int32), scores)

    def _find_triples(self, residual: npt.NDArray[np.float32], pool: "_Pool") -> None:
        """Find triples of literals in a sample of the rows, using the mean squared residual for every row.

        The number of rows of each triple is the same in every search and is counted once. The best triples
        are then scored in all rows.
        """
        everything = residual
        columns, residual = self._sampled, residual[self._sample]
        found = _Pool(BEAM, pool.rule, 0.0)
        n_items = columns.shape[1]
        if self._counts is None:
            self._counts = [columns.sum(axis=0), columns.T @ columns]
            for item in range(n_items - 2):
                others = columns[columns[:, item] > 0, item + 1 :]
                self._counts.append(others.T @ others)
        square = float(residual @ residual) / max(1, len(residual))
        whole = np.array([residual.sum(dtype=np.float64), square * len(residual)])
        singles = np.stack([residual @ columns, square * self._counts[0]]).astype(np.float64)
        pairs = np.stack([_products(columns, residual), square * self._counts[1].astype(np.float64)])
        sums = LiteralSums(whole, singles, pairs, np.zeros((2, 0, 0)))
        pair_scores, values, scored = np.zeros((4, n_items, n_items)), np.zeros((2, 8)), _room(ROOM)
        score_pairs(sums, found.rule, pair_scores, _room(0))
        for item in range(n_items - 2):
            there = np.flatnonzero(columns[:, item])
            others = columns[there, item + 1 :]
            triples = np.stack([_products(others, residual[there]), square * self._counts[item + 2]])
            n = score_triples(
                item, sums._replace(triples=triples), found.rule, pair_scores, values, scored, 0
            )
            pair, signs = np.divmod(scored.parents[:n], 4)
            first, second = np.divmod(pair, n_items)
            last = scored.literals[:n]
            triples = np.column_stack([first, second, np.where(last < 0, ~last, last)])
            is_negated = np.column_stack([signs & 1, signs & 2, last < 0]) != 0
            triples = np.where(is_negated, ~self._items[triples], self._items[triples])
            self._add_dense(found, triples, scored.scores[:n])
        best, _ = found.best(3, 4 * BEAM, self._first_dense)
        if len(best):
            true = self._true(best)
            totals, squares = (
                (each @ true).astype(np.float64) for each in (everything, everything * everything)
            )
            pool.add(best, totals**2 / (np.maximum(0, squares) + RIDGE))

    def _true(self, conjunctions: IntArray) -> npt.NDArray[np.float32]:
        """Return where conjunctions of dense columns are true, with one column per conjunction."""
        true = np.ones((len(conjunctions), self._n_rows), dtype=np.float32)
        columns = self._dense.T
        for number, items in enumerate(conjunctions.tolist()):
            for item in items:
                if item < 0:
                    true[number] -= true[number] * columns[~item - self._first_dense]
                else:
                    true[number] *= columns[item - self._first_dense]
        return true.T

    def _beam(self, residuals: npt.NDArray[np.float32], order: int, pool: "_Pool") -> None:
        """Extend the best conjunctions of dense columns by one more literal.

        `residuals` has one row per output.
        """
        parents, of_parents = pool.best(order - 1, BEAM, self._first_dense)
        if not len(parents):
            return
        self.is_exact = self.is_exact and order == 3  # where all triples are counted as well
        true = self._true(parents)
        for residual in residuals:
            self._extend_dense(residual, parents, of_parents, true, pool)

    def _extend_dense(
        self,
        residual: npt.NDArray[np.float32],
        parents: IntArray,
        of_parents: FloatArray,
        true: npt.NDArray[np.float32],
        pool: "_Pool",
    ) -> None:
        """Score all extensions of conjunctions of dense columns for one output."""
        columns, first, order = self._dense, self._first_dense, parents.shape[1] + 1
        both = (residual, residual * residual)
        sums = [(columns.T @ (true * each[:, np.newaxis])).T.astype(np.float64) for each in both]
        wholes = [(each @ true).astype(np.float64)[:, np.newaxis] for each in both]
        scores = np.stack(
            [
                sums[0] ** 2 / (np.maximum(0, sums[1]) + RIDGE),
                (wholes[0] - sums[0]) ** 2 / (np.maximum(0, wholes[1] - sums[1]) + RIDGE),
            ]
        )
        if not self._negations:
            scores[1] = 0
        used = np.where(parents < 0, ~parents, parents) - first
        scores[:, np.repeat(np.arange(len(parents)), order - 1), used.ravel()] = 0
        wanted = (
            scores > np.maximum(of_parents + pool.rule.margin, pool.rule.score)[np.newaxis, :, np.newaxis]
        )
        negated, parent, item = np.nonzero(wanted)
        last = np.where(negated, ~(item + first), item + first)
        pool.add(np.column_stack([parents[parent], last]).astype(np.int32), scores[negated, parent, item])


def _products(columns: npt.NDArray[np.float32], weights: npt.NDArray[np.float32]) -> FloatArray:
    found: FloatArray = (columns.T @ (columns * weights[:, np.newaxis])).astype(np.float64)
    return found


def _room(size: int) -> Scored:
    return Scored(np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int32), np.empty(size))


class _LiteralLevel(NamedTuple):
    """Conjunctions to extend: the work for each, its number of rows, and its score."""

    parents: IntArray
    work: Integers
    n_rows: Integers
    scores: FloatArray

    def take(self, which: Integers) -> "_LiteralLevel":
        """Return some of the conjunctions."""
        return _LiteralLevel(*(each[which] for each in self))  # type: ignore[arg-type]

    def largest(self, size: int) -> "_LiteralLevel":
        """Return the conjunctions that hold in the most rows and those with the highest scores."""
        by_rows = np.argsort(-self.n_rows, kind="stable")[: size // 2]
        by_score = np.argsort(-self.scores, kind="stable")[: size // 2]
        return self.take(np.unique(np.concatenate([by_rows, by_score])))


def _join(levels: list[_LiteralLevel]) -> _LiteralLevel:
    """Concatenate levels in order, so that parents with a common prefix are adjacent."""
    return _LiteralLevel(*(np.concatenate(each) for each in zip(*levels, strict=True)))


class _Pool:
    """The best conjunctions of each order so far, and the rule for accepting more."""

    def __init__(self, n_wanted: int, rule: LiteralLimits, share: float) -> None:
        self._n_wanted, self._share = n_wanted, share
        self.rule = rule
        self._parts: dict[int, list[tuple[IntArray, FloatArray]]] = {}
        self._n_held = 0

    def add(self, literals: IntArray, scores: FloatArray) -> None:
        """Add conjunctions of one order; if there are too many, keep the best."""
        kept = scores > self.rule.score
        if not kept.any():
            return
        self._parts.setdefault(literals.shape[1], []).append((literals[kept], scores[kept].copy()))
        self._n_held += int(kept.sum())
        if self._share:
            least = self._share * float(scores.max())
            self.rule = self.rule._replace(score=max(self.rule.score, least))
        if self._n_held > 2 * self._n_wanted + 1000:
            scores = np.concatenate([part[1] for parts in self._parts.values() for part in parts])
            least = float(np.partition(scores, -self._n_wanted)[-self._n_wanted])
            self.rule = self.rule._replace(score=max(self.rule.score, least))
            self._parts = {
                order: [(literals[scores >= least], scores[scores >= least]) for literals, scores in parts]
                for order, parts in self._parts.items()
            }
            self._n_held = sum(len(part[1]) for parts in self._parts.values() for part in parts)

    def stands_out(self, n_columns: int) -> bool:
        """Return whether a score exceeds the maximum expected by chance among conjunctions of its order."""
        chance = STANDS_OUT * 2 * float(np.log(max(2, 2 * n_columns)))
        return any(
            len(scores) and float(scores.max()) > chance * order
            for order, parts in self._parts.items()
            for _, scores in parts
        )

    def best(self, order: int, size: int, first: int) -> tuple[IntArray, FloatArray]:
        """Return the best conjunctions of an order whose items are all dense."""
        if order not in self._parts:
            return np.zeros((0, order), dtype=np.int32), np.zeros(0)
        literals, scores = (np.concatenate(each) for each in zip(*self._parts[order], strict=True))
        within = np.flatnonzero((np.where(literals < 0, ~literals, literals) >= first).all(axis=1))
        within = within[np.argsort(-scores[within], kind="stable")[:size]]
        return literals[within], scores[within]

    def found(self, columns: IntArray) -> list[Found]:
        """Return all conjunctions without duplicates, with literals in ascending order of columns."""
        result = []
        for order in sorted(self._parts):
            literals, scores = (np.concatenate(each) for each in zip(*self._parts[order], strict=True))
            negated = literals < 0
            literals = columns[np.where(negated, ~literals, literals)]
            sequence = np.argsort(literals, axis=1)
            literals = np.take_along_axis(literals, sequence, axis=1)
            negated = np.take_along_axis(negated, sequence, axis=1)
            literals = np.where(negated, ~literals, literals).astype(np.int32)
            literals, which = np.unique(literals, axis=0, return_index=True)
            result.append(Found(literals, scores[which]))
        return result


def iter_literals(found: list[Found]) -> Iterator[tuple[int, ...]]:
    """Yield conjunctions."""
    for part in found:
        yield from map(tuple, part.literals.tolist())
