"""Left-corner derivations by recursion, and the context of each decision, computed from the whole history."""


def decisions(tree):
    """List the decisions that build a tree, each as a kind, a label or tag, and a word."""
    return [*complete(tree), ("attach", None, None)]


def complete(tree):
    """List the decisions until a node is complete."""
    children = tree.children
    if not children:
        return [("shift", "", tree.label)]
    if is_tag(tree):
        return [("shift", tree.label, children[0].label)]
    first, *others = children
    found = complete(first)
    is_adjunction = first.children and not is_tag(first) and first.label == tree.label and others
    if not is_adjunction:
        found.append(("project", tree.label, None))
    for number, other in enumerate(others):
        found += complete(other)
        found.append(("modify" if is_adjunction and number == 0 else "attach", None, None))
    return found


def is_tag(tree):
    return len(tree.children) == 1 and not tree.children[0].children


class Node:
    """A node of the tree that is built; the nodes of an adjunction are one node."""

    def __init__(self, label, word=None):
        self.label = label
        self.word = word
        self.children = []


def surroundings(sequence):
    """Return the context of each decision: four links, the last decision, the top's label, and two words."""
    stack = [Node("ROOT")]
    tops, found = [], []
    for number, (kind, label, word) in enumerate(sequence):
        top = stack[-1]
        last_word = next((one[1:] for one in sequence[:number][::-1] if one[0] == "shift"), None)
        last = sequence[number - 1][:2] if number else None
        found.append((links(stack, tops), last, top.label, last_word, left_word(top)))
        tops.append(top)
        if kind == "shift":
            stack.append(Node(label, (label, word)))
        elif kind == "project":
            stack[-1] = Node(label)
            stack[-1].children.append(top)
        else:
            stack.pop()
            stack[-1].children.append(top)
    return found


def links(stack, tops):
    """Return when the top, the node below it, and the top's first and last child were last on top."""
    top = stack[-1]
    below = stack[-2] if len(stack) > 1 else None
    children = top.children or [None]
    return tuple(latest(node, tops) for node in (top, below, children[0], children[-1]))


def latest(node, tops):
    return max((number for number, top in enumerate(tops) if top is node), default=-1)


def left_word(node):
    """Return the tag and the word at the left corner of a node."""
    while node.children:
        node = node.children[0]
    return node.word
