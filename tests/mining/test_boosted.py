import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from messages import records_to
from scipy.sparse import csr_array, csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import treewright as tw
from treewright.errors import InputError
from treewright.mining.binary import as_binary

NOT_BINARY = "feeds numbers other than 0 and 1, which are refused with a remedy"
ESTIMATORS = [
    tw.L1BoostedTrees(penalty=0.5),
    tw.L1BoostedTrees(max_trees=100),
    tw.L1BoostedTrees(penalty=0.5, sample_size=20),
]
CHECKS_OF_NUMBERS = [
    "check_all_zero_sample_weights_error",
    "check_class_weight_classifiers",
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_classifiers_one_label_sample_weights",
    "check_classifiers_train",
    "check_decision_proba_consistency",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
    "check_supervised_y_2d",
]


def expected_failures(estimator):
    return dict.fromkeys(CHECKS_OF_NUMBERS, NOT_BINARY)


@pytest.mark.slow
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def expected_failures_of_binary(estimator):
    if estimator.penalty != "auto" and estimator.sample_size is None:
        return {}
    names = [name for name in CHECKS_OF_NUMBERS if name.startswith("check_sample_weight_equivalence")]
    return dict.fromkeys(names, "samples are drawn, and a repeated sample is drawn as often")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures_of_binary)
def test_scikit_learn_accepts_the_estimator_if_numbers_are_binarised(estimator, check, monkeypatch):
    monkeypatch.setattr("treewright.mining.binary_estimator.as_binary", lambda X: as_binary(X > 0))
    check(estimator)


def parity_data(random_state=0, n_samples=600):
    """Draw samples of three classes that no single feature tells anything of."""
    rng = np.random.default_rng(random_state)
    X = (rng.random((n_samples, 10)) < 0.5).astype(int)
    return X, np.array(["even", "odd", "both"])[
        (X[:, 0] ^ X[:, 3]) + (X[:, 1] & X[:, 2] & (X[:, 0] ^ X[:, 3]))
    ]


def noisy(X, y, rng):
    return X, np.where(rng.random(len(y)) < 0.2, rng.permutation(y), y)


@pytest.mark.parametrize("options", [{}, {"penalty": 2.0}, {"sample_size": 200}])
def test_conjunctions_with_negations_are_learnt(options):
    X, y = parity_data()
    trees = tw.L1BoostedTrees(**options).fit(X, y)
    assert trees.score(*parity_data(random_state=1)) > 0.97
    assert trees.n_trees_ <= trees.n_nonzero_
    assert trees.n_nonzero_ == sum(record.n_nonzero for records in trees.path_ for record in records)


def test_a_higher_penalty_leaves_fewer_leaves():
    X, y = parity_data()
    counts = [tw.L1BoostedTrees(penalty=each).fit(X, y).n_nonzero_ for each in (20.0, 5.0, 1.0)]
    assert counts == sorted(counts)
    assert counts[0] < counts[2]


def test_trees_end_where_the_loss_on_held_out_samples_is_lowest():
    rng = np.random.default_rng(0)
    (X, y), (new, expected) = (noisy(*parity_data(random_state), rng) for random_state in (0, 1))
    trees = tw.L1BoostedTrees().fit(X, y)
    best = min(trees.steps_, key=lambda step: step.loss)
    assert trees.penalty_ == pytest.approx(best.penalty / 0.8)
    assert best is not trees.steps_[0]
    assert best is not trees.steps_[-1]
    assert len(trees.path_[0]) == trees.steps_.index(best) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        lower = tw.L1BoostedTrees(penalty=trees.penalty_ / 20).fit(X, y)
    losses = [log_loss(expected, each.predict_proba(new), labels=each.classes_) for each in (trees, lower)]
    assert losses[0] < losses[1]


def test_probabilities_fit_scores():
    X, y = parity_data()
    for labels in (y, y == "even"):
        trees = tw.L1BoostedTrees(penalty=2.0).fit(X, labels)
        probabilities = trees.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        np.testing.assert_array_equal(trees.classes_[probabilities.argmax(axis=1)], trees.predict(X))
    np.testing.assert_allclose(
        np.log(probabilities[:, 1] / probabilities[:, 0]), trees.decision_function(X), atol=1e-9
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_reasons_add_up_to_the_score_of_the_prediction(n_classes):
    X, y = parity_data()
    y = y if n_classes == 3 else y == "even"
    trees = tw.L1BoostedTrees(penalty=2.0).fit(X, y)
    explanations = trees.explain(X[:50])
    scores = trees.decision_function(X[:50])
    best = np.abs(scores) if n_classes == 2 else scores.max(axis=1)
    assert [each.prediction for each in explanations] == trees.predict(X[:50]).tolist()
    np.testing.assert_allclose([each.score for each in explanations], best)
    np.testing.assert_allclose([sum(reason.weight for reason in each.reasons) for each in explanations], best)


def test_reasons_hold_are_there_once_and_are_sorted_by_weight():
    X, y = parity_data()
    frame = pd.DataFrame(X, columns=[f"word={each}" for each in "abcdefghij"])
    trees = tw.L1BoostedTrees(penalty=2.0).fit(frame, y)
    has_negation = False
    for row, explanation in zip(frame.to_dict("records"), trees.explain(frame[:20]), strict=False):
        weights = [abs(reason.weight) for reason in explanation.reasons]
        assert weights == sorted(weights, reverse=True)
        names = [reason.conjunction for reason in explanation.reasons]
        assert len(set(names)) == len(names)
        for name in set(names) - {"(intercept)"}:
            for part in name.split(" & "):
                has_negation |= part.startswith("not ")
                assert row[part.removeprefix("not ")] == (not part.startswith("not "))
    assert has_negation


@pytest.mark.parametrize("sample_size", [None, 150])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_change_nothing(n_classes, sample_size):
    X, y = parity_data()
    y = y if n_classes == 3 else y == "even"
    options = {"sample_size": sample_size, "max_trees": 40}
    scores = [tw.L1BoostedTrees(n_jobs=n_jobs, **options).fit(X, y).decision_function(X) for n_jobs in (1, 3)]
    np.testing.assert_array_equal(*scores)


def test_rows_of_any_kind_give_the_same_model():
    X, y = parity_data()
    expected = tw.L1BoostedTrees(penalty=2.0).fit(X, y).decision_function(X)
    for kind in (csr_matrix, csr_array, lambda rows: rows.astype(bool), pd.DataFrame, pl.DataFrame):
        rows = kind(X)
        np.testing.assert_array_equal(
            tw.L1BoostedTrees(penalty=2.0).fit(rows, y).decision_function(rows), expected
        )


@pytest.mark.parametrize("as_frame", [False, True])
def test_a_saved_classifier_predicts_the_same(tmp_path, as_frame):
    X, y = parity_data()
    X = pd.DataFrame(X, columns=list("abcdefghij")) if as_frame else X
    trees = tw.L1BoostedTrees(max_trees=30).fit(X, y)
    trees.save(tmp_path / "trees.tw")
    again = tw.load(tmp_path / "trees.tw")
    np.testing.assert_array_equal(again.decision_function(X), trees.decision_function(X))
    assert again.explain(X[:3]) == trees.explain(X[:3])
    for name in ("path_", "steps_", "penalty_", "n_trees_", "n_nonzero_"):
        assert getattr(again, name) == getattr(trees, name)
    assert again.get_params() == trees.get_params()


def test_options_can_be_searched():
    X, y = parity_data(n_samples=200)
    search = GridSearchCV(tw.L1BoostedTrees(), {"penalty": [50.0, 2.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"penalty": 2.0}


def test_progress_is_told_for_each_tree():
    X, y = parity_data()
    records = []
    with records_to(records.append):
        trees = tw.L1BoostedTrees(penalty=5.0).fit(X, y)
    assert records == [step for each in zip(*trees.path_, strict=True) for step in each]


def test_too_few_trees_are_warned_of():
    X, y = parity_data()
    with pytest.warns(
        ConvergenceWarning, match="3 trees are not enough for a penalty of 1; increase max_trees"
    ):
        tw.L1BoostedTrees(penalty=1.0, max_trees=3).fit(X, y)


def test_other_values_are_refused_with_a_remedy():
    with pytest.raises(
        InputError, match="X has 2 in row 1, column 0; expected only 0 and 1: binarise numbers"
    ):
        tw.L1BoostedTrees().fit([[0, 1], [2, 0]], [0, 1])
    with pytest.raises(InputError, match=r"X contains text .* one-hot encode categories"):
        tw.L1BoostedTrees().fit([["a"], ["b"]], [0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "best"}, "penalty is 'best'; expected a number or \"auto\""),
        ({"penalty": 0}, "penalty is 0; expected a number from 1e-09 to 1e\\+12"),
        ({"max_trees": 0}, "max_trees is 0; expected an integer of at least 1"),
        ({"learning_rate": 0}, "learning_rate is 0; expected a number from 1e-06 to 1"),
        ({"max_leaves": 1}, "max_leaves is 1; expected an integer of at least 2"),
        ({"eta": 1.1}, "eta is 1.1; expected a number from 0.1 to 1"),
        ({"class_weight": "even"}, "class_weight is 'even'; expected a dictionary, \"balanced\" or None"),
        ({"class_weight": 3}, 'class_weight is 3; expected a dictionary, "balanced" or None'),
        (
            {"class_weight": {0: 1, 1: -1}},
            "class_weight gives class 1 the weight -1; expected a number of at least 0",
        ),
        ({"max_seconds": 0}, "max_seconds is 0; expected a number from 0.001 to 1e\\+09"),
        ({"sample_size": 0}, "sample_size is 0; expected an integer of at least 1"),
        ({"validation_fraction": 1.0}, "validation_fraction is 1.0; expected a number from 0.01 to 0.9"),
        ({"n_jobs": 0}, "n_jobs is 0; expected an integer of at least 1"),
        ({"random_state": -1}, "random_state is -1; expected an integer of at least 0"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        tw.L1BoostedTrees(**options).fit([[0, 1], [1, 0]], [0, 1])


def test_rare_features_do_not_end_the_path_early():
    """Where most columns are rare, a leaf that asks for all of them to be absent would overfit."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.random((1200, 12)) < 0.3, rng.random((1200, 800)) < 0.005])
    y = np.where(X[:, :12].sum(axis=1) > 3.5, 1, 0) ^ (rng.random(1200) < 0.1)
    trees = tw.L1BoostedTrees().fit(csr_matrix(X[:800]), y[:800])
    assert trees.n_nonzero_ > 50
    assert trees.score(csr_matrix(X[800:]), y[800:]) > 0.75


def test_interactions_without_effects_of_single_features_are_found():
    rng = np.random.default_rng(0)
    X = (rng.random((1500, 12)) < 0.5).astype(int)
    y = (X[:, 0] ^ X[:, 1] ^ X[:, 2]) ^ (rng.random(1500) < 0.05)
    assert tw.L1BoostedTrees().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.9


def test_a_weight_counts_as_so_many_samples():
    X, y = parity_data(n_samples=200)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    options = {"penalty": 2.0, "max_trees": 60}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weighted = tw.L1BoostedTrees(**options).fit(X, y, sample_weight=weights)
        repeated = tw.L1BoostedTrees(**options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X))


def test_class_weights_are_sample_weights():
    X, y = parity_data(n_samples=300)
    weights = np.where(y == "both", 5.0, 1.0)
    scores = [
        tw.L1BoostedTrees(max_trees=20, class_weight=class_weight)
        .fit(X, y, sample_weight=sample_weight)
        .decision_function(X)
        for class_weight, sample_weight in ((None, weights), ({"both": 5.0, "even": 1, "odd": 1}, None))
    ]
    np.testing.assert_array_equal(*scores)
    rare = y == "both"
    balanced, plain = (
        tw.L1BoostedTrees(max_trees=3, class_weight=each).fit(X, rare) for each in ("balanced", None)
    )
    assert balanced.predict(X).sum() > plain.predict(X).sum()


def test_samples_of_one_class_with_weights_are_refused():
    with pytest.raises(
        InputError, match="the number of classes with a weight above zero is 1; expected at least 2"
    ):
        tw.L1BoostedTrees().fit([[0, 1], [1, 0]], [0, 1], sample_weight=[0, 1])


def test_the_trees_grown_within_the_time_limit_are_kept(monkeypatch):
    X, y = parity_data()
    clock = SimpleNamespace(perf_counter=itertools.count().__next__)  # a second passes between two looks
    monkeypatch.setattr("treewright.mining.boosted.time", clock)
    with pytest.warns(ConvergenceWarning, match="max_seconds=1 was reached after 1 of"):
        trees = tw.L1BoostedTrees(penalty=0.5, max_seconds=1).fit(X, y)
    assert [len(each) for each in trees.path_] == [1, 1, 1]
    assert trees.predict(X).shape == y.shape


def test_one_class_is_refused():
    with pytest.raises(InputError, match="y has only one class, 'a'; expected at least two"):
        tw.L1BoostedTrees().fit([[0, 1], [1, 0]], ["a", "a"])
