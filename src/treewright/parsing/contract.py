"""The contract of parsing: what a scorer of dependency trees offers to a decoder.

A `PartScorer` gives numbers to the parts of trees: arcs, and pairs or triples of arcs. It sees a sentence and
the parts that pruning has left. A decoder (`treewright.parsing.dependency.decoders.ChartDecoder`) knows which
trees there are: it lifts crossing arcs, prunes, keeps fixed heads, and finds the k best trees and the
marginal probabilities of arcs. Neither knows anything else of the other, so that any scorer works under
either decoder.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.model import Model

if TYPE_CHECKING:  # a scorer need not know compiled code
    from treewright.parsing.dependency.features import Corpus
    from treewright.parsing.dependency.lattice import Lattice

PartScores = Mapping[str, npt.NDArray[np.float64]]
"""A number for each part, by kind."""


class Parts(Protocol):
    """The parts of the trees of one sentence."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of parts that there are, ``"arc"`` first."""

    def words(self, kind: str) -> npt.NDArray[np.int32]:
        """Return the words of all parts of a kind, one part a row; 0 is the root and -1 no word.

        Columns are those of an arc (head, modifier), a pair (head, sibling, modifier), a grandchild
        (grandparent, head, modifier), a grand-sibling (grandparent, head, sibling, modifier), or a triple
        (head, outer sibling, sibling, modifier).
        """


class Batch(NamedTuple):
    """Sentences as scorers may want them.

    Attributes
    ----------
    trees : sequence of DepTree
        With words, tags, features and whatever else they bring. In training, heads are those of gold trees.
    corpus : Corpus
        The same sentences as arrays of numbers.
    """

    trees: Sequence[DepTree]
    corpus: "Corpus"


class PartScorer(Model):
    """Base of what scores the parts of dependency trees.

    A subclass must offer `score`. It may learn all it needs from the training sentences in `start`, or step
    by step from the gradients that a trainer hands to `update`.

    Attributes
    ----------
    order : {1, 2, 3}
        The highest order of parts that it scores.
    relations : sequence of str
        The relations that `score_relations` scores; empty where there is no such score.
    """

    order: int = 1

    @property
    def relations(self) -> Sequence[str]:
        """The relations that are scored, none by default."""
        return ()

    def check_options(self) -> None:
        """Refuse parameters with which nothing can be learnt, before anything else is."""

    def start(
        self,
        trees: Sequence[DepTree],
        *,
        dev: Sequence[DepTree] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """See the training sentences, with their gold heads, before the first update.

        Parameters
        ----------
        trees : sequence of DepTree
        dev : sequence of DepTree, optional
            Sentences to choose by, as when to stop.
        checkpoint : Checkpoint, optional
            Where unfinished training is kept.
        """

    def calibrate(self, batch: Batch) -> None:
        """Calibrate scores on held-out sentences with gold heads, after training; by default, do nothing."""

    def prepare(self, batch: Batch) -> Self:
        """Return a scorer that has read some sentences together, of which `score` is asked one by one."""
        return self

    def score_arcs(self, tree: DepTree) -> npt.NDArray[np.float64] | None:
        """Return the scores of all arcs, heads in rows, as logarithms of weights.

        The projective decoder prunes by them. By default there are none, and a linear model of its own
        prunes.
        """
        return None

    def narrow(self, tree: DepTree, lattice: "Lattice") -> "Lattice":
        """Return the parts that are worth scoring, of those that pruning has left; by default all of them."""
        return lattice

    def score_relations(
        self, trees: Sequence[DepTree], heads: Sequence[npt.NDArray[np.int32]]
    ) -> list[npt.NDArray[np.float64]]:
        """Return the scores of `relations` for the arc to each word of each sentence, (n, n_relations).

        Parameters
        ----------
        trees : sequence of DepTree
            Sentences as they were prepared; one may occur several times.
        heads : sequence of array, (n,)
            The heads of the words of each.
        """
        raise NotImplementedError

    def score(self, tree: DepTree, parts: Parts) -> PartScores:
        """Return the scores of the parts of a sentence, by kind, in the order of `parts.words`.

        Kinds that are missing score 0. Heads and relations of the sentence must not be looked at.
        """
        raise NotImplementedError

    def update(self, tree: DepTree, parts: Parts, gradient: PartScores) -> None:
        """Learn from a sentence.

        Parameters
        ----------
        tree : DepTree
        parts : Parts
            As they were scored.
        gradient : mapping of str to array
            The derivative of the loss by the score of each part: 1 for a part of the tree that was found and
            is wrong, -1 for a part of the gold tree that was missed, 0 otherwise.
        """

    def finish(self) -> None:
        """Be told that training is over, to average weights for example."""

    @property
    def learns_from_updates(self) -> bool:
        """Whether `update` does anything."""
        return type(self).update is not PartScorer.update

    def compiled(self) -> Any:  # noqa: ANN401
        """Return what compiled loops over whole corpora score with; None where `score` must be asked."""
        return None
