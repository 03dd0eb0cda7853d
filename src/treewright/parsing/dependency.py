"""DependencyParser: from words to labelled dependency trees, the k best of them, and how sure it is."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from treewright._validate import check_choice, check_integer, check_number
from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.data.projective import SCHEMES, deprojectivize, projectivize
from treewright.errors import InputError
from treewright.metrics import attachment
from treewright.metrics.calibration import reliability
from treewright.native.pruning import Stage
from treewright.parsing.calibration import best_scale, gold_loss
from treewright.parsing.features import Corpus, Encoder, TemplateSet
from treewright.parsing.fingerprint import fingerprint
from treewright.parsing.labeler import Labeler
from treewright.parsing.lattice import Lattice
from treewright.parsing.pruning import Arcs, Pruner
from treewright.parsing.spanning import SpanningModel
from treewright.parsing.structure import EpochReport, StructureModel
from treewright.parsing.tagger import Tagger, compare_tags, jackknife
from treewright.persist import State, save_state
from treewright.scale import map_jobs

Progress = Callable[[str], None]
"""Called with a line for people after each step."""

HELD_OUT_SHARE, MIN_HELD_OUT = 0.05, 20
"""Of the training sentences, for calibration where there is no dev set; of few sentences, a tenth."""
PARSED_AT_A_TIME = 500
"""Sentences that one thread parses before it takes others."""
Result = TypeVar("Result")


class Candidate(NamedTuple):
    """One of the best trees of a sentence."""

    tree: DepTree
    score: float
    probability: float


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


class Preparation(NamedTuple):
    """What the structure is learnt from."""

    corpus: Corpus
    arcs: Arcs
    single_root: bool
    scale: float


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
    runs : int
        Trainings in different orders, whose mean is a better model than each.
    tags : {"gold", "predicted"}
        Whether sentences bring their tags, features and lemmas, or the parser's own tagger gives them.
        In the second case the training sentences are tagged by taggers that have not seen them.
    decoder : {"projective", "spanning"}
        Trees without crossing arcs, to which others are lifted and from which they are brought back, or any
        trees; the second is for order 1 only.
    jackknife : bool
        Also train a parser on all but each of the `folds`, whose trees of the sentences that it has not seen
        show the labeler what mistakes to expect, and calibrate probabilities. Takes so many times longer.
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
        Folds by which training sentences are tagged, pruned and parsed with models that have not seen them.
    lifting : {"path", "head", "head+path", "baseline"}
        How crossing arcs are made projective for training and brought back after parsing.
    templates : TemplateSet, optional
        Features.
    jobs : int
        Threads for folds and for parsing; results do not depend on them.

    Attributes
    ----------
    recall_ : float
        Percent of the gold arcs of training sentences that pruning keeps.
    tagger_ : Tagger or None
    scale_ : float
        What scores are multiplied by to become logarithms of probabilities.
    """

    def __init__(
        self,
        *,
        order: int = 3,
        k: int = 10,
        epochs: int = 6,
        runs: int = 4,
        tags: str = "gold",
        decoder: str = "projective",
        jackknife: bool = False,
        patience: int | None = None,
        bound: float = 1.0,
        seed: int = 0,
        table_bits: int = 23,
        pruning_threshold: float = 1e-3,
        max_heads: int = 8,
        folds: int = 5,
        lifting: str = "path",
        templates: TemplateSet | None = None,
        jobs: int = 1,
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
        self.seed = seed
        self.table_bits = table_bits
        self.pruning_threshold = pruning_threshold
        self.max_heads = max_heads
        self.folds = folds
        self.lifting = lifting
        self.templates = templates
        self.jobs = jobs

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
            A folder in which each step and epoch is kept. If it exists, training goes on from it and ends as
            if it had not been interrupted.
        """
        self._check(trees, dev)
        tell = progress or _ignore
        options = [*(getattr(self, name) for name in OPTIONS), self.templates or TemplateSet()]
        kept = Checkpoint(checkpoint, fingerprint(options, trees, dev or [])) if checkpoint else None
        trees, held_out = (trees, dev) if dev or self.jackknife else self._hold_out(trees)
        found = self._restore(kept) or self._prepare(trees, kept, tell)
        self._learn_structure(found, dev, tell, kept)
        if held_out and not self.jackknife:
            self.scale_ = self._calibrate(held_out)
        if held_out:
            tell(f"probabilities: {self._describe_calibration(held_out)}")
        elif not self.jackknife:
            tell("probabilities: not calibrated, for want of sentences")
        return self

    def predict(self, trees: Sequence[DepTree]) -> list[DepTree]:
        """Parse sentences; their heads and relations are not looked at."""
        return [candidates[0].tree for candidates in self._spread(lambda batch: self._parse(batch, 1), trees)]

    def kbest(self, trees: Sequence[DepTree], k: int = 10) -> list[list[Candidate]]:
        """Return the `k` best trees of each sentence, the best first, each with its probability.

        Trees are told apart by their heads before crossing arcs are brought back.
        """
        check_integer("k", k, minimum=1)
        return self._spread(lambda batch: self._parse(batch, k, sure=True), trees, k)

    def structures(self, trees: Sequence[DepTree], k: int = 10) -> list[Structures]:
        """Return the `k` best trees of each sentence as arrays, before relations are found."""
        check_integer("k", k, minimum=1)
        return self._spread(lambda batch: self._search(batch, k, sure=True)[0], trees, k)

    def complete(self, trees: Sequence[DepTree]) -> list[DepTree]:
        """Give relations to trees that have the heads of `structures`, and bring crossing arcs back."""
        return self._complete(trees, None)

    def _complete(self, trees: Sequence[DepTree], corpus: Corpus | None) -> list[DepTree]:
        """Complete trees, which are those of a corpus, if it is given."""
        relations = self.labeler_.predict(trees, corpus)
        return [
            deprojectivize(tree.with_heads(tree.heads, labels))
            for tree, labels in zip(trees, relations, strict=True)
        ]

    def lifted(self, tree: DepTree) -> DepTree:
        """Return a tree as the parser learns it: with crossing arcs lifted, if it finds none of these."""
        return projectivize(tree, scheme=self.lifting) if self.decoder == "projective" else tree

    def marginals(self, trees: Sequence[DepTree]) -> list[npt.NDArray[np.float64]]:
        """Return for each sentence an array (n, n + 1): the probability that a word's head is the column."""

        def find(batch: Sequence[DepTree]) -> list[npt.NDArray[np.float64]]:
            corpus = self.encoder_.encode(self._tagged(batch))
            squares = self.structure_.marginals(self._stages(), corpus, self.scale_)[1]
            return [square.T[1:] for square in squares]

        return self._spread(find, trees)

    def confidence(self, parsed: DepTree, marginals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the probability of the head of each word of a tree, from the marginals of its sentence.

        A crossing arc that was brought back has the probability of the arc that it was lifted to.
        """
        return marginals[np.arange(len(parsed)), self.lifted(parsed).heads]

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
        options = {name: getattr(self, name) for name in (*OPTIONS, "templates", "jobs")}
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

    def _parts(self) -> dict[str, State]:
        """Return the states of all models inside but the structure."""
        parts = {
            "encoder": self.encoder_.get_state(),
            "labeler": self.labeler_.get_state(with_encoder=False),
        }
        if self.pruner_:
            parts["pruner"] = self.pruner_.get_state()
        if self.tagger_:
            parts["tagger"] = self.tagger_.get_state()
        return parts

    def _set_parts(self, state: State) -> None:
        """Make the models again whose states are in `state`."""
        parts = state.parts
        self.encoder_ = Encoder.from_state(parts["encoder"])
        self.labeler_ = Labeler.from_state(parts["labeler"], self.encoder_)
        templates = self.templates or TemplateSet()
        self.pruner_: Pruner | None = None
        if "pruner" in parts:
            self.pruner_ = Pruner.from_state(parts["pruner"], templates)
        self.tagger_: Tagger | None = None
        if "tagger" in parts:
            self.tagger_ = Tagger.from_state(parts["tagger"])

    def _check(self, trees: Sequence[DepTree], dev: Sequence[DepTree] | None) -> None:
        check_choice("order", self.order, (1, 2, 3))
        check_choice("tags", self.tags, ("gold", "predicted"))
        check_choice("decoder", self.decoder, tuple(MODELS))
        if self.decoder == "spanning" and self.order != 1:
            raise InputError(f"decoder is 'spanning' and order {self.order}; expected order 1")
        check_choice("lifting", self.lifting, SCHEMES)
        for name in ("k", "epochs", "runs", "max_heads", "folds", "jobs"):
            check_integer(name, getattr(self, name), minimum=1)
        check_integer("seed", self.seed, minimum=0)
        if self.patience is not None:
            check_integer("patience", self.patience, minimum=1)
            if not dev:
                raise InputError("patience counts epochs without a better dev score; expected a dev set")
        check_number("pruning_threshold", self.pruning_threshold, low=0, high=1)
        check_number("bound", self.bound, low=0, high=np.inf)
        check_integer("table_bits", self.table_bits, minimum=10)
        check_number("table_bits", self.table_bits, low=10, high=28)
        if self.templates is not None and not isinstance(self.templates, TemplateSet):
            raise InputError(f"templates is {self.templates!r}; expected a TemplateSet")
        if dev is not None and not any(len(tree) for tree in dev):
            raise InputError("the dev set has no words; expected some, or no dev set")
        n_sentences = sum(len(tree) > 0 for tree in trees)
        if n_sentences == 0:
            raise InputError("no training sentences with words were given; expected at least one")
        if (self.jackknife or self.tags == "predicted") and min(self.folds, n_sentences) < 2:
            found = f"{n_sentences} sentences and {self.folds} folds"
            raise InputError(f"{found}; expected two of each or more to train on all but one fold")
        for number, tree in enumerate(trees, start=1):
            if (tree.heads < 0).any():
                raise InputError(f"sentence {number} has words without a head; expected whole trees")

    def _hold_out(self, trees: Sequence[DepTree]) -> tuple[Sequence[DepTree], Sequence[DepTree] | None]:
        """Put some sentences aside for calibration, if there are enough."""
        n = max(int(len(trees) * HELD_OUT_SHARE), min(MIN_HELD_OUT, len(trees) // 10))
        if n == 0:
            return trees, None
        aside = set(np.random.default_rng(self.seed).permutation(len(trees))[:n].tolist())
        kept = [tree for number, tree in enumerate(trees) if number not in aside]
        return kept, [tree for number, tree in enumerate(trees) if number in aside]

    def _prepare(self, trees: Sequence[DepTree], kept: Checkpoint | None, tell: Progress) -> Preparation:
        """Learn all but the structure."""
        lifted = [self.lifted(tree) for tree in self._learn_tags(trees, tell) if len(tree)]
        self.encoder_ = Encoder.from_trees(lifted)
        corpus = self.encoder_.encode(lifted)
        single_root = bool((np.add.reduceat(corpus.heads == 0, corpus.first_row[:-1]) == 1).all())
        arcs = self._learn_pruning(corpus, single_root, tell)
        parsed, scale = self._jackknifed(lifted, kept, tell) if self.jackknife else (lifted, 1.0)
        self.labeler_ = Labeler(seed=self.seed).fit(parsed, self.encoder_)
        if kept:
            values = {"single_root": single_root, "scale": scale, "recall": self.recall_}
            arrays = {**corpus._asdict(), "first_arc": arcs[0], "arcs": arcs[1]}
            kept.save("preparation", State("Preparation", values, arrays, self._parts()))
        return Preparation(corpus, arcs, single_root, scale)

    def _restore(self, kept: Checkpoint | None) -> Preparation | None:
        """Take back what `_prepare` has learnt, if that is kept."""
        state = kept.load("preparation") if kept else None
        if state is None:
            return None
        self._set_parts(state)
        self.recall_ = state.values["recall"]
        corpus = Corpus(*(state.arrays[name] for name in Corpus._fields))
        arcs = (state.arrays["first_arc"], state.arrays["arcs"])
        return Preparation(corpus, arcs, state.values["single_root"], state.values["scale"])

    def _learn_tags(self, trees: Sequence[DepTree], tell: Progress) -> Sequence[DepTree]:
        """Return the trees with the tags that they are parsed with."""
        self.tagger_ = None
        if self.tags == "gold":
            return trees
        self.tagger_ = Tagger(seed=self.seed).fit(trees)
        folds = min(self.folds, len(trees))
        tagged = jackknife(trees, folds=folds, jobs=self.jobs, seed=self.seed, tagger=self.tagger_)
        tell(f"tags of sentences not trained on: {compare_tags(trees, tagged)}")
        return tagged

    def _learn_pruning(self, corpus: Corpus, single_root: bool, tell: Progress) -> Arcs:
        self.pruner_ = None
        self.recall_ = 100.0
        if self.decoder == "spanning":
            return np.zeros(corpus.n_sentences + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        self.pruner_ = Pruner(
            self.templates or TemplateSet(),
            threshold=self.pruning_threshold,
            max_heads=self.max_heads,
            fine=self.order > 1,
            single_root=single_root,
            seed=self.seed,
        )
        folds = min(self.folds, corpus.n_sentences)
        arcs, report = self.pruner_.jackknife(corpus, folds=folds, jobs=self.jobs)
        self.pruner_.fit(corpus)
        self.recall_ = report.recall
        tell(f"pruning keeps {report.n_heads:.2f} heads a word and {report.recall:.2f}% of the gold arcs")
        return arcs

    def _jackknifed(
        self, trees: Sequence[DepTree], kept: Checkpoint | None, tell: Progress
    ) -> tuple[list[DepTree], float]:
        """Return the trees with the heads that a parser which has not seen them gives, and a scale."""
        corpus = self.encoder_.encode(trees)
        order = np.random.default_rng(self.seed).permutation(len(trees))
        n_folds = min(self.folds, len(trees))

        def parse_fold(fold: int) -> tuple[npt.NDArray[np.int32], float]:
            found = kept.load(f"fold{fold}") if kept else None
            if found is None:
                found = self._learn_fold(trees, order[fold::n_folds].tolist())
                if kept:
                    kept.save(f"fold{fold}", found)
            return found.arrays["heads"], found.values["scale"]

        found = map_jobs(parse_fold, range(n_folds), jobs=self.jobs)
        tell(f"parsed {len(trees)} sentences by parsers that have not seen them")
        heads = np.zeros(len(corpus.heads), dtype=np.int32)
        for fold, (heads_of_fold, _) in enumerate(found):
            words = [np.arange(len(heads))[corpus.words_of(number)] for number in order[fold::n_folds]]
            heads[np.concatenate(words)] = heads_of_fold
        parsed = [
            tree.with_heads(heads[corpus.words_of(number)], tree.deprels) for number, tree in enumerate(trees)
        ]
        return parsed, float(np.exp(np.mean([np.log(scale) for _, scale in found])))

    def _learn_fold(self, trees: Sequence[DepTree], numbers: Sequence[int]) -> State:
        """Learn from all but some of the trees; return the heads of these, and their scale."""
        parser = self.untrained(tags="gold", jackknife=False, patience=None, jobs=1)
        aside = set(numbers)
        rest = [tree for number, tree in enumerate(trees) if number not in aside]
        parser._learn_structure(parser._prepare(rest, None, _ignore), None, _ignore, None)
        mine = [trees[number] for number in numbers]
        corpus = parser.encoder_.encode(mine)
        heads, _ = parser.structure_.best_trees(parser._stages(), corpus, 1)
        words = [heads[0, corpus.words_of(at)] for at in range(len(mine))]
        return State("Fold", {"scale": parser._calibrate(mine)}, {"heads": np.concatenate(words)})

    def _learn_structure(
        self,
        found: Preparation,
        dev: Sequence[DepTree] | None,
        tell: Progress,
        kept: Checkpoint | None,
    ) -> None:
        def after_epoch(report: EpochReport) -> float:
            line = f"epoch {report.epoch} of {report.n_epochs}: "
            line += f"loss {report.loss:.3f}, UAS {report.train_uas:.2f} in training"
            if not dev:
                tell(line)
                return 0.0
            score = attachment(dev, self.predict(dev))
            tell(f"{line}, dev UAS {score.uas:.2f}, LAS {score.las:.2f}")
            return score.uas

        self.scale_ = found.scale
        self.structure_ = MODELS[self.decoder](
            self.templates or TemplateSet(),
            order=self.order,
            table_bits=self.table_bits,
            single_root=found.single_root,
        )
        self.structure_.train(
            found.corpus,
            found.arcs,
            epochs=self.epochs,
            runs=self.runs,
            k=self.k,
            bound=self.bound,
            seed=self.seed,
            patience=self.patience if dev else None,
            checkpoint=kept,
            after_epoch=after_epoch,
        )

    def _calibrate(self, held_out: Sequence[DepTree]) -> float:
        """Return the scale under which the heads of these sentences are most probable."""
        trees = [self.lifted(tree) for tree in self._tagged(held_out) if len(tree)]
        corpus = self.encoder_.encode(trees)
        heads = [tree.heads for tree in trees]
        return best_scale(
            lambda scale: gold_loss(self.structure_.marginals(self._stages(), corpus, scale)[1], heads)
        )

    def _describe_calibration(self, trees: Sequence[DepTree]) -> str:
        """Say what scores are multiplied by and how far that makes them probabilities."""
        parsed = self.predict(trees)
        confidence = np.concatenate(list(map(self.confidence, parsed, self.marginals(trees))))
        is_right = np.concatenate([a.heads == b.heads for a, b in zip(trees, parsed, strict=True)])
        error = reliability(confidence, is_right).error
        return f"scores are scaled by {self.scale_:.3f}, calibration error {error:.4f}"

    def _stages(self) -> tuple[Stage, ...]:
        return self.pruner_.stages_ if self.pruner_ else ()

    def _tagged(self, trees: Sequence[DepTree]) -> Sequence[DepTree]:
        if self.tags == "gold":
            return trees
        if self.tagger_ is None:
            raise InputError("tags is 'predicted', but the parser was trained on gold tags and has no tagger")
        return self.tagger_.predict(trees)

    def _spread(
        self, function: Callable[[Sequence[DepTree]], list[Result]], trees: Sequence[DepTree], k: int = 1
    ) -> list[Result]:
        """Return what `function` finds for each sentence, some sentences at a time, fewer for more trees."""
        self._check_fitted()
        size = max(1, PARSED_AT_A_TIME // k)
        batches = [trees[start : start + size] for start in range(0, len(trees), size)]
        return [found for batch in map_jobs(function, batches, jobs=self.jobs) for found in batch]

    def _search(self, trees: Sequence[DepTree], k: int, *, sure: bool) -> tuple[list[Structures], Corpus]:
        """Return the best structures of each sentence, with probabilities if `sure`."""
        tagged = self._tagged(trees)
        corpus = self.encoder_.encode(tagged)
        heads, scores = self.structure_.best_trees(self._stages(), corpus, k)
        scores[corpus.sizes == 0, 0] = 0.0
        probabilities = np.full_like(scores, np.nan)
        if sure:
            log_sums, _ = self.structure_.marginals(self._stages(), corpus, self.scale_)
            probabilities = np.exp(self.scale_ * scores - log_sums[:, np.newaxis])
        n_found = (scores > -np.inf).sum(axis=1).tolist()
        found = [
            Structures(
                tree, heads[:n, corpus.words_of(number)], scores[number, :n], probabilities[number, :n]
            )
            for number, (tree, n) in enumerate(zip(tagged, n_found, strict=True))
        ]
        return found, corpus

    def _parse(self, trees: Sequence[DepTree], k: int, *, sure: bool = False) -> list[list[Candidate]]:
        """Return candidates for each sentence, with probabilities if `sure`."""
        found, corpus = self._search(trees, k, sure=sure)
        bare = [each.tree.with_heads(heads) for each in found for heads in each.heads]
        whole = iter(self._complete(bare, corpus if k == 1 else None))
        return [
            [
                Candidate(next(whole), score, probability)
                for score, probability in zip(each.scores.tolist(), each.probabilities.tolist(), strict=True)
            ]
            for each in found
        ]


MODELS: dict[str, type[StructureModel]] = {"projective": StructureModel, "spanning": SpanningModel}
"""By decoder."""
OPTIONS = (
    *("order", "k", "epochs", "runs", "tags", "decoder", "jackknife", "patience", "bound", "seed"),
    *("table_bits", "pruning_threshold", "max_heads", "folds", "lifting"),
)
"""The parameters of a parser that are saved with it."""


def _ignore(line: str) -> None:
    """Tell nobody."""
