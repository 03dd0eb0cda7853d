import logging
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core.caching import _CacheLocator

from treewright.native import compiling

PROGRAM = """
import numpy as np
from treewright.native.projective import is_under
is_under(np.zeros(3, np.int32), 1, 2)
"""
COMPILES = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compilation is switched off")


def run_python(program, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


@COMPILES
def test_the_first_run_says_that_it_compiles_and_the_second_is_silent(tmp_path):
    first, second = (run_python(PROGRAM, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.startswith("treewright compiles its inner loops, once for this machine (kept in ")
    assert str(tmp_path) in first
    assert first.count("\n") == 1
    assert second == ""


@COMPILES
def test_code_is_kept_in_our_cache_where_numba_can_write_nowhere(tmp_path, monkeypatch):
    ours = tmp_path / "ours"
    really_ensure = _CacheLocator.ensure_cache_path

    def ensure_if_ours(locator):
        if not Path(locator.get_cache_path()).is_relative_to(ours):
            raise PermissionError("read-only")
        really_ensure(locator)

    monkeypatch.setenv("TREEWRIGHT_CACHE", str(ours))
    monkeypatch.setattr(_CacheLocator, "ensure_cache_path", ensure_if_ours)
    folder_before = numba.config.CACHE_DIR
    function = compiling.compiled(one)
    assert function() == 1
    assert Path(function.stats.cache_path).is_relative_to(ours)
    assert folder_before == numba.config.CACHE_DIR


def one():
    return 1


@COMPILES
def test_other_packages_compile_in_silence(caplog):
    with caplog.at_level(logging.DEBUG, logger="treewright"):
        assert numba.njit(lambda: 2)() == 2
    assert caplog.records == []
