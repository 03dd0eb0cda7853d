"""First-order models: which arcs are worth a closer look, and how that is learnt."""

import numpy as np

from treewright.native.compiling import compiled
from treewright.native.eisner import arc_marginals
from treewright.native.features import (
    N_EXTRA_ROWS,
    PART_SIZE,
    Sentence,
    fill_slots,
    sum_slots,
)
from treewright.native.parts import place_arc


@compiled
def take_sentence(corpus, number):
    """Return the part of the corpus that is one sentence."""
    first, last = corpus.first_row[number], corpus.first_row[number + 1]
    return Sentence(corpus.values[first:last], corpus.first_morph[first : last + 1], corpus.morphs)


@compiled
def score_arcs(templates, sentence, weights, shift, score):
    """Fill the scores of all arcs, heads in rows."""
    n = score.shape[0] - 1
    part = np.zeros(PART_SIZE, np.int64)
    slots = np.empty(2 * templates.with_distance.size, np.int64)
    for head in range(n + 1):
        for modifier in range(1, n + 1):
            if head != modifier:
                place_arc(part, head, modifier)
                n_slots = fill_slots(templates, sentence, part, shift, slots)
                score[head, modifier] = sum_slots(weights, slots, n_slots)


@compiled
def learn_arcs(templates, corpus, heads, weights, squares, shift, order, rate):
    """Take one pass of gradient steps (AdaGrad) on the log-likelihood of gold trees; return the mean loss.

    `squares` are the sums of squared gradients by slot, `heads` the projective gold heads by row.
    """
    part = np.zeros(PART_SIZE, np.int64)
    slots = np.empty(2 * templates.with_distance.size, np.int64)
    loss = 0.0
    for number in order:
        n = corpus.first_row[number + 1] - corpus.first_row[number] - N_EXTRA_ROWS
        if n < 2:
            continue
        sentence = take_sentence(corpus, number)
        first_word = corpus.first_row[number] + 4
        score = np.zeros((n + 1, n + 1))
        marginal = np.zeros((n + 1, n + 1))
        score_arcs(templates, sentence, weights, shift, score)
        loss += arc_marginals(score, marginal)
        for modifier in range(1, n + 1):
            gold = heads[first_word + modifier - 1]
            loss -= score[gold, modifier]
            marginal[gold, modifier] -= 1.0
            for head in range(n + 1):
                gradient = marginal[head, modifier]
                if head == modifier or abs(gradient) < 1e-3:
                    continue
                place_arc(part, head, modifier)
                n_slots = fill_slots(templates, sentence, part, shift, slots)
                for at in range(n_slots):
                    slot = slots[at]
                    squares[slot] += gradient * gradient
                    weights[slot] -= rate * gradient / np.sqrt(squares[slot] + 1e-2)
    return loss / max(1, order.size)


@compiled
def keep_arcs(marginal, threshold, max_heads, keep):
    """Choose for each word the heads whose probability is at least `threshold` times that of the best."""
    n = marginal.shape[0] - 1
    for modifier in range(1, n + 1):
        best = 0.0
        for head in range(n + 1):
            best = max(best, marginal[head, modifier])
        n_kept = 0
        for head in range(n + 1):
            keep[head, modifier] = head != modifier and marginal[head, modifier] >= threshold * best
            n_kept += keep[head, modifier]
        while n_kept > max_heads:
            worst = -1
            for head in range(n + 1):
                if keep[head, modifier] and (
                    worst < 0 or marginal[head, modifier] < marginal[worst, modifier]
                ):
                    worst = head
            keep[worst, modifier] = False
            n_kept -= 1
