import io

from rich.console import Console

import treewright as tw
from treewright.report.demo import find_patterns, learn, run_demo


def run(out=None, **options):
    console = Console(file=io.StringIO(), record=True, width=100)
    run_demo(console, n_sentences=100, out=out, **options)
    return console.file.getvalue()


def test_the_demo_shows_trees_scores_and_what_was_found_again():
    shown = run()
    assert "└─" in shown
    assert "►" in shown
    for name in ("next word", "majority head tag", "third-order parser", "reranked"):
        assert name in shown
    assert "reranked - parser:" in shown
    assert "planted patterns that decide more than 3 times" in shown


def test_planted_patterns_are_found_word_for_word():
    bank = tw.make_treebank(900, seed=1)
    train, dev = bank.dependencies[:800], bank.dependencies[800:]
    reranker = learn(Console(file=io.StringIO()), train, dev, seed=0, jobs=2)
    found, n_wanted = find_patterns(reranker, bank, 800)
    assert len(found) > n_wanted / 4
    for find in found:
        assert find.n_decisions > 3
        assert find.weight != 0
    base = tw.metrics.attachment(dev, reranker.parser_.predict(dev)).uas
    assert tw.metrics.attachment(dev, reranker.predict(dev)).uas > base


def test_the_demo_is_the_same_for_the_same_seed():
    assert run(seed=3) == run(seed=3) != run(seed=4)


def test_the_demo_writes_its_treebank_and_a_page(tmp_path):
    run(out=tmp_path / "demo")
    trees = tw.read_conllu(tmp_path / "demo" / "treebank.conllu", single_root=True)
    constituents = tw.read_brackets(tmp_path / "demo" / "treebank.mrg")
    sentences = tw.read_props(tmp_path / "demo" / "treebank.props")
    assert len(trees) == len(constituents) == len(sentences) == 100
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "majority head tag" in page
    assert tw.load(tmp_path / "demo" / "model.tw").predict(trees[:1])[0].words == trees[0].words
