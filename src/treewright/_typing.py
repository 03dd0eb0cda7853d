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


SPELLINGS = {
    "random_state": "seed",
    "n_jobs": "jobs",
    "n_sentences": "sentences",
    "n_trees": "trees",
    "max_lengths": "max_length",
}
"""Parameters that have a shorter name on the command line."""


def option_name(parameter: str, prefix: str = "") -> str:
    """Return the option of the command line for a parameter.

    Examples
    --------
    >>> option_name("random_state"), option_name("lowest_penalty")
    ('--seed', '--lowest-penalty')
    """
    return "--" + prefix + SPELLINGS.get(parameter, parameter).replace("_", "-")


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


Count: TypeAlias = Annotated[int, Range(1)]
NonNegativeInt: TypeAlias = Annotated[int, Range(0)]
NonNegativeFloat: TypeAlias = Annotated[float, Range(0)]
Fraction: TypeAlias = Annotated[float, Range(0, 1)]

IntArray: TypeAlias = npt.NDArray[np.int32]
FloatArray: TypeAlias = npt.NDArray[np.float64]
Keys: TypeAlias = npt.NDArray[np.uint64]
