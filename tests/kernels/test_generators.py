"""Trees may come from generators, which are read once."""

import numpy as np
import pytest

import treewright as tw

BANK = tw.make_treebank(20, 0)
TREES = list(BANK.constituents)
DEPENDENCIES = list(BANK.dependencies)
LABELS = ["long" if tree.n_nodes > 30 else "short" for tree in TREES]
SST = tw.SubsetTreeKernel(normalize=True)
PAIRS = [(tree, [float(tree.n_nodes)]) for tree in TREES]
KERNELS = [
    (SST, TREES),
    (tw.PartialTreeKernel(), TREES),
    (SST + 2 * tw.SubtreeKernel(), TREES),
    (SST * tw.SubtreeKernel(), TREES),
    (tw.Normalized(SST + tw.SubtreeKernel()) ** 2, TREES),
    (tw.Part(SST, 0) + tw.Part(tw.VectorKernel(), 1), PAIRS),
    (tw.DependencyTreeKernel(), DEPENDENCIES),
    (SST, DEPENDENCIES),
]


def stream(examples):
    """Yield examples, and fail if they are asked for twice."""
    yield from examples


@pytest.mark.parametrize(("kernel", "examples"), KERNELS, ids=range(len(KERNELS)))
def test_kernels_read_generators_once(kernel, examples):
    expected = kernel(examples)
    np.testing.assert_allclose(kernel(stream(examples)), expected)
    np.testing.assert_allclose(kernel(stream(examples[:5]), stream(examples)), kernel(examples[:5], examples))
    np.testing.assert_allclose(kernel.fit(stream(examples)).transform(stream(examples[:3])), expected[:3])
    np.testing.assert_allclose(tw.gram(kernel, stream(examples)), expected)
    found = tw.gram(kernel, stream(examples[:5]), stream(examples))
    np.testing.assert_allclose(found, kernel(examples[:5], examples))


def test_one_generator_for_both_sides_is_read_once():
    trees = stream(TREES)
    np.testing.assert_allclose(SST(trees, trees), SST(TREES))
    trees = stream(TREES)
    np.testing.assert_allclose(tw.gram(SST, trees, trees), SST(TREES))
    np.testing.assert_allclose(
        tw.SubtreeKernel().logs(stream(TREES[:3]), stream(TREES)), tw.SubtreeKernel().logs(TREES[:3], TREES)
    )


@pytest.mark.parametrize(
    "model",
    [
        tw.TreeKernelClassifier(probability=True),
        tw.TreeKernelClassifier(SST + tw.SubtreeKernel()),
        tw.LinearizedTreeClassifier(),
    ],
    ids=lambda each: type(each).__name__,
)
def test_classifiers_read_generators_once(model):
    expected = model.fit(TREES, LABELS).decision_function(TREES).tolist()
    model.fit(stream(TREES), LABELS)
    assert model.decision_function(stream(TREES)).tolist() == expected
    assert model.predict(stream(TREES)).tolist() == model.predict(TREES).tolist()
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(stream(TREES)).shape == (20, 2)


def test_regressors_and_transformers_read_generators_once():
    sizes = [tree.n_nodes for tree in TREES]
    model = tw.TreeKernelRegressor().fit(stream(TREES), sizes)
    assert model.predict(stream(TREES)).tolist() == model.predict(TREES).tolist()
    maker = tw.TreeKernelNystroem(n_components=5).fit(stream(TREES))
    assert maker.transform(stream(TREES)).tolist() == maker.transform(TREES).tolist()
