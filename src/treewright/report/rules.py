"""Plots of rules, and files that list rules."""

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from treewright._optional import require
from treewright._typing import Count
from treewright._validate import check_choice, check_param, check_type
from treewright.data.files import Target, check_target, open_target
from treewright.errors import InputError
from treewright.mining.naming import source_column
from treewright.mining.rules import Contributions, RuleTable

PLOT_SUFFIXES = (".png", ".svg", ".pdf")
TABLE_SUFFIXES = (".md", ".txt", ".csv")
LONGEST_NAME = 60
"""Maximum number of characters of a rule in a plot."""


def plot_rules(
    rules: RuleTable,
    path: str | os.PathLike[str] | None = None,
    *,
    kind: Literal["bars", "pairs"] = "bars",
    max_shown: Count = 20,
) -> Any:  # noqa: ANN401
    """Plot the strongest rules (extra `report`).

    Parameters
    ----------
    rules : RuleTable
        Rules from `list_rules`.
    path : path, optional
        File to write, as PNG, SVG or PDF according to its suffix.
    kind : {"bars", "pairs"}
        ``"bars"`` shows the weights of rules. ``"pairs"`` is a heat map that shows, for each pair of columns,
        the importance of all rules with both; the diagonal shows rules with a single column.
    max_shown : int
        Maximum number of bars or columns.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    See Also
    --------
    list_rules : Lists the rules of a model.

    Examples
    --------
    >>> X, y = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5, ["yes", "no", "no", "no"] * 5
    >>> rules = tw.list_rules(tw.ConjunctionMiner(degree=2, threshold=2).fit(X, y), X, y)
    >>> tw.plot_rules(rules, "rules.svg")
    <Figure size ...>
    """
    check_choice("kind", kind, ("bars", "pairs"))
    check_param("max_shown", max_shown, Count)
    check_type("rules", rules, RuleTable, "the RuleTable that list_rules returns")
    if not len(rules):
        raise InputError("there are no rules to plot; expected at least one")
    if path is not None:
        check_plot_name(path)
    n_lines = min(max_shown, len(rules))
    figure = require("matplotlib.figure", "report").Figure(
        figsize=(8, 1.2 + 0.28 * n_lines) if kind == "bars" else (7, 6), layout="constrained"
    )
    draw = _draw_bars if kind == "bars" else _draw_pairs
    draw(figure.subplots(), rules, max_shown)
    if path is not None:
        with require("matplotlib", "report").rc_context(
            {"svg.fonttype": "none", "svg.hashsalt": "treewright"}
        ):
            is_svg = Path(path).suffix.lower() == ".svg"
            figure.savefig(path, metadata={"Date": None} if is_svg else None)
    return figure


def check_plot_name(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if a file name does not have the suffix of a plot."""
    _check_suffix(path, "a plot", PLOT_SUFFIXES)


def check_table_name(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if a file name does not have the suffix of a table."""
    _check_suffix(path, "a table of rules", TABLE_SUFFIXES)


def _check_suffix(path: str | os.PathLike[str], what: str, suffixes: tuple[str, ...]) -> None:
    check_target("path", path)
    if Path(path).suffix.lower() not in suffixes:
        raise InputError(
            f"{path} is not a file name for {what}; expected one ending in {', '.join(suffixes)}"
        )


def write_rules(rules: RuleTable, parts: Contributions, target: Target) -> None:
    """Write rules and their contributions as Markdown or text, or only rules as CSV, by the file's suffix."""
    suffix = Path(str(target)).suffix.lower()
    if suffix == ".csv":
        text = rules.to_csv()
    elif suffix == ".md":
        text = f"{rules.to_markdown()}\n\n{parts.to_markdown()}\n"
    else:
        text = f"{rules.to_text()}\n\n{parts.to_text()}\n"
    with open_target(target) as stream:
        stream.write(text)


def _draw_bars(axes: Any, rules: RuleTable, max_shown: int) -> None:  # noqa: ANN401
    shown = sorted(rules, key=lambda rule: -rule.importance)[:max_shown][::-1]
    labels = sorted({str(rule.label) for rule in shown})
    for place, rule in enumerate(shown):
        color = f"C{0 if rules.is_regression else labels.index(str(rule.label)) % 10}"
        if rules.is_regression and rule.weight < 0:
            color = "C1"
        axes.barh(place, rule.weight, color=color)
        note = f" {rule.n_samples:,}"
        axes.annotate(note, (rule.weight, place), va="center", ha="left" if rule.weight >= 0 else "right")
    axes.set_yticks(range(len(shown)), [_shorten(rule.conjunction) for rule in shown])
    axes.set(xlabel="weight (beside each bar: samples in which the rule holds)")
    axes.margins(x=0.12, y=0.01)
    axes.axvline(0, color="grey", linewidth=0.8)
    if not rules.is_regression:
        handles = [axes.barh(0, 0, color=f"C{place % 10}") for place in range(len(labels))]
        axes.legend(handles, [f"for {label}" for label in labels], loc="lower right")


def _draw_pairs(axes: Any, rules: RuleTable, max_shown: int) -> None:  # noqa: ANN401
    totals: dict[str, float] = {}
    cells: dict[tuple[str, str], float] = {}
    for rule in rules:
        columns = sorted({source_column(name) for name in rule.conjunction.split(" & ")})
        for place, one in enumerate(columns):
            totals[one] = totals.get(one, 0.0) + rule.importance
            others = columns[place + 1 :] if len(columns) > 1 else columns
            for other in others:
                cells[one, other] = cells.get((one, other), 0.0) + rule.importance
    shown = sorted(totals, key=lambda name: (-totals[name], name))[:max_shown]
    grid = np.zeros((len(shown), len(shown)))
    for (one, other), value in cells.items():
        if one in shown and other in shown:
            first, second = shown.index(one), shown.index(other)
            grid[first, second] = grid[second, first] = value
    image = axes.imshow(grid, cmap="Blues", vmin=0)
    names = [_shorten(name) for name in shown]
    axes.set_xticks(range(len(shown)), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(shown)), names)
    axes.figure.colorbar(image, ax=axes, label="importance of the rules with both columns")


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
