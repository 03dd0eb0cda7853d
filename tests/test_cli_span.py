"""Training and using a neural span parser from the command line."""

import sys

import pytest
from commands import run

import treewright as tw
from treewright._optional import install_command

TRAIN = ("train", "span")
SMALL = ("--units", 10, "--layers", 1, "--span-size", 10, "--learning-rate", 0.03, "--dropout", 0.1)
QUICK = (*SMALL, "--epochs", 2, "--device", "cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Make a folder with a small treebank, whole and without trees."""
    bank = tw.make_treebank(40, random_state=0)
    folder = tmp_path_factory.mktemp("treebank")
    tw.write_brackets(bank.constituents[:30], folder / "train.mrg")
    tw.write_brackets(bank.constituents[30:], folder / "test.mrg")
    tw.write_conllu(bank.dependencies[30:], folder / "test.conllu")
    return folder


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """Train a parser; return its file and what was told meanwhile."""
    pytest.importorskip("torch", reason="training needs PyTorch")
    model = tmp_path_factory.mktemp("model") / "parser.tw"
    shown = run(*TRAIN, data / "train.mrg", "--dev", data / "test.mrg", "--model", model, *QUICK).stderr
    return model, shown


def parse(model, source, out, *options):
    run("parse", model, source, "--output", out, *options)
    return tw.read_brackets(out)


def test_training_leaves_a_model_and_says_how_it_goes(trained):
    model, shown = trained
    assert [path.name for path in model.parent.iterdir()] == ["parser.tw"]
    assert "30 sentences, " in shown
    assert "network, epoch 2/2: loss " in shown
    assert shown.endswith(f"written: {model}\n")


def test_options_reach_the_parser(data, tmp_path):
    pytest.importorskip("torch", reason="training needs PyTorch")
    options = {
        "tags": "predicted", "units": 5, "layers": 2, "span_size": 4, "min_count": 3, "loss": "margin",
        "learning_rate": 0.1, "dropout": 0.2, "epochs": 1, "patience": 2, "folds": 2,
    }  # fmt: skip
    given = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)]
    run(*TRAIN, data / "train.mrg", "--model", tmp_path / "m", "--max-length", 9, *given, "--seed", 7)
    parser = tw.load(tmp_path / "m")
    assert parser.random_state == 7
    assert {name: getattr(parser, name) for name in options} == options
    source = tmp_path / "in.mrg"
    source.write_text("(X (UH The) (UH fox) (UH sang))\n")
    (parsed,) = parse(tmp_path / "m", source, tmp_path / "out.mrg")
    assert parsed.tags() != ["UH", "UH", "UH"]


def test_parses_are_those_of_the_parser_without_pytorch(trained, data, tmp_path, monkeypatch):
    trees = tw.read_brackets(data / "test.mrg")
    monkeypatch.setitem(sys.modules, "torch", None)
    parsed = parse(trained[0], data / "test.mrg", tmp_path / "out.mrg")
    assert parsed == tw.load(trained[0]).predict(trees)
    assert [tree.words() for tree in parsed] == [tree.words() for tree in trees]
    assert parsed == parse(trained[0], data / "test.conllu", tmp_path / "same.mrg", "--jobs", 2)
    shown = run("evaluate", data / "test.mrg", tmp_path / "out.mrg").stdout
    assert "F1" in shown


def test_candidates_are_lines_with_sentence_rank_score_and_tree(trained, data, tmp_path):
    out = tmp_path / "out.tsv"
    run("parse", trained[0], data / "test.mrg", "--kbest", 3, "--output", out)
    expected = tw.load(trained[0]).kbest(tw.read_brackets(data / "test.mrg"), 3)
    assert out.read_text().splitlines() == [
        f"{number}\t{rank}\t{parse.score:.4f}\t{parse.tree}"
        for number, parses in enumerate(expected, 1)
        for rank, parse in enumerate(parses, 1)
    ]


def test_the_service_tells_probabilities(trained, data):
    pytest.importorskip("fastapi", reason="the service needs the extra web")
    from treewright.web.models import serve_model

    served = serve_model("span", tw.load(trained[0]))
    (found,) = served.kbest(tw.read_brackets(data / "test.mrg")[:1], None, k=3, pictures=None)
    shares = [each.probability for each in found.candidates]
    assert len(shares) == 3
    assert 1 >= shares[0] >= shares[1] >= shares[2] > 0


def test_several_parsers_join(trained, data, tmp_path):
    other = tmp_path / "constituent.tw"
    quick = ("--lowest-penalty", 20, "--max-inferences", 300)
    run("train", "constituent", data / "train.mrg", "--dev", data / "test.mrg", "--model", other, *quick)
    joined = ("--rerank", "none", "--parser", trained[0], "--others", f"{other},{trained[0]}")
    sources = (data / "train.mrg", "--dev", data / "test.mrg", "--candidates", 3)
    run(*TRAIN, *sources, "--model", tmp_path / "m", *joined)
    reranker = tw.load(tmp_path / "m")
    assert [type(each) for each in reranker.others] == [tw.ConstituentParser, tw.SpanParser]
    assert len(parse(tmp_path / "m", data / "test.mrg", tmp_path / "out.mrg")) == 10


def test_a_kernel_of_another_network_is_refused(fail, data, tmp_path):
    message = fail(*TRAIN, data / "train.mrg", "--model", tmp_path / "m", "--rerank", "efficient-top")
    assert message == (
        "treewright: --rerank efficient-top does not work with a SpanParser; "
        "expected a LeftCornerParser, whose network defines the kernel"
    )


def test_the_model_is_none_of_the_other_parsers(fail, trained, data, tmp_path):
    copy = tmp_path / "copy.tw"
    copy.write_bytes(trained[0].read_bytes())
    given = (data / "train.mrg", "--model", trained[0], "--rerank", "none", "--parser", copy)
    message = fail(*TRAIN, *given, "--others", f"{copy},{trained[0]}")
    assert (
        message == f"treewright: --model is {trained[0]}, which is also --others (2); expected another file"
    )


def test_help_and_what_is_missing_need_no_pytorch(fail, data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "--span-size" in run(*TRAIN, "--help").stdout
    message = fail(*TRAIN, data / "train.mrg", "--model", tmp_path / "m")
    assert message == f"treewright: torch is not installed; install it with: {install_command('neural')}"
    assert not list(tmp_path.iterdir())
