"""Crossing arcs and lifting, from the definitions of Nivre & Nilsson (2005)."""


def is_under(heads, word, ancestor):
    while word not in (0, ancestor):
        word = heads[word - 1]
    return word == ancestor


def arc_is_projective(heads, word):
    """An arc is projective when its head dominates every word that it spans."""
    head = heads[word - 1]
    return all(is_under(heads, between, head) for between in range(min(head, word) + 1, max(head, word)))


def is_projective(heads):
    return all(arc_is_projective(heads, word) for word in range(1, len(heads) + 1))


def lift(heads):
    """Lift the shortest arc that is not projective until there is none; return heads and path words."""
    heads, path = list(heads), set()
    while crossing := [word for word in range(1, len(heads) + 1) if not arc_is_projective(heads, word)]:
        word = min(crossing, key=lambda word: (abs(heads[word - 1] - word), word))
        path.add(heads[word - 1])
        heads[word - 1] = heads[heads[word - 1] - 1]
    return heads, path
