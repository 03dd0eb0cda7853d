"""Conjunctions found, accuracy, time and memory of mining, compared with other methods.

    pip install lightgbm pyfim vowpalwabbit matplotlib
    python benchmarks/mining.py planted [--samples 20000] [--shape 2000 30] [--seed 0]
    python benchmarks/mining.py questions --data FOLDER
    python benchmarks/mining.py counting [--plot rates.svg]
    python benchmarks/mining.py memory

Prints a Markdown table, and writes it to the file given by --json. Each system runs in a separate process
with one thread. Training time includes the choice of thresholds and regularisation strengths on a fifth of
the samples, for systems that need it, but not compilation. Peak memory is that of the process, including the
packages that it imports.

Systems: treewright; linear models with L1 and L2 penalties; an L1 model on frequent itemsets up to the same
order (pyfim); Vowpal Wabbit, which adds products of features during training (--stage_poly) or uses all of
them (--cubic); and LightGBM. treewright finds the rows that contain each itemset, since pyfim does not return
them.
"""

import argparse
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np

import treewright as tw
from treewright.data.conjunctions import make_conjunctions, score_planted
from treewright.mining import polynomial
from treewright.mining.bloom import SpectralBloomFilter
from treewright.mining.polynomial import PolynomialSpace, match_conjunctions
from treewright.mining.problem import label_problem
from treewright.mining.reports import OrderReport

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Values of C that linear models choose from."""
MEGABYTE = 1 << 20


class Treewright:
    """treewright's classifier."""

    def __init__(self, degree, threshold):
        self.classifier = tw.ConjunctionClassifier(degree=degree, threshold=threshold)

    def warm_up(self, rows, labels):
        """Compile."""
        degree = self.classifier.degree
        tw.ConjunctionClassifier(degree=degree, threshold=5.0).fit(rows, labels).predict(rows)

    def fit(self, rows, labels):
        """Select and train."""
        self.classifier.fit(rows, labels)
        self.selected = self.classifier.conjunctions_
        self.note = f"threshold {self.classifier.threshold_:.3g}"

    def predict(self, rows):
        """Return classes."""
        return self.classifier.predict(rows)


class Linear:
    """A linear model of single columns, its strength chosen on a fifth of the samples."""

    def __init__(self, make):
        self.make = make

    def fit(self, rows, labels):
        """Choose a strength and train."""
        from sklearn.model_selection import train_test_split

        # Where a norm is so weak that fitting does not converge; the note tells if such a one was chosen.
        warnings.filterwarnings("ignore", "Liblinear failed to converge")
        rows = rows.astype(np.float64)
        split = train_test_split(rows, labels, test_size=0.2, random_state=0, stratify=labels)
        scores = [self.make(C=each).fit(split[0], split[2]).score(split[1], split[3]) for each in STRENGTHS]
        strength = STRENGTHS[int(np.argmax(scores))]
        self.model = self.make(C=strength).fit(rows, labels)
        self.columns = np.flatnonzero(np.abs(self.model.coef_).max(axis=0))
        self.selected = [(int(each),) for each in self.columns]
        is_done = np.max(self.model.n_iter_) < self.model.max_iter
        self.note = f"C {strength:g}" + ", not converged" * (not is_done)

    def predict(self, rows):
        """Return classes."""
        return self.model.predict(rows.astype(np.float64))


class Itemsets:
    """Frequent itemsets, of which a linear model with an L1 norm selects some."""

    def __init__(self, make, degree, support):
        self.linear, self.degree, self.support = Linear(make), degree, support

    def fit(self, rows, labels):
        """List all that is frequent, then select."""
        import fim

        sets = np.split(rows.indices, rows.indptr[1:-1])
        least = math.ceil(self.support * rows.shape[0])
        found = fim.fpgrowth([each.tolist() for each in sets], supp=-least, zmin=1, zmax=self.degree)
        items = [tuple(sorted(each)) for each, _ in found]
        orders = [[each for each in items if len(each) == order] for order in range(1, self.degree + 1)]
        self.features = [np.array(each, dtype=np.int32) for each in orders if each]
        self.linear.fit(self._match(rows), labels)
        names = [tuple(each) for order in self.features for each in order.tolist()]
        self.selected = [names[each] for each in self.linear.columns]
        self.note = f"{len(items):,} sets of support {least}, {self.linear.note}"

    def _match(self, rows):
        return match_conjunctions(rows, self.features)

    def predict(self, rows):
        """Return classes."""
        return self.linear.predict(self._match(rows))


class LightGBM:
    """Boosted trees."""

    selected = None

    def __init__(self, n_trees, n_leaves):
        self.options = {"n_estimators": n_trees, "num_leaves": n_leaves, "n_jobs": 1, "verbose": -1}

    def fit(self, rows, labels):
        """Grow trees."""
        from lightgbm import LGBMClassifier

        self.model = LGBMClassifier(**self.options).fit(rows.astype(np.float32), labels)
        self.note = f"{np.count_nonzero(self.model.feature_importances_):,} columns used"

    def predict(self, rows):
        """Return classes."""
        return self.model.predict(rows.astype(np.float32))


class VowpalWabbit:
    """Vowpal Wabbit, which reads its samples from a file."""

    selected = None

    def __init__(self, options):
        self.options = options

    def fit(self, rows, labels):
        """Write lines, and pass over them."""
        from vowpalwabbit import Workspace

        self.classes, numbers = np.unique(labels, return_inverse=True)
        self.is_binary = len(self.classes) == 2
        targets = 2 * numbers - 1 if self.is_binary else numbers + 1
        kind = "--loss_function logistic" if self.is_binary else f"--oaa {len(self.classes)}"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "samples"
            lines = [f"{target}{line}" for target, line in zip(targets, self._lines(rows), strict=True)]
            path.write_text("\n".join(lines) + "\n")
            files = f"-d {path} --cache_file {path}.cache --holdout_off"
            self.model = Workspace(f"--quiet {kind} {self.options} {files}")
        self.note = self.options.replace("--", "")

    @staticmethod
    def _lines(rows):
        for columns in np.split(rows.indices, rows.indptr[1:-1]):
            yield " |f " + " ".join(map(str, columns.tolist()))

    def predict(self, rows):
        """Return classes."""
        found = np.array([self.model.predict(line) for line in self._lines(rows)])
        return self.classes[(found > 0).astype(int) if self.is_binary else found.astype(int) - 1]


def l1_logistic(C):  # noqa: N803
    """Return a logistic regression with an L1 norm."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(l1_ratio=1, solver="liblinear", C=C, random_state=0)


def l1_svm(C):  # noqa: N803
    """Return a support vector machine with an L1 norm."""
    from sklearn.svm import LinearSVC

    return LinearSVC(penalty="l1", dual=False, C=C, random_state=0)


def l2_svm(C):  # noqa: N803
    """Return a support vector machine with an L2 norm."""
    from sklearn.svm import LinearSVC

    return LinearSVC(C=C, random_state=0)


def planted_systems(options):
    """Return the systems for planted conjunctions by name."""
    eager = f"--sched_exponent 2 --batch_sz {options.samples} --batch_sz_no_doubling"
    return {
        "treewright": partial(Treewright, 4, "auto"),
        "treewright, threshold given": partial(Treewright, 4, options.threshold),
        "L1 logistic regression": partial(Linear, l1_logistic),
        "LightGBM": partial(LightGBM, 100, 31),
        "LightGBM, 500 trees of 63 leaves": partial(LightGBM, 500, 63),
        "pyfim + L1": partial(Itemsets, l1_logistic, 4, options.support or 0.01),
        "Vowpal Wabbit, stages": partial(VowpalWabbit, "--stage_poly -b 24 --passes 10"),
        "Vowpal Wabbit, eager stages": partial(VowpalWabbit, f"--stage_poly {eager} -b 24 --passes 20"),
        "Vowpal Wabbit, cubic": partial(VowpalWabbit, "--quadratic ff --cubic fff -b 24 --passes 10"),
    }


def question_systems(options):
    """Return the systems for questions by name."""
    return {
        "treewright, degree 2": partial(Treewright, 2, "auto"),
        "treewright, degree 3": partial(Treewright, 3, "auto"),
        "L1 linear": partial(Linear, l1_svm),
        "L2 linear": partial(Linear, l2_svm),
        "pyfim + L1": partial(Itemsets, l1_svm, 3, options.support or 0.002),
        "Vowpal Wabbit, cubic": partial(VowpalWabbit, "--quadratic ff --cubic fff -b 24 --passes 10"),
        "LightGBM": partial(LightGBM, 100, 31),
    }


def isolate(function, *arguments):
    """Run a function in a process of its own, with one thread, and return what it returns, from JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "call"
        path.write_bytes(pickle.dumps((function.__name__, arguments)))
        environment = os.environ | dict.fromkeys(THREADS, "1")
        command = [sys.executable, __file__, "--call", str(path)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def peak_memory():
    """Return the most memory that this process has held, in MiB (Linux).

    Not ru_maxrss, which begins with that of the parent.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def train(system, rows, labels):
    """Return a trained system and the seconds that it took."""
    model = system()
    if hasattr(model, "warm_up"):
        model.warm_up(rows[:500], labels[:500])
    start = time.perf_counter()
    model.fit(rows, labels)
    return model, time.perf_counter() - start


def make_problem(options, n_samples):
    """Return samples of the shape that was asked for."""
    n_features, n_active = options.shape
    return make_conjunctions(
        n_samples, n_features, n_active=n_active, orders=options.orders, random_state=options.random_state
    )


def measure_planted(system, problem, n_train):
    """Return figures of one system, trained on the first samples and tested on the others."""
    model, seconds = train(system, problem.X[:n_train], problem.y[:n_train])
    memory = peak_memory()
    selected = None if model.selected is None else set(map(tuple, model.selected))
    return {
        "found": None if selected is None else len(selected & set(problem.conjunctions)),
        "selected": None if selected is None else len(selected),
        "accuracy": float((model.predict(problem.X[n_train:]) == problem.y[n_train:]).mean()),
        "seconds": seconds,
        "peak_mb": memory,
        "note": model.note,
    }


def planted(options):
    """Compare systems on planted conjunctions."""
    problem = make_problem(options, options.samples * 3 // 2)
    rest = slice(options.samples, None)
    score = score_planted(problem.X[rest], problem.conjunctions, problem.signs)
    best = np.where(score == 0, 0.5, (score > 0) == (problem.y[rest] == 1)).mean()
    n_columns = sum(math.comb(problem.X.shape[1], order) for order in (1, 2, 3))
    print(f"Best possible accuracy {best:.4f}; all products up to degree 3 would be {n_columns:,} columns.\n")
    records = []
    for name, system in chosen(planted_systems(options), options.systems).items():
        record = isolate(measure_planted, system, problem, options.samples)
        records.append({"system": name, "best_possible": float(best)} | record)
        row = (
            show(record["found"]) + f" of {len(problem.conjunctions)}" * (record["found"] is not None),
            show(record["selected"]),
            f"{record['accuracy']:.4f}",
            f"{best:.4f}",
            f"{record['seconds']:.1f}",
            f"{record['peak_mb']:.0f}",
            record["note"],
        )
        columns = ("system", "found", "selected", "accuracy", "best possible", "seconds", "peak MB", "")
        print_row(columns, (name, *row), is_first=len(records) == 1)
    return records


def chosen(systems, words):
    """Return the systems whose names contain one of the words; without words, all."""
    return {name: each for name, each in systems.items() if not words or any(word in name for word in words)}


def show(count):
    """Return a count as text, or a dash for none."""
    return "–" if count is None else f"{count:,}"


def print_row(columns, values, *, is_first):
    """Print a row of a table, with its head before the first."""
    if is_first:
        print("| " + " | ".join(columns) + " |")
        print("|" + " --- |" * len(columns))
    print("| " + " | ".join(map(str, values)) + " |", flush=True)


def read_questions(path):
    """Return the features of each question, and its class.

    Features are its words, their prefixes of four letters, and the words at the first four positions.
    """
    features, labels = [], []
    for line in Path(path).read_text(encoding="latin-1").splitlines():
        label, *words = line.lower().split()
        labels.append(label.split(":")[0].upper())
        names = {f"word={word}" for word in words}
        names |= {f"prefix={word[:4]}" for word in words if len(word) > 4}
        names |= {f"{position}={word}" for position, word in enumerate(words[:4], start=1)}
        features.append(dict.fromkeys(names, 1))
    return features, np.array(labels)


def measure_questions(system, train_set, test_set, n_folds):
    """Return figures of one system, with the mean accuracy over folds of the training samples."""
    from sklearn.model_selection import StratifiedKFold

    model, seconds = train(system, *train_set)
    memory = peak_memory()
    rows, labels = train_set
    folds = []
    if n_folds:
        for some, others in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(rows, labels):
            one, _ = train(system, rows[some], labels[some])
            folds.append(float((one.predict(rows[others]) == labels[others]).mean()))
    return {
        "cross_validation": float(np.mean(folds)) if folds else None,
        "folds": folds,
        "accuracy": float((model.predict(test_set[0]) == test_set[1]).mean()),
        "selected": None if model.selected is None else len(model.selected),
        "seconds": seconds,
        "peak_mb": memory,
        "note": model.note,
        "weightiest": weightiest(model.classifier) if hasattr(model, "classifier") else [],
    }


def weightiest(classifier, n=15):
    """Return the columns, classes and weights of the weightiest conjunctions of two features or more."""
    weights = classifier.coef_.max(axis=0)
    weights[[len(each) < 2 for each in classifier.conjunctions_]] = -np.inf
    best = [each for each in np.argsort(-weights, kind="stable")[:n] if weights[each] > 0]
    classes = classifier.classes_[classifier.coef_.argmax(axis=0)]
    return [(classifier.conjunctions_[each], str(classes[each]), float(weights[each])) for each in best]


def questions(options):
    """Compare systems on the classes of questions."""
    from sklearn.feature_extraction import DictVectorizer

    vectorizer = DictVectorizer(dtype=np.int8)
    features, labels = read_questions(Path(options.data) / "train.txt")
    features, labels = features[: options.samples], labels[: options.samples]
    train_set = vectorizer.fit_transform(features), labels
    features, labels = read_questions(Path(options.data) / "test.txt")
    test_set = vectorizer.transform(features), labels
    print(f"{len(train_set[1])} and {len(labels)} questions, {train_set[0].shape[1]:,} features.\n")
    records = []
    for name, system in chosen(question_systems(options), options.systems).items():
        record = isolate(measure_questions, system, train_set, test_set, options.folds)
        records.append({"system": name} | record)
        row = (
            "–" if record["cross_validation"] is None else f"{record['cross_validation']:.4f}",
            f"{record['accuracy']:.4f}",
            show(record["selected"]),
            f"{record['seconds']:.1f}",
            f"{record['peak_mb']:.0f}",
            record["note"],
        )
        columns = ("system", f"{options.folds} folds", "test", "selected", "seconds", "peak MB", "")
        print_row(columns, (name, *row), is_first=len(records) == 1)
    for record in records:
        print_weightiest(record, vectorizer.feature_names_)
    return records


def print_weightiest(record, names):
    """Print conjunctions with their classes and weights."""
    named = [(" & ".join(names[each] for each in columns), *rest) for columns, *rest in record["weightiest"]]
    record["weightiest"] = named
    for position, (conjunction, label, weight) in enumerate(named):
        if position == 0:
            print(f"\nWeightiest of {record['system']}:\n")
        print_row(
            ("conjunction", "class", "weight"), (conjunction, label, f"{weight:.3f}"), is_first=position == 0
        )


def grown(problem, threshold, order, degree, filter_memory=None):
    """Return a search up to a degree through all samples that stands before an order."""
    labels = label_problem(problem.y, 2)
    _, worst = labels.assess(np.zeros((len(problem.y), 1)))
    space = PolynomialSpace(problem.X, filter_memory=filter_memory)
    search = space.search(labels.violations(worst), threshold, degree)
    for _ in range(1, order):
        list(search.grow())
    return search


def best_time(prepare, run, n_times=5):
    """Return the least seconds of several runs after one that compiles, and the last result."""
    seconds = []
    for _ in range(n_times + 1):
        prepared = prepare()
        start = time.perf_counter()
        result = run(prepared)
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:]), result


def measure_counting(problem, threshold, order, extend):
    """Return nanoseconds for each candidate counted."""
    degree = order + 1 if extend else order
    seconds, parts = best_time(
        lambda: grown(problem, threshold, order, degree), lambda search: list(search.grow())
    )
    n_instances, n_candidates = (
        sum(each.n_instances for each in parts),
        sum(each.n_candidates for each in parts),
    )
    return {
        "instances": n_instances,
        "candidates": n_candidates,
        "passing": sum(len(each.features) for each in parts),
        "nanoseconds": 1e9 * seconds / n_instances,
        "peak_mb": peak_memory(),
    }


def measure_sifting(problem, threshold, order, memory, lines):
    """Return nanoseconds for each candidate that is added to a filter, as those of making and clearing it."""
    polynomial.SpectralBloomFilter = partial(SpectralBloomFilter, lines=lines)
    search = grown(problem, threshold, order, order, memory)
    levels = search._levels
    polynomial.BYTES_FOR_EACH = 1 << 20  # filters are as large as they are said to be
    seconds, admitted = best_time(lambda: None, lambda _: search._sift(levels))

    def clear_twice(_):
        bloom = SpectralBloomFilter(threshold, memory, lines=lines)
        bloom.clear()
        bloom.clear()

    emptying, _ = best_time(lambda: None, clear_twice)
    # Each row has one counter, so that each instance is added in one of the two rounds.
    loaded = [polynomial._load(each) for each in levels]
    n_instances = sum(int((search._rows.indptr[each.rows + 1] - each.starts).sum()) for each in loaded)
    return {
        "instances": n_instances,
        "passing": sum(len(each.items) for each in admitted),
        "nanoseconds": 1e9 * seconds / n_instances,
        "nanoseconds_empty": 1e9 * emptying / n_instances,
        "peak_mb": peak_memory(),
    }


def counting(options):
    """Measure the time per candidate of counting and of Bloom filters."""
    problem = make_problem(options, options.samples)
    records = []
    for order in (2, 3):
        for threshold in (3, 20):
            where = {"order": order, "threshold": threshold}
            for extend in (False, True):
                name = "count, keep places" if extend else "count"
                record = isolate(measure_counting, problem, threshold, order, extend)
                records.append({"pass": name} | where | record)
                print_counting(records)
            for memory in options.filters:
                for lines in (True, False):
                    name = f"filter of {memory} MB, {'lines' if lines else 'whole'}"
                    record = isolate(measure_sifting, problem, threshold, order, memory * MEGABYTE, lines)
                    records.append({"pass": name} | where | record)
                    print_counting(records)
    if options.plot:
        records += plot_rates(options.plot)
    return records


def print_counting(records):
    """Print the last of the records."""
    record = records[-1]
    empty = f"{record['nanoseconds_empty']:.2f}" if "nanoseconds_empty" in record else ""
    row = (
        record["pass"],
        record["order"],
        record["threshold"],
        f"{record['instances']:,}",
        f"{record['passing']:,}",
        f"{record['nanoseconds']:.2f}",
        empty,
        f"{record['peak_mb']:.0f}",
    )
    columns = ("pass", "order", "threshold", "instances", "passing", "ns each", "ns to empty", "peak MB")
    print_row(columns, row, is_first=len(records) == 1)


def plot_rates(path):
    """Draw rates of false positives, expected and measured, over how full a filter is."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    rng = np.random.default_rng(0)
    records = []
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for color, lines in (("C0", True), ("C1", False)):
        label = "counters of a key in one line" if lines else "counters anywhere"
        bloom = SpectralBloomFilter(3, MEGABYTE, lines=lines)
        loads = np.geomspace(0.01, 0.6, 60)
        expected = [bloom.false_positive_rate(round(each * bloom.n_counters)) for each in loads]
        axes.plot(loads, expected, color=color, label=f"{label}: expected")
        for load in np.geomspace(0.01, 0.6, 12):
            n_keys = round(load * bloom.n_counters)
            bloom.clear()
            bloom.add(rng.integers(0, 1 << 64, n_keys, dtype=np.uint64))
            measured = float((bloom.estimate(rng.integers(0, 1 << 64, 1 << 20, dtype=np.uint64)) > 0).mean())
            theory = bloom.false_positive_rate(n_keys)
            records.append({"lines": lines, "load": load, "expected": theory, "measured": measured})
        points = [(each["load"], each["measured"]) for each in records if each["lines"] == lines]
        axes.plot(*zip(*points, strict=True), "o", color=color, label=f"{label}: measured")
    axes.set(xscale="log", yscale="log", xlabel="keys per counter", ylabel="rate of false positives")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    print()
    for position, each in enumerate(records):
        row = (each["lines"], *(f"{each[key]:.3g}" for key in ("load", "expected", "measured")))
        print_row(("lines", "keys per counter", "expected", "measured"), row, is_first=position == 0)
    return records


def measure_memory(problem, degree, threshold, limit):
    """Return time and memory of mining where survivors may take so much of it."""
    # Without a path all samples violate in the first round, and more survives than ever after.
    options = {"degree": degree, "memory_limit": limit, "path": False, "max_iter": 3}
    tw.ConjunctionMiner(threshold=20, **options).fit(problem.X[:500], problem.y[:500])  # compiles
    reports = []
    start = time.perf_counter()
    with tw.progress.listening(reports.append):
        miner = tw.ConjunctionMiner(threshold=threshold, **options).fit(problem.X, problem.y)
    seconds = time.perf_counter() - start
    records = [getattr(each, "record", None) for each in reports]
    orders = [each for each in records if isinstance(each, OrderReport)]
    digest = sha256(repr(miner.conjunctions_).encode() + miner.coef_.tobytes()).hexdigest()
    return {
        "seconds": seconds,
        "peak_mb": peak_memory(),
        "places_mb": max(each.n_bytes for each in orders) / MEGABYTE,
        "disk_mb": max(each.n_bytes_on_disk for each in orders) / MEGABYTE,
        "selected": len(miner.conjunctions_),
        "digest": digest[:16],
    }


def memory(options):
    """Mine with and without a memory limit."""
    problem = make_problem(options, options.samples)
    records = []
    for limit in (None, options.limit * MEGABYTE):
        record = isolate(measure_memory, problem, options.degree, options.threshold, limit)
        records.append({"limit": limit} | record)
        row = (
            "none" if limit is None else f"{limit // MEGABYTE} MB",
            f"{record['seconds']:.1f}",
            *(f"{record[key]:.0f}" for key in ("peak_mb", "places_mb", "disk_mb")),
            f"{record['selected']:,}",
            record["digest"],
        )
        columns = ("limit", "seconds", "peak MB", "places in memory, MB", "on disk, MB", "selected", "digest")
        print_row(columns, row, is_first=len(records) == 1)
    is_same = records[0]["digest"] == records[1]["digest"]
    print(f"\nThe results are {'identical' if is_same else 'NOT identical'}.")
    return records


def parse_arguments():
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", help="file for the results as JSON")
    modes = parser.add_subparsers(dest="mode", required=True)
    parsers = {each.__name__: modes.add_parser(each.__name__, help=each.__doc__) for each in MODES}
    for name, samples in (("planted", 20000), ("questions", None), ("counting", 20000), ("memory", 5000)):
        parsers[name].add_argument("--samples", type=int, default=samples)
        # Without a default, which would hide one that stands before the mode.
        parsers[name].add_argument("--json", default=argparse.SUPPRESS, help="file for the results as JSON")
        if name != "questions":
            parsers[name].add_argument("--seed", dest="random_state", type=int, default=0)
            shape = ("FEATURES", "ACTIVE")
            parsers[name].add_argument("--shape", type=int, nargs=2, default=(2000, 30), metavar=shape)
            orders = (3,) * 8 + (4,) * 4
            parsers[name].add_argument(
                "--orders", type=int, nargs="+", default=orders, help="orders of planted conjunctions"
            )
    for name in ("planted", "questions"):
        parsers[name].add_argument(
            "--systems", nargs="+", help="run systems whose names contain one of these words"
        )
        parsers[name].add_argument(
            "--support", type=float, help="minimum support of itemsets, as a fraction of the samples"
        )
    parsers["planted"].add_argument("--threshold", type=float, default=50.0)
    parsers["questions"].add_argument("--data", required=True, help="folder with train.txt and test.txt")
    parsers["questions"].add_argument(
        "--folds", type=int, default=5, help="number of folds (0: no cross-validation)"
    )
    parsers["counting"].add_argument("--plot", help="file for a plot of false positives")
    parsers["counting"].add_argument("--filters", type=int, nargs="*", default=(64, 1024), help="sizes in MB")
    parsers["memory"].add_argument("--limit", type=int, default=512, help="memory limit in MB")
    parsers["memory"].add_argument("--threshold", type=float, default=2.0)
    parsers["memory"].add_argument("--degree", type=int, default=3)
    return parser.parse_args()


MODES = (planted, questions, counting, memory)


def main():
    """Run a comparison, or a part of one for the process that asked for it."""
    if sys.argv[1:2] == ["--call"]:
        name, arguments = pickle.loads(Path(sys.argv[2]).read_bytes())
        print(json.dumps(globals()[name](*arguments)))
        return
    options = parse_arguments()
    records = next(mode for mode in MODES if mode.__name__ == options.mode)(options)
    if options.json:
        Path(options.json).write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
