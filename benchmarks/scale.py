"""Cost against size: time and memory of reading, parsing, mining, kernels and training as treebanks grow.

    python benchmarks/scale.py make --folder scale [--sizes 1000 10000 100000 1000000]
    python benchmarks/scale.py reading --folder scale [--sizes ...]
    python benchmarks/scale.py passing --folder scale
    python benchmarks/scale.py parsing --folder scale [--orders 1 3]
    python benchmarks/scale.py conjunctions --folder scale [--limit 512]
    python benchmarks/scale.py limits [--limits 256 128 64]
    python benchmarks/scale.py subtrees --folder scale
    python benchmarks/scale.py kernels --folder scale
    python benchmarks/scale.py training --folder scale
    python benchmarks/scale.py workers --folder scale --sizes 10000
    python benchmarks/scale.py lengths --folder scale
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

import scale_work
from scale_work import MEGABYTE

BLOCK = 10_000
"""Sentences made with one seed."""
SIZES = (1000, 10_000, 100_000, 1_000_000)
TRAINING_SEED = 1_000_000
N_TRAINING = 2000
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
IDLE_SECONDS = 10
LENGTHS = (15, 60, 240, 480)
"""Words of sentences; those of more than 500 are parsed in pieces."""
COLUMNS = ("", "sentences", "seconds", "CPU s", "a CPU second", "MB before", "peak MB", "")


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
    work = getattr(scale_work, name)(*arguments)
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


def table(name, options, n_jobs, suffix="conllu"):
    """Measure and print a row for each size; `n_jobs` are labels with functions and what these take."""
    for label, (function, *arguments) in n_jobs.items():
        rows = []
        for size in options.sizes:
            figures = measure(function, str(bank_path(options, size, suffix)), *arguments)
            rows.append({"what": name, "label": label, "sentences": size, **figures})
            print_row(rows[-1], is_first=label == next(iter(n_jobs)) and len(rows) == 1)
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
        # Adding zero turns -0.0 into 0.0.
        whole, last = (round(fit_slope(some), 2) + 0.0 for some in (points, points[-2:]))
        cells.append(f"{whole:.2f}, last {last:.2f}")
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
            training = tw.make_treebank(N_TRAINING, random_state=TRAINING_SEED).dependencies
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

    for random_state, begin in enumerate(range(0, size, BLOCK)):
        yield from getattr(tw.make_treebank(min(BLOCK, size - begin), random_state=random_state), view)


def bank_path(options, size, suffix="conllu"):
    """Return where a treebank is."""
    return Path(options.folder) / f"{size}.{suffix}"


def model_path(options, order):
    """Return where a parser is."""
    return Path(options.folder) / f"order{order}.tw"


def reading(options):
    """Measure reading, by sentence and whole."""
    table(
        "reading", options, {"`iter_conllu`": (scale_work.stream,), "`read_conllu`": (scale_work.read_list,)}
    )


def passing(options):
    """Measure what trees take to be written, plain and compressed, and to be sent to another process."""
    n_jobs = {
        "`write_conllu`": (scale_work.write,),
        "`write_conllu`, gzip": (scale_work.write, ".gz"),
        "pickled and back": (scale_work.send,),
    }
    table("passing on", options, n_jobs)


def parsing(options):
    """Measure the command `parse` with parsers of order 1 and 3."""
    n_jobs = {
        f"order {order}": (scale_work.parse, str(model_path(options, order))) for order in options.orders
    }
    table("parsing", options, n_jobs)


def mining(options):
    """Measure mining of conjunctions, without and with a limit to memory."""
    limit = options.limit * MEGABYTE
    n_jobs = {
        "no limit": (scale_work.conjunctions, None),
        f"limit {options.limit} MB": (scale_work.conjunctions, limit),
    }
    table("conjunctions", options, n_jobs)


def limits(options):
    """Mine conjunctions within limits, of drawn rows whose survivors take far more than the rows."""
    names = ("CPU s", "MB before", "peak MB", "growth, MB", "kept, MB", "on disk, MB", "selected", "digest")
    columns = ("limit, MB", *names)
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)
    for limit in (None, *options.limits):
        row = measure(scale_work.drawn_conjunctions, limit and limit * MEGABYTE)
        cells = (row["before_mb"], row["peak_mb"], row["peak_mb"] - row["before_mb"])
        figures = " | ".join(f"{each:.0f}" for each in cells)
        print(f"| {limit or 'none'} | {row['cpu_seconds']:.1f} | {figures} | {row['note']} |", flush=True)


def subtree_mining(options):
    """Measure mining of subtrees."""
    table("subtrees", options, {"subtrees": (scale_work.subtrees, str(model_path(options, 1)))})


def kernels(options):
    """Measure matrices of a tree kernel in files, and an approximation that is linear."""
    n_jobs = {"`gram`": (scale_work.gram,), "`TreeKernelNystroem`": (scale_work.nystroem,)}
    table("kernels", options, n_jobs, suffix="mrg")


def training(options):
    """Measure training of a dependency parser."""
    table("training", options, {"order 1": (scale_work.train,)})


def workers(options):
    """Parse a file here, and by one and two workers of a cluster on this machine; print who takes what.

    The last column is without what the cluster takes here when it does nothing.
    """
    from cluster import started

    import treewright as tw
    from treewright.annotation.files import annotate_file

    columns = (
        "",
        "sentences",
        "workers",
        "seconds",
        "CPU s here",
        "idle",
        "CPU s of workers",
        "a CPU second here",
    )
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for order in options.orders:
        parser = tw.load(model_path(options, order))
        for size in options.sizes:
            path = str(bank_path(options, size))
            warm, target = f"{path}.begin", f"{path}.parsed"
            scale_work.write_beginning(path, warm)
            for n_workers in (0, 1, 2):
                with started(n_workers) as client:
                    annotate_file(parser, warm, target, client=client)
                    idle = measure_idle(client)
                    start, here, there = time.perf_counter(), time.process_time(), workers_time(client)
                    annotate_file(parser, path, target, client=client)
                    here, there = time.process_time() - here, workers_time(client) - there
                    seconds = time.perf_counter() - start
                idle *= seconds
                cells = f"{seconds:.2f} | {here:.2f} | {idle:.2f} | {there:.2f} | {size / (here - idle):,.0f}"
                print(f"| order {order} | {size:,} | {n_workers} | {cells} |", flush=True)


def measure_idle(client):
    """Return the share of a core that a cluster takes in this process when there is nothing to do."""
    if client is None:
        return 0.0
    start = time.process_time()
    time.sleep(IDLE_SECONDS)
    return (time.process_time() - start) / IDLE_SECONDS


def workers_time(client):
    """Return the CPU seconds that the workers have taken, all together."""
    return sum(client.run(time.process_time).values()) if client else 0.0


def lengths(options):
    """Parse sentences of different lengths, made of the words of several; print CPU milliseconds for each."""
    import treewright as tw

    trees = list(islice(tw.iter_conllu(bank_path(options, options.sizes[0])), 1000))
    words, upos, xpos, feats, lemmas = (
        [one for tree in trees for one in getattr(tree, name)]
        for name in ("words", "upos", "xpos", "feats", "lemmas")
    )
    print("| | words | CPU ms |\n| --- | --- | --- |")
    for order in options.orders:
        parser = tw.load(model_path(options, order))
        parser.predict(trees[:50])
        for n in LENGTHS:
            tree = tw.DepTree(words[:n], upos=upos[:n], xpos=xpos[:n], feats=feats[:n], lemmas=lemmas[:n])
            n_times = max(1, LENGTHS[-1] // n)
            start = time.process_time()
            parser.predict([tree] * n_times)
            print(
                f"| order {order} | {n} | {1000 * (time.process_time() - start) / n_times:.2f} |", flush=True
            )


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

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 4.8))
    lines = [(what, label, rows) for what, group in groups.items() for label, rows in group.items()]
    keys = {"cpu_seconds": "CPU seconds", "peak_mb": "peak memory, MB"}
    for axis, (key, name) in zip(axes, keys.items(), strict=True):
        for number, (what, label, rows) in enumerate(lines):
            points = [(row["sentences"], row[key]) for row in rows]
            style = {"color": f"C{number % 10}", "marker": "os^Dv"[number // 5]}
            axis.plot(*zip(*points, strict=True), label=f"{what}: {label}".replace("`", ""), **style)
        axis.set(xscale="log", yscale="log", xlabel="sentences", ylabel=name)
        axis.grid(alpha=0.3)
    figure.tight_layout(rect=(0, 0.17, 1, 1))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=4, fontsize=7)
    figure.savefig(path, metadata={"Date": None})


EXPERIMENTS = {
    "make": make,
    "reading": reading,
    "passing": passing,
    "parsing": parsing,
    "conjunctions": mining,
    "limits": limits,
    "subtrees": subtree_mining,
    "kernels": kernels,
    "training": training,
    "workers": workers,
    "lengths": lengths,
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
    parser.add_argument("--limit", type=int, default=512, help="MB that mining may take")
    parser.add_argument(
        "--limits", type=int, nargs="+", default=(256, 128, 64), help="MB, one after the other"
    )
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
