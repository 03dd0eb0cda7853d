"""What commands have in common: telling, and work that takes long."""

import tempfile
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from treewright.commands.telling import say as say
from treewright.data.files import Target, is_same_file, is_special
from treewright.errors import InputError


def check_writable(path: Path) -> None:
    """Find out before long work whether the result can be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected the name of a file")
    if is_special(path):
        return
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
