"""The pages on the papers name only what exists, and quote only figures of the results pages."""

import ast
import inspect
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

import treewright as tw
from treewright._validate import check_params
from treewright.cli import app
from treewright.report.experiment import list_experiments

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "papers").glob("*.md"))
PAPERS = [page for page in PAGES if page.name != "index.md"]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"^<!-- run: .*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
CALL = re.compile(r"[\w.]+\(.*\)")
FOLDERS = ("src/", "tests/", "benchmarks/", "docs/", "tools/")
FIGURE = re.compile(r"(?<![\w.])[+-]?\d[\d,]*\.\d+(?![\w.])|(?<![\w.])\d{1,3}(?:,\d{3})+(?![\w.])")
NAMED_ONLY = {"ewt", "ud", "--data"}
"""Names of folders of the user, and options of every experiment."""


def spans_of(page):
    return SPAN.findall(FENCE.sub("", page.read_text(encoding="utf-8")))


def find_name(name):
    """Return what a dotted name is, or a public name of the package."""
    parts = (name if name.startswith("treewright") else f"treewright.{name}").split(".")
    for place in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:place]))
        except ModuleNotFoundError:
            continue
        for part in parts[place:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"{name} is no module")


def check_call(text):
    """Check a call: the parameters exist and have valid values."""
    call = ast.parse(text, mode="eval").body
    called = find_name(ast.unparse(call.func))
    values = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
    made = called(*map(ast.literal_eval, call.args), **values)
    if hasattr(called, "EFFECTIVE_IF"):
        check_params(made)


def check_command(text):
    """Check that a command has these options; required arguments are added."""
    command, arguments = get_command(app), shlex.split(text)[1:]
    while hasattr(command, "commands"):
        if not arguments:
            return
        command, arguments = command.load(arguments[0]), arguments[1:]
    for each in command.params:
        if each.param_type_name == "argument":
            arguments.append("x")
        elif each.required and not set(each.opts) & set(arguments):
            arguments += [each.opts[0], "x"]
    command.make_context("treewright", arguments)


def check_span(text):
    if text.startswith("treewright "):
        check_command(text)
    elif text.startswith(FOLDERS):
        assert (ROOT / text).exists(), text
    elif CALL.fullmatch(text):
        check_call(text)
    elif text not in NAMED_ONLY:
        find_name(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_on_a_page_exists(page):
    spans = spans_of(page)
    assert len(spans) > 5
    for text in spans:
        try:
            check_span(text)
        except (Exception, SystemExit) as error:
            pytest.fail(f"`{text}`: {error!r}")


@pytest.mark.parametrize(
    "text",
    [
        "NoSuchParser",
        "treewright.mining.gradient.NoSuchMiner",
        "DependencyParser(orders=3)",
        'DependencyParser(tags="silver")',
        "treewright mine --no-such-option 3",
        "treewright reproduce no-such-table",
        "src/treewright/no_such_file.py",
    ],
)
def test_names_that_do_not_exist_are_noticed(text):
    with pytest.raises((Exception, SystemExit)):
        check_span(text)


def test_every_experiment_of_the_papers_is_on_a_page():
    named = {text.split()[2] for page in PAPERS for text in spans_of(page) if " reproduce " in text}
    assert named == set(list_experiments())


@pytest.mark.parametrize(
    "kind", [tw.GradientMiner, tw.DependencyReranker, tw.ConstituentParser, tw.LeftCornerParser]
)
def test_every_option_that_differs_from_a_paper_can_be_found(kind):
    """Each parameter of the systems of the papers is named, unless it is no setting of a paper."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAPERS)
    beyond = {
        "random_state", "n_jobs", "client", "parser", "device", "runs", "folds", "patience", "learning_rate",
        "weight_decay", "epochs", "embedding", "min_chain", "max_projections", "atoms",
    }  # fmt: skip
    names = set(inspect.signature(kind).parameters) - beyond
    named = {found for call in re.findall(r"\w+\([^`]*\)", text) for found in re.findall(r"(\w+)=", call)}
    assert names <= named, names - named


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("qian-liu", "Algorithm 1, Figure 1, Figure 2, Table 1, Table 2, Table 3, Table 4, Proposition 1"),
        ("turian-melamed", "Listing 1, Figure 1, Table 1, Table 2"),
        ("moschitti", "Figures 1 to 3, Figure 4, Figure 5, Table 1, Table 2"),
        ("titov-henderson", "Figure 1, Table I, Table II"),
    ],
)
def test_every_numbered_part_of_a_paper_has_a_row_among_its_components(name, parts):
    text = (ROOT / "docs" / "papers" / f"{name}.md").read_text(encoding="utf-8")
    components = text.partition("## Where it is")[2].partition("\n## ")[0]
    for part in parts.split(", "):
        assert re.search(rf"^\|.*\b{part}\b", components, re.MULTILINE), part


def rows_of(page):
    """Yield the cells of each typed row that has a column "here", by the name of their column."""
    titles = []
    for line in GENERATED.sub("", page.read_text(encoding="utf-8")).splitlines():
        cells = [cell.strip() for cell in line[1:-1].split("|")] if line.startswith("|") else []
        if not cells:
            titles = []
        elif not titles:
            titles = cells
        elif any(title.startswith("here") for title in titles) and "---" not in line:
            yield dict(zip(titles, cells, strict=True))


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.stem)
def test_our_figures_are_those_of_the_linked_results_pages(page):
    text = page.read_text(encoding="utf-8")
    linked = sorted(set(re.findall(r"\(\.\./(results/\w+\.md)", text)))
    known = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in linked)
    figures = set(FIGURE.findall(known))
    rows = list(rows_of(page))
    assert len(rows) > 8
    for row in rows:
        (here,) = [cell for title, cell in row.items() if title.startswith("here")]
        missing = [figure for figure in FIGURE.findall(here) if figure not in figures]
        assert not missing, (row, missing)


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.stem)
def test_every_row_of_the_figures_has_one_or_says_that_it_was_not_run(page):
    for row in rows_of(page):
        (here,) = [cell for title, cell in row.items() if title.startswith("here")]
        assert re.search(r"\d|not run|results", here), row
