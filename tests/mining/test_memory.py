"""What mining takes of memory, measured in a process of its own."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from treewright import ConjunctionMiner
from treewright.errors import InputError
from treewright.mining.memory import Memory

ALLOWED = 4
"""MiB beyond the limit: objects of Python, and pages of compiled code that are touched first."""
WORK = """
import json, re, sys
import numpy as np
from scipy.sparse import csr_matrix
import treewright as tw

def read(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

rng = np.random.default_rng(0)
dense = rng.random((40_000, 40)) < 0.3
X = csr_matrix(dense.astype(np.int8))
y = (dense[:, 3] & dense[:, 10]) ^ (rng.random(len(dense)) < 0.4)
del dense
options = {"degree": 4, "threshold": 130, "path": False, "max_iter": 1, "refine": 3}
limit = int(sys.argv[1]) << 20 or None
tw.ConjunctionMiner(**{**options, "threshold": 100}, memory_limit=limit).fit(X[:500], y[:500])
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")  # begins the peak anew
before, reports = read("VmRSS"), []
with tw.progress.listening(reports.append):
    miner = tw.ConjunctionMiner(**options, memory_limit=limit).fit(X, y)
records = [each.record for each in reports if isinstance(each, tw.progress.Message)]
on_disk = max(getattr(each, "n_bytes_on_disk", 0) for each in records)
print(json.dumps([read("VmHWM") - before, on_disk / (1 << 20), len(miner.conjunctions_)]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="no peak of memory to begin anew")
def test_mining_takes_no_more_memory_than_its_limit_where_survivors_take_several_times_as_much():
    limit = 24
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WORK, str(limit)], stdout=subprocess.PIPE, check=True
    )
    growth, on_disk, n_selected = json.loads(done.stdout)
    assert growth < limit + ALLOWED
    assert on_disk > 3 * limit
    assert n_selected


@pytest.mark.parametrize("degree", [1, 2])
def test_columns_that_cannot_be_counted_within_the_limit_are_refused_before_they_are(degree):
    X = csr_matrix((np.ones(40, dtype=np.int8), np.arange(40), np.arange(41)), shape=(40, 1_000_000))
    miner = ConjunctionMiner(degree=degree, threshold=1, memory_limit=8 << 20)
    with pytest.raises(
        InputError, match="8,388,608 bytes; counts of 1,000,000 columns in 40 rows need at lea"
    ):
        miner.fit(X, np.arange(40) % 2)


def test_what_is_held_counts_towards_the_limit():
    memory = Memory(800)
    memory.require("rows", 700)
    memory.hold("samples", 100)
    memory.require("rows", 600)
    memory.hold("samples", 200)
    with pytest.raises(InputError) as error:
        memory.require("9 rows", 600)
    assert str(error.value) == (
        "memory_limit is 800 bytes; 9 rows need at least 915 (1 MiB); "
        "use a higher limit or a higher threshold"
    )
    Memory(915).require("9 rows", 800)


def test_without_a_limit_nothing_is_refused():
    Memory().require("rows", 1 << 60)
