"""Cleanup actions that an interrupted program runs before it exits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_actions: dict[int, Callable[[], object]] = {}


@contextmanager
def cleanup_on_interrupt(action: Callable[[], object]) -> Iterator[None]:
    """Register an action that `clean_up` calls if the program exits within the block."""
    key = id(action)
    _actions[key] = action
    try:
        yield
    finally:
        del _actions[key]


def clean_up() -> None:
    """Run the actions of all open blocks; the program must exit immediately afterwards."""
    for action in list(_actions.values()):
        with suppress(OSError):
            action()
