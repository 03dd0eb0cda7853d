import logging
import os
import subprocess
import sys

import numba
import pytest

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


def test_any_change_of_the_source_asks_for_new_code(tmp_path):
    names = []
    for content in ("a = 1", "a = 2", "a = 1"):
        (tmp_path / "one.py").write_text(content)
        names.append(compiling.fingerprint(tmp_path))
    (tmp_path / "two.py").write_text("")
    names.append(compiling.fingerprint(tmp_path))
    assert names[0] == names[2]
    assert len(set(names)) == 3


def test_the_folder_of_other_packages_is_left_alone():
    before = numba.config.CACHE_DIR
    compiling.compiled(one)
    assert before == numba.config.CACHE_DIR


def one():
    return 1


@COMPILES
def test_other_packages_compile_in_silence(caplog):
    with caplog.at_level(logging.DEBUG, logger="treewright"):
        assert numba.njit(lambda: 2)() == 2
    assert caplog.records == []
