"""Accuracy, speed, memory, size and training time of the tagger.

python benchmarks/tagging.py train.conllu dev.conllu test.conllu
"""

import os
import resource
import sys
import tempfile
import time

import treewright as tw
from treewright.tagging.tagger import Tagger, compare_tags


def main(train_path, dev_path, test_path):
    """Train a tagger and tag the other two files with it."""
    train, dev, test = (tw.read_conllu(path) for path in (train_path, dev_path, test_path))
    Tagger(epochs=1).fit(train[:50]).predict(dev[:5])  # compiles
    start = time.perf_counter()
    with tw.progress.messages_to(print):
        tagger = Tagger().fit(train)
    seconds = time.perf_counter() - start
    for name, trees in (("dev", dev), ("test", test)):
        start = time.perf_counter()
        tagged = tagger.predict(trees)
        rate = sum(map(len, trees)) / (time.perf_counter() - start)
        print(f"{name}: {compare_tags(trees, tagged)}, {rate:.0f} words a second")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tagger")
        tagger.save(path)
        size = os.path.getsize(path) / 1e6
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{seconds:.0f} s to train, {size:.1f} MB, {memory:.0f} MiB")


if __name__ == "__main__":
    main(*sys.argv[1:])
