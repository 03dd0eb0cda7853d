"""Boosted trees as weighted conjunctions, and their share of the scores."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import treewright as tw
from treewright.errors import InputError
from treewright.mining.targets import LabelTarget, NumberTarget
from treewright.mining.tree_leaves import BoostedTreeLeaves, TreeColumns


def draw(n_samples=400, n_columns=9, random_state=0):
    """Draw binary samples and a number that depends on several conjunctions."""
    rng = np.random.default_rng(random_state)
    X = (rng.random((n_samples, n_columns)) < 0.4).astype(np.int8)
    signal = 2.0 * X[:, 0] * X[:, 1] - 1.5 * X[:, 2] * (1 - X[:, 3]) * X[:, 4] + X[:, 5]
    return X, signal + 0.3 * rng.normal(size=n_samples)


def scores_of(leaves, X):
    """Return the sum of the weights of the conjunctions that hold in each row."""
    found = np.tile(leaves.intercept, (len(X), 1))
    for path, weight in leaves.weights.items():
        holds = np.all([X[:, each] == 1 if each >= 0 else X[:, ~each] == 0 for each in path], axis=0)
        found[holds] += weight
    return found


@pytest.mark.parametrize("n_outputs", [0, 2, 3])
def test_leaves_give_the_scores_of_the_trees(n_outputs):
    X, y = draw()
    labels = np.digitize(y, np.quantile(y, np.arange(1, n_outputs) / max(1, n_outputs)))
    target = LabelTarget(labels, n_outputs) if n_outputs else NumberTarget(y)
    weights = (np.arange(len(X)) % 5 > 0).astype(float)  # a fifth is only scored
    trees = BoostedTreeLeaves(TreeColumns(csr_matrix(X), 4), target, weights)
    for _ in range(7):
        assert trees.grow()
    leaves = trees.leaves()
    np.testing.assert_allclose(scores_of(leaves, X), trees.scores, atol=1e-9)
    assert 1 < max(map(len, leaves.weights)) <= 4
    assert all(len(path) > 1 or path[0] >= 0 for path in leaves.weights)


def test_rows_without_weight_do_not_change_the_trees():
    X, y = draw()
    weights = (np.arange(len(X)) % 3 > 0).astype(float)
    found = []
    for change in (0.0, 100.0):
        target = NumberTarget(np.where(weights > 0, y, y + change))
        trees = BoostedTreeLeaves(TreeColumns(csr_matrix(X), 3), target, weights)
        trees.grow()
        found.append(trees.scores)
    np.testing.assert_array_equal(*found)


def hilly_data(n_samples=1500, random_state=0):
    """Draw thresholds of two numbers, and a function with hills: many conjunctions explain a little each."""
    rng = np.random.default_rng(random_state)
    numbers, tops = rng.random((n_samples, 2)), np.random.default_rng(1).random((25, 2))
    X = np.concatenate([numbers[:, [each]] > np.linspace(0.03, 0.97, 20) for each in range(2)], axis=1)
    distances = ((numbers[:, np.newaxis] - tops) ** 2).sum(axis=2)
    return X.astype(np.int8), np.exp(-distances / 0.01) @ np.where(np.arange(25) % 2, 1, -1)


def test_trees_get_a_share_where_they_are_better():
    X, y = hilly_data(600)
    both = tw.ConjunctionRegressor().fit(X[:400], y[:400])
    alone = tw.ConjunctionRegressor(trees=False).fit(X[:400], y[:400])
    assert both.score(X[400:], y[400:]) > alone.score(X[400:], y[400:]) + 0.02


def test_without_trees_leaves_or_negations_there_are_none():
    X, y = hilly_data(600)
    labels = y > 0
    plain = tw.ConjunctionClassifier(negations=False).fit(X, labels)
    assert min(min(each) for each in plain.conjunctions_) >= 0
    short = tw.ConjunctionClassifier(degree=2).fit(X, labels)
    assert max(map(len, short.conjunctions_)) <= 2


def test_a_model_with_trees_is_saved_whole(tmp_path):
    X, y = hilly_data(600)
    model = tw.ConjunctionRegressor().fit(X, y)
    assert max(map(len, model.conjunctions_)) > 5  # only leaves of trees have so many literals
    model.save(tmp_path / "m.tw")
    again = tw.load(tmp_path / "m.tw")
    assert again.conjunctions_ == model.conjunctions_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_trees_have_no_effect_on_algorithm_1_and_are_refused_there():
    with pytest.raises(InputError, match="trees"):
        tw.ConjunctionClassifier(threshold=3, trees=False).fit([[0, 1], [1, 0], [1, 1]], [0, 1, 1])
