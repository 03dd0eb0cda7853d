"""Ends of tokens and sentences: attributes, features, decisions and learning, with Python numbers.

A text is a list of (point, folded, kind, holds); a template is a list of (attribute, offset).
"""

import math
from itertools import groupby

from oracle.hashing import mix_all

SPACE, LINE, PARAGRAPH = 1, 2, 3
WHITE = (SPACE, LINE, PARAGRAPH)
FINAL_MARKS = ".!?…。！？．؟۔।;"


def small(*values):
    return mix_all(*values) >> 32


def without_runs(kinds):
    return [kind for kind, _ in groupby(kinds)]


def in_bins(number):
    return number if number <= 4 else min(4 + number // 4, 12)


def kinds_of(text):
    return [kind for _, _, kind, _ in text]


def chunks_of(text):
    """List the starts and ends of runs of characters that are not white space."""
    is_white = [kind in WHITE for kind in kinds_of(text)]
    places = range(len(text))
    begins = [at for at in places if not is_white[at] and (at == 0 or is_white[at - 1])]
    ends = [at + 1 for at in places if not is_white[at] and (at + 1 == len(text) or is_white[at + 1])]
    return list(zip(begins, ends, strict=True))


def known_spans(text, words):
    """List the known words of up to 6 characters; `words` are keys."""
    spans = []
    for begin, end in chunks_of(text):
        for first in range(begin, end):
            for last in range(first, min(first + 6, end)):
                if small(*(folded for _, folded, _, _ in text[first : last + 1])) in words:
                    spans.append((first, last))
    return spans


def character_attributes(text, words=()):
    """List the attributes of characters that do not depend on decisions."""
    chunks = chunks_of(text)
    spans = known_spans(text, words)
    rows = []
    for at, (point, folded, kind, _) in enumerate(text):
        is_white = kind in WHITE
        end = at if is_white else next(end for begin, end in chunks if begin <= at < end)
        rest = text[at:end]
        following = next((begin for begin, _ in chunks if begin > end or (is_white and begin > at)), None)
        upcoming = 0
        if following is not None:
            second = text[following + 1][2] if following + 1 < len(text) else 0
            upcoming = text[following][2] * 256 + (SPACE if second in WHITE else second)
        sizes = [last - first + 1 for first, last in spans]
        rows.append(
            [
                point,
                folded,
                SPACE if is_white else kind,
                small(*(folded for _, folded, _, _ in reversed(rest))),
                small(*without_runs(kinds_of(reversed(rest)))),
                upcoming,
                max((size for size, (first, _) in zip(sizes, spans, strict=True) if first == at), default=0),
                max((size for size, (_, last) in zip(sizes, spans, strict=True) if last == at), default=0),
                max(
                    (size for size, (first, last) in zip(sizes, spans, strict=True) if first <= at < last),
                    default=0,
                ),
            ]
        )
    return rows


def begun_attributes(text, begin, at):
    """List the attributes of a character whose token begins at `begin`."""
    begun = text[begin : at + 1]
    return [
        small(*(folded for _, folded, _, _ in begun)),
        small(*without_runs(kinds_of(begun))),
        min(len(begun), 12),
    ]


def keys_of(templates, rows, at, n_attributes):
    """List the keys of the features of a unit; outside the text, all attributes are 0."""
    found = []
    for number, parts in enumerate(templates):
        values = [
            rows[at + offset][attribute]
            if 0 <= at + offset < len(rows) and attribute < len(rows[at + offset])
            else 0
            for attribute, offset in parts
        ]
        found.append(max(1, small(number, *values)))
    assert all(attribute < n_attributes for parts in templates for attribute, _ in parts)
    return found


def token_ends(text, templates, weights, is_joined, with_spaces, words=()):
    """Return whether a token ends after each character, deciding from left to right."""
    rows = character_attributes(text, words)
    ends = [False] * len(text)
    begin = None
    for at, (_, _, kind, holds) in enumerate(text):
        if begin is None and kind in WHITE:
            continue
        begin = at if begin is None else begin
        rows[at] = rows[at][:9] + begun_attributes(text, begin, at)
        if kind in WHITE:
            continue
        after = text[at + 1][2] if at + 1 < len(text) else None
        may_join = with_spaces and after == SPACE and at + 2 < len(text) and text[at + 2][2] not in WHITE
        if after is None or (after in WHITE and not may_join):
            ends[at] = True
        elif after in WHITE or not (holds or is_joined(kind, after)):
            keys = keys_of(templates, rows, at, 12)
            ends[at] = sum(weights.get(key, 0.0) for key in keys) > 0
        begin = None if ends[at] else begin
    return ends


def tokens_of(text, ends):
    """List the starts and ends of tokens."""
    found = []
    begin = None
    for at, (_, _, kind, _) in enumerate(text):
        if begin is None and kind not in WHITE:
            begin = at
        if ends[at]:
            found.append((begin, at + 1))
            begin = None
    return found


def token_attributes(text, tokens, classes, has_lines):
    """List the attributes of tokens that do not depend on decisions, and which tokens end a paragraph."""
    rows, lasts = [], []
    for number, (begin, stop) in enumerate(tokens):
        own = text[begin:stop]
        upcoming = tokens[number + 1][0] if number + 1 < len(tokens) else len(text)
        gap = max(kinds_of(text[stop:upcoming]), default=0)
        lower = small(*(folded for _, folded, _, _ in own))
        rows.append(
            [
                small(*(point for point, _, _, _ in own)),
                lower,
                small(*without_runs(kinds_of(own))),
                small(*(folded for _, folded, _, _ in own[-3:])),
                own[0][2],
                own[-1][1],
                min(len(own), 12),
                min(gap, LINE if has_lines else SPACE),
                classes.get(lower, 0),
            ]
        )
        lasts.append(gap == PARAGRAPH or number + 1 == len(tokens))
    for number in range(len(tokens)):
        ahead = 0
        while ahead < 24 and chr(text[tokens[number + ahead][1] - 1][0]) not in FINAL_MARKS:
            ahead = 24 if lasts[number + ahead] else ahead + 1
        rows[number].append(in_bins(ahead))
    return rows, lasts


def sentence_state(text, tokens, rows, first, token, previous):
    """List the attributes of a token whose sentence begins at `first`, after the sentence `previous`."""
    depth = quotes = 0
    for _, stop in tokens[first : token + 1]:
        mark = chr(text[stop - 1][0])
        depth = depth + 1 if mark == "(" else max(0, depth - 1) if mark == ")" else depth
        quotes = 1 - quotes if mark == '"' else quotes
    described = 0
    if previous is not None:
        begin, end = previous
        described = (rows[begin][4] * 256 + rows[end][4]) * 2 + (end - begin < 6)
    return [in_bins(token - first + 1), min(depth, 2) * 2 + quotes, rows[first][2], described]


def sentence_ends(text, tokens, templates, weights, classes, has_lines):
    """Return whether a sentence ends after each token, deciding from left to right."""
    rows, lasts = token_attributes(text, tokens, classes, has_lines)
    ends = []
    first, previous = 0, None
    for token in range(len(tokens)):
        rows[token] += sentence_state(text, tokens, rows, first, token, previous)
        keys = keys_of(templates, rows, token, 14)
        ends.append(lasts[token] or sum(weights.get(key, 0.0) for key in keys) > 0)
        if ends[-1]:
            first, previous = token + 1, (first, token)
    return ends


def learn(rows, gold, order, rate, penalty, n_features):
    """Return the weights after each step of logistic regression with AdaGrad, and the sum of the losses."""
    weights, squares = [0.0] * n_features, [1.0] * n_features
    steps, loss = [], 0.0
    for unit in order:
        own = [row for row in rows[unit] if row >= 0]
        margin = sum(weights[row] for row in own) * (1 if gold[unit] else -1)
        loss += math.log1p(math.exp(-margin))
        for row in own:
            gradient = penalty * weights[row] - (1 if gold[unit] else -1) / (1 + math.exp(margin))
            squares[row] += gradient**2
            weights[row] -= rate * gradient / math.sqrt(squares[row])
        steps.append(list(weights))
    return steps, loss
