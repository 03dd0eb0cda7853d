"""Conjunctions that are added to a linear model."""

import warnings

import numpy as np
import pytest
from messages import records_to
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import treewright as tw
from treewright.errors import InputError
from treewright.learn.chains import distinct_columns
from treewright.mining.additive import StepReport


def parity_data(n_samples=1500, n_columns=12, random_state=0):
    """Draw samples whose class is the parity of three columns."""
    rng = np.random.default_rng(random_state)
    X = rng.integers(0, 2, (n_samples, n_columns))
    return X, X[:, [1, 4, 7]].sum(axis=1) % 2


def linear_data(n_samples=1200, n_columns=40, random_state=0):
    """Draw samples whose class depends on single columns only."""
    rng = np.random.default_rng(random_state)
    X = (rng.random((n_samples, n_columns)) < 0.2).astype(int)
    weights = rng.normal(size=n_columns)
    return X, (X @ weights + rng.logistic(size=n_samples) > 0).astype(int)


@pytest.mark.parametrize("degree", [3, "auto"])
def test_the_parity_of_three_columns_is_learnt(degree):
    X, y = parity_data()
    classifier = tw.ConjunctionClassifier(degree=degree).fit(X[:1000], y[:1000])
    assert classifier.score(X[1000:], y[1000:]) == 1
    assert classifier.is_exact_ == (degree == 3)
    columns = {each if each >= 0 else ~each for found in classifier.conjunctions_ for each in found}
    assert columns == {1, 4, 7}


def test_it_is_never_far_below_the_linear_model():
    X, y = linear_data()
    classifier = tw.ConjunctionClassifier().fit(X[:800], y[:800])
    linear = LogisticRegression().fit(X[:800], y[:800])
    assert classifier.score(X[800:], y[800:]) >= linear.score(X[800:], y[800:]) - 0.02


def test_negated_columns_have_names_and_can_be_left_out():
    X, _ = parity_data()
    y = (X[:, 0] == 1) & (X[:, 1] == 0) & (X[:, 2] == 0)
    classifier = tw.ConjunctionClassifier().fit(X, y)
    assert any("not x1" in name for name in classifier.get_feature_names_out())
    plain = tw.ConjunctionClassifier(negations=False).fit(X, y)
    assert min(min(each) for each in plain.conjunctions_) >= 0
    assert plain.score(X, y) == classifier.score(X, y) == 1


def test_what_is_present_is_told_with_negations(tmp_path):
    X, y = parity_data()
    miner = tw.ConjunctionMiner().fit(X, y)
    found = miner.transform(X).toarray()
    for number, conjunction in enumerate(miner.conjunctions_):
        expected = np.all(
            [X[:, each] == 1 if each >= 0 else X[:, ~each] == 0 for each in conjunction], axis=0
        )
        np.testing.assert_array_equal(found[:, number], expected)
    miner.save(tmp_path / "m.tw")
    again = tw.load(tmp_path / "m.tw")
    assert again.conjunctions_ == miner.conjunctions_
    np.testing.assert_array_equal(again.transform(X).toarray(), found)


def test_probabilities_are_calibrated():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (6000, 8))
    chance = np.where(X[:, 0] & X[:, 1], 0.85, np.where(X[:, 2] == 1, 0.4, 0.15))
    y = rng.random(6000) < chance
    classifier = tw.ConjunctionClassifier(degree=2).fit(X[:3000], y[:3000])
    found = classifier.predict_proba(X[3000:])
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert np.abs(found[:, 1] - chance[3000:]).mean() < 0.06


@pytest.mark.parametrize("n_classes", [2, 3])
def test_reasons_add_up_to_scores(n_classes):
    X, y = parity_data()
    y = y + (X[:, 2] & X[:, 3]) if n_classes == 3 else y
    classifier = tw.ConjunctionClassifier(degree=3).fit(X, y)
    scores = classifier.decision_function(X[:20])
    best = np.abs(scores) if n_classes == 2 else scores.max(axis=1)
    np.testing.assert_allclose([each.score for each in classifier.explain(X[:20])], best)
    assert classifier.predict_proba(X[:20]).shape == (20, n_classes)


def test_weights_of_samples_and_classes_count():
    X, y = linear_data()
    plain = tw.ConjunctionClassifier(degree=1).fit(X, y)
    heavy = tw.ConjunctionClassifier(degree=1, class_weight={0: 1.0, 1: 5.0}).fit(X, y)
    same = tw.ConjunctionClassifier(degree=1).fit(X, y, np.where(y == 1, 5.0, 1.0))
    assert heavy.predict(X).mean() > plain.predict(X).mean()
    np.testing.assert_allclose(heavy.decision_function(X), same.decision_function(X))


@pytest.mark.parametrize("threshold", ["auto", 3])
@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 1, 1: -1.0}, "class_weight gives class 1 the weight -1.0; expected a number of at least 0"),
        ({0: np.nan, 1: 1}, "class_weight gives class 0 the weight nan; expected a number of at least 0"),
        ({0: "a", 1: 1}, "class_weight gives class 0 the weight 'a'; expected a number of at least 0"),
    ],
)
def test_weights_of_classes_below_zero_are_refused(threshold, class_weight, message):
    X, y = linear_data()
    with pytest.raises(InputError, match=f"^{message}$"):
        tw.ConjunctionClassifier(threshold=threshold, class_weight=class_weight).fit(X, y)


def test_a_degree_above_the_number_of_columns_is_lowered():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 5))
    y = X[:, 0] & X[:, 1]
    huge = tw.ConjunctionClassifier(degree=10**9).fit(X, y)
    assert huge.conjunctions_ == tw.ConjunctionClassifier(degree=5).fit(X, y).conjunctions_


@pytest.mark.parametrize("y", [["a", "1"], [{}, "1"], ["a", 1]])
def test_a_target_of_texts_is_refused(y):
    with pytest.raises(InputError, match=r"^y is not numeric \(.*\); expected a number for each sample$"):
        tw.ConjunctionRegressor().fit([[0, 1], [1, 0]], y)


def test_samples_of_no_weight_do_not_count():
    X, y = parity_data()
    y = np.where(np.arange(len(y)) < 500, 1 - y, y)
    weight = (np.arange(len(y)) >= 500).astype(float)
    assert tw.ConjunctionClassifier().fit(X, y, weight).score(X[500:], y[500:]) == 1


def test_weights_of_a_given_threshold_are_whole_numbers():
    X, y = parity_data(100)
    twice = tw.ConjunctionMiner(threshold=5).fit(X, y, np.full(100, 2))
    assert (
        twice.conjunctions_
        == tw.ConjunctionMiner(threshold=5).fit(np.repeat(X, 2, 0), y.repeat(2)).conjunctions_
    )
    with pytest.raises(InputError, match=r"gives sample 0 the weight 0\.5; expected whole numbers"):
        tw.ConjunctionMiner(threshold=5).fit(X, y, np.full(100, 0.5))


def test_an_end_of_time_is_told():
    X, y = parity_data()
    with pytest.warns(UserWarning, match=r"max_seconds=0 was reached; the best model so far is used"):
        classifier = tw.ConjunctionClassifier(max_seconds=0).fit(X, y)
    assert classifier.is_out_of_time_
    assert classifier.predict(X).shape == y.shape


def test_steps_are_reported_and_kept():
    X, y = parity_data()
    seen = []
    with records_to(seen.append):
        classifier = tw.ConjunctionClassifier().fit(X, y)
    assert [each for each in seen if isinstance(each, StepReport)] == classifier.history_
    assert len(classifier.path_) == len(classifier.history_) + 1
    assert max(step.score for step in classifier.path_) > classifier.path_[0].score


def test_an_interrupted_fit_goes_on_with_the_conjunctions_found(tmp_path, monkeypatch):
    X, y = parity_data()
    whole = tw.ConjunctionMiner().fit(X, y)
    tw.ConjunctionMiner().fit(X, y, checkpoint=tmp_path / "c")
    seen = []
    monkeypatch.setattr("treewright.mining.literal_search.LiteralSearch._find_dense", seen.append)
    again = tw.ConjunctionMiner().fit(X, y, checkpoint=tmp_path / "c")
    assert again.conjunctions_ == whole.conjunctions_
    np.testing.assert_allclose(again.coef_, whole.coef_)


def test_one_standard_error_selects_no_more():
    X, y = linear_data()
    y = np.where(X[:, 0] & X[:, 1], 1, y)
    all_ = tw.ConjunctionClassifier().fit(X, y)
    few = tw.ConjunctionClassifier(one_standard_error=True).fit(X, y)
    assert len(few.conjunctions_) <= len(all_.conjunctions_)


def test_memory_limits_need_algorithm_1():
    X, y = parity_data(100)
    with pytest.raises(
        InputError, match="memory_limit=2097152 has no effect here; expected a given threshold, or linear"
    ):
        tw.ConjunctionMiner(memory_limit=2 << 20).fit(X, y)


def test_several_labels_are_learnt_by_a_wrapper():
    X, y = parity_data(600)
    both = np.column_stack([y, X[:, 0] & X[:, 2]])
    wrapped = MultiOutputClassifier(tw.ConjunctionClassifier()).fit(X, both)
    assert (wrapped.predict(X) == both).all()


def test_dense_data_with_all_columns_negated_do_not_explode():
    rng = np.random.default_rng(0)
    X = rng.random((800, 60)) < 0.5
    y = X[:, 0] & ~X[:, 1] & X[:, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier = tw.ConjunctionClassifier(degree=4).fit(np.hstack([X, ~X]).astype(int), y)
    assert classifier.score(np.hstack([X, ~X]).astype(int), y) > 0.99


def test_a_regressor_finds_conjunctions(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (1200, 10))
    y = 3.0 * X[:, 0] + 5.0 * (X[:, 1] & X[:, 2]) + 100 + rng.normal(size=1200)
    regressor = tw.ConjunctionRegressor().fit(X[:800], y[:800])
    assert regressor.score(X[800:], y[800:]) > 0.83
    assert (1, 2) in regressor.conjunctions_
    regressor.save(tmp_path / "r.tw")
    np.testing.assert_allclose(tw.load(tmp_path / "r.tw").predict(X), regressor.predict(X))
    assert "x1 & x2" in regressor.get_feature_names_out()


def test_copies_and_complements_of_columns_are_left_out():
    rng = np.random.default_rng(0)
    some = rng.random((40, 3)) < [0.3, 0.4, 0.8]
    rows = csr_matrix(np.column_stack([some, some[:, 0], ~some[:, 1], ~some[:, 2]]).astype(np.int8))
    assert distinct_columns(rows, complements=False).tolist() == [0, 1, 2, 4, 5]
    assert distinct_columns(rows, complements=True).tolist() == [0, 1, 5]


def test_conjunctions_are_of_the_columns_that_were_given():
    X, y = parity_data()
    X = np.column_stack([1 - X[:, 4], X])
    classifier = tw.ConjunctionClassifier().fit(X[:1000], y[:1000])
    assert classifier.score(X[1000:], y[1000:]) == 1
    columns = {each if each >= 0 else ~each for found in classifier.conjunctions_ for each in found}
    assert columns in ({2, 5, 8}, {0, 2, 8})
