"""Time of tree kernels: Gram matrices, single pairs, plain loops, large trees and a classifier.

python benchmarks/tree_kernels.py [BRACKETS FILE] [--only matrices,threads,large,classifier]

Times are CPU times of one thread, the best of five, per distinct pair of trees (of n (n + 1) / 2) and per
cell of the matrix (of n * n). The time of packing does not include reading the trees. Ratios are relative to
a compiled loop over pairs of trees, which uses sorted productions for SST and all pairs of nodes for PT.
Without a file, trees are generated.
"""

import argparse
import gc
import subprocess
import sys
import time

import numpy as np

import treewright as tw
from treewright.data.forest import Forest
from treewright.kernels.naive import plain_trees
from treewright.native.kernels.naive import (
    Runs,
    SequenceScratch,
    evaluate_all_nodes,
    evaluate_partial_trees,
    evaluate_sorted_nodes,
)
from treewright.report.separate_process import peak_memory

N_TREES, MAX_NODES, REPEATS = 500, 150, 5
N_PAIRS = 50_000
N_MORE = 2000
N_CLASSIFIED = 5000
KERNELS = {
    "SST": tw.SubsetTreeKernel(decay=0.4),
    "PT": tw.PartialTreeKernel(decay=0.4, depth_decay=0.4),
    "ST": tw.SubtreeKernel(decay=0.4),
}
PARTS = ("matrices", "threads", "large", "classifier")
LARGE = ("chain", "bush", "star")


def main(path, parts):
    """Print the times of the parts that are wanted."""
    trees = read(path)
    if "matrices" in parts:
        measure_matrices(choose(trees, N_TREES, MAX_NODES))
    if "threads" in parts:
        measure_threads(choose(trees, N_MORE))
    if "large" in parts:
        for shape in LARGE:
            for name in KERNELS:
                # A process of its own, as the most memory that one has held never becomes less.
                subprocess.run([sys.executable, __file__, "--large", f"{shape},{name}"], check=True)
    if "classifier" in parts:
        measure_classifier()


def read(path):
    """Read trees with functions and traces, or make some."""
    if path:
        return tw.read_brackets(path, functions=True, traces=True)
    return list(tw.make_treebank(N_MORE, 0).constituents)


def choose(trees, n_trees, max_nodes=None):
    """Choose trees by chance, as they are in the file if they are as many as that."""
    small = [tree for tree in trees if max_nodes is None or tree.n_nodes <= max_nodes]
    numbers = np.sort(np.random.default_rng(0).permutation(len(small))[:n_trees])
    chosen = [small[number] for number in numbers]
    mean = np.mean([tree.n_nodes for tree in chosen])
    print(f"{len(chosen)} trees, {mean:.1f} nodes on average", flush=True)
    return chosen


def best_time(work, *, repeats=REPEATS, clock=time.thread_time):
    """Return seconds, the best of several times; once before, to compile."""
    work()
    times = []
    for _ in range(repeats):
        gc.collect()
        begin = clock()
        work()
        times.append(clock() - begin)
    return min(times)


def measure_matrices(trees):
    """Print the times of whole matrices and of isolated pairs, and how much longer plain loops take."""
    n_trees = len(trees)
    n_distinct = n_trees * (n_trees + 1) // 2
    pairs = np.random.default_rng(1).integers(n_trees, size=(N_PAIRS, 2))
    plain = measure_plain(trees, pairs)
    rows = np.arange(n_trees)
    for name, kernel in KERNELS.items():
        packed = kernel.pack(trees)
        whole = best_time(lambda kernel=kernel: kernel(trees))
        alone = best_time(lambda packed=packed: packed.block(rows, rows))
        isolated = best_time(lambda packed=packed: packed.pairs(*pairs.T)) / N_PAIRS
        loop = plain.get(name)
        show(f"{name}, matrix", alone, n_distinct, n_trees**2, loop)
        show(f"{name}, packing and matrix", whole, n_distinct, n_trees**2, loop)
        ratio = f", {loop / isolated:.1f} times faster than the plain loop" if loop else ""
        print(f"{name}, pairs in random order: {1e6 * isolated:.3f} us{ratio}", flush=True)


def show(name, seconds, n_distinct, n_cells, loop):
    """Print a time for each distinct pair and for each cell."""
    ratio = f", {loop * n_distinct / seconds:.1f} times faster than the plain loop" if loop else ""
    shares = f"{1e6 * seconds / n_distinct:.3f} us a pair, {1e6 * seconds / n_cells:.3f} us a cell"
    print(f"{name}: {shares}{ratio}", flush=True)


def measure_plain(trees, pairs):
    """Print the times of compiled loops over pairs of trees; return seconds a pair of the best, by kernel."""
    forest = plain_trees(Forest.from_trees(trees))
    n_nodes = int(np.diff(forest.indptr).max())
    out, values = np.empty(len(pairs)), np.zeros(n_nodes**2)
    runs = Runs(*np.zeros((2, n_nodes), dtype=np.int64))
    sequences = SequenceScratch(*np.zeros((2, n_nodes), dtype=np.int64), np.zeros((3, n_nodes, n_nodes)))
    loops = {
        "SST, all pairs of nodes": lambda: evaluate_all_nodes(forest, pairs, 0.4, values, out),
        "SST, sorted productions": lambda: evaluate_sorted_nodes(forest, pairs, 0.4, values, runs, out),
        "PT, all pairs of nodes": lambda: evaluate_partial_trees(
            forest, pairs, 0.4, 0.4, values, sequences, out
        ),
    }
    times = {}
    for name, loop in loops.items():
        values[:] = 0
        times[name] = best_time(loop) / len(pairs)
        print(f"plain loop, {name}: {1e6 * times[name]:.3f} us a pair", flush=True)
    return {"SST": times["SST, sorted productions"], "PT": times["PT, all pairs of nodes"]}


def measure_threads(trees):
    """Print the wall times of a matrix with one thread and with two."""
    n_distinct = len(trees) * (len(trees) + 1) // 2
    for name, kernel in KERNELS.items():
        for n_jobs in (1, 2):
            kernel.set_params(n_jobs=n_jobs)
            seconds = best_time(
                lambda kernel=kernel: tw.gram(kernel, trees), repeats=2, clock=time.perf_counter
            )
            each = 1e6 * seconds / n_distinct
            print(f"{name}, jobs={n_jobs}: {seconds:.2f} s, {each:.3f} us a pair (wall time)", flush=True)
        kernel.set_params(n_jobs=1)


def make_large(shape):
    """Make a tree of about 10,000 nodes, or a node of 5,000 children."""
    rng = np.random.default_rng(0)
    if shape == "chain":
        labels = ["w", *("abc"[number] for number in rng.integers(3, size=9999))]
        return tw.ConstTree.from_child_counts(labels, [0] + [1] * 9999)
    if shape == "star":
        labels = [f"w{n}" for n in rng.integers(50, size=5000)]
        return tw.ConstTree.from_child_counts([*labels, "S"], [0] * 5000 + [5000])
    return make_bush(rng, 10_000)


def make_bush(rng, n_nodes):
    """Make a tree whose nodes have three children each, of few labels."""
    labels, counts, waiting, budget = [], [], [0], n_nodes - 1
    while waiting:  # parents first and from right to left, which is post-order in reverse
        waiting.pop()
        n_children = min(budget, int(rng.integers(0, 4)) if len(waiting) > 20 else 3)
        budget -= n_children
        labels.append("abcdefgh"[rng.integers(8)] if n_children else f"w{rng.integers(200)}")
        counts.append(n_children)
        waiting += [0] * n_children
    return tw.ConstTree.from_child_counts(labels[::-1], counts[::-1])


def measure_large(shape, name):
    """Print the time and the memory of a large tree with itself."""
    kernel = KERNELS[name].set_params(normalize=True)
    small = [tw.ConstTree.parse("(a (b (w x)) (c y))")] * 2
    kernel(small)
    kernel.pack(small).pairs([0], [1])
    tree = make_large(shape)
    before, begin = peak_memory() >> 20, time.thread_time()
    value = kernel([tree, tree])[0, 1]
    seconds, peak = time.thread_time() - begin, peak_memory() >> 20
    about = f"{name}, {shape} of {tree.n_nodes} nodes with itself"
    print(f"{about}: {seconds:.2f} s, peak {peak} MiB ({before} before), value {value:.6f}", flush=True)


def measure_classifier():
    """Print the time of learning whether a noun phrase has a prepositional one, one in ten labels wrong."""
    trees = list(tw.make_treebank(N_CLASSIFIED + 1000, 0).constituents)
    is_wrong = np.random.default_rng(0).random(len(trees)) < 0.1
    labels = np.array([has_modifier(tree) for tree in trees]) ^ is_wrong
    kernel = tw.SubsetTreeKernel(decay=0.4, normalize=True)
    classifier = tw.TreeKernelClassifier(kernel=kernel)
    begin = time.perf_counter()
    classifier.fit(trees[:N_CLASSIFIED], labels[:N_CLASSIFIED])
    learnt = time.perf_counter()
    accuracy = np.mean(classifier.predict(trees[N_CLASSIFIED:]) == labels[N_CLASSIFIED:])
    told = time.perf_counter()
    most = max(labels.mean(), 1 - labels.mean())
    print(
        f"classifier: {learnt - begin:.1f} s for {N_CLASSIFIED} trees, {told - learnt:.1f} s for 1,000 "
        f"others, {100 * accuracy:.1f}% right of 90 (most frequent class {100 * most:.1f}%), "
        f"peak memory {peak_memory() / (1 << 20):.0f} MiB",
        flush=True,
    )


def has_modifier(tree):
    """Return whether a noun phrase has a prepositional phrase as its second part."""
    parts = ([child.label for child in node.children] for node in tree.subtrees() if node.label == "NP")
    return any(labels[:2] == ["NP", "PP"] for labels in parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", help="a file of trees in brackets")
    parser.add_argument("--only", default=",".join(PARTS), help="parts to run")
    parser.add_argument("--large", help="shape of a large tree and kernel, such as star,PT")
    given = parser.parse_args()
    if given.large:
        measure_large(*given.large.split(","))
    else:
        main(given.path, given.only.split(","))
