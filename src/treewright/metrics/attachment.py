"""Attachment scores of dependency trees."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treewright._validate import check_choice
from treewright.data.deptree import DepTree, check_trees
from treewright.errors import InputError
from treewright.metrics.ratios import Ratio, percent

PENN_PUNCTUATION = frozenset(["``", "''", ",", ".", ":"])
PUNCTUATION_RULES = (True, "unicode", "penn")

COUNTS: tuple[str, ...] = ("tokens", "heads", "relations", "full relations", "sentences", "complete")
METRICS = {
    "uas": Ratio("heads", ("tokens",)),
    "las": Ratio("relations", ("tokens",)),
    "las_full": Ratio("full relations", ("tokens",)),
    "complete": Ratio("complete", ("sentences",)),
}


@dataclass(frozen=True)
class RelationScore:
    """Scores of one universal relation; a word is correct if both its head and its relation are correct.

    See Also
    --------
    metrics.attachment : Computes the scores.

    Examples
    --------
    >>> score = tw.metrics.RelationScore("obj", n_gold=10, n_predicted=8, n_correct=6, n_heads=7)
    >>> score.precision, score.recall
    (75.0, 60.0)
    """

    relation: str
    """The relation."""
    n_gold: int
    """Number of gold words with the relation."""
    n_predicted: int
    """Number of predicted words with the relation."""
    n_correct: int
    """Number of correct words."""
    n_heads: int
    """Number of gold words with the relation whose head is correct."""

    @property
    def precision(self) -> float:
        """Percentage of the predicted words that are correct."""
        return percent(self.n_correct, self.n_predicted)

    @property
    def recall(self) -> float:
        """Percentage of the gold words that are predicted correctly."""
        return percent(self.n_correct, self.n_gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return percent(2 * self.n_correct, self.n_predicted + self.n_gold)

    @property
    def uas(self) -> float:
        """Percentage of the gold words with the correct head."""
        return percent(self.n_heads, self.n_gold)


@dataclass(frozen=True)
class AttachmentScore:
    """Attachment scores, in percent.

    Attributes
    ----------
    uas : float
        Words with the correct head.
    las : float
        Words with the correct head and universal relation (``nmod:poss`` counts as ``nmod``).
    las_full : float
        Words with the correct head and relation, including the subtype.
    complete : float
        Sentences in which every scored word has the correct head.
    n_tokens, n_sentences : int
        Number of scored words and sentences.
    relations : tuple of RelationScore
        Scores of each universal relation, most frequent first.

    See Also
    --------
    metrics.attachment : Computes the scores.

    Examples
    --------
    >>> tree = tw.DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"])
    >>> score = tw.metrics.attachment([tree], [tree])
    >>> score.uas, score.n_tokens
    (100.0, 2)
    """

    uas: float
    las: float
    las_full: float
    complete: float
    n_tokens: int
    n_sentences: int
    relations: tuple[RelationScore, ...]


def attachment(
    gold: Sequence[DepTree], predicted: Sequence[DepTree], *, punctuation: bool | str = True
) -> AttachmentScore:
    """Compute attachment scores: the percentages of words with the correct head and relation.

    Parameters
    ----------
    gold, predicted : sequence of DepTree
        The same sentences with the same words.
    punctuation : True, "unicode" or "penn"
        Whether punctuation is scored. True scores all words, "unicode" ignores words that consist of Unicode
        punctuation (category P), and "penn" ignores words with one of the gold tags `` '' , . :, as in older
        papers.

    Returns
    -------
    AttachmentScore
        The scores.

    See Also
    --------
    metrics.conll2018 : Scores of raw text, in which tokens may differ.
    metrics.significance : Tests whether two predictions differ.

    Examples
    --------
    >>> gold = DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"])
    >>> attachment([gold], [gold.with_heads([2, 0], ["obj", "root"])]).las
    50.0
    """
    totals = sentence_counts(gold, predicted, punctuation=punctuation).sum(axis=0)
    return AttachmentScore(
        **{name: float(ratio.score(COUNTS, totals)) for name, ratio in METRICS.items()},
        n_tokens=int(totals[0]),
        n_sentences=len(gold),
        relations=_relation_scores(gold, predicted, punctuation),
    )


def sentence_counts(
    gold: Sequence[DepTree], predicted: Sequence[DepTree], *, punctuation: bool | str = True
) -> npt.NDArray[np.float64]:
    """Return the counts of each sentence, one row per sentence, with the columns COUNTS."""
    check_choice("punctuation", punctuation, PUNCTUATION_RULES)
    _check_aligned(gold, predicted)
    counts = np.zeros((len(gold), len(COUNTS)))
    for row, right, guess in zip(counts, gold, predicted, strict=True):
        counted = counted_words(right, punctuation)
        heads = (right.heads == guess.heads) & counted
        full = heads & _equal(right.deprels, guess.deprels)
        relations = heads & _equal(_universal(right), _universal(guess))
        n = int(counted.sum())
        row[:] = n, heads.sum(), relations.sum(), full.sum(), 1, heads.sum() == n
    return counts


def counted_words(tree: DepTree, punctuation: bool | str = True) -> npt.NDArray[np.bool_]:
    """Return whether each word of a gold tree is scored under a punctuation rule."""
    if punctuation is True:
        return np.ones(len(tree), dtype=np.bool_)
    if punctuation == "unicode":
        return np.array([not _is_punctuation(word) for word in tree.words], dtype=np.bool_)
    return np.array([tag not in PENN_PUNCTUATION for tag in tree.xpos], dtype=np.bool_)


def _is_punctuation(word: str) -> bool:
    return all(unicodedata.category(character).startswith("P") for character in word)


def _universal(tree: DepTree) -> list[str]:
    return [relation.partition(":")[0] for relation in tree.deprels]


def _equal(left: list[str], right: list[str]) -> npt.NDArray[np.bool_]:
    return np.array([one == other for one, other in zip(left, right, strict=True)], dtype=np.bool_)


def _relation_scores(
    gold: Sequence[DepTree], predicted: Sequence[DepTree], punctuation: bool | str
) -> tuple[RelationScore, ...]:
    n_gold, n_predicted, n_correct, n_heads = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for right, guess in zip(gold, predicted, strict=True):
        counted = counted_words(right, punctuation).tolist()
        same_head = (right.heads == guess.heads).tolist()
        words = zip(_universal(right), _universal(guess), same_head, counted, strict=True)
        for relation, guessed, found, counts in words:
            if counts:
                n_gold[relation] += 1
                n_predicted[guessed] += 1
                n_heads[relation] += found
                n_correct[relation] += found and relation == guessed
    scores = [
        RelationScore(name, n_gold[name], n_predicted[name], n_correct[name], n_heads[name])
        for name in {**n_gold, **n_predicted}
    ]
    return tuple(sorted(scores, key=lambda score: (-score.n_gold, -score.n_predicted, score.relation)))


def find_difference(gold: Sequence[DepTree], predicted: Sequence[DepTree]) -> str | None:
    """Describe the first difference between the words of two lists of sentences; None if there is none."""
    if len(gold) != len(predicted):
        return f"{len(gold)} gold sentences but {len(predicted)} predicted"
    for number, (right, guess) in enumerate(zip(gold, predicted, strict=True), start=1):
        if len(right) != len(guess):
            return f"sentence {number}: {len(right)} gold words but {len(guess)} predicted"
        if right.words != guess.words:
            pairs = enumerate(zip(right.words, guess.words, strict=True), start=1)
            at, (word, other) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
            return f"sentence {number}, word {at}: gold has {word!r}, predicted has {other!r}"
    return None


def _check_aligned(gold: Sequence[DepTree], predicted: Sequence[DepTree]) -> None:
    check_trees(gold)
    check_trees(predicted)
    if difference := find_difference(gold, predicted):
        raise InputError(f"{difference}; expected the same words")
    for number, right in enumerate(gold, start=1):
        if (right.heads < 0).any():
            raise InputError(
                f"sentence {number}: gold word {int(right.heads.argmin()) + 1} has no head; "
                "expected a head for every word"
            )
