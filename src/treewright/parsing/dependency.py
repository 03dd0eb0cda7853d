"""DependencyParser: from words to labelled dependency trees, the k best of them, and how sure it is."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._validate import check_choice, check_integer, check_number
from treewright.data.deptree import DepTree
from treewright.data.projective import SCHEMES, deprojectivize, projectivize
from treewright.errors import InputError
from treewright.metrics import attachment
from treewright.parsing.calibration import best_scale, gold_loss
from treewright.parsing.features import Corpus, Encoder, TemplateSet
from treewright.parsing.labeler import Labeler
from treewright.parsing.pruning import Pruner
from treewright.parsing.structure import EpochReport, StructureModel
from treewright.persist import State, save_state

Progress = Callable[[str], None]
"""Called with a line for people after each step."""

HELD_OUT_SHARE, MIN_HELD_OUT = 0.05, 20
"""Of the training sentences, for calibration where there is no dev set."""
PARSED_AT_A_TIME = 2000
"""Sentences whose arrays are held at one time."""


class Candidate(NamedTuple):
    """One of the best trees of a sentence."""

    tree: DepTree
    score: float
    probability: float


class DependencyParser:
    """A graph-based dependency parser with exact k-best trees and calibrated probabilities.

    Parameters
    ----------
    order : {1, 2, 3}
        1 scores arcs; 2 also neighbouring siblings and grandchildren; 3 also grand-siblings and three
        siblings in a row.
    k : int
        Length of the candidate lists in training.
    epochs : int
        Passes over the training sentences.
    tags : {"gold"}
        Sentences bring their tags, features and lemmas.
    patience : int, optional
        Stop when the dev score has not risen for so many epochs, and keep the best.
    bound : float
        Largest step of an update towards one constraint.
    seed : int
    table_bits : int
        The weight table has 2 ** `table_bits` slots.
    pruning_threshold : float
        A head is scored if its first-order probability is at least this share of the best head's.
    max_heads : int
        Heads scored a word at the most.
    folds : int
        Folds by which training sentences are pruned with models that have not seen them.
    lifting : {"path", "head", "head+path", "baseline"}
        How crossing arcs are made projective for training and brought back after parsing.
    templates : TemplateSet, optional
        Features.

    Attributes
    ----------
    recall_ : float
        Percent of the gold arcs of training sentences that pruning keeps.
    scale_ : float
        What scores are multiplied by to become logarithms of probabilities.
    """

    def __init__(
        self,
        *,
        order: int = 3,
        k: int = 10,
        epochs: int = 10,
        tags: str = "gold",
        patience: int | None = None,
        bound: float = 1.0,
        seed: int = 0,
        table_bits: int = 23,
        pruning_threshold: float = 1e-3,
        max_heads: int = 8,
        folds: int = 5,
        lifting: str = "path",
        templates: TemplateSet | None = None,
    ) -> None:
        self.order = order
        self.k = k
        self.epochs = epochs
        self.tags = tags
        self.patience = patience
        self.bound = bound
        self.seed = seed
        self.table_bits = table_bits
        self.pruning_threshold = pruning_threshold
        self.max_heads = max_heads
        self.folds = folds
        self.lifting = lifting
        self.templates = templates

    def fit(
        self,
        trees: Sequence[DepTree],
        dev: Sequence[DepTree] | None = None,
        *,
        progress: Progress | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
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
            A file that is written after each epoch. If it exists, training goes on from it and ends as if
            it had not been interrupted.
        """
        self._check(trees)
        tell = progress or _ignore
        trees, held_out = (trees, dev) if dev else self._hold_out(trees)
        lifted = [projectivize(tree, scheme=self.lifting) for tree in trees if len(tree)]
        self.encoder_ = Encoder.from_trees(lifted)
        corpus = self.encoder_.encode(lifted)
        arcs = self._learn_pruning(corpus, tell)
        self.labeler_ = Labeler(seed=self.seed).fit(lifted, self.encoder_)
        self.scale_ = 1.0
        self._learn_structure(corpus, arcs, dev, tell, Path(checkpoint) if checkpoint else None)
        if held_out:
            self.scale_ = self._calibrate(held_out)
            tell(f"probabilities: scores are scaled by {self.scale_:.3f}")
        return self

    def predict(self, trees: Sequence[DepTree]) -> list[DepTree]:
        """Parse sentences; their heads and relations are not looked at."""
        return [candidates[0].tree for batch in _batches(trees) for candidates in self._parse(batch, 1)]

    def kbest(self, trees: Sequence[DepTree], k: int = 10) -> list[list[Candidate]]:
        """Return the `k` best trees of each sentence, the best first, each with its probability.

        Trees are told apart by their heads before crossing arcs are brought back.
        """
        check_integer("k", k, minimum=1)
        return [candidates for batch in _batches(trees) for candidates in self._parse(batch, k, sure=True)]

    def marginals(self, trees: Sequence[DepTree]) -> list[npt.NDArray[np.float64]]:
        """Return for each sentence an array (n, n + 1): the probability that a word's head is the column."""
        found: list[npt.NDArray[np.float64]] = []
        for batch in _batches(trees):
            corpus = self.encoder_.encode(batch)
            _, squares = self.structure_.marginals(self.pruner_.stages_, corpus, self.scale_)
            found.extend(square.T[1:] for square in squares)
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parser to one file."""
        save_state(self.get_state(), path)

    def get_state(self) -> State:
        """Return all that the parser is."""
        options = {name: getattr(self, name) for name in OPTIONS}
        templates = asdict(self.templates or TemplateSet())
        parts = {
            "encoder": self.encoder_.get_state(),
            "pruner": self.pruner_.get_state(),
            "structure": self.structure_.get_state(),
            "labeler": self.labeler_.get_state(with_encoder=False),
        }
        values = {"options": options, "templates": templates, "scale": self.scale_, "recall": self.recall_}
        return State("DependencyParser", values, {}, parts)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the parser again."""
        parser = cls(**state.values["options"], templates=TemplateSet(**state.values["templates"]))
        assert parser.templates
        parser.encoder_ = Encoder.from_state(state.parts["encoder"])
        parser.pruner_ = Pruner.from_state(state.parts["pruner"], parser.templates)
        parser.structure_ = StructureModel.from_state(state.parts["structure"], parser.templates)
        parser.labeler_ = Labeler.from_state(state.parts["labeler"], parser.encoder_)
        parser.scale_ = state.values["scale"]
        parser.recall_ = state.values["recall"]
        return parser

    def _check(self, trees: Sequence[DepTree]) -> None:
        check_choice("order", self.order, (1, 2, 3))
        check_choice("tags", self.tags, ("gold",))
        check_choice("lifting", self.lifting, SCHEMES)
        for name, minimum in {"k": 1, "epochs": 1, "seed": 0, "max_heads": 1, "folds": 1}.items():
            check_integer(name, getattr(self, name), minimum=minimum)
        check_number("pruning_threshold", self.pruning_threshold, low=0, high=1)
        check_number("table_bits", self.table_bits, low=10, high=28)
        if not any(len(tree) for tree in trees):
            raise InputError("no training sentences with words were given; expected at least one")
        for number, tree in enumerate(trees, start=1):
            if (tree.heads < 0).any():
                raise InputError(f"sentence {number} has words without a head; expected whole trees")

    def _hold_out(self, trees: Sequence[DepTree]) -> tuple[Sequence[DepTree], Sequence[DepTree] | None]:
        """Put some sentences aside for calibration, if there are enough."""
        n = int(len(trees) * HELD_OUT_SHARE)
        if n < MIN_HELD_OUT:
            return trees, None
        aside = set(np.random.default_rng(self.seed).permutation(len(trees))[:n].tolist())
        kept = [tree for number, tree in enumerate(trees) if number not in aside]
        return kept, [tree for number, tree in enumerate(trees) if number in aside]

    def _learn_pruning(
        self, corpus: Corpus, tell: Progress
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        self.pruner_ = Pruner(
            self.templates or TemplateSet(),
            threshold=self.pruning_threshold,
            max_heads=self.max_heads,
            fine=self.order > 1,
            seed=self.seed,
        )
        folds = min(self.folds, corpus.n_sentences)
        arcs, report = self.pruner_.jackknife(corpus, folds=folds)
        self.pruner_.fit(corpus)
        self.recall_ = report.recall
        tell(f"pruning keeps {report.n_heads:.2f} heads a word and {report.recall:.2f}% of the gold arcs")
        return arcs

    def _learn_structure(
        self,
        corpus: Corpus,
        arcs: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]],
        dev: Sequence[DepTree] | None,
        tell: Progress,
        checkpoint: Path | None,
    ) -> None:
        roots = np.add.reduceat(corpus.heads == 0, corpus.first_row[:-1])
        self.structure_ = StructureModel(
            self.templates or TemplateSet(),
            order=self.order,
            table_bits=self.table_bits,
            single_root=bool((roots == 1).all()),
        )
        best: list[tuple[float, npt.NDArray[np.float32]]] = []
        n_worse = 0

        def after_epoch(report: EpochReport) -> bool:
            nonlocal n_worse
            line = f"epoch {report.epoch} of {report.n_epochs}: UAS {report.train_uas:.2f} in training"
            if dev:
                score = attachment(dev, self.predict(dev))
                line += f", dev UAS {score.uas:.2f}, LAS {score.las:.2f}"
                n_worse = 0 if not best or score.uas > best[0][0] else n_worse + 1
                if self.patience is not None and n_worse == 0:
                    best[:] = [(score.uas, self.structure_.weights_)]
            tell(line)
            return self.patience is not None and n_worse >= self.patience

        self.structure_.train(
            corpus,
            arcs,
            epochs=self.epochs,
            k=self.k,
            bound=self.bound,
            seed=self.seed,
            checkpoint=checkpoint,
            after_epoch=after_epoch,
        )
        if best:
            self.structure_.weights_ = best[0][1]

    def _calibrate(self, held_out: Sequence[DepTree]) -> float:
        trees = [projectivize(tree, scheme="baseline") for tree in held_out if len(tree)]
        corpus = self.encoder_.encode(trees)
        heads = [tree.heads for tree in trees]
        stages = self.pruner_.stages_
        return best_scale(lambda scale: gold_loss(self.structure_.marginals(stages, corpus, scale)[1], heads))

    def _parse(self, trees: Sequence[DepTree], k: int, *, sure: bool = False) -> list[list[Candidate]]:
        """Return candidates for each sentence, with probabilities if `sure`."""
        corpus = self.encoder_.encode(trees)
        heads, scores = self.structure_.best_trees(self.pruner_.stages_, corpus, k)
        scores[corpus.sizes == 0, 0] = 0.0
        log_sums = np.zeros(len(trees))
        if sure:
            log_sums, _ = self.structure_.marginals(self.pruner_.stages_, corpus, self.scale_)
        candidates: list[list[Candidate]] = [[] for _ in trees]
        for rank in range(k):
            numbers = np.flatnonzero(scores[:, rank] > -np.inf).tolist()
            bare = [trees[number].with_heads(heads[rank, corpus.words_of(number)]) for number in numbers]
            for number, tree, labels in zip(numbers, bare, self.labeler_.predict(bare), strict=True):
                score = float(scores[number, rank])
                probability = float(np.exp(self.scale_ * score - log_sums[number])) if sure else np.nan
                whole = deprojectivize(tree.with_heads(tree.heads, labels))
                candidates[number].append(Candidate(whole, score, probability))
        return candidates


OPTIONS = (
    *("order", "k", "epochs", "tags", "patience", "bound", "seed", "table_bits"),
    *("pruning_threshold", "max_heads", "folds", "lifting"),
)
"""The parameters of a parser that are saved with it."""


def _ignore(line: str) -> None:
    """Tell nobody."""


def _batches(trees: Sequence[DepTree]) -> list[Sequence[DepTree]]:
    return [trees[start : start + PARSED_AT_A_TIME] for start in range(0, len(trees), PARSED_AT_A_TIME)]
