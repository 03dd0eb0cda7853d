"""Decorators for compiled functions; they cache machine code on disk and log compilation."""

import logging

import numba
from numba.core import event
from numba.core.types import Integer, int64, unliteral

from treewright.native.code_cache import CodeCache
from treewright.native.code_libraries import EntryCompiler

logger = logging.getLogger("treewright")


def compiled(function):
    """Compile `function` on its first call with each combination of argument types; the GIL is released."""
    return _compile_when_called(function)


def in_place(function):
    """Compile a function that allocates no arrays and only reads and modifies its arguments."""
    # Without `_nrt=False`, Numba counts references to each array of each tuple that is passed. CPU time with
    # and without counting, on sentences of `make_treebank` (best of 15): 47 and 11 ms for the Gram matrix of
    # 400 sentences with subset trees, 22 and 14 ms for the Gram matrix of 200 sentences with partial trees,
    # and 178 and 136 ms for parsing 400 sentences with order 3.
    return _compile_when_called(function, _nrt=False)


def inlined(function):
    """Inline a small function into its callers, so that no tuple of arrays has to be passed."""
    return _compile_when_called(function, _nrt=False, inline="always")


def _compile_when_called(function, **options):
    """Return a function that Python and compiled code can call, and whose machine code is cached on disk."""
    options = {"nogil": True, "no_cfunc_wrapper": True, **options}
    entry = numba.njit(pipeline_class=EntryCompiler, **options)(function)
    if not numba.config.DISABLE_JIT:
        entry._cache = CodeCache(function)
        called = numba.njit(no_cpython_wrapper=True, **options)(function)
        entry.get_overload = called.get_overload
        entry.get_call_template = lambda types, keywords: called.get_call_template(
            [_widened(each) for each in types], {name: _widened(each) for name, each in keywords.items()}
        )
    return entry


def _widened(kind):
    """Return the type that an argument is converted to; signed integers and integer literals become int64.

    Otherwise, Numba would compile a function again for each integer type.
    """
    kind = unliteral(kind)
    return int64 if isinstance(kind, Integer) and kind.signed else kind


class _CompilationNotice(event.Listener):
    """Logs once that code is being compiled, which makes the first call of a function slow."""

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
                "treewright compiles its inner loops once for this machine (stored in %s)",
                dispatcher.stats.cache_path,
            )
        logger.debug("compiling %s.%s", function.__module__, function.__name__)

    def on_end(self, event):
        pass


event.register("numba:compile", _CompilationNotice())
