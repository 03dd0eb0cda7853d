"""Files of the wrong kind: one line says what was found and what was expected."""

import io
import re

import pytest
from commands import run

import treewright as tw
from treewright.data.formats import tell_trees

CONTENTS = {
    "text": b"The cat sleeps. The dog (a big one) barks.\n",
    "conllu": b"1\tMary\t_\tPROPN\tNNP\t_\t2\tnsubj\t_\t_\n2\tsleeps\t_\tVERB\tVBZ\t_\t0\troot\t_\t_\n\n",
    "brackets": b"(S (NP (NNP Mary)) (VP (VBZ sleeps)))\n",
    "props": b"1\tMary\tNNP\t-\t-\t(ARG0*)\n2\tsleeps\tVBZ\tsleep\t01\t(V*)\n\n",
    "binary": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "blank": b"\n\n",
    "empty": b"",
}
LOOKS = {
    "text": "plain text",
    "conllu": "CoNLL-U",
    "brackets": "trees in brackets",
    "props": "PropBank columns",
    "binary": "a binary file or UTF-16",
}
TREES = "CoNLL-U, trees in brackets or PropBank columns"


@pytest.fixture
def files(tmp_path):
    """Make a file of each kind, whose name tells nothing."""
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tagger.tw"
    tw.Tagger(epochs=1).fit(tw.make_treebank(5, random_state=0).dependencies).save(path)
    return path


@pytest.fixture(scope="module")
def labeler(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "roles.tw"
    bank = tw.make_treebank(40, random_state=0)
    tw.RoleLabeler(kernel="linear").fit(bank.constituents, bank.propositions).save(path)
    return path


@pytest.mark.parametrize("name", ["brackets", "props", "binary"])
def test_what_has_no_words_is_refused_by_models_of_words(fail, files, tagger, name):
    message = fail("parse", tagger, files / name)
    expected = "expected CoNLL-U or plain text"
    assert message == f"treewright: {files / name} looks like {LOOKS[name]}; {expected}"


@pytest.mark.parametrize("name", ["conllu", "brackets", "props", "binary"])
def test_what_is_no_text_is_not_split_by_the_rules_of_a_language(fail, files, tagger, name):
    message = fail("parse", tagger, files / name, "--language", "en")
    expected = "which --language does not split; expected plain text, or --raw"
    assert message == f"treewright: {files / name} looks like {LOOKS[name]}, {expected}"


@pytest.mark.parametrize("options", [(), ("--raw",)])
@pytest.mark.parametrize("name", ["text", "text.conllu"])
def test_utf_16_is_told_as_what_may_be_a_binary_file(fail, tmp_path, tagger, name, options):
    (tmp_path / name).write_text("1\tMary\n", encoding="utf-16")
    assert re.search(
        "binary files? (and|or) UTF-16; expected", fail("parse", tagger, tmp_path / name, *options)
    )


def test_predicted_columns_of_conll_x_are_left_out(tmp_path, tagger):
    row = "1\tMary\t_\tPROPN\tNNP\t_\t0\troot\t{}\t{}\n\n"
    for name, columns in {
        "rows": ("0", "root"),
        "rows.conll": ("0", "root"),
        "rows.conllx": ("_", "_"),
    }.items():
        (tmp_path / name).write_text(row.format(*columns))
        (tree,) = tw.read_conllu(io.StringIO(run("parse", tagger, tmp_path / name).stdout))
        assert (tree.words, tree.heads.tolist()) == (["Mary"], [0])
        assert (tree.deps, tree.misc) == (["_"], ["_"])
    (tmp_path / "rows").write_text(row.format("0:root", "root"))
    (tree,) = tw.read_conllu(io.StringIO(run("parse", tagger, tmp_path / "rows").stdout))
    assert (tree.deps, tree.misc) == (["0:root"], ["root"])


def test_plain_text_needs_a_tokenizer(fail, files, tagger):
    message = fail("parse", tagger, files / "text")
    assert "looks like plain text, but this model has no tokenizer; expected CoNLL-U, a pipeline" in message


@pytest.mark.parametrize("name", ["text", "conllu", "props", "binary"])
def test_roles_are_found_in_brackets_alone(fail, files, labeler, name):
    message = fail("parse", labeler, files / name)
    assert message == f"treewright: {files / name} looks like {LOOKS[name]}; expected trees in brackets"


@pytest.mark.parametrize("name", ["empty", "blank"])
def test_where_there_are_no_sentences_none_are_parsed(files, tagger, labeler, name):
    for model in (tagger, labeler):
        assert run("parse", model, files / name).stdout == ""


def test_a_folder_is_named(fail, files, tagger, labeler):
    folder = files / "folder"
    for command in (("parse", tagger), ("parse", labeler), ("kernel", "--out", files / "k")):
        assert fail(command[0], *command[1:], folder) == f"treewright: {folder}: Is a directory"


@pytest.mark.parametrize("name", ["text", "binary"])
def test_what_is_no_treebank_is_neither_scored_nor_converted(fail, files, name):
    message = f"treewright: {files / name} looks like {LOOKS[name]}; expected {TREES}"
    assert fail("evaluate", files / name, files / name) == message
    assert fail("convert", files / name, files / "out.conllu") == message


@pytest.mark.parametrize("kind", ["tagger", "dependency", "pipeline"])
@pytest.mark.parametrize("name", ["text", "brackets", "props", "binary"])
def test_models_of_dependencies_are_trained_on_conllu(fail, files, kind, name):
    message = f"treewright: {files / name} looks like {LOOKS[name]}; expected CoNLL-U"
    assert fail("train", kind, files / name, "--model", files / "m.tw") == message
    assert fail("train", kind, files / "conllu", "--dev", files / name, "--model", files / "m.tw") == message


@pytest.mark.parametrize("name", ["text", "conllu", "props", "binary"])
def test_models_of_constituents_are_trained_on_brackets(fail, files, name):
    message = f"treewright: {files / name} looks like {LOOKS[name]}; expected trees in brackets"
    for command in (("constituent",), ("roles", "--props", files / "props")):
        assert fail("train", *command, files / name, "--model", files / "m.tw") == message


@pytest.mark.parametrize("name", ["text", "conllu", "brackets", "binary"])
def test_roles_are_learnt_from_propbank_columns(fail, files, name):
    message = f"treewright: {files / name} looks like {LOOKS[name]}; expected PropBank columns"
    arguments = ("train", "roles", files / "brackets", "--props", files / name, "--model", files / "m.tw")
    assert fail(*arguments) == message


@pytest.mark.parametrize("name", ["conllu", "brackets", "props"])
def test_trees_are_no_samples_to_mine(fail, files, name):
    expected = "expected samples, a label and features per line"
    message = f"treewright: {files / name} looks like {LOOKS[name]}; {expected}"
    assert fail("mine", files / name, "--out", files / "found.tsv") == message


@pytest.mark.parametrize("name", ["text", "props", "binary"])
def test_a_kernel_says_what_it_reads(fail, files, name):
    message = fail("kernel", files / name, "--out", files / "gram.npy")
    assert "; expected brackets, CoNLL-U, or lines of SVM-light-TK" in message


def test_rows_without_tabs_are_told_to_need_them(fail, files):
    spaced = files / "spaced"
    spaced.write_bytes(CONTENTS["conllu"].replace(b"\t", b" "))
    expected = f"treewright: {spaced}:1: 1 column; expected 10, separated by tabs"
    assert fail("evaluate", spaced, spaced) == expected


@pytest.mark.parametrize("line", ["1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1", "1\ta\tb\tc", "# text\n+1 a b"])
def test_samples_are_not_taken_for_trees(line):
    assert tell_trees(f"{line}\n".encode()) is None
