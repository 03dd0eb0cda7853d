import logging
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core import event

from treewright.native.compiling import in_place

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
    assert first.startswith("treewright compiles its inner loops once for this machine (stored in ")
    assert str(tmp_path) in first
    assert first.count("\n") == 1
    assert second == ""


@pytest.mark.slow
@COMPILES
def test_code_is_kept_in_our_cache_where_no_folder_is_chosen(tmp_path):
    said = run_python(PROGRAM, NUMBA_CACHE_DIR="", TREEWRIGHT_CACHE=str(tmp_path))
    assert f"(stored in {tmp_path / 'numba'}" in said
    assert run_python(PROGRAM, NUMBA_CACHE_DIR="", TREEWRIGHT_CACHE=str(tmp_path)) == ""


@pytest.mark.slow
@COMPILES
def test_code_is_kept_elsewhere_where_our_cache_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    said = run_python(
        PROGRAM, NUMBA_CACHE_DIR="", TREEWRIGHT_CACHE=str(tmp_path / "file" / "x"), TMPDIR=str(tmp_path)
    )
    assert f"(stored in {tmp_path}" in said


@COMPILES
def test_a_chosen_folder_that_cannot_be_written_is_not_used(tmp_path):
    (tmp_path / "file").touch()
    said = run_python(PROGRAM, NUMBA_CACHE_DIR=str(tmp_path / "file" / "x"), HOME=str(tmp_path))
    assert str(tmp_path / "file") not in said


@COMPILES
def test_other_packages_compile_in_silence(caplog):
    with caplog.at_level(logging.DEBUG, logger="treewright"):
        assert numba.njit(lambda: 2)() == 2
    assert caplog.records == []


@in_place
def add_up(start, step, numbers):
    total = start
    for number in numbers:
        total += step * number
    return total


@in_place
def add_up_twice(numbers, sums):
    sums[0] = add_up(0, 1, numbers)
    sums[1] = add_up(numbers[0], 2, numbers)


@COMPILES
def test_short_integers_and_those_in_the_source_compile_no_function_again():
    heard = []

    class Listener(event.Listener):
        def on_start(self, event):
            heard.append(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event):
            pass

    add_up_twice._cache.disable()
    sums = np.zeros(2, np.int64)
    with event.install_listener("numba:compile", Listener()):
        add_up_twice(np.arange(4, dtype=np.int32), sums)
    assert sums.tolist() == [6, 12]
    assert heard == ["add_up_twice", "add_up"]
