"""The spectral Bloom filter with minimal increase (Cohen & Matias 2003), its counters packed into words.

A key has `n_hashes` counters; the smallest of them bounds from above how often the key was added. The
counters of a key lie in one block of `block` counters: the whole filter, or a line of the processor's cache,
which makes one wait for memory of several.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place
from treewright.native.hashing import mix

LINE_BITS = 512
"""Size of a cache line."""
SKIPPED = np.uint64(20)
"""The lowest bits of a hash, which are the least mixed."""


class Bloom(NamedTuple):
    """Counters of `width` bits that stop at `limit`, in `n_blocks` blocks of `block`.

    Width, blocks and counters in a block are powers of two.
    """

    words: np.ndarray
    width: int
    limit: int
    n_hashes: int
    n_blocks: int
    block: int


@in_place
def add(bloom, key):
    """Add a key once, and return what it was counted before, at most `limit`."""
    smallest = estimate(bloom, key)
    if smallest < bloom.limit:
        start, state = first_probe(bloom, key)
        for _ in range(bloom.n_hashes):
            state = next_probe(state)
            index = probe(bloom, start, state)
            if read(bloom, index) == smallest:
                increase(bloom, index)
    return smallest


@in_place
def estimate(bloom, key):
    """Return the smallest counter of a key."""
    start, state = first_probe(bloom, key)
    smallest = bloom.limit
    for _ in range(bloom.n_hashes):
        state = next_probe(state)
        index = probe(bloom, start, state)
        smallest = min(smallest, read(bloom, index))
    return smallest


@in_place
def first_probe(bloom, key):
    """Return where the block of a key starts, and the state from which its probes follow."""
    state = mix(mix(np.uint64(0), key), np.uint64(1))
    block = (state >> SKIPPED) & np.uint64(bloom.n_blocks - 1)
    return block * np.uint64(bloom.block), state


@in_place
def next_probe(state):
    """Return the state of the next probe."""
    return mix(state, np.uint64(2))


@in_place
def probe(bloom, start, state):
    """Return the number of a counter in the block that starts at `start`."""
    return start + ((state >> SKIPPED) & np.uint64(bloom.block - 1))


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
    """Add keys one after the other, and fill what each was counted before."""
    for position in range(keys.size):
        before[position] = add(bloom, keys[position])


@in_place
def estimate_all(bloom, keys, counts):
    """Fill the counts of keys."""
    for position in range(keys.size):
        counts[position] = estimate(bloom, keys[position])
