"""Workers of a cluster that are killed at random moments: how many, and whether any result is another one."""

import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress

from distributed import Client, LocalCluster

import treewright as tw
from treewright.data.conllu import format_tree
from treewright.scale import map_jobs

BANK = tw.make_treebank(n_sentences=120, seed=0)
N_PARTS = 12


def _tag_parts():
    """Return the tagging of parts of a treebank as a function of their numbers, which takes some time."""
    tagger = tw.Tagger(epochs=1).fit(BANK.dependencies[:40])

    def tag(number):
        time.sleep(0.3)
        return "".join(map(format_tree, tagger.predict(BANK.dependencies[number::N_PARTS])))

    return tag


def _compare_parts():
    """Return sums of kernels of parts of a treebank with the first trees as a function of their numbers."""

    def compare(number):
        time.sleep(0.3)
        kernel = tw.SubsetTreeKernel(decay=0.4)
        return kernel(BANK.constituents[number::N_PARTS], BANK.constituents[:5]).tolist()

    return compare


JOBS = {"tags": _tag_parts, "kernels": _compare_parts}


def worker_campaign(name, n_kills, seed):
    """Kill so many workers while a job runs on a cluster of two, which starts others in their places.

    Returns
    -------
    dict
        How many workers were killed, how many results came, and how many were not those of one machine.
    """
    rng = random.Random(f"{name} {seed}")
    work = JOBS[name]()
    right = [work(number) for number in range(N_PARTS)]
    counts = Counter({"kills": 0, "results": 0, "lost": 0})
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.run(lambda: len(tw.__all__))  # workers have loaded the package
        while counts["kills"] < n_kills:
            chosen = rng.choice(_find_processes(client))
            killer = threading.Thread(target=_kill, args=(chosen, rng.uniform(0.2, 2.5), counts))
            killer.start()
            found = map_jobs(work, range(N_PARTS), jobs=1, client=client)
            killer.join()
            counts["results"] += N_PARTS
            counts["lost"] += sum(one != other for one, other in zip(found, right, strict=True))
    return dict(counts)


def _find_processes(client):
    """Return the processes of both workers, when both are there."""
    while True:
        client.wait_for_workers(2)
        with suppress(OSError):  # one that was killed may still be counted
            processes = sorted(client.run(os.getpid).values())
            if len(processes) == 2:
                return processes
        time.sleep(0.2)


def _kill(process, seconds, counts):
    """Kill a worker after some seconds."""
    time.sleep(seconds)
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
        counts["kills"] += 1
