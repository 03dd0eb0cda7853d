"""A positive control for rerankers: their gain compared with a gain that the same sentences make possible.

    python benchmarks/reranking_control.py TREEBANK --cache FOLDER [--sentences 3000,6000,12544] [--order 1]
        [--bound 3] [--ways forest,subtree,template,paper] [--part dev] [--jobs 2]

TREEBANK is a path prefix such as DATA/ewt/en_ewt-ud. A weak parser of order 1 or 2 makes 10-best lists. A
stronger parser of order 3, trained on the same sentences, ranks the same lists by its arc probabilities. Its
gain over the weak parser is the bound, since it has no other training data. Rerankers are trained on
candidate lists of the weak parser, jackknifed by documents; mined features of parts (`forest`) are trained on
its forests. Their gain is compared with the bound. They are used even if their gain on dev is not
significant. `paper` is a reranker with the settings of Qian & Liu (2015). Whole documents are used until
there are enough sentences. With `--order 3`, there is no stronger parser: the lists are ranked by the
parser's own probabilities (minimum Bayes risk), and the rows for several sizes are a learning curve.
"""

import argparse
from pathlib import Path

import numpy as np

import treewright as tw
from treewright.checkpoint import fingerprint
from treewright.data.documents import deal_folds
from treewright.metrics.significance import significance
from treewright.progress import messages_to
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.reranker import PAPER_SETTINGS

K = 10
PAPER = {**PAPER_SETTINGS, "filter_memory": None, "memory_limit": None}
"""The settings of the paper; without the filter and files on disk, mining is faster and finds the same."""
PARTS = 50
"""Of whole documents, into which a treebank is divided to take some of it."""


def take(trees, n_sentences):
    """Return whole documents, chosen at random, of about so many sentences in all."""
    if n_sentences >= len(trees):
        return trees
    chosen = []
    for part in deal_folds(trees, PARTS).parts:
        if len(chosen) < n_sentences:
            chosen += part.tolist()
    return [trees[number] for number in sorted(chosen)]


def train(folder, name, parser, trees, dev):
    """Return a parser that is trained, or was kept; its name tells its options and the sentences, too."""
    path = folder / f"{name}-{fingerprint(list(parser.result_params().items()), trees, dev)[:12]}"
    if not path.exists():
        parser.fit(trees, dev).save(path)
    return tw.load(path)


def print_row(way, found, bound, told):
    """Print what a way gains and, if there is a bound, how much of it that is."""
    share = f", {100 * found.difference / bound.difference:.0f}% of the bound" if bound else ""
    print(f"    {way:10} {found.difference:+.2f} (p = {found.p_value:.4f}){share}; {told}", flush=True)


def rank_by_marginals(strong, lists, sentences):
    """Return the tree of each list with the most arcs that a stronger parser expects."""
    scores = [
        rows[np.arange(len(rows)), heads].sum(axis=1)
        for rows, heads in zip(strong.marginals(sentences), lists.heads, strict=True)
    ]
    return lists.best(np.concatenate(scores))


def run(options, stem, n_sentences):
    """Print the bound, and a row for each reranker."""
    everything, dev, test = (
        tw.read_conllu(f"{stem}-{part}.conllu") for part in ("train", "dev", options.part)
    )
    trees = take([tree for tree in everything if len(tree)], n_sentences)
    test = [tree for tree in test if len(tree)]
    name = f"{Path(stem).name}-{len(trees)}"
    weak, strong = (
        train(
            options.cache,
            f"{name}-{order}",
            tw.DependencyParser(order=order, runs=1, n_jobs=options.jobs),
            trees,
            dev,
        )
        for order in (options.order, options.bound)
    )
    lists = CandidateLists.from_structures(weak.structures(test, K))
    gold = [weak.lifted(tree).heads for tree in test]
    uas, oracle = lists.uas(gold)
    right = [tree.with_heads(heads) for tree, heads in zip(lists.trees, gold, strict=True)]
    first = [lists.candidate(at) for at in lists.indptr[:-1].tolist()]
    ranked = significance(
        right, [lists.candidate(at) for at in rank_by_marginals(strong, lists, test).tolist()], first
    )
    bound = ranked if options.bound > options.order and ranked.difference > 0 else None
    print(
        f"{len(trees)} sentences, order {options.order}, {options.part}: UAS {uas:.2f}, "
        f"best of {K} {oracle:.2f}; ranked by the probabilities of order {options.bound} "
        f"{ranked.difference:+.2f} (p = {ranked.p_value:.4f})",
        flush=True,
    )
    for way in options.ways.split(","):
        if way == "forest":
            parser = tw.DependencyParser(
                order=options.order, runs=1, mine=True, mining_significance=None, n_jobs=options.jobs
            )
            parser = train(options.cache, f"{name}-{options.order}-mined", parser, trees, dev)
            chosen = [parser.lifted(tree) for tree in parser.predict(test)]
            found = significance(right, chosen, first)
            told = f"{len(parser.mined_features_)} features"
            print_row(way, found, bound, told)
            continue
        settings = PAPER if way == "paper" else {"space": way, "significance_level": None}
        reranker = tw.DependencyReranker(parser=weak, k=K, n_jobs=options.jobs, **settings)
        reranker.fit(trees, dev, cache=options.cache / "lists")
        chosen = [
            lists.candidate(at) for at in lists.best(reranker._lists_and_scores(test, K, None)[1]).tolist()
        ]
        found = significance(right, chosen, first)
        print_row(way, found, bound, f"{reranker.n_features_} features, lists {reranker.jackknife_uas_:.2f}")


def main():
    """Run the control at each size."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("treebank")
    arguments.add_argument("--cache", type=Path, required=True)
    arguments.add_argument("--sentences", default="3000,6000,12544")
    arguments.add_argument("--order", type=int, default=1)
    arguments.add_argument("--bound", type=int, default=3)
    arguments.add_argument("--ways", default="forest,subtree,template")
    arguments.add_argument("--part", default="dev")
    arguments.add_argument("--jobs", type=int, default=2)
    options = arguments.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    with messages_to(lambda text: print(f"# {text}", flush=True)):
        for n_sentences in map(int, options.sentences.split(",")):
            run(options, options.treebank, n_sentences)


if __name__ == "__main__":
    main()
