"""Time of a Gram matrix on a PyTorch device, and its differences from compiled code.

The trees are noun phrases of a file of Penn brackets (those of `tree_machines.py`), or whole trees.

    python benchmarks/gpu_gram.py TREES.mrg [N_TREES] [--kernel sst|pt] [--whole] [--device cuda] [--rows 300]
"""

import argparse
import time

import numpy as np
from tree_machines import read_phrases

import treewright as tw

KERNELS = {
    "sst": tw.SubsetTreeKernel(decay=0.4, normalize=True),
    "pt": tw.PartialTreeKernel(decay=0.4, depth_decay=0.4, normalize=True),
}


def measure(trees, kernel, device, n_rows):
    """Measure the whole matrix on a device, and compare some of its rows with those of compiled code."""
    tw.gram(kernel, trees[:300], device=device)
    rows = np.linspace(0, len(trees) - 1, n_rows).astype(np.int64)
    for dtype in (np.float32, np.float64):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        found = tw.gram(kernel, trees, device=device, dtype=dtype, memory_limit=1 << 40)
        seconds = f"{time.perf_counter() - begin:.2f} s, {time.process_time() - begin_cpu:.2f} CPU s"
        print(f"{device}: {found.shape[0]} x {found.shape[1]} values of {found.itemsize} bytes, {seconds}")
        begin = time.perf_counter()
        expected = tw.gram(kernel, [trees[row] for row in rows], trees, memory_limit=1 << 40)
        print(f"compiled: {len(rows)} rows, {time.perf_counter() - begin:.2f} s;", end=" ")
        print(f"largest difference {np.abs(expected - found[rows]).max():.2g}", flush=True)
        del found


def main():
    """Read the trees, and measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("trees")
    parser.add_argument("n_trees", type=int, nargs="?", default=65_000)
    parser.add_argument("--kernel", choices=KERNELS, default="sst")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=300)
    options = parser.parse_args()
    if options.whole:
        trees = list(tw.read_brackets(options.trees))[: options.n_trees]
    else:
        trees = [tree for tree, _ in read_phrases(options.trees, options.n_trees)]
    measure(trees, KERNELS[options.kernel], options.device, options.rows)


if __name__ == "__main__":
    main()
