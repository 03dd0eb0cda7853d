"""What must still be done when the program has to end in the middle of something."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_waiting: dict[int, Callable[[], object]] = {}


@contextmanager
def done_in_the_end(action: Callable[[], object]) -> Iterator[None]:
    """Have something done if the program ends within the block without leaving it."""
    key = id(action)
    _waiting[key] = action
    try:
        yield
    finally:
        del _waiting[key]


def finish() -> None:
    """Do all that waits for the end; the program must end right afterwards."""
    for action in list(_waiting.values()):
        with suppress(OSError):
            action()
