"""What an interrupted program still has to clean up before it ends."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_actions: dict[int, Callable[[], object]] = {}


@contextmanager
def cleanup_on_interrupt(action: Callable[[], object]) -> Iterator[None]:
    """Have `clean_up` call `action` if the program is ended within the block."""
    key = id(action)
    _actions[key] = action
    try:
        yield
    finally:
        del _actions[key]


def clean_up() -> None:
    """Call the actions of all blocks that are open; the program must end right afterwards."""
    for action in list(_actions.values()):
        with suppress(OSError):
            action()
