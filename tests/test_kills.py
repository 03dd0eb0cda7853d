"""Commands that are killed at random moments, and go on to the same result, byte for byte.

With ``TREEWRIGHT_KILLS`` all commands are, so many times each; some of them in a row, without an end between.
"""

import os

import pytest
from kills import COMMANDS, kill_campaign, kill_in_a_row

N_KILLS = int(os.environ.get("TREEWRIGHT_KILLS", "0"))
POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGKILL")


@POSIX
@pytest.mark.parametrize("command", COMMANDS if N_KILLS else ["dependency"])
def test_nothing_is_lost_when_a_command_is_killed(command):
    counts = kill_campaign(command, N_KILLS or 3, seed=0)
    assert counts["kills"] == (N_KILLS or 3)
    assert counts["results"] > 0
    assert counts["lost"] == 0


@POSIX
@pytest.mark.parametrize("command", ["reranker", "mine"] if N_KILLS else ["mine"])
def test_nothing_is_lost_when_a_command_is_killed_again_and_again_before_its_end(command):
    counts = kill_in_a_row(command, N_KILLS or 4, seed=0)
    assert counts["in a row"] == (N_KILLS or 4)
    assert counts["with progress"] >= counts["in a row"] // 4
    assert counts["results"] > 0
    assert counts["lost"] == 0
