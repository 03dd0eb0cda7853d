"""Results of an experiment: tables, as text and CSV, and a plot."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from typing import Any

from treewright._optional import require

MISSING = "–"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of a table: the key of its values, and their format."""

    key: str
    title: str
    show: Callable[[Any], str] = str
    group: str = ""
    """Heading shared with adjacent columns."""

    def cell(self, row: Row) -> str:
        """Return the formatted value of a row."""
        value = row.get(self.key)
        return MISSING if value is None else self.show(value)


@dataclass(frozen=True)
class Table:
    """Rows with a caption; the first column is the title of each row."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The shared headings of columns, each with its number of columns."""
        return [(name, len(list(same))) for name, same in groupby(column.group for column in self.columns)]

    @property
    def cells(self) -> list[list[str]]:
        """The formatted values of all rows."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]


@dataclass(frozen=True)
class Findings:
    """Results of an experiment.

    Attributes
    ----------
    title : str
        Title.
    tables : sequence of Table
        Tables; the first is the main result, which is also written as CSV.
    draw : callable or str
        Function that draws the plot into an empty Matplotlib figure; or SVG drawings.
    drawing : str
        Caption of the plot.
    facts : mapping
        Settings and data that affect the result, by name.
    headline : str
        The result in one line (by default, the row with the highest score in the first table).
    """

    title: str
    tables: Sequence[Table]
    draw: Callable[[Any], None] | str
    drawing: str
    facts: Mapping[str, str]
    headline: str = ""


def check_extras() -> None:
    """Check, before a long computation, that the packages for plots and pages are installed."""
    require("matplotlib.figure", "report")
    require("jinja2", "report")


def as_text(table: Table) -> str:
    """Return a table as text."""
    heads = [f"{column.group} {column.title}".strip() for column in table.columns]
    cells = table.cells
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    rule = "  ".join("-" * width for width in widths)
    lines = [table.caption, "", _aligned(heads, widths), rule, *(_aligned(row, widths) for row in cells)]
    return "\n".join([*lines, *([""] if table.notes else []), *table.notes, ""])


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "  ".join([cells[0].ljust(widths[0]), *rest])


def as_csv(table: Table) -> str:
    """Return the values of a table as CSV, without rounding."""
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.key for column in table.columns])
    writer.writerows([row.get(column.key) for column in table.columns] for row in table.rows)
    return stream.getvalue()


def as_record(table: Table) -> dict[str, Any]:
    """Return a table for JSON: columns, values and formatted cells."""
    return {
        "caption": table.caption,
        "columns": [
            {"key": column.key, "title": column.title, "group": column.group} for column in table.columns
        ],
        "rows": list(table.rows),
        "cells": table.cells,
        "notes": list(table.notes),
    }


def render_plot(draw: Callable[[Any], None] | str) -> str:
    """Return a plot as SVG, with text elements; SVG drawings are returned unchanged."""
    if isinstance(draw, str):
        return draw
    figure = require("matplotlib.figure", "report").Figure(layout="constrained")
    draw(figure)
    stream = StringIO()
    unsaid = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with require("matplotlib", "report").rc_context({"svg.fonttype": "none", "svg.hashsalt": "treewright"}):
        figure.savefig(stream, format="svg", metadata=unsaid)
    return stream.getvalue()


def failures(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a note for each row that is missing or incomplete."""
    for row in rows:
        for told in filter(None, (row.get("failure"), row.get("reached"))):
            yield f"{row['title']}: {told}."
