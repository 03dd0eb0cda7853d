"""Fragments of tagged sentences, by listing all choices of words, and of an attribute or none for each tag.

A sentence is a list of (word, tag) pairs, an attribute a pair (distance, kind). A fragment is a tuple of
parts (tag, attribute, value, may_skip); a part without an attribute has None twice. Marks stand before the
first and after the last word, and never have attributes. `may_skip` tells whether up to `max_gap` words may
be skipped before a part; without it, the part is at the next word.
"""

from itertools import combinations, pairwise, product


def value_of(words, place, attribute):
    """Return the value of an attribute, or None if the word has none."""
    distance, kind = attribute
    if place + distance < 0:
        return "^"
    if place + distance >= len(words):
        return "$"
    word = words[place + distance]
    if kind in ("prefix", "suffix"):
        size = {"prefix": 4, "suffix": 3}[kind]
        lower = word.lower()
        return None if len(word) <= size else lower[:size] if kind == "prefix" else lower[-size:]
    return word if kind == "word" else word.lower()


def parts_at(sentence, place, attributes):
    """Return what a fragment can have at a word: (tag, attribute, value)."""
    words = [word for word, _ in sentence]
    tag = sentence[place][1]
    values = [(tag, each, value_of(words, place, each)) for each in attributes]
    return [(tag, None, None), *(part for part in values if part[2] is not None)]


def list_fragments(sentence, order, attributes, max_gap):
    """Return all fragments with `order` tags or marks."""
    choices = [[("^", None, None)]]
    choices += [parts_at(sentence, place, attributes) for place in range(len(sentence))]
    choices += [[("$", None, None)]]
    found = set()
    for chosen in combinations(range(len(choices)), order):
        steps = [later - earlier for earlier, later in pairwise(chosen)]
        if any(step > max_gap + 1 for step in steps):
            continue
        # Where gaps are allowed, a part at the next word also matches with `may_skip`.
        joints = [([False] if step == 1 else []) + ([True] if max_gap else []) for step in steps]
        for parts in product(*(choices[place] for place in chosen)):
            for skips in product([False], *joints):
                found.add(tuple((*part, skip) for part, skip in zip(parts, skips, strict=True)))
    return found


def name_fragment(fragment):
    """Return a fragment as the space names it."""
    text = ""
    for number, (tag, attribute, value, may_skip) in enumerate(fragment):
        text += "" if number == 0 else " .. " if may_skip else " "
        text += tag if tag in ("^", "$") else f"tag={tag}"
        if attribute:
            distance, kind = attribute
            text += f" & w{distance:+d}.{kind}={value}" if distance else f" & w.{kind}={value}"
    return text


def count_fragments(sentences, counters, n_counters, order, attributes, max_gap):
    """Return the number of sentences with each fragment, by name and counter."""
    counts = {}
    for sentence, counter in zip(sentences, counters, strict=True):
        for fragment in list_fragments(sentence, order, attributes, max_gap):
            counts.setdefault(name_fragment(fragment), [0] * n_counters)[counter] += 1
    return counts
