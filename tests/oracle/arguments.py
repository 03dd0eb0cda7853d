"""The tree of a predicate and an argument, built node by node from its definition."""


def paths(tree):
    """Return the path from the root to each node, as indices of children, in post-order."""
    found = []

    def visit(node, way):
        for place, child in enumerate(node.children):
            visit(child, (*way, place))
        found.append(way)

    visit(tree, ())
    return found


def enclose(tree, predicate, node, lemma, mark="-ARG"):
    """Return the smallest subtree with predicate and argument, in brackets.

    Nodes that are not on the path to one of them are left out, except below the argument.
    """
    ways = paths(tree)
    leaves = [way for way in ways if not at(tree, way).children]
    word, argument = leaves[predicate], ways[node]
    verb = word[:-1]
    common = 0
    while common < min(len(verb), len(argument)) and verb[common] == argument[common]:
        common += 1
    top = verb[:common]

    def is_kept(way):
        is_between = (argument[: len(way)] == way or word[: len(way)] == way) and len(way) >= len(top)
        return is_between or way[: len(argument)] == argument

    def write(way):
        here = at(tree, way)
        label = lemma if way == word and lemma else here.label
        label += mark if way == argument else ""
        below = [write((*way, place)) for place in range(len(here.children)) if is_kept((*way, place))]
        return f"({' '.join([label, *below])})" if below else label

    return write(top)


def at(tree, way):
    """Return the subtree at the end of a path."""
    for place in way:
        tree = tree.children[place]
    return tree
