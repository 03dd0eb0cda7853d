"""Tables of numbers and categories as binary columns, for readable conjunctions."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from treewright._typing import Count, FloatArray, Integers
from treewright._validate import check_params, check_type
from treewright.data.frames import in_set_output
from treewright.errors import InputError, quote, show
from treewright.mining.binning import ClassesToSplit, Interval, NumbersToSplit, SplitTarget, split_range
from treewright.mining.naming import name_interval
from treewright.model import Model, Value, expect, saved

KINDS = ("number", "integer", "category")
"""Kinds of columns; an integer column has whole numbers only."""
CONDITIONS = ("interval", "category", "rare", "missing")
MOST_CLASSES = 32
"""Maximum number of classes for splitting numbers; rarer classes are merged."""
MOST_VALUES = 20
"""Maximum number of distinct values of a numeric target that is treated as classes."""
Kind = Literal["number", "integer", "category"]


class Indicator(NamedTuple):
    """A condition on one column of a table.

    Attributes
    ----------
    column : int
        Index of the column in the table.
    condition : {"interval", "category", "rare", "missing"}
        The value is in an interval, equals a category, is a category that is rare or not seen in `fit`, or is
        missing.
    low, high : float
        Bounds of an interval: at least `low` and below `high`.
    category : str
        The category as text.

    See Also
    --------
    TableBinarizer : Lists its conditions in `indicators_`.

    Examples
    --------
    >>> import treewright as tw
    >>> binarizer = tw.TableBinarizer(encoding="intervals", max_bins=2)
    >>> binarizer = binarizer.fit([[20], [35], [50], [64]], [0, 0, 1, 1])
    >>> binarizer.indicators_[0]
    Indicator(column=0, condition='interval', low=-inf, high=40.0, category='')
    """

    column: int
    condition: Literal["interval", "category", "rare", "missing"]
    low: float = -math.inf
    high: float = math.inf
    category: str = ""


class _Column(NamedTuple):
    """The values of a column: numbers (NaN if missing) or text (None if missing)."""

    kind: Kind
    values: npt.NDArray[Any]


def _encode(indicators: Sequence[Indicator]) -> list[list[Any]]:
    return [
        [each.column, each.condition, *(None if math.isinf(bound) else bound for bound in each[2:4]), each[4]]
        for each in indicators
    ]


def _decode(rows: Any) -> list[Indicator]:  # noqa: ANN401
    found = []
    for column, condition, low, high, category in rows:
        expect(type(column) is int and condition in CONDITIONS and isinstance(category, str), "indicators")
        low, high = -math.inf if low is None else float(low), math.inf if high is None else float(high)
        expect(low < high, "intervals that are not empty")
        found.append(Indicator(column, condition, low, high, category))
    return found


class TableBinarizer(TransformerMixin, Model, BaseEstimator):  # type: ignore[misc]
    """Turns a table of numbers and categories into binary columns with readable names.

    Numbers are cut where the target changes (see the page on mining): ``age < 30``, ``age in [30, 42)``,
    ``age >= 65``. Categories become ``city = Oslo``; rare categories are merged into ``city is rare``, and
    missing values become ``city is missing``. Constant columns are left out. In a pipeline with
    `ConjunctionClassifier`, conditions on the same numeric column are written as one interval.

    Parameters
    ----------
    encoding : {"thresholds", "intervals", "nested"}
        Encoding of numbers. "thresholds" makes the columns ``age >= 30`` and ``age < 30`` for each cut, which
        conjunctions can combine into intervals; "intervals" makes one column for each interval between two
        cuts; "nested" adds the larger intervals that were split.
    max_bins : int
        Maximum number of intervals of a numeric column. If conjunctions are selected by a given threshold, 8
        is much faster than 32, because close cuts make many conjunctions that are nearly equal.
    min_bins : int, optional
        Minimum number of intervals, if there are enough distinct values; `max_bins` by default. Cuts that
        depend on the target come first; then cuts of equal frequency are added until the minimum is reached.
        A numeric column may be informative only together with others, and with many cuts, a linear model can
        follow a smooth curve.
    min_count : int
        Minimum number of samples of an interval or a category, limited to a quarter of all samples.
    categorical_features : "from_dtype" or sequence of str or int
        Columns to treat as categories, by name or index. "from_dtype" selects columns of text, booleans or
        categorical type, and columns with only two distinct values.
    task : {"auto", "classification", "regression"}
        Kind of target. "auto" means regression if the target is continuous or has more than 20 distinct
        numbers.
    sparse_output : bool
        Return sparse matrices from `transform`.

    Attributes
    ----------
    indicators_ : list of Indicator
        The condition of each binary column.
    kinds_ : list of {"number", "integer", "category"}
        Kind of each column of the table.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of str
        Names of the columns, only if the table has names.

    Notes
    -----
    A category that was not seen in `fit` counts as rare if there were rare categories; otherwise all its
    binary columns are 0. The same holds for a missing value in a column without missing values in `fit`.

    See Also
    --------
    ConjunctionClassifier : Finds conjunctions of these columns.
    list_rules : Lists conjunctions as a table of rules.

    Examples
    --------
    >>> import numpy as np
    >>> import treewright as tw
    >>> age, city = np.arange(18, 78), np.array(["Oslo", "Bergen", "Oslo"] * 20)
    >>> table = np.stack([age, city], axis=1, dtype=object)
    >>> binarizer = tw.TableBinarizer(encoding="intervals", min_bins=2).fit(table, age >= 40)
    >>> binarizer.get_feature_names_out(["age", "city"]).tolist()
    ['age < 40', 'age >= 40', 'city = Bergen', 'city = Oslo']
    """

    adjustable = ("sparse_output",)
    fields = saved(
        indicators_=Value(encode=_encode, decode=_decode),
        kinds_=Value(decode=list),
        n_features_in_=Value(Count),
        _feature_names=Value(decode=list),
    )

    indicators_: list[Indicator]
    kinds_: list[Kind]
    n_features_in_: int

    def __init__(
        self,
        *,
        encoding: Literal["thresholds", "intervals", "nested"] = "thresholds",
        max_bins: Count = 32,
        min_bins: Count | None = None,
        min_count: Count = 5,
        categorical_features: Literal["from_dtype"] | Sequence[str | int] = "from_dtype",
        task: Literal["auto", "classification", "regression"] = "auto",
        sparse_output: bool = True,
    ) -> None:
        self.encoding = encoding
        self.max_bins = max_bins
        self.min_bins = min_bins
        self.min_count = min_count
        self.categorical_features = categorical_features
        self.task = task
        self.sparse_output = sparse_output

    @property
    def _feature_names(self) -> list[str]:
        """The column names passed to `fit`, if any; without names, scikit-learn expects no such attribute."""
        return list(getattr(self, "feature_names_in_", []))

    @_feature_names.setter
    def _feature_names(self, names: list[str]) -> None:
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ANN401
        """Find the cuts of numbers and the frequent categories.

        Parameters
        ----------
        X : data frame or array, (n_samples, n_features)
            A pandas or polars data frame, or an array of numbers, text or both. NaN, None and NA are missing
            values.
        y : array, (n_samples,), optional
            Target labels or numbers; without them, cuts are at equal frequency.
        """
        check_params(self)
        if self.min_bins is not None and self.min_bins > self.max_bins:
            raise InputError(f"min_bins is {self.min_bins}; expected at most max_bins, {self.max_bins}")
        table = self._check_table(X, reset=True)
        forced = self._forced_categories(X)
        columns = list(_read_columns(table, self._name, forced))
        target = None if y is None else _make_target(y, self.task)
        if target is not None:
            check_consistent_length(columns[0].values, y)
        self.kinds_ = [each.kind for each in columns]
        self.indicators_ = [
            indicator
            for number, column in enumerate(columns)
            for indicator in self._find_indicators(number, column, target)
        ]
        if not self.indicators_:
            warnings.warn("all columns of X are constant; the result has no columns", stacklevel=2)
        return self

    def transform(self, X: Any) -> Any:  # noqa: ANN401
        """Return which conditions hold in each sample.

        Parameters
        ----------
        X : data frame or array, (n_samples, n_features)
            A table with the columns of the table passed to `fit`. NaN, None and NA are missing values.

        Returns
        -------
        csr_matrix or ndarray of int8, (n_samples, n_indicators)
            1 where a condition holds, and 0 elsewhere; a sparse matrix if `sparse_output` is True. After
            ``set_output(transform="pandas")``, a data frame, whose columns are sparse if `sparse_output` is
            True.
        """
        check_is_fitted(self)
        columns = list(_read_columns(self._check_table(X, reset=False), self._name, self.kinds_))
        n_rows = len(columns[0].values)
        by_column: list[list[Indicator]] = [[] for _ in columns]
        for each in self.indicators_:
            by_column[each.column].append(each)
        parts = [
            _look_up(column, indicators)
            for column, indicators in zip(columns, by_column, strict=True)
            if indicators
        ]
        found = hstack(parts, format="csr") if parts else csr_matrix((n_rows, 0), dtype=np.int8)
        found = csr_matrix(found)
        found.indices = found.indices.astype(np.int32, copy=False)
        found.indptr = found.indptr.astype(np.int32, copy=False)
        return in_set_output(self, found, X) if self.sparse_output else found.toarray()

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ANN401
        """Return the conditions as text, such as ``age in [30, 42)`` and ``city = Oslo``.

        Parameters
        ----------
        input_features : array of str, (n_features,), optional
            Names of the columns of the table. By default, the names seen in `fit`, or ``x0``, ``x1``, ... if
            there were none.

        Returns
        -------
        ndarray of str, (n_indicators,)
            Names in the order of `indicators_`.
        """
        check_is_fitted(self)
        names = list(map(str, _check_feature_names_in(self, input_features)))
        return np.array([self._describe(each, names[each.column]) for each in self.indicators_], dtype=object)

    def check_fitted_state(self) -> None:
        """Check that each condition refers to a column and fits its kind."""
        expect(len(self.kinds_) == self.n_features_in_, "a kind for each column")
        expect(all(each in KINDS for each in self.kinds_), "columns of numbers or categories")
        expect(len(self._feature_names) in (0, self.n_features_in_), "a name for each column")
        for each in self.indicators_:
            expect(0 <= each.column < self.n_features_in_, "conditions on columns")
            is_number = self.kinds_[each.column] != "category"
            expect(each.condition in (("interval", "missing") if is_number else CONDITIONS[1:]), "conditions")

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _name(self, column: int) -> str:
        names = self._feature_names
        return quote(names[column]) if names else str(column)

    def _check_table(self, X: Any, *, reset: bool) -> Any:  # noqa: ANN401
        """Return a data frame unchanged and anything else as an array; set or check names and width."""
        if _is_frame(X):
            repeated = [name for name, count in Counter(X.columns).items() if count > 1]
            if repeated:
                raise InputError(
                    f"X has several columns named {repeated[0]!r}; expected a different name for each"
                )
            validate_data(self, X, reset=reset, skip_check_array=True)
            if len(X) == 0 or len(X.columns) == 0:
                shape = f"{len(X)} rows and {len(X.columns)} columns"
                raise InputError(f"X has {shape}; expected at least one row and one column")
            return X
        if isinstance(X, list) and any(isinstance(value, str) for row in X[:1] for value in _as_row(row)):
            X = np.array(X, dtype=object)  # which would otherwise make text of all numbers
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")

    def _forced_categories(self, X: Any) -> list[Kind | None]:  # noqa: ANN401
        """Return "category" for the columns of `categorical_features`, and None for others."""
        forced: list[Kind | None] = [None] * self.n_features_in_
        if isinstance(self.categorical_features, str):
            return forced
        names = self._feature_names
        check_type("categorical_features", self.categorical_features, Iterable, "a list of columns")
        for each in self.categorical_features:
            number = names.index(each) if isinstance(each, str) and each in names else each
            is_number = isinstance(number, int | np.integer) and not isinstance(number, bool)
            if not is_number or not 0 <= int(number) < self.n_features_in_:
                expected = f"column names, or indices below {self.n_features_in_}"
                raise InputError(f"categorical_features has {each!r}; expected {expected}")
            forced[int(number)] = "category"
        return forced

    def _find_indicators(
        self, number: int, column: _Column, target: SplitTarget | None
    ) -> Iterator[Indicator]:
        values = column.values
        min_count = min(self.min_count, max(1, len(values) // 4))
        if column.kind == "category":
            counts = Counter(values.tolist())
            n_missing = counts.pop(None, 0)
            frequent = sorted(each for each, count in counts.items() if count >= min_count)
            n_rare = sum(counts.values()) - sum(counts[each] for each in frequent)
            if len(frequent) + (n_rare > 0) + (n_missing > 0) < 2:
                return
            for each in frequent:
                yield Indicator(number, "category", category=each)
            if n_rare:
                yield Indicator(number, "rare")
            if n_missing:
                yield Indicator(number, "missing")
            return
        is_known = ~np.isnan(values)
        if is_known.any():
            tree = split_range(
                values[is_known],
                None if target is None else target.take(is_known),
                max_bins=self.max_bins,
                min_bins=self.max_bins if self.min_bins is None else self.min_bins,
                min_count=min_count,
            )
            for low, high in _encode_intervals(tree, self.encoding):
                yield Indicator(number, "interval", low, high)
            if not is_known.all():
                yield Indicator(number, "missing")

    def _describe(self, indicator: Indicator, name: str) -> str:
        if indicator.condition == "category":
            return f"{name} = {indicator.category}"
        if indicator.condition != "interval":
            return f"{name} is {indicator.condition}"
        low, high = indicator.low, indicator.high
        if self.kinds_[indicator.column] == "integer" and high == low + 1 and low.is_integer():
            return f"{name} = {low:.0f}"
        return name_interval(name, Interval(low, high))


def _encode_intervals(tree: Sequence[Interval], encoding: str) -> list[Interval]:
    """Return the intervals of the binary columns of a numeric column."""
    cuts = sorted({low for low, _ in tree if not math.isinf(low)})
    if encoding == "nested":
        return list(tree[1:])
    if encoding == "thresholds":
        return [each for cut in cuts for each in (Interval(-math.inf, cut), Interval(cut, math.inf))]
    edges = [-math.inf, *cuts, math.inf]
    return [Interval(low, high) for low, high in pairwise(edges)] if cuts else []


def _look_up(column: _Column, indicators: Sequence[Indicator]) -> csr_matrix:
    """Return the conditions that hold in each row, using a lookup table of distinct values."""
    if column.kind == "category":
        codes, meanings = _number_categories(column.values, indicators)
        holds = [[_holds_for_category(each, meaning) for each in indicators] for meaning in meanings]
    else:
        bounds = {bound for each in indicators for bound in (each.low, each.high)}
        cuts = np.array(sorted(bounds - {-math.inf, math.inf}))
        is_missing = np.isnan(column.values)
        codes = np.searchsorted(cuts, column.values, side="right")
        codes[is_missing] = len(cuts) + 1
        samples = [-math.inf, *cuts.tolist()]
        holds = [
            [each.condition == "interval" and each.low <= value < each.high for each in indicators]
            for value in samples
        ]
        holds.append([each.condition == "missing" for each in indicators])
    return csr_matrix(np.array(holds, dtype=np.int8))[codes]


def _number_categories(
    values: npt.NDArray[Any], indicators: Sequence[Indicator]
) -> tuple[Integers, list[str | bool | None]]:
    """Return a code per row, and the category of each code: None if missing, True if not listed."""
    categories = [each.category for each in indicators if each.condition == "category"]
    known: Mapping[str | None, int] = {each: code for code, each in enumerate(categories)}
    n_known = len(categories)
    codes = [n_known if value is None else known.get(value, n_known + 1) for value in values.tolist()]
    return np.array(codes, dtype=np.int64), [*categories, None, True]


def _holds_for_category(indicator: Indicator, meaning: str | bool | None) -> bool:
    if meaning is None or meaning is True:
        return indicator.condition == ("missing" if meaning is None else "rare")
    return indicator.condition == "category" and indicator.category == meaning


def _is_frame(X: Any) -> bool:  # noqa: ANN401
    """Return whether this is a pandas or polars data frame, without importing either package."""
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "to_series"))


def _as_row(row: Any) -> Iterable[Any]:  # noqa: ANN401
    return row if isinstance(row, list | tuple) else ()


def _read_columns(
    table: Any,  # noqa: ANN401
    name: Callable[[int], str],
    kinds: Sequence[Kind | None],
) -> Iterator[_Column]:
    """Yield the columns of a table; infer their kinds where not given."""
    is_frame = _is_frame(table)
    for number, kind in enumerate(kinds):
        if is_frame:
            series = table.iloc[:, number] if hasattr(table, "iloc") else table.to_series(number)
            values = series.to_numpy()
            if kind is None and str(series.dtype).startswith(("category", "Categorical", "Enum")):
                kind = "category"
        else:
            values = table[:, number]
        if values.dtype.kind in "mM":
            found = f"column {name(number)} contains dates"
            raise InputError(f"{found}; expected numbers (such as years) or categories")
        if kind == "category":
            yield _read_categories(values)
        else:
            numbers = _read_numbers(values)
            if numbers is None and kind is not None:
                raise _no_number(values, name(number))
            yield (
                _read_categories(values)
                if numbers is None
                else _as_column(values, numbers, kind, name(number))
            )


def _read_categories(values: npt.NDArray[Any]) -> _Column:
    listed, known = values.tolist(), _CategoryTexts()
    texts = np.empty(len(values), dtype=object)
    try:
        texts[:] = [known[type(each), each] for each in listed]
    except TypeError:  # values that cannot be hashed
        texts[:] = [_category_text(each) for each in listed]
    return _Column("category", texts)


class _CategoryTexts(dict[tuple[type, Any], str | None]):
    """The text of each category, by type and value; None if missing. Equal values are converted once."""

    def __missing__(self, key: tuple[type, Any]) -> str | None:
        text = self[key] = _category_text(key[1])
        return text


def _category_text(value: Any) -> str | None:  # noqa: ANN401
    return None if _is_missing(value) else _as_text(value)


def _read_numbers(values: npt.NDArray[Any]) -> FloatArray | None:
    """Return numbers with NaN for missing values; None for a column with other values."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    found = values.tolist()
    if not all(_is_number(each) or _is_missing(each) for each in found):
        return None
    return np.array([np.nan if _is_missing(each) else float(each) for each in found])


def _as_column(values: npt.NDArray[Any], numbers: FloatArray, kind: Kind | None, name: str) -> _Column:
    """Return numbers as a column; numbers with two distinct values are categories."""
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0])
        raise InputError(f"column {name} has infinity in row {row}; expected finite numbers or NaN")
    if kind is not None:
        return _Column(kind, numbers)
    known = numbers[~np.isnan(numbers)]
    if len(known) and ((known == known.min()) | (known == known.max())).all():
        return _read_categories(values)
    return _Column("integer" if (known == np.floor(known)).all() else "number", numbers)


def _no_number(values: npt.NDArray[Any], name: str) -> InputError:
    found = values.tolist()
    row = next((at for at, each in enumerate(found) if not _is_number(each) and not _is_missing(each)), 0)
    return InputError(f"column {name} has {found[row]!r} in row {row}; expected a number, as in fit")


def _is_number(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _is_missing(value: Any) -> bool:  # noqa: ANN401
    """Return whether a value is missing: None, NaN, NA or NaT."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float | np.floating) and math.isnan(value))
    )


def _as_text(value: Any) -> str:  # noqa: ANN401
    """Return a category as text; 1 and 1.0 are the same category."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _number(labels: npt.NDArray[Any]) -> Integers:
    """Return a number for each label, or for each combination of labels in two dimensions."""
    try:
        axis = 0 if labels.ndim == 2 else None
        return np.unique(labels, axis=axis, return_inverse=True)[1].reshape(-1)
    except TypeError as error:
        raise InputError(f"y is {show(labels)}; expected labels or numbers of one type") from error


def _make_target(y: Any, task: str) -> SplitTarget:  # noqa: ANN401
    """Return the target that determines how numbers are split."""
    try:
        labels = np.asarray(y)
    except ValueError as error:  # lists of different lengths
        raise InputError(f"y is {show(y)}; expected a label or a number for each sample") from error
    if labels.dtype.kind == "O" and any(map(_is_missing, labels.ravel())):
        raise InputError("y has missing values; expected a label or a number for each sample")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError("y has NaN or infinity; expected finite numbers or labels")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim == 2:  # several labels at a time: each combination is a class
        labels = _number(labels)
        task = "classification" if task == "auto" else task
    if labels.ndim != 1:
        raise InputError(f"y has {labels.ndim} dimensions; expected one")
    is_numeric = labels.dtype.kind in "iuf"
    if task == "auto" and is_numeric:
        is_many = type_of_target(labels) == "continuous" or len(np.unique(labels)) > MOST_VALUES
        task = "regression" if is_many else "classification"
    if task == "regression":
        if not is_numeric:
            raise InputError(f"y has the type {labels.dtype}; expected numbers for task='regression'")
        numbers: FloatArray = labels.astype(np.float64)
        return NumbersToSplit(numbers)
    numbers_of = _number(labels)
    counts = np.bincount(numbers_of)
    if len(counts) > MOST_CLASSES:
        ranks = np.empty(len(counts), dtype=np.int64)
        ranks[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        numbers_of = np.minimum(ranks, MOST_CLASSES - 1)[numbers_of]
    return ClassesToSplit(numbers_of.astype(np.int64), min(len(counts), MOST_CLASSES))
