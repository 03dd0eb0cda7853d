"""A Simple Synchrony Network, which models the probabilities of left-corner decisions.

J. Henderson (2003), as used by I. Titov and J. Henderson (2005), section IV. Each decision has a history
vector. It is computed from four embeddings (`INPUTS`) and four earlier history vectors (`LINKS`), with a
weight matrix for each. Four softmax groups are computed from it: the kind of the decision, the label given a
projection, the tag given a shift, and the word given the tag.

Units are sigmoid (as in the papers), tanh or gated. A gated unit has a memory, as in a tree LSTM (K. S. Tai,
R. Socher and C. D. Manning 2015). The memory is a weighted mean of the new value and of the memories of the
four linked decisions. The weights are a softmax of the inputs, so they add up to 1. Plain sums of memories
would grow without bounds, because several links often refer to the same decision.

This module does not need PyTorch; `treewright.parsing.leftcorner.training` trains the weights.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_softmax

from treewright._typing import Booleans
from treewright.model import Array, State
from treewright.parsing.leftcorner.decisions import DecisionVocabulary, Encoded, SharedDerivations
from treewright.parsing.leftcorner.derivations import LINKS, N_KINDS, PROJECT, SHIFT, Integers

Floats = npt.NDArray[np.floating[Any]]
Weights = Mapping[str, Floats]

Cell: TypeAlias = Literal["gated", "tanh", "sigmoid"]
CELLS = get_args(Cell)
N_LINKS = len(LINKS)
N_SOURCES = 1 + N_LINKS
"""Number of sources of the memory of a gated unit: the new value and the linked memories."""
N_GATES = {"gated": N_SOURCES + 2, "tanh": 1, "sigmoid": 1}
"""Number of gates: a weight for each source, the output gate, and the new value."""
MANY = 64
"""Minimum number of decisions for which merging equal links is worthwhile."""
IMPOSSIBLE = np.float32(-np.inf)


class Sizes(NamedTuple):
    """Sizes of a vocabulary.

    Attributes
    ----------
    inputs : tuple of int
        Number of values of each of `INPUTS`.
    n_labels, n_tags, n_words : int
        Number of labels, tags and tag-word pairs.
    tag_of, indptr : ndarray of int32
        As in `TagWordVocabulary`.
    """

    inputs: tuple[int, int, int, int]
    n_labels: int
    n_tags: int
    n_words: int
    tag_of: Integers
    indptr: Integers

    @classmethod
    def of(cls, vocabulary: DecisionVocabulary) -> "Sizes":
        """Return the sizes of a vocabulary."""
        words = vocabulary.words
        counts = (len(vocabulary.labels), len(words.tags), len(words))
        return cls(vocabulary.n_inputs, *counts, words.tag_of, words.indptr)

    @property
    def n_outputs(self) -> int:
        """Number of outputs of all softmax groups: kinds, labels, tags and words, in this order."""
        return N_KINDS + self.n_labels + self.n_tags + self.n_words

    @property
    def starts(self) -> tuple[int, int, int]:
        """The numbers of the first outputs of labels, tags and words."""
        return (N_KINDS, N_KINDS + self.n_labels, N_KINDS + self.n_labels + self.n_tags)

    @property
    def input_tags(self) -> Integers:
        """The tag of each input word, numbered from 1; 0 means no word."""
        return np.concatenate([[0], self.tag_of + 1]).astype(np.int32)

    def shapes(self, units: int, embedding: int, cell: str) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all weights."""
        width = N_GATES[cell] * units
        return {
            "decisions": (self.inputs[0], embedding),
            "symbols": (self.inputs[1], embedding),
            "words": (self.inputs[2], embedding),
            "tags": (self.n_tags + 1, embedding),
            "input": (4 * embedding, width),
            "bias": (width,),
            "links": (N_LINKS * units, width),
            "output": (self.n_outputs, units),
            "output_bias": (self.n_outputs,),
        }


class WeightsField:
    """The weights of a network as a field of a model, with the shapes of `Sizes.shapes`."""

    dimensions: ClassVar = dict.fromkeys(("bias", "output_bias"), 1) | dict.fromkeys(
        ("decisions", "symbols", "words", "tags", "input", "links", "output"), 2
    )

    def put(self, state: State, name: str, value: Weights) -> None:
        """Add the weights to a saved state."""
        state.arrays |= {f"{name}.{key}": value[key] for key in self.dimensions}

    def take(self, state: State, name: str) -> dict[str, Floats]:
        """Remove and return the weights from a saved state."""
        return {key: Array("f", size).take(state, f"{name}.{key}") for key, size in self.dimensions.items()}


class PackedDerivations(NamedTuple):
    """Decisions of several derivations, sorted by their position in the derivation.

    Derivations are sorted by length, the longest first, so that those that continue at a time step come
    first.

    Attributes
    ----------
    inputs, links : ndarray of int64, (n, 4)
        As in `Encoded`, except that links are row numbers from 1, and 0 means none.
    kinds, labels, tags, words : ndarray of int64, (n,)
        The decisions, as in `Encoded`.
    legal : ndarray of bool, (n, 4)
        Whether each kind of decision is legal.
    starts : list of int
        First row of each time step, followed by the total number of rows.
    rows : list of ndarray of int64
        The rows of each derivation; derivations are in their original order.
    """

    inputs: npt.NDArray[np.int64]
    links: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    tags: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]
    legal: Booleans
    starts: list[int]
    rows: list[npt.NDArray[np.int64]]


def pack(derivations: Sequence[Encoded]) -> PackedDerivations:
    """Pack derivations, so that they can be computed together."""
    lengths = np.array([len(each.kinds) for each in derivations])
    order = np.argsort(-lengths, kind="stable")
    n_active = [int((lengths > time).sum()) for time in range(int(lengths.max(initial=0)))]
    starts = np.concatenate([[0], np.cumsum(n_active)]).astype(np.int64)
    rows: list[npt.NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)] * len(derivations)
    for place, at in enumerate(order.tolist()):
        rows[at] = starts[: lengths[at]] + place
    target = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    source = np.argsort(target)

    def gather(columns: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.int64]:
        return np.concatenate(columns).astype(np.int64)[source]

    linked = [
        np.where(each.links >= 0, own[each.links] + 1, 0) for each, own in zip(derivations, rows, strict=True)
    ]
    return PackedDerivations(
        gather([each.inputs for each in derivations]),
        np.concatenate(linked)[source],
        gather([each.kinds for each in derivations]),
        gather([each.labels for each in derivations]),
        gather([each.tags for each in derivations]),
        gather([each.words for each in derivations]),
        np.concatenate([each.legal for each in derivations])[source],
        starts.tolist(),
        rows,
    )


class Network:
    """A trained network.

    Parameters
    ----------
    weights : mapping of str to ndarray of float32
        Weights with the shapes of `Sizes.shapes`.
    sizes : Sizes
        Sizes of the vocabulary.
    cell : {"gated", "tanh", "sigmoid"}
        Kind of units.

    Attributes
    ----------
    units, n_memory : int
        Sizes of history vectors and of memories.
    """

    def __init__(self, weights: Weights, sizes: Sizes, *, cell: str) -> None:
        self.sizes = sizes
        self.cell = cell
        self.units = weights["output"].shape[1]
        self.n_memory = self.units if cell == "gated" else 0
        self._links = np.ascontiguousarray(weights["links"])
        self._output = np.ascontiguousarray(weights["output"])
        self._bias = weights["output_bias"]
        words = weights["words"] + weights["tags"][sizes.input_tags]
        tables = (weights["decisions"], weights["symbols"], words, words)
        parts = np.split(weights["input"], len(tables))
        # Precompute the contributions of embeddings to units.
        self._tables = [table @ part for table, part in zip(tables, parts, strict=True)]
        self._tables[0] += weights["bias"]

    def embed(self, inputs: npt.NDArray[np.integer]) -> Floats:
        """Return the contributions of the inputs of decisions, (n, 4), to units."""
        total: Floats = self._tables[0][inputs[:, 0]]
        for column, table in enumerate(self._tables[1:], 1):
            total += table[inputs[:, column]]
        return total

    def step(
        self, embedded: Floats, links: npt.NDArray[np.integer], hidden: Floats, memory: Floats
    ) -> tuple[Floats, Floats]:
        """Return the history vectors and memories of decisions.

        Parameters
        ----------
        embedded : ndarray of float32, (n, width)
            Result of `embed`.
        links : ndarray of int, (n, 4)
            Row numbers in `hidden` and `memory`.
        hidden, memory : ndarray of float32, (n_rows, units) and (n_rows, n_memory)
            History vectors and memories of earlier decisions.
        """
        total = embedded + self._follow(links, hidden)
        if self.cell == "gated":
            return self._gate(total, memory[links])
        return (expit(total) if self.cell == "sigmoid" else np.tanh(total)), memory[links[:, 0]]

    def _follow(self, links: npt.NDArray[np.integer], hidden: Floats) -> Floats:
        """Return the contributions of earlier history vectors to units."""
        if len(links) < MANY:
            joined: Floats = hidden[links].reshape(len(links), -1) @ self._links
            return joined
        total = np.zeros((len(links), self._links.shape[1]), dtype=np.float32)
        for column, matrix in enumerate(np.split(self._links, N_LINKS)):
            # Hypotheses of a search often share links.
            rows, places = np.unique(links[:, column], return_inverse=True)
            total += (hidden[rows] @ matrix)[places]
        return total

    def _gate(self, total: Floats, memory: Floats) -> tuple[Floats, Floats]:
        units = self.units
        sources = total[:, : N_SOURCES * units].reshape(len(total), N_SOURCES, units)
        shares = np.exp(sources - sources.max(axis=1, keepdims=True))
        mixed = shares[:, 0] * np.tanh(total[:, -units:]) + (shares[:, 1:] * memory).sum(axis=1)
        new = mixed / shares.sum(axis=1)
        return expit(total[:, -2 * units : -units]) * new, new

    def run(self, decisions: PackedDerivations | SharedDerivations) -> Floats:
        """Return the history vectors of decisions, (n, units), or of their shared rows."""
        n_rows = len(decisions.inputs)
        hidden = np.zeros((n_rows + 1, self.units), dtype=np.float32)
        memory = np.zeros((n_rows + 1, self.n_memory), dtype=np.float32)
        embedded = self.embed(decisions.inputs)
        for begin, end in pairwise(decisions.starts):
            found = self.step(embedded[begin:end], decisions.links[begin:end], hidden, memory)
            hidden[begin + 1 : end + 1], memory[begin + 1 : end + 1] = found
        return hidden[1:]

    def _logits(self, hidden: Floats, begin: int, end: int) -> Floats:
        logits: Floats = hidden @ self._output[begin:end].T + self._bias[begin:end]
        return logits

    def kind_logs(self, hidden: Floats, legal: Booleans) -> Floats:
        """Return the log-probabilities of the kinds of decision, (n, 4)."""
        logits = np.where(legal, self._logits(hidden, 0, N_KINDS), IMPOSSIBLE)
        logs: Floats = log_softmax(logits, axis=1)
        return logs

    def label_logs(self, hidden: Floats) -> Floats:
        """Return the log-probabilities of labels, (n, n_labels)."""
        labels, tags, _ = self.sizes.starts
        logs: Floats = log_softmax(self._logits(hidden, labels, tags), axis=1)
        return logs

    def tag_logs(self, hidden: Floats) -> Floats:
        """Return the log-probabilities of tags, (n, n_tags)."""
        _, tags, words = self.sizes.starts
        logs: Floats = log_softmax(self._logits(hidden, tags, words), axis=1)
        return logs

    def word_logs(self, hidden: Floats, tag: int) -> Floats:
        """Return the log-probabilities of the words of a tag, (n, n_words_of_tag)."""
        begin, end = (self.sizes.starts[2] + int(self.sizes.indptr[tag + more]) for more in (0, 1))
        logs: Floats = log_softmax(self._logits(hidden, begin, end), axis=1)
        return logs

    def shift_logs(self, hidden: Floats, words: npt.NDArray[np.integer]) -> Floats:
        """Return the log-probability of the tag and word of each shift, given that it is a shift."""
        of_words = self.sizes.tag_of[words]
        logs: Floats = self.tag_logs(hidden)[np.arange(len(words)), of_words]
        for tag in np.unique(of_words).tolist():
            rows = np.flatnonzero(of_words == tag)
            logs[rows] += self.word_logs(hidden[rows], tag)[
                np.arange(len(rows)), words[rows] - self.sizes.indptr[tag]
            ]
        return logs

    def decision_logs(self, packed: PackedDerivations, hidden: Floats) -> npt.NDArray[np.float64]:
        """Return the log-probabilities of decisions, (n,)."""
        rows = np.arange(len(packed.kinds))
        logs = self.kind_logs(hidden, packed.legal)[rows, packed.kinds].astype(np.float64)
        projected = np.flatnonzero(packed.kinds == PROJECT)
        logs[projected] += self.label_logs(hidden[projected])[
            np.arange(len(projected)), packed.labels[projected]
        ]
        shifted = np.flatnonzero(packed.kinds == SHIFT)
        logs[shifted] += self.shift_logs(hidden[shifted], packed.words[shifted])
        return logs

    def score(self, derivations: Sequence[Encoded]) -> list[float]:
        """Return the log-probability of each derivation."""
        if not derivations:
            return []
        packed = pack(derivations)
        logs = self.decision_logs(packed, self.run(packed))
        return [float(logs[own].sum()) for own in packed.rows]
