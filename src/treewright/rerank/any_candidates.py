"""CandidateReranker: the best of lists of candidates, whatever these are and whoever has made them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, Integers
from treewright._validate import check_choice, check_integer, check_number
from treewright.errors import InputError
from treewright.kernels.base import Kernel
from treewright.kernels.derived import DerivedKernel
from treewright.kernels.examples import KernelField, count_examples
from treewright.kernels.support import make_kernel
from treewright.learn.lists import best_rows
from treewright.learn.structured import StructuredSVM
from treewright.learn.voted import KernelVotedPerceptron, VotedPerceptron
from treewright.model import Model, Submodel, Value, expect, saved
from treewright.progress import report
from treewright.rerank.views import (
    KernelView,
    Ranker,
    RankerField,
    View,
    make_view,
    view_class,
)

LEARNERS = ("perceptron", "svm")
FACTORS = (1.0, *(2.0**power for size in range(1, 8) for power in (size, -size)), 0.0)
"""Of the base scores in training, those tried on the dev set; among equals, the nearest to 1 is taken."""
MOST = 1e12
Numbers = Sequence[npt.ArrayLike]
"""Of each list an array with one number for each candidate."""


class ListLosses(NamedTuple):
    """Mean losses over lists.

    Attributes
    ----------
    base : float
        Of the candidates with the highest base scores.
    chosen : float
        Of those that the reranker chooses.
    best : float
        Of the best candidates there are.
    """

    base: float
    chosen: float
    best: float


class _Lists(NamedTuple):
    """Lists with numbers for all of their candidates, one after the other."""

    lists: Sequence[Any]
    indptr: Integers
    base_scores: FloatArray
    losses: FloatArray


class CandidateReranker(Model):
    """Learns to choose among candidates from lists of them and the loss of each.

    The final score of a candidate is what has been learnt of it and `base_weight_` times its base score, such
    as the logarithm of its probability by the system that has made it.

    Parameters
    ----------
    kernel : Kernel, optional
        What candidates are. Without one, they have features: a list is an array or a sparse matrix with a row
        for each candidate, or a sequence of vectors, or of mappings from names of features to numbers. With a
        kernel of `treewright.kernels.derived`, a list is a `DecisionList` or a `GradientList`, and its base
        scores are those of the kernel if no others are given. With any other kernel, a list is a sequence of
        what the kernel compares, such as `ConstTree` for `SubsetTreeKernel` (Collins & Duffy 2002).
    learner : {"perceptron", "svm"}
        The perceptron with updates scaled by losses, or a structured support vector machine, which needs
        features or a derived kernel.
    epochs, voting, shuffle
        Of the perceptron; see `VotedPerceptron`.
    penalty, max_iter
        Of the machine; see `StructuredSVM`.
    base_weights : sequence of float
        What the base scores are multiplied by when the learner is trained. Where there are several, it is
        trained beside each, and the dev lists decide.
    cache_memory : int
        Bytes of features of derived kernels to keep; those for which there is no room are made
        again whenever their list is looked at. With one epoch, each is looked at once.
    random_state : int
        Of the order of the lists.

    Attributes
    ----------
    base_weight_ : float
        What base scores are multiplied by in the end.
    dev_losses_ : ListLosses or None
        On the dev lists.
    view_ : View
        How the learner sees candidates.
    ranker_ : VotedPerceptron, KernelVotedPerceptron or StructuredSVM
        What was learnt.

    Examples
    --------
    Translations with named features; the loss of the second one of each list is smaller:

    >>> from treewright.rerank.any_candidates import CandidateReranker
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
        random_state: int = 0,
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

    def fit(
        self,
        lists: Sequence[Any],
        losses: Numbers,
        scores: Numbers | None = None,
        *,
        dev: tuple[Any, ...] | None = None,
    ) -> Self:
        """Learn from lists.

        Parameters
        ----------
        lists : sequence of lists of candidates
            At least one candidate in each. Of a derived kernel, any object with a length, from which lists
            can be taken by their numbers, will do: lists are looked at one at a time. If it has `sizes`, the
            numbers of candidates, they are not looked at to be counted.
        losses : sequence of array of float
            Of each candidate how bad it is, such as 1 less its F1.
        scores : sequence of array of float, optional
            The base score of each candidate.
        dev : tuple (lists, losses) or (lists, losses, scores), optional
            Lists to find out with how much base scores count. Without them, they count as in training.
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
        """Check that the learner and its view are those of the parameters."""
        self._check(has_dev=True)
        expect(type(self.view_) is view_class(self.kernel), "a view that goes with the kernel")
        expect(type(self.ranker_) is type(self._make_ranker()), "a learner that goes with the parameters")
        if isinstance(self.view_, KernelView):
            n_examples = count_examples(self.view_.examples_)
            expect(n_examples == len(self.ranker_.coef_), "a coefficient for each candidate")

    def restore(self) -> None:
        """Let the view know the kernel."""
        self.view_.attach(self._copy_kernel(), self.cache_memory)

    def decision_function(self, lists: Sequence[Any], scores: Numbers | None = None) -> list[FloatArray]:
        """Return the final score of each candidate of each list; with `voting`, its share of the votes."""
        self.check_is_fitted()
        if not len(lists):
            return []
        gathered = self._gather(lists, None, scores)
        return np.split(self._decide(gathered), gathered.indptr[1:-1])

    def predict(self, lists: Sequence[Any], scores: Numbers | None = None) -> Integers:
        """Return the place of the best candidate in each list.

        Parameters
        ----------
        lists, scores
            As in `fit`; with base scores if there were some in training.
        """
        finals = self.decision_function(lists, scores)
        return np.array([final.argmax() for final in finals], dtype=np.int64)

    def score(self, lists: Sequence[Any], losses: Numbers, scores: Numbers | None = None) -> float:
        """Return minus the mean loss of the candidates that are chosen; higher is better."""
        self.check_is_fitted()
        gathered = self._gather(lists, losses, scores)
        return -float(gathered.losses[best_rows(self._decide(gathered), gathered.indptr)].mean())

    def _decide(self, gathered: _Lists) -> FloatArray:
        kernel_scores = self.view_.kernel_scores(self.ranker_, gathered.lists)
        return self.ranker_.combine(kernel_scores, gathered.indptr, self.base_weight_ * gathered.base_scores)

    def _check(self, *, has_dev: bool) -> None:
        check_choice("learner", self.learner, LEARNERS)
        check_integer("cache_memory", self.cache_memory)
        check_integer("random_state", self.random_state)
        weights = self.base_weights
        if not isinstance(weights, list | tuple | np.ndarray) or not len(weights):
            raise InputError(f"base_weights is {weights!r}; expected a sequence of at least one number")
        for place, weight in enumerate(weights):
            check_number(f"base_weights[{place}]", weight, low=0, high=MOST)
        if len(weights) > 1 and not has_dev:
            raise InputError(f"base_weights has {len(weights)} values; expected one, or dev to choose with")
        is_compared = self.kernel is not None and not isinstance(self.kernel, DerivedKernel)
        if self.learner == "svm" and is_compared:
            found = f"learner is 'svm' and kernel {type(self.kernel).__name__}"
            raise InputError(
                f"{found}; expected 'perceptron', or no kernel or a derived one, for its features"
            )

    def _make_ranker(self) -> Any:  # noqa: ANN401
        if self.learner == "svm":
            return StructuredSVM(penalty=self.penalty, max_iter=self.max_iter, random_state=self.random_state)
        kind = VotedPerceptron if self.view_.has_features else KernelVotedPerceptron
        return kind(
            epochs=self.epochs, voting=self.voting, shuffle=self.shuffle, random_state=self.random_state
        )

    def _gather(self, lists: Sequence[Any], losses: Numbers | None, scores: Numbers | None) -> _Lists:
        """Return lists of candidates with flat numbers, checked."""
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
            raise InputError(f"list {number} has no candidates; expected at least one")
        return size


def _tune(ranker: Ranker, view: View, dev: _Lists, weight: float) -> tuple[float, ListLosses]:
    """Find the multiple of the base scores with which the candidates chosen have the smallest losses."""
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
        text = (
            f"{ranker.n_iter_} passes, at most {ranker.gap_:.2g} above the minimum of {ranker.objective_:.4g}"
        )
    else:
        text = f"{sum(ranker.n_updates_)} updates, {len(ranker.support_)} candidates in them"
    if found is None:
        return text
    losses = f"{found.base:.4f} by base scores, {found.chosen:.4f} reranked, {found.best:.4f} at best"
    return f"{text}; mean loss on dev {losses}; base scores count {final:g}"


def _check_dev(dev: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    if not isinstance(dev, tuple | list) or len(dev) not in (2, 3):
        raise InputError(f"dev is {type(dev).__name__}; expected (lists, losses) or (lists, losses, scores)")
    return (dev[0], dev[1], dev[2] if len(dev) == 3 else None)


def _flatten(name: str, values: Numbers, sizes: list[int]) -> FloatArray:
    """Return the numbers of all candidates, one after the other."""
    if len(values) != len(sizes):
        raise InputError(f"{name} has {len(values)} lists; expected {len(sizes)}, as many as of candidates")
    parts = []
    for number, (some, size) in enumerate(zip(values, sizes, strict=True)):
        try:
            part = np.asarray(some, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"list {number}: {name} are {some!r}; expected numbers") from None
        if part.shape != (size,):
            found = f"list {number}: {name} have the shape {part.shape}"
            raise InputError(f"{found}; expected ({size},), one for each candidate")
        if not np.isfinite(part).all():
            bad = part[~np.isfinite(part)][0]
            raise InputError(f"list {number}: {name} have the value {bad}; expected finite numbers")
        parts.append(part)
    return np.concatenate(parts)
