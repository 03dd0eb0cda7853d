"""A linear model over all columns, to which conjunctions are added while the held-out loss falls.

Each path starts from the linear model whose L2 penalty is the best on held-out samples. Each step searches
for the conjunctions that best explain the residuals, adds a batch of them, and refits all weights under an L2
penalty, which is also tuned. The same steps are run on every split. The number of steps is chosen on all
held-out samples together; these steps are then repeated on all samples, with the conjunctions found in the
splits. Boosted trees, whose leaves are conjunctions as well, can get a share of the scores.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray, IntArray
from treewright.checkpoint import Checkpoint
from treewright.learn.chains import chain_columns, columns_of, distinct_columns
from treewright.mining.batches import NOISE, AdditiveOptions, BatchPath, ConjunctionBatch, join_batches
from treewright.mining.column_model import NO_WEIGHT, ModelState
from treewright.mining.reports import PathStep
from treewright.mining.targets import LossTarget
from treewright.mining.tree_leaves import (
    MOST_ROUNDS,
    BoostedSplits,
    BoostedTreeLeaves,
    TreeColumns,
    WeightedLeaves,
)
from treewright.model import State
from treewright.progress import report, task
from treewright.scale import one_blas_thread

LINEAR_PENALTIES = (NO_WEIGHT, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
"""L2 penalties of single columns, from infinite (only the intercept remains) to almost no shrinkage."""
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
FIRST_PENALTY = 4
"""L2 penalties of conjunctions, and the index of the first one to try."""
PATIENCE = 1
"""Early-stopping patience: number of steps without a gain."""
GAIN, LOSS = 0.25, 2.0
"""Minimum improvement of the best loss, and the increase that ends the path, both in standard errors."""
LEAST_GAIN = 1e-3
"""Minimum improvement of the best loss, relative to the loss."""
FIRST_GAIN = 1.0
"""Minimum improvement of the linear model by conjunctions, in standard errors."""
HELD_OUT = 1200
"""Target number of held-out samples, summed over all splits."""
MOST_SPLITS = 3
ROUNDS_PER_STEP = 10
"""Number of rounds of boosted trees that are grown for each step of the search. With long chains, more rounds
are grown, in proportion to the number of entries that they save."""
SHARES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the scores that boosted trees can get."""
SHARE_GAIN, MATERIAL = 1.0, 0.005
"""Minimum improvement of the loss by boosted trees, in standard errors and relative to the loss without any
columns."""
OUT_OF_REACH = (5.0, 1.0)
"""The search for conjunctions ends if boosted trees are ahead by this many times the gain of the last step,
above and below `NOISE`."""


class StepReport(NamedTuple):
    """The result of a step on all held-out samples."""

    step: int
    statistic: float
    n_entered: int
    penalty: float
    loss: float

    def __str__(self) -> str:
        return (
            f"step {self.step}: {self.n_entered:,} conjunctions added with a score statistic of at least "
            f"{self.statistic:.3g}, L2 penalty {self.penalty:g}, held-out loss {self.loss:.5f}"
        )


@dataclass(frozen=True)
class Additive:
    """The selected conjunctions and their weights.

    Attributes
    ----------
    orders : dict of int to ndarray of int32
        The conjunctions of each order, as literals: a column, or ``~column`` where it must be absent.
    weights : ndarray of float, (n_conjunctions, n_outputs)
        The weights of the conjunctions, in the sequence of `orders`.
    intercept : ndarray of float, (n_outputs,)
    statistic : float
        The lowest score statistic that was required to add a conjunction of several columns.
    path : list of PathStep
    history : list of StepReport
    is_exact : bool
        Whether every search counted all conjunctions.
    is_out_of_time : bool
    """

    orders: dict[int, IntArray]
    weights: FloatArray
    intercept: FloatArray
    statistic: float
    path: list[PathStep]
    history: list[StepReport]
    is_exact: bool
    is_out_of_time: bool


class _Step(NamedTuple):
    """One step of all splits: held-out losses, models and the index of the penalty."""

    losses: FloatArray
    states: list[ModelState]
    penalty: int
    n_entered: int
    statistic: float


class AdditiveFit:
    """Selects conjunctions for one target.

    Parameters
    ----------
    rows : csr_matrix
        Binary.
    target : LossTarget
    strata : ndarray of int, optional
        Labels for stratification: every split has the same proportion of each label.
    sample_weight : ndarray of float, (n_rows,)
    options : AdditiveOptions
    checkpoint : Checkpoint, optional
        Checkpoint in which the batches of each split are saved.
    """

    def __init__(
        self,
        rows: csr_matrix,
        target: LossTarget,
        strata: npt.NDArray[np.int64] | None,
        sample_weight: FloatArray,
        options: AdditiveOptions,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._kept = distinct_columns(rows, complements=options.negations)
        rows = rows[:, self._kept]
        self._rows, self._target, self._options = rows, target, options
        self._sample_weight = sample_weight
        self._columns = columns_of(rows)
        self._chains = chain_columns(self._columns)
        self._held_out = self._split(strata)
        self._splits = [
            BatchPath(rows, self._columns, self._chains, target, np.where(each, 0.0, sample_weight), options)
            for each in self._held_out
        ]
        self._checkpoint = checkpoint
        self._deadline = None if options.max_seconds is None else time.monotonic() + options.max_seconds
        self._is_out_of_time = False
        self._tree_columns = TreeColumns(rows, options.tree_degree) if options.tree_degree > 1 else None
        if self._tree_columns is not None:
            share = self._tree_columns.n_entries / max(1, rows.nnz)
            self._rounds_per_step = int(min(MOST_ROUNDS, ROUNDS_PER_STEP / max(share, 1e-9)))
        state = checkpoint.load("additive") if checkpoint else None
        if state is not None:
            for split, batches in zip(self._splits, state.values["batches"], strict=True):
                split.kept = [
                    ConjunctionBatch([tuple(each) for each in found], least) for found, least in batches
                ]

    def _split(self, strata: npt.NDArray[np.int64] | None) -> list[npt.NDArray[np.bool_]]:
        """Return which rows each split holds out."""
        n_rows, share = self._rows.shape[0], self._options.validation_fraction
        n_parts = max(2, min(n_rows, round(1 / share)))
        n_splits = int(np.clip(np.ceil(HELD_OUT * n_parts / max(1, n_rows)), 1, min(MOST_SPLITS, n_parts)))
        sequence = np.random.default_rng(self._options.random_state).permutation(n_rows)
        if strata is not None:
            sequence = sequence[np.argsort(strata[sequence], kind="stable")]
        part = np.empty(n_rows, dtype=np.int64)
        part[sequence] = np.arange(n_rows) % n_parts
        return [(part == each) & (self._sample_weight > 0) for each in range(n_splits)]

    @one_blas_thread
    def fit(self) -> Additive:
        """Choose the linear model and the number of steps on held-out samples, then fit on all samples."""
        linear = self._choose_linear()
        steps = [_Step(self._losses(), self._states(), FIRST_PENALTY, 0, np.inf)]
        history: list[StepReport] = []
        boosted = None if self._tree_columns is None else self._start_trees(self._tree_columns)
        if self._options.degree > 1:
            self._follow(steps, history, boosted)
        chosen = self._choose(steps)
        if boosted is not None:
            boosted.grow(MOST_ROUNDS, self._mean(steps[chosen].losses), self._is_late)
            report(f"boosted trees: {boosted.n_rounds} rounds, held-out loss {boosted.loss:.5f}")
        self._set_states(steps[chosen].states)
        if chosen:
            linear = self._choose_linear_again(steps[chosen], linear)
        share = self._choose_share(boosted) if boosted is not None else 0.0
        final = BatchPath(
            *(self._rows, self._columns, self._chains),
            *(self._target, self._sample_weight, self._options),
        )
        if share < 1:
            self._fit_final(final, steps[: chosen + 1], linear)
        path = [PathStep(each.statistic, -self._mean(each.losses), each.n_entered) for each in steps]
        statistic = min((steps[number].statistic for number in range(1, chosen + 1)), default=np.inf)
        is_exact = all(split.is_exact for split in self._splits)
        if not is_exact:
            report("the search was not exhaustive: it left out conjunctions to save time")
        orders, weights, intercept = final.selected()
        if self._tree_columns is not None and boosted is not None and share:
            trees = BoostedTreeLeaves(self._tree_columns, self._target, self._sample_weight)
            for _ in range(boosted.n_rounds):
                trees.grow()
            orders, weights, intercept = _mix(orders, weights, intercept, trees.leaves(), share)
        orders = {
            order: np.where(each < 0, ~self._kept[~np.minimum(each, -1)], self._kept[np.maximum(each, 0)])
            for order, each in orders.items()
        }
        return Additive(orders, weights, intercept, statistic, path, history, is_exact, self._is_out_of_time)

    def _fit_final(self, final: BatchPath, steps: list[_Step], linear: int) -> None:
        """Repeat steps on all samples, with the conjunctions that were found in the splits."""
        final.fit_linear(LINEAR_PENALTIES[linear])
        for number, step in enumerate(steps[1:]):
            found = [split.batches[number] for split in self._splits if len(split.batches) > number]
            final.add_batch(join_batches(found), PENALTIES[step.penalty])
        final.finish(LINEAR_PENALTIES[linear], PENALTIES[steps[-1].penalty])

    def _start_trees(self, columns: TreeColumns) -> BoostedSplits:
        weights = [np.where(each, 0.0, self._sample_weight) for each in self._held_out]
        ensembles = [BoostedTreeLeaves(columns, self._target, each) for each in weights]
        return BoostedSplits(ensembles, lambda scores: self._mean(self._losses_of(scores)))

    def _losses(self) -> FloatArray:
        """Return the losses of the held-out samples of each split."""
        return self._losses_of([split.model.scores for split in self._splits])

    def _losses_of(self, scores: list[FloatArray]) -> FloatArray:
        """Return the losses of the held-out samples, given the scores of all samples in the first splits."""
        return np.concatenate(
            [
                self._target.losses(each)[held_out]
                for each, held_out in zip(scores, self._held_out, strict=False)
            ]
        )

    def _mean(self, losses: FloatArray) -> float:
        """Return the weighted mean of the losses of the held-out samples of the first splits."""
        weights = np.concatenate([self._sample_weight[each] for each in self._held_out])[: len(losses)]
        return float(weights @ losses / max(weights.sum(), 1e-300))

    def _error(self, losses: FloatArray) -> float:
        return float(losses.std() / np.sqrt(max(1, len(losses))))

    def _states(self) -> list[ModelState]:
        return [split.model.state() for split in self._splits]

    def _set_states(self, states: list[ModelState]) -> None:
        for split, state in zip(self._splits, states, strict=True):
            split.model.set_state(state)

    def _is_late(self) -> bool:
        if self._deadline is not None and time.monotonic() > self._deadline:
            self._is_out_of_time = True
        return self._is_out_of_time

    def _choose_linear(self) -> int:
        """Fit linear models; keep those with the best penalty and return its index.

        In the first split, the penalty decreases while the held-out loss falls. The other splits are fitted
        with the best of these penalties and its neighbours.
        """
        known: list[ModelState] = []
        best, chosen = np.inf, 0
        with task("fitting the linear model", total=len(LINEAR_PENALTIES), unit="penalties") as counted:
            for number, penalty in enumerate(LINEAR_PENALTIES):
                self._splits[0].fit_linear(penalty)
                known.append(self._splits[0].model.state())
                loss = self._mean(self._losses_of([known[-1].scores]))
                counted.advance()
                if loss < best:
                    best, chosen = loss, number
                elif number > 1:  # the first weights may be worse than none, and less shrunken ones better
                    break
                if self._is_late():
                    break
        states = self._fit_others(known, chosen)
        if len(self._splits) > 1:
            best = self._mean(self._losses())
            for direction in (1, -1):
                number = chosen + direction
                while 0 <= number < len(known) and not self._is_late():
                    others = self._fit_others(known, number)
                    if self._mean(self._losses()) >= best:
                        break
                    best, states, chosen = self._mean(self._losses()), others, number
                    number += direction
        self._set_states(states)
        return chosen

    def _fit_others(self, known: list[ModelState], number: int) -> list[ModelState]:
        """Fit all splits but the first, whose state is known, with one penalty; return the states of all."""
        self._splits[0].model.set_state(known[number])
        for split in self._splits[1:]:
            split.fit_linear(LINEAR_PENALTIES[number])
        return self._states()

    def _choose_share(self, boosted: BoostedSplits) -> float:
        """Return the share of the scores that boosted trees get; the rest is that of the current models."""
        without = self._losses()
        mixed = {
            share: self._losses_of(
                [
                    share * trees + (1 - share) * split.model.scores
                    for trees, split in zip(boosted.scores, self._splits, strict=True)
                ]
            )
            for share in SHARES
        }
        share = min(SHARES, key=lambda each: self._mean(mixed[each]))
        gain = without - mixed[share]
        least = max(SHARE_GAIN * self._error(gain), MATERIAL * boosted.first_loss)
        is_better = self._mean(gain) > least
        verdict = f"a share of {share:g} of the scores" if is_better else "not used"
        report(f"boosted trees: {verdict}, held-out loss {self._mean(mixed[share]):.5f}")
        return share if is_better else 0.0

    def _follow(self, steps: list[_Step], history: list[StepReport], boosted: BoostedSplits | None) -> None:
        """Add batches of conjunctions until early stopping, or until boosted trees are out of reach.

        The trees grow by some rounds per batch, so that the one that is ahead can end the other.
        """
        best = 0
        with task("adding conjunctions", total=self._options.max_iter, unit="steps") as counted:
            while len(steps) <= self._options.max_iter and not self._is_late():
                n_entered = [split.step(PENALTIES[steps[-1].penalty]) for split in self._splits]
                self._keep()
                counted.advance()
                if not any(n_entered):
                    break
                penalty = self._tune(steps[-1].penalty)
                statistic = min(split.batches[-1].statistic for split in self._splits if split.batches)
                step = _Step(self._losses(), self._states(), penalty, max(n_entered), statistic)
                steps.append(step)
                history.append(
                    StepReport(
                        len(steps) - 1, statistic, max(n_entered), PENALTIES[penalty], self._mean(step.losses)
                    )
                )
                report(str(history[-1]), history[-1])
                gain = steps[best].losses - step.losses
                if boosted is not None:
                    boosted.grow(self._rounds_per_step, self._mean(steps[best].losses), self._is_late)
                    behind = self._mean(step.losses) - boosted.loss
                    if behind > OUT_OF_REACH[statistic < NOISE] * max(0.0, self._mean(gain)):
                        break
                if self._mean(gain) > max(GAIN * self._error(gain), LEAST_GAIN * self._mean(step.losses)):
                    best = len(steps) - 1
                if len(steps) - 1 - best >= PATIENCE or self._mean(gain) < -LOSS * self._error(gain):
                    break

    def _keep(self) -> None:
        if self._checkpoint is not None:
            batches = [
                [[each.conjunctions, each.statistic] for each in split.batches] for split in self._splits
            ]
            self._checkpoint.save("additive", State("additive", {"batches": batches}, {}))

    def _refit(
        self, fit: Callable[[BatchPath, float], None], penalty: float, losses: FloatArray
    ) -> FloatArray | None:
        """Fit all splits with a penalty; return the losses if their mean is lower than that of earlier ones.

        If the loss of the first split is not lower, the others are not fitted.
        """
        fit(self._splits[0], penalty)
        first = self._losses_of([self._splits[0].model.scores])
        if self._mean(first) >= self._mean(losses[: len(first)]):
            return None
        for split in self._splits[1:]:
            fit(split, penalty)
        found = self._losses()
        return found if self._mean(found) < self._mean(losses) else None

    def _tune(self, penalty: int) -> int:
        """Try neighbouring penalties of conjunctions; keep the best model and return its penalty index."""
        losses, states, chosen = self._losses(), self._states(), penalty
        for direction in (1, -1):
            number = penalty + direction
            while 0 <= number < len(PENALTIES):
                found = self._refit(BatchPath.fit_conjunctions, PENALTIES[number], losses)
                if found is None:
                    break
                losses, states, chosen = found, self._states(), number
                number += direction
            self._set_states(states)
            if chosen != penalty:
                break
        return chosen

    def _choose(self, steps: list[_Step]) -> int:
        """Return the first step whose loss is close enough to the lowest.

        The difference must be at most one standard error if `one_standard_error` is set, and otherwise at
        most `GAIN` standard errors.
        """
        best = int(np.argmin([self._mean(each.losses) for each in steps]))
        allowed = 1.0 if self._options.one_standard_error else GAIN
        for number, step in enumerate(steps[:best]):
            loss = step.losses - steps[best].losses
            if self._mean(loss) <= (allowed if number else max(allowed, FIRST_GAIN)) * self._error(loss):
                return number
        return best

    def _choose_linear_again(self, step: _Step, linear: int) -> int:
        """Fit with other penalties of single columns, given the conjunctions of a step.

        Keep the best models and return the index of their penalty.
        """
        losses, states, chosen = step.losses, step.states, linear
        for number in (*range(linear - 1, max(-1, linear - 3), -1), linear + 1, 0):
            if not 0 <= number < len(LINEAR_PENALTIES) or number == chosen or self._is_late():
                continue
            self._set_states(step.states)
            found = self._refit(BatchPath.fit_linear, LINEAR_PENALTIES[number], losses)
            if found is not None:
                losses, states, chosen = found, self._states(), number
        self._set_states(states)
        return chosen


def _mix(
    orders: dict[int, IntArray],
    weights: FloatArray,
    intercept: FloatArray,
    leaves: WeightedLeaves,
    share: float,
) -> tuple[dict[int, IntArray], FloatArray, FloatArray]:
    """Return the conjunctions of a linear model and of trees, with the means of their weights.

    The weight of the trees is `share`.
    """
    names = [tuple(each) for part in orders.values() for each in part.tolist()]
    both = {name: (1 - share) * each for name, each in zip(names, weights, strict=True)}
    for name, each in leaves.weights.items():
        both[name] = both.get(name, 0.0) + share * each
    used = sorted((name for name in both if both[name].any()), key=lambda each: (len(each), each))
    found = {
        order: np.array([name for name in used if len(name) == order], dtype=np.int32)
        for order in sorted({len(name) for name in used})
    }
    values = np.array([both[name] for name in used]).reshape(len(used), len(intercept))
    return found, values, (1 - share) * intercept + share * leaves.intercept
