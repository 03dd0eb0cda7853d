"""Conjunctions of binary features: counted order by order, and matched in rows.

Each surviving conjunction has a list of its places, which are the rows that contain it. Its extensions by one
more item are counted together in a dense array, to which each later item of these rows adds one. So a
candidate is counted without being created, stored or looked up. Items are numbered from rare to frequent, and
a conjunction is extended by later items only, so each candidate is visited once.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place
from treewright.native.hashing import mix
from treewright.native.mining.bloom import add_hashed, block_start, hash_key


class ItemRows(NamedTuple):
    """Rows of items in ascending order: row i has `items[indptr[i]:indptr[i + 1]]`.

    `counters[i]` lists the counters of a conjunction to which row i adds one.
    """

    indptr: np.ndarray
    items: np.ndarray
    counters: np.ndarray


class Level(NamedTuple):
    """Conjunctions of one order, with their places.

    The places of conjunction f are those from `indptr[f]` to `indptr[f + 1]`: the row, and the start in
    `ItemRows.items` of the items that can extend it there.
    """

    items: np.ndarray
    indptr: np.ndarray
    rows: np.ndarray
    starts: np.ndarray


class Extensions(NamedTuple):
    """Space for conjunctions of the next order: parents, last items, counts, and ends of their places."""

    parents: np.ndarray
    items: np.ndarray
    counts: np.ndarray
    ends: np.ndarray
    rows: np.ndarray
    starts: np.ndarray


class CountingScratch(NamedTuple):
    """Counters of each item, which are zero between calls, and lists of items.

    `hashes`, `blocks` and `words` are for the items of one row, if a filter is used.
    """

    counts: np.ndarray
    touched: np.ndarray
    slots: np.ndarray
    hashes: np.ndarray
    blocks: np.ndarray
    words: np.ndarray


class Admitted(NamedTuple):
    """The items by which each conjunction may be extended; any item if `indptr` is empty."""

    indptr: np.ndarray
    items: np.ndarray


class Passed(NamedTuple):
    """Space for the parents and last items of candidates that passed a filter."""

    parents: np.ndarray
    items: np.ndarray


class Tally(NamedTuple):
    """Progress of `extend`: conjunctions done, output written, items visited, and missing space."""

    next_parent: int
    n_found: int
    n_places: int
    n_candidates: int
    n_instances: int
    n_missing: int


FREE, COUNTED, DROPPED, SHUT = -1, -2, -3, -4
"""Values of `CountingScratch.slots`: item not seen, seen, too rare, not to be counted."""


@in_place
def extend(level, span, rows, threshold, scratch, admitted, found, keep_places):
    """Count the extensions of the conjunctions in `span`, and write those with counts above the threshold.

    Stops before the first conjunction whose extensions do not fit; the `Tally` has its number and the space
    for places that it needs. If `keep_places` is false, no places are written.
    """
    n_found, n_places, n_candidates, n_instances = 0, 0, 0, 0
    for parent in range(span[0], span[1]):
        open_items(scratch, admitted, parent, SHUT, FREE)
        n_touched, n_met = count_items(level, parent, rows, scratch)
        n_kept, needed = keep_frequent(scratch, n_touched, threshold, rows.counters.shape[1])
        if not keep_places:
            needed = 0
        if n_found + n_kept > found.items.size or n_places + needed > found.rows.size:
            clear(scratch, n_touched)
            open_items(scratch, admitted, parent, FREE, SHUT)
            return Tally(parent, n_found, n_places, n_candidates, n_instances, needed)
        n_candidates += n_touched
        n_instances += n_met
        start = n_places if keep_places else -1
        write_found(scratch, parent, n_kept, n_found, start, rows.counters.shape[1], found)
        if keep_places and n_kept > 0:
            write_places(level, parent, rows, scratch.slots, found)
        n_found += n_kept
        n_places += needed
        clear(scratch, n_touched)
        open_items(scratch, admitted, parent, FREE, SHUT)
    return Tally(span[1], n_found, n_places, n_candidates, n_instances, 0)


@in_place
def open_items(scratch, admitted, parent, before, after):
    """Allow or disallow counting of the extensions that passed the filter."""
    if admitted.indptr.size > 0:
        for position in range(admitted.indptr[parent], admitted.indptr[parent + 1]):
            if scratch.slots[admitted.items[position]] == before:
                scratch.slots[admitted.items[position]] = after


@in_place
def count_items(level, parent, rows, scratch):
    """Count the items that can extend a conjunction; return the numbers of items and of their occurrences."""
    n_touched, n_met = 0, 0
    counts, slots = scratch.counts, scratch.slots
    n_per_row = rows.counters.shape[1]
    for place in range(level.indptr[parent], level.indptr[parent + 1]):
        row = level.rows[place]
        start, end = level.starts[place], rows.indptr[row + 1]
        n_met += end - start
        one = rows.counters[row, 0]
        other = rows.counters[row, n_per_row - 1]
        for position in range(start, end):
            item = rows.items[position]
            if slots[item] == SHUT:
                continue
            if slots[item] == FREE:
                slots[item] = COUNTED
                scratch.touched[n_touched] = item
                n_touched += 1
            counts[item, one] += 1
            if n_per_row == 2:
                counts[item, other] += 1
    return n_touched, n_met


@in_place
def keep_frequent(scratch, n_touched, threshold, n_per_row):
    """Move items with a count above the threshold to the front; return the numbers of items and places."""
    n_kept, n_counted = 0, 0
    for position in range(n_touched):
        item = scratch.touched[position]
        highest, total = 0, 0
        for counter in range(scratch.counts.shape[1]):
            highest = max(highest, scratch.counts[item, counter])
            total += scratch.counts[item, counter]
        if highest > threshold:
            scratch.touched[position] = scratch.touched[n_kept]
            scratch.touched[n_kept] = item
            n_kept += 1
            n_counted += total
        else:
            scratch.slots[item] = DROPPED
    return n_kept, n_counted // n_per_row


@in_place
def write_found(scratch, parent, n_kept, n_found, start, n_per_row, found):
    """Write the kept extensions of a conjunction.

    Their places start at `start`, and the slot of each item is set to the start of its places. If `start` is
    -1, no places are kept.
    """
    end = max(0, start)
    for kept in range(n_kept):
        item = scratch.touched[kept]
        found.parents[n_found + kept] = parent
        found.items[n_found + kept] = item
        total = 0
        for counter in range(found.counts.shape[1]):
            found.counts[n_found + kept, counter] = scratch.counts[item, counter]
            total += scratch.counts[item, counter]
        scratch.slots[item] = end
        if start >= 0:
            end += total // n_per_row
        found.ends[n_found + kept] = end


@in_place
def write_places(level, parent, rows, slots, found):
    """Write the places of the kept extensions of a conjunction; a slot has the position of the next place."""
    for place in range(level.indptr[parent], level.indptr[parent + 1]):
        row = level.rows[place]
        for position in range(level.starts[place], rows.indptr[row + 1]):
            item = rows.items[position]
            if slots[item] >= 0:
                found.rows[slots[item]] = row
                found.starts[slots[item]] = position + 1
                slots[item] += 1


@in_place
def clear(scratch, n_touched):
    """Reset the counters of the listed items to zero."""
    for position in range(n_touched):
        item = scratch.touched[position]
        scratch.slots[item] = FREE
        for counter in range(scratch.counts.shape[1]):
            scratch.counts[item, counter] = 0


@in_place
def sift(level, begin, rows, side, bloom, scratch, passed):
    """Add the candidates of one side (0: #f+, 1: #f-) to a filter, and write those that may be frequent.

    A candidate is a counter and an extension of one of the conjunctions from `begin[0]` on, which are
    numbered from `begin[1]` in the whole level. Stops before a conjunction whose candidates might not fit
    into `passed`; returns its number and the number of candidates written.
    """
    n_passed = 0
    for parent in range(begin[0], level.indptr.size - 1):
        if n_passed + scratch.touched.size > passed.items.size:
            return parent, n_passed
        seed = mix(np.uint64(0), np.uint64(begin[1] + parent))
        n_before = n_passed
        for place in range(level.indptr[parent], level.indptr[parent + 1]):
            row = level.rows[place]
            for which in range(rows.counters.shape[1]):
                if rows.counters[row, which] % 2 == side:
                    hash_items(
                        rows, level.starts[place], row, seed, rows.counters[row, which], bloom, scratch
                    )
                    n_passed = add_items(
                        rows, level.starts[place], row, parent, bloom, scratch, passed, n_passed
                    )
        for position in range(n_before, n_passed):
            scratch.slots[passed.items[position]] = FREE
    return level.indptr.size - 1, n_passed


@in_place
def hash_items(rows, start, row, seed, counter, bloom, scratch):
    """Hash the items of a row from `start` on, and load their counters, so that memory accesses overlap."""
    n_counters = scratch.counts.shape[1]
    for number in range(rows.indptr[row + 1] - start):
        hashed = hash_key(mix(seed, rows.items[start + number] * n_counters + counter))
        block = block_start(bloom, hashed)
        scratch.hashes[number] = hashed
        scratch.blocks[number] = block
        scratch.words[number] = bloom.words[(block * np.uint64(bloom.width)) >> np.uint64(6)]


@in_place
def add_items(rows, start, row, parent, bloom, scratch, passed, n_passed):
    """Add the hashed items to the filter, and return the number of candidates that have passed so far."""
    for number in range(rows.indptr[row + 1] - start):
        if add_hashed(bloom, scratch.hashes[number], scratch.blocks[number]) == bloom.limit:
            item = rows.items[start + number]
            if scratch.slots[item] == FREE:
                scratch.slots[item] = COUNTED
                passed.parents[n_passed] = parent
                passed.items[n_passed] = item
                n_passed += 1
    return n_passed


@in_place
def sort_rows(level, rows):
    """Fill the items of all rows in ascending order, and `level.starts`, from the rows of single items.

    At first, entry i + 1 of `rows.indptr` is the start of row i.
    """
    for item in range(level.indptr.size - 1):
        for place in range(level.indptr[item], level.indptr[item + 1]):
            row = level.rows[place]
            position = rows.indptr[row + 1]
            rows.items[position] = item
            rows.indptr[row + 1] = position + 1
            level.starts[place] = position + 1


class ConjunctionMatches(NamedTuple):
    """Space for the numbers of matching conjunctions, and for the current path of the search."""

    numbers: np.ndarray
    path: np.ndarray
    at: np.ndarray


class ConjunctionTrie(NamedTuple):
    """Conjunctions as paths of items; a hash table finds each node by its parent and item.

    `ends[node]` is the number of the conjunction that ends there, or -1.
    """

    keys: np.ndarray
    nodes: np.ndarray
    ends: np.ndarray
    is_inner: np.ndarray


ROOT = 0
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)


@in_place
def find_child(trie, node, item):
    """Return the slot of a child in the table, or the empty slot for it."""
    mask = np.uint64(trie.keys.size - 1)
    key = (np.uint64(node) << np.uint64(32)) | np.uint64(item)
    slot = mix(np.uint64(0), key) & mask
    while trie.keys[slot] != key and trie.keys[slot] != EMPTY:
        slot = (slot + np.uint64(1)) & mask
    return slot, key


@in_place
def insert_conjunctions(trie, n_nodes, conjunctions, numbers):
    """Add conjunctions of one order to a trie and return the number of its nodes."""
    for row in range(conjunctions.shape[0]):
        node = ROOT
        for position in range(conjunctions.shape[1]):
            slot, key = find_child(trie, node, conjunctions[row, position])
            if trie.keys[slot] == EMPTY:
                trie.keys[slot] = key
                trie.nodes[slot] = n_nodes
                trie.ends[n_nodes] = -1
                trie.is_inner[node] = True
                n_nodes += 1
            node = trie.nodes[slot]
        trie.ends[node] = numbers[row]
    return n_nodes


@in_place
def match_rows(trie, indptr, items, counts, matches):
    """Find the conjunctions in rows of ascending items.

    If `matches` has no space for numbers, they are only counted for each row; otherwise `counts[row]` is the
    position of a row's numbers.
    """
    path, at = matches.path, matches.at
    for row in range(counts.size):
        n_found = counts[row]
        depth = 0
        path[0], at[0] = ROOT, indptr[row]
        while depth >= 0:
            if at[depth] == indptr[row + 1]:
                depth -= 1
                continue
            slot, _ = find_child(trie, path[depth], items[at[depth]])
            at[depth] += 1
            if trie.keys[slot] == EMPTY:
                continue
            node = trie.nodes[slot]
            if trie.ends[node] >= 0:
                if matches.numbers.size > 0:
                    matches.numbers[n_found] = trie.ends[node]
                n_found += 1
            if trie.is_inner[node]:
                depth += 1
                path[depth], at[depth] = node, at[depth - 1]
        counts[row] = n_found
