"""Work in a process of its own."""

import os
import sys
from pathlib import Path

import pytest

from treewright.errors import TreewrightError
from treewright.progress import messages_to
from treewright.report.separate_process import LostProcessError, peak_memory, run_alone


@pytest.fixture
def helper(tmp_path, monkeypatch):
    """Return the name of a module that a process of its own can import."""
    lines = [
        "import os, signal",
        "from treewright.errors import InputError",
        "from treewright.progress import report",
        "def double(argument):",
        "    print('noise')",
        "    report('työ')",
        "    return {'n': 2 * argument['n'], 'process': os.getpid()}",
        "def refuse(argument):",
        "    raise InputError('n is 1; expected 2')",
        "def die(argument):",
        "    os.kill(os.getpid(), signal.SIGKILL)",
        "def burst(argument):",
        "    raise MemoryError",
    ]
    Path(tmp_path, "helper_of_alone.py").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return "helper_of_alone"


def test_a_process_of_its_own_tells_and_returns(helper):
    told = []
    with messages_to(told.append):
        result = run_alone(f"{helper}:double", {"n": 21})
    assert (result["n"], told) == (42, ["työ"])
    assert result["process"] != os.getpid()


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ("refuse", TreewrightError, "^n is 1; expected 2$"),
        pytest.param(
            *("die", LostProcessError, "^was killed by signal 9$"),
            marks=pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals"),
        ),
        ("burst", LostProcessError, "^ran out of memory$"),
    ],
)
def test_what_goes_wrong_in_a_process_of_its_own_is_said(function, error, message, helper):
    with pytest.raises(error, match=message):
        run_alone(f"{helper}:{function}", {})


def test_peak_memory_is_known_here():
    assert peak_memory() > 1 << 20
