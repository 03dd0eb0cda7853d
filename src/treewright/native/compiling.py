"""The decorators of all compiled functions: cached on disk, with a log line when they compile."""

import functools
import hashlib
import logging
from pathlib import Path

import numba
from numba.core import event
from numba.core.caching import CacheImpl, _CacheLocator
from numba.core.types import unliteral

from treewright._cache import cache_folder
from treewright.native.code_libraries import EntryCompiler

logger = logging.getLogger("treewright")


def compiled(function):
    """Compile `function` at its first call with each new set of argument types; threads may share it."""
    return _compile_when_called(function)


def in_place(function):
    """Compile a function that makes no arrays, but works in those it is given."""
    # Without `_nrt=False`, Numba counts references to each array of each tuple that is handed over. CPU time
    # with and without counting, on sentences of `make_treebank`, best of 15: Gram matrix of 400 with subset
    # trees 47 and 11 ms, of 200 with partial trees 22 and 14 ms; parsing 400 with order 3 178 and 136 ms.
    return _compile_when_called(function, _nrt=False)


def inlined(function):
    """Compile a small function into those that call it, which saves handing over a tuple of arrays."""
    return _compile_when_called(function, _nrt=False, inline="always")


def _compile_when_called(function, **options):
    """Return `function` for calls from Python, which are kept on disk, and from compiled code, which are not."""
    options = {"nogil": True, "no_cfunc_wrapper": True, **options}
    entry = numba.njit(cache=True, pipeline_class=EntryCompiler, **options)(function)
    if not numba.config.DISABLE_JIT:
        called = numba.njit(no_cpython_wrapper=True, **options)(function)
        entry.get_overload = called.get_overload
        # Numba would compile it again for each integer that stands in a call.
        entry.get_call_template = lambda types, keywords: called.get_call_template(
            [unliteral(each) for each in types], {name: unliteral(each) for name, each in keywords.items()}
        )
    return entry


def fingerprint(folder):
    """Return a name for the source code in `folder` and below it, another one after any change."""
    digest = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


FINGERPRINT = fingerprint(Path(__file__).parent)


class _SourceStateLocator(_CacheLocator):
    """Tells Numba where to keep the machine code of this package: in a folder for this state of its source.

    Numba alone would go on using a function after a change in another that it calls. The folder is in
    $NUMBA_CACHE_DIR if that is set, else in treewright's cache folder, which can always be written.
    """

    def __init__(self, function, file):
        folder = _code_folder(numba.config.CACHE_DIR)
        self._path = folder / self.get_suitable_cache_subpath(file)
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function, file):
        if not function.__module__.startswith(f"{__package__}."):
            return None
        locator = cls(function, file)
        try:
            locator.ensure_cache_path()
        except OSError:  # Numba then asks the next locator
            return None
        return locator

    def get_cache_path(self):
        return str(self._path)

    def get_source_stamp(self):
        return FINGERPRINT

    def get_disambiguator(self):
        return str(self._line)


@functools.cache
def _code_folder(chosen):
    return Path(chosen, FINGERPRINT) if chosen else cache_folder("numba", FINGERPRINT)


CacheImpl._locator_classes.insert(0, _SourceStateLocator)


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
