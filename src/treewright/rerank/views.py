"""What candidates of any kind are to a learner of rankings: rows of features, or values of a kernel."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.feature_extraction import DictVectorizer

from treewright.data.svmlight import SparseVector
from treewright.errors import InputError
from treewright.kernels.base import Kernel
from treewright.kernels.decisions import DecisionList, GradientList
from treewright.kernels.derived import DerivedKernel
from treewright.kernels.examples import (
    check_examples,
    count_examples,
    examples_from_state,
    examples_state,
    take_examples,
)
from treewright.kernels.inputs import as_matrix
from treewright.kernels.support import multiply
from treewright.learn.structured import StructuredSVM
from treewright.learn.voted import Course, KernelVotedPerceptron, VotedPerceptron
from treewright.persist import State
from treewright.progress import track
from treewright.rerank.candidates import FloatArray, Integers

Ranker = VotedPerceptron | KernelVotedPerceptron | StructuredSVM


class View(ABC):
    """A way to see lists of candidates."""

    has_features = True
    """Whether learners see features, or a kernel's values only."""

    def count(self, candidates: Any) -> int:  # noqa: ANN401
        """Return how many candidates a list has."""
        return count_examples(check_examples(candidates))

    def base_scores(self, lists: Sequence[Any]) -> FloatArray | None:
        """Return the scores that lists bring with them, if they do."""
        return None

    @abstractmethod
    def learn(self, lists: Sequence[Any], first: Integers) -> Any:  # noqa: ANN401
        """Return training lists, which begin and end at `first`, as the learner takes them."""

    @abstractmethod
    def evidence(self, ranker: Any, lists: Sequence[Any]) -> FloatArray:  # noqa: ANN401
        """Return what a learner says of other lists."""

    def keep(self, ranker: Any) -> None:  # noqa: ANN401, B027
        """Forget what a learner will not need."""

    @abstractmethod
    def get_state(self) -> State:
        """Return all that is kept."""

    @abstractmethod
    def set_state(self, state: State) -> Self:
        """Take what was kept."""


class _VectorView(View):
    """Candidates with features of their own: vectors, or mappings from names to numbers."""

    def learn(self, lists: Sequence[Any], first: Integers) -> Any:  # noqa: ANN401
        self._names: DictVectorizer | None = None
        if _are_mappings(lists):
            self._names = DictVectorizer()
            self._names.fit([each for candidates in lists for each in _check_mappings(candidates)])
        self._n_columns: int | None = None
        return self._stack(lists)

    def evidence(self, ranker: Any, lists: Sequence[Any]) -> FloatArray:  # noqa: ANN401
        return np.asarray(ranker.evidence(self._stack(lists)))

    def _stack(self, lists: Sequence[Any]) -> Any:  # noqa: ANN401
        if all(_is_open(candidates) for candidates in lists):
            matrix = as_matrix(_join(lists), n_columns=self._n_columns)
            self._n_columns = self._n_columns or matrix.shape[1]
            return matrix[:, : self._n_columns]
        blocks = [self._matrix(candidates, number) for number, candidates in enumerate(lists)]
        is_sparse = any(issparse(block) for block in blocks)
        return vstack(blocks, format="csr") if is_sparse else np.concatenate(blocks)

    def _matrix(self, candidates: Any, number: int) -> Any:  # noqa: ANN401
        try:
            if self._names is not None:
                return csr_matrix(self._names.transform(_check_mappings(candidates)))
            matrix = as_matrix(candidates, n_columns=self._n_columns)
        except InputError as error:
            raise InputError(f"list {number}: {error}") from None
        self._n_columns = matrix.shape[1]
        return matrix

    def get_state(self) -> State:
        names = None if self._names is None else list(self._names.feature_names_)
        return State("VectorView", {"names": names, "n_columns": self._n_columns})

    def set_state(self, state: State) -> Self:
        self._n_columns, self._names = state.values["n_columns"], None
        if state.values["names"] is not None:
            self._names = DictVectorizer()
            self._names.feature_names_ = state.values["names"]
            self._names.vocabulary_ = {name: place for place, name in enumerate(state.values["names"])}
        return self


class _DerivedView(View):
    """Candidates of a probability model, whose features are made when a list is looked at."""

    def __init__(self, kernel: DerivedKernel, cache_memory: int) -> None:
        self._kernel = kernel
        self._cache_memory = cache_memory

    def count(self, candidates: Any) -> int:  # noqa: ANN401
        if not isinstance(candidates, DecisionList | GradientList):
            found = type(candidates).__name__
            raise InputError(f"a list is {found}; expected a DecisionList or a GradientList")
        return candidates.n_candidates

    def base_scores(self, lists: Sequence[Any]) -> FloatArray:
        return self._kernel.score_scale * self._kernel.scores(lists)

    def learn(self, lists: Sequence[Any], first: Integers) -> Any:  # noqa: ANN401
        return _LazyRows(self._kernel, lists, first, self._cache_memory)

    def evidence(self, ranker: Any, lists: Sequence[Any]) -> FloatArray:  # noqa: ANN401
        seen = track(lists, "tracing candidates", total=len(lists), unit="lists")
        return np.concatenate([ranker.evidence(self._kernel.features([each])) for each in seen])

    def get_state(self) -> State:
        return State("DerivedView")

    def set_state(self, state: State) -> Self:
        return self


class _LazyRows:
    """The features of lists, made when they are asked for, and kept while there is room."""

    def __init__(
        self,
        kernel: DerivedKernel,
        lists: Sequence[DecisionList | GradientList],
        first: Integers,
        room: int,
    ) -> None:
        self._kernel, self._lists, self._first, self._room = kernel, lists, first, room
        self._kept: dict[int, Any] = {}
        self.shape = (int(self._first[-1]), int(self._block(0).shape[1]))

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
        number = int(np.searchsorted(self._first, rows.start, side="right")) - 1
        begin = int(self._first[number])
        return self._block(number)[rows.start - begin : rows.stop - begin]


class _KernelView(View):
    """Candidates of whatever kind a kernel compares."""

    has_features = False

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def learn(self, lists: Sequence[Any], first: Integers) -> Any:  # noqa: ANN401
        self._examples = _join(lists)
        return self._kernel.pack(self._examples)

    def evidence(self, ranker: Any, lists: Sequence[Any]) -> FloatArray:  # noqa: ANN401
        examples = _join(lists)
        n_support = len(ranker.support_)
        if not n_support:
            return np.asarray(ranker.evidence(np.zeros((len(examples), 0))))
        # All examples of the training lists are there until one learner's support is kept.
        is_kept = len(self._examples) == n_support
        support = self._examples if is_kept else take_examples(self._examples, ranker.support_)
        packed = self._kernel.pack(support)
        if ranker.voting:
            return np.asarray(ranker.evidence(packed.compare(examples)))
        return multiply(packed, examples, ranker.coef_[:, np.newaxis], n_jobs=1)[:, 0]

    def keep(self, ranker: Any) -> None:  # noqa: ANN401
        self._examples = take_examples(self._examples, ranker.support_)

    def get_state(self) -> State:
        return State("KernelView", {}, {}, {"examples": examples_state(self._examples)})

    def set_state(self, state: State) -> Self:
        self._examples = examples_from_state(state.parts["examples"])
        return self


def make_view(kernel: Kernel | None, *, cache_memory: int) -> View:
    """Return how candidates are seen through a kernel, or without one; features take `cache_memory` bytes."""
    if kernel is None:
        return _VectorView()
    return _DerivedView(kernel, cache_memory) if isinstance(kernel, DerivedKernel) else _KernelView(kernel)


def ranker_state(ranker: Ranker) -> State:
    """Return a learner as it can be saved."""
    state = State(type(ranker).__name__, {}, {"coef": ranker.coef_})
    if not isinstance(ranker, StructuredSVM):
        state.arrays |= {"support": ranker.support_, **ranker.course_._asdict()}
        state.values["n_updates"] = ranker.n_updates_
    if isinstance(ranker, VotedPerceptron) and ranker.voting:
        state.parts["rows"] = examples_state(ranker.support_rows_)
    return state


def read_ranker(ranker: Ranker, state: State) -> None:
    """Give a learner what was saved of it."""
    ranker.coef_ = state.arrays["coef"]
    if not isinstance(ranker, StructuredSVM):
        ranker.support_ = state.arrays["support"]
        ranker.course_ = Course(*(state.arrays[name] for name in Course._fields))
        ranker.n_updates_ = list(state.values["n_updates"])
    if isinstance(ranker, VotedPerceptron) and ranker.voting:
        ranker.support_rows_ = examples_from_state(state.parts["rows"])


def _join(lists: Sequence[Any]) -> list[Any]:
    return [each for candidates in lists for each in candidates]


def _is_open(candidates: Any) -> bool:  # noqa: ANN401
    """Tell vectors that do not say how many columns there are."""
    return not issparse(candidates) and all(isinstance(each, SparseVector) for each in candidates)


def _are_mappings(lists: Sequence[Any]) -> bool:
    first = lists[0]
    return not issparse(first) and len(first) > 0 and isinstance(first[0], Mapping)


def _check_mappings(candidates: Any) -> Any:  # noqa: ANN401
    for place, each in enumerate(candidates):
        if not isinstance(each, Mapping) or not all(isinstance(name, str) for name in each):
            found = f"candidate {place} is {type(each).__name__}"
            raise InputError(f"{found}; expected a mapping from names of features to numbers")
    return candidates
