"""Parallel training of the ensembles of all labels, with a common penalty that is lowered step by step."""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from treewright._naming import named
from treewright.checkpoint import Checkpoint
from treewright.errors import InputError
from treewright.learn.boosting import BoostedTrees
from treewright.model import State
from treewright.native.learn.boosting import DecisionTree
from treewright.parsing.constituent.inferences import LabelExamples, TrainingSet
from treewright.scale import map_jobs

STEP = 0.84
"""Factor by which the penalty is lowered between two evaluations on dev; larger steps give worse parsers."""
ROUNDING = 0.005
"""Relative difference below which two penalties are considered equal."""
WARM_UP = 0.001
"""Penalty at which evaluations on dev start, as a fraction of the first penalty."""
SCHEDULE = (STEP, WARM_UP)
MOST_TREES = 1_000_000


class PenaltyReport(NamedTuple):
    """The state of training at a penalty.

    Attributes
    ----------
    penalty : float
        The penalty.
    n_trees, n_nonzero : int
        Total number of trees of all labels, and of their non-zero leaves.
    f1 : float
        F1 on the dev sentences.
    seconds : float
        Time spent on growing trees so far, summed over threads.
    lost : float
        Fraction of the total weight that belongs to examples outside the last sample, for the label with the
        most examples.
    sizes : list of int
        Number of trees of each label, in each run.
    """

    penalty: float
    n_trees: int
    n_nonzero: int
    f1: float
    seconds: float
    lost: float
    sizes: list[int]

    def __str__(self) -> str:
        return (
            f"penalty {self.penalty:.3g}: {self.n_trees} trees, {self.n_nonzero} non-zero leaves, "
            f"{self.seconds:.0f} s, dev F1 {self.f1:.2f}"
        )


class Learners:
    """An ensemble of boosted trees for each label and run.

    Parameters
    ----------
    training : TrainingSet
        The training examples.
    runs : int
        Number of training runs, each with different samples.
    eta : float
        Factor by which the penalty is lowered when no split improves the objective.
    sample_size : int
        Number of examples on which each tree is built.
    min_gain : float
        Minimum gain of a split, as a fraction of the penalty.
    slack : float
        Lower the penalty once no gradient exceeds it by more than this fraction.
    prune : bool
        Whether to undo splits that improve the objective on the sample but not on all examples.
    random_state : int
        Seed of the random number generator.
    n_jobs : int
        Number of threads (-1: all processors).
    checkpoint : Checkpoint, optional
        Checkpoint that stores each step, and from which training resumes.

    Attributes
    ----------
    history : list of PenaltyReport
        The state after each step.
    penalty : float
        Penalty of the last step; before the first step, the largest penalty at which a split improves the
        objective for any label.
    """

    def __init__(
        self,
        training: TrainingSet,
        *,
        runs: int,
        eta: float,
        sample_size: int,
        min_gain: float,
        slack: float,
        prune: bool,
        random_state: int,
        n_jobs: int,
        checkpoint: Checkpoint | None,
    ) -> None:
        self._runs, self._jobs, self._checkpoint = runs, n_jobs, checkpoint
        self._n_labels = training.n_classifiers
        examples = map_jobs(
            partial(training.examples, n_jobs=n_jobs),
            range(self._n_labels),
            n_jobs=n_jobs,
            what="making examples",
            unit="labels",
        )

        def make(number: int) -> BoostedTrees:
            mine: LabelExamples = examples[number % self._n_labels]
            found = self._load(f"learner{number}")
            if found:
                return BoostedTrees.from_state(found, mine, mine.signs, biases=mine.biases)
            run = random_state + number // self._n_labels
            return make_learner(
                mine,
                eta=eta,
                sample_size=sample_size,
                min_gain=min_gain,
                slack=slack,
                prune=prune,
                random_state=run,
            )

        found = self._load("history")
        self.history = [PenaltyReport(*step) for step in found.values["steps"]] if found else []
        self._all = map_jobs(make, range(runs * self._n_labels), n_jobs=n_jobs)
        self.penalty = self.history[-1].penalty if self.history else self._first_penalty()

    def _load(self, name: str) -> State | None:
        return self._checkpoint.load(name) if self._checkpoint else None

    def _first_penalty(self) -> float:
        """Return the largest penalty at which a split improves the objective for any label."""
        found = self._load("start")
        if found is not None:
            return float(found.values["penalty"])
        map_jobs(
            lambda learner: learner.grow(), self._all, n_jobs=self._jobs, what="first look", unit="labels"
        )
        return max(learner.largest or 0.0 for learner in self._all)

    def begin(self, lowest: float) -> None:
        """Lower the penalty until evaluations on dev start; do nothing if training resumes after that."""
        if self.history:
            return
        if self.penalty == 0:
            raise InputError(
                "nothing can be learnt from the training trees; expected constituents over words"
            )
        if self.penalty <= lowest:
            raise InputError(
                f"{named('lowest_penalty')} is {lowest!r}; expected less than {self.penalty:.3g}, because "
                "no split improves the objective at larger penalties"
            )
        if self._checkpoint:
            self._checkpoint.save("start", State("Start", {"penalty": self.penalty}, {}))
        end = max(lowest / STEP, WARM_UP * self.penalty)
        while self.penalty * STEP > end:
            self.lower(lowest)

    def count_steps(self, lowest: float) -> int:
        """Return the number of steps from the current penalty to the lowest."""
        return max(0, math.ceil(math.log(lowest / self.penalty, STEP)))

    def lower(self, lowest: float) -> None:
        """Lower the penalty by one step, and grow all ensembles until no split improves the objective."""
        self.penalty = next_penalty(self.penalty, lowest)
        # The slowest ensembles come first, so that no thread waits long at the end.
        order = sorted(self._all, key=lambda learner: -learner.n_examples * len(learner.records))
        what = f"growing trees, penalty {self.penalty:.3g}"
        map_jobs(partial(_grow_to, self.penalty), order, n_jobs=self._jobs, what=what, unit="labels")

    def look(self, f1: float) -> None:
        """Record the dev score of a step, and store the step."""
        largest = max(self._all, key=lambda learner: learner.n_examples)
        records = [record for learner in self._all for record in learner.records]
        step = PenaltyReport(
            self.penalty,
            sum(len(learner.trees) for learner in self._all),
            sum(learner.n_nonzero for learner in self._all),
            f1,
            sum(record.seconds.total for record in records),
            next((record.lost for record in reversed(largest.records) if record.lost > 0), 0.0),
            [len(learner.trees) for learner in self._all],
        )
        self.history.append(step)
        if self._checkpoint:
            for number, learner in enumerate(self._all):
                self._checkpoint.save(f"learner{number}", learner.get_state())
            steps = {"steps": [list(each) for each in self.history]}
            self._checkpoint.save("history", State("History", steps, {}))

    def forests(self, sizes: Sequence[int] | None = None) -> list[list[DecisionTree]]:
        """Return the trees of each label, averaged over runs.

        `sizes` gives the number of trees to take from each ensemble (default: all trees).
        """
        sizes = sizes or [len(learner.trees) for learner in self._all]
        forests: list[list[DecisionTree]] = [[] for _ in range(self._n_labels)]
        for number, (learner, size) in enumerate(zip(self._all, sizes, strict=True)):
            forests[number % self._n_labels] += [
                tree._replace(values=tree.values / self._runs) for tree in learner.trees[:size]
            ]
        return forests


def next_penalty(penalty: float, lowest: float) -> float:
    """Return the next lower penalty; if it is close to the lowest, return the lowest.

    Examples
    --------
    >>> next_penalty(1.0, 0.1), next_penalty(0.1 / STEP * 1.001, 0.1)
    (0.84, 0.1)
    """
    found = penalty * STEP
    return found if found > lowest * (1 + ROUNDING) else lowest


def make_learner(
    examples: LabelExamples,
    *,
    eta: float,
    sample_size: int,
    min_gain: float,
    slack: float,
    prune: bool,
    random_state: int,
) -> BoostedTrees:
    """Return an empty ensemble for the examples of a label."""
    return BoostedTrees(
        examples,
        examples.signs,
        biases=examples.biases,
        eta=eta,
        sample_size=sample_size,
        min_gain=min_gain,
        slack=slack,
        prune=prune,
        random_state=random_state,
    )


def _grow_to(penalty: float, learner: BoostedTrees) -> None:
    learner.grow_to(penalty, max_trees=MOST_TREES)
