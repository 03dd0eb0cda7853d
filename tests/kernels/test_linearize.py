import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from oracle.kernels import fragments as twin
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

import treewright as tw
from treewright.errors import InputError
from treewright.kernels.fragments import FragmentCounter
from treewright.kernels.linearize import LinearizedTreeClassifier
from treewright.kernels.machines import TreeKernelClassifier, TreeKernelRegressor

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

ALL = 10**6
LISTS = {tw.SubsetTreeKernel: twin.subset_trees, tw.SubtreeKernel: twin.subtrees}
CASES = [
    (kind, normalize, words)
    for kind in LISTS
    for normalize, words in [(False, "nodes"), (True, "nodes"), (True, "bag"), (False, "bag")]
]


def draw_tree(rng, depth=0):
    label = "ABC"[rng.integers(3)]
    if depth and (depth > 3 or rng.random() < 0.3):
        return tw.ConstTree(label if rng.random() < 0.3 else label.lower())
    return tw.ConstTree(label, [draw_tree(rng, depth + 1) for _ in range(rng.integers(1, 4))])


def draw(random_state, n_trees=30, n_classes=3):
    """Draw trees and labels."""
    rng = np.random.default_rng(random_state)
    trees = [draw_tree(rng) for _ in range(20 * n_trees)]
    trees = [tree for tree in trees if 4 < tree.n_nodes < 18][:n_trees]
    return trees, np.array(["red", "green", "blue"])[np.arange(n_trees) % n_classes]


def lister(kernel):
    """Return what lists the fragments of a kernel."""
    own = LISTS[type(kernel)]
    return (lambda tree: own(tree) + twin.words(tree)) if kernel.words == "bag" else own


def expected_weights(machine, coef, tree):
    """Return what each fragment of a tree adds, by listing all fragments."""
    kernel = machine.kernel_
    fragments = lister(kernel)
    trees = machine.support_examples_
    scale = 1.0
    if kernel.normalize:
        coef = coef / [twin.norm(each, fragments, kernel.decay) for each in trees]
        scale = 1 / twin.norm(tree, fragments, kernel.decay)
    values = twin.values(trees, coef, fragments, kernel.decay)
    return {text: scale * count * values.get(text, 0.0) for text, count in fragments(tree).items()}


def assert_explains(found, expected, n):
    assert len({text for text, *_ in found}) == len(found)
    for text, weight, _ in found:
        assert weight == pytest.approx(expected[text], abs=1e-12)
    heaviest = sorted((abs(value) for value in expected.values() if abs(value) > 1e-12), reverse=True)[:n]
    assert [abs(weight) for _, weight, _ in found][: len(heaviest)] == pytest.approx(heaviest)


@pytest.mark.slow_cases
@pytest.mark.parametrize(("kind", "normalize", "words"), CASES)
def test_explanations_are_those_of_all_fragments_listed(kind, normalize, words):
    trees, labels = draw(0)
    kernel = kind(decay=0.6, normalize=normalize, words=words)
    machine = TreeKernelClassifier(kernel).fit(trees[:20], labels[:20])
    decisions = machine.decision_function(trees)
    for number in (0, 21, 25):
        for place, label in enumerate(machine.classes_):
            expected = expected_weights(machine, machine.dual_coef_[place], trees[number])
            assert_explains(machine.explain(trees[number], 5, label=label), expected, 5)
            everything = machine.explain(trees[number], ALL, label=label)
            assert_explains(everything, expected, ALL)
            total = sum(weight for _, weight, _ in everything) + machine.intercept_[place]
            assert total == pytest.approx(decisions[number, place])


def test_the_predicted_class_is_explained_unless_another_is_given():
    trees, labels = draw(1)
    machine = TreeKernelClassifier().fit(trees, labels)
    for tree in trees[:5]:
        assert machine.explain(tree) == machine.explain(tree, label=machine.predict([tree])[0])
        assert len(machine.explain(tree, 3)) == 3


def test_the_first_of_two_classes_has_the_weights_of_the_second_with_the_other_sign():
    trees, labels = draw(2, n_classes=2)
    machine = TreeKernelClassifier().fit(trees, labels)
    first, second = (machine.explain(trees[0], ALL, label=label) for label in machine.classes_)
    assert {text: weight for text, weight, _ in first} == {text: -weight for text, weight, _ in second}
    total = sum(weight for _, weight, _ in second) + machine.intercept_[0]
    assert total == pytest.approx(machine.decision_function(trees[:1])[0])


def test_regression_is_explained():
    trees, _ = draw(3)
    numbers = np.random.default_rng(3).normal(size=len(trees))
    machine = TreeKernelRegressor(tw.SubsetTreeKernel(decay=0.5)).fit(trees, numbers)
    found = machine.explain(trees[4], ALL)
    assert_explains(found, expected_weights(machine, machine.dual_coef_[0], trees[4]), ALL)
    total = sum(weight for _, weight, _ in found) + machine.intercept_[0]
    assert total == pytest.approx(machine.predict(trees[4:5])[0])


def test_a_regression_without_support_has_no_fragments():
    trees, _ = draw(3)
    machine = TreeKernelRegressor(epsilon=1.0).fit(trees, np.ones(len(trees)))
    assert machine.explain(trees[0]) == []


def test_words_that_are_no_nodes_are_in_no_fragment():
    trees = ["(S (N Mary) (V sleeps))", "(Q (W who) (V sleeps))"]
    machine = TreeKernelClassifier(tw.SubsetTreeKernel(words="none")).fit(trees, ["no", "yes"])
    assert [text for text, *_ in machine.explain(trees[1])] == ["(Q W V)"]


def test_dependency_trees_are_explained():
    trees = tw.make_treebank(n_sentences=20, random_state=0).dependencies
    labels = ["long" if len(tree) > 8 else "short" for tree in trees]
    machine = TreeKernelClassifier().fit(trees, labels)
    assert len(machine.explain(trees[0])) == 10


def test_fragments_larger_than_max_size_are_left_out():
    trees, labels = draw(4)
    machine = TreeKernelClassifier().fit(trees, labels)
    everything = machine.explain(trees[0], ALL)
    small = machine.explain(trees[0], ALL, max_size=2)
    assert small == [each for each in everything if twin.size(each.fragment) <= 2]


def test_a_search_that_stops_early_warns():
    trees, labels = draw(4)
    machine = TreeKernelClassifier(tw.SubsetTreeKernel(decay=1.0)).fit(trees, labels)
    with pytest.warns(UserWarning, match=r"the search stopped after \d+ fragments and may have missed heavy"):
        machine.explain(trees[0], max_visits=3)


def draw_examples(random_state):
    """Draw examples of two trees, some without the second, and a vector."""
    trees, labels = draw(random_state)
    rng = np.random.default_rng(random_state)
    others = [None if rng.random() < 0.2 else {"tree": tree} for tree in trees[::-1]]
    return list(zip(trees, others, rng.normal(size=(len(trees), 2)), strict=True)), labels


SUBSETS = tw.SubsetTreeKernel(decay=0.6, normalize=True)
SUBTREES = tw.SubtreeKernel(decay=0.5, words="bag")
VECTORS = tw.VectorKernel("rbf", gamma=0.5)
INNER = tw.Part(tw.Part(SUBTREES, "tree"), 1)


def expected_terms(terms, coef, supports, example):
    """Return what each fragment of each part adds, by listing all of them."""
    expected = {}
    for part, (take, kernel, weight) in terms.items():
        pairs = [(take(one), each) for one, each in zip(supports, coef, strict=True) if take(one) is not None]
        if take(example) is None:
            continue
        machine = SimpleNamespace(kernel_=kernel, support_examples_=[tree for tree, _ in pairs])
        found = expected_weights(machine, np.array([each for _, each in pairs]), take(example))
        expected |= {(text, part): weight * value for text, value in found.items()}
    return expected


def take_first(example):
    return example[0]


def take_second(example):
    return example[1] and example[1]["tree"]


@pytest.mark.parametrize(
    ("kernel", "terms", "vector_weight"),
    [
        (2 * tw.Part(SUBSETS, 0), {0: (take_first, SUBSETS, 2.0)}, 0.0),
        (
            tw.Part(SUBSETS, 0) + 3 * INNER,
            {0: (take_first, SUBSETS, 1.0), (1, "tree"): (take_second, SUBTREES, 3.0)},
            0.0,
        ),
        (
            tw.Sum(
                [
                    ("trees", tw.Sum([tw.Part(2 * SUBSETS, 0), INNER], weights=[0.5, 1.5])),
                    tw.Part(VECTORS, 2),
                ],
                weights=[2.0, 0.7],
            ),
            {0: (take_first, SUBSETS, 2.0), (1, "tree"): (take_second, SUBTREES, 3.0)},
            0.7,
        ),
    ],
)
def test_sums_are_explained_by_the_fragments_of_all_trees(kernel, terms, vector_weight):
    examples, labels = draw_examples(0)
    machine = TreeKernelClassifier(kernel).fit(examples[:20], labels[:20])
    decisions = machine.decision_function(examples)
    supports = machine.support_examples_
    vectors = np.array([support[2] for support in supports])
    alone = next(number for number, example in enumerate(examples) if example[1] is None)
    for number in (0, 21, 25, alone):
        example = examples[number]
        for place, label in enumerate(machine.classes_):
            coef = machine.dual_coef_[place]
            expected = expected_terms(terms, coef, supports, example)
            for n in (5, ALL):
                found = machine.explain(example, n, label=label)
                assert_explains([((text, part), weight, part) for text, weight, part in found], expected, n)
            of_vectors = vector_weight * (VECTORS([example[2]], vectors) @ coef)[0]
            total = sum(weight for _, weight, _ in found) + of_vectors + machine.intercept_[place]
            assert total == pytest.approx(decisions[number, place])


def test_kernels_of_the_same_tree_are_explained_each():
    trees, _ = draw(3)
    numbers = np.random.default_rng(3).normal(size=len(trees))
    machine = TreeKernelRegressor(SUBSETS + 0.5 * SUBTREES + 0.1 * SUBSETS).fit(trees, numbers)
    found = machine.explain(trees[4], ALL)
    assert {part for *_, part in found} == {None}
    total = sum(weight for _, weight, _ in found) + machine.intercept_[0]
    assert total == pytest.approx(machine.predict(trees[4:5])[0])


def test_powers_of_vectors_are_left_out():
    examples, labels = draw_examples(1)
    kernel = tw.Part(SUBSETS, 0) + tw.Normalized(tw.Part(VECTORS, 2) ** 2)
    assert {part for *_, part in TreeKernelClassifier(kernel).fit(examples, labels).explain(examples[0])} == {
        0
    }


@pytest.mark.parametrize(
    ("kernel", "found"),
    [
        (
            tw.SmoothedPartialTreeKernel((["a"], [[1]])),
            "the kernel contains SmoothedPartialTreeKernel, which counts similar fragments, not only equal",
        ),
        (
            SUBSETS**2,
            "the kernel contains Power, whose features are conjunctions of fragments; expected a sum",
        ),
        (
            SUBSETS + SUBSETS * SUBTREES,
            "the kernel contains Product, whose features are pairs of fragments; expected",
        ),
    ],
)
def test_kernels_that_are_no_sums_of_listed_fragments_are_not_explained(kernel, found):
    trees, labels = draw(0)
    with pytest.raises(InputError, match=f"^{found}"):
        TreeKernelClassifier(kernel).fit(trees, labels).explain(trees[0])


def test_kernels_of_vectors_are_not_explained():
    with pytest.raises(
        InputError, match="the kernel is VectorKernel, which compares only vectors; expected a tree"
    ):
        TreeKernelClassifier(VECTORS).fit([[0.0], [1.0]], [0, 1]).explain([0.0])


@pytest.mark.parametrize(
    ("kernel", "found"),
    [
        (
            tw.SmoothedPartialTreeKernel((["a"], [[1]])),
            "the kernel contains SmoothedPartialTreeKernel, which counts similar fragments, not only equal "
            "ones; expected a sum of PartialTreeKernel, SubsetTreeKernel, SubtreeKernel and vector kernels$",
        ),
        (
            SUBSETS**2,
            "the kernel contains Power, whose features are conjunctions of fragments; expected a sum of",
        ),
        (
            SUBSETS * SUBTREES,
            "the kernel contains Product, whose features are pairs of fragments; expected a sum",
        ),
        (
            SUBSETS + VECTORS,
            "the kernel contains VectorKernel of the kind rbf; expected only linear",
        ),
        (
            tw.DependencyTreeKernel(),
            "the kernel is DependencyTreeKernel, whose fragments cannot be listed; exp",
        ),
    ],
)
def test_kernels_whose_features_cannot_be_listed_are_refused(kernel, found):
    with pytest.raises(InputError, match=f"^{found}"):
        LinearizedTreeClassifier(TreeKernelClassifier(kernel)).fit(*draw(0))


def test_labels_that_are_not_there_are_refused():
    trees, labels = draw(0)
    for model in (TreeKernelClassifier(), LinearizedTreeClassifier()):
        model.fit(trees, labels)
        with pytest.raises(InputError, match="label is 'grey'; expected one of blue, green, red"):
            model.explain(trees[0], label="grey")


@pytest.mark.slow_cases
@pytest.mark.parametrize(("kind", "normalize", "words"), CASES)
def test_rows_are_counts_of_listed_fragments_in_the_space_of_the_kernel(kind, normalize, words):
    trees, _ = draw(5)
    kernel = kind(decay=0.5, normalize=normalize, words=words)
    fragments = lister(kernel)
    texts = sorted({text for tree in trees[:20] for text in fragments(tree)})
    chosen = [tw.ConstTree.parse(text) if "(" in text else tw.ConstTree(text) for text in texts]
    counter = FragmentCounter(kernel, chosen)
    found = counter.transform(trees).toarray()
    scales = np.array([0.5 ** (twin.size(text) / 2) for text in texts])
    for tree, row in zip(trees, found, strict=True):
        counts = fragments(tree)
        norm = twin.norm(tree, fragments, 0.5) if normalize else 1
        np.testing.assert_allclose(row, scales * [counts[text] for text in texts] / norm, atol=1e-12)
    factors = np.random.default_rng(0).normal(size=(len(texts), 2))
    np.testing.assert_allclose(counter.multiply(trees, factors), found @ factors, atol=1e-12)


@pytest.mark.parametrize("kernel", [tw.SubsetTreeKernel(normalize=True), tw.SubtreeKernel(words="bag")])
def test_all_fragments_make_the_kernel(kernel):
    trees, labels = draw(6)
    model = LinearizedTreeClassifier(TreeKernelClassifier(kernel, C=1000), n_fragments=ALL).fit(trees, labels)
    rows = model.transform(model.machine_.support_examples_)
    np.testing.assert_allclose((rows @ rows.T).toarray(), kernel(model.machine_.support_examples_), atol=1e-9)


LINEAR = tw.VectorKernel()
COMPOSED = [
    tw.Part(SUBSETS, 0) + 3 * INNER,
    tw.Sum([tw.Part(2 * SUBSETS, 0), INNER, tw.Part(LINEAR, 2)], weights=[0.5, 1.5, 0.7]),
    tw.Normalized(tw.Part(SUBSETS, 0) + INNER + tw.Part(tw.VectorKernel(normalize=True), 2)),
    tw.Normalized(tw.Part(tw.Normalized(tw.PartialTreeKernel(max_children=2)), 0)) + tw.Part(SUBTREES, 0),
]


@pytest.mark.slow_cases
@pytest.mark.parametrize("kernel", COMPOSED, ids=range(len(COMPOSED)))
def test_a_sum_of_kernels_without_pruning_decides_as_its_machine(kernel):
    examples, labels = draw_examples(2)
    machine = TreeKernelClassifier(kernel).fit(examples[:20], labels[:20])
    model = LinearizedTreeClassifier(machine, n_fragments=ALL, prefit=True, refit=False)
    model.fit(examples[:20], labels[:20])
    expected = machine.decision_function(examples)
    np.testing.assert_allclose(model.decision_function(examples), expected, atol=1e-8)
    support = machine.support_examples_
    rows = model.transform(support)
    np.testing.assert_allclose((rows @ rows.T).toarray(), kernel(support), atol=1e-8)
    label, decision = model.classes_[1], expected[25, 1]
    for found in (
        machine.explain(examples[25], ALL, label=label),
        model.explain(examples[25], ALL, label=label),
    ):
        parts = {0, (1, "tree")} if any(part != 0 for *_, part in found) else {0}
        assert {part for *_, part in found} <= {*parts, 2}
    total = sum(weight for _, weight, _ in found) + model.intercept_[1]
    assert total == pytest.approx(decision, abs=1e-8)


def test_a_linear_model_of_a_sum_is_saved_with_all_terms(tmp_path):
    examples, labels = draw_examples(2)
    model = LinearizedTreeClassifier(TreeKernelClassifier(COMPOSED[1]), n_fragments=30).fit(examples, labels)
    assert {*model.fragment_terms_.tolist()} == {0, 1}
    assert model.n_columns_.tolist() == [2]
    names = model.get_feature_names_out().tolist()
    assert len(set(names)) == len(names) == model.coef_.shape[1]
    assert names[-1] == "2: column 1"
    model.save(tmp_path / "model")
    loaded = tw.load(tmp_path / "model")
    assert loaded.decision_function(examples).tolist() == model.decision_function(examples).tolist()
    assert loaded.explain(examples[0]) == model.explain(examples[0])


def test_the_heaviest_fragments_of_each_class_are_taken():
    trees, labels = draw(7)
    model = LinearizedTreeClassifier(n_fragments=4).fit(trees, labels)
    machine = model.machine_
    norms = [twin.norm(tree, twin.subset_trees, 0.4) for tree in machine.support_examples_]
    for coef in machine.dual_coef_:
        values = twin.values(machine.support_examples_, coef / norms, twin.subset_trees, np.sqrt(0.4))
        weights = sorted(map(abs, values.values()), reverse=True)
        assert all(text in model.fragments_ for text, value in values.items() if abs(value) > weights[4])
    assert len(model.fragments_) <= 12


def test_decisions_are_those_of_a_linear_machine_of_the_rows():
    trees, labels = draw(8)
    model = LinearizedTreeClassifier(n_fragments=20, C=2.0).fit(trees[:20], labels[:20])
    rows = model.transform(trees)
    peer = LinearSVC(C=2.0, random_state=0).fit(rows[:20], labels[:20])
    np.testing.assert_allclose(model.decision_function(trees), peer.decision_function(rows), atol=1e-3)
    assert model.predict(trees).tolist() == peer.predict(rows).tolist()
    assert model.coef_.shape == (3, len(model.fragments_))
    assert model.get_feature_names_out().tolist() == model.fragments_


@pytest.mark.parametrize("class_weight", [None, "balanced", {"red": 2.0, "blue": 0.5}])
def test_sample_weights_are_those_of_the_machine_and_of_the_linear_model(class_weight):
    trees, labels = draw(8)
    weights = np.random.default_rng(0).uniform(0.1, 2, size=len(trees))
    model = LinearizedTreeClassifier(n_fragments=20, class_weight=class_weight).fit(trees, labels, weights)
    machine = TreeKernelClassifier().fit(trees, labels, weights)
    assert model.machine_.dual_coef_.tolist() == machine.dual_coef_.tolist()
    rows = model.transform(trees)
    peer = LinearSVC(random_state=0, class_weight=class_weight).fit(rows, labels, sample_weight=weights)
    np.testing.assert_allclose(model.decision_function(trees), peer.decision_function(rows), atol=1e-3)


def test_labels_and_weights_are_checked():
    trees, labels = draw(8, 6)
    machine = TreeKernelClassifier().fit(trees, labels)
    model = LinearizedTreeClassifier(machine, prefit=True)
    with pytest.raises(InputError, match=r"labels has the value 0\.5; expected class names"):
        model.fit(trees, np.arange(6) / 2)
    with pytest.raises(InputError, match="labels have the types NoneType, int; expected only names"):
        model.fit(trees, [None, 1] * 3)
    with pytest.raises(InputError, match=r"sample_weight has the shape \(2,\); expected \(6,\)"):
        model.fit(trees, labels, [1, 1])
    with pytest.raises(
        InputError, match="class_weight has the unknown class 'grey'; expected some of blue, green, red"
    ):
        model.set_params(class_weight={"grey": 1.0}).fit(trees, labels)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_fragments_add_up_to_the_decision_value(n_classes):
    trees, labels = draw(9, n_classes=n_classes)
    model = LinearizedTreeClassifier(n_fragments=50).fit(trees, labels)
    label = model.classes_[-1]
    for tree in trees[:5]:
        found = model.explain(tree, ALL, label=label)
        decision = np.ravel(model.decision_function([tree]))[-1]
        assert sum(weight for _, weight, _ in found) + model.intercept_[-1] == pytest.approx(decision)
        assert [abs(weight) for _, weight, _ in found] == sorted(
            (abs(each) for _, each, _ in found), reverse=True
        )
        assert model.explain(tree) == model.explain(tree, label=model.predict([tree])[0])


def test_no_trees_have_no_rows():
    trees, labels = draw(8)
    model = LinearizedTreeClassifier().fit(trees, labels)
    assert model.predict([]).tolist() == []
    assert model.transform([]).shape == (0, len(model.fragments_))


def test_jobs_change_nothing():
    trees, labels = draw(8)
    one, two = (LinearizedTreeClassifier(n_jobs=n_jobs).fit(trees, labels) for n_jobs in (1, 2))
    assert one.fragments_ == two.fragments_
    assert one.decision_function(trees).tolist() == two.decision_function(trees).tolist()


@pytest.mark.parametrize("kernel", [None, tw.SubtreeKernel(decay=0.7, normalize=True, words="bag")])
def test_a_saved_classifier_is_the_same(tmp_path, kernel):
    trees, labels = draw(10)
    machine = TreeKernelClassifier(kernel, class_weight={"red": 2.0}) if kernel else None
    model = LinearizedTreeClassifier(machine, class_weight={"blue": 2.0}).fit(trees, labels)
    model.save(tmp_path / "model")
    for other in (tw.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert other.fragments_ == model.fragments_
        assert other.decision_function(trees).tolist() == model.decision_function(trees).tolist()
        assert other.explain(trees[0]) == model.explain(trees[0])
        assert str(other.get_params()) == str(model.get_params())
        assert other.fit(trees, labels).fragments_ == model.fragments_


def test_a_trained_machine_is_taken_as_it_is():
    trees, labels = draw(11)
    machine = TreeKernelClassifier().fit(trees, labels)
    model = LinearizedTreeClassifier(machine, prefit=True).fit(trees, labels)
    assert model.machine_ is machine
    assert model.fragments_ == LinearizedTreeClassifier(machine).fit(trees, labels).fragments_
    with pytest.raises(NotFittedError):
        clone(model).fit(trees, labels)


def test_parameters_can_be_searched():
    trees, labels = draw(12)
    machine = TreeKernelClassifier(tw.SubsetTreeKernel(normalize=True))
    grid = {"n_fragments": [5, 50], "machine__kernel__decay": [0.2, 0.8]}
    search = GridSearchCV(LinearizedTreeClassifier(machine), grid, cv=2).fit(trees, labels)
    assert search.best_estimator_.kernel_.decay in (0.2, 0.8)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"n_fragments": 0}, "the number of fragments is 0; expected an integer of at least 1"),
        ({"max_size": 0}, "max_size is 0; expected an integer of at least 1"),
        ({"C": 0}, "C is 0; expected a number from"),
        ({"prefit": True}, "machine is None; expected a fitted TreeKernelClassifier for prefit=True"),
        ({"machine": LinearSVC()}, r"machine is LinearSVC\(\); expected a TreeKernelClassifier or None"),
    ],
)
def test_parameters_are_checked(options, expected):
    with pytest.raises(InputError, match=expected):
        LinearizedTreeClassifier(**options).fit(*draw(0))


def test_an_untrained_classifier_says_so():
    with pytest.raises(NotFittedError):
        LinearizedTreeClassifier().predict(draw(0)[0])


def test_counts_become_frames_with_sparse_columns():
    trees = tw.make_treebank(20, random_state=0).constituents
    model = tw.LinearizedTreeClassifier(n_fragments=50).fit(trees, list("ab") * 10)
    expected = model.transform(trees[:5])
    found = model.set_output(transform="pandas").transform(trees[:5])
    assert found.columns.tolist() == model.get_feature_names_out().tolist()
    assert (found.sparse.to_coo() != expected).nnz == 0
    np.testing.assert_array_equal(model.fit(trees, list("ab") * 10).transform(trees[:5]), found)
