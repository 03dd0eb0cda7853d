"""Platt scaling: probabilities from decision values (Platt 1999, as corrected by Lin, Lin & Weng 2007)."""

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, Integers
from treewright.scale import one_blas_thread

MAX_STEPS = 100
SMALLEST_GRADIENT = 1e-8
SMALLEST_STEP = 1e-10
RIDGE = 1e-12


@one_blas_thread
def fit_sigmoid(decisions: FloatArray, is_positive: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return the slope and offset of the sigmoid that maps decision values to probabilities.

    They are found by Newton's method. The targets 0 and 1 are smoothed with a uniform prior.
    """
    n_positive = int(is_positive.sum())
    n_negative = len(is_positive) - n_positive
    targets = np.where(is_positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    point = np.array([0.0, np.log((n_positive + 1) / (n_negative + 1))])
    design = np.column_stack([decisions, np.ones_like(decisions)])
    loss = _log_loss(design @ point, targets)
    for _ in range(MAX_STEPS):
        probabilities = apply_sigmoid(decisions, *point)
        gradient = design.T @ (probabilities - targets)
        if np.abs(gradient).max() < SMALLEST_GRADIENT * len(decisions):
            break
        curvature = (design * (probabilities * (1 - probabilities))[:, np.newaxis]).T @ design
        direction = -np.linalg.solve(curvature + RIDGE * np.eye(2), gradient)
        step = 1.0
        while step >= SMALLEST_STEP:
            trial = _log_loss(design @ (point + step * direction), targets)
            if trial < loss + 1e-4 * step * float(gradient @ direction):
                break
            step /= 2
        else:
            break
        point, loss = point + step * direction, trial
    return float(point[0]), float(point[1])


def apply_sigmoid(decisions: FloatArray, slope: FloatArray | float, offset: FloatArray | float) -> FloatArray:
    """Return 1 / (1 + exp(-slope * decision - offset))."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -(slope * decisions + offset))), dtype=np.float64)


def _log_loss(logits: FloatArray, targets: FloatArray) -> float:
    return float(np.sum(np.logaddexp(0.0, logits) - targets * logits))


def deal_folds(labels: Integers, n_folds: int, *, random_state: int) -> Integers:
    """Return the fold of each example; folds are stratified by label."""
    order = np.random.default_rng(random_state).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    folds = np.empty(len(labels), dtype=np.int64)
    folds[order] = np.arange(len(labels)) % n_folds
    return folds
