"""Commands that are killed at random moments, and go on to the same result, byte for byte.

With ``TREEWRIGHT_KILLS`` all commands are, so many times each; some of them in a row, without an end between.
"""

import os
import signal
import subprocess
import sys
import time

import pytest
from commands import run
from kills import COMMANDS, OLD, kill_campaign, kill_in_a_row

import treewright as tw

N_KILLS = int(os.environ.get("TREEWRIGHT_KILLS", "0"))
POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGKILL")


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("command", COMMANDS if N_KILLS else ["dependency"])
def test_nothing_is_lost_when_a_command_is_killed(command):
    counts = kill_campaign(command, N_KILLS or 3, random_state=0)
    assert counts["kills"] == (N_KILLS or 3)
    assert counts["results"] > 0
    assert counts["lost"] == 0


@pytest.mark.slow
@POSIX
def test_nothing_is_lost_when_a_command_is_killed_again_and_again_before_its_end():
    counts = kill_in_a_row("tagger", 20, random_state=0)
    assert counts["in a row"] == 20
    assert counts["results"] == 1
    assert counts["lost"] == 0


@POSIX
def test_a_conversion_that_is_killed_leaves_the_old_file_and_the_next_one_cleans_up(tmp_path):
    trees, out = tw.make_treebank(40, random_state=0).dependencies, tmp_path / "out.conllu"
    tw.write_conllu(trees, tmp_path / "bank.conllu")
    out.write_bytes(OLD)
    program = [sys.executable, "-m", "treewright", "convert", "-", str(out), "--from", "conllu"]
    text = (tmp_path / "bank.conllu").read_bytes()
    with subprocess.Popen(program, stdin=subprocess.PIPE) as process:
        process.stdin.write(text * 20)
        process.stdin.flush()
        while not any(path.stat().st_size for path in tmp_path.glob(".treewright-*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert out.read_bytes() == OLD
    run("convert", tmp_path / "bank.conllu", out)
    assert out.read_bytes() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank.conllu", "out.conllu"]
