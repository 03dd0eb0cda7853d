"""Cost of building the trees of a boosted ensemble: on samples, and on all examples without stored features.

J. Turian and I. D. Melamed (2006), section 4.2. If the features of all examples do not fit into memory and
there is no sampling, they are extracted again for each node of a tree. This module measures how long that
takes.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, Integers
from treewright.learn.boosting import ROUNDING, BoostedTrees, ExampleSource, TreeRecord, draw_sample
from treewright.learn.trees import TreeBuilder
from treewright.native.learn import boosting as native
from treewright.native.learn.boosting import DecisionTree, FeatureRows, SplitLimits

BLOCK = 1 << 14
"""Number of examples whose features are in memory at once."""
STEPS = {
    "sample": "sample",
    "extraction": "extraction",
    "building": "build tree",
    "percolation": "percolation",
    "updates": "leaf updates",
}


class Cost(NamedTuple):
    """Cost of a step of a training iteration: mean seconds, standard deviation, and percentage."""

    mean: float
    deviation: float
    percent: float


def profile(records: Sequence[TreeRecord]) -> dict[str, Cost]:
    """Return the cost of each training step, and of all together, for trees built on samples."""
    seconds = np.array([[*record.seconds, record.seconds.total] for record in records])
    means, deviations = seconds.mean(axis=0), seconds.std(axis=0)
    shares = 100 * means / means[-1] if means[-1] > 0 else np.zeros(len(means))
    columns = zip(means.tolist(), deviations.tolist(), shares.tolist(), strict=True)
    return {name: Cost(*column) for name, column in zip((*STEPS, "total"), columns, strict=True)}


class Target(NamedTuple):
    """The target of a tree: signed weights of all examples, and the minimum gain of splits."""

    signed: FloatArray
    limits: SplitLimits

    @property
    def lightest(self) -> float:
        """Features whose examples have at most this total weight are ignored."""
        return min(self.limits.least, (self.limits.least + self.limits.penalty) / 2)


def next_target(ensemble: BoostedTrees, labels: npt.NDArray[np.int8], biases: FloatArray) -> Target:
    """Return the target of the next tree of an ensemble that has converged."""
    signed = np.zeros(len(labels))
    native.weigh(ensemble.confidences, labels, biases, signed)
    rounding = ROUNDING * float(np.abs(signed).sum())
    penalty = ensemble.eta * (ensemble.largest or 0.0)
    return Target(signed, SplitLimits(penalty, max(rounding, ensemble.min_gain * penalty), rounding))


class Sampled(NamedTuple):
    """A tree that was built on a sample, and the seconds of each step."""

    tree: DecisionTree
    sampling: float
    extraction: float
    building: float

    @property
    def seconds(self) -> float:
        """Total time of all steps."""
        return self.sampling + self.extraction + self.building


def build_sampled(
    examples: ExampleSource, target: Target, builder: TreeBuilder, *, size: int, random_state: Sequence[int]
) -> Sampled:
    """Draw a sample, extract its features and build a tree on it, as in training."""
    times = [time.thread_time()]
    sample = draw_sample(np.abs(target.signed), size, random_state=random_state)
    times.append(time.thread_time())
    rows = FeatureRows(*examples.extract(sample.numbers))
    times.append(time.thread_time())
    builder.start(rows, np.copysign(sample.weights, target.signed[sample.numbers]), target.lightest)
    tree = builder.build(target.limits)
    times.append(time.thread_time())
    return Sampled(tree, *np.diff(times).tolist())


class Uncached(NamedTuple):
    """A tree that was built on all examples without stored features.

    Attributes
    ----------
    tree : DecisionTree
        The tree.
    n_extracted : int
        Number of times that the features of an example were extracted, summed over examples.
    extraction, building : float
        Seconds of feature extraction, and of everything else.
    is_whole : bool
        Whether the tree is complete; otherwise the time limit was reached, and pending nodes became leaves.
    """

    tree: DecisionTree
    n_extracted: int
    extraction: float
    building: float
    is_whole: bool

    @property
    def seconds(self) -> float:
        """Total time of all steps."""
        return self.extraction + self.building


class _Waiting(NamedTuple):
    """A node that may be split: its index, its examples and their gradient for each feature."""

    node: int
    numbers: Integers
    sums: FloatArray


class UncachedBuilder:
    """Builds a tree on all examples, and extracts their features again for each node that is split.

    It finds the same tree as `TreeBuilder`. One pass over the examples of a node partitions them and sums the
    gradients of both sides, so an example is extracted once for the root, and once for each split above it.

    Parameters
    ----------
    examples : ExampleSource
        The examples.
    target : Target
        The target of the tree.
    most_seconds : float
        Time limit after which no further node is split.
    """

    def __init__(
        self, examples: ExampleSource, target: Target, *, most_seconds: float = float("inf")
    ) -> None:
        self._examples = examples
        self._signed, self._limits = target
        self._lightest = target.lightest
        self._most_seconds = most_seconds

    def build(self) -> Uncached:
        """Build the tree."""
        begin = time.thread_time()
        self._extraction, self._n_extracted, is_whole = 0.0, 0, True
        links = [[-1, -1, -1]]
        waiting = [self._start()]
        while waiting:
            parent = waiting.pop()
            feature = self._choose(parent)
            if feature < 0:
                continue
            if time.thread_time() - begin > self._most_seconds:
                is_whole = False
                break
            present, absent = self._split(parent, feature, len(links))
            if not len(present.numbers) or not len(absent.numbers):
                continue
            links[parent.node] = [feature, present.node, absent.node]
            links += [[-1, -1, -1], [-1, -1, -1]]
            # The smaller side is next, as with stored features, so that nodes have the same indices.
            is_smaller = len(present.numbers) <= len(absent.numbers)
            waiting += [absent, present] if is_smaller else [present, absent]
        features, presents, absents = np.array(links, dtype=np.int32).T.copy()
        nodes = DecisionTree(features, presents, absents, np.zeros(len(links)))
        building = time.thread_time() - begin - self._extraction
        return Uncached(nodes, self._n_extracted, self._extraction, building, is_whole)

    def _start(self) -> _Waiting:
        """Return the root, and find the features that are frequent enough to be considered."""
        sums, masses = np.zeros((2, self._examples.n_features))
        numbers = np.arange(self._examples.n_examples)
        for begin in range(0, len(numbers), BLOCK):
            chosen = numbers[begin : begin + BLOCK]
            rows = self._extract(chosen)
            native.add_gradients(rows, self._signed[chosen], sums)
            native.add_gradients(rows, np.abs(self._signed[chosen]), masses)
        self._heavy = np.flatnonzero(masses > self._lightest)
        return _Waiting(0, numbers, sums)

    def _extract(self, numbers: Integers) -> FeatureRows:
        begin = time.thread_time()
        rows = FeatureRows(*self._examples.extract(numbers))
        self._extraction += time.thread_time() - begin
        self._n_extracted += len(numbers)
        return rows

    def _choose(self, at: _Waiting) -> int:
        """Return the feature with the largest gain (the smallest index among ties), or -1 for none."""
        penalty = self._limits.penalty
        least = self._limits.least if at.node else self._limits.rounding
        weights = self._signed[at.numbers]
        positive, negative = float(weights[weights > 0].sum()), float(-weights[weights < 0].sum())
        total = positive - negative
        wanted = max(0.0, abs(total) - penalty) + least
        if not len(self._heavy) or max(0.0, positive - penalty) + max(0.0, negative - penalty) <= wanted:
            return -1
        parts = at.sums[self._heavy]
        gains = np.maximum(0, np.abs(parts) - penalty) + np.maximum(0, np.abs(total - parts) - penalty)
        best = int(gains.argmax())
        return int(self._heavy[best]) if gains[best] > wanted else -1

    def _split(self, parent: _Waiting, feature: int, node: int) -> tuple[_Waiting, _Waiting]:
        """Return the two sides of a split, with and without the feature; they have the next indices."""
        sums = np.zeros((2, self._examples.n_features))
        parts: list[npt.NDArray[np.bool_]] = []
        for begin in range(0, len(parent.numbers), BLOCK):
            chosen = parent.numbers[begin : begin + BLOCK]
            rows = self._extract(chosen)
            has = np.zeros(len(chosen), dtype=np.bool_)
            has[np.searchsorted(rows.indptr, np.flatnonzero(rows.columns == feature), side="right") - 1] = (
                True
            )
            for side, is_here in enumerate((has, ~has)):
                native.add_gradients(rows, self._signed[chosen] * is_here, sums[side])
            parts.append(has)
        is_present = np.concatenate(parts)
        return (
            _Waiting(node, parent.numbers[is_present], sums[0]),
            _Waiting(node + 1, parent.numbers[~is_present], sums[1]),
        )


def example_bytes(n_examples: int, *holders: object) -> int:
    """Return the total bytes of the objects' arrays with one value per example; shared arrays count once."""
    arrays = [each for holder in holders for each in vars(holder).values() if isinstance(each, np.ndarray)]
    held = {each.ctypes.data: each.nbytes for each in arrays if each.shape == (n_examples,)}
    return sum(held.values())
