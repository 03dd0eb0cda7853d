import pickle

import numpy as np
import pytest
from nltk.tree import Tree
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR

import treewright as tw
from treewright.errors import InputError
from treewright.kernels.compose import Part, VectorKernel
from treewright.kernels.convolution import SubsetTreeKernel
from treewright.kernels.deptree import DependencyTreeKernel
from treewright.kernels.machines import TreeKernelClassifier, TreeKernelNystroem, TreeKernelRegressor
from treewright.kernels.platt import apply_sigmoid, deal_folds, fit_sigmoid
from treewright.kernels.polynomial import PolynomialKernel
from treewright.progress import messages_to

RBF = VectorKernel("rbf", gamma=0.3)


class ShiftedKernel(VectorKernel):
    """A kernel that is not of the package."""


def draw(random_state, n_examples=120, n_classes=3):
    rng = np.random.default_rng(random_state)
    vectors = rng.normal(size=(n_examples, 4))
    scores = vectors[:, 0] * vectors[:, 1] + vectors[:, 2] + 0.2 * rng.normal(size=n_examples)
    names = np.array(["red", "green", "blue", "grey"])
    return vectors, names[np.digitize(scores, np.linspace(-1, 1, n_classes + 1)[1:-1])], scores


@pytest.fixture(scope="module")
def trees():
    return tw.make_treebank(n_sentences=60, random_state=3).dependencies


def is_long(trees):
    return np.array(["long" if len(tree) > 8 else "short" for tree in trees])


def tree_kernel():
    return DependencyTreeKernel(decay=0.1, normalize=True)


def peer_decisions(matrix, signs, **options):
    return SVC(kernel="precomputed", tol=1e-6, **options).fit(matrix, signs).decision_function(matrix)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"red": 5.0}, {"red": 0.5, "green": 3.0}])
def test_two_classes_have_the_machine_of_scikit_learn(class_weight):
    vectors, labels, _ = draw(0, n_classes=2)
    found = TreeKernelClassifier(RBF, C=2.0, class_weight=class_weight).fit(vectors, labels)
    expected = peer_decisions(RBF(vectors), labels, C=2.0, class_weight=class_weight)
    np.testing.assert_allclose(found.decision_function(vectors), expected, atol=5e-3)
    assert found.predict(vectors).tolist() == np.where(expected > 0, *found.classes_[::-1]).tolist()
    assert found.dual_coef_.shape == (1, len(found.support_))


@pytest.mark.parametrize("class_weight", [None, "balanced", {"blue": 4.0, "red": 2.0}])
def test_more_classes_have_a_machine_each_against_the_others(class_weight):
    vectors, labels, _ = draw(1)
    found = TreeKernelClassifier(RBF, class_weight=class_weight).fit(vectors, labels)
    decisions = found.decision_function(vectors)
    assert decisions.shape == (len(labels), 3)
    for column, name in enumerate(found.classes_):
        weight = class_weight
        if isinstance(weight, dict):
            weight = {True: weight.get(str(name), 1.0), False: 1.0}
        expected = peer_decisions(RBF(vectors), labels == name, class_weight=weight)
        np.testing.assert_allclose(decisions[:, column], expected, atol=5e-3)
    assert found.predict(vectors).tolist() == found.classes_[decisions.argmax(axis=1)].tolist()


def test_sample_weights_are_factors_of_the_cost():
    vectors, labels, _ = draw(2, n_classes=2)
    weights = np.random.default_rng(0).uniform(0, 2, size=len(labels))
    weights[:10] = 0
    found = TreeKernelClassifier(RBF).fit(vectors, labels, weights)
    peer = SVC(kernel="precomputed", tol=1e-6).fit(RBF(vectors[10:]), labels[10:], sample_weight=weights[10:])
    expected = peer.decision_function(RBF(vectors, vectors[10:]))
    np.testing.assert_allclose(found.decision_function(vectors), expected, atol=5e-3)
    assert not np.isin(np.arange(10), found.support_).any()


def test_only_support_vectors_are_kept():
    vectors, labels, _ = draw(1)
    found = TreeKernelClassifier(RBF).fit(vectors, labels)
    assert found.support_.tolist() == np.flatnonzero(np.isin(np.arange(len(labels)), found.support_)).tolist()
    assert found.support_examples_.tolist() == vectors[found.support_].tolist()
    assert found.n_support_.tolist() == np.count_nonzero(found.dual_coef_, axis=1).tolist()
    assert (found.dual_coef_ != 0).any(axis=0).all()
    assert len(found.intercept_) == len(found.n_iter_) == 3
    products = RBF(vectors, found.support_examples_) @ found.dual_coef_.T + found.intercept_
    np.testing.assert_allclose(found.decision_function(vectors), products)


@pytest.mark.parametrize("cost", [0.1, 5.0])
def test_regression_is_that_of_scikit_learn(cost):
    vectors, _, scores = draw(3)
    found = TreeKernelRegressor(RBF, C=cost, epsilon=0.05).fit(vectors, scores)
    expected = SVR(kernel="precomputed", C=cost, epsilon=0.05, tol=1e-6).fit(RBF(vectors), scores)
    np.testing.assert_allclose(found.predict(vectors), expected.predict(RBF(vectors)), atol=5e-3)
    assert found.score(vectors, scores) == pytest.approx(expected.score(RBF(vectors), scores), abs=5e-3)


def test_numbers_within_epsilon_of_each_other_need_no_support(tmp_path):
    vectors = draw(3)[0]
    found = TreeKernelRegressor(RBF, epsilon=0.5).fit(vectors, np.linspace(2, 2.2, len(vectors)))
    assert len(found.support_) == 0
    found.save(tmp_path / "model")
    for model in (found, tw.load(tmp_path / "model")):
        assert model.predict(vectors[:3]).tolist() == pytest.approx([2.1] * 3)


@pytest.mark.parametrize("labels", [[0, 1], [True, False], [-1.0, 2.0], ["a", "b"], [3, 7]])
def test_labels_of_any_kind_come_back(labels, tmp_path):
    given = np.array(labels * 10)
    vectors = np.where(given == given[0], 1.0, -1.0)[:, np.newaxis]
    found = TreeKernelClassifier(VectorKernel()).fit(vectors, given)
    found.save(tmp_path / "model")
    for model in (found, tw.load(tmp_path / "model")):
        predicted = model.predict(vectors)
        assert predicted.dtype == given.dtype
        assert predicted.tolist() == given.tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_add_up_and_follow_decisions(n_classes):
    vectors, labels, _ = draw(4, 300, n_classes)
    found = TreeKernelClassifier(RBF, probability=True).fit(vectors[:200], labels[:200])
    probabilities = found.predict_proba(vectors[200:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    right = probabilities[np.arange(100), np.searchsorted(found.classes_, labels[200:])]
    assert -np.log(right).mean() < 0.8 * np.log(n_classes)
    if n_classes == 2:
        order = np.argsort(found.decision_function(vectors[200:]))
        assert (np.diff(probabilities[order, 1]) >= 0).all()


def test_a_class_of_one_example_has_probabilities():
    vectors, labels, _ = draw(4, 40, 2)
    labels[0] = "alone"
    found = TreeKernelClassifier(RBF, probability=True).fit(vectors, labels)
    np.testing.assert_allclose(found.predict_proba(vectors).sum(axis=1), 1)


def test_probabilities_depend_on_the_seed_only():
    vectors, labels, _ = draw(4)
    machines = [
        TreeKernelClassifier(RBF, probability=True, random_state=random_state) for random_state in (1, 1, 2)
    ]
    first, again, other = (
        machine.fit(vectors, labels).predict_proba(vectors).tolist() for machine in machines
    )
    assert first == again != other


def test_the_sigmoid_has_the_least_loss():
    rng = np.random.default_rng(0)
    decisions = rng.normal(size=200)
    is_positive = decisions + rng.normal(size=200) > 0.5
    targets = np.where(is_positive, (is_positive.sum() + 1) / (is_positive.sum() + 2), 0)
    targets[~is_positive] = 1 / ((~is_positive).sum() + 2)

    def loss(point):
        found = apply_sigmoid(decisions, *point)
        return -(targets * np.log(found) + (1 - targets) * np.log(1 - found)).sum()

    expected = minimize(loss, [0, 0], tol=1e-10).x
    assert fit_sigmoid(decisions, is_positive) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_separated_decisions_have_a_finite_sigmoid(scale):
    decisions = scale * np.linspace(-1, 1, 20)
    slope, offset = fit_sigmoid(decisions, decisions > 0)
    found = apply_sigmoid(decisions, slope, offset)
    assert np.isfinite(found).all()
    assert found[0] < 0.2
    assert found[-1] > 0.8


def test_folds_have_about_the_same_mixture():
    labels = np.repeat([0, 1, 2], [50, 13, 3])
    folds = deal_folds(labels, 5, random_state=0)
    counts = np.array([np.bincount(labels[folds == fold], minlength=3) for fold in range(5)])
    assert (np.ptp(counts, axis=0) <= 1).all()


def test_trees_are_classified(trees):
    labels = is_long(trees)
    machine = TreeKernelClassifier(tree_kernel(), C=10).fit(trees, labels)
    assert machine.score(trees, labels) > 0.9
    expected = peer_decisions(tree_kernel()(trees), labels, C=10)
    np.testing.assert_allclose(machine.decision_function(trees), expected, atol=5e-3)


def test_the_kernel_of_subset_trees_is_meant_by_none(tmp_path):
    trees = tw.make_treebank(n_sentences=60, random_state=3).constituents
    labels = np.array([len(tree.words()) > 8 for tree in trees])
    machine = TreeKernelClassifier(C=10).fit(trees, labels)
    kernel = SubsetTreeKernel(decay=0.4, normalize=True)
    expected = TreeKernelClassifier(kernel, C=10).fit(trees, labels).decision_function(trees)
    assert machine.decision_function(trees).tolist() == expected.tolist()
    machine.save(tmp_path / "model")
    loaded = tw.load(tmp_path / "model")
    assert loaded.kernel is None
    np.testing.assert_allclose(loaded.decision_function(trees), expected, rtol=1e-12)
    features = TreeKernelNystroem(n_components=60).fit_transform(trees)
    np.testing.assert_allclose(features @ features.T, kernel(trees), atol=1e-6)


def test_sparse_rows_are_classified():
    rng = np.random.default_rng(0)
    rows = csr_matrix((rng.random((80, 12)) < 0.4).astype(float))
    labels = rows[:, 0].toarray().ravel() == rows[:, 1].toarray().ravel()
    machine = TreeKernelClassifier(PolynomialKernel(2), C=100).fit(rows, labels)
    assert machine.score(rows, labels) == 1


def test_examples_of_several_parts_are_classified(trees):
    vectors = np.random.default_rng(0).normal(size=(len(trees), 3))
    labels = (vectors[:, 0] > 0) & (is_long(trees) == "long")
    kernel = (Part(tree_kernel(), 0) + Part(VectorKernel(normalize=True), 1)) ** 2
    examples = list(zip(trees, vectors, strict=True))
    machine = TreeKernelClassifier(kernel, C=100).fit(examples, labels)
    assert machine.score(examples, labels) > 0.9


def test_parameters_of_the_kernel_can_be_searched(trees):
    search = GridSearchCV(
        TreeKernelClassifier(tree_kernel()), {"kernel__decay": [0.01, 0.5], "C": [1, 10]}, cv=3
    )
    search.fit(trees, is_long(trees))
    assert search.best_estimator_.kernel_.decay == search.best_params_["kernel__decay"]
    assert search.best_score_ > 0.6


def test_machines_work_in_what_scikit_learn_has(trees):
    machine = TreeKernelClassifier(tree_kernel())
    assert len(cross_val_score(machine, trees, is_long(trees), cv=3)) == 3
    assert clone(machine).get_params()["kernel__decay"] == 0.1
    found = make_pipeline(clone(machine)).fit(trees, is_long(trees))
    assert found.predict(trees[:2]).shape == (2,)
    lengths = [len(tree) for tree in trees]
    assert cross_val_score(TreeKernelRegressor(tree_kernel(), C=10), trees, lengths, cv=3).mean() > 0


def test_pickled_machines_decide_the_same(trees):
    machine = TreeKernelClassifier(tree_kernel(), probability=True).fit(trees, is_long(trees))
    expected = machine.predict_proba(trees)
    assert pickle.loads(pickle.dumps(machine)).predict_proba(trees).tolist() == expected.tolist()


@pytest.mark.parametrize("class_weight", [None, "balanced", {"long": 2.0}])
def test_saved_machines_decide_the_same(trees, tmp_path, class_weight):
    machine = TreeKernelClassifier(tree_kernel(), probability=True, class_weight=class_weight)
    machine.fit(trees, is_long(trees)).save(tmp_path / "model")
    loaded = tw.load(tmp_path / "model")
    assert loaded.predict_proba(trees).tolist() == machine.predict_proba(trees).tolist()
    assert str(loaded) == str(machine)
    loaded.fit(trees, is_long(trees))
    np.testing.assert_allclose(loaded.dual_coef_, machine.dual_coef_)


def test_machines_that_cannot_be_saved_say_why(tmp_path):
    vectors, labels, _ = draw(1)
    machine = TreeKernelClassifier(RBF + VectorKernel()).fit(vectors, labels)
    machine.kernel.weights = [object()] * 2
    with pytest.raises(InputError, match=r"kernel.weights\[0\] is .*, which cannot be saved; expected plain"):
        machine.save(tmp_path / "model")
    with pytest.raises(InputError, match="this TreeKernelClassifier is not fitted; call fit first"):
        TreeKernelClassifier(RBF).save(tmp_path / "model")


def test_machines_with_a_kernel_of_somebody_else_can_be_saved(tmp_path):
    vectors, labels, _ = draw(1)
    machine = TreeKernelClassifier(ShiftedKernel("rbf", gamma=0.3)).fit(vectors, labels)
    machine.save(tmp_path / "model")
    loaded = tw.load(tmp_path / "model")
    assert type(loaded.kernel_) is ShiftedKernel
    assert loaded.predict(vectors).tolist() == machine.predict(vectors).tolist()


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing(trees, n_jobs):
    labels = is_long(trees)
    alone, several = (TreeKernelClassifier(tree_kernel(), n_jobs=n).fit(trees, labels) for n in (1, n_jobs))
    np.testing.assert_allclose(several.decision_function(trees), alone.decision_function(trees), rtol=1e-9)


def test_progress_is_told_for_each_class():
    vectors, labels, _ = draw(1)
    lines = []
    with messages_to(lines.append):
        TreeKernelClassifier(RBF).fit(vectors, labels)
    assert [line.split(":")[0] for line in lines] == ["class blue", "class green", "class red"]
    assert "violation" in lines[0]
    assert "kernel rows" in lines[0]


def test_an_interruption_comes_out_as_it_is():
    def interrupt(line):
        raise KeyboardInterrupt

    vectors, labels, _ = draw(1)
    with pytest.raises(KeyboardInterrupt), messages_to(interrupt):
        TreeKernelClassifier(RBF).fit(vectors, labels)


def test_a_round_limit_warns():
    vectors, labels, _ = draw(1, 300, 2)
    with pytest.warns(ConvergenceWarning, match="class red did not converge in 1 iterations"):
        TreeKernelClassifier(RBF, C=10, max_iter=1).fit(vectors, labels)


def test_no_examples_have_no_decisions():
    vectors, labels, _ = draw(1)
    assert TreeKernelClassifier(RBF).fit(vectors, labels).decision_function(vectors[:0]).shape == (0, 3)


@pytest.mark.parametrize(
    ("options", "labels", "weights", "message"),
    [
        ({}, [0, 1, 0, np.nan], None, "labels has the value nan; expected finite numbers"),
        (
            {},
            [0, 1.5, 0, 1],
            None,
            "^labels has the value 1.5; expected class names or integers$",
        ),
        (
            {},
            np.array([0, 1.5, 0, 1], dtype=object),
            None,
            "^labels has the value 1.5; expected class names or integers$",
        ),
        (
            {},
            [0, None, 0, 1],
            None,
            "^labels have the types NoneType, int; expected only names or only numbers$",
        ),
        (
            {},
            [{}, None, {}, None],
            None,
            "^labels have the types NoneType, dict; expected only names or only numbers$",
        ),
        (
            {},
            [[1], [1, 2], [0], [1]],
            None,
            "^the labels are sequences of different lengths; expected one label per example$",
        ),
        ({}, ["a"] * 4, None, "all labels are 'a'; expected two classes or more"),
        ({}, ["a", "b"], None, r"the labels have the shape \(2,\); expected \(4,\), one per example"),
        ({}, list("abab"), [1, 1], r"sample_weight has the shape \(2,\); expected \(4,\)"),
        ({}, list("abab"), [1, 1, 1, -2], "sample_weight has the value -2; expected 0 or more"),
        ({}, list("abab"), [1, 1, 1, np.nan], "sample_weight has the value nan; expected finite numbers"),
        ({}, list("abab"), [1, 0, 1, 0], "sample_weight is 0 for all examples of class 'b'; expected"),
        ({"C": 0}, list("abab"), None, "C is 0; expected a number from 1e-12 to 1e[+]12"),
        ({"tol": -1}, list("abab"), None, "tol is -1; expected a number"),
        ({"max_iter": 0}, list("abab"), None, "max_iter is 0; expected an integer of at least 1"),
        ({"cache_memory": -1}, list("abab"), None, "cache_memory is -1; expected an integer of at least 0"),
        ({"n_jobs": 0}, list("abab"), None, "n_jobs is 0; expected an integer of at least 1"),
        ({"random_state": -1}, list("abab"), None, "random_state is -1; expected an integer of at least 0"),
        ({"kernel": "rbf"}, list("abab"), None, "kernel is 'rbf'; expected a kernel of treewright or None"),
        (
            {"class_weight": "some"},
            list("abab"),
            None,
            "class_weight is 'some'; expected one of None, balanced",
        ),
        (
            {"class_weight": {"c": 1}},
            list("abab"),
            None,
            "class_weight has the unknown class 'c'; expected some of a, b",
        ),
        ({"class_weight": {"a": 0}}, list("abab"), None, r"class_weight\['a'\] is 0; expected a number"),
        ({"probability": 1}, list("abab"), None, "probability is 1; expected one of False, True"),
    ],
)
def test_bad_input_is_told(options, labels, weights, message):
    machine = TreeKernelClassifier(**({"kernel": RBF} | options))
    with pytest.raises(InputError, match=message):
        machine.fit([[0.0], [1.0], [2.0], [3.0]], labels, weights)


@pytest.mark.parametrize(
    ("options", "targets", "weights", "message"),
    [
        ({"epsilon": -1}, [1, 2], None, "epsilon is -1; expected a number from 0"),
        ({}, [1, np.nan], None, "targets has the value nan; expected finite numbers"),
        ({}, ["a", "b"], None, "targets has .*'a'.*; expected numbers"),
        ({}, [1, 2], [0, 0], "sample_weight is 0 for all examples; expected a positive weight for some"),
    ],
)
def test_bad_input_of_a_regressor_is_told(options, targets, weights, message):
    with pytest.raises(InputError, match=message):
        TreeKernelRegressor(RBF, **options).fit([[0.0], [1.0]], targets, weights)


def test_no_examples_are_told():
    for machine in (TreeKernelClassifier(RBF), TreeKernelRegressor(RBF)):
        with pytest.raises(InputError, match="no examples were given; expected at least one"):
            machine.fit([], [])
    with pytest.raises(InputError, match="no examples were given; expected at least one"):
        TreeKernelNystroem(RBF).fit([])


@pytest.mark.parametrize(
    "example",
    [
        "(S a)",
        tw.ConstTree.parse("(S a)"),
        tw.DepTree(["go"], [0]),
        Tree("S", [Tree("NP", ["Mary"]), Tree("VP", ["sleeps"])]),
    ],
    ids=lambda example: type(example).__name__,
)
def test_one_example_instead_of_many_is_told(example):
    message = f"^the examples are of the type {type(example).__name__}; expected a list or another iterable$"
    fitted = TreeKernelClassifier().fit(["(S a)", "(S b)"], [0, 1])
    for call in (
        lambda: TreeKernelClassifier().fit(example, [0, 1]),
        lambda: TreeKernelRegressor().fit(example, [0, 1]),
        lambda: TreeKernelNystroem().fit(example),
        lambda: fitted.predict(example),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_probabilities_are_there_only_if_they_are_wanted():
    vectors, labels, _ = draw(1)
    assert not hasattr(TreeKernelClassifier(RBF), "predict_proba")
    assert hasattr(TreeKernelClassifier(RBF, probability=True), "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        TreeKernelClassifier(RBF).fit(vectors, labels).predict_proba(vectors)


def test_probabilities_that_were_not_learnt_are_told():
    vectors, labels, _ = draw(1)
    machine = TreeKernelClassifier(RBF).fit(vectors, labels).set_params(probability=True)
    with pytest.raises(InputError, match="probability was False in fit; expected True for predict_proba"):
        machine.predict_proba(vectors)


def test_nystroem_features_of_all_examples_give_the_kernel():
    vectors, _, _ = draw(1, 30)
    features = TreeKernelNystroem(RBF, n_components=30).fit_transform(vectors)
    np.testing.assert_allclose(features @ features.T, RBF(vectors), atol=1e-6)


def test_nystroem_features_of_equal_examples_are_finite():
    vectors = np.repeat(draw(1, 5)[0], 4, axis=0)
    features = TreeKernelNystroem(RBF, n_components=20).fit(vectors).transform(vectors)
    np.testing.assert_allclose(features @ features.T, RBF(vectors), atol=1e-6)


def test_nystroem_landmarks_are_some_of_the_examples(trees):
    maker = TreeKernelNystroem(tree_kernel(), n_components=7, random_state=2).fit(trees)
    assert len(set(maker.component_indices_.tolist())) == 7
    assert maker.components_ == [trees[number] for number in maker.component_indices_]
    assert maker.transform(trees).shape == (len(trees), 7)
    assert maker.get_feature_names_out()[-1] == "treekernelnystroem6"
    again = TreeKernelNystroem(tree_kernel(), n_components=7, random_state=2, n_jobs=2).fit(trees)
    np.testing.assert_allclose(again.transform(trees), maker.transform(trees), rtol=1e-9)
    assert pickle.loads(pickle.dumps(maker)).transform(trees).tolist() == maker.transform(trees).tolist()


@pytest.mark.parametrize("kernel", [None, tw.PartialTreeKernel(max_children=3), tree_kernel() ** 2])
def test_a_saved_nystroem_transformer_is_the_same(trees, tmp_path, kernel):
    maker = TreeKernelNystroem(kernel, n_components=7, random_state=2).fit(trees)
    maker.save(tmp_path / "model")
    loaded = tw.load(tmp_path / "model")
    assert loaded.transform(trees).tolist() == maker.transform(trees).tolist()
    assert loaded.component_indices_.tolist() == maker.component_indices_.tolist()
    assert loaded.get_feature_names_out().tolist() == maker.get_feature_names_out().tolist()
    assert str(loaded.get_params()) == str(maker.get_params())
    assert loaded.fit(trees).transform(trees).tolist() == maker.transform(trees).tolist()


def test_a_nystroem_transformer_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(
        InputError, match="this TreeKernelNystroem is not fitted; call fit first, or load a fitted one"
    ):
        TreeKernelNystroem().save(tmp_path / "model")


def test_nystroem_features_make_linear_models_of_trees(trees):
    model = make_pipeline(TreeKernelNystroem(tree_kernel(), n_components=40), LogisticRegression(C=100))
    assert model.fit(trees, is_long(trees)).score(trees, is_long(trees)) > 0.85
    with pytest.raises(InputError, match="n_components is 0; expected an integer of at least 1"):
        TreeKernelNystroem(RBF, n_components=0).fit(trees)
