"""A spectral Bloom filter: upper bounds on the counts of keys (Qian & Liu 2015, section 4.2)."""

import math

import numpy as np
import numpy.typing as npt

from treewright._validate import check_integer
from treewright.errors import InputError
from treewright.native.mining.bloom import LINE_BITS, Bloom, add_all, estimate_all

N_HASHES = 5
WIDTHS = (2, 4, 8, 16, 32)
SMALLEST = 64
"""Minimum size of a filter in bytes: one cache line."""


class SpectralBloomFilter:
    """A spectral Bloom filter: approximate counts of keys, never too low, in little memory.

    Qian & Liu (2015, section 4.2) use it to skip rare features before they are counted exactly.

    Parameters
    ----------
    limit : int
        Value at which counters stop, such as the threshold that the counts of keys must exceed. If it is at
        most 3, a counter takes two bits.
    memory : int
        Maximum size of the counters in bytes; rounded down to a power of two.
    n_hashes : int
        Number of counters per key.
    lines : bool
        Keep the counters of a key in one cache line of the processor, which is faster and slightly less
        accurate.

    Attributes
    ----------
    n_counters : int
        Number of counters.

    See Also
    --------
    PolynomialSpace : Uses a filter if `filter_memory` is given.

    Examples
    --------
    >>> bloom = tw.SpectralBloomFilter(limit=3, memory=1024)
    >>> bloom.add([7, 7, 9]).tolist()
    [0, 1, 0]
    >>> bloom.estimate([7, 9, 11]).tolist()
    [2, 1, 0]
    """

    def __init__(self, limit: int, memory: int, *, n_hashes: int = N_HASHES, lines: bool = True) -> None:
        check_integer("limit", limit)
        check_integer("n_hashes", n_hashes, minimum=1)
        check_integer("memory", memory, minimum=SMALLEST)
        width = next((width for width in WIDTHS if limit < 1 << width), None)
        if width is None:
            raise InputError(f"limit is {limit}; expected at most {(1 << WIDTHS[-1]) - 1}")
        bits = 8 << (int(memory).bit_length() - 1)
        self.n_counters = bits // width
        block = LINE_BITS // width if lines else self.n_counters
        words = np.zeros(bits // 64, dtype=np.uint64)
        self.native = Bloom(words, width, int(limit), int(n_hashes), self.n_counters // block, block)

    def clear(self) -> None:
        """Forget all keys."""
        self.native.words[:] = 0

    def add(self, keys: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Add integer keys one after the other.

        Parameters
        ----------
        keys : array of int, (n_keys,)
            Keys to add; a key may occur several times.

        Returns
        -------
        ndarray of int, (n_keys,)
            The estimated count of each key before it was added.
        """
        keys = _as_keys(keys)
        before = np.empty(len(keys), dtype=np.int64)
        add_all(self.native, keys, before)
        return before

    def estimate(self, keys: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the estimated count of each key: at least its true count, but never more than `limit`.

        Parameters
        ----------
        keys : array of int, (n_keys,)
            Keys to look up.

        Returns
        -------
        ndarray of int, (n_keys,)
            The estimated counts.
        """
        keys = _as_keys(keys)
        counts = np.empty(len(keys), dtype=np.int64)
        estimate_all(self.native, keys, counts)
        return counts

    def false_positive_rate(self, n_keys: int) -> float:
        """Return the probability that an unseen key is reported as seen after `n_keys` others were added.

        It is the same as for an ordinary Bloom filter, because minimal increase does not affect keys that
        were never added. If the counters of a key share a cache line, the rate is averaged over the number of
        keys per line.

        Parameters
        ----------
        n_keys : int
            Number of distinct keys that were added.

        Returns
        -------
        float
            The probability, from 0 to 1.
        """
        bloom = self.native
        load = n_keys / bloom.n_blocks
        if bloom.n_blocks == 1:
            return float((1 - (1 - 1 / bloom.block) ** (n_keys * bloom.n_hashes)) ** bloom.n_hashes)
        most = int(load + 10 * math.sqrt(load) + 20)
        n = np.arange(most + 1)
        logs = n * np.log(load) - load - np.array([math.lgamma(each + 1) for each in n]) if load else None
        shares = np.exp(logs) if logs is not None else (n == 0).astype(float)
        rates = (1 - (1 - 1 / bloom.block) ** (n * bloom.n_hashes)) ** bloom.n_hashes
        return float(shares @ rates)


def _as_keys(keys: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    array = np.asarray(keys)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise InputError(
            f"keys is a {array.ndim}-dimensional array of {array.dtype}; "
            "expected a 1-dimensional array of integers"
        )
    return array.astype(np.uint64)
