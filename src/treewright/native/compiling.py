"""The decorators of all compiled functions: cached on disk, and heard when they compile."""

import contextlib
import hashlib
import logging
from pathlib import Path

import numba
from numba.core import event

from treewright._cache import cache_folder

logger = logging.getLogger("treewright")


def fingerprint(folder):
    """Return a name for the source code in `folder`, another one after any change."""
    digest = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


FINGERPRINT = fingerprint(Path(__file__).parent)


def compiled(function):
    """Compile `function` at its first call, for each new set of argument types, and keep the result.

    Several threads can run it at once.

    The machine code goes to $NUMBA_CACHE_DIR if that is set, else to treewright's cache folder, which can
    always be written; within it, to a folder for this state of the source. Numba alone would go on using
    a function after a change in another that it calls.
    """
    with _cache_in(_code_folder()):
        return numba.njit(cache=True, nogil=True)(function)


def in_place(function):
    """Compile a function that makes no arrays, but works in those it is given.

    Numba then does not count references, which in functions that handle tuples of arrays takes longer than
    all they do.
    """
    with _cache_in(_code_folder()):
        return numba.njit(cache=True, nogil=True, _nrt=False)(function)


def inlined(function):
    """Compile a small function into those that call it.

    Handing over a tuple of arrays takes longer than what such a function does with a few numbers of them.
    """
    with _cache_in(_code_folder()):
        return numba.njit(cache=True, nogil=True, _nrt=False, inline="always")(function)


def _code_folder():
    chosen = numba.config.CACHE_DIR
    return Path(chosen, FINGERPRINT) if chosen else cache_folder("numba", FINGERPRINT)


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
