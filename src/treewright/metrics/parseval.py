"""PARSEVAL scores of labelled brackets, exactly as evalb computes them with COLLINS.prm.

With that parameter file, words with the tags -NONE- , : `` '' . are deleted, and so are brackets that become
empty and brackets labelled TOP. Labels are cut at the first ``-`` or ``=``, and ADVP and PRT count as the
same label. The length of a sentence counts all words except traces. A sentence whose remaining words differ
from those of the gold tree counts as an error, and a sentence whose prediction has no words is skipped;
neither is part of the totals.
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
    """PARSEVAL scores, in percent unless stated otherwise.

    Attributes
    ----------
    precision, recall, f1 : float
        Scores of labelled brackets.
    exact : float
        Sentences with all brackets correct ("complete match").
    tagging : float
        Words with the correct tag.
    crossing : float
        Average number of predicted brackets per sentence that cross a gold bracket (not percent).
    no_crossing, two_crossing : float
        Sentences with no crossing brackets, and with at most two.
    n_sentences, n_errors, n_skipped : int
        Number of scored sentences, of sentences with different words, and of sentences without a prediction.
    n_gold, n_predicted, n_matched : int
        Number of brackets.

    See Also
    --------
    metrics.parseval : Computes the scores.

    Examples
    --------
    >>> tree = tw.ConstTree.parse("(S (NP (N Mary)) (VP (V sleeps)))")
    >>> tw.metrics.parseval([tree], [tree]).n_matched
    3
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
    """Compute PARSEVAL scores of predicted constituents, as evalb does.

    Parameters
    ----------
    gold : sequence of ConstTree
        Gold trees.
    predicted : sequence of ConstTree or None
        One tree for each gold tree, with the same words; None if there is no prediction.
    max_length : int, optional
        Maximum number of words of a scored sentence, not counting traces.

    Returns
    -------
    ParsevalScore
        The scores.

    See Also
    --------
    metrics.attachment : Scores of dependency trees.
    metrics.significance : Tests whether two predictions differ.

    Examples
    --------
    >>> gold = tw.ConstTree.parse("(S (NP (N Mary)) (VP (V sees) (NP (N him))))")
    >>> predicted = tw.ConstTree.parse("(S (NP (N Mary)) (VP (V sees)) (NP (N him)))")
    >>> score = tw.metrics.parseval([gold], [predicted])
    >>> score.precision, score.recall
    (75.0, 75.0)
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
    """Return the counts of each sentence, one row per sentence, with the columns COUNTS.

    The row of a sentence that is too long is zero.
    """
    if len(gold) != len(predicted):
        raise InputError(f"{len(gold)} gold trees but {len(predicted)} predicted; expected the same number")
    if max_length is not None and max_length < 1:
        raise InputError(f"max_length is {max_length!r}; expected a positive number or None")
    counts = np.zeros((len(gold), len(COUNTS)))
    for row, right, guess in zip(counts, gold, predicted, strict=True):
        if max_length is None or sentence_length(right) <= max_length:
            row[:] = _count_sentence(right, guess)
    return counts


def brackets(tree: ConstTree) -> list[tuple[str, int, int]]:
    """Return the labels, starts and ends of the constituents that evalb scores."""
    return _brackets(tree).brackets


def sentence_length(tree: ConstTree) -> int:
    """Return the number of words of a tree, including punctuation, without traces."""
    return sum(tag != TRACE for tag in tree.tags())


class _Brackets(NamedTuple):
    """The words, tags and brackets of a tree that evalb scores."""

    words: list[str]
    tags: list[str]
    brackets: list[tuple[str, int, int]]


def _count_sentence(gold: ConstTree, predicted: ConstTree | None) -> tuple[float, ...]:
    """Return the counts of one sentence, in the order of COUNTS."""
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
    """Return the words, tags and brackets that remain after evalb's deletions."""
    if not isinstance(tree, ConstTree):
        raise InputError(f"a tree is of type {type(tree).__name__}; expected a ConstTree")
    kept = tree.without_tags(DELETED)
    if kept is None:
        return _Brackets([], [], [])
    is_tag = (kept.sizes[kept.sizes > 1] == 2).tolist()
    spans = [span for span, tag in zip(kept.spans(), is_tag, strict=True) if not tag]
    labelled = [(_bracket_label(span.label), span.start, span.end) for span in spans]
    return _Brackets(kept.words(), kept.tags(), [one for one in labelled if one[0] not in DELETED])


def _bracket_label(label: str) -> str:
    """Cut a label at the first ``-`` or ``=``, as evalb does."""
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
