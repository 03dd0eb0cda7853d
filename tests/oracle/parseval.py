"""PARSEVAL scores as described in the manual of evalb, by recursion over nested lists."""

import re

DELETED = ["TOP", "-NONE-", ",", ":", "``", "''", "."]


def nested(text):
    """Parse a bracketed tree into nested lists [label, child, ...], with words as strings."""
    tokens = re.findall(r"[()]|[^()\s]+", text)

    def read(at):
        node = [tokens[at + 1]]
        at += 2
        while tokens[at] != ")":
            if tokens[at] == "(":
                child, at = read(at)
                node.append(child)
            else:
                node.append(tokens[at])
                at += 1
        return node, at + 1

    return read(0)[0]


def is_tag(node):
    return len(node) == 2 and isinstance(node[1], str)


def collect(node, words, brackets):
    """Append the words that are kept, as (word, tag), and the brackets, as (label, start, end)."""
    if is_tag(node):
        if node[0] not in DELETED:
            words.append((node[1], node[0]))
        return
    start = len(words)
    for child in node[1:]:
        collect(child, words, brackets)
    label = re.split("[-=]", node[0])[0]
    if label not in DELETED and len(words) > start:
        brackets.append((label, start, len(words)))


def same_label(one, other):
    return one == other or {one, other} == {"ADVP", "PRT"}


def count_matches(gold, predicted):
    """Match each gold bracket with the first free predicted bracket that equals it."""
    free = list(predicted)
    matched = 0
    for label, start, end in gold:
        for other in free:
            if (start, end) == other[1:] and same_label(label, other[0]):
                free.remove(other)
                matched += 1
                break
    return matched


def count_crossing(gold, predicted):
    def crosses(one, other):
        inside = [one[1] < other[1] < one[2] < other[2], other[1] < one[1] < other[2] < one[2]]
        return any(inside)

    return sum(any(crosses(bracket, other) for other in gold) for bracket in predicted)


def length(node):
    if is_tag(node):
        return int(node[0] != "-NONE-")
    return sum(length(child) for child in node[1:])


def score_pair(gold_text, predicted_text):
    """Return status (0 scored, 1 error, 2 skipped) and the counts of one sentence."""
    words, brackets, guessed_words, guessed = [], [], [], []
    collect(nested(gold_text), words, brackets)
    collect(nested(predicted_text), guessed_words, guessed)
    if not guessed_words:
        return {"status": 2}
    if [word for word, _ in words] != [word for word, _ in guessed_words]:
        return {"status": 1}
    return {
        "status": 0,
        "matched": count_matches(brackets, guessed),
        "gold": len(brackets),
        "predicted": len(guessed),
        "crossing": count_crossing(brackets, guessed),
        "words": len(words),
        "tags": sum(
            same_label(tag, other) for (_, tag), (_, other) in zip(words, guessed_words, strict=True)
        ),
    }
