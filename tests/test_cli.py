import gzip
import json
import os
import re
import subprocess
import sys

import commands
import pytest

import treewright as tw
from treewright import cli

GOLD = """\
# text = Mary sleeps .
1\tMary\tMary\tPROPN\tNNP\t_\t2\tnsubj\t_\t_
2\tsleeps\tsleep\tVERB\tVBZ\t_\t0\troot\t_\t_
3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

"""
BRACKETS = "( (S (NP-SBJ (NNP Mary)) (VP (VBZ sleeps)) (. .)) )\n"


def run(*arguments):
    """Run a command that should succeed; return what it prints."""
    return commands.run(*arguments).output


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.conllu"
    path.write_text(GOLD)
    return path


@pytest.fixture
def brackets(tmp_path):
    path = tmp_path / "gold.mrg"
    path.write_text(BRACKETS)
    return path


def test_convert_turns_brackets_into_dependencies(brackets, tmp_path):
    run("convert", brackets, tmp_path / "out.conllu")
    (tree,) = tw.read_conllu(tmp_path / "out.conllu")
    assert (tree.words, tree.heads.tolist()) == (["Mary", "sleeps", "."], [2, 0, 2])


def test_convert_follows_the_chosen_head_rules(tmp_path):
    source = tmp_path / "in.mrg"
    source.write_text("(VP (TO to) (VP (VB go)))\n")
    run("convert", source, tmp_path / "out.conllu", "--rules", "collins")
    assert tw.read_conllu(tmp_path / "out.conllu")[0].heads.tolist() == [0, 1]


def test_convert_strips_functions_unless_told_to_keep_them(brackets, tmp_path):
    run("convert", brackets, tmp_path / "plain.mrg")
    run("convert", brackets, tmp_path / "kept.mrg", "--functions")
    assert (tmp_path / "plain.mrg").read_text().startswith("(S (NP (NNP Mary))")
    assert (tmp_path / "kept.mrg").read_text().startswith("(S (NP-SBJ (NNP Mary))")


@pytest.mark.parametrize("name", ["out.conll", "out.conll09", "out.conllu.gz"])
def test_convert_tells_the_format_from_the_name(gold, tmp_path, name):
    run("convert", gold, tmp_path / name)
    run("convert", tmp_path / name, tmp_path / "back.conllu")
    (tree,) = tw.read_conllu(tmp_path / "back.conllu")
    assert (tree.words, tree.heads.tolist()) == (["Mary", "sleeps", "."], [2, 0, 2])


def test_convert_may_rewrite_the_file_it_reads(gold):
    run("convert", gold, gold)
    assert gold.read_text() == GOLD


def test_convert_does_not_drop_functions_and_traces_from_the_file_it_reads(brackets, fail):
    found = "is also the input file, and would lose its function tags and traces"
    message = f"treewright: {brackets} {found}; expected another file, or --functions and --traces"
    assert fail("convert", brackets, brackets) == message
    assert fail("convert", brackets, brackets, "--functions") == message
    assert brackets.read_text() == BRACKETS
    run("convert", brackets, brackets, "--functions", "--traces")
    assert "NP-SBJ" in brackets.read_text()


def test_convert_does_not_write_another_format_over_the_file_it_reads(brackets, fail):
    expected = f"treewright: {brackets} is also the input file, in brackets format; expected another file"
    assert fail("convert", brackets, brackets, "--to", "conllu") == expected
    assert brackets.read_text() == BRACKETS


def test_convert_lifts_crossing_arcs_and_brings_them_back(tmp_path):
    source, lifted, back = (tmp_path / f"{name}.conllu" for name in ("in", "lifted", "back"))
    tw.write_conllu([tw.DepTree(["a", "b", "c", "d"], [3, 4, 0, 3], ["w", "x", "root", "z"])], source)
    run("convert", source, lifted, "--projectivize", "head")
    assert tw.is_projective(tw.read_conllu(lifted)[0])
    run("convert", lifted, back, "--deprojectivize")
    assert back.read_bytes() == source.read_bytes()


def test_commands_read_and_write_the_standard_streams(gold):
    command = [sys.executable, "-c", "from treewright.__main__ import main; main()"]
    arguments = ["convert", "-", "-", "--to", "conllu"]
    done = subprocess.run(command + arguments, input=GOLD.encode(), capture_output=True, check=True)
    assert done.stdout.decode() == GOLD


def test_gzip_is_read_whatever_the_name(gold, tmp_path):
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(GOLD.encode()))
    assert "100.00" in run("evaluate", gold, packed)


def test_evaluate_prints_attachment_scores(gold, tmp_path):
    predicted = tmp_path / "predicted.conllu"
    predicted.write_text(GOLD.replace("2\tpunct", "1\tpunct"))
    found = json.loads(run("evaluate", gold, predicted, "--json"))
    assert (found["uas"], found["n_tokens"], found["complete"]) == (pytest.approx(200 / 3), 3, 0)
    for option in ("--no-punctuation", "--penn-punctuation"):
        assert json.loads(run("evaluate", gold, predicted, "--json", option))["uas"] == 100
    assert "nsubj" in run("evaluate", gold, predicted, "--relations")


def test_evaluate_prints_parseval_for_brackets(brackets):
    found = json.loads(run("evaluate", brackets, brackets, "--json"))
    assert (found["f1"], found["n_gold"]) == (100, 3)


def test_evaluate_compares_two_predictions(gold):
    output = run("evaluate", gold, gold, "--against", gold)
    assert "uas: +0.00 points" in output
    assert "p = 1.0000" in output


def test_help_shows_an_example_for_every_command():
    for command in ("demo", "convert", "evaluate", "fetch"):
        assert f"Example: treewright {command}" in run(command, "--help")


def test_without_a_command_there_is_help():
    assert "Usage: treewright" in run()


def test_the_version_is_shown():
    assert run("--version").strip() == f"treewright {tw.__version__}"


def test_a_missing_file_is_one_line(fail):
    assert fail("evaluate", "no.conllu", "no.conllu") == "treewright: no.conllu: No such file or directory"


def test_a_folder_is_one_line(fail, tmp_path):
    assert fail("evaluate", tmp_path, tmp_path) == f"treewright: {tmp_path}: Is a directory"


def test_a_format_error_is_one_line_with_the_place(fail, gold, tmp_path):
    broken = tmp_path / "broken.conllu"
    broken.write_text(GOLD.replace("\t0\troot", "\tX9\troot"))
    expected = f"treewright: {broken}:3: HEAD is 'X9'; expected an integer from 0 to 3"
    assert fail("evaluate", gold, broken) == expected


def test_a_failed_conversion_leaves_the_old_output(fail, tmp_path):
    broken, out = tmp_path / "broken.conllu", tmp_path / "out.conllu"
    broken.write_text(GOLD + "1\ta\n")
    out.write_text("precious")
    fail("convert", broken, out)
    assert out.read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["broken.conllu", "out.conllu"]


def test_an_unwritable_output_names_the_output(fail, gold, tmp_path):
    out = tmp_path / "none" / "out.conllu"
    assert fail("convert", gold, out) == missing_folder(out)


def missing_folder(path):
    """Return the line that names a folder which is not there."""
    return f"treewright: {path}: the folder {path.parent} does not exist; create it, or choose another name"


def test_a_missing_folder_is_named_before_anything_is_read(fail, tmp_path):
    out = tmp_path / "nowhere" / "result"
    for command in (
        ("parse", "no.tw", "no.conllu", "--output", out),
        ("train", "dependency", "no.conllu", "--model", out),
        ("train", "roles", "no.mrg", "--props", "no.props", "--model", out),
        ("mine", "no.svmlight", "--out", out),
        ("mine", "no.svmlight", "--out", tmp_path / "found.tsv", "--model", out),
        ("kernel", "no.mrg", "--out", out),
        ("kernel", "no.mrg", "--out", tmp_path / "gram.npy", "--labels", out),
        ("evaluate", "no.conllu", "no.conllu", "--plot", out),
    ):
        assert fail(*command) == missing_folder(out)
    assert not list(tmp_path.iterdir())


def test_python_names_a_missing_folder_too(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist"):
        tw.write_conllu([], tmp_path / "nowhere" / "out.conllu")


def test_an_unknown_output_format_says_how_to_name_it(fail, gold, tmp_path):
    out = tmp_path / "out.xyz"
    expected = f"treewright: '{out}' has no known suffix; expected a suffix such as .conllu, or --to"
    assert fail("convert", gold, out) == expected


def test_an_impossible_conversion_says_what_is_possible(fail, gold, tmp_path):
    expected = "treewright: conllu contains dependencies; expected constituents"
    assert fail("convert", gold, tmp_path / "out.mrg") == expected


def test_an_unknown_format_lists_the_known_ones(fail, gold, tmp_path):
    message = fail("convert", gold, tmp_path / "x", "--to", "tiger")
    assert (
        message == "treewright: --to is 'tiger'; expected one of conllu, conllx, conll2009, brackets, props"
    )


def test_files_of_different_kinds_are_refused(fail, gold, brackets):
    assert "looks like trees in brackets" in fail("evaluate", gold, brackets)


def test_lifting_needs_heads_and_names_the_sentence(fail, tmp_path):
    source = tmp_path / "in.conllu"
    tw.write_conllu([tw.DepTree(["a"], [0]), tw.DepTree(["b"])], source)
    message = fail("convert", source, tmp_path / "out.conllu", "--projectivize", "path")
    assert message == f"treewright: {source}: sentence 2: word 1 has no head; expected a head for every word"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["evaluate"], "Missing argument"),
        (["dance"], "No such command 'dance'"),
        (["demo", "--colour"], "No such option"),
    ],
)
def test_wrong_usage_is_one_line(fail, arguments, part):
    assert part in fail(*arguments)


def test_fetch_lists_treebanks_with_short_name_and_language():
    lines = run("fetch", "--list").splitlines()
    assert len(lines) > 300
    assert ["UD_Hungarian-Szeged", "hu_szeged", "Hungarian"] in [line.split() for line in lines]


@pytest.mark.parametrize("text", ["hungarian", "hu", "hu_szeged", "UD_Hungarian-Szeged", "SZEGED"])
def test_fetch_lists_treebanks_of_a_language_or_with_a_part_of_a_name(text):
    assert run("fetch", "--list", text) == "UD_Hungarian-Szeged  hu_szeged  Hungarian\n"


def test_fetch_finds_languages_of_two_words():
    assert all("Ancient Greek" in line for line in run("fetch", "--list", "ancient greek").splitlines())


def test_fetch_lists_nothing_in_one_line(fail):
    expected = "expected a language or part of a name, such as English or EWT"
    found = f"treewright: no treebank has 'Hungrian' in its name; {expected}"
    assert fail("fetch", "--list", "Hungrian") == f"{found}; did you mean UD_Hungarian-Szeged?"


def test_fetch_without_a_name_says_how_to_find_one(fail):
    expected = "expected a name such as UD_English-EWT (treewright fetch --list lists all)"
    assert fail("fetch") == f"treewright: no treebank was given; {expected}"


def test_fetch_takes_a_language_code(fail):
    message = fail("fetch", "UD_Quenya-ABC", "--code", "Q")
    assert message == "treewright: --code is 'Q'; expected two or three lower-case letters, such as 'en'"


@pytest.mark.parametrize(
    ("arguments", "option", "value", "expected"),
    [
        (["serve", "a.tw"], "--port", "99999", "65535"),
        (["parse", "a.tw", "a.conllu"], "--jobs", "0", "1"),
        (["demo"], "--sentences", "many", "integer"),
    ],
)
def test_numbers_that_cannot_be_used_are_named_with_option_and_bound(
    fail, arguments, option, value, expected
):
    message = fail(*arguments, option, value)
    assert re.search(rf"{option} is '{value}'; expected .*\b{expected}\b", message)
    assert "see:" not in message


def test_output_to_a_closed_pipe_is_no_error(tmp_path):
    path = tmp_path / "long.conllu"
    path.write_text(GOLD * 5000)
    program = (
        f"{sys.executable} -c 'from treewright.__main__ import main; main()' convert {path} - --to conllu"
    )
    done = subprocess.run(
        ["bash", "-c", f"{program} | head -n 1; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr, done.returncode) == ("# text = Mary sleeps .\n", "", 0)


POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and shells are those of POSIX")


def run_program(*arguments, **options):
    program = [sys.executable, "-m", "treewright", *map(str, arguments)]
    return subprocess.run(program, capture_output=True, check=False, **options)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("text", [BRACKETS, "\n" * 200_000 + BRACKETS], ids=["at once", "after blanks"])
def test_brackets_are_told_by_content_on_standard_input(brackets, text, compressed):
    data = gzip.compress(text.encode()) if compressed else text.encode()
    done = run_program("evaluate", brackets, "-", "--json", input=data)
    assert (json.loads(done.stdout)["f1"], done.stderr) == (100, b"")


@POSIX
def test_a_pipe_given_as_a_file_is_read_once_and_whole(brackets, tmp_path):
    out = tmp_path / "out.conllu"
    program = f"{sys.executable} -m treewright convert <(cat {brackets}) {out}"
    subprocess.run(["bash", "-c", program], check=True)
    assert tw.read_conllu(out)[0].words == ["Mary", "sleeps", "."]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_drawings_can_be_printed_whatever_the_encoding(encoding, tmp_path):
    arguments = ("demo", "--sentences", "20", "--out", str(tmp_path / "demo"))
    done = run_program(*arguments, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.returncode == 0
    assert "►" in done.stdout.decode("utf-8")


@POSIX
def test_ctrl_c_ends_with_one_line(tmp_path):
    code = "import signal, treewright.cli as cli; signal.raise_signal(signal.SIGINT)"
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # if it was ignored
    program += f"import sys; from treewright import cli\n@cli.app.command()\ndef wait():\n    {code}\n"
    program += "sys.argv = ['treewright', 'wait']; from treewright.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("treewright: interrupted\n", 130)


def test_an_interrupt_that_typer_has_taken_is_told(monkeypatch, capsys):
    monkeypatch.setattr(cli, "app", lambda **options: 130)
    assert cli.run() == 130
    assert capsys.readouterr().err == "treewright: interrupted\n"


@POSIX
@pytest.mark.parametrize(
    ("redirection", "part"), [("<&-", "standard input is closed"), (">&-", "standard output is closed")]
)
def test_a_closed_stream_is_one_line(redirection, part):
    program = f"{sys.executable} -m treewright convert - - --from conllu --to conllu {redirection}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, input=GOLD)
    assert (part in done.stderr, done.stderr.count("\n"), done.returncode) == (True, 1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metric", "uas"], "--metric has no effect without --against; expected --against"),
        (["--seed", "3"], "--seed has no effect without --against; expected --against"),
        (["--relations", "--json"], "--relations has no effect with --json; expected no --json"),
        (["--max-length", "5"], "--max-length has no effect on CoNLL-U; expected brackets"),
        (["--no-punctuation", "--penn-punctuation"], "are both given; expected one of them"),
    ],
)
def test_options_without_meaning_are_refused(fail, gold, options, message):
    assert message in fail("evaluate", gold, gold, *options)


def test_punctuation_rules_are_refused_for_brackets(fail, brackets):
    assert "options for punctuation have no effect on brackets" in fail(
        "evaluate", brackets, brackets, "--no-punctuation"
    )


def test_a_negative_seed_is_one_line(fail, gold):
    message = fail("evaluate", gold, gold, "--against", gold, "--seed", "-1")
    assert re.match(r"treewright: .*--seed.*-1.*\b0\b", message)


def test_wrong_choices_are_blamed_on_the_option(fail, brackets, tmp_path):
    message = fail("convert", brackets, tmp_path / "x.conllu", "--rules", "mine")
    assert message == "treewright: --rules is 'mine'; expected one of yamada-matsumoto, collins"


def test_a_file_without_sentences_is_refused(fail, tmp_path):
    (tmp_path / "empty").write_text("")
    assert "has no sentences; expected at least one" in fail(
        "evaluate", tmp_path / "empty", tmp_path / "empty"
    )


def test_an_unknown_metric_is_named_as_an_option(gold, fail):
    message = fail("evaluate", gold, gold, "--against", gold, "--metric", "bleu")
    assert message.startswith("treewright: --metric is 'bleu'; expected one of uas, las")


def test_the_options_of_a_comparison_reach_the_test_of_significance(gold, tmp_path):
    other = tmp_path / "other.conllu"
    other.write_text(GOLD.replace("2\tpunct", "1\tpunct"))
    options = ["--against", other, "--json", "--metric", "complete"]
    whole = json.loads(run("evaluate", gold, gold, *options))["significance"]
    without = json.loads(run("evaluate", gold, gold, *options, "--no-punctuation"))["significance"]
    assert (whole["metric"], whole["difference"], without["difference"]) == ("complete", 100, 0)


OTHER_TOKENS = """\
1\tMary\tMary\tPROPN\tNNP\t_\t2\tnsubj\t_\t_
2\tsleeps.\tsleep\tVERB\tVBZ\t_\t0\troot\t_\t_

"""


@pytest.fixture
def other_tokens(tmp_path):
    path = tmp_path / "other_tokens.conllu"
    path.write_text(OTHER_TOKENS)
    return path


def test_evaluate_names_its_rows_in_words(gold, brackets):
    shown = run("evaluate", gold, gold)
    for row in ("Unlabeled attachment (UAS)", "Labeled attachment (LAS)", "Sentences with all heads correct"):
        assert row in shown
    assert "n_tokens" not in shown
    assert "Bracket F1" in run("evaluate", brackets, brackets)


def test_evaluate_aligns_other_tokens_by_characters(gold, other_tokens):
    shown = run("evaluate", gold, other_tokens)
    lines = re.sub(r" +", " ", shown)
    assert (
        "The words differ (sentence 1: 3 gold words but 2 predicted); they are aligned by characters" in lines
    )
    assert "precision recall F1" in lines
    assert "Tokens 50.00 33.33 40.00" in lines
    assert "CLAS and lemmas (BLEX) 0.00 0.00 0.00 0.00" in lines
    found = json.loads(run("evaluate", gold, other_tokens, "--json"))
    assert (found["words"]["precision"], found["las"]["n_aligned"]) == (50, 1)
    assert found["tokens"]["aligned_accuracy"] is None


def test_evaluate_has_all_columns_on_demand(gold):
    shown = run("evaluate", gold, gold, "--conll2018")
    assert "Universal features (UFeats)" in shown
    assert "differ" not in shown
    found = json.loads(run("evaluate", gold, gold, "--conll2018", "--json"))
    assert [*found][:3] == ["tokens", "sentences", "words"]
    assert {one["f1"] for one in found.values()} == {100}


@pytest.mark.parametrize(
    "options", [["--no-punctuation"], ["--penn-punctuation"], ["--relations"], ["--plot", "plot.svg"]]
)
def test_options_that_need_the_same_words_say_where_they_differ(fail, gold, other_tokens, options):
    difference = "sentence 1: 3 gold words but 2 predicted"
    expected = (
        f"treewright: {other_tokens}: {difference}; expected the same words, as required by {options[0]}"
    )
    assert fail("evaluate", gold, other_tokens, *options) == expected
    message = fail("evaluate", gold, gold, "--conll2018", *options)
    assert message == f"treewright: {options[0]} and --conll2018 are both given; expected one of them"


@pytest.mark.parametrize("predicted_differs", [True, False])
def test_predictions_with_other_tokens_are_not_compared(fail, gold, other_tokens, predicted_differs):
    files = (other_tokens, "--against", gold) if predicted_differs else (gold, "--against", other_tokens)
    difference = "sentence 1: 3 gold words but 2 predicted"
    assert fail("evaluate", gold, *files) == (
        f"treewright: {other_tokens}: {difference}; expected the same words, as required by --against"
    )


def test_evaluate_says_where_two_texts_differ(fail, gold, other_tokens):
    other_tokens.write_text(OTHER_TOKENS.replace("sleeps.", "slept."))
    assert fail("evaluate", gold, other_tokens) == (
        "treewright: the texts differ: gold has 'eps.' (sentence 1, token 2), "
        "predicted has 'pt.' (sentence 1, token 2); expected the same characters except whitespace"
    )


def test_several_roots_are_scored_on_demand(fail, gold, tmp_path):
    two_roots = tmp_path / "two_roots.conllu"
    two_roots.write_text(GOLD.replace("2\tnsubj", "0\tnsubj"))
    message = fail("evaluate", gold, two_roots, "--conll2018")
    assert message.startswith("treewright: predicted sentence 1 has 2 roots (words 1, 2); expected one")
    found = json.loads(run("evaluate", gold, two_roots, "--conll2018", "--multiple-roots", "--json"))
    assert found["uas"]["n_correct"] == 2
    assert json.loads(run("evaluate", gold, two_roots, "--json"))["uas"] == pytest.approx(200 / 3)
    message = fail("evaluate", gold, two_roots, "--multiple-roots")
    assert message.endswith("has no effect on attachment scores; add --conll2018")


@pytest.mark.parametrize("option", ["--conll2018", "--multiple-roots"])
def test_brackets_are_not_scored_as_in_conll_2018(fail, brackets, option):
    message = fail("evaluate", brackets, brackets, option)
    assert (
        message == "treewright: --conll2018 and --multiple-roots have no effect on brackets; expected CoNLL-U"
    )
