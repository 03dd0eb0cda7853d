"""Tests of statistical significance of the difference between two systems.

Approximate randomisation: Yeh (2000), More Accurate Tests for the Statistical Significance of Result
Differences. The outputs of the two systems are swapped at random, sentence by sentence; the p-value is the
fraction of swaps with a difference at least as large as the observed one. The confidence interval of the
difference is a bootstrap interval.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from treewright._naming import named
from treewright._typing import RandomState
from treewright._validate import check_integer, check_number, draw_seed
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
"""Maximum number of random numbers drawn at once."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class SignificanceResult:
    """Result of an approximate randomisation test.

    Attributes
    ----------
    p_value : float
        Two-sided p-value: the fraction of random swaps with a difference at least as large in absolute value.
    difference : float
        The score of `a` minus the score of `b`, in percentage points.
    interval : tuple of float
        Bootstrap confidence interval of the difference.
    confidence : float
        Confidence level of the interval, such as 0.95.
    score_a, score_b : float
        The scores of the two systems.
    metric : str
        The metric.
    n_sentences, n_shuffles : int
        Number of sentences (or of examples, if examples are swapped), and number of random swaps.

    See Also
    --------
    metrics.significance : Runs the test.

    Examples
    --------
    >>> trees = tw.make_treebank(20).dependencies
    >>> tw.metrics.significance(trees, trees, trees, n_shuffles=100).p_value
    1.0
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
    random_state: RandomState = 0,
    confidence: float = 0.95,
    punctuation: bool | str = True,
    max_length: int | None = None,
) -> SignificanceResult:
    """Test whether the scores of two systems on the same sentences differ significantly.

    Parameters
    ----------
    gold, a, b : sequence of DepTree, of ConstTree or of PropSentence
        Gold sentences and the predictions of the two systems; a missing constituency tree is None.
    metric : str
        For dependencies "uas", "las", "las_full" or "complete"; for constituents "f1", "precision",
        "recall", "exact" or another percentage of `ParsevalScore`; for semantic roles "role-f1",
        "role-precision", "role-recall", "role-perfect" or "role-classification".
    n_shuffles : int
        Number of random swaps, and of bootstrap samples.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    confidence : float
        Confidence level of the interval, between 0 and 1.
    punctuation : True, "unicode" or "penn"
        Whether punctuation is scored, as in `attachment`.
    max_length : int, optional
        Maximum number of words of a scored sentence, as in `parseval`.

    Returns
    -------
    SignificanceResult
        The p-value, the difference and its confidence interval.

    See Also
    --------
    metrics.attachment : Scores of dependency trees.
    metrics.parseval : Scores of constituency trees.
    metrics.roles : Scores of semantic roles.

    Examples
    --------
    >>> gold = tw.make_treebank(20).dependencies
    >>> chain = [tree.with_heads(range(len(tree))) for tree in gold]
    >>> result = tw.metrics.significance(gold, gold, chain, n_shuffles=1000)
    >>> result.p_value < 0.01
    True
    """
    check_integer("n_shuffles", n_shuffles, minimum=1)
    check_number("confidence", confidence, low=0, high=1)
    counts_a, counts_b, score = _count(gold, a, b, metric, punctuation, max_length)
    score_a, score_b = float(score(counts_a.sum(axis=0))), float(score(counts_b.sum(axis=0)))
    rng = np.random.default_rng(draw_seed(random_state))
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
    random_state: RandomState = 0,
    confidence: float = 0.95,
) -> SignificanceResult:
    """Test whether the accuracies of two systems on the same examples differ significantly.

    Parameters
    ----------
    is_right_a, is_right_b : sequence of bool
        Whether each system is correct on each example.
    groups : sequence of int, optional
        Index of the group of each example, from 0. Use groups, such as sentences, if examples depend on each
        other. The examples of a group are swapped together (by default, each is its own group).
    n_shuffles : int
        Number of random swaps, and of bootstrap samples.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    confidence : float
        Confidence level of the interval, between 0 and 1.
    """
    check_integer("n_shuffles", n_shuffles, minimum=1)
    check_number("confidence", confidence, low=0, high=1)
    right_a, right_b = (np.asarray(each, dtype=np.bool_) for each in (is_right_a, is_right_b))
    n = len(right_a)
    if not n or len(right_b) != n or (groups is not None and len(groups) != n):
        raise InputError(
            f"the systems have {n} and {len(right_b)} examples; expected equal numbers, at least one"
        )
    numbers = np.arange(n) if groups is None else np.asarray(groups)
    won = np.bincount(numbers, right_a.astype(np.float64) - right_b)
    sizes = np.bincount(numbers)
    won, sizes = won[sizes > 0], sizes[sizes > 0]
    rng = np.random.default_rng(draw_seed(random_state))
    times = track(range(n_shuffles), "swapping examples", unit="shuffles")
    exchanged = np.array([won @ rng.choice((-1.0, 1.0), size=len(won)) for _ in times])
    counts = (
        np.bincount(rng.integers(len(won), size=len(won)), minlength=len(won))
        for _ in track(range(n_shuffles), "resampling examples", unit="samples")
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
    """Return both systems' counts of each sentence, and a function that computes the score from counts."""
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
        raise InputError(f"{named('metric')} is {metric!r}; expected one of {known}")
    return counts[0], counts[1], lambda totals: ratio.score(names, totals)


def _parse_or_none(tree: DepTree | ConstTree | PropSentence | None, metric: str) -> ConstTree | None:
    return None if tree is None else _trees_of(ConstTree, [tree], metric)[0]


def _trees_of(kind: type[Tree], trees: Trees, metric: str) -> list[Tree]:
    checked = [tree for tree in trees if isinstance(tree, kind)]
    if len(checked) != len(trees):
        raise InputError(
            f"metric {metric!r} needs {kind.__name__}, but the trees are of another kind; "
            "expected a metric for these trees"
        )
    return checked


def _exchanged_differences(
    counts_a: Counts, counts_b: Counts, score: Score, n_shuffles: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return the absolute difference after each random swap of sentences."""
    total = counts_a.sum(axis=0) + counts_b.sum(axis=0)
    differences = []
    for n_rows in _blocks(n_shuffles, len(counts_a), "swapping sentences"):
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
    """Split `n_rows` into blocks of at most BLOCK_CELLS cells, and report the progress."""
    with task(what, total=n_rows, unit="times") as counted:
        for block in counted.slices(n_rows, max(1, BLOCK_CELLS // n_columns)):
            yield block.stop - block.start
