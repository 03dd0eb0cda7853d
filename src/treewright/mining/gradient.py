"""Gradient mining: selection of features in a space that is never enumerated.

This is Algorithm 1 of Qian & Liu (2015) with two changes: line 12 is replaced by a proximal step, and line 17
extends only frequent features. Between two rounds, the weights found so far can be refined by descent on the
same objective: threshold * (sum of absolute weights) + sum of losses.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from treewright._typing import IntArray, Integers, RandomState
from treewright._validate import check_integer, check_number, check_param, draw_seed
from treewright.checkpoint import Checkpoint
from treewright.errors import InputError
from treewright.mining.active import ActiveFeatures
from treewright.mining.memory import Memory
from treewright.mining.merged import ListSpace, MergedFeatures, can_list
from treewright.mining.problem import Problem
from treewright.mining.reports import IterationReport, Mined, OrderReport, PathStep
from treewright.mining.space import FeatureSpace, SpaceSearch, Violations
from treewright.mining.store import ArrayStore, Kept, load
from treewright.model import State
from treewright.progress import report, task

PAPER_SETTINGS = {
    "max_iter": 100,
    "step": 1.0,
    "pretrain_order": 2,
    "refine": 0,
    "tol": 0,
    "path": False,
}
"""The settings of the experiments of Qian & Liu (2015)."""
APPROACH_RATIO = 0.5
PATH_RATIO = 0.7
PATH_ROUNDS = 4
"""Ratios of successive thresholds, on the path to a given threshold and in the search for the best one, and
the maximum number of rounds per threshold."""
PATIENCE = 6
ENTERING_BYTES = 1 << 20
"""Maximum number of bytes of newly selected features in memory during a search, if memory is limited."""
SORTING = 4
"""Number of copies of the newly selected features in memory while they are sorted."""
SMALLEST_THRESHOLD = 1.0
"""Minimum threshold of a path: below it, every feature that occurs survives."""


@dataclass(frozen=True, kw_only=True)
class GradientMiner:
    """Selects features from any feature space by gradient mining (Algorithm 1 of Qian & Liu 2015).

    `ConjunctionMiner` and the rerankers use it. Use it directly for a feature space of your own.

    Parameters
    ----------
    degree : int
        Maximum order of a feature, such as the number of columns in a conjunction.
    threshold : float
        L1 threshold C: a feature is selected if |#f+ - #f-| exceeds it, where #f+ and #f- count its
        occurrences in the right and in the wrong rows of violating samples.
    max_iter : int
        Maximum number of mining rounds. Mining stops earlier when a round selects no new feature.
    step : float or {"auto", "decreasing"}
        Step size of a round: a constant (1 in the paper), 1 / sqrt(round) if "decreasing", or, if "auto",
        1 / (number of violating rows), halved until the objective does not rise.
    refine : int
        Number of passes over the samples between two rounds; they optimise the weights of selected features.
    pretrain_order : int
        Mine features up to this order first. 0 mines all orders from the start.
    tol : float
        Stop when two rounds in a row lower the objective by less than this fraction.
    path : bool
        Start with a high threshold and halve it step by step, with at most four rounds per value, down to the
        given threshold. This selects fewer features.
    random_state : int, Generator, RandomState or None
        Seed of the order in which samples are visited. With None, results differ between calls.

    See Also
    --------
    ConjunctionMiner : Mines conjunctions, with a scikit-learn interface.
    PolynomialSpace : The space of all conjunctions.
    SubtreeSpace : The space of all subtrees of dependency trees.
    label_problem : Describes a classification problem.

    Examples
    --------
    >>> space = tw.PolynomialSpace([[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5)
    >>> problem = tw.label_problem([1, 0, 0, 0] * 5, n_classes=2)
    >>> mined = tw.GradientMiner(degree=2, threshold=2).fit(space, problem)
    >>> [space.name(feature) for feature in mined.features[2]]
    ['x0 & x1']
    """

    degree: int
    threshold: float
    max_iter: int = 20
    step: float | str = "auto"
    refine: int = 10
    pretrain_order: int = 0
    tol: float = 1e-3
    path: bool = True
    random_state: RandomState = 0

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, minimum=1)
        check_number("threshold", self.threshold, low=0, high=float(1 << 31))
        check_integer("max_iter", self.max_iter, minimum=1)
        check_integer("refine", self.refine)
        check_integer("pretrain_order", self.pretrain_order)
        check_number("tol", self.tol, low=0, high=1)
        check_param("random_state", self.random_state, RandomState)
        if self.step not in ("auto", "decreasing"):
            check_number("step", self.step, low=1e-12, high=1e12)

    def fit(
        self,
        space: FeatureSpace,
        problem: Problem,
        *,
        checkpoint: Checkpoint | None = None,
    ) -> Mined:
        """Select features.

        Parameters
        ----------
        space : FeatureSpace
            The feature space to search, such as a `PolynomialSpace`.
        problem : Problem
            The samples to learn from, made by `label_problem` or `list_problem`. It must have as many rows as
            the space.
        checkpoint : Checkpoint, optional
            Checkpoint of each round, from which an interrupted run resumes.

        Returns
        -------
        Mined
            The selected features with their weights, and a report of each round.
        """
        run = MiningRun(self, space, problem, checkpoint, "mining")
        if self.path:
            for threshold in run.thresholds(APPROACH_RATIO, above=self.threshold):
                run.mine(threshold, min(self.max_iter, PATH_ROUNDS))
        run.mine(self.threshold, self.max_iter)
        mined = run.result()
        run.close()
        return mined

    def fit_path(
        self,
        space: FeatureSpace,
        problem: Problem,
        score: Callable[[Mined], float],
        *,
        enough: float = -np.inf,
        error: Callable[[float], float] = lambda score: 0.0,
        checkpoint: Checkpoint | None = None,
    ) -> list[PathStep]:
        """Try thresholds from large to small; each starts from the result of the previous threshold.

        Only thresholds above `threshold` are tried. The search stops early if the best score exceeds `enough`
        and six thresholds in a row do not improve it by a quarter of a standard error, or two in a row are
        worse by a standard error.

        Parameters
        ----------
        space : FeatureSpace
            The feature space to search, such as a `PolynomialSpace`.
        problem : Problem
            The samples to learn from, made by `label_problem` or `list_problem`. It must have as many rows as
            the space.
        score : callable
            Function that returns the score of a result on held-out samples; higher is better.
        enough : float
            A score that only a useful model reaches. The search does not stop early before the best score
            exceeds it.
        error : callable
            Function that returns the standard error of a score; 0 by default.
        checkpoint : Checkpoint, optional
            Checkpoint of each round, from which an interrupted run resumes.

        Returns
        -------
        list of PathStep
            Each threshold that was tried, with its score and its number of selected features.
        """
        run = MiningRun(self, space, problem, checkpoint, "path")
        best, n_idle, n_worse = -np.inf, 0, 0
        for number, threshold in enumerate(run.thresholds(PATH_RATIO, above=self.threshold)):
            run.mine(threshold, min(self.max_iter, PATH_ROUNDS))
            if number == len(run.steps):
                mined = run.result()
                run.steps.append(PathStep(threshold, score(mined), mined.n_selected))
            found = run.steps[number].score
            n_idle = n_idle + 1 if best > enough and found <= best + error(best) / 4 else 0
            n_worse = n_worse + 1 if n_idle and found < best - error(best) else 0
            best = found if n_idle == 0 else best
            if n_idle == PATIENCE or n_worse == 2:
                break
        run.close()
        return run.steps


class MiningRun:
    """The state of one run of Algorithm 1, with one or several thresholds.

    With a checkpoint, each round is saved under `name`, and an interrupted run resumes from it.
    """

    def __init__(
        self,
        miner: GradientMiner,
        space: FeatureSpace,
        problem: Problem,
        checkpoint: Checkpoint | None,
        name: str,
    ) -> None:
        if problem.n_rows != space.n_rows:
            raise InputError(
                f"the problem has {problem.n_rows} rows; expected {space.n_rows}, like the feature space"
            )
        self._miner = miner
        self._space = space
        self._problem = problem
        # Only some spaces have a memory limit.
        self._memory: Memory = getattr(space, "memory", None) or Memory()
        self._iterations: list[IterationReport] = []
        self._orders: list[OrderReport] = []
        self._active: ActiveFeatures | MergedFeatures
        # A search in each round finds the same features, but takes much longer.
        if miner.refine == 0 and not miner.path and miner.max_iter > 1 and can_list(space, problem):
            self._active = MergedFeatures(cast(ListSpace, space), problem, miner.threshold, miner.degree)
            self._orders += self._active.reports
        else:
            self._active = ActiveFeatures(space, problem, self._memory)
        self._threshold = miner.threshold
        self._rng = np.random.default_rng(draw_seed(miner.random_state))
        self._stage, self._position = 0, _Position()
        self._checkpoint, self._name = checkpoint, name
        self.steps: list[PathStep] = []
        state = checkpoint.load(name) if checkpoint else None
        if state is not None:
            self._resume(state)

    def _resume(self, state: State) -> None:
        """Resume from a saved round."""
        values, arrays = state.values, dict(state.arrays)
        self._position = _Position(**values["position"], worst=arrays.pop("worst").astype(np.int64))
        self._rng.bit_generator.state = values["rng"]
        self._iterations = [IterationReport(*each) for each in values["iterations"]]
        self._orders = [OrderReport(*each) for each in values["orders"]]
        self.steps = [PathStep(*each) for each in values["steps"]]
        self._active.set_arrays(arrays)

    def _save(self, checkpoint: Checkpoint) -> None:
        """Save a round for `_resume`."""
        position = self._position._asdict()
        arrays = {**self._active.get_arrays(), "worst": position.pop("worst")}
        values = {
            "position": position,
            "rng": self._rng.bit_generator.state,
            "iterations": self._iterations,
            "orders": self._orders,
            "steps": self.steps,
        }
        checkpoint.save(self._name, State("mining", values, arrays))

    def thresholds(self, ratio: float, *, above: float) -> Iterator[float]:
        """Yield decreasing thresholds greater than `above`, from the largest at which a feature survives."""
        _, worst = self._problem.assess(np.zeros((self._space.n_rows, self._problem.n_outputs)))
        search = self._space.search(self._problem.violations(worst), 0, 1)
        highest = [int(growth.counts.max(initial=0)) for growth in search.grow()]
        search.close()
        threshold = float(max(highest, default=0))
        while threshold > max(above, SMALLEST_THRESHOLD):
            yield threshold
            threshold *= ratio

    def mine(self, threshold: float, max_iter: int) -> None:
        """Run Algorithm 1 with a threshold, first for features of low order if requested."""
        self._threshold = threshold
        if 0 < self._miner.pretrain_order < self._miner.degree:
            self._mine(self._miner.pretrain_order, max_iter)
        self._mine(self._miner.degree, max_iter)

    def _mine(self, degree: int, max_iter: int) -> None:
        """Run Algorithm 1 up to a degree until no new feature is selected or the gain is too small."""
        self._stage += 1
        if self._position.stage > self._stage:
            return
        if self._position.stage < self._stage:
            self._active.forget_uses()
            self._position = _Position(self._stage, 0, 0, False, *self._settle())
        what, n_left = f"mining, threshold {self._threshold:.4g}", max_iter - self._position.n_rounds
        with task(what, total=n_left, unit="rounds") as counted:
            while self._position.n_rounds < max_iter and not self._position.is_over:
                self._step_on(degree)
                counted.advance()

    def _step_on(self, degree: int) -> None:
        """Do one round, and report and save its result."""
        stage, n_rounds, n_idle, _, before, worst = self._position
        n_entered = self._round(degree, worst, before)
        objective, settled = self._settle()
        n_idle = n_idle + 1 if objective > before * (1 - self._miner.tol) else 0
        is_over = n_entered == 0 or (self._miner.tol > 0 and n_idle == 2)
        self._position = _Position(stage, n_rounds + 1, n_idle, is_over, objective, settled)
        found = IterationReport(
            len(self._iterations) + 1,
            degree,
            self._threshold,
            int((worst >= 0).sum()),
            n_entered,
            self._active.n_features,
            objective,
        )
        self._iterations.append(found)
        report(str(found), found)
        if self._checkpoint is not None:
            self._save(self._checkpoint)

    def _settle(self) -> tuple[float, Integers]:
        """Refine the weights, and return the objective and the violators."""
        active, n_passes = self._active, self._miner.refine
        settled = None
        if n_passes and isinstance(active, ActiveFeatures):
            settled = active.refine(self._threshold, n_passes, self._rng)
        active.drop_zeros()
        objective, worst = active.assess(self._threshold)
        return objective, worst if settled is None else settled

    def _round(self, degree: int, worst: Integers, objective: float) -> int:
        """Take one gradient step for all features, order by order; return the number of new features."""
        violations, threshold = self._problem.violations(worst), self._threshold
        highest = np.inf
        if self._miner.step == "auto":
            highest = objective
            step = 1 / max(1, len(violations.rows))
        elif self._miner.step == "decreasing":
            step = 1 / float(np.sqrt(len(self._iterations) + 1))
        else:
            step = float(self._miner.step)
        if isinstance(self._active, MergedFeatures):
            return self._active.step(worst, step, threshold, degree, highest)
        entering = self._search(degree, violations)
        self._active.add(entering)
        self._memory.hold("entering", 0)
        self._active.step(worst, step, threshold, highest)
        return sum(len(features) for features in entering.values())

    def _search(self, degree: int, violations: Violations) -> dict[int, IntArray]:
        """Return the newly selected features, by order."""
        store = ArrayStore(ENTERING_BYTES if self._memory.is_limited else None)
        self._memory.hold("entering", ENTERING_BYTES)
        search = self._space.search(violations, self._threshold, degree)
        kept: dict[int, list[Kept]] = {}
        try:
            for order in range(1, degree + 1):
                kept[order] = [
                    store.keep(features) for features in self._grow(search, order) if len(features)
                ]
                if self._orders[-1].n_survivors == 0:
                    break
            search.close()
            self._memory.trim()
            n_bytes = SORTING * (store.n_bytes + store.n_bytes_on_disk)
            self._memory.require("newly selected features", max(0, n_bytes - ENTERING_BYTES))
            self._memory.hold("entering", n_bytes)
            return {order: _sort(parts) for order, parts in kept.items() if parts}
        finally:
            search.close()
            store.close()

    def _grow(self, search: SpaceSearch, order: int) -> Iterator[IntArray]:
        """Count the features of one order, and yield the newly selected ones."""
        active = cast(ActiveFeatures, self._active)
        n_candidates = n_instances = n_survivors = n_entering = 0
        for growth in search.grow():
            gradient = (growth.counts[:, ::2] - growth.counts[:, 1::2]).astype(np.float64)
            enters = np.flatnonzero(np.abs(gradient).max(axis=1, initial=0) > self._threshold)
            enters = enters[~active.contains(order, growth.features[enters])]
            yield growth.features[enters]
            n_candidates += growth.n_candidates
            n_instances += growth.n_instances
            n_survivors += growth.n_survivors
            n_entering += len(enters)
        counts = (n_candidates, n_instances, n_survivors, n_entering)
        found = OrderReport(len(self._iterations) + 1, order, *counts, *search.n_bytes, search.share)
        self._orders.append(found)
        report(str(found), found)

    def close(self) -> None:
        """Delete the features that were found but not selected."""
        if isinstance(self._active, MergedFeatures):
            self._active.close()

    def result(self) -> Mined:
        """Return the selected features and the history."""
        groups = None
        if isinstance(self._active, MergedFeatures):
            features, weights, groups = self._active.sorted_groups()
        else:
            features, weights = self._active.sorted_features()
        return Mined(
            features,
            weights,
            self._active.intercept,
            self._active.assess(self._threshold)[0],
            tuple(self._iterations),
            tuple(self._orders),
            groups,
        )


class _Position(NamedTuple):
    """The position of a run: the stage, its number of rounds, and the violators."""

    stage: int = 0
    n_rounds: int = 0
    n_idle: int = 0
    is_over: bool = True
    objective: float = 0.0
    worst: Integers = np.zeros(0, dtype=np.int64)


def _sort(kept: Sequence[Kept]) -> IntArray:
    """Return the sorted features of several stored parts."""
    features = np.concatenate([load(part) for part in kept])
    return features[np.lexsort(features.T[::-1])]
