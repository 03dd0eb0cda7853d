"""Crossing arcs: detection and lifting.

Arrays are indexed by word, 1 to n; index 0 is the root, and ``heads[0]`` is 0.
"""

from treewright.native.compiling import in_place


@in_place
def has_gap(heads, n_waiting, low, high, size):
    """Return whether the descendants of some word leave a gap, so that arcs cross.

    The last four arguments are zeroed scratch arrays of the length of `heads`. They hold, for each word, the
    number of children not yet seen, the first and the last descendant, and the number of descendants.
    """
    for word in range(1, heads.size):
        n_waiting[heads[word]] += 1
        low[word] = high[word] = word
        size[word] = 1
    for start in range(1, heads.size):
        word = start
        while word > 0 and n_waiting[word] == 0:
            if high[word] - low[word] + 1 != size[word]:
                return True
            n_waiting[word] = -1  # done; no later climb starts here
            head = heads[word]
            low[head] = min(low[head], low[word])
            high[head] = max(high[head], high[word])
            size[head] += size[word]
            n_waiting[head] -= 1
            word = head
    return False


@in_place
def is_under(heads, word, ancestor):
    """Return whether `ancestor` is `word` or an ancestor of it."""
    while word > 0 and word != ancestor:
        word = heads[word]
    return word == ancestor


@in_place
def shortest_crossing_arc(heads):
    """Return the dependent of the shortest arc that spans a word outside its head's subtree; 0 for none.

    If several arcs have that length, the leftmost dependent is returned.
    """
    shortest = 0
    length = heads.size
    for word in range(1, heads.size):
        head = heads[word]
        if head == 0 or abs(head - word) >= length:
            continue
        for between in range(min(head, word) + 1, max(head, word)):
            if not is_under(heads, between, head):
                shortest = word
                length = abs(head - word)
                break
    return shortest


@in_place
def lift_arcs(heads, on_path):
    """Lift the shortest crossing arc to the head of its head until no arcs cross.

    Changes `heads`, and sets `on_path` for each word that was the head of an arc before it was lifted.
    """
    word = shortest_crossing_arc(heads)
    while word > 0:
        on_path[heads[word]] = True
        heads[word] = heads[heads[word]]
        word = shortest_crossing_arc(heads)
