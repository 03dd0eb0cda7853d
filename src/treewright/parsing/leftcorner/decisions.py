"""Numeric encoding of left-corner derivations: the vocabulary of decisions, and arrays for a network.

I. Titov and J. Henderson (2005), section VI, and J. Henderson (2003): words are predicted together with their
tags. A rare word becomes the unknown word of its tag or, if that is rare too, the unknown word shared by all
tags.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright.data.vocab import Vocabulary
from treewright.errors import InputError, quote
from treewright.model import Model, Submodel, Value, saved
from treewright.parsing.leftcorner.derivations import (
    ATTACH,
    ATTACHED,
    MODIFIED,
    MODIFY,
    N_KINDS,
    NONE,
    PROJECT,
    SHIFT,
    Decision,
    Derivation,
    DerivationState,
    Integers,
)


class TagWordVocabulary(Model):
    """A vocabulary of tag-word pairs; every pair has a number.

    Number 0 is the unknown word shared by all tags. Then come, for each tag, the unknown word of the tag (if
    it is frequent) and the frequent words. A rare pair becomes the unknown word of its tag or, if there is
    none, number 0 with tag 0. Unseen tags also become tag 0.

    Parameters
    ----------
    tags : sequence of str
        The tags; they are numbered from 1.
    words : sequence of sequences of str or None
        For each tag, the words that have a number; None stands for the unknown word of the tag.

    Attributes
    ----------
    tags : Vocabulary
        The tags; ``len(tags)`` includes tag 0.
    indptr : ndarray of int32, (n_tags + 1,)
        Tag t has the words from ``indptr[t]`` to ``indptr[t + 1]``, which form one softmax group.
    tag_of : ndarray of int32, (n_words,)
        The tag of each tag-word pair.
    """

    fields = saved(tags=Value(encode=lambda tags: tags.strings))

    def __init__(self, tags: Sequence[str], words: Sequence[Sequence[str | None]]) -> None:
        self.tags = Vocabulary(tags)
        self.words = [list(of_tag) for of_tag in words]
        lengths = [1, *(len(of_tag) for of_tag in self.words)]
        self.indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        self.tag_of = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        pairs = [(tag, word) for tag, of_tag in zip(tags, self.words, strict=True) for word in of_tag]
        self._numbers = {pair: number for number, pair in enumerate(pairs, start=1)}

    @classmethod
    def from_counts(
        cls, counts: Mapping[tuple[str, str], int], *, min_count: int = 20, min_unknown: int = 5
    ) -> Self:
        """Build the vocabulary from the tag-word pairs that occur at least `min_count` times.

        A tag has its own unknown word if its rare words occur at least `min_unknown` times in total.
        """
        by_tag: dict[str, dict[str, int]] = {}
        for (tag, word), count in counts.items():
            by_tag.setdefault(tag, {})[word] = count
        kept: list[tuple[str, list[str | None]]] = []
        for tag in sorted(by_tag, key=lambda tag: (-sum(by_tag[tag].values()), tag)):
            n_rare = sum(count for count in by_tag[tag].values() if count < min_count)
            unknown: list[str | None] = [None] if n_rare >= min_unknown else []
            frequent = Vocabulary.from_counts(by_tag[tag], min_count=min_count).strings
            if unknown or frequent:
                kept.append((tag, [*unknown, *frequent]))
        return cls([tag for tag, _ in kept], [words for _, words in kept])

    def __len__(self) -> int:
        return len(self.tag_of)

    def id(self, tag: str, word: str) -> int:
        """Return the number of a tag-word pair."""
        number = self._numbers.get((tag, word))
        return self._numbers.get((tag, None), 0) if number is None else number


class DecisionVocabulary(Model):
    """The vocabulary of all decisions.

    Symbols are numbers of node names: 0 is ROOT, followed by the labels and the tags.

    Parameters
    ----------
    labels : sequence of str
        The labels; they are numbered from 0.
    words : TagWordVocabulary
        The tag-word pairs.
    """

    fields = saved(words=Submodel(TagWordVocabulary))

    def __init__(self, labels: Sequence[str], words: TagWordVocabulary) -> None:
        self.labels = list(labels)
        self.words = words
        self._labels = {label: number for number, label in enumerate(self.labels)}

    @classmethod
    def from_derivations(
        cls, derivations: Iterable[Derivation], *, min_count: int = 20, min_unknown: int = 5
    ) -> Self:
        """Build the vocabulary of derivations; the most frequent labels come first."""
        labels: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for derivation in derivations:
            labels.update(derivation.labels)
            pairs.update(zip(derivation.tags, derivation.words, strict=True))
        words = TagWordVocabulary.from_counts(pairs, min_count=min_count, min_unknown=min_unknown)
        return cls(Vocabulary.from_counts(labels).strings, words)

    @property
    def n_inputs(self) -> tuple[int, int, int, int]:
        """Number of values of each of `INPUTS`."""
        n_labels, n_words = len(self.labels), len(self.words) + 1
        return (N_KINDS + n_labels, 1 + n_labels + len(self.words.tags), n_words, n_words)

    def covers(self, derivation: Derivation) -> bool:
        """Return whether all labels of a derivation are known; every word has a number."""
        return all(label in self._labels for label in derivation.labels)

    def shift(self, tag: str, word: str) -> Decision:
        """Return the decision to shift a word."""
        number = self.words.id(tag, word)
        return Decision(SHIFT, 1 + len(self.labels) + int(self.words.tag_of[number]), number)

    def project(self, label: str) -> Decision:
        """Return the decision to project a label: ``Decision(PROJECT, 1 + number of the label)``."""
        if label not in self._labels:
            raise InputError(f"label is {quote(label)}; expected a label of the training data")
        return Decision(PROJECT, 1 + self._labels[label])

    def decisions(self, derivation: Derivation) -> list[Decision]:
        """Encode the decisions of a derivation."""
        shifts = (self.shift(*pair) for pair in zip(derivation.tags, derivation.words, strict=True))
        projections = (self.project(label) for label in derivation.labels)
        plain = {ATTACH: ATTACHED, MODIFY: MODIFIED}
        return [
            next(shifts) if kind == SHIFT else next(projections) if kind == PROJECT else plain[kind]
            for kind in derivation.kinds
        ]

    def decode(self, decisions: Sequence[Decision], tags: Sequence[str], words: Sequence[str]) -> Derivation:
        """Decode decisions over the words of a sentence into a derivation."""
        labels = [self.labels[symbol - 1] for kind, symbol, _ in decisions if kind == PROJECT]
        return Derivation([decision.kind for decision in decisions], labels, list(tags), list(words))


class Encoded(NamedTuple):
    """A derivation as arrays with one row per decision.

    Attributes
    ----------
    kinds, labels, tags, words : ndarray of int32, (n,)
        The decisions; -1 if a decision has no label, tag or word.
    legal : ndarray of bool, (n, 4)
        Whether each kind of decision is legal.
    links : ndarray of int32, (n, 4)
        The earlier decisions to which `LINKS` refer; -1 if there is none.
    inputs : ndarray of int32, (n, 4)
        The values of `INPUTS`.
    """

    kinds: Integers
    labels: Integers
    tags: Integers
    words: Integers
    legal: npt.NDArray[np.bool_]
    links: Integers
    inputs: Integers


def encode(derivation: Derivation, vocabulary: DecisionVocabulary) -> Encoded:
    """Encode a derivation as arrays for training.

    Raises
    ------
    InputError
        If a decision is illegal or a label is unknown; see `DecisionVocabulary.covers`.
    """
    decisions = vocabulary.decisions(derivation)
    state = DerivationState.start()
    legal, links, inputs = [], [], []
    for decision in decisions:
        legal.append(state.legal())
        links.append(state.links())
        inputs.append(state.inputs())
        state = state.apply(decision)
    kinds, symbols, words = np.array(decisions, dtype=np.int32).reshape(-1, 3).T.copy()
    labels = np.where(kinds == PROJECT, symbols - 1, NONE).astype(np.int32)
    tags = np.where(kinds == SHIFT, symbols - 1 - len(vocabulary.labels), NONE).astype(np.int32)
    rows = (np.array(links, dtype=np.int32), np.array(inputs, dtype=np.int32))
    return Encoded(kinds, labels, tags, words, np.array(legal), *rows)


class SharedDerivations(NamedTuple):
    """Derivations over the same words; decisions with the same history share a row.

    Rows are sorted by the number of earlier decisions.

    Attributes
    ----------
    inputs, links : ndarray of int64, (n_rows, 4)
        As in `Encoded`, except that links are row numbers from 1, and 0 means none.
    legal : ndarray of bool, (n_rows, 4)
        Whether each kind of decision is legal.
    starts : list of int
        First row for each number of earlier decisions, followed by the total number of rows.
    rows, kinds, labels, tags, words : ndarray of int64, (n_decisions,)
        The row of each decision, and the decision as in `Encoded`, for all derivations.
    indptr : ndarray of int64, (n_derivations + 1,)
        First decision of each derivation, followed by the total number of decisions.
    """

    inputs: npt.NDArray[np.int64]
    links: npt.NDArray[np.int64]
    legal: npt.NDArray[np.bool_]
    starts: list[int]
    rows: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    tags: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]
    indptr: npt.NDArray[np.int64]


def encode_together(derivations: Sequence[Derivation], vocabulary: DecisionVocabulary) -> SharedDerivations:
    """Encode derivations as arrays with shared rows; errors are the same as those of `encode`."""
    states, chosen = _walk_together([vocabulary.decisions(each) for each in derivations])
    rows, kinds, symbols, words = np.array(chosen, dtype=np.int64).T
    # A derivation ends in a state without further decisions.
    used = np.unique(rows)
    used = used[np.argsort([states[row].n_decisions for row in used.tolist()], kind="stable")]
    before = [states[row] for row in used.tolist()]
    places = np.zeros(len(states) + 1, dtype=np.int64)  # the last one is for missing links
    places[used] = np.arange(1, len(used) + 1)
    times = np.bincount([state.n_decisions for state in before])
    return SharedDerivations(
        np.array([state.inputs() for state in before], dtype=np.int64),
        places[np.array([state.links() for state in before])],
        np.array([state.legal() for state in before]),
        [0, *np.cumsum(times).tolist()],
        places[rows] - 1,
        kinds,
        np.where(kinds == PROJECT, symbols - 1, NONE),
        np.where(kinds == SHIFT, symbols - 1 - len(vocabulary.labels), NONE),
        words,
        np.cumsum([0, *(len(each.kinds) for each in derivations)]),
    )


def _walk_together(
    derivations: Sequence[Sequence[Decision]],
) -> tuple[list[DerivationState], list[tuple[int, int, int, int]]]:
    """Return all states, and each decision with the number of the state in which it is made."""
    states = [DerivationState.start()]
    following: dict[tuple[int, Decision], int] = {}
    chosen = []
    for decisions in derivations:
        at = 0
        for decision in decisions:
            chosen.append((at, *decision))
            after = following.setdefault((at, decision), len(states))
            if after == len(states):
                states.append(states[at].apply(decision, at=at))
            at = after
    return states, chosen
