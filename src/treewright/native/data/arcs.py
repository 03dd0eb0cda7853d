"""The basic features of arcs, packed into 64-bit keys that can be decoded.

From the highest bits down, a key holds the template, three values, and the binned length and direction.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place
from treewright.native.hashing import mix

VALUE_BITS, LAST_VALUE_BITS, DISTANCE_BITS = 20, 12, 5
N_VALUES = 3
"""Maximum number of values of a feature; the last value has fewer bits."""
WORD, TAG = 0, 1
HEAD, MODIFIER = 0, 1
LENGTH_BINS = np.array([1, 2, 3, 4, 5, 6, 11, 21], dtype=np.int64)
"""The shortest length of each bin."""


class Sentences(NamedTuple):
    """Sentence i has the tokens from `indptr[i]` to `indptr[i + 1]`, the first of which is the root.

    `values` are the ids of each token's word and tag.
    """

    indptr: np.ndarray
    values: np.ndarray


class ArcTemplates(NamedTuple):
    """Templates: each has a number and up to `N_VALUES` values, each as (end of the arc, offset, attribute).

    `with_distance` tells which templates include length and direction; `outside` is the tag of tokens outside
    the sentence; `between` is the number of the template for the tags between head and modifier, or -1.
    """

    numbers: np.ndarray
    sizes: np.ndarray
    values: np.ndarray
    with_distance: np.ndarray
    outside: int
    between: int


@in_place
def pack(template, a, b, c, distance):
    """Return the key of a feature."""
    key = np.uint64(template)
    key = (key << np.uint64(VALUE_BITS)) | np.uint64(a)
    key = (key << np.uint64(VALUE_BITS)) | np.uint64(b)
    key = (key << np.uint64(LAST_VALUE_BITS)) | np.uint64(c)
    return (key << np.uint64(DISTANCE_BITS)) | np.uint64(distance)


@in_place
def bin_distance(head, modifier):
    """Return a number, at least 1, for the binned length and the direction of an arc."""
    length = abs(head - modifier)
    at = 0
    while at + 1 < LENGTH_BINS.size and LENGTH_BINS[at + 1] <= length:
        at += 1
    return 1 + 2 * at + (1 if modifier > head else 0)


@in_place
def token_value(sentences, begin, end, position, attribute, outside):
    """Return the word or tag at a position, or `outside` if it is not in the sentence."""
    if position < begin or position >= end:
        return outside
    return sentences.values[position, attribute]


@in_place
def fill_arc_keys(sentences, sentence, head, modifier, templates, keys):
    """Write the features of an arc, followed by the distinct tags between its ends; return their number.

    `keys` has space for one key per template and one per word of the sentence.
    """
    begin, end = sentences.indptr[sentence], sentences.indptr[sentence + 1]
    distance = bin_distance(head, modifier)
    n_keys = templates.numbers.size
    for template in range(n_keys):
        a, b, c = 0, 0, 0
        for number in range(templates.sizes[template]):
            side, offset, attribute = templates.values[template, number]
            position = begin + (head if side == HEAD else modifier) + offset
            value = token_value(sentences, begin, end, position, attribute, templates.outside)
            if number == 0:
                a = value
            elif number == 1:
                b = value
            else:
                c = value
        shown = distance if templates.with_distance[template] else 0
        keys[template] = pack(templates.numbers[template], a, b, c, shown)
    if templates.between < 0:
        return n_keys
    n_fixed = n_keys
    a, b = sentences.values[begin + head, TAG], sentences.values[begin + modifier, TAG]
    for position in range(begin + min(head, modifier) + 1, begin + max(head, modifier)):
        key = pack(templates.between, a, b, sentences.values[position, TAG], 0)
        is_new = True
        for other in range(n_fixed, n_keys):
            if keys[other] == key:
                is_new = False
                break
        if is_new:
            keys[n_keys] = key
            n_keys += 1
    return n_keys


@in_place
def count_arc_features(sentences, numbers, heads, modifiers, templates, scratch, indptr):
    """Fill `indptr` with the start of each arc's features; `scratch` has space for the keys of one arc."""
    indptr[0] = 0
    for arc in range(heads.size):
        n = fill_arc_keys(sentences, numbers[arc], heads[arc], modifiers[arc], templates, scratch)
        indptr[arc + 1] = indptr[arc] + n


@in_place
def fill_arc_features(sentences, numbers, heads, modifiers, templates, indptr, keys):
    """Fill the features of arcs; `keys` has extra space for the features of one more arc."""
    for arc in range(heads.size):
        place = keys[indptr[arc] :]
        fill_arc_keys(sentences, numbers[arc], heads[arc], modifiers[arc], templates, place)


@in_place
def find_slot(keys, slots, key):
    """Return the slot of a key in a hash table, or the empty slot where it belongs."""
    mask = np.uint64(slots.size - 1)
    slot = (mix(np.uint64(0), key) >> np.uint64(20)) & mask
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@in_place
def index_keys(keys, slots):
    """Fill the hash table `slots` with the numbers of distinct keys.

    The size of the table is a power of two, and all entries are -1 before the call.
    """
    for number in range(keys.size):
        slots[find_slot(keys, slots, keys[number])] = number


@in_place
def find_keys(keys, slots, wanted, numbers):
    """Fill the numbers of keys; -1 for keys that are not in the table."""
    for at in range(wanted.size):
        numbers[at] = slots[find_slot(keys, slots, wanted[at])]
