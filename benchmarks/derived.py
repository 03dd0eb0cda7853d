"""What a reranker's training costs with each kernel that is derived from a left-corner parser.

python benchmarks/derived.py MODEL.tw TREES.mrg [--sentences 200]

The 20 best trees of some sentences are found first. Then for each kernel: features of a candidate that are
not zero, and seconds of training on these lists, with the part in which the network goes through candidates.
"""

import argparse
import time

import numpy as np
from scipy.sparse import issparse

import treewright as tw
from treewright.kernels.decisions import GradientList
from treewright.rerank.constituents import DERIVED_WEIGHT, KERNELS
from treewright.rerank.parse_lists import count_brackets, f1_losses, list_parses


class Traced:
    """Lists as choices of the network, made anew whenever they are asked for."""

    def __init__(self, parser, lists, distributions):
        self._parser, self._lists, self._distributions = parser, lists, distributions
        self.sizes = [len(each.trees) for each in lists]
        self.seconds = 0.0

    def __len__(self):
        return len(self._lists)

    def __getitem__(self, number):
        begin = time.perf_counter()
        traced = self._parser.trace(self._lists[number].trees, distributions=self._distributions)
        self.seconds += time.perf_counter() - begin
        return traced


def main(model, path, n_sentences):
    """Print a line for each kernel."""
    parser = tw.load(model)
    trees = tw.read_brackets(path)[:n_sentences]
    lists = list_parses([parser], trees, 20)
    losses = [f1_losses(counts) for counts in count_brackets(trees, lists)]
    print(f"{len(trees)} sentences, {parser.units} units, {len(parser.vocabulary_.words)} tags with words")
    for name in ("efficient-top", "top-rerank", "fisher", "top", "efficient-top", "top-rerank"):
        kernel = KERNELS[name]()
        seen = Traced(parser, lists, distributions=name != "efficient-top")
        begin = time.perf_counter()
        scores = None if name == "top" else [base_scores(kernel, each) for each in lists]
        tw.CandidateReranker(kernel, base_weights=(DERIVED_WEIGHT,)).fit(seen, losses, scores)
        seconds = time.perf_counter() - begin
        rows = [kernel.features([parser.trace(each.trees)]) for each in lists[:20]]
        n_nonzero = np.mean([(each.nnz if issparse(each) else each.size) / each.shape[0] for each in rows])
        print(f"{name}: {n_nonzero:,.0f} features, {seconds:.1f} s, {seen.seconds:.1f} s of it the network")


def base_scores(kernel, candidates):
    """Return what a kernel makes of probabilities alone."""
    logs = candidates.scores[:, 0]
    return kernel.scores([GradientList(logs, np.zeros((len(logs), 0)))])


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("model")
    arguments.add_argument("path")
    arguments.add_argument("--sentences", type=int, default=200)
    given = arguments.parse_args()
    main(given.model, given.path, given.sentences)
