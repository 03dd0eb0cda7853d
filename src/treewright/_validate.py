"""Checks of parameters: one sentence with the value found and what was expected."""

from collections.abc import Sequence
from numbers import Integral, Real

from treewright.errors import InputError


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Check that `value` is one of `choices`."""
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices):
        raise InputError(f"{name} is {value!r}; expected one of {', '.join(map(str, choices))}")


def check_integer(name: str, value: object, *, minimum: int = 0) -> None:
    """Check that `value` is an integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < minimum:
        raise InputError(f"{name} is {value!r}; expected an integer of at least {minimum}")


def check_number(name: str, value: object, *, low: float, high: float) -> None:
    """Check that `value` is a number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise InputError(f"{name} is {value!r}; expected a number from {low:g} to {high:g}")
