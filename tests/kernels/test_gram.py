"""Whole matrices, in memory and in files."""

import errno
import os

import numpy as np
import pytest

import treewright as tw
from treewright.errors import InputError
from treewright.kernels import gram as module
from treewright.kernels.compose import VectorKernel
from treewright.progress import messages_to

TREES = list(tw.make_treebank(30, 0).constituents)
KERNEL = tw.SubsetTreeKernel(normalize=True)


@pytest.fixture
def few_rows(monkeypatch):
    """Let strips have seven rows."""
    monkeypatch.setattr(module, "ROWS_AT_A_TIME", 7)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_strips_make_the_whole_matrix(few_rows, n_jobs):
    kernel = tw.SubsetTreeKernel(normalize=True, n_jobs=n_jobs)
    np.testing.assert_allclose(tw.gram(kernel, TREES), KERNEL(TREES), rtol=1e-12)


def test_a_matrix_in_a_file_is_the_one_in_memory(few_rows, tmp_path):
    out = tmp_path / "gram.npy"
    found = tw.gram(KERNEL, TREES, out=out)
    np.testing.assert_array_equal(found, tw.gram(KERNEL, TREES))
    np.testing.assert_array_equal(np.load(out), found)
    assert [path.name for path in tmp_path.iterdir()] == ["gram.npy"]


def test_a_matrix_is_symmetric_to_the_last_bit(few_rows):
    values = tw.gram(tw.PartialTreeKernel(), TREES)
    np.testing.assert_array_equal(values, values.T)


def test_examples_are_compared_with_others(few_rows, tmp_path):
    expected = KERNEL(TREES[:20], TREES[20:])
    assert expected.shape == (20, 10)
    np.testing.assert_allclose(tw.gram(KERNEL, TREES[:20], TREES[20:]), expected, rtol=1e-12)
    found = tw.gram(KERNEL, TREES[:20], TREES[20:], out=tmp_path / "gram.npy")
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rows_of_an_array_are_examples(few_rows):
    rows = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(tw.gram(VectorKernel(), rows), rows @ rows.T)


def test_progress_is_told_in_rows(few_rows):
    lines = []
    with messages_to(lines.append):
        tw.gram(KERNEL, TREES)
    assert lines == [f"rows {n} of 30" for n in (7, 14, 21, 28, 30)]


def test_memory_decides_how_many_rows_a_strip_has(tmp_path):
    lines = []
    fixed, row = 2 * module.PAGE * 30, module.COPIES * 8 * 30
    with messages_to(lines.append):
        tw.gram(KERNEL, TREES, out=tmp_path / "a.npy", memory_limit=fixed + 4 * row)
    assert lines[:2] == ["rows 4 of 30", "rows 8 of 30"]


def least_memory(n_rows, n_columns):
    return 2 * module.PAGE * n_rows + module.COPIES * 8 * n_columns


def test_the_least_memory_gives_one_row_at_a_time(tmp_path):
    lines = []
    with messages_to(lines.append):
        found = tw.gram(KERNEL, TREES, out=tmp_path / "a.npy", memory_limit=least_memory(30, 30))
    assert len(lines) == 30
    np.testing.assert_allclose(found, KERNEL(TREES), rtol=1e-12)


def test_progress_is_told_about_a_hundred_times_at_the_most(tmp_path):
    lines = []
    rows = np.random.default_rng(0).normal(size=(450, 3))
    with messages_to(lines.append):
        tw.gram(VectorKernel(), rows, out=tmp_path / "a.npy", memory_limit=least_memory(450, 450))
    assert len(lines) == 100
    assert lines[-1] == "rows 450 of 450"


@pytest.mark.parametrize("kernel", [tw.SubsetTreeKernel(), tw.PartialTreeKernel()])
def test_logarithms_are_those_of_the_kernel(few_rows, tmp_path, kernel):
    expected = kernel.logs(TREES)
    found = tw.gram(kernel, TREES, logs=True)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    between = tw.gram(kernel, TREES[:20], TREES[20:], logs=True, out=tmp_path / "a.npy", dtype=np.float32)
    np.testing.assert_allclose(between, expected[:20, 20:], rtol=1e-6)


def test_logarithms_may_be_minus_infinity():
    trees = ["(S (N a))", "(X (Y b))"]
    for dtype in (np.float64, np.float32):
        found = tw.gram(tw.SubsetTreeKernel(), trees, logs=True, dtype=dtype)
        assert np.isneginf(found).tolist() == [[False, True], [True, False]]


def test_times_are_those_of_strips(few_rows):
    times = []
    tw.gram(KERNEL, TREES, times=times)
    assert len(times) == 5
    assert min(times) > 0


def test_a_matrix_goes_where_a_link_leads(tmp_path):
    (tmp_path / "link.npy").symlink_to("real.npy")
    found = tw.gram(KERNEL, TREES[:3], out=tmp_path / "link.npy")
    assert (tmp_path / "link.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "real.npy"), found)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_refused_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(
        InputError, match="pipe is not a regular file; expected a regular file, since values are"
    ):
        tw.gram(KERNEL, TREES, out=pipe)
    assert pipe.is_fifo()


def test_a_matrix_too_large_for_memory_wants_a_file():
    expected = (
        r"a matrix of 30 by 30 values takes 8.44 KiB of memory, more than 2 KiB; "
        r"expected out \(a file\) or a higher memory_limit"
    )
    with pytest.raises(InputError, match=expected):
        tw.gram(KERNEL, TREES, memory_limit=2048)


@pytest.mark.parametrize("limit", [10, least_memory(30, 4) - 1])
def test_a_limit_too_low_for_one_row_is_refused_with_the_least(tmp_path, limit):
    with pytest.raises(InputError) as error:
        tw.gram(KERNEL, TREES, TREES[:4], out=tmp_path / "a.npy", memory_limit=limit)
    work = "a matrix of 30 by 4 values, one row at a time"
    assert str(error.value) == f"memory_limit is {limit:,} bytes; {work}, needs at least 245,952"
    assert not list(tmp_path.iterdir())
    assert tw.gram(KERNEL, TREES, TREES[:4], out=tmp_path / "a.npy", memory_limit=245_952).shape == (30, 4)


def test_values_may_be_of_32_bits(tmp_path):
    found = tw.gram(KERNEL, TREES, out=tmp_path / "a.npy", dtype=np.float32)
    assert found.dtype == np.float32
    assert (tmp_path / "a.npy").stat().st_size < 4 * 900 + 200
    np.testing.assert_allclose(found, KERNEL(TREES), rtol=1e-6)


def test_values_that_32_bits_cannot_hold_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"a value is 1e\+40; expected a number that fits in 32 bits"):
        tw.gram(VectorKernel(), [[1e20]], out=tmp_path / "a.npy", dtype=np.float32)
    assert not list(tmp_path.iterdir())


def test_an_interruption_leaves_the_old_file_and_nothing_else(few_rows, tmp_path):
    out = tmp_path / "gram.npy"
    out.write_text("old")

    def interrupt(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), messages_to(interrupt):
        tw.gram(KERNEL, TREES, out=out)
    assert [path.name for path in tmp_path.iterdir()] == ["gram.npy"]
    assert out.read_text() == "old"


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room cannot be taken in advance here")
def test_a_full_disk_is_told_before_anything_is_evaluated(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match=r"gram\.npy") as caught:
        tw.gram(KERNEL, TREES, out=tmp_path / "gram.npy")
    assert caught.value.errno == errno.ENOSPC
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((KERNEL, []), {}, "there are no examples; expected at least one"),
        ((KERNEL, TREES, []), {}, "there are no examples; expected at least one"),
        ((KERNEL, TREES), {"memory_limit": 0}, "memory_limit is 0; expected an integer of at least 1"),
        ((KERNEL, TREES), {"dtype": np.int32}, "dtype is int32; expected float64 or float32"),
        ((KERNEL, TREES), {"dtype": "foo"}, "dtype is 'foo'; expected float64 or float32"),
        ((KERNEL, TREES), {"out": 3}, "out is 3; expected the name of a file"),
        ((KERNEL, TREES), {"logs": True}, "logs and normalize are both True; expected at most one of them"),
        (
            (VectorKernel(), TREES),
            {"logs": True},
            "VectorKernel cannot compute logarithms; expected a kernel of",
        ),
        (("rbf", TREES), {}, "kernel is str; expected a kernel of treewright"),
        ((KERNEL, TREES), {"out": os.curdir}, "is a folder; expected the name of a file"),
    ],
)
def test_bad_input_is_named(arguments, options, message):
    with pytest.raises(InputError, match=message):
        tw.gram(*arguments, **options)


def test_kernels_of_lists_are_one_line():
    with pytest.raises(InputError, match=r"FisherKernel has a value for each candidate of a list; expected"):
        tw.gram(tw.FisherKernel(), [])
