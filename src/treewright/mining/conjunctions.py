"""Conjunctions of binary features for scikit-learn: a transformer that selects them, and a classifier."""

import os
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from treewright._validate import check_integer, check_number
from treewright.errors import InputError
from treewright.learn.perceptron import AveragedPerceptron
from treewright.mining.gradient import GradientMiner, Mined, PathStep, Progress
from treewright.mining.polynomial import PolynomialSpace, match_conjunctions
from treewright.mining.problem import FloatArray, label_problem
from treewright.persist import State, save_state

REMEDY = (
    "binarise numbers (sklearn.preprocessing.Binarizer, KBinsDiscretizer) "
    "and one-hot encode categories (OneHotEncoder)"
)
SMALLEST_THRESHOLD = 1.0
"""No threshold is tried below it: there, each conjunction that occurs at all would survive."""
INTERCEPT = "(intercept)"
FINAL_RATE = 0.3
FINAL_MARGIN = 0.5
"""Of the perceptron that a classifier ends with, per feature of a sample and in units of the mined margin."""


class Reason(NamedTuple):
    """A conjunction that is present, and what it adds to the score of the predicted class."""

    conjunction: str
    weight: float


class Explanation(NamedTuple):
    """A prediction, its score, and the reasons that add up to it, the weightiest first."""

    prediction: Any
    score: float
    reasons: list[Reason]


class _ConjunctionEstimator(BaseEstimator):  # type: ignore[misc]
    """What the transformer and the classifier share: mining, and finding conjunctions in new rows."""

    def __init__(
        self,
        *,
        degree: int = 3,
        threshold: float | str = "auto",
        max_iter: int = 20,
        step: float | str = "auto",
        refine: int = 10,
        pretrain_order: int = 0,
        tolerance: float = 1e-3,
        path: bool = True,
        validation_fraction: float = 0.2,
        memory_limit: int | None = None,
        filter_memory: int | None = None,
        jobs: int = 1,
        seed: int = 0,
    ) -> None:
        self.degree = degree
        self.threshold = threshold
        self.max_iter = max_iter
        self.step = step
        self.refine = refine
        self.pretrain_order = pretrain_order
        self.tolerance = tolerance
        self.path = path
        self.validation_fraction = validation_fraction
        self.memory_limit = memory_limit
        self.filter_memory = filter_memory
        self.jobs = jobs
        self.seed = seed

    def _mine(self, X: Any, y: Any, progress: Progress | None) -> tuple[csr_matrix, npt.NDArray[Any], Mined]:  # noqa: ANN401, N803
        """Select conjunctions; return the checked rows, their labels, and what was mined."""
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=None)  # noqa: N806
        check_classification_targets(y)
        rows = as_binary(X)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has only one class, {self.classes_[0]!r}; expected at least two")
        self.path_: list[PathStep] = []
        self.threshold_ = self._choose_threshold(rows, labels, progress)
        problem = label_problem(labels, len(self.classes_))
        mined = self._miner(self.threshold_).fit(self._space(rows), problem, progress=progress)
        self._features = mined.features
        self.conjunctions_ = [tuple(row) for each in mined.features.values() for row in each.tolist()]
        self.history_ = list(mined.iterations)
        self.n_iter_ = len(self.history_)
        if not self.conjunctions_:
            warnings.warn(
                f"no conjunction is selected with threshold {self.threshold_:g}; a lower one selects more",
                stacklevel=3,
            )
        return rows, y, mined

    def _check_parameters(self) -> None:
        check_number("validation_fraction", self.validation_fraction, low=0.01, high=0.9)
        check_integer("jobs", self.jobs, minimum=1)
        for name in ("memory_limit", "filter_memory"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), minimum=64)
        if isinstance(self.threshold, str) and self.threshold != "auto":
            raise InputError(f'threshold is {self.threshold!r}; expected a number or "auto"')
        self._miner(1 if self.threshold == "auto" else self.threshold)

    def _miner(self, threshold: float | str) -> GradientMiner:
        return GradientMiner(
            degree=self.degree,
            threshold=threshold,  # type: ignore[arg-type]
            max_iter=self.max_iter,
            step=self.step,
            refine=self.refine,
            pretrain_order=self.pretrain_order,
            tolerance=self.tolerance,
            path=self.path,
            seed=self.seed,
        )

    def _space(self, rows: csr_matrix) -> PolynomialSpace:
        return PolynomialSpace(
            rows, jobs=self.jobs, memory_limit=self.memory_limit, filter_memory=self.filter_memory
        )

    def _choose_threshold(
        self, rows: csr_matrix, labels: npt.NDArray[np.int64], progress: Progress | None
    ) -> float:
        """Return the threshold, which may have to be chosen on samples held out.

        It is the smallest that does as well as the best, but for half a standard error: a threshold too small
        selects some conjunctions too many, one too large misses what is rare.
        """
        if self.threshold != "auto":
            return float(self.threshold)
        train, held_out = self._split(labels)
        space = self._space(rows[train])

        def score(mined: Mined) -> float:
            coef, intercept = train_perceptron(
                space.match(list(mined.features.values())), labels[train], mined
            )
            found = match_conjunctions(rows[held_out], list(mined.features.values()))
            return float((choose(found @ coef.T + intercept) == labels[held_out]).mean())

        share = np.bincount(labels[held_out]).max() / len(held_out)
        enough = share + 3 * np.sqrt(share * (1 - share) / len(held_out))
        problem = label_problem(labels[train], len(self.classes_))
        miner = self._miner(SMALLEST_THRESHOLD)
        self.path_ = miner.fit_path(space, problem, score, enough=enough, progress=progress)
        if not self.path_:
            return SMALLEST_THRESHOLD
        best = max(step.score for step in self.path_)
        near = best - np.sqrt(best * (1 - best) / len(held_out)) / 2
        chosen = min(step.threshold for step in self.path_ if step.score >= near)
        # Counts grow with the samples, and so must the threshold for all of them.
        return chosen * len(labels) / len(train)

    def _split(self, labels: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        counts = np.bincount(labels)
        n_held_out = max(1, round(self.validation_fraction * len(labels)))
        can_stratify = counts.min() >= 2 and len(counts) <= min(n_held_out, len(labels) - n_held_out)
        train, held_out = train_test_split(
            np.arange(len(labels)),
            test_size=n_held_out,
            random_state=self.seed,
            stratify=labels if can_stratify else None,
        )
        return np.sort(train), np.sort(held_out)

    def _find(self, X: Any) -> csr_matrix:  # noqa: ANN401, N803
        """Return which conjunctions are present in new rows."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=None, reset=False)  # noqa: N806
        return match_conjunctions(as_binary(X), list(self._features.values())).astype(np.float64)

    def _names(self, input_features: Any = None) -> list[str]:  # noqa: ANN401
        check_is_fitted(self)
        columns = _check_feature_names_in(self, input_features)
        return [" & ".join(map(str, columns[list(each)])) for each in self.conjunctions_]

    def _more_values(self) -> dict[str, Any]:
        return {}

    def get_state(self) -> State:
        """Return all that the estimator is, for saving."""
        check_is_fitted(self)
        if self.get_params().get("final_estimator") is not None:
            raise InputError(
                f"{type(self).__name__} with a final_estimator cannot be saved; expected None, for its own"
            )
        values = {
            "parameters": self.get_params(deep=False),
            "classes": self.classes_.tolist(),
            "classes_type": self.classes_.dtype.str,
            "n_features_in": self.n_features_in_,
            "feature_names": list(getattr(self, "feature_names_in_", [])),
            "threshold": self.threshold_,
            "n_iter": self.n_iter_,
        }
        arrays: dict[str, npt.NDArray[Any]] = {"coef": self.coef_, "intercept": self.intercept_}
        arrays.update({f"order{order}": each for order, each in self._features.items()})
        return State(type(self).__name__, values, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the estimator again."""
        values = state.values
        self = cls(**values["parameters"])
        self.classes_ = np.array(values["classes"], dtype=values["classes_type"])
        self.n_features_in_ = int(values["n_features_in"])
        if values["feature_names"]:
            self.feature_names_in_ = np.array(values["feature_names"], dtype=object)
        self.threshold_ = float(values["threshold"])
        self.n_iter_ = int(values["n_iter"])
        orders = sorted(int(key.removeprefix("order")) for key in state.arrays if key.startswith("order"))
        self._features = {order: state.arrays[f"order{order}"].astype(np.int32) for order in orders}
        self.conjunctions_ = [tuple(row) for each in self._features.values() for row in each.tolist()]
        self.coef_, self.intercept_ = state.arrays["coef"], state.arrays["intercept"]
        self._restore()
        return self

    def _restore(self) -> None:
        """Make what follows from the rest of the state."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a file, which `treewright.load` reads."""
        save_state(self.get_state(), path)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


class ConjunctionMiner(TransformerMixin, _ConjunctionEstimator):  # type: ignore[misc]
    """Selects conjunctions of binary features, of any order, and turns rows into them.

    No conjunction is ever made that its parts rule out, so that the space of all of them need not fit
    anywhere; see the page on mining for how.

    Parameters
    ----------
    degree : int
        The most features in a conjunction.
    threshold : float or "auto"
        The strength of the L1 norm: a conjunction enters when it is present in more violating samples of one
        side than of the other, by more than this. Chosen on held-out samples if "auto".
    max_iter, step, refine, pretrain_order, tolerance, path
        See `GradientMiner`. ``**PAPER_SETTINGS`` are those of Qian & Liu (2015).
    validation_fraction : float
        Share of the samples that a threshold is chosen on.
    memory_limit : int, optional
        Bytes that surviving conjunctions may take in memory; the rest goes to disk, which is slower.
    filter_memory : int, optional
        Bytes for a spectral Bloom filter that candidates pass before they are counted. The result does not
        depend on it.
    sparse_output : bool
        Whether `transform` returns a sparse matrix.
    jobs : int
        Threads; the result does not depend on them.
    seed : int
        Same seed, same result.

    Attributes
    ----------
    conjunctions_ : list of tuple of int
        The columns of each selected conjunction, ascending; single features are among them.
    coef_ : ndarray of float, (n_classes or 1, n_conjunctions)
    intercept_ : ndarray of float, (n_classes or 1,)
    classes_ : ndarray
    threshold_ : float
        The threshold that was used.
    path_ : list of PathStep
        The thresholds that were tried, with accuracies on the held-out samples.
    history_ : list of IterationReport
    n_iter_ : int

    Examples
    --------
    >>> import treewright as tw
    >>> X = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5
    >>> miner = tw.ConjunctionMiner(degree=2, threshold=2).fit(X, [1, 0, 0, 0] * 5)
    >>> (0, 1) in miner.conjunctions_
    True
    """

    def __init__(
        self,
        *,
        degree: int = 3,
        threshold: float | str = "auto",
        max_iter: int = 20,
        step: float | str = "auto",
        refine: int = 10,
        pretrain_order: int = 0,
        tolerance: float = 1e-3,
        path: bool = True,
        validation_fraction: float = 0.2,
        memory_limit: int | None = None,
        filter_memory: int | None = None,
        sparse_output: bool = True,
        jobs: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__(
            degree=degree,
            threshold=threshold,
            max_iter=max_iter,
            step=step,
            refine=refine,
            pretrain_order=pretrain_order,
            tolerance=tolerance,
            path=path,
            validation_fraction=validation_fraction,
            memory_limit=memory_limit,
            filter_memory=filter_memory,
            jobs=jobs,
            seed=seed,
        )
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any, *, progress: Progress | None = None) -> Self:  # noqa: ANN401, N803
        """Select conjunctions.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Of zeros and ones.
        y : array, (n_samples,)
            Labels of any kind.
        progress : callable, optional
            Called with an `OrderReport` after each order and an `IterationReport` after each round.
        """
        _, _, mined = self._mine(X, y, progress)
        self.coef_ = np.ascontiguousarray(mined.weights.T)
        self.intercept_ = mined.intercept
        return self

    def transform(self, X: Any) -> Any:  # noqa: ANN401, N803
        """Return which of the selected conjunctions are present in each row."""
        found = self._find(X)
        return found if self.sparse_output else found.toarray()

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ANN401
        """Return the conjunctions as text, such as ``word=bank & prev=the``."""
        return np.array(self._names(input_features), dtype=object)


def _final_has(name: str) -> Any:  # noqa: ANN401
    return available_if(lambda self: self.final_estimator is not None and hasattr(self.final_estimator, name))


class ConjunctionClassifier(ClassifierMixin, _ConjunctionEstimator):  # type: ignore[misc]
    """Selects conjunctions of binary features and classifies by them.

    Parameters
    ----------
    degree, threshold, max_iter, step, refine, pretrain_order, tolerance, path, validation_fraction, \
memory_limit, filter_memory, jobs, seed
        As those of `ConjunctionMiner`.
    final_estimator : estimator, optional
        A linear classifier that is trained on the selected conjunctions. Without it, an `AveragedPerceptron`
        that starts from the weights that were mined.

    Attributes
    ----------
    conjunctions_ : list of tuple of int
        The columns of each selected conjunction, ascending; single features are among them.
    coef_ : ndarray of float, (n_classes or 1, n_conjunctions)
        Weights of the final estimator.
    intercept_ : ndarray of float, (n_classes or 1,)
    classes_ : ndarray
    final_estimator_ : estimator
    threshold_, path_, history_, n_iter_
        As those of `ConjunctionMiner`.

    Examples
    --------
    >>> import treewright as tw
    >>> X = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5
    >>> classifier = tw.ConjunctionClassifier(degree=2, threshold=2).fit(X, ["yes", "no", "no", "no"] * 5)
    >>> classifier.predict([[1, 1, 0]]).tolist()
    ['yes']
    """

    def __init__(
        self,
        *,
        degree: int = 3,
        threshold: float | str = "auto",
        final_estimator: Any = None,  # noqa: ANN401
        max_iter: int = 20,
        step: float | str = "auto",
        refine: int = 10,
        pretrain_order: int = 0,
        tolerance: float = 1e-3,
        path: bool = True,
        validation_fraction: float = 0.2,
        memory_limit: int | None = None,
        filter_memory: int | None = None,
        jobs: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__(
            degree=degree,
            threshold=threshold,
            max_iter=max_iter,
            step=step,
            refine=refine,
            pretrain_order=pretrain_order,
            tolerance=tolerance,
            path=path,
            validation_fraction=validation_fraction,
            memory_limit=memory_limit,
            filter_memory=filter_memory,
            jobs=jobs,
            seed=seed,
        )
        self.final_estimator = final_estimator

    def fit(self, X: Any, y: Any, *, progress: Progress | None = None) -> Self:  # noqa: ANN401, N803
        """Select conjunctions, and train the final estimator on them.

        Parameters
        ----------
        X : array, data frame or sparse matrix, (n_samples, n_features)
            Of zeros and ones.
        y : array, (n_samples,)
            Labels of any kind.
        progress : callable, optional
            Called with an `OrderReport` after each order and an `IterationReport` after each round.
        """
        rows, y, mined = self._mine(X, y, progress)
        found = match_conjunctions(rows, list(mined.features.values())).astype(np.float64)
        if self.final_estimator is None:
            labels = np.searchsorted(self.classes_, y)
            weights = train_perceptron(found, labels, mined, seed=self.seed)
            self.final_estimator_ = _Linear(self.classes_, *weights)
        elif mined.n_selected:
            self.final_estimator_ = clone(self.final_estimator).fit(found, y)
        else:
            raise InputError("final_estimator has no conjunctions to learn from; give a lower threshold")
        if hasattr(self.final_estimator_, "coef_"):
            self.coef_, self.intercept_ = self.final_estimator_.coef_, self.final_estimator_.intercept_
        return self

    def _restore(self) -> None:
        self.final_estimator_ = _Linear(self.classes_, self.coef_, self.intercept_)

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401, N803
        """Return the class of each row."""
        predicted: npt.NDArray[Any] = self._final().predict(self._find(X))
        return predicted

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ANN401, N803
        """Return the score of each class, or of the second of two."""
        scores: FloatArray = self._final().decision_function(self._find(X))
        return scores

    @_final_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:  # noqa: ANN401, N803
        """Return the probability of each class, if the final estimator knows it."""
        probabilities: FloatArray = self._final().predict_proba(self._find(X))
        return probabilities

    def _final(self) -> Any:  # noqa: ANN401
        check_is_fitted(self)
        return self.final_estimator_

    def explain(self, X: Any) -> list[Explanation]:  # noqa: ANN401, N803
        """Return, for each row, the conjunctions behind its prediction with their weights.

        A weight above zero speaks for the predicted class. The weights, with that of the intercept, add up to
        the score of the class.
        """
        found = self._find(X)
        if not hasattr(self, "coef_"):
            raise InputError(f"{self.final_estimator!r} has no coef_; expected a linear final_estimator")
        scores = np.atleast_1d(self.decision_function(X))
        names = self._names()
        explanations = []
        for row, predicted in enumerate(choose(scores)):
            weights = self.coef_[predicted if len(self.coef_) > 1 else 0]
            intercept = self.intercept_[predicted if len(self.coef_) > 1 else 0]
            sign = -1.0 if len(self.coef_) == 1 and predicted == 0 else 1.0
            present = found.indices[found.indptr[row] : found.indptr[row + 1]]
            reasons = [Reason(names[each], float(sign * weights[each])) for each in present if weights[each]]
            reasons.append(Reason(INTERCEPT, float(sign * intercept)))
            reasons.sort(key=lambda reason: -abs(reason.weight))
            score = sum(reason.weight for reason in reasons)
            explanations.append(Explanation(self.classes_[predicted], score, reasons))
        return explanations


class _Linear(NamedTuple):
    """A linear classifier that is already trained."""

    classes_: npt.NDArray[Any]
    coef_: FloatArray
    intercept_: FloatArray

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ANN401, N803
        scores: FloatArray = X @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401, N803
        predicted: npt.NDArray[Any] = self.classes_[choose(self.decision_function(X))]
        return predicted


def as_binary(rows: Any) -> csr_matrix:  # noqa: ANN401
    """Return a binary matrix by rows, or say which value is neither 0 nor 1."""
    if not hasattr(rows, "tocsr"):
        return _dense_as_binary(np.asarray(rows))
    matrix = csr_matrix(rows, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    wrong = np.flatnonzero(matrix.data != 1)
    if len(wrong):
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        raise _not_binary(matrix.data[wrong[0]], row, int(matrix.indices[wrong[0]]))
    return csr_matrix(
        (np.ones(matrix.nnz, dtype=np.int8), matrix.indices.astype(np.int32), matrix.indptr), matrix.shape
    )


def _dense_as_binary(rows: npt.NDArray[Any]) -> csr_matrix:
    is_one = rows == 1
    is_wrong = ~(is_one | (rows == 0))
    if is_wrong.any():
        row, column = np.argwhere(is_wrong)[0].tolist()
        raise _not_binary(rows[row, column], row, column)
    return csr_matrix(is_one.astype(np.int8))


def _not_binary(value: Any, row: int, column: int) -> InputError:  # noqa: ANN401
    text = repr(value.item() if hasattr(value, "item") else value)
    return InputError(f"X has {text} in row {row}, column {column}; expected only 0 and 1: {REMEDY}")


def train_perceptron(
    found: csr_matrix, labels: npt.NDArray[np.int64], mined: Mined, *, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return the weights and intercepts of an averaged perceptron that starts from those that were mined."""
    coef, intercept = np.ascontiguousarray(mined.weights.T), mined.intercept
    if not mined.n_selected:
        return coef, intercept
    rate = FINAL_RATE * found.shape[0] / max(1, found.nnz)
    perceptron = AveragedPerceptron(rate=rate, margin=FINAL_MARGIN, seed=seed)
    perceptron.fit(found, labels, coef_init=coef, intercept_init=intercept)
    return perceptron.coef_, perceptron.intercept_


def choose(scores: FloatArray) -> npt.NDArray[np.int64]:
    """Return the number of the class that scores choose."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        return (scores.reshape(len(scores)) > 0).astype(np.int64)
    best: npt.NDArray[np.int64] = scores.argmax(axis=1)
    return best
