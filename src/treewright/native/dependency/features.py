"""Features of parts of dependency trees, as 64-bit keys.

A sentence is an array of attribute values with one row per token: rows NO_TOKEN, END and PADDING, then the
root, the words, and padding again. A template is a sequence of atoms; each atom is an attribute of the token
at a given offset from one of the part's words. The key of a feature is a 64-bit sum: the template's seed,
each value times the factor of its atom, and the part's directions and distance times another factor. Its
highest bits are the slot in a weight table. Since the key is a sum, the contribution of a word is computed
once for all parts in which the word has the same role.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.hashing import PRIME

NO_TOKEN, END, PADDING, ROOT = 0, 1, 2, 3
"""Rows of a sentence that are not words; word i is in row ROOT + i."""
N_EXTRA_ROWS = 6

HEAD, MODIFIER, SIBLING, GRANDPARENT, OUTER, NEXT, FIRST_CHILD, LAST_CHILD = 0, 1, 2, 3, 4, 5, 6, 7
"""Entries of a part that hold the rows of its words. OUTER is the sibling before SIBLING, and NEXT the
sibling after the modifier; FIRST_CHILD and LAST_CHILD are children of the modifier."""
SITUATION, DISTANCE = 8, 9
"""Entries of a part that hold the directions of its arcs and a binned distance."""
PART_SIZE = 10

TAG, BETWEEN_TAG = 0, 1
"""Attributes that the built-in features of arcs use: the coarse tag, and the tag that is used for words in
between."""
MAX_BETWEEN, MAX_MORPHS = 40, 8
MAX_EXTRA_KEYS = MAX_BETWEEN + MAX_MORPHS * (MAX_MORPHS + 2)


class PartTemplates(NamedTuple):
    """Templates of one kind of part, and constants for the keys of its built-in features."""

    first_atom: np.ndarray
    """Start of the atoms of each template; the last entry is the number of all atoms."""
    role: np.ndarray
    """The role of each atom's word; atoms of one role are adjacent within a template."""
    offset: np.ndarray
    attribute: np.ndarray
    factor: np.ndarray
    seed: np.ndarray
    with_distance: np.ndarray
    """Whether a template is also used together with the distance."""
    between: np.ndarray
    """A seed, and one factor each for the tags of the head, of the modifier, and of a word in between."""
    morphs: np.ndarray
    """A seed, the factors of the tags of head and modifier, and the factors of a morphological feature of
    each."""


class EncodedSentence(NamedTuple):
    """The values from which features are computed."""

    values: np.ndarray
    """Attribute values, (n words + N_EXTRA_ROWS, n attributes)."""
    first_morph: np.ndarray
    """Start of the morphological features of each row in `morphs`; the last entry is the number of all."""
    morphs: np.ndarray
    same_before: np.ndarray
    """The nearest earlier row with the same tag as each row; -1 for none."""


@compiled
def make_sentence(values, first_morph, morphs):
    """Make a sentence from its arrays."""
    same_before = np.full(values.shape[0], -1, np.int32)
    for row in range(values.shape[0]):
        for earlier in range(row - 1, max(-1, row - MAX_BETWEEN - 1), -1):
            if values[earlier, BETWEEN_TAG] == values[row, BETWEEN_TAG]:
                same_before[row] = earlier
                break
    return EncodedSentence(values, first_morph, morphs, same_before)


@in_place
def distance_bin(distance):
    """Return one of nine bins for a distance."""
    distance = abs(distance)
    if distance <= 4:
        return distance
    if distance <= 6:
        return 5
    if distance <= 10:
        return 6
    return 7 if distance <= 20 else 8


@in_place
def _near(situation):
    """Return the contribution of a part's directions to its keys."""
    return np.uint64(situation) * PRIME


@in_place
def _far(situation, distance):
    """Return the contribution of a part's directions and distance to its keys."""
    return np.uint64(situation + 16 * (distance + 1)) * PRIME


@in_place
def fill_keys(templates, sentence, part, keys):
    """Fill the keys of a part's features; return their number."""
    n_keys = 0
    near, far = _near(part[SITUATION]), _far(part[SITUATION], part[DISTANCE])
    for template in range(templates.seed.size):
        key = templates.seed[template]
        for atom in range(templates.first_atom[template], templates.first_atom[template + 1]):
            row = part[templates.role[atom]] + templates.offset[atom]
            key += np.uint64(sentence.values[row, templates.attribute[atom]]) * templates.factor[atom]
        keys[n_keys] = key + near
        n_keys += 1
        if templates.with_distance[template]:
            keys[n_keys] = key + far
            n_keys += 1
    return n_keys


@compiled
def score_columns(templates, values, parts, weights, shift, scores):
    """Fill the template scores of many parts, which are the columns of `parts`."""
    # Keys computed by `hashing.mix`, atom by atom for each part, take longer: for the 625 arcs of 25 words
    # and the default templates 202 instead of 85 microseconds with a table of 2 ** 12 weights, and 402
    # instead of 266 with one of 2 ** 23, which does not fit the processor's cache (CPU time, best of 15).
    n_parts = parts.shape[1]
    near, far = np.empty(n_parts, np.uint64), np.empty(n_parts, np.uint64)
    for at in range(n_parts):
        near[at] = _near(parts[SITUATION, at])
        far[at] = _far(parts[SITUATION, at], parts[DISTANCE, at])
    keys = np.empty(n_parts, np.uint64)
    shares = np.empty(values.shape[0], np.uint64)
    scores[:] = 0.0
    for template in range(templates.seed.size):
        keys[:] = templates.seed[template]
        atom, last = templates.first_atom[template], templates.first_atom[template + 1]
        while atom < last:
            role = templates.role[atom]
            shares[:] = np.uint64(0)
            while atom < last and templates.role[atom] == role:
                _add_shares(templates, values, atom, shares)
                atom += 1
            for at in range(n_parts):
                keys[at] += shares[parts[role, at]]
        for at in range(n_parts):
            scores[at] += weights[(keys[at] + near[at]) >> shift]
        if templates.with_distance[template]:
            for at in range(n_parts):
                scores[at] += weights[(keys[at] + far[at]) >> shift]


@in_place
def _add_shares(templates, values, atom, shares):
    """Add the contribution of an atom to keys, for each row in which the word of its role can be."""
    attribute, factor = templates.attribute[atom], templates.factor[atom]
    n_rows = values.shape[0]
    row = templates.offset[atom] % n_rows
    for at in range(n_rows):
        shares[at] += np.uint64(values[row, attribute]) * factor
        row = row + 1 if row + 1 < n_rows else 0


@in_place
def fill_arc_keys(templates, sentence, part, keys):
    """Fill the keys of an arc: its templates, the tags in between, and pairs of morphological features."""
    n_keys = fill_keys(templates, sentence, part, keys)
    head, modifier, situation = part[HEAD], part[MODIFIER], part[SITUATION]
    return n_keys + _fill_built_in_keys(templates, sentence, head, modifier, situation, keys[n_keys:])


@compiled
def add_built_in(templates, sentence, parts, weights, shift, scores):
    """Add the scores of the built-in features of many arcs, which are the columns of `parts`."""
    keys = np.empty(MAX_EXTRA_KEYS, np.uint64)
    for at in range(parts.shape[1]):
        head, modifier, situation = parts[HEAD, at], parts[MODIFIER, at], parts[SITUATION, at]
        n_keys = _fill_built_in_keys(templates, sentence, head, modifier, situation, keys)
        scores[at] += sum_weights(weights, shift, keys, n_keys)


@in_place
def _fill_built_in_keys(templates, sentence, head, modifier, situation, keys):
    n_keys = _fill_between_keys(templates.between, sentence, head, modifier, situation, keys)
    return n_keys + _fill_morph_keys(templates.morphs, sentence, head, modifier, situation, keys[n_keys:])


@in_place
def _fill_between_keys(numbers, sentence, head, modifier, situation, keys):
    """Fill a key for each distinct tag between head and modifier."""
    low = min(head, modifier) + 1
    high = min(max(head, modifier), low + MAX_BETWEEN)
    base = _with_tags(numbers, sentence, head, modifier, situation, BETWEEN_TAG)
    n_keys = 0
    for row in range(low, high):
        if sentence.same_before[row] < low:
            keys[n_keys] = base + np.uint64(sentence.values[row, BETWEEN_TAG]) * numbers[3]
            n_keys += 1
    return n_keys


@in_place
def _fill_morph_keys(numbers, sentence, head, modifier, situation, keys):
    """Fill a key for each morphological feature of head or modifier, and for each pair with one of each."""
    first_h, first_m = sentence.first_morph[head], sentence.first_morph[modifier]
    last_h = min(sentence.first_morph[head + 1], first_h + MAX_MORPHS)
    last_m = min(sentence.first_morph[modifier + 1], first_m + MAX_MORPHS)
    base = _with_tags(numbers, sentence, head, modifier, situation, TAG)
    n_keys = 0
    for below in range(first_m, last_m):
        keys[n_keys] = base + np.uint64(sentence.morphs[below]) * numbers[4]
        n_keys += 1
    for at in range(first_h, last_h):
        above = np.uint64(sentence.morphs[at]) * numbers[3]
        keys[n_keys] = base + above
        for below in range(last_m - first_m):
            keys[n_keys + 1 + below] = keys[below] + above
        n_keys += 1 + last_m - first_m
    return n_keys


@in_place
def _with_tags(numbers, sentence, head, modifier, situation, attribute):
    """Return the sum of a seed, the directions, and the tags of head and modifier."""
    above = np.uint64(sentence.values[head, attribute])
    below = np.uint64(sentence.values[modifier, attribute])
    return numbers[0] + _near(situation) + above * numbers[1] + below * numbers[2]


@in_place
def sum_weights(weights, shift, keys, n_keys):
    """Return the sum of the weights of some keys."""
    total = 0.0
    for at in range(n_keys):
        total += weights[keys[at] >> shift]
    return total
