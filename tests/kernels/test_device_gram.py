"""Gram matrices through PyTorch, here on the CPU, are those of compiled code."""

import importlib
import sys

import numpy as np
import pytest
from commands import run
from oracle.kernels.dags import draw_trees, draw_wide

import treewright as tw
from treewright.data.consttree import ConstTree
from treewright.errors import InputError, MissingDependencyError
from treewright.kernels import device_gram as module

pytest.importorskip("torch")

BANK = list(tw.make_treebank(40, 0).constituents)
KERNELS = [
    tw.SubsetTreeKernel(),
    tw.SubsetTreeKernel(decay=1.0, words="bag"),
    tw.SubsetTreeKernel(decay=0.7, normalize=True, words="none"),
    tw.PartialTreeKernel(),
    tw.PartialTreeKernel(decay=0.8, depth_decay=0.9, normalize=True),
    tw.PartialTreeKernel(max_children=2, words="none"),
    tw.PartialTreeKernel(max_children=1),
    tw.SubtreeKernel(),
    tw.SubtreeKernel(decay=0.5, words="bag", normalize=True),
]


def as_const_tree(node):
    return ConstTree(node.label, [as_const_tree(child) for child in node.children])


@pytest.fixture(scope="module")
def trees():
    """Return trees of several shapes: deep, wide, of one node, and equal ones."""
    wide = [draw_wide(np.random.default_rng(n), 9) for n in range(3)]
    odd = [as_const_tree(node) for node in [*draw_trees(1, n_trees=8), *wide]]
    return [*BANK[:5], *odd, ConstTree("a"), ConstTree("A", [ConstTree("a")]), odd[0]]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_are_those_of_compiled_code(kernel, trees):
    np.testing.assert_allclose(tw.gram(kernel, trees, device="cpu"), kernel(trees), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS[::2], ids=str)
def test_trees_are_compared_with_others(kernel, trees):
    found = tw.gram(kernel, trees[:12], trees[5:], device="cpu")
    np.testing.assert_allclose(found, kernel(trees[:12], trees[5:]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[4], KERNELS[8]], ids=str)
@pytest.mark.parametrize("n_trees", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_tiles_of_any_size_make_the_whole_matrix(kernel, n_trees, trees, monkeypatch):
    monkeypatch.setattr(module, "MOST_TREES", n_trees)
    monkeypatch.setattr(module.DeviceGram, "_room", 20_000)
    np.testing.assert_allclose(tw.gram(kernel, trees, device="cpu"), kernel(trees), rtol=1e-9, atol=1e-12)


def test_the_memory_limit_decides_how_many_trees_a_tile_has(tmp_path):
    kernel = tw.SubsetTreeKernel(normalize=True)
    sizes = [
        module.DeviceGram(kernel, BANK, device="cpu", memory=memory).n_trees for memory in (1 << 30, 1 << 17)
    ]
    assert sizes[0] == 40 > sizes[1] > 1
    found = tw.gram(kernel, BANK, device="cpu", device_memory=1 << 17, out=tmp_path / "gram.npy")
    np.testing.assert_allclose(found, kernel(BANK), rtol=1e-9)


def test_rows_that_do_not_fit_are_held_one_by_one(tmp_path):
    kernel = tw.PartialTreeKernel()
    gram = importlib.import_module("treewright.kernels.gram")
    least = 2 * gram.PAGE * 9 + gram.COPIES * 8 * 9
    found = tw.gram(kernel, BANK[:9], device="cpu", memory_limit=least, out=tmp_path / "gram.npy")
    np.testing.assert_allclose(found, kernel(BANK[:9]), rtol=1e-9)


def test_values_too_large_are_normalised_or_refused():
    chain = "(A a)"
    while len(chain) < 20_000:
        chain = f"(A {chain} {chain})"
    trees = [chain, "(A (A a) (A a))"]
    kernel = tw.SubsetTreeKernel(decay=1.0, normalize=True)
    np.testing.assert_allclose(tw.gram(kernel, trees, device="cpu"), kernel(trees), rtol=1e-6)
    with pytest.raises(InputError, match="the kernel value of trees 0 and 0 overflows"):
        tw.gram(tw.SubsetTreeKernel(decay=1.0), trees, device="cpu")


@pytest.mark.parametrize(
    ("kernel", "options", "expected"),
    [
        (
            tw.VectorKernel(),
            {"device": "cpu"},
            "VectorKernel cannot be evaluated on a PyTorch device; expected one of SubtreeKernel, "
            "SubsetTreeKernel, PartialTreeKernel, or no device$",
        ),
        (tw.SubsetTreeKernel() ** 2, {"device": "cpu"}, "Power cannot be evaluated on a PyTorch device"),
        (tw.SubsetTreeKernel(), {"device": 0}, "device is 0; expected the name of a PyTorch device, such as"),
        (tw.SubsetTreeKernel(), {"device": "x"}, r"device is 'x'; expected a device that PyTorch can use \("),
        (tw.SubsetTreeKernel(), {"device": "cpu", "logs": True}, "device and logs are both given; expected"),
        (tw.SubsetTreeKernel(), {"device": "cpu", "client": 1}, "device and a cluster are both given;"),
        (tw.SubsetTreeKernel(), {"device_memory": 1}, "device_memory has no effect without device; expected"),
        (
            tw.SubsetTreeKernel(),
            {"device": "cpu", "device_memory": 1},
            r"the nodes of two trees take \d+ bytes on the device, more than 1; expected a larger device_mem",
        ),
    ],
)
def test_what_cannot_be_done_on_a_device_is_refused(kernel, options, expected):
    with pytest.raises(InputError, match=f"^{expected}"):
        tw.gram(kernel, BANK[:2], **options)


def test_a_machine_without_a_gpu_says_so(monkeypatch):
    torch = importlib.import_module("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    expected = "^device is 'cuda', but PyTorch finds no CUDA GPU; expected a GPU, or no device$"
    with pytest.raises(InputError, match=expected):
        tw.gram(tw.SubsetTreeKernel(), BANK[:2], device="cuda")


def test_a_missing_torch_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"^torch is not installed; install it with: .*\[gpu\]"):
        tw.gram(tw.SubsetTreeKernel(), BANK[:2], device="cpu")


def test_the_command_line_computes_on_a_device(tmp_path):
    path, out = tmp_path / "trees.mrg", tmp_path / "gram.npy"
    tw.write_brackets(BANK, path)
    run("kernel", path, "--out", out, "--device", "cpu", "--device-memory", "64M", "--normalize")
    expected = tw.SubsetTreeKernel(normalize=True)(BANK)
    np.testing.assert_allclose(np.load(out), expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[4]], ids=str)
def test_a_matrix_of_32_bits_is_symmetric(kernel, trees, monkeypatch):
    monkeypatch.setattr(module, "MOST_TREES", 7)
    found = tw.gram(kernel, trees, device="cpu", dtype=np.float32)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, kernel(trees), rtol=1e-6)
