"""Reranking from the command line: training, parsing, reasons, and the papers' experiments."""

import io

import pytest
from commands import run
from rich.console import Console

import treewright as tw
from treewright.errors import InputError
from treewright.parsing.dependency.parser import Candidate
from treewright.parsing.dependency.reasons import Comparison, WeighedFeature
from treewright.report.experiment import list_experiments
from treewright.report.reranking import show_comparisons
from treewright.rerank.reranker import PAPER_SETTINGS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder with a small treebank and a reranker trained on it."""
    folder = tmp_path_factory.mktemp("reranking")
    bank = tw.make_treebank(140, random_state=0).dependencies
    tw.write_conllu(bank[:100], folder / "train.conllu")
    tw.write_conllu(bank[100:120], folder / "dev.conllu")
    tw.write_conllu(bank[120:], folder / "test.conllu")
    return folder


@pytest.fixture(scope="module")
def model(folder):
    patch = pytest.MonkeyPatch()
    patch.setenv("TREEWRIGHT_CACHE", str(folder / "cache"))
    options = ["--order", "2", "--epochs", "2", "--runs", "1", "--table-bits", "16", "--rerank"]
    options += ["--rerank-folds", "2", "--degree", "2", "--threshold", "1", "--dev", folder / "dev.conllu"]
    shown = run("train", "dependency", folder / "train.conllu", "--model", folder / "m.tw", *options)
    patch.undo()
    assert "reranked with beta" in shown.stderr
    return folder / "m.tw"


def test_training_leaves_a_reranker_and_nothing_else_but_the_cache(folder, model):
    assert isinstance(tw.load(model), tw.DependencyReranker)
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".conllu") == ["cache", "m.tw"]
    assert list((folder / "cache" / "lists").iterdir())


def test_parsing_uses_the_reranker(folder, model, tmp_path):
    run("parse", model, folder / "test.conllu", "--output", tmp_path / "out.conllu")
    test = tw.read_conllu(folder / "test.conllu")
    expected = [tree.heads.tolist() for tree in tw.load(model).predict(test)]
    assert [tree.heads.tolist() for tree in tw.read_conllu(tmp_path / "out.conllu")] == expected


def test_parsing_writes_candidates_and_confidence_of_the_reranker(folder, model, tmp_path):
    options = ["--kbest", "3", "--confidence", "--output", tmp_path / "out.conllu"]
    run("parse", model, folder / "test.conllu", *options)
    trees = tw.read_conllu(tmp_path / "out.conllu")
    assert len(trees) > 20
    assert all("Confidence=" in misc for tree in trees for misc in tree.misc)
    assert trees[0].metadata["parse_rank"] == "1"


def test_a_reranker_without_a_significant_gain_decides_nothing(folder, model):
    assert not tw.load(model).is_trusted_
    shown = run("explain", model, folder / "test.conllu", "--sentences", "8").stdout
    assert "the parser's score decided" in shown
    assert "For tree 1" not in shown


def test_reasons_are_shown_in_words(folder, model, tmp_path):
    reranker = tw.load(model)
    reranker.is_trusted_ = True
    reranker.save(tmp_path / "trusted.tw")
    options = ["--sentences", "8", "--reasons", "2"]
    shown = run("explain", tmp_path / "trusted.tw", folder / "test.conllu", *options).stdout
    assert "Sentence 8: " in shown
    assert "For tree 1, against tree 2: " in shown
    assert "→" in shown


def test_features_for_the_winner_come_first_and_both_sides_have_totals():
    tree = tw.DepTree(["a", "b"], [0, 1])
    candidates = [Candidate(tree, score, 0.5) for score in (3.0, 2.0)]
    weights = {"against one": -2.0, "for one": 1.5, "for two": 1.25, "for three": 0.5}
    reasons = [WeighedFeature(text, (), weight) for text, weight in weights.items()]
    console = Console(file=io.StringIO(), width=80)
    show_comparisons(console, [Comparison(candidates, [1.0, 1.0], [2.0, 1.0], reasons)], n_reasons=2)
    shown = [line.strip() for line in console.file.getvalue().splitlines()]
    places = [
        shown.index("For tree 1, against tree 2: 3 features, total 3.250 (largest 2 shown)"),
        shown.index("1.500   for one"),
        shown.index("1.250   for two"),
        shown.index("For tree 2, against tree 1: 1 feature, total 2.000"),
        shown.index("2.000   against one"),
    ]
    assert places == sorted(places)
    assert not any("for three" in line for line in shown)


def test_a_parser_alone_is_explained_by_its_own_features(folder, tmp_path):
    options = ["--order", "1", "--epochs", "1", "--runs", "1", "--table-bits", "14"]
    run("train", "dependency", folder / "train.conllu", "--model", tmp_path / "p.tw", *options)
    shown = run("explain", tmp_path / "p.tw", folder / "test.conllu", "--sentences", "1").stdout
    assert shown.index("For tree 1, against tree 2: ") < shown.index("For tree 2, against tree 1: ")
    assert "reranker" not in shown


def test_a_model_without_features_is_refused_in_one_line(folder, tmp_path, fail):
    run("train", "tagger", folder / "train.conllu", "--model", tmp_path / "t.tw", "--epochs", "1")
    line = fail("explain", tmp_path / "t.tw", folder / "test.conllu")
    expected = "expected a pipeline or a dependency parser with a linear model"
    assert line.endswith(f"t.tw is a Tagger, which has no features to show; {expected}")


def test_reasons_for_words_without_tags_are_refused_in_one_line(model, tmp_path, fail):
    tw.write_conllu([tw.DepTree(["yes"], [0])], tmp_path / "bare.conllu")
    assert "bare.conllu: sentence 1 has no tags, but this DependencyReranker needs tags" in fail(
        "explain", model, tmp_path / "bare.conllu"
    )


def test_a_bad_space_is_one_line(folder, tmp_path, fail):
    options = ["--model", tmp_path / "m", "--rerank", "--space", "forest"]
    line = fail("train", "dependency", folder / "train.conllu", *options)
    assert "--space is 'forest'; expected one of" in line


def test_the_settings_of_the_paper_are_chosen_together(folder, tmp_path, monkeypatch, fail):
    made = []

    def fit(self, trees, dev=None, *, checkpoint=None, cache=None, client=None):
        made.append(self)
        raise InputError("that is enough")

    monkeypatch.setattr(tw.DependencyReranker, "fit", fit)
    options = ["--rerank", "--paper", "--memory-limit", "2G", "--threshold", "5", "--rerank-epochs", "3"]
    line = fail("train", "dependency", folder / "train.conllu", "--model", tmp_path / "m.tw", *options)
    assert line == "treewright: that is enough"
    (reranker,) = made
    found = {name: getattr(reranker, name) for name in PAPER_SETTINGS}
    assert found == PAPER_SETTINGS | {"memory_limit": 2 << 30}
    assert (reranker.threshold, reranker.epochs, reranker.k) == (5.0, 3, 10)


def test_the_help_of_reproduce_names_all_experiments():
    shown = run("reproduce", "--help").output
    assert list_experiments()
    assert all(name in shown for name in list_experiments())


def test_an_unknown_experiment_is_one_line_that_names_the_known_ones(folder, tmp_path, fail):
    line = fail("reproduce", "table9", "--data", folder, "--out", tmp_path / "out")
    assert all(name in line for name in list_experiments())


@pytest.mark.slow
def test_mined_features_are_trained_explained_and_refused_under_a_reranker(folder, tmp_path, fail):
    options = ["--order", "1", "--epochs", "1", "--runs", "1", "--table-bits", "14", "--folds", "2", "--mine"]
    options += ["--dev", folder / "dev.conllu"]
    train = ["train", "dependency", folder / "train.conllu", "--model", tmp_path / "m.tw", *options]
    run(*train, "--mining-significance", "1")
    assert tw.load(tmp_path / "m.tw").mined_features_
    run("parse", tmp_path / "m.tw", folder / "test.conllu", "--output", tmp_path / "out.conllu")
    assert len(tw.read_conllu(tmp_path / "out.conllu")) == 20
    shown = run("explain", tmp_path / "m.tw", folder / "test.conllu", "--reasons", "1000")
    assert "mined " in shown.stdout
    assert "expected a parser trained without mined features" in fail(*train, "--rerank")
    by_heads = [*train[:5], "--predict-by", "heads", "--rerank"]
    assert "expected --predict-by auto or score" in fail(*by_heads)
    assert "--mining-threshold" in fail(*train[:5], "--mining-threshold", "4")
