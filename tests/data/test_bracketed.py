"""Penn brackets: every layout of text that holds trees, every one that does not."""

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
from strategies import const_trees, mutations, random_bytes

import treewright as tw
from treewright import ConstTree
from treewright.errors import FormatError, InputError

PENN = """\
( (S
    (NP-SBJ-1 (DT The) (NN dog) )
    (VP (VBD was)
      (VP (VBN seen)
        (NP (-NONE- *-1) )
        (PP-LGS=2 (-LRB- -LRB-) (IN by) (NN me) (-RRB- -RRB-) )))
    (. .) ))

( (X (UH Oh) ) )
"""


def read(content, **options):
    data = content if isinstance(content, bytes) else content.encode()
    return tw.read_brackets(io.BytesIO(data), **options)


def shown(content, **options):
    return [str(tree) for tree in read(content, **options)]


def error_of(content, **options):
    with pytest.raises(FormatError) as caught:
        read(content, **options)
    return str(caught.value)


def parse_error_of(text):
    with pytest.raises(FormatError) as caught:
        ConstTree.parse(text)
    return str(caught.value)


# what is read


def test_brackets_span_lines_and_lose_the_outer_bracket():
    assert shown(PENN, functions=True, traces=True) == [
        "(S (NP-SBJ-1 (DT The) (NN dog)) (VP (VBD was) (VP (VBN seen) (NP (-NONE- *-1)) "
        "(PP-LGS=2 (-LRB- -LRB-) (IN by) (NN me) (-RRB- -RRB-)))) (. .))",
        "(X (UH Oh))",
    ]


def test_brackets_lose_traces_and_functions_unless_asked():
    assert shown(PENN)[0] == (
        "(S (NP (DT The) (NN dog)) (VP (VBD was) (VP (VBN seen) "
        "(PP (-LRB- -LRB-) (IN by) (NN me) (-RRB- -RRB-)))) (. .))"
    )


def test_brackets_keep_functions_when_asked():
    assert shown("(NP-SBJ (N a) (-NONE- *))", functions=True) == ["(NP-SBJ (N a))"]


def test_brackets_keep_traces_when_asked():
    assert shown("(NP-SBJ (N a) (-NONE- *))", traces=True) == ["(NP (N a) (-NONE- *))"]


def test_brackets_words_stay_escaped_unless_asked():
    assert read(PENN)[0].words()[4:] == ["-LRB-", "by", "me", "-RRB-", "."]
    assert read(PENN, unescape=True)[0].words()[4:] == ["(", "by", "me", ")", "."]


def test_brackets_labels_stay_escaped_always():
    assert read(PENN, unescape=True)[0].tags()[4] == "-LRB-"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("(N a)(N b) (N c)", ["(N a)", "(N b)", "(N c)"]),
        ("(N a) ( (S (N b)) )(N c)\n(N d)", ["(N a)", "(S (N b))", "(N c)", "(N d)"]),
        ("((S (N a)))", ["(S (N a))"]),
        ("( (S (N a)) (S (N b)) )", ["(TOP (S (N a)) (S (N b)))"]),
        ("( (S (N a)) b )", ["(TOP (S (N a)) b)"]),
        ("(\n(S\n(N\na\n)\n)\n)\n", ["(S (N a))"]),
        ("(S(N a)(V b))", ["(S (N a) (V b))"]),
        ("(S a (N b) c)", ["(S a (N b) c)"]),
        ("\t(N\x0b \x0ca )", ["(N a)"]),
        ("(N a\u00a0b)", ["(N a\u00a0b)"]),
        ("(PU \u3000)", ["(PU \u3000)"]),
        ("(# #)", ["(# #)"]),
        ("(, ,)", ["(, ,)"]),
    ],
)
def test_brackets_in_this_layout_are_these_trees(content, expected):
    assert shown(content) == expected


@pytest.mark.parametrize("content", ["", "\n", " \n\t\n", "\ufeff", "\r\n"])
def test_brackets_without_text_are_no_trees(content):
    assert read(content) == []


def test_brackets_accept_a_byte_order_mark_and_crlf():
    assert read("\ufeff" + PENN.replace("\n", "\r\n")) == read(PENN)


def test_brackets_accept_a_missing_final_line_end():
    assert shown("(N a)\n(N b)") == ["(N a)", "(N b)"]


def test_brackets_read_a_line_of_100000_words():
    tree = read("(S " + "(N w) " * 100_000 + ")")[0]
    assert tree.words() == ["w"] * 100_000
    assert len(tree.children) == 100_000


@pytest.mark.parametrize("separator", ["", "\n"])
def test_brackets_read_nesting_20000_deep(separator):
    depth = 20_000
    content = f"(A {separator}" * depth + "(N w)" + f"){separator}" * depth
    assert shown(content) == ["(A " * depth + "(N w)" + ")" * depth]


# what is refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("()", "1: an empty bracket '()'; expected a label"),
        ("( )", "1: an empty bracket '()'; expected a label"),
        ("(N a)\n(\n)", "3: an empty bracket '()'; expected a label"),
        ("(()", "1: an empty bracket '()'; expected a label"),
        ("(S ())", "1: an empty bracket '()'; expected a label"),
        ("(NP)", "1: an empty constituent (NP); expected a word or a bracket"),
        ("(S\n(NP))", "2: an empty constituent (NP); expected a word or a bracket"),
        ("(S (N a) (NP))", "1: an empty constituent (NP); expected a word or a bracket"),
        (")", "1: an unmatched ')'; expected '(' or the end"),
        ("(N a)\n)", "2: an unmatched ')'; expected '(' or the end"),
        ("(N a))", "1: an unmatched ')'; expected '(' or the end"),
        ("word", "1: 'word' outside brackets; expected '('"),
        ("(N a)\n\nword (N b)", "3: 'word' outside brackets; expected '('"),
        ("(S ((N a)))", "1: a bracket without a label inside a tree; expected a label"),
        ("(((S (N a))))", "1: a bracket without a label inside a tree; expected a label"),
        ("(", "1: end of input inside the tree that begins in line 1; expected 1 more ')'"),
        ("( (", "1: end of input inside the tree that begins in line 1; expected 2 more ')'"),
        ("(S", "1: end of input inside the tree that begins in line 1; expected 1 more ')'"),
        (
            "(N a)\n(S\n(N b)\n",
            "3: end of input inside the tree that begins in line 2; expected 1 more ')'",
        ),
        ("( (S (N a))", "1: end of input inside the tree that begins in line 1; expected 1 more ')'"),
        (
            "(N a)\n(S (-NONE- *))",
            "2: a tree with traces only; expected at least one word; use traces=True to keep traces",
        ),
    ],
)
def test_brackets_out_of_balance_are_rejected_and_the_line_named(content, message):
    assert error_of(content) == f"<stream>:{message}"


def test_brackets_error_names_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev.mrg").write_text("(N a)\n(NP)\n")
    with pytest.raises(FormatError) as caught:
        tw.read_brackets("dev.mrg")
    assert str(caught.value) == "dev.mrg:2: an empty constituent (NP); expected a word or a bracket"


def test_brackets_never_closed_are_counted_however_deep():
    assert error_of("(A " * 100_000).endswith("begins in line 1; expected 100000 more ')'")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"\xff", "<stream>:2: byte 0xff at byte 4; expected UTF-8"),
        (b"\0", "<stream>:2: a NUL byte, as in binary files and UTF-16; expected UTF-8"),
        (b"\r", r"<stream>:2: a carriage return within a line; expected lines that end in \n or \r\n"),
    ],
)
def test_brackets_reject_damaged_text(damage, message):
    assert error_of(b"(N a)\n(N " + damage + b")\n") == message


# one tree from a string


def test_parse_reads_a_tree_over_several_lines():
    assert str(ConstTree.parse("\n( (S\n (N a) ) )\n")) == "(S (N a))"


def test_parse_keeps_functions_and_traces_unless_told_otherwise():
    text = "(S-X (N a) (-NONE- *))"
    assert str(ConstTree.parse(text)) == text
    assert str(ConstTree.parse(text, functions=False, traces=False)) == "(S (N a))"


def test_parse_unescapes_when_asked():
    assert ConstTree.parse("(N -LRB-)", unescape=True).words() == ["("]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: 0 trees; expected one"),
        (" \n ", "2: 0 trees; expected one"),
        ("(N a) (N b)", "1: 2 trees; expected one"),
        ("(N a)\n(N b)\n(N c)", "3: 3 trees; expected one"),
        ("word", "1: 'word' outside brackets; expected '('"),
        ("(N a) (S", "1: end of input inside the tree that begins in line 1; expected 1 more ')'"),
        ("(S\n(NP))", "2: an empty constituent (NP); expected a word or a bracket"),
        ("(S\n(N a\0))", "2: a NUL character; expected text"),
    ],
)
def test_parse_rejects_what_is_not_one_tree(text, message):
    assert parse_error_of(text) == f"<string>:{message}"


# streams


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_brackets_come_from_standard_input(monkeypatch, pack):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(pack(PENN.encode()))))
    assert tw.read_brackets("-") == read(PENN)


def test_brackets_come_from_an_open_file(tmp_path):
    (tmp_path / "x.mrg").write_text(PENN)
    with open(tmp_path / "x.mrg") as stream:
        assert tw.read_brackets(stream) == read(PENN)


def test_brackets_truncated_gzip_is_an_error(tmp_path):
    (tmp_path / "x").write_bytes(gzip.compress(PENN.encode())[:-8])
    with pytest.raises(FormatError, match="corrupt or truncated gzip data"):
        tw.read_brackets(tmp_path / "x")


@pytest.mark.parametrize("damage", [b")", b"\xff", b"(N", b"\0"])
def test_brackets_yield_the_trees_before_an_error(damage):
    stream = tw.iter_brackets(io.BytesIO(b"(N a) (N b)\n(N c)\n" + damage))
    assert [str(next(stream)) for _ in range(3)] == ["(N a)", "(N b)", "(N c)"]
    with pytest.raises(FormatError, match=":3: "):
        next(stream)


def test_brackets_come_before_the_file_is_read_to_its_end():
    source = io.BytesIO(b"(S (N a) (V b))\n" * 50_000)
    next(tw.iter_brackets(source))
    assert source.tell() < len(source.getvalue()) / 2


def test_brackets_memory_does_not_grow_with_the_file(tmp_path, streaming_peak):
    peaks = []
    for n_trees in (2_000, 20_000):
        path = tmp_path / f"{n_trees}.mrg"
        path.write_text(f"(S (N {'a' * 200}) (V b))\n" * n_trees)
        peaks.append(streaming_peak(tw.iter_brackets(path)))
    assert max(peaks) < 2_000_000
    assert peaks[1] < 1.2 * peaks[0]


# writing


def test_brackets_are_written_one_tree_a_line(tmp_path):
    tw.write_brackets(read(PENN), tmp_path / "x.mrg")
    assert (tmp_path / "x.mrg").read_text() == "".join(f"{tree}\n" for tree in read(PENN))


def test_brackets_are_written_escaped_and_read_back_unescaped(tmp_path):
    trees = read(PENN, unescape=True)
    tw.write_brackets(trees, tmp_path / "x.mrg")
    assert tw.read_brackets(tmp_path / "x.mrg", unescape=True) == trees


def test_brackets_are_written_compressed_for_a_name_in_gz(tmp_path):
    tw.write_brackets(read("(N a)"), tmp_path / "x.mrg.gz")
    assert gzip.decompress((tmp_path / "x.mrg.gz").read_bytes()) == b"(N a)\n"


def test_brackets_are_written_to_standard_output(capsysbinary):
    tw.write_brackets(read("(N é)"), "-")
    assert capsysbinary.readouterr().out == "(N é)\n".encode()


def test_brackets_may_be_rewritten_while_they_are_read(tmp_path):
    path = tmp_path / "x.mrg"
    path.write_text("(N-X a)\n" * 20_000)
    tw.write_brackets(tw.iter_brackets(path), path)
    assert path.read_text() == "(N a)\n" * 20_000


def test_brackets_failing_in_the_middle_leave_the_old_file(tmp_path):
    path = tmp_path / "x.mrg"
    path.write_text("old")
    with pytest.raises(FormatError):
        tw.write_brackets(tw.iter_brackets(io.BytesIO(b"(N a) ()")), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.mrg"]


def test_brackets_cannot_hold_a_lone_word(tmp_path):
    with pytest.raises(InputError) as caught:
        tw.write_brackets([ConstTree("dog")], tmp_path / "x.mrg")
    assert str(caught.value) == "the tree is the single word 'dog'; expected a bracket"
    assert os.listdir(tmp_path) == []


# properties


def check_no_half_measures(content, **options):
    """Check that the reader either refuses `content` or understands it as a whole."""
    try:
        trees = read(content, **options)
    except FormatError:
        return
    with tempfile.TemporaryDirectory() as folder:
        tw.write_brackets(trees, Path(folder, "x.mrg"))
        assert tw.read_brackets(Path(folder, "x.mrg"), **options) == trees


def joined(trees):
    return "".join(f"{tree}\n" for tree in trees).encode()


@given(st.lists(const_trees(), max_size=4))
def test_trees_survive_writing_and_reading(trees):
    assert read(joined(trees), functions=True, traces=True) == trees


@given(st.lists(const_trees(), max_size=4), st.sampled_from(["\n", "\r\n", "\n\n", " \t\n ", ""]))
def test_layout_does_not_matter(trees, separator):
    content = "".join(f"( {str(tree).replace(' ', separator + ' ')} ){separator}" for tree in trees)
    assert read(content, functions=True, traces=True) == trees


@given(random_bytes(), st.booleans())
def test_random_bytes_are_refused_or_read_whole(content, keep):
    check_no_half_measures(content, functions=keep, traces=keep)


@given(st.text("()ab -\n", max_size=30))
def test_random_brackets_are_refused_or_read_whole(content):
    check_no_half_measures(content, functions=True, traces=True)


@given(
    mutations(st.lists(const_trees(5), min_size=1, max_size=3).map(joined) | st.just(PENN.encode())),
    st.booleans(),
)
def test_damaged_brackets_are_refused_or_read_whole(content, keep):
    check_no_half_measures(content, functions=keep, traces=keep)


def test_what_is_no_text_is_not_parsed():
    with pytest.raises(InputError, match=r"^the tree is of type int; expected text in Penn brackets$"):
        tw.ConstTree.parse(3)
