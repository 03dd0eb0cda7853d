"""Subset-tree fragments: the heaviest fragments of a forest, and matching of given fragments in trees.

A fragment grows from the production at its root, one production at a time. Its nodes are numbered from the
root, parents before children and children from right to left, which is post-order in reverse. Nodes are
expanded only in that order, so each fragment grows in exactly one way. The nodes where it can still grow are
its columns.

A node is the root of a fragment at most once. So the total weight of a fragment's roots bounds the weight of
any larger fragment, and a search that skips fragments whose bound is too low misses nothing.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place, inlined
from treewright.native.hashing import mix
from treewright.native.kernels.dags import SEED

LEAF, WORD = -1, -2
"""Values in place of a production: a leaf whose symbol also labels inner nodes, and any other leaf."""


class Records(NamedTuple):
    """Fragments, each stored as another fragment with one more production.

    The fragment `parents` is extended by the production `kinds` at the node `positions`; parent -1 is the
    empty fragment.
    """

    parents: np.ndarray
    positions: np.ndarray
    kinds: np.ndarray
    values: np.ndarray


class FragmentLimits(NamedTuple):
    """Number of fragments to return, maximum number of productions, and maximum number of visits."""

    n_best: int
    max_size: int
    max_visits: int


class Measures(NamedTuple):
    """The weight and the count of each subtree; `counts` may be empty."""

    weights: np.ndarray
    counts: np.ndarray


class Frame(NamedTuple):
    """A fragment that may grow.

    Its data in the arena start with the positions of its columns. Rows follow, one for each subtree that has
    the fragment at its root: that subtree, and the subtree in each column. The arena is free from `ceiling`
    on.
    """

    begin: int
    n_rows: int
    width: int
    record: int
    size: int
    ceiling: int


class Sums(NamedTuple):
    """Sums by production: positive and negative weights, counts, numbers of rows, and where to write them."""

    positive: np.ndarray
    negative: np.ndarray
    counts: np.ndarray
    n_rows: np.ndarray
    places: np.ndarray
    touched: np.ndarray


class FragmentTrie(NamedTuple):
    """Fragments as paths of productions at positions, from node 0, which is the empty fragment.

    Node n stands for the feature `features[n]`, -1 for none. A slot of the table has a node and its edge: the
    parent node, the production and the position; -1 if it is free. `masks[n]` has a bit for each edge of node
    n, so that most missing edges need no lookup.
    """

    table: np.ndarray
    features: np.ndarray
    masks: np.ndarray


@compiled
def widen(array, size):
    """Return an array with space for at least `size` values."""
    if size <= array.size:
        return array
    wider = np.empty(max(size, 2 * array.size), dtype=array.dtype)
    wider[: array.size] = array
    return wider


@compiled
def _widen_frames(frames, bounds, size):
    """Return frames and their bounds with space for at least `size`."""
    if size <= len(frames):
        return frames, bounds
    wider = np.empty((2 * len(frames), frames.shape[1]), dtype=np.int64)
    wider[: len(frames)] = frames
    return wider, widen(bounds, 2 * len(frames))


@in_place
def _lift(heap, values, place):
    """Sift an entry up in a heap whose first entry has the smallest absolute value."""
    entry = heap[place]
    while place > 0:
        above = (place - 1) // 2
        if abs(values[heap[above]]) <= abs(values[entry]):
            break
        heap[place] = heap[above]
        place = above
    heap[place] = entry


@in_place
def _sink(heap, values):
    """Sift the first entry of a full heap down."""
    entry, place = heap[0], 0
    while 2 * place + 1 < heap.size:
        below = 2 * place + 1
        if below + 1 < heap.size and abs(values[heap[below + 1]]) < abs(values[heap[below]]):
            below += 1
        if abs(values[heap[below]]) >= abs(values[entry]):
            break
        heap[place] = heap[below]
        place = below
    heap[place] = entry


@in_place
def _sum_column(frame, arena, column, kinds, measures, sums):
    """Sum the weights of a fragment's roots by production in a column; return the number of productions."""
    n_touched, stride = 0, frame.width + 1
    begin = frame.begin + frame.width
    for at in range(begin, begin + frame.n_rows * stride, stride):
        kind = kinds[arena[at + 1 + column]]
        if kind < 0:
            continue
        if sums.n_rows[kind] == 0:
            sums.touched[n_touched] = kind
            n_touched += 1
            sums.positive[kind] = 0.0
            sums.negative[kind] = 0.0
            sums.counts[kind] = 0.0
        weight = measures.weights[arena[at]]
        sums.n_rows[kind] += 1
        sums.positive[kind] += max(weight, 0.0)
        sums.negative[kind] += max(-weight, 0.0)
        sums.counts[kind] += measures.counts[arena[at]] if measures.counts.size > 0 else 0.0
    return n_touched


@in_place
def _count_open(subtrees, kinds, subtree):
    """Return the number of children of a subtree that become columns."""
    n_open = 0
    for place in range(subtrees.indptr[subtree] + 1, subtrees.indptr[subtree + 1]):
        n_open += kinds[subtrees.values[place]] != WORD
    return n_open


@in_place
def _write_positions(subtrees, kinds, arena, frame, column, subtree, target):
    """Write the positions of the columns of a fragment that has grown in a column."""
    position = arena[frame.begin + column]
    for place in range(subtrees.indptr[subtree + 1] - 1, subtrees.indptr[subtree], -1):
        position += 1
        if kinds[subtrees.values[place]] != WORD:
            arena[target] = position
            target += 1
    n_children = subtrees.indptr[subtree + 1] - subtrees.indptr[subtree] - 1
    for other in range(column + 1, frame.width):
        arena[target] = arena[frame.begin + other] + n_children
        target += 1


@in_place
def _write_rows(subtrees, kinds, arena, frame, column, places):
    """Write the rows of all fragments that grow in a column: the root, new columns, and later columns."""
    stride = frame.width + 1
    begin = frame.begin + frame.width
    for source in range(begin, begin + frame.n_rows * stride, stride):
        subtree = arena[source + 1 + column]
        kind = kinds[subtree]
        if kind < 0 or places[kind] < 0:
            continue
        target = places[kind]
        arena[target] = arena[source]
        target += 1
        for place in range(subtrees.indptr[subtree + 1] - 1, subtrees.indptr[subtree], -1):
            child = subtrees.values[place]
            if kinds[child] != WORD:
                arena[target] = child
                target += 1
        for other in range(source + 2 + column, source + stride):
            arena[target] = arena[other]
            target += 1
        places[kind] = target


@compiled
def _start(kinds, measures):
    """Return the empty fragment; it has one column, and its roots are all subtrees with a weight or count."""
    arena = np.empty(4 * kinds.size + 1024, dtype=np.int32)
    arena[0] = 0
    n_roots = 0
    for subtree in range(kinds.size):
        is_weighty = measures.weights[subtree] != 0
        if measures.counts.size > 0:
            is_weighty = is_weighty or measures.counts[subtree] != 0
        if kinds[subtree] >= 0 and is_weighty:
            arena[1 + 2 * n_roots] = subtree
            arena[2 + 2 * n_roots] = subtree
            n_roots += 1
    return arena, Frame(0, n_roots, 1, -1, 0, 1 + 2 * n_roots)


@compiled
def _make_sums(n_kinds):
    sums = np.empty((3, n_kinds))
    numbers = np.zeros((3, n_kinds), dtype=np.int64)
    return Sums(sums[0], sums[1], sums[2], numbers[0], numbers[1], numbers[2])


@compiled
def add_record(records, n, parent, position, kind, value):
    """Append a fragment to the first `n` records, and return the records."""
    if n == records.values.size:
        records = Records(
            widen(records.parents, n + 1),
            widen(records.positions, n + 1),
            widen(records.kinds, n + 1),
            widen(records.values, n + 1),
        )
    records.parents[n] = parent
    records.positions[n] = position
    records.kinds[n] = kind
    records.values[n] = value
    return records


@in_place
def offer(heap, n_heap, values, record):
    """Push a record onto a heap, replacing the smallest if it is full; return the size."""
    if n_heap < heap.size:
        heap[n_heap] = record
        _lift(heap, values, n_heap)
        return n_heap + 1
    heap[0] = record
    _sink(heap, values)
    return n_heap


@compiled
def _sort_frames(frames, bounds, begin, end, ceiling):
    """Sort the last frames so that the most promising is last; all write above the same ceiling."""
    order = np.argsort(bounds[begin:end], kind="mergesort")
    bounds[begin:end] = bounds[begin:end][order]
    frames[begin:end] = frames[begin:end][order]
    frames[begin:end, 5] = ceiling


@compiled
def mine_fragments(subtrees, kinds, examples, measures, decay, limits):
    """Find the fragments with the largest absolute values.

    The value of a fragment is `decay` to the power of its number of productions, times the sum of the weights
    of the subtrees that have it at the root, times the sum of their counts, if there are any.

    Parameters
    ----------
    subtrees : Sequences
    kinds : ndarray of int32
        The production of each subtree, `LEAF` or `WORD`.
    examples : ndarray of int64
        One subtree for each production.
    measures : Measures
    decay : float
    limits : FragmentLimits

    Returns
    -------
    records : Records
    best : ndarray of int64
        Numbers of the best records, by descending absolute value, then in the order of discovery.
    n_visits : int
        Number of visits; more than `max_visits` if the search was stopped.
    """
    sums = _make_sums(examples.size)
    integers = np.empty((3, 1024), dtype=np.int32)
    records = Records(integers[0], integers[1], integers[2], np.empty(1024))
    heap = np.empty(limits.n_best, dtype=np.int64)
    arena, start = _start(kinds, measures)
    frames, bounds = np.empty((1024, 6), dtype=np.int64), np.empty(1024)
    frames[0] = start
    bounds[0] = np.inf
    n_frames, n_records, n_heap, n_visits = 1, 0, 0, 0
    while n_frames > 0 and n_visits <= limits.max_visits:
        n_frames -= 1
        lowest = abs(records.values[heap[0]]) if n_heap == heap.size else 0.0
        if bounds[n_frames] <= lowest:
            continue
        begin, n_rows, width, record, size, top = frames[n_frames]
        frame = Frame(begin, n_rows, width, record, size, top)
        first_frame = n_frames
        for column in range(width):
            n_touched = _sum_column(frame, arena, column, kinds, measures, sums)
            n_visits += n_touched
            for kind in sums.touched[:n_touched]:
                scale = decay ** (size + 1) * (sums.counts[kind] if measures.counts.size > 0 else 1.0)
                value = scale * (sums.positive[kind] - sums.negative[kind])
                bound = decay * scale * max(sums.positive[kind], sums.negative[kind])
                new_width = _count_open(subtrees, kinds, examples[kind]) + width - column - 1
                lowest = abs(records.values[heap[0]]) if n_heap == heap.size else 0.0
                is_best = abs(value) > lowest
                may_grow = bound > lowest and size + 1 < limits.max_size and new_width > 0
                n_grown = sums.n_rows[kind]
                sums.n_rows[kind] = 0
                sums.places[kind] = -1
                if is_best or may_grow:
                    records = add_record(records, n_records, record, arena[begin + column], kind, value)
                    n_records += 1
                if is_best:
                    n_heap = offer(heap, n_heap, records.values, n_records - 1)
                if may_grow:
                    frames, bounds = _widen_frames(frames, bounds, n_frames + 1)
                    frames[n_frames] = Frame(top, n_grown, new_width, n_records - 1, size + 1, 0)
                    bounds[n_frames] = bound
                    n_frames += 1
                    arena = widen(arena, top + new_width + n_grown * (new_width + 1))
                    _write_positions(subtrees, kinds, arena, frame, column, examples[kind], top)
                    sums.places[kind] = top + new_width
                    top += new_width + n_grown * (new_width + 1)
            _write_rows(subtrees, kinds, arena, frame, column, sums.places)
        _sort_frames(frames, bounds, first_frame, n_frames, top)
    best = np.sort(heap[:n_heap])
    return records, best[np.argsort(-np.abs(records.values[best]), kind="mergesort")], n_visits


@inlined
def _find_bit(position, kind):
    """Return the bit of a mask for an edge."""
    return np.uint64(1) << np.uint64((31 * position + kind) & 63)


@in_place
def _find_slot(table, source, position, kind):
    """Return the slot of a node in the table, given its edge, or the empty slot for it."""
    key = mix(mix(mix(SEED, source), position), kind)
    slot = np.int64(key >> np.uint64(32)) & (len(table) - 1)
    while table[slot, 0] >= 0:
        if table[slot, 1] == source and table[slot, 2] == kind and table[slot, 3] == position:
            break
        slot = (slot + 1) & (len(table) - 1)
    return slot


@in_place
def insert_fragments(subtrees, kinds, roots, numbers, trie, stack):
    """Insert fragments, given as the whole subtrees `roots`, into an empty trie as features `numbers`.

    A leaf of a fragment is a node that is not expanded. Masks start as 0, everything else as -1; `stack` has
    space for the nodes of a fragment. Returns the number of nodes of the trie.
    """
    n = 1
    for fragment in range(roots.size):
        source, position, height = 0, 0, 1
        stack[0] = roots[fragment]
        while height > 0:
            height -= 1
            subtree = stack[height]
            kind = kinds[subtree]
            if kind >= 0:
                slot = _find_slot(trie.table, source, position, kind)
                entry = trie.table[slot]
                if entry[0] < 0:
                    entry[0], entry[1], entry[2], entry[3] = n, source, kind, position
                    trie.masks[source] |= _find_bit(position, kind)
                    n += 1
                source = entry[0]
            for place in range(subtrees.indptr[subtree] + 1, subtrees.indptr[subtree + 1]):
                stack[height] = subtrees.values[place]
                height += 1
            position += 1
        trie.features[source] = numbers[fragment]
    return n


@in_place
def _push(subtrees, kinds, current, column, width, arena, top):
    """Write the columns that result from expanding `column` of `current`; return where they end."""
    subtree, position = current[2 * column], current[2 * column + 1]
    for place in range(subtrees.indptr[subtree + 1] - 1, subtrees.indptr[subtree], -1):
        position += 1
        if kinds[subtrees.values[place]] >= 0:
            arena[top] = subtrees.values[place]
            arena[top + 1] = position
            top += 2
    n_children = subtrees.indptr[subtree + 1] - subtrees.indptr[subtree] - 1
    for other in range(column + 1, width):
        arena[top] = current[2 * other]
        arena[top + 1] = current[2 * other + 1] + n_children
        top += 2
    return top


@compiled
def match_fragments(subtrees, kinds, trie):
    """Find the fragments that each subtree has at its root.

    `kinds` are productions in the numbering of the trie, negative for leaves and unknown productions. Returns
    the start of the features of each subtree, and the features.
    """
    indptr = np.zeros(kinds.size + 1, dtype=np.int64)
    found = np.empty(4 * kinds.size + 16, dtype=np.int32)
    # In the arena, a frame consists of its columns (a subtree and a position each), its node, and the number
    # of columns.
    arena, current = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    n_found = 0
    for root in range(kinds.size):
        top = 0
        if kinds[root] >= 0:
            arena[0], arena[1], arena[2], arena[3] = root, 0, 0, 1
            top = 4
        while top > 0:
            node, width = arena[top - 2], arena[top - 1]
            top -= 2 + 2 * width
            if 2 * width > current.size:
                current = widen(current, 2 * width)
            for place in range(2 * width):
                current[place] = arena[top + place]
            for column in range(width):
                subtree, position = current[2 * column], current[2 * column + 1]
                if trie.masks[node] & _find_bit(position, kinds[subtree]) == 0:
                    continue
                after = trie.table[_find_slot(trie.table, node, position, kinds[subtree]), 0]
                if after < 0:
                    continue
                if trie.features[after] >= 0:
                    if n_found == found.size:
                        found = widen(found, n_found + 1)
                    found[n_found] = trie.features[after]
                    n_found += 1
                if trie.masks[after] != 0:
                    n_children = subtrees.indptr[subtree + 1] - subtrees.indptr[subtree] - 1
                    if top + 2 * (n_children + width) + 2 > arena.size:
                        arena = widen(arena, top + 2 * (n_children + width) + 2)
                    end = _push(subtrees, kinds, current, column, width, arena, top)
                    arena[end] = after
                    arena[end + 1] = (end - top) // 2
                    top = end + 2
        indptr[root + 1] = n_found
    return indptr, found[:n_found]
