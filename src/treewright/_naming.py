"""Names of parameters in messages: Python names in the library, options on the command line."""

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
    "n_seeds": "seeds",
    "max_lengths": "max_length",
}
"""Parameters that have a different name on the command line."""

_spelling: ContextVar[Spelling] = ContextVar("spelling", default=str)


def option_name(parameter: str) -> str:
    """Return the command-line option of a parameter.

    Examples
    --------
    >>> option_name("random_state"), option_name("lowest_penalty")
    ('--seed', '--lowest-penalty')
    """
    return "--" + SPELLINGS.get(parameter, parameter).replace("_", "-")


@contextmanager
def spelled_by(spelling: Spelling) -> Iterator[None]:
    """Apply a function to the names of parameters in messages."""
    token = _spelling.set(spelling)
    try:
        yield
    finally:
        _spelling.reset(token)


def named(parameter: str) -> str:
    """Return the name of a parameter in messages: its option while a command runs, or its Python name."""
    return _spelling.get()(parameter)


def setting(parameter: str, *values: object) -> str:
    """Write a parameter with one or several values, in Python or command-line syntax.

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
    """Write the value of a parameter in the syntax of the command line.

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
