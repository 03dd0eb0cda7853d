"""Fixtures and settings for all tests."""

import os
import sys
import tracemalloc
from collections import deque
from pathlib import Path

import pytest
from hypothesis import settings

from treewright.__main__ import main

# The same examples on every run, so that a failure is the fault of the change under test;
# `--hypothesis-profile=thorough` looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile("steady")


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
