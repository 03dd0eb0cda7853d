"""Temporary files beside what they become: whoever writes one holds a lock on it, so that others are stale.

A process that is killed leaves its temporary files behind. The next one that writes to the same target
removes them: it knows them by their names, and by their locks that nobody is writing to them.
"""

import os
import secrets
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from treewright._cleanup import cleanup_on_interrupt

PREFIX = ".treewright-"


@contextmanager
def temporary_file(place: Path, *, mode: int = 0o600) -> Iterator[tuple[int, str]]:
    """Make a temporary file that may become `place`; give its descriptor, which the caller closes, and name.

    The file has the permissions `mode` less those of the umask. Files that dead processes have left for the
    same place are removed first, and this one if an error is raised.
    """
    prefix = f"{PREFIX}{zlib.crc32(os.fsencode(place.name)):08x}-"
    remove_stale(place.parent, prefix)
    descriptor, name = _make(prefix, place.parent, mode)
    try:
        with _kept_locked(descriptor), cleanup_on_interrupt(partial(os.unlink, name)):
            yield descriptor, name
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _make(prefix: str, folder: Path, mode: int) -> tuple[int, str]:
    while True:
        name = os.path.join(os.path.abspath(folder), prefix + secrets.token_hex(8))
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        try:
            _lock(descriptor, wait=True)
        except OSError:  # without locks nobody can tell what is stale, so nobody removes it
            return descriptor, name
        if os.path.exists(name):
            return descriptor, name
        os.close(descriptor)  # somebody took it for a stale one before it was locked


def remove_stale(folder: Path, prefix: str = PREFIX) -> None:
    """Remove temporary files in a folder that nobody is writing to."""
    with suppress(OSError):
        names = [entry.path for entry in os.scandir(folder) if entry.name.startswith(prefix)]
        for name in names:
            with suppress(OSError):
                _remove_unlocked(name)


def _remove_unlocked(name: str) -> None:
    if sys.platform == "win32":
        os.unlink(name)  # which fails while somebody has it open
        return
    descriptor = os.open(name, os.O_RDWR)
    try:
        _lock(descriptor, wait=False)
        os.unlink(name)
    finally:
        os.close(descriptor)


if sys.platform == "win32":

    def _lock(descriptor: int, *, wait: bool) -> None:
        """Do nothing: what is open cannot be removed anyway."""

    @contextmanager
    def _kept_locked(descriptor: int) -> Iterator[None]:
        """Do nothing: what is open could not be renamed."""
        yield
else:
    import fcntl

    def _lock(descriptor: int, *, wait: bool) -> None:
        """Lock an open file until it is closed."""
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)

    @contextmanager
    def _kept_locked(descriptor: int) -> Iterator[None]:
        """Keep a lock until the end of the block, also when the file is closed before."""
        other = os.dup(descriptor)
        try:
            yield
        finally:
            os.close(other)
