"""Gram matrices, computed in strips, in memory or in a file."""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from treewright._naming import named, setting
from treewright._typing import Memory
from treewright._validate import check_integer, check_param, check_type
from treewright._version import __version__
from treewright.checkpoint import Checkpoint
from treewright.data.files import is_special, replacing
from treewright.errors import TROUBLESHOOTING, InputError, show
from treewright.kernels.base import Kernel, PackedExamples
from treewright.kernels.derived import DerivedKernel
from treewright.kernels.device_gram import DeviceGram, check_device_kernel
from treewright.kernels.examples import (
    check_examples,
    count_examples,
    examples_state,
    kernel_state,
    take_examples,
)
from treewright.model import State, identify
from treewright.progress import report, task
from treewright.scale import Client, iter_jobs

Matrix = npt.NDArray[np.floating[Any]]
Place = tuple[slice, slice]
Evaluate = Callable[[Place], tuple[float, Matrix]]
"""Evaluates a strip; returns the seconds and the values."""
Write = Callable[[Matrix], None]
"""Writes a strip into the matrix."""

MEMORY = 4 << 30
ROWS_AT_A_TIME = 512
N_SENT = 64
"""Minimum number of strips on a cluster, if values do not depend on the strips."""
COPIES = 6
"""Number of copies of a strip in memory while threads combine their parts and while it is written."""
PAGE = 4096
"""Number of bytes per memory page."""
MATRIX, ROWS = "matrix", "rows"
"""Names of checkpoint entries: the file, and the number of finished rows."""
UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Plan(NamedTuple):
    """Shape and type of a matrix, and the size of strips."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    n_rows: int
    """Number of rows per strip."""


def gram(
    kernel: Kernel,
    examples: Any,  # noqa: ANN401
    others: Any = None,  # noqa: ANN401
    *,
    out: str | os.PathLike[str] | None = None,
    memory_limit: Memory = MEMORY,
    device: str | None = None,
    device_memory: Memory | None = None,
    dtype: npt.DTypeLike = np.float64,
    logs: bool = False,
    times: list[float] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    client: Client | None = None,
) -> Matrix:
    """Compute a Gram matrix: the kernel values of all pairs of examples, in memory or in a file.

    Parameters
    ----------
    kernel : Kernel
        The kernel to evaluate.
    examples : iterable
        Trees or other examples that the kernel compares. A generator is read once.
    others : iterable, optional
        Examples to compare with (default: the examples are compared with each other, each pair once).
    out : path, optional
        File for the matrix, in NumPy's ``.npy`` format. It is created when the matrix is complete.
    memory_limit : int
        Memory limit for the part of the matrix that is computed at a time. The unit is bytes. The matrix is
        computed in strips of at least one row that fit into this limit; a limit that is too low for one row
        is an error. The packed examples are not counted. Without `out`, the whole matrix must fit.
    device : str, optional
        PyTorch device that computes the matrix, such as cuda for a GPU. By default, compiled code on the CPU
        computes it, without PyTorch. Only for subtree, subset tree and partial tree kernels.
    device_memory : int, optional
        Memory limit on the device (default: 80% of the free memory of a GPU). The unit is bytes.
    dtype : {np.float64, np.float32}
        Type of the values in the matrix.
    logs : bool
        Return logarithms, which are finite even if values overflow, and minus infinity for trees without
        common fragments. Only for tree kernels without normalisation.
    times : list, optional
        List to which the evaluation time of each strip in seconds is appended. The times do not include
        preparing the examples. They include writing the values only with `device`.
    checkpoint : path, optional
        Folder for the unfinished file; only with `out`. If it exists, the computation resumes from it, with
        the same result as without an interruption. The caller must delete the folder.
    client : distributed.Client, optional
        Client of a Dask cluster that evaluates the strips; it does not change the values.

    Returns
    -------
    ndarray, (len(examples), len(others))
        The matrix; with `out`, a read-only memory map of the file.

    Raises
    ------
    InputError
        If the memory limit is too low for the matrix or, with `out`, for one row.

    See Also
    --------
    TreeKernelNystroem : A few columns instead of a whole matrix.

    Examples
    --------
    >>> from treewright import SubsetTreeKernel, gram
    >>> gram(SubsetTreeKernel(decay=1), ["(S (N Mary))", "(S (N John))"]).tolist()
    [[3.0, 1.0], [1.0, 3.0]]
    """
    check_integer("memory_limit", memory_limit, minimum=1)
    check_param("logs", logs, bool)
    if times is not None:
        check_type("times", times, list, "a list")
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel is {type(kernel).__name__}; expected a kernel of treewright")
    if isinstance(kernel, DerivedKernel):
        raise InputError(
            f"{type(kernel).__name__} has a value for each candidate of a list; expected a kernel of single "
            "examples; call kernel(lists, lists) instead"
        )
    if logs:
        _check_logs(kernel)
    if device is not None:
        _check_device(device, kernel, logs=logs, client=client)
    elif device_memory is not None:
        raise InputError(f"{named('device_memory')} has no effect without {named('device')}; expected both")
    path = None if out is None else _check_path(out)
    others = None if others is examples or others is None else check_examples(others)
    examples = check_examples(examples)
    plan = _make_plan(
        examples, others, dtype=_check_dtype(dtype), memory_limit=memory_limit, is_file=path is not None
    )
    # Comparisons with others, logarithms, and devices round differently in other strips.
    any_strips = others is None and not logs and kernel.has_exact_strips and device is None
    if client is not None and any_strips:
        plan = plan._replace(n_rows=min(plan.n_rows, -(-plan.shape[0] // N_SENT)))
    on_device: DeviceGram | None = None
    if device is not None:
        on_device = DeviceGram(kernel, examples, others, device=device, memory=device_memory)
        plan = _widen(plan, memory_limit, is_file=path is not None, most=on_device.n_trees)
    times = [] if times is None else times
    kept = None
    if checkpoint is not None:
        strip = None if any_strips else plan.n_rows
        kind = device and device.partition(":")[0]
        name = _identify(kernel, examples, others, plan, logs=logs, n_rows=strip, device=kind)
        kept = Checkpoint(checkpoint, name)
    n_rows, n_columns = plan.shape
    places = [
        (slice(begin, min(begin + plan.n_rows, n_rows)), slice(begin if others is None else 0, n_columns))
        for begin in range(_count_rows(kept, times), n_rows, plan.n_rows)
    ]
    is_symmetric = others is None
    if on_device is not None:
        strips = _fill_strips(on_device, places, plan, times, is_symmetric=is_symmetric)
    else:
        evaluate = (_make_logs if logs else _make_values)(kernel, examples, others)
        strips = _evaluate_strips(evaluate, places, plan, times, client, is_symmetric=is_symmetric)
    if path is None:
        matrix = np.empty(plan.shape, dtype=plan.dtype)
        for _, write in strips:
            write(matrix)
        return matrix
    with _map_file(path, plan, kept) as open_map:
        for (rows, _), write in strips:
            # A map that is opened anew lets go of what has been written.
            matrix = open_map()
            write(matrix)
            if kept and kept.is_due:
                matrix.flush()
                kept.save(ROWS, State("Rows", {"rows": rows.stop, "times": times}))
    found: Matrix = np.load(path, mmap_mode="r")
    return found


def _check_path(out: object) -> Path:
    if not isinstance(out, str | os.PathLike):
        raise InputError(f"out is {show(out)}; expected the name of a file")
    path = Path(out)
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected the name of a file")
    if is_special(path):
        expected = "a regular file, since values are not written in order"
        raise InputError(f"{path} is not a regular file; expected {expected}")
    return path


def _check_logs(kernel: Kernel) -> None:
    if not hasattr(kernel, "logs"):
        name = type(kernel).__name__
        raise InputError(f"{name} cannot compute logarithms; expected a kernel of single trees")
    if kernel.get_params()["normalize"]:
        raise InputError("logs and normalize are both True; expected at most one of them")


def _check_device(device: object, kernel: Kernel, *, logs: bool, client: Client | None) -> None:
    if not isinstance(device, str):
        raise InputError(f"device is {show(device)}; expected the name of a PyTorch device, such as 'cuda'")
    if logs or client is not None:
        other = named("logs") if logs else "a cluster"
        raise InputError(f"{named('device')} and {other} are both given; expected one of them")
    check_device_kernel(kernel)


def _check_dtype(dtype: object) -> np.dtype[Any]:
    try:
        found = np.dtype(cast(npt.DTypeLike, dtype))
    except TypeError:
        raise InputError(f"dtype is {show(dtype)}; expected float64 or float32") from None
    if found not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise InputError(f"dtype is {found}; expected float64 or float32")
    return found


def _make_plan(
    examples: Any,  # noqa: ANN401
    others: Any,  # noqa: ANN401
    *,
    dtype: np.dtype[Any],
    memory_limit: int,
    is_file: bool,
) -> Plan:
    """Choose the number of rows per strip; reject a limit that is too low for one row."""
    n_rows = count_examples(examples)
    n_columns = n_rows if others is None else count_examples(others)
    if not n_rows or not n_columns:
        raise InputError("there are no examples; expected at least one")
    row = COPIES * 8 * n_columns
    taken = 2 * PAGE * n_rows if is_file else n_rows * n_columns * dtype.itemsize
    if not is_file and taken + row > memory_limit:
        size, limit = show_bytes(taken + row), show_bytes(memory_limit)
        raise InputError(
            f"a matrix of {n_rows} by {n_columns} values takes {size} of memory, more than {limit}; "
            f"expected out (a file) or a higher {named('memory_limit')}",
            help=f"{TROUBLESHOOTING}#memory",
        )
    if taken + row > memory_limit:
        raise InputError(
            f"{named('memory_limit')} is {memory_limit:,} bytes; a matrix of {n_rows} by {n_columns} values, "
            f"one row at a time, needs at least {taken + row:,}",
            help=f"{TROUBLESHOOTING}#memory",
        )
    return Plan((n_rows, n_columns), dtype, min(ROWS_AT_A_TIME, (memory_limit - taken) // row))


def _widen(plan: Plan, memory_limit: int, *, is_file: bool, most: int) -> Plan:
    """Return a plan with as many rows per strip as a device tile has, if the memory limit allows it."""
    n_rows, n_columns = plan.shape
    taken = 2 * PAGE * n_rows if is_file else n_rows * n_columns * plan.dtype.itemsize
    fitting = max(1, (memory_limit - taken) // (COPIES * 8 * n_columns))
    return plan._replace(n_rows=min(most, fitting, n_rows))


def _make_values(
    kernel: Kernel,
    examples: Any,  # noqa: ANN401
    others: Any,  # noqa: ANN401
) -> Evaluate:
    """Return a function that evaluates strips of rows; without `others`, they start at the diagonal."""
    packed: PackedExamples = kernel.pack(examples if others is None else others)

    def evaluate(place: Place) -> tuple[float, Matrix]:
        rows, begin = place[0], time.perf_counter()
        if others is None:
            values = packed.strip(rows.start, rows.stop)
        else:
            values = packed.compare(take_examples(examples, rows))
        return time.perf_counter() - begin, values

    return evaluate


def _make_logs(
    kernel: Any,  # noqa: ANN401
    examples: Any,  # noqa: ANN401
    others: Any,  # noqa: ANN401
) -> Evaluate:
    """Return a function that evaluates strips of logarithms; without `others`, they start at the diagonal."""
    columns = kernel.pack(others) if others is not None else None

    def evaluate(place: Place) -> tuple[float, Matrix]:
        rows = kernel.pack(take_examples(examples, place[0]))
        right = kernel.pack(take_examples(examples, place[1])) if columns is None else columns
        begin = time.perf_counter()
        values = rows.logs(right)
        return time.perf_counter() - begin, values

    return evaluate


def _evaluate_strips(
    evaluate: Evaluate,
    places: Sequence[Place],
    plan: Plan,
    times: list[float],
    client: Client | None,
    *,
    is_symmetric: bool,
) -> Iterator[tuple[Place, Write]]:
    """Evaluate strips and record the time of each; yield functions that write them."""
    strips = iter_jobs(evaluate, places, client=client)
    for place, (seconds, values) in zip(_track(places, plan), strips, strict=True):
        times.append(seconds)
        yield place, partial(_store, place, _convert(values, plan.dtype), is_symmetric=is_symmetric)


def _fill_strips(
    on_device: DeviceGram, places: Sequence[Place], plan: Plan, times: list[float], *, is_symmetric: bool
) -> Iterator[tuple[Place, Write]]:
    """Yield functions that evaluate strips on a device, write them, and record the time of each."""
    for place in _track(places, plan):

        def write(matrix: Matrix, place: Place = place) -> None:
            begin = time.perf_counter()
            on_device.fill(
                matrix, *place, is_symmetric=is_symmetric, convert=partial(_convert, dtype=plan.dtype)
            )
            times.append(time.perf_counter() - begin)

        yield place, write


def _track(places: Sequence[Place], plan: Plan) -> Iterator[Place]:
    """Yield the places of strips, and report progress after each.

    The progress bar counts pairs; a log line is written after each percent of the rows.
    """
    n_rows, reported = plan.shape[0], 0
    n_pairs = [(rows.stop - rows.start) * (columns.stop - columns.start) for rows, columns in places]
    with task("comparing", total=sum(n_pairs), unit="pairs") as counted:
        for place, n in zip(places, n_pairs, strict=True):
            yield place
            done = 100 * place[0].stop // n_rows
            if done > reported:
                report(f"rows {place[0].stop} of {n_rows}")
                reported = done
            counted.advance(n)


def _convert(values: Matrix, dtype: np.dtype[Any]) -> Matrix:
    """Convert values to the type of the matrix; reject values that overflow in single precision."""
    with np.errstate(over="ignore"):
        kept = values.astype(dtype, copy=False)
    if dtype == np.float32:
        lost = np.isfinite(values) & ~np.isfinite(kept)
        if lost.any():
            value = values[lost][0]
            remedy = f"{setting('normalize', True)} or 64 bits"
            raise InputError(f"a value is {value:g}; expected a number that fits in 32 bits; use {remedy}")
    return kept


def _store(place: Place, values: Matrix, matrix: Matrix, *, is_symmetric: bool) -> None:
    """Write a strip into a matrix, and also its transpose if the matrix is symmetric."""
    matrix[place] = values
    if is_symmetric:
        begin, end = place[0].start, place[0].stop
        low = np.tril_indices(end - begin, -1)
        matrix[begin:end, begin:end][low] = values[:, : end - begin].T[low]
        matrix[end:, begin:end] = values[:, end - begin :].T


def _identify(
    kernel: Kernel,
    examples: Any,  # noqa: ANN401
    others: Any,  # noqa: ANN401
    plan: Plan,
    *,
    logs: bool,
    n_rows: int | None,
    device: str | None,
) -> str:
    """Return an identifier of everything the matrix depends on; `n_rows` is None if it has no effect."""
    values = {"shape": list(plan.shape), "dtype": plan.dtype.str, "n_rows": n_rows, "logs": logs}
    values["device"] = device
    parts = {"kernel": kernel_state(kernel), "examples": examples_state(examples)}
    parts["kernel"].values = _without_jobs(parts["kernel"].values)
    if others is not None:
        parts["others"] = examples_state(others)
    return identify(State(__version__, values, {}, parts))


def _without_jobs(value: Any) -> Any:  # noqa: ANN401
    """Return nested kernel parameters without `n_jobs`, which does not affect the values."""
    if isinstance(value, dict):
        return {name: _without_jobs(each) for name, each in value.items() if name != "n_jobs"}
    return [_without_jobs(each) for each in value] if isinstance(value, list) else value


def _count_rows(kept: Checkpoint | None, times: list[float]) -> int:
    """Return the number of rows that an interrupted run finished, and add its times to `times`."""
    state = kept.load(ROWS) if kept else None
    if kept is None or state is None or not kept.path(MATRIX).exists():
        return 0
    times += state.values["times"]
    return int(state.values["rows"])


@contextmanager
def _map_file(path: Path, plan: Plan, kept: Checkpoint | None) -> Iterator[Callable[[], np.memmap[Any, Any]]]:
    """Create a file that is renamed to `path` at the end; yield a function that maps it into memory."""
    with kept.growing(MATRIX, ROWS, path) if kept else replacing(path) as stream:
        header = {"descr": np.lib.format.dtype_to_descr(plan.dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(stream, {**header, "shape": plan.shape})
        stream.flush()
        offset = stream.tell()
        if hasattr(os, "posix_fallocate"):  # without room on the disk, writing to a map would end the program
            try:
                n_bytes = offset + math.prod(plan.shape) * plan.dtype.itemsize
                os.posix_fallocate(stream.fileno(), 0, n_bytes)
            except OSError as error:
                error.filename = str(path)
                raise
        yield lambda: np.memmap(stream, dtype=plan.dtype, mode="r+", offset=offset, shape=plan.shape)


def show_bytes(n_bytes: int) -> str:
    """Format a size in a suitable unit.

    Examples
    --------
    >>> show_bytes(1536)
    '1.5 KiB'
    """
    power = min(len(UNITS) - 1, int(math.log2(max(n_bytes, 1))) // 10)
    return "1 byte" if n_bytes == 1 else f"{n_bytes / (1 << 10 * power):.3g} {UNITS[power]}"
