"""Pictures of trees: SVG, PNG, text, and candidates side by side."""

from collections.abc import Collection, Sequence
from html import escape

from treewright.data.glyphs import visible
from treewright.data.layout import SIZES, Group, Stroke, Text, Tree, lay_out

STYLE = (
    ".tw-tree{font-family:system-ui,-apple-system,'Segoe UI','Noto Sans',Roboto,Arial,sans-serif;"
    "fill:currentColor;stroke:none}"
    ".tw-tree text{text-anchor:middle;unicode-bidi:plaintext;white-space:pre}"
    + "".join(f".tw-tree .{kind}{{font-size:{size:g}px}}" for kind, size in SIZES.items())
    + ".tw-tree path{fill:none;stroke:var(--tw-line,currentColor);opacity:.75;"
    "stroke-linecap:round;stroke-linejoin:round}"
    ".tw-tree .head{fill:var(--tw-line,currentColor);stroke:none}"
    ".tw-tree .drop{stroke-dasharray:0 4;opacity:.6}"
    ".tw-tree .tag,.tw-tree .relation{fill-opacity:.8}"
    ".tw-tree .marked{color:#d6336c;--tw-line:currentColor;font-weight:600}"
    "@supports (color:color-mix(in srgb,red,blue)){"
    ".tw-tree .marked{color:var(--tw-mark,color-mix(in srgb,#f01858 70%,currentColor))}}"
    ".tw-tree .marked path{stroke-width:2.4px;opacity:1}"
    ".tw-tree .marked .head{stroke:none}"
    ".tw-tree .marked text{fill-opacity:1}"
    "svg.tw-tree:root{color:#1f2328;background:#fff}"
    "@media (prefers-color-scheme:dark){svg.tw-tree:root{color:#e6edf3;background:#16191d}}"
    "@media print{svg.tw-tree:root{color:#000;background:none}}"
)
"""Inside a page a picture has the colour of its text, on its own one that fits the reader's screen."""
LONGEST_TITLE = 200


def draw_svg(
    tree: Tree,
    *,
    marked: Collection[int] = (),
    confidence: Sequence[float] | None = None,
    title: str | None = None,
) -> str:
    """Draw a tree as SVG: arcs over the words of a dependency tree, constituents over theirs.

    The picture stands on its own, or inside a page, whose colour of text it takes; the page may set the
    colours ``--tw-line`` and ``--tw-mark`` of lines and of what is marked. It says in words what it shows.
    Sentences of scripts that run from right to left are drawn so.

    Parameters
    ----------
    tree : DepTree or ConstTree
        Words without a head have no arc.
    marked : collection of int
        What to point out: words of a dependency tree, counted from 1, whose arcs are marked; nodes of a
        constituency tree, counted from 0 in post-order.
    confidence : sequence of float, optional
        From 0 to 1, one a word or one a node; lines are the thinner and paler the less sure they are.
    title : str, optional
        The sentence if not given.

    Returns
    -------
    svg : str
        Arcs are ``g`` elements of class ``arc`` with the attributes ``data-word``, ``data-head`` (0 for the
        root), ``data-relation`` and, if given, ``data-confidence``; words are of class ``word`` with
        ``data-word``, constituents and their words of class ``node`` with ``data-node``. What is marked is of
        class ``marked`` too.

    Examples
    --------
    >>> draw_svg(DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"])).count('class="arc"')
    2
    """
    layout = lay_out(tree, marked=marked, confidence=confidence)
    shown = visible(layout.title if title is None else title)
    if len(shown) > LONGEST_TITLE:
        shown = shown[: LONGEST_TITLE - 1] + "…"
    size = f"{_number(layout.width)} {_number(layout.height)}"
    width, height = size.split()
    return "".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" class="tw-tree" role="img" stroke-width="1.4" '
            f'width="{width}" height="{height}" viewBox="0 0 {size}">',
            f"<title>{escape(shown)}</title><desc>{escape(layout.description)}</desc><style>{STYLE}</style>",
            *map(_write_group, layout.groups),
            "</svg>",
        ]
    )


def _write_group(group: Group) -> str:
    data = dict(group.data)
    if group.confidence is not None:
        data["confidence"] = f"{group.confidence:.2f}"
    attributes = "".join(f' data-{name}="{escape(value)}"' for name, value in data.items())
    strokes = "".join(_write_stroke(stroke, group.confidence) for stroke in group.strokes)
    texts = "".join(map(_write_text, group.texts))
    about = f"<title>{escape(group.about)}</title>"
    return f'<g class="{" ".join(group.kinds)}"{attributes}>{about}{strokes}{texts}</g>'


def _write_stroke(stroke: Stroke, confidence: float | None) -> str:
    steps = "".join(
        step + " ".join(f"{_number(x)} {_number(y)}" for x, y in points) for step, points in stroke.steps
    )
    looks = ""
    if confidence is not None:
        width, opacity = line_looks(confidence)
        looks = f' stroke-width="{width:.2f}" stroke-opacity="{opacity:.2f}" fill-opacity="{opacity:.2f}"'
    return f'<path class="{stroke.kind}" d="{steps}"{looks}/>'


def _write_text(text: Text) -> str:
    x, y = map(_number, text.at)
    return f'<text class="{text.kind}" x="{x}" y="{y}">{escape(text.text)}</text>'


def line_looks(confidence: float) -> tuple[float, float]:
    """Return how wide and how opaque a line is that is so sure."""
    return 1 + 1.2 * confidence, 0.3 + 0.7 * confidence


def _number(value: float) -> str:
    """Write a coordinate without digits that nobody sees."""
    return f"{value:.1f}".removesuffix(".0")
