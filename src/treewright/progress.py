"""Progress reporting: library code reports tasks and messages to one listener.

Install a listener with `listening`. Without a listener, reporting costs nothing.
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
"""Minimum seconds between two reports of one task."""
SENTENCES_AT_A_TIME = 200
"""Number of sentences that compiled code processes between two reports, which takes well under a second."""


class Step(NamedTuple):
    """Progress of a task.

    Attributes
    ----------
    task : int
        Unique number of the task.
    what : str
        Description of the task.
    done : int
        Number of items done.
    total : int or None
        Total number of items; None if unknown.
    unit : str
        Plural name of the items, such as "sentences".
    seconds : float
        Time since the task started.
    is_over : bool
        Whether this is the last report of the task.
    before : int
        Number of items that were already done when the task started.

    See Also
    --------
    progress.listening : Receives steps.

    Examples
    --------
    >>> step = tw.progress.Step(1, "parsing", 50, 200, "sentences", seconds=2.0, is_over=False)
    >>> step.rate, step.seconds_left
    (25.0, 6.0)
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
        """Items per second; None until it can be estimated."""
        n_new = self.done - self.before
        return n_new / self.seconds if n_new > 0 and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until the end; None if unknown."""
        if self.rate is None or self.total is None:
            return None
        return max(0, self.total - self.done) / self.rate


class Message(NamedTuple):
    """A log line.

    Attributes
    ----------
    text : str
        The line.
    record : object
        The figures that the line describes, such as the `IterationReport` of a miner; None if there are none.

    See Also
    --------
    progress.report : Sends a message.
    progress.listening : Receives messages.

    Examples
    --------
    >>> with tw.progress.listening(print):
    ...     tw.progress.report("epoch 1: 90.3")
    Message(text='epoch 1: 90.3', record=None)
    """

    text: str
    record: object = None


Event: TypeAlias = Step | Message
Listener: TypeAlias = Callable[[Event], None]
Filter: TypeAlias = Callable[[Message], Message | None]
Clock: TypeAlias = Callable[[], float]


class _Subscription(NamedTuple):
    """A listener with its settings, and a lock that serialises the calls."""

    listener: Listener
    every: float
    clock: Clock
    has_tasks: bool
    lock: threading.RLock


_numbers = count(1)
_subscription: _Subscription | None = None
_filters: ContextVar[tuple[Filter, ...]] = ContextVar("filters", default=())


@contextmanager
def listening(
    listener: Listener, *, every: float = EVERY, clock: Clock = time.monotonic, has_tasks: bool = True
) -> Iterator[None]:
    """Send messages, and the progress of tasks started in this context, to a listener; works in any thread.

    Parameters
    ----------
    listener : callable
        Called with a `Message` for each log line, and with a `Step` when a task starts, progresses and ends.
        Calls never overlap.
    every : float
        Minimum seconds between two calls for one task; the last call is always made.
    clock : callable
        Returns the time in seconds.
    has_tasks : bool
        Whether the listener receives tasks; if False, it receives only messages.

    See Also
    --------
    progress.messages_to : Only messages, as text.

    Examples
    --------
    >>> steps = []
    >>> with tw.progress.listening(steps.append):
    ...     for _ in tw.progress.track(range(3), "counting", unit="numbers"):
    ...         pass
    >>> steps[-1].done, steps[-1].is_over
    (3, True)
    """
    global _subscription
    before = _subscription
    _subscription = _Subscription(listener, every, clock, has_tasks, threading.RLock())
    try:
        yield
    finally:
        _subscription = before


def messages_to(callback: Callable[[str], None]) -> AbstractContextManager[None]:
    """Call a function, such as `print`, with the text of each message; ignore tasks.

    Parameters
    ----------
    callback : callable
        Called with each line.

    See Also
    --------
    progress.listening : Also reports the progress of tasks.

    Examples
    --------
    >>> with tw.progress.messages_to(print):
    ...     tw.progress.report("epoch 1: 90.3")
    epoch 1: 90.3
    """
    return listening(
        lambda event: callback(event.text) if isinstance(event, Message) else None, has_tasks=False
    )


def report(text: str, record: object = None) -> None:
    """Send a log line to the listener, if there is one.

    Parameters
    ----------
    text : str
        The line.
    record : object
        The figures that the line describes; None if there are none.

    See Also
    --------
    progress.messages_to : Receives log lines.

    Examples
    --------
    >>> with tw.progress.messages_to(print):
    ...     tw.progress.report("epoch 1: 90.3")
    epoch 1: 90.3
    """
    message = Message(text, record)
    for change in reversed(_filters.get()):
        changed = change(message)
        if changed is None:
            return
        message = changed
    if (subscription := _subscription) is not None:
        with subscription.lock:
            subscription.listener(message)


@contextmanager
def filtered(change: Filter) -> Iterator[None]:
    """Filter the messages reported in this context and in the threads that `map_jobs` starts within it.

    Parameters
    ----------
    change : callable
        Takes a message and returns the one to report instead, or None to drop it.

    See Also
    --------
    progress.silenced : Drops all messages.
    progress.prefixed : Prefixes all messages.

    Examples
    --------
    >>> with tw.progress.messages_to(print), tw.progress.filtered(lambda line: None):
    ...     tw.progress.report("not printed")
    """
    token = _filters.set((*_filters.get(), change))
    try:
        yield
    finally:
        _filters.reset(token)


def silenced() -> AbstractContextManager[None]:
    """Drop all messages of this context, such as those of fold models. Tasks are still reported.

    See Also
    --------
    progress.filtered : Changes messages or drops some of them.

    Examples
    --------
    >>> with tw.progress.messages_to(print), tw.progress.silenced():
    ...     tw.progress.report("not printed")
    """
    return filtered(lambda message: None)


def prefixed(prefix: str) -> AbstractContextManager[None]:
    """Prefix all messages of this context.

    Parameters
    ----------
    prefix : str
        The prefix.

    See Also
    --------
    progress.filtered : Changes messages in any way.

    Examples
    --------
    >>> with tw.progress.messages_to(print), tw.progress.prefixed("fold 1: "):
    ...     tw.progress.report("epoch 1")
    fold 1: epoch 1
    """
    return filtered(lambda message: message._replace(text=prefix + message.text))


class Task:
    """A task whose progress one or several threads report. Start a task with `progress.task`.

    Parameters
    ----------
    what : str
        Description of the task for users.
    total : int or None
        Number of items; None if unknown.
    unit : str
        Plural name of the items, such as "sentences".
    before : int
        Number of items already done.

    Attributes
    ----------
    done : int
        Number of items done; not counted without a listener.

    See Also
    --------
    progress.task : Starts a task and ends it.
    progress.Step : A report of a task.

    Examples
    --------
    >>> with tw.progress.task("parsing", total=10) as task:
    ...     task.advance(5)
    """

    def __init__(self, what: str, total: int | None, unit: str, before: int = 0) -> None:
        self._what, self._unit = what, unit
        self._total, self.done, self._before = total, before, before
        self._subscription = _subscription if _subscription and _subscription.has_tasks else None
        self._lock = threading.Lock()
        if self._subscription is not None:
            self._number = next(_numbers)
            self._begin = self._subscription.clock()
            self._last_report = -math.inf
            self._notify(self._subscription, self._begin)

    def advance(self, n: int = 1) -> None:
        """Count `n` more items as done.

        Parameters
        ----------
        n : int
            Number of items.
        """
        if self._subscription is not None:
            with self._lock:
                self.done += n
            self._notify(self._subscription, self._subscription.clock())

    def slices(self, size: int, step: int = SENTENCES_AT_A_TIME) -> Iterator[slice]:
        """Yield consecutive slices of `step` items, and count the items of each as done afterwards.

        The slices do not depend on whether there is a listener.

        Parameters
        ----------
        size : int
            Total number of items to divide into slices.
        step : int
            Number of items in each slice; the last slice may be shorter.

        Yields
        ------
        slice
            The range of the next items.
        """
        for begin in range(0, size, step):
            end = min(begin + step, size)
            yield slice(begin, end)
            self.advance(end - begin)

    def end(self) -> None:
        """Send the last report."""
        if self._subscription is not None:
            self._notify(self._subscription, self._subscription.clock(), is_over=True)
            self._subscription = None

    def _notify(self, subscription: _Subscription, now: float, *, is_over: bool = False) -> None:
        """Report the progress, unless the last report is too recent."""
        if is_over or now - self._last_report >= subscription.every:
            self._last_report = now
            counts = (self.done, self._total, self._unit)
            step = Step(self._number, self._what, *counts, now - self._begin, is_over, self._before)
            with subscription.lock:
                subscription.listener(step)


@contextmanager
def task(what: str, *, total: int | None = None, unit: str = "sentences", before: int = 0) -> Iterator[Task]:
    """Start a task, which the body of the ``with`` statement advances; it ends with the block.

    Parameters
    ----------
    what : str
        Description of the task for users.
    total : int, optional
        Number of items, if known.
    unit : str
        Plural name of the items, such as "sentences".
    before : int
        Number of items already done, such as the bytes of a partial download.

    See Also
    --------
    progress.track : Reports the progress of a loop.

    Examples
    --------
    >>> with tw.progress.task("parsing", total=10) as progress:
    ...     progress.advance(5)
    """
    begun = Task(what, total, unit, before)
    try:
        yield begun
    finally:
        begun.end()


def track(
    items: Iterable[Item], what: str, *, total: int | None = None, unit: str = "sentences"
) -> Iterator[Item]:
    """Yield items and report how many are done.

    An item counts as done when the next one is requested.

    Parameters
    ----------
    items : iterable
        The items.
    what : str
        Description of the task for users.
    total : int, optional
        Number of items (by default their length, if they have one).
    unit : str
        Plural name of the items, such as "sentences".

    See Also
    --------
    progress.task : Reports progress without a loop.

    Examples
    --------
    >>> [item for item in tw.progress.track("abc", "reading", unit="letters")]
    ['a', 'b', 'c']
    """
    if _subscription is None or not _subscription.has_tasks:
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
    """Report warnings as messages instead of printing them.

    See Also
    --------
    progress.messages_to : Receives messages.

    Examples
    --------
    >>> import warnings
    >>> with tw.progress.messages_to(print), tw.progress.warnings_reported():
    ...     warnings.simplefilter("always")
    ...     warnings.warn("no sentence has tags", stacklevel=1)
    warning: no sentence has tags
    """

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
