"""Accuracy, speed, memory and size of dependency parsers.

    python benchmarks/parsing.py train.conllu dev.conllu test.conllu [name ...]

The names are `1`, `2` and `3` for parsers of these orders with gold tags (the default); `spanning` for a
parser of order 1 that allows crossing arcs; `jackknife` for a parser of order 3 whose labels are trained on
jackknifed trees; and `predicted` for a parser of order 3 with its own tagger. Several test files, joined with
`+`, are scored as one.
"""

import os
import resource
import sys
import tempfile
import time

import treewright as tw

OPTIONS = {
    "1": {"order": 1},
    "2": {"order": 2},
    "3": {"order": 3},
    "spanning": {"order": 1, "decoder": "spanning"},
    "jackknife": {"jackknife": True},
    "predicted": {"tags": "predicted"},
}


def score_line(gold, parsed):
    """Return UAS and LAS with and without punctuation."""
    cells = []
    for rule in (True, "unicode", "penn"):
        score = tw.metrics.attachment(gold, parsed, punctuation=rule)
        cells.append(f"{rule}: {score.uas:.2f}/{score.las:.2f}")
    return "  ".join(cells)


def describe_calibration(parser, test, parsed):
    """Return the expected calibration error."""
    confident = [
        tree.with_misc([f"Confidence={one:.4f}" for one in parser.confidence(tree, marginals)])
        for tree, marginals in zip(parsed, parser.marginals(test), strict=True)
    ]
    return f"calibration error {tw.metrics.calibration(test, confident).error:.4f}"


def main(train_path, dev_path, test_paths, *names):
    """Train and test one parser for each name."""
    train, dev = tw.read_conllu(train_path), tw.read_conllu(dev_path)
    test = [tree for path in test_paths.split("+") for tree in tw.read_conllu(path)]
    for name in names or ("1", "2", "3"):
        start = time.perf_counter()
        with tw.progress.messages_to(print):
            parser = tw.DependencyParser(**OPTIONS[name]).fit(train, dev)
        seconds = time.perf_counter() - start
        parser.predict(test[:10])
        start = time.perf_counter()
        parsed = parser.predict(test)
        rate = len(test) / (time.perf_counter() - start)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "parser")
            parser.save(path)
            size = os.path.getsize(path) / 1e6
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name} dev: UAS/LAS {score_line(dev, parser.predict(dev))}")
        print(f"{name} test: UAS/LAS {score_line(test, parsed)}")
        if parser.tagger_:
            print(f"  tags: {parser.tagger_.score(test)}")
        print(
            f"  {seconds:.0f} s to train, {rate:.0f} sentences a second, {size:.1f} MB, {memory:.0f} MiB, "
            f"{describe_calibration(parser, test, parsed)}",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
