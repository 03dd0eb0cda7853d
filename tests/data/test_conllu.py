"""CoNLL-U, CoNLL-X and CoNLL-2009: what is read, what is refused, and that nothing is lost."""

import gzip
import io
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import conll2009_trees, conllx_trees, dep_trees, mutations, random_bytes

import treewright as tw
from treewright.data.conllu import CONLL2009, CONLLU, CONLLX, format_tree
from treewright.data.deptree import DepTree, ExtraLine
from treewright.errors import FormatError, InputError

READERS = {CONLLU: tw.read_conllu, CONLLX: tw.read_conllx, CONLL2009: tw.read_conll2009}
STREAMS = {CONLLU: tw.iter_conllu, CONLLX: tw.iter_conllx, CONLL2009: tw.iter_conll2009}
WRITERS = {CONLLU: tw.write_conllu, CONLLX: tw.write_conllx, CONLL2009: tw.write_conll2009}
LAYOUTS = pytest.mark.parametrize("layout", [CONLLU, CONLLX, CONLL2009], ids=["U", "X", "2009"])

RICH = """\
# newdoc
# sent_id = 1
# text = a\ttab, and  two spaces
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tdo\tdo\tAUX\tVB\tA=b|C=d\t3\taux\t3:aux\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t3:advmod\tx=#
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t0:root\t_
3.1\tthere\tthere\tADV\t_\t_\t_\t_\t3:advmod\tCopyOf=1
3.2\t_\t_\t_\t_\t_\t_\t_\t_\t_

0.1\t_\t_\t_\t_\t_\t_\t_\t_\t_
1\t#\t#\tSYM\t_\t_\t0\troot\t_\t_

"""

PLUS = """\
# global.columns = ID FORM HEAD MISC MY:COLUMN
# sent_id = 1
1-2\tab\t_\t_\tx
1\ta\t2\t_\ty
2\tb\t0\tm\t*

1\tc\t0\t_\tz

"""

ARGUMENTS = """\
1\tshe\tshe\tshe\tPRP\tPRP\t_\t_\t2\t2\tSBJ\tSBJ\t_\t_\tA0\tA0
2\twants\twant\twant\tVBZ\tVBZ\tp=3\t_\t0\t0\tROOT\tROOT\tY\twant.01\t_\t_
3\tto\tto\tto\tTO\tTO\t_\t_\t2\t2\tOPRD\tOPRD\t_\t_\tA1\t_
4\tsing\tsing\tsing\tVB\tVB\t_\t_\t3\t3\tIM\tIM\tY\tsing.02\t_\t_

1\tyes\tyes\tyes\tUH\tUH\t_\t_\t0\t0\tROOT\tROOT\t_\t_

"""


def line(token_id, head="0", form="w", n_columns=10):
    """Make a token line."""
    return "\t".join([token_id, form, "_", "_", "_", "_", head, *["_"] * (n_columns - 7)])


def text(*lines):
    """Make the text of one sentence."""
    return "\n".join([*lines, "\n"])


def read(content, layout=CONLLU, **options):
    data = content if isinstance(content, bytes) else content.encode()
    return READERS[layout](io.BytesIO(data), **options)


def error_of(content, layout=CONLLU, **options):
    with pytest.raises(FormatError) as caught:
        read(content, layout, **options)
    return str(caught.value)


def rewrite(trees, path, layout=CONLLU):
    WRITERS[layout](trees, path)
    return path.read_bytes()


# what is read


def test_conllu_columns_become_attributes():
    tree = read(RICH)[0]
    assert tree.words == ["do", "n't", "go"]
    assert tree.lemmas == ["do", "not", "go"]
    assert tree.upos == ["AUX", "PART", "VERB"]
    assert tree.xpos == ["VB", "RB", "VB"]
    assert tree.feats == ["A=b|C=d", "_", "_"]
    assert tree.heads.tolist() == [3, 3, 0]
    assert tree.deprels == ["aux", "advmod", "root"]
    assert tree.deps == ["3:aux", "3:advmod", "0:root"]
    assert tree.misc == ["_", "x=#", "_"]


def test_conllu_heads_are_int32():
    assert read(RICH)[0].heads.dtype == "int32"


def test_conllu_keeps_comments_as_they_stand():
    assert read(RICH)[0].comments == ["# newdoc", "# sent_id = 1", "# text = a\ttab, and  two spaces"]


def test_conllu_keeps_multiword_tokens_and_empty_nodes_in_place():
    positions = [(extra.position, extra.text.split("\t")[0]) for extra in read(RICH)[0].extra_lines]
    assert positions == [(0, "1-2"), (3, "3.1"), (3, "3.2")]


def test_conllu_reads_a_hash_as_a_word():
    assert read(RICH)[1].words == ["#"]


def test_conllu_round_trip_gives_back_the_same_bytes(tmp_path):
    assert rewrite(read(RICH), tmp_path / "x.conllu") == RICH.encode()


def test_conllu_plus_columns_are_kept_by_name():
    first, second = read(PLUS)
    assert first.columns == {"MY:COLUMN": ["y", "*"]}
    assert second.columns == {"MY:COLUMN": ["z"]}
    assert (first.words, first.heads.tolist(), first.misc) == (["a", "b"], [2, 0], ["_", "m"])


def test_conllu_plus_round_trip_gives_back_the_same_bytes(tmp_path):
    assert rewrite(read(PLUS), tmp_path / "x.conllup") == PLUS.encode()


def test_conllu_plus_without_heads_has_unknown_heads():
    assert read("# global.columns = ID FORM\n1\ta\n2\tb\n\n")[0].heads.tolist() == [-1, -1]


def test_conllu_plus_may_follow_blank_lines(tmp_path):
    trees = read("\n\n# global.columns = ID FORM\n1\ta\n")
    assert rewrite(trees, tmp_path / "x.conllup") == b"# global.columns = ID FORM\n1\ta\n\n"


def test_conllu_plus_is_declared_by_the_first_comment_alone():
    plain = text("# a comment", "# global.columns = ID FORM", line("1"))
    assert read(plain)[0].words == ["w"]


def test_conllx_names_its_last_columns():
    tree = read("1\ta\tb\tc\td\te\t0\tf\t1\tg\n", CONLLX)[0]
    assert (tree.lemmas, tree.upos, tree.xpos, tree.feats, tree.deprels) == (
        ["b"],
        ["c"],
        ["d"],
        ["e"],
        ["f"],
    )
    assert tree.columns == {"PHEAD": ["1"], "PDEPREL": ["g"]}
    assert (tree.deps, tree.misc) == (["_"], ["_"])


def test_conll2009_has_a_column_for_each_predicate():
    first, second = read(ARGUMENTS, CONLL2009)
    assert first.xpos == ["PRP", "VBZ", "TO", "VB"]
    assert first.columns["PRED"] == ["_", "want.01", "_", "sing.02"]
    assert first.columns["APRED1"] == ["A0", "_", "A1", "_"]
    assert first.columns["APRED2"] == ["A0", "_", "_", "_"]
    assert "APRED1" not in second.columns


def test_conll2009_round_trip_gives_back_the_same_bytes(tmp_path):
    assert rewrite(read(ARGUMENTS, CONLL2009), tmp_path / "x.conll", CONLL2009) == ARGUMENTS.encode()


@LAYOUTS
def test_an_empty_file_has_no_trees(layout):
    assert read("", layout) == []


@pytest.mark.parametrize("content", ["\n", "\n\n\n", "\r\n", "\ufeff", "\ufeff\n"])
def test_conllu_blank_lines_alone_are_no_trees(content):
    assert read(content) == []


def test_conllu_accepts_a_byte_order_mark():
    assert read("\ufeff" + RICH) == read(RICH)


def test_conllu_accepts_crlf():
    assert read(RICH.replace("\n", "\r\n")) == read(RICH)


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n\n"])
def test_conllu_accepts_any_number_of_final_line_ends(end):
    assert read(RICH.rstrip("\n") + end) == read(RICH)


def test_conllu_accepts_several_blank_lines_between_sentences():
    assert read("\n\n" + RICH.replace("\n\n", "\n\n\n")) == read(RICH)


@pytest.mark.parametrize(
    "character", ["\x0b", "\x0c", "\x1c", "\x85", "\u00a0", "\u2028", "\u3000", "\ufeff", " "]
)
def test_conllu_keeps_odd_characters_inside_a_field(tmp_path, character):
    content = text(f"# {character}", line("1", form=f"{character}a{character}"))
    assert read(content)[0].words == [f"{character}a{character}"]
    assert rewrite(read(content), tmp_path / "x.conllu") == content.encode()


def test_conllu_keeps_an_empty_field(tmp_path):
    content = text(line("1", form=""))
    assert rewrite(read(content), tmp_path / "x.conllu") == content.encode()


def test_conllu_reads_several_roots():
    assert read(text(line("1"), line("2")))[0].n_roots == 2


def test_conllu_reads_unknown_heads_when_asked(tmp_path):
    content = text(line("1", "_"), line("2", "1"))
    tree = read(content, require_heads=False)[0]
    assert tree.heads.tolist() == [-1, 1]
    assert rewrite([tree], tmp_path / "x.conllu") == content.encode()


@pytest.mark.parametrize("ids", [["1-1", "1"], ["1-2", "1", "1.1", "2"], ["0.1", "0.2", "1-2", "1", "2"]])
def test_conllu_accepts_these_ids(ids):
    assert len(read(text(*map(line, ids)))[0].extra_lines) == sum(not token.isdigit() for token in ids)


def test_conllu_reads_a_sentence_of_100000_words(tmp_path):
    n = 100_000
    content = text(*(line(str(word), str(word - 1)) for word in range(1, n + 1)))
    tree = read(content)[0]
    assert tree.heads.tolist() == list(range(n))
    assert rewrite([tree], tmp_path / "x.conllu") == content.encode()


@pytest.mark.slow
def test_conllu_reads_100000_words_among_multiword_tokens(tmp_path):
    n = 100_000
    ranges = [line("1-2", "_"), *(line(str(word)) for word in range(1, n + 1))]
    tree = read(text(*ranges))[0]
    assert len(tree) == n
    assert rewrite([tree], tmp_path / "x.conllu") == text(*ranges).encode()


# what is refused


def test_conllu_rejects_a_wrong_column_count_and_names_the_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev.conllu").write_text(text("# c", line("1"), line("2", n_columns=9)))
    with pytest.raises(FormatError) as caught:
        tw.read_conllu("dev.conllu")
    assert str(caught.value) == "dev.conllu:3: 9 columns; expected 10, separated by tabs"
    assert (caught.value.path, caught.value.line) == ("dev.conllu", 3)


@pytest.mark.parametrize("n_columns", [9, 11])
def test_conllx_rejects_a_wrong_column_count(n_columns):
    message = f"<stream>:1: {n_columns} columns; expected 10, separated by tabs"
    assert error_of(text(line("1", n_columns=n_columns)), CONLLX) == message


def test_conll2009_counts_a_column_for_each_predicate():
    content = ARGUMENTS.replace("A1\t_\n", "A1\n")
    assert error_of(content, CONLL2009) == "<stream>:3: 15 columns; expected 16, separated by tabs"


def test_conllu_plus_counts_the_declared_columns():
    assert (
        error_of("# global.columns = ID FORM\n1\ta\tb\n")
        == "<stream>:2: 3 columns; expected 2, separated by tabs"
    )


def test_conllu_rejects_spaces_for_tabs():
    assert error_of(line("1").replace("\t", " ")) == "<stream>:1: 1 column; expected 10, separated by tabs"


@pytest.mark.parametrize("declared", ["", "FORM ID", "ID LEMMA", "ID FORM FORM"])
def test_conllu_plus_rejects_columns_without_id_and_form(declared):
    expected = "ID followed by distinct column names that include FORM"
    message = f"<stream>:1: global.columns is {declared!r}; expected {expected}"
    assert error_of(f"# global.columns = {declared}\n1\ta\n") == message


@LAYOUTS
@pytest.mark.parametrize(
    "head", ["X9", "", "_", "-1", "4", "+1", "01", " 1", "1 ", "1_0", "1.0", "٣", "３", "9" * 70]
)
def test_a_head_that_is_no_number_of_a_word_is_rejected(layout, head):
    at = layout.index("HEAD")
    rows = [[str(number), *["_"] * (len(layout) - 1)] for number in (1, 2, 3)]
    for row, value in zip(rows, ["2", "0", head], strict=True):
        row[at] = value
    shown = head if len(head) <= 60 else head[:57] + "..."
    content = text("# c", *map("\t".join, rows))
    assert error_of(content, layout) == f"<stream>:4: HEAD is {shown!r}; expected an integer from 0 to 3"


def test_conllu_rejects_other_words_for_an_unknown_head():
    message = "<stream>:1: HEAD is '-1'; expected an integer from 0 to 1"
    assert error_of(text(line("1", "-1")), require_heads=False) == message


def test_conllu_counts_words_not_lines_for_the_largest_head():
    content = text(line("1-2", "_"), line("1", "3"), line("2", "0"), line("2.1", "_"))
    assert error_of(content) == "<stream>:2: HEAD is '3'; expected an integer from 0 to 2"


def test_conllu_rejects_a_self_loop_and_names_the_line():
    content = text("# c", line("1"), line("1.1"), line("2", "2"))
    assert error_of(content) == "<stream>:4: HEAD of word 2 is the word itself; expected another word or 0"


def test_conllu_rejects_a_cycle_and_names_the_line():
    content = text(line("1")) + text(line("1", "4"), line("2"), line("3", "1"), line("4", "3"))
    message = "<stream>:3: HEAD makes a cycle (1 -> 4 -> 3 -> 1); expected heads that lead to a root"
    assert error_of(content) == message


@pytest.mark.slow
def test_conllu_shortens_a_long_cycle():
    n = 100_000
    content = text(line("1", str(n)), *(line(str(word), str(word - 1)) for word in range(2, n + 1)))
    shown = "1 -> 100000 -> 99999 -> 99998 -> 99997 -> 99996 -> 99995 -> 99994 -> ..."
    assert (
        error_of(content) == f"<stream>:1: HEAD makes a cycle ({shown}); expected heads that lead to a root"
    )


def test_conllu_rejects_a_cycle_among_unknown_heads():
    content = text(line("1", "_"), line("2", "3"), line("3", "2"))
    assert error_of(content, require_heads=False).startswith("<stream>:2: HEAD makes a cycle (2 -> 3 -> 2)")


@pytest.mark.parametrize(
    ("ids", "place", "expected"),
    [
        (["2"], 1, "1, 0.1 or a range"),
        (["0", "1"], 1, "1, 0.1 or a range"),
        (["1", "3"], 2, "2, 1.1 or a range"),
        (["1", "1"], 2, "2, 1.1 or a range"),
        (["1", "2", "1"], 3, "3, 2.1 or a range"),
        (["", "1"], 1, "1, 0.1 or a range"),
        (["01"], 1, "1, 0.1 or a range"),
        (["+1"], 1, "1, 0.1 or a range"),
        (["1 "], 1, "1, 0.1 or a range"),
        (["\u0661"], 1, "1, 0.1 or a range"),
        (["9" * 50], 1, "1, 0.1 or a range"),
        (["0.2", "1"], 1, "1, 0.1 or a range"),
        (["0.0", "1"], 1, "1, 0.1 or a range"),
        (["1.1", "1"], 1, "1, 0.1 or a range"),
        (["1", "1.1", "1.1"], 3, "2, 1.2 or a range"),
        (["1", "1.1", "1.3"], 3, "2, 1.2 or a range"),
        (["8.1", "1"], 1, "1, 0.1 or a range"),
        (["2-1", "1", "2"], 1, "1, 0.1 or a range"),
        (["2-3", "1", "2", "3"], 1, "1, 0.1 or a range"),
        (["1-02", "1", "2"], 1, "1, 0.1 or a range"),
        (["1-", "1"], 1, "1, 0.1 or a range"),
        (["0-1", "1"], 1, "1, 0.1 or a range"),
        (["1-9999999999", "1"], 1, "1, 0.1 or a range"),
        (["1-2", "1-2", "1", "2"], 2, "1"),
        (["1-2", "0.1", "1", "2"], 2, "1"),
        (["1-2", "1", "2-3", "2", "3"], 3, "2, 1.1 or a range"),
    ],
)
def test_conllu_rejects_ids_out_of_order_and_names_the_line(ids, place, expected):
    message = f"<stream>:{place + 1}: ID is {ids[place - 1]!r}; expected {expected}"
    assert error_of(text("# c", *map(line, ids))) == message


@pytest.mark.parametrize("layout", [CONLLX, CONLL2009])
@pytest.mark.parametrize("token_id", ["0.1", "1-2", "2", "01"])
def test_conllx_and_conll2009_have_plain_ids_alone(layout, token_id):
    content = "\t".join([token_id, *["0"] * (len(layout) - 1)])
    assert error_of(content, layout) == f"<stream>:1: ID is {token_id!r}; expected 1"


def test_conllu_rejects_a_range_that_never_ends():
    content = text(line("1"), line("2-4"), line("2"), line("3"))
    assert error_of(content) == "<stream>:4: the sentence ends at word 3; expected word 4"


def test_conllu_rejects_a_sentence_of_empty_nodes_alone():
    assert error_of(text(line("0.1"))) == "<stream>:1: a sentence without words; expected a line with ID 1"


@pytest.mark.parametrize("content", ["# a\n# b\n", "# a\n# b\n\n" + line("1")])
def test_conllu_rejects_comments_without_a_sentence(content):
    assert (
        error_of(content)
        == "<stream>:2: comments without a sentence; expected a token line after the comments"
    )


def test_conllu_rejects_a_comment_inside_a_sentence():
    message = "<stream>:2: comment '# c' inside a sentence; expected a token line"
    assert error_of(text(line("1"), "# c", line("2", "1"))) == message


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0", " \t "])
def test_conllu_rejects_a_line_of_white_space(blank):
    message = "<stream>:2: a line of whitespace; expected an empty line or a token line"
    assert error_of(line("1") + f"\n{blank}\n" + line("1")) == message


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"\xff", "<stream>:2: byte 0xff at byte 1; expected UTF-8"),
        (b"\0", "<stream>:2: a NUL byte, as in binary files and UTF-16; expected UTF-8"),
        (b"\r1", r"<stream>:2: a carriage return within a line; expected lines that end in \n or \r\n"),
    ],
)
def test_conllu_rejects_damaged_text(damage, message):
    assert error_of(b"# c\n" + damage + line("1").encode()) == message


@LAYOUTS
def test_two_roots_are_rejected_where_one_is_required(layout):
    rows = [[str(number), *["_"] * (len(layout) - 1)] for number in (1, 2, 3)]
    for row, head in zip(rows, "010", strict=True):
        row[layout.index("HEAD")] = head
    message = "<stream>:4: 2 roots (words 1, 3); expected exactly one word with HEAD 0"
    assert error_of(text("# c", *map("\t".join, rows)), layout, single_root=True) == message


def test_conllu_rejects_a_sentence_without_a_root_where_one_is_required():
    message = "<stream>:1: 0 roots; expected exactly one word with HEAD 0"
    assert error_of(text(line("1", "_")), single_root=True, require_heads=False) == message


def test_conllu_accepts_one_root_where_one_is_required():
    assert read(text(line("1", "2"), line("2")), single_root=True)[0].heads.tolist() == [2, 0]


# streams


def test_conllu_streams_from_gzip_under_any_name(tmp_path):
    (tmp_path / "x.conllu").write_bytes(gzip.compress(RICH.encode()))
    assert tw.read_conllu(tmp_path / "x.conllu") == read(RICH)


def test_conllu_truncated_gzip_is_an_error_and_no_short_list(tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(RICH.encode())[:-8])
    with pytest.raises(FormatError, match="corrupt or truncated gzip data"):
        tw.read_conllu(tmp_path / "x.gz")


def test_conllu_reads_a_file_opened_as_text(tmp_path):
    (tmp_path / "x.conllu").write_bytes(RICH.encode())
    with open(tmp_path / "x.conllu", encoding="utf-8") as stream:
        assert tw.read_conllu(stream) == read(RICH)


@pytest.mark.parametrize("damage", [line("2"), "\0", "\ud800", "# c"])
def test_conllu_yields_the_sentences_before_an_error(damage):
    content = text(line("1", form="a")) + text(line("1", form="b")) + damage
    stream = tw.iter_conllu(io.BytesIO(content.encode("utf-8", "surrogatepass")))
    assert [next(stream).words, next(stream).words] == [["a"], ["b"]]
    with pytest.raises(FormatError, match=":5: "):
        next(stream)


@LAYOUTS
def test_sentences_come_before_the_file_is_read_to_its_end(layout):
    row = ["1", *["_"] * (len(layout) - 1)]
    row[layout.index("HEAD")] = "0"
    source = io.BytesIO(text("\t".join(row)).encode() * 50_000)
    next(STREAMS[layout](source))
    assert source.tell() < len(source.getvalue()) / 2


@pytest.mark.slow
def test_conllu_memory_does_not_grow_with_the_file(tmp_path, streaming_peak):
    peaks = []
    for n_sentences in (2_000, 20_000):
        path = tmp_path / f"{n_sentences}.conllu"
        path.write_text(text("# " + "c" * 200, line("1"), line("2", "1")) * n_sentences)
        peaks.append(streaming_peak(tw.iter_conllu(path)))
    assert max(peaks) < 2_000_000
    assert peaks[1] < 1.2 * peaks[0]


# writing


def test_conllu_writes_what_is_not_given_as_underscores(tmp_path):
    tree = DepTree(["a", "b"], [2, 0])
    assert rewrite([tree], tmp_path / "x.conllu") == text(line("1", "2", "a"), line("2", "0", "b")).encode()


def test_conllu_writes_nothing_for_no_trees(tmp_path):
    assert rewrite([], tmp_path / "x.conllu") == b""


def test_conllu_writes_gzip_for_a_name_in_gz(tmp_path):
    assert gzip.decompress(rewrite(read(RICH), tmp_path / "x.conllu.gz")) == RICH.encode()


def test_conllu_writes_to_standard_output(capsysbinary):
    tw.write_conllu(read(RICH), "-")
    assert capsysbinary.readouterr().out == RICH.encode()


def test_conllu_may_be_rewritten_while_it_is_read(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_bytes(RICH.encode() * 500)
    tw.write_conllu((tree.with_comments(["# new"]) for tree in tw.iter_conllu(path)), path)
    assert [tree.comments for tree in tw.iter_conllu(path)] == [["# new"]] * 1000


def test_conllu_failing_in_the_middle_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_text("old")
    with pytest.raises(FormatError):
        tw.write_conllu(tw.iter_conllu(io.BytesIO(RICH.encode() + b"x")), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.conllu"]


@pytest.mark.parametrize("layout", [CONLLX, CONLL2009])
def test_conllx_and_conll2009_leave_out_what_they_cannot_hold(tmp_path, layout):
    content = rewrite(read(RICH), tmp_path / "x.conll", layout)
    trees = read(content, layout)
    assert [tree.words for tree in trees] == [["do", "n't", "go"], ["#"]]
    assert [tree.extra_lines for tree in trees] == [[], []]
    assert [tree.comments for tree in trees] == [[], []]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (DepTree(["a\tb"]), r"'1\ta\tb\t_\t_\t_\t_\t_\t_\t_\t_' has 11 columns; expected 10"),
        (
            DepTree(["a\nb"]),
            r"'1\ta\nb\t_\t_\t_\t_\t_\t_\t_\t_' contains a line break or NUL; expected neither",
        ),
        (
            DepTree(["a\r"]),
            r"'1\ta\r\t_\t_\t_\t_\t_\t_\t_\t_' contains a line break or NUL; expected neither",
        ),
        (
            DepTree(["\0"]),
            r"'1\t\x00\t_\t_\t_\t_\t_\t_\t_\t_' contains a line break or NUL; expected neither",
        ),
        (DepTree(["a"], comments=["c"]), "comment 'c'; expected a leading '#'"),
        (DepTree(["a"], comments=["# c\n"]), r"'# c\n' contains a line break or NUL; expected neither"),
        (DepTree(["a"], extra_lines=[ExtraLine(0, "0.1\t_")]), r"'0.1\t_' has 2 columns; expected 10"),
        (DepTree([]), "a sentence has no words; expected at least one"),
    ],
)
def test_conllu_refuses_to_write_what_could_not_be_read_back(tmp_path, tree, message):
    with pytest.raises(InputError) as caught:
        tw.write_conllu([DepTree(["fine"]), tree], tmp_path / "x.conllu")
    assert str(caught.value) == message
    assert os.listdir(tmp_path) == []


# properties


@given(st.lists(dep_trees(), max_size=4))
def test_conllu_trees_survive_writing_and_reading(trees):
    content = "".join(map(format_tree, trees))
    assert read(content) == trees
    assert "".join(map(format_tree, read(content))) == content


@given(st.lists(conllx_trees(), max_size=4))
def test_conllx_trees_survive_writing_and_reading(trees):
    assert read("".join(format_tree(tree, CONLLX) for tree in trees), CONLLX) == trees


@given(st.lists(conll2009_trees(), max_size=4))
def test_conll2009_trees_survive_writing_and_reading(trees):
    assert read("".join(format_tree(tree, CONLL2009) for tree in trees), CONLL2009) == trees


def check_no_half_measures(content, layout):
    """Check that the reader either refuses `content` or understands it as a whole."""
    try:
        trees = read(content, layout, require_heads=False)
    except FormatError:
        return
    with tempfile.TemporaryDirectory() as folder:
        rewritten = rewrite(trees, Path(folder, "x.conll"), layout)
    kept = trees if layout is CONLLU else [tree.with_comments([]) for tree in trees]
    assert read(rewritten, layout, require_heads=False) == kept


@LAYOUTS
@given(content=random_bytes())
def test_random_bytes_are_refused_or_read_whole(layout, content):
    check_no_half_measures(content, layout)


@given(mutations(st.lists(dep_trees(3), min_size=1, max_size=3).map(lambda trees: joined(trees, CONLLU))))
def test_damaged_conllu_is_refused_or_read_whole(content):
    check_no_half_measures(content, CONLLU)


@given(mutations(st.lists(conllx_trees(3), min_size=1, max_size=3).map(lambda trees: joined(trees, CONLLX))))
def test_damaged_conllx_is_refused_or_read_whole(content):
    check_no_half_measures(content, CONLLX)


@given(
    mutations(
        st.lists(conll2009_trees(3), min_size=1, max_size=3).map(lambda trees: joined(trees, CONLL2009))
    )
)
def test_damaged_conll2009_is_refused_or_read_whole(content):
    check_no_half_measures(content, CONLL2009)


@given(mutations(st.just(PLUS.encode())))
def test_damaged_conllu_plus_is_refused_or_read_whole(content):
    check_no_half_measures(content, CONLLU)


@given(mutations(st.just(gzip.compress(RICH.encode(), mtime=0))))
def test_damaged_gzip_is_refused_or_read_whole(content):
    check_no_half_measures(content, CONLLU)


@given(mutations(st.just(RICH.encode())))
def test_errors_name_a_line_of_the_file_in_one_line_of_text(content):
    try:
        read(content)
    except FormatError as error:
        message, place = str(error), error.line
    else:
        return
    assert place in range(1, content.count(b"\n") + 2)
    assert message.splitlines() == [message]


def joined(trees, layout):
    return "".join(format_tree(tree, layout) for tree in trees).encode()


def test_what_is_no_tree_is_not_written(tmp_path):
    with pytest.raises(InputError, match=r"^sentence 2 is of type int; expected a DepTree$"):
        tw.write_conllu([tw.DepTree(["a"]), 3], tmp_path / "out.conllu")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("source", [None, b"x", 3])
def test_what_is_no_file_is_not_read(source):
    with pytest.raises(
        InputError, match=r"^the source is of type \w+; expected a file name or an open file$"
    ):
        tw.read_conllu(source)
