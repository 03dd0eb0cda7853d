"""Temporary files in the folders of their targets; stale ones are recognised by a missing lock.

A process holds a lock on each temporary file that it writes. A process that is killed leaves its temporary
files behind. The next process that writes to the same target removes the unlocked temporary files of that
target.
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
    """Make a temporary file that can be renamed to `place`; yield its descriptor and name.

    The caller closes the descriptor. The permissions of the file are `mode`, without those masked by the
    umask. Stale files of the same target are removed first. If an error is raised, the file is removed.
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
        except OSError:  # without locks, stale files cannot be recognised and are not removed
            return descriptor, name
        if os.path.exists(name):
            return descriptor, name
        os.close(descriptor)  # another process removed it as stale before it was locked


def remove_stale(folder: Path, prefix: str = PREFIX) -> None:
    """Remove stale temporary files from a folder."""
    with suppress(OSError):
        names = [entry.path for entry in os.scandir(folder) if entry.name.startswith(prefix)]
        for name in names:
            with suppress(OSError):
                _remove_unlocked(name)


def _remove_unlocked(name: str) -> None:
    if sys.platform == "win32":
        os.unlink(name)  # fails while a process has it open
        return
    descriptor = os.open(name, os.O_RDWR)
    try:
        _lock(descriptor, wait=False)
        os.unlink(name)
    finally:
        os.close(descriptor)


if sys.platform == "win32":

    def _lock(descriptor: int, *, wait: bool) -> None:
        """Do nothing: an open file cannot be removed on this system."""

    @contextmanager
    def _kept_locked(descriptor: int) -> Iterator[None]:
        """Do nothing: an open file cannot be renamed on this system."""
        yield
else:
    import fcntl

    def _lock(descriptor: int, *, wait: bool) -> None:
        """Lock an open file until it is closed."""
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)

    @contextmanager
    def _kept_locked(descriptor: int) -> Iterator[None]:
        """Keep a lock until the end of the block, even if the file is closed earlier."""
        other = os.dup(descriptor)
        try:
            yield
        finally:
            os.close(other)
