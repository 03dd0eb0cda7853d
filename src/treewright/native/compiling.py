"""The one decorator of all compiled functions: cached on disk, and heard when it compiles."""

import contextlib
import logging

import numba
from numba.core import event

from treewright._cache import cache_folder

logger = logging.getLogger("treewright")


def compiled_into(function):
    """Compile `function` into each of its callers.

    A call that hands over groups of arrays costs more than a small function does.
    """
    return numba.njit(inline="always")(function)


def compiled(function):
    """Compile `function` at its first call, for each new set of argument types, and keep the result.

    The machine code goes where Numba puts it: to $NUMBA_CACHE_DIR, beside the source, or to Numba's
    folder in the user's home; where none of these can be written, to treewright's own cache folder.
    """
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:
        with _cache_in(cache_folder("numba")):
            return numba.njit(cache=True)(function)


@contextlib.contextmanager
def _cache_in(folder):
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


class _CompilationNotice(event.Listener):
    """Say once that code is being compiled, since the first call of anything is then slow."""

    def __init__(self):
        self.said = False

    def on_start(self, event):
        dispatcher = event.data["dispatcher"]
        function = dispatcher.py_func
        if not function.__module__.startswith(__package__):
            return
        if not self.said:
            self.said = True
            logger.warning(
                "treewright compiles its inner loops, once for this machine (kept in %s)",
                dispatcher.stats.cache_path,
            )
        logger.debug("compiling %s.%s", function.__module__, function.__name__)

    def on_end(self, event):
        pass


event.register("numba:compile", _CompilationNotice())
