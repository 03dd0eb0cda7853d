"""Rules as tables and plots, and what they contribute."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import treewright as tw
from treewright.errors import InputError
from treewright.mining.rules import RuleTable


def parity_data(n_samples=600):
    """Draw samples of three classes that no single feature tells anything of."""
    X = (np.random.default_rng(0).random((n_samples, 10)) < 0.5).astype(int)
    odd = X[:, 0] ^ X[:, 3]
    return X, np.array(["even", "odd", "both"])[odd + (X[:, 1] & X[:, 2] & odd)]


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    X, y = parity_data()
    y = y if request.param == 3 else np.where(y == "even", "even", "odd")
    return tw.ConjunctionClassifier(degree=2, threshold=5).fit(X, y), X, y


def test_figures_are_those_of_the_samples_in_which_a_rule_holds(fitted):
    model, X, y = fitted
    rules = tw.list_rules(model, X, y, n_examples=5)
    assert len(rules) == len(model.conjunctions_)
    for rule in rules:
        holds = X[:, list(rule.columns)].all(axis=1)
        assert rule.n_samples == holds.sum()
        assert rule.support == holds.mean()
        assert rule.shares == {label: (y[holds] == label).mean() for label in model.classes_}
        assert rule.share == rule.shares[rule.label]
        assert rule.lift == pytest.approx(rule.share / (y == rule.label).mean())
        assert rule.importance == pytest.approx(abs(rule.weight) * holds.std())
        assert holds[list(rule.examples)].all()
        n_right = min(5, (y[holds] == rule.label).sum())
        assert (y[list(rule.examples)] == rule.label).sum() == n_right
        assert rule.conjunction == " & ".join(f"x{column}" for column in rule.columns)


def test_weights_are_those_of_the_class_that_a_rule_speaks_for(fitted):
    model, X, y = fitted
    for rule in tw.list_rules(model, X, y):
        weights = model.coef_[:, model.conjunctions_.index(rule.columns)]
        if len(weights) == 1:
            assert rule.weight == abs(weights[0])
            assert rule.label == model.classes_[int(weights[0] > 0)]
        else:
            assert rule.weight == weights[np.abs(weights).argmax()]
            assert rule.label == model.classes_[np.abs(weights).argmax()]


def test_rules_are_sorted_and_limited(fitted):
    model, X, y = fitted
    for key in ("importance", "weight", "support", "lift"):
        sizes = [abs(getattr(rule, key)) for rule in tw.list_rules(model, X, y, sort_by=key)]
        assert sizes == sorted(sizes, reverse=True)
    some = tw.list_rules(model, X, y, min_order=2, max_rules=3)
    n_pairs = sum(len(each) == 2 for each in model.conjunctions_)
    assert len(some) == min(3, n_pairs) > 0
    assert all(rule.order == 2 for rule in some)
    assert some[:2].rules == list(some)[:2]


def test_conjunctions_of_the_same_name_are_one_rule():
    ages = np.arange(20, 80)
    table = pd.DataFrame({"age": np.tile(ages, 10), "city": np.repeat(["Oslo", "Bergen"], 300)})
    y = (table.age >= 30) & (table.age < 42)
    binarizer = tw.TableBinarizer(max_bins=8, min_bins=4)
    model = make_pipeline(binarizer, tw.ConjunctionClassifier(degree=2, threshold=5)).fit(table, y)
    rules = tw.list_rules(model, table, y)
    names = [rule.conjunction for rule in rules]
    assert len(set(names)) == len(names) < len(model[-1].conjunctions_)
    (rule,) = [rule for rule in rules if rule.conjunction == "age in [30, 42)"]
    assert (rule.order, rule.n_samples, rule.share, rule.label) == (1, 120, 1.0, True)
    total = sum(sign * each.weight * each.n_samples for each in rules for sign in [1 if each.label else -1])
    found = model[-1]._find(model[:-1].transform(table))
    assert total == pytest.approx((found @ model[-1].coef_[0]).sum())


def test_tables_are_shown_as_text_markdown_csv_and_records(fitted):
    model, X, y = fitted
    rules = tw.list_rules(model, X, y, names=[f"a|{column}" for column in range(10)], max_rules=4)
    n = len(rules)
    text = str(rules).splitlines()
    assert text[0].split() == [
        "rule", "for", "weight", "importance", "samples", "support", "share", "lift", "examples",
    ]  # fmt: skip
    assert len(text) == n + 1
    assert text[1].startswith(rules[0].conjunction)
    marked = rules.to_markdown().splitlines()
    assert len(marked) == n + 2
    assert "a\\|" in marked[2]
    assert len({line.replace("\\|", "").count("|") for line in marked}) == 1
    rows = list(csv.DictReader(io.StringIO(rules.to_csv())))
    assert [float(row["weight"]) for row in rows] == [rule.weight for rule in rules]
    assert float(rows[0]["share:even"]) == rules[0].shares["even"]
    assert pd.DataFrame(rules.to_records()).conjunction.tolist() == [rule.conjunction for rule in rules]
    assert str(RuleTable([])).startswith("rule  for")


def test_a_miner_has_rules_and_parts_too():
    X, y = parity_data()
    miner = tw.ConjunctionMiner(degree=2, threshold=5).fit(X, y)
    assert len(tw.list_rules(miner, X, y)) == len(miner.conjunctions_)
    parts = tw.compare_parts(miner, X, y)
    scores = miner.transform(X) @ miner.coef_.T + miner.intercept_
    assert parts.both.accuracy == (miner.classes_[scores.argmax(axis=1)] == y).mean()


def test_each_part_is_scored_with_the_best_constants_for_the_other(fitted):
    model, X, y = fitted
    parts = tw.compare_parts(model, X, y)
    found = model._find(X).toarray()
    is_single = np.array([len(each) == 1 for each in model.conjunctions_])
    for name, kept in (("single_columns", is_single), ("conjunctions", ~is_single)):
        scores = found[:, kept] @ model.coef_[:, kept].T
        losses = []
        for scale in (0.0, 0.3, 1.0, 3.0):
            for shift in np.random.default_rng(0).normal(size=(20, scores.shape[1])):
                odds = scale * scores + shift
                odds = np.hstack([0 * odds, odds]) if odds.shape[1] == 1 else odds
                chances = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
                losses.append(log_loss(y, chances, labels=model.classes_))
        assert getattr(parts, name).loss <= min(losses) + 1e-6
    assert (parts.n_single_columns, parts.n_conjunctions) == (is_single.sum(), (~is_single).sum())


def test_the_parts_make_the_model(fitted):
    model, X, y = fitted
    parts = tw.compare_parts(model, X, y)
    assert parts.both.accuracy == model.score(X, y)
    gain = parts.both.accuracy - parts.single_columns.accuracy
    assert parts.corrected - parts.spoilt == pytest.approx(gain)
    assert parts.changed >= parts.corrected + parts.spoilt
    shares = np.array([(y == label).mean() for label in model.classes_])
    assert parts.neither.accuracy == shares.max()
    assert parts.neither.loss == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-6)
    assert parts.both.loss < parts.single_columns.loss <= parts.neither.loss + 1e-6


def test_log_loss_of_log_odds_needs_no_scale():
    X, y = parity_data()
    y = y == "even"
    final = LogisticRegression(C=1e4, max_iter=10_000, tol=1e-8)
    y = y ^ (np.random.default_rng(1).random(len(y)) < 0.1)
    model = tw.ConjunctionClassifier(degree=2, threshold=5, final_estimator=final).fit(X, y)
    expected = log_loss(y, model.predict_proba(X))
    assert tw.compare_parts(model, X, y).both.loss == pytest.approx(expected, abs=1e-3)


def test_parts_are_told_in_a_table(fitted):
    parts = tw.compare_parts(*fitted)
    lines = str(parts).splitlines()
    assert lines[0].split() == ["part", "accuracy", "log-loss"]
    assert lines[-1].startswith("Conjunctions change ")
    assert parts.to_markdown().splitlines()[1] == "| --- | ---: | ---: |"


class _Regressor(tw.ConjunctionMiner):
    """A model of a number by given conjunctions, as another estimator may be."""

    is_fitted = True
    conjunctions_ = ((0,), (1,), (0, 3))

    def __init__(self, X, y):
        self.orders_ = {1: np.array([[0], [1]], dtype=np.int32), 2: np.array([[0, 3]], dtype=np.int32)}
        self.n_features_in_ = X.shape[1]
        found = self._find(X).toarray()
        solved = np.linalg.lstsq(np.c_[found, np.ones(len(y))], y, rcond=None)[0]
        self.coef_, self.intercept_ = solved[np.newaxis, :-1], solved[-1:]


def test_regressions_have_means_and_differences():
    X, _ = parity_data()
    y = 3.0 * (X[:, 0] & X[:, 3]) + X[:, 1] + 10
    model = _Regressor(X, y)
    rules = tw.list_rules(model, X, y)
    assert rules.is_regression
    for rule in rules:
        holds = X[:, list(rule.columns)].all(axis=1)
        assert rule.label is None
        assert rule.share == pytest.approx(y[holds].mean())
        assert rule.lift == pytest.approx(y[holds].mean() - y.mean())
    assert "mean" in str(rules).splitlines()[0]
    parts = tw.compare_parts(model, X, y)
    assert parts.both.accuracy == pytest.approx(1)
    assert parts.neither.accuracy == pytest.approx(0)
    assert parts.neither.loss == pytest.approx(y.std())
    assert 0 < parts.changed < 1
    assert "R squared" in str(parts)


def test_rules_of_a_regressor_in_a_pipeline():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=400), "kind": rng.choice(["u", "v"], 400)})
    y = 3 * ((table["size"] > 0) & (table["kind"] == "u")) + rng.normal(0, 0.1, 400)
    model = make_pipeline(tw.TableBinarizer(), tw.ConjunctionRegressor(trees=False)).fit(table, y)
    rules = tw.list_rules(model, table, y, min_order=2)
    assert rules.is_regression
    found = [rule for rule in rules if rule.conjunction.endswith(" & kind = u") and rule.weight > 0]
    assert max(rule.share for rule in found) == pytest.approx(3, abs=0.2)
    parts = tw.compare_parts(model, table, y)
    assert parts.both.accuracy == pytest.approx(model.score(table, y))
    assert parts.n_conjunctions == sum(len(each) > 1 for each in model[-1].conjunctions_)


def test_rules_of_a_search_are_those_of_its_best_model():
    X, y = parity_data()
    search = GridSearchCV(tw.ConjunctionMiner(threshold=20), {"degree": [2]}, scoring=lambda *_: 1, cv=2)
    rules = tw.list_rules(search.fit(X, y), X, y)
    assert str(rules) == str(tw.list_rules(search.best_estimator_, X, y))
    assert len(rules) > 0


@pytest.mark.parametrize("kind", ["bars", "pairs"])
@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_rules_are_plotted(fitted, kind, suffix, tmp_path):
    model, X, y = fitted
    rules = tw.list_rules(model, X, y)
    path = tmp_path / f"plot{suffix}"
    figure = tw.plot_rules(rules, path, kind=kind, max_shown=5)
    assert path.stat().st_size > 1000
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    if kind == "bars":
        assert labels == [rule.conjunction for rule in rules[:5]][::-1]
        if suffix == ".svg":
            assert labels[0] in path.read_text().replace("&amp;", "&")
    else:
        assert 1 < len(labels) <= 5
        assert set(labels) <= {f"x{column}" for column in range(10)}


def test_plots_need_rules_and_a_name_that_says_a_format(fitted, tmp_path):
    rules = tw.list_rules(*fitted)
    with pytest.raises(InputError, match="not a file name for a plot; expected one ending in "):
        tw.plot_rules(rules, tmp_path / "plot.txt")
    with pytest.raises(InputError, match="there are no rules to plot; expected at least one"):
        tw.plot_rules(rules[:0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sort_by": "size"}, "sort_by is 'size'; expected one of importance, weight, support, lift"),
        ({"max_rules": 0}, "max_rules is 0; expected an integer of at least 1"),
        ({"min_order": 0}, "min_order is 0; expected an integer of at least 1"),
        ({"n_examples": -1}, "n_examples is -1; expected an integer of at least 0"),
    ],
)
def test_wrong_options_are_named(fitted, options, message):
    with pytest.raises(InputError, match=message):
        tw.list_rules(*fitted, **options)


@pytest.mark.parametrize("wrong", ["yes", None])
def test_labels_that_are_no_class_are_refused(wrong):
    X, y = parity_data()
    model = tw.ConjunctionClassifier(degree=2, threshold=5).fit(X, y)
    with pytest.raises(InputError, match=f"^y has {wrong!r} in row 0; expected a class of the model$"):
        tw.compare_parts(model, X, np.array([wrong] * len(y)))


def test_other_models_are_refused():
    X, y = parity_data()
    with pytest.raises(InputError, match="model is a LogisticRegression; expected a fitted Conjunction"):
        tw.list_rules(LogisticRegression().fit(X, y), X, y)
    final = KNeighborsClassifier()
    model = tw.ConjunctionClassifier(degree=2, threshold=5, final_estimator=final).fit(X, y)
    with pytest.raises(InputError, match="has no weights; expected a linear estimator"):
        tw.list_rules(model, X, y)
