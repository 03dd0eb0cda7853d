"""The interface between part scorers and decoders of the dependency parser.

A `PartScorer` scores the parts of trees: arcs, and pairs or triples of arcs. It receives a sentence and the
parts that are left after pruning. A decoder (`treewright.parsing.dependency.decoders.ChartDecoder`) defines
the set of trees: it lifts crossing arcs, prunes, respects fixed heads, and computes the k-best trees and the
marginal probabilities of arcs. Any scorer works with any decoder.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.model import Model

if TYPE_CHECKING:  # a scorer does not need compiled code
    from treewright.parsing.dependency.features import Corpus
    from treewright.parsing.dependency.lattice import Lattice

PartScores = Mapping[str, npt.NDArray[np.float64]]
"""Scores of parts, by kind."""


class Parts(Protocol):
    """The parts of the trees of one sentence."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The available kinds of parts, ``"arc"`` first."""

    def words(self, kind: str) -> npt.NDArray[np.int32]:
        """Return the words of all parts of a kind, one row per part; 0 is the root, and -1 means no word.

        Columns: an arc has (head, modifier), a pair (head, sibling, modifier), a grandchild
        (grandparent, head, modifier), a grand-sibling (grandparent, head, sibling, modifier), or a triple
        (head, outer sibling, sibling, modifier).
        """


class Batch(NamedTuple):
    """A batch of sentences.

    Attributes
    ----------
    trees : sequence of DepTree
        The sentences, with words, tags, features and all other columns. In training, heads are gold heads.
    corpus : Corpus
        The same sentences as integer arrays.
    """

    trees: Sequence[DepTree]
    corpus: "Corpus"


class PartScorer(Model):
    """Base class of scorers for the parts of dependency trees; subclass it to plug in your own model.

    A subclass must implement `score`. It can train on its own in `start`, or step by step from the gradients
    that are passed to `update`.

    Attributes
    ----------
    order : {1, 2, 3}
        The highest order of parts that the scorer scores.
    relations : sequence of str
        The relations that `score_relations` scores; empty if the scorer does not score relations.
    title : str
        The name of the scorer in explanations.

    See Also
    --------
    NeuralScorer : A scorer with a neural network.
    DependencyParser : Uses a scorer through its parameter `scorer`.
    Lattice : The parts of the trees of a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> import treewright as tw
    >>> class ShortArcs(tw.PartScorer):
    ...     order = 1
    ...     def score(self, tree, parts):
    ...         heads, modifiers = parts.words("arc").T
    ...         return {"arc": -np.abs(heads - modifiers).astype(float)}
    >>> trees = tw.make_treebank(12, random_state=0).dependencies
    >>> parser = tw.DependencyParser(order=1, scorer=ShortArcs(), decoder="spanning").fit(trees)
    >>> len(parser.predict(trees[:1])[0].heads) == len(trees[0])
    True
    """

    order: int = 1
    relations: ClassVar[Sequence[str]] = ()
    title: ClassVar[str] = "custom scorer"

    def check_options(self) -> None:
        """Raise an error for invalid parameters, before training starts."""

    def file_names(self) -> Sequence[str]:
        """Return the files and folders that training reads; a checkpoint is refused if they have changed."""
        return ()

    def start(
        self,
        trees: Sequence[DepTree],
        *,
        dev: Sequence[DepTree] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Initialise the scorer from the training sentences with gold heads, before the first update.

        Parameters
        ----------
        trees : sequence of DepTree
            Training sentences.
        dev : sequence of DepTree, optional
            Development sentences, for example for early stopping.
        checkpoint : Checkpoint, optional
            Stores unfinished training.
        """

    def calibrate(self, batch: Batch) -> None:
        """Calibrate the scores on held-out sentences with gold heads; by default, do nothing.

        Parameters
        ----------
        batch : Batch
            Held-out sentences with gold heads.
        """

    def prepare(self, batch: Batch) -> Self:
        """Return a scorer that has processed a batch, so that `score` is fast for each of its sentences.

        Parameters
        ----------
        batch : Batch
            The sentences to score.

        Returns
        -------
        PartScorer
            A scorer for these sentences; by default, the scorer itself.
        """
        return self

    def score_arcs(self, tree: DepTree) -> npt.NDArray[np.float64] | None:
        """Return log-space scores of all arcs, or None.

        The projective decoder uses them for pruning. Without them (the default), the parser trains a linear
        pruning model.

        Parameters
        ----------
        tree : DepTree
            The sentence, with n words.

        Returns
        -------
        ndarray of float64, (n + 1, n + 1), or None
            Score of each head (row) of each word (column); row 0 is the root, and column 0 is not used.
        """
        return None

    def narrow(self, tree: DepTree, lattice: "Lattice") -> "Lattice":
        """Return the subset of parts that is worth scoring; by default, all parts.

        Parameters
        ----------
        tree : DepTree
            The sentence.
        lattice : Lattice
            The parts that are left after pruning.

        Returns
        -------
        Lattice
            The parts to score. It must contain at least one tree if `lattice` does.
        """
        return lattice

    def score_relations(
        self, trees: Sequence[DepTree], heads: Sequence[npt.NDArray[np.int32]]
    ) -> list[npt.NDArray[np.float64]]:
        """Return the scores of `relations` for the arc to each word: an array (n, n_relations) per sentence.

        Parameters
        ----------
        trees : sequence of DepTree
            Prepared sentences; a sentence may occur several times.
        heads : sequence of array, (n,)
            Heads of the words of each sentence.
        """
        raise NotImplementedError

    def score(self, tree: DepTree, parts: Parts) -> PartScores:
        """Return the scores of the parts of a sentence, by kind.

        Implementations must not use the heads and relations of the sentence.

        Parameters
        ----------
        tree : DepTree
            The sentence.
        parts : Parts
            The parts to score, such as a `Lattice`.

        Returns
        -------
        mapping of str to ndarray of float64, (n_parts,)
            Scores by kind, in the order of `parts.words`; missing kinds score 0.
        """
        raise NotImplementedError

    def update(self, tree: DepTree, parts: Parts, gradient: PartScores) -> None:
        """Update the model from a sentence.

        Parameters
        ----------
        tree : DepTree
            The sentence.
        parts : Parts
            The scored parts.
        gradient : mapping of str to array
            Derivative of the loss with respect to the score of each part: 1 for a wrong predicted part, -1
            for a missed gold part, 0 otherwise.
        """

    def finish(self) -> None:
        """Finish training, for example by averaging weights."""

    @property
    def learns_from_updates(self) -> bool:
        """Whether the scorer implements `update`."""
        return type(self).update is not PartScorer.update

    def compiled(self) -> Any:  # noqa: ANN401
        """Return the model for compiled loops over whole corpora, or None if only `score` is available."""
        return None
