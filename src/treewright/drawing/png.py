"""Drawings of trees as PNG, made with Matplotlib."""

import logging
import warnings
from collections.abc import Collection
from typing import Any, BinaryIO

from treewright._optional import require
from treewright.drawing.layout import SIZES, Group, Layout, Stroke, line_looks
from treewright.errors import InputError

logger = logging.getLogger("treewright")

SCALE = 2
"""Pixels per unit of the layout; with two, drawings are sharp on high-resolution screens."""
POINTS_AN_INCH = 72
MOST_PIXELS = 1 << 15
"""Maximum width or height of a drawing, in pixels."""
INK, MARK, PAPER = "#1f2328", "#b11b4a", "#ffffff"
FIRST_FAMILY = "DejaVu Sans"
"""Typeface that Matplotlib includes, with Latin, Greek, Cyrillic, Hebrew and Arabic letters."""
LAST_RESORT = "Last Resort"
"""A typeface that is skipped, because it has only a box for every character."""


def write_png(layout: Layout, stream: BinaryIO) -> None:
    """Draw a layout to a file.

    Characters that are missing from Matplotlib's own typeface are drawn with the first installed typeface
    that has them. A log line lists characters that are missing from all typefaces.
    """
    require("matplotlib", "report")
    longest = SCALE * max(layout.width, layout.height)
    if longest > MOST_PIXELS:
        raise InputError(
            f"the longer side of the drawing has {longest:,.0f} pixels; expected at most {MOST_PIXELS:,}; "
            "write .svg instead"
        )
    size = layout.width / POINTS_AN_INCH, layout.height / POINTS_AN_INCH
    figure = require("matplotlib.figure", "report").Figure(size, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.set(xlim=(0, layout.width), ylim=(layout.height, 0))
    characters = {letter for group in layout.groups for text in group.texts for letter in text.text}
    families = find_families(characters)
    for group in layout.groups:
        _draw_group(axes, group, families)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # find_families logs them
        figure.savefig(stream, format="png", dpi=SCALE * POINTS_AN_INCH)


def _draw_group(axes: Any, group: Group, families: list[str]) -> None:  # noqa: ANN401
    is_marked = "marked" in group.kinds
    colour = MARK if is_marked else INK
    for stroke in group.strokes:
        axes.add_patch(_make_patch(stroke, colour, group.confidence, is_marked=is_marked))
    for text in group.texts:
        axes.text(
            *text.at,
            text.text,
            size=SIZES[text.kind],
            family=families,
            color=colour,
            weight="bold" if is_marked else "normal",
            ha="center",
            va="baseline",
            parse_math=False,
        )


def _make_patch(stroke: Stroke, colour: str, confidence: float | None, *, is_marked: bool) -> Any:  # noqa: ANN401
    path = require("matplotlib.path", "report").Path
    codes = {"M": [path.MOVETO], "L": [path.LINETO], "C": [path.CURVE4] * 3, "Z": [path.CLOSEPOLY]}
    points = [point for step, at in stroke.steps for point in (at if step != "Z" else [(0.0, 0.0)])]
    outline = path(points, [code for step, _ in stroke.steps for code in codes[step]])
    width, opacity = (1.4, 1.0) if confidence is None else line_looks(confidence)
    is_head = stroke.kind == "head"
    return require("matplotlib.patches", "report").PathPatch(
        outline,
        facecolor=colour if is_head else "none",
        edgecolor="none" if is_head else colour,
        linewidth=2.4 if is_marked else width,
        linestyle=(0, (0.1, 2.5)) if stroke.kind == "drop" else "-",
        alpha=opacity * (1.0 if is_marked else 0.75),
        capstyle="round",
    )


def find_families(characters: Collection[str]) -> list[str]:
    """Return installed typefaces that together cover as many of the `characters` as possible."""
    manager = require("matplotlib.font_manager", "report")
    missing = {character for character in characters if not character.isspace()}
    families = [FIRST_FAMILY]
    missing -= _characters(manager.findfont(FIRST_FAMILY))
    usable = [entry for entry in manager.fontManager.ttflist if LAST_RESORT not in entry.name]
    for entry in sorted(usable, key=_plainness):
        if not missing:
            return families
        if entry.name not in families and missing & (found := _characters(entry.fname)):
            families.append(entry.name)
            missing -= found
    if missing:
        shown = " ".join(sorted(missing)[:8])
        logger.warning(
            "no installed typeface has %s; the drawing shows boxes instead; write .svg to avoid them", shown
        )
    return families


def _plainness(entry: Any) -> tuple[bool, bool, str, str]:  # noqa: ANN401
    """Sort key of a typeface: regular upright sans-serif faces first, in a fixed order."""
    is_fancy = entry.style != "normal" or str(entry.weight) not in ("400", "normal", "regular")
    return is_fancy, "Sans" not in entry.name, entry.name, entry.fname


def _characters(path: str) -> set[str]:
    """Return the characters of a typeface; empty if it cannot be used."""
    try:
        return set(map(chr, require("matplotlib.ft2font", "report").FT2Font(path).get_charmap()))
    except (OSError, RuntimeError, ValueError):
        return set()
