"""What an experiment finds: its tables, as text and CSV, and a plot."""

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
    """One column of a table: where its values are, and how they are shown."""

    key: str
    title: str
    show: Callable[[Any], str] = str
    group: str = ""
    """Heading that it shares with its neighbours."""

    def cell(self, row: Row) -> str:
        """Return what stands in a row."""
        value = row.get(self.key)
        return MISSING if value is None else self.show(value)


@dataclass(frozen=True)
class Table:
    """Rows under a caption; the first column says what each row is about."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The headings over neighbouring columns, each with how many it is over."""
        return [(name, len(list(same))) for name, same in groupby(column.group for column in self.columns)]

    @property
    def cells(self) -> list[list[str]]:
        """What stands in the rows."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]


@dataclass(frozen=True)
class Findings:
    """What an experiment has found.

    Attributes
    ----------
    title : str
    tables : sequence of Table
        The first is the result, which is also written as CSV.
    draw : callable or str
        Draws the plot into an empty figure of Matplotlib; or pictures, as SVG.
    drawing : str
        Says what the plot shows.
    facts : mapping
        What the result depends on, by name.
    headline : str
        The result in a line; that with the highest score in the first table without it.
    """

    title: str
    tables: Sequence[Table]
    draw: Callable[[Any], None] | str
    drawing: str
    facts: Mapping[str, str]
    headline: str = ""


def check_extras() -> None:
    """Find out before long work whether its result can be drawn and written."""
    require("matplotlib.figure", "report")
    require("jinja2", "report")


def as_text(table: Table) -> str:
    """Return a table in lines of text."""
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
    """Return the values of a table as CSV, none of them rounded."""
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.key for column in table.columns])
    writer.writerows([row.get(column.key) for column in table.columns] for row in table.rows)
    return stream.getvalue()


def render_plot(draw: Callable[[Any], None] | str) -> str:
    """Return a plot as SVG, with its text as text; pictures in SVG stay as they are."""
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
    """Yield a note for each row that could not be filled, or not wholly."""
    for row in rows:
        for told in filter(None, (row.get("failure"), row.get("reached"))):
            yield f"{row['title']}: {told}."
