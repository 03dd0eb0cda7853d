"""Checks of parameters: one sentence with the value found and what was expected."""

import types
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from treewright._typing import Range
from treewright.errors import InputError


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Check that `value` is one of `choices`."""
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices):
        raise InputError(f"{name} is {value!r}; expected one of {', '.join(map(str, choices))}")


def check_integer(name: str, value: object, *, minimum: int = 0, maximum: int | None = None) -> None:
    """Check that `value` is an integer of at least `minimum`, and at most `maximum` if there is one."""
    is_integer = not isinstance(value, bool) and isinstance(value, Integral)
    if not is_integer or not minimum <= int(value) <= (int(value) if maximum is None else maximum):  # type: ignore[call-overload]
        wanted = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise InputError(f"{name} is {value!r}; expected an integer {wanted}")


def check_number(name: str, value: object, *, low: float, high: float) -> None:
    """Check that `value` is a number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise InputError(f"{name} is {value!r}; expected a number from {low:g} to {high:g}")


def check_params(model: Any) -> None:  # noqa: ANN401
    """Check that the parameters of an estimator have values that the annotations of its constructor allow.

    Understood are integers, floats, booleans and strings, `Literal`, `Range` in `Annotated`, unions of these
    with None, and tuples of any length; a parameter of any other type is left to the estimator.
    """
    hints = get_type_hints(type(model).__init__, include_extras=True)
    hints.pop("return", None)
    for name, hint in hints.items():
        check_param(name, getattr(model, name), hint)


def check_param(name: str, value: object, hint: Any) -> None:  # noqa: ANN401
    """Check that a parameter has a value that its annotation allows."""
    if get_origin(hint) in (Union, types.UnionType):
        members = get_args(hint)
        if value is None and types.NoneType in members:
            return
        others = [member for member in members if member is not types.NoneType]
        if len(others) == 1:
            check_param(name, value, others[0])
        return
    if get_origin(hint) is Literal:
        check_choice(name, value, get_args(hint))
        return
    if get_origin(hint) is tuple:
        for each in value if isinstance(value, tuple) else ():
            check_param(name, each, get_args(hint)[0])
        return
    plain, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    bounds = next((each for each in extras if isinstance(each, Range)), Range())
    low = -float("inf") if bounds.low is None else bounds.low
    high = float("inf") if bounds.high is None else bounds.high
    if plain is bool:
        check_choice(name, value, (False, True))
    elif plain is int and bounds.low is not None:
        check_integer(name, value, minimum=int(low), maximum=None if bounds.high is None else int(high))
    elif plain is float:
        check_number(name, value, low=low, high=high)
    elif plain is str and not isinstance(value, str):
        raise InputError(f"{name} is {value!r}; expected a string")
