"""Progress reports of mining, and its result."""

from dataclasses import dataclass
from typing import NamedTuple

from treewright._typing import FloatArray, IntArray, Integers


class OrderReport(NamedTuple):
    """Counts of the features of one order."""

    iteration: int
    order: int
    n_candidates: int
    """Number of features that were counted."""
    n_instances: int
    """Number of occurrences of these features."""
    n_survivors: int
    """Number of features whose counts exceed the threshold."""
    n_entering: int
    """Number of features whose gradient exceeds the threshold and whose weight was zero."""
    n_bytes: int
    """Memory taken by the occurrences of the surviving features, in bytes."""
    n_bytes_on_disk: int
    share: float = 1.0
    """Fraction of the candidates that were counted; 1 unless there is a limit."""

    def __str__(self) -> str:
        return f"iteration {self.iteration}, order {self.order}: {self.n_candidates:,} conjunctions counted"


class IterationReport(NamedTuple):
    """Result of an iteration."""

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
    """A threshold that was tried, and the score of the selected features on held-out samples."""

    threshold: float
    score: float
    n_selected: int


Report = OrderReport | IterationReport


@dataclass(frozen=True)
class Mined:
    """The result of mining.

    Attributes
    ----------
    features : dict of int to ndarray of int32
        The selected features of each order, sorted, in the format of the space.
    weights : ndarray of float, (n_selected, n_outputs)
        Weights in the order of `features`.
    intercept : ndarray of float, (n_outputs,)
    objective : float
    iterations : tuple of IterationReport
    orders : tuple of OrderReport
    groups : ndarray of int, (n_selected,), optional
        If known, features with the same number are present in the same rows.
    """

    features: dict[int, IntArray]
    weights: FloatArray
    intercept: FloatArray
    objective: float
    iterations: tuple[IterationReport, ...] = ()
    orders: tuple[OrderReport, ...] = ()
    groups: Integers | None = None

    @property
    def n_selected(self) -> int:
        """Number of selected features."""
        return len(self.weights)
