"""Whether one system is better than another, or only luckier.

Yeh (2000), More Accurate Tests for the Statistical Significance of Result Differences: outputs of the
two systems are exchanged at random, sentence by sentence; how often does that make a difference as large
as the one observed? The interval of the difference comes from resampling sentences with replacement.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from treewright._validate import check_integer, check_number
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.propbank import PropSentence
from treewright.errors import InputError
from treewright.metrics.attachment import COUNTS as ATTACHMENT_COUNTS
from treewright.metrics.attachment import METRICS as ATTACHMENT_METRICS
from treewright.metrics.attachment import sentence_counts as attachment_counts
from treewright.metrics.parseval import COUNTS as PARSEVAL_COUNTS
from treewright.metrics.parseval import METRICS as PARSEVAL_METRICS
from treewright.metrics.parseval import sentence_counts as parseval_counts
from treewright.metrics.roles import COUNTS as ROLE_COUNTS
from treewright.metrics.roles import METRICS as ROLE_SCORES
from treewright.metrics.roles import sentence_counts as role_counts
from treewright.progress import task, track

Counts = npt.NDArray[np.float64]
Score = Callable[[Counts], Counts]
Trees = Sequence[DepTree | ConstTree | PropSentence | None]
Tree = TypeVar("Tree", DepTree, ConstTree, PropSentence)

ROLE_METRICS = {f"role-{name}": ratio for name, ratio in ROLE_SCORES.items()}

BLOCK_CELLS = 4_000_000
"""Random numbers drawn at a time."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class SignificanceResult:
    """The outcome of a randomisation test.

    Attributes
    ----------
    p_value : float
        Two-sided: the share of random exchanges with a difference at least as large, either way.
    difference : float
        The score of `a` minus the score of `b`, in points.
    interval : tuple of float
        Bootstrap interval of the difference.
    confidence : float
        What the interval covers, 0.95 for 95 percent.
    score_a, score_b : float
    metric : str
    n_sentences, n_shuffles : int
        The first is of examples, where these are what is exchanged.
    """

    p_value: float
    difference: float
    interval: tuple[float, float]
    confidence: float
    score_a: float
    score_b: float
    metric: str
    n_sentences: int
    n_shuffles: int


def significance(
    gold: Trees,
    a: Trees,
    b: Trees,
    *,
    metric: str = "uas",
    n_shuffles: int = 10_000,
    random_state: int = 0,
    confidence: float = 0.95,
    punctuation: bool | str = True,
    max_length: int | None = None,
) -> SignificanceResult:
    """Test whether the scores of two systems on the same sentences differ.

    Parameters
    ----------
    gold, a, b : sequence of DepTree, of ConstTree or of PropSentence
        A constituent parse that is missing is None.
    metric : str
        For dependencies "uas", "las", "las_full" or "complete"; for constituents "f1", "precision",
        "recall", "exact" or another percentage of `ParsevalScore`; for semantic roles "role-f1",
        "role-precision", "role-recall", "role-perfect" or "role-classification".
    n_shuffles : int
        Random exchanges, and as many bootstrap samples.
    random_state : int
    confidence : float
        Of the interval, between 0 and 1.
    punctuation, max_length
        As for `attachment` and `parseval`.
    """
    check_integer("n_shuffles", n_shuffles, minimum=1)
    check_integer("random_state", random_state)
    check_number("confidence", confidence, low=0, high=1)
    counts_a, counts_b, score = _count(gold, a, b, metric, punctuation, max_length)
    score_a, score_b = float(score(counts_a.sum(axis=0))), float(score(counts_b.sum(axis=0)))
    rng = np.random.default_rng(random_state)
    exchanged = _exchanged_differences(counts_a, counts_b, score, n_shuffles, rng)
    n_as_large = int((exchanged >= abs(score_a - score_b) - ROUNDING).sum())
    resampled = _resampled_differences(counts_a, counts_b, score, n_shuffles, rng)
    low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return SignificanceResult(
        p_value=(n_as_large + 1) / (n_shuffles + 1),
        difference=score_a - score_b,
        interval=(low, high),
        confidence=confidence,
        score_a=score_a,
        score_b=score_b,
        metric=metric,
        n_sentences=len(gold),
        n_shuffles=n_shuffles,
    )


def accuracy_significance(
    is_right_a: Sequence[bool],
    is_right_b: Sequence[bool],
    *,
    groups: Sequence[int] | None = None,
    n_shuffles: int = 10_000,
    random_state: int = 0,
    confidence: float = 0.95,
) -> SignificanceResult:
    """Test whether the accuracies of two systems on the same examples differ.

    Parameters
    ----------
    is_right_a, is_right_b : sequence of bool
        For each example, whether the system was right.
    groups : sequence of int, optional
        The number, from 0, of what each example belongs to, such as a sentence, where examples depend on each
        other: all of a group are exchanged together. Without it, each is its own.
    n_shuffles, random_state, confidence
        As for `significance`.
    """
    check_integer("n_shuffles", n_shuffles, minimum=1)
    check_integer("random_state", random_state)
    check_number("confidence", confidence, low=0, high=1)
    right_a, right_b = (np.asarray(each, dtype=np.bool_) for each in (is_right_a, is_right_b))
    n = len(right_a)
    if not n or len(right_b) != n or (groups is not None and len(groups) != n):
        raise InputError(f"there are {n} and {len(right_b)} examples; expected as many, and at least one")
    numbers = np.arange(n) if groups is None else np.asarray(groups)
    won = np.bincount(numbers, right_a.astype(np.float64) - right_b)
    sizes = np.bincount(numbers)
    won, sizes = won[sizes > 0], sizes[sizes > 0]
    rng = np.random.default_rng(random_state)
    times = track(range(n_shuffles), "exchanging examples", unit="times")
    exchanged = np.array([won @ rng.choice((-1.0, 1.0), size=len(won)) for _ in times])
    counts = (
        np.bincount(rng.integers(len(won), size=len(won)), minlength=len(won))
        for _ in track(range(n_shuffles), "resampling examples", unit="times")
    )
    resampled = [100 * float(won @ count) / float(sizes @ count) for count in counts]
    low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return SignificanceResult(
        p_value=(int((np.abs(exchanged) >= abs(won.sum()) - ROUNDING).sum()) + 1) / (n_shuffles + 1),
        difference=100 * float(won.sum()) / n,
        interval=(low, high),
        confidence=confidence,
        score_a=100 * float(right_a.mean()),
        score_b=100 * float(right_b.mean()),
        metric="accuracy",
        n_sentences=len(won),
        n_shuffles=n_shuffles,
    )


def _count(
    gold: Trees, a: Trees, b: Trees, metric: str, punctuation: bool | str, max_length: int | None
) -> tuple[Counts, Counts, Score]:
    """Count per sentence for both systems, and say how sums of counts become the score."""
    if not gold:
        raise InputError("no sentences were given; expected at least one")
    if metric in ATTACHMENT_METRICS:
        right, *guesses = (_trees_of(DepTree, trees, metric) for trees in (gold, a, b))
        counts = [attachment_counts(right, guess, punctuation=punctuation) for guess in guesses]
        ratio, names = ATTACHMENT_METRICS[metric], ATTACHMENT_COUNTS
    elif metric in PARSEVAL_METRICS:
        correct = _trees_of(ConstTree, gold, metric)
        parses = [[_parse_or_none(tree, metric) for tree in trees] for trees in (a, b)]
        counts = [parseval_counts(correct, parse, max_length=max_length) for parse in parses]
        ratio, names = PARSEVAL_METRICS[metric], PARSEVAL_COUNTS
    elif metric in ROLE_METRICS:
        props, *labelled = (_trees_of(PropSentence, trees, metric) for trees in (gold, a, b))
        counts = [role_counts(props, guess) for guess in labelled]
        ratio, names = ROLE_METRICS[metric], ROLE_COUNTS
    else:
        known = ", ".join([*ATTACHMENT_METRICS, *PARSEVAL_METRICS, *ROLE_METRICS])
        raise InputError(f"metric is {metric!r}; expected one of {known}")
    return counts[0], counts[1], lambda totals: ratio.score(names, totals)


def _parse_or_none(tree: DepTree | ConstTree | PropSentence | None, metric: str) -> ConstTree | None:
    return None if tree is None else _trees_of(ConstTree, [tree], metric)[0]


def _trees_of(kind: type[Tree], trees: Trees, metric: str) -> list[Tree]:
    checked = [tree for tree in trees if isinstance(tree, kind)]
    if len(checked) != len(trees):
        raise InputError(f"metric {metric!r} is for {kind.__name__}; found another kind of tree")
    return checked


def _exchanged_differences(
    counts_a: Counts, counts_b: Counts, score: Score, n_shuffles: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return the size of the difference after each random exchange of sentences."""
    total = counts_a.sum(axis=0) + counts_b.sum(axis=0)
    differences = []
    for n_rows in _blocks(n_shuffles, len(counts_a), "exchanging sentences"):
        exchanged = rng.integers(0, 2, size=(n_rows, len(counts_a)), dtype=np.int8).astype(np.float64)
        mixed = counts_a.sum(axis=0) + exchanged @ (counts_b - counts_a)
        differences.append(np.abs(score(mixed) - score(total - mixed)))
    return np.concatenate(differences)


def _resampled_differences(
    counts_a: Counts, counts_b: Counts, score: Score, n_samples: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return the difference in each bootstrap sample of sentences."""
    n = len(counts_a)
    differences = []
    for n_rows in _blocks(n_samples, n, "resampling sentences"):
        times = rng.multinomial(n, np.full(n, 1 / n), size=n_rows).astype(np.float64)
        differences.append(score(times @ counts_a) - score(times @ counts_b))
    return np.concatenate(differences)


def _blocks(n_rows: int, n_columns: int, what: str) -> Iterator[int]:
    """Cut `n_rows` into blocks of at most BLOCK_CELLS cells, and tell how many rows are done."""
    with task(what, total=n_rows, unit="times") as counted:
        for block in counted.slices(n_rows, max(1, BLOCK_CELLS // n_columns)):
            yield block.stop - block.start
