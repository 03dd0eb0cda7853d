"""Ctrl-C and SIGTERM: commands end at once, leave nothing behind, and say how to go on."""

import os
import signal
import subprocess
import sys

import pytest
import typer

from treewright.cli import app
from treewright.commands.interruption import InterruptedRunError, run_in_thread, with_resume
from treewright.errors import TerminatedError

POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows has other signals")
PROGRAM = """
import sys, time
from pathlib import Path
from typing import Annotated
import typer
from treewright import cli
from treewright.commands.options import BaseCommand
from treewright.data.files import replacing

@cli.app.command(cls=BaseCommand)
def wait(out: Path, how: str, resume: Annotated[bool, typer.Option("--resume")] = False):
    with replacing(out) as stream:
        stream.write(b"half")
        print("begun", flush=True)
        if how == "compiled":
            time.sleep(600)  # which hears nothing outside the main thread, as compiled code
        for _ in range(60_000):
            time.sleep(0.01)

from treewright.__main__ import main
main()
"""


def interrupt(number, *arguments):
    """Start a command, send it a signal, and return what it says and its exit code."""
    program = [sys.executable, "-c", PROGRAM, "wait", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(program, **pipes) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
    return said, process.returncode


@POSIX
@pytest.mark.parametrize("how", ["compiled", "interpreted"])
@pytest.mark.parametrize(
    ("number", "what", "code"), [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "terminated", 143)]
)
def test_signals_end_a_command_with_the_way_on_and_nothing_left(tmp_path, how, number, what, code):
    out = tmp_path / "a model"
    line = f"treewright: {what}; resume with: treewright wait '{out}' {how} --resume\n"
    assert interrupt(number, str(out), how) == (line, code)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["mine", "a b", "--out", "x"], "treewright mine 'a b' --out x --resume"),
        (["mine", "a", "--resume", "--out", "x"], "treewright mine a --resume --out x"),
        (["mine", "--out", "x", "--", "-a"], "treewright mine --out x --resume -- -a"),
    ],
)
def test_the_way_on_is_the_same_command_with_resume_once(arguments, line):
    assert with_resume(arguments) == line


def test_results_and_errors_come_from_the_other_thread():
    assert run_in_thread(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        run_in_thread(lambda: 1 / 0)


@pytest.mark.parametrize(("is_terminated", "code"), [(False, 130), (True, 143)])
def test_an_interruption_knows_its_exit_code(is_terminated, code):
    assert InterruptedRunError(is_terminated=is_terminated).code == code


def test_termination_is_an_interrupt():
    assert issubclass(TerminatedError, KeyboardInterrupt)


@pytest.mark.parametrize(
    ("name", "values", "line"),
    [
        ("demo", {"out": "folder"}, "treewright demo --resume"),
        ("parse", {"output": "parsed.conllu"}, "treewright parse --resume"),
        ("parse", {"output": "-"}, None),
    ],
)
def test_there_is_a_way_on_where_the_result_is_a_file(monkeypatch, name, values, line):
    monkeypatch.setattr(sys, "argv", ["treewright", name])
    assert typer.main.get_command(app).load(name)._resume_command(values) == line
