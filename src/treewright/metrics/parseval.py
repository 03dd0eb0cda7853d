"""PARSEVAL: labelled brackets, counted exactly as evalb does with COLLINS.prm.

The parameters of that file: words under the tags -NONE- , : `` '' . are deleted, and so are brackets
left without words; brackets labelled TOP are deleted; labels are cut at the first ``-`` or ``=``; ADVP
and PRT are the same label; the length of a sentence counts all words but traces. A sentence whose words
then differ is an error, one whose prediction has no words is skipped; neither enters the totals.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.data.consttree import TRACE, ConstTree
from treewright.errors import InputError
from treewright.metrics.ratios import Ratio

DELETED = frozenset(["TOP", TRACE, ",", ":", "``", "''", "."])
SAME_LABEL = {"PRT": "ADVP"}

COUNTS: tuple[str, ...] = (
    *("gold", "predicted", "matched", "sentences", "exact"),
    *("words", "tags", "crossing", "no crossing", "two crossing", "errors", "skipped"),
)


METRICS = {
    "precision": Ratio("matched", ("predicted",)),
    "recall": Ratio("matched", ("gold",)),
    "f1": Ratio("matched", ("gold", "predicted"), times=2),
    "exact": Ratio("exact", ("sentences",)),
    "tagging": Ratio("tags", ("words",)),
    "no_crossing": Ratio("no crossing", ("sentences",)),
    "two_crossing": Ratio("two crossing", ("sentences",)),
}


@dataclass(frozen=True)
class ParsevalScore:
    """PARSEVAL scores, in percent unless said otherwise.

    Attributes
    ----------
    precision, recall, f1 : float
        Of labelled brackets.
    exact : float
        Sentences all of whose brackets are right ("complete match").
    tagging : float
        Words with the right tag.
    crossing : float
        Predicted brackets a sentence that cross a gold one (a number, not percent).
    no_crossing, two_crossing : float
        Sentences with no and with at most two of these.
    n_sentences, n_errors, n_skipped : int
        Sentences scored, and left out because their words differ or because nothing was predicted.
    n_gold, n_predicted, n_matched : int
        Brackets.
    """

    precision: float
    recall: float
    f1: float
    exact: float
    tagging: float
    crossing: float
    no_crossing: float
    two_crossing: float
    n_sentences: int
    n_errors: int
    n_skipped: int
    n_gold: int
    n_predicted: int
    n_matched: int


def parseval(
    gold: Sequence[ConstTree], predicted: Sequence[ConstTree | None], *, max_length: int | None = None
) -> ParsevalScore:
    """Score predicted constituents.

    Parameters
    ----------
    gold : sequence of ConstTree
    predicted : sequence of ConstTree or None
        One tree for each gold tree, over the same words; None where there is no prediction.
    max_length : int, optional
        Score only sentences of up to so many words, traces not counted.
    """
    totals = sentence_counts(gold, predicted, max_length=max_length).sum(axis=0)
    count = dict(zip(COUNTS, totals.tolist(), strict=True))
    return ParsevalScore(
        **{name: float(ratio.score(COUNTS, totals)) for name, ratio in METRICS.items()},
        crossing=count["crossing"] / max(count["sentences"], 1),
        n_sentences=int(count["sentences"]),
        n_errors=int(count["errors"]),
        n_skipped=int(count["skipped"]),
        n_gold=int(count["gold"]),
        n_predicted=int(count["predicted"]),
        n_matched=int(count["matched"]),
    )


def sentence_counts(
    gold: Sequence[ConstTree], predicted: Sequence[ConstTree | None], *, max_length: int | None = None
) -> npt.NDArray[np.float64]:
    """Count per sentence what the scores are made of; one row a sentence, columns as in COUNTS.

    Sentences that are too long give a row of zeros.
    """
    if len(gold) != len(predicted):
        raise InputError(f"{len(gold)} gold trees but {len(predicted)} predicted; expected as many")
    if max_length is not None and max_length < 1:
        raise InputError(f"max_length is {max_length!r}; expected a positive number or None")
    counts = np.zeros((len(gold), len(COUNTS)))
    for row, right, guess in zip(counts, gold, predicted, strict=True):
        if max_length is None or sentence_length(right) <= max_length:
            row[:] = _count_sentence(right, guess)
    return counts


def sentence_length(tree: ConstTree) -> int:
    """Count the words of a tree, punctuation included, traces not."""
    return sum(tag != TRACE for tag in tree.tags())


class _Brackets(NamedTuple):
    """What evalb sees of a tree."""

    words: list[str]
    tags: list[str]
    brackets: list[tuple[str, int, int]]


def _count_sentence(gold: ConstTree, predicted: ConstTree | None) -> tuple[float, ...]:
    """Count one sentence, in the order of COUNTS."""
    right = _brackets(gold)
    guess = _brackets(predicted) if predicted is not None else _Brackets([], [], [])
    if not guess.words:
        return _row(skipped=1)
    if right.words != guess.words:
        return _row(errors=1)
    n_gold, n_predicted = len(right.brackets), len(guess.brackets)
    matched = (Counter(right.brackets) & Counter(guess.brackets)).total()
    crossing = _n_crossing(right.brackets, guess.brackets)
    return (
        *(n_gold, n_predicted, matched, 1, n_gold == n_predicted == matched),
        *(len(right.words), sum(map(_same_tag, right.tags, guess.tags))),
        *(crossing, crossing == 0, crossing <= 2, 0, 0),
    )


def _row(*, errors: int = 0, skipped: int = 0) -> tuple[float, ...]:
    return (*[0] * (len(COUNTS) - 2), errors, skipped)


def _brackets(tree: ConstTree) -> _Brackets:
    """Take the words, tags and brackets of a tree that remain after deletion."""
    kept = tree.without_tags(DELETED)
    if kept is None:
        return _Brackets([], [], [])
    is_tag = (kept.sizes[kept.sizes > 1] == 2).tolist()
    spans = [span for span, tag in zip(kept.spans(), is_tag, strict=True) if not tag]
    labelled = [(_bracket_label(span.label), span.start, span.end) for span in spans]
    return _Brackets(kept.words(), kept.tags(), [one for one in labelled if one[0] not in DELETED])


def _bracket_label(label: str) -> str:
    """Cut a label as evalb does: at the very first ``-`` or ``=``."""
    label = label.partition("-")[0].partition("=")[0]
    return SAME_LABEL.get(label, label)


def _same_tag(left: str, right: str) -> bool:
    return SAME_LABEL.get(left, left) == SAME_LABEL.get(right, right)


def _n_crossing(gold: Iterable[tuple[str, int, int]], predicted: Iterable[tuple[str, int, int]]) -> int:
    """Count the predicted brackets that cross a gold bracket."""
    spans = {(start, end) for _, start, end in gold}
    return sum(
        any(a < start < b < end or start < a < end < b for a, b in spans) for _, start, end in predicted
    )
