"""What mining tells while it works, and what it has found at the end."""

from dataclasses import dataclass
from typing import NamedTuple

from treewright._typing import FloatArray, IntArray


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
    share: float = 1.0
    """What part of the candidates was counted, where there is a limit."""

    def __str__(self) -> str:
        return f"iteration {self.iteration}, order {self.order}: {self.n_candidates:,} conjunctions counted"


class IterationReport(NamedTuple):
    """How an iteration ended."""

    iteration: int
    degree: int
    threshold: float
    n_violators: int
    n_entered: int
    n_selected: int
    objective: float

    def __str__(self) -> str:
        counted = f"{self.n_selected:,} conjunctions, {self.n_violators:,} violators"
        return f"iteration {self.iteration}: {counted}"


class PathStep(NamedTuple):
    """A threshold that was tried, and how well what was selected with it does on other samples."""

    threshold: float
    score: float
    n_selected: int


Report = OrderReport | IterationReport


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
