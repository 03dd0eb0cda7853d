"""Basic features of the arcs of dependency trees: Qian & Liu (2015), table 1.

Templates use the syntax of `treewright.data.templates`: ``h`` is the head, ``m`` the modifier, and ``b`` each
word between them. A template that ends in ``*`` also includes the binned length and the direction of the arc.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from treewright._typing import Integers, Keys
from treewright._validate import check_choice
from treewright.data import plain_words
from treewright.data.deptree import DepTree
from treewright.data.plain_words import ToldArc
from treewright.data.templates import TemplateLanguage
from treewright.data.vocab import Vocabulary
from treewright.errors import InputError
from treewright.native.data.arcs import (
    DISTANCE_BITS,
    HEAD,
    LAST_VALUE_BITS,
    LENGTH_BINS,
    MODIFIER,
    N_VALUES,
    TAG,
    VALUE_BITS,
    WORD,
    ArcTemplates,
    Sentences,
    count_arc_features,
    fill_arc_features,
)

PAIRS = (
    *("h.word m.word", "h.tag m.tag", "h.word m.tag", "h.tag m.word"),
    *("h-1.tag m.tag", "h-1.tag m.word", "h.tag m-1.tag", "h.word m-1.tag"),
    *("h+1.tag m.tag", "h+1.tag m.word", "h.tag m+1.tag", "h.word m+1.tag"),
    *("h-1.tag h.tag m.tag", "h.tag h+1.tag m.tag", "h.tag m-1.tag m.tag", "h.tag m.tag m+1.tag"),
)
BETWEEN = "h.tag b.tag m.tag"
ARC_FEATURES = (*PAIRS, *(f"{pair} *" for pair in PAIRS), BETWEEN)
"""The templates of Qian & Liu (2015), table 1."""
ENDS = {"h": HEAD, "m": MODIFIER}
ATTRIBUTES = {"word": WORD, "tag": TAG}
LANGUAGE = TemplateLanguage(
    ATTRIBUTES, roles=(*ENDS, "b"), max_offset=1, max_atoms=N_VALUES, has_distance=True
)
PARSED = LANGUAGE.parse("\n".join(ARC_FEATURES))
UNKNOWN, ROOT, OUTSIDE = 0, 1, 2
"""Ids of unknown words and tags, of the root, and of positions outside the sentence."""
N_SPECIAL = 3
SPECIAL_NAMES = {"word": ("?", "ROOT", "-"), "tag": ("?", "ROOT/tag", "-")}
"""Names of the special ids; the root has two names, since its word and its tag are different features."""
SPECIAL_WORDS = (plain_words.UNKNOWN, plain_words.ROOT, plain_words.EDGE)
SPREAD = 4.0
"""XPOS tags are used if their number is at most this multiple of the number of UPOS tags."""


class ArcEncoder:
    """Encodes the basic features of arcs as integer keys, and decodes keys to text.

    Parameters
    ----------
    words, tags : Vocabulary
        Known words and tags.
    column : {"xpos", "upos"}
        Column of the tags.
    templates : sequence of str
        Templates to use, from `ARC_FEATURES`.
    """

    def __init__(
        self,
        words: Vocabulary,
        tags: Vocabulary,
        *,
        column: str = "xpos",
        templates: Sequence[str] = ARC_FEATURES,
    ) -> None:
        self.words = words
        self.tags = tags
        self.column = column
        self.templates = tuple(templates)
        unknown = [name for name in self.templates if name not in ARC_FEATURES]
        if unknown or not self.templates:
            found = repr(unknown[0]) if unknown else "nothing"
            raise InputError(f"basic features are {found}; expected one or more of {', '.join(ARC_FEATURES)}")
        self._native = _compile(self.templates)

    @classmethod
    def from_trees(
        cls, trees: Sequence[DepTree], *, column: str | None = None, templates: Sequence[str] = ARC_FEATURES
    ) -> "ArcEncoder":
        """Make an encoder for the words and tags of trees; by default, choose the tag column."""
        column = column or _choose_column(trees)
        check_choice("column", column, ("xpos", "upos"))
        words = Counter(word for tree in trees for word in tree.words)
        tags = Counter(tag for tree in trees for tag in getattr(tree, column))
        return cls(
            _limited(words, VALUE_BITS), _limited(tags, LAST_VALUE_BITS), column=column, templates=templates
        )

    def encode(self, trees: Sequence[DepTree]) -> Sentences:
        """Encode the words and tags of sentences as arrays."""
        indptr = np.cumsum([0, *(len(tree) + 1 for tree in trees)], dtype=np.int64)
        values = np.full((indptr[-1], 2), ROOT, dtype=np.int32)
        is_word = np.ones(len(values), dtype=np.bool_)
        is_word[indptr[:-1]] = False
        words = self.words.ids(word for tree in trees for word in tree.words)
        tags = self.tags.ids(tag for tree in trees for tag in getattr(tree, self.column))
        for attribute, ids in ((WORD, words), (TAG, tags)):
            values[is_word, attribute] = np.where(ids > 0, ids - 1 + N_SPECIAL, UNKNOWN)
        return Sentences(indptr, values)

    def keys(
        self, sentences: Sentences, numbers: Integers, heads: Integers, modifiers: Integers
    ) -> tuple[Integers, Keys]:
        """Return the features of arcs; arc i has the features `keys[indptr[i]:indptr[i + 1]]`.

        Parameters
        ----------
        sentences : Sentences
            Encoded sentences.
        numbers : ndarray of int
            Index of the sentence of each arc.
        heads, modifiers : ndarray of int
            Positions of words from 1; 0 is the root.
        """
        room = len(self.templates) + int(np.diff(sentences.indptr).max(initial=0))
        indptr = np.zeros(len(heads) + 1, dtype=np.int64)
        arcs = (sentences, numbers, heads, modifiers, self._native)
        count_arc_features(*arcs, np.empty(room, dtype=np.uint64), indptr)
        keys = np.empty(indptr[-1] + room, dtype=np.uint64)
        fill_arc_features(*arcs, indptr, keys)
        return indptr, keys[: indptr[-1]]

    def knows(self, keys: Keys) -> bool:
        """Return whether the templates, words, tags and distances of all keys are valid."""
        if not len(keys):
            return True
        key, distance = np.divmod(keys, np.uint64(1 << DISTANCE_BITS))
        key, c = np.divmod(key, np.uint64(1 << LAST_VALUE_BITS))
        key, b = np.divmod(key, np.uint64(1 << VALUE_BITS))
        template, a = np.divmod(key, np.uint64(1 << VALUE_BITS))
        if int(template.max()) >= len(ARC_FEATURES) or int(distance.max()) > 2 * len(LENGTH_BINS):
            return False
        sizes = {"word": N_SPECIAL + len(self.words.strings), "tag": N_SPECIAL + len(self.tags.strings)}
        for number in np.unique(template).tolist():
            rows = template == number
            atoms = [atom.attribute for atom in PARSED[number].atoms]
            for values, attribute in zip((a, b, c), atoms, strict=False):
                if int(values[rows].max()) >= sizes[attribute]:
                    return False
        return True

    def name(self, key: int) -> str:
        """Return a feature as text, such as ``won → NN``; in ``DT·* → IN``, DT is the tag before the head."""
        template, values, distance = unpack(int(key))
        if ARC_FEATURES[template] == BETWEEN:
            head, modifier, inner = (self._string("tag", value) for value in values)
            return f"{head} ..{inner}.. {modifier}"
        sides: dict[str, dict[int, str]] = {"h": {}, "m": {}}
        for atom, value in zip(PARSED[template].atoms, values, strict=False):
            sides[atom.role][atom.offset] = self._string(atom.attribute, value)
        shown = f"{_describe_end(sides['h'])} → {_describe_end(sides['m'])}"
        return f"{shown} ({_describe_distance(distance)})" if distance else shown

    def say(self, key: int) -> str:
        """Describe a feature in plain English: ``a singular noun depends on “won”``."""
        return self.tell(key).say()

    def tell(self, key: int) -> ToldArc:
        """Return the attributes of head, modifier and a word between them that a feature specifies."""
        template, values, distance = unpack(int(key))
        ends: dict[str, dict[int, dict[str, str]]] = {"h": {}, "m": {}, "b": {}}
        if ARC_FEATURES[template] == BETWEEN:
            for role, value in zip("hmb", values, strict=True):
                ends[role][0] = self._tell("tag", value)
        else:
            for atom, value in zip(PARSED[template].atoms, values, strict=False):
                ends[atom.role].setdefault(atom.offset, {}).update(self._tell(atom.attribute, value))
        at, is_rightwards = divmod(max(0, distance - 1), 2)
        where = (("right", "left")[is_rightwards], describe_length(at)) if distance else ("", "")
        return ToldArc(ends["h"], ends["m"], *where, between=ends["b"])

    def _tell(self, attribute: str, value: int) -> dict[str, str]:
        if value < N_SPECIAL:
            return {"special": SPECIAL_WORDS[value]}
        return {attribute: self._string(attribute, value)}

    def words_of(self, key: int) -> list[str]:
        """Return the words in a feature, without the tags."""
        template, values, _ = unpack(int(key))
        return [
            self._string("word", value)
            for atom, value in zip(PARSED[template].atoms, values, strict=False)
            if atom.attribute == "word"
        ]

    def _string(self, attribute: str, value: int) -> str:
        if value < N_SPECIAL:
            return SPECIAL_NAMES[attribute][value]
        return (self.words if attribute == "word" else self.tags).strings[value - N_SPECIAL]


def templates_of(keys: Keys) -> Integers:
    """Return the template index of each key in `ARC_FEATURES`."""
    return (keys >> np.uint64(2 * VALUE_BITS + LAST_VALUE_BITS + DISTANCE_BITS)).astype(np.int64)


def unpack(key: int) -> tuple[int, tuple[int, int, int], int]:
    """Return the template of a key, its values, and its code for length and direction."""
    key, distance = divmod(key, 1 << DISTANCE_BITS)
    key, c = divmod(key, 1 << LAST_VALUE_BITS)
    key, b = divmod(key, 1 << VALUE_BITS)
    template, a = divmod(key, 1 << VALUE_BITS)
    return template, (a, b, c), distance


def _describe_end(tokens: dict[int, str]) -> str:
    """Write a word with its neighbours; ``*`` if only the neighbours are specified."""
    return "·".join(tokens.get(offset, "*") for offset in range(min(0, *tokens, 0), max(0, *tokens, 0) + 1))


def describe_length(at: int) -> str:
    """Write a length bin, given its index from 0."""
    low = int(LENGTH_BINS[at])
    high = int(LENGTH_BINS[at + 1]) - 1 if at + 1 < len(LENGTH_BINS) else 0
    return f"{low}" if high == low else f"{low}-{high}" if high else f"{low}+"


def _describe_distance(distance: int) -> str:
    at, to_the_right = divmod(distance - 1, 2)
    return f"{describe_length(at)} {'right' if to_the_right else 'left'}"


def _choose_column(trees: Sequence[DepTree]) -> str:
    own, universal = ({tag for tree in trees for tag in getattr(tree, name)} for name in ("xpos", "upos"))
    return "xpos" if 1 < len(own) <= SPREAD * max(len(universal), 12) or len(universal) < 2 else "upos"


def _limited(counts: Counter[str], bits: int) -> Vocabulary:
    """Make a vocabulary of the most frequent strings, limited so that each id fits into `bits` bits."""
    return Vocabulary(Vocabulary.from_counts(counts).strings[: (1 << bits) - N_SPECIAL])


def _compile(templates: Sequence[str]) -> ArcTemplates:
    fixed = [ARC_FEATURES.index(name) for name in ARC_FEATURES if name in templates and name != BETWEEN]
    values = np.zeros((len(fixed), N_VALUES, 3), dtype=np.int64)
    sizes = np.zeros(len(fixed), dtype=np.int64)
    for row, number in enumerate(fixed):
        sizes[row] = len(PARSED[number].atoms)
        for at, atom in enumerate(PARSED[number].atoms):
            values[row, at] = ENDS[atom.role], atom.offset, ATTRIBUTES[atom.attribute]
    with_distance = np.array([PARSED[number].with_distance for number in fixed], dtype=np.bool_)
    between = ARC_FEATURES.index(BETWEEN) if BETWEEN in templates else -1
    return ArcTemplates(np.array(fixed, dtype=np.int64), sizes, values, with_distance, OUTSIDE, between)
