"""Trees as text for the terminal."""

from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
BOXES = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"
"""The box character for each sum of the directions in which a line leaves it."""


def draw_dependencies(tree: DepTree) -> str:
    """Draw a dependency tree: one word a line, arcs to the left of the words.

    Examples
    --------
    >>> print(draw_dependencies(DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"])))
    ┌─► Mary    _  nsubj
    └── sleeps  _  root
    """
    arcs = [(head - 1, word) for word, head in enumerate(tree.heads.tolist()) if head > 0]
    lines = _arc_lines(arcs, len(tree))
    width = max(map(len, tree.words), default=0)
    tags = tree.upos if any(tag != "_" for tag in tree.upos) else tree.xpos
    tag_width = max(map(len, tags), default=0)
    rows = zip(lines, tree.words, tags, tree.deprels, strict=True)
    return "\n".join(f"{line} {word:<{width}}  {tag:<{tag_width}}  {rel}" for line, word, tag, rel in rows)


def draw_constituents(tree: ConstTree) -> str:
    """Draw a constituency tree: one node a line, children indented, tags beside their words.

    Examples
    --------
    >>> print(draw_constituents(ConstTree.parse("(S (NP (N Mary)) (VP (V sleeps)))")))
    S
    ├─ NP
    │  └─ N Mary
    └─ VP
       └─ V sleeps
    """
    lines = []
    waiting = [(tree, "", "")]
    while waiting:
        node, first, rest = waiting.pop()
        children = node.children
        if len(children) == 1 and children[0].is_leaf:
            lines.append(f"{first}{node.label} {children[0].label}")
            continue
        lines.append(f"{first}{node.label}")
        below = [(child, rest + "├─ ", rest + "│  ") for child in children[:-1]]
        below += [(child, rest + "└─ ", rest + "   ") for child in children[-1:]]
        waiting.extend(reversed(below))
    return "\n".join(lines)


def _arc_lines(arcs: list[tuple[int, int]], n_words: int) -> list[str]:
    """Draw arcs (head, dependent) beside `n_words` lines; the shortest stand next to the words."""
    levels = _levels(arcs)
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
    ends = ["►" if row in dependents else "─" if any(cells[row]) else " " for row in range(n_words)]
    return [_draw_row(row) + end for row, end in zip(cells, ends, strict=True)]


def _levels(arcs: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Give each arc a column of its own among the arcs it meets, short ones first."""
    levels: dict[tuple[int, int], int] = {}
    for arc in sorted(arcs, key=lambda arc: (abs(arc[0] - arc[1]), min(arc))):
        levels[arc] = max((level for other, level in levels.items() if _meet(arc, other)), default=-1) + 1
    return levels


def _meet(arc: tuple[int, int], other: tuple[int, int]) -> bool:
    """Tell whether two arcs would be confused in one column; they may share the line of a common head."""
    top, bottom = max(min(arc), min(other)), min(max(arc), max(other))
    return top < bottom or (top == bottom and arc[0] != other[0])


def _draw_row(cells: list[int]) -> str:
    """Draw one line, the column of the longest arcs first, with a dash between columns where one runs."""
    drawn = ""
    for cell in reversed(cells):
        drawn += BOXES[cell] + ("─" if cell & RIGHT else " ")
    return drawn
