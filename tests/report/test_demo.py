import io

import pytest
from commands import run as run_command
from rich.console import Console

import treewright as tw
from treewright.checkpoint import Checkpoint
from treewright.report.demo import find_patterns, learn, run_demo


def run(out=None, **options):
    console = Console(file=io.StringIO(), record=True, width=100)
    run_demo(console, n_sentences=100, out=out, **options)
    return console.file.getvalue()


@pytest.mark.slow
def test_the_demo_shows_trees_scores_and_what_was_found_again():
    shown = run()
    assert "└─" in shown
    assert "►" in shown
    for name in ("next word", "majority head tag", "third-order parser", "reranked"):
        assert name in shown
    assert "reranked - parser:" in shown
    assert "planted patterns that decide more than 3 times" in shown


@pytest.mark.slow
def test_planted_patterns_are_found_word_for_word():
    bank = tw.make_treebank(900, random_state=1)
    train, dev = bank.dependencies[:800], bank.dependencies[800:]
    reranker = learn(Console(file=io.StringIO()), train, dev, random_state=0, n_jobs=2)
    found, n_wanted = find_patterns(reranker, bank, 800)
    assert len(found) > n_wanted / 4
    for find in found:
        assert find.n_decisions > 3
        assert find.weight != 0
    base = tw.metrics.attachment(dev, reranker.parser_.predict(dev)).uas
    assert tw.metrics.attachment(dev, reranker.predict(dev)).uas > base


@pytest.mark.slow
def test_the_demo_is_the_same_for_the_same_seed():
    assert run(random_state=3) == run(random_state=3) != run(random_state=4)


def test_the_demo_writes_its_treebank_and_a_page(tmp_path):
    run(out=tmp_path / "demo")
    trees = tw.read_conllu(tmp_path / "demo" / "treebank.conllu", single_root=True)
    constituents = tw.read_brackets(tmp_path / "demo" / "treebank.mrg")
    sentences = tw.read_props(tmp_path / "demo" / "treebank.props")
    assert len(trees) == len(constituents) == len(sentences) == 100
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "majority head tag" in page
    assert tw.load(tmp_path / "demo" / "model.tw").predict(trees[:1])[0].words == trees[0].words


@pytest.mark.slow
def test_a_demo_that_was_cut_off_goes_on_to_the_same_model(fail, monkeypatch, tmp_path):
    out, steps, save = tmp_path / "demo", [], Checkpoint.save

    def save_some(kept, name, state):
        if len(steps) >= 12:
            raise RuntimeError
        save(kept, name, state)
        steps.append(name)

    options = ("demo", "--sentences", 40, "--out", out)
    run_command("demo", "--sentences", 40, "--out", tmp_path / "whole")
    monkeypatch.setattr(Checkpoint, "save", save_some)
    with pytest.raises(RuntimeError):
        run_command(*options)
    monkeypatch.undo()
    left = out / "model.tw.checkpoint"
    assert fail(*options).endswith(
        f"{left} is left of work that was interrupted; give --resume, or delete it"
    )
    run_command(*options, "--resume")
    assert (out / "model.tw").read_bytes() == (tmp_path / "whole" / "model.tw").read_bytes()
    assert not left.exists()


def test_a_demo_that_writes_nothing_cannot_go_on(fail):
    message = "--resume without --out; expected the folder of the demonstration that goes on"
    assert fail("demo", "--resume") == f"treewright: {message}"
