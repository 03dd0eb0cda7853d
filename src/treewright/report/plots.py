"""Plots of experiments: gains, scores, and values by threshold."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from treewright.report.tables import Row

HEIGHT_OF_A_ROW, HEIGHT_OF_THE_REST, WIDTH = 0.42, 1.1, 7.5
"""Size of plots in inches."""
MARKS = "os^D"


class Series(NamedTuple):
    """The values of one source for each row; None if missing."""

    label: str
    values: Sequence[float | None]
    intervals: Sequence[tuple[float, float] | None] = ()
    """Confidence intervals, if there are any."""


class Panel(NamedTuple):
    """One of several plots side by side."""

    title: str
    series: Sequence[Series]
    is_logarithmic: bool = False


def draw_gains(figure: Any, names: Sequence[str], series: Sequence[Series], *, label: str) -> None:  # noqa: ANN401
    """Plot gains, one row per name, with a line at zero."""
    figure.set_size_inches(WIDTH, HEIGHT_OF_THE_REST + HEIGHT_OF_A_ROW * len(names))
    axes = figure.subplots()
    axes.axvline(0, color="grey", linewidth=1)
    for number, each in enumerate(series):
        shift = 0.2 * (number - (len(series) - 1) / 2)
        rows = [row + shift for row, value in enumerate(each.values) if value is not None]
        values = [value for value in each.values if value is not None]
        axes.scatter(values, rows, color=f"C{number}", marker=MARKS[number], label=each.label, zorder=2)
        for row, interval in enumerate(each.intervals):
            if interval is not None:
                axes.plot(interval, [row + shift] * 2, color=f"C{number}", linewidth=1, zorder=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(label)
    axes.legend()


def draw_scores(
    figure: Any,  # noqa: ANN401
    *,
    rows: Sequence[Row],
    title: Callable[[Row], str] = itemgetter("title"),
    height: float = HEIGHT_OF_A_ROW,
) -> None:
    """Plot the F1 of each row; the paper's rows have another colour."""
    figure.set_size_inches(WIDTH, HEIGHT_OF_THE_REST + height * len(rows))
    axes = figure.subplots()
    for kind, colour, label in ((False, "C0", "here"), (True, "C1", "paper, Penn Treebank")):
        places = [at for at, row in enumerate(rows) if row.get("is_paper", False) == kind]
        axes.scatter([rows[at]["f1"] for at in places], places, color=colour, marker="so"[kind], label=label)
    axes.set_yticks(range(len(rows)), list(map(title, rows)))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("F1")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()


def draw_panels(figure: Any, places: Sequence[float], panels: Sequence[Panel], *, label: str) -> None:  # noqa: ANN401
    """Plot several kinds of values over the same x values, one panel each."""
    figure.set_size_inches(WIDTH, 3.2)
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for number, each in enumerate(panel.series):
            known = [at for at, value in enumerate(each.values) if value is not None]
            shown = [[column[at] for at in known] for column in (places, each.values)]
            axes.plot(*shown, color=f"C{number}", marker=MARKS[number], label=each.label)
        axes.set(title=panel.title, xlabel=label, yscale="log" if panel.is_logarithmic else "linear")
        axes.set_xticks(sorted(set(places)))
        axes.legend()
