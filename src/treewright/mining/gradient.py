"""Gradient mining: features selected in a space that is never visited as a whole.

Qian & Liu (2015), Algorithm 1, with the proximal step in the place of line 12 and the extension of frequent
features only in that of line 17. Between two rounds of it the weights found so far can be refined by descent
on the same objective: threshold * (sum of absolute weights) + sum of losses.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._validate import check_integer, check_number
from treewright.mining.active import ActiveFeatures, soft
from treewright.mining.problem import Integers, Problem
from treewright.mining.space import FeatureSpace, IntArray, Search, Violations

FloatArray = npt.NDArray[np.float64]

PAPER_SETTINGS = {
    "max_iter": 100,
    "step": 1.0,
    "pretrain_order": 2,
    "refine": 0,
    "tolerance": 0,
    "path": False,
}
"""As in the experiments of Qian & Liu (2015)."""
APPROACH_RATIO = 0.5
PATH_RATIO = 0.7
PATH_ROUNDS = 4
"""Thresholds follow each other in these ratios, on the way to a given one and in search of the best."""
PATIENCE = 6


class OrderReport(NamedTuple):
    """How the features of one order were counted."""

    iteration: int
    order: int
    n_candidates: int
    """Features that were counted."""
    n_instances: int
    """How often they were present."""
    n_survivors: int
    """Features above the threshold."""
    n_entering: int
    """Features whose gradient is above the threshold, and whose weight was zero."""
    n_bytes: int
    """What the places of the survivors take in memory."""
    n_bytes_on_disk: int


class IterationReport(NamedTuple):
    """How an iteration ended."""

    iteration: int
    degree: int
    threshold: float
    n_violators: int
    n_entered: int
    n_selected: int
    objective: float


class PathStep(NamedTuple):
    """A threshold that was tried, and how well what was selected with it does on other samples."""

    threshold: float
    score: float
    n_selected: int


Report = OrderReport | IterationReport
Progress = Callable[[Report], None]


@dataclass(frozen=True)
class Mined:
    """What mining has found.

    Attributes
    ----------
    features : dict of int to ndarray of int32
        The selected features of each order that has any, as the space writes them, sorted.
    weights : ndarray of float, (n_selected, n_outputs)
        In the order of `features`.
    intercept : ndarray of float, (n_outputs,)
    objective : float
    iterations : tuple of IterationReport
    orders : tuple of OrderReport
    """

    features: dict[int, IntArray]
    weights: FloatArray
    intercept: FloatArray
    objective: float
    iterations: tuple[IterationReport, ...] = ()
    orders: tuple[OrderReport, ...] = ()

    @property
    def n_selected(self) -> int:
        """How many features have a weight."""
        return len(self.weights)


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
    tolerance : float
        It also ends when a round lowers the objective by less than this share, twice in a row.
    path : bool
        Whether the threshold is approached from above, halving it, with at most four rounds each: then
        features enter when nothing else explains the samples, not all at once at the beginning.
    seed : int
        Of the order in which samples are passed.
    """

    degree: int
    threshold: float
    max_iter: int = 20
    step: float | str = "auto"
    refine: int = 10
    pretrain_order: int = 0
    tolerance: float = 1e-3
    path: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, minimum=1)
        check_number("threshold", self.threshold, low=0, high=float(1 << 31))
        check_integer("max_iter", self.max_iter, minimum=1)
        check_integer("refine", self.refine)
        check_integer("pretrain_order", self.pretrain_order)
        check_number("tolerance", self.tolerance, low=0, high=1)
        check_integer("seed", self.seed)
        if self.step not in ("auto", "decreasing"):
            check_number("step", self.step, low=1e-12, high=1e12)

    def fit(self, space: FeatureSpace, problem: Problem, *, progress: Progress | None = None) -> Mined:
        """Select features.

        Parameters
        ----------
        space : FeatureSpace
        problem : Problem
            About the rows of the space.
        progress : callable, optional
            Called with an `OrderReport` after each order and an `IterationReport` after each round.
        """
        run = _Run(self, space, problem, progress)
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
        progress: Progress | None = None,
    ) -> list["PathStep"]:
        """Try thresholds from large to small, each from what was found with the one before.

        It ends above `threshold`, or when the best score is above `enough` and six thresholds in a row have
        brought no better one.

        Parameters
        ----------
        space, problem, progress
            As in `fit`.
        score : callable
            Returns how well what was mined does on other samples; more is better.
        enough : float
            A score that shows that something was learnt.
        """
        run = _Run(self, space, problem, progress)
        steps: list[PathStep] = []
        best, n_idle = -np.inf, 0
        for threshold in run.thresholds(PATH_RATIO, above=self.threshold):
            run.mine(threshold, min(self.max_iter, PATH_ROUNDS))
            mined = run.result()
            steps.append(PathStep(threshold, score(mined), mined.n_selected))
            n_idle = n_idle + 1 if steps[-1].score <= best and best > enough else 0
            best = max(best, steps[-1].score)
            if n_idle == PATIENCE:
                break
        return steps


class _Run:
    """The state of one fit."""

    def __init__(
        self,
        miner: GradientMiner,
        space: FeatureSpace,
        problem: Problem,
        progress: Progress | None,
    ) -> None:
        self._miner = miner
        self._space = space
        self._problem = problem
        self._tell = progress or (lambda report: None)
        self._active = ActiveFeatures(space, problem)
        self._threshold = miner.threshold
        self._rng = np.random.default_rng(miner.seed)
        self._iterations: list[IterationReport] = []
        self._orders: list[OrderReport] = []

    def thresholds(self, ratio: float, *, above: float) -> Iterator[float]:
        """Yield thresholds from the first that lets anything survive, down to one above a given one."""
        _, worst = self._active.assess(0)
        search = self._space.search(self._problem.violations(worst), 0)
        threshold = float(
            max((growth.counts.max(initial=0) for growth in search.grow(extend=False)), default=0)
        )
        search.close()
        while threshold > above:
            yield threshold
            threshold *= ratio

    def mine(self, threshold: float, max_iter: int) -> None:
        """Run Algorithm 1 with a threshold, at first for features of low order."""
        self._threshold = threshold
        self._active.forget_uses()
        if 0 < self._miner.pretrain_order < self._miner.degree:
            self._mine(self._miner.pretrain_order, max_iter)
        self._mine(self._miner.degree, max_iter)

    def _mine(self, degree: int, max_iter: int) -> None:
        """Run Algorithm 1 up to a degree until nothing enters, or too little is gained."""
        objective, worst = self._settle()
        tolerance, n_idle = self._miner.tolerance, 0
        for _ in range(max_iter):
            n_violators = int((worst >= 0).sum())
            n_entered = self._round(degree, worst)
            before = objective
            objective, worst = self._settle()
            self._report(degree, n_violators, n_entered, objective)
            n_idle = n_idle + 1 if objective > before * (1 - tolerance) else 0
            if n_entered == 0 or (tolerance > 0 and n_idle == 2):
                break

    def _settle(self) -> tuple[float, Integers]:
        """Refine the weights, and return the objective and the violators."""
        active, n_passes = self._active, self._miner.refine
        settled = active.refine(self._threshold, n_passes, self._rng) if n_passes else None
        active.drop_zeros()
        objective, worst = active.assess(self._threshold)
        return objective, worst if settled is None else settled

    def _report(self, degree: int, n_violators: int, n_entered: int, objective: float) -> None:
        report = IterationReport(
            len(self._iterations) + 1,
            degree,
            self._threshold,
            n_violators,
            n_entered,
            self._active.n_features,
            objective,
        )
        self._iterations.append(report)
        self._tell(report)

    def _round(self, degree: int, worst: Integers) -> int:
        """Step once along the gradient of all features, order by order; return how many entered."""
        violations = self._problem.violations(worst)
        threshold, step = self._threshold, self._step(len(violations.rows))
        entering = self._search(degree, violations)
        self._active.step(worst, step, threshold)
        features = {order: part.features for order, part in entering.items()}
        gradients = [np.zeros((0, self._problem.n_outputs)), *(part.gradient for part in entering.values())]
        weights = soft(step * np.concatenate(gradients), step * threshold)
        self._active.add(features, weights)
        return len(weights)

    def _step(self, n_rows: int) -> float:
        step = self._miner.step
        if step == "auto":
            return 1 / max(1, n_rows)
        if step == "decreasing":
            return 1 / float(np.sqrt(len(self._iterations) + 1))
        return float(step)

    def _search(self, degree: int, violations: Violations) -> dict[int, "_Entering"]:
        """Return the features of zero weight that enter, of each order that has any."""
        found = {}
        search = self._space.search(violations, self._threshold)
        try:
            for order in range(1, degree + 1):
                parts = [part for part in self._grow(search, order, degree) if len(part.features)]
                if parts:
                    features = np.concatenate([part.features for part in parts])
                    found[order] = _Entering(features, np.concatenate([part.gradient for part in parts]))
        finally:
            search.close()
        return found

    def _grow(self, search: Search, order: int, degree: int) -> Iterator["_Entering"]:
        """Count the features of one order, and yield those that enter."""
        n_candidates = n_instances = n_survivors = n_entering = 0
        for growth in search.grow(extend=order < degree):
            gradient = (growth.counts[:, ::2] - growth.counts[:, 1::2]).astype(np.float64)
            enters = np.flatnonzero(np.abs(gradient).max(axis=1, initial=0) > self._threshold)
            enters = enters[~self._active.contains(order, growth.features[enters])]
            yield _Entering(growth.features[enters], gradient[enters])
            n_candidates += growth.n_candidates
            n_instances += growth.n_instances
            n_survivors += len(growth.features)
            n_entering += len(enters)
        counts = (n_candidates, n_instances, n_survivors, n_entering)
        report = OrderReport(len(self._iterations) + 1, order, *counts, *search.n_bytes)
        self._orders.append(report)
        self._tell(report)

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


class _Entering(NamedTuple):
    """Features whose gradient exceeds the threshold."""

    features: IntArray
    gradient: FloatArray
