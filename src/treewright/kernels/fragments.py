"""Fragments in SVMs with tree kernels: finding the heaviest ones, and counting them in trees.

A fragment is a tree whose leaves are words, or nodes that are not expanded. In the feature space of the
kernel, the value of a fragment is its count in the tree times the square root of its weight. The weight of a
subtree or subset tree is the decay to the power of its number of inner nodes; see `partial_fragments` for
partial trees. An SVM is a vector in that space: the weighted sum of its support vectors.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags

from treewright._typing import FloatArray, Integers
from treewright._validate import check_integer
from treewright.data.consttree import ConstTree
from treewright.data.forest import Forest, Ints
from treewright.kernels.base import MAX_VISITS, Kernel
from treewright.kernels.convolution import TreeKernel
from treewright.kernels.dag import Dag, find_subtrees, find_symbols
from treewright.kernels.indices import TreeIndex
from treewright.kernels.inputs import Key
from treewright.kernels.partial_fragments import PartialMatcher, find_heaviest_partial, weigh_fragments
from treewright.kernels.terms import Term, list_terms
from treewright.native.kernels.dags import count_inner, find_sequences
from treewright.native.kernels.fragments import (
    WORD,
    FragmentLimits,
    FragmentTrie,
    Measures,
    Records,
    insert_fragments,
    match_fragments,
    mine_fragments,
)

MOST_NODES = 2**31 - 1


class WeighedFragment(NamedTuple):
    """A tree fragment and its contribution to a kernel value or a decision value.

    Attributes
    ----------
    fragment : str
        The fragment in brackets.
    weight : float
        Its contribution.
    part : int, str, or tuple of these, or None
        The part of the example that contains the fragment: the key of its `Part`, or a tuple of the keys of
        nested parts. None if the example is a tree.

    See Also
    --------
    SubsetTreeKernel : Its `explain` lists the shared fragments of two trees.
    TreeKernelClassifier : Its `explain` lists the fragments that contribute to a decision.

    Examples
    --------
    >>> tw.SubsetTreeKernel().explain("(S (N a) (V b))", "(S (N a) (V c))")[0]
    WeighedFragment(fragment='(N a)', weight=0.4, part=None)
    """

    fragment: str
    weight: float
    part: Key | None = None


class SearchLimits(NamedTuple):
    """Maximum numbers of fragments to return, of nodes per fragment (None: any), and of visits."""

    n_fragments: int = 10
    max_size: int | None = None
    max_visits: int = MAX_VISITS

    def check(self) -> None:
        """Check the values."""
        check_integer("the number of fragments", self.n_fragments, minimum=1)
        check_integer("max_visits", self.max_visits, minimum=1)
        if self.max_size is not None:
            check_integer("max_size", self.max_size, minimum=1)

    @property
    def plain(self) -> FragmentLimits:
        """The limits for compiled code."""
        return FragmentLimits(self.n_fragments, self.max_size or MOST_NODES, self.max_visits)


def explain_tree(
    machine: Any,  # noqa: ANN401
    example: Any,  # noqa: ANN401
    coef: FloatArray,
    limits: SearchLimits,
) -> list[WeighedFragment]:
    """Return the contributions of the heaviest fragments of an example to a decision value.

    Parameters
    ----------
    machine : TreeKernelClassifier or TreeKernelRegressor
        A fitted estimator.
    example : tree of any kind, or example that contains trees
        The example to explain.
    coef : ndarray of float, (n_support,)
        Coefficients of the support vectors.
    limits : SearchLimits
        Limits of the search for fragments.
    """
    limits.check()
    terms = list_terms(machine.kernel_)
    found = [each for term in terms for each in _explain_term(term, machine, example, coef, limits)]
    found.sort(key=lambda each: -abs(each.weight))
    return found[: limits.n_fragments]


class _Pair(NamedTuple):
    """A stand-in for an SVM whose decision value is the kernel value with one example."""

    kernel_: Kernel
    support_examples_: list[Any]


def explain_pair(
    kernel: Kernel,
    example_a: Any,  # noqa: ANN401
    example_b: Any,  # noqa: ANN401
    limits: SearchLimits,
) -> list[WeighedFragment]:
    """Return the contributions of the heaviest shared fragments of two examples to their kernel value."""
    return explain_tree(_Pair(kernel, [example_a]), example_b, np.ones(1), limits)


def _explain_term(
    term: Term,
    machine: Any,  # noqa: ANN401
    example: Any,  # noqa: ANN401
    coef: FloatArray,
    limits: SearchLimits,
) -> Iterator[WeighedFragment]:
    """Yield the contributions of the heaviest fragments of one term."""
    kernel = term.kernel
    _, explained = term.find_parts([example])
    rows, trees = term.find_parts(machine.support_examples_)
    if not explained:
        return
    index = _make_index(kernel, explained)
    if len(rows) == 0:
        return
    support = Support(kernel, trees, index.dag.forest)
    scale = _inverse_norms(kernel, index)[0] * term.find_scales([example])[0]
    counts = support.weigh(np.append(np.zeros(len(rows)), 1.0)) * scale
    scales = term.weight * support.scales * term.find_scales(machine.support_examples_)[rows]
    weights = support.weigh(np.append(coef[rows] * scales, 0.0))
    for fragment, value in support.find_heaviest(Measures(weights, counts), 1.0, limits):
        yield WeighedFragment(str(fragment), value, term.part)


class Support:
    """The support vectors of an SVM, with all their fragments.

    Parameters
    ----------
    kernel : SubsetTreeKernel, SubtreeKernel or PartialTreeKernel
        The kernel of the SVM.
    trees : sequence of trees of any kind
        The support vectors.
    others : Forest, optional
        Further trees to append, as prepared by the kernel.

    Attributes
    ----------
    scales : ndarray of float, (n_trees,)
        Normalisation factors of `trees`.
    """

    def __init__(self, kernel: TreeKernel, trees: Any, others: Forest | None = None) -> None:  # noqa: ANN401
        index = _make_index(kernel, trees)
        self.scales = _inverse_norms(kernel, index)
        forest = index.dag.forest if others is None else index.dag.forest.joined(others)
        self._kernel = kernel
        self._dag = Dag(forest, n_together=max(1, forest.n_trees))

    def weigh(self, coef: FloatArray) -> FloatArray:
        """Return, for each subtree, the sum over trees of its count times the coefficient of the tree."""
        bags = self._dag.bags
        amounts = np.repeat(coef, np.diff(bags.indptr)) * bags.counts
        return np.bincount(bags.ids, amounts, minlength=len(self._dag.symbols)).astype(np.float64)

    def find_heaviest(
        self, measures: Measures, power: float, limits: SearchLimits
    ) -> list[tuple[ConstTree, float]]:
        """Return the fragments with the largest absolute values in descending order, with these values.

        A value is the weight of the fragment to the power of `power`, times the sums of `measures` over its
        occurrences.
        """
        if self._kernel.fragments == "partial trees":
            return self._heaviest_partial(measures, power, limits)
        decay = float(self._kernel.decay**power)
        found = [*self._heaviest_whole(measures, decay, limits)]
        if self._kernel.fragments == "subset trees":
            found.extend(self._heaviest_grown(measures, decay, limits))
        found.sort(key=lambda each: -abs(each[1]))
        return found[: limits.n_fragments]

    def _heaviest_whole(
        self, measures: Measures, decay: float, limits: SearchLimits
    ) -> Iterator[tuple[ConstTree, float]]:
        """Yield the heaviest fragments that are whole subtrees, or single words if they are counted."""
        sizes = count_sizes(self._dag)
        is_leaf = np.diff(self._dag.subtrees.indptr) == 1
        is_wanted = is_leaf if self._kernel.fragments == "subset trees" else np.ones_like(is_leaf)
        if self._kernel.words != "bag":
            is_wanted = is_wanted & ~is_leaf
        if limits.max_size is not None:
            is_wanted = is_wanted & (sizes <= limits.max_size)
        values = np.where(is_wanted, measures.weights * decay ** sizes.astype(np.float64), 0.0)
        if len(measures.counts):
            values *= measures.counts
        order = np.argsort(-np.abs(values), kind="stable")[: limits.n_fragments]
        for subtree in order[values[order] != 0].tolist():
            yield _read_subtree(self._dag, subtree), float(values[subtree])

    def _heaviest_grown(
        self, measures: Measures, decay: float, limits: SearchLimits
    ) -> Iterator[tuple[ConstTree, float]]:
        """Yield the heaviest subset trees."""
        dag, kinds = self._dag, self._dag.productions.numbers.copy()
        is_inner = np.zeros(dag.n_symbols, dtype=np.bool_)
        is_inner[dag.symbols[kinds >= 0]] = True
        kinds[(kinds < 0) & ~is_inner[dag.symbols]] = WORD
        examples = np.zeros(dag.productions.n_kinds, dtype=np.int64)
        examples[kinds[kinds >= 0]] = np.flatnonzero(kinds >= 0)
        records, best, n_visits = mine_fragments(dag.subtrees, kinds, examples, measures, decay, limits.plain)
        _warn_stopped(n_visits, limits)
        for record in best.tolist():
            yield _read_record(dag, records, record), float(records.values[record])

    def _heaviest_partial(
        self, measures: Measures, power: float, limits: SearchLimits
    ) -> list[tuple[ConstTree, float]]:
        """Return the heaviest partial trees."""
        found, n_visits = find_heaviest_partial(self._dag, measures, self._kernel, power, limits.plain)
        _warn_stopped(n_visits, limits)
        return found


def _warn_stopped(n_visits: int, limits: SearchLimits) -> None:
    if n_visits > limits.max_visits:
        warnings.warn(
            f"the search stopped after {n_visits} fragments and may have missed heavy ones; "
            "a larger max_visits or a smaller max_size makes it complete",
            UserWarning,
            stacklevel=2,
        )


class FragmentCounter:
    """Counts given fragments in trees.

    Parameters
    ----------
    kernel : SubsetTreeKernel, SubtreeKernel or PartialTreeKernel
        The kernel that defines the fragments and their weights.
    fragments : sequence of ConstTree
        Distinct fragments.
    """

    def __init__(self, kernel: TreeKernel, fragments: Sequence[ConstTree]) -> None:
        self._kernel = kernel
        self._n_fragments = len(fragments)
        if kernel.fragments == "partial trees":
            self._scales: FloatArray = np.sqrt(weigh_fragments(kernel, list(fragments)))
            self._matcher = PartialMatcher(kernel.decay, list(fragments))
            return
        self._dag = Dag(Forest.from_trees(fragments), n_together=max(1, len(fragments)))
        # The root is the last subtree of a tree, since no other has as many nodes.
        roots = self._dag.bags.ids[self._dag.bags.indptr[1:] - 1]
        sizes = count_sizes(self._dag)[roots]
        self._scales = kernel.decay ** (sizes / 2)
        is_whole = np.diff(self._dag.subtrees.indptr)[roots] == 1
        if kernel.fragments == "subtrees":
            is_whole[:] = True
        self._whole = np.full(len(self._dag.symbols), -1, dtype=np.int32)
        self._whole[roots[is_whole]] = np.flatnonzero(is_whole)
        self._trie = _make_trie(self._dag, roots[~is_whole], np.flatnonzero(~is_whole).astype(np.int32))

    def transform(self, trees: Any) -> csr_matrix:  # noqa: ANN401
        """Return the scaled counts of fragments in trees: kernel features, (n_trees, n_fragments)."""
        index = _make_index(self._kernel, trees)
        counts = _held(index.dag) @ self._find(index.dag)
        return csr_matrix(diags(_inverse_norms(self._kernel, index)) @ counts @ diags(self._scales))

    def multiply(self, trees: Any, factors: FloatArray) -> FloatArray:  # noqa: ANN401
        """Return the product of the result of `transform` and a matrix, (n_trees, n_columns).

        It is faster than `transform`, because subtrees shared by several trees are multiplied only once.
        """
        index = _make_index(self._kernel, trees)
        products = _held(index.dag) @ (self._find(index.dag) @ (self._scales[:, None] * factors))
        return np.asarray(_inverse_norms(self._kernel, index)[:, None] * products, dtype=np.float64)

    def _find(self, dag: Dag) -> csr_matrix:
        """Return the counts of fragments rooted at each subtree, (n_subtrees, n_fragments)."""
        if self._kernel.fragments == "partial trees":
            return self._matcher.find(dag)
        shape = (len(dag.symbols), self._n_fragments)
        indptr, found = match_fragments(dag.subtrees, self._find_productions(dag), self._trie)
        at_root = csr_matrix((np.ones(len(found)), found, indptr), shape=shape)
        whole = self._find_whole(dag)
        rows = np.flatnonzero(whole >= 0)
        if len(rows):
            at_root = at_root + csr_matrix((np.ones(len(rows)), (rows, whole[rows])), shape=shape)
        return at_root

    def _find_whole(self, dag: Dag) -> Ints:
        """Return the index of the fragment equal to each whole subtree, or -1."""
        if (self._whole < 0).all():
            return np.full(len(dag.symbols), -1, dtype=np.int32)
        return _look_up(self._whole, find_subtrees(self._dag, dag))

    def _find_productions(self, dag: Dag) -> Ints:
        """Return the index of each subtree's production among the fragments' productions, or -1."""
        ours, others = self._dag.productions.sequences, dag.productions.sequences
        found = np.empty(dag.productions.n_kinds, dtype=np.int32)
        scratch = np.empty(int(np.diff(others.indptr).max(initial=0)), dtype=np.int32)
        find_sequences(ours, others, (find_symbols(self._dag, dag),), scratch, found)
        return _look_up(found, dag.productions.numbers)


def count_sizes(dag: Dag) -> Integers:
    """Return the exponent of the decay of each whole subtree: its number of inner nodes, at least 1."""
    sizes = np.empty(len(dag.symbols), dtype=np.int64)
    count_inner(dag.subtrees, sizes)
    return np.maximum(sizes, 1)


def _make_index(kernel: TreeKernel, trees: Any) -> TreeIndex:  # noqa: ANN401
    return kernel.pack(trees)._index


def _inverse_norms(kernel: TreeKernel, index: TreeIndex) -> FloatArray:
    """Return 1 / norm for each tree (0 for a norm of 0), or 1 if the kernel does not normalise."""
    n_trees = len(index.dag)
    if not kernel.normalize:
        return np.ones(n_trees)
    pairs = np.column_stack([np.arange(n_trees)] * 2)
    with np.errstate(over="ignore", invalid="ignore"):
        own = index.evaluate(pairs)
    large = np.flatnonzero(~np.isfinite(own))
    scales = np.divide(1.0, np.sqrt(own), out=np.zeros(n_trees), where=own > 0)
    if len(large):
        scales[large] = np.exp(-index.evaluate(pairs[large], is_log=True) / 2)
    return scales


def _held(dag: Dag) -> csr_matrix:
    """Return the counts of subtrees in each tree, (n_trees, n_subtrees)."""
    return csr_matrix((dag.bags.counts, dag.bags.ids, dag.bags.indptr), shape=(len(dag), len(dag.symbols)))


def _make_trie(dag: Dag, roots: npt.NDArray[np.int32], numbers: Ints) -> FragmentTrie:
    """Return a trie of the fragments with the given roots in a DAG."""
    stack = np.empty(int(np.diff(dag.forest.indptr).max(initial=1)), dtype=np.int32)
    n_nodes = 1 + int(count_sizes(dag)[roots].sum())
    for _ in range(2):  # again with less space, once it is known how much of the paths is shared
        table = np.full((1 << max(4, (2 * n_nodes).bit_length()), 4), -1, dtype=np.int32)
        trie = FragmentTrie(table, np.full(n_nodes, -1, dtype=np.int32), np.zeros(n_nodes, dtype=np.uint64))
        n_nodes = insert_fragments(dag.subtrees, dag.productions.numbers, roots, numbers, trie, stack)
    return trie


def _look_up(table: Ints, numbers: Ints) -> Ints:
    """Return the entries of a table at the given indices, and -1 for negative indices."""
    return np.append(table, np.int32(-1))[np.maximum(numbers, -1)]


def _read_subtree(dag: Dag, subtree: int) -> ConstTree:
    """Return a subtree of a DAG as a tree."""
    indptr, values = dag.subtrees.indptr, dag.subtrees.values
    labels, n_children, waiting = [], [], [subtree]
    while waiting:  # parents first and from right to left, which is post-order in reverse
        node = waiting.pop()
        symbol, *children = values[indptr[node] : indptr[node + 1]].tolist()
        labels.append(dag.forest.labels[symbol])
        n_children.append(len(children))
        waiting.extend(children)
    return ConstTree.from_child_counts(labels[::-1], n_children[::-1])


def _read_record(dag: Dag, records: Records, record: int) -> ConstTree:
    """Return a fragment found by the search as a tree."""
    expanded = {}
    while record >= 0:
        expanded[int(records.positions[record])] = int(records.kinds[record])
        record = int(records.parents[record])
    indptr, values = dag.productions.sequences.indptr, dag.productions.sequences.values
    waiting = [int(values[indptr[expanded[0]]])]
    labels: list[str] = []
    n_children = []
    while waiting:
        symbol, children = waiting.pop(), []
        kind = expanded.get(len(labels))
        if kind is not None:
            children = values[indptr[kind] + 1 : indptr[kind + 1]].tolist()
        labels.append(dag.forest.labels[symbol])
        n_children.append(len(children))
        waiting.extend(children)
    return ConstTree.from_child_counts(labels[::-1], n_children[::-1])
