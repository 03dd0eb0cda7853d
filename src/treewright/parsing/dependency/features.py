"""Features of dependency parsing: templates and encoded sentences.

Templates are written in the language of `treewright.data.templates`. The words of a part have roles: ``h`` is
the head, ``m`` the modifier, ``s`` the sibling before the modifier, ``t`` the sibling before ``s``, and ``g``
the head of the head. Templates of labels also use ``n``, the sibling after the modifier, and ``f`` and ``l``,
the first and last child of the modifier. Every feature includes the directions of its arcs. A line that ends
in ``*`` stands for two features, one without and one with the distance. Arcs have two more kinds of features:
the tags of head and modifier with each tag between them, and each pair of morphological features of head and
modifier.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._validate import check_param
from treewright.data.deptree import DepTree, list_strings
from treewright.data.templates import TemplateLanguage
from treewright.data.vocab import UNKNOWN, Vocabulary
from treewright.model import Model, Value, expect, saved
from treewright.native.dependency.features import MAX_EXTRA_KEYS, N_EXTRA_ROWS, ROOT, PartTemplates
from treewright.native.hashing import hash_text

ATTRIBUTES = ("pos", "tag", "word", "lemma", "feats", "suffix", "prefix", "shape")
"""UPOS tag, XPOS tag, form, lemma, morphological features, last and first letters, and shape."""
MOST_CACHED = 1 << 18
"""Maximum number of cached combinations of word and tags."""
ROLES = {"h": 0, "m": 1, "s": 2, "g": 3, "t": 4, "n": 5, "f": 6, "l": 7}
KINDS = {
    "arc": "hm",
    "pair": "hsm",
    "grandchild": "ghm",
    "grand_sibling": "ghsm",
    "triple": "htsm",
    "label": "hmgsnfl",
    "label_child": "hmt",
    "label_sibling": "hmt",
}
"""Kinds of parts and the roles of their words; the last three kinds are for labels."""
LANGUAGES = {
    kind: TemplateLanguage(ATTRIBUTES, roles=tuple(roles), max_offset=2, has_distance=True)
    for kind, roles in KINDS.items()
}

ARC_TEMPLATES = """
h.word *
h.tag *
h.word h.tag *
m.word *
m.tag *
m.word m.tag *
h.word m.word *
h.tag m.tag *
h.pos m.pos *
h.word m.tag *
h.tag m.word *
h.word h.tag m.word *
h.word h.tag m.tag *
h.word m.word m.tag *
h.tag m.word m.tag *
h.word h.tag m.word m.tag *
h.lemma m.lemma *
h.lemma m.pos *
h.pos m.lemma *
h.lemma h.tag m.lemma
h.lemma m.lemma m.tag
h.tag h+1.tag m-1.tag m.tag *
h-1.tag h.tag m-1.tag m.tag *
h.tag h+1.tag m.tag m+1.tag *
h-1.tag h.tag m.tag m+1.tag *
h.tag h+1.tag m.tag *
h-1.tag h.tag m.tag *
h.tag m-1.tag m.tag *
h.tag m.tag m+1.tag *
h.pos h+1.pos m-1.pos m.pos *
h-1.pos h.pos m.pos m+1.pos *
h.pos h+1.pos m.pos m+1.pos *
h-1.pos h.pos m-1.pos m.pos *
h.pos m-1.pos m.pos m+1.pos *
h-1.pos h.pos h+1.pos m.pos *
h.tag m.tag m+1.tag m+2.tag *
h.tag m-2.tag m-1.tag m.tag *
h.tag h+1.tag h+2.tag m.tag
h-2.tag h-1.tag h.tag m.tag
m-1.tag m.tag m+1.tag *
m.word m-1.tag m+1.tag
h.word m.word m-1.word
h.word m.word m+1.word
h.tag m-1.word m.tag *
h.tag m.tag m+1.word *
h-1.word h.tag m.tag *
h+1.word h.tag m.tag *
h.word m.tag m-1.tag
h.word m.tag m+1.tag
h.tag m.word m-1.tag
h.tag m.word m+1.tag
h.feats m.feats *
h.pos h.feats m.pos m.feats *
h.pos m.pos m.feats *
h.pos h.feats m.pos *
h.lemma m.pos m.feats
h.pos h.feats m.lemma
h.suffix m.tag *
h.tag m.suffix *
h.suffix m.suffix *
h.prefix m.tag
h.tag m.prefix
h.pos m.shape *
h.shape m.pos *
h.shape m.shape
"""

PAIR_TEMPLATES = """
h.tag s.tag m.tag *
h.pos s.pos m.pos *
s.tag m.tag *
s.pos m.pos *
h.word s.tag m.tag
h.tag s.word m.tag
h.tag s.tag m.word
h.lemma s.pos m.pos
h.pos s.lemma m.pos
h.pos s.pos m.lemma
s.word m.tag *
s.tag m.word *
s.word m.word *
s.lemma m.lemma
h.tag s.lemma m.lemma
h.lemma s.lemma m.pos
h.lemma s.pos m.lemma
h.pos s.feats m.feats
s.pos s.feats m.pos m.feats
h.tag s.tag m.tag m+1.tag
h.tag s.tag m-1.tag m.tag
h.tag s.tag s+1.tag m.tag
"""

GRANDCHILD_TEMPLATES = """
g.tag h.tag m.tag *
g.pos h.pos m.pos *
g.tag m.tag *
g.pos m.pos
g.word h.tag m.tag
g.tag h.word m.tag
g.tag h.tag m.word
g.lemma h.pos m.pos
g.pos h.lemma m.pos
g.pos h.pos m.lemma
g.word m.tag
g.tag m.word
g.word m.word
g.lemma m.lemma
g.lemma h.lemma m.pos
g.pos h.lemma m.lemma
g.lemma h.pos m.lemma
g.pos g.feats h.pos m.pos m.feats
g.tag h.tag m.tag m+1.tag
g.tag h.tag m-1.tag m.tag
g.tag h.tag h+1.tag m.tag
"""

GRAND_SIBLING_TEMPLATES = """
g.tag h.tag s.tag m.tag
g.pos h.pos s.pos m.pos
g.tag s.tag m.tag
"""

TRIPLE_TEMPLATES = """
h.tag t.tag s.tag m.tag
h.pos t.pos s.pos m.pos
t.tag s.tag m.tag
h.tag t.tag m.tag
"""

PRUNING_TEMPLATES = """
h.tag m.tag *
h.pos m.pos *
h.word m.tag *
h.tag m.word *
h.word m.word
h.lemma m.lemma
h.tag *
m.tag *
m.word *
h.word *
h.tag h+1.tag m-1.tag m.tag *
h-1.tag h.tag m.tag m+1.tag *
h-1.tag h.tag m-1.tag m.tag *
h.tag h+1.tag m.tag m+1.tag *
h.tag m-1.tag m.tag m+1.tag *
h-1.tag h.tag h+1.tag m.tag *
h.pos h.feats m.pos m.feats *
h.tag m.suffix *
"""


@dataclass(frozen=True)
class TemplateSet:
    """Feature templates of each kind of part; pass your own to `DependencyParser`.

    Parameters
    ----------
    arc : str
        Templates of arcs, one per line.
    pair : str
        Templates of a head with two adjacent modifiers.
    grandchild : str
        Templates of grandchildren: a modifier, its head, and the head of this head.
    grand_sibling : str
        Templates of grand-siblings: two adjacent modifiers, their head, and the head of this head.
    triple : str
        Templates of a head with three adjacent modifiers.
    pruning : str
        Templates of arcs in the first pruning stage.

    See Also
    --------
    DependencyParser : Takes templates as its parameter `templates`.

    Examples
    --------
    >>> from treewright import TemplateSet
    >>> from treewright.parsing.dependency.features import ARC_TEMPLATES
    >>> templates = TemplateSet(arc=ARC_TEMPLATES + "h.word m.suffix m+1.word")
    >>> templates.arc.splitlines()[-1]
    'h.word m.suffix m+1.word'
    """

    arc: str = ARC_TEMPLATES
    pair: str = PAIR_TEMPLATES
    grandchild: str = GRANDCHILD_TEMPLATES
    grand_sibling: str = GRAND_SIBLING_TEMPLATES
    triple: str = TRIPLE_TEMPLATES
    pruning: str = field(default=PRUNING_TEMPLATES)

    def __post_init__(self) -> None:
        for name, text in asdict(self).items():
            check_param(name, text, str)


TEMPLATES = Value(
    encode=lambda templates: asdict(templates or TemplateSet()), decode=lambda texts: TemplateSet(**texts)
)
"""Templates as a field of a model; None is saved as the default templates."""
CHOSEN_TEMPLATES = Value(
    encode=lambda templates: asdict(templates) if templates else None,
    decode=lambda texts: TemplateSet(**texts) if texts else None,
)
"""Templates as a parameter of a model; None is saved as None."""


@cache
def compile_templates(text: str, kind: str) -> PartTemplates:
    """Compile template lines into arrays for one of KINDS; each kind has its own keys."""
    parsed = LANGUAGES[kind].parse(text)
    # Atoms of one word are adjacent, so that their contribution is computed once for all parts.
    lines = [sorted(template.atoms, key=lambda atom: atom.role) for template in parsed]
    numbers = [_numbers(f"{kind} {at}", len(line) + 1) for at, line in enumerate(lines)]
    atoms = list(chain.from_iterable(lines))
    return PartTemplates(
        np.cumsum([0, *map(len, lines)], dtype=np.int32),
        np.array([ROLES[atom.role] for atom in atoms], dtype=np.int32),
        np.array([atom.offset for atom in atoms], dtype=np.int32),
        np.array([ATTRIBUTES.index(atom.attribute) for atom in atoms], dtype=np.int32),
        np.array([factor for _, *factors in numbers for factor in factors], dtype=np.uint64),
        np.array([seed for seed, *_ in numbers], dtype=np.uint64),
        np.array([template.with_distance for template in parsed], dtype=np.bool_),
        np.array(_numbers(f"{kind} between", 4), dtype=np.uint64),
        np.array(_numbers(f"{kind} morphs", 5), dtype=np.uint64),
    )


def _numbers(name: str, n: int) -> list[int]:
    """Return pseudo-random odd 64-bit numbers that depend only on the name."""
    return [hash_text(f"{name} {at}") | 1 for at in range(n)]


def max_keys(*templates: PartTemplates) -> int:
    """Return the maximum number of features of a part."""
    return max(int(one.with_distance.size + one.with_distance.sum()) for one in templates) + MAX_EXTRA_KEYS


class Corpus(NamedTuple):
    """Encoded sentences, concatenated into flat arrays; each has extra rows that are not words."""

    first_row: npt.NDArray[np.int64]
    values: npt.NDArray[np.int32]
    first_morph: npt.NDArray[np.int64]
    """Start of the morphological features of each row in `morphs`; the last entry is their total number."""
    morphs: npt.NDArray[np.int32]
    heads: npt.NDArray[np.int32]
    """Head of each row; -1 if unknown."""

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return len(self.first_row) - 1

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of words of each sentence."""
        return np.diff(self.first_row) - N_EXTRA_ROWS

    def words_of(self, number: int) -> slice:
        """Return the rows of the words of a sentence."""
        return slice(int(self.first_row[number]) + ROOT + 1, int(self.first_row[number + 1]) - 2)


class Encoder(Model):
    """Encodes sentences as arrays, with the vocabularies of the training sentences.

    Parameters
    ----------
    vocabularies : sequence of Vocabulary
        A vocabulary for each of ATTRIBUTES, and one for morphological features.
    """

    fields = saved(
        vocabularies=Value(
            encode=lambda found: [one.strings for one in found],
            decode=lambda texts: [Vocabulary(strings) for strings in texts],
        )
    )

    def __init__(self, vocabularies: Sequence[Vocabulary]) -> None:
        self.vocabularies = vocabularies
        # Values of rows that are not words follow the strings of each vocabulary.
        bases = [len(vocabulary) for vocabulary in self.vocabularies[: len(ATTRIBUTES)]]
        self._special = np.array([[base + row for base in bases] for row in range(ROOT + 1)], dtype=np.int32)
        self._cache: dict[tuple[str, ...], tuple[list[int], list[int]]] = {}

    def check_fitted_state(self) -> None:
        """Check that there is a vocabulary for each attribute and for morphological features."""
        expect(len(self.vocabularies) == len(ATTRIBUTES) + 1, "a vocabulary for each attribute of words")

    @classmethod
    def from_trees(cls, trees: Iterable[DepTree]) -> "Encoder":
        """Collect the attribute values that occur in `trees`."""
        columns = ((tree.words, tree.lemmas, tree.upos, tree.xpos, tree.feats) for tree in trees)
        tokens = Counter(token for each in columns for token in zip(*each, strict=True))
        counts: list[Counter[str]] = [Counter() for _ in range(len(ATTRIBUTES) + 1)]
        for token, n in tokens.items():
            attributes, morphs = _analyse(token)
            for counter, value in zip(counts, attributes, strict=False):
                counter[value] += n
            for morph in morphs:
                counts[-1][morph] += n
        return cls([Vocabulary.from_counts(counter) for counter in counts])

    def knows_words(self, words: Sequence[str]) -> list[bool]:
        """Return which words occur in the training sentences, ignoring case."""
        forms = self.vocabularies[ATTRIBUTES.index("word")]
        return [word.lower() in forms for word in list_strings("words", words)]

    def encode(self, trees: Sequence[DepTree]) -> Corpus:
        """Encode sentences as arrays."""
        n_rows = sum(len(tree) + N_EXTRA_ROWS for tree in trees)
        values = np.empty((n_rows, len(ATTRIBUTES)), dtype=np.int32)
        heads = np.full(n_rows, -1, dtype=np.int32)
        n_morphs = np.zeros(n_rows + 1, dtype=np.int64)
        morphs: list[int] = []
        first_row = [0]
        for tree in trees:
            start = first_row[-1] + ROOT + 1
            values[start - ROOT - 1 : start] = self._special
            tokens = zip(tree.words, tree.lemmas, tree.upos, tree.xpos, tree.feats, strict=True)
            known = [self._cache.get(token) or self._look_up(token) for token in tokens]
            end = start + len(known)
            if known:
                values[start:end] = [one[0] for one in known]
                heads[start:end] = tree.heads
                n_morphs[start + 1 : end + 1] = [len(one[1]) for one in known]
                for one in known:
                    morphs.extend(one[1])
            values[end : end + 2] = self._special[2]
            first_row.append(end + 2)
        return Corpus(
            np.array(first_row, dtype=np.int64),
            values,
            np.cumsum(n_morphs),
            np.array(morphs, dtype=np.int32),
            heads,
        )

    def _look_up(self, token: tuple[str, ...]) -> tuple[list[int], list[int]]:
        """Return the integers that encode a token, and cache them."""
        *vocabularies, morph = self.vocabularies
        attributes, morphs = _analyse(token)
        ids = [one.numbers.get(value, UNKNOWN) for one, value in zip(vocabularies, attributes, strict=True)]
        if len(self._cache) >= MOST_CACHED:
            self._cache.clear()
        found = self._cache[token] = ids, [morph.numbers[one] for one in morphs if one in morph.numbers]
        return found


def attributes_of(tree: DepTree) -> list[list[str]]:
    """Return the attribute values of each word, in the order of ATTRIBUTES."""
    tokens = zip(tree.words, tree.lemmas, tree.upos, tree.xpos, tree.feats, strict=True)
    return [_analyse(token)[0] for token in tokens]


def _analyse(token: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the attribute values of a token, in the order of ATTRIBUTES, and its morphological features."""
    word, lemma, upos, xpos, feats = token
    lower = word.lower()
    pos = upos if upos != "_" else xpos
    tag = xpos if xpos != "_" else upos
    lemma = lemma if lemma != "_" else lower
    morphs = feats.split("|") if feats != "_" else []
    return [pos, tag, lower, lemma, feats, lower[-3:], lower[:3], shape(word)], morphs


def shape(word: str) -> str:
    """Return the shape of a word, with repeated kinds of characters merged: ``McCoy-7`` is ``XxXx-d``."""
    kinds = ["d" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in word]
    return "".join(kind for at, kind in enumerate(kinds) if at == 0 or kind != kinds[at - 1])[:6]
