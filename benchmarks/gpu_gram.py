"""Gram matrices on a PyTorch device: estimated or measured time, and differences from compiled code.

The trees are noun phrases of a file of Penn brackets (those of `tree_machines.py`), or whole trees.

    python benchmarks/gpu_gram.py TREES.mrg [N_TREES] [--kernel sst|pt] [--whole] [--device cuda] [--rows 300]

Without --device, nothing is computed on a device: operations and memory traffic are counted for the largest
tiles that the code makes, and divided by the bandwidth of a GPU (--bandwidth, in bytes per second). This is
an estimate, not a measurement.
"""

import argparse
import time

import numpy as np
from tree_machines import read_phrases

import treewright as tw
from treewright.kernels.dag import Dag
from treewright.kernels.device_gram import MOST_TREES, _Nodes, _Side

KERNELS = {
    "sst": tw.SubsetTreeKernel(decay=0.4, normalize=True),
    "pt": tw.PartialTreeKernel(decay=0.4, depth_decay=0.4, normalize=True),
}
SECTOR = 32
"""Bytes that a GPU reads for a value at a place of its own."""
STREAMED_PER_PAIR = 24
"""Bytes of indices and values of a pair of nodes that are written and read in order, for each operation."""
OPERATIONS = 10
"""Array operations for a pair of children."""


def count_tile(rows, columns, is_partial):
    """Return pairs of nodes, pairs of children that are looked up, and entries that are spread."""
    n_rows = np.bincount(rows.groups, minlength=len(columns.group_sizes))
    pairs = n_rows * columns.group_sizes
    if is_partial:
        widths = np.bincount(rows.groups, rows.widths, len(n_rows))
        other_widths = np.bincount(columns.groups, columns.widths, len(n_rows))
        children = widths * other_widths
    else:
        widths = np.zeros(len(n_rows))
        widths[rows.groups] = rows.widths
        children = pairs * widths
    return np.array([pairs.sum(), children.sum(), (n_rows * columns.entry_sizes).sum()], dtype=np.float64)


def estimate(trees, kernel, bandwidth):
    """Count what all tiles of half the matrix take."""
    begin = time.process_time()
    packed = kernel.pack(trees)
    forest = packed._forest
    dag = Dag(forest, n_together=len(trees))
    nodes = _Nodes(dag, kernel)
    seconds = time.process_time() - begin
    print(f"packing on the CPU: {seconds:.2f} CPU s")
    sides = [
        _Side(dag, nodes, [], first, min(first + MOST_TREES, len(trees)))
        for first in range(0, len(trees), MOST_TREES)
    ]
    totals, traffic, largest = np.zeros(3), 0.0, 0.0
    for number, rows in enumerate(sides):
        for columns in sides[number:]:
            pairs, children, spread = found = count_tile(rows, columns, nodes.is_partial)
            totals += found
            largest = max(largest, pairs)
            traffic += children * (SECTOR + OPERATIONS * STREAMED_PER_PAIR) + pairs * STREAMED_PER_PAIR
            traffic += spread * (2 * SECTOR + 3 * STREAMED_PER_PAIR)
            # Products of sparse counts and dense rows read a row for each entry; dense rows are written once.
            traffic += (
                8.0 * columns.n_trees * (len(rows.entries.ids) + 3 * len(rows.nodes) + 3 * rows.n_trees)
            )
    n_nodes, n_inner = len(forest.symbols), sum(len(side.nodes) for side in sides)
    print(f"{len(trees)} trees, {n_nodes} nodes; {n_inner} distinct inner nodes in {len(sides)} blocks")
    print(f"pairs of nodes {totals[0]:.3g}, of children {totals[1]:.3g}, spread to trees {totals[2]:.3g}")
    print(f"largest tile: {8 * largest / 2**30:.2f} GiB of values of pairs")
    result = 8.0 * len(trees) ** 2 / 2
    print(f"memory traffic on the device {traffic / 1e12:.3f} TB; result to the host {result / 1e9:.1f} GB")
    print(f"ESTIMATE, not measured: {traffic / bandwidth:.2f} s at {bandwidth / 1e12:.1f} TB/s,", end=" ")
    print(f"{result / 25e9:.2f} s for the result at 25 GB/s")


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
    """Count, and measure where there is a device."""
    parser = argparse.ArgumentParser()
    parser.add_argument("trees")
    parser.add_argument("n_trees", type=int, nargs="?", default=65_000)
    parser.add_argument("--kernel", choices=KERNELS, default="sst")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--device")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--bandwidth", type=float, default=2.4e12)
    options = parser.parse_args()
    if options.whole:
        trees = list(tw.read_brackets(options.trees))[: options.n_trees]
    else:
        trees = [tree for tree, _ in read_phrases(options.trees, options.n_trees)]
    kernel = KERNELS[options.kernel]
    if not options.device:
        estimate(trees, kernel, options.bandwidth)
    else:
        measure(trees, kernel, options.device, options.rows)


if __name__ == "__main__":
    main()
