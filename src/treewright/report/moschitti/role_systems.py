"""Role classifiers, trained and tested one by one; results are kept."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np

from treewright._typing import Range
from treewright.kernels.machines import TreeKernelClassifier
from treewright.metrics.roles import RoleScore
from treewright.metrics.significance import SignificanceResult, accuracy_significance
from treewright.progress import report
from treewright.report import show
from treewright.report.experiment import Inputs, ThreadedSettings, choose_rows, given_options
from treewright.report.moschitti.arguments import KeptArguments, RoleCorpus, read_arguments, write_arguments
from treewright.report.separate_process import LostProcessError, Values, peak_memory, run_alone
from treewright.report.store import make_name
from treewright.srl.arguments import Argument, merge_adjuncts
from treewright.srl.features import SETS
from treewright.srl.linear import MOST_ROUNDS, LinearMachine
from treewright.srl.roles import COSTS, MINED, SUMS, TREE_COST, TREE_KERNELS, RoleClassifier

MERGED, SEPARATE = "merged", "separate"
EDITION = 2
"""Version of the training code; increase it to invalidate stored results."""
WITHOUT_RESULT = ("cache_memory",)
"""Options that do not affect results."""


class RoleSystem(NamedTuple):
    """A row of a table: a kernel, and the features of its linear part if it has one."""

    title: str
    kernel: str
    features: str | None

    @property
    def base(self) -> str:
        """The baseline: the linear system with the same features."""
        return "linear-extended" if self.features == "extended" else "linear"

    def make(
        self,
        adjuncts: str,
        *,
        random_state: int,
        n_jobs: int = 1,
        weight: float | None = None,
        C: float | None = None,  # noqa: N803
    ) -> RoleClassifier:
        """Return an unfitted classifier; `weight` is the weight of the linear part, `C` the cost of SVMs."""
        options: Values = {
            "kernel": self.kernel,
            "features": self.features or "standard",
            "adjuncts": adjuncts,
        }
        if weight is not None and self.kernel in SUMS:
            options["weight"] = weight
        if C is not None and self.kernel != MINED:
            options["C"] = C
        return RoleClassifier(random_state=random_state, n_jobs=n_jobs, **options)


SYSTEMS = {
    "linear": RoleSystem("linear", "linear", "standard"),
    "st": RoleSystem("ST", "st", None),
    "sst": RoleSystem("SST", "sst", None),
    "pt": RoleSystem("PT", "pt", None),
    "linear+st": RoleSystem("linear + ST", "linear+st", "standard"),
    "linear+sst": RoleSystem("linear + SST", "linear+sst", "standard"),
    "linear+pt": RoleSystem("linear + PT", "linear+pt", "standard"),
    "linear-extended": RoleSystem("linear, extended", "linear", "extended"),
    "linear-extended+sst": RoleSystem("linear, extended + SST", "linear+sst", "extended"),
    "fragments": RoleSystem("fragments of SST", "fragments", None),
    "linear-extended+fragments": RoleSystem("linear, extended + fragments", "linear+fragments", "extended"),
    "mined": RoleSystem("mined conjunctions", "mined", "standard"),
}


@dataclass(frozen=True)
class RoleSettings(ThreadedSettings):
    """Settings of experiments with semantic roles.

    Parameters
    ----------
    systems : tuple of str, optional
        Rows of the table, such as linear,sst (default: all).
    weight : float, optional
        Weight of the linear part in sums of kernels (default: the classifier's).
    C : float, optional
        Inverse regularisation strength, except for mined conjunctions (default: depends on the kernel).
    """

    systems: tuple[str, ...] | None = None
    weight: Annotated[float, Range(1e-6, 1e6)] | None = None
    C: Annotated[float, Range(1e-9, 1e9)] | None = None

    @property
    def learning(self) -> Values:
        """Options of the classifiers that replace their defaults."""
        return given_options(self, ("weight", "C"))

    def choose_systems(self, default: Sequence[str] | None = None) -> list[str]:
        """Return the names of systems, including their baselines."""
        wanted = self.systems or default
        return choose_rows(
            tuple(SYSTEMS), wanted, always=[SYSTEMS[one].base for one in wanted or () if one in SYSTEMS]
        )


@dataclass(frozen=True)
class AdjunctSettings(RoleSettings):
    """Settings of experiments with two treatments of adjuncts.

    Parameters
    ----------
    adjuncts : {"both", "merged", "separate"}
        Treat all kinds of ARGM as one role (merged), each as its own role (separate), or both.
    """

    adjuncts: Literal["both", "merged", "separate"] = "both"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The requested treatments of adjuncts."""
        return (MERGED, SEPARATE) if self.adjuncts == "both" else (self.adjuncts,)


class RoleBench:
    """Arguments for training and testing systems, each in a separate process.

    Predictions are stored under a fingerprint of the arguments and all relevant options, and reused.
    """

    def __init__(self, corpus: RoleCorpus, settings: RoleSettings, inputs: Inputs) -> None:
        self.corpus, self.settings = corpus, settings
        self.store = inputs.store
        self.path = write_arguments(corpus, inputs.store)

    def outcome(self, name: str, adjuncts: str, n_sentences: int | None = None) -> Values:
        """Return the predictions of a system for the test arguments, and facts about it.

        Parameters
        ----------
        name : str
            One of `SYSTEMS`.
        adjuncts : {"merged", "separate"}
            Treatment of adjuncts.
        n_sentences : int, optional
            Number of training sentences, chosen at random (by default, all).

        Returns
        -------
        dict
            ``predicted``, ``seconds``, ``test_seconds``, ``memory``, ``size`` and ``n_arguments``; or only
            ``failure``, which is not stored.
        """
        if n_sentences == len(self.corpus.train.trees):
            n_sentences = None
        system, settings = SYSTEMS[name], self.settings
        kept_as = self._name(system, adjuncts, n_sentences)
        if (kept := self.store.get(kept_as)) is not None:
            return kept
        title = f"{self.corpus.name}, {system.title}, adjuncts {adjuncts}"
        share = f"{n_sentences:,} sentences" if n_sentences else "all sentences"
        report(f"{title}: training on {share}")
        task = {
            "arguments": str(self.path),
            "system": name,
            "adjuncts": adjuncts,
            "n_sentences": n_sentences,
            "random_state": settings.random_state,
            "n_jobs": settings.n_jobs,
            "learning": settings.learning,
        }
        try:
            found = run_alone(f"{__name__}:train_roles", task)
        except LostProcessError as error:
            return {"failure": str(error)}
        accuracy = self.accuracy(found["predicted"], adjuncts)
        report(f"{title}: {accuracy:.2f} after {show.time(found['seconds'])}")
        return self.store.put(kept_as, found)

    def labels(self, adjuncts: str) -> list[str]:
        """Return the gold roles of the test arguments."""
        return self._labels[adjuncts]

    @cached_property
    def _labels(self) -> dict[str, list[str]]:
        separate = [str(one.label) for one in self.corpus.test.arguments]
        return {SEPARATE: separate, MERGED: list(map(merge_adjuncts, separate))}

    def accuracy(self, predicted: Sequence[str], adjuncts: str) -> float:
        """Return the accuracy on arguments that are constituents, in percent."""
        return 100 * sum(self.is_right(predicted, adjuncts)) / len(predicted)

    def accuracy_of_all(self, predicted: Sequence[str], adjuncts: str) -> float:
        """Return the accuracy on all arguments; arguments that are not constituents count as errors."""
        return 100 * sum(self.is_right(predicted, adjuncts)) / self.corpus.test.n_all

    def is_right(self, predicted: Sequence[str], adjuncts: str) -> list[bool]:
        """Return, for each argument, whether its predicted role is correct."""
        return [one == other for one, other in zip(predicted, self.labels(adjuncts), strict=True)]

    def compare(self, predicted: Sequence[str], base: Sequence[str], adjuncts: str) -> SignificanceResult:
        """Test whether two systems differ significantly, swapping all arguments of a sentence together."""
        rights = (self.is_right(each, adjuncts) for each in (predicted, base))
        trees = [argument.tree for argument in self.corpus.test.arguments]
        groups = np.cumsum([False, *(one is not other for one, other in pairwise(trees))])
        return accuracy_significance(*rights, groups=groups.tolist(), random_state=self.settings.random_state)

    def scores(self, predicted: Sequence[str], adjuncts: str) -> dict[str, RoleScore]:
        """Return the scores of each role, in alphabetical order."""
        labels = self.labels(adjuncts)
        n_gold, n_predicted = Counter(labels), Counter(predicted)
        n_right = Counter(one for one, other in zip(predicted, labels, strict=True) if one == other)
        names = sorted({*n_gold, *n_predicted})
        return {name: RoleScore(n_gold[name], n_predicted[name], n_right[name]) for name in names}

    def _name(self, system: RoleSystem, adjuncts: str, n_sentences: int | None) -> str:
        made = system.make(adjuncts, random_state=self.settings.random_state, **self.settings.learning)
        left_out = (*WITHOUT_RESULT, "features")
        own = [value for name, value in made.result_params().items() if name not in left_out]
        kernels = {name: kernel.get_params() for name, kernel in TREE_KERNELS.items()}
        fixed = [COSTS, TREE_COST, MOST_ROUNDS, kernels, system.features and SETS[system.features]]
        return self.name("roles", own, fixed, n_sentences)

    def name(self, *what: object) -> str:
        """Return the name under which a result that depends on the arguments is stored."""
        return make_name(EDITION, self.path.stem, *what)


def train_roles(task: Values) -> Values:
    """Train and test the classifier that `task` describes; `run_alone` calls this function."""
    parts = read_arguments(Path(task["arguments"]))
    train = choose_arguments(parts["train"], task["n_sentences"], task["random_state"])
    system: RoleSystem = SYSTEMS[task["system"]]
    classifier = system.make(
        task["adjuncts"], random_state=task["random_state"], n_jobs=task["n_jobs"], **task["learning"]
    )
    start = time.perf_counter()
    classifier.fit(train)
    trained = time.perf_counter()
    predicted = classifier.predict(parts["test"].arguments)
    return {
        "predicted": predicted,
        "seconds": trained - start,
        "test_seconds": time.perf_counter() - trained,
        "memory": peak_memory(),
        "size": count_parameters(classifier),
        "n_arguments": len(train),
    }


def choose_arguments(part: KeptArguments, n_sentences: int | None, random_state: int) -> list[Argument]:
    """Return the arguments of `n_sentences` random sentences; all if it is None."""
    if n_sentences is None:
        return part.arguments
    order = np.random.default_rng(random_state).permutation(part.n_sentences)
    return part.take(order[:n_sentences].tolist())


def count_parameters(classifier: RoleClassifier) -> int:
    """Return the number of support vectors of an SVM, or of features of a linear model."""
    model = classifier.model_
    if model is None:
        return 0
    if isinstance(model, LinearMachine):
        return len(model.coef_)
    coef = model.dual_coef_ if isinstance(model, TreeKernelClassifier) else model.coef_
    return int(coef.shape[1])
