import html
import io
import re
import shlex
import sys

import pytest
from commands import run as run_command
from rich.console import Console

import treewright as tw
from treewright._optional import install_command
from treewright.checkpoint import Checkpoint
from treewright.report.demo import claim_folder, find_patterns, learn, pattern_table, run_demo, save_page
from treewright.report.pages import GENERATOR, Provenance, is_page
from treewright.report.tables import Column, Findings, Table


def run(out, **options):
    console = Console(file=io.StringIO(), record=True, width=100)
    run_demo(console, n_sentences=100, out=out, **options)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Run the demonstration; return its folder and what it has shown."""
    out = tmp_path_factory.mktemp("made") / "a demo"
    return out, run(out)


def test_the_demo_shows_trees_scores_and_what_was_found_again(made):
    _, shown = made
    assert "└─" in shown
    assert "►" in shown
    for name in ("next word", "majority head tag", "third-order parser", "reranked"):
        assert name in shown
    assert "reranked - parser:" in shown
    assert "70 training sentences are too few, since a pattern must occur more than 3 times." in shown
    assert "planted   rank" not in shown  # a table without rows


def test_the_demo_keeps_its_treebank_and_its_model(made):
    out, _ = made
    trees = tw.read_conllu(out / "treebank.conllu", single_root=True)
    constituents = tw.read_brackets(out / "treebank.mrg")
    sentences = tw.read_props(out / "treebank.props")
    assert len(trees) == len(constituents) == len(sentences) == 100
    assert [tree.words for tree in tw.read_conllu(out / "test.conllu")] == [tree.words for tree in trees[85:]]
    assert tw.load(out / "model.tw").predict(trees[:1])[0].words == trees[0].words


def test_the_demo_ends_with_three_commands_that_work(made):
    _, shown = made
    lines = shown[shown.index("Try next:") :].splitlines()[2:]
    commands = [shlex.split(line) for line in lines]
    assert [command[:2] for command in commands] == [
        ["treewright", name] for name in ("parse", "evaluate", "explain")
    ]
    printed = [run_command(*command[1:]).stdout for command in commands]
    (score,) = re.findall(r"reranked +([0-9.]+)", shown)
    assert re.search(rf"Unlabeled attachment \(UAS\) +{score} ", printed[1])
    assert "Sentence 1: " in printed[2]


def test_the_page_of_the_demo_is_made_as_those_of_experiments(made):
    out, _ = made
    page = (out / "report.html").read_text(encoding="utf-8")
    assert GENERATOR in page
    assert page.count("<svg") == 2
    assert "All experiments" not in page
    for part in (
        "majority head tag",
        "reranked - parser:",
        "How to reproduce this result",
        "Versions and machine",
    ):
        assert part in page
    command = shlex.join(["treewright", "demo", "--sentences", "100", "--seed", "0", "--out", str(out)])
    assert command in html.unescape(page)


def test_without_the_extra_the_page_is_plain_and_says_how_to_get_another(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    console = Console(file=io.StringIO(), record=True, width=100)
    console.print("what was shown")
    findings = Findings("A title", [Table("", [Column("a", "A")], [])], "<svg></svg>", "", {})
    save_page(console, findings, Provenance("", "", {}), tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "what was shown" in page
    assert is_page(tmp_path / "report.html")
    told = f"report.html is plain text: jinja2 is not installed; install it with: {install_command('report')}"
    assert told in console.file.getvalue()


@pytest.mark.parametrize("name", ["report.html", "model.tw", "treebank.conllu"])
def test_the_demo_writes_over_nothing_that_is_not_its_own(fail, tmp_path, name):
    (tmp_path / name).write_text("precious")
    expected = f"{tmp_path / name} was not written by the demo; choose another folder with --out"
    assert fail("demo", "--out", tmp_path) == f"treewright: {expected}"
    assert (tmp_path / name).read_text() == "precious"


def test_a_file_is_no_folder_for_the_demo(fail, tmp_path):
    path = tmp_path / "file"
    path.touch()
    assert fail("demo", "--out", path) == f"treewright: --out is {path}, which is a file; expected a folder"


def test_a_demo_may_be_made_anew_in_its_folder_beside_other_files(made):
    out, _ = made
    (out / "notes.txt").touch()
    claim_folder(out)


@pytest.mark.slow
def test_planted_patterns_are_found_word_for_word():
    bank = tw.make_treebank(900, random_state=1)
    train, dev = bank.dependencies[:800], bank.dependencies[800:]
    reranker = learn(Console(file=io.StringIO()), train, dev, random_state=0, n_jobs=2)
    found, n_wanted = find_patterns(reranker, bank, 800)
    table = pattern_table(reranker, bank, 800)
    assert table.caption.startswith(f"Of the {n_wanted} planted patterns that occur more than 3 times")
    assert (len(table.rows), table.notes) == (min(len(found), 12), [])
    assert len(found) > n_wanted / 4
    for find in found:
        assert find.n_decisions > 3
        assert find.weight != 0
    base = tw.metrics.attachment(dev, reranker.parser_.predict(dev)).uas
    assert tw.metrics.attachment(dev, reranker.predict(dev)).uas > base


@pytest.mark.slow
def test_the_demo_is_the_same_for_the_same_seed(tmp_path):
    assert run(tmp_path, random_state=3) == run(tmp_path, random_state=3) != run(tmp_path, random_state=4)


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
        f"{left} exists from an interrupted run; add --resume, or delete the folder"
    )
    run_command(*options, "--resume")
    assert (out / "model.tw").read_bytes() == (tmp_path / "whole" / "model.tw").read_bytes()
    assert not left.exists()
