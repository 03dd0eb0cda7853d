"""What workers of a cluster gain: mining, matrices of kernels and parsing by one process, and by workers.

    python benchmarks/cluster.py [--workers 1 2] [--samples 20000] [--sentences 20000] [--trees 4000]

Workers are processes of this machine with one thread each, so that no network is measured; there should be a
core for each of them and one more. The first call of each loads compiled code and is not measured. Results
are compared with those without a cluster. Prints a table for Markdown.
"""

import argparse
import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import treewright as tw
from treewright.parsing.files import parse_file


def make_mining(options, folder):
    """Return a function that mines planted conjunctions: their columns and weights."""
    data = tw.make_conjunctions(n_samples=options.samples, n_features=2000, seed=0)

    def mine(client):
        miner = tw.ConjunctionMiner(degree=4, threshold=options.samples / 40, max_iter=2, path=False)
        miner.fit(data.X, data.y, client=client)
        return miner.conjunctions_, miner.coef_.tolist()

    return mine


def make_matrix(options, folder):
    """Return a function that compares trees by their subset trees: a matrix."""
    trees = tw.make_treebank(options.trees, seed=0).constituents
    kernel = tw.SubsetTreeKernel(decay=0.4, normalize=True)
    return lambda client: tw.gram(kernel, trees, client=client).tobytes()


def make_parsing(options, folder):
    """Return a function that parses a file with a parser of order 3: the bytes of the result."""
    source, target = str(folder / "bank.conllu"), str(folder / "parsed.conllu")
    tw.write_conllu(tw.make_treebank(options.sentences, seed=0).dependencies, source)
    parser = tw.DependencyParser(order=3, epochs=2, runs=1, table_bits=20)
    parser.fit(tw.make_treebank(500, seed=1).dependencies)

    def parse(client):
        parse_file(parser, source, target, client=client)
        return Path(target).read_bytes()

    return parse


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


def measure(work, n_workers):
    """Return the seconds of the second call, and what it returns."""
    with started(n_workers) as client:
        work(client)
        begin = time.perf_counter()
        found = work(client)
        return time.perf_counter() - begin, found


def main():
    """Measure all, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--trees", type=int, default=4000)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, treewright {tw.__version__}, NumPy {np.__version__}\n")
    print(f"| | one process | {' | '.join(f'{n} workers' for n in options.workers)} |")
    print(f"|{' --- |' * (2 + len(options.workers))}")
    for name, make in (("mining", make_mining), ("matrix", make_matrix), ("parsing", make_parsing)):
        with tempfile.TemporaryDirectory() as folder:
            work = make(options, Path(folder))
            alone, expected = measure(work, 0)
            cells = [f"{alone:.2f} s"]
            for n_workers in options.workers:
                seconds, found = measure(work, n_workers)
                assert found == expected, f"{name} with {n_workers} workers is not the same"
                cells.append(f"{seconds:.2f} s, {alone / seconds:.2f} times as fast")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
