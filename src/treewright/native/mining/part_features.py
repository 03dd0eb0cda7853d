"""Mining and matching of features of parts of trees; such a feature has one basic feature per arc.

A part has up to three arcs in fixed roles, and each arc has basic features. A feature of a part is its code
(kind and directions) with one basic feature per arc; its key is computed by mixing these in turn. Parts have
residuals, and the gradient of a feature is the sum of the residuals of its parts. The sums of a feature's
positive and of its negative residuals bound the gradient of each of its extensions, since an extension has
fewer parts.

Candidates are divided into groups, called shares, by the highest bits of their keys, so that the bounds of a
share take little memory and each thread can count the candidates of one share. A key has two bounds, of which
only the smaller one is increased. The bounds form a spectral Bloom filter with minimal increase (Cohen &
Matias 2003) whose counters are sums.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.hashing import mix

N_ROLES = 3
PLUS, MINUS = 0, 1
EMPTY = np.uint64(0)
SHARE_BITS = 4
"""Number of highest bits of a key that determine the share to which it belongs."""
FIRST_SHIFT, SECOND_SHIFT = 28, 3
"""Shifts of a key that give the positions of its two bounds, which use up to 25 bits each and do not
overlap."""
N_SHARES = 1 << SHARE_BITS
PAIRS = ((0, 1), (0, 2), (1, 2))
"""Pairs of the roles of a part with three arcs."""


class RoleParts(NamedTuple):
    """Parts: the arcs of each by role, -1 for none, its code, and the basic features of arcs.

    The basic features of arc i are `ids[indptr[i]:indptr[i + 1]]`.
    """

    arcs: np.ndarray
    codes: np.ndarray
    indptr: np.ndarray
    ids: np.ndarray


class PartFeatureTable(NamedTuple):
    """Features by key: an open-addressing table, whose size is a power of two."""

    keys: np.ndarray
    gains: np.ndarray
    """Sums of positive and of negative residuals: (size, 2)."""
    basic: np.ndarray
    """Basic features by role, -1 for none: (size, N_ROLES)."""
    codes: np.ndarray
    marks: np.ndarray
    """Sums of random numbers of the parts that have a feature; features of the same parts have equal sums."""


class Known(NamedTuple):
    """Features to match: the position of each key, and prefixes of features."""

    slots: np.ndarray
    """Numbers of features, -1 where there is none."""
    keys: np.ndarray
    """Keys by number."""
    is_used: np.ndarray
    """The roles in which basic features occur, as bits, by kind of part: (n_basic, n_kinds)."""
    prefixes: np.ndarray
    """Bits that are set for the keys of features of three arcs, each key computed without the last arc."""


@in_place
def n_arcs_of(parts, part):
    """Return how many arcs a part has."""
    n = 0
    while n < N_ROLES and parts.arcs[part, n] >= 0:
        n += 1
    return n


@in_place
def start_key(code):
    """Return the key of a part without any basic feature."""
    return mix(np.uint64(0x51ED27), np.uint64(code) + np.uint64(1))


@in_place
def grow_key(key, basic):
    """Mix a basic feature into a key."""
    return mix(key, np.uint64(basic) + np.uint64(1))


@compiled
def count_basic(parts, numbers, residues, gains):
    """Add the residuals of parts to the sums of their basic features by role, (n_basic, N_ROLES, 2)."""
    for part in numbers:
        sign = PLUS if residues[part] > 0 else MINUS
        amount = abs(residues[part])
        for role in range(n_arcs_of(parts, part)):
            arc = parts.arcs[part, role]
            for at in range(parts.indptr[arc], parts.indptr[arc + 1]):
                gains[parts.ids[at], role, sign] += amount


@in_place
def _list_alive(parts, part, role, is_alive, listed):
    """List the basic features of a part's arc that can still be selected in its role; return their number."""
    arc = parts.arcs[part, role]
    n = 0
    for at in range(parts.indptr[arc], parts.indptr[arc + 1]):
        if is_alive[parts.ids[at], role]:
            listed[role, n] = parts.ids[at]
            n += 1
    return n


@in_place
def _pair_key(code, pair, a, b):
    """Return the key of the bound of a pair of basic features."""
    return grow_key(grow_key(mix(start_key(code), np.uint64(pair + 99)), a), b)


@in_place
def _share(key):
    return key >> np.uint64(64 - SHARE_BITS)


@in_place
def _entries(key, size):
    """Return the positions of a key's two bounds in the table of its share; `size` is a power of two."""
    mask = np.uint64(size - 1)
    return (key >> np.uint64(FIRST_SHIFT)) & mask, (key >> np.uint64(SECOND_SHIFT)) & mask


@in_place
def _raise_bounds(sketch, key, sign, amount):
    """Add an amount to the smaller of the two bounds of a key; the other becomes at least as large."""
    first, second = _entries(key, sketch.shape[0])
    bound = min(sketch[first, sign], sketch[second, sign]) + np.float32(amount)
    sketch[first, sign] = max(sketch[first, sign], bound)
    sketch[second, sign] = max(sketch[second, sign], bound)


@in_place
def _is_high(bits, key):
    """Return whether both bounds of a key are set in the bits of its share."""
    first, second = _entries(key, 8 * bits.size)
    return _has_bit(bits, first) and _has_bit(bits, second)


@in_place
def _has_bit(bits, number):
    return bits[number >> np.uint64(3)] >> np.uint8(number & np.uint64(7)) & 1


@compiled
def count_candidates(parts, numbers, is_alive):
    """Return the number of candidates of parts if only the bounds of basic features are used."""
    total = 0
    for part in numbers:
        n = 1
        for role in range(n_arcs_of(parts, part)):
            arc = parts.arcs[part, role]
            n_alive = 0
            for at in range(parts.indptr[arc], parts.indptr[arc + 1]):
                n_alive += is_alive[parts.ids[at], role]
            n *= n_alive
        total += n
    return total


class CandidateRoom(NamedTuple):
    """Scratch space for the candidates of one part."""

    listed: np.ndarray
    """Basic features that can still be selected, by role."""
    is_high: np.ndarray
    """Whether the bound of two of them exceeds the threshold, by pair of roles."""
    keys: np.ndarray
    basic: np.ndarray
    """Basic features of each candidate, by role."""


@compiled
def _widths(parts, numbers):
    """Return the maximum number of basic features of an arc, and the maximum number of features of a part."""
    widest, most = 1, 1
    for part in numbers:
        n = 1
        for role in range(n_arcs_of(parts, part)):
            arc = parts.arcs[part, role]
            width = parts.indptr[arc + 1] - parts.indptr[arc]
            widest = max(widest, width)
            n *= width
        most = max(most, n)
    return widest, most


@compiled
def make_room(parts, numbers):
    """Return scratch space for the candidates of some parts."""
    widest, most = _widths(parts, numbers)
    return CandidateRoom(
        np.empty((N_ROLES, widest), np.int32),
        np.empty((len(PAIRS), widest, widest), np.bool_),
        np.empty(most, np.uint64),
        np.empty((most, N_ROLES), np.int32),
    )


@compiled
def sketch_pairs(parts, numbers, residues, is_alive, share, sketch):
    """Add residuals to the bounds of pairs of basic features of parts with three arcs, for one share."""
    listed = make_room(parts, numbers).listed
    for part in numbers:
        sign, amount, code = PLUS if residues[part] > 0 else MINUS, abs(residues[part]), parts.codes[part]
        for pair in range(len(PAIRS)):
            one, other = PAIRS[pair]
            n_ones = _list_alive(parts, part, one, is_alive, listed)
            n_others = _list_alive(parts, part, other, is_alive, listed)
            for i in range(n_ones):
                for j in range(n_others):
                    key = _pair_key(code, pair, listed[one, i], listed[other, j])
                    if _share(key) == np.uint64(share):
                        _raise_bounds(sketch, key, sign, amount)


@in_place
def list_candidates(parts, part, is_alive, pairs, shares, room):
    """List the features of a part that the bounds of basic features and of their pairs allow.

    `pairs` has, for each share, the bits of pairs whose bound exceeds the threshold. Only features of the
    shares from `shares[0]` to `shares[1]` are listed. Returns their number.
    """
    listed, is_high, keys, basic = room
    n_arcs, code = n_arcs_of(parts, part), parts.codes[part]
    n0 = _list_alive(parts, part, 0, is_alive, listed)
    n1 = _list_alive(parts, part, 1, is_alive, listed) if n_arcs > 1 else 1
    n2 = _list_alive(parts, part, 2, is_alive, listed) if n_arcs > 2 else 1
    if n_arcs > 2:
        sizes = (n0, n1, n2)
        for pair in range(len(PAIRS)):
            one, other = PAIRS[pair]
            for i in range(sizes[one]):
                for j in range(sizes[other]):
                    key = _pair_key(code, pair, listed[one, i], listed[other, j])
                    is_high[pair, i, j] = _is_high(pairs[_share(key)], key)
    n = 0
    for i in range(n0):
        first = grow_key(start_key(code), listed[0, i])
        for j in range(n1):
            if n_arcs > 2 and not is_high[0, i, j]:
                continue
            second = grow_key(first, listed[1, j]) if n_arcs > 1 else first
            for k in range(n2):
                if n_arcs > 2 and not (is_high[1, i, k] and is_high[2, j, k]):
                    continue
                key = grow_key(second, listed[2, k]) if n_arcs > 2 else second
                if not np.uint64(shares[0]) <= _share(key) < np.uint64(shares[1]):
                    continue
                keys[n] = key
                basic[n, 0] = listed[0, i]
                basic[n, 1] = listed[1, j] if n_arcs > 1 else -1
                basic[n, 2] = listed[2, k] if n_arcs > 2 else -1
                n += 1
    return n


@compiled
def sketch_features(parts, numbers, residues, is_alive, pairs, share, sketch):
    """Add residuals to the bounds of the features of one share."""
    room = make_room(parts, numbers)
    for part in numbers:
        sign, amount = PLUS if residues[part] > 0 else MINUS, abs(residues[part])
        for at in range(list_candidates(parts, part, is_alive, pairs, (share, share + 1), room)):
            _raise_bounds(sketch, room.keys[at], sign, amount)


@compiled
def make_table(size):
    """Return an empty table."""
    return PartFeatureTable(
        np.zeros(size, np.uint64),
        np.zeros((size, 2)),
        np.full((size, N_ROLES), -1, np.int32),
        np.zeros(size, np.uint8),
        np.zeros(size, np.uint64),
    )


@in_place
def _find(keys, key):
    """Return the slot of a key, or the empty slot for it."""
    mask = np.uint64(keys.size - 1)
    slot = (key >> np.uint64(17)) & mask
    while keys[slot] != EMPTY and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled
def _doubled(table):
    larger = make_table(2 * table.keys.size)
    for at in range(table.keys.size):
        if table.keys[at] != EMPTY:
            slot = _find(larger.keys, table.keys[at])
            larger.keys[slot] = table.keys[at]
            larger.gains[slot] = table.gains[at]
            larger.basic[slot] = table.basic[at]
            larger.codes[slot] = table.codes[at]
            larger.marks[slot] = table.marks[at]
    return larger


@compiled
def count_features(parts, numbers, residues, is_alive, pairs, shares, bits):
    """Return a table of features in some shares, with exact sums; features whose `bits` are 0 are skipped."""
    room = make_room(parts, numbers)
    table = make_table(1 << 12)
    n_features = 0
    for part in numbers:
        sign, amount, code = PLUS if residues[part] > 0 else MINUS, abs(residues[part]), parts.codes[part]
        mark = mix(mix(np.uint64(7), np.uint64(part)), np.uint64(11))
        for at in range(list_candidates(parts, part, is_alive, pairs, shares, room)):
            if not _is_high(bits[_share(room.keys[at])], room.keys[at]):
                continue
            if 2 * n_features > table.keys.size:
                table = _doubled(table)
            slot = _find(table.keys, room.keys[at])
            if table.keys[slot] == EMPTY:
                n_features += 1
                table.keys[slot] = room.keys[at]
                table.codes[slot] = code
                table.basic[slot] = room.basic[at]
            table.gains[slot, sign] += amount
            table.marks[slot] += mark
    return table


@in_place
def key_of(code, basic):
    """Return the key of a feature, given its basic features by role, -1 for none."""
    key = start_key(code)
    for role in range(N_ROLES):
        if basic[role] >= 0:
            key = grow_key(key, basic[role])
    return key


@compiled
def index_features(codes, basic, known):
    """Fill the arrays of `known` for features; `slots` starts as -1, and the other arrays as 0."""
    mask = np.uint64(known.slots.size - 1)
    for number in range(codes.size):
        key = key_of(codes[number], basic[number])
        known.keys[number] = key
        slot = (key >> np.uint64(17)) & mask
        while known.slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        known.slots[slot] = number
        for role in range(N_ROLES):
            if basic[number, role] >= 0:
                known.is_used[basic[number, role], codes[number] // 4] |= 1 << role
        if basic[number, 2] >= 0:
            prefix = grow_key(grow_key(start_key(codes[number]), basic[number, 0]), basic[number, 1])
            bit = _bit(known.prefixes, prefix)
            known.prefixes[bit >> np.uint64(3)] |= np.uint8(1) << np.uint8(bit & np.uint64(7))


@in_place
def _bit(prefixes, key):
    return (key >> np.uint64(13)) & np.uint64(8 * prefixes.size - 1)


@in_place
def _lookup(known, key):
    mask = np.uint64(known.slots.size - 1)
    slot = (key >> np.uint64(17)) & mask
    while known.slots[slot] >= 0 and known.keys[known.slots[slot]] != key:
        slot = (slot + np.uint64(1)) & mask
    return known.slots[slot]


@in_place
def _list_used(parts, part, role, known, listed):
    """List the basic features of a part's arc that some feature has in its role; return their number."""
    arc, kind = parts.arcs[part, role], parts.codes[part] // 4
    n = 0
    for at in range(parts.indptr[arc], parts.indptr[arc + 1]):
        basic = parts.ids[at]
        if basic >= 0 and known.is_used[basic, kind] & (1 << role):
            listed[role, n] = basic
            n += 1
    return n


@in_place
def _find_features(parts, part, known, room):
    """List the numbers of the features of a part; return their number."""
    listed, found = room
    n_arcs, code = n_arcs_of(parts, part), parts.codes[part]
    n0 = _list_used(parts, part, 0, known, listed)
    n1 = _list_used(parts, part, 1, known, listed) if n_arcs > 1 else 1
    n2 = _list_used(parts, part, 2, known, listed) if n_arcs > 2 else 1
    n = 0
    if n1 == 0 or n2 == 0:
        return n
    for i in range(n0):
        first = grow_key(start_key(code), listed[0, i])
        for j in range(n1):
            second = grow_key(first, listed[1, j]) if n_arcs > 1 else first
            if n_arcs > 2 and not _has_bit(known.prefixes, _bit(known.prefixes, second)):
                continue
            for k in range(n2):
                number = _lookup(known, grow_key(second, listed[2, k]) if n_arcs > 2 else second)
                if number >= 0:
                    found[n] = number
                    n += 1
    return n


@compiled
def _room_for_matches(parts):
    """Return scratch space for the basic features of a part's arcs and for the numbers of its features."""
    widest, most = _widths(parts, np.arange(parts.codes.size))
    return np.empty((N_ROLES, widest), np.int32), np.empty(most, np.int32)


@compiled
def match_parts(parts, known, indptr, ids):
    """Fill the start of the features of each part in `indptr`, and the numbers of the features in `ids`.

    If `ids` is empty, only `indptr` is filled.
    """
    room = _room_for_matches(parts)
    n_found = 0
    for part in range(parts.codes.size):
        indptr[part] = n_found
        n = _find_features(parts, part, known, room)
        if ids.size > 0:
            ids[n_found : n_found + n] = room[1][:n]
        n_found += n
    indptr[parts.codes.size] = n_found


@compiled
def weigh_parts(parts, known, coef, scores):
    """Fill the sums of the weights of the features of parts."""
    room = _room_for_matches(parts)
    for part in range(parts.codes.size):
        total = 0.0
        for at in range(_find_features(parts, part, known, room)):
            total += coef[room[1][at]]
        scores[part] = total
