"""Cost against size: time and memory of reading, parsing, mining, kernels and training as treebanks grow.

    python benchmarks/scale.py make --folder scale [--sizes 1000 10000 100000 1000000]
    python benchmarks/scale.py reading --folder scale [--sizes ...]
    python benchmarks/scale.py passing --folder scale
    python benchmarks/scale.py parsing --folder scale [--orders 1 3]
    python benchmarks/scale.py conjunctions --folder scale [--limit 16]
    python benchmarks/scale.py subtrees --folder scale
    python benchmarks/scale.py kernels --folder scale
    python benchmarks/scale.py training --folder scale
    python benchmarks/scale.py show --json rows [--plot rows.svg]

Treebanks are those of `make_treebank`, in blocks of 10,000 sentences of the seeds 0, 1, 2, ..., so that no
more than one block is in memory; a smaller one is the beginning of a larger one. `make` also trains the
parsers, of order 1 and 3, on 2,000 sentences of another seed.

Each row is measured in a process of its own, after a call on a few sentences that loads compiled code. CPU
seconds are those of the user and of the system together, which other work on the machine disturbs less than
wall clock; memory before the work has the packages, models and inputs that are there already, and peak memory
is that of the whole process. Slopes are those of a straight line through the logarithms of all rows, and of
the last two: 1 is linear, 2 quadratic, 0 flat. Prints tables for Markdown, and with --json adds the rows to a
file, one a line.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

BLOCK = 10_000
"""Sentences made with one seed."""
SIZES = (1000, 10_000, 100_000, 1_000_000)
TRAINING_SEED = 1_000_000
N_TRAINING = 2000
WARM = 50
"""Sentences of the call that loads compiled code."""
SHARE = 50
"""Thresholds of mining are one sentence in so many."""
MEGABYTE = 1 << 20
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
COLUMNS = ("", "sentences", "seconds", "CPU s", "a CPU second", "MB before", "peak MB", "")


# What is measured: each function prepares, and returns the work itself, which may return a note on it.


def stream(path):
    """Read sentence by sentence."""
    import treewright as tw

    next(tw.iter_conllu(path))
    return lambda: f"{sum(map(len, tw.iter_conllu(path))):,} words"


def read_list(path):
    """Read a whole file."""
    import treewright as tw

    next(tw.iter_conllu(path))
    return lambda: f"{len(tw.read_conllu(path)):,} trees"


def write(path):
    """Write trees that are in memory."""
    import treewright as tw

    trees, target = tw.read_conllu(path), f"{path}.written"
    tw.write_conllu(trees[:WARM], target)

    def work():
        tw.write_conllu(trees, target)
        size = os.path.getsize(target)
        os.remove(target)
        return f"{size / len(trees):,.0f} bytes a sentence"

    return work


def send(path):
    """Pickle trees and read them back, 250 at a time, as when a cluster parses a file."""
    import pickle

    import treewright as tw

    trees = tw.read_conllu(path)

    def work():
        n_bytes = 0
        for begin in range(0, len(trees), 250):
            content = pickle.dumps(trees[begin : begin + 250], pickle.HIGHEST_PROTOCOL)
            n_bytes += len(content)
            pickle.loads(content)
        return f"{n_bytes / len(trees):,.0f} bytes a sentence"

    return work


def parse(path, model):
    """Run `treewright parse`, as from the command line."""
    from treewright.cli import run

    def call(source, target):
        sys.argv = ["treewright", "parse", model, source, "--output", target]
        if run() != 0:
            raise SystemExit(f"treewright parse {model} {source} failed")

    warm, target = f"{path}.begin", f"{path}.{Path(model).stem}"
    write_beginning(path, warm)
    call(warm, target)
    os.remove(warm)

    def work():
        call(path, target)
        size = os.path.getsize(target)
        os.remove(target)
        return f"{size / MEGABYTE:,.0f} MB written"

    return work


def write_beginning(path, target):
    """Write the first sentences of a file to another."""
    import treewright as tw

    tw.write_conllu(islice(tw.iter_conllu(path), WARM), target)


def conjunctions(path, limit):
    """Mine conjunctions of up to three lemmas that tell whether a noun has a prepositional phrase."""
    from treewright.mining.miner import ConjunctionMiner

    rows, labels = lemma_rows(path)
    options = {
        "degree": 3,
        "path": False,
        "max_iter": 3,
        "tolerance": 0.0,
        "refine": 5,
        "memory_limit": limit,
    }
    ConjunctionMiner(threshold=500 / SHARE, **options).fit(rows[:500], labels[:500])

    def work():
        reports = []
        # A threshold is a number of samples: with a fixed one, ever rarer conjunctions would be counted.
        miner = ConjunctionMiner(threshold=rows.shape[0] / SHARE, **options)
        miner.fit(rows, labels, progress=reports.append)
        orders = [each for each in reports if hasattr(each, "n_bytes_on_disk")]
        on_disk = max(each.n_bytes_on_disk for each in orders) / MEGABYTE
        kept = max(each.n_bytes for each in orders) / MEGABYTE
        n_met = sum(each.n_instances for each in orders)
        found = f"{len(miner.conjunctions_):,} selected, {n_met:,} counted"
        return f"{found}, kept {kept:,.0f} MB and {on_disk:,.0f} MB on disk"

    return work


def lemma_rows(path):
    """Return which lemmas each sentence has, a binary matrix, and whether it has an nmod, from a stream."""
    from array import array

    import numpy as np
    from scipy.sparse import csr_matrix

    import treewright as tw

    columns, indices, first, labels = {}, array("i"), array("q", [0]), array("b")
    for tree in tw.iter_conllu(path):
        indices.extend(sorted({columns.setdefault(lemma, len(columns)) for lemma in tree.lemmas}))
        first.append(len(indices))
        labels.append("nmod" in tree.deprels)
    present = np.ones(len(indices), dtype=np.int8)
    arrays = present, np.frombuffer(indices, dtype=np.int32), np.frombuffer(first, dtype=np.int64)
    return csr_matrix(arrays, shape=(len(labels), len(columns))), np.frombuffer(labels, dtype=np.int8)


def subtrees(path, model):
    """Mine subtrees of up to two arcs that tell the best of eight candidates, where a parser errs."""
    import treewright as tw

    parser = tw.load(model)
    trees = tw.read_conllu(path)
    found = parser.structures(trees, 8)
    mine_subtrees(trees[:500], found[:500], parser.scale_)
    return lambda: mine_subtrees(trees, found, parser.scale_)


def mine_subtrees(trees, found, scale):
    """Run two rounds through the space of subtrees."""
    import numpy as np

    import treewright as tw

    heads = [each.heads for each in found]
    right = [int((some == tree.heads).sum(axis=1).argmax()) for some, tree in zip(heads, trees, strict=True)]
    first = np.concatenate([[0], np.cumsum([len(each) for each in heads])])
    scores = np.concatenate([each.scores for each in found]) * scale
    problem = tw.list_problem(first, first[:-1] + right, given=scores)
    space = tw.SubtreeSpace(trees, heads, copies=1)
    options = {"max_iter": 2, "path": False, "tolerance": 0.0, "refine": 5}
    mined = tw.GradientMiner(degree=2, threshold=len(trees) / SHARE, **options).fit(space, problem)
    n_met = sum(each.n_instances for each in mined.orders)
    return f"{mined.n_selected:,} selected, {n_met:,} counted"


def gram(path):
    """Write the matrix of the subset tree kernel to a file."""
    import treewright as tw

    trees = tw.read_brackets(path)
    kernel = tw.SubsetTreeKernel(decay=0.4, normalize=True)
    target = f"{path}.npy"
    tw.gram(kernel, trees[:WARM], out=target)

    def work():
        tw.gram(kernel, trees, out=target, memory=256 * MEGABYTE)
        size = os.path.getsize(target)
        os.remove(target)
        return f"{len(trees) * (len(trees) + 1) // 2:,} pairs, {size / MEGABYTE:,.0f} MB written"

    return work


def nystroem(path):
    """Turn trees into 200 numbers each, by their kernels with 200 of the first 1,000 trees."""
    import treewright as tw

    trees = tw.read_brackets(path)
    landmarks = tw.TreeKernelNystroem(tw.SubsetTreeKernel(decay=0.4, normalize=True), n_components=200)
    landmarks.fit(trees[:1000])
    landmarks.transform(trees[:WARM])
    return lambda: f"{landmarks.transform(trees).shape[1]} numbers a tree"


def train(path):
    """Train a dependency parser of order 1, in one run of three epochs."""
    import treewright as tw

    trees = tw.read_conllu(path)
    options = {"order": 1, "runs": 1, "epochs": 3, "folds": 2}
    tw.DependencyParser(**options).fit(trees[:WARM])

    def work():
        parser = tw.DependencyParser(**options).fit(trees)
        return f"heads kept by pruning {parser.recall_:.2f}%"

    return work


# How it is measured.


def measure(function, *arguments):
    """Return time and memory of a function in a process of its own, with one thread."""
    call = json.dumps([function.__name__, arguments])
    environment = os.environ | dict.fromkeys(THREADS, "1")
    command = [sys.executable, __file__, "--call", call]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_call(text):
    """Prepare and do the work that a text names, and print its time and memory."""
    name, arguments = json.loads(text)
    work = globals()[name](*arguments)
    before = read_memory("VmRSS")
    start, start_of_cpu = time.perf_counter(), time.process_time()
    note = work()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_of_cpu
    figures = {"seconds": seconds, "cpu_seconds": cpu_seconds, "before_mb": before}
    print(json.dumps({**figures, "peak_mb": read_memory("VmHWM"), "note": note}))


def read_memory(name):
    """Return a figure of this process in MiB (Linux): not ru_maxrss, which begins with that of the parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


def table(name, options, jobs, suffix="conllu"):
    """Measure and print a row for each size; `jobs` are labels with functions and what these take."""
    for label, (function, *arguments) in jobs.items():
        rows = []
        for size in options.sizes:
            figures = measure(function, str(bank_path(options, size, suffix)), *arguments)
            rows.append({"what": name, "label": label, "sentences": size, **figures})
            print_row(rows[-1], is_first=label == next(iter(jobs)) and len(rows) == 1)
            if options.json:
                with open(options.json, "a") as target:
                    target.write(json.dumps(rows[-1]) + "\n")
        print_slopes(label, rows)


def print_row(record, *, is_first):
    """Print a row of a table for Markdown, and the head before the first."""
    if is_first:
        print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    rate = record["sentences"] / max(1e-9, record["cpu_seconds"])
    cells = (
        record["label"],
        f"{record['sentences']:,}",
        f"{record['seconds']:.2f}",
        f"{record['cpu_seconds']:.2f}",
        f"{rate:,.0f}",
        f"{record['before_mb']:,.0f}",
        f"{record['peak_mb']:,.0f}",
        record["note"],
    )
    print(f"| {' | '.join(cells)} |", flush=True)


def print_slopes(label, rows):
    """Print the slopes of CPU seconds and of peak memory, through all rows and through the last two."""
    if len(rows) < 2:
        return
    cells = []
    for key in ("cpu_seconds", "peak_mb"):
        points = [(row["sentences"], row[key]) for row in rows]
        cells.append(f"{fit_slope(points):.2f}, last {fit_slope(points[-2:]):.2f}")
    print(f"| {label} | *slope* | | {cells[0]} | | | {cells[1]} | |", flush=True)


def fit_slope(points):
    """Return the slope of the line of least squares through the logarithms of points."""
    xs, ys = zip(*((math.log(x), math.log(y)) for x, y in points), strict=True)
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    products = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return products / sum((x - x_mean) ** 2 for x in xs)


# Experiments.


def make(options):
    """Write treebanks of all sizes, and parsers."""
    import treewright as tw

    folder = Path(options.folder)
    folder.mkdir(exist_ok=True)
    for order in (1, 3):
        if not model_path(options, order).exists():
            training = tw.make_treebank(N_TRAINING, seed=TRAINING_SEED).dependencies
            tw.DependencyParser(order=order).fit(training).save(model_path(options, order))
            print(f"trained: {model_path(options, order)}", flush=True)
    for size in options.sizes:
        start = time.process_time()
        tw.write_conllu(blocks(size, "dependencies"), bank_path(options, size))
        if size <= 10 * BLOCK:
            tw.write_brackets(blocks(size, "constituents"), bank_path(options, size, "mrg"))
        seconds, n_bytes = time.process_time() - start, bank_path(options, size).stat().st_size
        print(f"{size:,} sentences: {seconds:.1f} CPU s, {n_bytes / MEGABYTE:,.0f} MB", flush=True)


def blocks(size, view):
    """Yield trees of a treebank, one block in memory at a time."""
    import treewright as tw

    for seed, begin in enumerate(range(0, size, BLOCK)):
        yield from getattr(tw.make_treebank(min(BLOCK, size - begin), seed=seed), view)


def bank_path(options, size, suffix="conllu"):
    """Return where a treebank is."""
    return Path(options.folder) / f"{size}.{suffix}"


def model_path(options, order):
    """Return where a parser is."""
    return Path(options.folder) / f"order{order}.tw"


def reading(options):
    """Measure reading, by sentence and whole."""
    table("reading", options, {"`iter_conllu`": (stream,), "`read_conllu`": (read_list,)})


def passing(options):
    """Measure what trees take to be written, and to be sent to another process."""
    table("passing on", options, {"`write_conllu`": (write,), "pickled and back": (send,)})


def parsing(options):
    """Measure the command `parse` with parsers of order 1 and 3."""
    jobs = {f"order {order}": (parse, str(model_path(options, order))) for order in options.orders}
    table("parsing", options, jobs)


def mining(options):
    """Measure mining of conjunctions, without and with a limit to memory."""
    limit = options.limit * MEGABYTE
    jobs = {"no limit": (conjunctions, None), f"limit {options.limit} MB": (conjunctions, limit)}
    table("conjunctions", options, jobs)


def subtree_mining(options):
    """Measure mining of subtrees."""
    table("subtrees", options, {"subtrees": (subtrees, str(model_path(options, 1)))})


def kernels(options):
    """Measure matrices of a tree kernel in files, and an approximation that is linear."""
    jobs = {"`gram`": (gram,), "`TreeKernelNystroem`": (nystroem,)}
    table("kernels", options, jobs, suffix="mrg")


def training(options):
    """Measure training of a dependency parser."""
    table("training", options, {"order 1": (train,)})


def show(options):
    """Print the rows of a file, with slopes over all sizes; of rows that were measured twice, the last."""
    rows = [json.loads(line) for line in Path(options.json).read_text().splitlines()]
    found = {(row["what"], row["label"], row["sentences"]): row for row in rows}
    groups = {}
    for what, label, size in sorted(found):
        groups.setdefault(what, {}).setdefault(label, []).append(found[what, label, size])
    for what, lines in groups.items():
        print(f"\n{what}\n")
        for label, line in lines.items():
            for row in line:
                print_row(row, is_first=row is next(iter(lines.values()))[0])
            print_slopes(label, line)
    if options.plot:
        plot(groups, options.plot)


def plot(groups, path):
    """Draw CPU seconds and peak memory over numbers of sentences."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.5))
    keys = {"cpu_seconds": "CPU seconds", "peak_mb": "peak memory, MB"}
    for axis, (key, name) in zip(axes, keys.items(), strict=True):
        for what, lines in groups.items():
            for label, rows in lines.items():
                points = [(row["sentences"], row[key]) for row in rows]
                axis.plot(*zip(*points, strict=True), "o-", label=f"{what}, {label}".replace("`", ""))
        axis.set(xscale="log", yscale="log", xlabel="sentences", ylabel=name)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


EXPERIMENTS = {
    "make": make,
    "reading": reading,
    "passing": passing,
    "parsing": parsing,
    "conjunctions": mining,
    "subtrees": subtree_mining,
    "kernels": kernels,
    "training": training,
    "show": show,
}


def main():
    """Run an experiment."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", nargs="?", choices=EXPERIMENTS)
    parser.add_argument("--call", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="scale", help="of treebanks and parsers")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of sentences")
    parser.add_argument("--orders", type=int, nargs="+", default=(1, 3), help="of parsers")
    parser.add_argument("--limit", type=int, default=16, help="MB that conjunctions may take")
    parser.add_argument("--json", help="file to which rows are added, or from which they are shown")
    parser.add_argument("--plot", help="file for a drawing of the rows that are shown")
    options = parser.parse_args()
    if options.call:
        run_call(options.call)
    elif options.experiment:
        EXPERIMENTS[options.experiment](options)
    else:
        parser.error("expected an experiment")


if __name__ == "__main__":
    main()
