"""Classification of each word of a text, for example into combinations of tags.

An outcome consists of pieces, which it may share with other outcomes, and its score is the sum of the scores
of its pieces. A feature has a weight for each piece that it has been updated with; these weights form the row
of the feature in a table. Words are processed from left to right, so that features can use the outcomes
before a word. Weights are learnt by the averaged perceptron (Collins 2002) with a margin.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.hashing import PRIME, mix

WORD, LOWER, CLASS, SHAPE, PREFIX, SUFFIX = 0, 1, 2, 3, 4, 8
"""Attributes of a word; prefixes of 1, 2, ... letters start at `PREFIX`, and suffixes at `SUFFIX`."""
N_PREFIXES, N_SUFFIXES = 4, 6
N_WORD_ATTRIBUTES = 14
UPOS, TAG, LABEL = 14, 15, 16
"""Attributes of the label of a word."""
TOO_SHORT = np.uint64(0)
BEFORE, AFTER = np.uint64(1), np.uint64(2)
"""Values of an attribute: for missing affixes, and for positions before and after the sentence."""
KEY_SHIFT = np.uint64(32)


class Letters(NamedTuple):
    """Distinct words, letter by letter."""

    indptr: np.ndarray
    points: np.ndarray
    folded: np.ndarray
    """Lower-case letters, with all digits equal."""
    shapes: np.ndarray
    """Kinds of letters."""


class Lexicon(NamedTuple):
    """Lower-case words with a class, sorted by their hashes."""

    forms: np.ndarray
    classes: np.ndarray


class EncodedText(NamedTuple):
    """Sentences, one after another."""

    indptr: np.ndarray
    types: np.ndarray
    """The number of each word in `attributes`."""
    attributes: np.ndarray
    label_values: np.ndarray
    """Attributes of labels, by label."""


class WordTemplates(NamedTuple):
    """Templates of features: attributes of words at offsets."""

    numbers: np.ndarray
    sizes: np.ndarray
    parts: np.ndarray
    is_lexical: np.ndarray
    """Whether the template includes the word itself, or its class."""


class WeightTable(NamedTuple):
    """Weights, with a row for each feature."""

    slots: np.ndarray
    """Hash table of the row of each key, by the key's low bits; -1 marks an empty slot. The size is a power
    of 2."""
    keys: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    rooms: np.ndarray
    """Capacity of each row in pieces; a row that outgrows it is moved."""
    used: np.ndarray
    """One number: where new rows can start."""
    pieces: np.ndarray
    weights: np.ndarray
    totals: np.ndarray
    """Sums of weight changes, each times the number of its step."""


class OutcomeModel(NamedTuple):
    """The weights and features that score outcomes."""

    fixed: WordTemplates
    moving: WordTemplates
    """Templates that use the outcomes before the word."""
    indptr: np.ndarray
    pieces: np.ndarray
    """Pieces of each outcome."""
    n_pieces: int
    table: WeightTable


@compiled
def fill_attributes(letters, lexicon, attributes):
    """Fill the attributes of each distinct word."""
    for number in range(letters.indptr.size - 1):
        begin, end = letters.indptr[number], letters.indptr[number + 1]
        folded, shapes = letters.folded[begin:end], letters.shapes[begin:end]
        values = attributes[number]
        values[WORD] = hash_runs(letters.points[begin:end], end - begin)
        values[LOWER] = hash_runs(folded, end - begin)
        values[SHAPE] = hash_runs(shapes, 1)
        _fill_affixes(folded, values)
        values[CLASS] = word_class(lexicon, values, shapes)


@in_place
def hash_runs(points, longest):
    """Hash letters, with runs of equal letters cut to `longest`."""
    key = PRIME
    n_equal = 0
    for at in range(points.size):
        n_equal = n_equal + 1 if at > 0 and points[at] == points[at - 1] else 1
        if n_equal <= longest:
            key = mix(key, points[at])
    return key


@in_place
def _fill_affixes(folded, values):
    key = PRIME
    for at in range(N_PREFIXES):
        if at < folded.size:
            key = mix(key, folded[at])
        values[PREFIX + at] = key if at < folded.size else TOO_SHORT
    key = PRIME
    for at in range(N_SUFFIXES):
        if at < folded.size:
            key = mix(key, folded[folded.size - 1 - at])
        values[SUFFIX + at] = key if at < folded.size else TOO_SHORT


@compiled
def word_class(lexicon, values, shapes):
    """Return the class of a word in the lexicon, or else one based on its ending and first letter's kind."""
    at = np.searchsorted(lexicon.forms, values[LOWER])
    if at < lexicon.forms.size and lexicon.forms[at] == values[LOWER]:
        return mix(PRIME, lexicon.classes[at])
    return mix(values[SUFFIX + 1], shapes[0] if shapes.size > 0 else 0)


@in_place
def fill_keys(templates, text, labels, sentence, at, keys):
    """Fill the keys of the features of one word."""
    begin, end = text.indptr[sentence], text.indptr[sentence + 1]
    for number in range(templates.sizes.size):
        key = mix(PRIME, templates.numbers[number])
        for part in range(templates.sizes[number]):
            attribute = templates.parts[number, part, 0]
            place = at + templates.parts[number, part, 1]
            if place < begin:
                value = BEFORE
            elif place >= end:
                value = AFTER
            elif attribute >= UPOS:
                value = text.label_values[labels[place], attribute - UPOS]
            else:
                value = text.attributes[text.types[place], attribute]
            key = mix(key, value)
        keys[number] = key >> KEY_SHIFT


@in_place
def fill_text_keys(templates, text, labels, keys):
    """Fill the keys of the features of all words, one row of `keys` per word."""
    for sentence in range(text.indptr.size - 1):
        for at in range(text.indptr[sentence], text.indptr[sentence + 1]):
            fill_keys(templates, text, labels, sentence, at, keys[at])


@in_place
def index_keys(keys, slots):
    """Fill `slots`, which start as -1, with the positions of distinct keys."""
    for row in range(keys.size):
        slot = np.int64(keys[row]) & (slots.size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = row


@in_place
def find_row(table, key):
    """Return the row of a feature; -1 if it has none."""
    slots = table.slots
    slot = np.int64(key) & (slots.size - 1)
    while slots[slot] >= 0 and table.keys[slots[slot]] != key:
        slot = (slot + 1) & (slots.size - 1)
    return slots[slot]


@in_place
def fill_rows(table, keys, rows):
    """Fill the row of each key."""
    for at in range(keys.shape[0]):
        for number in range(keys.shape[1]):
            rows[at, number] = find_row(table, keys[at, number])


@compiled
def gather_rows(model, text, rows, found, sentence, at, is_hidden, chosen):
    """Fill the rows of a word's features; return their number.

    `rows` are those of the fixed templates, `found` the outcomes of the previous words. A hidden word has no
    lexical features.
    """
    n_rows = 0
    for number in range(rows.shape[1]):
        row = rows[at, number]
        if row >= 0 and not (is_hidden and model.fixed.is_lexical[number]):
            chosen[n_rows] = row
            n_rows += 1
    keys = np.empty(model.moving.sizes.size, np.uint32)
    fill_keys(model.moving, text, found, sentence, at, keys)
    for number in range(keys.size):
        row = find_row(model.table, keys[number])
        if row >= 0 and not (is_hidden and model.moving.is_lexical[number]):
            chosen[n_rows] = row
            n_rows += 1
    return n_rows


@in_place
def best_outcome(model, rows, right, margin, score):
    """Return the best outcome (the first if tied), with the margin added to all but the right one."""
    table = model.table
    score[:] = 0.0
    for row in rows:
        begin = table.starts[row]
        for at in range(begin, begin + table.sizes[row]):
            score[table.pieces[at]] += table.weights[at]
    best, best_total = 0, -np.inf
    for outcome in range(model.indptr.size - 1):
        total = 0.0 if outcome == right else margin
        for at in range(model.indptr[outcome], model.indptr[outcome + 1]):
            total += score[model.pieces[at]]
        if total > best_total:
            best, best_total = outcome, total
    return best


@compiled
def choose(model, text, rows, found):
    """Fill the outcomes of all words."""
    chosen = np.empty(rows.shape[1] + model.moving.sizes.size, np.int32)
    score = np.empty(model.n_pieces)
    for sentence in range(text.indptr.size - 1):
        for at in range(text.indptr[sentence], text.indptr[sentence + 1]):
            n_rows = gather_rows(model, text, rows, found, sentence, at, False, chosen)
            found[at] = best_outcome(model, chosen[:n_rows], -1, 0.0, score)


@compiled
def learn(model, text, rows, gold, is_hidden, margin, order, step):
    """Make one pass over the sentences in `order`; return the table and the number of updates.

    Features use the outcomes that were just predicted, with the margin added. `step` counts words over all
    passes.
    """
    chosen = np.empty(rows.shape[1] + model.moving.sizes.size, np.int32)
    score = np.empty(model.n_pieces)
    found = np.zeros(gold.size, np.int32)
    n_updates = 0
    for sentence in order:
        for at in range(text.indptr[sentence], text.indptr[sentence + 1]):
            n_rows = gather_rows(model, text, rows, found, sentence, at, is_hidden[at], chosen)
            found[at] = best_outcome(model, chosen[:n_rows], gold[at], margin, score)
            step += 1
            if found[at] != gold[at]:
                n_updates += 1
                model = with_room(model, chosen[:n_rows], n_pieces_of(model, gold[at], found[at]))
                _add(model, chosen[:n_rows], gold[at], found[at], 1.0, step)
                _add(model, chosen[:n_rows], found[at], gold[at], -1.0, step)
    return model.table, n_updates


@in_place
def n_pieces_of(model, outcome, other):
    """Return the number of pieces of two outcomes, counted separately."""
    indptr = model.indptr
    return indptr[outcome + 1] - indptr[outcome] + indptr[other + 1] - indptr[other]


@compiled
def with_room(model, rows, n_more):
    """Return the model with enough space in its table to add up to `n_more` pieces to each of `rows`."""
    table = model.table
    need = 0
    for row in rows:
        # A row that grows leaves its old space behind, in total less than three times its last capacity.
        need += 5 * (table.rooms[row] + n_more) + 8
    size = table.pieces.size
    if table.used[0] + need <= size:
        return model
    more = need + size // 2
    table = WeightTable(
        table.slots,
        table.keys,
        table.starts,
        table.sizes,
        table.rooms,
        table.used,
        np.concatenate((table.pieces, np.zeros(more, np.int32))),
        np.concatenate((table.weights, np.zeros(more, np.float32))),
        np.concatenate((table.totals, np.zeros(more, np.float64))),
    )
    return OutcomeModel(model.fixed, model.moving, model.indptr, model.pieces, model.n_pieces, table)


@in_place
def _add(model, rows, outcome, other, amount, step):
    """Add an amount to the weights of the pieces of an outcome that the other outcome does not have."""
    others = model.pieces[model.indptr[other] : model.indptr[other + 1]]
    for piece in model.pieces[model.indptr[outcome] : model.indptr[outcome + 1]]:
        is_shared = False
        for each in others:
            is_shared |= each == piece
        if not is_shared:
            for row in rows:
                at = place_of(model.table, row, piece)
                model.table.weights[at] += amount
                model.table.totals[at] += amount * step


@in_place
def place_of(table, row, piece):
    """Return the position of the weight of a piece; the row is moved if it must grow."""
    begin, size = table.starts[row], table.sizes[row]
    for at in range(begin, begin + size):
        if table.pieces[at] == piece:
            return at
    if size == table.rooms[row]:
        begin = _move(table, row)
    table.sizes[row] += 1
    table.pieces[begin + size] = piece
    return begin + size


@in_place
def _move(table, row):
    """Move a row to a place with about 1.5 times the capacity; return its new start."""
    old, new, size = table.starts[row], table.used[0], table.sizes[row]
    for at in range(size):
        table.pieces[new + at] = table.pieces[old + at]
        table.weights[new + at] = table.weights[old + at]
        table.totals[new + at] = table.totals[old + at]
    table.starts[row] = new
    table.rooms[row] += size // 2 + 2
    table.used[0] += table.rooms[row]
    return new
