"""How a reranker learns, step by step: which lists, which features, and how much it may say in the end."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Union

import numpy as np

from treewright._validate import check_params
from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.metrics.calibration import reliability
from treewright.mining.gradient import GradientMiner
from treewright.mining.problem import list_problem
from treewright.parsing.dependency.parser import DependencyParser
from treewright.rerank.candidates import CandidateLists, FloatArray, IntArray, TrainingLists
from treewright.rerank.features import ConjunctionFeatures, HandFeatures, ListFeatures, SubtreeFeatures
from treewright.rerank.linear import LinearScorer
from treewright.rerank.tuning import choose_scale, combine, divide_mass, tune
from treewright.scale import Client

if TYPE_CHECKING:
    from treewright.rerank.kernelized import KernelScorer

DEGREES = {"subtree": 3, "polynomial": 2, "template": 1}
"""Highest orders of features without a choice."""
HELD_OUT_SHARE = 0.1
"""Of the lists, to find out how much the parser's score counts where there is no dev set."""
LARGE_BUDGET, BUDGET = 3_000_000_000, 300_000_000
"""Conjunctions that are counted in one order at the most: of two features, of more."""
REFINING = 10
"""Passes over the lists between two rounds of mining."""


class RerankerTraining:
    """The steps by which a `DependencyReranker`, whose options these are, learns."""

    parser: DependencyParser | None
    parser_: DependencyParser
    space: str
    learner: str
    degree: int | None
    threshold: float
    k: int
    folds: int
    target: str
    copies: int | None
    max_iter: int
    ranker: str
    epochs: int
    chunks: int
    significance_level: float | None
    random_state: int
    n_jobs: int
    _scorer: Union[LinearScorer, "KernelScorer"]

    def _check(self) -> None:
        check_params(self)
        if self.space == "template" and self.learner == "kernel":
            raise InputError("learner is 'kernel' and space 'template'; expected 'subtree' or 'polynomial'")
        if self.parser is not None and not isinstance(self.parser, DependencyParser):
            raise InputError(f"parser is {type(self.parser).__name__}; expected a DependencyParser")

    def _fitted_parser(
        self,
        trees: Sequence[DepTree],
        dev: Sequence[DepTree] | None,
        tell: Callable[[str], None],
        steps: Path | None,
        client: Client | None,
    ) -> DependencyParser:
        parser = self.parser or DependencyParser(random_state=self.random_state, n_jobs=self.n_jobs)
        if parser.is_fitted:
            return parser
        folder = steps / "parser" if steps else None
        return parser.untrained().fit(trees, dev, progress=tell, checkpoint=folder, client=client)

    def _describe_lists(
        self, lists: CandidateLists, gold: Sequence[IntArray], tell: Callable[[str], None]
    ) -> None:
        self.jackknife_uas_, self.oracle_ = lists.uas(gold)
        tell(
            f"lists of {len(lists)} sentences: UAS {self.jackknife_uas_:.2f} of the first trees, "
            f"{self.oracle_:.2f} of the best of up to {self.k}"
        )

    def _divide(
        self, lists: CandidateLists, gold: Sequence[IntArray], dev: Sequence[DepTree] | None
    ) -> tuple[TrainingLists, CandidateLists, list[IntArray]]:
        """Return lists to learn from and lists to tune with, those of the dev set if there is one."""
        if dev:
            tuning = CandidateLists.from_structures(self.parser_.structures(dev, self.k))
            return self._with_target(lists, gold), tuning, [self.parser_.lifted(tree).heads for tree in dev]
        order = np.random.default_rng(self.random_state).permutation(len(lists))
        n_aside = max(1, int(len(lists) * HELD_OUT_SHARE))
        aside, rest = np.sort(order[:n_aside]).tolist(), np.sort(order[n_aside:]).tolist()
        training = self._with_target(lists.select(rest), [gold[number] for number in rest])
        return training, lists.select(aside), [gold[number] for number in aside]

    def _with_target(self, lists: CandidateLists, gold: Sequence[IntArray]) -> TrainingLists:
        return lists.with_gold(gold) if self.target == "gold" else lists.with_best(gold)

    def _learn(
        self,
        training: TrainingLists,
        tell: Callable[[str], None],
        kept: Checkpoint | None,
        client: Client | None,
    ) -> Union[LinearScorer, "KernelScorer"]:
        lists, right = training.lists, training.right
        what = "was added to" if self.target == "gold" else "is missing in"
        tell(f"the gold tree {what} {training.n_missing} of {len(lists)} lists")
        if self.learner == "kernel":
            # Imports scikit-learn, which takes longer than to parse a file without it.
            from treewright.rerank.kernelized import KernelScorer

            degree = None if self.space == "subtree" else self._degree
            options = {"chunks": self.chunks, "n_jobs": self.n_jobs, "random_state": self.random_state}
            return KernelScorer(degree, **options).fit(lists, right, progress=tell, client=client)
        problem = list_problem(lists.first, right, given=lists.scores * self.parser_.scale_)
        scorer = LinearScorer(
            self.space,
            self._features(),
            ranker=self.ranker,
            epochs=self.epochs,
            random_state=self.random_state,
        )
        return scorer.fit(lists, problem, progress=tell, checkpoint=kept, client=client)

    @property
    def _degree(self) -> int:
        return DEGREES[self.space] if self.degree is None else self.degree

    def _features(self) -> ListFeatures:
        miner = GradientMiner(
            degree=self._degree,
            threshold=self.threshold,
            max_iter=self.max_iter,
            path=self.max_iter > 1,
            refine=REFINING if self.max_iter > 1 else 0,
            random_state=self.random_state,
        )
        if self.space == "subtree":
            return SubtreeFeatures(miner, copies=self.copies, n_jobs=self.n_jobs)
        if self.space == "polynomial":
            budget = LARGE_BUDGET if self._degree <= 2 else BUDGET
            return ConjunctionFeatures(miner, budget=budget, n_jobs=self.n_jobs)
        return HandFeatures()

    def _tune(self, lists: CandidateLists, gold: Sequence[IntArray], tell: Callable[[str], None]) -> None:
        """Find out on other sentences how much the reranker counts, if at all, and how probable trees are."""
        trials = self._scorer.trials(lists)
        found = tune(lists, gold, trials, random_state=self.random_state)
        self._scorer.choose(found.number)
        self.gain_, self.p_value_ = found.gain, found.p_value
        level = self.significance_level
        self.is_trusted_ = level is None or level == 1 or found.is_significant(level)
        is_right = lists.n_right(gold) == np.repeat([len(each) for each in gold], np.diff(lists.first))
        # The parser has found its own scale.
        self.beta_, self.scale_, final = 1.0, self.parser_.scale_, lists.scores
        if self.is_trusted_:
            self.beta_, final = found.beta, combine(lists, trials[found.number], found.beta)
            self.scale_ = choose_scale(lists, final, is_right)
        best = lists.best(final)
        probabilities = np.clip(divide_mass(lists, self.scale_ * final)[best], 0, 1)
        error = reliability(probabilities, is_right[best]).error
        tell(f"tuning: {found}; calibration error of whole trees {error:.4f}")
        if not self.is_trusted_:
            tell(f"the gain is not significant at {level:g}: trees are ranked as by the parser")

    def _votes(self, lists: CandidateLists) -> FloatArray:
        """Return what the reranker says of candidates: nothing, if it is not trusted."""
        return self._scorer.score(lists) if self.is_trusted_ else np.zeros((lists.n_candidates, 1))
