"""PropBank columns: what the cells mean, what they may not be, and that nothing is lost."""

import gzip
import io
import os
import sys
import tempfile
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import mutations, prop_sentences, random_bytes

import treewright as tw
from treewright import Proposition, PropSentence, Span
from treewright.errors import FormatError, InputError

SONG = """\
# sent_id = 1
1\tshe\tPRP\t-\t-\t(ARG0*)\t(ARG0*)
2\twants\tVBZ\twant\twant.01\t(V*)\t*
3\tto\tTO\t-\t-\t(ARG1*\t*
4\tsing\tVB\tsing\tsing.02\t*\t(V*)
5\tsongs\tNNS\t-\t-\t*)\t(ARG1(C-V*)
6\ttoday\tNN\t-\t-\t*\t*)

1\tyes\tUH\t-\t-

"""


def sentence(*cells):
    """Make the text of a sentence whose first word is a predicate with the column `cells`."""
    rows = [f"{number}\tw\tT\t-\t-\t{cell}" for number, cell in enumerate(cells, start=1)]
    return "\n".join(rows).replace("-\t-", "be\tbe.01", 1) + "\n\n"


def proposition(*arguments, predicate=0, lemma="be", sense="be.01"):
    return Proposition(predicate, lemma, sense, tuple(Span(*one) for one in arguments))


def read(content):
    return tw.read_props(io.BytesIO(content if isinstance(content, bytes) else content.encode()))


def error_of(content):
    with pytest.raises(FormatError) as caught:
        read(content)
    return str(caught.value)


def rewrite(sentences, path):
    tw.write_props(sentences, path)
    return path.read_bytes()


# what is read


def test_props_have_words_tags_and_comments():
    first, second = read(SONG)
    assert first.words == ["she", "wants", "to", "sing", "songs", "today"]
    assert first.tags == ["PRP", "VBZ", "TO", "VB", "NNS", "NN"]
    assert first.comments == ["# sent_id = 1"]
    assert second == PropSentence(["yes"], ["UH"], [], [])


def test_props_have_a_proposition_for_each_predicate():
    want, sing = read(SONG)[0].propositions
    assert want == Proposition(
        1, "want", "want.01", (Span("ARG0", 0, 1), Span("V", 1, 2), Span("ARG1", 2, 5))
    )
    assert (sing.predicate, sing.lemma, sing.sense) == (3, "sing", "sing.02")


def test_props_arguments_nest():
    assert read(SONG)[0].propositions[1].arguments[2:] == (Span("ARG1", 4, 6), Span("C-V", 4, 5))


@pytest.mark.parametrize(
    ("cells", "arguments"),
    [
        (["*", "*"], []),
        (["(A*)", "*"], [("A", 0, 1)]),
        (["(A*", "*)"], [("A", 0, 2)]),
        (["(A(B*))", "*"], [("A", 0, 1), ("B", 0, 1)]),
        (["(A(B*", "*))"], [("A", 0, 2), ("B", 0, 2)]),
        (["(A(B*)", "(C*))"], [("A", 0, 2), ("B", 0, 1), ("C", 1, 2)]),
        (["(A*)", "(A*)"], [("A", 0, 1), ("A", 1, 2)]),
        (["(#*)", "(R-A0-x|y*)"], [("#", 0, 1), ("R-A0-x|y", 1, 2)]),
    ],
)
def test_props_cells_mean_these_arguments(tmp_path, cells, arguments):
    sentences = read(sentence(*cells))
    assert sentences[0].propositions == [proposition(*arguments)]
    assert rewrite(sentences, tmp_path / "x.props") == sentence(*cells).encode()


def test_props_round_trip_gives_back_the_same_bytes(tmp_path):
    assert rewrite(read(SONG), tmp_path / "x.props") == SONG.encode()


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", "\r\n"])
def test_props_without_text_are_no_sentences(content):
    assert read(content) == []


def test_props_accept_a_byte_order_mark_crlf_and_a_missing_final_line():
    assert read("\ufeff" + SONG.rstrip("\n").replace("\n", "\r\n")) == read(SONG)


@pytest.mark.parametrize("word", ["#", "-", "*", "(", "\u2028", "a\u00a0b", "a b", ""])
def test_props_keep_any_word(tmp_path, word):
    content = f"1\t{word}\tT\t-\t-\n\n"
    assert read(content)[0].words == [word]
    assert rewrite(read(content), tmp_path / "x.props") == content.encode()


@pytest.mark.slow
def test_props_read_a_sentence_of_100000_words_and_as_many_brackets():
    n = 100_000
    arguments = read(sentence(*["(A*"] * n, "*" + ")" * n))[0].propositions[0].arguments
    assert arguments == tuple(Span("A", start, n + 1) for start in range(n))


# what is refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\tw\tT\t-\n", "1: 4 columns; expected 5, and one for each of 0 predicates"),
        ("1\tw\tT\t-\t-\t*\n", "1: 6 columns; expected 5, and one for each of 0 predicates"),
        ("1\tw\tT\tbe\tbe.01\n", "1: 5 columns; expected 5, and one for each of 1 predicates"),
        ("1 w T - -\n", "1: 1 column; expected 5, and one for each of 0 predicates"),
        ("# c\n1\tw\tT\t-\t-\n2\tw\n", "3: 2 columns; expected 5, and one for each of 0 predicates"),
        ("1\tw\tT\t-\t-\n \n", "2: a line of whitespace; expected an empty line or a token line"),
        ("1\tw\tT\t-\t-\n# c\n", "2: comment '# c' inside a sentence; expected a token line"),
        ("2\tw\tT\t-\t-\n", "1: ID is '2'; expected 1"),
        ("1\tw\tT\t-\t-\n1\tw\tT\t-\t-\n", "2: ID is '1'; expected 2"),
        ("01\tw\tT\t-\t-\n", "1: ID is '01'; expected 1"),
        ("\u0661\tw\tT\t-\t-\n", "1: ID is '\u0661'; expected 1"),
        ("1\tw\tT\tbe\t-\t*\n", "1: predicate 'be' with sense '-'; expected both or neither"),
        ("1\tw\tT\t-\tbe.01\n", "1: predicate '-' with sense 'be.01'; expected both or neither"),
        ("# a\n# b\n", "2: comments without a sentence; expected a token line after the comments"),
    ],
)
def test_props_reject_bad_lines_and_name_them(content, message):
    assert error_of(content) == f"<stream>:{message}"


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "-",
        "_",
        "(A0*(A1*)",
        "((*",
        "(*)",
        "( *)",
        "(A",
        "A*",
        "(A)*",
        "*A",
        "**",
        "(A*)B",
        "(A *)",
        " *",
        "* ",
    ],
)
def test_props_reject_a_cell_that_is_no_star_in_brackets(cell):
    message = f"<stream>:2: {cell!r} in column 6; expected '*', optionally with brackets, as in '(ARG0*)'"
    assert error_of(sentence("*", cell)) == message


@pytest.mark.parametrize("cells", [["*", "*)"], ["*", "(A*))"], ["(A*)", "*)"], ["(A*", "*))"]])
def test_props_reject_a_bracket_closed_but_not_open(cells):
    assert (
        error_of(sentence(*cells)) == "<stream>:2: an unmatched ')' in column 6; expected as many ')' as '('"
    )


@pytest.mark.parametrize("cells", [["(A*", "*"], ["*", "(A*"], ["(A(B*", "*)"]])
def test_props_reject_a_bracket_never_closed(cells):
    assert (
        error_of(sentence(*cells)) == "<stream>:2: A is never closed in column 6; expected as many ')' as '('"
    )


def test_props_error_names_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev.props").write_text(SONG + sentence("*", "*)"))
    with pytest.raises(FormatError) as caught:
        tw.read_props("dev.props")
    assert str(caught.value) == "dev.props:12: an unmatched ')' in column 6; expected as many ')' as '('"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"\xff", "<stream>:1: byte 0xff at byte 3; expected UTF-8"),
        (b"\0", "<stream>:1: a NUL byte, as in binary files and UTF-16; expected UTF-8"),
        (b"\r", r"<stream>:1: a carriage return within a line; expected lines that end in \n or \r\n"),
    ],
)
def test_props_reject_damaged_text(damage, message):
    assert error_of(b"1\t" + damage + b"\tT\t-\t-\n") == message


# streams


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_props_come_from_standard_input(monkeypatch, pack):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(pack(SONG.encode()))))
    assert tw.read_props("-") == read(SONG)


def test_props_truncated_gzip_is_an_error(tmp_path):
    (tmp_path / "x").write_bytes(gzip.compress(SONG.encode())[:-8])
    with pytest.raises(FormatError, match="corrupt or truncated gzip data"):
        tw.read_props(tmp_path / "x")


def test_props_yield_the_sentences_before_an_error():
    stream = tw.iter_props(io.BytesIO((SONG + "x\n").encode()))
    assert [next(stream), next(stream)] == read(SONG)
    with pytest.raises(FormatError, match=":11: "):
        next(stream)


@pytest.mark.slow
def test_props_memory_does_not_grow_with_the_file(tmp_path, streaming_peak):
    peaks = []
    for n_sentences in (2_000, 20_000):
        path = tmp_path / f"{n_sentences}.props"
        path.write_text(f"# {'c' * 200}\n{sentence('(V*)')}" * n_sentences)
        peaks.append(streaming_peak(tw.iter_props(path)))
    assert max(peaks) < 2_000_000
    assert peaks[1] < 1.2 * peaks[0]


# writing


def test_props_are_written_in_the_order_of_their_predicates(tmp_path):
    later, earlier = proposition(("V", 1, 2), predicate=1), proposition(("V", 0, 1), predicate=0)
    rewrite([PropSentence(["a", "b"], ["A", "B"], [later, earlier], [])], tmp_path / "x.props")
    assert tw.read_props(tmp_path / "x.props")[0].propositions == [earlier, later]


def test_props_arguments_are_written_outer_first(tmp_path):
    inner_first = proposition(("C", 1, 2), ("B", 0, 1), ("A", 0, 2))
    content = rewrite([PropSentence(["a", "b"], ["T", "T"], [inner_first], [])], tmp_path / "x.props")
    assert [row.split(b"\t")[5] for row in content.splitlines()[:2]] == [b"(A(B*)", b"(C*))"]


@pytest.mark.parametrize(
    ("propositions", "message"),
    [
        (
            [proposition(("A", 0, 3))],
            "argument A covers words 0 to 3 of a sentence of 2 words; expected a non-empty span inside it",
        ),
        (
            [proposition(("A", 1, 1))],
            "argument A covers words 1 to 1 of a sentence of 2 words; expected a non-empty span inside it",
        ),
        (
            [proposition(("A", -1, 1))],
            "argument A covers words -1 to 1 of a sentence of 2 words; expected a non-empty span inside it",
        ),
        (
            [proposition(("A B", 0, 1))],
            "an argument has label 'A B'; expected a label without whitespace, brackets and '*'",
        ),
        (
            [proposition(("A(B", 0, 1))],
            "an argument has label 'A(B'; expected a label without whitespace, brackets and '*'",
        ),
        (
            [proposition(("", 0, 1))],
            "an argument has label ''; expected a label without whitespace, brackets and '*'",
        ),
        (
            [proposition(predicate=2)],
            "a predicate has position 2 in a sentence of 2 words; expected a position in the sentence",
        ),
        (
            [proposition(predicate=-1)],
            "a predicate has position -1 in a sentence of 2 words; expected a position in the sentence",
        ),
        ([proposition(), proposition()], "word 0 has two propositions; expected one"),
        (
            [proposition(lemma="-")],
            "a predicate has lemma '-' and sense 'be.01'; expected names other than '-'",
        ),
        ([proposition(sense="-")], "a predicate has lemma 'be' and sense '-'; expected names other than '-'"),
        ([proposition(lemma="a\tb")], r"'1\ta\tT\ta\tb\tbe.01\t*' has 7 columns; expected 6"),
        (
            [proposition(lemma="a\n")],
            r"'1\ta\tT\ta\n\tbe.01\t*' contains a line break or NUL; expected neither",
        ),
    ],
)
def test_props_that_could_not_be_read_back_are_not_written(tmp_path, propositions, message):
    with pytest.raises(InputError) as caught:
        tw.write_props([PropSentence(["a", "b"], ["T", "T"], propositions, [])], tmp_path / "x.props")
    assert str(caught.value) == message
    assert os.listdir(tmp_path) == []


def test_props_arguments_that_cross_are_not_written(tmp_path):
    crossing = proposition(("A", 0, 2), ("B", 1, 3))
    with pytest.raises(InputError, match=r"^arguments A and B cross; expected nested or separate ones$"):
        tw.write_props([PropSentence(list("abc"), list("TTT"), [crossing], [])], tmp_path / "x.props")


def test_props_with_too_few_tags_are_not_written(tmp_path):
    with pytest.raises(InputError, match=r"^the sentence has 1 tags; expected 2, one per word$"):
        tw.write_props([PropSentence(["a", "b"], ["T"], [], [])], tmp_path / "x.props")


def test_props_without_words_are_not_written(tmp_path):
    with pytest.raises(InputError, match=r"^a sentence has no words; expected at least one$"):
        tw.write_props([PropSentence([], [], [], ["# c"])], tmp_path / "x.props")


def test_props_failing_in_the_middle_leave_the_old_file(tmp_path):
    path = tmp_path / "x.props"
    path.write_text("old")
    with pytest.raises(FormatError):
        tw.write_props(tw.iter_props(io.BytesIO((SONG + "x").encode())), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.props"]


def test_props_are_written_compressed_for_a_name_in_gz(tmp_path):
    assert gzip.decompress(rewrite(read(SONG), tmp_path / "x.props.gz")) == SONG.encode()


def test_props_are_written_to_standard_output(capsysbinary):
    tw.write_props(read(SONG), "-")
    assert capsysbinary.readouterr().out == SONG.encode()


# properties


def as_bytes(sentences):
    with tempfile.TemporaryDirectory() as folder:
        return rewrite(sentences, Path(folder, "x.props"))


def check_no_half_measures(content):
    """Check that the reader either refuses `content` or understands it as a whole."""
    try:
        sentences = read(content)
    except FormatError:
        return
    assert read(as_bytes(sentences)) == sentences


@given(st.lists(prop_sentences(), max_size=3))
def test_props_survive_writing_and_reading(sentences):
    assert read(as_bytes(sentences)) == sentences


@given(random_bytes())
def test_random_bytes_are_refused_or_read_whole(content):
    check_no_half_measures(content)


@given(st.lists(st.text("(A*)", max_size=6), min_size=1, max_size=4))
def test_random_cells_are_refused_or_read_whole(cells):
    check_no_half_measures(sentence(*cells).encode())


@given(mutations(st.lists(prop_sentences(4), min_size=1, max_size=3).map(as_bytes) | st.just(SONG.encode())))
def test_damaged_props_are_refused_or_read_whole(content):
    check_no_half_measures(content)
