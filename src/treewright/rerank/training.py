"""The training steps of a dependency reranker: candidate lists, features, and tuning."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from treewright._typing import IntArray
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.deptree import DepTree
from treewright.data.documents import resolve_fold_by
from treewright.errors import InputError
from treewright.metrics.calibration import reliability
from treewright.mining.gradient import GradientMiner
from treewright.mining.problem import list_problem
from treewright.parsing.dependency.parser import DependencyParser
from treewright.progress import report
from treewright.rerank.candidates import CandidateLists, TrainingLists
from treewright.rerank.features import ConjunctionFeatures, HandFeatures, ListFeatures, SubtreeFeatures
from treewright.rerank.jackknife import jackknife_lists
from treewright.rerank.linear import LinearScorer
from treewright.rerank.tuning import choose_scale, combine, divide_mass, tune
from treewright.scale import Client

if TYPE_CHECKING:
    from treewright.rerank.kernelized import KernelScorer
    from treewright.rerank.network_kernel import NetworkKernelScorer
    from treewright.rerank.reranker import DependencyReranker

ListScorer: TypeAlias = "LinearScorer | KernelScorer | NetworkKernelScorer"
TUNED = ("significance_level", "betas", "parser")
"""Parameters that do not affect the features and their weights."""
DEGREES = {"subtree": 3, "polynomial": 2, "template": 1}
"""Default maximum order of features in each space."""
HELD_OUT_SHARE = 0.1
"""Fraction of the lists that is held out for tuning if there is no dev set."""
LARGE_BUDGET, BUDGET = 3_000_000_000, 300_000_000
"""Maximum number of conjunctions counted per order: with a degree of at most 2, and with a higher degree."""
REFINING = 10
"""Number of passes over the lists between two mining rounds, if there are several rounds."""
KERNEL_EPOCHS = 5
KERNEL_DECAY = 0.001
"""Defaults of kernel perceptrons; with a larger decay factor, each tree is similar only to itself."""


class LearntReranker(NamedTuple):
    """The fitted attributes of a `DependencyReranker`."""

    parser: DependencyParser
    scorer: "ListScorer"
    beta: float
    scale: float
    oracle: float
    jackknife_uas: float
    gain: float
    p_value: float
    is_trusted: bool


@dataclass
class RerankerTrainer:
    """Trains dependency rerankers.

    Parameters
    ----------
    reranker : DependencyReranker
        Provides the parameters; it is not changed.
    steps : path, optional
        Folder that stores each step.
    cache : path, optional
        Folder of candidate lists.
    client : distributed.Client, optional
        Dask client to run on.
    """

    reranker: "DependencyReranker"
    steps: Path | None = None
    cache: str | os.PathLike[str] | None = None
    client: Client | None = None

    def train(self, trees: Sequence[DepTree], dev: Sequence[DepTree] | None) -> LearntReranker:
        """Train on a treebank: first the parser if necessary, then the reranker."""
        options, steps = self.reranker, self.steps
        if len(trees) == 1:
            raise InputError("there is one training sentence; expected at least two for jackknife folds")
        parser = self._fitted_parser(trees, dev)
        lists = jackknife_lists(
            parser.with_params(fold_by=resolve_fold_by(parser.fold_by, trees, dev)),
            trees,
            k=options.k,
            folds=min(options.folds, len(trees)),
            epochs=options.fold_epochs,
            n_jobs=options.n_jobs,
            client=self.client,
            cache=self.cache if self.cache is not None else steps / "lists" if steps else None,
        )
        gold = [parser.lifted(tree).heads for tree in trees]
        uas, oracle = lists.uas(gold)
        report(
            f"candidate lists of {len(lists)} sentences: UAS {uas:.2f} of the first trees, "
            f"oracle UAS {oracle:.2f} with k = {options.k}"
        )
        training, tuning, tuning_gold = self._divide(parser, lists, gold, dev)
        if dev:
            dev_uas = tuning.uas(tuning_gold)[0]
            report(
                f"candidate lists of the dev set: UAS {dev_uas:.2f} of the first trees; "
                f"the UAS of the training lists differs by {uas - dev_uas:+.2f}"
            )
        chosen = {name: value for name, value in options.result_params().items() if name not in TUNED}
        identity = fingerprint(list(chosen.items()), trees, dev or [])
        kept = Checkpoint(steps / "mining", identity) if steps else None
        scorer = self._learn(parser, training, kept)
        return self._tune(
            LearntReranker(parser, scorer, 1.0, parser.scale_, oracle, uas, np.nan, np.nan, True),
            tuning,
            tuning_gold,
        )

    def _fitted_parser(self, trees: Sequence[DepTree], dev: Sequence[DepTree] | None) -> DependencyParser:
        options = self.reranker
        parser = options.parser or DependencyParser(random_state=options.random_state, n_jobs=options.n_jobs)
        if parser.is_fitted:
            return parser
        folder = self.steps / "parser" if self.steps else None
        return parser.with_params().fit(trees, dev, checkpoint=folder, client=self.client)

    def _divide(
        self,
        parser: DependencyParser,
        lists: CandidateLists,
        gold: Sequence[IntArray],
        dev: Sequence[DepTree] | None,
    ) -> tuple[TrainingLists, CandidateLists, list[IntArray]]:
        """Return lists for training and for tuning; the tuning lists are from the dev set if there is one."""
        if dev:
            tuning = CandidateLists.from_structures(parser.structures(dev, self.reranker.k))
            return self._with_target(lists, gold), tuning, [parser.lifted(tree).heads for tree in dev]
        order = np.random.default_rng(self.reranker.random_state).permutation(len(lists))
        n_aside = max(1, int(len(lists) * HELD_OUT_SHARE))
        aside, rest = np.sort(order[:n_aside]).tolist(), np.sort(order[n_aside:]).tolist()
        training = self._with_target(lists.select(rest), [gold[number] for number in rest])
        return training, lists.select(aside), [gold[number] for number in aside]

    def _with_target(self, lists: CandidateLists, gold: Sequence[IntArray]) -> TrainingLists:
        return lists.with_gold(gold) if self.reranker.target == "gold" else lists.with_best(gold)

    def _learn(
        self,
        parser: DependencyParser,
        training: TrainingLists,
        kept: Checkpoint | None,
    ) -> "ListScorer":
        lists, right = training.lists, training.right
        what = "was added to" if self.reranker.target == "gold" else "is missing in"
        report(f"the gold tree {what} {training.n_missing} of {len(lists)} lists")
        if self.reranker.learner == "kernel":
            degree = None if self.reranker.space == "subtree" else self._degree
            # Importing scikit-learn takes longer than parsing a file without it.
            from treewright.rerank.kernelized import KernelScorer

            kernel_scorer = KernelScorer(
                degree,
                chunks=self.reranker.chunks,
                epochs=self.reranker.kernel_epochs,
                decay=self.reranker.decay,
                normalize=self.reranker.normalize,
                n_jobs=self.reranker.n_jobs,
                random_state=self.reranker.random_state,
            )
            return kernel_scorer.fit(lists, right, client=self.client)
        if self.reranker.learner == "network":
            from treewright.rerank.network_kernel import NetworkKernelScorer

            random_state = self.reranker.random_state
            return NetworkKernelScorer(random_state=random_state).attach(parser).fit(lists, right)
        problem = list_problem(lists.indptr, right, base_scores=lists.scores * parser.scale_)
        scorer = LinearScorer(
            self._features(),
            ranker=self.reranker.ranker,
            epochs=self.reranker.epochs,
            mine_with_base=self.reranker.mine_with_base,
            purity=self.reranker.purity,
            light_share=self.reranker.light_share,
            random_state=self.reranker.random_state,
        )
        return scorer.fit(lists, problem, checkpoint=kept, client=self.client)

    @property
    def _degree(self) -> int:
        return DEGREES[self.reranker.space] if self.reranker.degree is None else self.reranker.degree

    def _features(self) -> ListFeatures:
        options = self.reranker
        if options.space == "template":
            return HandFeatures()
        has_rounds = options.max_iter > 1
        miner = GradientMiner(
            degree=self._degree,
            threshold=options.threshold,
            max_iter=options.max_iter,
            step=options.step,
            refine=(REFINING if has_rounds else 0) if options.refine == "auto" else options.refine,
            pretrain_order=options.pretrain_order,
            tol=options.tol,
            path=has_rounds if options.path == "auto" else options.path,
            random_state=options.random_state,
        )
        if options.space == "subtree":
            return SubtreeFeatures(
                miner,
                copies=options.copies,
                filter_memory=options.filter_memory,
                memory_limit=options.memory_limit,
                n_jobs=options.n_jobs,
            )
        budget = LARGE_BUDGET if self._degree <= 2 else BUDGET
        return ConjunctionFeatures(
            miner, budget=budget, filter_memory=options.filter_memory, n_jobs=options.n_jobs
        )

    def _tune(
        self, learnt: LearntReranker, lists: CandidateLists, gold: Sequence[IntArray]
    ) -> LearntReranker:
        """Tune the weight of the reranker and calibrate probabilities on held-out sentences."""
        trials = learnt.scorer.trials(lists)
        betas, random_state = self.reranker.betas, self.reranker.random_state
        found = tune(lists, gold, trials, betas=betas, random_state=random_state)
        learnt.scorer.choose(found.number)
        level = self.reranker.significance_level
        is_trusted = level is None or level == 1 or found.is_significant(level)
        learnt = learnt._replace(gain=found.gain, p_value=found.p_value, is_trusted=is_trusted)
        is_right = lists.n_right(gold) == np.repeat([len(each) for each in gold], np.diff(lists.indptr))
        final = lists.scores  # already calibrated by the parser
        if is_trusted:
            final = combine(lists, trials[found.number], found.beta)
            learnt = learnt._replace(beta=found.beta, scale=choose_scale(lists, final, is_right))
        best = lists.best(final)
        probabilities = np.clip(divide_mass(lists, learnt.scale * final)[best], 0, 1)
        error = reliability(probabilities, is_right[best]).error
        report(f"tuning: {found}; calibration error of whole trees {error:.4f}")
        if not is_trusted:
            report(f"the gain is not significant at {level:g}: the parser's ranking is used")
        return learnt
