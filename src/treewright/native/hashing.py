"""Numbers and texts made into 64-bit keys, whose highest bits number a slot of a table.

Features are hashed by `mix` or, many at a time, by `mix_arrays`. Those of dependency parts have sums as keys
(see `native.dependency.features`), and forms of constituents an order of steps of their own (see
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
    """Mix values into keys, element by element; with a `fold` of 32, the lower half is a key of 32 bits."""
    keys = (keys ^ values) * PRIME
    keys ^= keys >> fold
    return keys


def hash_text(text: str) -> int:
    """Return a key for a text, the same in every run."""
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
