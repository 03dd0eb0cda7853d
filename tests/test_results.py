"""The pages of docs/results have the tables of the stored runs; new runs are stored by the same tool."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from treewright.report import show
from treewright.report.pages import Provenance, write_findings
from treewright.report.tables import Column, Findings, Table

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "results").glob("*.md"))
RUNS = sorted((ROOT / "docs" / "results" / "runs").glob("*.json"))


def load_tool():
    spec = importlib.util.spec_from_file_location("make_results", ROOT / "tools" / "make_results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_results = load_tool()


def make_folder(tmp_path, page, **runs):
    """Make a folder with a page and with runs of one table each."""
    folder = tmp_path / "results"
    (folder / "runs").mkdir(parents=True)
    (folder / "page.md").write_text(page, encoding="utf-8")
    for name, cells in runs.items():
        columns = [{"key": "title", "title": "system"}, {"key": "f1", "title": "F1", "group": "dev"}]
        run = dict.fromkeys(make_results.KEYS) | {
            "tables": [{"caption": "", "columns": columns, "cells": cells}]
        }
        (folder / "runs" / f"{name}.json").write_text(json.dumps(run), encoding="utf-8")
    return folder


def page_of(folder):
    return (folder / "page.md").read_text(encoding="utf-8")


def test_pages_equal_what_the_stored_runs_give(capsys):
    assert make_results.main(["--check"]) == 0, capsys.readouterr()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_table_of_a_page_comes_from_a_run(page):
    text = make_results.MARK.sub("", page.read_text(encoding="utf-8"))
    assert not re.findall(r"^\|.*", text, re.MULTILINE)
    assert not re.findall(
        r"^```\n(?:.*\n)*?```", re.sub(r"^```\w[^`]*```", "", text, flags=re.M), re.MULTILINE
    )


def test_pages_on_papers_are_written_too(tmp_path):
    folder = make_folder(tmp_path, "", a=[["x", "1.00"]])
    page = tmp_path / "papers" / "one.md"
    page.parent.mkdir()
    page.write_text("<!-- run: a -->\n<!-- end -->\n", encoding="utf-8")
    assert make_results.main(["--check"], folder) == 1
    assert make_results.main([], folder) == 0
    assert "| x | 1.00 |" in page.read_text(encoding="utf-8")


def test_every_stored_run_is_on_a_page():
    marks = [mark for page in PAGES for mark in make_results.MARK.finditer(page.read_text(encoding="utf-8"))]
    assert {path.stem for path in RUNS} == {name for mark in marks for name in mark["names"].split(", ")}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_every_stored_run_has_its_provenance_and_whole_tables(path):
    run = make_results.load_run(path.stem, path.parents[1])
    assert run["tables"] or run["output"]
    assert path.read_text(encoding="utf-8") == make_results.as_json(run) + "\n"
    for table in run["tables"]:
        keys = [column["key"] for column in table["columns"]]
        assert len(set(keys)) == len(keys)
        assert {len(row) for row in table["cells"]} == {len(keys)}


def test_a_table_has_the_chosen_columns_of_all_named_runs(tmp_path):
    page = "Before.\n\n<!-- run: a, b columns=f1,title -->\nold\n<!-- end -->\n\nAfter.\n"
    folder = make_folder(tmp_path, page, a=[["x|y", "1.00"]], b=[["z", ""]])
    assert make_results.main(["--check"], folder) == 1
    assert page_of(folder) == page
    assert make_results.main([], folder) == 0
    table = "| dev F1 | system |\n| --- | --- |\n| 1.00 | x\\|y |\n| | z |"
    assert page_of(folder) == (
        f"Before.\n\n<!-- run: a, b columns=f1,title -->\n\n{table}\n\n<!-- end -->\n\nAfter.\n"
    )
    assert make_results.main(["--check"], folder) == 0


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        (
            "<!-- run: b -->\n<!-- end -->",
            "page.md:2: runs/b.json does not exist; store it with --add or --run",
        ),
        ("<!-- run: a table=2 -->\n<!-- end -->", "table is 2; expected a number from 1 to 1"),
        ("<!-- run: a columns=las -->\n<!-- end -->", "column is 'las'; expected one or more of title, f1"),
        (
            "<!-- run: a rows=1 -->\n<!-- end -->",
            "option is 'rows'; expected table, columns, output, notes or about",
        ),
        ("<!-- run: a -->\n", "expected each '<!-- run: NAME -->' to be followed by a line '<!-- end -->'"),
    ],
)
def test_a_page_that_cannot_be_written_is_reported_with_its_place(tmp_path, capsys, mark, message):
    folder = make_folder(tmp_path, f"\n{mark}\n", a=[["x", "1.00"]])
    assert make_results.main([], folder) == 2
    assert message in capsys.readouterr().err


def write_run(out):
    columns = (Column("title", "system"), Column("uas", "UAS", show.score, "here"))
    findings = Findings(
        "Scores",
        (
            Table(
                "All", columns, [{"title": "base", "uas": 90.0}, {"title": "best", "uas": None}], ["Rounded."]
            ),
        ),
        "<svg></svg>",
        "Scores.",
        {"treebank": "toy"},
    )
    command = f"treewright reproduce toy --data {out / 'ewt'} --out {out} --cache {out / 'kept'}"
    write_findings(
        "toy", findings, out, made=Provenance(command, "ewt", {"--seed": "3", "--parser": str(out)})
    )
    return out / "toy.json"


def test_a_file_of_reproduce_is_stored_and_fills_its_page_without_names_of_folders(tmp_path):
    marks = "".join(f"<!-- run: toy{option} -->\n<!-- end -->\n\n" for option in ("", " notes", " about"))
    page = f"{marks}![plot](toy.svg)\n"
    folder = make_folder(tmp_path, page)
    assert make_results.main(["--add", str(write_run(tmp_path / "out"))], folder) == 0
    text = page_of(folder)
    assert "| system | here UAS |\n| --- | --- |\n| base | 90.00 |\n| best | – |\n" in text
    assert "- Command: `treewright reproduce toy --data ewt --out out`\n" in text
    assert "- Settings: `--seed 3 --parser out`\n- Facts: treebank: toy\n" in text
    assert "\n- Rounded.\n" in text
    assert (folder / "toy.svg").read_text(encoding="utf-8") == "<svg></svg>"
    assert make_results.main(["--check"], folder) == 0


def test_a_file_of_an_earlier_version_is_refused_with_a_remedy(tmp_path, capsys):
    path = write_run(tmp_path / "out")
    run = json.loads(path.read_text(encoding="utf-8"))
    del run["tables"][0]["cells"]
    path.write_text(json.dumps(run), encoding="utf-8")
    assert make_results.main(["--add", str(path)], make_folder(tmp_path, "")) == 2
    assert "Run the command again: finished steps are kept" in capsys.readouterr().err


def test_what_a_command_prints_is_stored_with_its_tables(tmp_path):
    folder = make_folder(
        tmp_path, "<!-- run: one -->\n<!-- end -->\n\n<!-- run: one output -->\n<!-- end -->\n"
    )
    printed = r"Times\n\n| | s |\n| --- | ---: |\n| a | 1 |\n"
    assert make_results.main(["--run", "one", "--", sys.executable, "-c", f"print('{printed}')"], folder) == 0
    text = page_of(folder)
    assert "\n| | s |\n| --- | --- |\n| a | 1 |\n" in text
    assert "```\nTimes\n" in text
    run = make_results.load_run("one", folder)
    assert run["command"].startswith(f"{Path(sys.executable).name} -c ")
    assert run["date"]
    assert "treewright" in run["origin"]


def test_typed_tables_are_stored_without_provenance_and_stay_on_their_page(tmp_path):
    table = "| a | b |\n| --- | --- |\n| 1 | |\n"
    page = f"# Times\n\n{table}\n## Of *all* {{ #all }}\n\n{table}\n<!-- run: a -->\n<!-- end -->\n"
    folder = make_folder(tmp_path, page, a=[["x", "1.00"]])
    for _ in range(2):
        assert make_results.main(["--adopt", str(folder / "page.md")], folder) == 0
        runs = sorted(path.stem for path in (folder / "runs").iterdir())
        assert runs == ["a", "page-of-all", "page-times"]
    assert page_of(folder).count(table) == 2
    assert make_results.load_run("page-of-all", folder)["command"] is None
    assert make_results.main(["--check"], folder) == 0


def test_a_command_that_fails_is_not_stored(tmp_path, capsys):
    folder = make_folder(tmp_path, "")
    assert make_results.main(["--run", "one", "--", sys.executable, "-c", "raise SystemExit(3)"], folder) == 2
    assert "ended with exit code 3" in capsys.readouterr().err
    assert not list((folder / "runs").iterdir())
