"""Microseconds for each pair of trees, by the dependency tree kernel and by polynomial kernels.

python benchmarks/kernels.py [--data FILE.conllu]

Once for different sentences, and once for lists of candidates with the trees of past mistakes, as a reranker
has them. The polynomials are of the basic features of all arcs. Candidates are made by moving words.
"""

import argparse
import time

import numpy as np
from scipy.sparse import csr_matrix

import treewright as tw
from treewright.data.arcs import ArcEncoder
from treewright.data.deptree import find_head_problem
from treewright.kernels.deptree import DependencyTreeKernel
from treewright.kernels.polynomial import PolynomialKernel

N_SENTENCES, N_LISTS, LENGTH = 1000, 50, 10


def main(path=None):
    """Print the times of a treebank, a made one without a path."""
    trees = tw.read_conllu(path) if path else list(tw.make_treebank(2 * N_SENTENCES).dependencies)
    rng = np.random.default_rng(0)
    trees = [tree for tree in trees if len(tree) > 1]
    chosen = [trees[number] for number in rng.permutation(len(trees))[:N_SENTENCES]]
    n_arcs = np.mean([np.count_nonzero(tree.heads) for tree in chosen])
    print(f"{len(chosen)} sentences, {n_arcs:.1f} arcs each")
    candidates = [other for tree in chosen for other in (tree, *(move(tree, rng) for _ in range(LENGTH - 1)))]
    measure("dependency tree", lambda: DependencyTreeKernel().pack(candidates))
    measure("the same, normalised", lambda: DependencyTreeKernel(normalize=True).pack(candidates))
    rows = list_features(candidates)
    for degree in (2, 4):
        measure(f"polynomial, degree {degree}", lambda degree=degree: PolynomialKernel(degree).pack(rows))


def move(tree, rng):
    """Hang one word on another, if one of a few attempts gives a tree."""
    for _ in range(20):
        heads = tree.heads.copy()
        word, head = rng.integers(len(tree), size=2)
        heads[word] = head + 1
        if heads[word] != tree.heads[word] and find_head_problem(heads.tolist()) is None:
            return tree.with_heads(heads)
    return tree


def list_features(trees):
    """Return a row of the basic features of its arcs for each tree."""
    encoder = ArcEncoder.from_trees(trees)
    numbers = np.repeat(np.arange(len(trees)), [len(tree) for tree in trees])
    heads = np.concatenate([tree.heads for tree in trees]).astype(np.int64)
    modifiers = np.concatenate([np.arange(1, len(tree) + 1) for tree in trees])
    first, keys = encoder.keys(encoder.encode(trees), numbers, heads, modifiers)
    columns = np.unique(keys, return_inverse=True)[1]
    pairs = np.unique(np.column_stack([np.repeat(numbers, np.diff(first)), columns]), axis=0)
    return csr_matrix((np.ones(len(pairs)), pairs.T))


def measure(name, pack):
    """Print the times of one kernel."""
    start = time.perf_counter()
    packed = pack()
    packing = time.perf_counter() - start
    packed.block([0], [1])  # compiles
    best = np.arange(0, len(packed), LENGTH)
    half = len(best) // 2
    different = time_blocks(packed, [best[:half]], best[half:])
    lists = [np.arange(first, first + LENGTH) for first in best[:N_LISTS]]
    support = np.sort(np.concatenate([best[half:], best[half:] + 3]))
    listed = time_blocks(packed, lists, support)
    print(
        f"{name}: {different:.2f} µs a pair of different sentences, {listed:.2f} in lists of {LENGTH}; "
        f"{packing:.2f} s to pack {len(packed)}"
    )


def time_blocks(packed, lists, support):
    """Return microseconds a pair, the best of three times."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        n_pairs = sum(packed.block(rows, support).size for rows in lists)
        times.append((time.perf_counter() - start) / n_pairs)
    return 1e6 * min(times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="a CoNLL-U file")
    main(parser.parse_args().data)
