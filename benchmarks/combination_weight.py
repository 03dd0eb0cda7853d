"""UAS of combined parsers for different weights of the network, and of weights chosen on other sentences.

    python benchmarks/combination_weight.py DEV.conllu MODEL [MODEL ...] [--penn]

Each MODEL is a DependencyParser with ``combine="sum"``, such as the files that `choosing.py table ... --kinds
both` writes. Prints a Markdown table with the weight of the model and its UAS, the UAS for fixed weights, and
the UAS if every second sentence is parsed with the weight that is best for the others. With --penn, Penn
punctuation is not scored.
"""

import argparse
from pathlib import Path

import numpy as np

import treewright as tw

WEIGHTS = 2.0 ** np.arange(-3, 1.5, 0.5)
PENN = {"``", "''", ",", ".", ":"}


def count(gold, predicted, *, penn):
    """Return the numbers of correct and of scored words of each sentence."""
    found = []
    for one, other in zip(gold, predicted, strict=True):
        is_scored = np.array([not penn or tag not in PENN for tag in one.xpos], dtype=bool)
        found.append([((one.heads == other.heads) & is_scored).sum(), is_scored.sum()])
    return np.array(found, dtype=np.float64)


def uas(counts):
    """Return the UAS of the counts of sentences."""
    n_right, n_words = counts.sum(axis=0)
    return 100 * n_right / n_words


def measure(parser, gold, *, penn):
    """Return the UAS with the model's weight, with fixed weights, and with weights of the other half."""
    before = parser.scorer_.weight
    own = count(gold, parser.predict(gold), penn=penn)
    tables = []
    for weight in WEIGHTS.tolist():
        parser.scorer_.weight = weight
        tables.append(count(gold, parser.predict(gold), penn=penn))
    parser.scorer_.weight = before
    halves = slice(0, None, 2), slice(1, None, 2)
    best = [max(tables, key=lambda each, half=half: uas(each[half])) for half in halves]
    crossed = np.concatenate([best[1][halves[0]], best[0][halves[1]]])
    return [uas(own), *map(uas, tables), uas(crossed)]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dev")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--penn", action="store_true", help="do not score Penn punctuation")
    options = parser.parse_args()
    gold = tw.read_conllu(options.dev)
    titles = [
        "UAS on dev",
        "weight",
        "its UAS",
        *(f"{each:.2g}" for each in WEIGHTS),
        "chosen on the other half",
    ]
    print(f"| {' | '.join(titles)} |\n{'| --- ' * len(titles)}|", flush=True)
    for path in options.models:
        model = tw.load(path)
        figures = (f"{each:.2f}" for each in measure(model, gold, penn=options.penn))
        print(f"| {Path(path).name} | {model.scorer_.weight:.2f} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
