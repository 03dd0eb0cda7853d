"""Atomic features of inferences, extracted on demand (Turian & Melamed 2006, sections 3.4 and 4).

Each pair of a group of items and a predicate has a base number. The number of a feature is this base plus the
value of the predicate for the item.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place, inlined
from treewright.native.constituent.states import (
    N_PREDICATES,
    Cuts,
    Heads,
    Inferences,
    Items,
    binned,
    find_head,
)

CHILD, LAST_CHILD, LEFT, RIGHT, FIRST_WORD, LAST_WORD, WORD_BEFORE, WORD_AFTER, END, CHILDREN = range(10)
ALL_LEFT, ALL_RIGHT, SIZE, N_WORDS, N_LEFT, N_RIGHT, HEAD, OTHERS, WORDS_OF_OTHERS = range(10, 19)
"""Groups of items; those from `HEAD` on depend on the head of the inference."""


class Atoms(NamedTuple):
    """Groups of items: their kind, their argument, and the base number for each predicate, or -1.

    The groups that depend on the head come last, from number `n_shared` on.
    """

    kinds: np.ndarray
    arguments: np.ndarray
    bases: np.ndarray
    n_shared: int


class Source(NamedTuple):
    """Training examples: inferences, the states and items that they refer to, and head rules."""

    inferences: Inferences
    cuts: Cuts
    items: Items
    heads: Heads


class Tests(NamedTuple):
    """The test of each node of a decision tree: a group of items, a predicate and its value."""

    kinds: np.ndarray
    arguments: np.ndarray
    predicates: np.ndarray
    values: np.ndarray


class Place(NamedTuple):
    """A state: the start and length of its frontier, and the first word and length of its sentence."""

    offset: int
    length: int
    word: int
    n_words: int


@inlined
def put(values, bases, group, item, out, n_out):
    """Write the features of an item in a group."""
    for predicate in range(N_PREDICATES):
        base = bases[group, predicate]
        if base >= 0:
            out[n_out] = base + values[item, predicate]
            n_out += 1
    return n_out


@in_place
def sort_unique(out, begin, end):
    """Sort the numbers from `begin` to `end`, remove duplicates, and return the new end."""
    gap = 1
    while 9 * gap < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(begin + gap, end):
            number, place = out[at], at
            while place >= begin + gap and out[place - gap] > number:
                out[place] = out[place - gap]
                place -= gap
            out[place] = number
        gap //= 3
    kept = begin
    for at in range(begin, end):
        if kept == begin or out[at] != out[kept - 1]:
            out[kept] = out[at]
            kept += 1
    return kept


@inlined
def item_at(kind, argument, frontier, begin, size, place, start, stop):
    """Return the item of a group that has a single item, or -1 if there is none."""
    if kind == CHILD:
        return frontier[place.offset + begin + argument] if argument < size else -1
    if kind == LAST_CHILD:
        return frontier[place.offset + begin + size - 1 - argument] if argument < size else -1
    if kind == LEFT:
        return frontier[place.offset + begin - 1 - argument] if argument < begin else -1
    if kind == RIGHT:
        at = begin + size + argument
        if at == place.length:
            return place.word + place.n_words
        return frontier[place.offset + at] if at < place.length else -1
    if kind == FIRST_WORD:
        return place.word + start + argument if start + argument < stop else -1
    if kind == LAST_WORD:
        return place.word + stop - 1 - argument if stop - 1 - argument >= start else -1
    if kind == WORD_BEFORE:
        return place.word + start - 1 - argument if start - 1 - argument >= 0 else -1
    if kind == WORD_AFTER:
        return place.word + stop + argument if stop + argument <= place.n_words else -1
    return place.word + place.n_words


@in_place
def extract_shared(atoms, items, frontier, place, begin, size, out):
    """Write the features of an inference that do not depend on its head, sorted; return their number."""
    start = items.starts[frontier[place.offset + begin]]
    stop = items.ends[frontier[place.offset + begin + size - 1]] if size > 0 else start
    n_out = 0
    for group in range(atoms.n_shared):
        kind, argument = atoms.kinds[group], atoms.arguments[group]
        if kind < CHILDREN:
            item = item_at(kind, argument, frontier, begin, size, place, start, stop)
            if item >= 0:
                n_out = put(items.values, atoms.bases, group, item, out, n_out)
        elif kind < SIZE:
            low, high = find_range(kind, begin, size, place)
            before = n_out
            for at in range(low, high):
                n_out = put(items.values, atoms.bases, group, frontier[at], out, n_out)
            n_out = sort_unique(out, before, n_out)
        else:
            out[n_out] = atoms.bases[group, 0] + binned(find_number(kind, begin, size, place, stop - start))
            n_out += 1
    return n_out


@inlined
def find_range(kind, begin, size, place):
    """Return the start and end of a group's items on the frontier."""
    if kind == ALL_LEFT:
        return place.offset, place.offset + begin
    if kind == ALL_RIGHT:
        return place.offset + begin + size, place.offset + place.length
    return place.offset + begin, place.offset + begin + size


@inlined
def find_number(kind, begin, size, place, n_words):
    """Return the value of a numeric group."""
    if kind == SIZE:
        return size
    if kind == N_WORDS:
        return n_words
    return begin if kind == N_LEFT else place.length - begin - size


@in_place
def extract_headed(atoms, items, frontier, place, begin, size, head, out, n_out):
    """Append the head-dependent features of an inference to `n_out` others; return the total number."""
    base = place.offset + begin
    for group in range(atoms.n_shared, atoms.kinds.size):
        kind = atoms.kinds[group]
        if kind == HEAD:
            n_out = put(items.values, atoms.bases, group, frontier[base + head], out, n_out)
            continue
        before = n_out
        for at in range(size):
            if at == head:
                continue
            item = frontier[base + at]
            if kind == OTHERS:
                n_out = put(items.values, atoms.bases, group, item, out, n_out)
            else:
                for word in range(items.starts[item], items.ends[item]):
                    n_out = put(items.values, atoms.bases, group, place.word + word, out, n_out)
        n_out = sort_unique(out, before, n_out)
    return n_out


@in_place
def extract_examples(atoms, source, label, numbers, rows):
    """Fill the features of the given inferences for a label; return whether there was enough space."""
    inferences, cuts, items, heads = source.inferences, source.cuts, source.items, source.heads
    rows.indptr[0], n_out, room = 0, 0, rows.columns.size
    for example in range(numbers.size):
        number = numbers[example]
        state, begin, size = inferences.states[number], inferences.begins[number], inferences.sizes[number]
        offset = cuts.indptr[state]
        place = Place(offset, cuts.indptr[state + 1] - offset, cuts.words[state], cuts.n_words[state])
        most = N_PREDICATES * (atoms.kinds.size + 4 * place.length + 2 * place.n_words)
        if n_out + most > room:
            return False
        out = rows.columns[n_out:]
        count = extract_shared(atoms, items, cuts.frontier, place, begin, size, out)
        if size > 0:
            head = find_head(heads, items, cuts.frontier, offset + begin, size, label)
            count = extract_headed(atoms, items, cuts.frontier, place, begin, size, head, out, count)
        n_out += count
        rows.indptr[example + 1] = n_out
    return True


@in_place
def percolate(source, label, numbers, tests, tree, leaves):
    """Fill the leaf of a decision tree that each of the given inferences reaches, for a label.

    Only the features that the tree tests are computed, which does not change the result.
    """
    cuts, items, frontier = source.cuts, source.items, source.cuts.frontier
    for example in range(numbers.size):
        number = numbers[example]
        state, begin = source.inferences.states[number], source.inferences.begins[number]
        size, offset = source.inferences.sizes[number], cuts.indptr[state]
        place = Place(offset, cuts.indptr[state + 1] - offset, cuts.words[state], cuts.n_words[state])
        start = items.starts[frontier[offset + begin]]
        stop = items.ends[frontier[offset + begin + size - 1]] if size > 0 else start
        head, node = -1, 0
        while tree.features[node] >= 0:
            kind = tests.kinds[node]
            if kind < HEAD:
                is_present = has_shared(tests, node, items, frontier, place, begin, size, start, stop)
            else:
                if head < 0 and size > 0:
                    head = find_head(source.heads, items, frontier, offset + begin, size, label)
                is_present = size > 0 and has_headed(tests, node, items, frontier, place, begin, size, head)
            node = tree.present[node] if is_present else tree.absent[node]
        leaves[example] = node


@inlined
def has_shared(tests, node, items, frontier, place, begin, size, start, stop):
    """Return whether an inference has the head-independent feature that a node tests."""
    kind, predicate, value = tests.kinds[node], tests.predicates[node], tests.values[node]
    is_present = False
    if kind < CHILDREN:
        item = item_at(kind, tests.arguments[node], frontier, begin, size, place, start, stop)
        is_present = item >= 0 and items.values[item, predicate] == value
    elif kind < SIZE:
        low, high = find_range(kind, begin, size, place)
        for at in range(low, high):
            if items.values[frontier[at], predicate] == value:
                is_present = True
                break
    else:
        is_present = binned(find_number(kind, begin, size, place, stop - start)) == value
    return is_present


@in_place
def has_headed(tests, node, items, frontier, place, begin, size, head):
    """Return whether an inference has the head-dependent feature that a node tests."""
    kind, predicate, value = tests.kinds[node], tests.predicates[node], tests.values[node]
    first = place.offset + begin
    if kind == HEAD:
        return items.values[frontier[first + head], predicate] == value
    for at in range(size):
        if at == head:
            continue
        item = frontier[first + at]
        if kind == OTHERS:
            if items.values[item, predicate] == value:
                return True
            continue
        for word in range(place.word + items.starts[item], place.word + items.ends[item]):
            if items.values[word, predicate] == value:
                return True
    return False
