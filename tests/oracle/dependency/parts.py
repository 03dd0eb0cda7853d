"""The parts of dependency trees, listed from their definition.

A part is a tuple of its kind and words: (arc, head, modifier), (pair, head, side, sibling, modifier),
(grandchild, grandparent, head, modifier), (grand_sibling, grandparent, head, side, sibling, modifier),
(triple, head, side, outer, sibling, modifier). Side 0 is left; sibling 0 means no sibling before the
modifier, and modifier 0 no modifier after the sibling.
"""

from oracle.dependency.features import Placed, arc_keys, distance_bin, template_keys

KINDS = ("arc", "pair", "grandchild", "grand_sibling", "triple")
KINDS_OF_ORDER = {1: KINDS[:1], 2: KINDS[:3], 3: KINDS}
NO_TOKEN, END, ROOT = 0, 1, 3
TEMPLATES = {
    "arc": "h.word m.word *\nh.pos m.tag\nh-1.tag h.tag m.tag m+2.tag *\nm.suffix",
    "pair": "h.tag s.tag m.tag *\ns-1.pos m.pos",
    "grandchild": "g.tag h.pos m.tag *\ng+1.word m.lemma",
    "grand_sibling": "g.tag h.tag s.tag m.tag\ng.pos s.pos m-2.pos *",
    "triple": "h.tag t.tag s.tag m.tag\nt.word m.word *",
}
"""A few templates of each kind, with all roles."""


def modifiers(heads, head, side):
    """List the modifiers of a word to one side, the nearest first."""
    found = [word for word, its_head in enumerate(heads, start=1) if its_head == head]
    return [word for word in found if word > head] if side else [word for word in found if word < head][::-1]


def tree_parts(heads, order=3):
    """Return the set of the parts of a tree."""
    found = set()
    for head in range(len(heads) + 1):
        above = [] if head == 0 else [heads[head - 1]]
        for side in (0, 1) if head else (1,):
            row = modifiers(heads, head, side)
            pairs = list(zip([0, *row], [*row, 0], strict=True))
            found |= {("arc", head, word) for word in row}
            found |= {("pair", head, side, *pair) for pair in pairs}
            found |= {("grandchild", up, head, word) for up in above for word in row}
            found |= {("grand_sibling", up, head, side, *pair) for up in above for pair in pairs}
            found |= {("triple", head, side, *row[at : at + 3]) for at in range(len(row) - 2)}
    return {part for part in found if part[0] in KINDS_OF_ORDER[order]}


COLUMNS = {"arc": (1, 2), "pair": (1, 3, 4), "grandchild": (1, 2, 3), "grand_sibling": (1, 2, 4, 5)}
COLUMNS["triple"] = (1, 3, 4, 5)
"""Positions of words in parts; the others are directions."""


def words_in(kind, parts):
    """List the words of the parts of a kind; -1 stands for a missing sibling and for the end."""
    found = []
    for part in parts:
        if part[0] == kind:
            words = [part[at] for at in COLUMNS[kind]]
            for place in {"pair": (1, 2), "grand_sibling": (2, 3)}.get(kind, ()):
                words[place] = words[place] or -1
            found.append(tuple(words))
    return found


def list_parts(arcs, n):
    """List the parts of each kind over a set of arcs between `n` words, in the order of their numbers."""
    found = {kind: [] for kind in KINDS}
    for head in range(n + 1):
        above = sorted(up for up, word in arcs if word == head)
        out, pairs = [], []
        for side in (0, 1):
            row = [word for word in range(1, n + 1) if (head, word) in arcs and (word > head) == side]
            row.sort(key=lambda word: abs(word - head))
            ends = [*row, 0]
            places = [(j, k) for k in range(len(ends)) for j in range(-1, k)]
            out += row
            pairs += [(side, 0 if j < 0 else row[j], ends[k]) for j, k in places]
            triples = [(i, j, k) for k in range(len(row)) for j in range(k) for i in range(j)]
            found["triple"] += [("triple", head, side, row[i], row[j], row[k]) for i, j, k in triples]
        found["arc"] += [("arc", head, word) for word in out]
        found["pair"] += [("pair", head, *pair) for pair in pairs]
        found["grandchild"] += [("grandchild", up, head, word) for up in above for word in out]
        found["grand_sibling"] += [("grand_sibling", up, head, *pair) for up in above for pair in pairs]
    return found


def place(part):
    """Return the rows and the situation of a part."""
    kind, *words = part
    if kind == "arc":
        head, modifier = words
        return Placed(kind, rows(h=head, m=modifier), int(head < modifier), distance_bin(head - modifier))
    if kind == "grandchild":
        up, head, modifier = words
        situation = 2 * (up < head) + (head < modifier)
        return Placed(kind, rows(g=up, h=head, m=modifier), situation, distance_bin(up - modifier))
    *above, head, side, outer, sibling, modifier = words if kind == "triple" else insert_outer(words)
    placed = rows(h=head) | {
        "s": ROOT + sibling if sibling else NO_TOKEN,
        "m": ROOT + modifier if modifier else END,
    }
    if above:
        placed |= rows(g=above[0])
    if outer:
        placed |= rows(t=outer)
    situation = side + (2 * (above[0] < head) if above else 0)
    distance = distance_bin((sibling or head) - modifier) if modifier else 0
    return Placed(kind, placed, situation, distance)


def insert_outer(words):
    return [*words[:-2], 0, *words[-2:]]


def rows(**words):
    return {letter: ROOT + word for letter, word in words.items()}


def part_keys(templates, words, part):
    """List the keys of a part; `templates` are texts by kind."""
    fill = arc_keys if part[0] == "arc" else template_keys
    return fill(templates[part[0]], words, place(part))
