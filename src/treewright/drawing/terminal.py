"""Drawings of trees as text for the terminal."""

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.drawing.glyphs import cell_width, visible

Arc: TypeAlias = tuple[int, int]

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
BOXES = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"
"""Box-drawing characters, indexed by the sum of the directions of their lines."""
ARROW = "►"
ASCII_LINES = str.maketrans(BOXES[1:] + ARROW, "|||-+++-+++-+++>")


def draw_dependencies(
    tree: DepTree, *, marked: Collection[int] = (), confidence: Sequence[float] | None = None
) -> str:
    """Draw a dependency tree, one word per line, with arcs to the left of the words.

    Marked words, counted from 1, end with a star. The confidence of each arc follows its relation.

    Examples
    --------
    >>> print(draw_dependencies(DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"])))
    ┌─► Mary    _  nsubj
    └── sleeps  _  root
    """
    arcs = [(head - 1, word) for word, head in enumerate(tree.heads.tolist()) if head > 0]
    columns = [
        _pad_all(tree.words),
        _pad_all(shown_tags(tree)),
        _with_notes(tree.deprels, {number - 1 for number in marked}, confidence),
    ]
    rows = zip(_arc_lines(arcs, len(tree)), *columns, strict=True)
    return "\n".join(f"{line} {word}  {tag}  {rel}" for line, word, tag, rel in rows)


def encodable(text: str, encoding: str | None) -> str:
    r"""Return a drawing in characters of an encoding: unchanged, or with ASCII lines and escaped words.

    Examples
    --------
    >>> print(encodable("└─► Märy", "ascii"))
    +-> M\xe4ry
    """
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError as error:
        return text.translate(ASCII_LINES).encode(error.encoding, "backslashreplace").decode(error.encoding)
    return text


def shown_tags(tree: DepTree) -> list[str]:
    """Return the UPOS tags of a sentence, or the XPOS tags if it has none."""
    return tree.upos if any(tag != "_" for tag in tree.upos) else tree.xpos


def draw_constituents(
    tree: ConstTree, *, marked: Collection[int] = (), confidence: Sequence[float] | None = None
) -> str:
    """Draw a constituency tree, one node per line, with children indented and tags before their words.

    Marked nodes, counted from 0 in post-order, end with a star. The confidence of each node follows it.

    Examples
    --------
    >>> print(draw_constituents(ConstTree.parse("(S (NP (N Mary)) (VP (V sleeps)))")))
    S
    ├─ NP
    │  └─ N Mary
    └─ VP
       └─ V sleeps
    """
    children = tree.child_positions()
    shown = _with_notes(tree.labels, marked, confidence)
    lines = []
    waiting = [(tree.n_nodes - 1, "", "")]
    while waiting:
        node, first, rest = waiting.pop()
        below = children[node]
        if len(below) == 1 and not children[below[0]]:
            lines.append(f"{first}{shown[node]} {shown[below[0]]}")
            continue
        lines.append(f"{first}{shown[node]}")
        under = [(child, rest + "├─ ", rest + "│  ") for child in below[:-1]]
        under += [(child, rest + "└─ ", rest + "   ") for child in below[-1:]]
        waiting.extend(reversed(under))
    return "\n".join(lines)


def _pad_all(texts: Sequence[str]) -> list[str]:
    """Pad texts to the same width."""
    shown = [visible(text) for text in texts]
    width = max(map(cell_width, shown), default=0)
    return [text + " " * (width - cell_width(text)) for text in shown]


def _with_notes(
    texts: Sequence[str], marked: Collection[int], confidence: Sequence[float] | None
) -> list[str]:
    """Append the confidence to each text, and a star if it is marked."""
    noted = [visible(text) for text in texts]
    if confidence is not None:
        noted = [f"{text} {100 * share:.0f}%" for text, share in zip(noted, confidence, strict=True)]
    return [f"{text} *" if at in marked else text for at, text in enumerate(noted)]


def _arc_lines(arcs: list[Arc], n_words: int) -> list[str]:
    """Draw arcs (head, dependent) to the left of `n_words` lines; the shortest are next to the words."""
    levels = arc_levels(arcs, _meet)
    n_levels = max(levels.values(), default=0) + 1
    cells = [[0] * n_levels for _ in range(n_words)]
    for (head, word), level in levels.items():
        top, bottom = min(head, word), max(head, word)
        cells[top][level] |= DOWN | RIGHT
        cells[bottom][level] |= UP | RIGHT
        for row in range(top + 1, bottom):
            cells[row][level] |= UP | DOWN
        for row in (top, bottom):
            for nearer in range(level):
                cells[row][nearer] |= LEFT | RIGHT
    dependents = {word for _, word in arcs}
    ends = [ARROW if row in dependents else "─" if any(cells[row]) else " " for row in range(n_words)]
    return [_draw_row(row) + end for row, end in zip(cells, ends, strict=True)]


def arc_levels(arcs: Sequence[Arc], meet: Callable[[Arc, Arc], bool]) -> dict[Arc, int]:
    """Assign levels to arcs, short ones first; arcs that meet have different levels."""
    levels: dict[Arc, int] = {}
    for arc in sorted(arcs, key=lambda arc: (abs(arc[0] - arc[1]), min(arc))):
        levels[arc] = max((level for other, level in levels.items() if meet(arc, other)), default=-1) + 1
    return levels


def _meet(arc: Arc, other: Arc) -> bool:
    """Return whether two arcs would be ambiguous in the same column; arcs of one head may share its line."""
    top, bottom = max(min(arc), min(other)), min(max(arc), max(other))
    return top < bottom or (top == bottom and arc[0] != other[0])


def _draw_row(cells: list[int]) -> str:
    """Draw one line, longest arcs first, with a dash between columns that an arc crosses."""
    drawn = ""
    for cell in reversed(cells):
        drawn += BOXES[cell] + ("─" if cell & RIGHT else " ")
    return drawn
