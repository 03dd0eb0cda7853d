"""Trees that are put together from the brackets of candidates (Henderson & Brill 1999).

Several parsers give probabilities to the candidates of a sentence. The mean of these probabilities says how
probable each bracket is. Brackets that are more probable than not never cross, because two of them are
together in at least one candidate. Therefore they form a tree, which need not be a candidate.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray
from treewright.data.consttree import ConstTree
from treewright.metrics.parseval import brackets
from treewright.model import expect
from treewright.parsing.constituent.inferences import TaggedSentence
from treewright.parsing.span.labels import (
    MAJORITY,
    Chain,
    LabelledSpans,
    SpanLabels,
    collect_chains,
    majority_margins,
    membership,
)

SHARE_ERROR = 1e-6
"""Maximum difference of the sum of saved shares from 1."""
Span = tuple[int, int]


class Votes(NamedTuple):
    """How parsers vote on brackets.

    Attributes
    ----------
    scales : tuple of float
        Factors that turn the scores of each parser into log-probabilities.
    shares : tuple of float
        Share of each parser; their sum is 1.
    """

    scales: tuple[float, ...]
    shares: tuple[float, ...]

    def check(self, n_parsers: int) -> None:
        """Check numbers from a file."""
        expect(len(self.scales) == len(self.shares) == n_parsers, "a scale and a share of each parser")
        expect(all(0 <= each < np.inf for each in self.scales), "scales of at least 0")
        expect(all(0 <= each <= 1 for each in self.shares), "shares between 0 and 1")
        expect(abs(sum(self.shares) - 1) < SHARE_ERROR, "shares whose sum is 1")

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Return the probability of each candidate; `scores` are those of the parsers, a column for each."""
        shares = np.array(self.shares)
        found: FloatArray = softmax(scores * self.scales) @ (shares / shares.sum())
        return found


def softmax(logs: FloatArray) -> FloatArray:
    """Return the probabilities of candidates, whose sum is 1 in each column."""
    found: FloatArray = np.exp(logs - logs.max(axis=0))
    found /= found.sum(axis=0)
    return found


def vote(lists: Iterable[Sequence[ConstTree]], scores: Iterable[FloatArray], votes: Votes) -> list[ConstTree]:
    """Return the tree of each list whose brackets win the vote; `scores` are (n_trees, n_parsers)."""
    return [join_brackets(trees, votes.probabilities(own)) for trees, own in zip(lists, scores, strict=True)]


def join_brackets(trees: Sequence[ConstTree], probabilities: FloatArray) -> ConstTree:
    """Return the tree of the brackets that are more probable than not.

    If several chains of labels at a span have such brackets, the one with the largest margin is taken. The
    whole sentence always gets the best chain, if it has more than one word.

    Parameters
    ----------
    trees : sequence of ConstTree
        The candidates, with the same words and tags.
    probabilities : ndarray of float, (n_trees,)
        Their probabilities.
    """
    spans: dict[Span, int] = {}
    chains: dict[Chain, int] = {(): 0}
    entries = [
        (spans.setdefault(span, len(spans)), chains.setdefault(chain, len(chains)), probability)
        for tree, probability in zip(trees, probabilities.tolist(), strict=True)
        for span, chain in collect_chains(tree, None).items()
    ]
    table = np.zeros((len(spans), len(chains)))
    for row, column, probability in entries:
        table[row, column] += probability
    margins = majority_margins(table, membership(chains))
    words = trees[0].words()
    if len(words) > 1:
        margins[spans[0, len(words)], 0] = -np.inf
    starts, ends = np.array([*spans], dtype=np.int32).reshape(-1, 2).T
    found = LabelledSpans(starts, ends, margins.argmax(axis=1).astype(np.int32))
    return SpanLabels([*chains]).decode(TaggedSentence(words, trees[0].tags()), found)


class ScoredBrackets(NamedTuple):
    """The brackets of all candidates that PARSEVAL counts, of all sentences one after another.

    Attributes
    ----------
    probable : ndarray of float, (n_brackets, n_parsers)
        Probability of each bracket according to each parser.
    is_gold : ndarray of bool, (n_brackets,)
        Whether the gold tree has the bracket.
    n_gold : int
        Number of brackets of the gold trees.
    """

    probable: FloatArray
    is_gold: npt.NDArray[np.bool_]
    n_gold: int

    @classmethod
    def of(
        cls,
        trees: Iterable[Sequence[ConstTree]],
        gold: Iterable[ConstTree],
        probabilities: Iterable[FloatArray],
    ) -> "ScoredBrackets":
        """Collect the brackets of lists of candidates with their probabilities, (n_trees, n_parsers)."""
        probable: list[FloatArray] = []
        is_gold: list[npt.NDArray[np.bool_]] = []
        n_gold = 0
        for each, tree, own in zip(trees, gold, probabilities, strict=True):
            table = membership(brackets(one) for one in (*each, tree))
            probable.append(table[:-1].T @ own)
            is_gold.append(table[-1] > 0)
            n_gold += int(table[-1].sum())
        return cls(np.concatenate(probable), np.concatenate(is_gold), n_gold)

    def f1(self, shares: Sequence[float]) -> float:
        """Return the F1 of the brackets that win a vote with these shares, in percent."""
        is_chosen = self.probable @ (np.array(shares) / sum(shares)) > MAJORITY
        n_brackets = int(np.count_nonzero(is_chosen)) + self.n_gold
        return 200 * int(np.count_nonzero(is_chosen & self.is_gold)) / max(1, n_brackets)
