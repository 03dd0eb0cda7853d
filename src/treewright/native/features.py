"""Features of parts of dependency trees, as 64-bit keys.

A sentence is an array of attribute values, one row a token: rows NO_TOKEN, END and PADDING, then the root,
the words, and padding again. A template is a run of atoms, each an attribute of a token at some distance
from one of the part's words; its values are mixed into a key of 64 bits, the highest of which number a slot
of a weight table.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled
from treewright.native.hashing import PRIME, mix

NO_TOKEN, END, PADDING, ROOT = 0, 1, 2, 3
"""Rows of a sentence that stand for no word; word i stands in row ROOT + i."""
N_EXTRA_ROWS = 6

HEAD, MODIFIER, SIBLING, GRANDPARENT, OUTER, NEXT, FIRST_CHILD, LAST_CHILD = 0, 1, 2, 3, 4, 5, 6, 7
"""Where a part keeps the rows of its words: OUTER is the sibling before the sibling, NEXT the one after the
modifier, the children are the modifier's."""
KIND, SITUATION, DISTANCE = 8, 9, 10
"""Where a part keeps what it is, the directions of its arcs, and a binned distance."""
PART_SIZE = 11

TAG, BETWEEN_TAG = 0, 1
"""Attributes that the built-in features of arcs use: the coarse tag, and that of words in between."""
MAX_BETWEEN, MAX_MORPHS = 40, 8
MAX_EXTRA_KEYS = MAX_BETWEEN + MAX_MORPHS * (MAX_MORPHS + 2)


class Templates(NamedTuple):
    """Templates of one kind of part."""

    first_atom: np.ndarray
    """Where the atoms of each template begin, and at the end their number."""
    role: np.ndarray
    offset: np.ndarray
    attribute: np.ndarray
    with_distance: np.ndarray
    """Whether a template is used a second time together with the distance."""


class Sentence(NamedTuple):
    """What features are made of."""

    values: np.ndarray
    """Attribute values, (n words + N_EXTRA_ROWS, n attributes)."""
    first_morph: np.ndarray
    """Where the morphological features of each row begin in `morphs`, and at the end their number."""
    morphs: np.ndarray


@compiled
def distance_bin(distance):
    """Put a distance into one of nine bins."""
    distance = abs(distance)
    if distance <= 4:
        return distance
    if distance <= 6:
        return 5
    if distance <= 10:
        return 6
    return 7 if distance <= 20 else 8


@compiled
def fill_keys(templates, sentence, part, keys):
    """Fill the keys of a part's features; return how many there are."""
    n_keys = 0
    situation = np.uint64(part[SITUATION])
    placed = np.uint64(part[SITUATION] + 16 * (part[DISTANCE] + 1))
    for template in range(templates.first_atom.size - 1):
        key = mix(PRIME, (part[KIND] << 12) + template)
        for atom in range(templates.first_atom[template], templates.first_atom[template + 1]):
            row = part[templates.role[atom]] + templates.offset[atom]
            key = mix(key, sentence.values[row, templates.attribute[atom]])
        keys[n_keys] = (key ^ situation) * PRIME
        n_keys += 1
        if templates.with_distance[template]:
            keys[n_keys] = (key ^ placed) * PRIME
            n_keys += 1
    return n_keys


@compiled
def score_rows(templates, values, parts, weights, shift, scores):
    """Fill the scores of many parts, one a row, by their templates."""
    first_atom, with_distance = templates.first_atom, templates.with_distance
    role, offset, attribute = templates.role, templates.offset, templates.attribute
    for number in range(parts.shape[0]):
        situation = np.uint64(parts[number, SITUATION])
        placed = np.uint64(parts[number, SITUATION] + 16 * (parts[number, DISTANCE] + 1))
        total = 0.0
        for template in range(first_atom.size - 1):
            key = mix(PRIME, (parts[number, KIND] << 12) + template)
            for atom in range(first_atom[template], first_atom[template + 1]):
                key = mix(key, values[parts[number, role[atom]] + offset[atom], attribute[atom]])
            total += weights[((key ^ situation) * PRIME) >> shift]
            if with_distance[template]:
                total += weights[((key ^ placed) * PRIME) >> shift]
        scores[number] = total


@compiled
def fill_arc_keys(templates, sentence, part, keys):
    """Fill the keys of an arc: its templates, the tags in between, and pairs of morphological features."""
    n_keys = fill_keys(templates, sentence, part, keys)
    n_keys = _fill_between_keys(sentence, part, keys, n_keys)
    return _fill_morph_keys(sentence, part, keys, n_keys)


@compiled
def _fill_between_keys(sentence, part, keys, n_keys):
    """Add a feature for each different tag between head and modifier."""
    low = min(part[HEAD], part[MODIFIER]) + 1
    high = min(max(part[HEAD], part[MODIFIER]), low + MAX_BETWEEN)
    base = mix(PRIME, (part[KIND] << 12) + 4000)
    base = mix(base, sentence.values[part[HEAD], BETWEEN_TAG])
    base = mix(base, sentence.values[part[MODIFIER], BETWEEN_TAG])
    base = mix(base, part[SITUATION])
    for row in range(low, high):
        tag = sentence.values[row, BETWEEN_TAG]
        is_new = True
        for earlier in range(low, row):
            if sentence.values[earlier, BETWEEN_TAG] == tag:
                is_new = False
                break
        if is_new:
            keys[n_keys] = mix(base, tag)
            n_keys += 1
    return n_keys


@compiled
def _fill_morph_keys(sentence, part, keys, n_keys):
    """Add each morphological feature of one word with each of the other and with the other's tag."""
    head, modifier = part[HEAD], part[MODIFIER]
    first_h, first_m = sentence.first_morph[head], sentence.first_morph[modifier]
    last_h = min(sentence.first_morph[head + 1], first_h + MAX_MORPHS)
    last_m = min(sentence.first_morph[modifier + 1], first_m + MAX_MORPHS)
    base = mix(mix(PRIME, (part[KIND] << 12) + 4001), part[SITUATION])
    tags = mix(mix(base, sentence.values[head, TAG]), sentence.values[modifier, TAG])
    for at in range(first_h, last_h):
        above = mix(tags, sentence.morphs[at])
        keys[n_keys] = mix(above, 1)
        n_keys += 1
        for below in range(first_m, last_m):
            keys[n_keys] = mix(mix(above, 3), sentence.morphs[below])
            n_keys += 1
    for below in range(first_m, last_m):
        keys[n_keys] = mix(mix(tags, 2), sentence.morphs[below])
        n_keys += 1
    return n_keys


@compiled
def sum_weights(weights, shift, keys, n_keys):
    """Add up the weights of the slots of some keys."""
    total = 0.0
    for at in range(n_keys):
        total += weights[keys[at] >> shift]
    return total
