import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

import treewright as tw
from treewright.errors import InputError
from treewright.mining import strings

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

ESTIMATORS = [tw.StringFeatureMiner(), tw.StringFeatureClassifier()]
WORDS = ["red", "green", "blue", "old", "new", "small"]


def make_texts(n_texts=200, random_state=0):
    """Draw texts whose class is decided by the order of two words, with up to one other between them."""
    rng = np.random.default_rng(random_state)
    texts, labels = [], []
    for _ in range(n_texts):
        words = rng.choice(WORDS, size=6).tolist()
        first, second = ("cat", "dog") if rng.random() < 0.5 else ("dog", "cat")
        at = int(rng.integers(0, 4))
        words[at : at + 1] = [first]
        words.insert(at + 1 + int(rng.integers(0, 2)), second)
        texts.append(" ".join(words))
        labels.append(first)
    return texts, labels


CHECKS_WITHOUT_NUMBERS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("check", CHECKS_WITHOUT_NUMBERS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_scikit_learn_accepts_the_estimators(estimator, check):
    getattr(estimator_checks, check)(type(estimator).__name__, clone(estimator))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_fitting_changes_no_parameter_and_gives_the_same_twice(estimator):
    texts, labels = make_texts(60)
    before = clone(estimator)
    estimator = clone(estimator)
    assert estimator.fit(texts, labels) is estimator
    assert repr(estimator.get_params()) == repr(before.get_params())
    once = estimator.coef_
    np.testing.assert_array_equal(estimator.fit(texts, labels).coef_, once)
    with pytest.raises(NotFittedError):
        before.get_feature_names_out()


def test_what_words_in_order_decide_is_found():
    texts, labels = make_texts()
    classifier = tw.StringFeatureClassifier(attributes=("lower",), max_gap=1).fit(texts, labels)
    assert ("lower=cat", "..", "lower=dog") in classifier.features_
    assert "lower=cat .. lower=dog" in classifier.get_feature_names_out()
    new, expected = make_texts(random_state=1)
    assert classifier.score(new, expected) > 0.95


def test_features_names_weights_and_columns_are_aligned():
    texts, labels = make_texts()
    miner = tw.StringFeatureMiner(threshold=5).fit(texts, labels)
    n_features = len(miner.features_)
    found = miner.transform(texts)
    assert found.format == "csr"
    assert found.shape == (len(texts), n_features)
    assert len(miner.get_feature_names_out()) == len(set(miner.get_feature_names_out())) == n_features
    assert miner.coef_.shape == (1, n_features)
    assert (miner.coef_ != 0).all()
    column = miner.features_.index(("lower=cat", "..", "lower=dog"))
    assert miner.coef_[0, column] < 0  # the first class is "cat"
    assert found[:, column].sum() >= sum(label == "cat" for label in labels)


@pytest.mark.parametrize("kind", [tw.StringFeatureMiner, tw.StringFeatureClassifier])
def test_results_do_not_depend_on_the_number_of_threads(kind, monkeypatch):
    monkeypatch.setattr(strings, "WORK", 50)
    texts, labels = make_texts()
    one, two = (
        kind(attributes=("lower", "lower_char"), n_jobs=n_jobs).fit(texts, labels) for n_jobs in (1, 2)
    )
    assert one.features_ == two.features_
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_strings_and_lists_of_words_are_the_same_texts():
    texts, labels = make_texts()
    tokens = [text.split() for text in texts]
    pairs = [[(word, "X") for word in words] for words in tokens]
    classifier = tw.StringFeatureClassifier().fit(texts, labels)
    for others in (tokens, pairs, np.array(texts), pd.Series(texts), tuple(texts)):
        np.testing.assert_array_equal(
            classifier.decision_function(others), classifier.decision_function(texts)
        )


def test_tags_are_learnt_where_they_are_given():
    texts = [[("a", "NN"), ("b", "VB")], [("a", "VB"), ("b", "NN")]] * 10
    classifier = tw.StringFeatureClassifier(attributes=("tag",)).fit(texts, [0, 1] * 10)
    assert classifier.predict(texts[:2]).tolist() == [0, 1]
    with pytest.raises(
        InputError, match=r"^text 0 has no tag at 'a'; expected a list of \(word, tag\) pairs$"
    ):
        classifier.predict(["a b"])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_reasons_add_up_to_the_score(n_classes):
    texts, _ = make_texts(60)
    labels = np.arange(60) % n_classes
    classifier = tw.StringFeatureClassifier().fit(texts, labels)
    scores = classifier.decision_function(texts)
    for explanation, score in zip(classifier.explain(texts), scores, strict=True):
        assert explanation.score == pytest.approx(np.abs(score) if n_classes == 2 else score.max())
        assert explanation.score == pytest.approx(sum(reason.weight for reason in explanation.reasons))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_loaded_estimator_is_the_same(estimator, n_classes, tmp_path):
    texts, _ = make_texts(60)
    labels = np.array(["x", "y", "z"])[np.arange(60) % n_classes]
    fitted = clone(estimator).set_params(attributes=["lower", "lower_char"]).fit(texts, labels)
    fitted.save(tmp_path / "model.tw")
    loaded = tw.load(tmp_path / "model.tw")
    assert loaded.features_ == fitted.features_
    assert loaded.attributes == ("lower", "lower_char")
    assert loaded.history_ == []
    np.testing.assert_array_equal(loaded.coef_, fitted.coef_)
    assert (loaded._find(texts) != fitted._find(texts)).nnz == 0
    if hasattr(fitted, "predict"):
        np.testing.assert_array_equal(loaded.predict(texts), fitted.predict(texts))
        assert loaded.predict(texts).dtype == fitted.predict(texts).dtype


def test_a_model_with_codes_of_no_item_is_refused(tmp_path):
    texts, labels = make_texts(60)
    miner = tw.StringFeatureMiner().fit(texts, labels)
    next(iter(miner.orders_.values()))[0, 0] = 2 * len(miner.items_)
    miner.save(tmp_path / "model.tw")
    with pytest.raises(tw.errors.FormatError, match="expected n-grams of items"):
        tw.load(tmp_path / "model.tw")


def test_an_interrupted_run_goes_on_from_its_checkpoint(tmp_path):
    texts, labels = make_texts()
    plain = tw.StringFeatureMiner().fit(texts, labels)
    tw.StringFeatureMiner().fit(texts, labels, checkpoint=tmp_path)
    again = tw.StringFeatureMiner(n_jobs=2).fit(texts, labels, checkpoint=tmp_path)
    assert again.features_ == plain.features_
    np.testing.assert_array_equal(again.coef_, plain.coef_)
    with pytest.raises(InputError):
        tw.StringFeatureMiner(max_gap=0).fit(texts, labels, checkpoint=tmp_path)


def test_estimators_work_in_pipelines_and_searches():
    texts, labels = make_texts()
    pipeline = make_pipeline(tw.StringFeatureMiner(max_gap=1), LogisticRegression())
    assert pipeline.fit(texts, labels).score(*make_texts(random_state=1)) > 0.95
    search = GridSearchCV(tw.StringFeatureClassifier(), {"max_gap": [0, 1]}, cv=2).fit(texts, labels)
    assert search.best_params_ == {"max_gap": 1}


def test_nothing_selected_is_said_and_the_most_frequent_class_is_predicted():
    texts, labels = ["a", "b", "b"] * 3, ["x", "y", "y"] * 3
    with pytest.warns(UserWarning, match="no n-gram is selected with threshold 99; use a lower threshold"):
        classifier = tw.StringFeatureClassifier(threshold=99).fit(texts, labels)
    assert classifier.features_ == []
    assert set(classifier.predict(texts)) == {"y"}


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ("a text", [1], "X is one string; expected a list of texts"),
        ([], [], "X has no texts; expected at least one"),
        ({"a"}, [1], "X is a set; expected a list of texts, each a string, a list of words, or a list of"),
        (np.zeros((2, 2)), [0, 1], "X is an array of 2 dimensions; expected a list of texts"),
        ([1.5, 2.5], [0, 1], "text 0 is 1.5; expected a string, a list of words, or a list of (word, tag)"),
        (["a", None], [0, 1], "text 1 is None; expected a string"),
        (["a", "b"], [0], "y has 1 labels; expected 2, one per text"),
        (["a", "b"], None, "y is None; expected a label for each text"),
        (["a", "b"], ["x", "x"], "y has only one class, 'x'; expected at least two"),
    ],
)
@pytest.mark.parametrize("kind", [tw.StringFeatureMiner, tw.StringFeatureClassifier])
def test_bad_input_is_refused_in_one_line(kind, texts, labels, message):
    with pytest.raises(InputError) as caught:
        kind().fit(texts, labels)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ["predict", "decision_function", "explain"])
def test_a_classifier_that_is_not_fitted_says_so(method):
    with pytest.raises(NotFittedError, match="StringFeatureClassifier instance is not fitted yet"):
        getattr(tw.StringFeatureClassifier(), method)(["a"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 0}, "degree is 0; expected an integer of at least 1"),
        ({"max_gap": -1}, "max_gap is -1; expected an integer of at least 0"),
        ({"attributes": ("stem",)}, "attributes has 'stem'; expected a list of word, lower,"),
        ({"decay": 2}, "decay is 2; expected a number from 0 to 1"),
    ],
)
def test_bad_options_are_refused_in_one_line(options, message):
    with pytest.raises(InputError) as caught:
        tw.StringFeatureClassifier(**options).fit(["a", "b"], [0, 1])
    assert message in str(caught.value)
