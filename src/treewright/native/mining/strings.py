"""Gappy n-grams of sequences: counted order by order, and matched in rows.

A sequence has positions, and a position has items. A gappy n-gram is a list of items at ascending positions.
There are two kinds of joints between items: the next item is at the next position, or anywhere within the
reach of the previous position. A code is twice the number of an item, plus one if a gap is allowed before it.
Each surviving n-gram keeps the positions where it can end; its extensions by one more code are counted
together in one dense array. Both the positions and their reaches are in ascending order, so each possible
next position is visited once for all ends in a row. A candidate is counted once per row without being
created, stored or looked up.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place
from treewright.native.mining.conjunctions import EMPTY, ROOT, find_child


class ItemSequences(NamedTuple):
    """Rows of positions with items; the items of a position are distinct.

    The items of position p are `items[indptr[p]:indptr[p + 1]]`, in row `rows[p]`; rows are in ascending
    order. The positions that can follow p are those from p + 1 up to, but not including, `reach[p]`; a gap is
    allowed only if `has_gaps[p]` is true. A search extends an n-gram to p only if it then has at most
    `limits[p]` items, plus `bonus[i]` if it begins with item i.
    """

    indptr: np.ndarray
    items: np.ndarray
    rows: np.ndarray
    reach: np.ndarray
    has_gaps: np.ndarray
    limits: np.ndarray
    bonus: np.ndarray


class GramLevel(NamedTuple):
    """N-grams of one order, each a row of codes.

    N-gram f ends at the positions `ends[indptr[f]:indptr[f + 1]]`, ascending.
    """

    codes: np.ndarray
    indptr: np.ndarray
    ends: np.ndarray


class GramScratch(NamedTuple):
    """For each code, its counters, the last row in which it was seen, and its number of places.

    Between calls, counters and numbers of places are zero, and rows are -1. `touched` is a list of codes.
    """

    counts: np.ndarray
    last_rows: np.ndarray
    n_places: np.ndarray
    touched: np.ndarray


class GrownGrams(NamedTuple):
    """Space for n-grams of the next order: parents, last codes, counts, and ends of their places."""

    parents: np.ndarray
    codes: np.ndarray
    counts: np.ndarray
    indptr: np.ndarray
    ends: np.ndarray


class GramTally(NamedTuple):
    """Progress of `extend`: n-grams done, output written, items visited, and missing space."""

    next_parent: int
    n_found: int
    n_places: int
    n_candidates: int
    n_instances: int
    n_missing: int


ADJACENT, GAPPY = 0, 1
"""Kinds of joints; a code is twice an item plus its joint."""


@in_place
def count_items(sequences, counters, scratch):
    """Count the rows with each item; return the number of items and the sum of their row counts."""
    n_touched, n_met = 0, 0
    for position in range(sequences.rows.size):
        n_touched, n_met = count_position(sequences, counters, position, ADJACENT, scratch, n_touched, n_met)
    return n_touched, n_met


@in_place
def extend(level, span, sequences, counters, threshold, scratch, found, keep_places):
    """Count the extensions of the n-grams in `span`, and write those with counts above the threshold.

    Stops before the first n-gram whose extensions do not fit; the `GramTally` has its number and the space
    for places that it needs. If `keep_places` is false, no places are written.
    """
    n_found, n_places, n_candidates, n_instances = 0, 0, 0, 0
    for parent in range(span[0], span[1]):
        n_touched, n_met = count_followers(level, parent, sequences, counters, scratch)
        n_kept, needed = keep_frequent(scratch, n_touched, threshold)
        if not keep_places:
            needed = 0
        if n_found + n_kept > found.codes.size or n_places + needed > found.ends.size:
            clear(scratch, n_touched)
            return GramTally(parent, n_found, n_places, n_candidates, n_instances, needed)
        n_candidates += n_touched
        n_instances += n_met
        end = n_places
        for kept in range(n_kept):
            code = scratch.touched[kept]
            found.parents[n_found + kept] = parent
            found.codes[n_found + kept] = code
            for counter in range(found.counts.shape[1]):
                found.counts[n_found + kept, counter] = scratch.counts[code, counter]
            start = end
            if keep_places:
                end += scratch.n_places[code]
            found.indptr[n_found + kept] = end
            # From here on, this is the position of the code's next place.
            scratch.n_places[code] = start
        for rare in range(n_kept, n_touched):
            scratch.n_places[scratch.touched[rare]] = -1
        if keep_places and n_kept > 0:
            write_places(level, parent, sequences, scratch.n_places, found.ends)
        n_found += n_kept
        n_places = end
        clear(scratch, n_touched)
    return GramTally(span[1], n_found, n_places, n_candidates, n_instances, 0)


@in_place
def count_followers(level, parent, sequences, counters, scratch):
    """Count the codes that can follow an n-gram; return their number and the sum of their row counts."""
    n_touched, n_met, done = 0, 0, 0
    order = level.codes.shape[1] - sequences.bonus[level.codes[parent, 0] // 2]
    for place in range(level.indptr[parent], level.indptr[parent + 1]):
        end = level.ends[place]
        reach = sequences.reach[end]
        if reach > end + 1 and sequences.limits[end + 1] > order:
            n_touched, n_met = count_position(
                sequences, counters, end + 1, ADJACENT, scratch, n_touched, n_met
            )
        if sequences.has_gaps[end]:
            for position in range(max(end + 1, done), reach):
                if sequences.limits[position] > order:
                    n_touched, n_met = count_position(
                        sequences, counters, position, GAPPY, scratch, n_touched, n_met
                    )
            done = max(done, reach)
    return n_touched, n_met


@in_place
def count_position(sequences, counters, position, joint, scratch, n_touched, n_met):
    """Count the items of a position, each once per row; return the updated `n_touched` and `n_met`."""
    row = sequences.rows[position]
    n_per_row = counters.shape[1]
    for at in range(sequences.indptr[position], sequences.indptr[position + 1]):
        code = 2 * sequences.items[at] + joint
        if scratch.n_places[code] == 0:
            scratch.touched[n_touched] = code
            n_touched += 1
        scratch.n_places[code] += 1
        if scratch.last_rows[code] != row:
            scratch.last_rows[code] = row
            n_met += 1
            scratch.counts[code, counters[row, 0]] += 1
            if n_per_row == 2:
                scratch.counts[code, counters[row, 1]] += 1
    return n_touched, n_met


@in_place
def keep_frequent(scratch, n_touched, threshold):
    """Move codes with a count above the threshold to the front; return the numbers of codes and places."""
    n_kept, n_places = 0, 0
    for position in range(n_touched):
        code = scratch.touched[position]
        highest = 0
        for counter in range(scratch.counts.shape[1]):
            highest = max(highest, scratch.counts[code, counter])
        if highest > threshold:
            scratch.touched[position] = scratch.touched[n_kept]
            scratch.touched[n_kept] = code
            n_kept += 1
            n_places += scratch.n_places[code]
    return n_kept, n_places


@in_place
def write_places(level, parent, sequences, slots, ends):
    """Write where the kept extensions of an n-gram end; a slot has the position of the next place, or -1."""
    done = 0
    order = level.codes.shape[1] - sequences.bonus[level.codes[parent, 0] // 2]
    for place in range(level.indptr[parent], level.indptr[parent + 1]):
        end = level.ends[place]
        reach = sequences.reach[end]
        if reach > end + 1 and sequences.limits[end + 1] > order:
            write_position(sequences, end + 1, ADJACENT, slots, ends)
        if sequences.has_gaps[end]:
            for position in range(max(end + 1, done), reach):
                if sequences.limits[position] > order:
                    write_position(sequences, position, GAPPY, slots, ends)
            done = max(done, reach)


@in_place
def write_position(sequences, position, joint, slots, ends):
    """Write a position as a place of each of its codes that has a slot."""
    for at in range(sequences.indptr[position], sequences.indptr[position + 1]):
        code = 2 * sequences.items[at] + joint
        if slots[code] >= 0:
            ends[slots[code]] = position
            slots[code] += 1


@in_place
def clear(scratch, n_touched):
    """Reset the scratch space for the next n-gram."""
    for position in range(n_touched):
        code = scratch.touched[position]
        scratch.n_places[code] = 0
        scratch.last_rows[code] = -1
        for counter in range(scratch.counts.shape[1]):
            scratch.counts[code, counter] = 0


class GramMatches(NamedTuple):
    """Space for the numbers of matching n-grams, and for the search within a row.

    `nodes` and `ends` are a queue of trie nodes and the positions where they end. `done[node]` is the
    position up to which the followers of a node have been visited; it is 0 between calls.
    """

    numbers: np.ndarray
    nodes: np.ndarray
    ends: np.ndarray
    done: np.ndarray


@in_place
def match_rows(trie, sequences, row_indptr, begin, counts, matches):
    """Find n-grams in the rows from `begin` on; return the first row that does not fit into the queue.

    If `matches` has no space for numbers, they are only counted for each row; otherwise `counts[row]` is the
    position of a row's numbers. In the queue, the ends of each node are in ascending order, since those of
    its parent are.
    """
    for row in range(begin, counts.size):
        n_found, length, head = counts[row], 0, 0
        for position in range(row_indptr[row], row_indptr[row + 1]):
            n_found, length = follow(trie, ROOT, sequences, position, ADJACENT, matches, n_found, length)
        while head < min(length, matches.nodes.size):
            node, end = matches.nodes[head], matches.ends[head]
            reach = sequences.reach[end]
            head += 1
            if not trie.is_inner[node]:
                continue
            if reach > end + 1:
                n_found, length = follow(trie, node, sequences, end + 1, ADJACENT, matches, n_found, length)
            if sequences.has_gaps[end]:
                for position in range(max(end + 1, matches.done[node]), reach):
                    n_found, length = follow(trie, node, sequences, position, GAPPY, matches, n_found, length)
                matches.done[node] = max(matches.done[node], reach)
        for entry in range(min(length, matches.nodes.size)):
            matches.done[matches.nodes[entry]] = 0
        if length > matches.nodes.size:
            return row
        counts[row] = n_found
    return counts.size


@in_place
def follow(trie, node, sequences, position, joint, matches, n_found, length):
    """Add the children of a node at a position to the queue; return the numbers of n-grams and of entries.

    If the queue is full, the number of entries is one more than its size.
    """
    for at in range(sequences.indptr[position], sequences.indptr[position + 1]):
        slot, _ = find_child(trie, node, 2 * sequences.items[at] + joint)
        if trie.keys[slot] == EMPTY:
            continue
        if length >= matches.nodes.size:
            return n_found, matches.nodes.size + 1
        child = trie.nodes[slot]
        matches.nodes[length] = child
        matches.ends[length] = position
        length += 1
        if matches.done[child] == 0:
            matches.done[child] = position + 1
            if trie.ends[child] >= 0:
                if matches.numbers.size > 0:
                    matches.numbers[n_found] = trie.ends[child]
                n_found += 1
    return n_found, length
