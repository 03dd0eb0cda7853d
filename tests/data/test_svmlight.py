import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import const_trees, random_bytes

from treewright.data.consttree import ConstTree
from treewright.data.svmlight import (
    SparseVector,
    TreeExample,
    iter_tree_examples,
    read_svmlight,
    read_tree_examples,
    stack_vectors,
    write_tree_examples,
)
from treewright.errors import FormatError, InputError


@pytest.fixture
def read(tmp_path):
    def write_and_read(text):
        path = tmp_path / "data.svmlight"
        path.write_text(text, encoding="utf-8")
        return read_svmlight(path)

    return write_and_read


def test_numbers_are_columns_in_their_order(read):
    samples = read("+1 3:1 17:1\n-1 3:1 5:0 # a comment\n\n# nothing\n+1 100:1.0\n")
    assert samples.names == ["3", "17", "100"]
    assert samples.y.tolist() == ["+1", "-1", "+1"]
    np.testing.assert_array_equal(samples.X.toarray(), [[1, 1, 0], [1, 0, 0], [0, 0, 1]])


def test_names_are_columns_too_with_or_without_a_value(read):
    samples = read("noun word=bank:1 prev=the qid:7\nverb prev=a:b:1\n")
    assert samples.names == ["prev=a:b", "prev=the", "word=bank"]
    np.testing.assert_array_equal(samples.X.toarray(), [[0, 1, 1], [1, 0, 0]])


def test_a_sample_may_have_no_features(read):
    assert read("a 1:1\nb\n").X.toarray().tolist() == [[1], [0]]


def test_a_comment_begins_with_a_word(read):
    assert read("a w=#1 w=key # w=none\nb w=#2\n").names == ["w=#1", "w=#2", "w=key"]


def test_columns_can_be_those_of_other_samples(tmp_path):
    path = tmp_path / "new.svmlight"
    path.write_text("a 5:1 3:1 9:1\nb 17:1\n")
    samples = read_svmlight(path, names=["3", "17", "5"])
    np.testing.assert_array_equal(samples.X.toarray(), [[1, 0, 1], [0, 1, 0]])
    assert samples.names == ["3", "17", "5"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a :1\n", "1: ':1'; expected a feature before the colon"),
        ("a\nb\n", "1: no features; expected lines such as '+1 3:1 17:1'"),
        (
            "a 1:1\nb 2:0.5\n",
            "2: '2:0.5'; expected the value 0 or 1 (binarize other values first)",
        ),
        ("a 1:x\n", "1: '1:x' with a value that is not a number; expected 0 or 1 (binarize"),
        ("a 1:1 2:1 1:1\n", "1: '1' twice; expected each feature once"),
        ("# only a comment\n", "1: no samples; expected lines such as '+1 3:1 17:1'"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_line(read, text, message):
    with pytest.raises(FormatError) as error:
        read(text)
    assert f"data.svmlight:{message}" in str(error.value)


# trees and vectors


def read_trees(content):
    data = content if isinstance(content, bytes) else content.encode()
    return read_tree_examples(io.BytesIO(data))


def read_tree(text):
    (example,) = read_trees(text)
    return example


def as_plain(example):
    trees = [tree and str(tree) for tree in example.trees]
    vectors = [dict(zip(one.indices.tolist(), one.values.tolist(), strict=True)) for one in example.vectors]
    return example.label, trees, vectors


def test_an_example_has_a_label_trees_and_vectors():
    # the line by which SVM-light-TK shows its format, in kernel.h
    line = (
        "+1 |BT|(NN Paul) |BT| (JJ good) |BT| (VB give) |ET| 1:1 2:.5 3:.1 |BV| 1:0 2:1 3:0 |BV| "
        "1:.125 2:.670 |BV| 1:1 2:0 |BV| 1132:.2 1300:.01 12234:.23 |BV| 4050:.3 5030:.1 11114:.7 |EV|\n"
    )
    label, trees, vectors = as_plain(read_tree(line))
    assert (label, trees) == (1, ["(NN Paul)", "(JJ good)", "(VB give)"])
    assert len(vectors) == 6
    assert vectors[0] == {1: 1.0, 2: 0.5, 3: 0.1}
    assert vectors[5] == {4050: 0.3, 5030: 0.1, 11114: 0.7}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-1 |BT| (S (N a)) |ET|", (-1, ["(S (N a))"], [])),
        ("-1|BT|(S(N a)(V b))|ET|1:2", (-1, ["(S (N a) (V b))"], [{1: 2.0}])),
        ("0 |BT| |ET|", (0, [None], [])),
        ("0 |BT| |BT| (N a) |ET|", (0, [None, "(N a)"], [])),
        ("2.5 |BT| (N a) |ET| 3:1", (2.5, ["(N a)"], [{3: 1.0}])),
        ("HUM qid:7 |BT| (N a) |ET| |BV| 3:1 |EV|", ("HUM", ["(N a)"], [{}, {3: 1.0}])),
        ("1 3:1 4:-2e1 # 5:1 |BV|", (1, [], [{3: 1.0, 4: -20.0}])),
        ("1 qid:3 4:1", (1, [], [{4: 1.0}])),
        ("1 4:1 # |BT| (N a) |ET|", (1, [], [{4: 1.0}])),
        ("1e999 4:1", ("1e999", [], [{4: 1.0}])),
        ("1 |BT| (# #) |ET| # what |BT| is", (1, ["(# #)"], [])),
        ("1 |BT| (NP-SBJ (-NONE- *)) |ET|", (1, ["(NP-SBJ (-NONE- *))"], [])),
        ("1 |BT| (S (a) (b (c))) |ET|", (1, ["(S a (b c))"], [])),
        ("1 |BT| (a) |ET| |EV|", (1, ["a"], [{}])),
        ("nan", ("nan", [], [])),
        ("1 # 2:1", (1, [], [])),
    ],
)
def test_lines_are_read_as_they_are_meant(line, expected):
    assert as_plain(read_tree(line)) == expected


def test_blank_lines_and_comments_are_passed_over():
    examples = read_trees("# |BT| x\n\n  \n1 |BT| (N a) |ET|\r\n   # y\n2 |BT| (N b) |ET|")
    assert [example.label for example in examples] == [1, 2]


def test_compressed_files_are_read(tmp_path):
    path = tmp_path / "data.dat.gz"
    write_tree_examples([TreeExample("a", (ConstTree.parse("(N a)"),))], path)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert [example.label for example in read_tree_examples(path)] == ["a"]


@pytest.mark.slow
def test_examples_are_streamed(streaming_peak):
    lines = (b"1 |BT| (S (N a) (V b)) |ET| 1:1 2:1 #" + b"x" * 300 + b"\n") * 10_000
    assert streaming_peak(iter_tree_examples(io.BytesIO(lines))) < len(lines) / 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 |BT| (S (N a)", "trees without |ET|; expected |ET| after the last tree"),
        ("1 |BT| (S (N a) |ET|", "end of input inside the tree; expected 1 more ')'"),
        ("1 |BT| (S (N a))) |ET|", "an unmatched ')'; expected '(' or the end"),
        ("1 |BT| (N a) (N b) |ET|", "2 trees; expected one"),
        ("1 |BT| a |ET|", "'a' outside brackets; expected '('"),
        ("1 |BT| () |ET|", "an empty bracket '()'; expected a label"),
        ("|BT| (N a) |ET|", "|BT| at the beginning; expected a label first"),
        ("1 x |BT| (N a) |ET|", "'x' after the label; expected |BT|"),
        ("|ET|", "the label is '|ET|'; expected a number or a name"),
        ("1 |ET| 1:1", "'|ET|'; expected an index, a colon and a value, such as 7:0.5"),
        ("1 |BT| (N a) |ET| x", "'x'; expected an index, a colon and a value, such as 7:0.5"),
        ("1 1:nan", "'1:nan'; expected an index, a colon and a value, such as 7:0.5"),
        ("1 1:1e999", "'1:1e999'; expected an index, a colon and a value, such as 7:0.5"),
        ("1 0:1", "'0:1'; expected indices from 1 to 2147483646 in increasing order"),
        ("1 3:1 2:1", "'2:1' after 3; expected indices from 1 to 2147483646 in increasing order"),
        ("1 1:1 |EV| 2:1", "'2:1' after |EV|; expected the end of the line"),
    ],
)
def test_lines_that_cannot_be_read_are_told(line, message):
    with pytest.raises(FormatError) as error:
        read_trees(f"# first\n{line}\n")
    assert str(error.value) == f"<stream>:2: {message}"


def vectors():
    values = st.floats(allow_nan=False, allow_infinity=False)
    columns = st.dictionaries(st.integers(1, 10**6), values, max_size=4)
    return columns.map(lambda one: SparseVector(np.array(sorted(one), dtype=np.int64), _in_order(one)))


def _in_order(values):
    return np.array([values[index] for index in sorted(values)], dtype=float)


def examples():
    names = st.sampled_from(["HUM:ind", "a", "nan", "x#", "1_0"])
    labels = st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False) | names
    trees = st.none() | const_trees() | st.sampled_from("aB").map(ConstTree)
    return st.builds(
        TreeExample,
        labels,
        st.lists(trees, max_size=3).map(tuple),
        st.lists(vectors(), max_size=3).map(tuple),
    )


@given(written=st.lists(examples(), max_size=4))
def test_writing_and_reading_change_nothing(written):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.dat"
        write_tree_examples(written, path)
        found = read_tree_examples(path)
    assert list(map(as_plain, found)) == list(map(as_plain, written))
    assert [type(one.label) for one in found] == [type(one.label) for one in written]


MARKED = [
    b"|BT|",
    b"|ET|",
    b"|BV|",
    b"|EV|",
    b" ",
    b"1:1",
    b"2:.5",
    b"(N a)",
    b"#",
    b"+1",
    b"\n",
    b"qid:1",
    b":",
]


@given(data=random_bytes() | st.lists(st.sampled_from(MARKED), max_size=20).map(b"".join))
def test_any_bytes_are_read_or_refused_with_their_place(data):
    message = "<stream>:"
    try:
        read_trees(data)
    except FormatError as error:
        message = str(error)
    assert message.startswith("<stream>:")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (TreeExample("a b"), "example 0: the label is 'a b'; expected a number or one word"),
        (TreeExample("#"), "example 0: the label is '#'; expected a number or one word"),
        (TreeExample(1, (ConstTree("N", ["|BT|"]),)), r"example 0: a node label contains \|BT\|"),
        (
            TreeExample(1, (), (SparseVector([2, 1], [1, 1]),)),
            "expected positive indices in increasing order",
        ),
        (TreeExample(1, (), (SparseVector([1], [np.nan]),)), "expected finite numbers"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(tmp_path, example, message):
    with pytest.raises(InputError, match=message):
        write_tree_examples([example], tmp_path / "data.dat")
    assert not list(tmp_path.iterdir())


def test_vectors_are_rows_of_a_matrix():
    vectors = read_tree("1 2:0.5 4:1 |BV| |BV| 1:3").vectors
    expected = [[0, 0.5, 0, 1], [0, 0, 0, 0], [3, 0, 0, 0]]
    assert stack_vectors(vectors).toarray().tolist() == expected
    assert stack_vectors(vectors, n_columns=5).shape == (3, 5)
    assert stack_vectors(vectors, n_columns=2).toarray().tolist() == [row[:2] for row in expected]
    assert stack_vectors([]).shape == (0, 0)
