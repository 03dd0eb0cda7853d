"""The pages of experiments, with all that it takes to make them again, and the index of a folder of them."""

import json
import os
import platform
import re
import sys
from collections.abc import Mapping
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
from treewright.report.tables import Column, Findings, Table, as_csv, as_text, render_plot

INDEX = "index.html"
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
"""Packages that every result may depend on."""
GENERATOR = '<meta name="generator" content="treewright">'
"""What tells a page of ours from one that somebody else has put into the folder."""


class Provenance(NamedTuple):
    """How a result was made.

    Attributes
    ----------
    command : str
        The command line that makes it again.
    data : str
        Name of what it was made from.
    settings : mapping
        All that the experiment uses, by their options.
    """

    command: str
    data: str
    settings: Mapping[str, str]


def write_findings(name: str, findings: Findings, out: Path, *, made: Provenance) -> list[Path]:
    """Write the files of an experiment into a folder; return their names.

    Parameters
    ----------
    name : str
        What the files are called, before their endings.
    findings : Findings
    out : Path
        Made if need be.
    made : Provenance
    """
    about, origin = _describe(name, findings, made), _origin(findings)
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
    """Write the page of findings alone, without a link to an index."""
    page = {
        "findings": findings,
        "about": _describe(path.stem, findings, made),
        "settings": made.settings,
        "origin": _origin(findings),
        "drawing": _inline(render_plot(findings.draw)),
        "index": None,
    }
    _write(path, _render("page.html", page))


def is_page(path: Path) -> bool:
    """Tell whether a file is a page of ours."""
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


def _origin(findings: Findings) -> dict[str, str]:
    return {**_versions(findings), "machine": _describe_machine()}


def write_index(out: Path) -> bool:
    """List the pages of a folder in its ``index.html``, the latest first.

    What they are about is read from the JSON files beside them. A file of that name that is not ours is left
    alone; the result tells whether it was written.
    """
    path = out / INDEX
    if path.exists() and not is_page(path):
        return False
    found = [about for each in sorted(out.glob("*.json")) if (about := _read_about(each))]
    found.sort(key=lambda about: about["date"], reverse=True)
    _write(path, _render(INDEX, {"pages": found}))
    return True


def find_headline(table: Table) -> str:
    """Return the row with the highest of the scores that are not a paper's; nothing where there are none."""
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
    """Return what an experiment's record says of its page; None for other files, and where there is none."""
    page = path.with_suffix(".html")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        about = {key: record[key] for key in ("title", "headline", "data", "command", "date")}
    except (ValueError, TypeError, KeyError):
        return None
    if not page.exists() or not all(isinstance(value, str) for value in about.values()):
        return None
    return {**about, "link": quote(page.name)}


def _versions(findings: Findings) -> dict[str, str]:
    """Return the versions of all that may have a part in a result."""
    loaded = [name for name in ("torch",) if name in sys.modules and name not in findings.facts]
    packages = {name: version(name) for name in (*PACKAGES, *loaded)}
    return {"treewright": __version__, "python": platform.python_version(), **packages}


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
    tables = [{"caption": table.caption, "rows": list(table.rows)} for table in findings.tables]
    record = {**about, "origin": origin, "facts": findings.facts, "settings": settings, "tables": tables}
    return json.dumps(record, indent=2) + "\n"


def _render(template: str, values: Mapping[str, Any]) -> str:
    """Return an HTML page that needs nothing else."""
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
    """Return what of an SVG file belongs into a page, where its name spaces are known."""
    return re.sub(r' xmlns(:\w+)?="[^"]*"', "", drawing[drawing.index("<svg") :])


def _write(path: Path, content: str) -> None:
    with replacing(path) as stream:
        stream.write(content.encode("utf-8"))
