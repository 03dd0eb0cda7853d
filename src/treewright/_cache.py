"""Where treewright keeps what it can make or fetch again."""

import logging
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path

logger = logging.getLogger("treewright")


def cache_folder(*parts: str) -> Path:
    """Return the folder `parts` of the user's cache, made if need be and sure to be writable.

    The cache is ``$TREEWRIGHT_CACHE`` if that is set, else the platform's usual place:
    ``$XDG_CACHE_HOME/treewright`` or ``~/.cache/treewright``, ``~/Library/Caches/treewright`` on macOS,
    ``%LOCALAPPDATA%/treewright/Cache`` on Windows. Where that cannot be written, a folder of the same
    user under the system's temporary folder takes its place.
    """
    try:
        folder = _usual_place().joinpath(*parts)
        folder.mkdir(parents=True, exist_ok=True)
        # Permission bits say nothing of read-only file systems and quotas; writing does.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, RuntimeError) as error:
        folder = _temporary_place().joinpath(*parts)
        logger.warning("the cache folder cannot be used (%s); using %s", error, folder)
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _usual_place() -> Path:
    chosen = os.environ.get("TREEWRIGHT_CACHE")
    # Where no home is known, `expanduser` raises RuntimeError; older platformdirs return a path in "~".
    return Path(chosen or user_cache_path("treewright", appauthor=False)).expanduser()


def _temporary_place() -> Path:
    """Return a folder under the system's temporary folder that no other user can write to."""
    name = f"treewright-{os.getuid()}" if hasattr(os, "getuid") else "treewright"
    folder = Path(tempfile.gettempdir(), name)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    return folder if _is_private(folder) else Path(tempfile.mkdtemp(prefix="treewright-"))


def _is_private(folder: Path) -> bool:
    """Tell whether `folder` is this user's own, not one that another user made to plant files in."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
