"""Write the tables of docs/results and docs/papers from the stored runs in docs/results/runs.

    python tools/make_results.py                        rewrite the tables of all pages
    python tools/make_results.py --check                only report pages that differ, with exit code 1
    python tools/make_results.py --add results/turian-table1.json
    python tools/make_results.py --run scale-reading -- python benchmarks/scale.py reading --folder scale
    python tools/make_results.py --adopt docs/results/scaling.md

`--add` stores a JSON file written by `treewright reproduce`, and its plot if a page shows it. `--run` runs a
command and stores its output and each Markdown table in it. `--adopt` is for tables that were written by
hand: it stores each table of a page that has no run yet, as a run without provenance; add the provenance that
the page states. All of these options then rewrite the pages.

A page names a run in a comment, and everything up to the next end comment is generated:

    <!-- run: turian-table1 columns=title,f1 -->
    <!-- end -->

The name of a run may be followed by `table=2` (the second table), `columns=` (keys of columns), `output` (the
output of the command instead of a table), `notes` (the notes of a table) or `about` (command, date, versions
and settings). Several names, separated by commas, give one table with the rows of all runs. The text around
the comments is written by hand.
"""

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
from datetime import datetime
from itertools import count
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "results"
MARK = re.compile(
    r"^<!-- run: (?P<names>[\w.-]+(?:, [\w.-]+)*)(?P<options>(?: [\w=.,-]+)*) -->\n.*?^<!-- end -->$",
    re.MULTILINE | re.DOTALL,
)
BEGINNING, END = re.compile(r"^<!-- run: ", re.MULTILINE), re.compile(r"^<!-- end -->$", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
KEYS = ("title", "command", "data", "date", "origin", "settings", "tables")
"""What every stored run has; null if it is not known."""
BAR = r"\\|"
PIPE = re.compile(r"(?<!\\)\|")
TABLE = re.compile(r"^\|.*\n^\|[ :|-]*---[ :|-]*\n(?:^\|.*\n)*", re.MULTILINE)


class ResultsError(Exception):
    """A run or a page that cannot be used, and why."""


def main(arguments=None, folder=FOLDER):
    """Store a run if there is one, and rewrite or check the pages; return the exit code."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/results from stored runs.")
    parser.add_argument("--check", action="store_true", help="only report pages that differ")
    parser.add_argument(
        "--add", metavar="FILE", type=Path, help="store a JSON file written by treewright reproduce"
    )
    parser.add_argument("--run", metavar="NAME", help="run the command after -- and store its output")
    parser.add_argument(
        "--adopt", metavar="PAGE", type=Path, help="store the tables of a page that have no run"
    )
    parser.add_argument("--name", help="name of the run that --add stores (default: the file name)")
    parser.add_argument("command", nargs="*", help="command for --run, after --")
    options = parser.parse_args(arguments)
    if bool(options.run) != bool(options.command):
        parser.error("--run needs a command after --, and only --run has one")
    try:
        if options.add:
            add_file(options.add, options.name or options.add.stem, folder)
        if options.run:
            store(options.run, run_command(options.command), folder)
        if options.adopt:
            adopt_tables(options.adopt, folder)
        return update(folder, is_check=options.check)
    except ResultsError as error:
        print(error, file=sys.stderr)
        return 2


def update(folder, *, is_check=False):
    """Rewrite or check the pages of a folder and of `papers` beside it; return the exit code."""
    different = []
    for page in (*sorted(folder.glob("*.md")), *sorted((folder.parent / "papers").glob("*.md"))):
        before = page.read_text(encoding="utf-8")
        after = fill_page(before, folder, page.name)
        if after != before:
            different.append(page)
            if not is_check:
                page.write_text(after, encoding="utf-8")
    for page in different:
        print(f"{page.name} differs from its runs" if is_check else page)
    return int(is_check and bool(different))


def fill_page(text, folder, place):
    """Return a page with all generated parts written anew."""
    if len({len(each.findall(text)) for each in (BEGINNING, END, MARK)}) > 1:
        raise ResultsError(
            f"{place}: expected each '<!-- run: NAME -->' to be followed by a line '<!-- end -->'"
        )

    def fill(mark):
        line = text[: mark.start()].count("\n") + 1
        try:
            runs = [load_run(name, folder) for name in mark["names"].split(", ")]
            body = render(runs, read_options(mark["options"]))
        except ResultsError as error:
            raise ResultsError(f"{place}:{line}: {error}") from None
        return f"{mark[0].partition(chr(10))[0]}\n\n{body}\n\n<!-- end -->"

    return MARK.sub(fill, text)


def read_options(text):
    """Return the options of a comment by name, with None for those without a value."""
    options = dict((*each.split("=", 1), None)[:2] for each in text.split())
    for name in options.keys() - {"table", "columns", "output", "notes", "about"}:
        raise ResultsError(f"option is {name!r}; expected table, columns, output, notes or about")
    return options


def load_run(name, folder):
    """Return a stored run."""
    path = folder / "runs" / f"{name}.json"
    if not path.exists():
        raise ResultsError(f"runs/{name}.json does not exist; store it with --add or --run")
    run = json.loads(path.read_text(encoding="utf-8"))
    for key in KEYS:
        if key not in run:
            raise ResultsError(f"runs/{name}.json has no {key!r}; expected {', '.join(KEYS)}")
    return run


def render(runs, options):
    """Return the Markdown of runs: a table, its notes, what the command printed, or their provenance."""
    if "about" in options:
        return "\n\n".join(map(describe, runs))
    if "output" in options:
        return "\n\n".join(f"```\n{run['output']}\n```" for run in runs)
    number = int(options.get("table") or 1)
    tables = [choose_table(run, number) for run in runs]
    if "notes" in options:
        return "\n".join(f"- {note}" for table in tables for note in table.get("notes", ()))
    titles = [column_titles(table) for table in tables]
    if any(each != titles[0] for each in titles):
        raise ResultsError("the runs have tables with different columns")
    chosen = choose_columns(tables[0], options.get("columns"))
    rows = [row for table in tables for row in table["cells"]]
    lines = [titles[0], ["---"] * len(titles[0]), *rows]
    return "\n".join("|" + "".join(map(as_cell, (line[place] for place in chosen))) for line in lines)


def choose_table(run, number):
    """Return a table of a run by its number, from 1."""
    if not 1 <= number <= len(run["tables"]):
        raise ResultsError(f"table is {number}; expected a number from 1 to {len(run['tables'])}")
    return run["tables"][number - 1]


def column_titles(table):
    """Return the headings of a table, with the groups of its columns."""
    return [f"{column.get('group', '')} {column['title']}".strip() for column in table["columns"]]


def choose_columns(table, keys):
    """Return the places of columns by their keys; all if there are none."""
    known = [column["key"] for column in table["columns"]]
    for key in (keys or "").split(",") if keys else ():
        if key not in known:
            raise ResultsError(f"column is {key!r}; expected one or more of {', '.join(known)}")
    return [known.index(key) for key in keys.split(",")] if keys else range(len(known))


def as_cell(text):
    """Return a text as a cell of a Markdown table, with the bar after it."""
    return f" {PIPE.sub(BAR, text.strip())} |" if text.strip() else " |"


def describe(run):
    """Return the provenance of a run as a list; what is not known is left out."""
    origin = run["origin"] or {}
    versions = ", ".join(f"{name} {value}" for name, value in origin.items() if name != "machine")
    given = {name: value for name, value in (run["settings"] or {}).items() if value != "default"}
    settings = " ".join(f"{name} {value}" for name, value in given.items())
    facts = "; ".join(f"{name}: {value}" for name, value in run.get("facts", {}).items())
    told = {
        "Command": run["command"] and f"`{run['command']}`",
        "Data": run["data"],
        "Date": run["date"],
        "Versions": versions,
        "Machine": origin.get("machine"),
        "Settings": settings and f"`{settings}`",
        "Facts": facts,
    }
    return "\n".join(f"- {name}: {value}" for name, value in told.items() if value)


def add_file(path, name, folder):
    """Store a JSON file of `treewright reproduce`, and its plot if a page shows it."""
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        missing = [key for key in KEYS if key not in run]
        is_complete = not missing and all("cells" in table for table in run["tables"])
    except (OSError, ValueError, TypeError) as error:
        raise ResultsError(f"{path}: {error}") from None
    if not is_complete:
        raise ResultsError(
            f"{path} has no cells of tables; expected a JSON file of this version of treewright reproduce. "
            "Run the command again: finished steps are kept"
        )
    arguments = shlex.split(run["command"])
    if "--cache" in arguments:
        place = arguments.index("--cache")
        del arguments[place : place + 2]
    run["command"] = shlex.join(map(without_folder, arguments))
    run["settings"] = {key: without_folder(value) for key, value in run["settings"].items()}
    store(name, run, folder)
    plot = path.with_suffix(".svg")
    pages = (page.read_text(encoding="utf-8") for page in folder.glob("*.md"))
    if plot.exists() and any(f"({name}.svg)" in page for page in pages):
        shutil.copyfile(plot, folder / f"{name}.svg")


def adopt_tables(page, folder):
    """Store the tables of a page that no comment surrounds, each as a run, and put comments around them."""
    text = page.read_text(encoding="utf-8")
    kept = [mark.span() for mark in MARK.finditer(text)]

    def adopt(found):
        if any(begin <= found.start() < end for begin, end in kept):
            return found[0]
        title = HEADING.findall(text[: found.start()])[-1].partition(" {")[0]
        base = make_keys([f"{page.stem} {title}"])[0].replace("_", "-")
        taken = {path.stem for path in (folder / "runs").glob("*.json")}
        names = (base if number == 1 else f"{base}-{number}" for number in count(1))
        name = next(name for name in names if name not in taken)
        store(name, {**dict.fromkeys(KEYS), "title": title, "tables": read_tables(found[0])}, folder)
        return f"<!-- run: {name} -->\n<!-- end -->\n"

    page.write_text(TABLE.sub(adopt, text), encoding="utf-8")


def without_folder(argument):
    """Return the name of a file if an argument is an absolute path; otherwise the argument."""
    return Path(argument).name if Path(argument).is_absolute() else argument


def run_command(command):
    """Run a command, show what it prints, and return that as a run."""
    from treewright.report.pages import describe_origin

    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    if process.returncode:
        raise ResultsError(f"{shlex.join(command)} ended with exit code {process.returncode}")
    output = "\n".join(lines).strip("\n")
    for argument in filter(lambda each: Path(each).is_absolute(), command):
        output = output.replace(argument, without_folder(argument))
    return {
        "title": "",
        "command": shlex.join(map(without_folder, command)),
        "data": None,
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "origin": describe_origin(),
        "settings": None,
        "tables": read_tables(output),
        "output": output,
    }


def read_tables(text):
    """Return the Markdown tables of a text."""
    tables = []
    for found in TABLE.finditer(text + "\n"):
        titles, _, *cells = map(split_row, found[0].splitlines())
        for row in cells:
            if len(row) != len(titles):
                raise ResultsError(f"a row of a table has {len(row)} cells; expected {len(titles)}: {row}")
        columns = [{"key": key, "title": title} for key, title in zip(make_keys(titles), titles, strict=True)]
        tables.append({"caption": "", "columns": columns, "cells": cells})
    return tables


def split_row(line):
    """Return the cells of a row of a Markdown table."""
    return [cell.strip().replace(r"\|", "|") for cell in PIPE.split(line.strip())[1:-1]]


def make_keys(titles):
    """Return different keys for columns that have only titles."""
    keys = []
    for place, title in enumerate(titles, start=1):
        key = re.sub(r"\W+", "_", title.lower()).strip("_") or f"column_{place}"
        keys.append(f"{key}_{place}" if key in keys else key)
    return keys


def store(name, run, folder):
    """Write a run to the folder of runs."""
    path = folder / "runs" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(as_json(run) + "\n", encoding="utf-8")
    print(path)


def as_json(run):
    """Return a run as JSON, with one line for each row of a table."""
    rows = {}

    def keep(row):
        rows[f"@{len(rows)}@"] = json.dumps(row, ensure_ascii=False)
        return f"@{len(rows) - 1}@"

    def flatten(table):
        lists = ("columns", "rows", "cells")
        return {
            key: [keep(each) for each in value] if key in lists else value for key, value in table.items()
        }

    text = json.dumps(
        {**run, "tables": [flatten(table) for table in run["tables"]]}, indent=1, ensure_ascii=False
    )
    return re.sub(r'"(@\d+@)"', lambda mark: rows[mark[1]], text)


if __name__ == "__main__":
    sys.exit(main())
