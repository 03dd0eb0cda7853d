"""Quantised tables for compact files: each value is a multiple of the unit of its row."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treewright.model import Array, State, expect

Floats = npt.NDArray[np.float32]
LARGEST = 6e4
"""Largest number in half precision."""
LEVELS = 31
"""Number of non-zero magnitudes per row; with 15, a parser trained on EWT loses 0.2 points of LAS."""
SMALLEST_TABLE = 1024
"""Minimum size of a table that is quantised."""
UNITS = ":units"
"""Suffix of the names of arrays with the units of quantised rows."""


@dataclass(frozen=True)
class HalfPrecision:
    """Half-precision numbers, as a field of a model; in a compact file, tables have one byte per number.

    Parameters
    ----------
    n_dimensions : int, optional
        Number of dimensions; None for any.
    """

    n_dimensions: int | None = None

    def put(self, state: State, name: str, value: npt.NDArray[np.floating]) -> None:
        """Add the numbers to a saved state."""
        if not state.compact or value.ndim < 2 or value.size < SMALLEST_TABLE:
            state.arrays[name] = value.astype(np.float16)
            return
        wide = value.astype(np.float32)
        units = (np.abs(wide).max(axis=-1) / LEVELS).astype(np.float16)
        steps = np.maximum(units.astype(np.float32), np.finfo(np.float16).tiny)[..., np.newaxis]
        state.arrays[name] = np.clip(np.rint(wide / steps), -LEVELS, LEVELS).astype(np.int8)
        state.arrays[f"{name}{UNITS}"] = units

    def take(self, state: State, name: str) -> Floats:
        """Remove and return the numbers from a saved state."""
        if f"{name}{UNITS}" not in state.arrays:
            return _array("f", self.n_dimensions, LARGEST).take(state, name).astype(np.float32)
        levels = _array("i", self.n_dimensions, LEVELS).take(state, name).astype(np.float32)
        units = _array("f", None, LARGEST).take(state, f"{name}{UNITS}").astype(np.float32)
        expect(units.shape == levels.shape[:-1], f"a unit for each row of {name}")
        found: Floats = levels * units[..., np.newaxis]
        return found


def _array(kinds: str, n_dimensions: int | None, largest: float) -> Array:
    return Array(kinds, n_dimensions, low=-largest, high=largest)
