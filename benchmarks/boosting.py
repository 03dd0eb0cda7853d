"""Training time of L1-penalised boosted trees, built on samples and on all examples, compared with LightGBM.

    pip install lightgbm
    python benchmarks/boosting.py [--examples 200000] [--features 20000] [--active 200] [--sample 20000]
    pip install xgboost
    python benchmarks/boosting.py --accuracy [--data FOLDER] [--seeds 3] [--only zipf,parity]

The examples are synthetic: feature frequencies are like those of words, and labels depend on planted
conjunctions, some with a negation, and on noise. Prints a Markdown table with the time of each step of
building a tree (the paper's Table 2), averaged over several trees after compilation, in one thread. Then
trees are built on a sample and on all examples with the same confidences and penalty, and the speed-up of the
sample is printed: if the features of all examples are stored, and if they are extracted again for each node,
as in the paper. LightGBM is measured if it is installed, with the same number of leaves per tree.

With `--accuracy`, `L1BoostedTrees` is compared with XGBoost, LightGBM (default settings, one thread) and L2
logistic regression on the data sets of `binary_data.py`: test accuracy, log-loss and CPU seconds of `fit`,
means over seeds.
FOLDER has the subfolders `ewt` and `qc`; without it, only data of scikit-learn and synthetic data are used.
"""

import argparse
import importlib.util
import json
import time
import warnings
from pathlib import Path

import numpy as np
from binary_data import DATA_SETS, NEED_FOLDER
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

import treewright as tw
from treewright.learn.boosting import BoostedTrees, CsrExamples, Seconds, draw_sample
from treewright.learn.trees import TreeBuilder
from treewright.native.learn.boosting import FeatureRows, SplitLimits

STEPS = Seconds._fields


def make_examples(n_examples, n_features, n_active, random_state):
    """Draw rows of frequent and rare features, and labels that depend on conjunctions."""
    rng = np.random.default_rng(random_state)
    columns = (n_features ** rng.random((n_examples, n_active))).astype(np.int32) - 1
    columns.sort(axis=1)
    is_new = np.ones(columns.shape, dtype=bool)
    is_new[:, 1:] = columns[:, 1:] != columns[:, :-1]
    first = np.concatenate([[0], is_new.sum(axis=1).cumsum()])
    indices = columns[is_new]
    rows = csr_matrix((np.ones(len(indices), np.int8), indices, first), (n_examples, n_features))
    by_column = rows.tocsc()
    scores = np.full(n_examples, -1.0)
    for _ in range(60):
        one, other = rng.integers(n_active // 4, n_active * 10, 2)
        has_one, has_other = (by_column[:, each].toarray().ravel() for each in (one, other))
        negated = rng.random() < 0.5
        scores += rng.normal(0, 3) * (has_one & (has_other ^ negated))
    labels = np.where(rng.random(n_examples) < 1 / (1 + np.exp(-scores)), 1, -1)
    return rows, labels


def measure(rows, labels, n_trees, sample_size=None, prune=True):
    """Return an ensemble that has grown under falling penalties, and the seconds it took."""
    ensemble = BoostedTrees(CsrExamples(rows), labels, sample_size=sample_size, prune=prune)
    _, seconds = timed(lambda: ensemble.grow_to(1e-6, max_trees=n_trees))
    return ensemble, seconds


def summarise(name, ensemble, seconds):
    """Return the figures of a run."""
    records = ensemble.records
    return {
        "system": name,
        "trees": len(records),
        "seconds": seconds,
        "leaves": float(np.mean([record.n_leaves for record in records])),
        "nonzero": ensemble.n_nonzero,
        "penalty": ensemble.penalty,
        "loss": ensemble.loss / len(ensemble.confidences),
        "lost": float(np.mean([record.lost for record in records])),
        **{step: float(np.mean([getattr(record.seconds, step) for record in records])) for step in STEPS},
    }


def print_row(record, *, is_first):
    """Print a line of the table."""
    columns = ("system", "trees", "seconds", "leaves", "nonzero", "penalty", "loss", "lost", *STEPS)
    if is_first:
        print("| " + " | ".join(columns) + " |\n| " + " | ".join("---" for _ in columns) + " |")
    values = (record.get(column, "") for column in columns)
    print(
        "| " + " | ".join(f"{each:.4g}" if isinstance(each, float) else str(each) for each in values) + " |"
    )


def compare_samples(rows, labels, options):
    """Print what trees take on samples and on all examples, each under its own confidences."""
    records = []
    for size, prune in ((options.sample, True), (options.sample, False), (None, True)):
        name = "all examples" if size is None else f"sample of {size}" + ", not pruned" * (not prune)
        ensemble, seconds = measure(rows, labels, options.trees, sample_size=size, prune=prune)
        records.append(summarise(name, ensemble, seconds))
        print_row(records[-1], is_first=len(records) == 1)
    return records, ensemble


def timed(function, *arguments):
    """Return a result and the seconds it took."""
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def build(builder, rows, signed, penalty):
    """Return a tree."""
    builder.start(rows, signed)
    least = 1e-10 * np.abs(signed).sum()
    return builder.build(SplitLimits(penalty, least, least))


def n_extractions(tree, leaves):
    """Return over how many examples the splits of a tree were chosen, each as often as it was looked at."""
    counts = np.bincount(leaves, minlength=len(tree.features))
    for node in range(len(tree.features) - 1, -1, -1):
        if tree.features[node] >= 0:
            counts[node] = counts[tree.present[node]] + counts[tree.absent[node]]
    return int(counts[tree.features >= 0].sum())


def compare_trees(rows, labels, ensemble, options, n_times=5):
    """Build trees on both under the same confidences and penalty; print and return the seconds and ratios."""
    examples = CsrExamples(rows)
    signed = labels / (1 + np.exp(labels * ensemble.confidences))
    everything = FeatureRows(*examples.extract(np.arange(len(labels))))
    builder = TreeBuilder(rows.shape[1])
    penalty = 0.9 * builder.start(everything, signed)
    builder.drop()
    whole, on_all = timed(build, builder, everything, signed, penalty)
    # One less than all, whose features would not be copied.
    _, extraction = timed(examples.extract, np.arange(len(labels) - 1))
    leaves = np.zeros(len(labels), dtype=np.int32)
    examples.percolate(whole, leaves)
    uncached = on_all + extraction * n_extractions(whole, leaves) / len(labels)
    seconds, n_leaves = [], []
    for number in range(n_times):
        start = time.perf_counter()
        sample = draw_sample(np.abs(signed), options.sample, random_state=(options.random_state, number))
        found = FeatureRows(*examples.extract(sample.numbers))
        weights = np.copysign(sample.weights, signed[sample.numbers])
        tree, building = timed(build, builder, found, weights, penalty)
        seconds.append((building, time.perf_counter() - start))
        n_leaves.append((len(tree.features) + 1) // 2)
    building, selection = np.mean(seconds, axis=0).tolist()
    record = {
        "penalty": penalty,
        "leaves_all": (len(whole.features) + 1) // 2,
        "leaves_sample": float(np.mean(n_leaves)),
        "building_all": on_all,
        "building_sample": building,
        "ratio_building": on_all / building,
        "uncached_all": uncached,
        "selection_sample": selection,
        "ratio_uncached": uncached / selection,
    }
    print("\n| of one tree | " + " | ".join(record) + " |\n| --- |" + " --- |" * len(record))
    print("| | " + " | ".join(f"{each:.4g}" for each in record.values()) + " |")
    return [record]


def measure_lightgbm(rows, labels, n_trees, n_leaves):
    """Return the figures of LightGBM in one thread."""
    import lightgbm

    data = lightgbm.Dataset(rows.astype(np.float32), (labels > 0).astype(int))
    options = {"objective": "binary", "num_leaves": n_leaves, "num_threads": 1, "verbose": -1, "max_bin": 3}
    start = time.perf_counter()
    model = lightgbm.train(options, data, n_trees)
    seconds = time.perf_counter() - start
    margins = labels * model.predict(rows.astype(np.float32), raw_score=True)
    loss = float(np.logaddexp(0, -margins).mean())
    return {
        "system": "LightGBM",
        "trees": n_trees,
        "seconds": seconds,
        "leaves": float(n_leaves),
        "loss": loss,
    }


def make_system(name):
    """Return a classifier with default settings and one thread."""
    if name == "XGBoost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_jobs=1)
    if name == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_jobs=1, verbose=-1)
    return LogisticRegression(max_iter=1000) if name == "L2 logistic" else tw.L1BoostedTrees()


def measure_accuracy(name, split):
    """Return test accuracy, log-loss, and CPU seconds."""
    classes, y = np.unique(split.y, return_inverse=True)
    expected = np.searchsorted(classes, split.y_test)
    kind = np.int8 if name == "L1BoostedTrees" else np.float32
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_system(name).fit(split.X.astype(kind), y)
        seconds = time.process_time() - start
        probabilities = model.predict_proba(split.X_test.astype(kind))
    right = np.maximum(probabilities[np.arange(len(expected)), expected], 1e-15)
    return float((probabilities.argmax(axis=1) == expected).mean()), float(-np.log(right).mean()), seconds


def compare_accuracy(options):
    """Print a table of accuracy, log-loss and seconds on all data sets."""
    tw.L1BoostedTrees().fit(np.eye(40, dtype=np.int8), [0, 1] * 20)  # compiles
    systems = options.systems.split(",")
    print(
        "| data | samples | columns | " + " | ".join(systems) + " |\n" + "| --- " * (3 + len(systems)) + "|"
    )
    records = []
    for name, make in DATA_SETS.items():
        if (options.only and name not in options.only.split(",")) or (
            make in NEED_FOLDER and not options.data
        ):
            continue
        figures = []
        for seed in range(options.random_state, options.random_state + options.seeds):
            split = make(options.data, seed)
            figures.append([measure_accuracy(system, split) for system in systems])
        means = np.mean(figures, axis=0)
        cells = [f"{accuracy:.4f}, {loss:.3f}, {seconds:.1f} s" for accuracy, loss, seconds in means]
        print(
            f"| {name} | {split.X.shape[0]:,} | {split.X.shape[1]:,} | " + " | ".join(cells) + " |",
            flush=True,
        )
        records.append({"data": name, "systems": systems, "figures": figures})
    return records


def main():
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--examples", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=20_000)
    parser.add_argument("--active", type=int, default=200)
    parser.add_argument("--sample", type=int, default=20_000)
    parser.add_argument("--trees", type=int, default=30)
    parser.add_argument("--seed", dest="random_state", type=int, default=0)
    parser.add_argument("--no-lightgbm", action="store_true")
    parser.add_argument("--accuracy", action="store_true", help="compare classifiers on many data sets")
    parser.add_argument("--data", help="folder with the subfolders ewt and qc")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--only", help="data sets, separated by commas")
    parser.add_argument("--systems", default="L1BoostedTrees,XGBoost,LightGBM,L2 logistic")
    parser.add_argument("--json", help="file for the results as JSON")
    options = parser.parse_args()
    if options.accuracy:
        records = compare_accuracy(options)
        if options.json:
            Path(options.json).write_text(json.dumps(records, indent=1))
        return
    rows, labels = make_examples(options.examples, options.features, options.active, options.random_state)
    measure(rows[:1000], labels[:1000], 2, sample_size=100)  # compiles
    print(f"{rows.nnz / rows.shape[0]:.0f} features each, {(labels > 0).mean():.0%} positive\n")
    records, ensemble = compare_samples(rows, labels, options)
    if importlib.util.find_spec("lightgbm") and not options.no_lightgbm:
        records.append(measure_lightgbm(rows, labels, options.trees, max(2, round(records[0]["leaves"]))))
        print_row(records[-1], is_first=False)
    records += compare_trees(rows, labels, ensemble, options)
    if options.json:
        Path(options.json).write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
