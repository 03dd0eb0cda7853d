"""Fraction of gold arcs kept by pruning on the dev sets of treebanks, and number of heads left per word.

    python benchmarks/pruning.py PREFIX [PREFIX ...] [--sentences N]

PREFIX is the path of a treebank's files before -train.conllu and -dev.conllu. The limits of the stages are
varied without training again.
"""

import argparse
import time
from itertools import islice

import numpy as np

import treewright as tw
from treewright.native.dependency.pruning import KeptArcs, choose_arcs
from treewright.parsing.dependency.features import Encoder
from treewright.parsing.dependency.pruning import Pruner

LIMITS = {
    "defaults": ({}, {}),
    "threshold 3e-3": ({}, {"threshold": 3e-3}),
    "threshold 1e-3, 20 heads": (
        {"threshold": 1e-4, "max_heads": 30},
        {"threshold": 1e-3, "max_heads": 20},
    ),
}


def read(path, n_sentences=None):
    """Return the first sentences of a treebank that have words, crossing arcs lifted."""
    trees = islice(tw.iter_conllu(path), n_sentences)
    return [tw.projectivize(tree, scheme="path") for tree in trees if len(tree)]


def main():
    """Print a line for each treebank and choice of limits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefixes", nargs="+")
    parser.add_argument("--sentences", type=int, default=None, help="use only the first N training sentences")
    options = parser.parse_args()
    for prefix in options.prefixes:
        train, dev = read(f"{prefix}-train.conllu", options.sentences), read(f"{prefix}-dev.conllu")
        encoder = Encoder.from_trees(train)
        single_root = all((tree.heads == 0).sum() == 1 for tree in train)
        start = time.process_time()
        pruner = Pruner(tw.TemplateSet(), single_root=single_root).fit(encoder.encode(train))
        print(f"{prefix}: {len(train)} sentences, {time.process_time() - start:.1f} s of CPU time")
        corpus = encoder.encode(dev)
        room = (corpus.sizes + 1) ** 2
        for name, limits in LIMITS.items():
            indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(room)])
            arcs = KeptArcs(indptr, np.full(int(indptr[-1]), -1, dtype=np.int32))
            stages = tuple(stage._replace(**each) for stage, each in zip(pruner.stages_, limits, strict=True))
            n_lost, n_kept = choose_arcs(stages, corpus, np.arange(len(dev)), corpus.heads, arcs)
            n_words = int(corpus.sizes.sum())
            print(f"    {name:26} recall {100 * (1 - n_lost / n_words):.2f}  heads {n_kept / n_words:.2f}")


if __name__ == "__main__":
    main()
