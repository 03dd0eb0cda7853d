"""Attachment scores, word by word."""

import unicodedata


def is_counted(tree, index, punctuation):
    if punctuation == "penn":
        return tree.xpos[index] not in {"``", "''", ",", ".", ":"}
    if punctuation == "unicode":
        return any(unicodedata.category(character)[0] != "P" for character in tree.words[index])
    return True


def scores(gold, predicted, punctuation=True):
    """Return (UAS, LAS, full LAS, complete match) in percent."""
    right = {"head": 0, "universal": 0, "full": 0}
    n_words = n_complete = 0
    for tree, guess in zip(gold, predicted, strict=True):
        complete = True
        for index in range(len(tree)):
            if not is_counted(tree, index, punctuation):
                continue
            n_words += 1
            same_head = tree.heads[index] == guess.heads[index]
            label, other = tree.deprels[index], guess.deprels[index]
            right["head"] += same_head
            right["universal"] += same_head and label.split(":")[0] == other.split(":")[0]
            right["full"] += same_head and label == other
            complete = complete and same_head
        n_complete += complete
    shares = [100 * count / n_words if n_words else 0 for count in right.values()]
    return (*shares, 100 * n_complete / len(gold) if gold else 0)
