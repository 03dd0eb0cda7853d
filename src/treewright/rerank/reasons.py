"""Why a tree was chosen, for people to read."""

from typing import NamedTuple

from treewright.parsing.dependency.parser import Candidate


class Comparison(NamedTuple):
    """Why the winner won.

    Attributes
    ----------
    candidates : list of Candidate
        The best first.
    parser_scores, scores : list of float
        What the parser and the reranker give each of them.
    reasons : list of (str, float)
        Features that only one of the first two has, and how much they speak for the winner (or, negative,
        against it), the weightiest first.
    """

    candidates: list[Candidate]
    parser_scores: list[float]
    scores: list[float]
    reasons: list[tuple[str, float]]


class WeighedFeature(NamedTuple):
    """A feature, as a person would read it, its words, and its weight."""

    text: str
    words: tuple[str, ...]
    weight: float
