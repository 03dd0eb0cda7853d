"""A scikit-learn classifier: boosted decision trees with an L1 penalty.

Each leaf is a conjunction of features that are present or absent; see `treewright.learn.stagewise`.
"""

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_feature_names_in

from treewright._typing import FloatArray, Integers, RandomState
from treewright._validate import check_integer, check_number, count_jobs
from treewright.errors import InputError
from treewright.learn.stagewise import StagewiseTrees, TreeStep
from treewright.learn.trees import ForestField, join_trees, score_rows
from treewright.mining.binary_estimator import BinaryEstimator
from treewright.mining.classifier import INTERCEPT, Explanation, Reason
from treewright.mining.estimator import choose, hold_out, weigh_samples
from treewright.model import Array, ListOf, Value, expect, is_within, saved, seeded
from treewright.native.learn.boosting import DecisionForest
from treewright.progress import report, task

PATIENCE = 30
"""Early-stopping patience: number of trees without a lower loss on held-out samples."""
HOPELESS = 1.05
"""Until the penalty reaches its minimum, training stops early only if the held-out loss exceeds the lowest
loss by this factor. Deep trees, which are needed to learn parity, are added late."""
LOWEST_PENALTY = 0.1
"""Minimum penalty with `penalty="auto"`."""
SHARE_FOR_CHOICE = 0.45
"""Fraction of `max_seconds` for choosing the number of trees; growing them on all samples takes longer."""


class PenaltyStep(NamedTuple):
    """The penalty of a tree, and the held-out log-loss and number of non-zero leaves after adding it."""

    penalty: float
    loss: float
    n_nonzero: int


class L1BoostedTrees(ClassifierMixin, BinaryEstimator):  # type: ignore[misc]
    """Boosted decision trees that minimise the log-loss with an L1 penalty on their leaf values.

    Trees are added one by one, each with a small learning rate. The penalty starts high, so that the first
    trees use only the strongest evidence, and falls after each tree. With more than two classes, each class
    has its own trees (one-vs-rest).

    Parameters
    ----------
    penalty : float or "auto"
        Final penalty: a leaf is zero unless the total sample weights of its classes differ by more than this.
        "auto" chooses the number of trees with the lowest log-loss on held-out samples.
    max_trees : int
        Maximum number of trees per class.
    learning_rate : float
        Factor applied to the leaf values of each tree.
    max_leaves : int
        Maximum number of leaves per tree.
    eta : float
        Factor by which the penalty is multiplied after each tree.
    sample_size : int, optional
        Number of samples on which the splits of each tree are chosen. They are drawn by priority sampling.
        Leaf values are computed from all samples. By default, splits are also chosen on all samples.
    validation_fraction : float
        Fraction of the samples to hold out for choosing the number of trees, with `penalty="auto"`.
    class_weight : dict or "balanced", optional
        Weights of the classes; "balanced" weights are inversely proportional to the class frequencies. The
        weight of a sample is multiplied by the weight of its class.
    max_seconds : float, optional
        Time limit of `fit`. When it is reached, the trees grown so far are kept, and a warning is issued.
    n_jobs : int
        Number of threads (-1: all processors), at most one per class.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls. They do not
        depend on `n_jobs`.

    Attributes
    ----------
    classes_ : ndarray, (n_classes,)
        The class labels.
    penalty_ : float
        The last penalty.
    n_trees_ : int
        Number of trees with non-zero leaves, over all classes.
    n_nonzero_ : int
        Number of non-zero leaves.
    intercept_ : ndarray of float
        The log-odds of each class before the first tree; with two classes, only of the second.
    path_ : list of list of TreeStep
        The steps of growing each tree, for each class; with two classes, only for the second.
    steps_ : list of PenaltyStep
        Log-loss on held-out samples after each tree, with `penalty="auto"`.
    forests_ : list of DecisionForest
        The trees of each class; with two classes, only of the second.

    See Also
    --------
    ConjunctionClassifier : A linear model over selected conjunctions.
    TableBinarizer : Turns numbers and categories into binary columns.

    Examples
    --------
    >>> import treewright as tw
    >>> X = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5
    >>> trees = tw.L1BoostedTrees(penalty=0.5).fit(X, ["yes", "no", "no", "no"] * 5)
    >>> trees.predict([[1, 1, 0]]).tolist()
    ['yes']
    >>> trees.explain([[1, 1, 0]])[0].reasons[0].conjunction
    'x0 & x1'
    """

    fields = saved(
        **BinaryEstimator.fields,
        penalty_=Value(float),
        intercept_=Array("f"),
        steps_=Value(
            encode=lambda steps: [list(step) for step in steps],
            decode=lambda steps: [PenaltyStep(*step) for step in steps],
        ),
        path_=Value(
            encode=lambda path: [[list(step) for step in steps] for steps in path],
            decode=lambda path: [[TreeStep(*step) for step in steps] for steps in path],
        ),
        forests_=ListOf(ForestField()),
    )

    def __init__(
        self,
        *,
        penalty: float | str = "auto",
        max_trees: int = 500,
        learning_rate: float = 0.15,
        max_leaves: int = 32,
        eta: float = 0.96,
        sample_size: int | None = None,
        validation_fraction: float = 0.2,
        class_weight: Mapping[Any, float] | str | None = None,
        max_seconds: float | None = None,
        n_jobs: int = 1,
        random_state: RandomState = 0,
    ) -> None:
        self.penalty = penalty
        self.max_trees = max_trees
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.eta = eta
        self.sample_size = sample_size
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.random_state = random_state

    @seeded
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: ANN401
        """Grow trees.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.
        y : array, (n_samples,)
            Labels of any kind.
        sample_weight : array of float, (n_samples,), optional
            Weights of the samples.
        """
        start = time.perf_counter()
        self._check_parameters()
        rows, labels, weights = self._weigh(X, y, sample_weight)
        self.steps_: list[PenaltyStep] = []
        n_trees, first = self.max_trees, _first_penalty(weights)
        if self.penalty == "auto":
            with task("choosing the number of trees", unit="trees") as counted:
                deadline = self._deadline(start, SHARE_FOR_CHOICE)
                n_trees, scale = self._choose_trees(rows, labels, weights, deadline, counted.advance)
            first, lowest = first * np.sqrt(scale), LOWEST_PENALTY * scale
        else:
            lowest = float(self.penalty)
        ensemble = self._ensemble(rows, labels, weights, first=max(first, lowest), lowest=lowest)
        deadline = self._deadline(start)
        with task("growing trees", total=n_trees, unit="trees") as counted:

            def after_round(ensemble: StagewiseTrees) -> bool:
                counted.advance()
                for steps in ensemble.steps:
                    report(str(steps[-1]), steps[-1])
                return time.perf_counter() < deadline

            is_converged = ensemble.grow_to(n_trees, after_round)
        n_grown = ensemble.n_rounds
        if n_grown < n_trees and not is_converged:
            found = (
                f"max_seconds={self.max_seconds:g} was reached after {n_grown} of {n_trees} trees per class"
            )
            warnings.warn(f"{found}; these are kept", ConvergenceWarning, stacklevel=2)
        elif self.penalty != "auto" and not is_converged:
            found = f"{self.max_trees} trees are not enough for a penalty of {lowest:g}"
            warnings.warn(f"{found}; increase max_trees", ConvergenceWarning, stacklevel=2)
        self.penalty_ = ensemble.penalty
        self.intercept_ = ensemble.intercepts
        self.forests_ = [join_trees(trees) for trees in ensemble.trees]
        self.path_ = ensemble.steps
        self._count()
        return self

    def _weigh(
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        sample_weight: Any,  # noqa: ANN401
    ) -> tuple[csr_matrix, Integers, FloatArray]:
        """Return the samples with positive weight, their class indices, and their weights."""
        rows, y, labels = self._check_samples(X, y)
        rows.sort_indices()
        weights = weigh_samples(sample_weight, self.class_weight, y, rows)
        if weights.all():
            return rows, labels, weights
        counted = np.flatnonzero(weights)
        present = np.unique(labels[counted])
        if len(present) < 2:
            raise InputError(
                f"the number of classes with a weight above zero is {len(present)}; expected at least 2"
            )
        return rows[counted], labels[counted], weights[counted]

    def _count(self) -> None:
        self.n_trees_ = sum(len(each.roots) for each in self.forests_)
        self.n_nonzero_ = sum(int(np.count_nonzero(each.nodes.values)) for each in self.forests_)

    def _check_parameters(self) -> None:
        if not isinstance(self.penalty, str):
            check_number("penalty", self.penalty, low=1e-9, high=1e12)
        elif self.penalty != "auto":
            raise InputError(f'penalty is {self.penalty!r}; expected a number or "auto"')
        check_integer("max_trees", self.max_trees, minimum=1)
        check_number("learning_rate", self.learning_rate, low=1e-6, high=1)
        check_integer("max_leaves", self.max_leaves, minimum=2)
        check_number("eta", self.eta, low=0.1, high=1)
        if self.sample_size is not None:
            check_integer("sample_size", self.sample_size, minimum=1)
        check_number("validation_fraction", self.validation_fraction, low=0.01, high=0.9)
        if self.max_seconds is not None:
            check_number("max_seconds", self.max_seconds, low=1e-3, high=1e9)
        count_jobs(self.n_jobs)

    def _deadline(self, start: float, share: float = 1.0) -> float:
        return start + share * self.max_seconds if self.max_seconds is not None else np.inf

    def _ensemble(
        self,
        rows: csr_matrix,
        labels: Integers,
        weights: FloatArray,
        *,
        first: float,
        lowest: float,
    ) -> StagewiseTrees:
        """Return an ensemble without trees, for all classes, or only for the second if there are two."""
        chosen = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return StagewiseTrees(
            rows,
            np.stack([labels == each for each in chosen]),
            weights,
            first=first,
            lowest=lowest,
            learning_rate=float(self.learning_rate),
            max_leaves=self.max_leaves,
            eta=float(self.eta),
            sample_size=self.sample_size,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def _choose_trees(
        self,
        rows: csr_matrix,
        labels: Integers,
        weights: FloatArray,
        deadline: float,
        advance: Callable[[], None],
    ) -> tuple[int, float]:
        """Return the number of trees with the lowest log-loss on held-out samples.

        Also return the total weight of all samples divided by the total weight of the training samples.
        On all samples, gradients are larger by this factor, so the penalty must be larger, too.
        """
        train, held_out = hold_out(labels, self.validation_fraction, random_state=self.random_state)
        first = max(_first_penalty(weights[train]), LOWEST_PENALTY)
        ensemble = self._ensemble(
            rows[train], labels[train], weights[train], first=first, lowest=LOWEST_PENALTY
        )
        new, gold, counts = rows[held_out], labels[held_out], weights[held_out]
        scores = np.repeat(ensemble.intercepts[:, np.newaxis], len(held_out), axis=1)
        best = (_log_loss(scores, gold, counts), 0)

        def after_round(ensemble: StagewiseTrees) -> bool:
            nonlocal best
            for each, tree in zip(scores, ensemble.last_trees, strict=True):
                if tree is not None:
                    each += score_rows(new, join_trees([tree]))
            loss = _log_loss(scores, gold, counts)
            self.steps_.append(PenaltyStep(ensemble.penalty, loss, ensemble.n_nonzero))
            best = min(best, (loss, ensemble.n_rounds))
            advance()
            is_hopeless = loss > HOPELESS * best[0] or ensemble.penalty <= LOWEST_PENALTY
            is_over = is_hopeless and ensemble.n_rounds - best[1] >= PATIENCE
            return not is_over and time.perf_counter() < deadline

        ensemble.grow_to(self.max_trees, after_round)
        return max(1, best[1]), float(weights.sum() / weights[train].sum())

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the score of each class, or only of the second if there are two.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.

        Returns
        -------
        ndarray of float, (n_samples,) or (n_samples, n_classes)
            One score per sample if there are two classes; otherwise one score per class.
        """
        return self._score(self._check_rows(X))

    def _score(self, rows: csr_matrix) -> FloatArray:
        scores = [
            intercept + score_rows(rows, forest)
            for intercept, forest in zip(self.intercept_, self.forests_, strict=True)
        ]
        return scores[0] if len(scores) == 1 else np.stack(scores, axis=1)

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        """Return the predicted class of each sample.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.

        Returns
        -------
        ndarray, (n_samples,)
            The predicted class labels.
        """
        numbers = choose(self.decision_function(X))
        predicted: npt.NDArray[Any] = self.classes_[numbers]
        return predicted

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the probability of each class.

        With more than two classes, the one-vs-rest probabilities are normalised.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.

        Returns
        -------
        ndarray of float, (n_samples, n_classes)
            Probabilities in the order of `classes_`; each row sums to 1.
        """
        scores = self.decision_function(X)
        return np.exp(_log_probabilities(scores.T if scores.ndim > 1 else scores[np.newaxis])).T

    def explain(self, X: Any) -> list[Explanation]:  # noqa: ANN401
        """Explain the prediction of each row by conjunctions with the sums of their leaf values.

        A conjunction that occurs in several trees is listed once; the empty conjunction is the intercept. A
        positive weight is evidence for the predicted class. The weights add up to the score of the class.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Binary samples.

        Returns
        -------
        list of Explanation, (n_samples,)
            The predicted class of each sample, its score, and the conjunctions with their weights, in
            descending order of absolute weight.
        """
        rows = self._check_rows(X)
        names = list(map(str, _check_feature_names_in(self)))
        explanations = []
        for row, predicted in enumerate(choose(self._score(rows))):
            present = set(rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tolist())
            is_first_of_two = len(self.forests_) == 1 and predicted == 0
            number = predicted if len(self.forests_) > 1 else 0
            added = _add_leaves(self.forests_[number], present)
            if self.intercept_[number]:
                added[()] += float(self.intercept_[number])
            sign = -1.0 if is_first_of_two else 1.0
            reasons = [Reason(_name(path, names), sign * value) for path, value in added.items()]
            reasons.sort(key=lambda reason: -abs(reason.weight))
            score = sum(reason.weight for reason in reasons)
            explanations.append(Explanation(self.classes_[predicted], score, reasons))
        return explanations

    def check_fitted_state(self) -> None:
        """Check that there are trees for all classes, and that their features exist."""
        super().check_fitted_state()
        n_forests = 1 if len(self.classes_) == 2 else len(self.classes_)
        expect(len(self.forests_) == len(self.path_) == n_forests, "trees for each class")
        expect(len(self.intercept_) == n_forests, "an intercept for each class")
        for forest in self.forests_:
            expect(is_within(forest.nodes.features, self.n_features_in_, low=-1), "splits by features")

    def restore(self) -> None:
        """Count trees and leaves."""
        self._count()


def _first_penalty(weights: FloatArray) -> float:
    """Return the standard deviation that the gradient of all samples would have if labels were random."""
    return 0.5 * float(np.sqrt(weights.sum()))


def _log_probabilities(scores: FloatArray) -> FloatArray:
    """Return the log probability of each class, (n_classes, n_samples).

    With more than two classes, the one-vs-rest probabilities are normalised.
    """
    if len(scores) == 1:
        scores = np.concatenate([-scores, scores])
    logarithms = -np.logaddexp(0, -scores)
    # If all are very low, the differences between their logarithms are still accurate.
    logarithms -= logarithms.max(axis=0)
    normalized: FloatArray = logarithms - np.log(np.exp(logarithms).sum(axis=0))
    return normalized


def _log_loss(scores: FloatArray, labels: Integers, weights: FloatArray) -> float:
    """Return the mean log-loss."""
    right = _log_probabilities(scores)[labels, np.arange(len(labels))]
    return float(-np.average(right, weights=weights))


def _add_leaves(forest: DecisionForest, present: set[int]) -> dict[tuple[tuple[int, bool], ...], float]:
    """Return the leaf values of a row, keyed by the present and absent features on the path to the leaf."""
    added: dict[tuple[tuple[int, bool], ...], float] = defaultdict(float)
    features, goes_present, goes_absent, values = forest.nodes
    for root in forest.roots.tolist():
        node, path = root, []
        while features[node] >= 0:
            feature = int(features[node])
            path.append((feature, feature in present))
            node = (goes_present if feature in present else goes_absent)[node]
        if values[node]:
            added[tuple(sorted(path))] += float(values[node])
    return added


def _name(path: tuple[tuple[int, bool], ...], names: list[str]) -> str:
    """Return a conjunction as ``a & not b``, present features first."""
    ranked = sorted(path, key=lambda each: not each[1])
    return " & ".join(names[each] if there else f"not {names[each]}" for each, there in ranked) or INTERCEPT
