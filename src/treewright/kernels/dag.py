"""Forests in which equal subtrees are stored once (DAGs), and the indices for comparing trees with them."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import Integers
from treewright.data.forest import Forest, Ints
from treewright.native.kernels.bags import Postings, Sorted
from treewright.native.kernels.dags import (
    Bags,
    PostorderNodes,
    Sequences,
    count_kinds,
    find_sequences,
    intern_subtrees,
    number_edges,
    number_productions,
)
from treewright.native.kernels.ptk import Blocks
from treewright.native.kernels.sst import Followers, Listing

Heights = npt.NDArray[np.int8]
CHUNK = 512
"""Number of trees per chunk, within which equal subtrees are shared; the tables of a chunk fit in a cache."""


class Kinds(NamedTuple):
    """The kind of each item (-1 for none), the number of kinds, and the sequence that defines each kind."""

    numbers: Ints
    n_kinds: int
    sequences: Sequences


class Dag:
    """The distinct subtrees of a forest, with children before parents.

    Parameters
    ----------
    forest : Forest
        The trees.
    n_together : int
        Number of consecutive trees (a chunk) in which equal subtrees are shared.

    Attributes
    ----------
    subtrees : Sequences
        For each subtree, its symbol and the indices of its children.
    bags : Bags
        The subtrees of each tree, children before parents.
    symbols : ndarray of int32
        The symbol of each subtree.
    last : ndarray of int32
        The last tree that contains each subtree.
    """

    def __init__(self, forest: Forest, *, n_together: int = CHUNK) -> None:
        self.forest = forest
        self.n_together = n_together
        n_nodes, n_trees = len(forest.symbols), forest.n_trees
        starts = np.append(np.arange(0, n_trees, n_together), n_trees)
        biggest = int(np.diff(forest.indptr).max(initial=0))
        subtrees = _make_sequences(
            n_nodes, 2 * n_nodes + 1, int(np.diff(forest.indptr[starts]).max(initial=0))
        )
        bags = _make_bags(n_trees, n_nodes)
        own, places = np.empty(biggest, dtype=np.int32), np.empty(n_nodes, dtype=np.int64)
        last = np.full(n_nodes, -1, dtype=np.int32)
        nodes = PostorderNodes(forest.symbols, forest.sizes, forest.indptr)
        n, n_bag = intern_subtrees(nodes, n_together, subtrees, bags, own, last, places)
        self.subtrees = _shorten(subtrees, n)
        self.bags = Bags(bags.indptr, bags.ids[:n_bag], bags.counts[:n_bag])
        self.last = last[:n]
        self.symbols = self.subtrees.values[self.subtrees.indptr[:-1]]
        self._chunks = starts

    def __len__(self) -> int:
        return self.forest.n_trees

    @property
    def n_symbols(self) -> int:
        """Number of distinct labels."""
        return len(self.forest.labels)

    @cached_property
    def productions(self) -> Kinds:
        """The production of each inner subtree."""
        numbers = np.empty(len(self.symbols), dtype=np.int32)
        n_values = len(self.subtrees.values)
        sequences = _make_sequences(len(numbers), n_values + 1, len(numbers))
        n = number_productions(self.subtrees, sequences, numbers)
        return Kinds(numbers, n, _shorten(sequences, n))

    @cached_property
    def edges(self) -> Kinds:
        """The edge to each child in `subtrees.values`; -1 for leaves.

        An edge consists of the productions of parent and child, and the position of the child.
        """
        n_values = len(self.subtrees.values)
        slots = np.empty(n_values, dtype=np.int32)
        sequences = _make_sequences(n_values, 3 * n_values + 3, n_values)
        n = number_edges(self.subtrees, self.productions.numbers, sequences, slots)
        return Kinds(slots, n, _shorten(sequences, n))

    @cached_property
    def pairs(self) -> tuple[Ints, Integers]:
        """The symbol pair (parent, child) in each slot of productions, and the codes of all pairs.

        The parent's own slot has the pair -1.
        """
        productions = self.productions.sequences
        starts = productions.indptr[:-1]
        parents = np.repeat(productions.values[starts], np.diff(productions.indptr)).astype(np.int64)
        codes = parents * self.n_symbols + productions.values
        codes[starts] = -1
        known, numbers = np.unique(codes, return_inverse=True)
        n_own = int(len(known) > 0 and known[0] < 0)
        return (numbers - n_own).astype(np.int32), known[n_own:]

    @cached_property
    def production_bags(self) -> Bags:
        """The productions of each tree."""
        return self.count(self.productions.numbers, self.productions.n_kinds)

    @cached_property
    def symbol_bags(self) -> Bags:
        """The symbols of each tree."""
        return self.count(self.symbols, self.n_symbols)

    @cached_property
    def word_bags(self) -> Bags:
        """The symbols of the leaves of each tree."""
        return self.count(np.where(self.productions.numbers < 0, self.symbols, -1), self.n_symbols)

    def count(self, kinds: Ints, n_kinds: int) -> Bags:
        """Count the subtrees of each kind in each tree."""
        bags = _make_bags(len(self), len(self.bags.ids))
        seen, places = np.full(n_kinds, -1, dtype=np.int32), np.empty(n_kinds, dtype=np.int64)
        n = count_kinds(self.bags, kinds, bags, seen, places)
        return Bags(bags.indptr, bags.ids[:n], bags.counts[:n])

    @cached_property
    def order(self) -> Integers:
        """The inner subtrees, sorted by chunk, symbol, production, and last tree in descending order."""
        inner = np.flatnonzero(self.productions.numbers >= 0)
        chunks = self.last[inner] // self.n_together
        keys = (-self.last[inner], self.productions.numbers[inner], self.symbols[inner], chunks)
        return inner[_sort(keys)]

    @cached_property
    def _owners(self) -> Integers:
        """The chunk of each position in the listing."""
        chunks: Integers = self.last[self.order].astype(np.int64) // self.n_together
        return chunks

    @cached_property
    def _slots(self) -> tuple[Integers, Integers]:
        """The first slot of each position in the listing, and the index of each slot in `subtrees.values`."""
        begin = self.subtrees.indptr[self.order] + 1
        sizes = self.subtrees.indptr[self.order + 1] - begin
        indptr = _starts(sizes)
        return indptr, np.repeat(begin - indptr[:-1], sizes) + np.arange(indptr[-1])

    @cached_property
    def listing(self) -> Listing:
        """The inner subtrees in sorted order, with lookup tables."""
        order, kinds = self.order, self.productions.numbers
        places = np.full(len(self.symbols), -1, dtype=np.int32)
        places[order] = np.arange(len(order))
        n_chunks, n_kinds = len(self._chunks) - 1, self.productions.n_kinds
        keys = self._owners * n_kinds + kinds[order]
        bounds = _bounds(keys, n_chunks * n_kinds)
        indptr, slots = self._slots
        children = self.subtrees.values[slots]
        postings = self.postings(self.bags, places, len(order))
        return Listing(
            self._chunks,
            bounds[0].reshape(n_chunks, n_kinds),
            bounds[1].reshape(n_chunks, n_kinds),
            self.last[order],
            indptr,
            kinds[children],
            places[children],
            *postings,
        )

    def postings(self, bags: Bags, numbers: Ints, n_numbers: int) -> Postings:
        """Return the trees that contain each item of the bags; items with a negative index are skipped."""
        found = numbers[bags.ids]
        trees = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(bags.indptr))
        counts = bags.counts
        if (found < 0).any():
            is_kept = found >= 0
            found, trees, counts = found[is_kept], trees[is_kept], counts[is_kept]
        order = np.argsort(found, kind="stable")
        indptr = _starts(np.bincount(found, minlength=n_numbers))
        return Postings(indptr, trees[order], counts[order])

    @cached_property
    def followers(self) -> Followers:
        """The positions in the listing, grouped by the edges to their children."""
        indptr, slots = self._slots
        edges = self.edges.numbers[slots]
        is_edge = edges >= 0
        places = np.repeat(np.arange(len(self.order), dtype=np.int32), np.diff(indptr))[is_edge]
        edges = edges[is_edge]
        order = _sort((-self.last[self.order][places], edges, self._owners[places]))
        return Followers(self._by_chunk(self._owners[places], edges, self.edges.n_kinds), places[order])

    @cached_property
    def blocks(self) -> Blocks:
        """Blocks of positions in the listing with the same production, by symbol and by symbol pair."""
        order, kinds, symbols = self.order, self.productions.numbers, self.symbols
        keys = self._owners * self.productions.n_kinds + kinds[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        owners = self._owners[starts]
        by_symbol = self._by_chunk(owners, symbols[order[starts]], self.n_symbols)
        places = np.append(starts, len(order))
        _, slots = self._slots
        children = self.subtrees.values[slots]
        ends = places[by_symbol[np.repeat(self._owners, np.diff(self._slots[0])), symbols[children] + 1]]
        child_places = np.where(kinds[children] >= 0, self.listing.child_places, ends).astype(np.int32)
        pair_indptr, pair_blocks = self._blocks_by_pair(starts, owners)
        return Blocks(by_symbol, places, symbols[children], child_places, pair_indptr, pair_blocks)

    def _blocks_by_pair(self, starts: Integers, owners: Integers) -> tuple[Integers, Ints]:
        """Return, for each chunk and symbol pair, the blocks whose production contains the pair."""
        numbers, known = self.pairs
        production_indptr = self.productions.sequences.indptr
        kinds = self.productions.numbers[self.order[starts]]
        begin = production_indptr[kinds] + 1
        sizes = production_indptr[kinds + 1] - begin
        slots = np.repeat(begin - _starts(sizes)[:-1], sizes) + np.arange(sizes.sum())
        blocks = np.repeat(np.arange(len(starts)), sizes)
        pairs = numbers[slots]
        order = _sort((blocks, -self.last[self.order[starts]][blocks], pairs, owners[blocks]))
        pairs, blocks = pairs[order], blocks[order]
        is_new = (np.diff(blocks, prepend=-1) != 0) | (np.diff(pairs, prepend=-1) != 0)
        pairs, blocks = pairs[is_new], blocks[is_new]
        return self._by_chunk(owners[blocks], pairs, len(known)), blocks.astype(np.int32)

    def _by_chunk(self, chunks: Integers, numbers: npt.NDArray[np.signedinteger], n_numbers: int) -> Integers:
        """Return the start offsets by chunk (row) and index (column), and the ends as the last column."""
        n_chunks = len(self._chunks) - 1
        keys = chunks * n_numbers + numbers
        indptr = _starts(np.bincount(keys, minlength=n_chunks * n_numbers))
        begin = np.arange(n_chunks)[:, None] * n_numbers + np.arange(n_numbers + 1)
        found: Integers = indptr[begin]
        return found

    def sort_bags(self, bags: Bags, kinds: Ints) -> Sorted:
        """Return the items of each tree's bag, sorted by kind."""
        trees = np.repeat(np.arange(len(self)), np.diff(bags.indptr))
        order = _sort((kinds[bags.ids], trees))
        ids = bags.ids[order]
        return Sorted(bags.indptr, ids, kinds[ids], bags.counts[order])

    def find_pairs(self, classes: Ints, child_classes: Ints) -> Ints:
        """Return the number of the class pair (subtree, child) in each slot of `subtrees.values`."""
        owners = np.repeat(np.arange(len(self.symbols)), np.diff(self.subtrees.indptr))
        n_classes = int(classes.max(initial=0)) + 1
        pairs = classes[self.symbols[owners]].astype(np.int64) * n_classes + child_classes
        return np.unique(pairs, return_inverse=True)[1].astype(np.int32)

    def find_heights(self, pairs: Ints) -> Heights:
        """Return the height class of each subtree: 0, 1 or 2.

        A tag is a subtree whose only child is a leaf. The class is 0 for leaves, 1 for tags whose class pair
        occurs only in tags, and 2 for all other subtrees.
        """
        sizes = np.diff(self.subtrees.indptr) - 1
        owners = np.repeat(np.arange(len(sizes)), sizes)
        slots = np.flatnonzero(~is_first(self.subtrees.indptr))
        is_tag = sizes == 1
        is_tag[owners[sizes[self.subtrees.values[slots]] > 0]] = False
        is_shared = np.zeros(int(pairs.max(initial=0)) + 1, dtype=np.bool_)
        is_shared[pairs[slots[~is_tag[owners]]]] = True
        is_tag[owners[is_shared[pairs[slots]]]] = False
        return np.where(sizes == 0, 0, np.where(is_tag, 1, 2)).astype(np.int8)

    def sort_pairs(self, bags: Bags, pairs: Ints) -> tuple[Integers, Ints, Sorted]:
        """List the distinct class pairs of each subtree in the bags.

        Returns the position of the first pair of each bag entry, the pairs, and the sorted pairs of each tree
        with their bag entries.
        """
        begin = self.subtrees.indptr[bags.ids] + 1
        sizes = self.subtrees.indptr[bags.ids + 1] - begin
        entries = np.repeat(np.arange(len(bags.ids)), sizes)
        found = pairs[np.repeat(begin - _starts(sizes)[:-1], sizes) + np.arange(len(entries))]
        order = _sort((found, entries))
        entries, found = entries[order], found[order]
        is_new = (np.diff(entries, prepend=-1) != 0) | (np.diff(found, prepend=-1) != 0)
        entries, found = entries[is_new], found[is_new]
        first_slot = _starts(np.bincount(entries, minlength=len(bags.ids)))
        trees = np.repeat(np.arange(len(self)), np.diff(bags.indptr))[entries]
        order = _sort((found, trees))
        in_order = Sorted(first_slot[bags.indptr], entries[order], found[order], np.empty(0))
        return first_slot, found, in_order


class Translation(NamedTuple):
    """For each item of a DAG, its index in another DAG; -1 for unknown items."""

    symbols: Ints
    productions: Ints
    edges: Ints
    pairs: Ints

    @classmethod
    def between(cls, dag: Dag, other: Dag) -> "Translation":
        """Look up all items of `other` in `dag`."""
        if dag is other:
            sizes = (dag.n_symbols, dag.productions.n_kinds, dag.edges.n_kinds, len(dag.pairs[1]))
            return cls(*(np.arange(size, dtype=np.int32) for size in sizes))
        symbols = find_symbols(dag, other)
        productions = _find(dag.productions, other.productions, (symbols,))
        places = np.arange(1 + max(np.diff(other.subtrees.indptr).max(initial=0), 1), dtype=np.int32)
        edges = _find(dag.edges, other.edges, (productions, places, productions))
        _, known = other.pairs
        parents, children = symbols[known // other.n_symbols], symbols[known % other.n_symbols]
        codes = parents.astype(np.int64) * dag.n_symbols + children
        codes[(parents < 0) | (children < 0)] = -1
        ours = dag.pairs[1]
        at = np.minimum(np.searchsorted(ours, codes), max(len(ours) - 1, 0))
        pairs = np.where(ours[at] == codes, at, -1) if len(ours) else np.full(len(codes), -1)
        return cls(symbols, productions, edges, pairs.astype(np.int32))


def find_symbols(dag: Dag, other: Dag) -> Ints:
    """Return the index in `dag` of each symbol of `other`, or -1."""
    ours = {label: number for number, label in enumerate(dag.forest.labels)}
    return np.array([ours.get(label, -1) for label in other.forest.labels], dtype=np.int32)


def find_subtrees(dag: Dag, other: Dag) -> Ints:
    """Return the index in `dag`, which must be a single chunk, of each subtree of `other`, or -1."""
    found = np.empty(len(other.symbols), dtype=np.int32)
    scratch = np.empty(int(np.diff(other.subtrees.indptr).max(initial=0)), dtype=np.int32)
    # Children come before parents, so their numbers are known when a parent is looked up.
    find_sequences(dag.subtrees, other.subtrees, (find_symbols(dag, other), found), scratch, found)
    return found


def is_first(indptr: Integers) -> npt.NDArray[np.bool_]:
    """Return a mask of the values that are the first of their sequences."""
    found = np.zeros(indptr[-1], dtype=np.bool_)
    found[indptr[:-1]] = True
    return found


def _find(ours: Kinds, others: Kinds, tables: tuple[Ints, ...]) -> Ints:
    found = np.empty(others.n_kinds, dtype=np.int32)
    scratch = np.empty(int(np.diff(others.sequences.indptr).max(initial=0)), dtype=np.int32)
    find_sequences(ours.sequences, others.sequences, tables, scratch, found)
    return found


def _make_sequences(n: int, n_values: int, n_distinct: int) -> Sequences:
    """Allocate sequences, and a hash table for at most `n_distinct` of them."""
    table = np.full(1 << max(4, (2 * n_distinct).bit_length()), -1, dtype=np.int32)
    # The sequence that is looked up is stored after all others.
    return Sequences(np.zeros(n + 2, dtype=np.int64), np.empty(2 * n_values, dtype=np.int32), table)


def _shorten(sequences: Sequences, n: int) -> Sequences:
    return Sequences(sequences.indptr[: n + 1], sequences.values[: sequences.indptr[n]], sequences.table)


def _make_bags(n_trees: int, n: int) -> Bags:
    return Bags(np.zeros(n_trees + 1, dtype=np.int64), np.empty(n, dtype=np.int32), np.empty(n))


def _starts(sizes: npt.NDArray[np.signedinteger]) -> Integers:
    """Return the start of each run of the given sizes, and the end of the last run."""
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _bounds(keys: Integers, n_keys: int) -> Integers:
    """Return the start and end of each key in sorted keys; both are 0 for absent keys."""
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    bounds = np.zeros((2, n_keys), dtype=np.int64)
    bounds[0, keys[starts]] = starts
    bounds[1, keys[starts]] = np.append(starts[1:], len(keys))
    return bounds


def _sort(keys: tuple[npt.NDArray[np.signedinteger], ...]) -> Integers:
    """Return the same order as `numpy.lexsort`; faster if all keys fit into one 64-bit integer."""
    codes, size = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys:
        low, high = int(key.min(initial=0)), int(key.max(initial=0))
        if size * (high - low + 1) >= 1 << 62:
            return np.lexsort(keys)
        codes += (key.astype(np.int64) - low) * size
        size *= high - low + 1
    return np.argsort(codes, kind="stable")
