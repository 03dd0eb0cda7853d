"""Gains of mined features in a parser's forests, by selection, training and decoding.

    python benchmarks/mined_features.py TREEBANK --cache FOLDER [--sentences N] [--order 3] [--epochs 4]
        [--folds 5] [--fold-epochs 4] [--threshold 3] [--degree 2] [--purities 0.3,0.5,0.7]
        [--passes 4] [--costs 0] [--held-out 0] [--fold-by auto] [--test] [--jobs 2]

TREEBANK is a path prefix such as DATA/ewt/en_ewt-ud. Whole documents are used until there are enough
sentences. Settings are compared on the dev set and, with `--held-out`, on training sentences of other
documents. With `--test`, the setting with the largest gain is scored on the test set. The baseline is a
linear model of one training run. Each row has the gains over its best trees after each pass over the forests:
of the best tree and of the minimum Bayes risk tree (most expected correct heads), without and with mined
features. Crossing arcs remain lifted, also in gold trees.
"""

import argparse
from pathlib import Path

import numpy as np
from reranking_control import take
from scipy.sparse import csr_matrix

import treewright as tw
import treewright.parsing.dependency.training as training_module
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.arcs import ArcEncoder
from treewright.data.documents import resolve_fold_by
from treewright.metrics.significance import significance
from treewright.mining.forest import PartMatcher, mine_parts
from treewright.native.dependency.forests import Firing, LogLinear, split_scores
from treewright.parsing.contract import Batch
from treewright.parsing.dependency.forest_mining import FIRST_SQUARE, MIN_COUNT, RATE
from treewright.parsing.dependency.forests import BasicFeatures, ForestCorpus, FoundParts, probable_arcs
from treewright.parsing.dependency.lattice import Lattice
from treewright.parsing.dependency.training import FOREST_EPOCHS, NARROWING, ParserTrainer
from treewright.progress import messages_to, report
from treewright.scale import map_jobs

SLICE = 200
"""Sentences that a thread parses at a time."""


def read(treebank, part):
    """Return the trees of a part that have words."""
    return [tree for tree in tw.read_conllu(f"{treebank}-{part}.conllu") if len(tree)]


class HeldOut:
    """Sentences that neither the linear model nor the miner has seen, over the arcs that are probable."""

    def __init__(self, name, trees, learnt, n_jobs):
        self.name, self.n_jobs = name, n_jobs
        self.trees = [learnt.decoder.lift(tree) for tree in trees]
        corpus = learnt.encoder.encode(self.trees)
        batch = Batch(self.trees, corpus)

        def narrow(number):
            lattice = learnt.decoder.lattice(learnt.scorer, batch, number, {})
            keep = probable_arcs(lattice, learnt.scale, NARROWING)
            narrowed = Lattice(keep, single_root=lattice.single_root)
            scores = learnt.scorer.score_encoded(corpus, number, narrowed)
            return narrowed.with_scores({kind: learnt.scale * each for kind, each in scores.items()})

        self.lattices = self._spread(narrow)
        flat = [np.concatenate([each.scores[kind] for kind in each.kinds]) for each in self.lattices]
        self.base = np.concatenate(flat)
        self.ends = np.cumsum([0, *map(len, flat)])
        self.before = self.parse(self.base)

    def _spread(self, function):
        """Return what a function finds for each sentence."""
        starts = range(0, len(self.trees), SLICE)
        found = map_jobs(
            lambda start: [function(number) for number in range(start, min(start + SLICE, len(self.trees)))],
            starts,
            n_jobs=self.n_jobs,
        )
        return [each for part in found for each in part]

    def parse(self, scores):
        """Return the best trees, and those with the most expected correct heads."""

        def find(number):
            lattice = self.lattices[number]
            own = scores[self.ends[number] : self.ends[number + 1]]
            lattice = lattice.with_scores(split_scores(lattice.arranged, own)._asdict())
            rows, _ = lattice.marginals()
            arranged = lattice.arranged
            expected = {"arc": rows[arranged.modifier - 1, arranged.head]}
            tree = self.trees[number]
            return [
                tree.with_heads(each.best_trees(1)[0][0]) for each in (lattice, lattice.with_scores(expected))
            ]

        return list(zip(*self._spread(find), strict=True))

    def match(self, encoder, basic, matcher):
        """Find mined features in the parts of the sentences."""
        found = FoundParts.from_indices(encoder, self.trees, [each.arranged for each in self.lattices])
        indptr, ids = matcher.match(found.as_roles(basic))
        shape = len(self.base), len(matcher.known.keys)
        self.matrix = csr_matrix((np.ones(len(ids), dtype=np.float32), ids, indptr), shape=shape)

    def describe(self, coef, n_shuffles=1000):
        """Return the gains of weights as text, and the number of heads that are right by heads."""
        best, by_heads = self.parse(self.base + self.matrix @ coef)
        plain = self.before[0]
        pairs = {
            "": (best, plain),
            "by heads ": (by_heads, plain),
            "over base by heads ": (by_heads, self.before[1]),
        }
        texts = []
        for name, (after, before) in pairs.items():
            gain = significance(self.trees, after, before, n_shuffles=n_shuffles)
            texts.append(f"{name}{gain.difference:+.2f} (p = {gain.p_value:.4f})")
        n_right = sum(int((a.heads == b.heads).sum()) for a, b in zip(self.trees, by_heads, strict=True))
        return ", ".join(texts), n_right


def compare(options, training, held_out):
    """Print the gains of each setting; return what matches features, and the weights that gain most."""
    encoder = ArcEncoder.from_trees(training.trees)
    found = FoundParts.from_indices(encoder, training.trees, training.indices)
    basic = BasicFeatures.from_arcs(encoder, found.keys, MIN_COUNT)
    parts = found.as_roles(basic)
    del found
    residues, loss = training.residues()
    report(f"{len(parts.codes):,} parts, log-loss {loss:.3f}")
    purities = [float(each) for each in options.purities.split(",")]
    mined = mine_parts(
        parts,
        residues,
        len(basic),
        options.threshold,
        min_purity=min(purities),
        degree=options.degree,
        n_jobs=options.jobs,
    )
    matcher = PartMatcher(mined.features, len(basic))
    indptr, ids = matcher.match(parts)
    for part in held_out:
        part.match(encoder, basic, matcher)
    best = -1, "", np.zeros(0)
    is_arc = parts.codes // 4 == 0
    plain = training.base
    n, n_features = len(training.trees), len(mined.features)
    for purity in purities:
        kept = mined.purity >= purity
        is_used = kept[ids]
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(is_used)])
        firing = Firing(before[indptr], ids[is_used])
        for cost in map(float, options.costs.split(",")):
            training.base = plain + cost * (is_arc & ~training.is_gold)
            weights, totals = np.zeros(n_features), np.zeros(n_features)
            model = LogLinear(weights, np.full(n_features, FIRST_SQUARE), totals)
            for epoch in range(options.passes):
                order = np.random.default_rng([0, epoch]).permutation(n)
                training.learn(firing, model, order, rate=RATE, n_done=epoch * n)
                coef = weights - totals / ((epoch + 1) * n)
                name = f"purity {purity:g}, cost {cost:g}, {kept.sum():,} features, pass {epoch + 1}"
                n_right = 0
                for part in held_out:
                    text, n_right_here = part.describe(coef)
                    n_right += n_right_here
                    print(f"{name}, {part.name}: {text}", flush=True)
                if n_right > best[0]:
                    best = n_right, name, coef
    return (encoder, basic, matcher), best[1], best[2]


def main():
    """Train the linear models, make forests, compare settings."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("treebank")
    arguments.add_argument("--cache", type=Path, required=True)
    arguments.add_argument("--sentences", type=int, default=10**9)
    arguments.add_argument("--order", type=int, default=3)
    arguments.add_argument("--epochs", type=int, default=4)
    arguments.add_argument("--folds", type=int, default=5)
    arguments.add_argument("--fold-epochs", type=int, default=FOREST_EPOCHS)
    arguments.add_argument("--threshold", type=float, default=3.0)
    arguments.add_argument("--degree", type=int, default=2)
    arguments.add_argument("--purities", default="0.3,0.5,0.7")
    arguments.add_argument("--passes", type=int, default=4)
    arguments.add_argument(
        "--costs", default="0", help="costs of wrong arcs in training, separated by commas"
    )
    arguments.add_argument("--test", action="store_true")
    arguments.add_argument("--held-out", type=int, default=0)
    arguments.add_argument("--fold-by", default="auto")
    arguments.add_argument("--jobs", type=int, default=2)
    options = arguments.parse_args()
    training_module.FOREST_EPOCHS = options.fold_epochs
    everything, dev = read(options.treebank, "train"), read(options.treebank, "dev")
    trees = take(everything, options.sentences)
    taken = set(map(id, trees))
    others = [tree for tree in everything if id(tree) not in taken][: options.held_out]
    parser = tw.DependencyParser(
        fold_by=resolve_fold_by(options.fold_by, trees, dev),
        order=options.order,
        runs=1,
        epochs=options.epochs,
        folds=options.folds,
        mine=True,
        mining_significance=None,
        n_jobs=options.jobs,
    )
    identity = fingerprint(list(parser.result_params().items()), trees, dev)
    trainer = ParserTrainer(parser, Checkpoint(options.cache / identity[:12], identity))
    with messages_to(lambda text: print(f"# {text}", flush=True)):
        prepared = trainer._restore(trees) or trainer._prepare(trees)
        learnt, forests = map_jobs(
            lambda step: step(),
            [lambda: trainer._learn(prepared, dev, dev), lambda: trainer._jackknifed_forests(prepared)],
            n_jobs=min(2, options.jobs),
        )
        held_out = [HeldOut("dev", dev, learnt, options.jobs)]
        if others:
            held_out.append(HeldOut("other training sentences", others, learnt, options.jobs))
        for part in held_out:
            gain = significance(part.trees, part.before[1], part.before[0], n_shuffles=2000)
            uas = tw.metrics.attachment(part.trees, part.before[0]).uas
            print(
                f"{len(trees)} sentences, {options.folds} folds, {part.name}: base UAS {uas:.2f}; "
                f"by heads {gain.difference:+.2f} (p = {gain.p_value:.4f})",
                flush=True,
            )
        single_root = learnt.decoder.single_root_
        training = ForestCorpus(prepared.trees, forests, single_root=single_root)
        del forests
        matching, name, coef = compare(options, training, held_out)
        if options.test:
            test = HeldOut("test", read(options.treebank, "test"), learnt, options.jobs)
            test.match(*matching)
            uas = tw.metrics.attachment(test.trees, test.before[0]).uas
            print(
                f"test, base UAS {uas:.2f}; {name}: {test.describe(coef, n_shuffles=10_000)[0]}", flush=True
            )


if __name__ == "__main__":
    main()
