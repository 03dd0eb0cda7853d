"""Time, memory and score of each step of training a reranker on subtree features.

    python benchmarks/reranking.py train.conllu dev.conllu test.conllu [--parser MODEL] [--threshold 3] ...

First, the parsers of the folds are trained, unless their lists are stored in --cache. Then each step is timed
separately.
"""

import argparse
import resource
import time

import numpy as np

import treewright as tw
from treewright._cache import cache_folder
from treewright.mining.gradient import GradientMiner
from treewright.mining.problem import list_problem
from treewright.mining.subtree import SubtreeSpace
from treewright.rerank.candidates import CandidateLists


class Clock:
    """Prints what each step took, and the most memory held so far."""

    def __init__(self):
        self.start = time.perf_counter()

    def tick(self, text):
        """Print a step that ends now and return its seconds."""
        seconds = time.perf_counter() - self.start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        print(f"{seconds:8.1f} s  {memory:5.2f} GiB  {text}", flush=True)
        self.start = time.perf_counter()
        return seconds


def parse_arguments():
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train")
    parser.add_argument("dev")
    parser.add_argument("test")
    parser.add_argument("--parser", help="trained parser (default: one is trained)")
    parser.add_argument("--cache", default=None, help="folder of candidate lists")
    parser.add_argument("--threshold", type=float, default=3.0)
    parser.add_argument("--degree", type=int, default=3)
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def measure_mining(options, base, lists, gold, clock):
    """Mine once, and print candidates a second."""
    training = lists.with_gold(gold)
    space = SubtreeSpace(
        training.lists.trees, training.lists.heads, copies=options.copies, n_jobs=options.n_jobs
    )
    clock.tick(f"{space.n_rows} candidates as {len(space.forest.owners)} arcs of {len(space.keys)} features")
    problem = list_problem(
        training.lists.indptr, training.right, base_scores=training.lists.scores * base.scale_
    )
    miner = GradientMiner(
        degree=options.degree, threshold=options.threshold, max_iter=1, path=False, refine=0
    )
    mined = miner.fit(space, problem)
    seconds = clock.tick(f"a round of mining: {mined.n_selected} features selected")
    for one in mined.orders:
        print(f"{'':18}order {one.order}: {one.n_instances:,} instances of {one.n_candidates:,} features")
    n_instances = sum(one.n_instances for one in mined.orders)
    print(f"{'':18}{n_instances / seconds / 1e6:.1f} million instances a second, matching included")


def measure_reranking(reranker, parser, trees, clock):
    """Rerank lists that are there, on one thread, and print how many a second."""
    lists = CandidateLists.from_structures(parser.structures(trees, reranker.k))
    reranker.scorer_.score(lists.select(range(10)))
    clock.tick("lists of test sentences")
    reranker.scorer_.score(lists)
    seconds = clock.tick("reranked on one thread, features included")
    print(f"{'':18}{len(trees) / seconds:.0f} sentences a second")


def main():
    """Measure all steps on a treebank."""
    options = parse_arguments()
    train, dev, test = (tw.read_conllu(path) for path in (options.train, options.dev, options.test))
    clock = Clock()
    if options.parser:
        parser = tw.load(options.parser)
    else:
        parser = tw.DependencyParser(n_jobs=options.n_jobs).fit(train, dev)
    clock.tick("parser")
    cache = options.cache or cache_folder("lists")
    lists = tw.jackknife_lists(parser, train, n_jobs=options.n_jobs, cache=cache)
    clock.tick("candidate lists of ten folds, or their reading")
    gold = [parser.lifted(tree).heads for tree in train]
    n_right, n_words = lists.n_right(gold), sum(map(len, gold))
    first, best = n_right[lists.indptr[:-1]].sum(), np.maximum.reduceat(n_right, lists.indptr[:-1]).sum()
    print(
        f"{'':18}UAS {100 * first / n_words:.2f} of the first trees, {100 * best / n_words:.2f} of the best"
    )
    measure_mining(options, parser, lists, gold, clock)
    reranker = tw.DependencyReranker(
        significance_level=None,
        parser=parser,
        degree=options.degree,
        threshold=options.threshold,
        copies=options.copies,
    )
    reranker.n_jobs = options.n_jobs
    with tw.progress.messages_to(print):
        reranker.fit(train, dev, cache=cache)
    clock.tick("the whole reranker")
    reranker.n_jobs = reranker.scorer_.features.n_jobs = 1
    measure_reranking(reranker, parser, test, clock)
    base, reranked = parser.predict(test), reranker.predict(test)
    found = tw.metrics.significance(test, reranked, base)
    print(
        f"test UAS {found.score_b:.2f} by the parser, {found.score_a:.2f} reranked, "
        f"{found.difference:+.2f} (p = {found.p_value:.4f}, {found.interval[0]:+.2f} to "
        f"{found.interval[1]:+.2f})"
    )


if __name__ == "__main__":
    main()
