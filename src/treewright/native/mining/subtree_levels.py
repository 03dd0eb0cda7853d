"""Sub feature trees counted order by order, after filtering by a spectral Bloom filter.

Qian & Liu (2015), section 4.2: one round over the extensions in right trees, one over those in wrong trees,
and an exact count of the extensions that passed the filter in one of these rounds.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place
from treewright.native.hashing import mix
from treewright.native.mining.bloom import Bloom, add
from treewright.native.mining.subtrees import (
    RIGHT,
    SHUT,
    STAMP,
    Places,
    clear,
    judge,
    push,
    set_path,
    visit,
)

PASSED = -1
"""Value in place of a sample: the extension has passed the filter."""
ARC, SLOT = range(2)


class SubtreeLevel(NamedTuple):
    """Features of one order; the places of feature i are those from `indptr[i]` to `indptr[i + 1]`."""

    codes: np.ndarray
    indptr: np.ndarray
    places: Places


class AdmittedRows(NamedTuple):
    """Rows of the extension table that may be counted: those of feature i start at `indptr[i]`."""

    indptr: np.ndarray
    rows: np.ndarray


class Sieve(NamedTuple):
    """A filter, with the sample where each extension was last seen, and space for the arcs of one place.

    `extensions` has the arc and the depth of each extension of a place, and `masks` its trees.
    """

    bloom: Bloom
    stamps: np.ndarray
    met: np.ndarray
    path: np.ndarray
    extensions: np.ndarray
    masks: np.ndarray


class PassedRows(NamedTuple):
    """Space for extensions that pass a filter: the features that they extend and their rows of the table."""

    parents: np.ndarray
    rows: np.ndarray


class GrownSubtrees(NamedTuple):
    """Arrays to fill with surviving features, their places, and the end of the places of each feature."""

    codes: np.ndarray
    ends: np.ndarray
    places: Places


class LevelPosition(NamedTuple):
    """Progress of `extend_level`: the next feature, and the features found and grown before it.

    If space ran out, `room` is the space that the next feature needs: for found features, for places, and for
    features that survive.
    """

    next_parent: int
    n_found: int
    n_grown: int
    room: tuple[int, int, int]


@in_place
def list_extensions(pairs, places, place, order, sieve):
    """Write the arcs by which an instance can be extended, in the order of `visit`; return their number.

    `sieve.path` is from `set_path` and has `order[1]` arcs, for a feature of `order[0]` arcs.
    """
    n, extensions, masks = 0, sieve.extensions, sieve.masks
    for slot in range(order[1]):
        left = places.arcs[place, sieve.path[slot]]
        for at in range(pairs.first_next[left], pairs.first_next[left + 1]):
            shared = places.masks[place] & pairs.next_masks[at]
            if shared:
                extensions[n, ARC], extensions[n, SLOT], masks[n] = pairs.next_arcs[at], slot, shared
                n += 1
    above = places.arcs[place, order[0] - 1]
    for arc in range(pairs.first_child[above], pairs.end_child[above]):
        shared = places.masks[place] & pairs.masks[arc]
        if shared:
            extensions[n, ARC], extensions[n, SLOT], masks[n] = arc, order[1], shared
            n += 1
    return n


@in_place
def count_extensions(job, level, sieve):
    """Return how often extensions of the features of a level are visited, to choose the filter size."""
    n_met, order = 0, level.codes.shape[1]
    for parent in range(level.indptr.size - 1):
        n_slots = set_path(level.codes, parent, order, sieve.path)
        for place in range(level.indptr[parent], level.indptr[parent + 1]):
            n = list_extensions(job.pairs, level.places, place, (order, n_slots), sieve)
            for number in range(n):
                arc = sieve.extensions[number, ARC]
                n_met += job.features.indptr[arc + 1] - job.features.indptr[arc]
    return n_met


@in_place
def sift_level(job, level, begin, side, sieve, passed):
    """Add the extensions of one side (right or wrong trees) to a filter; write those that pass.

    Each extension is added once per sample, if one of its instances there is local. Stops before a feature
    whose extensions might not fit into `passed`; returns its number and the number of extensions written.
    """
    n_passed, order, stamps = 0, level.codes.shape[1], sieve.stamps
    for parent in range(begin, level.indptr.size - 1):
        if n_passed + sieve.met.size > passed.rows.size:
            return parent, n_passed
        seed, n_met = mix(np.uint64(0), np.uint64(parent)), 0
        n_slots = set_path(level.codes, parent, order, sieve.path)
        for place in range(level.indptr[parent], level.indptr[parent + 1]):
            n = list_extensions(job.pairs, level.places, place, (order, n_slots), sieve)
            for number in range(n):
                arc, mask = sieve.extensions[number, ARC], sieve.masks[number]
                sample = job.pairs.owners[arc]
                right = mask & job.rights[sample]
                is_shared = mask == job.everywhere[sample]
                distance = min(level.places.distances[place], job.distances[arc]) if is_shared else 0
                is_there = right != 0 if side == RIGHT else mask != right
                if not is_there or distance > job.degree - order - 1:
                    continue
                stamp = sample + 1
                for at in range(job.features.indptr[arc], job.features.indptr[arc + 1]):
                    row = sieve.extensions[number, SLOT] * job.n_features + job.features.ids[at]
                    if stamps[row] == stamp or stamps[row] == PASSED:
                        continue
                    if stamps[row] == 0:
                        sieve.met[n_met] = row
                        n_met += 1
                    stamps[row] = stamp
                    if add(sieve.bloom, mix(seed, np.uint64(row))) == sieve.bloom.limit:
                        stamps[row] = PASSED
                        passed.parents[n_passed], passed.rows[n_passed] = parent, row
                        n_passed += 1
        for at in range(n_met):
            stamps[sieve.met[at]] = 0
    return level.indptr.size - 1, n_passed


@in_place
def extend_level(job, level, begin, admitted, work, grown):
    """Count the admitted extensions of the features of a level; write those that are selected or survive.

    All rows of `work.table` are `SHUT` before and after the call. Survivors are in the order of a depth-first
    search. Stops before a feature for which space runs out.
    """
    order = level.codes.shape[1]
    n_found, n_grown, n_written = 0, 0, 0
    for parent in range(begin, level.indptr.size - 1):
        n_begin = level.indptr[parent + 1] - level.indptr[parent]
        if n_begin > work.places.masks.size:
            return LevelPosition(parent, n_found, n_grown, (0, n_begin, 0))
        load_feature(level, parent, work)
        set_stamps(work.table, admitted, parent, 0)
        for column in range(work.tallies.shape[1]):
            work.tallies[order, column, 1] = 0
        n_slots = set_path(work.stack.codes, 0, order, work.path)
        n_met = visit(job, work, 0, n_slots, 0, False)
        n_kept, n_places, n_now = judge(job, work, n_met, 0, n_found)
        has_room = (
            n_now <= work.found.orders.size
            and n_kept <= min(work.stack.orders.size, grown.ends.size - n_grown)
            and n_places <= work.places.masks.size
            and n_places - n_begin <= grown.places.masks.size - n_written
        )
        if has_room and n_kept > 0:
            visit(job, work, 0, n_slots, n_met, True)
            push(job, work, n_met, 0, n_kept, n_places)
            n_written = take_grown(work, order + 1, n_kept, grown, (n_grown, n_written))
            n_grown += n_kept
        clear(work, n_met)
        set_stamps(work.table, admitted, parent, SHUT)
        if not has_room:
            return LevelPosition(parent, n_found, n_grown, (n_now - n_found, n_places, n_kept))
        n_found = n_now
        for column in range(work.tallies.shape[1]):
            work.tallies[order, column, 0] += work.tallies[order, column, 1]
    return LevelPosition(level.indptr.size - 1, n_found, n_grown, (0, 0, 0))


@in_place
def load_feature(level, number, work):
    """Load a feature of a level, with its places, at the bottom of the stack."""
    begin, end = level.indptr[number], level.indptr[number + 1]
    order, places = level.codes.shape[1], work.places
    for place in range(begin, end):
        for position in range(order):
            places.arcs[place - begin, position] = level.places.arcs[place, position]
        places.masks[place - begin] = level.places.masks[place]
        places.distances[place - begin] = level.places.distances[place]
    for position in range(order):
        work.stack.codes[0, position] = level.codes[number, position]
    work.stack.orders[0], work.stack.begins[0], work.stack.ends[0] = order, 0, end - begin


@in_place
def set_stamps(table, admitted, parent, stamp):
    """Allow or disallow counting of the admitted extensions of a feature."""
    for at in range(admitted.indptr[parent], admitted.indptr[parent + 1]):
        table[admitted.rows[at], STAMP] = stamp


@in_place
def take_grown(work, order, n_kept, grown, n_before):
    """Copy the features from the stack, topmost first; return the number of places written.

    `n_before` are the numbers of features and places written before.
    """
    stack = work.stack
    n_grown, n_written = n_before
    for number in range(n_kept - 1, -1, -1):
        for position in range(order):
            grown.codes[n_grown, position] = stack.codes[number, position]
        for place in range(stack.begins[number], stack.ends[number]):
            for position in range(order):
                grown.places.arcs[n_written, position] = work.places.arcs[place, position]
            grown.places.masks[n_written] = work.places.masks[place]
            grown.places.distances[n_written] = work.places.distances[place]
            n_written += 1
        grown.ends[n_grown] = n_written
        n_grown += 1
    return n_written
