"""How work is spread: over threads, or over the workers of a Dask cluster."""

import pickle
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ContextDecorator, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeAlias, TypeVar
from weakref import WeakSet

from treewright._optional import require
from treewright._validate import check_integer
from treewright.errors import ClusterError, InputError
from treewright.progress import task

Item = TypeVar("Item")
Result = TypeVar("Result")
Client: TypeAlias = Any
"""A `distributed.Client`, which the extra `cluster` brings."""

LARGE = 1 << 20
"""Bytes of an item above which it goes to a worker by itself, not with the scheduler's list of jobs."""
TIMES = 4
"""How often a job is sent at the most, if it is lost with its worker."""
PATIENCE = 60
"""Seconds that a cluster without workers has to get one."""
AHEAD, LEAST_AHEAD = 2, 8
"""Jobs that are sent before results are waited for: for each thread of the cluster, and at the least."""
SAME = ("treewright", "numpy", "numba")
"""Packages of which workers must have the version that is here, so that results are the same."""
SECONDS_DEAF = 0.2
"""On some systems waiting cannot be interrupted, so there is none without an end."""
BLAS_SOURCES = ("scipy.linalg", "torch")
"""Modules that load a BLAS library of their own, when they are first imported."""


class _OneBlasThread(ContextDecorator):
    """Limits linear algebra to one thread, since sums of floats depend on how threads divide them.

    A context manager and a decorator, for functions, not for generators. It can be nested, and entered by any
    number of threads at a time. Most libraries have one setting for the whole process; it is restored when
    the last thread leaves. OpenMP and PyTorch have one for each thread, which that thread restores.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = threading.local()
        self._sources: tuple[bool, ...] | None = None
        self._libraries: list[Any] = []
        self._n_inside = 0
        self._n_threads: dict[str, tuple[Any, int]] = {}

    def __enter__(self) -> None:
        own = self._own
        depth = getattr(own, "depth", 0)
        if not depth:
            own.sources, own.n_threads = None, {}
        sources = tuple(name in sys.modules for name in BLAS_SOURCES)
        if own.sources != sources:
            with self._lock:
                self._n_inside += not depth
                self._find_libraries(sources)
                self._limit(own.n_threads)
            own.sources = sources
        own.depth = depth + 1

    def __exit__(self, *error: object) -> None:
        own = self._own
        own.depth -= 1
        if own.depth:
            return
        with self._lock:
            self._n_inside -= 1
            _restore_threads(own.n_threads)
            if not self._n_inside:
                _restore_threads(self._n_threads)

    def _find_libraries(self, sources: tuple[bool, ...]) -> None:
        """Look for libraries, which takes milliseconds, if there can be others than before."""
        if self._sources == sources:
            return
        from threadpoolctl import ThreadpoolController

        self._libraries = ThreadpoolController().lib_controllers
        self._sources = sources

    def _limit(self, own: dict[str, tuple[Any, int]]) -> None:
        """Limit the libraries, and note what they had: `own` is what the current thread alone has."""
        # PyTorch first: it would not limit its BLAS if it found that OpenMP is limited.
        torch = sys.modules.get("torch")
        if hasattr(torch, "set_num_threads"):
            _limit_threads(torch, "torch", own)
        for library in self._libraries:
            if library.user_api == "openmp":
                _limit_threads(library, library.filepath, own)
        for library in self._libraries:
            if library.user_api == "blas":
                _limit_threads(library, library.filepath, self._n_threads)


def _limit_threads(library: Any, name: str, before: dict[str, tuple[Any, int]]) -> None:  # noqa: ANN401
    n_threads = library.get_num_threads()
    if n_threads is not None and n_threads != 1:
        before.setdefault(name, (library, n_threads))
        _set_threads(library, 1)


def _restore_threads(before: dict[str, tuple[Any, int]]) -> None:
    for library, n_threads in before.values():
        _set_threads(library, n_threads)
    before.clear()


def _set_threads(library: Any, n_threads: int) -> None:  # noqa: ANN401
    # threadpoolctl 3.8 ignores all threads but the first that sets a number, until that is cleared.
    clear = getattr(library, "clear_controlling_thread", None)
    if clear is None:
        library.set_num_threads(n_threads)
        return
    clear(force=True)
    library.set_num_threads(n_threads)
    clear(force=True)


one_blas_thread = _OneBlasThread()
"""Used wherever dense linear algebra decides a result, so that it is the same with any number of threads."""


def map_jobs(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    n_jobs: int,
    client: Client | None = None,
    what: str | None = None,
    unit: str = "sentences",
    count: Callable[[Item], int] = lambda item: 1,
    keep: Callable[[Item, Result], None] | None = None,
) -> list[Result]:
    """Return the results of `function` for `items`, in their order.

    In threads, compiled code runs side by side and shares its arrays. On a cluster, each worker has a copy of
    the function and of all that it knows, and nobody sees what is changed there. An error ends the work and
    comes out as it was raised, once no thread works on; Ctrl-C comes out at once. BLAS has one thread in each
    job, wherever it is done.

    Parameters
    ----------
    function : callable
        With a client, it, the items and the results must be such that they can be pickled. Compiled functions
        are then named in functions and methods of modules, not in those within others, with which they would
        be pickled, to be compiled again by each worker.
    items : sequence
    n_jobs : int
        How many threads work; with 1, all is done in the calling thread. With a client it does not matter.
    client : distributed.Client, optional
        The cluster that does the work.
    what : str, optional
        What is done, if it may take so long that somebody wants to hear of it (see `treewright.progress`).
    unit : str
        What is counted then.
    count : callable
        Returns how many of these are in an item.
    keep : callable, optional
        Called on this machine with each item and its result, as soon as that is there.
    """
    if n_jobs != 1:
        check_integer("n_jobs", n_jobs, minimum=1)
    counting = task(what, total=sum(map(count, items)), unit=unit) if what is not None else nullcontext()
    with counting as counted:

        def finish(item: Item, result: Result) -> Result:
            if keep is not None:
                keep(item, result)
            if counted is not None:
                counted.advance(count(item))
            return result

        if client is not None:
            return _map_remotely(function, items, client, finish)
        if n_jobs == 1 or len(items) < 2:
            with one_blas_thread:
                return [finish(item, function(item)) for item in items]
        return _map_in_threads(lambda item: finish(item, function(item)), items, min(n_jobs, len(items)))


class AbandonedError(Exception):
    """Work in a thread is no longer wanted, as other work that belongs to it has failed."""


_failures: ContextVar[tuple[list[BaseException], ...]] = ContextVar("failures", default=())
"""Errors of the work that the current thread has a share in, and of that which this is a part of."""


def check_wanted() -> None:
    """Raise an `AbandonedError` if the current thread has a share in work that has failed."""
    if any(_failures.get()):
        raise AbandonedError


def _map_in_threads(work: Callable[[Item], Result], items: Sequence[Item], n_threads: int) -> list[Result]:
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    numbers = iter(range(len(items)))
    over = threading.Semaphore(0)

    def serve() -> None:
        _failures.set((*_failures.get(), errors))
        try:
            with one_blas_thread:
                while not errors and (number := next(numbers, None)) is not None:
                    results[number] = work(items[number])
        except BaseException as error:
            errors.append(error)
        finally:
            over.release()

    # Daemons, as a program that is interrupted does not wait for them.
    for _ in range(n_threads):
        threading.Thread(target=copy_context().run, args=(serve,), daemon=True).start()
    try:
        for _ in range(n_threads):
            while not over.acquire(timeout=SECONDS_DEAF):
                pass
    except BaseException as interrupt:
        errors.append(interrupt)
        raise
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]


def _map_remotely(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    client: Client,
    finish: Callable[[Item, Result], Result],
) -> list[Result]:
    found: dict[int, Result] = {}
    with _Run[Result](client, function) as run:
        for item in items:
            run.send(item)
        for number, result in run.results():
            found[number] = finish(items[number], result)
    return [found[number] for number in range(len(items))]


def iter_jobs(
    function: Callable[[Item], Result], items: Iterable[Item], *, client: Client | None = None
) -> Iterator[Result]:
    """Yield the results of `function` for `items`, in their order, whatever their number.

    Items are taken, and results fetched, as they are needed: of a cluster no more than a few for each of its
    threads are ahead. Without a client, one is done after the other.

    Parameters
    ----------
    function, items, client
        As of `map_jobs`.
    """
    if client is None:
        yield from map(one_blas_thread(function), items)
        return
    with _Run[Result](client, function) as run:
        for item in items:
            run.send(item)
            while run.n_waiting >= run.count_ahead():
                yield run.take()
        while run.n_waiting:
            yield run.take()


def map_slices(function: Callable[[slice], None], size: int, *, n_jobs: int) -> None:
    """Call `function` with the slices into which the threads divide a range from 0 to `size`."""
    step = max(1, -(-size // n_jobs))
    map_jobs(
        function, [slice(begin, min(begin + step, size)) for begin in range(0, size, step)], n_jobs=n_jobs
    )


class _Sent:
    """A function that is sent to workers, pickled, and made anew by each of them when it is first called.

    Workers take it from each other, also while it is called and what it knows may change: they get what was
    sent.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._function: Callable[[Any], Any] | None = None

    def __reduce__(self) -> tuple[type[Self], tuple[bytes]]:
        return type(self), (self._content,)

    def __call__(self, item: object) -> Any:  # noqa: ANN401
        if self._function is None:
            self._function = pickle.loads(self._content)
        return self._function(item)


def _call(function: Callable[[Any], Any], content: bytes) -> bytes:
    """Do a job, on a worker, whose item and result are pickled: of these Dask would look into collections."""
    with one_blas_thread:
        return _pickle(function(pickle.loads(content)))


@dataclass
class _Job:
    """A job that was sent, with the places to which its function and, if it is large, its item were sent."""

    number: int
    content: bytes
    n_sent: int = 0
    function: Any = None
    item: Any = None


class _Run(Generic[Result]):
    """The jobs of one function on a cluster, which are sent again where workers are lost with them."""

    def __init__(self, client: Client, function: Callable[[Any], Result]) -> None:
        self._dask = require("distributed", "cluster")
        _check_client(client, self._dask)
        self._client = client
        self._content = _Sent(_pickle(function))
        self._send_function()
        self._jobs: dict[Any, _Job] = {}
        self._done: dict[int, Any] = {}
        self._n_sent = self._n_taken = 0
        self._completed = self._dask.as_completed(loop=client.loop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Cancel what nobody waits for any more."""
        self._completed.clear()
        if self._jobs and self._client.status == "running":
            self._client.cancel(list(self._jobs))
        self._jobs, self._done, self._function = {}, {}, None

    @property
    def n_waiting(self) -> int:
        """Jobs whose results have not been taken."""
        return self._n_sent - self._n_taken

    def count_ahead(self) -> int:
        """Return how many jobs the cluster should have at a time; workers come and go."""
        return max(LEAST_AHEAD, AHEAD * len(self._list_threads()))

    def _list_threads(self) -> list[str]:
        """Return the worker of each thread of the cluster."""
        with _connected(self._client):
            n_threads = self._client.nthreads()
        return [worker for worker, n in n_threads.items() for _ in range(n)]

    def _send_function(self) -> None:
        """Send the function to a worker, and let the first jobs go to all in turn.

        Dask gives jobs to workers that have the function, until it has seen more than two for each thread.
        """
        self._function = self._scatter(self._content)
        self._turns = iter(self._list_threads() * 2)

    def send(self, item: object) -> None:
        """Begin with an item."""
        self._submit(_Job(self._n_sent, _pickle(item)))
        self._n_sent += 1

    def results(self) -> Iterator[tuple[int, Result]]:
        """Yield the results of all jobs, each with its number, as they come."""
        for future in self._completed:
            yield from self._collect(future)

    def take(self) -> Result:
        """Return the result of the first job whose result has not been taken."""
        while True:
            if self._n_taken not in self._done:
                future = next(self._completed)
                if future.cancelled():
                    self._collect(future)
                else:
                    self._done[self._jobs[future].number] = future
                continue
            found = self._collect(self._done.pop(self._n_taken))
            if found:
                self._n_taken += 1
                return found[0][1]

    def _collect(self, future: Any) -> list[tuple[int, Result]]:  # noqa: ANN401
        """Return a result with its number; nothing, if it is lost and must be made again."""
        job = self._jobs.pop(future)
        try:
            return [(job.number, pickle.loads(future.result()))]
        except self._dask.CancelledError:
            self._send_again(job)
            return []
        except self._dask.KilledWorker as error:
            raise ClusterError(_describe_loss(job.number, error.allowed_failures + 1)) from error
        except OSError as error:
            if future.status == "error":  # an error of the function's own
                raise
            raise ClusterError(_describe_silence(self._client)) from error

    def _submit(self, job: _Job) -> None:
        job.function, job.n_sent = self._function, job.n_sent + 1
        is_large = len(job.content) > LARGE
        job.item = self._scatter(job.content) if is_large else job.content
        chosen = next(self._turns, None)
        future = self._client.submit(
            _call, job.function, job.item, pure=False, workers=chosen, allow_other_workers=chosen is not None
        )
        self._jobs[future] = job
        self._completed.add(future)

    def _send_again(self, job: _Job) -> None:
        if self._client.status != "running":
            raise ClusterError(_describe_silence(self._client))
        if job.n_sent == TIMES:
            raise ClusterError(_describe_loss(job.number, job.n_sent))
        if job.function is self._function:
            self._send_function()
        self._submit(job)

    def _scatter(self, content: object) -> Any:  # noqa: ANN401
        """Send something to one worker, from which others take it as they need it; return a name for it.

        Dask could send it to all at once, but would wait for ever for one that is lost meanwhile.
        """
        for _ in range(TIMES):
            try:
                # In a list, as Dask takes a collection apart.
                [sent] = self._client.scatter([content], hash=False, timeout=PATIENCE)
                return sent
            except TimeoutError as error:
                address = _address(self._client)
                raise ClusterError(
                    f"{address} has no workers; expected at least one, as dask worker {address} starts it"
                ) from error
            except (OSError, KeyError):  # a worker has gone meanwhile, or all of them with the scheduler
                if self._client.status != "running":
                    raise ClusterError(_describe_silence(self._client)) from None
        raise ClusterError(f"the workers of {_address(self._client)} are lost; expected some that stay")


def _pickle(value: object) -> bytes:
    content: bytes = require("cloudpickle", "cluster").dumps(value)
    return content


def _address(client: Client) -> str:
    return str(client.scheduler.address)


@contextmanager
def _connected(client: Client) -> Iterator[None]:
    """Say what it means if a scheduler does not answer."""
    try:
        yield
    except OSError as error:
        raise ClusterError(_describe_silence(client)) from error


def _describe_silence(client: Client) -> str:
    return f"the connection to {_address(client)} is lost; expected a scheduler that stays until the end"


def _describe_loss(number: int, n_times: int) -> str:
    return (
        f"job {number + 1} was lost with its worker, {n_times} in a row; expected workers that live: see "
        "their logs, and give them more memory"
    )


_checked: WeakSet[Any] = WeakSet()
"""Clients whose workers have been found to have the right versions."""


def _check_client(client: Client, dask: Any) -> None:  # noqa: ANN401
    """Check that a client can be worked with, and that its workers have the same versions as this machine."""
    if not isinstance(client, dask.Client):
        raise InputError(f"client is {type(client).__name__}; expected a distributed.Client")
    if client.asynchronous:
        raise InputError("client is asynchronous; expected one that is not")
    if client in _checked:
        return
    with _connected(client):
        found = client.get_versions(packages=SAME)
    here = _versions(found["client"])
    for address, worker in found["workers"].items():
        for name, version in _versions(worker).items():
            if version != here[name]:
                what = f"{name} {version}" if version else f"no {name}"
                raise ClusterError(f"the worker {address} has {what}; expected {name} {here[name]}, as here")
    if found["workers"]:
        _checked.add(client)


def _versions(described: dict[str, Any]) -> dict[str, str | None]:
    python = ".".join(described["host"]["python"].split(".")[:2])
    return {"python": python, **{name: described["packages"][name] for name in SAME}}
