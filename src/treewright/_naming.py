"""What messages call parameters: by their names in Python, by their options on the command line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Spelling: TypeAlias = Callable[[str], str]

SPELLINGS = {
    "C": "cost",
    "random_state": "seed",
    "n_jobs": "jobs",
    "n_sentences": "sentences",
    "n_trees": "trees",
    "max_lengths": "max_length",
}
"""Parameters that have another name on the command line."""

_spelling: ContextVar[Spelling] = ContextVar("spelling", default=str)


def option_name(parameter: str) -> str:
    """Return the option of the command line for a parameter.

    Examples
    --------
    >>> option_name("random_state"), option_name("lowest_penalty")
    ('--seed', '--lowest-penalty')
    """
    return "--" + SPELLINGS.get(parameter, parameter).replace("_", "-")


@contextmanager
def spelled_by(spelling: Spelling) -> Iterator[None]:
    """Let messages call parameters by what a function makes of their names."""
    token = _spelling.set(spelling)
    try:
        yield
    finally:
        _spelling.reset(token)


def named(parameter: str) -> str:
    """Return what the user calls a parameter: its option while a command runs, otherwise its name."""
    return _spelling.get()(parameter)


def setting(parameter: str, *values: object) -> str:
    """Write a parameter with a value, or with several that it may have, as the user does.

    Examples
    --------
    >>> setting("learner", "mined", "kernel"), setting("jackknife", False)
    ("learner='mined' or 'kernel'", 'jackknife=False')
    >>> with spelled_by(option_name):
    ...     setting("learner", "mined", "kernel"), setting("jackknife", False)
    ('--learner mined or kernel', 'no --jackknife')
    """
    name = named(parameter)
    if not name.startswith("--"):
        return f"{name}={' or '.join(map(repr, values))}"
    if any(values[0] is each for each in (None, False, True)):
        return name if (values[0] is True) != name.startswith("--no-") else f"no {name}"
    return f"{name} {' or '.join(map(show_value, values))}"


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
