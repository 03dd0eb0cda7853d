"""Whole matrices of kernel values, strip by strip, in memory or in a file."""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from treewright._naming import named, setting
from treewright._typing import FloatArray, Memory
from treewright._validate import check_integer
from treewright._version import __version__
from treewright.checkpoint import Checkpoint
from treewright.data.files import is_special, replacing
from treewright.errors import InputError
from treewright.kernels.base import Kernel, PackedExamples
from treewright.kernels.derived import DerivedKernel
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
Evaluate = Callable[[Place], tuple[float, FloatArray]]
"""Returns the values of a strip, and how many seconds their evaluation took."""

MEMORY = 4 << 30
ROWS_AT_A_TIME = 512
N_SENT = 64
"""Strips into which a matrix is divided for a cluster, at the least, where values do not depend on them."""
COPIES = 6
"""How often a strip is held: while threads join their parts, and while it is written, in rows and columns."""
PAGE = 4096
"""Bytes of a file that come into memory where one of them is touched."""
MATRIX, ROWS = "matrix", "rows"
"""Steps of a checkpoint: the file, and how much of it is there."""
UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Plan(NamedTuple):
    """How a matrix is made."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    n_rows: int
    """Of a strip."""


def gram(
    kernel: Kernel,
    examples: Any,  # noqa: ANN401
    others: Any = None,  # noqa: ANN401
    *,
    out: str | os.PathLike[str] | None = None,
    memory_limit: Memory = MEMORY,
    dtype: npt.DTypeLike = np.float64,
    logs: bool = False,
    times: list[float] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    client: Client | None = None,
) -> Matrix:
    """Return the values of all pairs of examples, or write them to a file if they are too many.

    Parameters
    ----------
    kernel : Kernel
    examples : sequence
        Whatever the kernel takes.
    others : sequence, optional
        What to compare the examples with. Without it, with each other: then each pair is evaluated once.
    out : path, optional
        A ``.npy`` file for the values, for `numpy.load`. It appears when all of them are there.
    memory_limit : int
        Memory limit of the values that are held at a time. Strips of the matrix are made so that they fit in
        so many bytes, but of one row at least. The examples themselves come on top. Without `out`, all values
        are in memory.
    dtype : {np.float64, np.float32}
        How values are kept.
    logs : bool
        Return logarithms, which are finite where values are too large for a number, and minus infinity for
        trees that share nothing. For a kernel of trees without normalisation.
    times : list, optional
        Gets the seconds that the evaluation of each strip took, without those of preparing the examples and
        of keeping the values.
    checkpoint : path, optional
        With `out`, a folder in which the unfinished file is kept. If it exists, work goes on from it and ends
        with the same file. What is in it then is left for the caller to remove.
    client : distributed.Client, optional
        A cluster that evaluates strips; the values are the same.

    Returns
    -------
    ndarray, (len(examples), len(others))
        With `out`, the file, mapped into memory to be read.

    Raises
    ------
    InputError
        If the values would take more memory than they may, and there is no `out`.

    Examples
    --------
    >>> from treewright import SubsetTreeKernel, gram
    >>> gram(SubsetTreeKernel(decay=1), ["(S (N Mary))", "(S (N John))"]).tolist()
    [[3.0, 1.0], [1.0, 3.0]]
    """
    check_integer("memory_limit", memory_limit, minimum=1)
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel is {type(kernel).__name__}; expected a kernel of treewright")
    if isinstance(kernel, DerivedKernel):
        raise InputError(
            f"{type(kernel).__name__} has a value for each candidate of a list; expected a kernel of single "
            "examples, or call it: kernel(lists, lists)"
        )
    if logs:
        _check_logs(kernel)
    path = None if out is None else _check_path(out)
    examples = check_examples(examples)
    others = others if others is None else check_examples(others)
    plan = _make_plan(
        examples, others, dtype=_check_dtype(dtype), memory_limit=memory_limit, is_file=path is not None
    )
    # Comparisons with others, and logarithms, are rounded otherwise in other strips.
    any_strips = others is None and not logs and kernel.has_exact_strips
    if client is not None and any_strips:
        plan = plan._replace(n_rows=min(plan.n_rows, -(-plan.shape[0] // N_SENT)))
    make = _make_logs if logs else _make_values
    times = [] if times is None else times
    kept = None
    if checkpoint is not None:
        strip = None if any_strips else plan.n_rows
        kept = Checkpoint(checkpoint, _identify(kernel, examples, others, plan, logs=logs, n_rows=strip))
    n_rows, n_columns = plan.shape
    places = [
        (slice(begin, min(begin + plan.n_rows, n_rows)), slice(begin if others is None else 0, n_columns))
        for begin in range(_count_rows(kept, times), n_rows, plan.n_rows)
    ]
    strips = _evaluate_strips(make(kernel, examples, others), places, plan, times, client)
    if path is None:
        matrix = np.empty(plan.shape, dtype=plan.dtype)
        for place, values in strips:
            _store(matrix, place, values, is_symmetric=others is None)
        return matrix
    with _map_file(path, plan, kept) as open_map:
        for place, values in strips:
            # A map that is opened anew lets go of what has been written.
            matrix = open_map()
            _store(matrix, place, values, is_symmetric=others is None)
            if kept and kept.is_due:
                matrix.flush()
                kept.save(ROWS, State("Rows", {"rows": place[0].stop, "times": times}))
    found: Matrix = np.load(path, mmap_mode="r")
    return found


def _check_path(out: object) -> Path:
    if not isinstance(out, str | os.PathLike):
        raise InputError(f"out is {out!r}; expected the name of a file")
    path = Path(out)
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected the name of a file")
    if is_special(path):
        raise InputError(f"{path} is no regular file; expected one, as values are not written in their order")
    return path


def _check_logs(kernel: Kernel) -> None:
    if not hasattr(kernel, "logs"):
        raise InputError(f"{type(kernel).__name__} has no logarithms; expected a kernel of single trees")
    if kernel.get_params()["normalize"]:
        raise InputError("logs and normalize are both True; expected one of them")


def _check_dtype(dtype: object) -> np.dtype[Any]:
    try:
        found = np.dtype(cast(npt.DTypeLike, dtype))
    except TypeError:
        raise InputError(f"dtype is {dtype!r}; expected float64 or float32") from None
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
    """Find out how many rows can be made at a time, if the matrix has a place at all."""
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
            f"expected out, a file for it, or a higher {named('memory_limit')}"
        )
    return Plan((n_rows, n_columns), dtype, min(ROWS_AT_A_TIME, max(1, (memory_limit - taken) // row)))


def _make_values(
    kernel: Kernel,
    examples: Any,  # noqa: ANN401
    others: Any,  # noqa: ANN401
) -> Evaluate:
    """Return what evaluates a strip of rows; if there are no others, from the diagonal on."""
    packed: PackedExamples = kernel.pack(examples if others is None else others)

    def evaluate(place: Place) -> tuple[float, FloatArray]:
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
    """Return what evaluates a strip of logarithms; if there are no others, from the diagonal on."""
    columns = kernel.pack(others) if others is not None else None

    def evaluate(place: Place) -> tuple[float, FloatArray]:
        rows = kernel.pack(take_examples(examples, place[0]))
        right = kernel.pack(take_examples(examples, place[1])) if columns is None else columns
        begin = time.perf_counter()
        values = rows.logs(right)
        return time.perf_counter() - begin, values

    return evaluate


def _evaluate_strips(
    evaluate: Evaluate, places: Sequence[Place], plan: Plan, times: list[float], client: Client | None
) -> Iterator[tuple[Place, Matrix]]:
    """Yield the values of strips as they will be kept, and keep how many seconds each took.

    Tell how many pairs are done, and report each strip with which another percent of rows is.
    """
    n_rows, reported = plan.shape[0], 0
    n_pairs = [(rows.stop - rows.start) * (columns.stop - columns.start) for rows, columns in places]
    with task("comparing", total=sum(n_pairs), unit="pairs") as counted:
        strips = iter_jobs(evaluate, places, client=client)
        for place, n, (seconds, values) in zip(places, n_pairs, strips, strict=True):
            times.append(seconds)
            with np.errstate(over="ignore"):
                kept = values.astype(plan.dtype, copy=False)
            if plan.dtype == np.float32:
                _check_range(values, kept)
            yield place, kept
            done = 100 * place[0].stop // n_rows
            if done > reported:
                report(f"rows {place[0].stop} of {n_rows}")
                reported = done
            counted.advance(n)


def _check_range(values: FloatArray, kept: Matrix) -> None:
    """Refuse values that have become infinite."""
    lost = np.isfinite(values) & ~np.isfinite(kept)
    if lost.any():
        value = values[lost][0]
        remedy = f"{setting('normalize', True)}, or 64 bits"
        raise InputError(f"a value is {value:g}; expected what 32 bits can hold: {remedy}")


def _store(matrix: Matrix, place: Place, values: Matrix, *, is_symmetric: bool) -> None:
    """Put a strip into a matrix; where it is symmetric, also as columns."""
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
) -> str:
    """Return a name for all that a matrix depends on, with the rows of a strip if it depends on them."""
    values = {"shape": list(plan.shape), "dtype": plan.dtype.str, "n_rows": n_rows, "logs": logs}
    parts = {"kernel": kernel_state(kernel), "examples": examples_state(examples)}
    parts["kernel"].values = _without_jobs(parts["kernel"].values)
    if others is not None:
        parts["others"] = examples_state(others)
    return identify(State(__version__, values, {}, parts))


def _without_jobs(value: Any) -> Any:  # noqa: ANN401
    """Return parameters of kernels in kernels without the number of threads, on which no value depends."""
    if isinstance(value, dict):
        return {name: _without_jobs(each) for name, each in value.items() if name != "n_jobs"}
    return [_without_jobs(each) for each in value] if isinstance(value, list) else value


def _count_rows(kept: Checkpoint | None, times: list[float]) -> int:
    """Return how many rows an earlier run has left, and take over what it has measured."""
    state = kept.load(ROWS) if kept else None
    if kept is None or state is None or not kept.path(MATRIX).exists():
        return 0
    times += state.values["times"]
    return int(state.values["rows"])


@contextmanager
def _map_file(path: Path, plan: Plan, kept: Checkpoint | None) -> Iterator[Callable[[], np.memmap[Any, Any]]]:
    """Make a file that takes its name at the end; give what maps it into memory."""
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
    """Show a size in the unit that suits it.

    Examples
    --------
    >>> show_bytes(1536)
    '1.5 KiB'
    """
    power = min(len(UNITS) - 1, int(math.log2(max(n_bytes, 1))) // 10)
    return "1 byte" if n_bytes == 1 else f"{n_bytes / (1 << 10 * power):.3g} {UNITS[power]}"
