"""Work in a few threads with a bounded line of what waits for them."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, TypeVar

from treewright._typing import Count, NonNegativeInt, Range
from treewright._validate import check_params

Result = TypeVar("Result")


@dataclass(frozen=True)
class ServiceLimits:
    """How much the service takes on.

    Parameters
    ----------
    max_characters : int
        Maximum number of characters of a request.
    max_words : int
        Maximum number of words of a sentence. The time that parsers need grows with the square or the cube
        of it.
    max_sentences : int
        Maximum number of sentences of a request.
    max_trees : int
        Maximum number of trees of a request, over all sentences.
    seconds : float
        Maximum time of a request in seconds, waiting included.
    queue : int
        Maximum number of requests that wait while all threads are at work.
    n_jobs : int
        Number of threads that parse.
    """

    max_characters: Count = 10_000
    max_words: Count = 150
    max_sentences: Count = 100
    max_trees: Count = 500
    seconds: Annotated[float, Range(1e-3, 86_400)] = 20.0
    queue: NonNegativeInt = 32
    n_jobs: Count = 2

    def __post_init__(self) -> None:
        check_params(self)

    @property
    def max_bytes(self) -> int:
        """Of a request's body: room for words with tags and all that JSON puts around them."""
        return 16_384 + 64 * self.max_characters


class TooMuchError(Exception):
    """A request asks for more than the limits allow."""


class BusyError(Exception):
    """The line is full."""


class OutOfTimeError(Exception):
    """The time is over before the work is done."""


class WorkLine:
    """Threads, and a line of work for them that is refused beyond its length.

    Work that is out of time keeps its thread until it ends, and counts as running, so that nothing piles up
    behind the counts; work that has not begun by then never does.

    Parameters
    ----------
    limits : ServiceLimits
    """

    def __init__(self, limits: ServiceLimits) -> None:
        self._limits = limits
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._n_unfinished = 0

    @property
    def running(self) -> int:
        """Number of threads at work."""
        return min(self._n_unfinished, self._limits.n_jobs)

    @property
    def waiting(self) -> int:
        """Number of pieces of work that wait for a thread."""
        return max(0, self._n_unfinished - self._limits.n_jobs)

    async def run(self, function: Callable[[], Result]) -> Result:
        """Call `function` in a thread and return what it returns.

        Raises
        ------
        BusyError
            At once, if the line is full.
        OutOfTimeError
            When the time is over; `function` may still run.
        """
        waited = asyncio.wrap_future(self._submit(function))
        try:
            done, _ = await asyncio.wait({waited}, timeout=self._limits.seconds)
            if not done:
                raise OutOfTimeError(
                    f"no answer within {self._limits.seconds:g} seconds; expected fewer or shorter sentences"
                )
            return waited.result()
        finally:
            waited.cancel()  # what still waits need not begin

    def _submit(self, function: Callable[[], Result]) -> Future[Result]:
        with self._lock:
            if self._n_unfinished >= self._limits.n_jobs + self._limits.queue:
                found = f"{self.running} requests are being worked on and {self.waiting} wait"
                raise BusyError(f"{found}; expected fewer, so try again later")
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._limits.n_jobs, thread_name_prefix="treewright")
            future = self._threads.submit(function)
            self._n_unfinished += 1
        future.add_done_callback(self._leave)
        return future

    def _leave(self, future: Future[Result]) -> None:
        with self._lock:
            self._n_unfinished -= 1

    def close(self, *, wait: bool = False) -> None:
        """Forget what waits, and let the threads end; the next work begins new ones."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=wait, cancel_futures=True)
