"""Boosted trees as weighted conjunctions: each leaf is the conjunction of the literals on the path to it.

Trees find conjunctions of many literals, of which each explains little. A linear model with conjunctions that
are added for their own score does not find these; see `treewright.mining.additive`.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray, IntArray
from treewright.learn.stagewise import BinaryMatrix, TreeGrower
from treewright.mining.targets import LossTarget
from treewright.native.learn.boosting import DecisionTree
from treewright.native.learn.stagewise import GradientPair
from treewright.progress import task

MAX_LEAVES = 32
LEARNING_RATE = 0.2
DAMPING = 1.0
"""Constant added to the curvature of each leaf; it limits the steps of small leaves."""
MOST_COLUMNS = 10_000
"""Trees split by at most this number of columns: those that are present in the most rows."""
N_INTERCEPT_STEPS = 5
MOST_ROUNDS, PATIENCE = 100, 5
"""Maximum number of rounds, and the number of rounds without a gain that ends them."""
TREND = 5
"""Number of rounds from which the further improvement of boosted trees is estimated."""


class WeightedLeaves(NamedTuple):
    """The leaves of trees as conjunctions of literals with their weights, and the intercept.

    A literal is a column, or ``~column`` if the column must be absent. Each weight is an array with one
    number per output.
    """

    weights: dict[tuple[int, ...], FloatArray]
    intercept: FloatArray


class TreeColumns:
    """The columns by which trees split, and buffers that all ensembles over the same rows share.

    Parameters
    ----------
    rows : csr_matrix
        Binary.
    degree : int
        Maximum number of literals on the path to a leaf.
    """

    def __init__(self, rows: csr_matrix, degree: int) -> None:
        counts = np.bincount(rows.indices, minlength=rows.shape[1])
        most = np.argsort(-counts, kind="stable")[:MOST_COLUMNS]
        self.columns: IntArray = np.sort(most[counts[most] > 0]).astype(np.int32)
        chosen = rows if len(self.columns) == rows.shape[1] else rows[:, self.columns]
        chosen.sort_indices()
        data = BinaryMatrix(chosen)
        self.n_entries = len(data.smallest.columns)
        """Number of entries that are counted for the root of a tree."""
        self.grower = TreeGrower(data, max_leaves=MAX_LEAVES, damping=DAMPING, max_depth=degree)


class BoostedTreeLeaves:
    """An ensemble of boosted trees that grows round by round, and the scores of all rows.

    Rows with weight zero are scored, but not used for training.

    Parameters
    ----------
    columns : TreeColumns
    target : LossTarget
    sample_weight : ndarray of float, (n_rows,)
    """

    def __init__(self, columns: TreeColumns, target: LossTarget, sample_weight: FloatArray) -> None:
        self._columns, self._target, self._sample_weight = columns, target, sample_weight
        self._trees: list[list[DecisionTree | None]] = []
        self.scores = np.zeros((len(sample_weight), target.n_outputs))
        for _ in range(N_INTERCEPT_STEPS):
            residuals, curvatures = target.residuals(self.scores)
            self.scores += (sample_weight @ residuals) / np.maximum(sample_weight @ curvatures, 1e-300)
        self._intercept = self.scores[0].copy() if len(self.scores) else np.zeros(target.n_outputs)

    def grow(self) -> bool:
        """Grow a tree for each output; return whether any has a leaf with a non-zero weight."""
        n_outputs = self._target.n_outputs
        residuals, curvatures = self._target.residuals(self.scores)
        # The diagonal of the softmax's curvature is too small by this factor.
        curvatures *= n_outputs / (n_outputs - 1) if n_outputs > 1 else 1.0
        trees = []
        for output in range(n_outputs):
            slopes = GradientPair(
                residuals[:, output] * self._sample_weight, curvatures[:, output] * self._sample_weight
            )
            scores = self.scores[:, output].copy()
            tree, _ = self._columns.grower.grow(slopes, 0.0, rate=LEARNING_RATE, scores=scores)
            self.scores[:, output] = scores
            trees.append(tree)
        self._trees.append(trees)
        return any(tree is not None for tree in trees)

    def leaves(self) -> WeightedLeaves:
        """Return the leaves of all trees."""
        n_outputs = self._target.n_outputs
        weights: dict[tuple[int, ...], FloatArray] = {}
        intercept = self._intercept.copy()
        for trees in self._trees:
            for output, tree in enumerate(trees):
                for path, value in _list_leaves(tree, self._columns.columns) if tree is not None else ():
                    if not path:
                        intercept[output] += value
                        continue
                    if len(path) == 1 and path[0] < 0:  # a single column gets a weight when it is present
                        intercept[output] += value
                        path, value = (~path[0],), -value
                    weights.setdefault(path, np.zeros(n_outputs))[output] += value
        return WeightedLeaves(weights, intercept)


class BoostedSplits:
    """Boosted trees on every split, which grow until early stopping.

    Parameters
    ----------
    ensembles : list of BoostedTreeLeaves
        One for each split.
    measure : callable
        Returns the held-out loss, given the scores of all rows for each split.

    Attributes
    ----------
    n_rounds : int
        Number of rounds with the lowest held-out loss.
    loss, first_loss : float
        The held-out loss after these rounds, and before the first.
    scores : list of ndarray
        The scores of all rows after these rounds, for each split.
    """

    def __init__(
        self, ensembles: list[BoostedTreeLeaves], measure: Callable[[list[FloatArray]], float]
    ) -> None:
        self._ensembles, self._measure = ensembles, measure
        self._losses: list[float] = []
        self._has_ended = False
        self._note()
        self.first_loss = self.loss

    def _note(self) -> None:
        """Measure the held-out loss, and keep the scores if it is the lowest."""
        scores = [each.scores for each in self._ensembles]
        self._losses.append(self._measure(scores))
        if self._losses[-1] < min(self._losses[:-1], default=np.inf):
            self.n_rounds, self.loss = len(self._losses) - 1, self._losses[-1]
            self.scores = [each.copy() for each in scores]

    def grow(self, n_rounds: int, other_loss: float, is_late: Callable[[], bool]) -> None:
        """Grow up to `n_rounds` more rounds, unless the loss cannot become lower than `other_loss`."""
        with task("boosting trees", total=n_rounds, unit="rounds") as counted:
            for _ in range(min(n_rounds, MOST_ROUNDS + 1 - len(self._losses))):
                if self._has_ended or is_late():
                    break
                has_grown = [each.grow() for each in self._ensembles]
                self._note()
                counted.advance()
                number = len(self._losses) - 1
                has_converged = number - self.n_rounds >= PATIENCE
                self._has_ended = has_converged or not any(has_grown) or self._is_hopeless(other_loss)

    def _is_hopeless(self, other_loss: float) -> bool:
        """Return whether the loss stays above another one even if the recent gain per round does not fall."""
        number = len(self._losses) - 1
        if number < TREND:
            return False
        trend = (self._losses[number - TREND] - self._losses[number]) / TREND
        return self._losses[number] - other_loss > trend * (MOST_ROUNDS - number)


def _list_leaves(tree: DecisionTree, columns: IntArray) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield the literals on the path to each leaf, in ascending order of columns, and the leaf's value."""
    open_nodes: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while open_nodes:
        node, path = open_nodes.pop()
        if tree.features[node] < 0:
            if tree.values[node]:
                literals = tuple(sorted(path, key=lambda each: max(each, ~each)))
                yield literals, float(tree.values[node])
            continue
        column = int(columns[tree.features[node]])
        open_nodes.append((int(tree.absent[node]), (*path, ~column)))
        open_nodes.append((int(tree.present[node]), (*path, column)))
