"""Forests: all trees over the probable arcs of sentences, in flat arrays for compiled loops."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import FloatArray, Integers, Keys
from treewright.data.arcs import ArcEncoder
from treewright.data.deptree import DepTree
from treewright.model import State
from treewright.native.dependency.forests import (
    N_ROLES,
    NO_ARC,
    NO_MORE,
    NO_SIBLING,
    Firing,
    Forests,
    LogLinear,
    draw_trees,
    learn_pass,
    list_part_arcs,
    mark_tree,
    measure_forests,
    sentence_parts,
)
from treewright.native.dependency.parts import PartIndex
from treewright.native.mining.part_features import RoleParts
from treewright.parsing.dependency.calibration import best_scale, gold_loss
from treewright.parsing.dependency.decoders import lattice_marginals
from treewright.parsing.dependency.lattice import Lattice

FIRST_MODIFIER, LAST_MODIFIER = 0, 1
"""Basic features for missing arcs: there is no sibling before a modifier, or none after it."""
N_SPECIAL = 2
MAX_CALIBRATING = 400
"""Maximum number of sentences for estimating a scale, evenly spaced among those given."""


class SentenceForest(NamedTuple):
    """The trees of a sentence, represented by their arcs and the scores of their parts.

    Attributes
    ----------
    keep : ndarray of bool, (n + 1, n + 1)
        Matrix of arcs, with heads in rows.
    scores : ndarray of float, (n_parts,)
        Log potentials of parts; parts of all kinds are numbered consecutively.
    """

    keep: npt.NDArray[np.bool_]
    scores: FloatArray


def keep_forests(forests: Sequence[SentenceForest]) -> State:
    """Return forests as arrays, for a checkpoint."""
    sides = np.array([len(each.keep) for each in forests], dtype=np.int64)
    arrays: dict[str, npt.NDArray[Any]] = {
        "sides": sides,
        "keep": np.packbits(np.concatenate([each.keep.ravel() for each in forests])),
        "sizes": np.array([len(each.scores) for each in forests], dtype=np.int64),
        "scores": np.concatenate([each.scores for each in forests]).astype(np.float32),
    }
    return State("Forests", {}, arrays)


def restore_forests(state: State) -> list[SentenceForest]:
    """Return the forests that `keep_forests` stored in a state."""
    sides, sizes = state.arrays["sides"], state.arrays["sizes"]
    bits = np.unpackbits(state.arrays["keep"], count=int((sides**2).sum())).astype(np.bool_)
    squares = np.split(bits, np.cumsum(sides**2)[:-1])
    scores = np.split(state.arrays["scores"].astype(np.float64), np.cumsum(sizes)[:-1])
    return [
        SentenceForest(square.reshape(side, side), each)
        for square, side, each in zip(squares, sides.tolist(), scores, strict=True)
    ]


def probable_arcs(lattice: Lattice, scale: float, threshold: float) -> npt.NDArray[np.bool_]:
    """Return the arcs of a lattice whose probability, relative to the best head, reaches the threshold."""
    rows, _ = lattice.marginals({kind: scale * scores for kind, scores in lattice.scores.items()})
    kept = (rows >= threshold * rows.max(axis=1, keepdims=True)) & (rows > 0)
    return np.vstack([np.zeros(len(rows) + 1, dtype=np.bool_), kept]).T.copy()


def lattice_scale(lattices: Sequence[Lattice], heads: Sequence[npt.NDArray[np.int32]]) -> float:
    """Return the scale that maximises the likelihood of the heads, estimated on some of the sentences."""
    step = -(-len(lattices) // MAX_CALIBRATING)
    some, right = lattices[::step], heads[::step]
    return best_scale(
        lambda scale: gold_loss(
            [
                lattice_marginals(each, {kind: scale * scores for kind, scores in each.scores.items()})[1]
                for each in some
            ],
            right,
        )
    )


class BasicFeatures:
    """Assigns numbers to the basic features of arcs.

    Parameters
    ----------
    encoder : ArcEncoder
    keys : ndarray of uint64
        Keys of the features that have numbers, in ascending order.
    """

    def __init__(self, encoder: ArcEncoder, keys: Keys) -> None:
        self.encoder = encoder
        self.keys = keys

    def __len__(self) -> int:
        return N_SPECIAL + len(self.keys)

    @classmethod
    def from_arcs(cls, encoder: ArcEncoder, found: Keys, min_count: int) -> "BasicFeatures":
        """Number the features that occur at least `min_count` times in `found`."""
        keys, counts = np.unique(found, return_counts=True)
        return cls(encoder, keys[counts >= min_count])

    def number(self, indptr: Integers, found: Keys) -> tuple[Integers, npt.NDArray[np.int32]]:
        """Return the numbers of the features of all arcs, with offsets; unnumbered features are dropped."""
        places = np.searchsorted(self.keys, found)
        places[places == len(self.keys)] = 0
        is_known = self.keys[places] == found if len(self.keys) else np.zeros(len(found), dtype=np.bool_)
        n_before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(is_known)])
        return n_before[indptr], (N_SPECIAL + places[is_known]).astype(np.int32)


class FoundParts(NamedTuple):
    """The parts of sentences with their arcs, before basic features are numbered."""

    arcs: npt.NDArray[np.int32]
    codes: npt.NDArray[np.uint8]
    indptr: Integers
    keys: Keys

    @classmethod
    def from_indices(
        cls, encoder: ArcEncoder, trees: Sequence[DepTree], indices: Iterable[PartIndex]
    ) -> "FoundParts":
        """List the parts of sentences, and the keys of their basic arc features."""
        arcs, codes = [np.zeros((0, N_ROLES), dtype=np.int32)], [np.zeros(0, dtype=np.uint8)]
        heads, modifiers = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int32)]
        start = N_SPECIAL
        for index in indices:
            listed, codes_here = list_part_arcs(index)
            arcs.append(_number_arcs(listed, start))
            codes.append(codes_here)
            heads.append(index.head)
            modifiers.append(index.modifier)
            start += len(index.head)
        numbers = np.repeat(np.arange(len(heads) - 1), [len(each) for each in heads[1:]])
        indptr, keys = encoder.keys(
            encoder.encode(trees), numbers, np.concatenate(heads), np.concatenate(modifiers)
        )
        return cls(np.concatenate(arcs), np.concatenate(codes), indptr, keys)

    def as_roles(self, basic: BasicFeatures) -> RoleParts:
        """Return the parts with numbered basic features; the features of missing arcs come first."""
        indptr, ids = basic.number(self.indptr, self.keys)
        special = np.arange(N_SPECIAL)
        return RoleParts(
            self.arcs,
            self.codes,
            np.concatenate([special, N_SPECIAL + indptr]),
            np.concatenate([special.astype(np.int32), ids]),
        )


def _number_arcs(arcs: npt.NDArray[np.int32], start: int) -> npt.NDArray[np.int32]:
    """Number the arcs of a sentence from `start`."""
    special = {NO_ARC: -1, NO_SIBLING: FIRST_MODIFIER, NO_MORE: LAST_MODIFIER}
    found = arcs + np.int32(start)
    for code, number in special.items():
        found[arcs == code] = number
    return found


class ForestCorpus:
    """The forests of sentences with gold trees.

    Parameters
    ----------
    trees : sequence of DepTree
        Sentences with gold heads; the forests contain all gold arcs.
    found : sequence of SentenceForest
    single_root : bool

    Attributes
    ----------
    base : ndarray of float32, (n_parts,)
        Scores of all parts.
    is_gold : ndarray of bool, (n_parts,)
    """

    def __init__(
        self, trees: Sequence[DepTree], found: Sequence[SentenceForest], *, single_root: bool
    ) -> None:
        self.trees = trees
        sides = np.array([len(each.keep) for each in found], dtype=np.int64)
        self.base = np.concatenate(
            [np.zeros(0, dtype=np.float32), *(each.scores for each in found)], dtype=np.float32
        )
        self.forests = Forests(
            sides,
            np.cumsum([0, *sides**2], dtype=np.int64),
            np.cumsum([0, *(len(each.scores) for each in found)], dtype=np.int64),
            np.concatenate([np.zeros(0, dtype=np.bool_), *(each.keep.ravel() for each in found)]),
            single_root,
        )
        self.is_gold = np.zeros(len(self.base), dtype=np.bool_)
        bounds = self.forests.part_indptr
        for number, tree in enumerate(trees):
            heads = np.concatenate([np.zeros(1, dtype=np.int32), tree.heads])
            mark_tree(self.forests, number, heads, self.is_gold[bounds[number] : bounds[number + 1]])

    @property
    def indices(self) -> Iterator[PartIndex]:
        """The parts of each sentence, one sentence after another."""
        return (sentence_parts(self.forests, number) for number in range(len(self.trees)))

    @property
    def n_words(self) -> int:
        """Number of words."""
        return sum(len(tree) for tree in self.trees)

    def residues(self, is_gold: npt.NDArray[np.bool_] | None = None) -> tuple[FloatArray, float]:
        """Return the residuals of parts, and the mean log-loss of the gold trees.

        With `is_gold`, other parts are treated as gold, such as those that `draw` returns.
        """
        found = np.empty(len(self.base))
        numbers = np.arange(len(self.trees))
        right = self.is_gold if is_gold is None else is_gold
        loss = measure_forests(self.forests, self.base, numbers, right, found)
        return found, float(loss) / max(1, len(numbers))

    def draw(self, random_state: int) -> npt.NDArray[np.bool_]:
        """Sample one tree per sentence according to its probability; return which parts the trees have."""
        is_drawn = np.zeros(len(self.base), dtype=np.bool_)
        draw_trees(self.forests, self.base, random_state, is_drawn)
        return is_drawn

    def learn(self, firing: Firing, model: LogLinear, order: Integers, *, rate: float, n_done: int) -> None:
        """Take a gradient step for each sentence in `order`; `n_done` steps were taken before."""
        learn_pass(self.forests, self.base, self.is_gold, firing, model, order, rate, n_done)
