import io

from rich.console import Console

import treewright as tw
from treewright.report.demo import run_demo


def run(out=None, **options):
    console = Console(file=io.StringIO(), record=True, width=100)
    run_demo(console, n_sentences=100, out=out, **options)
    return console.file.getvalue()


def test_the_demo_shows_trees_and_the_scores_of_baselines():
    shown = run()
    assert "└─" in shown
    assert "►" in shown
    assert "next word" in shown
    assert "majority head tag" in shown


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
