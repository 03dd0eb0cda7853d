"""Features of whole trees, by traversing each tree for each line of the templates."""

import itertools

LENGTHS = [1, 2, 3, 4, 5, 10, 20]
ANCESTORS = ["m", "h", "g", "gg", "ggg"]
SIBLINGS = ["s", "t", "u"]


def modifiers(heads, head, is_right):
    """List the modifiers on one side of a word, the innermost first."""
    found = [word for word, above in enumerate(heads, 1) if above == head and (word > head) == is_right]
    return sorted(found, key=lambda word: abs(word - head))


def find_roles(heads, word):
    """Return the existing words around a word, by their roles."""
    roles = {"m": word}
    for below, above in itertools.pairwise(ANCESTORS):
        if roles.get(below, 0) == 0:
            break
        roles[above] = heads[roles[below] - 1]
    if word == 0:
        return roles
    is_right = word > roles["h"]
    arm = modifiers(heads, roles["h"], is_right)
    inwards = arm[: arm.index(word)][::-1]
    roles.update(zip(SIBLINGS, inwards, strict=False))
    for name, side in (("c", is_right), ("d", not is_right)):
        children = modifiers(heads, word, side)
        if children:
            roles[name] = children[-1]
    return roles


def look(words, tags, heads, word, attribute):
    """Return an attribute of a word."""
    if attribute in ("word", "tag"):
        return "ROOT" if word == 0 else (words if attribute == "word" else tags)[word - 1]
    if attribute == "length":
        length = abs(word - heads[word - 1])
        return next((longest for longest in LENGTHS if length <= longest), "more")
    found = modifiers(heads, word, attribute.endswith("right"))
    return len(found) if attribute.startswith("n_") else tuple(tags[modifier - 1] for modifier in found)


def feature(line, words, tags, heads, word):
    """Return the feature of a line at a word, or None if there is none."""
    roles = find_roles(heads, word)
    atoms = [atom.split(".") for atom in line.split()]
    named = {role for role, _ in atoms}
    innermost = max(named & set(SIBLINGS), default=None)
    if any(role not in roles for role in named if role != innermost):
        return None
    values = [
        look(words, tags, heads, roles[role], attribute) if role in roles else "nothing"
        for role, attribute in atoms
    ]
    arcs = [(roles[low], roles[high]) for low, high in itertools.pairwise(ANCESTORS) if high in named]
    sides = [low > high for low, high in arcs]
    return line, tuple(values), tuple(sides)


def features(lines, words, tags, heads):
    """Return all features of a tree."""
    found = {feature(line, words, tags, heads, word) for line in lines for word in range(len(heads) + 1)}
    return found - {None}


def telling_features(lines, words, tags, candidates):
    """Return the features of each candidate of a list, except those that all candidates have."""
    found = [features(lines, words, tags, heads) for heads in candidates]
    shared = set.intersection(*found)
    return [each - shared for each in found]
