"""Rerankers on top of a network: mined features, the kernel over its output layer, and both.

    python benchmarks/network_reranking.py FOLDER TREEBANK [...] [--folds 5] [--part dev]

FOLDER has the networks trained by `choosing.py networks` on the whole treebank and for its folds. The
sentences of each fold are parsed with the network that was not trained on the documents of the fold. Both
rerankers are trained on these lists. Their weights relative to the parser's score are tuned on the dev set;
then the chosen part of the treebank is reranked. Gains are tested by approximate randomisation.
"""

import argparse
from pathlib import Path

import numpy as np

import treewright as tw
from treewright.data.documents import deal_folds
from treewright.metrics.significance import significance
from treewright.mining.gradient import GradientMiner
from treewright.mining.problem import list_problem
from treewright.progress import messages_to
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.features import SubtreeFeatures
from treewright.rerank.linear import LinearScorer
from treewright.rerank.network_kernel import NetworkKernelScorer
from treewright.rerank.tuning import combine, tune

K = 10
SHARES = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Of the kernel beside mined features, in terms of how far their scores lie apart."""


def parse_folds(folder, name, train, folds):
    """Return lists of training sentences, by networks that have not seen their documents."""
    parts = deal_folds(train, folds, random_state=0).parts
    found = []
    for number, part in enumerate(parts):
        aside = set(part.tolist())
        rest = [tree for at, tree in enumerate(train) if at not in aside]
        mine = [train[at] for at in part.tolist()]
        network = tw.load(folder / f"{name}.0.fold{number}of{folds}")
        parser = tw.DependencyParser(scorer=network).fit(rest, mine)
        found.append(CandidateLists.from_structures(parser.structures(mine, K)))
    return CandidateLists.joined(found).select(np.argsort(np.concatenate(parts)).tolist())


def learn(parser, lists, gold):
    """Return the mined features and the kernel, learnt from lists."""
    training = lists.with_gold(gold)
    lists, right = training.lists, training.right
    problem = list_problem(lists.indptr, right, base_scores=lists.scores * parser.scale_)
    mined = LinearScorer(SubtreeFeatures(GradientMiner(degree=3, threshold=3.0, max_iter=1), copies=4))
    kernel = NetworkKernelScorer().attach(parser)
    return mined.fit(lists, problem, checkpoint=None), kernel.fit(lists, right)


def spread(scores, lists):
    """Return how far scores lie apart within lists."""
    return float(np.mean([scores[begin:end].std() for begin, end in lists.spans()])) or 1.0


def rerank(folder, stem, folds, part):
    """Print a row for each reranker of a treebank."""
    name = Path(stem).name
    train, dev, test = (tw.read_conllu(f"{stem}-{each}.conllu") for each in ("train", "dev", part))
    train = [tree for tree in train if len(tree)]
    parser = tw.DependencyParser(scorer=tw.load(folder / f"{name}.0.network")).fit(train, dev)
    lists = parse_folds(folder, name, train, folds)
    uas, oracle = lists.uas([parser.lifted(tree).heads for tree in train])
    found = parser.predict(dev)
    print(f"{name}: lists {uas:.2f}, best {oracle:.2f}; dev {tw.metrics.attachment(dev, found).uas:.2f}")
    with messages_to(lambda text: print(name, text, flush=True)):
        mined, kernel = learn(parser, lists, [parser.lifted(tree).heads for tree in train])
    tuning, tested = (CandidateLists.from_structures(parser.structures(each, K)) for each in (dev, test))
    gold = [parser.lifted(tree).heads for tree in dev]
    trials = mined.trials(tuning)
    mined.choose(tune(tuning, gold, trials).number)
    votes = {each: (mined.score(each), kernel.score(each)) for each in (tuning, tested)}
    unit = spread(votes[tuning][0][:, 0], tuning) / spread(votes[tuning][1][:, 0], tuning)
    ways = {"mined": (1.0, (0.0,)), "kernel": (0.0, (1.0,)), "both": (1.0, SHARES)}
    base = parser.complete([tested.candidate(at) for at in tested.indptr[:-1].tolist()])
    for way, (share, others) in ways.items():
        tried = [share * votes[tuning][0] + other * unit * votes[tuning][1] for other in others]
        chosen = tune(tuning, gold, tried)
        final = share * votes[tested][0] + others[chosen.number] * unit * votes[tested][1]
        best = tested.best(combine(tested, final, chosen.beta))
        reranked = parser.complete([tested.candidate(at) for at in best.tolist()])
        scores = [tw.metrics.attachment(test, each) for each in (base, reranked)]
        p_value = significance(test, reranked, base, random_state=0).p_value
        print(
            f"{name:16} {way:7} {part}: {scores[0].uas:.2f}/{scores[0].las:.2f} to "
            f"{scores[1].uas:.2f}/{scores[1].las:.2f}, p = {p_value:.4f}; dev, halves across: "
            f"{chosen.gain:+.2f}, p = {chosen.p_value:.4f}",
            flush=True,
        )


def main():
    """Rerank each treebank."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("treebanks", nargs="+")
    arguments.add_argument("--folds", type=int, default=5)
    arguments.add_argument("--part", default="dev")
    chosen = arguments.parse_args()
    for stem in chosen.treebanks:
        rerank(chosen.folder, stem, chosen.folds, chosen.part)


if __name__ == "__main__":
    main()
