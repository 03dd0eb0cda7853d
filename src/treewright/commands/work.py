"""Functions shared by commands: checks of files, checkpoints and clusters."""

import asyncio
import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from treewright._optional import require
from treewright._typing import Address
from treewright.commands.console import say as say
from treewright.data.files import Target, check_folder, is_same_file, is_special
from treewright.errors import ClusterError, InputError

if TYPE_CHECKING:
    from treewright.scale import Client

SECONDS_TO_CONNECT = 5


def running(*, scheduler: Address | None = None, resume: bool = False) -> None:
    """Declare options of commands that train.

    Parameters
    ----------
    scheduler : str, optional
        Run on the cluster of the Dask scheduler at this address, such as tcp://host:8786.
    resume : bool
        Resume from the last finished step.
    """


def check_writable(path: Path) -> None:
    """Check, before a long computation, that the result can be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected the name of a file")
    if is_special(path):
        return
    check_folder(path)
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        error.filename = str(path)
        raise


def check_results(results: Mapping[str, Target | None], inputs: Mapping[str, Target | None]) -> None:
    """Raise `InputError` if two results share a file, or a result would overwrite an input.

    Parameters
    ----------
    results, inputs : mapping of str to path, "-" or None
        Files by their options or arguments on the command line.
    """
    written = {option: path for option, path in results.items() if path is not None}
    for (one, path), (other, same) in combinations(written.items(), 2):
        if is_same_file(path, same):
            raise InputError(f"{one} and {other} are both {path}; expected two files")
    for option, path in written.items():
        for name, source in inputs.items():
            if source is not None and is_same_file(path, source):
                raise InputError(f"{option} is {path}, which is also {name}; expected another file")


def begin_checkpoint(result: Path, *, resume: bool) -> Path:
    """Return the checkpoint folder of a result; raise `InputError` if it exists and `resume` is False."""
    checkpoint = Path(f"{result}.checkpoint")
    if checkpoint.exists() and not checkpoint.is_dir():
        raise InputError(f"{checkpoint} is a file; expected a checkpoint folder; rename or delete the file")
    if checkpoint.exists() and not resume:
        raise InputError(f"{checkpoint} exists from an interrupted run; add --resume, or delete the folder")
    return checkpoint


@contextmanager
def open_cluster(scheduler: str) -> Iterator["Client"]:
    """Yield a client of the cluster at this address; close it at the end."""
    distributed = require("distributed", "cluster")
    # Lost connections that matter are raised as errors; Dask need not log them.
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        asyncio.run(_check_scheduler(scheduler))
        client = distributed.Client(scheduler, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"--scheduler is {scheduler!r} ({error}); expected an address such as tcp://host:8786"
        ) from error
    except (
        OSError,
        MemoryError,
        OverflowError,
    ) as error:  # the answer of another kind of server is taken for a large size
        raise ClusterError(
            f"no Dask scheduler answers at {scheduler}; expected a running scheduler; "
            "start one with: dask scheduler"
        ) from error
    try:
        yield client
    finally:
        client.close()


async def _check_scheduler(address: str) -> None:
    """Check that a scheduler answers; a client without a scheduler would log errors when it is closed."""
    distributed, comm = require("distributed", "cluster"), require("distributed.comm", "cluster")
    options = distributed.Security().get_connection_args("client")
    # Dask limits the time to connect, but not the time until the first answer.
    async with asyncio.timeout(SECONDS_TO_CONNECT):
        (await comm.connect(address, timeout=SECONDS_TO_CONNECT, **options)).abort()
