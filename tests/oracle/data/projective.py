"""Crossing arcs and lifting, from the definitions of Nivre & Nilsson (2005)."""


def is_under(heads, word, ancestor):
    while word not in (0, ancestor):
        word = heads[word - 1]
    return word == ancestor


def arc_is_projective(heads, word):
    """Return whether the head of an arc dominates every word that the arc spans."""
    head = heads[word - 1]
    return all(is_under(heads, between, head) for between in range(min(head, word) + 1, max(head, word)))


def is_projective(heads):
    return all(arc_is_projective(heads, word) for word in range(1, len(heads) + 1))


def lift(heads):
    """Lift the shortest non-projective arc until none is left; return heads and words on lifting paths."""
    heads, path = list(heads), set()
    while crossing := [word for word in range(1, len(heads) + 1) if not arc_is_projective(heads, word)]:
        word = min(crossing, key=lambda word: (abs(heads[word - 1] - word), word))
        path.add(heads[word - 1])
        heads[word - 1] = heads[heads[word - 1] - 1]
    return heads, path


def restore(heads, deprels):
    """Undo lifting by the rules for each kind of mark, with a new search for every word."""
    heads = list(heads)

    def children(word):
        return [other for other in range(1, len(heads) + 1) if heads[other - 1] == word]

    def levels(start, leave_out, only_marked):
        level = [start]
        while level:
            level = [
                child
                for word in level
                for child in children(word)
                if child != leave_out and (not only_marked or deprels[child - 1].endswith("↓"))
            ]
            yield from level

    order = list(levels(0, None, False))
    marked = any("↓" in deprel for deprel in deprels)
    for word in order:
        if "↑" not in deprels[word - 1]:
            continue
        noted = deprels[word - 1].removesuffix("↓").split("↑")[1]
        found = list(levels(heads[word - 1], word, marked)) if marked or noted else []
        if noted:
            found = [one for one in found if deprels[one - 1].split("↑")[0].removesuffix("↓") == noted]
        if marked:
            ends = [
                one
                for one in found
                if not any(deprels[child - 1].endswith("↓") for child in children(one) if child != word)
            ]
            found = ends + found
        if found:
            heads[word - 1] = found[0]
    return heads
