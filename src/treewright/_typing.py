"""Types of parameters, with the bounds that their values must keep.

A constructor annotates each parameter once. `treewright._validate.check_params` checks values against these
annotations, and the command line makes its options of them.
"""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Range:
    """Bounds of a number; both belong to it."""

    low: float | None = None
    high: float | None = None


Count: TypeAlias = Annotated[int, Range(1)]
NonNegativeInt: TypeAlias = Annotated[int, Range(0)]
NonNegativeFloat: TypeAlias = Annotated[float, Range(0)]
Fraction: TypeAlias = Annotated[float, Range(0, 1)]

IntArray: TypeAlias = npt.NDArray[np.int32]
FloatArray: TypeAlias = npt.NDArray[np.float64]
Keys: TypeAlias = npt.NDArray[np.uint64]
