"""HTML pages of experiments, with commands and settings, and the index of a folder of pages."""

import json
import os
import platform
import re
import sys
from collections.abc import Container, Mapping
from datetime import datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from treewright._optional import require
from treewright._version import __version__
from treewright.data.files import replacing
from treewright.report import show
from treewright.report.tables import Column, Findings, Table, as_csv, as_record, as_text, render_plot

INDEX = "index.html"
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
"""Packages that may affect every result."""
GENERATOR = '<meta name="generator" content="treewright">'
"""Tag that marks a page as written by treewright."""


class Provenance(NamedTuple):
    """Provenance of a result.

    Attributes
    ----------
    command : str
        The command line that reproduces it.
    data : str
        Name of the data.
    settings : mapping
        All settings of the experiment, by option.
    """

    command: str
    data: str
    settings: Mapping[str, str]


def write_findings(name: str, findings: Findings, out: Path, *, made: Provenance) -> list[Path]:
    """Write the files of an experiment to a folder; return their paths.

    Parameters
    ----------
    name : str
        Name of the files, without suffix.
    findings : Findings
        Results of the experiment.
    out : Path
        Folder; created if necessary.
    made : Provenance
        Provenance of the results.
    """
    about, origin = _describe(name, findings, made), describe_origin(findings.facts)
    drawing = render_plot(findings.draw)
    page = {"findings": findings, "about": about, "settings": made.settings, "origin": origin}
    contents = {
        "txt": _as_text(findings, about, made.settings, origin),
        "csv": as_csv(findings.tables[0]),
        "svg": drawing,
        "html": _render("page.html", {**page, "drawing": _inline(drawing), "index": INDEX}),
        "json": _as_json(findings, about, made.settings, origin),
    }
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"{name}.{suffix}" for suffix in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        _write(path, content)
    return paths


def write_page(path: Path, findings: Findings, *, made: Provenance) -> None:
    """Write only the page of findings, without a link to an index."""
    page = {
        "findings": findings,
        "about": _describe(path.stem, findings, made),
        "settings": made.settings,
        "origin": describe_origin(findings.facts),
        "drawing": _inline(render_plot(findings.draw)),
        "index": None,
    }
    _write(path, _render("page.html", page))


def is_page(path: Path) -> bool:
    """Return whether a file is a page that treewright has written."""
    return path.is_file() and GENERATOR in path.read_text(encoding="utf-8", errors="replace")


def _describe(name: str, findings: Findings, made: Provenance) -> dict[str, str]:
    return {
        "experiment": name,
        "title": findings.title,
        "headline": findings.headline or find_headline(findings.tables[0]),
        "data": made.data,
        "command": made.command,
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def write_index(out: Path) -> bool:
    """Write the index of the pages of a folder, ``index.html``, latest first.

    The titles are read from the JSON files in the same folder. An ``index.html`` that treewright has not
    written is not overwritten. Return whether the index was written.
    """
    path = out / INDEX
    if path.exists() and not is_page(path):
        return False
    found = [about for each in sorted(out.glob("*.json")) if (about := _read_about(each))]
    found.sort(key=lambda about: about["date"], reverse=True)
    _write(path, _render(INDEX, {"pages": found}))
    return True


def find_headline(table: Table) -> str:
    """Describe the row with the highest score, ignoring figures from papers; empty if there is none."""
    scores = [column for column in table.columns if column.show is show.score and "paper" not in column.group]
    for column in scores[:1]:
        rows = [row for row in table.rows if row.get(column.key) is not None and not row.get("is_paper")]
        if rows:
            best = max(rows, key=lambda row: row[column.key])
            return f"{table.columns[0].cell(best)}: {_full_title(column)} {column.cell(best)}"
    return ""


def _full_title(column: Column) -> str:
    return column.title if column.group in ("", "here") else f"{column.group}, {column.title}"


def _read_about(path: Path) -> dict[str, str] | None:
    """Return the description of a page in an experiment's JSON file; None for other files."""
    page = path.with_suffix(".html")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        about = {key: record[key] for key in ("title", "headline", "data", "command", "date")}
    except (ValueError, TypeError, KeyError):
        return None
    if not page.exists() or not all(isinstance(value, str) for value in about.values()):
        return None
    return {**about, "link": quote(page.name)}


def describe_origin(facts: Container[str] = ()) -> dict[str, str]:
    """Return the machine and the versions of packages that may affect a result, except those in `facts`."""
    loaded = [name for name in ("torch",) if name in sys.modules and name not in facts]
    packages = {name: version(name) for name in (*PACKAGES, *loaded)}
    versions = {"treewright": __version__, "python": platform.python_version(), **packages}
    return {**versions, "machine": _describe_machine()}


def _describe_machine() -> str:
    cores = os.cpu_count() or 1
    return f"{platform.system()}, {platform.machine()}, {cores} core{'s' if cores > 1 else ''}"


def _as_text(
    findings: Findings, about: Mapping[str, str], settings: Mapping[str, str], origin: Mapping[str, str]
) -> str:
    told = {"command": about["command"], "data": about["data"], **origin, "date": about["date"]}
    lines = [f"{name}: {value}" for each in (findings.facts, settings, told) for name, value in each.items()]
    return "\n".join([findings.title, "", *map(as_text, findings.tables), *lines, ""])


def _as_json(
    findings: Findings, about: Mapping[str, str], settings: Mapping[str, str], origin: Mapping[str, str]
) -> str:
    tables = [as_record(table) for table in findings.tables]
    record = {**about, "origin": origin, "facts": findings.facts, "settings": settings, "tables": tables}
    return json.dumps(record, indent=2) + "\n"


def _render(template: str, values: Mapping[str, Any]) -> str:
    """Return a self-contained HTML page."""
    jinja = require("jinja2", "report")
    environment = jinja.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
        loader=jinja.FunctionLoader(_read_template),
    )
    page: str = environment.get_template(template).render(generator=GENERATOR, **values)
    return page + "\n"


def _read_template(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _inline(drawing: str) -> str:
    """Return the part of an SVG file that belongs in an HTML page, without declarations."""
    return re.sub(r' xmlns(:\w+)?="[^"]*"', "", drawing[drawing.index("<svg") :])


def _write(path: Path, content: str) -> None:
    with replacing(path) as stream:
        stream.write(content.encode("utf-8"))
