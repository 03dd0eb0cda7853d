"""The basic features of an arc as tuples, following table 1 of Qian & Liu (2015)."""

import numpy as np

TABLE = [
    *("h.word m.word", "h.tag m.tag", "h.word m.tag", "h.tag m.word"),
    *("h-1.tag m.tag", "h-1.tag m.word", "h.tag m-1.tag", "h.word m-1.tag"),
    *("h+1.tag m.tag", "h+1.tag m.word", "h.tag m+1.tag", "h.word m+1.tag"),
    *("h-1.tag h.tag m.tag", "h.tag h+1.tag m.tag", "h.tag m-1.tag m.tag", "h.tag m.tag m+1.tag"),
]
OUTSIDE = "outside"


def look(words, tags, head, modifier, symbol):
    """Return the value of a symbol such as ``h-1.tag``; position 0 of words and tags is the root."""
    place, kind = symbol.split(".")
    position = (head if place[0] == "h" else modifier) + int(place[1:] or 0)
    if not 0 <= position < len(tags):
        return OUTSIDE
    return (words if kind == "word" else tags)[position]


def bin_length(length):
    """Return the shortest and the longest length in the bin of a length."""
    bins = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 10), (11, 20), (21, None)]
    return next((low, high) for low, high in bins if high is None or length <= high)


def features(words, tags, head, modifier):
    """List the features of an arc: template, values, and length and direction (or None)."""
    plain = [
        (row, tuple(look(words, tags, head, modifier, symbol) for symbol in row.split()), None)
        for row in TABLE
    ]
    distance = (bin_length(abs(head - modifier)), "right" if modifier > head else "left")
    placed = [(f"{row} *", values, distance) for row, values, _ in plain]
    low, high = sorted((head, modifier))
    inner = dict.fromkeys(tags[low + 1 : high])
    return plain + placed + [("h.tag b.tag m.tag", (tags[head], tags[modifier], tag), None) for tag in inner]


def random_sentences(rng, sizes, n_words=6, n_tags=4):
    """Draw the ids of the words and tags of sentences, starting with the root."""
    return [
        (np.array([1, *rng.integers(3, 3 + n_words, n)]), np.array([1, *rng.integers(3, 3 + n_tags, n)]))
        for n in sizes
    ]


def all_arcs(n):
    """List the arcs between `n` words and the root."""
    return [(head, word) for head in range(n + 1) for word in range(1, n + 1) if head != word]
