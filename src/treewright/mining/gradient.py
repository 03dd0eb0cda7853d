"""Gradient mining: features selected in a space that is never visited as a whole.

Qian & Liu (2015), Algorithm 1, with the proximal step in the place of line 12 and the extension of frequent
features only in that of line 17. Between two rounds of it the weights found so far can be refined by descent
on the same objective: threshold * (sum of absolute weights) + sum of losses.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treewright._typing import FloatArray, IntArray, Integers
from treewright._validate import check_integer, check_number
from treewright.checkpoint import Checkpoint
from treewright.errors import InputError
from treewright.mining.active import ActiveFeatures, soft
from treewright.mining.memory import Memory
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
"""As in the experiments of Qian & Liu (2015)."""
APPROACH_RATIO = 0.5
PATH_RATIO = 0.7
PATH_ROUNDS = 4
"""Thresholds follow each other in these ratios, on the way to a given one and in search of the best."""
PATIENCE = 6
ENTERING_BYTES = 1 << 20
"""Where memory is limited, what features that enter take of it until all of them are found."""
SORTING = 4
"""How often they are in memory then."""
SMALLEST_THRESHOLD = 1.0
"""No way leads below it: there, each feature that occurs at all survives."""


@dataclass(frozen=True, kw_only=True)
class GradientMiner:
    """Selects features of any space by their gradients.

    Parameters
    ----------
    degree : int
        The highest order of features.
    threshold : float
        The strength of the L1 norm: a feature enters when |#f+ - #f-| exceeds it.
    max_iter : int
        Rounds through the space; it ends before when no feature enters.
    step : float or {"auto", "decreasing"}
        How far a round moves weights: a constant (1 in the paper), 1 / sqrt(round), or one over the number of
        violating rows.
    refine : int
        Passes over the samples between two rounds, in which the weights found so far settle.
    pretrain_order : int
        Features up to this order are mined first, alone.
    tol : float
        It also ends when a round lowers the objective by less than this share, twice in a row.
    path : bool
        Whether the threshold is approached from above, halving it, with at most four rounds each: then
        features enter when nothing else explains the samples, not all at once at the beginning.
    random_state : int
        Of the order in which samples are passed.
    """

    degree: int
    threshold: float
    max_iter: int = 20
    step: float | str = "auto"
    refine: int = 10
    pretrain_order: int = 0
    tol: float = 1e-3
    path: bool = True
    random_state: int = 0

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, minimum=1)
        check_number("threshold", self.threshold, low=0, high=float(1 << 31))
        check_integer("max_iter", self.max_iter, minimum=1)
        check_integer("refine", self.refine)
        check_integer("pretrain_order", self.pretrain_order)
        check_number("tol", self.tol, low=0, high=1)
        check_integer("random_state", self.random_state)
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
        problem : Problem
            About the rows of the space.
        checkpoint : Checkpoint, optional
            Where each round is kept, and from where one goes on.
        """
        run = MiningRun(self, space, problem, checkpoint, "mining")
        if self.path:
            for threshold in run.thresholds(APPROACH_RATIO, above=self.threshold):
                run.mine(threshold, min(self.max_iter, PATH_ROUNDS))
        run.mine(self.threshold, self.max_iter)
        return run.result()

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
        """Try thresholds from large to small, each from what was found with the one before.

        It ends above `threshold`, or when the best score is above `enough` and six thresholds in a row were
        no better (by a quarter of a standard error), or two were worse (by a whole one).

        Parameters
        ----------
        space, problem, checkpoint
            As in `fit`.
        score : callable
            Returns how well what was mined does on other samples; more is better.
        enough : float
            A score that shows that something was learnt.
        error : callable
            Returns the standard error of a score.
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
        return run.steps


class MiningRun:
    """The state of one run of Algorithm 1, over one threshold or several.

    Each round is kept under a name in a checkpoint, if there is one, and goes on from there.
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
                f"the problem is about {problem.n_rows} rows; expected {space.n_rows}, as the space has"
            )
        self._miner = miner
        self._space = space
        self._problem = problem
        # Only some spaces have a limit to memory.
        self._memory: Memory = getattr(space, "memory", None) or Memory()
        self._active = ActiveFeatures(space, problem, self._memory)
        self._threshold = miner.threshold
        self._rng = np.random.default_rng(miner.random_state)
        self._iterations: list[IterationReport] = []
        self._orders: list[OrderReport] = []
        self._stage, self._position = 0, _Position()
        self._checkpoint, self._name = checkpoint, name
        self.steps: list[PathStep] = []
        state = checkpoint.load(name) if checkpoint else None
        if state is not None:
            self._resume(state)

    def _resume(self, state: State) -> None:
        """Go on from a round that was kept."""
        values, arrays = state.values, dict(state.arrays)
        self._position = _Position(**values["position"], worst=arrays.pop("worst").astype(np.int64))
        self._rng.bit_generator.state = values["rng"]
        self._iterations = [IterationReport(*each) for each in values["iterations"]]
        self._orders = [OrderReport(*each) for each in values["orders"]]
        self.steps = [PathStep(*each) for each in values["steps"]]
        self._active.set_arrays(arrays)

    def _save(self, checkpoint: Checkpoint) -> None:
        """Keep a round, for `_resume`."""
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
        """Yield thresholds from the first that lets anything survive, down to one above a given one."""
        _, worst = self._problem.assess(np.zeros((self._space.n_rows, self._problem.n_outputs)))
        search = self._space.search(self._problem.violations(worst), 0, 1)
        highest = [int(growth.counts.max(initial=0)) for growth in search.grow()]
        search.close()
        threshold = float(max(highest, default=0))
        while threshold > max(above, SMALLEST_THRESHOLD):
            yield threshold
            threshold *= ratio

    def mine(self, threshold: float, max_iter: int) -> None:
        """Run Algorithm 1 with a threshold, at first for features of low order."""
        self._threshold = threshold
        if 0 < self._miner.pretrain_order < self._miner.degree:
            self._mine(self._miner.pretrain_order, max_iter)
        self._mine(self._miner.degree, max_iter)

    def _mine(self, degree: int, max_iter: int) -> None:
        """Run Algorithm 1 up to a degree until nothing enters, or too little is gained."""
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
        """Take one round, and tell and keep where it leads."""
        stage, n_rounds, n_idle, _, before, worst = self._position
        n_entered = self._round(degree, worst)
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
        settled = active.refine(self._threshold, n_passes, self._rng) if n_passes else None
        active.drop_zeros()
        objective, worst = active.assess(self._threshold)
        return objective, worst if settled is None else settled

    def _round(self, degree: int, worst: Integers) -> int:
        """Step once along the gradient of all features, order by order; return how many entered."""
        violations, threshold = self._problem.violations(worst), self._threshold
        if self._miner.step == "auto":
            step = 1 / max(1, len(violations.rows))
        elif self._miner.step == "decreasing":
            step = 1 / float(np.sqrt(len(self._iterations) + 1))
        else:
            step = float(self._miner.step)
        entering = self._search(degree, violations)
        self._active.step(worst, step, threshold)
        features = {order: part.features for order, part in entering.items()}
        gradients = [np.zeros((0, self._problem.n_outputs)), *(part.gradient for part in entering.values())]
        weights = soft(step * np.concatenate(gradients), step * threshold)
        self._active.add(features, weights)
        self._memory.hold("entering", 0)
        return len(weights)

    def _search(self, degree: int, violations: Violations) -> dict[int, "_Entering"]:
        """Return the features of zero weight that enter, of each order that has any."""
        store = ArrayStore(ENTERING_BYTES if self._memory.is_limited else None)
        self._memory.hold("entering", ENTERING_BYTES)
        search = self._space.search(violations, self._threshold, degree)
        kept: dict[int, list[tuple[Kept, Kept]]] = {}
        try:
            for order in range(1, degree + 1):
                parts = (part for part in self._grow(search, order) if len(part.features))
                kept[order] = [(store.keep(features), store.keep(gradient)) for features, gradient in parts]
                if self._orders[-1].n_survivors == 0:
                    break
            search.close()
            self._memory.trim()
            n_bytes = SORTING * (store.n_bytes + store.n_bytes_on_disk)
            self._memory.require("features that enter", max(0, n_bytes - ENTERING_BYTES))
            self._memory.hold("entering", n_bytes)
            return {order: _sort(parts) for order, parts in kept.items() if parts}
        finally:
            search.close()
            store.close()

    def _grow(self, search: SpaceSearch, order: int) -> Iterator["_Entering"]:
        """Count the features of one order, and yield those that enter."""
        n_candidates = n_instances = n_survivors = n_entering = 0
        for growth in search.grow():
            gradient = (growth.counts[:, ::2] - growth.counts[:, 1::2]).astype(np.float64)
            enters = np.flatnonzero(np.abs(gradient).max(axis=1, initial=0) > self._threshold)
            enters = enters[~self._active.contains(order, growth.features[enters])]
            yield _Entering(growth.features[enters], gradient[enters])
            n_candidates += growth.n_candidates
            n_instances += growth.n_instances
            n_survivors += growth.n_survivors
            n_entering += len(enters)
        counts = (n_candidates, n_instances, n_survivors, n_entering)
        found = OrderReport(len(self._iterations) + 1, order, *counts, *search.n_bytes, search.share)
        self._orders.append(found)
        report(str(found), found)

    def result(self) -> Mined:
        """Return what was found."""
        features, weights = self._active.sorted_features()
        return Mined(
            features,
            weights,
            self._active.intercept,
            self._active.assess(self._threshold)[0],
            tuple(self._iterations),
            tuple(self._orders),
        )


class _Position(NamedTuple):
    """Where a run is: in which stage, after how many rounds of it, and with what violators."""

    stage: int = 0
    n_rounds: int = 0
    n_idle: int = 0
    is_over: bool = True
    objective: float = 0.0
    worst: Integers = np.zeros(0, dtype=np.int64)


class _Entering(NamedTuple):
    """Features whose gradient exceeds the threshold."""

    features: IntArray
    gradient: FloatArray


def _sort(kept: Sequence[tuple[Kept, Kept]]) -> _Entering:
    """Return features that were kept in parts, sorted."""
    features = np.concatenate([load(part) for part, _ in kept])
    gradient = np.concatenate([load(part) for _, part in kept])
    sequence = np.lexsort(features.T[::-1])
    return _Entering(features[sequence], gradient[sequence])
