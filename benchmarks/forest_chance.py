"""Number of features mined by chance: gold trees compared with trees sampled from the parser.

    python benchmarks/forest_chance.py TREEBANK --cache FOLDER [--sentences N] [--order 3] [--threshold 3]
        [--degree 2]

TREEBANK is a path prefix such as DATA/ewt/en_ewt-ud. The forests of the training sentences are scored by
jackknifed parsers. Features are mined for gold trees, and for trees that are sampled from the distribution of
these parsers. If the distribution were correct, gold trees would be like sampled trees, so features mined for
sampled trees are selected by chance. Each row has the number of features with a minimum purity, and the
number of those whose gradient is more than 3 or 4 times its standard deviation (z).
"""

import argparse
from pathlib import Path

import numpy as np
from reranking_control import take

import treewright as tw
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.arcs import ArcEncoder
from treewright.mining.forest import SMALLEST_RESIDUE, PartMatcher, mine_parts
from treewright.parsing.dependency.forest_mining import MIN_COUNT
from treewright.parsing.dependency.forests import BasicFeatures, ForestCorpus, FoundParts
from treewright.parsing.dependency.training import ParserTrainer
from treewright.progress import messages_to

PURITIES = (0.0, 0.3, 0.5, 0.7, 0.9)
N_DRAWS = 3


def make_forests(options):
    """Return the forests of training sentences."""
    trees = take(
        [tree for tree in tw.read_conllu(f"{options.treebank}-train.conllu") if len(tree)], options.sentences
    )
    parser = tw.DependencyParser(order=options.order, runs=1, mine=True, n_jobs=2)
    identity = fingerprint(list(parser.result_params().items()), trees, [])
    trainer = ParserTrainer(parser, Checkpoint(options.cache / identity[:12], identity))
    prepared = trainer._restore(trees) or trainer._prepare(trees)
    single_root = prepared.learnt.decoder.single_root_
    return ForestCorpus(prepared.trees, trainer._jackknifed_forests(prepared), single_root=single_root)


def count(corpus, parts, n_basic, is_gold, options):
    """Return the numbers of features by purity, and of those with high z."""
    residues, _ = corpus.residues(is_gold)
    mined = mine_parts(parts, residues, n_basic, options.threshold, degree=options.degree, n_jobs=2)
    indptr, ids = PartMatcher(mined.features, n_basic).match(parts)
    rows = np.repeat(np.where(np.abs(residues) >= SMALLEST_RESIDUE, residues, 0.0), np.diff(indptr))
    z = np.abs(mined.gradients) / np.sqrt(np.bincount(ids, rows**2, minlength=len(mined.features)))
    purity = mined.purity
    return [int((purity >= least).sum()) for least in PURITIES] + [int((z > least).sum()) for least in (3, 4)]


def main():
    """Print a row for gold trees, and one for each draw."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("treebank")
    arguments.add_argument("--cache", type=Path, required=True)
    arguments.add_argument("--sentences", type=int, default=10**9)
    arguments.add_argument("--order", type=int, default=3)
    arguments.add_argument("--threshold", type=float, default=3.0)
    arguments.add_argument("--degree", type=int, default=2)
    options = arguments.parse_args()
    with messages_to(lambda text: print(f"# {text}", flush=True)):
        corpus = make_forests(options)
        encoder = ArcEncoder.from_trees(corpus.trees)
        found = FoundParts.from_indices(encoder, corpus.trees, corpus.indices)
        basic = BasicFeatures.from_arcs(encoder, found.keys, MIN_COUNT)
        parts = found.as_roles(basic)
        print(
            f"{'trees':10}"
            + "".join(f"{f'purity {least}':>12}" for least in PURITIES)
            + f"{'z > 3':>12}{'z > 4':>12}"
        )
        drawn = [(f"drawn {seed}", corpus.draw(seed)) for seed in range(N_DRAWS)]
        for name, is_gold in [("gold", corpus.is_gold), *drawn]:
            counts = count(corpus, parts, len(basic), is_gold, options)
            print(f"{name:10}" + "".join(f"{each:12,}" for each in counts), flush=True)


if __name__ == "__main__":
    main()
