"""Sets of candidates as 64-bit masks."""

from typing import Any

import numpy as np
import numpy.typing as npt

from treewright._typing import Integers
from treewright.native.hashing import Keys


def find_first(values: npt.NDArray[Any]) -> Integers:
    """Return the start of each run of equal values."""
    return np.flatnonzero(
        np.concatenate([np.ones(len(values[:1]), dtype=np.bool_), values[1:] != values[:-1]])
    )


def join_bits(masks: Keys, starts: Integers) -> Keys:
    """Return the bitwise OR of the masks of each run."""
    return np.bitwise_or.reduceat(masks, starts) if len(starts) else masks


def pack(flags: npt.NDArray[np.bool_]) -> Keys:
    """Pack rows of flags into columns of 64-bit masks."""
    n_words = max(1, -(-flags.shape[1] // 64))
    whole = np.zeros((len(flags), 64 * n_words), dtype=np.bool_)
    whole[:, : flags.shape[1]] = flags
    return np.ascontiguousarray(np.packbits(whole, axis=1).view(np.uint64).T)


def unpack(masks: Keys, n_flags: int) -> npt.NDArray[np.uint8]:
    """Unpack columns of masks into rows of flags."""
    return np.unpackbits(np.ascontiguousarray(masks.T).view(np.uint8), axis=1, count=n_flags)
