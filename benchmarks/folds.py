"""CPU time of jackknifed candidate lists, extrapolated from one fold, and UAS by epochs and runs.

    python benchmarks/folds.py train.conllu [--sentences 12544] [--folds 10] [--epochs 4] [--runs 2]

One pruning model, the epochs of one parser, one labeler and the lists of one fold are timed on one thread.
From these times, the total for all folds is computed for the current training, and for training in which each
fold has its own pruning models (on five inner folds and on all its sentences), a labeler, and 4 runs of 6
epochs. After each epoch, the UAS on the fold is printed, to choose the numbers of epochs and runs. The
training sentences of the fold's parser are pruned by two models, each trained on half of the treebank,
instead of nine models.
"""

import argparse
import time
from copy import copy
from itertools import islice

import numpy as np

import treewright as tw
from treewright.data.documents import deal_folds
from treewright.parsing.contract import Batch
from treewright.parsing.dependency.labeler import Labeler
from treewright.parsing.dependency.mira import MiraTrainer
from treewright.parsing.dependency.pruning import Pruner, select_arcs
from treewright.parsing.dependency.training import SharedFolds

OWN_MODELS, OWN_EPOCHS = 5.0, 24
"""Of a fold that shares nothing: pruning models, counted by their sentences, and epochs of all runs."""


def parse_arguments():
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train")
    parser.add_argument("--sentences", type=int, default=None, help="use only the first N sentences")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--order", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    return parser.parse_args()


class Clock:
    """Prints the CPU time of each step."""

    def __init__(self):
        self.start = time.process_time()

    def tick(self, text):
        """Print a step that ends now and return its seconds."""
        seconds = time.process_time() - self.start
        print(f"{seconds:8.1f} s  {text}", flush=True)
        self.start = time.process_time()
        return seconds


def prune(trees, order, clock):
    """Return what folds share, but for the numbers of their sentences, pruned by models of two halves."""
    parser = tw.DependencyParser(order=order)
    halves = deal_folds(trees, 2).parts
    shared, _ = parser.fold_trainer(trees).share_folds(trees, halves)
    clock.tick(f"two pruning models of halves, {shared.recall:.2f}% of the gold arcs kept")
    return shared


def learn_to_prune(shared, rest, order, clock):
    """Return the pruner of a fold and its seconds."""
    corpus = shared.encoder.encode([shared.lifted[number] for number in rest])
    single_root = shared.decoder.single_root_
    pruner = Pruner(tw.TemplateSet(), fine=order > 1, single_root=single_root).fit(corpus)
    return pruner, clock.tick(f"a pruning model of {len(rest)} sentences")


def train(options, shared, rest, mine, pruner, clock):
    """Train the parser of a fold; print its UAS on the fold after each epoch; return it and its seconds."""
    parser = tw.DependencyParser(order=options.order, epochs=options.epochs, runs=options.runs)
    trainer = parser.fold_trainer(shared.trees)
    scorer, decoder = trainer._make_scorer(shared.encoder), copy(shared.decoder)
    decoder.pruner_ = pruner
    corpus = shared.encoder.encode([shared.lifted[number] for number in rest])
    trees = [shared.lifted[number] for number in mine]
    batch = Batch(trees, shared.encoder.encode(trees))
    gold = np.concatenate([tree.heads for tree in trees])
    seconds = []

    def after_epoch(found, learnt):
        seconds.append(clock.tick(str(found)))
        heads, _ = decoder.best_trees(learnt, batch, 1)
        parsed = np.concatenate([heads[0, batch.corpus.words_of(at)] for at in range(len(trees))])
        clock.tick(f"UAS of the fold {100 * (parsed == gold).mean():.2f} after {found.run} x {found.epoch}")
        return 0.0

    mira = MiraTrainer(options.epochs, options.runs, parser.k, parser.bound, 0, None)
    arcs = select_arcs(shared.arcs, rest)
    learnt = mira.train(scorer, decoder, corpus, arcs, checkpoint=None, after_epoch=after_epoch)
    decoder.best_trees(learnt, batch, 10)
    return float(np.mean(seconds)), clock.tick(f"lists of {len(mine)} sentences")


def main():
    """Time the parts of a fold."""
    options = parse_arguments()
    trees = [tree for tree in islice(tw.iter_conllu(options.train), options.sentences) if len(tree)]
    tw.DependencyParser(order=options.order, epochs=1, runs=1).fit(trees[:20])  # compiles all
    parts, description = deal_folds(trees, options.folds)
    print(f"{len(trees)} sentences, {description}")
    clock = Clock()
    shared: SharedFolds = prune(trees, options.order, clock)
    mine = parts[0]
    rest = np.setdiff1d(np.arange(len(trees)), mine)
    pruner, pruning = learn_to_prune(shared, rest, options.order, clock)
    epoch, lists = train(options, shared, rest, mine, pruner, clock)
    Labeler().fit([shared.lifted[number] for number in rest], shared.encoder)
    labels = clock.tick("a labeler")
    before = OWN_MODELS * pruning + OWN_EPOCHS * epoch + labels + lists
    after = pruning + options.epochs * options.runs * epoch + lists
    for name, seconds in (
        ("nothing shared, 4 x 6 epochs", before),
        (f"shared, {options.runs} x {options.epochs}", after),
    ):
        total = options.folds * seconds / 60
        wall = total / options.cores
        print(
            f"{options.folds} folds, {name}: {total:.0f} minutes of CPU, {wall:.0f} on {options.cores} cores"
        )


if __name__ == "__main__":
    main()
