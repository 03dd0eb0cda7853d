"""Hashing of numbers and texts to 64-bit keys; the highest bits of a key are its slot in a table.

Features are hashed by `mix` or, many at a time, by `mix_arrays`. The keys of dependency parts are sums (see
`native.dependency.features`), and the forms of constituents have their own hash (see
`native.constituent.states`).
"""

import hashlib

import numpy as np
import numpy.typing as npt

from treewright.native.compiling import in_place

PRIME = np.uint64(0x9E3779B97F4A7C15)
FOLD = np.uint64(29)

Keys = npt.NDArray[np.uint64]


@in_place
def mix(key, value):
    """Mix a value into a key."""
    key = (key ^ np.uint64(value)) * PRIME
    return key ^ (key >> FOLD)


def mix_arrays(keys: Keys, values: npt.NDArray[np.unsignedinteger], fold: np.uint64 = FOLD) -> Keys:
    """Mix values into keys elementwise; with a `fold` of 32, the lower half of a result is a 32-bit key."""
    keys = (keys ^ values) * PRIME
    keys ^= keys >> fold
    return keys


def hash_text(text: str) -> int:
    """Return a key for a text; it is the same in every run."""
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
