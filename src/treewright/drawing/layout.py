"""Layout of drawings of trees, shared by all output formats."""

from collections.abc import Collection, Sequence
from itertools import accumulate
from numbers import Real
from typing import NamedTuple, TypeAlias

from treewright._validate import check_param, check_type
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.drawing.glyphs import em_width, runs_leftwards, shorten, visible
from treewright.drawing.terminal import arc_levels, shown_tags
from treewright.errors import InputError, show

Point: TypeAlias = tuple[float, float]
Tree: TypeAlias = DepTree | ConstTree

SIZES = {"word": 16.0, "tag": 12.0, "relation": 12.0, "label": 14.0}
"""Font size of each kind of text."""
MARGIN = 14.0
WORD_GAP, LEAF_GAP = 16.0, 14.0
LEVEL, FIRST_LEVEL = 23.0, 24.0
"""Height of an arc above the arcs below it, and height of the lowest arc."""
WORD_LINE, TAG_LINE = 18.0, 37.0
"""Distances from the arcs down to the baselines of words and tags."""
PORT = 8.0
"""Horizontal distance from the centre of a word to the arcs of its dependents."""
CORNER = 9.0
HEAD_LENGTH, HEAD_WIDTH = 7.0, 3.4
ROW = 46.0
"""Height of a level of constituents."""
UNDER, OVER = 6.0, 17.0
"""Distances from baselines to the ends of the lines between constituents."""
LINE, BASE = 27.0, 5.0
"""Vertical layout: height of a line, and distance of the baseline below the middle of the line."""
SIDE_STEP, SIDE_PORT = 15.0, 6.0
"""Vertical layout: distance of an arc from the arcs inside it, and from the middle of its line."""
COLUMN_GAP, BRANCH, GAP = 18.0, 30.0, 5.0
"""Gaps between columns of text, between levels of constituents, and between a line and a label."""
TOLERANCE = 1e-6
"""Tolerance for sums of probabilities that exceed one."""


class Text(NamedTuple):
    """A text of one of the kinds in `SIZES`, centred at a point of its baseline."""

    kind: str
    at: Point
    text: str


class Stroke(NamedTuple):
    """A line of the kind ``line``, ``drop`` or ``head``, with SVG path commands."""

    kind: str
    steps: tuple[tuple[str, tuple[Point, ...]], ...]


class Group(NamedTuple):
    """A word, an arc or a node, with its strokes and texts.

    Attributes
    ----------
    kinds : tuple of str
        Class names for styling, including ``marked`` for a marked part.
    data : dict of str to str
        Data attributes.
    confidence : float or None
        Confidence, from 0 to 1.
    about : str
        Description as text.
    strokes, texts : tuple
        The lines and texts.
    """

    kinds: tuple[str, ...]
    data: dict[str, str]
    confidence: float | None
    about: str
    strokes: tuple[Stroke, ...]
    texts: tuple[Text, ...]


class Layout(NamedTuple):
    """A complete drawing: its size, groups, title and description."""

    width: float
    height: float
    groups: list[Group]
    title: str
    description: str


class Arc(NamedTuple):
    """An arc from a head to a word, with positions from 1 (0 is the root), and its level."""

    head: int
    word: int
    level: int


def lay_out(
    tree: Tree,
    *,
    marked: Collection[int] = (),
    confidence: Sequence[float] | None = None,
    is_vertical: bool = False,
) -> Layout:
    """Compute the layout of a tree; see `treewright.drawing.pictures.draw_svg`."""
    check_notes(tree, marked, confidence)
    n = len(tree) if isinstance(tree, DepTree) else tree.n_nodes
    clipped = [None] * n if confidence is None else [min(max(float(value), 0.0), 1.0) for value in confidence]
    if isinstance(tree, DepTree):
        place = _stack_dependencies if is_vertical else _lay_out_dependencies
        words, layout = tree.words, place(tree, frozenset(marked), clipped)
    else:
        arrange = _stack_constituents if is_vertical else _lay_out_constituents
        words, layout = tree.words(), arrange(tree, frozenset(marked), clipped)
    return _mirrored(layout) if runs_leftwards(words) else layout


def check_notes(tree: Tree, marked: Collection[int], confidence: Sequence[float] | None) -> None:
    """Check that `marked` and `confidence` match the words or nodes of a tree."""
    check_type("tree", tree, (DepTree, ConstTree), "a DepTree or a ConstTree")
    kind, n, first = ("word", len(tree), 1) if isinstance(tree, DepTree) else ("node", tree.n_nodes, 0)
    if not hasattr(marked, "__len__") or not hasattr(marked, "__iter__"):
        raise InputError(f"marked is {show(marked)}; expected a list of the numbers of {kind}s")
    for number in marked:
        check_param("a number in marked", number, int)
        if not first <= number < first + n:
            raise InputError(f"marked contains {number!r}; expected {kind}s from {first} to {first + n - 1}")
    if confidence is None:
        return
    if not hasattr(confidence, "__len__") or not hasattr(confidence, "__iter__"):
        raise InputError(f"confidence is {show(confidence)}; expected a list of numbers, one per {kind}")
    if len(confidence) != n:
        raise InputError(f"confidence has {len(confidence)} values; expected {n}, one per {kind}")
    for value in confidence:
        if not _is_probability(value):
            raise InputError(f"confidence contains {value!r}; expected numbers from 0 to 1")


def _is_probability(value: object) -> bool:
    return isinstance(value, Real) and -TOLERANCE <= float(value) <= 1 + TOLERANCE


def line_looks(confidence: float) -> tuple[float, float]:
    """Return the width and opacity of a line with this confidence."""
    return 1 + 1.2 * confidence, 0.3 + 0.7 * confidence


def _width(kind: str, text: str) -> float:
    return SIZES[kind] * em_width(text)


def _lay_out_dependencies(
    tree: DepTree, marked: frozenset[int], confidence: Sequence[float | None]
) -> Layout:
    words = [shorten(visible(word)) for word in tree.words]
    tags = ["" if tag == "_" else shorten(visible(tag)) for tag in shown_tags(tree)]
    relations = ["" if rel == "_" else shorten(visible(rel)) for rel in tree.deprels]
    arcs = _find_arcs(tree.heads.tolist())
    centres, width = _place_words(words, tags, relations, arcs)
    walls = _walls(arcs, centres)
    ground = MARGIN + (_rise(max(arc.level for arc in arcs)) + SIZES["relation"] if arcs else 0)
    groups = []
    for arc in sorted(arcs, key=lambda arc: arc.word in marked):  # draw marked parts on top
        strokes, at = _draw_arc(arc, centres, ground, walls)
        groups.append(_arc_group(tree, arc, relations[arc.word - 1], marked, confidence, strokes, at))
    for number, (word, tag, x) in enumerate(zip(words, tags, centres[1:], strict=True), start=1):
        texts = [Text("word", (x, ground + WORD_LINE), word)]
        texts += [Text("tag", (x, ground + TAG_LINE), tag)] if tag else []
        about = visible(tree.words[number - 1]) + (f" ({tag})" if tag else "")
        groups.append(Group(("word",), {"word": str(number)}, None, about, (), tuple(texts)))
    height = ground + (TAG_LINE if any(tags) else WORD_LINE) + MARGIN
    title = " ".join(map(visible, tree.words)) or "No words"
    return Layout(width, height, groups, title, _describe_dependencies(tree))


def _stack_dependencies(tree: DepTree, marked: frozenset[int], confidence: Sequence[float | None]) -> Layout:
    """Lay out words vertically, with arcs beside them."""
    words = [shorten(visible(word)) for word in tree.words]
    tags = ["" if tag == "_" else shorten(visible(tag)) for tag in shown_tags(tree)]
    relations = ["" if rel == "_" else shorten(visible(rel)) for rel in tree.deprels]
    arcs = _find_arcs(tree.heads.tolist())
    ground = MARGIN + SIDE_STEP * (1 + max([arc.level for arc in arcs if arc.head], default=-1))
    columns = [ground + 2 * HEAD_LENGTH]
    for kind, shown in (("relation", relations), ("word", words)):
        columns.append(columns[-1] + max([_width(kind, text) for text in shown], default=0) + COLUMN_GAP)
    width = columns[-1] + max([_width("tag", tag) for tag in tags], default=0) + MARGIN
    rows = [MARGIN + LINE / 2 + LINE * at for at in range(-1, len(words))]
    groups = []
    for arc in sorted(arcs, key=lambda arc: arc.word in marked):
        relation = relations[arc.word - 1]
        at = (columns[0] + _width("relation", relation) / 2, rows[arc.word] + BASE)
        strokes = _draw_side_arc(arc, rows, ground)
        groups.append(_arc_group(tree, arc, relation, marked, confidence, strokes, at))
    for number, (word, tag, y) in enumerate(zip(words, tags, rows[1:], strict=True), start=1):
        texts = [Text("word", (columns[1] + _width("word", word) / 2, y + BASE), word)]
        texts += [Text("tag", (columns[2] + _width("tag", tag) / 2, y + BASE), tag)] if tag else []
        about = visible(tree.words[number - 1]) + (f" ({tag})" if tag else "")
        groups.append(Group(("word",), {"word": str(number)}, None, about, (), tuple(texts)))
    title = " ".join(map(visible, tree.words)) or "No words"
    height = 2 * MARGIN + LINE * len(words)
    return Layout(width, height, groups, title, _describe_dependencies(tree))


def _draw_side_arc(arc: Arc, rows: Sequence[float], ground: float) -> tuple[Stroke, ...]:
    """Return the lines of an arc in the vertical layout; the arc of a root is an arrow."""
    end, tip = rows[arc.word], ground + HEAD_LENGTH + 3
    head = Stroke(
        "head",
        (
            ("M", ((tip, end),)),
            ("L", ((tip - HEAD_LENGTH, end - HEAD_WIDTH),)),
            ("L", ((tip - HEAD_LENGTH, end + HEAD_WIDTH),)),
            ("Z", ()),
        ),
    )
    foot = tip - HEAD_LENGTH + 1
    if arc.head == 0:
        return (Stroke("line", (("M", ((foot - SIDE_STEP, end),)), ("L", ((foot, end),)))), head)
    start = rows[arc.head] + (SIDE_PORT if arc.head < arc.word else -SIDE_PORT)
    bow = _bow(start, end, ground - SIDE_STEP * (1 + arc.level), tip, foot)
    turned = tuple((step, tuple((y, x) for x, y in points)) for step, points in bow)
    return (Stroke("line", turned), head)


def _rise(level: int) -> float:
    """Return the height of the arcs of a level above the words."""
    return FIRST_LEVEL + LEVEL * level


def _find_arcs(heads: Sequence[int]) -> list[Arc]:
    """Return all arcs with their levels, in word order; arcs from the root are above arcs that they cross."""
    pairs = [(head, word) for word, head in enumerate(heads, start=1) if head > 0]
    arcs = [Arc(*pair, level) for pair, level in arc_levels(pairs, _overlap).items()]
    over = [-1] * (len(heads) + 1)
    for arc in arcs:
        for word in range(min(arc[:2]), max(arc[:2]) + 1):
            over[word] = max(over[word], arc.level)
    arcs += [Arc(0, word, over[word] + 1) for word, head in enumerate(heads, start=1) if head == 0]
    return sorted(arcs, key=lambda arc: arc.word)


def _overlap(arc: tuple[int, int], other: tuple[int, int]) -> bool:
    return max(min(arc), min(other)) < min(max(arc), max(other))


def _ports(arc: Arc) -> tuple[float, float]:
    """Return the horizontal offsets of an arc's ends from the centres of its head and its dependent."""
    return (PORT if arc.head < arc.word else -PORT), 0.0


def _place_words(
    words: Sequence[str], tags: Sequence[str], relations: Sequence[str], arcs: Sequence[Arc]
) -> tuple[list[float], float]:
    """Return the centres of the words, from 1, and the width of the drawing, with room for all texts."""
    rooms = [
        max(_width("word", word), _width("tag", tag), 2 * PORT) for word, tag in zip(words, tags, strict=True)
    ]
    ending: list[list[tuple[int, float]]] = [[] for _ in range(len(words) + 1)]
    for arc in arcs:
        room = _width("relation", relations[arc.word - 1])
        if arc.head == 0:
            rooms[arc.word - 1] = max(rooms[arc.word - 1], room)
        else:
            left, right = sorted(arc[:2])
            ending[right].append((left, room + PORT + 1.6 * CORNER))
    centres = [0.0]
    edge = MARGIN - WORD_GAP
    for word, room in enumerate(rooms, start=1):
        least = [centres[left] + needed for left, needed in ending[word]]
        centres.append(max([edge + WORD_GAP + room / 2, *least]))
        edge = centres[-1] + room / 2
    return centres, max(edge, 0.0) + MARGIN


def _walls(arcs: Sequence[Arc], centres: Sequence[float]) -> list[tuple[float, int]]:
    """Return the positions and levels of the vertical lines of all arcs."""
    walls = []
    for arc in arcs:
        out, into = _ports(arc)
        walls.append((centres[arc.word] + into, arc.level))
        if arc.head:
            walls.append((centres[arc.head] + out, arc.level))
    return walls


def _draw_arc(
    arc: Arc, centres: Sequence[float], ground: float, walls: Sequence[tuple[float, int]]
) -> tuple[tuple[Stroke, ...], Point]:
    """Return the lines of an arc and the position of its relation."""
    out, into = _ports(arc)
    end = centres[arc.word] + into
    top = ground - _rise(arc.level)
    tip = ground + 1
    head = Stroke(
        "head",
        (
            ("M", ((end, tip),)),
            ("L", ((end - HEAD_WIDTH, tip - HEAD_LENGTH),)),
            ("L", ((end + HEAD_WIDTH, tip - HEAD_LENGTH),)),
            ("Z", ()),
        ),
    )
    foot = tip - HEAD_LENGTH + 1
    if arc.head == 0:
        line = Stroke("line", (("M", ((end, top),)), ("L", ((end, foot),))))
        return (line, head), (end, top - 5)
    start = centres[arc.head] + out
    line = Stroke("line", _bow(start, end, top, ground - 2, foot))
    return (line, head), (_free_place(start, end, arc.level, walls), top - 5)


def _bow(
    start: float, end: float, top: float, ground: float, foot: float
) -> tuple[tuple[str, tuple[Point, ...]], ...]:
    """Return the path up, across and down, with rounded corners."""
    radius = min(CORNER, abs(end - start) / 2)
    step = radius if end > start else -radius
    bend = 0.45
    return (
        ("M", ((start, ground),)),
        ("L", ((start, top + radius),)),
        ("C", ((start, top + bend * radius), (start + bend * step, top), (start + step, top))),
        ("L", ((end - step, top),)),
        ("C", ((end - bend * step, top), (end, top + bend * radius), (end, top + radius))),
        ("L", ((end, foot),)),
    )


def _free_place(start: float, end: float, level: int, walls: Sequence[tuple[float, int]]) -> float:
    """Return the middle of the widest part of an arc that no higher arc crosses."""
    left, right = sorted((start, end))
    cuts = [left, *sorted(x for x, height in walls if height > level and left < x < right), right]
    widest = max(range(len(cuts) - 1), key=lambda at: cuts[at + 1] - cuts[at])
    return (cuts[widest] + cuts[widest + 1]) / 2


def _arc_group(
    tree: DepTree,
    arc: Arc,
    relation: str,
    marked: frozenset[int],
    confidence: Sequence[float | None],
    strokes: tuple[Stroke, ...],
    at: Point,
) -> Group:
    kinds = ("arc", "marked") if arc.word in marked else ("arc",)
    data = {
        "word": str(arc.word),
        "head": str(arc.head),
        "relation": visible(tree.deprels[arc.word - 1]),
    }
    texts = (Text("relation", at, relation),) if relation else ()
    own = confidence[arc.word - 1]
    about = _describe_arc(tree, arc.word) + ("" if own is None else f" ({100 * own:.0f}%)")
    return Group(kinds, data, own, about, strokes, texts)


def _describe_arc(tree: DepTree, word: int) -> str:
    head = int(tree.heads[word - 1])
    relation = visible(tree.deprels[word - 1])
    shown = visible(tree.words[word - 1])
    if head == 0:
        return f"{shown}: {relation}" if relation != "_" else f"{shown}: the root"
    under = visible(tree.words[head - 1])
    return f"{shown}: {relation} of {under}" if relation != "_" else f"{shown}: under {under}"


def _describe_dependencies(tree: DepTree) -> str:
    described = [
        _describe_arc(tree, word) if head >= 0 else f"{visible(tree.words[word - 1])}: head unknown"
        for word, head in enumerate(tree.heads.tolist(), start=1)
    ]
    return "; ".join(described)


def _lay_out_constituents(
    tree: ConstTree, marked: frozenset[int], confidence: Sequence[float | None]
) -> Layout:
    labels = [shorten(visible(label)) for label in tree.labels]
    is_leaf = (tree.sizes == 1).tolist()
    kinds = ["word" if leaf else "label" for leaf in is_leaf]
    middles, width = _place_nodes([_width(*pair) for pair in zip(kinds, labels, strict=True)], tree)
    parents = tree.parents().tolist()
    rows = [MARGIN + SIZES["label"]] * len(labels)
    for node in reversed(range(len(labels) - 1)):
        rows[node] = rows[parents[node]] + ROW
    floor = max(rows)
    groups = []
    for node in reversed(range(len(labels))):
        place = (middles[node], floor if is_leaf[node] else rows[node])
        above = parents[node]
        strokes = _draw_branch((middles[above], rows[above]), place) if above >= 0 else ()
        names = ["node", *["leaf"] * is_leaf[node], *["marked"] * (node in marked)]
        texts = (Text(kinds[node], place, labels[node]),)
        about = visible(tree.labels[node])
        groups.append(Group(tuple(names), {"node": str(node)}, confidence[node], about, strokes, texts))
    groups.sort(key=lambda group: "marked" in group.kinds)  # draw marked parts on top
    title = " ".join(map(visible, tree.words()))
    return Layout(width, floor + MARGIN, groups, title, visible(str(tree)))


def _stack_constituents(
    tree: ConstTree, marked: frozenset[int], confidence: Sequence[float | None]
) -> Layout:
    """Lay out words vertically, with constituents to their left, the root first."""
    labels = [shorten(visible(label)) for label in tree.labels]
    is_leaf = (tree.sizes == 1).tolist()
    kinds = ["word" if leaf else "label" for leaf in is_leaf]
    parents, children = tree.parents().tolist(), tree.child_positions()
    depths = [0] * len(labels)
    for node in reversed(range(len(labels) - 1)):
        depths[node] = depths[parents[node]] + 1
    widest = [0.0] * (1 + max(depths))
    for node, depth in enumerate(depths):
        if not is_leaf[node]:
            widest[depth] = max(widest[depth], _width("label", labels[node]))
    lefts = list(accumulate([width + BRANCH for width in widest if width], initial=MARGIN))
    rows: list[float] = []
    n_words = 0
    for node, below in enumerate(children):
        rows.append((rows[below[0]] + rows[below[-1]]) / 2 if below else MARGIN + LINE * (n_words + 0.5))
        n_words += is_leaf[node]
    groups = []
    for node in reversed(range(len(labels))):
        left = lefts[-1] if is_leaf[node] else lefts[depths[node]]
        above = parents[node]
        strokes: tuple[Stroke, ...] = ()
        if above >= 0:
            out = (lefts[depths[above]] + _width("label", labels[above]) + GAP, rows[above])
            strokes = _draw_side_branch(out, (lefts[depths[node]] - GAP, rows[node]), left - GAP)
        names = ["node", *["leaf"] * is_leaf[node], *["marked"] * (node in marked)]
        at = (left + _width(kinds[node], labels[node]) / 2, rows[node] + BASE)
        texts = (Text(kinds[node], at, labels[node]),)
        about = visible(tree.labels[node])
        groups.append(Group(tuple(names), {"node": str(node)}, confidence[node], about, strokes, texts))
    groups.sort(key=lambda group: "marked" in group.kinds)
    width = (
        lefts[-1] + max([_width("word", labels[node]) for node, leaf in enumerate(is_leaf) if leaf]) + MARGIN
    )
    title = " ".join(map(visible, tree.words()))
    return Layout(width, 2 * MARGIN + LINE * n_words, groups, title, visible(str(tree)))


def _draw_side_branch(out: Point, column: Point, end: float) -> tuple[Stroke, ...]:
    """Return the line from a node to a child in the next column, or to a word in the last column."""
    line = Stroke("line", (("M", (out,)), ("L", (column,))))
    if end <= column[0]:
        return (line,)
    return (line, Stroke("drop", (("M", (column,)), ("L", ((end, column[1]),)))))


def _draw_branch(above: Point, place: Point) -> tuple[Stroke, ...]:
    """Return the line from a node to a child in the next row, or to a word in the lowest row."""
    top, row = (above[0], above[1] + UNDER), above[1] + ROW
    end = (place[0], place[1] - OVER)
    if place[1] == row:
        return (Stroke("line", (("M", (top,)), ("L", (end,)))),)
    if above[0] == place[0]:
        return (Stroke("drop", (("M", (top,)), ("L", (end,)))),)
    elbow = (place[0], row - OVER)
    return (
        Stroke("line", (("M", (top,)), ("L", (elbow,)))),
        Stroke("drop", (("M", (elbow,)), ("L", (end,)))),
    )


def _place_nodes(own: Sequence[float], tree: ConstTree) -> tuple[list[float], float]:
    """Return the centres of the nodes and the width of the drawing; subtrees do not overlap."""
    children = tree.child_positions()
    strips: list[float] = []
    for node, below in enumerate(children):
        strips.append(max(own[node] + LEAF_GAP, sum(strips[child] for child in below)))
    lefts = [0.0] * len(strips)
    lefts[-1] = MARGIN - LEAF_GAP / 2
    for node in reversed(range(len(strips))):
        at = lefts[node] + (strips[node] - sum(strips[child] for child in children[node])) / 2
        for child in children[node]:
            lefts[child] = at
            at += strips[child]
    middles: list[float] = []
    for node, below in enumerate(children):
        middle = (middles[below[0]] + middles[below[-1]]) / 2 if below else lefts[node] + strips[node] / 2
        half = (own[node] + LEAF_GAP) / 2
        middles.append(min(max(middle, lefts[node] + half), lefts[node] + strips[node] - half))
    return middles, strips[-1] + 2 * MARGIN - LEAF_GAP


def _mirrored(layout: Layout) -> Layout:
    """Mirror a drawing, for right-to-left scripts."""

    def turn(point: Point) -> Point:
        return layout.width - point[0], point[1]

    groups = [
        group._replace(
            strokes=tuple(
                Stroke(kind, tuple((step, tuple(map(turn, points))) for step, points in steps))
                for kind, steps in group.strokes
            ),
            texts=tuple(text._replace(at=turn(text.at)) for text in group.texts),
        )
        for group in layout.groups
    ]
    return layout._replace(groups=groups)
