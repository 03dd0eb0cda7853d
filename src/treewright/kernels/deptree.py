"""The dependency tree kernel of Qian & Liu (2015), section 5.2.1.

A fragment of a tree is a connected set of arcs in which adjacent siblings are also adjacent in the tree. A
sub feature tree is a fragment with one basic feature per arc, and the kernel value of two trees is the number
of pairs of equal sub feature trees, one from each tree. The recursion is in
`treewright.native.kernels.deptree`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, Integers, Keys
from treewright._validate import check_choice, check_number
from treewright.data.arcs import ARC_FEATURES, BETWEEN, ArcEncoder
from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.kernels.base import Kernel, PackedExamples, check_rows
from treewright.kernels.inputs import as_collection
from treewright.native.data.arcs import DISTANCE_BITS, LAST_VALUE_BITS
from treewright.native.kernels.deptree import (
    LANES,
    NOTHING_BETWEEN,
    Arcs,
    DependencyScratch,
    SentenceRuns,
    SharedArcs,
    Trees,
    evaluate,
    evaluate_logs,
    list_arcs,
)

SMALLEST_DECAY = 1e-6


class DependencyTreeKernel(Kernel):
    """Kernel that counts the sub feature trees shared by two dependency trees.

    All occurrences count. A tree shares many more fragments with itself than with other trees; `decay` and
    `normalize` reduce this effect.

    Parameters
    ----------
    features : sequence of str
        Basic features of an arc, from `treewright.data.arcs.ARC_FEATURES`.
    decay : float
        Decay factor for larger fragments. The weight of a fragment with n arcs is `decay` to the power of n.
    normalize : bool
        Normalise so that K(x, x) = 1. If one of the trees has no arcs, the value is 0.
    root : bool
        Include the arc from the artificial root to the top word of a sentence.

    See Also
    --------
    SubtreeSpace : The same fragments as mined features.
    DependencyReranker : Reranks dependency trees.
    PartialTreeKernel : Compares any trees, also dependency trees.

    Examples
    --------
    >>> from treewright import DepTree
    >>> from treewright.kernels.deptree import DependencyTreeKernel
    >>> tree = DepTree("a dog barks".split(), [2, 3, 0], xpos=["DT", "NN", "VBZ"])
    >>> DependencyTreeKernel(features=["h.word m.word", "h.tag m.tag"])([tree]).tolist()
    [[8.0]]
    """

    has_exact_strips = True

    def __init__(
        self,
        *,
        features: Sequence[str] = ARC_FEATURES,
        decay: float = 1.0,
        normalize: bool = False,
        root: bool = False,
    ) -> None:
        self.features = features
        self.decay = decay
        self.normalize = normalize
        self.root = root

    def __call__(self, trees_a: Sequence[DepTree], trees_b: Sequence[DepTree] | None = None) -> FloatArray:
        """Return the kernel values of all pairs.

        Parameters
        ----------
        trees_a, trees_b : iterable of DepTree
            Trees to compare. If `trees_b` is omitted, `trees_a` are compared with each other.

        Returns
        -------
        ndarray of float, (len(trees_a), len(trees_b))
            The kernel values; values that overflow are infinite unless they are normalised.
        """
        if trees_b is None or trees_b is trees_a:
            return super().__call__(trees_a)
        trees_a, trees_b = as_collection(trees_a), as_collection(trees_b)
        packed = self.pack([*trees_a, *trees_b])  # packs once; packing one and comparing would pack it twice
        rows = np.arange(len(packed))
        return packed.block(rows[: len(trees_a)], rows[len(trees_a) :])

    def pack(self, trees: Sequence[DepTree]) -> "PackedDependencyTrees":
        """Pack trees for the evaluation of many pairs.

        Trees with the same words and tags, such as a parser's candidates, are processed together, so that
        common arcs are compared only once.
        """
        check_number("decay", self.decay, low=SMALLEST_DECAY, high=1)
        check_choice("normalize", self.normalize, (False, True))
        check_choice("root", self.root, (False, True))
        trees = as_collection(trees)
        _check_trees(trees)
        encoder = ArcEncoder.from_trees(trees, templates=self.features)
        return PackedDependencyTrees(
            encoder, trees, decay=self.decay, normalize=self.normalize, root=self.root
        )


class PackedDependencyTrees(PackedExamples):
    """Trees packed for evaluation and referred to by index.

    Created by `DependencyTreeKernel.pack`. Memory use is about 180 bytes per distinct arc of a sentence, plus
    12 bytes per arc of each tree.
    """

    def __init__(
        self, encoder: ArcEncoder, trees: Sequence[DepTree], *, decay: float, normalize: bool, root: bool
    ) -> None:
        self._given = list(trees)
        self._column = encoder.column
        self._templates = encoder.templates
        self._root = root
        self._decay = float(decay)
        self._sentences, examples = _number_sentences(trees, encoder.column)
        words = _Words.from_trees(trees)
        is_arc = words.heads >= (0 if root else 1)
        codes = _Codes(self._sentences[words.trees], words.heads, words.modifiers)
        distinct, numbers = np.unique(codes.join()[is_arc], return_inverse=True)
        sentences, heads, modifiers = codes.split(distinct)
        self._arcs = _pack_arcs(encoder, examples, sentences, heads, modifiers)
        self._trees = _pack_trees(words, is_arc, numbers.astype(np.int32), len(trees))
        self._n_places = int(self._arcs.place.max(initial=-1)) + 1
        self._n_arcs = int(np.diff(self._trees.indptr).max(initial=0))
        rows = np.arange(len(trees))
        self._logs = self._evaluate_logs(rows, rows) if normalize else None

    def __len__(self) -> int:
        return len(self._sentences)

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        """Return the kernel values of all pairs of the given trees.

        Parameters
        ----------
        rows_a, rows_b : array of int
            Indices of trees, in any order; trees of the same sentence are evaluated together.

        Returns
        -------
        ndarray of float, (len(rows_a), len(rows_b))
            The kernel value of each pair.
        """
        rows_a, rows_b = check_rows(rows_a, len(self)), check_rows(rows_b, len(self))
        values = np.empty((len(rows_a), len(rows_b)))
        batches = (self._make_batch(rows_a), self._make_batch(rows_b))
        with np.errstate(over="ignore"):
            evaluate(self._arcs, self._trees, *batches, self._decay, self._scratch(), values)
        return values if self._logs is None else self._normalized(values, self._logs, rows_a, rows_b)

    def compare(self, examples: Sequence[DepTree]) -> FloatArray:
        """Return the kernel values of other trees with the packed ones, (len(examples), len(self)).

        All trees are packed again, so that words that do not occur in the packed trees are distinguished. One
        call with many trees is faster than many calls with a few.
        """
        examples = as_collection(examples)
        _check_trees(examples)
        together = [*examples, *self._given]
        encoder = ArcEncoder.from_trees(together, column=self._column, templates=self._templates)
        normalize = self._logs is not None
        packed = PackedDependencyTrees(
            encoder, together, decay=self._decay, normalize=normalize, root=self._root
        )
        return packed.block(np.arange(len(examples)), np.arange(len(examples), len(together)))

    def diagonal(self) -> FloatArray:
        """Return the value of each tree with itself; infinity on overflow."""
        if self._logs is not None:
            return np.isfinite(self._logs).astype(np.float64)
        rows = np.arange(len(self))
        with np.errstate(over="ignore"):
            return np.exp(self._evaluate_logs(rows, rows))

    def _make_batch(self, rows: Integers) -> SentenceRuns:
        sentences = self._sentences[rows]
        places = np.argsort(sentences, kind="stable")
        indptr = np.append(np.flatnonzero(np.diff(sentences[places], prepend=-1)), len(rows))
        n_arcs = int((self._trees.indptr[rows + 1] - self._trees.indptr[rows]).sum())
        arcs = np.empty(n_arcs, dtype=np.int32)
        batch = SentenceRuns(rows[places], places, indptr, np.zeros_like(indptr), arcs)
        list_arcs(self._trees, batch, np.zeros(len(self._arcs.place), dtype=np.bool_))
        return batch

    def _scratch(self) -> DependencyScratch:
        n_places, n_arcs = self._n_places, self._n_arcs + 1
        bounds = np.empty((2, n_places), dtype=np.int64)
        places = np.empty(n_places**2, dtype=np.int32)
        shared = SharedArcs(bounds[0], bounds[1], places, np.empty(n_places**2))
        positions = np.full(n_places, -1, dtype=np.int32)
        return DependencyScratch(shared, positions, *np.empty((2, n_arcs, n_arcs)))

    def _normalized(
        self, values: FloatArray, own: FloatArray, rows_a: Integers, rows_b: Integers
    ) -> FloatArray:
        """Normalise in log space, where values do not overflow."""
        with np.errstate(divide="ignore"):
            logs = np.log(values)
        large_a, large_b = np.nonzero(np.isinf(values))
        logs[large_a, large_b] = self._evaluate_logs(rows_a[large_a], rows_b[large_b])
        means = (own[rows_a, None] + own[rows_b]) / 2
        return np.exp(np.subtract(logs, means, out=np.full_like(logs, -np.inf), where=values > 0))

    def _evaluate_logs(self, rows_a: Integers, rows_b: Integers) -> FloatArray:
        logs = np.empty(len(rows_a))
        pairs = np.column_stack([rows_a, rows_b])
        evaluate_logs(self._arcs, self._trees, pairs, self._decay, self._scratch(), logs)
        return logs


def _check_trees(trees: Sequence[DepTree]) -> None:
    for number, tree in enumerate(trees):
        if (tree.heads < 0).any():
            word = int(np.flatnonzero(tree.heads < 0)[0]) + 1
            raise InputError(f"tree {number}: word {word} has no head; expected one from 0 to {len(tree)}")


class _Words(NamedTuple):
    """For each word of all trees: the index of the tree, and the positions of head and word (from 1)."""

    trees: Integers
    heads: Integers
    modifiers: Integers

    @classmethod
    def from_trees(cls, trees: Sequence[DepTree]) -> "_Words":
        lengths = np.array([len(tree) for tree in trees], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        numbers = np.repeat(np.arange(len(trees)), lengths)
        heads = np.concatenate([np.empty(0, dtype=np.int64), *(tree.heads for tree in trees)])
        return cls(numbers, heads, np.arange(len(numbers)) - starts[numbers] + 1)

    @property
    def parents(self) -> Integers:
        """The index of each word's head among all words, or -1."""
        own = np.arange(len(self.heads))
        return np.where(self.heads > 0, own - self.modifiers + self.heads, -1)


class _Codes(NamedTuple):
    """Sentence, head and modifier of each arc, which can be encoded as one integer."""

    sentences: Integers
    heads: Integers
    modifiers: Integers

    @property
    def _base(self) -> int:
        return int(self.modifiers.max(initial=0)) + 1

    def join(self) -> Integers:
        return (self.sentences * self._base + self.heads) * self._base + self.modifiers

    def split(self, codes: Integers) -> tuple[Integers, Integers, Integers]:
        codes, modifiers = np.divmod(codes, self._base)
        sentences, heads = np.divmod(codes, self._base)
        return sentences, heads, modifiers


def _number_sentences(trees: Sequence[DepTree], column: str) -> tuple[Integers, list[DepTree]]:
    """Return the sentence index of each tree, and a tree for each distinct sentence (words and tags)."""
    numbers: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    sentences = np.empty(len(trees), dtype=np.int64)
    examples: list[DepTree] = []
    for row, tree in enumerate(trees):
        content = (tuple(tree.words), tuple(getattr(tree, column)))
        sentences[row] = numbers.setdefault(content, len(numbers))
        if sentences[row] == len(examples):
            examples.append(tree)
    return sentences, examples


def _pack_arcs(
    encoder: ArcEncoder, examples: list[DepTree], sentences: Integers, heads: Integers, modifiers: Integers
) -> Arcs:
    indptr, keys = encoder.keys(encoder.encode(examples), sentences, heads, modifiers)
    templates = [name for name in ARC_FEATURES if name in encoder.templates and name != BETWEEN]
    fixed = indptr[:-1, None] + np.arange(len(templates))
    ids = np.empty(fixed.shape, dtype=np.int32)
    for column in range(len(templates)):
        ids[:, column] = _intern(keys[fixed[:, column]])
    is_between = np.ones(len(keys), dtype=np.bool_)
    is_between[fixed] = False
    indptr -= len(templates) * np.arange(len(indptr))
    ends, between = _pack_between(indptr, keys[is_between])
    signatures = _pack_signatures(
        encoder.templates, dict(zip(templates, ids.T, strict=True)) | {BETWEEN: ends}
    )
    place = np.arange(len(heads)) - np.searchsorted(sentences, sentences)
    return Arcs(signatures, ids, ends, indptr, between, place.astype(np.int32))


def _pack_signatures(
    templates: Sequence[str], ids: dict[str, npt.NDArray[np.int32]]
) -> npt.NDArray[np.uint64]:
    """Return the low bytes of the ids of the most general features.

    Arcs that share none of these share no feature at all: if two arcs share ``h-1.tag h.tag m.tag *``, they
    also share the more general ``h.tag m.tag``.
    """
    parts = {name: set(name.split()) for name in templates}
    needed = [name for name in parts if not any(other < parts[name] for other in parts.values())]
    n_bytes = -(-len(needed) // LANES) * LANES
    columns = [ids[needed[lane % len(needed)]].astype(np.uint8) for lane in range(n_bytes)]
    return np.stack(columns, axis=1).view(np.uint64)


def _pack_between(indptr: Integers, keys: Keys) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return an id of the tags at both ends of each arc, and the sorted ids of the tags between them."""
    owners = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    between = _intern(keys[np.lexsort((keys, owners))])
    has_some = indptr[:-1] < indptr[1:]
    ends = np.full(len(indptr) - 1, NOTHING_BETWEEN, dtype=np.int32)
    ends[has_some] = _intern(keys[indptr[:-1][has_some]] >> np.uint64(LAST_VALUE_BITS + DISTANCE_BITS))
    return ends, between


def _intern(keys: Keys) -> npt.NDArray[np.int32]:
    """Return the rank of each key among the distinct keys."""
    return np.unique(keys, return_inverse=True)[1].astype(np.int32)


def _pack_trees(
    words: _Words, is_arc: npt.NDArray[np.bool_], numbers: npt.NDArray[np.int32], n_trees: int
) -> Trees:
    """Order the arcs of each tree: children before parents, and siblings from right to left."""
    indptr = np.zeros(n_trees + 1, dtype=np.int64)
    np.cumsum(np.bincount(words.trees[is_arc], minlength=n_trees), out=indptr[1:])
    arcs = np.flatnonzero(is_arc)
    order = np.lexsort((-arcs, -_depths(words.parents)[arcs], words.trees[arcs]))
    arcs = arcs[order]
    trees = words.trees[arcs]
    n_arcs = np.diff(indptr)
    positions = n_arcs[words.trees]
    positions[arcs] = np.arange(len(arcs)) - indptr[trees]
    parents = words.parents[arcs]
    above = np.where(parents >= 0, positions[parents], n_arcs[trees])
    siblings = _right_siblings(words)[arcs]
    right = np.where(siblings >= 0, positions[siblings], n_arcs[trees])
    return Trees(indptr, numbers[order], above.astype(np.int32), right.astype(np.int32))


def _depths(parents: Integers) -> Integers:
    depths = np.zeros(len(parents), dtype=np.int64)
    above = parents
    while (above >= 0).any():
        depths += above >= 0
        above = np.where(above >= 0, parents[above], -1)
    return depths


def _right_siblings(words: _Words) -> Integers:
    """Return the index of the next word to the right with the same head, or -1."""
    order = np.lexsort((words.modifiers, words.heads, words.trees))
    follow = (np.diff(words.heads[order]) == 0) & (np.diff(words.trees[order]) == 0)
    siblings = np.full(len(order), -1, dtype=np.int64)
    siblings[order[:-1][follow]] = order[1:][follow]
    return siblings
