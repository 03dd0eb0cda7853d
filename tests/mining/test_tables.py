"""Tables of numbers and categories as zeros and ones."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import treewright as tw
from treewright.errors import FormatError, InputError
from treewright.mining.binning import ClassesToSplit, Interval, NumbersToSplit, round_between, split_range
from treewright.mining.naming import merge_intervals, name_interval, parse_interval
from treewright.model import load_state, save_state

ENCODINGS = ["thresholds", "intervals", "nested"]
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@parametrize_with_checks([tw.TableBinarizer(), tw.TableBinarizer(sparse_output=False, encoding="nested")])
def test_scikit_learn_accepts_the_transformer(estimator, check):
    check(estimator)


def people(n=400, random_state=0):
    """Return a table of every kind of column, and a target that needs two of them together."""
    rng = np.random.default_rng(random_state)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(10, 1, n),
            "city": rng.choice(["Oslo", "Bergen", "Vardø"], n, p=[0.5, 0.49, 0.01]),
            "smoker": rng.random(n) < 0.5,
            "visits": rng.integers(0, 4, n).astype(float),
            "constant": 1,
        }
    )
    table.loc[::7, "visits"] = np.nan
    table.loc[::9, "city"] = None
    return table, np.where(table.age.between(30, 41) & (table.city == "Oslo"), "yes", "no")


def test_names_can_be_read():
    table, y = people(4000)
    binarizer = tw.TableBinarizer(encoding="intervals", min_bins=4, min_count=100).fit(table, y)
    names = binarizer.get_feature_names_out().tolist()
    assert {"age < 30", "age in [30, 42)", "city = Oslo", "city is rare", "city is missing"} <= set(names)
    assert {"smoker = False", "smoker = True", "visits < 1", "visits = 1", "visits is missing"} <= set(names)
    assert not [name for name in names if "constant" in name]


def test_a_pipeline_writes_conditions_on_one_number_as_an_interval():
    table, y = people(1000)
    pipeline = make_pipeline(tw.TableBinarizer(), tw.ConjunctionClassifier(degree=3, threshold=20))
    pipeline.fit(table[["age", "city"]], y)
    names = pipeline.get_feature_names_out()
    assert any({"age in [30, 42)", "city = Oslo"} == set(name.split(" & ")) for name in names)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_each_column_says_what_its_name_says(encoding):
    table, y = people()
    binarizer = tw.TableBinarizer(encoding=encoding, sparse_output=False).fit(table, y)
    found = binarizer.transform(table)
    assert found.dtype == np.int8
    for name, column in zip(binarizer.get_feature_names_out(), found.T, strict=True):
        parsed = parse_interval(name)
        if parsed is not None:
            source, (low, high) = parsed
            expected = (table[source] >= low) & (table[source] < high)
        elif " = " in name:
            source, value = name.split(" = ")
            expected = table[source].map(lambda each: f"{each:g}" if isinstance(each, float) else str(each))
            expected = expected == value
        elif name.endswith(" is missing"):
            expected = table[name.removesuffix(" is missing")].isna()
        else:
            expected = table[name.removesuffix(" is rare")] == "Vardø"
        np.testing.assert_array_equal(column, expected, err_msg=name)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_columns_of_a_number_tell_all_its_intervals_apart(encoding):
    values = np.arange(100.0)[:, np.newaxis]
    binarizer = tw.TableBinarizer(encoding=encoding, sparse_output=False, max_bins=6)
    found = binarizer.fit_transform(values, (values[:, 0] // 17) % 2)
    assert len(np.unique(found, axis=0)) == 6


def test_numbers_are_cut_where_the_target_changes():
    values = np.random.default_rng(0).permutation(200).astype(float)
    y = (values >= 60) & (values < 150)
    tree = split_range(values, ClassesToSplit(y.astype(int), 2), max_bins=8, min_bins=1, min_count=5)
    assert {each.low for each in tree} == {-math.inf, 60, 150}
    tree = split_range(values, NumbersToSplit(3.0 * y), max_bins=8, min_bins=1, min_count=5)
    assert {each.low for each in tree} == {-math.inf, 60, 150}


def test_numbers_that_say_nothing_are_cut_into_equal_parts():
    rng = np.random.default_rng(0)
    values, labels = rng.permutation(1000).astype(float), rng.integers(0, 2, 1000)
    target = ClassesToSplit(labels, 2)
    assert split_range(values, target, max_bins=8, min_bins=1, min_count=5) == [Interval(-math.inf, math.inf)]
    tree = split_range(values, target, max_bins=8, min_bins=4, min_count=5)
    cuts = sorted({each.low for each in tree})[1:]
    np.testing.assert_allclose(cuts, [250, 500, 750], atol=10)


@given(st.lists(FINITE, min_size=1, max_size=60), st.integers(1, 8), st.integers(1, 10), st.booleans())
def test_intervals_are_a_tree_within_its_bounds(values, max_bins, min_count, has_target):
    numbers = np.array(values)
    target = ClassesToSplit((numbers > np.median(numbers)).astype(int), 2) if has_target else None
    tree = split_range(numbers, target, max_bins=max_bins, min_bins=max_bins, min_count=min_count)
    edges = sorted({each.low for each in tree} | {math.inf})
    assert tree[0] == (-math.inf, math.inf)
    assert len(edges) - 1 <= max_bins
    assert len(tree) == 2 * (len(edges) - 1) - 1
    if len(tree) > 1:
        counts = [((numbers >= low) & (numbers < high)).sum() for low, high in tree]
        assert min(counts) >= min_count


@given(FINITE, FINITE)
def test_the_round_number_is_above_the_lower_and_at_most_the_higher(one, other):
    low, high = min(one, other), max(one, other)
    if low < high:
        assert low < round_between(low, high) <= high


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=1, max_size=4),
    st.floats(-1e6, 1e6),
)
def test_merged_intervals_hold_where_all_of_them_do(bounds, value):
    intervals = [Interval(float(f"{low:.15g}"), float(f"{high:.15g}")) for low, high in bounds if low < high]
    intervals = [each for each in intervals if each.low < each.high]
    merged = merge_intervals([name_interval("x", each) for each in intervals])
    holds = all(parse_interval(name)[1].low <= value < parse_interval(name)[1].high for name in merged)
    assert holds == all(low <= value < high for low, high in intervals)


def test_negated_thresholds_are_intervals_too():
    assert merge_intervals(["not age >= 42", "b", "age >= 30"]) == ["age in [30, 42)", "b"]
    assert merge_intervals(["age < 30", "age >= 42"]) == ["age < 30", "age >= 42"]
    assert merge_intervals(["a = 1", "word=<"]) == ["a = 1", "word=<"]


def test_frames_of_pandas_and_polars_and_arrays_give_the_same():
    table, y = people()
    lists = {name: [None if pd.isna(each) else each for each in table[name].tolist()] for name in table}
    array = np.array(list(zip(*lists.values(), strict=True)), dtype=object)
    first = tw.TableBinarizer().fit(table, y)
    for other in (pl.DataFrame(lists), table.convert_dtypes(), table.astype({"city": "category"})):
        again = tw.TableBinarizer().fit(other, y)
        assert again.get_feature_names_out().tolist() == first.get_feature_names_out().tolist()
        assert (again.transform(other) != first.transform(table)).nnz == 0
    of_array = tw.TableBinarizer().fit(array, y)
    assert of_array.get_feature_names_out(table.columns).tolist() == first.get_feature_names_out().tolist()
    assert (of_array.transform(array) != first.transform(table)).nnz == 0
    assert (
        tw.TableBinarizer().fit(array.tolist(), y).transform(array.tolist()) != first.transform(table)
    ).nnz == 0


def test_categories_that_are_new_count_as_rare_or_as_nothing():
    table = pd.DataFrame(
        {"a": ["x"] * 10 + ["y"] * 10, "b": ["x"] * 10 + ["y"] * 9 + ["z"], "c": [*range(20)]}
    )
    binarizer = tw.TableBinarizer(sparse_output=False).fit(table)
    new = pd.DataFrame({"a": ["new", None], "b": ["new", None], "c": [-1000.0, np.nan]})
    found = dict(zip(binarizer.get_feature_names_out(), binarizer.transform(new).T.tolist(), strict=True))
    assert found["a = x"] == found["a = y"] == found["b = x"] == [0, 0]
    assert found["b is rare"] == [1, 0]
    assert found["c < 10"] == [1, 0]
    assert not any(found[name][1] for name in found)


def test_columns_can_be_named_as_categories():
    table = pd.DataFrame({"code": [1, 2, 3, 4] * 10, "age": range(40)})
    for which in (["code"], (0,)):
        names = tw.TableBinarizer(categorical_features=which).fit(table).get_feature_names_out()
        assert names[:4].tolist() == [f"code = {each}" for each in (1, 2, 3, 4)]
    floats = tw.TableBinarizer(categorical_features=["code"]).fit(table)
    assert (floats.transform(table.astype(float)) != floats.transform(table)).nnz == 0


def test_targets_of_many_numbers_are_numbers():
    rng = np.random.default_rng(0)
    x = rng.random((500, 1))
    y = np.where(x[:, 0] >= 0.7, 100, 0) + rng.integers(0, 30, 500)
    names = tw.TableBinarizer(min_bins=1).fit(x, y).get_feature_names_out(["x"])
    assert len(names) == 2
    assert abs(parse_interval(names[0])[1].high - 0.7) < 0.02
    labels = tw.TableBinarizer(min_bins=1, task="classification").fit(x, y)
    assert len(labels.indicators_) <= 2
    several = np.stack([y > 50, y > 1000], axis=1)
    assert tw.TableBinarizer(min_bins=1).fit(x, several).get_feature_names_out(["x"]).tolist() == list(names)


def test_rows_without_a_value_do_not_matter_for_cuts():
    values = np.r_[np.arange(100.0), [np.nan] * 50][:, np.newaxis]
    y = np.r_[np.arange(100) >= 40, np.arange(50) % 2 == 0]
    names = tw.TableBinarizer(min_bins=1).fit(values, y).get_feature_names_out(["x"])
    assert names.tolist() == ["x < 40", "x >= 40", "x is missing"]
    only = tw.TableBinarizer().fit(np.c_[np.full(150, np.nan), values], y)
    assert {each.column for each in only.indicators_} == {1}


@pytest.mark.parametrize("as_frame", [True, False])
def test_a_saved_transformer_gives_the_same(as_frame, tmp_path):
    table, y = people()
    table = table if as_frame else table.to_numpy(dtype=object)
    binarizer = tw.TableBinarizer(categorical_features=[4], max_bins=5).fit(table, y)
    binarizer.save(tmp_path / "table.tw")
    loaded = tw.load(tmp_path / "table.tw")
    assert loaded.indicators_ == binarizer.indicators_
    assert loaded.get_params() == binarizer.get_params()
    assert (loaded.transform(table) != binarizer.transform(table)).nnz == 0
    assert loaded.get_feature_names_out().tolist() == binarizer.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values["indicators"][0].__setitem__(0, 99),
        lambda values: values["indicators"][0].__setitem__(1, "category"),
        lambda values: values["indicators"][0].__setitem__(2, 1e9),
        lambda values: values["kinds"].__setitem__(0, "date"),
        lambda values: values["kinds"].pop(),
    ],
)
def test_damaged_transformers_are_refused(change, tmp_path):
    table, y = people()
    tw.TableBinarizer().fit(table, y).save(tmp_path / "table.tw")
    state = load_state(tmp_path / "table.tw")
    change(state.values)
    save_state(state, tmp_path / "damaged.tw")
    with pytest.raises(FormatError, match="corrupt TableBinarizer"):
        tw.load(tmp_path / "damaged.tw")


def test_options_can_be_searched():
    table, y = people()
    pipeline = make_pipeline(tw.TableBinarizer(), tw.ConjunctionClassifier(degree=2, threshold=2))
    grid = {"tablebinarizer__encoding": ["thresholds", "intervals"]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(table, y)
    assert search.best_params_.keys() == grid.keys()


def test_frames_come_out_with_names():
    table, y = people()
    binarizer = tw.TableBinarizer(sparse_output=False).set_output(transform="pandas")
    assert binarizer.fit_transform(table, y).columns.tolist() == binarizer.get_feature_names_out().tolist()


def test_sparse_results_become_frames_with_sparse_columns():
    table, y = people()
    table.index = table.index + 1000
    binarizer = tw.TableBinarizer().fit(table, y)
    expected, names = binarizer.transform(table), binarizer.get_feature_names_out()
    found = binarizer.set_output(transform="pandas").transform(table)
    assert all(isinstance(each, pd.SparseDtype) for each in found.dtypes)
    assert (found.columns.tolist(), found.index.tolist()) == (names.tolist(), table.index.tolist())
    assert (found.sparse.to_coo() != expected).nnz == 0
    again = tw.TableBinarizer().set_output(transform="pandas").fit_transform(table, y)
    pd.testing.assert_frame_equal(again, found)


def test_a_pipeline_of_frames_predicts_as_one_of_matrices():
    table, y = people()
    one, two = (make_pipeline(tw.TableBinarizer(), tw.ConjunctionClassifier()) for _ in "ab")
    two.set_output(transform="pandas")
    np.testing.assert_array_equal(
        one.fit(table, y).decision_function(table), two.fit(table, y).decision_function(table)
    )
    assert str(tw.list_rules(one, table, y)) == str(tw.list_rules(two, table, y))


def test_conjunctions_of_conditions_on_one_number_have_different_names():
    table = pd.DataFrame({"a": np.arange(200.0), "b": ["u", "v"] * 100})
    y = np.where(table.a > 99, "high", "low")
    before = tw.TableBinarizer().fit(table, y)
    X, names = before.transform(table), before.get_feature_names_out()
    miner = tw.ConjunctionMiner(threshold=1).fit(X, y)
    found = miner.get_feature_names_out(names)
    assert len(set(found)) == len(found) == len(miner.conjunctions_)
    assert "a < 100" in found
    assert any(each.count("a < ") == 2 for each in found)
    rules = [rule.conjunction for rule in tw.list_rules(miner, X, y, names=names)]
    assert len(set(rules)) == len(rules) < len(found)
    pipeline = make_pipeline(tw.TableBinarizer(), tw.ConjunctionMiner(threshold=1), LogisticRegression())
    assert pipeline.set_output(transform="pandas").fit(table, y).score(table, y) == 1


@pytest.mark.parametrize(
    ("transformer", "X", "y", "remedy"),
    [
        (tw.TableBinarizer(), [[1, 2], [2, 3], [4, 5]] * 5, [0, 1, 1] * 5, ", or sparse_output=False"),
        (tw.StringFeatureMiner(threshold=1), ["a b", "c d"] * 9, [0, 1] * 9, ""),
    ],
)
def test_polars_has_no_sparse_columns(transformer, X, y, remedy):
    with pytest.raises(InputError) as error:
        transformer.set_output(transform="polars").fit_transform(X, y)
    expected = f"expected 'pandas' or 'default'{remedy}"
    assert str(error.value) == f"set_output(transform='polars') has no sparse columns; {expected}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": ["old"] * 400}, "column 'age' has 'old' in row 0; expected a number, as in fit"),
        ({"income": [np.inf] * 400}, "column 'income' has infinity in row 0; expected finite numbers or NaN"),
        (
            {"age": pd.to_datetime(["2020-01-01"] * 400)},
            r"column 'age' contains dates; expected numbers \(such as years\) or categories",
        ),
    ],
)
def test_other_values_are_refused_with_their_place(change, message):
    table, y = people()
    binarizer = tw.TableBinarizer().fit(table, y)
    with pytest.raises(InputError, match=message):
        binarizer.transform(table.assign(**change))


def test_columns_of_the_same_name_are_refused():
    table, y = people()
    twice = pd.concat([table, table], axis=1)
    with pytest.raises(InputError, match=r"^X has several columns named 'age'; expected a different name"):
        tw.TableBinarizer().fit(twice, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_bins": 33}, "min_bins is 33; expected at most max_bins, 32"),
        ({"encoding": "ordinal"}, "encoding is 'ordinal'; expected one of thresholds, intervals, nested"),
        (
            {"categorical_features": ["town"]},
            "categorical_features has 'town'; expected column names, or indices below 6",
        ),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        tw.TableBinarizer(**options).fit(*people())


def test_text_is_no_target_of_a_regression():
    table, y = people()
    with pytest.raises(InputError, match="expected numbers for task='regression'"):
        tw.TableBinarizer(task="regression").fit(table, y)


def test_a_table_of_constants_is_warned_of():
    with pytest.warns(UserWarning, match="all columns of X are constant; the result has no columns"):
        assert tw.TableBinarizer().fit_transform(np.ones((5, 2))).shape == (5, 0)
