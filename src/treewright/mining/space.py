"""What gradient mining asks of a feature space.

A sample's outputs are `rows` of a space: the sample itself where labels are learnt, each of its candidates
where a list is ranked. A row holds basic features, and features of higher order are made of those. A feature
is present in a row or not, however often it occurs there; so it is present in no more rows than any of its
parts, which is all that the pruning rests on.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import IntArray


class Violations(NamedTuple):
    """The rows from which an iteration learns, and what each of them counts for.

    Counter 2 c is the paper's #f+ of output c, and counter 2 c + 1 its #f-. There is one output, or one for
    each class where there are more than two.

    Attributes
    ----------
    rows : ndarray of int, (n,)
        Numbers of rows of the space.
    counters : ndarray of int32, (n, 1 or 2)
        The counters that a feature present in the row adds one to.
    n_counters : int
    """

    rows: npt.NDArray[np.int64]
    counters: IntArray
    n_counters: int


class Growth(NamedTuple):
    """Features of one order that were counted above the threshold.

    Attributes
    ----------
    features : ndarray of int32, (n, width)
        A feature each row, as the space writes it: all that survive, or of these at least those whose
        gradient exceeds the threshold.
    counts : ndarray of int32, (n, n_counters)
        Those of #f+ and #f-; or less, if their difference is the same.
    n_candidates, n_instances : int
        How many features were counted to find them, and how often these were present.
    n_survivors : int
        How many were counted above the threshold.
    """

    features: IntArray
    counts: IntArray
    n_candidates: int
    n_instances: int
    n_survivors: int


class SpaceSearch(Protocol):
    """One coarse-to-fine search through a space, order by order.

    `share` is what part of the last order was counted: all of it, unless there is a limit to that.
    """

    share: float

    def grow(self) -> Iterator[Growth]:
        """Count the features of the next order and yield, in parts, those above the threshold."""

    @property
    def n_bytes(self) -> tuple[int, int]:
        """Bytes of what is kept for the next order, in memory and on disk."""

    def close(self) -> None:
        """Forget what was kept for the next order."""


class FeatureSpace(Protocol):
    """A space of features that grow from basic ones."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    def search(self, violations: Violations, threshold: float, degree: int) -> SpaceSearch:
        """Begin with the basic features of the violating rows; there is no order above `degree`."""

    def match(self, features: Sequence[IntArray]) -> csr_matrix:
        """Return where features are present: a row for each of the space, a column for each of `features`.

        `features` is a sequence of arrays, each of features of one order.
        """

    def name(self, feature: Sequence[int]) -> str:
        """Return a feature as a person would read it."""
