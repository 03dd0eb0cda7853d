"""Pruning of arcs and its training, with probabilities that are sums over all trees."""

import numpy as np
from oracle.dependency.charts import arcs_of
from oracle.dependency.eisner import arc_marginals
from oracle.dependency.features import arc_keys, template_keys
from oracle.dependency.parts import place


def all_arcs(n):
    return {(head, word) for head in range(n + 1) for word in range(1, n + 1) if head != word}


def arc_slots(text, full, shift, words, arc):
    """List the slots of an arc's features."""
    fill = arc_keys if full else template_keys
    return [key >> shift for key in fill(text, words, place(("arc", *arc)))]


def score_square(text, full, weights, shift, words, arcs):
    """Score arcs; return a square matrix with heads in rows."""
    n = len(words.values) - 6
    score = np.zeros((n + 1, n + 1))
    for arc in arcs:
        score[arc] = sum(float(weights[slot]) for slot in arc_slots(text, full, shift, words, arc))
    return score


def probable_arcs(marginal, arcs, threshold, max_heads):
    """Keep the best `max_heads` heads of each word that reach `threshold` times the best probability."""
    kept = set()
    for word in range(1, len(marginal)):
        heads = sorted((head for head, one in arcs if one == word), key=lambda head: -marginal[head, word])
        probable = [head for head in heads if marginal[head, word] >= threshold * marginal[:, word].max()]
        kept |= {(head, word) for head in probable[:max_heads]}
    return kept


def learn(text, full, weights, shift, sentences, rate):
    """Take an AdaGrad step for each arc in turn; return the weights, their mean, and the mean loss.

    `sentences` are words, heads, and the arcs to consider. The mean is over the weights before each sentence.
    """
    weights, squares, loss = weights.astype(float), np.zeros(len(weights)), 0.0
    before = []
    for words, heads, arcs in sentences:
        before.append(weights.copy())
        score = score_square(text, full, weights, shift, words, arcs)
        marginal, log_sum = arc_marginals(score, arcs)
        loss += log_sum - sum(score[arc] for arc in arcs_of(heads))
        for head, word in sorted(arcs, key=lambda arc: arc[::-1]):
            gradient = marginal[head, word] - (heads[word - 1] == head)
            if abs(gradient) >= 1e-3:
                for slot in arc_slots(text, full, shift, words, (head, word)):
                    squares[slot] += gradient**2
                    weights[slot] -= rate * gradient / np.sqrt(squares[slot] + 1)
    return weights, np.mean(before, axis=0), loss / len(sentences)
