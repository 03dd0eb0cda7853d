"""A classifier by boosted trees under an L1 penalty, for scikit-learn.

Its leaves are conjunctions of features that are present or absent; see `treewright.learn.boosting`.
"""

import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_feature_names_in

from treewright._typing import FloatArray, Integers
from treewright._validate import check_integer, check_number
from treewright.errors import InputError
from treewright.learn.boosting import BoostedTrees, CsrExamples, TreeRecord
from treewright.learn.trees import ForestField, join_trees, score_rows
from treewright.mining.binary_estimator import BinaryEstimator
from treewright.mining.classifier import INTERCEPT, Explanation, Reason
from treewright.mining.estimator import choose, hold_out
from treewright.model import ListOf, Value, expect, is_within, saved
from treewright.native.learn.boosting import DecisionForest, DecisionTree
from treewright.progress import Task, report, task
from treewright.scale import map_jobs

PATIENCE = 5
"""Penalties without a lower loss on held-out samples after which lower ones are not tried."""
SMALLEST_SHARE = 1e-4
"""The lowest penalty that is tried, as a share of the first."""
AfterTree = Callable[[TreeRecord], None]


class PenaltyStep(NamedTuple):
    """A penalty that was tried, the mean loss on other samples, and the leaves that were not zero."""

    penalty: float
    loss: float
    n_nonzero: int


class L1BoostedTrees(ClassifierMixin, BinaryEstimator):  # type: ignore[misc]
    """Classifies by decision trees whose leaves are few, since each pays for its weight.

    Trees are added one by one, each to lower the loss of a logistic model and the sum of the absolute values
    of its leaves times a penalty. The penalty falls until it is that which was asked for. With more than two
    classes, each has trees of its own, against all others.

    Parameters
    ----------
    penalty : float or "auto"
        The last penalty: the weight of examples by which a leaf must tell classes apart. "auto" takes the
        best for samples held out.
    max_trees : int
        Trees of a class at the most.
    eta : float
        The share to which the penalty falls when no tree gains.
    sample_size : int, optional
        Samples on which each tree is built, drawn by what they weigh; its leaves are weighed on all. Without
        it, trees are built on all.
    validation_fraction : float
        The share of samples that is held out to choose the penalty.
    n_jobs : int
        Threads, for classes or, where there are two of these, for samples.
    random_state : int
        Same seed, same model, whatever `n_jobs`.

    Attributes
    ----------
    classes_ : ndarray
    penalty_ : float
        The last penalty.
    n_trees_ : int
        Trees with leaves that are not zero, of all classes.
    n_nonzero_ : int
        Those leaves.
    path_ : list of list of TreeRecord
        How each tree was grown, for each class, or for the second of two.
    steps_ : list of PenaltyStep
        The penalties that were tried on samples held out.
    forests_ : list of DecisionForest
        The trees of each class, or of the second of two.

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
        steps_=Value(
            encode=lambda steps: [list(step) for step in steps],
            decode=lambda steps: [PenaltyStep(*step) for step in steps],
        ),
        path_=Value(
            encode=lambda path: [[record.as_list() for record in records] for records in path],
            decode=lambda path: [[TreeRecord.from_list(record) for record in records] for records in path],
        ),
        forests_=ListOf(ForestField()),
    )

    def __init__(
        self,
        *,
        penalty: float | str = "auto",
        max_trees: int = 1000,
        eta: float = 0.9,
        sample_size: int | None = None,
        validation_fraction: float = 0.2,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.penalty = penalty
        self.max_trees = max_trees
        self.eta = eta
        self.sample_size = sample_size
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:  # noqa: ANN401
        """Grow trees.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Of zeros and ones.
        y : array, (n_samples,)
            Labels of any kind.
        """
        self._check_parameters()
        rows, _, labels = self._check_samples(X, y)
        self.steps_: list[PenaltyStep] = []
        with task("choosing the penalty", unit="trees") as counted:
            self.penalty_ = self._choose_penalty(rows, labels, _counting(counted))
        ensembles = self._ensembles(rows, labels)
        with task("growing trees", unit="trees") as counted:
            after_tree = _counting(counted)
            is_done = map_jobs(
                lambda each: self._grow(each, self.penalty_, after_tree), ensembles, n_jobs=self.n_jobs
            )
        if self.penalty != "auto" and not all(is_done):
            found = f"{self.max_trees} trees are not enough for a penalty of {self.penalty_:g}"
            warnings.warn(f"{found}; a larger max_trees is", ConvergenceWarning, stacklevel=2)
        self.forests_ = [join_trees(each.trees) for each in ensembles]
        self.path_ = [each.records for each in ensembles]
        self._count()
        return self

    def _count(self) -> None:
        self.n_trees_ = sum(len(each.roots) for each in self.forests_)
        self.n_nonzero_ = sum(int(np.count_nonzero(each.nodes.values)) for each in self.forests_)

    def _check_parameters(self) -> None:
        if self.penalty != "auto":
            if isinstance(self.penalty, str):
                raise InputError(f'penalty is {self.penalty!r}; expected a number or "auto"')
            check_number("penalty", self.penalty, low=1e-9, high=1e12)
        check_integer("max_trees", self.max_trees, minimum=1)
        check_number("eta", self.eta, low=0.1, high=0.98)
        if self.sample_size is not None:
            check_integer("sample_size", self.sample_size, minimum=1)
        check_number("validation_fraction", self.validation_fraction, low=0.01, high=0.9)
        check_integer("n_jobs", self.n_jobs, minimum=1)
        check_integer("random_state", self.random_state)

    def _ensembles(self, rows: csr_matrix, labels: Integers) -> list[BoostedTrees]:
        """Return an ensemble without trees for each class, or for the second of two."""
        signs = self._signs(labels)
        examples = CsrExamples(rows, n_jobs=self.n_jobs if len(signs) == 1 else 1)
        options = {"eta": float(self.eta), "sample_size": self.sample_size}
        return [
            BoostedTrees(examples, each, random_state=self.random_state + number, **options)  # type: ignore[arg-type]
            for number, each in enumerate(signs)
        ]

    def _signs(self, labels: Integers) -> list[npt.NDArray[np.int8]]:
        chosen = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return [np.where(labels == each, 1, -1).astype(np.int8) for each in chosen]

    def _grow(self, ensemble: BoostedTrees, penalty: float, after_tree: AfterTree) -> bool:
        return ensemble.grow_to(penalty, max_trees=self.max_trees, after_tree=after_tree)

    def _choose_penalty(self, rows: csr_matrix, labels: Integers, after_tree: AfterTree) -> float:
        """Return the penalty, which may have to be that of the least loss on samples held out.

        All classes go down the same penalties, and share the one that is chosen.
        """
        if self.penalty != "auto":
            return float(self.penalty)
        train, held_out = hold_out(labels, self.validation_fraction, random_state=self.random_state)
        paths = [
            _HeldOutPath(ensemble, rows[held_out], signs)
            for ensemble, signs in zip(
                self._ensembles(rows[train], labels[train]), self._signs(labels[held_out]), strict=True
            )
        ]
        first = max(path.first_penalty() for path in paths)
        best, penalty = (sum(path.loss() for path in paths), first), first
        n_worse = 0
        while n_worse < PATIENCE and penalty > SMALLEST_SHARE * first and first > 0:
            penalty *= self.eta
            follow = [(path, penalty, self.max_trees, after_tree) for path in paths]
            is_open = map_jobs(lambda each: each[0].follow(*each[1:]), follow, n_jobs=self.n_jobs)
            loss = sum(path.loss() for path in paths)
            n_nonzero = sum(path.ensemble.n_nonzero for path in paths)
            self.steps_.append(PenaltyStep(penalty, loss, n_nonzero))
            n_worse = 0 if loss < best[0] else n_worse + 1
            best = min(best, (loss, penalty))
            if not any(is_open):
                break
        # Gradients grow with the samples, and so must the penalty for all of them.
        return max(best[1] * len(labels) / len(train), 1e-9)

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the score of each class, or of the second of two."""
        return self._score(self._check_rows(X))

    def _score(self, rows: csr_matrix) -> FloatArray:
        scores = [score_rows(rows, forest) for forest in self.forests_]
        return scores[0] if len(scores) == 1 else np.stack(scores, axis=1)

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        """Return the class of each row."""
        numbers = choose(self.decision_function(X))
        predicted: npt.NDArray[Any] = self.classes_[numbers]
        return predicted

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the probability of each class.

        With more than two classes, it is that against all others, divided by the sum for all.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([expit(-scores), expit(scores)], axis=1)
        # Where all are very low, the differences between their logarithms are still right.
        logarithms = -np.logaddexp(0, -scores)
        shares = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
        probabilities: FloatArray = shares / shares.sum(axis=1, keepdims=True)
        return probabilities

    def explain(self, X: Any) -> list[Explanation]:  # noqa: ANN401
        """Return, for each row, the conjunctions behind its prediction with what their leaves add.

        A conjunction that several trees have is there once; one of nothing is the intercept. A weight above
        zero speaks for the predicted class. The weights add up to the score of the class.
        """
        rows = self._check_rows(X)
        names = list(map(str, _check_feature_names_in(self)))
        explanations = []
        for row, predicted in enumerate(choose(self._score(rows))):
            present = set(rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tolist())
            is_first_of_two = len(self.forests_) == 1 and predicted == 0
            added = _add_leaves(self.forests_[predicted if len(self.forests_) > 1 else 0], present)
            sign = -1.0 if is_first_of_two else 1.0
            reasons = [Reason(_name(path, names), sign * value) for path, value in added.items()]
            reasons.sort(key=lambda reason: -abs(reason.weight))
            score = sum(reason.weight for reason in reasons)
            explanations.append(Explanation(self.classes_[predicted], score, reasons))
        return explanations

    def check_fitted_state(self) -> None:
        """Check that there are trees for all classes, and that they ask for features that there are."""
        super().check_fitted_state()
        nforests_ = 1 if len(self.classes_) == 2 else len(self.classes_)
        expect(len(self.forests_) == len(self.path_) == nforests_, "trees for each class")
        for forest in self.forests_:
            expect(is_within(forest.nodes.features, self.n_features_in_, low=-1), "splits by features")

    def restore(self) -> None:
        """Count trees and leaves."""
        self._count()


class _HeldOutPath:
    """An ensemble that grows, with its scores on samples it does not learn from."""

    def __init__(self, ensemble: BoostedTrees, rows: csr_matrix, signs: npt.NDArray[np.int8]) -> None:
        self.ensemble = ensemble
        self._rows, self._signs = rows, signs
        self._scores = np.zeros(len(signs))
        self._n_scored = 0

    def first_penalty(self) -> float:
        """Return the largest penalty under which nothing gains."""
        self.ensemble.grow()
        return self.ensemble.largest or 0.0

    def follow(self, penalty: float, max_trees: int, after_tree: AfterTree) -> bool:
        """Go down to a penalty, and tell whether there can be more trees."""
        self.ensemble.grow_to(penalty, max_trees=max_trees, after_tree=after_tree)
        new: list[DecisionTree] = self.ensemble.trees[self._n_scored :]
        self._scores += score_rows(self._rows, join_trees(new))
        self._n_scored += len(new)
        return len(self.ensemble.records) < max_trees

    def loss(self) -> float:
        """Return the mean loss."""
        return float(np.logaddexp(0, -self._signs * self._scores).mean())


def _counting(counted: Task) -> AfterTree:
    """Return what counts and reports trees."""

    def after_tree(record: TreeRecord) -> None:
        counted.advance()
        report(str(record), record)

    return after_tree


def _add_leaves(forest: DecisionForest, present: set[int]) -> dict[tuple[tuple[int, bool], ...], float]:
    """Return what leaves add to the score of a row, by what leads to them: features that are there or not."""
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
    """Return a conjunction as ``a & not b``, what is present first."""
    ranked = sorted(path, key=lambda each: not each[1])
    return " & ".join(names[each] if there else f"not {names[each]}" for each, there in ranked) or INTERCEPT
