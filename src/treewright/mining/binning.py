"""Supervised binning: intervals of numbers, found by recursive splitting.

A split raises the log-likelihood of the target. For classes, the gain is the information gain (Fayyad & Irani
1993); for numbers, it is the explained sum of squares divided by twice the variance. The interval with the
largest gain is split first. The gain must exceed the description length of the split: half the logarithm of
the number of samples for each added parameter, plus the logarithm of the number of candidate cuts. At most
`MAX_CANDIDATES` candidate cuts, at equal frequency, are tried, so most of the time for a column is spent on
sorting it.
"""

import heapq
import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from treewright._typing import Booleans, FloatArray, Integers

MAX_CANDIDATES = 255
"""Maximum number of candidate cuts of a column."""
MOST_DIGITS = 18
"""Maximum number of digits of a cut."""


class Interval(NamedTuple):
    """The numbers from `low` (included) to `high` (excluded); both bounds may be infinite."""

    low: float
    high: float


@dataclass(frozen=True)
class ClassesToSplit:
    """Class labels of samples, as integers."""

    labels: Integers
    n_classes: int

    def take(self, kept: Booleans) -> "ClassesToSplit":
        """Return the target of some samples."""
        return ClassesToSplit(self.labels[kept], self.n_classes)

    def count(self, bins: Integers, n_bins: int) -> FloatArray:
        """Return the number of samples of each class in each bin."""
        counts = np.bincount(bins * self.n_classes + self.labels, minlength=n_bins * self.n_classes)
        return counts.reshape(n_bins, self.n_classes).astype(np.float64)

    @staticmethod
    def fit(sums: FloatArray) -> FloatArray:
        """Return the maximum log-likelihood for rows of class counts."""
        found: FloatArray = _x_log_x(sums).sum(axis=1) - _x_log_x(sums.sum(axis=1))
        return found

    @staticmethod
    def count_parameters(sums: FloatArray) -> int:
        """Return the number of free class probabilities."""
        return max(1, int(np.count_nonzero(sums)) - 1)


@dataclass(frozen=True)
class NumbersToSplit:
    """Numeric targets of samples; their scale does not matter."""

    numbers: FloatArray

    def take(self, kept: Booleans) -> "NumbersToSplit":
        """Return the target of some samples."""
        return NumbersToSplit(self.numbers[kept])

    def count(self, bins: Integers, n_bins: int) -> FloatArray:
        """Return the number of samples of each bin and the sum of their standardised targets."""
        centred = self.numbers - self.numbers.mean()
        scale = float(centred.std())
        weights = centred / scale if scale > 0 else np.zeros_like(centred)
        counts = [np.bincount(bins, minlength=n_bins), np.bincount(bins, weights=weights, minlength=n_bins)]
        return np.stack(counts, axis=1).astype(np.float64)

    @staticmethod
    def fit(sums: FloatArray) -> FloatArray:
        """Return the maximum log-likelihood up to a constant."""
        found: FloatArray = sums[:, 1] ** 2 / np.maximum(sums[:, 0], 1.0) / 2
        return found

    @staticmethod
    def count_parameters(sums: FloatArray) -> int:
        """Return the number of parameters: 1, the mean."""
        return 1


SplitTarget: TypeAlias = ClassesToSplit | NumbersToSplit


def split_range(
    values: FloatArray, target: SplitTarget | None, *, max_bins: int, min_bins: int, min_count: int
) -> list[Interval]:
    """Split the range of a column.

    Parameters
    ----------
    values : ndarray of float, (n_samples,)
        Finite numbers.
    target : ClassesToSplit, NumbersToSplit or None
        If None, all intervals get the same number of samples.
    max_bins : int
        Maximum number of intervals.
    min_bins : int
        Minimum number of intervals. If the target yields fewer, intervals with the most samples are halved,
        because a column may be informative only together with others.
    min_count : int
        Minimum number of samples in an interval.

    Returns
    -------
    list of Interval
        All intervals of the tree of splits, parents first; the first is the whole range.
    """
    places, before = _candidate_cuts(values)
    bins = np.searchsorted(places, values, side="right")
    counts = np.bincount(bins, minlength=len(places) + 1)
    nodes = [(0, len(counts))]
    if target is not None:
        nodes = _grow(
            _RangeSplitter(counts, min_count, target, target.count(bins, len(counts))), nodes, max_bins
        )
    n_bins = max_bins if target is None else min(min_bins, max_bins)
    nodes = _grow(_RangeSplitter(counts, min_count), nodes, n_bins)
    edges = {0: -math.inf, len(counts): math.inf}
    for each in {place for node in nodes for place in node} - set(edges):
        edges[each] = round_between(float(before[each - 1]), float(places[each - 1]))
    return [Interval(edges[begin], edges[end]) for begin, end in nodes]


def _candidate_cuts(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return candidate cuts, and the sample values directly below them.

    If there are too many candidates, cuts at equal frequency are chosen.
    """
    ordered = np.sort(values)
    starts = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1
    if len(starts) > MAX_CANDIDATES:
        ranks = np.arange(1, MAX_CANDIDATES + 1) * len(ordered) / (MAX_CANDIDATES + 1)
        starts = np.unique(starts[np.minimum(np.searchsorted(starts, ranks), len(starts) - 1)])
    return ordered[starts], ordered[starts - 1]


def round_between(low: float, high: float) -> float:
    """Return a round number above `low` and at most `high`: a multiple of the largest possible power of ten.

    Examples
    --------
    >>> round_between(0, 1), round_between(29, 35), round_between(4.5, 4.6), round_between(-0.5, 1.2)
    (1.0, 30.0, 4.6, 0.0)
    """
    if low < 0 <= high:
        return 0.0
    if high / 2 - low / 2 < 1e-290:
        return float(high)
    middle, widest = low / 2 + high / 2, math.floor(math.log10(high / 2 - low / 2)) + 1
    for exponent in range(min(widest, 300), widest - MOST_DIGITS, -1):
        step = float(f"1e{exponent}")
        nearest = round(middle / step)
        for multiple in (nearest, nearest + 1, nearest - 1):
            found = float(f"{multiple}e{exponent}")
            if low < found <= high:
                return found
    return float(high)


def _grow(splitter: "_RangeSplitter", nodes: list[tuple[int, int]], max_leaves: int) -> list[tuple[int, int]]:
    """Split the leaves of a tree of ranges, largest gain first; return the grown tree."""
    places = sorted({place for node in nodes for place in node})
    leaves = [(begin, end) for begin, end in nodes if places.index(end) - places.index(begin) == 1]
    waiting: list[tuple[float, int, int, int]] = []

    def wait(begin: int, end: int) -> None:
        gain, at = splitter.best_split(begin, end)
        if gain > 0:
            heapq.heappush(waiting, (-gain, begin, end, at))

    for leaf in leaves:
        wait(*leaf)
    nodes, n_leaves = list(nodes), len(leaves)
    while waiting and n_leaves < max_leaves:
        _, begin, end, at = heapq.heappop(waiting)
        for half in ((begin, at), (at, end)):
            nodes.append(half)
            wait(*half)
        n_leaves += 1
    return nodes


class _RangeSplitter:
    """Finds the best split of a range of narrow bins, whose counts are computed once."""

    def __init__(
        self,
        counts: Integers,
        min_count: int,
        target: SplitTarget | None = None,
        sums: FloatArray | None = None,
    ) -> None:
        self.counts = np.concatenate([[0], np.cumsum(counts)])
        self.min_count = min_count
        self.target = target
        if sums is not None:
            self.sums = np.concatenate([np.zeros((1, sums.shape[1])), np.cumsum(sums, axis=0)])

    def best_split(self, begin: int, end: int) -> tuple[float, int]:
        """Return the gain of the best split minus its cost (0 if no split is possible), and its position.

        Without a target, ranges are halved, and the gain grows with the number of samples.
        """
        at = np.arange(begin + 1, end)
        left = self.counts[at] - self.counts[begin]
        right = self.counts[end] - self.counts[at]
        at = at[(left >= self.min_count) & (right >= self.min_count)]
        if len(at) == 0:
            return 0.0, begin
        n = int(self.counts[end] - self.counts[begin])
        if self.target is None:
            uneven = np.abs(2 * (self.counts[at] - self.counts[begin]) - n)
            best = int(uneven.argmin())
            return float(n - uneven[best] / 2), int(at[best])
        whole = self.sums[end] - self.sums[begin]
        lefts = self.sums[at] - self.sums[begin]
        fit = self.target.fit
        gains = fit(lefts) + fit(whole - lefts) - fit(whole[np.newaxis])
        cost = 0.5 * self.target.count_parameters(whole) * math.log(n) + math.log(len(at))
        best = int(gains.argmax())
        return float(gains[best] - cost), int(at[best])


def _x_log_x(x: FloatArray) -> FloatArray:
    found: FloatArray = x * np.log(np.maximum(x, 1.0))
    return found
