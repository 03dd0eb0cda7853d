"""A positive control for rerankers: their gain compared with a gain that the same sentences make possible.

    python benchmarks/reranking_control.py TREEBANK --cache FOLDER [--sentences 3000,6000,12544] [--order 1]
        [--bound 3] [--ways forest,subtree,template,paper] [--part dev] [--jobs 2] [--results FILE]

TREEBANK is a path prefix such as DATA/ewt/en_ewt-ud. A weak parser of order 1 or 2 makes 10-best lists. A
stronger parser of order 3, trained on the same sentences, ranks the same lists by its arc probabilities. Its
gain over the weak parser is the bound, since it has no other training data. Rerankers are trained on
candidate lists of the weak parser, jackknifed by documents; mined features of parts (`forest`) are trained on
its forests. Their gain is compared with the bound. They are used even if their gain on dev is not
significant. `paper` is a reranker with the settings of Qian & Liu (2015). Whole documents are used until
there are enough sentences. With `--order 3`, there is no stronger parser: the lists are ranked by the
parser's own probabilities (minimum Bayes risk), and the rows for several sizes are a learning curve.

Rows are appended to the file of results, as JSON lines, as soon as they are finished; rows that it contains
are not computed again. Parsers and lists are kept in the cache folder, so an interrupted run continues there.
`--ways lists` only makes the jackknifed lists and `--ways base` only the parsers; other processes can do both
at the same time with the same cache, before the rerankers are trained.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

import treewright as tw
from treewright.checkpoint import fingerprint
from treewright.data.documents import deal_folds, resolve_fold_by
from treewright.metrics.significance import significance
from treewright.progress import messages_to
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.jackknife import jackknife_lists
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
        parser.fit(trees, dev, checkpoint=f"{path}-steps").save(path)
    return tw.load(path)


class Rows:
    """The rows of results, printed as they are finished, and kept in a file if there is one."""

    def __init__(self, path):
        self.path = path
        kept = path.read_text().splitlines() if path is not None and path.exists() else []
        self.found = {self.key(row): row for row in map(json.loads, kept)}

    def key(self, row):
        """Return what identifies a row."""
        return tuple(row[name] for name in ("treebank", "part", "sentences", "order", "bound", "way"))

    def lacks(self, row):
        """Return whether a row is not there yet."""
        return self.key(row) not in self.found

    def add(self, row, started):
        """Keep and print a row."""
        row["seconds"] = round(time.monotonic() - started)
        row["peak_gib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20), 1)
        self.found[self.key(row)] = row
        if self.path is not None:
            with self.path.open("a") as stream:
                stream.write(json.dumps(row) + "\n")
        named = ("treebank", "part", "sentences", "order", "way")
        values = ", ".join(f"{name} {value}" for name, value in row.items() if name not in named)
        print(" ".join(str(row[name]) for name in named) + ": " + values, flush=True)


def compare(found, bound):
    """Return the gain of a way and, if there is a bound, how much of it that is."""
    share = {"share": round(100 * found.difference / bound)} if bound else {}
    return {"gain": round(found.difference, 2), "p": round(found.p_value, 4), **share}


def rank_by_marginals(strong, lists, sentences):
    """Return the tree of each list with the most arcs that a stronger parser expects."""
    scores = [
        rows[np.arange(len(rows)), heads].sum(axis=1)
        for rows, heads in zip(strong.marginals(sentences), lists.heads, strict=True)
    ]
    return lists.best(np.concatenate(scores))


def run(options, rows, n_sentences):
    """Add a row for the lists with the bound, and one for each way."""
    stem, ways = options.treebank, options.ways.split(",")
    everything, dev, test = (
        tw.read_conllu(f"{stem}-{part}.conllu") for part in ("train", "dev", options.part)
    )
    trees = take([tree for tree in everything if len(tree)], n_sentences)
    test = [tree for tree in test if len(tree)]
    name, started = f"{Path(stem).name}-{len(trees)}", time.monotonic()
    if ways == ["lists"]:
        parser = tw.DependencyParser(order=options.order, runs=1)
        parser = parser.with_params(fold_by=resolve_fold_by(parser.fold_by, trees, dev))
        jackknife_lists(parser, trees, k=K, n_jobs=options.jobs, cache=options.cache / "lists")
        return
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
    if ways == ["base"]:
        return
    lists = CandidateLists.from_structures(weak.structures(test, K))
    gold = [weak.lifted(tree).heads for tree in test]
    right = [tree.with_heads(heads) for tree, heads in zip(lists.trees, gold, strict=True)]
    first = [lists.candidate(at) for at in lists.indptr[:-1].tolist()]
    sizes = {"treebank": Path(stem).name, "part": options.part, "sentences": len(trees)}
    orders = {"order": options.order, "bound": options.bound}
    row = {**sizes, **orders, "way": "probabilities"}
    if rows.lacks(row):
        uas, oracle = lists.uas(gold)
        chosen = [lists.candidate(at) for at in rank_by_marginals(strong, lists, test).tolist()]
        found = compare(significance(right, chosen, first), None)
        rows.add(row | {"uas": round(uas, 2), f"best_of_{K}": round(oracle, 2)} | found, started)
    ranked = rows.found[rows.key(row)]["gain"]
    bound = ranked if options.bound > options.order and ranked > 0 else None
    for way in ways:
        row = {**sizes, **orders, "way": way}
        started = time.monotonic()
        if not rows.lacks(row):
            continue
        if way == "forest":
            parser = tw.DependencyParser(
                order=options.order, runs=1, mine=True, mining_significance=None, n_jobs=options.jobs
            )
            parser = train(options.cache, f"{name}-{options.order}-mined", parser, trees, dev)
            chosen = [parser.lifted(tree) for tree in parser.predict(test)]
            told = {"features": len(parser.mined_features_)}
        else:
            settings = PAPER if way == "paper" else {"space": way, "significance_level": None}
            reranker = tw.DependencyReranker(parser=weak, k=K, n_jobs=options.jobs, **settings)
            reranker.fit(trees, dev, cache=options.cache / "lists")
            scores = reranker._lists_and_scores(test, K, None)[1]
            chosen = [lists.candidate(at) for at in lists.best(scores).tolist()]
            told = {
                "features": reranker.n_features_,
                "lists_uas": round(reranker.jackknife_uas_, 2),
                "cross_validated_gain": round(reranker.gain_, 2),
                "cross_validated_p": round(reranker.p_value_, 4),
            }
        rows.add(row | compare(significance(right, chosen, first), bound) | told, started)


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
    arguments.add_argument("--results", type=Path)
    options = arguments.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    rows, started = Rows(options.results), time.monotonic()
    with messages_to(lambda text: print(f"# {time.monotonic() - started:.0f} s: {text}", flush=True)):
        for n_sentences in map(int, options.sentences.split(",")):
            run(options, rows, n_sentences)


if __name__ == "__main__":
    main()
