"""Scores as ratios of counts, which can be summed over any set of sentences."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Ratio(NamedTuple):
    """A score in percent: a count multiplied by `times`, divided by the sum of other counts."""

    part: str
    wholes: tuple[str, ...]
    times: int = 1

    def score(self, names: tuple[str, ...], totals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the score of `totals`, whose last axis has these `names`; 0 if the denominator is 0."""
        part = self.times * totals[..., names.index(self.part)]
        whole = np.sum([totals[..., names.index(name)] for name in self.wholes], axis=0)
        share: npt.NDArray[np.float64] = np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
        return 100.0 * share


def percent(part: float, whole: float) -> float:
    """Return 100 part / whole; 0 if `whole` is 0."""
    return 100.0 * part / whole if whole else 0.0
