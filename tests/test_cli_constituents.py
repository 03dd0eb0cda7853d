"""Training and using a constituency parser from the command line."""

import json
import re

import pytest
from commands import run

import treewright as tw
from treewright.parsing.constituent.annotator import ConstituentAnnotator

TRAIN = ("train", "constituent")
QUICK = ("--lowest-penalty", 5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder with a small treebank, whole and without trees, and a parser trained on it."""
    folder = tmp_path_factory.mktemp("constituents")
    bank = tw.make_treebank(80, random_state=0)
    tw.write_brackets(bank.constituents[:60], folder / "train.mrg")
    tw.write_brackets(bank.constituents[60:], folder / "test.mrg")
    tw.write_conllu(bank.dependencies[60:], folder / "test.conllu")
    options = ["--dev", folder / "test.mrg", "--model", folder / "parser.tw", *QUICK]
    run(*TRAIN, folder / "train.mrg", *options)
    return folder


@pytest.fixture(scope="module")
def own_tags(folder, tmp_path_factory):
    """Make a parser that tags."""
    model = tmp_path_factory.mktemp("tagging") / "parser.tw"
    run(*TRAIN, folder / "train.mrg", "--model", model, "--tags", "predicted", "--folds", 2, *QUICK)
    return model


def parse(model, source, out, *options):
    run("parse", model, source, "--output", out, *options)
    return tw.read_brackets(out)


def test_training_leaves_a_model_and_nothing_else(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "parser.tw", "test.conllu", "test.mrg", "train.mrg"
    ]  # fmt: skip


def test_training_says_how_it_goes(folder, tmp_path):
    shown = run(*TRAIN, folder / "train.mrg", "--model", tmp_path / "m", "--lowest-penalty", 20).stderr
    assert "54 sentences, " in shown  # a tenth of them is held out
    steps = re.findall(r"^penalty (\S+): .* dev F1 (\S+)$", shown, flags=re.MULTILINE)
    penalty, score = max(steps, key=lambda step: float(step[1]))
    assert f"chosen: penalty {penalty} with dev F1 {score}, the best of {len(steps)} penalties\n" in shown
    assert shown.endswith(f"written: {tmp_path / 'm'}\n")


@pytest.mark.slow
def test_options_reach_the_parser(folder, tmp_path):
    options = {
        "strategy": "original", "max_children": 4, "head_rules": "yamada-matsumoto", "min_count": 3,
        "sample_size": 500, "eta": 0.8, "min_gain": 0.2, "slack": 0.1, "lowest_penalty": 20.0,
        "patience": 2, "max_inferences": 900, "runs": 2, "folds": 3, "tags": "predicted",
    }  # fmt: skip
    given = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)]
    run(*TRAIN, folder / "train.mrg", "--model", tmp_path / "m", *given, "--any-children", "--seed", 7)
    parser = tw.load(tmp_path / "m")
    assert {name: getattr(parser, name) for name in options} == options
    assert (parser.any_children, parser.random_state) == (True, 7)


def test_defaults_are_those_of_the_parser(folder):
    parser, plain = tw.load(folder / "parser.tw"), tw.ConstituentParser(lowest_penalty=5.0)
    names = [name for name in vars(plain) if name not in ("n_jobs", "atoms")]
    assert [getattr(parser, name) for name in names] == [getattr(plain, name) for name in names]


def test_parses_of_brackets_score_well_against_untouched_gold(folder, tmp_path):
    out = tmp_path / "out.mrg"
    parsed = parse(folder / "parser.tw", folder / "test.mrg", out)
    assert [tree.words() for tree in parsed] == [
        tree.words() for tree in tw.read_brackets(folder / "test.mrg")
    ]
    for options in ([], ["--max-length", 15]):
        score = json.loads(run("evaluate", folder / "test.mrg", out, "--json", *options).stdout)
        assert score["f1"] > 70
        assert score["n_errors"] == score["n_skipped"] == 0


def test_long_sentences_are_left_out_of_scores_by_their_gold_length(folder, tmp_path):
    out = tmp_path / "out.mrg"
    parse(folder / "parser.tw", folder / "test.mrg", out)
    score = json.loads(run("evaluate", folder / "test.mrg", out, "--json", "--max-length", 9).stdout)
    lengths = [len(tree.words()) for tree in tw.read_brackets(folder / "test.mrg")]
    assert score["n_sentences"] == sum(length <= 9 for length in lengths) < len(lengths)


def test_trees_of_the_input_do_not_matter(folder, tmp_path):
    flat = tmp_path / "flat.mrg"
    trees = tw.read_brackets(folder / "test.mrg")
    pairs = [zip(tree.words(), tree.tags(), strict=True) for tree in trees]
    tw.write_brackets(
        [tw.ConstTree("X", [tw.ConstTree(tag, [word]) for word, tag in pair]) for pair in pairs], flat
    )
    expected = parse(folder / "parser.tw", folder / "test.mrg", tmp_path / "one.mrg")
    assert parse(folder / "parser.tw", flat, tmp_path / "other.mrg") == expected


def test_traces_and_functions_of_the_input_do_not_matter(folder, tmp_path):
    source = tmp_path / "in.mrg"
    source.write_text("( (S (NP-SBJ-1 (DT The) (NN fox)) (VP (VBD sang) (NP (-NONE- *T*-1)))\n (. .)) )\n")
    plain = tmp_path / "plain.mrg"
    plain.write_text("(S (DT The) (NN fox) (VBD sang) (. .))\n")
    parsed = parse(folder / "parser.tw", source, tmp_path / "one")
    assert parsed[0].words() == ["The", "fox", "sang", "."]
    assert parsed == parse(folder / "parser.tw", plain, tmp_path / "other")


def test_conllu_gives_words_and_xpos(folder, tmp_path):
    parser = tw.load(folder / "parser.tw")
    parsed = parse(folder / "parser.tw", folder / "test.conllu", tmp_path / "out.mrg")
    assert parsed == parser.predict(tw.read_conllu(folder / "test.conllu"))


def test_brackets_among_words_are_written_as_treebanks_do(folder, tmp_path):
    source = tmp_path / "in.conllu"
    tw.write_conllu([tw.DepTree(["(", "fox", ")"], xpos=["(", "NN", ")"])], source)
    (parsed,) = parse(folder / "parser.tw", source, tmp_path / "out.mrg")
    assert parsed.words() == ["-LRB-", "fox", "-RRB-"]
    assert parsed.tags() == ["-LRB-", "NN", "-RRB-"]


def test_candidates_are_lines_with_sentence_rank_score_and_tree(folder, tmp_path):
    out = tmp_path / "out.tsv"
    run("parse", folder / "parser.tw", folder / "test.mrg", "--kbest", 3, "--output", out)
    rows = [line.split("\t") for line in out.read_text().splitlines()]
    expected = tw.load(folder / "parser.tw").kbest(tw.read_brackets(folder / "test.mrg"), 3)
    assert [row[:2] for row in rows] == [
        [str(number), str(rank)]
        for number, parses in enumerate(expected, 1)
        for rank in range(1, len(parses) + 1)
    ]
    found = [(f"{parse.score:.4f}", str(parse.tree)) for parses in expected for parse in parses]
    assert [tuple(row[2:]) for row in rows] == found


def test_the_first_candidates_are_the_parses(folder, tmp_path):
    out = tmp_path / "out.tsv"
    run("parse", folder / "parser.tw", folder / "test.mrg", "--kbest", 2, "--output", out)
    rows = [line.split("\t") for line in out.read_text().splitlines()]
    best = [tw.ConstTree.parse(row[3]) for row in rows if row[1] == "1"]
    assert best == parse(folder / "parser.tw", folder / "test.mrg", tmp_path / "out.mrg")


def test_neither_jobs_nor_batches_show_in_the_result(folder, tmp_path, monkeypatch):
    expected = parse(folder / "parser.tw", folder / "test.mrg", tmp_path / "whole.mrg")
    monkeypatch.setattr(ConstituentAnnotator, "n_at_once", 7)
    assert parse(folder / "parser.tw", folder / "test.mrg", tmp_path / "parts.mrg", "--jobs", 2) == expected


def test_only_short_sentences_are_learnt_from_and_looked_at(folder, tmp_path):
    seen = {}

    def fit(self, trees, dev=None, *, progress=None, checkpoint=None):
        seen.update(trees=trees, dev=dev)
        return self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tw.ConstituentParser, "fit", fit)
        patch.setattr(tw.ConstituentParser, "save", lambda self, path, *, compact: None)
        options = ["--dev", folder / "test.mrg", "--max-length", 9]
        run(*TRAIN, folder / "train.mrg", "--model", tmp_path / "m", *options)
    for name, part in (("train", "trees"), ("test", "dev")):
        whole = tw.read_brackets(folder / f"{name}.mrg")
        assert seen[part] == [tree for tree in whole if len(tree.words()) <= 9] != whole


def test_a_parser_with_a_tagger_reads_words_alone(own_tags, folder, tmp_path):
    bare = tmp_path / "bare.conllu"
    trees = tw.read_brackets(folder / "test.mrg")
    tw.write_conllu([tw.DepTree(tree.words()) for tree in trees], bare)
    parsed = parse(own_tags, bare, tmp_path / "out.mrg")
    assert [tree.words() for tree in parsed] == [tree.words() for tree in trees]
    assert parsed == parse(own_tags, folder / "test.mrg", tmp_path / "same.mrg")


def test_a_parser_with_a_tagger_can_take_gold_tags(own_tags, folder, tmp_path):
    source = tmp_path / "in.mrg"
    source.write_text("(X (UH The) (UH fox) (UH sang))\n")
    (parsed,) = parse(own_tags, source, tmp_path / "out.mrg", "--tags", "gold")
    assert parsed.tags() == ["UH", "UH", "UH"]
    (parsed,) = parse(own_tags, source, tmp_path / "out.mrg", "--tags", "predicted")
    assert parsed.tags() != ["UH", "UH", "UH"]


def test_plain_text_is_split_into_sentences_and_words(own_tags, tmp_path):
    pytest.importorskip("spacy")
    (tmp_path / "in.txt").write_text("The fox sang. A sailor\nslept!\n\nWhy (not)?\n")
    parsed = parse(own_tags, tmp_path / "in.txt", tmp_path / "out.mrg", "--raw")
    assert [tree.words() for tree in parsed] == [
        ["The", "fox", "sang", "."],
        ["A", "sailor", "slept", "!"],
        ["Why", "-LRB-", "not", "-RRB-", "?"],
    ]


@pytest.mark.slow
def test_an_interrupted_training_is_not_thrown_away(fail, folder, tmp_path, monkeypatch):
    model, checkpoint = tmp_path / "parser.tw", tmp_path / "parser.tw.checkpoint"
    arguments = [*TRAIN, folder / "train.mrg", "--dev", folder / "test.mrg", "--model", model, *QUICK]

    def stop_at_the_second_step(line):
        stop_at_the_second_step.n_steps += line.startswith("penalty")
        if stop_at_the_second_step.n_steps == 2:
            raise RuntimeError

    stop_at_the_second_step.n_steps = 0
    with monkeypatch.context() as patch:
        patch.setattr("treewright.parsing.constituent.parser.report", stop_at_the_second_step)
        with pytest.raises(RuntimeError):
            run(*arguments)
    expected = f"{checkpoint} exists from an interrupted run; add --resume, or delete the folder"
    assert fail(*arguments) == f"treewright: {expected}"
    run(*arguments, "--resume")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parser.tw"]
    parsed = parse(model, folder / "test.mrg", tmp_path / "one.mrg")
    assert parsed == parse(folder / "parser.tw", folder / "test.mrg", tmp_path / "other.mrg")


def test_a_checkpoint_of_other_options_is_one_line(fail, folder, tmp_path):
    checkpoint = tmp_path / "m.checkpoint"
    trees = tw.read_brackets(folder / "train.mrg")
    tw.ConstituentParser(lowest_penalty=20).fit(trees, checkpoint=checkpoint)
    message = fail_after_progress(fail, *TRAIN, folder / "train.mrg", "--model", tmp_path / "m", "--resume")
    found = (
        f"{checkpoint} is a checkpoint of a run with other data or options; "
        "use the data and options of that run, or delete the folder"
    )
    assert message.endswith(f"{found} (see docs/howto/troubleshooting.md#checkpoints)")


def fail_after_progress(fail, *arguments):
    """Run a command that fails after it has told something; return its last line."""
    return fail(*arguments, "--quiet")


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--strategy", "x", "--strategy is 'x'; expected one of shift-reduce, original"),
        ("--tags", "x", "--tags is 'x'; expected one of gold, predicted"),
        ("--head-rules", "x", "--head-rules is 'x'; expected one of"),
        ("--eta", "2", "--eta is '2'; expected a number from 1e-06 to 0.999"),
        ("--lowest-penalty", "0", "--lowest-penalty is '0'; expected a number"),
        ("--max-children", "0", "--max-children is '0'; expected an integer of at least 1"),
        ("--runs", "0", "--runs is '0'; expected an integer of at least 1"),
    ],
)
def test_options_of_training_that_have_no_meaning_are_one_line(
    fail, folder, tmp_path, option, value, expected
):
    message = fail(*TRAIN, folder / "train.mrg", "--model", tmp_path / "m", option, value)
    assert message.startswith(f"treewright: {expected}")


def test_what_cannot_be_learnt_from_is_one_line(fail, folder, tmp_path):
    model, empty, broken = tmp_path / "m", tmp_path / "empty.mrg", tmp_path / "broken.mrg"
    empty.write_text("\n")
    broken.write_text("(S (NN a))\n\n(S (NN b)\n")
    train = folder / "train.mrg"
    assert (
        fail(*TRAIN, empty, "--model", model)
        == f"treewright: {empty} has no sentences; expected at least one"
    )
    message = fail(*TRAIN, train, "--dev", empty, "--model", model)
    assert message == f"treewright: {empty} has no sentences; expected at least one"
    message = fail(*TRAIN, train, "--model", model, "--max-length", 1)
    assert message == f"treewright: {train} has no sentences of up to 1 words; expected at least one"
    expected = f"{broken}:3: end of input inside the tree that begins in line 3; expected 1 more ')'"
    assert fail(*TRAIN, broken, "--model", model) == f"treewright: {expected}"
    message = fail(*TRAIN, folder / "test.conllu", "--model", model)
    assert message == f"treewright: {folder / 'test.conllu'} looks like CoNLL-U; expected trees in brackets"
    message = fail(*TRAIN, tmp_path / "none.mrg", "--model", model)
    assert message == f"treewright: {tmp_path / 'none.mrg'}: No such file or directory"
    assert not model.exists()


@pytest.mark.parametrize("name", ["TRAIN", "--dev"])
def test_a_treebank_is_not_written_over_by_a_model(fail, folder, name):
    paths = {"TRAIN": folder / "train.mrg", "--dev": folder / "test.mrg"}
    message = fail(*TRAIN, paths["TRAIN"], "--dev", paths["--dev"], "--model", paths[name])
    assert message == f"treewright: --model is {paths[name]}, which is also {name}; expected another file"


def test_broken_brackets_are_one_line_and_leave_no_output(fail, folder, tmp_path):
    source, out = tmp_path / "in.mrg", tmp_path / "out.mrg"
    source.write_text("(S (NN fox))\n(S (NN fox)))\n")
    message = fail("parse", folder / "parser.tw", source, "--output", out)
    assert message == f"treewright: {source}:2: an unmatched ')'; expected '(' or the end"
    source.write_text("S (NN fox))\n")
    message = fail("parse", folder / "parser.tw", source, "--output", out)
    assert message == f"treewright: {source}:1: 'S' outside brackets; expected '('"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.mrg"]


def test_a_parser_that_needs_tags_refuses_sentences_without(fail, folder, tmp_path):
    source, text = tmp_path / "bare.conllu", tmp_path / "in.txt"
    tw.write_conllu([tw.DepTree(["a"], xpos=["DT"]), tw.DepTree(["a", "fox"])], source)
    needs = "but this ConstituentParser needs tags"
    remedy = "or a model trained with --tags predicted (see docs/howto/troubleshooting.md#tags)"
    message = fail("parse", folder / "parser.tw", source)
    found = f"{source}: sentence 2 has no tags in XPOS, {needs}"
    assert message == f"treewright: {found}; expected tags in XPOS, {remedy}"
    text.write_text("The fox sang.")
    message = fail("parse", folder / "parser.tw", text, "--raw")
    assert message == f"treewright: {text} is plain text, which has no tags, {needs}; expected tags, {remedy}"
    message = fail("parse", folder / "parser.tw", folder / "test.mrg", "--tags", "predicted")
    assert message == (
        "treewright: the parser has no tagger of its own; expected a parser trained with --tags predicted"
    )


def test_words_that_brackets_cannot_hold_are_one_line(fail, folder, tmp_path):
    source = tmp_path / "in.conllu"
    tw.write_conllu([tw.DepTree(["10 000", "foxes"], xpos=["CD", "NNS"])], source)
    message = fail("parse", folder / "parser.tw", source)
    assert message == (
        f"treewright: {source}: sentence 1 has '10 000'; expected words and tags without white space"
    )


def test_options_of_parse_that_have_no_meaning_are_one_line(fail, folder):
    model, source = folder / "parser.tw", folder / "test.mrg"
    message = fail("parse", model, source, "--confidence")
    assert message == (
        "treewright: --confidence does not work with a ConstituentParser, which predicts constituents; "
        "expected a model that predicts dependencies"
    )
    message = fail("parse", model, source, "--tags", "x")
    assert message == "treewright: --tags is 'x'; expected one of gold, predicted"
    message = fail("explain", model, source)
    found = f"{model} is a ConstituentParser, which has no features to show"
    assert message.startswith(f"treewright: {found}; expected a pipeline or a dependency parser")


def test_trees_are_not_written_over_by_parses(fail, folder):
    source = folder / "test.mrg"
    before = source.read_bytes()
    message = fail("parse", folder / "parser.tw", source, "--output", source)
    assert message == f"treewright: --output is {source}, which is also INPUT; expected another file"
    assert source.read_bytes() == before


def test_a_model_that_parses_nothing_is_one_line(fail, folder, tmp_path):
    data = tw.make_conjunctions(n_samples=60, n_features=10, n_active=3, orders=(1, 1), random_state=0)
    tw.L1BoostedTrees(max_trees=2).fit(data.X, data.y).save(tmp_path / "other.tw")
    message = fail("parse", tmp_path / "other.tw", folder / "test.mrg")
    expected = f"{tmp_path / 'other.tw'} is a L1BoostedTrees; expected a parser, a tagger or a role labeler"
    assert message == f"treewright: {expected}"


def test_propositions_are_no_sentences_to_parse(fail, folder, tmp_path):
    (tmp_path / "in.props").write_text("fox -\n")
    message = fail("parse", folder / "parser.tw", tmp_path / "in.props")
    assert message.endswith("in.props looks like PropBank columns; expected trees in brackets or CoNLL-U")
