"""Boosted decision trees under an L1 penalty, fitted in small steps; each tree is grown best-first.

The objective is from J. Turian and I. D. Melamed (2006); see `treewright.learn.boosting`. In their method,
splits have no cost, so on sparse data a leaf may require the absence of hundreds of rare features, and thus
overfit. Four changes let an ensemble of many trees generalise. A split is chosen by the decrease of the
objective, not by its gradient; a tree has few leaves; the value of each leaf is a fraction of its Newton
step; and the penalty is lowered after each tree.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray, Integers
from treewright._validate import count_jobs
from treewright.learn.boosting import draw_sample
from treewright.learn.chains import chain_columns, columns_of
from treewright.learn.trees import Leaves, make_tree, prune_tree
from treewright.native.learn import boosting, stagewise
from treewright.native.learn.boosting import DecisionTree, FeatureRows
from treewright.native.learn.stagewise import (
    ExampleColumns,
    FeatureChains,
    FeatureSums,
    GradientPair,
    GrownNodes,
    GrowthLimits,
    Regions,
)
from treewright.scale import map_jobs

DAMPING = 1.0
"""Constant added to the curvature of each leaf; it limits the steps of small leaves."""
TOLERANCE = 1e-4
"""Minimum relative decrease of the loss; training stops if no tree reaches it."""
LARGE = 1 / 32
"""Minimum size of the largest feature of a chain, relative to the number of examples; other chains are taken
apart."""
TINY = 1e-300
ROUNDING = 1e-10
"""Tolerance for equal scores, relative to the total curvature."""


class BinaryMatrix:
    """A binary matrix stored both by rows and by columns, shared by several growers.

    Parameters
    ----------
    rows : csr_matrix
        The matrix, with columns in ascending order within each row; its values are ignored.

    Attributes
    ----------
    rows : FeatureRows
    columns : ExampleColumns
    chains : FeatureChains
        Features that contain each other, if the largest of them is frequent.
    smallest : FeatureRows
        Like `rows`, but of the features of a chain only the smallest one that an example has.
    """

    def __init__(self, rows: csr_matrix) -> None:
        self.n_examples, self.n_features = map(int, rows.shape)
        self.rows = FeatureRows(rows.indptr.astype(np.int64), rows.indices.astype(np.int32))
        columns = columns_of(rows)
        self.columns = ExampleColumns(*columns)
        chains = chain_columns(columns)
        sizes, lengths = np.diff(chains.rows_ptr), np.diff(chains.members_ptr)
        is_kept = (lengths > 1) & (sizes >= LARGE * self.n_examples)
        in_chain = np.repeat(is_kept, lengths)
        members = chains.members[in_chain]
        of_feature = np.full(self.n_features, -1, dtype=np.int32)
        of_feature[members] = np.repeat(np.arange(is_kept.sum()), lengths[is_kept])
        self.chains = FeatureChains(
            np.concatenate([[0], np.cumsum(lengths[is_kept])]).astype(np.int64), members, of_feature
        )
        self.smallest = self.rows
        if len(members):
            of_bin = np.repeat(chains.members, np.diff(chains.ends, prepend=0))
            of_entry = np.repeat(np.arange(self.n_features), np.diff(columns.indptr))
            kept, alone = np.repeat(is_kept, sizes), of_feature[of_entry] < 0
            examples = np.concatenate([columns.rows[alone], chains.rows[kept]])
            features = np.concatenate([of_entry[alone], of_bin[kept]])
            smallest = csr_matrix(
                (np.ones(len(features), dtype=np.int8), (examples, features)), shape=rows.shape
            )
            smallest.sort_indices()
            self.smallest = FeatureRows(smallest.indptr.astype(np.int64), smallest.indices.astype(np.int32))


class TreeGrower:
    """Grows trees on the rows of a binary matrix, and reuses its buffers.

    Parameters
    ----------
    data : BinaryMatrix
    max_leaves : int
        Maximum number of leaves of a tree.
    damping : float
        Positive constant added to the curvature of each leaf.
    max_depth : int, optional
        Maximum number of features on the path to a leaf; by default, only `max_leaves` limits it.
    """

    def __init__(
        self, data: BinaryMatrix, *, max_leaves: int, damping: float, max_depth: int | None = None
    ) -> None:
        self._data, self._damping = data, damping
        self._max_depth = max_leaves if max_depth is None else max_depth
        # Memory of zeros is taken only where it is used.
        self._table = FeatureSums(
            np.zeros((max_leaves, data.n_features, 3)),
            np.empty((max_leaves, data.n_features), dtype=np.int32),
            np.zeros(max_leaves, dtype=np.int64),
        )
        self._tree = make_tree(2 * max_leaves - 1)
        size = 2 * max_leaves - 1
        begins, ends, labels, places, depths, splits = (np.zeros(size, dtype=np.int64) for _ in range(6))
        gradients, curvatures, gains = (np.zeros(size) for _ in range(3))
        self._nodes = GrownNodes(begins, ends, labels, places, depths, gradients, curvatures, gains, splits)
        self._positions = np.empty(data.n_examples, dtype=np.int32)
        self._labels: Leaves = np.empty(data.n_examples, dtype=np.int32)

    def grow(
        self,
        slopes: GradientPair,
        penalty: float,
        *,
        rate: float,
        scores: FloatArray,
        sample: Integers | None = None,
        weights: FloatArray | None = None,
    ) -> tuple[DecisionTree | None, float]:
        """Grow a tree and add its predictions to the scores; return it, or None if all leaves are zero.

        Also return the decrease of the objective, as estimated from gradients and curvatures.

        Parameters
        ----------
        slopes : GradientPair
            Gradients and curvatures of all examples.
        penalty : float
        rate : float
            Learning rate: the fraction of its Newton step that each leaf takes.
        scores : ndarray of float, (n_examples,)
        sample : ndarray of int, optional
            Indices of the examples used to choose splits, in ascending order. Leaves get their values from
            all examples.
        weights : ndarray of float, optional
            Weights of the examples in the sample.
        """
        least = ROUNDING * float(slopes.curvatures.sum())
        limits = GrowthLimits(penalty, self._damping, least, self._max_depth)
        if sample is None:
            chosen, used = np.arange(self._data.n_examples, dtype=np.int32), slopes
        else:
            chosen = sample.astype(np.int32)
            used = GradientPair(*(np.zeros(self._data.n_examples) for _ in slopes))
            for mine, each in zip(used, slopes, strict=True):
                mine[sample] = each[sample] * weights
            self._labels[:] = -1
        regions = Regions(chosen, self._positions, self._labels)
        n_nodes = int(
            stagewise.grow_tree(
                *(self._data.smallest, self._data.chains, self._data.columns, used),
                *(self._table, regions, self._nodes, limits, self._tree),
            )
        )
        tree = DecisionTree(*(each[:n_nodes].copy() for each in self._tree))
        if sample is not None:
            self._percolate(tree, slopes)
        fall = float(stagewise.set_values(self._nodes, tree, limits, rate))
        if not tree.values.any():
            return None, 0.0
        by_label = tree.values
        if sample is None:
            by_label = np.zeros(n_nodes)
            leaves = np.flatnonzero(tree.features < 0)
            by_label[self._nodes.labels[leaves]] = tree.values[leaves]
        stagewise.add_values(self._labels, by_label, scores)
        return tree, fall

    def _percolate(self, tree: DecisionTree, slopes: GradientPair) -> None:
        """Assign all examples to leaves, and sum the gradients and curvatures in each leaf."""
        wanted = np.zeros(self._data.n_features, dtype=np.int32)
        boosting.percolate(
            self._data.rows, tree, wanted, np.zeros(len(tree.features), np.int64), self._labels
        )
        self._nodes.gradients[:] = 0
        self._nodes.curvatures[:] = 0
        stagewise.sum_slopes(self._labels, slopes, self._nodes)


class TreeStep(NamedTuple):
    """Statistics of a grown tree.

    Attributes
    ----------
    penalty : float
    n_leaves, n_nonzero : int
        Number of leaves that were kept, and how many of them have non-zero values.
    loss : float
        The sum of the log-loss before the tree was added.
    """

    penalty: float
    n_leaves: int
    n_nonzero: int
    loss: float

    def __str__(self) -> str:
        leaves = f"{self.n_nonzero} non-zero leaves"
        return f"tree with penalty {self.penalty:.4g}: {leaves}, loss before the tree {self.loss:,.4g}"


class StagewiseTrees:
    """Ensembles of trees for several binary problems over the same rows.

    Each ensemble grows one tree per round; the penalty, which all share, is lowered after each round.

    Parameters
    ----------
    rows : csr_matrix
        Binary matrix with sorted columns.
    targets : ndarray of bool, (n_problems, n_examples)
        Whether each example is positive, for each problem.
    weights : ndarray of float, (n_examples,)
        Positive weights of the examples.
    first, lowest : float
        The first and the lowest penalty.
    learning_rate, max_leaves, eta, sample_size, n_jobs, random_state
        Same as in `treewright.L1BoostedTrees`.

    Attributes
    ----------
    penalty : float
        The penalty of the last round.
    trees : list of list of DecisionTree
        For each problem, the trees with non-zero leaves.
    last_trees : list of DecisionTree or None
        The tree of each problem in the last round; None if all its leaves are zero.
    steps : list of list of TreeStep
        For each problem, the statistics of the tree of each round.
    intercepts : ndarray of float, (n_problems,)
    scores : ndarray of float, (n_problems, n_examples)
    """

    def __init__(
        self,
        rows: csr_matrix,
        targets: npt.NDArray[np.bool_],
        weights: FloatArray,
        *,
        first: float,
        lowest: float,
        learning_rate: float,
        max_leaves: int,
        eta: float,
        sample_size: int | None = None,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self._targets, self._weights = targets, weights
        self._first, self._lowest = first, lowest
        self._rate, self._eta, self._random_state = learning_rate, eta, random_state
        self._sample_size = sample_size if sample_size is not None and sample_size < len(weights) else None
        positive = targets @ weights
        self.intercepts = np.log((positive + 0.5) / (weights.sum() - positive + 0.5))
        self.scores = np.repeat(self.intercepts[:, np.newaxis], len(weights), axis=1)
        self.trees: list[list[DecisionTree]] = [[] for _ in targets]
        self.last_trees: list[DecisionTree | None] = [None for _ in targets]
        self.steps: list[list[TreeStep]] = [[] for _ in targets]
        self.penalty = np.inf
        data = BinaryMatrix(rows)
        self._growers = [
            TreeGrower(data, max_leaves=max_leaves, damping=DAMPING) for _ in targets[: count_jobs(n_jobs)]
        ]

    @property
    def n_rounds(self) -> int:
        """Number of trees grown for each problem."""
        return len(self.steps[0])

    @property
    def n_nonzero(self) -> int:
        """Number of leaves with non-zero weights."""
        return sum(step.n_nonzero for steps in self.steps for step in steps)

    def grow_to(self, max_trees: int, after_round: Callable[["StagewiseTrees"], bool]) -> bool:
        """Grow trees up to a maximum number; return whether no further tree would lower the objective.

        Parameters
        ----------
        max_trees : int
            Maximum number of trees for each problem.
        after_round : callable
            Called after each round; returns whether to continue.
        """
        while self.n_rounds < max_trees:
            self.penalty = max(self._first * self._eta**self.n_rounds, self._lowest)
            falls = self._grow_round()
            if not after_round(self):
                return False
            if falls <= TOLERANCE and self.penalty <= self._lowest:
                return True
        return False

    def _grow_round(self) -> float:
        """Grow a tree for each problem; return the largest relative decrease of the loss."""
        n_jobs = len(self._growers)
        groups = [range(job, len(self.trees), n_jobs) for job in range(n_jobs)]
        jobs = list(zip(self._growers, groups, strict=True))
        falls = map_jobs(
            lambda job: [self._grow_tree(job[0], number) for number in job[1]], jobs, n_jobs=n_jobs
        )
        return max(fall for group in falls for fall in group)

    def _grow_tree(self, grower: TreeGrower, number: int) -> float:
        slopes, loss = logistic_slopes(self.scores[number], self._targets[number], self._weights)
        sample = weights = None
        if self._sample_size is not None:
            sizes = np.abs(slopes.gradients)
            seed = (self._random_state, number, len(self.steps[number]))
            drawn = draw_sample(sizes, self._sample_size, random_state=seed)
            sample, weights = drawn.numbers, drawn.weights / np.maximum(sizes[drawn.numbers], TINY)
        tree, fall = grower.grow(
            slopes,
            self.penalty,
            rate=self._rate,
            scores=self.scores[number],
            sample=sample,
            weights=weights,
        )
        n_leaves, n_nonzero = 0, 0
        if tree is not None:
            tree = prune_tree(tree)
            self.trees[number].append(tree)
            n_leaves, n_nonzero = (len(tree.features) + 1) // 2, int(np.count_nonzero(tree.values))
        self.last_trees[number] = tree
        self.steps[number].append(TreeStep(self.penalty, n_leaves, n_nonzero, loss))
        return fall / loss if loss > 0 else 0.0


def logistic_slopes(
    scores: FloatArray, is_positive: npt.NDArray[np.bool_], weights: FloatArray
) -> tuple[GradientPair, float]:
    """Return the gradients and curvatures of the log-loss of two classes, and the loss."""
    slopes = GradientPair(np.empty(len(scores)), np.empty(len(scores)))
    loss = stagewise.fill_slopes(scores, is_positive, weights, slopes)
    return slopes, float(loss)
