"""DependencyParser: from words to labelled dependency trees, the k best of them, and how sure it is."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from treewright._typing import (
    Count,
    FileName,
    Fraction,
    LiftingScheme,
    NonNegativeFloat,
    NonNegativeInt,
    Range,
    TagSource,
)
from treewright._validate import check_integer
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.conllu import read_conllu
from treewright.data.deptree import DepTree
from treewright.data.projective import deprojectivize
from treewright.drawing.pictures import notebook_html
from treewright.errors import InputError
from treewright.parsing.dependency.constraints import FixedHeads, check_fixed
from treewright.parsing.dependency.features import Corpus, TemplateSet
from treewright.parsing.dependency.lattice import Lattice
from treewright.parsing.dependency.long_sentences import LONGEST, Pieces
from treewright.parsing.dependency.training import MODELS, ParserTraining, Progress, ignore
from treewright.persist import State, save_state
from treewright.scale import Client, map_jobs

PARSED_AT_A_TIME = 500
"""Sentences that one thread parses before it takes others."""
Result = TypeVar("Result")


class Candidate(NamedTuple):
    """One of the best trees of a sentence."""

    tree: DepTree
    score: float
    probability: float

    def _repr_html_(self) -> str:
        return notebook_html(self)


class Structures(NamedTuple):
    """The best trees of a sentence, as the parser finds them: without relations, crossing arcs lifted.

    Attributes
    ----------
    tree : DepTree
        The sentence, with the tags that it was parsed with.
    heads : ndarray of int32, (n_trees, n_words)
        The best tree first.
    scores : ndarray of float, (n_trees,)
    probabilities : ndarray of float, (n_trees,)
        Among all trees of the sentence.
    """

    tree: DepTree
    heads: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]
    probabilities: npt.NDArray[np.float64]


class DependencyParser(ParserTraining):
    """A graph-based dependency parser with exact k-best trees and calibrated probabilities.

    Parameters
    ----------
    order : {1, 2, 3}
        Order of the scored parts: arcs, pairs or triples of arcs. Order 2 adds neighbouring siblings and
        grandchildren, order 3 grand-siblings and three siblings in a row.
    k : int
        Length of candidate lists in training.
    epochs : int
        Passes over the training sentences.
    runs : int
        Number of training runs to average. They visit the sentences in different orders.
    tags : {"gold", "predicted"}
        Use the tags of the input, or tags predicted by the parser's own tagger. These stand for parts of
        speech, features and lemmas; training sentences are tagged by taggers that have not seen them.
    decoder : {"projective", "spanning"}
        Decoder; spanning finds any trees (with order 1 only). Projective training lifts crossing arcs, and
        parsing brings them back.
    jackknife : bool
        Learn relations and probabilities by jackknifing (slower). A parser is trained on all but each of the
        `folds`; its trees of the sentences that it has not seen show the labeler what mistakes to expect.
    patience : int, optional
        Early-stopping patience in epochs (needs a dev set). The best epoch is kept.
    bound : float
        Maximum step of an update towards one constraint.
    random_state : int
        Seed of the random numbers.
    table_bits : int
        Binary logarithm of the size of the weight table.
    pruning_threshold : float
        Minimum probability of a head, relative to the best head's. Others are pruned.
    max_heads : int
        Maximum number of heads per word after pruning.
    folds : int
        Number of jackknife folds for tagging and pruning.
    lifting : {"path", "head", "head+path", "baseline"}
        Scheme that encodes lifted crossing arcs.
    templates : TemplateSet, optional
        Feature templates.
    n_jobs : int
        Number of threads; results do not depend on it.

    Attributes
    ----------
    recall_ : float
        Percent of the gold arcs of training sentences that pruning keeps.
    tagger_ : Tagger or None
    scale_ : float
        What scores are multiplied by to become logarithms of probabilities.
    """

    EFFECTIVE_IF: ClassVar = {
        "lifting": {"decoder": ("projective",)},
        "pruning_threshold": {"decoder": ("projective",)},
        "max_heads": {"decoder": ("projective",)},
    }

    def __init__(
        self,
        *,
        order: Literal[1, 2, 3] = 3,
        k: Count = 10,
        epochs: Count = 6,
        runs: Count = 4,
        tags: TagSource = "gold",
        decoder: Literal["projective", "spanning"] = "projective",
        jackknife: bool = False,
        patience: Count | None = None,
        bound: NonNegativeFloat = 1.0,
        random_state: NonNegativeInt = 0,
        table_bits: Annotated[int, Range(10, 28)] = 23,
        pruning_threshold: Fraction = 1e-3,
        max_heads: Count = 8,
        folds: Count = 5,
        lifting: LiftingScheme = "path",
        templates: TemplateSet | None = None,
        n_jobs: Count = 1,
    ) -> None:
        self.order = order
        self.k = k
        self.epochs = epochs
        self.runs = runs
        self.tags = tags
        self.decoder = decoder
        self.jackknife = jackknife
        self.patience = patience
        self.bound = bound
        self.random_state = random_state
        self.table_bits = table_bits
        self.pruning_threshold = pruning_threshold
        self.max_heads = max_heads
        self.folds = folds
        self.lifting = lifting
        self.templates = templates
        self.n_jobs = n_jobs

    @staticmethod
    def read_training(
        train: FileName, dev: FileName | None = None
    ) -> tuple[list[DepTree], list[DepTree] | None]:
        """Read what `fit` learns from.

        Parameters
        ----------
        train : str
            Treebank in CoNLL-U.
        dev : str, optional
            Treebank to score after each epoch.
        """
        development = read_conllu(dev) if dev else None
        return read_conllu(train), development

    def fit(
        self,
        trees: Sequence[DepTree],
        dev: Sequence[DepTree] | None = None,
        *,
        progress: Progress | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        client: Client | None = None,
    ) -> Self:
        """Learn from a treebank.

        Parameters
        ----------
        trees : sequence of DepTree
        dev : sequence of DepTree, optional
            Scored after each epoch, and used to calibrate probabilities.
        progress : callable, optional
            Called with a line of text after each step.
        checkpoint : path, optional
            A folder in which each step and epoch is kept. If it exists, training goes on from it and ends as
            if it had not been interrupted.
        client : distributed.Client, optional
            A cluster that learns from the folds; the model is the same.
        """
        self._check(trees, dev)
        tell = progress or ignore
        options = [*(getattr(self, name) for name in OPTIONS), self.templates or TemplateSet()]
        kept = Checkpoint(checkpoint, fingerprint(options, trees, dev or [])) if checkpoint else None
        trees, held_out = (trees, dev) if dev or self.jackknife else self._hold_out(trees)
        found = self._restore(kept) or self._prepare(trees, kept, tell, client)
        self._learn_structure(found, dev, tell, kept)
        if held_out and not self.jackknife:
            self.scale_ = self._calibrate(held_out)
        if held_out:
            tell(f"probabilities: {self._describe_calibration(held_out)}")
        elif not self.jackknife:
            tell("probabilities: not calibrated, for want of sentences")
        return self

    def predict(
        self, trees: Sequence[DepTree], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[DepTree]:
        """Parse sentences; their heads and relations are not looked at.

        Parameters
        ----------
        trees : sequence of DepTree
        fixed : sequence of mapping of int to int, optional
            For each sentence the heads that words must have, ``{word: head}``: words are counted from 1, and
            0 is the root. The best tree that has these arcs is returned, whatever else becomes of it: a fixed
            head is final, even where a relation says that the arc to it was lifted.
        """
        found = self._spread(lambda batch, fixed: self._parse(batch, 1, fixed), trees, fixed=fixed)
        return [candidates[0].tree for candidates in found]

    def kbest(
        self, trees: Sequence[DepTree], k: int = 10, *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[Candidate]]:
        """Return the `k` best trees of each sentence, the best first, each with its probability.

        Trees are told apart by their heads before crossing arcs are brought back.

        Parameters
        ----------
        trees : sequence of DepTree
        k : int
        fixed : sequence of mapping of int to int, optional
            As in `predict`. The trees are the best of those with these arcs, and probabilities are among
            those, too: they tell how sure the parser is of the rest of the tree. An arc that pruning would
            have thrown out comes back.
        """
        check_integer("k", k, minimum=1)
        return self._spread(lambda batch, fixed: self._parse(batch, k, fixed, sure=True), trees, k, fixed)

    def structures(
        self, trees: Sequence[DepTree], k: int = 10, *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[Structures]:
        """Return the `k` best trees of each sentence as arrays, before relations are found.

        With `fixed` heads, these are the best trees that have them, as in `kbest`.
        """
        check_integer("k", k, minimum=1)
        return self._spread(lambda batch, fixed: self._search(batch, k, fixed, sure=True)[0], trees, k, fixed)

    def complete(
        self, trees: Sequence[DepTree], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[DepTree]:
        """Give relations to trees that have the heads of `structures`, and bring crossing arcs back.

        Words whose heads are `fixed` keep them.
        """
        return self._complete(trees, None, fixed)

    def _complete(
        self, trees: Sequence[DepTree], corpus: Corpus | None, fixed: Sequence[FixedHeads] | None
    ) -> list[DepTree]:
        """Complete trees, which are those of a corpus, if it is given."""
        relations = self.labeler_.predict(trees, corpus)
        return [
            deprojectivize(tree.with_heads(tree.heads, labels), staying=heads)
            for tree, labels, heads in zip(trees, relations, fixed or [{}] * len(trees), strict=True)
        ]

    def marginals(
        self, trees: Sequence[DepTree], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """Return for each sentence an array (n, n + 1): the probability that a word's head is the column.

        With `fixed` heads, as in `kbest`, it is the probability among the trees that have them.
        """

        def find(
            batch: Sequence[DepTree], fixed: Sequence[FixedHeads] | None
        ) -> list[npt.NDArray[np.float64]]:
            pieces = self._cut(self._tagged(batch), fixed)
            corpus = self.encoder_.encode(pieces.trees)
            squares = self.structure_.marginals(self._stages(), corpus, self.scale_, pieces.fixed)[1]
            whole = pieces.join_squares(squares, single_root=self.structure_.single_root)
            return [square.T[1:] for square in whole]

        return self._spread(find, trees, fixed=fixed)

    def alternatives(
        self, trees: Sequence[DepTree], *, n: int = 3, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[list[tuple[int, float]]]]:
        """Return for each sentence and each of its words the most probable heads, the best first.

        Parameters
        ----------
        trees : sequence of DepTree
        n : int
            Heads of a word at the most; those that no tree has are left out.
        fixed : sequence of mapping of int to int, optional
            As in `kbest`.

        Returns
        -------
        list of list of list of (int, float)
            Heads, 0 for the root, with their probabilities.
        """
        return likely_heads(self.marginals(trees, fixed=fixed), n)

    def confidence(
        self,
        parsed: DepTree,
        marginals: npt.NDArray[np.float64],
        *,
        fixed: FixedHeads | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return the probability of the head of each word of a tree, from the marginals of its sentence.

        A crossing arc that was brought back has the probability of the arc that it was lifted to; an arc that
        was `fixed` was not lifted.
        """
        heads = self.lifted(parsed).heads.copy()
        for word, head in (fixed or {}).items():
            heads[word - 1] = head
        return marginals[np.arange(len(parsed)), heads]

    def lattices(self, trees: Sequence[DepTree]) -> list[Lattice]:
        """Return for each sentence the parts over the arcs that pruning leaves, with their scores.

        Another scorer can take these, or words, and give scores of its own; a sentence whose arcs allow no
        tree, which `predict` helps with a chain of arcs, has none here.
        """
        self._check_fitted()
        if self.decoder != "projective":
            raise InputError(f"decoder is {self.decoder!r}; expected 'projective' for lattices")
        corpus = self.encoder_.encode(self._tagged(trees))
        return self.structure_.lattices(self._stages(), corpus)

    def untrained(self, **changes: object) -> Self:
        """Return a parser with the same options, but for some, that has learnt nothing."""
        options = {name: getattr(self, name) for name in (*OPTIONS, "templates", "n_jobs")}
        return type(self)(**{**options, **changes})

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must bring the tags that the parser was trained with."""
        return self.tags == "gold" and self.encoder_.has_tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parser to one file."""
        save_state(self.get_state(), path)

    def get_state(self) -> State:
        """Return all that the parser is."""
        self._check_fitted()
        options = {name: getattr(self, name) for name in OPTIONS}
        templates = asdict(self.templates or TemplateSet())
        parts = {**self._parts(), "structure": self.structure_.get_state()}
        values = {"options": options, "templates": templates, "scale": self.scale_, "recall": self.recall_}
        return State("DependencyParser", values, {}, parts)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the parser again."""
        parser = cls(**state.values["options"], templates=TemplateSet(**state.values["templates"]))
        assert parser.templates
        parser._set_parts(state)
        model = MODELS[parser.decoder]
        parser.structure_ = model.from_state(state.parts["structure"], parser.templates)
        parser.scale_ = state.values["scale"]
        parser.recall_ = state.values["recall"]
        return parser

    @property
    def is_fitted(self) -> bool:
        """Whether the parser has learnt anything."""
        return hasattr(self, "structure_")

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise InputError("the parser has learnt nothing yet; call fit first, or load one")

    def _spread(
        self,
        function: Callable[[Sequence[DepTree], Sequence[FixedHeads] | None], list[Result]],
        trees: Sequence[DepTree],
        k: int = 1,
        fixed: Sequence[FixedHeads] | None = None,
    ) -> list[Result]:
        """Return what `function` finds for each sentence, some sentences at a time, fewer for more trees."""
        self._check_fitted()
        self.check_fixed(trees, fixed)
        size = max(1, PARSED_AT_A_TIME // k)
        spans = [slice(start, start + size) for start in range(0, len(trees), size)]

        def work(span: slice) -> list[Result]:
            return function(trees[span], fixed[span] if fixed is not None else None)

        found = map_jobs(work, spans, n_jobs=self.n_jobs, what="parsing", count=lambda span: len(trees[span]))
        return [each for batch in found for each in batch]

    def check_fixed(
        self, trees: Sequence[DepTree], fixed: Sequence[FixedHeads] | None, *, first: int = 1
    ) -> None:
        """Check that sentences, the first of which has the number `first`, have trees with these heads."""
        self._check_fitted()
        if fixed is not None:
            sizes = [len(tree) for tree in trees]
            projective, single_root = self.decoder == "projective", self.structure_.single_root
            check_fixed(fixed, sizes, projective=projective, single_root=single_root, first=first)

    def _search(
        self, trees: Sequence[DepTree], k: int, fixed: Sequence[FixedHeads] | None, *, sure: bool
    ) -> tuple[list[Structures], Corpus]:
        """Return the best structures of each sentence, with probabilities if `sure`."""
        tagged = self._tagged(trees)
        pieces = self._cut(tagged, fixed)
        corpus = self.encoder_.encode(pieces.trees)
        heads, scores = self.structure_.best_trees(self._stages(), corpus, k, pieces.fixed)
        scores[corpus.sizes == 0, 0] = 0.0
        probabilities = np.full_like(scores, np.nan)
        if sure:
            log_sums, _ = self.structure_.marginals(self._stages(), corpus, self.scale_, pieces.fixed)
            probabilities = np.exp(self.scale_ * scores - log_sums[:, np.newaxis])
        n_found = (scores > -np.inf).sum(axis=1).tolist()
        found = [
            (heads[:n, corpus.words_of(number)], scores[number, :n], probabilities[number, :n])
            for number, n in enumerate(n_found)
        ]
        joined = pieces.join_trees(found, k, single_root=self.structure_.single_root)
        best = [Structures(tree, *each) for tree, each in zip(tagged, joined, strict=True)]
        return best, corpus if pieces.is_whole else self.encoder_.encode(tagged)

    def _cut(self, trees: Sequence[DepTree], fixed: Sequence[FixedHeads] | None) -> Pieces:
        """Cut sentences that are too long for charts; a search without charts takes them as they are."""
        return Pieces(trees, fixed, longest=LONGEST if self.decoder == "projective" else None)

    def _parse(
        self, trees: Sequence[DepTree], k: int, fixed: Sequence[FixedHeads] | None, *, sure: bool = False
    ) -> list[list[Candidate]]:
        """Return candidates for each sentence, with probabilities if `sure`."""
        found, corpus = self._search(trees, k, fixed, sure=sure)
        bare = [each.tree.with_heads(heads) for each in found for heads in each.heads]
        staying = (
            [arcs for each, arcs in zip(found, fixed, strict=True) for _ in each.heads] if fixed else None
        )
        whole = iter(self._complete(bare, corpus if k == 1 else None, staying))
        return [
            [
                Candidate(next(whole), score, probability)
                for score, probability in zip(each.scores.tolist(), each.probabilities.tolist(), strict=True)
            ]
            for each in found
        ]


OPTIONS = (
    *("order", "k", "epochs", "runs", "tags", "decoder", "jackknife", "patience", "bound", "random_state"),
    *("table_bits", "pruning_threshold", "max_heads", "folds", "lifting"),
)
"""The parameters of a parser that are saved with it."""


def likely_heads(marginals: Sequence[npt.NDArray[np.float64]], n: int) -> list[list[list[tuple[int, float]]]]:
    """Return up to `n` heads of each word of sentences, with their probabilities, the most probable first."""
    check_integer("n", n, minimum=1)
    return [
        [
            [
                (head, float(row[head]))
                for head in np.argsort(-row, kind="stable")[:n].tolist()
                if row[head] > 0
            ]
            for row in square
        ]
        for square in marginals
    ]
