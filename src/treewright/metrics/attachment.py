"""Attachment scores of dependency trees."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treewright._validate import check_choice
from treewright.data.deptree import DepTree
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
    """How well one universal relation is predicted, counting a word as right if its head is too."""

    relation: str
    n_gold: int
    n_predicted: int
    n_correct: int
    n_heads: int
    """Words of the relation in gold whose head is right, whatever their relation."""

    @property
    def precision(self) -> float:
        """Percent of the predicted that are right."""
        return percent(self.n_correct, self.n_predicted)

    @property
    def recall(self) -> float:
        """Percent of the gold that are found."""
        return percent(self.n_correct, self.n_gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return percent(2 * self.n_correct, self.n_predicted + self.n_gold)

    @property
    def uas(self) -> float:
        """Percent of the gold whose head is right."""
        return percent(self.n_heads, self.n_gold)


@dataclass(frozen=True)
class AttachmentScore:
    """Attachment scores, in percent.

    Attributes
    ----------
    uas : float
        Words with the right head.
    las : float
        Words with the right head and universal relation (``nmod:poss`` counts as ``nmod``).
    las_full : float
        Words with the right head and the right relation, subtype included.
    complete : float
        Sentences in which every counted word has the right head.
    n_tokens, n_sentences : int
        What was counted.
    relations : tuple of RelationScore
        One for each universal relation, the most frequent first.
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
    """Score predicted heads and relations.

    Parameters
    ----------
    gold, predicted : sequence of DepTree
        The same sentences, word for word.
    punctuation : True, "unicode" or "penn"
        Whether punctuation counts. "unicode" leaves out words made of Unicode punctuation (category P)
        alone, "penn" those with one of the gold tags `` '' , . :, as the older papers do.

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
    """Count per sentence what the scores are made of; one row a sentence, columns as in COUNTS."""
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
    """Tell which words of a gold tree are scored under a punctuation rule."""
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
    """Say where two lists of sentences first differ in their words, if they do."""
    if len(gold) != len(predicted):
        return f"{len(gold)} gold sentences but {len(predicted)} predicted"
    for number, (right, guess) in enumerate(zip(gold, predicted, strict=True), start=1):
        if len(right) != len(guess):
            return f"sentence {number}: {len(right)} gold words but {len(guess)} predicted"
        if right.words != guess.words:
            pairs = enumerate(zip(right.words, guess.words, strict=True), start=1)
            at, (word, other) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
            return f"sentence {number}, word {at}: gold has {word!r}, predicted {other!r}"
    return None


def _check_aligned(gold: Sequence[DepTree], predicted: Sequence[DepTree]) -> None:
    if difference := find_difference(gold, predicted):
        raise InputError(f"{difference}; expected the same words")
    for number, right in enumerate(gold, start=1):
        if (right.heads < 0).any():
            raise InputError(f"sentence {number}: gold word {int(right.heads.argmin()) + 1} has no head")
