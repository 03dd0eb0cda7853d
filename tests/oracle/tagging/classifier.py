"""Classification of words from left to right: features, scores and learning, with Python numbers.

A template is a list of (attribute, offset); a sentence is a list of words, each a list of attributes.
"""

from collections import Counter
from typing import NamedTuple

from oracle.hashing import mix, mix_all

UPOS = 14
"""The first attribute of labels; lower numbers are attributes of words."""
LEXICAL = {(0, 0), (1, 0), (2, 0)}


class Feature(NamedTuple):
    """A template with its number."""

    number: int
    parts: list


def letters_hash(points):
    return mix_all(*points)


def without_runs(points):
    return [point for at, point in enumerate(points) if at == 0 or points[at - 1] != point]


def attributes(points, folded, shapes, classes):
    """List the attributes of a word; `classes` are numbers by the hash of the folded word."""
    lower = letters_hash(folded)
    backwards = folded[::-1]
    suffixes = [letters_hash(backwards[:size]) if size <= len(folded) else 0 for size in range(1, 7)]
    prefixes = [letters_hash(folded[:size]) if size <= len(folded) else 0 for size in range(1, 5)]
    rare = mix(suffixes[1], shapes[0] if shapes else 0)
    own_class = mix_all(classes[lower]) if lower in classes else rare
    return [letters_hash(points), lower, own_class, letters_hash(without_runs(shapes)), *prefixes, *suffixes]


def key(feature, sentence, label_values, labels, at):
    """Return the key of a feature of one word."""
    values = []
    for attribute, offset in feature.parts:
        place = at + offset
        if place < 0:
            values.append(1)
        elif place >= len(sentence):
            values.append(2)
        elif attribute >= UPOS:
            values.append(label_values[labels[place]][attribute - UPOS])
        else:
            values.append(sentence[place][attribute])
    return mix_all(feature.number, *values) >> 32


def best(weights, keys, outcomes, right=None, margin=0.0):
    """Return the number of the best outcome, the first if tied; `weights` are by key and piece."""
    totals = [
        sum(weights[key, piece] for key in keys for piece in pieces) + (0.0 if number == right else margin)
        for number, pieces in enumerate(outcomes)
    ]
    return totals.index(max(totals))


def choose(weights, features, sentence, label_values, outcomes):
    """List the outcomes of the words of a sentence."""
    found = []
    for at in range(len(sentence)):
        keys = [key(feature, sentence, label_values, found, at) for feature in features]
        found.append(best(weights, keys, outcomes))
    return found


def frequent_keys(features, sentences, golds, label_values, min_count):
    counts = Counter(
        key(feature, sentence, label_values, gold, at)
        for sentence, gold in zip(sentences, golds, strict=True)
        for at in range(len(sentence))
        for feature in features
    )
    return {key for key, count in counts.items() if count >= min_count}


def learn(features, sentences, golds, label_values, outcomes, known, passes, margin):
    """Return the final weights, and their mean over the values before each word's update.

    `known` are the keys that are learnt; `passes` has, for each pass, the order of the sentences and, for
    each sentence, whether each word is hidden.
    """
    weights, summed, n_words = Counter(), Counter(), 0
    for order, hidden in passes:
        for number in order:
            sentence, gold, found = sentences[number], golds[number], []
            for at in range(len(sentence)):
                shown = [
                    feature
                    for feature in features
                    if not (hidden[number][at] and LEXICAL & set(feature.parts))
                ]
                keys = [key(feature, sentence, label_values, found, at) for feature in shown]
                keys = [each for each in keys if each in known]
                found.append(best(weights, keys, outcomes, gold[at], margin))
                n_words += 1
                summed.update(weights)
                for each in keys:
                    for piece in set(outcomes[gold[at]]) - set(outcomes[found[at]]):
                        weights[each, piece] += 1.0
                    for piece in set(outcomes[found[at]]) - set(outcomes[gold[at]]):
                        weights[each, piece] -= 1.0
    return weights, {place: total / n_words for place, total in summed.items()}
