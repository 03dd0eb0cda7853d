"""The one progress channel: library code reports tasks and messages, and one listener hears them.

Install a listener with `listening`. Without one, nothing is measured and nothing kept.
"""

import math
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
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


class Message(NamedTuple):
    """A log line.

    Attributes
    ----------
    text : str
    record : object
        The numbers that the line describes, such as the `IterationReport` of a miner; None if there are none.
    """

    text: str
    record: object = None


Event: TypeAlias = Step | Message
Listener: TypeAlias = Callable[[Event], None]
Filter: TypeAlias = Callable[[Message], Message | None]
Clock: TypeAlias = Callable[[], float]


class _Hearing(NamedTuple):
    """A listener, how it wants to be told, and a lock, as it is told one thing at a time."""

    listener: Listener
    every: float
    clock: Clock
    lock: threading.RLock


_numbers = count(1)
_hearing: _Hearing | None = None
_filters: ContextVar[tuple[Filter, ...]] = ContextVar("filters", default=())


@contextmanager
def listening(listener: Listener, *, every: float = EVERY, clock: Clock = time.monotonic) -> Iterator[None]:
    """Let a listener hear all messages, and all tasks that begin meanwhile, in whatever thread.

    Parameters
    ----------
    listener : callable
        Called with a `Message` for each log line, and with a `Step` when a task begins, as it goes on, and
        when it is over; never twice at once.
    every : float
        Seconds between two calls for one task, at the least, but for the last one.
    clock : callable
        Returns the time in seconds.
    """
    global _hearing
    before, _hearing = _hearing, _Hearing(listener, every, clock, threading.RLock())
    try:
        yield
    finally:
        _hearing = before


def messages_to(callback: Callable[[str], None]) -> AbstractContextManager[None]:
    """Call a function, such as `print`, with the text of each message, and let nobody hear of tasks."""
    return listening(lambda event: callback(event.text) if isinstance(event, Message) else None)


def report(text: str, record: object = None) -> None:
    """Send a log line to the listener, if there is one; parameters as of `Message`."""
    message = Message(text, record)
    for change in reversed(_filters.get()):
        changed = change(message)
        if changed is None:
            return
        message = changed
    if (hearing := _hearing) is not None:
        with hearing.lock:
            hearing.listener(message)


@contextmanager
def filtered(change: Filter) -> Iterator[None]:
    """Change the messages that are reported in this context, and in the threads of `map_jobs` started in it.

    Parameters
    ----------
    change : callable
        Given a message, returns the one to report instead, or None to drop it.
    """
    token = _filters.set((*_filters.get(), change))
    try:
        yield
    finally:
        _filters.reset(token)


def silenced() -> AbstractContextManager[None]:
    """Drop all messages of this context, such as those of the models of folds. Tasks are still heard of."""
    return filtered(lambda message: None)


def prefixed(prefix: str) -> AbstractContextManager[None]:
    """Put a prefix before all messages of this context."""
    return filtered(lambda message: message._replace(text=prefix + message.text))


class Task:
    """Some work that is counted as it is done, by one thread or by several."""

    def __init__(self, what: str, total: int | None, unit: str, before: int = 0) -> None:
        self._what, self._unit = what, unit
        self._total, self._done, self._before = total, before, before
        self._hearing = _hearing
        self._lock = threading.Lock()
        if self._hearing is not None:
            self._number = next(_numbers)
            self._begin = self._hearing.clock()
            self._told = -math.inf
            self._tell(self._hearing, self._begin)

    def advance(self, n: int = 1) -> None:
        """Count so many more as done."""
        if self._hearing is not None:
            with self._lock:
                self._done += n
            self._tell(self._hearing, self._hearing.clock())

    def reach(self, done: int, total: int | None) -> None:
        """Say how many are done, and of how many, if that is known."""
        if self._hearing is not None:
            self._done, self._total = done, total
            self._tell(self._hearing, self._hearing.clock())

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

    def _tell(self, hearing: _Hearing, now: float, *, is_over: bool = False) -> None:
        """Let the listener hear of the task, unless it has heard of it a moment ago."""
        if is_over or now - self._told >= hearing.every:
            self._told = now
            counts = (self._done, self._total, self._unit)
            step = Step(self._number, self._what, *counts, now - self._begin, is_over, self._before)
            with hearing.lock:
                hearing.listener(step)


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
def warnings_reported() -> Iterator[None]:
    """Report warnings as messages, where they must not be printed."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        report(f"warning: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
