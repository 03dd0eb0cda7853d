"""Rerankers of constituency parsers from the command line."""

import sys

import pytest
from commands import run

import treewright as tw

LEFTCORNER, CONSTITUENT = ("train", "leftcorner"), ("train", "constituent")
SMALL = ("--units", 12, "--embedding", 6, "--min-count", 2, "--batch-size", 200, "--learning-rate", 0.03)
QUICK = {LEFTCORNER: (*SMALL, "--epochs", 3, "--beam", 6, "--device", "cpu"), CONSTITUENT: ()}
QUICK[CONSTITUENT] = ("--lowest-penalty", 15, "--max-inferences", 300)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Make a folder with a small treebank and a parser of each kind."""
    folder = tmp_path_factory.mktemp("data")
    trees = tw.make_treebank(40, random_state=0).constituents
    for name, part in (("train", trees[:24]), ("dev", trees[24:32]), ("test", trees[32:])):
        tw.write_brackets(part, folder / f"{name}.mrg")
    arguments = (folder / "train.mrg", "--dev", folder / "dev.mrg")
    run(*CONSTITUENT, *arguments, "--model", folder / "constituent.tw", *QUICK[CONSTITUENT])
    return folder


@pytest.fixture(scope="module")
def leftcorner(data):
    """Train a left-corner parser; return its file."""
    pytest.importorskip("torch", reason="training needs PyTorch")
    model = data / "leftcorner.tw"
    run(*LEFTCORNER, data / "train.mrg", "--dev", data / "dev.mrg", "--model", model, *QUICK[LEFTCORNER])
    return model


def train(command, data, model, *options):
    sources = (data / "train.mrg", "--dev", data / "dev.mrg")
    quick = () if "--parser" in options else QUICK[command]
    return run(*command, *sources, "--model", model, *quick, *options).stderr


def parse(model, source, out, *options):
    run("parse", model, source, "--output", out, *options)
    return tw.read_brackets(out)


def test_a_parser_is_trained_with_its_reranker_and_parses(data, tmp_path):
    pytest.importorskip("torch", reason="training needs PyTorch")
    model = tmp_path / "model.tw"
    shown = train(LEFTCORNER, data, model, "--rerank", "efficient-top", "--candidates", 4)
    assert [path.name for path in tmp_path.iterdir()] == ["model.tw"]
    assert "epoch 3/3: loss " in shown
    assert "dev F1 " in shown
    assert shown.endswith(f"written: {model}\n")
    reranker = tw.load(model)
    assert isinstance(reranker, tw.ConstituentReranker)
    assert (reranker.kernel, reranker.k, reranker.epochs, reranker.folds) == ("efficient-top", 4, 1, None)
    trees = tw.read_brackets(data / "test.mrg")
    assert parse(model, data / "test.mrg", tmp_path / "out.mrg") == reranker.predict(trees)
    out = tmp_path / "out.tsv"
    run("parse", model, data / "test.mrg", "--kbest", 2, "--jobs", 2, "--output", out)
    assert out.read_text().splitlines() == [
        f"{number}\t{rank}\t{parse.score:.4f}\t{parse.tree}"
        for number, parses in enumerate(reranker.kbest(trees, 2), 1)
        for rank, parse in enumerate(parses, 1)
    ]


def test_a_trained_parser_is_reranked_without_pytorch(data, leftcorner, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    model = tmp_path / "model.tw"
    shown = train(LEFTCORNER, data, model, "--rerank", "fisher", "--parser", leftcorner, "--candidates", 3)
    assert "epoch" not in shown
    reranker, parser = tw.load(model), tw.load(leftcorner)
    assert reranker.parser_.get_state().values == parser.get_state().values
    assert len(parse(model, data / "test.mrg", tmp_path / "out.mrg")) == 8


@pytest.mark.parametrize("kernel", ["none", "sst"])
def test_a_second_parser_joins(data, leftcorner, tmp_path, kernel):
    options = ("--rerank", kernel, "--others", leftcorner, "--parser", data / "constituent.tw")
    epochs = 2 if kernel == "sst" else 1
    options += ("--rerank-epochs", 2) if kernel == "sst" else ()
    train(CONSTITUENT, data, tmp_path / "model.tw", *options, "--candidates", 3)
    reranker = tw.load(tmp_path / "model.tw")
    assert [type(each) for each in (reranker.parser_, *reranker.others)] == [
        tw.ConstituentParser,
        tw.LeftCornerParser,
    ]
    assert (reranker.kernel, reranker.epochs) == (kernel, epochs)
    assert len(parse(tmp_path / "model.tw", data / "test.mrg", tmp_path / "out.mrg")) == 8


@pytest.mark.slow
def test_an_interrupted_training_with_folds_goes_on(fail, data, tmp_path, monkeypatch):
    model, checkpoint = tmp_path / "model.tw", tmp_path / "model.tw.checkpoint"
    options = ("--rerank", "sst", "--rerank-folds", 2, "--candidates", 3)

    def stop_at_the_second_fold(event):
        if getattr(event, "text", "").startswith("fold2"):
            raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr("treewright.commands.console._print_event", stop_at_the_second_fold)
        with pytest.raises(RuntimeError):
            train(CONSTITUENT, data, model, *options)
    arguments = (data / "train.mrg", "--dev", data / "dev.mrg", "--model", model, *QUICK[CONSTITUENT])
    expected = f"{checkpoint} exists from an interrupted run; add --resume, or delete the folder"
    assert fail(*CONSTITUENT, *arguments, *options) == f"treewright: {expected}"
    shown = train(CONSTITUENT, data, model, *options, "--resume")
    assert "fold1: penalty" not in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.tw"]
    train(CONSTITUENT, data, tmp_path / "whole.tw", *options)
    assert tw.load(model).folds == 2
    outputs = [
        parse(tmp_path / name, data / "test.mrg", tmp_path / "out") for name in ("model.tw", "whole.tw")
    ]
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("command", [LEFTCORNER, CONSTITUENT], ids=lambda command: command[1])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--others", "m"),
        ("--parser", "m"),
        ("--rerank-folds", 2),
        ("--candidates", 5),
        ("--rerank-epochs", 2),
    ],
)
def test_options_of_rerankers_need_one(fail, data, tmp_path, command, option, value):
    message = fail(*command, data / "train.mrg", "--model", tmp_path / "m", option, value)
    assert message == f"treewright: {option} has no effect without --rerank; add --rerank"
    assert not list(tmp_path.iterdir())


def test_options_of_training_are_not_for_parsers_that_have_learnt(fail, data, tmp_path):
    rerank = ("--rerank", "sst", "--parser", data / "constituent.tw")
    for option in (("--max-children", 4), ("--any-children",), ("--tags", "gold")):
        message = fail(*CONSTITUENT, data / "train.mrg", "--model", tmp_path / "m", *rerank, *option)
        assert message == f"treewright: {option[0]} has no effect with --parser; remove one of them"


@pytest.mark.parametrize(
    ("command", "kernel", "expected"),
    [
        (
            LEFTCORNER,
            "x",
            "--rerank is 'x'; expected one of fisher, top, top-rerank, efficient-top, sst, none",
        ),
        (
            CONSTITUENT,
            "efficient-top",
            "--rerank efficient-top does not work with a ConstituentParser; "
            "expected a LeftCornerParser, whose network defines the kernel",
        ),
    ],
)
def test_kernels_that_are_none_are_one_line(fail, data, tmp_path, command, kernel, expected):
    message = fail(*command, data / "train.mrg", "--model", tmp_path / "m", "--rerank", kernel)
    assert message == f"treewright: {expected}"
    assert not list(tmp_path.iterdir())


def test_a_reranker_has_its_own_way_to_predict(fail, data, tmp_path):
    arguments = ("train", "span", data / "train.mrg", "--model", tmp_path / "m.tw", "--rerank", "sst")
    shown = fail(*arguments, "--predict-by", "score")
    assert "--predict-by has no effect under a reranker; use --rerank-predict-by" in shown


def test_models_that_cannot_be_used_are_one_line(fail, data, leftcorner, tmp_path):
    model, constituent = tmp_path / "m", data / "constituent.tw"
    sources = (data / "train.mrg", "--model", model)
    message = fail(*LEFTCORNER, *sources, "--rerank", "sst", "--parser", constituent)
    assert message == f"treewright: {constituent} is a ConstituentParser; expected a LeftCornerParser"
    message = fail(*CONSTITUENT, *sources, "--rerank", "sst", "--parser", leftcorner)
    assert message == f"treewright: {leftcorner} is a LeftCornerParser; expected a ConstituentParser"
    tw.Tagger(epochs=1).fit(tw.make_treebank(5, random_state=0).dependencies).save(tmp_path / "tagger.tw")
    message = fail(*CONSTITUENT, *sources, "--rerank", "sst", "--others", tmp_path / "tagger.tw")
    expected = "expected a LeftCornerParser or a ConstituentParser or a SpanParser"
    assert message == f"treewright: {tmp_path / 'tagger.tw'} is a Tagger; {expected}"
    message = fail(*CONSTITUENT, *sources, "--rerank", "none")
    assert message == ("treewright: --rerank none and no --others; expected another kernel, or other parsers")
    message = fail(
        *CONSTITUENT, data / "train.mrg", "--model", constituent, "--rerank", "none", "--others", constituent
    )
    assert message == f"treewright: --model is {constituent}, which is also --others; expected another file"
    assert not model.exists()
