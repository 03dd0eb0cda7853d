import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

import treewright as tw
from treewright.errors import InputError


def parity_data(random_state=0, n_samples=600):
    """Draw samples of three classes that no single feature tells anything of."""
    rng = np.random.default_rng(random_state)
    X = (rng.random((n_samples, 10)) < 0.5).astype(int)
    return X, np.array(["even", "odd", "both"])[
        (X[:, 0] ^ X[:, 3]) + (X[:, 1] & X[:, 2] & (X[:, 0] ^ X[:, 3]))
    ]


def test_conjunctions_learn_what_single_features_cannot():
    X, y = parity_data()
    new, expected = parity_data(random_state=1)
    assert tw.ConjunctionClassifier(degree=1, threshold=3).fit(X, y).score(new, expected) < 0.7
    assert tw.ConjunctionClassifier(degree=4, threshold=3).fit(X, y).score(new, expected) > 0.97


def test_weights_are_those_of_the_final_perceptron():
    X, y = parity_data()
    classifier = tw.ConjunctionClassifier(degree=2, threshold=5).fit(X, y)
    found = np.stack([X[:, list(each)].all(axis=1) for each in classifier.conjunctions_], axis=1)
    scores = found @ classifier.coef_.T + classifier.intercept_
    np.testing.assert_allclose(classifier.decision_function(X), scores)
    np.testing.assert_array_equal(classifier.predict(X), classifier.classes_[scores.argmax(axis=1)])


@pytest.mark.parametrize("final", [LogisticRegression(), BernoulliNB()])
def test_another_final_estimator_is_trained_on_the_selected_conjunctions(final):
    X, y = parity_data()
    classifier = tw.ConjunctionClassifier(degree=2, threshold=5, final_estimator=final).fit(X, y)
    assert classifier.final_estimator_.n_features_in_ == len(classifier.conjunctions_)
    assert not hasattr(final, "classes_")
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1)


def test_probabilities_are_there_only_where_the_final_estimator_has_them():
    X, y = parity_data()
    classifier = tw.ConjunctionClassifier(degree=2, threshold=5).fit(X, y)
    assert not hasattr(classifier, "predict_proba")


def test_scores_can_be_calibrated():
    X, y = parity_data()
    calibrated = CalibratedClassifierCV(tw.ConjunctionClassifier(degree=2, threshold=5), cv=3).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_reasons_add_up_to_the_score_of_the_prediction(n_classes):
    X, y = parity_data()
    y = y if n_classes == 3 else y == "even"
    classifier = tw.ConjunctionClassifier(degree=2, threshold=5).fit(X, y)
    explanations = classifier.explain(X[:50])
    scores = classifier.decision_function(X[:50])
    best = np.abs(scores) if n_classes == 2 else scores.max(axis=1)
    assert [each.prediction for each in explanations] == classifier.predict(X[:50]).tolist()
    np.testing.assert_allclose([each.score for each in explanations], best)
    np.testing.assert_allclose([sum(reason.weight for reason in each.reasons) for each in explanations], best)


def test_reasons_are_present_and_sorted_by_weight():
    X, y = parity_data()
    classifier = tw.ConjunctionClassifier(degree=2, threshold=5).fit(X, y)
    (explanation,) = classifier.explain(X[:1])
    weights = [abs(reason.weight) for reason in explanation.reasons]
    assert weights == sorted(weights, reverse=True)
    for reason in explanation.reasons:
        if reason.conjunction != "(intercept)":
            assert all(X[0, int(name[1:])] for name in reason.conjunction.split(" & "))


@pytest.mark.parametrize(
    "final", [RidgeClassifier(), RidgeClassifier(fit_intercept=False), LinearSVC(), SVC(kernel="linear")]
)
def test_any_linear_final_estimator_of_two_classes_explains_itself(final):
    X, y = parity_data()
    classifier = tw.ConjunctionClassifier(degree=2, threshold=5, final_estimator=final).fit(X, y == "even")
    scores = [each.score for each in classifier.explain(X[:20])]
    np.testing.assert_allclose(scores, np.abs(classifier.decision_function(X[:20])), atol=1e-9)


def test_weights_of_another_fit_are_forgotten():
    X, y = parity_data()
    classifier = tw.ConjunctionClassifier(degree=2, threshold=5).fit(X, y)
    classifier.set_params(final_estimator=KNeighborsClassifier()).fit(X, y)
    assert not hasattr(classifier, "coef_")


def test_only_linear_final_estimators_explain_themselves():
    X, y = parity_data()
    classifier = tw.ConjunctionClassifier(degree=2, threshold=5, final_estimator=KNeighborsClassifier()).fit(
        X, y
    )
    with pytest.raises(
        InputError, match=r"KNeighborsClassifier\(\) does not have weights for each class; expected"
    ):
        classifier.explain(X)


@pytest.mark.filterwarnings("ignore:no conjunction is selected")
def test_without_any_conjunction_the_most_frequent_class_is_predicted():
    X, _ = parity_data()
    y = np.where(np.arange(len(X)) % 3, "often", "rare")
    for labels in (y, np.where(y == "often", 1, 0), np.where(np.arange(len(X)) == 0, "once", y)):
        classifier = tw.ConjunctionClassifier(threshold=10_000).fit(X, labels)
        assert set(classifier.predict(X)) == {labels[1]}
    with pytest.raises(InputError, match="final_estimator has no conjunctions to learn from"):
        tw.ConjunctionClassifier(threshold=10_000, final_estimator=LogisticRegression()).fit(X, y)


def test_a_saved_classifier_predicts_the_same(tmp_path):
    X, y = parity_data()
    classifier = tw.ConjunctionClassifier(degree=3, threshold=5).fit(X, y)
    classifier.save(tmp_path / "classifier.tw")
    again = tw.load(tmp_path / "classifier.tw")
    np.testing.assert_array_equal(again.decision_function(X), classifier.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), classifier.predict(X))
    assert again.explain(X[:3]) == classifier.explain(X[:3])


def test_a_foreign_final_estimator_is_not_saved(tmp_path):
    X, y = parity_data()
    classifier = tw.ConjunctionClassifier(degree=2, threshold=5, final_estimator=LogisticRegression()).fit(
        X, y
    )
    with pytest.raises(
        InputError, match="with a final_estimator cannot be saved; expected final_estimator=None"
    ):
        classifier.save(tmp_path / "classifier.tw")
