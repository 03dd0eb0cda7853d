import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.utils.estimator_checks import parametrize_with_checks

import treewright as tw
from treewright._typing import RandomState
from treewright._validate import describe_type
from treewright.errors import InputError

N_CLASSES = [2, 3]


@parametrize_with_checks([tw.AveragedPerceptron()])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def draw(n_classes, random_state=0):
    """Draw rows, and labels that follow from them but for some noise."""
    rng = np.random.default_rng(random_state)
    rows = rng.normal(size=(80, 6))
    scores = rows @ rng.normal(size=(6, n_classes)) + rng.normal(scale=0.5, size=(80, n_classes))
    return rows, np.array(["a", "b", "c"])[scores.argmax(axis=1)]


def random_start(n_classes):
    """Draw weights in the shapes of `coef_` and `intercept_`."""
    rng = np.random.default_rng(9)
    n = 1 if n_classes == 2 else n_classes
    return {"coef_init": rng.normal(size=(n, 6)), "intercept_init": rng.normal(size=n)}


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_labels_are_learnt(n_classes):
    rows, labels = draw(n_classes)
    assert tw.AveragedPerceptron().fit(rows, labels).score(rows, labels) > 0.85


@pytest.mark.parametrize(("n_classes", "n_rows"), [(2, 1), (3, 3)])
def test_two_classes_have_one_row_of_weights_and_more_have_one_each(n_classes, n_rows):
    rows, labels = draw(n_classes)
    perceptron = tw.AveragedPerceptron().fit(rows, labels)
    assert perceptron.coef_.shape == (n_rows, 6)
    assert perceptron.intercept_.shape == (n_rows,)


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_decisions_are_the_weights_applied_to_rows(n_classes):
    rows, labels = draw(n_classes)
    perceptron = tw.AveragedPerceptron().fit(rows, labels)
    scores = rows @ perceptron.coef_.T + perceptron.intercept_
    np.testing.assert_allclose(perceptron.decision_function(rows).reshape(80, -1), scores)
    best = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    assert perceptron.predict(rows).tolist() == perceptron.classes_[best].tolist()


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_a_tiny_rate_leaves_the_weights_to_start_from(n_classes):
    rows, labels = draw(n_classes)
    start = random_start(n_classes)
    perceptron = tw.AveragedPerceptron(rate=1e-9).fit(rows, labels, **start)
    np.testing.assert_allclose(perceptron.coef_, start["coef_init"], atol=1e-6)
    np.testing.assert_allclose(perceptron.intercept_, start["intercept_init"], atol=1e-6)


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_a_tiny_rate_predicts_as_the_weights_to_start_from(n_classes):
    rows, labels = draw(n_classes)
    start = random_start(n_classes)
    perceptron = tw.AveragedPerceptron(rate=1e-9).fit(rows, labels, **start)
    scores = rows @ start["coef_init"].T + start["intercept_init"]
    best = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    assert perceptron.predict(rows).tolist() == np.array(["a", "b", "c"])[best].tolist()


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_training_goes_on_from_weights_that_are_right(n_classes):
    rows, _ = draw(n_classes)
    start = random_start(n_classes)
    scores = rows @ start["coef_init"].T + start["intercept_init"]
    labels = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    perceptron = tw.AveragedPerceptron(epochs=3).fit(rows, labels, **start)
    assert perceptron.n_updates_ == [0, 0, 0]
    np.testing.assert_allclose(perceptron.coef_, start["coef_init"])


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_the_rate_only_scales_the_weights_where_there_is_no_margin(n_classes):
    rows, labels = draw(n_classes)
    one, half = (tw.AveragedPerceptron(rate=rate).fit(rows, labels) for rate in (1, 0.5))
    np.testing.assert_allclose(one.coef_, 2 * half.coef_)


def test_rate_and_margin_scale_the_weights_together():
    rows, labels = draw(3)
    one = tw.AveragedPerceptron(rate=1, margin=3).fit(rows, labels)
    half = tw.AveragedPerceptron(rate=0.5, margin=1.5).fit(rows, labels)
    np.testing.assert_allclose(one.coef_, 2 * half.coef_)


def test_a_margin_asks_for_more_updates():
    rows, labels = draw(2)
    none, some = (tw.AveragedPerceptron(margin=margin).fit(rows, labels) for margin in (0, 10))
    assert sum(some.n_updates_) > sum(none.n_updates_)


def test_the_same_seed_gives_the_same_weights():
    rows, labels = draw(3)
    first, second, other = (
        tw.AveragedPerceptron(random_state=random_state).fit(rows, labels) for random_state in (4, 4, 5)
    )
    assert first.coef_.tolist() == second.coef_.tolist()
    assert first.coef_.tolist() != other.coef_.tolist()


def test_sparse_and_dense_rows_give_the_same_weights():
    rows, labels = draw(3)
    rows = rows * (rows > 0)
    dense, sparse = (tw.AveragedPerceptron().fit(kind(rows), labels) for kind in (np.asarray, csr_matrix))
    assert dense.coef_.tolist() == sparse.coef_.tolist()
    assert dense.predict(rows).tolist() == sparse.predict(csr_matrix(rows)).tolist()


def test_one_class_is_refused():
    with pytest.raises(InputError) as refused:
        tw.AveragedPerceptron().fit([[0.0], [1.0]], ["a", "a"])
    assert str(refused.value) == "y has only one class, 'a'; expected at least two"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epochs": 0}, "epochs is 0; expected an integer of at least 1"),
        ({"rate": 0}, "rate is 0; expected a number from 1e-12 to 1e+12"),
        ({"margin": -1}, "margin is -1; expected a number from 0 to 1e+12"),
        ({"random_state": -1}, f"random_state is -1; expected {describe_type(RandomState)}"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with pytest.raises(InputError) as refused:
        tw.AveragedPerceptron(**parameters).fit([[0.0], [1.0]], [0, 1])
    assert str(refused.value) == message
