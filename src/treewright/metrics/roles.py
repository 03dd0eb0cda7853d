"""Scores of semantic roles, as computed by srl-eval.pl of the CoNLL-2005 shared task.

Carreras and Marquez (2005), Introduction to the CoNLL-2005 Shared Task. Propositions are matched by the
position of their predicate. An argument is correct if its label and all its words are correct. ``C-X``
continues the last ``X`` before it, and both are one discontinuous argument; without such an ``X``, ``C-X``
counts as ``X``. The ``V`` of a predicate is scored separately. Lemmas and senses of predicates are ignored.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.data.consttree import Span, unescape_word
from treewright.data.propbank import Proposition, PropSentence
from treewright.errors import InputError, quote
from treewright.metrics.ratios import Ratio, percent

VERB = "V"
CONTINUATION = "C-"
COUNTS: tuple[str, ...] = (
    *("gold", "predicted", "right", "identified"),
    *("gold predicates", "predicted predicates", "right predicates", "perfect"),
)
METRICS = {
    "precision": Ratio("right", ("predicted",)),
    "recall": Ratio("right", ("gold",)),
    "f1": Ratio("right", ("gold", "predicted"), times=2),
    "perfect": Ratio("perfect", ("gold predicates",)),
    "classification": Ratio("right", ("identified",)),
}

HEADER = f"{'corr.':>6}  {'excess':>6}  {'missed':>6}   {'prec.':>6}  {'rec.':>6}  {'F1':>6}"
RULE = "-" * 60

Pieces = tuple[tuple[int, int], ...]


class _Argument(NamedTuple):
    """An argument: a label and its spans of words."""

    label: str
    pieces: Pieces


@dataclass(frozen=True)
class RoleScore:
    """Precision, recall and F1 of one label, of unlabelled spans, or of predicates.

    See Also
    --------
    metrics.roles : Computes the scores.

    Examples
    --------
    >>> score = tw.metrics.RoleScore(n_gold=10, n_predicted=8, n_right=6)
    >>> score.precision, score.n_missed
    (75.0, 4)
    """

    n_gold: int
    """Number of gold items."""
    n_predicted: int
    """Number of predicted items."""
    n_right: int
    """Number of correct items."""

    @property
    def n_excess(self) -> int:
        """Number of predicted items that are not in gold."""
        return self.n_predicted - self.n_right

    @property
    def n_missed(self) -> int:
        """Number of gold items that are not predicted."""
        return self.n_gold - self.n_right

    @property
    def precision(self) -> float:
        """Percentage of the predicted items that are correct."""
        return percent(self.n_right, self.n_predicted)

    @property
    def recall(self) -> float:
        """Percentage of the gold items that are predicted correctly."""
        return percent(self.n_right, self.n_gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return percent(2 * self.n_right, self.n_predicted + self.n_gold)

    def __str__(self) -> str:
        counts = f"{self.n_right:6d}  {self.n_excess:6d}  {self.n_missed:6d}"
        return f"{counts}   {self.precision:6.2f}  {self.recall:6.2f}  {self.f1:6.2f}"


@dataclass(frozen=True)
class RoleScores:
    """Scores of semantic roles, in percent unless stated otherwise; ``print`` shows srl-eval.pl's table.

    Attributes
    ----------
    precision, recall, f1 : float
        Scores of labelled arguments, without ``V``.
    perfect : float
        Gold propositions with all arguments correct and no extra arguments.
    classification : float
        Identified arguments with the correct label.
    identification : RoleScore
        Scores of unlabelled arguments, without ``V``.
    predicates : RoleScore
        Scores of the positions of predicates.
    verb : RoleScore
        Scores of the ``V`` arguments.
    labels : mapping of str to RoleScore
        Scores of each label except ``V``, in alphabetical order.
    n_sentences, n_propositions : int
        Number of gold sentences and propositions.
    n_gold, n_predicted, n_right : int
        Number of labelled arguments, without ``V``.

    See Also
    --------
    metrics.roles : Computes the scores.

    Examples
    --------
    >>> sentences = tw.make_treebank(10).propositions
    >>> tw.metrics.roles(sentences, sentences).f1
    100.0
    """

    precision: float
    recall: float
    f1: float
    perfect: float
    classification: float
    identification: RoleScore
    predicates: RoleScore
    verb: RoleScore
    labels: Mapping[str, RoleScore]
    n_sentences: int
    n_propositions: int
    n_gold: int
    n_predicted: int
    n_right: int

    def __str__(self) -> str:
        width = max(map(len, [*self.labels, "Predicates"]))
        overall = RoleScore(self.n_gold, self.n_predicted, self.n_right)
        return "\n".join(
            [
                f"Number of Sentences    :      {self.n_sentences:6d}",
                f"Number of Propositions :      {self.n_propositions:6d}",
                f"Percentage of perfect props : {self.perfect:6.2f}",
                "",
                f"{'':{width}}   {HEADER}",
                RULE,
                f"{'Overall':>{width}}   {overall}",
                "-" * 10,
                *(f"{label:>{width}}   {score}" for label, score in self.labels.items()),
                RULE,
                f"{VERB:>{width}}   {self.verb}",
                RULE,
                f"{'':{width}}   {HEADER}    lAcc",
                f"{'Unlabeled':>{width}}   {self.identification}  {self.classification:6.2f}",
                f"{'Predicates':>{width}}   {self.predicates}",
                RULE,
            ]
        )


def roles(
    gold: Sequence[PropSentence], predicted: Sequence[PropSentence], *, count_extra: bool = True
) -> RoleScores:
    """Score predicted semantic roles.

    If a predicate is not predicted, all its arguments are missed.

    Parameters
    ----------
    gold, predicted : sequence of PropSentence
        The same sentences with the same words.
    count_extra : bool
        Whether the arguments of a predicted predicate that is not in gold count as errors. srl-eval.pl, which
        was made for given predicates, ignores them; use False to reproduce its scores.

    Returns
    -------
    RoleScores
        The scores.

    See Also
    --------
    metrics.significance : Tests whether two predictions differ.

    Examples
    --------
    >>> words, tags = ["Mary", "sings", "songs"], ["NNP", "VBZ", "NNS"]
    >>> right = (Span("ARG0", 0, 1), Span("V", 1, 2), Span("ARG1", 2, 3))
    >>> guess = (Span("ARG0", 0, 1), Span("V", 1, 2), Span("ARG2", 2, 3))
    >>> pair = [PropSentence(words, tags, [Proposition(1, "sing", "01", one)], []) for one in (right, guess)]
    >>> scores = roles(pair[:1], pair[1:])
    >>> scores.f1, scores.identification.f1, scores.classification
    (50.0, 100.0, 50.0)
    """
    totals = sentence_counts(gold, predicted, count_extra=count_extra).sum(axis=0)
    count = {name: int(total) for name, total in zip(COUNTS, totals, strict=True)}
    labels = _label_scores(gold, predicted, count_extra)
    verb = labels.pop(VERB, RoleScore(0, 0, 0))
    n_predicates = [count[f"{kind} predicates"] for kind in ("gold", "predicted", "right")]
    return RoleScores(
        **{name: float(ratio.score(COUNTS, totals)) for name, ratio in METRICS.items()},
        identification=RoleScore(count["gold"], count["predicted"], count["identified"]),
        predicates=RoleScore(*n_predicates),
        verb=verb,
        labels=labels,
        n_sentences=len(gold),
        n_propositions=count["gold predicates"],
        n_gold=count["gold"],
        n_predicted=count["predicted"],
        n_right=count["right"],
    )


def sentence_counts(
    gold: Sequence[PropSentence], predicted: Sequence[PropSentence], *, count_extra: bool = True
) -> npt.NDArray[np.float64]:
    """Return the counts of each sentence, one row per sentence, with the columns COUNTS."""
    _check_aligned(gold, predicted)
    counts = np.zeros((len(gold), len(COUNTS)))
    for row, right, guess in zip(counts, gold, predicted, strict=True):
        row[:] = _count_sentence(right, guess, count_extra)
    return counts


def _count_sentence(gold: PropSentence, predicted: PropSentence, count_extra: bool) -> tuple[int, ...]:
    """Return the counts of one sentence, in the order of COUNTS."""
    places, guessed_places = _predicates(gold), _predicates(predicted)
    totals = np.zeros(4, dtype=np.int64)
    n_perfect = 0
    for at, right, guess in _matched_arguments(gold, predicted, count_extra):
        real, guessed = _without_verb(right), _without_verb(guess)
        n_gold, n_predicted, n_right = len(real), len(guessed), _n_common(real, guessed)
        totals += n_gold, n_predicted, n_right, _n_common(_spans(real), _spans(guessed))
        n_perfect += at in places and n_gold == n_predicted == n_right
    n_found = _n_common(places, guessed_places)
    return *totals.tolist(), len(places), len(guessed_places), n_found, n_perfect


def _matched_arguments(
    gold: PropSentence, predicted: PropSentence, count_extra: bool
) -> Iterator[tuple[int, list[_Argument], list[_Argument]]]:
    """Yield each scored predicate with its gold and predicted arguments."""
    right = {one.predicate: _join_pieces(one.arguments) for one in gold.propositions}
    guess = {one.predicate: _join_pieces(one.arguments) for one in predicted.propositions}
    for at in {**right, **guess} if count_extra else right:
        yield at, right.get(at, []), guess.get(at, [])


def _join_pieces(spans: Sequence[Span]) -> list[_Argument]:
    """Combine labelled spans into arguments: ``C-X`` joins the last ``X`` that starts before it."""
    arguments: list[_Argument] = []
    last: dict[str, int] = {}
    for label, start, end in sorted(spans, key=lambda span: (span.start, -span.end)):
        name = label.removeprefix(CONTINUATION)
        if name != label and name in last:
            begun = arguments[last[name]]
            arguments[last[name]] = begun._replace(pieces=(*begun.pieces, (start, end)))
        else:
            last[name] = len(arguments)
            arguments.append(_Argument(name, ((start, end),)))
    return arguments


def _without_verb(arguments: list[_Argument]) -> list[_Argument]:
    return [one for one in arguments if one.label != VERB]


def _spans(arguments: list[_Argument]) -> list[Pieces]:
    return [one.pieces for one in arguments]


def _predicates(sentence: PropSentence) -> list[int]:
    return [one.predicate for one in sentence.propositions]


def _n_common(left: Sequence[object], right: Sequence[object]) -> int:
    return (Counter(left) & Counter(right)).total()


def _label_scores(
    gold: Sequence[PropSentence], predicted: Sequence[PropSentence], count_extra: bool
) -> dict[str, RoleScore]:
    """Return the scores of each label, including ``V``, in alphabetical order."""
    n_gold, n_predicted, n_right = Counter[str](), Counter[str](), Counter[str]()
    for right, guess in zip(gold, predicted, strict=True):
        for _, real, guessed in _matched_arguments(right, guess, count_extra):
            n_gold.update(one.label for one in real)
            n_predicted.update(one.label for one in guessed)
            n_right.update(one.label for one in (Counter(real) & Counter(guessed)).elements())
    names = sorted({*n_gold, *n_predicted})
    return {name: RoleScore(n_gold[name], n_predicted[name], n_right[name]) for name in names}


def _check_aligned(gold: Sequence[PropSentence], predicted: Sequence[PropSentence]) -> None:
    if len(gold) != len(predicted):
        raise InputError(
            f"{len(gold)} gold sentences but {len(predicted)} predicted; expected the same number"
        )
    for number, (right, guess) in enumerate(zip(gold, predicted, strict=True), start=1):
        n, n_guessed = len(right.words), len(guess.words)
        if n != n_guessed:
            raise InputError(
                f"sentence {number}: {n} gold words but {n_guessed} predicted; expected the same number"
            )
        for place, (word, other) in enumerate(zip(right.words, guess.words, strict=True), start=1):
            if word != other and unescape_word(word) != unescape_word(other):
                found = f"sentence {number}, word {place}: {quote(word)} in gold but {quote(other)} predicted"
                raise InputError(f"{found}; expected the same words")
        _check_predicates(number, "gold", right.propositions)
        _check_predicates(number, "predicted", guess.propositions)


def _check_predicates(number: int, kind: str, propositions: Sequence[Proposition]) -> None:
    """Check that no word has two propositions."""
    for at, times in Counter(one.predicate for one in propositions).items():
        if times > 1:
            found = f"sentence {number}: {times} {kind} propositions at word {at + 1}"
            raise InputError(f"{found}; expected one")
