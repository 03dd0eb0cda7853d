"""Commands that are killed at random moments, and go on to the same result, byte for byte.

With ``TREEWRIGHT_KILLS`` all commands are, so many times each.
"""

import os

import pytest
from kills import COMMANDS, kill_campaign

N_KILLS = int(os.environ.get("TREEWRIGHT_KILLS", "0"))
ALWAYS = ("dependency", "mine")


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("command", COMMANDS if N_KILLS else ALWAYS)
def test_nothing_is_lost_when_a_command_is_killed(command):
    counts = kill_campaign(command, N_KILLS or 3, seed=0)
    assert counts["kills"] == (N_KILLS or 3)
    assert counts["results"] > 0
    assert counts["lost"] == 0
