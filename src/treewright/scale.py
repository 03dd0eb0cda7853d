"""Parallel work: in threads, or on the workers of a Dask cluster."""

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
from treewright._validate import count_jobs
from treewright.errors import ClusterError, InputError
from treewright.progress import task

Item = TypeVar("Item")
Result = TypeVar("Result")
Client: TypeAlias = Any
"""A `distributed.Client`; install it with the extra `cluster`."""

LARGE = 1 << 20
"""Items larger than this number of bytes are sent directly to a worker, not through the scheduler."""
MAX_ATTEMPTS = 4
"""Maximum number of attempts for a job whose worker is lost."""
PATIENCE = 60
"""Seconds to wait for the first worker of a cluster."""
PENDING_PER_THREAD, MIN_PENDING = 2, 8
"""Maximum number of pending jobs per thread of the cluster; the total limit is at least `MIN_PENDING`."""
SAME_VERSION = ("treewright", "numpy", "numba")
"""Packages that must have the same version on workers as on this machine, so that results are the same."""
WAIT_TIMEOUT = 0.2
"""Timeout of each wait in seconds; on some systems Ctrl-C cannot interrupt a wait without a timeout."""
BLAS_SOURCES = ("scipy.linalg", "torch")
"""Modules that load their own BLAS library when they are first imported."""


class _OneBlasThread(ContextDecorator):
    """Limits linear algebra to one thread, since sums of floats depend on how threads split them.

    Use it as a context manager, or as a decorator of functions (not of generators). It can be nested and
    entered by several threads at once. Most libraries have one setting for the whole process; it is restored
    when the last thread leaves. OpenMP and PyTorch have one setting per thread, which that thread restores.
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
                if self._sources != sources:  # finding the libraries takes milliseconds
                    from threadpoolctl import ThreadpoolController

                    self._libraries = ThreadpoolController().lib_controllers
                    self._sources = sources
                # PyTorch first: it does not limit its BLAS if OpenMP is already limited.
                torch: Any = sys.modules.get("torch")
                found = [("torch", torch, own.n_threads)] if hasattr(torch, "set_num_threads") else []
                for kind, before in (("openmp", own.n_threads), ("blas", self._n_threads)):
                    found += [(one.filepath, one, before) for one in self._libraries if one.user_api == kind]
                for name, library, before in found:
                    n_threads = library.get_num_threads()
                    if n_threads is not None and n_threads != 1:
                        before.setdefault(name, (library, n_threads))
                        _set_threads(library, 1)
            own.sources = sources
        own.depth = depth + 1

    def __exit__(self, *error: object) -> None:
        own = self._own
        own.depth -= 1
        if own.depth:
            return
        with self._lock:
            self._n_inside -= 1
            for before in (own.n_threads, {} if self._n_inside else self._n_threads):
                for library, n_threads in before.values():
                    _set_threads(library, n_threads)
                before.clear()


def _set_threads(library: Any, n_threads: int) -> None:  # noqa: ANN401
    # In threadpoolctl 3.8, only the first thread that sets a number has an effect, until it is cleared.
    clear = getattr(library, "clear_controlling_thread", None)
    if clear is None:
        library.set_num_threads(n_threads)
        return
    clear(force=True)
    library.set_num_threads(n_threads)
    clear(force=True)


one_blas_thread = _OneBlasThread()
"""Use it for all dense linear algebra that affects a result, so that results do not depend on threads."""


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
    """Return the results of `function` for `items`, in order.

    Threads run compiled code in parallel and share its arrays. On a cluster, each worker has a copy of the
    function and its data, and changes to that copy are lost. An error stops the work and is raised unchanged,
    once all threads have stopped; Ctrl-C is raised at once. Each job uses one BLAS thread.

    Parameters
    ----------
    function : callable
        With a client, the function, the items and the results must be picklable. Refer to compiled functions
        only in functions and methods at module level: in nested functions, they would be pickled too, and
        every worker would compile them again.
    items : sequence
        The arguments, one per job.
    n_jobs : int
        Number of threads (-1: all processors); with 1, all jobs run in the calling thread. Ignored with
        a client.
    client : distributed.Client, optional
        Dask cluster that runs the jobs.
    what : str, optional
        Description of the task, if it may take long enough to report progress (see `treewright.progress`).
    unit : str
        Plural name of the units that the progress counts.
    count : callable
        Returns the number of units in an item.
    keep : callable, optional
        Called on this machine with each item and its result, as soon as the result is available.
    """
    n_jobs = count_jobs(n_jobs)
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
    """The work of a thread is cancelled, since another job of the same run has failed."""


_failures: ContextVar[tuple[list[BaseException], ...]] = ContextVar("failures", default=())
"""Errors of the run that the current thread works for, and of the runs that this run is part of."""


def check_wanted() -> None:
    """Raise an `AbandonedError` if the run that the current thread works for has failed."""
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

    # Daemon threads: an interrupted program does not wait for them.
    for _ in range(n_threads):
        threading.Thread(target=copy_context().run, args=(serve,), daemon=True).start()
    try:
        for _ in range(n_threads):
            while not over.acquire(timeout=WAIT_TIMEOUT):
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
    """Yield the results of `function` for `items`, in order, as a stream.

    Items are read and results fetched on demand: a cluster has only a few pending jobs per thread. Without a
    client, the jobs run one after the other.

    Parameters
    ----------
    function : callable
        Same as in `map_jobs`.
    items : iterable
        The arguments, one per job.
    client : distributed.Client, optional
        Dask cluster that runs the jobs.
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
    """Split the range from 0 to `size` into one slice per thread, and call `function` with each."""
    step = max(1, -(-size // count_jobs(n_jobs)))
    map_jobs(
        function, [slice(begin, min(begin + step, size)) for begin in range(0, size, step)], n_jobs=n_jobs
    )


class _Sent:
    """A function, pickled to be sent to workers; each worker unpickles it on its first call.

    Workers also copy the function from each other. The copy is always the original function, even while a
    call changes its data.
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
    """Run a job on a worker. Item and result are pickled, since Dask would search collections for tasks."""
    with one_blas_thread:
        return _pickle(function(pickle.loads(content)))


@dataclass
class _Job:
    """A job that was sent, with the future of its function and, for a large item, the future of the item."""

    number: int
    content: bytes
    n_sent: int = 0
    function: Any = None
    item: Any = None


class _Run(Generic[Result]):
    """The jobs of one function on a cluster; a job is sent again if its worker is lost."""

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
        """Cancel the pending jobs."""
        self._completed.clear()
        if self._jobs and self._client.status == "running":
            self._client.cancel(list(self._jobs))
        self._jobs, self._done, self._function = {}, {}, None

    @property
    def n_waiting(self) -> int:
        """Number of jobs whose results have not been taken."""
        return self._n_sent - self._n_taken

    def count_ahead(self) -> int:
        """Return the maximum number of pending jobs, which changes as workers come and go."""
        return max(MIN_PENDING, PENDING_PER_THREAD * len(self._list_threads()))

    def _list_threads(self) -> list[str]:
        """Return, for each thread of the cluster, the address of its worker."""
        with _connected(self._client):
            n_threads = self._client.nthreads()
        return [worker for worker, n in n_threads.items() for _ in range(n)]

    def _send_function(self) -> None:
        """Send the function to a worker, and assign the first jobs to all workers in turn.

        Otherwise Dask would prefer workers that already have the function, until it has seen more than two
        jobs per thread.
        """
        self._function = self._scatter(self._content)
        self._turns = iter(self._list_threads() * 2)

    def send(self, item: object) -> None:
        """Send the job of an item."""
        self._submit(_Job(self._n_sent, _pickle(item)))
        self._n_sent += 1

    def results(self) -> Iterator[tuple[int, Result]]:
        """Yield the number and result of each job, in order of completion."""
        for future in self._completed:
            yield from self._collect(future)

    def take(self) -> Result:
        """Return the result of the earliest job whose result has not been taken yet."""
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
        """Return a result with its number; an empty list if the job was lost and sent again."""
        job = self._jobs.pop(future)
        try:
            return [(job.number, pickle.loads(future.result()))]
        except self._dask.CancelledError:
            self._send_again(job)
            return []
        except self._dask.KilledWorker as error:
            raise ClusterError(_describe_loss(job.number, error.allowed_failures + 1)) from error
        except OSError as error:
            if future.status == "error":  # raised by the function itself
                raise
            raise ClusterError(_describe_disconnect(self._client)) from error

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
            raise ClusterError(_describe_disconnect(self._client))
        if job.n_sent == MAX_ATTEMPTS:
            raise ClusterError(_describe_loss(job.number, job.n_sent))
        if job.function is self._function:
            self._send_function()
        self._submit(job)

    def _scatter(self, content: object) -> Any:  # noqa: ANN401
        """Send data to one worker, from which the others copy it on demand; return its future.

        Dask could broadcast the data, but would then wait forever if a worker is lost meanwhile.
        """
        for _ in range(MAX_ATTEMPTS):
            try:
                # In a list, since Dask would split a collection.
                [sent] = self._client.scatter([content], hash=False, timeout=PATIENCE)
                return sent
            except TimeoutError as error:
                address = _address(self._client)
                raise ClusterError(
                    f"{address} has no workers; expected at least one; start one with: dask worker {address}"
                ) from error
            except (OSError, KeyError):  # a worker or the scheduler was lost
                if self._client.status != "running":
                    raise ClusterError(_describe_disconnect(self._client)) from None
        raise ClusterError(
            f"the workers of {_address(self._client)} were lost; expected at least one; see the workers' logs"
        )


def _pickle(value: object) -> bytes:
    content: bytes = require("cloudpickle", "cluster").dumps(value)
    return content


def _address(client: Client) -> str:
    return str(client.scheduler.address)


@contextmanager
def _connected(client: Client) -> Iterator[None]:
    """Raise `ClusterError` if the scheduler does not answer."""
    try:
        yield
    except OSError as error:
        raise ClusterError(_describe_disconnect(client)) from error


def _describe_disconnect(client: Client) -> str:
    return f"the connection to {_address(client)} is lost; check that the scheduler is still running"


def _describe_loss(number: int, n_times: int) -> str:
    return (
        f"job {number + 1} was lost with its worker {n_times} times in a row; see the workers' logs, and "
        "give the workers more memory"
    )


_checked: WeakSet[Any] = WeakSet()
"""Clients whose workers are known to have the right versions."""


def _check_client(client: Client, dask: Any) -> None:  # noqa: ANN401
    """Check that a client is usable, and that its workers have the same package versions as this machine."""
    if not isinstance(client, dask.Client):
        raise InputError(f"client is {type(client).__name__}; expected a distributed.Client")
    if client.asynchronous:
        raise InputError("client is asynchronous; expected Client(..., asynchronous=False)")
    if client in _checked:
        return
    with _connected(client):
        found = client.get_versions(packages=SAME_VERSION)
    here = _versions(found["client"])
    for address, worker in found["workers"].items():
        for name, version in _versions(worker).items():
            if version != here[name]:
                what = f"{name} {version}" if version else f"no {name}"
                raise ClusterError(
                    f"worker {address} has {what}; expected {name} {here[name]}, as on this machine"
                )
    if found["workers"]:
        _checked.add(client)


def _versions(described: dict[str, Any]) -> dict[str, str | None]:
    python = ".".join(described["host"]["python"].split(".")[:2])
    return {"python": python, **{name: described["packages"][name] for name in SAME_VERSION}}
