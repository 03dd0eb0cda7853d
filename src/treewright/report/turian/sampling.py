"""What the trees of a boosted ensemble cost, on samples and on all examples without keeping features.

J. Turian and I. D. Melamed (2006), section 4.2. Where the features of all examples do not fit into memory and
there is no sampling, they are extracted again for each node of a tree: that is done here, to be timed.
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
"""Examples whose features are held at once."""
STEPS = {
    "sample": "sample",
    "extraction": "extraction",
    "building": "build tree",
    "percolation": "percolation",
    "updates": "leaf updates",
}


class Cost(NamedTuple):
    """What a step of a training iteration takes: seconds, their standard deviation, and percent of all."""

    mean: float
    deviation: float
    percent: float


def profile(records: Sequence[TreeRecord]) -> dict[str, Cost]:
    """Return what each step of the training took, and all together, over trees that were built on samples."""
    seconds = np.array([[*record.seconds, record.seconds.total] for record in records])
    means, deviations = seconds.mean(axis=0), seconds.std(axis=0)
    shares = 100 * means / means[-1] if means[-1] > 0 else np.zeros(len(means))
    columns = zip(means.tolist(), deviations.tolist(), shares.tolist(), strict=True)
    return {name: Cost(*column) for name, column in zip((*STEPS, "total"), columns, strict=True)}


class Target(NamedTuple):
    """What a tree is built for: signed weights of all examples, and what splits must gain."""

    signed: FloatArray
    limits: SplitLimits

    @property
    def lightest(self) -> float:
        """What the examples of a feature weigh together at the most, where nobody asks for it."""
        return min(self.limits.least, (self.limits.least + self.limits.penalty) / 2)


def next_target(ensemble: BoostedTrees, labels: npt.NDArray[np.int8], biases: FloatArray) -> Target:
    """Return what the next tree of an ensemble is built for; it must have found that nothing gains now."""
    signed = np.zeros(len(labels))
    native.weigh(ensemble.confidences, labels, biases, signed)
    rounding = ROUNDING * float(np.abs(signed).sum())
    penalty = ensemble.eta * (ensemble.largest or 0.0)
    return Target(signed, SplitLimits(penalty, max(rounding, ensemble.min_gain * penalty), rounding))


class Sampled(NamedTuple):
    """A tree that was built on a sample, and the seconds of the steps that led to it."""

    tree: DecisionTree
    sampling: float
    extraction: float
    building: float

    @property
    def seconds(self) -> float:
        """All steps together."""
        return self.sampling + self.extraction + self.building


def build_sampled(
    examples: ExampleSource, target: Target, builder: TreeBuilder, *, size: int, random_state: Sequence[int]
) -> Sampled:
    """Draw a sample, extract its features and build a tree on it, as training does."""
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
    """A tree that was built on all examples without keeping features.

    Attributes
    ----------
    tree : DecisionTree
    n_extracted : int
        Examples whose features were extracted, each counted as often as it was.
    extraction, building : float
        Seconds of extracting features, and of all else.
    is_whole : bool
        Whether the tree was finished; else time was up, and nodes that waited have become leaves.
    """

    tree: DecisionTree
    n_extracted: int
    extraction: float
    building: float
    is_whole: bool

    @property
    def seconds(self) -> float:
        """All steps together."""
        return self.extraction + self.building


class _Waiting(NamedTuple):
    """A node that may be split: its number, its examples and their gradient for each feature."""

    node: int
    numbers: Integers
    sums: FloatArray


class UncachedBuilder:
    """Builds a tree on all examples, and extracts the features of those of each node that is split again.

    It finds the same tree as `TreeBuilder`. One pass over the examples of a node divides them and adds up the
    gradients of both sides, so that an example is extracted once for the root, and once for each split above
    it.

    Parameters
    ----------
    examples : ExampleSource
    target : Target
    most_seconds : float
        After which no further node is split.
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
            # The smaller side is next, as where features are kept: so nodes have the same numbers.
            is_smaller = len(present.numbers) <= len(absent.numbers)
            waiting += [absent, present] if is_smaller else [present, absent]
        features, presents, absents = np.array(links, dtype=np.int32).T.copy()
        nodes = DecisionTree(features, presents, absents, np.zeros(len(links)))
        building = time.thread_time() - begin - self._extraction
        return Uncached(nodes, self._n_extracted, self._extraction, building, is_whole)

    def _start(self) -> _Waiting:
        """Return the root, and find the features that are met often enough to be asked for."""
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
        """Return the feature whose split gains most, the smallest of equals, or -1 for none."""
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
        """Return the sides of a split, with the feature and without, which have the next numbers."""
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
    """Return the bytes of all arrays of one value an example that objects hold, each array once."""
    arrays = [each for holder in holders for each in vars(holder).values() if isinstance(each, np.ndarray)]
    held = {each.ctypes.data: each.nbytes for each in arrays if each.shape == (n_examples,)}
    return sum(held.values())
