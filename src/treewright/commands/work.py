"""What commands have in common: telling, and work that takes long."""

import sys
import tempfile
from pathlib import Path

from treewright.errors import InputError


def say(line: str) -> None:
    """Tell how far work has come."""
    print(line, file=sys.stderr, flush=True)


def check_writable(path: Path) -> None:
    """Find out before long work whether the result can be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected the name of a file")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        error.filename = str(path)
        raise


def begin_checkpoint(result: Path, *, resume: bool) -> Path:
    """Return the folder that keeps unfinished work on a result; one that is there must be wanted."""
    checkpoint = Path(f"{result}.checkpoint")
    if checkpoint.exists() and not checkpoint.is_dir():
        raise InputError(f"{checkpoint} is a file; expected a folder for unfinished work, or nothing")
    if checkpoint.exists() and not resume:
        raise InputError(f"{checkpoint} is left of work that was interrupted; give --resume, or delete it")
    return checkpoint
