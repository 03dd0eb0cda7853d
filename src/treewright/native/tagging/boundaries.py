"""Boundaries of tokens and sentences: a decision after each character, and one after each token.

A unit is a character or a token. It has attributes, some of which depend on the decisions before it, and its
features are conjunctions of attributes of nearby units. The score of a boundary is the sum of the weights of
its features, which are learnt by logistic regression with AdaGrad (Duchi, Hazan and Singer 2011).
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.hashing import PRIME, mix

SPACE, LINE, PARAGRAPH = 1, 2, 3
"""Kinds of white space; other kinds of characters have higher numbers. Only `PARAGRAPH` ends a paragraph."""

POINT, FOLDED, KIND, REST, REST_SHAPE, NEXT, WORD_BEGIN, WORD_END, WORD_OVER = range(9)
BEGUN, BEGUN_SHAPE, BEGUN_SIZE = range(9, 12)
"""Attributes of a character; from `BEGUN` on, attributes of its token up to and including the character."""
N_CHARACTER_ATTRIBUTES = 12
FORM, LOWER, SHAPE, SUFFIX, FIRST, LAST, SIZE, GAP, CLASS, AHEAD = range(10)
SINCE, OPEN, START, PREVIOUS = range(10, 14)
"""Attributes of a token; from `SINCE` on, attributes of its sentence up to and including the token."""
N_TOKEN_ATTRIBUTES = 14
PADDING = 9
"""Number of rows of zeros before and after the attributes of units."""
MAX_SIZE = 12
MAX_WORD = 6
"""Maximum length of words that are looked up in a text without spaces."""
MAX_AHEAD = 24
SUFFIX_SIZE = 3
KEY_SHIFT = np.uint64(32)
QUOTE, OPENING, CLOSING = np.uint64(34), np.uint64(40), np.uint64(41)


class Characters(NamedTuple):
    """A text, character by character."""

    points: np.ndarray
    """Code points; white space is a space."""
    folded: np.ndarray
    """Lower-case code points, with all digits equal."""
    kinds: np.ndarray
    holds: np.ndarray
    """Whether a token can end after the character only if white space follows."""


class Rules(NamedTuple):
    """Templates of features: attributes of units at offsets."""

    sizes: np.ndarray
    parts: np.ndarray


class BoundaryWeights(NamedTuple):
    """Weights of features, in a hash table indexed by the low bits of keys; a slot with key 0 is empty."""

    keys: np.ndarray
    values: np.ndarray


class TokenLexicon(NamedTuple):
    """Classes of lower-case words, in a hash table by key, as in `BoundaryWeights`."""

    keys: np.ndarray
    classes: np.ndarray


class Learnt(NamedTuple):
    """The state of training."""

    weights: np.ndarray
    squares: np.ndarray
    """Sums of squared gradients."""
    totals: np.ndarray
    """Sums of weight changes, each times the number of its step."""
    steps: np.ndarray
    """One number: the number of steps taken."""


@in_place
def small(key):
    """Return the upper half of a key."""
    return key >> KEY_SHIFT


@in_place
def is_space(kind):
    """Return whether a kind of character is white space."""
    return SPACE <= kind <= PARAGRAPH


@in_place
def fill_characters(text, attributes):
    """Fill the attributes of characters that do not depend on decisions, from row `PADDING` on."""
    rest = shape = PRIME
    following = upcoming = np.uint64(0)
    for at in range(text.points.size - 1, -1, -1):
        kind = text.kinds[at]
        values = attributes[at + PADDING]
        if is_space(kind):
            rest = shape = PRIME
            following = upcoming
            kind = SPACE
        else:
            after = text.kinds[at + 1] if at + 1 < text.points.size else 0
            rest = mix(rest, text.folded[at])
            if kind != after:
                shape = mix(shape, kind)
            upcoming = np.uint64(kind) * np.uint64(256) + np.uint64(SPACE if is_space(after) else after)
        values[POINT] = text.points[at]
        values[FOLDED] = text.folded[at]
        values[KIND] = kind
        values[REST] = small(rest)
        values[REST_SHAPE] = small(shape)
        values[NEXT] = following


@in_place
def fill_words(text, words, attributes):
    """Fill the lengths of the longest known words that start at, end at or continue after each character."""
    n_characters = text.points.size
    for begin in range(n_characters):
        key = PRIME
        for at in range(begin, min(begin + MAX_WORD, n_characters)):
            if is_space(text.kinds[at]):
                break
            key = mix(key, text.folded[at])
            size = at - begin + 1
            if words.classes[slot_of(words.keys, small(key))] > 0:
                attributes[begin + PADDING, WORD_BEGIN] = size
                attributes[at + PADDING, WORD_END] = max(attributes[at + PADDING, WORD_END], size)
                for over in range(begin, at):
                    attributes[over + PADDING, WORD_OVER] = max(attributes[over + PADDING, WORD_OVER], size)


@in_place
def follow_token(text, at, begin, state, attributes):
    """Fill the attributes of a character that depend on where its token begins.

    `state` holds the keys of the token and of its shape up to the previous character.
    """
    values = attributes[at + PADDING]
    kind = text.kinds[at]
    if at == begin:
        state[0] = state[1] = PRIME
    state[0] = mix(state[0], text.folded[at])
    if at == begin or kind != text.kinds[at - 1]:
        state[1] = mix(state[1], kind)
    values[BEGUN] = small(state[0])
    values[BEGUN_SHAPE] = small(state[1])
    values[BEGUN_SIZE] = min(at - begin + 1, MAX_SIZE)


@in_place
def is_open(text, at, is_joined, with_spaces):
    """Return whether a token may either end or continue after a character.

    `with_spaces` is true if some tokens contain spaces.
    """
    after = at + 1
    if after == text.points.size:
        return False
    if is_space(text.kinds[after]):
        if not with_spaces or text.kinds[after] != SPACE or after + 1 == text.points.size:
            return False
        return not is_space(text.kinds[after + 1])
    return not (text.holds[at] or is_joined[text.kinds[at], text.kinds[after]])


@in_place
def must_end(text, at):
    """Return whether a token ends after a character for which no decision is needed."""
    return at + 1 == text.points.size or is_space(text.kinds[at + 1])


@in_place
def fill_keys(rules, attributes, at, keys):
    """Fill the keys of the features of a unit."""
    for number in range(rules.sizes.size):
        key = mix(PRIME, number)
        for part in range(rules.sizes[number]):
            key = mix(
                key, attributes[at + PADDING + rules.parts[number, part, 1], rules.parts[number, part, 0]]
            )
        keys[number] = max(small(key), np.uint64(1))


@in_place
def slot_of(keys, key):
    """Return the slot of a key in a table, or the empty slot for it."""
    mask = keys.size - 1
    slot = np.int64(key) & mask
    while keys[slot] != key and keys[slot] != 0:
        slot = (slot + 1) & mask
    return slot


@in_place
def index_keys(keys, table, slots):
    """Insert distinct keys into an empty table, and fill their slots."""
    for number in range(keys.size):
        slots[number] = slot_of(table, keys[number])
        table[slots[number]] = keys[number]


@in_place
def score(rules, weights, attributes, at, keys):
    """Return the score of a boundary after a unit."""
    fill_keys(rules, attributes, at, keys)
    total = 0.0
    for key in keys:
        total += weights.values[slot_of(weights.keys, key)]
    return total


@compiled
def find_token_ends(text, model, is_joined, with_spaces, attributes, ends):
    """Decide after each character whether a token ends there."""
    rules, weights, threshold = model
    keys = np.empty(rules.sizes.size, np.uint64)
    state = np.zeros(2, np.uint64)
    begin = -1
    for at in range(text.points.size):
        if begin < 0 and is_space(text.kinds[at]):
            continue
        begin = at if begin < 0 else begin
        follow_token(text, at, begin, state, attributes)
        if is_space(text.kinds[at]):  # inside a token
            continue
        if is_open(text, at, is_joined, with_spaces):
            ends[at] = score(rules, weights, attributes, at, keys) > threshold
        else:
            ends[at] = must_end(text, at)
        begin = -1 if ends[at] else begin


@compiled
def fill_token_keys(text, rules, is_joined, with_spaces, ends, attributes):
    """Return the characters of a tokenised text that require a decision, and the keys of their features."""
    state = np.zeros(2, np.uint64)
    begin = -1
    n_open = 0
    places = np.empty(text.points.size, np.int64)
    for at in range(text.points.size):
        if begin < 0 and is_space(text.kinds[at]):
            continue
        begin = at if begin < 0 else begin
        follow_token(text, at, begin, state, attributes)
        if not is_space(text.kinds[at]) and is_open(text, at, is_joined, with_spaces):
            places[n_open] = at
            n_open += 1
        begin = -1 if ends[at] else begin
    keys = np.empty((n_open, rules.sizes.size), np.uint64)
    for number in range(n_open):
        fill_keys(rules, attributes, places[number], keys[number])
    return places[:n_open], keys


@in_place
def list_tokens(text, ends, begins, stops):
    """Fill the start and end of tokens; return their number."""
    n_tokens = 0
    begin = -1
    for at in range(ends.size):
        if begin < 0 and not is_space(text.kinds[at]):
            begin = at
        if ends[at]:
            begins[n_tokens] = begin
            stops[n_tokens] = at + 1
            n_tokens += 1
            begin = -1
    return n_tokens


@in_place
def fill_tokens(text, begins, stops, lexicon, has_lines, attributes, is_last):
    """Fill the attributes of tokens that do not depend on decisions, and whether each ends a paragraph."""
    for token in range(begins.size):
        values = attributes[token + PADDING]
        begin, stop = begins[token], stops[token]
        form = lower = shape = suffix = PRIME
        for at in range(begin, stop):
            form = mix(form, text.points[at])
            lower = mix(lower, text.folded[at])
            if at == begin or text.kinds[at] != text.kinds[at - 1]:
                shape = mix(shape, text.kinds[at])
            if at >= stop - SUFFIX_SIZE:
                suffix = mix(suffix, text.folded[at])
        values[FORM], values[LOWER], values[SHAPE] = small(form), small(lower), small(shape)
        values[SUFFIX] = small(suffix)
        values[FIRST] = text.kinds[begin]
        values[LAST] = text.folded[stop - 1]
        values[SIZE] = min(stop - begin, MAX_SIZE)
        slot = slot_of(lexicon.keys, values[LOWER])
        values[CLASS] = lexicon.classes[slot]
        gap = 0
        upcoming = begins[token + 1] if token + 1 < begins.size else text.points.size
        for at in range(stop, upcoming):
            gap = max(gap, text.kinds[at])
        is_last[token] = gap == PARAGRAPH or token + 1 == begins.size
        values[GAP] = min(gap, LINE if has_lines else SPACE)
    ahead = MAX_AHEAD
    for token in range(begins.size - 1, -1, -1):
        is_mark = ends_sentences(text.points[stops[token] - 1])
        ahead = 0 if is_mark else MAX_AHEAD if is_last[token] else min(ahead + 1, MAX_AHEAD)
        attributes[token + PADDING, AHEAD] = in_bins(ahead)


@in_place
def ends_sentences(point):
    """Return whether a character ends sentences in some script."""
    is_western = point in (46, 33, 63, 0x2026)
    return is_western or point in (0x3002, 0xFF01, 0xFF1F, 0xFF0E, 0x061F, 0x06D4, 0x0964, 0x037E)


@in_place
def in_bins(number):
    """Return the number of the bin that a count is in."""
    return number if number <= 4 else min(4 + number // 4, 12)


@in_place
def follow_sentence(text, stop, token, first, state, attributes):
    """Fill the attributes of a token that depend on where its sentence starts.

    `state` has the numbers of open brackets and quotation marks in the sentence, and the description of the
    previous sentence (see `describe_sentence`).
    """
    values = attributes[token + PADDING]
    if token == first:
        state[:2] = 0
    last = text.points[stop - 1]
    if last == OPENING:
        state[0] += 1
    elif last == CLOSING and state[0] > 0:
        state[0] -= 1
    elif last == QUOTE:
        state[1] = 1 - state[1]
    values[SINCE] = in_bins(token - first + 1)
    values[OPEN] = min(state[0], 2) * 2 + state[1]
    values[START] = attributes[first + PADDING, SHAPE]
    values[PREVIOUS] = state[2]


@in_place
def describe_sentence(attributes, first, last):
    """Return a number for how a sentence starts, how it ends, and whether it is short."""
    begin, end = attributes[first + PADDING], attributes[last + PADDING]
    return (np.int64(begin[FIRST]) * 256 + np.int64(end[FIRST])) * 2 + (last - first < 6)


@compiled
def find_sentence_ends(text, stops, model, attributes, is_last, ends):
    """Decide after each token whether a sentence ends there."""
    rules, weights, threshold = model
    keys = np.empty(rules.sizes.size, np.uint64)
    state = np.zeros(3, np.int64)
    first = 0
    for token in range(stops.size):
        follow_sentence(text, stops[token], token, first, state, attributes)
        ends[token] = is_last[token] or score(rules, weights, attributes, token, keys) > threshold
        if ends[token]:
            state[2] = describe_sentence(attributes, first, token)
            first = token + 1


@compiled
def fill_sentence_keys(text, stops, rules, attributes, ends):
    """Return the keys of the features of tokens whose sentences are known."""
    state = np.zeros(3, np.int64)
    keys = np.empty((stops.size, rules.sizes.size), np.uint64)
    first = 0
    for token in range(stops.size):
        follow_sentence(text, stops[token], token, first, state, attributes)
        fill_keys(rules, attributes, token, keys[token])
        if ends[token]:
            state[2] = describe_sentence(attributes, first, token)
            first = token + 1
    return keys


@in_place
def learn(rows, gold, order, rate, penalty, learnt):
    """Make one pass of logistic regression over the units in `order`.

    The value -1 in `rows` means no feature. Returns the sum of the losses.
    """
    weights, squares, totals, steps = learnt
    loss = 0.0
    for unit in order:
        steps[0] += 1
        total = 0.0
        for row in rows[unit]:
            if row >= 0:
                total += weights[row]
        sign = 1.0 if gold[unit] else -1.0
        margin = sign * total
        wrong = 1.0 / (1.0 + np.exp(margin)) if margin > -30.0 else 1.0
        loss += np.log1p(np.exp(-margin)) if margin > -30.0 else -margin
        for row in rows[unit]:
            if row >= 0:
                gradient = penalty * weights[row] - sign * wrong
                squares[row] += gradient * gradient
                change = -rate * gradient / np.sqrt(squares[row])
                weights[row] += change
                totals[row] += change * steps[0]
    return loss
