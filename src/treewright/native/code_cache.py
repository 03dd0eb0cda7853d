"""Where machine code is kept: in the user's cache, or in a wheel with code for common processors."""

import contextlib
import functools
import hashlib
import json
import sys
from pathlib import Path

import llvmlite
import numba
from llvmlite import binding
from numba.core.caching import (
    CacheImpl,
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)

from treewright._cache import cache_folder

SHIPPED = Path(__file__).parent / "machine_code"
"""The folder of a wheel with machine code, made by `.ci/machine_code.py`; other installations have none."""
MANIFEST = "manifest.json"
OPTIONS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE")
"""Settings of Numba that change machine code."""


def fingerprint(folder):
    """Return a name for the source code in `folder` and below it, another one after any change."""
    digest = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


FINGERPRINT = fingerprint(Path(__file__).parent)


def describe_compiler():
    """Return all that machine code depends on besides the processor."""
    return {
        "source": FINGERPRINT,
        "python": sys.implementation.cache_tag,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "triple": binding.get_process_triple(),
        **{name: str(getattr(numba.config, name)) for name in OPTIONS},
    }


def find_target(folder):
    """Return the target of the code in `folder`, as Numba's index names it; None if it does not fit here."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    is_chosen = numba.config.CPU_NAME is not None or numba.config.CPU_FEATURES is not None
    if is_chosen or manifest["compiler"] != describe_compiler():
        return None
    present = binding.get_host_cpu_features()
    return tuple(manifest["target"]) if all(present.get(name) for name in manifest["features"]) else None


class _SourceStateLocator(_CacheLocator):
    """Tells Numba where to keep the machine code of this package: in a folder for this state of its source.

    Numba alone would go on using a function after a change in another that it calls. The folder is in
    $NUMBA_CACHE_DIR if that is set, else in treewright's cache folder, which can always be written.
    """

    def __init__(self, function):
        self._path = _code_folder(numba.config.CACHE_DIR) / place_of(function)
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function, file):
        if not function.__module__.startswith(f"{__package__}."):
            return None
        locator = cls(function)
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


def place_of(function):
    """Return the folder of a function in a cache, that of its module."""
    return Path(*function.__module__.removeprefix(f"{__package__}.").split(".")[:-1])


class _Implementation(CompileResultCacheImpl):
    _locator_classes = [_SourceStateLocator, *CacheImpl._locator_classes]  # type: ignore[list-item] # noqa: RUF012


class CodeCache(FunctionCache):
    """The machine code of one function: the user's, else that of the wheel."""

    _impl_class = _Implementation
    target = find_target(SHIPPED)

    def __init__(self, function):
        super().__init__(function)
        folder = SHIPPED / place_of(function)
        self._shipped = IndexDataCacheFile(str(folder), self._impl.filename_base, FINGERPRINT)

    def save_overload(self, sig, data):
        """Keep code, unless the disk is full or cannot be written: it is then compiled again another time."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)

    def load_overload(self, sig, target_context):
        """Return the code for argument types, None if there is none."""
        found = super().load_overload(sig, target_context)
        if found is not None or self.target is None:
            return found
        types, _, code = self._index_key(sig, target_context.codegen())
        data = self._shipped.load((types, self.target, code))
        return self._impl.rebuild(target_context, data) if data is not None else None
