"""The interface of feature spaces for gradient mining.

The alternatives of a sample are `rows` of a space: the sample itself if labels are learnt, or each of its
candidates if a list is ranked. A row has basic features, and features of higher order consist of these. A
feature is either present in a row or not, regardless of its count, so it is present in at most as many rows
as any of its parts. Pruning relies only on this property.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import IntArray


class Violations(NamedTuple):
    """The rows from which an iteration learns, and the counters of each.

    Counter 2 c is the paper's #f+ of output c, and counter 2 c + 1 its #f-. There is one output, or one per
    class if there are more than two.

    Attributes
    ----------
    rows : ndarray of int, (n,)
        Indices of rows of the space.
    counters : ndarray of int32, (n, 1 or 2)
        The counters that a feature in the row increments.
    n_counters : int
    """

    rows: npt.NDArray[np.int64]
    counters: IntArray
    n_counters: int


class Growth(NamedTuple):
    """Features of one order whose counts exceed the threshold.

    Attributes
    ----------
    features : ndarray of int32, (n, width)
        One feature per row, in the format of the space: all survivors, or at least those whose gradient
        exceeds the threshold.
    counts : ndarray of int32, (n, n_counters)
        Counts #f+ and #f-, or lower numbers with the same difference.
    n_candidates, n_instances : int
        Number of features that were counted, and number of their occurrences.
    n_survivors : int
        Number of features whose counts exceed the threshold.
    """

    features: IntArray
    counts: IntArray
    n_candidates: int
    n_instances: int
    n_survivors: int


class SpaceSearch(Protocol):
    """A coarse-to-fine search of a feature space, order by order.

    `share` is the fraction of the candidates of the last order that were counted: 1 unless there is a limit.
    """

    share: float

    def grow(self) -> Iterator[Growth]:
        """Count the features of the next order and yield, in parts, those above the threshold."""

    @property
    def n_bytes(self) -> tuple[int, int]:
        """Bytes of the data for the next order, in memory and on disk."""

    def close(self) -> None:
        """Delete the data for the next order."""


class FeatureSpace(Protocol):
    """A space of features that are composed of basic features."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def search(self, violations: Violations, threshold: float, degree: int) -> SpaceSearch:
        """Start a search with the basic features of the violating rows, up to order `degree`."""

    def match(self, features: Sequence[IntArray]) -> csr_matrix:
        """Return which features (columns) are present in each row of the space.

        `features` has one array of features per order.
        """

    def name(self, feature: Sequence[int]) -> str:
        """Return the name of a feature for display."""
