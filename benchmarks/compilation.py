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
from scipy.sparse import csr_matrix

import treewright as tw
import treewright.native
from treewright.kernels.deptree import DependencyTreeKernel
from treewright.kernels.polynomial import PolynomialKernel
from treewright.learn.ranking import AveragedRanker
from treewright.mining.bloom import SpectralBloomFilter
from treewright.mining.gradient import GradientMiner
from treewright.mining.problem import list_problem
from treewright.mining.subtree import SubtreeSpace
from treewright.native.dependency.arborescence import best_arborescence, matrix_tree_marginals
from treewright.native.dependency.eisner import arc_marginals


def call_projective():
    """Lift a crossing arc."""
    tw.projectivize(tw.DepTree(["a", "b", "c", "d"], [3, 4, 0, 3]))


def call_parsers():
    """Train and use parsers of the first and the third order."""
    trees = tw.make_treebank(40).dependencies
    for order in (1, 3):
        parser = tw.DependencyParser(order=order, epochs=1, runs=1, table_bits=14, folds=2).fit(
            trees, trees[:5]
        )
        parser.kbest(trees[:5], k=2)
        parser.marginals(trees[:5])
    # Once more with scores so far apart that sums underflow.
    arc_marginals(np.diag(np.full(3, 2000.0), k=1) * [[1], [-1], [1], [-1]], False, np.empty((4, 4)))


def call_spanning():
    """Train and use a parser of any trees, with tags of its own."""
    trees = tw.make_treebank(40).dependencies
    options = {"order": 1, "decoder": "spanning", "tags": "predicted"}
    parser = tw.DependencyParser(**options, epochs=1, runs=1, table_bits=14, folds=2).fit(trees, trees[:5])
    parser.kbest(trees[:5], k=2)


def call_arborescence():
    """Find the best tree with crossing arcs, and marginals."""
    score = np.random.default_rng(0).normal(size=(5, 5))
    best_arborescence(score, True, np.zeros(5, dtype=np.int32))
    matrix_tree_marginals(score, False, np.empty((5, 5)))


def call_mining():
    """Mine conjunctions for two classes, and for three with a filter; then use the filter alone."""
    rng = np.random.default_rng(0)
    samples = (rng.random((60, 6)) < 0.5).astype(int)
    for n_classes, filter_memory in ((2, None), (3, 1024)):
        labels = samples[:, :n_classes].argmax(axis=1)
        options = {"degree": 2, "threshold": 2, "filter_memory": filter_memory}
        tw.ConjunctionMiner(**options).fit(samples, labels).transform(samples)
        tw.ConjunctionClassifier(**options).fit(samples, labels).predict(samples)
    keys = rng.integers(0, 2**64, size=9, dtype=np.uint64)
    bloom = SpectralBloomFilter(3, 1024)
    bloom.add(keys)
    bloom.estimate(keys)


def call_subtrees():
    """Mine sub feature trees of lists of two trees, find them again, and rank the trees by them."""
    trees = tw.make_treebank(10).dependencies
    heads = [np.stack([np.arange(len(tree)), tree.heads]).astype(np.int32) for tree in trees]
    space = SubtreeSpace(trees, heads)
    problem = list_problem(space.indptr, space.indptr[1:] - 1)
    mined = GradientMiner(degree=3, threshold=3, max_iter=1, path=False).fit(space, problem)
    known = SubtreeSpace(trees, heads, encoder=space.encoder, keys=space.keys)
    AveragedRanker(epochs=1).fit(known.match(list(mined.features.values())), problem.alternatives)


def call_kernels():
    """Compare trees, one of them so large that its value is found by its logarithm; and rows."""
    chain = tw.DepTree(["a"] * 250, range(250), xpos=["T"] * 250)
    DependencyTreeKernel(normalize=True)([chain, *tw.make_treebank(3).dependencies])
    PolynomialKernel(2)(csr_matrix(np.eye(3)))


CALLS = {
    "projective": call_projective,
    "parsers": call_parsers,
    "spanning": call_spanning,
    "arborescence": call_arborescence,
    "mining": call_mining,
    "subtrees": call_subtrees,
    "kernels": call_kernels,
}


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
