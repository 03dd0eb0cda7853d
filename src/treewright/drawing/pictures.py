"""Drawings of trees as SVG, PNG or text, and comparison of candidates."""

import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, get_args

from treewright._validate import check_choice, check_param, check_type
from treewright.data.consttree import ConstTree, Span
from treewright.data.deptree import DepTree
from treewright.data.files import check_target, replacing
from treewright.drawing.glyphs import visible
from treewright.drawing.layout import (
    SIZES,
    Group,
    Layout,
    Stroke,
    Text,
    Tree,
    check_notes,
    lay_out,
    line_looks,
)
from treewright.drawing.png import write_png
from treewright.drawing.terminal import draw_constituents, draw_dependencies, encodable
from treewright.errors import InputError

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
"""Style sheet with the text colour of the page or, in a separate file, colours for light or dark mode."""
LONGEST_TITLE = 200
MOST_WORDS, MOST_NODES = 300, 2000
"""Maximum size of trees that notebooks display as drawings."""
SUFFIXES = (".svg", ".png", ".txt")
Arrangement: TypeAlias = Literal["horizontal", "vertical"]
"""Whether words are laid out horizontally or vertically."""


class HasTree(Protocol):
    """An object with a tree, such as a candidate of a parser."""

    @property
    def tree(self) -> Tree:
        """The tree."""


def draw_svg(
    tree: Tree,
    *,
    marked: Collection[int] = (),
    confidence: Sequence[float] | None = None,
    title: str | None = None,
    layout: Arrangement = "horizontal",
) -> str:
    """Draw a tree as SVG, with arcs or constituents above the words.

    The drawing can be a file or part of a page. In a page, it takes the text colour of the page, which may
    set ``--tw-line`` and ``--tw-mark``, the colours of lines and of marked parts. The drawing includes a text
    description. Sentences in right-to-left scripts are drawn from right to left.

    Parameters
    ----------
    tree : DepTree or ConstTree
        The tree. Words without a head have no arc.
    marked : collection of int
        Parts to highlight: the arcs of words in a dependency tree, counted from 1; nodes of a constituency
        tree, counted from 0 in post-order.
    confidence : sequence of float, optional
        Values from 0 to 1, one per word or node. Less confident lines are thinner and paler.
    title : str, optional
        Title of the drawing (by default, the sentence).
    layout : {"horizontal", "vertical"}
        Arrange words from left to right or, for long sentences, from top to bottom with arcs on their left.

    Returns
    -------
    svg : str
        Arcs are ``g`` elements of class ``arc`` with the attributes ``data-word``, ``data-head`` (0 for the
        root), ``data-relation`` and, if given, ``data-confidence``; words are of class ``word`` with
        ``data-word``, constituents and their words of class ``node`` with ``data-node``. Marked parts also
        have the class ``marked``.

    See Also
    --------
    draw : Draws a tree to a file or as text.
    compare_trees : Shows several trees of a sentence.

    Examples
    --------
    >>> draw_svg(DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"])).count('class="arc"')
    2
    """
    check_choice("layout", layout, get_args(Arrangement))
    is_vertical = layout == "vertical"
    check_param("title", title, str | None)
    return _write_svg(lay_out(tree, marked=marked, confidence=confidence, is_vertical=is_vertical), title)


def _write_svg(layout: Layout, title: str | None = None) -> str:
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


def _number(value: float) -> str:
    """Format a coordinate without insignificant digits."""
    return f"{value:.1f}".removesuffix(".0")


def draw(
    tree: Tree | HasTree,
    path: str | os.PathLike[str] | None = None,
    *,
    marked: Collection[int] = (),
    confidence: Sequence[float] | None = None,
) -> str | None:
    """Draw a tree to a file or, without a path, as text for the terminal.

    If standard output cannot encode box-drawing characters, ASCII characters are used.

    Parameters
    ----------
    tree : DepTree, ConstTree or candidate
        The tree, or a candidate of a parser.
    path : path-like, optional
        File name that ends in ``.svg``, ``.png`` (needs Matplotlib from the extra ``report``) or ``.txt``.
        The file is written completely or not at all.
    marked : collection of int
        Words to highlight, counted from 1, or nodes, counted from 0 in post-order.
    confidence : sequence of float, optional
        Values from 0 to 1, one per word or node.

    Returns
    -------
    text : str or None
        The drawing, if there is no path.

    See Also
    --------
    draw_svg : Draws a tree as SVG.
    compare_trees : Shows several trees of a sentence.

    Examples
    --------
    >>> print(draw(DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"]), marked=[1]))
    ┌─► Mary    _  nsubj *
    └── sleeps  _  root
    """
    tree = _tree_of(tree)
    if path is None:
        return for_terminal(draw_text(tree, marked, confidence))
    check_target("path", path)
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"path is {os.fspath(path)!r}; expected a name that ends in {', '.join(SUFFIXES)}")
    if suffix == ".txt":
        text = draw_text(tree, marked, confidence) + "\n"
    else:
        layout = lay_out(tree, marked=marked, confidence=confidence)
        text = _write_svg(layout) + "\n" if suffix == ".svg" else ""
    with replacing(Path(path)) as stream:
        if suffix == ".png":
            write_png(layout, stream)
        else:
            stream.write(text.encode("utf-8"))
    return None


def for_terminal(text: str) -> str:
    """Return a drawing in characters that standard output can encode."""
    return encodable(text, getattr(sys.stdout, "encoding", None))


def draw_text(tree: Tree, marked: Collection[int] = (), confidence: Sequence[float] | None = None) -> str:
    """Draw a tree as text."""
    check_notes(tree, marked, confidence)
    if isinstance(tree, DepTree):
        return draw_dependencies(tree, marked=marked, confidence=confidence)
    return draw_constituents(tree, marked=marked, confidence=confidence)


def _tree_of(drawn: Tree | HasTree) -> Tree:
    """Return `drawn`, or the tree of a candidate."""
    tree = drawn if isinstance(drawn, DepTree | ConstTree) else getattr(drawn, "tree", None)
    if not isinstance(tree, DepTree | ConstTree):
        raise InputError(
            f"tree is a {type(drawn).__name__}; expected a DepTree, a ConstTree or a candidate of a parser"
        )
    return tree


def notebook_svg(tree: Tree, *, marked: Collection[int] = ()) -> str | None:
    """Draw a tree for a notebook; None if it is too large, so that the notebook shows text instead."""
    is_small = len(tree) <= MOST_WORDS if isinstance(tree, DepTree) else tree.n_nodes <= MOST_NODES
    return draw_svg(tree, marked=marked) if is_small else None


def notebook_html(candidate: Tree | HasTree, *, marked: Collection[int] = ()) -> str:
    """Return HTML of a candidate for a notebook: its scores, and its drawing if it is not too large."""
    tree = _tree_of(candidate)
    picture = notebook_svg(tree, marked=marked) or f"<p>{escape(visible(repr(tree)))}</p>"
    return (
        '<figure style="margin:0;max-width:100%"><figcaption style="font-variant-numeric:tabular-nums">'
        f'{_describe(candidate)}</figcaption><div style="overflow-x:auto">{picture}</div></figure>'
    )


def _describe(candidate: Tree | HasTree) -> str:
    """Format the probability and the score of a candidate, if it has them."""
    probability, score = (getattr(candidate, name, None) for name in ("probability", "score"))
    told = [] if probability is None else [f"probability {probability:.4f}"]
    told += [] if score is None else [f"score {score:.3f}"]
    return " · ".join(told)


def find_differences(tree: Tree, other: Tree) -> list[int]:
    """Return the parts of a tree that are not in another tree of the sentence, for `marked` in `draw_svg`.

    Returns
    -------
    numbers : list of int
        Words, counted from 1, whose heads or relations differ; or nodes, counted from 0 in post-order, that
        are missing from the other tree or have another parent there.
    """
    if isinstance(tree, DepTree) and isinstance(other, DepTree) and tree.words == other.words:
        columns = zip(tree.heads, other.heads, tree.deprels, other.deprels, strict=True)
        pairs = enumerate(columns, start=1)
        return [number for number, (head, its, rel, own) in pairs if head != its or rel != own]
    if isinstance(tree, ConstTree) and isinstance(other, ConstTree) and tree.words() == other.words():
        return _find_other_nodes(tree, other)
    raise InputError(
        "the trees differ in kind or words; expected trees of the same kind for the same sentence"
    )


def _find_other_nodes(tree: ConstTree, other: ConstTree) -> list[int]:
    """Return new nodes, and nodes whose parent is not new but differs from their parent in `other`."""
    spans, parents = _find_spans(tree), tree.parents().tolist()
    known, above = _find_spans(other), other.parents().tolist()
    places = {(span, known.get(above[node])) for node, span in known.items()}
    left = Counter(known.values())
    new: set[int] = set()
    for node, span in spans.items():
        left[span] -= 1
        if left[span] < 0:
            new.add(node)
    moved = {
        node
        for node, span in spans.items()
        if parents[node] not in new and (span, spans.get(parents[node])) not in places
    }
    return sorted(new | moved)


def _find_spans(tree: ConstTree) -> dict[int, Span]:
    """Return the span of each node that is not a word."""
    inner = [node for node, size in enumerate(tree.sizes.tolist()) if size > 1]
    return dict(zip(inner, tree.spans(), strict=True))


class SideBySide:
    """Trees of one sentence, shown side by side in notebooks, and one below the other as text.

    Parameters
    ----------
    candidates : sequence of DepTree, ConstTree or candidate
        The trees.

    Attributes
    ----------
    trees : list of DepTree or ConstTree
        The trees.
    differences : list of list of int
        Parts of each tree that are not in the first tree, as for `marked` in `draw`.

    See Also
    --------
    compare_trees : Makes this object.

    Examples
    --------
    >>> mary = tw.DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"])
    >>> len(tw.compare_trees([mary, mary.with_heads([0, 1])]))
    2
    """

    def __init__(self, candidates: Sequence[Tree | HasTree]) -> None:
        check_type("candidates", candidates, Iterable, "a list of trees or of candidates of a parser")
        self._candidates = list(candidates)
        self.trees = [_tree_of(candidate) for candidate in self._candidates]
        self.differences = [find_differences(tree, self.trees[0]) for tree in self.trees]

    def __len__(self) -> int:
        return len(self.trees)

    def __repr__(self) -> str:
        ranked = enumerate(self._candidates, start=1)
        captions = [f"{rank}. {_describe(each)}".rstrip() for rank, each in ranked]
        drawn = map(draw_text, self.trees, self.differences)
        return for_terminal("\n\n".join("\n".join(parts) for parts in zip(captions, drawn, strict=True)))

    def _repr_html_(self) -> str:
        figures = [
            notebook_html(candidate, marked=marked)
            for candidate, marked in zip(self._candidates, self.differences, strict=True)
        ]
        return f'<div style="display:flex;flex-wrap:wrap;gap:1.5rem 2.5rem">{"".join(figures)}</div>'


def compare_trees(candidates: Sequence[Tree | HasTree]) -> SideBySide:
    """Show trees of one sentence side by side, with differences from the first highlighted.

    Parameters
    ----------
    candidates : sequence of DepTree, ConstTree or candidate
        Trees of one sentence, such as a k-best list, or trees of several parsers.

    Returns
    -------
    shown : SideBySide
        An object that a notebook displays as drawings, and a terminal as text.

    See Also
    --------
    draw : Draws one tree.

    Examples
    --------
    >>> mary = DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"])
    >>> compare_trees([mary, mary.with_heads([0, 1])]).differences
    [[], [1, 2]]
    """
    return SideBySide(candidates)
