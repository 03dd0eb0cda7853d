"""Training time of rerankers with each kernel derived from a left-corner parser.

python benchmarks/derived.py MODEL.tw TREES.mrg [--sentences 200]

First, the 20-best trees of some sentences are found. Then, for each kernel, it prints the number of non-zero
features per candidate and the training time on these lists, with the part in which the network processes the
candidates.
"""

import argparse

import treewright as tw
from treewright.report.titov.candidates import ListReranker
from treewright.rerank.parse_lists import count_brackets, f1_losses, list_parses

KERNELS = ("efficient-top", "top-rerank", "fisher", "top", "efficient-top", "top-rerank")


def main(model, path, n_sentences):
    """Print a line for each kernel."""
    parser = tw.load(model)
    trees = tw.read_brackets(path)[:n_sentences]
    lists = list_parses([parser], trees, 20)
    losses = [f1_losses(counts) for counts in count_brackets(trees, lists)]
    print(f"{len(trees)} sentences, {parser.units} units, {len(parser.vocabulary_.words)} tags with words")
    for name in KERNELS:
        reranker = ListReranker(parser=parser, kernel=name)
        reranker.parser_ = parser
        found = reranker.learn(lists, losses)
        times = f"{found.seconds:.1f} s, {found.network_seconds:.1f} s of it the network"
        print(f"{name}: {found.n_nonzero:,.0f} features, {times}", flush=True)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("model")
    arguments.add_argument("path")
    arguments.add_argument("--sentences", type=int, default=200)
    given = arguments.parse_args()
    main(given.model, given.path, given.sentences)
