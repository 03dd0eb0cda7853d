"""Tasks of scale.py: each function prepares its data and returns the task, which returns a note."""

import os
import sys
from itertools import islice
from pathlib import Path

WARM = 50
"""Sentences of the call that loads compiled code."""
SHARE = 50
"""Thresholds of mining are one sentence in so many."""
MEGABYTE = 1 << 20


def stream(path):
    """Read sentence by sentence."""
    import treewright as tw

    next(tw.iter_conllu(path))
    return lambda: f"{sum(map(len, tw.iter_conllu(path))):,} words"


def read_list(path):
    """Read a whole file."""
    import treewright as tw

    next(tw.iter_conllu(path))
    return lambda: f"{len(tw.read_conllu(path)):,} trees"


def write(path, suffix=""):
    """Write trees that are in memory."""
    import treewright as tw

    trees, target = tw.read_conllu(path), f"{path}.written{suffix}"
    tw.write_conllu(trees[:WARM], target)

    def work():
        tw.write_conllu(trees, target)
        size = os.path.getsize(target)
        os.remove(target)
        return f"{size / len(trees):,.0f} bytes a sentence"

    return work


def send(path):
    """Pickle trees and read them back, 250 at a time, as when a cluster parses a file."""
    import pickle

    import treewright as tw

    trees = tw.read_conllu(path)

    def work():
        n_bytes = 0
        for begin in range(0, len(trees), 250):
            content = pickle.dumps(trees[begin : begin + 250], pickle.HIGHEST_PROTOCOL)
            n_bytes += len(content)
            pickle.loads(content)
        return f"{n_bytes / len(trees):,.0f} bytes a sentence"

    return work


def parse(path, model):
    """Run `treewright parse`, as from the command line."""
    from treewright.cli import run

    def call(source, target):
        sys.argv = ["treewright", "parse", model, source, "--output", target]
        if run() != 0:
            raise SystemExit(f"treewright parse {model} {source} failed")

    warm, target = f"{path}.begin", f"{path}.{Path(model).stem}"
    write_beginning(path, warm)
    call(warm, target)
    os.remove(warm)

    def work():
        call(path, target)
        size = os.path.getsize(target)
        os.remove(target)
        return f"{size / MEGABYTE:,.0f} MB written"

    return work


def write_beginning(path, target):
    """Write the first sentences of a file to another."""
    import treewright as tw

    tw.write_conllu(islice(tw.iter_conllu(path), WARM), target)


def conjunctions(path, limit):
    """Mine conjunctions of up to three lemmas that tell whether a noun has a prepositional phrase."""
    from treewright.mining.miner import ConjunctionMiner
    from treewright.progress import listening

    rows, labels = lemma_rows(path)
    options = {
        "degree": 3,
        "path": False,
        "max_iter": 3,
        "tol": 0.0,
        "refine": 5,
        "memory_limit": limit,
    }
    ConjunctionMiner(threshold=500 / SHARE, **options).fit(rows[:500], labels[:500])

    def work():
        reports = []
        # A threshold is a number of samples: with a fixed one, ever rarer conjunctions would be counted.
        miner = ConjunctionMiner(threshold=rows.shape[0] / SHARE, **options)
        with listening(reports.append):
            miner.fit(rows, labels)
        records = [getattr(each, "record", None) for each in reports]
        orders = [each for each in records if hasattr(each, "n_bytes_on_disk")]
        on_disk = max(each.n_bytes_on_disk for each in orders) / MEGABYTE
        kept = max(each.n_bytes for each in orders) / MEGABYTE
        n_met = sum(each.n_instances for each in orders)
        found = f"{len(miner.conjunctions_):,} selected, {n_met:,} counted"
        return f"{found}, kept {kept:,.0f} MB and {on_disk:,.0f} MB on disk"

    return work


def drawn_conjunctions(limit):
    """Mine conjunctions of up to four of 60 columns in 200,000 rows, nearly all of which survive."""
    import hashlib

    from treewright.mining.miner import ConjunctionMiner
    from treewright.progress import listening

    rows, labels = draw_rows(200_000, 60, 12)
    options = {"degree": 4, "path": False, "max_iter": 2, "tol": 0.0, "refine": 5}
    ConjunctionMiner(threshold=20, **options).fit(rows[:500], labels[:500])
    with open("/proc/self/clear_refs", "w") as target:
        target.write("5")  # The peak begins anew: drawing the rows took more than they do.

    def work():
        reports = []
        miner = ConjunctionMiner(threshold=150, memory_limit=limit, **options)
        with listening(reports.append):
            miner.fit(rows, labels)
        records = [getattr(each, "record", None) for each in reports]
        orders = [each for each in records if hasattr(each, "n_bytes_on_disk")]
        kept, on_disk = (
            max(getattr(each, name) for each in orders) for name in ("n_bytes", "n_bytes_on_disk")
        )
        digest = hashlib.sha256(repr(miner.conjunctions_).encode() + miner.coef_.tobytes()).hexdigest()[:8]
        kept, on_disk = kept / MEGABYTE, on_disk / MEGABYTE
        return f"{kept:,.0f} | {on_disk:,.0f} | {len(miner.conjunctions_):,} | `{digest}`"

    return work


def draw_rows(n_rows, n_columns, n_draws, random_state=0):
    """Return a binary matrix, with some columns a little more frequent than others, and labels."""
    import numpy as np
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(random_state)
    shares = np.arange(1, n_columns + 1) ** -0.25
    dense = np.zeros((n_rows, n_columns), dtype=np.int8)
    columns = rng.choice(n_columns, size=(n_rows, n_draws), p=shares / shares.sum())
    dense[np.arange(n_rows)[:, np.newaxis], columns] = 1
    told = (dense[:, 1] & dense[:, 3] & dense[:, 10]) | (dense[:, 5] & dense[:, 7])
    return csr_matrix(dense), told ^ (rng.random(n_rows) < 0.45)


def lemma_rows(path):
    """Return which lemmas each sentence has, a binary matrix, and whether it has an nmod, from a stream."""
    from array import array

    import numpy as np
    from scipy.sparse import csr_matrix

    import treewright as tw

    columns, indices, first, labels = {}, array("i"), array("q", [0]), array("b")
    for tree in tw.iter_conllu(path):
        indices.extend(sorted({columns.setdefault(lemma, len(columns)) for lemma in tree.lemmas}))
        first.append(len(indices))
        labels.append("nmod" in tree.deprels)
    present = np.ones(len(indices), dtype=np.int8)
    arrays = present, np.frombuffer(indices, dtype=np.int32), np.frombuffer(first, dtype=np.int64)
    return csr_matrix(arrays, shape=(len(labels), len(columns))), np.frombuffer(labels, dtype=np.int8)


def subtrees(path, model):
    """Mine subtrees of up to two arcs that tell the best of eight candidates, where a parser errs."""
    import treewright as tw

    parser = tw.load(model)
    trees = tw.read_conllu(path)
    found = parser.structures(trees, 8)
    mine_subtrees(trees[:500], found[:500], parser.scale_)
    return lambda: mine_subtrees(trees, found, parser.scale_)


def mine_subtrees(trees, found, scale):
    """Run two rounds through the space of subtrees."""
    import numpy as np

    import treewright as tw

    heads = [each.heads for each in found]
    right = [int((some == tree.heads).sum(axis=1).argmax()) for some, tree in zip(heads, trees, strict=True)]
    first = np.concatenate([[0], np.cumsum([len(each) for each in heads])])
    scores = np.concatenate([each.scores for each in found]) * scale
    problem = tw.list_problem(first, first[:-1] + right, base_scores=scores)
    space = tw.SubtreeSpace(trees, heads, copies=1)
    options = {"max_iter": 2, "path": False, "tol": 0.0, "refine": 5}
    mined = tw.GradientMiner(degree=2, threshold=len(trees) / SHARE, **options).fit(space, problem)
    n_met = sum(each.n_instances for each in mined.orders)
    return f"{mined.n_selected:,} selected, {n_met:,} counted"


def gram(path):
    """Write the matrix of the subset tree kernel to a file."""
    import treewright as tw

    trees = tw.read_brackets(path)
    kernel = tw.SubsetTreeKernel(decay=0.4, normalize=True)
    target = f"{path}.npy"
    tw.gram(kernel, trees[:WARM], out=target)

    def work():
        tw.gram(kernel, trees, out=target, memory_limit=256 * MEGABYTE)
        size = os.path.getsize(target)
        os.remove(target)
        return f"{len(trees) * (len(trees) + 1) // 2:,} pairs, {size / MEGABYTE:,.0f} MB written"

    return work


def nystroem(path):
    """Turn trees into 200 numbers each, by their kernels with 200 of the first 1,000 trees."""
    import treewright as tw

    trees = tw.read_brackets(path)
    landmarks = tw.TreeKernelNystroem(tw.SubsetTreeKernel(decay=0.4, normalize=True), n_components=200)
    landmarks.fit(trees[:1000])
    landmarks.transform(trees[:WARM])
    return lambda: f"{landmarks.transform(trees).shape[1]} numbers a tree"


def train(path):
    """Train a dependency parser of order 1, in one run of three epochs."""
    import treewright as tw

    trees = tw.read_conllu(path)
    options = {"order": 1, "runs": 1, "epochs": 3, "folds": 2}
    tw.DependencyParser(**options).fit(trees[:WARM])

    def work():
        parser = tw.DependencyParser(**options).fit(trees)
        return f"heads kept by pruning {parser.recall_:.2f}%"

    return work
