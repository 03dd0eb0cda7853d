"""Why a tree was chosen, for people to read."""

from typing import NamedTuple

from treewright.parsing.dependency.parser import Candidate
from treewright.parsing.dependency.reasons import WeighedFeature


class Comparison(NamedTuple):
    """Why the winner won.

    Attributes
    ----------
    candidates : list of Candidate
        The best first.
    parser_scores, scores : list of float
        What the parser and the reranker give each of them.
    reasons : list of WeighedFeature
        Features that only one of the first two has, and how much they speak for the winner (or, negative,
        against it), the weightiest first.
    """

    candidates: list[Candidate]
    parser_scores: list[float]
    scores: list[float]
    reasons: list[WeighedFeature]
