"""Sub feature trees of dependency trees, counted where the trees of a sample differ.

A sample is a pair of a right and a wrong tree, or a list of a right tree and several wrong trees. Fragments
of trees are grown by rightmost extension (Qian & Liu 2015, section 5.2.2), so that each is visited once; the
fragments of all trees of a sample are visited together. A sub feature tree is a fragment with one feature per
arc. It is stored as one code per arc, feature * `N_DEPTHS` + depth, in the order in which the arcs were
added.

An instance of a feature is local if it contains an arc that not all trees of the sample have, or is close
enough to such an arc to grow until it includes the arc. Only local instances decide whether a feature is
extended. All other instances are in all trees.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place
from treewright.native.hashing import mix
from treewright.native.mining.forests import ArcForest, Features

N_DEPTHS = 8
"""Maximum depth of a fragment."""
RIGHT, WRONG = 0, 1
"""The right trees and the wrong trees of samples."""
FAR = 127


@in_place
def fill_distances(pairs, everywhere, degree, nodes, distances):
    """Fill the distance of each arc from the nearest arc that not all trees of its sample have.

    Distances are counted in arcs; those of `degree` or more are `FAR`. `nodes` has space for a number per
    word, and `everywhere` the mask of all trees of each sample.
    """
    for arc in range(distances.size):
        distances[arc] = 0 if pairs.masks[arc] != everywhere[pairs.owners[arc]] else FAR
    for sample in range(pairs.indptr.size - 1):
        begin, end = pairs.indptr[sample], pairs.indptr[sample + 1]
        for _ in range(degree - 1):
            for arc in range(begin, end):
                nodes[pairs.heads[arc]] = nodes[pairs.modifiers[arc]] = FAR
            for arc in range(begin, end):
                head, modifier = pairs.heads[arc], pairs.modifiers[arc]
                nodes[head] = min(nodes[head], distances[arc])
                nodes[modifier] = min(nodes[modifier], distances[arc])
            for arc in range(begin, end):
                near = min(nodes[pairs.heads[arc]], nodes[pairs.modifiers[arc]])
                if near < FAR:
                    distances[arc] = min(distances[arc], near + 1)


STAMP, FLAG, PLUS, MINUS, GAIN, LOSS, SIZE, PLACE, START = range(9)
N_COLUMNS = 9
"""Columns of the table of extensions: the last sample that has the extension; whether it has an instance
there that is not local or, while instances are written, one that is local; the numbers of samples with local
instances in the right tree and in a wrong tree; the numbers of samples where the right tree has it but not
all wrong trees, and where only wrong trees have it; the number of all instances; and where they are
written."""
SHUT = -1
"""Value in place of the sample: the extension is not to be counted."""


class Job(NamedTuple):
    """Constants of a search: the trees of samples, and the features and distances of their arcs.

    `numbers` has a random number per sample; signatures are sums of hashes of these. `rights` and
    `everywhere` have the masks of the right tree and of all trees of each sample. If `is_any`, any wrong tree
    of a sample may be chosen: features are found whose gradient can exceed the threshold for some choice of
    samples and wrong trees.
    """

    pairs: ArcForest
    features: Features
    distances: np.ndarray
    numbers: np.ndarray
    rights: np.ndarray
    everywhere: np.ndarray
    n_features: int
    degree: int
    threshold: float
    is_any: bool


class Roots(NamedTuple):
    """The arcs of feature i are `arcs[indptr[i]:indptr[i + 1]]`, from samples with a local instance."""

    indptr: np.ndarray
    arcs: np.ndarray


class Places(NamedTuple):
    """Instances of features: their arcs, a mask of the trees that contain them, and their distance."""

    arcs: np.ndarray
    masks: np.ndarray
    distances: np.ndarray


class Stack(NamedTuple):
    """Features to be extended: their codes, orders and places."""

    codes: np.ndarray
    orders: np.ndarray
    begins: np.ndarray
    ends: np.ndarray


class SelectedSubtrees(NamedTuple):
    """Features whose gradient exceeds the threshold.

    `counts` are the numbers of samples in which only the right tree, or only the wrong tree, has the feature;
    with several wrong trees, see `GAIN` and `LOSS`. Features that occur in the same trees of the same samples
    have the same signature.
    """

    codes: np.ndarray
    orders: np.ndarray
    counts: np.ndarray
    signatures: np.ndarray


class Work(NamedTuple):
    """Scratch space for a search: a table of extensions, the extensions seen, and the path to the last arc.

    `bits` has the trees of the last sample that contain local instances of each extension. `tallies` has, for
    each order, the numbers of candidates, instances and survivors.
    """

    table: np.ndarray
    bits: np.ndarray
    signatures: np.ndarray
    met: np.ndarray
    path: np.ndarray
    places: Places
    stack: Stack
    found: SelectedSubtrees
    tallies: np.ndarray


class Extension(NamedTuple):
    """An arc by which an instance of a feature is extended.

    `order` is the order of the feature, `place` the position of the instance, `slot` the depth of the arc,
    and `mask` the trees that have both.
    """

    order: int
    place: int
    slot: int
    arc: int
    mask: int


class SearchPosition(NamedTuple):
    """Progress of a search: the next root and the features found before it.

    If space ran out, `room` is the space needed for found features, for places, and for the stack.
    """

    next_root: int
    n_found: int
    room: tuple[int, int, int]


@in_place
def settle(job, table, bits, signatures, row):
    """Add the instances of a sample to the counts and the signature of an extension."""
    own, sample = bits[row], table[row, STAMP] - 1
    if own == 0:
        return
    right = own & job.rights[sample]
    if right:
        table[row, PLUS] += 1
    if own != right:
        table[row, MINUS] += 1
    if table[row, FLAG] == 0 and own != job.everywhere[sample]:
        table[row, GAIN if right else LOSS] += 1
        signatures[row] += mix(mix(job.numbers[sample], own), own)


@in_place
def count_basic(job, table, bits, signatures):
    """Count all features of single arcs in the table, whose rows are features."""
    pairs = job.pairs
    for arc in range(job.distances.size):
        is_local = job.distances[arc] < job.degree
        stamp = pairs.owners[arc] + 1
        for place in range(job.features.indptr[arc], job.features.indptr[arc + 1]):
            row = job.features.ids[place]
            if table[row, STAMP] != stamp:
                settle(job, table, bits, signatures, row)
                table[row, STAMP], table[row, FLAG], bits[row] = stamp, 0, 0
            if is_local:
                bits[row] |= pairs.masks[arc]
            else:
                table[row, FLAG] = 1
            table[row, SIZE] += 1
    for row in range(table.shape[0]):
        settle(job, table, bits, signatures, row)


@in_place
def is_selected(job, table, row):
    """Return whether the gradient of an extension exceeds the threshold, or can exceed it if `job.is_any`."""
    gain, loss = table[row, GAIN], table[row, LOSS]
    return max(gain, loss) > job.threshold if job.is_any else abs(gain - loss) > job.threshold


@in_place
def mark_selected(job, table, is_found):
    """Set which extensions are selected."""
    for row in range(table.shape[0]):
        is_found[row] = is_selected(job, table, row)


@in_place
def fill_roots(job, table, roots):
    """Fill the arcs of each feature; `table` is from `count_basic`; `roots` has space for all arcs.

    Samples without a local instance are left out; `table` then has the end of each feature's arcs.
    """
    pairs = job.pairs
    for row in range(table.shape[0]):
        table[row, STAMP] = 0
        table[row, PLACE] = table[row, START] = roots.indptr[row]
    for arc in range(job.distances.size):
        is_local = job.distances[arc] < job.degree
        stamp = pairs.owners[arc] + 1
        for place in range(job.features.indptr[arc], job.features.indptr[arc + 1]):
            row = job.features.ids[place]
            if table[row, STAMP] != stamp:
                begin_sample(table, row, stamp)
            table[row, FLAG] |= 1 if is_local else 0
            roots.arcs[table[row, PLACE]] = arc
            table[row, PLACE] += 1
    for row in range(table.shape[0]):
        begin_sample(table, row, 0)


@in_place
def begin_sample(table, row, stamp):
    """Start a sample, and remove the places in the previous sample if none of them was local."""
    if table[row, STAMP] != 0 and table[row, FLAG] == 0:
        table[row, PLACE] = table[row, START]
    table[row, START] = table[row, PLACE]
    table[row, STAMP], table[row, FLAG] = stamp, 0


@in_place
def search_roots(job, roots, ends, span, work):
    """Count all features that grow from a range of basic features, depth first; stop where space runs out.

    The features of a root for which space runs out are not returned.
    """
    n_found = 0
    for root in range(span[0], span[1]):
        for order in range(work.tallies.shape[0]):
            for column in range(work.tallies.shape[1]):
                work.tallies[order, column, 1] = 0
        has_room, n_now, n_places, n_waiting = search_root(job, roots, ends, root, n_found, work)
        if not has_room:
            return SearchPosition(root, n_found, (n_now, n_places, n_waiting))
        n_found = n_now
        for order in range(work.tallies.shape[0]):
            for column in range(work.tallies.shape[1]):
                work.tallies[order, column, 0] += work.tallies[order, column, 1]
    return SearchPosition(span[1], n_found, (0, 0, 0))


@in_place
def search_root(job, roots, ends, root, n_found, work):
    """Count all features that grow from a basic one; return whether there was space, and the space needed."""
    places, stack = work.places, work.stack
    n_begin = ends[root] - roots.indptr[root]
    if n_begin > places.masks.size:
        return False, n_found, n_begin, 0
    for place in range(n_begin):
        arc = roots.arcs[roots.indptr[root] + place]
        places.arcs[place, 0] = arc
        places.masks[place], places.distances[place] = job.pairs.masks[arc], job.distances[arc]
    stack.codes[0, 0], stack.orders[0] = root * N_DEPTHS, 1
    stack.begins[0], stack.ends[0] = 0, n_begin
    n_waiting = 1
    while n_waiting > 0:
        n_waiting -= 1
        n_slots = set_path(stack.codes, n_waiting, stack.orders[n_waiting], work.path)
        n_met = visit(job, work, n_waiting, n_slots, 0, False)
        n_kept, n_places, n_found = judge(job, work, n_met, n_waiting, n_found)
        n_needed = n_waiting + n_kept
        if n_found > work.found.orders.size or n_needed > stack.orders.size or n_places > places.masks.size:
            clear(work, n_met)
            return False, n_found, n_places, n_needed
        if n_kept > 0:
            visit(job, work, n_waiting, n_slots, n_met, True)
            n_waiting = push(job, work, n_met, n_waiting, n_kept, n_places)
        clear(work, n_met)
    return True, n_found, 0, 0


@in_place
def set_path(codes, number, order, path):
    """Fill the last arc of a feature at each depth of its rightmost path; return the length of the path."""
    for position in range(order):
        path[codes[number, position] % N_DEPTHS] = position
    return codes[number, order - 1] % N_DEPTHS + 1


@in_place
def visit(job, work, number, n_slots, n_met, is_writing):
    """Visit the extensions of all instances of a feature, to count them or to write their places.

    A new arc is either the right neighbour of an arc of the rightmost path, at the same depth, or an arc
    directly below the last arc.
    Returns the number of extensions visited.
    """
    pairs, places, stack = job.pairs, work.places, work.stack
    order = stack.orders[number]
    for place in range(stack.begins[number], stack.ends[number]):
        mask = places.masks[place]
        for slot in range(n_slots):
            left = places.arcs[place, work.path[slot]]
            for at in range(pairs.first_next[left], pairs.first_next[left + 1]):
                shared = mask & pairs.next_masks[at]
                if shared:
                    right = Extension(order, place, slot, pairs.next_arcs[at], shared)
                    n_met = add_extension(job, work, right, n_met, is_writing)
        above = places.arcs[place, order - 1]
        for arc in range(pairs.first_child[above], pairs.end_child[above]):
            shared = mask & pairs.masks[arc]
            if shared:
                below = Extension(order, place, n_slots, arc, shared)
                n_met = add_extension(job, work, below, n_met, is_writing)
    return n_met


@in_place
def add_extension(job, work, extension, n_met, is_writing):
    """Count, or write, all features of an instance that is extended by an arc."""
    order, place, slot, arc, mask = extension
    sample = job.pairs.owners[arc]
    is_shared = mask == job.everywhere[sample]
    distance = min(work.places.distances[place], job.distances[arc]) if is_shared else 0
    is_local = distance <= job.degree - order - 1
    stamp = sample + 1
    base = slot * job.n_features
    table = work.table
    for at in range(job.features.indptr[arc], job.features.indptr[arc + 1]):
        row = base + job.features.ids[at]
        if is_writing:
            if table[row, SIZE] > 0:
                if table[row, STAMP] != stamp:
                    begin_sample(table, row, stamp)
                table[row, FLAG] |= 1 if is_local else 0
                write_place(work.places, place, order, arc, mask, distance, table[row, PLACE])
                table[row, PLACE] += 1
            continue
        if table[row, STAMP] != stamp:
            if table[row, STAMP] == SHUT:
                continue
            if table[row, STAMP] == 0:
                work.met[n_met] = row
                n_met += 1
            else:
                settle(job, table, work.bits, work.signatures, row)
            table[row, STAMP], table[row, FLAG], work.bits[row] = stamp, 0, 0
        if is_local:
            work.bits[row] |= mask
        else:
            table[row, FLAG] = 1
        table[row, SIZE] += 1
    return n_met


@in_place
def write_place(places, place, order, arc, mask, distance, target):
    """Write an instance that is extended by an arc."""
    for position in range(order):
        places.arcs[target, position] = places.arcs[place, position]
    places.arcs[target, order] = arc
    places.masks[target], places.distances[target] = mask, distance


@in_place
def judge(job, work, n_met, number, n_found):
    """Determine which extensions survive, and write those whose gradient exceeds the threshold.

    Returns the number of extensions that will be extended further, the number of places that their instances
    need, and the number of features found so far. Afterwards, the row of each of these extensions has its
    first place; the rows of the others have no instances.
    """
    table, found, order = work.table, work.found, work.stack.orders[number]
    is_extended = order + 1 < job.degree
    n_kept, n_places = 0, work.stack.ends[number]
    for at in range(n_met):
        row = work.met[at]
        settle(job, table, work.bits, work.signatures, row)
        work.tallies[order, 0, 1] += 1
        work.tallies[order, 1, 1] += table[row, SIZE]
        survives = max(table[row, PLUS], table[row, MINUS]) > job.threshold
        if survives:
            work.tallies[order, 2, 1] += 1
            if is_selected(job, table, row):
                if n_found < found.orders.size:
                    copy_codes(job, work.stack.codes, number, order, row, found.codes, n_found)
                    found.orders[n_found] = order + 1
                    found.signatures[n_found] = work.signatures[row]
                    found.counts[n_found, 0], found.counts[n_found, 1] = table[row, GAIN], table[row, LOSS]
                n_found += 1
        if survives and is_extended:
            table[row, STAMP] = 0
            table[row, PLACE] = table[row, START] = n_places
            n_kept += 1
            n_places += table[row, SIZE]
        else:
            table[row, SIZE] = 0
    return n_kept, n_places, n_found


@in_place
def copy_codes(job, codes, number, order, row, target, at):
    """Write the codes of a feature and of its extension."""
    for position in range(order):
        target[at, position] = codes[number, position]
    slot = row // job.n_features
    target[at, order] = (row - slot * job.n_features) * N_DEPTHS + slot


@in_place
def push(job, work, n_met, number, n_kept, n_places):
    """Replace a feature on the stack by its extensions; return the size of the stack.

    Extensions are sorted by their places, so the space after the places of the topmost one is free. The first
    extension overwrites the feature itself, so it is written last.
    """
    table, stack = work.table, work.stack
    order, position = stack.orders[number], number + n_kept
    for at in range(n_met - 1, -1, -1):
        row = work.met[at]
        if table[row, SIZE] > 0:
            position -= 1
            n_places -= table[row, SIZE]
            begin_sample(table, row, 0)
            copy_codes(job, stack.codes, number, order, row, stack.codes, position)
            stack.orders[position] = order + 1
            stack.begins[position], stack.ends[position] = n_places, table[row, PLACE]
    return number + n_kept


@in_place
def clear(work, n_met):
    """Reset the used rows of the table to zero."""
    for at in range(n_met):
        work.bits[work.met[at]], work.signatures[work.met[at]] = 0, np.uint64(0)
        for column in range(N_COLUMNS):
            work.table[work.met[at], column] = 0
