"""Fixtures and settings for all tests."""

import os
import sys
import tracemalloc
from collections import deque
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import settings

from treewright.__main__ import main

try:
    from filelock import FileLock
except ImportError:
    FileLock = nullcontext

# Processes that test fill the cores; threads of OpenBLAS and PyTorch would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples on every run, so that a failure is the fault of the change under test;
# `--hypothesis-profile=thorough` looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("many", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile("steady")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as slow all but the first case of each test that is marked with `slow_cases`."""
    seen = set()
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in seen and item.get_closest_marker("slow_cases"):
            item.add_marker("slow")
        seen.add(name)


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory):
    """Let one of the testing processes compile a function; the others wait for what it keeps on disk."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    from treewright.native.code_cache import CodeCache

    folder, compile_now = tmp_path_factory.getbasetemp().parent, Dispatcher.compile

    def compile_or_wait(dispatcher, signature):
        if not isinstance(dispatcher._cache, CodeCache):
            return compile_now(dispatcher, signature)
        function = dispatcher.py_func
        with global_compiler_lock, FileLock(folder / f"{function.__module__}.{function.__qualname__}.lock"):
            return compile_now(dispatcher, signature)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "compile", compile_or_wait)
        yield


@pytest.fixture(scope="session")
def data_folder():
    """Return the folder of real data."""
    if "TREEWRIGHT_DATA" not in os.environ:
        pytest.skip("TREEWRIGHT_DATA is not set: no real data to read")
    return Path(os.environ["TREEWRIGHT_DATA"])


@pytest.fixture
def streaming_peak():
    """Return a function that runs through an iterator and gives the most memory held meanwhile, in bytes."""

    def measure(iterator):
        tracemalloc.start()
        deque(iterator, maxlen=0)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    return measure


@pytest.fixture
def fail(monkeypatch, capsys):
    """Return a function that runs a command that should fail and gives its one line of complaint."""

    def run_and_fail(*arguments):
        monkeypatch.setattr(sys, "argv", ["treewright", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert captured.out == ""
        return captured.err.rstrip("\n")

    return run_and_fail
