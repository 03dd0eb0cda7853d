import numpy as np
import pytest

from treewright.data.svmlight import read_svmlight
from treewright.errors import FormatError


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
            "2: '2:0.5'; expected the value 0 or 1 (turn other values into features of their own)",
        ),
        ("a 1:x\n", "1: '1:x' with a value that is no number; expected 0 or 1 (turn other values into"),
        ("a 1:1 2:1 1:1\n", "1: '1' twice; expected each feature once"),
        ("# only a comment\n", "1: no samples; expected lines such as '+1 3:1 17:1'"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_line(read, text, message):
    with pytest.raises(FormatError) as error:
        read(text)
    assert f"data.svmlight:{message}" in str(error.value)
