"""The training steps of a dependency parser: tagger, pruning, labeler, scorer, calibration."""

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.data.documents import deal_folds
from treewright.metrics import attachment
from treewright.metrics.calibration import reliability
from treewright.metrics.significance import significance
from treewright.model import State
from treewright.native.dependency.pruning import KeptArcs, restore_arcs
from treewright.parsing.contract import Batch, PartScorer
from treewright.parsing.dependency.calibration import best_scale, gold_loss
from treewright.parsing.dependency.combined import (
    MAX_WEIGHED,
    CombinedScorer,
    best_relation_weight,
    combine,
    most_accurate,
)
from treewright.parsing.dependency.decoders import ChartDecoder, ProjectiveDecoder, SpanningDecoder
from treewright.parsing.dependency.features import Corpus, Encoder, TemplateSet
from treewright.parsing.dependency.forest_mining import ForestMiner
from treewright.parsing.dependency.forests import (
    ForestCorpus,
    SentenceForest,
    keep_forests,
    lattice_scale,
    probable_arcs,
    restore_forests,
)
from treewright.parsing.dependency.labeler import Labeler
from treewright.parsing.dependency.lattice import Lattice
from treewright.parsing.dependency.linear import LinearPartScorer
from treewright.parsing.dependency.mira import (
    AfterEpoch,
    EpochReport,
    GivenScores,
    MiraTrainer,
    ScorerTrainer,
)
from treewright.parsing.dependency.pruning import Pruner, select_arcs
from treewright.progress import prefixed, report, silenced
from treewright.scale import Client, map_jobs
from treewright.tagging.tagger import Tagger, compare_tags, jackknife

if TYPE_CHECKING:
    from treewright.parsing.dependency.parser import DependencyParser

HELD_OUT_SHARE, MIN_HELD_OUT = 0.05, 20
"""Fraction and minimum number of training sentences held out for calibration if there is no dev set.

The minimum is at most a tenth of the sentences."""
NARROWING = 0.01
"""Minimum probability of a head in forests, relative to the best head."""
FOREST_EPOCHS = 4
"""Maximum number of training epochs of the linear models that score the forests of folds."""
NO_ARCS = np.empty(0, dtype=np.int32)
TAG_COLUMNS = ("upos", "xpos", "feats", "lemmas")


def with_tags(trees: Sequence[DepTree], tags: Sequence[Sequence[list[str]]]) -> list[DepTree]:
    """Return copies of trees with other tags; `tags` has the columns `TAG_COLUMNS` of each tree."""
    return [
        tree.with_tags(**dict(zip(TAG_COLUMNS, columns, strict=True)))
        for tree, columns in zip(trees, tags, strict=True)
    ]


class LearntParser(NamedTuple):
    """The fitted components of a parser.

    Attributes
    ----------
    tagger : Tagger or None
    encoder : Encoder
    decoder : ChartDecoder
    labeler : Labeler
    recall : float
        Percentage of the gold arcs of training sentences that pruning keeps.
    scorer : PartScorer
    scale : float
        Factor that turns scores into log-probabilities, up to a constant.
    relation_weight : float
        Weight of the scorer's relation scores relative to those of the labeler.
    """

    tagger: Tagger | None
    encoder: Encoder
    decoder: ChartDecoder
    labeler: Labeler | None
    recall: float
    scorer: PartScorer
    scale: float
    relation_weight: float = 1.0


class PreparedTraining(NamedTuple):
    """All components except the scorer, and the data for training the scorer."""

    learnt: LearntParser
    trees: Sequence[DepTree]
    """The sentences with the tags used for parsing, and crossing arcs lifted."""
    corpus: Corpus
    arcs: KeptArcs


class SharedFolds(NamedTuple):
    """The data that the parsers of all jackknife folds share.

    There is one pruning model per fold, trained on all other folds. Parser i is trained on all folds except
    i. When parser i parses fold i, pruning model i prunes the sentences; neither of them was trained on this
    fold. When parser i is trained on another fold f, pruning model f prunes the sentences; that model was not
    trained on fold f, so training sentences are pruned like new ones. Pruning model f was trained on fold i,
    but it only determines which wrong arcs of fold f compete with the gold arcs. Thus, no weight that scores
    or prunes a sentence of fold i was trained on fold i. Tags are shared in the same way.

    Attributes
    ----------
    trees : sequence of DepTree
        The sentences with the tags used for parsing.
    lifted : sequence of DepTree
        The same sentences with crossing arcs lifted.
    parts : list of ndarray of int64
        The numbers of the sentences of each fold.
    encoder : Encoder
        Encoder of all sentences. It only maps strings to numbers; unseen words have weights of 0.
    decoder : ChartDecoder
        Decoder without a pruner.
    arcs : KeptArcs
        Arcs that are kept after pruning.
    recall : float
        Percentage of the gold arcs that pruning keeps.
    """

    trees: Sequence[DepTree]
    lifted: Sequence[DepTree]
    parts: Sequence[npt.NDArray[np.int64]]
    encoder: Encoder
    decoder: ChartDecoder
    arcs: KeptArcs
    recall: float


@dataclass
class ParserTrainer:
    """Trains dependency parsers.

    Parameters
    ----------
    parser : DependencyParser
        Parser that provides the parameters; it is not changed.
    checkpoint : Checkpoint, optional
        Stores each step and epoch.
    client : distributed.Client, optional
        Dask client for training jackknife folds.
    """

    parser: "DependencyParser"
    checkpoint: Checkpoint | None = None
    client: Client | None = None

    def train(self, trees: Sequence[DepTree], dev: Sequence[DepTree] | None) -> LearntParser:
        """Train on a treebank and return the fitted components."""
        parser = self.parser
        trees, held_out = (trees, dev) if dev or parser.jackknife else self._hold_out(trees)
        prepared = self._restore(trees) or self._prepare(trees)
        learnt = self._learn(prepared, dev, held_out)
        if parser.mine:
            learnt = self._add_mined(prepared, learnt, held_out)
        if held_out:
            report(f"probabilities: {self._describe_calibration(learnt, held_out)}")
        elif not parser.jackknife:
            report("probabilities: not calibrated, because there are no held-out sentences")
        return learnt

    def _learn(
        self,
        prepared: PreparedTraining,
        dev: Sequence[DepTree] | None,
        held_out: Sequence[DepTree] | None,
    ) -> LearntParser:
        """Train the scorer and calibrate probabilities."""
        parser = self.parser
        other = self._learn_other(prepared, held_out) if parser.combine else None
        learnt = self._learn_structure(prepared, dev, other, held_out)
        if other is None and held_out:
            learnt.scorer.calibrate(self._as_parsed(learnt, held_out))
        if other is not None:
            learnt = self._combine(learnt, other, held_out)
        if held_out and not parser.jackknife:
            learnt = learnt._replace(scale=self._calibrate(learnt, held_out))
        return learnt

    def share_folds(
        self, trees: Sequence[DepTree], parts: Sequence[npt.NDArray[np.int64]]
    ) -> tuple[SharedFolds, list[Pruner | None]]:
        """Train the components that the parsers of folds share; return them, and the pruner of each fold."""
        decoder = self._make_decoder()
        tagged = self._tag_folds(trees, len(parts))
        lifted = [decoder.lift(tree) for tree in tagged]
        encoder = Encoder.from_trees(lifted)
        corpus = encoder.encode(lifted)
        decoder.single_root_ = all((tree.heads == 0).sum() == 1 for tree in lifted if len(tree))
        pruner = self._make_pruner(decoder)
        if pruner is None:
            arcs = KeptArcs(np.zeros(len(trees) + 1, dtype=np.int64), NO_ARCS)
            return SharedFolds(tagged, lifted, parts, encoder, decoder, arcs, 100.0), [None] * len(parts)

        def learn(fold: int) -> State:
            return pruner.learn_fold(corpus, parts[fold], with_pruner=True)

        states = self._find_folds(learn, len(parts), name="pruning", what="pruning folds")
        found = pruner.join_folds(corpus, parts, [states[fold] for fold in range(len(parts))])
        report(f"pruning of folds: keeps {found.report}")
        shared = SharedFolds(tagged, lifted, parts, encoder, decoder, found.arcs, found.report.recall)
        return shared, [*found.pruners]

    def _tag_folds(self, trees: Sequence[DepTree], n_folds: int) -> Sequence[DepTree]:
        """Return trees with the tags used for parsing; predicted tags use the same folds as the parsers."""
        parser = self.parser
        if parser.tags == "gold":
            return trees
        state = self.checkpoint.load("tags") if self.checkpoint else None
        if state is None:
            with silenced():
                tagged = jackknife(
                    trees,
                    folds=n_folds,
                    fold_by=parser.fold_by,
                    n_jobs=parser.n_jobs,
                    random_state=parser.random_state,
                    tagger=Tagger(random_state=parser.random_state),
                    client=self.client,
                )
            if self.checkpoint:
                columns = [[getattr(tree, name) for name in TAG_COLUMNS] for tree in tagged]
                self.checkpoint.save("tags", State("Tags", {"tags": columns}))
        else:
            tagged = with_tags(trees, state.values["tags"])
        report(f"cross-validated tags: {compare_tags(trees, tagged)}")
        return tagged

    def train_fold(self, shared: SharedFolds, fold: int, pruner: Pruner | None) -> LearntParser:
        """Train on all folds except one, which is used for calibration; the result may have no labeler."""
        aside = set(shared.parts[fold].tolist())
        numbers = [at for at, tree in enumerate(shared.lifted) if at not in aside and len(tree)]
        rest = [shared.lifted[number] for number in numbers]
        mine = [tree for number in shared.parts[fold] if len(tree := shared.lifted[number])]
        decoder = copy(shared.decoder)
        if isinstance(decoder, ProjectiveDecoder):
            decoder.pruner_ = pruner
        labeler = None
        if self.parser.combine:  # combining also tunes the weight of relations
            with silenced():
                labeler = Labeler(random_state=self.parser.random_state).fit(rest, shared.encoder)
        scorer = self._make_scorer(shared.encoder)
        learnt = LearntParser(None, shared.encoder, decoder, labeler, shared.recall, scorer, 1.0)
        arcs = select_arcs(shared.arcs, np.array(numbers, dtype=np.int64))
        prepared = PreparedTraining(learnt, rest, shared.encoder.encode(rest), arcs)
        return self._learn(prepared, None, mine)

    def _hold_out(self, trees: Sequence[DepTree]) -> tuple[Sequence[DepTree], Sequence[DepTree] | None]:
        """Hold out some sentences for calibration, if there are enough sentences."""
        n = max(int(len(trees) * HELD_OUT_SHARE), min(MIN_HELD_OUT, len(trees) // 10))
        if n == 0:
            return trees, None
        aside = set(np.random.default_rng(self.parser.random_state).permutation(len(trees))[:n].tolist())
        kept = [tree for number, tree in enumerate(trees) if number not in aside]
        return kept, [tree for number, tree in enumerate(trees) if number in aside]

    def _prepare(self, trees: Sequence[DepTree], *, with_relations: bool = True) -> PreparedTraining:
        """Train all components except the scorer."""
        parser = self.parser
        tagger, tagged = self._learn_tags(trees)
        decoder = self._make_decoder()
        lifted = [decoder.lift(tree) for tree in tagged if len(tree)]
        encoder = Encoder.from_trees(lifted)
        corpus = encoder.encode(lifted)
        decoder.single_root_ = bool((np.add.reduceat(corpus.heads == 0, corpus.first_row[:-1]) == 1).all())
        arcs, recall = self._learn_pruning(decoder, lifted, corpus)
        parsed, scale = self._jackknifed(lifted, encoder) if parser.jackknife else (lifted, 1.0)
        labeler = None
        if with_relations and (parser.learns_linear or not parser.scorer_has("relations")):
            with silenced():
                labeler = Labeler(random_state=parser.random_state).fit(parsed, encoder)
        learnt = LearntParser(tagger, encoder, decoder, labeler, recall, self._make_scorer(encoder), scale)
        if self.checkpoint:
            parts = {"encoder": encoder, "labeler": labeler, "decoder": decoder, "tagger": tagger}
            states = {name: part.get_state() for name, part in parts.items() if part is not None}
            arrays = {**corpus._asdict(), "first_arc": arcs.indptr, "arcs": arcs.codes}
            values: dict[str, Any] = {"scale": scale, "recall": recall}
            if tagger is not None:
                values["tags"] = [[getattr(tree, name) for name in TAG_COLUMNS] for tree in lifted]
            self.checkpoint.save("preparation", State("Preparation", values, arrays, states))
        return PreparedTraining(learnt, lifted, corpus, arcs)

    def _restore(self, trees: Sequence[DepTree]) -> PreparedTraining | None:
        """Restore the result of `_prepare` from the checkpoint, if it has one."""
        state = self.checkpoint.load("preparation") if self.checkpoint else None
        if state is None:
            return None
        parts, values = state.parts, state.values
        tagger = Tagger.from_state(parts["tagger"]) if "tagger" in parts else None
        encoder = Encoder.from_state(parts["encoder"])
        decoder = type(self._make_decoder()).from_state(parts["decoder"])
        labeler = Labeler.from_state(parts["labeler"]) if "labeler" in parts else None
        scorer = self._make_scorer(encoder)
        learnt = LearntParser(tagger, encoder, decoder, labeler, values["recall"], scorer, values["scale"])
        corpus = Corpus(*(state.arrays[name] for name in Corpus._fields))
        arcs = KeptArcs(state.arrays["first_arc"], state.arrays["arcs"])
        known = [tree for tree in trees if len(tree)]
        if tagger is not None:
            known = with_tags(known, values["tags"])
        return PreparedTraining(learnt, [decoder.lift(tree) for tree in known], corpus, arcs)

    def _make_decoder(self) -> ChartDecoder:
        parser = self.parser
        if not parser.is_projective:
            return SpanningDecoder()
        return ProjectiveDecoder(
            lifting=parser.lifting, threshold=parser.pruning_threshold, max_heads=parser.max_heads
        )

    def _make_scorer(self, encoder: Encoder) -> PartScorer:
        """Return the scorer to train: a custom scorer that is used alone, or a linear model."""
        parser = self.parser
        if parser.scorer is not None and not parser.combine:
            return self._own_scorer()
        templates = parser.templates or TemplateSet()
        scorer = LinearPartScorer(templates, order=parser.order, table_bits=parser.table_bits)
        scorer.encoder = encoder
        return scorer

    def _own_scorer(self) -> PartScorer:
        """Return a copy of the custom scorer; an unfitted one gets the parser's number of threads."""
        scorer = self.parser.scorer
        assert scorer is not None
        if scorer.is_fitted and scorer.fields:
            return deepcopy(scorer)
        return scorer.with_params(
            **({"n_jobs": self.parser.n_jobs} if "n_jobs" in scorer.param_names() else {})
        )

    def _learn_tags(self, trees: Sequence[DepTree]) -> tuple[Tagger | None, Sequence[DepTree]]:
        """Return a tagger, if required, and the trees with the tags used for parsing."""
        parser = self.parser
        if parser.tags == "gold":
            return None, trees
        tagger = Tagger(random_state=parser.random_state)
        with silenced():
            tagger.fit(trees)
            tagged = jackknife(
                trees,
                folds=min(parser.folds, len(trees)),
                fold_by=parser.fold_by,
                n_jobs=parser.n_jobs,
                random_state=parser.random_state,
                tagger=tagger,
                client=self.client,
            )
        report(f"cross-validated tags: {compare_tags(trees, tagged)}")
        return tagger, tagged

    def _folds(self, trees: Sequence[DepTree]) -> list[npt.NDArray[np.int64]]:
        """Return the numbers of the sentences of each fold."""
        n_folds = min(self.parser.folds, len(trees))
        parser = self.parser
        return deal_folds(trees, n_folds, by=parser.fold_by, random_state=parser.random_state).parts

    def _learn_pruning(
        self, decoder: ChartDecoder, trees: Sequence[DepTree], corpus: Corpus
    ) -> tuple[KeptArcs, float]:
        """Return the kept arcs of the training sentences, and the percentage of gold arcs that are kept."""
        parser = self.parser
        pruner = self._make_pruner(decoder)
        if isinstance(decoder, ProjectiveDecoder):
            decoder.pruner_ = pruner
        if pruner is None:
            return KeptArcs(np.zeros(corpus.n_sentences + 1, dtype=np.int64), NO_ARCS), 100.0
        folds, description = deal_folds(
            trees, min(parser.folds, len(trees)), by=parser.fold_by, random_state=parser.random_state
        )
        report(f"jackknifing: {description}")
        found = pruner.jackknife(corpus, folds, n_jobs=parser.n_jobs, client=self.client)
        pruner.fit(corpus)
        report(f"pruning keeps {found.report}")
        return found.arcs, found.report.recall

    def _make_pruner(self, decoder: ChartDecoder) -> Pruner | None:
        """Return an untrained pruner, if one is needed."""
        parser = self.parser
        is_needed = parser.learns_linear or not parser.scorer_has("score_arcs")
        if not isinstance(decoder, ProjectiveDecoder) or not is_needed:
            return None
        return Pruner(
            parser.templates or TemplateSet(),
            threshold=parser.pruning_threshold,
            max_heads=parser.max_heads,
            fine=parser.order > 1,
            single_root=decoder.single_root_,
            random_state=parser.random_state,
        )

    def _jackknifed(self, trees: Sequence[DepTree], encoder: Encoder) -> tuple[list[DepTree], float]:
        """Return the trees with heads predicted by cross-validation, and the mean scale."""
        parser = self.parser
        corpus = encoder.encode(trees)
        parts = self._folds(trees)
        n_folds = len(parts)

        changes = {"tags": "gold", "jackknife": False, "patience": None, "n_jobs": 1}
        trainer = ParserTrainer(parser.with_params(**changes))  # no client: it may be sent to the cluster

        def learn(fold: int) -> State:
            return trainer._learn_fold(trees, parts[fold].tolist())

        found = self._find_folds(learn, n_folds)
        report(f"parsed {len(trees)} training sentences by cross-validation")
        heads = np.zeros(len(corpus.heads), dtype=np.int32)
        for fold, state in found.items():
            words = [np.arange(len(heads))[corpus.words_of(number)] for number in parts[fold]]
            heads[np.concatenate(words)] = state.arrays["heads"]
        parsed = [
            tree.with_heads(heads[corpus.words_of(number)], tree.deprels) for number, tree in enumerate(trees)
        ]
        return parsed, float(
            np.exp(np.mean([np.log(found[fold].values["scale"]) for fold in range(n_folds)]))
        )

    def _find_folds(
        self, learn: Callable[[int], State], n_folds: int, *, name: str = "fold", what: str = "parsing folds"
    ) -> dict[int, State]:
        """Return the result of each fold, from the checkpoint or newly computed; store new results."""
        kept = self.checkpoint

        def keep(fold: int, state: State) -> None:
            if kept:
                kept.save(f"{name}{fold}", state)

        states = {fold: kept.load(f"{name}{fold}") if kept else None for fold in range(n_folds)}
        found = {fold: state for fold, state in states.items() if state is not None}
        missing = [fold for fold in states if fold not in found]
        made = map_jobs(
            learn,
            missing,
            n_jobs=self.parser.n_jobs,
            client=self.client,
            what=what,
            unit="folds",
            keep=keep,
        )
        return {**found, **dict(zip(missing, made, strict=True))}

    def _learn_fold(self, trees: Sequence[DepTree], numbers: Sequence[int]) -> State:
        """Train on all trees except those of a fold; return the heads and the scale of the fold."""
        aside = set(numbers)
        with silenced():
            rest = [tree for number, tree in enumerate(trees) if number not in aside]
            learnt = self._learn_structure(self._prepare(rest, with_relations=False), None)
        mine = [trees[number] for number in numbers]
        corpus = learnt.encoder.encode(mine)
        heads, _ = learnt.decoder.best_trees(learnt.scorer, Batch(mine, corpus), 1)
        words = [heads[0, corpus.words_of(at)] for at in range(len(mine))]
        scale = self._calibrate(learnt, mine)
        return State("Fold", {"scale": scale}, {"heads": np.concatenate(words)})

    def _learn_structure(
        self,
        prepared: PreparedTraining,
        dev: Sequence[DepTree] | None,
        other: PartScorer | None = None,
        held_out: Sequence[DepTree] | None = None,
    ) -> LearntParser:
        """Train the scorer; with `other`, train a linear model to be combined with it.

        A custom scorer can use `held_out` sentences for early stopping; these are the `dev` sentences if
        there are any.
        """
        parser, learnt = self.parser, prepared.learnt
        is_joint = other is not None and parser.combine == "joint"

        def after_epoch(found: EpochReport, scorer: PartScorer) -> float:
            if not dev:
                report(str(found))
                return 0.0
            if is_joint:
                assert isinstance(scorer, LinearPartScorer)
                assert other is not None
                scorer = CombinedScorer(scorer, other)
            # Probabilities are calibrated later, so trees are predicted by score.
            by_score = parser.with_params(predict_by="score")
            score = attachment(dev, by_score.with_learnt(learnt._replace(scorer=scorer)).predict(dev))
            report(f"{found}, dev UAS {score.uas:.2f}, LAS {score.las:.2f}")
            return score.uas

        if isinstance(learnt.scorer, LinearPartScorer):
            trainer = MiraTrainer(
                parser.epochs,
                parser.runs,
                parser.k,
                parser.bound,
                parser.random_state,
                parser.patience if dev else None,
            )
            scorer: PartScorer = trainer.train(
                learnt.scorer,
                learnt.decoder,
                prepared.corpus,
                prepared.arcs,
                given=self._jackknifed_scores(prepared) if is_joint else None,
                checkpoint=self.checkpoint,
                after_epoch=after_epoch,
            )
        else:
            scorer = self._train_own(learnt.scorer, prepared, held_out, after_epoch)
        return learnt._replace(scorer=scorer)

    def _train_own(
        self,
        scorer: PartScorer,
        prepared: PreparedTraining,
        dev: Sequence[DepTree] | None,
        after_epoch: AfterEpoch,
    ) -> PartScorer:
        """Train the custom scorer."""
        parser, learnt = self.parser, prepared.learnt
        return ScorerTrainer(parser.epochs, parser.random_state).train(
            scorer,
            learnt.decoder,
            Batch(prepared.trees, prepared.corpus),
            dev=self._as_parsed(learnt, dev).trees if dev else None,
            checkpoint=self.checkpoint,
            after_epoch=after_epoch,
        )

    def _learn_other(self, prepared: PreparedTraining, dev: Sequence[DepTree] | None) -> PartScorer:
        """Train the custom scorer that will be combined with a linear model."""

        def after_epoch(found: EpochReport, scorer: PartScorer) -> float:
            report(str(found))
            return 0.0

        scorer = self._train_own(self._own_scorer(), prepared, dev, after_epoch)
        if dev:
            scorer.calibrate(self._as_parsed(prepared.learnt, dev))
        return scorer

    def _jackknifed_scores(self, prepared: PreparedTraining) -> GivenScores:
        """Return cross-validated scores of all arcs of the training sentences."""
        trees = prepared.trees
        squares: dict[int, npt.NDArray[np.float64]] = {}
        parts = self._folds(trees)
        for fold, part in enumerate(parts):
            numbers, name = part.tolist(), f"scores{fold}"
            state = self.checkpoint.load(name) if self.checkpoint else None
            if state is None:
                with prefixed(f"fold {fold + 1}/{len(parts)}: "):
                    state = self._score_fold(prepared, numbers)
                if self.checkpoint:
                    self.checkpoint.save(name, state)
            sides = [len(trees[number]) + 1 for number in numbers]
            flat = np.split(state.arrays["scores"], np.cumsum(np.square(sides))[:-1])
            for number, side, scores in zip(numbers, sides, flat, strict=True):
                squares[number] = scores.reshape(side, side)
        return GivenScores.from_squares([squares[number] for number in range(len(trees))])

    def _score_fold(self, prepared: PreparedTraining, numbers: Sequence[int]) -> State:
        """Train the custom scorer on all sentences except a fold; return the arc scores of the fold."""
        aside = set(numbers)
        mine = [prepared.trees[number] for number in numbers]
        assert self.parser.scorer is not None
        scorer = self.parser.scorer.with_params()
        scorer.start([tree for number, tree in enumerate(prepared.trees) if number not in aside])
        batch = Batch(mine, prepared.learnt.encoder.encode(mine))
        scorer.calibrate(batch)
        scorer = scorer.prepare(batch)
        squares = [np.asarray(scorer.score_arcs(tree), dtype=np.float64) for tree in mine]
        return State("ScoredFold", {}, {"scores": np.concatenate([each.ravel() for each in squares])})

    def add_scorer(self, learnt: LearntParser, scorer: PartScorer, dev: Sequence[DepTree]) -> LearntParser:
        """Return a parser whose trained linear model is combined with another trained scorer."""
        scorer = deepcopy(scorer)
        scorer.calibrate(self._as_parsed(learnt, dev))
        learnt = self._combine(learnt, scorer, dev)
        return learnt._replace(scale=self._calibrate(learnt, dev))

    def _add_mined(
        self, prepared: PreparedTraining, learnt: LearntParser, held_out: Sequence[DepTree] | None
    ) -> LearntParser:
        """Add mined features to the linear model if their gain on held-out sentences is significant."""
        parser = self.parser
        assert isinstance(learnt.scorer, LinearPartScorer)
        assert isinstance(learnt.decoder, ProjectiveDecoder)
        single_root = learnt.decoder.single_root_
        training = ForestCorpus(prepared.trees, self._jackknifed_forests(prepared), single_root=single_root)
        miner = ForestMiner(
            parser.mining_threshold, parser.mining_degree, NARROWING, parser.random_state, parser.n_jobs
        )
        found = learnt._replace(scorer=miner.fit(learnt.scorer, learnt.scale, training))
        if not held_out:
            report(
                "mined features are used without a significance test, because there are no held-out sentences"
            )
            return found
        found = found._replace(scale=self._calibrate(found, held_out))
        before, after = (parser.with_learnt(each).predict(held_out) for each in (learnt, found))
        gain = significance(held_out, after, before, random_state=parser.random_state)
        report(f"mined features: held-out UAS gain {gain.difference:+.2f}, p = {gain.p_value:.4f}")
        level = parser.mining_significance
        if level is None or level == 1 or (gain.difference > 0 and gain.p_value < level):
            return found
        report(f"the gain is not significant at {level:g}: mined features are not used")
        return learnt

    def _jackknifed_forests(self, prepared: PreparedTraining) -> list[SentenceForest]:
        """Return cross-validated forests of the training sentences.

        The arcs were kept by pruning models that were not trained on the sentences; all folds share these
        arcs, as described in `SharedFolds`.
        """
        parts = self._folds(prepared.trees)
        changes = {"tags": "gold", "jackknife": False, "patience": None, "n_jobs": 1, "mine": False}
        epochs = min(self.parser.epochs, FOREST_EPOCHS)
        # No client: the trainer may be sent to the cluster.
        trainer = ParserTrainer(self.parser.with_params(**changes, runs=1, epochs=epochs))

        def learn(fold: int) -> State:
            return trainer._learn_forests(prepared, parts[fold])

        found: dict[int, SentenceForest] = {}
        for fold, state in self._find_folds(learn, len(parts), name="forests").items():
            found |= zip(parts[fold].tolist(), restore_forests(state), strict=True)
        return [found[number] for number in range(len(prepared.trees))]

    def _learn_forests(self, prepared: PreparedTraining, part: npt.NDArray[np.int64]) -> State:
        """Train on all sentences except those of a fold; return the forests of the fold."""
        trees, encoder, single_root = (
            prepared.trees,
            prepared.learnt.encoder,
            prepared.learnt.decoder.single_root_,
        )
        rest = np.setdiff1d(np.arange(len(trees)), part)
        known = [trees[number] for number in rest]
        with silenced():
            others = PreparedTraining(
                prepared.learnt, known, encoder.encode(known), select_arcs(prepared.arcs, rest)
            )
            scorer = self._learn_structure(others, None).scorer
        assert isinstance(scorer, LinearPartScorer)
        mine = [trees[number] for number in part]
        corpus = encoder.encode(mine)
        lattices = []
        for at, (number, tree) in enumerate(zip(part.tolist(), mine, strict=True)):
            lattice = Lattice(restore_arcs(prepared.arcs, number, len(tree)), single_root=single_root)
            lattices.append(lattice.with_scores(scorer.score_encoded(corpus, at, lattice)))
        scale = lattice_scale(lattices, [tree.heads for tree in mine])
        return keep_forests(self._narrow(scorer, scale, Batch(mine, corpus), lattices))

    @staticmethod
    def _narrow(
        scorer: LinearPartScorer, scale: float, batch: Batch, lattices: Sequence[Lattice]
    ) -> list[SentenceForest]:
        """Return the forests of sentences over the probable arcs of lattices and the gold arcs."""
        forests = []
        for at, (tree, lattice) in enumerate(zip(batch.trees, lattices, strict=True)):
            keep = probable_arcs(lattice, scale, NARROWING)
            keep[tree.heads, np.arange(1, len(keep))] = True
            scores = scorer.score_encoded(batch.corpus, at, Lattice(keep, single_root=lattice.single_root))
            forests.append(SentenceForest(keep, scale * np.concatenate(list(scores.values()))))
        return forests

    def _combine(
        self, learnt: LearntParser, other: PartScorer, held_out: Sequence[DepTree] | None
    ) -> LearntParser:
        """Combine the custom scorer with the linear model; tune the weights on held-out trees."""
        assert isinstance(learnt.scorer, LinearPartScorer)
        both = CombinedScorer(learnt.scorer, other)
        learnt = learnt._replace(scorer=both)
        if held_out:
            some = held_out[:: -(-len(held_out) // MAX_WEIGHED)]
            both = combine(both, learnt.decoder, self._as_parsed(learnt, some))
            batch = self._as_parsed(learnt, held_out)
            both = most_accurate(both, learnt.decoder, batch)
            report(f"combined: the scorer's weight relative to the linear model is {both.weight:.3f}")
            learnt = learnt._replace(scorer=both, decoder=self._choose_pruning(learnt.decoder, both, batch))
            if learnt.labeler is not None and both.relations:
                weight, share = best_relation_weight(learnt.labeler, both.prepare(batch), batch)
                report(
                    f"relations: the scorer's weight is {weight:g}, accuracy {100 * share:.2f}% on gold heads"
                )
                learnt = learnt._replace(relation_weight=weight)
            by_score = self.parser.with_params(predict_by="score")
            score = attachment(held_out, by_score.with_learnt(learnt).predict(held_out))
            report(f"combined: UAS {score.uas:.2f}, LAS {score.las:.2f} on the tuning sentences")
        return learnt

    @staticmethod
    def _choose_pruning(decoder: ChartDecoder, scorer: CombinedScorer, batch: Batch) -> ChartDecoder:
        """Return a decoder without a pruner if the custom scorer keeps as many gold arcs as the pruner.

        Pruning by one of them is faster than keeping the arcs that either of them keeps.
        """
        has_arcs = type(scorer.other).score_arcs is not PartScorer.score_arcs
        if not has_arcs or not isinstance(decoder, ProjectiveDecoder) or decoder.pruner_ is None:
            return decoder
        alone = copy(decoder)
        alone.pruner_ = None
        mine, others = alone.pruning_recall(scorer, batch), decoder.pruning_recall(scorer.linear, batch)
        found = f"pruning keeps {mine:.2f}% of the gold arcs by the scorer, {others:.2f}% by the linear model"
        report(f"{found}; {'only the scorer prunes' if mine >= others else 'either may keep an arc'}")
        return alone if mine >= others else decoder

    def _as_parsed(self, learnt: LearntParser, trees: Sequence[DepTree]) -> Batch:
        """Return sentences with the tags used for parsing and with gold trees that the decoder can find."""
        tagged = learnt.tagger.predict(trees) if learnt.tagger else trees
        lifted = [learnt.decoder.lift(tree) for tree in tagged if len(tree)]
        return Batch(lifted, learnt.encoder.encode(lifted))

    def _calibrate(self, learnt: LearntParser, held_out: Sequence[DepTree]) -> float:
        """Return the scale that maximises the likelihood of the heads of these sentences."""
        batch = self._as_parsed(learnt, held_out)
        heads = [tree.heads for tree in batch.trees]
        find = learnt.decoder.scaled_marginals(learnt.scorer, batch)
        return best_scale(lambda scale: gold_loss(find(scale), heads))

    def _describe_calibration(self, learnt: LearntParser, trees: Sequence[DepTree]) -> str:
        """Describe the scale and the calibration error."""
        parser = self.parser.with_learnt(learnt)
        parsed = parser.predict(trees)
        confidence = np.concatenate(list(map(parser.confidence, parsed, parser.marginals(trees))))
        is_right = np.concatenate([a.heads == b.heads for a, b in zip(trees, parsed, strict=True)])
        error = reliability(confidence, is_right).error
        return f"scale {learnt.scale:.3f}, calibration error {error:.4f}"
