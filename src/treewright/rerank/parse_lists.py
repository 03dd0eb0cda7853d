"""k-best lists of constituency parsers, with the scores of all parsers and the F1 of candidates."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from treewright._typing import FloatArray, Integers
from treewright.annotation.sentences import SentenceLike
from treewright.data.consttree import ConstTree
from treewright.errors import InputError
from treewright.kernels.decisions import DecisionList, GradientList
from treewright.kernels.examples import examples_from_state, examples_state
from treewright.metrics.parseval import COUNTS, sentence_counts
from treewright.model import State
from treewright.parsing.constituent.parser import ConstituentParser, Parse
from treewright.parsing.leftcorner.parser import LeftCornerParser
from treewright.parsing.span.parser import SpanParser

UNREACHABLE = 5.0
"""A tree that a parser cannot derive gets the lowest score of its list minus this penalty."""
USED = [COUNTS.index(name) for name in ("matched", "gold", "predicted")]

AnyParser = LeftCornerParser | ConstituentParser | SpanParser


class ParseList(NamedTuple):
    """The candidates of a sentence.

    Attributes
    ----------
    trees : list of ConstTree
        The candidate trees.
    scores : ndarray of float, (n_trees, n_parsers)
        The scores of each parser.
    """

    trees: list[ConstTree]
    scores: FloatArray


def list_ends(lists: Sequence[ParseList]) -> Integers:
    """Return the ends of all lists but the last, as positions among all candidates."""
    return np.cumsum([len(each.trees) for each in lists])[:-1]


def list_parses(
    parsers: Sequence[AnyParser], sentences: Sequence[SentenceLike], k: int, *, n_jobs: int | None = None
) -> list[ParseList]:
    """Return the union of the k-best trees of each parser, for each sentence.

    Duplicates are merged. All parsers score all trees; trees that the first parser cannot derive are left
    out. `n_jobs` overrides the parameter of each parser.
    """
    found = [parser.kbest(sentences, k, n_jobs=n_jobs) for parser in parsers]
    return join_parses(parsers, found, n_jobs=n_jobs)


def join_parses(
    parsers: Sequence[AnyParser],
    found: Sequence[Sequence[Sequence[Parse]]],
    *,
    n_jobs: int | None = None,
) -> list[ParseList]:
    """Merge the k-best trees of several parsers, as `list_parses` does."""
    own = [_join(lists) for lists in zip(*found, strict=True)]
    if len(parsers) == 1:
        return [ParseList(list(each), np.array([[score] for score in each.values()])) for each in own]
    flat = [tree for each in own for tree in each]
    columns = [_score(parser, flat, n_jobs) for parser in parsers]
    scores = np.split(np.stack(columns, axis=1), np.cumsum([len(each) for each in own])[:-1])
    return [_settle(list(each), rows) for each, rows in zip(own, scores, strict=True)]


def _score(parser: AnyParser, trees: Sequence[ConstTree], n_jobs: int | None) -> FloatArray:
    """Return the scores of a parser for any trees; minus infinity for trees that it cannot derive."""
    if isinstance(parser, ConstituentParser):
        return parser.scores(trees, n_jobs=n_jobs)
    if isinstance(parser, SpanParser):
        return parser.log_probabilities(trees, n_jobs=n_jobs)
    return parser.log_probabilities(trees)


def _join(lists: Sequence[Sequence[Parse]]) -> dict[ConstTree, float]:
    """Merge the trees of all parsers, each with the score of the first parser that found it.

    The trees must have the same tags: without given tags, parsers may tag differently.
    """
    joined: dict[ConstTree, float] = {}
    tags = lists[0][0].tree.tags()
    for parses in lists:
        for parse in parses:
            if parse.tree.tags() == tags:
                joined.setdefault(parse.tree, parse.score)
    return joined


def _settle(trees: list[ConstTree], scores: FloatArray) -> ParseList:
    """Drop trees that the first parser cannot derive; penalise those that others cannot derive."""
    kept = np.flatnonzero(scores[:, 0] > -np.inf)
    if not len(kept):
        kept = np.arange(1)
    rows = scores[kept]
    for column in rows.T:
        reached = column[column > -np.inf]
        column[column == -np.inf] = reached.min() - UNREACHABLE if len(reached) else 0.0
    return ParseList([trees[at] for at in kept.tolist()], rows)


def keep_derivable(
    parser: LeftCornerParser, lists: Sequence[ParseList], gold: Sequence[ConstTree]
) -> list[ParseList]:
    """Return lists without the trees that a parser trained on `gold` cannot derive.

    A label may be unknown to the parser if it only occurred in unary chains, which are separate labels. If no
    tree is left, the list contains only the gold tree and has no effect on training.
    """
    kept = []
    for each, rescored, tree in zip(lists, rescore(parser, lists), gold, strict=True):
        places = np.flatnonzero(rescored.scores[:, 0] > -np.inf).tolist()
        trees = [each.trees[at] for at in places]
        kept.append(ParseList(trees, each.scores[places]) if trees else ParseList([tree], np.zeros((1, 1))))
    return kept


def rescore(parser: LeftCornerParser, lists: Sequence[ParseList]) -> list[ParseList]:
    """Return lists with the scores of this parser."""
    if not lists:
        return []
    logs = parser.log_probabilities([tree for each in lists for tree in each.trees])
    parts = np.split(logs[:, np.newaxis], list_ends(lists))
    return [ParseList(each.trees, own) for each, own in zip(lists, parts, strict=True)]


class TracedLists:
    """Lists as decision sequences of a parser's network, computed on demand.

    Parameters
    ----------
    parser : LeftCornerParser
        The parser with the network.
    lists : sequence of ParseList
        The candidate lists.
    how : dict
        Options of `LeftCornerParser.trace`.
    """

    def __init__(self, parser: LeftCornerParser, lists: Sequence[ParseList], how: dict[str, Any]) -> None:
        self._parser, self._lists, self._how = parser, lists, how
        self.sizes = [len(each.trees) for each in lists]

    def __len__(self) -> int:
        return len(self._lists)

    def __getitem__(self, number: int) -> DecisionList | GradientList:
        return self._parser.trace(self._lists[number].trees, **self._how)

    def __iter__(self) -> Iterator[DecisionList | GradientList]:
        return (self[number] for number in range(len(self)))


def count_brackets(gold: Sequence[ConstTree], lists: Sequence[ParseList]) -> list[FloatArray]:
    """Return the numbers of matching, gold and predicted brackets of each candidate."""
    if len(gold) != len(lists):
        raise InputError(f"{len(gold)} gold trees for {len(lists)} lists; expected equal numbers")
    return [
        sentence_counts([tree] * len(each.trees), each.trees)[:, USED]
        for tree, each in zip(gold, lists, strict=True)
    ]


def f1_losses(counts: FloatArray) -> FloatArray:
    """Return 1 - F1 of each candidate; 0 for sentences without brackets."""
    n_brackets = counts[:, 1] + counts[:, 2]
    return np.where(n_brackets > 0, 1 - 2 * counts[:, 0] / np.maximum(n_brackets, 1), 0.0)


def corpus_f1(counts: FloatArray) -> float:
    """Return the corpus F1 in percent, from the counts of one candidate per sentence."""
    matched, n_gold, n_own = counts.sum(axis=0)
    return float(200 * matched / max(1.0, n_gold + n_own))


def best_f1(counts: Sequence[FloatArray]) -> float:
    """Return the oracle F1, with the best candidate of each sentence."""
    return corpus_f1(np.stack([each[f1_losses(each).argmin()] for each in counts]))


def lists_state(lists: Sequence[ParseList]) -> State:
    """Return lists as a state for saving."""
    arrays = {
        "sizes": np.array([len(each.trees) for each in lists]),
        "scores": np.concatenate([each.scores for each in lists]),
    }
    trees = examples_state([tree for each in lists for tree in each.trees])
    return State("ParseLists", {}, arrays, {"trees": trees})


def lists_from_state(state: State) -> list[ParseList]:
    """Restore lists from a state."""
    trees = examples_from_state(state.parts["trees"])
    bounds = np.cumsum([0, *state.arrays["sizes"].tolist()]).tolist()
    return [ParseList(trees[begin:end], state.arrays["scores"][begin:end]) for begin, end in pairwise(bounds)]
