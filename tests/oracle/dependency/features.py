"""Keys of features from their definition, with Python integers."""

import hashlib
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from oracle.hashing import PRIME

ATTRIBUTES = ("pos", "tag", "word", "lemma", "feats", "suffix", "prefix", "shape")


class Words(NamedTuple):
    """A sentence by row: attribute values and morphological features."""

    values: list
    morphs: list


class Placed(NamedTuple):
    """A part: the name of its kind, the rows of its words by letter, its directions, and its distance."""

    kind: str
    rows: dict
    situation: int
    distance: int


def unpack(sentence):
    """Convert the flat arrays of a sentence to lists."""
    ends = sentence.first_morph.tolist()
    morphs = sentence.morphs.tolist()
    return Words(sentence.values.tolist(), [morphs[a:b] for a, b in pairwise(ends)])


def distance_bin(distance):
    return sum(abs(distance) > edge for edge in (0, 1, 2, 3, 4, 6, 10, 20))


def number(name, at):
    """Return the odd 64-bit number for a name and a position."""
    return int.from_bytes(hashlib.blake2b(f"{name} {at}".encode(), digest_size=8).digest(), "little") | 1


def sum_key(name, values, place):
    """Return the sum of a seed, each value times its own factor, and the place times PRIME."""
    shares = [value * number(name, at) for at, value in enumerate(values, start=1)]
    return (number(name, 0) + sum(shares) + place * PRIME) % 2**64


def template_keys(text, words, part):
    """List the keys of templates, which are lines of atoms such as ``h-1.tag``."""
    keys = []
    for at, line in enumerate(text.strip().splitlines()):
        values = []
        for atom in sorted(line.replace("*", "").split(), key=lambda atom: atom[0]):
            word, name = atom.split(".")
            row = part.rows[word[0]] + int(word[1:] or 0)
            values.append(words.values[row][ATTRIBUTES.index(name)])
        keys.append(sum_key(f"{part.kind} {at}", values, part.situation))
        if "*" in line:
            place = part.situation + 16 * (part.distance + 1)
            keys.append(sum_key(f"{part.kind} {at}", values, place))
    return keys


def arc_keys(text, words, part):
    """List the keys of an arc: templates, each tag in between once, and morphological features in pairs."""
    head, modifier = part.rows["h"], part.rows["m"]
    pos, tag = ([row[at] for row in words.values] for at in (0, 1))
    between = tag[min(head, modifier) + 1 : max(head, modifier)][:40]
    values = [(tag[head], tag[modifier], one) for one in dict.fromkeys(between)]
    keys = [sum_key(f"{part.kind} between", one, part.situation) for one in values]
    above, below = words.morphs[head][:8], words.morphs[modifier][:8]
    pairs = [(one, other) for one in [0, *above] for other in [0, *below]][1:]
    values = [(pos[head], pos[modifier], *pair) for pair in pairs]
    keys += [sum_key(f"{part.kind} morphs", one, part.situation) for one in values]
    return template_keys(text, words, part) + keys


def random_corpus(rng, trees):
    """Draw the arrays of a corpus with these trees (lists of heads); words have few distinct values."""
    first_row = np.cumsum([0] + [len(heads) + 6 for heads in trees])
    values = rng.integers(5, 9, size=(first_row[-1], len(ATTRIBUTES))).astype(np.int32)
    gold = np.full(first_row[-1], -1, np.int32)
    n_morphs = np.zeros(first_row[-1] + 1, np.int64)
    for first, heads in zip(first_row, trees, strict=False):
        values[first : first + 4] = np.arange(4)[:, None]
        values[first + 4 + len(heads) : first + 6 + len(heads)] = 2
        gold[first + 4 : first + 4 + len(heads)] = heads
        n_morphs[first + 5 : first + 5 + len(heads)] = rng.integers(0, 4, size=len(heads))
    first_morph = np.cumsum(n_morphs)
    morphs = rng.integers(1, 9, size=first_morph[-1]).astype(np.int32)
    return first_row, values, first_morph, morphs, gold


def random_weights(rng, size):
    """Draw weights whose sums are exact in any order and precision, and rarely tied."""
    return (rng.integers(-4096, 4097, size=size) / 1024).astype(np.float32)
