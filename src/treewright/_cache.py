"""The cache folder, which holds files that treewright can compute or download again."""

import logging
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path

logger = logging.getLogger("treewright")


def cache_folder(*parts: str) -> Path:
    """Return a writable subfolder of the user's cache, created if necessary.

    The cache is ``$TREEWRIGHT_CACHE`` if that is set, or else the platform's default:
    ``$XDG_CACHE_HOME/treewright`` or ``~/.cache/treewright``, ``~/Library/Caches/treewright`` on macOS,
    ``%LOCALAPPDATA%/treewright/Cache`` on Windows. If the cache is not writable, a private folder in the
    system's temporary folder is used instead.
    """
    try:
        folder = _usual_place().joinpath(*parts)
        folder.mkdir(parents=True, exist_ok=True)
        # Permission bits do not reveal read-only file systems and quotas; writing does.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, RuntimeError) as error:
        folder = _temporary_place().joinpath(*parts)
        logger.warning(
            "the cache folder is not writable (%s); using %s; set TREEWRIGHT_CACHE to choose another",
            error,
            folder,
        )
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _usual_place() -> Path:
    chosen = os.environ.get("TREEWRIGHT_CACHE")
    # Without a home folder, `expanduser` raises RuntimeError; older platformdirs return a path in "~".
    return Path(chosen or user_cache_path("treewright", appauthor=False)).expanduser()


def _temporary_place() -> Path:
    """Return a folder under the system's temporary folder that no other user can write to."""
    name = f"treewright-{os.getuid()}" if hasattr(os, "getuid") else "treewright"
    folder = Path(tempfile.gettempdir(), name)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    return folder if _is_private(folder) else Path(tempfile.mkdtemp(prefix="treewright-"))


def _is_private(folder: Path) -> bool:
    """Return whether `folder` belongs to this user, and no other user can plant files in it."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
