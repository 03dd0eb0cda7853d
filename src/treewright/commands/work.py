"""What commands have in common: telling, and work that takes long."""

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
    """Have options of commands that train.

    Parameters
    ----------
    scheduler : str, optional
        Dask scheduler of a cluster that does the work (tcp://host:8786).
    resume : bool
        Resume from the last finished step.
    """


def check_writable(path: Path) -> None:
    """Find out before long work whether the result can be written."""
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
    """Refuse to write two results to one file, or one over what is read.

    Parameters
    ----------
    results, inputs : mapping of str to path, "-" or None
        Files by what the user calls them.
    """
    written = {option: path for option, path in results.items() if path is not None}
    for (one, path), (other, same) in combinations(written.items(), 2):
        if is_same_file(path, same):
            raise InputError(f"{one} and {other} are both {path}; expected two files")
    for option, path in written.items():
        for name, source in inputs.items():
            if source is not None and is_same_file(path, source):
                raise InputError(f"{option} is {path}, the file of {name}; expected another one")


def begin_checkpoint(result: Path, *, resume: bool) -> Path:
    """Return the folder that keeps unfinished work on a result; one that is there must be wanted."""
    checkpoint = Path(f"{result}.checkpoint")
    if checkpoint.exists() and not checkpoint.is_dir():
        raise InputError(f"{checkpoint} is a file; expected a folder for unfinished work, or nothing")
    if checkpoint.exists() and not resume:
        raise InputError(f"{checkpoint} is left of work that was interrupted; give --resume, or delete it")
    return checkpoint


@contextmanager
def open_cluster(scheduler: str | None) -> Iterator["Client | None"]:
    """Give a client of the cluster whose scheduler has this address, if there is one; close it at the end."""
    if scheduler is None:
        yield None
        return
    distributed = require("distributed", "cluster")
    # What Dask would log of connections that are lost is told as an error, if it matters.
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        asyncio.run(_knock(scheduler))
        client = distributed.Client(scheduler, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"--scheduler is {scheduler!r} ({error}); expected an address such as tcp://host:8786"
        ) from error
    except (OSError, MemoryError, OverflowError) as error:  # what others say is taken for a large size
        raise ClusterError(
            f"no Dask scheduler answers at {scheduler}; expected one, as the command dask scheduler starts it"
        ) from error
    try:
        yield client
    finally:
        client.close()


async def _knock(address: str) -> None:
    """Find out whether a scheduler is there; a client that finds none complains when it is thrown away."""
    distributed, comm = require("distributed", "cluster"), require("distributed.comm", "cluster")
    options = distributed.Security().get_connection_args("client")
    # Dask limits the time of connecting, not that of waiting for the first word.
    async with asyncio.timeout(SECONDS_TO_CONNECT):
        (await comm.connect(address, timeout=SECONDS_TO_CONNECT, **options)).abort()
