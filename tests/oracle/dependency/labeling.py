"""Labels of given trees: features word by word, and passive-aggressive learning, with Python numbers.

A tree is a list of heads with an entry for the root.
"""

from collections import Counter
from typing import NamedTuple

from oracle.dependency.features import Placed, arc_keys, distance_bin, template_keys
from oracle.hashing import mix, mix_all

NO_TOKEN, END, ROOT = 0, 1, 3
POS, WORD = 0, 2


class Texts(NamedTuple):
    """Templates."""

    own: str
    child: str
    sibling: str


def children(heads, head):
    return [word for word in range(1, len(heads)) if heads[word] == head]


def downward(heads):
    """List the words level by level."""
    level, found = [0], []
    while level:
        level = [child for word in level for child in children(heads, word)]
        found += level
    return found


def own_rows(heads, word):
    """Return the rows of the words around an arc, by letter."""
    head = heads[word]
    side = [other for other in children(heads, head) if (other < head) == (word < head)]
    inner = [other for other in side if abs(other - head) < abs(word - head)]
    outer = [other for other in side if abs(other - head) > abs(word - head)]
    under = children(heads, word)
    return {
        "h": ROOT + head,
        "m": ROOT + word,
        "g": ROOT + heads[head] if head else NO_TOKEN,
        "s": ROOT + min(inner, key=lambda other: abs(other - word)) if inner else NO_TOKEN,
        "n": ROOT + min(outer, key=lambda other: abs(other - word)) if outer else END,
        "f": ROOT + min(under) if under else NO_TOKEN,
        "l": ROOT + max(under) if under else NO_TOKEN,
    }


def relative_keys(text, kind, words, heads, word, relatives):
    """List the features of a word with each of the first eight relatives."""
    head = heads[word]
    keys = []
    for other in relatives[:8]:
        situation = 4 * (head < word) + 2 * (head < other) + (word < other)
        rows = {"h": ROOT + head, "m": ROOT + word, "t": ROOT + other}
        keys += template_keys(text, words, Placed(kind, rows, situation, distance_bin(head - word)))
    return keys


def history_keys(words, heads, labels, word):
    """List the features of the labels above the word and of those of its eight nearest left siblings."""
    head = heads[word]
    values = words.values
    is_right = int(head < word)
    tags = (0, values[ROOT + word][POS], values[ROOT + head][POS], is_right)
    form = (1, values[ROOT + word][WORD], is_right)
    above = labels[head]
    top = labels[heads[head]] if head else 0
    left = [labels[other] for other in children(heads, head) if other < word][::-1]
    beside = left[0] if left else 0
    features = [(*tags, 1, above), (*form, 1, above), (*tags, 2, above, top), (*tags, 3, beside)]
    features += [(*form, 3, beside), (*tags, 4, beside, above)]
    features += [(*base, 5, label) for label in left[:8] for base in (tags, form)]
    return [mix_all(*feature) for feature in features]


def label_keys(texts, words, heads, labels, word):
    """List the keys of all features of a word, given the labels so far."""
    head = heads[word]
    siblings = [other for other in children(heads, head) if other != word]
    part = Placed("label", own_rows(heads, word), int(head < word), distance_bin(head - word))
    return (
        arc_keys(texts.own, words, part)
        + history_keys(words, heads, labels, word)
        + relative_keys(texts.child, "label_child", words, heads, word, children(heads, word))
        + relative_keys(texts.sibling, "label_sibling", words, heads, word, siblings)
    )


def scores(weights, bits, keys, allowed):
    """List the scores of the allowed labels."""
    return [sum(float(weights[mix(key, label) >> (64 - bits)]) for key in keys) for label in allowed]


def label(texts, words, heads, allowed, weights, bits, given=None):
    """List the labels of the words of a sentence; `allowed` has the allowed labels of the root and each word.

    The score `given` for a word and a label is added.
    """
    labels = [0] * len(heads)
    for word in downward(heads):
        found = scores(weights, bits, label_keys(texts, words, heads, labels, word), allowed[word])
        if given is not None:
            found = [score + given[word][label] for score, label in zip(found, allowed[word], strict=True)]
        labels[word] = allowed[word][found.index(max(found))]
    return labels


def slot_counts(texts, sentences, bits):
    """Count the slots of all features under gold labels; a sentence is (words, heads, gold)."""
    return Counter(
        key >> (64 - bits)
        for words, heads, gold in sentences
        for word in range(1, len(heads))
        for key in label_keys(texts, words, heads, gold, word)
    )


def learn(texts, sentences, allowed, bits, count_bits, n_passes):
    """Return the final weights by slot, and their mean over the values before each word's update."""
    counts = slot_counts(texts, sentences, count_bits)
    weights, summed, n_steps = Counter(), Counter(), 0
    for _ in range(n_passes):
        for words, heads, gold in sentences:
            labels = [0] * len(heads)
            for word in downward(heads):
                keys = label_keys(texts, words, heads, labels, word)
                keys = [key for key in keys if counts[key >> (64 - count_bits)] >= 2]
                found = dict(zip(allowed, scores(weights, bits, keys, allowed), strict=True))
                labels[word] = max(allowed, key=found.get)
                rival = max((other for other in allowed if other != gold[word]), key=found.get)
                lacking = 1 - found[gold[word]] + found[rival]
                n_steps += 1
                for slot, weight in weights.items():
                    summed[slot] += weight
                for key in keys if lacking > 0 else []:
                    amount = min(0.01, lacking / (2 * len(keys)))
                    weights[mix(key, gold[word]) >> (64 - bits)] += amount
                    weights[mix(key, rival) >> (64 - bits)] -= amount
    return weights, {slot: total / n_steps for slot, total in summed.items()}
