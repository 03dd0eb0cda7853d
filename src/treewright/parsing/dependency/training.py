"""What a dependency parser learns, step by step: tags, pruning, relations, structure, how sure it is."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._validate import check_params
from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.data.projective import projectivize
from treewright.errors import InputError
from treewright.metrics import attachment
from treewright.metrics.calibration import reliability
from treewright.native.dependency.pruning import Stage
from treewright.parsing.dependency.calibration import best_scale, gold_loss
from treewright.parsing.dependency.features import Corpus, Encoder, TemplateSet
from treewright.parsing.dependency.labeler import Labeler
from treewright.parsing.dependency.pruning import Arcs, Pruner
from treewright.parsing.dependency.spanning import SpanningModel
from treewright.parsing.dependency.structure import EpochReport, StructureModel
from treewright.persist import State
from treewright.scale import Client, map_jobs
from treewright.tagging.tagger import Tagger, compare_tags, jackknife

Progress = Callable[[str], None]
"""Called with a line for people after each step."""

HELD_OUT_SHARE, MIN_HELD_OUT = 0.05, 20
"""Of the training sentences, for calibration where there is no dev set; of few sentences, a tenth."""


class Preparation(NamedTuple):
    """What the structure is learnt from."""

    corpus: Corpus
    arcs: Arcs
    single_root: bool
    scale: float


class ParserTraining(ABC):
    """The steps by which a `DependencyParser`, whose options these are, learns."""

    order: int
    k: int
    epochs: int
    runs: int
    tags: str
    decoder: str
    jackknife: bool
    patience: int | None
    bound: float
    random_state: int
    table_bits: int
    pruning_threshold: float
    max_heads: int
    folds: int
    lifting: str
    templates: TemplateSet | None
    n_jobs: int

    @abstractmethod
    def predict(self, trees: Sequence[DepTree]) -> list[DepTree]:
        """Parse sentences."""

    @abstractmethod
    def marginals(self, trees: Sequence[DepTree]) -> list[npt.NDArray[np.float64]]:
        """Return the probabilities of the heads of all words."""

    @abstractmethod
    def confidence(self, parsed: DepTree, marginals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the probabilities of the heads that a tree has."""

    @abstractmethod
    def untrained(self, **changes: object) -> Self:
        """Return a parser with the same options, but for some, that has learnt nothing."""

    def lifted(self, tree: DepTree) -> DepTree:
        """Return a tree as the parser learns it: with crossing arcs lifted, if it finds none of these."""
        return projectivize(tree, scheme=self.lifting) if self.decoder == "projective" else tree

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
        check_params(self)
        if self.decoder == "spanning" and self.order != 1:
            raise InputError(f"decoder is 'spanning' and order {self.order}; expected order 1")
        if self.patience is not None and not dev:
            raise InputError("patience counts epochs without a better dev score; expected a dev set")
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
        aside = set(np.random.default_rng(self.random_state).permutation(len(trees))[:n].tolist())
        kept = [tree for number, tree in enumerate(trees) if number not in aside]
        return kept, [tree for number, tree in enumerate(trees) if number in aside]

    def _prepare(
        self, trees: Sequence[DepTree], kept: Checkpoint | None, tell: Progress, client: Client | None = None
    ) -> Preparation:
        """Learn all but the structure."""
        lifted = [self.lifted(tree) for tree in self._learn_tags(trees, tell, client) if len(tree)]
        self.encoder_ = Encoder.from_trees(lifted)
        corpus = self.encoder_.encode(lifted)
        single_root = bool((np.add.reduceat(corpus.heads == 0, corpus.first_row[:-1]) == 1).all())
        arcs = self._learn_pruning(corpus, single_root, tell, client)
        parsed, scale = self._jackknifed(lifted, kept, tell, client) if self.jackknife else (lifted, 1.0)
        self.labeler_ = Labeler(random_state=self.random_state).fit(parsed, self.encoder_)
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

    def _learn_tags(
        self, trees: Sequence[DepTree], tell: Progress, client: Client | None
    ) -> Sequence[DepTree]:
        """Return the trees with the tags that they are parsed with."""
        self.tagger_ = None
        if self.tags == "gold":
            return trees
        self.tagger_ = Tagger(random_state=self.random_state).fit(trees)
        folds = min(self.folds, len(trees))
        tagged = jackknife(
            trees,
            folds=folds,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            tagger=self.tagger_,
            client=client,
        )
        tell(f"tags of sentences not trained on: {compare_tags(trees, tagged)}")
        return tagged

    def _learn_pruning(
        self, corpus: Corpus, single_root: bool, tell: Progress, client: Client | None
    ) -> Arcs:
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
            random_state=self.random_state,
        )
        folds = min(self.folds, corpus.n_sentences)
        arcs, report = self.pruner_.jackknife(corpus, folds=folds, n_jobs=self.n_jobs, client=client)
        self.pruner_.fit(corpus)
        self.recall_ = report.recall
        tell(f"pruning keeps {report.n_heads:.2f} heads a word and {report.recall:.2f}% of the gold arcs")
        return arcs

    def _jackknifed(
        self, trees: Sequence[DepTree], kept: Checkpoint | None, tell: Progress, client: Client | None
    ) -> tuple[list[DepTree], float]:
        """Return the trees with the heads that a parser which has not seen them gives, and a scale."""
        corpus = self.encoder_.encode(trees)
        order = np.random.default_rng(self.random_state).permutation(len(trees))
        n_folds = min(self.folds, len(trees))

        def learn(fold: int) -> State:
            return self._learn_fold(trees, order[fold::n_folds].tolist())

        found = self._find_folds(learn, n_folds, kept, client)
        tell(f"parsed {len(trees)} sentences by parsers that have not seen them")
        heads = np.zeros(len(corpus.heads), dtype=np.int32)
        for fold, state in found.items():
            words = [np.arange(len(heads))[corpus.words_of(number)] for number in order[fold::n_folds]]
            heads[np.concatenate(words)] = state.arrays["heads"]
        parsed = [
            tree.with_heads(heads[corpus.words_of(number)], tree.deprels) for number, tree in enumerate(trees)
        ]
        return parsed, float(
            np.exp(np.mean([np.log(found[fold].values["scale"]) for fold in range(n_folds)]))
        )

    def _find_folds(
        self, learn: Callable[[int], State], n_folds: int, kept: Checkpoint | None, client: Client | None
    ) -> dict[int, State]:
        """Return what is learnt in each fold, or was kept of it; keep what is new."""

        def keep(fold: int, state: State) -> None:
            if kept:
                kept.save(f"fold{fold}", state)

        states = {fold: kept.load(f"fold{fold}") if kept else None for fold in range(n_folds)}
        found = {fold: state for fold, state in states.items() if state is not None}
        missing = [fold for fold in states if fold not in found]
        what = "parsing as if new"
        made = map_jobs(learn, missing, n_jobs=self.n_jobs, client=client, what=what, unit="folds", keep=keep)
        return {**found, **dict(zip(missing, made, strict=True))}

    def _learn_fold(self, trees: Sequence[DepTree], numbers: Sequence[int]) -> State:
        """Learn from all but some of the trees; return the heads of these, and their scale."""
        parser = self.untrained(tags="gold", jackknife=False, patience=None, n_jobs=1)
        aside = set(numbers)
        rest = [tree for number, tree in enumerate(trees) if number not in aside]
        parser._learn_structure(parser._prepare(rest, None, ignore), None, ignore, None)
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
            random_state=self.random_state,
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


MODELS: dict[str, type[StructureModel]] = {"projective": StructureModel, "spanning": SpanningModel}
"""By decoder."""


def ignore(line: str) -> None:
    """Tell nobody."""
