"""Constituency parsers with both strategies: training time and memory, parsing speed, cost of decision trees.

    python benchmarks/constituents.py train.mrg [--max-length 15] [--sentences 1000] [--penalty 8]

Parsers with gold tags are trained on nine tenths of the sentences, down to a large penalty that is reached
early, and parse the remaining sentences on one core. Each is trained in a separate process, whose memory is
reported. Then the decision trees of one label are grown to the same penalty, and one more is built on samples
and on all examples without stored features. Prints a Markdown table. For the scores of complete training
runs, use `treewright reproduce turian-table1`.
"""

import argparse
import json
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import treewright as tw
from treewright.metrics.parseval import sentence_length
from treewright.parsing.constituent.parser import STRATEGIES
from treewright.parsing.constituent.training import MOST_TREES
from treewright.report.separate_process import peak_memory
from treewright.report.turian.profiling import choose_label, compare_trees, make_ensemble, measure_memory

HELD_OUT_EVERY = 10
COLUMNS = {
    "strategy": "strategy",
    "training": "training (s)",
    "growing": "of which trees (s)",
    "memory": "memory (MiB)",
    "f1": "F1",
    "rate": "sentences a second",
    "n_trees": "trees",
    "label": "label",
    "n_examples": "examples",
    "uncached": "tree on all examples (s)",
    "sampled": "tree on a sample (s)",
    "speed_up": "times faster",
    "n_features": "features an example",
    "bytes": "bytes kept an example",
}


def read(options):
    """Return sentences to train on, and those held out."""
    trees = [tree for tree in tw.read_brackets(options.train) if sentence_length(tree) <= options.max_length][
        : options.sentences
    ]
    rest = [tree for number, tree in enumerate(trees, start=1) if number % HELD_OUT_EVERY]
    return rest, trees[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY]


def make_parser(strategy, options):
    """Return a parser that has learnt nothing."""
    return tw.ConstituentParser(strategy=strategy, lowest_penalty=options.penalty, n_jobs=options.n_jobs)


def warm_up(strategy):
    """Compile what training and parsing need."""
    trees = tw.make_treebank(n_sentences=30, random_state=0).constituents
    tw.ConstituentParser(strategy=strategy, lowest_penalty=10).fit(trees).predict(trees[:2])


def measure_parser(strategy, options):
    """Train a parser and parse; return time, memory and speed."""
    warm_up(strategy)
    train, test = read(options)
    parser = make_parser(strategy, options)
    start = time.perf_counter()
    # Few dev sentences, so that the time is that of the training.
    parser.fit(train, test[: options.dev])
    training = time.perf_counter() - start
    parser.n_jobs = 1
    start = time.perf_counter()
    parsed = parser.predict(test)
    seconds = time.perf_counter() - start
    return {
        "strategy": strategy,
        "training": training,
        "growing": parser.history_[-1].seconds,
        "memory": (peak_memory() or 0) / (1 << 20),
        "f1": tw.metrics.parseval(test, parsed).f1,
        "rate": len(test) / seconds,
        "n_trees": parser.history_[-1].n_trees,
    }


def measure_trees(strategy, options):
    """Grow the trees of a label; return what one more takes on samples and on all examples."""
    warm_up(strategy)
    train, _ = read(options)
    parser = make_parser(strategy, options)
    training = parser.make_training(train)
    label = choose_label(training, options.label)
    examples = training.examples(label)
    ensemble = make_ensemble(parser, examples)
    ensemble.grow_to(options.penalty, max_trees=MOST_TREES)
    return {
        "label": training.names[label],
        **compare_trees(ensemble, examples, most_seconds=options.most_seconds),
        **measure_memory(ensemble, examples),
    }


def run_alone(function, *arguments):
    """Return what a function returns in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def print_row(record, *, is_first):
    """Print a line of the table."""
    if is_first:
        print("| " + " | ".join(COLUMNS.values()) + " |\n|" + " --- |" * len(COLUMNS))
    cells = (f"{record[key]:.4g}" if isinstance(record[key], float) else str(record[key]) for key in COLUMNS)
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("train")
    parser.add_argument("--max-length", type=int, default=15)
    parser.add_argument(
        "--sentences", type=int, help="number of sentences of at most that length (default: all)"
    )
    parser.add_argument("--penalty", type=float, default=8.0)
    parser.add_argument("--dev", type=int, default=50, help="number of sentences scored after each step")
    parser.add_argument("--label", default="NP")
    parser.add_argument(
        "--most-seconds", type=float, default=600.0, help="time limit for the tree on all examples"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", help="file for the results as JSON")
    options = parser.parse_args()
    records = []
    for strategy in STRATEGIES:
        found = run_alone(measure_parser, strategy, options)
        records.append({**found, **run_alone(measure_trees, strategy, options)})
        print_row(records[-1], is_first=len(records) == 1)
    if options.json:
        Path(options.json).write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
