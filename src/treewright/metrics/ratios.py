"""Scores as ratios of summed counts, so that any set of sentences can be scored by adding up."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Ratio(NamedTuple):
    """A score in percent: `times` one count, over the sum of others."""

    part: str
    wholes: tuple[str, ...]
    times: int = 1

    def score(self, names: tuple[str, ...], totals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Score `totals`, whose last axis is named by `names`; 0 where there is nothing to divide by."""
        part = self.times * totals[..., names.index(self.part)]
        whole = np.sum([totals[..., names.index(name)] for name in self.wholes], axis=0)
        share: npt.NDArray[np.float64] = np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
        return 100.0 * share


def percent(part: float, whole: float) -> float:
    """Return 100 part / whole, and 0 where there is nothing."""
    return 100.0 * part / whole if whole else 0.0
