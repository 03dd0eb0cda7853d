"""Tree kernels of single pairs, computed by plain loops: the baseline of benchmarks."""

from collections.abc import Callable, Sequence

import numpy as np

from treewright._typing import FloatArray, Integers
from treewright.data.consttree import ConstTree
from treewright.data.forest import Forest
from treewright.native.kernels.naive import PlainTrees, evaluate_all_nodes

Evaluate = Callable[[Integers], FloatArray]
"""Returns the values of pairs of trees, given as rows of two indices."""


def plain_trees(forest: Forest) -> PlainTrees:
    """Convert trees to arrays for plain loops."""
    indptr, sizes, symbols = forest.indptr, forest.sizes, forest.symbols
    numbers: dict[tuple[int, ...], int] = {}
    kinds = np.full(len(sizes), -1, dtype=np.int64)
    listed_sizes, listed = sizes.tolist(), symbols.tolist()
    for node, size in enumerate(listed_sizes):
        production, child = [listed[node]], node - 1
        while child > node - size:
            production.append(listed[child])
            child -= listed_sizes[child]
        if size > 1:
            kinds[node] = numbers.setdefault(tuple(production), len(numbers))
    owners = np.repeat(np.arange(forest.n_trees), np.diff(indptr))
    return PlainTrees(indptr, sizes, symbols, kinds, np.lexsort((kinds, owners)))


def naive_subset_trees(trees: Sequence[ConstTree], decay: float) -> Evaluate:
    """Return a function that evaluates pairs of trees by visiting all pairs of their nodes."""
    plain = plain_trees(Forest.from_trees(trees))
    values = np.zeros(int(np.diff(plain.indptr).max(initial=0)) ** 2)

    def evaluate(pairs: Integers) -> FloatArray:
        out = np.empty(len(pairs))
        evaluate_all_nodes(plain, pairs, decay, values, out)
        return out

    return evaluate
