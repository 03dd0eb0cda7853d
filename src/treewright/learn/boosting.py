"""Boosted decision trees under an L1 penalty that is lowered step by step.

The method is from J. Turian and I. D. Melamed (2006), Computational challenges in parsing by classification;
equations and the steps of Listing 1 are numbered as in that paper. Examples are drawn by priority sampling
(N. Duffield, C. Lund and M. Thorup 2005).
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray, Integers
from treewright._validate import check_choice, check_integer, check_number, count_jobs
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
"""Number of examples whose features are extracted at once when all examples are processed."""
ROUNDING = 1e-10
"""Gains that differ by less than this fraction of the total weight are considered equal."""


class ExampleSource(Protocol):
    """A source of examples whose features are extracted on demand."""

    @property
    def n_examples(self) -> int:
        """Number of examples."""

    @property
    def n_features(self) -> int:
        """Number of atomic features."""

    def extract(self, numbers: Integers) -> tuple[Integers, Leaves]:
        """Return the features of the examples with these indices, which are in ascending order.

        Returns
        -------
        indptr : ndarray of int64, (len(numbers) + 1,)
            Start of the features of each example.
        columns : ndarray of int32
            Features, ascending within each example.
        """

    def percolate(self, tree: DecisionTree, out: Leaves) -> None:
        """Write the index of the leaf that each example reaches."""


class CsrExamples:
    """Examples that are rows of a binary matrix.

    Parameters
    ----------
    rows : csr_matrix
        The matrix; its values are ignored.
    n_jobs : int
        Number of threads (-1: all processors) that assign examples to leaves.
    """

    def __init__(self, rows: csr_matrix, *, n_jobs: int = 1) -> None:
        rows = csr_matrix(rows)
        if not rows.has_sorted_indices:
            rows = rows.sorted_indices()
        self._rows = FeatureRows(rows.indptr.astype(np.int64), rows.indices.astype(np.int32))
        self._shape = rows.shape
        self._jobs = count_jobs(n_jobs)

    @property
    def n_examples(self) -> int:
        """Number of rows."""
        return int(self._shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self._shape[1])

    def extract(self, numbers: Integers) -> tuple[Integers, Leaves]:
        """Return the columns of some rows; see `ExampleSource`."""
        if len(numbers) == self.n_examples:
            return self._rows
        begins = self._rows.indptr[numbers]
        lengths = self._rows.indptr[numbers + 1] - begins
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(indptr[-1]) + np.repeat(begins - indptr[:-1], lengths)
        return indptr, self._rows.columns[places]

    def percolate(self, tree: DecisionTree, out: Leaves) -> None:
        """Write the index of the leaf that each row reaches."""

        def fill(part: slice) -> None:
            rows = self._rows._replace(indptr=self._rows.indptr[part.start : part.stop + 1])
            wanted = np.zeros(self.n_features, dtype=np.int32)
            native.percolate(rows, tree, wanted, np.zeros(len(tree.features), np.int64), out[part])

        map_slices(fill, self.n_examples, n_jobs=self._jobs)


class Sample(NamedTuple):
    """A sample of the examples, their weights, and the fraction of the total weight outside the sample."""

    numbers: Integers
    weights: FloatArray
    lost: float


class Seconds(NamedTuple):
    """Seconds spent on each step of building a tree (Table 2)."""

    sample: float
    extraction: float
    building: float
    percolation: float
    updates: float

    @property
    def total(self) -> float:
        """Sum of all steps."""
        return sum(self)


class TreeRecord(NamedTuple):
    """Report of a tree.

    Attributes
    ----------
    penalty : float
    n_leaves, n_nonzero : int
        Number of leaves, and number of non-zero leaves; only non-zero leaves are kept.
    objective : float
        Loss plus penalty after the tree was added.
    lost : float
        Fraction of the total weight that belongs to examples outside the sample.
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
        """Return the values for JSON."""
        return [*self[:-1], list(self.seconds)]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> Self:
        """Restore a record."""
        *numbers, seconds = values
        return cls._make([*numbers, Seconds(*seconds)])


def draw_sample(weights: FloatArray, size: int, *, random_state: Sequence[int]) -> Sample:
    """Draw examples by priority sampling; sums of their weights are unbiased estimates.

    Parameters
    ----------
    weights : ndarray of float
        Non-negative weights.
    size : int
        Number of examples to draw; if there are fewer, all are used.
    random_state : sequence of int
        Seed of the random number generator.
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
    """Measures the seconds since the last call."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap(self) -> float:
        now = time.perf_counter()
        self._last, seconds = now, now - self._last
        return seconds


class BoostedTrees:
    """An ensemble that grows tree by tree; its penalty is lowered when no split improves the objective.

    Call `grow` until it returns None, evaluate the ensemble on other data if needed, call `relax`, and
    repeat. Each tree that is kept lowers the objective. If a sample yields no such tree, all examples are
    used.

    Parameters
    ----------
    examples : ExampleSource
    labels : array, (n_examples,)
        Labels 1 and -1.
    biases : array of float, (n_examples,), optional
        Weights of the examples; 1 by default. Weights and labels are not copied.
    eta : float
        `relax` sets the penalty to this factor times the largest gradient at the root.
    sample_size : int, optional
        Number of examples on which each tree is built; all by default.
    prune : bool
        Undo splits that do not improve the objective over all examples, before leaves get their values. The
        paper has no such step. Pruning takes little time, and has no effect on trees built on all examples.
    slack : float
        Training at a penalty ends when no gradient at the root exceeds the penalty by more than this
        fraction. Without this tolerance, the steps would become smaller and smaller without end.
    min_gain : float
        Minimum gain of a split below the root, as a fraction of the penalty. The paper accepts any gain;
        trees then test hundreds of rare features where a few are enough, and take ten times longer to build.
    random_state : int
        Seed of the random number generator.

    Attributes
    ----------
    penalty : float
        The current penalty, infinite at first.
    trees : list of DecisionTree
        The trees, reduced to the paths to non-zero leaves.
    confidences : ndarray of float, (n_examples,)
        The score of each example.
    records : list of TreeRecord
        A record of each tree, including those that were not kept.
    norm : float
        The sum of the absolute values of all leaves.
    largest : float or None
        After `grow` has returned None, the largest gradient of the root and of its possible children, over
        all examples.

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
        """Loss plus penalty (equation 3)."""
        return self.loss + (self.penalty * self.norm if self.norm else 0.0)

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return self._examples.n_examples

    @property
    def n_nonzero(self) -> int:
        """Number of non-zero leaves."""
        return sum(int(np.count_nonzero(tree.values)) for tree in self.trees)

    @property
    def is_sampled(self) -> bool:
        """Whether trees are built on a sample of the examples."""
        return self.sample_size is not None and self.sample_size < self._examples.n_examples

    def grow(self) -> TreeRecord | None:
        """Add one tree, or return None if no split improves the objective at the current penalty.

        A sample may produce a tree whose leaves are all zero; such a tree has a record but is not kept.
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
        """Add the best tree with at most one split, chosen on all examples, if it improves the objective."""
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

        The new penalty is `eta` times the largest gradient at the root, but at least `lowest`.
        """
        if self.largest is None:
            raise InputError(
                "relax was called while trees still improve the objective; "
                "expected a call after grow has returned None"
            )
        self.penalty = min(self.penalty, max(self.eta * self.largest, lowest))
        self.largest = None
        return self.penalty

    def grow_to(
        self, lowest: float, *, max_trees: int, after_tree: Callable[[TreeRecord], None] | None = None
    ) -> bool:
        """Grow trees under decreasing penalties; return whether no split helps at the lowest penalty.

        Parameters
        ----------
        lowest : float
            The last penalty; positive.
        max_trees : int
            Maximum number of trees.
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
        """Lower the penalty with `relax`; keep `largest` if no split improves the objective even then."""
        largest = self.largest
        self.relax(lowest)
        if largest is not None and not self._gains(largest):
            self.largest = largest

    def get_state(self) -> State:
        """Return everything that is needed to continue, except the examples."""
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
        """Restore the ensemble, so that training can continue with the same examples."""
        values = state.values
        options = {
            name: values[name]
            for name in ("eta", "sample_size", "prune", "slack", "min_gain", "random_state")
        }
        self = cls(examples, labels, biases=biases, **options)
        if state.arrays["confidences"].shape != self.confidences.shape:
            n_kept = len(state.arrays["confidences"])
            raise InputError(f"there are {examples.n_examples} examples; expected {n_kept}, as in the state")
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
        raise InputError(f"labels contain {wrong.item()!r}; expected only 1 and -1")
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise InputError(
            "biases contain a negative number, NaN or infinity; expected finite numbers of at least 0"
        )
    return signs.astype(np.int8, copy=False), counts
