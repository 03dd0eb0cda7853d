"""Weight tables: creation, averaging, and packing into one byte per weight."""

from typing import Any

import numpy as np
import numpy.typing as npt

from treewright.model import Array, State, expect

FloatTable = npt.NDArray[np.float32]

N_LEVELS, N_COMPACT_LEVELS = 127, 12
SMALLEST_SHARE, SMALLEST_COMPACT_SHARE = 2.0**-16, 2.0**-5
"""Minimum magnitude that is kept, as a fraction of the largest weight; smaller weights become 0."""
LARGEST_WEIGHT = 1e9
"""A bound that is larger than any learnt weight, and small enough for sums to keep their precision."""


def make_table(bits: int) -> FloatTable:
    """Return a table of 2 ** `bits` zeros."""
    return np.zeros(1 << bits, dtype=np.float32)


def table_shift(table: npt.NDArray[Any]) -> np.uint64:
    """Return how far to shift a 64-bit key to the right to get its slot in `table`."""
    return np.uint64(64 - int(table.size).bit_length() + 1)


def average(weights: FloatTable, totals: npt.NDArray[np.float64], n_steps: int) -> FloatTable:
    """Return the mean of the weights over all steps; `totals` is the sum of all changes times their steps."""
    return (weights - totals / max(1, n_steps)).astype(np.float32)


def pack(
    weights: FloatTable, n_levels: int = N_LEVELS, smallest_share: float = SMALLEST_SHARE
) -> dict[str, npt.NDArray[Any]]:
    """Quantise weights to `n_levels` magnitudes of either sign, evenly spaced on a logarithmic scale.

    With 127 levels, neighbouring levels differ by 9 percent; this rounding does not change predicted trees.
    """
    largest = float(np.abs(weights).max(initial=0.0))
    levels = largest * np.geomspace(smallest_share, 1.0, n_levels)
    book = np.concatenate([[0.0], levels, -levels]).astype(np.float32)
    if largest == 0.0:
        return {"codes": np.zeros(weights.size, dtype=np.uint8), "book": book}
    edges = np.sqrt(levels[1:] * levels[:-1])
    codes = np.searchsorted(edges, np.abs(weights)).astype(np.uint8) + np.uint8(1)
    codes[weights < 0] += np.uint8(n_levels)
    codes[np.abs(weights) < levels[0] / 2] = 0
    return {"codes": codes, "book": book}


def unpack(packed: dict[str, npt.NDArray[Any]]) -> FloatTable:
    """Return the weights packed by `pack`."""
    table: FloatTable = packed["book"][packed["codes"]]
    return table


class PackedWeights:
    """A weight table as a field of a model, packed into one byte per weight.

    Parameters
    ----------
    is_hashed : bool
        Whether keys are hashed to slots. A hashed table needs at least two slots.
    optional : bool
        Whether the table may be missing.
    compact : tuple of int and float
        Number of magnitudes of either sign in a compact file, and the minimum magnitude as a fraction of the
        largest weight.
    """

    def __init__(
        self,
        *,
        is_hashed: bool = False,
        optional: bool = False,
        compact: tuple[int, float] = (N_COMPACT_LEVELS, SMALLEST_COMPACT_SHARE),
    ) -> None:
        self._min_size = 2 if is_hashed else 0
        self._optional = optional
        self._compact = compact

    def put(self, state: State, name: str, value: FloatTable | None) -> None:
        """Add the weights."""
        if value is not None:
            options = self._compact if state.compact else ()
            state.arrays |= {f"{name}.{key}": array for key, array in pack(value, *options).items()}

    def take(self, state: State, name: str) -> Any:  # noqa: ANN401
        """Remove and return the weights."""
        if self._optional and f"{name}.book" not in state.arrays:
            return None
        book = Array("f", low=-LARGEST_WEIGHT, high=LARGEST_WEIGHT).take(state, f"{name}.book")
        codes = Array("u").take(state, f"{name}.codes")
        expect(book.dtype == np.float32, "weights of type float32")
        expect(codes.size >= self._min_size, f"a table of at least {self._min_size} weights")
        return book[codes]
