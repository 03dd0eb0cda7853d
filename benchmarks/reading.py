"""Time and memory of reading CoNLL-U, compared with the `conllu` package in the same run.

python benchmarks/reading.py en_ewt-ud-train.conllu
"""

import gc
import sys
import time
import tracemalloc
from collections import deque
from importlib.metadata import version

import conllu

import treewright as tw

REPEATS = 5


def best_time(action):
    """Return the shortest of several runs, garbage collected in between, in seconds."""
    times = []
    for _ in range(REPEATS):
        gc.collect()
        start = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - start)
        del result
    return min(times)


def peak_memory(action):
    """Return the highest memory in use during one run, in MiB."""
    gc.collect()
    tracemalloc.start()
    result = action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del result
    return peak / 2**20


def read_whole_with_conllu(path):
    """Parse a whole file with the conllu package."""
    with open(path, encoding="utf-8") as stream:
        return conllu.parse(stream.read())


def stream_with_conllu(path):
    """Parse a file sentence by sentence with the conllu package."""
    with open(path, encoding="utf-8") as stream:
        deque(conllu.parse_incr(stream), maxlen=0)


def main(path):
    """Print the table."""
    n_jobs = {
        "list": (lambda: tw.read_conllu(path), lambda: read_whole_with_conllu(path)),
        "stream": (lambda: deque(tw.iter_conllu(path), maxlen=0), lambda: stream_with_conllu(path)),
    }
    print(f"{path}: {len(tw.read_conllu(path))} sentences, best of {REPEATS}; conllu {version('conllu')}")
    print(f"{'':8}{'treewright':>22}{'conllu':>22}{'ratio':>8}")
    for name, (ours, theirs) in n_jobs.items():
        times = best_time(ours), best_time(theirs)
        peaks = peak_memory(ours), peak_memory(theirs)
        cells = "".join(f"{t:>10.2f} s{p:>6.1f} MiB" for t, p in zip(times, peaks, strict=True))
        print(f"{name:8}{cells}{times[1] / times[0]:>8.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
