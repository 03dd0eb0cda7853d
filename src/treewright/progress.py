"""How far long work has come: loops tell it, and one listener hears it.

Whoever wants to know installs a listener with `listening`. Without one, nothing is measured and nothing kept.
"""

import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple, TextIO, TypeAlias, TypeVar

Item = TypeVar("Item")

EVERY = 0.1
"""Seconds between two steps of a task that are told, at the least."""
SENTENCES_AT_A_TIME = 200
"""Over which compiled code runs before it is heard of again; well under a second of work."""


class Step(NamedTuple):
    """How far a task has come.

    Attributes
    ----------
    task : int
        A number that no other task has.
    what : str
        What is done.
    done : int
    total : int or None
        None where the end is not known.
    unit : str
        What is counted.
    seconds : float
        Since the task began.
    is_over : bool
        Whether this is the last that is heard of the task.
    before : int
        How many had been done when it began.
    """

    task: int
    what: str
    done: int
    total: int | None
    unit: str
    seconds: float
    is_over: bool
    before: int = 0

    @property
    def rate(self) -> float | None:
        """How many are done in a second; None before that can be told."""
        n_new = self.done - self.before
        return n_new / self.seconds if n_new > 0 and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at this rate; None where that cannot be told."""
        if self.rate is None or self.total is None:
            return None
        return max(0, self.total - self.done) / self.rate


Listener: TypeAlias = Callable[[Step], None]
Clock: TypeAlias = Callable[[], float]


class _Hearing:
    """A listener, which is told one thing at a time, and how it wants to be told."""

    def __init__(self, listener: Listener, every: float, clock: Clock) -> None:
        self.every = every
        self.clock = clock
        self._listener = listener
        self._lock = threading.RLock()

    def tell(self, step: Step) -> None:
        with self._lock:
            self._listener(step)


_numbers = count(1)
_hearing: _Hearing | None = None


@contextmanager
def listening(listener: Listener, *, every: float = EVERY, clock: Clock = time.monotonic) -> Iterator[None]:
    """Let a listener hear of all tasks that begin meanwhile, in whatever thread.

    Parameters
    ----------
    listener : callable
        Called with a `Step` when a task begins, as it goes on, and when it is over; never twice at once.
    every : float
        Seconds between two calls for one task, at the least, but for the last one.
    clock : callable
        Returns the time in seconds.
    """
    global _hearing
    before, _hearing = _hearing, _Hearing(listener, every, clock)
    try:
        yield
    finally:
        _hearing = before


class Task:
    """Some work that is counted as it is done, by one thread or by several."""

    def __init__(self, what: str, total: int | None, unit: str, before: int = 0) -> None:
        self._what, self._unit = what, unit
        self._total, self._done, self._before = total, before, before
        self._hearing = _hearing
        self._lock = threading.Lock()
        if self._hearing is not None:
            self._number = next(_numbers)
            self._begin = self._told = self._hearing.clock()
            self._tell(self._hearing, self._begin)

    def advance(self, n: int = 1) -> None:
        """Count so many more as done."""
        if self._hearing is not None:
            with self._lock:
                self._done += n
            self._tell_at_times(self._hearing)

    def reach(self, done: int, total: int | None) -> None:
        """Say how many are done, and of how many, if that is known."""
        if self._hearing is not None:
            self._done, self._total = done, total
            self._tell_at_times(self._hearing)

    def slices(self, size: int, step: int = SENTENCES_AT_A_TIME) -> Iterator[slice]:
        """Yield the slices of `step` items that make up a range, and count the items as they are done.

        They are the same whether anybody listens or not.
        """
        for begin in range(0, size, step):
            end = min(begin + step, size)
            yield slice(begin, end)
            self.advance(end - begin)

    def end(self) -> None:
        """Be heard of for the last time."""
        if self._hearing is not None:
            self._tell(self._hearing, self._hearing.clock(), is_over=True)
            self._hearing = None

    def _tell_at_times(self, hearing: _Hearing) -> None:
        now = hearing.clock()
        if now - self._told >= hearing.every:
            self._told = now
            self._tell(hearing, now)

    def _tell(self, hearing: _Hearing, now: float, *, is_over: bool = False) -> None:
        counts = (self._done, self._total, self._unit)
        hearing.tell(Step(self._number, self._what, *counts, now - self._begin, is_over, self._before))


@contextmanager
def task(what: str, *, total: int | None = None, unit: str = "sentences", before: int = 0) -> Iterator[Task]:
    """Give a task to be advanced by whoever does the work; it is over at the end of the block.

    Parameters
    ----------
    what : str
        What is done, as a user would call it.
    total : int, optional
        How many there are to do, if that is known.
    unit : str
        What is counted, in the plural.
    before : int
        How many have been done already, such as the bytes of a file that goes on arriving.
    """
    begun = Task(what, total, unit, before)
    try:
        yield begun
    finally:
        begun.end()


def track(
    items: Iterable[Item], what: str, *, total: int | None = None, unit: str = "sentences"
) -> Iterator[Item]:
    """Yield items, and tell how many have been dealt with; parameters as of `task`.

    An item counts as done when the next one is asked for. Where the items have a length, it is the total.
    """
    if _hearing is None:
        yield from items
        return
    if total is None and isinstance(items, Sized):
        total = len(items)
    with task(what, total=total, unit=unit) as begun:
        for item in items:
            yield item
            begun.advance()


@contextmanager
def warnings_told(tell: Callable[[str], None]) -> Iterator[None]:
    """Let warnings be told as lines of text, where they must not be printed beside what else is told."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        tell(f"warning: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
