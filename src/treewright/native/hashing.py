"""Numbers made into 64-bit keys, whose highest bits number a slot of a table."""

import numpy as np

from treewright.native.compiling import in_place

PRIME = np.uint64(0x9E3779B97F4A7C15)
FOLD = np.uint64(29)


@in_place
def mix(key, value):
    """Mix a value into a key."""
    key = (key ^ np.uint64(value)) * PRIME
    return key ^ (key >> FOLD)
