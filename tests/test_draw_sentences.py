"""The script that draws sentences for readers: every source, and the same sentences with the same seed."""

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "draw_sentences.py"


@pytest.fixture
def draw(monkeypatch, capsys):
    """Return a function that runs the script and gives the source, place and text of each sentence."""
    spec = importlib.util.spec_from_file_location("draw_sentences", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["draw_sentences.py", *arguments])
        tool.main()
        return [line.split("\t") for line in capsys.readouterr().out.splitlines()]

    return run


def test_every_source_is_drawn_from_equally_often(draw):
    sources = [source for source, _, _ in draw("20")]
    assert sources == [name for name in ("help", "errors", "docstrings", "docs") for _ in range(5)]


def test_the_same_seed_draws_the_same_sentences(draw):
    first = draw("10", "--seed", "3", "--from", "docs")
    assert first == draw("10", "--seed", "3", "--from", "docs")
    assert first != draw("10", "--seed", "4", "--from", "docs")


@pytest.mark.parametrize(
    ("source", "place", "sentence"),
    [
        ("docstrings", "src/treewright/errors.py", "A file or string is not in the expected format."),
        ("docs", "docs/howto/troubleshooting.md", "Copy it again, and compare the sizes;"),
        ("errors", "src/treewright/report/demo.py", "which is a file; expected a folder"),
        ("help", "treewright fetch", "Download a Universal Dependencies treebank."),
    ],
)
def test_sentences_are_those_that_a_user_reads(draw, source, place, sentence):
    drawn = draw("10000", "--from", source, "--under", place)
    assert any(sentence in text for _, _, text in drawn)
    assert not any("```" in text or ">>>" in text for _, _, text in drawn)
