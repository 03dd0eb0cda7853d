"""Types of parameters, with the bounds that their values must keep.

A constructor annotates each parameter once. `treewright._validate.check_params` checks values against these
annotations, and the command line makes its options of them.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal, TypeAlias

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Range:
    """Bounds of a number; both belong to it."""

    low: float | None = None
    high: float | None = None


SPELLINGS = {
    "C": "cost",
    "random_state": "seed",
    "n_jobs": "jobs",
    "n_sentences": "sentences",
    "n_trees": "trees",
    "max_lengths": "max_length",
}
"""Parameters that have another name on the command line."""


def option_name(parameter: str) -> str:
    """Return the option of the command line for a parameter.

    Examples
    --------
    >>> option_name("random_state"), option_name("lowest_penalty")
    ('--seed', '--lowest-penalty')
    """
    return "--" + SPELLINGS.get(parameter, parameter).replace("_", "-")


def show_value(value: object) -> str:
    """Write the value of a parameter as it is given on the command line.

    Examples
    --------
    >>> show_value((1.0, 2.5)), show_value((15, None))
    ('1,2.5', '15,all')
    """
    if isinstance(value, tuple):
        return ",".join(map(show_value, value))
    if value is None:
        return "all"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


class Shown(Enum):
    """What a parameter is, where its type alone does not say how the command line takes it."""

    MEMORY = "SIZE"
    FILE = "FILE"
    ADDRESS = "ADDRESS"


Count: TypeAlias = Annotated[int, Range(1)]
Folds: TypeAlias = Annotated[int, Range(2)]
NonNegativeInt: TypeAlias = Annotated[int, Range(0)]
NonNegativeFloat: TypeAlias = Annotated[float, Range(0)]
Fraction: TypeAlias = Annotated[float, Range(0, 1)]
Memory: TypeAlias = Annotated[int, Range(0), Shown.MEMORY]
"""A number of bytes; on the command line, a size such as 512M or 4G."""
FileName: TypeAlias = Annotated[str, Shown.FILE]
Address: TypeAlias = Annotated[str, Shown.ADDRESS]
TagSource: TypeAlias = Literal["gold", "predicted"]
LiftingScheme: TypeAlias = Literal["baseline", "head", "path", "head+path"]

IntArray: TypeAlias = npt.NDArray[np.int32]
FloatArray: TypeAlias = npt.NDArray[np.float64]
Keys: TypeAlias = npt.NDArray[np.uint64]
Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]
