"""Number of functions, files and subpackages that each task calls in the package.

    python benchmarks/walks.py

The calls of treewright functions are recorded when a task runs for the second time, so that importing and
compiling are not included. Each function counts once; comprehensions and lambdas are not counted. A room is a
top-level subpackage or module; a change of room is a pair of rooms of which one calls the other.
"""

import inspect
import os
import sys
import tempfile
import threading
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import treewright as tw

PACKAGE = Path(tw.__file__).parent


class Walk:
    """What is called while it is recorded."""

    def __init__(self):
        self.functions, self.changes = set(), set()

    def __enter__(self):
        threading.setprofile(self._hear)
        sys.setprofile(self._hear)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)
        threading.setprofile(None)

    def _hear(self, frame, event, argument):
        if event != "call" or not self._is_ours(frame):
            return
        self.functions.add(self._place(frame))
        caller = frame.f_back
        while caller is not None and not self._is_ours(caller):
            caller = caller.f_back
        if caller is not None and room_of(caller) != room_of(frame):
            self.changes.add((room_of(caller), room_of(frame)))

    @staticmethod
    def _is_ours(frame):
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        return is_function and code.co_filename.startswith(str(PACKAGE))

    @staticmethod
    def _place(frame):
        return frame.f_code.co_filename, frame.f_code.co_firstlineno

    def describe(self, name):
        """Return a row of the table."""
        n_files = len({file for file, _ in self.functions})
        return f"{name:40} {len(self.functions):9} {n_files:6} {len(self.changes):6}"


def room_of(frame):
    """Return the folder or module at the top of the package in which a function is."""
    return Path(frame.f_code.co_filename).relative_to(PACKAGE).with_suffix("").parts[0]


def run_command(*arguments):
    """Run a command of the command line in this process."""
    from treewright.cli import run

    sys.argv = ["treewright", *map(str, arguments)]
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere), redirect_stdout(nowhere):
        if run() != 0:
            raise SystemExit(f"{sys.argv} failed")


def record(work):
    """Do some work twice, and return the walk of the second time."""
    work()
    with Walk() as walk:
        work()
    return walk


def name_at(file, line):
    """Return the first words of a function."""
    text = Path(file).read_text(encoding="utf-8").splitlines()[line - 1 :]
    return next(each.strip() for each in text if each.strip().startswith(("def ", "async def")))


def main():
    """Print the three walks."""
    is_listed = "--list" in sys.argv
    folder = Path(tempfile.mkdtemp())
    bank = tw.make_treebank(60)
    tw.write_conllu(bank.dependencies, folder / "in.conllu")
    tw.write_brackets(bank.constituents, folder / "in.mrg")
    tw.DependencyParser(epochs=1, runs=1, table_bits=16).fit(bank.dependencies).save(folder / "model")
    data = tw.make_conjunctions(n_samples=300, n_features=50)
    kernel = ("kernel", folder / "in.mrg", "--kernel", "sst", "--out", folder / "gram.npy")
    walks = {
        "treewright parse model in.conllu": lambda: run_command(
            "parse", folder / "model", folder / "in.conllu", "--output", folder / "out.conllu"
        ),
        "ConjunctionClassifier.fit": lambda: tw.ConjunctionClassifier(degree=2, threshold=3).fit(
            data.X, data.y
        ),
        "treewright kernel in.mrg": lambda: run_command(*kernel),
    }
    print(f"{'walk':40} functions  files  rooms")
    for name, work in walks.items():
        walk = record(work)
        print(walk.describe(name))
        if is_listed:
            for file, line in sorted(walk.functions):
                print(f"    {Path(file).relative_to(PACKAGE)}:{line} {name_at(file, line)}")


if __name__ == "__main__":
    main()
