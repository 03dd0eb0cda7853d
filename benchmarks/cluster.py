"""Speed-up by cluster workers: each distributed task in one process, with one worker and with two workers.

    python benchmarks/cluster.py [--workers 1 2] [--only mining parsing] [--share 1]

Workers are processes on this machine with one thread each, so the time includes sending and receiving data,
but no network. Each task takes at least ten seconds in one process; `--share 0.1` uses a tenth of the
samples. A smaller task runs first, which loads compiled code and is not measured. Results are compared with
those without a cluster.

CPU seconds show which part of the work is distributed: "here" is the time of the main process, which
prepares, sends, receives and merges, and runs the scheduler; "workers" is the total of all workers. More
workers divide only the second. Use one core per worker and an otherwise idle machine, whose load is printed
to check this. Prints a Markdown table.
"""

import argparse
import os
import platform
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from distributed import Client, LocalCluster

import treewright as tw
from treewright.annotation.contract import Request
from treewright.annotation.files import annotate_file

COLUMNS = ("", "by", "seconds", "against one process", "against 1 worker", "CPU s here", "CPU s of workers")
SMALL = {"order": 1, "epochs": 2, "runs": 1, "table_bits": 16, "folds": 2}
WARM = 0.05
"""The share of the work that loads compiled code."""


def make_mining(share, folder):
    """Return a function that mines planted conjunctions: their columns and weights.

    Rows are long and pairs the longest conjunctions, so that counting takes most of the time: it is the
    places of those that survive, to be extended, that are large to send.
    """
    n_samples = int(60_000 * share)
    data = tw.make_conjunctions(
        n_samples=n_samples, n_features=2000, n_active=300, orders=(2,) * 8, random_state=0
    )

    def mine(client):
        miner = tw.ConjunctionMiner(degree=2, threshold=n_samples / 40, max_iter=1, refine=1, path=False)
        miner.fit(data.X, data.y, client=client)
        return miner.conjunctions_, miner.coef_.tolist()

    return mine


def make_folds(share, folder):
    """Return a function that makes lists of candidates, fold by fold."""
    trees = tw.make_treebank(int(1200 * share), random_state=0).dependencies
    parser = tw.DependencyParser(**SMALL)

    def parse(client):
        lists = tw.jackknife_lists(parser, trees, k=8, folds=8, client=client)
        return [array.tobytes() for array in (*lists.heads, *lists.scores)]

    return parse


def make_matrix(share, folder):
    """Return a function that compares trees by their partial trees: a matrix."""
    trees = tw.make_treebank(int(6000 * share), random_state=0).constituents
    kernel = tw.PartialTreeKernel(normalize=True)
    return lambda client: tw.gram(kernel, trees, client=client).tobytes()


def make_perceptrons(share, folder):
    """Return a function that learns to rerank by kernel perceptrons, on chunks of lists that are there."""
    trees = tw.make_treebank(int(2000 * share), random_state=0).dependencies
    parser = tw.DependencyParser(**SMALL).fit(trees)
    lists = folder / f"lists{share}"
    tw.jackknife_lists(parser, trees, k=8, folds=2, cache=lists)

    def learn(client):
        reranker = tw.DependencyReranker(parser=parser, k=8, folds=2, learner="kernel", chunks=8)
        reranker.fit(trees, cache=lists, client=client)
        reranker.save(folder / "reranker.tw")
        return (folder / "reranker.tw").read_bytes()

    return learn


def make_parsing(share, folder):
    """Return a function that parses a file with a parser of order 3: the bytes of the result."""
    source, target = str(folder / "bank.conllu"), str(folder / "parsed.conllu")
    tw.write_conllu(tw.make_treebank(int(20_000 * share), random_state=0).dependencies, source)
    parser = tw.DependencyParser(order=3, epochs=2, runs=1, table_bits=20)
    parser.fit(tw.make_treebank(500, random_state=1).dependencies)

    def parse(client):
        annotate_file(parser, source, target, Request(confidence=True), client=client)
        return Path(target).read_bytes()

    return parse


WORK = {
    "mining": make_mining,
    "folds": make_folds,
    "matrix": make_matrix,
    "perceptrons": make_perceptrons,
    "parsing": make_parsing,
}


@contextmanager
def started(n_workers):
    """Give a client of a new cluster, or None for no workers."""
    if n_workers == 0:
        yield None
        return
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


class Cost(NamedTuple):
    """What a work has taken: seconds, CPU seconds of this process, and of all workers."""

    seconds: float
    here: float
    there: float


def measure(warm, work, n_workers):
    """Return what a work has cost, after less of the same, and what it returns."""
    with started(n_workers) as client:
        if client:
            client.wait_for_workers(n_workers)
        warm(client)
        there, here, begin = workers_time(client), time.process_time(), time.perf_counter()
        found = work(client)
        seconds, here = time.perf_counter() - begin, time.process_time() - here
        return Cost(seconds, here, workers_time(client) - there), found


def workers_time(client):
    """Return the CPU seconds that the workers have taken, all together."""
    return sum(client.run(time.process_time).values()) if client else 0.0


def compare(name, options):
    """Print a row for one process and for each number of workers."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("warm", "whole"):
            Path(folder, part).mkdir()
        warm = WORK[name](WARM * options.share, Path(folder, "warm"))
        work = WORK[name](options.share, Path(folder, "whole"))
        alone, expected = measure(warm, work, 0)
        show(name, "one process", alone, None, None)
        one = None
        for n_workers in options.workers:
            cost, found = measure(warm, work, n_workers)
            assert found == expected, f"{name} with {n_workers} workers is not the same"
            one = cost if n_workers == 1 else one
            show(name, f"{n_workers} workers" if n_workers > 1 else "1 worker", cost, alone, one)


def show(name, by, cost, alone, one):
    """Print a row."""
    gains = [f"{other.seconds / cost.seconds:.2f} times" if other else "" for other in (alone, one)]
    cells = [name, by, f"{cost.seconds:.2f}", *gains, f"{cost.here:.2f}", f"{cost.there:.2f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def main():
    """Measure all, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--only", nargs="*", choices=WORK, default=list(WORK))
    parser.add_argument("--share", type=float, default=1.0)
    options = parser.parse_args()
    versions = f"treewright {tw.__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    print(f"{os.cpu_count()} cores with a load of {os.getloadavg()[0]:.2f} at the beginning, {versions}\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for name in options.only:
        compare(name, options)


if __name__ == "__main__":
    main()
