import logging
import os
import subprocess
import sys

import numba
import pytest

from treewright.native import compiling
from treewright.native.data.projective import is_under

PROGRAM = """
import numpy as np
from treewright.native.data.projective import is_under
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


@pytest.mark.slow
@COMPILES
def test_code_is_kept_in_our_cache_where_no_folder_is_chosen(tmp_path):
    said = run_python(PROGRAM, NUMBA_CACHE_DIR="", TREEWRIGHT_CACHE=str(tmp_path))
    assert f"(kept in {tmp_path / 'numba'}" in said
    assert run_python(PROGRAM, NUMBA_CACHE_DIR="", TREEWRIGHT_CACHE=str(tmp_path)) == ""


@pytest.mark.slow
@COMPILES
def test_code_is_kept_elsewhere_where_our_cache_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    said = run_python(
        PROGRAM, NUMBA_CACHE_DIR="", TREEWRIGHT_CACHE=str(tmp_path / "file" / "x"), TMPDIR=str(tmp_path)
    )
    assert f"(kept in {tmp_path}" in said


@COMPILES
def test_a_chosen_folder_that_cannot_be_written_is_not_used(tmp_path):
    (tmp_path / "file").touch()
    said = run_python(PROGRAM, NUMBA_CACHE_DIR=str(tmp_path / "file" / "x"), HOME=str(tmp_path))
    assert str(tmp_path / "file") not in said


def test_any_change_of_the_source_asks_for_new_code(tmp_path):
    names = []
    for content in ("a = 1", "a = 2", "a = 1"):
        (tmp_path / "one.py").write_text(content)
        names.append(compiling.fingerprint(tmp_path))
    (tmp_path / "folder").mkdir()
    for new in ("two.py", "folder/two.py"):
        (tmp_path / new).write_text("")
        names.append(compiling.fingerprint(tmp_path))
    assert names[0] == names[2]
    assert len(set(names)) == 4


@COMPILES
def test_code_of_other_packages_is_kept_elsewhere():
    ours, theirs = is_under.stats.cache_path, numba.njit(cache=True)(one).stats.cache_path
    assert compiling.FINGERPRINT in ours
    assert compiling.FINGERPRINT not in theirs


def one():
    return 1


@COMPILES
def test_other_packages_compile_in_silence(caplog):
    with caplog.at_level(logging.DEBUG, logger="treewright"):
        assert numba.njit(lambda: 2)() == 2
    assert caplog.records == []
