"""Pruning of arcs by first-order models in stages, and the training of these models."""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import compiled, in_place
from treewright.native.dependency.eisner import EXCLUDED, arc_marginals
from treewright.native.dependency.features import (
    N_EXTRA_ROWS,
    PART_SIZE,
    ROOT,
    add_built_in,
    fill_arc_keys,
    fill_keys,
    make_sentence,
    score_columns,
)
from treewright.native.dependency.parts import list_arcs, number_arcs, place_arc

SMALLEST_GRADIENT = 1e-3
PRIOR_SQUARE = 1.0
"""Constant added to the sums of squared gradients. Otherwise, AdaGrad would take its longest steps on
features that are seen once, and the marginals of sentences with rare words would be overconfident."""


class Stage(NamedTuple):
    """A first-order model and its pruning thresholds."""

    templates: NamedTuple
    full: bool
    """Whether the built-in features of arcs are used in addition to the templates."""
    weights: np.ndarray
    shift: np.uint64
    threshold: float
    """Minimum probability of a head, as a fraction of the probability of the best head."""
    max_heads: int
    max_keys: int
    single_root: bool
    """Whether exactly one word is attached to the root."""


class KeptArcs(NamedTuple):
    """The arcs that are kept; those of sentence i have the codes `codes[indptr[i]:indptr[i + 1]]`.

    A code is head * (n + 1) + modifier; unused space is -1. Without codes, all arcs are kept.
    """

    indptr: np.ndarray
    codes: np.ndarray


class Steps(NamedTuple):
    """State of the gradient steps."""

    squares: np.ndarray
    """Sums of squared gradients, by slot."""
    totals: np.ndarray
    """Sums of weight changes, each times the number of its step, by slot; used for averaging."""
    rate: float
    n_done: int
    """Number of steps taken before, one per sentence."""


@in_place
def sentence_size(corpus, number):
    """Return the number of words of a sentence."""
    return corpus.first_row[number + 1] - corpus.first_row[number] - N_EXTRA_ROWS


@compiled
def take_sentence(corpus, number):
    """Return one sentence of the corpus."""
    first, last = corpus.first_row[number], corpus.first_row[number + 1]
    return make_sentence(corpus.values[first:last], corpus.first_morph[first : last + 1], corpus.morphs)


@compiled
def all_arcs(n):
    """Return a square matrix with all arcs between `n` words and from the root, heads in rows."""
    keep = np.ones((n + 1, n + 1), np.bool_)
    for word in range(n + 1):
        keep[word, word] = keep[word, 0] = False
    return keep


@in_place
def _fill(stage, sentence, part, keys):
    if stage.full:
        return fill_arc_keys(stage.templates, sentence, part, keys)
    return fill_keys(stage.templates, sentence, part, keys)


@compiled
def score_arcs(stage, sentence, keep, score):
    """Fill the scores of the arcs in `keep`."""
    head, modifier, _ = number_arcs(keep)
    arcs = list_arcs(head, modifier)
    found = np.empty(head.size)
    score_columns(stage.templates, sentence.values, arcs, stage.weights, stage.shift, found)
    if stage.full:
        add_built_in(stage.templates, sentence, arcs, stage.weights, stage.shift, found)
    score[:, :] = EXCLUDED
    for arc in range(head.size):
        score[head[arc], modifier[arc]] = found[arc]


@compiled
def filter_arcs(stage, sentence, keep):
    """Remove the arcs from `keep` that the stage finds improbable."""
    n = keep.shape[0] - 1
    score = np.empty((n + 1, n + 1))
    marginal = np.empty((n + 1, n + 1))
    score_arcs(stage, sentence, keep, score)
    arc_marginals(score, stage.single_root, marginal)
    drop_improbable(marginal, stage.threshold, stage.max_heads, keep)


@in_place
def drop_improbable(marginal, threshold, max_heads, keep):
    """Remove heads less probable than `threshold` times the best head, and all but the best `max_heads`."""
    n = keep.shape[0] - 1
    for modifier in range(1, n + 1):
        best = 0.0
        for head in range(n + 1):
            best = max(best, marginal[head, modifier])
        n_kept = 0
        for head in range(n + 1):
            if keep[head, modifier]:
                keep[head, modifier] = marginal[head, modifier] >= threshold * best
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


@compiled
def filter_scored(score, single_root, threshold, max_heads, keep):
    """Remove the arcs from `keep` that are improbable according to the given scores."""
    n = keep.shape[0] - 1
    allowed = np.empty((n + 1, n + 1))
    marginal = np.empty((n + 1, n + 1))
    for head in range(n + 1):
        for modifier in range(n + 1):
            allowed[head, modifier] = score[head, modifier] if keep[head, modifier] else EXCLUDED
    arc_marginals(allowed, single_root, marginal)
    drop_improbable(marginal, threshold, max_heads, keep)


@compiled
def choose_arcs(stages, corpus, numbers, gold, kept):
    """Store the arcs of each sentence that the stages keep, and all gold arcs, in `kept`.

    Returns how many gold arcs would have been pruned, and how many arcs are kept.
    """
    indptr, codes = kept
    n_lost = n_kept = 0
    for number in numbers:
        n = sentence_size(corpus, number)
        keep = all_arcs(n)
        sentence = take_sentence(corpus, number)
        for stage in stages:
            filter_arcs(stage, sentence, keep)
        at = indptr[number]
        for modifier in range(1, n + 1):
            head = gold[corpus.first_row[number] + ROOT + modifier]
            n_lost += not keep[head, modifier]
            keep[head, modifier] = True
            for head in range(n + 1):
                if keep[head, modifier]:
                    codes[at] = head * (n + 1) + modifier
                    at += 1
        n_kept += at - indptr[number]
        codes[at : indptr[number + 1]] = -1
    return n_lost, n_kept


@compiled
def restore_arcs(kept, number, n):
    """Return the stored arcs of a sentence as a square matrix."""
    indptr, codes = kept
    keep = np.zeros((n + 1, n + 1), np.bool_)
    for at in range(indptr[number], indptr[number + 1]):
        if codes[at] >= 0:
            keep[codes[at] // (n + 1), codes[at] % (n + 1)] = True
    return keep


@compiled
def learn_stage(stage, corpus, gold, kept, order, steps):
    """Make one pass of AdaGrad steps on the log-likelihood of gold trees; return the mean loss.

    If `kept` has no codes, all arcs are considered. `steps` is a `Steps`.
    """
    part = np.zeros(PART_SIZE, np.int32)
    keys = np.empty(stage.max_keys, np.uint64)
    squares, totals, rate, step = steps
    loss = 0.0
    for number in order:
        step += 1
        n = sentence_size(corpus, number)
        if n < 2:
            continue
        sentence = take_sentence(corpus, number)
        keep = restore_arcs(kept, number, n) if kept.codes.size > 0 else all_arcs(n)
        score = np.empty((n + 1, n + 1))
        marginal = np.empty((n + 1, n + 1))
        score_arcs(stage, sentence, keep, score)
        loss += arc_marginals(score, stage.single_root, marginal)
        for modifier in range(1, n + 1):
            right = gold[corpus.first_row[number] + ROOT + modifier]
            loss -= score[right, modifier]
            marginal[right, modifier] -= 1.0
            for head in range(n + 1):
                gradient = marginal[head, modifier]
                if abs(gradient) < SMALLEST_GRADIENT:
                    continue
                place_arc(part, head, modifier)
                n_keys = _fill(stage, sentence, part, keys)
                for at in range(n_keys):
                    slot = keys[at] >> stage.shift
                    squares[slot] += gradient * gradient
                    change = -rate * gradient / np.sqrt(squares[slot] + PRIOR_SQUARE)
                    stage.weights[slot] += change
                    totals[slot] += step * change
    return loss / max(1, order.size)
