"""Training and using a neural left-corner parser from the command line."""

import sys

import pytest
from commands import run

import treewright as tw
from treewright._optional import install_command
from treewright.parsing.constituent.annotator import ConstituentAnnotator

TRAIN = ("train", "leftcorner")
SMALL = ("--units", 16, "--embedding", 8, "--min-count", 2, "--batch-size", 200, "--learning-rate", 0.02)
QUICK = (*SMALL, "--epochs", 3, "--beam", 6, "--device", "cpu")


@pytest.fixture(scope="module")
def bank():
    return tw.make_treebank(50, random_state=0)


@pytest.fixture(scope="module")
def data(bank, tmp_path_factory):
    """Make a folder with a small treebank, whole and without trees."""
    folder = tmp_path_factory.mktemp("treebank")
    tw.write_brackets(bank.constituents[:40], folder / "train.mrg")
    tw.write_brackets(bank.constituents[40:], folder / "test.mrg")
    tw.write_conllu(bank.dependencies[40:], folder / "test.conllu")
    return folder


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """Train a parser; return its file and what was told meanwhile."""
    pytest.importorskip("torch", reason="training needs PyTorch")
    model = tmp_path_factory.mktemp("model") / "parser.tw"
    shown = run(*TRAIN, data / "train.mrg", "--dev", data / "test.mrg", "--model", model, *QUICK).stderr
    return model, shown


@pytest.fixture
def model(trained):
    return trained[0]


@pytest.fixture(scope="module")
def own_tags(data, tmp_path_factory):
    """Make a parser that tags."""
    pytest.importorskip("torch", reason="training needs PyTorch")
    model = tmp_path_factory.mktemp("tagging") / "parser.tw"
    run(*TRAIN, data / "train.mrg", "--model", model, "--tags", "predicted", "--folds", 2, *QUICK)
    return model


def parse(model, source, out, *options):
    run("parse", model, source, "--output", out, *options)
    return tw.read_brackets(out)


def test_training_leaves_a_model_and_says_how_it_goes(trained):
    model, shown = trained
    assert [path.name for path in model.parent.iterdir()] == ["parser.tw"]
    assert "40 sentences, " in shown
    assert "epoch 3/3: loss " in shown
    assert shown.endswith(f"written: {model}\n")


def test_options_reach_the_parser(data, tmp_path):
    pytest.importorskip("torch", reason="training needs PyTorch")
    options = {
        "tags": "predicted", "cell": "tanh", "units": 5, "embedding": 4, "min_count": 3, "min_chain": 2,
        "optimizer": "momentum", "learning_rate": 0.1, "weight_decay": 0.02, "dropout": 0.1,
        "batch_size": 300, "epochs": 1, "patience": 2, "beam": 3, "branching": 4, "max_projections": 3,
        "folds": 2,
    }  # fmt: skip
    given = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)]
    run(*TRAIN, data / "train.mrg", "--model", tmp_path / "m", "--max-length", 9, *given, "--seed", 7)
    parser = tw.load(tmp_path / "m")
    assert parser.random_state == 7
    assert {name: getattr(parser, name) for name in options} == options


def test_files_and_how_to_run_reach_the_parser(data, tmp_path, monkeypatch):
    seen = {}

    def fit(self, trees, dev=None, *, progress=None, checkpoint=None):
        seen.update(trees=trees, dev=dev, device=self.device, n_jobs=self.n_jobs)
        return self

    monkeypatch.setattr(tw.LeftCornerParser, "fit", fit)
    monkeypatch.setattr(tw.LeftCornerParser, "save", lambda self, path, *, compact: None)
    options = ["--dev", data / "test.mrg", "--max-length", 9]
    run(*TRAIN, data / "train.mrg", "--model", tmp_path / "m", *options)
    for name, part in (("train", "trees"), ("test", "dev")):
        whole = tw.read_brackets(data / f"{name}.mrg")
        assert seen.pop(part) == [tree for tree in whole if len(tree.words()) <= 9] != whole
    run(*TRAIN, data / "train.mrg", "--model", tmp_path / "m", "--device", "cuda", "--jobs", 3)
    assert (seen["device"], seen["n_jobs"], seen["dev"]) == ("cuda", 3, None)


def test_parses_are_those_of_the_parser(model, data, tmp_path):
    trees = tw.read_brackets(data / "test.mrg")
    parsed = parse(model, data / "test.mrg", tmp_path / "out.mrg")
    assert parsed == tw.load(model).predict(trees)
    assert [tree.words() for tree in parsed] == [tree.words() for tree in trees]
    assert parsed == parse(model, data / "test.conllu", tmp_path / "same.mrg")


def test_neither_jobs_nor_batches_show_in_the_result(model, data, tmp_path, monkeypatch):
    expected = parse(model, data / "test.mrg", tmp_path / "whole.mrg")
    monkeypatch.setattr(ConstituentAnnotator, "n_at_once", 3)
    assert parse(model, data / "test.mrg", tmp_path / "parts.mrg", "--jobs", 2) == expected


def test_candidates_are_lines_with_sentence_rank_score_and_tree(model, data, tmp_path):
    out = tmp_path / "out.tsv"
    run("parse", model, data / "test.mrg", "--kbest", 3, "--output", out)
    expected = tw.load(model).kbest(tw.read_brackets(data / "test.mrg"), 3)
    assert out.read_text().splitlines() == [
        f"{number}\t{rank}\t{parse.score:.4f}\t{parse.tree}"
        for number, parses in enumerate(expected, 1)
        for rank, parse in enumerate(parses, 1)
    ]


def test_parsing_needs_no_pytorch(model, data, tmp_path, monkeypatch):
    expected = parse(model, data / "test.mrg", tmp_path / "one.mrg")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert parse(model, data / "test.mrg", tmp_path / "other.mrg") == expected


def test_a_parser_with_a_tagger_reads_words_alone_or_takes_gold_tags(own_tags, tmp_path):
    source = tmp_path / "in.mrg"
    source.write_text("(X (UH The) (UH fox) (UH sang))\n")
    (parsed,) = parse(own_tags, source, tmp_path / "out.mrg")
    assert parsed.words() == ["The", "fox", "sang"]
    assert parsed.tags() != ["UH", "UH", "UH"]
    assert parse(own_tags, source, tmp_path / "out.mrg", "--tags", "predicted") == [parsed]
    (parsed,) = parse(own_tags, source, tmp_path / "out.mrg", "--tags", "gold")
    assert parsed.tags() == ["UH", "UH", "UH"]


def test_plain_text_is_split_into_sentences_and_words(own_tags, tmp_path):
    pytest.importorskip("spacy")
    (tmp_path / "in.txt").write_text("The fox sang. Why (not)?\n")
    parsed = parse(own_tags, tmp_path / "in.txt", tmp_path / "out.mrg", "--raw")
    assert [tree.words() for tree in parsed] == [
        ["The", "fox", "sang", "."],
        ["Why", "-LRB-", "not", "-RRB-", "?"],
    ]


@pytest.mark.slow
def test_an_interrupted_training_is_not_thrown_away(fail, trained, data, tmp_path, monkeypatch):
    model, checkpoint = tmp_path / "parser.tw", tmp_path / "parser.tw.checkpoint"
    arguments = [*TRAIN, data / "train.mrg", "--dev", data / "test.mrg", "--model", model, *QUICK]

    def stop_at_the_second_epoch(line):
        if line.startswith("epoch 2"):
            raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr("treewright.parsing.leftcorner.parser.report", stop_at_the_second_epoch)
        with pytest.raises(RuntimeError):
            run(*arguments)
    expected = f"{checkpoint} exists from an interrupted run; add --resume, or delete the folder"
    assert fail(*arguments) == f"treewright: {expected}"
    message = fail(*arguments, "--resume", "--seed", 1, "--quiet")
    assert message == (
        f"treewright: {checkpoint} is a checkpoint of a run with other data or options; "
        "use the data and options of that run, or delete the folder "
        "(see docs/howto/troubleshooting.md#checkpoints)"
    )
    run(*arguments, "--resume")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parser.tw"]
    parsed = parse(model, data / "test.mrg", tmp_path / "one.mrg")
    assert parsed == parse(trained[0], data / "test.mrg", tmp_path / "other.mrg")


def test_help_and_what_is_missing_need_no_pytorch(fail, data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "--learning-rate" in run(*TRAIN, "--help").stdout
    message = fail(*TRAIN, data / "train.mrg", "--model", tmp_path / "m")
    assert message == f"treewright: torch is not installed; install it with: {install_command('neural')}"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--tags", "x", "--tags is 'x'; expected one of gold, predicted"),
        ("--cell", "x", "--cell is 'x'; expected one of gated, tanh, sigmoid"),
        ("--optimizer", "x", "--optimizer is 'x'; expected one of adam, momentum"),
        ("--learning-rate", "0", "--learning-rate is '0'; expected a number from 1e-08 to 10"),
        ("--dropout", "1", "--dropout is '1'; expected a number from 0 to 0.9"),
        ("--units", "0", "--units is '0'; expected an integer of at least 1"),
        ("--epochs", "x", "--epochs is 'x'; expected an integer"),
    ],
)
def test_options_of_training_that_have_no_meaning_are_one_line(fail, data, tmp_path, option, value, expected):
    message = fail(*TRAIN, data / "train.mrg", "--model", tmp_path / "m", option, value)
    assert message.startswith(f"treewright: {expected}")
    assert not list(tmp_path.iterdir())


def test_a_device_that_is_not_there_is_one_line(fail, data, tmp_path):
    pytest.importorskip("torch", reason="devices are those of PyTorch")
    message = fail(*TRAIN, data / "train.mrg", "--model", tmp_path / "m", "--device", "abacus")
    assert message.startswith("treewright: device is 'abacus'; expected a device that PyTorch can use")


def test_files_that_cannot_be_used_are_one_line(fail, data, tmp_path):
    model, train = tmp_path / "m", data / "train.mrg"
    message = fail(*TRAIN, train, "--model", model, "--max-length", 1)
    assert message == f"treewright: {train} has no sentences of up to 1 words; expected at least one"
    message = fail(*TRAIN, tmp_path / "none.mrg", "--model", model)
    assert message == f"treewright: {tmp_path / 'none.mrg'}: No such file or directory"
    message = fail(*TRAIN, train, "--model", train)
    assert message == f"treewright: --model is {train}, which is also TRAIN; expected another file"


def test_options_of_parse_that_have_no_meaning_are_one_line(fail, model, data, tmp_path):
    source, text = data / "test.mrg", tmp_path / "in.txt"
    assert fail("parse", model, source, "--confidence") == (
        "treewright: --confidence does not work with a LeftCornerParser, which predicts constituents; "
        "expected a model that predicts dependencies"
    )
    assert fail("parse", model, source, "--predicates-from", source) == (
        "treewright: --predicates-from does not work with a LeftCornerParser, which predicts constituents; "
        "expected a model that predicts roles"
    )
    assert fail("parse", model, source, "--tags", "predicted") == (
        "treewright: the parser has no tagger of its own; expected a parser trained with --tags predicted"
    )
    text.write_text("The fox sang.")
    assert fail("parse", model, text, "--raw").startswith(
        f"treewright: {text} is plain text, which has no tags, but this LeftCornerParser needs tags; expected"
    )
