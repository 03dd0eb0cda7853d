"""Accuracy and trees per CPU second of a tree-kernel SVM, and of the linear model of its fragments.

python benchmarks/linearize.py [--kernel sst|pt] [--data FILE [--test FILE]] [--trees N] [--fragments N]

Data files have one tree per line in the format of SVM-light-TK: a label, |BT|, the tree, |ET|. Without a test
file, a quarter of the data is held out. Without data, trees are generated; small random fragments vote for
each of five classes, and some labels are wrong.
"""

import argparse
import time

import numpy as np

import treewright as tw
from treewright.data.svmlight import read_tree_examples
from treewright.kernels.fragments import FragmentCounter

N_CLASSES, N_VOTING, NOISE = 5, 200, 0.05


def main(options):
    """Print both, for a few numbers of fragments."""
    rng = np.random.default_rng(0)
    train, test = read(options, rng) if options.data else make(options.trees, rng)
    sizes = [tree.n_nodes for tree in train[0]]
    print(f"{len(sizes)} trees to train, {len(test[0])} to test, {np.mean(sizes):.1f} nodes each")
    kind = {"sst": tw.SubsetTreeKernel, "pt": tw.PartialTreeKernel}[options.kernel]
    kernel = kind(decay=options.decay, normalize=True)
    machine = tw.TreeKernelClassifier(kernel, C=options.cost)
    start = time.process_time()
    machine.fit(*train)
    seconds = time.process_time() - start
    print(f"the machine: {seconds:.1f} s to train, {len(machine.support_)} support vectors")
    report("the machine", machine, test)
    for n_fragments in options.fragments:
        model = tw.LinearizedTreeClassifier(machine, n_fragments=n_fragments, C=options.cost, prefit=True)
        start = time.process_time()
        model.fit(*train)
        seconds = time.process_time() - start
        name = f"{n_fragments} fragments a class ({len(model.fragments_)} in all, {seconds:.1f} s to train)"
        report(name, model, test)
    print("the heaviest of the first test tree:")
    for found in model.explain(test[0][0], 5):
        print(f"  {found.weight:+.3f} {found.fragment}")


def report(name, model, test):
    """Print the accuracy and the speed of a model."""
    trees, labels = test
    model.predict(trees[:10])  # compiles
    times = []
    for _ in range(3):
        start = time.process_time()
        predicted = model.predict(trees)
        times.append(time.process_time() - start)
    speed = len(trees) / min(times)
    print(f"{name}: {100 * np.mean(predicted == labels):.2f}% right, {speed:,.0f} trees per CPU second")


def read(options, rng):
    """Read labelled trees for training and testing."""
    parts = [split(read_tree_examples(path)) for path in (options.data, options.test) if path]
    return parts if len(parts) == 2 else divide(*parts[0], rng)


def split(examples):
    """Return the first tree of each example, and labels."""
    return [example.trees[0] for example in examples], np.array([str(example.label) for example in examples])


def make(n_trees, rng):
    """Make labelled trees for training and testing."""
    trees = list(tw.make_treebank(n_trees, random_state=0).constituents)
    drawn = {str(draw_fragment(trees[rng.integers(n_trees)], rng)) for _ in range(4 * N_VOTING)}
    fragments = [tw.ConstTree.parse(text) for text in sorted(drawn)]
    counter = FragmentCounter(tw.SubsetTreeKernel(decay=0.7, normalize=True), fragments)
    found = counter.transform(trees)
    common = np.argsort(-found.getnnz(axis=0), kind="stable")[:N_VOTING]
    scores = found[:, common] @ rng.normal(size=(len(common), N_CLASSES))
    labels = (scores - np.median(scores, axis=0)).argmax(axis=1)
    is_wrong = rng.random(n_trees) < NOISE
    labels[is_wrong] = rng.integers(N_CLASSES, size=is_wrong.sum())
    return divide(trees, labels.astype(str), rng)


def draw_fragment(tree, rng):
    """Draw a fragment of a tree."""
    nodes = [node for node in tree.subtrees() if not node.is_leaf]
    return grow(nodes[rng.integers(len(nodes))], rng)


def grow(node, rng):
    """Expand a node, and each child with a probability of a half."""
    is_grown = [not child.is_leaf and rng.random() < 0.5 for child in node.children]
    children = zip(node.children, is_grown, strict=True)
    return tw.ConstTree(node.label, [grow(child, rng) if grown else child.label for child, grown in children])


def divide(trees, labels, rng):
    """Keep a quarter for testing."""
    order = rng.permutation(len(trees))
    parts = order[len(order) // 4 :], order[: len(order) // 4]
    return [([trees[number] for number in part], labels[part]) for part in parts]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", choices=["sst", "pt"], default="sst")
    parser.add_argument("--data", help="trees to train on, in the format of SVM-light-TK")
    parser.add_argument("--test", help="trees to test on")
    parser.add_argument("--trees", type=int, default=6000, help="number of trees to generate without data")
    parser.add_argument("--fragments", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--decay", type=float, default=0.4)
    parser.add_argument("--cost", type=float, default=1.0)
    main(parser.parse_args())
