"""Accuracy, speed, memory and size of dependency parsers of each order.

python benchmarks/parsing.py train.conllu dev.conllu test.conllu [order ...]
"""

import os
import resource
import sys
import tempfile
import time

import treewright as tw


def score_line(test, parsed):
    """Return UAS and LAS with and without punctuation."""
    cells = []
    for rule in (True, "unicode", "penn"):
        score = tw.metrics.attachment(test, parsed, punctuation=rule)
        cells.append(f"{rule}: {score.uas:.2f}/{score.las:.2f}")
    return "  ".join(cells)


def main(train_path, dev_path, test_path, *orders):
    """Train and test one parser for each order."""
    train, dev, test = (tw.read_conllu(path) for path in (train_path, dev_path, test_path))
    for order in map(int, orders or ("1", "2", "3")):
        start = time.perf_counter()
        parser = tw.DependencyParser(order=order).fit(train, dev, progress=print)
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
        print(f"order {order}: UAS/LAS {score_line(test, parsed)}")
        print(f"  {seconds:.0f} s to train, {rate:.0f} sentences a second, {size:.1f} MB, {memory:.0f} MiB")


if __name__ == "__main__":
    main(*sys.argv[1:])
