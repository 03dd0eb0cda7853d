"""Cluster workers are killed at random moments; counts the kills and checks that no result changes."""

import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

from distributed import Client, LocalCluster

import treewright as tw
from treewright.annotation.contract import Request
from treewright.annotation.files import annotate_file

PARSER = {"order": 1, "epochs": 1, "runs": 1, "table_bits": 14, "folds": 2}
N_WORKERS = 2
PATIENCE, LIMIT = 60, 300
"""Seconds after which workers that are not there, and a run that is not over, never will be."""


def _mining(folder):
    """Return what mines conjunctions: counts of blocks, which are put together."""
    data = tw.make_conjunctions(n_samples=12_000, n_features=1000, random_state=0)

    def mine(client):
        miner = tw.ConjunctionMiner(degree=4, threshold=180, max_iter=2, path=False)
        miner.fit(data.X, data.y, client=client)
        return miner.conjunctions_, miner.coef_.tobytes()

    return mine


def _folds(folder):
    """Return what parses the folds of a treebank, each by a parser that has learnt from the others."""
    trees = tw.make_treebank(n_sentences=100, random_state=0).dependencies

    def parse(client):
        lists = tw.jackknife_lists(tw.DependencyParser(**PARSER), trees, k=4, folds=4, client=client)
        columns = (lists.heads, lists.scores, lists.probabilities)
        return [array.tobytes() for column in columns for array in column]

    return parse


def _matrix(folder):
    """Return what compares trees with each other: strips of a matrix."""
    trees = tw.make_treebank(n_sentences=1500, random_state=0).constituents
    kernel = tw.PartialTreeKernel(normalize=True)
    return lambda client: tw.gram(kernel, trees, client=client).tobytes()


def _perceptrons(folder):
    """Return what learns to rerank by kernel perceptrons, one for each chunk of the lists."""
    trees = tw.make_treebank(n_sentences=300, random_state=0).dependencies
    parser = tw.DependencyParser(**PARSER).fit(trees)
    options = {"parser": parser, "k": 8, "folds": 2, "learner": "kernel", "chunks": 8}

    def learn(client):
        reranker = tw.DependencyReranker(**options).fit(trees, cache=folder / "lists", client=client)
        reranker.save(folder / "reranker.tw")
        return (folder / "reranker.tw").read_bytes()

    return learn


def _parsing(folder):
    """Return what parses a file."""
    source, target = folder / "bank.conllu", folder / "parsed.conllu"
    tw.write_conllu(tw.make_treebank(n_sentences=3000, random_state=0).dependencies, source)
    parser = tw.DependencyParser(**PARSER).fit(tw.make_treebank(n_sentences=100, random_state=1).dependencies)

    def parse(client):
        annotate_file(parser, str(source), str(target), Request(k=2), client=client)
        return target.read_bytes()

    return parse


JOBS = {
    "mining": _mining,
    "folds": _folds,
    "matrix": _matrix,
    "perceptrons": _perceptrons,
    "parsing": _parsing,
}


def worker_campaign(name, n_kills, random_state):
    """Kill so many workers while a job runs on a cluster, which starts others in their places.

    Returns
    -------
    dict
        How many workers were killed in the middle of a run, how many of them had jobs then, how many results
        came, and how many did not come, or were not, to the bit, that of one machine.
    """
    rng = random.Random(f"{name} {random_state}")
    counts = Counter({"kills": 0, "at work": 0, "results": 0, "lost": 0})
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        work = JOBS[name](Path(folder))
        right = work(None)
        assert work(client) == right  # and workers have loaded all code then
        begun = time.monotonic()
        work(client)
        seconds = time.monotonic() - begun
        while counts["kills"] < n_kills and not counts["lost"]:
            chosen, moment = rng.choice(_find_workers(cluster, client)), rng.uniform(0, seconds)
            found = _run_and_kill(partial(work, client), moment, partial(_kill, client, chosen, counts))
            counts["lost" if found != [right] else "results"] += 1
    return dict(counts)


def _run_and_kill(work, moment, kill):
    """Return what comes of work, in a list, if `kill` is called at some moment at which it is not over."""
    found = []

    def run():
        with suppress(tw.errors.TreewrightError):
            found.append(work())

    running = threading.Thread(target=run, daemon=True)
    running.start()
    running.join(moment)
    if running.is_alive():
        kill()
    running.join(LIMIT)
    return found


def _kill(client, chosen, counts):
    """Kill a worker, and note whether it had jobs."""
    address, process = chosen
    counts["at work"] += bool(client.processing().get(address))
    os.kill(process, signal.SIGKILL)
    counts["kills"] += 1


def _find_workers(cluster, client):
    """Return addresses and processes of all workers, when all are there."""
    while True:
        try:
            client.wait_for_workers(N_WORKERS, timeout=PATIENCE)
            with suppress(OSError):  # one that was killed may still be counted
                found = sorted(client.run(os.getpid).items())
                if len(found) == N_WORKERS:
                    return found
        except TimeoutError:  # one that is killed while it starts is not started again
            cluster.scale(0)
            cluster.scale(N_WORKERS)
        time.sleep(0.2)
