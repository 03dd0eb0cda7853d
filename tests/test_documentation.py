"""The examples in the README and the documentation run, and print what the pages say that they print."""

import contextlib
import copy
import importlib.util
import io
import json
import re
import shlex
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import commands
import pytest
from test_architecture import LEVELS
from typer.main import get_command

import treewright as tw
from treewright.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOLDERS = (DOCS, DOCS / "howto", DOCS / "papers")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted(folder.glob("*.md")))]
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
CAPABILITIES = [
    "data",
    "metrics",
    "parsing",
    "constituents",
    "leftcorner",
    "spans",
    "reranking",
    "mining",
    "kernels",
    "roles",
]
FENCE = re.compile(r"^```(?P<language>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="(?P<name>[^"]+)"')
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^>]+) -->\s*\Z")
COMMAND = re.compile(r"^(?:\$ )?treewright (?P<arguments>.+)$", re.MULTILINE)
ANYTHING = "\n...\n"


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    body: str
    line: int
    is_run: bool
    shown: str | None
    """The block of text that follows at once: what this one prints."""
    title: str | None
    """The file that the block is, for others to import."""


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    for fence, following in zip_longest(fences, fences[1:]):
        line = text[: fence.start()].count("\n") + 1
        language, _, rest = fence["language"].partition(" ")
        title = TITLE.search(rest)
        is_run = language in ("python", "sh") and not NOT_RUN.search(text[: fence.start()])
        prints = (
            following
            and following["language"] == "text"
            and not text[fence.end() : following.start()].strip()
        )
        shown = following["body"] if prints else None
        yield Block(language, fence["body"], line, is_run, shown, title and title["name"])


def command_lines(body):
    """Return the commands of a block, those on several lines as one."""
    lines = body.replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip() and not line.startswith("#")]


def run_commands(block):
    printed = ""
    for program, *arguments in command_lines(block.body):
        assert program == "treewright", f"line {block.line}: {program} is not run here"
        printed += commands.run(*arguments).stdout
    return printed


def run_python(block, page, namespace):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * block.line + block.body, str(page), "exec"), namespace)
    return printed.getvalue()


def without_trailing_blanks(text):
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def agree(shown, printed):
    """Tell whether a page shows what was printed; three dots in a line of their own stand for any lines."""
    pieces = f"\n{without_trailing_blanks(shown)}\n".split(ANYTHING)
    pattern = "\n(?:.*\n)?".join(re.escape(piece) for piece in pieces)
    return re.fullmatch(pattern, f"\n{without_trailing_blanks(printed)}\n", re.DOTALL) is not None


@pytest.mark.slow_cases
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run_from_top_to_bottom_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.syspath_prepend(tmp_path)
    namespace = {"__name__": "example"}
    for block in blocks_of(page):
        if block.title:
            Path(block.title).write_text(block.body, encoding="utf-8")
        elif block.is_run:
            is_python = block.language == "python"
            printed = run_python(block, page, namespace) if is_python else run_commands(block)
            assert block.shown is None or agree(block.shown, printed), f"line {block.line} prints\n{printed}"


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_the_outputs_of_a_new_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    spec = importlib.util.spec_from_file_location("run_notebooks", ROOT / "tools" / "run_notebooks.py")
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    stored = json.loads(path.read_text(encoding="utf-8"))
    anew = copy.deepcopy(stored)
    runner.run_notebook(anew, path.stem)
    for before, after in zip(stored["cells"], anew["cells"], strict=True):
        assert after.get("outputs") == before.get("outputs"), "".join(after["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_have_stored_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert any(cell.get("outputs") for cell in cells)
    assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_are_not_run_have_arguments_that_exist(page):
    for block in blocks_of(page):
        for found in [] if block.is_run else COMMAND.finditer(block.body.replace("\\\n", " ")):
            command, arguments = get_command(app), shlex.split(found["arguments"], comments=True)
            while hasattr(command, "commands"):
                command, arguments = command.load(arguments[0]), arguments[1:]
            command.make_context("treewright", arguments)


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_commands_stand_in_blocks_that_are_run_or_say_why_not(page):
    assert not [block.line for block in blocks_of(page) if not block.language and COMMAND.search(block.body)]


@pytest.mark.parametrize("name", CAPABILITIES)
def test_every_capability_has_an_example_with_its_output(name):
    assert any(block.is_run and block.shown for block in blocks_of(DOCS / f"{name}.md"))


@pytest.mark.parametrize("name", CAPABILITIES)
def test_every_capability_has_its_maths(name):
    assert "$$" in (DOCS / f"{name}.md").read_text(encoding="utf-8")


def test_the_readme_has_python_examples():
    assert any(block.language == "python" for block in blocks_of(PAGES[0]))


def test_the_reference_has_every_public_name_once():
    pages = [page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md")]
    listed = re.findall(r"^::: treewright\.(\w+)$", "\n".join(pages), re.MULTILINE)
    assert sorted(listed) == sorted(set(tw.__all__) - {"__version__", "metrics"})


def test_the_reference_has_every_score_once():
    text = (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: treewright\.metrics\.(?:\w+\.)?(\w+)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(tw.metrics.__all__)


def test_the_design_page_has_the_subpackages_in_the_order_of_their_levels():
    rows = re.findall(
        r"^\| (`\w+`(?:, `\w+`)*) \|", (DOCS / "design.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [re.findall(r"\w+", row) for row in rows] == LEVELS


def test_every_page_has_a_place_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r"[\w/-]+\.md$", navigation, re.MULTILINE))
    pages = [*DOCS.rglob("*.md"), *(path.with_suffix(".md") for path in NOTEBOOKS)]
    assert listed == {page.relative_to(DOCS).as_posix() for page in pages}


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n...\nc\n", "a\nb\nb\nc\n", True),
        ("a\n...\nc\n", "a\nc\n", True),
        ("a\n...\nc\n", "a\nb\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_shown_output_is_compared_line_by_line(shown, printed, expected):
    assert agree(shown, printed) == expected
