"""Time, memory and accuracy of `TreeKernelClassifier` on a large number of trees.

The trees are the noun phrases of a file of Penn brackets; their classes are the labels of their parents.

    python benchmarks/tree_machines.py TRAIN.mrg TEST.mrg [N_TREES [CACHE_GIB]]
"""

import resource
import sys
import time
from collections import Counter

import numpy as np

import treewright as tw

N_CLASSES = 6
N_TEST = 5000


def read_phrases(path, n):
    """Return noun phrases, and the label of the node above each."""
    phrases = []
    for tree in tw.read_brackets(path):
        for node in tree.subtrees():
            phrases += [(child, node.label) for child in node.children if child.label == "NP"]
    order = np.random.default_rng(0).permutation(len(phrases))[:n]
    return [phrases[number] for number in order]


def main():
    """Train, predict, print."""
    n_trees = int(sys.argv[3]) if len(sys.argv) > 3 else 65_000
    memory = float(sys.argv[4]) if len(sys.argv) > 4 else 4.0
    train, test = read_phrases(sys.argv[1], n_trees), read_phrases(sys.argv[2], N_TEST)
    kept = {label for label, _ in Counter(label for _, label in train).most_common(N_CLASSES)}
    train, test = ([(tree, label) for tree, label in part if label in kept] for part in (train, test))
    print(
        f"{len(train)} trees of {np.mean([tree.n_nodes for tree, _ in train]):.1f} nodes, {len(kept)} classes"
    )
    kernel = tw.SubsetTreeKernel(decay=0.4, normalize=True)
    classifier = tw.TreeKernelClassifier(kernel=kernel, C=1, cache_memory=int(memory * 2**30))
    start = time.perf_counter()
    with tw.progress.messages_to(lambda line: print(line, flush=True)):
        classifier.fit(*zip(*train, strict=True))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"training: {seconds:.0f} s, {peak:.2f} GiB peak memory, {len(classifier.support_)} support vectors"
    )
    trees, labels = zip(*test, strict=True)
    start = time.perf_counter()
    found = classifier.predict(trees)
    seconds = time.perf_counter() - start
    print(
        f"test: accuracy {np.mean(found == np.array(labels)):.4f}, {len(trees) / seconds:.0f} trees a second"
    )


if __name__ == "__main__":
    main()
