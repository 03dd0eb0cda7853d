"""Test accuracy and CPU time of ConjunctionClassifier with default settings, compared with other classifiers.

    pip install lightgbm xgboost interpret-core nltk pandas
    python benchmarks/real_data.py [--data FOLDER] [--only WORD ...] [--systems WORD ...] [--tune]
        [--packages] [--limit SECONDS] [--out FILE]

FOLDER has treebanks and questions (default: $TREEWRIGHT_DATA). Data sets that are not on this computer are
skipped, with a message. Prints a Markdown table and writes it to FILE, with all results as JSON in a comment.
`--only` and `--systems` choose the data sets and systems whose names contain one of the words. `--tune` does
not use the test rows, and splits the training rows again instead; use it to compare settings. `--packages`
uses the tables of `packaged_data_sets.py` instead.

Every system has its default settings, one thread and a separate process. Times are CPU seconds of `fit`,
without compilation and imports. Data sets with fewer than 2,000 rows are scored by five-fold
cross-validation; their times are the sum over all folds. Regressions are scored by R squared. The target for
`accuracy` is the score of the best other system minus 0.005. `time` is our CPU time divided by the larger of
five times the CPU time of LightGBM and ten times that of the linear model with an L2 penalty; its target is
at most 1.

Linear models get standardised numbers and one-hot encoded categories; boosted trees and EBM get the original
tables; the others get the columns of `TableBinarizer`. Itemsets have up to three columns and occur in at
least 1% of the rows and at least 10 rows; the 20,000 most frequent ones are used. EBM does not accept sparse
matrices, so it is limited to 500 columns.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from packaged_data_sets import PACKAGED
from real_data_sets import DATA_SETS, Missing
from scipy.sparse import csc_matrix, csr_matrix, hstack

import treewright as tw

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
OURS, ALSO = "ours", ("L1BoostedTrees",)
TOLERANCE = 0.005
WARM_UP = 200
MOST_ITEMSETS, SUPPORT, LEAST_SUPPORT = 20_000, 0.01, 10
EBM_COLUMNS = 500


class NotForThis(Exception):  # noqa: N818
    """A system that cannot learn from some data."""


def with_numbers(data, model):
    """Return a pipeline that standardises numbers and turns categories into indicators."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    if not data.is_table:
        return make_pipeline(_AsFloats(), model)
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, model)


class _AsFloats:
    """Binary rows as floats."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X.astype(np.float64)


def with_indicators(data, model):
    """Return a pipeline that makes indicators of the columns of a table."""
    from sklearn.pipeline import make_pipeline

    if not data.is_table:
        return model
    return make_pipeline(tw.TableBinarizer(), model)


def ours(data):
    """Conjunctions, with default settings."""
    if data.is_regression and not hasattr(tw, "ConjunctionRegressor"):
        raise NotForThis("no ConjunctionRegressor")
    return with_indicators(
        data, tw.ConjunctionRegressor() if data.is_regression else tw.ConjunctionClassifier()
    )


def l1_boosted_trees(data):
    """Boosted trees of this package."""
    if data.is_regression:
        raise NotForThis("no regression")
    return with_indicators(data, tw.L1BoostedTrees())


def l2(data):
    """Linear, L2 norm."""
    from sklearn.linear_model import LogisticRegression, Ridge

    return with_numbers(data, Ridge() if data.is_regression else LogisticRegression(max_iter=1000))


def l1(data):
    """Linear, L1 norm."""
    from sklearn.linear_model import Lasso, LogisticRegression

    solver = "liblinear" if len(set(data.y)) == 2 else "saga"
    return with_numbers(
        data,
        Lasso() if data.is_regression else LogisticRegression(l1_ratio=1, solver=solver, random_state=0),
    )


class _Encoded:
    """A classifier that wants its classes to be numbers, and sparse rows to be floats."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.classes, labels = np.unique(y, return_inverse=True)
        self.model.fit(_floats(X), labels)
        return self

    def predict(self, X):
        return self.classes[self.model.predict(_floats(X)).astype(int)]


def _floats(X):
    return X.astype(np.float32) if isinstance(X, csr_matrix) else X


def lightgbm(data):
    """Boosted trees."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    options = {"n_jobs": 1, "verbose": -1, "random_state": 0}
    return LGBMRegressor(**options) if data.is_regression else _Encoded(LGBMClassifier(**options))


def xgboost(data):
    """Boosted trees."""
    from xgboost import XGBClassifier, XGBRegressor

    options = {"n_jobs": 1, "random_state": 0, "enable_categorical": True}
    return XGBRegressor(**options) if data.is_regression else _Encoded(XGBClassifier(**options))


class _Itemsets:
    """Frequent itemsets as further columns, found level by level as apriori does."""

    def fit(self, X, y=None):
        columns = csc_matrix(X, dtype=np.int32)
        least = max(LEAST_SUPPORT, int(np.ceil(SUPPORT * X.shape[0])))
        singles = np.flatnonzero(np.diff(columns.indptr) >= least)
        frequent = columns[:, singles]
        level, sets, self.sets = frequent, [(each,) for each in range(len(singles))], []
        for _ in range(2):
            counts = (level.T @ frequent).tocoo()
            kept = counts.data >= least
            last = np.array([each[-1] for each in sets], dtype=np.int64)
            kept &= counts.col > last[counts.row] if len(sets) else kept
            order = np.argsort(-counts.data[kept], kind="stable")[:MOST_ITEMSETS]
            pairs = list(zip(counts.row[kept][order], counts.col[kept][order], strict=True))
            if not pairs:
                break
            rows, ends = (np.array(each) for each in zip(*pairs, strict=True))
            level = level[:, rows].multiply(frequent[:, ends]).tocsc()
            sets = [(*sets[row], end) for row, end in pairs]
            self.sets.append(np.array([[singles[each] for each in one] for one in sets]))
        return self

    def transform(self, X):
        columns = csc_matrix(X, dtype=np.float64)
        found = [columns]
        for sets in self.sets:
            product = columns[:, sets[:, 0]]
            for place in range(1, sets.shape[1]):
                product = product.multiply(columns[:, sets[:, place]])
            found.append(product)
        return hstack(found).tocsr()


def itemsets(data):
    """Frequent itemsets from which a linear model with an L1 norm chooses."""
    from sklearn.linear_model import Lasso, LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = (
        Lasso() if data.is_regression else LogisticRegression(l1_ratio=1, solver="liblinear", random_state=0)
    )
    if not data.is_regression and len(set(data.y)) > 2:
        from sklearn.multiclass import OneVsRestClassifier

        model = OneVsRestClassifier(model)
    return with_indicators(data, make_pipeline(_Itemsets(), model))


class _Dense:
    """A model that takes no sparse rows."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.model.fit(X.toarray() if isinstance(X, csr_matrix) else X, y)
        return self

    def predict(self, X):
        return self.model.predict(X.toarray() if isinstance(X, csr_matrix) else X)


def ebm(data):
    """An explainable boosting machine."""
    if data.X.shape[1] > EBM_COLUMNS:
        raise NotForThis("too many columns")
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingRegressor if data.is_regression else ExplainableBoostingClassifier
    return _Dense(kind(n_jobs=1, random_state=0))


SYSTEMS = {
    OURS: ours,
    "L1BoostedTrees": l1_boosted_trees,
    "L2": l2,
    "L1": l1,
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "itemsets + L1": itemsets,
    "EBM": ebm,
}


def rows_of(X, places):
    """Return some rows."""
    return X[places] if isinstance(X, csr_matrix) else X.iloc[places]


def measure(path, name):
    """Print the score and the CPU seconds of one system, as JSON."""
    warnings.filterwarnings("ignore")
    data = pickle.loads(Path(path).read_bytes())
    try:
        system = SYSTEMS[name](data)
    except (NotForThis, ImportError) as error:
        print(json.dumps({"none": str(error)}))
        return
    first = data.splits[0][0]
    some = np.random.default_rng(0).permutation(first)[:WARM_UP]
    SYSTEMS[name](data).fit(rows_of(data.X, some), data.y[some]).predict(rows_of(data.X, some))
    seconds, right, predicting = 0.0, [], 0.0
    for train, test in data.splits:
        system = SYSTEMS[name](data)
        rows, labels = rows_of(data.X, train), data.y[train]
        start = time.process_time()
        system.fit(rows, labels)
        fitted = time.process_time()
        found = np.asarray(system.predict(rows_of(data.X, test))).ravel()
        predicting += time.process_time() - fitted
        seconds += fitted - start
        if data.is_regression:
            gold = data.y[test]
            right.append([((gold - found) ** 2).sum(), ((gold - labels.mean()) ** 2).sum()])
        else:
            right.append([(found == data.y[test]).sum(), len(test)])
    good, everything = np.sum(right, axis=0)
    score = 1 - good / everything if data.is_regression else good / everything
    model = getattr(system, "steps", [(None, system)])[-1][1]
    conjunctions = getattr(model, "conjunctions_", None)
    print(
        json.dumps(
            {
                "score": float(score),
                "seconds": seconds,
                "predict_seconds": predicting,
                "selected": None if conjunctions is None else len(conjunctions),
                "orders": None if conjunctions is None else np.bincount([*map(len, conjunctions)]).tolist(),
            }
        )
    )


def isolate(path, name, limit):
    """Measure a system in a process of its own, with one thread; return its figures."""
    environment = os.environ | dict.fromkeys(THREADS, "1")
    command = [sys.executable, __file__, "--measure", path, name]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"none": f"over {limit:.0f} s"}
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        print(f"# {name}: {' '.join(last)}", file=sys.stderr, flush=True)
        return {"none": "failed"}
    return json.loads(done.stdout.splitlines()[-1])


def judge(found):
    """Return how far ours is from the best peer, and our time over what it may take; None without either."""
    peers = [each["score"] for name, each in found.items() if name not in (OURS, *ALSO) and "score" in each]
    own = found.get(OURS, {})
    gap = own["score"] - max(peers) if "score" in own and peers else None
    allowed = [
        factor * found[name]["seconds"]
        for name, factor in (("LightGBM", 5), ("L2", 10))
        if "seconds" in found.get(name, {})
    ]
    ratio = own["seconds"] / max(allowed) if "seconds" in own and allowed else None
    return gap, ratio


def cells(name, data, found, systems):
    """Return a row of the table."""
    gap, ratio = judge(found)
    row = [name, f"{len(data.y):,} x {data.X.shape[1]:,}"]
    for system in systems:
        each = found[system]
        row.append(f"{each['score']:.3f}, {each['seconds']:.2f} s" if "score" in each else each["none"])
    row.append("" if gap is None else f"{'yes' if gap >= -TOLERANCE else 'no'} ({100 * gap:+.1f})")
    row.append("" if ratio is None else f"{ratio:.1f}")
    return row


def chosen(everything, words):
    """Return the names that contain one of the words, or all without words."""
    return [name for name in everything if not words or any(word.lower() in name.lower() for word in words)]


def main():
    """Measure each system on each data set and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=os.environ.get("TREEWRIGHT_DATA"), help="folder of treebanks")
    parser.add_argument("--only", nargs="+", help="use data sets whose names contain one of these words")
    parser.add_argument("--systems", nargs="+", help="run systems whose names contain one of these words")
    parser.add_argument("--packages", action="store_true", help="use tables that are Python packages")
    parser.add_argument("--tune", action="store_true", help="do not use the test rows")
    parser.add_argument(
        "--limit", type=float, default=600.0, help="time limit in seconds per system and data set"
    )
    parser.add_argument("--out", help="file for the table")
    options = parser.parse_args()
    systems = chosen(SYSTEMS, options.systems)
    head = ["data", "rows x columns", *systems, "accuracy", "time"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    print("\n".join(lines), flush=True)
    records, skipped = {}, []
    data_sets = PACKAGED if options.packages else DATA_SETS
    for name in chosen(data_sets, options.only):
        try:
            data = data_sets[name](options.data)
        except Missing as error:
            skipped.append(f"{name}: skipped, {error}")
            continue
        data = data.for_tuning() if options.tune else data
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data"
            path.write_bytes(pickle.dumps(data))
            found = {system: isolate(str(path), system, options.limit) for system in systems}
        records[name] = found
        lines.append("| " + " | ".join(cells(name, data, found, systems)) + " |")
        print(lines[-1], flush=True)
    gaps, ratios = (
        [each for each in column if each is not None]
        for column in zip(*(judge(found) for found in records.values()), strict=True)
    )
    lines.append("")
    if gaps:
        met, ahead = sum(gap >= -TOLERANCE for gap in gaps), sum(gap > 0 for gap in gaps)
        in_time = sum(ratio <= 1 for ratio in ratios)
        lines.append(
            f"Accuracy met on {met} of {len(gaps)}, ahead on {ahead}; time met on {in_time} of {len(ratios)}."
        )
    lines += skipped
    print("\n".join(lines[lines.index("") :]))
    if options.out:
        Path(options.out).write_text("\n".join(lines) + f"\n\n<!-- {json.dumps(records)} -->\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
    else:
        main()
