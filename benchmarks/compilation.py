"""How long the whole package compiles from cold.

    python benchmarks/compilation.py

Every compiled function is called once on a small input, in a fresh cache folder; one that no call reaches
is an error, so that new functions are added here.
"""

import importlib
import os
import pkgutil
import tempfile
import time

os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="treewright-cold-")

import numpy as np

import treewright as tw
import treewright.native


def call_projective():
    """Lift a crossing arc."""
    tw.projectivize(tw.DepTree(["a", "b", "c", "d"], [3, 4, 0, 3]))


CALLS = {"projective": call_projective}


def compiled_functions():
    """Yield every compiled function of the package by name."""
    for module_info in pkgutil.iter_modules(treewright.native.__path__, "treewright.native."):
        module = importlib.import_module(module_info.name)
        for name, value in vars(module).items():
            if hasattr(value, "py_func") and value.py_func.__module__ == module.__name__:
                yield f"{module.__name__}.{name}", value


def main():
    """Print the seconds for each module and in all."""
    total = 0.0
    for name, call in CALLS.items():
        start = time.perf_counter()
        call()
        seconds = time.perf_counter() - start
        total += seconds
        print(f"{name:<16}{seconds:>8.2f} s")
    missed = [name for name, function in compiled_functions() if not function.signatures]
    if missed:
        raise SystemExit(f"not compiled by any call here: {', '.join(missed)}")
    print(f"{'all, from cold':<16}{total:>8.2f} s (numpy {np.__version__})")


if __name__ == "__main__":
    main()
