"""Decision trees as flat arrays: building on samples, pruning, joining, scoring, and fitting leaf values."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray
from treewright.model import Array, Record, State, expect, is_within
from treewright.native.learn import boosting as native
from treewright.native.learn.boosting import DecisionForest, DecisionTree, FeatureRows, SplitLimits

Leaves = npt.NDArray[np.int32]
LARGEST_MARGIN = 700.0
"""Largest margin whose exponential does not overflow."""


def make_tree(size: int) -> DecisionTree:
    """Return an uninitialised tree with `size` nodes."""
    features, present, absent = (np.empty(size, dtype=np.int32) for _ in range(3))
    return DecisionTree(features, present, absent, np.empty(size))


def join_trees(trees: Sequence[DecisionTree]) -> DecisionForest:
    """Concatenate trees into one forest, for scoring."""
    sizes = [len(tree.features) for tree in trees]
    roots = np.cumsum([0, *sizes])
    shifts = np.repeat(roots[:-1], sizes)
    if not trees:
        return DecisionForest(np.zeros(0, np.int64), make_tree(0))
    features, present, absent, values = map(np.concatenate, zip(*trees, strict=True))
    is_leaf = features < 0
    present = np.where(is_leaf, -1, present + shifts).astype(np.int32)
    absent = np.where(is_leaf, -1, absent + shifts).astype(np.int32)
    return DecisionForest(roots[:-1].astype(np.int64), DecisionTree(features, present, absent, values))


def split_forest(forest: DecisionForest) -> list[DecisionTree]:
    """Split a forest back into its trees; the inverse of `join_trees`."""
    trees = []
    bounds = [*forest.roots.tolist(), len(forest.nodes.features)]
    for begin, end in pairwise(bounds):
        features, present, absent, values = (each[begin:end].copy() for each in forest.nodes)
        shift = np.where(features < 0, 0, begin).astype(np.int32)
        trees.append(DecisionTree(features, present - shift, absent - shift, values))
    return trees


def score_rows(rows: csr_matrix, forest: DecisionForest) -> FloatArray:
    """Return the summed tree outputs for each row of a binary matrix with sorted columns."""
    scores = np.zeros(rows.shape[0])
    marks = np.zeros(rows.shape[1], dtype=np.int64)
    flat = FeatureRows(rows.indptr.astype(np.int64), rows.indices.astype(np.int32))
    native.add_scores(flat, forest, marks, scores)
    return scores


def unsplit(tree: DecisionTree, leaves: Leaves, signed: FloatArray, limits: SplitLimits) -> DecisionTree:
    """Undo splits that do not improve the objective over all examples; move their examples to kept leaves.

    A split is kept if the gains below it exceed the gain of its own node as a leaf. The tree was built on a
    sample; `leaves` and `signed` hold the leaf and the signed weight of every example.
    """
    sums = np.zeros(len(tree.features))
    native.sum_leaves(leaves, signed, sums)
    gains = np.zeros(len(tree.features))
    features = tree.features.copy()
    # Parents come before their children.
    for node in range(len(features) - 1, -1, -1):
        below = 0.0
        if features[node] >= 0:
            present, absent = tree.present[node], tree.absent[node]
            sums[node] = sums[present] + sums[absent]
            below = gains[present] + gains[absent]
        gains[node] = max(0.0, abs(sums[node]) - limits.penalty)
        if below > gains[node] + (limits.least if node > 0 else limits.rounding):
            gains[node] = below
        else:
            features[node] = -1
    ends = np.arange(len(features), dtype=np.int32)
    for node in np.flatnonzero(tree.features >= 0).tolist():
        if features[node] < 0 or ends[node] != node:
            ends[tree.present[node]] = ends[tree.absent[node]] = ends[node]
    leaves[:] = ends[leaves]
    return tree._replace(features=features)


def prune_tree(tree: DecisionTree) -> DecisionTree:
    """Return an equivalent tree in which each subtree with only zero values is one leaf."""
    matters = tree.values != 0
    # Parents come before their children.
    for node in range(len(tree.features) - 1, -1, -1):
        if tree.features[node] >= 0:
            matters[node] = matters[tree.present[node]] or matters[tree.absent[node]]
    kept, nodes = [], [0]
    while nodes:
        node = nodes.pop()
        kept.append(node)
        if matters[node] and tree.features[node] >= 0:
            nodes += [int(tree.absent[node]), int(tree.present[node])]
    numbers = np.full(len(tree.features), -1, dtype=np.int32)
    numbers[kept] = np.arange(len(kept), dtype=np.int32)
    is_split = matters[kept] & (tree.features[kept] >= 0)
    ends = np.int32(-1)
    return DecisionTree(
        np.where(is_split, tree.features[kept], ends).astype(np.int32),
        np.where(is_split, numbers[tree.present[kept]], ends).astype(np.int32),
        np.where(is_split, numbers[tree.absent[kept]], ends).astype(np.int32),
        tree.values[kept].copy(),
    )


class TreeBuilder:
    """Builds trees on samples; its buffers are reused between trees.

    Parameters
    ----------
    n_features : int
    """

    def __init__(self, n_features: int) -> None:
        self._n_features = n_features
        self._reserve(1)

    def _reserve(self, n_examples: int) -> None:
        n_slots = n_examples.bit_length() + 2
        shape = (n_slots, self._n_features)
        # The system allocates zeroed pages on first use, and mostly the first slots are used.
        self._pool = native.Pool(
            np.zeros(shape),
            np.empty(shape, dtype=np.int32),
            np.zeros(n_slots, dtype=np.int64),
            np.zeros(self._n_features, dtype=np.int32),
        )
        nodes, begins, ends = (np.zeros(n_slots, dtype=np.int64) for _ in range(3))
        self._frames = native.Frames(nodes, begins, ends, np.zeros(n_slots), np.zeros(n_slots))
        examples, buffer = (np.empty(n_examples, dtype=np.int32) for _ in range(2))
        self._order = native.Order(examples, buffer, np.zeros((2, 2)))
        self._capacity = n_examples

    def start(self, rows: FeatureRows, signed: FloatArray, least: float = 0.0) -> float:
        """Load examples with signed weights; return the lowest penalty at which no split helps."""
        if len(signed) > self._capacity:
            self._reserve(len(signed))
        if least > 0:
            heavy = FeatureRows(np.empty_like(rows.indptr), np.empty_like(rows.columns))
            native.keep_heavy(rows, signed, least, self._pool.sums[0], heavy)
            rows = heavy
        self._rows, self._signed = rows, signed
        return float(native.start_tree(rows, signed, self._pool, self._frames, self._order))

    def build(self, limits: SplitLimits) -> DecisionTree:
        """Build the tree of the loaded examples. Its leaf values are zero."""
        tree = make_tree(2 * len(self._signed) + 1)
        n_nodes = native.build_tree(
            *(self._rows, self._signed, self._pool, self._frames, self._order, limits, tree)
        )
        return DecisionTree(*(each[:n_nodes].copy() for each in tree))

    def drop(self) -> None:
        """Discard the loaded examples without building a tree."""
        native.clear(self._pool, 0)


def find_values(
    leaves: Leaves,
    n_nodes: int,
    signed: FloatArray,
    labels: npt.NDArray[np.int8],
    biases: FloatArray,
    confidences: FloatArray,
    penalty: float,
) -> FloatArray:
    """Return, for each leaf, the value that minimises loss plus penalty over its examples (steps 9 and 10).

    The value is zero if and only if the gradient of the leaf does not exceed the penalty.
    """
    sums, values = np.zeros(n_nodes), np.zeros(n_nodes)
    native.sum_leaves(leaves, signed, sums)
    active = np.flatnonzero(np.abs(sums) > penalty)
    counts = np.bincount(leaves, minlength=n_nodes)[active]
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    places = np.full(n_nodes, -1, dtype=np.int64)
    places[active] = bounds[:-1]
    grouped = np.empty(bounds[-1], dtype=np.int64)
    native.group_leaves(leaves, places, grouped)
    for leaf, begin, end in zip(active.tolist(), bounds[:-1], bounds[1:], strict=True):
        members = grouped[begin:end]
        sign = 1.0 if sums[leaf] > 0 else -1.0
        margins = np.clip(labels[members] * confidences[members], -LARGEST_MARGIN, LARGEST_MARGIN)
        agrees = labels[members] == sign
        values[leaf] = sign * native.solve_leaf(np.exp(margins), agrees, biases[members], penalty)
    return values


class ForestField(Record):
    """A forest as a field of a model."""

    def __init__(self) -> None:
        links = {name: Array("i") for name in ("features", "present", "absent")}
        super().__init__(
            DecisionForest, roots=Array("i"), nodes=Record(DecisionTree, **links, values=Array("f"))
        )

    def take(self, state: State, name: str) -> DecisionForest:
        """Remove and return the forest, and check that every path from a root ends in a leaf of its tree."""
        forest: DecisionForest = super().take(state, name)
        check_forest(forest)
        return forest


def check_forest(forest: DecisionForest) -> None:
    """Check that children come after their parent, in the same tree; raise `InputError` otherwise."""
    roots, (features, present, absent, values) = forest
    n_nodes = len(features)
    expect(len(present) == len(absent) == len(values) == n_nodes, "node arrays of equal length")
    nodes = np.flatnonzero(features >= 0)
    for below in (present[nodes], absent[nodes]):  # children after parents: every path ends
        expect(is_within(below, n_nodes) and bool((below > nodes).all()), "children that follow their parent")
    expect(is_within(roots, n_nodes) and bool((np.diff(roots) > 0).all()), "roots in increasing order")
    expect(roots[:1].tolist() == [0][:n_nodes], "a first root at the first node")
    ends = np.append(roots[1:], n_nodes)[np.searchsorted(roots, nodes, side="right") - 1]
    expect(((present[nodes] < ends) & (absent[nodes] < ends)).all(), "children in the tree of their parent")


def forest_arrays(forest: DecisionForest) -> dict[str, npt.NDArray[np.generic]]:
    """Return the arrays of a forest, for saving."""
    return {"roots": forest.roots, **forest.nodes._asdict()}


def forest_from(state: State) -> DecisionForest:
    """Return the forest stored in a state."""
    return DecisionForest(
        state.arrays["roots"], DecisionTree(*(state.arrays[name] for name in DecisionTree._fields))
    )


def make_stump(sums: FloatArray, total: float, penalty: float, tolerance: float) -> DecisionTree:
    """Return a tree with only the best split, or with a single leaf if no split improves the objective."""
    gains = np.maximum(0, np.abs(sums) - penalty) + np.maximum(0, np.abs(total - sums) - penalty)
    links = [[-1], [-1], [-1]]
    if gains.size and gains.max() > max(0.0, abs(total) - penalty) + tolerance:
        links = [[int(gains.argmax()), -1, -1], [1, -1, -1], [2, -1, -1]]
    features, present, absent = (np.array(each, dtype=np.int32) for each in links)
    return DecisionTree(features, present, absent, np.zeros(len(features)))
