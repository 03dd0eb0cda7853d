"""Reliability diagrams as a table with bars, or as a plot."""

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from treewright._optional import require
from treewright.errors import InputError
from treewright.metrics import Reliability

BAR_LENGTH = 30
PLOT_SUFFIXES = (".png", ".svg", ".pdf")


def reliability_table(found: Reliability) -> Table:
    """Make a table with a row per non-empty bin; the bar shows the accuracy, and the mark the confidence."""
    title = f"expected calibration error {found.error:.4f}"
    table = Table("words", "confidence", "accuracy", "", title=title, title_justify="left", box=SIMPLE_HEAD)
    for n_words, confidence, accuracy in zip(found.counts, found.confidence, found.accuracy, strict=True):
        if n_words:
            table.add_row(str(n_words), f"{confidence:.3f}", f"{accuracy:.3f}", _bar(accuracy, confidence))
    for column in table.columns[:3]:
        column.justify = "right"
    return table


def _bar(length: float, mark: float) -> str:
    filled, at = round(length * BAR_LENGTH), min(round(mark * BAR_LENGTH), BAR_LENGTH - 1)
    cells = ["█" if place < filled else " " for place in range(BAR_LENGTH)]
    cells[at] = "┃"
    return "".join(cells)


def plot_reliability(found: Reliability, path: Path) -> None:
    """Write a reliability diagram as PNG, SVG or PDF, by the suffix of the file name."""
    if path.suffix.lower() not in PLOT_SUFFIXES:
        raise InputError(
            f"{path} is not a plot file; expected a name that ends in {', '.join(PLOT_SUFFIXES)}"
        )
    figure_module = require("matplotlib.figure", "report")
    figure = figure_module.Figure(figsize=(4, 4), layout="constrained")
    axes = figure.subplots()
    full = [at for at, n_words in enumerate(found.counts) if n_words]
    confidence, accuracy = ([column[at] for at in full] for column in (found.confidence, found.accuracy))
    largest = max(found.counts)
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1, label="perfect calibration")
    axes.plot(confidence, accuracy, color="C0")
    axes.scatter(confidence, accuracy, s=[20 + 180 * found.counts[at] / largest for at in full], color="C0")
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.02), ylim=(0, 1.02))
    axes.set_title(f"expected calibration error {found.error:.4f}")
    axes.legend()
    figure.savefig(path)
