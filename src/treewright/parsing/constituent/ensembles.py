"""The boosted trees of all labels, indexed for fast scoring of inferences."""

from collections.abc import Sequence

import numpy as np

from treewright.errors import InputError
from treewright.learn.trees import ForestField, join_trees, split_forest
from treewright.model import State
from treewright.native.constituent.agenda import Ensembles, Index
from treewright.native.learn.boosting import DecisionTree


class EnsemblesField:
    """The trees of each label, as a field of a model."""

    def put(self, state: State, name: str, value: Sequence[Sequence[DecisionTree]]) -> None:
        """Add the trees to a saved state."""
        state.values[name] = [len(trees) for trees in value]
        ForestField().put(state, name, join_trees([tree for trees in value for tree in trees]))

    def take(self, state: State, name: str) -> list[list[DecisionTree]]:
        """Remove and return the trees from a saved state."""
        sizes, trees = state.values.pop(name), split_forest(ForestField().take(state, name))
        if any(type(size) is not int or size < 0 for size in sizes) or sum(sizes) != len(trees):
            raise InputError(f"{name} has sizes {sizes}; expected {len(trees)} trees in total")
        rest = iter(trees)
        return [[next(rest) for _ in range(size)] for size in sizes]


def index_trees(forests: Sequence[Sequence[DecisionTree]], n_features: int) -> tuple[Index, Ensembles]:
    """Index the trees of each label by features, so that only trees relevant to an inference are evaluated.

    Parameters
    ----------
    forests : sequence of sequence of DecisionTree
        The trees of each label.
    n_features : int
        Number of features.
    """
    forest = join_trees([tree for trees in forests for tree in trees])
    nodes = forest.nodes
    labels = np.repeat(np.arange(len(forests)), [len(trees) for trees in forests])
    features, present, absent = (each.tolist() for each in nodes[:3])
    questions: list[tuple[int, int, int, int, int]] = []
    usual = np.zeros(len(labels))
    for tree, (node, label) in enumerate(zip(forest.roots.tolist(), labels.tolist(), strict=True)):
        place = 0
        while features[node] >= 0:
            questions.append((features[node], label, tree, place, present[node]))
            node, place = absent[node], place + 1
        usual[tree] = nodes.values[node]
    totals = np.bincount(labels, weights=usual, minlength=len(forests))
    table = np.array(questions, dtype=np.int64).reshape(-1, 5)
    table = table[np.lexsort(table.T[::-1])]
    is_new = np.ones(len(table), dtype=np.bool_)
    is_new[1:] = (np.diff(table[:, 0]) != 0) | (np.diff(table[:, 1]) != 0)
    begins = np.flatnonzero(is_new)
    blocks = np.searchsorted(table[begins, 0], np.arange(n_features + 1))
    index = Index(
        blocks.astype(np.int32),
        table[begins, 1].astype(np.int32),
        np.append(begins, len(table)).astype(np.int32),
        *(table[:, column].astype(np.int32) for column in (2, 3, 4)),
    )
    return index, Ensembles(*nodes, labels.astype(np.int32), usual, totals)
