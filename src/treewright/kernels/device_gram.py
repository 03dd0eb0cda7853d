"""Gram matrices of tree kernels on a PyTorch device, such as a GPU, tile by tile.

A tile contains the kernel values of some trees (rows) with others (columns). On each side, equal subtrees are
one node. Two nodes can share fragments only if they are in the same group: nodes with the same production for
subset trees, or with the same label for partial trees. The values of a row node with all column nodes of its
group are contiguous in one array, the store. The store is filled in the order of the heights of row nodes, so
that the values of children are available; all row nodes with the same height and number of children are
evaluated together. If the sparse matrices A and B contain the counts of nodes in trees, the tile is A S B',
where S contains the values of the store.

For partial trees, the store covers only fragments with more than one node. Single nodes, and all fragments of
the subtree kernel, are evaluated as products of counts, A diag(w) B'.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._naming import named
from treewright._optional import require
from treewright._typing import FloatArray, Integers
from treewright.data.forest import Ints
from treewright.errors import TROUBLESHOOTING, InputError
from treewright.kernels.base import Kernel
from treewright.kernels.convolution import (
    PackedTrees,
    PartialTreeKernel,
    SubsetTreeKernel,
    SubtreeKernel,
    TreeKernel,
)
from treewright.kernels.dag import Dag
from treewright.native.kernels.dags import Bags, count_inner

Matrix = npt.NDArray[np.floating[Any]]
MOST_TREES = 8192
"""Maximum number of trees on each side of a tile."""
HOST_MEMORY = 1 << 30
"""Memory limit in bytes for a device that does not report its free memory."""
FREE_SHARE = 0.8
"""Fraction of the free memory of a GPU that is used by default."""
VALUE = 8
"""Number of bytes per value."""
PAIR_BYTES = 96
"""Number of bytes per pair of nodes during its evaluation."""
PINNED = 1 << 26
"""Size in bytes of the pinned memory through which values leave a GPU."""
N_WRITERS = 2
"""Number of threads that write tiles, and maximum number of tiles that wait for them."""
CELL_BYTES = 72
"""Number of bytes per pair of children during the evaluation of a pair of nodes."""
BUCKETS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256])
"""Padded numbers of children for partial trees; after the last, each further number is twice the previous."""


class _Writer:
    """Writes tiles into a matrix in other threads, while the device evaluates the next tile.

    Values leave a GPU through pinned memory, and several threads copy them into the matrix. A plain copy of a
    large matrix takes longer than its evaluation.
    """

    def __init__(self, torch: Any, device: Any) -> None:  # noqa: ANN401
        self._torch, self._device = torch, device
        self._threads = ThreadPoolExecutor(N_WRITERS)
        self._pending: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._wait(0)
        finally:
            self._threads.shutdown()

    def write(self, values: Any, target: Matrix) -> None:  # noqa: ANN401
        """Copy values to a part of a matrix, as soon as the device has evaluated them."""
        is_ready = None
        if values.is_cuda:
            is_ready = self._torch.cuda.Event()
            is_ready.record()
        self._wait(N_WRITERS)
        self._pending.append(self._threads.submit(self._copy, values, target, is_ready))

    def _wait(self, n_pending: int) -> None:
        """Wait until at most `n_pending` tiles are unfinished."""
        while len(self._pending) > n_pending:
            self._pending.pop(0).result()

    def _copy(self, values: Any, target: Matrix, is_ready: Any) -> None:  # noqa: ANN401
        torch, found = self._torch, self._torch.from_numpy(target)
        if is_ready is None:
            found.copy_(values)
            return
        n_rows = max(1, PINNED // (target.itemsize * target.shape[1]))
        buffer = torch.empty((min(n_rows, len(target)), target.shape[1]), dtype=values.dtype, pin_memory=True)
        stream = torch.cuda.Stream(self._device)
        with torch.cuda.stream(stream):
            stream.wait_event(is_ready)
            for begin in range(0, len(target), n_rows):
                some = buffer[: len(target) - begin]
                some.copy_(values[begin : begin + n_rows], non_blocking=True)
                stream.synchronize()
                found[begin : begin + n_rows].copy_(some)


class Counts(NamedTuple):
    """Items of trees and their counts, sorted by item."""

    ids: Integers
    trees: Integers
    counts: FloatArray


class CountTerm(NamedTuple):
    """A term of the kernel that is a weighted product of counts."""

    bags: Bags
    weights: FloatArray


class DeviceGram:
    """Evaluates rectangular blocks of a Gram matrix on a PyTorch device, in double precision.

    Parameters
    ----------
    kernel : SubtreeKernel, SubsetTreeKernel or PartialTreeKernel
        The kernel to evaluate.
    examples, others : sequence of trees
        Rows and columns of the matrix. If `others` is omitted, `examples` are both rows and columns.
    device : str
        Name of the PyTorch device, such as "cuda", "cuda:1" or "cpu".
    memory : int, optional
        Memory limit on the device in bytes (default: 80% of the free memory of a GPU).

    Attributes
    ----------
    n_trees : int
        Maximum number of trees on each side of a tile.
    """

    def __init__(
        self,
        kernel: Kernel,
        examples: Any,  # noqa: ANN401
        others: Any = None,  # noqa: ANN401
        *,
        device: str,
        memory: int | None = None,
    ) -> None:
        self._kernel = check_device_kernel(kernel)
        self._torch = require("torch", "gpu")
        self._device = _find_device(self._torch, device)
        self._memory = _find_memory(self._torch, self._device) if memory is None else memory
        self._rows: PackedTrees = self._kernel.pack(examples)
        self._columns = self._rows if others is None else self._kernel.pack(others)
        forest = self._rows._forest
        self._first_column = 0
        if others is not None:
            forest, self._first_column = forest.joined(self._columns._forest), len(self._rows)
        self._dag = Dag(forest, n_together=max(1, forest.n_trees))
        self._nodes = None if self._kernel.fragments == "subtrees" else _Nodes(self._dag, self._kernel)
        self._terms = list(_find_count_terms(self._dag, self._kernel))
        self.n_trees = self._plan()
        self._kept: dict[tuple[int, int], _Side] = {}

    def _plan(self) -> int:
        """Return a number of trees per side for which the largest tile fits into memory."""
        n_trees = min(MOST_TREES, max(1, len(self._dag)))
        while True:
            needed = self._measure(n_trees)
            if needed <= self._memory:
                return n_trees
            if n_trees == 1:
                raise InputError(
                    f"the nodes of two trees take {needed} bytes on the device, more than {self._memory}; "
                    f"expected a larger {named('device_memory')}",
                    help=f"{TROUBLESHOOTING}#memory",
                )
            n_trees = -(-n_trees // 2)

    def _measure(self, n_trees: int) -> int:
        """Return an upper bound on the size in bytes of a tile with `n_trees` trees per side."""
        # A sum of products of sizes is at most the larger of both sums of squares.
        n_pairs = 0
        if self._nodes is not None:
            bags, groups = self._dag.bags, self._nodes.groups
            for begin in range(0, len(self._dag), n_trees):
                ends = bags.indptr[[begin, min(begin + n_trees, len(self._dag))]]
                found = groups[np.unique(bags.ids[ends[0] : ends[1]])]
                sizes = np.bincount(found[found >= 0])
                n_pairs = max(n_pairs, int((sizes.astype(np.int64) ** 2).sum()))
        # Besides the tile under evaluation, some finished tiles wait to be written.
        return 2 * VALUE * n_pairs + (12 + 2 * N_WRITERS) * VALUE * n_trees**2

    @property
    def _room(self) -> int:
        """Number of bytes available for values that are evaluated together."""
        return self._memory // 4

    def fill(
        self,
        matrix: Matrix,
        rows: slice,
        columns: slice,
        *,
        is_symmetric: bool,
        convert: Callable[[Matrix], Matrix],
    ) -> None:
        """Write the kernel values of a range of rows and a range of columns into a matrix.

        Parameters
        ----------
        matrix : ndarray, (n_examples, n_others)
            The matrix.
        rows, columns : slice
            The ranges of rows (at most `n_trees`) and columns.
        is_symmetric : bool
            The columns begin with the rows, and values are also written to their transposed places.
        convert : callable
            Converts values to the type of the matrix, and rejects values that it cannot represent.
        """
        begin, end, offset = rows.start, rows.stop, self._first_column
        side = self._get_side(begin, end)
        tiles = self._divide(columns)
        if is_symmetric:
            tiles = [(begin, end), *self._divide(slice(end, columns.stop))]
        with _Writer(self._torch, self._device) as writer:
            for first, last in tiles:
                is_diagonal = is_symmetric and first == begin
                other = side if is_diagonal else self._get_side(first + offset, last + offset)
                tile = self._evaluate_tile(side, other)
                if is_diagonal:
                    tile = tile.triu() + tile.triu(1).T
                tile = self._finish(tile, slice(begin, end), slice(first, last), matrix.dtype, convert)
                writer.write(tile, matrix[begin:end, first:last])
                if is_symmetric and not is_diagonal:
                    writer.write(tile.T.contiguous(), matrix[first:last, begin:end])

    def _finish(
        self,
        tile: Any,  # noqa: ANN401
        rows: slice,
        columns: slice,
        dtype: np.dtype[Any],
        convert: Callable[[Matrix], Matrix],
    ) -> Any:  # noqa: ANN401
        """Normalise the values of a tile if the kernel is normalised; otherwise, reject infinite values."""
        scales = self._scales if self._kernel.normalize else None
        if scales is None:
            numbers = np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop)
            values = self._columns._finish(tile.cpu().numpy(), self._rows, *numbers)
            return self._torch.from_numpy(convert(values))
        tile *= self._put(scales[0][rows])[:, None]
        tile *= self._put(scales[1][columns])
        return tile.to(getattr(self._torch, dtype.name))

    @cached_property
    def _scales(self) -> tuple[FloatArray, FloatArray] | None:
        """Normalisation factors of rows and columns; None if the value of a tree with itself overflows."""
        own = [packed._raw_diagonal() for packed in (self._rows, self._columns)]
        if not all(np.isfinite(each).all() for each in own):
            return None
        rows, columns = (
            np.divide(1.0, np.sqrt(each), out=np.zeros_like(each), where=each > 0) for each in own
        )
        return rows, columns

    def _divide(self, columns: slice) -> list[tuple[int, int]]:
        """Split the columns at multiples of `n_trees`, so that the data of each range can be reused."""
        size = self.n_trees
        if columns.start == columns.stop:
            return []
        inner = range((columns.start // size + 1) * size, columns.stop, size)
        return list(pairwise([columns.start, *inner, columns.stop]))

    def _get_side(self, begin: int, end: int) -> "_Side":
        side = self._kept.get((begin, end))
        if side is None:
            side = _Side(self._dag, self._nodes, self._terms, begin, end)
            if end - begin == self.n_trees:
                self._kept[begin, end] = side
        return side

    def _evaluate_tile(self, rows: "_Side", columns: "_Side") -> Any:  # noqa: ANN401
        torch = self._torch
        tile = torch.zeros((rows.n_trees, columns.n_trees), dtype=torch.float64, device=self._device)
        for number, term in enumerate(self._terms):
            self._add_counts(tile, rows.counts[number], columns.counts[number], term.weights)
        if self._nodes is not None and len(rows.nodes) and len(columns.nodes):
            kind = _PartialTile if isinstance(self._kernel, PartialTreeKernel) else _SubsetTile
            kind(torch, self._device, self._room, self._kernel, rows, columns).add_to(tile)
        return tile

    def _add_counts(self, tile: Any, rows: Counts, columns: Counts, weights: FloatArray) -> None:  # noqa: ANN401
        """Add the products of the counts of items that occur on both sides."""
        torch, n_columns = self._torch, tile.shape[1]
        shared = np.intersect1d(rows.ids, columns.ids)
        size = max(1, self._room // (2 * VALUE * n_columns))
        for begin in range(0, len(shared), size):
            some = shared[begin : begin + size]
            dense = torch.zeros((len(some), n_columns), dtype=torch.float64, device=self._device)
            chosen, numbers = _choose(columns, some)
            values = columns.counts[chosen] * weights[columns.ids[chosen]]
            places = self._put(numbers * n_columns + columns.trees[chosen])
            dense.view(-1)[places] = self._put(values)  # each place once
            chosen, numbers = _choose(rows, some)
            sparse = self._make_sparse(
                rows.trees[chosen], numbers, rows.counts[chosen], (tile.shape[0], len(some))
            )
            tile += torch.sparse.mm(sparse, dense)

    def _put(self, array: Any) -> Any:  # noqa: ANN401
        return self._torch.as_tensor(array, device=self._device)

    def _make_sparse(
        self, rows: Integers, columns: Integers, values: FloatArray, shape: tuple[int, int]
    ) -> Any:  # noqa: ANN401
        return make_sparse(self._torch, self._device, rows, columns, values, shape)


def make_sparse(
    torch: Any,  # noqa: ANN401
    device: Any,  # noqa: ANN401
    rows: Integers,
    columns: Integers,
    values: FloatArray,
    shape: tuple[int, int],
) -> Any:  # noqa: ANN401
    """Return a sparse matrix on a device."""
    order = np.lexsort((columns, rows))
    places = torch.as_tensor(np.stack([rows[order], columns[order]]), device=device)
    numbers = torch.as_tensor(values[order], device=device)
    return torch.sparse_coo_tensor(places, numbers, shape, check_invariants=False, is_coalesced=True)


def check_device_kernel(kernel: Kernel) -> TreeKernel:
    """Return the kernel if it can be evaluated on a device; reject others."""
    kinds = (SubtreeKernel, SubsetTreeKernel, PartialTreeKernel)
    if type(kernel) not in kinds:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise InputError(
            f"{type(kernel).__name__} cannot be evaluated on a PyTorch device; expected one of {names}, "
            f"or no {named('device')}"
        )
    assert isinstance(kernel, TreeKernel)
    return kernel


def _find_device(torch: Any, name: str) -> Any:  # noqa: ANN401
    """Return a PyTorch device; reject one that cannot be used."""
    if str(name).startswith("cuda") and not torch.cuda.is_available():
        raise InputError(
            f"{named('device')} is {name!r}, but PyTorch finds no CUDA GPU; expected a GPU, or no device"
        )
    try:
        torch.zeros(1, dtype=torch.float64, device=name)
        return torch.device(name)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        expected = f"expected a device that PyTorch can use ({reason})"
        raise InputError(f"{named('device')} is {name!r}; {expected}") from error


def _find_memory(torch: Any, device: Any) -> int:  # noqa: ANN401
    if device.type == "cuda":
        return int(FREE_SHARE * torch.cuda.mem_get_info(device)[0])
    return HOST_MEMORY


def _find_count_terms(dag: Dag, kernel: TreeKernel) -> Iterator[CountTerm]:
    """Yield the terms of a kernel that are weighted products of counts."""
    if kernel.fragments == "subtrees":
        sizes = np.empty(len(dag.symbols), dtype=np.int64)
        count_inner(dag.subtrees, sizes)
        weights = kernel.decay ** sizes.astype(np.float64)
        weights[sizes == 0] = kernel.decay if kernel.words == "bag" else 0.0
        yield CountTerm(dag.bags, weights)
    elif isinstance(kernel, PartialTreeKernel):
        yield CountTerm(dag.symbol_bags, np.full(dag.n_symbols, kernel.depth_decay * kernel.decay**2))
    elif kernel.words == "bag":
        yield CountTerm(dag.word_bags, np.full(dag.n_symbols, kernel.decay))


def _choose(counts: Counts, ids: Integers) -> tuple[Integers, Integers]:
    """Return the indices of entries whose ids are in `ids` (sorted), and their positions in `ids`."""
    places = np.searchsorted(ids, counts.ids)
    is_there = ids[np.minimum(places, len(ids) - 1)] == counts.ids
    chosen = np.flatnonzero(is_there)
    return chosen, places[chosen]


class _Nodes:
    """Groups (-1 for leaves), heights and padded numbers of children of the distinct subtrees."""

    def __init__(self, dag: Dag, kernel: TreeKernel) -> None:
        productions = dag.productions.numbers
        self.is_partial = isinstance(kernel, PartialTreeKernel)
        self.groups: Ints = np.where(productions >= 0, dag.symbols, -1) if self.is_partial else productions
        self.n_groups = dag.n_symbols if self.is_partial else dag.productions.n_kinds
        self.n_children = np.diff(dag.subtrees.indptr) - 1
        self.heights = _find_heights(dag)
        sizes = self.n_children
        self.widths = _round_up(sizes) if self.is_partial else sizes
        self.all_widths = np.unique(self.widths[sizes > 0])


def _find_heights(dag: Dag) -> Integers:
    """Return the height of each distinct subtree, 0 for leaves."""
    indptr, values = dag.subtrees.indptr, dag.subtrees.values
    sizes = np.diff(indptr) - 1
    owners = np.repeat(np.arange(len(sizes)), sizes)
    is_first = np.zeros(len(values), dtype=np.bool_)
    is_first[indptr[:-1]] = True
    children = values[~is_first]
    heights: Integers = np.zeros(len(sizes), dtype=np.int64)
    while True:  # as often as the highest tree has levels
        raised = np.zeros_like(heights)
        np.maximum.at(raised, owners, heights[children] + 1)
        if np.array_equal(raised, heights):
            return heights
        heights = raised


def _round_up(sizes: Integers) -> Integers:
    """Return the numbers of children after padding."""
    buckets = BUCKETS
    while buckets[-1] < sizes.max(initial=0):
        buckets = np.append(buckets, 2 * buckets[-1])
    return np.asarray(buckets[np.searchsorted(buckets, sizes)])


class _Side:
    """Some trees as one side of a tile.

    Nodes are sorted by group and width, and entries by node. `order` sorts the nodes by height and width; row
    nodes are evaluated in this order.
    """

    def __init__(self, dag: Dag, nodes: _Nodes | None, terms: list[CountTerm], begin: int, end: int) -> None:
        self.n_trees = end - begin
        self.counts = [_take_counts(term.bags, term.weights != 0, begin, end) for term in terms]
        self.nodes = np.empty(0, dtype=np.int64)
        if nodes is not None:
            self._set_nodes(dag, nodes, begin, end)

    def _set_nodes(self, dag: Dag, nodes: _Nodes, begin: int, end: int) -> None:
        entries = _take_counts(dag.bags, nodes.groups >= 0, begin, end)
        found = np.unique(entries.ids)
        self.nodes = found[np.lexsort((nodes.widths[found], nodes.groups[found]))]
        ranks = np.empty(len(found), dtype=np.int64)
        ranks[np.searchsorted(found, self.nodes)] = np.arange(len(found))
        self.groups = nodes.groups[self.nodes].astype(np.int64)
        self.widths, self.n_children = nodes.widths[self.nodes], nodes.n_children[self.nodes]
        self.all_widths = nodes.all_widths
        self.group_sizes = np.bincount(self.groups, minlength=nodes.n_groups)
        self.group_starts = np.cumsum(self.group_sizes) - self.group_sizes
        self.positions = np.arange(len(self.nodes)) - self.group_starts[self.groups]
        self.order = np.lexsort((self.groups, self.widths, nodes.heights[self.nodes]))
        keys = np.stack([nodes.heights[self.nodes], self.widths])[:, self.order]
        starts = np.flatnonzero((np.diff(keys, axis=1, prepend=-1) != 0).any(axis=0))
        self.runs = list(pairwise([*starts.tolist(), len(self.order)]))
        self._set_children(dag, nodes, found, ranks)
        own = ranks[np.searchsorted(found, entries.ids)]
        by_node = np.argsort(own, kind="stable")
        self.entries = Counts(own[by_node], entries.trees[by_node], entries.counts[by_node])
        n_entries = np.bincount(self.groups[self.entries.ids], minlength=nodes.n_groups)
        self.entry_sizes, self.entry_starts = n_entries, np.cumsum(n_entries) - n_entries

    def _set_children(self, dag: Dag, nodes: _Nodes, found: Integers, ranks: Integers) -> None:
        sizes = self.n_children
        self.child_starts = np.cumsum(sizes) - sizes
        first = dag.subtrees.indptr[self.nodes] + 1
        slots = np.repeat(first - self.child_starts, sizes) + np.arange(sizes.sum())
        children = dag.subtrees.values[slots]
        self.child_symbols = dag.symbols[children].astype(np.int64)
        self.child_groups = nodes.groups[children].astype(np.int64)
        is_inner = self.child_groups >= 0
        self.child_nodes = np.full(len(children), -1, dtype=np.int64)
        self.child_nodes[is_inner] = ranks[np.searchsorted(found, children[is_inner])]

    @cached_property
    def width_starts(self) -> dict[int, tuple[Integers, Integers]]:
        """For each width, the start and the number of its nodes in each group."""
        found = {}
        for width in self.all_widths.tolist():
            groups = self.groups
            before = np.bincount(groups[self.widths < width], minlength=len(self.group_sizes))
            found[width] = (before, np.bincount(groups[self.widths == width], minlength=len(before)))
        return found


def _take_counts(bags: Bags, is_kept: Any, begin: int, end: int) -> Counts:  # noqa: ANN401
    """Return the items of a range of trees, sorted by item."""
    first, last = bags.indptr[begin], bags.indptr[end]
    ids = bags.ids[first:last].astype(np.int64)
    trees = np.repeat(np.arange(end - begin), np.diff(bags.indptr[begin : end + 1]))
    chosen = np.flatnonzero(is_kept[ids])
    chosen = chosen[np.argsort(ids[chosen], kind="stable")]
    return Counts(ids[chosen], trees[chosen], bags.counts[first:last][chosen])


class _Tile:
    """Evaluates the pairs of nodes of a tile."""

    def __init__(
        self,
        torch: Any,  # noqa: ANN401
        device: Any,  # noqa: ANN401
        room: int,
        kernel: Any,  # noqa: ANN401
        rows: _Side,
        columns: _Side,
    ) -> None:
        self._torch, self._device, self._room = torch, device, room
        self._kernel, self._rows, self._columns = kernel, rows, columns
        self._sizes = columns.group_sizes[rows.groups]
        self._offsets = np.empty_like(self._sizes)
        ordered = self._sizes[rows.order]
        self._offsets[rows.order] = np.cumsum(ordered) - ordered
        n_values = int(ordered.sum())
        self._store = torch.zeros(n_values + 1, dtype=torch.float64, device=device)
        self._row_children = {
            "groups": self._put(rows.child_groups),
            "symbols": self._put(rows.child_symbols),
            "offsets": self._put(_look_up(self._offsets, rows.child_nodes)),
        }
        self._column_children = {
            "groups": self._put(columns.child_groups),
            "symbols": self._put(columns.child_symbols),
            "positions": self._put(_look_up(columns.positions, columns.child_nodes)),
        }
        self._column_starts = self._put(columns.child_starts)

    def _put(self, array: Any) -> Any:  # noqa: ANN401
        return self._torch.as_tensor(array, device=self._device)

    def _pair_up(self, sizes: Integers) -> tuple[Any, Any]:
        """Return the row of each pair, and the index of its partner among the partners of the row."""
        torch, total = self._torch, int(sizes.sum())
        starts = self._put(np.cumsum(sizes) - sizes)
        rows = torch.repeat_interleave(
            torch.arange(len(sizes), device=self._device), self._put(sizes), output_size=total
        )
        return rows, torch.arange(total, device=self._device) - starts[rows]

    def add_to(self, tile: Any) -> None:  # noqa: ANN401
        """Evaluate all pairs of nodes, and add their values to the tile."""
        for begin, end in self._rows.runs:
            self._fill(self._rows.order[begin:end])
        self._spread(tile)

    def _fill(self, nodes: Integers) -> None:
        """Evaluate row nodes that have the same height and width."""
        raise NotImplementedError

    def _spread(self, tile: Any) -> None:  # noqa: ANN401
        """Add the values of pairs of nodes to the pairs of trees that contain them."""
        torch, rows, columns, n_columns = self._torch, self._rows, self._columns, tile.shape[1]
        is_active = self._sizes > 0
        active = np.flatnonzero(is_active)
        sizes = columns.entry_sizes[rows.groups[active]]
        costs = 2 * VALUE * n_columns + 48 * sizes
        entry_nodes = self._put(columns.positions[columns.entries.ids])
        entry_trees, entry_counts = self._put(columns.entries.trees), self._put(columns.entries.counts)
        entry_bounds = np.searchsorted(rows.entries.ids, np.arange(len(rows.nodes) + 1))
        for begin, end in _divide(costs, self._room):
            some = active[begin:end]
            numbers, places = self._pair_up(sizes[begin:end])
            entries = self._put(columns.entry_starts[rows.groups[some]])[numbers] + places
            values = self._store[self._put(self._offsets[some])[numbers] + entry_nodes[entries]]
            dense = torch.zeros(len(some) * n_columns, dtype=torch.float64, device=self._device)
            dense.index_add_(0, numbers * n_columns + entry_trees[entries], values * entry_counts[entries])
            owned = np.arange(entry_bounds[some[0]], entry_bounds[some[-1] + 1])
            owned = owned[is_active[rows.entries.ids[owned]]]
            sparse = make_sparse(
                torch,
                self._device,
                rows.entries.trees[owned],
                np.searchsorted(some, rows.entries.ids[owned]),
                rows.entries.counts[owned],
                (tile.shape[0], len(some)),
            )
            tile += torch.sparse.mm(sparse, dense.view(len(some), n_columns))


def _look_up(table: Integers, numbers: Integers) -> Integers:
    """Return the entries of a table at the given indices, and -1 for negative indices."""
    return np.append(table, -1)[numbers]


def _divide(costs: Integers, room: int) -> Iterator[tuple[int, int]]:
    """Split a sequence into ranges that fit into memory, each with at least one item."""
    sums = np.cumsum(costs)
    begin = 0
    while begin < len(costs):
        before = sums[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(sums, before + room, side="right")))
        yield begin, end
        begin = end


class _SubsetTile(_Tile):
    """Subset trees: paired nodes have the same production, so children are compared by position."""

    def _fill(self, nodes: Integers) -> None:
        torch, rows, columns = self._torch, self._rows, self._columns
        nodes = nodes[self._sizes[nodes] > 0]
        sizes = self._sizes[nodes]
        mine, his = self._row_children, self._column_children
        for begin, end in _divide(PAIR_BYTES * sizes, self._room):
            some = nodes[begin:end]
            numbers, places = self._pair_up(sizes[begin:end])
            others = self._put(columns.group_starts[rows.groups[some]])[numbers] + places
            first, other_first = self._put(rows.child_starts[some]), self._column_starts[others]
            values = torch.full(
                (len(numbers),), float(self._kernel.decay), dtype=torch.float64, device=self._device
            )
            for child in range(int(rows.n_children[some[0]])):
                if (rows.child_groups[rows.child_starts[some] + child] < 0).all():
                    continue  # leaves
                slots, other_slots = first + child, other_first + child
                group = mine["groups"][slots]
                is_same = (group[numbers] == his["groups"][other_slots]) & (group >= 0)[numbers]
                at = mine["offsets"][slots][numbers] + his["positions"][other_slots]
                below = self._store[torch.where(is_same, at, 0)]
                values *= 1 + torch.where(is_same, below, 0.0)
            start = int(self._offsets[some[0]])
            self._store[start : start + len(values)] = values


class _PartialTile(_Tile):
    """Partial trees: paired nodes have the same label; all pairs of child subsequences are compared."""

    def _fill(self, nodes: Integers) -> None:
        rows, width = self._rows, int(self._rows.widths[nodes[0]])
        for other_width, (starts, sizes) in self._columns.width_starts.items():
            some_sizes = sizes[rows.groups[nodes]]
            chosen = nodes[some_sizes > 0]
            some_sizes = some_sizes[some_sizes > 0]
            costs = (PAIR_BYTES + CELL_BYTES * other_width) * some_sizes
            for begin, end in _divide(costs, self._room):
                self._fill_pairs(chosen[begin:end], some_sizes[begin:end], starts, width, other_width)

    def _fill_pairs(
        self, nodes: Integers, sizes: Integers, starts: Integers, width: int, other_width: int
    ) -> None:
        """Evaluate row nodes with the column nodes of one width."""
        torch, rows, columns, kernel = self._torch, self._rows, self._columns, self._kernel
        groups = rows.groups[nodes]
        numbers, places = self._pair_up(sizes)
        places += self._put(starts[groups])[numbers]
        others = self._put(columns.group_starts[groups])[numbers] + places
        steps = torch.arange(other_width, device=self._device)
        is_there = steps < self._put(columns.n_children)[others][:, None]
        slots = torch.where(is_there, self._column_starts[others][:, None] + steps, 0)
        symbols = torch.where(is_there, self._column_children["symbols"][slots], -2)
        positions = self._column_children["positions"][slots]
        sums = _Subsequences(torch, len(numbers), other_width, kernel, self._device)
        leaf = float(kernel.depth_decay * kernel.decay**2)
        n_children, first = self._put(rows.n_children[nodes]), self._put(rows.child_starts[nodes])
        for child in range(width):
            has_child = child < n_children
            own_slots = torch.where(has_child, first + child, 0)
            symbol = torch.where(has_child, self._row_children["symbols"][own_slots], -1)[numbers][:, None]
            offset = self._row_children["offsets"][own_slots][numbers][:, None]
            is_same = symbol == symbols
            is_inner = is_same & (offset >= 0) & (positions >= 0)
            below = self._store[torch.where(is_inner, offset + positions, 0)]
            sums.add(is_same.to(torch.float64) * leaf + torch.where(is_inner, below, 0.0))
        self._store[self._put(self._offsets[nodes])[numbers] + places] = (
            float(kernel.depth_decay) * sums.total
        )


class _Subsequences:
    """Sums over pairs of child subsequences, updated for each child of the row node (Moschitti 2006).

    `_ending[p]` contains the sums over subsequences of p + 1 children (of any length if there is no maximum)
    that end in one of the previous children. Column j covers the first j + 1 children of the other node, and
    includes the decay of gaps up to that child.
    """

    def __init__(self, torch: Any, n_pairs: int, width: int, kernel: Any, device: Any) -> None:  # noqa: ANN401
        self._torch, self._gap = torch, float(kernel.decay)
        self._has_limit = kernel.max_children is not None
        n_lengths = min(kernel.max_children, width) if self._has_limit else 1
        options = {"dtype": torch.float64, "device": device}
        self._ending = [torch.zeros((n_pairs, width), **options) for _ in range(n_lengths)]
        steps = torch.arange(width, device=device)
        distances = steps - steps[:, None]
        powers = self._gap ** distances.clamp(min=0).to(torch.float64)
        self._gaps = torch.where(distances >= 0, powers, 0.0)
        self.total = torch.zeros(n_pairs, **options)

    def add(self, deltas: Any) -> None:  # noqa: ANN401
        """Add the subsequences that end in the next child; `deltas` are its values with other children."""
        for length in range(len(self._ending) - 1, -1, -1):
            values = deltas
            if length or not self._has_limit:
                before = self._torch.nn.functional.pad(self._ending[max(length - 1, 0)][:, :-1], (1, 0))
                values = deltas * (before if self._has_limit else 1 + before)
            self._ending[length] = values @ self._gaps + self._gap * self._ending[length]
            self.total += values.sum(dim=1)
