"""Storage of machine code: in the user's cache, or in a wheel with code for common processors."""

import contextlib
import functools
import hashlib
import json
import re
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
"""Folder with the machine code of a wheel, written by `.ci/machine_code.py`; other installations lack it."""
MANIFEST = "manifest.json"
OPTIONS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE")
"""Numba settings that affect machine code."""


@functools.cache
def read_sources(folder):
    """Return the source code of all files under `folder`, by relative path."""
    paths = sorted(Path(folder).rglob("*.py"))
    return {path.relative_to(folder): path.read_bytes() for path in paths}


def fingerprint(sources):
    """Return a fingerprint of source code; any change to the code changes it."""
    digest = hashlib.sha256()
    for path, code in sources.items():
        digest.update(path.as_posix().encode() + code)
    return digest.hexdigest()[:16]


def needed_by(subfolder, sources):
    """Return the source code that a subfolder depends on: its own, the top-level modules, and all imports.

    A change elsewhere does not affect the machine code of the subfolder. Imported subfolders are included as
    a whole, since a function may receive a named tuple that its own module does not import.
    """
    needed, found = set(), {"", subfolder}
    while found:
        needed |= found
        imported = {
            name for path, code in sources.items() if _subfolder(path) in found for name in _imports(code)
        }
        found = {name for name in imported if any(_subfolder(path) == name for path in sources)} - needed
    return {path: code for path, code in sources.items() if _subfolder(path) in needed}


def _subfolder(path):
    return path.parts[0] if len(path.parts) > 1 else ""


def _imports(code):
    return {name.decode() for name in re.findall(rb"^from treewright\.native\.(\w+)", code, re.MULTILINE)}


NATIVE = Path(__file__).parent
FINGERPRINT = fingerprint(read_sources(NATIVE))


def describe_compiler():
    """Return everything that machine code depends on, except the processor."""
    return {
        "source": FINGERPRINT,
        "python": sys.implementation.cache_tag,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "triple": binding.get_process_triple(),
        **{name: str(getattr(numba.config, name)) for name in OPTIONS},
    }


def find_target(folder):
    """Return the target of the code in `folder`, as stored in Numba's index; None if it cannot run here."""
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
    """Chooses the folder in which Numba stores machine code; each version of the source code has its own.

    Numba alone would reuse the machine code of a function even if a function that it calls has changed. The
    folder is in $NUMBA_CACHE_DIR if that is set, or else in treewright's cache folder, which is always
    writable.
    """

    def __init__(self, function):
        self._path = _code_folder(numba.config.CACHE_DIR, subfolder_of(function))
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function, file):
        if not function.__module__.startswith(f"{__package__}."):
            return None
        locator = cls(function)
        try:
            locator.ensure_cache_path()
        except OSError:  # Numba then tries the next locator
            return None
        return locator

    def get_cache_path(self):
        return str(self._path)

    def get_source_stamp(self):
        return self._path.name

    def get_disambiguator(self):
        return str(self._line)


@functools.cache
def _code_folder(chosen, subfolder):
    state = fingerprint(needed_by(subfolder, read_sources(NATIVE)))
    place = (subfolder or "top", state)
    return Path(chosen, *place) if chosen else cache_folder("numba", *place)


def subfolder_of(function):
    """Return the subfolder of a function's module; empty for top-level modules."""
    return "".join(function.__module__.removeprefix(f"{__package__}.").split(".")[:-1])


class _Implementation(CompileResultCacheImpl):
    _locator_classes = [_SourceStateLocator, *CacheImpl._locator_classes]  # type: ignore[list-item] # noqa: RUF012


class CodeCache(FunctionCache):
    """Cache of the machine code of one function, read from the user's cache or else from the wheel."""

    _impl_class = _Implementation
    target = find_target(SHIPPED)

    def __init__(self, function):
        super().__init__(function)
        made = Path(self._impl.locator.get_cache_path())
        folder = SHIPPED / made.parent.name / made.name
        self._shipped = IndexDataCacheFile(str(folder), self._impl.filename_base, made.name)

    def save_overload(self, sig, data):
        """Store code; if the disk is full or read-only, the code is compiled again next time."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)

    def load_overload(self, sig, target_context):
        """Return the code for the given argument types; None if there is none."""
        found = super().load_overload(sig, target_context)
        if found is not None or self.target is None:
            return found
        types, _, code = self._index_key(sig, target_context.codegen())
        data = self._shipped.load((types, self.target, code))
        return self._impl.rebuild(target_context, data) if data is not None else None
