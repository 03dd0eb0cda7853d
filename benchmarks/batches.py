"""Runs many cases in processes that may crash: every outcome is recorded, and the other cases still run."""

import os
import resource
import signal
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

MEMORY = 3 << 30
"""Bytes that a process may take more than it has when it begins."""


@dataclass
class Found:
    """What cases came to: counts by label and outcome, defects, and bytes that were damaged."""

    counts: Counter = field(default_factory=Counter)
    defects: list = field(default_factory=list)
    n_bytes: int = 0
    seconds: float = 0.0

    @property
    def n_cases(self):
        """How many cases there were."""
        return sum(self.counts.values())


def case_generator(random_state, number):
    """Return the generator of one case, which can be made again without those before it."""
    return Random(f"{random_state}-{number}")


def run_cases(judge, numbers, *, allowed, batch=1000, limit=60, until=float("inf")):
    """Judge cases by their numbers, a batch of them in a process of its own.

    Parameters
    ----------
    judge : callable
        Takes a number; returns a label, what the case came to and, where that is counted, how many bytes
        were damaged.
    numbers : range
    allowed : callable
        Takes what a case came to; tells whether that may be.
    batch : int
        Cases that a process works on.
    limit : int
        Seconds that a case may take.
    until : float
        Time at which no more batches are begun.
    """
    found = Found()
    begun = time.monotonic()
    at = numbers.start
    while at < numbers.stop and time.monotonic() < until:
        stop = min(at + batch, numbers.stop)
        done = _run_batch(judge, range(at, stop), allowed, limit, found)
        at += done
    found.seconds = time.monotonic() - begun
    return found


def _run_batch(judge, numbers, allowed, limit, found):
    """Run one process; return how many cases it has come through or died of."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            with os.fdopen(writing, "w") as out:
                _work(judge, numbers, limit, out)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    n_done = 0
    with os.fdopen(reading) as lines:
        for line in lines:
            label, outcome, n_bytes = line.rstrip("\n").split("\t")
            found.n_bytes += int(n_bytes)
            _count(found, label, outcome, numbers[n_done], allowed)
            n_done += 1
    _, status = os.waitpid(child, 0)
    if n_done < len(numbers):
        ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
        _count(found, "process", f"died of {ended}", numbers[n_done], allowed)
        n_done += 1
    return n_done


def _count(found, label, outcome, number, allowed):
    found.counts[label, outcome.partition(":")[0]] += 1
    if not allowed(outcome):
        found.defects.append({"case": number, "label": label, "outcome": outcome})


def _work(judge, numbers, limit, out):
    """Judge cases; too much time ends the process, in compiled code too."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in numbers:
        signal.alarm(limit)
        label, outcome, *n_bytes = judge(number)
        print(label, " ".join(outcome.split())[:300], sum(n_bytes), sep="\t", file=out, flush=True)
    signal.alarm(0)
