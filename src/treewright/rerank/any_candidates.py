"""CandidateReranker: reranks lists of candidates of any kind, from any system."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, Integers, RandomState
from treewright._validate import check_choice, check_integer, check_number
from treewright.errors import InputError
from treewright.kernels.base import Kernel
from treewright.kernels.derived import DerivedKernel
from treewright.kernels.examples import KernelField, count_examples
from treewright.kernels.support import make_kernel
from treewright.learn.lists import best_rows
from treewright.learn.softmax import EXPECTED_LOSS, LIKELIHOOD, SoftmaxRanker
from treewright.learn.structured import StructuredSVM
from treewright.learn.voted import KernelVotedPerceptron, VotedPerceptron
from treewright.model import Model, Submodel, Value, expect, saved, seeded
from treewright.progress import report
from treewright.rerank.views import (
    KernelView,
    Ranker,
    RankerField,
    View,
    make_view,
    view_class,
)

OBJECTIVES = {"softmax": LIKELIHOOD, "expected-loss": EXPECTED_LOSS}
"""The learners with a softmax over each list, and their objectives."""
LEARNERS = ("perceptron", "svm", *OBJECTIVES)
FACTORS = (1.0, *(2.0**power for size in range(1, 8) for power in (size, -size)), 0.0)
"""Factors of the base-score weight to try on the dev set; among ties, the factor nearest to 1 is used."""
MOST = 1e12
Numbers = Sequence[npt.ArrayLike]
"""For each list, an array with one number per candidate."""


class ListLosses(NamedTuple):
    """Mean losses over lists.

    Attributes
    ----------
    base : float
        Mean loss of the candidates with the highest base scores.
    chosen : float
        Mean loss of the candidates that the reranker chooses.
    best : float
        Mean loss of the best candidates (the oracle).
    """

    base: float
    chosen: float
    best: float


class _Lists(NamedTuple):
    """Candidate lists with their losses and scores as flat arrays."""

    lists: Sequence[Any]
    indptr: Integers
    base_scores: FloatArray
    losses: FloatArray


class CandidateReranker(Model):
    """Reranker for candidates of any kind: learns to choose from lists of candidates and their losses.

    The final score of a candidate is its learnt score plus `base_weight_` times its base score. A typical
    base score is the log-probability that the original system gives to the candidate.

    Parameters
    ----------
    kernel : Kernel, optional
        Kernel that compares candidates. Without a kernel, candidates have features: a list is an array or
        sparse matrix with one row per candidate, a sequence of vectors, or a sequence of dictionaries from
        feature names to numbers. With a kernel of `treewright.kernels.derived`, a list is a `DecisionList` or
        `GradientList`, and its base scores default to those of the kernel. With any other kernel, a list is a
        sequence of objects that the kernel compares, such as `ConstTree` for `SubsetTreeKernel` (Collins &
        Duffy 2002).
    learner : {"perceptron", "svm", "softmax", "expected-loss"}
        Loss-scaled perceptron, structured SVM, or a softmax over each list, trained by L-BFGS. "softmax"
        maximises the log-likelihood of the best candidates; "expected-loss" minimises the expected loss. All
        but the perceptron need features or a derived kernel.
    epochs : int
        Number of perceptron passes over the lists.
    voting : bool
        Let every weight vector of the perceptron vote, instead of using the averaged weights.
    shuffle : bool
        Visit the lists in a new random order in each pass of the perceptron.
    penalty : float
        Strength of the L2 penalty of the SVM or softmax.
    max_iter : int
        Maximum number of SVM passes over the lists, or of L-BFGS iterations.
    base_weights : sequence of float
        Factors on the base scores during training. With several factors, one model is trained for each, and
        the model with the lowest dev loss is used.
    cache_memory : int
        Cache size in bytes for the features of derived kernels. Features that do not fit are computed again
        each time their list is visited.
    random_state : int, Generator, RandomState or None
        Seed for the order of the lists. With None, results differ between calls.

    Attributes
    ----------
    base_weight_ : float
        Factor on the base scores in the final score.
    dev_losses_ : ListLosses or None
        Losses on the dev lists.
    view_ : View
        Converts candidates into the input of the learner.
    ranker_ : VotedPerceptron, KernelVotedPerceptron, StructuredSVM or SoftmaxRanker
        The trained learner.

    See Also
    --------
    DependencyReranker : Reranks the k-best trees of a dependency parser.
    ConstituentReranker : Reranks the k-best trees of constituency parsers.
    VotedPerceptron : The perceptron that ranks feature rows.
    StructuredSVM : The SVM that ranks feature rows.

    Examples
    --------
    Translations with named features; in each list the second candidate has the smaller loss:

    >>> from treewright import CandidateReranker
    >>> lists = [[{"length": 9, "the": 3}, {"length": 4, "the": 1}], [{"length": 8}, {"length": 5, "the": 1}]]
    >>> reranker = CandidateReranker().fit(lists, [[0.6, 0.2], [0.5, 0.1]], [[-1.0, -1.5], [-2.0, -2.5]])
    >>> reranker.predict([[{"length": 3}, {"length": 6}]]).tolist()
    [0]
    """

    fields = saved(
        kernel=KernelField(),
        base_weights=Value(encode=lambda weights: [float(weight) for weight in weights], decode=tuple),
        base_weight_=Value(float),
        dev_losses_=Value(
            encode=lambda losses: losses and list(losses),
            decode=lambda losses: None if losses is None else ListLosses(*losses),
        ),
        view_=Submodel(View),
        ranker_=RankerField(),
    )
    ranker_: Ranker

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        learner: str = "perceptron",
        epochs: int = 1,
        voting: bool = False,
        shuffle: bool = True,
        penalty: float = 1.0,
        max_iter: int = 100,
        base_weights: Sequence[float] = (1.0,),
        cache_memory: int = 1 << 30,
        random_state: RandomState = 0,
    ) -> None:
        self.kernel = kernel
        self.learner = learner
        self.epochs = epochs
        self.voting = voting
        self.shuffle = shuffle
        self.penalty = penalty
        self.max_iter = max_iter
        self.base_weights = base_weights
        self.cache_memory = cache_memory
        self.random_state = random_state

    @seeded
    def fit(
        self,
        lists: Sequence[Any],
        losses: Numbers,
        scores: Numbers | None = None,
        *,
        dev: tuple[Any, ...] | None = None,
    ) -> Self:
        """Train on candidate lists and losses.

        Parameters
        ----------
        lists : sequence of lists of candidates
            Non-empty lists. With a derived kernel, any object with a length and integer indexing works,
            because lists are read one at a time. If the object has an attribute `sizes` with the number of
            candidates of each list, lists are not read just to count candidates.
        losses : sequence of array of float
            Loss of each candidate, such as 1 - F1.
        scores : sequence of array of float, optional
            Base score of each candidate.
        dev : tuple (lists, losses) or (lists, losses, scores), optional
            Lists for tuning the weight of the base scores. Without dev lists, the training weight is kept.
        """
        self._check(has_dev=dev is not None)
        self.view_ = make_view(self._copy_kernel(), cache_memory=self.cache_memory)
        training = self._gather(lists, losses, scores)
        tuning = None if dev is None else self._gather(*_check_dev(dev))
        rows = self.view_.learn(training.lists, training.indptr)
        lowest = np.inf
        for weight in self.base_weights:
            ranker = self._make_ranker()
            ranker.fit(rows, training.indptr, training.losses, weight * training.base_scores)
            final, found = _tune(ranker, self.view_, tuning, weight) if tuning else (weight, None)
            report(f"base weight {weight:g}: {_report(ranker, final, found)}")
            if found is None or found.chosen < lowest:
                lowest = np.inf if found is None else found.chosen
                self.ranker_, self.base_weight_, self.dev_losses_ = ranker, float(final), found
        self.view_.keep(self.ranker_)
        return self

    def _copy_kernel(self) -> Kernel | None:
        return None if self.kernel is None else make_kernel(self.kernel)

    def check_fitted_state(self) -> None:
        """Check that the learner and its view match the parameters."""
        self._check(has_dev=True)
        expect(type(self.view_) is view_class(self.kernel), "a view that matches the kernel")
        expect(type(self.ranker_) is type(self._make_ranker()), "a learner that matches the parameters")
        if isinstance(self.view_, KernelView):
            n_examples = count_examples(self.view_.examples_)
            expect(n_examples == len(self.ranker_.coef_), "a coefficient for each candidate")

    def restore(self) -> None:
        """Attach the kernel to the view."""
        self.view_.attach(self._copy_kernel(), self.cache_memory)

    def decision_function(self, lists: Sequence[Any], scores: Numbers | None = None) -> list[FloatArray]:
        """Return the final scores of the candidates of each list; with `voting`, fractions of the votes.

        Parameters
        ----------
        lists : sequence of lists of candidates
            Lists in the format of `fit`.
        scores : sequence of array of float, optional
            Base scores of the candidates; required if training used base scores.

        Returns
        -------
        list of ndarray of float, (n_candidates,)
            Final scores of the candidates of each list.
        """
        self.check_is_fitted()
        if not len(lists):
            return []
        gathered = self._gather(lists, None, scores)
        return np.split(self._decide(gathered), gathered.indptr[1:-1])

    def predict(self, lists: Sequence[Any], scores: Numbers | None = None) -> Integers:
        """Return the index of the best candidate in each list.

        Parameters
        ----------
        lists : sequence of lists of candidates
            Lists in the format of `fit`.
        scores : sequence of array of float, optional
            Base scores of the candidates; required if training used base scores.
        """
        finals = self.decision_function(lists, scores)
        return np.array([final.argmax() for final in finals], dtype=np.int64)

    def score(self, lists: Sequence[Any], losses: Numbers, scores: Numbers | None = None) -> float:
        """Return the negative mean loss of the chosen candidates; higher is better.

        Parameters
        ----------
        lists : sequence of lists of candidates
            Lists in the format of `fit`.
        losses : sequence of array of float
            Loss of each candidate, such as 1 - F1.
        scores : sequence of array of float, optional
            Base scores of the candidates; required if training used base scores.
        """
        self.check_is_fitted()
        gathered = self._gather(lists, losses, scores)
        return -float(gathered.losses[best_rows(self._decide(gathered), gathered.indptr)].mean())

    def _decide(self, gathered: _Lists) -> FloatArray:
        kernel_scores = self.view_.kernel_scores(self.ranker_, gathered.lists)
        return self.ranker_.combine(kernel_scores, gathered.indptr, self.base_weight_ * gathered.base_scores)

    def _check(self, *, has_dev: bool) -> None:
        check_choice("learner", self.learner, LEARNERS)
        check_integer("cache_memory", self.cache_memory)
        weights = self.base_weights
        if not isinstance(weights, list | tuple | np.ndarray) or not len(weights):
            raise InputError(f"base_weights is {weights!r}; expected a sequence of at least one number")
        for place, weight in enumerate(weights):
            check_number(f"base_weights[{place}]", weight, low=0, high=MOST)
        if len(weights) > 1 and not has_dev:
            raise InputError(
                f"base_weights has {len(weights)} values; expected one, or dev to choose among them"
            )
        is_compared = self.kernel is not None and not isinstance(self.kernel, DerivedKernel)
        if self.learner != "perceptron" and is_compared:
            found = f"learner is {self.learner!r} and kernel is {type(self.kernel).__name__}"
            raise InputError(f"{found}; expected learner 'perceptron', a derived kernel, or no kernel")

    def _make_ranker(self) -> Any:  # noqa: ANN401
        if self.learner == "svm":
            return StructuredSVM(penalty=self.penalty, max_iter=self.max_iter, random_state=self.random_state)
        if self.learner in OBJECTIVES:
            objective = OBJECTIVES[self.learner]
            return SoftmaxRanker(objective=objective, penalty=self.penalty, max_iter=self.max_iter)
        kind = VotedPerceptron if self.view_.has_features else KernelVotedPerceptron
        return kind(
            epochs=self.epochs, voting=self.voting, shuffle=self.shuffle, random_state=self.random_state
        )

    def _gather(self, lists: Sequence[Any], losses: Numbers | None, scores: Numbers | None) -> _Lists:
        """Validate the lists and return their losses and scores as flat arrays."""
        if isinstance(lists, str) or not hasattr(lists, "__len__") or not len(lists):
            raise InputError(f"lists is {type(lists).__name__}; expected a sequence of at least one list")
        sizes = getattr(lists, "sizes", None)
        if sizes is None:
            sizes = [self._count(candidates, number) for number, candidates in enumerate(lists)]
        indptr = np.cumsum([0, *sizes])
        base = self.view_.base_scores(lists) if scores is None else _flatten("scores", scores, sizes)
        costs = np.zeros(indptr[-1]) if losses is None else _flatten("losses", losses, sizes)
        return _Lists(lists, indptr, np.zeros(indptr[-1]) if base is None else base, costs)

    def _count(self, candidates: Any, number: int) -> int:  # noqa: ANN401
        try:
            size = self.view_.count(candidates)
        except InputError as error:
            raise InputError(f"list {number}: {error}") from None
        if not size:
            raise InputError(f"list {number} is empty; expected at least one candidate")
        return size


def _tune(ranker: Ranker, view: View, dev: _Lists, weight: float) -> tuple[float, ListLosses]:
    """Return the weight of the base scores with the smallest dev loss, and the losses."""
    kernel_scores = view.kernel_scores(ranker, dev.lists)
    tried: dict[float, float] = {}
    for factor in FACTORS if dev.base_scores.any() else FACTORS[:1]:
        final = factor * (weight or 1.0)
        scores = ranker.combine(kernel_scores, dev.indptr, final * dev.base_scores)
        tried[final] = float(dev.losses[best_rows(scores, dev.indptr)].mean())
    found = min(tried, key=tried.__getitem__)
    base = float(dev.losses[best_rows(dev.base_scores, dev.indptr)].mean())
    best = float(np.minimum.reduceat(dev.losses, dev.indptr[:-1]).mean())
    return found, ListLosses(base, tried[found], best)


def _report(ranker: Ranker, final: float, found: ListLosses | None) -> str:
    if isinstance(ranker, StructuredSVM):
        text = f"{ranker.n_iter_} passes, duality gap {ranker.gap_:.2g}, objective {ranker.objective_:.4g}"
    elif isinstance(ranker, SoftmaxRanker):
        text = f"{ranker.n_iter_} iterations, objective {ranker.objective_:.4g}"
    else:
        text = f"{sum(ranker.n_updates_)} updates, {len(ranker.support_)} support candidates"
    if found is None:
        return text
    losses = f"{found.base:.4f} by base scores, {found.chosen:.4f} reranked, {found.best:.4f} oracle"
    return f"{text}; mean dev loss {losses}; final base weight {final:g}"


def _check_dev(dev: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    if not isinstance(dev, tuple | list) or len(dev) not in (2, 3):
        raise InputError(f"dev is {type(dev).__name__}; expected (lists, losses) or (lists, losses, scores)")
    return (dev[0], dev[1], dev[2] if len(dev) == 3 else None)


def _flatten(name: str, values: Numbers, sizes: list[int]) -> FloatArray:
    """Concatenate the numbers of all candidates."""
    if len(values) != len(sizes):
        raise InputError(f"{name} has {len(values)} lists; expected {len(sizes)}, one per candidate list")
    parts = []
    for number, (some, size) in enumerate(zip(values, sizes, strict=True)):
        try:
            part = np.asarray(some, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"list {number}: {name} are {some!r}; expected numbers") from None
        if part.shape != (size,):
            found = f"list {number}: {name} have the shape {part.shape}"
            raise InputError(f"{found}; expected ({size},), one number per candidate")
        if not np.isfinite(part).all():
            bad = part[~np.isfinite(part)][0]
            raise InputError(f"list {number}: {name} contain {bad}; expected finite numbers")
        parts.append(part)
    return np.concatenate(parts)
