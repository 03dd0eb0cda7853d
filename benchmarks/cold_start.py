"""Time of the first use of treewright on a machine without its cache of compiled code.

    python benchmarks/cold_start.py [WORK ...] [--python PYTHON] [--model MODEL --input CONLLU] [--top N]

Each WORK runs in a separate process with an empty home folder and an empty cache, and a second time with the
cache of the first run. For both runs it prints the wall-clock time, the CPU time, the number of compiled
functions, the CPU time of compiling, and the number of functions loaded from the cache; then the functions
that took longest to compile, not counting the functions they call. PYTHON is the interpreter of an
environment in which a wheel is installed (default: this interpreter).
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# What a process does: a program that finds its files in the current folder.
COMMAND = "import sys; sys.argv = {!r}; from treewright.__main__ import main; main()"
CLASSIFIER = """
import numpy as np
import treewright as tw
samples = (np.random.default_rng(0).random((60, 6)) < 0.5).astype(int)
tw.ConjunctionClassifier(degree=2, threshold=2).fit(samples, samples[:, 0] & samples[:, 1]).predict(samples)
"""
TRAINING = [
    "train",
    "dependency",
    "trees.conllu",
    "--model",
    "trained.tw",
    "--tags",
    "predicted",
    "--folds",
    "2",
]
WORKS = {
    "import": "import treewright.native.compiling",
    "parse": COMMAND.format(["treewright", "parse", "model.tw", "one.conllu", "--output", "parsed.conllu"]),
    "english": COMMAND.format(["treewright", "parse", "en", "one.txt", "--output", "english.conllu"]),
    "classifier": CLASSIFIER,
    "kernel": COMMAND.format(["treewright", "kernel", "trees.mrg", "--out", "gram.npy"]),
    "train": COMMAND.format(["treewright", *TRAINING, "--epochs", "1", "--runs", "1"]),
}

# Hears what Numba compiles and writes it down at the end.
LISTEN = """
import atexit, json, time
from numba.core import event
from numba.core.compiler import CompileResult

counts = {"loaded": 0}
rows, open_ = {}, []

class Listener(event.Listener):
    def on_start(self, event):
        open_.append([time.process_time(), 0.0])

    def on_end(self, event):
        start, inner = open_.pop()
        took = time.process_time() - start
        if open_:
            open_[-1][1] += took
        function = event.data["dispatcher"].py_func
        name = f"{function.__module__}.{function.__qualname__}".removeprefix("treewright.native.")
        row = rows.setdefault(name, [0, 0.0])
        row[0] += 1
        row[1] += took - inner

def rebuild(*arguments, rebuild=CompileResult._rebuild):
    counts["loaded"] += 1
    return rebuild(*arguments)

def write():
    with open("heard.json", "w") as file:
        json.dump({"rows": rows, **counts}, file)

atexit.register(write)
event.register("numba:compile", Listener())
CompileResult._rebuild = rebuild
"""


def prepare(folder, model, sentences):
    """Write the files of all pieces of work into `folder`."""
    import treewright as tw

    (folder / "one.txt").write_text("The old gardener saw a heron.\n", encoding="utf-8")
    bank = tw.make_treebank(60)
    trees = bank.dependencies
    tw.write_conllu(trees, folder / "trees.conllu")
    tw.write_brackets(bank.constituents[:5], folder / "trees.mrg")
    if model:
        (folder / "model.tw").write_bytes(Path(model).read_bytes())
        (folder / "one.conllu").write_bytes(Path(sentences).read_bytes())
        return
    tw.write_conllu(trees[:1], folder / "one.conllu")
    options = {"epochs": 1, "runs": 1, "folds": 2, "table_bits": 16}
    tw.DependencyParser(order=3, tags="predicted", **options).fit(trees, trees[:5]).save(folder / "model.tw")


def run(python, program, folder, home):
    """Run `program` in `folder`; return the seconds that passed, the CPU seconds and what Numba did."""
    # Another interpreter takes the package from where it is installed there.
    kept = {
        name: value for name, value in os.environ.items() if python == sys.executable or name != "PYTHONPATH"
    }
    places = {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache", "NUMBA_CACHE_DIR": "", "TREEWRIGHT_CACHE": ""}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        [python, "-c", LISTEN + program],
        cwd=folder,
        env={**kept, **places},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, json.loads((folder / "heard.json").read_text())


def measure(name, python, folder, top):
    """Print the rows of one piece of work."""
    with tempfile.TemporaryDirectory() as home:
        for state in ("first", "again"):
            seconds, cpu, heard = run(python, WORKS[name], folder, home)
            rows = heard["rows"]
            n_compiled = sum(count for count, _ in rows.values())
            compiling = sum(spent for _, spent in rows.values())
            print(
                f"{name:<12}{state:<8}{seconds:>8.1f}{cpu:>8.1f}{n_compiled:>10}{compiling:>8.1f}"
                f"{heard['loaded']:>8}"
            )
            if state == "first":
                dearest = sorted(rows.items(), key=lambda row: -row[1][1])[:top]
        for function, (count, spent) in dearest:
            print(f"    {spent:7.2f} s {count:>3} x {function}")
    sys.stdout.flush()


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "works", nargs="*", metavar="WORK", help=f"one or more of {', '.join(WORKS)} (default: all)"
    )
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environment to measure")
    parser.add_argument("--model", help="parser to use (default: one is trained)")
    parser.add_argument("--input", help="sentences for MODEL")
    parser.add_argument("--top", type=int, default=10, help="number of functions to list")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        prepare(Path(place), options.model, options.input)
        header = f"{'work':<12}{'run':<8}{'wall s':>8}{'CPU s':>8}{'compiled':>10}{'CPU s':>8}{'loaded':>8}"
        print(header)
        for name in options.works or WORKS:
            measure(name, options.python, Path(place), options.top)


if __name__ == "__main__":
    main()
