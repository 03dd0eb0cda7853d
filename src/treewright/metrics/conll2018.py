"""Scores from raw text, as the CoNLL 2018 shared task computes them.

Zeman et al. (2018), CoNLL 2018 Shared Task: Multilingual Parsing from Raw Text to Universal Dependencies.
Gold and predicted sentences are two analyses of one text. A token is a span of characters, not counting
whitespace, and two tokens are the same if they have the same span. A word that is itself a token is aligned
by its span. The words of multiword tokens have no spans: where either analysis has a multiword token, the
words of both are aligned by a longest common subsequence of their forms. Tags, lemmas, heads and relations
are compared for aligned words.

All scores equal those of the official script, conll18_ud_eval.py (version 1.2), including its choice among
equally good alignments.
"""

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from treewright._naming import setting
from treewright.data.conllu import CONLLU, declared_layout, read_conllu
from treewright.data.deptree import RANGE_ID, UNKNOWN_HEAD, DepTree, check_trees
from treewright.data.files import Source
from treewright.errors import InputError, quote

CONTENT_RELATIONS = frozenset(
    [
        *("acl", "advcl", "advmod", "amod", "appos", "ccomp", "compound", "conj", "csubj", "dep"),
        *("discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj", "list", "nmod", "nsubj"),
        *("nummod", "obj", "obl", "orphan", "parataxis", "reparandum", "root", "vocative", "xcomp"),
    ]
)
FUNCTION_RELATIONS = frozenset(["aux", "case", "cc", "clf", "cop", "det", "mark"])
UNIVERSAL_FEATURES = frozenset(
    [
        *("Abbr", "Animacy", "Aspect", "Case", "Definite", "Degree", "Evident", "Foreign", "Gender", "Mood"),
        *("NumType", "Number", "Person", "Polarity", "Polite", "Poss", "PronType", "Reflex", "Tense"),
        *("VerbForm", "Voice"),
    ]
)
SPACES = re.compile("[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
"""The characters of Unicode category Zs."""

ROOT, UNALIGNED = -1, -2
"""Values instead of the index of a head, for a root and for a head that is not aligned with a gold word."""
N_SHOWN = 20
"""Number of characters to show where two texts differ."""

LABELS = {
    "tokens": "Tokens",
    "sentences": "Sentences",
    "words": "Words",
    "upos": "UPOS",
    "xpos": "XPOS",
    "ufeats": "UFeats",
    "all_tags": "AllTags",
    "lemmas": "Lemmas",
    "uas": "UAS",
    "las": "LAS",
    "clas": "CLAS",
    "mlas": "MLAS",
    "blex": "BLEX",
}
"""The names of the scores in the official script."""

Interval = tuple[int, int]
Marks = npt.NDArray[np.bool_]
Words = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AlignedScore:
    """Precision, recall and F1 of one metric of the CoNLL 2018 shared task.

    See Also
    --------
    metrics.conll2018 : Computes the scores.

    Examples
    --------
    >>> score = tw.metrics.AlignedScore(n_gold=10, n_predicted=8, n_correct=6)
    >>> score.precision, score.recall
    (75.0, 60.0)
    """

    n_gold: int
    """Number of gold items."""
    n_predicted: int
    """Number of predicted items."""
    n_correct: int
    """Number of correct items."""
    n_aligned: int | None = None
    """Number of scored gold words that are aligned; None for tokens, sentences and words."""

    @property
    def precision(self) -> float:
        """Percentage of the predicted items that are correct."""
        return _percent(self.n_correct, self.n_predicted)

    @property
    def recall(self) -> float:
        """Percentage of the gold items that are predicted correctly."""
        return _percent(self.n_correct, self.n_gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _percent(2 * self.n_correct, self.n_predicted + self.n_gold)

    @property
    def aligned_accuracy(self) -> float | None:
        """Percentage of the aligned words that are correct; None for tokens, sentences and words."""
        return None if self.n_aligned is None else _percent(self.n_correct, self.n_aligned)


@dataclass(frozen=True)
class Conll2018Scores:
    """The scores of the CoNLL 2018 shared task; ``print`` shows the table of the official script.

    Attributes
    ----------
    tokens, sentences : AlignedScore
        Spans of characters.
    words : AlignedScore
        Aligned words.
    upos, xpos : AlignedScore
        Words with the correct part of speech.
    ufeats : AlignedScore
        Words with the correct universal features; other features are ignored.
    all_tags : AlignedScore
        Words with the correct UPOS, XPOS and universal features.
    lemmas : AlignedScore
        Words with the correct lemma; any lemma is correct if the gold lemma is ``_``.
    uas, las : AlignedScore
        Words with the correct head, and with the correct head and universal relation.
    clas : AlignedScore
        Like `las`, but only for content words: those whose relation is neither functional nor ``punct``.
    mlas : AlignedScore
        Like `clas`, but UPOS, universal features and function words must also be correct.
    blex : AlignedScore
        Like `clas`, but the lemma must also be correct.

    See Also
    --------
    metrics.conll2018 : Computes the scores.

    Examples
    --------
    >>> tree = tw.DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"])
    >>> tw.metrics.conll2018([tree], [tree]).las.f1
    100.0
    """

    tokens: AlignedScore
    sentences: AlignedScore
    words: AlignedScore
    upos: AlignedScore
    xpos: AlignedScore
    ufeats: AlignedScore
    all_tags: AlignedScore
    lemmas: AlignedScore
    uas: AlignedScore
    las: AlignedScore
    clas: AlignedScore
    mlas: AlignedScore
    blex: AlignedScore

    def items(self) -> list[tuple[str, AlignedScore]]:
        """Return each score with its name."""
        return [(field.name, getattr(self, field.name)) for field in fields(self)]

    def __str__(self) -> str:
        lines = ["Metric     | Precision |    Recall |  F1 Score | AligndAcc", "+".join(["-" * 11] * 5)]
        for name, score in self.items():
            accuracy = score.aligned_accuracy
            lines.append(
                f"{LABELS[name]:11}|{score.precision:10.2f} |{score.recall:10.2f} |{score.f1:10.2f} |"
                + ("" if accuracy is None else f"{accuracy:10.2f}")
            )
        return "\n".join(lines)


class _Analysis(NamedTuple):
    """The sentences of one text as columns of all words."""

    characters: str
    sentences: list[Interval]
    tokens: list[Interval]
    starts: list[int]
    """`starts` and `ends` hold the spans of words, or of their multiword tokens, and one extra entry."""
    ends: list[int]
    in_multiword: list[bool]
    forms: list[str]
    """Forms in lower case."""
    heads: Words
    """The index of each word's head in these columns, or ROOT."""
    upos: list[str]
    xpos: list[str]
    ufeats: list[str]
    relations: list[str]
    lemmas: list[str]


def conll2018(
    gold: Sequence[DepTree] | Source, predicted: Sequence[DepTree] | Source, *, multiple_roots: bool = False
) -> Conll2018Scores:
    """Score an analysis of raw text as in the CoNLL 2018 shared task.

    The scores cover tokens, sentences, words, tags, lemmas and trees.

    Parameters
    ----------
    gold, predicted : sequence of DepTree, or a CoNLL-U file
        Sentences of the same text. Tokens and sentences may differ; characters other than whitespace may not.
        Multiword tokens are read from `DepTree.extra_lines`; empty nodes are ignored.
    multiple_roots : bool
        Whether a sentence may have several roots. The shared task allows only one.

    Returns
    -------
    Conll2018Scores
        The scores.

    Raises
    ------
    InputError
        If the characters differ, or a sentence is not a tree.

    See Also
    --------
    metrics.attachment : Scores of sentences with the same words.

    Examples
    --------
    >>> gold = DepTree(["Mary", "sleeps", "."], [2, 0, 2], ["nsubj", "root", "punct"])
    >>> guess = DepTree(["Mary", "sleeps."], [2, 0], ["nsubj", "root"])
    >>> scores = conll2018([gold], [guess])
    >>> scores.words.precision, scores.uas.precision
    (50.0, 0.0)
    """
    right = _analyse(gold, "gold", multiple_roots)
    guess = _analyse(predicted, "predicted", multiple_roots)
    _check_characters(right, guess)
    return _score(right, guess, _align(right, guess))


def _percent(part: int, whole: int) -> float:
    """Return a percentage, rounded as in the official script, which computes the fraction first."""
    return 100 * (part / whole) if whole else 0.0


def _analyse(source: Sequence[DepTree] | Source, side: str, multiple_roots: bool) -> _Analysis:
    """Concatenate the words of all sentences, and find their spans in the text."""
    trees: Sequence[DepTree]
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        trees = read_conllu(cast(Source, source))
    else:
        check_trees(source)
        trees = cast(Sequence[DepTree], source)
    parts: list[str] = []
    sentences: list[Interval] = []
    tokens: list[Interval] = []
    starts: list[int] = []
    ends: list[int] = []
    in_multiword: list[bool] = []
    forms: list[str] = []
    heads: list[Words] = []
    place = 0
    form_column = (declared_layout(trees[0].comments, side) if trees else CONLLU).index("FORM")
    for number, tree in enumerate(trees, start=1):
        where = f"{side} sentence {number}"
        _check_tree(tree, where, multiple_roots)
        heads.append(np.where(tree.heads > 0, tree.heads.astype(np.int64) + (len(starts) - 1), ROOT))
        multiword = _multiword_tokens(tree, form_column, where) if tree.extra_lines else {}
        sentence_start = place
        word, n_words = 0, len(tree)
        while word < n_words:
            after, form = multiword.get(word, (word + 1, tree.words[word]))
            form = SPACES.sub("", form)
            if not form:
                what = f"multiword token {word + 1}-{after}" if word in multiword else f"word {word + 1}"
                raise InputError(f"{where}, {what}: FORM is empty; expected a form")
            end = place + len(form)
            parts.append(form)
            tokens.append((place, end))
            # Whitespace is removed from a word that is a token, but not from the words of a multiword token.
            forms += [form.lower()] if word not in multiword else map(str.lower, tree.words[word:after])
            in_multiword += [word in multiword] * (after - word)
            starts += [place] * (after - word)
            ends += [end] * (after - word)
            place, word = end, after
        sentences.append((sentence_start, place))
    behind = place + 1
    return _Analysis(
        characters="".join(parts),
        sentences=sentences,
        tokens=tokens,
        starts=[*starts, behind],
        ends=[*ends, behind],
        in_multiword=[*in_multiword, False],
        forms=forms,
        heads=np.concatenate([np.zeros(0, dtype=np.int64), *heads]),
        upos=[tag for tree in trees for tag in tree.upos],
        xpos=[tag for tree in trees for tag in tree.xpos],
        ufeats=_mapped(_universal_features, [feats for tree in trees for feats in tree.feats]),
        relations=_mapped(_universal_relation, [relation for tree in trees for relation in tree.deprels]),
        lemmas=[lemma for tree in trees for lemma in tree.lemmas],
    )


def _check_tree(tree: DepTree, where: str, multiple_roots: bool) -> None:
    """Check that a sentence has words, heads and, unless `multiple_roots`, exactly one root."""
    if not len(tree):
        raise InputError(f"{where} has no words; expected at least one")
    if (tree.heads == UNKNOWN_HEAD).any():
        raise InputError(
            f"{where}, word {int(tree.heads.argmin()) + 1} has no head; expected a head for every word"
        )
    if tree.n_roots > 1 and not multiple_roots:
        named = ", ".join(str(word + 1) for word in np.flatnonzero(tree.heads == 0)[:8])
        found = f"{where} has {tree.n_roots} roots (words {named})"
        raise InputError(f"{found}; expected one, or {setting('multiple_roots', True)}")


def _multiword_tokens(tree: DepTree, form_column: int, where: str) -> dict[int, tuple[int, str]]:
    """Map the first word of each multiword token to its end and its form."""
    found: dict[int, tuple[int, str]] = {}
    free = 0
    for extra in tree.extra_lines:
        columns = extra.text.split("\t")
        token_id, form = columns[0], "".join(columns[form_column : form_column + 1])
        if "." in token_id:
            continue
        span = RANGE_ID.fullmatch(token_id)
        first, after = (int(span[1]) - 1, int(span[2])) if span else (-1, -1)
        if not free <= first < after <= len(tree):
            rest = f"a range of words from {free + 1} to {len(tree)}"
            expected = rest if free < len(tree) else "no more multiword tokens"
            raise InputError(f"{where}: a multiword token has ID {quote(token_id)}; expected {expected}")
        found[first] = after, form
        free = after
    return found


def _mapped(function: Callable[[str], str], values: list[str]) -> list[str]:
    """Apply `function` to each value, but only once to equal values."""
    images = {value: function(value) for value in set(values)}
    return [images[value] for value in values]


def _universal_features(feats: str) -> str:
    return "|".join(sorted(one for one in feats.split("|") if one.partition("=")[0] in UNIVERSAL_FEATURES))


def _universal_relation(relation: str) -> str:
    return relation.partition(":")[0]


def _check_characters(gold: _Analysis, predicted: _Analysis) -> None:
    """Check that the two texts are equal except for whitespace."""
    if gold.characters == predicted.characters:
        return
    pairs = enumerate(zip(gold.characters, predicted.characters, strict=False))
    shorter = min(len(gold.characters), len(predicted.characters))
    place = next((at for at, (one, other) in pairs if one != other), shorter)
    found = f"gold {_describe_place(gold, place)}, predicted {_describe_place(predicted, place)}"
    raise InputError(f"the texts differ: {found}; expected the same characters except whitespace")


def _describe_place(analysis: _Analysis, place: int) -> str:
    """Describe a position in a text: the characters, sentence and token."""
    if not analysis.sentences:
        return "is empty"
    if place == len(analysis.characters):
        return f"ends after sentence {len(analysis.sentences)}"
    sentence = bisect_right(analysis.sentences, place, key=itemgetter(0))
    token = bisect_right(analysis.tokens, place, key=itemgetter(0))
    first = bisect_left(analysis.tokens, analysis.sentences[sentence - 1][0], key=itemgetter(0))
    shown = quote(analysis.characters[place : place + N_SHOWN])
    return f"has {shown} (sentence {sentence}, token {token - first})"


def _align(gold: _Analysis, predicted: _Analysis) -> list[tuple[int, int]]:
    """Return the pairs of aligned gold and predicted words, in text order."""
    pairs: list[tuple[int, int]] = []
    n_gold, n_predicted = len(gold.heads), len(predicted.heads)
    g = p = 0
    while g < n_gold and p < n_predicted:
        if gold.in_multiword[g] or predicted.in_multiword[p]:
            (g, p), (g_after, p_after) = _multiword_region(gold, predicted, g, p)
            common = _align_forms(gold.forms[g:g_after], predicted.forms[p:p_after])
            pairs += [(g + i, p + j) for i, j in common]
            g, p = g_after, p_after
        elif gold.starts[g] == predicted.starts[p] and gold.ends[g] == predicted.ends[p]:
            pairs.append((g, p))
            g, p = g + 1, p + 1
        elif gold.starts[g] <= predicted.starts[p]:
            g += 1
        else:
            p += 1
    return pairs


def _multiword_region(
    gold: _Analysis, predicted: _Analysis, g: int, p: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the start and the end of a region that is aligned by forms, each in gold and predicted words.

    The region starts at `g` and `p`, one of which is in a multiword token, and is extended until no multiword
    token of either side crosses its end. Words are added in text order, gold first, so a word that crosses
    the end belongs to the region if it starts before another word of the region.
    """
    end = gold.ends[g] if gold.in_multiword[g] else predicted.ends[p]
    if gold.in_multiword[g] and not predicted.in_multiword[p]:
        p += predicted.starts[p] < gold.starts[g]
    elif predicted.in_multiword[p] and not gold.in_multiword[g]:
        g += gold.starts[g] < predicted.starts[p]
    first = g, p
    while _is_within(gold, g, end) or _is_within(predicted, p, end):
        if gold.starts[g] <= predicted.starts[p]:
            side, word = gold, g
            g += 1
        else:
            side, word = predicted, p
            p += 1
        if side.in_multiword[word]:
            end = max(end, side.ends[word])
    return first, (g, p)


def _is_within(side: _Analysis, word: int, end: int) -> bool:
    """Return whether a word is in a region up to `end`; for multiword tokens, only the start matters."""
    return side.starts[word] < end if side.in_multiword[word] else side.ends[word] <= end


def _align_forms(gold: list[str], predicted: list[str]) -> list[tuple[int, int]]:
    """Return a longest common subsequence as pairs of positions.

    If there are several, it pairs equal forms as early as possible. If skipping a gold form and skipping a
    predicted form are both optimal, it skips the gold form.
    """
    pairs = []
    i = j = 0
    is_passable: npt.NDArray[np.uint8] | None = None
    while i < len(gold) and j < len(predicted):
        if gold[i] == predicted[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
            continue
        if is_passable is None:
            is_passable = _passable_forms(gold, predicted)
        if is_passable[i, j // 8] >> (7 - j % 8) & 1:
            i += 1
        else:
            j += 1
    return pairs


def _passable_forms(gold: list[str], predicted: list[str]) -> npt.NDArray[np.uint8]:
    """Return whether gold form `i` can be skipped before predicted form `j` without loss.

    It can if a longest common subsequence of the remaining forms does not use it. The results are stored as
    bits (by `numpy.packbits`), since overlapping multiword tokens may turn a whole file into one region.
    """
    codes = {form: code for code, form in enumerate({*gold, *predicted})}
    places = np.array([codes[form] for form in predicted])
    is_passable = np.empty((len(gold), (len(predicted) + 7) // 8), dtype=np.uint8)
    longest = np.zeros(len(predicted) + 1, dtype=np.int32)  # from gold form i + 1 and each predicted form
    for i in reversed(range(len(gold))):
        row = longest.copy()
        met = np.flatnonzero(places == codes[gold[i]])
        row[met] = longest[met + 1] + 1
        row = np.maximum.accumulate(row[::-1])[::-1]
        is_passable[i] = np.packbits(row[:-1] == longest[:-1])
        longest = row
    return is_passable


def _score(gold: _Analysis, predicted: _Analysis, pairs: list[tuple[int, int]]) -> Conll2018Scores:
    """Count the correct words among all aligned words and among aligned content words."""
    g, p = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    upos = _equal(gold.upos, predicted.upos, pairs)
    xpos = _equal(gold.xpos, predicted.xpos, pairs)
    ufeats = _equal(gold.ufeats, predicted.ufeats, pairs)
    lemmas = _equal(gold.lemmas, predicted.lemmas, pairs) | _is_in(gold.lemmas, {"_"})[g]
    heads = gold.heads[g] == _heads_in_gold(predicted, g, p)
    labeled = heads & _equal(gold.relations, predicted.relations, pairs)
    function_words = _function_words(gold, predicted, g, p, labeled & upos & ufeats)
    content = _is_in(gold.relations, CONTENT_RELATIONS)
    n_predicted_content = int(_is_in(predicted.relations, CONTENT_RELATIONS).sum())

    def of_words(right: Marks) -> AlignedScore:
        return AlignedScore(len(gold.heads), len(predicted.heads), int(right.sum()), len(pairs))

    def of_content_words(right: Marks) -> AlignedScore:
        n_right, n_aligned = int((right & content[g]).sum()), int(content[g].sum())
        return AlignedScore(int(content.sum()), n_predicted_content, n_right, n_aligned)

    return Conll2018Scores(
        tokens=_score_intervals(gold.tokens, predicted.tokens),
        sentences=_score_intervals(gold.sentences, predicted.sentences),
        words=AlignedScore(len(gold.heads), len(predicted.heads), len(pairs)),
        upos=of_words(upos),
        xpos=of_words(xpos),
        ufeats=of_words(ufeats),
        all_tags=of_words(upos & xpos & ufeats),
        lemmas=of_words(lemmas),
        uas=of_words(heads),
        las=of_words(labeled),
        clas=of_content_words(labeled),
        mlas=of_content_words(labeled & upos & ufeats & function_words),
        blex=of_content_words(labeled & lemmas),
    )


def _score_intervals(gold: list[Interval], predicted: list[Interval]) -> AlignedScore:
    return AlignedScore(len(gold), len(predicted), len({*gold} & {*predicted}))


def _equal(gold: list[str], predicted: list[str], pairs: list[tuple[int, int]]) -> Marks:
    """Return, for each aligned pair, whether both words have the same value."""
    return np.array([gold[g] == predicted[p] for g, p in pairs], dtype=np.bool_)


def _is_in(values: list[str], members: Set[str]) -> Marks:
    return np.array([value in members for value in values], dtype=np.bool_)


def _heads_in_gold(predicted: _Analysis, g: Words, p: Words) -> Words:
    """Return, for each aligned pair, the gold word that is aligned with the predicted head."""
    counterpart = np.full(len(predicted.heads) + 1, UNALIGNED, dtype=np.int64)
    counterpart[p] = g
    counterpart[ROOT] = ROOT
    heads: Words = counterpart[predicted.heads[p]]
    return heads


def _function_words(gold: _Analysis, predicted: _Analysis, g: Words, p: Words, right: Marks) -> Marks:
    """Return, for each aligned pair, whether both words have the same function words as children.

    `right` marks the aligned words with the correct head, relation, UPOS and universal features.
    """
    is_function = _is_in(gold.relations, FUNCTION_RELATIONS)
    is_predicted_function = _is_in(predicted.relations, FUNCTION_RELATIONS)
    n_right = _count_heads(gold, g[right & is_function[g]])[g]
    n_gold = _count_heads(gold, np.flatnonzero(is_function))[g]
    n_predicted = _count_heads(predicted, np.flatnonzero(is_predicted_function))[p]
    same: Marks = (n_right == n_gold) & (n_right == n_predicted)
    return same


def _count_heads(analysis: _Analysis, words: Words) -> Words:
    """Return, for each word of an analysis, the number of `words` that it is the head of."""
    heads = analysis.heads[words]
    counts: Words = np.bincount(heads[heads != ROOT], minlength=len(analysis.heads))
    return counts
