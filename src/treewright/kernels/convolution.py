"""Kernels that count the fragments two trees share (Moschitti 2006): subtrees, subset trees, partial trees.

Words are leaves: nodes without children. A subtree is a node with all its descendants. A subset tree is a
connected part of a tree in which each node has all of its children or none; in a partial tree, a node may
have any of its children. The kernel value of two trees is the weighted number of pairs of equal fragments,
one from each tree.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import clone

from treewright._naming import named, setting
from treewright._typing import Count, FloatArray, Integers, Jobs, Range
from treewright._validate import check_params, count_jobs
from treewright.data.forest import Forest
from treewright.data.labelled_trees import Centre
from treewright.errors import InputError
from treewright.kernels.base import Kernel, PackedExamples, check_rows
from treewright.kernels.indices import (
    PartialIndex,
    PartialOptions,
    SmoothedIndex,
    SubsetIndex,
    SubtreeIndex,
    TreeIndex,
    Words,
)
from treewright.kernels.inputs import as_matrix, as_trees, square_rows
from treewright.native.kernels.bags import mirror
from treewright.scale import map_jobs

Decay: TypeAlias = Annotated[float, Range(1e-6, 1)]
WordNodes: TypeAlias = Literal["nodes", "none", "bag"]
ROWS_AT_A_TIME = 64
"""Number of trees that a thread processes at a time."""


class TreeKernel(Kernel):
    """Base class of tree kernels; the subclasses describe the parameters."""

    has_exact_strips = True

    decay: float
    normalize: bool
    words: str
    centre: str
    n_jobs: int

    @abstractmethod
    def _index_maker(self) -> Callable[[Forest], TreeIndex]:
        """Return a function that indexes a forest for the current parameters."""

    def pack(self, examples: Any) -> "PackedTrees":  # noqa: ANN401
        """Pack trees for the evaluation of many pairs.

        Parameters
        ----------
        examples : iterable of trees
            `ConstTree`, `nltk.Tree`, bracketed strings, or `DepTree`, which is converted by
            `to_constituents`.
        """
        self._check()
        kernel: TreeKernel = clone(self)
        return PackedTrees(kernel, kernel._index_maker(), kernel._make_forest(examples))

    def _make_forest(self, examples: Any) -> Forest:  # noqa: ANN401
        forest = Forest.from_trees(as_trees(examples, centre=self.centre))
        return forest.without_leaves() if self.words == "none" else forest

    def logs(self, trees_a: Any, trees_b: Any = None) -> FloatArray:  # noqa: ANN401
        """Return the logarithms of the kernel values of all pairs, without normalisation.

        Logarithms are finite even if the values themselves overflow.

        Parameters
        ----------
        trees_a, trees_b : iterable of trees
            Trees to compare. If `trees_b` is omitted, `trees_a` are compared with each other.

        Returns
        -------
        ndarray of float, (len(trees_a), len(trees_b))
            The logarithms; minus infinity for trees without common fragments.
        """
        packed = self.pack(trees_a)
        others = packed if trees_b is None else self.pack(trees_b)
        return packed.logs(others)

    def _check(self) -> None:
        check_params(self)


class PackedTrees(PackedExamples):
    """Trees packed for evaluation and referred to by index. Created by `TreeKernel.pack`."""

    def __init__(self, kernel: TreeKernel, make_index: Callable[[Forest], TreeIndex], forest: Forest) -> None:
        self._kernel = kernel
        self._make_index = make_index
        self._forest = forest
        self._index = make_index(forest)
        self._own: FloatArray | None = None

    def __len__(self) -> int:
        return self._forest.n_trees

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        """See `PackedExamples`."""
        rows_a, rows_b = check_rows(rows_a, len(self)), check_rows(rows_b, len(self))
        begin = len(self) - len(rows_b)
        if np.array_equal(rows_b, np.arange(begin, len(self))):
            if np.array_equal(rows_a, np.arange(begin, begin + len(rows_a))):
                return self.strip(begin, begin + len(rows_a))
            if begin == 0:
                return self._finish(self._compare(self, rows_a, False), self, rows_a, rows_b)
        if 4 * len(rows_b) < len(self):
            some = PackedTrees(self._kernel, self._make_index, self._forest.select(rows_b))
            return self._finish(some._compare(self, rows_a, False), self, rows_a, rows_b)
        values = self._compare(self, rows_a, False)[:, rows_b]
        return self._finish(values, self, rows_a, rows_b)

    def strip(self, begin: int, end: int) -> FloatArray:
        """See `PackedExamples`."""
        rows = np.arange(begin, end)
        values = self._compare(self, rows, True)[:, begin:]
        mirror(values[:, : end - begin])
        return self._finish(values, self, rows, np.arange(begin, len(self)))

    def compare(self, examples: Sequence[Any]) -> FloatArray:
        """See `PackedExamples`."""
        others = PackedTrees(self._kernel, self._make_index, self._kernel._make_forest(examples))
        rows = np.arange(len(others))
        return self._finish(self._compare(others, rows, False), others, rows, np.arange(len(self)))

    def pairs(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        """Return the kernel values of the examples at the same positions in `rows_a` and `rows_b`.

        Use it for single pairs; `block` is faster if each example is compared with many others.
        """
        rows_a, rows_b = check_rows(rows_a, len(self)), check_rows(rows_b, len(self))
        if rows_a.shape != rows_b.shape:
            raise InputError(f"rows_b has the shape {rows_b.shape}; expected {rows_a.shape}, like rows_a")
        # One tree after the other, which then stays in the processor's cache; short numbers sort fastest.
        keys = rows_a.astype(np.uint16) if len(self) <= 1 << 16 else rows_a
        order = np.argsort(keys, kind="stable")
        pairs = np.column_stack([rows_a, rows_b])
        values: FloatArray = np.empty(len(pairs))
        values[order] = self._index.evaluate(pairs[order])
        if not self._kernel.normalize:
            return _checked(values, lambda at: tuple(pairs[at].tolist()))
        with np.errstate(invalid="ignore", over="ignore"):
            own = self._raw_diagonal()
            scales = np.sqrt(own[rows_a]) * np.sqrt(own[rows_b])
            large = np.flatnonzero(~(np.isfinite(values) & np.isfinite(scales)))
            values = np.divide(values, scales, out=np.zeros_like(values), where=scales > 0)
        values[large] = self._normalized_logs(self._index, pairs[large])
        return values

    def logs(self, others: "PackedTrees") -> FloatArray:
        """Return the logarithms of the unnormalised kernel values of these trees with other trees."""
        index, n_others = self._index, len(others)
        rows_b = np.arange(n_others)
        if others is not self:
            index = self._make_index(self._forest.joined(others._forest))
            rows_b = rows_b + len(self)
        pairs = np.stack(np.broadcast_arrays(np.arange(len(self))[:, None], rows_b), axis=-1).reshape(-1, 2)
        return index.evaluate(pairs, is_log=True).reshape(len(self), n_others)

    def diagonal(self) -> FloatArray:
        """See `PackedExamples`."""
        own = self._raw_diagonal()
        if self._kernel.normalize:
            return np.where(own == 0, 0.0, 1.0)  # not a number, if it is too large
        return _checked(own.copy(), lambda at: (at, at))

    def _raw_diagonal(self) -> FloatArray:
        """Return the unnormalised value of each tree with itself; infinity on overflow."""
        if self._own is None:
            rows = np.arange(len(self))
            self._own = self._index.evaluate(np.column_stack([rows, rows]))
        return self._own

    def _compare(self, others: "PackedTrees", rows: Integers, is_half: bool) -> FloatArray:
        """Return the unnormalised kernel values of some trees of `others` with all trees of this object."""
        known = self._index.translate(others._index)
        batches = [rows[start : start + ROWS_AT_A_TIME] for start in range(0, len(rows), ROWS_AT_A_TIME)]
        if count_jobs(self._kernel.n_jobs) == 1:
            batches = [rows]
        with np.errstate(over="ignore", invalid="ignore"):
            found = map_jobs(
                lambda batch: self._index.compare(others._index, known, batch, is_half),
                batches,
                n_jobs=self._kernel.n_jobs,
            )
        return found[0] if len(found) == 1 else np.concatenate([np.empty((0, len(self))), *found])

    def _finish(
        self, values: FloatArray, others: "PackedTrees", rows_a: Integers, rows_b: Integers
    ) -> FloatArray:
        """Normalise the values if the kernel is normalised; otherwise, reject infinite values."""
        if not self._kernel.normalize:
            return _checked(values, lambda at: (int(rows_a[at[0]]), int(rows_b[at[1]])))
        own_a, own_b = others._raw_diagonal()[rows_a], self._raw_diagonal()[rows_b]
        if np.isfinite(own_a).all() and np.isfinite(own_b).all():
            values *= _inverse_root(own_a)[:, None]
            values *= _inverse_root(own_b)
            return values
        return self._finish_large(values, others, rows_a, rows_b)

    def _finish_large(
        self, values: FloatArray, others: "PackedTrees", rows_a: Integers, rows_b: Integers
    ) -> FloatArray:
        """Normalise in log space, for trees whose value with themselves overflows."""
        index = self._make_index(self._forest.joined(others._forest))
        numbers_a, numbers_b = rows_a + len(self), rows_b
        own_a, own_b = (
            index.evaluate(np.column_stack([rows, rows]), is_log=True) for rows in (numbers_a, numbers_b)
        )
        at_a, at_b = np.nonzero(~np.isfinite(values))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(values)
            logs[at_a, at_b] = index.evaluate(
                np.column_stack([numbers_a[at_a], numbers_b[at_b]]), is_log=True
            )
            logs -= own_a[:, None] / 2 + own_b / 2
        return np.exp(np.where(np.isnan(logs), -np.inf, logs))

    def _normalized_logs(self, index: TreeIndex, pairs: Integers) -> FloatArray:
        own = [index.evaluate(np.column_stack([rows, rows]), is_log=True) for rows in pairs.T]
        with np.errstate(invalid="ignore"):
            logs = index.evaluate(pairs, is_log=True) - (own[0] + own[1]) / 2
        return np.exp(np.where(np.isnan(logs), -np.inf, logs))


class SubtreeKernel(TreeKernel):
    """Kernel that counts the subtrees shared by two trees.

    A subtree is a node with all its descendants.

    Parameters
    ----------
    decay : float
        Decay factor for larger fragments. The weight of a subtree with n nodes, not counting leaves, is
        `decay` to the power of n.
    normalize : bool
        Normalise so that K(x, x) = 1. K(x, y) is divided by the geometric mean of K(x, x) and K(y, y); if one
        of the trees has no fragments, the result is 0.
    words : {"nodes", "none", "bag"}
        Keep words as leaves ("nodes"), remove them ("none"), or also count each as a fragment ("bag"). The
        weight of a word as a fragment is `decay`.
    centre : {"relation", "tag", "word"}
        Labels of the nodes of dependency trees. See `to_constituents`.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.

    See Also
    --------
    SubsetTreeKernel : Counts fragments of whole productions, which more trees share.
    PartialTreeKernel : Counts fragments with any children of a node, which even more trees share.

    Examples
    --------
    >>> from treewright import SubtreeKernel
    >>> SubtreeKernel()(["(S (N Mary) (VP (V brought) (NP (D a) (N cat))))"]).tolist()
    [[7.0]]
    """

    short_name = "st"
    fragments = "subtrees"

    def __init__(
        self,
        *,
        decay: Decay = 1.0,
        normalize: bool = False,
        words: WordNodes = "nodes",
        centre: Centre = "relation",
        n_jobs: Jobs = 1,
    ) -> None:
        self.decay = decay
        self.normalize = normalize
        self.words = words
        self.centre = centre
        self.n_jobs = n_jobs

    def _index_maker(self) -> Callable[[Forest], TreeIndex]:
        return partial(SubtreeIndex, decay=self.decay, has_bag=self.words == "bag")


class SubsetTreeKernel(TreeKernel):
    """Kernel that counts the subset trees shared by two trees (Collins & Duffy 2002).

    A subset tree is a connected part of a tree in which each node has all of its children or none.

    Parameters
    ----------
    decay : float
        Decay factor for larger fragments. The weight of a subset tree with n productions is `decay` to the
        power of n.
    normalize : bool
        Normalise so that K(x, x) = 1. K(x, y) is divided by the geometric mean of K(x, x) and K(y, y); if one
        of the trees has no fragments, the result is 0.
    words : {"nodes", "none", "bag"}
        Keep words as leaves ("nodes"), remove them ("none"), or also count each as a fragment ("bag"). The
        weight of a word as a fragment is `decay`.
    centre : {"relation", "tag", "word"}
        Labels of the nodes of dependency trees. See `to_constituents`.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.

    See Also
    --------
    PartialTreeKernel : Fragments may also leave out some children of a node.

    Examples
    --------
    >>> from treewright import SubsetTreeKernel
    >>> SubsetTreeKernel(decay=1)(["(VP (V brought) (NP (D a) (N cat)))"]).tolist()
    [[17.0]]
    """

    short_name = "sst"
    fragments = "subset trees"

    def __init__(
        self,
        *,
        decay: Decay = 0.4,
        normalize: bool = False,
        words: WordNodes = "nodes",
        centre: Centre = "relation",
        n_jobs: Jobs = 1,
    ) -> None:
        self.decay = decay
        self.normalize = normalize
        self.words = words
        self.centre = centre
        self.n_jobs = n_jobs

    def _index_maker(self) -> Callable[[Forest], TreeIndex]:
        return partial(SubsetIndex, decay=self.decay, has_bag=self.words == "bag")


class PartialTreeKernel(TreeKernel):
    """Kernel that counts the partial trees shared by two trees (Moschitti 2006).

    A partial tree is a connected part of a tree in which each node has any number of its children.

    Parameters
    ----------
    decay : float
        Decay factor for larger fragments. The weight of a partial tree is multiplied by `decay` for each
        child skipped between two included children, and by `decay` squared for each leaf.
    depth_decay : float
        Decay factor per node of a partial tree.
    max_children : int, optional
        Maximum number of children of a node in a partial tree. The distributed version of SVM-light-TK uses
        5.
    normalize : bool
        Normalise so that K(x, x) = 1. K(x, y) is divided by the geometric mean of K(x, x) and K(y, y); if one
        of the trees has no fragments, the result is 0.
    words : {"nodes", "none", "bag"}
        Keep words as leaves ("nodes" or "bag"), or remove them ("none"). Leaves count as fragments, like all
        nodes.
    centre : {"relation", "tag", "word"}
        Labels of the nodes of dependency trees. See `to_constituents`.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.

    See Also
    --------
    SmoothedPartialTreeKernel : Similar words match in part.

    Examples
    --------
    >>> from treewright import PartialTreeKernel
    >>> kernel = PartialTreeKernel(decay=1, depth_decay=1)
    >>> kernel(["(VP (V brought) (NP (D a) (N cat)))"]).tolist()
    [[48.0]]
    """

    short_name = "pt"
    fragments = "partial trees"

    def __init__(
        self,
        *,
        decay: Decay = 0.4,
        depth_decay: Decay = 0.4,
        max_children: Count | None = None,
        normalize: bool = False,
        words: WordNodes = "nodes",
        centre: Centre = "relation",
        n_jobs: Jobs = 1,
    ) -> None:
        self.decay = decay
        self.depth_decay = depth_decay
        self.max_children = max_children
        self.normalize = normalize
        self.words = words
        self.centre = centre
        self.n_jobs = n_jobs

    @property
    def _options(self) -> PartialOptions:
        return PartialOptions(self.decay, self.depth_decay, self.max_children or 0)

    def _index_maker(self) -> Callable[[Forest], TreeIndex]:
        return partial(PartialIndex, options=self._options)


class SmoothedPartialTreeKernel(PartialTreeKernel):
    """Kernel that counts shared partial trees, with partial matches of similar words (Croce et al. 2011).

    The value of two nodes is multiplied by the similarity of their labels: 1 for equal labels, the given
    similarity for two known words, and 0 otherwise. The result is a valid kernel if the matrix of
    similarities is positive semi-definite, which is always the case for cosines.

    Parameters
    ----------
    similarity : dict of str to array, or pair of sequence of str and array
        Word vectors, whose cosines are the similarities, or a list of words with a matrix of their
        similarities.
    decay : float
        Decay factor for larger fragments. The weight of a partial tree is multiplied by `decay` for each
        child skipped between two included children, and by `decay` squared for each leaf.
    depth_decay : float
        Decay factor per node of a partial tree.
    max_children : int, optional
        Maximum number of children of a node in a partial tree.
    normalize : bool
        Normalise so that K(x, x) = 1. K(x, y) is divided by the geometric mean of K(x, x) and K(y, y); if one
        of the trees has no fragments, the result is 0.
    words : {"nodes", "none", "bag"}
        Keep words as leaves ("nodes" or "bag"), or remove them ("none"). Leaves count as fragments, like all
        nodes.
    centre : {"relation", "tag", "word"}
        Labels of the nodes of dependency trees. See `to_constituents`.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.

    See Also
    --------
    PartialTreeKernel : Only equal labels match.
    SubsetTreeKernel : Fragments with whole productions.

    Examples
    --------
    >>> from treewright import SmoothedPartialTreeKernel
    >>> kernel = SmoothedPartialTreeKernel((["cat", "dog"], [[1, 0.5], [0.5, 1]]), normalize=True)
    >>> kernel(["(NP (D a) (N cat))"], ["(NP (D a) (N dog))", "(NP (D a) (N fox))"]).round(3).tolist()
    [[0.887, 0.774]]
    """

    short_name = "spt"
    why_no_fragments = "which counts similar fragments, not only equal ones"

    def __init__(
        self,
        similarity: Any,  # noqa: ANN401
        *,
        decay: Decay = 0.4,
        depth_decay: Decay = 0.4,
        max_children: Count | None = None,
        normalize: bool = False,
        words: WordNodes = "nodes",
        centre: Centre = "relation",
        n_jobs: Jobs = 1,
    ) -> None:
        self.similarity = similarity
        super().__init__(
            decay=decay,
            depth_decay=depth_decay,
            max_children=max_children,
            normalize=normalize,
            words=words,
            centre=centre,
            n_jobs=n_jobs,
        )

    def _index_maker(self) -> Callable[[Forest], TreeIndex]:
        return partial(SmoothedIndex, options=self._options, words=as_words(self.similarity))


def as_words(similarity: Any) -> Words:  # noqa: ANN401
    """Convert similarities, given as word vectors or as words and a matrix, to `Words`."""
    if isinstance(similarity, Mapping):
        words, vectors = list(similarity), as_matrix(list(similarity.values()))
        lengths = np.sqrt(square_rows(vectors))
        if (lengths == 0).any():
            word = words[int(np.flatnonzero(lengths == 0)[0])]
            raise InputError(f"the vector of {word!r} is zero; expected a non-zero vector")
        dense = np.asarray(vectors.toarray() if issparse(vectors) else vectors)
        return Words(_number(words), (dense / lengths[:, None]).astype(np.float32), None)
    try:
        words, values = similarity
        matrix = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError):
        expected = "a dict of vectors by word, or words and a matrix"
        raise InputError(
            f"similarity is of the type {type(similarity).__name__}; expected {expected}"
        ) from None
    _check_matrix(matrix, len(words))
    return Words(_number(words), None, matrix)


def _number(words: Sequence[Any]) -> dict[str, int]:
    """Return the index of each word; the words must be distinct strings."""
    numbers: dict[str, int] = {}
    for number, word in enumerate(words):
        if not isinstance(word, str) or word in numbers:
            raise InputError(f"word {number} of the similarities is {word!r}; expected distinct strings")
        numbers[word] = number
    return numbers


def _check_matrix(matrix: npt.NDArray[np.float32], n_words: int) -> None:
    if matrix.shape != (n_words, n_words):
        shape = (n_words, n_words)
        raise InputError(f"the matrix of similarities has the shape {matrix.shape}; expected {shape}")
    wrong = matrix[~np.isfinite(matrix)]
    if wrong.size:
        raise InputError(f"the matrix of similarities has the value {wrong[0]}; expected finite numbers")
    if not np.allclose(matrix, matrix.T):
        raise InputError("the matrix of similarities is not symmetric; expected a symmetric matrix")
    diagonal = np.diag(matrix)
    if not np.allclose(diagonal, 1):
        value = diagonal[~np.isclose(diagonal, 1)][0]
        raise InputError(f"the similarity of a word with itself is {value:g}; expected 1")


def _checked(values: FloatArray, name_pair: Any) -> FloatArray:  # noqa: ANN401
    """Reject infinite values; the error names the first pair of trees with such a value."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if np.isfinite(total) or np.isfinite(values).all():
        return values
    at = tuple(int(place) for place in np.argwhere(~np.isfinite(values))[0])
    one, other = name_pair(at if values.ndim > 1 else at[0])
    raise InputError(
        f"the kernel value of trees {one} and {other} overflows; expected a finite number; "
        f"use smaller decays, {setting('normalize', True)} or {named('logs')}"
    )


def _inverse_root(own: FloatArray) -> FloatArray:
    """Return 1 / sqrt(value) for each value, and 0 for 0."""
    return np.divide(1.0, np.sqrt(own), out=np.zeros_like(own), where=own > 0)
