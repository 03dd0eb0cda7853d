"""Partial trees as fragments: finding the heaviest ones in a forest, and counting given ones.

The weight of a partial tree with n nodes, m of them leaves, is depth_decay^n decay^(2m). Its count in a tree
is the weighted number of its embeddings; an embedding that skips g children between matched children has the
weight decay^g.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from treewright._typing import FloatArray, Integers
from treewright.data.consttree import ConstTree
from treewright.data.forest import Forest
from treewright.kernels.dag import Dag, find_symbols
from treewright.native.kernels.fragments import FragmentLimits, Measures, Records
from treewright.native.kernels.partial_fragments import (
    FragmentDecays,
    PartialForest,
    PartialTrie,
    bound_growth,
    match_partial_fragments,
    mine_partial_fragments,
)


def find_heaviest_partial(
    dag: Dag,
    measures: Measures,
    kernel: Any,  # noqa: ANN401
    power: float,
    limits: FragmentLimits,
) -> tuple[list[tuple[ConstTree, float]], int]:
    """Return the partial trees with the largest absolute values, largest first, and the number of visits.

    A value is the weight of the partial tree to the power of `power`, times the sums of `measures` over its
    embeddings.
    """
    # The bounds are for one sum: weights and counts each have the square root of a fragment's weight.
    half = FragmentDecays(
        float(kernel.decay), float(np.sqrt(kernel.depth_decay)), float(kernel.decay), kernel.max_children or 0
    )
    n_values, n_subtrees = len(dag.subtrees.values), len(dag.symbols)
    forest = PartialForest(
        dag.subtrees.indptr,
        dag.subtrees.values,
        dag.symbols,
        np.zeros(n_values),
        np.zeros(n_subtrees),
        np.zeros(n_values, dtype=np.int64),
    )
    bound_growth(forest, dag.n_symbols, half)
    decays = half._replace(node=float(kernel.depth_decay**power), leaf=float(kernel.decay ** (2 * power)))
    records, best, n_visits = mine_partial_fragments(forest, measures, decays, limits)
    found = [(_read_record(dag, records, number), float(records.values[number])) for number in best.tolist()]
    return found, int(n_visits)


def _read_record(dag: Dag, records: Records, record: int) -> ConstTree:
    """Return a fragment found by the search as a tree."""
    steps = []
    while record >= 0:
        steps.append((int(records.positions[record]), int(records.kinds[record])))
        record = int(records.parents[record])
    _, root = steps.pop()
    children: list[list[int]] = [[]]
    symbols, path = [root], [0]
    for depth, symbol in reversed(steps):
        del path[depth + 1 :]
        children[path[-1]].append(len(symbols))
        path.append(len(symbols))
        symbols.append(symbol)
        children.append([])
    labels, n_children, waiting = [], [], [0]
    while waiting:  # parents first and from right to left, which is post-order in reverse
        node = waiting.pop()
        labels.append(dag.forest.labels[symbols[node]])
        n_children.append(len(children[node]))
        waiting.extend(children[node])
    return ConstTree.from_child_counts(labels[::-1], n_children[::-1])


class PartialMatcher:
    """Counts given partial trees rooted at each subtree.

    Parameters
    ----------
    decay : float
        Decay factor per skipped child.
    fragments : list of ConstTree
        Distinct fragments.
    """

    def __init__(self, decay: float, fragments: list[ConstTree]) -> None:
        self._decay = float(decay)
        self._n_fragments = len(fragments)
        self._dag = Dag(Forest.from_trees(fragments), n_together=max(1, len(fragments)))
        # The root is the last subtree of a fragment, since no other has as many nodes.
        roots = self._dag.bags.ids[self._dag.bags.indptr[1:] - 1]
        self._features = np.full(len(self._dag.symbols), -1, dtype=np.int64)
        self._features[roots] = np.arange(len(fragments))
        self._trie = _make_trie(self._dag)

    def find(self, dag: Dag) -> csr_matrix:
        """Return the summed weights of the embeddings of each fragment rooted at each subtree.

        Parameters
        ----------
        dag : Dag
            The distinct subtrees to search.

        Returns
        -------
        csr_matrix of float, (n_subtrees, n_fragments)
            The summed weights.
        """
        symbols = find_symbols(self._dag, dag)[dag.symbols]
        indptr, found, weights = match_partial_fragments(dag.subtrees, symbols, self._trie, self._decay)
        features = self._features[found]
        is_kept = features >= 0
        before: Integers = np.concatenate([[0], np.cumsum(is_kept)])
        shape = (len(dag.symbols), self._n_fragments)
        return csr_matrix((weights[is_kept], features[is_kept], before[indptr]), shape=shape)


def _make_trie(dag: Dag) -> PartialTrie:
    """Return a trie of the distinct subtrees of a forest, as sequences of their children."""
    n_symbols = dag.n_symbols
    leaves = np.full(n_symbols, -1, dtype=np.int64)
    states: dict[tuple[int, int], int] = {}
    symbols = dag.symbols.tolist()
    ends: dict[int, int] = {}
    edges: list[tuple[int, int, int]] = []
    indptr, values = dag.subtrees.indptr.tolist(), dag.subtrees.values.tolist()
    for fragment, symbol in enumerate(symbols):
        state = symbol
        children = values[indptr[fragment] + 1 : indptr[fragment + 1]]
        if not children:
            leaves[symbol] = fragment
            continue
        for child in children:
            source, state = state, states.setdefault((state, child), n_symbols + len(states))
            if len(states) > len(edges):
                edges.append((child * n_symbols + symbol, source, state))
        ends[state] = fragment
    found = np.full(n_symbols + len(states), -1, dtype=np.int64)
    found[list(ends)] = list(ends.values())
    keys, sources, targets = np.array(sorted(edges), dtype=np.int64).reshape(-1, 3).T.copy()
    return PartialTrie(leaves, found, keys, sources, targets)


def weigh_fragments(kernel: Any, fragments: list[ConstTree]) -> FloatArray:  # noqa: ANN401
    """Return the weight of each partial tree."""
    sizes = np.array([fragment.n_nodes for fragment in fragments], dtype=np.float64)
    n_leaves = np.array([int((fragment.sizes == 1).sum()) for fragment in fragments], dtype=np.float64)
    return np.asarray(kernel.depth_decay**sizes * kernel.decay ** (2 * n_leaves), dtype=np.float64)
