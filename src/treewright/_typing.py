"""Types of parameters, with bounds.

Each parameter is annotated once, in the constructor. `treewright._validate.check_params` checks values
against these annotations, and the command line derives its options from them.
"""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Range:
    """Bounds of a number, inclusive."""

    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class JobCount:
    """Marks a number of threads; negative numbers count back from the number of processors."""


class Shown(Enum):
    """Kind of value of a parameter in help texts, if the command line cannot derive it from the type."""

    MEMORY = "SIZE"
    FILE = "FILE"
    FOLDER = "DIR"
    ADDRESS = "ADDRESS"


Count: TypeAlias = Annotated[int, Range(1)]
Jobs: TypeAlias = Annotated[int, JobCount()]
"""A number of threads, as in scikit-learn: -1 stands for all processors, -2 for all but one."""
Folds: TypeAlias = Annotated[int, Range(2)]
LayerCount: TypeAlias = Annotated[int, Range(1, 100)]
TreeCount: TypeAlias = Annotated[int, Range(1, 10_000)]
"""Length of a k-best list."""
NonNegativeInt: TypeAlias = Annotated[int, Range(0)]
RandomState: TypeAlias = Annotated[int, Range(0)] | np.random.Generator | np.random.RandomState | None
"""A seed, or a generator from which a seed is drawn; None stands for a new seed each time."""
NonNegativeFloat: TypeAlias = Annotated[float, Range(0)]
Fraction: TypeAlias = Annotated[float, Range(0, 1)]
Memory: TypeAlias = Annotated[int, Range(0), Shown.MEMORY]
"""A number of bytes; on the command line, a size such as 512M or 4G."""
LimitedMemory: TypeAlias = Annotated[int, Range(64), Shown.MEMORY]
"""A number of bytes, at least 64."""
FileName: TypeAlias = Annotated[str, Shown.FILE]
FolderName: TypeAlias = Annotated[str, Shown.FOLDER]
Folder: TypeAlias = Annotated[Path, Shown.FOLDER]
Address: TypeAlias = Annotated[str, Shown.ADDRESS]
TagSource: TypeAlias = Literal["gold", "predicted"]
LiftingScheme: TypeAlias = Literal["baseline", "head", "path", "head+path"]

IntArray: TypeAlias = npt.NDArray[np.int32]
FloatArray: TypeAlias = npt.NDArray[np.float64]
Keys: TypeAlias = npt.NDArray[np.uint64]
Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]
