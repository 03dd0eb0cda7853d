"""Checks of parameters; error messages contain the value found and the value expected."""

import inspect
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from treewright._naming import named, setting
from treewright._typing import JobCount, Jobs, RandomState, Range
from treewright.errors import InputError, quote, show

Function = TypeVar("Function", bound=Callable[..., Any])
Conditions = Mapping[str, Collection[Any]]
"""Allowed values of other parameters; all of these conditions must hold."""
GIVEN = (object(),)
"""Stands for any value except None."""
INFINITY = float("inf")
MAX_SEED = (1 << 31) - 1
GENERATORS = {np.random.Generator: "a numpy Generator", np.random.RandomState: "a numpy RandomState"}
JOBS = "an integer of at least 1, or a negative one (-1: all processors, -2: all but one)"


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Check that `value` is one of `choices`."""
    if not _is_one_of(value, choices):
        raise InputError(f"{named(name)} is {show(value)}; expected one of {', '.join(map(str, choices))}")


def check_type(name: str, value: object, kind: type | tuple[type, ...], expected: str) -> None:
    """Check that `value` is an instance of `kind`, which `expected` describes."""
    if not isinstance(value, kind):
        raise InputError(f"{named(name)} is of type {type(value).__name__}; expected {expected}")


def check_items(name: str, values: Any, kind: type | tuple[type, ...], expected: str) -> None:  # noqa: ANN401
    """Check that `values` is a sequence of instances of `kind`, which `expected` describes in the plural."""
    if isinstance(values, str | bytes) or not (hasattr(values, "__getitem__") and hasattr(values, "__len__")):
        raise InputError(f"{named(name)} is of type {type(values).__name__}; expected a list of {expected}")
    for at, value in enumerate(values):
        if not isinstance(value, kind):
            found = f"{named(name)}[{at}] is of type {type(value).__name__}"
            raise InputError(f"{found}; expected a list of {expected}")


def check_integer(name: str, value: object, *, minimum: int = 0, maximum: int | None = None) -> None:
    """Check that `value` is an integer of at least `minimum`, and at most `maximum` if there is one."""
    check_param(name, value, Annotated[int, Range(minimum, maximum)])


def check_number(name: str, value: object, *, low: float, high: float) -> None:
    """Check that `value` is a number from `low` to `high`."""
    check_param(name, value, Annotated[float, Range(low, high)])


def count_jobs(n_jobs: int) -> int:
    """Return the number of threads for `n_jobs`: -1 stands for all processors, -2 for all but one, and so on.

    Examples
    --------
    >>> count_jobs(3)
    3
    """
    check_param("n_jobs", n_jobs, Jobs)
    if n_jobs > 0:
        return int(n_jobs)
    return max(1, count_processors() + 1 + int(n_jobs))


@cache
def count_processors() -> int:
    """Return the number of processors that this process may use."""
    from joblib import cpu_count  # type: ignore[import-untyped]

    return int(cpu_count())


def draw_seed(random_state: RandomState, *, checkpoint: object = None) -> int:
    """Return a seed: `random_state` itself if it is an integer, or else a number drawn from it.

    With a checkpoint, `random_state` must be an integer, since training could not resume with another seed.

    Examples
    --------
    >>> draw_seed(3), draw_seed(np.random.RandomState(0)), draw_seed(np.random.default_rng(0))
    (3, 209652396, 1826701614)
    """
    check_param("random_state", random_state, RandomState)
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    if checkpoint is not None:
        raise InputError(
            f"checkpoint is given and {named('random_state')} is {random_state!r}; expected an integer "
            f"{named('random_state')}, so that training can resume"
        )
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(MAX_SEED))
    return int(np.random.default_rng(random_state).integers(MAX_SEED))


def _is_one_of(value: object, choices: Iterable[object]) -> bool:
    return any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices)


def check_params(model: object) -> None:
    """Check the parameters of an estimator by the annotations of its constructor.

    Supported annotations are integers, floats, booleans and strings, `Literal`, `Range` in `Annotated`,
    unions of these with None, and tuples of any length. The estimator itself checks parameters of other
    types. A parameter that differs from its default but has no effect, according to the estimator's
    `EFFECTIVE_IF`, is also rejected.
    """
    kind: type[Any] = type(model)
    hints = constructor_hints(kind)  # type: ignore[arg-type]
    values = {name: getattr(model, name) for name in hints}
    for name, hint in hints.items():
        check_param(name, values[name], hint)
    defaults = inspect.signature(kind).parameters
    changed = [name for name, value in values.items() if not _is_one_of(value, [defaults[name].default])]
    for found in without_effect(kind, values, changed):
        raise InputError(str(found))


def check_param_names(estimator: Any, given: Iterable[str]) -> None:  # noqa: ANN401
    """Check that an estimator has these parameters; ``name__inner`` is a parameter of a nested estimator."""
    names = [name for name in estimator.get_params() if "__" not in name]
    for name in (key.partition("__")[0] for key in given):
        if name not in names:
            expected = f"one of {', '.join(names)}" if names else "no parameters"
            raise InputError(
                f"{type(estimator).__name__} has no parameter {quote(name)}; expected {expected}"
            )


@cache
def constructor_hints(kind: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the annotations of the parameters of a class's constructor, or of a function."""
    hints = get_type_hints(kind.__init__ if inspect.isclass(kind) else kind, include_extras=True)
    hints.pop("return", None)
    return types.MappingProxyType(hints)


class WithoutEffect(NamedTuple):
    """A parameter without effect, the values of other parameters that cause this, and the expected values."""

    name: str
    found: dict[str, Any]
    expected: Sequence[Conditions]

    def __str__(self) -> str:
        found = " and ".join(setting(name, value) for name, value in self.found.items())
        expected = ", or ".join(
            " and ".join(
                named(name) if values is GIVEN else setting(name, *values) for name, values in each.items()
            )
            for each in self.expected
        )
        line = f"{named(self.name)} has no effect with {found}; expected {expected}"
        return line.replace(" with no --", " without --")


def without_effect(
    kind: Callable[..., Any], values: Mapping[str, Any], names: Iterable[str]
) -> Iterator[WithoutEffect]:
    """Yield each parameter in `names` that has no effect because of the values of other parameters.

    `kind.EFFECTIVE_IF` declares when a parameter has an effect: the values that other parameters must have,
    or several such conditions, one of which must hold. A value that is an object, not a name, is a component
    provided by the user. A function declares its conditions with `effective_if`.
    """
    declared: Mapping[str, Conditions | Sequence[Conditions]] = getattr(kind, "EFFECTIVE_IF", {})
    for name in names:
        if name not in declared:
            continue
        either = declared[name]
        ways = [either] if isinstance(either, Mapping) else list(either)
        failing: list[list[str]] = [[] for _ in ways]
        for way, found in zip(ways, failing, strict=True):
            for other, allowed in way.items():
                value = values[other]
                if value is None or isinstance(value, str | int | float):
                    holds = value is not None if allowed is GIVEN else _is_one_of(value, allowed)
                else:
                    holds = allowed is GIVEN or None not in allowed
                if not holds:
                    found.append(other)
        if all(failing):
            others = dict.fromkeys(other for each in failing for other in each)
            yield WithoutEffect(name, {other: values[other] for other in others}, ways)


def effective_if(**conditions: Conditions) -> Callable[[Function], Function]:
    """Declare when parameters of a function have an effect, as a class does in `EFFECTIVE_IF`."""

    def declare(function: Function) -> Function:
        function.EFFECTIVE_IF = conditions  # type: ignore[attr-defined]
        return function

    return declare


def check_param(name: str, value: object, hint: Any) -> None:  # noqa: ANN401
    """Check the value of a parameter against its annotation."""
    members = members_of(hint)
    member = next((each for each in members if get_origin(each) is tuple), None)
    others = [each for each in members if each is not member]
    if member and isinstance(value, tuple | list):
        for each in value:
            check_param(name, each, get_args(member)[0])
    elif (
        member
        and (expected := describe_type(get_args(member)[0]))
        and not (value is None and types.NoneType in others)
        and not any(is_allowed(value, each) for each in others if each is not types.NoneType)
    ):
        raise InputError(f"{named(name)} is {show(value)}; expected a list, with {expected} in each place")
    elif not is_allowed(value, hint):
        raise InputError(f"{named(name)} is {show(value)}; expected {describe_type(hint)}")


def members_of(hint: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """Return the members of a union, or the type itself if it is not a union."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def is_allowed(value: object, hint: Any) -> bool:  # noqa: ANN401
    """Return whether an annotation allows a value; the estimator itself checks objects."""
    if value is None and types.NoneType in members_of(hint):
        return True
    wanted = [_expectation(member) for member in members_of(hint) if member is not types.NoneType]
    if all(each is None for each in wanted):
        return True
    is_object = not (value is None or isinstance(value, str | int | float))
    return any(is_object if each is None else each[0](value) for each in wanted)


def describe_type(hint: Any) -> str:  # noqa: ANN401
    """Describe the values that an annotation allows, except None."""
    return " or ".join(wanted[1] for member in members_of(hint) if (wanted := _expectation(member)))


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


@cache
def _expectation(hint: Any) -> tuple[Callable[[Any], bool], str] | None:  # noqa: ANN401
    """Return a predicate for a type other than a union, and its description; None if any value is valid."""
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        text = f'"{choices[0]}"' if len(choices) == 1 else f"one of {', '.join(map(str, choices))}"
        return lambda value: _is_one_of(value, choices), text
    plain, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if plain is bool:
        return lambda value: _is_one_of(value, (False, True)), "one of False, True"
    if plain is str:
        return lambda value: isinstance(value, str), "a string"
    if plain in GENERATORS:
        return lambda value: isinstance(value, plain), GENERATORS[plain]
    if plain not in (int, float):
        return None
    if any(isinstance(each, JobCount) for each in extras):
        return lambda value: _is_integer(value) and value != 0, JOBS
    bounds = next((each for each in extras if isinstance(each, Range)), Range())
    low = -INFINITY if bounds.low is None else bounds.low
    high = INFINITY if bounds.high is None else bounds.high
    kind, text, form = (Integral, "an integer", ".0f") if plain is int else (Real, "a number", "g")
    if high < INFINITY:
        text += f" from {low:{form}} to {high:{form}}"
    elif low > -INFINITY:
        text += f" of at least {low:{form}}"
    return (
        lambda value: (
            not isinstance(value, bool) and isinstance(value, kind) and bool(low <= plain(value) <= high)
        ),
        text,
    )
