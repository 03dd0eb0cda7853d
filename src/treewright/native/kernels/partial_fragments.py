"""Partial-tree fragments: the heaviest fragments of a forest, and matching of given fragments in trees.

A fragment grows one node at a time. A new node becomes the last child of a node on the rightmost path, which
leads from the root to the node that was added last, so each fragment grows in exactly one way. The weight of
an embedding of a fragment in a tree is the decay to the power of the number of skipped children. Embeddings
that can grow in the same ways are merged into one row, whose weight is the sum of their weights.

The factor by which the weight of an embedding can grow is bounded (`bound_growth`). So a search that skips
fragments whose bound is too low misses nothing.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.hashing import mix
from treewright.native.kernels.dags import SEED
from treewright.native.kernels.fragments import Records, add_record, offer, widen

NOTHING = -1
"""Value in a column of a row: no child is left to add."""


class FragmentDecays(NamedTuple):
    """Factors per skipped child, node and leaf of a fragment, and the maximum number of children (0: any)."""

    gap: float
    node: float
    leaf: float
    longest: int


class PartialForest(NamedTuple):
    """Distinct subtrees, children first, and bounds on the growth of embeddings of fragments in them.

    The children of subtree s are in the slots of `values` from `indptr[s] + 1` on. As an embedding grows, its
    weight increases at most by the factor `after[slot]` through later children of the same parent and
    everything below them, and by `below[subtree]` through everything that is added below a leaf of the
    fragment. `ends[slot]` is the end of the children of the parent.
    """

    indptr: np.ndarray
    values: np.ndarray
    symbols: np.ndarray
    after: np.ndarray
    below: np.ndarray
    ends: np.ndarray


class PartialFrame(NamedTuple):
    """A fragment that may grow.

    Its data in the arena start with the number of children of each node on the rightmost path; rows follow. A
    row has a column for each node on the path: the slot of the child that was added last or, for the last
    node, its subtree; `NOTHING` if no child is left. The amounts of a row are the positive and negative
    weights of its embeddings, and their counts. The two arenas are free from `ceiling` and from
    `amount_ceiling` on.
    """

    begin: int
    amounts: int
    n_rows: int
    width: int
    record: int
    size: int
    n_leaves: int
    ceiling: int
    amount_ceiling: int


class Arenas(NamedTuple):
    """The columns of the rows of all frames, and the amounts of these rows."""

    columns: np.ndarray
    amounts: np.ndarray


class RowTable(NamedTuple):
    """A hash table that finds a row by its symbol and its columns, which are in `fresh`.

    An entry has the start of a row's columns, the start of its amounts, and its symbol; -1 if it is free.
    """

    entries: np.ndarray
    fresh: np.ndarray


class SymbolSums(NamedTuple):
    """Sums by the symbol of a new node: amounts, bounds of their growth, numbers of rows, and new frames."""

    amounts: np.ndarray
    bounds: np.ndarray
    n_rows: np.ndarray
    frames: np.ndarray
    touched: np.ndarray


class PartialTrie(NamedTuple):
    """Fragments as sequences of children (smaller fragments), starting from an initial state per symbol.

    `leaves[symbol]` is the fragment of a single node with that symbol; `ends[state]` is the fragment that
    ends in a state, -1 for none. Edges are sorted by `keys`: the number of the smaller fragment times the
    number of symbols, plus the symbol of the parent. The initial state of a symbol has the symbol's number.
    """

    leaves: np.ndarray
    ends: np.ndarray
    keys: np.ndarray
    sources: np.ndarray
    targets: np.ndarray


@compiled
def bound_growth(forest, n_symbols, decays):
    """Fill `after`, `below` and `ends` of a forest, children before parents."""
    sums, is_touched = np.zeros(n_symbols), np.zeros(n_symbols, dtype=np.bool_)
    touched = np.empty(n_symbols, dtype=np.int64)
    for subtree in range(forest.symbols.size):
        begin, end = forest.indptr[subtree] + 1, forest.indptr[subtree + 1]
        n_touched = 0
        for slot in range(end - 1, begin - 1, -1):
            most = 0.0
            for symbol in touched[:n_touched]:
                most = max(most, sums[symbol])
                sums[symbol] *= decays.gap
            forest.after[slot] = most
            forest.ends[slot] = end
            child = forest.values[slot]
            symbol = forest.symbols[child]
            if not is_touched[symbol]:
                is_touched[symbol] = True
                touched[n_touched] = symbol
                n_touched += 1
            sums[symbol] += decays.leaf * decays.node * max(1.0, forest.below[child]) * max(1.0, most)
        sums[touched[:n_touched]] = 0.0
        for slot in range(begin, end):
            child = forest.values[slot]
            factor = max(1.0, forest.below[child]) * max(1.0, forest.after[slot])
            sums[forest.symbols[child]] += decays.node * factor
        most = 0.0
        for symbol in touched[:n_touched]:
            most = max(most, sums[symbol])
            sums[symbol] = 0.0
            is_touched[symbol] = False
        forest.below[subtree] = most


@compiled
def _make_sums(n_symbols):
    integers = np.zeros((3, n_symbols), dtype=np.int64)
    return SymbolSums(
        np.zeros((n_symbols, 3)), np.zeros((n_symbols, 3)), integers[0], integers[1], integers[2]
    )


@in_place
def _add_amounts(sums, n_touched, symbol, amounts, at, factor, bound):
    """Add the amounts of an embedding that grows by a node; return the number of symbols so far."""
    if sums.n_rows[symbol] == 0:
        sums.touched[n_touched] = symbol
        n_touched += 1
        sums.amounts[symbol] = 0.0
        sums.bounds[symbol] = 0.0
    sums.n_rows[symbol] += 1
    for which in range(3):
        amount = factor * amounts[at + which]
        if amount != 0:
            sums.amounts[symbol, which] += amount
            sums.bounds[symbol, which] += amount * bound
    return n_touched


@in_place
def _find_range(frame, columns, row, depth, forest):
    """Return the range of slots of the children that a row can add at a depth of its path."""
    at = columns[row + depth]
    if at == NOTHING:
        return np.int64(0), np.int64(0)
    if depth == frame.width - 1:
        return np.int64(forest.indptr[at] + 1), np.int64(forest.indptr[at + 1])
    return np.int64(at + 1), np.int64(forest.ends[at])


@in_place
def _sum_depth(frame, depth, arenas, forest, gap, sums):
    """Sum the amounts of embeddings that grow at a depth, by the new symbol; return the number of symbols."""
    n_touched = 0
    for number in range(frame.n_rows):
        row = frame.begin + frame.width * (1 + number)
        first, last = _find_range(frame, arenas.columns, row, depth, forest)
        if first == last:
            continue
        product, most = 1.0, 0.0
        for before in range(depth):
            slot = arenas.columns[row + before]
            if slot != NOTHING:
                product *= max(1.0, forest.after[slot])
                most = max(most, forest.after[slot])
        factor = 1.0
        for slot in range(first, last):
            child = forest.values[slot]
            after, below = forest.after[slot], forest.below[child]
            # The factor of a position is 1 if nothing is added there, but something must be added somewhere.
            bound = product * max(1.0, after) * max(1.0, below) * min(1.0, max(most, after, below))
            at = frame.amounts + 3 * number
            n_touched = _add_amounts(
                sums, n_touched, forest.symbols[child], arenas.amounts, at, factor, bound
            )
            if depth < frame.width - 1:
                factor *= gap
    return n_touched


@in_place
def _find_row(table, columns, width, symbol):
    """Return the slot of a row in the table, or the empty slot for it."""
    key = mix(SEED, symbol)
    for column in range(width):
        key = mix(key, table.fresh[column])
    mask = len(table.entries) - 1
    slot = np.int64(key >> np.uint64(32)) & mask
    while table.entries[slot, 0] >= 0:
        begin = table.entries[slot, 0]
        if table.entries[slot, 2] == symbol:
            column = 0
            while column < width and columns[begin + column] == table.fresh[column]:
                column += 1
            if column == width:
                return slot
        slot = (slot + 1) & mask
    return slot


@in_place
def _write_rows(frame, depth, arenas, forest, gap, sums, frames, table):
    """Write the rows of all fragments that grow at a depth; equal rows are merged."""
    width, columns, amounts, fresh = depth + 2, arenas.columns, arenas.amounts, table.fresh
    for number in range(frame.n_rows):
        row = frame.begin + frame.width * (1 + number)
        first, last = _find_range(frame, columns, row, depth, forest)
        for before in range(depth):
            fresh[before] = columns[row + before]
        factor = 1.0
        for slot in range(first, last):
            child = forest.values[slot]
            symbol = forest.symbols[child]
            place = sums.frames[symbol]
            if place >= 0:
                fresh[depth] = slot if slot + 1 < last else NOTHING
                is_leaf = forest.indptr[child + 1] - forest.indptr[child] == 1
                fresh[depth + 1] = NOTHING if is_leaf else child
                entry = table.entries[_find_row(table, columns, width, symbol)]
                if entry[0] < 0:
                    entry[0] = frames[place, 0] + width * (1 + frames[place, 2])
                    entry[1] = frames[place, 1] + 3 * frames[place, 2]
                    entry[2] = symbol
                    frames[place, 2] += 1
                    for column in range(width):
                        columns[entry[0] + column] = fresh[column]
                    for which in range(3):
                        amounts[entry[1] + which] = 0.0
                for which in range(3):
                    amounts[entry[1] + which] += factor * amounts[frame.amounts + 3 * number + which]
            if depth < frame.width - 1:
                factor *= gap


@compiled
def _widen_frames(frames, bounds, size):
    """Return frames and their bounds with space for at least `size`."""
    if size <= len(frames):
        return frames, bounds
    wider = np.empty((2 * len(frames), frames.shape[1]), dtype=np.int64)
    wider[: len(frames)] = frames
    return wider, widen(bounds, 2 * len(frames))


@compiled
def _sort_frames(frames, bounds, begin, end, ceiling, amount_ceiling):
    """Sort the last frames so that the most promising is last; all write above the same ceilings."""
    order = np.argsort(bounds[begin:end], kind="mergesort")
    bounds[begin:end] = bounds[begin:end][order]
    frames[begin:end] = frames[begin:end][order]
    frames[begin:end, 7] = ceiling
    frames[begin:end, 8] = amount_ceiling


@in_place
def _weigh(sums, symbol, scale, has_counts):
    """Return the value of the fragment with a new node of this symbol, and the bound of its growth."""
    amounts, bounds = sums.amounts[symbol], sums.bounds[symbol]
    value, bound = scale * (amounts[0] - amounts[1]), scale * max(bounds[0], bounds[1])
    if has_counts:
        value *= amounts[2]
        bound *= bounds[2]
    return value, bound


@compiled
def _start(forest, measures, sums):
    """Return the empty fragment, whose rows are all weighted or counted subtrees; fill sums by symbol."""
    symbols = forest.symbols
    arena, amounts = np.empty(symbols.size + 1024, dtype=np.int32), np.empty(3 * symbols.size + 1024)
    n_rows, n_touched, has_counts = 0, 0, measures.counts.size > 0
    for subtree in range(symbols.size):
        weight, count = measures.weights[subtree], measures.counts[subtree] if has_counts else 0.0
        if weight == 0 and count == 0:
            continue
        amounts[3 * n_rows] = max(weight, 0.0)
        amounts[3 * n_rows + 1] = max(-weight, 0.0)
        amounts[3 * n_rows + 2] = count
        arena[n_rows] = subtree
        bound = forest.below[subtree]
        n_touched = _add_amounts(sums, n_touched, symbols[subtree], amounts, 3 * n_rows, 1.0, bound)
        n_rows += 1
    return arena, amounts, n_rows, n_touched


@in_place
def _write_roots(forest, arenas, n_rows, sums, frames):
    """Write the rows of fragments of one node."""
    columns, amounts = arenas.columns, arenas.amounts
    for row in range(n_rows):
        subtree = columns[row]
        place = sums.frames[forest.symbols[subtree]]
        if place < 0:
            continue
        number = frames[place, 2]
        is_leaf = forest.indptr[subtree + 1] - forest.indptr[subtree] == 1
        columns[frames[place, 0] + 1 + number] = NOTHING if is_leaf else subtree
        for which in range(3):
            amounts[frames[place, 1] + 3 * number + which] = amounts[3 * row + which]
        frames[place, 2] += 1


@compiled
def mine_partial_fragments(forest, measures, decays, limits):
    """Find the fragments with the largest absolute values.

    The value of a fragment is the product of the decays of its nodes and leaves, times the sum of the weights
    of its embeddings (for each, the weight of the subtree at the root, times the decays of gaps), times the
    sum of their counts, if there are any.

    Parameters
    ----------
    forest : PartialForest
    measures : Measures
    decays : FragmentDecays
    limits : FragmentLimits
        Sizes are numbers of nodes.

    Returns
    -------
    records : Records
        The position of a fragment is the depth of its last node's parent; the kind is the node's symbol.
    best : ndarray of int64
        Numbers of the best records, by descending absolute value, then in the order of discovery.
    n_visits : int
        Number of visits; more than `max_visits` if the search was stopped.
    """
    sums = _make_sums(int(forest.symbols.max()) + 1 if forest.symbols.size > 0 else 1)
    integers = np.empty((3, 1024), dtype=np.int32)
    records = Records(integers[0], integers[1], integers[2], np.empty(1024))
    heap = np.empty(limits.n_best, dtype=np.int64)
    frames, bounds = np.empty((1024, 9), dtype=np.int64), np.empty(1024)
    fresh, has_counts = np.empty(64, dtype=np.int32), measures.counts.size > 0
    arena, amounts, n_roots, n_touched = _start(forest, measures, sums)
    frames[0] = PartialFrame(0, 0, n_roots, 0, -1, 0, 0, n_roots, 3 * n_roots)
    bounds[0] = np.inf
    n_frames, n_records, n_heap, n_visits = 1, 0, 0, 0
    while n_frames > 0 and n_visits <= limits.max_visits:
        n_frames -= 1
        lowest = abs(records.values[heap[0]]) if n_heap == heap.size else 0.0
        if bounds[n_frames] <= lowest:
            continue
        begin, first_amount, n_rows, width, record, size, n_leaves, top, amount_top = frames[n_frames]
        frame = PartialFrame(begin, first_amount, n_rows, width, record, size, n_leaves, top, amount_top)
        first_frame = n_frames
        for depth in range(max(width, 1)):
            if width > 0:
                if decays.longest > 0 and arena[begin + depth] >= decays.longest:
                    continue
                n_touched = _sum_depth(frame, depth, Arenas(arena, amounts), forest, decays.gap, sums)
            n_visits += n_touched
            new_leaves = n_leaves + (depth < width - 1 or width == 0)
            new_width = depth + 2 if width > 0 else 1
            scale = decays.node ** (size + 1) * decays.leaf**new_leaves
            n_written = 0
            for symbol in sums.touched[:n_touched]:
                value, bound = _weigh(sums, symbol, scale, has_counts)
                lowest = abs(records.values[heap[0]]) if n_heap == heap.size else 0.0
                is_best = abs(value) > lowest
                may_grow = bound > lowest and size + 1 < limits.max_size
                n_grown = sums.n_rows[symbol]
                sums.n_rows[symbol] = 0
                sums.frames[symbol] = -1
                if is_best or may_grow:
                    records = add_record(records, n_records, record, depth, symbol, value)
                    n_records += 1
                if is_best:
                    n_heap = offer(heap, n_heap, records.values, n_records - 1)
                if may_grow:
                    frames, bounds = _widen_frames(frames, bounds, n_frames + 1)
                    frames[n_frames] = PartialFrame(
                        top, amount_top, 0, new_width, n_records - 1, size + 1, new_leaves, 0, 0
                    )
                    bounds[n_frames] = bound
                    sums.frames[symbol] = n_frames
                    n_frames += 1
                    n_written += n_grown
                    arena = widen(arena, top + new_width * (1 + n_grown))
                    amounts = widen(amounts, amount_top + 3 * n_grown)
                    for column in range(new_width):
                        is_old = column < width and column < new_width - 1
                        arena[top + column] = arena[begin + column] if is_old else 0
                    if width > 0:
                        arena[top + depth] += 1
                    top += new_width * (1 + n_grown)
                    amount_top += 3 * n_grown
            if n_written > 0 and width == 0:
                _write_roots(forest, Arenas(arena, amounts), n_roots, sums, frames)
            elif n_written > 0:
                n_slots = 16
                while n_slots < 2 * n_written:
                    n_slots *= 2
                fresh = widen(fresh, new_width)
                table = RowTable(np.full((n_slots, 3), -1, dtype=np.int64), fresh)
                _write_rows(frame, depth, Arenas(arena, amounts), forest, decays.gap, sums, frames, table)
        _sort_frames(frames, bounds, first_frame, n_frames, top, amount_top)
    best = np.sort(heap[:n_heap])
    return records, best[np.argsort(-np.abs(records.values[best]), kind="mergesort")], n_visits


@in_place
def _find_first(keys, key):
    """Return the first position of a key in sorted keys, or where it belongs."""
    low, high = 0, keys.size
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def match_partial_fragments(subtrees, symbols, trie, gap):
    """Find the embeddings of fragments, and of the smaller fragments in them, at the root of subtrees.

    `symbols` are the symbols of subtrees in the numbering of the trie, negative if unknown. Returns the start
    of the fragments of each subtree, the fragments, and the sums of the weights of their embeddings.
    """
    n_states, n_symbols = trie.ends.size, trie.leaves.size
    indptr = np.zeros(symbols.size + 1, dtype=np.int64)
    found, weights = np.empty(4 * symbols.size + 16, dtype=np.int32), np.empty(4 * symbols.size + 16)
    # For each state: the subtree in which it was reached, the child that was matched last, the weight of the
    # matches that end at or before that child, the weight of the matches that end before it (including the
    # decay of the gaps up to there), and the total weight.
    owners, places = np.full(n_states, -1), np.empty(n_states, dtype=np.int64)
    sums, earlier, totals = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    touched = np.empty(n_states, dtype=np.int64)
    n_found = 0
    for subtree in range(symbols.size):
        symbol = symbols[subtree]
        n_touched = 0
        begin, end = subtrees.indptr[subtree] + 1, subtrees.indptr[subtree + 1]
        for slot in range(begin, end if symbol >= 0 else begin):
            child = subtrees.values[slot]
            for at in range(indptr[child], indptr[child + 1]):
                key = np.int64(found[at]) * n_symbols + symbol
                edge = _find_first(trie.keys, key)
                while edge < trie.keys.size and trie.keys[edge] == key:
                    source, target = trie.sources[edge], trie.targets[edge]
                    edge += 1
                    weight = weights[at]
                    if source >= n_symbols:
                        if owners[source] != subtree:
                            continue
                        if places[source] == slot:
                            weight *= earlier[source]
                        else:
                            weight *= sums[source] * gap ** (slot - places[source] - 1)
                    if weight == 0:
                        continue
                    if owners[target] != subtree:
                        owners[target], places[target] = subtree, slot
                        sums[target], earlier[target], totals[target] = 0.0, 0.0, 0.0
                        touched[n_touched] = target
                        n_touched += 1
                    elif places[target] != slot:
                        earlier[target] = sums[target] * gap ** (slot - places[target] - 1)
                        sums[target] = earlier[target] * gap
                        places[target] = slot
                    sums[target] += weight
                    totals[target] += weight
        if n_found + n_touched + 1 > found.size:
            found = widen(found, n_found + n_touched + 1)
            weights = widen(weights, found.size)
        if symbol >= 0 and trie.leaves[symbol] >= 0:
            found[n_found], weights[n_found] = trie.leaves[symbol], 1.0
            n_found += 1
        for target in touched[:n_touched]:
            if trie.ends[target] >= 0:
                found[n_found], weights[n_found] = trie.ends[target], totals[target]
                n_found += 1
        indptr[subtree + 1] = n_found
    return indptr, found[:n_found], weights[:n_found]
