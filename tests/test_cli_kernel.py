"""Matrices of tree kernels from the command line."""

import io
import os
import sys

import numpy as np
import pytest
from commands import run

import treewright as tw
from treewright.cli import app
from treewright.data.svmlight import read_tree_examples
from treewright.kernels.files import FORMATS

BANK = tw.make_treebank(12, 0)
TREES = list(BANK.constituents)
LINES = """\
# a comment
+1 |BT| (S (N Mary) (V sleeps)) |BT| (X (A a)) |ET| 1:1 2:2 |EV|
-1 |BT| (S (N John) (V sleeps)) |BT| |ET| 2:3 |EV|
NEUTER |BT| (S (N Mary) (V eats)) |BT| (X (A a)) |ET|
"""


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "trees.mrg"
    tw.write_brackets(TREES, path)
    return path


@pytest.fixture
def examples(tmp_path):
    path = tmp_path / "examples.txt"
    path.write_text(LINES)
    return path


def run_kernel(path, *options):
    out = path.parent / "gram.npy"
    run("kernel", path, "--out", out, *options)
    return np.load(out)


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        ([], tw.SubsetTreeKernel()),
        (["--kernel", "st"], tw.SubtreeKernel()),
        (
            ["--kernel", "sst", "--decay", "0.7", "--normalize"],
            tw.SubsetTreeKernel(decay=0.7, normalize=True),
        ),
        (["--words", "bag"], tw.SubsetTreeKernel(words="bag")),
        (["--kernel", "pt", "--depth-decay", "0.3"], tw.PartialTreeKernel(depth_decay=0.3)),
        (["--kernel", "pt", "--max-children", "2"], tw.PartialTreeKernel(max_children=2)),
        (["--kernel", "pt", "--words", "none", "--jobs", "2"], tw.PartialTreeKernel(words="none")),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_the_matrix_is_that_of_the_kernel(data, options, kernel):
    np.testing.assert_allclose(run_kernel(data, *options), kernel(TREES), rtol=1e-12)


@pytest.mark.parametrize("centre", ["relation", "tag", "word"])
def test_dependency_trees_are_converted(tmp_path, centre):
    path = tmp_path / "trees"
    tw.write_conllu(BANK.dependencies, path)
    expected = tw.SubsetTreeKernel(centre=centre)(list(BANK.dependencies))
    np.testing.assert_allclose(run_kernel(path, "--centre", centre), expected, rtol=1e-12)


def test_trees_are_compared_with_those_of_another_file(data, tmp_path):
    other = tmp_path / "other.mrg"
    tw.write_brackets(TREES[:5], other)
    found = run_kernel(data, "--other", other)
    np.testing.assert_allclose(found, tw.SubsetTreeKernel()(TREES, TREES[:5]), rtol=1e-12)


def test_trees_of_an_example_are_added_place_by_place(examples):
    kernel = tw.SubsetTreeKernel(decay=0.5)
    first = kernel([example.trees[0] for example in read_tree_examples(examples)])
    own = kernel(["(X (A a))"])[0, 0]
    second = np.array([[own, 0, own], [0, 0, 0], [own, 0, own]])
    np.testing.assert_allclose(run_kernel(examples, "--decay", "0.5"), first + second, rtol=1e-12)


def test_vectors_are_added_with_their_weight(examples):
    difference = run_kernel(examples, "--vector-weight", "0.5") - run_kernel(examples)
    np.testing.assert_allclose(difference, 0.5 * np.array([[5, 6, 0], [6, 9, 0], [0, 0, 0]]), atol=1e-12)


def test_examples_of_two_files_may_differ_in_their_parts(examples, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("1 |BT| (S (N Mary) (V sleeps)) |ET| 2:1 9:1 |EV|\n")
    found = run_kernel(examples, "--other", other, "--vector-weight", "2")
    kernel = tw.SubsetTreeKernel()
    trees = [example.trees[0] for example in read_tree_examples(examples)]
    expected = kernel(trees, ["(S (N Mary) (V sleeps))"])[:, 0] + 2 * np.array([2, 3, 0])
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12)


def test_labels_are_written_as_they_were_read(examples, tmp_path):
    run_kernel(examples, "--labels", tmp_path / "labels.txt")
    assert (tmp_path / "labels.txt").read_text().split() == ["1", "-1", "NEUTER"]


def test_similar_words_count_in_part(tmp_path):
    path, vectors = tmp_path / "trees.mrg", tmp_path / "vectors.txt"
    path.write_text("(NP (D a) (N cat))\n(NP (D a) (N dog))\n")
    vectors.write_text("3 2\ncat 1 0\ndog 0.6 0.8\nunused 1 1\n")
    similarity = {"cat": np.array([1, 0]), "dog": np.array([0.6, 0.8])}
    expected = tw.SmoothedPartialTreeKernel(similarity)(["(NP (D a) (N cat))", "(NP (D a) (N dog))"])
    found = run_kernel(path, "--kernel", "spt", "--vectors", vectors)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found[0, 1] > tw.PartialTreeKernel()(["(NP (D a) (N cat))"], ["(NP (D a) (N dog))"])[0, 0]


def test_function_tags_and_traces_are_kept_if_wanted(tmp_path):
    path = tmp_path / "trees.mrg"
    path.write_text("(S (NP-SBJ (N a)) (VP (V b) (NP (-NONE- *))))\n" * 2)
    kernel = tw.SubsetTreeKernel()
    whole, cut = (tw.read_brackets(path, functions=keep, traces=keep) for keep in (True, False))
    np.testing.assert_allclose(run_kernel(path), kernel(cut))
    np.testing.assert_allclose(run_kernel(path, "--functions", "--traces"), kernel(whole))


def test_one_line_says_what_was_done(data, tmp_path):
    result = run("kernel", data, "--out", tmp_path / "gram.npy", "--memory-limit", "1.5 MiB", "--float32")
    n_nodes = sum(tree.n_nodes for tree in TREES)
    assert result.stdout.count("\n") == 1
    assert result.stdout.startswith(f"12 trees, {n_nodes:,} nodes: 78 evaluations in ")
    assert result.stdout.endswith(" microseconds each\n")
    assert "rows 12 of 12" in result.stderr
    assert np.load(tmp_path / "gram.npy").dtype == np.float32


@pytest.mark.parametrize("text", ["(S (N a))\n", LINES], ids=["brackets", "SVM-light-TK"])
def test_trees_come_from_standard_input_too(tmp_path, monkeypatch, text):
    path, out = tmp_path / "trees", tmp_path / "gram.npy"
    path.write_text(text)
    expected = run_kernel(path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    app(["kernel", "-", "--out", str(out)], standalone_mode=False)
    np.testing.assert_array_equal(np.load(out), expected)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", [], f"trees has no trees; expected at least one tree, as {FORMATS}"),
        (
            "# a comment\n\n",
            [],
            "trees has no trees; expected at least one tree, as brackets, CoNLL-U, or lines of",
        ),
        ("Mary sleeps.\nJohn eats.\n", [], f"trees:1: 'Mary sleeps.'; expected {FORMATS}"),
        (
            "# props\n-\t(A0*)\nsleep\t(V*)\n",
            [],
            r"trees:2: '-\t(A0*)'; expected brackets, CoNLL-U, or lines",
        ),
        ("1 3:1 17:1\n-1 2:1\n", [], f"trees:1: '1 3:1 17:1'; expected {FORMATS}"),
        ("1 3:1 |BV| 17:1 |EV|\n", [], "trees has no trees; expected at least one tree, as brackets"),
        ("(S (N a))\n", ["--logs", "--normalize"], "--logs and --normalize are both given; expected one"),
        (
            "1 |BT| (N a) |BT| (N b) |ET|\n",
            ["--logs"],
            "examples have several trees, or feature vectors; expected one tree per example for --logs",
        ),
        ("(S (N a)\n", [], "trees:1: "),
        ("(S (N a))\n", ["--kernel", "x"], "--kernel is 'x'; expected one of st, sst, pt, spt"),
        ("(S (N a))\n", ["--decay", "2"], "--decay is '2'; expected a number from 1e-06 to 1"),
        ("(S (N a))\n", ["--words", "x"], "--words is 'x'; expected one of nodes, none, bag"),
        (
            "(S (N a))\n",
            ["--memory-limit", "10"],
            "--memory-limit is 10 bytes; a matrix of 1 by 1 values, one row at a time, needs at least 8,240",
        ),
        ("(S (N a))\n", ["--memory-limit", "much"], "--memory-limit is 'much'; expected a size such as 512M"),
        ("(S (N a))\n", ["--kernel", "spt"], "--vectors and --kernel spt need each other"),
        ("(S (N a))\n", ["--labels", "l.txt"], "has no labels; expected SVM-light-TK"),
        (
            "(S (N a))\n",
            ["--vector-weight", "1"],
            "the examples have no vectors to weight; expected vectors",
        ),
        ("1 |BT| (S (N a)\n", [], "trees:1: trees without |ET|; expected |ET| after the last tree"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(tmp_path, monkeypatch, fail, text, options, message):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "trees"
    path.write_text(text)
    assert message in fail("kernel", path, "--out", tmp_path / "gram.npy", *options)
    assert [left.name for left in tmp_path.iterdir()] == ["trees"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat 1 2\ndog 1\n", "vectors:2: 1 number after a word; expected 2 numbers after a word"),
        ("cat 1\ndog 1 2\n", "vectors:2: 2 numbers after a word; expected 1 number after a word"),
        ("cat\n", "vectors:1: 0 numbers after a word; expected numbers after a word"),
        ("cat 1 x\n", "vectors:1: an invalid vector for 'cat'; expected only numbers"),
        ("cat 0 0\n", "vectors:1: an invalid vector for 'cat'; expected finite numbers, not all 0"),
        ("fox 1 0\n", "vectors has no vector for any word of the trees; expected at least one"),
    ],
)
def test_bad_vectors_are_one_line(tmp_path, fail, text, message):
    path, vectors = tmp_path / "trees", tmp_path / "vectors"
    path.write_text("(N cat)\n")
    vectors.write_text(text)
    arguments = ["--kernel", "spt", "--vectors", vectors, "--out", tmp_path / "gram.npy"]
    assert message in fail("kernel", path, *arguments)
    assert not (tmp_path / "gram.npy").exists()


def test_a_folder_that_is_not_there_is_told_and_nothing_is_written(data, tmp_path, fail):
    labels = tmp_path / "none" / "labels"
    message = fail("kernel", data, "--out", tmp_path / "none" / "gram.npy")
    assert f"gram.npy: the folder {tmp_path / 'none'} does not exist" in message
    data.write_text(LINES)
    message = fail("kernel", data, "--out", tmp_path / "g.npy", "--labels", labels)
    assert f"labels: the folder {tmp_path / 'none'} does not exist" in message
    assert not (tmp_path / "g.npy").exists()


def test_two_results_cannot_go_to_one_file(data, tmp_path, fail):
    out = tmp_path / "f"
    assert fail("kernel", data, "--out", out, "--labels", out).endswith(f"are both {out}; expected two files")


@pytest.mark.parametrize("option", ["DATA", "--other", "--vectors"])
@pytest.mark.parametrize("written", ["--out", "--labels"])
def test_no_file_that_is_read_is_written_over(tmp_path, fail, option, written):
    paths = {name: tmp_path / name.strip("-") for name in ("DATA", "--other", "--vectors")}
    paths["DATA"].write_text(LINES)
    paths["--other"].write_text(LINES)
    paths["--vectors"].write_text("Mary 1 0\n")
    before = {path: path.read_bytes() for path in paths.values()}
    link = tmp_path / "link"
    link.symlink_to(paths[option].name)
    arguments = ["--other", paths["--other"], "--vectors", paths["--vectors"], "--kernel", "spt"]
    arguments += [written, link] if written == "--out" else ["--out", tmp_path / "g.npy", written, link]
    expected = f"treewright: {written} is {link}, which is also {option}; expected another file"
    assert fail("kernel", paths["DATA"], *arguments) == expected
    assert {path: path.read_bytes() for path in paths.values()} == before
    assert not (tmp_path / "g.npy").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_refused_and_stays(data, tmp_path, fail):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "pipe is not a regular file; expected a regular file" in fail("kernel", data, "--out", pipe)
    assert pipe.is_fifo()


def test_what_is_too_large_is_refused_with_the_options_that_help(tmp_path, fail):
    path, out = tmp_path / "trees", tmp_path / "gram.npy"
    path.write_text("(S " + "(N a) " * 2000 + ")\n")
    message = fail("kernel", path, "--out", out, "--decay", "1")
    assert "overflows" in message
    assert "--normalize" in message
    assert "--logs" in message
    assert "normalize=True" not in message
    assert not out.exists()
    found = run_kernel(path, "--decay", "1", "--logs")
    np.testing.assert_allclose(found, tw.SubsetTreeKernel(decay=1).logs(tw.read_brackets(path)))
    assert np.isfinite(found).all()


def test_what_32_bits_cannot_hold_names_the_options_that_help(tmp_path, fail):
    path = tmp_path / "trees"
    path.write_text("(S " + "(N a) " * 200 + ")\n")
    message = fail("kernel", path, "--out", tmp_path / "gram.npy", "--decay", "1", "--float32")
    assert message.endswith("expected a number that fits in 32 bits; use --normalize or 64 bits")


def test_one_tree_is_counted_as_one(tmp_path):
    path = tmp_path / "trees"
    path.write_text("(N a)\n")
    result = run("kernel", path, "--out", tmp_path / "gram.npy")
    assert result.stdout.startswith("1 tree, 2 nodes: 1 evaluation in ")


def test_a_first_example_may_have_no_tree(tmp_path):
    path = tmp_path / "examples"
    path.write_text("1 3:1\n1 |BT| (N a) |ET| 3:1\n")
    assert (run_kernel(path) > 0).tolist() == [[False, False], [False, True]]
