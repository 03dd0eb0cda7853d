"""Conversion of candidates of any kind into the input of rankers: feature rows or kernel values."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.feature_extraction import DictVectorizer

from treewright._typing import FloatArray, Integers, NonNegativeInt
from treewright.data.svmlight import SparseVector
from treewright.errors import InputError
from treewright.kernels.base import Kernel
from treewright.kernels.decisions import DecisionList, GradientList
from treewright.kernels.derived import DerivedKernel
from treewright.kernels.examples import (
    EXAMPLES,
    check_examples,
    count_examples,
    take_examples,
)
from treewright.kernels.inputs import as_matrix
from treewright.kernels.support import multiply
from treewright.learn.lists import LinearRanker
from treewright.learn.softmax import SoftmaxRanker
from treewright.learn.structured import StructuredSVM
from treewright.learn.voted import KernelVotedPerceptron, UpdateHistory, VotedPerceptron
from treewright.model import PARAMS, Array, Model, Record, State, Value, expect, is_within, saved
from treewright.progress import track

Ranker = VotedPerceptron | KernelVotedPerceptron | StructuredSVM | SoftmaxRanker


class View(Model, ABC):
    """Converts candidate lists into the input of a ranker.

    The reranker owns the kernel and passes it to `attach`.
    """

    has_features = True
    """Whether learners get features; otherwise they only get kernel values."""

    def attach(self, kernel: Kernel | None, cache_memory: int) -> Self:
        """Set the kernel and the cache size for features in bytes."""
        self._kernel: Any = kernel
        self._cache_memory = cache_memory
        return self

    def count(self, candidates: Any) -> int:  # noqa: ANN401
        """Return the number of candidates of a list."""
        return count_examples(check_examples(candidates))

    def base_scores(self, lists: Sequence[Any]) -> FloatArray | None:
        """Return the scores that come with the lists, or None."""
        return None

    @abstractmethod
    def learn(self, lists: Sequence[Any], indptr: Integers) -> Any:  # noqa: ANN401
        """Return training lists, bounded by `indptr`, in the input format of the learner."""

    @abstractmethod
    def kernel_scores(self, ranker: Any, lists: Sequence[Any]) -> FloatArray:  # noqa: ANN401
        """Return the learner's scores of new lists."""

    def keep(self, ranker: Any) -> None:  # noqa: ANN401
        """Drop data that the trained learner does not need."""


class VectorView(View):
    """Candidates with explicit features: vectors, or mappings from names to numbers.

    Attributes
    ----------
    names_ : list of str or None
        Feature names, if candidates are mappings.
    n_columns_ : int or None
        Number of features, if candidates are vectors.
    """

    fields = saved(names_=Value(), n_columns_=Value(NonNegativeInt | None))

    def learn(self, lists: Sequence[Any], indptr: Integers) -> Any:  # noqa: ANN401
        """Return the candidates in the input format of the learner."""
        self.names_: list[str] | None = None
        self.n_columns_: int | None = None
        if _are_mappings(lists):
            vectorizer = DictVectorizer()
            vectorizer.fit([each for candidates in lists for each in _check_mappings(candidates)])
            self.names_ = list(vectorizer.feature_names_)
        self.restore()
        rows = self._stack(lists)
        if self.names_ is None:
            self.n_columns_ = int(rows.shape[1])
        return rows

    def restore(self) -> None:
        """Rebuild the vectorizer of feature names."""
        self._vectorizer: DictVectorizer | None = None
        if self.names_ is not None:
            self._vectorizer = DictVectorizer()
            self._vectorizer.feature_names_ = self.names_
            self._vectorizer.vocabulary_ = {name: place for place, name in enumerate(self.names_)}

    def kernel_scores(self, ranker: Any, lists: Sequence[Any]) -> FloatArray:  # noqa: ANN401
        """Return the learner's scores of new lists."""
        return np.asarray(ranker.kernel_scores(self._stack(lists)))

    def _stack(self, lists: Sequence[Any]) -> Any:  # noqa: ANN401
        n_columns = self.n_columns_
        if all(_is_open(candidates) for candidates in lists):
            return as_matrix(_join(lists), n_columns=n_columns)[:, :n_columns]
        blocks = []
        for number, candidates in enumerate(lists):
            try:
                if self._vectorizer is not None:
                    block = csr_matrix(self._vectorizer.transform(_check_mappings(candidates)))
                else:
                    block = as_matrix(candidates, n_columns=n_columns)
                    n_columns = block.shape[1]
            except InputError as error:
                raise InputError(f"list {number}: {error}") from None
            blocks.append(block)
        is_sparse = any(issparse(block) for block in blocks)
        return vstack(blocks, format="csr") if is_sparse else np.concatenate(blocks)


class DerivedView(View):
    """Candidates of a probability model, whose features are computed on demand."""

    def count(self, candidates: Any) -> int:  # noqa: ANN401
        """Return the number of candidates of a list."""
        if not isinstance(candidates, DecisionList | GradientList):
            found = type(candidates).__name__
            raise InputError(f"a list is of type {found}; expected a DecisionList or a GradientList")
        return candidates.n_candidates

    def base_scores(self, lists: Sequence[Any]) -> FloatArray:
        """Return the scores of the kernel."""
        return np.asarray(self._kernel.score_scale * self._kernel.scores(lists))

    def learn(self, lists: Sequence[Any], indptr: Integers) -> Any:  # noqa: ANN401
        """Return the candidates in the input format of the learner."""
        return _LazyRows(self._kernel, lists, indptr, self._cache_memory)

    def kernel_scores(self, ranker: Any, lists: Sequence[Any]) -> FloatArray:  # noqa: ANN401
        """Return the learner's scores of new lists."""
        seen = track(lists, "tracing candidates", total=len(lists), unit="lists")
        return np.concatenate([ranker.kernel_scores(self._kernel.features([each])) for each in seen])


class _LazyRows:
    """Features of lists, computed on demand and cached while there is room."""

    def __init__(
        self,
        kernel: DerivedKernel,
        lists: Sequence[DecisionList | GradientList],
        indptr: Integers,
        room: int,
    ) -> None:
        self._kernel, self._lists, self._indptr, self._room = kernel, lists, indptr, room
        self._kept: dict[int, Any] = {}
        self.shape = (int(self._indptr[-1]), int(self._block(0).shape[1]))

    def _block(self, number: int) -> Any:  # noqa: ANN401
        if number in self._kept:
            return self._kept[number]
        rows = self._kernel.features([self._lists[number]])
        size = rows.data.nbytes + rows.indices.nbytes if issparse(rows) else rows.nbytes
        if size <= self._room:
            self._room -= size
            self._kept[number] = rows
        return rows

    def __getitem__(self, rows: slice) -> Any:  # noqa: ANN401
        number = int(np.searchsorted(self._indptr, rows.start, side="right")) - 1
        begin = int(self._indptr[number])
        return self._block(number)[rows.start - begin : rows.stop - begin]


class KernelView(View):
    """Candidates of any kind that a kernel compares.

    Attributes
    ----------
    examples_ : list, array or csr_matrix
        The candidates of the training lists; after training, only the support candidates.
    """

    fields = saved(examples_=EXAMPLES)
    has_features = False

    def learn(self, lists: Sequence[Any], indptr: Integers) -> Any:  # noqa: ANN401
        """Return the candidates in the input format of the learner."""
        self.examples_: Any = _join(lists)
        return self._kernel.pack(self.examples_)

    def kernel_scores(self, ranker: Any, lists: Sequence[Any]) -> FloatArray:  # noqa: ANN401
        """Return the learner's scores of new lists."""
        examples = _join(lists)
        n_support = len(ranker.support_)
        if not n_support:
            return np.asarray(ranker.kernel_scores(np.zeros((len(examples), 0))))
        # Until `keep` is called, all training examples are stored.
        is_kept = count_examples(self.examples_) == n_support
        support = self.examples_ if is_kept else take_examples(self.examples_, ranker.support_)
        packed = self._kernel.pack(support)
        if ranker.voting:
            return np.asarray(ranker.kernel_scores(packed.compare(examples)))
        return multiply(packed, examples, ranker.coef_[:, np.newaxis], n_jobs=1)[:, 0]

    def keep(self, ranker: Any) -> None:  # noqa: ANN401
        """Keep only the support candidates."""
        self.examples_ = take_examples(self.examples_, ranker.support_)


def make_view(kernel: Kernel | None, *, cache_memory: int) -> View:
    """Return the view for a kernel or for feature vectors; its feature cache has `cache_memory` bytes."""
    return view_class(kernel)().attach(kernel, cache_memory)


def view_class(kernel: Kernel | None) -> type[View]:
    """Return the view class for a kernel, or for feature vectors."""
    if kernel is None:
        return VectorView
    return DerivedView if isinstance(kernel, DerivedKernel) else KernelView


class RankerField:
    """A ranker as a field of a model."""

    kinds: ClassVar = {
        kind.__name__: kind for kind in (VotedPerceptron, KernelVotedPerceptron, StructuredSVM, SoftmaxRanker)
    }
    updates: ClassVar = Record(
        UpdateHistory,
        right=Array("i", low=0),
        wrong=Array("i", low=0),
        amounts=Array("f"),
        lives=Array("i", low=0),
    )
    rows: ClassVar = EXAMPLES

    def put(self, state: State, name: str, value: Ranker) -> None:
        """Add the ranker to a saved state."""
        own = State(type(value).__name__, {PARAMS: _params(value)}, {"coef": value.coef_})
        if not isinstance(value, LinearRanker):
            own.values["n_updates"] = value.n_updates_
            own.arrays["support"] = value.support_
            self.updates.put(own, "updates", value.updates_)
        if isinstance(value, VotedPerceptron) and value.voting:
            self.rows.put(own, "rows", value.support_rows_)
        state.parts[name] = own

    def take(self, state: State, name: str) -> Ranker:
        """Remove and return the ranker from a saved state."""
        own = state.parts.pop(name)
        ranker: Ranker = self.kinds[own.kind](**own.values[PARAMS])
        ranker.coef_ = Array("f").take(own, "coef")
        if not isinstance(ranker, LinearRanker):
            ranker.n_updates_ = list(own.values["n_updates"])
            ranker.support_ = Array("i", low=0).take(own, "support")
            ranker.updates_ = self.updates.take(own, "updates")
            self._check_updates(ranker)
        if isinstance(ranker, VotedPerceptron) and ranker.voting:
            ranker.support_rows_ = self.rows.take(own, "rows")
            shape = (len(ranker.support_), len(ranker.coef_))
            expect(ranker.support_rows_.shape == shape, "rows of the support")
        expect(not own.arrays and not own.parts, "no other arrays of a learner")
        return ranker

    @staticmethod
    def _check_updates(ranker: VotedPerceptron | KernelVotedPerceptron) -> None:
        (right, wrong, amounts, lives), n_support = ranker.updates_, len(ranker.support_)
        expect(is_within(right, n_support) and is_within(wrong, n_support), "updates within the support")
        expect(len(right) == len(wrong) == len(amounts) == len(lives) - 1, "update arrays of equal length")
        if isinstance(ranker, KernelVotedPerceptron):
            expect(len(ranker.coef_) == n_support, "a coefficient for each candidate of the support")


def _params(ranker: Ranker) -> dict[str, Any]:
    return {name: getattr(ranker, name) for name in inspect.signature(type(ranker)).parameters}


def _join(lists: Sequence[Any]) -> list[Any]:
    return [each for candidates in lists for each in candidates]


def _is_open(candidates: Any) -> bool:  # noqa: ANN401
    """Return whether all candidates are sparse vectors without a fixed number of columns."""
    return not issparse(candidates) and all(isinstance(each, SparseVector) for each in candidates)


def _are_mappings(lists: Sequence[Any]) -> bool:
    first = lists[0]
    return not issparse(first) and len(first) > 0 and isinstance(first[0], Mapping)


def _check_mappings(candidates: Any) -> Any:  # noqa: ANN401
    for place, each in enumerate(candidates):
        if not isinstance(each, Mapping) or not all(isinstance(name, str) for name in each):
            found = f"candidate {place} is {type(each).__name__}"
            raise InputError(f"{found}; expected a mapping from feature names to numbers")
    return candidates
