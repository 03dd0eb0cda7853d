"""Partial trees as fragments: explanations, the heaviest ones, linear models of them."""

import numpy as np
import pytest
from oracle.kernels import partial_fragments as twin
from oracle.kernels import ptk

import treewright as tw
from treewright.data.consttree import ConstTree
from treewright.kernels.fragments import FragmentCounter

ALL = 10**6
CASES = [
    {},
    {"normalize": True, "decay": 0.7, "depth_decay": 0.5},
    {"decay": 1.0, "depth_decay": 1.0, "normalize": True},
    {"max_children": 2, "decay": 0.8, "depth_decay": 0.9},
    {"max_children": 1},
]


def draw_tree(rng, depth=0):
    label = "ABC"[rng.integers(3)]
    if depth and (depth > 2 or rng.random() < 0.4):
        return ConstTree(label if rng.random() < 0.5 else label.lower())
    return ConstTree(label, [draw_tree(rng, depth + 1) for _ in range(rng.integers(1, 4))])


def draw(random_state, n_trees=18, n_classes=3):
    rng = np.random.default_rng(random_state)
    trees = [draw_tree(rng) for _ in range(20 * n_trees)]
    trees = [tree for tree in trees if 4 < tree.n_nodes < 11][:n_trees]
    return trees, np.array(["red", "green", "blue"])[np.arange(n_trees) % n_classes]


def options(kernel):
    return kernel.decay, kernel.depth_decay, kernel.max_children


def expected_weights(machine, coef, tree):
    """Return what each partial tree of a tree adds, by listing all of them."""
    kernel, scale = machine.kernel_, 1.0
    if kernel.normalize:
        coef = coef / [twin.norm(each, *options(kernel)) for each in machine.support_examples_]
        scale = 1 / twin.norm(tree, *options(kernel))
    weights = twin.values(machine.support_examples_, coef, *options(kernel))
    counts = twin.partial_trees(tree, kernel.decay, kernel.max_children)
    return {twin.write(each): scale * n * weights.get(each, 0.0) for each, n in counts.items()}


def assert_heaviest(found, expected, n):
    assert len({text for text, _ in found}) == len(found)
    for text, weight in found:
        assert weight == pytest.approx(expected[text], abs=1e-12)
    heaviest = sorted((abs(value) for value in expected.values() if abs(value) > 1e-12), reverse=True)[:n]
    assert [abs(weight) for _, weight in found][: len(heaviest)] == pytest.approx(heaviest)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_explanations_are_those_of_all_partial_trees_listed(case):
    trees, labels = draw(0)
    machine = tw.TreeKernelClassifier(tw.PartialTreeKernel(**case)).fit(trees[:14], labels[:14])
    decisions = machine.decision_function(trees)
    for number in (0, 15, 17):
        for place, label in enumerate(machine.classes_):
            expected = expected_weights(machine, machine.dual_coef_[place], trees[number])
            for n in (5, ALL):
                found = machine.explain(trees[number], n, label=label)
                assert_heaviest([(each.fragment, each.weight) for each in found], expected, n)
            total = sum(each.weight for each in found) + machine.intercept_[place]
            assert total == pytest.approx(decisions[number, place], abs=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [
        tw.PartialTreeKernel(),
        tw.PartialTreeKernel(normalize=True, max_children=2),
        tw.SubsetTreeKernel(normalize=True),
        tw.Normalized(tw.SubtreeKernel() + 2 * tw.PartialTreeKernel(normalize=True)),
    ],
    ids=str,
)
def test_what_two_trees_share_adds_up_to_the_kernel_value(kernel):
    trees, _ = draw(6)
    for one, other in zip(trees[:6], trees[6:12], strict=True):
        found = kernel.explain(one, other, ALL)
        total = sum(each.weight for each in found)
        assert total == pytest.approx(kernel([one], [other])[0, 0], abs=1e-12)
        assert kernel.explain(one, other, 3) == found[:3]
    with pytest.raises(tw.errors.InputError, match="which counts similar fragments, not only equal ones"):
        tw.SmoothedPartialTreeKernel((["a"], [[1]])).explain(trees[0], trees[1])


def test_fragments_larger_than_max_size_are_left_out():
    trees, labels = draw(1)
    machine = tw.TreeKernelClassifier(tw.PartialTreeKernel()).fit(trees, labels)
    everything, small = (machine.explain(trees[0], ALL, max_size=size) for size in (None, 3))
    assert small == [each for each in everything if sum(map(str.isalpha, each.fragment)) <= 3]


def test_a_search_that_stops_early_warns():
    trees, labels = draw(1)
    machine = tw.TreeKernelClassifier(tw.PartialTreeKernel()).fit(trees, labels)
    with pytest.warns(UserWarning, match=r"the search stopped after \d+ fragments and may have missed heavy"):
        machine.explain(trees[0], max_visits=3)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_are_counts_of_listed_partial_trees_in_the_space_of_the_kernel(case):
    trees, _ = draw(2)
    kernel = tw.PartialTreeKernel(**case)
    listed = [twin.partial_trees(tree, kernel.decay, kernel.max_children) for tree in trees]
    chosen = sorted({each for counts in listed[:8] for each in counts}, key=twin.write)
    texts = [twin.write(each) for each in chosen]
    fragments = [ConstTree.parse(text) if "(" in text else ConstTree(text) for text in texts]
    counter = FragmentCounter(kernel, fragments)
    found = counter.transform(trees).toarray()
    scales = np.sqrt([ptk.weigh(each, kernel.decay, kernel.depth_decay) for each in chosen])
    for tree, counts, row in zip(trees, listed, found, strict=True):
        norm = twin.norm(tree, *options(kernel)) if kernel.normalize else 1
        np.testing.assert_allclose(row, scales * [counts[each] for each in chosen] / norm, atol=1e-12)
    factors = np.random.default_rng(0).normal(size=(len(texts), 2))
    np.testing.assert_allclose(counter.multiply(trees, factors), found @ factors, atol=1e-10)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_linear_model_without_pruning_decides_as_its_machine(case, n_classes):
    trees, labels = draw(3, n_classes=n_classes)
    machine = tw.TreeKernelClassifier(tw.PartialTreeKernel(**case)).fit(trees[:14], labels[:14])
    model = tw.LinearizedTreeClassifier(machine, n_fragments=ALL, prefit=True, refit=False)
    model.fit(trees[:14], labels[:14])
    expected = machine.decision_function(trees)
    np.testing.assert_allclose(model.decision_function(trees), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("case", CASES[:4], ids=str)
def test_the_heaviest_partial_trees_of_each_class_are_mined(case):
    trees, labels = draw(4)
    kernel = tw.PartialTreeKernel(**case)
    model = tw.LinearizedTreeClassifier(tw.TreeKernelClassifier(kernel), n_fragments=6).fit(trees, labels)
    machine = model.machine_
    norms = [
        twin.norm(each, *options(kernel)) if kernel.normalize else 1 for each in machine.support_examples_
    ]
    for coef in machine.dual_coef_:
        values = twin.values(machine.support_examples_, coef / norms, *options(kernel), power=0.5)
        sixth = sorted(map(abs, values.values()), reverse=True)[5]
        heaviest = [each for each, value in values.items() if abs(value) > sixth * (1 + 1e-9)]
        assert {twin.write(each) for each in heaviest} <= set(model.fragments_)
    assert model.score(trees, labels) > 1 / 3


def test_wide_nodes_are_searched_by_what_can_follow():
    trees = [f"(A {' '.join('(b c)' for _ in range(n))} (d e))" for n in (30, 40, 50, 60)]
    labels = ["few", "few", "many", "many"]
    machine = tw.TreeKernelClassifier(tw.PartialTreeKernel(normalize=True)).fit(trees, labels)
    assert len(machine.explain(trees[0], 5, max_visits=100_000)) == 5


def test_a_saved_linear_model_of_partial_trees_is_the_same(tmp_path):
    trees, labels = draw(5)
    kernel = tw.PartialTreeKernel(normalize=True, max_children=3)
    model = tw.LinearizedTreeClassifier(tw.TreeKernelClassifier(kernel), n_fragments=50).fit(trees, labels)
    model.save(tmp_path / "model")
    loaded = tw.load(tmp_path / "model")
    assert loaded.fragments_ == model.fragments_
    assert loaded.decision_function(trees).tolist() == model.decision_function(trees).tolist()
    assert loaded.explain(trees[0]) == model.explain(trees[0])
