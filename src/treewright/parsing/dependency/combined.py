"""A scorer that adds the scores of two scorers for the same parts."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import Range
from treewright.data.deptree import DepTree
from treewright.learn.weights import LARGEST_WEIGHT
from treewright.model import Submodel, Value, saved
from treewright.parsing.contract import Batch, Parts, PartScorer, PartScores
from treewright.parsing.dependency.calibration import best_scale, gold_loss
from treewright.parsing.dependency.decoders import ChartDecoder, ProjectiveDecoder, lattice_marginals
from treewright.parsing.dependency.labeler import Labeler
from treewright.parsing.dependency.linear import LinearPartScorer

N_ROUNDS = 2
"""Number of rounds in which the scale and the weight of the scorer are tuned in turn."""
MAX_WEIGHED = 500
"""Maximum number of sentences for tuning the weight, evenly spaced among those given."""
FACTORS = tuple(sorted(2.0 ** np.arange(-3, 1.5, 0.5), key=lambda each: abs(np.log(each))))
"""Factors on the weight from `combine`, tried for accuracy; the first one is 1."""
RELATION_WEIGHTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class CombinedScorer(PartScorer):
    """Adds the scores of a linear model and the weighted scores of another scorer.

    Parameters
    ----------
    linear : LinearPartScorer
        The linear model.
    other : PartScorer
        The other scorer.
    weight : float
        Weight of the other scorer.
    """

    fields = saved(
        linear=Submodel(LinearPartScorer),
        other=Submodel(PartScorer),
        weight=Value(Annotated[float, Range(0, LARGEST_WEIGHT)]),
    )

    def __init__(self, linear: LinearPartScorer, other: PartScorer, weight: float = 1.0) -> None:
        self.linear = linear
        self.other = other
        self.weight = weight
        self.order = max(linear.order, other.order)

    @property
    def relations(self) -> Sequence[str]:  # type: ignore[override]
        """The relations that the other scorer scores."""
        return self.other.relations

    def prepare(self, batch: Batch) -> Self:
        """Return a copy that has the encoded sentences, and whose other scorer has processed them."""
        if vars(self).get("_batch") is batch:
            return self
        found = copy(self)
        found._batch = batch
        found._numbers = {id(tree): number for number, tree in enumerate(batch.trees)}
        found.other = self.other.prepare(batch)
        return found

    _batch: Batch
    _numbers: Mapping[int, int]

    def score(self, tree: DepTree, parts: Parts) -> PartScores:
        """Return the scores of parts: weighted sums of the scores of both scorers."""
        number = vars(self).get("_numbers", {}).get(id(tree))
        if number is None:
            mine = self.linear.score(tree, parts)
        else:
            mine = self.linear.score_encoded(self._batch.corpus, number, parts)
        others = self.other.score(tree, parts)
        return {
            kind: scores + self.weight * others[kind] if kind in others else scores
            for kind, scores in mine.items()
        }

    def score_arcs(self, tree: DepTree) -> npt.NDArray[np.float64] | None:
        """Return the scores that the other scorer gives to all arcs."""
        return self.other.score_arcs(tree)

    def score_relations(
        self, trees: Sequence[DepTree], heads: Sequence[npt.NDArray[np.int32]]
    ) -> list[npt.NDArray[np.float64]]:
        """Return the scores that the other scorer gives to relations."""
        return self.other.score_relations(trees, heads)


def most_accurate(scorer: CombinedScorer, decoder: ChartDecoder, batch: Batch) -> CombinedScorer:
    """Return the scorer with the multiple of its weight whose best trees have the most correct heads."""
    ready = scorer.prepare(batch)

    def n_right(factor: float) -> int:
        (heads,), _ = decoder.best_trees(_with_weight(ready, factor * scorer.weight), batch, 1)
        words = map(batch.corpus.words_of, range(len(batch.trees)))
        return sum(
            int((heads[own] == tree.heads).sum()) for own, tree in zip(words, batch.trees, strict=True)
        )

    return _with_weight(scorer, max(FACTORS, key=n_right) * scorer.weight)


def _with_weight(scorer: CombinedScorer, weight: float) -> CombinedScorer:
    found = copy(scorer)
    found.weight = float(min(weight, LARGEST_WEIGHT))
    return found


def combine(scorer: CombinedScorer, decoder: ChartDecoder, batch: Batch) -> CombinedScorer:
    """Return the scorer with a weight of the right magnitude, from a short search for likelihood.

    The search does not converge, and the most likely weight has fewer correct heads; see `most_accurate`.
    """
    heads = [tree.heads for tree in batch.trees]
    find = _weighted_marginals(scorer.prepare(batch), decoder, batch)
    weight = scorer.weight
    for _ in range(N_ROUNDS):
        scale = best_scale(lambda found, weight=weight: gold_loss(find(found, weight), heads))  # type: ignore[misc]
        # Search for the share of the other scorer in the log-probabilities.
        share = best_scale(lambda found, scale=scale: gold_loss(find(scale, found / scale), heads))  # type: ignore[misc]
        weight = share / scale
    return CombinedScorer(scorer.linear, scorer.other, weight)


def _weighted_marginals(
    scorer: CombinedScorer, decoder: ChartDecoder, batch: Batch
) -> Callable[[float, float], list[npt.NDArray[np.float64]]]:
    """Return a function of scale and weight that computes the probabilities of arcs."""
    if not isinstance(decoder, ProjectiveDecoder):
        return lambda scale, weight: decoder.marginals(_with_weight(scorer, weight), batch, scale)[1]
    # The set of parts does not depend on the weight, so each scorer scores them once.
    linear, sums = (decoder.whole_lattices(_with_weight(scorer, weight), batch) for weight in (0.0, 1.0))

    def find(scale: float, weight: float) -> list[npt.NDArray[np.float64]]:
        return [
            lattice_marginals(
                lattice,
                {
                    kind: scale * (mine + weight * (other.scores[kind] - mine))
                    for kind, mine in lattice.scores.items()
                },
            )[1]
            for lattice, other in zip(linear, sums, strict=True)
        ]

    return find


def best_relation_weight(labeler: Labeler, scorer: PartScorer, batch: Batch) -> tuple[float, float]:
    """Return the weight of the scorer's relation scores that maximises accuracy, and the accuracy."""
    gold = [relation for tree in batch.trees for relation in tree.deprels]
    given = given_scores(labeler, scorer, batch.trees, batch.trees)
    found = []
    for weight in RELATION_WEIGHTS:
        predicted = labeler.predict(batch.trees, batch.corpus, weight * given)
        flat = [relation for relations in predicted for relation in relations]
        found.append(sum(map(str.__eq__, flat, gold)) / max(1, len(gold)))
    best = int(np.argmax(found))
    return RELATION_WEIGHTS[best], found[best]


def given_scores(
    labeler: Labeler, scorer: PartScorer, sentences: Sequence[DepTree], trees: Sequence[DepTree]
) -> npt.NDArray[np.float64]:
    """Return the scores that a scorer gives to the relations of a labeler, one row per word.

    Parameters
    ----------
    labeler : Labeler
        Defines the relations.
    scorer : PartScorer
        A scorer with relation scores.
    sentences : sequence of DepTree
        The prepared sentences.
    trees : sequence of DepTree
        The same sentences with the heads for which relations are scored.
    """
    known = {relation: column for column, relation in enumerate(scorer.relations)}
    columns = [known.get(relation, -1) for relation in labeler.labels_.strings]
    scores = scorer.score_relations(sentences, [tree.heads for tree in trees])
    rows = np.concatenate([*scores, np.empty((0, len(known)))])
    # Relations unknown to the scorer get its lowest score.
    lowest = rows.min(axis=1, keepdims=True, initial=0.0)
    return np.hstack([rows, lowest])[:, columns]


def best_relations(
    scorer: PartScorer, sentences: Sequence[DepTree], trees: Sequence[DepTree]
) -> list[list[str]]:
    """Return the highest-scoring relations of the words of trees; arguments as in `given_scores`."""
    names = np.array(scorer.relations, dtype=object)
    scores = scorer.score_relations(sentences, [tree.heads for tree in trees])
    return [names[each.argmax(axis=1)].tolist() for each in scores]
