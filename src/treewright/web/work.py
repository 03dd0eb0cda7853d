"""A pool of threads with a bounded queue."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, TypeVar

from treewright._typing import Count, Jobs, NonNegativeInt, Range
from treewright._validate import check_params, count_jobs

Result = TypeVar("Result")


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of the service.

    Parameters
    ----------
    max_characters : int
        Maximum number of characters per request.
    max_words : int
        Maximum number of words per sentence. Parsing time grows with the square or cube of this number.
    max_sentences : int
        Maximum number of sentences per request.
    max_trees : int
        Maximum number of trees per request, over all sentences.
    seconds : float
        Time limit of a request in seconds, including the time in the queue.
    queue : int
        Maximum number of requests in the queue while all threads are busy.
    n_jobs : int
        Number of threads that parse (-1: all processors).
    """

    max_characters: Count = 10_000
    max_words: Count = 150
    max_sentences: Count = 100
    max_trees: Count = 500
    seconds: Annotated[float, Range(1e-3, 86_400)] = 20.0
    queue: NonNegativeInt = 32
    n_jobs: Jobs = 2

    def __post_init__(self) -> None:
        check_params(self)

    @property
    def max_bytes(self) -> int:
        """Maximum size of a request body in bytes, with room for tags and JSON syntax."""
        return 16_384 + 64 * self.max_characters


class TooMuchError(Exception):
    """A request exceeds the limits."""


class BusyError(Exception):
    """The queue is full."""


class OutOfTimeError(Exception):
    """The time limit was exceeded."""


class WorkLine:
    """A pool of threads with a bounded queue.

    A job that exceeds the time limit keeps its thread until it ends, and counts as running. A job that is
    still in the queue at the time limit is cancelled.

    Parameters
    ----------
    limits : ServiceLimits
        Time limit, length of the queue and number of threads.
    """

    def __init__(self, limits: ServiceLimits) -> None:
        self._limits = limits
        self._n_threads = count_jobs(limits.n_jobs)
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._n_unfinished = 0

    @property
    def running(self) -> int:
        """Number of busy threads."""
        return min(self._n_unfinished, self._n_threads)

    @property
    def waiting(self) -> int:
        """Number of jobs in the queue."""
        return max(0, self._n_unfinished - self._n_threads)

    async def run(self, function: Callable[[], Result]) -> Result:
        """Call `function` in a thread and return its result.

        Raises
        ------
        BusyError
            Immediately, if the queue is full.
        OutOfTimeError
            After the time limit; `function` may still be running.
        """
        waited = asyncio.wrap_future(self._submit(function))
        try:
            done, _ = await asyncio.wait({waited}, timeout=self._limits.seconds)
            if not done:
                raise OutOfTimeError(
                    f"the time limit of {self._limits.seconds:g} seconds was exceeded; "
                    "send fewer or shorter sentences"
                )
            return waited.result()
        finally:
            waited.cancel()  # a job that is still queued need not start

    def _submit(self, function: Callable[[], Result]) -> Future[Result]:
        with self._lock:
            if self._n_unfinished >= self._n_threads + self._limits.queue:
                found = f"{self.running} requests are running and {self.waiting} are waiting"
                raise BusyError(f"{found}; try again later")
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._n_threads, thread_name_prefix="treewright")
            future = self._threads.submit(function)
            self._n_unfinished += 1
        future.add_done_callback(self._leave)
        return future

    def _leave(self, future: Future[Result]) -> None:
        with self._lock:
            self._n_unfinished -= 1

    def close(self, *, wait: bool = False) -> None:
        """Cancel queued jobs and let the threads end; the next job starts new ones."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=wait, cancel_futures=True)
