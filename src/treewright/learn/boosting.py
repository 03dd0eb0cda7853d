"""Boosted decision trees under an L1 penalty that is lowered step by step.

J. Turian and I. D. Melamed (2006), Computational challenges in parsing by classification; equations and
steps of Listing 1 are numbered as there. Examples are drawn by priority sampling (N. Duffield, C. Lund and
M. Thorup 2005).
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray, Integers
from treewright._validate import check_choice, check_integer, check_number
from treewright.errors import InputError
from treewright.learn.trees import (
    Leaves,
    TreeBuilder,
    find_values,
    forest_arrays,
    forest_from,
    join_trees,
    make_stump,
    prune_tree,
    split_forest,
    unsplit,
)
from treewright.model import State
from treewright.native.learn import boosting as native
from treewright.native.learn.boosting import DecisionTree, FeatureRows, SplitLimits
from treewright.scale import map_slices

BLOCK = 1 << 16
"""Examples whose features are extracted at once where all of them are looked at."""
ROUNDING = 1e-10
"""What gains may differ by, as a share of all weight, and still be equal."""


class ExampleSource(Protocol):
    """Where examples come from; features are asked for as they are needed."""

    @property
    def n_examples(self) -> int:
        """How many there are."""

    @property
    def n_features(self) -> int:
        """How many atomic features there are."""

    def extract(self, numbers: Integers) -> tuple[Integers, Leaves]:
        """Return the features of some examples, given by their numbers, which ascend.

        Returns
        -------
        indptr : ndarray of int64, (len(numbers) + 1,)
            Where those of each example begin.
        columns : ndarray of int32
            Ascending within each example.
        """

    def percolate(self, tree: DecisionTree, out: Leaves) -> None:
        """Write the number of the leaf that each example falls into."""


class CsrExamples:
    """Examples that are the rows of a binary matrix.

    Parameters
    ----------
    rows : csr_matrix
        Its values are not looked at.
    n_jobs : int
        Threads for the percolation.
    """

    def __init__(self, rows: csr_matrix, *, n_jobs: int = 1) -> None:
        check_integer("n_jobs", n_jobs, minimum=1)
        rows = csr_matrix(rows)
        if not rows.has_sorted_indices:
            rows = rows.sorted_indices()
        self._rows = FeatureRows(rows.indptr.astype(np.int64), rows.indices.astype(np.int32))
        self._shape = rows.shape
        self._jobs = n_jobs

    @property
    def n_examples(self) -> int:
        """How many rows there are."""
        return int(self._shape[0])

    @property
    def n_features(self) -> int:
        """How many columns there are."""
        return int(self._shape[1])

    def extract(self, numbers: Integers) -> tuple[Integers, Leaves]:
        """Return the columns of some rows, as `ExampleSource` says."""
        if len(numbers) == self.n_examples:
            return self._rows
        begins = self._rows.indptr[numbers]
        lengths = self._rows.indptr[numbers + 1] - begins
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(indptr[-1]) + np.repeat(begins - indptr[:-1], lengths)
        return indptr, self._rows.columns[places]

    def percolate(self, tree: DecisionTree, out: Leaves) -> None:
        """Write the number of the leaf that each row falls into."""

        def fill(part: slice) -> None:
            rows = self._rows._replace(indptr=self._rows.indptr[part.start : part.stop + 1])
            wanted = np.zeros(self.n_features, dtype=np.int32)
            native.percolate(rows, tree, wanted, np.zeros(len(tree.features), np.int64), out[part])

        map_slices(fill, self.n_examples, n_jobs=self._jobs)


class Sample(NamedTuple):
    """Examples that stand for all, what each of them weighs, and the share of all weight that they lack."""

    numbers: Integers
    weights: FloatArray
    lost: float


class Seconds(NamedTuple):
    """How long each step of a tree took (Table 2)."""

    sample: float
    extraction: float
    building: float
    percolation: float
    updates: float

    @property
    def total(self) -> float:
        """The sum of all steps."""
        return sum(self)


class TreeRecord(NamedTuple):
    """How a tree was grown.

    Attributes
    ----------
    penalty : float
    n_leaves, n_nonzero : int
        Leaves that were built, and those that add something; only these are kept.
    objective : float
        Loss and penalty after the tree.
    lost : float
        The share of the weight of the examples that were not in the sample.
    seconds : Seconds
    """

    penalty: float
    n_leaves: int
    n_nonzero: int
    objective: float
    lost: float
    seconds: Seconds

    def __str__(self) -> str:
        leaves = f"{self.n_nonzero} of {self.n_leaves} leaves kept"
        return f"tree with penalty {self.penalty:.4g}: {leaves}, objective {self.objective:,.4g}"

    def as_list(self) -> list[Any]:
        """Return it as JSON can hold it."""
        return [*self[:-1], list(self.seconds)]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> Self:
        """Make it again."""
        *numbers, seconds = values
        return cls._make([*numbers, Seconds(*seconds)])


def draw_sample(weights: FloatArray, size: int, *, random_state: Sequence[int]) -> Sample:
    """Draw examples by priority; sums of their weights estimate those over all, without bias.

    Parameters
    ----------
    weights : ndarray of float
        Not below zero.
    size : int
        How many examples to draw; all are taken if there are no more.
    random_state : sequence of int
        Same seed, same sample.
    """
    n_examples = len(weights)
    if size >= n_examples:
        return Sample(np.arange(n_examples), weights, 0.0)
    uniform = 1.0 - np.random.default_rng(list(random_state)).random(n_examples)
    priorities = weights / uniform
    ranks = np.argpartition(priorities, n_examples - size - 1)
    numbers = np.sort(ranks[n_examples - size :])
    threshold = priorities[ranks[n_examples - size - 1]]
    total = float(weights.sum())
    lost = 1 - float(weights[numbers].sum()) / total if total > 0 else 0.0
    return Sample(numbers, np.maximum(weights[numbers], threshold), max(0.0, lost))


class _Clock:
    """Tells the seconds since it was last asked."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap(self) -> float:
        now = time.perf_counter()
        self._last, seconds = now, now - self._last
        return seconds


class BoostedTrees:
    """An ensemble that grows one tree at a time, under a penalty that is lowered when nothing gains.

    A caller repeats `grow` until it returns None, looks at scores on other data if it will, and goes on after
    `relax`. Each tree that counts lowers the objective; where a sample misleads, all examples are looked at.

    Parameters
    ----------
    examples : ExampleSource
    labels : array, (n_examples,)
        1 and -1.
    biases : array of float, (n_examples,), optional
        What each example counts; without them, all count 1. Neither these nor labels are copied.
    eta : float
        By which `relax` multiplies the largest penalty that allows a root to gain.
    sample_size : int, optional
        Examples on which each tree is built; without it, all.
    prune : bool
        Take back splits on the sample that do not gain over all examples, before leaves get their values; the
        paper does not. It costs next to nothing, and changes nothing where trees are built on all.
    slack : float
        A penalty is done with when no gradient at the root is larger than it by more than this share; else
        ever smaller steps would never end.
    min_gain : float
        By how much a split below the root must gain, as a share of the penalty. The paper asks for any gain;
        then trees ask for a hundred rare features where a few tell as much, and take ten times longer.
    random_state : int
        Same seed, same trees.

    Attributes
    ----------
    penalty : float
        At first infinite.
    trees : list of DecisionTree
        With their non-zero leaves and what leads to them.
    confidences : ndarray of float, (n_examples,)
        What the trees say of each example.
    records : list of TreeRecord
        How each tree was grown, also those that were not kept.
    norm : float
        The sum of the absolute values of all leaves.
    largest : float or None
        After `grow` has returned None, the largest gradient of the root and its parts, over all examples.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from treewright.learn.boosting import BoostedTrees, CsrExamples
    >>> boosted = BoostedTrees(CsrExamples(csr_matrix([[1, 0], [1, 1], [0, 1]])), [1, 1, -1])
    >>> boosted.grow() is None
    True
    >>> boosted.relax()
    0.9
    >>> boosted.grow().n_nonzero
    1
    """

    def __init__(
        self,
        examples: ExampleSource,
        labels: npt.ArrayLike,
        *,
        biases: npt.ArrayLike | None = None,
        eta: float = 0.9,
        sample_size: int | None = None,
        prune: bool = True,
        slack: float = 0.01,
        min_gain: float = 0.0,
        random_state: int = 0,
    ) -> None:
        check_number("eta", eta, low=1e-6, high=0.999)
        check_number("slack", slack, low=0, high=1)
        check_number("min_gain", min_gain, low=0, high=10)
        check_integer("random_state", random_state)
        check_choice("prune", prune, (True, False))
        if sample_size is not None:
            check_integer("sample_size", sample_size, minimum=1)
        if eta * (1 + slack) >= 1:
            raise InputError(f"eta is {eta!r} with a slack of {slack!r}; expected eta * (1 + slack) below 1")
        self.eta, self.sample_size, self.slack, self.random_state = eta, sample_size, slack, random_state
        self.prune, self.min_gain = prune, min_gain
        self._examples = examples
        self._labels, self._biases = _checked_labels(examples.n_examples, labels, biases)
        self._tolerance = 0.0
        self.penalty = np.inf
        self.trees: list[DecisionTree] = []
        self.records: list[TreeRecord] = []
        self.norm = 0.0
        self.confidences = np.zeros(examples.n_examples)
        self._signed = np.zeros(examples.n_examples)
        self._leaves: Leaves = np.zeros(examples.n_examples, dtype=np.int32)
        self._builder = TreeBuilder(examples.n_features)
        self.largest: float | None = None
        self._is_misled = False
        self._weigh()

    def _weigh(self) -> None:
        self.loss = float(native.weigh(self.confidences, self._labels, self._biases, self._signed))
        self._tolerance = ROUNDING * float(np.abs(self._signed).sum())

    @property
    def _limits(self) -> SplitLimits:
        least = max(self._tolerance, self.min_gain * self.penalty if np.isfinite(self.penalty) else 0.0)
        return SplitLimits(self.penalty, least, self._tolerance)

    @property
    def objective(self) -> float:
        """Loss and penalty (equation 3)."""
        return self.loss + (self.penalty * self.norm if self.norm else 0.0)

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return self._examples.n_examples

    @property
    def n_nonzero(self) -> int:
        """How many leaves add something."""
        return sum(int(np.count_nonzero(tree.values)) for tree in self.trees)

    @property
    def is_sampled(self) -> bool:
        """Whether trees are built on a part of the examples."""
        return self.sample_size is not None and self.sample_size < self._examples.n_examples

    def grow(self) -> TreeRecord | None:
        """Add one tree, or return None where nothing gains under the present penalty.

        A tree whose leaves are all zero, which a sample may suggest, has a record but is not kept.
        """
        clock = _Clock()
        if self.is_sampled and (self._is_misled or np.isinf(self.penalty)):
            return self._grow_from_all(clock, 0.0, 0.0)
        size = self.sample_size if self.sample_size is not None else self._examples.n_examples
        sample = draw_sample(np.abs(self._signed), size, random_state=(self.random_state, len(self.records)))
        sampling = clock.lap()
        rows = FeatureRows(*self._examples.extract(sample.numbers))
        extraction = clock.lap()
        signed = np.copysign(sample.weights, self._signed[sample.numbers])
        limits = self._limits
        largest = self._builder.start(rows, signed, min(limits.least, (limits.least + limits.penalty) / 2))
        if not self._gains(largest):
            self._builder.drop()
            if self.is_sampled or limits.least > limits.rounding:
                return self._grow_from_all(clock, sampling, extraction)
            self.largest = largest
            return None
        tree = self._builder.build(limits)
        return self._add(tree, clock, sample.lost, (sampling, extraction, clock.lap()))

    def _gains(self, largest: float) -> bool:
        return largest > max(self.penalty * (1 + self.slack), self.penalty + self._tolerance)

    def _grow_from_all(self, clock: _Clock, sampling: float, extraction: float) -> TreeRecord | None:
        """Add a tree of one split, or none, that gains most over all examples, if any gains."""
        sums = np.zeros(self._examples.n_features)
        building = clock.lap()
        for begin in range(0, self._examples.n_examples, BLOCK):
            numbers = np.arange(begin, min(begin + BLOCK, self._examples.n_examples))
            rows = FeatureRows(*self._examples.extract(numbers))
            extraction += clock.lap()
            native.add_gradients(rows, self._signed[numbers], sums)
            building += clock.lap()
        total = float(self._signed.sum())
        reach = np.maximum(np.abs(sums), np.abs(total - sums))
        largest = max(abs(total), float(reach.max(initial=0.0)))
        if not self._gains(largest):
            self.largest, self._is_misled = largest, False
            return None
        tree = make_stump(sums, total, self.penalty, self._tolerance)
        return self._add(tree, clock, 0.0, (sampling, extraction, building + clock.lap()))

    def _add(
        self, tree: DecisionTree, clock: _Clock, lost: float, seconds: tuple[float, float, float]
    ) -> TreeRecord:
        self._examples.percolate(tree, self._leaves)
        percolation = clock.lap()
        n_leaves = (len(tree.features) + 1) // 2
        if self.prune and self.is_sampled:
            tree = unsplit(tree, self._leaves, self._signed, self._limits)
        state = (self._signed, self._labels, self._biases, self.confidences)
        values = find_values(self._leaves, len(tree.features), *state, self.penalty)
        n_nonzero = int(np.count_nonzero(values))
        if n_nonzero:
            self.confidences += values[self._leaves]
            self.norm += float(np.abs(values).sum())
            self.trees.append(prune_tree(tree._replace(values=values)))
            self._weigh()
        self._is_misled = not n_nonzero
        times = Seconds(*seconds, percolation, clock.lap())
        record = TreeRecord(self.penalty, n_leaves, n_nonzero, self.objective, lost, times)
        self.records.append(record)
        return record

    def relax(self, lowest: float = 0.0) -> float:
        """Lower the penalty after `grow` has returned None, and return it.

        It becomes `eta` times the largest one that allows a root to gain, or `lowest` if that is
        more. Where no gradient is left at all, it becomes `lowest`.
        """
        if self.largest is None:
            raise InputError(
                "grow has not returned None yet; expected to lower the penalty when nothing gains"
            )
        self.penalty = min(self.penalty, max(self.eta * self.largest, lowest))
        self.largest = None
        return self.penalty

    def grow_to(
        self, lowest: float, *, max_trees: int, after_tree: Callable[[TreeRecord], None] | None = None
    ) -> bool:
        """Grow trees under ever lower penalties, and tell whether nothing gains under the lowest.

        Parameters
        ----------
        lowest : float
            The last penalty, above zero.
        max_trees : int
            How many trees there may be in all.
        after_tree : callable, optional
            Called with the record of each tree.
        """
        while len(self.records) < max_trees:
            if self.largest is not None:
                if self.penalty <= lowest:
                    return True
                self._lower(lowest)
                continue
            record = self.grow()
            if record is not None and after_tree is not None:
                after_tree(record)
        return False

    def _lower(self, lowest: float) -> None:
        """Lower the penalty as `relax` does; to the lowest at once, where nothing gains under that either."""
        largest = self.largest
        self.relax(lowest)
        if largest is not None and not self._gains(largest):
            self.largest = largest

    def get_state(self) -> State:
        """Return all that is needed to go on, but for the examples."""
        values = {
            "eta": self.eta,
            "sample_size": self.sample_size,
            "prune": self.prune,
            "slack": self.slack,
            "min_gain": self.min_gain,
            "random_state": self.random_state,
            "penalty": None if np.isinf(self.penalty) else self.penalty,
            "norm": self.norm,
            "largest": self.largest,
            "is_misled": self._is_misled,
            "records": [record.as_list() for record in self.records],
        }
        return State(
            "BoostedTrees", values, {"confidences": self.confidences, **forest_arrays(join_trees(self.trees))}
        )

    @classmethod
    def from_state(
        cls,
        state: State,
        examples: ExampleSource,
        labels: npt.ArrayLike,
        *,
        biases: npt.ArrayLike | None = None,
    ) -> Self:
        """Make it again, to go on with the same examples."""
        values = state.values
        options = {
            name: values[name]
            for name in ("eta", "sample_size", "prune", "slack", "min_gain", "random_state")
        }
        self = cls(examples, labels, biases=biases, **options)
        if state.arrays["confidences"].shape != self.confidences.shape:
            n_kept = len(state.arrays["confidences"])
            raise InputError(f"there are {examples.n_examples} examples; expected the {n_kept} of the state")
        self.penalty = np.inf if values["penalty"] is None else float(values["penalty"])
        self.norm, self.largest = float(values["norm"]), values["largest"]
        self._is_misled = bool(values["is_misled"])
        self.records = [TreeRecord.from_list(record) for record in values["records"]]
        self.confidences = state.arrays["confidences"].astype(np.float64)
        self.trees = split_forest(forest_from(state))
        self._weigh()
        return self


def _checked_labels(
    n_examples: int, labels: npt.ArrayLike, biases: npt.ArrayLike | None
) -> tuple[npt.NDArray[np.int8], FloatArray]:
    signs = np.asarray(labels)
    counts = np.ones(n_examples) if biases is None else np.asarray(biases, dtype=np.float64)
    for name, array in (("labels", signs), ("biases", counts)):
        if array.shape != (n_examples,):
            raise InputError(f"{name} have the shape {array.shape}; expected {(n_examples,)}")
    if not np.isin(signs, (-1, 1)).all():
        wrong = signs[~np.isin(signs, (-1, 1))][0]
        raise InputError(f"labels have {wrong.item()!r}; expected only 1 and -1")
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise InputError("biases have a value below zero, or none; expected numbers from 0")
    return signs.astype(np.int8, copy=False), counts
