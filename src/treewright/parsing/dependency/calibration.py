"""Calibration of probabilities by temperature scaling.

All scores are multiplied by the same factor before they are converted to probabilities. The factor maximises
the likelihood of the gold heads of held-out sentences.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from treewright.progress import track

LOWEST_SCALE, HIGHEST_SCALE = 0.02, 20.0
N_TRIALS = 12
GOLDEN = (np.sqrt(5) - 1) / 2


def gold_loss(marginals: Sequence[npt.NDArray[np.float64]], heads: Sequence[npt.NDArray[np.int32]]) -> float:
    """Return the mean negative log-probability of gold heads; a floor limits the loss of pruned heads."""
    chosen = [
        square[head, np.arange(1, len(head) + 1)] for square, head in zip(marginals, heads, strict=True)
    ]
    probabilities = np.concatenate(chosen) if chosen else np.ones(1)
    return float(-np.log(np.maximum(probabilities, 1e-4)).mean())


def best_scale(loss: Callable[[float], float]) -> float:
    """Find the scale with the lowest loss by golden-section search over its logarithm."""
    low, high = np.log(LOWEST_SCALE), np.log(HIGHEST_SCALE)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    loss_left, loss_right = loss(float(np.exp(left))), loss(float(np.exp(right)))
    for _ in track(range(N_TRIALS), "calibrating", unit="scales"):
        if loss_left < loss_right:
            high, right, loss_right = right, left, loss_left
            left = high - GOLDEN * (high - low)
            loss_left = loss(float(np.exp(left)))
        else:
            low, left, loss_left = left, right, loss_right
            right = low + GOLDEN * (high - low)
            loss_right = loss(float(np.exp(right)))
    return float(np.exp((low + high) / 2))
