"""The spectral Bloom filter with minimal increase (Cohen & Matias 2003), with counters packed into words.

A key has `n_hashes` counters; the smallest of them is an upper bound of the count of the key. The counters of
a key are in one block of `block` counters. A block is the whole filter or a cache line of the processor. If
it is a cache line, a key takes one memory access instead of several.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place
from treewright.native.hashing import mix

LINE_BITS = 512
"""Size of a cache line."""
SKIPPED = np.uint64(20)
"""Number of lowest bits of a hash that are skipped, since they are mixed least."""
SLICE_BITS = 12
N_SLICES = 64 // SLICE_BITS
SMALL_BLOCK = 1 << SLICE_BITS
"""Number of counters that a slice of a hash can address."""


class Bloom(NamedTuple):
    """Counters of `width` bits that stop at `limit`, in `n_blocks` blocks of `block` counters.

    `width`, `n_blocks` and `block` are powers of two.
    """

    words: np.ndarray
    width: int
    limit: int
    n_hashes: int
    n_blocks: int
    block: int


@in_place
def hash_key(key):
    """Return the hash of a key, from which its block and its counters follow."""
    return mix(mix(np.uint64(0), key), np.uint64(1))


@in_place
def block_start(bloom, hashed):
    """Return the number of the first counter of a key's block."""
    block = (mix(hashed, np.uint64(2)) >> SKIPPED) & np.uint64(bloom.n_blocks - 1)
    return block * np.uint64(bloom.block)


@in_place
def probe(bloom, start, hashed, number):
    """Return the number of one of a key's counters; in small blocks, each has its own bits of the hash."""
    mask = np.uint64(bloom.block - 1)
    if bloom.block <= SMALL_BLOCK and number < N_SLICES:
        return start + ((hashed >> np.uint64(SLICE_BITS * number)) & mask)
    return start + ((mix(hashed, np.uint64(number + 3)) >> SKIPPED) & mask)


@in_place
def add(bloom, key):
    """Add a key once, and return its previous count, at most `limit`."""
    hashed = hash_key(key)
    return add_hashed(bloom, hashed, block_start(bloom, hashed))


@in_place
def add_hashed(bloom, hashed, start):
    """Add a key, as `add` does, given its hash and its block."""
    smallest = smallest_counter(bloom, hashed, start)
    if smallest < bloom.limit:
        for number in range(bloom.n_hashes):
            index = probe(bloom, start, hashed, number)
            if read(bloom, index) == smallest:
                increase(bloom, index)
    return smallest


@in_place
def smallest_counter(bloom, hashed, start):
    """Return the smallest counter of a key."""
    smallest = bloom.limit
    for number in range(bloom.n_hashes):
        smallest = min(smallest, read(bloom, probe(bloom, start, hashed, number)))
    return smallest


@in_place
def read(bloom, index):
    """Return a counter."""
    bit = index * np.uint64(bloom.width)
    word = bloom.words[bit >> np.uint64(6)]
    mask = (np.uint64(1) << np.uint64(bloom.width)) - np.uint64(1)
    return np.int64((word >> (bit & np.uint64(63))) & mask)


@in_place
def increase(bloom, index):
    """Add one to a counter."""
    bit = index * np.uint64(bloom.width)
    bloom.words[bit >> np.uint64(6)] += np.uint64(1) << (bit & np.uint64(63))


@in_place
def add_all(bloom, keys, before):
    """Add keys one after the other, and fill their previous counts."""
    for position in range(keys.size):
        before[position] = add(bloom, keys[position])


@in_place
def estimate_all(bloom, keys, counts):
    """Fill the counts of keys."""
    for position in range(keys.size):
        hashed = hash_key(keys[position])
        counts[position] = smallest_counter(bloom, hashed, block_start(bloom, hashed))
