"""Atomic features of an inference, as defined by a table."""

from oracle.constituent.states import N_BINS, PREDICATES, bin_of, terminals

HEADED = ("head", "others", "words-of-others")


def members(kind, argument, state, begin, size, head):
    """List the items of a group; `argument` counts from 0, `head` from the first child."""
    frontier, words = state.frontier, state.words
    children, left, right = frontier[begin : begin + size], frontier[:begin], frontier[begin + size :]
    inside = [word for child in children for word in terminals(child)]
    start = frontier[begin].start
    others = [child for at, child in enumerate(children) if at != head]
    groups = {
        "child": children[argument : argument + 1],
        "last-child": children[::-1][argument : argument + 1],
        "left": left[::-1][argument : argument + 1],
        "right": (*right, state.end)[argument : argument + 1],
        "first-word": inside[argument : argument + 1],
        "last-word": inside[::-1][argument : argument + 1],
        "word-before": words[:start][::-1][argument : argument + 1],
        "word-after": (*words[start + len(inside) :], state.end)[argument : argument + 1],
        "end": [state.end],
        "children": children,
        "all-left": left,
        "all-right": right,
        "head": children[head : head + 1],
        "others": others,
        "words-of-others": [word for child in others for word in terminals(child)],
    }
    return groups[kind]


def count(kind, state, begin, size):
    """Return the count that a group without predicates stands for."""
    n_words = sum(len(terminals(child)) for child in state.frontier[begin : begin + size])
    counts = {
        "n-children": size,
        "n-words": n_words,
        "n-left": begin,
        "n-right": len(state.frontier) - begin - size,
    }
    return counts[kind]


def features(table, sizes, state, begin, size, head):
    """Return the numbers of the features of an inference, given the text of a table.

    A line of the table has one feature for each value of each of its predicates, in the order of
    `PREDICATES`. Features that need a head are left out if there are no children.
    """
    found, base = set(), 0
    for line in table.strip().splitlines():
        kind, *names = line.split()
        argument = int(names.pop(0)) - 1 if names and names[0].isdigit() else 0
        has_group = size > 0 or kind not in HEADED
        if not names:
            found.add(base + bin_of(count(kind, state, begin, size)))
            base += N_BINS
        for name in (each for each in PREDICATES if each in names):
            if has_group:
                group = members(kind, argument, state, begin, size, head)
                found.update(base + item.values[name] for item in group)
            base += sizes[PREDICATES.index(name)]
    return found
